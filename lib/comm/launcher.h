/* Detects the launcher from the environment: mpiexec (Open MPI, Hydra/MPICH), srun, torchrun, or
 * none. Known launchers that ddpbench cannot join are an error (launcher.c). It reads the
 * environment and the core mask of the parent process, and starts nothing. */
#ifndef DDP_COMM_LAUNCHER_H
#define DDP_COMM_LAUNCHER_H

#include "comm/comm.h"
#include "comm/rendezvous.h"

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
    /* segment_fd is -1. oversubscribed: more ranks on this host than cores in the launcher's
     * mask. */
    struct ddp_rank_info rank_info;
};

/* Detects the launcher. Returns DDP_EMISMATCH if its variables contradict each other, are not
 * numbers, are left over from a launcher that is gone, or belong to a launcher that cannot be
 * joined. *out is then of kind DDP_LAUNCHER_NONE; its rank and size are those of the variables as
 * far as these could be read, for the error message. */
int ddp_launcher_detect(struct ddp_launcher *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Fills the rendezvous of torchrun's ranks (rendezvous.h): host MASTER_ADDR, and the ports behind
 * MASTER_PORT, because torchrun's own store may listen on MASTER_PORT itself. `port` (decimal, may
 * be NULL) replaces them by one port. The token is a hash of TORCHELASTIC_RUN_ID, the restart
 * count, address and port. Returns DDP_EMISMATCH if a variable is missing or not a number,
 * DDP_EUSAGE if `port` is wrong. */
int ddp_launcher_rendezvous(const char *port, struct ddp_rendezvous_config *out,
                            struct ddp_err *err) DDP_MUST_CHECK;
/* Returns the names of all variables that are read, NULL-terminated, for `doctor` and the
 * record. */
const char *const *ddp_launcher_variables(void);

#ifdef __cplusplus
}
#endif
#endif
