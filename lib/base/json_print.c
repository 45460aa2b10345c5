/* Printing: cJSON's own printer indents by tabs and writes 1e+15 for a count. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_impl.h"

/* Returns false when a part of the document is missing or of a type that has no text. */
static bool print_item(const cJSON *item, size_t indent, struct ddp_strbuf *out);

static void print_number(double v, struct ddp_strbuf *out)
{
    char text[32];
    if (!isfinite(v)) {
        ddp_strbuf_add(out, "null");
        return;
    }
    if (v == floor(v) && fabs(v) <= 0x1p53) {
        ddp_strbuf_addf(out, "%.0f", v + 0.0); /* + 0.0: no "-0" */
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    ddp_strbuf_add(out, text);
}

static void print_string(const char *s, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "\"");
    while (*s) {
        size_t plain = 0;
        while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\' &&
               s[plain] != 0x7F)
            plain++;
        ddp_strbuf_add_n(out, s, plain);
        s += plain;
        if (*s == '"' || *s == '\\')
            ddp_strbuf_addf(out, "\\%c", *s);
        else if (*s == '\n')
            ddp_strbuf_add(out, "\\n");
        else if (*s == '\t')
            ddp_strbuf_add(out, "\\t");
        else if (*s)
            ddp_strbuf_addf(out, "\\u%04x", (unsigned char)*s);
        s += *s != '\0';
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
    bool object = cJSON_IsObject(item), one_line = !object && all_plain(item), whole = true;
    if (item->valueint == DDP_JSON_INCOMPLETE)
        return false;
    ddp_strbuf_add(out, object ? "{" : "[");
    for (const cJSON *c = item->child; c && whole; c = c->next) {
        if (c != item->child)
            ddp_strbuf_add(out, one_line ? ", " : ",");
        if (!one_line)
            new_line(indent + 2, out);
        if (object) {
            print_string(c->string, out);
            ddp_strbuf_add(out, ": ");
        }
        whole = print_item(c, indent + 2, out);
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
    else if (cJSON_IsRaw(item)) /* a number whose digits the caller chose */
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

int ddp_json_print(const cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    bool whole = print_item(doc, 0, out);
    ddp_strbuf_add(out, "\n");
    if (!whole || out->failed)
        return ddp_fail(err, DDP_ENOMEM, "no memory to print a JSON document");
    return DDP_OK;
}
