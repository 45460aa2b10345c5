/* Fuzzes journals: every accepted entry can be put into a record and shown by every reporter. A
 * mutation rarely keeps the checksum of a line right, so the target repairs all checksums and
 * reads the journal a second time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "record/journal_line.h"
#include "record/noise.h"
#include "report/report.h"

#define CHECK_BYTES (sizeof ", \"check\": \"fnv1a64:0123456789abcdef\"}" - 1)
#define POINTS_MAX  20

struct world {
    struct ddp_record record;
    int points;
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static int take(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    struct world *w = arg;
    struct ddp_point p;
    require(entry->launch >= 1 && entry->cell >= 0);
    require(((uintptr_t)entry->payload & 7) == 0);
    switch (entry->kind) {
    case DDP_JOURNAL_POINT:
        memcpy(&p, entry->payload, sizeof p);
        require(entry->payload_bytes == sizeof p + (size_t)p.sample_count * sizeof(double));
        if (w->points++ < POINTS_MAX)
            return ddp_record_add_point(
                &w->record, &p,
                (const double *)(const void *)((const char *)entry->payload + sizeof p), err);
        return 0;
    case DDP_JOURNAL_TRAIN:
        return w->record.train_count < POINTS_MAX
                   ? ddp_record_add_train(&w->record, entry->payload, err)
                   : 0;
    case DDP_JOURNAL_EPOCH:
        if (w->record.train_count == 0 ||
            w->record.train[w->record.train_count - 1].epoch_count > POINTS_MAX)
            return 0;
        return ddp_record_add_epoch(&w->record, entry->payload, err);
    case DDP_JOURNAL_TRAIN_END:
        if (w->record.train_count > 0)
            ddp_record_end_train(&w->record, entry->payload);
        return 0;
    case DDP_JOURNAL_CONTROL:
        return ddp_record_add_control(&w->record, entry->payload, err);
    case DDP_JOURNAL_GATE:
        require(entry->payload_bytes == ddp_noise_gate_bytes(entry->payload));
        return 0;
    default:
        require(entry->payload_bytes == 0);
        return 0;
    }
}

static void show(const struct ddp_record *r)
{
    const struct ddp_report_style style = {true, 80};
    for (const struct ddp_reporter *const *p = ddp_reporter_all(); *p; p++) {
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        struct ddp_err err = DDP_ERR_INIT;
        if ((*p)->document) {
            require((*p)->render(r, &out, &err) == 0);
        } else {
            (*p)->begin(r, &style, &out);
            for (int i = 0; i < r->point_count; i++)
                (*p)->point(r, i, &style, &out);
            for (int i = 0; i < r->train_count; i++)
                for (int e = 0; e < r->train[i].epoch_count; e++)
                    (*p)->epoch(r, i, e, &style, &out);
            (*p)->end(r, &style, &out);
        }
        require(!out.failed);
        ddp_strbuf_release(&out);
    }
}

static void read_journal(const char *text, size_t size)
{
    struct ddp_journal_facts *facts = malloc(sizeof *facts);
    struct world w = {.points = 0};
    struct ddp_err err = DDP_ERR_INIT;
    size_t whole = 0;
    require(facts != NULL);
    ddp_record_init(&w.record);
    int rc = ddp_journal_parse(text, size, "input", facts, take, &w, &whole, &err);
    require(rc == 0 || (rc == DDP_EINPUT && err.code == rc && err.text[0]));
    require(whole <= size && (whole == 0 || text[whole - 1] == '\n'));
    if (rc == 0 && (w.record.point_count > 0 || w.record.train_count > 0))
        show(&w.record);
    ddp_record_release(&w.record);
    free(facts);
}

/* Writes the right checksum into every line. */
static void repair(char *text, size_t size)
{
    uint64_t chain = DDP_FNV_INIT;
    char *end;
    for (size_t at = 0; (end = memchr(text + at, '\n', size - at)); at = (size_t)(end - text) + 1) {
        const size_t n = (size_t)(end - text) - at;
        char right[CHECK_BYTES + 1];
        if (n < CHECK_BYTES)
            continue;
        chain = ddp_fnv1a(chain, text + at, n - CHECK_BYTES);
        snprintf(right, sizeof right, ", \"check\": \"fnv1a64:%016llx\"}",
                 (unsigned long long)chain);
        memcpy(end - CHECK_BYTES, right, CHECK_BYTES);
    }
}

/* The structs of a journal. Their layout depends on the build, so no corpus has them: the target
 * makes a valid struct and overwrites it with the input, from an offset that the input names.
 * The samples follow the point. */
union payload {
    struct ddp_point point;
    struct ddp_train_run run;
    struct ddp_epoch epoch;
    struct ddp_control control;
    struct ddp_noise_gate gate;
    unsigned char bytes[sizeof(struct ddp_point) + 4 * sizeof(double)];
};

static size_t make_good(enum ddp_journal_kind kind, union payload *p)
{
    memset(p, 0, sizeof *p);
    switch (kind) {
    case DDP_JOURNAL_POINT:
        ddp_point_init(&p->point);
        p->point.spec.ranks = 2;
        p->point.spec.size_bytes = 64;
        p->point.time_ns.median = 1000;
        p->point.sample_count = 4;
        return sizeof p->bytes;
    case DDP_JOURNAL_EPOCH:
        ddp_epoch_init(&p->epoch);
        p->epoch.epoch = 1;
        return sizeof p->epoch;
    case DDP_JOURNAL_CONTROL:
        p->control.ranks = 2;
        return sizeof p->control;
    case DDP_JOURNAL_GATE: /* one pair, one cell */
        p->gate = (struct ddp_noise_gate){.injected = -1, .pairs = 1, .cells = 1};
        return ddp_noise_gate_bytes(&p->gate);
    default:
        ddp_train_run_init(&p->run);
        p->run.ranks = 2;
        return sizeof p->run;
    }
}

static void add_struct(enum ddp_journal_kind kind, const uint8_t *data, size_t size,
                       uint64_t *chain, struct ddp_strbuf *text)
{
    union payload p;
    uint16_t at = 0;
    struct ddp_err err = DDP_ERR_INIT;
    const size_t bytes = make_good(kind, &p);
    if (size >= sizeof at) {
        memcpy(&at, data, sizeof at);
        at %= (uint16_t)bytes;
        memcpy(p.bytes + at, data + sizeof at, DDP_MIN(size - sizeof at, bytes - at));
    }
    struct ddp_journal_entry entry = {
        .kind = kind, .launch = 1, .cell = 0, .id = "x", .payload = &p, .payload_bytes = bytes};
    require(ddp_journal_print(&entry, chain, text, &err) == 0);
}

/* Makes entries for a run, one epoch, one point, one memcpy baseline and the end of the run. The
 * input overwrites one of them. */
static void read_structs(const uint8_t *data, size_t size)
{
    static const enum ddp_journal_kind kinds[] = {DDP_JOURNAL_TRAIN,     DDP_JOURNAL_EPOCH,
                                                  DDP_JOURNAL_POINT,     DDP_JOURNAL_CONTROL,
                                                  DDP_JOURNAL_TRAIN_END, DDP_JOURNAL_GATE};
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_journal_facts facts = {.count = 0};
    struct ddp_err err = DDP_ERR_INIT;
    uint64_t chain = DDP_FNV_INIT;
    require(ddp_journal_print_head(&facts, &chain, &text, &err) == 0);
    for (size_t i = 0; i < DDP_COUNT_OF(kinds); i++) {
        const bool ours = size > 0 && data[0] % DDP_COUNT_OF(kinds) == i;
        add_struct(kinds[i], data + ours, ours ? size - 1 : 0, &chain, &text);
    }
    read_journal(text.text, text.length);
    ddp_strbuf_release(&text);
}

/* The first byte chooses between text and structs. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 1) {
        read_structs(data + 1, size - 1);
        return 0;
    }
    const size_t n = size > 0 ? size - 1 : 0;
    char *text = malloc(n ? n : 1);
    require(text != NULL);
    memcpy(text, data + (size > 0), n);
    read_journal(text, n);
    repair(text, n);
    read_journal(text, n);
    free(text);
    return 0;
}
