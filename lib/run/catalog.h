/* Lists what a user can choose: backends, algorithms, compressors, models and the like. The
 * commands read the registries of the lower layers through this header. */
#ifndef DDP_RUN_CATALOG_H
#define DDP_RUN_CATALOG_H

#include "base/coll_kind.h"
#include "run/command.h"

/* Returns the i-th kind of entries, such as "backend", or NULL past the last one. */
const char *ddp_catalog_kind(int i);
/* Receives an entry. `reason` says why the entry cannot be used here. It is empty if the entry can
 * be used, or if entries of its kind are not checked. */
typedef void ddp_catalog_entry(void *arg, const char *name, const char *reason,
                               const char *summary);
/* Calls `entry` with each entry of the kind with this index. */
void ddp_catalog_list(const struct ddp_app *app, int kind, ddp_catalog_entry *entry, void *arg);

/* Each returns the i-th name, or NULL past the last one. */
const char *ddp_catalog_backend(int i);
const char *ddp_catalog_model(int i);
const char *ddp_catalog_dataset(int i);
const char *ddp_catalog_aggregate(int i);
/* Returns the i-th algorithm of a collective, or NULL past the last one. The sparse algorithms are
 * for allreduce with --compress. */
const char *ddp_catalog_algorithm(enum ddp_coll coll, int i);
/* Each writes the i-th name, which ends in a colon if it needs an argument. They return false past
 * the last one. */
bool ddp_catalog_compressor(int i, char *out, size_t out_bytes);
bool ddp_catalog_sync(int i, char *out, size_t out_bytes);

/* Returns the i-th sparse algorithm that sends messages, or NULL past the last one. *f32, *f16: the
 * predicted break-even densities (bench/break_even.h) of this point against dense exchanges. */
const char *ddp_catalog_break_even(int i, const struct ddp_point_spec *spec, double *f32,
                                   double *f16);

#endif
