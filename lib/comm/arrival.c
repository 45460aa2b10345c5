#include "comm/arrival.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/rng.h"
#include "base/unit.h"

#define MS_DEFAULT 1.0
#define MS_MAX     1000.0
#define RANK_MAX   1000000
#define SPIN_NS    100000     /* a wait spins during this last part */
#define STREAM     0x6c617465 /* number of the stream of random numbers: "late" in ASCII */

static int refuse(const char *text, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "--arrival '%s' is not one of late:R,MS, ramp[:MS], random[:MS]",
             text);
    return ddp_hint(err, "for example, with late:1,0.5 rank 1 enters 0.5 ms late; MS is at most %g",
                    MS_MAX);
}

int ddp_arrival_parse(const char *text, struct ddp_arrival *out, struct ddp_err *err)
{
    static const struct {
        const char *name;
        enum ddp_arrival_kind kind;
    } kinds[] = {
        {"late", DDP_ARRIVAL_LATE}, {"ramp", DDP_ARRIVAL_RAMP}, {"random", DDP_ARRIVAL_RANDOM}};
    struct ddp_err ignored = DDP_ERR_INIT;
    const char *colon = strchr(text, ':'), *ms = colon != NULL ? colon + 1 : NULL;
    const size_t n = colon != NULL ? (size_t)(colon - text) : strlen(text);
    *out = (struct ddp_arrival){.ms = MS_DEFAULT};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n == strlen(kinds[i].name) && strncmp(text, kinds[i].name, n) == 0)
            out->kind = kinds[i].kind;
    if (out->kind == DDP_ARRIVAL_LATE) {
        char rank[16];
        double value;
        const size_t digits = ms != NULL ? strcspn(ms, ",") : 0;
        if (ms == NULL || ms[digits] != ',' || digits >= sizeof rank)
            return refuse(text, err);
        snprintf(rank, sizeof rank, "%.*s", (int)digits, ms);
        if (strspn(rank, "0123456789") != digits ||
            ddp_parse_double(rank, 0, RANK_MAX, &value, &ignored) != 0)
            return refuse(text, err);
        out->rank = (int)value;
        ms += digits + 1;
    }
    if (out->kind == DDP_ARRIVAL_TOGETHER ||
        (ms != NULL && ddp_parse_double(ms, 0, MS_MAX, &out->ms, &ignored) != 0) || !(out->ms > 0))
        return refuse(text, err);
    if (out->kind == DDP_ARRIVAL_LATE)
        snprintf(out->name, sizeof out->name, "late:%d,%g", out->rank, out->ms);
    else
        snprintf(out->name, sizeof out->name, "%.*s:%g", (int)n, text, out->ms);
    return 0;
}

int ddp_arrival_check(const struct ddp_arrival *a, int ranks, struct ddp_err *err)
{
    if (a->kind != DDP_ARRIVAL_LATE || a->rank < ranks)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "--arrival %s: there is no rank %d among %d rank%s", a->name,
                    a->rank, ranks, ranks == 1 ? "" : "s");
}

int64_t ddp_arrival_delay(const struct ddp_arrival *a, int rank, int size, uint64_t seed,
                          uint64_t iteration)
{
    struct ddp_rng rng;
    double part = 0;
    switch (a->kind) {
    case DDP_ARRIVAL_TOGETHER:
        break;
    case DDP_ARRIVAL_LATE:
        part = rank == a->rank;
        break;
    case DDP_ARRIVAL_RAMP:
        part = size > 1 ? (double)rank / (size - 1) : 0;
        break;
    case DDP_ARRIVAL_RANDOM:
        ddp_rng_init(&rng, seed ^ ddp_mix64(iteration), STREAM + (uint64_t)rank);
        part = ddp_rng_double(&rng);
        break;
    }
    return (int64_t)(part * a->ms * 1e6);
}

void ddp_arrival_wait(const struct ddp_arrival *a, const struct ddp_comm *comm, uint64_t seed,
                      uint64_t iteration)
{
    if (a->kind == DDP_ARRIVAL_TOGETHER || comm->size == 1)
        return;
    const int64_t until =
        ddp_now_ns() + ddp_arrival_delay(a, comm->rank, comm->size, seed, iteration);
    /* A long wait first sleeps, so that other ranks can use the core. It ends with a spin, because
     * a sleep may end late. */
    const int64_t sleep = until - ddp_now_ns() - SPIN_NS;
    if (sleep > 0)
        ddp_sleep_ns(sleep);
    while (ddp_now_ns() < until)
        if (comm->rank_info.oversubscribed)
            sched_yield();
}
