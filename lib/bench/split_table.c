#include "bench/split_table.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/unit.h"

#define ZIPF         "zipf:"
#define SEPARATORS   " \t\r,"
#define SPLIT_STREAM UINT64_C(0x73706c6974) /* first stream of random numbers: "split" in ASCII */
/* Weights of zipf are rounded to multiples of 1/ZIPF_UNIT. The rounding hides differences between
 * the pow() of hosts, and sums of such weights are exact, so all hosts get the same table. */
#define ZIPF_UNIT 0x1p40

int ddp_split_parse(const char *text, struct ddp_split *out, struct ddp_err *err)
{
    const size_t prefix = strlen(ZIPF);
    struct ddp_err ignored = DDP_ERR_INIT;

    *out = (struct ddp_split){.kind = DDP_SPLIT_EVEN};
    if (strcmp(text, "even") == 0) {
        snprintf(out->name, sizeof out->name, "even");
        return 0;
    }
    if (strncmp(text, ZIPF, prefix) != 0 && strcmp(text, "zipf") != 0) {
        out->kind = DDP_SPLIT_FILE;
        out->path = text;
        return 0;
    }
    out->kind = DDP_SPLIT_ZIPF;
    const char *number = text + DDP_MIN(prefix, strlen(text));
    if (ddp_parse_double(number, 0, DDP_SPLIT_EXPONENT_MAX, &out->exponent, &ignored) != 0) {
        ddp_fail(err, DDP_EUSAGE, "--split '%s' has no exponent from 0 to %g", text,
                 DDP_SPLIT_EXPONENT_MAX);
        return ddp_hint(err, "for example --split zipf:1.2");
    }
    snprintf(out->name, sizeof out->name, ZIPF "%g", out->exponent);
    return 0;
}

/* The state of the reader of a FILE. */
struct reader {
    const char *path;
    struct ddp_split *split;
    int line;       /* number of the current line, from 1 */
    int first_line; /* number of the line with the first row */
    int columns;    /* numbers in the first row */
    int rows;       /* rows that were read */
    bool one_row;   /* the file has one row, and not one per rank */
};

/* Returns the number of rows that the file must have. */
static int rows_wanted(const struct reader *r)
{
    return r->one_row ? 1 : r->columns;
}

/* Parses the first `length` characters of the text as a number, and writes a NUL after them. */
static int read_number(const struct reader *r, char *text, size_t length, double *out,
                       struct ddp_err *err)
{
    char *end;
    text[length] = '\0';
    *out = strtod(text, &end);
    if (*end != '\0' || strspn(text, "+-.0123456789eE") != length)
        return ddp_fail(err, DDP_EINPUT, "'%s', line %d: '%.40s' is not a number", r->path, r->line,
                        text);
    if (*out < 0)
        return ddp_fail(err, DDP_EINPUT, "'%s', line %d: '%.40s' is negative", r->path, r->line,
                        text);
    if (!(*out <= DDP_SPLIT_WEIGHT_MAX))
        return ddp_fail(err, DDP_EINPUT, "'%s', line %d: '%.40s' exceeds 2^53", r->path, r->line,
                        text);
    return 0;
}

/* Counts the numbers of the first row, and allocates the table. */
static int begin_table(struct reader *r, const char *line, struct ddp_err *err)
{
    int columns = 0;
    for (const char *at = line; *(at += strspn(at, SEPARATORS)) != '\0';
         at += strcspn(at, SEPARATORS))
        columns++;
    if (columns > DDP_SPLIT_ROWS_MAX)
        return ddp_fail(err, DDP_EINPUT, "'%s', line %d has %d numbers; the maximum is %d", r->path,
                        r->line, columns, DDP_SPLIT_ROWS_MAX);
    r->columns = columns;
    r->first_line = r->line;
    return DDP_NEW(&r->split->weight, (size_t)columns * (size_t)rows_wanted(r), err);
}

/* Reads a line, which ends with '\0'. */
static int read_row(struct reader *r, char *line, struct ddp_err *err)
{
    struct ddp_split *s = r->split;
    int column = 0;

    line[strcspn(line, "#")] = '\0';
    line += strspn(line, SEPARATORS);
    if (*line == '\0')
        return 0;
    if (s->weight == NULL)
        DDP_TRY(begin_table(r, line, err));
    if (r->rows == rows_wanted(r))
        return ddp_fail(err, DDP_EINPUT,
                        "'%s', line %d: one row too many: expected %d row%s of %d numbers", r->path,
                        r->line, r->rows, r->rows == 1 ? "" : "s", r->columns);
    for (; *line != '\0'; column++) {
        const size_t length = strcspn(line, SEPARATORS);
        char *const next = line + length + (line[length] != '\0');
        double weight;
        DDP_TRY(read_number(r, line, length, &weight, err));
        if (column < r->columns)
            s->weight[r->rows * r->columns + column] = weight;
        line = next + strspn(next, SEPARATORS);
    }
    if (column != r->columns)
        return ddp_fail(err, DDP_EINPUT, "'%s', line %d has %d numbers, but line %d has %d",
                        r->path, r->line, column, r->first_line, r->columns);
    r->rows++;
    return 0;
}

/* Sets the name: the name of the file without folders, and a hash of the weights. */
static void name_file(struct ddp_split *s, size_t weights)
{
    const char *slash = strrchr(s->path, '/');
    const size_t bytes = weights * sizeof *s->weight;
    const uint64_t hash = ddp_fnv1a(DDP_FNV_INIT, s->weight, bytes);
    char base[25];

    snprintf(base, sizeof base, "%s", slash != NULL ? slash + 1 : s->path);
    for (char *c = base; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && strchr("._-", *c) == NULL)
            *c = '_';
    snprintf(s->name, sizeof s->name, "%s:%08x", base, (unsigned)(hash ^ hash >> 32));
}

static int read_table(struct reader *r, char *text, struct ddp_err *err)
{
    struct ddp_split *s = r->split;
    double sum = 0;

    for (char *line = text; line != NULL; r->line++) {
        char *const end = strchr(line, '\n');
        if (end != NULL)
            *end = '\0';
        DDP_TRY(read_row(r, line, err));
        line = end != NULL ? end + 1 : NULL;
    }
    if (r->rows == 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has no numbers", r->path);
    if (r->rows != rows_wanted(r))
        return ddp_fail(err, DDP_EINPUT, "'%s' has %d row%s of %d numbers; it needs a row per rank",
                        r->path, r->rows, r->rows == 1 ? "" : "s", r->columns);
    for (int i = 0; i < r->rows * r->columns; i++)
        sum += s->weight[i];
    if (!(sum > 0))
        return ddp_fail(err, DDP_EINPUT, "'%s': all numbers are 0", r->path);
    s->columns = r->columns;
    name_file(s, (size_t)r->rows * (size_t)r->columns);
    return 0;
}

int ddp_split_load(struct ddp_split *split, enum ddp_coll coll, struct ddp_err *err)
{
    struct reader reader = {
        .path = split->path, .split = split, .line = 1, .one_row = ddp_coll_split_is_row(coll)};
    char *text = NULL;
    size_t bytes;
    int rc;

    if (split->kind != DDP_SPLIT_FILE || split->weight != NULL)
        return 0;
    rc = ddp_file_read(split->path, DDP_SPLIT_FILE_MOST, &text, &bytes, err);
    if (rc == DDP_ENOINPUT)
        return ddp_hint(err, "--split takes even, zipf:S or the name of a file");
    DDP_TRY(rc);
    if (strlen(text) != bytes)
        rc = ddp_fail(err, DDP_EINPUT, "'%s' is not a text file", split->path);
    if (rc == 0)
        rc = read_table(&reader, text, err);
    free(text);
    if (rc != 0)
        ddp_split_release(split);
    return rc;
}

void ddp_split_release(struct ddp_split *split)
{
    free(split->weight);
    split->weight = NULL;
    split->columns = 0;
}

int ddp_split_check_ranks(const struct ddp_split *split, int ranks, struct ddp_err *err)
{
    if (split->kind != DDP_SPLIT_FILE || split->columns == ranks)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "--split '%s' is for %d rank%s, but the operation has %d",
                    split->path, split->columns, split->columns == 1 ? "" : "s", ranks);
}

/* Returns the weight of the part from rank `from` to rank `to`. preference: the position of `to` in
 * the random order of the receivers of `from` (shuffle), counted from 0. */
static double weight_of(const struct ddp_split *split, int ranks, int from, int to,
                        size_t preference)
{
    switch (split->kind) {
    case DDP_SPLIT_ZIPF:
        return rint(ZIPF_UNIT * pow((double)preference + 1, -split->exponent));
    case DDP_SPLIT_FILE:
        return split->weight[(size_t)from * (size_t)ranks + (size_t)to];
    default:
        return 1;
    }
}

/* Returns `elements` * `part` / `whole`, rounded to the nearest number and at most `elements`. */
static size_t first_elements(size_t elements, double part, double whole)
{
    const double wanted = rint((double)elements * (part / whole));
    return part >= whole || wanted >= (double)elements ? elements : (size_t)wanted;
}

/* Divides `elements` among the parts [ranks] of a row by their weights. On entry, parts[r] is the
 * preference of rank r. A part ends at the rounded sum of the shares up to and including its own,
 * so the sizes of all parts add up to `elements`. */
static void fill_row(const struct ddp_split *split, int ranks, int from, size_t elements,
                     size_t *parts)
{
    double whole = 0, sum = 0;
    size_t begin = 0;

    for (int to = 0; to < ranks; to++)
        whole += weight_of(split, ranks, from, to, parts[to]);
    for (int to = 0; to < ranks; to++) {
        sum += weight_of(split, ranks, from, to, parts[to]);
        const size_t end = whole > 0 ? first_elements(elements, sum, whole) : 0;
        parts[to] = end - begin;
        begin = end;
    }
}

/* Puts a random permutation of 0..ranks-1 into order [ranks]. `order` is a row of the table itself,
 * so that no other memory is needed. */
static void shuffle(uint64_t seed, int from, int ranks, size_t *order)
{
    struct ddp_rng rng;

    ddp_rng_init(&rng, seed, SPLIT_STREAM + (uint64_t)from);
    for (int r = 0; r < ranks; r++) {
        const size_t other = (size_t)ddp_rng_below(&rng, (uint64_t)r + 1);
        order[r] = order[other];
        order[other] = (size_t)r;
    }
}

static double row_weight(const struct ddp_split *split, int ranks, int from)
{
    double sum = 0;
    for (int to = 0; to < ranks && split->kind == DDP_SPLIT_FILE; to++)
        sum += weight_of(split, ranks, from, to, 0);
    return split->kind == DDP_SPLIT_FILE ? sum : 1;
}

void ddp_split_fill(const struct ddp_split *split, enum ddp_coll coll, uint64_t seed, int ranks,
                    size_t count, size_t *table)
{
    const size_t n = (size_t)ranks, all = n * n * count;
    double whole = 0, sum = 0;
    size_t begin = 0;

    if (ddp_coll_split_is_row(coll)) {
        shuffle(seed, 0, ranks, table);
        fill_row(split, ranks, 0, n * count, table);
        return;
    }
    for (int from = 0; from < ranks; from++)
        whole += row_weight(split, ranks, from);
    for (int from = 0; from < ranks; from++) {
        sum += row_weight(split, ranks, from);
        const size_t end = first_elements(all, sum, whole);
        shuffle(seed, from, ranks, table + (size_t)from * n);
        fill_row(split, ranks, from, end - begin, table + (size_t)from * n);
        begin = end;
    }
}

/* Computes the loads of a collective whose split is one row. A rank of an all-gather-v receives all
 * parts but its own, and a rank of a reduce-scatter-v sends all parts but its own. */
static void row_loads(const size_t *parts, int ranks, struct ddp_split_load *out)
{
    size_t least = SIZE_MAX;

    for (int r = 0; r < ranks; r++) {
        out->largest += parts[r];
        least = DDP_MIN(least, parts[r]);
    }
    out->busiest = out->largest - least;
    out->mean = (double)out->largest / ranks * (ranks - 1);
}

void ddp_split_loads(enum ddp_coll coll, const size_t *table, int ranks, struct ddp_split_load *out)
{
    const size_t n = (size_t)ranks;

    *out = (struct ddp_split_load){0};
    if (ddp_coll_split_is_row(coll)) {
        row_loads(table, ranks, out);
        return;
    }
    for (size_t r = 0; r < n; r++) {
        size_t sent = 0, received = 0;
        for (size_t other = 0; other < n; other++) {
            sent += other != r ? table[r * n + other] : 0;
            received += other != r ? table[other * n + r] : 0;
        }
        const size_t own = table[r * n + r];
        out->busiest = DDP_MAX(out->busiest, DDP_MAX(sent, received));
        out->largest = DDP_MAX(out->largest, DDP_MAX(sent, received) + own);
        out->mean += (double)sent / ranks;
    }
}
