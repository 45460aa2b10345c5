#include "comm/clocks.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/hosts.h"

#define TAG 29998 /* no algorithm uses this tag; pingpong.c uses the next one */
/* Round trips per estimate. Among 20 round trips over TCP, the fastest is seldom much slower than
 * the fastest possible round trip. */
#define ROUNDS 20

void ddp_clocks_init(struct ddp_clocks *c, struct ddp_comm *comm)
{
    *c = (struct ddp_clocks){.comm = comm};
    c->common = comm->size == 1 || comm->hosts == NULL || comm->hosts->count == 1;
}

/* Runs one round trip: `peer` asks, and rank 0 answers with its time. Only `peer` gets the
 * results. */
static int round_trip(struct ddp_comm *comm, int peer, double *offset_ns, double *round_ns,
                      struct ddp_err *err)
{
    struct ddp_request request;
    int64_t time_ns = 0;
    if (comm->rank == 0) {
        DDP_TRY(ddp_comm_irecv(comm, peer, TAG, &time_ns, sizeof time_ns, &request, err));
        DDP_TRY(ddp_comm_wait(comm, &request, 1, err));
        time_ns = ddp_now_ns();
        DDP_TRY(ddp_comm_isend(comm, peer, TAG, &time_ns, sizeof time_ns, &request, err));
        return ddp_comm_wait(comm, &request, 1, err);
    }
    const int64_t asked = ddp_now_ns();
    DDP_TRY(ddp_comm_isend(comm, 0, TAG, &time_ns, sizeof time_ns, &request, err));
    DDP_TRY(ddp_comm_wait(comm, &request, 1, err));
    DDP_TRY(ddp_comm_irecv(comm, 0, TAG, &time_ns, sizeof time_ns, &request, err));
    DDP_TRY(ddp_comm_wait(comm, &request, 1, err));
    const int64_t answered = ddp_now_ns();
    *round_ns = (double)(answered - asked);
    *offset_ns = (double)(time_ns - asked) - *round_ns / 2;
    return 0;
}

/* Runs all round trips between `peer` and rank 0, and keeps the fastest. Other ranks return at
 * once. */
static int best_round_trip(struct ddp_comm *comm, int peer, double *offset_ns, double *error_ns,
                           struct ddp_err *err)
{
    double fastest = INFINITY;
    for (int i = 0; i < ROUNDS && (comm->rank == 0 || comm->rank == peer); i++) {
        double offset = 0, round = 0;
        DDP_TRY(round_trip(comm, peer, &offset, &round, err));
        if (comm->rank == 0 || round >= fastest)
            continue;
        fastest = round;
        *offset_ns = offset;
        *error_ns = round / 2;
    }
    return 0;
}

int ddp_clocks_offset(struct ddp_comm *comm, double *offset_ns, double *error_ns,
                      struct ddp_err *err)
{
    double offset = 0, error = 0;
    if (comm->size > 1 && !(comm->backend->caps & DDP_CAP_P2P))
        return ddp_fail(err, DDP_EUNAVAIL,
                        "backend '%s' has no messages, so clocks cannot be compared",
                        comm->backend->name);
    for (int peer = 1; peer < comm->size; peer++)
        DDP_TRY(best_round_trip(comm, peer, &offset, &error, err));
    *offset_ns = offset;
    *error_ns = error;
    return 0;
}

int ddp_clocks_estimate(struct ddp_clocks *c, struct ddp_err *err)
{
    struct ddp_comm *comm = c->comm;
    if (c->common)
        return 0;
    const struct ddp_hosts *hosts = comm->hosts;
    double mine[2] = {0, 0};
    double(*all)[2];
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out);
    for (int h = 0; h < hosts->count; h++)
        if (hosts->leader[h] != 0)
            DDP_TRY_GOTO(best_round_trip(comm, hosts->leader[h], &mine[0], &mine[1], err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm, mine, all, sizeof mine, err), out);
    c->at_ns[0] = c->at_ns[1];
    c->offset_ns[0] = c->offset_ns[1];
    c->at_ns[1] = ddp_now_ns();
    c->offset_ns[1] = all[hosts->leader[hosts->mine]][0];
    c->error_ns = all[hosts->leader[hosts->mine]][1];
    c->estimates++;
out:
    free(all);
    return rc;
}

/* Returns the offset at a local time: interpolated linearly between the last two estimates, and
 * constant before and after them. The offset is not extrapolated, because the slope between two
 * close estimates consists mostly of their errors. */
static double offset_at(const struct ddp_clocks *c, int64_t local_ns)
{
    if (c->common || c->estimates == 0)
        return 0;
    if (c->estimates == 1 || local_ns >= c->at_ns[1])
        return c->offset_ns[1];
    if (local_ns <= c->at_ns[0])
        return c->offset_ns[0];
    double part = (double)(local_ns - c->at_ns[0]) / (double)(c->at_ns[1] - c->at_ns[0]);
    return c->offset_ns[0] + part * (c->offset_ns[1] - c->offset_ns[0]);
}

int64_t ddp_clocks_global(const struct ddp_clocks *c, int64_t local_ns)
{
    return local_ns + llround(offset_at(c, local_ns));
}

int64_t ddp_clocks_local(const struct ddp_clocks *c, int64_t global_ns)
{
    return global_ns - llround(offset_at(c, global_ns - llround(c->offset_ns[1])));
}
