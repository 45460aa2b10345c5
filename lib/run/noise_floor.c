#include "run/noise_floor.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int ddp_noise_floor_path(const char *kind, const char *given, char *out, size_t out_bytes,
                         struct ddp_err *err)
{
    /* The XDG Base Directory Specification 0.8 says to ignore a relative path in XDG_STATE_HOME. */
    const char *state = getenv("XDG_STATE_HOME"), *home_dir = getenv("HOME");
    struct ddp_noise_machine machine;
    const bool xdg = state && state[0] == '/';
    int n = 0;
    out[0] = '\0';
    ddp_noise_machine_read(&machine);
    if (given)
        n = snprintf(out, out_bytes, "%s", given);
    else if (xdg || (home_dir && home_dir[0] == '/'))
        n = snprintf(out, out_bytes, "%s%s/ddpbench/noise-%s%s%016llx.json", xdg ? state : home_dir,
                     xdg ? "" : "/.local/state", kind, kind[0] ? "-" : "",
                     (unsigned long long)ddp_noise_machine_key(&machine));
    if (n < 0 || (size_t)n >= out_bytes)
        return ddp_fail(err, DDP_EUSAGE, "the path of the noise floor is too long: '%.200s...'",
                        out);
    return 0;
}

int ddp_noise_floor_make_folder(const char *given, const char *path, struct ddp_err *err)
{
    char folder[4096];
    if (given || path[0] == '\0')
        return 0;
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create '%s'", folder);
    }
    return 0;
}

int ddp_min_effect_choose(double asked, double least, const char *kind, const char *given,
                          struct ddp_min_effect *out, struct ddp_err *err)
{
    struct ddp_err absent = DDP_ERR_INIT;
    struct ddp_noise noise;
    char path[4096];
    DDP_TRY(ddp_noise_floor_path(kind, given, path, sizeof path, err));
    int rc = path[0] ? ddp_noise_read(path, &noise, &absent) : DDP_ENOINPUT;
    if (rc != 0 && (given || rc != DDP_ENOINPUT)) {
        *err = absent;
        return rc;
    }
    *out = (struct ddp_min_effect){.effect = isnan(asked) ? least : asked,
                                   .noise_floor = rc == 0 ? noise.noise_floor : NAN};
    if (rc == 0 && isnan(asked))
        out->effect = fmax(least, noise.noise_floor);
    if (rc != 0)
        snprintf(out->from, sizeof out->from,
                 "%s; no noise floor is stored for this machine: `ddpbench gate --selftest%s%s` "
                 "measures it",
                 isnan(asked) ? "the default" : "as asked",
                 kind[0] == '\0'             ? ""
                 : strcmp(kind, "wall") == 0 ? " --metric "
                                             : " --read ",
                 kind);
    else
        snprintf(out->from, sizeof out->from,
                 "%s; the noise floor of this machine is %.2g %% (%d A/A gates, %.10s, %.400s)",
                 !isnan(asked)               ? "as asked"
                 : noise.noise_floor > least ? "the noise floor"
                                             : "the default",
                 noise.noise_floor * 100, noise.same, noise.measured, path);
    return 0;
}
