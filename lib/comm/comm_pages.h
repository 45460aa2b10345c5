/* Private pages: the memory that ddp_comm_alloc returns with backend self, and with backends that
 * cannot register memory. Not thread safe. */
#ifndef DDP_COMM_COMM_PAGES_H
#define DDP_COMM_COMM_PAGES_H

#include <stddef.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_page_block;
/* A list of blocks. A struct with all bytes zero is an empty list. */
struct ddp_comm_pages {
    struct ddp_page_block *first;
};

int ddp_comm_pages_alloc(struct ddp_comm_pages *pages, size_t bytes, void **out,
                         struct ddp_err *err) DDP_MUST_CHECK;
void ddp_comm_pages_free(struct ddp_comm_pages *pages, void *ptr); /* NULL is allowed */
void ddp_comm_pages_release(struct ddp_comm_pages *pages);         /* frees all remaining blocks */

#ifdef __cplusplus
}
#endif
#endif
