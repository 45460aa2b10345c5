/* Decodes the two forms of CIFAR-10 files. */
#include <stdbool.h>
#include <string.h>

#include "model/cifar.h"

#define RECORD (1 + DDP_CIFAR_PIXELS) /* bytes of a record of the binary form */

int ddp_cifar_decode_binary(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err)
{
    size_t count = n / RECORD;
    if (n == 0 || n % RECORD != 0)
        return ddp_fail(err, DDP_EINPUT,
                        "'%s' has %zu bytes, which is not a positive multiple of %d", name, n,
                        RECORD);
    if (count > DDP_CIFAR_MAX_IMAGES)
        return ddp_fail(err, DDP_EINPUT, "'%s' holds %zu images, but at most %d are accepted", name,
                        count, DDP_CIFAR_MAX_IMAGES);
    for (size_t i = 0; i < count; i++) {
        uint8_t label = bytes[i * RECORD];
        if (label >= DDP_CIFAR_CLASSES)
            return ddp_fail(err, DDP_EINPUT, "label %zu of '%s' is %u, but at most %d is legal", i,
                            name, label, DDP_CIFAR_CLASSES - 1);
        out->labels[i] = label;
    }
    out->count = count;
    out->pixels = bytes + 1;
    out->stride = RECORD;
    return 0;
}

/* The python form of CIFAR-10, read from left to right by a fixed grammar.
 *
 * Python's Lib/pickletools.py documents the opcodes. Python 2's cPickle stores an object in its
 * memo (BINPUT) only if a second reference to the object exists. The decoder therefore accepts an
 * optional memo store after each object. The decoder never reads from the memo. */

enum opcode {
    MARK = '(',
    STOP = '.',
    APPEND = 'a',
    APPENDS = 'e',
    BININT = 'J',
    BININT1 = 'K',
    BININT2 = 'M',
    NONE = 'N',
    REDUCE = 'R',
    BINSTRING = 'T',
    SHORT_BINSTRING = 'U',
    EMPTY_LIST = ']',
    BUILD = 'b',
    GLOBAL = 'c',
    BINPUT = 'q',
    LONG_BINPUT = 'r',
    TUPLE = 't',
    SETITEMS = 'u',
    EMPTY_DICT = '}',
    PROTO = 0x80,
    TUPLE1 = 0x85,
    TUPLE2 = 0x86,
    TUPLE3 = 0x87,
    NEWTRUE = 0x88,
    NEWFALSE = 0x89
};

struct pickle {
    const uint8_t *bytes;
    size_t n, pos;
    const char *name;
    struct ddp_err *err;
};

/* Records the error. The constant result shows the compiler that the caller does not use unset
 * outputs. */
static int refuse(const struct pickle *p, const char *what)
{
    ddp_fail(p->err, DDP_EINPUT, "'%s' is not a CIFAR-10 batch in the python form: byte %zu: %s",
             p->name, p->pos, what);
    return DDP_EINPUT;
}

static int next(const struct pickle *p)
{
    return p->pos < p->n ? p->bytes[p->pos] : -1;
}

static int literal(struct pickle *p, const void *want, size_t n, const char *what)
{
    if (n > p->n - p->pos || memcmp(p->bytes + p->pos, want, n) != 0)
        return refuse(p, what);
    p->pos += n;
    return 0;
}

static int op(struct pickle *p, enum opcode code, const char *what)
{
    uint8_t byte = (uint8_t)code;
    return literal(p, &byte, 1, what);
}

static int number(struct pickle *p, int width, uint32_t *out)
{
    if ((size_t)width > p->n - p->pos)
        return refuse(p, "the file ends inside a number");
    *out = 0;
    for (int i = 0; i < width; i++) /* little-endian */
        *out |= (uint32_t)p->bytes[p->pos + (size_t)i] << (8 * i);
    p->pos += (size_t)width;
    return 0;
}

/* Skips a store into the memo, if one follows. */
static int memo(struct pickle *p)
{
    uint32_t ignored;
    if (next(p) != BINPUT && next(p) != LONG_BINPUT)
        return 0;
    int width = next(p) == BINPUT ? 1 : 4;
    p->pos++;
    return number(p, width, &ignored);
}

static int put(struct pickle *p, enum opcode code, const char *what)
{
    DDP_TRY(op(p, code, what));
    return memo(p);
}

/* Reads an int of one, two or four bytes. */
static int integer(struct pickle *p, const char *what, uint32_t *out)
{
    int code = next(p);
    if (code != BININT1 && code != BININT2 && code != BININT)
        return refuse(p, what);
    p->pos++;
    return number(p, code == BININT1 ? 1 : code == BININT2 ? 2 : 4, out);
}

static int string(struct pickle *p, const char *what, const uint8_t **text, size_t *length)
{
    int code = next(p);
    uint32_t n;
    if (code != SHORT_BINSTRING && code != BINSTRING)
        return refuse(p, what);
    p->pos++;
    DDP_TRY(number(p, code == SHORT_BINSTRING ? 1 : 4, &n));
    if (n > p->n - p->pos)
        return refuse(p, "a string is longer than the file");
    *text = p->bytes + p->pos;
    *length = n;
    p->pos += n;
    return memo(p);
}

static int exact_string(struct pickle *p, const char *want, const char *what)
{
    const uint8_t *text;
    size_t length;
    DDP_TRY(string(p, what, &text, &length));
    if (length != strlen(want) || memcmp(text, want, length) != 0)
        return refuse(p, what);
    return 0;
}

static int global(struct pickle *p, const char *lines, const char *what)
{
    DDP_TRY(op(p, GLOBAL, what));
    DDP_TRY(literal(p, lines, strlen(lines), what));
    return memo(p);
}

/* Reads the call _reconstruct(ndarray, (0,), 'b'), which makes an empty array. */
static int empty_array(struct pickle *p)
{
    DDP_TRY(global(p, "numpy.core.multiarray\n_reconstruct\n", "the data is not a numpy array"));
    DDP_TRY(global(p, "numpy\nndarray\n", "the data is not a numpy array"));
    DDP_TRY(literal(p, "K\0", 2, "the array is not created from (0,)"));
    DDP_TRY(put(p, TUPLE1, "the array is not created from (0,)"));
    DDP_TRY(exact_string(p, "b", "the array is not created from 'b'"));
    DDP_TRY(put(p, TUPLE3, "the array is not created from three arguments"));
    return put(p, REDUCE, "the array is not created");
}

/* Reads dtype('u1', 0, 1) with the state (3, '|', None, None, None, -1, -1, 0): unsigned bytes. */
static int byte_type(struct pickle *p)
{
    static const char rest[] = "NNNJ\377\377\377\377J\377\377\377\377K\0t";
    DDP_TRY(global(p, "numpy\ndtype\n", "the array has no dtype"));
    DDP_TRY(exact_string(p, "u1", "the array's elements are not unsigned bytes"));
    if (next(p) == NEWFALSE) /* newer versions of NumPy write False, True */
        DDP_TRY(literal(p, "\x89\x88", 2, "the dtype is not ('u1', False, True)"));
    else
        DDP_TRY(literal(p, "K\0K\1", 4, "the dtype is not ('u1', 0, 1)"));
    DDP_TRY(put(p, TUPLE3, "the dtype is not created from three arguments"));
    DDP_TRY(put(p, REDUCE, "the dtype is not created"));
    DDP_TRY(literal(p, "(K\3", 3, "the dtype's state does not have version 3"));
    DDP_TRY(exact_string(p, "|", "the dtype has a byte order"));
    DDP_TRY(literal(p, rest, sizeof rest - 1, "the dtype's state is not that of unsigned bytes"));
    DDP_TRY(memo(p));
    return op(p, BUILD, "the dtype's state is not set");
}

static int array(struct pickle *p, struct ddp_cifar_batch *out)
{
    uint32_t rows, columns;
    const uint8_t *text;
    size_t length;
    DDP_TRY(empty_array(p));
    DDP_TRY(literal(p, "(K\1", 3, "the array's state does not have version 1"));
    DDP_TRY(integer(p, "the array has no rows", &rows));
    DDP_TRY(integer(p, "the array has no columns", &columns));
    if (rows == 0 || rows > DDP_CIFAR_MAX_IMAGES || columns != DDP_CIFAR_PIXELS)
        return refuse(p, "the array is not 1 to 10000 rows of 3072");
    DDP_TRY(put(p, TUPLE2, "the array does not have two dimensions"));
    DDP_TRY(byte_type(p));
    DDP_TRY(op(p, NEWFALSE, "the array is in Fortran order"));
    DDP_TRY(string(p, "the array has no bytes", &text, &length));
    if (length != (size_t)rows * columns)
        return refuse(p, "the length of the array is not rows times columns");
    DDP_TRY(put(p, TUPLE, "the array's state has too many members"));
    out->pixels = text;
    out->stride = DDP_CIFAR_PIXELS;
    out->count = rows;
    return op(p, BUILD, "the array's state is not set");
}

static int label(struct pickle *p, uint8_t *labels, size_t *count)
{
    uint32_t value;
    DDP_TRY(op(p, BININT1, "a label is not a small int"));
    DDP_TRY(number(p, 1, &value));
    if (value >= DDP_CIFAR_CLASSES)
        return refuse(p, "a label is above 9");
    if (*count == DDP_CIFAR_MAX_IMAGES)
        return refuse(p, "more than 10000 labels");
    labels[(*count)++] = (uint8_t)value;
    return 0;
}

static int file_name(struct pickle *p, uint8_t *labels, size_t *count)
{
    const uint8_t *text;
    size_t length;
    ++*count;
    return string(p, "a file name is not a string", &text, &length);
}

/* Reads a list whose items are appended in groups. A label may also be appended alone. `item` is
 * the function that reads one item, label() or file_name(). */
static int list(struct pickle *p, int (*item)(struct pickle *, uint8_t *, size_t *),
                uint8_t *labels, size_t *count)
{
    *count = 0;
    DDP_TRY(put(p, EMPTY_LIST, "the value is not a list"));
    for (;;) {
        if (next(p) == MARK) {
            p->pos++;
            while (next(p) != APPENDS)
                DDP_TRY(item(p, labels, count));
            p->pos++;
        } else if (next(p) == BININT1 && item == label) {
            DDP_TRY(item(p, labels, count));
            DDP_TRY(op(p, APPEND, "a list item is not appended"));
        } else {
            return 0;
        }
    }
}

/* Reads a key and its value. *seen has one bit per key. */
static int entry(struct pickle *p, unsigned *seen, size_t *label_count, struct ddp_cifar_batch *out)
{
    static const char *const keys[] = {"data", "labels", "batch_label", "filenames"};
    const uint8_t *text;
    size_t length, key = 0, names;
    DDP_TRY(string(p, "a key is not a string", &text, &length));
    while (key < 4 && (length != strlen(keys[key]) || memcmp(text, keys[key], length) != 0))
        key++;
    if (key == 4)
        return refuse(p, "a key is not data, labels, batch_label or filenames");
    if (*seen & 1u << key)
        return refuse(p, "a key occurs twice");
    *seen |= 1u << key;
    switch (key) {
    case 0:
        return array(p, out);
    case 1:
        return list(p, label, out->labels, label_count);
    case 2:
        return string(p, "the batch's label is not a string", &text, &length);
    default:
        return list(p, file_name, NULL, &names);
    }
}

int ddp_cifar_decode_pickle(const uint8_t *bytes, size_t n, const char *name,
                            struct ddp_cifar_batch *out, struct ddp_err *err)
{
    struct pickle p = {bytes, n, 0, name, err};
    unsigned seen = 0;
    size_t label_count = 0;
    DDP_TRY(literal(&p, "\x80\2", 2, "the file is not a pickle of protocol 2"));
    DDP_TRY(put(&p, EMPTY_DICT, "the object is not a dict"));
    DDP_TRY(op(&p, MARK, "the dict is empty"));
    while (next(&p) != SETITEMS)
        DDP_TRY(entry(&p, &seen, &label_count, out));
    p.pos++;
    DDP_TRY(op(&p, STOP, "the pickle does not end after the dict"));
    if (p.pos != n)
        return refuse(&p, "bytes follow the pickle");
    if ((seen & 3) != 3)
        return refuse(&p, "the data or the labels are missing");
    if (label_count != out->count)
        return ddp_fail(err, DDP_EINPUT, "'%s' has %zu labels for %zu images", name, label_count,
                        out->count);
    return 0;
}
