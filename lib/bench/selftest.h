/* The gate tested on this machine, by itself: gates of a command against itself, some with one cell
 * slowed on purpose. What it says about the machine is struct ddp_noise (record/noise.h).
 *
 * Each gate is brought to a journal when it has ended, with the medians of all its launches; a
 * self-test that was cut off goes on with the next one. Gates of both kinds are spread over the
 * whole time, so that neither has the quieter hour. Every cell is slowed in turn.
 *
 * What this does not do: print, or choose where files lie. */
#ifndef DDP_BENCH_SELFTEST_H
#define DDP_BENCH_SELFTEST_H

#include "bench/gate.h"
#include "record/journal.h"
#include "record/noise.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_SELFTEST_GATES_MAX 100000

/* command: a command line that takes --inject-delay; env: as of a side. same, injected: how many
 * gates there shall be; same >= 1, injected <= same. effect: of the injected delay, 0.10 = 10 %.
 * gate: pairs, seed, min_effect, launch_timeout_ns, folder, on_launch and arg are those of every
 * gate (gate.h); its sides are the self-test's. on_gate: before each gate, for progress. */
struct ddp_selftest_setup {
    const char *command;
    const char *const *env;
    int same, injected;
    double effect;
    struct ddp_gate_setup gate;
    void (*on_gate)(void *arg, int done, int all, bool injected);
    void *arg;
};
struct ddp_selftest {
    struct ddp_noise_gate **gates;
    int count;
};
void ddp_selftest_facts(const struct ddp_selftest_setup *setup, struct ddp_journal_facts *facts);
/* Takes a gate from the journal: a ddp_journal_visit, arg is the struct ddp_selftest. */
int ddp_selftest_visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err);
/* Runs the gates that are not there yet. DDP_EMISMATCH when the cells change; what ddp_gate_measure
 * and ddp_journal_append fail with. */
int ddp_selftest_run(const struct ddp_selftest_setup *setup, struct ddp_journal *journal,
                     struct ddp_selftest *test, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_selftest_release(struct ddp_selftest *test);

/* Which kind of gate is the i-th of same + injected? */
bool ddp_selftest_injects(int same, int injected, int i);

/* selftest_judge.c: judges the gates, of each kind those with an index below setup's counts, as the
 * gate would, and works out what noise.h defines. test has at least one A/A gate. DDP_ENOMEM. */
int ddp_selftest_judge(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                       struct ddp_noise *out, struct ddp_err *err) DDP_MUST_CHECK;
/* The gate's data as of a payload; borrowed from it. */
void ddp_selftest_data(struct ddp_noise_gate *gate, struct ddp_gate_data *out);
/* A/A gates from which on there is a noise floor: the least n with 0.9^n <= 0.05. With fewer even
 * the largest floor of them all is, in more than one self-test of 20, below what 90 % of the gates
 * need: the exact one-sided interval of that quantile has no end (order statistics; Conover,
 * Practical Nonparametric Statistics, 3.2). */
int ddp_selftest_least_gates(void);
/* Does the machine keep what the gate promises? At most one false alarm in 60 A/A gates, the
 * injected delay found in 90 %, and never elsewhere. */
bool ddp_selftest_holds(const struct ddp_noise *noise);

#ifdef __cplusplus
}
#endif
#endif
