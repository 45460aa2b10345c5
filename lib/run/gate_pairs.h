/* The gate: tests whether the command `new` is slower than the command `base`. Both run several
 * times, as child processes in pairs.
 *
 * Each child writes a result document with one median per cell. A cell is a point, or the step time
 * of a training run. A pair has one or several runs of each command. The median of a cell over the
 * runs of one command in a pair is one statistical sample, because iterations within a process are
 * not independent. The commands alternate, so that a drift of the machine cancels: four runs have
 * the order base new new base, or new base base new. The seed chooses one of these orders. If a
 * pair has only one run of each command, the four runs of two pairs have one of these orders.
 *
 * The ping-pong of a child shows how far apart the cores were on which its ranks ran. If the
 * ping-pongs of the two commands in a pair belong to different classes (ddp_gate_class_differs),
 * the pair is run again, at most twice, before its medians are used. The caller chooses the
 * thresholds and prints the verdict. */
#ifndef DDP_RUN_GATE_PAIRS_H
#define DDP_RUN_GATE_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/accuracy.h"
#include "record/foreign_file.h"
#include "record/verdict_record.h"
#include "run/child.h"
#include "stats/sequential.h"
#include "stats/signflip.h"

/* The largest number of pairs that the sign-flip test can judge exactly. */
#define DDP_GATE_PAIRS_MAX DDP_SIGNFLIP_MAX

/* One of the two commands. */
struct ddp_gate_side {
    const char *text; /* the command line */
    /* The arguments in text. "{json}" in an argument stands for the path of the result document. If
     * no argument contains "{json}", "--json PATH" is appended for a result of ddpbench, and the
     * result of another program is read from stdout. */
    struct ddp_argv words;
    const char *const *env; /* NULL-terminated "K=V" */
};

enum { DDP_BASE, DDP_NEXT };

/* Default of min_effect. The noise floor of the machine replaces this default if the floor is
 * larger. */
#define DDP_GATE_EFFECT 0.05

/* Default of the largest number of pairs. */
#define DDP_GATE_PAIRS 32

/* Largest number of runs of each command in a pair. */
#define DDP_GATE_RUNS_MAX 99

/* The looks of a gate. At a look, the gate judges the pairs measured so far. It stops at the first
 * look at which (1) the verdict is PASS or FAIL, or (2) more pairs cannot change the verdict. It
 * also stops at the last look. */
struct ddp_gate_looks {
    int count;
    bool fixed;                       /* --pairs has set the number of pairs */
    int pairs[DDP_SEQUENTIAL_MAX];    /* number of pairs at each look, in ascending order */
    double level[DDP_SEQUENTIAL_MAX]; /* significance level of each look */
};

struct ddp_gate_data;

struct ddp_gate_setup {
    struct ddp_gate_side side[2];
    bool wall; /* judge the wall time of a child, which then writes no result */
    /* Number of runs of each command in a pair. 0: the gate runs each command once and then chooses
     * an odd number, so that the runs of one command in a pair together take about half a
     * second. */
    int runs;
    enum ddp_foreign read; /* format in which the commands write their results */
    struct ddp_gate_looks looks;
    uint64_t seed;
    double min_effect;      /* smallest slow-down that counts, as a fraction */
    double accuracy_margin; /* largest loss of accuracy that is accepted, as a fraction of 1 */
    unsigned vary;          /* keys that are left out of a cell's id (record/vary.h) */
    int64_t child_timeout_ns;
    const char *folder; /* holds the child's result document until it is read */
    /* Optional: called before each child process, to show progress. */
    void (*on_child)(void *arg, int pair, int pairs, int side);
    /* Optional: called about once per second while a child process runs. */
    void (*on_wait)(void *arg);
    /* Optional: called after each pair. `worst` is the largest ratio new/base of a cell. The ratio
     * of a cell is the median over the pairs so far. `worst` is NaN if no cell was measured on both
     * sides. */
    void (*on_pair)(void *arg, double worst);
    void *arg;
    struct ddp_log *log; /* receives warnings; NULL: no warnings */
    /* Optional: called after the first pair, when the cells are known. An error ends the gate. */
    int (*check)(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                 struct ddp_err *err);
    bool injects; /* self-test: new may have an --inject-delay that base lacks */
    /* For a self-test that judges wall times or the results of another program. If `slow` is not 0,
     * the gate slows the cell slow_cell of new by this fraction (gate_launch.h). */
    double slow;
    const char *slow_cell;
};

struct ddp_gate_data {
    char (*id)[192]; /* [count]: ids of the cells */
    size_t count;
    struct ddp_id_index index; /* of the cells */
    /* Cells that a later child has but the first child of base lacks, and training runs without an
     * epoch. No test judges these. */
    struct ddp_unjudged_list unjudged;
    struct ddp_accuracy_list accuracy; /* of the training runs of all children */
    char trains[192];                  /* name of a training run; "" if there is none */
    /* pairs: pairs measured. runs: runs of each command in a pair. rerun: how often a pair was run
     * again. mixed: pairs that were kept although the ping-pong classes of their sides differ. */
    int pairs, runs, rerun, mixed;
    int busy; /* runs of kept pairs during which other programs ran (struct ddp_result) */
    /* Medians in ns by side, [pair][cell]. NaN: all runs of the side in this pair lack the cell. */
    double *median[2];
    /* Covariates by side, [pair]. Covariates are times that a change of the measured program does
     * not affect. pingpong: in ns. memory: ns per byte when all ranks copy memory. NaN: unknown. */
    double *pingpong[2], *memory[2];
    double copy_bytes;  /* bytes that the ranks of the first child copied for its baseline */
    bool copies_differ; /* a later child copied another number of bytes; `memory` is then NaN */
    char build[2][256], fingerprint[512], hosts[256];
};

/* Plans the looks: after 8 pairs, then after every 4 pairs, and after max_pairs. If `fixed` is
 * true, plans only the look after max_pairs. 1 <= max_pairs <= DDP_SIGNFLIP_MAX. Returns 0 or
 * DDP_ENOMEM. */
int ddp_gate_plan_looks(int max_pairs, bool fixed, struct ddp_gate_looks *out,
                        struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the largest number of pairs that the gate may run. */
int ddp_gate_max_pairs(const struct ddp_gate_setup *setup);
/* Returns the effect and the significance level with which the gate decides after `pairs` pairs. */
struct ddp_verdict_rule ddp_gate_rule(const struct ddp_gate_setup *setup, int pairs);

/* Runs child processes until the gate may stop (struct ddp_gate_looks). The gate judges the cells
 * of base's first child. Returns DDP_EMISMATCH if a child ran on another host or with another
 * set-up (struct ddp_result, fingerprint) than the first child. Returns DDP_ELOST if a child ran
 * into the timeout. If a child exits with one of ddpbench's exit codes for errors, returns this
 * error. Returns the errors of ddp_result_read, DDP_EDATA if a document reports wrong data, and
 * DDP_EINPUT if it has no point. Returns DDP_EUNAVAIL if a child cannot be started or judged for
 * another reason, and DDP_ENOMEM if there is no memory. Returns -(128 + n) after signal n. *out
 * then has the pairs that finished before the signal, and the caller releases it. After any other
 * error, *out is unchanged. */
int ddp_gate_measure(const struct ddp_gate_setup *setup, struct ddp_gate_data *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Decides the verdict on the times and on the accuracies (record/accuracy.h). Release *out with
 * ddp_verdict_record_release. A cell or a training run of base that was not judged prevents a PASS.
 * If a covariate differs between the sides, the host drifted. In this case a FAIL becomes
 * INCONCLUSIVE if the host was slower for the new command, and a PASS becomes INCONCLUSIVE if the
 * host was faster for it. A covariate differs if (1) its ratio new/base deviates from 1 by more
 * than min_effect, and (2) its p-value is at most 0.005, which is a level of 0.01 divided by the
 * number of covariates. With 8 pairs or fewer, no p-value is that small. Condition 2 is then that
 * all pairs deviate in the same direction. */
int ddp_gate_judge(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                   struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills *out like ddp_gate_judge for a gate that a signal ended after at least one pair, but
 * without a verdict: the outcome is DDP_VERDICT_NONE, and no cell or accuracy is judged. */
int ddp_gate_judge_partial(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                           struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gate_release(struct ddp_gate_data *data);

/* Returns which command runs first in a pair: DDP_BASE or DDP_NEXT. */
int ddp_gate_first(uint64_t seed, int pair);
/* Returns true if two ping-pong times, in ns, belong to different classes: one time is more than
 * 1.5 times the other. Returns false if one of the times is NaN. */
bool ddp_gate_class_differs(double a_ns, double b_ns);

#endif
