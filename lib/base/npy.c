/* Reads and writes NPY files. The header of a file is the text of a Python dictionary with exactly
 * three keys. */
#include "base/npy.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the byte order of '<f4' must be that of memory");

/* The prefix consists of the magic number, the version and two bytes for the length of the header.
 * The format requires that the data begin at a multiple of 64 bytes. In files that are written
 * here, the data begin at byte 128. */
#define PREFIX_BYTES     10
#define OUR_HEADER_BYTES 128
/* Largest header accepted. Version 1.0 allows 65535 bytes, but a shape of two numbers needs far
 * fewer. */
#define HEADER_MAX 4096

static const unsigned char magic[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};

/* The text of the header that is not parsed yet. */
struct cursor {
    const char *at, *end;
    bool bad; /* set once the text is not as expected */
};

static void skip_blanks(struct cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n'))
        c->at++;
}

/* Skips blanks. If `text` comes next, consumes it and returns true. */
static bool take(struct cursor *c, const char *text)
{
    size_t n = strlen(text);
    skip_blanks(c);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
        return false;
    c->at += n;
    return true;
}

static void expect(struct cursor *c, const char *text)
{
    if (!take(c, text))
        c->bad = true;
}

/* Like take(), but expects `text` in single or double quotes. */
static bool take_quoted(struct cursor *c, const char *text)
{
    struct cursor back = *c;
    const char *quote = take(c, "'") ? "'" : take(c, "\"") ? "\"" : NULL;
    if (quote != NULL && take(c, text) && take(c, quote))
        return true;
    *c = back;
    return false;
}

static size_t take_number(struct cursor *c)
{
    size_t value = 0;
    skip_blanks(c);
    const char *start = c->at;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(value, (size_t)10, &value) ||
            __builtin_add_overflow(value, (size_t)(*c->at - '0'), &value))
            c->bad = true;
    }
    if (c->at == start)
        c->bad = true;
    return value;
}

/* Reads (columns,) or (rows, columns). */
static void take_shape(struct cursor *c, struct ddp_npy *npy)
{
    expect(c, "(");
    npy->rows = 1;
    npy->columns = take_number(c);
    expect(c, ",");
    if (take(c, ")"))
        return;
    npy->rows = npy->columns;
    npy->columns = take_number(c);
    (void)take(c, ",");
    expect(c, ")");
}

/* Parses the whole dictionary. Returns NULL, or the reason why the file cannot be used. */
static const char *parse(const char *text, size_t n, struct ddp_npy *npy)
{
    struct cursor c = {.at = text, .end = text + n};
    bool descr = false, order = false, shape = false;
    expect(&c, "{");
    while (!c.bad && !take(&c, "}")) {
        if (!descr && take_quoted(&c, "descr")) {
            descr = true;
            expect(&c, ":");
            if (!c.bad && !take_quoted(&c, "<f4"))
                return "its values are not '<f4' (little-endian float32)";
        } else if (!order && take_quoted(&c, "fortran_order")) {
            order = true;
            expect(&c, ":");
            if (take(&c, "True"))
                return "it is in Fortran order, not C order";
            expect(&c, "False");
        } else if (!shape && take_quoted(&c, "shape")) {
            shape = true;
            expect(&c, ":");
            take_shape(&c, npy);
        } else {
            c.bad = true;
        }
        if (!c.bad && !take(&c, ",")) {
            expect(&c, "}");
            break;
        }
    }
    skip_blanks(&c);
    if (c.bad || c.at != c.end || !descr || !order || !shape)
        return "its header does not describe an array of one or two dimensions";
    return npy->columns > 0 ? NULL : "it has no columns";
}

/* Reads n bytes at `offset`, or fewer if the file ends earlier. *got becomes the number of bytes
 * that were read. */
static int read_at(const struct ddp_npy *npy, void *out, size_t n, size_t offset, size_t *got,
                   struct ddp_err *err)
{
    ssize_t r = 1;
    for (*got = 0; *got < n && r != 0; *got += (size_t)r) {
        do
            r = pread(npy->fd, (char *)out + *got, n - *got, (off_t)(offset + *got));
        while (r < 0 && errno == EINTR);
        if (r < 0)
            return ddp_fail_errno(err, DDP_EIO, errno, "cannot read '%s'", npy->path);
    }
    return 0;
}

/* Checks the header and the length of an open file. */
static int check(struct ddp_npy *npy, size_t file_bytes, struct ddp_err *err)
{
    unsigned char prefix[PREFIX_BYTES];
    char header[HEADER_MAX];
    size_t values, bytes, got;
    DDP_TRY(read_at(npy, prefix, sizeof prefix, 0, &got, err));
    if (got != PREFIX_BYTES || memcmp(prefix, magic, 6) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not an NPY file", npy->path);
    if (memcmp(prefix, magic, sizeof magic) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is NPY version %d.%d; only 1.0 is supported",
                        npy->path, prefix[6], prefix[7]);
    size_t n = (size_t)prefix[8] | (size_t)prefix[9] << 8;
    if (n > sizeof header)
        return ddp_fail(err, DDP_EINPUT, "'%s' has a header of %zu bytes, which is too long",
                        npy->path, n);
    DDP_TRY(read_at(npy, header, n, PREFIX_BYTES, &got, err));
    const char *wrong = got == n ? parse(header, n, npy) : "it is truncated";
    if (wrong != NULL)
        return ddp_fail(err, DDP_EINPUT, "'%s' cannot be used: %s", npy->path, wrong);
    npy->data_offset = PREFIX_BYTES + n;
    if (!ddp_mul_size(npy->rows, npy->columns, &values) ||
        !ddp_mul_size(values, sizeof(float), &bytes) || bytes != file_bytes - npy->data_offset)
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' promises %zu x %zu values of 4 bytes, but %lld bytes follow its "
                        "header",
                        npy->path, npy->rows, npy->columns,
                        (long long)file_bytes - (long long)npy->data_offset);
    return 0;
}

int ddp_npy_open(const char *path, struct ddp_npy *out, struct ddp_err *err)
{
    struct ddp_npy npy = {.path = path};
    size_t file_bytes;
    DDP_TRY(ddp_file_open(path, &npy.fd, &file_bytes, err));
    int rc = check(&npy, file_bytes, err);
    if (rc != 0) {
        ddp_npy_close(&npy);
        return rc;
    }
    *out = npy;
    return 0;
}

int ddp_npy_read(const struct ddp_npy *npy, size_t row, size_t first, float *out, size_t n,
                 struct ddp_err *err)
{
    assert(row < npy->rows && first <= npy->columns && n <= npy->columns - first);
    size_t offset = npy->data_offset + (row * npy->columns + first) * sizeof(float);
    size_t got;
    DDP_TRY(read_at(npy, out, n * sizeof(float), offset, &got, err));
    if (got != n * sizeof(float))
        return ddp_fail(err, DDP_EINPUT, "'%s' has become shorter", npy->path);
    return 0;
}

static int write_at(const struct ddp_npy *npy, const void *data, size_t n, size_t offset,
                    struct ddp_err *err)
{
    size_t put = 0;
    while (put < n) {
        ssize_t w = pwrite(npy->fd, (const char *)data + put, n - put, (off_t)(offset + put));
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return ddp_fail_errno(err, DDP_EIO, w < 0 ? errno : EIO, "cannot write '%s'",
                                  npy->path);
        put += (size_t)w;
    }
    return 0;
}

/* Writes the header. The header has a fixed length, so that it can be written again when a row is
 * added. */
static int write_header(const struct ddp_npy *npy, struct ddp_err *err)
{
    char header[OUR_HEADER_BYTES + 1];
    const size_t rest = OUR_HEADER_BYTES - PREFIX_BYTES;
    memset(header, ' ', sizeof header);
    memcpy(header, magic, sizeof magic);
    header[8] = (char)rest;
    header[9] = 0;
    int n = snprintf(header + PREFIX_BYTES, rest,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", npy->rows,
                     npy->columns);
    assert(n > 0 && (size_t)n < rest);
    header[PREFIX_BYTES + n] = ' ';
    header[OUR_HEADER_BYTES - 1] = '\n';
    return write_at(npy, header, OUR_HEADER_BYTES, 0, err);
}

int ddp_npy_create(const char *path, size_t columns, struct ddp_npy *out, struct ddp_err *err)
{
    struct ddp_npy npy = {.columns = columns, .data_offset = OUR_HEADER_BYTES, .path = path};
    assert(columns > 0);
    npy.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (npy.fd < 0)
        return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create '%s'", path);
    int rc = write_header(&npy, err);
    if (rc != 0) {
        ddp_npy_close(&npy);
        return rc;
    }
    *out = npy;
    return 0;
}

int ddp_npy_append(struct ddp_npy *npy, const float *row, struct ddp_err *err)
{
    size_t bytes = npy->columns * sizeof(float);
    DDP_TRY(write_at(npy, row, bytes, npy->data_offset + npy->rows * bytes, err));
    npy->rows++;
    return write_header(npy, err);
}

void ddp_npy_close(struct ddp_npy *npy)
{
    if (npy->path != NULL && npy->fd >= 0)
        close(npy->fd);
    *npy = (struct ddp_npy){.fd = -1};
}
