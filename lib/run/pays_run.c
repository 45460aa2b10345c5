#include "run/pays_run.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/npy.h"
#include "base/unit.h"
#include "comm/backend.h"
#include "record/stored.h"
#include "record/strategy_table.h"

#define LATENCY_NS 20000
#define RANKS_HERE 2 /* ranks that measure with --link or --table */

struct unit {
    const char *name;
    double factor;
};
static const struct unit counts[] = {{"", 1},    {"k", 1e3}, {"m", 1e6}, {"g", 1e9},
                                     {"b", 1e9}, {"B", 1e9}, {0}};
static const struct unit times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {0}};
/* Factors that convert a rate to GB/s. */
static const struct unit rates[] = {{"kbit/s", 1e-6 / 8},
                                    {"mbit/s", 1e-3 / 8},
                                    {"gbit/s", 1.0 / 8},
                                    {"tbit/s", 1e3 / 8},
                                    {"mb/s", 1e-3 / 8},
                                    {"gb/s", 1.0 / 8},
                                    {"mbps", 1e-3 / 8},
                                    {"gbps", 1.0 / 8},
                                    {"mB/s", 1e-3},
                                    {"gB/s", 1},
                                    {0}};

/* Reads a number with a unit. Upper case means the same as lower case, but in a rate b is a bit and
 * B is a byte. Returns false if the text is not a number with a unit, or if the number is negative.
 */
static bool parse(const char *text, const struct unit *units, double *out)
{
    char *end, digits[32], name[16] = "";
    double number = strtod(text, &end);
    struct ddp_err ignored = DDP_ERR_INIT;
    const size_t length = (size_t)(end - text);
    if (!isdigit((unsigned char)text[0]) || length >= sizeof digits || strlen(end) >= sizeof name)
        return false;
    snprintf(digits, sizeof digits, "%.*s", (int)length, text);
    if (ddp_parse_double(digits, 0, INFINITY, &number, &ignored) != 0) /* for example 0x10 */
        return false;
    for (size_t i = 0; i < sizeof name - 1 && end[i] != '\0'; i++)
        name[i] = end[i] == 'B' ? 'B' : (char)tolower((unsigned char)end[i]);
    for (const struct unit *u = units; u->name != NULL; u++) {
        *out = number * u->factor;
        if (strcmp(name, u->name) == 0)
            return isfinite(*out);
    }
    return false;
}

/* Adds a link with the default latency. */
static int add_speed(struct ddp_pays_values *v, double GBps, struct ddp_err *err)
{
    if (v->speed_count == DDP_PAYS_MAX)
        return ddp_fail(err, DDP_EUSAGE, "--link: more than %d links", DDP_PAYS_MAX);
    v->speed[v->speed_count] = (struct ddp_pays_speed){GBps, LATENCY_NS};
    v->speed_count++;
    return 0;
}

/* Fills v->speed with the links of --link and --table. A latency belongs to the speed before it.
 * Without a link, the only entry is NaN, and the exchange is measured between the ranks. */
static int read_links(struct ddp_pays_values *v, struct ddp_err *err)
{
    static const double more[] = {0.1, 0.3, 1, 3, 10, 25, 100, 400};
    bool may_be_latency = false;
    for (int i = 0; i < v->links.n; i++) {
        double value;
        if (may_be_latency && parse(v->links.v[i], times, &value)) {
            v->speed[v->speed_count - 1].latency_ns = value;
            may_be_latency = false;
            continue;
        }
        if (!parse(v->links.v[i], rates, &value) || value <= 0) {
            ddp_fail(err, DDP_EUSAGE, "--link: '%s' is not %s", v->links.v[i],
                     may_be_latency ? "a latency such as 20us, nor the speed of another link"
                                    : "a speed above 0 such as 10Gbit/s");
            return ddp_hint(err, "links look like 10Gbit/s, 10Gbit/s,20us or 1.2GB/s,0us");
        }
        DDP_TRY(add_speed(v, value, err));
        may_be_latency = true;
    }
    const int given = v->speed_count;
    for (size_t i = 0; v->table && i < DDP_COUNT_OF(more); i++) {
        DDP_TRY(add_speed(v, more[i] / 8, err));
        if (given > 0)
            v->speed[v->speed_count - 1].latency_ns = v->speed[0].latency_ns;
    }
    if (v->speed_count > 0)
        return 0;
    v->speed[v->speed_count++] = (struct ddp_pays_speed){NAN, NAN};
    return 0;
}

/* Lists the files that `train --dump-gradients` has written. Each row holds one
 * gradient of every parameter, so the columns are the parameters. */
static int read_gradients(struct ddp_pays_values *v, struct ddp_err *err)
{
    struct ddp_string_list *files = &v->c.bench.gradient;
    for (files->n = 0; files->n < DDP_OPT_LIST_MAX; files->n++) {
        char *path = files->v[files->n];
        struct ddp_npy npy;
        const int bytes = snprintf(path, DDP_OPT_ITEM_MAX, "%s/rank%d.npy", v->gradients, files->n);
        if (bytes >= DDP_OPT_ITEM_MAX)
            return ddp_fail(err, DDP_EUSAGE, "--gradients: the path is too long");
        if (files->n > 0 && access(path, F_OK) != 0)
            break;
        DDP_TRY(ddp_npy_open(path, &npy, err));
        v->parameters = (int64_t)npy.columns;
        ddp_npy_close(&npy);
    }
    return 0;
}

static int read_training(struct ddp_pays_values *v, struct ddp_err *err)
{
    double parameters = 0;
    if (!v->parameters_text == !v->gradients) {
        ddp_fail(err, DDP_EUSAGE, "pays needs either --params or --gradients");
        return ddp_hint(err, "for example: --params 25M --step-time 120ms --ranks 8");
    }
    if (v->gradients)
        DDP_TRY(read_gradients(v, err));
    else if (!parse(v->parameters_text, counts, &parameters) || parameters < 1 || parameters > 1e13)
        return ddp_fail(err, DDP_EUSAGE,
                        "--params: '%s' is not a number from 1 to 1e13, such as 25M",
                        v->parameters_text);
    else
        v->parameters = llround(parameters);
    if (!v->step_text)
        return ddp_fail(err, DDP_EUSAGE, "pays needs --step-time");
    if (!parse(v->step_text, times, &v->step_ns) || v->step_ns <= 0)
        return ddp_fail(err, DDP_EUSAGE, "--step-time: '%s' is not a time such as 120ms",
                        v->step_text);
    return 0;
}

static void add_method(struct ddp_string_list *list, const char *name)
{
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->v[i], name) == 0)
            return;
    if (list->n < DDP_OPT_LIST_MAX)
        snprintf(list->v[list->n++], DDP_OPT_ITEM_MAX, "%s", name);
}

/* Lists dense f32, bf16 and the methods of --compress or, without it, the default methods. */
static int list_methods(struct ddp_pays_values *v, struct ddp_err *err)
{
    const struct ddp_string_list given = v->c.compress;
    struct ddp_string_list *list = &v->c.compress;
    list->n = 0;
    add_method(list, "none");
    add_method(list, DDP_PAYS_BASELINE);
    for (int i = 0; i < given.n; i++)
        add_method(list, given.v[i]);
    if (given.n == 0) {
        for (const char *at = DDP_PAYS_METHODS; *at;
             at += strcspn(at, ", "), at += strspn(at, ", ")) {
            char name[DDP_OPT_ITEM_MAX];
            snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ", "), at);
            add_method(list, name);
        }
        if (!v->gradients)
            add_method(list, DDP_PAYS_THRESHOLD);
    }
    DDP_TRY(ddp_compress_parse_list(list, &v->c.bench.compress, err));
    /* A method may begin with dense exchanges. Only its compressed exchanges are measured. */
    for (int i = 0; i < v->c.bench.compress.n; i++)
        v->c.bench.compress.v[i].dense_runs = 0;
    return 0;
}

/* Sets what the job of the collectives measures: one bucket, averaged in place. */
static int set_points(struct ddp_pays_values *v, struct ddp_err *err)
{
    struct ddp_bench_options *o = &v->c.bench;
    const uint64_t bytes = (uint64_t)v->parameters * sizeof(float);
    o->coll = DDP_ALLREDUCE;
    o->sizes.n = 1;
    o->sizes.v[0] = DDP_MIN(bytes, v->bucket_bytes / sizeof(float) * sizeof(float));
    o->algorithms.n = 1;
    snprintf(o->algorithms.v[0], sizeof o->algorithms.v[0], "auto");
    o->dtypes = (struct ddp_int_list){.n = 1, .v = {DDP_F32}};
    o->ops = (struct ddp_int_list){.n = 1, .v = {DDP_AVG}};
    o->placement = DDP_IN_PLACE;
    o->memory = -1;
    o->iters = DDP_PLAN_ITERS_ADAPTIVE;
    o->warmup = 5;
    o->precision = 0.02;
    o->block = 1;
    o->check = DDP_CHECK_ONCE;
    o->no_baselines = true;
    o->seed = v->c.world.seed;
    o->step_factor = 2;
    DDP_TRY(ddp_plan_parse_groups("1", o, err));
    for (int i = 0; i < o->gradient.n; i++)
        v->c.world.protected_path[v->c.world.protected_count++] = o->gradient.v[i];
    return ddp_plan_check(o, err);
}

/* Reads the changes of accuracy from a document. The caller has set out [methods->n] to 0 for
 * lossless methods, and to NaN for the others. Only methods with NaN are looked up, because in
 * training the name `none` means a strategy that exchanges no gradients. */
static int read_accuracy(const char *path, const struct ddp_compress_list *methods, double *out,
                         struct ddp_err *err)
{
    struct ddp_stored doc;
    struct ddp_strategy_row *table;
    int count;
    DDP_TRY(ddp_stored_read(path, NULL, &doc, err));
    const int rc = ddp_strategy_rows(&doc.record, &table, &count, err);
    for (int r = 0; rc == 0 && r < count; r++)
        for (int i = 0; i < methods->n; i++)
            if (strcmp(table[r].sync, methods->v[i].text) == 0 && isnan(out[i]))
                out[i] = table[r].difference.mean;
    if (rc == 0)
        free(table);
    ddp_stored_release(&doc);
    return rc;
}

/* Reads --accuracy if it is given. Otherwise reads convergence.json, which comes with ddpbench, if
 * it exists. The file lies in results/ of the repository if the binary is build/HASH/ddpbench. For
 * an installed binary, it lies in share/ddpbench. The file is not read if --feedback is given. */
static int find_accuracy(const struct ddp_app *app, struct ddp_pays_values *v, struct ddp_err *err)
{
    static const char *const places[] = {"../../results", "../share/ddpbench"};
    const struct ddp_compress_list *methods = &v->c.bench.compress;
    double *out = v->accuracy_change;
    for (int i = 0; i < methods->n; i++)
        out[i] = ddp_compressor_is_lossless(methods->v[i].compressor) ? 0 : NAN;
    if (v->accuracy) {
        v->c.world.protected_path[v->c.world.protected_count++] = v->accuracy;
        return read_accuracy(v->accuracy, methods, out, err);
    }
    if (v->c.bench.feedback != DDP_FEEDBACK_AUTO)
        return 0; /* the stored accuracies were measured with the default feedback */
    for (size_t i = 0; i < DDP_COUNT_OF(places); i++) {
        char path[sizeof app->binary_dir + 64];
        snprintf(path, sizeof path, "%s/%s/convergence.json", app->binary_dir, places[i]);
        if (access(path, R_OK) == 0)
            return read_accuracy(path, methods, out, err);
    }
    return 0;
}

int ddp_pays_check(const struct ddp_app *app, struct ddp_pays_values *v, struct ddp_err *err)
{
    struct ddp_int_list *ranks = &v->c.world.ranks;
    DDP_TRY(read_training(v, err));
    DDP_TRY(read_links(v, err));
    if (ranks->n > 1)
        return ddp_fail(err, DDP_EUSAGE, "pays takes one number of ranks");
    if (isnan(v->speed[0].GBps)) {
        if (v->overlap)
            return ddp_fail(err, DDP_EUSAGE, "--overlap has an effect only with --link or --table");
    } else {
        if (ranks->n == 0 || ranks->v[0] < 2)
            return ddp_fail(err, DDP_EUSAGE, "--link and --table need --ranks N of at least 2");
        v->ranks = (int)ranks->v[0];
        ranks->v[0] = RANKS_HERE;
    }
    DDP_TRY(list_methods(v, err));
    if (ddp_app_is_root(app))
        DDP_TRY(find_accuracy(app, v, err));
    return set_points(v, err);
}

int ddp_pays_check_ranks(struct ddp_app *app, const void *values, const char *backend, int ranks,
                         struct ddp_err *err)
{
    const struct ddp_pays_values *v = values;
    const struct ddp_backend *b = ddp_backend_find(backend);
    (void)app;
    if (ranks < 2) {
        ddp_fail(err, DDP_EUSAGE, "pays needs at least 2 ranks");
        return ddp_hint(err, "use --ranks 2, or --ranks N with --link");
    }
    if (isnan(v->speed[0].GBps) || (b && (b->caps & (DDP_CAP_MAP | DDP_CAP_DEVICE))))
        return 0;
    ddp_fail(err, DDP_EUSAGE,
             "with --link, the ranks that measure must share memory; backend %s sends messages",
             backend);
    return ddp_hint(err, "without --link, pays measures the exchange between these ranks");
}

int ddp_pays_conclude(const void *values, struct ddp_record *record, struct ddp_err *err)
{
    const struct ddp_pays_values *v = values;
    const struct ddp_pays_question question = {
        .parameters = v->parameters,
        .step_ns = v->step_ns,
        .ranks = v->ranks > 0 ? v->ranks : record->world_ranks,
        .overlap = v->overlap,
        .shared_memory = ddp_record_shares_memory(record->world_backend),
        .speeds = v->speed,
        .speed_count = v->speed_count,
        .methods = &v->c.bench.compress,
        .accuracy_change = v->accuracy_change,
        .points = record->points,
        .point_count = record->point_count,
    };
    return ddp_pays_answer(&question, &record->pays, err);
}
