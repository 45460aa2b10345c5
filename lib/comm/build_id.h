/* Identity of this build. Loaders of backend modules reject modules of another build.
 * record/provenance.h stores the identity in results. */
#ifndef DDP_COMM_BUILD_ID_H
#define DDP_COMM_BUILD_ID_H

#ifdef __cplusplus
extern "C" {
#endif

/* Returns `git describe --always --dirty` of this binary, or "unknown". All dirty trees of one
 * commit have the same name. */
const char *ddp_build_commit(void);
/* Returns the version, such as "0.1.0". */
const char *ddp_build_version(void);
/* Returns the compiler, its flags, and the build options that change the code. */
const char *ddp_build_flags(void);

#ifdef __cplusplus
}
#endif
#endif
