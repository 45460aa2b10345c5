/* Reads the parts of a result document (schema ddpbench/1) that `gate` and `compare` need.
 *
 * The file is untrusted. Its size is checked before it is read, its digest is checked, and algbw
 * and busbw are recomputed. From a training run, the reader takes the name, the step time, the
 * accuracy and settings such as the seed. The step time becomes a point. */
#ifndef DDP_RECORD_RESULT_FILE_H
#define DDP_RECORD_RESULT_FILE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "record/id_index.h"
#include "record/vary.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_RESULT_MAX_POINTS 100000
#define DDP_RESULT_MAX_RUNS   10000
#define DDP_RESULT_RUN_NAME   187 /* Bytes of the name of a training run. */

/* A measured point, or the step time of a training run. Times are in ns, NaN where the document has
 * null. If a sweep has several repetitions, ddp_result_fold has merged the points of all
 * repetitions. */
struct ddp_result_point {
    char id[192];
    bool step; /* The point is the step time of a training run. */
    /* Number of the repetition, or of the first one if several were merged. 0: there is only
     * one. */
    int launch;
    int64_t iterations;
    double injected_percent; /* Value of --inject-delay, positive. NaN: none. */
    double median_ns, ci95_lo_ns, ci95_hi_ns;
    double pingpong_ns[2];
};

/* A training run. */
struct ddp_result_run {
    char name[DDP_RESULT_RUN_NAME];
    char group[DDP_RESULT_RUN_NAME]; /* The name without the seed. */
    int launch;                      /* Number of the repetition. 0: there is only one. */
    bool timed;                      /* `points` has the step time. False: the run has no epoch. */
    bool diverged;                   /* A loss of the last epoch is not finite. */
    double seed;                     /* NaN: unknown. */
    double accuracy;                 /* As a fraction of 1. NaN: unknown. */
    double eval_images;              /* Number of evaluation images. NaN: unknown. */
};

/* Facts of a machine and set-up that decide whether results can be compared. A fact that the
 * document lacks is "unknown", which equals only another unknown fact. */
enum ddp_fact {
    DDP_FACT_CPU,    /* model of the processors */
    DDP_FACT_CORES,  /* cores that the ranks could use */
    DDP_FACT_KERNEL, /* major version */
    DDP_FACT_RANKS,
    DDP_FACT_BACKEND,
    DDP_FACT_MPI, /* MPI library and its version. "none" if no MPI was in use. */
    DDP_FACT_COUNT
};

/* Rules for reading a document. */
struct ddp_result_rules {
    unsigned vary;      /* keys that are left out of ids and the fingerprint (vary.h) */
    bool accept_edited; /* accept a document whose digest is missing or wrong */
};

/* A result document. */
struct ddp_result {
    /* status: "complete", "partial" or "failed". fingerprint: the facts except those that --vary
     * leaves out. Results with equal fingerprints can be compared. build: version, commit and
     * compiler flags. hosts: names of the hosts, which are not part of the fingerprint. */
    char status[12], label[64], note[64], fingerprint[512], build[256], hosts[256];
    char fact[DDP_FACT_COUNT][256];
    bool edited; /* The digest is missing or wrong. */
    /* Why the status is not "complete". "" if it is complete. */
    char reason[256];
    /* Why no figure of the document may be judged. "" if there is no such reason. Possible reasons
     * are the status "failed", a point with wrong data, and a point without valid iterations. For
     * results of other benchmarks (foreign_file.h), the reason is a failed benchmark or wrong
     * data. */
    char flaw[512];
    bool wrong_data; /* A collective delivered wrong data. */
    bool busy;       /* A point has the quality code "busy": other programs ran. */
    char cpu[96];    /* Processor and cores of the hosts. "" and -1 if the hosts differ. */
    int cores;
    /* Geometric mean of the copy speeds in the document (struct ddp_control). NaN: none. */
    double copy_GBps;
    double copy_bytes; /* largest number of bytes that a rank copied for copy_GBps; 0: unknown */
    struct ddp_result_point *points; /* [count], with unique ids. */
    size_t count;
    struct ddp_id_index index;   /* of the points */
    struct ddp_result_run *runs; /* [run_count], sorted by name and repetition. */
    size_t run_count;
};

/* The members of struct ddp_result that `compare --across` shows. */
extern const struct ddp_fields ddp_result_fields;

/* Reads a file. rules: NULL means that no key varies and that no edited document is accepted.
 * Returns DDP_ENOINPUT if the file cannot be opened, DDP_EPERM if it may not be read, DDP_EIO or
 * DDP_ENOMEM. Returns DDP_EINPUT if the file is not a result of ddpbench, is damaged, or contains
 * contradictory figures (the message names the point). Returns DDP_EUSAGE if two points have the
 * same id once the keys of --vary are left out, or if --vary is given and an id does not have the
 * form of ddp_point_id. */
int ddp_result_read(const char *path, const struct ddp_result_rules *rules, struct ddp_result *out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Parses the first `bytes` bytes of `text`. name: the document's name in messages. Returns
 * DDP_EINPUT, DDP_EUSAGE or DDP_ENOMEM like ddp_result_read. */
int ddp_result_parse(const char *text, size_t bytes, const char *name,
                     const struct ddp_result_rules *rules, struct ddp_result *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* ddp_result_parse in two steps, for callers that read more of the document. The first step parses
 * the JSON, checks the digest, and sets *edited to whether the digest is missing or wrong. The
 * caller releases *doc with cJSON_Delete. The second step fills *out. */
int ddp_result_parse_json(const char *text, size_t bytes, const char *name,
                          const struct ddp_result_rules *rules, bool *edited, cJSON **doc,
                          struct ddp_err *err) DDP_MUST_CHECK;
int ddp_result_from_json(const cJSON *doc, bool edited, const char *name,
                         const struct ddp_result_rules *rules, struct ddp_result *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Leaves the keys of --vary out of the ids of all points except step times. ddp_result_read_runs
 * has already left these keys out of the ids of step times. Builds result->index. The functions
 * that read a document call this function. Returns DDP_EUSAGE like ddp_result_read, or DDP_ENOMEM.
 */
int ddp_result_index(unsigned vary, const char *name, struct ddp_result *result,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Merges the points with equal ids, one per repetition, into one point. Its median is the median of
 * the repetitions' medians. The interval belongs to this median of medians, and is unknown with
 * fewer than six repetitions. A point whose id occurs only once keeps its own interval. A
 * repetition counts as one statistical sample, because the iterations of a repetition are not
 * independent. Returns DDP_EINPUT if two points with equal ids have the same `launch`, or
 * DDP_ENOMEM. */
int ddp_result_fold(struct ddp_result *result, const char *name,
                    struct ddp_err *err) DDP_MUST_CHECK;
void ddp_result_release(struct ddp_result *result);
/* Returns the point with this id, or NULL. */
const struct ddp_result_point *ddp_result_find(const struct ddp_result *result, const char *id);
/* Returns whether the injected delays of two points differ. */
bool ddp_result_delays_differ(const struct ddp_result_point *a, const struct ddp_result_point *b);
/* Writes a sentence about the first cell whose injected delays differ between base and next.
 * Returns false if there is no such cell. */
bool ddp_result_find_delays(const struct ddp_result *base, const struct ddp_result *next, char *out,
                            size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
