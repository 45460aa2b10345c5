/* The declarations that verify_exchange.c and verify_factors.c share. */
#ifndef DDP_BENCH_VERIFY_EXCHANGE_IMPL_H
#define DDP_BENCH_VERIFY_EXCHANGE_IMPL_H

#include "exchange/compressed.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first difference. count: number of differences. */
struct ddp_mismatch {
    size_t count, element;
    const char *what;
    float expected, got;
};

/* Counts a difference, and stores it if it is the first. */
void ddp_verify_found(struct ddp_mismatch *f, const char *what, size_t element, float expected,
                      float got);

/* An exchange of factors of one matrix (compress/comp_powersgd.c). */
struct ddp_factor_check {
    const struct ddp_compressed_setup *setup;
    size_t first;        /* index of the first element in the whole gradient */
    const float *acc;    /* [n]: this rank's gradient plus residual */
    const float *data;   /* [n]: the result */
    const float *rounds; /* ddp_compressed_rounds after the exchange */
    size_t block;        /* elements that the ranks gather at a time */
    float *gathered;     /* [ranks][block]: scratch */
};

/* Returns the number of floats that each rank must send in an exchange of factors. This number is
 * setup->n if the bucket is sent as it is. */
size_t ddp_verify_factors_sent(const struct ddp_compressed_setup *setup);
/* Checks the factors and the result. Collective. */
int ddp_verify_factors(const struct ddp_factor_check *c, struct ddp_mismatch *f,
                       struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
