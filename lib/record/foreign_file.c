#include "record/foreign_file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strbuf.h"

/* A text that is being read. */
struct reading {
    const char *file;
    char where[48]; /* the entry or line, for messages */
    struct ddp_result *out;
    size_t room; /* points that out->points has memory for */
    struct ddp_err *err;
};

static int bad(const struct reading *r, const char *key, const char *why)
{
    return ddp_fail(r->err, DDP_EINPUT, "'%s': %s: '%s' %s", r->file, r->where, key, why);
}

/* Checks a name, and writes its printable form. A row of a printed table begins with a name. GitHub
 * Actions would execute a line that begins with "::" or contains "##[". Names that begin with ":"
 * or contain "##[" are therefore refused. */
static int take_name(const struct reading *r, const char *key, const char *name, char *out,
                     size_t bytes)
{
    name += strspn(name, " \t");
    if (name[0] == '\0' || name[0] == ':' || strstr(name, "##["))
        return bad(r, key, "must not be empty, begin with ':' or contain '##['");
    if (strlen(name) >= bytes)
        return ddp_fail(r->err, DDP_EINPUT, "'%s': %s: '%s' must be shorter than %zu bytes",
                        r->file, r->where, key, bytes);
    ddp_printable(name, out, bytes);
    return 0;
}

/* Adds a point. key: the key or column that holds the value. */
static int add(struct reading *r, const char *name_key, const char *name, const char *key,
               double ns)
{
    struct ddp_result *out = r->out;
    if (!isfinite(ns) || !(ns > 0))
        return bad(r, key, "must be a positive number");
    if (out->count == DDP_RESULT_MAX_POINTS)
        return ddp_fail(r->err, DDP_EINPUT, "'%s' has more than %d values", r->file,
                        DDP_RESULT_MAX_POINTS);
    if (out->count == r->room) {
        const size_t room = DDP_MAX(2 * r->room, (size_t)16);
        DDP_TRY(DDP_RESIZE(&out->points, room, r->err));
        r->room = room;
    }
    struct ddp_result_point *p = &out->points[out->count];
    *p = (struct ddp_result_point){.launch = (int)out->count + 1,
                                   .iterations = 1,
                                   .injected_percent = NAN,
                                   .median_ns = ns,
                                   .ci95_lo_ns = NAN,
                                   .ci95_hi_ns = NAN,
                                   .pingpong_ns = {NAN, NAN}};
    DDP_TRY(take_name(r, name_key, name, p->id, sizeof p->id));
    out->count++;
    return 0;
}

static void note_flaw(struct reading *r, const char *name, const char *why, bool wrong_data)
{
    char shown[128];
    ddp_printable(name, shown, sizeof shown);
    r->out->wrong_data |= wrong_data;
    if (!r->out->flaw[0])
        snprintf(r->out->flaw, sizeof r->out->flaw, "%s: '%s' %s", r->where, shown, why);
}

/* Returns the number of ns in a unit of time, or 0 if `unit` is not a unit of time. */
static double ns_of_unit(const char *unit)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},        {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"\xce\xbcs", 1e3},
                 {"ms", 1e6},      {"s", 1e9},  {"sec", 1e9},       {"second", 1e9},
                 {"seconds", 1e9}, {"m", 6e10}, {"min", 6e10}};
    for (size_t i = 0; i < DDP_COUNT_OF(units); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ns;
    return 0;
}

/* Returns the string at item[key], or NULL if it is missing or no string. */
static const char *text_at(const cJSON *item, const char *key)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, key);
    return cJSON_IsString(text) ? text->valuestring : NULL;
}

static int need_text(const struct reading *r, const cJSON *item, const char *key, const char **out)
{
    *out = text_at(item, key);
    return *out ? 0 : bad(r, key, "is missing or not a string");
}

static int need_number(const struct reading *r, const cJSON *item, const char *key, double *out)
{
    const cJSON *number = cJSON_GetObjectItemCaseSensitive(item, key);
    *out = cJSON_IsNumber(number) ? number->valuedouble : NAN;
    return cJSON_IsNumber(number) ? 0 : bad(r, key, "is missing or not a number");
}

static bool is_aggregate(const cJSON *item)
{
    const char *type = text_at(item, "run_type");
    return type && strcmp(type, "aggregate") == 0;
}

static int read_benchmark(struct reading *r, const cJSON *item, bool aggregates_only)
{
    const char *name, *type, *message, *unit = text_at(item, "time_unit");
    const char *aggregate = text_at(item, "aggregate_name");
    const char *const key = text_at(item, "run_name") ? "run_name" : "name";
    double time;
    DDP_TRY(need_text(r, item, key, &name));
    DDP_TRY(need_text(r, item, "run_type", &type));
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "error_occurred"))) {
        message = text_at(item, "error_message");
        note_flaw(r, name, message && message[0] ? message : "reports an error", false);
        return 0;
    }
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(item, "skipped")) ||
        is_aggregate(item) != aggregates_only ||
        (aggregates_only && (!aggregate || strcmp(aggregate, "median") != 0)))
        return 0;
    DDP_TRY(need_number(r, item, "real_time", &time));
    if (ns_of_unit(unit ? unit : "ns") == 0)
        return bad(r, "time_unit", "must be ns, us, ms or s");
    return add(r, key, name, "real_time", time * ns_of_unit(unit ? unit : "ns"));
}

/* Returns the array at doc[key]. Fails if it is missing. */
static int need_array(const struct reading *r, const cJSON *doc, const char *key, const cJSON **out)
{
    *out = cJSON_GetObjectItemCaseSensitive(doc, key);
    if (cJSON_IsArray(*out))
        return 0;
    return ddp_fail(r->err, DDP_EINPUT, "'%s': '%s' is missing or not a list", r->file, key);
}

static int read_gbench(struct reading *r, const cJSON *doc)
{
    const cJSON *list, *item;
    bool aggregates_only = true;
    int i = 0;
    DDP_TRY(need_array(r, doc, "benchmarks", &list));
    cJSON_ArrayForEach(item, list) aggregates_only &= is_aggregate(item);
    cJSON_ArrayForEach(item, list)
    {
        snprintf(r->where, sizeof r->where, "benchmarks[%d]", i++);
        DDP_TRY(read_benchmark(r, item, aggregates_only));
    }
    return 0;
}

static int read_action(struct reading *r, const cJSON *doc, bool bigger)
{
    const cJSON *item;
    int i = 0;
    if (!cJSON_IsArray(doc))
        return ddp_fail(r->err, DDP_EINPUT, "'%s' is not a list of {name, unit, value}", r->file);
    cJSON_ArrayForEach(item, doc)
    {
        const char *name, *unit;
        double value;
        snprintf(r->where, sizeof r->where, "[%d]", i++);
        DDP_TRY(need_text(r, item, "name", &name));
        DDP_TRY(need_text(r, item, "unit", &unit));
        DDP_TRY(need_number(r, item, "value", &value));
        const double ns = ns_of_unit(unit);
        if (bigger)
            value = value > 0 ? 1e3 / value : NAN;
        else
            value *= ns > 0 ? ns : 1e3;
        DDP_TRY(add(r, "name", name, "value", value));
    }
    return 0;
}

static int read_smaller(struct reading *r, const cJSON *doc)
{
    return read_action(r, doc, false);
}

static int read_bigger(struct reading *r, const cJSON *doc)
{
    return read_action(r, doc, true);
}

static int read_hyperfine(struct reading *r, const cJSON *doc)
{
    const cJSON *list, *item;
    int i = 0;
    DDP_TRY(need_array(r, doc, "results", &list));
    cJSON_ArrayForEach(item, list)
    {
        const char *name;
        double seconds;
        snprintf(r->where, sizeof r->where, "results[%d]", i++);
        DDP_TRY(need_text(r, item, "command", &name));
        DDP_TRY(need_number(r, item, "median", &seconds));
        DDP_TRY(add(r, "command", name, "median", seconds * 1e9));
    }
    return 0;
}

#define FIELDS_MAX 16

/* A table that is being read. */
struct table {
    /* Title of the table, with which the names of the cells begin. "": the text has no title. */
    char title[128];
    bool headed; /* OSU: the line that names the columns was read */
    bool sized;  /* OSU: the first column is the size */
    bool rate;   /* OSU: the values are bandwidths or rates */
    int count;
    char *field[FIELDS_MAX]; /* [count], the fields of a row */
};

static bool is_number(const char *text, double *out)
{
    char *end;
    if (strspn(text, "0123456789.eE+-") != strlen(text))
        return false;
    *out = strtod(text, &end);
    return *end == '\0' && isfinite(*out);
}

/* Returns whether the line begins with a number. All rows of a table do, and no comment does. */
static bool begins_row(const char *line)
{
    const size_t digits = strspn(line += strspn(line, " \t"), "0123456789.");
    return digits > 0 && (line[digits] == '\0' || strchr(" \t\r", line[digits]));
}

static void split(char *line, struct table *t)
{
    char *rest = NULL;
    t->count = 0;
    for (char *word = strtok_r(line, " \t\r", &rest); word && t->count < FIELDS_MAX;
         word = strtok_r(NULL, " \t\r", &rest))
        t->field[t->count++] = word;
}

/* A row of nccl-tests has two halves, each with time, algbw, busbw and number of wrong elements.
 * Adds the cell of the half that begins at field `first`. N/A stands for a time that was not
 * measured or an element count that was not checked. */
static int read_half(struct reading *r, const struct table *t, int first, const char *placement)
{
    const char *time = t->field[first], *wrong = t->field[first + 3];
    char name[512];
    double us, count;
    int n = snprintf(name, sizeof name, "%s%s%s", t->title, t->title[0] ? ": " : "", t->field[0]);
    for (int i = 2; i < t->count - 8 && n < (int)sizeof name; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, " %s", t->field[i]);
    if (n < (int)sizeof name)
        snprintf(name + n, sizeof name - (size_t)n, " %s", placement);
    if (strcmp(time, "N/A") == 0)
        return 0;
    if (!is_number(time, &us))
        return bad(r, time, "is not a time");
    if (strcmp(wrong, "N/A") != 0 && !is_number(wrong, &count))
        return bad(r, wrong, "is not a number of wrong elements");
    if (strcmp(wrong, "N/A") != 0 && count > 0)
        note_flaw(r, name, "has wrong elements", true);
    return add(r, "size", name, time, us * 1e3);
}

/* A row of nccl-tests has size, count and type, then in most versions redop and root, and then the
 * two halves. */
static int read_nccl_row(struct reading *r, struct table *t)
{
    if (t->count < 11 || t->count > 13)
        return ddp_fail(r->err, DDP_EINPUT,
                        "'%s': %s has %d columns, but a row of nccl-tests has 11 to 13", r->file,
                        r->where, t->count);
    DDP_TRY(read_half(r, t, t->count - 8, "out-of-place"));
    return read_half(r, t, t->count - 4, "in-place");
}

/* Takes the title of a table from a comment before the table. nccl-tests names its program in this
 * comment. ddpbench prints such tables, too, and its comment describes what the table shows. */
static void read_nccl_comment(struct table *t, const char *line)
{
    static const char program[] = "# Collective test starting: ";
    if (strncmp(line, program, strlen(program)) == 0)
        snprintf(t->title, sizeof t->title, "%s", line + strlen(program));
    else if (strncmp(line, "# ", 2) == 0 && strstr(line, " ranks, algorithm "))
        snprintf(t->title, sizeof t->title, "%s", line + 2);
}

/* Reads a comment before the table. "# OSU MPI Allreduce Latency Test v7.3" gives the title. The
 * comment that names the columns is recognised by its unit. Comments between these two describe the
 * test, and are appended to the title. */
static void read_osu_comment(struct table *t, const char *line)
{
    const char *text = line + strspn(line, "# \t"), *end = strstr(text, " Test");
    const char *us = strstr(text, "(us)"), *rate = strstr(text, "/s");
    const size_t used = strlen(t->title);
    if (strncmp(text, "OSU ", 4) == 0) {
        *t = (struct table){.headed = false};
        snprintf(t->title, sizeof t->title, "%.*s",
                 (int)(end ? end - text - 4 : (long)strcspn(text + 4, "\r")), text + 4);
    } else if (us || rate) {
        t->headed = true;
        t->sized = strncmp(text, "Size", 4) == 0;
        t->rate = rate && (!us || rate < us);
    } else if (used > 0 && !t->headed && text[0]) {
        snprintf(t->title + used, sizeof t->title - used, ", %.*s", (int)strcspn(text, "\r"), text);
    }
}

static int read_osu_row(struct reading *r, struct table *t)
{
    const char *const size_text = t->sized ? t->field[0] : "";
    double size = 1, value;
    char name[512];
    if (!t->headed)
        return ddp_fail(r->err, DDP_EINPUT, "'%s': %s is a row before the names of the columns",
                        r->file, r->where);
    if (t->count < 1 + t->sized || !is_number(t->field[t->sized], &value))
        return ddp_fail(r->err, DDP_EINPUT, "'%s': %s is not a row of OSU's tables", r->file,
                        r->where);
    if (t->sized && !is_number(size_text, &size))
        return bad(r, size_text, "is not a size");
    snprintf(name, sizeof name, "%s%s%s", t->title[0] ? t->title : "OSU", t->sized ? ": " : "",
             size_text);
    if (strcmp(t->field[t->count - 1], "Fail") == 0)
        note_flaw(r, name, "failed its validation", true);
    if (t->rate)
        value = value > 0 ? fmax(size, 1) / value : NAN;
    return add(r, "size", name, t->field[t->sized], value * 1e3);
}

/* Lines that are neither rows nor comments are ignored, because libraries print on stdout too. */
static int read_lines(struct reading *r, const char *text, bool osu)
{
    struct table t = {.count = 0};
    char line[1024];
    int number = 0;
    for (const char *at = text, *end; *at; at = *end ? end + 1 : end) {
        end = at + strcspn(at, "\n");
        snprintf(r->where, sizeof r->where, "line %d", ++number);
        const int n =
            snprintf(line, sizeof line, "%.*s", (int)DDP_MIN(end - at, (ptrdiff_t)sizeof line), at);
        if (begins_row(line) && n >= (int)sizeof line)
            return ddp_fail(r->err, DDP_EINPUT, "'%s': %s is longer than %zu bytes", r->file,
                            r->where, sizeof line - 1);
        if (begins_row(line)) {
            split(line, &t);
            DDP_TRY(osu ? read_osu_row(r, &t) : read_nccl_row(r, &t));
        } else if (line[0] == '#' && osu) {
            read_osu_comment(&t, line);
        } else if (line[0] == '#') {
            read_nccl_comment(&t, line);
        }
    }
    return 0;
}

/* The formats except DDP_FOREIGN_NONE. A format either has a reader in `json`, or `table` is
 * true. */
static const struct {
    int (*json)(struct reading *r, const cJSON *doc);
    bool table, osu;
} formats[DDP_FOREIGN_COUNT] = {
    [DDP_FOREIGN_GBENCH] = {.json = read_gbench},
    [DDP_FOREIGN_ACTION_SMALLER] = {.json = read_smaller},
    [DDP_FOREIGN_ACTION_BIGGER] = {.json = read_bigger},
    [DDP_FOREIGN_NCCL_TESTS] = {.table = true},
    [DDP_FOREIGN_OSU] = {.table = true, .osu = true},
    [DDP_FOREIGN_HYPERFINE] = {.json = read_hyperfine},
};

const char *const ddp_foreign_names[DDP_FOREIGN_COUNT + 1] = {
    [DDP_FOREIGN_NONE] = "json",
    [DDP_FOREIGN_GBENCH] = "gbench",
    [DDP_FOREIGN_ACTION_SMALLER] = "action-smaller",
    [DDP_FOREIGN_ACTION_BIGGER] = "action-bigger",
    [DDP_FOREIGN_NCCL_TESTS] = "nccl-tests",
    [DDP_FOREIGN_OSU] = "osu",
    [DDP_FOREIGN_HYPERFINE] = "hyperfine",
};

static void begin(struct ddp_result *r)
{
    *r = (struct ddp_result){.status = "complete", .cores = -1, .copy_GBps = NAN};
}

int ddp_foreign_parse(enum ddp_foreign format, const char *text, size_t bytes, const char *name,
                      const struct ddp_result_rules *rules, struct ddp_result *out,
                      struct ddp_err *err)
{
    struct ddp_result result;
    struct reading r = {.file = name, .out = &result, .err = err};
    cJSON *doc = NULL;
    int rc;
    if (format == DDP_FOREIGN_NONE)
        return ddp_result_parse(text, bytes, name, rules, out, err);
    begin(&result);
    if (formats[format].json) {
        DDP_TRY(ddp_json_parse(text, bytes, name, &doc, err));
        rc = formats[format].json(&r, doc);
        cJSON_Delete(doc);
    } else if (memchr(text, '\0', bytes)) {
        rc = ddp_fail(err, DDP_EINPUT, "'%s' is not a text: it has a NUL byte", name);
    } else {
        rc = read_lines(&r, text, formats[format].osu);
    }
    if (rc == 0)
        rc = ddp_result_fold(&result, name, err);
    for (size_t i = 0; rc == 0 && i < result.count; i++)
        result.points[i].launch = 0;
    if (rc == 0)
        rc = ddp_result_index(rules ? rules->vary : 0, name, &result, err);
    if (rc == 0)
        *out = result;
    else
        ddp_result_release(&result);
    return rc;
}

int ddp_foreign_read(enum ddp_foreign format, const char *path,
                     const struct ddp_result_rules *rules, struct ddp_result *out,
                     struct ddp_err *err)
{
    char *text;
    size_t bytes;
    DDP_TRY(ddp_file_read(path, DDP_JSON_MAX_BYTES, &text, &bytes, err));
    const int rc = ddp_foreign_parse(format, text, bytes, path, rules, out, err);
    free(text);
    return rc;
}

int ddp_foreign_single(const char *id, double ns, struct ddp_result *out, struct ddp_err *err)
{
    struct ddp_result result;
    struct reading r = {.file = id, .out = &result, .err = err};
    begin(&result);
    int rc = add(&r, "name", id, "time", ns);
    if (rc == 0)
        rc = ddp_result_index(0, id, &result, err);
    if (rc == 0)
        *out = result;
    else
        ddp_result_release(&result);
    return rc;
}
