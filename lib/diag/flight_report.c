/* Compares all ranks at one operation, which is the newest operation of the rank that reports. The
 * group and the sequence number identify this operation. Each rank has one of five states (enum
 * standing):
 *   OUTSIDE  the rank is not known to be in the group
 *   NEVER    the rank has not entered the operation
 *   OTHER    under the same sequence number, the rank has entered a different operation, or the
 *            same operation with another size or type; then the ranks run different programs
 *   INSIDE   the rank is in the operation, or failed in it
 *   LEFT     the rank has left the operation */
#include "diag/flight_report.h"

#include "base/coll_kind.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define RANKS_MAX 1024 /* larger worlds get no report */
#define SCAN      (DDP_FLIGHT_DEPTH - 1)
#define RANGE_MIN 4 /* the shortest range in a list of ranks */

enum standing { OUTSIDE, NEVER, OTHER, INSIDE, LEFT };

static const struct ddp_flight *flight_of(const struct ddp_flights *all, int rank)
{
    return (const struct ddp_flight *)(const void *)((const char *)all->first +
                                                     (size_t)rank * all->stride);
}

/* Returns whether the sequence numbers of two operations come from the same counter. Collectives
 * are counted apart from other operations. */
static bool same_count(const struct ddp_flight_op *a, const struct ddp_flight_op *b)
{
    return a->seq != DDP_FLIGHT_NO_SEQ && b->seq != DDP_FLIGHT_NO_SEQ && a->group == b->group &&
           (a->what < DDP_COLL_COUNT) == (b->what < DDP_COLL_COUNT);
}

static bool same_operation(const struct ddp_flight_op *a, const struct ddp_flight_op *b)
{
    return a->what == b->what && a->bytes == b->bytes && a->dtype == b->dtype;
}

/* Returns the state of the rank with recorder `f`. For OTHER, *its is the operation that the rank
 * has entered instead. */
static enum standing standing_of(const struct ddp_flight *f, const struct ddp_flight_op *asked,
                                 struct ddp_flight_op *its)
{
    uint64_t entered = atomic_load_explicit(&f->entered, memory_order_acquire);
    enum standing standing = asked->group == 0 ? NEVER : OUTSIDE;
    for (uint64_t back = 1; back <= DDP_MIN(entered, (uint64_t)SCAN); back++) {
        enum ddp_flight_state state;
        if (!ddp_flight_at(f, entered - back, its, &state) || !same_count(its, asked))
            continue;
        if (its->seq > asked->seq)
            return LEFT;
        if (its->seq < asked->seq)
            return NEVER;
        if (!same_operation(its, asked))
            return OTHER;
        return state == DDP_FLIGHT_DONE ? LEFT : INSIDE;
    }
    return standing;
}

static int first_in(const unsigned char *standing, int ranks, enum standing wanted)
{
    for (int r = 0; r < ranks; r++) {
        if (standing[r] == wanted)
            return r;
    }
    return -1;
}

int ddp_rank_list(const unsigned char *mark, int ranks, unsigned char wanted, char *out,
                  size_t out_bytes)
{
    int count = 0;
    out[0] = '\0';
    for (int r = 0, end; r < ranks; r = end) {
        end = r + 1;
        if (mark[r] != wanted)
            continue;
        while (end < ranks && mark[end] == wanted)
            end++;
        if (end - r < RANGE_MIN)
            end = r + 1;
        ddp_text_append(out, out_bytes, "%s%d", count > 0 ? ", " : "", r);
        if (end - r > 1)
            ddp_text_append(out, out_bytes, "-%d", end - 1);
        count += end - r;
    }
    return count;
}

/* Adds the ranks in state OTHER. The ranks in the same operation as the lowest of these ranks come
 * first, with the name of the operation. The other ranks follow, without the names of their
 * operations. */
static void add_others(const struct ddp_flights *all, const struct ddp_flight_op *asked,
                       const unsigned char *standing, char *out, size_t out_bytes)
{
    unsigned char alike[RANKS_MAX] = {0};
    struct ddp_flight_op first, its;
    char name[64], size[48], ranks[64];
    const int r = first_in(standing, all->ranks, OTHER);
    if (r < 0)
        return;
    (void)standing_of(flight_of(all, r), asked, &first);
    for (int q = r; q < all->ranks; q++)
        if (standing[q] == OTHER) {
            (void)standing_of(flight_of(all, q), asked, &its);
            alike[q] = same_operation(&its, &first) ? 1 : 2;
        }
    ddp_flight_name(&first, name, sizeof name);
    ddp_flight_size(&first, size, sizeof size);
    int n = ddp_rank_list(alike, all->ranks, 1, ranks, sizeof ranks);
    ddp_text_append(out, out_bytes, "; rank%s %s %s in %s%s instead", n > 1 ? "s" : "", ranks,
                    n > 1 ? "are" : "is", name, size);
    n = ddp_rank_list(alike, all->ranks, 2, ranks, sizeof ranks);
    if (n > 0)
        ddp_text_append(out, out_bytes, "; rank%s %s %s in other operations", n > 1 ? "s" : "",
                        ranks, n > 1 ? "are" : "is");
}

static void write_report(const struct ddp_flights *all, int by, const struct ddp_flight_op *asked,
                         const unsigned char *standing, char *out, size_t out_bytes)
{
    char name[64], size[48], phase[96], never[64], inside[64], left[64], its[200];
    out[0] = '\0';
    int n_never = ddp_rank_list(standing, all->ranks, NEVER, never, sizeof never);
    int n_inside = ddp_rank_list(standing, all->ranks, INSIDE, inside, sizeof inside);
    int n_left = ddp_rank_list(standing, all->ranks, LEFT, left, sizeof left);
    ddp_flight_name(asked, name, sizeof name);
    ddp_flight_size(asked, size, sizeof size);
    ddp_flight_phase_text(flight_of(all, by), phase, sizeof phase);

    if (n_never > 0)
        ddp_text_append(out, out_bytes, "rank%s %s never entered %s; rank%s %s wait%s in it",
                        n_never > 1 ? "s" : "", never, name, n_inside > 1 ? "s" : "", inside,
                        n_inside > 1 ? "" : "s");
    else
        ddp_text_append(out, out_bytes, "rank%s %s wait%s in %s", n_inside > 1 ? "s" : "", inside,
                        n_inside > 1 ? "" : "s", name);
    if (n_left > 0)
        ddp_text_append(out, out_bytes, ", rank%s %s left it", n_left > 1 ? "s" : "", left);
    ddp_text_append(out, out_bytes, "%s, rank %d is in phase '%s'", size, by, phase);
    add_others(all, asked, standing, out, out_bytes);
    if (n_never > 0) {
        int r = first_in(standing, all->ranks, NEVER);
        ddp_flight_describe(flight_of(all, r), its, sizeof its);
        ddp_text_append(out, out_bytes, "; rank %d is in %s", r, its);
    }
}

bool ddp_flight_report(const struct ddp_flights *all, int by, int peer, char *out, size_t out_bytes)
{
    unsigned char standing[RANKS_MAX];
    struct ddp_flight_op asked, its;
    enum ddp_flight_state state;
    if (by < 0 || by >= all->ranks || all->ranks > RANKS_MAX ||
        !ddp_flight_newest(flight_of(all, by), &asked, &state) || asked.seq == DDP_FLIGHT_NO_SEQ ||
        state == DDP_FLIGHT_DONE)
        return false;
    for (int r = 0; r < all->ranks; r++) {
        standing[r] = (unsigned char)standing_of(flight_of(all, r), &asked, &its);
        if (r == peer && standing[r] == OUTSIDE)
            standing[r] = NEVER;
    }
    standing[by] = INSIDE;
    write_report(all, by, &asked, standing, out, out_bytes);
    return true;
}
