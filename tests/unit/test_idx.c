/* IDX files: valid ones are read exactly; every kind of malformed file is rejected with its code.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <cmocka.h>

#include "idx_files.h"
#include "model/dataset.h"

#define PIXELS 60 /* 3 x 4 x 5 */

/* Reads path and expects `code`; on success the content must be 0, 1, 2, ... */
static void expect(const char *path, int ndim, int code)
{
    uint32_t dims[DDP_IDX_MAX_DIMS] = {77, 77, 77, 77};
    uint8_t *data = NULL;
    struct ddp_err err = DDP_ERR_INIT;
    int rc = ddp_idx_read(path, ndim, dims, &data, &err);
    if (rc != code)
        print_error("%s: got %d (%s), expected %d\n", path, rc, err.text, code);
    assert_int_equal(rc, code);
    assert_int_equal(err.code, code);
    if (code == 0) {
        for (int i = 0; i < PIXELS; i++)
            assert_int_equal(data[i], i);
        free(data);
        return;
    }
    assert_null(data);
    assert_int_equal(dims[0], 77); /* outputs are set only on success */
    assert_non_null(strstr(err.text, path));
}

static size_t good_file(uint8_t *out)
{
    const uint32_t dims[] = {3, 4, 5};
    size_t n = idx_header(out, 3, dims);
    for (int i = 0; i < PIXELS; i++)
        out[n++] = (uint8_t)i;
    return n;
}

static void reads_plain_and_gzip(void **state)
{
    struct folder f;
    uint8_t file[128];
    size_t n = good_file(file);
    folder_make(&f);
    write_plain(folder_at(&f, "plain"), file, n);
    write_gzip(folder_at(&f, "gz"), file, n);
    expect(folder_at(&f, "plain"), 3, 0);
    expect(folder_at(&f, "gz"), 3, 0);
    folder_remove(&f);
}

/* A file of several gzip members in sequence, cut at any byte, as pigz and cat write them. */
static void reads_several_members(void **state)
{
    struct folder f;
    uint8_t file[128], whole[512];
    size_t n = good_file(file), sizes[3], used = 0;
    folder_make(&f);
    for (size_t cut = 0; cut <= n; cut++) {
        write_gzip(folder_at(&f, "a"), file, cut);
        write_gzip(folder_at(&f, "b"), file + cut, n - cut);
        used = 0;
        for (int i = 0; i < 2; i++) {
            uint8_t *member = read_back(folder_at(&f, i ? "b" : "a"), &sizes[i]);
            memcpy(whole + used, member, sizes[i]);
            used += sizes[i];
            free(member);
        }
        write_plain(folder_at(&f, "two"), whole, used);
        expect(folder_at(&f, "two"), 3, 0);
    }
    /* The second member is cut, damaged, or followed by other bytes. */
    for (size_t less = 1; less < sizes[1]; less++) {
        write_plain(folder_at(&f, "cut"), whole, used - less);
        expect(folder_at(&f, "cut"), 3, DDP_EINPUT);
    }
    whole[used] = 0x1f;
    write_plain(folder_at(&f, "more"), whole, used + 1);
    expect(folder_at(&f, "more"), 3, DDP_EINPUT);
    whole[used] = 'x';
    write_plain(folder_at(&f, "behind"), whole, used + 1);
    expect(folder_at(&f, "behind"), 3, DDP_EINPUT);
    folder_remove(&f);
}

/* A file that is cut at any byte, or has one byte too many, always fails with DDP_EINPUT. */
static void refuses_every_truncation(void **state)
{
    struct folder f;
    uint8_t file[128];
    size_t n = good_file(file), gz_bytes;
    folder_make(&f);
    write_gzip(folder_at(&f, "whole.gz"), file, n);
    uint8_t *gz = read_back(folder_at(&f, "whole.gz"), &gz_bytes);
    for (size_t cut = 0; cut < n; cut++) {
        write_plain(folder_at(&f, "cut"), file, cut);
        expect(folder_at(&f, "cut"), 3, DDP_EINPUT);
    }
    for (size_t cut = 0; cut < gz_bytes; cut++) {
        write_plain(folder_at(&f, "cut.gz"), gz, cut);
        expect(folder_at(&f, "cut.gz"), 3, DDP_EINPUT);
    }
    file[n] = 0;
    write_plain(folder_at(&f, "long"), file, n + 1);
    expect(folder_at(&f, "long"), 3, DDP_EINPUT);
    write_gzip(folder_at(&f, "long.gz"), file, n + 1);
    expect(folder_at(&f, "long.gz"), 3, DDP_EINPUT);
    gz = realloc(gz, gz_bytes + 1);
    gz[gz_bytes] = 'x';
    write_plain(folder_at(&f, "tail.gz"), gz, gz_bytes + 1);
    expect(folder_at(&f, "tail.gz"), 3, DDP_EINPUT);
    free(gz);
    folder_remove(&f);
}

/* Flips every byte of a gzip file in turn. The file is rejected, or has the same content because
 * the byte belongs to a header field such as the time. */
static void refuses_damage(void **state)
{
    struct folder f;
    uint8_t file[128];
    size_t n = good_file(file), gz_bytes;
    folder_make(&f);
    write_gzip(folder_at(&f, "whole.gz"), file, n);
    uint8_t *gz = read_back(folder_at(&f, "whole.gz"), &gz_bytes);
    for (size_t i = 0; i < gz_bytes; i++) {
        uint32_t dims[3];
        uint8_t *data = NULL;
        struct ddp_err err = DDP_ERR_INIT;
        gz[i] ^= 0xff;
        write_plain(folder_at(&f, "bad.gz"), gz, gz_bytes);
        int rc = ddp_idx_read(folder_at(&f, "bad.gz"), 3, dims, &data, &err);
        assert_true(rc == 0 || rc == DDP_EINPUT);
        assert_true(rc != 0 || memcmp(data, file + 16, PIXELS) == 0);
        free(data);
        gz[i] ^= 0xff;
    }
    free(gz);
    folder_remove(&f);
}

static void refuses_what_is_not_idx(void **state)
{
    static const struct {
        uint8_t head[4];
        uint32_t dims[3];
    } bad[] = {
        {{1, 0, 8, 3}, {3, 4, 5}},
        {{0, 1, 8, 3}, {3, 4, 5}},
        {{0, 0, 13, 3}, {3, 4, 5}},
        {{0, 0, 8, 1}, {3, 4, 5}},
        {{0, 0, 8, 255}, {3, 4, 5}},
        {{0, 0, 8, 3}, {0, 4, 5}},
        {{0, 0, 8, 3}, {3, 0, 5}},
        {{0, 0, 8, 3}, {0xffffffff, 0xffffffff, 0xffffffff}},
        /* The products 2^66 and 2^64 would wrap to a small number. */
        {{0, 0, 8, 3}, {0x80000000, 0x80000000, 16}},
        {{0, 0, 8, 3}, {0x10000, 0x10000, 0x10000}},
        {{0, 0, 8, 3}, {0x80000000, 0x80000000, 4}},
    };
    struct folder f;
    uint8_t file[128];
    folder_make(&f);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t n = good_file(file);
        idx_header(file, 3, bad[i].dims);
        memcpy(file, bad[i].head, 4);
        write_plain(folder_at(&f, "bad"), file, n);
        expect(folder_at(&f, "bad"), 3, DDP_EINPUT);
        write_gzip(folder_at(&f, "bad.gz"), file, n);
        expect(folder_at(&f, "bad.gz"), 3, DDP_EINPUT);
    }
    write_plain(folder_at(&f, "text"), "hello, world: not a data set", 28);
    expect(folder_at(&f, "text"), 3, DDP_EINPUT);
    folder_remove(&f);
}

/* Two hostile files: 64 MiB of zeros after a header that promises 60 bytes, and a header that
 * promises more than the compressed length can hold and must not be allocated. */
static void refuses_gzip_bombs(void **state)
{
    struct folder f;
    uint8_t head[16];
    const uint32_t small[] = {3, 4, 5}, huge[] = {60000, 200, 200};
    static uint8_t zeros[1 << 16];
    folder_make(&f);
    gzFile gz = gzopen(folder_at(&f, "bomb.gz"), "wb9");
    gzwrite(gz, head, (unsigned)idx_header(head, 3, small));
    for (int i = 0; i < 1024; i++)
        gzwrite(gz, zeros, sizeof zeros);
    gzclose(gz);
    expect(folder_at(&f, "bomb.gz"), 3, DDP_EINPUT);
    write_gzip(folder_at(&f, "promise.gz"), head, idx_header(head, 3, huge));
    expect(folder_at(&f, "promise.gz"), 3, DDP_EINPUT);
    folder_remove(&f);
}

static void names_what_cannot_be_opened(void **state)
{
    struct folder f;
    uint8_t file[128];
    folder_make(&f);
    expect(folder_at(&f, "missing"), 3, DDP_ENOINPUT);
    expect(f.path, 3, DDP_EINPUT); /* a folder */
    assert_int_equal(mkfifo(folder_at(&f, "fifo"), 0600), 0);
    expect(folder_at(&f, "fifo"), 3, DDP_EINPUT); /* must not hang */
    write_plain(folder_at(&f, "locked"), file, good_file(file));
    assert_int_equal(chmod(folder_at(&f, "locked"), 0), 0);
    assert_int_equal(chmod(f.path, 0755), 0);
    /* root can read every file, so a child process drops its privileges. */
    pid_t child = fork();
    if (child == 0) {
        uint32_t dims[3];
        uint8_t *data;
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(99);
        int rc = ddp_idx_read(folder_at(&f, "locked"), 3, dims, &data, NULL);
        _exit(-rc);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), -DDP_EPERM);
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_several_members),       cmocka_unit_test(reads_plain_and_gzip),
        cmocka_unit_test(refuses_every_truncation),    cmocka_unit_test(refuses_damage),
        cmocka_unit_test(refuses_what_is_not_idx),     cmocka_unit_test(refuses_gzip_bombs),
        cmocka_unit_test(names_what_cannot_be_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
