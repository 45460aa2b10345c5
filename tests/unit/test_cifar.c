/* CIFAR-10 batches: valid ones in both forms are decoded exactly. Everything else is rejected with
 * its code, and nothing outside the file is read (run under ASan). */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "cifar_files.h"
#include "idx_files.h"
#include "model/cifar.h"
#include "model/dataset.h"
#include "names.h"

typedef int decoder(const uint8_t *bytes, size_t n, const char *name, struct ddp_cifar_batch *out,
                    struct ddp_err *err);

/* Decodes a copy of exactly n bytes, so that ASan detects every read past the end. words: expected
 * part of the message, or NULL. */
static void expect(decoder *decode, const uint8_t *bytes, size_t n, int code, const char *words)
{
    static struct ddp_cifar_batch batch;
    struct ddp_err err = DDP_ERR_INIT;
    uint8_t *copy = malloc(n ? n : 1);
    memcpy(copy, bytes, n);
    int rc = decode(copy, n, "the-file", &batch, &err);
    if (rc != code || (words && !text_names(err.text, words)))
        print_error("got %d (%s), expected %d (%s)\n", rc, err.text, code, words ? words : "");
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    assert_true(code == 0 || text_names(err.text, "the-file"));
    assert_true(!words || text_names(err.text, words));
    free(copy);
}

static void check_content(const struct ddp_cifar_batch *batch, int count)
{
    assert_int_equal(batch->count, count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(batch->labels[i], cifar_label(i));
        for (int p = 0; p < 3072; p += 61)
            assert_int_equal(batch->pixels[(size_t)i * batch->stride + (size_t)p],
                             cifar_pixel(i, p));
    }
}

static void decodes_both_forms(void **state)
{
    static struct ddp_cifar_batch batch;
    static const int counts[] = {1, 2, 300};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct ddp_err err = DDP_ERR_INIT;
        struct bytes binary = cifar_binary(counts[i]), pickle = cifar_pickle(counts[i]);
        assert_int_equal(ddp_cifar_decode_binary(binary.at, binary.n, "x", &batch, &err), 0);
        check_content(&batch, counts[i]);
        assert_int_equal(ddp_cifar_decode_pickle(pickle.at, pickle.n, "x", &batch, &err), 0);
        check_content(&batch, counts[i]);
        free(binary.at), free(pickle.at);
    }
}

/* Keys in another order, no file names, no memo, a dtype of later NumPy versions, a single label.
 */
static void decodes_variants(void **state)
{
    static struct ddp_cifar_batch batch;
    struct ddp_err err = DDP_ERR_INIT;
    struct bytes b = {0};
    PUT(&b, "\x80\2}(U\4datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85U\1b\x87R"
            "(K\1J\1\0\0\0M\0\f\x86"
            "cnumpy\ndtype\nU\2u1\x89\x88\x87R(K\3U\1|NNNJ\377\377\377\377J\377\377\377\377K\0tb"
            "\x89T\0\f\0\0");
    uint8_t zeros[3072] = {0};
    put(&b, zeros, sizeof zeros);
    PUT(&b, "tbU\6labels]K\7au.");
    assert_int_equal(ddp_cifar_decode_pickle(b.at, b.n, "x", &batch, &err), 0);
    assert_int_equal(batch.count, 1);
    assert_int_equal(batch.labels[0], 7);
    free(b.at);
}

static void refuses_bad_records(void **state)
{
    struct bytes b = cifar_binary(3);
    expect(ddp_cifar_decode_binary, b.at, 0, DDP_EINPUT, "0 bytes");
    for (size_t cut = 1; cut < b.n; cut += 97)
        expect(ddp_cifar_decode_binary, b.at, cut, cut % 3073 ? DDP_EINPUT : 0, NULL);
    b.at[2 * 3073] = 10;
    expect(ddp_cifar_decode_binary, b.at, b.n, DDP_EINPUT, "2|'the-file'");
    free(b.at);
    b = cifar_binary(10001);
    expect(ddp_cifar_decode_binary, b.at, b.n, DDP_EINPUT, "10001 images");
    expect(ddp_cifar_decode_binary, b.at, b.n - 3073, 0, NULL);
    free(b.at);
}

/* A file that is cut anywhere, or has one byte too many, is never accepted. */
static void refuses_every_truncation(void **state)
{
    struct bytes b = cifar_pickle(2);
    for (size_t cut = 0; cut < b.n; cut++)
        expect(ddp_cifar_decode_pickle, b.at, cut, DDP_EINPUT, NULL);
    put(&b, ".", 1);
    expect(ddp_cifar_decode_pickle, b.at, b.n, DDP_EINPUT, NULL);
    free(b.at);
}

static size_t find(const struct bytes *b, const char *text)
{
    void *at = memmem(b->at, b->n, text, strlen(text));
    assert_non_null(at);
    return (size_t)((uint8_t *)at - b->at);
}

/* Changes every byte of a file. The file must be rejected, unless the byte belongs to a pixel, a
 * label, a name or a memo index. */
static void refuses_every_other_opcode(void **state)
{
    static struct ddp_cifar_batch batch;
    struct bytes b = cifar_pickle(1);
    size_t first = find(&b, "\x89T") + 6, last = first + 3072;
    int accepted = 0;
    for (size_t i = 0; i < b.n; i++) {
        if (i >= first && i < last)
            continue;
        for (int bit = 0; bit < 8; bit++) {
            struct ddp_err err = DDP_ERR_INIT;
            b.at[i] ^= (uint8_t)(1 << bit);
            int rc = ddp_cifar_decode_pickle(b.at, b.n, "x", &batch, &err);
            b.at[i] ^= (uint8_t)(1 << bit);
            assert_true(rc == 0 || rc == DDP_EINPUT);
            assert_true(rc != 0 || (batch.count == 1 && batch.pixels == b.at + first));
            accepted += rc == 0;
        }
    }
    /* Accepted changes: 12 memo indices of 1 byte and one of 4; 21 letters of the batch's label and
     * 17 of the file name; 4 bits of the label; and one length, 23 instead of 21, which includes
     * the memo store that follows. */
    assert_int_equal(accepted, 8 * (12 + 4 + 21 + 17) + 4 + 1);
    free(b.at);
}

/* Replaces parts of a valid file by opcodes that a general unpickler would execute. */
static void refuses_what_is_another_object(void **state)
{
    static const struct {
        const char *piece, *instead, *words;
    } traps[] = {
        {"cnumpy.core.multiarray\n_reconstruct\n", "cposix\nsystem\n", NULL},
        {"cnumpy\nndarray\n", "cposix\nsystem\n", NULL},
        {"cnumpy\ndtype\n", "cnumpy\nvoid\n", NULL},
        {"]q\5(K", "h\2]q\5(K", NULL},
        {"K\3e", "K\3ee", NULL},
        {"K\3e", "M\3\1e", NULL},
        {"u1K", "u2K", NULL},
        {"u1K", "O8K", NULL},
        {"|NNN", "<NNN", NULL},
        {"\x80\2}", "\x80\3}", NULL},
        {"}q\1(", "]q\1(", NULL},
        {"labels", "lables", NULL},
        {"data", "Data", NULL},
        {"batch_label", "fine_labels", NULL},
        {"(K\1M\2", "(K\1M\3", NULL},
        {"(K\1M\2", "(K\2M\2", NULL},
        {"\x89T", "\x88T", NULL},
        {"tbU\tfile", "tRU\tfile", NULL},
        {"]q\f(", "}q\f(", NULL},
        {"u.", "s.", NULL},
        {"J\377\377\377\377J", "J\377\377\377\376J", NULL},
    };
    for (size_t i = 0; i < sizeof traps / sizeof *traps; i++) {
        struct bytes b = cifar_pickle(2);
        size_t at = find(&b, traps[i].piece), behind = at + strlen(traps[i].piece);
        struct bytes bad = {0};
        put(&bad, b.at, at);
        put(&bad, traps[i].instead, strlen(traps[i].instead));
        put(&bad, b.at + behind, b.n - behind);
        expect(ddp_cifar_decode_pickle, bad.at, bad.n, DDP_EINPUT, traps[i].words);
        free(b.at), free(bad.at);
    }
}

/* Builds a dict with one entry, which is written by `first` and then by `second`. */
static struct bytes two_entries(void (*first)(struct bytes *, int), int m,
                                void (*second)(struct bytes *, int), int n)
{
    struct bytes b = {0};
    PUT(&b, "\x80\2}q\1(");
    if (first)
        first(&b, m);
    if (second)
        second(&b, n);
    PUT(&b, "u.");
    return b;
}

static void refuses_what_does_not_fit_together(void **state)
{
    static const struct {
        void (*first)(struct bytes *, int);
        int m;
        void (*second)(struct bytes *, int);
        int n;
        const char *words;
    } bad[] = {
        {put_labels, 3, put_data, 2, "3|2"},
        {put_labels, 10001, put_data, 2, "10000"},
        {put_labels, 2, put_labels, 2, NULL},
        {put_data, 1, put_data, 1, NULL},
        {put_data, 1, put_names, 1, NULL},
        {put_labels, 1, NULL, 0, NULL},
        {NULL, 0, NULL, 0, NULL},
        {put_labels, 0, put_data, 0, "10000"},
        {put_labels, 1, put_data, 10001, "10000"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct bytes b = two_entries(bad[i].first, bad[i].m, bad[i].second, bad[i].n);
        expect(ddp_cifar_decode_pickle, b.at, b.n, DDP_EINPUT, bad[i].words);
        free(b.at);
    }
}

/* Lengths near 2^32 or beyond the end of the file. */
static void refuses_lengths_that_lie(void **state)
{
    static const uint32_t lengths[] = {0, 3071, 3073, 6143, 6145, 0x7fffffff, 0xffffffff};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct bytes b = cifar_pickle(2);
        size_t at = find(&b, "\x89T") + 2;
        for (int byte = 0; byte < 4; byte++)
            b.at[at + (size_t)byte] = (uint8_t)(lengths[i] >> (8 * byte));
        expect(ddp_cifar_decode_pickle, b.at, b.n, DDP_EINPUT, NULL);
        free(b.at);
    }
}

static void write_folder(const struct folder *f, const char *sub, int binary)
{
    for (int i = 1; i <= 6; i++) {
        char name[80];
        struct bytes b = binary ? cifar_binary(i) : cifar_pickle(i);
        if (i < 6)
            snprintf(name, sizeof name, "%sdata_batch_%d%s", sub, i, binary ? ".bin" : "");
        else
            snprintf(name, sizeof name, "%stest_batch%s", sub, binary ? ".bin" : "");
        write_plain(folder_at(f, name), b.at, b.n);
        free(b.at);
    }
}

static void reads_folders(void **state)
{
    static const char *const subs[] = {"", "cifar-10-batches-bin/", "cifar-10-batches-py/"};
    for (int binary = 0; binary < 2; binary++)
        for (size_t s = 0; s < 3; s++) {
            struct folder f;
            struct ddp_dataset set;
            struct ddp_err err = DDP_ERR_INIT;
            folder_make(&f);
            if (s > 0)
                assert_int_equal(mkdir(folder_at(&f, subs[s]), 0700), 0);
            write_folder(&f, subs[s], binary);
            const struct ddp_dataset_request request = {.dir = f.path};
            assert_int_equal(ddp_dataset_load("cifar10", &request, &set, &err), 0);
            assert_int_equal(set.train.count, 15);
            assert_int_equal(set.eval.count, 6);
            assert_int_equal(set.train.channels * set.train.height * set.train.width, 3072);
            /* Image 2 of file 3 is the sixth image of the set. */
            assert_int_equal(set.train.pixels[5 * 3072 + 100], cifar_pixel(2, 100));
            assert_int_equal(set.train.labels[5], cifar_label(2));
            assert_false(set.synthetic);
            ddp_dataset_release(&set);
            folder_remove(&f);
        }
}

static void expect_folder(const struct folder *f, int code, const char *words)
{
    struct ddp_dataset set;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_dataset_request request = {.dir = f->path};
    assert_int_equal(ddp_dataset_load("cifar10", &request, &set, &err), code);
    if (!text_names(err.text, words))
        print_error("'%s' not in '%s'\n", words, err.text);
    assert_true(text_names(err.text, words));
}

static void refuses_folders(void **state)
{
    struct folder f;
    folder_make(&f);
    expect_folder(&f, DDP_ENOINPUT, "data_batch_1");
    write_folder(&f, "", 0);
    assert_int_equal(unlink(folder_at(&f, "data_batch_4")), 0);
    expect_folder(&f, DDP_ENOINPUT, "data_batch_4");
    assert_int_equal(mkfifo(folder_at(&f, "data_batch_4"), 0600), 0);
    expect_folder(&f, DDP_EINPUT, "data_batch_4");
    assert_int_equal(unlink(folder_at(&f, "data_batch_4")), 0);
    write_plain(folder_at(&f, "data_batch_4"), "", 0);
    expect_folder(&f, DDP_EINPUT, "data_batch_4");
    /* 40 MiB, sparse: refused before it is read. */
    assert_int_equal(truncate(folder_at(&f, "data_batch_4"), (off_t)40 << 20), 0);
    expect_folder(&f, DDP_EINPUT, "33554432");
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_both_forms),
        cmocka_unit_test(decodes_variants),
        cmocka_unit_test(refuses_bad_records),
        cmocka_unit_test(refuses_every_truncation),
        cmocka_unit_test(refuses_every_other_opcode),
        cmocka_unit_test(refuses_what_is_another_object),
        cmocka_unit_test(refuses_what_does_not_fit_together),
        cmocka_unit_test(refuses_lengths_that_lie),
        cmocka_unit_test(reads_folders),
        cmocka_unit_test(refuses_folders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
