/* Exact verification of a compressed all-reduce (exchange/compressed.h). Independent code computes
 * the values that must be sent, kept and received; it shares nothing with the kernels it checks.
 *
 * Dense formats (none, fp16, bf16): inputs are the small integers of verify_input.h. Their sums are
 * exact in the wire type in any order, so every rank predicts the result alone.
 *
 * Lists (topk, threshold): inputs are gradients rounded so that sums are exact in any order
 * (ddp_gradient_round). Each rank computes its own selection from a histogram of magnitudes and
 * keeps track of the residual it must have. The ranks exchange the values that each must have sent.
 * The result must be their sum, element by element, and the residual must be the rest, bit for bit.
 *
 * oktopk selects again among the sums. Each result must be the sum or zero, only the largest sums
 * may be taken (exactly k of them in every 32nd call, on a device in every call), and values that
 * were left out must be back in the residuals of the ranks that sent them.
 *
 * Results must have the same bits on all ranks. The sampler calls these functions outside the timed
 * region and runs the exchange itself. */
#ifndef DDP_BENCH_VERIFY_EXCHANGE_H
#define DDP_BENCH_VERIFY_EXCHANGE_H

#include "bench/gradient.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_verify_exchange;

/* setup: the setup of the exchange to check; its comm and gradient are borrowed. on_device: the
 * exchange is a ddp_device_exchange, whose lists have a fixed capacity; the host's copy of the data
 * is checked. first: index of the exchange's first element in the whole gradient. Not
 * collective. */
int ddp_verify_exchange_create(const struct ddp_compressed_setup *setup, bool on_device,
                               struct ddp_gradient *gradient, size_t first,
                               struct ddp_verify_exchange **out,
                               struct ddp_err *err) DDP_MUST_CHECK;
void ddp_verify_exchange_destroy(struct ddp_verify_exchange *v);
/* Writes this rank's input of a step to data [n]. Every exchange between create and destroy must
 * take its input from exactly one such call, because residuals depend on all earlier exchanges. */
int ddp_verify_exchange_input(struct ddp_verify_exchange *v, uint64_t step, float *data,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Checks one exchange: data [n] and residual [n] (or NULL) after it, and the number of values that
 * it sent. Returns DDP_EDATA with rank, element, expected and received value, but only on the ranks
 * that found an error: the caller calls ddp_comm_agree. Collective. */
int ddp_verify_exchange_check(struct ddp_verify_exchange *v, const float *data,
                              const float *residual, double values_sent,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Checks that data [n] has the same bits on all ranks of comm. Otherwise returns DDP_EDATA on all
 * ranks, naming the first element that differs from rank 0's. what: name of the data for the
 * message. Collective. */
int ddp_verify_same_on_all_ranks(struct ddp_comm *comm, const float *data, size_t n,
                                 const char *what, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
