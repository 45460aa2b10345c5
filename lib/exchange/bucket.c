/* Cuts tensors into buckets that a progress thread all-reduces (bucket.h). */
#include "exchange/bucket.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* One bucket: elements [low, high) of the sequence of all tensors. */
struct bucket {
    struct ddp_buckets *all;
    size_t low, high;
    struct ddp_async_request request;
};

struct ddp_buckets {
    struct ddp_async *async;
    struct ddp_array *arrays;
    /* Index of each tensor's first element in the sequence, [n + 1]. */
    size_t *begin;
    int n;
    size_t elem;
    bool in_place;
    /* Address of the first element of the sequence. */
    unsigned char *data;
    struct bucket *buckets;
    /* next_bucket: the bucket that is being filled. next_tensor: the tensor that must become ready
     * next. next_tensor counts down. -1: all tensors are ready. */
    int count, next_bucket, next_tensor;
    int64_t exchange_ns;
};

bool ddp_buckets_adjacent(const struct ddp_array *arrays, int n)
{
    const unsigned char *end = NULL;
    for (int i = 0; i < n; i++) {
        if (arrays[i].count == 0)
            continue;
        if (end != NULL && end != arrays[i].data)
            return false;
        end = (unsigned char *)arrays[i].data + arrays[i].count * ddp_dtype_size(arrays[i].dtype);
    }
    return true;
}

/* Copies the sums of a bucket back to the tensors. Runs in the progress thread. */
static void unpack(void *arg)
{
    const struct bucket *bucket = arg;
    const struct ddp_buckets *b = bucket->all;
    const struct ddp_device *device = ddp_async_comm(b->async)->device;
    for (int i = b->n - 1; i >= 0 && b->begin[i + 1] > bucket->low; i--) {
        const size_t low = DDP_MAX(b->begin[i], bucket->low);
        const size_t high = DDP_MIN(b->begin[i + 1], bucket->high);
        if (low < high)
            device->copy((unsigned char *)b->arrays[i].data + (low - b->begin[i]) * b->elem,
                         b->data + low * b->elem, (high - low) * b->elem);
    }
}

static void free_all(struct ddp_buckets *b)
{
    for (int k = 0; k < b->count; k++)
        ddp_async_release(&b->buckets[k].request);
    free(b->buckets);
    free(b->begin);
    free(b->arrays);
    free(b);
}

/* Copies the array structs and computes the layout of the sequence. */
static int lay_out(struct ddp_buckets *b, const struct ddp_buckets_setup *setup)
{
    b->arrays = ddp_calloc((size_t)setup->n, sizeof *b->arrays);
    b->begin = ddp_calloc((size_t)setup->n + 1, sizeof *b->begin);
    if (b->arrays == NULL || b->begin == NULL)
        return DDP_ENOMEM;
    b->elem = setup->n > 0 ? ddp_dtype_size(setup->arrays[0].dtype) : 1;
    b->in_place = setup->memory == NULL;
    b->data = setup->memory;
    for (int i = 0; i < setup->n; i++) {
        b->arrays[i] = setup->arrays[i];
        b->begin[i + 1] = b->begin[i] + setup->arrays[i].count;
        if (b->in_place && b->data == NULL && setup->arrays[i].count > 0)
            b->data = setup->arrays[i].data;
    }
    const size_t total = b->begin[setup->n];
    const size_t pack = setup->pack_elements != 0 ? setup->pack_elements : DDP_MAX(total, 1);
    const size_t count = total / pack + (total % pack != 0);
    b->buckets = count <= INT32_MAX ? ddp_calloc(count, sizeof *b->buckets) : NULL;
    return b->buckets != NULL ? 0 : DDP_ENOMEM;
}

/* Prepares the request of each bucket. Bucket k ends k * pack_elements before the end of the
 * sequence. */
static int prepare(struct ddp_buckets *b, const struct ddp_buckets_setup *setup,
                   struct ddp_err *err)
{
    size_t high = b->begin[b->n];
    for (; high > 0; b->count++) {
        struct bucket *bucket = &b->buckets[b->count];
        const size_t pack = setup->pack_elements != 0 ? setup->pack_elements : high;
        bucket->all = b;
        bucket->high = high;
        bucket->low = high - DDP_MIN(high, pack);
        void *at = b->data + bucket->low * b->elem;
        const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                           .send = at,
                                           .recv = at,
                                           .count = high - bucket->low,
                                           .dtype = b->arrays[0].dtype,
                                           .op = setup->op};
        DDP_TRY(ddp_async_prepare(b->async, NULL, &args, &bucket->request, err));
        if (!b->in_place) {
            bucket->request.after = unpack;
            bucket->request.arg = bucket;
        }
        high = bucket->low;
    }
    return 0;
}

static void begin_step(struct ddp_buckets *b)
{
    b->next_bucket = 0;
    b->next_tensor = b->n - 1;
}

int ddp_buckets_create(const struct ddp_buckets_setup *setup, struct ddp_buckets **out,
                       struct ddp_err *err)
{
    struct ddp_buckets *b = ddp_calloc(1, sizeof *b);
    if (b == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for buckets");
    b->async = setup->async;
    b->n = setup->n;
    int rc = lay_out(b, setup);
    if (rc != 0)
        ddp_fail(err, rc, "no memory for the buckets of %d arrays", setup->n);
    else
        rc = prepare(b, setup, err);
    if (rc != 0) {
        free_all(b);
        return rc;
    }
    begin_step(b);
    *out = b;
    return 0;
}

void ddp_buckets_destroy(struct ddp_buckets *b)
{
    if (b != NULL)
        free_all(b);
}

int ddp_buckets_count(const struct ddp_buckets *b)
{
    return b->count;
}

int ddp_buckets_ready(struct ddp_buckets *b, int index, struct ddp_err *err)
{
    if (index != b->next_tensor || index < 0) {
        if (b->next_tensor < 0)
            return ddp_fail(err, DDP_EUSAGE,
                            "array %d of a bucketer was reported ready, but all arrays already "
                            "are; call finish first",
                            index);
        return ddp_fail(err, DDP_EUSAGE,
                        "array %d of a bucketer was reported ready, but array %d is next", index,
                        b->next_tensor);
    }
    const struct ddp_array *array = &b->arrays[index];
    if (!b->in_place && array->count > 0)
        ddp_async_comm(b->async)->device->copy(b->data + b->begin[index] * b->elem, array->data,
                                               array->count * b->elem);
    b->next_tensor--;
    for (; b->next_bucket < b->count && b->buckets[b->next_bucket].low >= b->begin[index];
         b->next_bucket++)
        ddp_async_post(&b->buckets[b->next_bucket].request);
    return 0;
}

int ddp_buckets_finish(struct ddp_buckets *b, int64_t *exposed_ns, struct ddp_err *err)
{
    if (b->next_tensor >= 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "a bucketer cannot finish: array %d of %d was not reported ready",
                        b->next_tensor, b->n);
    const int64_t start = ddp_now_ns();
    int rc = 0;
    /* Wait for all requests even after an error, so that nothing accesses the arrays any more when
     * this function returns. */
    for (int k = 0; k < b->count; k++) {
        struct ddp_async_request *request = &b->buckets[k].request;
        int one = ddp_async_wait(request, 0, rc == 0 ? err : NULL);
        rc = rc != 0 ? rc : one;
        b->exchange_ns += request->finished_ns - request->started_ns;
    }
    if (exposed_ns != NULL)
        *exposed_ns = ddp_now_ns() - start;
    begin_step(b);
    return rc;
}

int64_t ddp_buckets_exchange_ns(const struct ddp_buckets *b)
{
    return b->exchange_ns;
}
