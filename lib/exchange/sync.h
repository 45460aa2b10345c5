/* Sync strategies: how the ranks of a training run keep their parameters together. One file and one
 * line in sync_list.h add one.
 *
 * The trainer owns parameters and gradients (flat arrays, registered memory where the backend has
 * it). Order of calls in a step: on_grad_ready for each parameter, last layer first;
 * finish_backward: after it grads holds what the optimiser shall use (for gradient strategies: the
 * sum over ranks, each rank having scaled by 1/global count); then the optimiser; then end_step
 * (parameter strategies average here). Communicates only through lib/coll. Never chooses by a
 * run-time measurement: same seed, same bits. */
#ifndef DDP_EXCHANGE_SYNC_H
#define DDP_EXCHANGE_SYNC_H

#include "coll/coll.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_sync;

/* offsets/counts [param_count]: the tensors in the flat arrays, in layer order. */
struct ddp_sync_setup {
    struct ddp_comm *comm;
    float *params, *grads; /* [total] */
    size_t total;
    const size_t *offsets, *counts;
    int param_count;
    size_t bucket_bytes;
    bool overlap, feedback;
    const char *argument; /* text after ':' in the strategy's name, "" without */
};

/* Since the start of the run. wire_bytes: sent by this rank, counted or (wire_counted false)
 * modelled. exchange: in collectives; exposed: the part the main thread waited. */
struct ddp_sync_counters {
    double wire_bytes;
    bool wire_counted;
    int64_t exchange_ns, exposed_ns;
    double values_sent, values_total; /* achieved density = sent / total; total 0: not sparse */
};

struct ddp_sync_class {
    const char *name, *summary;
    const char *argument_help; /* "D", "K", or NULL when it takes none */
    bool replicas_equal;       /* all ranks hold identical parameters after every step */
    int (*create)(const struct ddp_sync_setup *setup, struct ddp_sync **out, struct ddp_err *err);
    void (*destroy)(struct ddp_sync *s);
    int (*on_grad_ready)(struct ddp_sync *s, int param, struct ddp_err *err);
    int (*finish_backward)(struct ddp_sync *s, struct ddp_err *err);
    int (*end_step)(struct ddp_sync *s, struct ddp_err *err);
    void (*counters)(const struct ddp_sync *s, struct ddp_sync_counters *out);
};

const struct ddp_sync_class *const *ddp_syncs(void); /* NULL-terminated */
/* Splits "topk:0.01" into class and argument. DDP_EUSAGE lists the legal names. */
int ddp_sync_find(const char *text, const struct ddp_sync_class **cls, const char **argument,
                  struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
