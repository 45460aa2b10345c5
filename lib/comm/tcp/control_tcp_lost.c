/* Lost ranks of the TCP side channel: detection, and the message to the others. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "comm/tcp/control_tcp_impl.h"
#include "diag/flight_report.h"

static void send_abort(struct ddp_tcp_control *c, int fd, int code, int rank)
{
    struct {
        struct ddp_control_frame head;
        char text[DDP_CONTROL_TEXT_BYTES];
    } m = {.head = {.magic = DDP_FRAME_MAGIC,
                    .kind = DDP_FRAME_ABORT,
                    .seq = c->seq,
                    .bytes = DDP_CONTROL_TEXT_BYTES,
                    .code = code,
                    .rank = rank}};
    memcpy(m.text, c->why, sizeof m.text);
    if (fd >= 0)
        (void)!ddp_tcp_send(fd, &m, sizeof m, ddp_now_ns() + DDP_CONTROL_GOODBYE_NS);
}

void ddp_control_abort(struct ddp_tcp_control *c, int code, int rank)
{
    if (c->failed)
        return;
    c->failed = true;
    for (int i = 0; i < (c->connections.rank == 0 ? c->connections.size : 1); i++)
        send_abort(c, c->connections.peer[i], code, rank);
}

int ddp_control_lose(struct ddp_comm *comm, int rank, struct ddp_err *err, const char *text)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    if (!c->failed)
        ddp_printable(text, c->why, sizeof c->why);
    ddp_control_abort(c, DDP_ELOST, rank >= 0 ? comm->world_rank[rank] : -1);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

int ddp_control_lose_peer(struct ddp_comm *comm, int rank, int error, struct ddp_err *err)
{
    char text[DDP_CONTROL_TEXT_BYTES];
    if (error == EPIPE || error == ECONNRESET)
        snprintf(text, sizeof text, "rank %d was lost: its connection ended",
                 comm->world_rank[rank]);
    else
        snprintf(text, sizeof text, "rank %d was lost: %s", comm->world_rank[rank],
                 strerror(error));
    return ddp_control_lose(comm, rank, err, text);
}

int ddp_control_receive_abort(struct ddp_comm *comm, int fd, const struct ddp_control_frame *head,
                              struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    char text[DDP_CONTROL_TEXT_BYTES] = "";
    if (head->bytes == sizeof text &&
        ddp_tcp_receive(fd, text, sizeof text, ddp_now_ns() + DDP_CONTROL_GOODBYE_NS) == 0)
        text[sizeof text - 1] = '\0';
    else
        text[0] = '\0';
    if (text[0] == '\0')
        snprintf(text, sizeof text, "the run was ended by another rank (code %d)", -head->code);
    ddp_printable(text, c->why, sizeof c->why);
    ddp_control_abort(c, head->code, head->rank);
    return ddp_fail(err, DDP_ELOST, "%s", c->why);
}

int ddp_control_check_frame(struct ddp_comm *comm, int rank, const struct ddp_control_frame *head,
                            enum ddp_control_kind kind, uint64_t bytes, struct ddp_err *err)
{
    const struct ddp_tcp_control *c = ddp_control_of(comm);
    char text[DDP_CONTROL_TEXT_BYTES];
    if (head->magic == DDP_FRAME_MAGIC && head->kind == DDP_FRAME_BYE) {
        snprintf(text, sizeof text, "rank %d has left the run, but rank %d has not",
                 comm->world_rank[rank], comm->world_rank[comm->rank]);
        return ddp_control_lose(comm, rank, err, text);
    }
    if (head->magic == DDP_FRAME_MAGIC && head->kind == kind && head->seq == c->seq &&
        head->bytes == bytes)
        return 0;
    snprintf(text, sizeof text,
             "rank %d exchanges %llu bytes as number %llu, but rank %d %llu as number %llu",
             comm->world_rank[rank], (unsigned long long)head->bytes, (unsigned long long)head->seq,
             comm->world_rank[comm->rank], (unsigned long long)bytes, (unsigned long long)c->seq);
    return ddp_control_lose(comm, rank, err, text);
}

int ddp_control_expire(struct ddp_comm *comm, struct ddp_err *err)
{
    struct ddp_tcp_control *c = ddp_control_of(comm);
    unsigned char missing[DDP_RENDEZVOUS_RANKS_MAX] = {0};
    char text[DDP_CONTROL_TEXT_BYTES], list[100] = "0", time[32], doing[160];
    int first = 0, many = 1;
    ddp_format_ns((double)comm->timeout_ns, time, sizeof time);
    ddp_flight_describe(comm->flight, doing, sizeof doing);
    if (comm->rank == 0) {
        for (int r = comm->size - 1; r > 0; r--) {
            missing[r] = c->polled[r].fd >= 0;
            first = missing[r] ? r : first;
        }
        many = ddp_rank_list(missing, comm->size, 1, list, sizeof list);
    }
    snprintf(text, sizeof text, "rank %d waited %s for rank%s %s in %.120s",
             comm->world_rank[comm->rank], time, many == 1 ? "" : "s", list, doing);
    return ddp_control_lose(comm, first, err, text);
}
