/* The function of stored_verdict.c that stored.c calls. */
#ifndef DDP_RECORD_STORED_IMPL_H
#define DDP_RECORD_STORED_IMPL_H

#include "record/stored.h"

/* Reads the verdict of stored->doc, if there is one. file: the document's name in messages. Returns
 * 0, DDP_EINPUT or DDP_ENOMEM. */
int ddp_stored_read_verdict(struct ddp_stored *stored, const char *file,
                            struct ddp_err *err) DDP_MUST_CHECK;

#endif
