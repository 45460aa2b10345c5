/* The noise floor of a machine: what `ddpbench gate --selftest` has measured about the gate here,
 * as a small file that later gates and comparisons read.
 *
 * It is of one machine (processor, cores, kernel) and one compiler and flags, for other machines
 * and builds have other noise; a new commit alone does not void it. The file is JSON with a digest,
 * and hostile: bounded, every value checked. What this does not do: choose where the file lies, or
 * compute what is in it (bench/selftest.h). */
#ifndef DDP_RECORD_NOISE_H
#define DDP_RECORD_NOISE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_noise_machine {
    char cpu[96], kernel[64];
    char build[256]; /* compiler and flags */
    int cores;       /* of the machine */
};
/* Of this machine and this build. */
void ddp_noise_machine_read(struct ddp_noise_machine *out);
/* The same on equal machines: for file names. */
uint64_t ddp_noise_machine_key(const struct ddp_noise_machine *machine);

/* Effects as parts, 0.05 = 5 %. same: A/A gates, of which false_alarms said FAIL and inconclusive
 * could not tell; injected: gates with one cell slowed by injected_effect, of which `found` said so
 * and `elsewhere` blamed another cell; all judged with min_effect. noise_floor: the least
 * min_effect with which 90 % of the A/A gates pass. detectable: the least slow-down of a cell that
 * 90 % of the gates find with the larger of min_effect and noise_floor; NaN: none up to 100 %. */
struct ddp_noise {
    struct ddp_noise_machine machine;
    char measured[24], command[512];
    int pairs, cells;
    int same, false_alarms, inconclusive;
    int injected, found, elsewhere;
    double injected_effect, min_effect, noise_floor, detectable;
};

/* The members, without schema, machine and digest: for the file and for result documents. */
void ddp_noise_add(cJSON *obj, const struct ddp_noise *noise);

/* From text[bytes] that `name` stands for in messages. DDP_EINPUT. */
int ddp_noise_parse(const char *text, size_t bytes, const char *name, struct ddp_noise *out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* DDP_ENOINPUT: no such file; DDP_EPERM; DDP_EINPUT: not one of ours, damaged; DDP_EMISMATCH: of
 * another machine or build. */
int ddp_noise_read(const char *path, struct ddp_noise *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Replaces the file as a whole: written beside it, brought to the disk, renamed. DDP_ECREATE,
 * DDP_EIO. */
int ddp_noise_write(const char *path, const struct ddp_noise *noise,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* A finished gate of the self-test, as its journal has it; behind it ddp_noise_gate_doubles()
 * doubles: the medians in ns [side][cell][pair], NaN where a launch lacks the cell, then the
 * controls ping-pong and memory [2][side][pair]; behind those the cells' ids [cells][192].
 * injected: the cell that was slowed, -1 in an A/A gate. index: among those of its kind. */
struct ddp_noise_gate {
    int32_t index, injected, pairs, cells, rerun, mixed;
};
#define DDP_NOISE_ID_BYTES  192
#define DDP_NOISE_CELLS_MAX 100000
size_t ddp_noise_gate_doubles(const struct ddp_noise_gate *gate);
/* Of all three together. */
size_t ddp_noise_gate_bytes(const struct ddp_noise_gate *gate);

#ifdef __cplusplus
}
#endif
#endif
