/* Connects the ranks of `mpiexec ddpbench doctor`. */
#ifndef DDP_CMD_DOCTOR_CHILD_H
#define DDP_CMD_DOCTOR_CHILD_H

#include "run/doctor_report.h"

/* Connects the ranks of a job that mpiexec or srun started. Rank 0 then prints the findings of all
 * ranks: equal ones once, and with the hosts or ranks that have them. Returns true if that was
 * done. Returns false if the ranks could not be connected. Nothing is printed then. All ranks of
 * the job call this function. Sets *child for ddp_doctor_end_child. */
bool ddp_doctor_job(const struct ddp_app *app, const struct ddp_sysinfo *info,
                    const struct ddp_finding *findings, int count, bool json, pid_t *child);
/* Waits for the child process that ddp_doctor_job has started, and kills it after a time limit.
 * `done`: the result of ddp_doctor_job. If the ranks could not be connected, the child still waits
 * in MPI. Under Hydra the rank kills it at once. Other launchers would end the job when the child
 * ends, so the rank waits until the other hosts have printed. */
void ddp_doctor_end_child(const struct ddp_app *app, pid_t child, bool done);
/* Returns how long a rank that cannot take part in ddp_doctor_job waits for the others before it
 * exits, in us. A launcher ends the job when the first rank fails. */
int64_t ddp_doctor_linger_us(const struct ddp_app *app);

#endif
