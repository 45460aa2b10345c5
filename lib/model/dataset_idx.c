/* Reads IDX files, which are not trusted. A file holds a magic number, big-endian dimensions and
 * one byte per element. */
#include "model/dataset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file.h"
#include "base/mem.h"

#define INPUT_BYTES 65536
/* Deflate cannot expand data by more than this factor: 258 bytes from 2 bits (zlib, "Maximum
 * Expansion Factor"). read_header() rejects a header that promises more data, before memory is
 * allocated. */
#define DEFLATE_MAX_RATIO 1032

/* An open file. A gzip file is inflated through zlib. */
struct source {
    const char *path;
    int fd;
    bool gzip;
    bool ended; /* the last gzip member is complete and its checksum agrees */
    size_t file_bytes;
    z_stream z;
    unsigned char *input;
    size_t input_pos, input_len;
};

/* Fills the input buffer. At the end of the file input_len is 0. */
static int refill(struct source *s, struct ddp_err *err)
{
    ssize_t got;
    do {
        got = read(s->fd, s->input, INPUT_BYTES);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return ddp_fail_errno(err, DDP_EIO, errno, "cannot read '%s'", s->path);
    s->input_pos = 0;
    s->input_len = (size_t)got;
    return 0;
}

static int source_open(struct source *s, const char *path, struct ddp_err *err)
{
    int rc;
    memset(s, 0, sizeof *s);
    s->path = path;
    DDP_TRY(ddp_file_open(path, &s->fd, &s->file_bytes, err));
    DDP_TRY_GOTO(DDP_NEW(&s->input, INPUT_BYTES, err), err_input);
    DDP_TRY_GOTO(refill(s, err), err_input);
    s->gzip = s->input_len >= 2 && s->input[0] == 0x1f && s->input[1] == 0x8b;
    if (s->gzip && inflateInit2(&s->z, 15 + 16) != Z_OK) {
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to inflate '%s'", path);
        goto err_input;
    }
    return 0;

err_input:
    free(s->input);
    close(s->fd);
    return rc;
}

static void source_close(struct source *s)
{
    if (s->gzip)
        inflateEnd(&s->z);
    free(s->input);
    close(s->fd);
}

/* Starts the next gzip member, or sets `ended` if there is no other member. A gzip file may consist
 * of several members (RFC 1952, 2.2; written by pigz -i or cat a.gz b.gz). check_end() rejects
 * other bytes after the last member. */
static int next_member(struct source *s, struct ddp_err *err)
{
    if (s->input_pos == s->input_len)
        DDP_TRY(refill(s, err));
    s->ended = s->input_len == 0 || s->input[s->input_pos] != 0x1f || inflateReset(&s->z) != Z_OK;
    return 0;
}

/* Reads up to n bytes of the uncompressed data. *got is less than n only at the end of the data. */
static int source_read(struct source *s, uint8_t *out, size_t n, size_t *got, struct ddp_err *err)
{
    size_t done = 0;
    while (done < n && !s->ended) {
        if (s->input_pos == s->input_len) {
            DDP_TRY(refill(s, err));
            if (s->input_len == 0)
                break;
        }
        size_t have = s->input_len - s->input_pos;
        if (!s->gzip) {
            size_t take = DDP_MIN(have, n - done);
            memcpy(out + done, s->input + s->input_pos, take);
            s->input_pos += take;
            done += take;
            continue;
        }
        s->z.next_in = s->input + s->input_pos;
        s->z.avail_in = (unsigned)have;
        unsigned room = (unsigned)DDP_MIN(n - done, (size_t)1 << 30);
        s->z.next_out = out + done;
        s->z.avail_out = room;
        int z = inflate(&s->z, Z_NO_FLUSH);
        s->input_pos = s->input_len - s->z.avail_in;
        done += room - s->z.avail_out;
        if (z == Z_STREAM_END)
            DDP_TRY(next_member(s, err));
        else if (z == Z_MEM_ERROR)
            return ddp_fail(err, DDP_ENOMEM, "no memory to inflate '%s'", s->path);
        else if (z != Z_OK && z != Z_BUF_ERROR)
            return ddp_fail(err, DDP_EINPUT, "'%s' is a damaged gzip file: %s", s->path,
                            s->z.msg ? s->z.msg : "inflate failed");
    }
    *got = done;
    return 0;
}

/* Checks that nothing follows the last byte that the header promised. */
static int check_end(struct source *s, struct ddp_err *err)
{
    uint8_t extra;
    size_t got;
    DDP_TRY(source_read(s, &extra, 1, &got, err));
    if (got > 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' has more bytes than its header promises", s->path);
    if (!s->gzip)
        return 0;
    if (!s->ended)
        return ddp_fail(err, DDP_EINPUT, "'%s' is truncated: the gzip stream has no end", s->path);
    if (s->input_pos == s->input_len)
        DDP_TRY(refill(s, err));
    if (s->input_pos < s->input_len)
        return ddp_fail(err, DDP_EINPUT, "'%s' has bytes after the end of its gzip stream",
                        s->path);
    return 0;
}

/* Reads the magic number and the dimensions. *bytes is the number of data bytes that must follow.
 */
static int read_header(struct source *s, int ndim, uint32_t *dims, size_t *bytes,
                       struct ddp_err *err)
{
    uint8_t head[4 + 4 * DDP_IDX_MAX_DIMS];
    size_t head_bytes = 4 + 4 * (size_t)ndim, got, total = 1;
    DDP_TRY(source_read(s, head, head_bytes, &got, err));
    if (got < 4)
        return ddp_fail(err, DDP_EINPUT, "'%s' is too short for an IDX file", s->path);
    if (head[0] != 0 || head[1] != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not an IDX file: it begins with %02x %02x",
                        s->path, head[0], head[1]);
    if (head[2] != 8)
        return ddp_fail(err, DDP_EINPUT, "'%s' holds IDX type 0x%02x, not unsigned bytes (0x08)",
                        s->path, head[2]);
    if (head[3] != ndim)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %d dimensions, but must have %d", s->path,
                        head[3], ndim);
    if (got < head_bytes)
        return ddp_fail(err, DDP_EINPUT, "'%s' is truncated in its header", s->path);
    for (int i = 0; i < ndim; i++) {
        const uint8_t *b = head + 4 + 4 * i;
        dims[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
        if (dims[i] == 0)
            return ddp_fail(err, DDP_EINPUT, "'%s' is empty: dimension %d is 0", s->path, i);
        if (!ddp_mul_size(total, dims[i], &total) || total > DDP_IDX_MAX_BYTES)
            return ddp_fail(err, DDP_EINPUT,
                            "'%s' promises more than the %zu bytes that are accepted", s->path,
                            (size_t)DDP_IDX_MAX_BYTES);
    }
    size_t most = s->gzip                      ? s->file_bytes * DEFLATE_MAX_RATIO
                  : s->file_bytes > head_bytes ? s->file_bytes - head_bytes
                                               : 0;
    if (total > most)
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' is truncated: its header promises %zu bytes, but %s%zu can follow",
                        s->path, total, s->gzip ? "at most " : "", most);
    *bytes = total;
    return 0;
}

int ddp_idx_read(const char *path, int ndim, uint32_t *dims, uint8_t **data, struct ddp_err *err)
{
    struct source s;
    uint32_t shape[DDP_IDX_MAX_DIMS];
    uint8_t *bytes = NULL;
    size_t total = 0, got = 0;
    int rc;
    DDP_TRY(source_open(&s, path, err));
    DDP_TRY_GOTO(read_header(&s, ndim, shape, &total, err), err_source);
    DDP_TRY_GOTO(DDP_NEW(&bytes, total, err), err_source);
    DDP_TRY_GOTO(source_read(&s, bytes, total, &got, err), err_source);
    if (got < total) {
        rc = ddp_fail(err, DDP_EINPUT, "'%s' is truncated: %zu of %zu bytes", path, got, total);
        goto err_source;
    }
    DDP_TRY_GOTO(check_end(&s, err), err_source);
    source_close(&s);
    memcpy(dims, shape, sizeof *dims * (size_t)ndim);
    *data = bytes;
    return 0;

err_source:
    free(bytes);
    source_close(&s);
    return rc;
}
