/* Point-to-point messages over shared memory. Each ordered pair of ranks has a ring of slots.
 *
 * The sender copies data into free slots and counts the filled slots in `tail`. The receiver copies
 * the data out and counts the emptied slots in `head`. Each counter only grows and has one writer.
 * A message is sent in fragments of one slot. Fragments of different messages of a pair never
 * interleave, so only the first fragment of a message is matched with the posted receives, by
 * context and tag. A message without a posted receive is copied to private memory (an "early"
 * message), so that it does not block the ring.
 *
 * `isend` fills free slots at once. After that, open requests make progress in `test`. Each
 * call of `test` on an unfinished request advances all open requests, and some of these calls also
 * read the rings of all ranks. Two ranks that both send first therefore do not deadlock. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "comm/shm/shm_impl.h"

/* Once in this many calls, ddp_shm_pipe_progress reads the rings of all ranks. */
#define ALL_RINGS_EVERY 32

static struct ddp_request *next_of(const struct ddp_request *req)
{
    return req->impl[1];
}

int ddp_shm_pipe_init(struct ddp_shm_world *world, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(&world->peer, (size_t)world->ranks, err));
    for (int r = 0; r < world->ranks; r++) {
        struct ddp_segment_pipe *out = ddp_segment_pipe_of(world->segment, world->me, r);
        struct ddp_segment_pipe *in = ddp_segment_pipe_of(world->segment, r, world->me);
        world->peer[r].tail = atomic_load_explicit(&out->tail, memory_order_acquire);
        world->peer[r].head_seen = atomic_load_explicit(&out->head, memory_order_acquire);
        world->peer[r].head = atomic_load_explicit(&in->head, memory_order_acquire);
    }
    return 0;
}

static void free_message(struct ddp_shm_message *message)
{
    free(message->data);
    free(message);
}

void ddp_shm_pipe_release(struct ddp_shm_world *world)
{
    for (int r = 0; world->peer != NULL && r < world->ranks; r++) {
        struct ddp_shm_message *message = world->peer[r].early;
        while (message != NULL) {
            struct ddp_shm_message *next = message->next;
            free_message(message);
            message = next;
        }
    }
    free(world->peer);
    world->peer = NULL;
}

void ddp_shm_pipe_push(struct ddp_shm_world *world, int target)
{
    struct ddp_shm_peer *p = &world->peer[target];
    struct ddp_segment_pipe *pipe = ddp_segment_pipe_of(world->segment, world->me, target);
    while (p->sends != NULL) {
        if (p->tail - p->head_seen >= DDP_PIPE_SLOTS) {
            p->head_seen = atomic_load_explicit(&pipe->head, memory_order_acquire);
            if (p->tail - p->head_seen >= DDP_PIPE_SLOTS)
                return;
        }
        struct ddp_request *req = p->sends;
        unsigned char *slot = ddp_pipe_slot_of(pipe, p->tail);
        uint64_t bytes = DDP_MIN(req->u[DDP_REQ_BYTES] - req->u[DDP_REQ_MOVED],
                                 (uint64_t)DDP_PIPE_PAYLOAD_BYTES);
        struct ddp_pipe_slot header = {
            .context = req->u[DDP_REQ_CONTEXT],
            .total = req->u[DDP_REQ_BYTES],
            .bytes = (uint32_t)bytes,
            .tag = (int32_t)req->u[DDP_REQ_TAG],
            .first = req->u[DDP_REQ_MOVED] == 0,
        };
        memcpy(slot, &header, sizeof header);
        if (bytes > 0)
            memcpy(slot + DDP_PIPE_HEADER_BYTES, (const char *)req->impl[0] + req->u[DDP_REQ_MOVED],
                   bytes);
        atomic_store_explicit(&pipe->tail, ++p->tail, memory_order_release);
        req->u[DDP_REQ_MOVED] += bytes;
        if (req->u[DDP_REQ_MOVED] == req->u[DDP_REQ_BYTES]) {
            p->sends = next_of(req);
            req->u[DDP_REQ_STATE] = DDP_REQ_DONE;
        }
    }
}

/* Removes the first matching posted receive from the list and returns it. */
static struct ddp_request *take_posted(struct ddp_shm_peer *p, uint64_t context, int32_t tag)
{
    struct ddp_request *before = NULL;
    for (struct ddp_request *req = p->posted; req != NULL; before = req, req = next_of(req)) {
        if (req->u[DDP_REQ_CONTEXT] != context || (int32_t)req->u[DDP_REQ_TAG] != tag)
            continue;
        if (before == NULL)
            p->posted = next_of(req);
        else
            before->impl[1] = next_of(req);
        if (p->posted_last == req)
            p->posted_last = before;
        return req;
    }
    return NULL;
}

/* Removes the first matching early message from the list and returns it. */
static struct ddp_shm_message *take_early(struct ddp_shm_peer *p, uint64_t context, int32_t tag)
{
    struct ddp_shm_message *before = NULL;
    for (struct ddp_shm_message *m = p->early; m != NULL; before = m, m = m->next) {
        if (m->context != context || m->tag != tag)
            continue;
        if (before == NULL)
            p->early = m->next;
        else
            before->next = m->next;
        if (p->early_last == m)
            p->early_last = before;
        return m;
    }
    return NULL;
}

static int keep_early(struct ddp_shm_peer *p, const struct ddp_pipe_slot *header,
                      struct ddp_err *err)
{
    struct ddp_shm_message *m = ddp_calloc(1, sizeof *m);
    unsigned char *data = malloc(header->total > 0 ? header->total : 1);
    if (m == NULL || data == NULL) {
        free(m);
        free(data);
        return ddp_fail(err, DDP_ENOMEM,
                        "no memory for a message of %llu bytes that has no receive yet",
                        (unsigned long long)header->total);
    }
    m->context = header->context;
    m->total = header->total;
    m->tag = header->tag;
    m->data = data;
    if (p->early == NULL)
        p->early = m;
    else
        p->early_last->next = m;
    p->early_last = m;
    p->into_message = m;
    return 0;
}

/* Starts a message. Finds the posted receive for its fragments, or makes an early message. */
static int begin_message(struct ddp_shm_peer *p, const struct ddp_pipe_slot *header,
                         struct ddp_err *err)
{
    p->arriving = true;
    p->got = 0;
    p->total = header->total;
    p->into_message = NULL;
    p->into_request = take_posted(p, header->context, header->tag);
    if (p->into_request == NULL)
        return keep_early(p, header, err);
    if (p->into_request->u[DDP_REQ_BYTES] != header->total) {
        p->into_request->u[DDP_REQ_LENGTH] = header->total;
        p->into_request->u[DDP_REQ_STATE] = DDP_REQ_WRONG_LENGTH;
        p->into_request = NULL;
    }
    return 0;
}

/* Copies one slot to the destination of its message. A fragment that comes without a first fragment
 * is discarded. It belongs to a message of an earlier world that ended before the whole message had
 * arrived. */
static int take_slot(struct ddp_shm_peer *p, const unsigned char *slot, struct ddp_err *err)
{
    struct ddp_pipe_slot header;
    memcpy(&header, slot, sizeof header);
    if (header.first)
        DDP_TRY(begin_message(p, &header, err));
    if (!p->arriving)
        return 0;
    unsigned char *into = NULL;
    if (p->into_request != NULL)
        into = p->into_request->impl[0];
    else if (p->into_message != NULL)
        into = p->into_message->data;
    if (into != NULL && header.bytes > 0)
        memcpy(into + p->got, slot + DDP_PIPE_HEADER_BYTES, header.bytes);
    p->got += header.bytes;
    if (p->into_message != NULL)
        p->into_message->got = p->got;
    if (p->got == p->total) {
        if (p->into_request != NULL)
            p->into_request->u[DDP_REQ_STATE] = DDP_REQ_DONE;
        p->arriving = false;
        p->into_request = NULL;
        p->into_message = NULL;
    }
    return 0;
}

static int drain(struct ddp_shm_world *world, int source, struct ddp_err *err)
{
    struct ddp_shm_peer *p = &world->peer[source];
    struct ddp_segment_pipe *pipe = ddp_segment_pipe_of(world->segment, source, world->me);
    uint64_t tail = atomic_load_explicit(&pipe->tail, memory_order_acquire);
    while (p->head != tail) {
        DDP_TRY(take_slot(p, ddp_pipe_slot_of(pipe, p->head), err));
        atomic_store_explicit(&pipe->head, ++p->head, memory_order_release);
    }
    return 0;
}

int ddp_shm_pipe_progress(struct ddp_shm_world *world, struct ddp_err *err)
{
    bool all = ++world->ticks % ALL_RINGS_EVERY == 0;
    for (int r = 0; r < world->ranks; r++) {
        struct ddp_shm_peer *p = &world->peer[r];
        bool sends = p->sends != NULL;
        if (sends)
            ddp_shm_pipe_push(world, r);
        if (sends || all || p->posted != NULL || p->arriving)
            DDP_TRY(drain(world, r, err));
    }
    return 0;
}

bool ddp_shm_pipe_take_early(struct ddp_shm_peer *p, struct ddp_request *req)
{
    struct ddp_shm_message *m =
        take_early(p, req->u[DDP_REQ_CONTEXT], (int32_t)req->u[DDP_REQ_TAG]);
    if (m == NULL)
        return false;
    bool fits = m->total == req->u[DDP_REQ_BYTES];
    if (fits && m->got > 0)
        memcpy(req->impl[0], m->data, m->got);
    if (p->into_message == m) {
        p->into_message = NULL;
        p->into_request = fits ? req : NULL;
    } else if (fits) {
        req->u[DDP_REQ_STATE] = DDP_REQ_DONE;
    }
    if (!fits) {
        req->u[DDP_REQ_LENGTH] = m->total;
        req->u[DDP_REQ_STATE] = DDP_REQ_WRONG_LENGTH;
    }
    free_message(m);
    return true;
}

void ddp_shm_pipe_drop(struct ddp_shm_world *world)
{
    for (int r = 0; r < world->ranks; r++) {
        struct ddp_shm_peer *p = &world->peer[r];
        p->sends = p->sends_last = p->posted = p->posted_last = p->into_request = NULL;
    }
}
