#include "comm/backend.h"

#include <string.h>

#include "base/mem.h"

#define DDP_BACKEND(symbol) extern const struct ddp_backend ddp_backend_##symbol;
#include "comm/backend_list.h"
#undef DDP_BACKEND

static const struct ddp_backend *const backends[] = {
#define DDP_BACKEND(symbol) &ddp_backend_##symbol,
#include "comm/backend_list.h"
#undef DDP_BACKEND
    NULL,
};

const struct ddp_backend *const *ddp_backend_all(void)
{
    return backends;
}

const struct ddp_backend *ddp_backend_find(const char *name)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    }
    return NULL;
}

/* Fails with DDP_EINTERNAL and the text `what` unless bit == function. function: whether the
 * function's pointer is set. */
static int check_bit(const struct ddp_backend *b, bool bit, bool function, const char *what,
                     struct ddp_err *err)
{
    if (bit == function)
        return 0;
    return ddp_fail(err, DDP_EINTERNAL, "backend '%s': %s", b->name, what);
}

int ddp_backend_check(struct ddp_err *err)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        const struct ddp_backend *b = backends[i];
        bool p2p = (b->caps & DDP_CAP_P2P) != 0, map = (b->caps & DDP_CAP_MAP) != 0;
        bool reg = (b->caps & DDP_CAP_REGISTERED) != 0, native = (b->caps & DDP_CAP_NATIVE) != 0;
        bool core = b->summary != NULL && b->probe != NULL && b->init != NULL &&
                    b->finalize != NULL && b->abort != NULL && b->group != NULL &&
                    b->barrier != NULL && b->exchange != NULL;
        DDP_TRY(check_bit(b, true, core, "a member that every backend must set is NULL", err));
        DDP_TRY(check_bit(b, p2p, b->isend != NULL, "P2P and isend disagree", err));
        DDP_TRY(check_bit(b, p2p, b->irecv != NULL, "P2P and irecv disagree", err));
        DDP_TRY(check_bit(b, p2p, b->test != NULL, "P2P and test disagree", err));
        DDP_TRY(check_bit(b, map, b->map != NULL, "MAP and map disagree", err));
        DDP_TRY(check_bit(b, reg, b->alloc != NULL, "REGISTERED and alloc disagree", err));
        DDP_TRY(check_bit(b, reg, b->free != NULL, "REGISTERED and free disagree", err));
        DDP_TRY(check_bit(b, native, b->native != NULL, "NATIVE and native disagree", err));
        DDP_TRY(check_bit(b, native, b->native_supports != NULL,
                          "NATIVE and native_supports disagree", err));
    }
    return 0;
}
