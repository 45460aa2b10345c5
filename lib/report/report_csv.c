/* Comma-separated values (RFC 4180) with one head, one row per point or epoch and one column per
 * variable. Cells that do not apply or have no value are empty. A text that a spreadsheet would
 * take for a formula gets a leading apostrophe. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/report.h"

/* The columns, in the order of the cells in both kinds of rows. */
static const char columns[] =
    "kind,launch,collective,backend,algorithm,algorithm_used,dtype,op,root,placement,memory,ranks,"
    "groups,"
    "requested_bytes,size_bytes,count,compress,partial,order,iterations,warmup,invalid,start,stop,"
    "block,injected_percent,time_median_us,"
    "time_ci95_lo_us,time_ci95_hi_us,time_mean_us,time_stddev_us,time_min_us,time_p25_us,"
    "time_p75_us,time_p95_us,time_p99_us,time_max_us,drifting,autocorrelated,algbw_GBps,busbw_GBps,"
    "effective_GBps,"
    "wire_bytes_per_rank,achieved_density,skew_start_us,skew_exit_us,pingpong_before_ns,"
    "pingpong_after_ns,steal_ms,throttled_ms,involuntary_switches,bound,bound_GBps,bound_us,"
    "bound_fraction,check,"
    "check_elements,check_wrong,model,dataset,sync,seed,epoch,train_loss,train_accuracy,eval_loss,"
    "eval_accuracy,seconds,compute_seconds,exchange_seconds,exposed_seconds,images_per_second\r\n";

static void text_cell(struct ddp_strbuf *out, const char *text)
{
    char clean[128];
    ddp_printable(text, clean, sizeof clean);
    bool formula = clean[0] && strchr("=+-@", clean[0]);
    bool quote = strpbrk(clean, ",\"") != NULL;
    ddp_strbuf_add(out, quote ? "\"" : "");
    ddp_strbuf_add(out, formula ? "'" : "");
    for (const char *c = clean; *c; c++) {
        if (*c == '"')
            ddp_strbuf_add(out, "\"");
        ddp_strbuf_add_n(out, c, 1);
    }
    ddp_strbuf_add(out, quote ? "\"," : ",");
}

static void number(struct ddp_strbuf *out, double value)
{
    char text[32];
    for (int digits = 15; isfinite(value) && digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    ddp_strbuf_addf(out, "%s,", isfinite(value) ? text : "");
}

static void count(struct ddp_strbuf *out, int64_t value)
{
    if (value >= 0)
        ddp_strbuf_addf(out, "%" PRId64, value);
    ddp_strbuf_add(out, ",");
}

static void empty(struct ddp_strbuf *out, int cells)
{
    for (int i = 0; i < cells; i++)
        ddp_strbuf_add(out, ",");
}

/* Replaces the comma after the last cell by a newline. */
static void end_row(struct ddp_strbuf *out)
{
    if (!out->failed && out->length > 0)
        out->text[--out->length] = '\0';
    ddp_strbuf_add(out, "\r\n");
}

static void begin(const struct ddp_record *r, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    (void)r;
    (void)style;
    ddp_strbuf_add(out, columns);
}

static void spec_cells(const struct ddp_point *p, struct ddp_strbuf *out)
{
    const struct ddp_point_spec *s = &p->spec;
    text_cell(out, ddp_coll_name(s->coll));
    text_cell(out, s->backend);
    text_cell(out, s->algorithm);
    text_cell(out, p->algorithm_used);
    text_cell(out, ddp_dtype_name(s->dtype));
    text_cell(out, ddp_coll_reduces(s->coll) ? ddp_op_name(s->op) : "");
    count(out, ddp_coll_has_root(s->coll) ? s->root : -1);
    text_cell(out, ddp_placement_name(s->placement));
    text_cell(out, ddp_memory_name(s->memory));
    count(out, s->ranks);
    count(out, s->groups > 0 ? s->groups : 1);
    count(out, (int64_t)s->requested_bytes);
    count(out, (int64_t)s->size_bytes);
    count(out, (int64_t)s->count);
    text_cell(out, s->compress);
    count(out, s->partial > 0 ? s->partial : -1);
}

static void time_cells(const struct ddp_summary *t, struct ddp_strbuf *out)
{
    const double ns[] = {t->median, t->ci95_lo, t->ci95_hi, t->mean, t->stddev, t->min,
                         t->p25,    t->p75,     t->p95,     t->p99,  t->max};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
        number(out, ns[i] / 1e3);
}

static void iteration_cells(const struct ddp_point *p, struct ddp_strbuf *out)
{
    count(out, p->of > 0 ? p->order : -1);
    count(out, p->iterations);
    count(out, p->warmup);
    count(out, p->invalid);
    text_cell(out, ddp_start_name(p->start));
    text_cell(out, ddp_stop_name(p->stop));
    count(out, p->block > 1 ? p->block : -1);
    number(out, p->injected_percent);
}

static void series_cells(const struct ddp_series *s, struct ddp_strbuf *out)
{
    count(out, isnan(s->trend) ? -1 : s->drifting);
    count(out, isnan(s->trend) ? -1 : s->autocorrelated);
}

static void condition_cells(const struct ddp_point *p, struct ddp_strbuf *out)
{
    number(out, p->skew_start_ns / 1e3);
    number(out, p->skew_exit_ns / 1e3);
    number(out, p->pingpong_ns[0]);
    number(out, p->pingpong_ns[1]);
    number(out, p->interference.steal_ms);
    number(out, p->interference.throttled_ms);
    count(out, p->interference.involuntary_switches);
    text_cell(out, p->bound_kind);
    number(out, p->bound_GBps);
    number(out, p->bound_ns / 1e3);
    number(out, p->bound_fraction);
}

static void point(const struct ddp_record *r, int index, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    (void)style;
    const struct ddp_point *p = &r->points[index];
    ddp_strbuf_add(out, "point,");
    count(out, p->launch > 0 ? p->launch : -1);
    spec_cells(p, out);
    iteration_cells(p, out);
    time_cells(&p->time_ns, out);
    series_cells(&p->series, out);
    number(out, ddp_point_algbw_GBps(p, p->time_ns.median));
    number(out, ddp_point_busbw_GBps(p, p->time_ns.median));
    number(out, ddp_point_effective_GBps(p, p->time_ns.median));
    number(out, p->wire_bytes_per_rank);
    number(out, p->achieved_density);
    condition_cells(p, out);
    text_cell(out, ddp_check_name(p->check));
    count(out, p->check_elements);
    count(out, p->check_wrong);
    empty(out, 14);
    end_row(out);
}

static void epoch(const struct ddp_record *r, int run, int index,
                  const struct ddp_report_style *style, struct ddp_strbuf *out)
{
    (void)style;
    const struct ddp_train_run *t = &r->train[run];
    const struct ddp_epoch *e = &t->epochs[index];
    ddp_strbuf_add(out, "epoch,");
    count(out, t->launch > 0 ? t->launch : -1);
    empty(out, 1);
    text_cell(out, r->world_backend);
    empty(out, 7);
    count(out, t->ranks);
    empty(out, 30);
    number(out, e->wire_bytes_per_rank);
    number(out, e->achieved_density);
    empty(out, 14);
    text_cell(out, t->model);
    text_cell(out, t->dataset);
    text_cell(out, t->sync);
    ddp_strbuf_addf(out, "%" PRIu64 ",%d,", t->seed, e->epoch);
    const double values[] = {e->train_loss,       e->train_accuracy,  e->eval_loss,
                             e->eval_accuracy,    e->seconds,         e->compute_seconds,
                             e->exchange_seconds, e->exposed_seconds, e->images_per_second};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        number(out, values[i]);
    end_row(out);
}

static void end(const struct ddp_record *r, const struct ddp_report_style *style,
                struct ddp_strbuf *out)
{
    (void)r;
    (void)style;
    /* An interrupted run has fewer rows. The reason is on stderr. */
    (void)out;
}

extern const struct ddp_reporter ddp_reporter_csv;
const struct ddp_reporter ddp_reporter_csv = {
    .name = "csv",
    .summary = "comma-separated values, one row per point or epoch",
    .begin = begin,
    .point = point,
    .epoch = epoch,
    .end = end,
};
