/* A command line as text, split into words as a POSIX shell splits it, without a shell: blanks
 * separate, '...' and "..." and a backslash quote; nothing is expanded, and characters that would
 * do something in a shell (| & ; < > $ ` and newline) are errors unless quoted. */
#ifndef DDP_BENCH_WORDS_H
#define DDP_BENCH_WORDS_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_WORDS_MAX 256

/* word [count], NULL-terminated; all in one block. */
struct ddp_words {
    char **word;
    int count;
    char *text;
};
int ddp_words_split(const char *text, struct ddp_words *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_words_release(struct ddp_words *words);

#ifdef __cplusplus
}
#endif
#endif
