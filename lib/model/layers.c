/* The list of layer tables, one per device. */
#include "model/layers.h"

#include <string.h>

#define DDP_LAYERS(symbol) extern const struct ddp_layers ddp_layers_##symbol;
#include "model/layers_list.h"
#undef DDP_LAYERS

static const struct ddp_layers *const all[] = {
#define DDP_LAYERS(symbol) &ddp_layers_##symbol,
#include "model/layers_list.h"
#undef DDP_LAYERS
    NULL,
};

const struct ddp_layers *const *ddp_layers_all(void)
{
    return all;
}

const struct ddp_layers *ddp_layers_find(const char *device)
{
    for (int i = 0; all[i] != NULL; i++)
        if (strcmp(all[i]->device, device) == 0)
            return all[i];
    return NULL;
}

const char *const ddp_conv_names[] = {"auto", "cudnn", "im2col", NULL};
