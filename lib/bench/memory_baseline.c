#include "bench/memory_baseline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "stats/summary.h"

/* Each rank has two buffers of BUFFER_BYTES, which is more than the private caches of a core hold.
 * The buffers are smaller if all buffers of a host would exceed HOST_BYTES. */
#define BUFFER_BYTES ((size_t)4 << 20)
#define HOST_BYTES   ((size_t)256 << 20)
#define ROUNDS       5

struct buffers {
    uint64_t *a, *b;
    size_t bytes;
};

static void copy_once(struct buffers *m)
{
    memcpy(m->b, m->a, m->bytes);
}

static void read_once(struct buffers *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < m->bytes / sizeof *m->b; i++)
        sum += m->b[i];
    __asm__ volatile("" : : "r"(sum)); /* keeps the compiler from removing the loop */
}

/* Sets *ns to the median time of ROUNDS rounds, after one round to warm up. The time of a round is
 * its duration on the slowest rank. all [size][ROUNDS]: scratch. */
static int time_of(struct ddp_comm *comm, struct buffers *m, void (*work)(struct buffers *m),
                   int64_t *all, double *ns, struct ddp_err *err)
{
    int64_t mine[ROUNDS];
    double slowest[ROUNDS] = {0};
    for (int i = -1; i < ROUNDS; i++) {
        DDP_TRY(ddp_comm_barrier(comm, err));
        int64_t begin = ddp_now_ns();
        work(m);
        /* If ranks share a core, each may run alone for a while and look fast. The barrier ends the
         * time of every rank when all ranks are done. */
        DDP_TRY(ddp_comm_barrier(comm, err));
        mine[DDP_MAX(i, 0)] = ddp_now_ns() - begin;
    }
    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        for (int i = 0; i < ROUNDS; i++)
            slowest[i] = fmax(slowest[i], (double)all[r * ROUNDS + i]);
    *ns = ddp_median(slowest, ROUNDS);
    return 0;
}

int ddp_memory_baseline_measure(struct ddp_comm *comm, struct ddp_control *out, struct ddp_err *err)
{
    const size_t local = (size_t)DDP_MAX(comm->rank_info.local_size, 1);
    const size_t share = HOST_BYTES / 2 / local / DDP_CACHE_LINE * DDP_CACHE_LINE;
    struct buffers m = {.bytes = DDP_MIN(BUFFER_BYTES, share)};
    int64_t *all;
    double copy_ns, read_ns;
    int rc = DDP_NEW(&all, (size_t)comm->size * ROUNDS, err);
    int32_t mine, *have = (int32_t *)all;
    *out = (struct ddp_control){.ranks = comm->size, .copy_GBps = NAN, .read_GBps = NAN};
    m.a = ddp_alloc_pages(m.bytes);
    m.b = ddp_alloc_pages(m.bytes);
    mine = m.a && m.b;
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm, &mine, have, sizeof mine, err), out);
    for (int r = 0; r < comm->size; r++)
        mine = mine && have[r];
    if (!mine)
        goto out;
    memset(m.a, 1, m.bytes); /* the first round of copies, which is not timed, writes m.b */
    DDP_TRY_GOTO(time_of(comm, &m, copy_once, all, &copy_ns, err), out);
    DDP_TRY_GOTO(time_of(comm, &m, read_once, all, &read_ns, err), out);
    out->bytes_per_rank = (int64_t)m.bytes;
    out->copy_GBps = 2.0 * (double)m.bytes * comm->size / copy_ns;
    out->read_GBps = (double)m.bytes * comm->size / read_ns;
out:
    if (m.a)
        ddp_free_pages(m.a, m.bytes);
    if (m.b)
        ddp_free_pages(m.b, m.bytes);
    free(all);
    return rc;
}
