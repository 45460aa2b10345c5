/* The table on a terminal: it fits the width of the terminal, and it shows each point as soon as
 * the point is measured, in the order of the plan. Only report.c and its test use the table;
 * ddp_terminal_entry is for every command.
 *
 * Above the columns that vary, one line has everything that is constant. After the rows, one line
 * has the best figure, one says how much was verified, and one follows for each thing that needs
 * attention. All functions append to `out` what the terminal is to receive. */
#ifndef DDP_REPORT_TERMINAL_TABLE_H
#define DDP_REPORT_TERMINAL_TABLE_H

#include <stdio.h>

#include "base/terminal.h"
#include "record/record.h"
#include "record/verdict_record.h"
#include "report/columns.h"
#include "report/screen.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_TERMINAL_COLUMNS 32 /* Most columns of a table. */

/* Which table the last printed row belongs to. */
enum ddp_terminal_section { DDP_SECTION_NONE, DDP_SECTION_POINTS, DDP_SECTION_TRAIN };

/* Initialise it with ddp_terminal_table_init. */
struct ddp_terminal_table {
    bool legend;                  /* Say what the columns mean. */
    struct ddp_terminal terminal; /* Read again before each piece. */
    struct ddp_screen screen;
    int finished; /* Points of the record whose rows do not change any more. */
    /* The table of the last finished row. kind: of its points. */
    enum ddp_terminal_section section;
    enum ddp_point_kind kind;
    char task[512]; /* The head of the last training run. */
};

void ddp_terminal_table_init(struct ddp_terminal_table *t, bool legend);
void ddp_terminal_table_release(struct ddp_terminal_table *t);
/* terminal: the facts of this moment, because the size may change. */
void ddp_terminal_table_begin(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out);
/* The newest point of the record is shown. */
void ddp_terminal_table_point(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out);
/* The epoch is shown. run: index of the training run. */
void ddp_terminal_table_epoch(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, int run, int index,
                              struct ddp_strbuf *out);
void ddp_terminal_table_end(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                            const struct ddp_record *r, struct ddp_strbuf *out);
/* Erases the rows that may change, because another text is about to appear. The next point shows
 * them again. */
void ddp_terminal_table_pause(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              struct ddp_strbuf *out);

/* The following functions are parts of the table. Each adds whole lines of at most `width` columns.
 */
/* Adds a text in a style (NULL: none), broken at spaces. */
void ddp_terminal_line(struct ddp_strbuf *out, int width, const char *style, const char *fmt, ...)
    DDP_PRINTF(4, 5);
/* Prints an entry of a list with one call, because several ranks may write to the same file: the
 * head, the mark of at most four columns, and the text from `column` on. On a terminal the mark has
 * the style, and the text is broken at spaces. */
void ddp_terminal_entry(FILE *out, const char *head, const char *mark, const char *style,
                        int column, const char *text);
/* Adds the head of a training run, and a row of it. *task: struct ddp_terminal_table. */
void ddp_terminal_train_head(const struct ddp_train_run *run, int width, char task[512],
                             struct ddp_strbuf *out);
void ddp_terminal_train_row(const struct ddp_train_run *run, int index, int width,
                            struct ddp_strbuf *out);
/* Adds the comparison of strategies, or the result of a single training run. */
void ddp_terminal_train_end(const struct ddp_record *r, int width, struct ddp_strbuf *out);
void ddp_terminal_verdict(const struct ddp_verdict_record *v, int width, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
