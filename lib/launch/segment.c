#include "launch/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unit.h"

#define PAGE 4096u
/* Extra room in each heap, because each block is rounded up to whole (huge) pages. */
#define HEAP_SLACK_BYTES (128u << 20)

static uint64_t round_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* Returns the distance between the heaps of two neighbouring ranks, which is an odd number of huge
 * pages. The copies of a buffer lie at the same offset in all heaps. AMD's L1 data cache
 * distinguishes the lines of a set by a hash of the address bits 12 to 27 (Lipp et al., "Take A
 * Way", 2020). If the hashes of two buffers agree, the lines of the buffers evict each other. This
 * happens for buffers that are 256 MiB apart. Small all-reduces are then much slower
 * (results/notes/shared-memory.md). If the distance is an odd number of huge pages, only the heaps
 * of ranks that are 128 apart have this problem. */
static uint64_t stride_of(uint64_t heap_bytes)
{
    return round_up(2 * heap_bytes + HEAP_SLACK_BYTES, DDP_SEGMENT_HUGE) | DDP_SEGMENT_HUGE;
}

/* Computes the offsets of all parts in the order shown in segment.h. Returns false if the segment
 * would be too large. */
static bool lay_out(struct ddp_segment *s, int ranks, uint64_t heap_bytes)
{
    uint64_t n = (uint64_t)ranks;
    if (heap_bytes > UINT64_C(1) << 48)
        return false;
    s->magic = DDP_SEGMENT_MAGIC;
    s->ranks = ranks;
    s->ranks_offset = round_up(sizeof *s, PAGE);
    s->channels_offset = round_up(s->ranks_offset + n * sizeof(struct ddp_segment_rank), PAGE);
    s->channel_stride = DDP_SHM_FLAG_AREAS * ddp_segment_area_bytes(ranks) +
                        n * 2 * DDP_SHM_SLOT_BYTES + n * DDP_SHM_RING_SLOTS * DDP_SHM_RING_BYTES;
    s->pipes_offset = s->channels_offset + DDP_SEGMENT_CHANNELS * s->channel_stride;
    s->heap_offset = round_up(s->pipes_offset + n * n * DDP_PIPE_STRIDE, DDP_SEGMENT_HUGE);
    s->heap_stride = stride_of(heap_bytes);
    s->total_bytes = s->heap_offset + n * s->heap_stride;
    return s->total_bytes < UINT64_C(1) << 62;
}

static int make_file(uint64_t bytes, struct ddp_err *err)
{
    int fd = -1;
#ifdef MFD_NOEXEC_SEAL
    fd = memfd_create("ddpbench", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
#endif
    if (fd < 0)
        fd = memfd_create("ddpbench", MFD_CLOEXEC);
    if (fd < 0)
        return ddp_fail_errno(err, errno == ENOMEM ? DDP_ENOMEM : DDP_EUNAVAIL, errno,
                              "cannot create shared memory (memfd)");
    /* If the size exceeded the file size limit, ftruncate would raise SIGXFSZ instead of returning
     * an error. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        bytes > limit.rlim_cur) {
        close(fd);
        char want[32];
        ddp_format_size(bytes, want, sizeof want);
        ddp_fail(err, DDP_ENOMEM, "a sparse shared segment of %s exceeds the file size limit",
                 want);
        return ddp_hint(err, "raise it: ulimit -f unlimited");
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        int e = errno;
        close(fd);
        return ddp_fail_errno(err, DDP_ENOMEM, e, "cannot size the shared segment");
    }
    return fd;
}

/* Maps `total` bytes of the file at an address that is aligned to huge pages. mmap does not align
 * addresses to huge pages, so a larger address range is reserved first. Returns NULL with errno set
 * on failure. */
static struct ddp_segment *map_file(int file, size_t total)
{
    size_t room = total + DDP_SEGMENT_HUGE;
    char *base = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *start = (char *)round_up((uintptr_t)base, DDP_SEGMENT_HUGE);
    if (start > base)
        munmap(base, (size_t)(start - base));
    size_t tail = room - total - (size_t)(start - base);
    if (tail > 0)
        munmap(start + total, tail);
    if (mmap(start, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file,
             0) == MAP_FAILED) {
        int e = errno;
        munmap(start, total);
        errno = e;
        return NULL;
    }
    return (struct ddp_segment *)start;
}

/* Maps the file of a segment that has the sizes and offsets of `shape`. */
static int map_segment(int file, const struct ddp_segment *shape, struct ddp_segment **out,
                       struct ddp_err *err)
{
    struct ddp_segment *s = map_file(file, shape->total_bytes);
    if (s == NULL) {
        const int error = errno;
        char want[32];
        ddp_format_size(shape->total_bytes, want, sizeof want);
        ddp_fail_errno(err, DDP_ENOMEM, error, "cannot reserve %s of address space for %d ranks",
                       want, shape->ranks);
        ddp_hint(err,
                 "raise the limit: ulimit -v unlimited; or use smaller messages or fewer ranks");
        return DDP_ENOMEM;
    }
    /* Request huge pages. The call fails on a kernel without huge pages for shared memory, which is
     * harmless. */
    (void)madvise((char *)s + shape->heap_offset, shape->total_bytes - shape->heap_offset,
                  MADV_HUGEPAGE);
    *out = s;
    return 0;
}

int ddp_segment_create(int ranks, uint64_t heap_bytes, struct ddp_segment **out, int *fd,
                       struct ddp_err *err)
{
    char want[32];
    struct ddp_segment shape = {0};
    if (!lay_out(&shape, ranks, heap_bytes)) {
        ddp_format_size(heap_bytes, want, sizeof want);
        return ddp_fail(err, DDP_ENOMEM, "%s of registered memory for each of %d ranks is too much",
                        want, ranks);
    }
    int file = make_file(shape.total_bytes, err);
    if (file < 0)
        return file;
    struct ddp_segment *s;
    const int rc = map_segment(file, &shape, &s, err);
    if (rc != 0) {
        close(file);
        return rc;
    }
    (void)lay_out(s, ranks, heap_bytes);
    for (int r = 0; r < ranks; r++)
        atomic_init(&ddp_segment_rank_of(s, r)->world_rank, r);
    *out = s;
    *fd = file;
    return 0;
}

int ddp_segment_attach(int fd, int ranks, struct ddp_segment **out, struct ddp_err *err)
{
    struct ddp_segment shape;
    struct stat file;
    if (fstat(fd, &file) != 0 || pread(fd, &shape, sizeof shape, 0) != (ssize_t)sizeof shape ||
        shape.magic != DDP_SEGMENT_MAGIC || shape.total_bytes != (uint64_t)file.st_size)
        return ddp_fail(err, DDP_EMISMATCH, "the memory file is not a shared segment of ddpbench");
    if (shape.ranks != ranks)
        return ddp_fail(err, DDP_EMISMATCH, "the shared segment has %d ranks, not %d", shape.ranks,
                        ranks);
    return map_segment(fd, &shape, out, err);
}

void ddp_segment_destroy(struct ddp_segment *segment, int fd)
{
    if (segment != NULL)
        munmap(segment, segment->total_bytes);
    if (fd >= 0)
        close(fd);
}

bool ddp_segment_abort(struct ddp_segment *segment, int culprit, int setter, int code)
{
    uint32_t none = 0;
    uint32_t word = (uint32_t)(culprit + 1) << 8 | ((uint32_t)-code & 0xff);
    if (!atomic_compare_exchange_strong_explicit(&segment->abort_word, &none, word,
                                                 memory_order_acq_rel, memory_order_acquire))
        return false;
    atomic_store_explicit(&segment->abort_setter, setter + 1, memory_order_release);
    return true;
}

bool ddp_segment_aborted(const struct ddp_segment *segment, int *culprit, int *setter, int *code)
{
    uint32_t word = atomic_load_explicit(&segment->abort_word, memory_order_acquire);
    if (word == 0)
        return false;
    if (culprit != NULL)
        *culprit = (int)(word >> 8) - 1;
    if (setter != NULL)
        *setter = atomic_load_explicit(&segment->abort_setter, memory_order_acquire) - 1;
    if (code != NULL)
        *code = -(int)(word & 0xff);
    return true;
}

void ddp_segment_describe(const struct ddp_segment *segment, int rank, char *out, size_t out_bytes)
{
    const struct ddp_segment_rank *block = ddp_segment_rank_of(segment, rank);
    uint64_t seq;
    ddp_flight_describe(&block->flight, out, out_bytes);
    if (atomic_load_explicit(&block->progress_used, memory_order_acquire) == 0 ||
        !ddp_flight_busy(&block->progress, &seq))
        return;
    char more[256];
    ddp_flight_describe(&block->progress, more, sizeof more);
    size_t n = strlen(out);
    snprintf(out + n, out_bytes - n, ", its progress thread in %s", more);
}
