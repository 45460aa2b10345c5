/* Types and operations of backend_mpi.c, which includes this file.
 *
 * MPI moves 16-bit floats as 16-bit integers and combines them with our operations. Each
 * combination computes in f32 and rounds once, to nearest even. */

/* The device whose kernels our operations use. It is a global, because MPI passes no context to an
 * operation, and a process has only one MPI. */
static const struct ddp_device *combine_device;

/* Computes inout[i] = in[i] op inout[i] for all i < len. */
static void combine16(void *in, void *inout, int len, enum ddp_dtype dtype, enum ddp_op op)
{
    const void *src[2] = {in, inout};
    void *dst[1] = {inout};
    const struct ddp_reduce r = {
        .dst = dst,
        .dst_count = 1,
        .src = src,
        .src_count = 2,
        .count = (size_t)len,
        .dtype = dtype,
        .op = op,
        .divisor = 1,
    };
    combine_device->reduce(&r);
}

/* MPI passes the type to the function, but not the operation. Therefore each pair of type and
 * operation has a function of its own. */
#define COMBINE16(name, dtype, op)                                                                 \
    static void name(void *in, void *inout, int *len, MPI_Datatype *type)                          \
    {                                                                                              \
        (void)type;                                                                                \
        combine16(in, inout, *len, dtype, op);                                                     \
    }
COMBINE16(sum_f16, DDP_F16, DDP_SUM)
COMBINE16(prod_f16, DDP_F16, DDP_PROD)
COMBINE16(min_f16, DDP_F16, DDP_MIN)
COMBINE16(max_f16, DDP_F16, DDP_MAX)
COMBINE16(sum_bf16, DDP_BF16, DDP_SUM)
COMBINE16(prod_bf16, DDP_BF16, DDP_PROD)
COMBINE16(min_bf16, DDP_BF16, DDP_MIN)
COMBINE16(max_bf16, DDP_BF16, DDP_MAX)

/* Sets unsigned_broken if MPI_MIN and MPI_MAX treat unsigned integers as signed, as in MPICH 4.0.2
 * (its issue 6083). */
static int find_unsigned_bug(struct mpi_world *world, struct ddp_err *err)
{
    unsigned char in[256], least[256], most[256];
    for (int i = 0; i < 256; i++) {
        in[i] = (unsigned char)i;
        least[i] = most[i] = (unsigned char)(255 - i);
    }
    MPI_TRY(world, err, MPI_Reduce_local, in, least, 256, MPI_UINT8_T, MPI_MIN);
    MPI_TRY(world, err, MPI_Reduce_local, in, most, 256, MPI_UINT8_T, MPI_MAX);
    for (int i = 0; i < 256; i++) {
        if (least[i] != DDP_MIN(i, 255 - i) || most[i] != DDP_MAX(i, 255 - i))
            world->unsigned_broken = true;
    }
    return 0;
}

/* Returns whether an in-place MPI_Reduce crashes at a root other than rank 0. MPICH before 4.2 does
 * so if the ranks share a host (its issue 6540). A test would crash, so the version decides. */
static bool has_reduce_bug(void)
{
    int major, minor;
    return sscanf(mpi_library(), "MPICH %d.%d", &major, &minor) == 2 &&
           (major < 4 || (major == 4 && minor < 2));
}

static int ops_create(struct mpi_world *world, struct ddp_err *err)
{
    static const struct {
        enum ddp_op op;
        MPI_User_function *function[2];
    } rows[] = {
        {DDP_SUM, {sum_f16, sum_bf16}},
        {DDP_PROD, {prod_f16, prod_bf16}},
        {DDP_MIN, {min_f16, min_bf16}},
        {DDP_MAX, {max_f16, max_bf16}},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        for (int bf = 0; bf < 2; bf++)
            MPI_TRY(world, err, MPI_Op_create, rows[i].function[bf], 1,
                    &world->op16[bf][rows[i].op]);
    }
    /* Averages use the sum operation. The caller divides. */
    for (int bf = 0; bf < 2; bf++)
        world->op16[bf][DDP_AVG] = world->op16[bf][DDP_SUM];
    world->reduce_broken = has_reduce_bug();
    return find_unsigned_bug(world, err);
}

static void ops_release(struct mpi_world *world)
{
    for (int bf = 0; bf < 2; bf++) {
        for (int op = 0; op < DDP_OP_COUNT; op++) {
            if (op != DDP_AVG)
                MPI_Op_free(&world->op16[bf][op]);
        }
    }
}

static MPI_Op op_of(const struct mpi_world *world, enum ddp_dtype dtype, enum ddp_op op)
{
    if (ddp_dtype_is_half(dtype))
        return world->op16[dtype == DDP_BF16][op];
    switch (op) {
    case DDP_PROD:
        return MPI_PROD;
    case DDP_MIN:
        return MPI_MIN;
    case DDP_MAX:
        return MPI_MAX;
    default:
        return MPI_SUM;
    }
}

static MPI_Datatype type_of(enum ddp_dtype dtype)
{
    switch (dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    case DDP_##symbol:                                                                             \
        return mpi;
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        return MPI_DATATYPE_NULL;
    }
}
