/* Detects from the environment which launcher started this process: mpiexec (Open MPI,
 * Hydra/MPICH), srun, torchrun, a Kubernetes Indexed Job, ddpbench's own --hosts, or none. ddpbench
 * cannot join the ranks of other launchers. launcher.c has a list of some of these other launchers.
 * ddp_launcher_detect fails if one of them started this process, unless its variables show that the
 * job has one task. */
#ifndef DDP_LAUNCH_LAUNCHER_H
#define DDP_LAUNCH_LAUNCHER_H

#include <stdbool.h>

#include "base/err.h"
#include "launch/rank_info.h"
#include "launch/rendezvous.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_launcher_kind {
    DDP_LAUNCHER_NONE, /* our own launcher will start the ranks */
    DDP_LAUNCHER_OPENMPI,
    DDP_LAUNCHER_HYDRA,
    DDP_LAUNCHER_SLURM,
    DDP_LAUNCHER_TORCHRUN,
    DDP_LAUNCHER_KUBERNETES,
    DDP_LAUNCHER_HOSTS /* --hosts of ddpbench (run/remote.h) */
};

/* The launcher of this process, and this rank's place in its job. */
struct ddp_launcher {
    enum ddp_launcher_kind kind;
    /* "own", "mpiexec (Open MPI)", "mpiexec (Hydra)", "srun", "torchrun",
     * "Kubernetes Indexed Job" or "ddpbench --hosts" */
    const char *name;
    /* True if the launcher provides no PMI, the interface through which MPI libraries connect
     * ranks. The ranks then meet over TCP (ddp_launcher_rendezvous), and cannot use MPI. */
    bool over_tcp;
    /* The MPI module for ranks of this launcher: "openmpi", "mpich", or NULL if unknown. */
    const char *flavour;
    /* `segment_fd` is -1. `oversubscribed` is true if this host has more ranks than cores. If the
     * number of ranks on this host is unknown, all ranks of the job are counted, except in
     * Kubernetes. The number of cores is the number in the affinity mask of this process or of its
     * parent, whichever is larger. */
    struct ddp_rank_info rank_info;
};

/* Detects the launcher. Returns DDP_EMISMATCH if the launcher's variables are missing, contradict
 * each other, are not numbers, or are left over from a launcher that is gone, or if ddpbench cannot
 * join the launcher. After an error out->kind is DDP_LAUNCHER_NONE, and out->rank_info has the
 * values that could be read. */
int ddp_launcher_detect(struct ddp_launcher *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills the rendezvous configuration of ranks that meet over TCP (rendezvous.h). If MASTER_ADDR is
 * set, it is the host, and the ports are next to MASTER_PORT, because torchrun's own store may
 * listen on MASTER_PORT itself. In a Kubernetes Indexed Job the default of MASTER_PORT is 29500.
 * Under srun without MASTER_ADDR, the host is the first node of the step, and the ports depend on
 * the job and the step. If `port` (decimal) is not NULL, it is the only port. The token is a hash
 * of the variables that identify the job. `secret` is the secret of the job, or NULL. Returns
 * DDP_EMISMATCH if there is no host, if its name is too long, or if MASTER_PORT is needed and is
 * missing or illegal. Returns DDP_EUSAGE if `port` is not a port or `secret` is shorter than
 * DDP_SECRET_MIN characters. */
#define DDP_SECRET_MIN 16
int ddp_launcher_rendezvous(const char *port, const char *secret, struct ddp_rendezvous_config *out,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Call this function when a child process was killed and may have called MPI_Init. If a process
 * has called MPI_Init but not MPI_Finalize, MPICH's launcher (Hydra) treats the end of the process
 * as a crash: Hydra kills the other ranks of the host and returns 1. This function sends Hydra the
 * message that MPI_Finalize would send ("finalize" of PMI version 1), and waits at most 1 s for the
 * answer. Under other launchers this function does nothing. */
void ddp_launcher_finalize_pmi(const struct ddp_launcher *launcher);
/* Returns the number of nodes of the Slurm job in which this process runs, or 0. */
int ddp_launcher_slurm_nodes(void);
/* Returns the names of all environment variables of launchers, NULL-terminated. */
const char *const *ddp_launcher_variables(void);

#ifdef __cplusplus
}
#endif
#endif
