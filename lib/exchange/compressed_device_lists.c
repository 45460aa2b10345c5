/* Exchanges sparse lists whose lengths differ, in device memory: the lists of a threshold, and
 * oktopk on three or more ranks. compressed_device.c describes both. */
#include <string.h>

#include "base/mem.h"
#include "coll/pattern.h"
#include "exchange/compressed_device_impl.inc.h"

/* Number of calls of oktopk that use the same regions. */
#define REGION_STEPS 64
/* Number of bits of a magnitude that one round of the selection handles. */
#define DIGIT_BITS 4

/* Exchanges `words` words with every other rank. If `same` is set, all ranks get the first `words`
 * words of x->out. Otherwise rank r gets the words from x->out[r * words] on. The words of rank r
 * are stored in x->host->got, from index r * words on. Waits for the stream. Collective. */
static int exchange_words(struct ddp_device_exchange *x, size_t words, bool same,
                          struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_ops *streams = s->device->streams;
    const size_t me = (size_t)s->comm->rank, bytes = words * sizeof *x->out;
    int count = 0;
    streams->copy(s->stream, x->in + me * words, x->out + (same ? 0 : me * words), bytes);
    DDP_TRY(streams->wait(s->stream, err));
    for (int i = 1; i < s->comm->size; i++) {
        const int peer = ddp_rank_at(s->comm->rank, i, s->comm->size);
        x->message[count++] = (struct ddp_comm_message){
            .peer = peer,
            .send = x->out + (same ? 0 : (size_t)peer * words),
            .send_bytes = bytes,
            .recv = x->in + (size_t)peer * words,
            .recv_bytes = bytes,
        };
    }
    DDP_TRY(ddp_comm_exchange(s->comm, x->message, count, err));
    streams->copy(s->stream, x->host->got, x->in, (size_t)s->comm->size * bytes);
    return streams->wait(s->stream, err);
}

/* Copies x->host->given [P] to x->out. */
static void put_given(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    s->device->streams->copy(s->stream, x->out, x->host->given,
                             (size_t)s->comm->size * sizeof *x->out);
}

/* Returns `count` entries of this rank's list, from entry `begin` on. `length` points to `count`,
 * in memory that the device can read. */
static struct ddp_stream_list part_of_mine(const struct ddp_device_exchange *x, size_t begin,
                                           size_t count, uint32_t *length)
{
    struct ddp_stream_list list = ddp_device_list_at(x, x->wire);
    list.index += begin;
    list.value += begin;
    list.count = length;
    list.capacity = count;
    return list;
}

/* Sends x->round[q] of this rank's list to each rank q, and receives count[r] entries from each
 * rank r. The received lists begin at ddp_device_list_of(x, r, count[r]). Collective. */
static int exchange_entries(struct ddp_device_exchange *x, const uint32_t *count,
                            struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    for (int values = 0; values < 2; values++) {
        int n = 0;
        for (int i = 1; i < comm->size; i++) {
            const int peer = ddp_rank_at(comm->rank, i, comm->size);
            const struct ddp_stream_list mine = part_of_mine(x, x->round[peer].begin, 0, NULL),
                                         arriving = ddp_device_list_of(x, peer, count[peer]);
            x->message[n++] = (struct ddp_comm_message){
                .peer = peer,
                .send = values ? (const void *)mine.value : mine.index,
                .send_bytes = x->round[peer].count * sizeof(uint32_t),
                .recv = values ? (void *)arriving.value : arriving.index,
                .recv_bytes = count[peer] * sizeof(uint32_t),
            };
        }
        DDP_TRY(ddp_comm_exchange(comm, x->message, n, err));
    }
    return 0;
}

/* Plans the round of a threshold that begins with x->first_block. The round has as many blocks as
 * fit into the memory for received lists. Returns the number of the block after these blocks. Sets
 * host->current to the number of entries of each rank, and x->round to this rank's entries. */
static int plan_round(struct ddp_device_exchange *x)
{
    const struct ddp_comm *comm = x->base.setup.comm;
    const uint32_t *counts = x->host->got; /* [P][DDP_LIST_BLOCKS] */
    uint32_t *current = x->host->current;
    size_t begin = 0;
    bool fits = true;
    int end = x->first_block;
    memset(current, 0, (size_t)comm->size * sizeof *current);
    for (; end < DDP_LIST_BLOCKS; end++) {
        for (int r = 0; r < comm->size; r++)
            fits = fits && current[r] + counts[r * DDP_LIST_BLOCKS + end] <= x->room;
        if (!fits)
            break;
        for (int r = 0; r < comm->size; r++)
            current[r] += counts[r * DDP_LIST_BLOCKS + end];
    }
    for (int b = 0; b < x->first_block; b++)
        begin += counts[comm->rank * DDP_LIST_BLOCKS + b];
    for (int r = 0; r < comm->size; r++)
        x->round[r] = (struct ddp_list_part){begin, current[comm->rank]};
    return end;
}

void ddp_device_lists_sum(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int me = s->comm->rank;
    if (x->first_block == 0)
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    for (int r = 0; r < s->comm->size; r++) {
        const size_t count = x->host->current[r];
        const struct ddp_stream_list list =
            r == me && !x->gathers
                ? part_of_mine(x, x->round[me].begin, count, &x->host->current[me])
                : ddp_device_list_of(x, r, count);
        s->device->stream_kernels->scatter_add(s->stream, s->data, &list);
    }
}

/* Exchanges the numbers of entries that each list has in each block, and checks them. Collective.
 */
static int exchange_lengths(struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_list mine = ddp_device_list_at(x, x->wire);
    const struct ddp_device_words *host = x->host;
    for (size_t b = 0; b < DDP_LIST_BLOCKS; b++)
        host->bound[b] = (uint32_t)DDP_MIN((b + 1) * x->room, s->n);
    s->device->stream_kernels->split(s->stream, &mine, host->bound, DDP_LIST_BLOCKS, host->before);
    DDP_TRY(s->device->streams->wait(s->stream, err));
    for (int b = DDP_LIST_BLOCKS - 1; b > 0; b--)
        host->before[b] -= host->before[b - 1];
    s->device->streams->copy(s->stream, x->out, host->before, DDP_LIST_BLOCKS * sizeof *x->out);
    DDP_TRY(exchange_words(x, DDP_LIST_BLOCKS, true, err));
    for (size_t i = 0; i < (size_t)s->comm->size * DDP_LIST_BLOCKS; i++)
        if (host->got[i] > x->room)
            return ddp_fail(err, DDP_EDATA,
                            "rank %d reported %u entries, but at most %zu are allowed",
                            s->comm->world_rank[i / DDP_LIST_BLOCKS], host->got[i], x->room);
    return 0;
}

int ddp_device_rounds_exchange(struct ddp_device_exchange *x, struct ddp_err *err)
{
    x->first_block = 0;
    DDP_TRY(exchange_lengths(x, err));
    for (;;) {
        const int end = plan_round(x);
        DDP_TRY(exchange_entries(x, x->host->current, err));
        if (end == DDP_LIST_BLOCKS)
            return 0;
        ddp_device_lists_sum(x);
        DDP_TRY(x->base.setup.device->streams->wait(x->base.setup.stream, err));
        x->first_block = end;
    }
}

/* The functions from here on implement oktopk on three or more ranks. */

/* Estimates the regions. For each rank there is an index below which the rank has r/P of its
 * entries. Region r begins at the average of these indices. Collective. */
static int estimate_regions(struct ddp_device_exchange *x, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size;
    const struct ddp_stream_list mine = ddp_device_list_at(x, x->wire);
    uint64_t sum = 0;
    for (size_t r = 0; r < ranks; r++)
        s->device->streams->copy(s->stream, x->out + r, mine.index + r * x->capacity / ranks,
                                 sizeof *x->out);
    DDP_TRY(exchange_words(x, 1, false, err));
    for (size_t r = 0; r < ranks; r++)
        sum += x->host->got[r];
    x->host->given[0] = (uint32_t)(sum / ranks);
    put_given(x);
    DDP_TRY(exchange_words(x, 1, true, err));
    x->region[0] = 0;
    x->region[ranks] = s->n;
    for (size_t r = 1; r < ranks; r++)
        x->region[r] = x->host->got[r];
    for (size_t r = 0; r < ranks; r++)
        if (x->region[r] > x->region[r + 1])
            return ddp_fail(err, DDP_EDATA, "rank %d reported an invalid region that begins at %zu",
                            s->comm->world_rank[r], x->region[r]);
    return 0;
}

/* Sends this rank's entries of each region to the region's owner. Sets data to the sums of the
 * entries of this rank's region, and to 0 elsewhere. Sets *sent_words to the number of words of the
 * entries that this rank sends. Collective. */
static int reduce_region(struct ddp_device_exchange *x, uint32_t *sent_words, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const int ranks = s->comm->size, me = s->comm->rank;
    const size_t length = x->region[me + 1] - x->region[me];
    const struct ddp_stream_list mine = ddp_device_list_at(x, x->wire);
    const struct ddp_device_words *host = x->host;
    for (int r = 0; r < ranks; r++)
        host->bound[r] = (uint32_t)x->region[r + 1];
    s->device->stream_kernels->split(s->stream, &mine, host->bound, (size_t)ranks, host->before);
    DDP_TRY(s->device->streams->wait(s->stream, err));
    *sent_words = 0;
    for (int r = 0; r < ranks; r++) {
        x->round[r].begin = r > 0 ? host->before[r - 1] : 0;
        x->round[r].count = host->before[r] - x->round[r].begin;
        host->given[r] = (uint32_t)x->round[r].count;
        *sent_words += r != me ? 2 * host->given[r] : 0;
    }
    put_given(x);
    DDP_TRY(exchange_words(x, 1, false, err));
    for (int r = 0; r < ranks; r++) {
        host->current[r] = host->got[r];
        if (host->got[r] > DDP_MIN(length, x->room))
            return ddp_fail(err, DDP_EDATA, "rank %d reported %u entries for %zu indices",
                            s->comm->world_rank[r], host->got[r], length);
    }
    DDP_TRY(exchange_entries(x, host->current, err));
    x->first_block = 0;
    ddp_device_lists_sum(x);
    return 0;
}

/* Numbers of sums in the region of each rank. On return from select_sums, `above` is the number of
 * selected sums. */
struct selection {
    uint32_t *above; /* [P]: number of sums above the k-th largest sum */
    uint32_t *ties;  /* [P]: number of sums whose digits equal those of the k-th largest sum */
    uint32_t *sent;  /* [P]: number of words that the rank has sent */
};

/* Returns how many sums of all ranks have this digit. `words` is the number of words per rank in
 * host->got. */
static uint64_t sums_with(const struct ddp_device_exchange *x, size_t words, int digit)
{
    uint64_t sums = 0;
    for (int r = 0; r < x->base.setup.comm->size; r++)
        sums += x->host->got[(size_t)r * words + (size_t)digit];
    return sums;
}

/* Returns the digit of the k-th largest sum, or -1 if there are fewer than k sums. Adds the numbers
 * of sums with larger digits to *above and select->above. Sets select->ties. */
static int find_digit(const struct ddp_device_exchange *x, size_t words,
                      const struct selection *select, uint64_t *above)
{
    const int ranks = x->base.setup.comm->size;
    memset(select->ties, 0, (size_t)ranks * sizeof *select->ties);
    for (int digit = DDP_DIGITS - 1; digit >= 0; digit--) {
        const uint64_t sums = sums_with(x, words, digit);
        const bool found = *above + sums >= x->capacity;
        for (int r = 0; r < ranks; r++) {
            const uint32_t count = x->host->got[(size_t)r * words + (size_t)digit];
            if (found)
                select->ties[r] = count;
            else
                select->above[r] += count;
        }
        if (found)
            return digit;
        *above += sums;
    }
    return -1;
}

/* Finds how many sums of each region are selected, by a radix selection over all ranks as in
 * sparse_oktopk.c. Among equal sums, those of lower ranks are selected first. All ranks compute the
 * same numbers. Collective. */
static int select_sums(struct ddp_device_exchange *x, uint32_t sent_words,
                       const struct selection *select, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_ops *streams = s->device->streams;
    const int ranks = s->comm->size;
    const size_t begin = x->region[s->comm->rank], end = x->region[s->comm->rank + 1];
    uint64_t above = 0;
    uint32_t prefix = 0;
    int shift = 32;
    memset(select->above, 0, (size_t)ranks * sizeof *select->above);
    x->host->given[0] = sent_words;
    streams->copy(s->stream, x->out + DDP_DIGITS, x->host->given, sizeof *x->out);
    for (size_t words = DDP_LIST_WORDS; shift > 0; words = DDP_DIGITS) {
        shift -= DIGIT_BITS;
        streams->fill(s->stream, x->out, 0, DDP_DIGITS * sizeof *x->out);
        s->device->stream_kernels->count_digits(s->stream, s->data + begin, end - begin, prefix,
                                                shift, x->out);
        DDP_TRY(exchange_words(x, words, true, err));
        for (int r = 0; r < ranks && words == DDP_LIST_WORDS; r++)
            select->sent[r] = x->host->got[(size_t)r * words + DDP_DIGITS];
        const int digit = find_digit(x, words, select, &above);
        if (digit < 0 || above + sums_with(x, words, digit) == x->capacity)
            break;
        prefix = prefix << DIGIT_BITS | (uint32_t)digit;
    }
    for (int r = 0; r < ranks; r++) {
        const uint32_t taken = (uint32_t)DDP_MIN(select->ties[r], x->capacity - above);
        select->above[r] += taken;
        above += taken;
    }
    return 0;
}

/* Returns whether each rank may send its selected sums to all other ranks directly. A rank may send
 * 6k(P - 1)/P words in total. */
static bool may_send_to_all(const struct ddp_device_exchange *x, const struct selection *select)
{
    const uint64_t ranks = (uint64_t)x->base.setup.comm->size, k = x->capacity;
    for (uint64_t r = 0; r < ranks; r++)
        if (ranks * (select->sent[r] + 2 * (ranks - 1) * select->above[r]) > 6 * k * (ranks - 1))
            return false;
    return true;
}

/* Returns the bytes of the selected sums of a rank. One message carries them. */
static size_t sums_bytes(const struct ddp_device_exchange *x, int rank)
{
    return x->host->current[rank] * (sizeof(uint32_t) + sizeof(float));
}

/* Sends the selected sums of all ranks to all ranks. If `at_once` is set, each rank sends its list
 * to all other ranks at once. Otherwise the lists go around a ring, in which a rank with many sums
 * sends them only once. */
static int gather_sums(struct ddp_device_exchange *x, bool at_once, struct ddp_err *err)
{
    struct ddp_comm *comm = x->base.setup.comm;
    const int ranks = comm->size, me = comm->rank;
    int n = 0;
    for (int step = 1; step < ranks; step++) {
        /* In a ring, this rank sends what arrived in the previous step. */
        const int from = at_once ? ddp_rank_at(me, -step, ranks) : ddp_rank_at(me, -1, ranks),
                  to = at_once ? ddp_rank_at(me, step, ranks) : ddp_rank_at(me, 1, ranks),
                  sent = at_once ? me : ddp_rank_at(me, 1 - step, ranks),
                  arrives = ddp_rank_at(me, -step, ranks);
        x->message[n++] = (struct ddp_comm_message){.peer = to,
                                                    .send = ddp_device_list_of(x, sent, 0).index,
                                                    .send_bytes = sums_bytes(x, sent)};
        x->message[n++] = (struct ddp_comm_message){.peer = from,
                                                    .recv = ddp_device_list_of(x, arrives, 0).index,
                                                    .recv_bytes = sums_bytes(x, arrives)};
        if (at_once && step < ranks - 1)
            continue;
        DDP_TRY(ddp_comm_exchange(comm, x->message, n, err));
        n = 0;
    }
    return 0;
}

/* Selects the sums of this rank's region, scales them, and exchanges the selected sums of all
 * ranks. Collective. */
static int exchange_sums(struct ddp_device_exchange *x, uint32_t sent_words, struct ddp_err *err)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const size_t ranks = (size_t)s->comm->size, me = (size_t)s->comm->rank;
    const struct selection select = {x->selection, x->selection + ranks, x->selection + 2 * ranks};
    DDP_TRY(select_sums(x, sent_words, &select, err));
    memcpy(x->host->current, select.above, ranks * sizeof *select.above);
    const size_t count = select.above[me];
    struct ddp_stream_select own = {.in = s->data + x->region[me],
                                    .n = x->region[me + 1] - x->region[me],
                                    .out = ddp_device_list_of(x, (int)me, count),
                                    .scratch = x->scratch,
                                    .scratch_bytes = x->scratch_bytes};
    own.out.count = x->in; /* not read, because the host knows the length */
    if (count > 0) {
        s->device->stream_kernels->select_topk(s->stream, &own, count);
        ddp_device_divide(x, own.out.value, count);
    }
    DDP_TRY(s->device->streams->wait(s->stream, err));
    return gather_sums(x, may_send_to_all(x, &select), err);
}

int ddp_device_regions_exchange(struct ddp_device_exchange *x, struct ddp_err *err)
{
    uint32_t sent_words;
    if (x->step++ % REGION_STEPS == 0)
        DDP_TRY(estimate_regions(x, err));
    DDP_TRY(reduce_region(x, &sent_words, err));
    return exchange_sums(x, sent_words, err);
}

void ddp_device_regions_store(struct ddp_device_exchange *x)
{
    const struct ddp_compressed_setup *s = &x->base.setup;
    const struct ddp_stream_kernels *k = s->device->stream_kernels;
    const struct ddp_stream_list mine = ddp_device_list_at(x, x->wire);
    s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    if (x->residual != NULL) {
        k->scatter(s->stream, s->data, &mine);
        for (int r = 0; r < s->comm->size; r++) {
            const struct ddp_stream_list list = ddp_device_list_of(x, r, x->host->current[r]);
            k->scatter_zero(s->stream, s->data + x->region[r], &list);
        }
        ddp_device_add(x, x->residual, s->data);
        s->device->streams->fill(s->stream, s->data, 0, s->n * sizeof(float));
    }
    for (int r = 0; r < s->comm->size; r++) {
        const struct ddp_stream_list list = ddp_device_list_of(x, r, x->host->current[r]);
        k->scatter(s->stream, s->data + x->region[r], &list);
    }
}
