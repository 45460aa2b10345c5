/* The parent's side of messages from ranks. The parent reads only bytes that have arrived. A rank
 * that is slow, or that dies during a message, therefore does not delay the supervision of the
 * other ranks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "launch/launch_impl.h"

void ddp_launch_channel_close(struct ddp_launch_child *child)
{
    close(child->channel);
    child->channel = -1;
    free(child->payload);
    child->payload = NULL;
    child->got = 0;
}

/* Handles a complete request and sends the answer. */
static void answer(struct ddp_launch_run *run, int rank)
{
    struct ddp_launch_child *child = &run->child[rank];
    struct ddp_channel_answer reply = {.err = DDP_ERR_INIT};
    if (run->cause.kind == DDP_CAUSE_HANDLER) {
        /* The handler has failed before, so it is not called again. */
        reply.code = run->cause.err.code;
        reply.err = run->cause.err;
    } else {
        atomic_store_explicit(&run->segment->collector_busy_ns, INT64_MAX, memory_order_release);
        reply.code = run->job->on_message(run->job->arg, rank, child->request.type, child->payload,
                                          child->request.bytes, &reply.err);
        atomic_store_explicit(&run->segment->collector_busy_ns, ddp_now_ns(), memory_order_release);
        if (reply.code != 0) {
            /* If the handler failed because a rank was lost or a signal came, the loss or the
             * signal is the cause. Record it before the handler's error. */
            (void)ddp_launch_should_stop(run);
            if (reply.err.code == 0)
                ddp_fail(&reply.err, reply.code, "a message of rank %d could not be handled", rank);
            if (ddp_launch_find_cause(run, DDP_CAUSE_HANDLER, -1, reply.code))
                run->cause.err = reply.err;
        }
    }
    free(child->payload);
    child->payload = NULL;
    child->got = 0;
    /* The answer fits into the socket's buffer, which is empty because the rank waits for this
     * answer. Sending therefore does not block. Errors are ignored, because a dead rank needs no
     * answer. */
    while (send(child->channel, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
           errno == EINTR)
        continue;
}

/* Returns the number of bytes that are still missing, or 0 if request and payload are complete.
 * *into becomes the address at which to store the missing bytes. */
static size_t wanted(struct ddp_launch_child *child, unsigned char **into)
{
    size_t head = sizeof child->request;
    if (child->got < head) {
        *into = (unsigned char *)&child->request + child->got;
        return head - child->got;
    }
    *into = child->payload + (child->got - head);
    return child->request.bytes - (child->got - head);
}

/* Allocates memory for the payload when its length is known. Ends the run and returns false if
 * memory is exhausted, the message is too long, or there is no on_message. */
static bool make_room(struct ddp_launch_run *run, int rank)
{
    struct ddp_launch_child *child = &run->child[rank];
    if (child->request.bytes > DDP_MESSAGE_MAX || run->job->on_message == NULL) {
        if (ddp_launch_find_cause(run, DDP_CAUSE_HANDLER, rank, DDP_EINTERNAL))
            ddp_fail(&run->cause.err, DDP_EINTERNAL,
                     "rank %d sent a message that cannot be handled", rank);
        return false;
    }
    child->payload = malloc(child->request.bytes + 1);
    if (child->payload == NULL) {
        if (ddp_launch_find_cause(run, DDP_CAUSE_HANDLER, rank, DDP_ENOMEM))
            ddp_fail(&run->cause.err, DDP_ENOMEM, "no memory for a message of %llu bytes",
                     (unsigned long long)child->request.bytes);
        return false;
    }
    return true;
}

bool ddp_launch_channel_read(struct ddp_launch_run *run, int rank)
{
    struct ddp_launch_child *child = &run->child[rank];
    while (child->channel >= 0) {
        unsigned char *into;
        size_t want = wanted(child, &into);
        if (want == 0) {
            answer(run, rank);
            continue;
        }
        ssize_t n = recv(child->channel, into, want, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return true;
        if (n <= 0)
            break;
        child->got += (uint64_t)n;
        if (child->got == sizeof child->request && !make_room(run, rank))
            break;
    }
    if (child->channel >= 0)
        ddp_launch_channel_close(child);
    return false;
}
