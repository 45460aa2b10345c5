/* A client of the installed libddp: trains the net of nnabla's data-parallel tutorial (conv 1->1
 * 3x3 pad 1 on 1x32x32, affine to 2, softmax cross entropy, Adam) on synthetic data of each rank.
 * The client fails unless all ranks hold the same gradients, bit for bit, in every step, and the
 * loss falls. It trains three times: with all_reduce of a list, with registered parameters, and
 * with the bucketer.
 *
 *     nnabla_client RANKS processes|threads     ranks of ddp_run
 *     nnabla_client world                       mpiexec's world, or one rank
 *
 * It uses no file of ddpbench but <ddp.h>. */
#include <ddp.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 32, PIXELS = SIDE * SIDE, CLASSES = 2, BATCH = 8, STEPS = 40, TENSORS = 4 };

/* In layer order. g: the gradients; m, v: Adam's moments. */
enum { CONV_W, CONV_B, AFFINE_W, AFFINE_B };
static const size_t counts[TENSORS] = {9, 1, CLASSES *PIXELS, CLASSES};

struct net {
    float *w[TENSORS], *g[TENSORS], *m[TENSORS], *v[TENSORS];
    int step;
};

struct batch {
    float image[BATCH][PIXELS];
    int label[BATCH];
};

static float uniform(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (float)(*state >> 40) / (float)(1 << 24);
}

/* Draws noisy images. Images of class 0 are brighter on the left, images of class 1 on the
 * right. */
static void draw(struct batch *batch, uint64_t *state)
{
    for (int b = 0; b < BATCH; b++) {
        batch->label[b] = uniform(state) < 0.5f;
        for (int i = 0; i < PIXELS; i++)
            batch->image[b][i] =
                uniform(state) - 0.5f + (((i % SIDE >= SIDE / 2) == batch->label[b]) ? 0.3f : 0);
    }
}

static int net_init(struct net *net, uint64_t seed, struct ddp_err *err)
{
    memset(net, 0, sizeof *net);
    for (int t = 0; t < TENSORS; t++) {
        float **const all[] = {&net->w[t], &net->g[t], &net->m[t], &net->v[t]};
        for (int k = 0; k < 4; k++) {
            *all[k] = calloc(counts[t], sizeof(float));
            if (*all[k] == NULL)
                return ddp_fail(err, DDP_ENOMEM, "no memory for the net");
        }
        const float scale = t == CONV_W ? 0.3f : t == AFFINE_W ? 0.03f : 0;
        for (size_t i = 0; i < counts[t]; i++)
            net->w[t][i] = scale * (uniform(&seed) - 0.5f);
    }
    return 0;
}

static void net_release(struct net *net)
{
    for (int t = 0; t < TENSORS; t++) {
        free(net->w[t]);
        free(net->g[t]);
        free(net->m[t]);
        free(net->v[t]);
    }
}

/* Convolution 3x3 with padding 1; out has PIXELS elements. */
static void conv(const struct net *net, const float *in, float *out)
{
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            float sum = net->w[CONV_B][0];
            for (int k = 0; k < 9; k++) {
                const int yy = y + k / 3 - 1, xx = x + k % 3 - 1;
                if (yy >= 0 && yy < SIDE && xx >= 0 && xx < SIDE)
                    sum += net->w[CONV_W][k] * in[yy * SIDE + xx];
            }
            out[y * SIDE + x] = sum;
        }
}

/* Returns the loss of one image and writes the probabilities to p [CLASSES]. */
static float predict(const struct net *net, const float *hidden, int label, float *p)
{
    float sum = 0, top;
    for (int c = 0; c < CLASSES; c++) {
        p[c] = net->w[AFFINE_B][c];
        for (int i = 0; i < PIXELS; i++)
            p[c] += net->w[AFFINE_W][c * PIXELS + i] * hidden[i];
    }
    top = p[0] > p[1] ? p[0] : p[1];
    for (int c = 0; c < CLASSES; c++)
        sum += p[c] = expf(p[c] - top);
    for (int c = 0; c < CLASSES; c++)
        p[c] /= sum;
    return -logf(p[label] + 1e-12f);
}

/* Computes the gradients of one step, the last layer first, and sets *loss to the mean over the
 * batch. Calls `ready` (may be NULL) for each tensor whose gradient is final. */
static int backward(struct net *net, const struct batch *batch, struct ddp_bucketer *ready,
                    float *loss, struct ddp_err *err)
{
    float(*hidden)[PIXELS] = calloc(BATCH, sizeof *hidden);
    float(*delta)[CLASSES] = calloc(BATCH, sizeof *delta);
    int rc = hidden != NULL && delta != NULL ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory");
    *loss = 0;
    for (int t = 0; t < TENSORS; t++)
        memset(net->g[t], 0, counts[t] * sizeof(float));
    for (int b = 0; b < BATCH && rc == 0; b++) {
        conv(net, batch->image[b], hidden[b]);
        *loss += predict(net, hidden[b], batch->label[b], delta[b]) / BATCH;
        for (int c = 0; c < CLASSES; c++) {
            delta[b][c] = (delta[b][c] - (float)(c == batch->label[b])) / BATCH;
            net->g[AFFINE_B][c] += delta[b][c];
        }
    }
    if (rc == 0 && ready != NULL)
        rc = ddp_bucketer_ready(ready, AFFINE_B, err);
    for (int b = 0; b < BATCH && rc == 0; b++)
        for (int i = 0; i < CLASSES * PIXELS; i++)
            net->g[AFFINE_W][i] += delta[b][i / PIXELS] * hidden[b][i % PIXELS];
    if (rc == 0 && ready != NULL)
        rc = ddp_bucketer_ready(ready, AFFINE_W, err);
    for (int b = 0; b < BATCH && rc == 0; b++)
        for (int i = 0; i < PIXELS; i++) {
            float d = 0;
            for (int c = 0; c < CLASSES; c++)
                d += delta[b][c] * net->w[AFFINE_W][c * PIXELS + i];
            net->g[CONV_B][0] += d;
            for (int k = 0; k < 9; k++) {
                const int yy = i / SIDE + k / 3 - 1, xx = i % SIDE + k % 3 - 1;
                if (yy >= 0 && yy < SIDE && xx >= 0 && xx < SIDE)
                    net->g[CONV_W][k] += d * batch->image[b][yy * SIDE + xx];
            }
        }
    for (int t = CONV_B; t >= CONV_W && rc == 0 && ready != NULL; t--)
        rc = ddp_bucketer_ready(ready, t, err);
    free(hidden);
    free(delta);
    return rc;
}

static void adam(struct net *net)
{
    const float lr = 2e-3f, b1 = 0.9f, b2 = 0.999f;
    net->step++;
    const float c1 = 1 - powf(b1, (float)net->step), c2 = 1 - powf(b2, (float)net->step);
    for (int t = 0; t < TENSORS; t++)
        for (size_t i = 0; i < counts[t]; i++) {
            const float g = net->g[t][i];
            net->m[t][i] = b1 * net->m[t][i] + (1 - b1) * g;
            net->v[t][i] = b2 * net->v[t][i] + (1 - b2) * g * g;
            net->w[t][i] -= lr * (net->m[t][i] / c1) / (sqrtf(net->v[t][i] / c2) + 1e-8f);
        }
}

/* Gathers every tensor of list [TENSORS] from all ranks and fails unless all have the same bits. */
static int check_equal(struct ddp *d, float *const *list, const char *what, struct ddp_err *err)
{
    const int n = ddp_size(d);
    struct ddp_array *all = calloc((size_t)n, sizeof *all);
    float *memory = malloc((size_t)n * CLASSES * PIXELS * sizeof(float));
    int rc = all != NULL && memory != NULL ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory");
    for (int t = 0; t < TENSORS && rc == 0; t++) {
        const struct ddp_array mine = {list[t], counts[t], DDP_F32};
        for (int r = 0; r < n; r++) {
            const struct ddp_array theirs = {memory + (size_t)r * counts[t], counts[t], DDP_F32};
            all[r] = theirs;
        }
        rc = ddp_all_gather(d, &mine, all, NULL, err);
        for (int r = 0; r < n && rc == 0; r++)
            if (memcmp(all[r].data, list[t], counts[t] * sizeof(float)) != 0)
                rc = ddp_fail(err, DDP_EDATA, "%s %d of rank %d differ from those of rank %d", what,
                              t, r, ddp_rank(d));
    }
    free(all);
    free(memory);
    return rc;
}

enum method { LIST, PARAMETERS, BUCKETER, METHODS };

static int exchange(struct ddp *d, enum method method, const struct ddp_array *grads,
                    struct ddp_bucketer *bucketer, struct ddp_err *err)
{
    struct ddp_call average;
    memset(&average, 0, sizeof average);
    average.division = true;
    switch (method) {
    case LIST:
        return ddp_all_reduce(d, grads, TENSORS, &average, err);
    case PARAMETERS:
        return ddp_all_reduce_parameters(d, &average, err);
    default:
        /* This thread runs a collective while the progress thread runs others. */
        DDP_TRY(ddp_barrier(d, NULL, err));
        return ddp_bucketer_finish(bucketer, NULL, err);
    }
}

static int train_steps(struct ddp *d, enum method method, struct net *net,
                       const struct ddp_array *grads, struct ddp_bucketer *bucketer,
                       struct ddp_err *err)
{
    struct batch batch;
    struct ddp_call average;
    uint64_t data = 1000 + (uint64_t)ddp_rank(d); /* each rank draws its own images */
    float first = 0, last = 0;
    memset(&average, 0, sizeof average);
    average.division = true;
    for (int step = 0; step < STEPS; step++) {
        draw(&batch, &data);
        DDP_TRY(backward(net, &batch, bucketer, &last, err));
        DDP_TRY(exchange(d, method, grads, bucketer, err));
        DDP_TRY(check_equal(d, net->g, "gradients", err));
        adam(net);
        const struct ddp_array loss = {&last, 1, DDP_F32};
        DDP_TRY(ddp_all_reduce(d, &loss, 1, &average, err));
        if (step == 0)
            first = last;
    }
    if (!(last < 0.5f * first))
        return ddp_fail(err, DDP_EDATA, "the loss went from %g to %g", first, last);
    if (ddp_rank(d) == 0)
        fprintf(stderr, "%d ranks over %s, method %d: loss %.4f -> %.4f\n", ddp_size(d),
                ddp_name(d), (int)method, first, last);
    return check_equal(d, net->w, "weights", err);
}

static int train(struct ddp *d, enum method method, struct ddp_err *err)
{
    static const char *const names[TENSORS] = {"conv/W", "conv/b", "affine/W", "affine/b"};
    struct net net;
    struct ddp_bucketer *bucketer = NULL;
    struct ddp_array grads[TENSORS], weights[TENSORS];
    /* Every rank starts from other weights, and then all take rank 0's weights. */
    int rc = net_init(&net, 77 + (uint64_t)ddp_rank(d), err);
    for (int t = 0; t < TENSORS && rc == 0; t++) {
        const struct ddp_array g = {net.g[t], counts[t], DDP_F32},
                               w = {net.w[t], counts[t], DDP_F32};
        grads[t] = g;
        weights[t] = w;
        if (method == PARAMETERS)
            rc = ddp_add_parameter(d, names[t], g, err);
    }
    if (rc == 0)
        rc = ddp_bcast(d, weights, TENSORS, 0, NULL, err);
    if (rc == 0 && method == BUCKETER) {
        struct ddp_call average;
        memset(&average, 0, sizeof average);
        average.division = true;
        rc = ddp_bucketer_create(d, grads, TENSORS, 1000, &average, &bucketer, err);
    }
    if (rc == 0)
        rc = train_steps(d, method, &net, grads, bucketer, err);
    ddp_bucketer_destroy(bucketer);
    ddp_clear_parameters(d);
    net_release(&net);
    return rc;
}

static int rank_main(struct ddp *d, void *arg, struct ddp_err *err)
{
    (void)arg;
    for (int method = 0; method < METHODS; method++)
        DDP_TRY(train(d, (enum method)method, err));
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
        fprintf(stderr, "usage: nnabla_client RANKS processes|threads, or: nnabla_client world\n");
        return 64;
    }
    if (rc != 0)
        fprintf(stderr, "nnabla_client: %s%s%s\n", err.text, err.hint[0] != '\0' ? "; " : "",
                err.hint);
    return ddp_exit_code(rc);
}
