/* The list of models, and the initialisation of parameters. */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/rng.h"

#define DDP_MODEL(symbol) extern const struct ddp_model_class ddp_model_##symbol;
#include "model/model_list.h"
#undef DDP_MODEL

static const struct ddp_model_class *const models[] = {
#define DDP_MODEL(symbol) &ddp_model_##symbol,
#include "model/model_list.h"
#undef DDP_MODEL
    NULL,
};

const struct ddp_model_class *const *ddp_models(void)
{
    return models;
}

const struct ddp_model_class *ddp_model_find(const char *name)
{
    for (int i = 0; models[i]; i++)
        if (strcmp(models[i]->name, name) == 0)
            return models[i];
    return NULL;
}

const char *const ddp_init_names[] = {"he", "glorot", NULL};

void ddp_model_init_params(const struct ddp_model_class *cls, enum ddp_init init, uint64_t seed,
                           float *params)
{
    for (int i = 0; i < cls->param_count; i++) {
        const struct ddp_param *p = &cls->params[i];
        float *w = params + p->offset;
        if (p->fan_in == 0) {
            for (size_t j = 0; j < p->count; j++)
                w[j] = p->fill;
            continue;
        }
        double fan = init == DDP_INIT_HE ? p->fan_in : p->fan_in + p->fan_out;
        double bound = sqrt(6.0 / fan);
        struct ddp_rng rng;
        ddp_rng_init(&rng, seed, (uint64_t)i); /* Each tensor has a random stream of its own. */
        for (size_t j = 0; j < p->count; j++)
            w[j] = (float)(bound * (2.0 * ddp_rng_double(&rng) - 1.0));
    }
}
