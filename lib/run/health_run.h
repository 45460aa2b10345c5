/* The job of `ddpbench health`. In several passes, it measures pairs of hosts (or of ranks, on one
 * host), and a computation and a memory copy in each rank. Then it computes the verdict
 * (record/health_judge.h). */
#ifndef DDP_RUN_HEALTH_RUN_H
#define DDP_RUN_HEALTH_RUN_H

#include "record/stored.h"
#include "run/command.h"

/* The exit code of a process that an outside launcher has started. JOB: rank 0 exits with the code
 * of the verdict, and the other ranks with 0. HOST: a rank exits with 10 if a finding blames
 * its host or all hosts, and otherwise with 0. A finding about a link, or about one of two hosts,
 * blames no host. */
enum ddp_health_exit { DDP_HEALTH_EXIT_JOB, DDP_HEALTH_EXIT_HOST };

struct ddp_health_values {
    struct ddp_world_options world; /* must be first */
    uint64_t size;                  /* bytes of a message of the bandwidth measurement */
    double max_time_s;              /* of all passes; the first passes may take longer */
    double min_effect_percent, min_latency_us, must_find_percent;
    const char *reference;     /* file, or NULL */
    int exit_code;             /* enum ddp_health_exit */
    struct ddp_stored *stored; /* the reference; prepare() reads it in the collector */
};

extern const struct ddp_job ddp_health_job;

#endif
