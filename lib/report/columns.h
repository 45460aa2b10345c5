/* Columns of a table for people, which fits a given width: if the columns do not fit, the least
 * important ones are left out. */
#ifndef DDP_REPORT_COLUMNS_H
#define DDP_REPORT_COLUMNS_H

#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_column {
    const char *head;
    int width; /* Columns of the longest text. ddp_columns_fit counts the head as well. */
    int drop;  /* Columns with the largest number are left out first. 0: never left out. */
    bool left; /* The texts are aligned left. */
    bool hidden;
};

/* A text in a column. */
struct ddp_column_text {
    char text[200];
    const char *style; /* An escape code such as DDP_RED, or NULL. */
};

/* Widens each column to the text of a row. */
void ddp_columns_measure(struct ddp_column *columns, const struct ddp_column_text *row, int count);
/* Hides columns until a line is at most `width` columns long. Returns the columns that are left in
 * a line for the text of the last shown column. */
int ddp_columns_fit(struct ddp_column *columns, int count, int width);
/* Add a line with the heads, or with the texts of a row. */
void ddp_columns_head(const struct ddp_column *columns, int count, struct ddp_strbuf *out);
void ddp_columns_row(const struct ddp_column *columns, const struct ddp_column_text *row, int count,
                     struct ddp_strbuf *out);

/* Writes a time with 3 significant digits, for example "2.41 us" or "3m12s". "-" for NaN. */
void ddp_column_time(struct ddp_column_text *cell, double ns);
/* Writes a bandwidth with 3 significant digits, for example "22.6 GB/s" or "850 MB/s". */
void ddp_column_rate(struct ddp_column_text *cell, double GBps);
/* Writes a number of bytes with 3 significant digits, for example "20.5 KiB". "-" for NaN. */
void ddp_column_bytes(struct ddp_column_text *cell, double bytes);
/* Writes a part as a percentage, for example "1.8 %" or "27 %". */
void ddp_column_percent(struct ddp_column_text *cell, double part);
/* Writes a factor with 3 significant digits, for example "1.09". */
void ddp_column_factor(struct ddp_column_text *cell, double factor);

#ifdef __cplusplus
}
#endif
#endif
