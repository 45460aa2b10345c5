/* The state of a search by group testing. Only group_*.c use this header. */
#ifndef DDP_STATS_GROUP_TEST_IMPL_H
#define DDP_STATS_GROUP_TEST_IMPL_H

#include <stddef.h>

#include "base/rng.h"
#include "stats/group_test.h"

#define DDP_GROUP_TASKS 32
/* A group is slow if its time exceeds the level by more than this many standard deviations, and by
 * more than rule.least. */
#define DDP_GROUP_SIGMAS 4

enum ddp_group_task_kind {
    TASK_FREE,
    TASK_SET,   /* `a` contains a fault */
    TASK_CROSS, /* a link from `a` to `b` is at fault; each of the two is fast alone */
    TASK_END,   /* checks the only end of `a` */
    TASK_LINK   /* checks the link between the only ends of `a` and `b` */
};
enum ddp_group_outcome { OPEN, PENDING, FAST, SLOW };

struct ddp_group_part {
    int n, *e;
};
/* A group whose time a task needs, and whether this group is slow. */
struct ddp_group_trial {
    enum ddp_group_outcome outcome;
    int group;
};
struct ddp_group_task {
    enum ddp_group_task_kind kind;
    int stage;
    struct ddp_group_trial trial[2];
    struct ddp_group_part a, b, fill[2]; /* fill: partners of a check */
    int control[2];                      /* healthy ends that take turns with the ends of a check */
    /* Sums over the stages of a check: times of the slow and of the fast groups. */
    double slow_sum, fast_sum;
    int slow_count, fast_count;
};

enum ddp_group_phase { SCREEN, SEARCH };

struct ddp_group_test {
    struct ddp_group_rule rule;
    struct ddp_group_result result;
    struct ddp_rng rng;
    enum ddp_group_phase phase;
    int size;         /* ends of a group */
    int pass_round;   /* the first round of this pass */
    int found_before; /* faults that were known when the pass began */
    int idle_passes;  /* consecutive passes that found no fault */
    int words;        /* 64-bit words in a row of a bit matrix */
    /* Bit matrices [ends * words]. `good`: pairs that were in a fast group together. `met`: pairs
     * that this screen need not bring together any more. An end is clean if its own bit in `good`
     * is set: it was in a fast group. */
    uint64_t *good, *met;
    uint64_t *allowed;             /* [words] scratch */
    bool *named, *used, *reserved; /* [ends] */
    uint32_t *order;               /* [ends] the active ends in random order */
    int active, planes;            /* number of ends not named; order of the affine plane, or 0 */
    uint8_t *point;                /* [active] the point of the plane that end order[i] has */
    bool even;                     /* the lines of the plane have about the same size */
    int *score, *list;             /* [ends] scratch */
    int *group;                    /* [ends] group of each end in the present round; -1: none */
    int groups;
    int16_t *history; /* [rounds * ends] the groups of all rounds */
    int group_count[DDP_GROUP_ROUNDS];
    double time[DDP_GROUP_ROUNDS][DDP_GROUPS_MOST], error[DDP_GROUP_ROUNDS][DDP_GROUPS_MOST];
    double base, level, threshold;
    struct ddp_group_task task[DDP_GROUP_TASKS];
};

/* Bit matrices. */

static inline uint64_t *row(const struct ddp_group_test *t, uint64_t *matrix, int i)
{
    return matrix + (size_t)i * (size_t)t->words;
}

static inline bool has(const uint64_t *bits, int i)
{
    return bits[i / 64] >> (i % 64) & 1;
}

static inline void put(uint64_t *bits, int i)
{
    bits[i / 64] |= (uint64_t)1 << (i % 64);
}

static inline void drop(uint64_t *bits, int i)
{
    bits[i / 64] &= ~((uint64_t)1 << (i % 64));
}

static inline bool is_clean(const struct ddp_group_test *t, int i)
{
    return has(row(t, t->good, i), i);
}

static inline bool is_good(const struct ddp_group_test *t, int i, int j)
{
    return has(row(t, t->good, i), j);
}

/* Sets the bits of all pairs of list [n], including each end with itself. */
static inline void put_pairs(struct ddp_group_test *t, uint64_t *matrix, const int *list, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            put(row(t, matrix, list[i]), list[j]);
}

/* Returns whether the link between two ends is named. */
bool ddp_group_is_named_link(const struct ddp_group_test *t, int i, int j);

/* Begins a round without groups. */
void ddp_group_clear_round(struct ddp_group_test *t);
/* Makes list [n] the next group. Returns its number. */
int ddp_group_add(struct ddp_group_test *t, const int *list, int n);
/* Writes the active members of a group of round r to t->list, in the order of t->order. Returns
 * their number. */
int ddp_group_members(struct ddp_group_test *t, int r, int group);
/* Adds ends to list [*n] until it has `want` ends. The new ends are unused, not named, and clean.
 * They have been in fast groups with each other. If `strict`, they have also been in fast groups
 * with all clean ends that were in the list. If `any`, reserved ends may be added. Returns false if
 * there are too few ends. */
bool ddp_group_grow(struct ddp_group_test *t, int *list, int *n, int want, bool strict, bool any);

/* Begins a pass with a screen. Ends the search (DDP_GROUP_CLEAN) if no pair is left to screen. */
void ddp_group_begin_screen(struct ddp_group_test *t);
/* Plans the next round of the screen. Returns false if all pairs have met. */
bool ddp_group_screen_round(struct ddp_group_test *t);
/* Computes the level, the scatter, the threshold and the figures that depend on them. Uses all
 * rounds so far. */
void ddp_group_find_level(struct ddp_group_test *t);
/* Returns whether the time of a group of round r exceeds the level by more than the threshold. */
bool ddp_group_is_slow(const struct ddp_group_test *t, int r, int group);

#endif
