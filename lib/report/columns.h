/* The columns of a table that people read on a terminal. If the columns do not fit into a given
 * width, the least important columns are hidden. All widths are numbers of characters on the
 * terminal. */
#ifndef DDP_REPORT_COLUMNS_H
#define DDP_REPORT_COLUMNS_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_column {
    const char *head;
    int width; /* Width of the longest text. After ddp_columns_fit, the head fits, too. */
    /* ddp_columns_fit hides the columns with the largest `drop` first. It never hides a column
     * whose `drop` is 0. */
    int drop;
    bool left; /* The texts are aligned left. */
    bool hidden;
};

/* A text in a column. */
struct ddp_column_text {
    char text[200];
    const char *style; /* An escape code such as DDP_RED, or NULL. */
};

/* Widens each column so that the text of the row fits. */
void ddp_columns_measure(struct ddp_column *columns, const struct ddp_column_text *row, int count);
/* Widens each column so that its head fits. Then hides columns until a line is at most `width`
 * characters long, or until all shown columns have a `drop` of 0. Returns the width that the text
 * of the last shown column may have. */
int ddp_columns_fit(struct ddp_column *columns, int count, int width);
/* Add a line with the heads, or with the texts of a row. */
void ddp_columns_head(const struct ddp_column *columns, int count, struct ddp_strbuf *out);
void ddp_columns_row(const struct ddp_column *columns, const struct ddp_column_text *row, int count,
                     struct ddp_strbuf *out);

/* The following functions write a number with its unit into a cell. Unless a function's comment
 * says otherwise, the number has 2 decimals below 10, 1 decimal below 100 and no decimals above,
 * and NaN and infinities become "-". */

/* Writes a time, for example "2.41 us" or, from one minute on, "3m12s". */
void ddp_column_time(struct ddp_column_text *cell, double ns);
/* Writes a bandwidth, for example "22.6 GB/s" or "850 MB/s". */
void ddp_column_rate(struct ddp_column_text *cell, double GBps);
/* Writes a number of bytes, for example "20.5 KiB". A whole number has no decimals: "64 KiB". A
 * negative number becomes "-". */
void ddp_column_bytes(struct ddp_column_text *cell, double bytes);
/* Writes a fraction as a percentage, with 1 decimal below 10 %: for example 0.018 as "1.8 %" and
 * 0.27 as "27 %". */
void ddp_column_percent(struct ddp_column_text *cell, double part);
/* Writes a factor, for example "1.09". Infinities become "inf" and "-inf". */
void ddp_column_factor(struct ddp_column_text *cell, double factor);

#ifdef __cplusplus
}
#endif
#endif
