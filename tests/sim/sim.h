/* ddpsim: the shipped algorithms over the shipped backend mpi, under SimGrid's SMPI. Its ranks are
 * contexts of one process that take turns, so they share the variables of this program, and time is
 * the simulator's: that of the network alone, computation takes none. */
#ifndef DDP_TEST_SIM_H
#define DDP_TEST_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"
#include "coll/coll.h"
#include "coll/sparse_coll.h"

/* What was asked for: "name=value" words. Sizes: of the full buffer, of the gradient. */
struct sim_options {
    const char *mode, *collective, *algorithm; /* NULL: all of them */
    size_t bytes;
    size_t elements;
    double density;
    bool spoil; /* a result of rank 1, before anybody looks at it */
};

/* Between the first rank and the last: half a round trip of 4 bytes, and a byte more. */
struct sim_link {
    double alpha_s, beta_s;
};

/* A rank. */
struct sim {
    struct ddp_comm *comm;
    const struct sim_options *options;
    struct sim_link link;
};

/* Lets all ranks go on at one simulated time. */
int sim_start(struct sim *sim, struct ddp_err *err);
/* Notes that this rank is through. *seconds: on rank 0 the time since sim_start until the last rank
 * was; *wire_bytes: the most that a rank has sent since. Collective. */
int sim_end(struct sim *sim, double *seconds, double *wire_bytes, struct ddp_err *err);
/* Do all ranks have what rank 0 has at data[bytes]? */
int sim_same(struct sim *sim, const void *data, size_t bytes, struct ddp_err *err);

/* Says that the algorithm was left out, and why. */
void sim_leave_out(const struct sim *sim, const char *algorithm, const struct ddp_err *why);

/* One line of JSON on stdout for each algorithm; what cannot run here is left out. When none ran it
 * is an error. */
int sim_dense(struct sim *sim, struct ddp_err *err);
int sim_sparse(struct sim *sim, struct ddp_err *err);

#endif
