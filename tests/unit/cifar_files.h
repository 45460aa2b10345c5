/* Test helper: builds CIFAR-10 batches in both forms byte by byte. The python form is what cPickle
 * of Python 2 writes. */
#ifndef DDP_TEST_CIFAR_FILES_H
#define DDP_TEST_CIFAR_FILES_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
    uint8_t *at;
    size_t n, room;
};

static inline void put(struct bytes *b, const void *data, size_t n)
{
    if (n == 0)
        return;
    if (b->n + n > b->room) {
        b->room = 2 * (b->n + n);
        b->at = realloc(b->at, b->room);
    }
    memcpy(b->at + b->n, data, n);
    b->n += n;
}

/* Appends a C string literal, which may contain NULs. */
#define PUT(b, literal) put(b, literal, sizeof(literal) - 1)

static inline uint8_t cifar_pixel(int image, int p)
{
    return (uint8_t)(image * 31 + p * 7);
}

static inline uint8_t cifar_label(int image)
{
    return (uint8_t)(image * 3 % 10);
}

static inline struct bytes cifar_binary(int count)
{
    struct bytes b = {0};
    for (int i = 0; i < count; i++) {
        uint8_t record[3073] = {cifar_label(i)};
        for (int p = 0; p < 3072; p++)
            record[1 + p] = cifar_pixel(i, p);
        put(&b, record, sizeof record);
    }
    return b;
}

static inline void put_u32(struct bytes *b, uint32_t v)
{
    uint8_t le[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    put(b, le, 4);
}

static inline void put_text(struct bytes *b, const char *text)
{
    uint8_t head[2] = {'U', (uint8_t)strlen(text)};
    put(b, head, 2);
    put(b, text, head[1]);
}

static inline void put_labels(struct bytes *b, int count)
{
    put_text(b, "labels");
    PUT(b, "q\4]q\5(");
    for (int i = 0; i < count; i++) {
        uint8_t item[2] = {'K', cifar_label(i)};
        put(b, item, 2);
        if (i % 1000 == 999 && i + 1 < count) /* cPickle appends in groups of 1000 */
            PUT(b, "e(");
    }
    PUT(b, "e");
}

static inline void put_data(struct bytes *b, int count)
{
    put_text(b, "data");
    PUT(b, "cnumpy.core.multiarray\n_reconstruct\nq\6cnumpy\nndarray\nq\7K\0\x85U\1b\x87Rq\b(K\1M");
    uint8_t rows[2] = {(uint8_t)count, (uint8_t)(count >> 8)};
    put(b, rows, 2);
    PUT(b, "M\0\f\x86"
           "cnumpy\ndtype\nq\tU\2u1K\0K\1\x87Rq\n(K\3U\1|NNNJ\377\377\377\377J\377\377\377\377K\0tb"
           "\x89T");
    put_u32(b, (uint32_t)count * 3072);
    for (int i = 0; i < count; i++)
        for (int p = 0; p < 3072; p++) {
            uint8_t pixel = cifar_pixel(i, p);
            put(b, &pixel, 1);
        }
    PUT(b, "tb");
}

static inline void put_names(struct bytes *b, int count)
{
    put_text(b, "filenames");
    PUT(b, "q\v]q\f(");
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "frog_s_%06d.png", i);
        put_text(b, name);
        PUT(b, "r\1\2\0\0");
    }
    PUT(b, "e");
}

/* The keys have the order of the published files. */
static inline struct bytes cifar_pickle(int count)
{
    struct bytes b = {0};
    PUT(&b, "\x80\2}q\1(U\vbatch_labelq\2U\25training batch 1 of 5q\3");
    put_labels(&b, count);
    put_data(&b, count);
    put_names(&b, count);
    PUT(&b, "u.");
    return b;
}

#endif
