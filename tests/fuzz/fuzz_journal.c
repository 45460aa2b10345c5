/* Fuzzes journals: every accepted entry can be put into a record and shown by every reporter. A
 * mutation rarely keeps the checksum of a line right, so the target repairs all checksums and
 * reads the journal a second time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "journal_text.h"
#include "record/journal.h"
#include "record/noise.h"
#include "report/report.h"

#define POINTS_MAX 20

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
    case DDP_JOURNAL_LEFT_OUT:
        return w->record.left_out_count < POINTS_MAX
                   ? ddp_record_add_left_out(&w->record, entry->payload, err)
                   : 0;
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
    for (const struct ddp_reporter *const *p = ddp_reporter_all(); *p; p++) {
        struct ddp_strbuf out = DDP_STRBUF_INIT;
        struct ddp_err err = DDP_ERR_INIT;
        if ((*p)->document)
            require((*p)->render(r, &out, &err) == 0);
        if ((*p)->begin)
            (*p)->begin(r, &out);
        for (int i = 0; (*p)->point && i < r->point_count; i++)
            (*p)->point(r, i, &out);
        for (int i = 0; (*p)->epoch && i < r->train_count; i++)
            for (int e = 0; e < r->train[i].epoch_count; e++)
                (*p)->epoch(r, i, e, &out);
        if ((*p)->end)
            (*p)->end(r, &out);
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

/* Writes a journal with an entry of every kind that has a payload, and returns its text. The
 * journal lies in memory. */
static char *make_good(size_t *bytes)
{
    struct {
        struct ddp_point point;
        double samples[4];
    } sampled = {.samples = {1, 2, 3, 4}};
    struct {
        struct ddp_noise_gate gate;
        double values[6];
        char id[DDP_NOISE_ID_BYTES];
    } gate = {.gate = {.injected = -1, .pairs = 1, .cells = 1}, .id = "cell"};
    struct ddp_train_run run;
    struct ddp_epoch epoch;
    struct ddp_control control = {.ranks = 2};
    ddp_point_init(&sampled.point);
    sampled.point.spec.ranks = 2;
    sampled.point.spec.size_bytes = 64;
    sampled.point.time_ns.median = 1000;
    sampled.point.sample_count = 4;
    ddp_train_run_init(&run);
    run.ranks = 2;
    ddp_epoch_init(&epoch);
    epoch.epoch = 1;
    const struct ddp_journal_entry entries[] = {
        {DDP_JOURNAL_TRAIN, 1, 0, "x", &run, sizeof run},
        {DDP_JOURNAL_EPOCH, 1, 0, "x", &epoch, sizeof epoch},
        {DDP_JOURNAL_POINT, 1, 0, "x", &sampled, sizeof sampled},
        {DDP_JOURNAL_CONTROL, 1, 0, "x", &control, sizeof control},
        {DDP_JOURNAL_TRAIN_END, 1, 0, "x", &run, sizeof run},
        {DDP_JOURNAL_GATE, 1, 0, "x", &gate, ddp_noise_gate_bytes(&gate.gate)},
    };
    struct ddp_journal_facts facts = {.count = 0};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_journal *journal;
    bool continued;
    char path[64];
    struct stat st;
    const int fd = memfd_create("journal", MFD_CLOEXEC);
    require(fd >= 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    require(ddp_journal_open(path, &facts, false, NULL, NULL, &journal, &continued, &err) == 0);
    for (size_t i = 0; i < DDP_COUNT_OF(entries); i++)
        require(ddp_journal_append(journal, &entries[i], &err) == 0);
    ddp_journal_close(journal);
    require(fstat(fd, &st) == 0);
    *bytes = (size_t)st.st_size;
    char *text = malloc(*bytes);
    require(text != NULL && pread(fd, text, *bytes, 0) == st.st_size);
    close(fd);
    return text;
}

/* Overwrites a valid journal with the input, from an offset that the input names. Mutations of a
 * short corpus rarely make a whole entry. */
static void read_overwritten(const uint8_t *data, size_t size)
{
    static char *good, *text;
    static size_t bytes;
    uint16_t at = 0;
    if (!good) {
        good = make_good(&bytes);
        text = malloc(bytes);
        require(text != NULL);
    }
    memcpy(text, good, bytes);
    if (size > sizeof at) {
        memcpy(&at, data, sizeof at);
        const size_t from = at % bytes;
        memcpy(text + from, data + sizeof at, DDP_MIN(size - sizeof at, bytes - from));
    }
    repair_journal(text, bytes);
    read_journal(text, bytes);
}

/* The first byte chooses between a text and changes of a valid journal. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0 && data[0] % 2 == 1) {
        read_overwritten(data + 1, size - 1);
        return 0;
    }
    const size_t n = size > 0 ? size - 1 : 0;
    char *text = malloc(n ? n : 1);
    require(text != NULL);
    memcpy(text, data + (size > 0), n);
    read_journal(text, n);
    repair_journal(text, n);
    read_journal(text, n);
    free(text);
    return 0;
}
