/* Functions that read those values of a document for which there is no table (field.h). A value of
 * a wrong type counts as missing. */
#ifndef DDP_RECORD_STORED_IMPL_H
#define DDP_RECORD_STORED_IMPL_H

#include <math.h>

#include "base/strbuf.h"
#include "record/field.h"
#include "record/stored.h"

/* Returns the number at a path. NaN: missing. */
static inline double ddp_stored_number(const cJSON *doc, const char *path)
{
    const cJSON *item = ddp_field_item(doc, path);
    return cJSON_IsNumber(item) ? item->valuedouble : NAN;
}

/* Returns the number at a path. Returns `missing` if the number is missing, not whole or not
 * between 0 and `most`. */
static inline int64_t ddp_stored_count(const cJSON *doc, const char *path, double most,
                                       int64_t missing)
{
    const double value = ddp_stored_number(doc, path);
    return value >= 0 && value <= most && value == floor(value) ? (int64_t)value : missing;
}

/* Copies the string at a path in printable form. "": missing. */
static inline void ddp_stored_text(const cJSON *doc, const char *path, char *out, size_t bytes)
{
    const cJSON *item = ddp_field_item(doc, path);
    ddp_printable(cJSON_IsString(item) ? item->valuestring : "", out, bytes);
}

/* Reads the verdict of stored->doc, if there is one. file: the document's name in messages. Returns
 * 0, DDP_EINPUT or DDP_ENOMEM. */
int ddp_stored_read_verdict(struct ddp_stored *stored, const char *file,
                            struct ddp_err *err) DDP_MUST_CHECK;

#endif
