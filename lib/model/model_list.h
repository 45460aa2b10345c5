/* One line per model: DDP_MODEL(symbol). */
DDP_MODEL(singa_cnn)
DDP_MODEL(lenet)
DDP_MODEL(resnet9)
DDP_MODEL(nnabla_tiny)
