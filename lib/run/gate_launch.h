/* Runs one child process of a gate, and returns its figures as a struct ddp_result. The figures are
 * the values that the child writes, or the wall time of the child. */
#ifndef DDP_RUN_GATE_LAUNCH_H
#define DDP_RUN_GATE_LAUNCH_H

#include "run/gate_pairs.h"

/* The id of the only cell of a gate that judges the wall time. */
#define DDP_GATE_WALL_CELL "wall"

/* Warms up a gate that judges wall times: runs each command up to three times, and ignores the
 * times. Runs a command fewer times if its runs have already taken 3 s together. Does nothing in
 * gates that judge results. Returns the errors of ddp_gate_launch. */
int ddp_gate_warm_up(const struct ddp_gate_setup *setup, struct ddp_err *err) DDP_MUST_CHECK;

/* Runs the command of side `which` once and stores its result.
 *
 * A wall time is the time from the start of the child until it has ended, on the monotonic clock
 * (child.h). Like hyperfine with -N, the gate starts no shell, stdin is /dev/null, and stdout is
 * discarded.
 *
 * If setup->slow is positive, this function simulates a slow-down of the new command (DDP_NEXT).
 * For a wall time, the function multiplies the child's time by setup->slow, waits that long after
 * the end of the child, and adds the wait to the wall time. In a result of another program, the
 * function multiplies the value of the cell setup->slow_cell by 1 + setup->slow.
 *
 * Returns the errors that ddp_gate_measure lists. A flaw (result->flaw) or a document of ddpbench
 * without points is not an error here. The caller must check for both. Release *result with
 * ddp_result_release. */
int ddp_gate_launch(const struct ddp_gate_setup *setup, int which, struct ddp_result *result,
                    struct ddp_err *err) DDP_MUST_CHECK;

/* Returns the kind of value that a gate judges: "wall" for a wall time, "" for results of ddpbench,
 * and for results of other programs the name of their format, such as "osu". Each kind has a
 * noise-floor file of its own. */
const char *ddp_gate_kind(bool wall, enum ddp_foreign read);

#endif
