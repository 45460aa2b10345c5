/* The outcome of `gate` and `compare`, as reporters read it. */
#ifndef DDP_RECORD_VERDICT_RECORD_H
#define DDP_RECORD_VERDICT_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "record/noise.h"
#include "stats/verdict.h"

#ifdef __cplusplus
extern "C" {
#endif

/* base_ns, next_ns: medians over launches (gate) or the stored medians (compare). */
struct ddp_verdict_cell {
    char id[192];
    struct ddp_cell cell;
    double base_ns, next_ns;
};

/* A cell or a training run that no test judged. Cells of base that are missing in new are not among
 * them: they have a struct ddp_verdict_cell. */
struct ddp_unjudged {
    char name[192];
    bool train; /* a training run, not a cell */
    bool base;  /* base has it, so the verdict is not PASS; else only new has it */
};

struct ddp_unjudged_list {
    struct ddp_unjudged *items; /* [count], released with free() */
    size_t count;
};

/* Appends an item, unless one of that name and kind is there; then `base` is or-ed into it.
 * DDP_ENOMEM. */
int ddp_unjudged_add(struct ddp_unjudged_list *list, const char *name, bool train, bool base,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* "cell of base", "training run of new only", ... */
const char *ddp_unjudged_kind(const struct ddp_unjudged *item);

/* kind: "gate", "compare" (weaker: one launch each, another time) or "selftest". level: of the
 * tests and bounds. min_effect: as a part, 0.05 = 5 %. pingpong, memory: the controls' ratios
 * new/base of times and their p, of one test for both directions (NaN: none). rerun: pairs measured
 * again because the ping-pong class changed within them; mixed: pairs kept although it did. cells
 * [count]: owned by whoever made it. noise_floor: of this machine, NaN when none is stored;
 * effect_from: in words, why this min_effect. noise: what a self-test found (kind "selftest", no
 * cells), borrowed; else NULL. */
struct ddp_verdict_record {
    const char *kind;
    enum ddp_verdict outcome;
    char reason[2048];
    double level, min_effect, noise_floor;
    char effect_from[640];
    int pairs, rerun, mixed;
    double pingpong_ratio, pingpong_p, memory_ratio, memory_p;
    char base_command[512], next_command[512];
    char base_build[256], next_build[256];
    char fingerprint[512];
    struct ddp_verdict_cell *cells;
    size_t count;
    struct ddp_unjudged_list unjudged; /* owned by whoever made it */
    const struct ddp_noise *noise;
};

#ifdef __cplusplus
}
#endif
#endif
