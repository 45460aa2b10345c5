/* The collectives of backend mpi. Only backend_mpi.c includes this file. The collectives are MPI's
 * blocking calls, for every type and operation.
 *
 * MPI moves floats of 16 and 8 bits as integers of that size and combines them with our operations.
 * Each combination computes in f32 and rounds once, to nearest even.
 *
 * MPI has no average. For an average of f32 or of a 64-bit type, MPI sums, and this file then
 * divides the sums. This file divides floats of 16 and 8 bits before MPI sums them, so that partial
 * sums do not overflow. MPI sums integers of at most 32 bits as 64-bit integers, WIDE_COUNT
 * elements at a time, and this file divides the sums and truncates toward zero.
 *
 * MPI's in-place reduce-scatter stores the result at the start of the buffer, but coll.h requires
 * the result in this rank's chunk. Therefore MPI stores the result in scratch memory, and this file
 * copies the result to this rank's chunk. (Averages of 16-bit and 8-bit floats have their divided
 * input in scratch memory instead.) */

/* The device whose kernels our operations use. The variable is global, because MPI passes no
 * context to an operation, and a process has only one MPI. */
static const struct ddp_device *combine_device;

/* Computes inout[i] = in[i] op inout[i] for all i < len. */
static void combine(void *in, void *inout, int len, enum ddp_dtype dtype, enum ddp_op op)
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

/* MPI passes neither the operation nor our type to the function: f16 and bf16, for example, have
 * the same MPI type. Therefore each pair of type and operation has a function of its own. */
#define COMBINE(name, dtype, op)                                                                   \
    static void name(void *in, void *inout, int *len, MPI_Datatype *type)                          \
    {                                                                                              \
        (void)type;                                                                                \
        combine(in, inout, *len, dtype, op);                                                       \
    }
#define DDP_DTYPE(symbol, ...)                                                                     \
    COMBINE(sum_##symbol, DDP_##symbol, DDP_SUM)                                                   \
    COMBINE(prod_##symbol, DDP_##symbol, DDP_PROD)                                                 \
    COMBINE(min_##symbol, DDP_##symbol, DDP_MIN)                                                   \
    COMBINE(max_##symbol, DDP_##symbol, DDP_MAX)
#include "base/dtype_list.h"
#undef DDP_DTYPE

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

/* Sets unsigned_broken of an unsigned type if MPI_MIN or MPI_MAX treats the type as signed, as in
 * MPICH 4.0.2 (its issue 6083). The test compares 0 with the largest value of the type. */
static int find_unsigned_bug(struct mpi_world *world, enum ddp_dtype dtype, struct ddp_err *err)
{
    static const uint64_t in[2] = {0, UINT64_MAX};
    const size_t bytes = ddp_dtype_size(dtype);
    for (int i = 0; i < 2; i++) {
        uint64_t least = in[1 - i], most = in[1 - i];
        MPI_TRY(world, err, MPI_Reduce_local, &in[i], &least, 1, type_of(dtype), MPI_MIN);
        MPI_TRY(world, err, MPI_Reduce_local, &in[i], &most, 1, type_of(dtype), MPI_MAX);
        if (memcmp(&least, &in[0], bytes) != 0 || memcmp(&most, &in[1], bytes) != 0)
            world->unsigned_broken[dtype] = true;
    }
    return 0;
}

/* Returns whether an in-place MPI_Reduce crashes at a root other than rank 0. MPICH before 4.2
 * crashes if the ranks share a host (its issue 6540). A test of the bug would crash, too, so this
 * function checks the version. */
static bool has_reduce_bug(void)
{
    int major, minor;
    return sscanf(mpi_library(), "MPICH %d.%d", &major, &minor) == 2 &&
           (major < 4 || (major == 4 && minor < 2));
}

static int ops_create(struct mpi_world *world, struct ddp_err *err)
{
    static MPI_User_function *const functions[DDP_DTYPE_COUNT][DDP_OP_COUNT] = {
#define DDP_DTYPE(symbol, ...)                                                                     \
    [DDP_##symbol] = {[DDP_SUM] = sum_##symbol,                                                    \
                      [DDP_PROD] = prod_##symbol,                                                  \
                      [DDP_MIN] = min_##symbol,                                                    \
                      [DDP_MAX] = max_##symbol},
#include "base/dtype_list.h"
#undef DDP_DTYPE
    };
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++) {
        if (ddp_dtypes[dtype].kind == DDP_UNSIGNED)
            DDP_TRY(find_unsigned_bug(world, (enum ddp_dtype)dtype, err));
        if (!ddp_dtype_is_narrow((enum ddp_dtype)dtype))
            continue;
        MPI_Op *own = world->own_op[dtype];
        for (int op = 0; op < DDP_OP_COUNT; op++) {
            if (functions[dtype][op] != NULL)
                MPI_TRY(world, err, MPI_Op_create, functions[dtype][op], 1, &own[op]);
        }
        own[DDP_AVG] = own[DDP_SUM]; /* the caller divides */
    }
    world->reduce_broken = has_reduce_bug();
    return 0;
}

static void ops_release(struct mpi_world *world)
{
    for (int dtype = 0; dtype < DDP_DTYPE_COUNT; dtype++) {
        for (int op = 0; op < DDP_OP_COUNT; op++) {
            if (ddp_dtype_is_narrow((enum ddp_dtype)dtype) && op != DDP_AVG)
                MPI_Op_free(&world->own_op[dtype][op]);
        }
    }
}

static MPI_Op op_of(const struct mpi_world *world, enum ddp_dtype dtype, enum ddp_op op)
{
    if (ddp_dtype_is_narrow(dtype))
        return world->own_op[dtype][op];
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

/* The prepared arguments of one call. */
struct native {
    struct ddp_comm *comm;
    struct mpi_state *s;
    const struct ddp_coll_args *args;
    MPI_Datatype type;
    MPI_Op op;
    /* Bytes per element. */
    size_t elem_bytes;
    const unsigned char *send;
    unsigned char *recv;
};

/* Computes dst[i] = src[i] / ranks for all i < count. */
static void divide_into(const struct native *c, void *dst, const void *src, size_t count)
{
    const struct ddp_reduce r = {
        .dst = &dst,
        .dst_count = 1,
        .src = &src,
        .src_count = 1,
        .count = count,
        .dtype = c->args->dtype,
        .op = DDP_AVG,
        .divisor = c->comm->size,
    };
    if (count > 0)
        c->comm->device->reduce(&r);
}

static bool divides_first(const struct native *c)
{
    return c->args->op == DDP_AVG && ddp_dtype_is_narrow(c->args->dtype);
}

/* If the operation is an average whose inputs were not divided, divides `data` [count] by the
 * number of ranks. */
static void divide(const struct native *c, void *data, size_t count)
{
    if (c->args->op == DDP_AVG && !divides_first(c))
        divide_into(c, data, data, count);
}

static void widen(const struct native *c, size_t first, size_t count, int64_t *wide)
{
    switch (c->args->dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    case DDP_##symbol:                                                                             \
        for (size_t j = 0; j < count; j++)                                                         \
            wide[j] = (int64_t)((const type *)(const void *)c->send)[first + j];                   \
        break;
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}

static void narrow_average(const struct native *c, size_t first, size_t count, const int64_t *wide)
{
    switch (c->args->dtype) {
#define DDP_DTYPE(symbol, name, aliases, type, kind, digits, mean, mpi, nccl)                      \
    case DDP_##symbol:                                                                             \
        for (size_t j = 0; j < count; j++)                                                         \
            ((type *)(void *)c->recv)[first + j] = (type)(wide[j] / c->comm->size);                \
        break;
#include "base/dtype_list.h"
#undef DDP_DTYPE
    default:
        break;
    }
}

/* Sets *out to the communicator's scratch memory, which then has at least `bytes` bytes. */
static int scratch_of(struct mpi_state *s, size_t bytes, void **out, struct ddp_err *err)
{
    if (s->scratch_bytes < bytes) {
        void *grown = ddp_alloc_pages(bytes);
        if (grown == NULL)
            return ddp_fail_memory(err, bytes, 1, __func__);
        ddp_free_pages(s->scratch, s->scratch_bytes);
        s->scratch = grown;
        s->scratch_bytes = bytes;
    }
    *out = s->scratch;
    return 0;
}

/* Sets *out to scratch memory for integer averages. It has room for WIDE_COUNT inputs and
 * WIDE_COUNT sums of 64 bits. */
static int wide_of(struct mpi_state *s, int64_t **out, struct ddp_err *err)
{
    void *memory = NULL;
    DDP_TRY(scratch_of(s, 2 * WIDE_COUNT * sizeof **out, &memory, err));
    *out = memory;
    return 0;
}

/* Returns whether the operation is an average whose sums need more bits than the type has. */
static bool is_integer_average(const struct native *c)
{
    return c->args->op == DDP_AVG && ddp_dtypes[c->args->dtype].mean != c->args->dtype;
}

static int allreduce_integer_average(const struct native *c, struct ddp_err *err)
{
    struct mpi_world *world = c->s->world;
    int64_t *wide = NULL;
    DDP_TRY(wide_of(c->s, &wide, err));
    for (size_t done = 0; done < c->args->count; done += WIDE_COUNT) {
        size_t n = DDP_MIN(c->args->count - done, WIDE_COUNT);
        widen(c, done, n, wide);
        MPI_TRY(world, err, MPI_Allreduce, MPI_IN_PLACE, wide, (int)n, MPI_INT64_T, MPI_SUM,
                c->s->comm);
        narrow_average(c, done, n, wide);
    }
    return 0;
}

static int native_allreduce(const struct native *c, struct ddp_err *err)
{
    size_t count = c->args->count, done = 0;
    if (is_integer_average(c))
        return allreduce_integer_average(c, err);
    const unsigned char *send = c->send;
    if (divides_first(c)) {
        divide_into(c, c->recv, c->send, count);
        send = c->recv;
    }
    /* The loop checks `count` at its end, so that an array of 0 elements takes one call, too. */
    do {
        size_t n = DDP_MIN(count - done, (size_t)DDP_MPI_COUNT_MAX), at = done * c->elem_bytes;
        MPI_TRY(c->s->world, err, MPI_Allreduce, send == c->recv ? MPI_IN_PLACE : send + at,
                c->recv + at, (int)n, c->type, c->op, c->s->comm);
        done += n;
    } while (done < count);
    divide(c, c->recv, count);
    return 0;
}

/* Averages elements [first, first + count) of all ranks' inputs. Rank `root` gets the averages at
 * the start of recv. */
static int reduce_integer_average(const struct native *c, size_t first, size_t count, int root,
                                  struct ddp_err *err)
{
    int64_t *in = NULL;
    DDP_TRY(wide_of(c->s, &in, err));
    int64_t *out = in + WIDE_COUNT;
    for (size_t done = 0; done < count; done += WIDE_COUNT) {
        size_t n = DDP_MIN(count - done, WIDE_COUNT);
        widen(c, first + done, n, in);
        MPI_TRY(c->s->world, err, MPI_Reduce, in, out, (int)n, MPI_INT64_T, MPI_SUM, root,
                c->s->comm);
        if (c->comm->rank == root)
            narrow_average(c, done, n, out);
    }
    return 0;
}

/* Reduces elements [first, first + count) of all ranks' inputs with MPI_Reduce, in their own type.
 * Rank `root` gets the result at the start of recv. */
static int reduce_part(const struct native *c, size_t first, size_t count, int root,
                       struct ddp_err *err)
{
    struct mpi_world *world = c->s->world;
    bool here = c->comm->rank == root;
    size_t done = 0;
    do {
        size_t n = DDP_MIN(count - done, (size_t)DDP_MPI_COUNT_MAX), bytes = n * c->elem_bytes;
        const void *in = c->send + (first + done) * c->elem_bytes;
        void *out = here ? c->recv + done * c->elem_bytes : NULL;
        const bool crashes = here && in == out && root != 0 && world->reduce_broken;
        if ((crashes || divides_first(c)) && bytes > 0) {
            void *copy = NULL;
            DDP_TRY(scratch_of(c->s, bytes, &copy, err));
            if (divides_first(c))
                divide_into(c, copy, in, n);
            else
                memcpy(copy, in, bytes);
            in = copy;
        }
        MPI_TRY(world, err, MPI_Reduce, here && in == out ? MPI_IN_PLACE : in, out, (int)n, c->type,
                c->op, root, c->s->comm);
        done += n;
    } while (done < count);
    if (here)
        divide(c, c->recv, count);
    return 0;
}

/* Reduces elements [first, first + count) of all ranks' inputs. Rank `root` gets the result. */
static int reduce_chunk(const struct native *c, size_t first, size_t count, int root,
                        struct ddp_err *err)
{
    if (is_integer_average(c))
        return reduce_integer_average(c, first, count, root, err);
    return reduce_part(c, first, count, root, err);
}

/* Reduces the chunk of each rank with one or more calls of MPI_Reduce. Used for integer averages,
 * and for arrays that are too large for MPI's reduce-scatter. */
static int reduce_scatter_by_parts(const struct native *c, struct ddp_err *err)
{
    const int n = c->comm->size, me = c->comm->rank;
    size_t first = 0;
    for (int r = 0; r < n; r++) {
        const size_t count = ddp_split_part(c->args, n, me, r);
        DDP_TRY(reduce_chunk(c, first, count, r, err));
        first += count;
    }
    return 0;
}

static int native_reduce_scatter(const struct native *c, struct ddp_err *err)
{
    size_t count = c->args->count, part = count * c->elem_bytes;
    if (count > DDP_MPI_COUNT_MAX / (size_t)c->comm->size || is_integer_average(c))
        return reduce_scatter_by_parts(c, err);
    const size_t full = (size_t)c->comm->size * part;
    const void *in = c->send;
    void *out = c->recv, *scratch = NULL;
    bool in_place = c->recv == c->send + (size_t)c->comm->rank * part;
    if (divides_first(c)) {
        DDP_TRY(scratch_of(c->s, full, &scratch, err));
        divide_into(c, scratch, in, full / c->elem_bytes);
        in = scratch;
        in_place = false;
    } else if (in_place) {
        DDP_TRY(scratch_of(c->s, part, &out, err));
    }
    MPI_TRY(c->s->world, err, MPI_Reduce_scatter_block, in, out, (int)count, c->type, c->op,
            c->s->comm);
    if (in_place && part > 0)
        memcpy(c->recv, out, part);
    divide(c, c->recv, count);
    return 0;
}

/* Runs a reduce-scatter-v. */
static int native_reduce_scatter_v(const struct native *c, struct ddp_err *err)
{
    const int n = c->comm->size, me = c->comm->rank;
    if (c->args->count > DDP_MPI_COUNT_MAX / (size_t)n || is_integer_average(c))
        return reduce_scatter_by_parts(c, err);
    size_t counts_bytes = ddp_round_to_line((size_t)n * sizeof(int)), all = 0;
    for (int r = 0; r < n; r++)
        all += ddp_split_part(c->args, n, me, r);
    void *memory = NULL;
    DDP_TRY(scratch_of(c->s, counts_bytes + (divides_first(c) ? all * c->elem_bytes : 0), &memory,
                       err));
    int *counts = memory;
    for (int r = 0; r < n; r++)
        counts[r] = (int)ddp_split_part(c->args, n, me, r);
    const void *in = c->send;
    if (divides_first(c)) {
        void *divided = (unsigned char *)memory + counts_bytes;
        divide_into(c, divided, in, all);
        in = divided;
    }
    MPI_TRY(c->s->world, err, MPI_Reduce_scatter, in, c->recv, counts, c->type, c->op, c->s->comm);
    divide(c, c->recv, (size_t)counts[me]);
    return 0;
}

/* Runs a collective that only moves data. `part` describes the elements of one rank. */
static int move(const struct native *c, const struct block *part, struct ddp_err *err)
{
    struct mpi_world *world = c->s->world;
    MPI_Comm comm = c->s->comm;
    const struct ddp_coll_args *a = c->args;
    int rank = c->comm->rank, size = c->comm->size, n = part->n, root = a->root;
    size_t bytes = a->count * c->elem_bytes, mine = (size_t)rank * bytes;
    MPI_Datatype t = part->type;
    bool at_root = rank == root, gathered = c->send == c->recv + mine;

    switch (a->coll) {
    case DDP_ALL_GATHER:
        MPI_TRY(world, err, MPI_Allgather, gathered ? MPI_IN_PLACE : c->send, n, t, c->recv, n, t,
                comm);
        break;
    case DDP_BROADCAST:
        MPI_TRY(world, err, MPI_Bcast, at_root ? (void *)c->send : c->recv, n, t, root, comm);
        if (at_root && c->recv != c->send && bytes > 0)
            memcpy(c->recv, c->send, bytes);
        break;
    case DDP_ALL_TO_ALL:
        MPI_TRY(world, err, MPI_Alltoall, c->send == c->recv ? MPI_IN_PLACE : c->send, n, t,
                c->recv, n, t, comm);
        break;
    case DDP_GATHER:
        MPI_TRY(world, err, MPI_Gather, at_root && gathered ? MPI_IN_PLACE : c->send, n, t,
                at_root ? c->recv : NULL, n, t, root, comm);
        break;
    case DDP_SCATTER:
        MPI_TRY(world, err, MPI_Scatter, at_root ? c->send : NULL, n, t,
                at_root && c->recv == c->send + mine ? MPI_IN_PLACE : c->recv, n, t, root, comm);
        break;
    default: /* send-recv */
        MPI_TRY(world, err, MPI_Sendrecv, c->send, n, t, (rank + 1) % size, 0, c->recv, n, t,
                (rank + size - 1) % size, 0, comm, MPI_STATUS_IGNORE);
        break;
    }
    return 0;
}

/* Runs an all-to-all-v or an all-gather-v. mpi_native_supports has checked that the counts and
 * displacements fit into an int. */
static int native_split(const struct native *c, struct ddp_err *err)
{
    const int n = c->comm->size, me = c->comm->rank;
    const bool gathers = c->args->coll == DDP_ALL_GATHER_V;
    void *memory = NULL;
    DDP_TRY(scratch_of(c->s, 4 * (size_t)n * sizeof(int), &memory, err));
    int *sends = memory, *send_at = sends + n, *receives = send_at + n, *recv_at = receives + n;
    int sent = 0, received = 0;
    for (int r = 0; r < n; r++) {
        send_at[r] = sent;
        recv_at[r] = received;
        sends[r] = (int)ddp_split_part(c->args, n, me, r);
        sent += gathers ? 0 : sends[r];
        received += receives[r] = (int)ddp_split_part(c->args, n, r, me);
    }
    if (gathers) {
        MPI_TRY(c->s->world, err, MPI_Allgatherv, c->send, receives[me], c->type, c->recv, receives,
                recv_at, c->type, c->s->comm);
        return 0;
    }
    MPI_TRY(c->s->world, err, MPI_Alltoallv, c->send, sends, send_at, c->type, c->recv, receives,
            recv_at, c->type, c->s->comm);
    return 0;
}

static int native_move(const struct native *c, struct ddp_err *err)
{
    struct block part;
    size_t count = c->args->count;
    /* MPI libraries compute count * ranks as an int. If the product could overflow, use a derived
     * type. */
    bool large = count > DDP_MPI_COUNT_MAX / (size_t)c->comm->size;
    DDP_TRY(block_init(c->s->world, c->type, c->elem_bytes, count, large, &part, err));
    int rc = move(c, &part, err);
    block_release(&part);
    return rc;
}

static int mpi_native_supports(const struct ddp_comm *comm, const struct ddp_coll_args *args,
                               struct ddp_err *err)
{
    if (ddp_coll_reduces(args->coll) && state_of(comm)->world->unsigned_broken[args->dtype] &&
        (args->op == DDP_MIN || args->op == DDP_MAX))
        return ddp_fail(err, DDP_EUNAVAIL, "%s compares %s as a signed type in %s", mpi_library(),
                        ddp_dtype_name(args->dtype), ddp_op_name(args->op));
    const bool gathers = args->coll == DDP_ALL_GATHER_V;
    if ((gathers || args->coll == DDP_ALL_TO_ALL_V) &&
        args->count > DDP_MPI_COUNT_MAX / (size_t)comm->size)
        return ddp_fail(err, DDP_EUNAVAIL,
                        "%s takes arrays of at most %d elements, because its displacements are of "
                        "type int",
                        gathers ? "MPI_Allgatherv" : "MPI_Alltoallv", DDP_MPI_COUNT_MAX);
    return 0;
}

static int mpi_native(struct ddp_comm *comm, const struct ddp_coll_args *args, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    const struct native c = {
        .comm = comm,
        .s = s,
        .args = args,
        .type = type_of(args->dtype),
        .op = op_of(s->world, args->dtype, args->op),
        .elem_bytes = ddp_dtype_size(args->dtype),
        .send = args->send,
        .recv = args->recv,
    };
    if (s->world->failed)
        return ddp_fail(err, DDP_ELOST, "an MPI call failed before, so MPI is not called again");
    switch (args->coll) {
    case DDP_ALLREDUCE:
        return native_allreduce(&c, err);
    case DDP_REDUCE:
        return reduce_chunk(&c, 0, args->count, args->root, err);
    case DDP_REDUCE_SCATTER:
        return native_reduce_scatter(&c, err);
    case DDP_REDUCE_SCATTER_V:
        return native_reduce_scatter_v(&c, err);
    case DDP_ALL_TO_ALL_V:
    case DDP_ALL_GATHER_V:
        return native_split(&c, err);
    case DDP_BARRIER:
        MPI_TRY(s->world, err, MPI_Barrier, s->comm);
        return 0;
    default:
        return native_move(&c, err);
    }
}
