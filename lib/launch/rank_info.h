/* The place of a rank in its job. */
#ifndef DDP_LAUNCH_RANK_INFO_H
#define DDP_LAUNCH_RANK_INFO_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A rank's number and the counts of ranks. Our own launcher sets the members. Under an outside
 * launcher, ddp_launcher_detect reads them from the launcher's environment variables. */
struct ddp_rank_info {
    int rank, size;             /* in the world */
    int local_rank, local_size; /* on this host */
    bool oversubscribed; /* more local ranks than usable cores: waits yield instead of spinning */
    int segment_fd;      /* memory file of our launcher's shared segment; -1: none */
    /* Address of the segment in this process, or NULL. Ranks that are threads share one mapping. */
    void *segment;
};

#ifdef __cplusplus
}
#endif
#endif
