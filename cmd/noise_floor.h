/* Where this machine's noise floor is stored, and which effects matter because of it. */
#ifndef DDP_CMD_NOISE_FLOOR_H
#define DDP_CMD_NOISE_FLOOR_H

#include "cmd.h"
#include "record/noise.h"

/* The row of a values struct `type` whose member `noise_file` it is. */
#define DDP_NOISE_FLOOR_ROW(type)                                                                  \
    {                                                                                              \
        .name = "noise-floor", .kind = DDP_OPT_STRING, .offset = offsetof(type, noise_file),       \
        .value = "FILE", .group = "Statistics",                                                    \
        .help = "where this machine's noise floor is kept (default: a file for each machine and "  \
                "build in $XDG_STATE_HOME/ddpbench, else ~/.local/state/ddpbench)"                 \
    }

/* given: --noise-floor, or NULL. out: "" when there is no place for it (no home). DDP_EUSAGE: it
 * is too long. */
int ddp_noise_floor_path(const char *given, char *out, size_t out_bytes,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* Makes the folders the default path lies in; a given path's folder must be there. DDP_ECREATE. */
int ddp_noise_floor_make_folder(const char *given, const char *path,
                                struct ddp_err *err) DDP_MUST_CHECK;

/* An effect that matters, as a part, and in words why this one. noise_floor: NaN when none is
 * stored, or it does not count here. */
struct ddp_min_effect {
    double effect, noise_floor;
    char from[640];
};
/* asked: --min-effect, as a part; NaN: not given, then it is the larger of `least` and the noise
 * floor stored for this machine. given: --noise-floor, which must be there; else a missing file is
 * no error, but a damaged one is. */
int ddp_min_effect_choose(double asked, double least, const char *given, struct ddp_min_effect *out,
                          struct ddp_err *err) DDP_MUST_CHECK;

#endif
