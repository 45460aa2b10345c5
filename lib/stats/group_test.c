/* The tasks and passes of a search by group testing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "stats/group_test_impl.h"

/* If more slow groups than this have no suspect, a few faults cannot be the reason. */
#define SLOW_MOST 12
/* If more than one in ODD_MOST groups is faster than the level by more than the threshold, the
 * level is not the usual time of healthy groups. */
#define ODD_MOST 10
/* With fewer ends, the checks of a suspect are done twice, because the suspect has been in few
 * different groups. */
#define ENDS_CHECKED_ONCE 25
#define TRIES             8 /* attempts to find partners for a check */
#define IDLE_MOST         3 /* consecutive passes that name no fault */

static void forget_end(struct ddp_group_test *t, int end)
{
    memset(row(t, t->good, end), 0, (size_t)t->words * sizeof *t->good);
    for (int i = 0; i < t->rule.ends; i++)
        drop(row(t, t->good, i), end);
}

/* Tasks. */

/* Makes a free task a task of this kind with the ends a [n] and b [m]. Returns NULL if no task is
 * free. */
static struct ddp_group_task *add_task(struct ddp_group_test *t, enum ddp_group_task_kind kind,
                                       const int *a, int n, const int *b, int m)
{
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        struct ddp_group_task *task = &t->task[k];
        if (task->kind != TASK_FREE)
            continue;
        task->kind = kind;
        task->stage = 0;
        task->trial[0] = task->trial[1] = (struct ddp_group_trial){OPEN, -1};
        task->slow_sum = task->fast_sum = 0;
        task->slow_count = task->fast_count = 0;
        task->fill[0].n = task->fill[1].n = 0;
        memcpy(task->a.e, a, (size_t)n * sizeof *a);
        memcpy(task->b.e, b, (size_t)m * sizeof *b);
        task->a.n = n;
        task->b.n = m;
        return task;
    }
    return NULL;
}

/* Returns the first half of a part for k = 0, and the second half for k = 1. */
static struct ddp_group_part half(const struct ddp_group_part *p, int k)
{
    const int first = (p->n + 1) / 2;
    return k == 0 ? (struct ddp_group_part){first, p->e}
                  : (struct ddp_group_part){p->n - first, p->e + first};
}

/* Sets `out` to the two parts whose ends the group of trial k of a search contains. For a set, the
 * second part is empty. */
static void parts_of(const struct ddp_group_task *task, int k, struct ddp_group_part out[2])
{
    out[0] = half(&task->a, k);
    out[1] = (struct ddp_group_part){0, task->b.e};
    if (task->kind == TASK_CROSS)
        out[1] = half(&task->b, task->stage == 0 ? k : 1 - k);
}

/* Appends the ends of p to list [n]. Returns the new length. */
static int append(int *list, int n, const struct ddp_group_part *p)
{
    memcpy(list + n, p->e, (size_t)p->n * sizeof *list);
    return n + p->n;
}

/* Writes the ends of trial k of a check to `list`. Returns their number. The suspect is in the
 * group of trial 0. For an end, stage 1 exchanges the partners of the two groups. For a link, stage
 * 1 separates the two ends of the link, and stage 2 exchanges the partners. */
static int check_members(const struct ddp_group_task *task, int k, int *list)
{
    const bool link = task->kind == TASK_LINK;
    const int stage = task->stage % (link ? 3 : 2);
    const int a = task->a.e[0], c = task->control[0], d = task->control[1];
    int n = 0;
    if (!link) {
        list[n++] = k == 0 ? a : c;
        return append(list, n, &task->fill[(stage + k) % 2]);
    }
    const int b = task->b.e[0];
    const int pair[2][2][2] = {{{a, b}, {c, d}}, {{a, c}, {b, d}}};
    list[n++] = pair[stage == 1][k][0];
    list[n++] = pair[stage == 1][k][1];
    return append(list, n, &task->fill[stage == 2 ? 1 - k : k]);
}

static int stages_of(const struct ddp_group_test *t, const struct ddp_group_task *task)
{
    return (task->kind == TASK_LINK ? 3 : 2) * (t->active < ENDS_CHECKED_ONCE ? 2 : 1);
}

/* Chooses the partners and the healthy ends (`control`) of a check. `used` marks the ends that are
 * taken. Returns false if there are too few ends to choose from. */
static bool choose_partners(struct ddp_group_test *t, struct ddp_group_task *task, bool strict,
                            bool any)
{
    const int suspects = task->kind == TASK_LINK ? 2 : 1;
    int list[4], n = 0, *long_list = t->list;
    if (suspects == 2) {
        list[n++] = task->a.e[0];
        list[n++] = task->b.e[0];
    }
    if (!ddp_group_grow(t, list, &n, n + suspects, strict, any))
        return false;
    for (int k = 0; k < suspects; k++)
        task->control[k] = list[n - suspects + k];
    for (int i = 0; i < n; i++)
        t->used[list[i]] = true;
    for (int k = 0; k < 2; k++) {
        int m = n;
        memcpy(long_list, list, (size_t)n * sizeof *list);
        if (!ddp_group_grow(t, long_list, &m, n + t->size - suspects, strict, any))
            return false;
        task->fill[k].n = m - n;
        memcpy(task->fill[k].e, long_list + n, (size_t)(m - n) * sizeof *list);
        for (int i = n; i < m; i++)
            t->used[long_list[i]] = true;
    }
    return true;
}

/* Marks the ends of all tasks as reserved. Other tasks take reserved ends as partners only if there
 * are not enough other ends. */
static void reserve(struct ddp_group_test *t)
{
    memset(t->reserved, 0, (size_t)t->rule.ends * sizeof *t->reserved);
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        const struct ddp_group_task *task = &t->task[k];
        const struct ddp_group_part *part[] = {&task->a, &task->b, &task->fill[0], &task->fill[1]};
        for (size_t p = 0; task->kind != TASK_FREE && p < DDP_COUNT_OF(part); p++)
            for (int i = 0; i < part[p]->n; i++)
                t->reserved[part[p]->e[i]] = true;
        for (int i = 0; task->kind >= TASK_END && i < (task->kind == TASK_LINK ? 2 : 1); i++)
            t->reserved[task->control[i]] = true;
    }
}

/* Returns whether another task checks the same link, or the link is named. */
static bool is_double(const struct ddp_group_test *t, int a, int b)
{
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        const struct ddp_group_task *task = &t->task[k];
        if (task->kind == TASK_LINK &&
            ((task->a.e[0] == a && task->b.e[0] == b) || (task->a.e[0] == b && task->b.e[0] == a)))
            return true;
    }
    return ddp_group_is_named_link(t, a, b);
}

/* Begins the check of end `a` (b < 0), or of the link between `a` and `b`. Overwrites `used`, so it
 * must be called between rounds. */
static void begin_check(struct ddp_group_test *t, int a, int b)
{
    if (b >= 0 && is_double(t, a, b))
        return;
    const bool link = b >= 0;
    reserve(t);
    struct ddp_group_task *task = add_task(t, link ? TASK_LINK : TASK_END, &a, 1, &b, link);
    for (int tries = 0; task && tries < TRIES; tries++) {
        memset(t->used, 0, (size_t)t->rule.ends * sizeof *t->used);
        if (!link)
            t->used[a] = true;
        if (choose_partners(t, task, tries % (TRIES / 2) < TRIES / 4, tries >= TRIES / 2))
            return;
    }
    if (task)
        task->kind = TASK_FREE;
}

/* Begins the search of a set, or of the links between two sets. If only one end or one link is
 * left, begins its check. */
static void begin_search(struct ddp_group_test *t, enum ddp_group_task_kind kind, const int *a,
                         int n, const int *b, int m)
{
    if (kind == TASK_SET && n == 1)
        begin_check(t, a[0], -1);
    else if (kind == TASK_CROSS && n == 1 && m == 1)
        begin_check(t, a[0], b[0]);
    else
        (void)add_task(t, kind, a, n, b, m);
}

/* Returns whether the ends of a trial have all been in fast groups together. */
static bool is_known_fast(const struct ddp_group_test *t, const struct ddp_group_part part[2])
{
    for (int p = 0; p < 2; p++)
        for (int i = 0; i < part[p].n; i++)
            for (int o = 0; o < 2; o++)
                for (int j = 0; j < part[o].n; j++)
                    if (!is_good(t, part[p].e[i], part[o].e[j]))
                        return false;
    return true;
}

/* Sets the outcomes of those trials of a search that need no measurement. A trial is fast if all
 * its pairs of ends have been in fast groups. If the faulty link must be in one of the trials, and
 * all others are fast, the last trial is slow. */
static void infer(const struct ddp_group_test *t, struct ddp_group_task *task)
{
    int open = 0, last = 0;
    for (int k = 0; k < 2; k++) {
        struct ddp_group_part part[2];
        parts_of(task, k, part);
        const bool empty = part[0].n == 0 || (task->kind == TASK_CROSS && part[1].n == 0);
        if (task->trial[k].outcome == OPEN && (empty || is_known_fast(t, part)))
            task->trial[k].outcome = FAST;
        if (task->trial[k].outcome == OPEN) {
            open++;
            last = k;
        }
    }
    if (task->kind == TASK_CROSS && task->stage == 1 && open == 1 &&
        task->trial[1 - last].outcome == FAST && (task->a.n == 1 || task->b.n == 1))
        task->trial[last].outcome = SLOW;
}

/* Replaces a search by the next searches or checks when the outcomes of both trials are known. */
static void conclude_search(struct ddp_group_test *t, struct ddp_group_task *task)
{
    const struct ddp_group_task old =
        *task; /* its arrays stay valid until the task is used again */
    const bool slow[2] = {task->trial[0].outcome == SLOW, task->trial[1].outcome == SLOW};
    struct ddp_group_part part[2][2];
    parts_of(task, 0, part[0]);
    parts_of(task, 1, part[1]);
    for (int k = 0; k < 2; k++)
        if (slow[k])
            begin_search(t, old.kind, part[k][0].e, part[k][0].n, part[k][1].e, part[k][1].n);
    task->trial[0] = task->trial[1] = (struct ddp_group_trial){OPEN, -1};
    if (!slow[0] && !slow[1] && old.kind == TASK_SET)
        begin_search(t, TASK_CROSS, part[0][0].e, part[0][0].n, part[1][0].e, part[1][0].n);
    if (!slow[0] && !slow[1] && old.kind == TASK_CROSS && old.stage == 0)
        task->stage = 1;
    else
        task->kind = TASK_FREE;
}

static void name_fault(struct ddp_group_test *t, const struct ddp_group_task *task)
{
    const double slow = task->slow_sum / task->slow_count, fast = task->fast_sum / task->fast_count;
    const double half_width = DDP_GROUP_SIGMAS * t->result.scatter *
                              sqrt(1.0 / task->slow_count + 1.0 / task->fast_count);
    const int to = task->kind == TASK_LINK ? task->b.e[0] : -1;
    if (slow - fast - half_width <= t->rule.least || t->result.fault_count == DDP_GROUP_FAULTS)
        return;
    t->result.fault[t->result.fault_count++] = (struct ddp_group_fault){
        task->a.e[0], to,  slow - fast, slow - fast - half_width, slow - fast + half_width,
        slow,         fast};
    if (to < 0) {
        t->named[task->a.e[0]] = true;
        forget_end(t, task->a.e[0]);
    } else {
        drop(row(t, t->good, task->a.e[0]), to);
        drop(row(t, t->good, to), task->a.e[0]);
    }
}

/* Evaluates a stage of a check after both groups were measured. */
static void conclude_check(struct ddp_group_test *t, struct ddp_group_task *task)
{
    const int r = t->result.rounds - 1;
    const bool apart = task->kind == TASK_LINK && task->stage % 3 == 1;
    bool fits = true;
    for (int k = 0; k < 2; k++) {
        const bool must_be_slow = k == 0 && !apart;
        fits = fits && (task->trial[k].outcome == SLOW) == must_be_slow;
        *(must_be_slow ? &task->slow_sum : &task->fast_sum) += t->time[r][task->trial[k].group];
        *(must_be_slow ? &task->slow_count : &task->fast_count) += 1;
        task->trial[k] = (struct ddp_group_trial){OPEN, -1};
    }
    task->stage++;
    if (fits && task->stage < stages_of(t, task))
        return;
    if (fits)
        name_fault(t, task);
    task->kind = TASK_FREE;
}

/* Concludes searches whose outcomes are known, until every search needs a measurement. Returns the
 * number of tasks. */
static int settle(struct ddp_group_test *t)
{
    int tasks = 0;
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        struct ddp_group_task *task = &t->task[k];
        if (task->kind == TASK_SET || task->kind == TASK_CROSS) {
            infer(t, task);
            if (task->trial[0].outcome != OPEN && task->trial[1].outcome != OPEN) {
                conclude_search(t, task);
                k = -1;
                tasks = 0;
                continue;
            }
        }
        tasks += task->kind != TASK_FREE;
    }
    return tasks;
}

static bool are_unused(const struct ddp_group_test *t, const int *list, int n)
{
    for (int i = 0; i < n; i++)
        if (t->used[list[i]])
            return false;
    return true;
}

/* Adds the two groups that a check needs in this round. Adds none if an end of the groups is used
 * already. */
static void place_check(struct ddp_group_test *t, struct ddp_group_task *task)
{
    for (int k = 0; k < 2; k++)
        if (!are_unused(t, t->list, check_members(task, k, t->list)))
            return;
    for (int k = 0; k < 2; k++)
        task->trial[k] = (struct ddp_group_trial){
            PENDING, ddp_group_add(t, t->list, check_members(task, k, t->list))};
}

/* Adds the groups that a search needs in this round. Leaves out a group for which there are too few
 * partners. */
static void place_search(struct ddp_group_test *t, struct ddp_group_task *task, bool any)
{
    for (int k = 0; k < 2; k++) {
        struct ddp_group_part part[2];
        if (task->trial[k].outcome != OPEN)
            continue;
        parts_of(task, k, part);
        const int own = append(t->list, append(t->list, 0, &part[0]), &part[1]);
        if (!are_unused(t, t->list, own))
            continue;
        for (int strict = 1; strict >= 0 && task->trial[k].outcome == OPEN; strict--) {
            int n = own;
            if (ddp_group_grow(t, t->list, &n, DDP_MAX(own, t->size), strict, any))
                task->trial[k] = (struct ddp_group_trial){PENDING, ddp_group_add(t, t->list, n)};
        }
    }
}

/* Makes groups of the ends that no task needs. These groups show the level of the round. */
static void place_others(struct ddp_group_test *t)
{
    int n = 0;
    for (int k = 0; k < t->active; k++) {
        const int i = (int)t->order[k];
        if (t->used[i] || t->reserved[i] || t->named[i] || !is_clean(t, i))
            continue;
        t->list[n++] = i;
        if (n == t->size && t->groups < DDP_GROUPS_MOST) {
            ddp_group_add(t, t->list, n);
            n = 0;
        }
    }
}

/* Plans a round of the search. Returns false if no task is left. If no task can get a group, all
 * tasks are given up. */
static bool search_round(struct ddp_group_test *t)
{
    while (settle(t) > 0) {
        ddp_group_clear_round(t);
        reserve(t);
        for (int any = 0; any < 2 && t->groups == 0; any++) {
            for (int k = 0; k < DDP_GROUP_TASKS; k++)
                if (t->task[k].kind == TASK_END || t->task[k].kind == TASK_LINK)
                    place_check(t, &t->task[k]);
            for (int k = 0; k < DDP_GROUP_TASKS; k++)
                if (t->task[k].kind == TASK_SET || t->task[k].kind == TASK_CROSS)
                    place_search(t, &t->task[k], any);
        }
        if (t->groups > 0) {
            place_others(t);
            return true;
        }
        for (int k = 0; k < DDP_GROUP_TASKS; k++)
            t->task[k].kind = TASK_FREE;
    }
    return false;
}

/* The passes. */

static int group_of(const struct ddp_group_test *t, int r, int end)
{
    return t->history[(size_t)r * (size_t)t->rule.ends + (size_t)end];
}

/* Returns whether a group of round r contains a named fault. */
static bool is_explained(const struct ddp_group_test *t, int r, int group)
{
    for (int k = 0; k < t->result.fault_count; k++) {
        const struct ddp_group_fault *f = &t->result.fault[k];
        if (group_of(t, r, f->end) == group && (f->to < 0 || group_of(t, r, f->to) == group))
            return true;
    }
    return false;
}

/* Writes the suspects to `list`. These are the active ends with at least two slow groups and no
 * fast group. With 5 or more slow groups, one group may have been fast by chance if there are at
 * least ENDS_CHECKED_ONCE ends. Groups with named faults do not count. Returns the number of
 * suspects. */
static int suspects(const struct ddp_group_test *t, int *list)
{
    const int fast_most = t->active < ENDS_CHECKED_ONCE ? 0 : 1;
    int n = 0;
    for (int k = 0; k < t->active; k++) {
        const int i = (int)t->order[k];
        int slow = 0, fast = 0;
        for (int r = 0; r < t->result.rounds; r++) {
            const int g = group_of(t, r, i);
            if (g >= 0 && !is_explained(t, r, g))
                *(ddp_group_is_slow(t, r, g) ? &slow : &fast) += 1;
        }
        if (slow >= 2 && fast <= (slow < 5 ? 0 : fast_most))
            list[n++] = i;
    }
    return n;
}

/* Records in `good` which pairs of ends were in a fast group of round r. */
static void learn(struct ddp_group_test *t, int r)
{
    for (int g = 0; g < t->group_count[r]; g++)
        if (!ddp_group_is_slow(t, r, g)) {
            const int n = ddp_group_members(t, r, g);
            put_pairs(t, t->good, t->list, n);
        }
}

/* Returns whether at least two ends of list [n] are in part `a` of one task. The fault that this
 * task searches for may then be the reason why the group of the list is slow. */
static bool is_searched(struct ddp_group_test *t, const int *list, int n)
{
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        int shared = 0;
        memset(t->reserved, 0, (size_t)t->rule.ends * sizeof *t->reserved);
        for (int i = 0; t->task[k].kind != TASK_FREE && i < t->task[k].a.n; i++)
            t->reserved[t->task[k].a.e[i]] = true;
        for (int i = 0; i < n; i++)
            shared += t->reserved[list[i]];
        if (shared >= 2)
            return true;
    }
    return false;
}

/* Evaluates the screen, and begins the search for the faults of its slow groups. */
static void end_screen(struct ddp_group_test *t)
{
    int slow = 0, unexplained = 0;
    ddp_group_find_level(t);
    t->result.screened = true;
    for (int r = t->pass_round; r < t->result.rounds; r++)
        learn(t, r);
    const int n = suspects(t, t->score);
    memset(t->used, 0, (size_t)t->rule.ends * sizeof *t->used);
    for (int i = 0; i < n; i++) {
        t->used[t->score[i]] = true;
        forget_end(t, t->score[i]);
    }
    t->phase = SEARCH;
    for (int r = t->pass_round; r < t->result.rounds; r++)
        for (int g = 0; g < t->group_count[r]; g++) {
            if (!ddp_group_is_slow(t, r, g))
                continue;
            slow++;
            const int size = ddp_group_members(t, r, g);
            const bool planned = t->planes > 0 && r - t->pass_round <= t->planes;
            if (!are_unused(t, t->list, size) || (!planned && is_searched(t, t->list, size)))
                continue;
            if (++unexplained <= SLOW_MOST)
                (void)add_task(t, TASK_SET, t->list, size, t->list, 0);
        }
    if (slow == 0 && ODD_MOST * t->result.odd <= t->result.groups)
        t->result.end = DDP_GROUP_CLEAN;
    else if (slow == 0 || n > 2 * t->size || unexplained > SLOW_MOST)
        t->result.end = DDP_GROUP_TOO_MANY;
    else if (n > 0)
        begin_search(t, TASK_SET, t->score, n, t->score, 0);
}

/* Ends a pass. If IDLE_MOST passes in a row have named no fault, the search ends. Otherwise another
 * pass follows. */
static void end_pass(struct ddp_group_test *t)
{
    t->idle_passes = t->result.fault_count > t->found_before ? 0 : t->idle_passes + 1;
    if (t->idle_passes == IDLE_MOST)
        t->result.end = DDP_GROUP_UNEXPLAINED;
    else
        ddp_group_begin_screen(t);
}

int ddp_group_test_next(struct ddp_group_test *t, int *group)
{
    while (t->result.end == DDP_GROUP_RUNNING) {
        ddp_group_clear_round(t);
        const bool planned = t->phase == SCREEN ? ddp_group_screen_round(t) : search_round(t);
        if (planned && t->result.rounds == t->rule.round_limit) {
            t->result.end = DDP_GROUP_LIMIT;
        } else if (planned) {
            memcpy(group, t->group, (size_t)t->rule.ends * sizeof *group);
            return t->groups;
        } else if (t->phase == SCREEN) {
            end_screen(t);
        } else {
            end_pass(t);
        }
    }
    return 0;
}

void ddp_group_test_report(struct ddp_group_test *t, const double *log_time, const double *error)
{
    const int r = t->result.rounds++;
    t->group_count[r] = t->groups;
    for (int i = 0; i < t->rule.ends; i++)
        t->history[(size_t)r * (size_t)t->rule.ends + (size_t)i] = (int16_t)t->group[i];
    memcpy(t->time[r], log_time, (size_t)t->groups * sizeof *log_time);
    memcpy(t->error[r], error, (size_t)t->groups * sizeof *error);
    if (t->phase == SCREEN) {
        for (int g = 0; g < t->groups; g++) {
            const int n = ddp_group_members(t, r, g);
            put_pairs(t, t->met, t->list, n);
        }
        return;
    }
    learn(t, r);
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        struct ddp_group_task *task = &t->task[k];
        bool measured = false;
        for (int i = 0; task->kind != TASK_FREE && i < 2; i++)
            if (task->trial[i].outcome == PENDING) {
                task->trial[i].outcome =
                    ddp_group_is_slow(t, r, task->trial[i].group) ? SLOW : FAST;
                measured = true;
            }
        if (measured && (task->kind == TASK_END || task->kind == TASK_LINK))
            conclude_check(t, task);
    }
}

const struct ddp_group_result *ddp_group_test_result(const struct ddp_group_test *t)
{
    return &t->result;
}

/* Allocates the arrays. Returns false if memory is exhausted. */
static bool alloc_arrays(struct ddp_group_test *t)
{
    const size_t n = (size_t)t->rule.ends, bits = n * (size_t)t->words;
    bool ok = (t->good = ddp_calloc(bits, sizeof *t->good)) != NULL;
    ok = (t->met = ddp_calloc(bits, sizeof *t->met)) && ok;
    ok = (t->allowed = ddp_calloc((size_t)t->words, sizeof *t->allowed)) && ok;
    ok = (t->named = ddp_calloc(n, sizeof *t->named)) && ok;
    ok = (t->used = ddp_calloc(n, sizeof *t->used)) && ok;
    ok = (t->reserved = ddp_calloc(n, sizeof *t->reserved)) && ok;
    ok = (t->order = ddp_calloc(n, sizeof *t->order)) && ok;
    ok = (t->point = ddp_calloc(n, sizeof *t->point)) && ok;
    ok = (t->score = ddp_calloc(n, sizeof *t->score)) && ok;
    ok = (t->list = ddp_calloc(n, sizeof *t->list)) && ok;
    ok = (t->group = ddp_calloc(n, sizeof *t->group)) && ok;
    ok = (t->history = ddp_calloc(n * DDP_GROUP_ROUNDS, sizeof *t->history)) && ok;
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        struct ddp_group_part *part[] = {&t->task[k].a, &t->task[k].b, &t->task[k].fill[0],
                                         &t->task[k].fill[1]};
        for (size_t p = 0; p < DDP_COUNT_OF(part); p++)
            ok = (part[p]->e = ddp_calloc(n, sizeof *part[p]->e)) && ok;
    }
    return ok;
}

struct ddp_group_test *ddp_group_test_open(const struct ddp_group_rule *rule)
{
    struct ddp_group_test *t = ddp_calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->rule = *rule;
    t->rule.round_limit = DDP_MIN(rule->round_limit, DDP_GROUP_ROUNDS);
    t->words = (rule->ends + 63) / 64;
    t->result.scatter = t->result.detectable = NAN;
    if (!alloc_arrays(t)) {
        ddp_group_test_close(t);
        return NULL;
    }
    ddp_rng_init(&t->rng, rule->seed, 0);
    if (rule->ends < DDP_GROUP_ENDS_LEAST)
        t->result.end = DDP_GROUP_TOO_FEW;
    else
        ddp_group_begin_screen(t);
    return t;
}

void ddp_group_test_close(struct ddp_group_test *t)
{
    if (!t)
        return;
    for (int k = 0; k < DDP_GROUP_TASKS; k++) {
        free(t->task[k].a.e);
        free(t->task[k].b.e);
        free(t->task[k].fill[0].e);
        free(t->task[k].fill[1].e);
    }
    free(t->good);
    free(t->met);
    free(t->allowed);
    free(t->named);
    free(t->used);
    free(t->reserved);
    free(t->order);
    free(t->point);
    free(t->score);
    free(t->list);
    free(t->group);
    free(t->history);
    free(t);
}
