/* The settings that may differ between base and new (`--vary` of gate and compare). A varied
 * setting is left out of the names of cells and training runs, so that both sides have equal names.
 */
#ifndef DDP_RECORD_VARY_H
#define DDP_RECORD_VARY_H

#include "base/err.h"
#include "base/opt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bits of the keys. */
enum {
    DDP_VARY_SYNC = 1 << 0, /* strategy of a training run, and the settings that depend on it */
    DDP_VARY_FEEDBACK = 1 << 1,
    DDP_VARY_LR = 1 << 2,
};

/* Returns the name of the i-th key, or NULL past the last one. */
const char *ddp_vary_name(int i);
/* Sets *vary to the bits of the keys. Returns DDP_EUSAGE for an unknown key. */
int ddp_vary_parse(const struct ddp_string_list *keys, unsigned *vary,
                   struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
