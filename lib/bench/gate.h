/* The gate tests whether `new` is slower than `base`: two commands that run as randomised ABBA
 * pairs of child processes.
 *
 * The unit of the statistics is a child process, because iterations within a process are not
 * independent. Each child writes a result document, and each cell (point) contributes one median.
 * Pairs come in blocks of two: base new new base, or the mirror image, chosen by the seed, so that
 * a drift of the machine cancels. A pair whose two ping-pong classes differ is run again, at most
 * twice, before its times are read. The caller prints the verdict and chooses the thresholds. */
#ifndef DDP_BENCH_GATE_H
#define DDP_BENCH_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/argv_split.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One of the two commands. */
struct ddp_gate_side {
    const char *text; /* the command line */
    /* The command line split. "{json}" in it stands for the result's path; without it, "--json
     * PATH" is appended. */
    struct ddp_argv words;
    const char *const *env; /* NULL-terminated "K=V" */
};

enum { DDP_BASE, DDP_NEXT };

/* Default of min_effect. A machine's noise floor raises the threshold only above this value. */
#define DDP_GATE_EFFECT 0.05

struct ddp_gate_data;

struct ddp_gate_setup {
    struct ddp_gate_side side[2];
    int pairs; /* 1 to DDP_SIGNFLIP_MAX */
    uint64_t seed;
    double min_effect; /* smallest slow-down that counts, as a fraction */
    int64_t child_timeout_ns;
    const char *folder; /* holds the child's result document until it is read */
    /* Optional: called before each child process, to show progress. */
    void (*on_child)(void *arg, int pair, int pairs, int side);
    void *arg;
    /* Optional: called once the cells are known; an error ends the gate. */
    int (*check)(const struct ddp_gate_data *data, struct ddp_err *err);
    bool injects; /* a self-test: new may have an injected delay that base does not have */
};

struct ddp_gate_data {
    char (*id)[192]; /* [count]: ids of the cells */
    size_t count;
    /* Cells that the first child process of base lacks, and training runs. */
    struct ddp_unjudged_list unjudged;
    /* Pairs measured; pairs run again; pairs whose ping-pong classes still differ. */
    int pairs, rerun, mixed;
    /* Medians per side in ns, cell-major [count * pairs]; NaN where a child lacks the cell. */
    double *median[2];
    /* Covariates per side [pairs], which a change of the program does not affect; NaN: none.
     * pingpong: ns. memory: ns per byte that all ranks together copy. */
    double *pingpong[2], *memory[2];
    char build[2][256], fingerprint[512];
};

/* Runs all child processes. The cells are those of base's first child. Errors: DDP_EMISMATCH if a
 * child ran on another machine or with other ranks than the first; the child's own exit code if
 * that is one of ours; DDP_EDATA if its document says that data was wrong; DDP_EUNAVAIL if it
 * cannot be started, fails otherwise, its document is incomplete or has a point without valid
 * iterations, or the injected delays of the sides differ; -(128 + n) after a signal n. */
int ddp_gate_measure(const struct ddp_gate_setup *setup, struct ddp_gate_data *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Decides the verdict. out->cells and out->unjudged.items are allocated; release them with free().
 * A cell or a training run of base that was not judged prevents a PASS; out->reason names it. A
 * covariate that differs between the sides shows that the host drifted: a FAIL then becomes
 * INCONCLUSIVE, and so does a PASS if the host was faster for new. A covariate differs if the ratio
 * exceeds min_effect and p is at most 0.01 for both covariates together (with 8 pairs or fewer: if
 * all pairs agree). */
int ddp_gate_judge(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                   struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gate_release(struct ddp_gate_data *data);

/* Turns a PASS into INCONCLUSIVE if a cell or a training run of base was not judged. Appends the
 * names of everything that was not judged, including cells of new, to v->reason. */
void ddp_gate_check_unjudged(struct ddp_verdict_record *v);

/* Returns which side runs first in a pair: DDP_BASE or DDP_NEXT. */
int ddp_gate_first(uint64_t seed, int pair);
/* True if two ping-pong round trips, in ns, belong to different classes. False if one is NaN. */
bool ddp_gate_class_differs(double a_ns, double b_ns);

#ifdef __cplusplus
}
#endif
#endif
