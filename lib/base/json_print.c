/* Prints JSON documents. The printer of cJSON is not used, because it indents by tabs and prints
 * large counts as 1e+15. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_impl.h"

/* The value of `indent` for documents on one line. */
#define ONE_LINE SIZE_MAX

/* Returns false if a part of the item is missing or has a type that cannot be printed. */
static bool print_item(const cJSON *item, size_t indent, struct ddp_strbuf *out);

static void print_number(double v, struct ddp_strbuf *out)
{
    char text[32];
    if (!isfinite(v)) {
        ddp_strbuf_add(out, "null");
        return;
    }
    if (v == floor(v) && fabs(v) <= 0x1p53) {
        ddp_strbuf_addf(out, "%.0f", v + 0.0); /* + 0.0 turns -0 into 0 */
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    ddp_strbuf_add(out, text);
}

/* Returns the number of leading bytes that need no escape. Control characters from U+0080 to U+009F
 * are escaped, because terminals obey them. '<' is escaped, because "</script" would end a script
 * that embeds the document. */
static size_t plain_bytes(const char *s)
{
    const unsigned char *u = (const unsigned char *)s;
    size_t n = 0;
    while (u[n] >= 0x20 && u[n] != '"' && u[n] != '\\' && u[n] != '<' && u[n] != 0x7F &&
           !(u[n] == 0xC2 && u[n + 1] >= 0x80 && u[n + 1] < 0xA0))
        n++;
    return n;
}

static void print_string(const char *s, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "\"");
    for (; *s; s++) {
        size_t plain = plain_bytes(s);
        ddp_strbuf_add_n(out, s, plain);
        s += plain;
        if (*s == '\0')
            break;
        if (*s == '"' || *s == '\\')
            ddp_strbuf_addf(out, "\\%c", *s);
        else if (*s == '\n')
            ddp_strbuf_add(out, "\\n");
        else if (*s == '\t')
            ddp_strbuf_add(out, "\\t");
        else if ((unsigned char)*s == 0xC2) /* the second byte is the code point */
            ddp_strbuf_addf(out, "\\u%04x", (unsigned char)*++s);
        else
            ddp_strbuf_addf(out, "\\u%04x", (unsigned char)*s);
    }
    ddp_strbuf_add(out, "\"");
}

static bool all_plain(const cJSON *array)
{
    for (const cJSON *c = array->child; c; c = c->next)
        if (cJSON_IsObject(c) || cJSON_IsArray(c))
            return false;
    return true;
}

static void new_line(size_t indent, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "\n");
    ddp_strbuf_pad(out, indent);
}

static bool print_members(const cJSON *item, size_t indent, struct ddp_strbuf *out)
{
    bool object = cJSON_IsObject(item), whole = true;
    bool one_line = indent == ONE_LINE || (!object && all_plain(item));
    const size_t inner = indent == ONE_LINE ? ONE_LINE : indent + 2;
    if (item->valueint == DDP_JSON_INCOMPLETE)
        return false;
    ddp_strbuf_add(out, object ? "{" : "[");
    for (const cJSON *c = item->child; c && whole; c = c->next) {
        if (c != item->child)
            ddp_strbuf_add(out, one_line ? ", " : ",");
        if (!one_line)
            new_line(inner, out);
        if (object) {
            print_string(c->string, out);
            ddp_strbuf_add(out, ": ");
        }
        whole = print_item(c, inner, out);
    }
    if (item->child && !one_line)
        new_line(indent, out);
    ddp_strbuf_add(out, object ? "}" : "]");
    return whole;
}

static bool print_item(const cJSON *item, size_t indent, struct ddp_strbuf *out)
{
    if (cJSON_IsObject(item) || cJSON_IsArray(item))
        return print_members(item, indent, out);
    if (cJSON_IsNumber(item))
        print_number(item->valuedouble, out);
    else if (cJSON_IsRaw(item)) /* a number that the caller formatted */
        ddp_strbuf_add(out, item->valuestring);
    else if (cJSON_IsString(item))
        print_string(item->valuestring, out);
    else if (cJSON_IsBool(item))
        ddp_strbuf_add(out, cJSON_IsTrue(item) ? "true" : "false");
    else if (cJSON_IsNull(item))
        ddp_strbuf_add(out, "null");
    else
        return false;
    return true;
}

static int print_document(const cJSON *doc, size_t indent, struct ddp_strbuf *out,
                          struct ddp_err *err)
{
    bool whole = print_item(doc, indent, out);
    ddp_strbuf_add(out, "\n");
    if (!whole || out->failed)
        return ddp_fail(err, DDP_ENOMEM, "no memory to print a JSON document");
    return DDP_OK;
}

int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    return print_document(doc, 0, out, err);
}

int ddp_json_print_line(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    return print_document(doc, ONE_LINE, out, err);
}
