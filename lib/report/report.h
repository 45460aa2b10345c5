/* A reporter writes records in one output format. The figures that reporters show are defined in
 * lib/record. Reporters compute only simple summaries of these figures, such as the average bus
 * bandwidth in the format nccl-tests.
 *
 * A sink is the target of a reporter (report_sink.h). A streaming reporter (such as table) writes a
 * head, a row per point and a foot. A document reporter (such as json) writes the whole document
 * again at every update. The new document goes into a temporary file, which is then renamed to the
 * target. If the target is a pipe, a device or a descriptor such as stdout, the document is written
 * once, at the end. Every write, fsync, close and rename is checked. */
#ifndef DDP_REPORT_REPORT_H
#define DDP_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "record/record.h"
#include "report/write_deadline.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of figures in a record, as bits. */
enum ddp_record_kind {
    DDP_RECORD_POINTS = 1 << 0,
    DDP_RECORD_TRAINING = 1 << 1,
    DDP_RECORD_VERDICT = 1 << 2,
    DDP_RECORD_MATRIX = 1 << 3, /* The matrix of pairs, or a verdict about the health. */
    DDP_RECORD_PAYS = 1 << 4,
    DDP_RECORD_ALL = (1 << 5) - 1
};

struct ddp_reporter {
    const char *name, *summary;
    unsigned shows; /* The kinds of figures that the reporter shows (enum ddp_record_kind). */
    bool joins;     /* The documents of several records may follow each other in one file. */
    bool one_head;  /* `begin` is called only before the first of several records. */
    /* The variant of this reporter that also explains its columns, or NULL. */
    const struct ddp_reporter *with_legend;
    /* True: render() writes the whole document. False: `begin`, `head`, `point`, `epoch` and `end`
     * write pieces. Each of these five members may be NULL. Escape codes for colour are removed
     * from the pieces where colour is not allowed. */
    bool document;
    /* True: a stream gets each point as soon as it is measured. False: a stream gets a point only
     * after all points that stand before it in the plan. */
    bool measured_order;
    int (*render)(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err);
    void (*begin)(const struct ddp_record *record, struct ddp_strbuf *out);
    /* Called before the first point, before the first point after an epoch, and before a point
     * whose kind (ddp_point_kind) differs from that of the previous point. Only streams with
     * measured_order use this member. Other streams write their head lines in `begin` or `point`.
     */
    void (*head)(const struct ddp_record *record, int index, struct ddp_strbuf *out);
    void (*point)(const struct ddp_record *record, int index, struct ddp_strbuf *out);
    void (*epoch)(const struct ddp_record *record, int run, int index, struct ddp_strbuf *out);
    void (*end)(const struct ddp_record *record, struct ddp_strbuf *out);
};

/* Returns all reporters of report_list.h, NULL-terminated. */
const struct ddp_reporter *const *ddp_reporter_all(void);
/* Returns NULL if no reporter has this name. */
const struct ddp_reporter *ddp_reporter_find(const char *name);

/* A set of sinks, at most one of them on stdout. The path "-" means stdout. */
struct ddp_report_set;
int ddp_report_open(struct ddp_report_set **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the write deadline for outputs that block. The struct is copied. The default is
 * DDP_WRITE_DEADLINE_INIT. */
void ddp_report_set_write_deadline(struct ddp_report_set *set,
                                   const struct ddp_write_deadline *deadline_policy);
/* Options of the reporter `table`. On a terminal and without `wide`, the table fits the width and
 * is updated whenever a point is measured (terminal_table.h). */
struct ddp_table_options {
    bool wide;   /* Show all columns on a terminal, too, as in a pipe or a file. */
    bool legend; /* Explain the columns. */
    int plot;    /* The plot below the table: index of ddp_plot_choices (plot_terminal.h). */
};
/* Sets the options of the table. Call this before ddp_report_add. The struct is copied. */
void ddp_report_set_table(struct ddp_report_set *set, const struct ddp_table_options *options);
/* Adds a sink for a reporter, and checks the target before anything is measured. Returns 0,
 * DDP_ECREATE for a path that cannot be written, DDP_ENOMEM, or DDP_EUSAGE for an empty path or a
 * second output to the same target. The target is not created or changed before ddp_report_begin or
 * ddp_report_show. */
int ddp_report_add(struct ddp_report_set *set, const struct ddp_reporter *reporter,
                   const char *path, struct ddp_err *err) DDP_MUST_CHECK;
/* Protects `path`, a file that the command itself reads or writes. Returns DDP_EUSAGE if an output
 * would overwrite this file. Call this after all ddp_report_add and before ddp_report_begin. */
int ddp_report_protect(const struct ddp_report_set *set, const char *path,
                       struct ddp_err *err) DDP_MUST_CHECK;
bool ddp_report_has_stdout(const struct ddp_report_set *set);
/* Returns true if one of the reporters is `table`. */
bool ddp_report_has_table(const struct ddp_report_set *set);
/* Returns true if a table is drawn on a terminal. The result is valid only after ddp_report_begin.
 */
bool ddp_report_on_screen(const struct ddp_report_set *set);
/* Opens the outputs and writes the first (partial) documents. Call this when the facts about the
 * run (command, hosts, ...) are in the record. Points and epochs that the record already holds (a
 * continued sweep) are written too. */
int ddp_report_begin(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Report the newest point, or the newest epoch of the last training run. Documents are written
 * before streams, so a document file has each point before a stream shows it. Streams with
 * measured_order get the point immediately. The other streams show points in the order of the plan.
 * They get a point when all points before it in the plan are known, or at the end of the run. */
int ddp_report_point(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
int ddp_report_epoch(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
struct ddp_plot_source;
/* Writes complete records to the outputs. Call this instead of ddp_report_begin, _point, _epoch and
 * _end. If there are several records, a table shows their names, and a document reporter must have
 * `joins`. */
int ddp_report_show(struct ddp_report_set *set, const struct ddp_plot_source *sources, int count,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* If a table is drawn on a terminal, erases the rows that may still change, so that a message can
 * be printed in their place. Errors are ignored. */
void ddp_report_pause(struct ddp_report_set *set);
/* Writes the final documents and the last lines of the streams. record->status, reason and finished
 * must be set. Does nothing if ddp_report_begin was not called. */
int ddp_report_end(struct ddp_report_set *set, const struct ddp_record *record,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the paths of the outputs that are files, separated by commas, or "" if there are none. */
void ddp_report_files(const struct ddp_report_set *set, char *out, size_t out_bytes);
void ddp_report_close(struct ddp_report_set *set);

#ifdef __cplusplus
}
#endif
#endif
