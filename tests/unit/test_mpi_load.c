/* Backend mpi without an MPI: the module that is searched for, and the error if it cannot be
 * loaded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "comm/backend.h"
#include "launch/launcher.h"
#include "names.h"

static char dir[] = "/tmp/ddp-mpi-load-XXXXXX";

static void clear(void)
{
    for (const char *const *v = ddp_launcher_variables(); *v != NULL; v++)
        unsetenv(*v);
}

static const char *module_path(const char *flavour)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/ddpbench-mpi-%s.so", dir, flavour);
    return path;
}

static void write_module(const char *flavour, const char *content)
{
    FILE *f = fopen(module_path(flavour), "w");
    assert_non_null(f);
    fputs(content, f);
    fclose(f);
}

static int remove_modules(void **state)
{
    (void)state;
    unlink(module_path("openmpi"));
    unlink(module_path("mpich"));
    clear();
    return 0;
}

/* Sets the environment in which this launcher starts rank 0 of 2. */
static void start_by(enum ddp_launcher_kind kind)
{
    clear();
    switch (kind) {
    case DDP_LAUNCHER_OPENMPI:
        setenv("OMPI_COMM_WORLD_RANK", "0", 1);
        setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
        break;
    case DDP_LAUNCHER_HYDRA:
        setenv("PMI_RANK", "0", 1);
        setenv("PMI_SIZE", "2", 1);
        break;
    case DDP_LAUNCHER_SLURM:
        setenv("SLURM_PROCID", "0", 1);
        setenv("SLURM_STEP_NUM_TASKS", "2", 1);
        setenv("PMIX_RANK", "0", 1);
        break;
    case DDP_LAUNCHER_TORCHRUN:
        setenv("MASTER_ADDR", "localhost", 1);
        setenv("RANK", "0", 1);
        setenv("WORLD_SIZE", "2", 1);
        break;
    default:
        break;
    }
}

/* Returns the probe's code. Its error must contain all of the texts. */
static int probe(const char *module_dir, const char *const *words)
{
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_backend_find("mpi")->probe(module_dir, &err);
    assert_int_equal(rc, err.code);
    for (size_t i = 0; words != NULL && words[i] != NULL; i++) {
        if (!text_names(err.text, words[i]) && !text_names(err.hint, words[i]))
            fail_msg("'%s' is not in '%s', '%s'", words[i], err.text, err.hint);
    }
    return rc;
}
#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_table(void **state)
{
    (void)state;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_backend_check(&err), 0);
    assert_null(ddp_backend_find("mpi")->library());
}

static void test_no_launcher(void **state)
{
    (void)state;
    start_by(DDP_LAUNCHER_NONE);
    assert_int_equal(probe(dir, WORDS("mpiexec", "ddpbench")), DDP_EUNAVAIL);
    write_module("openmpi", "");
    write_module("mpich", "");
    assert_int_equal(probe(dir, WORDS("mpiexec", "openmpi, mpich")), DDP_EUNAVAIL);
    start_by(DDP_LAUNCHER_TORCHRUN);
    assert_int_equal(probe(dir, WORDS("torchrun", "mpiexec")), DDP_EUNAVAIL);
    start_by(DDP_LAUNCHER_SLURM);
    unsetenv("PMIX_RANK");
    assert_int_equal(probe(dir, WORDS("srun", "PMI", "--mpi=pmix", "--mpi=pmi2")), DDP_EUNAVAIL);
}

static void test_missing_module_is_named(void **state)
{
    (void)state;
    start_by(DDP_LAUNCHER_OPENMPI);
    assert_int_equal(probe(dir, WORDS("'ddpbench-mpi-openmpi.so'", dir, "libopenmpi-dev", "MPI=1")),
                     DDP_EUNAVAIL);
    start_by(DDP_LAUNCHER_HYDRA);
    assert_int_equal(probe(dir, WORDS("'ddpbench-mpi-mpich.so'", dir, "libmpich-dev", "MPI=1")),
                     DDP_EUNAVAIL);
    start_by(DDP_LAUNCHER_SLURM);
    assert_int_equal(probe(dir, WORDS("srun", dir, "MPI=1")), DDP_EUNAVAIL);
}

static void test_only_the_fitting_module_will_do(void **state)
{
    (void)state;
    write_module("openmpi", "");
    start_by(DDP_LAUNCHER_OPENMPI);
    assert_int_equal(probe(dir, NULL), 0);
    start_by(DDP_LAUNCHER_HYDRA);
    assert_int_equal(probe(dir, WORDS("'ddpbench-mpi-mpich.so'", "openmpi")), DDP_EUNAVAIL);
    remove_modules(NULL);
    write_module("mpich", "");
    start_by(DDP_LAUNCHER_HYDRA);
    assert_int_equal(probe(dir, NULL), 0);
    start_by(DDP_LAUNCHER_OPENMPI);
    assert_int_equal(probe(dir, WORDS("'ddpbench-mpi-openmpi.so'", " mpich")), DDP_EUNAVAIL);
    /* srun works with both MPIs: any module is accepted, unless srun's variables name the MPI. */
    start_by(DDP_LAUNCHER_SLURM);
    assert_int_equal(probe(dir, NULL), 0);
    setenv("SLURM_MPI_TYPE", "pmix", 1);
    assert_int_equal(probe(dir, WORDS("srun", "ddpbench-mpi-openmpi.so")), DDP_EUNAVAIL);
}

static void test_beside_the_binary(void **state)
{
    (void)state;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    *strrchr(self, '/') = '\0';
    self[150] = '\0';
    start_by(DDP_LAUNCHER_OPENMPI);
    assert_int_equal(probe(NULL, WORDS(self)), DDP_EUNAVAIL);
}

static void test_broken_variables(void **state)
{
    (void)state;
    start_by(DDP_LAUNCHER_OPENMPI);
    setenv("OMPI_COMM_WORLD_RANK", "two", 1);
    assert_int_equal(probe(dir, WORDS("OMPI_COMM_WORLD_RANK")), DDP_EMISMATCH);
}

/* Opening the world must fail with this code and text, and no module stays loaded. */
static void open_fails(int code, const char *word)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_launcher launcher;
    const struct ddp_comm_options options = {.timeout_ns = 10000000000, .module_dir = dir};
    struct ddp_comm *comm = NULL;
    start_by(DDP_LAUNCHER_HYDRA);
    assert_int_equal(ddp_launcher_detect(&launcher, &err), 0);
    const struct ddp_backend *mpi = ddp_backend_find("mpi");
    assert_int_equal(ddp_comm_create(mpi, &launcher.rank_info, &options, &comm, &err), code);
    assert_null(comm);
    if (!text_names(err.text, word))
        fail_msg("'%s' is not in '%s'", word, err.text);
    assert_true(err.hint[0] != '\0');
    assert_null(mpi->library());
}

static void test_no_library(void **state)
{
    (void)state;
    write_module("mpich", "this is no shared object, and long enough to be looked at twice\n");
    open_fails(DDP_EUNAVAIL, "MPICH|ddpbench-mpi-mpich.so");
}

static void test_some_other_library(void **state)
{
    (void)state;
    Dl_info info;
    char real[4096];
    void *function;
    void (*known)(const char *, const int) = _fail;
    memcpy(&function, &known, sizeof function);
    assert_true(dladdr(function, &info) != 0);
    assert_non_null(realpath(info.dli_fname, real));
    assert_int_equal(symlink(real, module_path("mpich")), 0);
    open_fails(DDP_EMISMATCH, "ddpbench-mpi-mpich.so'");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test_teardown(test_no_launcher, remove_modules),
        cmocka_unit_test_teardown(test_missing_module_is_named, remove_modules),
        cmocka_unit_test_teardown(test_only_the_fitting_module_will_do, remove_modules),
        cmocka_unit_test_teardown(test_beside_the_binary, remove_modules),
        cmocka_unit_test_teardown(test_broken_variables, remove_modules),
        cmocka_unit_test_teardown(test_no_library, remove_modules),
        cmocka_unit_test_teardown(test_some_other_library, remove_modules),
    };
    if (mkdtemp(dir) == NULL)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    rmdir(dir);
    return failed;
}
