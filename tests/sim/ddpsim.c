/* A program that runs under smpirun; tests/sim/simulate.py starts it. Usage:
 *   ddpsim dense bytes=B [collective=NAME] [algorithm=NAME] [split=even|zipf:S] [spoil=1]
 *   ddpsim sparse elements=N density=D [algorithm=NAME]
 * Prints a line of JSON for the link, one for each algorithm, and a last one that tells that all
 * ranks succeeded, because smpirun exits with 0 whatever its ranks return. spoil: makes the results
 * of rank 1 wrong. */
#include "sim/sim.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time for a barrier of all ranks. */
#define START_SECONDS 1.0
/* The time per byte is measured with a message of this size. */
#define LONG_BYTES ((size_t)1 << 20)

/* All ranks share these variables and take turns. */
static double start_at, last_end, most_sent;
static const void *shown;

extern const struct ddp_backend_module ddp_backend_module; /* backend_mpi.c */

int sim_start(struct sim *sim, struct ddp_err *err)
{
    if (sim->comm->rank == 0)
        start_at = simgrid_get_clock() + START_SECONDS;
    last_end = most_sent = 0;
    DDP_TRY(ddp_comm_barrier(sim->comm, err));
    if (simgrid_get_clock() > start_at)
        return ddp_fail(err, DDP_EINTERNAL, "a barrier took more than %g s", START_SECONDS);
    sg_actor_sleep_until(start_at);
    sim->comm->wire_bytes = 0;
    return 0;
}

int sim_end(struct sim *sim, double *seconds, double *wire_bytes, struct ddp_err *err)
{
    last_end = DDP_MAX(last_end, simgrid_get_clock());
    most_sent = DDP_MAX(most_sent, (double)sim->comm->wire_bytes);
    DDP_TRY(ddp_comm_barrier(sim->comm, err));
    *seconds = last_end - start_at;
    *wire_bytes = most_sent;
    return ddp_comm_barrier(sim->comm, err);
}

int sim_same(struct sim *sim, const void *data, size_t bytes, struct ddp_err *err)
{
    if (sim->comm->rank == 0)
        shown = data;
    DDP_TRY(ddp_comm_barrier(sim->comm, err));
    const bool same = bytes == 0 || memcmp(shown, data, bytes) == 0;
    DDP_TRY(ddp_comm_barrier(sim->comm, err));
    return same ? 0
                : ddp_fail(err, DDP_EDATA, "rank %d has another result than rank 0",
                           sim->comm->rank);
}

void sim_leave_out(const struct sim *sim, const char *algorithm, const struct ddp_err *why)
{
    if (sim->comm->rank == 0)
        printf("{\"what\": \"left out\", \"algorithm\": \"%s\", \"reason\": \"%s\"}\n", algorithm,
               why->text);
}

/* Measures half of a round trip between the first and the last rank. Both end at the same time. */
static int half_round_trip(struct sim *sim, void *buffer, size_t bytes, double *seconds,
                           struct ddp_err *err)
{
    struct ddp_comm *comm = sim->comm;
    const int last = comm->size - 1, peer = comm->rank == 0 ? last : 0;
    struct ddp_request req = {.active = false};
    double sent;

    DDP_TRY(sim_start(sim, err));
    for (int turn = 0; turn < 2 && (comm->rank == 0 || comm->rank == last); turn++) {
        if ((turn == 0) == (comm->rank == 0))
            DDP_TRY(ddp_comm_isend(comm, peer, 1, buffer, bytes, &req, err));
        else
            DDP_TRY(ddp_comm_irecv(comm, peer, 1, buffer, bytes, &req, err));
        DDP_TRY(ddp_comm_wait(comm, &req, 1, err));
    }
    DDP_TRY(sim_end(sim, seconds, &sent, err));
    *seconds /= 2;
    return 0;
}

static int measure_link(struct sim *sim, struct ddp_err *err)
{
    double alpha, whole;
    void *buffer = calloc(1, LONG_BYTES);
    int rc = buffer == NULL ? ddp_fail(err, DDP_ENOMEM, "no memory for a message") : 0;
    if (rc == 0)
        rc = half_round_trip(sim, buffer, 4, &alpha, err);
    if (rc == 0)
        rc = half_round_trip(sim, buffer, LONG_BYTES, &whole, err);
    free(buffer);
    if (rc != 0)
        return rc;
    sim->link.alpha_s = alpha;
    sim->link.beta_s = (whole - alpha) / (double)(LONG_BYTES - 4);
    if (sim->comm->rank == 0)
        printf("{\"what\": \"link\", \"ranks\": %d, \"alpha_us\": %.6g, \"beta_ns\": %.6g}\n",
               sim->comm->size, 1e6 * sim->link.alpha_s, 1e9 * sim->link.beta_s);
    return 0;
}

static int parse(int argc, char **argv, struct sim_options *o, struct ddp_err *err)
{
    *o = (struct sim_options){.mode = argc > 1 ? argv[1] : "", .bytes = 1 << 20, .density = 0.01};
    for (int i = 2; i < argc; i++) {
        const char *value = strchr(argv[i], '=');
        const size_t n = value != NULL ? (size_t)(value++ - argv[i]) : 0;
        if (n == 10 && memcmp(argv[i], "collective", n) == 0)
            o->collective = value;
        else if (n == 9 && memcmp(argv[i], "algorithm", n) == 0)
            o->algorithm = value;
        else if (n == 5 && memcmp(argv[i], "bytes", n) == 0)
            o->bytes = strtoull(value, NULL, 10);
        else if (n == 8 && memcmp(argv[i], "elements", n) == 0)
            o->elements = strtoull(value, NULL, 10);
        else if (n == 7 && memcmp(argv[i], "density", n) == 0)
            o->density = strtod(value, NULL);
        else if (n == 5 && memcmp(argv[i], "split", n) == 0)
            DDP_TRY(ddp_split_parse(value, &o->split, err));
        else if (n == 5 && memcmp(argv[i], "spoil", n) == 0)
            o->spoil = strcmp(value, "1") == 0;
        else
            return ddp_fail(err, DDP_EUSAGE, "unknown word '%s'", argv[i]);
    }
    return 0;
}

/* Reads the rank before MPI_Init from the simulator, as other code reads mpiexec's variables. */
static int place_of(struct ddp_rank_info *rank_info, struct ddp_err *err)
{
    const char *size = getenv("SMPI_GLOBAL_SIZE");
    const char *rank = size != NULL ? sg_actor_get_property_value(sg_actor_self(), "rank") : NULL;
    if (rank == NULL || strtol(size, NULL, 10) < 2)
        return ddp_fail(err, DDP_EUNAVAIL, "needs smpirun, and two ranks or more");
    *rank_info = (struct ddp_rank_info){.rank = (int)strtol(rank, NULL, 10),
                                        .size = (int)strtol(size, NULL, 10),
                                        .local_size = 1,
                                        .segment_fd = -1};
    return 0;
}

static int rank_main(const struct sim_options *options, struct ddp_err *err)
{
    const struct ddp_comm_options comm_options = {
        .timeout_ns = INT64_C(600000000000),
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
    };
    struct sim sim = {.options = options};
    struct ddp_rank_info rank_info;
    DDP_TRY(place_of(&rank_info, err));
    DDP_TRY(ddp_comm_create(ddp_backend_module.backend, &rank_info, &comm_options, &sim.comm, err));
    int rc = measure_link(&sim, err);
    if (rc == 0 && strcmp(options->mode, "dense") == 0)
        rc = sim_dense(&sim, err);
    else if (rc == 0 && strcmp(options->mode, "sparse") == 0)
        rc = sim_sparse(&sim, err);
    else if (rc == 0 && strcmp(options->mode, "link") != 0)
        rc = ddp_fail(err, DDP_EUSAGE, "unknown mode '%s'", options->mode);
    if (rc == 0)
        rc = ddp_comm_barrier(sim.comm, err);
    if (rc == 0 && rank_info.rank == 0)
        printf("{\"what\": \"end\"}\n");
    if (rc != 0) { /* no rank survives this */
        fprintf(stderr, "ddpsim: rank %d: %s\n", rank_info.rank, err->text);
        ddp_comm_abort(sim.comm, rc);
    }
    ddp_comm_destroy(sim.comm);
    return rc;
}

int main(int argc, char **argv)
{
    struct sim_options options;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = parse(argc, argv, &options, &err);
    if (rc == 0)
        rc = rank_main(&options, &err);
    if (rc != 0)
        fprintf(stderr, "ddpsim: %s\n", err.text);
    return ddp_exit_code(rc);
}
