#include "run/gate_launch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "record/noise.h"

#define WARM_UPS   3
#define WARM_UP_NS 3000000000
/* The last part of a simulated delay is a busy loop, because a sleep would end too late. */
#define SPIN_NS 200000

const char *ddp_gate_kind(bool wall, enum ddp_foreign read)
{
    return wall ? "wall" : read != DDP_FOREIGN_NONE ? ddp_foreign_names[read] : "";
}

static void free_argv(char **argv, int count)
{
    for (int i = 0; i < count; i++)
        free(argv[i]);
    free(argv);
}

/* Sets *argv to a copy of the command's arguments in which the path of the result replaces {json}.
 * Sets *placed to whether an argument contained {json}. If none did and `appends` is true, appends
 * --json and the path. The caller frees *argv and its strings. */
static int make_argv(const struct ddp_argv *words, const char *path, bool appends, char ***argv,
                     bool *placed, struct ddp_err *err)
{
    bool failed = false;
    char **all;
    *placed = false;
    DDP_TRY(DDP_NEW(&all, (size_t)words->count + 3, err));
    for (int i = 0; i < words->count; i++) {
        struct ddp_strbuf word = DDP_STRBUF_INIT;
        const char *at = words->word[i], *mark;
        while ((mark = strstr(at, "{json}")) != NULL) {
            ddp_strbuf_add_n(&word, at, (size_t)(mark - at));
            ddp_strbuf_add(&word, path);
            at = mark + strlen("{json}");
            *placed = true;
        }
        ddp_strbuf_add(&word, at);
        all[i] = word.text ? word.text : strdup("");
        failed |= word.failed || !all[i];
    }
    if (!*placed && appends) {
        all[words->count] = strdup("--json");
        all[words->count + 1] = strdup(path);
        failed |= !all[words->count] || !all[words->count + 1];
    }
    if (failed) {
        free_argv(all, words->count + 2);
        return ddp_fail(err, DDP_ENOMEM, "no memory for a child process");
    }
    *argv = all;
    return 0;
}

/* Maps the exit status of a child process to an error code. The exit codes 11, 13 and 64 to 78 of
 * ddpbench are kept, because they are more specific than "failed". All other exit statuses become
 * DDP_EUNAVAIL. */
static int code_of(int status)
{
    return status == 11 || status == 13 || (status >= 64 && status <= 78) ? -status : DDP_EUNAVAIL;
}

static int explain_end(const struct ddp_gate_side *side, const struct ddp_child_end *end,
                       struct ddp_err *err)
{
    if (end->signal)
        return ddp_child_signal(end, err);
    if (end->timed_out)
        ddp_fail(err, DDP_ELOST, "'%s' did not end within --launch-timeout", side->text);
    else
        ddp_fail(err, code_of(end->status), "'%s' failed with exit code %d", side->text,
                 end->status);
    ddp_hint(err, "the end of its error output: %s",
             end->last_messages[0] ? end->last_messages : "nothing");
    return err->code;
}

/* Runs the command once. If the command writes a result, the result is then in the file `path`,
 * unless the gate judges only the wall time. */
static int run_once(const struct ddp_gate_setup *setup, int which, const char *path,
                    int64_t *took_ns, struct ddp_err *err)
{
    const struct ddp_gate_side *side = &setup->side[which];
    const bool reads_stdout = !setup->wall && setup->read != DDP_FOREIGN_NONE;
    struct ddp_child_end end;
    char **argv = NULL;
    bool placed;
    unlink(path);
    DDP_TRY(make_argv(&side->words, path, !setup->wall && !reads_stdout, &argv, &placed, err));
    const struct ddp_child child = {.argv = argv,
                                    .env = side->env,
                                    .timeout_ns = setup->child_timeout_ns,
                                    .stdout_path = reads_stdout && !placed ? path : NULL,
                                    .text = side->text,
                                    .log = setup->log,
                                    .on_wait = setup->on_wait,
                                    .arg = setup->arg};
    int rc = ddp_child_run(&child, &end, err);
    free_argv(argv, side->words.count + 2);
    if (rc == 0 && (end.status != 0 || end.signal || end.timed_out))
        rc = explain_end(side, &end, err);
    *took_ns = rc == 0 ? end.took_ns : 0;
    return rc;
}

static void name_result(const struct ddp_gate_setup *setup, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s/launch.json", setup->folder);
}

/* Waits for delay_ns and returns how long the wait took. */
static int64_t simulate_delay(int64_t delay_ns)
{
    const int64_t begun = ddp_now_ns();
    int64_t now;
    while ((now = ddp_now_ns()) - begun < delay_ns)
        ddp_sleep_ns(delay_ns - (now - begun) - SPIN_NS);
    return now - begun;
}

static int time_run(const struct ddp_gate_setup *setup, int which, double *ns, struct ddp_err *err)
{
    char path[4200];
    int64_t took_ns;
    name_result(setup, path, sizeof path);
    const int rc = run_once(setup, which, path, &took_ns, err);
    unlink(path);
    if (rc == 0 && which == DDP_NEXT && setup->slow > 0)
        took_ns += simulate_delay((int64_t)((double)took_ns * setup->slow));
    *ns = (double)took_ns;
    return rc;
}

int ddp_gate_warm_up(const struct ddp_gate_setup *setup, struct ddp_err *err)
{
    for (int side = 0; side < 2 && setup->wall; side++) {
        double total = 0, ns;
        if (setup->on_child)
            setup->on_child(setup->arg, 0, ddp_gate_max_pairs(setup), side);
        for (int i = 0; i < WARM_UPS && total < WARM_UP_NS; i++, total += ns)
            DDP_TRY(time_run(setup, side, &ns, err));
    }
    return 0;
}

/* Stores the facts about this machine in a result that has none. The child processes run on the
 * same machine as the gate. */
static void name_machine(struct ddp_result *result)
{
    struct ddp_noise_machine here;
    ddp_noise_machine_read(&here);
    snprintf(result->fingerprint, sizeof result->fingerprint, "%s, %d cores", here.cpu, here.cores);
    snprintf(result->cpu, sizeof result->cpu, "%s", here.cpu);
    result->cores = here.cores;
}

static int launch_wall(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                       struct ddp_err *err)
{
    double ns;
    DDP_TRY(time_run(setup, which, &ns, err));
    DDP_TRY(ddp_foreign_single(DDP_GATE_WALL_CELL, ns, result, err));
    name_machine(result);
    return 0;
}

/* Adds the facts about this machine to the result of another program, and applies the simulated
 * slow-down. Fails if the result has neither a value nor a flaw. */
static int complete_foreign(const struct ddp_gate_setup *setup, int which,
                            struct ddp_result *result, struct ddp_err *err)
{
    if (result->count == 0 && !result->flaw[0]) {
        ddp_fail(err, DDP_EINPUT, "'%s' wrote no value in the format '%s'", setup->side[which].text,
                 ddp_foreign_names[setup->read]);
        return ddp_hint(err, "--read must name the format in which the command writes its result");
    }
    name_machine(result);
    for (size_t i = 0; i < result->count && which == DDP_NEXT && setup->slow > 0; i++)
        if (strcmp(result->points[i].id, setup->slow_cell) == 0)
            result->points[i].median_ns *= 1 + setup->slow;
    return 0;
}

static int launch_result(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                         struct ddp_err *err)
{
    const char *const text = setup->side[which].text;
    int64_t took_ns;
    char path[4200];
    name_result(setup, path, sizeof path);
    int rc = run_once(setup, which, path, &took_ns, err);
    if (rc == 0) {
        rc = ddp_foreign_read(setup->read, path, &(struct ddp_result_rules){.vary = setup->vary},
                              result, err);
        if (rc == DDP_ENOINPUT)
            ddp_hint(err,
                     "'%s' wrote no result; put {json} into the command line where the path of "
                     "the result belongs",
                     text);
        else if (rc != 0)
            ddp_hint(err, "the document was written by '%s'", text);
        else if (setup->read != DDP_FOREIGN_NONE) {
            rc = complete_foreign(setup, which, result, err);
            if (rc != 0)
                ddp_result_release(result);
        }
    }
    unlink(path);
    return rc;
}

int ddp_gate_launch(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                    struct ddp_err *err)
{
    return setup->wall ? launch_wall(setup, which, result, err)
                       : launch_result(setup, which, result, err);
}
