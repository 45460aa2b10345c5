/* The handshake checks that all ranks of a world run the same build with the same arguments. Ranks
 * with different builds or arguments could hang or measure different things. Ranks that an outside
 * launcher started run the handshake directly after they have opened the world. */
#ifndef DDP_COMM_HANDSHAKE_H
#define DDP_COMM_HANDSHAKE_H

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the output of `git describe --always --dirty` at the build of this binary, or "unknown".
 * The text is the same for two builds of one commit with different uncommitted changes. Loaders of
 * backend modules reject modules of another commit. */
const char *ddp_build_commit(void);
/* Returns the version, such as "0.1.0". */
const char *ddp_build_version(void);
/* Returns the compiler, its flags, and the build options that change the code. */
const char *ddp_build_flags(void);

/* Compares the builds and command lines of all ranks. `args` [count] is the command line without
 * the program's name. If count is 0 on all ranks, only the builds are compared. Collective. If
 * ranks differ, all ranks return DDP_EMISMATCH. The message names the ranks that differ from rank
 * 0, and the first differing field: version, commit, compiler and flags, or an argument. */
int ddp_handshake(struct ddp_comm *comm, int count, char *const *args,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* The data of one rank that ddp_handshake compares. The layout of this struct never changes,
 * because other versions of ddpbench must be able to read it. Texts that do not fit are cut. Every
 * text ends with a NUL. */
struct ddp_handshake_card {
    char magic[8];    /* "ddpcard" */
    char version[16]; /* "0.1.0" */
    char commit[56];
    uint64_t flags_hash; /* hash of compiler and flags */
    uint64_t args_count, args_hash;
};
/* Fills the card of this build and of the command line `args` [count]. */
void ddp_handshake_fill(int count, char *const *args, struct ddp_handshake_card *card);
/* Runs ddp_handshake with a given card, so that tests can simulate other builds. `flags` is the
 * text whose hash is flags_hash. */
int ddp_handshake_card(struct ddp_comm *comm, const struct ddp_handshake_card *mine,
                       const char *flags, char *const *args, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
