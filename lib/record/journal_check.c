/* Checks structs that were read from a journal. The checksum of a line does not protect against
 * forgery, because anybody can compute it. Enums, flags, texts and the counts in the tables below
 * are therefore validated before use. check_point() also validates the number of samples, and
 * check_gate() all counts of a gate. Doubles and other counts may have any value. */
#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "record/journal_line.h"
#include "record/noise.h"
#include "stats/signflip.h"

/* FIELD_ENUM: an enum with values up to `most`. FIELD_COUNT: an int, or an int64_t if it has 8
 * bytes, from `least` to `most`. FIELD_SIZE: a uint64_t that fits into an int64_t. */
enum field_kind { FIELD_TEXT, FIELD_FLAG, FIELD_ENUM, FIELD_COUNT, FIELD_SIZE };

struct field {
    enum field_kind kind;
    size_t offset, bytes;
    long long least, most;
    const char *name;
};

#define FIELD(kind, type, member, least, most)                                                     \
    {                                                                                              \
        kind, offsetof(struct type, member), sizeof(((struct type *)0)->member), least, most,      \
            #member                                                                                \
    }
#define TEXT(type, member)               FIELD(FIELD_TEXT, type, member, 0, 0)
#define FLAG(type, member)               FIELD(FIELD_FLAG, type, member, 0, 1)
#define ENUM(type, member, count)        FIELD(FIELD_ENUM, type, member, 0, (count)-1)
#define COUNT(type, member, least, most) FIELD(FIELD_COUNT, type, member, least, most)
#define SIZE(type, member)               FIELD(FIELD_SIZE, type, member, 0, INT64_MAX)
#define MANY                             1000000

static const struct field point_fields[] = {
    ENUM(ddp_point, spec.coll, DDP_COLL_COUNT),
    ENUM(ddp_point, spec.dtype, DDP_DTYPE_COUNT),
    ENUM(ddp_point, spec.op, DDP_OP_COUNT),
    ENUM(ddp_point, spec.placement, DDP_PLACEMENT_COUNT),
    ENUM(ddp_point, spec.memory, DDP_MEMORY_COUNT),
    ENUM(ddp_point, check, DDP_CHECK_ALL + 1),
    ENUM(ddp_point, start, DDP_START_COUNT),
    ENUM(ddp_point, stop, DDP_STOP_ITERS + 1),
    TEXT(ddp_point, spec.backend),
    TEXT(ddp_point, spec.algorithm),
    TEXT(ddp_point, spec.compress),
    TEXT(ddp_point, algorithm_used),
    TEXT(ddp_point, feedback),
    TEXT(ddp_point, bound_kind),
    TEXT(ddp_point, dense_algorithm[DDP_BASELINE_F32]),
    TEXT(ddp_point, dense_algorithm[DDP_BASELINE_F16]),
    FLAG(ddp_point, spec.overlap),
    FLAG(ddp_point, spec.graph),
    FLAG(ddp_point, correctness_only),
    FLAG(ddp_point, wire_counted),
    FLAG(ddp_point, series.drifting),
    FLAG(ddp_point, series.autocorrelated),
    COUNT(ddp_point, spec.root, 0, MANY),
    COUNT(ddp_point, spec.ranks, 1, MANY),
    COUNT(ddp_point, spec.groups, 0, MANY),
    COUNT(ddp_point, spec.partial, 0, MANY),
    COUNT(ddp_point, place, 0, INT_MAX),
    COUNT(ddp_point, order, 0, INT_MAX),
    COUNT(ddp_point, of, 0, INT_MAX),
    COUNT(ddp_point, launch, 0, DDP_JOURNAL_LAUNCH_MAX),
    SIZE(ddp_point, spec.requested_bytes),
    SIZE(ddp_point, spec.size_bytes),
    SIZE(ddp_point, spec.count),
};
static const struct field epoch_fields[] = {
    COUNT(ddp_epoch, epoch, 1, INT_MAX),
    FLAG(ddp_epoch, wire_counted),
};
static const struct field train_fields[] = {
    TEXT(ddp_train_run, model),
    TEXT(ddp_train_run, dataset),
    TEXT(ddp_train_run, data_path),
    TEXT(ddp_train_run, optimizer),
    TEXT(ddp_train_run, sync),
    TEXT(ddp_train_run, init),
    TEXT(ddp_train_run, init_sync),
    TEXT(ddp_train_run, partition),
    TEXT(ddp_train_run, blas),
    TEXT(ddp_train_run, device),
    TEXT(ddp_train_run, feedback),
    TEXT(ddp_train_run, aggregate),
    TEXT(ddp_train_run, algorithm),
    FLAG(ddp_train_run, overlap),
    FLAG(ddp_train_run, graph),
    FLAG(ddp_train_run, tf32),
    FLAG(ddp_train_run, synthetic),
    FLAG(ddp_train_run, baseline),
    COUNT(ddp_train_run, ranks, 1, MANY),
    COUNT(ddp_train_run, launch, 0, DDP_JOURNAL_LAUNCH_MAX),
    COUNT(ddp_train_run, target_epoch, -1, INT_MAX),
    COUNT(ddp_train_run, epoch_count, 0, 0),
    SIZE(ddp_train_run, seed),
};
static const struct field control_fields[] = {
    COUNT(ddp_control, ranks, 1, MANY),
};

static bool text_is_good(char *text, size_t bytes)
{
    char clean[256];
    if (bytes > sizeof clean || !memchr(text, '\0', bytes))
        return false;
    ddp_printable(text, clean, sizeof clean);
    snprintf(text, bytes, "%s", clean);
    return !strpbrk(text, "<>&|`\"'"); /* Special in Markdown, HTML or a shell. */
}

static bool is_good(const struct field *f, unsigned char *struct_bytes)
{
    unsigned char *at = struct_bytes + f->offset;
    uint64_t size = 0;
    int64_t wide = 0;
    int32_t narrow = 0;
    switch (f->kind) {
    case FIELD_TEXT:
        return text_is_good((char *)at, f->bytes);
    case FIELD_FLAG:
        return *at <= 1;
    case FIELD_SIZE:
        memcpy(&size, at, sizeof size);
        return size <= INT64_MAX;
    default:
        if (f->bytes == sizeof wide)
            memcpy(&wide, at, sizeof wide);
        else
            memcpy(&narrow, at, sizeof narrow);
        wide = f->bytes == sizeof wide ? wide : narrow;
        return wide >= f->least && wide <= f->most;
    }
}

static const char *check_fields(const struct field *fields, size_t n, unsigned char *bytes)
{
    for (size_t i = 0; i < n; i++)
        if (!is_good(&fields[i], bytes))
            return "a value is out of range";
    return NULL;
}

static const char *check_point(unsigned char *payload, size_t bytes)
{
    int64_t samples;
    if (bytes < sizeof(struct ddp_point))
        return "a point has the wrong size";
    memcpy(&samples, payload + offsetof(struct ddp_point, sample_count), sizeof samples);
    if (samples < 0 || (bytes - sizeof(struct ddp_point)) / sizeof(double) != (uint64_t)samples ||
        (bytes - sizeof(struct ddp_point)) % sizeof(double) != 0)
        return "a point has the wrong size";
    return check_fields(point_fields, DDP_COUNT_OF(point_fields), payload);
}

static const char *check_train(unsigned char *payload, size_t bytes)
{
    struct ddp_epoch *none = NULL;
    if (bytes != sizeof(struct ddp_train_run))
        return "a training run has the wrong size";
    memcpy(payload + offsetof(struct ddp_train_run, epochs), &none, sizeof none);
    return check_fields(train_fields, DDP_COUNT_OF(train_fields), payload);
}

/* Checks the counts first, because they determine the offset of the ids. Then checks that the ids
 * are NUL-terminated, and makes them printable. */
static const char *check_gate(unsigned char *payload, size_t bytes)
{
    struct ddp_noise_gate gate;
    if (bytes < sizeof gate)
        return "a gate has the wrong size";
    memcpy(&gate, payload, sizeof gate);
    if (gate.pairs < 1 || gate.pairs > DDP_SIGNFLIP_MAX || gate.cells < 1 ||
        gate.cells > DDP_NOISE_CELLS_MAX || gate.index < 0 || gate.rerun < 0 || gate.mixed < 0 ||
        gate.injected < -1 || gate.injected >= gate.cells)
        return "a value is out of range";
    if (bytes != ddp_noise_gate_bytes(&gate))
        return "a gate has the wrong size";
    char *id = (char *)payload + sizeof gate + ddp_noise_gate_doubles(&gate) * sizeof(double);
    for (int c = 0; c < gate.cells; c++, id += DDP_NOISE_ID_BYTES) {
        char clean[DDP_NOISE_ID_BYTES];
        if (!memchr(id, '\0', DDP_NOISE_ID_BYTES))
            return "a value is out of range";
        ddp_printable(id, clean, sizeof clean);
        snprintf(id, DDP_NOISE_ID_BYTES, "%s", clean);
    }
    return NULL;
}

const char *ddp_journal_check_payload(enum ddp_journal_kind kind, void *payload, size_t bytes)
{
    switch (kind) {
    case DDP_JOURNAL_POINT:
        return check_point(payload, bytes);
    case DDP_JOURNAL_TRAIN:
    case DDP_JOURNAL_TRAIN_END:
        return check_train(payload, bytes);
    case DDP_JOURNAL_EPOCH:
        if (bytes != sizeof(struct ddp_epoch))
            return "an epoch has the wrong size";
        return check_fields(epoch_fields, DDP_COUNT_OF(epoch_fields), payload);
    case DDP_JOURNAL_CONTROL:
        if (bytes != sizeof(struct ddp_control))
            return "the measured memory speeds have the wrong size";
        return check_fields(control_fields, DDP_COUNT_OF(control_fields), payload);
    case DDP_JOURNAL_GATE:
        return check_gate(payload, bytes);
    default:
        return bytes == 0 ? NULL : "it has data, but this kind of line must have none";
    }
}
