/* The self-test of the gate on this machine: runs many gates with the same command on both sides.
 * In some gates, one cell of the second side is slowed on purpose. The other gates have two equal
 * sides and are called A/A gates. The result is the machine's noise floor, struct ddp_noise
 * (record/noise.h).
 *
 * Each finished gate is written to a journal, with the median of each cell on each side of each
 * pair. An interrupted self-test continues with the next gate. Both kinds of gate are spread evenly
 * over the whole time, so that both see the same load. Each gate with a delay slows one cell, and
 * the next gate with a delay slows the next cell. */
#ifndef DDP_RUN_SELFTEST_H
#define DDP_RUN_SELFTEST_H

#include "record/journal.h"
#include "record/noise.h"
#include "run/gate_pairs.h"

#define DDP_SELFTEST_GATES_MAX 100000

struct ddp_selftest_setup {
    /* A command line. It must accept --inject-delay, unless the gate judges a wall time or the
     * result of another program. */
    const char *command;
    const char *const *env; /* as in struct ddp_gate_side */
    /* same: number of gates without a delay, at least 1. injected: number of gates with a delay, at
     * most `same`. */
    int same, injected;
    double effect; /* the injected delay as a fraction: 0.10 = 10 % */
    /* Template of every gate (gate_pairs.h). The self-test sets its members side, seed, injects,
     * slow and slow_cell. */
    struct ddp_gate_setup gate;
};

struct ddp_selftest {
    struct ddp_noise_gate **gates; /* [count]: journal payloads, each in its own allocation */
    int count;
};

/* Adds a gate read from the journal. This is a ddp_journal_visit whose arg is the struct
 * ddp_selftest. */
int ddp_selftest_visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err);
void ddp_selftest_release(struct ddp_selftest *test);

/* True if the i-th of same + injected gates has an injected delay. */
bool ddp_selftest_injects(int same, int injected, int i);

/* Judges the gates as `ddpbench gate` does, and computes *out as noise.h defines it. If the journal
 * has more gates of a kind than setup asks for, the additional ones do not count. *test must
 * contain at least one A/A gate. Returns 0 or DDP_ENOMEM. */
int ddp_selftest_judge(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                       struct ddp_noise *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *out to the data of a journal payload. The pointers of *out point into the payload. */
void ddp_selftest_data(struct ddp_noise_gate *gate, struct ddp_gate_data *out);
/* Returns the least number of A/A gates for a noise floor: the smallest n with 0.9^n <= 0.05. The
 * noise floor is the 90 % quantile of the floors of all A/A gates. The floor of a gate is the
 * smallest min_effect with which the gate would pass. With fewer gates, even the largest floor is
 * below the true quantile in more than 5 % of all self-tests, so no one-sided 95 % bound of the
 * quantile exists (order statistics; Conover, Practical Nonparametric Statistics, 3.2). */
int ddp_selftest_least_gates(void);
/* True if the gate is reliable on this machine. With all quotients rounded up, this means: (1) at
 * most same / 60 A/A gates are false alarms, (2) at most same / 15 A/A gates are inconclusive, (3)
 * at most injected / 30 gates miss the injected delay, and (4) no gate with a delay reports a cell
 * that it did not slow. */
bool ddp_selftest_holds(const struct ddp_noise *noise);

#endif
