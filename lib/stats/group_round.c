/* The rounds of a search by group testing: the screen, the groups, and the level of their times. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "stats/group_test_impl.h"
#include "stats/summary.h"

/* With at least this many groups in a round, times are compared with the median of the round, which
 * removes the drift between rounds. */
#define GROUPS_OF_MEDIAN 5
#define PLANE_MOST       7   /* the largest order of a plane */
#define PLACE_TRIES      200 /* random choices of the points with an additional end */
/* The lines of a plane are used as groups without changes if their sizes differ by at most 1 / EVEN
 * of the smallest size. */
#define EVEN 14

bool ddp_group_is_named_link(const struct ddp_group_test *t, int i, int j)
{
    for (int k = 0; k < t->result.fault_count; k++) {
        const struct ddp_group_fault *f = &t->result.fault[k];
        if (f->to >= 0 && ((f->end == i && f->to == j) || (f->end == j && f->to == i)))
            return true;
    }
    return false;
}

/* Groups of a round. */

void ddp_group_clear_round(struct ddp_group_test *t)
{
    t->groups = 0;
    for (int i = 0; i < t->rule.ends; i++) {
        t->group[i] = -1;
        t->used[i] = false;
    }
}

int ddp_group_add(struct ddp_group_test *t, const int *list, int n)
{
    for (int i = 0; i < n; i++) {
        t->group[list[i]] = t->groups;
        t->used[list[i]] = true;
    }
    return t->groups++;
}

int ddp_group_members(struct ddp_group_test *t, int r, int group)
{
    int n = 0;
    for (int k = 0; k < t->active; k++) {
        const int i = (int)t->order[k];
        if (t->history[(size_t)r * (size_t)t->rule.ends + (size_t)i] == group)
            t->list[n++] = i;
    }
    return n;
}

bool ddp_group_grow(struct ddp_group_test *t, int *list, int *n, int want, bool strict, bool any)
{
    uint64_t *allowed = t->allowed;
    memset(allowed, 0xff, (size_t)t->words * sizeof *allowed);
    for (int i = 0; i < *n && strict; i++)
        for (int w = 0; w < t->words && is_clean(t, list[i]); w++)
            allowed[w] &= row(t, t->good, list[i])[w];
    for (int i = 0; i < *n; i++)
        drop(allowed, list[i]);
    const int start = (int)ddp_rng_below(&t->rng, (uint64_t)t->active);
    for (int k = 0; k < t->active && *n < want; k++) {
        const int i = (int)t->order[(start + k) % t->active];
        if (!has(allowed, i) || t->used[i] || t->named[i] || !is_clean(t, i) ||
            (t->reserved[i] && !any))
            continue;
        list[(*n)++] = i;
        for (int w = 0; w < t->words; w++)
            allowed[w] &= row(t, t->good, i)[w];
        drop(allowed, i);
    }
    return *n == want;
}

/* The screen. */

/* Returns which of the parallel lines of a direction contains a point of the plane. */
static int line_of(const struct ddp_group_test *t, int point, int direction)
{
    const int q = t->planes;
    const int x = point / q, y = point % q;
    return direction == q ? x : (y + direction * x) % q;
}

/* Sets *least and *most to the sizes of the smallest and the largest line if the points in extra
 * [extras] have an additional end. */
static void line_sizes(const struct ddp_group_test *t, const uint32_t *extra, int extras,
                       int *least, int *most)
{
    const int q = t->planes, of_line = t->active / (q * q) * q;
    *least = t->active;
    *most = 0;
    for (int direction = 0; direction <= q; direction++) {
        int n[PLANE_MOST] = {0};
        for (int i = 0; i < extras; i++)
            n[line_of(t, (int)extra[i], direction)]++;
        for (int line = 0; line < q; line++) {
            *least = DDP_MIN(*least, of_line + n[line]);
            *most = DDP_MAX(*most, of_line + n[line]);
        }
    }
}

/* Assigns each end to a point of the plane, and sets `size` and `even`. If the ends cannot be
 * divided evenly, some points get an additional end. These points are the best of PLACE_TRIES
 * random choices. */
static void place_ends(struct ddp_group_test *t)
{
    const int points = t->planes * t->planes, each = t->active / points;
    const int extras = t->active % points;
    uint32_t order[PLANE_MOST * PLANE_MOST], best[PLANE_MOST * PLANE_MOST];
    int best_range = INT_MAX, k = 0;
    for (int i = 0; i < points; i++)
        order[i] = (uint32_t)i;
    for (int tries = 0; tries < PLACE_TRIES; tries++) {
        int least, most;
        ddp_rng_shuffle(&t->rng, order, (size_t)points);
        line_sizes(t, order, extras, &least, &most);
        if (most - least >= best_range)
            continue;
        best_range = most - least;
        t->size = least;
        t->even = EVEN * best_range <= least;
        memcpy(best, order, sizeof best);
    }
    for (int i = 0; i < points; i++)
        for (int n = each + (i < extras); n > 0; n--)
            t->point[k++] = (uint8_t)best[i];
}

/* Returns the number of active ends that end i has not met in this screen. */
static int unmet(const struct ddp_group_test *t, int i)
{
    int n = 0;
    for (int k = 0; k < t->active; k++) {
        const int j = (int)t->order[k];
        n += !has(row(t, t->met, i), j);
    }
    return n;
}

void ddp_group_begin_screen(struct ddp_group_test *t)
{
    t->phase = SCREEN;
    t->pass_round = t->result.rounds;
    t->found_before = t->result.fault_count;
    memcpy(t->met, t->good, (size_t)t->rule.ends * (size_t)t->words * sizeof *t->met);
    t->active = 0;
    for (int k = 0; k < t->result.fault_count; k++)
        if (t->result.fault[k].to >= 0)
            put_pairs(t, t->met, (const int[]){t->result.fault[k].end, t->result.fault[k].to}, 2);
    for (int i = 0; i < t->rule.ends; i++) {
        put(row(t, t->met, i), i);
        if (!t->named[i])
            t->order[t->active++] = (uint32_t)i;
    }
    ddp_rng_shuffle(&t->rng, t->order, (size_t)t->active);
    int64_t left = 0;
    for (int k = 0; k < t->active; k++)
        left += unmet(t, (int)t->order[k]);
    if (left == 0)
        t->result.end = DDP_GROUP_CLEAN;
    /* A plane saves rounds only if many pairs are left. */
    const bool few = 10 * left < (int64_t)t->active * t->active;
    t->planes = t->active < 25 || few ? 0 : t->active < 49 ? 5 : 7;
    if (t->result.rounds == 0)
        t->size = t->active < 9 ? 2 : t->active < 16 ? 3 : 4;
    if (t->planes > 0)
        place_ends(t);
    t->result.group_ends = t->size;
}

/* Adds the lines of a direction as groups. Unless `even` is set, random ends of the larger lines
 * are left out, so that all groups have the same size. */
static void plane_round(struct ddp_group_test *t, int direction)
{
    for (int line = 0; line < t->planes; line++) {
        int n = 0;
        for (int k = 0; k < t->active; k++)
            if (line_of(t, t->point[k], direction) == line)
                t->list[n++] = (int)t->order[k];
        for (; !t->even && n > t->size; n--)
            t->list[ddp_rng_below(&t->rng, (uint64_t)n)] = t->list[n - 1];
        ddp_group_add(t, t->list, n);
    }
}

/* Returns the unused active end with the highest score, or -1. */
static int best_end(const struct ddp_group_test *t)
{
    int best = -1;
    for (int k = 0; k < t->active; k++) {
        const int i = (int)t->order[k];
        if (!t->used[i] && (best < 0 || t->score[i] > t->score[best]))
            best = i;
    }
    return best;
}

/* Adds groups of ends that have not met, greedily. The two ends of a named link do not share a
 * group. The order of the ends is random in each round, so that different ends fill up the
 * groups. */
static void greedy_round(struct ddp_group_test *t)
{
    const int groups = DDP_MIN(t->active / t->size, DDP_GROUPS_MOST);
    ddp_rng_shuffle(&t->rng, t->order, (size_t)t->active);
    for (int g = 0; g < groups; g++) {
        int n = 0;
        for (int i = 0; i < t->rule.ends; i++)
            t->score[i] = t->used[i] || t->named[i] ? 0 : unmet(t, i);
        for (; n < t->size; n++) {
            const int best = best_end(t);
            if (best < 0 || t->score[best] < 0)
                break;
            t->list[n] = best;
            t->used[best] = true;
            for (int i = 0; i < t->rule.ends; i++) {
                t->score[i] = (n == 0 ? 0 : t->score[i]) + !has(row(t, t->met, best), i);
                if (ddp_group_is_named_link(t, best, i))
                    t->score[i] -= t->rule.ends;
            }
        }
        if (n == t->size)
            ddp_group_add(t, t->list, n);
    }
}

/* If both ends of a named link are in the same group, removes one end from the group. */
static void part_named_links(struct ddp_group_test *t)
{
    for (int k = 0; k < t->result.fault_count; k++) {
        const struct ddp_group_fault *f = &t->result.fault[k];
        if (f->to >= 0 && t->group[f->end] == t->group[f->to])
            t->group[f->to] = -1;
    }
}

bool ddp_group_screen_round(struct ddp_group_test *t)
{
    const int done = t->result.rounds - t->pass_round;
    if (t->planes > 0 && done <= t->planes) {
        plane_round(t, done);
        part_named_links(t);
    } else {
        bool left = false;
        for (int k = 0; k < t->active && !left; k++)
            left = unmet(t, (int)t->order[k]) > 0;
        if (!left)
            return false;
        greedy_round(t);
    }
    return true;
}

/* The level and the scatter. */

/* Returns the time of a group minus the median of its round. If the round has too few groups, the
 * median of all groups (`base`) is subtracted instead. */
static double relative(const struct ddp_group_test *t, int r, int group)
{
    double v[DDP_GROUPS_MOST];
    const int n = t->group_count[r];
    if (n < GROUPS_OF_MEDIAN)
        return t->time[r][group] - t->base;
    memcpy(v, t->time[r], (size_t)n * sizeof *v);
    return t->time[r][group] - ddp_lower_median(v, (size_t)n);
}

/* Each iteration leaves out the groups that exceed the threshold of the previous iteration. */
void ddp_group_find_level(struct ddp_group_test *t)
{
    static const int iterations = 6;
    double v[DDP_GROUP_ROUNDS * DDP_GROUPS_MOST], y[DDP_GROUP_ROUNDS * DDP_GROUPS_MOST] = {0};
    double error[DDP_GROUP_ROUNDS * DDP_GROUPS_MOST];
    int n = 0, all = 0;
    for (int r = 0; r < t->result.rounds; r++)
        for (int g = 0; g < t->group_count[r]; g++) {
            error[n] = t->error[r][g];
            v[n++] = t->time[r][g];
        }
    t->base = ddp_lower_median(v, (size_t)n);
    for (int r = 0; r < t->result.rounds; r++)
        for (int g = 0; g < t->group_count[r]; g++)
            y[all++] = relative(t, r, g);
    const double within = ddp_median(error, (size_t)n);
    t->threshold = INFINITY;
    for (int k = 0; k < iterations; k++) {
        int kept = 0;
        for (int i = 0; i < all; i++)
            if (y[i] - t->level <= t->threshold || k == 0)
                v[kept++] = y[i];
        t->level = ddp_lower_median(v, (size_t)kept);
        for (int i = 0; i < kept; i++)
            v[i] = fabs(v[i] - t->level);
        const double between = 1.4826 * ddp_lower_median(v, (size_t)kept);
        /* A scatter of few values may be too small by chance. */
        t->result.scatter = fmax(between, within) * (1 + 3.0 / kept);
        t->threshold = fmax(t->rule.least, DDP_GROUP_SIGMAS * t->result.scatter);
    }
    t->result.odd = 0;
    for (int i = 0; i < all; i++)
        t->result.odd += y[i] - t->level < -t->threshold;
    t->result.groups = all;
    t->result.detectable = t->threshold + DDP_GROUP_SIGMAS * t->result.scatter;
}

bool ddp_group_is_slow(const struct ddp_group_test *t, int r, int group)
{
    return relative(t, r, group) - t->level > t->threshold;
}
