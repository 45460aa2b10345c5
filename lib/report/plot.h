/* The data of plots: series of values from records. plot_svg.h draws a plot as SVG, and
 * plot_terminal.h draws a plot with characters.
 *
 * A *source* is a record with a name, for example a stored document. A *cell* is a point of a
 * source. The cells of all sources are divided into *groups*, and a plot of cells shows one group.
 * All cells of a group have the same collective. Cells that differ only in the setting on the x
 * axis, for example in size, form a series. In a *plot of rows*, each value has a row of its own
 * with a label, and only the x axis has a scale. */
#ifndef DDP_REPORT_PLOT_H
#define DDP_REPORT_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record/record.h"
#include "record/result_file.h"
#include "record/strategy_table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Largest number of series in a group of cells. A plot of the group may have more series, because
 * bounds and break-even densities are series, too. */
#define DDP_PLOT_SERIES_MAX 8

/* The quantity that an axis shows. The quantity decides how values are written. */
enum ddp_quantity {
    DDP_QUANTITY_SIZE,     /* bytes in powers of 1024: "64 KiB" */
    DDP_QUANTITY_TRAFFIC,  /* bytes in powers of 1000: "64 MB" */
    DDP_QUANTITY_NS,       /* ns: "2.41 us" */
    DDP_QUANTITY_SECONDS,  /* seconds: "12.5 s" */
    DDP_QUANTITY_GBPS,     /* GB/s: "22.6" */
    DDP_QUANTITY_NUMBER,   /* ratios: "1.25" */
    DDP_QUANTITY_COUNT,    /* whole numbers: "1024" */
    DDP_QUANTITY_FRACTION, /* a fraction, as a percentage: "1.25 %" */
    DDP_QUANTITY_ROW       /* the index of a row, which has a label (struct ddp_plot) */
};

struct ddp_plot_axis {
    enum ddp_quantity quantity;
    bool log;
    char label[64]; /* For example "bus bandwidth (GB/s)". */
};

struct ddp_plot_value {
    double x, y;
    double low, high; /* Ends of the interval of y, or of x in a plot of rows. NaN: unknown. */
    bool doubtful;    /* The point has quality codes. */
};

struct ddp_plot_series {
    char name[160];
    int color;                     /* Number of the colour, from 0. -1: neutral, for a reference. */
    int shape;                     /* Index of marker and line style, from 0. */
    bool line;                     /* A thin line without markers, as for a bound. */
    bool cross;                    /* Crosses without a line, as for a break-even density. */
    struct ddp_plot_value *values; /* [count]. A line joins the values in this order. */
    size_t count, room;            /* room: number of elements for which `values` has memory. */
};

/* A straight line across the plot at a value of one axis. */
struct ddp_plot_mark {
    bool on_x; /* True: a vertical line at x. False: a horizontal line at y. */
    double at;
    char label[64];
};
#define DDP_PLOT_MARKS_MAX 8

struct ddp_plot {
    char title[160];
    char name[64];  /* File name without ".svg". */
    char note[320]; /* Settings that all values have in common, or how to read the plot. */
    struct ddp_plot_axis x, y;
    struct ddp_plot_series *series; /* [count] */
    int count, room;
    struct ddp_plot_mark marks[DDP_PLOT_MARKS_MAX];
    int mark_count;
    bool stems; /* In a plot of rows, a line leads from the left edge to each value. */
    /* [row_count]: labels of the rows. The member y of a value is the index of the value's row.
     * NULL: this is not a plot of rows. */
    char (*rows)[200];
    size_t row_count;
};

/* Releases all members. A zeroed struct is an empty plot. */
void ddp_plot_release(struct ddp_plot *plot);
/* Sets the title, and derives the file name from it. A title is, for example, "allreduce, 2 ranks:
 * time over size". */
void ddp_plot_set_title(struct ddp_plot *plot, const char *title);
/* Appends an empty series and returns it, or NULL if there is no memory. The pointer is valid until
 * the next call. */
struct ddp_plot_series *ddp_plot_add_series(struct ddp_plot *plot, const char *name, int color,
                                            int shape, struct ddp_err *err);
/* Appends a value to the last series. Ignores a value that the axes cannot show: one that is not
 * finite or, on a logarithmic axis, not positive. If only an end of the interval cannot be shown,
 * appends the value without its interval. Returns 0 or DDP_ENOMEM. */
int ddp_plot_add_value(struct ddp_plot *plot, struct ddp_plot_value value,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a row to a plot of rows, and appends the value in this row to the last series. Does
 * nothing if the x axis cannot show the value. Returns 0 or DDP_ENOMEM. */
int ddp_plot_add_row(struct ddp_plot *plot, const char *label, struct ddp_plot_value value,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plot_add_mark(struct ddp_plot *plot, bool on_x, double at, const char *label);
/* Returns the number of values in the series for which neither `line` nor `cross` is set. */
size_t ddp_plot_values(const struct ddp_plot *plot);
bool ddp_plot_has_doubtful(const struct ddp_plot *plot);
/* Returns true if the plot shows more than a table: it has values at different x, or it is a plot
 * of rows with values. */
bool ddp_plot_is_useful(const struct ddp_plot *plot);
/* Removes series without values. */
void ddp_plot_finish(struct ddp_plot *plot);

/* The range of an axis, and its ticks in ascending order. */
#define DDP_PLOT_TICKS_MAX 12
struct ddp_plot_scale {
    double low, high;
    bool log;
    int count;
    double ticks[DDP_PLOT_TICKS_MAX];
};
/* Computes the scale of the x axis or, if of_x is false, of the y axis, with at most `most` ticks.
 */
void ddp_plot_scale(const struct ddp_plot *plot, bool of_x, int most, struct ddp_plot_scale *out);
/* Returns the position of a value on the scale: 0 at the low end, 1 at the high end. */
double ddp_plot_position(const struct ddp_plot_scale *scale, double value);
/* Writes a value in the form that enum ddp_quantity shows, usually with three significant digits.
 * Writes "-" if the value is not finite. out_bytes >= 24. */
void ddp_quantity_text(enum ddp_quantity quantity, double value, char *out, size_t out_bytes);
/* Like ddp_quantity_text, but without zeros at the end, for the label of a tick: "1.5". */
void ddp_quantity_tick(enum ddp_quantity quantity, double value, char *out, size_t out_bytes);

/* A record whose points and training runs are plotted. */
struct ddp_plot_source {
    const char *name;
    const struct ddp_record *record;
    /* For a stored document (record/stored.h), `result` has the points with their repetitions
     * merged, and merged[i] is the index in `result` of point i of the record. If both are NULL,
     * every point is a cell of its own. */
    const struct ddp_result *result;
    const size_t *merged;
};

/* A point of a source, with its repetitions merged. */
struct ddp_plot_cell {
    int source;                            /* Index of the source. */
    const struct ddp_point *point;         /* The first repetition. */
    const struct ddp_result_point *merged; /* NULL if the source has no result. */
    double median_ns, ci95_lo_ns, ci95_hi_ns;
    unsigned quality; /* Codes of all repetitions. */
    /* A repetition delivered wrong data or has no valid iteration. Plots leave the cell out. */
    bool wrong;
};
struct ddp_plot_cells {
    struct ddp_plot_cell *items; /* [count], released with free(). */
    size_t count;
};
/* Collects the cells of all sources. Returns 0 or DDP_ENOMEM. */
int ddp_plot_collect(const struct ddp_plot_source *sources, int count, struct ddp_plot_cells *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the bus bandwidth that a cell has if an operation takes `ns`. NaN: the cell has no bus
 * bandwidth. */
double ddp_plot_busbw(const struct ddp_plot_cell *cell, double ns);

/* The setting on the x axis. */
enum ddp_plot_over { DDP_PLOT_OVER_SIZE, DDP_PLOT_OVER_RANKS, DDP_PLOT_OVER_DENSITY };

/* Cells that are plotted together. */
struct ddp_plot_group {
    enum ddp_plot_over over;
    char title[96]; /* For example "allreduce, 2 ranks". */
    char note[256]; /* The settings that all cells have in common. */
    const struct ddp_plot_source *sources;
    /* [count], sorted by series, then by the setting on the x axis. */
    const struct ddp_plot_cell **cells;
    size_t count;
    int *series;          /* [count]: the index of each cell's series. */
    char (*names)[160];   /* [series_count]: "" if there is only one series. */
    int *colors, *shapes; /* [series_count] */
    int series_count;
    size_t positions; /* Number of different values of the setting `over`. */
};
struct ddp_plot_groups {
    struct ddp_plot_group *items; /* [count] */
    size_t count;
};
/* Divides cells into groups of at most DDP_PLOT_SERIES_MAX series. DDP_PLOT_OVER_RANKS takes only
 * series that were measured with several numbers of ranks, and at most six of their sizes.
 * DDP_PLOT_OVER_DENSITY takes only exchanges whose compressor has a density or a threshold, and
 * that were compared with dense f32. Sources and cells must live as long as the groups. Returns 0
 * or DDP_ENOMEM. */
int ddp_plot_group_cells(const struct ddp_plot_source *sources, const struct ddp_plot_cells *cells,
                         enum ddp_plot_over over, struct ddp_plot_groups *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plot_groups_release(struct ddp_plot_groups *groups);
/* Returns the value of a cell on the x axis: its bytes, its ranks, or its density. */
double ddp_plot_over_value(const struct ddp_plot_cell *cell, enum ddp_plot_over over);

enum ddp_plot_metric {
    DDP_PLOT_BUSBW,   /* Also shows the bounds if there are at most three series. */
    DDP_PLOT_TIME,    /* Also shows the bounds if there are at most three series. */
    DDP_PLOT_SPEEDUP, /* Time of dense f32 / time of the cell. Above 1 the cell is faster. */
    DDP_PLOT_RATIO    /* Time divided by the time of the same cell in the first source. */
};
/* Makes a plot of the metric for a group. The plot has no series if no cell has the metric. The
 * caller releases *out. Returns 0 or DDP_ENOMEM. */
int ddp_plot_cells_over(const struct ddp_plot_group *group, enum ddp_plot_metric metric,
                        struct ddp_plot *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the break-even density of a series against dense f32. If this density was measured, sets
 * *measured to true. Otherwise sets *measured to false. Each cell then has its own estimate, and
 * the function returns that of the cell whose density is closest to its estimate. NaN: unknown. */
double ddp_plot_break_even(const struct ddp_plot_group *group, int series, bool *measured);

/* The strategies of the training runs of all sources. */
struct ddp_plot_strategy {
    int source;
    char name[256];
    const struct ddp_strategy_row *row;
};
struct ddp_plot_strategies {
    struct ddp_plot_strategy *items; /* [count] */
    size_t count;
    struct ddp_strategy_row **rows; /* [source_count]: the rows of each source. */
    int source_count;
};
int ddp_plot_collect_strategies(const struct ddp_plot_source *sources, int count,
                                struct ddp_plot_strategies *out,
                                struct ddp_err *err) DDP_MUST_CHECK;
void ddp_plot_strategies_release(struct ddp_plot_strategies *strategies);
/* Makes a plot of the accuracy over the seconds of training or, if over_bytes is true, over the
 * bytes that a rank has sent. A value is the mean accuracy of a strategy's runs after an epoch. The
 * interval of the value is the range of the accuracies of these runs. The plot shows only
 * strategies that train the same model with the same data as the run `model`. Returns 0 or
 * DDP_ENOMEM. */
int ddp_plot_accuracy(const struct ddp_plot_source *sources,
                      const struct ddp_plot_strategies *strategies,
                      const struct ddp_train_run *model, bool over_bytes, struct ddp_plot *out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether two runs train the same model with the same data. */
bool ddp_plot_same_model(const struct ddp_train_run *a, const struct ddp_train_run *b);

#ifdef __cplusplus
}
#endif
#endif
