/* Computes the verdict of `ddpbench isolate` from the result of its search. */
#ifndef DDP_RECORD_ISOLATE_JUDGE_H
#define DDP_RECORD_ISOLATE_JUDGE_H

#include "record/health_record.h"
#include "stats/group_test.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_isolate_input {
    const struct ddp_group_result *result;
    int ends;               /* an end is a host or a rank that the search can name */
    bool by_host;           /* the ends are hosts, and not the ranks of one host */
    const int *leader;      /* [ends] the lowest rank of each end. NULL: end i is rank i. */
    bool oversubscribed;    /* a rank has no core of its own */
    bool out_of_time;       /* the search was stopped by --max-time */
    const char *collective; /* name of the collective */
};

/* Returns the smallest slow-down that counts, as a fraction. Where ranks share cores, another
 * program can make a rank several times slower, so only a large slow-down counts. */
double ddp_isolate_least(double min_effect, bool oversubscribed);
/* Sets verdict, reason, findings, power, rounds, group_ends and collective of *h. The caller has
 * set min_effect and must_find.
 *
 * DEGRADED: a host, rank or link is named. HEALTHY: the search has ended without a slow group, and
 * a slow-down by the fraction must_find would have been found. CANNOT TELL: all other cases. */
void ddp_isolate_judge(const struct ddp_isolate_input *in, struct ddp_health *h);

#ifdef __cplusplus
}
#endif
#endif
