/* Detects from the environment which launcher started this process: mpiexec (Open MPI,
 * Hydra/MPICH), srun, torchrun, or none. Other known launchers, which ddpbench cannot join, are an
 * error (launcher.c). */
#ifndef DDP_LAUNCH_LAUNCHER_H
#define DDP_LAUNCH_LAUNCHER_H

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
    DDP_LAUNCHER_TORCHRUN
};

/* The launcher and the rank_info that it gives. */
struct ddp_launcher {
    enum ddp_launcher_kind kind;
    const char *name; /* "own", "mpiexec (Open MPI)", "mpiexec (Hydra)", "srun", "torchrun" */
    /* The MPI module that fits: "openmpi", "mpich", or NULL if unknown. */
    const char *flavour;
    /* segment_fd is -1. oversubscribed: more ranks on this host than cores in the mask of this
     * process or its parent. */
    struct ddp_rank_info rank_info;
};

/* Detects the launcher. Returns DDP_EMISMATCH if the launcher's variables are missing, contradict
 * each other, are not numbers, or are left over from a launcher that is gone, or if ddpbench cannot
 * join the launcher. After an error out->kind is DDP_LAUNCHER_NONE, and out->rank_info has the
 * values that could be read. */
int ddp_launcher_detect(struct ddp_launcher *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills the rendezvous configuration of torchrun's ranks (rendezvous.h). The host is MASTER_ADDR.
 * Unless `port` (decimal) is given, the ports are next to MASTER_PORT, because torchrun's own store
 * may listen on MASTER_PORT itself. The token is a hash of TORCHELASTIC_RUN_ID, the restart count,
 * MASTER_ADDR and MASTER_PORT. Returns DDP_EMISMATCH if MASTER_ADDR or a needed MASTER_PORT is
 * missing or illegal, and DDP_EUSAGE if `port` is not a port. */
int ddp_launcher_rendezvous(const char *port, struct ddp_rendezvous_config *out,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Sends the message of MPI_Finalize for a child process that was killed in MPI, and waits for the
 * answer. MPICH's launcher takes the end of a process that has called MPI_Init but not MPI_Finalize
 * for a crash: it kills the other ranks of the host and reports 1. Does nothing under other
 * launchers. Source: PMI version 1, "finalize". */
void ddp_launcher_finalize_pmi(const struct ddp_launcher *launcher);
/* Returns the names of all variables that are read, NULL-terminated, for `doctor` and the
 * record. */
const char *const *ddp_launcher_variables(void);

#ifdef __cplusplus
}
#endif
#endif
