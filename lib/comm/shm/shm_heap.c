/* Registered memory of the shm backend. The heaps of all ranks lie at a constant distance and have
 * the same blocks at the same offsets. The address of a block in a peer's heap is therefore the
 * address in this rank's heap plus a constant. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/fault.h"
#include "base/mem.h"
#include "base/unit.h"
#include "comm/shm/shm_impl.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

#define PAGE              4096u
#define COLLAPSE_ATTEMPTS 4
/* Blocks of this size or more are aligned to huge pages, as comm.h requires. */
#define HUGE_FROM_BYTES (4u << 20)
/* A freed block of this size or more gives its pages back to the kernel. For a smaller block, the
 * system call would cost more than it saves. */
#define GIVE_BACK_FROM_BYTES (1u << 20)

void ddp_shm_heap_init(struct ddp_shm_heap *heap, unsigned char *base, size_t bytes)
{
    *heap = (struct ddp_shm_heap){.base = base, .bytes = bytes};
}

static void give_back(const struct ddp_shm_heap *heap, const struct ddp_shm_block *block)
{
    if (block->bytes >= GIVE_BACK_FROM_BYTES)
        (void)madvise(heap->base + block->offset, block->bytes, MADV_REMOVE);
}

void ddp_shm_heap_release(struct ddp_shm_heap *heap)
{
    for (size_t i = 0; i < heap->count; i++)
        give_back(heap, &heap->blocks[i]);
    free(heap->blocks);
    heap->blocks = NULL;
    heap->count = heap->capacity = 0;
}

/* Finds the first gap of at least `bytes` bytes. *offset becomes the offset of the new block, and
 * *index becomes the position of this block in the list. Returns false if there is no such gap. */
static bool find_gap(const struct ddp_shm_heap *heap, size_t bytes, size_t align, size_t *index,
                     size_t *offset)
{
    size_t start = 0;
    for (size_t i = 0; i <= heap->count; i++) {
        size_t end = i < heap->count ? heap->blocks[i].offset : heap->bytes;
        size_t at = (start + align - 1) / align * align;
        if (at <= end && bytes <= end - at) {
            *index = i;
            *offset = at;
            return true;
        }
        if (i < heap->count)
            start = heap->blocks[i].offset + heap->blocks[i].bytes;
    }
    return false;
}

static int heap_take(struct ddp_shm_heap *heap, size_t wanted, struct ddp_shm_block *out,
                     struct ddp_err *err)
{
    size_t unit = wanted >= HUGE_FROM_BYTES ? DDP_SEGMENT_HUGE : PAGE;
    size_t index = 0, offset = 0;
    bool fits = wanted <= heap->bytes;
    size_t bytes = fits ? (DDP_MAX(wanted, (size_t)1) + unit - 1) / unit * unit : 0;
    if (!fits || !find_gap(heap, bytes, unit, &index, &offset)) {
        size_t used = 0;
        for (size_t i = 0; i < heap->count; i++)
            used += heap->blocks[i].bytes;
        char want[32], have[32], all[32];
        ddp_format_size(wanted, want, sizeof want);
        ddp_format_size(used, have, sizeof have);
        ddp_format_size(heap->bytes, all, sizeof all);
        return ddp_fail(
            err, DDP_ENOMEM,
            "cannot allocate %s of registered memory: %s of the %s of a rank are in use", want,
            have, all);
    }
    if (heap->count == heap->capacity) {
        size_t capacity = heap->capacity * 2 + 16;
        void *grown = ddp_realloc_array(heap->blocks, capacity, sizeof *heap->blocks);
        if (grown == NULL)
            return ddp_fail_memory(err, capacity, sizeof *heap->blocks, __func__);
        heap->blocks = grown;
        heap->capacity = capacity;
    }
    memmove(heap->blocks + index + 1, heap->blocks + index,
            (heap->count - index) * sizeof *heap->blocks);
    heap->blocks[index] = (struct ddp_shm_block){.offset = offset, .bytes = bytes};
    heap->count++;
    *out = heap->blocks[index];
    return 0;
}

/* Frees the block at `offset`. Does nothing if no block begins at `offset`, which is a mistake of
 * the caller. */
static void heap_give(struct ddp_shm_heap *heap, size_t offset)
{
    size_t i = 0;
    while (i < heap->count && heap->blocks[i].offset != offset)
        i++;
    if (i == heap->count)
        return;
    give_back(heap, &heap->blocks[i]);
    heap->count--;
    memmove(heap->blocks + i, heap->blocks + i + 1, (heap->count - i) * sizeof *heap->blocks);
}

/* Touches all pages of a new block. The owner touches its pages itself, so that the kernel places
 * the memory near the owner's core. Most Linux distributions disable huge pages for shared memory,
 * which makes large messages slower (results/notes/shared-memory.md). MADV_COLLAPSE makes huge
 * pages on request. MADV_COLLAPSE needs one touched page in each huge page. The last loop touches
 * every ordinary page, in case MADV_COLLAPSE failed or the block is too small for huge pages. */
static void touch(unsigned char *start, size_t bytes)
{
    volatile unsigned char *at = start;
    if (bytes % DDP_SEGMENT_HUGE == 0) {
        for (size_t i = 0; i < bytes; i += DDP_SEGMENT_HUGE)
            at[i] = 0;
        /* EAGAIN means that a page was busy, so try again. */
        for (int attempt = 0; attempt < COLLAPSE_ATTEMPTS; attempt++) {
            if (madvise(start, bytes, MADV_COLLAPSE) == 0 || errno != EAGAIN)
                break;
        }
    }
    for (size_t i = 0; i < bytes; i += PAGE)
        at[i] = 0;
}

/* The result of an allocation on one rank. If the bytes or offsets of two ranks differ, the ranks
 * did not make the same calls. */
struct claim {
    int64_t code;
    uint64_t offset, bytes;
};

static int check_claims(const struct ddp_comm *comm, const struct claim *mine,
                        const struct claim *all, struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        if (all[r].bytes != mine->bytes)
            return ddp_fail(err, DDP_EMISMATCH,
                            "rank %d allocates %llu bytes, but rank %d allocates %llu",
                            comm->world_rank[comm->rank], (unsigned long long)mine->bytes,
                            comm->world_rank[r], (unsigned long long)all[r].bytes);
        if (all[r].code == 0 && mine->code == 0 && all[r].offset != mine->offset)
            return ddp_fail(err, DDP_EMISMATCH,
                            "ranks %d and %d allocated or freed in a different order",
                            comm->world_rank[comm->rank], comm->world_rank[r]);
        if (all[r].code != 0)
            return ddp_fail(err, (int)all[r].code,
                            "rank %d cannot allocate %llu bytes of registered memory",
                            comm->world_rank[r], (unsigned long long)mine->bytes);
    }
    return 0;
}

int ddp_shm_alloc(struct ddp_comm *comm, size_t bytes, void **out, struct ddp_err *err)
{
    struct ddp_shm_heap *heap = &ddp_shm_state_of(comm)->world->heap;
    struct ddp_shm_block block = {0};
    struct claim *all;
    DDP_TRY(ddp_comm_abort_if(comm, DDP_NEW(&all, (size_t)comm->size, err)));
    struct claim mine = {.bytes = bytes};
    mine.code = DDP_FAULT(ALLOC, comm->rank_info.rank, err);
    if (mine.code == 0)
        mine.code = heap_take(heap, bytes, &block, err);
    mine.offset = block.offset;
    if (mine.code == 0)
        touch(heap->base + block.offset, block.bytes);

    int rc = comm->backend->exchange(comm, &mine, all, sizeof mine, err);
    if (rc == 0)
        rc = check_claims(comm, &mine, all, err);
    free(all);
    if (rc != 0 && mine.code == 0)
        heap_give(heap, block.offset);
    if (rc == 0)
        *out = heap->base + block.offset;
    return rc;
}

void ddp_shm_free(struct ddp_comm *comm, void *ptr)
{
    struct ddp_shm_heap *heap = &ddp_shm_state_of(comm)->world->heap;
    heap_give(heap, (size_t)((unsigned char *)ptr - heap->base));
}

void *ddp_shm_map(struct ddp_comm *comm, int peer, const void *ptr)
{
    const struct ddp_shm_world *world = ddp_shm_state_of(comm)->world;
    uintptr_t offset = (uintptr_t)ptr - (uintptr_t)world->heap.base;
    if (offset >= world->heap.bytes)
        return NULL;
    return ddp_segment_heap_of(world->segment, comm->world_rank[peer]) + offset;
}
