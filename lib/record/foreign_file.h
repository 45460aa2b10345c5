/* Reads the results that other benchmarks print, for `ddpbench gate --read`.
 *
 * The text is untrusted: its size and the number of its cells are limited, and every name and value
 * is checked. If a name occurs several times, it becomes one cell with the median of its values. */
#ifndef DDP_RECORD_FOREIGN_FILE_H
#define DDP_RECORD_FOREIGN_FILE_H

#include "record/result_file.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_foreign {
    DDP_FOREIGN_NONE, /* a result document of ddpbench */
    /* JSON of Google Benchmark 1.5 or later. The value of a cell is the real time. If the document
     * has only aggregates, the value is the aggregate "median". */
    DDP_FOREIGN_GBENCH,
    /* Arrays of github-action-benchmark: customSmallerIsBetter and customBiggerIsBetter. */
    DDP_FOREIGN_ACTION_SMALLER,
    DDP_FOREIGN_ACTION_BIGGER,
    DDP_FOREIGN_NCCL_TESTS, /* table of nccl-tests: the times out of place and in place */
    DDP_FOREIGN_OSU,        /* table of the OSU micro-benchmarks: the first column after the size */
    DDP_FOREIGN_HYPERFINE,  /* document of hyperfine --export-json: the medians */
    DDP_FOREIGN_COUNT
};

/* The names of the formats, in the order of enum ddp_foreign, then NULL. The first is "json". */
extern const char *const ddp_foreign_names[DDP_FOREIGN_COUNT + 1];

/* Parses the first `bytes` bytes of `text`. The byte after them must be '\0'. name: the document's
 * name in messages. rules: as in ddp_result_read.
 *
 * In the points of *out, only the id and the median are known, and the interval of the median if a
 * name occurs at least six times. A time becomes the median in ns. Every other value v is converted
 * to a time, so that a smaller median is always better: v us if smaller values are better, and 1/v
 * us if bigger values are better. A bandwidth of OSU becomes the time of one message. The status of
 * *out is "complete". Its fingerprint and build are "", because the formats do not contain them.
 *
 * Returns the errors of ddp_result_parse, and DDP_EINPUT if a key or a line is wrong. The message
 * names this key or line. A failed benchmark or wrong data is not an error of this function:
 * out->flaw describes it. *out has no points if the text has no values. */
int ddp_foreign_parse(enum ddp_foreign format, const char *text, size_t bytes, const char *name,
                      const struct ddp_result_rules *rules, struct ddp_result *out,
                      struct ddp_err *err) DDP_MUST_CHECK;
/* Reads a file. Returns the errors of ddp_result_read. */
int ddp_foreign_read(enum ddp_foreign format, const char *path,
                     const struct ddp_result_rules *rules, struct ddp_result *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Sets *out to a result with the status "complete" and one point, which has the median `ns`.
 * Release it with ddp_result_release. Returns 0 or DDP_ENOMEM. */
int ddp_foreign_single(const char *id, double ns, struct ddp_result *out,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
