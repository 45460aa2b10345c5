/* Reporters: one file per output format. They only format; every figure they show is defined by
 * record.h.
 *
 * A sink is a reporter with its target. Streaming reporters (table) write a head, a row per point
 * and a foot to a stream. Document reporters (json) rewrite the whole document at every update: if
 * the target is absent or a regular file, they write a temporary file beside it and rename it;
 * otherwise (a pipe, stdout) they write the document once, at the end. Every write, fsync, close
 * and rename is checked; errors are DDP_ECREATE and DDP_EIO. */
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

/* Properties of the terminal. */
struct ddp_report_style {
    bool color; /* Escape codes are allowed. */
    int width;  /* Columns of the terminal, 80 if unknown. */
};

struct ddp_reporter {
    const char *name, *summary;
    /* True: render() writes the whole document. False: begin, point, epoch and end write pieces. */
    bool document;
    int (*render)(const struct ddp_record *record, struct ddp_strbuf *out, struct ddp_err *err);
    void (*begin)(const struct ddp_record *record, const struct ddp_report_style *style,
                  struct ddp_strbuf *out);
    void (*point)(const struct ddp_record *record, int index, const struct ddp_report_style *style,
                  struct ddp_strbuf *out);
    void (*epoch)(const struct ddp_record *record, int run, int index,
                  const struct ddp_report_style *style, struct ddp_strbuf *out);
    void (*end)(const struct ddp_record *record, const struct ddp_report_style *style,
                struct ddp_strbuf *out);
};

/* Returns all reporters of report_list.h, NULL-terminated. */
const struct ddp_reporter *const *ddp_reporter_all(void);
const struct ddp_reporter *ddp_reporter_find(const char *name);

/* A set of sinks, at most one of them on stdout. The path "-" means stdout. */
struct ddp_report_set;
int ddp_report_open(struct ddp_report_set **out, struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the write deadline for outputs that block. The struct is copied. Default:
 * DDP_WRITE_DEADLINE_INIT.
 */
void ddp_report_set_write_deadline(struct ddp_report_set *set,
                                   const struct ddp_write_deadline *deadline_policy);
/* Adds a sink. Checks the target immediately, so that a bad path (DDP_ECREATE) or a second output
 * to the same target (DDP_EUSAGE) fails before anything is measured. Nothing is created or changed
 * before ddp_report_begin. */
int ddp_report_add(struct ddp_report_set *set, const struct ddp_reporter *reporter,
                   const char *path, const struct ddp_report_style *style,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* Protects `path`, a file that the command reads or keeps itself. Returns DDP_EUSAGE if an output
 * would overwrite it. Call it after all ddp_report_add and before ddp_report_begin. */
int ddp_report_protect(const struct ddp_report_set *set, const char *path,
                       struct ddp_err *err) DDP_MUST_CHECK;
bool ddp_report_has_stdout(const struct ddp_report_set *set);
/* Opens the outputs and writes the first (partial) documents. Call it when the head of the record
 * is known. Points and epochs that the record already holds (a continued sweep) are written too. */
int ddp_report_begin(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Report a new point, or a new epoch of the last run. Documents are written before streams, so
 * every printed point is on disk. Points that were measured in another order than that of the plan
 * are printed in plan order, each as soon as its predecessors are there, and the rest at the end.
 */
int ddp_report_point(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
int ddp_report_epoch(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Writes the final documents; record->status, reason and finished must be set. Does nothing without
 * ddp_report_begin. */
int ddp_report_end(struct ddp_report_set *set, const struct ddp_record *record,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_report_close(struct ddp_report_set *set);

#ifdef __cplusplus
}
#endif
#endif
