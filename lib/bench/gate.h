/* The gate: is `new` slower than `base`? Two commands, run as randomised ABBA pairs of launches.
 *
 * The unit of the statistics is a launch, for iterations within a process are not independent. Each
 * launch writes a result document, from which each cell (point) gives one median. Pairs come in
 * blocks of two, base new new base or its mirror image, drawn by the seed, so that a drift of the
 * machine cancels. A pair whose two ping-pong classes differ is run again, at most twice, before
 * its times are looked at. What this does not do: print, or choose thresholds. */
#ifndef DDP_BENCH_GATE_H
#define DDP_BENCH_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/words.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* words: of the command; "{json}" in a word stands for the result's path, else "--json PATH" is
 * appended. env: NULL-terminated "K=V". */
struct ddp_gate_side {
    const char *text;
    struct ddp_words words;
    const char *const *env;
};

enum { DDP_BASE, DDP_NEXT };

/* The least min_effect by default: below it a machine's own noise floor does not count. */
#define DDP_GATE_EFFECT 0.05

struct ddp_gate_data;

/* on_launch: before each launch, for progress. check: once the cells are known. Both may be NULL.
 */
struct ddp_gate_setup {
    struct ddp_gate_side side[2];
    int pairs; /* 1 to DDP_SIGNFLIP_MAX */
    uint64_t seed;
    double min_effect;
    int64_t launch_timeout_ns;
    const char *folder; /* for results of launches; each is removed when read */
    void (*on_launch)(void *arg, int pair, int pairs, int side);
    void *arg;
    int (*check)(const struct ddp_gate_data *data, struct ddp_err *err);
    bool injects; /* a self-test: new may have an injected delay that base does not have */
};

/* Medians, cell-major [count * pairs] a side, NaN where a launch lacks the cell. */
struct ddp_gate_data {
    char (*id)[192];
    size_t count;
    struct ddp_unjudged_list unjudged; /* cells that the first base launch lacks; training runs */
    int pairs, rerun, mixed;
    double *median[2];
    /* Controls, which no change of ours moves, [pairs]; NaN: none. pingpong: ns. memory: ns a byte
     * that all ranks at once copy. */
    double *pingpong[2], *memory[2];
    char build[2][256], fingerprint[512];
};

/* Runs all launches. The cells are those of the first base launch. DDP_EMISMATCH: a launch ran on
 * another machine or set-up than the first; a launch's own code when it fails with one of ours;
 * DDP_EDATA when its document says that data was wrong; DDP_EUNAVAIL when it cannot be started,
 * fails otherwise, its document is not complete or has a point without valid iterations, or one
 * side alone has an injected delay; -(128 + n) after a signal n. */
int ddp_gate_measure(const struct ddp_gate_setup *setup, struct ddp_gate_data *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* out->cells and out->unjudged.items are allocated: free(). There is no PASS when a cell or a
 * training run of base was not judged; out->reason names them. A control that differs between the
 * sides (p at most 0.01 for both together, or, of 8 pairs or less, all pairs alike; and by more
 * than min_effect) makes a FAIL inconclusive: the host drifted; and a PASS, when it was faster for
 * new. */
int ddp_gate_judge(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                   struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_gate_release(struct ddp_gate_data *data);

/* Turns a PASS into INCONCLUSIVE when a cell or a training run of base was not judged, and names at
 * the end of v->reason what was not judged, of new too. */
void ddp_gate_mind_unjudged(struct ddp_verdict_record *v);

/* The order of a pair's launches: DDP_BASE or DDP_NEXT first. */
int ddp_gate_first(uint64_t seed, int pair);
/* Do two ping-pong round trips, in ns, belong to different classes? NaN: not known, no. */
bool ddp_gate_class_differs(double a_ns, double b_ns);

#ifdef __cplusplus
}
#endif
#endif
