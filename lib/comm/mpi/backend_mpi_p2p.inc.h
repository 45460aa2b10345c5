/* Point-to-point messages and the untimed all-gather of backend_mpi.c, which includes this file. A
 * message with more than DDP_MPI_COUNT_MAX elements is sent as one element of a derived type. */

/* A message as MPI describes it: n elements of `type`. */
struct block {
    int n;
    MPI_Datatype type;
    bool owned; /* type is a derived type that block_release frees */
};

/* Builds one derived type for `count` elements: rows of DDP_MPI_COUNT_MAX elements, and then the
 * rest. */
static int block_large(struct mpi_world *world, MPI_Datatype elem, size_t elem_bytes, size_t count,
                       struct block *block, struct ddp_err *err)
{
    const int row = DDP_MPI_COUNT_MAX;
    size_t rows = count / (size_t)row, rest = count % (size_t)row;
    MPI_Datatype parts[2];
    if (rows > INT_MAX)
        return ddp_fail(err, DDP_EUSAGE, "%zu elements are more than one MPI call can move", count);
    MPI_TRY(world, err, MPI_Type_vector, (int)rows, row, row, elem, &parts[0]);
    MPI_TRY(world, err, MPI_Type_contiguous, (int)rest, elem, &parts[1]);
    MPI_TRY(world, err, MPI_Type_create_struct, 2, (const int[]){1, 1},
            (const MPI_Aint[]){0, (MPI_Aint)(rows * (size_t)row * elem_bytes)}, parts,
            &block->type);
    MPI_TRY(world, err, MPI_Type_commit, &block->type);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    block->n = 1;
    block->owned = true;
    return 0;
}

/* Describes `count` elements. large: use a derived type even for a small count. */
static int block_init(struct mpi_world *world, MPI_Datatype elem, size_t elem_bytes, size_t count,
                      bool large, struct block *block, struct ddp_err *err)
{
    *block = (struct block){.n = (int)count, .type = elem};
    if (!large && count <= DDP_MPI_COUNT_MAX)
        return 0;
    return block_large(world, elem, elem_bytes, count, block, err);
}

/* May be called directly after a non-blocking call, because MPI keeps the type until the operation
 * ends. */
static void block_release(struct block *block)
{
    if (block->owned)
        MPI_Type_free(&block->type);
}

static int mpi_barrier(struct ddp_comm *comm, struct ddp_err *err)
{
    MPI_TRY(state_of(comm)->world, err, MPI_Barrier, state_of(comm)->comm);
    return 0;
}

static int mpi_allgather_bytes(struct ddp_comm *comm, const void *mine, void *all, size_t bytes,
                               struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    /* MPI libraries compute count * ranks as an int. */
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, bytes > DDP_MPI_COUNT_MAX / (size_t)comm->size,
                       &block, err));
    int mpi_rc = MPI_Allgather(mine, block.n, block.type, all, block.n, block.type, s->comm);
    block_release(&block);
    return mpi_rc == MPI_SUCCESS ? 0 : mpi_fail(s->world, mpi_rc, "MPI_Allgather", err);
}

/* In the requests of this backend, impl[0] holds the MPI_Request, u[0] the bytes, and u[1] whether
 * the request is a receive. */
_Static_assert(sizeof(MPI_Request) <= sizeof(void *), "an MPI_Request must fit in impl[0]");

static void request_store(struct ddp_request *req, MPI_Request request)
{
    memcpy(&req->impl[0], &request, sizeof request);
}

static int mpi_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    MPI_Request request;
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, false, &block, err));
    int mpi_rc = MPI_Isend(buf, block.n, block.type, dst, tag, s->comm, &request);
    block_release(&block);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Isend", err);
    request_store(req, request);
    req->u[0] = bytes;
    req->u[1] = false;
    return 0;
}

static int mpi_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                     struct ddp_request *req, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    struct block block;
    MPI_Request request;
    DDP_TRY(block_init(s->world, MPI_BYTE, 1, bytes, false, &block, err));
    int mpi_rc = MPI_Irecv(buf, block.n, block.type, src, tag, s->comm, &request);
    block_release(&block);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Irecv", err);
    request_store(req, request);
    req->u[0] = bytes;
    req->u[1] = true;
    return 0;
}

/* Tests a request. In a simulation, waits for the request instead. */
static int test_or_wait(MPI_Request *request, int *done, MPI_Status *status)
{
    if (!DDP_MPI_SIMULATED)
        return MPI_Test(request, done, status);
    *done = 1;
    return MPI_Wait(request, status);
}

/* Sets *bytes to the received bytes. SimGrid 3.32 lacks MPI_Get_elements_x, but the counts of its
 * messages fit in an int. */
static int count_bytes(MPI_Status *status, MPI_Count *bytes)
{
    int n = 0;
    if (!DDP_MPI_SIMULATED)
        return MPI_Get_elements_x(status, MPI_BYTE, bytes);
    const int mpi_rc = MPI_Get_count(status, MPI_BYTE, &n);
    *bytes = n;
    return mpi_rc;
}

static int mpi_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    struct mpi_state *s = state_of(comm);
    MPI_Request request;
    MPI_Status status;
    int flag;
    memcpy(&request, &req->impl[0], sizeof request);
    int mpi_rc = test_or_wait(&request, &flag, &status);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Test", err);
    request_store(req, request);
    *done = flag;
    if (!flag || !req->u[1])
        return 0;
    /* MPI reports a longer message as MPI_ERR_TRUNCATE, but accepts a shorter one silently. */
    MPI_Count bytes = 0;
    mpi_rc = count_bytes(&status, &bytes);
    if (mpi_rc != MPI_SUCCESS)
        return mpi_fail(s->world, mpi_rc, "MPI_Get_elements_x", err);
    if ((uint64_t)bytes == req->u[0])
        return 0;
    return ddp_fail(err, DDP_EMISMATCH, "received a message of %lld bytes, but expected %llu",
                    (long long)bytes, (unsigned long long)req->u[0]);
}
