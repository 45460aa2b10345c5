/* Fuzzes JSON from outside: an accepted document can be printed, on several lines or on one, and
 * the printed text is accepted as the same document. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/json_canonical.h"
#include "fuzz/fuzz.h"

/* The printed text has the same canonical form, which is JSON and its own canonical form. */
static void check_canonical(const cJSON *doc, const cJSON *again)
{
    struct ddp_strbuf form[3] = {DDP_STRBUF_INIT, DDP_STRBUF_INIT, DDP_STRBUF_INIT};
    struct ddp_err err = DDP_ERR_INIT;
    cJSON *third;
    if (ddp_json_canonical(doc, NULL, &form[0], &err) != 0 ||
        ddp_json_canonical(again, NULL, &form[1], &err) != 0 ||
        strcmp(form[0].text, form[1].text) != 0 ||
        ddp_json_parse(form[0].text, form[0].length, "canonical", &third, &err) != 0 ||
        ddp_json_canonical(third, NULL, &form[2], &err) != 0 ||
        strcmp(form[0].text, form[2].text) != 0)
        abort();
    cJSON_Delete(third);
    for (int i = 0; i < 3; i++)
        ddp_strbuf_release(&form[i]);
}

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
    check_canonical(doc, again);
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
    rc = ddp_json_parse_digest((const char *)data, size, "input", NULL, &doc, &err);
    if (rc != 0 && (err.code != rc || !err.text[0]))
        abort();
    if (rc == 0)
        cJSON_Delete(doc);
    return 0;
}
