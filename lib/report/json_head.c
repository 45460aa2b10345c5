/* The facts about a run in JSON, with the timer and the memory-copy speeds. */
#include "report/json_head.h"

#include <math.h>

#include "record/provenance.h"
#include "report/json_values.h"

const char *ddp_status_name(enum ddp_status status)
{
    return status == DDP_STATUS_COMPLETE ? "complete"
           : status == DDP_STATUS_FAILED ? "failed"
                                         : "partial";
}

static void add_tool(cJSON *doc, const struct ddp_record *r)
{
    const struct ddp_build *build = ddp_build_info();
    cJSON *tool = ddp_json_obj(doc, "tool");
    ddp_json_str(tool, "version", build->version);
    ddp_json_str(tool, "commit", build->commit);
    ddp_json_bool(tool, "dirty", build->dirty);
    ddp_json_str(tool, "compiler", build->compiler);
    ddp_json_str(tool, "cflags", build->cflags);
    ddp_json_str(tool, "simd", r->simd);
    cJSON *features = ddp_json_obj(tool, "features");
    ddp_json_str(features, "mpi", r->feature_mpi);
    ddp_json_str(features, "nccl", r->feature_nccl);
    ddp_json_str(features, "cuda", r->feature_cuda);
    ddp_json_str(features, "blas", r->feature_blas);
}

/* Adds an argument to an array, converted to valid JSON text by ddp_json_str. */
static void add_string_item(cJSON *array, const char *text)
{
    cJSON *holder = cJSON_CreateObject();
    ddp_json_str(holder, "s", text);
    cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(holder, "s");
    if (item && cJSON_IsNull(item)) {
        cJSON_Delete(item);
        item = cJSON_CreateString("");
    }
    cJSON_AddItemToArray(array, item);
    cJSON_Delete(holder);
}

static void add_gpus(cJSON *host, const struct ddp_host *h)
{
    cJSON *gpus = ddp_json_arr(host, "gpus");
    for (int i = 0; i < h->gpu_count; i++) {
        const struct ddp_gpu_facts *g = &h->gpus[i];
        cJSON *gpu = ddp_json_append(gpus);
        ddp_json_str(gpu, "name", g->name);
        ddp_json_str(gpu, "bus", g->bus);
        ddp_json_str(gpu, "driver", g->driver);
        ddp_json_count(gpu, "memory_bytes", g->memory_bytes);
        ddp_json_count(gpu, "sm_clock_MHz", g->sm_clock_MHz);
        ddp_json_count(gpu, "sm_clock_max_MHz", g->sm_clock_max_MHz);
        ddp_json_count(gpu, "memory_clock_MHz", g->memory_clock_MHz);
        ddp_json_count(gpu, "temperature_C", g->temperature_C);
        ddp_json_num(gpu, "power_limit_W", g->power_limit_W >= 0 ? g->power_limit_W : NAN);
        ddp_json_str(gpu, "throttle", g->throttle);
    }
}

void ddp_json_comm(cJSON *parent, const struct ddp_record *r)
{
    cJSON *comm = ddp_json_obj(parent, "comm_us");
    ddp_json_us(comm, "init", r->comm_init_ns);
    ddp_json_us(comm, "split", r->comm_split_ns);
    ddp_json_us(comm, "destroy", r->comm_destroy_ns);
}

static void add_world(cJSON *doc, const struct ddp_record *r)
{
    cJSON *world = ddp_json_obj(doc, "world");
    ddp_json_count(world, "ranks", r->world_ranks);
    ddp_json_str(world, "backend", r->world_backend);
    ddp_json_str(world, "launcher", r->launcher);
    ddp_json_str(world, "launch", r->launch);
    ddp_json_comm(world, r);
    cJSON *hosts = ddp_json_arr(world, "hosts");
    for (int i = 0; i < r->host_count; i++) {
        const struct ddp_host *h = &r->hosts[i];
        cJSON *host = cJSON_CreateObject();
        ddp_json_str(host, "name", h->name);
        ddp_json_count(host, "ranks", h->ranks);
        ddp_json_str(host, "cpu", h->cpu);
        ddp_json_count(host, "cores", h->cores);
        ddp_json_count(host, "usable_cores", h->usable_cores > 0 ? h->usable_cores : -1);
        ddp_json_count(host, "memory_bytes", h->memory_bytes);
        ddp_json_str(host, "kernel", h->kernel);
        ddp_json_str(host, "governor", h->governor);
        ddp_json_num(host, "load", h->load);
        add_gpus(host, h);
        cJSON_AddItemToArray(hosts, host);
    }
}

void ddp_json_head(cJSON *doc, const struct ddp_record *r)
{
    ddp_json_str(doc, "schema", "ddpbench/1");
    ddp_json_str(doc, "status", ddp_status_name(r->status));
    ddp_json_str(doc, "reason", r->reason);
    ddp_json_str(doc, "label", r->label);
    add_tool(doc, r);
    cJSON *command = ddp_json_obj(doc, "command");
    ddp_json_str(command, "name", r->command);
    cJSON *argv = ddp_json_arr(command, "argv");
    for (int i = 0; i < r->argc; i++)
        add_string_item(argv, r->argv[i]);
    ddp_json_str(doc, "started", r->started);
    ddp_json_str(doc, "finished", r->finished);
    ddp_json_count(doc, "seed", r->seed);
    add_world(doc, r);
    cJSON *environment = ddp_json_obj(doc, "environment");
    for (int i = 0; i < r->environment_count; i++) {
        const struct ddp_env_entry *e = &r->environment[i];
        if (e->value[0] == '\0') /* The variable is set but empty, which is a value. */
            cJSON_AddStringToObject(environment, e->key, "");
        else
            ddp_json_str(environment, e->key, e->value);
    }
}

void ddp_json_controls(cJSON *doc, const struct ddp_record *r)
{
    cJSON *timer = ddp_json_obj(doc, "timer");
    ddp_json_str(timer, "clock", "CLOCK_MONOTONIC");
    ddp_json_num(timer, "cost_ns", r->timer_cost_ns);
    ddp_json_num(timer, "resolution_ns", r->timer_resolution_ns);
    cJSON *controls = ddp_json_arr(doc, "control");
    for (int i = 0; i < r->control_count; i++) {
        const struct ddp_control *c = &r->controls[i];
        cJSON *control = ddp_json_append(controls);
        ddp_json_count(control, "ranks", c->ranks);
        ddp_json_count(control, "bytes_per_rank", c->bytes_per_rank);
        ddp_json_num(control, "copy_GBps", c->copy_GBps);
        ddp_json_num(control, "read_GBps", c->read_GBps);
    }
}
