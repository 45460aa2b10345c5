/* Text at the end of a terminal, of which the last lines may still change. A change moves the
 * cursor up, erases the lines from the first one that differs, and writes them again. Lines that
 * have left the screen are never written again. The cursor rests at the begin of the line below the
 * text, so a program that ends at any time leaves the terminal usable. */
#ifndef DDP_REPORT_SCREEN_H
#define DDP_REPORT_SCREEN_H

#include "base/strbuf.h"
#include "base/terminal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Initialise it with 0, and release it with ddp_screen_release. */
struct ddp_screen {
    struct ddp_strbuf shown; /* The lines on the terminal that may still change. */
    int columns;             /* The width of the terminal when they were written. */
};

/* Appends to `out` what turns the lines that may still change into `finished`, lines that do not
 * change any more, and `open`, lines that may. Every line ends with a newline. A text may be
 * NULL. Lines that do not fit on the screen, or that a new width of the terminal has broken, stay
 * as they are, and the new ones follow them. */
void ddp_screen_draw(struct ddp_screen *screen, const struct ddp_terminal *terminal,
                     const char *finished, const char *open, struct ddp_strbuf *out);
/* Returns the number of rows of the terminal that a text takes. */
int ddp_screen_rows(const char *text, size_t bytes, int columns);
void ddp_screen_release(struct ddp_screen *screen);

#ifdef __cplusplus
}
#endif
#endif
