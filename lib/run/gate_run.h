/* Runs `ddpbench gate`, from its options to the exit code. */
#ifndef DDP_RUN_GATE_RUN_H
#define DDP_RUN_GATE_RUN_H

#include "record/noise.h"
#include "run/command.h"
#include "run/gate_pairs.h"
#include "run/outputs.h"

struct ddp_gate_values {
    struct ddp_verdict_outputs outputs;
    const char *command[2];
    struct ddp_string_list env[2];
    int64_t pairs; /* number of pairs; 0: at most max_pairs */
    int64_t max_pairs, seed;
    int64_t runs;                        /* runs of each command in a pair; 0: the gate chooses */
    double min_effect, launch_timeout_s; /* min_effect in percent; 0: not given */
    double accuracy_margin;              /* as a fraction of 1 */
    struct ddp_int_list vary;            /* enum ddp_vary_key */
    const char *noise_file;
    int metric; /* 0: the result that a command writes, 1: its wall time */
    int read;   /* enum ddp_foreign */
    bool selftest, restart;
    struct ddp_int_list gates;
    double inject; /* percent */
    bool quiet, help;
};

/* Runs the gate or, if v->selftest is set, the self-test. The caller has checked the options.
 * Returns 0, DDP_EREGRESSION or DDP_EINCONCLUSIVE by the verdict, or an error. */
int ddp_gate_run(struct ddp_app *app, const struct ddp_gate_values *v,
                 struct ddp_err *err) DDP_MUST_CHECK;

/* Runs the gates that are missing in the journal of the self-test, and stores the noise floor.
 * Defined in selftest.c. env is the NULL-terminated list of variables, "K=V", that both sides get.
 * *gate is the template of every gate. It lacks the commands and the progress functions. *noise
 * receives the results. *out receives the overall verdict and points to *noise. */
int ddp_gate_selftest(struct ddp_app *app, const struct ddp_gate_values *v, const char *const *env,
                      const struct ddp_gate_setup *gate, struct ddp_noise *noise,
                      struct ddp_verdict_record *out, struct ddp_err *err) DDP_MUST_CHECK;

#endif
