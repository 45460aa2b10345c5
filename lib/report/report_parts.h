/* Parts of reports that several reporters use, for example cells of tables, the comparison of
 * strategies (record/strategy_table.h), and verdicts. A comment in a report is a line that begins
 * with '#'. */
#ifndef DDP_REPORT_REPORT_PARTS_H
#define DDP_REPORT_REPORT_PARTS_H

#include "record/verdict_record.h"
#include "report/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Escape codes for the style of the text that follows, until DDP_PLAIN. report.c removes them where
 * colour is not allowed. Code that writes without report.c uses them only if struct ddp_terminal
 * allows colour. */
#define DDP_DIM    "\033[2m"
#define DDP_BOLD   "\033[1m"
#define DDP_RED    "\033[31m" /* bad */
#define DDP_YELLOW "\033[33m" /* doubtful */
#define DDP_GREEN  "\033[32m" /* good */
#define DDP_PLAIN  "\033[0m"
/* Adds a comment with the label of the record, or nothing if it has none. */
void ddp_comment_label(const struct ddp_record *r, struct ddp_strbuf *out);
/* For formats of other programs, such as nccl-tests. ddp_comment_epoch adds a comment about an
 * epoch. If the run is not complete, ddp_comment_cut_off adds a comment with the reason. */
void ddp_comment_epoch(const struct ddp_record *r, int run, int index, struct ddp_strbuf *out);
void ddp_comment_cut_off(const struct ddp_record *r, struct ddp_strbuf *out);
/* Adds a comment with the number of doubtful points and their codes, or nothing if there are none.
 */
void ddp_comment_quality(const struct ddp_record *r, struct ddp_strbuf *out);
/* Adds a comment with the codes of a point, or nothing if it has none. */
void ddp_comment_point_quality(const struct ddp_point *p, struct ddp_strbuf *out);
/* Adds a comment with the algorithm of the point `p`, unless the point `before` of the previous row
 * has the same algorithm and backend. `before` is NULL for the first row of a table. */
void ddp_comment_algorithm(const struct ddp_point *before, const struct ddp_point *p,
                           struct ddp_strbuf *out);
/* The matrix of a record (record/matrix_record.h) has the bandwidth and latency between ends. An
 * end is a rank or a host. This function writes the name of an end, for example "rank 3 (host b)"
 * or "host b". */
void ddp_matrix_end_name(const struct ddp_record *r, int end, char *out, size_t out_bytes);
/* Writes a sentence without a full stop. The sentence has the medians over all directions from one
 * end to another, and names the slowest direction. Returns false if nothing was measured or memory
 * runs out. */
bool ddp_matrix_sentence(const struct ddp_record *r, char *out, size_t out_bytes);
/* Adds the matrix of a record, and sentences about the median, the slowest and the fastest
 * direction. If `width` is 0, the output is not a terminal, and each measured direction is a line.
 * Otherwise the matrix is a heat map for a terminal of `width` columns. Adds nothing if the record
 * has no matrix. */
void ddp_table_matrix(const struct ddp_record *r, int width, struct ddp_strbuf *out);
/* Writes the i-th line about the health of the hosts: the verdict with its reason, then the
 * findings, then the facts in which hosts differ. Returns false past the last line. */
bool ddp_health_line(const struct ddp_record *r, int i, char *out, size_t out_bytes);
/* Adds lines about the smallest slow-downs that would have been found, and the lines of
 * ddp_health_line. `width` is 0 if the output is not a terminal. Adds nothing if the record has no
 * verdict about the health. */
void ddp_table_health(const struct ddp_record *r, int width, struct ddp_strbuf *out);
#define DDP_PAYS_CELL 64 /* Bytes of a cell of the table of `ddpbench pays`. */
/* Explains the column `below Gbit/s` of this table. */
#define DDP_PAYS_NOTE                                                                              \
    "The column `below Gbit/s` is the link speed below which a method pays: `all` if it pays at "  \
    "all speeds, `none` if at no speed, and `-` if it does not send less than bf16."
/* Writes the cell of a column for a method, and sets *head to the head of the column. The first
 * column has the name of the method. Returns false past the last column. */
bool ddp_pays_cell(const struct ddp_pays_method *m, size_t column, const char **head,
                   char out[DDP_PAYS_CELL]);
/* ddp_pays_link_name writes the speed and the latency of a link, and needs DDP_PAYS_CELL bytes.
 * ddp_pays_training writes the settings of the training, and needs 160 bytes. */
void ddp_pays_link_name(const struct ddp_pays_link *link, char *out, size_t out_bytes);
void ddp_pays_training(const struct ddp_pays_record *p, char *out, size_t out_bytes);
/* Adds the answer of `ddpbench pays`. If there are few links, each link has a table of the methods.
 * Otherwise one table has all methods and links. A sentence follows for each link. with_legend:
 * also explain the columns if each link has a table. `width` is 0 if the output is not a terminal.
 * Adds nothing if there is no answer. */
void ddp_table_pays(const struct ddp_pays_record *p, bool with_legend, int width,
                    struct ddp_strbuf *out);
/* Adds a sentence and a table for each link. The tables are folded if there are many links. Adds
 * nothing if there is no answer. */
void ddp_markdown_pays(const struct ddp_pays_record *p, struct ddp_strbuf *out);
/* Adds lines about the build, the ranks, the hosts and the timer. */
void ddp_table_facts(const struct ddp_record *r, struct ddp_strbuf *out);
/* Adds untrusted text. Control characters become '?'. */
void ddp_table_text(struct ddp_strbuf *out, const char *text);
/* Like ddp_table_text, but writes the text `by[i]` instead of the character `special[i]`. */
void ddp_escaped_text(struct ddp_strbuf *out, const char *text, const char *special,
                      const char *const *by);
/* Adds a blank and a number in `width` characters, or '-' if the number is not finite. The number
 * has at least 3 significant digits. */
void ddp_table_cell(struct ddp_strbuf *out, int width, double value);
/* Adds a blank and a number with `digits` decimals in `width` characters, or '-' if the number is
 * not finite. */
void ddp_table_fixed(struct ddp_strbuf *out, int width, int digits, double value);
/* Adds a blank and a count in `width` characters, or '-' if the count is negative. */
void ddp_table_count(struct ddp_strbuf *out, int width, int64_t value);
/* Adds the distance from the median to the farther end of its 95 % interval, in percent of the
 * median. */
void ddp_table_interval(struct ddp_strbuf *out, const struct ddp_summary *t);
/* Writes the number of ranks, for example "8", or "4x2" for 4 groups of 2 ranks. If
 * spec->group_list names the ranks of each group, writes its first 23 characters. `out` has at
 * least 24 bytes. */
void ddp_table_ranks(const struct ddp_point_spec *spec, char *out);
/* Adds the columns of a row from `size` to `memory`. */
void ddp_table_spec(const struct ddp_point *p, struct ddp_strbuf *out);
/* Adds the last columns of a row: the number of wrong elements (red if there are any), the time of
 * the ping-pong after the point, and the quality codes ("-" if there are none). */
void ddp_table_tail(const struct ddp_point *p, struct ddp_strbuf *out);

/* Add the comparison of strategies, or nothing if there is nothing to compare. If memory runs out,
 * these functions mark *out as failed. with_legend: also explain the columns. */
void ddp_table_strategies(const struct ddp_record *r, bool with_legend, struct ddp_strbuf *out);
void ddp_markdown_strategies(const struct ddp_record *r, struct ddp_strbuf *out);

/* Adds a head, a row per cell and the outcome of a verdict. A self-test has the results of its
 * gates instead of cells, and `compare --across` has a row per ratio. */
void ddp_table_verdict(const struct ddp_verdict_record *v, struct ddp_strbuf *out);
/* Add the documents of `compare --across`, their differences and a row per ratio. */
void ddp_table_across(const struct ddp_across *across, struct ddp_strbuf *out);
void ddp_markdown_across(const struct ddp_across *across, struct ddp_strbuf *out);
/* Fills the i-th row of a verdict. The rows of v->cells come first, and `state` becomes the state
 * of the cell, for example "slower". The rows of v->unjudged follow. For these rows, the figures in
 * *cell are NaN, and `state` says what was not judged, for example "not judged: cell of base".
 * Returns false past the last row. */
bool ddp_verdict_row(const struct ddp_verdict_record *v, size_t i, struct ddp_verdict_cell *cell,
                     char state[64]);
/* Writes, for example, "1.093 (one-sided bounds 1.071 and inf)", or that the cell was not measured
 * on both sides. */
void ddp_verdict_ratio_text(const struct ddp_cell *cell, char *out, size_t bytes);
/* Adds untrusted text as a code span, or '-' if the text is empty. Links, images, mentions and HTML
 * have no effect in a code span. '|' is escaped, so the code span can stand in a table cell. '<'
 * becomes '?'. */
void ddp_markdown_code(struct ddp_strbuf *out, const char *text);
/* Adds untrusted text as plain words. Characters that end a table cell, or begin links, HTML,
 * mentions or code, become '?'. */
void ddp_markdown_text(struct ddp_strbuf *out, const char *text);
/* Adds a table of the points, and a sentence about the doubtful points if there are any. */
void ddp_markdown_points(const struct ddp_record *r, struct ddp_strbuf *out);
/* Open and close a folded part. A viewer shows its contents only when a reader selects the summary.
 */
void ddp_markdown_fold(struct ddp_strbuf *out, const char *summary);
void ddp_markdown_unfold(struct ddp_strbuf *out);
/* Adds a number as a cell, or '-' if the number is not finite. */
void ddp_markdown_number(struct ddp_strbuf *out, int digits, double value);
/* Adds the outcome and the reason of the verdict, the label of the record, and the cells that
 * changed. The other cells, the commands and the settings are folded. For a self-test, a table has
 * the results of its gates instead of cells. For `compare --across`, a table has all ratios, and
 * nothing is folded. */
void ddp_markdown_verdict(const struct ddp_record *r, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
