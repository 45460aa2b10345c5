/* The self-test of the gate on this machine: gates of a command against itself, some of them with
 * one cell slowed on purpose. The result is the machine's struct ddp_noise (record/noise.h).
 *
 * Each gate is written to a journal when it ends, with the medians of all its child processes; an
 * interrupted self-test continues with the next gate. Both kinds of gate are spread over the whole
 * time, so that neither gets the quieter hours. The cells are slowed in turn. The caller prints,
 * and chooses the files. */
#ifndef DDP_BENCH_SELFTEST_H
#define DDP_BENCH_SELFTEST_H

#include "bench/gate.h"
#include "record/journal.h"
#include "record/noise.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SELFTEST_GATES_MAX 100000

struct ddp_selftest_setup {
    const char *command;    /* a command line that accepts --inject-delay */
    const char *const *env; /* as in struct ddp_gate_side */
    /* Number of gates without and with a delay; same >= 1, injected <= same. */
    int same, injected;
    double effect; /* the injected delay as a fraction: 0.10 = 10 % */
    /* Template of every gate (gate.h). The self-test sets the sides itself. */
    struct ddp_gate_setup gate;
    /* Optional: called before each gate, to show progress. */
    void (*on_gate)(void *arg, int done, int all, bool injected);
    void *arg;
};

struct ddp_selftest {
    struct ddp_noise_gate **gates; /* [count]: journal payloads, each one allocation */
    int count;
};

/* Lists the facts that must be equal to continue a journal: command, machine, build, statistics.
 * The number of gates may change. */
void ddp_selftest_facts(const struct ddp_selftest_setup *setup, struct ddp_journal_facts *facts);
/* Adds a gate read from the journal. This is a ddp_journal_visit whose arg is the struct
 * ddp_selftest. */
int ddp_selftest_visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err);
/* Runs the gates that are missing. Returns DDP_EMISMATCH if the cells change, and the errors of
 * ddp_gate_measure and ddp_journal_append. */
int ddp_selftest_run(const struct ddp_selftest_setup *setup, struct ddp_journal *journal,
                     struct ddp_selftest *test, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_selftest_release(struct ddp_selftest *test);

/* True if the i-th of same + injected gates has an injected delay. */
bool ddp_selftest_injects(int same, int injected, int i);

/* selftest_judge.c: judges the gates as the gate itself would, and computes the members of *out as
 * noise.h defines them. Gates of each kind beyond the setup's counts are left out. test must
 * contain at least one A/A gate (one without a delay). Returns DDP_ENOMEM. */
int ddp_selftest_judge(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                       struct ddp_noise *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *out to the data of a journal payload; its pointers point into the payload. */
void ddp_selftest_data(struct ddp_noise_gate *gate, struct ddp_gate_data *out);
/* Number of A/A gates from which on a noise floor can be given: the smallest n with 0.9^n <= 0.05.
 * The noise floor is the 90 % quantile of the gates' floors. With fewer gates even the largest
 * floor lies below this quantile in more than one self-test of 20, so the quantile has no one-sided
 * 95 % bound (order statistics; Conover, Practical Nonparametric Statistics, 3.2). */
int ddp_selftest_least_gates(void);
/* True if the gate keeps its promise on this machine: at most one false alarm in 60 A/A gates, the
 * injected delay found in 90 % of the gates, and never in another cell. */
bool ddp_selftest_holds(const struct ddp_noise *noise);

#ifdef __cplusplus
}
#endif
#endif
