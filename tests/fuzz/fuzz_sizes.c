/* Fuzzes sizes, counts and numbers as users type them. An accepted value is in its range, and a
 * size that is printed exactly is read back as the same size. The first byte chooses the parser. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/coll_kind.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "fuzz/fuzz.h"

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void try_size(const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    uint64_t bytes = 0, again;
    char printed[24], packed[24];
    size_t n = 0;
    int rc = ddp_parse_size(text, &bytes, &err);
    require(rc == 0 || (rc == DDP_EUSAGE && err.text[0]));
    if (rc != 0)
        return;
    require(bytes <= INT64_MAX);
    ddp_format_size(bytes, printed, sizeof printed);
    for (const char *c = printed; *c; c++)
        if (*c != ' ')
            packed[n++] = *c;
    packed[n] = '\0';
    err = DDP_ERR_INIT;
    /* A size printed with four digits may not be a whole number of bytes. */
    if (ddp_parse_size(packed, &again, &err) == 0)
        require(fabs((double)again - (double)bytes) <= 0.001 * (double)bytes);
}

static void try_number(const char *text)
{
    struct ddp_err err = DDP_ERR_INIT;
    int64_t whole;
    double real;
    char time[24];
    int rc = ddp_parse_int(text, -5, 1000000, &whole, &err);
    require(rc == 0 ? whole >= -5 && whole <= 1000000 : rc == DDP_EUSAGE && err.text[0]);
    err = DDP_ERR_INIT;
    rc = ddp_parse_double(text, -1.5, 1e300, &real, &err);
    require(rc == 0 ? real >= -1.5 && real <= 1e300 : rc == DDP_EUSAGE && err.text[0]);
    if (rc == 0)
        ddp_format_ns(real, time, sizeof time);
}

static void try_word(const char *text)
{
    char clean[40];
    int i = ddp_dtype_parse(text);
    require(i >= -1 && i < DDP_DTYPE_COUNT);
    i = ddp_op_parse(text);
    require(i >= -1 && i < DDP_OP_COUNT);
    i = ddp_coll_parse(text);
    require(i >= -1 && i < DDP_COLL_COUNT);
    ddp_printable(text, clean, sizeof clean);
    require(strlen(clean) < sizeof clean);
    for (const char *c = clean; *c; c++)
        require((unsigned char)*c >= 0x20 && *c != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    char *text = malloc(size);
    require(text != NULL);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    if (data[0] % 4 == 0)
        try_word(text);
    else if (data[0] % 4 == 1)
        try_number(text);
    else
        try_size(text);
    free(text);
    return 0;
}
