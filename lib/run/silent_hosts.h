/* Finds out which hosts no longer answer when a deadline has expired, so that the message can name
 * them.
 *
 * When the run begins, rank 0 asks every other host whether it answers (ddp_nic_answers). The other
 * ranks ask only the host of rank 0, so that the number of questions is proportional to the number
 * of ranks. When a deadline expires, a rank asks the same hosts again, except those that did not
 * answer. A host that answered at the beginning and no longer answers has probably lost its link,
 * or is down. */
#ifndef DDP_RUN_SILENT_HOSTS_H
#define DDP_RUN_SILENT_HOSTS_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm.h"
#include "record/record.h"

struct ddp_host_watch;

/* Asks the hosts. The array `hosts` [world->size] holds the host of each rank. ddp_comm_find_nic
 * must have been called before. *out becomes NULL if this rank asks no host, or if no host answers.
 * Collective. */
int ddp_host_watch_open(struct ddp_comm *world, const struct ddp_host *hosts,
                        struct ddp_host_watch **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Asks the hosts again. Writes, for example, "host node3 (rank 2) no longer answers" and returns
 * true. Returns false if all hosts that answered at the beginning answer now, or if w is NULL.
 * Takes at most DDP_HOST_WATCH_NS. Any thread may call this function. */
#define DDP_HOST_WATCH_NS 300000000
bool ddp_host_watch_report(const struct ddp_host_watch *w, char *out, size_t out_bytes);
void ddp_host_watch_close(struct ddp_host_watch *w);

#endif
