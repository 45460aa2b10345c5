#include "comm/comm_pages.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/unit.h"

struct ddp_page_block {
    struct ddp_page_block *next;
    void *ptr;
    size_t bytes;
};

int ddp_comm_pages_alloc(struct ddp_comm_pages *pages, size_t bytes, void **out,
                         struct ddp_err *err)
{
    struct ddp_page_block *block = ddp_calloc(1, sizeof *block);
    void *ptr = ddp_alloc_pages(bytes);
    if (block == NULL || ptr == NULL) {
        char size[32];
        ddp_format_size(bytes, size, sizeof size);
        ddp_free_pages(ptr, bytes);
        free(block);
        return ddp_fail(err, DDP_ENOMEM, "cannot allocate a buffer of %s", size);
    }
    *block = (struct ddp_page_block){.next = pages->first, .ptr = ptr, .bytes = bytes};
    pages->first = block;
    *out = ptr;
    return 0;
}

void ddp_comm_pages_free(struct ddp_comm_pages *pages, void *ptr)
{
    if (ptr == NULL)
        return;
    struct ddp_page_block **link = &pages->first;
    while (*link != NULL && (*link)->ptr != ptr)
        link = &(*link)->next;
    struct ddp_page_block *block = *link;
    if (block == NULL) /* no block has this address, which is a mistake of the caller */
        return;
    *link = block->next;
    ddp_free_pages(block->ptr, block->bytes);
    free(block);
}

void ddp_comm_pages_release(struct ddp_comm_pages *pages)
{
    while (pages->first != NULL)
        ddp_comm_pages_free(pages, pages->first->ptr);
}
