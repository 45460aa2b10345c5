/* Named groups of a world. The first group in the list is "world". */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "exchange/ddp_impl.h"

static void group_free(struct ddp_group *group)
{
    if (group == NULL)
        return;
    free(group->notes);
    free(group->ranks);
    free(group);
}

/* Allocates a group without a communicator. Returns NULL if memory ran out. */
static struct ddp_group *group_make(struct ddp *d, const char *name, int n)
{
    struct ddp_group *group = ddp_calloc(1, sizeof *group);
    if (group == NULL)
        return NULL;
    group->world = d;
    group->n = n;
    group->ranks = ddp_calloc((size_t)n, sizeof *group->ranks);
    group->notes = ddp_calloc((size_t)n, sizeof *group->notes);
    if (group->ranks == NULL || group->notes == NULL) {
        group_free(group);
        return NULL;
    }
    memcpy(group->name, name, strlen(name));
    return group;
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
    struct ddp_group *world = group_make(d, "world", d->comm->size);
    if (world == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a group of %d ranks", d->comm->size);
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
    struct ddp_group *group = group_make(d, name, n);
    if (group == NULL) {
        /* Without an abort the other members would wait for this rank. */
        ddp_comm_abort(d->comm, DDP_ENOMEM);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a group of %d ranks", n);
    }
    memcpy(group->ranks, ranks, (size_t)n * sizeof *ranks);
    int rc = is_member(d, ranks, n) ? ddp_comm_group(d->comm, ranks, n, &group->comm, err) : 0;
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
    /* Ranks outside the group take no part in its creation, so the members send them the result. */
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
