/* Help text from option rows. */
#include <stdio.h>
#include <string.h>

#include "base/opt.h"

#define TEXT_COLUMN 30
#define LAST_COLUMN 80

/* Appends text wrapped at LAST_COLUMN, continuation lines indented to TEXT_COLUMN; `column` is
 * where the cursor stands. */
static void add_wrapped(struct ddp_strbuf *out, const char *text, size_t column)
{
    while (*text) {
        size_t word = strcspn(text, " ");
        if (column + 1 + word > LAST_COLUMN && column > TEXT_COLUMN) {
            ddp_strbuf_addf(out, "\n%*s", TEXT_COLUMN, "");
            column = TEXT_COLUMN;
        } else if (column > TEXT_COLUMN) {
            ddp_strbuf_add(out, " ");
            column++;
        }
        ddp_strbuf_add_n(out, text, word);
        column += word;
        text += word;
        text += strspn(text, " ");
    }
    ddp_strbuf_add(out, "\n");
}

/* Help, legal words, range and default of a row as one paragraph. */
static void describe(const struct ddp_opt *row, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, row->help);
    if (row->words) {
        ddp_strbuf_add(out, ": ");
        for (int i = 0; row->words->word(i); i++)
            ddp_strbuf_addf(out, "%s%s", i ? ", " : "", row->words->word(i));
    }
    bool numeric =
        row->kind == DDP_OPT_INT || row->kind == DDP_OPT_DOUBLE || row->kind == DDP_OPT_INT_LIST;
    if (numeric && row->max != 0)
        ddp_strbuf_addf(out, " [%.16g to %.16g]", row->min, row->max);
    if (row->initial && row->kind != DDP_OPT_FLAG)
        ddp_strbuf_addf(out, " (default %s)", row->initial);
}

static void add_row(const struct ddp_opt *row, struct ddp_strbuf *out)
{
    char left[128], short_name[8] = "    ";
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    if (row->short_name)
        snprintf(short_name, sizeof short_name, "-%c, ", row->short_name);
    snprintf(left, sizeof left, "  %s--%s%s%s", short_name, row->name, row->value ? " " : "",
             row->value ? row->value : "");
    describe(row, &text);
    size_t column = strlen(left);
    ddp_strbuf_add(out, left);
    if (column + 2 > TEXT_COLUMN) {
        ddp_strbuf_addf(out, "\n%*s", TEXT_COLUMN, "");
    } else {
        ddp_strbuf_addf(out, "%*s", (int)(TEXT_COLUMN - column), "");
    }
    add_wrapped(out, text.text ? text.text : "", TEXT_COLUMN);
    ddp_strbuf_release(&text);
}

static bool first_of_group(const struct ddp_opt *rows, const struct ddp_opt *row)
{
    for (const struct ddp_opt *r = rows; r != row; r++) {
        if (strcmp(r->group, row->group) == 0)
            return false;
    }
    return true;
}

void ddp_opt_help(const struct ddp_opt *rows, struct ddp_strbuf *out)
{
    for (const struct ddp_opt *g = rows; g->name; g++) {
        if (!first_of_group(rows, g))
            continue;
        ddp_strbuf_addf(out, "\n%s:\n", g->group);
        for (const struct ddp_opt *r = g; r->name; r++) {
            if (strcmp(r->group, g->group) == 0)
                add_row(r, out);
        }
    }
}
