/* Connects the ranks of `mpiexec ddpbench doctor`. */
#ifndef DDP_RUN_DOCTOR_CHILD_H
#define DDP_RUN_DOCTOR_CHILD_H

#include "run/doctor_report.h"

/* Connects the ranks of a job that mpiexec or srun started. Rank 0 then prints the findings of all
 * ranks. It prints equal findings once, with the hosts or ranks that have them. Returns true if
 * rank 0 has printed. Returns false if the ranks could not be connected in time. Each rank should
 * then print its own findings. All ranks of the job call this function. Sets *child to the process
 * to pass to ddp_doctor_end_child. */
bool ddp_doctor_job(const struct ddp_app *app, const struct ddp_sysinfo *info,
                    const struct ddp_finding *findings, int count, bool json, pid_t *child);
/* Waits for the child process that ddp_doctor_job has started, and kills it after a time limit.
 * `done` is the result of ddp_doctor_job. If the ranks could not be connected, the child may still
 * wait in MPI. Under Hydra the rank then kills the child at once. Other launchers would end the job
 * when the child ends, so the rank first gives the other hosts time to print. */
void ddp_doctor_end_child(const struct ddp_app *app, pid_t child, bool done);
/* Returns how long a rank waits before it exits if ddp_doctor_job has returned false, in us. The
 * rank waits because a launcher ends the job when the first rank fails, and the other ranks have to
 * print first. */
int64_t ddp_doctor_linger_us(const struct ddp_app *app);

#endif
