/* Opens and reads a result document. algbw and busbw are recomputed, and must agree with the
 * stored figures. */
#include "record/result_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "record/field.h"
#include "record/point_keys.h"
#include "record/quality.h"
#include "record/record.h"
#include "record/result_machine.h"
#include "record/result_runs.h"
#include "stats/summary.h"

static const char *const top_keys[] = {
    "schema",     "status", "reason",      "label",  "tool",   "command", "started", "finished",
    "seed",       "world",  "environment", "points", "train",  "verdict", "digest",  "control",
    "comparison", "timer",  "left_out",    "note",   "matrix", "health",  "pays",    NULL};

#define R(member) DDP_FIELD_AT(ddp_result, member)
static const struct ddp_field result_rows[] = {
    {R(status), DDP_FIELD_PATH, "status"},           {R(build), DDP_FIELD_PATH, "build"},
    {R(fingerprint), DDP_FIELD_PATH, "fingerprint"}, {R(hosts), DDP_FIELD_PATH, "hosts"},
    {R(edited), DDP_FIELD_BOOL, "edited"},
};
const struct ddp_fields ddp_result_fields = {result_rows, DDP_COUNT_OF(result_rows)};

static int known_keys(const cJSON *doc, const char *name, struct ddp_err *err)
{
    for (const cJSON *c = doc->child; c; c = c->next) {
        int i = 0;
        while (top_keys[i] && strcmp(top_keys[i], c->string) != 0)
            i++;
        if (!top_keys[i]) {
            char key[64];
            ddp_printable(c->string, key, sizeof key);
            return ddp_fail(err, DDP_EINPUT, "'%s': unknown key '%s'", name, key);
        }
    }
    return 0;
}

/* Reads the text at `path` of the document. If the value there is null, sets `out` to "". */
static int text_at(const cJSON *doc, const char *path, const char *name, char *out, size_t bytes,
                   struct ddp_err *err)
{
    const cJSON *item = ddp_field_item(doc, path);
    out[0] = '\0';
    if (!item || (!cJSON_IsString(item) && !cJSON_IsNull(item)))
        return ddp_fail(err, DDP_EINPUT, "'%s': '%s' is missing or not a string", name, path);
    if (cJSON_IsString(item))
        ddp_printable(item->valuestring, out, bytes);
    return 0;
}

/* Stores the reason of the status "failed" as the flaw. This status means wrong data, because
 * ddpbench uses it for no other failure. */
static void note_status(struct ddp_result *out)
{
    if (strcmp(out->status, "failed") != 0)
        return;
    out->wrong_data = true;
    snprintf(out->flaw, sizeof out->flaw, "its status is \"failed\": %s",
             out->reason[0] ? out->reason : "no reason is given");
}

/* The texts that every document has. */
static const char *const needed_texts[] = {"label", "tool.version", "tool.commit", "tool.cflags"};

/* Reads the reason, the label, the note and the build of a document. */
static void read_head(const cJSON *doc, struct ddp_result *out)
{
    struct ddp_record head = {.argc = 0};
    char build[sizeof out->build];
    ddp_fields_init(&ddp_record_fields, &head);
    ddp_fields_read_valid(&ddp_record_fields, doc, &head);
    ddp_printable(head.reason, out->reason, sizeof out->reason);
    memcpy(out->label, head.label, sizeof out->label);
    memcpy(out->note, head.note, sizeof out->note);
    snprintf(build, sizeof build, "%.31s (%.63s) %.127s", head.build.version, head.build.commit,
             head.build.cflags);
    ddp_printable(build, out->build, sizeof out->build);
}

static int read_outline(const cJSON *doc, const char *name, unsigned vary, struct ddp_result *out,
                        struct ddp_err *err)
{
    char schema[32], text[8];
    if (!cJSON_IsObject(doc))
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' is not a result of ddpbench: it holds no JSON object", name);
    DDP_TRY(text_at(doc, "schema", name, schema, sizeof schema, err));
    if (strcmp(schema, DDP_RECORD_SCHEMA) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has the schema '%s', expected '%s'", name, schema,
                        DDP_RECORD_SCHEMA);
    DDP_TRY(known_keys(doc, name, err));
    DDP_TRY(text_at(doc, "status", name, out->status, sizeof out->status, err));
    for (size_t i = 0; i < DDP_COUNT_OF(needed_texts); i++)
        DDP_TRY(text_at(doc, needed_texts[i], name, text, sizeof text, err));
    read_head(doc, out);
    note_status(out);
    return ddp_result_read_machine(doc, name, vary, out, err);
}

/* Reads the memory baselines under the key "control", which documents of other tools may lack. The
 * list is empty if nothing was measured. A speed is null if there was too little memory. */
static int read_control(const cJSON *doc, const char *name, struct ddp_result *out,
                        struct ddp_err *err)
{
    const cJSON *controls = cJSON_GetObjectItemCaseSensitive(doc, "control"), *item;
    struct ddp_control c;
    double logs = 0;
    int n = 0;
    if (controls && !cJSON_IsArray(controls))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'control' is not an array", name);
    cJSON_ArrayForEach(item, controls)
    {
        c.bytes_per_rank = 0;
        const char *why = ddp_fields_read(&ddp_control_fields, item, "copy_GBps", &c);
        if (!why && isnan(c.copy_GBps))
            continue;
        ddp_fields_read_valid(&ddp_control_fields, item, &c);
        out->copy_bytes = fmax(out->copy_bytes, (double)c.bytes_per_rank);
        if (why || !(c.copy_GBps > 0))
            return ddp_fail(err, DDP_EINPUT,
                            "'%s': 'copy_GBps' in 'control' is not a positive number", name);
        logs += log(c.copy_GBps);
        n++;
    }
    out->copy_GBps = n > 0 ? exp(logs / n) : NAN;
    return 0;
}

/* Relative tolerance between a stored and a recomputed figure. The two differ slightly, because
 * files store 15 to 17 digits, and times in us. */
#define SLACK 1e-9

/* The point that is being read. file, id: names in messages. `stored` receives the values that are
 * read; its other values are unknown. */
struct reader {
    const cJSON *point;
    const char *file, *id;
    struct ddp_point *stored;
    struct ddp_err *err;
};

static int bad(const struct reader *r, const char *key, const char *why)
{
    return ddp_fail(r->err, DDP_EINPUT, "'%s': point '%s': '%s' %s", r->file, r->id, key, why);
}

/* Reads the value at `path` into r->stored. */
static int read_path(const struct reader *r, const char *path)
{
    const char *why = ddp_fields_read(&ddp_point_fields, r->point, path, r->stored);
    return why ? bad(r, path, why) : 0;
}

/* Reads the derived figure at `path`. null becomes NaN. */
static int read_figure(const struct reader *r, const char *path, double *value)
{
    const cJSON *item = ddp_field_item(r->point, path);
    *value = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    return cJSON_IsNumber(item) || cJSON_IsNull(item) ? 0
                                                      : bad(r, path, "is missing or not a number");
}

/* Compares a stored figure with a recomputed one. NaN equals only NaN. */
static bool agree(double stored, double derived)
{
    if (isnan(stored) || isnan(derived))
        return isnan(stored) && isnan(derived);
    return fabs(stored - derived) <= SLACK * fabs(derived);
}

/* True if a <= b, or if one of them is missing (NaN). */
static bool ordered(double a, double b)
{
    return isnan(a) || isnan(b) || a <= b;
}

static int check_times(const struct reader *r)
{
    const struct ddp_summary *t = &r->stored->time_ns;
    if (t->median < 0)
        return bad(r, "time_us.median", "is negative");
    if (!ordered(t->min, t->p25) || !ordered(t->p25, t->p75) || !ordered(t->p75, t->max) ||
        !ordered(t->min, t->median) || !ordered(t->median, t->max) ||
        !ordered(t->ci95_lo, t->median) || !ordered(t->median, t->ci95_hi))
        return bad(r, "time_us", "is not in order");
    return 0;
}

/* Checks that algbw = size / time and busbw = bytes of the busiest rank / time. Either may be null.
 * busbw must be null for compressed and partial exchanges, and must lie in its interval. */
static int check_bandwidths(const struct reader *r)
{
    const struct ddp_point *p = r->stored;
    const cJSON *method = ddp_field_item(r->point, "compress.method");
    const cJSON *ends = ddp_field_item(r->point, "busbw_ci95_GBps");
    double algbw, busbw, lo = NAN, hi = NAN;
    DDP_TRY(read_figure(r, "algbw_GBps", &algbw));
    DDP_TRY(read_figure(r, "busbw_GBps", &busbw));
    if (cJSON_IsArray(ends) && cJSON_GetArraySize(ends) == 2) {
        lo = cJSON_GetNumberValue(ends->child);
        hi = cJSON_GetNumberValue(ends->child->next);
    }
    if (!cJSON_IsNull(ends) && (isnan(lo) || isnan(hi)))
        return bad(r, "busbw_ci95_GBps", "is not a pair of numbers");
    if (!cJSON_IsString(method))
        return bad(r, "compress.method", "is missing");
    const double derived = (double)p->spec.size_bytes / p->time_ns.median; /* GB/s: bytes per ns */
    if (!isnan(algbw) && !agree(algbw, derived))
        return bad(r, "algbw_GBps", "is not size / time");
    const bool reduced = strcmp(method->valuestring, "none") != 0 || p->spec.partial > 0;
    const double moved = ddp_point_busiest_bytes(&p->spec) / p->time_ns.median;
    if (!isnan(busbw) && reduced)
        return bad(r, "busbw_GBps", "is not null, but the exchange is compressed or partial");
    if (!isnan(busbw) && !agree(busbw, moved))
        return bad(r, "busbw_GBps", "is not the bytes of the busiest rank / time");
    if (!ordered(lo, busbw) || !ordered(busbw, hi))
        return bad(r, "busbw_ci95_GBps", "does not contain busbw");
    return 0;
}

/* Stores the first point with wrong data or without valid iterations in result->flaw. No figure of
 * the document may then be judged. */
static void note_flaw(const struct reader *r, struct ddp_result *result)
{
    const long long wrong = r->stored->check_wrong;
    if (wrong > 0)
        result->wrong_data = true;
    if (result->flaw[0])
        return;
    if (wrong > 0)
        snprintf(result->flaw, sizeof result->flaw, "point '%s' has %lld wrong elements", r->id,
                 wrong);
    else if (r->stored->iterations < 1)
        snprintf(result->flaw, sizeof result->flaw, "point '%s' has no valid iterations", r->id);
}

/* The members of struct ddp_point that are read. `optional` has those that documents of other tools
 * may lack. No other member is read, so that a document of a newer version can be judged. */
static const char *const needed[] = {"collective",       "iterations",  "ranks",
                                     "size_bytes",       "partial",     "time_us.median",
                                     "time_us.ci95",     "time_us.min", "time_us.p25",
                                     "time_us.p75",      "time_us.max", "pingpong_ns.before",
                                     "pingpong_ns.after"};
static const char *const optional[] = {"check.wrong", "injected_percent", "launch", "busiest_bytes",
                                       "quality"};

static int read_point(const cJSON *item, const char *name, struct ddp_result *result,
                      struct ddp_result_point *out, struct ddp_err *err)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(item, "id");
    struct ddp_point p;
    if (!cJSON_IsString(id) || !ddp_result_begins_name(id->valuestring[0]) ||
        strlen(id->valuestring) >= sizeof out->id)
        return ddp_fail(err, DDP_EINPUT, "'%s': a point has no valid id", name);
    ddp_printable(id->valuestring, out->id, sizeof out->id);
    const struct reader r = {.point = item, .file = name, .id = out->id, .stored = &p, .err = err};
    ddp_point_init(&p);
    for (size_t i = 0; i < DDP_COUNT_OF(needed); i++)
        DDP_TRY(read_path(&r, needed[i]));
    for (size_t i = 0; i < DDP_COUNT_OF(optional); i++)
        if (ddp_field_item(item, optional[i]))
            DDP_TRY(read_path(&r, optional[i]));
    note_flaw(&r, result);
    DDP_TRY(check_times(&r));
    DDP_TRY(check_bandwidths(&r));
    result->busy |= (p.quality >> DDP_QUALITY_BUSY & 1) != 0;
    out->iterations = p.iterations;
    out->injected_percent = p.injected_percent > 0 ? p.injected_percent : NAN;
    out->launch = p.launch;
    out->median_ns = p.time_ns.median;
    out->ci95_lo_ns = p.time_ns.ci95_lo;
    out->ci95_hi_ns = p.time_ns.ci95_hi;
    memcpy(out->pingpong_ns, p.pingpong_ns, sizeof out->pingpong_ns);
    return 0;
}

/* Compares by id, then by repetition. Only pointers are sorted, so the points stay in plan
 * order. */
static int compare_points(const void *a, const void *b)
{
    const struct ddp_result_point *const *x = a, *const *y = b;
    int order = strcmp((*x)->id, (*y)->id);
    return order ? order : ((*x)->launch > (*y)->launch) - ((*x)->launch < (*y)->launch);
}

/* Merges `same` [n], which are all points with one id, into the first of these points. medians [n]:
 * scratch. */
static int fold(struct ddp_result_point *const *same, size_t n, double *medians,
                struct ddp_err *err)
{
    struct ddp_result_point *first = same[0];
    struct ddp_summary s;
    double pingpong[2] = {0, 0};
    int64_t iterations = 0;
    for (size_t i = 0; i < n; i++) {
        medians[i] = same[i]->median_ns;
        iterations += same[i]->iterations;
        first->injected_percent = fmax(first->injected_percent, same[i]->injected_percent);
        for (int k = 0; k < 2; k++)
            pingpong[k] += same[i]->pingpong_ns[k] / (double)n;
    }
    if (ddp_summarize(medians, n, &s) != 0)
        return ddp_fail_memory(err, n, sizeof *medians, __func__);
    first->median_ns = s.median;
    first->ci95_lo_ns = s.ci95_lo;
    first->ci95_hi_ns = s.ci95_hi;
    first->iterations = iterations;
    memcpy(first->pingpong_ns, pingpong, sizeof pingpong);
    return 0;
}

static int fold_all(struct ddp_result *r, struct ddp_result_point **sorted, double *medians,
                    const char *name, struct ddp_err *err)
{
    for (size_t i = 0, n; i < r->count; i += n) {
        for (n = 1; i + n < r->count && strcmp(sorted[i]->id, sorted[i + n]->id) == 0; n++)
            if (sorted[i + n]->launch == sorted[i + n - 1]->launch)
                return ddp_fail(err, DDP_EINPUT, "'%s': point '%s' occurs twice", name,
                                sorted[i]->id);
        if (n > 1)
            DDP_TRY(fold(&sorted[i], n, medians, err));
        for (size_t k = 1; k < n; k++)
            sorted[i + k]->id[0] = '\0';
    }
    size_t kept = 0;
    for (size_t i = 0; i < r->count; i++)
        if (r->points[i].id[0])
            r->points[kept++] = r->points[i];
    r->count = kept;
    return 0;
}

int ddp_result_fold(struct ddp_result *r, const char *name, struct ddp_err *err)
{
    struct ddp_result_point **sorted;
    double *medians = NULL;
    int rc = DDP_NEW(&sorted, r->count, err);
    if (rc == 0)
        rc = DDP_NEW(&medians, r->count, err);
    for (size_t i = 0; i < r->count && rc == 0; i++)
        sorted[i] = &r->points[i];
    if (rc == 0 && r->count > 0) {
        qsort(sorted, r->count, sizeof *sorted, compare_points);
        rc = fold_all(r, sorted, medians, name, err);
    }
    free(sorted);
    free(medians);
    return rc;
}

static int read_points(const cJSON *doc, const char *name, struct ddp_result *out,
                       struct ddp_err *err)
{
    const cJSON *points = cJSON_GetObjectItemCaseSensitive(doc, "points"), *item;
    if (!cJSON_IsArray(points))
        return ddp_fail(err, DDP_EINPUT, "'%s': 'points' is missing or not a list", name);
    size_t count = (size_t)cJSON_GetArraySize(points);
    if (count > DDP_RESULT_MAX_POINTS)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu points, more than the limit of %d", name,
                        count, DDP_RESULT_MAX_POINTS);
    DDP_TRY(DDP_NEW(&out->points, count, err));
    cJSON_ArrayForEach(item, points)
    {
        DDP_TRY(read_point(item, name, out, &out->points[out->count++], err));
    }
    return 0;
}

/* Leaves the keys of --vary out of the ids of all points except step times. */
static int vary_ids(unsigned vary, const char *name, struct ddp_result *r, struct ddp_err *err)
{
    char id[sizeof r->points[0].id], keys[96];
    ddp_vary_text(vary, keys, sizeof keys);
    for (size_t i = 0; i < r->count; i++) {
        if (r->points[i].step)
            continue; /* ddp_result_read_runs has left the keys out */
        if (!ddp_point_id_vary(vary, r->points[i].id, id, sizeof id))
            return ddp_fail(
                err, DDP_EUSAGE,
                "--vary %s: the id '%s' of '%s' was not made by ddpbench and has no keys", keys,
                r->points[i].id, name);
        memcpy(r->points[i].id, id, sizeof id);
    }
    return 0;
}

/* Fails if two points have the same id once the keys of --vary are left out. full: the complete ids
 * of all points, for the message. */
static int check_distinct(unsigned vary, const char *name, const struct ddp_result *r,
                          char (*const full)[192], struct ddp_err *err)
{
    char keys[96];
    size_t a, b;
    if (!ddp_id_index_twice(&r->index, &a, &b))
        return 0;
    ddp_vary_text(vary, keys, sizeof keys);
    ddp_fail(err, DDP_EUSAGE, "--vary %s: the points '%s' and '%s' of '%s' become the same cell",
             keys, full[a], full[b], name);
    return ddp_hint(err, "each document must have one point per cell: run the command with a "
                         "single value of each key in --vary");
}

int ddp_result_index(unsigned vary, const char *name, struct ddp_result *r, struct ddp_err *err)
{
    char(*full)[sizeof r->points[0].id];
    int rc;
    DDP_TRY(DDP_NEW(&full, r->count, err));
    for (size_t i = 0; i < r->count; i++)
        memcpy(full[i], r->points[i].id, sizeof full[i]);
    if (vary & DDP_VARY_POINT_KEYS)
        DDP_TRY_GOTO(vary_ids(vary, name, r, err), out);
    const char *first = r->count > 0 ? r->points[0].id : NULL;
    DDP_TRY_GOTO(ddp_id_index_build(&r->index, first, sizeof *r->points, r->count, err), out);
    rc = check_distinct(vary, name, r, full, err);
out:
    free(full);
    return rc;
}

int ddp_result_parse_json(const char *text, size_t bytes, const char *name,
                          const struct ddp_result_rules *rules, bool *edited, cJSON **doc,
                          struct ddp_err *err)
{
    DDP_TRY(ddp_json_parse_digest(text, bytes, name, edited, doc, err));
    if (!*edited || (rules && rules->accept_edited))
        return 0;
    cJSON_Delete(*doc);
    *doc = NULL;
    ddp_fail(err, DDP_EINPUT,
             "'%s' was changed after it was written: its digest is missing or wrong", name);
    return ddp_hint(err,
                    "if it was changed on purpose, `show`, `compare` and `report` read it with "
                    "--edited");
}

int ddp_result_from_json(const cJSON *doc, bool edited, const char *name,
                         const struct ddp_result_rules *rules, struct ddp_result *out,
                         struct ddp_err *err)
{
    struct ddp_result r = {.edited = edited};
    const unsigned vary = rules ? rules->vary : 0;
    int rc;
    DDP_TRY_GOTO(read_outline(doc, name, vary, &r, err), err_result);
    DDP_TRY_GOTO(read_control(doc, name, &r, err), err_result);
    DDP_TRY_GOTO(read_points(doc, name, &r, err), err_result);
    DDP_TRY_GOTO(ddp_result_read_runs(doc, name, vary, &r, err), err_result);
    DDP_TRY_GOTO(ddp_result_fold(&r, name, err), err_result);
    DDP_TRY_GOTO(ddp_result_index(vary, name, &r, err), err_result);
    *out = r;
    return 0;

err_result:
    ddp_result_release(&r);
    return rc;
}

int ddp_result_parse(const char *text, size_t bytes, const char *name,
                     const struct ddp_result_rules *rules, struct ddp_result *out,
                     struct ddp_err *err)
{
    cJSON *doc;
    bool edited;
    DDP_TRY(ddp_result_parse_json(text, bytes, name, rules, &edited, &doc, err));
    const int rc = ddp_result_from_json(doc, edited, name, rules, out, err);
    cJSON_Delete(doc);
    return rc;
}

int ddp_result_read(const char *path, const struct ddp_result_rules *rules, struct ddp_result *out,
                    struct ddp_err *err)
{
    char *text;
    size_t bytes;
    DDP_TRY(ddp_file_read(path, DDP_JSON_MAX_BYTES, &text, &bytes, err));
    const int rc = ddp_result_parse(text, bytes, path, rules, out, err);
    free(text);
    return rc;
}

void ddp_result_release(struct ddp_result *result)
{
    ddp_id_index_release(&result->index);
    free(result->points);
    free(result->runs);
    *result = (struct ddp_result){.count = 0};
}

const struct ddp_result_point *ddp_result_find(const struct ddp_result *result, const char *id)
{
    const size_t at = ddp_id_index_find(&result->index, id);
    return at == DDP_ID_NONE ? NULL : &result->points[at];
}

bool ddp_result_delays_differ(const struct ddp_result_point *a, const struct ddp_result_point *b)
{
    const double x = a->injected_percent, y = b->injected_percent;
    return !(x == y || (isnan(x) && isnan(y)));
}

/* Writes the injected delays of a point of base and of new, for example "10 % in base, none in
 * new". */
static void name_delays(const struct ddp_result_point *base, const struct ddp_result_point *next,
                        char *out, size_t bytes)
{
    const double percent[2] = {base->injected_percent, next->injected_percent};
    char name[2][24];
    for (int side = 0; side < 2; side++) {
        snprintf(name[side], sizeof name[side], "none");
        if (!isnan(percent[side]))
            snprintf(name[side], sizeof name[side], "%.9g %%", percent[side]);
    }
    snprintf(out, bytes, "%s in base, %s in new", name[0], name[1]);
}

bool ddp_result_find_delays(const struct ddp_result *base, const struct ddp_result *next, char *out,
                            size_t bytes)
{
    char delays[80];
    for (size_t i = 0; i < base->count; i++) {
        const struct ddp_result_point *p = ddp_result_find(next, base->points[i].id);
        if (!p || !ddp_result_delays_differ(&base->points[i], p))
            continue;
        name_delays(&base->points[i], p, delays, sizeof delays);
        snprintf(out, bytes, "the delays injected into '%s' differ: %s", p->id, delays);
        return true;
    }
    return false;
}
