/* Explains which algorithm `auto` would choose for a collective command (--explain-auto). */
#include <stdio.h>
#include <stdlib.h>

#include "base/conf.h"
#include "base/cpuinfo.h"
#include "base/strbuf.h"
#include "coll/coll_auto.h"
#include "run/points.h"

/* Sets `of` [all] to the expected host of each rank. If DDPBENCH_SIMULATE_HOSTS simulates several
 * hosts, its value decides. Otherwise an outside launcher's number of ranks per host decides.
 * Without an outside launcher there is one host. */
static int expect_hosts(const struct ddp_app *app, int all, uint64_t *of, struct ddp_err *err)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    const int local = own ? all : app->launcher.rank_info.local_size;
    const char *simulated = ddp_conf_get(DDP_CONF_SIMULATE_HOSTS);
    if (simulated != NULL && all > 1)
        return ddp_hosts_parse(simulated, all, of, err);
    for (int r = 0; r < all; r++)
        of[r] = (uint64_t)(local > 0 ? r / local : 0);
    return 0;
}

/* Counts the hosts of a group of ranks. The group consists of the first `ranks` of the `used` ranks
 * that --subset chooses from `all` ranks. */
static int count_hosts(const struct ddp_app *app, const struct ddp_collective_values *v, int ranks,
                       int used, int all, int *hosts, struct ddp_err *err)
{
    uint64_t *of;
    int *members = NULL;
    *hosts = 0;
    DDP_TRY(DDP_NEW(&of, (size_t)all, err));
    int rc = DDP_NEW(&members, (size_t)used, err);
    if (rc == 0)
        rc = expect_hosts(app, all, of, err);
    if (rc == 0)
        rc = ddp_hosts_subset((enum ddp_subset)v->world.subset, of, all, used, members, err);
    for (int i = 0; rc == 0 && i < ranks; i++) {
        int k = 0;
        while (of[members[k]] != of[members[i]])
            k++;
        *hosts += k == i;
    }
    free(members);
    free(of);
    return rc;
}

/* Predicts the member `oversubscribed` of struct ddp_comm_shm: whether there will be more threads
 * than cores. With --overlap-compute it is always true, because coll/async.c sets it for the
 * progress thread. */
static bool is_oversubscribed(const struct ddp_app *app, const struct ddp_collective_values *v,
                              int all)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    return v->bench.overlap ||
           (own ? all > ddp_cpu_usable_cores() : app->launcher.rank_info.oversubscribed);
}

/* Appends the table of the choices of `auto` with `count` ranks to `text`. */
static int explain_count(const struct ddp_app *app, const struct ddp_collective_values *v,
                         const char *backend, int count, struct ddp_strbuf *text,
                         struct ddp_err *err)
{
    const bool own = app->launcher.kind == DDP_LAUNCHER_NONE;
    const int all = own ? count : app->launcher.rank_info.size;
    const char *flavour = app->launcher.flavour;
    struct ddp_auto_query query = {
        .coll = v->bench.coll,
        .backend = ddp_backend_find(backend),
        .registered = ddp_points_plan(v, count)->memory == DDP_MEMORY_REGISTERED,
        .open_mpi = flavour != NULL && strcmp(flavour, DDP_MPI_OPENMPI) == 0,
    };
    DDP_TRY(ddp_plan_group_ranks(&v->bench, count, &query.ranks, err));
    DDP_TRY(count_hosts(app, v, query.ranks, count, all, &query.hosts, err));
    DDP_TRY(count_hosts(app, v, all, all, all, &query.world_hosts, err));
    query.oversubscribed = is_oversubscribed(app, v, all);
    ddp_coll_auto_explain(&query, text);
    return 0;
}

/* Prints the tables for each rank count of --ranks, or for `ranks` if the option was not given. */
int ddp_points_explain_auto(const struct ddp_app *app, const struct ddp_collective_values *v,
                            const char *backend, int ranks, struct ddp_err *err)
{
    const struct ddp_int_list *asked = &v->world.ranks;
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    int rc = 0;
    for (int i = 0; rc == 0 && i < DDP_MAX(asked->n, 1); i++)
        rc = explain_count(app, v, backend, asked->n > 0 ? (int)asked->v[i] : ranks, &text, err);
    if (rc == 0 && text.failed)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to explain 'auto'");
    else if (rc == 0)
        fputs(text.text, app->out);
    ddp_strbuf_release(&text);
    return rc;
}
