/* Functions that several compressors share. */
#include "compress/comp_impl.h"

#include "base/mem.h"

size_t ddp_comp_bound_all(const struct ddp_compress_spec *spec, size_t n)
{
    (void)spec;
    return n;
}

int ddp_comp_density_check(double argument, struct ddp_err *err)
{
    if (!(argument > 0 && argument <= 1))
        return ddp_fail(err, DDP_EUSAGE,
                        "density %g is out of range: must be above 0 and at most 1", argument);
    return 0;
}

size_t ddp_comp_density_bound(const struct ddp_compress_spec *spec, size_t n)
{
    return ddp_compress_k(spec->argument, n);
}

/* State of the top-K compressors. select_topk uses `hint`, the k-th largest magnitude of the
 * previous call, as a first guess. The scratch memory of select_topk follows at offset
 * SCRATCH_AT. */
struct topk_state {
    uint32_t hint;
};
#define SCRATCH_AT   DDP_CACHE_LINE
#define SCRATCH_ELEM 8 /* bytes per element that select_topk needs */

size_t ddp_comp_topk_state_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    (void)spec;
    return SCRATCH_AT + SCRATCH_ELEM * n;
}

void ddp_comp_topk_encode(struct ddp_encode *e)
{
    struct topk_state *state = e->state;
    struct ddp_select select = {.in = e->in, .residual = e->residual, .n = e->n, .out = e->list};

    e->device->grad->select_topk(&select, ddp_comp_density_bound(e->spec, e->n), &state->hint,
                                 (unsigned char *)e->state + SCRATCH_AT);
    e->list = select.out;
    ddp_comp_scale_list(e);
}

void ddp_comp_scale_list(struct ddp_encode *e)
{
    if (e->scale == 1)
        return;
    for (size_t i = 0; i < e->list.count; i++)
        e->list.value[i] *= e->scale;
}
