/* One line per device that models run on: DDP_LAYERS(symbol) refers to `const struct ddp_layers
 * ddp_layers_<symbol>`. */
DDP_LAYERS(cpu)
DDP_LAYERS(cuda)
