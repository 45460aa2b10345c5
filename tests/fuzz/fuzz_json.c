/* Fuzzes JSON from outside: an accepted document can be printed, on several lines or on one, and
 * the printed text is accepted as the same document. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "fuzz/fuzz.h"

static void print_and_read(const cJSON *doc,
                           int (*print)(const cJSON *, struct ddp_strbuf *, struct ddp_err *))
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_err err = DDP_ERR_INIT;
    cJSON *again;
    if (print(doc, &text, &err) != 0 ||
        ddp_json_parse(text.text, text.length, "again", &again, &err))
        abort();
    /* Numbers too large for a double became infinities, which are printed as null. */
    struct ddp_strbuf twice = DDP_STRBUF_INIT;
    if (print(again, &twice, &err) != 0 || strcmp(text.text, twice.text) != 0)
        abort();
    cJSON_Delete(again);
    ddp_strbuf_release(&text);
    ddp_strbuf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddp_err err = DDP_ERR_INIT;
    cJSON *doc = NULL;
    int rc = ddp_json_parse((const char *)data, size, "input", &doc, &err);
    if (rc != 0 && (err.code != rc || !err.text[0]))
        abort();
    if (rc == 0) {
        print_and_read(doc, ddp_json_print);
        print_and_read(doc, ddp_json_print_line);
        cJSON_Delete(doc);
    }
    err = DDP_ERR_INIT;
    rc = ddp_json_check_digest((const char *)data, size, "input", &err);
    if (rc != 0 && (err.code != rc || !err.text[0]))
        abort();
    return 0;
}
