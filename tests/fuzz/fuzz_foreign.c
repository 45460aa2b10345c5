/* Fuzzes the results of other benchmarks. The first byte chooses the format. An accepted result has
 * distinct names and positive values, and names that are safe at the beginning of a line. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "record/foreign_file.h"

static void check(const struct ddp_result *r)
{
    for (size_t i = 0; i < r->count; i++) {
        const struct ddp_result_point *p = &r->points[i];
        if (!isfinite(p->median_ns) || !(p->median_ns > 0) || !memchr(p->id, '\0', sizeof p->id) ||
            strchr(" :", p->id[0]) || strstr(p->id, "##[") || ddp_result_find(r, p->id) != p)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_result result;
    if (size == 0)
        return 0;
    char *text = malloc(size); /* one byte less of input, and the final '\0' */
    if (!text)
        abort();
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    const enum ddp_foreign format =
        (enum ddp_foreign)(DDP_FOREIGN_GBENCH + data[0] % (DDP_FOREIGN_COUNT - DDP_FOREIGN_GBENCH));
    const int rc = ddp_foreign_parse(format, text, size - 1, "input", NULL, &result, &err);
    free(text);
    if (rc != 0) {
        if (err.code != rc || !err.text[0])
            abort();
        return 0;
    }
    check(&result);
    ddp_result_release(&result);
    return 0;
}
