/* A screen is text on a terminal whose last lines may still change. To change lines,
 * ddp_screen_draw moves the cursor up, erases everything from the first line that differs, and
 * writes the new lines. Lines that have left the screen are never written again. Between two calls
 * the cursor is at the beginning of the line below the text. A program that ends at any time
 * therefore leaves the terminal usable. */
#ifndef DDP_REPORT_SCREEN_H
#define DDP_REPORT_SCREEN_H

#include "base/strbuf.h"
#include "base/terminal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Initialise it with zeros, and release it with ddp_screen_release. */
struct ddp_screen {
    struct ddp_strbuf shown; /* The lines on the terminal that may still change. */
    int columns;             /* The width of the terminal when `shown` was written. */
};

/* Replaces the lines that may still change by new lines: first the lines of `finished`, which do
 * not change any more, and then the lines of `open`, which may still change. Appends the text and
 * the necessary escape codes to `out`. Every line ends with a newline. `finished` and `open` may be
 * NULL. If the old lines do not fit on the screen, or if the terminal has become so narrow that one
 * of them is broken, the old lines stay on the screen above the new ones. */
void ddp_screen_draw(struct ddp_screen *screen, const struct ddp_terminal *terminal,
                     const char *finished, const char *open, struct ddp_strbuf *out);
/* Returns the number of rows that a text takes on a terminal with `columns` columns. */
int ddp_screen_rows(const char *text, size_t bytes, int columns);
void ddp_screen_release(struct ddp_screen *screen);

#ifdef __cplusplus
}
#endif
#endif
