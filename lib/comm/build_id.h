/* Which build this is, for those who load other pieces of it (modules) and must not mix builds.
 * Called by backend loaders; what a result says of its build is record/provenance.h. */
#ifndef DDP_COMM_BUILD_ID_H
#define DDP_COMM_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

/* `git describe --always --dirty` of this binary, or "unknown". A dirty tree has one name whatever
 * is in it. */
const char *ddp_build_commit(void);
/* "0.1.0". */
const char *ddp_build_version(void);
/* Compiler, flags and knobs that change what the code does. */
const char *ddp_build_flags(void);

#ifdef __cplusplus
}
#endif
#endif
