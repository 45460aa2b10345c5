/* Chooses the file with this machine's noise floor, and the smallest effect that counts. The noise
 * floor is the slow-down that noise alone can cause between runs of the same command
 * (record/noise.h). */
#ifndef DDP_RUN_NOISE_FLOOR_H
#define DDP_RUN_NOISE_FLOOR_H

#include "run/command.h"
#include "record/noise.h"

/* Writes the path of the noise floor's file. `kind` is the result of ddp_gate_kind (gate_launch.h),
 * because each kind of value has a noise floor of its own. `given` is the value of --noise-floor,
 * or NULL for the default path. If neither XDG_STATE_HOME nor HOME is an absolute path, there is no
 * default path, and `out` becomes "". Returns DDP_EUSAGE if the path is too long. */
int ddp_noise_floor_path(const char *kind, const char *given, char *out, size_t out_bytes,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Creates the folders of the default path. The folder of a given path must exist. Returns
 * DDP_ECREATE on failure. */
int ddp_noise_floor_make_folder(const char *given, const char *path,
                                struct ddp_err *err) DDP_MUST_CHECK;

/* The smallest effect that counts. */
struct ddp_min_effect {
    /* Both members are fractions. noise_floor is NaN if none is stored. */
    double effect, noise_floor;
    char from[640]; /* a text that says why this effect was chosen */
};
/* Chooses the smallest effect that counts. `asked` is --min-effect as a fraction. If `asked` is
 * NaN, the larger of `least` and the stored noise floor is chosen. `kind` and `given` are as in
 * ddp_noise_floor_path. If `given` is not NULL, its file must exist. If `given` is NULL, the file
 * at the default path may be missing. A damaged file, or a file of another machine or build, is
 * always an error. */
int ddp_min_effect_choose(double asked, double least, const char *kind, const char *given,
                          struct ddp_min_effect *out, struct ddp_err *err) DDP_MUST_CHECK;

#endif
