/* Draws plots with characters, for terminals and pipes. Lines and intervals consist of braille
 * dots. If the locale has no UTF-8, they consist of quotes, dots, colons and bars. Each series has
 * a marker of its own, so that a plot without colours can be read. Colours are escape codes, which
 * report.c removes where colours are not allowed. */
#ifndef DDP_REPORT_PLOT_TERMINAL_H
#define DDP_REPORT_PLOT_TERMINAL_H

#include "base/strbuf.h"
#include "report/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Size of a plot in a pipe or a file, in characters. */
#define DDP_PLOT_COLUMNS 80
#define DDP_PLOT_ROWS    24

/* The size of a plot in characters, and whether it may use UTF-8. */
struct ddp_plot_look {
    int columns, rows;
    bool utf8;
};

/* The choices of the option --plot. Choice 0 is no plot. Choice i > 0 is the metric i - 1 of enum
 * ddp_plot_metric. */
extern const char *const ddp_plot_choices[];

/* Adds a plot over size with its title, axes and legend. If look->columns is at least 40, no line
 * has more than look->columns characters. The text has at most look->rows rows, unless fewer than 6
 * of these rows would be left for the values. */
void ddp_plot_text(const struct ddp_plot *plot, const struct ddp_plot_look *look,
                   struct ddp_strbuf *out);
/* Adds a plot of the metric over size for each group of cells (ddp_plot_group_cells), each after a
 * blank line. Adds nothing if no cells of different sizes have the metric. Returns 0 or DDP_ENOMEM.
 */
int ddp_plot_text_over_size(const struct ddp_plot_source *sources, int count,
                            enum ddp_plot_metric metric, const struct ddp_plot_look *look,
                            struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
