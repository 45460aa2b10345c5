/* Decides which rank prints an error when several processes of an outside launcher fail.
 *
 * A process that fails before the ranks are connected cannot ask the other ranks whether they print
 * the same error. The ranks of one host therefore claim a line before they print it, by binding an
 * abstract socket. The first rank that claims the line prints it. The next ranks print "the same
 * error" with their rank and host, up to DDP_RANK_ERROR_LINES ranks in all. The rest print
 * nothing. */
#ifndef DDP_RUN_RANK_ERROR_H
#define DDP_RUN_RANK_ERROR_H

#include "run/command.h"

/* Every rank except rank 0 waits this long before it prints an error, so that rank 0 prints first.
 * A rank whose error the other ranks do not know waits twice as long before it exits, because some
 * launchers end the other ranks when the first rank fails. It waits only once if world_launched.c
 * has printed the error. */
#define DDP_RANK_ERROR_DELAY_US 300000

/* If all ranks know an error, rank 0 prints it, and the other ranks wait this long before they
 * exit. The time must be long enough for rank 0 to print on a busy machine. This wait rarely
 * prolongs the job, because launchers end all ranks when rank 0 fails. */
#define DDP_RANK_ERROR_AGREED_US 1200000

/* The largest number of ranks per host that report the same error. */
#define DDP_RANK_ERROR_LINES 8

/* Returns true if an outside launcher started this process together with other processes. */
bool ddp_rank_error_is_shared(const struct ddp_app *app);
/* Claims a line. Returns how many processes of this host with the same user and parent have claimed
 * the line before, at most DDP_RANK_ERROR_LINES. The claim holds until the process ends. */
int ddp_rank_error_claim(const char *line);
/* Claims a line for all ranks of this host, so that no other rank prints it. */
void ddp_rank_error_claim_all(const char *line);
/* Returns the text to print instead of the line if ddp_rank_error_claim returned `place`, which is
 * 1 to DDP_RANK_ERROR_LINES - 1. */
const char *ddp_rank_error_same(int place);
/* Waits until all ranks of this host have called this function. Returns false if some have not
 * called it after limit_us. Returns false at once if the launcher is unknown, because then the
 * local rank is unknown too. */
bool ddp_rank_error_wait(const struct ddp_app *app, int64_t limit_us);
/* Returns true if all ranks of this host call this function with yes = true within limit_us.
 * Returns false without waiting for the limit if a rank calls it with yes = false, or if a rank
 * does not know its local rank. */
bool ddp_rank_error_vote(const struct ddp_app *app, bool yes, int64_t limit_us);
/* Prints the error on stderr, unless another rank prints the error or this rank has printed it
 * already. */
void ddp_rank_error_report(const struct ddp_app *app, struct ddp_err *err);
/* Writes "rank 1 on node17" for this process, or "a rank on node17" if the rank is unknown. */
void ddp_rank_error_origin(const struct ddp_app *app, char *out, size_t out_bytes);

#endif
