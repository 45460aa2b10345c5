#include "gate_selftest.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unit.h"
#include "bench/selftest.h"
#include "noise_floor.h"

/* The default command of a self-test. Its three cells are short, so that 90 gates of 12 pairs take
 * minutes. With smaller messages the timer could not resolve 1 % of the time. */
#define CELLS "allreduce --size 64K,256K,1M --placement in -n 400 -q --progress never"

struct progress {
    int done, all, first, pair;
    bool injected, terminal, shown, begun;
    int64_t since_ns;
};

static void show(struct progress *p, int pairs)
{
    char left[32] = "";
    const double gates = p->done - p->first + (double)p->pair / pairs;
    if (!p->terminal)
        return;
    if (gates > 0) {
        const double took = (double)(ddp_now_ns() - p->since_ns);
        char time[24];
        ddp_format_ns(took / gates * (p->all - p->first - gates), time, sizeof time);
        snprintf(left, sizeof left, ", about %s left", time);
    }
    fprintf(stderr, "\r\033[Kself-test: gate %d of %d (%s), pair %d of %d%s", p->done + 1, p->all,
            p->injected ? "delay injected" : "A/A", p->pair + 1, pairs, left);
    fflush(stderr);
    p->shown = true;
}

static void on_gate(void *arg, int done, int all, bool injected)
{
    struct progress *p = arg;
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
    show(p, pairs);
}

/* Writes the command that runs this program with CELLS. Returns DDP_EUNAVAIL if the program's path
 * is unknown or cannot be quoted. */
static int own_command(char *out, size_t bytes, struct ddp_err *err)
{
    char path[4096];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "cannot find the file of this program; name a command with --base");
    path[n] = '\0';
    if (strchr(path, '\'') || (size_t)snprintf(out, bytes, "'%s' " CELLS, path) >= bytes)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "cannot quote '%s' in a command; name a command with --base", path);
    return 0;
}

/* Opens the self-test's journal, `path`.journal, and reads the gates in the journal into *test. */
static int open_journal(struct ddp_app *app, const struct ddp_selftest_setup *setup,
                        const char *path, bool restart, struct ddp_selftest *test,
                        struct ddp_journal **journal, struct ddp_err *err)
{
    struct ddp_journal_facts facts;
    char name[4200];
    bool continued;
    snprintf(name, sizeof name, "%s.journal", path);
    ddp_selftest_facts(setup, &facts);
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
    *out =
        (struct ddp_verdict_record){.kind = "selftest",
                                    .outcome = holds ? DDP_VERDICT_PASS : DDP_VERDICT_INCONCLUSIVE,
                                    .level = DDP_VERDICT_LEVEL,
                                    .min_effect = noise->min_effect,
                                    .noise_floor = noise->noise_floor,
                                    .pairs = noise->pairs,
                                    .pingpong_ratio = NAN,
                                    .pingpong_p = NAN,
                                    .memory_ratio = NAN,
                                    .memory_p = NAN,
                                    .noise = noise};
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
    snprintf(out->reason, sizeof out->reason,
             "%d false alarm%s in %d A/A gates; a delay of %.3g %% found in %d of %d, another cell "
             "blamed in %d; noise floor %.2g %%",
             noise->false_alarms, noise->false_alarms == 1 ? "" : "s", noise->same,
             noise->injected_effect * 100, noise->found, noise->injected, noise->elsewhere,
             noise->noise_floor * 100);
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

/* Stores the noise floor if there were enough gates, and then removes the journal. Fails if the
 * noise floor is unknown. */
static int store(struct ddp_app *app, const char *path, const struct ddp_noise *noise,
                 struct ddp_journal *journal, struct ddp_err *err)
{
    if (!isfinite(noise->noise_floor))
        return ddp_fail(err, DDP_EINCONCLUSIVE,
                        "no noise floor is stored: some gates missed cells");
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
    struct progress progress = {.terminal = !v->quiet && isatty(STDERR_FILENO)};
    struct ddp_selftest test = {.count = 0};
    struct ddp_journal *journal = NULL;
    int rc;
    DDP_TRY(check(v, err));
    if (!v->command[DDP_BASE])
        DDP_TRY(own_command(command, sizeof command, err));
    DDP_TRY(ddp_noise_floor_path(v->noise_file, path, sizeof path, err));
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
                                       .gate = *gate,
                                       .on_gate = on_gate,
                                       .arg = &progress};
    setup.gate.on_child = on_child;
    setup.gate.arg = &progress;
    DDP_TRY(ddp_noise_floor_make_folder(v->noise_file, path, err));
    DDP_TRY_GOTO(open_journal(app, &setup, path, v->restart, &test, &journal, err), out);
    rc = ddp_selftest_run(&setup, journal, &test, err);
    if (progress.shown)
        fputs("\r\033[K", stderr);
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
