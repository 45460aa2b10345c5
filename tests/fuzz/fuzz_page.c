/* Fuzzes stored documents. Pages about an accepted document can be built. A text of the document
 * adds no element to a page. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "report/page.h"

/* Aborts if the page has an element that no page has. */
static void check_html(const char *text)
{
    static const char *const elements[] = {
        "!DOCTYPE", "html",   "head",    "meta",   "title",  "style",      "body", "svg", "defs",
        "path",     "header", "h1",      "h2",     "h3",     "p",          "main", "nav", "ul",
        "li",       "a",      "section", "div",    "figure", "figcaption", "span", "g",   "use",
        "text",     "table",  "thead",   "tbody",  "tr",     "th",         "td",   "dl",  "dt",
        "dd",       "code",   "b",       "strong", "footer"};
    for (const char *at = text; (at = strchr(at, '<'));) {
        at += at[1] == '/' ? 2 : 1;
        const size_t n = strcspn(at, " />\n");
        bool known = false;
        for (size_t i = 0; i < sizeof elements / sizeof *elements && !known; i++)
            known = strlen(elements[i]) == n && strncmp(at, elements[i], n) == 0;
        if (!known)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"a<b>.json", "c.json"};
    const struct ddp_result_rules rules = {.accept_edited = true};
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_stored docs[2];
    for (size_t d = 0; d < 2; d++) {
        const int rc = ddp_stored_parse((const char *)data, size, paths[d], &rules, &docs[d], &err);
        if (rc != 0 && (err.code != rc || !err.text[0] || d > 0))
            abort();
        if (rc != 0)
            return 0;
    }
    for (int markdown = 0; markdown < 2; markdown++)
        for (size_t count = 1; count <= 2; count++) {
            struct ddp_strbuf out = DDP_STRBUF_INIT;
            if (ddp_page_build(docs, paths, count, markdown != 0, &out, &err) != 0)
                abort();
            if (!markdown)
                check_html(out.text);
            ddp_strbuf_release(&out);
        }
    ddp_stored_release(&docs[0]);
    ddp_stored_release(&docs[1]);
    return 0;
}
