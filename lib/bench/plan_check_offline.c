/* Checks a plan before ranks exist. Fails for a point that its algorithm is known to refuse. */
#include <string.h>

#include "base/conf.h"
#include "bench/plan_impl.h"
#include "coll/coll.h"

static int check_offline(const struct ddp_point_spec *s, const struct ddp_backend *backend,
                         bool registered, struct ddp_err *err)
{
    const size_t parts = ddp_coll_message_bytes(s->coll, s->ranks, 1, DDP_U8);
    const struct ddp_coll_shape shape = {
        .coll = s->coll,
        .count = s->count / parts,
        .dtype = s->dtype,
        .op = s->op,
        .root = s->root,
        .in_place = s->placement == DDP_IN_PLACE,
        .registered = registered,
        .hosts = 1,
    };
    const struct ddp_coll_alg *alg = ddp_coll_find(s->coll, s->algorithm);
    return alg ? ddp_coll_check_offline(alg, backend, s->ranks, &shape, err) : 0;
}

/* Checks a point under an outside launcher. It is not yet known which ranks share memory. But it is
 * known that an algorithm for registered memory refuses private memory. */
static int check_launched_offline(const struct ddp_point_spec *s, struct ddp_err *err)
{
    const struct ddp_backend *shm = ddp_backend_find("shm");
    struct ddp_err ignored = DDP_ERR_INIT;
    if (s->memory == DDP_MEMORY_REGISTERED || check_offline(s, shm, true, &ignored) != 0)
        return 0;
    return check_offline(s, shm, false, err);
}

int ddp_plan_check_offline(const struct ddp_bench_plan *plan, const struct ddp_backend *backend,
                           struct ddp_err *err)
{
    const bool launched = (backend->caps & DDP_CAP_LAUNCHED) != 0;
    /* Skip this check for `all`, because the sampler skips combinations that cannot run. Skip it if
     * DDPBENCH_HOSTS simulates several hosts, because the check assumes one host. */
    if (plan->all_algorithms || plan->all_dtypes || plan->all_ops ||
        ddp_conf_get(DDP_CONF_HOSTS) != NULL)
        return 0;
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        struct ddp_err why = DDP_ERR_INIT;
        if (ddp_point_is_reduced(s)) /* compressed exchanges have other algorithms */
            continue;
        if ((launched ? check_launched_offline(s, &why)
                      : check_offline(s, backend, s->memory == DDP_MEMORY_REGISTERED, &why)) == 0)
            continue;
        ddp_fail(err, DDP_EUSAGE, "%s", why.text);
        return why.hint[0] ? ddp_hint(err, "%s", why.hint) : DDP_EUSAGE;
    }
    return 0;
}
