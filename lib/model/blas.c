/* Loads a CBLAS library at run time, so that the program starts on machines without such a library.
 * No other file calls CBLAS. */
#include "model/blas.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/conf.h"
#include "base/cpuinfo.h"
#include "base/mem.h"

/* At its first large product, OpenBLAS reserves a buffer of 128 MiB per process. On some
 * processors, OpenBLAS does so at its first product of any size. If the system refuses the memory,
 * OpenBLAS retries forever. The constant includes 1 MiB for the alignment of the buffer. */
#define OPENBLAS_BUFFER_BYTES ((size_t)129 << 20)
/* m, n and k of a product that needs the buffer. For m * n * k up to 100^3, OpenBLAS may use code
 * that needs no buffer. */
#define LARGE_PRODUCT 128

/* cblas_sgemm as the reference CBLAS declares it, with 32-bit integer arguments (LP64). A C enum
 * has the size of int in every supported ABI. Source: netlib.org/blas/cblas.h. */
enum { CBLAS_ROW_MAJOR = 101, CBLAS_NO_TRANS = 111, CBLAS_TRANS = 112 };
typedef void cblas_sgemm_fn(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                            const float *a, int lda, const float *b, int ldb, float beta, float *c,
                            int ldc);

/* Libraries in order of preference. The full paths find a library on Debian even if another library
 * is the system's default. */
static const char *const candidates[] = {
    "/usr/lib/x86_64-linux-gnu/openblas-serial/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-serial/libopenblas.so.0",
    "libopenblas.so.0",
    "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "/usr/lib/aarch64-linux-gnu/openblas-pthread/libopenblas.so.0",
    "libblis.so.4",
    "libmkl_rt.so.2",
    "libcblas.so.3",
    "libblas.so.3",
};

/* The loaded library. The struct is filled once per process, because a shared library belongs to
 * the whole process. */
static struct {
    pthread_mutex_t load_lock, call_lock;
    cblas_sgemm_fn *sgemm;
    char name[96];
    atomic_int users; /* threads that have called ddp_blas_load() */
} blas = {.load_lock = PTHREAD_MUTEX_INITIALIZER, .call_lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local int thread_is_counted;
static _Thread_local _Atomic(uint32_t) *products;

/* Sets environment variables that make the library use one thread. Variables that the user has set
 * are kept, so set_one_thread() sets the number again after loading. */
static void request_one_thread(void)
{
    static const char *const variables[] = {"OPENBLAS_NUM_THREADS", "BLIS_NUM_THREADS",
                                            "MKL_NUM_THREADS", "OMP_NUM_THREADS"};
    for (size_t i = 0; i < DDP_COUNT_OF(variables); i++)
        setenv(variables[i], "1", 0);
    /* Without this variable MKL chooses code by the alignment of arrays, so equal runs can differ
     * in bits. */
    setenv("MKL_CBWR", "AUTO", 0);
}

static void set_one_thread(void *lib)
{
    void (*openblas)(int) = (void (*)(int))dlsym(lib, "openblas_set_num_threads");
    if (openblas)
        openblas(1);
    void (*blis)(long) = (void (*)(long))dlsym(lib, "bli_thread_set_num_threads");
    if (blis)
        blis(1);
    void (*mkl)(int) = (void (*)(int))dlsym(lib, "MKL_Set_Num_Threads");
    if (mkl)
        mkl(1);
}

/* Returns whether one small product has the exact result. The result is wrong if, for example, the
 * library uses 64-bit integers or another matrix order. */
static int multiplies(cblas_sgemm_fn *sgemm)
{
    const float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {7, 8, 9, 10, 11, 12};
    const float want[4] = {58, 64, 139, 154};
    float c[4] = {0};
    sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_NO_TRANS, 2, 2, 3, 1.0f, a, 3, b, 2, 0.0f, c, 2);
    bool same = true;
    for (int i = 0; i < 4; i++)
        same &= c[i] == want[i];
    return same;
}

/* Returns DDP_ENOMEM if the system refuses the memory of OpenBLAS's buffer. */
static int check_buffer(const char *file, struct ddp_err *err)
{
    void *probe = mmap(NULL, OPENBLAS_BUFFER_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED) {
        ddp_fail(err, DDP_ENOMEM,
                 "the system refuses the buffer of 128 MiB that the BLAS library '%s' needs in "
                 "every rank",
                 file);
        return ddp_hint(err, "raise ulimit -v and ulimit -d, or name another library with --blas");
    }
    (void)munmap(probe, OPENBLAS_BUFFER_BYTES);
    return 0;
}

/* Makes OpenBLAS reserve its buffer now, before later allocations of this process can use up the
 * memory that the buffer needs. */
static int reserve_buffer(cblas_sgemm_fn *sgemm, struct ddp_err *err)
{
    const int n = LARGE_PRODUCT;
    const size_t square = (size_t)n * (size_t)n;
    float *abc;
    DDP_TRY(DDP_NEW(&abc, 3 * square, err));
    sgemm(CBLAS_ROW_MAJOR, CBLAS_NO_TRANS, CBLAS_NO_TRANS, n, n, n, 1.0f, abc, n, abc + square, n,
          0.0f, abc + 2 * square, n);
    free(abc);
    return 0;
}

/* Writes a name such as "OpenBLAS 0.3.21 SkylakeX (libopenblas.so.0)". */
static void describe(void *lib, const char *file, char *out, size_t out_bytes)
{
    const char *base = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    char *(*config)(void) = (char *(*)(void))dlsym(lib, "openblas_get_config");
    char *(*core)(void) = (char *(*)(void))dlsym(lib, "openblas_get_corename");
    const char *(*blis)(void) = (const char *(*)(void))dlsym(lib, "bli_info_get_version_str");
    char vendor[16], version[16];
    if (config && core && sscanf(config(), "%15s %15s", vendor, version) == 2)
        snprintf(out, out_bytes, "%s %s %.24s (%.32s)", vendor, version, core(), base);
    else if (blis)
        snprintf(out, out_bytes, "BLIS %.24s (%.48s)", blis(), base);
    else
        snprintf(out, out_bytes, "%.90s", base);
}

/* On processors that are newer than the library, OpenBLAS uses its Prescott kernels, which do not
 * use AVX2 (get_coretype in its driver/others/dynamic.c). This function then loads the library
 * again and names better kernels, unless the user has named kernels. Returns the library, or NULL
 * if it cannot be loaded again. */
static void *choose_kernels(void *lib, const char *file)
{
    char *(*core)(void) = (char *(*)(void))dlsym(lib, "openblas_get_corename");
    const enum ddp_simd simd = ddp_cpu_best_simd();
    if (core == NULL || strcmp(core(), "Prescott") != 0 || simd < DDP_SIMD_AVX2)
        return lib;
    setenv("OPENBLAS_CORETYPE", simd == DDP_SIMD_AVX512 ? "SkylakeX" : "Haswell", 0);
    dlclose(lib);
    return dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/* Opens a library. Returns DDP_EUNAVAIL if `file` cannot be opened (with the loader's message) or
 * has no working CBLAS. Returns DDP_ENOMEM if there is no memory for the library's buffer. */
static int open_library(const char *file, struct ddp_err *err)
{
    void *lib = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (lib)
        lib = choose_kernels(lib, file);
    if (!lib)
        return ddp_fail(err, DDP_EUNAVAIL, "cannot load the BLAS library '%s': %s", file,
                        dlerror());
    cblas_sgemm_fn *sgemm = (cblas_sgemm_fn *)dlsym(lib, "cblas_sgemm");
    if (!sgemm) {
        dlclose(lib);
        return ddp_fail(err, DDP_EUNAVAIL, "'%s' has no cblas_sgemm", file);
    }
    set_one_thread(lib);
    const bool openblas = dlsym(lib, "openblas_get_config") != NULL;
    int rc = openblas ? check_buffer(file, err) : 0;
    if (rc == 0 && !multiplies(sgemm))
        rc = ddp_fail(err, DDP_EUNAVAIL, "cblas_sgemm of '%s' computes a wrong product", file);
    if (rc == 0 && openblas)
        rc = reserve_buffer(sgemm, err);
    if (rc) {
        dlclose(lib);
        return rc;
    }
    describe(lib, file, blas.name, sizeof blas.name);
    blas.sgemm = sgemm;
    return 0;
}

static int search(const char *name, struct ddp_err *err)
{
    request_one_thread();
    const char *chosen = name ? name : ddp_conf_get(DDP_CONF_BLAS_LIB);
    if (chosen) {
        int rc = open_library(chosen, err);
        if (rc == DDP_EUNAVAIL)
            ddp_hint(err, "name a library with CBLAS, or leave out --blas and DDPBENCH_BLAS_LIB");
        return rc;
    }
    for (size_t i = 0; i < DDP_COUNT_OF(candidates); i++) {
        struct ddp_err refused = DDP_ERR_INIT;
        const int rc = open_library(candidates[i], &refused);
        if (rc != DDP_EUNAVAIL)
            return rc == 0 ? 0 : ddp_fail_copy(err, &refused);
    }
    ddp_fail(err, DDP_EUNAVAIL,
             "no CBLAS library found; tried OpenBLAS, BLIS, MKL and the reference BLAS");
    return ddp_hint(err, "install libopenblas0-serial, or name a library with --blas");
}

int ddp_blas_load(const char *name, struct ddp_err *err)
{
    pthread_mutex_lock(&blas.load_lock);
    int rc = blas.sgemm ? 0 : search(name, err);
    if (rc == 0 && !thread_is_counted) {
        thread_is_counted = 1;
        atomic_fetch_add(&blas.users, 1);
    }
    pthread_mutex_unlock(&blas.load_lock);
    return rc;
}

const char *ddp_blas_name(void)
{
    return blas.name;
}

void ddp_blas_count(_Atomic(uint32_t) *counter)
{
    products = counter;
}

void ddp_sgemm(int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
               const float *b, int ldb, float beta, float *c, int ldc)
{
    if (m <= 0 || n <= 0)
        return;
    /* A serial OpenBLAS uses the same buffers in all threads and does not lock them. */
    int shared = atomic_load_explicit(&blas.users, memory_order_relaxed) > 1;
    if (shared)
        pthread_mutex_lock(&blas.call_lock);
    blas.sgemm(CBLAS_ROW_MAJOR, ta ? CBLAS_TRANS : CBLAS_NO_TRANS,
               tb ? CBLAS_TRANS : CBLAS_NO_TRANS, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
    if (shared)
        pthread_mutex_unlock(&blas.call_lock);
    if (products != NULL)
        atomic_store_explicit(products, atomic_load_explicit(products, memory_order_relaxed) + 1,
                              memory_order_relaxed);
}
