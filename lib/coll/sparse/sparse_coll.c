/* The table of sparse algorithms. sparse_auto.c makes the choice of `auto`. */
#include "coll/sparse/sparse_coll.h"

#include <string.h>

#define DDP_SPARSE(symbol) extern const struct ddp_sparse_alg ddp_sparse_alg_##symbol;
#include "coll/sparse/sparse_list.h"
#undef DDP_SPARSE

const struct ddp_sparse_alg *const *ddp_sparse_algorithms(void)
{
    static const struct ddp_sparse_alg *const all[] = {
#define DDP_SPARSE(symbol) &ddp_sparse_alg_##symbol,
#include "coll/sparse/sparse_list.h"
#undef DDP_SPARSE
        NULL,
    };
    return all;
}

const struct ddp_sparse_alg *ddp_sparse_find(const char *name)
{
    for (const struct ddp_sparse_alg *const *a = ddp_sparse_algorithms(); *a != NULL; a++)
        if (strcmp((*a)->name, name) == 0)
            return *a;
    return NULL;
}
