/* Draws plots as SVG.
 *
 * A drawing inside a page needs the style sheet (ddp_svg_style) and the markers (ddp_svg_markers)
 * in the same page. A drawing in a file of its own contains both, and also a title, a legend and a
 * background. All drawings follow the viewer's choice of light or dark colours. */
#ifndef DDP_REPORT_PLOT_SVG_H
#define DDP_REPORT_PLOT_SVG_H

#include "base/strbuf.h"
#include "report/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the style sheet of drawings: CSS variables for the colours of light and dark screens, and
 * the rules that use them. */
void ddp_svg_style(struct ddp_strbuf *out);
/* Adds the definitions of the markers. */
void ddp_svg_markers(struct ddp_strbuf *out);
/* Adds a drawing as an element of a page. `label` describes the drawing for screen readers. */
void ddp_svg_inline(const struct ddp_plot *plot, const char *label, struct ddp_strbuf *out);
/* Adds a whole SVG file with a drawing. */
void ddp_svg_file(const struct ddp_plot *plot, struct ddp_strbuf *out);
/* Adds a whole SVG file with the table of a record with points. The table looks as on a terminal of
 * 80 columns (screen_svg.c). */
void ddp_svg_screen(const struct ddp_record *r, struct ddp_strbuf *out);
/* Adds the symbol of a series for a legend: a piece of its line, and its marker. */
void ddp_svg_key(const struct ddp_plot_series *series, struct ddp_strbuf *out);
/* Adds text in which the characters that are special in SVG and HTML are escaped. Control
 * characters become '?'. */
void ddp_markup_text(struct ddp_strbuf *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
