/* Who started us: the variables of mpiexec (Open MPI, Hydra/MPICH), srun and torchrun, or nobody.
 * Launchers that are known but cannot be joined are an error: see launcher.c. Reads the
 * environment, and the core mask of the parent process; starts nothing. Table in shared research:
 * rank/size/local rank of each launcher. */
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

/* kind with the place it gives (segment_fd -1). place.oversubscribed: more ranks on this host than
 * cores in the launcher's mask. flavour: which MPI module fits: "openmpi", "mpich"
 * or NULL when it cannot be told. */
struct ddp_launcher {
    enum ddp_launcher_kind kind;
    const char *name; /* "own", "mpiexec (Open MPI)", "mpiexec (Hydra)", "srun", "torchrun" */
    const char *flavour;
    struct ddp_place place;
};

/* DDP_EMISMATCH when the variables contradict each other, are not numbers, are left over from a
 * launcher that is gone, or of one that cannot be joined. */
int ddp_launcher_detect(struct ddp_launcher *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Where the ranks of torchrun meet (rendezvous.h): on the host MASTER_ADDR, from the port behind
 * MASTER_PORT on, for torchrun's own store may listen on that one; port: decimal, on this one
 * alone; NULL: none was given. The token is made of what names the job: TORCHELASTIC_RUN_ID, the
 * restart, address and port. DDP_EMISMATCH when one of them is missing or no number. */
int ddp_launcher_meeting(const char *port, struct ddp_meeting *out,
                         struct ddp_err *err) DDP_MUST_CHECK;
/* The names of every variable looked at, NULL-terminated: for the doctor and the record's
 * allow-list. */
const char *const *ddp_launcher_variables(void);

#ifdef __cplusplus
}
#endif
#endif
