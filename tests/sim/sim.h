/* ddpsim runs the shipped algorithms over the shipped backend mpi, under SimGrid's SMPI. Its ranks
 * are contexts of one process that take turns, so they share the variables of this program. Time is
 * simulated: only the network takes time, computation does not. */
#ifndef DDP_TEST_SIM_H
#define DDP_TEST_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "bench/split_table.h"
#include "coll/coll.h"
#include "coll/sparse/sparse_coll.h"

/* The options, from "name=value" arguments. Sizes are those of the full buffer or of the gradient.
 */
struct sim_options {
    const char *mode, *collective, *algorithm; /* NULL: all */
    size_t bytes;
    size_t elements;
    double density;
    struct ddp_split split; /* of the collectives with a split */
    bool spoil;             /* make a result of rank 1 wrong before it is verified */
};

/* The link between the first and the last rank: half a round trip of 4 bytes, and the time per
 * further byte. */
struct sim_link {
    double alpha_s, beta_s;
};

/* The state of one rank. */
struct sim {
    struct ddp_comm *comm;
    const struct sim_options *options;
    struct sim_link link;
};

/* Lets all ranks continue at the same simulated time. */
int sim_start(struct sim *sim, struct ddp_err *err);
/* Records that this rank has finished. *seconds: on rank 0 the time from sim_start until the last
 * rank had finished. *wire_bytes: the largest number of bytes that a rank has sent since then.
 * Collective. */
int sim_end(struct sim *sim, double *seconds, double *wire_bytes, struct ddp_err *err);
/* Checks that data[bytes] is the same on all ranks as on rank 0. */
int sim_same(struct sim *sim, const void *data, size_t bytes, struct ddp_err *err);

/* Reports that the algorithm was left out, and why. */
void sim_leave_out(const struct sim *sim, const char *algorithm, const struct ddp_err *why);

/* Runs the algorithms and prints one line of JSON per algorithm to stdout. Algorithms that cannot
 * run here are left out. Returns an error if none ran. */
int sim_dense(struct sim *sim, struct ddp_err *err);
int sim_sparse(struct sim *sim, struct ddp_err *err);

#endif
