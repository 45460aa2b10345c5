/* Makes the shared memory of a host. The host's lowest rank makes a segment, and the host's other
 * ranks open it. All ranks of the world exchange their failures, so that either all hosts share
 * memory or no host does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "comm/backend.h"
#include "comm/hosts.h"
#include "launch/segment.h"

/* A rank's message about the segment that the rank made or opened. `code` is 0 or the error code,
 * and `text` is the error's text. */
struct offer {
    int32_t code, pid, fd;
    uint64_t device, inode;
    char text[160];
};

/* Makes the segment of this host. Only the host's lowest rank calls this function. The heap of each
 * rank reserves at least as much address space as the rank's share of the machine's memory, because
 * unused address space costs nothing. */
static void make_offer(int ranks, const struct ddp_comm_options *options,
                       const struct ddp_sysinfo *info, struct ddp_segment **segment, int *fd,
                       struct offer *offer)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct stat file = {0};
    const int64_t share = DDP_MAX(info->memory_bytes, INT64_C(1) << 30) / ranks;
    if (ranks > DDP_SHM_RANKS_MAX)
        offer->code =
            ddp_fail(&err, DDP_EUNAVAIL, "%d ranks on a host, but at most %d can share memory",
                     ranks, DDP_SHM_RANKS_MAX);
    else
        offer->code = ddp_segment_create(ranks, DDP_MAX(options->heap_bytes, (uint64_t)share),
                                         segment, fd, &err);
    if (offer->code == 0 && fstat(*fd, &file) != 0)
        offer->code = ddp_fail_errno(&err, DDP_EUNAVAIL, errno, "cannot check the memory file");
    offer->pid = (int32_t)getpid();
    offer->fd = *fd;
    offer->device = file.st_dev;
    offer->inode = file.st_ino;
    snprintf(offer->text, sizeof offer->text, "%.159s", err.text);
}

static int open_offer(const struct offer *offer, int ranks, struct ddp_segment **out,
                      struct ddp_err *err)
{
    char path[64];
    struct stat file;
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)offer->pid, (int)offer->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return ddp_fail_errno(err, DDP_EUNAVAIL, errno, "cannot open %s", path);
    int rc = 0;
    if (fstat(fd, &file) != 0 || file.st_dev != offer->device || file.st_ino != offer->inode)
        rc = ddp_fail(err, DDP_EUNAVAIL,
                      "%s belongs to another process: the ranks run in different containers", path);
    if (rc == 0)
        rc = ddp_segment_attach(fd, ranks, out, err);
    close(fd);
    return rc;
}

/* Returns the error code of the lowest rank that failed, and writes the rank's number and error
 * text to `why`. Returns 0 if no rank failed. */
static int first_failure(const struct ddp_comm *world, const struct offer *all, char *why,
                         size_t why_bytes)
{
    for (int r = 0; r < world->size; r++) {
        if (all[r].code == 0)
            continue;
        snprintf(why, why_bytes, "rank %d: %s", r, all[r].text);
        return all[r].code;
    }
    return 0;
}

/* Makes one segment for the ranks of this host. If any rank of the world cannot make or open its
 * segment, hosts->segment remains NULL and hosts->why gets the reason on all ranks of the world. */
static int make_segment(struct ddp_comm *world, const struct ddp_comm_options *options,
                        struct ddp_err *err)
{
    struct ddp_hosts *hosts = world->hosts;
    const int leader = hosts->leader[hosts->mine], n = hosts->ranks[hosts->mine];
    struct ddp_sysinfo info;
    struct ddp_segment *segment = NULL;
    struct ddp_err reason = DDP_ERR_INIT;
    struct offer mine = {.fd = -1};
    struct offer *all;
    int fd = -1;
    DDP_TRY(DDP_NEW(&all, (size_t)world->size, err));
    ddp_sysinfo_read(&info);
    if (leader == world->rank)
        make_offer(n, options, &info, &segment, &fd, &mine);
    if (segment != NULL)
        segment->oversubscribed = world->rank_info.oversubscribed;
    int rc = world->backend->exchange(world, &mine, all, sizeof mine, err);
    int refused = rc == 0 ? first_failure(world, all, hosts->why, sizeof hosts->why) : 0;
    if (rc == 0 && refused == 0) {
        if (leader != world->rank)
            mine.code = open_offer(&all[leader], n, &segment, &reason);
        snprintf(mine.text, sizeof mine.text, "%.159s", reason.text);
        rc = world->backend->exchange(world, &mine, all, sizeof mine, err);
        if (rc == 0)
            refused = first_failure(world, all, hosts->why, sizeof hosts->why);
    }
    free(all);
    if (rc != 0 || refused != 0) {
        ddp_segment_destroy(segment, fd);
        return rc;
    }
    if (fd >= 0)
        close(fd); /* the mapping keeps the file alive */
    hosts->segment = segment;
    return 0;
}

/* Opens the communicator of this host's ranks over hosts->segment. The world then uses the flight
 * recorder of this communicator. */
static int open_local(struct ddp_comm *world, const struct ddp_comm_options *options,
                      struct ddp_err *err)
{
    struct ddp_hosts *hosts = world->hosts;
    struct ddp_comm_options for_local = *options;
    struct ddp_rank_info rank_info = world->rank_info;
    rank_info.size = rank_info.local_size = hosts->ranks[hosts->mine];
    rank_info.segment = hosts->segment;
    rank_info.rank = rank_info.local_rank = hosts->local_rank[world->rank];
    for_local.heap_bytes = 0; /* the heaps exist already */
    for_local.inside_host = true;
    atomic_store(&ddp_segment_rank_of(hosts->segment, rank_info.rank)->world_rank, world->rank);
    DDP_TRY(ddp_comm_create(ddp_backend_find("shm"), &rank_info, &for_local, &hosts->local, err));
    hosts->own_flight = world->flight;
    world->flight = hosts->local->flight;
    return 0;
}

int ddp_hosts_share(struct ddp_comm *world, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    DDP_TRY(make_segment(world, options, err));
    return world->hosts->segment != NULL ? open_local(world, options, err) : 0;
}
