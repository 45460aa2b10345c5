/* All-reduce among the leaders of hosts (coll_hier.h). */
#include <string.h>

#include "coll/coll_hier.h"

/* Returns the rank in comm of the leader `distance` hosts after this one. */
static int neighbour(const struct ddp_hier *x, int distance)
{
    return x->leader[ddp_rank_at(x->me, distance, x->hosts)];
}

static int tag_of(size_t index)
{
    return DDP_COLL_TAG + 1 + (int)(index % DDP_HIER_DEPTH);
}

static struct ddp_chunks chunks_of(const struct ddp_hier *x,
                                   const struct ddp_hier_fragment *fragment)
{
    return (struct ddp_chunks){.count = fragment->count, .n = x->hosts};
}

/* Returns the bytes of the longest chunk of a fragment, rounded up to cache lines. */
static size_t chunk_stride(int hosts, size_t count, enum ddp_dtype dtype)
{
    const struct ddp_chunks chunks = {.count = DDP_MIN(count, ddp_hier_fragment_count(dtype)),
                                      .n = hosts};
    return ddp_round_to_line(ddp_chunk_count(&chunks, 0) * ddp_dtype_size(dtype));
}

size_t ddp_hier_scratch_bytes(int hosts, size_t count, enum ddp_dtype dtype)
{
    const size_t bytes = count * ddp_dtype_size(dtype);
    if (hosts == 1)
        return 0;
    if (ddp_hier_spreads(hosts, bytes))
        return (size_t)(hosts - 1) * ddp_round_to_line(bytes);
    return DDP_HIER_DEPTH * chunk_stride(hosts, count, dtype);
}

static void *landing_of(const struct ddp_hier *x, size_t index)
{
    return x->scratch + index % DDP_HIER_DEPTH * chunk_stride(x->hosts, SIZE_MAX, x->dtype);
}

/* Return the chunk that this leader sends, or the chunk that it receives, in step 0 .. 2(H - 1) -
 * 1. */
static int chunk_given(const struct ddp_hier *x, int step)
{
    const int turns = x->hosts - 1;
    return step < turns ? ddp_ring_chunk_summed(x->me, step, x->hosts)
                        : ddp_ring_chunk_copied(x->me, step - turns, x->hosts);
}
static int chunk_taken(const struct ddp_hier *x, int step)
{
    const int turns = x->hosts - 1;
    return step < turns ? ddp_ring_chunk_summed(x->me, step + 1, x->hosts)
                        : ddp_ring_chunk_copied(x->me, step - turns + 1, x->hosts);
}

static int post_step(struct ddp_hier *x, size_t index, struct ddp_err *err)
{
    struct ddp_hier_fragment *fragment = &x->fragment[index % DDP_HIER_DEPTH];
    const struct ddp_chunks chunks = chunks_of(x, fragment);
    const size_t elem = ddp_dtype_size(x->dtype);
    const int give = chunk_given(x, fragment->step), take = chunk_taken(x, fragment->step);
    const bool combines = fragment->step < x->hosts - 1;
    void *in = combines ? landing_of(x, index)
                        : ddp_at(fragment->data, ddp_chunk_begin(&chunks, take), elem);

    if (ddp_chunk_count(&chunks, take) != 0)
        DDP_TRY(ddp_comm_irecv(x->comm, neighbour(x, -1), tag_of(index), in,
                               ddp_chunk_count(&chunks, take) * elem, &fragment->recv, err));
    if (ddp_chunk_count(&chunks, give) != 0)
        DDP_TRY(ddp_comm_isend(x->comm, neighbour(x, 1), tag_of(index),
                               ddp_at(fragment->data, ddp_chunk_begin(&chunks, give), elem),
                               ddp_chunk_count(&chunks, give) * elem, &fragment->send, err));
    return 0;
}

/* Combines the arrived chunk, a sum over the hosts before this one in the ring, with this host's
 * sum. */
static void combine_step(struct ddp_hier *x, size_t index)
{
    const struct ddp_hier_fragment *fragment = &x->fragment[index % DDP_HIER_DEPTH];
    const struct ddp_chunks chunks = chunks_of(x, fragment);
    const int take = chunk_taken(x, fragment->step);
    void *own = ddp_at(fragment->data, ddp_chunk_begin(&chunks, take), ddp_dtype_size(x->dtype));
    const struct ddp_reduce reduce = {
        .dst = &own,
        .dst_count = 1,
        .src = (const void *[]){landing_of(x, index), own},
        .src_count = 2,
        .count = ddp_chunk_count(&chunks, take),
        .dtype = x->dtype,
        .op = x->op,
        .divisor = fragment->step == x->hosts - 2 ? x->divisor : 1,
    };
    if (reduce.count != 0)
        x->comm->device->reduce(&reduce);
}

int ddp_hier_begin(struct ddp_hier *x, void *data, size_t count, struct ddp_err *err)
{
    struct ddp_hier_fragment *fragment = &x->fragment[x->begun % DDP_HIER_DEPTH];
    *fragment = (struct ddp_hier_fragment){.data = data, .count = count, .open = x->hosts > 1};
    x->begun++;
    return fragment->open ? post_step(x, x->begun - 1, err) : 0;
}

/* Advances one fragment as far as possible. */
static int advance_fragment(struct ddp_hier *x, size_t index, bool *moved, struct ddp_err *err)
{
    struct ddp_hier_fragment *fragment = &x->fragment[index % DDP_HIER_DEPTH];
    while (fragment->open) {
        bool sent, received;
        DDP_TRY(ddp_comm_test(x->comm, &fragment->recv, &received, err));
        DDP_TRY(ddp_comm_test(x->comm, &fragment->send, &sent, err));
        if (!received || !sent)
            break;
        *moved = true;
        if (fragment->step < x->hosts - 1)
            combine_step(x, index);
        fragment->step++;
        if (fragment->step == 2 * (x->hosts - 1))
            fragment->open = false;
        else
            DDP_TRY(post_step(x, index, err));
    }
    return 0;
}

int ddp_hier_advance(struct ddp_hier *x, bool *moved, struct ddp_err *err)
{
    for (size_t i = x->finished; i < x->begun; i++)
        DDP_TRY(advance_fragment(x, i, moved, err));
    while (x->finished < x->begun && !x->fragment[x->finished % DDP_HIER_DEPTH].open) {
        x->finished++;
        *moved = true;
    }
    return 0;
}

int ddp_hier_waits_for(const struct ddp_hier *x)
{
    if (x->finished == x->begun)
        return -1;
    const struct ddp_hier_fragment *oldest = &x->fragment[x->finished % DDP_HIER_DEPTH];
    return neighbour(x, oldest->recv.active ? -1 : 1);
}

int ddp_hier_spread(struct ddp_hier *x, void *data, size_t count, struct ddp_err *err)
{
    const size_t bytes = count * ddp_dtype_size(x->dtype), stride = ddp_round_to_line(bytes);
    struct ddp_request req[2 * (DDP_HIER_SPREAD_HOSTS - 1)];
    const void *src[DDP_HIER_SPREAD_HOSTS];
    int n = 0;

    for (int h = 0, slot = 0; h < x->hosts; h++) {
        src[h] = h == x->me ? data : x->scratch + (size_t)slot * stride;
        if (h == x->me)
            continue;
        DDP_TRY(ddp_comm_irecv(x->comm, x->leader[h], DDP_COLL_TAG,
                               x->scratch + (size_t)slot++ * stride, bytes, &req[n++], err));
    }
    for (int i = 1; i < x->hosts; i++)
        DDP_TRY(
            ddp_comm_isend(x->comm, neighbour(x, i), DDP_COLL_TAG, data, bytes, &req[n++], err));
    DDP_TRY(ddp_comm_wait(x->comm, req, n, err));
    const struct ddp_reduce reduce = {
        .dst = &data,
        .dst_count = 1,
        .src = src,
        .src_count = x->hosts,
        .count = count,
        .dtype = x->dtype,
        .op = x->op,
        .divisor = x->divisor,
    };
    x->comm->device->reduce(&reduce);
    x->begun = x->finished = 1;
    return 0;
}

/* Adds to *cost the messages and bytes that leader `me` sends `times` times for a fragment of
 * `count` elements of `elem` bytes. */
static void count_fragment(int hosts, int me, size_t count, size_t elem, double times,
                           struct ddp_coll_cost *cost)
{
    const struct ddp_hier x = {.hosts = hosts, .me = me};
    const struct ddp_chunks chunks = {.count = count, .n = hosts};

    for (int step = 0; step < 2 * (hosts - 1); step++) {
        const size_t bytes = ddp_chunk_count(&chunks, chunk_given(&x, step)) * elem;
        cost->messages += times * (bytes != 0);
        cost->sent_bytes += times * (double)bytes;
    }
}

void ddp_hier_cost(int ranks, const struct ddp_coll_shape *shape, struct ddp_coll_cost *cost)
{
    const struct ddp_reduction reduction = ddp_reduction_of(ranks, shape->dtype, shape->op);
    const size_t acc_elem = reduction.acc_elem,
                 fragment = ddp_hier_fragment_count(reduction.acc_dtype);
    const int hosts = DDP_MAX(shape->hosts, 1);
    const double n = ranks, h = hosts;
    const double bytes = (double)shape->count * (double)ddp_dtype_size(shape->dtype);
    const double acc_bytes = (double)shape->count * (double)acc_elem;
    const bool mapped = shape->registered && !reduction.wider_acc;
    const bool spreads = ddp_hier_spreads(hosts, shape->count * acc_elem);
    const size_t fragments = shape->count / fragment + (shape->count % fragment != 0);

    *cost = (struct ddp_coll_cost){.modelled = true, .steps = 1 + (double)DDP_MAX(fragments, 1)};
    if (hosts > 1)
        cost->steps += 1 + (spreads ? 1 : 2 * (h - 1));
    if (spreads) {
        cost->messages = shape->count != 0 ? h - 1 : 0;
        cost->sent_bytes = (h - 1) * acc_bytes;
    }
    for (int me = 0; me < hosts && !spreads; me++) {
        struct ddp_coll_cost one = {.messages = 0};
        count_fragment(hosts, me, fragment, acc_elem, (double)(shape->count / fragment), &one);
        count_fragment(hosts, me, shape->count % fragment, acc_elem, 1, &one);
        cost->messages = DDP_MAX(cost->messages, one.messages);
        cost->sent_bytes = DDP_MAX(cost->sent_bytes, one.sent_bytes);
    }
    cost->memory_bytes = (n + h) * acc_bytes;
    cost->memory_bytes += mapped ? (n - h) * DDP_COST_COPY * bytes : 2 * n * (bytes + acc_bytes);
    if (spreads)
        cost->memory_bytes += (h * (h - 1) * DDP_COST_MOVE + h * (h + 1)) * acc_bytes;
    else
        cost->memory_bytes += (h - 1) * (2 * DDP_COST_MOVE + DDP_COST_COMBINE) * acc_bytes;
}
