/* Compares models on GPU 0 with the processor's: the layers' kernels, gradients of every net by
 * both kinds of convolution, and training runs, eager and as graphs. Without a GPU the tests are
 * skipped, with the reason. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "device/cuda/cuda_module.h"
#include "gpu/nn_cases.h"
#include "model/blas.h"
#include "unit/net_pairs.h"
#include "unit/trainer_runs.h"

static const struct ddp_device *gpu(void)
{
    struct ddp_err err = DDP_ERR_INIT;
    for (const struct ddp_device *const *d = ddp_device_all(); *d; d++)
        if (strcmp((*d)->name, "cuda") == 0) {
            if ((*d)->probe(&err) != 0) {
                print_message("# cuda: %s\n", err.text);
                skip();
            }
            assert_int_equal((*d)->select(0, &err), 0);
            return *d;
        }
    return NULL;
}

static void kernels(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct lab lab = {.device = gpu()};
    const struct ddp_cuda_module *module;
    assert_int_equal(ddp_cuda_module_load(&module, &err), 0);
    lab.ops = lab.device->streams;
    assert_int_equal(lab.ops->create(&lab.stream, &err), 0);
    nn_cases(&lab, module->layers);
    lab.ops->destroy(lab.stream);
}

static void all_nets(enum ddp_conv_way conv)
{
    const struct ddp_model_target place = {.device = gpu(), .conv = (int)conv};
    check_net("singa-cnn", &place, 32, 8);
    check_net("lenet", &place, 64, 10);
    check_net("resnet9", &place, 16, 4); /* in more steps, rounding errors grow too much */
    check_net("nnabla-tiny", &place, 64, 10);
}

static void nets_unfolded(void **state)
{
    all_nets(DDP_CONV_UNFOLD);
}

static void nets_by_cudnn(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_model *m;
    const struct ddp_model_class *cls = ddp_model_find("lenet");
    struct ddp_model_target place = {.device = gpu(), .conv = DDP_CONV_LIBRARY};
    assert_int_equal(place.device->streams->create(&place.stream, &err), 0);
    if (cls->create(cls, &place, 8, NULL, NULL, &m, &err) != 0) {
        print_message("# cuDNN: %s\n", err.text);
        skip();
    }
    cls->destroy(m);
    place.device->streams->destroy(place.stream);
    print_message("# %s\n", ddp_layers_find("cuda")->library());
    all_nets(DDP_CONV_LIBRARY);
}

static struct run on_gpu(const char *model, enum ddp_optimizer optimizer)
{
    struct run r = defaults(1, 32);
    r.o.model = ddp_model_find(model);
    r.o.optimizer = optimizer;
    r.o.lr = optimizer == DDP_OPTIM_ADAM ? 1e-3 : 0.005;
    r.o.device = gpu();
    r.o.epochs = 2;
    return r;
}

/* A captured step gives the same bits as the same step without a graph, and again when repeated. */
static void graphs_give_the_same_bits(void **state)
{
    static struct run eager, graph, again;
    for (int way = DDP_CONV_AUTO; way <= DDP_CONV_UNFOLD; way += DDP_CONV_UNFOLD) {
        eager = on_gpu("singa-cnn", way ? DDP_OPTIM_ADAM : DDP_OPTIM_SGD);
        eager.o.conv = (enum ddp_conv_way)way;
        graph = eager;
        graph.o.graph = true;
        again = graph;
        expect_success(&eager);
        expect_success(&graph);
        expect_success(&again);
        assert_memory_equal(graph.losses, eager.losses, sizeof eager.losses);
        assert_memory_equal(graph.losses, again.losses, sizeof eager.losses);
        assert_true(graph.epochs[1].parameter_hash == eager.epochs[1].parameter_hash);
        assert_true(graph.epochs[1].eval_loss == eager.epochs[1].eval_loss);
    }
}

/* A run on the GPU agrees with the processor's except for rounding. */
static void runs_agree(void **state)
{
    static struct run there, here;
    static const char *const models[] = {"singa-cnn", "lenet"};
    for (int i = 0; i < 4; i++) {
        there = on_gpu(models[i % 2], i < 2 ? DDP_OPTIM_SGD : DDP_OPTIM_ADAM);
        there.o.graph = true;
        here = there;
        here.o.device = NULL;
        here.o.graph = false;
        expect_success(&there);
        expect_success(&here);
        assert_int_equal(there.steps, here.steps);
        for (int s = 0; s < 20; s++)
            assert_true(fabs(there.losses[s] - here.losses[s]) <= 5e-3 * here.losses[s]);
        assert_true(fabs(there.epochs[1].eval_loss - here.epochs[1].eval_loss) <=
                    0.02 * here.epochs[1].eval_loss);
    }
}

static int prepare(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    if (make_data(state) || ddp_blas_load(NULL, &err))
        return -1;
    data.train.count /= 2; /* two epochs are 32 steps of 32 images */
    return 0;
}

/* --small: only our own kernels, for compute-sanitizer. */
int main(int argc, char **argv)
{
    const struct CMUnitTest small[] = {cmocka_unit_test(kernels)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels),       cmocka_unit_test(nets_unfolded),
        cmocka_unit_test(nets_by_cudnn), cmocka_unit_test(graphs_give_the_same_bits),
        cmocka_unit_test(runs_agree),
    };
    if (argc > 1 && strcmp(argv[1], "--small") == 0)
        return cmocka_run_group_tests_name("kernels of layers", small, NULL, NULL);
    return cmocka_run_group_tests_name("models on a GPU", tests, prepare, drop_data);
}
