/* Runs one child process of a gate, and returns its figures as a result: the result that the child
 * writes, or its wall time. */
#ifndef DDP_RUN_GATE_LAUNCH_H
#define DDP_RUN_GATE_LAUNCH_H

#include "run/gate_pairs.h"

/* The id of the only cell of a gate that judges the wall time. */
#define DDP_GATE_WALL_CELL "wall"

/* Prepares a gate. For a wall time, runs both commands untimed: three times, or fewer once the runs
 * of a command took 3 s. Otherwise does nothing. Returns the errors of ddp_gate_launch. */
int ddp_gate_warm_up(const struct ddp_gate_setup *setup, struct ddp_err *err) DDP_MUST_CHECK;

/* Runs the command of side `which` once and stores its result.
 *
 * A wall time is the time from the start of the child until it has ended, on the monotonic clock
 * (child.h). Like hyperfine with -N, the gate starts no shell, stdin is /dev/null, and stdout is
 * discarded.
 *
 * setup->slow simulates a slow-down of new. A wall time then goes on for this fraction of the run's
 * time after the child has ended. In a result of another program the value of setup->slow_cell is
 * multiplied.
 *
 * Returns the errors that ddp_gate_measure lists. A result of ddpbench may have a flaw or no point.
 * Release *result with ddp_result_release. */
int ddp_gate_launch(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* Returns "wall", the name of the format that is read, or "" for results of ddpbench. The noise
 * floors of different kinds are stored in different files. */
const char *ddp_gate_kind(bool wall, enum ddp_foreign read);

#endif
