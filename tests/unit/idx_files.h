/* Test helper: writes valid and malformed IDX files into a temporary folder. */
#ifndef DDP_TEST_IDX_FILES_H
#define DDP_TEST_IDX_FILES_H

#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

struct folder {
    char path[64];
};

static inline void folder_make(struct folder *f)
{
    const char *tmp = "/tmp/ddp-idx-XXXXXX";
    snprintf(f->path, sizeof f->path, "%s", tmp);
    assert_non_null(mkdtemp(f->path));
}

static inline int folder_drop(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

static inline void folder_remove(struct folder *f)
{
    nftw(f->path, folder_drop, 8, FTW_DEPTH | FTW_PHYS);
}

/* Returns the path of a file in the folder, in one of several buffers used in turn. */
static inline const char *folder_at(const struct folder *f, const char *name)
{
    static char paths[8][160];
    static int turn;
    char *p = paths[turn++ % 8];
    snprintf(p, sizeof paths[0], "%s/%s", f->path, name);
    return p;
}

/* Writes the IDX header of an array of unsigned bytes and returns the length of the header. */
static inline size_t idx_header(uint8_t *out, int ndim, const uint32_t *dims)
{
    size_t n = 4;
    out[0] = out[1] = 0;
    out[2] = 8;
    out[3] = (uint8_t)ndim;
    for (int i = 0; i < ndim; i++)
        for (int shift = 24; shift >= 0; shift -= 8)
            out[n++] = (uint8_t)(dims[i] >> shift);
    return n;
}

static inline void write_plain(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

static inline void write_gzip(const char *path, const void *data, size_t bytes)
{
    gzFile f = gzopen(path, "wb9");
    assert_non_null(f);
    assert_int_equal(gzwrite(f, data, (unsigned)bytes), (int)bytes);
    assert_int_equal(gzclose(f), Z_OK);
}

/* Returns the *bytes bytes of a file. The caller frees them. */
static inline uint8_t *read_back(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    uint8_t *data = malloc(1 << 20);
    *bytes = fread(data, 1, 1 << 20, f);
    fclose(f);
    return data;
}

#endif
