/* Which GPUs device cuda accepts. The functions of the CUDA runtime that these tests call are
 * defined here. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "device/cuda/dev_cuda.h"

enum { MAJOR = 75, MINOR = 76 }; /* cudaDevAttrComputeCapabilityMajor and Minor */

const struct ddp_stream_kernels ddp_cuda_kernels = {.reduce = NULL};
static int capability[3]; /* of each GPU: 75 is 7.5 */
static int gpus, selected;

int cudaGetDeviceCount(int *count);
int cudaGetDeviceCount(int *count)
{
    *count = gpus;
    return 0;
}

int cudaDeviceGetAttribute(int *value, int attribute, int index);
int cudaDeviceGetAttribute(int *value, int attribute, int index)
{
    assert_true(attribute == MAJOR || attribute == MINOR);
    *value = attribute == MAJOR ? capability[index] / 10 : capability[index] % 10;
    return 0;
}

int cudaSetDevice(int index);
int cudaSetDevice(int index)
{
    selected = index;
    return 0;
}

static void test_capability(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    (void)state;
    gpus = 2;
    capability[0] = 80;
    capability[1] = 90;
    assert_int_equal(ddp_dev_cuda.probe(&err), 0);
    assert_int_equal(ddp_dev_cuda.select(1, &err), 0);
    assert_int_equal(selected, 1);

    capability[1] = 75;
    assert_int_equal(ddp_dev_cuda.probe(&err), DDP_EUNAVAIL);
    assert_non_null(strstr(err.text, "GPU 1 has compute capability 7.5"));
    assert_non_null(strstr(err.hint, "8.0"));
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_dev_cuda.select(0, &err), DDP_EUNAVAIL);
}

static void test_no_gpu(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    (void)state;
    gpus = 0;
    assert_int_equal(ddp_dev_cuda.probe(&err), DDP_EUNAVAIL);
    assert_non_null(strstr(err.hint, "CUDA_VISIBLE_DEVICES"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_capability),
                                       cmocka_unit_test(test_no_gpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
