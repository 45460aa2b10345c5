/* Handles --algorithm for the plan: checks the names and expands `all`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/plan_impl.h"

/* One method of --compress; without --compress the only method is "none". */
struct method {
    const struct ddp_bench_options *options;
    int index;
};

static const char *algorithm_choice(const void *ctx, int i)
{
    const struct method *m = ctx;
    if (i < 2)
        return i == 0 ? "auto" : "all";
    return ddp_plan_algorithm(m->options, m->index, i - 2);
}

static int unknown_algorithm(const struct method *m, const char *name, struct ddp_err *err)
{
    char of[80];
    const char *method = ddp_plan_method(m->options, m->index)->text;
    const bool plain = strcmp(method, "none") == 0;
    snprintf(of, sizeof of, " of %s%s%.32s", ddp_coll_name(m->options->coll),
             plain ? "" : " --compress ", plain ? "" : method);
    return ddp_fail_unknown(err, "algorithm", name, of, algorithm_choice, m);
}

static bool has_algorithm(const struct method *m, const char *name)
{
    const char *choice;
    for (int i = 0; (choice = algorithm_choice(m, i)) != NULL; i++) {
        if (strcmp(choice, name) == 0)
            return true;
    }
    return false;
}

int ddp_plan_check_algorithms(const struct ddp_bench_options *o, struct ddp_err *err)
{
    for (int i = 0; i < o->algorithms.n; i++) {
        const char *name = o->algorithms.v[i];
        if (strcmp(name, "all") == 0 && o->algorithms.n > 1)
            return ddp_fail(err, DDP_EUSAGE,
                            "--algorithm 'all' must stand alone: it includes every other one");
        for (int j = 0; j < i; j++) {
            if (strcmp(name, o->algorithms.v[j]) == 0)
                return ddp_fail(err, DDP_EUSAGE, "--algorithm '%s' is given twice", name);
        }
        for (int m = 0; m < ddp_plan_methods(o); m++) {
            const struct method method = {o, m};
            if (!has_algorithm(&method, name))
                return unknown_algorithm(&method, name, err);
        }
    }
    return 0;
}

/* Lists the algorithms for a method. `all` becomes every algorithm of the collective or of the
 * compressed exchange. */
static int list_algorithms(const struct ddp_bench_options *o, int method,
                           struct ddp_string_list *out, struct ddp_err *err)
{
    memset(out, 0, sizeof *out);
    if (o->algorithms.n == 0) {
        out->n = 1;
        snprintf(out->v[0], sizeof out->v[0], "auto");
        return 0;
    }
    *out = o->algorithms;
    if (strcmp(o->algorithms.v[0], "all") != 0)
        return 0;
    const char *choice;
    for (out->n = 0; (choice = ddp_plan_algorithm(o, method, out->n)) != NULL; out->n++) {
        if (out->n == DDP_OPT_LIST_MAX)
            return ddp_fail(err, DDP_EINTERNAL, "more than %d algorithms", DDP_OPT_LIST_MAX);
        snprintf(out->v[out->n], sizeof out->v[0], "%s", choice);
    }
    return 0;
}

int ddp_plan_list_algorithms(const struct ddp_bench_options *o, struct ddp_string_list **out,
                             struct ddp_err *err)
{
    const int methods = ddp_plan_methods(o);
    struct ddp_string_list *lists = ddp_calloc((size_t)methods, sizeof *lists);
    if (!lists)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a plan of %d methods", methods);
    for (int m = 0; m < methods; m++) {
        int rc = list_algorithms(o, m, &lists[m], err);
        if (rc != 0) {
            free(lists);
            return rc;
        }
    }
    *out = lists;
    return 0;
}
