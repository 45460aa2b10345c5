/* `ddpbench explain effective` and `ddpbench explain break-even`. */
#include "explain_compressed.h"

#include "base/mem.h"
#include "bench/break_even.h"
#include "record/record.h"

/* The worked example: topk:0.01 of 64 MiB on 4 ranks takes 40 ms. */
enum { EXAMPLE_RANKS = 4 };
static const double example_ns = 40e6;
static const uint64_t example_bytes = 64u << 20;

static void example_point(struct ddp_point *p)
{
    ddp_point_init(p);
    p->spec.coll = DDP_ALLREDUCE;
    p->spec.ranks = EXAMPLE_RANKS;
    p->spec.size_bytes = example_bytes;
    p->spec.count = example_bytes / sizeof(float);
    snprintf(p->spec.compress, sizeof p->spec.compress, "topk:0.01");
}

void ddp_explain_effective(FILE *out)
{
    struct ddp_point p;
    example_point(&p);
    fputs("A compressed or partial all-reduce moves fewer bytes than the buffer has, so a bus\n"
          "bandwidth of it would mean nothing. Its effective bandwidth (eff, effective_GBps)\n"
          "is what a dense one would have had to reach to be done in the same time:\n"
          "\n"
          "    effective = S / t * 2(n-1)/n    S: bytes of the dense f32 buffer, n: ranks,\n"
          "                                    t: encode + exchange + decode\n"
          "\n",
          out);
    fprintf(out,
            "Example: topk:0.01 of 64 MiB on %d ranks takes %.0f ms:\n"
            "    %llu / %.3f s * %.2f = %.2f GB/s\n"
            "\n",
            EXAMPLE_RANKS, example_ns / 1e6, (unsigned long long)example_bytes, example_ns / 1e9,
            ddp_coll_busbw_factor(DDP_ALLREDUCE, EXAMPLE_RANKS),
            ddp_point_effective_GBps(&p, example_ns));
    fputs("It may be compared with busbw (`ddpbench explain busbw`) of a dense all-reduce of\n"
          "the same size and ranks: what is larger is faster. `x f32` and `x f16` are that\n"
          "comparison, with dense exchanges measured beside the point, in the same minute.\n"
          "\n"
          "phase_us: encode (select or convert, with error feedback), exchange, decode; each\n"
          "the median of the slowest rank's, so they need not add up to the time. sent,\n"
          "wire_bytes_per_rank: counted where messages carry them, most of all ranks; where\n"
          "ranks read each other's memory, the bytes that others took; on GPUs a model: what\n"
          "a ring would send. density: values a rank sent, of all; --partial K divides it by\n"
          "K (by the elements, where they are fewer: no chunk is empty). overflows: finite\n"
          "values that became infinite in 16 bits.\n",
          out);
}

static void print_densities(FILE *out)
{
    static const int ranks[] = {2, 4, 8, 16};
    const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms();
    struct ddp_point p;
    example_point(&p);
    fprintf(out, "%-12s", "by bytes");
    for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++)
        fprintf(out, " %8s%2d", "n = ", ranks[i]);
    fputc('\n', out);
    for (; *a; a++) {
        struct ddp_coll_cost cost = {0};
        bool exact;
        (*a)->cost(2, p.spec.count, 1, &cost, &exact);
        if (cost.sent_bytes <= 0)
            continue; /* this algorithm sends no messages: ranks read each other's memory */
        fprintf(out, "%-12s", (*a)->name);
        for (size_t i = 0; i < DDP_COUNT_OF(ranks); i++) {
            p.spec.ranks = ranks[i];
            fprintf(out, "  %.2f/%.2f",
                    ddp_break_even_predicted(*a, ranks[i], p.spec.count,
                                             ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F32)),
                    ddp_break_even_predicted(*a, ranks[i], p.spec.count,
                                             ddp_point_dense_bytes(&p.spec, DDP_BASELINE_F16)));
        }
        fputc('\n', out);
    }
}

void ddp_explain_break_even(FILE *out)
{
    fputs("The break-even density of a sparse exchange (topk, threshold, oktopk) is the share\n"
          "of values below which it takes less time than a dense one: 0 means at no density,\n"
          "1 at any. It is given against dense f32 and, the fair one, against fp16, which\n"
          "halves the bytes for next to nothing.\n"
          "\n"
          "predicted   by bytes alone. A dense ring sends 2 (n-1)/n S bytes a rank. Every\n"
          "            rank's k values sent to all others as index and value are 8 k (n-1)\n"
          "            bytes, so k/N = 1/n against f32 and 1/(2n) against fp16. Above a\n"
          "            density of 1/32 a bitmap is smaller than indices, which moves that to\n"
          "            about 2/n - 1/32.\n"
          "estimated   by the times of this point: encode costs the same at every density,\n"
          "            exchange and decode are taken as proportional to it.\n"
          "measured    with --break-even: the exchange is timed at densities from 1e-4 to 1\n"
          "            and bisected where it crosses the dense ones measured beside it.\n"
          "\n",
          out);
    print_densities(out);
    fputs("(against f32/against fp16)\n"
          "\n"
          "Where it does not pay, the table says below which speed of a link it would: the\n"
          "bytes it saves against a dense ring, over the time its arithmetic costs more (over\n"
          "shared memory, where nothing crosses a link: the difference of the two times;\n"
          "elsewhere encode and decode). Memory is so fast that over it this seldom pays.\n"
          "Sources: Li & Hoefler, Ok-Topk, PPoPP 2022; Agarwal et al., On the Utility of\n"
          "Gradient Compression, MLSys 2022 (it won in 6 of 200 set-ups).\n",
          out);
}
