/* Measures one point of `allreduce --compress` or `--partial`: the exchange that training uses
 * (exchange/compressed.h), on gradients that need no model.
 *
 * Each iteration draws a new gradient over the result of the last one, waits for the start, and
 * times encoding, exchange and decoding (iterations.h). Gradients on a device are exchanged there
 * (exchange/device_exchange.h), but drawn and checked in images on the host. With --partial K
 * iteration i exchanges chunk i mod K. The baselines that compression has to beat, the whole buffer
 * dense in f32 and in f16, are measured at the same time on the same gradients. Some untimed
 * exchanges come first and are verified (verify_exchange.h). After the last exchange all ranks must
 * hold the same bits. */
#ifndef DDP_BENCH_COMPRESSED_POINT_H
#define DDP_BENCH_COMPRESSED_POINT_H

#include "bench/iterations.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed_bench;

/* Everything is borrowed until destroy. */
struct ddp_compressed_bench_setup {
    struct ddp_comm *comm;  /* all ranks */
    struct ddp_comm *group; /* the ranks that exchange: comm, or this rank's group of --groups */
    const struct ddp_bench_options *options;
    float *data;                     /* the gradient, with room for the largest point */
    const struct ddp_device *device; /* owner of the memory of data; NULL: the host */
    /* For a device: the host's copies of data and of the residual, as large as data. */
    float *image, *image_residual;
    int64_t page_bytes;                /* page size of the buffers; -1: not known */
    struct ddp_iterations *iterations; /* open when a point begins */
};
/* Collective. */
int ddp_compressed_bench_create(const struct ddp_compressed_bench_setup *setup,
                                struct ddp_compressed_bench **out,
                                struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_bench_destroy(struct ddp_compressed_bench *b);
/* Returns 0 if the point can be measured, DDP_EUNAVAIL if its algorithm cannot run here.
 * Collective. */
int ddp_compressed_bench_probe(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               struct ddp_err *err) DDP_MUST_CHECK;
/* Like ddp_sampler_point, but the samples stay in setup->iterations. index: of the point in its
 * plan. */
int ddp_compressed_bench_point(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               int index, struct ddp_point *out,
                               struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
