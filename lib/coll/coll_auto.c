/* The choice of `auto`. */
#include "coll/coll_auto.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "comm/comm_shm.h"
#include "comm/hosts.h"

#define DDP_COLL(symbol) extern const struct ddp_coll_alg ddp_alg_##symbol;
#include "coll/coll_list.h"
#undef DDP_COLL

/* What an algorithm must have at hand. */
enum need {
    ONE_RANK,
    SHARED,     /* shared memory */
    REGISTERED, /* shared memory, and both buffers in it */
    LIBRARY,    /* collectives of the backend's library; they may refuse a type */
    HOSTS,      /* shared memory inside each of several hosts */
    ALONE,      /* Open MPI, and each rank has a host of its own */
    MESSAGES
};

#define ANY_BYTES SIZE_MAX
#define ANY_RANKS 0
#define NEAR      (1u << DDP_DISTANCE_CORE | 1u << DDP_DISTANCE_CACHE)
#define FAR       (1u << DDP_DISTANCE_FAR)
#define CROWDED   (1u << DDP_DISTANCE_CROWDED)
#define ANYWHERE  (NEAR | FAR | CROWDED)

/* The first row that fits and whose algorithm supports the shape is taken. A row fits up to
 * ranks_max ranks and bytes_max bytes of message (S, as bandwidth is defined on), for the distances
 * in its set. This is the one place for thresholds.
 * All-reduce, where they come from: f32 sum in place, 2 ranks on 2 cores (Xeon, AVX-512, ping-pong
 * 280 ns), medians in microseconds; 4 ranks on the same 2 cores cross over at the same sizes:
 *            4 B   256 B  512 B  1 KiB  2 KiB  8 KiB  64 KiB  1 MiB  64 MiB
 *   flat     0.25  0.30   0.37   0.54   0.87   1.9
 *   direct   0.34  0.37   0.39   0.48   0.59   0.78   2.7     28     2650
 *   staged   0.36  0.43   0.46   0.53   0.64   1.27   5.9     70     6600
 *   Open MPI 0.44                1.04          5.5    11.8    95     19000
 * The others: f32, out of place, same machine, 2 ranks; of reductions reduce-scatter, of moves
 * all-gather, which the rest follow within a third:
 *                            64 B   256 B  512 B  1 KiB  4 KiB  16 KiB
 *   reduction  flat          0.25   0.27   0.33   0.38   0.80   1.9
 *              direct        0.40   0.39   0.40   0.40   0.40   0.52
 *              staged        0.54   0.56   0.65   0.70   1.16   2.3
 *   move       flat          0.23   0.31   0.38   0.42   0.92   2.0
 *              direct        0.32   0.32   0.32   0.32   0.33   0.42
 *              staged        0.49   0.52   0.57   0.68   1.06   2.15
 * Time of direct to that of flat, EPYC, medians of twelve pairs; broadcast, whose root waits for
 * its readers in direct, in place and not measured on a Xeon:
 *                  ranks     64 B   256 B  512 B  768 B  1 KiB  2 KiB  4 KiB
 *   reduce-scatter 2         1.20   1.19   1.09   1.15   1.03   0.97   0.64
 *   reduce         2         1.28   1.27   1.06   1.11   1.00   0.76   0.57
 *   all-gather     2         1.15   1.08   1.02   1.08   0.94   0.82   0.56
 *   broadcast      2         1.32   1.33   1.22   1.20   1.05   0.74   0.68
 *                  4, 8      1.1    1.1    1.03          1.0    1.0    0.92
 * Far: a step more costs half a ping-pong more (about 150 ns at 600 ns), so the one step of flat
 * pays to about twice the size.
 * Crowded: a step more costs every core a round through its ranks, so flat pays as long as its
 * copies are shorter than that. Time of direct to that of flat, f32, 2 cores (EPYC), medians of
 * seven pairs:
 *                   ranks   64 B   1 KiB  4 KiB  8 KiB  16 KiB
 *   all-reduce      4       1.86   1.84   1.41   1.17   0.82
 *                   8       1.90   1.67   1.49   1.29   0.89
 *                   32      1.30   1.28   1.17   0.82   0.53
 *   reduce-scatter  4, 8    1.8    1.8    1.55   1.25   1.1
 *   all-gather      4, 8    1.85   1.9    1.75   1.7    1.5
 *   all-to-all      4, 8    1.8    1.8    1.6    1.4    1.05
 *   reduce          4       1.87   1.81   1.61   1.23   0.86
 *                   8       1.92   1.79   1.01   0.69   0.42
 * Of gather and scatter direct has one step, too: from 1.0 down to 0.6. */
struct rule {
    enum ddp_coll coll;
    enum need need;
    unsigned distances;
    int ranks_max;
    size_t bytes_max;
    const struct ddp_coll_alg *alg;
    const char *why;
};

static const char why_self[] = "one rank: a copy, or nothing";
static const char why_flat[] = "one step; the extra copies are short";
static const char why_crowded[] = "one step; a second would wait for a switch of ranks";
static const char why_direct[] = "zero-copy: every byte moves once";
static const char why_staged[] = "private buffers: through rings of shared memory, pipelined";
static const char why_native[] = "the library knows the network";
static const char why_few_steps[] = "few steps: short messages wait for steps";
static const char why_few_bytes[] = "few bytes a rank: long messages wait for bytes";
static const char why_hosts[] = "shared memory inside a host, one rank of each sends messages";
static const char why_alone[] = "a rank a host: links stay full, every host sends the same";
static const char why_only[] = "messages: any backend, any memory";

#define SELF(coll, symbol)                                                                         \
    {                                                                                              \
        coll, ONE_RANK, ANYWHERE, 1, ANY_BYTES, &ddp_alg_##symbol##_self, why_self                 \
    }
#define NATIVE(coll, symbol)                                                                       \
    {                                                                                              \
        coll, LIBRARY, ANYWHERE, ANY_RANKS, ANY_BYTES, &ddp_alg_##symbol##_native, why_native      \
    }
#define ROW(coll, need, distances, bytes_max, symbol, why)                                         \
    {                                                                                              \
        coll, need, distances, ANY_RANKS, bytes_max, &ddp_alg_##symbol, why                        \
    }
#define CROWDED_ROW(coll, symbol, ranks_max, bytes_max)                                            \
    {                                                                                              \
        coll, SHARED, CROWDED, ranks_max, bytes_max, &ddp_alg_##symbol##_flat, why_crowded         \
    }

/* Between hosts, several ranks each: longer all-reduces are bound by the links, and hier sends the
 * least over them, 2(H-1)/H of the message; a ring of all ranks, which knows no hosts, 2(P-1)/P.
 * f32 sum in place, 2 hosts (namespaces) of 2 ranks, link of 1 Gb/s, fastest of 18 iterations on a
 * busy machine, us:
 *            Open MPI: 256 KiB  4 MiB    MPICH: 256 KiB  4 MiB
 *   hier               736      28200           17300    108000
 *   native             444      35300           70100    165000
 *   ring               649      46400           80000    271000
 *   rhd                473      33200           29600    171000
 * Below, hosts that share cores say nothing about hier's waits: the library's choice. */
#define BETWEEN_HOSTS ((size_t)512 << 10)

/* Between 2 to 4 hosts of one rank each, ring overtakes Open MPI's all-reduce between 1 and 4 MiB;
 * between 8 hosts, and under MPICH, it did not for certain: results/notes/auto-across-hosts.md. */
#define ALONE_NATIVE_MAX ((size_t)2 << 20)
#define ALONE_RANKS_MAX  4
#define ALONE_ROW(bytes_max, symbol, why)                                                          \
    {                                                                                              \
        DDP_ALLREDUCE, ALONE, ANYWHERE, ALONE_RANKS_MAX, bytes_max, &ddp_alg_##symbol, why         \
    }

/* Rows on shared memory: up to registered_max (private_max) bytes flat; far: twice that, as far as
 * its slots go. SHM_ROWS: all rows of a collective; up to crowded_max flat when crowded. */
#define TWICE(bytes) DDP_MIN(2 * (size_t)(bytes), (size_t)DDP_SHM_SLOT_BYTES)
#define SHARED_ROWS(coll, symbol, registered_max, private_max)                                     \
    ROW(coll, SHARED, NEAR | CROWDED, registered_max, symbol##_flat, why_flat),                    \
        ROW(coll, SHARED, FAR, TWICE(registered_max), symbol##_flat, why_flat),                    \
        ROW(coll, REGISTERED, ANYWHERE, ANY_BYTES, symbol##_direct, why_direct),                   \
        ROW(coll, SHARED, NEAR | CROWDED, private_max, symbol##_flat, why_flat),                   \
        ROW(coll, SHARED, FAR, TWICE(private_max), symbol##_flat, why_flat),                       \
        ROW(coll, SHARED, ANYWHERE, ANY_BYTES, symbol##_staged, why_staged)
#define SHM_ROWS(coll, symbol, registered_max, private_max, crowded_max)                           \
    SELF(coll, symbol), CROWDED_ROW(coll, symbol, ANY_RANKS, crowded_max),                         \
        SHARED_ROWS(coll, symbol, registered_max, private_max), NATIVE(coll, symbol)
#define LAST(coll, symbol) ROW(coll, MESSAGES, ANYWHERE, ANY_BYTES, symbol, why_only)

static const struct rule rules[] = {
    SELF(DDP_ALLREDUCE, allreduce),
    CROWDED_ROW(DDP_ALLREDUCE, allreduce, 8, 8 << 10),
    CROWDED_ROW(DDP_ALLREDUCE, allreduce, ANY_RANKS, 4 << 10),
    SHARED_ROWS(DDP_ALLREDUCE, allreduce, 512, 1024),
    ROW(DDP_ALLREDUCE, LIBRARY, ANYWHERE, BETWEEN_HOSTS, allreduce_native, why_native),
    ROW(DDP_ALLREDUCE, HOSTS, ANYWHERE, ANY_BYTES, allreduce_hier, why_hosts),
    ROW(DDP_ALLREDUCE, LIBRARY, ANYWHERE, ALONE_NATIVE_MAX, allreduce_native, why_native),
    ALONE_ROW(16 << 10, allreduce_rhd, why_few_steps),
    ALONE_ROW(ANY_BYTES, allreduce_ring, why_alone),
    NATIVE(DDP_ALLREDUCE, allreduce),
    ROW(DDP_ALLREDUCE, MESSAGES, ANYWHERE, 16 << 10, allreduce_rhd, why_few_steps),
    ROW(DDP_ALLREDUCE, MESSAGES, ANYWHERE, ANY_BYTES, allreduce_ring, why_few_bytes),
    SHM_ROWS(DDP_REDUCE_SCATTER, reduce_scatter, 1 << 10, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_REDUCE_SCATTER, reduce_scatter_ring),
    SHM_ROWS(DDP_ALL_GATHER, all_gather, 128, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_ALL_GATHER, all_gather_ring),
    SHM_ROWS(DDP_BROADCAST, broadcast, 1 << 10, DDP_SHM_SLOT_BYTES, 1 << 10),
    ROW(DDP_BROADCAST, MESSAGES, ANYWHERE, 64 << 10, broadcast_binomial, why_few_steps),
    ROW(DDP_BROADCAST, MESSAGES, ANYWHERE, ANY_BYTES, broadcast_scatter_ring, why_few_bytes),
    SHM_ROWS(DDP_REDUCE, reduce, 1 << 10, DDP_SHM_SLOT_BYTES, 4 << 10),
    LAST(DDP_REDUCE, reduce_binomial),
    SHM_ROWS(DDP_ALL_TO_ALL, all_to_all, 128, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_ALL_TO_ALL, all_to_all_pairwise),
    SHM_ROWS(DDP_GATHER, gather, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_GATHER, gather_binomial),
    SHM_ROWS(DDP_SCATTER, scatter, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_SCATTER, scatter_binomial),
    SHM_ROWS(DDP_SEND_RECV, send_recv, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_SEND_RECV, send_recv_p2p),
    SELF(DDP_BARRIER, barrier),
    ROW(DDP_BARRIER, SHARED, ANYWHERE, ANY_BYTES, barrier_flags, "one step"),
    NATIVE(DDP_BARRIER, barrier),
    LAST(DDP_BARRIER, barrier_dissemination),
};

static const char *const distance_names[DDP_DISTANCE_COUNT] = {
    [DDP_DISTANCE_UNKNOWN] = "unknown", [DDP_DISTANCE_CORE] = "core",
    [DDP_DISTANCE_CACHE] = "cache",     [DDP_DISTANCE_FAR] = "far",
    [DDP_DISTANCE_CROWDED] = "crowded",
};

const char *ddp_distance_name(enum ddp_distance d)
{
    return distance_names[d];
}

enum ddp_distance ddp_distance_of(double pingpong_ns)
{
    if (isnan(pingpong_ns))
        return DDP_DISTANCE_UNKNOWN;
    return pingpong_ns < 75    ? DDP_DISTANCE_CORE
           : pingpong_ns < 400 ? DDP_DISTANCE_CACHE
                               : DDP_DISTANCE_FAR;
}

/* Is the row about such a call, whatever its size? */
static bool is_about(const struct rule *rule, enum ddp_coll coll, int ranks,
                     enum ddp_distance distance)
{
    const enum ddp_distance d = distance == DDP_DISTANCE_UNKNOWN ? DDP_DISTANCE_CACHE : distance;
    return rule->coll == coll && (rule->distances >> d & 1) != 0 &&
           (rule->ranks_max == ANY_RANKS || ranks <= rule->ranks_max);
}

static bool is_open_mpi(const struct ddp_backend *backend)
{
    const char *library = backend->library != NULL ? backend->library() : NULL;
    return library != NULL && strncmp(library, "Open MPI", strlen("Open MPI")) == 0;
}

/* Does the communicator lack what the row needs, which its algorithm does not ask for? */
static bool lacks(const struct ddp_comm *comm, const struct ddp_coll_shape *shape, enum need need)
{
    if (need == REGISTERED)
        return !shape->registered;
    return need == ALONE &&
           (comm->hosts == NULL || comm->hosts->count < comm->size || !is_open_mpi(comm->backend));
}

/* own: leave the library's collectives out. */
static const struct ddp_coll_alg *choose(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape,
                                         enum ddp_distance distance, bool own, struct ddp_err *err)
{
    const size_t bytes =
        ddp_coll_message_bytes(shape->coll, comm->size, shape->count, shape->dtype);
    const unsigned caps = comm->backend->caps;
    struct ddp_err reason = DDP_ERR_INIT;
    bool refused = false;

    for (size_t i = 0; i < DDP_COUNT_OF(rules); i++) {
        if (!is_about(&rules[i], shape->coll, comm->size, distance) || bytes > rules[i].bytes_max ||
            lacks(comm, shape, rules[i].need) || (own && rules[i].need == LIBRARY))
            continue;
        struct ddp_err why = DDP_ERR_INIT;
        if (rules[i].alg->supports(comm, shape, &why) == 0)
            return rules[i].alg;
        /* The last, most general row says why nothing fits; that there are no messages says less
         * than what a library has refused. */
        if (!refused)
            reason = why;
        refused |= rules[i].need == LIBRARY && (caps & DDP_CAP_NATIVE) && !(caps & DDP_CAP_P2P);
    }
    ddp_fail(err, DDP_EUNAVAIL, "no algorithm for %s on backend '%s'%s%s",
             ddp_coll_name(shape->coll), comm->backend->name, reason.code != 0 ? ": " : "",
             reason.text);
    return NULL;
}

const struct ddp_coll_alg *ddp_coll_auto_at(const struct ddp_comm *comm,
                                            const struct ddp_coll_shape *shape,
                                            enum ddp_distance distance, struct ddp_err *err)
{
    return choose(comm, shape, distance, false, err);
}

static enum ddp_distance distance_in(const struct ddp_comm *comm)
{
    const bool crowded = comm->shm != NULL && comm->shm->crowded;
    return crowded ? DDP_DISTANCE_CROWDED : DDP_DISTANCE_UNKNOWN;
}

const struct ddp_coll_alg *ddp_coll_auto(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, struct ddp_err *err)
{
    return choose(comm, shape, distance_in(comm), false, err);
}

const struct ddp_coll_alg *ddp_coll_auto_own(const struct ddp_comm *comm,
                                             const struct ddp_coll_shape *shape,
                                             struct ddp_err *err)
{
    return choose(comm, shape, distance_in(comm), true, err);
}

static bool has(const struct ddp_auto_query *query, enum need need)
{
    const unsigned caps = query->backend->caps;
    const bool several = query->hosts > 1 || query->world_hosts > 1;
    const unsigned shares = DDP_CAP_MAP | (several ? 0 : DDP_CAP_HOSTS);
    switch (need) {
    case ONE_RANK:
        return query->ranks == 1;
    case SHARED:
        return (caps & shares) != 0;
    case REGISTERED:
        return (caps & shares) != 0 && query->registered;
    case HOSTS:
        return (caps & DDP_CAP_HOSTS) && several && query->hosts < query->ranks;
    case ALONE:
        return (caps & DDP_CAP_HOSTS) && query->open_mpi && query->hosts > 1 &&
               query->hosts == query->ranks;
    case LIBRARY:
        return caps & DDP_CAP_NATIVE;
    case MESSAGES:
        break;
    }
    return caps & DDP_CAP_P2P;
}

/* Rows of one algorithm that follow each other, as one line. from, to: sizes, in bytes. */
struct line {
    const struct ddp_coll_alg *alg; /* NULL: none yet */
    const char *why;
    size_t from, to;
    bool otherwise; /* for what the line before refuses */
};

static void add_line(const struct line *line, struct ddp_strbuf *out)
{
    char to[24], range[48];
    if (line->alg == NULL)
        return;
    ddp_format_size(line->to, to, sizeof to);
    if (line->to != ANY_BYTES)
        snprintf(range, sizeof range, "%sup to %s", line->from == 0 ? "" : "then ", to);
    else
        snprintf(range, sizeof range, "%s", line->from == 0 ? "all sizes" : "larger");
    ddp_strbuf_addf(out, "  %-18s %-14s %s%s\n", range, line->alg->name,
                    line->otherwise ? "where that refuses: " : "", line->why);
}

/* The rows after a library's are asked about all sizes again: it may refuse any. */
static void add_rule(const struct rule *rule, struct line *line, struct ddp_strbuf *out)
{
    const bool refused = line->alg != NULL && line->to == ANY_BYTES;
    const size_t from = refused || line->alg == NULL ? 0 : line->to;

    if (rule->alg != line->alg) {
        add_line(line, out);
        line->from = from;
        line->otherwise |= refused;
    }
    line->alg = rule->alg;
    line->why = rule->why;
    line->to = rule->bytes_max;
}

void ddp_coll_auto_explain(const struct ddp_auto_query *query, struct ddp_strbuf *out)
{
    struct line line = {0};

    char hosts[32] = "", distance[48] = "";
    if (query->hosts > 1)
        snprintf(hosts, sizeof hosts, " on %d hosts", query->hosts);
    /* Only rows on shared memory depend on the distance. */
    if (has(query, SHARED))
        snprintf(distance, sizeof distance, ", distance %s%s", ddp_distance_name(query->distance),
                 query->distance == DDP_DISTANCE_UNKNOWN ? ", taken as cache" : "");
    ddp_strbuf_addf(out, "auto of %s: backend %s, %d rank%s%s, %s memory%s\n",
                    ddp_coll_name(query->coll), query->backend->name, query->ranks,
                    query->ranks == 1 ? "" : "s", hosts,
                    query->registered ? "registered" : "private", distance);
    for (size_t i = 0; i < DDP_COUNT_OF(rules); i++) {
        const struct rule *rule = &rules[i];
        const bool open = line.alg == NULL || line.to == ANY_BYTES || rule->bytes_max > line.to;
        if (!open || !is_about(rule, query->coll, query->ranks, query->distance) ||
            !has(query, rule->need))
            continue;
        add_rule(rule, &line, out);
        if (rule->bytes_max == ANY_BYTES && rule->need != LIBRARY)
            break;
    }
    add_line(&line, out);
    if (line.alg == NULL)
        ddp_strbuf_add(out, "  nothing can do it\n");
}
