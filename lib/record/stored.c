#include "record/stored.h"

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
#include "record/stored_impl.h"

/* Length limit of lists that no other code checks. */
#define ITEMS_MAX 100000

/* Returns the string at a path, which lives as long as the document. */
static const char *borrow(const cJSON *doc, const char *path)
{
    const cJSON *item = ddp_field_item(doc, path);
    return cJSON_IsString(item) ? item->valuestring : "";
}

/* Reads all members of a table. what: the object's name in messages. */
static int read_fields(const struct ddp_fields *fields, const cJSON *doc, const char *what,
                       const char *file, void *object, struct ddp_err *err)
{
    const char *path = "";
    const char *why = ddp_fields_read_all(fields, doc, object, &path);
    return why ? ddp_fail(err, DDP_EINPUT, "'%s': %s: '%s' %s", file, what, path, why) : 0;
}

/* Sets *list to the list at a path, and *count to its length. A missing list counts as empty.
 * Returns DDP_EINPUT if the value is not a list or is too long. */
static int list_at(const cJSON *doc, const char *path, const char *file, const cJSON **list,
                   int *count, struct ddp_err *err)
{
    *list = ddp_field_item(doc, path);
    *count = 0;
    if (!*list || cJSON_IsNull(*list))
        return 0;
    if (!cJSON_IsArray(*list))
        return ddp_fail(err, DDP_EINPUT, "'%s': '%s' is not a list", file, path);
    *count = cJSON_GetArraySize(*list);
    if (*count > ITEMS_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s': '%s' has %d items, more than the limit of %d", file,
                        path, *count, ITEMS_MAX);
    return 0;
}

/* Reads the first members of the document. A value that is not valid counts as missing. */
static void read_head(struct ddp_stored *s)
{
    struct ddp_record *r = &s->record;
    r->build = (struct ddp_build){.dirty = false}; /* not the build of this program */
    ddp_fields_init(&ddp_record_fields, r);
    ddp_fields_read_valid(&ddp_record_fields, s->doc, r);
    ddp_fields_read_valid(&ddp_timer_fields, s->doc, r);
}

static int read_command(struct ddp_stored *s, const char *file, struct ddp_err *err)
{
    struct ddp_record *r = &s->record;
    const cJSON *list, *item;
    int count;
    DDP_TRY(list_at(s->doc, "command.argv", file, &list, &count, err));
    DDP_TRY(DDP_NEW(&s->argv, (size_t)count + 1, err));
    cJSON_ArrayForEach(item, list)
    {
        s->argv[r->argc++] = cJSON_IsString(item) ? item->valuestring : "";
    }
    r->argv = (char *const *)s->argv;
    return 0;
}

static int read_hosts(struct ddp_record *r, const cJSON *world, const char *file,
                      struct ddp_err *err)
{
    const cJSON *list, *item, *gpu;
    int count;
    DDP_TRY(list_at(world, "hosts", file, &list, &count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_host host = {
            .memory_bytes = -1, .load = NAN, .network.nic = {.speed_Mbps = -1, .mtu = -1}};
        DDP_TRY(read_fields(&ddp_host_fields, item, "a host", file, &host, err));
        cJSON_ArrayForEach(gpu, ddp_field_item(item, "gpus"))
        {
            struct ddp_gpu_facts *facts = &host.gpus[host.gpu_count];
            if (host.gpu_count == DDP_GPU_FACTS_MAX)
                break;
            ddp_fields_init(&ddp_gpu_fields, facts);
            DDP_TRY(read_fields(&ddp_gpu_fields, gpu, "a GPU", file, facts, err));
            const cJSON *watts = ddp_field_item(gpu, "power_limit_W");
            facts->power_limit_W = cJSON_GetNumberValue(watts) >= 0 ? watts->valuedouble : -1;
            host.gpu_count++;
        }
        DDP_TRY(ddp_record_add_host(r, &host, err));
    }
    return 0;
}

static int read_ranks(struct ddp_record *r, const cJSON *world, const char *file,
                      struct ddp_err *err)
{
    const cJSON *list, *item;
    int count;
    DDP_TRY(list_at(world, "rank_devices", file, &list, &count, err));
    DDP_TRY(DDP_NEW(&r->ranks, (size_t)count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_rank_device *rank = &r->ranks[r->rank_count++];
        ddp_fields_init(&ddp_rank_fields, rank);
        DDP_TRY(read_fields(&ddp_rank_fields, item, "a rank", file, rank, err));
    }
    return 0;
}

static int read_world(struct ddp_record *r, const cJSON *doc, const char *file, struct ddp_err *err)
{
    const cJSON *world = ddp_field_item(doc, "world");
    DDP_TRY(read_hosts(r, world, file, err));
    return read_ranks(r, world, file, err);
}

static int read_environment(struct ddp_record *r, const cJSON *doc, struct ddp_err *err)
{
    const cJSON *list = ddp_field_item(doc, "environment"), *item;
    const int count = cJSON_IsObject(list) ? cJSON_GetArraySize(list) : 0;
    DDP_TRY(DDP_RESIZE(&r->environment, (size_t)count + 1, err));
    for (item = count ? list->child : NULL; item; item = item->next) {
        struct ddp_env_entry *e = &r->environment[r->environment_count++];
        ddp_printable(item->string, e->key, sizeof e->key);
        ddp_printable(cJSON_IsString(item) ? item->valuestring : "", e->value, sizeof e->value);
    }
    return 0;
}

static int read_lists(struct ddp_record *r, const cJSON *doc, const char *file, struct ddp_err *err)
{
    const cJSON *list, *item;
    int count;
    DDP_TRY(list_at(doc, "control", file, &list, &count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_control control = {.ranks = 0};
        ddp_fields_init(&ddp_control_fields, &control);
        DDP_TRY(read_fields(&ddp_control_fields, item, "'control'", file, &control, err));
        DDP_TRY(ddp_record_add_control(r, &control, err));
    }
    DDP_TRY(list_at(doc, "left_out", file, &list, &count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_left_out left_out = {.points = -1};
        DDP_TRY(read_fields(&ddp_left_out_fields, item, "'left_out'", file, &left_out, err));
        DDP_TRY(ddp_record_add_left_out(r, &left_out, err));
    }
    return 0;
}

/* Reads two facts that only the id of a point has: the compressor with its argument, and whether
 * the operation ran beside a computation. */
static void read_id(const cJSON *item, struct ddp_point_spec *spec)
{
    const char *method = borrow(item, "compress.method");
    struct ddp_point_spec named;
    /* The id of a later version may have unknown parts, so the parts before them are used. */
    (void)ddp_point_id_parse(borrow(item, "id"), &named);
    if (named.compress[0] && strncmp(named.compress, method, strlen(method)) == 0)
        memcpy(spec->compress, named.compress, sizeof spec->compress);
    else
        ddp_printable(method, spec->compress, sizeof spec->compress);
    spec->overlap = named.overlap;
}

/* Returns the number of groups of a point. 0: the point has no groups (the document then has 1), or
 * the number is unknown. */
static int group_count(const cJSON *item)
{
    const double groups = cJSON_GetNumberValue(ddp_field_item(item, "groups"));
    return groups > 1 && groups <= 1e6 && groups == floor(groups) ? (int)groups : 0;
}

/* Reads the times of the iterations, if the document has them. */
static int read_samples(const cJSON *item, const char *file, struct ddp_point *p, double **samples,
                        struct ddp_err *err)
{
    const cJSON *list = ddp_field_item(item, "samples_us"), *sample;
    const int count = cJSON_GetArraySize(list);
    if (!cJSON_IsArray(list) || count == 0)
        return 0;
    DDP_TRY(DDP_NEW(samples, (size_t)count, err));
    cJSON_ArrayForEach(sample, list)
    {
        if (!cJSON_IsNumber(sample))
            return ddp_fail(err, DDP_EINPUT, "'%s': a point has samples that are not numbers",
                            file);
        (*samples)[p->sample_count++] = sample->valuedouble * 1e3;
    }
    return 0;
}

static int read_point(const cJSON *item, const char *file, struct ddp_point *p, double **samples,
                      struct ddp_err *err)
{
    char what[240] = "point '", id[192];
    ddp_printable(borrow(item, "id"), id, sizeof id);
    ddp_text_append(what, sizeof what, "%s'", id);
    ddp_point_init(p);
    DDP_TRY(read_fields(&ddp_point_fields, item, what, file, p, err));
    read_id(item, &p->spec);
    p->spec.groups = group_count(item);
    p->time_ns.n = (size_t)p->iterations;
    p->wire_counted = strcmp(borrow(item, "wire_bytes_source"), "counted") == 0;
    p->correctness_only = cJSON_IsNull(ddp_field_item(item, "algbw_GBps")) &&
                          !isnan(ddp_point_algbw_GBps(p, p->time_ns.median));
    return read_samples(item, file, p, samples, err);
}

/* Finds the merged point with the id of a point. */
static int find_merged(const struct ddp_stored *s, unsigned vary, const cJSON *item,
                       const char *file, size_t *merged, struct ddp_err *err)
{
    char id[192], varied[192];
    ddp_printable(borrow(item, "id"), id, sizeof id);
    if ((vary & DDP_VARY_POINT_KEYS) && ddp_point_id_vary(vary, id, varied, sizeof varied))
        memcpy(id, varied, sizeof id);
    *merged = ddp_id_index_find(&s->result.index, id);
    return *merged != DDP_ID_NONE
               ? 0
               : ddp_fail(err, DDP_EINTERNAL, "'%s': point '%s' was not merged", file, id);
}

/* Sets `place` and `of` of each point, and launch_first of the record. The points of a repetition
 * are adjacent in the document. Without repetitions, the points of one rank count are adjacent. */
static void place_points(struct ddp_record *r, const cJSON *list)
{
    const cJSON *item = list->child;
    int first = 0, most = 0;
    for (int i = 0; i < r->point_count; i++, item = item->next) {
        struct ddp_point *p = &r->points[i];
        if (i > 0 &&
            (p->launch != p[-1].launch || (p->launch == 0 && p->spec.ranks != p[-1].spec.ranks)))
            first = i;
        most = DDP_MAX(most, i - first + 1);
        p->place = i - first;
        p->of = cJSON_IsNumber(ddp_field_item(item, "order"));
    }
    for (int i = 0; i < r->point_count; i++)
        r->points[i].of *= most;
    r->launch_first = r->point_count > 0 && r->points[first].launch > 0 ? 0 : first;
}

/* ddp_result_from_json has checked the number of points. */
static int read_points(struct ddp_stored *s, unsigned vary, const char *file, struct ddp_err *err)
{
    const cJSON *list = ddp_field_item(s->doc, "points"), *item;
    const size_t count = (size_t)cJSON_GetArraySize(list);
    struct ddp_record *r = &s->record;
    DDP_TRY(DDP_NEW(&r->points, count, err));
    DDP_TRY(DDP_NEW(&r->samples, count, err));
    DDP_TRY(DDP_NEW(&r->texts, count, err));
    DDP_TRY(DDP_NEW(&s->merged, count, err));
    r->point_capacity = (int)count;
    cJSON_ArrayForEach(item, list)
    {
        const int i = r->point_count++;
        DDP_TRY(read_point(item, file, &r->points[i], &r->samples[i], err));
        DDP_TRY(find_merged(s, vary, item, file, &s->merged[i], err));
    }
    place_points(r, list);
    return 0;
}

static int read_epochs(struct ddp_record *r, const cJSON *item, const char *file,
                       struct ddp_err *err)
{
    const cJSON *list, *entry;
    int count;
    DDP_TRY(list_at(item, "epochs", file, &list, &count, err));
    cJSON_ArrayForEach(entry, list)
    {
        struct ddp_epoch epoch;
        ddp_epoch_init(&epoch);
        DDP_TRY(read_fields(&ddp_epoch_fields, entry, "an epoch", file, &epoch, err));
        epoch.wire_counted = strcmp(borrow(entry, "wire_bytes_source"), "counted") == 0;
        DDP_TRY(ddp_record_add_epoch(r, &epoch, err));
    }
    return 0;
}

/* ddp_result_from_json has checked the number of runs. */
static int read_runs(struct ddp_record *r, const cJSON *doc, const char *file, struct ddp_err *err)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, ddp_field_item(doc, "train"))
    {
        struct ddp_train_run run;
        ddp_train_run_init(&run);
        DDP_TRY(read_fields(&ddp_train_fields, item, "a training run", file, &run, err));
        DDP_TRY(ddp_record_add_train(r, &run, err));
        DDP_TRY(read_epochs(r, item, file, err));
    }
    return 0;
}

/* Reads the rows of one figure of the matrix. */
static int read_figure(struct ddp_matrix *m, const cJSON *matrix,
                       const struct ddp_matrix_figure *figure, const char *file,
                       struct ddp_err *err)
{
    const cJSON *rows = ddp_field_item(matrix, figure->key), *row, *item;
    int from = 0;
    if (!rows && figure->offset == offsetof(struct ddp_matrix_cell, resent_fraction))
        return 0; /* an older document */
    cJSON_ArrayForEach(row, rows)
    {
        int to = 0;
        cJSON_ArrayForEach(item, row)
        {
            if (from < m->ends && to < m->ends && cJSON_IsNumber(item))
                *ddp_matrix_figure_of(ddp_matrix_cell_of(m, from, to), figure) =
                    item->valuedouble * figure->unit;
            to++;
        }
        if (to != m->ends)
            return ddp_fail(err, DDP_EINPUT, "'%s': a row of 'matrix.%s' has %d values, not %d",
                            file, figure->key, to, m->ends);
        from++;
    }
    return from == m->ends ? 0
                           : ddp_fail(err, DDP_EINPUT, "'%s': 'matrix.%s' has %d rows, not %d",
                                      file, figure->key, from, m->ends);
}

static int read_matrix(struct ddp_record *r, const cJSON *doc, const char *file,
                       struct ddp_err *err)
{
    const cJSON *matrix = ddp_field_item(doc, "matrix"), *end;
    struct ddp_matrix *m = &r->matrix;
    struct ddp_matrix_end read;
    int i = 0;
    if (!cJSON_IsObject(matrix))
        return 0;
    const int ends = cJSON_GetArraySize(ddp_field_item(matrix, "ends"));
    if (ends < 1 || ends > DDP_MATRIX_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s': 'matrix.ends' has %d entries", file, ends);
    DDP_TRY(ddp_matrix_init(m, ends, err));
    ddp_fields_read_valid(&ddp_matrix_fields, matrix, m);
    cJSON_ArrayForEach(end, ddp_field_item(matrix, "ends"))
    {
        ddp_fields_init(&ddp_matrix_end_fields, &read);
        ddp_fields_read_valid(&ddp_matrix_end_fields, end, &read);
        m->rank[i++] = read.rank;
    }
    for (int f = 0; f < DDP_MATRIX_FIGURES; f++)
        DDP_TRY(read_figure(m, matrix, &ddp_matrix_figures[f], file, err));
    return 0;
}

static int read_health(struct ddp_record *r, const cJSON *doc, const char *file,
                       struct ddp_err *err)
{
    const cJSON *health = ddp_field_item(doc, "health"), *list, *item;
    struct ddp_health *h = &r->health;
    int count;
    if (!cJSON_IsObject(health))
        return 0;
    DDP_TRY(read_fields(&ddp_health_fields, health, "'health'", file, h, err));
    DDP_TRY(list_at(health, "power", file, &list, &count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_health_power power = {.figure = DDP_HEALTH_COPY};
        ddp_fields_init(&ddp_health_power_fields, &power);
        DDP_TRY(read_fields(&ddp_health_power_fields, item, "'health.power'", file, &power, err));
        h->power[power.figure] = power;
    }
    DDP_TRY(list_at(health, "findings", file, &list, &count, err));
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_health_finding *f = &h->finding[h->finding_count];
        if (h->finding_count == DDP_HEALTH_FINDINGS)
            return ddp_fail(err, DDP_EINPUT, "'%s': 'health.findings' has %d entries", file, count);
        ddp_fields_init(&ddp_health_finding_fields, f);
        DDP_TRY(read_fields(&ddp_health_finding_fields, item, "a finding", file, f, err));
        h->finding_count++;
    }
    DDP_TRY(list_at(health, "ranks", file, &list, &count, err));
    DDP_TRY(DDP_NEW(&h->rank, (size_t)count, err));
    cJSON_ArrayForEach(item, list)
    {
        ddp_fields_init(&ddp_health_rank_fields, &h->rank[h->ranks]);
        DDP_TRY(read_fields(&ddp_health_rank_fields, item, "a rank of 'health'", file,
                            &h->rank[h->ranks++], err));
    }
    return 0;
}

/* Reads a method of `pays`. A document has null for "at all speeds". */
static int read_method(const cJSON *item, const char *file, struct ddp_pays_method *out,
                       struct ddp_err *err)
{
    DDP_TRY(read_fields(&ddp_pays_method_fields, item, "a method", file, out, err));
    if (out->sends_less && isnan(out->break_even_GBps))
        out->break_even_GBps = INFINITY;
    if (out->sends_less && isnan(out->pays_below_GBps))
        out->pays_below_GBps = INFINITY;
    return 0;
}

/* Reads the answer of `pays`. All links must have the same number of methods. */
static int read_pays(struct ddp_record *r, const cJSON *doc, const char *file, struct ddp_err *err)
{
    const cJSON *pays = ddp_field_item(doc, "pays"), *list = ddp_field_item(pays, "links");
    const cJSON *link, *item;
    const int links = cJSON_GetArraySize(list);
    const int methods = links > 0 ? cJSON_GetArraySize(ddp_field_item(list->child, "methods")) : 0;
    int l = 0;
    if (!cJSON_IsObject(pays))
        return 0;
    if (links < 1 || links > DDP_PAYS_MAX || methods < 1 || methods > DDP_PAYS_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s': 'pays' has %d links and %d methods", file, links,
                        methods);
    DDP_TRY(ddp_pays_init(&r->pays, links, methods, err));
    DDP_TRY(read_fields(&ddp_pays_fields, pays, "pays", file, &r->pays, err));
    cJSON_ArrayForEach(link, list)
    {
        int m = 0;
        DDP_TRY(read_fields(&ddp_pays_link_fields, link, "a link", file, &r->pays.links[l], err));
        cJSON_ArrayForEach(item, ddp_field_item(link, "methods"))
        {
            if (m < methods)
                DDP_TRY(read_method(item, file, ddp_pays_at(&r->pays, l, m), err));
            m++;
        }
        if (m != methods)
            return ddp_fail(err, DDP_EINPUT, "'%s': a link of 'pays' has %d methods, not %d", file,
                            m, methods);
        l++;
    }
    return 0;
}

/* Appends a rank count to a list such as "1,2", unless the list has it. */
static void add_ranks(char *list, size_t bytes, int ranks)
{
    char number[16];
    const int n = snprintf(number, sizeof number, "%d", ranks);
    for (const char *c = list; *c; c += strcspn(c, ","), c += *c == ',')
        if (strncmp(c, number, (size_t)n) == 0 && (c[n] == ',' || c[n] == '\0'))
            return;
    ddp_text_append(list, bytes, "%s%s", list[0] ? "," : "", number);
}

/* Lists the rank counts of points and training runs if there are several. If there are groups, the
 * list stays empty, because no key of the document has the number of ranks of all groups
 * together. */
static void list_rank_counts(struct ddp_record *r)
{
    bool groups = false;
    for (int i = 0; i < r->point_count; i++) {
        add_ranks(r->rank_counts, sizeof r->rank_counts, r->points[i].spec.ranks);
        groups |= r->points[i].spec.groups > 1 || r->points[i].spec.group_list[0];
    }
    for (int i = 0; i < r->train_count; i++)
        if (!r->train[i].baseline)
            add_ranks(r->rank_counts, sizeof r->rank_counts, r->train[i].ranks);
    if (groups || !strchr(r->rank_counts, ','))
        r->rank_counts[0] = '\0';
}

static int read_record(struct ddp_stored *s, unsigned vary, const char *file, struct ddp_err *err)
{
    struct ddp_record *r = &s->record;
    const cJSON *doc = s->doc;
    read_head(s);
    DDP_TRY(read_command(s, file, err));
    DDP_TRY(read_world(r, doc, file, err));
    DDP_TRY(read_environment(r, doc, err));
    DDP_TRY(read_lists(r, doc, file, err));
    DDP_TRY(read_points(s, vary, file, err));
    DDP_TRY(read_runs(r, doc, file, err));
    DDP_TRY(read_matrix(r, doc, file, err));
    DDP_TRY(read_health(r, doc, file, err));
    DDP_TRY(read_pays(r, doc, file, err));
    list_rank_counts(r);
    return ddp_stored_read_verdict(s, file, err);
}

int ddp_stored_parse(const char *text, size_t bytes, const char *name,
                     const struct ddp_result_rules *rules, struct ddp_stored *out,
                     struct ddp_err *err)
{
    bool edited;
    int rc;
    *out = (struct ddp_stored){.doc = NULL};
    ddp_record_init(&out->record);
    ddp_verdict_record_init(&out->verdict);
    DDP_TRY_GOTO(ddp_result_parse_json(text, bytes, name, rules, &edited, &out->doc, err),
                 err_stored);
    DDP_TRY_GOTO(ddp_result_from_json(out->doc, edited, name, rules, &out->result, err),
                 err_stored);
    DDP_TRY_GOTO(read_record(out, rules ? rules->vary : 0, name, err), err_stored);
    return 0;

err_stored:
    ddp_stored_release(out);
    return rc;
}

int ddp_stored_read(const char *path, const struct ddp_result_rules *rules, struct ddp_stored *out,
                    struct ddp_err *err)
{
    char *text;
    size_t bytes;
    *out = (struct ddp_stored){.doc = NULL};
    DDP_TRY(ddp_file_read(path, DDP_JSON_MAX_BYTES, &text, &bytes, err));
    const int rc = ddp_stored_parse(text, bytes, path, rules, out, err);
    free(text);
    return rc;
}

void ddp_stored_release(struct ddp_stored *s)
{
    ddp_across_release(&s->across);
    ddp_verdict_record_release(&s->verdict);
    ddp_record_release(&s->record);
    ddp_result_release(&s->result);
    free(s->across_results);
    free(s->merged);
    free(s->argv);
    cJSON_Delete(s->doc);
    *s = (struct ddp_stored){.doc = NULL};
}

int ddp_stored_read_all(const char *const *paths, size_t count,
                        const struct ddp_result_rules *rules, struct ddp_stored **docs,
                        struct ddp_err *err)
{
    size_t read = 0;
    int rc = 0;
    DDP_TRY(DDP_NEW(docs, count, err));
    for (; read < count && rc == 0; read++)
        rc = ddp_stored_read(paths[read], rules, &(*docs)[read], err);
    if (rc != 0)
        ddp_stored_free(*docs, read);
    return rc;
}

void ddp_stored_free(struct ddp_stored *docs, size_t count)
{
    for (size_t i = 0; i < count; i++)
        ddp_stored_release(&docs[i]);
    free(docs);
}
