/* Writes the help text of an option table. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/unit.h"

/* The width of a page, and the columns where help texts begin on the long page and on the short
 * page. */
enum { WIDTH = 80, COLUMN = 28, BRIEF_COLUMN = 34 };

/* Writes a range such as "1..256" or "from 1". Writes "" if the row has no range, or if its values
 * are not numbers or sizes. */
static void range_text(const struct ddp_opt *row, char *out, size_t out_bytes)
{
    out[0] = '\0';
    if (row->min == 0 && row->max == 0)
        return;
    if (row->kind == DDP_OPT_SIZE || row->kind == DDP_OPT_SIZE_LIST) {
        char low[24], high[24];
        ddp_format_size((uint64_t)row->min, low, sizeof low);
        ddp_format_size((uint64_t)DDP_MIN(row->max, 0x1p62), high, sizeof high);
        if (row->max >= 0x1p62)
            snprintf(out, out_bytes, "from %s", low);
        else
            snprintf(out, out_bytes, "%s..%s", low, high);
    } else if (row->kind == DDP_OPT_INT || row->kind == DDP_OPT_DOUBLE ||
               row->kind == DDP_OPT_INT_LIST) {
        /* A bound beyond 2^31 is a technical limit that users need not see. */
        if (row->max >= 0x1p31)
            snprintf(out, out_bytes, "from %.10g", row->min);
        else
            snprintf(out, out_bytes, "%.10g..%.10g", row->min, row->max);
    }
}

/* Returns whether the help text already contains all choices. */
static bool help_has_choices(const struct ddp_opt *row)
{
    for (int i = 0; ddp_opt_choice(row, i); i++)
        if (!strstr(row->help, ddp_opt_choice(row, i)))
            return false;
    return true;
}

void ddp_opt_describe(const struct ddp_opt *row, struct ddp_strbuf *out)
{
    char range[80];
    ddp_strbuf_add(out, row->help);
    for (int i = 0; !help_has_choices(row) && ddp_opt_choice(row, i); i++)
        ddp_strbuf_addf(out, "%s%s", i ? ", " : ": ", ddp_opt_choice(row, i));
    range_text(row, range, sizeof range);
    const char *initial = row->initial && !strstr(row->help, "(default") ? row->initial : NULL;
    if (initial && range[0])
        ddp_strbuf_addf(out, " (default %s; %s)", initial, range);
    else if (initial)
        ddp_strbuf_addf(out, " (default %s)", initial);
    else if (range[0])
        ddp_strbuf_addf(out, " (%s)", range);
}

static void help_row(const struct ddp_opt *row, int text_column, struct ddp_strbuf *out)
{
    size_t start = out->length;
    if (row->short_name)
        ddp_strbuf_addf(out, "  -%c, --%s", row->short_name, row->name);
    else
        ddp_strbuf_addf(out, "      --%s", row->name);
    if (row->value)
        ddp_strbuf_addf(out, " %s", row->value);
    int column = (int)(out->length - start);
    if (column + 2 > text_column) {
        ddp_strbuf_add(out, "\n");
        column = 0;
    }
    ddp_strbuf_pad(out, (size_t)(text_column - column));
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_opt_describe(row, &text);
    if (text.failed)
        out->failed = true;
    else
        ddp_strbuf_wrap_line(out, text.text, text_column, WIDTH, text_column);
    ddp_strbuf_release(&text);
}

void ddp_opt_help_brief(const struct ddp_opt *rows, struct ddp_strbuf *out)
{
    struct ddp_opt row;
    for (int i = 0; ddp_opt_get(rows, i, &row); i++) {
        if (!row.brief)
            continue;
        if (row.brief[0])
            row.help = row.brief;
        row.choices = NULL;
        row.choice = NULL;
        row.min = row.max = 0;
        help_row(&row, BRIEF_COLUMN, out);
    }
}

void ddp_opt_help(const struct ddp_opt *rows, struct ddp_strbuf *out)
{
    struct ddp_opt first, row;
    /* Groups appear in the order of their first option. */
    for (int i = 0; ddp_opt_get(rows, i, &first); i++) {
        bool seen = false;
        for (int j = 0; j < i && !seen && ddp_opt_get(rows, j, &row); j++)
            seen = strcmp(row.group, first.group) == 0;
        if (seen)
            continue;
        ddp_strbuf_addf(out, "%s%s:\n", out->length ? "\n" : "", first.group);
        for (int j = i; ddp_opt_get(rows, j, &row); j++)
            if (strcmp(row.group, first.group) == 0)
                help_row(&row, COLUMN, out);
    }
}
