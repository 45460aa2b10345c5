/* Measures one point of `allreduce --compress` or `--partial`: the exchange that training uses
 * (exchange/compressed.h), on gradients that no model is needed for.
 *
 * Per iteration: draw a new gradient where the result of the last one lies, start, clock, encode +
 * exchange + decode, clock (iterations.h). What lies on a device is exchanged there
 * (exchange/device_exchange.h); gradients are drawn and results looked at in images of the host.
 * --partial K: iteration i exchanges chunk i mod K. Beside it, in the same minute and on the same
 * gradients: the whole buffer dense in f32 and in f16, for that is what compression has to beat.
 * First come untimed exchanges that are verified (verify_exchange.h); after the last one all ranks
 * must hold the same bits. */
#ifndef DDP_BENCH_COMPRESSED_POINT_H
#define DDP_BENCH_COMPRESSED_POINT_H

#include "bench/iterations.h"
#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_compressed_bench;

/* comm: of all ranks; group: the one that exchanges, comm or this rank's share of it. data: the
 * gradient's buffer, for the largest point. device: whose memory that is, NULL: the host's; image,
 * image_residual [as data]: the host's then. All borrowed until destroy. Collective. */
struct ddp_compressed_bench_setup {
    struct ddp_comm *comm;
    struct ddp_comm *group;
    const struct ddp_bench_options *options;
    float *data;
    const struct ddp_device *device;
    float *image, *image_residual;
    int64_t page_bytes;
    struct ddp_iterations *iterations;
};
int ddp_compressed_bench_create(const struct ddp_compressed_bench_setup *setup,
                                struct ddp_compressed_bench **out,
                                struct ddp_err *err) DDP_MUST_CHECK;
void ddp_compressed_bench_destroy(struct ddp_compressed_bench *b);
/* Can it be measured? DDP_EUNAVAIL when the algorithm cannot here. Collective. */
int ddp_compressed_bench_probe(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               struct ddp_err *err) DDP_MUST_CHECK;
/* As ddp_sampler_point; samples stay with the iterations. index: of the point in its plan. */
int ddp_compressed_bench_point(struct ddp_compressed_bench *b, const struct ddp_point_spec *spec,
                               int index, struct ddp_point *out,
                               struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
