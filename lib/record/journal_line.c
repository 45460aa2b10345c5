#include "record/journal_line.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"

#define FORMAT "ddpbench-journal/2"
/* The end of each line: `,"check": "fnv1a64:0123456789abcdef"}` */
#define CHECK_KEY    ", \"check\": \"fnv1a64:"
#define CHECK_DIGITS 16
#define CHECK_END    "\"}"
#define CHECK_BYTES  (sizeof CHECK_KEY - 1 + CHECK_DIGITS + sizeof CHECK_END - 1)

static const char *const kinds[DDP_JOURNAL_KIND_COUNT] = {
    [DDP_JOURNAL_BEGIN] = "begin",       [DDP_JOURNAL_POINT] = "point",
    [DDP_JOURNAL_TRAIN] = "train",       [DDP_JOURNAL_EPOCH] = "epoch",
    [DDP_JOURNAL_TRAIN_END] = "trained", [DDP_JOURNAL_CONTROL] = "control",
    [DDP_JOURNAL_GATE] = "gate",         [DDP_JOURNAL_END] = "end",
};

/* Base64 digits (RFC 4648, section 4). */
static const char digits64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode64(const unsigned char *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)bytes[i] << 16;
        v |= i + 1 < n ? (uint32_t)bytes[i + 1] << 8 : 0;
        v |= i + 2 < n ? bytes[i + 2] : 0;
        *out++ = digits64[v >> 18];
        *out++ = digits64[v >> 12 & 63];
        *out++ = i + 1 < n ? digits64[v >> 6 & 63] : '=';
        *out++ = i + 2 < n ? digits64[v & 63] : '=';
    }
    *out = '\0';
}

static int digit64(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Decodes base64. out has room for 3 bytes per 4 digits. Returns the number of bytes, or SIZE_MAX
 * if the text is malformed. */
static size_t decode64(const char *text, unsigned char *out)
{
    size_t n = strlen(text), bytes = 0;
    size_t padding = n > 0 && text[n - 1] == '=' ? (n > 1 && text[n - 2] == '=' ? 2 : 1) : 0;
    if (n % 4 != 0)
        return SIZE_MAX;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t v = 0;
        size_t here = i + 4 == n ? 4 - padding : 4;
        for (size_t k = 0; k < 4; k++) {
            int digit = k < here ? digit64(text[i + k]) : 0;
            if (digit < 0)
                return SIZE_MAX;
            v = v << 6 | (uint32_t)digit;
        }
        for (size_t k = 0; k + 1 < here; k++)
            out[bytes++] = (unsigned char)(v >> (16 - 8 * k));
    }
    return bytes;
}

/* Prints doc as a line with its check, and deletes doc. */
static int print_checked(cJSON *doc, uint64_t *chain, struct ddp_strbuf *out, struct ddp_err *err)
{
    const size_t start = out->length;
    int rc = doc ? ddp_json_print_line(doc, out, err)
                 : ddp_fail(err, DDP_ENOMEM, "no memory for a line of the journal");
    cJSON_Delete(doc);
    DDP_TRY(rc);
    out->length -= 2; /* "}\n" */
    *chain = ddp_fnv1a(*chain, out->text + start, out->length - start);
    ddp_strbuf_addf(out, CHECK_KEY "%016llx" CHECK_END "\n", (unsigned long long)*chain);
    return out->failed ? ddp_fail(err, DDP_ENOMEM, "no memory for a line of the journal") : 0;
}

int ddp_journal_print_head(const struct ddp_journal_facts *facts, uint64_t *chain,
                           struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "journal", FORMAT);
    cJSON *object = ddp_json_obj(doc, "facts");
    for (int i = 0; i < facts->count; i++)
        ddp_json_str(object, facts->fact[i].key, facts->fact[i].value);
    return print_checked(doc, chain, out, err);
}

int ddp_journal_print(const struct ddp_journal_entry *entry, uint64_t *chain,
                      struct ddp_strbuf *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "kind", kinds[entry->kind]);
    ddp_json_count(doc, "launch", entry->launch);
    ddp_json_count(doc, "cell", entry->cell);
    ddp_json_str(doc, "id", entry->id);
    char *data = NULL;
    if (entry->payload_bytes > 0) {
        data = malloc((entry->payload_bytes + 2) / 3 * 4 + 1);
        if (!data) {
            cJSON_Delete(doc);
            return ddp_fail(err, DDP_ENOMEM, "no memory for a line of the journal");
        }
        encode64(entry->payload, entry->payload_bytes, data);
    }
    ddp_json_str(doc, "data", data);
    free(data);
    return print_checked(doc, chain, out, err);
}

static int bad(const char *where, const char *why, struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT, "%s: %s", where, why);
    return ddp_hint(err, "the journal was changed or damaged; use --restart to begin anew");
}

/* Verifies the check of a line and parses its object. */
static int parse_checked(const struct ddp_journal_line *line, uint64_t *chain, cJSON **out,
                         struct ddp_err *err)
{
    char end[CHECK_BYTES + 1];
    if (line->bytes < CHECK_BYTES || line->text[0] != '{')
        return bad(line->where, "not a line of a journal", err);
    const size_t body = line->bytes - CHECK_BYTES;
    uint64_t check = ddp_fnv1a(*chain, line->text, body);
    snprintf(end, sizeof end, CHECK_KEY "%016llx" CHECK_END, (unsigned long long)check);
    if (memcmp(line->text + body, end, CHECK_BYTES) != 0)
        return bad(line->where, "its checksum does not match this line and the lines before it",
                   err);
    DDP_TRY(ddp_json_parse(line->text, line->bytes, line->where, out, err));
    *chain = check;
    return 0;
}

/* Returns the text at obj[key], or NULL. */
static const char *text_of(const cJSON *obj, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Returns the whole number at obj[key] if it lies in [least, most], else -1. */
static int number_of(const cJSON *obj, const char *key, int least, int most)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    double v = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    return v >= least && v <= most && v == floor(v) ? (int)v : -1;
}

static const char *read_facts(const cJSON *doc, struct ddp_journal_facts *facts)
{
    const char *format = text_of(doc, "journal");
    const cJSON *object = cJSON_GetObjectItemCaseSensitive(doc, "facts"), *item;
    if (!format || strcmp(format, FORMAT) != 0)
        return "not the head of a journal of this version";
    if (!cJSON_IsObject(object) || cJSON_GetArraySize(object) > DDP_JOURNAL_FACTS_MAX)
        return "the head has no facts, or too many";
    cJSON_ArrayForEach(item, object)
    {
        if (!cJSON_IsString(item) && !cJSON_IsNull(item))
            return "a fact is not a string";
        ddp_journal_fact(facts, item->string, "%s", cJSON_IsString(item) ? item->valuestring : "");
    }
    return NULL;
}

int ddp_journal_read_head(const struct ddp_journal_line *line, uint64_t *chain,
                          struct ddp_journal_facts *facts, struct ddp_err *err)
{
    cJSON *doc;
    DDP_TRY(parse_checked(line, chain, &doc, err));
    facts->count = 0;
    const char *why = read_facts(doc, facts);
    cJSON_Delete(doc);
    return why ? bad(line->where, why, err) : 0;
}

static int kind_of(const char *word)
{
    for (int k = 0; word && k < DDP_JOURNAL_KIND_COUNT; k++)
        if (strcmp(kinds[k], word) == 0)
            return k;
    return -1;
}

/* Reads all members of an entry except the payload. */
static const char *read_entry(const cJSON *doc, struct ddp_journal_entry *entry)
{
    int kind = kind_of(text_of(doc, "kind"));
    int launch = number_of(doc, "launch", 1, DDP_JOURNAL_LAUNCH_MAX);
    int cell = number_of(doc, "cell", 0, DDP_JOURNAL_CELL_MAX);
    const char *id = text_of(doc, "id");
    if (cJSON_GetArraySize(doc) != 6 || kind < 0 || launch < 0 || cell < 0 ||
        (id && strlen(id) >= sizeof entry->id))
        return "invalid entry";
    *entry = (struct ddp_journal_entry){
        .kind = (enum ddp_journal_kind)kind, .launch = launch, .cell = cell};
    ddp_printable(id ? id : "", entry->id, sizeof entry->id);
    return NULL;
}

static int read_payload(const cJSON *doc, const char *where, struct ddp_journal_entry *entry,
                        void **payload, struct ddp_err *err)
{
    const char *data = text_of(doc, "data");
    unsigned char *bytes = NULL;
    size_t n = 0;
    if (data) {
        bytes = malloc(strlen(data) / 4 * 3 + 3);
        if (!bytes)
            return ddp_fail(err, DDP_ENOMEM, "no memory for a line of the journal");
        n = decode64(data, bytes);
    }
    const char *why =
        n == SIZE_MAX ? "its data is not base64" : ddp_journal_check_payload(entry->kind, bytes, n);
    if (why) {
        free(bytes);
        return bad(where, why, err);
    }
    entry->payload = bytes;
    entry->payload_bytes = n;
    *payload = bytes;
    return 0;
}

int ddp_journal_read(const struct ddp_journal_line *line, uint64_t *chain,
                     struct ddp_journal_entry *entry, void **payload, struct ddp_err *err)
{
    cJSON *doc;
    DDP_TRY(parse_checked(line, chain, &doc, err));
    const char *why = read_entry(doc, entry);
    int rc = why ? bad(line->where, why, err) : read_payload(doc, line->where, entry, payload, err);
    cJSON_Delete(doc);
    return rc;
}
