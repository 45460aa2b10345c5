/* Runs and verifies every algorithm of every collective that sends messages, once. */
#include "sim/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/operands.h"

/* Verifies the result. For all-reduce only rank 0 checks the sums, which costs ranks times
 * elements; the other ranks must have the same bytes. */
static int verify(struct sim *sim, const struct ddp_operands *o, struct ddp_err *err)
{
    int64_t elements, wrong;
    if (sim->options->spoil && sim->comm->rank == 1 && o->full_bytes > 0)
        *(unsigned char *)o->args.recv ^= 1;
    if (o->args.coll != DDP_ALLREDUCE)
        return ddp_operands_verify(o, 0, &elements, &wrong, err);
    if (sim->comm->rank == 0)
        DDP_TRY(ddp_operands_verify(o, 0, &elements, &wrong, err));
    return sim_same(sim, o->args.recv, o->full_bytes, err);
}

static void print(const struct sim *sim, const struct ddp_coll_plan *plan, double seconds,
                  double sent)
{
    struct ddp_coll_cost cost;
    ddp_coll_cost_of(plan->alg, sim->comm->size, &plan->shape, &cost);
    const double model_s = ddp_cost_seconds(&cost, sim->link.alpha_s, sim->link.beta_s);
    if (sim->comm->rank != 0)
        return;
    printf("{\"what\": \"dense\", \"collective\": \"%s\", \"algorithm\": \"%s\", \"ranks\": %d, "
           "\"bytes\": %zu, \"time_us\": %.6g, \"cost_us\": %.6g, \"steps\": %.10g, "
           "\"cost_bytes\": %.10g, \"wire_bytes\": %.10g}\n",
           ddp_coll_name(plan->alg->coll), plan->alg->name, sim->comm->size, (size_t)plan->bytes,
           1e6 * seconds, 1e6 * model_s, cost.steps, cost.sent_bytes, sent);
    fflush(stdout);
}

/* Runs one algorithm, and adds 1 to *ran if it ran. */
static int run(struct sim *sim, const struct ddp_coll_alg *alg, const struct ddp_operands *o,
               int *ran, struct ddp_err *err)
{
    struct ddp_coll_plan plan;
    struct ddp_err reason = DDP_ERR_INIT;
    double seconds, sent;

    if (ddp_coll_plan_init(&plan, sim->comm, alg, &o->args, &reason) != 0) {
        if (reason.code == DDP_EUNAVAIL) {
            sim_leave_out(sim, alg->name, &reason);
            return 0;
        }
        *err = reason;
        return reason.code;
    }
    int rc = 0;
    ddp_operands_fill(o, 0);
    DDP_TRY_GOTO(sim_start(sim, err), out);
    DDP_TRY_GOTO(ddp_coll_run(sim->comm, &plan, err), out);
    DDP_TRY_GOTO(sim_end(sim, &seconds, &sent, err), out);
    DDP_TRY_GOTO(verify(sim, o, err), out);
    print(sim, &plan, seconds, sent);
    ++*ran;
out:
    ddp_coll_plan_release(&plan);
    return rc;
}

static bool wanted(const struct sim_options *options, const struct ddp_coll_alg *alg)
{
    if (options->collective != NULL && strcmp(options->collective, ddp_coll_name(alg->coll)) != 0)
        return false;
    /* Skips native collectives, whose cost is not modelled. */
    return options->algorithm != NULL ? strcmp(options->algorithm, alg->name) == 0
                                      : strcmp(alg->name, "native") != 0;
}

/* Fills the table [size][size] of all-to-all-v, or [size] if the split is one row. Returns the size
 * of the buffers that the collective needs. */
static size_t fill_split(const struct sim *sim, enum ddp_coll coll, size_t *split)
{
    const int n = sim->comm->size;
    const size_t elem = ddp_dtype_size(DDP_F32);
    struct ddp_split_load load;

    ddp_split_fill(&sim->options->split, coll, 1, n, sim->options->bytes / elem / (size_t)n, split);
    ddp_split_loads(coll, split, n, &load);
    return load.largest * elem;
}

int sim_dense(struct sim *sim, struct ddp_err *err)
{
    const size_t bytes = sim->options->bytes;
    size_t *split;
    DDP_TRY(DDP_NEW(&split, (size_t)sim->comm->size * (size_t)sim->comm->size, err));
    const size_t room = DDP_MAX(bytes, fill_split(sim, DDP_ALL_TO_ALL_V, split));
    void *a = ddp_alloc_pages(room), *b = ddp_alloc_pages(room);
    int rc = 0, ran = 0;

    if (a == NULL || b == NULL)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory for 2 buffers of %zu bytes", room);
    for (const struct ddp_coll_alg *const *alg = ddp_coll_algorithms(); rc == 0 && *alg; alg++) {
        struct ddp_point_spec spec = {
            .coll = (*alg)->coll,
            .dtype = DDP_F32,
            .op = DDP_SUM,
            .placement = DDP_OUT_OF_PLACE,
            .size_bytes = (*alg)->coll == DDP_BARRIER ? 0 : bytes,
        };
        struct ddp_operands o;
        spec.count = spec.size_bytes / ddp_dtype_size(spec.dtype);
        if (!wanted(sim->options, *alg))
            continue;
        ddp_operands_init(&o, &spec, sim->comm->rank, sim->comm->size, a, b);
        if (ddp_coll_has_split(spec.coll)) {
            fill_split(sim, spec.coll, split);
            ddp_operands_split(&o, split);
        }
        rc = run(sim, *alg, &o, &ran, err);
    }
    if (rc == 0 && ran == 0)
        rc = ddp_fail(err, DDP_EUSAGE, "no such algorithm runs here");
    ddp_free_pages(a, room);
    ddp_free_pages(b, room);
    free(split);
    return rc;
}
