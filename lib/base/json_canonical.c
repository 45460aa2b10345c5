#include "base/json_canonical.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A positive decimal number: 0.DIGITS times 10 to the power of `point`. */
struct decimal {
    char digits[20]; /* [count]; shortest() removes zeros at the end */
    int count, point;
};

/* Sets *out to `value` rounded to `count` significant digits. */
static void round_to(double value, int count, struct decimal *out)
{
    char text[40];
    snprintf(text, sizeof text, "%.*e", count - 1, value);
    out->digits[0] = text[0];
    memcpy(out->digits + 1, text + 2, (size_t)count - 1);
    out->digits[count] = '\0';
    out->count = count;
    out->point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
}

static bool reads_back(const struct decimal *d, double value)
{
    char text[48];
    snprintf(text, sizeof text, "0.%se%d", d->digits, d->point);
    return strtod(text, NULL) == value;
}

/* Adds 1 to the last digit. Returns false if all digits are 9. The sum is then a power of ten, for
 * which fewer digits suffice. */
static bool increment(struct decimal *d)
{
    int i = d->count - 1;
    while (i >= 0 && d->digits[i] == '9')
        d->digits[i--] = '0';
    if (i < 0)
        return false;
    d->digits[i]++;
    return true;
}

/* Sets *out to a decimal number of `count` digits that reads back as `value`. Returns false if
 * there is none. The function first tries `value` rounded to `count` digits. If `value` is a power
 * of two, the next smaller double is only half as far away as the next larger double. The rounded
 * value may then read back as the smaller double, so the function also tries the next larger
 * decimal number. */
static bool fits(double value, int count, struct decimal *out)
{
    round_to(value, count, out);
    return reads_back(out, value) || (increment(out) && reads_back(out, value));
}

/* Sets *out to the shortest decimal number that reads back as `value`, which is positive. A decimal
 * number of up to DBL_DIG digits survives the conversion to a normal double and back. Therefore at
 * most one such number reads back as `value`: `value` rounded to DBL_DIG digits. The zeros at the
 * end of the number are removed. */
static void shortest(double value, struct decimal *out)
{
    int count = value < DBL_MIN ? 1 : DBL_DIG;
    while (count < DBL_DECIMAL_DIG && !fits(value, count, out))
        count++;
    if (count == DBL_DECIMAL_DIG)
        round_to(value, count, out);
    while (out->count > 1 && out->digits[out->count - 1] == '0')
        out->digits[--out->count] = '\0';
}

void ddp_json_shortest(double value, char out[DDP_JSON_NUMBER_BYTES])
{
    const size_t room = DDP_JSON_NUMBER_BYTES;
    const char *sign = value < 0 ? "-" : "";
    struct decimal d;
    if (!isfinite(value) || value == 0) {
        snprintf(out, room, "%s", isfinite(value) ? "0" : "null");
        return;
    }
    shortest(fabs(value), &d);
    if (d.point > 21 || d.point < -5)
        snprintf(out, room, "%s%c%s%se%+d", sign, d.digits[0], d.count > 1 ? "." : "", d.digits + 1,
                 d.point - 1);
    else if (d.point >= d.count)
        snprintf(out, room, "%s%s%.*s", sign, d.digits, d.point - d.count, "00000000000000000000");
    else if (d.point > 0)
        snprintf(out, room, "%s%.*s.%s", sign, d.point, d.digits, d.digits + d.point);
    else
        snprintf(out, room, "%s0.%.*s%s", sign, -d.point, "00000", d.digits);
}

static void add_string(const char *s, struct ddp_strbuf *out)
{
    static const char letters[] = "btn?fr"; /* the escapes of U+0008 to U+000D; U+000B has none */
    ddp_strbuf_add(out, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            ddp_strbuf_addf(out, "\\%c", c);
        else if (c >= '\b' && c <= '\r' && c != '\v')
            ddp_strbuf_addf(out, "\\%c", letters[c - '\b']);
        else if (c < 0x20)
            ddp_strbuf_addf(out, "\\u%04x", c);
        else
            ddp_strbuf_add_n(out, s, 1);
    }
    ddp_strbuf_add(out, "\"");
}

/* Maps a byte of UTF-8 to a number, so that the order of these numbers is the order of UTF-16. In
 * UTF-8, U+E000 to U+FFFF begin with EE or EF, and the characters above U+FFFF begin with F0 to F4.
 * UTF-16 has these two groups in the opposite order. */
static int utf16_rank(unsigned char c)
{
    return c == 0xEE || c == 0xEF ? c + 0x10 : c;
}

/* Compares the keys of two members by their UTF-16 code units. */
static int compare_members(const void *a, const void *b)
{
    const unsigned char *x = (const unsigned char *)(*(const cJSON *const *)a)->string;
    const unsigned char *y = (const unsigned char *)(*(const cJSON *const *)b)->string;
    while (*x && *x == *y) {
        x++;
        y++;
    }
    return utf16_rank(*x) - utf16_rank(*y);
}

static int add_item(const cJSON *item, struct ddp_strbuf *out, struct ddp_err *err);

static int add_object(const cJSON *obj, const char *without, struct ddp_strbuf *out,
                      struct ddp_err *err)
{
    const cJSON **members, *c;
    size_t n = 0;
    int rc = 0;
    for (c = obj->child; c; c = c->next)
        n++;
    DDP_TRY(DDP_NEW(&members, n, err));
    n = 0;
    for (c = obj->child; c; c = c->next)
        if (!without || strcmp(c->string, without) != 0)
            members[n++] = c;
    if (n > 0)
        qsort(members, n, sizeof *members, compare_members);
    ddp_strbuf_add(out, "{");
    for (size_t i = 0; i < n && rc == 0; i++) {
        ddp_strbuf_add(out, i ? "," : "");
        add_string(members[i]->string, out);
        ddp_strbuf_add(out, ":");
        rc = add_item(members[i], out, err);
    }
    ddp_strbuf_add(out, "}");
    free(members);
    return rc;
}

static int add_array(const cJSON *array, struct ddp_strbuf *out, struct ddp_err *err)
{
    ddp_strbuf_add(out, "[");
    for (const cJSON *c = array->child; c; c = c->next) {
        ddp_strbuf_add(out, c == array->child ? "" : ",");
        DDP_TRY(add_item(c, out, err));
    }
    ddp_strbuf_add(out, "]");
    return 0;
}

static int add_item(const cJSON *item, struct ddp_strbuf *out, struct ddp_err *err)
{
    char number[DDP_JSON_NUMBER_BYTES];
    if (cJSON_IsObject(item))
        return add_object(item, NULL, out, err);
    if (cJSON_IsArray(item))
        return add_array(item, out, err);
    if (cJSON_IsString(item)) {
        add_string(item->valuestring, out);
    } else if (ddp_json_is_printed(item)) {
        ddp_strbuf_add(out, item->valuestring + strlen(item->valuestring) + 1);
    } else if (cJSON_IsNumber(item) || cJSON_IsRaw(item)) {
        ddp_json_shortest(cJSON_IsRaw(item) ? strtod(item->valuestring, NULL) : item->valuedouble,
                          number);
        ddp_strbuf_add(out, number);
    } else {
        ddp_strbuf_add(out, cJSON_IsNull(item) ? "null" : cJSON_IsTrue(item) ? "true" : "false");
    }
    return 0;
}

int ddp_json_canonical(const cJSON *doc, const char *without, struct ddp_strbuf *out,
                       struct ddp_err *err)
{
    if (cJSON_IsObject(doc))
        DDP_TRY(add_object(doc, without, out, err));
    else
        DDP_TRY(add_item(doc, out, err));
    return out->failed ? ddp_fail(err, DDP_ENOMEM, "no memory for a canonical document") : 0;
}
