/* The rank's side of the launcher: runs rank_main and sends messages to the parent. */
#include <errno.h>
#include <sys/socket.h>

#include "base/fault.h"
#include "base/mem.h"
#include "launch/launch_impl.h"

void ddp_launch_run_rank(struct ddp_rank_start *start)
{
    int me = start->rank.rank_info.rank;
    struct ddp_segment_rank *block = ddp_segment_rank_of(start->segment, me);
    struct ddp_err err = DDP_ERR_INIT;
    ddp_flight_phase(start->rank.flight, "start");
    atomic_store_explicit(&block->state, DDP_RANK_RUNNING, memory_order_release);

    int rc = DDP_FAULT(RANK_START, me, &err);
    if (rc == 0)
        rc = start->job->rank_main(start->job->arg, &start->rank, &err);
    if (rc == 0)
        rc = DDP_FAULT(EXIT, me, &err);

    block->code = rc;
    block->err = err;
    /* The other ranks must not wait for a rank that left with an error. */
    if (rc != 0)
        ddp_segment_abort(start->segment, me, me, rc);
    atomic_store_explicit(&block->state, DDP_RANK_DONE, memory_order_release);
}

static int send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

static int receive_all(int fd, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t n = recv(fd, at, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n == 0)
            errno = EPIPE;
        if (n <= 0)
            return -1;
        at += n;
        bytes -= (size_t)n;
    }
    return 0;
}

int ddp_launch_send(struct ddp_launch_rank *rank, uint32_t type, const void *payload, size_t bytes,
                    struct ddp_err *err)
{
    if (bytes > DDP_MESSAGE_MAX)
        return ddp_fail(err, DDP_EINTERNAL,
                        "a message of %zu bytes to the parent is too long: the limit is %u", bytes,
                        DDP_MESSAGE_MAX);
    struct ddp_channel_request request = {.type = type, .bytes = bytes};
    struct ddp_channel_answer answer;
    if (send_all(rank->channel_fd, &request, sizeof request) != 0 ||
        send_all(rank->channel_fd, payload, bytes) != 0 ||
        receive_all(rank->channel_fd, &answer, sizeof answer) != 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "rank %d cannot reach its parent process",
                              rank->rank_info.rank);
    if (answer.code != 0 && err != NULL && err->code == 0)
        *err = answer.err;
    return answer.code;
}
