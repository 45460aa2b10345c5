/* Allocates memory for a group, in particular its pack buffer. */
#include "base/mem.h"
#include "comm/backend.h"
#include "exchange/ddp_impl.h"

int ddp_group_alloc(struct ddp_group *group, size_t bytes, void **out, bool *registered,
                    struct ddp_err *err)
{
    struct ddp *d = group->world;
    *registered = false;
    /* Only all ranks of the world together can allocate registered memory. */
    if (group->comm == d->comm && ddp_comm_has_registered(d->comm, NULL, 0)) {
        struct ddp_err full = DDP_ERR_INIT;
        int rc = ddp_comm_alloc(d->comm, bytes, out, &full);
        *registered = rc == 0;
        if (rc == 0)
            return 0;
        if (rc != DDP_ENOMEM)
            return ddp_fail(err, rc, "%s", full.text);
    }
    void *pages = ddp_alloc_pages(bytes);
    int rc = 0;
    if (pages == NULL)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for a buffer of %zu bytes", bytes);
    rc = ddp_comm_agree(group->comm, rc, err);
    if (rc == 0)
        *out = pages;
    else if (pages != NULL)
        ddp_free_pages(pages, bytes);
    return rc;
}

void ddp_group_free(struct ddp_group *group, void *ptr, size_t bytes, bool registered)
{
    if (ptr == NULL)
        return;
    if (registered)
        ddp_comm_free(group->comm, ptr);
    else
        ddp_free_pages(ptr, bytes);
}

int ddp_pack_reserve(struct ddp_group *group, size_t bytes, struct ddp_err *err)
{
    struct ddp_pack_buffer *pack = &group->pack;
    if (bytes <= pack->bytes)
        return 0;
    ddp_pack_release(group);
    void *data;
    DDP_TRY(ddp_group_alloc(group, bytes, &data, &pack->registered, err));
    pack->data = data;
    pack->bytes = bytes;
    return 0;
}

void ddp_pack_release(struct ddp_group *group)
{
    struct ddp_pack_buffer *pack = &group->pack;
    ddp_group_free(group, pack->data, pack->bytes, pack->registered);
    *pack = (struct ddp_pack_buffer){0};
}
