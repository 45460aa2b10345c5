/* Point-to-point messages over shared memory: the requests. shm_pipe.c moves the data. If two
 * threads of this rank use communicators, a lock guards this rank's lists of requests and
 * messages. */
#include "comm/shm/shm_impl.h"
#include "comm/waiter.h"

static void lock(struct ddp_shm_world *world)
{
    if (world->threads)
        pthread_mutex_lock(&world->lock);
}

static void unlock(struct ddp_shm_world *world)
{
    if (world->threads)
        pthread_mutex_unlock(&world->lock);
}

static void append(struct ddp_request **first, struct ddp_request **last, struct ddp_request *req)
{
    req->impl[1] = NULL;
    if (*first == NULL)
        *first = req;
    else
        (*last)->impl[1] = req;
    *last = req;
}

static void set_request(struct ddp_request *req, const void *buf, size_t bytes, int tag,
                        uint64_t context, int peer)
{
    req->impl[0] = (void *)(uintptr_t)buf;
    req->u[DDP_REQ_BYTES] = bytes;
    req->u[DDP_REQ_MOVED] = 0;
    req->u[DDP_REQ_TAG] = (uint32_t)tag;
    req->u[DDP_REQ_CONTEXT] = context;
    req->u[DDP_REQ_STATE] = DDP_REQ_PENDING;
    req->u[DDP_REQ_PEER] = (uint64_t)peer;
    req->active = true;
}

void ddp_shm_p2p_send(struct ddp_shm_world *world, int target, uint64_t context, int tag,
                      const void *buf, size_t bytes, struct ddp_request *req)
{
    struct ddp_shm_peer *p = &world->peer[target];
    set_request(req, buf, bytes, tag, context, target);
    lock(world);
    append(&p->sends, &p->sends_last, req);
    ddp_shm_pipe_push(world, target);
    unlock(world);
}

void ddp_shm_p2p_recv(struct ddp_shm_world *world, int source, uint64_t context, int tag, void *buf,
                      size_t bytes, struct ddp_request *req)
{
    struct ddp_shm_peer *p = &world->peer[source];
    set_request(req, buf, bytes, tag, context, source);
    lock(world);
    if (!ddp_shm_pipe_take_early(p, req))
        append(&p->posted, &p->posted_last, req);
    unlock(world);
}

int ddp_shm_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                  struct ddp_request *req, struct ddp_err *err)
{
    const struct ddp_shm_state *state = ddp_shm_state_of(comm);
    ddp_shm_p2p_send(state->world, comm->world_rank[dst], state->context, tag, buf, bytes, req);
    return 0;
}

int ddp_shm_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                  struct ddp_request *req, struct ddp_err *err)
{
    const struct ddp_shm_state *state = ddp_shm_state_of(comm);
    ddp_shm_p2p_recv(state->world, comm->world_rank[src], state->context, tag, buf, bytes, req);
    return 0;
}

/* Makes progress and checks the state of a request. The caller holds the lock. */
static int test_request(struct ddp_shm_world *world, struct ddp_request *req, struct ddp_err *err)
{
    if (ddp_segment_aborted(world->segment, NULL, NULL, NULL)) {
        ddp_shm_pipe_drop(world);
        return DDP_ELOST;
    }
    if (req->u[DDP_REQ_STATE] == DDP_REQ_PENDING)
        DDP_TRY(ddp_shm_pipe_progress(world, err));
    if (req->u[DDP_REQ_STATE] != DDP_REQ_WRONG_LENGTH)
        return 0;
    return ddp_fail(
        err, DDP_EMISMATCH, "rank %d sent %llu bytes with tag %d where rank %d expected %llu",
        (int)req->u[DDP_REQ_PEER], (unsigned long long)req->u[DDP_REQ_LENGTH],
        (int32_t)req->u[DDP_REQ_TAG], world->me, (unsigned long long)req->u[DDP_REQ_BYTES]);
}

int ddp_shm_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    struct ddp_shm_world *world = ddp_shm_state_of(comm)->world;
    lock(world);
    int rc = test_request(world, req, err);
    *done = rc == 0 && req->u[DDP_REQ_STATE] == DDP_REQ_DONE;
    if (rc != 0) {
        ddp_comm_abort(comm, rc);
        ddp_shm_pipe_drop(world);
    }
    unlock(world);
    return rc == DDP_ELOST ? ddp_wait_aborted(comm, err) : rc;
}
