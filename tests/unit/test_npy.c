/* NPY files: written files are read back, NumPy's files are read, and all others are refused. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/mem.h"
#include "base/npy.h"

static char folder[] = "/tmp/ddpbench-npy-XXXXXX";
static const char file[] = "a.npy";

static int enter(void **state)
{
    return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave(void **state)
{
    remove(file);
    return chdir("/") | rmdir(folder);
}

/* Writes a file of version 1.0 with this header text and `values` floats 0, 1, 2, ... */
static void put(const char *header, size_t values)
{
    FILE *f = fopen(file, "wb");
    const size_t n = strlen(header);
    assert_non_null(f);
    fwrite("\x93NUMPY\x01\x00", 1, 8, f);
    fputc((int)(n & 255), f);
    fputc((int)(n >> 8), f);
    fwrite(header, 1, n, f);
    for (size_t i = 0; i < values; i++) {
        const float value = (float)i;
        fwrite(&value, sizeof value, 1, f);
    }
    fclose(f);
}

static void what_is_written_is_read(void **state)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_npy out, in;
    float row[5], got[5];
    assert_int_equal(ddp_npy_create(file, 5, &out, &err), 0);
    for (int rows = 0; rows < 12; rows++) {
        /* The file is valid after every row. */
        assert_int_equal(ddp_npy_open(file, &in, &err), 0);
        assert_int_equal(in.rows, rows);
        assert_int_equal(in.columns, 5);
        assert_int_equal(in.data_offset % 64, 0);
        for (int r = 0; r < rows; r++) {
            assert_int_equal(ddp_npy_read(&in, (size_t)r, 1, got, 4, &err), 0);
            for (int c = 0; c < 4; c++)
                assert_true(got[c] == (float)(10 * r + c + 1));
        }
        ddp_npy_close(&in);
        for (int c = 0; c < 5; c++)
            row[c] = (float)(10 * rows + c);
        assert_int_equal(ddp_npy_append(&out, row, &err), 0);
    }
    ddp_npy_close(&out);
    ddp_npy_close(&out); /* closing twice is allowed */
}

static void what_numpy_writes_is_read(void **state)
{
    static const struct {
        const char *header;
        size_t rows, columns;
    } good[] = {
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }       \n", 1, 6},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 2, 3},
        {"{'shape':(3,2),'fortran_order':False,'descr':'<f4'}", 3, 2},
        {"{\"descr\": \"<f4\", \"fortran_order\": False, \"shape\": (1, 6,)}\n", 1, 6},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(good); i++) {
        struct ddp_err err = DDP_ERR_INIT;
        struct ddp_npy npy;
        float value;
        put(good[i].header, 6);
        if (ddp_npy_open(file, &npy, &err) != 0)
            fail_msg("%s", err.text);
        assert_int_equal(npy.rows, good[i].rows);
        assert_int_equal(npy.columns, good[i].columns);
        assert_int_equal(ddp_npy_read(&npy, npy.rows - 1, npy.columns - 1, &value, 1, &err), 0);
        assert_true(value == 5.0f);
        ddp_npy_close(&npy);
    }
}

static void nothing_else_is(void **state)
{
    static const struct {
        const char *header;
        size_t values;
        const char *words;
    } bad[] = {
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (6,), }\n", 12, "float32"},
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }\n", 6, "float32"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (6,), }\n", 6, "float32"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", 6, "Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (), }\n", 1, "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }\n", 6, "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-6,), }\n", 6, "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0,), }\n", 0, "no columns"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (7,), }\n", 6, "promises"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (5,), }\n", 6, "promises"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387905, 4), }\n", 4,
         "promises"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }\n", 6,
         "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}\n", 6, "dimensions"},
        {"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}\n", 6,
         "dimensions"},
        {"{'descr': '<f4', 'shape': (6,)}\n", 6, "dimensions"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)} x\n", 6, "dimensions"},
        {"{'descr': '<f4\", 'fortran_order': False, 'shape': (6,)}\n", 6, "float32"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,)", 6, "dimensions"},
        {"{", 6, "dimensions"},
        {"", 6, "dimensions"},
    };
    struct ddp_npy npy;
    struct ddp_err err;
    for (size_t i = 0; i < DDP_COUNT_OF(bad); i++) {
        err = DDP_ERR_INIT;
        put(bad[i].header, bad[i].values);
        assert_int_equal(ddp_npy_open(file, &npy, &err), DDP_EINPUT);
        if (!strstr(err.text, bad[i].words))
            fail_msg("%s: '%s' is not in '%s'", bad[i].header, bad[i].words, err.text);
    }
    /* Refuses every prefix of a good file, and every other value of each byte that the format
     * fixes. */
    put("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", 6);
    struct stat st;
    assert_int_equal(stat(file, &st), 0);
    for (off_t n = st.st_size - 1; n >= 0; n--) {
        err = DDP_ERR_INIT;
        assert_int_equal(truncate(file, n), 0);
        assert_int_equal(ddp_npy_open(file, &npy, &err), DDP_EINPUT);
    }
    for (long at = 0; at < 8; at++) {
        put("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", 6);
        FILE *f = fopen(file, "r+b");
        assert_non_null(f);
        fseek(f, at, SEEK_SET);
        fputc(0xAA, f);
        fclose(f);
        err = DDP_ERR_INIT;
        assert_int_equal(ddp_npy_open(file, &npy, &err), DDP_EINPUT);
    }
}

static void missing_and_odd_files_are_refused(void **state)
{
    struct ddp_npy npy;
    struct ddp_err err = DDP_ERR_INIT;
    assert_int_equal(ddp_npy_open("missing.npy", &npy, &err), DDP_ENOINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_npy_open("/tmp", &npy, &err), DDP_EINPUT);
    err = DDP_ERR_INIT;
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_int_equal(ddp_npy_open("pipe", &npy, &err), DDP_EINPUT);
    remove("pipe");
    err = DDP_ERR_INIT;
    assert_int_equal(ddp_npy_create("no/such/folder.npy", 1, &npy, &err), DDP_ECREATE);
    /* A file that shrinks while it is open. */
    float value;
    err = DDP_ERR_INIT;
    put("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }\n", 6);
    assert_int_equal(ddp_npy_open(file, &npy, &err), 0);
    assert_int_equal(truncate(file, 80), 0);
    assert_int_equal(ddp_npy_read(&npy, 0, 5, &value, 1, &err), DDP_EINPUT);
    ddp_npy_close(&npy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(what_numpy_writes_is_read),
        cmocka_unit_test(nothing_else_is),
        cmocka_unit_test(missing_and_odd_files_are_refused),
    };
    return cmocka_run_group_tests(tests, enter, leave);
}
