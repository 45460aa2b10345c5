/* The answer of `ddpbench pays`: for each link and each method, the time of a training step. The
 * model is in bench/pays_model.h. The baseline is dense bf16. Missing figures are NaN. */
#ifndef DDP_RECORD_PAYS_RECORD_H
#define DDP_RECORD_PAYS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_PAYS_MAX 64 /* Largest number of links, and of methods. */

/* A method on a link. An interval of times follows from the 95 % interval of the measured exchange.
 */
struct ddp_pays_method {
    char method[32];        /* For example "topk:0.01". "none" is dense f32. */
    double step_ns;         /* Time of a step. */
    double step_ci95_ns[2]; /* Its interval. */
    double arithmetic_ns;   /* Part of the step: encoding, summing and decoding. */
    double link_ns;         /* Time in which the link transfers, also if the step hides it. */
    double sent_bytes;      /* Bytes that a rank sends in a step. */
    double speedup;         /* Step time with bf16 divided by step_ns. */
    double speedup_ci95[2]; /* Its interval, from the intervals of both step times. */
    /* break_even_GBps: link speed below which a step takes less time than with bf16.
     * pays_below_GBps: link speed below which the method pays. INFINITY: at all speeds; 0: at no
     * speed; NaN: the method does not send less than bf16. */
    double break_even_GBps, pays_below_GBps;
    double break_even_density; /* Density below which a step takes less time than with bf16. */
    double accuracy_change;    /* Measured accuracy minus that of dense training. */
    /* The method sends less than bf16. The interval of its step time is more than 1 % below the
     * intervals of all methods that do not send less than bf16. */
    bool pays;
    bool sends_less; /* The method sends fewer bytes than bf16. */
};

struct ddp_pays_link {
    double GBps, latency_ns; /* NaN: the exchange was measured between the ranks of this run. */
    char first[32];          /* The paying method with the shortest step. "": nothing pays. */
    char answer[528];        /* One sentence. */
};

struct ddp_pays_record {
    int64_t parameters;
    double step_ns; /* Time of a step without the exchange. */
    int ranks;      /* Ranks of the training. */
    int64_t bucket_bytes;
    bool overlap; /* The link may transfer during the backward pass. */
    int link_count, method_count;
    struct ddp_pays_link *links;     /* [link_count] */
    struct ddp_pays_method *methods; /* [link_count][method_count] */
};

struct ddp_fields;
extern const struct ddp_fields ddp_pays_fields, ddp_pays_link_fields, ddp_pays_method_fields;

/* Allocates the arrays, with all figures missing. Returns 0 or DDP_ENOMEM. */
int ddp_pays_init(struct ddp_pays_record *p, int links, int methods,
                  struct ddp_err *err) DDP_MUST_CHECK;
void ddp_pays_release(struct ddp_pays_record *p);
/* Returns the method with index `method` on the link with index `link`. */
struct ddp_pays_method *ddp_pays_at(const struct ddp_pays_record *p, int link, int method);

#ifdef __cplusplus
}
#endif
#endif
