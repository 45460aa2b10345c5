/* Tables of options: finds rows, sets fields from text, and parses the command line. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/unit.h"

enum { OPTIONS_MAX = 128 };

/* Describes the option that walk() searches for: the first option with this name, letter or
 * index. */
struct query {
    const char *name; /* [name_bytes]; NULL: search by letter */
    size_t name_bytes;
    char letter; /* 0: search by index */
    int index;
    int passed; /* number of options that walk() has passed */
};

static bool matches(const struct ddp_opt *row, const struct query *q)
{
    if (q->name)
        return strlen(row->name) == q->name_bytes &&
               strncmp(row->name, q->name, q->name_bytes) == 0;
    return q->letter ? row->short_name == q->letter : q->passed == q->index;
}

/* Searches a table and the tables that it includes. `base` is the offset of the table's struct in
 * the command's struct. */
static bool walk(const struct ddp_opt *rows, size_t base, struct query *q, struct ddp_opt *out)
{
    const char *group = "Options";
    for (const struct ddp_opt *row = rows; row->name; row++) {
        if (row->kind == DDP_OPT_GROUP) {
            group = row->name;
        } else if (row->kind == DDP_OPT_ROWS) {
            if (walk(row->include, base + row->offset, q, out))
                return true;
        } else if (matches(row, q)) {
            *out = *row;
            out->offset += base;
            out->group = group;
            out->index = q->passed;
            return true;
        } else {
            q->passed++;
        }
    }
    return false;
}

bool ddp_opt_get(const struct ddp_opt *rows, int i, struct ddp_opt *out)
{
    return walk(rows, 0, &(struct query){.index = i}, out);
}

static bool find(const struct ddp_opt *rows, const char *name, size_t n, struct ddp_opt *out)
{
    return walk(rows, 0, &(struct query){.name = name, .name_bytes = n}, out);
}

bool ddp_opt_find(const struct ddp_opt *rows, const char *name, struct ddp_opt *out)
{
    return find(rows, name, strlen(name), out);
}

const char *ddp_opt_choice(const struct ddp_opt *row, int i)
{
    if (row->choice)
        return row->choice(i);
    return row->choices ? row->choices[i] : NULL;
}

static const char *choice_candidate(const void *row, int i)
{
    return ddp_opt_choice(row, i);
}

static const char *name_candidate(const void *rows, int i)
{
    struct ddp_opt row;
    return ddp_opt_get(rows, i, &row) ? row.name : NULL;
}

/* These functions return the legal range of a row. If row->min and row->max are 0, any value >= 0
 * is legal. */
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

static int parse_choice(const struct ddp_opt *row, const char *text, int *out, struct ddp_err *err)
{
    *out = -1;
    for (int i = 0; *out < 0 && ddp_opt_choice(row, i); i++)
        if (strcmp(text, ddp_opt_choice(row, i)) == 0)
            *out = i;
    if (*out < 0 && row->spelling)
        *out = row->spelling(text);
    if (*out >= 0)
        return DDP_OK;
    ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a legal value", text);
    return ddp_hint_nearest(err, text, choice_candidate, row, NULL);
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
        snprintf(strings->v[i], DDP_OPT_ITEM_MAX, "%s", text);
        return DDP_OK;
    }
}

bool ddp_opt_is_list(const struct ddp_opt *row)
{
    return row->kind == DDP_OPT_INT_LIST || row->kind == DDP_OPT_SIZE_LIST ||
           row->kind == DDP_OPT_ENUM_LIST || row->kind == DDP_OPT_STRING_LIST;
}

/* The number of items is the first member of all lists. */
static int list_length(const void *field)
{
    return *(const int *)field;
}

static void set_list_length(void *field, int n)
{
    *(int *)field = n;
}

/* Rejects item n of a list of choices if it repeats an earlier choice, possibly in another
 * spelling. `item` is the text of item n. `items` is the text of the items from index `first` on.
 * The items before `first` come from an earlier use of the option. */
static int check_repeated(const struct ddp_opt *row, const struct ddp_int_list *list, int first,
                          int n, const char *items, const char *item, struct ddp_err *err)
{
    for (int i = 0; i < n && row->kind == DDP_OPT_ENUM_LIST; i++) {
        const char *word = ddp_opt_choice(row, (int)list->v[i]);
        const char *text = i < first ? word : items;
        const int length = (int)strcspn(text, ",");
        if (i >= first)
            items += length + 1;
        if (list->v[i] != list->v[n])
            continue;
        if ((int)strlen(item) == length && strncmp(text, item, (size_t)length) == 0)
            return ddp_fail(err, DDP_EUSAGE, "'%.64s' is given twice", item);
        return ddp_fail(err, DDP_EUSAGE, "'%.*s' and '%.64s' are the same: '%s'",
                        DDP_MIN(length, 64), text, item, word);
    }
    return DDP_OK;
}

/* Returns whether `text` stands for every choice. This is true for "all", unless "all" is itself a
 * choice. */
static bool is_every_choice(const struct ddp_opt *row, const char *text)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    int word;
    return row->kind == DDP_OPT_ENUM_LIST && strcmp(text, "all") == 0 &&
           parse_choice(row, text, &word, &ignored) != 0;
}

/* Parses a list into the field. The first `first` items of the field stay, and the new items follow
 * them. */
static int parse_list(const struct ddp_opt *row, const char *text, void *field, int first,
                      struct ddp_err *err)
{
    int n = first;
    if (is_every_choice(row, text)) {
        struct ddp_int_list *list = field;
        if (first > 0)
            return ddp_fail(err, DDP_EUSAGE, "'all' cannot be combined with other values");
        for (; ddp_opt_choice(row, n); n++)
            list->v[n] = n;
        set_list_length(field, n);
        return DDP_OK;
    }
    set_list_length(field, first);
    for (const char *s = text;;) {
        size_t length = strcspn(s, ",");
        char item[DDP_OPT_ITEM_MAX];
        if (n == DDP_OPT_LIST_MAX)
            return ddp_fail(err, DDP_EUSAGE, "more than %d values", DDP_OPT_LIST_MAX);
        if (length == 0)
            return ddp_fail(err, DDP_EUSAGE, "'%.64s' contains an empty value", text);
        if (length >= sizeof item)
            return ddp_fail(err, DDP_EUSAGE, "'%.32s...' is longer than %d bytes", s,
                            DDP_OPT_ITEM_MAX - 1);
        snprintf(item, sizeof item, "%.*s", (int)length, s);
        DDP_TRY(parse_item(row, item, field, n, err));
        DDP_TRY(check_repeated(row, field, first, n, text, item, err));
        n++;
        if (s[length] == '\0')
            break;
        s += length + 1;
    }
    set_list_length(field, n);
    return DDP_OK;
}

/* Parses text into the field. A list keeps its first `first` items. */
static int parse_field(const struct ddp_opt *row, const char *text, void *field, int first,
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
        return parse_list(row, text, field, first, err);
    default:
        break;
    }
    assert(!"a kind of option without a parser");
    return DDP_EINTERNAL;
}

/* Sets the field of a row from text. `text` must be NULL for a flag and only for a flag; otherwise
 * the function fails. A list keeps its items if `appends` is true. Error messages contain the
 * option's name. */
static int set_field(const struct ddp_opt *row, void *values, const char *text, bool appends,
                     struct ddp_err *err)
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
    void *field = (char *)values + row->offset;
    const int first = appends && ddp_opt_is_list(row) ? list_length(field) : 0;
    int rc = parse_field(row, text, field, first, &why);
    if (rc == 0)
        return DDP_OK;
    ddp_fail(err, rc, "option '--%s': %.440s", row->name, why.text);
    if (row->advice != NULL || why.hint[0] != '\0')
        ddp_hint(err, "%s", row->advice != NULL ? row->advice : why.hint);
    return rc;
}

int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err)
{
    struct ddp_opt row;
    for (int i = 0; ddp_opt_get(rows, i, &row); i++)
        if (row.initial)
            DDP_TRY(set_field(&row, values, row.initial, false, err));
    return DDP_OK;
}

/* Reports that no option is called name [n]. The hint suggests the nearest option. */
static int fail_unknown(const struct ddp_opt *rows, const char *name, size_t n, struct ddp_err *err)
{
    char text[64];
    snprintf(text, sizeof text, "%.*s", (int)DDP_MIN(n, sizeof text - 1), name);
    ddp_fail(err, DDP_EUSAGE, "unknown option '--%s'", text);
    const char *near = ddp_nearest(text, name_candidate, rows);
    if (near)
        ddp_hint(err, "did you mean '--%s'?", near);
    return DDP_EUSAGE;
}

struct parser {
    const struct ddp_opt *rows;
    void *values;
    struct ddp_opt_result *result;
    char *const *argv;
    int argc;
    int next; /* index of the next argument */
};

static int set_row(struct parser *p, const struct ddp_opt *row, const char *text,
                   struct ddp_err *err)
{
    uint64_t *given = &p->result->given[row->index / 64];
    const uint64_t bit = (uint64_t)1 << row->index % 64;
    const bool again = *given & bit;
    if (again && row->kind != DDP_OPT_FLAG && !ddp_opt_is_list(row)) {
        ddp_fail(err, DDP_EUSAGE, "option '--%s' is given twice", row->name);
        return ddp_hint(err, "it takes one value: remove one of the two");
    }
    DDP_TRY(set_field(row, p->values, text, again, err));
    *given |= bit;
    return DDP_OK;
}

/* Returns whether an argument may be the value of the option that precedes it. "-" (stdout) and
 * negative numbers may be values. Other arguments that begin with a dash may not. The missing file
 * name in `--json --size 4` is therefore reported. */
static bool can_be_value(const char *arg)
{
    return arg[0] != '-' || arg[1] == '\0' || strchr("0123456789.", arg[1]);
}

/* Sets the field of a row. `attached` is the value in the same argument as the option, or NULL. If
 * `attached` is NULL and the option is not a flag, the value is the next argument, which must not
 * look like an option. */
static int take_value(struct parser *p, const struct ddp_opt *row, const char *attached,
                      struct ddp_err *err)
{
    if (attached || row->kind == DDP_OPT_FLAG)
        return set_row(p, row, attached, err);
    if (p->next >= p->argc || !can_be_value(p->argv[p->next]))
        return set_row(p, row, NULL, err);
    return set_row(p, row, p->argv[p->next++], err);
}

static int parse_long(struct parser *p, const char *arg, struct ddp_err *err)
{
    const char *name = arg + 2, *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    struct ddp_opt row;
    if (!find(p->rows, name, n, &row)) {
        snprintf(p->result->unknown, sizeof p->result->unknown, "%.*s", (int)n, name);
        return fail_unknown(p->rows, name, n, err);
    }
    return take_value(p, &row, equals ? equals + 1 : NULL, err);
}

/* Parses short options such as -qv, -n5 or -qn 5. Several flags may share a dash. The value of an
 * option is the rest of the argument, or the next argument if nothing follows the letter. */
static int parse_short(struct parser *p, const char *arg, struct ddp_err *err)
{
    for (const char *letter = arg + 1; *letter; letter++) {
        struct ddp_opt row, meant;
        if (!walk(p->rows, 0, &(struct query){.letter = *letter}, &row)) {
            if (arg[2] == '\0')
                ddp_fail(err, DDP_EUSAGE, "unknown option '%s'", arg);
            else
                ddp_fail(err, DDP_EUSAGE, "unknown option '-%c' in '%.64s'", *letter, arg);
            /* "-size" is more likely a mistyped "--size" than four flags. */
            if (find(p->rows, arg + 1, strcspn(arg + 1, "="), &meant))
                return ddp_hint(err, "did you mean '--%s'?", meant.name);
            return fail_unknown(p->rows, arg + 1, strlen(arg + 1), err);
        }
        if (row.kind != DDP_OPT_FLAG)
            return take_value(p, &row, letter[1] ? letter + 1 : NULL, err);
        DDP_TRY(set_row(p, &row, NULL, err));
    }
    return DDP_OK;
}

int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err)
{
    struct parser p = {rows, values, result, argv, argc, 1};
    assert(!ddp_opt_get(rows, OPTIONS_MAX, &(struct ddp_opt){0}));
    memset(result, 0, sizeof *result);
    bool options = true;
    while (p.next < argc) {
        const char *arg = argv[p.next++];
        if (options && strcmp(arg, "--") == 0) {
            options = false;
        } else if (options && strncmp(arg, "--", 2) == 0) {
            DDP_TRY(parse_long(&p, arg, err));
        } else if (options && arg[0] == '-' && arg[1] != '\0') {
            DDP_TRY(parse_short(&p, arg, err));
        } else {
            if (result->operand_count == (int)DDP_COUNT_OF(result->operands))
                return ddp_fail(err, DDP_EUSAGE, "more than %d operands",
                                (int)DDP_COUNT_OF(result->operands));
            result->operands[result->operand_count++] = arg;
        }
    }
    return DDP_OK;
}

bool ddp_opt_given(const struct ddp_opt *rows, const struct ddp_opt_result *result,
                   const char *name)
{
    struct ddp_opt row;
    bool found = ddp_opt_find(rows, name, &row);
    assert(found);
    return found && (result->given[row.index / 64] >> row.index % 64 & 1);
}
