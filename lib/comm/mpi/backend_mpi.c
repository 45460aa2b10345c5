/* The module of backend mpi. It is built once for each installed MPI, as ddpbench-mpi-<flavour>.so,
 * and backend_mpi_load.c loads it. The module contains copies of the few ddp_* functions that it
 * calls (ci/build.mk).
 *
 * The collectives are MPI's blocking calls, because applications use these calls and MPI libraries
 * run other algorithms in non-blocking calls. Blocking calls have no deadline, so a watchdog thread
 * enforces a deadline. Errors that the library reports are returned as codes
 * (MPI_ERRORS_RETURN). */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/conf.h"
#include "base/dtype_info.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "build_facts.h"
#include "comm/backend.h"
#include "launch/launcher.h"

/* MPI counts elements in an int. Arrays with more elements than this limit are split into several
 * calls or described by one derived type. All-to-all-v and all-gather-v refuse such arrays. The
 * limit is a power of two, so that every part starts at an aligned address. Tests use a smaller
 * limit. */
#ifndef DDP_MPI_COUNT_MAX
#define DDP_MPI_COUNT_MAX (1 << 30)
#endif

/* 1 in a SimGrid simulation (ci/sim.mk). The simulation runs all ranks in one thread and switches
 * between ranks only in blocking calls. A rank that polls would therefore wait for ever. The
 * simulation needs no thread safety. */
#ifndef DDP_MPI_SIMULATED
#define DDP_MPI_SIMULATED 0
#endif

/* Pause between the last output of a rank and its call of MPI_Abort (see mpi_abort). */
#define ABORT_PAUSE_NS 100000000

/* To average integers of at most 32 bits, MPI sums them as 64-bit integers, piece by piece. A piece
 * has this number of elements (512 KiB). */
#define WIDE_COUNT ((size_t)64 << 10)

/* State that all communicators of a process share. Only `failed` changes after init. */
struct mpi_world {
    /* Duplicate of MPI_COMM_WORLD. Messages on it never match messages of other libraries. */
    MPI_Comm comm;
    /* Reduction operations for floats of 16 and 8 bits, which MPI lacks. */
    MPI_Op own_op[DDP_DTYPE_COUNT][DDP_OP_COUNT];
    /* Bugs of the MPI library. `unsigned_broken`: MIN and MAX compare this unsigned type as a
     * signed one. `reduce_broken`: an in-place MPI_Reduce crashes if the root is not rank 0. */
    bool unsigned_broken[DDP_DTYPE_COUNT], reduce_broken;
    /* True if a call failed in some thread, or if the run was aborted. mpi_native and mpi_finalize
     * then make no MPI call. */
    _Atomic(bool) failed;
};

/* State of one communicator. Only one thread at a time uses it. */
struct mpi_state {
    struct mpi_world *world;
    MPI_Comm comm;
    /* Scratch memory for copies of inputs and results, for the 64-bit inputs and sums of integer
     * averages, and for the counts and displacements of MPI calls such as MPI_Alltoallv. Allocated
     * by the first call that needs it, and enlarged if a later call needs more. */
    void *scratch;
    size_t scratch_bytes;
};

static struct mpi_state *state_of(const struct ddp_comm *comm)
{
    return comm->state;
}

/* Returns ddpbench's error code for an MPI error class. */
static int code_of(int mpi_class)
{
    switch (mpi_class) {
    case MPI_ERR_NO_MEM:
        return DDP_ENOMEM;
    case MPI_ERR_TRUNCATE:
        return DDP_EMISMATCH;
    case MPI_ERR_ARG:
    case MPI_ERR_BUFFER:
    case MPI_ERR_COMM:
    case MPI_ERR_COUNT:
    case MPI_ERR_OP:
    case MPI_ERR_RANK:
    case MPI_ERR_ROOT:
    case MPI_ERR_TAG:
    case MPI_ERR_TYPE:
        return DDP_EINTERNAL;
    default:
        /* MPI libraries report a dead peer with many classes: MPI_ERR_OTHER, MPI_ERR_INTERN,
         * MPIX_ERR_PROC_FAILED. */
        return DDP_ELOST;
    }
}

static int mpi_fail(struct mpi_world *world, int mpi_rc, const char *function, struct ddp_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "unknown error";
    char clean[384];
    int length, mpi_class = MPI_ERR_UNKNOWN;
    MPI_Error_string(mpi_rc, text, &length);
    MPI_Error_class(mpi_rc, &mpi_class);
    /* MPICH returns its whole error stack, one line per level. */
    for (char *line = text; (line = strchr(line, '\n')) != NULL;)
        *line = line[1] != '\0' ? ';' : '\0';
    ddp_printable(text, clean, sizeof clean);
    world->failed = true;
    return ddp_fail(err, code_of(mpi_class), "%s failed: %s", function, clean);
}

/* Calls an MPI function. If the call fails, the calling function returns the error code of
 * mpi_fail. */
#define MPI_TRY(world, err, function, ...)                                                         \
    do {                                                                                           \
        int mpi_rc_ = function(__VA_ARGS__);                                                       \
        if (mpi_rc_ != MPI_SUCCESS)                                                                \
            return mpi_fail(world, mpi_rc_, #function, err);                                       \
    } while (0)

/* The name and version of the MPI library, such as "Open MPI 4.1.4" or "MPICH 4.0.2". If the
 * version text that the library returns has an unknown form, library_text is the beginning of the
 * version text. */
static char library_text[64];

static void make_library_text(void)
{
    char full[MPI_MAX_LIBRARY_VERSION_STRING] = "", name[32], version[32];
    int length;
    MPI_Get_library_version(full, &length);
    full[strcspn(full, "\n,")] = '\0';
    if (sscanf(full, "Open MPI v%31s", version) == 1)
        snprintf(full, sizeof full, "Open MPI %s", version);
    else if (sscanf(full, "%31s Version: %31s", name, version) == 2)
        snprintf(full, sizeof full, "%s %s", name, version);
    ddp_printable(full, library_text, sizeof library_text);
}

static const char *mpi_library(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_library_text);
    return library_text;
}

/* A message as MPI describes it: n elements of `type`. A message with more than DDP_MPI_COUNT_MAX
 * elements is sent as one element of a derived type. */
struct block {
    int n;
    MPI_Datatype type;
    bool owned; /* `type` is a derived type that block_release frees */
};

/* Builds one derived type for `count` elements: rows of DDP_MPI_COUNT_MAX elements, and then the
 * rest. */
static int block_large(struct mpi_world *world, MPI_Datatype elem, size_t elem_bytes, size_t count,
                       struct block *block, struct ddp_err *err)
{
    const int row = DDP_MPI_COUNT_MAX;
    size_t rows = count / (size_t)row, rest = count % (size_t)row;
    MPI_Datatype parts[2];
    if (rows > INT_MAX)
        return ddp_fail(err, DDP_EUSAGE, "%zu elements are more than one MPI call can move", count);
    MPI_TRY(world, err, MPI_Type_vector, (int)rows, row, row, elem, &parts[0]);
    MPI_TRY(world, err, MPI_Type_contiguous, (int)rest, elem, &parts[1]);
    MPI_TRY(world, err, MPI_Type_create_struct, 2, (const int[]){1, 1},
            (const MPI_Aint[]){0, (MPI_Aint)(rows * (size_t)row * elem_bytes)}, parts,
            &block->type);
    MPI_TRY(world, err, MPI_Type_commit, &block->type);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    block->n = 1;
    block->owned = true;
    return 0;
}

/* Describes `count` elements. If `large` is true, uses a derived type even if `count` is small. */
static int block_init(struct mpi_world *world, MPI_Datatype elem, size_t elem_bytes, size_t count,
                      bool large, struct block *block, struct ddp_err *err)
{
    *block = (struct block){.n = (int)count, .type = elem};
    if (!large && count <= DDP_MPI_COUNT_MAX)
        return 0;
    return block_large(world, elem, elem_bytes, count, block, err);
}

/* This function may be called directly after a non-blocking call, because MPI keeps a type until
 * the operations that use it have ended. */
static void block_release(struct block *block)
{
    if (block->owned)
        MPI_Type_free(&block->type);
}

static int mpi_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    MPI_TRY(state_of(comm)->world, err, MPI_Barrier, state_of(comm)->comm);
    return 0;
}

static int mpi_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    /* MPI libraries compute count * ranks as an int. If the product could overflow, use a derived
     * type. */
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, bytes > DDP_MPI_COUNT_MAX / (size_t)comm->size,
                       &block, err));
    int mpi_rc = MPI_Allgather(mine, block.n, block.type, all, block.n, block.type, s->comm);
    block_release(&block);
    return mpi_rc == MPI_SUCCESS ? 0 : mpi_fail(s->world, mpi_rc, "MPI_Allgather", err);
}

/* In the requests of this backend, impl[0] holds the MPI_Request, u[0] the bytes, and u[1] whether
 * the request is a receive. */
_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "an MPI_Request must fit in impl[0]");

static void request_store(struct ddp_request *req, MPI_Request request)
{
    memcpy(&req->impl[0], &request, sizeof request);
}

static int mpi_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    MPI_Request request;
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, false, &block, err));
    int mpi_rc = MPI_Isend(buf, block.n, block.type, dst, tag, s->comm, &request);
    block_release(&block);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Isend", err);
    request_store(req, request);
    req->u[0] = bytes;
    req->u[1] = false;
    return 0;
}

static int mpi_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    MPI_Request request;
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, false, &block, err));
    int mpi_rc = MPI_Irecv(buf, block.n, block.type, src, tag, s->comm, &request);
    block_release(&block);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Irecv", err);
    request_store(req, request);
    req->u[0] = bytes;
    req->u[1] = true;
    return 0;
}

/* Tests a request. In a simulation, waits for the request instead. */
static int test_or_wait(MPI_Request *request, int *done, MPI_Status *status)
{
    if (!DDP_MPI_SIMULATED)
        return MPI_Test(request, done, status);
    *done = 1;
    return MPI_Wait(request, status);
}

/* Sets *bytes to the number of received bytes. SimGrid 3.32 lacks MPI_Get_elements_x, but the
 * counts of its messages fit in an int. */
static int count_bytes(MPI_Status *status, MPI_Count *bytes)
{
    int n = 0;
    if (!DDP_MPI_SIMULATED)
        return MPI_Get_elements_x(status, MPI_BYTE, bytes);
    const int mpi_rc = MPI_Get_count(status, MPI_BYTE, &n);
    *bytes = n;
    return mpi_rc;
}

static int mpi_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    MPI_Request request;
    MPI_Status status;
    int flag;
    memcpy(&request, &req->impl[0], sizeof request);
    int mpi_rc = test_or_wait(&request, &flag, &status);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Test", err);
    request_store(req, request);
    *done = flag;
    if (!flag || !req->u[1])
        return 0;
    /* MPI reports a message that is too long as MPI_ERR_TRUNCATE, but does not report a message
     * that is too short. */
    MPI_Count bytes = 0;
    mpi_rc = count_bytes(&status, &bytes);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Get_elements_x", err);
    if ((uint64_t)bytes == req->u[0])
        return 0;
    return ddp_fail(err, DDP_EMISMATCH, "received a message of %lld bytes, but expected %llu",
                    (long long)bytes, (unsigned long long)req->u[0]);
}

#include "comm/mpi/backend_mpi_native.inc.h"

/* Returns whether a call failed because MPICH has no free communicator. MPICH has 2048
 * communicators, but no error class for this case, so this function checks the error text
 * (**toomanycomm in src/mpi/errhan/errnames.txt). All members of the group get the same error and
 * can continue. */
static bool is_full(int mpi_rc)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;
    MPI_Error_string(mpi_rc, text, &length);
    return strstr(text, "Too many communicators") != NULL;
}

static int mpi_group(struct ddp_comm *parent, struct ddp_comm *child, struct ddp_err *err)
{
    struct mpi_world *world = state_of(parent)->world;
    MPI_Group all, some;
    struct mpi_state *s;
    DDP_TRY(DDP_NEW(&s, 1, err));
    s->world = world;
    MPI_Comm_group(world->comm, &all);
    MPI_Group_incl(all, child->size, child->world_rank, &some);
    int mpi_rc = MPI_Comm_create_group(world->comm, some, 0, &s->comm);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    if (mpi_rc != MPI_SUCCESS) {
        free(s);
        if (is_full(mpi_rc))
            return ddp_fail(err, DDP_EUNAVAIL, "%s has no room for another group", mpi_library());
        return mpi_fail(world, mpi_rc, "MPI_Comm_create_group", err);
    }
    MPI_Comm_set_errhandler(s->comm, MPI_ERRORS_RETURN);
    child->state = s;
    return 0;
}

static void state_free(struct mpi_state *s)
{
    if (s == NULL)
        return;
    ddp_free_pages(s->scratch, s->scratch_bytes);
    free(s);
}

/* Compares the rank and size that MPI reports with those of the launcher. The values differ if
 * mpiexec and the module belong to different MPIs. Without this check, every process would measure
 * a world of one rank. */
static int check_rank_info(const struct ddp_rank_info *rank_info, int rank, int size,
                           struct ddp_err *err)
{
    if (rank == rank_info->rank && size == rank_info->size)
        return 0;
    struct ddp_launcher launcher = {.name = "the launcher"};
    struct ddp_err ignored = DDP_ERR_INIT;
    if (ddp_launcher_detect(&launcher, &ignored) != 0)
        launcher.name = "the launcher";
    ddp_fail(err, DDP_EMISMATCH, "%s reports rank %d of %d, but %s reports rank %d of %d%s",
             launcher.name, rank_info->rank, rank_info->size, mpi_library(), rank, size,
             size == 1 ? ": each process would be a world of its own" : "");
    return ddp_hint(
        err,
        "start ddpbench with the mpiexec of %s, because its module " DDP_MPI_MODULE(
            "%s") " is loaded; or build the module for the MPI of your mpiexec (`make MPI=1`)",
        mpi_library(), DDP_MPI_FLAVOUR);
}

static const char *level_name(int level)
{
    return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                            : "MPI_THREAD_MULTIPLE";
}

/* Fails unless MPI provides the wanted thread level. The constants grow with the level (MPI 4.0,
 * 11.2.1), so >= compares levels. */
static int check_threads(int wanted, int provided, struct ddp_err *err)
{
    if (provided >= wanted)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "%s provides %s, but %s is needed", mpi_library(),
             level_name(provided), level_name(wanted));
    return ddp_hint(err, wanted == MPI_THREAD_MULTIPLE
                             ? "use an MPI that was built with threads (Open MPI: "
                               "--enable-mpi-threads), or run without overlap"
                             : "use an MPI that was built with threads");
}

static int world_open(struct mpi_world *world, struct ddp_err *err)
{
    MPI_TRY(world, err, MPI_Comm_dup, MPI_COMM_WORLD, &world->comm);
    MPI_TRY(world, err, MPI_Comm_set_errhandler, world->comm, MPI_ERRORS_RETURN);
    return ops_create(world, err);
}

static int mpi_init(struct ddp_comm *comm, const struct ddp_comm_options *options,
                    struct ddp_err *err)
{
    int started, provided, rank, size, rc;
    struct mpi_state *s = NULL;
    struct mpi_world *world = NULL;
    DDP_TRY_GOTO(DDP_NEW(&s, 1, err), err_free);
    DDP_TRY_GOTO(DDP_NEW(&world, 1, err), err_free);
    MPI_Initialized(&started);
    if (started) {
        rc = ddp_fail(err, DDP_EINTERNAL,
                      "MPI was started before in this process and can start only once");
        goto err_free;
    }
    /* With progress threads, several threads call MPI at the same time, which needs MULTIPLE.
     * Without progress threads only one thread at a time calls MPI, but not always the main thread,
     * so SERIALIZED is enough and FUNNELED is not. SERIALIZED is cheaper than MULTIPLE, because
     * Open MPI and MPICH take locks only for MULTIPLE. */
    const int wanted = options->threads    ? MPI_THREAD_MULTIPLE
                       : DDP_MPI_SIMULATED ? MPI_THREAD_SINGLE
                                           : MPI_THREAD_SERIALIZED;
    int mpi_rc = MPI_Init_thread(NULL, NULL, wanted, &provided);
    if (mpi_rc != MPI_SUCCESS) {
        rc = mpi_fail(world, mpi_rc, "MPI_Init_thread", err);
        goto err_free;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    rc = check_rank_info(&comm->rank_info, rank, size, err);
    if (rc == 0)
        rc = check_threads(wanted, provided, err);
    if (rc == 0)
        rc = world_open(world, err);
    if (rc != 0) {
        /* In a world of several ranks, MPI_Finalize could wait for ever for other ranks. Therefore
         * this process exits without MPI_Finalize, and mpiexec reports an abnormal exit. */
        if (size == 1)
            MPI_Finalize();
        goto err_free;
    }
    combine_device = options->device;
    s->world = world;
    s->comm = world->comm;
    comm->state = s;
    return 0;

err_free:
    free(world);
    state_free(s);
    return rc;
}

static void mpi_finalize(struct ddp_comm *comm)
{
    struct mpi_state *s = state_of(comm);
    struct mpi_world *world = s->world;
    if (comm->parent != NULL) {
        if (!world->failed)
            MPI_Comm_free(&s->comm);
        state_free(s);
        return;
    }
    /* After a failure another rank may never call MPI_Finalize, so this rank does not call it. */
    if (!world->failed) {
        ops_release(world);
        MPI_Comm_free(&world->comm);
        MPI_Finalize();
    }
    free(world);
    state_free(s);
}

/* Open MPI's MPI_Abort does not return, but ends this process with the exit code of `code`. On an
 * abort, MPICH's mpiexec (Hydra) drops output that it has not forwarded yet, such as our error
 * message. Therefore the rank pauses before it aborts. */
static void mpi_abort(struct ddp_comm *comm, int code)
{
    state_of(comm)->world->failed = true;
    ddp_sleep_ns(ABORT_PAUSE_NS);
    MPI_Abort(MPI_COMM_WORLD, ddp_exit_code(code));
}

/* Never called, because backend_mpi_load.c probes without loading the module. */
static int mpi_probe(const char *module_dir, struct ddp_err *err)
{
    return 0;
}

static const struct ddp_backend backend = {
    .name = "mpi",
    .summary = "MPI",
    .caps = DDP_CAP_P2P | DDP_CAP_NATIVE | DDP_CAP_LAUNCHED,
    .library = mpi_library,
    .probe = mpi_probe,
    .init = mpi_init,
    .finalize = mpi_finalize,
    .abort = mpi_abort,
    .group = mpi_group,
    .barrier = mpi_barrier,
    .exchange = mpi_allgather_bytes,
    .isend = mpi_isend,
    .irecv = mpi_irecv,
    .test = mpi_test,
    .native_supports = mpi_native_supports,
    .native = mpi_native,
};

extern const struct ddp_backend_module ddp_backend_module;
const struct ddp_backend_module ddp_backend_module = {
    .abi = DDP_MODULE_ABI,
    .flavour = DDP_MPI_FLAVOUR,
    .commit = DDP_COMMIT,
    .backend = &backend,
};
