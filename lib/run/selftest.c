/* Runs the gates of the self-test, judges them, and stores the noise floor. */
#include "run/selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "record/provenance.h"
#include "run/gate_launch.h"
#include "run/gate_run.h"
#include "run/noise_floor.h"
#include "stats/signflip.h"
#include "stats/summary.h"

/* Returns whether the gate simulates delays itself, because the command may lack --inject-delay. */
static bool simulates(const struct ddp_selftest_setup *setup)
{
    return setup->gate.wall || setup->gate.read != DDP_FOREIGN_NONE;
}

/* Lists the facts that must be equal for a self-test to continue a journal: command, environment,
 * options, machine and build. The number of gates may differ. */
static void gather_facts(const struct ddp_selftest_setup *setup, struct ddp_journal_facts *facts)
{
    const struct ddp_build *build = ddp_build_info();
    struct ddp_noise_machine here;
    uint64_t env = DDP_FNV_INIT; /* only a hash is stored, because the values may be secret */
    ddp_noise_machine_read(&here);
    for (int i = 0; setup->env && setup->env[i]; i++)
        env = ddp_fnv1a(env, setup->env[i], strlen(setup->env[i]) + 1);
    facts->count = 0;
    ddp_journal_fact(facts, "the command", "%s", setup->command);
    ddp_journal_fact(facts, "environment", "%016llx", (unsigned long long)env);
    ddp_journal_fact(facts, setup->gate.looks.count > 1 ? "--max-pairs" : "--pairs", "%d",
                     ddp_gate_max_pairs(&setup->gate));
    if (setup->gate.runs > 0)
        ddp_journal_fact(facts, "--runs", "%d", setup->gate.runs);
    ddp_journal_fact(facts, "--seed", "%llu", (unsigned long long)setup->gate.seed);
    ddp_journal_fact(facts, "--inject", "%g %%", setup->effect * 100);
    if (simulates(setup))
        ddp_journal_fact(facts, "--metric or --read", "%s",
                         ddp_gate_kind(setup->gate.wall, setup->gate.read));
    ddp_journal_fact(facts, "processor", "%s, %d cores", here.cpu, here.cores);
    ddp_journal_fact(facts, "kernel", "%s", here.kernel);
    ddp_journal_fact(facts, "version", "%s", build->version);
    ddp_journal_fact(facts, "commit", "%s", build->commit);
    ddp_journal_fact(facts, "compiler", "%s", here.build);
}

static int keep(struct ddp_selftest *test, const void *payload, size_t bytes, struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&test->gates, (size_t)test->count + 1, err));
    struct ddp_noise_gate *copy = malloc(bytes);
    if (!copy)
        return ddp_fail_memory(err, 1, bytes, __func__);
    memcpy(copy, payload, bytes);
    test->gates[test->count++] = copy;
    return 0;
}

bool ddp_selftest_injects(int same, int injected, int i)
{
    const int64_t all = (int64_t)same + injected;
    return (i + 1) * (int64_t)injected / all > i * (int64_t)injected / all;
}

static bool is_done(const struct ddp_selftest *test, bool injected, int index)
{
    for (int i = 0; i < test->count; i++)
        if (test->gates[i]->index == index && (test->gates[i]->injected >= 0) == injected)
            return true;
    return false;
}

/* Returns a gate's data as a journal payload, or NULL if there is no memory. Release it with
 * free(). */
static struct ddp_noise_gate *pack(const struct ddp_gate_data *data, int64_t took_ns, int index,
                                   int injected)
{
    const struct ddp_noise_gate head = {.index = index,
                                        .injected = injected,
                                        .pairs = data->pairs,
                                        .cells = (int32_t)data->count,
                                        .rerun = data->rerun,
                                        .mixed = data->mixed,
                                        .took_ms = took_ns / 1000000};
    const size_t pairs = (size_t)data->pairs;
    struct ddp_noise_gate *gate = ddp_calloc(1, ddp_noise_gate_bytes(&head));
    struct ddp_gate_data to;
    if (!gate)
        return NULL;
    *gate = head;
    ddp_selftest_data(gate, &to);
    for (int side = 0; side < 2; side++) {
        memcpy(to.median[side], data->median[side], data->count * pairs * sizeof(double));
        memcpy(to.pingpong[side], data->pingpong[side], pairs * sizeof(double));
        memcpy(to.memory[side], data->memory[side], pairs * sizeof(double));
    }
    memcpy(to.id, data->id, data->count * sizeof *data->id);
    return gate;
}

/* True if the cells of `data` are those of the first gate. If they are not, the gates cannot be
 * judged together. */
static bool same_cells(const struct ddp_selftest *test, const struct ddp_gate_data *data)
{
    struct ddp_gate_data first;
    if (test->count == 0)
        return true;
    ddp_selftest_data(test->gates[0], &first);
    bool same = first.count == data->count;
    for (size_t c = 0; same && c < data->count; c++)
        same = strcmp(first.id[c], data->id[c]) == 0;
    return same;
}

int ddp_selftest_visit(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct ddp_selftest *test = arg;
    bool good = entry->kind == DDP_JOURNAL_GATE && test->count < 2 * DDP_SELFTEST_GATES_MAX;
    if (good) {
        DDP_TRY(keep(test, entry->payload, entry->payload_bytes, err));
        struct ddp_noise_gate *gate = test->gates[--test->count];
        struct ddp_gate_data data;
        ddp_selftest_data(gate, &data);
        good = same_cells(test, &data) && !is_done(test, gate->injected >= 0, gate->index);
        if (good)
            test->count++;
        else
            free(gate);
    }
    if (good)
        return 0;
    ddp_fail(err, DDP_EINPUT, "the journal has an entry that no self-test writes: '%s'", entry->id);
    return ddp_hint(err, "use --restart to begin again");
}

static int split_sides(const struct ddp_selftest_setup *setup, const char *next,
                       struct ddp_gate_setup *gate, struct ddp_err *err)
{
    gate->side[DDP_BASE] = (struct ddp_gate_side){.text = setup->command, .env = setup->env};
    gate->side[DDP_NEXT] = (struct ddp_gate_side){.text = next, .env = setup->env};
    DDP_TRY(ddp_argv_split(setup->command, &gate->side[DDP_BASE].words, err));
    return ddp_argv_split(next, &gate->side[DDP_NEXT].words, err);
}

/* Writes the command line of the second side to next [bytes]. Adds --inject-delay if cell >= 0,
 * unless the gate simulates the delay. */
static int name_next(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                     int cell, char *next, size_t bytes, struct ddp_err *err)
{
    struct ddp_gate_data first;
    int n;
    if (cell < 0 || simulates(setup)) {
        n = snprintf(next, bytes, "%s", setup->command);
    } else {
        ddp_selftest_data(test->gates[0], &first);
        if (strchr(first.id[cell], '\''))
            return ddp_fail(err, DDP_EUSAGE, "no delay can be injected into '%s'", first.id[cell]);
        n = snprintf(next, bytes, "%s --inject-delay '%g@%s'", setup->command, setup->effect * 100,
                     first.id[cell]);
    }
    return n >= 0 && (size_t)n < bytes ? 0 : ddp_fail(err, DDP_EUSAGE, "the command is too long");
}

static int run_gate(const struct ddp_selftest_setup *setup, bool injected, int index,
                    struct ddp_journal *journal, struct ddp_selftest *test, struct ddp_err *err)
{
    struct ddp_gate_setup gate = setup->gate;
    struct ddp_gate_data data = {.count = 0};
    struct ddp_noise_gate *payload = NULL;
    const int cell = injected ? index % test->gates[0]->cells : -1;
    const int64_t began_ns = ddp_now_ns();
    char next[4096];
    int rc;
    gate.injects = injected;
    if (injected && simulates(setup)) {
        ddp_selftest_data(test->gates[0], &data);
        gate.slow = setup->effect;
        gate.slow_cell = data.id[cell];
        data = (struct ddp_gate_data){.count = 0};
    }
    gate.seed =
        ddp_mix64(setup->gate.seed ^ ddp_mix64(((uint64_t)injected << 32) | (uint64_t)index));
    DDP_TRY(name_next(setup, test, cell, next, sizeof next, err));
    DDP_TRY_GOTO(split_sides(setup, next, &gate, err), out);
    DDP_TRY_GOTO(ddp_gate_measure(&gate, &data, err), out);
    if (data.unjudged.count > 0) {
        const struct ddp_unjudged *first = &data.unjudged.items[0];
        ddp_fail(err, DDP_EMISMATCH, "a self-test cannot judge '%s', a %s", first->name,
                 ddp_unjudged_kind(first));
        rc = ddp_hint(err, "the command must always measure the same points");
        goto out;
    }
    if (data.trains[0]) {
        ddp_fail(err, DDP_EMISMATCH, "a self-test cannot judge the training run '%s'", data.trains);
        rc = ddp_hint(err, "the command must not train");
        goto out;
    }
    if (!same_cells(test, &data)) {
        ddp_fail(err, DDP_EMISMATCH, "the cells of this gate differ from those of the first");
        rc = ddp_hint(err, "the command of a self-test must always measure the same points");
        goto out;
    }
    payload = pack(&data, ddp_now_ns() - began_ns, index, cell);
    if (!payload) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
        goto out;
    }
    struct ddp_journal_entry entry = {.kind = DDP_JOURNAL_GATE,
                                      .launch = 1,
                                      .cell = index,
                                      .payload = payload,
                                      .payload_bytes = ddp_noise_gate_bytes(payload)};
    snprintf(entry.id, sizeof entry.id, "%s %d", injected ? "injected" : "A/A", index);
    DDP_TRY_GOTO(ddp_journal_append(journal, &entry, err), out);
    rc = keep(test, payload, entry.payload_bytes, err);
out:
    free(payload);
    ddp_gate_release(&data);
    ddp_argv_release(&gate.side[DDP_BASE].words);
    ddp_argv_release(&gate.side[DDP_NEXT].words);
    return rc;
}

/* The progress of a self-test, shown on stderr. */
struct progress {
    int done, all, first, pair, pairs;
    bool injected, begun;
    struct ddp_log *log; /* NULL: show nothing */
    int64_t since_ns;
};

static void show(void *arg)
{
    struct progress *p = arg;
    char text[160] = "";
    const double gates = p->done - p->first + (double)p->pair / p->pairs;
    const double took_s = (double)(ddp_now_ns() - p->since_ns) / 1e9;
    if (!p->log)
        return;
    ddp_text_append(text, sizeof text, "self-test: gate %d of %d (%s), pair %d of %d", p->done + 1,
                    p->all, p->injected ? "delay injected" : "A/A", p->pair + 1, p->pairs);
    ddp_log_progress_times(text, sizeof text, took_s, "about",
                           gates > 0 ? took_s / gates * (p->all - p->first - gates) : NAN);
    ddp_log_progress(p->log, "%s", text);
}

static void begin_gate(struct progress *p, int done, int all, bool injected)
{
    if (!p->begun) {
        p->since_ns = ddp_now_ns();
        p->first = done;
    }
    p->begun = true;
    p->done = done;
    p->all = all;
    p->injected = injected;
}

static void on_child(void *arg, int pair, int pairs, int side)
{
    struct progress *p = arg;
    (void)side;
    p->pair = pair;
    p->pairs = pairs;
    show(p);
}

/* Runs the gates that are missing in *test. Returns DDP_EMISMATCH if the cells change, and the
 * errors of ddp_gate_measure and ddp_journal_append. */
static int run_gates(const struct ddp_selftest_setup *setup, struct ddp_journal *journal,
                     struct ddp_selftest *test, struct ddp_err *err)
{
    const int all = setup->same + setup->injected;
    int index[2] = {0, 0};
    for (int i = 0; i < all; i++) {
        const bool injected = ddp_selftest_injects(setup->same, setup->injected, i);
        const int mine = index[injected]++;
        if (is_done(test, injected, mine))
            continue;
        begin_gate(setup->gate.arg, i, all, injected);
        DDP_TRY(run_gate(setup, injected, mine, journal, test, err));
    }
    return 0;
}

void ddp_selftest_release(struct ddp_selftest *test)
{
    for (int i = 0; i < test->count; i++)
        free(test->gates[i]);
    free(test->gates);
    *test = (struct ddp_selftest){.count = 0};
}

/* noise_floor is this quantile over the A/A gates, and detectable is this quantile over the cells
 * of all A/A gates (record/noise.h). */
#define MOST 0.9
/* Number of times that the bisection halves the range from 0 to 100 %. The resolution is 0.02 %. */
#define HALVINGS 12

void ddp_selftest_data(struct ddp_noise_gate *gate, struct ddp_gate_data *out)
{
    const size_t pairs = (size_t)gate->pairs, cells = (size_t)gate->cells;
    double *at = (double *)(void *)(gate + 1);
    *out = (struct ddp_gate_data){
        .count = cells, .pairs = gate->pairs, .rerun = gate->rerun, .mixed = gate->mixed};
    for (int side = 0; side < 2; side++, at += cells * pairs)
        out->median[side] = at;
    for (int side = 0; side < 2; side++, at += pairs)
        out->pingpong[side] = at;
    for (int side = 0; side < 2; side++, at += pairs)
        out->memory[side] = at;
    out->id = (char(*)[DDP_NOISE_ID_BYTES])(void *)at;
}

/* Sorts v[n] and returns its quantile MOST: the smallest element x such that at least the fraction
 * MOST of the elements is <= x. n >= 1. */
static double most_of(double *v, size_t n)
{
    ddp_sort_doubles(v, n);
    size_t rank = (size_t)ceil(MOST * (double)n);
    return v[DDP_MIN(DDP_MAX(rank, 1), n) - 1];
}

/* Scratch memory for one gate, and the values collected from all gates. */
struct work {
    const struct ddp_selftest_setup *setup;
    struct ddp_cell *cells;
    double *next;   /* medians of new, with one cell slowed */
    double *values; /* [n] */
    size_t n;
};

/* Returns 1 if the gate finds cell c slower after new's medians of this cell were multiplied by 1 +
 * effect, which simulates a slow-down. Otherwise returns 0, or -1 if there is no memory. */
static int finds(struct work *w, const struct ddp_gate_data *data, size_t c, double effect,
                 double min_effect)
{
    const size_t pairs = (size_t)data->pairs;
    struct ddp_verdict_rule rule = ddp_gate_rule(&w->setup->gate, data->pairs);
    enum ddp_verdict verdict;
    rule.min_effect = min_effect;
    memcpy(w->next, data->median[DDP_NEXT], data->count * pairs * sizeof *w->next);
    for (size_t i = 0; i < pairs; i++)
        w->next[i * data->count + c] *= 1 + effect;
    if (ddp_verdict_decide(data->median[DDP_BASE], w->next, data->count, pairs, &rule, w->cells,
                           &verdict) != 0)
        return -1;
    return w->cells[c].state == DDP_CELL_SLOWER;
}

/* Sets *out to the smallest slow-down of cell c that this gate would find. If it finds none up to
 * 100 %, sets *out to INFINITY. Returns -1 if there is no memory. */
static int least_found(struct work *w, const struct ddp_gate_data *data, size_t c,
                       double min_effect, double *out)
{
    double low = 0, high = 1;
    int found = finds(w, data, c, high, min_effect);
    *out = INFINITY;
    if (found != 1)
        return found;
    for (int i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        found = finds(w, data, c, middle, min_effect);
        if (found < 0)
            return -1;
        *(found ? &high : &low) = middle;
    }
    *out = high;
    return 0;
}

/* Returns the smallest min_effect with which this gate would pass: the largest upper bound of its
 * cells' slow-downs. */
static double floor_of(const struct ddp_verdict_record *v)
{
    double most = 0;
    for (size_t c = 0; c < v->count; c++)
        most = fmax(most, isnan(v->cells[c].cell.upper) ? INFINITY : v->cells[c].cell.upper - 1);
    return most;
}

static void count_gate(const struct ddp_verdict_record *v, int injected, struct ddp_noise *out)
{
    const bool fail = v->outcome == DDP_VERDICT_FAIL;
    bool other = false;
    for (size_t c = 0; c < v->count; c++)
        other |= (int)c != injected && v->cells[c].cell.state == DDP_CELL_SLOWER;
    if (injected < 0) {
        out->same++;
        out->false_alarms += fail;
        out->inconclusive += v->outcome == DDP_VERDICT_INCONCLUSIVE;
    } else {
        out->injected++;
        out->found += fail && v->cells[injected].cell.state == DDP_CELL_SLOWER;
        out->elsewhere += fail && other;
    }
}

static bool counts(const struct ddp_selftest_setup *setup, const struct ddp_noise_gate *gate)
{
    return gate->index < (gate->injected < 0 ? setup->same : setup->injected);
}

static int judge_gates(struct work *w, const struct ddp_selftest *test, struct ddp_noise *out,
                       struct ddp_err *err)
{
    struct ddp_gate_setup gate = w->setup->gate;
    gate.side[DDP_BASE].text = gate.side[DDP_NEXT].text = w->setup->command;
    w->n = 0;
    for (int i = 0; i < test->count; i++) {
        struct ddp_gate_data data;
        struct ddp_verdict_record v;
        if (!counts(w->setup, test->gates[i]))
            continue;
        ddp_selftest_data(test->gates[i], &data);
        DDP_TRY(ddp_gate_judge(&gate, &data, &v, err));
        count_gate(&v, test->gates[i]->injected, out);
        if (test->gates[i]->injected < 0)
            w->values[w->n++] = floor_of(&v);
        ddp_verdict_record_release(&v);
    }
    out->noise_floor = most_of(w->values, w->n);
    return 0;
}

static int find_detectable(struct work *w, const struct ddp_selftest *test, struct ddp_noise *out,
                           struct ddp_err *err)
{
    const double min_effect = fmax(out->min_effect, out->noise_floor);
    w->n = 0;
    for (int i = 0; i < test->count; i++) {
        struct ddp_gate_data data;
        if (test->gates[i]->injected >= 0 || !counts(w->setup, test->gates[i]))
            continue;
        ddp_selftest_data(test->gates[i], &data);
        for (size_t c = 0; c < data.count; c++)
            if (least_found(w, &data, c, min_effect, &w->values[w->n++]) != 0)
                return ddp_fail(err, DDP_ENOMEM, "no memory to judge the self-test");
    }
    const double least = most_of(w->values, w->n);
    out->detectable = isfinite(least) ? least : NAN;
    return 0;
}

/* Finds the median number of pairs and the median duration of the gates. */
static void find_medians(struct work *w, const struct ddp_selftest *test, struct ddp_noise *out)
{
    double *const pairs = w->values, *const seconds = w->values + test->count;
    size_t n = 0;
    for (int i = 0; i < test->count; i++) {
        if (!counts(w->setup, test->gates[i]))
            continue;
        pairs[n] = test->gates[i]->pairs;
        seconds[n++] = (double)test->gates[i]->took_ms / 1e3;
    }
    out->median_pairs = ddp_median(pairs, n);
    out->median_seconds = ddp_median(seconds, n);
}

int ddp_selftest_judge(const struct ddp_selftest_setup *setup, const struct ddp_selftest *test,
                       struct ddp_noise *out, struct ddp_err *err)
{
    const size_t cells = (size_t)test->gates[0]->cells;
    const size_t pairs = (size_t)ddp_gate_max_pairs(&setup->gate);
    struct work w = {.setup = setup};
    struct ddp_noise noise = {.pairs = (int)pairs,
                              .cells = (int)cells,
                              .injected_effect = setup->effect,
                              .min_effect = setup->gate.min_effect};
    int rc = 0;
    ddp_noise_machine_read(&noise.machine);
    ddp_printable(setup->command, noise.command, sizeof noise.command);
    ddp_clock_iso8601(noise.measured, sizeof noise.measured);
    DDP_TRY_GOTO(DDP_NEW(&w.cells, cells, err), out);
    DDP_TRY_GOTO(DDP_NEW(&w.next, cells * pairs, err), out);
    DDP_TRY_GOTO(DDP_NEW(&w.values, (size_t)test->count * DDP_MAX(cells, (size_t)2), err), out);
    DDP_TRY_GOTO(judge_gates(&w, test, &noise, err), out);
    DDP_TRY_GOTO(find_detectable(&w, test, &noise, err), out);
    find_medians(&w, test, &noise);
    *out = noise;
out:
    free(w.values);
    free(w.next);
    free(w.cells);
    return rc;
}

int ddp_selftest_least_gates(void)
{
    return (int)ceil(log(DDP_VERDICT_LEVEL) / log(MOST));
}

bool ddp_selftest_holds(const struct ddp_noise *noise)
{
    return noise->false_alarms <= (noise->same + 59) / 60 &&
           noise->inconclusive <= (noise->same + 14) / 15 &&
           noise->injected - noise->found <= (noise->injected + 29) / 30 && noise->elsewhere == 0;
}

/* The default command of a self-test. It has few cells and few iterations, so that several runs fit
 * into the half second that a gate spends on each command in a pair. Several short runs tell more
 * than one long run, because times differ more between runs than within a run. With smaller
 * messages the timer could not resolve 1 % of the time. */
#define CELLS "allreduce --size 64K,256K,1M --placement in -n 100 -q --progress never"

/* Writes the command that runs this program with CELLS. Returns DDP_EUNAVAIL if the program's path
 * is unknown or cannot be quoted. */
static int own_command(char *out, size_t bytes, struct ddp_err *err)
{
    char path[4096];
    if (!ddp_own_path(path, sizeof path))
        return ddp_fail(err, DDP_EUNAVAIL,
                        "cannot find the file of this program; name a command with --base");
    if (strchr(path, '\'') || (size_t)snprintf(out, bytes, "'%s' " CELLS, path) >= bytes)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "cannot quote '%s' in a command; name a command with --base", path);
    return 0;
}

/* Opens the journal of the self-test, "<path>.journal", and reads its gates into *test. */
static int open_journal(struct ddp_app *app, const struct ddp_selftest_setup *setup,
                        const char *path, bool restart, struct ddp_selftest *test,
                        struct ddp_journal **journal, struct ddp_err *err)
{
    struct ddp_journal_facts facts;
    char name[4200];
    bool continued;
    snprintf(name, sizeof name, "%s.journal", path);
    gather_facts(setup, &facts);
    DDP_TRY(ddp_journal_open(name, &facts, restart, ddp_selftest_visit, test, journal, &continued,
                             err));
    if (continued)
        ddp_logf(&app->log, DDP_LOG_NOTE, "continues '%s': %d gates are done", name, test->count);
    return 0;
}

/* Returns true if there were enough A/A gates to store a noise floor. */
static bool is_enough(const struct ddp_noise *noise)
{
    return noise->same >= ddp_selftest_least_gates();
}

static void conclude(const struct ddp_noise *noise, const char *path,
                     struct ddp_verdict_record *out)
{
    const bool holds = is_enough(noise) && ddp_selftest_holds(noise);
    ddp_verdict_record_init(out);
    out->kind = DDP_BY_SELFTEST;
    out->outcome = holds ? DDP_VERDICT_PASS : DDP_VERDICT_INCONCLUSIVE;
    out->level = DDP_VERDICT_LEVEL;
    out->min_effect = noise->min_effect;
    out->noise_floor = noise->noise_floor;
    out->pairs = noise->pairs;
    out->noise = noise;
    if (is_enough(noise))
        snprintf(out->effect_from, sizeof out->effect_from, "the noise floor is stored in %.500s",
                 path);
    else
        snprintf(out->effect_from, sizeof out->effect_from,
                 "no noise floor is stored: that needs %d A/A gates, not %d; --gates %d,%d "
                 "continues this self-test",
                 ddp_selftest_least_gates(), noise->same, ddp_selftest_least_gates(),
                 noise->injected);
    snprintf(out->base_command, sizeof out->base_command, "%s", noise->command);
    snprintf(out->next_command, sizeof out->next_command, "%s", noise->command);
    snprintf(
        out->reason, sizeof out->reason,
        "%d false alarm%s in %d A/A gates; a delay of %.3g %% was found in %d of %d gates with "
        "this delay, and %d of them reported another cell; noise floor %.2g %%; a gate takes "
        "%.3g pairs and %.3g s (medians)",
        noise->false_alarms, noise->false_alarms == 1 ? "" : "s", noise->same,
        noise->injected_effect * 100, noise->found, noise->injected, noise->elsewhere,
        noise->noise_floor * 100, noise->median_pairs, noise->median_seconds);
}

static int check(const struct ddp_gate_values *v, struct ddp_err *err)
{
    if (v->command[DDP_NEXT] || v->env[DDP_NEXT].n > 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "--selftest runs only --base: it takes no --new or --new-env");
    if (v->gates.n > 2 || (v->gates.n == 2 && v->gates.v[1] > v->gates.v[0]))
        return ddp_fail(err, DDP_EUSAGE,
                        "--gates A,B: B, the number of gates with a delay, must not be larger "
                        "than A");
    return 0;
}

static void remove_journal(struct ddp_app *app, struct ddp_journal *journal)
{
    struct ddp_err late = DDP_ERR_INIT;
    if (ddp_journal_remove(journal, &late) != 0)
        ddp_logf(&app->log, DDP_LOG_WARN, "%s", late.text);
}

/* If there were enough gates, stores the noise floor and removes the journal. Fails if the noise
 * floor is unknown. */
static int store(struct ddp_app *app, const char *path, const struct ddp_noise *noise,
                 struct ddp_journal *journal, struct ddp_err *err)
{
    if (!isfinite(noise->noise_floor))
        return ddp_fail(err, DDP_EINCONCLUSIVE,
                        "no noise floor is stored: in more than 10 %% of the gates, a cell could "
                        "not be judged");
    if (!is_enough(noise)) /* keep the journal, because a later run may add gates */
        return 0;
    DDP_TRY(ddp_noise_write(path, noise, err));
    remove_journal(app, journal);
    return 0;
}

int ddp_gate_selftest(struct ddp_app *app, const struct ddp_gate_values *v, const char *const *env,
                      const struct ddp_gate_setup *gate, struct ddp_noise *noise,
                      struct ddp_verdict_record *out, struct ddp_err *err)
{
    char command[4400], path[4096];
    struct progress progress = {.log = v->quiet ? NULL : &app->log};
    struct ddp_selftest test = {.count = 0};
    struct ddp_journal *journal = NULL;
    int rc;
    DDP_TRY(check(v, err));
    if (!v->command[DDP_BASE])
        DDP_TRY(own_command(command, sizeof command, err));
    DDP_TRY(ddp_noise_floor_path(ddp_gate_kind(gate->wall, gate->read), v->noise_file, path,
                                 sizeof path, err));
    if (path[0] == '\0') {
        ddp_fail(err, DDP_ECREATE,
                 "cannot store a noise floor: neither XDG_STATE_HOME nor HOME is set");
        return ddp_hint(err, "name a file with --noise-floor FILE");
    }
    struct ddp_selftest_setup setup = {.command =
                                           v->command[DDP_BASE] ? v->command[DDP_BASE] : command,
                                       .env = env,
                                       .same = (int)v->gates.v[0],
                                       .injected = v->gates.n > 1 ? (int)v->gates.v[1] : 0,
                                       .effect = v->inject / 100,
                                       .gate = *gate};
    setup.gate.on_child = on_child;
    setup.gate.on_wait = show;
    setup.gate.arg = &progress;
    DDP_TRY(ddp_noise_floor_make_folder(v->noise_file, path, err));
    DDP_TRY_GOTO(open_journal(app, &setup, path, v->restart, &test, &journal, err), out);
    rc = run_gates(&setup, journal, &test, err);
    ddp_log_clear_progress(&app->log);
    DDP_TRY_GOTO(rc, out);
    DDP_TRY_GOTO(ddp_selftest_judge(&setup, &test, noise, err), out);
    DDP_TRY_GOTO(store(app, path, noise, journal, err), out);
    conclude(noise, path, out);
out:
    if (rc != 0 && journal && test.count == 0)
        remove_journal(app, journal);
    ddp_journal_close(journal);
    ddp_selftest_release(&test);
    return rc;
}
