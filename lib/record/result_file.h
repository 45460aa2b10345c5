/* Reading a result document (schema ddpbench/1) back: what `gate` and `compare` need of it.
 *
 * The file is hostile: bounded before it is read, the digest checked, every figure that is derived
 * from others worked out again. Of training runs only the names are kept. Nothing is judged here.
 */
#ifndef DDP_RECORD_RESULT_FILE_H
#define DDP_RECORD_RESULT_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_RESULT_MAX_POINTS 100000
#define DDP_RESULT_MAX_RUNS   10000

/* A measured point. Times in ns; NaN where the document says null. launch: the first, of a
 * sweep of several (0: there is one); the figures are then those of the launches' medians. */
struct ddp_result_point {
    char id[192];
    int launch;
    int64_t iterations;
    double injected_percent; /* --inject-delay; NaN: none */
    double median_ns, ci95_lo_ns, ci95_hi_ns;
    double pingpong_ns[2];
};

/* status: "complete", "partial" or "failed". fingerprint: what must be equal for two results to be
 * of one machine and set-up: hosts with processor and cores, ranks, backend. build: version,
 * commit, flags. points [count], unique ids.
 */
struct ddp_result {
    char status[12], label[64], fingerprint[512], build[256];
    char reason[256]; /* why the status is not "complete"; "" */
    /* Why no figure of the document may be judged: its status is "failed", a point has wrong data
     * or no valid iterations. "" when there is no such reason. */
    char flaw[512];
    bool wrong_data; /* a collective delivered wrong data */
    char cpu[96];    /* and cores: of the hosts, "" and -1 where they differ */
    int cores;
    double copy_GBps; /* the memory control, geometric mean over launches; NaN: none */
    struct ddp_result_point *points;
    size_t count;
    char (*runs)[192]; /* [run_count], the names of the training runs, each once */
    size_t run_count;
};

/* DDP_ENOINPUT: no such file; DDP_EINPUT: not a result of ours, damaged, or figures that contradict
 * each other, with the point's id; DDP_EIO, DDP_ENOMEM. */
int ddp_result_read(const char *path, struct ddp_result *out, struct ddp_err *err) DDP_MUST_CHECK;
/* As read, from text[bytes] that `name` stands for in messages. */
int ddp_result_parse(const char *text, size_t bytes, const char *name, struct ddp_result *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_result_release(struct ddp_result *result);
/* NULL when there is no such point. */
const struct ddp_result_point *ddp_result_find(const struct ddp_result *result, const char *id);
/* Does one of the points have an injected delay that the other does not have? */
bool ddp_result_delays_differ(const struct ddp_result_point *a, const struct ddp_result_point *b);

#ifdef __cplusplus
}
#endif
#endif
