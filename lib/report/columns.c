#include "report/columns.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "report/report_parts.h"

#define GAP 2 /* Spaces between two columns. */

void ddp_columns_measure(struct ddp_column *columns, const struct ddp_column_text *row, int count)
{
    for (int c = 0; c < count; c++)
        columns[c].width =
            DDP_MAX(columns[c].width, ddp_text_columns(row[c].text, strlen(row[c].text)));
}

/* Returns the width of the shown columns before column `end`, with the gaps between them. */
static int line_width(const struct ddp_column *columns, int end)
{
    int width = 0;
    for (int c = 0; c < end; c++)
        if (!columns[c].hidden)
            width += columns[c].width + (width > 0 ? GAP : 0);
    return width;
}

int ddp_columns_fit(struct ddp_column *columns, int count, int width)
{
    int last = 0;
    for (int c = 0; c < count; c++)
        columns[c].width = DDP_MAX(columns[c].width, (int)strlen(columns[c].head));
    while (line_width(columns, count) > width) {
        int worst = -1;
        for (int c = 0; c < count; c++)
            if (!columns[c].hidden && columns[c].drop > 0 &&
                (worst < 0 || columns[c].drop >= columns[worst].drop))
                worst = c;
        if (worst < 0)
            break;
        columns[worst].hidden = true;
    }
    for (int c = 0; c < count; c++)
        if (!columns[c].hidden)
            last = c;
    return DDP_MAX(columns[last].width, width - line_width(columns, last) - GAP);
}

/* Adds the texts of a line. Spaces are added only before a text, so that no line ends in spaces. */
static void add_line(const struct ddp_column *columns, const struct ddp_column_text *row, int count,
                     struct ddp_strbuf *out)
{
    size_t spaces = 0;
    bool begun = false;
    for (int c = 0; c < count; c++) {
        if (columns[c].hidden)
            continue;
        const size_t bytes = strlen(row[c].text);
        const int free = columns[c].width - ddp_text_columns(row[c].text, bytes);
        const size_t pad = (size_t)DDP_MAX(free, 0);
        spaces += begun ? GAP : 0;
        begun = true;
        if (bytes == 0) {
            spaces += pad;
            continue;
        }
        ddp_strbuf_pad(out, spaces + (columns[c].left ? 0 : pad));
        spaces = columns[c].left ? pad : 0;
        if (row[c].style)
            ddp_strbuf_add(out, row[c].style);
        ddp_strbuf_add_n(out, row[c].text, bytes);
        if (row[c].style)
            ddp_strbuf_add(out, DDP_PLAIN);
    }
}

void ddp_columns_head(const struct ddp_column *columns, int count, struct ddp_strbuf *out)
{
    struct ddp_column_text heads[32] = {{"", NULL}};
    for (int c = 0; c < count; c++)
        snprintf(heads[c].text, sizeof heads[c].text, "%s", columns[c].head);
    ddp_strbuf_add(out, DDP_DIM);
    add_line(columns, heads, count, out);
    ddp_strbuf_add(out, DDP_PLAIN "\n");
}

void ddp_columns_row(const struct ddp_column *columns, const struct ddp_column_text *row, int count,
                     struct ddp_strbuf *out)
{
    add_line(columns, row, count, out);
    ddp_strbuf_add(out, "\n");
}

/* Returns the number of decimals with which a number from 1 to 999 has 3 significant digits. */
static int decimals(double value)
{
    const double size = fabs(value);
    return size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2;
}

void ddp_column_time(struct ddp_column_text *cell, double ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s"};
    double value = ns;
    size_t unit = 0;
    if (!isfinite(ns)) {
        snprintf(cell->text, sizeof cell->text, "-");
        return;
    }
    for (; unit + 1 < DDP_COUNT_OF(units) && fabs(value) >= 999.5; unit++)
        value /= 1000;
    if (unit == 3 && value >= 59.95)
        ddp_format_ns(ns, cell->text, sizeof cell->text);
    else
        snprintf(cell->text, sizeof cell->text, "%.*f %s", decimals(value), value, units[unit]);
}

void ddp_column_rate(struct ddp_column_text *cell, double GBps)
{
    static const char *const units[] = {"kB/s", "MB/s", "GB/s"};
    double value = GBps;
    size_t unit = 2;
    if (!isfinite(GBps)) {
        snprintf(cell->text, sizeof cell->text, "-");
        return;
    }
    for (; unit > 0 && fabs(value) < 0.9995; unit--)
        value *= 1000;
    snprintf(cell->text, sizeof cell->text, "%.*f %s", decimals(value), value, units[unit]);
}

void ddp_column_bytes(struct ddp_column_text *cell, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = bytes;
    size_t unit = 0;
    if (!isfinite(bytes) || bytes < 0) {
        snprintf(cell->text, sizeof cell->text, "-");
        return;
    }
    for (; unit + 1 < DDP_COUNT_OF(units) && value >= 1023.5; unit++)
        value /= 1024;
    const int digits = value == floor(value) ? 0 : decimals(value);
    snprintf(cell->text, sizeof cell->text, "%.*f %s", digits, value, units[unit]);
}

void ddp_column_percent(struct ddp_column_text *cell, double part)
{
    if (!isfinite(part))
        snprintf(cell->text, sizeof cell->text, "-");
    else
        snprintf(cell->text, sizeof cell->text, "%.*f %%", fabs(part) < 0.0995 ? 1 : 0, part * 100);
}

void ddp_column_factor(struct ddp_column_text *cell, double factor)
{
    if (isnan(factor))
        snprintf(cell->text, sizeof cell->text, "-");
    else if (isinf(factor))
        snprintf(cell->text, sizeof cell->text, "%s", factor > 0 ? "inf" : "-inf");
    else
        snprintf(cell->text, sizeof cell->text, "%.*f", decimals(factor), factor);
}
