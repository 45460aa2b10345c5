/* The table of rules by which `auto` chooses, and the printed form of this table. */
#include "coll/coll_auto.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "comm/hosts.h"
#include "comm/shm/comm_shm.h"

/* The requirement of a rule (a row of the table). */
enum need {
    ONE_RANK,
    OVERSUBSCRIBED, /* shared memory, and more ranks than cores */
    SHARED,         /* shared memory */
    REGISTERED,     /* both buffers in registered shared memory */
    LIBRARY,        /* the backend's library, which may refuse an element type */
    HOSTS,          /* several hosts, and shared memory inside each host */
    ALONE,          /* Open MPI, and one rank per host */
    MESSAGES
};

#define ANY_BYTES SIZE_MAX
#define ANY_RANKS INT_MAX

/* A row of the table. `auto` uses the first row that fits the call and whose algorithm supports the
 * call. A row fits if `need` is met, if the message has at most bytes_max bytes
 * (ddp_coll_message_bytes), and if there are at most ranks_max ranks. All thresholds of this file
 * come from timings (results/notes/collectives.md).
 *
 * "flat" takes one step. It is neither zero-copy like "direct" (registered memory) nor pipelined
 * like "staged" (private memory), so it is faster only for small messages. With more ranks than
 * cores, the ranks of a core take turns in each step. Every step then takes long, so flat with its
 * single step is faster up to larger sizes. For broadcast, gather, scatter and send-recv the limits
 * are nevertheless the same with and without oversubscription.
 *
 * No row uses all-reduce "rd" or "tree". Users can choose them with --algorithm. rd takes about
 * half the steps of "rhd", but sends more bytes, so it could be faster only for messages of a few
 * KiB. No timings on a network show up to which size rd is faster. Across hosts tree was slower
 * than "ring" at the sizes for which `auto` uses ring (results/notes/auto-across-hosts.md). */
struct rule {
    enum ddp_coll coll;
    enum need need;
    int ranks_max;
    size_t bytes_max;
    const struct ddp_coll_alg *alg;
    const char *why;
};

static const char why_self[] = "one rank, so at most a copy is needed";
static const char why_flat[] = "one step; the extra copies are short";
static const char why_oversubscribed[] =
    "one step; in a second step ranks would wait for their turn on a core";
static const char why_direct[] = "zero-copy: every byte moves once";
static const char why_staged[] =
    "private buffers: copies through ring buffers in shared memory, pipelined";
static const char why_native[] = "the library is optimised for the network";
static const char why_few_steps[] = "few steps, which decide the time of small messages";
static const char why_few_bytes[] = "few bytes per rank, which decide the time of large messages";
static const char why_hosts[] = "shared memory inside a host, messages between one rank per host";
static const char why_alone[] =
    "one rank per host: all links work at the same time and carry equal numbers of bytes";
static const char why_only[] = "messages: any backend, any memory";

#define ROW(coll, need, bytes_max, symbol, why)                                                    \
    {                                                                                              \
        coll, need, ANY_RANKS, bytes_max, &ddp_alg_##symbol, why                                   \
    }
#define SELF(coll, symbol)   ROW(coll, ONE_RANK, ANY_BYTES, symbol##_self, why_self)
#define NATIVE(coll, symbol) ROW(coll, LIBRARY, ANY_BYTES, symbol##_native, why_native)
#define LAST(coll, symbol)   ROW(coll, MESSAGES, ANY_BYTES, symbol, why_only)

/* Across hosts with several ranks each, all-reduces of up to this size use the library. Longer
 * all-reduces use "hier", which sends the fewest bytes between hosts. The timings used hosts that
 * were simulated on shared cores, so they do not show how long hier waits for short messages on
 * real hosts (results/notes/collectives.md). */
#define BETWEEN_HOSTS ((size_t)512 << 10)

/* Across 2 to 4 hosts with one rank each, "ring" is faster than Open MPI's all-reduce for messages
 * above this size. Across 8 hosts, and under MPICH, ring is not clearly faster. The hosts were
 * simulated on 2 shared cores, so the rule is untested on real hosts
 * (results/notes/auto-across-hosts.md). */
#define ALONE_NATIVE_MAX ((size_t)2 << 20)
#define ALONE_RANKS_MAX  4
#define ALONE_ROW(bytes_max, symbol, why)                                                          \
    {                                                                                              \
        DDP_ALLREDUCE, ALONE, ALONE_RANKS_MAX, bytes_max, &ddp_alg_##symbol, why                   \
    }

/* SHARED_ROWS: the rows of a collective for shared memory. flat is used up to registered_max bytes
 * in registered memory and up to private_max bytes in private memory.
 *
 * SHM_ROWS: all rows of a collective, except the rows whose need is MESSAGES. With more ranks than
 * cores, flat is used up to oversubscribed_max bytes. */
#define SHARED_ROWS(coll, symbol, registered_max, private_max)                                     \
    ROW(coll, SHARED, registered_max, symbol##_flat, why_flat),                                    \
        ROW(coll, REGISTERED, ANY_BYTES, symbol##_direct, why_direct),                             \
        ROW(coll, SHARED, private_max, symbol##_flat, why_flat),                                   \
        ROW(coll, SHARED, ANY_BYTES, symbol##_staged, why_staged)
#define SHM_ROWS(coll, symbol, registered_max, private_max, oversubscribed_max)                    \
    SELF(coll, symbol),                                                                            \
        ROW(coll, OVERSUBSCRIBED, oversubscribed_max, symbol##_flat, why_oversubscribed),          \
        SHARED_ROWS(coll, symbol, registered_max, private_max), NATIVE(coll, symbol)

static const struct rule rules[] = {
    SELF(DDP_ALLREDUCE, allreduce),
    {DDP_ALLREDUCE, OVERSUBSCRIBED, 8, 8 << 10, &ddp_alg_allreduce_flat, why_oversubscribed},
    ROW(DDP_ALLREDUCE, OVERSUBSCRIBED, 4 << 10, allreduce_flat, why_oversubscribed),
    SHARED_ROWS(DDP_ALLREDUCE, allreduce, 512, 1024),
    ROW(DDP_ALLREDUCE, LIBRARY, BETWEEN_HOSTS, allreduce_native, why_native),
    ROW(DDP_ALLREDUCE, HOSTS, ANY_BYTES, allreduce_hier, why_hosts),
    ROW(DDP_ALLREDUCE, LIBRARY, ALONE_NATIVE_MAX, allreduce_native, why_native),
    ALONE_ROW(16 << 10, allreduce_rhd, why_few_steps),
    ALONE_ROW(ANY_BYTES, allreduce_ring, why_alone),
    NATIVE(DDP_ALLREDUCE, allreduce),
    ROW(DDP_ALLREDUCE, MESSAGES, 16 << 10, allreduce_rhd, why_few_steps),
    ROW(DDP_ALLREDUCE, MESSAGES, ANY_BYTES, allreduce_ring, why_few_bytes),
    SHM_ROWS(DDP_REDUCE_SCATTER, reduce_scatter, 1 << 10, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_REDUCE_SCATTER, reduce_scatter_ring),
    SHM_ROWS(DDP_ALL_GATHER, all_gather, 128, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_ALL_GATHER, all_gather_ring),
    SHM_ROWS(DDP_BROADCAST, broadcast, 1 << 10, DDP_SHM_SLOT_BYTES, 1 << 10),
    ROW(DDP_BROADCAST, MESSAGES, 64 << 10, broadcast_binomial, why_few_steps),
    ROW(DDP_BROADCAST, MESSAGES, ANY_BYTES, broadcast_scatter_ring, why_few_bytes),
    SHM_ROWS(DDP_REDUCE, reduce, 1 << 10, DDP_SHM_SLOT_BYTES, 4 << 10),
    LAST(DDP_REDUCE, reduce_binomial),
    SHM_ROWS(DDP_ALL_TO_ALL, all_to_all, 128, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_ALL_TO_ALL, all_to_all_pairwise),
    /* These are not SHM_ROWS: in private memory MPI libraries are faster than staged, because they
     * copy each part once (results/notes/collectives.md). */
    SELF(DDP_ALL_TO_ALL_V, all_to_all_v),
    ROW(DDP_ALL_TO_ALL_V, OVERSUBSCRIBED, DDP_SHM_SLOT_BYTES, all_to_all_v_flat,
        why_oversubscribed),
    ROW(DDP_ALL_TO_ALL_V, SHARED, 128, all_to_all_v_flat, why_flat),
    ROW(DDP_ALL_TO_ALL_V, REGISTERED, ANY_BYTES, all_to_all_v_direct, why_direct),
    ROW(DDP_ALL_TO_ALL_V, SHARED, DDP_SHM_SLOT_BYTES, all_to_all_v_flat, why_flat),
    NATIVE(DDP_ALL_TO_ALL_V, all_to_all_v),
    ROW(DDP_ALL_TO_ALL_V, SHARED, ANY_BYTES, all_to_all_v_staged, why_staged),
    LAST(DDP_ALL_TO_ALL_V, all_to_all_v_pairwise),
    SHM_ROWS(DDP_ALL_GATHER_V, all_gather_v, 128, DDP_SHM_SLOT_BYTES, DDP_SHM_SLOT_BYTES),
    LAST(DDP_ALL_GATHER_V, all_gather_v_pairwise),
    SHM_ROWS(DDP_REDUCE_SCATTER_V, reduce_scatter_v, 1 << 10, DDP_SHM_SLOT_BYTES,
             DDP_SHM_SLOT_BYTES),
    LAST(DDP_REDUCE_SCATTER_V, reduce_scatter_v_pairwise),
    SHM_ROWS(DDP_GATHER, gather, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_GATHER, gather_binomial),
    SHM_ROWS(DDP_SCATTER, scatter, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_SCATTER, scatter_binomial),
    SHM_ROWS(DDP_SEND_RECV, send_recv, 128, DDP_SHM_SLOT_BYTES, 128),
    LAST(DDP_SEND_RECV, send_recv_p2p),
    SELF(DDP_BARRIER, barrier),
    ROW(DDP_BARRIER, SHARED, ANY_BYTES, barrier_flags, "one step"),
    NATIVE(DDP_BARRIER, barrier),
    LAST(DDP_BARRIER, barrier_dissemination),
};

/* True if the row is for this collective and number of ranks. Does not check the size. */
static bool is_about(const struct rule *rule, enum ddp_coll coll, int ranks)
{
    return rule->coll == coll && ranks <= rule->ranks_max;
}

static bool is_open_mpi(const struct ddp_backend *backend)
{
    const char *library = backend->library != NULL ? backend->library() : NULL;
    return library != NULL && strncmp(library, "Open MPI", strlen("Open MPI")) == 0;
}

/* True if the call does not meet the requirement of a row. Checks only those requirements that
 * ddp_coll_supports does not check. */
static bool lacks(const struct ddp_comm *comm, const struct ddp_coll_shape *shape, enum need need)
{
    if (need == REGISTERED)
        return !shape->registered;
    if (need == OVERSUBSCRIBED)
        return comm->shm == NULL || !comm->shm->oversubscribed;
    return need == ALONE &&
           (comm->hosts == NULL || comm->hosts->count < comm->size || !is_open_mpi(comm->backend));
}

/* Returns the algorithm of the first row that fits the call. If `own` is true, skips the
 * collectives of the backend's library. */
static const struct ddp_coll_alg *choose(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, bool own,
                                         struct ddp_err *err)
{
    const size_t bytes =
        ddp_coll_message_bytes(shape->coll, comm->size, shape->count, shape->dtype);
    const unsigned caps = comm->backend->caps;
    struct ddp_err reason = DDP_ERR_INIT;
    bool refused = false;

    for (size_t i = 0; i < DDP_COUNT_OF(rules); i++) {
        if (!is_about(&rules[i], shape->coll, comm->size) || bytes > rules[i].bytes_max ||
            lacks(comm, shape, rules[i].need) || (own && rules[i].need == LIBRARY))
            continue;
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_coll_supports(rules[i].alg, comm, shape, &why) == 0)
            return rules[i].alg;
        /* The error shows why the last row was refused, because the last row is the most general.
         * But if the backend has only library collectives, the library's reason is more helpful. */
        if (!refused)
            reason = why;
        refused |= rules[i].need == LIBRARY && (caps & DDP_CAP_NATIVE) && !(caps & DDP_CAP_P2P);
    }
    ddp_fail(err, DDP_EUNAVAIL, "no algorithm for %s on backend '%s'%s%s",
             ddp_coll_name(shape->coll), comm->backend->name, reason.code != 0 ? ": " : "",
             reason.text);
    return NULL;
}

const struct ddp_coll_alg *ddp_coll_auto(const struct ddp_comm *comm,
                                         const struct ddp_coll_shape *shape, struct ddp_err *err)
{
    return choose(comm, shape, false, err);
}

const struct ddp_coll_alg *ddp_coll_auto_own(const struct ddp_comm *comm,
                                             const struct ddp_coll_shape *shape,
                                             struct ddp_err *err)
{
    return choose(comm, shape, true, err);
}

static bool has(const struct ddp_auto_query *query, enum need need)
{
    const unsigned caps = query->backend->caps;
    const bool several = query->hosts > 1 || query->world_hosts > 1;
    const unsigned shares = DDP_CAP_MAP | (several ? 0 : DDP_CAP_HOSTS);
    switch (need) {
    case ONE_RANK:
        return query->ranks == 1;
    case OVERSUBSCRIBED:
        return (caps & shares) != 0 && query->oversubscribed;
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

/* One printed line. It stands for consecutive rows with the same algorithm. */
struct line {
    const struct ddp_coll_alg *alg; /* NULL: no row yet */
    const char *why;
    size_t from, to; /* message sizes in bytes */
    bool otherwise;  /* used if the algorithm of the line before refuses the call */
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
                    line->otherwise ? "if the line above refuses the call: " : "", line->why);
}

/* Adds a row to the current line, or prints that line and starts a new one. A library may refuse
 * calls of any size, so the rows after the library's row for all sizes start again at size 0. */
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

    char hosts[32] = "";
    if (query->hosts > 1)
        snprintf(hosts, sizeof hosts, " on %d hosts", query->hosts);
    ddp_strbuf_addf(out, "auto of %s: backend %s, %d rank%s%s, %s memory%s\n",
                    ddp_coll_name(query->coll), query->backend->name, query->ranks,
                    query->ranks == 1 ? "" : "s", hosts,
                    query->registered ? "registered" : "private",
                    has(query, OVERSUBSCRIBED) ? ", more ranks than cores" : "");
    for (size_t i = 0; i < DDP_COUNT_OF(rules); i++) {
        const struct rule *rule = &rules[i];
        const bool open = line.alg == NULL || line.to == ANY_BYTES || rule->bytes_max > line.to;
        if (!open || !is_about(rule, query->coll, query->ranks) || !has(query, rule->need))
            continue;
        add_rule(rule, &line, out);
        if (rule->bytes_max == ANY_BYTES && rule->need != LIBRARY)
            break;
    }
    add_line(&line, out);
    if (line.alg == NULL)
        ddp_strbuf_add(out, "  no algorithm can run this collective\n");
}
