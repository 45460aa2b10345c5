#include "record/result_runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "record/field.h"
#include "record/record.h"
#include "record/strategy_table.h"
#include "record/vary.h"

#define STEP " step" /* end of the id of a cell */

/* A bit for the seed, besides the bits of the --vary keys. The name of a run has the seed. The name
 * of its group lacks it. */
#define SEED     (1u << 31)
#define SYNC     (1u << DDP_VARY_SYNC)
#define FEEDBACK (1u << DDP_VARY_FEEDBACK)
#define LR       (1u << DDP_VARY_LR)

/* The settings that distinguish training runs, in the order in which the name of a run lists them.
 * label: text before a number or a string. If the value is `true`, the label stands alone.
 * varied_by: bits of keys of --vary. The name leaves the setting out if --vary has one of them. */
static const struct {
    const char *path, *label;
    unsigned varied_by;
} settings[] = {
    {"model", "", 0},
    {"sync.strategy", "", SYNC},
    {"ranks", "ranks ", 1u << DDP_VARY_RANKS},
    {"optimizer.lr", "lr ", LR},
    {"seed", "seed ", SEED},
    {"batch_per_rank", "batch ", 0},
    {"dataset", "", 0},
    {"train_images", "images ", 0},
    {"optimizer.name", "", 0},
    {"optimizer.momentum", "momentum ", 0},
    {"optimizer.weight_decay", "weight-decay ", 0},
    {"optimizer.max_steps", "max-steps ", 0},
    {"sync.feedback", "feedback ", FEEDBACK | SYNC},
    {"sync.aggregate", "", SYNC},
    {"sync.algorithm", "", 1u << DDP_VARY_ALGORITHM},
    {"sync.bucket_bytes", "bucket ", SYNC},
    {"sync.overlap", "overlap", SYNC},
    {"sync.partition", "partition ", 0},
    {"sync.init", "init ", 0},
    {"sync.init_sync", "", 0},
    {"compute.device", "", 0},
    {"compute.graph", "graph", 0},
    {"compute.tf32", "tf32", 0},
    {"data.path", "", 0},
};

bool ddp_result_begins_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The run being read. */
struct reader {
    const cJSON *run, *epochs; /* epochs: NULL if the run has none. */
    const char *file;          /* the document's name in messages */
    unsigned vary;
    struct ddp_err *err;
};

static int bad(const struct reader *r, const char *what)
{
    return ddp_fail(r->err, DDP_EINPUT, "'%s': a training run %s", r->file, what);
}

/* Copies a name. If it is too long, its end is replaced by a hash of the whole name, so that
 * different names stay different. */
static void fit_name(const struct ddp_strbuf *name, char out[DDP_RESULT_RUN_NAME])
{
    const uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, name->text, name->length);
    char tail[20], start[DDP_RESULT_RUN_NAME];
    if (name->length < DDP_RESULT_RUN_NAME) {
        memcpy(out, name->text, name->length + 1);
        return;
    }
    const int n = snprintf(tail, sizeof tail, " #%016" PRIx64, hash);
    ddp_printable(name->text, start, sizeof start - (size_t)n);
    snprintf(out, DDP_RESULT_RUN_NAME, "%s%s", start, tail);
}

/* Writes the name of a run, for example "singa-cnn dense ranks 2 lr 0.05 seed 1 ... epochs 3".
 * Settings that are null, false or in `omitted` are left out. */
static int name_run(const struct reader *r, unsigned omitted, char out[DDP_RESULT_RUN_NAME])
{
    struct ddp_strbuf name = DDP_STRBUF_INIT;
    for (size_t i = 0; i < DDP_COUNT_OF(settings); i++) {
        const cJSON *item = ddp_field_item(r->run, settings[i].path);
        const char *space = name.length > 0 ? " " : "";
        char text[DDP_FIELD_TEXT_BYTES];
        if (settings[i].varied_by & omitted)
            continue;
        if (cJSON_IsString(item))
            ddp_printable(item->valuestring, text, sizeof text);
        else if (cJSON_IsNumber(item))
            snprintf(text, sizeof text, "%.15g", item->valuedouble);
        else if (cJSON_IsTrue(item))
            text[0] = '\0';
        else
            continue;
        ddp_strbuf_addf(&name, "%s%s%s", space, settings[i].label, text);
    }
    if (r->epochs)
        ddp_strbuf_addf(&name, " epochs %d", cJSON_GetArraySize(r->epochs));
    if (!name.failed)
        fit_name(&name, out);
    const bool failed = name.failed;
    ddp_strbuf_release(&name);
    return failed ? ddp_fail(r->err, DDP_ENOMEM, "no memory for the name of a training run") : 0;
}

/* Returns the number at the key. NaN if it is null, missing or not a number. */
static double number_at(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Returns whether the model has diverged, which means that a loss is not finite. The document has
 * null for such a loss. The evaluation loss counts only if the epoch was evaluated; in other epochs
 * it is null as well. A missing loss does not count. */
static bool has_diverged(const cJSON *epoch)
{
    const bool evaluated = !isnan(number_at(epoch, "eval_accuracy"));
    return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(epoch, "train_loss")) ||
           (evaluated && cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(epoch, "eval_loss")));
}

/* Reads the number of evaluation images, the accuracy, and whether the last epoch has diverged. The
 * accuracy is the mean over at most the last DDP_STRATEGY_EPOCHS epochs
 * (record/strategy_table.h). */
static int read_accuracy(const struct reader *r, struct ddp_result_run *out)
{
    const int count = cJSON_GetArraySize(r->epochs);
    const int first = DDP_MAX(0, count - DDP_STRATEGY_EPOCHS);
    const double images = number_at(r->run, "eval_images");
    const cJSON *epoch;
    double sum = 0;
    int i = 0;
    out->accuracy = NAN;
    out->eval_images = images >= 1 ? images : NAN;
    if (count == 0)
        return 0;
    cJSON_ArrayForEach(epoch, r->epochs)
    {
        const double accuracy = number_at(epoch, "eval_accuracy");
        if (accuracy < 0 || accuracy > 1)
            return bad(r, "has an 'eval_accuracy' that is not between 0 and 1");
        if (i++ >= first)
            sum += accuracy;
        out->diverged = has_diverged(epoch);
    }
    out->accuracy = sum / (count - first);
    return 0;
}

/* Appends the cell of the step time to result->points, which has room for the cell. */
static int add_step(const struct reader *r, const struct ddp_result_run *run, double *times,
                    struct ddp_result *result)
{
    struct ddp_result_point *p = &result->points[result->count];
    struct ddp_summary s;
    const cJSON *epoch;
    double steps = 0;
    size_t n = 0;
    cJSON_ArrayForEach(epoch, r->epochs)
    {
        const double seconds = number_at(epoch, "seconds"), count = number_at(epoch, "steps");
        if (!(seconds > 0) || !(count >= 1) || !(count <= 1e15))
            return bad(r, "has an epoch without a positive number of 'seconds' or 'steps'");
        times[n++] = seconds / count * 1e9;
        steps += count;
    }
    if (ddp_summarize(times, n, &s) != 0)
        return ddp_fail_memory(r->err, n, sizeof *times, __func__);
    *p = (struct ddp_result_point){.step = true,
                                   .launch = run->launch,
                                   .iterations = (int64_t)fmin(steps, 1e15),
                                   .injected_percent = NAN,
                                   .median_ns = s.median,
                                   .ci95_lo_ns = s.ci95_lo,
                                   .ci95_hi_ns = s.ci95_hi,
                                   .pingpong_ns = {NAN, NAN}};
    snprintf(p->id, sizeof p->id, "%s" STEP, run->name);
    result->count++;
    return 0;
}

static int read_run(struct reader *r, struct ddp_result *result, struct ddp_result_run *out)
{
    const cJSON *model = ddp_field_item(r->run, "model"), *sync;
    const cJSON *epochs = ddp_field_item(r->run, "epochs");
    const double launch = number_at(r->run, "launch");
    double *times;
    int rc;
    sync = ddp_field_item(r->run, "sync.strategy");
    if (!cJSON_IsString(model) || !ddp_result_begins_name(model->valuestring[0]))
        return bad(r, "has no model");
    if (!cJSON_IsString(sync))
        return bad(r, "has no strategy ('sync.strategy')");
    if (epochs && !cJSON_IsArray(epochs))
        return bad(r, "has 'epochs' that are not a list");
    r->epochs = epochs;
    out->launch = launch >= 0 && launch <= 1e6 ? (int)launch : 0;
    out->seed = number_at(r->run, "seed");
    DDP_TRY(name_run(r, r->vary, out->name));
    DDP_TRY(name_run(r, r->vary | SEED, out->group));
    DDP_TRY(read_accuracy(r, out));
    const size_t count = (size_t)cJSON_GetArraySize(epochs);
    if (count == 0)
        return 0;
    DDP_TRY(DDP_NEW(&times, count, r->err));
    rc = add_step(r, out, times, result);
    out->timed = rc == 0;
    free(times);
    return rc;
}

static int compare_runs(const void *a, const void *b)
{
    const struct ddp_result_run *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : (x->launch > y->launch) - (x->launch < y->launch);
}

/* Sorts the runs by name and repetition. Fails if two runs have the same name and repetition. */
static int sort_runs(struct ddp_result *out, const char *file, unsigned vary, struct ddp_err *err)
{
    if (out->run_count > 0)
        qsort(out->runs, out->run_count, sizeof *out->runs, compare_runs);
    for (size_t i = 1; i < out->run_count; i++) {
        if (compare_runs(&out->runs[i - 1], &out->runs[i]) != 0)
            continue;
        ddp_fail(err, DDP_EINPUT, "'%s': training run '%s' occurs twice", file, out->runs[i].name);
        if (vary)
            ddp_hint(err, "two runs of this result differ only in settings that --vary leaves out");
        return err->code;
    }
    return 0;
}

int ddp_result_read_runs(const cJSON *doc, const char *file, unsigned vary, struct ddp_result *out,
                         struct ddp_err *err)
{
    const cJSON *train = cJSON_GetObjectItemCaseSensitive(doc, "train"), *run;
    if (train && !cJSON_IsArray(train))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'train' is not a list", file);
    const size_t count = train ? (size_t)cJSON_GetArraySize(train) : 0;
    if (count > DDP_RESULT_MAX_RUNS)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu training runs, more than the limit of %d",
                        file, count, DDP_RESULT_MAX_RUNS);
    DDP_TRY(DDP_NEW(&out->runs, count, err));
    DDP_TRY(DDP_RESIZE(&out->points, out->count + count, err));
    cJSON_ArrayForEach(run, train)
    {
        struct reader r = {.run = run, .file = file, .vary = vary, .err = err};
        if (cJSON_IsTrue(ddp_field_item(run, "baseline")))
            continue;
        DDP_TRY(read_run(&r, out, &out->runs[out->run_count]));
        out->run_count++;
    }
    return sort_runs(out, file, vary, err);
}
