/* The noise floor of a machine: the result of `ddpbench gate --selftest`, stored as a small file
 * that later gates and comparisons read.
 *
 * A noise floor is valid for one machine (processor, cores, kernel) and one compiler with its
 * flags, because other machines and builds have other noise. A new commit does not invalidate the
 * noise floor. The file is JSON with a digest. The file is untrusted, so its size is limited and
 * every value is checked. run/selftest.h computes the contents; run/noise_floor.h chooses the
 * path. */
#ifndef DDP_RECORD_NOISE_H
#define DDP_RECORD_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"
#include "record/field.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_noise_machine {
    char cpu[96], kernel[64];
    char build[256]; /* Compiler and flags. */
    int cores;       /* Cores of the machine. */
};
/* Describes this machine and this build. */
void ddp_noise_machine_read(struct ddp_noise_machine *out);
/* Returns a hash of machine and build, for file names. */
uint64_t ddp_noise_machine_key(const struct ddp_noise_machine *machine);

/* Outcome of a self-test. Effects are fractions: 0.05 means 5 %. The self-test judges all its gates
 * with min_effect. */
struct ddp_noise {
    struct ddp_noise_machine machine;
    char measured[24], command[512];
    int pairs; /* Largest number of pairs in a gate. */
    int cells;
    /* Medians over all gates. NaN in files of versions that did not store them. */
    double median_pairs, median_seconds;
    int same;         /* Number of A/A gates, which have the same command on both sides. */
    int false_alarms; /* Number of A/A gates that ended in FAIL. */
    int inconclusive; /* Number of A/A gates that ended in INCONCLUSIVE. */
    int injected;     /* Number of gates with one cell slowed by injected_effect. */
    int found;        /* Number of injected gates that reported the slowed cell. */
    int elsewhere;    /* Number of injected gates that reported another cell. */
    double injected_effect, min_effect;
    double noise_floor; /* The smallest min_effect with which 90 % of the A/A gates pass. */
    /* The smallest slow-down that would be found in 90 % of the cells if it were added to one side
     * of the A/A gates. Here the gates are judged with the larger one of min_effect and
     * noise_floor. NaN: no slow-down up to 100 % would be found. */
    double detectable;
};

/* The members of struct ddp_noise that documents show: all except `machine`. */
extern const struct ddp_fields ddp_noise_fields;

/* Parses the first `bytes` bytes of `text`. name: the document's name in messages. Returns
 * DDP_EINPUT if the text is not a noise floor, or if its digest is wrong. */
int ddp_noise_parse(const char *text, size_t bytes, const char *name, struct ddp_noise *out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Reads a file. Returns DDP_ENOINPUT if the file cannot be opened, DDP_EPERM if it may not be read,
 * and DDP_EINPUT if it is damaged or not a noise floor. Returns DDP_EMISMATCH if the noise floor
 * belongs to another machine or build. */
int ddp_noise_read(const char *path, struct ddp_noise *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces the file atomically: writes a temporary file beside it, syncs it to disk and renames it.
 * Returns 0, DDP_ECREATE, DDP_EIO or DDP_ENOMEM. */
int ddp_noise_write(const char *path, const struct ddp_noise *noise,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* A finished gate of the self-test, as stored in its journal. The struct is followed by
 * ddp_noise_gate_doubles() doubles and then by the ids of the cells, [cells][DDP_NOISE_ID_BYTES].
 * The first doubles are the medians in ns [side][pair][cell], NaN if the side lacks the cell in the
 * pair. The other doubles are the covariates of run/gate_pairs.h: ping-pong [side][pair], then
 * memory [side][pair]. */
struct ddp_noise_gate {
    int32_t index;    /* Number among the gates of the same kind, from 0. */
    int32_t injected; /* Index of the slowed cell. -1 in an A/A gate. */
    int32_t pairs, cells;
    int32_t rerun, mixed; /* See run/gate_pairs.h. */
    int64_t took_ms;      /* Duration of the gate. */
};
extern const struct ddp_fields ddp_noise_gate_fields;
#define DDP_NOISE_ID_BYTES  192
#define DDP_NOISE_CELLS_MAX 100000
size_t ddp_noise_gate_doubles(const struct ddp_noise_gate *gate);
/* Returns the number of bytes of the struct, the doubles and the ids together. */
size_t ddp_noise_gate_bytes(const struct ddp_noise_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
