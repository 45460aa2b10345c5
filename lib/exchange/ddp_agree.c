/* Before a collective of ddp.h the ranks exchange notes of 24 bytes that describe their calls. If
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
        /* Use the address of rank 0's copy. It is the same on all ranks if their arrays lie at the
         * same offset of registered memory. */
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
    if (n < 0 || (n > 0 && arrays == NULL))
        return ddp_fail(err, DDP_EUSAGE, "invalid list of %d arrays%s", n,
                        n > 0 ? " that is NULL" : "");
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
