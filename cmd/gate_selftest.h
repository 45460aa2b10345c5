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
    double min_effect, launch_timeout_s; /* percent; 0: not given */
    const char *noise_file;
    bool selftest, restart;
    struct ddp_int_list gates;
    double inject; /* percent */
    bool quiet, help;
};

/* env: of both sides, NULL-terminated. gate: pairs, seed, times and folder filled in. Runs what is
 * missing, stores the noise floor; *out is the verdict of the whole, *noise what it points to. */
int ddp_gate_selftest(struct ddp_app *app, const struct ddp_gate_values *v, const char *const *env,
                      const struct ddp_gate_setup *gate, struct ddp_noise *noise,
                      struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;

/* The command line as results show it, into argv [app->argc]: --base-env and --new-env without the
 * values of variables that no result shows of our own environment. made [4]: words that are new,
 * NULL or free(), also after an error. */
int ddp_gate_shown_argv(const struct ddp_app *app, const struct ddp_gate_values *v, char **argv,
                        char *made[4], struct ddp_err *err) DDP_MUST_CHECK;

#endif
