/* Exchanges gradients with compressor powersgd, for tests/e2e/powersgd_torch.py. All ranks run in
 * this process, and their arrays are added in place of the all-reduces.
 *
 * Usage: powersgd_steps SPEC RANKS ROWSxCOLS... <GRADIENTS >RESULTS
 *
 * A vector is given as Nx0. GRADIENTS has one f32 array per step and rank. RESULTS has for each
 * step the factors Q that the step used, [rank][cols] for each matrix, then the average, and then
 * the residual of each rank after the step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "compress/compress.h"

enum { RANKS_MAX = 8, TENSORS_MAX = 64 };

struct exchange {
    struct ddp_compress_spec spec;
    struct ddp_tensor list[TENSORS_MAX];
    struct ddp_tensors tensors;
    int ranks;
    size_t n;
    float *data[RANKS_MAX], *residual[RANKS_MAX], *dense[RANKS_MAX];
};

static void run_round(struct exchange *x, int round)
{
    const struct ddp_span span = x->spec.compressor->span(&x->spec, &x->tensors, round);
    for (int r = 0; r < x->ranks; r++) {
        struct ddp_encode e = {.spec = &x->spec,
                               .in = x->data[r],
                               .residual = x->residual[r],
                               .n = x->n,
                               .tensors = &x->tensors,
                               .ranks = x->ranks,
                               .average = true,
                               .out = x->data[r],
                               .dense = x->dense[r]};
        x->spec.compressor->round(&e, round);
    }
    for (size_t i = span.first; i < span.first + span.count; i++) {
        float sum = 0;
        for (int r = 0; r < x->ranks; r++)
            sum += x->dense[r][i];
        for (int r = 0; r < x->ranks; r++)
            x->dense[r][i] = sum;
    }
}

static void parse(struct exchange *x, int argc, char **argv)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (argc < 4 || argc - 3 > TENSORS_MAX || ddp_compress_parse(argv[1], &x->spec, &err) != 0 ||
        (x->ranks = atoi(argv[2])) < 1 || x->ranks > RANKS_MAX) {
        fprintf(stderr, "usage: powersgd_steps SPEC RANKS ROWSxCOLS...\n");
        exit(64);
    }
    x->tensors = (struct ddp_tensors){x->list, argc - 3};
    for (int i = 0; i < x->tensors.n; i++) {
        char *end;
        const size_t rows = strtoul(argv[3 + i], &end, 10), cols = strtoul(end + 1, NULL, 10);
        x->list[i] = (struct ddp_tensor){cols > 0 ? rows * cols : rows, cols};
        x->n += x->list[i].count;
    }
    for (int r = 0; r < x->ranks; r++) {
        x->data[r] = ddp_calloc(x->n, sizeof(float));
        x->residual[r] = ddp_calloc(x->n, sizeof(float));
        x->dense[r] =
            ddp_calloc(x->spec.compressor->span(&x->spec, &x->tensors, 2).first, sizeof(float));
    }
}

int main(int argc, char **argv)
{
    static struct exchange x;
    parse(&x, argc, argv);
    for (int step = 0;; step++) {
        for (int r = 0; r < x.ranks; r++)
            if (fread(x.data[r], sizeof(float), x.n, stdin) != x.n)
                return ferror(stdin) || r > 0 || step == 0;
        for (int round = 0; round <= 2; round++)
            run_round(&x, round);
        const size_t q = x.spec.compressor->span(&x.spec, &x.tensors, 0).first;
        if (fwrite(x.dense[0], sizeof(float), q, stdout) != q ||
            fwrite(x.data[0], sizeof(float), x.n, stdout) != x.n)
            return 1;
        for (int r = 0; r < x.ranks; r++)
            if (fwrite(x.residual[r], sizeof(float), x.n, stdout) != x.n)
                return 1;
    }
}
