/* Splits a command line into arguments by rules like those of a POSIX shell, without running a
 * shell. Spaces and tabs separate arguments. '...', "..." and backslashes quote; inside "..." a
 * backslash quotes any character. Nothing is expanded. An unquoted | & ; < > $ ` or newline is an
 * error, because a shell would interpret it. */
#ifndef DDP_BENCH_ARGV_SPLIT_H
#define DDP_BENCH_ARGV_SPLIT_H

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_ARGV_MAX 256

struct ddp_argv {
    char **word; /* [count], then NULL: pointers into text */
    int count;
    char *text;
};
/* Splits text. Release *out with ddp_argv_release. Returns DDP_EUSAGE for an open quote, an
 * unquoted special character, an empty command, or more than DDP_ARGV_MAX arguments. */
int ddp_argv_split(const char *text, struct ddp_argv *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_argv_release(struct ddp_argv *words);

#ifdef __cplusplus
}
#endif
#endif
