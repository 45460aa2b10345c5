/* Options of commands. A row of a table defines the names of an option, its type, default, range
 * and help text. A row may also include another table.
 *
 * A command owns a struct of values, and each row has the offset of the option's field in this
 * struct. ddp_opt_defaults() sets the defaults with the parser that also reads the user's text. An
 * illegal default is therefore an error.
 *
 * Parsing is strict. An unknown option, an abbreviated option, a missing or illegal value, and a
 * value for a flag are errors (DDP_EUSAGE). The message names the option. For an unknown option,
 * the hint suggests the nearest option. For an unknown choice, the hint suggests the nearest
 * choice, or lists all choices if none is near. An option with a single value may be given only
 * once. A flag may be repeated. If a list option is repeated, its values are added to the list. */
#ifndef DDP_BASE_OPT_H
#define DDP_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/nearest.h"
#include "base/strbuf.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_OPT_LIST_MAX 64
#define DDP_OPT_ITEM_MAX 256 /* bytes of one item of a list, with its NUL */

/* The type of an option's field. */
enum ddp_opt_kind {
    DDP_OPT_FLAG,        /* bool; takes no value */
    DDP_OPT_INT,         /* int64_t in [min, max] */
    DDP_OPT_DOUBLE,      /* double in [min, max] */
    DDP_OPT_SIZE,        /* uint64_t bytes in [min, max], read by ddp_parse_size */
    DDP_OPT_STRING,      /* const char *; points into the parsed text */
    DDP_OPT_ENUM,        /* int: the index of a choice */
    DDP_OPT_INT_LIST,    /* struct ddp_int_list */
    DDP_OPT_SIZE_LIST,   /* struct ddp_size_list */
    DDP_OPT_ENUM_LIST,   /* struct ddp_int_list: indices of choices; "all" gives every choice */
    DDP_OPT_STRING_LIST, /* struct ddp_string_list: comma separated, copied */
    /* Kinds of rows that are not options: */
    DDP_OPT_GROUP, /* `name` is the heading in help of the rows that follow in this table */
    DDP_OPT_ROWS   /* stands for the rows of `include`, with `offset` added to their offsets */
};

/* The lists. `n` must be the first member. */
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

/* A row of a table. The macros below make rows. */
struct ddp_opt {
    enum ddp_opt_kind kind;
    const char *name;  /* long name, without dashes; NULL: the end of the table */
    char short_name;   /* a letter, or 0 */
    size_t offset;     /* offset of the field in the command's struct */
    const char *value; /* placeholder in help ("N", "S[,S...]"); NULL for flags */
    /* The default as text. If NULL, the field keeps the caller's value and help shows no
     * default. */
    const char *initial;
    const char *help;
    /* Replaces the hint of the error about an illegal value. May be NULL. */
    const char *advice;
    /* The legal range of numbers and sizes. If both are 0, any value >= 0 is legal. */
    double min, max;
    const char *const *choices; /* the names of the choices, ending with NULL */
    /* Used instead of `choices` if the names come from another table: returns the i-th name, or
     * NULL past the end. */
    const char *(*choice)(int i);
    /* Returns the index of the choice for which `text` is another spelling, or -1. May be NULL. */
    int (*spelling)(const char *text);
    /* For shell completion of an option without choices: writes the i-th value to offer for this
     * command, or returns false past the last. The user may give other values, too. An offered
     * value that ends in a colon is incomplete: the user adds an argument. NULL: no value is
     * offered. */
    bool (*offer)(const char *command, int i, char *out, size_t out_bytes);
    const struct ddp_opt *include;
    /* One line for the short page of `-h`. If it is "", the short page shows `help`. If it is NULL,
     * only the long page of `--help` has the option. */
    const char *brief;
    /* Filled by ddp_opt_get and ddp_opt_find. */
    const char *group; /* heading in help */
    int index;         /* position among all options, including those of included tables */
};

/* An option: DDP_OPT(INT, "iters", 'n', AT(iters), "N", "20", "timed iterations"). More members may
 * follow the help text, for example .min = 1, .max = 100 or .choices = names. */
#define DDP_OPT(kind_, name_, letter, at, value_, initial_, ...)                                   \
    {                                                                                              \
        .kind = DDP_OPT_##kind_, .name = name_, .short_name = letter, .offset = at,                \
        .value = value_, .initial = initial_, .help = __VA_ARGS__                                  \
    }
#define DDP_OPT_HEADING(text)                                                                      \
    {                                                                                              \
        .kind = DDP_OPT_GROUP, .name = text                                                        \
    }
/* The rows of another table, for a struct at offset `at` of the command's struct. */
#define DDP_OPT_INCLUDE(rows_, at)                                                                 \
    {                                                                                              \
        .kind = DDP_OPT_ROWS, .name = "", .offset = at, .include = rows_                           \
    }
#define DDP_OPT_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Copies option i of a table to *out. Returns false past the last option. */
bool ddp_opt_get(const struct ddp_opt *rows, int i, struct ddp_opt *out);
/* Copies the option with this long name to *out. Returns false if there is none. */
bool ddp_opt_find(const struct ddp_opt *rows, const char *name, struct ddp_opt *out);
/* Returns the name of the row's i-th choice, or NULL past the last. */
const char *ddp_opt_choice(const struct ddp_opt *row, int i);

/* Returns whether the option takes a list of values. */
bool ddp_opt_is_list(const struct ddp_opt *row);

/* Sets the field of every option that has a default (`initial`). */
int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_opt_result {
    /* The arguments that are not options, in order. All arguments after "--" are operands. */
    const char *operands[64];
    int operand_count;
    uint64_t given[2]; /* bit i is set if the user gave the option with index i */
    char unknown[64];  /* the long option that failed because it is unknown, or "" */
};
/* Parses argv[1] to argv[argc - 1]. The table has at most 128 options. */
int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err) DDP_MUST_CHECK;
/* Returns whether the user gave the option. */
bool ddp_opt_given(const struct ddp_opt *rows, const struct ddp_opt_result *result,
                   const char *name);

/* Appends the description of an option, without a newline: help, choices, default and range. */
void ddp_opt_describe(const struct ddp_opt *row, struct ddp_strbuf *out);
/* Appends the help text of all options, by group, wrapped at 80 columns. */
void ddp_opt_help(const struct ddp_opt *rows, struct ddp_strbuf *out);
/* Appends one line for each option that has a brief text. */
void ddp_opt_help_brief(const struct ddp_opt *rows, struct ddp_strbuf *out);

#ifdef __cplusplus
}
#endif
#endif
