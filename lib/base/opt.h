/* Options of commands. One row of a table defines the command-line flag of an option, its
 * configuration key, default, range and help text.
 *
 * A command owns a struct of values, and each row has the offset of the option's field in this
 * struct. ddp_opt_defaults() sets the defaults with the parser that also reads the user's text, so
 * an illegal default is an error.
 *
 * Parsing is strict. An unknown option, a missing or illegal value, a value for a flag, or an
 * abbreviation is DDP_EUSAGE. The message names the option. If an option, or a value with fixed
 * choices, is unknown, the hint lists the legal ones and suggests the nearest one. If an option is
 * given twice, the last value counts. A later list replaces an earlier list. */
#ifndef DDP_BASE_OPT_H
#define DDP_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_OPT_LIST_MAX 64
#define DDP_OPT_ITEM_MAX 256 /* bytes of one item of a string list, with its NUL */

/* The type of an option's field. */
enum ddp_opt_kind {
    DDP_OPT_FLAG,        /* bool; takes no value */
    DDP_OPT_INT,         /* int64_t in [min, max] */
    DDP_OPT_DOUBLE,      /* double in [min, max] */
    DDP_OPT_SIZE,        /* uint64_t bytes in [min, max], read by ddp_parse_size */
    DDP_OPT_STRING,      /* const char *; points into the parsed text */
    DDP_OPT_ENUM,        /* int: the index in `choices` */
    DDP_OPT_INT_LIST,    /* struct ddp_int_list */
    DDP_OPT_SIZE_LIST,   /* struct ddp_size_list */
    DDP_OPT_ENUM_LIST,   /* struct ddp_int_list: indices in `choices`; "all" gives every choice */
    DDP_OPT_STRING_LIST, /* struct ddp_string_list: comma separated, copied */
    DDP_OPT_CUSTOM       /* any type; set by `parse` */
};

struct ddp_int_list {
    int n;
    int64_t v[DDP_OPT_LIST_MAX];
};
struct ddp_size_list {
    int n;
    uint64_t v[DDP_OPT_LIST_MAX];
};
struct ddp_string_list {
    int n;
    char v[DDP_OPT_LIST_MAX][DDP_OPT_ITEM_MAX];
};

/* The choices of an option. They are functions because the choices may come from a registry. */
struct ddp_opt_choices {
    /* Returns the i-th choice, or NULL past the end. */
    const char *(*choice)(int i);
    /* Returns the index of the choice for which `text` is another spelling, or -1. May be NULL. */
    int (*alias)(const char *text);
};

struct ddp_opt {
    const char *name; /* long name, without dashes */
    char short_name;  /* a letter, or 0 */
    enum ddp_opt_kind kind;
    size_t offset;     /* offset of the field in the command's struct */
    const char *value; /* placeholder in help ("N", "S[,S...]"); NULL for flags */
    /* The default as text. If NULL, the field keeps the caller's value and help shows no
     * default. */
    const char *initial;
    const char *group; /* heading in help */
    const char *help;
    /* The legal range of numbers and sizes. If both are 0, any value >= 0 is legal. */
    double min, max;
    const struct ddp_opt_choices *choices;
    /* For DDP_OPT_CUSTOM: sets the field from the text. */
    int (*parse)(const char *text, void *field, struct ddp_err *err);
    const char *alias; /* a second long name, or NULL */
};
#define DDP_OPT_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Sets the field of the option `name` from text, which is NULL for a flag. */
int ddp_opt_set(const struct ddp_opt *rows, void *values, const char *name, const char *text,
                struct ddp_err *err) DDP_MUST_CHECK;
/* Sets the field of every row to its default. */
int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_opt_result {
    /* The arguments that are not options, in order. All arguments after "--" are operands. */
    const char *operands[64];
    int operand_count;
    uint64_t given[2]; /* bit i is set if the user named row i */
};
/* Parses argv[1..argc). The table has at most 128 rows. */
int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the user named the option. */
bool ddp_opt_given(const struct ddp_opt *rows, const struct ddp_opt_result *result,
                   const char *name);

/* Returns the long name of the i-th row, or NULL past the end. Pass this function and `rows` to
 * ddp_nearest. */
const char *ddp_opt_candidate(const void *rows, int i);
/* Joins the choices by `separator`, for example to "sum, avg, prod". Text that does not fit is cut
 * and ends in "...". */
void ddp_opt_choices_join(const struct ddp_opt_choices *words, const char *separator, char *out,
                          size_t out_bytes);

/* Appends the description of one row, without a newline: help, choices, default and range. */
void ddp_opt_describe(const struct ddp_opt *row, struct ddp_strbuf *out);
/* Returns the heading of a row, or "Options" if the row has none. */
const char *ddp_opt_group(const struct ddp_opt *row);
/* Appends text and a newline. Wraps the text at spaces so that no line is longer than `width`,
 * unless one word is. The current line already has `column` characters. Further lines begin at
 * column `indent`. */
void ddp_text_wrap(struct ddp_strbuf *out, size_t column, size_t indent, size_t width,
                   const char *text);
/* Appends the help text of all rows, by group, wrapped at 80 columns. */
void ddp_opt_help(const struct ddp_opt *rows, struct ddp_strbuf *out);

/* Returns the candidate nearest to `text` by edit distance (nearest.c), or NULL if none is near
 * enough to suggest. candidate(ctx, i) returns the i-th candidate, or NULL past the end. */
const char *ddp_nearest(const char *text, const char *(*candidate)(const void *ctx, int i),
                        const void *ctx);

#ifdef __cplusplus
}
#endif
#endif
