#include "comm/waiter.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/core_time.h"
#include "base/mem.h"
#include "base/unit.h"
#include "comm/backend.h"
#include "diag/flight_report.h"
#include "launch/segment.h"

/* If the time between two clock reads exceeds this limit, this process did not run in between
 * (Ctrl-Z, a suspended laptop). This time does not count as waiting time, because the awaited rank
 * did not cause it. */
#define ASLEEP_NS 2000000000

/* Duration of one sleep if sleeps_in_waits is set. A thread that yields to a computing thread runs
 * again only when the time slice of the computing thread ends, some milliseconds later. A network
 * usually answers sooner, so the wait uses short sleeps instead of yields. */
#define SLEEP_NS 50000

void ddp_waiter_init(struct ddp_waiter *w, const struct ddp_comm *comm)
{
    const struct ddp_segment *segment = comm->rank_info.segment;
    w->abort_word = comm->shm != NULL ? comm->shm->abort_word : NULL;
    w->collector_busy_ns = segment != NULL ? &segment->collector_busy_ns : NULL;
    w->watched = comm->watched;
    w->timeout_ns = ddp_comm_wait_ns(comm);
    w->deadline_ns = 0;
    w->last_ns = 0;
    w->spin = comm->rank_info.oversubscribed ? DDP_SPIN_SHARED : DDP_SPIN_ALONE;
    if (comm->shm != NULL)
        w->spin = (uint32_t)comm->shm->spin;
    w->polls = 0;
    w->sleeps_in_waits =
        /* an idle rank must leave its core to working ranks */
        comm->sleeps_in_waits || w->timeout_ns != comm->timeout_ns;
}

static enum ddp_wait look_at_clock(struct ddp_waiter *w)
{
    int64_t now = ddp_now_ns();
    if (w->last_ns == 0)
        w->deadline_ns = now + w->timeout_ns;
    else if (now - w->last_ns > ASLEEP_NS)
        w->deadline_ns += now - w->last_ns;
    w->last_ns = now;
    if (now < w->deadline_ns)
        return DDP_WAIT_ON;
    /* The awaited rank may itself wait for the collector, which may be busy with its disk or with a
     * reader of its output. Therefore the wait expires at the earliest timeout_ns after the
     * collector has finished its last message. */
    int64_t collector = w->collector_busy_ns != NULL
                            ? atomic_load_explicit(w->collector_busy_ns, memory_order_acquire)
                            : 0;
    w->deadline_ns = DDP_MAX(w->deadline_ns, DDP_MIN(collector, now) + w->timeout_ns);
    return now >= w->deadline_ns ? DDP_WAIT_EXPIRED : DDP_WAIT_ON;
}

enum ddp_wait ddp_waiter_step(struct ddp_waiter *w)
{
    w->polls++;
    if (w->polls <= w->spin) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
        if (w->polls % 64 != 0)
            return DDP_WAIT_ON;
    } else if (w->sleeps_in_waits) {
        nanosleep(&(struct timespec){.tv_nsec = SLEEP_NS}, NULL);
    } else {
        ddp_core_yield();
    }
    if (w->abort_word != NULL && atomic_load_explicit(w->abort_word, memory_order_acquire) != 0)
        return DDP_WAIT_ABORTED;
    if (w->watched != NULL && w->polls > w->spin && w->polls % 8 == 0 &&
        w->watched->backend->look(w->watched, NULL) != 0)
        return DDP_WAIT_ABORTED;
    /* A yield costs much more than a clock read, so reading the clock after every eighth yield adds
     * little. */
    if (w->polls > w->spin ? w->polls % 8 == 0 : w->polls % 1024 == 0)
        return look_at_clock(w);
    return DDP_WAIT_ON;
}

int ddp_wait_step(struct ddp_waiter *w, struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    const enum ddp_wait wait = ddp_waiter_step(w);
    if (wait == DDP_WAIT_ON)
        return 0;
    return wait == DDP_WAIT_ABORTED ? ddp_wait_aborted(comm, err)
                                    : ddp_wait_expired(comm, peer, err);
}

/* Converts a rank of the segment to a world rank. The two may differ if the world has several
 * hosts. */
static int name_of(const struct ddp_segment *segment, int place)
{
    return segment == NULL || place < 0
               ? place
               : atomic_load_explicit(&ddp_segment_rank_of(segment, place)->world_rank,
                                      memory_order_relaxed);
}

int ddp_wait_aborted(const struct ddp_comm *comm, struct ddp_err *err)
{
    const struct ddp_segment *segment = comm->rank_info.segment;
    int culprit = -1, code = DDP_ELOST;
    int me = comm->world_rank[comm->rank];
    if (comm->watched != NULL)
        DDP_TRY(comm->watched->backend->look(comm->watched, err));
    if (segment != NULL)
        ddp_segment_aborted(segment, &culprit, NULL, &code);
    if (culprit < 0 || culprit == me)
        return ddp_fail(err, DDP_ELOST, "rank %d stopped waiting: the run was ended (code %d)",
                        name_of(segment, me), -code);
    return ddp_fail(err, DDP_ELOST, "rank %d stopped waiting: rank %d failed or was lost (code %d)",
                    name_of(segment, me), name_of(segment, culprit), -code);
}

bool ddp_wait_report(const struct ddp_comm *comm, int peer, char *out, size_t out_bytes)
{
    const struct ddp_segment *segment = comm->rank_info.segment;
    if (segment == NULL)
        return false;
    const struct ddp_segment_rank *block = ddp_segment_rank_of(segment, 0);
    struct ddp_flights all = {.stride = sizeof *block, .ranks = segment->ranks};
    int by = -1;
    for (int r = 0; r < all.ranks; r++) {
        /* If comm uses the recorder of a progress thread, the report compares the recorders of all
         * progress threads. */
        if (comm->flight != &block[r].flight && comm->flight != &block[r].progress)
            continue;
        by = r;
        all.first = comm->flight == &block[r].flight ? &block->flight : &block->progress;
    }
    /* The report would contain rank numbers of the segment. In a world of several hosts these
     * numbers may differ from the world ranks. In this case no report is made. */
    if (by >= 0 && name_of(segment, segment->ranks - 1) != segment->ranks - 1)
        return false;
    return by >= 0 && ddp_flight_report(&all, by, peer, out, out_bytes);
}

/* Fills *err with the message of an expired wait. */
static void report_expired(const struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    const struct ddp_segment *segment = comm->rank_info.segment;
    const int me = name_of(segment, comm->world_rank[comm->rank]), its = name_of(segment, peer);
    char mine[384] = "", time[32], theirs[384] = "", report_text[400] = "";
    ddp_format_ns((double)comm->timeout_ns, time, sizeof time);
    ddp_flight_describe(comm->flight, mine, sizeof mine);
    bool was_reported = ddp_wait_report(comm, peer, report_text, sizeof report_text);
    if (segment != NULL && peer >= 0)
        ddp_segment_describe(segment, peer, theirs, sizeof theirs);

    if (peer < 0)
        ddp_fail(err, DDP_ELOST, "rank %d waited %s in %.150s", me, time, mine);
    else if (was_reported)
        ddp_fail(err, DDP_ELOST, "rank %d waited %s for rank %d: %s", me, time, its, report_text);
    else if (segment == NULL || its == me)
        ddp_fail(err, DDP_ELOST, "rank %d waited %s for rank %d in %.150s", me, time, its, mine);
    else
        ddp_fail(err, DDP_ELOST, "rank %d waited %s for rank %d in %.150s; rank %d is in %.150s",
                 me, time, its, mine, its, theirs);
    if (peer >= 0)
        ddp_hint(err, "a rank that is only slow needs a longer timeout (--timeout)");
}

/* The function makes its report before it sets the abort word. The other ranks still wait at that
 * time, so the report shows their operations. Without a segment, ddp_comm_abort aborts the
 * backend's library, which may end this process. The function therefore calls on_expire before
 * ddp_comm_abort. */
int ddp_wait_expired(struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    struct ddp_err words = DDP_ERR_INIT;
    report_expired(comm, peer, &words);
    if (comm->rank_info.segment != NULL) {
        ddp_segment_abort(comm->rank_info.segment, peer, comm->world_rank[comm->rank], DDP_ELOST);
    } else {
        if (comm->on_expire != NULL)
            comm->on_expire(comm->on_expire_arg, words.text);
        ddp_comm_abort(comm, DDP_ELOST);
    }
    return ddp_fail_copy(err, &words);
}
