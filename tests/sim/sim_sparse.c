/* Runs and verifies every sparse all-reduce that sends messages, once. A rank's list has k entries,
 * one at a random place in each of k equal ranges. The ranks then agree least on where gradients
 * are large, which fills in the sums fastest. */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "compress/compress.h"

/* The entries of all ranks are small integers, so their sums are exact in any order. */
#define VALUE_MAX 512

struct lists {
    size_t n, k;
    struct ddp_sparse mine;
    float *result, *expected;
    void *scratch;
};

static void make_list(const struct lists *x, int rank, struct ddp_sparse *list)
{
    struct ddp_rng rng;
    ddp_rng_init(&rng, 1, (uint64_t)rank);
    for (size_t i = 0; i < x->k; i++) {
        const size_t begin = i * x->n / x->k, end = (i + 1) * x->n / x->k;
        list->index[i] = (uint32_t)(begin + ddp_rng_below(&rng, end - begin));
        list->value[i] = 1 + (float)ddp_rng_below(&rng, VALUE_MAX);
        if (ddp_rng_below(&rng, 2) != 0)
            list->value[i] = -list->value[i];
    }
    list->count = x->k;
}

/* Rank 0 knows all lists. Algorithms that select leave out most sums; the k sums that they keep
 * must be right. */
static int check_sums(struct lists *x, int ranks, bool selects, struct ddp_err *err)
{
    size_t kept = 0;
    memset(x->expected, 0, x->n * sizeof *x->expected);
    for (int r = 0; r < ranks; r++) {
        make_list(x, r, &x->mine);
        for (size_t i = 0; i < x->k; i++)
            x->expected[x->mine.index[i]] += x->mine.value[i];
    }
    make_list(x, 0, &x->mine);
    for (size_t i = 0; i < x->n; i++) {
        kept += x->result[i] != 0;
        if (x->result[i] != x->expected[i] && !(selects && x->result[i] == 0))
            return ddp_fail(err, DDP_EDATA, "element %zu is %g instead of %g", i,
                            (double)x->result[i], (double)x->expected[i]);
    }
    if (selects && kept > x->k + (size_t)ranks)
        return ddp_fail(err, DDP_EDATA, "%zu sums were kept, of %zu", kept, x->k);
    return 0;
}

static int verify(struct sim *sim, struct lists *x, bool selects, struct ddp_err *err)
{
    if (sim->comm->rank == 0)
        DDP_TRY(check_sums(x, sim->comm->size, selects, err));
    return sim_same(sim, x->result, x->n * sizeof *x->result, err);
}

static void print(const struct sim *sim, const struct lists *x, const struct ddp_sparse_alg *alg,
                  double seconds, double sent)
{
    struct ddp_coll_cost cost;
    bool exact;
    alg->cost(sim->comm->size, x->n, x->k, &cost, &exact);
    const double model_s = ddp_cost_seconds(&cost, sim->link.alpha_s, sim->link.beta_s);
    if (sim->comm->rank != 0)
        return;
    printf("{\"what\": \"sparse\", \"algorithm\": \"%s\", \"ranks\": %d, \"elements\": %zu, "
           "\"density\": %.6g, \"k\": %zu, \"time_us\": %.6g, \"cost_us\": %.6g, \"exact\": %s, "
           "\"steps\": %.10g, \"cost_bytes\": %.10g, \"wire_bytes\": %.10g}\n",
           alg->name, sim->comm->size, x->n, sim->options->density, x->k, 1e6 * seconds,
           1e6 * model_s, exact ? "true" : "false", cost.steps, cost.sent_bytes, sent);
    fflush(stdout);
}

static int run(struct sim *sim, struct lists *x, const struct ddp_sparse_alg *alg,
               struct ddp_err *err)
{
    const struct ddp_sparse_args args = {
        .mine = x->mine,
        .result = x->result,
        .n = x->n,
        .most = x->k,
        .k = x->k,
        .fixed = true,
        .scale = 1,
    };
    const size_t bytes = alg->scratch_bytes(sim->comm, x->n, x->k);
    const size_t lines = bytes / DDP_CACHE_LINE + 1;
    double seconds, sent;
    int rc = 0;

    /* The pages are zeroed, and those that are not touched never become memory. */
    x->scratch = ddp_alloc_pages(lines * DDP_CACHE_LINE);
    if (x->scratch == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %zu bytes of scratch", bytes);
    DDP_TRY_GOTO(sim_start(sim, err), out);
    DDP_TRY_GOTO(ddp_sparse_run(sim->comm, alg, &args, x->scratch, err), out);
    DDP_TRY_GOTO(sim_end(sim, &seconds, &sent, err), out);
    DDP_TRY_GOTO(verify(sim, x, alg->selects, err), out);
    print(sim, x, alg, seconds, sent);
out:
    ddp_free_pages(x->scratch, lines * DDP_CACHE_LINE);
    return rc;
}

int sim_sparse(struct sim *sim, struct ddp_err *err)
{
    struct lists x = {.n = sim->options->elements};
    const char *name = sim->options->algorithm;
    int rc = 0, ran = 0;

    x.k = ddp_compress_k(sim->options->density, x.n);
    x.mine.index = calloc(x.k, sizeof *x.mine.index);
    x.mine.value = calloc(x.k, sizeof *x.mine.value);
    x.result = calloc(x.n, sizeof *x.result);
    x.expected = calloc(sim->comm->rank == 0 ? x.n : 1, sizeof *x.expected);
    if (x.k == 0 || x.mine.index == NULL || x.mine.value == NULL || x.result == NULL ||
        x.expected == NULL)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for %zu elements", x.n);
    else
        make_list(&x, sim->comm->rank, &x.mine);
    for (const struct ddp_sparse_alg *const *alg = ddp_sparse_algorithms(); rc == 0 && *alg;
         alg++) {
        struct ddp_err reason = DDP_ERR_INIT;
        if (name != NULL && strcmp(name, (*alg)->name) != 0)
            continue;
        if (ddp_sparse_supports(*alg, sim->comm, x.n, &reason) != 0) {
            sim_leave_out(sim, (*alg)->name, &reason);
            continue;
        }
        rc = run(sim, &x, *alg, err);
        ran++;
    }
    if (rc == 0 && ran == 0)
        rc = ddp_fail(err, DDP_EUSAGE, "no such algorithm runs here");
    free(x.mine.index);
    free(x.mine.value);
    free(x.result);
    free(x.expected);
    return rc;
}
