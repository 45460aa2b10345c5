/* Exact verification of a compressed all-reduce (exchange/compressed.h): own code that knows what
 * must be sent, kept and received, and shares none with the kernels it checks.
 *
 * Whole values (none, fp16, bf16): inputs are the small integers of verify_input.h, whose sums are
 * exact in the wire's type in any order, so every rank predicts the result alone.
 * Lists (topk, threshold): inputs are gradients rounded so that sums are exact in any order
 * (ddp_gradient_round). Each rank selects for itself by a histogram of magnitudes, keeps what its
 * residual must be, and the ranks show each other what each must have sent; the result must be the
 * sum of that, element by element, and the residual must be the rest, bit for bit. oktopk selects
 * again: there the result is that sum or zero, the largest are taken (exactly k of them in every
 * 32nd call, in each on a device), and what was left out must be back in the residuals of those who
 * sent it.
 * On all ranks the results must be the same bits.
 *
 * Called by the sampler, outside the clocks. What it does not do: run the exchange. */
#ifndef DDP_BENCH_VERIFY_EXCHANGE_H
#define DDP_BENCH_VERIFY_EXCHANGE_H

#include "bench/gradient.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_verify_exchange;

/* setup: of the exchange that will be checked; comm and gradient are borrowed. first: where its
 * data lies in the whole gradient. on_device: it is a ddp_device_exchange, whose lists have limited
 * room; what is checked is the host's copy. Not collective. */
int ddp_verify_exchange_create(const struct ddp_compressed_setup *setup, bool on_device,
                               struct ddp_gradient *gradient, size_t first,
                               struct ddp_verify_exchange **out,
                               struct ddp_err *err) DDP_MUST_CHECK;
void ddp_verify_exchange_destroy(struct ddp_verify_exchange *v);
/* Writes this rank's input of a step to data [n]. Every exchange between create and destroy must
 * have its input from here, once: residuals depend on all that came before. */
int ddp_verify_exchange_input(struct ddp_verify_exchange *v, uint64_t step, float *data,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Collective. data [n], residual [n] or NULL, values_sent: after that one exchange. DDP_EDATA with
 * rank, element, expected and got; only on the ranks that found something: ddp_comm_agree is the
 * caller's. */
int ddp_verify_exchange_check(struct ddp_verify_exchange *v, const float *data,
                              const float *residual, double values_sent,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Collective. Are data [n] the same bits on all ranks of comm? Else DDP_EDATA on all, naming the
 * first element that is not as on rank 0. */
int ddp_verify_alike(struct ddp_comm *comm, const float *data, size_t n, const char *what,
                     struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
