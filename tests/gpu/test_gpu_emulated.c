/* Runs the shipped kernels of device cuda on the processor (tests/gpu/emulated), with fewer of the
 * cases that test_gpu_kernels.c runs on a GPU. */
#include "gpu/emulated/emulated_names.h"

#include "gpu/gpu_cases.h"
#include "gpu/gpu_exchange.h"
#include "gpu/gpu_select.h"

#include "device/cuda/dev_cuda.h"

void ddp_cuda_note(struct ddp_stream *s, int code, const char *place)
{
    if (code != 0)
        fail_msg("%s: error %d", place, code);
}

static int create(struct ddp_stream **out, struct ddp_err *err)
{
    *out = (struct ddp_stream *)ddp_calloc(1, sizeof(**out));
    (*out)->processors = 1;
    return 0;
}

static void destroy(struct ddp_stream *s)
{
    free(s);
}

static int wait_for(struct ddp_stream *s, struct ddp_err *err)
{
    return 0;
}

static void copy(struct ddp_stream *s, void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void fill(struct ddp_stream *s, void *dst, unsigned char byte, size_t bytes)
{
    memset(dst, byte, bytes);
}

const struct ddp_stream_ops ddp_cuda_streams = {
    .create = create, .destroy = destroy, .wait = wait_for, .copy = copy, .fill = fill};

static void test_on(void **state)
{
    void (*const *cases)(const struct lab *) = (void (*const *)(const struct lab *)) * state;
    struct ddp_err err = DDP_ERR_INIT;
    struct lab lab = {.device = ddp_device_cpu(DDP_SIMD_SCALAR),
                      .ops = &ddp_cuda_streams,
                      .k = &ddp_cuda_kernels,
                      .cpu = ddp_device_cpu(DDP_SIMD_SCALAR)->grad,
                      .slow = true};
    assert_int_equal(lab.ops->create(&lab.stream, &err), 0);
    (*cases)(&lab);
    lab.ops->destroy(lab.stream);
}

#define CASES(function)                                                                            \
    {                                                                                              \
#function, test_on, NULL, NULL, &(void (*[1])(const struct lab *))                         \
        {                                                                                          \
            function                                                                               \
        }                                                                                          \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES(cases_convert),    CASES(cases_exchange),  CASES(cases_expected),
        CASES(cases_all_halves), CASES(cases_reduce),    CASES(cases_optimisers),
        CASES(cases_lists),      CASES(cases_threshold), CASES(cases_topk),
        CASES(cases_topk_long),
    };
    return cmocka_run_group_tests_name("emulated gpu kernels", tests, NULL, NULL);
}
