/* Parts of `ddpbench gate`: its options, its self-test, its command line. Private to gate*.c. */
#ifndef DDP_CMD_GATE_SELFTEST_H
#define DDP_CMD_GATE_SELFTEST_H

#include "bench/gate.h"
#include "cmd.h"
#include "verdict_run.h"

struct ddp_gate_values {
    struct ddp_verdict_outputs outputs;
    const char *command[2];
    struct ddp_string_list env[2];
    int64_t pairs, seed;
    double min_effect, launch_timeout_s; /* min_effect in percent; 0 when not given */
    const char *noise_file;
    bool selftest, restart;
    struct ddp_int_list gates;
    double inject; /* percent */
    bool quiet, help;
};

/* Runs the gates that are missing in the journal of the self-test, and stores the noise floor. env
 * is the NULL-terminated list of variables to add for both sides. *gate is the template of every
 * gate, without the commands and the progress function. *noise receives the results. *out receives
 * the overall verdict and points to *noise. */
int ddp_gate_selftest(struct ddp_app *app, const struct ddp_gate_values *v, const char *const *env,
                      const struct ddp_gate_setup *gate, struct ddp_noise *noise,
                      struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Writes the command line that results show into argv, which has room for app->argc entries. In
 * --base-env and --new-env, *** replaces the values of variables that may be secret. made[4]
 * receives the strings allocated for this, or NULL. The caller frees them, also after an error. */
int ddp_gate_shown_argv(const struct ddp_app *app, const struct ddp_gate_values *v, char **argv,
                        char *made[4], struct ddp_err *err) DDP_MUST_CHECK;

#endif
