/* A client of the installed libddp: trains a logistic regression with each sync strategy of
 * ddp_sync_create. Each rank has its own data. The client fails unless the loss falls.
 *
 *     sync_client RANKS processes|threads     ranks of ddp_run
 *     sync_client world                       mpiexec's world, or one rank
 *
 * It uses no file of ddpbench but <ddp.h>. */
#include <ddp.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INPUTS = 200, TOTAL = INPUTS + 1, BATCH = 16, STEPS = 60, TENSORS = 2 };
static const size_t counts[TENSORS] = {INPUTS, 1};

static float uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) / (float)(1 << 24);
}

/* Draws a batch, adds the gradient of the sum of its losses to g, and returns the mean loss. */
static float backward(const float *w, float *g, uint64_t *data)
{
    float loss = 0, x[INPUTS];
    memset(g, 0, TOTAL * sizeof *g);
    for (int b = 0; b < BATCH; b++) {
        const float label = uniform(data) < 0.5f ? 1 : 0;
        float sum = w[INPUTS];
        for (int i = 0; i < INPUTS; i++) {
            x[i] = uniform(data) - 0.5f + ((i < INPUTS / 2) == (label > 0) ? 0.15f : 0);
            sum += w[i] * x[i];
        }
        const float p = 1 / (1 + expf(-sum));
        loss -= logf((label > 0 ? p : 1 - p) + 1e-12f) / BATCH;
        for (int i = 0; i < INPUTS; i++)
            g[i] += (p - label) * x[i];
        g[INPUTS] += p - label;
    }
    return loss;
}

static int train(struct ddp *d, const char *strategy, struct ddp_err *err)
{
    struct ddp_sync_options o;
    struct ddp_sync_stats stats;
    struct ddp_strategy *s;
    uint64_t data = 1000 + (uint64_t)ddp_rank(d);
    float first = 0, loss = 0;
    void *memory;
    double scale;
    size_t begin, n;
    DDP_TRY(ddp_alloc(d, 2 * TOTAL * sizeof(float), &memory, err));
    memset(memory, 0, 2 * TOTAL * sizeof(float));
    memset(&o, 0, sizeof o);
    o.params = memory;
    o.grads = o.params + TOTAL;
    o.counts = counts;
    o.n = TENSORS;
    o.overlap = true;
    DDP_TRY(ddp_sync_create(d, strategy, &o, &s, err));
    for (int step = 0; step < STEPS; step++) {
        DDP_TRY(ddp_sync_begin_step(s, BATCH, BATCH * (size_t)ddp_size(d), &scale, err));
        loss = backward(o.params, o.grads, &data);
        first = step == 0 ? loss : first;
        for (int i = 0; i < TOTAL; i++)
            o.grads[i] *= (float)scale;
        for (int t = TENSORS - 1; t >= 0; t--)
            DDP_TRY(ddp_sync_ready(s, t, err));
        DDP_TRY(ddp_sync_finish(s, err));
        for (int p = 0; p < ddp_sync_part(s, p, &begin, &n); p++)
            for (size_t i = begin; i < begin + n; i++)
                o.params[i] -= 0.2f * o.grads[i];
        DDP_TRY(ddp_sync_end_step(s, err));
    }
    DDP_TRY(ddp_sync_end_epoch(s, err));
    ddp_sync_read_stats(s, &stats);
    ddp_sync_destroy(s);
    ddp_free(d, memory);
    if (!(loss < 0.6f * first))
        return ddp_fail(err, DDP_EDATA, "%s: the loss went from %g to %g", strategy, first, loss);
    if (ddp_rank(d) == 0)
        fprintf(stderr, "%d ranks over %s, %s: loss %.4f -> %.4f, %.0f bytes\n", ddp_size(d),
                ddp_name(d), strategy, first, loss, stats.wire_bytes);
    return 0;
}

static int rank_main(struct ddp *d, void *arg, struct ddp_err *err)
{
    static const char *const strategies[] = {"dense",     "fp16",           "q8",
                                             "topk:0.1",  "threshold:0.05", "powersgd:1",
                                             "partial:4", "local:4",        "zero1"};
    (void)arg;
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies; i++)
        DDP_TRY(train(d, strategies[i], err));
    return 0;
}

static int in_world(struct ddp_err *err)
{
    struct ddp *d;
    DDP_TRY(ddp_init(NULL, &d, err));
    int rc = rank_main(d, NULL, err);
    if (rc != 0)
        ddp_abort(d, rc);
    ddp_finalize(d);
    return rc;
}

int main(int argc, char **argv)
{
    struct ddp_err err = DDP_ERR_INIT;
    int rc;
    if (argc == 2 && strcmp(argv[1], "world") == 0) {
        rc = in_world(&err);
    } else if (argc == 3) {
        const bool threads = strcmp(argv[2], "threads") == 0;
        rc = ddp_run((int)strtol(argv[1], NULL, 10), threads, NULL, rank_main, NULL, &err);
    } else {
        fprintf(stderr, "usage: sync_client RANKS processes|threads, or: sync_client world\n");
        return 64;
    }
    if (rc != 0)
        fprintf(stderr, "sync_client: %s\n", err.text);
    return ddp_exit_code(rc);
}
