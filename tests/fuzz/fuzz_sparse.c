/* Fuzzes input from other ranks and from users: sparse messages as they arrive, and names of
 * compressors. The first byte chooses between them. An accepted message must be in ascending
 * order, lie inside its span, and encode to a message that decodes to the same entries. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "coll/sparse/sparse_code.h"
#include "compress/compress.h"
#include "fuzz/fuzz.h"

#define LENGTH_MAX 4096

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* The input begins with a header: begin (4 bytes), length (2), count (2). Then come 4-byte
 * words. The arrays have exactly the required size, so that a sanitizer detects every access
 * outside. */
static void fuzz_message(const uint8_t *data, size_t size)
{
    uint32_t begin;
    uint16_t length, count;
    struct ddp_sparse list, again;

    if (size < 8)
        return;
    memcpy(&begin, data, 4);
    memcpy(&length, data + 4, 2);
    memcpy(&count, data + 6, 2);
    length %= LENGTH_MAX;
    const struct ddp_sparse_span span = {begin, length};
    if (span.begin + span.length > (size_t)UINT32_MAX + 1)
        return;
    const size_t words = count <= length ? ddp_sparse_code_words(count, length) : 0;
    uint32_t *wire = calloc(words != 0 ? words : 1, sizeof *wire);
    uint32_t *room = malloc(count != 0 ? count * sizeof *room : 1);
    uint32_t *copy = malloc(words != 0 ? words * sizeof *copy : 1);
    uint32_t *copy_room = malloc(count != 0 ? count * sizeof *copy_room : 1);
    require(wire != NULL && room != NULL && copy != NULL && copy_room != NULL);
    const size_t bytes = size - 8 < words * sizeof *wire ? size - 8 : words * sizeof *wire;
    memcpy(wire, data + 8, bytes);

    if (ddp_sparse_decode(wire, count, span, room, &list, NULL) == 0) {
        require(list.count == count && count <= length);
        for (size_t i = 0; i < list.count; i++)
            require(list.index[i] >= span.begin && list.index[i] < span.begin + span.length &&
                    (i == 0 || list.index[i] > list.index[i - 1]));
        ddp_sparse_encode(&list, span, copy);
        require(memcmp(copy, wire, words * sizeof *wire) == 0);
        require(ddp_sparse_decode(copy, count, span, copy_room, &again, NULL) == 0);
        for (size_t i = 0; i < list.count; i++)
            require(again.index[i] == list.index[i]);
    }
    free(wire);
    free(room);
    free(copy);
    free(copy_room);
}

static void fuzz_name(const uint8_t *data, size_t size)
{
    struct ddp_compress_spec spec;
    struct ddp_err err = DDP_ERR_INIT;
    char *text = malloc(size + 1);

    require(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    if (ddp_compress_parse(text, &spec, &err) == 0) {
        require(strcmp(spec.text, text) == 0);
        const size_t bound = spec.compressor->bound(&spec, 1000);
        require(bound >= 1 && bound <= 1000);
    } else {
        require(err.text[0] != '\0');
    }
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    if (data[0] % 4 == 0)
        fuzz_name(data + 1, size - 1);
    else
        fuzz_message(data + 1, size - 1);
    return 0;
}
