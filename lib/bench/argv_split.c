#include "bench/argv_split.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Copies the argument at *at to *to without its quotes. Advances *at and *to past the argument. */
static int one_word(const char **at, char **to, const char *whole, struct ddp_err *err)
{
    const char *in = *at;
    char *out = *to;
    char quote = 0;
    for (; *in && (quote || !strchr(" \t\n", *in)); in++) {
        if (!quote && (*in == '\'' || *in == '"')) {
            quote = *in;
        } else if (quote && *in == quote) {
            quote = 0;
        } else if (*in == '\\' && quote != '\'' && in[1]) {
            *out++ = *++in;
        } else if (!quote && strchr("|&;<>$`", *in)) {
            ddp_fail(err, DDP_EUSAGE,
                     "'%c' in '%s' must be quoted, because the command runs without a shell", *in,
                     whole);
            return ddp_hint(err, "quote it, or put the command into a script");
        } else {
            *out++ = *in;
        }
    }
    if (quote)
        return ddp_fail(err, DDP_EUSAGE, "a %c is not closed in '%s'", quote, whole);
    *out++ = '\0';
    *at = in;
    *to = out;
    return 0;
}

int ddp_argv_split(const char *text, struct ddp_argv *out, struct ddp_err *err)
{
    struct ddp_argv w = {.word = ddp_calloc(DDP_ARGV_MAX + 1, sizeof *w.word),
                         .text = malloc(strlen(text) + 2)};
    char *to = w.text;
    int rc;
    if (!w.word || !w.text) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to split a command");
        goto err_words;
    }
    for (const char *at = text;;) {
        at += strspn(at, " \t");
        if (*at == '\0')
            break;
        if (*at == '\n' || w.count == DDP_ARGV_MAX) {
            rc = ddp_fail(err, DDP_EUSAGE, "%s in a command",
                          *at == '\n' ? "a newline" : "too many arguments");
            goto err_words;
        }
        w.word[w.count++] = to;
        DDP_TRY_GOTO(one_word(&at, &to, text, err), err_words);
    }
    if (w.count == 0) {
        rc = ddp_fail(err, DDP_EUSAGE, "the command '%s' is empty", text);
        goto err_words;
    }
    *out = w;
    return 0;

err_words:
    ddp_argv_release(&w);
    return rc;
}

void ddp_argv_release(struct ddp_argv *words)
{
    free(words->word);
    free(words->text);
    *words = (struct ddp_argv){.count = 0};
}
