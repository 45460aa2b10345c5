/* The pack buffer of a group. */
#include "base/mem.h"
#include "comm/backend.h"
#include "exchange/ddp_impl.h"

int ddp_group_alloc(struct ddp_group *group, size_t bytes, void **out, bool *registered,
                    struct ddp_err *err)
{
    struct ddp *d = group->world;
    *registered = false;
    /* Registered memory can only be allocated by all ranks of the world. */
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

int ddp_stage_reserve(struct ddp_group *group, size_t bytes, struct ddp_err *err)
{
    struct ddp_stage *stage = &group->stage;
    if (bytes <= stage->bytes)
        return 0;
    ddp_stage_release(group);
    void *data;
    DDP_TRY(ddp_group_alloc(group, bytes, &data, &stage->registered, err));
    stage->data = data;
    stage->bytes = bytes;
    return 0;
}

void ddp_stage_release(struct ddp_group *group)
{
    struct ddp_stage *stage = &group->stage;
    ddp_group_free(group, stage->data, stage->bytes, stage->registered);
    *stage = (struct ddp_stage){0};
}
