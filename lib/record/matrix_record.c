#include "record/matrix_record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/field.h"
#include "stats/summary.h"

const struct ddp_matrix_figure ddp_matrix_figures[DDP_MATRIX_FIGURES] = {
    {"latency_us", offsetof(struct ddp_matrix_cell, latency_ns), 1e3},
    {"GBps", offsetof(struct ddp_matrix_cell, GBps), 1},
    {"ci95_percent", offsetof(struct ddp_matrix_cell, ci95_fraction), 0.01},
    {"both_GBps", offsetof(struct ddp_matrix_cell, both_GBps), 1},
    {"resent_percent", offsetof(struct ddp_matrix_cell, resent_fraction), 0.01},
};

#define M(member) DDP_FIELD_AT(ddp_matrix, member)

static const char *const end_kinds[] = {"rank", "host"};
static const struct ddp_field matrix_rows[] = {
    {M(by_host), DDP_FIELD_ENUM, "by", .most = 1, .choices = end_kinds},
    {M(bytes), DDP_FIELD_COUNT, "message_bytes"},
    {M(rounds), DDP_FIELD_COUNT, "rounds"},
    {M(all_rounds), DDP_FIELD_COUNT, "all_rounds"},
    {.name = NULL, .kind = DDP_FIELD_LIST, .path = "ends"},
};
static const struct ddp_field end_rows[] = {
    {DDP_FIELD_AT(ddp_matrix_end, rank), DDP_FIELD_COUNT, "rank", .least = -1},
    {DDP_FIELD_AT(ddp_matrix_end, host), DDP_FIELD_BORROWED, "host"},
};
const struct ddp_fields ddp_matrix_fields = {matrix_rows, DDP_COUNT_OF(matrix_rows)};
const struct ddp_fields ddp_matrix_end_fields = {end_rows, DDP_COUNT_OF(end_rows)};

int ddp_matrix_init(struct ddp_matrix *m, int ends, struct ddp_err *err)
{
    const size_t cells = (size_t)ends * (size_t)ends;
    *m = (struct ddp_matrix){.ends = ends};
    DDP_TRY(DDP_NEW(&m->rank, (size_t)ends, err));
    int rc = DDP_NEW(&m->cell, cells, err);
    if (rc != 0) {
        ddp_matrix_release(m);
        return rc;
    }
    for (size_t i = 0; i < cells; i++)
        m->cell[i] = DDP_MATRIX_CELL_INIT;
    return 0;
}

void ddp_matrix_release(struct ddp_matrix *m)
{
    free(m->rank);
    free(m->cell);
    *m = (struct ddp_matrix){.ends = 0};
}

static size_t rank_bytes(int ends)
{
    return (size_t)ends * sizeof(int32_t);
}

static size_t cell_bytes(int ends)
{
    return (size_t)ends * (size_t)ends * sizeof(struct ddp_matrix_cell);
}

int ddp_matrix_pack(const struct ddp_matrix *m, void **out, size_t *bytes, struct ddp_err *err)
{
    char *text;
    *bytes = sizeof *m + cell_bytes(m->ends) + rank_bytes(m->ends);
    DDP_TRY(DDP_NEW(&text, *bytes, err));
    memcpy(text, m, sizeof *m);
    memcpy(text + sizeof *m, m->cell, cell_bytes(m->ends));
    memcpy(text + sizeof *m + cell_bytes(m->ends), m->rank, rank_bytes(m->ends));
    *out = text;
    return 0;
}

int ddp_matrix_unpack(const void *message, size_t bytes, struct ddp_matrix *m, struct ddp_err *err)
{
    const char *text = message;
    struct ddp_matrix head;
    memcpy(&head, text, DDP_MIN(bytes, sizeof head));
    if (bytes < sizeof head || head.ends < 1 || head.ends > DDP_MATRIX_MAX ||
        bytes != sizeof head + cell_bytes(head.ends) + rank_bytes(head.ends))
        return ddp_fail(err, DDP_EINTERNAL,
                        "the message with the matrix has a wrong length (%zu bytes)", bytes);
    DDP_TRY(ddp_matrix_init(m, head.ends, err));
    m->by_host = head.by_host;
    m->rounds = head.rounds;
    m->all_rounds = head.all_rounds;
    m->bytes = head.bytes;
    memcpy(m->cell, text + sizeof head, cell_bytes(head.ends));
    memcpy(m->rank, text + sizeof head + cell_bytes(head.ends), rank_bytes(head.ends));
    return 0;
}

int ddp_matrix_summarize(const struct ddp_matrix *m, struct ddp_matrix_summary *out,
                         struct ddp_err *err)
{
    const int cells = m->ends * m->ends;
    int low = -1, high = -1;
    double *values;
    *out = (struct ddp_matrix_summary){.measured = 0};
    DDP_TRY(DDP_NEW(&values, (size_t)cells, err));
    for (int i = 0; i < cells; i++) {
        const double GBps = m->cell[i].GBps;
        if (isnan(GBps))
            continue;
        values[out->measured++] = GBps;
        low = low < 0 || GBps < m->cell[low].GBps ? i : low;
        high = high < 0 || GBps > m->cell[high].GBps ? i : high;
    }
    if (low >= 0) {
        out->median_GBps = ddp_median(values, (size_t)out->measured);
        size_t n = 0;
        for (int i = 0; i < cells; i++)
            if (!isnan(m->cell[i].latency_ns))
                values[n++] = m->cell[i].latency_ns;
        out->median_latency_ns = ddp_median(values, n);
        out->slowest[0] = low / m->ends;
        out->slowest[1] = low % m->ends;
        out->fastest[0] = high / m->ends;
        out->fastest[1] = high % m->ends;
    }
    free(values);
    return 0;
}
