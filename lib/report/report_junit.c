/* JUnit XML, which most CI systems display. Each cell and each accuracy of a verdict is a test
 * case. Without a verdict, each point and each training run is a test case. The time of the suite
 * is the sum of the times of its cases. Attributes and elements follow the schema of Ant's JUnit
 * task, except that a case may be skipped and may have output.
 *
 * Slower cells, worse accuracies, wrong data, and runs that failed or were interrupted are
 * failures. Uncertain cells and accuracies are reported as skipped, and so are cells and training
 * runs that are missing or not judged. A CI therefore does not count them as passed. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/accuracy.h"
#include "record/provenance.h"
#include "record/quality.h"
#include "record/strategy_table.h"
#include "report/report_parts.h"

/* Adds text escaped for XML 1.0, valid inside and outside of attributes. */
static void escaped(struct ddp_strbuf *out, const char *text)
{
    static const char *const by[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    ddp_escaped_text(out, text, "&<>\"", by);
}

struct counts {
    int tests, failures, skipped;
    double seconds;
};

/* `number` is appended to the name of the case if `number` is above 1. Times have 12 decimals.
 * Medians often end in half a nanosecond, and a stored document does not keep their last bit. With
 * 9 decimals, a median from a stored document could therefore be rounded differently. */
static void open_case(struct ddp_strbuf *out, struct counts *n, const char *kind, const char *name,
                      int number, double seconds)
{
    const double known = isfinite(seconds) ? seconds : 0.0;
    n->tests++;
    n->seconds += known;
    ddp_strbuf_addf(out, "    <testcase classname=\"ddpbench.%s\" name=\"", kind);
    escaped(out, name);
    if (number > 1)
        ddp_strbuf_addf(out, " (%d)", number);
    ddp_strbuf_addf(out, "\" time=\"%.12f\">", known);
}

/* `element` is "failure", "skipped" or, if the case passed, NULL. `type` is the type of a failure.
 */
static void close_case(struct ddp_strbuf *out, struct counts *n, const char *element,
                       const char *type, const char *message)
{
    if (element) {
        const bool failed = element[0] == 'f';
        n->failures += failed;
        n->skipped += !failed;
        ddp_strbuf_addf(out, "\n      <%s message=\"", element);
        escaped(out, message);
        ddp_strbuf_addf(out, "\"%s%s%s/>\n    ", failed ? " type=\"" : "", failed ? type : "",
                        failed ? "\"" : "");
    }
    ddp_strbuf_add(out, "</testcase>\n");
}

static void verdict_cases(const struct ddp_verdict_record *v, struct ddp_strbuf *out,
                          struct counts *n)
{
    struct ddp_verdict_cell c;
    char state[64], message[160];
    for (size_t i = 0; ddp_verdict_row(v, i, &c, state); i++) {
        const bool judged = i < v->count;
        const char *element = c.cell.state == DDP_CELL_SLOWER      ? "failure"
                              : c.cell.state == DDP_CELL_UNCERTAIN ? "skipped"
                              : c.cell.state == DDP_CELL_MISSING   ? "skipped"
                                                                   : NULL;
        ddp_verdict_ratio_text(&c.cell, message, sizeof message);
        open_case(out, n, ddp_verdict_kind_names[v->kind], c.id, 1, c.next_ns * 1e-9);
        close_case(out, n, element, "slower", judged ? message : state);
    }
    for (size_t i = 0; i < v->accuracy_count; i++) {
        const enum ddp_noninferior_state found = v->accuracy[i].test.state;
        const char *element = found == DDP_WORSE                ? "failure"
                              : found == DDP_ACCURACY_UNCERTAIN ? "skipped"
                                                                : NULL;
        ddp_accuracy_text(&v->accuracy[i], message, sizeof message);
        open_case(out, n, "accuracy", v->accuracy[i].name, 1, NAN);
        close_case(out, n, element, "worse", message);
    }
}

/* Writes the name of a point's case. The repetitions of a point have different names. */
static void point_name(const struct ddp_point *p, char *out, size_t out_bytes)
{
    ddp_point_id(&p->spec, out, out_bytes);
    if (p->launch > 0)
        ddp_text_append(out, out_bytes, " launch %d", p->launch);
}

#define TRAIN_NAME_BYTES 256

/* Writes the name of a training run's case, for example "singa-cnn fp16, lr 0.01 n2 seed 1". `rows`
 * [count] are the rows of the comparison. If a strategy has several rows, their names contain the
 * settings that differ. */
static void train_name(const struct ddp_train_run *t, const struct ddp_strategy_row *rows,
                       int count, char out[TRAIN_NAME_BYTES])
{
    const char *sync = t->sync;
    for (int i = 0; i < count; i++)
        if (ddp_strategy_has_run(&rows[i], t))
            sync = rows[i].sync;
    snprintf(out, TRAIN_NAME_BYTES, "%s %s n%d seed %llu%s", t->model, sync, t->ranks,
             (unsigned long long)t->seed, t->baseline ? " baseline" : "");
    if (t->launch > 0)
        ddp_text_append(out, TRAIN_NAME_BYTES, " launch %d", t->launch);
}

/* Adds a case for each training run. Cases whose names are still equal, for example those of
 * baselines, get numbers. */
static int train_cases(const struct ddp_record *r, struct ddp_strbuf *out, struct counts *n,
                       struct ddp_err *err)
{
    struct ddp_strategy_row *rows = NULL;
    char(*names)[TRAIN_NAME_BYTES];
    int count;
    DDP_TRY(DDP_NEW(&names, (size_t)r->train_count, err));
    const int rc = ddp_strategy_rows(r, &rows, &count, err);
    for (int i = 0; rc == 0 && i < r->train_count; i++) {
        int equal = 1;
        train_name(&r->train[i], rows, count, names[i]);
        for (int k = 0; k < i; k++)
            equal += strcmp(names[k], names[i]) == 0;
        open_case(out, n, "train", names[i], equal, r->train[i].total_seconds);
        close_case(out, n, NULL, NULL, NULL);
    }
    free(rows);
    free(names);
    return rc;
}

static void point_cases(const struct ddp_record *r, struct ddp_strbuf *out, struct counts *n)
{
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        char id[224], message[64], codes[160];
        const char *element = p->check_wrong > 0 ? "failure" : NULL;
        point_name(p, id, sizeof id);
        snprintf(message, sizeof message, "%lld elements are wrong", (long long)p->check_wrong);
        open_case(out, n, "point", id, 1, p->time_ns.median * 1e-9);
        ddp_quality_list(p->quality, ",", codes, sizeof codes);
        if (codes[0])
            ddp_strbuf_addf(out, "\n      <system-out>doubtful: %s</system-out>\n    ", codes);
        close_case(out, n, element, "wrong-data", message);
    }
}

static void open_suite(const struct ddp_record *r, const struct counts *n, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(
        out,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
        "  <testsuite id=\"0\" package=\"ddpbench\" name=\"ddpbench %s\" tests=\"%d\" "
        "failures=\"%d\" errors=\"0\" skipped=\"%d\" time=\"%.12f\" timestamp=\"%.19s\" "
        "hostname=\"",
        r->command, n->tests, n->failures, n->skipped, n->seconds, r->started);
    escaped(out, r->host_count > 0 ? r->hosts[0].name : "localhost");
    ddp_strbuf_add(out, "\">\n    <properties>");
    if (r->label[0]) {
        ddp_strbuf_add(out, "<property name=\"label\" value=\"");
        escaped(out, r->label);
        ddp_strbuf_add(out, "\"/>");
    }
    ddp_strbuf_add(out, "</properties>\n");
}

static int render(const struct ddp_record *r, struct ddp_strbuf *out, struct ddp_err *err)
{
    struct ddp_strbuf cases = DDP_STRBUF_INIT;
    struct counts n = {0};
    int rc = 0;
    if (r->verdict) {
        verdict_cases(r->verdict, &cases, &n);
    } else {
        point_cases(r, &cases, &n);
        rc = train_cases(r, &cases, &n, err);
    }
    if (r->status != DDP_STATUS_COMPLETE) {
        open_case(&cases, &n, "run", r->command, 1, 0);
        close_case(&cases, &n, "failure", ddp_status_names[r->status], r->reason);
    }
    open_suite(r, &n, out);
    ddp_strbuf_add(out, cases.text ? cases.text : "");
    out->failed |= cases.failed;
    ddp_strbuf_add(out, "    <system-out>");
    if (r->verdict) {
        escaped(out, ddp_verdict_names[r->verdict->outcome]);
        ddp_strbuf_add(out, ": ");
        escaped(out, r->verdict->reason);
    }
    ddp_strbuf_add(out,
                   "</system-out>\n    <system-err></system-err>\n  </testsuite>\n</testsuites>\n");
    ddp_strbuf_release(&cases);
    return rc;
}

const struct ddp_reporter ddp_reporter_junit = {
    .name = "junit",
    .summary = "JUnit XML, which CI systems show as tests",
    .shows = DDP_RECORD_ALL & ~DDP_RECORD_MATRIX,
    .document = true,
    .render = render,
};
