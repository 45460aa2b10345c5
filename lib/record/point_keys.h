/* The keys of a point: the members of its spec in which the points of a run may differ. A printed
 * table has a column for each key that varies, and states the other keys once. */
#ifndef DDP_RECORD_POINT_KEYS_H
#define DDP_RECORD_POINT_KEYS_H

#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The keys, in the order in which a table shows them. */
enum ddp_point_key {
    DDP_KEY_COLL,
    DDP_KEY_SIZE,
    DDP_KEY_COMPRESS,
    DDP_KEY_PARTIAL,
    DDP_KEY_SPLIT,
    DDP_KEY_PLACEMENT,
    DDP_KEY_RANKS,
    DDP_KEY_DTYPE,
    DDP_KEY_OP,
    DDP_KEY_ROOT,
    DDP_KEY_MEMORY,
    DDP_KEY_GRAPH,
    DDP_KEY_BACKEND,
    DDP_KEY_ALGORITHM,
    DDP_KEY_COUNT
};
#define DDP_KEY_BYTES 72 /* Room for the text of a key's value. */

/* Returns the name that heads the column of a key, for example "size". */
const char *ddp_point_key_name(enum ddp_point_key key);
/* Writes the value that a point has for a key, for example "64 KiB", or "-" if the key does not
 * apply to the point. For DDP_KEY_ALGORITHM, this is the requested algorithm. */
void ddp_point_key_text(const struct ddp_point_spec *spec, enum ddp_point_key key,
                        char out[DDP_KEY_BYTES]);
/* Adds a point to a range. In an empty range all members are 0. */
void ddp_point_range_add(struct ddp_point_range *range, const struct ddp_point_spec *spec);
bool ddp_point_range_varies(const struct ddp_point_range *range, enum ddp_point_key key);
/* Writes the values in `spec` of the keys that vary, for example "64 KiB, in place", or "" if no
 * key varies. */
void ddp_point_range_label(const struct ddp_point_range *range, const struct ddp_point_spec *spec,
                           char *out, size_t out_bytes);
/* Writes a text of the keys that do not vary, with their values in `spec`: for example "allreduce,
 * f32 sum, 2 ranks over shm, in place, registered memory". */
void ddp_point_range_constants(const struct ddp_point_range *range,
                               const struct ddp_point_spec *spec, char *out, size_t out_bytes);
/* Reads the id of a point (ddp_point_id). size_bytes becomes the requested number of bytes. Returns
 * false if the text is not an id. *out then has the texts and suffixes before the first unknown
 * part, and its other members are 0. */
bool ddp_point_id_parse(const char *id, struct ddp_point_spec *out);
/* Copies the id of a point (ddp_point_id) to `out`, with "*" in place of the values of the keys in
 * `vary` (record/vary.h). Returns false if the id does not have the form of ddp_point_id, or if the
 * result does not fit. */
bool ddp_point_id_vary(unsigned vary, const char *id, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
