#include "bench/pair_matrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/network.h"
#include "base/rng.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "stats/summary.h"

/* No algorithm uses these tags. MPI guarantees tags up to 32767. */
#define TAG_CONTROL 29990
#define TAG_DATA    29991
/* TRIPS: number of round trips for the latency. TRIPS_UNUSED: earlier round trips that wake both
 * ends, and do not count. */
#define TRIPS_UNUSED 8
#define TRIPS        64
/* Messages of a repetition. They are under way at the same time, so that the link stays busy. */
#define WINDOW          4
#define LEAST           3
#define REPETITIONS_MAX 1000

/* One rank's work on a pair. */
struct pair {
    struct ddp_comm *comm;
    const struct ddp_pair_options *options;
    int peer;          /* rank of the partner */
    bool leads;        /* this end has the lower number */
    char *send, *recv; /* [options->bytes] */
    double latency_ns;
};

static int control(const struct pair *p, bool sends, uint64_t *word, struct ddp_err *err)
{
    struct ddp_request request;
    if (sends)
        DDP_TRY(ddp_comm_isend(p->comm, p->peer, TAG_CONTROL, word, sizeof *word, &request, err));
    else
        DDP_TRY(ddp_comm_irecv(p->comm, p->peer, TAG_CONTROL, word, sizeof *word, &request, err));
    return ddp_comm_wait(p->comm, &request, 1, err);
}

/* Measures the latency. Both ends get half the median of the round trips. */
static int measure_latency(struct pair *p, struct ddp_err *err)
{
    double trip[TRIPS], median;
    uint64_t word = 0;
    for (int i = -TRIPS_UNUSED; i < TRIPS; i++) {
        const int64_t began = ddp_now_ns();
        DDP_TRY(control(p, p->leads, &word, err));
        DDP_TRY(control(p, !p->leads, &word, err));
        if (i >= 0)
            trip[i] = (double)(ddp_now_ns() - began);
    }
    median = ddp_median(trip, TRIPS);
    memcpy(&word, &median, sizeof word);
    DDP_TRY(control(p, p->leads, &word, err)); /* both ends use the median of the end that leads */
    memcpy(&median, &word, sizeof word);
    p->latency_ns = median / 2;
    return 0;
}

/* Fills the message from world rank `from`, or checks it. Returns whether all bytes are right. */
static bool pattern(char *buffer, size_t bytes, int from, bool fill)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = ddp_mix64((uint64_t)from << 32 | i / sizeof word);
        const size_t n = DDP_MIN(bytes - i, sizeof word);
        if (fill)
            memcpy(buffer + i, &word, n);
        else if (memcmp(buffer + i, &word, n) != 0)
            return false;
    }
    return true;
}

/* Sends or receives WINDOW messages, or both. Each message arrives in its own part of p->recv. */
static int move(const struct pair *p, bool sends, bool receives, struct ddp_err *err)
{
    struct ddp_request request[2 * WINDOW];
    const size_t bytes = p->options->bytes;
    int n = 0;
    for (int i = 0; i < WINDOW && receives; i++)
        DDP_TRY(ddp_comm_irecv(p->comm, p->peer, TAG_DATA, p->recv + (size_t)i * bytes, bytes,
                               &request[n++], err));
    for (int i = 0; i < WINDOW && sends; i++)
        DDP_TRY(ddp_comm_isend(p->comm, p->peer, TAG_DATA, p->send, bytes, &request[n++], err));
    return ddp_comm_wait(p->comm, request, n, err);
}

/* Runs one repetition. If `both` is true, both ends send. Otherwise only the end with `sends`
 * sends. When the last message has arrived, the receiver answers. On an end that sends, *ns becomes
 * the time from the first message to this answer, minus the latency of the answer. */
static int repeat(const struct pair *p, bool sends, bool both, double *ns, struct ddp_err *err)
{
    uint64_t word = 0;
    const int64_t began = ddp_now_ns();
    DDP_TRY(move(p, sends || both, !sends || both, err));
    if (both) {
        uint64_t answer = 0;
        struct ddp_request request[2];
        DDP_TRY(ddp_comm_irecv(p->comm, p->peer, TAG_CONTROL, &answer, sizeof answer, &request[0],
                               err));
        DDP_TRY(
            ddp_comm_isend(p->comm, p->peer, TAG_CONTROL, &word, sizeof word, &request[1], err));
        DDP_TRY(ddp_comm_wait(p->comm, request, 2, err));
    } else {
        DDP_TRY(control(p, !sends, &word, err));
    }
    *ns = fmax((double)(ddp_now_ns() - began) - p->latency_ns, 1);
    return 0;
}

/* Moves the messages once more, untimed, and checks the last one. */
static int verify(const struct pair *p, bool sends, bool both, struct ddp_err *err)
{
    const int from = p->comm->world_rank[p->peer], to = p->comm->world_rank[p->comm->rank];
    char *last = p->recv + (WINDOW - 1) * p->options->bytes;
    double ignored;
    if (!sends || both)
        memset(last, 0, p->options->bytes);
    DDP_TRY(repeat(p, sends, both, &ignored, err));
    if ((sends && !both) || pattern(last, p->options->bytes, from, false))
        return 0;
    return ddp_fail(err, DDP_EDATA, "a message from rank %d to rank %d arrived with wrong bytes",
                    from, to);
}

/* No TCP segment carries more bytes than this. If the host has sent fewer segments than the
 * messages need, the messages did not use TCP. */
#define SEGMENT_MOST 65536

/* Returns the fraction of TCP segments that this host has sent again since `before`. bytes: number
 * of bytes that this rank has sent since `before`. NaN: unknown, or the messages did not use TCP.
 */
static double resent_since(const int64_t *before, double bytes)
{
    int64_t now[DDP_NET_COUNTERS];
    ddp_network_count("", "", now);
    ddp_network_count_since(before, now);
    const double segments = (double)now[DDP_NET_SEGMENTS];
    if (now[DDP_NET_RETRANSMITS] < 0 || segments * SEGMENT_MOST < bytes)
        return NAN;
    return (double)now[DDP_NET_RETRANSMITS] / segments;
}

/* Measures both directions at the same time if `both` is true. Otherwise measures one direction,
 * which begins at this end if `sends` is true. Before each repetition, the sender (if both send:
 * the end that leads) sends its decision whether to run the repetition. Sets GBps and ci95_fraction
 * of *out and, for one direction between hosts, resent_fraction. The values are correct only on an
 * end that sends. */
static int measure_bandwidth(const struct pair *p, bool sends, bool both,
                             struct ddp_matrix_cell *out, struct ddp_err *err)
{
    const bool decides = both ? p->leads : sends;
    const double moved = (double)p->options->bytes * WINDOW;
    const bool counts = sends && !both && p->comm->hosts && p->comm->hosts->count > 1;
    int64_t before[DDP_NET_COUNTERS];
    if (counts)
        ddp_network_count("", "", before);
    const int64_t began = ddp_now_ns();
    double rate[REPETITIONS_MAX];
    struct ddp_summary s;
    int n = 0;
    for (uint64_t goes_on = 1;; n++) {
        double ns;
        const double spent_s = (double)(ddp_now_ns() - began) / 1e9;
        if (n >= p->options->iters || (n >= LEAST && spent_s > p->options->max_time_s) ||
            (n > 0 && spent_s > LEAST * p->options->max_time_s))
            goes_on = 0;
        DDP_TRY(control(p, decides, &goes_on, err));
        if (!goes_on)
            break;
        DDP_TRY(repeat(p, sends, both, &ns, err));
        rate[n] = moved / ns;
    }
    if (counts)
        out->resent_fraction = resent_since(before, (double)n * moved);
    DDP_TRY(verify(p, sends, both, err));
    if (ddp_summarize(rate, (size_t)n, &s) != 0)
        return ddp_fail(err, DDP_ENOMEM, "no memory for %d bandwidths", n);
    out->GBps = s.median;
    out->ci95_fraction = ddp_summary_ci95_fraction(&s);
    return 0;
}

/* Measures one pair. *cell becomes the direction from this end to the partner. */
static int measure_pair(struct pair *p, struct ddp_matrix_cell *cell, struct ddp_err *err)
{
    struct ddp_matrix_cell other;
    DDP_TRY(measure_latency(p, err));
    cell->latency_ns = p->latency_ns;
    for (int direction = 0; direction < 2; direction++) {
        const bool sends = (direction == 0) == p->leads;
        DDP_TRY(measure_bandwidth(p, sends, false, sends ? cell : &other, err));
    }
    if (p->options->one_way)
        return 0;
    DDP_TRY(measure_bandwidth(p, true, true, &other, err));
    cell->both_GBps = other.GBps;
    return 0;
}

int ddp_pair_rounds(int ends)
{
    return ends < 2 ? 0 : ends % 2 == 0 ? ends - 1 : ends;
}

/* Computes the tournament by the circle method. If the number of ends is odd, it adds an end that
 * does not exist. */
int ddp_pair_partner(int ends, int round, int end)
{
    const int n = ends + ends % 2, turning = n - 1;
    int partner;
    if (end == n - 1)
        partner = round;
    else if (end == round)
        partner = n - 1;
    else
        partner = ((2 * round - end) % turning + turning) % turning;
    return partner < ends ? partner : -1;
}

/* Sets *out [*n] to the ranks that are ends, and *mine to the end of this rank, or -1. */
static int find_ends(const struct ddp_comm *comm, bool by_host, int **out, int *n, int *mine,
                     struct ddp_err *err)
{
    const bool hosts = by_host && comm->hosts != NULL;
    *n = hosts ? comm->hosts->count : by_host ? 1 : comm->size;
    *mine = -1;
    DDP_TRY(DDP_NEW(out, (size_t)*n, err));
    for (int i = 0; i < *n; i++) {
        (*out)[i] = hosts ? comm->hosts->leader[i] : i;
        if ((*out)[i] == comm->rank)
            *mine = i;
    }
    return 0;
}

/* Sets *out [all] to the numbers of all rounds. If `rounds` is less than `all`, their order is
 * random, so that the first `rounds` numbers are a sample. The order is the same on all ranks. */
static int draw_rounds(int all, int rounds, uint64_t seed, uint32_t **out, struct ddp_err *err)
{
    struct ddp_rng rng;
    DDP_TRY(DDP_NEW(out, (size_t)all, err));
    for (int i = 0; i < all; i++)
        (*out)[i] = (uint32_t)i;
    ddp_rng_init(&rng, seed, 0);
    if (rounds < all)
        ddp_rng_shuffle(&rng, *out, (size_t)all);
    return 0;
}

/* Brings the rows of all ends to rank 0. Collective over the world. */
static int gather(struct ddp_comm *comm, const int *ends, int n, const struct ddp_matrix_cell *row,
                  struct ddp_matrix *out, struct ddp_err *err)
{
    const size_t bytes = (size_t)n * sizeof *row;
    struct ddp_matrix_cell *all;
    DDP_TRY(DDP_NEW(&all, (size_t)comm->size * (size_t)n, err));
    int rc = ddp_comm_allgather_bytes(comm, row, all, bytes, err);
    if (rc == 0 && comm->rank == 0)
        rc = ddp_matrix_init(out, n, err);
    for (int i = 0; rc == 0 && comm->rank == 0 && i < n; i++) {
        out->rank[i] = comm->world_rank[ends[i]];
        memcpy(out->cell + (size_t)i * (size_t)n, all + (size_t)ends[i] * (size_t)n, bytes);
    }
    free(all);
    return rc;
}

static int run_rounds(struct pair *p, const int *ends, int n, int mine, const uint32_t *order,
                      int rounds, void (*progress)(void *arg, int round, int rounds), void *arg,
                      struct ddp_matrix_cell *row, struct ddp_err *err)
{
    for (int i = 0; i < rounds; i++) {
        const int partner = mine < 0 ? -1 : ddp_pair_partner(n, (int)order[i], mine);
        progress(arg, i + 1, rounds);
        if (partner >= 0) {
            p->peer = ends[partner];
            p->leads = mine < partner;
            DDP_TRY(ddp_comm_abort_if(p->comm, measure_pair(p, &row[partner], err)));
        }
        DDP_TRY(ddp_comm_barrier(p->comm, err)); /* keeps the rounds apart */
    }
    return 0;
}

int ddp_pair_matrix(struct ddp_comm *comm, const struct ddp_pair_options *options,
                    void (*progress)(void *arg, int round, int rounds), void *arg,
                    struct ddp_matrix *out, struct ddp_err *err)
{
    struct pair p = {.comm = comm, .options = options};
    struct ddp_matrix_cell *row = NULL;
    uint32_t *order = NULL;
    int *ends = NULL, n, mine;
    *out = (struct ddp_matrix){.ends = 0};
    int rc = find_ends(comm, options->by_host, &ends, &n, &mine, err);
    const int all = rc == 0 ? ddp_pair_rounds(n) : 0;
    const int sampled = n < DDP_PAIR_ENDS_ALL ? all : DDP_PAIR_SAMPLE;
    const int rounds = (int)DDP_MIN(options->rounds > 0 ? options->rounds : sampled, all);
    if (rc == 0 && n > DDP_MATRIX_MAX)
        rc = ddp_fail(err, DDP_EUSAGE, "a matrix has at most %d ranks or hosts, but there are %d",
                      DDP_MATRIX_MAX, n);
    if (rc == 0)
        rc = draw_rounds(all, rounds, options->seed, &order, err);
    if (rc == 0)
        rc = DDP_NEW(&row, (size_t)n, err);
    if (rc == 0)
        rc = DDP_NEW(&p.send, options->bytes, err);
    if (rc == 0)
        rc = DDP_NEW(&p.recv, options->bytes * WINDOW, err);
    rc = ddp_comm_agree(comm, rc, err);
    if (rc == 0) {
        for (int i = 0; i < n; i++)
            row[i] = DDP_MATRIX_CELL_INIT;
        (void)pattern(p.send, options->bytes, comm->world_rank[comm->rank], true);
        rc = run_rounds(&p, ends, n, mine, order, rounds, progress, arg, row, err);
    }
    if (rc == 0)
        rc = gather(comm, ends, n, row, out, err);
    out->by_host = options->by_host;
    out->bytes = options->bytes;
    out->rounds = rounds;
    out->all_rounds = all;
    free(p.recv);
    free(p.send);
    free(row);
    free(order);
    free(ends);
    return rc;
}
