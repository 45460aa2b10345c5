/* Helpers for tests of kernels on a stream: a device under test, its arrays between guard bytes,
 * and copies of them on the processor. For tests/gpu. */
#ifndef DDP_TEST_GPU_LAB_H
#define DDP_TEST_GPU_LAB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/mem.h"
#include "device/stream.h"
#include "device/stream_kernels.h"
#include "unit/grad_inputs.h"

struct lab {
    const struct ddp_device *device; /* under test */
    const struct ddp_stream_ops *ops;
    const struct ddp_stream_kernels *k;
    const struct ddp_grad_kernels *cpu; /* gives the expected results */
    struct ddp_stream *stream;
    bool slow; /* the device is emulated, so fewer cases run */
};

/* The arrays of one case: a guarded copy on the host, and the memory on the device. */
#define LAB_ARRAYS 16
struct lab_array {
    struct guarded host;
    unsigned char *there;
};
struct lab_case {
    const struct lab *lab;
    int count;
    struct lab_array array[LAB_ARRAYS];
};

static inline size_t guarded_whole(const struct guarded *g)
{
    return (g->bytes + g->offset + 2 * GUARD_BYTES + 63) / 64 * 64;
}

/* Puts an array on the device and returns its number. host: the initial content, NULL: any bytes.
 */
static inline int lab_put(struct lab_case *c, const void *host, size_t bytes, size_t offset)
{
    assert_true(c->count < LAB_ARRAYS);
    struct lab_array *a = &c->array[c->count];
    a->host = guarded_new(bytes, offset);
    if (host && bytes)
        memcpy(guarded_at(&a->host), host, bytes);
    a->there = (unsigned char *)c->lab->device->alloc(guarded_whole(&a->host));
    assert_non_null(a->there);
    c->lab->ops->copy(c->lab->stream, a->there, a->host.base, guarded_whole(&a->host));
    return c->count++;
}

static inline void *lab_there(const struct lab_case *c, int i)
{
    return c->array[i].there + GUARD_BYTES + c->array[i].host.offset;
}

static inline void lab_wait(const struct lab *lab)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (lab->ops->wait(lab->stream, &err) != 0)
        fail_msg("%s", err.text);
}

/* Returns a copy of the array on the host, which is valid until the case ends. */
static inline void *lab_get(struct lab_case *c, int i)
{
    struct lab_array *a = &c->array[i];
    c->lab->ops->copy(c->lab->stream, a->host.base, a->there, guarded_whole(&a->host));
    lab_wait(c->lab);
    if (!guarded_intact(&a->host))
        fail_msg("array %d of the case: written outside", i);
    return guarded_at(&a->host);
}

static inline void lab_end(struct lab_case *c)
{
    lab_wait(c->lab);
    for (int i = 0; i < c->count; i++) {
        c->lab->device->free(c->array[i].there, guarded_whole(&c->array[i].host));
        guarded_free(&c->array[i].host);
    }
    c->count = 0;
}

/* Compares `bytes` bytes and reports the first element that differs. */
static inline void lab_same(const char *what, const char *context, const void *got,
                            const void *wanted, size_t bytes, size_t elem)
{
    const unsigned char *a = (const unsigned char *)got, *b = (const unsigned char *)wanted;
    if (bytes == 0 || memcmp(got, wanted, bytes) == 0)
        return;
    size_t i = 0;
    while (a[i] == b[i])
        i++;
    uint64_t x = 0, y = 0;
    i = i / elem * elem;
    memcpy(&x, a + i, elem);
    memcpy(&y, b + i, elem);
    fail_msg("%s: %s: element %zu is %llx, not %llx", what, context, i / elem,
             (unsigned long long)x, (unsigned long long)y);
}

/* The arrays that lab_values drew last. Most cases use the arrays of the case before. */
#define LAB_DRAWN 8
struct lab_drawn {
    enum grad_kind kind;
    size_t n;
    uint64_t seed;
    float *x;
};
static struct lab_drawn lab_drawn[LAB_DRAWN];
static int lab_oldest;

/* Returns values of a kind. The caller frees them. */
static inline float *lab_values(enum grad_kind kind, size_t n, uint64_t seed)
{
    struct ddp_rng rng;
    float *x = (float *)ddp_calloc(n ? n : 1, sizeof(float));
    for (int i = 0; n > 0 && i < LAB_DRAWN; i++) {
        const struct lab_drawn *d = &lab_drawn[i];
        if (d->x && d->kind == kind && d->n == n && d->seed == seed) {
            memcpy(x, d->x, n * sizeof(float));
            return x;
        }
    }
    ddp_rng_init(&rng, seed, kind);
    for (size_t i = 0; i < n; i++)
        x[i] = grad_value(kind, i, n, &rng);
    if (n > 0) {
        struct lab_drawn *d = &lab_drawn[lab_oldest];
        lab_oldest = (lab_oldest + 1) % LAB_DRAWN;
        free(d->x);
        d->kind = kind;
        d->n = n;
        d->seed = seed;
        d->x = (float *)ddp_calloc(n, sizeof(float));
        memcpy(d->x, x, n * sizeof(float));
    }
    return x;
}

static inline void *lab_copy(const void *from, size_t bytes)
{
    void *to = ddp_calloc(bytes ? bytes : 1, 1);
    if (bytes)
        memcpy(to, from, bytes);
    return to;
}

#endif
