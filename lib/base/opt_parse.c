/* Parses the command line into options and operands. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/opt_row.h"

enum { ROWS_MAX = 128 };

const struct ddp_opt *ddp_opt_row_find(const struct ddp_opt *rows, const char *name, size_t n)
{
    for (const struct ddp_opt *row = rows; row->name; row++) {
        if (strlen(row->name) == n && strncmp(row->name, name, n) == 0)
            return row;
        if (row->alias && strlen(row->alias) == n && strncmp(row->alias, name, n) == 0)
            return row;
    }
    return NULL;
}

const char *ddp_opt_candidate(const void *rows, int i)
{
    return ((const struct ddp_opt *)rows)[i].name;
}

int ddp_opt_row_unknown(const struct ddp_opt *rows, const char *dashes, const char *name, size_t n,
                        struct ddp_err *err)
{
    char text[64], legal[600];
    size_t used = 0;
    snprintf(text, sizeof text, "%.*s", (int)DDP_MIN(n, sizeof text - 1), name);
    legal[0] = '\0';
    for (const struct ddp_opt *row = rows; row->name && used < sizeof legal; row++) {
        const char letter[] = {'/', '-', row->short_name, '\0'};
        used += (size_t)snprintf(legal + used, sizeof legal - used, " %s%s%s", dashes, row->name,
                                 row->short_name && dashes[0] ? letter : "");
    }
    ddp_fail(err, DDP_EUSAGE, "unknown option '%s%s'", dashes, text);
    const char *near = ddp_nearest(text, ddp_opt_candidate, rows);
    if (near)
        ddp_hint(err, "did you mean '%s%s'? legal:%s%s", dashes, near, legal,
                 used >= sizeof legal ? "..." : "");
    else
        ddp_hint(err, "legal:%s%s", legal, used >= sizeof legal ? "..." : "");
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
    size_t index = (size_t)(row - p->rows);
    DDP_TRY(ddp_opt_row_set(row, p->values, text, err));
    p->result->given[index / 64] |= (uint64_t)1 << index % 64;
    return DDP_OK;
}

/* Returns whether this argument may be the value of the option before it. "-" (stdout) and "-1" may
 * be values. Another option may not, so that `--json --size 4` is reported as a missing file
 * name. */
static bool can_be_value(const char *arg)
{
    return arg[0] != '-' || arg[1] == '\0' || strchr("0123456789.", arg[1]);
}

/* Sets the field of a row. `attached` is the value in the same argument, or NULL. If it is NULL and
 * the option is not a flag, the value is the next argument. */
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
    const struct ddp_opt *row = ddp_opt_row_find(p->rows, name, n);
    if (!row)
        return ddp_opt_row_unknown(p->rows, "--", name, n, err);
    return take_value(p, row, equals ? equals + 1 : NULL, err);
}

/* Parses short options such as -qv, -n5 or -qn 5. Flags may share a dash. After the first letter
 * that takes a value, the rest of the argument is the value. */
static int parse_short(struct parser *p, const char *arg, struct ddp_err *err)
{
    for (const char *letter = arg + 1; *letter; letter++) {
        const struct ddp_opt *row = p->rows;
        while (row->name && row->short_name != *letter)
            row++;
        if (!row->name) {
            /* "-size" is far more often a mistyped "--size" than four flags. */
            const struct ddp_opt *meant = ddp_opt_row_find(p->rows, arg + 1, strcspn(arg + 1, "="));
            if (arg[2] == '\0')
                ddp_fail(err, DDP_EUSAGE, "unknown option '%s'", arg);
            else
                ddp_fail(err, DDP_EUSAGE, "unknown option '-%c' in '%.64s'", *letter, arg);
            if (meant)
                ddp_hint(err, "did you mean '--%s'?", meant->name);
            return ddp_opt_row_unknown(p->rows, "--", arg + 1, strlen(arg + 1), err);
        }
        if (row->kind != DDP_OPT_FLAG)
            return take_value(p, row, letter[1] ? letter + 1 : NULL, err);
        DDP_TRY(set_row(p, row, NULL, err));
    }
    return DDP_OK;
}

int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err)
{
    struct parser p = {rows, values, result, argv, argc, 1};
    int row_count = 0;
    while (rows[row_count].name)
        row_count++;
    assert(row_count <= ROWS_MAX);
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
    const struct ddp_opt *row = ddp_opt_row_find(rows, name, strlen(name));
    assert(row);
    size_t index = (size_t)(row - rows);
    return result->given[index / 64] >> index % 64 & 1;
}
