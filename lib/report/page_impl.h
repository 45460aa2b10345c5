/* The page being built, and the pieces of HTML that its sections share. Sections add to page->out.
 * If memory runs out, strbufs note it, and other failures are returned. */
#ifndef DDP_REPORT_PAGE_IMPL_H
#define DDP_REPORT_PAGE_IMPL_H

#include "record/across.h"
#include "record/stored.h"
#include "record/strategy_table.h"
#include "report/page.h"
#include "report/plot_svg.h"

/* A plot or a table as a file of its own. */
struct ddp_page_file {
    char name[80]; /* With ".svg". */
    struct ddp_strbuf text;
};

struct ddp_page {
    /* [count] documents and their paths. Documents with points or training runs come first, so that
     * ratios can be taken to the first one. */
    const struct ddp_stored **docs;
    const char **paths;
    int count;
    char (*names)[128];              /* [count]: short names, all different */
    struct ddp_plot_source *sources; /* [count] */
    struct ddp_result *results;      /* [count]: those of docs, side by side */
    struct ddp_plot_cells cells;
    struct ddp_plot_strategies strategies;
    struct ddp_across across; /* Ratios to the first document. Empty with one document. */
    struct ddp_strbuf *out;
    struct ddp_err *err;
    bool keeps_files;            /* Plots and tables are also kept as files. */
    struct ddp_page_file *files; /* [file_count] */
    size_t file_count;
};

/* A column of a table. */
struct ddp_page_column {
    const char *head;
    bool text; /* The cells are words, and not numbers. */
};

/* Adds a heading; level 2 begins a section, which needs an id. */
void ddp_page_heading(struct ddp_page *page, int level, const char *id, const char *text);
/* Adds "<open>text</close>" with escaped text, for example of an element "p". */
void ddp_page_element(struct ddp_page *page, const char *element, const char *text);
/* Open and close a table that scrolls inside the page. label: its name, which is unique. */
void ddp_page_open_table(struct ddp_page *page, const char *label,
                         const struct ddp_page_column *columns, size_t count);
void ddp_page_close_table(struct ddp_page *page);
/* Open and close a row. kind: a class of the style sheet, or "". */
void ddp_page_open_row(struct ddp_page *page, const char *kind);
void ddp_page_close_row(struct ddp_page *page);
/* Add a cell: a number or a quantity as text, or words. */
void ddp_page_cell(struct ddp_page *page, const char *text);
void ddp_page_words(struct ddp_page *page, const char *text);
void ddp_page_quantity(struct ddp_page *page, enum ddp_quantity quantity, double value);
/* Adds "low to high", or "-" if an end is missing. */
void ddp_page_range(struct ddp_page *page, enum ddp_quantity quantity, double low, double high);
/* Writes a link speed below which something pays, for example "12.0 GB/s (96.0 Gbit/s)". */
void ddp_page_link_text(double GBps, char *out, size_t bytes);
/* Adds marks at the speeds of common links to a plot of rows. */
void ddp_page_mark_links(struct ddp_plot *plot);

/* Returns the text of a new file with this name and, if there is one already, a number. NULL: no
 * memory. The pointer is valid until the next call. */
struct ddp_strbuf *ddp_page_keep_file(struct ddp_page *page, const char *name);
/* Opens a figure, adds the plot with its legend, and keeps it as a file if files are kept. The
 * caller adds a table and closes the figure. Returns DDP_ENOMEM. */
int ddp_page_open_figure(struct ddp_page *page, struct ddp_plot *plot) DDP_MUST_CHECK;
void ddp_page_close_figure(struct ddp_page *page);
/* Adds a table with all values of a plot. */
void ddp_page_plot_table(struct ddp_page *page, const struct ddp_plot *plot);
/* Adds a figure with a plot and the table of its values. Adds nothing if the plot is not useful
 * (ddp_plot_is_useful). Releases the plot. */
int ddp_page_figure(struct ddp_page *page, struct ddp_plot *plot) DDP_MUST_CHECK;

/* The sections. Each adds nothing if there is nothing to show. */
int ddp_page_verdicts(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_points(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_compressed(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_training(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_comparison(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_environment(struct ddp_page *page) DDP_MUST_CHECK;
/* Adds the sentences about all documents, each as an element "li" or, in Markdown, after "- ". */
void ddp_page_summary(struct ddp_page *page, bool markdown);
/* Builds the whole page. */
int ddp_page_html(struct ddp_page *page) DDP_MUST_CHECK;
int ddp_page_markdown(struct ddp_page *page) DDP_MUST_CHECK;

#endif
