/* Prints and parses the lines of a journal, and opens, reads and appends to its file. */
#include "record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "record/field.h"
#include "record/noise.h"

/* Every journal begins with this text, or with a part of it if its first write was interrupted. */
static const char beginning[] = "{\"journal\": \"ddpbench-journal/";
#define FORMAT "ddpbench-journal/3"

struct ddp_journal {
    char *path;
    int fd;
    /* Number of bytes in complete lines. After a failed append, the file is cut to this length. */
    off_t bytes;
    int64_t lines; /* Complete lines. */
    /* created: this process created the file. broken: the remains of a failed append could not be
     * cut off. */
    bool created, broken;
};

void ddp_journal_fact(struct ddp_journal_facts *facts, const char *key, const char *fmt, ...)
{
    char value[sizeof facts->fact->value];
    va_list args;
    if (facts->count == DDP_JOURNAL_FACTS_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    int i = facts->count++;
    ddp_printable(key, facts->fact[i].key, sizeof facts->fact[i].key);
    ddp_printable(value, facts->fact[i].value, sizeof facts->fact[i].value);
}

/* The end of each line: `, "check": "fnv1a64:0123456789abcdef"}` */
#define CHECK_KEY   ", \"check\": \"fnv1a64:"
#define CHECK_END   "\"}"
#define CHECK_BYTES (sizeof CHECK_KEY - 1 + 16 + sizeof CHECK_END - 1)

static const char *const kinds[DDP_JOURNAL_KIND_COUNT] = {
    [DDP_JOURNAL_BEGIN] = "begin",       [DDP_JOURNAL_POINT] = "point",
    [DDP_JOURNAL_TRAIN] = "train",       [DDP_JOURNAL_EPOCH] = "epoch",
    [DDP_JOURNAL_TRAIN_END] = "trained", [DDP_JOURNAL_CONTROL] = "control",
    [DDP_JOURNAL_LEFT_OUT] = "left-out", [DDP_JOURNAL_GATE] = "gate",
    [DDP_JOURNAL_END] = "end",
};

/* The tables of the payloads. In a line, the members of a point are followed by its samples, and
 * the members of a gate by its values and ids. */
static const struct payload {
    const struct ddp_fields *fields;
    size_t bytes;
} payloads[DDP_JOURNAL_KIND_COUNT] = {
    [DDP_JOURNAL_POINT] = {&ddp_point_fields, sizeof(struct ddp_point)},
    [DDP_JOURNAL_TRAIN] = {&ddp_train_fields, sizeof(struct ddp_train_run)},
    [DDP_JOURNAL_EPOCH] = {&ddp_epoch_fields, sizeof(struct ddp_epoch)},
    [DDP_JOURNAL_TRAIN_END] = {&ddp_train_fields, sizeof(struct ddp_train_run)},
    [DDP_JOURNAL_CONTROL] = {&ddp_control_fields, sizeof(struct ddp_control)},
    [DDP_JOURNAL_LEFT_OUT] = {&ddp_left_out_fields, sizeof(struct ddp_left_out)},
    [DDP_JOURNAL_GATE] = {&ddp_noise_gate_fields, sizeof(struct ddp_noise_gate)},
};

/* The members of a line except its number, its payload and its check. */
static const struct ddp_field entry_rows[] = {
    {DDP_FIELD_AT(ddp_journal_entry, kind), DDP_FIELD_ENUM, .most = DDP_JOURNAL_KIND_COUNT - 1,
     .choices = kinds},
    {DDP_FIELD_AT(ddp_journal_entry, launch), DDP_FIELD_COUNT, .least = 1,
     .most = DDP_JOURNAL_LAUNCH_MAX},
    {DDP_FIELD_AT(ddp_journal_entry, cell), DDP_FIELD_COUNT, .most = DDP_JOURNAL_CELL_MAX},
    {DDP_FIELD_AT(ddp_journal_entry, id), DDP_FIELD_PATH},
};
static const struct ddp_fields entry_fields = {entry_rows, DDP_COUNT_OF(entry_rows)};

/* Keys of the lists that follow the members. */
#define VALUES "values"
#define IDS    "ids"

static int no_memory(struct ddp_err *err)
{
    return ddp_fail(err, DDP_ENOMEM, "no memory for a line of the journal");
}

/* Prints doc as a line with its check, and deletes doc. */
static int print_checked(cJSON *doc, struct ddp_strbuf *out, struct ddp_err *err)
{
    int rc = doc ? ddp_json_print_line(doc, out, err) : no_memory(err);
    cJSON_Delete(doc);
    DDP_TRY(rc);
    out->length -= 2; /* "}\n" */
    const uint64_t check = ddp_fnv1a(DDP_FNV_INIT, out->text, out->length);
    ddp_strbuf_addf(out, CHECK_KEY "%016llx" CHECK_END "\n", (unsigned long long)check);
    return out->failed ? no_memory(err) : 0;
}

static int print_head(const struct ddp_journal_facts *facts, struct ddp_strbuf *out,
                      struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "journal", FORMAT);
    cJSON *object = ddp_json_obj(doc, "facts");
    for (int i = 0; i < facts->count; i++)
        ddp_json_str(object, facts->fact[i].key, facts->fact[i].value);
    return print_checked(doc, out, err);
}

/* Adds doubles as a list. NaN becomes null. */
static void add_list(cJSON *data, const char *key, const double *values, size_t n)
{
    cJSON *list = ddp_json_arr(data, key);
    for (size_t i = 0; i < n; i++)
        cJSON_AddItemToArray(list, isfinite(values[i]) ? cJSON_CreateNumber(values[i])
                                                       : cJSON_CreateNull());
}

static void add_gate_lists(cJSON *data, const struct ddp_noise_gate *gate)
{
    const double *values = (const double *)(const void *)(gate + 1);
    const size_t n = ddp_noise_gate_doubles(gate);
    const char *id = (const char *)(values + n);
    add_list(data, VALUES, values, n);
    cJSON *ids = ddp_json_arr(data, IDS);
    for (int c = 0; c < gate->cells; c++, id += DDP_NOISE_ID_BYTES)
        cJSON_AddItemToArray(ids, cJSON_CreateString(id));
}

static int print_entry(const struct ddp_journal_entry *entry, int64_t number,
                       struct ddp_strbuf *out, struct ddp_err *err)
{
    const struct payload *payload = &payloads[entry->kind];
    cJSON *doc = cJSON_CreateObject();
    ddp_json_count(doc, "line", number);
    ddp_fields_store(&entry_fields, entry, doc);
    if (payload->fields) {
        cJSON *data = ddp_json_obj(doc, kinds[entry->kind]);
        ddp_fields_store(payload->fields, entry->payload, data);
        const struct ddp_point *point = entry->payload;
        if (entry->kind == DDP_JOURNAL_POINT)
            add_list(data, VALUES, (const double *)(const void *)(point + 1),
                     (size_t)point->sample_count);
        else if (entry->kind == DDP_JOURNAL_GATE)
            add_gate_lists(data, entry->payload);
    }
    return print_checked(doc, out, err);
}

/* A line to parse, without its newline. */
struct line {
    const char *text;
    size_t bytes;
    const char *where; /* "'FILE', line 7", for messages. */
    int64_t number;    /* From 1. */
};

static int bad(const struct line *line, const char *why, struct ddp_err *err)
{
    ddp_fail(err, DDP_EINPUT, "%s: %s", line->where, why);
    return ddp_hint(err, "the journal was changed or damaged; use --restart to begin anew");
}

/* Verifies the check of a line and parses its object. */
static int parse_checked(const struct line *line, cJSON **out, struct ddp_err *err)
{
    char end[CHECK_BYTES + 1];
    if (line->bytes < CHECK_BYTES || line->text[0] != '{')
        return bad(line, "not a line of a journal", err);
    const size_t body = line->bytes - CHECK_BYTES;
    const uint64_t check = ddp_fnv1a(DDP_FNV_INIT, line->text, body);
    snprintf(end, sizeof end, CHECK_KEY "%016llx" CHECK_END, (unsigned long long)check);
    if (memcmp(line->text + body, end, CHECK_BYTES) != 0)
        return bad(line, "its checksum does not match the line", err);
    return ddp_json_parse(line->text, line->bytes, line->where, out, err);
}

/* Returns the text at obj[key], or NULL. */
static const char *text_of(const cJSON *obj, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(obj, key);
    return cJSON_IsString(item) ? item->valuestring : NULL;
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

static int read_head(const struct line *line, struct ddp_journal_facts *facts, struct ddp_err *err)
{
    cJSON *doc;
    DDP_TRY(parse_checked(line, &doc, err));
    const char *why = read_facts(doc, facts);
    cJSON_Delete(doc);
    return why ? bad(line, why, err) : 0;
}

/* Reads a list of doubles into out. */
static bool read_list(const cJSON *list, double *out)
{
    const cJSON *item;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsNumber(item) && !cJSON_IsNull(item))
            return false;
        *out++ = cJSON_IsNumber(item) ? item->valuedouble : NAN;
    }
    return true;
}

/* Reads a list of ids into out [size of the list][DDP_NOISE_ID_BYTES]. */
static bool read_ids(const cJSON *list, char *out)
{
    const cJSON *item;
    size_t at = 0;
    cJSON_ArrayForEach(item, list)
    {
        if (!cJSON_IsString(item) || strlen(item->valuestring) >= DDP_NOISE_ID_BYTES)
            return false;
        ddp_printable(item->valuestring, &out[at], DDP_NOISE_ID_BYTES);
        at += DDP_NOISE_ID_BYTES;
    }
    return true;
}

/* Checks that `rest` and the items after it are exactly the lists that this kind of payload has,
 * and that they have the right lengths. Sets the sample count of a point. */
static bool lists_fit(enum ddp_journal_kind kind, void *payload, const cJSON *rest)
{
    struct ddp_point *point = payload;
    const struct ddp_noise_gate *gate = payload;
    const cJSON *ids = rest ? rest->next : NULL;
    if (kind != DDP_JOURNAL_POINT && kind != DDP_JOURNAL_GATE)
        return !rest;
    if (!cJSON_IsArray(rest) || strcmp(rest->string, VALUES) != 0)
        return false;
    if (kind == DDP_JOURNAL_POINT) {
        point->sample_count = cJSON_GetArraySize(rest);
        return !ids;
    }
    return gate->injected < gate->cells && cJSON_IsArray(ids) && strcmp(ids->string, IDS) == 0 &&
           !ids->next && (size_t)cJSON_GetArraySize(rest) == ddp_noise_gate_doubles(gate) &&
           cJSON_GetArraySize(ids) == gate->cells;
}

/* Reads the payload at `item`, whose key must be the name of the kind. Returns NULL, or what is
 * wrong. why: memory for the returned text. */
static const char *read_payload(const cJSON *item, struct ddp_journal_entry *entry, void **payload,
                                char why[96])
{
    const struct payload *expected = &payloads[entry->kind];
    const cJSON *values = cJSON_GetObjectItemCaseSensitive(item, VALUES), *rest = NULL;
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(item, IDS);
    const size_t doubles = (size_t)cJSON_GetArraySize(values) * sizeof(double);
    if (!expected->fields)
        return NULL;
    if (!cJSON_IsObject(item) || strcmp(item->string, kinds[entry->kind]) != 0)
        return "the data of this kind are missing";
    entry->payload_bytes =
        expected->bytes + doubles + (size_t)cJSON_GetArraySize(ids) * DDP_NOISE_ID_BYTES;
    entry->payload = *payload = ddp_calloc(1, entry->payload_bytes);
    if (!*payload)
        return "memory is exhausted";
    char *lists = (char *)*payload + expected->bytes;
    const char *name = ddp_fields_load(expected->fields, item->child, *payload, &rest);
    if (!name && lists_fit(entry->kind, *payload, rest) &&
        read_list(values, (double *)(void *)lists) && read_ids(ids, lists + doubles))
        return NULL;
    snprintf(why, 96, "'%s' is missing or out of range", name ? name : VALUES);
    return why;
}

/* Reads an entry. Returns NULL, or what is wrong. *payload: the memory to which entry->payload
 * points, or NULL. The caller frees *payload with free(). text: memory for the returned text. */
static const char *read_entry(const cJSON *doc, int64_t number, struct ddp_journal_entry *entry,
                              void **payload, char text[96])
{
    const cJSON *line = doc->child, *rest = NULL;
    if (!line || strcmp(line->string, "line") != 0 || !cJSON_IsNumber(line))
        return "not an entry of a journal";
    if (line->valuedouble != (double)number)
        return "its line number is wrong: a line is missing or was moved";
    if (ddp_fields_load(&entry_fields, line->next, entry, &rest) != NULL)
        return "invalid entry";
    const cJSON *last = payloads[entry->kind].fields && rest ? rest->next : rest;
    if (!last || last->next)
        return "invalid entry";
    return read_payload(rest, entry, payload, text);
}

static int visit_line(const struct line *line, ddp_journal_visit visit, void *arg,
                      struct ddp_err *err)
{
    struct ddp_journal_entry entry = {.payload = NULL};
    void *payload = NULL;
    char text[96];
    cJSON *doc;
    DDP_TRY(parse_checked(line, &doc, err));
    const char *why = read_entry(doc, line->number, &entry, &payload, text);
    cJSON_Delete(doc);
    const int rc = why ? bad(line, why, err) : visit(arg, &entry, err);
    free(payload);
    return rc;
}

/* Like ddp_journal_parse. *lines: number of complete lines. */
static int parse(const char *text, size_t bytes, const char *name, struct ddp_journal_facts *facts,
                 ddp_journal_visit visit, void *arg, size_t *whole, int64_t *lines,
                 struct ddp_err *err)
{
    const size_t begins = DDP_MIN(bytes, sizeof beginning - 1);
    size_t at = 0;
    *whole = 0;
    *lines = 0;
    facts->count = 0;
    /* Check the beginning even if no line is complete, because another kind of file must not be
     * taken for an incomplete journal. */
    if (memcmp(text, beginning, begins) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a journal of ddpbench", name);
    for (const char *end; at < bytes && (end = memchr(text + at, '\n', bytes - at));) {
        char where[320];
        const size_t n = (size_t)(end - text) - at;
        const struct line line = {text + at, n, where, ++*lines};
        snprintf(where, sizeof where, "'%.250s', line %lld", name, (long long)*lines);
        DDP_TRY(*lines == 1 ? read_head(&line, facts, err) : visit_line(&line, visit, arg, err));
        at += n + 1;
        *whole = at;
    }
    return 0;
}

int ddp_journal_parse(const char *text, size_t bytes, const char *name,
                      struct ddp_journal_facts *facts, ddp_journal_visit visit, void *arg,
                      size_t *whole, struct ddp_err *err)
{
    int64_t lines;
    return parse(text, bytes, name, facts, visit, arg, whole, &lines, err);
}

static int cannot(struct ddp_journal *j, int code, const char *what, int error, struct ddp_err *err)
{
    return ddp_fail_errno(err, code, error, "cannot %s '%s'", what, j->path);
}

/* Appends the line text[n] and syncs it to disk. Cuts off the remains of a failed write. */
static int append(struct ddp_journal *j, const char *text, size_t n, struct ddp_err *err)
{
    if (j->broken)
        return ddp_fail(err, DDP_EIO, "an earlier write to '%s' failed", j->path);
    int error = ddp_write_all(j->fd, text, n);
    if (error == 0 && fdatasync(j->fd) != 0)
        error = errno;
    if (error == 0) {
        j->bytes += (off_t)n;
        j->lines++;
        return 0;
    }
    /* If the cut fails too, the next reader drops the incomplete line. */
    j->broken = ftruncate(j->fd, j->bytes) != 0 || lseek(j->fd, j->bytes, SEEK_SET) < 0;
    return cannot(j, DDP_EIO, "write", error, err);
}

int ddp_journal_append(struct ddp_journal *journal, const struct ddp_journal_entry *entry,
                       struct ddp_err *err)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    int rc = print_entry(entry, journal->lines + 1, &line, err);
    if (rc == 0)
        rc = append(journal, line.text, line.length, err);
    ddp_strbuf_release(&line);
    return rc;
}

/* True if the path still names the open file. Another run may have removed the file since it was
 * opened. */
static bool is_named(const struct ddp_journal *j)
{
    struct stat ours, named;
    return fstat(j->fd, &ours) == 0 && stat(j->path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static int open_file(struct ddp_journal *j, struct ddp_err *err)
{
    struct stat st;
    /* O_TRUNC is not used, because the file must not be changed before it is known to be a journal.
     * O_NONBLOCK is used, because opening a pipe must not block. */
    j->fd = open(j->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (j->fd < 0 && errno == ENOENT) {
        j->fd = open(j->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        j->created = j->fd >= 0;
    }
    if (j->fd < 0)
        return cannot(j, DDP_ECREATE, "create", errno, err);
    if (fstat(j->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return ddp_fail(err, DDP_ECREATE, "'%s' cannot be a journal: it is not a regular file",
                        j->path);
    if (st.st_size > (off_t)DDP_JOURNAL_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' is too large to be a journal", j->path);
    const bool locked_elsewhere = flock(j->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    j->created &= !locked_elsewhere; /* the file now belongs to the run that has the lock */
    if (locked_elsewhere)
        return ddp_fail(err, DDP_ECREATE, "another run is writing to '%s'", j->path);
    if (!is_named(j))
        return ddp_fail(err, DDP_ECREATE, "another run has just removed '%s'; try again", j->path);
    j->bytes = st.st_size;
    return 0;
}

static int refuse(const struct ddp_journal *j, const char *key, const char *then, const char *now,
                  struct ddp_err *err)
{
    /* A command line may contain a single quote, so the message then uses backquotes. */
    const char *quote = strchr(then, '\'') || strchr(now, '\'') ? "`" : "'";
    ddp_fail(err, DDP_EMISMATCH,
             "'%s' belongs to another run: %s was %s%.120s%s, and is now %s%.120s%s", j->path, key,
             quote, then, quote, quote, now, quote);
    return ddp_hint(err, "repeat the command that began it, or use --restart to discard it");
}

static const char *find_fact(const struct ddp_journal_facts *facts, const char *key)
{
    for (int i = 0; i < facts->count; i++)
        if (strcmp(facts->fact[i].key, key) == 0)
            return facts->fact[i].value;
    return NULL;
}

static int compare_facts(const struct ddp_journal *j, const struct ddp_journal_facts *then,
                         const struct ddp_journal_facts *now, struct ddp_err *err)
{
    for (int i = 0; i < now->count; i++) {
        const char *key = now->fact[i].key, *value = find_fact(then, key);
        if (!value || strcmp(value, now->fact[i].value) != 0)
            return refuse(j, key, value ? value : "missing", now->fact[i].value, err);
    }
    for (int i = 0; i < then->count; i++)
        if (!find_fact(now, then->fact[i].key))
            return refuse(j, then->fact[i].key, then->fact[i].value, "missing", err);
    return 0;
}

static int visit_nothing(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    (void)arg;
    (void)entry;
    (void)err;
    return 0;
}

/* Reads an existing journal. Compares the facts first, so that the message about a journal of
 * another build names the build, and does not say that the journal is damaged. *whole: see
 * ddp_journal_parse. */
static int read_old(struct ddp_journal *j, const struct ddp_journal_facts *facts,
                    ddp_journal_visit visit, void *arg, size_t *whole, struct ddp_err *err)
{
    char *text = NULL;
    struct ddp_journal_facts *then;
    DDP_TRY(DDP_NEW(&then, 1, err));
    int rc = ddp_file_read_from(j->fd, j->path, (size_t)j->bytes, &text, err);
    if (rc != 0)
        goto out_then;
    const char *end = memchr(text, '\n', (size_t)j->bytes);
    const size_t head = end ? (size_t)(end - text) + 1 : (size_t)j->bytes;
    rc = parse(text, head, j->path, then, visit_nothing, NULL, whole, &j->lines, err);
    if (rc == 0 && *whole > 0)
        rc = compare_facts(j, then, facts, err);
    if (rc == 0 && *whole > 0)
        rc = parse(text, (size_t)j->bytes, j->path, then, visit, arg, whole, &j->lines, err);
    free(text);
out_then:
    free(then);
    return rc;
}

/* Syncs the folder, so that the directory entry of a new file is on disk. */
static int sync_folder(const struct ddp_journal *j)
{
    char folder[4096];
    const char *slash = strrchr(j->path, '/');
    size_t n = slash ? (size_t)(slash - j->path) + 1 : 0;
    if (n >= sizeof folder)
        return 0;
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? j->path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* not an error, because a folder may be writable but not readable */
    int error = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    close(fd);
    return error;
}

static int write_head(struct ddp_journal *j, const struct ddp_journal_facts *facts,
                      struct ddp_err *err)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    j->lines = 0;
    int rc = print_head(facts, &line, err);
    if (rc == 0)
        rc = append(j, line.text, line.length, err);
    ddp_strbuf_release(&line);
    DDP_TRY(rc);
    int error = j->created ? sync_folder(j) : 0;
    return error ? cannot(j, DDP_EIO, "write", error, err) : 0;
}

/* Checks that the file is a journal before its contents are discarded, so that a mistyped path does
 * not destroy another file. */
static int check_discard(struct ddp_journal *j, struct ddp_err *err)
{
    char text[sizeof beginning - 1];
    ssize_t n = pread(j->fd, text, sizeof text, 0);
    if (n < 0)
        return cannot(j, DDP_EIO, "read", errno, err);
    if (memcmp(text, beginning, (size_t)n) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a journal of ddpbench", j->path);
    return 0;
}

/* Keeps all complete lines of an open file, or none if restart is true. Sets the file position for
 * appending. */
static int keep_lines(struct ddp_journal *j, const struct ddp_journal_facts *facts, bool restart,
                      ddp_journal_visit visit, void *arg, bool *continued, struct ddp_err *err)
{
    size_t whole = 0;
    if (restart)
        DDP_TRY(check_discard(j, err));
    else if (j->bytes > 0)
        DDP_TRY(read_old(j, facts, visit, arg, &whole, err));
    if ((off_t)whole != j->bytes && ftruncate(j->fd, (off_t)whole) != 0)
        return cannot(j, DDP_EIO, "write", errno, err);
    j->bytes = (off_t)whole;
    if (lseek(j->fd, j->bytes, SEEK_SET) < 0)
        return cannot(j, DDP_EIO, "write", errno, err);
    *continued = whole > 0;
    return whole > 0 ? 0 : write_head(j, facts, err);
}

int ddp_journal_open(const char *path, const struct ddp_journal_facts *facts, bool restart,
                     ddp_journal_visit visit, void *arg, struct ddp_journal **out, bool *continued,
                     struct ddp_err *err)
{
    struct ddp_journal *j;
    DDP_TRY(DDP_NEW(&j, 1, err));
    j->fd = -1;
    j->path = strdup(path);
    int rc = j->path ? open_file(j, err) : ddp_fail_memory(err, 1, strlen(path), __func__);
    if (rc == 0)
        rc = keep_lines(j, facts, restart, visit, arg, continued, err);
    if (rc == 0) {
        *out = j;
        return 0;
    }
    if (j->created)
        unlink(path);
    ddp_journal_close(j);
    return rc;
}

int ddp_journal_remove(struct ddp_journal *journal, struct ddp_err *err)
{
    if (unlink(journal->path) != 0 && errno != ENOENT)
        return cannot(journal, DDP_EIO, "remove", errno, err);
    return 0;
}

void ddp_journal_close(struct ddp_journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal);
}
