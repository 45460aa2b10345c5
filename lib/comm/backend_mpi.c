/* Backend mpi, the half that is built once for each MPI found, as ddpbench-mpi-<flavour>.so; it is
 * loaded by backend_mpi_load.c, and linked with the few ddp_* functions it calls (ci/build.mk).
 *
 * Collectives are MPI's own blocking calls, as users make them: other calls (MPI_Iallreduce) run
 * other algorithms. They know no deadline; the watchdog holds them to one. Errors come back as
 * codes (MPI_ERRORS_RETURN), as far as the library hands them back at all. */
#include <limits.h>
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "build_facts.h"
#include "comm/backend.h"
#include "comm/launcher.h"

/* MPI counts in int: more elements than this go as several calls, or as one derived type. A power
 * of two, so that a piece begins where its vector registers like it. Tests make it small. */
#ifndef DDP_MPI_COUNT_MAX
#define DDP_MPI_COUNT_MAX (1 << 30)
#endif

/* 1 in a simulation (ci/sim.mk), whose ranks take turns in one thread: one that polls keeps it, so
 * a wait must be a call that blocks; and there is nothing to be safe from. The one switch of it. */
#ifndef DDP_MPI_SIMULATED
#define DDP_MPI_SIMULATED 0
#endif

/* Between the last words of a rank and MPI_Abort. */
#define ABORT_PAUSE_NS 100000000

/* Elements of an integer average that are summed in 64 bits at a time: 512 KiB of them. */
#define WIDE_COUNT ((size_t)64 << 10)

/* What the communicators of a process share, and nobody changes after init but `failed`. comm:
 * MPI_COMM_WORLD's ranks, apart from the messages of others. op16: sums and so on of 16-bit floats,
 * which MPI lacks. unsigned_broken: compares bytes as signed ones. reduce_broken: crashes in place
 * at another root than rank 0. failed: a call failed or the run was given up, in whatever thread;
 * then nothing that waits is called. */
struct mpi_world {
    MPI_Comm comm;
    MPI_Op op16[2][DDP_OP_COUNT];
    bool unsigned_broken, reduce_broken;
    _Atomic(bool) failed;
};

/* The state of one communicator, which belongs to one thread at a time. wide [2][WIDE_COUNT]:
 * integer averages. scratch: what in-place calls need. Both are made by the first call that needs
 * them, which is one of warm-up or of verification. */
struct mpi_state {
    struct mpi_world *world;
    MPI_Comm comm;
    int64_t *wide;
    void *scratch;
    size_t scratch_bytes;
};

static struct mpi_state *state_of(const struct ddp_comm *comm)
{
    return comm->state;
}

/* Which of our codes says what an MPI error class means. */
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
        /* A dead peer is said in many ways: MPI_ERR_OTHER, MPI_ERR_INTERN, MPIX_ERR_PROC_FAILED. */
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
    /* MPICH gives its whole error stack, a line a level. */
    for (char *line = text; (line = strchr(line, '\n')) != NULL;)
        *line = line[1] != '\0' ? ';' : '\0';
    ddp_printable(text, clean, sizeof clean);
    world->failed = true;
    return ddp_fail(err, code_of(mpi_class), "%s failed: %s", function, clean);
}

/* Calls an MPI function; leaves the calling function with our code when it fails. */
#define MPI_TRY(world, err, function, ...)                                                         \
    do {                                                                                           \
        int mpi_rc_ = function(__VA_ARGS__);                                                       \
        if (mpi_rc_ != MPI_SUCCESS)                                                                \
            return mpi_fail(world, mpi_rc_, #function, err);                                       \
    } while (0)

/* "Open MPI 4.1.4" of "Open MPI v4.1.4, package: ...", "MPICH 4.0.2" of "MPICH Version:\t4.0.2\n
 * ...", else the first line; made once. */
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

#include "comm/backend_mpi_p2p.inc.h"
#include "comm/backend_mpi_ops.inc.h"
#include "comm/backend_mpi_native.inc.h"

/* MPICH has 2048 communicators, and no error class that says they are used up: this is its text
 * for **toomanycomm (src/mpi/errhan/errnames.txt). All members are told alike, and can go on. */
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
    struct mpi_state *s = ddp_calloc(1, sizeof *s);
    if (s == NULL)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a communicator");
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
    free(s->wide);
    free(s);
}

/* MPI's word against the launcher's. One world of each process is what comes of the mpiexec of
 * another MPI: nothing would fail, and nothing would be measured. */
static int check_place(const struct ddp_place *place, int rank, int size, struct ddp_err *err)
{
    if (rank == place->rank && size == place->size)
        return 0;
    struct ddp_launcher launcher = {.name = "the launcher"};
    struct ddp_err ignored = DDP_ERR_INIT;
    if (ddp_launcher_detect(&launcher, &ignored) != 0)
        launcher.name = "the launcher";
    ddp_fail(err, DDP_EMISMATCH, "%s says rank %d of %d, but %s says rank %d of %d%s",
             launcher.name, place->rank, place->size, mpi_library(), rank, size,
             size == 1 ? ": each process would be a world of its own" : "");
    return ddp_hint(err,
                    "start it with the mpiexec of %s (module ddpbench-mpi-%s.so), or put the "
                    "module of the MPI that started it beside the binary (`make MPI=1`)",
                    mpi_library(), DDP_MPI_FLAVOUR);
}

/* "MPI_THREAD_MULTIPLE" and so on. */
static const char *level_name(int level)
{
    return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
           : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
           : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                            : "MPI_THREAD_MULTIPLE";
}

/* A progress thread beside a rank that calls MPI itself needs MULTIPLE. Levels grow in order (MPI
 * 4.0, 11.2.1). Below SERIALIZED nothing of ours is safe either. */
static int check_threads(int wanted, int provided, struct ddp_err *err)
{
    if (provided >= wanted)
        return 0;
    ddp_fail(err, DDP_EUNAVAIL, "%s gives %s, but %s is needed", mpi_library(),
             level_name(provided), level_name(wanted));
    return ddp_hint(err, wanted == MPI_THREAD_MULTIPLE
                             ? "use an MPI that was built with threads (Open MPI: "
                               "--enable-mpi-threads), or nothing that overlaps"
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
    int started, provided, rank, size;
    struct mpi_state *s = ddp_calloc(1, sizeof *s);
    struct mpi_world *world = ddp_calloc(1, sizeof *world);
    if (s == NULL || world == NULL) {
        ddp_fail(err, DDP_ENOMEM, "no memory for a communicator");
        goto err_free;
    }
    MPI_Initialized(&started);
    if (started) {
        ddp_fail(err, DDP_EINTERNAL, "MPI starts once in a process, and was started before");
        goto err_free;
    }
    /* Serialized: a communicator is used by one thread at a time, which need not be main's. Costs
     * no locks in either MPI; only MPI_THREAD_MULTIPLE does. */
    const int wanted = options->threads    ? MPI_THREAD_MULTIPLE
                       : DDP_MPI_SIMULATED ? MPI_THREAD_SINGLE
                                           : MPI_THREAD_SERIALIZED;
    int mpi_rc = MPI_Init_thread(NULL, NULL, wanted, &provided);
    if (mpi_rc != MPI_SUCCESS) {
        mpi_fail(world, mpi_rc, "MPI_Init_thread", err);
        goto err_free;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (check_place(&comm->place, rank, size, err) != 0 ||
        check_threads(wanted, provided, err) != 0 || world_open(world, err) != 0) {
        /* With others about, finalizing could wait for ever; ending without it is told by mpiexec.
         */
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
    return err != NULL ? err->code : DDP_EINTERNAL;
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
    /* After a failure somebody may be missing for ever in MPI_Finalize. */
    if (!world->failed) {
        ops_release(world);
        MPI_Comm_free(&world->comm);
        MPI_Finalize();
    }
    free(world);
    state_free(s);
}

/* Open MPI's does not return: it ends this process with the code, too. Hydra then drops what its
 * proxies had not handed on yet, such as the line that says why: they get a moment for it. */
static void mpi_abort(struct ddp_comm *comm, int code)
{
    state_of(comm)->world->failed = true;
    ddp_sleep_ns(ABORT_PAUSE_NS);
    MPI_Abort(MPI_COMM_WORLD, ddp_exit_code(code));
}

/* Never asked: the loader answers without a module. */
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
    .exchange = mpi_exchange,
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
