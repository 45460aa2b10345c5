/* Backend nccl: one GPU per rank, connected by NVIDIA's NCCL. NCCL has no barriers and no agreement
 * on errors, and it does not report every dead rank. Therefore the backend also opens a side
 * channel (bootstrap.h). Memory and streams come from the device (device/stream.h). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpuinfo.h"
#include "base/mem.h"
#include "base/sysinfo.h"
#include "comm/nccl/backend_nccl_impl.inc.h"
#include "comm/bootstrap.h"
#include "comm/gpu_share.h"
#include "comm/hosts.h"
#include "launch/launch_in_subprocess.h"

/* Time limit for the child process that runs read_facts. On a machine with many GPUs the driver may
 * take seconds to initialise. */
#define FACTS_TIMEOUT_NS INT64_C(30000000000)

/* Facts about GPUs and NCCL. A child process collects them (launch_in_subprocess.h). */
struct facts {
    int gpus;
    char library[32];
    struct ddp_device_info first;
    struct ddp_err no_gpu; /* why no GPU is usable; code 0: a GPU is usable */
    /* why NCCL cannot be loaded; code 0: NCCL can be loaded, or no GPU is usable */
    struct ddp_err no_library;
};

static int read_facts(void *answer, struct ddp_err *err)
{
    struct facts *f = answer;
    const struct ddp_device *gpu = ddp_device_find("cuda");
    const struct ddp_nccl *api = NULL;
    (void)err;
    *f = (struct facts){.no_gpu = DDP_ERR_INIT, .no_library = DDP_ERR_INIT};
    if (gpu == NULL)
        ddp_fail(&f->no_gpu, DDP_EUNAVAIL, "not built: this ddpbench was compiled without CUDA");
    else if (gpu->probe(&f->no_gpu) == 0)
        f->gpus = gpu->count();
    if (f->gpus == 0) /* loading NCCL takes time and needs a GPU */
        return 0;
    if (gpu->info(0, &f->first, NULL) != 0)
        memset(&f->first, 0, sizeof f->first);
    if (ddp_nccl_load(&api, &f->no_library) == 0)
        memcpy(f->library, api->text, sizeof f->library);
    return 0;
}

static struct facts known; /* filled once by read_facts_once */

static void read_facts_once(void)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_launch_in_subprocess(read_facts, &known, sizeof known, FACTS_TIMEOUT_NS, &err) == 0)
        return;
    known = (struct facts){.no_library = DDP_ERR_INIT, .no_gpu = err};
}

static const struct facts *facts(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_facts_once);
    return &known;
}

int ddp_nccl_first_capability(void)
{
    return facts()->gpus > 0 ? facts()->first.capability : -1;
}

static int nccl_probe(const char *module_dir, struct ddp_err *err)
{
    const struct facts *f = facts();
    (void)module_dir;
    if (f->no_gpu.code != 0)
        return ddp_fail_copy(err, &f->no_gpu);
    return ddp_fail_copy(err, &f->no_library); /* returns 0 if NCCL can be loaded */
}

static const char *nccl_library(void)
{
    const struct ddp_nccl *api = NULL;
    struct ddp_err ignored = DDP_ERR_INIT;
    if (ddp_nccl_text() == NULL && facts()->library[0] != '\0')
        return facts()->library;
    return ddp_nccl_load(&api, &ignored) == 0 ? api->text : NULL;
}

static int nccl_load(struct ddp_err *err)
{
    const struct ddp_nccl *api = NULL;
    return ddp_nccl_load(&api, err);
}

static int nccl_places(void)
{
    return nccl_probe(NULL, NULL) == 0 ? facts()->gpus : 0;
}

static int64_t nccl_place_bytes(void)
{
    return nccl_places() > 0 ? facts()->first.memory_bytes : -1;
}

static const char *nccl_device_text(void)
{
    return facts()->first.runtime[0] != '\0' ? facts()->first.runtime : NULL;
}

/* Facts about a rank's host, GPU and NCCL, which the rank sends to all ranks before NCCL starts. */
struct card {
    uint64_t host;
    int32_t version, capability;
    char bus[16];
};

/* Selects the GPU whose index is this rank's local rank. If ranks share GPUs, the index is the
 * local rank modulo the number of GPUs. An outside launcher may show each rank only one GPU, which
 * then has index 0. */
static int choose_gpu(struct ddp_comm *comm, struct ddp_nccl_world *w, struct ddp_err *err)
{
    const struct ddp_rank_info *rank_info = &comm->rank_info;
    const int gpus = w->device->count(), local = DDP_MAX(rank_info->local_size, 1);
    w->index = rank_info->local_rank;
    if (gpus == 1 && rank_info->segment == NULL)
        w->index = 0; /* compare_cards checks that no two ranks share the GPU */
    else if (w->options.share && gpus > 0)
        w->index = rank_info->local_rank % gpus;
    else if (rank_info->local_rank >= gpus) {
        DDP_TRY(w->device->probe(err));
        ddp_fail(err, DDP_EUNAVAIL, "%d ranks on this host, but %d usable GPU%s", local, gpus,
                 gpus == 1 ? "" : "s");
        return ddp_hint(
            err, "start at most %d ranks per host, or use --share-gpu without a launcher", gpus);
    }
    return w->device->select(w->index, err);
}

/* Fails if two ranks have different versions of NCCL, or the same GPU although `share` is not set.
 * `card` has one entry per rank. */
static int compare_cards(const struct ddp_comm *comm, const struct card *card, bool share,
                         struct ddp_err *err)
{
    for (int r = 0; r < comm->size; r++) {
        if (card[r].version != card[0].version)
            return ddp_fail(err, DDP_EMISMATCH,
                            "rank 0 has NCCL version code %d, but rank %d has %d", card[0].version,
                            r, card[r].version);
        for (int q = 0; q < r && !share; q++) {
            if (card[q].host != card[r].host || strcmp(card[q].bus, card[r].bus) != 0 ||
                card[r].bus[0] == '\0')
                continue;
            ddp_fail(err, DDP_EUNAVAIL,
                     "ranks %d and %d have the same GPU, %s; each rank needs its own GPU", q, r,
                     card[r].bus);
            return ddp_hint(err, "start one rank per GPU, or use --share-gpu without a launcher");
        }
    }
    return 0;
}

static int exchange_cards(struct ddp_comm *comm, struct ddp_nccl_world *w, struct ddp_err *err)
{
    struct ddp_sysinfo host;
    struct ddp_device_info info = {.name = "", .capability = -1};
    struct card mine = {.version = w->api->version};
    struct card *all;
    int rc = DDP_NEW(&all, (size_t)comm->size, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm->control, rc, err), out);
    ddp_sysinfo_read(&host);
    mine.host = ddp_hosts_identity(&host);
    if (w->device->info(w->index, &info, NULL) == 0)
        memcpy(mine.bus, info.bus, sizeof mine.bus);
    mine.capability = info.capability;
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm->control, &mine, all, sizeof mine, err), out);
    rc = compare_cards(comm, all, w->options.share, err);
    if (rc != 0 && err != NULL)
        err->agreed = true; /* all ranks have compared the same array */
    w->capability = all[0].capability;
    for (int r = 1; r < comm->size; r++)
        w->capability = DDP_MIN(w->capability, all[r].capability);
out:
    free(all);
    return rc;
}

static void state_free(struct ddp_nccl_state *s)
{
    const struct ddp_device *device = s->world->device;
    struct ddp_nccl_state **at = &s->world->states;
    if (s->world->stuck)
        return;
    while (*at != NULL && *at != s)
        at = &(*at)->next;
    if (*at != NULL)
        *at = s->next;
    ddp_nccl_drop_graph(s);
    /* Destroy the stream first, because work on the stream may still use the memory and the
     * events. */
    device->streams->destroy(s->stream);
    if (s->scratch != NULL)
        device->free(s->scratch, s->scratch_bytes);
    if (s->word != NULL)
        device->free(s->word, sizeof(float));
    device->streams->event_destroy(s->begin);
    device->streams->event_destroy(s->end);
    free(s->seen);
    free(s->met);
    free(s);
}

/* Creates the stream and the events of one communicator on this rank's GPU, and the f32 that the
 * native barrier sums. */
static int state_create(struct ddp_comm *owner, struct ddp_nccl_world *w,
                        struct ddp_nccl_state **out, struct ddp_err *err)
{
    const struct ddp_stream_ops *streams = w->device->streams;
    struct ddp_nccl_state *s;
    int rc;
    DDP_TRY(DDP_NEW(&s, 1, err));
    s->world = w;
    s->owner = owner;
    DDP_TRY_GOTO(streams->create(&s->stream, err), err_state);
    DDP_TRY_GOTO(streams->event_create(&s->begin, err), err_state);
    DDP_TRY_GOTO(streams->event_create(&s->end, err), err_state);
    s->word = w->device->alloc(sizeof(float));
    if (s->word == NULL) {
        rc = ddp_fail(err, DDP_ENOMEM, "the GPU has no free memory");
        goto err_state;
    }
    w->device->fill(s->word, 0, sizeof(float));
    s->next = w->states;
    w->states = s;
    *out = s;
    return 0;

err_state:
    state_free(s);
    return rc;
}

/* Restricts this thread, and the threads that it starts later, to the processors near its GPU. The
 * caller calls this function before NCCL starts threads. Does nothing under an outside launcher,
 * because its user can choose the processors. */
static void move_near_gpu(const struct ddp_comm *comm, const struct ddp_nccl_world *w)
{
    struct ddp_device_info info;
    if (comm->rank_info.segment != NULL && w->device->info(w->index, &info, NULL) == 0)
        ddp_cpu_restrict(info.cpus);
}

static int nccl_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                     struct ddp_err *err)
{
    int rc;
    struct ddp_flight *own_flight = comm->flight;
    struct ddp_nccl_state *s = NULL;
    struct ddp_nccl_world *w;
    DDP_TRY(DDP_NEW(&w, 1, err));
    w->options = options->gpu;
    w->device = ddp_device_find("cuda");
    if (w->options.share)
        DDP_TRY_GOTO(ddp_gpu_share_rank(comm->rank, err), err_world);
    DDP_TRY_GOTO(ddp_bootstrap_open(comm, options, err), err_world);
    rc = w->device != NULL ? choose_gpu(comm, w, err)
                           : ddp_fail(err, DDP_EUNAVAIL, "this ddpbench was compiled without CUDA");
    if (rc == 0)
        move_near_gpu(comm, w);
    if (rc == 0)
        rc = ddp_nccl_load(&w->api, err);
    if (rc == 0)
        rc = state_create(comm, w, &s, err);
    DDP_TRY_GOTO(ddp_comm_agree(comm->control, rc, err), err_control);
    s->own_flight = own_flight;
    comm->state = s;
    comm->device = w->device;
    comm->device_index = w->index;
    comm->correctness_only = w->options.share;
    DDP_TRY_GOTO(exchange_cards(comm, w, err), err_control);
    DDP_TRY_GOTO(ddp_nccl_open(comm, err), err_abort);
    return 0;

err_abort:
    ddp_nccl_abort(comm);
    ddp_comm_abort(comm->control, rc);
err_control:
    if (s != NULL)
        state_free(s);
    comm->state = NULL;
    ddp_bootstrap_close(comm);
    comm->flight = own_flight;
err_world:
    if (!w->stuck)
        free(w);
    return rc;
}

static int nccl_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct ddp_nccl_world *w = ddp_nccl_state_of(parent)->world;
    DDP_TRY(ddp_bootstrap_group(parent, child, err));
    int rc = w->device->select(w->index, err);
    struct ddp_nccl_state *s = NULL;
    if (rc == 0)
        rc = state_create(child, w, &s, err);
    DDP_TRY_GOTO(ddp_comm_agree(child->control, rc, err), err_state);
    child->state = s;
    rc = child->size == parent->size ? ddp_nccl_split(parent, child, err)
                                     : ddp_nccl_open(child, err);
    if (rc == 0)
        rc = ddp_nccl_register_all(child, err);
    if (rc == 0)
        return 0;
    ddp_nccl_unregister_all(child);
    ddp_nccl_abort(child);
err_state:
    if (s != NULL)
        state_free(s);
    child->state = NULL;
    ddp_bootstrap_close(child);
    return rc;
}

static void nccl_finalize(struct ddp_comm *comm)
{
    struct ddp_nccl_state *s = ddp_nccl_state_of(comm);
    struct ddp_nccl_world *w = s->world;
    if (w->device->select(w->index, NULL) != 0)
        w->failed = true;
    ddp_nccl_drop_graph(s); /* the graph refers to the communicator and its memory */
    ddp_nccl_unregister_all(comm);
    ddp_nccl_close(comm);
    ddp_bootstrap_close(comm);
    if (comm->parent == NULL)
        comm->flight = s->own_flight;
    if (w->stuck)
        return;
    /* After a failure, work on the stream may still use the memory, so destroy the stream first. */
    w->device->streams->destroy(s->stream);
    s->stream = NULL;
    ddp_nccl_free_all(comm);
    state_free(s);
    if (comm->parent == NULL)
        free(w);
}

static void nccl_abort(struct ddp_comm *comm, int code)
{
    ddp_comm_abort(comm->control, code);
    ddp_nccl_abort(comm);
}

static int nccl_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                                struct ddp_err *err)
{
    return ddp_comm_allgather_bytes(comm->control, mine, all, bytes, err);
}

static struct ddp_stream *nccl_stream(struct ddp_comm *comm)
{
    return ddp_nccl_state_of(comm)->stream;
}

extern const struct ddp_backend ddp_backend_nccl; /* backend_list.h */
const struct ddp_backend ddp_backend_nccl = {
    .name = "nccl",
    .summary =
        "NVIDIA's NCCL, one GPU per rank; ddpbench, mpiexec, srun or torchrun starts the ranks",
    .caps = DDP_CAP_NATIVE | DDP_CAP_REGISTERED | DDP_CAP_DEVICE | DDP_CAP_ANY_LAUNCHER |
            DDP_CAP_AVG_FIRST,
    .library = nccl_library,
    .load = nccl_load,
    .device_library = nccl_device_text,
    .places = nccl_places,
    .place_bytes = nccl_place_bytes,
    .probe = nccl_probe,
    .init = nccl_init,
    .finalize = nccl_finalize,
    .abort = nccl_abort,
    .group = nccl_group,
    .barrier = ddp_nccl_barrier,
    .exchange = nccl_allgather_bytes,
    .alloc = ddp_nccl_alloc,
    .free = ddp_nccl_free,
    .native_supports = ddp_nccl_supports,
    .native = ddp_nccl_run,
    .native_many = ddp_nccl_run_many,
    .messages = ddp_nccl_messages,
    .stream = nccl_stream,
    .wait_stream = ddp_nccl_wait,
};
