#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "launch/launcher.h"

/* The environment of one case, and the expected result. */
struct expected {
    const char *env[24]; /* name, value, ... */
    int rc;
    enum ddp_launcher_kind kind;
    const char *flavour;
    int rank, size, local_rank, local_size;
};

static void clear(void)
{
    for (const char *const *v = ddp_launcher_variables(); *v != NULL; v++)
        unsetenv(*v);
}

static void check(const struct expected *e)
{
    clear();
    for (size_t i = 0; i < 24 && e->env[i] != NULL; i += 2)
        setenv(e->env[i], e->env[i + 1], 1);
    struct ddp_launcher found;
    struct ddp_err err = DDP_ERR_INIT;
    const bool pmix = getenv("PMIX_RANK") != NULL;
    int rc = ddp_launcher_detect(&found, &err);
    clear();
    assert_int_equal(rc, e->rc);
    if (rc != 0) {
        assert_int_equal(err.code, rc);
        assert_true(err.text[0] != '\0');
        return;
    }
    assert_int_equal(found.kind, e->kind);
    /* Without PMI the ranks meet over TCP. */
    assert_int_equal(found.over_tcp,
                     e->kind >= DDP_LAUNCHER_TORCHRUN ||
                         (e->kind == DDP_LAUNCHER_SLURM && e->flavour == NULL && !pmix));
    if (e->flavour == NULL)
        assert_null(found.flavour);
    else
        assert_string_equal(found.flavour, e->flavour);
    assert_int_equal(found.rank_info.rank, e->rank);
    assert_int_equal(found.rank_info.size, e->size);
    assert_int_equal(found.rank_info.local_rank, e->local_rank);
    assert_int_equal(found.rank_info.local_size, e->local_size);
    assert_int_equal(found.rank_info.segment_fd, -1);
    assert_null(found.rank_info.segment);
}

#define OMPI(rank, size, local, local_size)                                                        \
    "OMPI_COMM_WORLD_RANK", rank, "OMPI_COMM_WORLD_SIZE", size, "OMPI_COMM_WORLD_LOCAL_RANK",      \
        local, "OMPI_COMM_WORLD_LOCAL_SIZE", local_size

#define TORCHRUN(rank, size, local, local_size)                                                    \
    "TORCHELASTIC_RUN_ID", "none", "MASTER_ADDR", "h", "RANK", rank, "WORLD_SIZE", size,           \
        "LOCAL_RANK", local, "LOCAL_WORLD_SIZE", local_size

static void test_launchers(void **state)
{
    static const struct expected cases[] = {
        {{NULL}, 0, DDP_LAUNCHER_NONE, NULL, 0, 1, 0, 1},
        {{OMPI("3", "8", "1", "2")}, 0, DDP_LAUNCHER_OPENMPI, "openmpi", 3, 8, 1, 2},
        {{OMPI("0", "1", "0", "1")}, 0, DDP_LAUNCHER_OPENMPI, "openmpi", 0, 1, 0, 1},
        {{OMPI("3", "8", "1", "2"), "PMIX_RANK", "3"},
         0,
         DDP_LAUNCHER_OPENMPI,
         "openmpi",
         3,
         8,
         1,
         2},
        /* mpiexec inside a Slurm allocation: the Slurm step is that of mpiexec's daemons. */
        {{OMPI("3", "8", "1", "2"), "SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "4"},
         0,
         DDP_LAUNCHER_OPENMPI,
         "openmpi",
         3,
         8,
         1,
         2},
        {{"PMI_RANK", "1", "PMI_SIZE", "2", "MPI_LOCALRANKID", "1", "MPI_LOCALNRANKS", "2"},
         0,
         DDP_LAUNCHER_HYDRA,
         "mpich",
         1,
         2,
         1,
         2},
        {{"PMI_RANK", "1", "PMI_SIZE", "2"}, 0, DDP_LAUNCHER_HYDRA, "mpich", 1, 2, 1, 2},
        /* a job of one task, such as a shell */
        {{"FLUX_TASK_RANK", "0", "FLUX_JOB_SIZE", "1"}, 0, DDP_LAUNCHER_NONE, NULL, 0, 1, 0, 1},
        /* Flux with its plugin for MPICH */
        {{"FLUX_TASK_RANK", "1", "FLUX_JOB_SIZE", "4", "PMI_RANK", "1", "PMI_SIZE", "4"},
         0,
         DDP_LAUNCHER_HYDRA,
         "mpich",
         1,
         4,
         1,
         4},
        {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2"},
         0,
         DDP_LAUNCHER_NONE,
         NULL,
         0,
         1,
         0,
         1},
        {{"RANK", "1", "WORLD_SIZE", "4", "LOCAL_RANK", "1", "LOCAL_WORLD_SIZE", "2", "MASTER_ADDR",
          "h"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         1,
         4,
         1,
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

static void test_batch_systems(void **state)
{
    static const struct expected cases[] = {
        {{"SLURM_PROCID", "5", "SLURM_STEP_NUM_TASKS", "11", "SLURM_LOCALID", "1", "SLURM_NODEID",
          "1", "SLURM_STEP_TASKS_PER_NODE", "4(x2),3", "SLURM_MPI_TYPE", "pmix"},
         0,
         DDP_LAUNCHER_SLURM,
         "openmpi",
         5,
         11,
         1,
         4},
        {{"SLURM_PROCID", "9", "SLURM_STEP_NUM_TASKS", "11", "SLURM_LOCALID", "1", "SLURM_NODEID",
          "2", "SLURM_STEP_TASKS_PER_NODE", "4(x2),3"},
         0,
         DDP_LAUNCHER_SLURM,
         NULL,
         9,
         11,
         1,
         3},
        {{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "SLURM_LOCALID", "0", "PMIX_RANK", "1"},
         0,
         DDP_LAUNCHER_SLURM,
         NULL,
         1,
         2,
         0,
         2},
        /* srun --mpi=pmi2 */
        {{"SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2", "PMI_RANK", "1", "PMI_SIZE", "2"},
         0,
         DDP_LAUNCHER_HYDRA,
         "mpich",
         1,
         2,
         1,
         2},
        {{"JOB_COMPLETION_INDEX", "3", "WORLD_SIZE", "4", "MASTER_ADDR", "h"},
         0,
         DDP_LAUNCHER_KUBERNETES,
         NULL,
         3,
         4,
         0,
         1},
        /* torchrun in the pods of an Indexed Job */
        {{TORCHRUN("3", "4", "1", "2"), "JOB_COMPLETION_INDEX", "1"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         3,
         4,
         1,
         2},
        {{"DDPBENCH_JOB", "1", TORCHRUN("3", "4", "1", "2")},
         0,
         DDP_LAUNCHER_HOSTS,
         NULL,
         3,
         4,
         1,
         2},
        /* sbatch sets SLURM_PROCID without a step; srun starts shells as steps of one task. */
        {{"SLURM_PROCID", "0"}, 0, DDP_LAUNCHER_NONE, NULL, 0, 1, 0, 1},
        {{"SLURM_PROCID", "0", "SLURM_STEP_NUM_TASKS", "1"},
         0,
         DDP_LAUNCHER_NONE,
         NULL,
         0,
         1,
         0,
         1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

static void test_torchrun_inside(void **state)
{
    static const struct expected cases[] = {
        /* torchrun under srun and mpiexec, with one torchrun per host */
        {{TORCHRUN("2", "4", "0", "2"), "SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2",
          "SLURM_LOCALID", "0"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         2,
         4,
         0,
         2},
        {{TORCHRUN("3", "4", "1", "2"), OMPI("1", "2", "0", "1"), "PMIX_RANK", "1"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         3,
         4,
         1,
         2},
        {{TORCHRUN("3", "4", "1", "2"), OMPI("1", "2", "0", "1"), "PMI_RANK", "0", "PMI_SIZE", "1"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         3,
         4,
         1,
         2},
        {{TORCHRUN("1", "4", "1", "4"), "PMI_RANK", "0", "PMI_SIZE", "1", "PMI_FD", "99"},
         0,
         DDP_LAUNCHER_TORCHRUN,
         NULL,
         1,
         4,
         1,
         4},
        /* a script for srun that sets the variables of torch.distributed itself */
        {{"RANK", "1", "WORLD_SIZE", "2", "MASTER_ADDR", "h", "SLURM_PROCID", "1",
          "SLURM_STEP_NUM_TASKS", "2"},
         0,
         DDP_LAUNCHER_SLURM,
         NULL,
         1,
         2,
         1,
         2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

static void test_contradictions(void **state)
{
    static const struct expected cases[] = {
        {.env = {"OMPI_COMM_WORLD_RANK", "0"}, .rc = DDP_EMISMATCH},
        {.env = {"OMPI_COMM_WORLD_SIZE", "2"}, .rc = DDP_EMISMATCH},
        {.env = {"PMI_RANK", "0"}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("2", "2", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("-1", "2", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("0", "0", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("zero", "2", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("0x1", "2", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("1", "99999999999999", "0", "1")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("1", "2", "2", "2")}, .rc = DDP_EMISMATCH},
        {.env = {OMPI("1", "2", "1", "3")}, .rc = DDP_EMISMATCH},
        /* a rank of one mpiexec started the other mpiexec */
        {.env = {OMPI("1", "2", "1", "2"), "PMI_RANK", "0", "PMI_SIZE", "1"}, .rc = DDP_EMISMATCH},
        {.env = {"PMIX_RANK", "0"}, .rc = DDP_EMISMATCH},
        {.env = {"FLUX_TASK_RANK", "1", "FLUX_JOB_SIZE", "4"}, .rc = DDP_EMISMATCH},
        {.env = {"PALS_RANKID", "1"}, .rc = DDP_EMISMATCH},
        {.env = {"JSM_NAMESPACE_RANK", "0", "JSM_NAMESPACE_SIZE", "2"}, .rc = DDP_EMISMATCH},
        {.env = {"RANK", "0", "WORLD_SIZE", "2", "MASTER_ADDR", ""}, .rc = DDP_EMISMATCH},
        {.env = {"MV2_COMM_WORLD_RANK", "0", "MV2_COMM_WORLD_SIZE", "2"}, .rc = DDP_EMISMATCH},
        {.env = {"ALPS_APP_PE", "0"}, .rc = DDP_EMISMATCH},
        {.env = {"PMI_SIZE", "1", "PMI_RANK", "0", "PMI_FD", "99"}, .rc = DDP_EMISMATCH},
        {.env = {"SLURM_PROCID", "4", "SLURM_STEP_NUM_TASKS", "4"}, .rc = DDP_EMISMATCH},
        {.env = {"JOB_COMPLETION_INDEX", "0"}, .rc = DDP_EMISMATCH},
        {.env = {"JOB_COMPLETION_INDEX", "0", "MASTER_ADDR", "h"}, .rc = DDP_EMISMATCH},
        {.env = {"JOB_COMPLETION_INDEX", "4", "MASTER_ADDR", "h", "WORLD_SIZE", "4"},
         .rc = DDP_EMISMATCH},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check(&cases[i]);
}

/* If the launcher's ranks cannot be used, the hint names the variables to unset. */
static void test_way_out(void **state)
{
    static const char *const variables[] = {"PMIX_RANK", "FLUX_TASK_RANK", "PALS_RANKID",
                                            "JOB_COMPLETION_INDEX"};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        struct ddp_launcher found;
        struct ddp_err err = DDP_ERR_INIT;
        clear();
        setenv(variables[i], "0", 1);
        assert_int_equal(ddp_launcher_detect(&found, &err), DDP_EMISMATCH);
        assert_non_null(strstr(err.hint, variables[i]));
        clear();
    }
}

/* The first node of a step, from Slurm's list of nodes. */
static void test_slurm_host(void **state)
{
    static const char *const cases[][2] = {
        {"n1", "n1"},
        {"n1,n2", "n1"},
        {"n[03-10,12],m1", "n03"},
        {"n[7]", "n7"},
        {"rack[2,4]n[11-12].a,b", "rack2n11.a"},
        {"n[1-2", "n1"},
    };
    struct ddp_rendezvous_config first, other;
    struct ddp_err err = DDP_ERR_INIT;
    (void)state;
    clear();
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &first, &err), DDP_EMISMATCH);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        setenv("SLURM_STEP_NODELIST", cases[i][0], 1);
        assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &first, NULL), 0);
        assert_string_equal(first.host, cases[i][1]);
        assert_true(first.port >= 20000 && first.port + first.ports <= 30000);
    }
    setenv("SLURM_STEP_ID", "4", 1);
    assert_int_equal(ddp_launcher_rendezvous(NULL, NULL, &other, NULL), 0);
    assert_true(other.key.token != first.key.token && other.port != first.port);
    unsetenv("SLURM_STEP_ID");
    unsetenv("SLURM_STEP_NODELIST");
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launchers),       cmocka_unit_test(test_batch_systems),
        cmocka_unit_test(test_torchrun_inside), cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_way_out),         cmocka_unit_test(test_slurm_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
