/* The table of points and epochs on a terminal. It fits the width of the terminal and shows each
 * point as soon as the point is measured. Rows are in the order of the plan if the terminal obeys
 * escape codes, and otherwise in the order of measurement. report.c and screen_svg.c use the table.
 * Commands also print other lists with ddp_terminal_entry.
 *
 * A line above the columns has the settings that are equal in all rows, and only settings that vary
 * have columns. Below the rows, one line has the best bus bandwidth, one line says how much was
 * verified, and one line follows for each thing that needs attention. The functions append the text
 * for the terminal to `out`, except that ddp_terminal_entry prints the text. */
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

#define DDP_TERMINAL_COLUMNS 32 /* Largest number of columns of a table. */

/* The kinds of tables. NONE: the next row begins a table. */
enum ddp_terminal_section { DDP_SECTION_NONE, DDP_SECTION_POINTS, DDP_SECTION_TRAIN };

/* Initialise it with ddp_terminal_table_init. */
struct ddp_terminal_table {
    bool legend;                  /* Explain the columns. */
    struct ddp_terminal terminal; /* The size and abilities of the terminal in the last call. */
    struct ddp_screen screen;
    int finished; /* Number of points whose rows do not change any more. */
    /* The table to which the last finished row belongs, and the kind of its points. */
    enum ddp_terminal_section section;
    enum ddp_point_kind kind;
    char task[512]; /* The first line of the head of the last training run. */
};

void ddp_terminal_table_init(struct ddp_terminal_table *t, bool legend);
void ddp_terminal_table_release(struct ddp_terminal_table *t);
/* Adds the lines above the table, and the points that the record already has. `terminal` has the
 * facts at the time of the call, because the size of the terminal may change. */
void ddp_terminal_table_begin(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out);
/* Shows the newest point of the record. */
void ddp_terminal_table_point(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, struct ddp_strbuf *out);
/* Shows epoch `index` of the training run with index `run`. */
void ddp_terminal_table_epoch(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              const struct ddp_record *r, int run, int index,
                              struct ddp_strbuf *out);
void ddp_terminal_table_end(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                            const struct ddp_record *r, struct ddp_strbuf *out);
/* Erases the rows that may still change, so that another text can be printed. The next point shows
 * the rows again. */
void ddp_terminal_table_pause(struct ddp_terminal_table *t, const struct ddp_terminal *terminal,
                              struct ddp_strbuf *out);

/* Adds a text in a style (NULL: none) and breaks the text at spaces, unless `width` is 0. */
void ddp_terminal_line(struct ddp_strbuf *out, int width, const char *style, const char *fmt, ...)
    DDP_PRINTF(4, 5);
/* Prints an entry of a list: `head`, `mark` (at most four characters), and `text`, which begins at
 * `column` if there is room for it. On a terminal, `mark` has the style `style`, and `text` is
 * broken at spaces. The whole entry is one call of fprintf, because several ranks may write to the
 * same file. */
void ddp_terminal_entry(FILE *out, const char *head, const char *mark, const char *style,
                        int column, const char *text);
/* The following functions make parts of the table. Each adds whole lines of at most `width`
 * characters. Only commands and names of documents may be longer, because they are not broken. */
/* Add the head of a training run, and the row of its epoch `index`. A baseline run has no head.
 * `task` is the member of struct ddp_terminal_table. If `task` already has the first line of the
 * head, this line is left out. Otherwise the line is stored in `task`. */
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
