/* Verifies compressed all-reduces (exchange/compressed.h). Computes the values that each rank must
 * send, keep and receive. The code shares nothing with the kernels under test.
 *
 * none, and powersgd if it sends the bucket as it is: inputs are the small integers of verify.h.
 * Their sums are exact in any order, so every rank can compute the right result alone.
 *
 * fp16, bf16, compressors that quantise blocks, and compressors that send lists: each rank computes
 * the values that it must send (`rounded` and `reference` in compress.h) and the residual that it
 * must then have. The ranks exchange the values that they must have sent. The result must be the
 * sum of these values. It may be rounded only if the sum cannot be exact. A sum of quantised blocks
 * is known bit for bit, because the ranks add in a fixed order. The residual must have the computed
 * bits. For lists, the inputs are gradients rounded to few bits (ddp_gradient_round). For the other
 * compressors, every second element of the input is a small integer. The sums of these elements are
 * exact in 16 bits. The other elements have more bits than 16-bit formats have, and many exceed the
 * clip, if there is one.
 *
 * With ddp_verify_exchange_expect_gradient, an exchange of a gradient that was not rounded can be
 * verified, too. Its sums may have rounding errors.
 *
 * oktopk selects a second time, among the sums. Each element of the result must be its sum or zero.
 * No selected sum may be smaller in magnitude than a sum that was left out. Exactly k sums (or all
 * sums that are not 0, if these are fewer) must be selected: on a device in every call, on a CPU in
 * the first and then in every 32nd call. In its other calls a CPU may select about k sums. A value
 * whose sum was left out must be back in the residual of the rank that sent it.
 *
 * powersgd if it sends factors: verify_factors.c checks the factors and the result. The residual
 * must be, bit for bit, the rank's gradient plus the old residual, minus the rank's share of the
 * result.
 *
 * The results of all ranks must have the same bits. The caller runs the exchange itself, and calls
 * these functions outside the timed region. */
#ifndef DDP_BENCH_VERIFY_EXCHANGE_H
#define DDP_BENCH_VERIFY_EXCHANGE_H

#include "bench/gradient.h"
#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_verify_exchange;

/* setup: the setup of the exchange to check. setup->comm and gradient are borrowed. If the
 * exchange works on a device, the host's copy of its data is checked. first: index of the
 * exchange's first element in the whole gradient. Not collective. */
int ddp_verify_exchange_create(const struct ddp_compressed_setup *setup,
                               struct ddp_gradient *gradient, size_t first,
                               struct ddp_verify_exchange **out,
                               struct ddp_err *err) DDP_MUST_CHECK;
void ddp_verify_exchange_destroy(struct ddp_verify_exchange *v);
/* Writes this rank's input of a step to data [n]. */
int ddp_verify_exchange_draw(struct ddp_verify_exchange *v, uint64_t step, float *data,
                             struct ddp_err *err) DDP_MUST_CHECK;
/* Announces that data [n] is the input of the next exchange to check. ddp_verify_exchange_draw must
 * have written data since the last check. A residual depends on all earlier exchanges. Therefore
 * announce and check all exchanges in order, or call ddp_verify_exchange_adopt after exchanges that
 * were not checked. */
void ddp_verify_exchange_expect(struct ddp_verify_exchange *v, const float *data);
/* Writes an input and announces it. */
int ddp_verify_exchange_input(struct ddp_verify_exchange *v, uint64_t step, float *data,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Assumes that the residual now is residual [n] (NULL: 0), and that `calls` exchanges have been
 * run. Call it after exchanges that were not checked. */
void ddp_verify_exchange_adopt(struct ddp_verify_exchange *v, const float *residual,
                               uint64_t calls);
/* Announces that the next exchange to check has the gradient of `step` as its input, as
 * ddp_gradient_draw writes it. */
int ddp_verify_exchange_expect_gradient(struct ddp_verify_exchange *v, uint64_t step,
                                        struct ddp_err *err) DDP_MUST_CHECK;
/* Checks one exchange. data [n], residual [n] (or NULL): contents after the exchange; the residual
 * is not checked if it is NULL. rounds: ddp_compressed_rounds after the exchange. values_sent:
 * number of values that this rank sent. Returns DDP_EDATA with rank, element, expected and received
 * value, perhaps only on the ranks that found an error. The caller must therefore always call
 * ddp_comm_agree. Collective. */
int ddp_verify_exchange_check(struct ddp_verify_exchange *v, const float *data,
                              const float *residual, const float *rounds, double values_sent,
                              struct ddp_err *err) DDP_MUST_CHECK;
/* Checks that data [n] has the same bits on all ranks of comm. If not, returns DDP_EDATA on all
 * ranks, and err names an element that differs from rank 0's. what: name of the data for the
 * message. Collective. */
int ddp_verify_same_on_all_ranks(struct ddp_comm *comm, const float *data, size_t n,
                                 const char *what, struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
