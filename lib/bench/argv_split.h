/* Splits a command line into arguments as a POSIX shell does, without a shell. Blanks separate
 * arguments; '...', "..." and backslashes quote. Nothing is expanded. Unquoted characters that have
 * a meaning in a shell (| & ; < > $ ` and newline) are errors. */
#ifndef DDP_BENCH_ARGV_SPLIT_H
#define DDP_BENCH_ARGV_SPLIT_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_ARGV_MAX 256

struct ddp_argv {
    char **word; /* [count], then NULL: the arguments, which point into text */
    int count;
    char *text;
};
/* Splits text. Release *out with ddp_argv_release. Returns DDP_EUSAGE for an open quote, a shell
 * character, no argument, or more than DDP_ARGV_MAX. */
int ddp_argv_split(const char *text, struct ddp_argv *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_argv_release(struct ddp_argv *words);

#ifdef __cplusplus
}
#endif
#endif
