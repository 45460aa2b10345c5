/* Computes the verdict of `ddpbench health` from the measured figures. */
#ifndef DDP_RECORD_HEALTH_JUDGE_H
#define DDP_RECORD_HEALTH_JUDGE_H

#include "record/health_record.h"
#include "record/matrix_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The figures of an earlier healthy run. */
struct ddp_health_reference {
    const struct ddp_matrix *matrix;
    const struct ddp_health *health;
    /* end [ends], rank [ranks]: the end and the rank of the reference on the host of the same name.
     * NULL: the hosts differ, so each figure is compared with the median of the reference. */
    const int *end, *rank;
};

struct ddp_health_input {
    int passes; /* at least 2 */
    /* [passes]; each has the same ends. The ends are the hosts, or the ranks of one host. */
    const struct ddp_matrix *pass;
    int ranks;
    const struct ddp_health_rank *rank; /* [passes * ranks], ordered by pass */
    const int *host;                    /* [ranks] the host of each rank, from 0 */
    int hosts;
    /* [ends] speed of the network interface in Mbit/s; -1: unknown. NULL: all are unknown. If there
     * are two ends, a finding of the comparison with peers names the end with the lower speed. */
    const int64_t *nic_Mbps;
    const struct ddp_health_reference *reference; /* NULL: none */
};

/* Judges the figures. The caller has set level, min_effect, min_latency_us and must_find of *h. The
 * function sets the other members except `reference` and those of `isolate`. `level` is divided
 * equally among the figures. With a reference, it is also divided between the comparison with the
 * peers and the comparison with the reference.
 *
 * Latencies are judged only between ranks that had a core of their own (core_percent). Pairs of
 * ranks of one host are compared only with the reference, because their speed depends on the cores.
 *
 * DEGRADED: there is a finding. HEALTHY: there is none, and a host whose bandwidth or computation
 * is slower by the fraction must_find would have been found. On one host without a reference, this
 * applies only to the computation. CANNOT TELL: all other cases. The speeds of the network
 * interfaces do not affect the verdict. Returns 0 or DDP_ENOMEM. */
int ddp_health_judge(const struct ddp_health_input *in, struct ddp_health *h,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Makes *out the matrix of the medians over the passes. The caller releases it. */
int ddp_health_median(const struct ddp_matrix *pass, int passes, struct ddp_matrix *out,
                      struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
