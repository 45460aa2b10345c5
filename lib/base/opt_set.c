/* Sets the field of one option from its text. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/opt_row.h"
#include "base/unit.h"

/* The legal range of a row. If both bounds are 0, any value >= 0 is legal. */
static int64_t row_min(const struct ddp_opt *row)
{
    return row->min == 0 && row->max == 0 ? 0 : (int64_t)row->min;
}

static int64_t row_max(const struct ddp_opt *row)
{
    if ((row->min == 0 && row->max == 0) || row->max >= 0x1p63)
        return INT64_MAX;
    return (int64_t)row->max;
}

static int parse_double(const struct ddp_opt *row, const char *text, double *out,
                        struct ddp_err *err)
{
    bool open = row->min == 0 && row->max == 0;
    return ddp_parse_double(text, row->min, open ? INFINITY : row->max, out, err);
}

static int parse_size(const struct ddp_opt *row, const char *text, uint64_t *out,
                      struct ddp_err *err)
{
    uint64_t bytes;
    DDP_TRY(ddp_parse_size(text, &bytes, err));
    if (bytes < (uint64_t)row_min(row) || bytes > (uint64_t)row_max(row)) {
        char low[24], high[24];
        ddp_format_size((uint64_t)row_min(row), low, sizeof low);
        ddp_format_size((uint64_t)row_max(row), high, sizeof high);
        return ddp_fail(err, DDP_EUSAGE, "'%.64s' is not in %s..%s", text, low, high);
    }
    *out = bytes;
    return DDP_OK;
}

static const char *choice_candidate(const void *ctx, int i)
{
    return ((const struct ddp_opt_choices *)ctx)->choice(i);
}

void ddp_opt_choices_join(const struct ddp_opt_choices *words, const char *separator, char *out,
                          size_t out_bytes)
{
    size_t used = 0;
    assert(out_bytes > 4);
    out[0] = '\0';
    for (int i = 0; words->choice(i); i++) {
        int n =
            snprintf(out + used, out_bytes - used, "%s%s", i ? separator : "", words->choice(i));
        if (n < 0)
            return;
        used += (size_t)n;
        if (used >= out_bytes) {
            memcpy(out + out_bytes - 4, "...", 4);
            return;
        }
    }
}

static int parse_choice(const struct ddp_opt *row, const char *text, int *out, struct ddp_err *err)
{
    for (int i = 0; row->choices->choice(i); i++) {
        if (strcmp(text, row->choices->choice(i)) == 0) {
            *out = i;
            return DDP_OK;
        }
    }
    int alias = row->choices->alias ? row->choices->alias(text) : -1;
    if (alias >= 0) {
        *out = alias;
        return DDP_OK;
    }
    char legal[512];
    ddp_opt_choices_join(row->choices, ", ", legal, sizeof legal);
    ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a legal value", text);
    const char *near = ddp_nearest(text, choice_candidate, row->choices);
    if (near)
        ddp_hint(err, "did you mean '%s'? legal: %s", near, legal);
    else
        ddp_hint(err, "legal: %s", legal);
    return DDP_EUSAGE;
}

/* Parses one item of a list into position i of the field. */
static int parse_item(const struct ddp_opt *row, const char *text, void *field, int i,
                      struct ddp_err *err)
{
    struct ddp_int_list *ints = field;
    struct ddp_string_list *strings = field;
    int word, rc;
    switch (row->kind) {
    case DDP_OPT_INT_LIST:
        return ddp_parse_int(text, row_min(row), row_max(row), &ints->v[i], err);
    case DDP_OPT_SIZE_LIST:
        return parse_size(row, text, &((struct ddp_size_list *)field)->v[i], err);
    case DDP_OPT_ENUM_LIST:
        rc = parse_choice(row, text, &word, err);
        if (rc == 0)
            ints->v[i] = word;
        return rc;
    default:
        assert(row->kind == DDP_OPT_STRING_LIST);
        if (strlen(text) >= DDP_OPT_ITEM_MAX)
            return ddp_fail(err, DDP_EUSAGE, "'%.32s...' is longer than %d bytes", text,
                            DDP_OPT_ITEM_MAX - 1);
        snprintf(strings->v[i], DDP_OPT_ITEM_MAX, "%s", text);
        return DDP_OK;
    }
}

static void set_list_length(const struct ddp_opt *row, void *field, int n)
{
    if (row->kind == DDP_OPT_SIZE_LIST)
        ((struct ddp_size_list *)field)->n = n;
    else if (row->kind == DDP_OPT_STRING_LIST)
        ((struct ddp_string_list *)field)->n = n;
    else
        ((struct ddp_int_list *)field)->n = n;
}

/* Rejects item n of a list of choices if it repeats an earlier choice, possibly in another
 * spelling. `item` is the text of item n, and `items` is the text of the whole list. */
static int check_repeated(const struct ddp_opt *row, const struct ddp_int_list *list, int n,
                          const char *items, const char *item, struct ddp_err *err)
{
    for (int i = 0; i < n && row->kind == DDP_OPT_ENUM_LIST; i++) {
        const int length = (int)strcspn(items, ",");
        const char *word = row->choices->choice((int)list->v[i]);
        if (list->v[i] != list->v[n])
            items += length + 1;
        else if ((int)strlen(item) == length && strncmp(items, item, (size_t)length) == 0)
            return ddp_fail(err, DDP_EUSAGE, "'%.64s' is given twice", item);
        else
            return ddp_fail(err, DDP_EUSAGE, "'%.*s' and '%.64s' are the same: '%s'",
                            DDP_MIN(length, 64), items, item, word);
    }
    return DDP_OK;
}

/* Returns whether `text` stands for every choice. "all" does, unless "all" is itself a choice. */
static bool is_every_choice(const struct ddp_opt *row, const char *text)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    int word;
    return row->kind == DDP_OPT_ENUM_LIST && strcmp(text, "all") == 0 &&
           parse_choice(row, text, &word, &ignored) != 0;
}

static int parse_list(const struct ddp_opt *row, const char *text, void *field, struct ddp_err *err)
{
    int n = 0;
    if (is_every_choice(row, text)) {
        struct ddp_int_list *list = field;
        for (; row->choices->choice(n); n++)
            list->v[n] = n;
        set_list_length(row, field, n);
        return DDP_OK;
    }
    set_list_length(row, field, 0);
    for (const char *s = text;;) {
        size_t length = strcspn(s, ",");
        char item[DDP_OPT_ITEM_MAX + 1];
        if (n == DDP_OPT_LIST_MAX)
            return ddp_fail(err, DDP_EUSAGE, "more than %d values", DDP_OPT_LIST_MAX);
        if (length == 0)
            return ddp_fail(err, DDP_EUSAGE, "'%.64s' contains an empty value", text);
        /* A longer item is cut to one byte over the limit, which a string list still rejects. */
        snprintf(item, sizeof item, "%.*s", (int)DDP_MIN(length, sizeof item - 1), s);
        DDP_TRY(parse_item(row, item, field, n, err));
        DDP_TRY(check_repeated(row, field, n, text, item, err));
        n++;
        if (s[length] == '\0')
            break;
        s += length + 1;
    }
    set_list_length(row, field, n);
    return DDP_OK;
}

static int parse_field(const struct ddp_opt *row, const char *text, void *field,
                       struct ddp_err *err)
{
    switch (row->kind) {
    case DDP_OPT_FLAG:
        *(bool *)field = true;
        return DDP_OK;
    case DDP_OPT_INT:
        return ddp_parse_int(text, row_min(row), row_max(row), field, err);
    case DDP_OPT_DOUBLE:
        return parse_double(row, text, field, err);
    case DDP_OPT_SIZE:
        return parse_size(row, text, field, err);
    case DDP_OPT_STRING:
        if (text[0] == '\0')
            return ddp_fail(err, DDP_EUSAGE, "the value is empty");
        *(const char **)field = text;
        return DDP_OK;
    case DDP_OPT_ENUM:
        return parse_choice(row, text, field, err);
    case DDP_OPT_INT_LIST:
    case DDP_OPT_SIZE_LIST:
    case DDP_OPT_ENUM_LIST:
    case DDP_OPT_STRING_LIST:
        return parse_list(row, text, field, err);
    case DDP_OPT_CUSTOM:
        return row->parse(text, field, err);
    }
    assert(!"a kind of option without a parser");
    return DDP_EINTERNAL;
}

int ddp_opt_row_set(const struct ddp_opt *row, void *values, const char *text, struct ddp_err *err)
{
    if (row->kind == DDP_OPT_FLAG && text)
        return ddp_fail(err, DDP_EUSAGE, "option '--%s' takes no value, but got '%.64s'", row->name,
                        text);
    if (row->kind != DDP_OPT_FLAG && !text) {
        ddp_fail(err, DDP_EUSAGE, "option '--%s' needs a value", row->name);
        ddp_hint(err, "--%s %s: %s", row->name, row->value ? row->value : "VALUE", row->help);
        return DDP_EUSAGE;
    }
    struct ddp_err why = DDP_ERR_INIT;
    int rc = parse_field(row, text, (char *)values + row->offset, &why);
    if (rc == 0)
        return DDP_OK;
    ddp_fail(err, rc, "option '--%s': %.440s", row->name, why.text);
    if (why.hint[0])
        ddp_hint(err, "%s", why.hint);
    return rc;
}

int ddp_opt_set(const struct ddp_opt *rows, void *values, const char *name, const char *text,
                struct ddp_err *err)
{
    const struct ddp_opt *row = ddp_opt_row_find(rows, name, strlen(name));
    if (!row)
        return ddp_opt_row_unknown(rows, "", name, strlen(name), err);
    return ddp_opt_row_set(row, values, text, err);
}

int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err)
{
    for (const struct ddp_opt *row = rows; row->name; row++)
        if (row->initial)
            DDP_TRY(ddp_opt_row_set(row, values, row->initial, err));
    return DDP_OK;
}
