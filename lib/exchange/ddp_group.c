/* Named groups of a world. The first group in the list is "world".
 *
 * Before a collective of ddp.h the ranks exchange notes of 24 bytes that describe their calls. If
 * one rank passes a wrong argument, all ranks return an error with a message. Without the notes the
 * other ranks would wait until the deadline. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "comm/comm.h"
#include "exchange/ddp_impl.h"

static const char *kind_name(uint32_t kind)
{
    static const char *const names[DDP_NOTE_COUNT] = {
        [DDP_NOTE_BARRIER] = "barrier",
        [DDP_NOTE_GROUP] = "new_group",
        [DDP_NOTE_ALLOC] = "alloc",
        [DDP_NOTE_ALL_REDUCE] = "all_reduce",
        [DDP_NOTE_REDUCE] = "reduce",
        [DDP_NOTE_BCAST] = "bcast",
        [DDP_NOTE_ALL_GATHER] = "all_gather",
        [DDP_NOTE_REDUCE_SCATTER] = "reduce_scatter",
        [DDP_NOTE_PARAMETERS] = "all_reduce_parameters",
        [DDP_NOTE_BUCKETER] = "bucketer_create",
        [DDP_NOTE_STRATEGY] = "sync_create",
    };
    return kind < DDP_NOTE_COUNT ? names[kind] : "an unknown function";
}

/* Compares every note with the first rank's note, so that all ranks produce the same message. */
static int compare(const struct ddp_group *group, bool *same_position, struct ddp_err *err)
{
    const struct ddp_note *first = &group->notes[0];
    *same_position = true;
    for (int r = 1; r < group->n; r++) {
        const struct ddp_note *note = &group->notes[r];
        if (note->kind != first->kind)
            return ddp_fail(err, DDP_EMISMATCH, "rank %d calls %s, but rank %d calls %s",
                            group->ranks[r], kind_name(note->kind), group->ranks[0],
                            kind_name(first->kind));
        if (note->call != first->call)
            return ddp_fail(err, DDP_EMISMATCH,
                            "ranks %d and %d call %s with different sizes, types or options",
                            group->ranks[0], group->ranks[r], kind_name(note->kind));
        *same_position = *same_position && note->position == first->position;
    }
    return 0;
}

int ddp_agree(struct ddp_group *group, const struct ddp_note *mine, bool *same_position,
              struct ddp_err *err)
{
    bool same = true;
    if (group->n > 1) {
        struct ddp_err lost = DDP_ERR_INIT;
        int rc = ddp_comm_allgather_bytes(group->comm, mine, group->notes, sizeof *mine, &lost);
        if (rc != 0)
            return mine->code != 0 ? mine->code : ddp_fail(err, rc, "%s", lost.text);
    } else {
        group->notes[0] = *mine;
    }
    for (int r = 0; r < group->n; r++)
        if (group->notes[r].code != 0)
            return ddp_comm_agree(group->comm, mine->code, err);
    DDP_TRY(compare(group, &same, err));
    if (same_position != NULL)
        *same_position = same;
    return 0;
}

uint64_t ddp_digest(uint64_t digest, uint64_t value)
{
    return ddp_mix64(digest * 31 + value + 1);
}

uint64_t ddp_digest_arrays(uint64_t digest, const struct ddp_array *arrays, int n)
{
    digest = ddp_digest(digest, (uint64_t)n);
    for (int i = 0; i < n; i++)
        digest = ddp_digest(ddp_digest(digest, arrays[i].count), arrays[i].dtype);
    return digest;
}

uint64_t ddp_digest_text(uint64_t digest, const char *text)
{
    for (; *text != '\0'; text++)
        digest = ddp_digest(digest, (unsigned char)*text);
    return digest;
}

/* Adds the positions of the arrays of one dtype to a digest. ddp_coll.c may reduce these arrays as
 * one array. */
static uint64_t digest_position_of(const struct ddp_group *group, uint64_t digest,
                                   const struct ddp_array *arrays, int n, enum ddp_dtype dtype)
{
    const unsigned char *end = NULL;
    for (int i = 0; i < n; i++) {
        if (arrays[i].count == 0 || arrays[i].dtype != dtype)
            continue;
        /* Use the address of rank 0's copy. This address is the same on all ranks if the ranks'
         * arrays lie at the same offset of registered memory, and all ranks have mapped this memory
         * at the same address. */
        const void *first = ddp_comm_map(group->comm, 0, arrays[i].data);
        digest = ddp_digest(digest, (uintptr_t)first);
        digest = ddp_digest(digest, end == arrays[i].data);
        end = (unsigned char *)arrays[i].data + arrays[i].count * ddp_dtype_size(dtype);
        digest = ddp_digest(digest, ddp_comm_map(group->comm, 0, end - 1) != NULL);
    }
    return digest;
}

uint64_t ddp_digest_position(const struct ddp_group *group, uint64_t digest,
                             const struct ddp_array *arrays, int n)
{
    for (int t = 0; t < DDP_DTYPE_COUNT; t++)
        digest = digest_position_of(group, digest, arrays, n, (enum ddp_dtype)t);
    return digest;
}

int ddp_check_arrays(const struct ddp_array *arrays, int n, struct ddp_err *err)
{
    if (n < 0)
        return ddp_fail(err, DDP_EUSAGE, "the number of arrays is negative: %d", n);
    if (n > 0 && arrays == NULL)
        return ddp_fail(err, DDP_EUSAGE, "the list of %d arrays is NULL", n);
    size_t total = 0;
    for (int i = 0; i < n; i++) {
        size_t bytes;
        if ((unsigned)arrays[i].dtype >= DDP_DTYPE_COUNT)
            return ddp_fail(err, DDP_EUSAGE, "array %d has the unknown dtype %d", i,
                            (int)arrays[i].dtype);
        if (arrays[i].data == NULL && arrays[i].count > 0)
            return ddp_fail(err, DDP_EUSAGE, "array %d has %zu elements, but its data is NULL", i,
                            arrays[i].count);
        if (!ddp_mul_size(arrays[i].count, ddp_dtype_size(arrays[i].dtype), &bytes) ||
            __builtin_add_overflow(total, bytes, &total))
            return ddp_fail(err, DDP_EUSAGE,
                            "array %d has %zu elements, more than the address space holds", i,
                            arrays[i].count);
    }
    return 0;
}

static void group_free(struct ddp_group *group)
{
    if (group == NULL)
        return;
    free(group->notes);
    free(group->ranks);
    free(group);
}

/* Allocates a group without a communicator. Returns 0 or DDP_ENOMEM. */
static int group_make(struct ddp *d, const char *name, int n, struct ddp_group **out,
                      struct ddp_err *err)
{
    struct ddp_group *group;
    int rc;
    DDP_TRY(DDP_NEW(&group, 1, err));
    group->world = d;
    group->n = n;
    DDP_TRY_GOTO(DDP_NEW(&group->ranks, (size_t)n, err), err_group);
    DDP_TRY_GOTO(DDP_NEW(&group->notes, (size_t)n, err), err_group);
    memcpy(group->name, name, strlen(name));
    *out = group;
    return 0;

err_group:
    group_free(group);
    return rc;
}

static void append(struct ddp *d, struct ddp_group *group)
{
    struct ddp_group **at = &d->groups;
    while (*at != NULL)
        at = &(*at)->next;
    *at = group;
}

int ddp_group_add_world(struct ddp *d, struct ddp_err *err)
{
    struct ddp_group *world;
    DDP_TRY(group_make(d, "world", d->comm->size, &world, err));
    for (int r = 0; r < world->n; r++)
        world->ranks[r] = r;
    world->comm = d->comm;
    append(d, world);
    return 0;
}

static void release(struct ddp *d, struct ddp_group *group)
{
    ddp_watchdog_stop(group->async_watchdog);
    ddp_async_destroy(group->async);
    ddp_pack_release(group);
    if (group->comm != d->comm)
        ddp_comm_destroy(group->comm);
    group_free(group);
}

void ddp_group_release_all(struct ddp *d)
{
    while (d->groups != NULL) {
        struct ddp_group *group = d->groups;
        d->groups = group->next;
        release(d, group);
    }
}

static struct ddp_group *find(const struct ddp *d, const char *name)
{
    for (struct ddp_group *group = d->groups; name != NULL && group != NULL; group = group->next)
        if (strcmp(group->name, name) == 0)
            return group;
    return NULL;
}

static int check_new(const struct ddp *d, const char *name, const int *ranks, int n,
                     struct ddp_err *err)
{
    if (name == NULL || name[0] == '\0')
        return ddp_fail(err, DDP_EUSAGE, "the group name is empty");
    if (strlen(name) > DDP_GROUP_NAME_MAX)
        return ddp_fail(err, DDP_EUSAGE, "group name '%.80s' is longer than %d bytes", name,
                        DDP_GROUP_NAME_MAX);
    if (find(d, name) != NULL)
        return ddp_fail(err, DDP_EUSAGE, "group '%s' already exists", name);
    if (n < 1 || ranks == NULL)
        return ddp_fail(err, DDP_EUSAGE, "group '%s': invalid list of %d ranks", name, n);
    for (int i = 0; i < n; i++) {
        if (ranks[i] < 0 || ranks[i] >= d->comm->size)
            return ddp_fail(err, DDP_EUSAGE,
                            "group '%s': rank %d does not exist; the world has %d ranks", name,
                            ranks[i], d->comm->size);
        if (i > 0 && ranks[i] <= ranks[i - 1])
            return ddp_fail(err, DDP_EUSAGE, "group '%s': rank %d after rank %d is %s", name,
                            ranks[i], ranks[i - 1],
                            ranks[i] == ranks[i - 1] ? "a duplicate" : "not in ascending order");
    }
    return 0;
}

static bool is_member(const struct ddp *d, const int *ranks, int n)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] == d->comm->rank)
            return true;
    return false;
}

/* Creates the group on this rank, after all ranks agreed on the arguments. */
static int make_group(struct ddp *d, const char *name, const int *ranks, int n,
                      struct ddp_group **out, struct ddp_err *err)
{
    struct ddp_group *group;
    int rc = group_make(d, name, n, &group, err);
    if (rc != 0) {
        /* Without an abort the other members would wait for this rank. */
        ddp_comm_abort(d->comm, rc);
        return rc;
    }
    memcpy(group->ranks, ranks, (size_t)n * sizeof *ranks);
    rc = is_member(d, ranks, n) ? ddp_comm_group(d->comm, ranks, n, &group->comm, err) : 0;
    if (rc != 0) {
        group_free(group);
        return rc;
    }
    *out = group;
    return 0;
}

int ddp_new_group(struct ddp *d, const char *name, const int *ranks, int n, struct ddp_err *err)
{
    DDP_OWN_ERR(err);
    struct ddp_group *world, *group = NULL;
    struct ddp_note note = {.kind = DDP_NOTE_GROUP};
    DDP_TRY(ddp_group_enter(d, NULL, &world, err));
    note.code = check_new(d, name, ranks, n, err);
    if (note.code == 0) {
        note.call = ddp_digest_text(ddp_digest(0, (uint64_t)n), name);
        for (int i = 0; i < n; i++)
            note.call = ddp_digest(note.call, (uint64_t)ranks[i]);
    }
    DDP_TRY(ddp_agree(world, &note, NULL, err));
    int rc = make_group(d, name, ranks, n, &group, err);
    /* Only members create the communicator of the group. This call sends their result to the other
     * ranks. */
    rc = ddp_comm_agree(d->comm, rc, err);
    if (rc != 0) {
        if (group != NULL)
            release(d, group);
        return rc;
    }
    append(d, group);
    return 0;
}

struct ddp_group *ddp_get_group(struct ddp *d, const char *name)
{
    return find(d, name);
}

int ddp_group_rank(const struct ddp *d, const struct ddp_group *group)
{
    const struct ddp_comm *comm = group != NULL ? group->comm : d->comm;
    return comm != NULL ? comm->rank : -1;
}

int ddp_find_group(const struct ddp *d, const char *name, const int **ranks)
{
    const struct ddp_group *group = find(d, name);
    *ranks = group != NULL ? group->ranks : NULL;
    return group != NULL ? group->n : 0;
}

const char *ddp_list_groups(const struct ddp *d, int i)
{
    const struct ddp_group *group = i >= 0 ? d->groups : NULL;
    for (; group != NULL && i > 0; i--)
        group = group->next;
    return group != NULL ? group->name : NULL;
}

int ddp_group_enter(struct ddp *d, struct ddp_group *group, struct ddp_group **out,
                    struct ddp_err *err)
{
    if (group == NULL)
        group = d->groups;
    if (d->aborted)
        return ddp_fail(err, DDP_ELOST, "the world was ended by ddp_abort");
    if (group->comm == NULL)
        return ddp_fail(err, DDP_EUSAGE, "rank %d is not in group '%s'", d->comm->rank,
                        group->name);
    *out = group;
    return 0;
}

static void on_expire(void *arg, const char *report)
{
    const struct ddp *d = arg;
    if (d->on_lost != NULL)
        d->on_lost(d->on_lost_arg, report);
}

int ddp_group_async(struct ddp_group *group, struct ddp_err *err)
{
    if (group->async != NULL)
        return 0;
    struct ddp *d = group->world;
    DDP_TRY(ddp_async_create(group->comm, &group->async, err));
    if (d->watchdog == NULL)
        return 0;
    int rc = ddp_watchdog_start(ddp_async_flight(group->async), NULL, d->comm->timeout_ns,
                                on_expire, d, &group->async_watchdog, err);
    if (rc != 0)
        ddp_comm_abort(d->comm, rc);
    return rc;
}

bool ddp_arrays_adjacent(const struct ddp_array *arrays, int n)
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
