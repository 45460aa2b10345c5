/* Collects the cells (plot.h) of several sources, and divides them into groups and series. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "report/plot.h"

/* A plot over ranks shows at most this many sizes. */
#define SIZES_MAX 6

/* The settings of a cell. Cells are divided by these settings, in this order, until each group has
 * at most DDP_PLOT_SERIES_MAX series. Groups are never divided by SIZE or SOURCE. */
enum setting {
    COLL,
    RANKS,
    COMPRESS,
    DTYPE,
    OP,
    MEMORY,
    PLACEMENT,
    BACKEND,
    OTHER,
    ALGORITHM,
    SIZE,
    SOURCE,
    SETTINGS
};
#define TEXT_BYTES 160

/* Writes a setting in words, or "" if the setting does not apply to the cell. */
static void setting_text(const struct ddp_plot_cell *cell, const struct ddp_plot_source *sources,
                         enum setting setting, char out[TEXT_BYTES])
{
    const struct ddp_point_spec *s = &cell->point->spec;
    char size[24];
    out[0] = '\0';
    switch (setting) {
    case COLL:
        snprintf(out, TEXT_BYTES, "%s", ddp_coll_name(s->coll));
        return;
    case RANKS:
        if (s->group_list[0])
            snprintf(out, TEXT_BYTES, "groups %s", s->group_list);
        else if (s->groups > 1)
            snprintf(out, TEXT_BYTES, "%d groups of %d ranks", s->groups, s->ranks);
        else
            snprintf(out, TEXT_BYTES, "%d rank%s", s->ranks, s->ranks == 1 ? "" : "s");
        return;
    case COMPRESS:
        snprintf(out, TEXT_BYTES, "%s", ddp_point_is_reduced(s) ? s->compress : "dense");
        if (s->partial > 0)
            snprintf(out, TEXT_BYTES, "%s, one of %d chunks", s->compress, s->partial);
        return;
    case DTYPE:
        snprintf(out, TEXT_BYTES, "%s", s->coll == DDP_BARRIER ? "" : ddp_dtype_name(s->dtype));
        return;
    case OP:
        snprintf(out, TEXT_BYTES, "%s", ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "");
        return;
    case MEMORY:
        snprintf(out, TEXT_BYTES, "%s memory", ddp_memory_name(s->memory));
        return;
    case PLACEMENT:
        snprintf(out, TEXT_BYTES, "%s", s->placement == DDP_IN_PLACE ? "in place" : "out of place");
        return;
    case BACKEND:
        snprintf(out, TEXT_BYTES, "%s%s", s->backend[0] ? "backend " : "", s->backend);
        return;
    case OTHER:
        if (ddp_coll_has_root(s->coll))
            ddp_text_append(out, TEXT_BYTES, "root %d", s->root);
        if (s->overlap)
            ddp_text_append(out, TEXT_BYTES, "%sbeside a computation", out[0] ? ", " : "");
        if (s->graph)
            ddp_text_append(out, TEXT_BYTES, "%sgraph", out[0] ? ", " : "");
        if (s->split[0])
            ddp_text_append(out, TEXT_BYTES, "%ssplit %s", out[0] ? ", " : "", s->split);
        return;
    case ALGORITHM:
        snprintf(out, TEXT_BYTES, "%s%s", s->algorithm[0] ? "algorithm " : "", s->algorithm);
        return;
    case SIZE:
        ddp_format_size(s->size_bytes, size, sizeof size);
        snprintf(out, TEXT_BYTES, "%s", size);
        return;
    default:
        snprintf(out, TEXT_BYTES, "%s", sources[cell->source].name);
    }
}

static bool is_wrong(const struct ddp_point *p)
{
    return p->check_wrong > 0 || p->iterations < 1;
}

int ddp_plot_collect(const struct ddp_plot_source *sources, int count, struct ddp_plot_cells *out,
                     struct ddp_err *err)
{
    size_t points = 0;
    for (int s = 0; s < count; s++)
        points += (size_t)sources[s].record->point_count;
    *out = (struct ddp_plot_cells){.count = 0};
    DDP_TRY(DDP_NEW(&out->items, points, err));
    for (int s = 0; s < count; s++) {
        const struct ddp_plot_source *source = &sources[s];
        struct ddp_plot_cell **of_merged = NULL; /* the cell of each point of `result` */
        if (source->result && DDP_NEW(&of_merged, source->result->count, err) != 0) {
            free(out->items);
            *out = (struct ddp_plot_cells){.count = 0};
            return DDP_ENOMEM;
        }
        for (int i = 0; i < source->record->point_count; i++) {
            const struct ddp_point *p = &source->record->points[i];
            const size_t at = of_merged ? source->merged[i] : 0;
            struct ddp_plot_cell *cell = of_merged ? of_merged[at] : NULL;
            if (!cell) {
                const struct ddp_result_point *m = of_merged ? &source->result->points[at] : NULL;
                cell = &out->items[out->count++];
                *cell = (struct ddp_plot_cell){
                    .source = s,
                    .point = p,
                    .merged = m,
                    .median_ns = m ? m->median_ns : p->time_ns.median,
                    .ci95_lo_ns = m ? m->ci95_lo_ns : p->time_ns.ci95_lo,
                    .ci95_hi_ns = m ? m->ci95_hi_ns : p->time_ns.ci95_hi,
                };
            }
            if (of_merged)
                of_merged[at] = cell;
            cell->quality |= p->quality;
            cell->wrong |= is_wrong(p);
        }
        free(of_merged);
    }
    return 0;
}

/* A cell and the hashes of its settings. Settings with equal hashes count as equal. */
struct item {
    const struct ddp_plot_cell *cell;
    uint64_t hash[SETTINGS];
    double over; /* the value of the setting on the x axis */
};

static double density_of(const struct ddp_point *p)
{
    return isnan(p->density) ? p->achieved_density : p->density;
}

double ddp_plot_over_value(const struct ddp_plot_cell *cell, enum ddp_plot_over over)
{
    const struct ddp_point *p = cell->point;
    return over == DDP_PLOT_OVER_SIZE    ? (double)p->spec.size_bytes
           : over == DDP_PLOT_OVER_RANKS ? p->spec.ranks
                                         : density_of(p);
}

/* Returns true if the setting is on the x axis. The density is a part of COMPRESS, from which
 * fill_item removes the density. */
static bool is_over(enum setting setting, enum ddp_plot_over over)
{
    return (over == DDP_PLOT_OVER_SIZE && setting == SIZE) ||
           (over == DDP_PLOT_OVER_RANKS && setting == RANKS);
}

static void fill_item(const struct ddp_plot_cell *cell, const struct ddp_plot_source *sources,
                      enum ddp_plot_over over, struct item *out)
{
    char text[TEXT_BYTES];
    out->cell = cell;
    out->over = ddp_plot_over_value(cell, over);
    for (enum setting s = 0; s < SETTINGS; s++) {
        setting_text(cell, sources, s, text);
        if (s == COMPRESS && over == DDP_PLOT_OVER_DENSITY)
            text[strcspn(text, ":")] = '\0';
        out->hash[s] = is_over(s, over) ? 0 : ddp_fnv1a(DDP_FNV_INIT, text, strlen(text));
    }
    /* Sources may have the same name, so use their indices. */
    out->hash[SOURCE] = (uint64_t)cell->source;
}

/* A key and its position. */
struct keyed {
    uint64_t key;
    size_t index;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->index > y->index) - (x->index < y->index);
}

/* Numbers the different keys by their first appearance. Sets order[i] to the number of the key with
 * index i, and *distinct to the count of different keys. Sorts k [n]. */
static int number_keys(struct keyed *k, size_t n, int *order, int *distinct, struct ddp_err *err)
{
    size_t *first;
    DDP_TRY(DDP_NEW(&first, n, err));
    if (n > 0)
        qsort(k, n, sizeof *k, compare_keyed);
    for (size_t i = 0; i < n; i++)
        first[k[i].index] = i > 0 && k[i].key == k[i - 1].key ? first[k[i - 1].index] : k[i].index;
    *distinct = 0;
    for (size_t i = 0; i < n; i++)
        order[i] = first[i] == i ? (*distinct)++ : order[first[i]];
    free(first);
    return 0;
}

/* Combines the hashes of all settings. */
static uint64_t series_key(const struct item *item)
{
    return ddp_fnv1a(DDP_FNV_INIT, item->hash, sizeof item->hash);
}

/* Numbers the values of one setting or, if `setting` is negative, the series of the items. Sets
 * `order` and *distinct as number_keys does. */
static int number_items(const struct item *items, size_t n, int setting, int *order, int *distinct,
                        struct ddp_err *err)
{
    struct keyed *k;
    DDP_TRY(DDP_NEW(&k, n, err));
    for (size_t i = 0; i < n; i++)
        k[i] = (struct keyed){setting < 0 ? series_key(&items[i]) : items[i].hash[setting], i};
    const int rc = number_keys(k, n, order, distinct, err);
    free(k);
    return rc;
}

/* The groups being built, and their inputs. */
struct builder {
    int source_count;
    const struct ddp_plot_source *sources;
    enum ddp_plot_over over;
    struct ddp_plot_groups *out;
    struct ddp_err *err;
};

static void append_text(char *out, size_t bytes, const char *text)
{
    if (text[0])
        ddp_text_append(out, bytes, "%s%s", out[0] ? ", " : "", text);
}

/* Finds the settings in which items differ, as bits 1 << setting. *overall: all such settings.
 * *inside: the settings in which two items of the same source differ. SOURCE is also in *inside if
 * the items come from several sources. Returns 0 or DDP_ENOMEM. */
static int find_varying(const struct builder *b, const struct item *items, size_t n,
                        unsigned *inside, unsigned *overall)
{
    const struct item **first; /* [source_count]: the first item of each source */
    DDP_TRY(DDP_NEW(&first, (size_t)b->source_count, b->err));
    *inside = *overall = 0;
    for (size_t i = 0; i < n; i++) {
        const struct item **own = &first[items[i].cell->source];
        if (!*own)
            *own = &items[i];
        for (enum setting s = 0; s < SETTINGS; s++) {
            *inside |= items[i].hash[s] != (*own)->hash[s] ? 1u << s : 0;
            *overall |= items[i].hash[s] != items[0].hash[s] ? 1u << s : 0;
        }
    }
    *inside |= *overall & 1u << SOURCE;
    free(first);
    return 0;
}

/* Writes the settings of a cell that distinguish its series from the other series. varies: bits of
 * these settings. */
static void name_series(const struct builder *b, const struct ddp_plot_cell *cell, unsigned varies,
                        char *out, size_t bytes)
{
    char text[TEXT_BYTES];
    out[0] = '\0';
    for (int s = SETTINGS - 1; s >= 0; s--) {
        if (!(varies >> s & 1))
            continue;
        setting_text(cell, b->sources, (enum setting)s, text);
        if (s == COMPRESS && b->over == DDP_PLOT_OVER_DENSITY)
            text[strcspn(text, ":")] = '\0';
        /* "dense" is left out, unless the compressor is the only setting that varies. */
        if (strcmp(text, "dense") != 0 || varies == 1u << COMPRESS)
            append_text(out, bytes, text);
    }
}

/* Chooses the colours and shapes of the series. With one source, each series has its own colour and
 * shape. With several sources, the colour stands for the source, and the shape for the settings
 * that vary inside a source, if there are any. inside: bits of find_varying. */
static int style_group(const struct builder *b, const struct item *items, const int *order,
                       size_t n, unsigned inside, struct ddp_plot_group *g)
{
    const bool several = b->source_count > 1;
    struct keyed *k;
    int *variant, variants, rc;
    DDP_TRY(DDP_NEW(&k, n, b->err));
    DDP_TRY_GOTO(DDP_NEW(&variant, n, b->err), out);
    for (size_t i = 0; i < n; i++) {
        struct item own = items[i];
        for (enum setting s = 0; s < SETTINGS; s++)
            if (s == SOURCE || !(inside >> s & 1))
                own.hash[s] = 0;
        k[i] = (struct keyed){series_key(&own), i};
    }
    DDP_TRY_GOTO(number_keys(k, n, variant, &variants, b->err), out_variant);
    for (size_t i = 0; i < n; i++) {
        const int source = items[i].cell->source;
        g->colors[order[i]] = several ? source : order[i];
        g->shapes[order[i]] = several && variants > 1 ? variant[i] : g->colors[order[i]];
    }
out_variant:
    free(variant);
out:
    free(k);
    return rc;
}

/* Names the group and its series, and chooses the styles of the series. divided: bits of the
 * settings by which groups were divided. */
static int describe_group(const struct builder *b, const struct item *items, const int *order,
                          size_t n, unsigned divided, struct ddp_plot_group *g)
{
    static const enum setting note_order[] = {DTYPE,  OP,        RANKS,   COMPRESS, PLACEMENT,
                                              MEMORY, ALGORITHM, BACKEND, OTHER,    SIZE};
    char text[TEXT_BYTES];
    unsigned inside, overall;
    DDP_TRY(find_varying(b, items, n, &inside, &overall));
    for (enum setting s = 0; s < SETTINGS; s++)
        if (divided >> s & 1) {
            setting_text(items[0].cell, b->sources, s, text);
            append_text(g->title, sizeof g->title, text);
        }
    for (size_t k = 0; k < DDP_COUNT_OF(note_order); k++) {
        const enum setting s = note_order[k];
        setting_text(items[0].cell, b->sources, s, text);
        if (!((overall | divided) >> s & 1) && !is_over(s, b->over) && strcmp(text, "dense") != 0)
            append_text(g->note, sizeof g->note, text);
    }
    for (size_t i = n; i-- > 0;) /* Backwards, so that the first cell of a series names it. */
        name_series(b, items[i].cell, inside, g->names[order[i]], sizeof g->names[0]);
    return style_group(b, items, order, n, inside, g);
}

static int compare_over(const void *a, const void *b)
{
    const struct item *const *x = a, *const *y = b;
    return ((*x)->over > (*y)->over) - ((*x)->over < (*y)->over);
}

/* Fills the cells of the group in order of series, then of the x axis. */
static int fill_cells(const struct builder *b, const struct item *items, const int *order, size_t n,
                      struct ddp_plot_group *g)
{
    const struct item **sorted;
    DDP_TRY(DDP_NEW(&sorted, n, b->err));
    for (int s = 0; s < g->series_count; s++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if (order[i] == s)
                sorted[count++] = &items[i];
        qsort(sorted, count, sizeof *sorted, compare_over);
        for (size_t i = 0; i < count; i++) {
            g->cells[g->count] = sorted[i]->cell;
            g->series[g->count++] = s;
        }
    }
    for (size_t i = 0; i < n; i++)
        sorted[i] = &items[i];
    qsort(sorted, n, sizeof *sorted, compare_over);
    for (size_t i = 0; i < n; i++)
        g->positions += i == 0 || sorted[i]->over != sorted[i - 1]->over;
    free(sorted);
    return 0;
}

/* Appends a group of items. order[i] is the series of item i. */
static int add_group(const struct builder *b, const struct item *items, const int *order, size_t n,
                     int series, unsigned divided)
{
    struct ddp_plot_groups *out = b->out;
    DDP_TRY(DDP_RESIZE(&out->items, out->count + 1, b->err));
    struct ddp_plot_group *g = &out->items[out->count++];
    *g = (struct ddp_plot_group){.over = b->over, .sources = b->sources, .series_count = series};
    DDP_TRY(DDP_NEW(&g->cells, n, b->err));
    DDP_TRY(DDP_NEW(&g->series, n, b->err));
    DDP_TRY(DDP_NEW(&g->names, (size_t)series, b->err));
    DDP_TRY(DDP_NEW(&g->colors, (size_t)series, b->err));
    DDP_TRY(DDP_NEW(&g->shapes, (size_t)series, b->err));
    DDP_TRY(describe_group(b, items, order, n, divided, g));
    return fill_cells(b, items, order, n, g);
}

/* Appends groups of at most DDP_PLOT_SERIES_MAX series each. */
static int add_parts(const struct builder *b, const struct item *items, const int *order, size_t n,
                     int series, unsigned divided)
{
    struct item *part;
    int *part_order, rc = 0;
    DDP_TRY(DDP_NEW(&part, n, b->err));
    DDP_TRY_GOTO(DDP_NEW(&part_order, n, b->err), out);
    for (int first = 0; first < series && rc == 0; first += DDP_PLOT_SERIES_MAX) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if (order[i] >= first && order[i] < first + DDP_PLOT_SERIES_MAX) {
                part_order[count] = order[i] - first;
                part[count++] = items[i];
            }
        rc = add_group(b, part, part_order, count, DDP_MIN(series - first, DDP_PLOT_SERIES_MAX),
                       divided);
    }
    free(part_order);
out:
    free(part);
    return rc;
}

/* Divides items by collective, and then by one setting after the other until each part has at most
 * DDP_PLOT_SERIES_MAX series. Settings that vary only between sources do not divide, so that
 * sources share their plots. `setting` is the next setting. `divided` has the bits of the settings
 * that have already divided the items. */
static int divide(const struct builder *b, struct item *items, size_t n, enum setting setting,
                  unsigned divided)
{
    struct item *part = NULL;
    unsigned inside, overall;
    int *order, values, rc;
    DDP_TRY(find_varying(b, items, n, &inside, &overall));
    while (setting > COLL && setting < SIZE && !(inside >> setting & 1))
        setting++;
    DDP_TRY(DDP_NEW(&order, n, b->err));
    DDP_TRY_GOTO(number_items(items, n, -1, order, &values, b->err), out);
    if (setting > COLL && (values <= DDP_PLOT_SERIES_MAX || setting == SIZE)) {
        rc = add_parts(b, items, order, n, values, divided);
        goto out;
    }
    DDP_TRY_GOTO(number_items(items, n, (int)setting, order, &values, b->err), out);
    DDP_TRY_GOTO(DDP_NEW(&part, n, b->err), out);
    if (values > 1 || setting == COLL)
        divided |= 1u << setting;
    for (int v = 0; v < values && rc == 0; v++) {
        size_t count = 0;
        for (size_t i = 0; i < n; i++)
            if (order[i] == v)
                part[count++] = items[i];
        rc = divide(b, part, count, (enum setting)(setting + 1), divided);
    }
out:
    free(part);
    free(order);
    return rc;
}

/* Keeps the items of series that were measured with several numbers of ranks. If these items have
 * more than SIZES_MAX different sizes, keeps SIZES_MAX sizes, evenly spaced in the sorted list of
 * sizes. */
static int keep_ranks(struct item *items, size_t *n, struct ddp_err *err)
{
    int *order = NULL, distinct, rc;
    /* first: by series, the first number of ranks that was found */
    double *sizes = NULL, *first = NULL;
    bool *several = NULL; /* by series: there are several numbers of ranks */
    size_t kept = 0, count = 0;
    DDP_TRY_GOTO(DDP_NEW(&order, *n, err), out);
    DDP_TRY_GOTO(DDP_NEW(&sizes, *n, err), out);
    DDP_TRY_GOTO(number_items(items, *n, -1, order, &distinct, err), out);
    DDP_TRY_GOTO(DDP_NEW(&first, *n, err), out);
    DDP_TRY_GOTO(DDP_NEW(&several, *n, err), out);
    for (size_t i = 0; i < *n; i++) {
        if (first[order[i]] == 0)
            first[order[i]] = items[i].over;
        several[order[i]] |= first[order[i]] != items[i].over;
    }
    for (size_t i = 0; i < *n; i++)
        if (several[order[i]])
            items[kept++] = items[i];
    for (size_t i = 0; i < kept; i++)
        sizes[i] = (double)items[i].cell->point->spec.size_bytes;
    ddp_sort_doubles(sizes, kept);
    for (size_t i = 0; i < kept; i++)
        if (i == 0 || sizes[i] != sizes[count - 1])
            sizes[count++] = sizes[i];
    *n = 0;
    for (size_t i = 0; i < kept; i++)
        for (size_t k = 0; k < DDP_MIN(count, (size_t)SIZES_MAX); k++) {
            const size_t at = count <= SIZES_MAX ? k : k * (count - 1) / (SIZES_MAX - 1);
            if ((double)items[i].cell->point->spec.size_bytes == sizes[at]) {
                items[(*n)++] = items[i];
                break;
            }
        }
out:
    free(several);
    free(first);
    free(sizes);
    free(order);
    return rc;
}

/* Returns true if a plot whose x axis is `over` can show the cell. */
static bool is_plotted(const struct ddp_plot_cell *cell, enum ddp_plot_over over)
{
    return over != DDP_PLOT_OVER_DENSITY ||
           (ddp_point_is_reduced(&cell->point->spec) && density_of(cell->point) > 0 &&
            (cell->point->density > 0 || cell->point->threshold > 0) &&
            !isnan(ddp_point_speedup(cell->point, DDP_BASELINE_F32)));
}

int ddp_plot_group_cells(const struct ddp_plot_source *sources, const struct ddp_plot_cells *cells,
                         enum ddp_plot_over over, struct ddp_plot_groups *out, struct ddp_err *err)
{
    struct builder b = {.sources = sources, .over = over, .out = out, .err = err};
    struct item *items;
    size_t n = 0;
    int rc = 0;
    *out = (struct ddp_plot_groups){.count = 0};
    DDP_TRY(DDP_NEW(&items, cells->count, err));
    for (size_t i = 0; i < cells->count; i++)
        b.source_count = DDP_MAX(b.source_count, cells->items[i].source + 1);
    for (size_t i = 0; i < cells->count; i++)
        if (is_plotted(&cells->items[i], over))
            fill_item(&cells->items[i], sources, over, &items[n++]);
    if (over == DDP_PLOT_OVER_RANKS)
        rc = keep_ranks(items, &n, err);
    if (rc == 0 && n > 0)
        rc = divide(&b, items, n, COLL, 0);
    if (rc != 0)
        ddp_plot_groups_release(out);
    free(items);
    return rc;
}

void ddp_plot_groups_release(struct ddp_plot_groups *groups)
{
    for (size_t i = 0; i < groups->count; i++) {
        struct ddp_plot_group *g = &groups->items[i];
        free(g->cells);
        free(g->series);
        free(g->names);
        free(g->colors);
        free(g->shapes);
    }
    free(groups->items);
    *groups = (struct ddp_plot_groups){.count = 0};
}
