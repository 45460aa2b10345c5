/* Backend mpi with ranks: this program starts itself under the mpiexec of each MPI whose module
 * was built, and each rank runs the checks below. If an MPI is missing, its test is skipped with
 * the reason. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm_ranks.h"
#include "launch/launcher.h"

#define RANKS 3

static unsigned char pattern(int rank, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)rank * 31);
}

/* Every rank sends to its right and receives from its left: no bytes, one byte, many bytes, and
 * two messages with the same tag. */
static int check_ring(struct ddp_comm *comm, struct ddp_err *err)
{
    static const size_t sizes[] = {0, 1, 4096, 3000000};
    int right = (comm->rank + 1) % comm->size, left = (comm->rank + comm->size - 1) % comm->size;
    unsigned char *out = malloc(3000000), *in = malloc(2 * 3000000);
    CHECK(out != NULL && in != NULL);
    for (size_t i = 0; i < 3000000; i++)
        out[i] = pattern(comm->rank, i);
    for (size_t s = 0; s < DDP_COUNT_OF(sizes); s++) {
        size_t n = sizes[s];
        struct ddp_request req[4];
        memset(in, 0xee, 2 * 3000000);
        DDP_TRY(ddp_comm_irecv(comm, left, 5, in, n, &req[0], err));
        DDP_TRY(ddp_comm_irecv(comm, left, 5, in + n, n, &req[1], err));
        DDP_TRY(ddp_comm_isend(comm, right, 5, out, n, &req[2], err));
        DDP_TRY(ddp_comm_isend(comm, right, 5, out, n, &req[3], err));
        DDP_TRY(ddp_comm_wait(comm, req, 4, err));
        for (size_t i = 0; i < 2 * n; i++)
            CHECK(in[i] == pattern(left, i % n));
    }
    CHECK(comm->wire_messages == 8 && comm->wire_bytes == 2 * (1 + 4096 + 3000000));
    free(in);
    free(out);
    return 0;
}

/* A receive for a later message's tag completes before the earlier message is received. */
static int check_tags(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_request req[2];
    int value[2] = {0, 0};
    const int first = 10 + comm->rank, second = 20 + comm->rank;
    int right = (comm->rank + 1) % comm->size, left = (comm->rank + comm->size - 1) % comm->size;
    DDP_TRY(ddp_comm_isend(comm, right, 1, &first, sizeof first, &req[0], err));
    DDP_TRY(ddp_comm_isend(comm, right, 2, &second, sizeof second, &req[1], err));
    DDP_TRY(ddp_comm_wait(comm, req, 2, err));
    DDP_TRY(ddp_comm_irecv(comm, left, 2, &value[1], sizeof value[1], &req[1], err));
    DDP_TRY(ddp_comm_wait(comm, &req[1], 1, err));
    DDP_TRY(ddp_comm_irecv(comm, left, 1, &value[0], sizeof value[0], &req[0], err));
    DDP_TRY(ddp_comm_wait(comm, &req[0], 1, err));
    CHECK(value[0] == 10 + left && value[1] == 20 + left);
    return 0;
}

static int check_exchange(struct ddp_comm *comm, struct ddp_err *err)
{
    uint64_t mine[2] = {(uint64_t)comm->rank, 77}, all[2 * RANKS];
    DDP_TRY(ddp_comm_allgather_bytes(comm, mine, all, sizeof mine, err));
    for (int r = 0; r < comm->size; r++)
        CHECK(all[2 * r] == (uint64_t)r && all[2 * r + 1] == 77);
    return ddp_comm_barrier(comm, err);
}

/* A group of the world's ranks 0 and 2, and a group of that group. */
static int check_groups(struct ddp_comm *world, struct ddp_err *err)
{
    static const int ends[] = {0, 2}, last[] = {1};
    struct ddp_comm *group, *alone;
    if (world->rank == 1)
        return 0;
    DDP_TRY(ddp_comm_group(world, ends, 2, &group, err));
    CHECK(group->size == 2 && group->rank == world->rank / 2);
    CHECK(group->world_rank[1] == 2);
    DDP_TRY(check_exchange(group, err));
    struct ddp_request req[2];
    int in = -1, out = world->rank;
    DDP_TRY(ddp_comm_irecv(group, 1 - group->rank, 0, &in, sizeof in, &req[0], err));
    DDP_TRY(ddp_comm_isend(group, 1 - group->rank, 0, &out, sizeof out, &req[1], err));
    DDP_TRY(ddp_comm_wait(group, req, 2, err));
    CHECK(in == 2 - world->rank);
    if (world->rank == 2) {
        DDP_TRY(ddp_comm_group(group, last, 1, &alone, err));
        DDP_TRY(check_exchange(alone, err));
        ddp_comm_destroy(alone);
    }
    ddp_comm_destroy(group);
    return 0;
}

/* The library's own sums of 16-bit floats where rounding shows: 2048 + 1 + 1 in f16 is 2048 or
 * 2050, never 2049, and all ranks get the same. 1 + 2^-9 does not fit bf16. */
static int check_half(struct ddp_comm *comm, struct ddp_err *err)
{
    uint16_t in[2] = {comm->rank == 0 ? 0x6800 : 0x3c00, comm->rank == 0 ? 0xfc00 : 0x3c00};
    uint16_t out[2] = {0, 0}, all[2 * RANKS];
    struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                 .send = in,
                                 .recv = out,
                                 .count = 2,
                                 .dtype = DDP_F16,
                                 .op = DDP_SUM};
    DDP_TRY(comm->backend->native_supports(comm, &args, err));
    DDP_TRY(comm->backend->native(comm, &args, err));
    CHECK(out[0] == 0x6800 || out[0] == 0x6801); /* 2048, 2050 */
    CHECK(out[1] == 0xfc00);                     /* -Inf */
    DDP_TRY(ddp_comm_allgather_bytes(comm, out, all, sizeof out, err));
    for (int r = 0; r < comm->size; r++)
        CHECK(all[2 * r] == out[0] && all[2 * r + 1] == out[1]);
    args.dtype = DDP_BF16;
    in[0] = comm->rank == 0 ? 0x3f80 : 0x3b00; /* 1 plus twice 2^-9: rounded to even, or 1 + 2^-7 */
    DDP_TRY(comm->backend->native(comm, &args, err));
    CHECK(out[0] == 0x3f80 || out[0] == 0x3f81);
    return 0;
}

/* An average of integers whose sum does not fit the type, in place; -7 / 3 is truncated to -2. */
static int check_integer_average(struct ddp_comm *comm, struct ddp_err *err)
{
    int32_t data[3] = {INT32_MAX, INT32_MIN, comm->rank == 0 ? -7 : 0};
    const struct ddp_coll_args args = {.coll = DDP_ALLREDUCE,
                                       .send = data,
                                       .recv = data,
                                       .count = 3,
                                       .dtype = DDP_I32,
                                       .op = DDP_AVG};
    DDP_TRY(comm->backend->native(comm, &args, err));
    CHECK(data[0] == INT32_MAX && data[1] == INT32_MIN && data[2] == -2);
    return 0;
}

/* Rank 0 sends `sent` bytes to rank 1, which expects `expected` bytes and must get
 * DDP_EMISMATCH. */
static int check_length(struct ddp_comm *comm, size_t sent, size_t expected, struct ddp_err *err)
{
    struct ddp_request req;
    struct ddp_err refused = DDP_ERR_INIT;
    char buf[8] = "";
    if (comm->rank > 1)
        return 0;
    if (comm->rank == 0)
        DDP_TRY(ddp_comm_isend(comm, 1, 9, buf, sent, &req, err));
    else
        DDP_TRY(ddp_comm_irecv(comm, 0, 9, buf, expected, &req, err));
    int rc = ddp_comm_wait(comm, &req, 1, &refused);
    CHECK(rc == (comm->rank == 0 ? 0 : DDP_EMISMATCH));
    return 0;
}

static int check_shorter(struct ddp_comm *comm, struct ddp_err *err)
{
    return check_length(comm, 4, 8, err);
}

/* A message longer than its receive is an error in MPI, and MPI is not used afterwards: the rank
 * does not finalize, and mpiexec reports a failure. Rank 1 therefore reports its result in a
 * file. */
static int check_longer(struct ddp_comm *comm, struct ddp_err *err)
{
    return check_length(comm, 8, 4, err);
}

static long file_bytes(const char *file)
{
    struct stat s;
    return stat(file, &s) == 0 ? (long)s.st_size : -1;
}

/* The body of a rank under mpiexec. Returns exit code 0, or 1 with the reason on stderr. longer:
 * NULL, or the file that rank 1 writes if check_longer, which then runs alone, succeeded. */
static int rank_main(const struct ddp_launcher *launcher, const char *module_dir,
                     const char *longer)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_comm *comm;
    const struct ddp_comm_options options = {
        .timeout_ns = 20000000000,
        .device = ddp_device_cpu(ddp_cpu_best_simd()),
        .module_dir = module_dir,
    };
    const struct ddp_backend *mpi = ddp_backend_find("mpi");
    int rc = ddp_comm_create(mpi, &launcher->rank_info, &options, &comm, &err);
    if (rc == 0 && (comm->size != RANKS || mpi->library() == NULL))
        rc = ddp_fail(&err, DDP_EDATA, "%d ranks, library '%s'", comm->size, mpi->library());
    int (*const checks[])(struct ddp_comm *, struct ddp_err *) = {
        check_ring,    check_tags, check_exchange, check_half, check_groups, check_integer_average,
        check_shorter,
    };
    for (size_t i = 0; i < DDP_COUNT_OF(checks) && rc == 0 && longer == NULL; i++)
        rc = checks[i](comm, &err);
    if (rc == 0 && longer != NULL) {
        rc = check_longer(comm, &err);
        if (rc == 0 && comm->rank == 1 && truncate(longer, 1) != 0)
            rc = DDP_EIO;
        /* The first rank that exits ends the others, so all wait for the file. */
        for (int i = 0; i < 1000 && rc == 0 && file_bytes(longer) == 0; i++)
            ddp_sleep_ns(10000000);
    }
    if (rc != 0)
        fprintf(stderr, "rank %d: %d: %s\n", launcher->rank_info.rank, rc, err.text);
    if (rc == 0 && longer == NULL)
        ddp_comm_destroy(comm);
    return rc == 0 ? 0 : 1;
}

/* The path of this program, and the folder of the modules: two levels above build/X/tests/unit. */
static char self[4096], module_dir[4096];

/* Returns the reason why this MPI cannot be used here, or NULL. */
static const char *missing(const char *flavour)
{
    char text[4200];
    snprintf(text, sizeof text, "command -v mpiexec.%s >/dev/null", flavour);
    if (system(text) != 0)
        return "its mpiexec is not installed";
    snprintf(text, sizeof text, "%s/ddpbench-mpi-%s.so", module_dir, flavour);
    return access(text, R_OK) == 0 ? NULL : "its module was not built";
}

static int start(const char *flavour, const char *more, const char *argument)
{
    char command[9000];
    snprintf(command, sizeof command, "mpiexec.%s %s -n %d '%s' %s </dev/null >&2", flavour, more,
             RANKS, self, argument);
    return system(command);
}

static bool longer_is_refused(const char *flavour, const char *more)
{
    char file[] = "/tmp/ddp-longer-XXXXXX";
    int fd = mkstemp(file);
    if (fd < 0)
        return false;
    close(fd);
    start(flavour, more, file);
    long bytes = file_bytes(file);
    unlink(file);
    return bytes == 1;
}

/* Prints TAP itself, because prove takes the "skipped" line of cmocka 1.1.5 for a failure. */
static int run_all(void)
{
    static const struct {
        const char *flavour, *more;
    } rows[] = {{"openmpi", "--oversubscribe"}, {"mpich", ""}};
    int failed = 0, number = 0;
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    printf("1..%zu\n", 2 * DDP_COUNT_OF(rows));
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const char *flavour = rows[i].flavour, *why = missing(flavour);
        fflush(stdout);
        bool all = why != NULL || start(flavour, rows[i].more, "") == 0;
        bool longer = why != NULL || longer_is_refused(flavour, rows[i].more);
        printf("%s %d - %s: messages, groups, 16-bit sums, integer averages%s%s\n",
               all ? "ok" : "not ok", ++number, flavour, why ? " # skip " : "", why ? why : "");
        printf("%s %d - %s: a message too long is refused%s%s\n", longer ? "ok" : "not ok",
               ++number, flavour, why ? " # skip " : "", why ? why : "");
        failed += !all + !longer;
    }
    return failed;
}

int main(int argc, char **argv)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_launcher launcher;
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0 || ddp_launcher_detect(&launcher, &err) != 0)
        return 1;
    self[n] = '\0';
    snprintf(module_dir, sizeof module_dir, "%.4000s", self);
    for (int up = 0; up < 3 && strchr(module_dir, '/') != NULL; up++)
        *strrchr(module_dir, '/') = '\0';
    if (launcher.kind != DDP_LAUNCHER_NONE)
        return rank_main(&launcher, module_dir, argc > 1 ? argv[1] : NULL);
    return run_all();
}
