/* One line a model: DDP_MODEL(symbol). */
DDP_MODEL(singa_cnn)
