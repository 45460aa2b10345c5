/* One line per data set: DDP_DATASET(symbol). */
DDP_DATASET(fashion_mnist)
DDP_DATASET(mnist)
DDP_DATASET(cifar10)
DDP_DATASET(synthetic)
