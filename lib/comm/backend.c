#include "comm/backend.h"

#include <stdio.h>
#include <string.h>

#include "base/sysinfo.h"

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

/* Makes the checks of ddp_backend_check for one backend. */
static bool is_consistent(const struct ddp_backend *b)
{
    const bool p2p = (b->caps & DDP_CAP_P2P) != 0, map = (b->caps & DDP_CAP_MAP) != 0;
    const bool reg = (b->caps & DDP_CAP_REGISTERED) != 0, native = (b->caps & DDP_CAP_NATIVE) != 0;
    return b->summary != NULL && b->probe != NULL && b->init != NULL && b->finalize != NULL &&
           b->abort != NULL && b->group != NULL && b->barrier != NULL && b->exchange != NULL &&
           (b->isend != NULL) == p2p && (b->irecv != NULL) == p2p && (b->test != NULL) == p2p &&
           (b->map != NULL) == map && (b->alloc != NULL) == reg && (b->free != NULL) == reg &&
           (b->native != NULL) == native && (b->native_supports != NULL) == native &&
           (b->stream != NULL) == (b->wait_stream != NULL);
}

int ddp_backend_check(struct ddp_err *err)
{
    for (size_t i = 0; backends[i] != NULL; i++) {
        if (!is_consistent(backends[i]))
            return ddp_fail(
                err, DDP_EINTERNAL,
                "backend '%s': a function is missing, or does not fit its capability bits",
                backends[i]->name);
    }
    return 0;
}

int ddp_backend_module_dir(const char *given, char *out, size_t out_bytes)
{
    if (given != NULL) {
        snprintf(out, out_bytes, "%s", given);
        return 0;
    }
    return ddp_own_folder(out, out_bytes) ? 0 : DDP_EUNAVAIL;
}
