/* Measures the latency and bandwidth between every pair of ranks or hosts.
 *
 * The ends (ranks, or the lowest rank of each host) meet in the rounds of a round-robin tournament.
 * In a round each end has at most one partner, so the pairs do not disturb each other if the
 * network between them has no bottleneck. n ends need n - 1 rounds, or n if n is odd. A pair is
 * measured in four phases: latency, one direction, the other direction, both directions at the same
 * time. The last three phases measure the bandwidth. After each of these phases, the ends send the
 * messages once more, untimed, and verify the last message. */
#ifndef DDP_BENCH_PAIR_MATRIX_H
#define DDP_BENCH_PAIR_MATRIX_H

#include "comm/comm.h"
#include "record/matrix_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With DDP_PAIR_ENDS_ALL or more ends, only DDP_PAIR_SAMPLE rounds are measured unless the caller
 * asks for a number of rounds. The seed selects these rounds. Each end then has at most
 * DDP_PAIR_SAMPLE partners. */
#define DDP_PAIR_ENDS_ALL 64
#define DDP_PAIR_SAMPLE   16

struct ddp_pair_options {
    bool by_host;
    uint64_t bytes; /* size of a message of the bandwidth measurement; at least 1 */
    int64_t iters;  /* largest number of repetitions of a bandwidth phase, at most 1000 */
    /* A bandwidth phase ends after this time if it has at least 3 repetitions, and after three
     * times this time if it has at least one. */
    double max_time_s;
    bool one_way;   /* leave out the phase of both directions at the same time */
    int64_t rounds; /* 0: all, or DDP_PAIR_SAMPLE with DDP_PAIR_ENDS_ALL or more ends */
    uint64_t seed;
};

/* Returns the partner of end `end` in round `round`, or -1 if it has no partner. */
int ddp_pair_partner(int ends, int round, int end);
/* Returns the number of rounds in which all pairs of `ends` ends meet. */
int ddp_pair_rounds(int ends);

/* Measures the matrix. On rank 0, *out becomes the matrix, which the caller releases with
 * ddp_matrix_release. On the other ranks the matrix stays empty. `progress` is called on each rank
 * before each round. Verifies the bytes of the last message of each direction. Returns DDP_EDATA if
 * a byte is wrong, and DDP_EUSAGE if there are more than DDP_MATRIX_MAX ends. Collective over a
 * world whose backend has DDP_CAP_P2P. */
int ddp_pair_matrix(struct ddp_comm *comm, const struct ddp_pair_options *options,
                    void (*progress)(void *arg, int round, int rounds), void *arg,
                    struct ddp_matrix *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
