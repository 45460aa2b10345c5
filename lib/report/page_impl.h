/* A page that is being built, and the pieces of HTML that its sections share. Sections append to
 * page->out. If an append runs out of memory, page->out is marked as failed. Other failures are
 * returned. */
#ifndef DDP_REPORT_PAGE_IMPL_H
#define DDP_REPORT_PAGE_IMPL_H

#include "record/across.h"
#include "record/stored.h"
#include "record/strategy_table.h"
#include "report/page.h"
#include "report/plot_svg.h"

/* An SVG file with a plot, or with a table as a terminal shows it. */
struct ddp_page_file {
    char name[80]; /* The name ends in ".svg". */
    struct ddp_strbuf text;
};

struct ddp_page {
    /* [count] documents and their paths. Documents with points or training runs come first, because
     * ratios refer to the first document. */
    const struct ddp_stored **docs;
    const char **paths;
    int count;
    char (*names)[128];              /* [count]: short names, all different */
    struct ddp_plot_source *sources; /* [count] */
    struct ddp_result *results;      /* [count]: copies of docs[i]->result in one array */
    struct ddp_plot_cells cells;
    struct ddp_plot_strategies strategies;
    struct ddp_across across; /* Ratios to the first document. Empty with one document. */
    struct ddp_strbuf *out;
    struct ddp_err *err;
    bool keeps_files;            /* The plots and pictures are also added to `files`. */
    struct ddp_page_file *files; /* [file_count] */
    size_t file_count;
};

/* A column of a table. */
struct ddp_page_column {
    const char *head;
    bool text; /* The cells are words and not numbers. */
};

/* Adds a heading. A heading of level 2 begins a section and needs an `id`, to which the navigation
 * links. Other headings may have the id NULL. */
void ddp_page_heading(struct ddp_page *page, int level, const char *id, const char *text);
/* Adds an HTML element whose text is escaped. `element` is the name of the element, which may be
 * followed by attributes, for example "p" or "td class=\"t\"". */
void ddp_page_element(struct ddp_page *page, const char *element, const char *text);
/* Open and close a table that scrolls inside the page. `label` is the name of the table for screen
 * readers, which must be unique. */
void ddp_page_open_table(struct ddp_page *page, const char *label,
                         const struct ddp_page_column *columns, size_t count);
void ddp_page_close_table(struct ddp_page *page);
/* Open and close a row. `kind` is a class of the style sheet, such as "q" for a doubtful row. It
 * may be "". */
void ddp_page_open_row(struct ddp_page *page, const char *kind);
void ddp_page_close_row(struct ddp_page *page);
/* Add a cell: a number as text (aligned right), words (aligned left), or a formatted quantity. */
void ddp_page_cell(struct ddp_page *page, const char *text);
void ddp_page_words(struct ddp_page *page, const char *text);
void ddp_page_quantity(struct ddp_page *page, enum ddp_quantity quantity, double value);
/* Adds a cell "low to high", or "-" if one of the two is NaN. */
void ddp_page_range(struct ddp_page *page, enum ddp_quantity quantity, double low, double high);
/* Writes the link speed below which compression pays, for example "12.0 GB/s (96.0 Gbit/s)". Writes
 * "any link" for infinity, "no link" for 0, and "-" for NaN. */
void ddp_page_link_text(double GBps, char *out, size_t bytes);
/* Adds marks at the speeds of common networks to a plot whose x axis is a link speed. */
void ddp_page_mark_links(struct ddp_plot *plot);

/* Adds a file to page->files. The name of the file is NAME.svg or, if this name is taken,
 * NAME-2.svg and so on. Returns the text of the file, which is still empty, or NULL if memory runs
 * out. The pointer is valid until the next call. */
struct ddp_strbuf *ddp_page_keep_file(struct ddp_page *page, const char *name);
/* Opens a figure and adds the plot with its legend. If page->keeps_files is true, also adds the
 * plot to page->files. The caller then adds a table and closes the figure. Returns 0 or DDP_ENOMEM.
 */
int ddp_page_open_figure(struct ddp_page *page, struct ddp_plot *plot) DDP_MUST_CHECK;
void ddp_page_close_figure(struct ddp_page *page);
/* Adds a table with all values of a plot. */
void ddp_page_plot_table(struct ddp_page *page, const struct ddp_plot *plot);
/* Adds a figure with a plot and the table of its values. Adds nothing if the plot is not useful
 * (ddp_plot_is_useful). Always releases the plot. Returns 0 or DDP_ENOMEM. */
int ddp_page_figure(struct ddp_page *page, struct ddp_plot *plot) DDP_MUST_CHECK;

/* The sections. Each adds nothing if there is nothing to show. */
int ddp_page_verdicts(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_points(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_compressed(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_training(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_comparison(struct ddp_page *page) DDP_MUST_CHECK;
void ddp_page_pays(struct ddp_page *page);
int ddp_page_matrix(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_environment(struct ddp_page *page) DDP_MUST_CHECK;
/* Adds the sentences of the summary, each as an element "li" or, in Markdown, after "- ". */
void ddp_page_summary(struct ddp_page *page, bool markdown);
/* Build the whole page. */
int ddp_page_html(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_markdown(struct ddp_page *page) DDP_MUST_CHECK;

#endif
