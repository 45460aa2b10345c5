/* The keys that --vary leaves out of the names of cells and training runs, so that `gate` and
 * `compare` can match runs that differ in these keys. */
#ifndef DDP_RECORD_VARY_H
#define DDP_RECORD_VARY_H

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_vary_key {
    DDP_VARY_SYNC, /* the strategy of a training run, and the settings that depend on it */
    DDP_VARY_FEEDBACK,
    DDP_VARY_LR,
    DDP_VARY_COUNT
};
/* "sync", "feedback" and so on, by value, ending with NULL. */
extern const char *const ddp_vary_names[];

#ifdef __cplusplus
}
#endif
#endif
