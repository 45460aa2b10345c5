/* The job of `ddpbench matrix`: measures latency and bandwidth between every pair of ranks or
 * hosts. */
#ifndef DDP_RUN_MATRIX_RUN_H
#define DDP_RUN_MATRIX_RUN_H

#include "run/command.h"

enum ddp_matrix_by { DDP_MATRIX_BY_RANK, DDP_MATRIX_BY_HOST };

struct ddp_matrix_values {
    struct ddp_world_options world; /* must be first */
    int by;                         /* enum ddp_matrix_by */
    uint64_t size;                  /* bytes of a message of the bandwidth measurement */
    int64_t iters, rounds;          /* rounds: 0 means the default number */
    double max_time_s;              /* of a bandwidth phase (struct ddp_pair_options) */
};

extern const struct ddp_job ddp_matrix_job;

#endif
