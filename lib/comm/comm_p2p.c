/* Point-to-point messages: the byte counters and the waiting loop, which are the same for all
 * backends. */
#include "base/fault.h"
#include "base/mem.h"
#include "comm/backend.h"
#include "comm/waiter.h"

/* u[7] of a request describes the request, for error messages and the flight recorder. The low 31
 * bits hold the peer, the next bit tells whether the request is a send, and the high 32 bits hold
 * the number of bytes (at most UINT32_MAX). */
#define SENDS       (UINT64_C(1) << 31)
#define BYTES_SHIFT 32

static uint64_t note(int peer, bool sends, size_t bytes)
{
    uint64_t shown = DDP_MIN((uint64_t)bytes, UINT32_MAX);
    return shown << BYTES_SHIFT | (sends ? SENDS : 0) | (uint64_t)peer;
}

static int noted_peer(const struct ddp_request *req)
{
    return (int)(req->u[7] & (SENDS - 1));
}

static int check_p2p(const struct ddp_comm *comm, int peer, struct ddp_err *err)
{
    if ((comm->backend->caps & DDP_CAP_P2P) == 0)
        return ddp_fail(err, DDP_EUNAVAIL, "backend '%s' has no point-to-point messages",
                        comm->backend->name);
    if (peer < 0 || peer >= comm->size)
        return ddp_fail(err, DDP_EUSAGE, "rank %d is not among the %d ranks", peer, comm->size);
    return ddp_wait_check(comm, err);
}

int ddp_comm_isend(struct ddp_comm *comm, int dst, int tag, const void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err)
{
    DDP_TRY(check_p2p(comm, dst, err));
    *req = (struct ddp_request){.active = true};
    req->u[7] = note(dst, true, bytes);
    int rc = DDP_FAULT_DATA(SEND, comm->rank_info.rank, buf, bytes, err);
    if (rc == 0)
        rc = comm->backend->isend(comm, dst, tag, buf, bytes, req, err);
    if (rc != 0) {
        req->active = false;
        return rc;
    }
    comm->wire_bytes += bytes;
    comm->wire_messages++;
    return 0;
}

int ddp_comm_irecv(struct ddp_comm *comm, int src, int tag, void *buf, size_t bytes,
                   struct ddp_request *req, struct ddp_err *err)
{
    DDP_TRY(check_p2p(comm, src, err));
    *req = (struct ddp_request){.active = true};
    req->u[7] = note(src, false, bytes);
    int rc = DDP_FAULT(RECV, comm->rank_info.rank, err);
    if (rc == 0)
        rc = comm->backend->irecv(comm, src, tag, buf, bytes, req, err);
    if (rc != 0)
        req->active = false;
    return rc;
}

int ddp_comm_test(struct ddp_comm *comm, struct ddp_request *req, bool *done, struct ddp_err *err)
{
    *done = true;
    if (!req->active)
        return 0;
    *done = false;
    int rc = comm->backend->test(comm, req, done, err);
    if (rc != 0 || *done)
        req->active = false;
    return rc;
}

/* Tests all requests once. *first becomes the first unfinished request, or n if all are
 * finished. */
static int test_all(struct ddp_comm *comm, struct ddp_request *req, int n, int *first,
                    struct ddp_err *err)
{
    *first = n;
    for (int i = n - 1; i >= 0; i--) {
        bool done = true;
        if (req[i].active)
            DDP_TRY(ddp_comm_test(comm, &req[i], &done, err));
        if (!done)
            *first = i;
    }
    return 0;
}

/* Records in the flight recorder that this rank waits for a message outside of a collective.
 * Returns false if the recorder already shows an operation in progress. */
static bool enter_flight(struct ddp_comm *comm, const struct ddp_request *req, uint64_t *seq)
{
    if (ddp_flight_busy(comm->flight, seq))
        return false;
    *seq = ddp_flight_enter(comm->flight, req->u[7] & SENDS ? DDP_FLIGHT_SEND : DDP_FLIGHT_RECV, 0,
                            req->u[7] >> BYTES_SHIFT);
    return true;
}

int ddp_comm_wait(struct ddp_comm *comm, struct ddp_request *req, int n, struct ddp_err *err)
{
    int first;
    DDP_TRY(test_all(comm, req, n, &first, err));
    if (first == n)
        return 0;

    struct ddp_waiter waiter;
    ddp_waiter_init(&waiter, comm);
    uint64_t seq = 0;
    bool recorded = false;
    int rc = 0;
    while (rc == 0 && first < n) {
        if (waiter.polls == 64)
            recorded = enter_flight(comm, &req[first], &seq);
        switch (ddp_waiter_step(&waiter)) {
        case DDP_WAIT_ON:
        case DDP_WAIT_ABORTED: /* then test_all fails, after the backend has dropped the requests */
            rc = test_all(comm, req, n, &first, err);
            break;
        case DDP_WAIT_EXPIRED:
            rc = ddp_wait_expired(comm, comm->world_rank[noted_peer(&req[first])], err);
            if (comm->shm != NULL)
                (void)!test_all(comm, req, n, &first, NULL);
            break;
        }
    }
    if (recorded)
        ddp_flight_leave(comm->flight, seq, rc != 0);
    return rc;
}

/* The tag of the messages of ddp_comm_exchange. */
#define EXCHANGE_TAG 0x0ddb

static int exchange_p2p(struct ddp_comm *comm, struct ddp_comm_message *message, int n,
                        struct ddp_err *err)
{
    for (int i = 0; i < n; i++) {
        struct ddp_comm_message *m = &message[i];
        m->request[0].active = m->request[1].active = false;
        if (m->recv_bytes > 0)
            DDP_TRY(ddp_comm_irecv(comm, m->peer, EXCHANGE_TAG, m->recv, m->recv_bytes,
                                   &m->request[0], err));
    }
    for (int i = 0; i < n; i++)
        if (message[i].send_bytes > 0)
            DDP_TRY(ddp_comm_isend(comm, message[i].peer, EXCHANGE_TAG, message[i].send,
                                   message[i].send_bytes, &message[i].request[1], err));
    for (int i = 0; i < n; i++)
        DDP_TRY(ddp_comm_wait(comm, message[i].request, 2, err));
    return 0;
}

int ddp_comm_exchange(struct ddp_comm *comm, struct ddp_comm_message *message, int n,
                      struct ddp_err *err)
{
    if (comm->backend->messages == NULL)
        return exchange_p2p(comm, message, n, err);
    DDP_TRY(comm->backend->messages(comm, message, n, err));
    for (int i = 0; i < n; i++) {
        comm->wire_bytes += message[i].send_bytes;
        comm->wire_messages += message[i].send_bytes > 0;
    }
    return 0;
}
