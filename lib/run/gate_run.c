/* Runs a gate or the self-test in a folder of its own, and reports the verdict. */
#include "run/gate_run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "record/provenance.h"
#include "run/gate_launch.h"
#include "run/noise_floor.h"
#include "stats/signflip.h"

#define NAME     "ddpbench-gate-"
#define RESULT   "launch.json" /* the result file of a child process */
#define ATTEMPTS 10

/* The folder in which a gate's child processes write their results. A gate holds a lock on its
 * folder while it runs. Each gate also clears the folders that killed gates of this user have left.
 * A folder that also contains files other than results is not removed. */
struct folder {
    char path[PATH_MAX];
    int fd; /* holds the lock */
};

static const char *temp_folder(void)
{
    const char *parent = getenv("TMPDIR");
    return parent && parent[0] == '/' ? parent : "/tmp";
}

/* Deletes the results in the folder, and their temporary files, whose names begin with a dot. Then
 * deletes the folder if it is empty. */
static void clear(int fd, const char *path)
{
    const int again = dup(fd);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    const struct dirent *entry;
    while (dir && (entry = readdir(dir)) != NULL)
        if (strncmp(entry->d_name + (entry->d_name[0] == '.'), RESULT, strlen(RESULT)) == 0)
            (void)unlinkat(fd, entry->d_name, 0);
    if (dir)
        closedir(dir);
    else if (again >= 0)
        close(again);
    (void)rmdir(path);
}

/* Opens and locks a folder. Returns its descriptor, or -1 if another gate holds the lock or another
 * user owns the folder. `made` says that this gate has just created the folder. Some file systems,
 * such as NFS, cannot lock folders. On these, a new folder is used without a lock. Other gates
 * cannot lock this folder either, so they do not remove it. */
static int lock(const char *path, bool made)
{
    struct stat held, current;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    /* Compare the inodes, because another gate may have removed the folder before it was locked. */
    if (fstat(fd, &held) == 0 && held.st_uid == geteuid() &&
        (flock(fd, LOCK_EX | LOCK_NB) == 0 || (made && errno != EWOULDBLOCK)) &&
        lstat(path, &current) == 0 && held.st_ino == current.st_ino &&
        held.st_dev == current.st_dev)
        return fd;
    close(fd);
    return -1;
}

/* Removes the folders that killed gates have left. No process holds a lock on such a folder. */
static void clear_abandoned(const char *parent)
{
    char path[PATH_MAX];
    const struct dirent *entry;
    DIR *dir = opendir(parent);
    while (dir && (entry = readdir(dir)) != NULL) {
        if (strncmp(entry->d_name, NAME, strlen(NAME)) != 0 ||
            (size_t)snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) >= sizeof path)
            continue;
        const int fd = lock(path, false);
        if (fd < 0)
            continue;
        clear(fd, path);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

/* Creates and locks a folder in $TMPDIR, else in /tmp. The caller releases *out with remove_folder.
 * Returns DDP_ECREATE if no folder can be created and locked. */
static int make_folder(struct folder *out, struct ddp_err *err)
{
    const char *parent = temp_folder();
    clear_abandoned(parent);
    /* Between mkdtemp and lock another gate may remove the folder, because a folder without a lock
     * looks abandoned. Therefore try several times. */
    for (int i = 0; i < ATTEMPTS; i++) {
        if ((size_t)snprintf(out->path, sizeof out->path, "%s/" NAME "XXXXXX", parent) >=
            sizeof out->path)
            return ddp_fail(err, DDP_ECREATE, "TMPDIR is too long for a path: '%.200s...'", parent);
        if (!mkdtemp(out->path))
            return ddp_fail_errno(err, DDP_ECREATE, errno,
                                  "cannot create a folder for results in '%s'", parent);
        out->fd = lock(out->path, true);
        if (out->fd >= 0)
            return 0;
        (void)rmdir(out->path);
    }
    return ddp_fail(err, DDP_ECREATE, "cannot lock a folder for results in '%s'", parent);
}

static void remove_folder(struct folder *f)
{
    clear(f->fd, f->path);
    close(f->fd);
}

/* Returns `prefix` followed by the list as "K=V,K=V", with *** for every V that must not be shown.
 * The caller frees the text. Returns NULL if memory runs out. */
static char *shown_env(const char *prefix, const struct ddp_string_list *list)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_add(&text, prefix);
    for (int i = 0; i < list->n; i++) {
        char key[DDP_OPT_ITEM_MAX];
        snprintf(key, sizeof key, "%.*s", (int)strcspn(list->v[i], "="), list->v[i]);
        ddp_strbuf_add(&text, i ? "," : "");
        if (ddp_provenance_env_allowed(key))
            ddp_strbuf_add(&text, list->v[i]);
        else
            ddp_strbuf_addf(&text, "%s=***", key);
    }
    if (!text.failed)
        return text.text;
    ddp_strbuf_release(&text);
    return NULL;
}

/* Fills argv [app->argc] with the command line as results show it. In --base-env and --new-env, ***
 * replaces the values of variables that may be secret. The elements of made[4] are NULL before the
 * call, and receive the strings that are allocated for the replaced arguments. The caller frees
 * these strings, even after an error. */
static int make_shown_argv(const struct ddp_app *app, const struct ddp_gate_values *v, char **argv,
                           char *made[4], struct ddp_err *err)
{
    static const char *const names[] = {"--base-env", "--new-env"};
    static const char *const assigned[] = {"--base-env=", "--new-env="};
    for (int i = 0; i < app->argc; i++) {
        argv[i] = app->argv[i];
        for (int side = 0; side < 2; side++) {
            const bool after = i > 0 && strcmp(app->argv[i - 1], names[side]) == 0;
            if (!after && strncmp(app->argv[i], assigned[side], strlen(assigned[side])) != 0)
                continue;
            char **arg = &made[side + (after ? 0 : 2)];
            if (!*arg)
                *arg = shown_env(after ? "" : assigned[side], &v->env[side]);
            if (!*arg)
                return ddp_fail(err, DDP_ENOMEM, "no memory for a gate");
            argv[i] = *arg;
        }
    }
    return 0;
}

/* The progress of a gate. */
struct progress {
    struct ddp_log *log;
    bool quiet;
    int pair, pairs, side;     /* pair: index of the pair that runs */
    int64_t since_ns, pair_ns; /* when the gate and the pair began */
    double worst;              /* the largest ratio of a cell so far; NaN: unknown */
};

static void on_wait(void *arg)
{
    const struct progress *p = arg;
    const int64_t now_ns = ddp_now_ns();
    const double before_s = (double)(p->pair_ns - p->since_ns) / 1e9;
    const double in_pair_s = (double)(now_ns - p->pair_ns) / 1e9;
    const double left_s = p->pair > 0 ? before_s / p->pair * (p->pairs - p->pair) - in_pair_s : NAN;
    char text[160] = "";
    if (p->quiet)
        return;
    ddp_text_append(text, sizeof text, "gate: pair %d of at most %d, %s", p->pair + 1, p->pairs,
                    p->side == DDP_BASE ? "base" : "new");
    if (isfinite(p->worst))
        ddp_text_append(text, sizeof text, ", ratio up to %.3g", p->worst);
    ddp_log_progress_times(text, sizeof text, before_s + in_pair_s, "at most", left_s);
    ddp_log_progress(p->log, "%s", text);
}

static void on_child(void *arg, int pair, int pairs, int side)
{
    struct progress *p = arg;
    if (pair != p->pair)
        p->pair_ns = ddp_now_ns();
    p->pair = pair;
    p->pairs = pairs;
    p->side = side;
    on_wait(p);
}

static void on_pair(void *arg, double worst)
{
    struct progress *p = arg;
    p->worst = worst;
}

static int make_env(const struct ddp_string_list *list, const char **env, struct ddp_err *err)
{
    for (int i = 0; i < list->n; i++) {
        if (list->v[i][0] == '=' || !strchr(list->v[i], '=')) {
            ddp_fail(err, DDP_EUSAGE, "'%s' is not of the form K=V", list->v[i]);
            return ddp_hint(err,
                            "lists are split at commas; put a value with a comma into the command: "
                            "--new 'env K=a,b CMD'");
        }
        env[i] = list->v[i];
    }
    return 0;
}

static int make_side(const struct ddp_gate_values *v, int which, const char **env,
                     struct ddp_gate_side *side, struct ddp_err *err)
{
    DDP_TRY(make_env(&v->env[which], env, err));
    side->text = v->command[which] ? v->command[which] : v->command[DDP_BASE];
    side->env = env;
    return ddp_argv_split(side->text, &side->words, err);
}

/* Fails if there will be too few pairs for any cell to be significant. Called after the first pair,
 * when the number of cells is known. */
static int enough_pairs(const struct ddp_gate_setup *setup, const struct ddp_gate_data *data,
                        struct ddp_err *err)
{
    const struct ddp_gate_looks *looks = &setup->looks;
    const double level = looks->level[looks->count - 1];
    const size_t least = ddp_signflip_least_pairs(data->count, level);
    if ((size_t)ddp_gate_max_pairs(setup) >= least)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "%d pairs are too few to show a slow-down in any of %zu cells",
             ddp_gate_max_pairs(setup), data->count);
    return ddp_hint(err, "use %s %zu or more: 2^-pairs x cells must not exceed %.3g",
                    looks->fixed ? "--pairs" : "--max-pairs", least, level);
}

static int measure(struct ddp_app *app, const struct ddp_gate_values *v,
                   const struct ddp_gate_setup *given, struct ddp_verdict_record *verdict,
                   struct ddp_err *err)
{
    struct ddp_gate_setup setup = *given;
    struct ddp_gate_data data = {.count = 0};
    const int64_t now_ns = ddp_now_ns();
    struct progress progress = {
        .log = &app->log, .quiet = v->quiet, .since_ns = now_ns, .pair_ns = now_ns, .worst = NAN};
    setup.on_child = on_child;
    setup.on_wait = on_wait;
    setup.on_pair = on_pair;
    setup.arg = &progress;
    int rc = ddp_gate_measure(&setup, &data, err);
    ddp_log_clear_progress(&app->log);
    if (ddp_code_is_signal(rc))
        ddp_text_append(err->text, sizeof err->text, "; %d of at most %d pairs done", progress.pair,
                        progress.pairs);
    if (rc == 0) {
        rc = ddp_gate_judge(&setup, &data, verdict, err);
    } else if (ddp_code_is_signal(rc) && data.pairs > 0) {
        struct ddp_err ignored = DDP_ERR_INIT; /* if memory runs out, no ratios are shown */
        if (ddp_gate_judge_partial(&setup, &data, verdict, &ignored) != 0)
            ddp_verdict_record_init(verdict);
    }
    ddp_gate_release(&data);
    return rc;
}

/* The data of one run of `ddpbench gate`. The record points into this struct. */
struct work {
    const char *env[2][DDP_OPT_LIST_MAX + 1];
    struct ddp_gate_setup setup;
    struct ddp_min_effect min_effect;
    struct ddp_verdict_record verdict;
    struct ddp_noise noise;
    struct ddp_app shown;  /* a copy of app with the command line that results show */
    char **argv, *made[4]; /* the command line of `shown`, and the strings allocated for it */
};

static int prepare(const struct ddp_gate_values *v, struct work *w, struct ddp_err *err)
{
    const double asked = v->min_effect > 0 ? v->min_effect / 100 : NAN;
    DDP_TRY(ddp_gate_plan_looks((int)(v->pairs > 0 ? v->pairs : v->max_pairs), v->pairs > 0,
                                &w->setup.looks, err));
    w->setup.runs = (int)v->runs;
    w->setup.seed = (uint64_t)v->seed;
    w->setup.vary = ddp_vary_set(&v->vary);
    w->setup.child_timeout_ns = (int64_t)(v->launch_timeout_s * 1e9);
    w->setup.check = enough_pairs;
    w->setup.wall = v->metric == 1;
    w->setup.read = (enum ddp_foreign)v->read;
    w->setup.accuracy_margin = v->accuracy_margin;
    if (v->selftest) { /* a stored noise floor does not apply, because a self-test measures it */
        w->setup.min_effect = isnan(asked) ? DDP_GATE_EFFECT : asked;
        return make_env(&v->env[DDP_BASE], w->env[DDP_BASE], err);
    }
    DDP_TRY(ddp_min_effect_choose(asked, DDP_GATE_EFFECT,
                                  ddp_gate_kind(w->setup.wall, w->setup.read), v->noise_file,
                                  &w->min_effect, err));
    w->setup.min_effect = w->min_effect.effect;
    for (int side = 0; side < 2; side++)
        DDP_TRY(make_side(v, side, w->env[side], &w->setup.side[side], err));
    return 0;
}

static int work_in_folder(struct ddp_app *app, const struct ddp_gate_values *v, struct work *w,
                          struct ddp_err *err)
{
    struct folder folder;
    int rc;
    DDP_TRY(make_folder(&folder, err));
    w->setup.folder = folder.path;
    w->setup.log = &app->log;
    if (v->selftest)
        rc = ddp_gate_selftest(app, v, w->env[DDP_BASE], &w->setup, &w->noise, &w->verdict, err);
    else
        rc = measure(app, v, &w->setup, &w->verdict, err);
    remove_folder(&folder);
    if (w->verdict.kind != DDP_BY_NONE && !v->selftest) {
        w->verdict.noise_floor = w->min_effect.noise_floor;
        memcpy(w->verdict.effect_from, w->min_effect.from, sizeof w->verdict.effect_from);
    }
    return rc;
}

int ddp_gate_run(struct ddp_app *app, const struct ddp_gate_values *v, struct ddp_err *err)
{
    const char *const protected_paths[] = {v->noise_file, NULL};
    struct ddp_record record;
    struct ddp_report_set *reports;
    int rc;
    struct work *w;
    DDP_TRY(DDP_NEW(&w, 1, err));
    DDP_TRY_GOTO(prepare(v, w, err), out);
    w->shown = *app;
    DDP_TRY_GOTO(DDP_NEW(&w->argv, (size_t)app->argc + 1, err), out);
    w->shown.argv = w->argv;
    DDP_TRY_GOTO(make_shown_argv(app, v, w->argv, w->made, err), out);
    DDP_TRY_GOTO(
        ddp_verdict_begin(&w->shown, &v->outputs, v->seed, protected_paths, &record, &reports, err),
        out);
    rc = work_in_folder(app, v, w, err);
    rc = ddp_verdict_finish(
        &record, reports, rc == 0 || w->verdict.kind != DDP_BY_NONE ? &w->verdict : NULL, rc, err);
out:
    ddp_verdict_record_release(&w->verdict);
    free(w->argv);
    for (size_t i = 0; i < DDP_COUNT_OF(w->made); i++)
        free(w->made[i]);
    ddp_argv_release(&w->setup.side[DDP_BASE].words);
    ddp_argv_release(&w->setup.side[DDP_NEXT].words);
    free(w);
    return rc;
}
