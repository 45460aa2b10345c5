/* Options: one row is at once the command-line flag, the configuration key, the default, the range
 * and the help.
 *
 * A command owns a struct of values; its rows say where in it a value lies. ddp_opt_defaults() sets
 * every default through the same parser as a user's text, so a default that is not legal cannot
 * exist. Parsing is strict: unknown option, missing or illegal value, a value for a flag, an
 * abbreviation: DDP_EUSAGE that names it, lists the legal ones and suggests the nearest. Given
 * twice: the last one wins, except that lists are replaced, not appended. What this does not do:
 * print, exit, or know any command. */
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
#define DDP_OPT_ITEM_MAX 256 /* bytes of one item of a string list, NUL included */

/* The type of the field at `offset`. */
enum ddp_opt_kind {
    DDP_OPT_FLAG,        /* bool; takes no value */
    DDP_OPT_INT,         /* int64_t in [min, max] */
    DDP_OPT_DOUBLE,      /* double in [min, max] */
    DDP_OPT_SIZE,        /* uint64_t bytes, ddp_parse_size, in [min, max] */
    DDP_OPT_STRING,      /* const char *, borrowed from argv */
    DDP_OPT_ENUM,        /* int: the index of the word in `words` */
    DDP_OPT_INT_LIST,    /* struct ddp_int_list */
    DDP_OPT_SIZE_LIST,   /* struct ddp_size_list */
    DDP_OPT_ENUM_LIST,   /* struct ddp_int_list of word indices; `all` is every word */
    DDP_OPT_STRING_LIST, /* struct ddp_string_list; comma separated, copied */
    DDP_OPT_CUSTOM       /* set by `parse` */
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

/* word(i): the i-th legal word, NULL past the end. May read a registry, so help never repeats a
 * table. alias (optional): index of an accepted other spelling, or -1. */
struct ddp_opt_words {
    const char *(*word)(int i);
    int (*alias)(const char *text);
};

/* name: long name without dashes. short_name: 0 or a letter. value: the placeholder in help ("N",
 * "S[,S...]"), NULL for flags. initial: default as text (NULL: the field keeps what the caller put
 * there, and help shows no default). group: heading in help. min/max: legal range; both 0: any
 * value >= 0. */
struct ddp_opt {
    const char *name;
    char short_name;
    enum ddp_opt_kind kind;
    size_t offset;
    const char *value, *initial, *group, *help;
    double min, max;
    const struct ddp_opt_words *words;
    int (*parse)(const char *text, void *field, struct ddp_err *err);
    const char *alias; /* a second long name, or NULL */
};
#define DDP_OPT_END                                                                                \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* Sets the field of one option from text; text NULL for a flag. Used by the command line and by
 * configuration files. */
int ddp_opt_set(const struct ddp_opt *rows, void *values, const char *name, const char *text,
                struct ddp_err *err) DDP_MUST_CHECK;
/* Applies every row's default. */
int ddp_opt_defaults(const struct ddp_opt *rows, void *values, struct ddp_err *err) DDP_MUST_CHECK;

/* Result of a parse: operands (in order, "--" ends options), and which rows the user named (bit per
 * row index). */
struct ddp_opt_result {
    const char *operands[64];
    int operand_count;
    uint64_t given[2];
};
/* Parses argv[1..argc). Rows: at most 128. */
int ddp_opt_parse(const struct ddp_opt *rows, int argc, char *const *argv, void *values,
                  struct ddp_opt_result *result, struct ddp_err *err) DDP_MUST_CHECK;
bool ddp_opt_given(const struct ddp_opt *rows, const struct ddp_opt_result *result,
                   const char *name);

/* The i-th long name of rows, then NULL: a candidate function for ddp_nearest (ctx: rows). */
const char *ddp_opt_candidate(const void *rows, int i);
/* Words joined by `separator`: "sum, avg, prod". At most out_bytes - 1 bytes, cut with "...". */
void ddp_opt_words_join(const struct ddp_opt_words *words, const char *separator, char *out,
                        size_t out_bytes);

/* What one row is for, on one line: help, legal words, default, range. */
void ddp_opt_describe(const struct ddp_opt *row, struct ddp_strbuf *out);
/* Its heading; "Options" for rows without one. */
const char *ddp_opt_group(const struct ddp_opt *row);
/* Appends text and a newline, wrapped at spaces before column `width`; the line it continues is at
 * `column`, further ones begin at `indent`. */
void ddp_text_wrap(struct ddp_strbuf *out, size_t column, size_t indent, size_t width,
                   const char *text);
/* Help text of all rows, by group, wrapped at 80 columns, with defaults, ranges and legal words. */
void ddp_opt_help(const struct ddp_opt *rows, struct ddp_strbuf *out);

/* The candidate nearest to `text` by Damerau-Levenshtein distance, if near enough to suggest; else
 * NULL. */
const char *ddp_nearest(const char *text, const char *(*candidate)(const void *ctx, int i),
                        const void *ctx);

#ifdef __cplusplus
}
#endif
#endif
