/* The JSON of Google Benchmark (library 1.7, json_schema_version 1), for compare.py and other
 * programs that read it.
 *
 * Each point is a benchmark, whose name is the id of the point. With --samples each iteration is a
 * repetition, so that the U test of compare.py works. Without --samples the median is the only
 * repetition. real_time is the time on the slowest rank, in nanoseconds, because compare.py prints
 * no decimals. cpu_time has the same value, because waiting ranks usually spin. The label has the
 * codes of a doubtful point. An epoch is a benchmark whose time is the training time of the epoch.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "record/quality.h"
#include "report/report.h"

static void context(const struct ddp_record *r, cJSON *doc)
{
    cJSON *c = ddp_json_obj(doc, "context");
    const struct ddp_host *h = r->host_count > 0 ? &r->hosts[0] : NULL;
    ddp_json_str(c, "date", r->started);
    ddp_json_str(c, "host_name", h ? h->name : "");
    ddp_json_str(c, "executable", "ddpbench");
    ddp_json_count(c, "num_cpus", h ? h->cores : -1);
    ddp_json_count(c, "mhz_per_cpu", 0); /* Unknown, but readers expect a number. */
    ddp_json_bool(c, "cpu_scaling_enabled", false);
    ddp_json_arr(c, "caches");
    cJSON *load = ddp_json_arr(c, "load_avg");
    if (h && isfinite(h->load))
        cJSON_AddItemToArray(load, cJSON_CreateNumber(h->load));
    ddp_json_str(c, "library_version", r->build.version);
    ddp_json_str(c, "library_build_type", "release");
    ddp_json_count(c, "json_schema_version", 1);
    if (r->label[0])
        ddp_json_str(c, "label", r->label);
    if (r->status != DDP_STATUS_COMPLETE)
        ddp_json_str(c, "cut_off", r->reason);
}

/* Adds one repetition. */
static cJSON *entry(cJSON *list, const char *name, int family, int repetition, int repetitions,
                    double ns, int64_t iterations)
{
    cJSON *b = ddp_json_append(list);
    ddp_json_str(b, "name", name);
    ddp_json_count(b, "family_index", family);
    ddp_json_count(b, "per_family_instance_index", 0);
    ddp_json_str(b, "run_name", name);
    ddp_json_str(b, "run_type", "iteration");
    ddp_json_count(b, "repetitions", repetitions);
    ddp_json_count(b, "repetition_index", repetition);
    ddp_json_count(b, "threads", 1);
    ddp_json_count(b, "iterations", iterations);
    ddp_json_num(b, "real_time", ns);
    ddp_json_num(b, "cpu_time", ns);
    ddp_json_str(b, "time_unit", "ns");
    return b;
}

static void point(const struct ddp_record *r, int index, cJSON *list)
{
    const struct ddp_point *p = &r->points[index];
    const double *samples = r->samples ? r->samples[index] : NULL;
    int repetitions = samples ? (int)p->sample_count : 1;
    char id[192], codes[160];
    ddp_point_id(&p->spec, id, sizeof id);
    ddp_quality_list(p->quality, ",", codes, sizeof codes);
    for (int i = 0; i < repetitions; i++) {
        double ns = samples ? samples[i] : p->time_ns.median;
        cJSON *b = entry(list, id, index, i, repetitions, ns, samples ? 1 : p->iterations);
        ddp_json_num(b, "bytes_per_second", (double)p->spec.size_bytes / (ns * 1e-9));
        if (codes[0])
            ddp_json_str(b, "label", codes);
    }
}

static int render(const struct ddp_record *r, struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    context(r, doc);
    cJSON *list = ddp_json_arr(doc, "benchmarks");
    for (int i = 0; i < r->point_count; i++)
        point(r, i, list);
    for (int i = 0, family = r->point_count; i < r->train_count; i++)
        for (int e = 0; e < r->train[i].epoch_count; e++, family++) {
            char name[160];
            const struct ddp_train_run *t = &r->train[i];
            snprintf(name, sizeof name, "train/%s/%s/%s/n%d/seed%llu/epoch%d", t->model, t->dataset,
                     t->sync, t->ranks, (unsigned long long)t->seed, t->epochs[e].epoch);
            entry(list, name, family, 0, 1, t->epochs[e].seconds * 1e9, 1);
        }
    int rc = ddp_json_print(doc, out, err);
    cJSON_Delete(doc);
    return rc;
}

const struct ddp_reporter ddp_reporter_gbench = {
    .name = "gbench",
    .summary = "Google Benchmark's JSON, for its compare.py",
    .shows = DDP_RECORD_POINTS | DDP_RECORD_TRAINING,
    .document = true,
    .render = render,
};
