/* Prints the dry run of a sweep, and estimates its time and memory. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sysinfo.h"
#include "base/unit.h"
#include "collective.h"
#include "sweep.h"

/* Rough speeds of an older core. They give the order of magnitude of a sweep's time, and the share
 * of each item. sweep_run.c corrects the estimate with the real times of finished items. */
#define POINT_S          0.02  /* per point: buffers, ping-pong, one verified operation */
#define OPERATION_S      2e-6  /* per operation, without data */
#define BYTES_PER_S      1.5e9 /* at which one rank processes a message */
#define CHECK_S_PER_BYTE 2e-9
#define STAGE_S          0.1 /* to start a run */
#define ADAPTIVE_ITERS   200 /* typical number of adaptive iterations */

static double guess_points(const struct ddp_bench_options *o, const struct ddp_bench_plan *plan)
{
    double seconds = STAGE_S;
    for (int i = 0; i < plan->count; i++) {
        const struct ddp_point_spec *s = &plan->points[i];
        const double bytes = (double)s->size_bytes;
        const double one = OPERATION_S * s->ranks + bytes * (s->ranks > 1 ? 1 : 0.5) / BYTES_PER_S;
        const bool adaptive = o->precision > 0 || o->max_time_s > 0;
        double iterations = adaptive ? DDP_MIN((double)o->iters, ADAPTIVE_ITERS) : (double)o->iters;
        double timed = iterations * (one + 2 * OPERATION_S);
        if (adaptive && o->max_time_s > 0)
            timed = fmin(timed, o->max_time_s);
        if (o->check == DDP_CHECK_ALL)
            timed += iterations * bytes * CHECK_S_PER_BYTE;
        seconds += POINT_S + timed + (double)o->warmup * one + bytes * CHECK_S_PER_BYTE;
    }
    return seconds;
}

void ddp_sweep_estimate(const struct ddp_sweep_item *item, const void *values, int local,
                        double *seconds, uint64_t *bytes)
{
    const struct ddp_collective_values *v = values;
    if (!(item->cmd->flags & DDP_CMD_COLLECTIVE)) {
        ddp_sweep_estimate_training(item, values, local, seconds, bytes);
        return;
    }
    *seconds = guess_points(&v->bench, &v->plan);
    *bytes = v->plan.bytes_per_rank * (uint64_t)local;
}

static void print_head(const struct ddp_sweep_values *v, FILE *out)
{
    struct ddp_sysinfo host;
    char most[24], have[24] = "unknown", time[24], path[256];
    uint64_t bytes = 0;
    double seconds = 0;
    int trained = 0;
    for (int i = 0; i < v->count; i++) {
        bytes = DDP_MAX(bytes, v->items[i].bytes);
        seconds += v->items[i].seconds;
        trained += v->items[i].points == 0;
    }
    ddp_sysinfo_read(&host);
    if (host.available_bytes >= 0)
        ddp_format_size((uint64_t)host.available_bytes, have, sizeof have);
    ddp_format_size(bytes, most, sizeof most);
    ddp_format_ns(seconds * (double)v->launches * 1e9, time, sizeof time);
    ddp_printable(v->config_path, path, sizeof path);
    fprintf(out,
            "# dry run of %s: %lld launch%s of %d points and %d training run%s, in %d start%s "
            "of ranks\n",
            path, (long long)v->launches, v->launches == 1 ? "" : "es", v->points, trained,
            trained == 1 ? "" : "s", v->stage_count, v->stage_count == 1 ? "" : "s");
    fprintf(out, "# memory: at most %s at a time; available: %s\n", most, have);
    fprintf(out, "# time: about %s, estimated from sizes alone\n", time);
}

void ddp_sweep_print(const struct ddp_sweep_values *v, FILE *out)
{
    print_head(v, out);
    for (int s = 0; s < v->stage_count; s++) {
        const struct ddp_sweep_launch_group *stage = &v->stages[s];
        fprintf(out, "# launch %d: %d rank%s over %s\n", stage->launch, stage->ranks,
                stage->ranks == 1 ? "" : "s", stage->backend);
        for (int i = 0; i < stage->count; i++) {
            const struct ddp_sweep_item *item = &v->items[stage->items[i]];
            char text[1024];
            ddp_sweep_item_text(item, text, sizeof text);
            if (item->points == 0)
                fprintf(out, "%s\n", text);
            for (int k = 0; k < item->points; k++)
                fprintf(out, "%s\n", v->ids[item->first_place + k]);
        }
    }
}
