/* Draws plots as SVG.
 *
 * A drawing inside a page takes its colours from the page's style sheet (page_style.h), and its
 * markers from ddp_svg_markers. A drawing in a file of its own has both inside, with a title and a
 * legend. It has a background, and follows the viewer's choice of light or dark colours. */
#ifndef DDP_REPORT_PLOT_SVG_H
#define DDP_REPORT_PLOT_SVG_H

#include "base/strbuf.h"
#include "report/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the custom properties of the colours, for light and for dark screens, and the rules that
 * drawings need. */
void ddp_svg_style(struct ddp_strbuf *out);
/* Adds the definitions of the markers. */
void ddp_svg_markers(struct ddp_strbuf *out);
/* Adds a drawing as an element of a page. label: its description for people who cannot see it. */
void ddp_svg_inline(const struct ddp_plot *plot, const char *label, struct ddp_strbuf *out);
/* Adds a drawing as a whole file. */
void ddp_svg_file(const struct ddp_plot *plot, struct ddp_strbuf *out);
/* Adds the table of a record with points, as it looks on a terminal of 80 columns, as a whole file
 * (screen_svg.c). */
void ddp_svg_screen(const struct ddp_record *r, struct ddp_strbuf *out);
/* Adds the drawing of a legend's key: a piece of the line and the marker. */
void ddp_svg_key(const struct ddp_plot_series *series, struct ddp_strbuf *out);
/* Adds text in which the characters that are special in SVG and HTML are escaped. Control
 * characters become '?'. */
void ddp_markup_text(struct ddp_strbuf *out, const char *text);

#ifdef __cplusplus
}
#endif
#endif
