/* The handshake: do all ranks of a world run the same program, of the same build, with the same
 * arguments? Under mpiexec nothing else ensures it, and ranks that disagree would measure nonsense
 * or hang. For whoever opens a world that another launcher started, before its first collective. */
#ifndef DDP_COMM_HANDSHAKE_H
#define DDP_COMM_HANDSHAKE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* args[count]: the command line behind the program's name; count 0: only builds are compared.
 * Collective. DDP_EMISMATCH on all ranks alike names those that differ from rank 0, and what is the
 * first to differ: version, commit, compiler and flags, or an argument. One exchange of 104 bytes
 * when all agree. */
int ddp_handshake(struct ddp_comm *comm, int count, char *const *args,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* What ddp_handshake compares. Its layout stays as it is in all versions, for a rank of another
 * version is among those it must name. Texts are cut, and NUL-terminated. */
struct ddp_handshake_card {
    char magic[8];    /* "ddpcard" */
    char version[16]; /* "0.1.0" */
    char commit[56];
    uint64_t flags_hash; /* of compiler and flags */
    uint64_t args_count, args_hash;
};
/* The card of this build. */
void ddp_handshake_fill(int count, char *const *args, struct ddp_handshake_card *card);
/* The rest of ddp_handshake for any card, so that tests can have ranks of other builds. flags: the
 * text behind flags_hash. */
int ddp_handshake_card(struct ddp_comm *comm, const struct ddp_handshake_card *mine,
                       const char *flags, char *const *args, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
