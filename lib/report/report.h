/* Reporters: one file an output format. They format, they compute nothing that record.h does not
 * define.
 *
 * A sink is a reporter bound to where it writes. Streaming reporters (table) write begin, a row a
 * point, end, to a stream; document reporters (json) rewrite a whole valid document at every
 * update: beside the target and renamed when the target is absent or a regular file, in place
 * otherwise (a pipe or stdout gets the document once, at the end). Every write, fsync, close and
 * rename is checked: DDP_ECREATE, DDP_EIO. */
#ifndef DDP_REPORT_REPORT_H
#define DDP_REPORT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/strbuf.h"
#include "record/record.h"
#include "report/patience.h"

#ifdef __cplusplus
extern "C" {
#endif

/* color: escape codes allowed. width: columns of the terminal, 80 when unknown. */
struct ddp_report_style {
    bool color;
    int width;
};

struct ddp_reporter {
    const char *name, *summary;
    bool document; /* render() gives a whole document; else begin/point/epoch/end give pieces */
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

/* All reporters of report_list.h, NULL-terminated. */
const struct ddp_reporter *const *ddp_reporter_all(void);
const struct ddp_reporter *ddp_reporter_find(const char *name);

/* Several sinks at once. path "-" is stdout. At most one sink on stdout. */
struct ddp_report_set;
int ddp_report_open(struct ddp_report_set **out, struct ddp_err *err) DDP_MUST_CHECK;
/* For outputs that take nothing; copied. Before it is called: DDP_PATIENCE_INIT. */
void ddp_report_be_patient(struct ddp_report_set *set, const struct ddp_patience *patience);
/* Checks the target now, so that a bad path fails before anything is measured (DDP_ECREATE), and so
 * does a second output to the same (DDP_EUSAGE). Nothing is created or changed before begin. */
int ddp_report_add(struct ddp_report_set *set, const struct ddp_reporter *reporter,
                   const char *path, const struct ddp_report_style *style,
                   struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_EUSAGE when an output would write to `path`, a file that the command reads or keeps besides.
 * After add, before begin. */
int ddp_report_spare(const struct ddp_report_set *set, const char *path,
                     struct ddp_err *err) DDP_MUST_CHECK;
bool ddp_report_has_stdout(const struct ddp_report_set *set);
/* After the head of the record is known; opens the outputs, writes the first (partial) document.
 * Points and epochs that are there already (a sweep that goes on) are written, too. */
int ddp_report_begin(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* The record got a point or an epoch (the last of its last run). Documents first, then streams:
 * what is printed is on disk. Points that are measured in another order than the plan's are printed
 * in the plan's, each as soon as those before it are there, the rest at the end. */
int ddp_report_point(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
int ddp_report_epoch(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Final documents (record->status, reason, finished are set). Without begin: nothing. */
int ddp_report_end(struct ddp_report_set *set, const struct ddp_record *record,
                   struct ddp_err *err) DDP_MUST_CHECK;
void ddp_report_close(struct ddp_report_set *set);

#ifdef __cplusplus
}
#endif
#endif
