/* Lists what a user can choose: backends, algorithms, compressors, models and the like. The
 * commands read the registries of the lower layers through this header. */
#ifndef DDP_RUN_CATALOG_H
#define DDP_RUN_CATALOG_H

#include "base/coll_kind.h"
#include "run/command.h"

/* Returns the i-th kind of entries, such as "backend", or NULL past the last kind. */
const char *ddp_catalog_kind(int i);
/* Receives an entry. `reason` says why the entry cannot be used here. It is empty if the entry can
 * be used, or if entries of its kind are not checked. */
typedef void ddp_catalog_entry(void *arg, const char *name, const char *reason,
                               const char *summary);
/* Calls `entry` for each entry of kind `kind`, an index as in ddp_catalog_kind. */
void ddp_catalog_list(const struct ddp_app *app, int kind, ddp_catalog_entry *entry, void *arg);

/* Each returns the i-th name, or NULL past the last one. */
const char *ddp_catalog_backend(int i);
const char *ddp_catalog_model(int i);
const char *ddp_catalog_dataset(int i);
const char *ddp_catalog_aggregate(int i);
/* Returns the i-th algorithm of a collective, or NULL past the last one. For allreduce, the
 * sparse algorithms follow (for --compress), except those with the name of a dense algorithm. */
const char *ddp_catalog_algorithm(enum ddp_coll coll, int i);
/* Each writes the i-th name and returns true, or returns false past the last name. A name ends in a
 * colon if the entry needs an argument. */
bool ddp_catalog_compressor(int i, char *out, size_t out_bytes);
bool ddp_catalog_sync(int i, char *out, size_t out_bytes);

/* Returns the i-th sparse algorithm that sends messages, or NULL past the last one. Sets
 * *f32 and *f16 to the predicted break-even densities (bench/break_even.h) of this point against a
 * dense exchange in f32 and in f16. */
const char *ddp_catalog_break_even(int i, const struct ddp_point_spec *spec, double *f32,
                                   double *f16);

#endif
