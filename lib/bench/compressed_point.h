/* Measures one point of `allreduce --compress` or `--partial`. Training uses the same exchange
 * (exchange/compressed.h). The gradients are drawn without a model (gradient.h).
 *
 * Unless --check is off, a few untimed exchanges come first and are verified (verify_exchange.h).
 * Each timed iteration overwrites the last result with a new gradient, waits until all ranks may
 * start, and times encoding, exchange and decoding (iterations.h). With --partial K, the iterations
 * exchange the K chunks in turn. With --check once, the last timed exchange is verified. With
 * --check all, the exchange of every iteration is verified.
 *
 * If results are verified, a burst of exchanges of the first chunk follows (verify_burst.h).
 * Without
 * --partial this chunk is the whole gradient. A gradient on a device or a large first chunk
 * (ddp_exchange_burst_count) gets no burst.
 *
 * At the end the *baselines* are measured for comparison. They are dense exchanges of the whole
 * buffer in f32 and in f16. Baselines are left out if options->no_baselines is set, if only one
 * rank exchanges data, if there is no data, or if timings mean nothing (comm->correctness_only).
 *
 * Gradients on a device are exchanged in device memory. They are drawn and checked in copies in
 * host memory. */
#ifndef DDP_BENCH_COMPRESSED_POINT_H
#define DDP_BENCH_COMPRESSED_POINT_H

#include "bench/iterations.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed_bench;

/* All pointers are borrowed until destroy. */
struct ddp_compressed_bench_setup {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* the ranks that exchange: comm, or this rank's group of --groups */
    const struct ddp_bench_options *options;
    float *data;                     /* the gradient, with room for the largest point */
    const struct ddp_device *device; /* owner of the memory of data; NULL: the host */
    /* For a device: the host's copies of data and of the residual, as large as data. */
    float *image, *image_residual;
    int64_t page_bytes;                /* page size of the buffers; -1: not known */
    struct ddp_iterations *iterations; /* opened before each point by the caller */
};
/* Succeeds on all ranks or on none. Collective. */
int ddp_compressed_bench_create(const struct ddp_compressed_bench_setup *setup,
                                struct ddp_compressed_bench **out,
                                struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_bench_destroy(struct ddp_compressed_bench *b);
/* Returns 0 if the point can be measured, DDP_EUNAVAIL if its algorithm cannot run here, or another
 * error of ddp_compressed_create. Collective. */
int ddp_compressed_bench_probe(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               struct ddp_err *err) DDP_MUST_CHECK;
/* Measures a point like ddp_sampler_point, but leaves the samples in setup->iterations. index: the
 * point's index in its plan. */
int ddp_compressed_bench_point(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               int index, struct ddp_point *out,
                               struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
