/* Compressor "randk": sends k = ceil(D n) elements, one at random of each of k equal blocks.
 * Source: S. Stich et al., Sparsified SGD with memory, NeurIPS 2018. Only for the trial (trial.sh):
 * it runs on the processor. */
#include <string.h>

#include "base/rng.h"
#include "compress/comp_impl.h"

/* The state counts the calls, so that each call chooses other elements. */
static size_t randk_state_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    (void)spec;
    (void)n;
    return sizeof(uint64_t);
}

static void randk_encode(struct ddp_encode *e)
{
    uint64_t *calls = e->state;
    const size_t k = ddp_compress_k(e->spec->argument, e->n);
    const uint64_t seed = ddp_mix64(++*calls);

    if (e->residual != NULL)
        for (size_t i = 0; i < e->n; i++)
            e->residual[i] += e->in[i];
    for (size_t block = 0; block < k; block++) {
        const size_t begin = block * e->n / k, end = (block + 1) * e->n / k;
        const size_t i = begin + (size_t)(ddp_mix64(seed + block) % (end - begin));
        e->list.index[block] = (uint32_t)i;
        e->list.value[block] = e->residual != NULL ? e->residual[i] : e->in[i];
        if (e->residual != NULL)
            e->residual[i] = 0;
    }
    e->list.count = k;
    ddp_comp_scale_list(e);
}

/* Finds the chosen element of each block by a pass over all elements. */
static void randk_reference(const struct ddp_compress_spec *spec, const float *acc, size_t n,
                            uint64_t calls, bool *sent)
{
    const size_t k = ddp_compress_k(spec->argument, n);
    size_t block = 0, begin = 0;
    (void)acc;
    for (size_t i = 0; i < n; i++) {
        if (i == (block + 1) * n / k) {
            block++;
            begin = i;
        }
        const size_t length = (block + 1) * n / k - begin;
        sent[i] = i - begin == ddp_mix64(ddp_mix64(calls + 1) + block) % length;
    }
}

const struct ddp_compressor ddp_comp_randk = {
    .name = "randk",
    .summary = "a random fraction D of the elements, as a sparse list",
    .train_summary = "each rank sends random gradients (a share D of all) and keeps the rest",
    .argument_help = "D",
    .combine = DDP_COMBINE_GATHER,
    .feedback_default = true,
    .fuses_feedback = true,
    .fixed_count = true,
    .check = ddp_comp_density_check,
    .bound = ddp_comp_density_bound,
    .state_bytes = randk_state_bytes,
    .encode = randk_encode,
    .reference = randk_reference,
};
