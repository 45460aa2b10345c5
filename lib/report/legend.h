/* The meanings of the columns of the tables, for `ddpbench explain columns` and --verbose. */
#ifndef DDP_REPORT_LEGEND_H
#define DDP_REPORT_LEGEND_H

#include "record/record.h"
#include "report/columns.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tables. DDP_LEGEND_POINTS: the columns that the tables of all kinds of points share.
 * DDP_LEGEND_VERDICT: the table of gate and compare. */
enum ddp_legend {
    DDP_LEGEND_POINTS,
    DDP_LEGEND_DENSE,
    DDP_LEGEND_REDUCED,
    DDP_LEGEND_OVERLAPPED,
    DDP_LEGEND_TRAIN,
    DDP_LEGEND_STRATEGIES,
    DDP_LEGEND_PAYS,
    DDP_LEGEND_VERDICT,
    DDP_LEGEND_COUNT
};
/* Width of the lines if the output is not a terminal. */
#define DDP_LEGEND_COLUMNS 100

/* Returns the table that shows points of this kind. */
enum ddp_legend ddp_legend_of(enum ddp_point_kind kind);
/* Returns the title of a table, for example "Epochs of training runs". */
const char *ddp_legend_title(enum ddp_legend table);
/* Adds the names and the meanings of a table's columns. Each line begins with `before` and is at
 * most `width` characters long. If `columns` [count] is not NULL, adds only the columns that this
 * array contains and does not hide. */
void ddp_legend_add(enum ddp_legend table, const struct ddp_column *columns, int count,
                    const char *before, int width, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
