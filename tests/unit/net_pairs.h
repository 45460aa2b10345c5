/* Test helper: runs the same model on a device and on the CPU, side by side. Include it after
 * cmocka.h. */
#ifndef DDP_TEST_NET_PAIRS_H
#define DDP_TEST_NET_PAIRS_H

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "device/stream_kernels.h"
#include "model/layers.h"
#include "model/model.h"

/* A model with its parameters, gradients, and the images and result of a step, all in memory of its
 * device. If place.device is NULL, the model uses the CPU's own layers. */
struct net {
    const struct ddp_model_class *cls;
    struct ddp_model *m;
    struct ddp_model_target place;
    const struct ddp_device *device;
    size_t pixels;
    int batch;
    float *params, *grads, *x;
    uint8_t *labels;
    struct net_result {
        double loss;
        int hits;
    } * result;
    float *look; /* [parameters], copy in CPU memory */
};

static inline struct net make_net(const char *name, const struct ddp_model_target *place, int batch)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct net n = {.cls = ddp_model_find(name), .batch = batch};
    const size_t bytes = n.cls->parameter_count * sizeof(float);
    n.device = place ? place->device : ddp_device_cpu(ddp_cpu_best_simd());
    n.pixels = (size_t)(n.cls->channels * n.cls->height * n.cls->width);
    n.params = n.device->alloc(bytes);
    n.grads = n.device->alloc(bytes);
    n.x = n.device->alloc((size_t)batch * n.pixels * sizeof *n.x);
    n.labels = n.device->alloc((size_t)batch);
    n.result = n.device->alloc(sizeof *n.result);
    n.look = malloc(bytes);
    ddp_model_init_params(n.cls, DDP_INIT_HE, 7, n.look);
    n.device->copy(n.params, n.look, bytes);
    n.device->fill(n.grads, 0x55, bytes);
    if (place) {
        n.place = *place;
        assert_int_equal(n.device->streams->create(&n.place.stream, &err), 0);
    }
    if (n.cls->create(n.cls, place ? &n.place : NULL, batch, n.params, n.grads, &n.m, &err) != 0)
        fail_msg("%s", err.text);
    return n;
}

static inline void free_net(struct net *n)
{
    const size_t bytes = n->cls->parameter_count * sizeof(float);
    n->cls->destroy(n->m);
    if (n->place.stream)
        n->device->streams->destroy(n->place.stream);
    n->device->free(n->params, bytes);
    n->device->free(n->grads, bytes);
    n->device->free(n->x, (size_t)n->batch * n->pixels * sizeof *n->x);
    n->device->free(n->labels, (size_t)n->batch);
    n->device->free(n->result, sizeof *n->result);
    free(n->look);
}

static inline void wait_for_net(const struct net *n)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (n->place.stream && n->device->streams->wait(n->place.stream, &err) != 0)
        fail_msg("%s", err.text);
}

/* Copies from [count] from the net's device to CPU memory. The copy is valid until the next call.
 */
static inline const float *look_at(const struct net *n, const float *from, size_t count)
{
    wait_for_net(n);
    n->device->copy(n->look, from, count * sizeof *from);
    return n->look;
}

static inline struct net_result run_net(const struct net *n, const float *x, const uint8_t *labels,
                                        int images, bool training)
{
    struct net_result r;
    n->device->copy(n->x, x, (size_t)images * n->pixels * sizeof *x);
    n->device->copy(n->labels, labels, (size_t)images);
    if (training)
        n->cls->step(n->m, n->x, n->labels, images, images ? 1.0f / (float)images : 1.0f,
                     &n->result->loss, &n->result->hits, NULL, NULL);
    else
        n->cls->evaluate(n->m, n->x, n->labels, images, &n->result->loss, &n->result->hits);
    wait_for_net(n);
    n->device->copy(&r, n->result, sizeof r);
    return r;
}

/* params -= lr * grads */
static inline void descend(const struct net *n, float lr)
{
    const size_t count = n->cls->parameter_count;
    float *params = malloc(count * sizeof *params);
    memcpy(params, look_at(n, n->params, count), count * sizeof *params);
    look_at(n, n->grads, count);
    for (size_t i = 0; i < count; i++)
        params[i] -= lr * n->look[i];
    n->device->copy(n->params, params, count * sizeof *params);
    free(params);
}

/* ||a - b|| / ||b|| */
static inline double distance(const float *a, const float *b, size_t n)
{
    double off = 0, all = 0;
    for (size_t i = 0; i < n; i++) {
        off += (a[i] - b[i]) * (double)(a[i] - b[i]);
        all += b[i] * (double)b[i];
    }
    return sqrt(off / (all > 0 ? all : 1));
}

static inline void compare_gradients(const struct net *a, const struct net *b, double most)
{
    const size_t count = a->cls->parameter_count;
    const float *mine = look_at(a, a->grads, count), *right = look_at(b, b->grads, count);
    for (int p = 0; p < a->cls->param_count; p++) {
        const struct ddp_param *param = &a->cls->params[p];
        const double off = distance(mine + param->offset, right + param->offset, param->count);
        /* The gradient of a bias before a normalisation consists of rounding errors only. */
        double norm = 0;
        for (size_t i = 0; i < param->count; i++)
            norm = fmax(norm, fabs((double)right[param->offset + i]));
        if (!(norm <= 1e-5 || off <= most))
            fail_msg("%s %s: gradients are %g apart", a->cls->name, param->name, off);
    }
}

static inline void compare_nets(const struct net *a, const struct net *b)
{
    const size_t count = a->cls->parameter_count, state = a->cls->state_count;
    assert_true(distance(look_at(a, a->params, count), look_at(b, b->params, count), count) < 1e-4);
    if (state > 0)
        assert_true(distance(look_at(a, a->cls->state(a->m), state),
                             look_at(b, b->cls->state(b->m), state), state) < 1e-4);
}

/* Compares the net at `place` with the CPU's: gradients, losses, hits and evaluations, for several
 * batch sizes including empty and full batches, and then during training. */
static inline void check_net(const char *name, const struct ddp_model_target *place, int most,
                             int steps)
{
    struct net a = make_net(name, place, most + 6), b = make_net(name, NULL, most + 6);
    float *x = malloc((size_t)most * a.pixels * sizeof *x);
    uint8_t *labels = malloc((size_t)most);
    struct ddp_rng rng;
    ddp_rng_init(&rng, 5, 0);
    const int sizes[] = {most, 1, 0, most / 2}, first = (int)DDP_COUNT_OF(sizes);
    for (int s = 0; s < first + steps; s++) {
        const int n = s < first ? sizes[s] : most;
        for (size_t i = 0; i < (size_t)n * a.pixels; i++)
            x[i] = (float)ddp_rng_double(&rng);
        for (int i = 0; i < n; i++)
            labels[i] = (uint8_t)(ddp_rng_double(&rng) * a.cls->classes);
        struct net_result there = run_net(&a, x, labels, n, true);
        struct net_result here = run_net(&b, x, labels, n, true);
        assert_true(fabs(there.loss - here.loss) <= 2e-4 * fabs(here.loss));
        assert_true(abs(there.hits - here.hits) <= 1);
        compare_gradients(&a, &b, s < first ? 2e-3 : 0.1); /* rounding errors grow with the steps */
        there = run_net(&a, x, labels, n, false);
        here = run_net(&b, x, labels, n, false);
        assert_true(fabs(there.loss - here.loss) <= 1e-3 * fabs(here.loss));
        if (s >= first) {
            descend(&a, 0.01f);
            descend(&b, 0.01f);
        }
    }
    compare_nets(&a, &b);
    free(x);
    free(labels);
    free_net(&a);
    free_net(&b);
}

#endif
