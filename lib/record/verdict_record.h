/* The outcome of a gate, a comparison or a self-test, as the reporters show it. */
#ifndef DDP_RECORD_VERDICT_RECORD_H
#define DDP_RECORD_VERDICT_RECORD_H

#include <stdbool.h>
#include <stddef.h>

#include "record/noise.h"
#include "stats/noninferior.h"
#include "stats/verdict.h"

struct ddp_across;

#ifdef __cplusplus
extern "C" {
#endif

/* One cell and its verdict. */
struct ddp_verdict_cell {
    char id[192];
    struct ddp_cell cell;
    /* Gate: medians over the pairs. Compare: the stored medians. */
    double base_ns, next_ns;
};

/* A cell or a training run that no test judged. A cell of base that new lacks is not such an item,
 * because it has a struct ddp_verdict_cell. */
struct ddp_unjudged {
    char name[192];
    bool train; /* True: a training run. False: a cell. */
    bool base;  /* Base has the item, so the verdict is not PASS. False: only new has it. */
};

struct ddp_unjudged_list {
    struct ddp_unjudged *items; /* [count], released with free(). */
    size_t count, room;         /* room: number of elements for which `items` has memory. */
};

/* Appends an item. Returns DDP_ENOMEM if there is no memory. */
int ddp_unjudged_add(struct ddp_unjudged_list *list, const char *name, bool train, bool base,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Sorts the list: cells before training runs, each by name. Merges items of the same name and kind
 * into one item, whose `base` is true if it was true in any of them. */
void ddp_unjudged_merge(struct ddp_unjudged_list *list);
/* Returns "cell of base", "training run only in new" and so on. */
const char *ddp_unjudged_kind(const struct ddp_unjudged *item);

/* The verdict on the accuracy of a group of training runs that differ only in the seed
 * (record/accuracy.h). */
struct ddp_verdict_accuracy {
    char name[192];
    double base, next;    /* Mean accuracies over the seeds. NaN: there is no common seed. */
    double diverged_seed; /* First seed with which new diverged and base did not. NaN: none. */
    double margin;        /* Largest accepted loss of accuracy; 0.01 is one percentage point. */
    struct ddp_noninferior test;
};

enum ddp_verdict_kind {
    DDP_BY_NONE, /* The verdict is not known yet. */
    DDP_BY_GATE,
    DDP_BY_COMPARE, /* It is weaker than GATE, because it has a single result of each side, and the
                     * two results were measured at different times. */
    DDP_BY_SELFTEST,
    DDP_BY_ACROSS
};
/* "none", "gate", "compare", "selftest" and "across". */
extern const char *const ddp_verdict_kind_names[];

/* The verdict of a whole gate or comparison. Release it with ddp_verdict_record_release. */
struct ddp_verdict_record {
    enum ddp_verdict_kind kind;
    enum ddp_verdict outcome;
    char reason[2048];
    /* level: significance level of tests and bounds. min_effect: smallest slow-down that counts, as
     * a fraction (0.05 means 5 %). noise_floor: the floor stored for this machine, NaN if there is
     * none. */
    double level, min_effect, noise_floor;
    char effect_from[640]; /* A sentence that says why min_effect has its value. */
    /* rerun: how often a pair was measured again, because the ping-pong classes (run/gate_pairs.h)
     * of its two sides differed. mixed: number of pairs that were kept although the classes
     * differed. */
    int pairs, rerun, mixed;
    int max_pairs; /* pairs that the gate was allowed to measure */
    int runs;      /* runs of each command in a pair */
    /* Covariates (run/gate_pairs.h): time of new divided by time of base, and p-value of a
     * two-sided test. NaN: not measured. */
    double pingpong_ratio, pingpong_p, memory_ratio, memory_p;
    char base_command[512], next_command[512];
    char base_build[256], next_build[256];
    char fingerprint[512];
    bool edited[2]; /* compare: the digest of base [0] or new [1] is missing or wrong */
    unsigned vary;  /* keys that are not part of a cell's identity (record/vary.h) */
    struct ddp_verdict_cell *cells; /* [count] */
    size_t count;
    struct ddp_unjudged_list unjudged;
    struct ddp_verdict_accuracy *accuracy; /* [accuracy_count] */
    size_t accuracy_count;
    /* Result of a self-test (kind SELFTEST, which has no cells), borrowed. Otherwise NULL. */
    const struct ddp_noise *noise;
    /* Ratios of several documents (kind ACROSS, which has no cells and no outcome), borrowed.
     * Otherwise NULL. */
    const struct ddp_across *across;
};

/* The tables of the structs (record/field.h). Documents show `noise` and `across` by the tables of
 * noise.h and across.h. */
extern const struct ddp_fields ddp_verdict_fields, ddp_verdict_cell_fields, ddp_unjudged_fields,
    ddp_verdict_accuracy_fields;

/* Sets every figure of the verdict that may be unknown to NaN, and all other members to 0. */
void ddp_verdict_record_init(struct ddp_verdict_record *v);
/* Releases the cells, the accuracies and the list of unjudged items. */
void ddp_verdict_record_release(struct ddp_verdict_record *v);
/* Returns whether an INCONCLUSIVE verdict stays INCONCLUSIVE however many pairs are added. This is
 * so if (1) no cell is uncertain or slower, and (2) new lacks a cell of base, a cell or a training
 * run of base was not judged, or an accuracy is uncertain. More pairs do not help an accuracy,
 * which needs more seeds. */
bool ddp_verdict_is_final(const struct ddp_verdict_record *v);
/* Turns a PASS into INCONCLUSIVE if new lacks a cell of base, or if a cell or a training run of
 * base was not judged. Appends to v->reason the numbers of these items and of the items that only
 * new has, with the first names of each kind. */
void ddp_verdict_check_unjudged(struct ddp_verdict_record *v);
/* Appends `before` and `text` to v->reason, cut off where the reason is full. */
void ddp_verdict_append(struct ddp_verdict_record *v, const char *before, const char *text);
/* Sets states[s] to the number of cells in state s, an enum ddp_cell_state. */
void ddp_verdict_count_states(const struct ddp_verdict_record *v,
                              size_t states[DDP_CELL_MISSING + 1]);

#ifdef __cplusplus
}
#endif
#endif
