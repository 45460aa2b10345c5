/* Compares the kernels on streams of the processor and of GPU 0 with the processor's own. Without a
 * usable GPU the cases for the GPU are skipped, with the reason. */
#include "device/cuda/dev_cuda.h"
#include "gpu/gpu_cases.h"
#include "gpu/gpu_exchange.h"
#include "gpu/gpu_select.h"

struct under_test {
    const char *device;
    void (*cases)(const struct lab *lab);
};

static bool small; /* only the GPU's cases, and fewer: for compute-sanitizer */

static const struct ddp_device *find(const char *name)
{
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++)
        if (strcmp((*d)->name, name) == 0)
            return *d;
    fail_msg("no device %s", name);
    return NULL;
}

static void test_on(void **state)
{
    const struct under_test *t = (const struct under_test *)*state;
    struct ddp_err err = DDP_ERR_INIT;
    struct lab lab = {
        .device = find(t->device), .cpu = ddp_device_cpu(DDP_SIMD_SCALAR)->grad, .slow = small};
    if (lab.device->probe(&err) != 0) {
        print_message("# %s: %s\n", t->device, err.text);
        skip();
    }
    lab.ops = lab.device->streams;
    lab.k = lab.device->stream_kernels;
    assert_true(lab.device->count() > 0);
    assert_int_equal(lab.device->select(0, &err), 0);
    assert_int_not_equal(lab.device->select(lab.device->count(), &err), 0);
    err = DDP_ERR_INIT;
    if (lab.ops->create(&lab.stream, &err) != 0)
        fail_msg("%s", err.text);
    t->cases(&lab);
    lab.ops->destroy(lab.stream);
}

/* A reduction without a stream returns no error. If it fails, as without a driver, the next call on
 * a stream reports it, once. */
static void test_unreported(void **state)
{
    (void)state;
    const struct ddp_device *cuda = find("cuda");
    struct ddp_stream stream = {0};
    struct ddp_err err = DDP_ERR_INIT;
    float x = 1;
    const struct ddp_reduce r = {.dst = (void *[]){&x},
                                 .dst_count = 1,
                                 .src = (const void *[]){&x},
                                 .src_count = 1,
                                 .count = 1,
                                 .dtype = DDP_F32,
                                 .op = DDP_SUM,
                                 .divisor = 1};
    if (cuda->reduce == NULL || cuda->probe(&err) == 0)
        skip(); /* built without CUDA, or reductions work */
    cuda->reduce(&r);
    err = DDP_ERR_INIT;
    assert_int_not_equal(cuda->streams->wait(&stream, &err), 0);
    assert_non_null(strstr(err.text, "reduce:"));
    err = DDP_ERR_INIT;
    assert_int_not_equal(cuda->streams->wait(&stream, &err), 0);
    assert_null(strstr(err.text, "reduce:"));
}

#define ON(name, function)                                                                         \
    {                                                                                              \
        name ": " #function, test_on, NULL, NULL, &(struct under_test)                             \
        {                                                                                          \
            name, function                                                                         \
        }                                                                                          \
    }
#define ALL_ON(name)                                                                               \
    ON(name, cases_convert), ON(name, cases_exchange), ON(name, cases_expected),                   \
        ON(name, cases_all_halves), ON(name, cases_reduce), ON(name, cases_optimisers),            \
        ON(name, cases_lists), ON(name, cases_streams), ON(name, cases_threshold),                 \
        ON(name, cases_topk), ON(name, cases_topk_long)

int main(int argc, char **argv)
{
    const struct CMUnitTest on_gpu[] = {ALL_ON("cuda")},
                            both[] = {ALL_ON("cpu"), ALL_ON("cuda"),
                                      cmocka_unit_test(test_unreported)};
    small = argc > 1 && strcmp(argv[1], "--small") == 0;
    return small ? cmocka_run_group_tests_name("gpu kernels, few cases", on_gpu, NULL, NULL)
                 : cmocka_run_group_tests_name("gpu kernels", both, NULL, NULL);
}
