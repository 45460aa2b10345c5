#include "base/opt.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

/* Legal words of a row, for an error: "a, b, c". */
static void words_text(const struct ddp_opt *row, char *out, size_t out_bytes)
{
    out[0] = '\0';
    for (int i = 0; row->words->word(i); i++) {
        size_t n = strlen(out);
        snprintf(out + n, out_bytes - n, "%s%s", i ? ", " : "", row->words->word(i));
    }
}

static const char *word_of(const void *ctx, int i)
{
    return ((const struct ddp_opt_words *)ctx)->word(i);
}

static int parse_word(const struct ddp_opt *row, const char *text, int64_t *index,
                      struct ddp_err *err)
{
    for (int i = 0; row->words->word(i); i++) {
        if (strcmp(row->words->word(i), text) == 0) {
            *index = i;
            return 0;
        }
    }
    int alias = row->words->alias ? row->words->alias(text) : -1;
    if (alias >= 0) {
        *index = alias;
        return 0;
    }
    char legal[320];
    words_text(row, legal, sizeof legal);
    ddp_fail(err, DDP_EUSAGE, "--%s '%s' is not one of: %s", row->name, text, legal);
    const char *near = ddp_nearest(text, word_of, row->words);
    return near ? ddp_hint(err, "did you mean '%s'?", near) : DDP_EUSAGE;
}

static int parse_int_value(const struct ddp_opt *row, const char *text, int64_t *value,
                           struct ddp_err *err)
{
    bool ranged = row->min != 0 || row->max != 0;
    int64_t min = ranged ? (int64_t)row->min : 0;
    int64_t max = ranged ? (int64_t)row->max : INT64_MAX / 2;
    return ddp_parse_int(text, min, max, value, err);
}

static int parse_size_value(const struct ddp_opt *row, const char *text, uint64_t *value,
                            struct ddp_err *err)
{
    DDP_TRY(ddp_parse_size(text, value, err));
    if (row->max != 0 && ((double)*value < row->min || (double)*value > row->max))
        return ddp_fail(err, DDP_EUSAGE, "%s is out of range: %.0f to %.0f bytes", text, row->min,
                        row->max);
    return 0;
}

/* One element of a list into slot i. */
static int parse_element(const struct ddp_opt *row, const char *text, void *field, int i,
                         struct ddp_err *err)
{
    switch (row->kind) {
    case DDP_OPT_INT_LIST:
        return parse_int_value(row, text, &((struct ddp_int_list *)field)->v[i], err);
    case DDP_OPT_ENUM_LIST:
        return parse_word(row, text, &((struct ddp_int_list *)field)->v[i], err);
    case DDP_OPT_SIZE_LIST:
        return parse_size_value(row, text, &((struct ddp_size_list *)field)->v[i], err);
    default: {
        struct ddp_string_list *list = field;
        if (strlen(text) >= sizeof list->v[i])
            return ddp_fail(err, DDP_EUSAGE, "'%.40s...' is longer than %zu bytes", text,
                            sizeof list->v[i] - 1);
        snprintf(list->v[i], sizeof list->v[i], "%s", text);
        return 0;
    }
    }
}

static int parse_list(const struct ddp_opt *row, const char *text, void *field, struct ddp_err *err)
{
    int n = 0;
    for (const char *p = text;; n++) {
        char element[256];
        size_t length = strcspn(p, ",");
        if (length == 0)
            return ddp_fail(err, DDP_EUSAGE, "--%s '%s' has an empty element", row->name, text);
        if (n == DDP_OPT_LIST_MAX || length >= sizeof element)
            return ddp_fail(err, DDP_EUSAGE, "--%s: more than %d elements, or one too long",
                            row->name, DDP_OPT_LIST_MAX);
        memcpy(element, p, length);
        element[length] = '\0';
        DDP_TRY(parse_element(row, element, field, n, err));
        if (p[length] == '\0')
            break;
        p += length + 1;
    }
    /* All lists begin with their count. */
    *(int *)field = n + 1;
    return 0;
}

static int parse_value(const struct ddp_opt *row, const char *text, void *field,
                       struct ddp_err *err)
{
    int64_t index = 0;
    switch (row->kind) {
    case DDP_OPT_FLAG:
        *(bool *)field = true;
        return 0;
    case DDP_OPT_INT:
        return parse_int_value(row, text, field, err);
    case DDP_OPT_DOUBLE:
        if (row->min == 0 && row->max == 0)
            return ddp_parse_double(text, 0, DBL_MAX, field, err);
        return ddp_parse_double(text, row->min, row->max, field, err);
    case DDP_OPT_SIZE:
        return parse_size_value(row, text, field, err);
    case DDP_OPT_STRING:
        *(const char **)field = text;
        return 0;
    case DDP_OPT_ENUM:
        DDP_TRY(parse_word(row, text, &index, err));
        *(int *)field = (int)index;
        return 0;
    case DDP_OPT_CUSTOM:
        return row->parse(text, field, err);
    default:
        return parse_list(row, text, field, err);
    }
}

/* Parses into the field; an error from below is told which option it is about. */
static int set_row(const struct ddp_opt *row, void *values, const char *text, struct ddp_err *err)
{
    struct ddp_err inner = DDP_ERR_INIT;
    int rc = parse_value(row, text, (char *)values + row->offset, &inner);
    if (rc == 0)
        return 0;
    char option[64];
    snprintf(option, sizeof option, "--%s", row->name);
    if (strncmp(inner.text, option, strlen(option)) == 0)
        ddp_fail(err, rc, "%s", inner.text);
    else
        ddp_fail(err, rc, "%s: %s", option, inner.text);
    return inner.hint[0] ? ddp_hint(err, "%s", inner.hint) : rc;
}

static const struct ddp_opt *find_row(const struct ddp_opt *rows, const char *name, size_t length)
{
    for (const struct ddp_opt *r = rows; r->name; r++) {
        if (strlen(r->name) == length && strncmp(r->name, name, length) == 0)
            return r;
        if (r->alias && strlen(r->alias) == length && strncmp(r->alias, name, length) == 0)
            return r;
    }
    return NULL;
}

static const char *row_name(const void *ctx, int i)
{
    const struct ddp_opt *rows = ctx;
    for (int k = 0; k < i; k++) {
        if (!rows[k].name)
            return NULL;
    }
    return rows[i].name;
}

static int unknown_option(const struct ddp_opt *rows, const char *name, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "unknown option '--%s'", name);
    const char *near = ddp_nearest(name, row_name, rows);
    return near ? ddp_hint(err, "did you mean '--%s'?", near) : DDP_EUSAGE;
}

int ddp_opt_set(const struct ddp_opt *rows, void *values, const char *name, const char *text,
                struct ddp_err *err)
{
    const struct ddp_opt *row = find_row(rows, name, strlen(name));
    if (!row)
        return unknown_option(rows, name, err);
    if (row->kind != DDP_OPT_FLAG && !text)
        return ddp_fail(err, DDP_EUSAGE, "--%s needs a value %s", row->name,
                        row->value ? row->value : "");
    return set_row(row, values, text, err);
}

int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err)
{
    for (const struct ddp_opt *r = rows; r->name; r++) {
        if (r->initial && r->kind != DDP_OPT_FLAG)
            DDP_TRY(set_row(r, values, r->initial, err));
    }
    return 0;
}

/* A parse in progress. */
struct parser {
    const struct ddp_opt *rows;
    int argc, next;
    char *const *argv;
    void *values;
    struct ddp_opt_result *result;
};

static int take(struct parser *p, const struct ddp_opt *row, const char *text, struct ddp_err *err)
{
    size_t index = (size_t)(row - p->rows);
    if (row->kind != DDP_OPT_FLAG && !text) {
        if (p->next >= p->argc)
            return ddp_fail(err, DDP_EUSAGE, "--%s needs a value %s", row->name,
                            row->value ? row->value : "");
        text = p->argv[p->next++];
    }
    p->result->given[index / 64] |= 1ull << (index % 64);
    return set_row(row, p->values, text, err);
}

static int parse_long(struct parser *p, const char *arg, struct ddp_err *err)
{
    size_t length = strcspn(arg, "=");
    const struct ddp_opt *row = find_row(p->rows, arg, length);
    if (!row) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, arg);
        return unknown_option(p->rows, name, err);
    }
    if (row->kind == DDP_OPT_FLAG && arg[length] == '=')
        return ddp_fail(err, DDP_EUSAGE, "--%s takes no value, but '%s' was given", row->name,
                        arg + length + 1);
    return take(p, row, arg[length] == '=' ? arg + length + 1 : NULL, err);
}

/* -n5, -n 5, and flags bundled as -qv. */
static int parse_short(struct parser *p, const char *arg, struct ddp_err *err)
{
    for (; *arg; arg++) {
        const struct ddp_opt *row = p->rows;
        while (row->name && row->short_name != *arg)
            row++;
        if (!row->name)
            return ddp_fail(err, DDP_EUSAGE, "unknown option '-%c'", *arg);
        if (row->kind != DDP_OPT_FLAG)
            return take(p, row, arg[1] ? arg + 1 : NULL, err);
        DDP_TRY(take(p, row, NULL, err));
    }
    return 0;
}

int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err)
{
    struct parser p = {
        .rows = rows, .argc = argc, .next = 1, .argv = argv, .values = values, .result = result};
    bool only_operands = false;
    *result = (struct ddp_opt_result){0};
    while (p.next < argc) {
        const char *arg = argv[p.next++];
        if (!only_operands && strcmp(arg, "--") == 0) {
            only_operands = true;
        } else if (!only_operands && strncmp(arg, "--", 2) == 0) {
            DDP_TRY(parse_long(&p, arg + 2, err));
        } else if (!only_operands && arg[0] == '-' && arg[1] != '\0') {
            DDP_TRY(parse_short(&p, arg + 1, err));
        } else if (result->operand_count == (int)DDP_COUNT_OF(result->operands)) {
            return ddp_fail(err, DDP_EUSAGE, "more than %zu operands",
                            DDP_COUNT_OF(result->operands));
        } else {
            result->operands[result->operand_count++] = arg;
        }
    }
    return 0;
}

bool ddp_opt_given(const struct ddp_opt *rows, const struct ddp_opt_result *result,
                   const char *name)
{
    const struct ddp_opt *row = find_row(rows, name, strlen(name));
    size_t index = row ? (size_t)(row - rows) : 0;
    return row && (result->given[index / 64] >> (index % 64) & 1);
}
