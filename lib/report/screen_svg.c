/* Pictures of a terminal as SVG: the table of a record, with its colours. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "report/plot_svg.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

/* Sizes in units of the drawing. A unit is a pixel if the drawing is not scaled. */
#define COLUMNS      80
#define LETTER_WIDTH 7.9 /* A little more than the width of common fonts. */
#define LINE_HEIGHT  18
#define MARGIN       16

/* A terminal on which the whole table fits. */
static const struct ddp_terminal terminal = {
    .columns = COLUMNS, .rows = 10000, .moves = true, .color = true};

/* Adds the command line and the table, with escape codes for colours. */
static void add_screen(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_terminal_table table;
    struct ddp_strbuf command = DDP_STRBUF_INIT;
    for (int i = 0; i < r->argc; i++)
        ddp_strbuf_addf(&command, " %s", r->argv[i]);
    if (command.length > 0)
        ddp_terminal_line(out, COLUMNS, DDP_BOLD, "$%s", command.text);
    ddp_terminal_table_init(&table, false);
    ddp_terminal_table_begin(&table, &terminal, r, out);
    ddp_terminal_table_end(&table, &terminal, r, out);
    ddp_terminal_table_release(&table);
    out->failed |= command.failed;
    ddp_strbuf_release(&command);
}

/* Adds a piece of a line. `style` is the number in an escape code, such as 31 for red. 0 means
 * plain text. */
static void add_piece(const char *text, size_t bytes, int style, struct ddp_strbuf *out)
{
    char part[512];
    if (bytes == 0)
        return;
    if (style > 0)
        ddp_strbuf_addf(out, "<tspan class=\"t%d\">", style);
    while (bytes > 0) {
        size_t n = DDP_MIN(bytes, sizeof part - 1);
        while (n < bytes && n > 1 && ((unsigned char)text[n] & 0xC0) == 0x80)
            n--; /* do not cut a UTF-8 sequence */
        snprintf(part, sizeof part, "%.*s", (int)n, text);
        ddp_markup_text(out, part);
        text += n;
        bytes -= n;
    }
    if (style > 0)
        ddp_strbuf_add(out, "</tspan>");
}

/* Adds a line. *style is the style at the beginning of the line, and is set to the style at its
 * end. */
static void add_line(const char *line, size_t bytes, int y, int *style, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "<text x=\"%d\" y=\"%d\">", MARGIN, y);
    for (size_t i = 0; i < bytes;) {
        size_t n = strcspn(line + i, "\033\n");
        add_piece(line + i, n, *style, out);
        i += n;
        if (i < bytes && sscanf(line + i, "\033[%dm", style) == 1)
            i += strcspn(line + i, "m") + 1;
        else if (i < bytes)
            i++;
    }
    ddp_strbuf_add(out, "</text>\n");
}

void ddp_svg_screen(const struct ddp_record *r, struct ddp_strbuf *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    int style = 0, y = MARGIN;
    add_screen(r, &text);
    if (text.failed) {
        out->failed = true;
        ddp_strbuf_release(&text);
        return;
    }
    const double width = 2 * MARGIN + COLUMNS * LETTER_WIDTH;
    int height = 2 * MARGIN;
    for (const char *c = text.text; *c; c++)
        height += *c == '\n' ? LINE_HEIGHT : 0;
    ddp_strbuf_addf(out,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %d\" "
                    "width=\"%.0f\" height=\"%d\" role=\"img\">\n<title>The table of ",
                    width, height, width, height);
    ddp_markup_text(out, r->command);
    ddp_strbuf_add(out, " on a terminal</title>\n<style>\n");
    ddp_svg_style(out);
    ddp_strbuf_add(out, "text{fill:var(--ink);font:13px ui-monospace,Menlo,Consolas,\"DejaVu Sans "
                        "Mono\",\"Liberation Mono\",monospace}"
                        ".t1{font-weight:700}.t2{fill:var(--ink2)}.t31{fill:var(--bad)}"
                        ".t32{fill:var(--good)}.t33{fill:var(--warn)}\n</style>\n"
                        "<rect width=\"100%\" height=\"100%\" rx=\"6\" "
                        "style=\"fill:var(--surface);stroke:var(--line)\"/>\n"
                        "<g xml:space=\"preserve\">\n");
    for (const char *line = text.text, *end; (end = strchr(line, '\n')); line = end + 1) {
        y += LINE_HEIGHT;
        add_line(line, (size_t)(end - line), y - 4, &style, out);
    }
    ddp_strbuf_add(out, "</g>\n</svg>\n");
    ddp_strbuf_release(&text);
}
