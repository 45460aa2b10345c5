#include "collective_timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PRECISION_PERCENT 2
#define MAX_TIME_S        5
#define BLOCKS            20 /* number of blocks (--block) without -n */

/* Parses PCT@ID into o->inject_percent and o->inject_id. */
static int parse_inject(const char *text, struct ddp_bench_options *o, struct ddp_err *err)
{
    char *end;
    o->inject_percent = strtod(text, &end);
    const bool number =
        end != text && *end == '@' && o->inject_percent > 0 && o->inject_percent <= 1000;
    if (!number || end[1] == '\0' || strlen(end + 1) >= sizeof o->inject_id) {
        ddp_fail(err, DDP_EUSAGE, "--inject-delay '%s' is not of the form PCT@ID", text);
        return ddp_hint(err,
                        "for example 10@ID for 10 %% (at most 1000); --dry-run prints the ids");
    }
    snprintf(o->inject_id, sizeof o->inject_id, "%s", end + 1);
    return 0;
}

/* Labels the record if a delay is injected or blocks are timed, because the times are then not
 * those of single calls. */
static void label(struct ddp_collective_values *v)
{
    const struct ddp_bench_options *o = &v->bench;
    char *out = v->world.label;
    const size_t bytes = sizeof v->world.label;
    if (o->inject_id[0])
        snprintf(out, bytes, "injected delay of %g %%", o->inject_percent);
    if (o->block > 1) {
        const size_t n = strlen(out);
        snprintf(out + n, bytes - n, "%sblocks of %lld calls", n ? "; " : "", (long long)o->block);
    }
}

int ddp_collective_timing(struct ddp_collective_values *v, const struct ddp_opt *rows,
                          const struct ddp_opt_result *parsed, struct ddp_err *err)
{
    struct ddp_bench_options *o = &v->bench;
    const bool exactly = ddp_opt_given(rows, parsed, "iters") || o->block > 1;
    if (!exactly || ddp_opt_given(rows, parsed, "precision"))
        o->precision = v->precision_percent / 100;
    if (exactly && !ddp_opt_given(rows, parsed, "max-time"))
        o->max_time_s = 0;
    if (!ddp_opt_given(rows, parsed, "iters"))
        o->iters = o->block > 1 ? BLOCKS : DDP_PLAN_ITERS_ADAPTIVE;
    if (o->block > 1 && ddp_opt_given(rows, parsed, "precision"))
        return ddp_fail(err, DDP_EUSAGE,
                        "--precision has no effect with --block %lld: blocks have no interval",
                        (long long)o->block);
    if (v->inject)
        DDP_TRY(parse_inject(v->inject, o, err));
    label(v);
    return 0;
}

void ddp_collective_describe_timing(const struct ddp_bench_options *o, char *out, size_t out_bytes)
{
    char limit[48] = "", block[48] = "";
    if (o->max_time_s > 0)
        snprintf(limit, sizeof limit, "%s%g s", o->precision > 0 ? "" : ", at most ",
                 o->max_time_s);
    if (o->block > 1)
        snprintf(block, sizeof block, " of %lld calls", (long long)o->block);
    if (o->precision > 0)
        snprintf(out, out_bytes, "iterations%s until %g %% precise, at most %s%s%lld", block,
                 o->precision * 100, limit, limit[0] ? " and " : "", (long long)o->iters);
    else
        snprintf(out, out_bytes, "%lld iterations%s%s", (long long)o->iters, block, limit);
}
