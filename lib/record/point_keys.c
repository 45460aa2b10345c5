#include "record/point_keys.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "base/unit.h"
#include "record/vary.h"

static const char *const names[DDP_KEY_COUNT] = {
    [DDP_KEY_COLL] = "collective",     [DDP_KEY_SIZE] = "size",   [DDP_KEY_COMPRESS] = "compress",
    [DDP_KEY_PARTIAL] = "part",        [DDP_KEY_DTYPE] = "type",  [DDP_KEY_PLACEMENT] = "place",
    [DDP_KEY_RANKS] = "ranks",         [DDP_KEY_OP] = "op",       [DDP_KEY_ROOT] = "root",
    [DDP_KEY_MEMORY] = "memory",       [DDP_KEY_GRAPH] = "graph", [DDP_KEY_BACKEND] = "backend",
    [DDP_KEY_ALGORITHM] = "algorithm", [DDP_KEY_SPLIT] = "split",
};

const char *ddp_point_key_name(enum ddp_point_key key)
{
    return names[key];
}

static bool applies(const struct ddp_point_spec *s, enum ddp_point_key key)
{
    switch (key) {
    case DDP_KEY_SIZE:
    case DDP_KEY_DTYPE:
    case DDP_KEY_PLACEMENT:
    case DDP_KEY_MEMORY:
        return s->coll != DDP_BARRIER;
    case DDP_KEY_OP:
        return ddp_coll_reduces(s->coll);
    case DDP_KEY_ROOT:
        return ddp_coll_has_root(s->coll);
    case DDP_KEY_PARTIAL:
        return s->partial > 0;
    case DDP_KEY_SPLIT:
        return ddp_coll_has_split(s->coll);
    default:
        return true;
    }
}

static void ranks_text(const struct ddp_point_spec *s, char *out)
{
    if (s->group_list[0])
        snprintf(out, DDP_KEY_BYTES, "%s", s->group_list);
    else if (s->groups > 1)
        snprintf(out, DDP_KEY_BYTES, "%dx%d", s->groups, s->ranks);
    else
        snprintf(out, DDP_KEY_BYTES, "%d", s->ranks);
}

void ddp_point_key_text(const struct ddp_point_spec *s, enum ddp_point_key key,
                        char out[DDP_KEY_BYTES])
{
    const char *text = "-";
    if (!applies(s, key)) {
        snprintf(out, DDP_KEY_BYTES, "-");
        return;
    }
    switch (key) {
    case DDP_KEY_SIZE:
        ddp_format_size(s->size_bytes, out, DDP_KEY_BYTES);
        return;
    case DDP_KEY_PARTIAL:
        snprintf(out, DDP_KEY_BYTES, "1/%d", s->partial);
        return;
    case DDP_KEY_RANKS:
        ranks_text(s, out);
        return;
    case DDP_KEY_ROOT:
        snprintf(out, DDP_KEY_BYTES, "%d", s->root);
        return;
    case DDP_KEY_COLL:
        text = ddp_coll_name(s->coll);
        break;
    case DDP_KEY_COMPRESS:
        text = s->compress[0] ? s->compress : "none";
        break;
    case DDP_KEY_SPLIT:
        text = s->split[0] ? s->split : "even";
        break;
    case DDP_KEY_PLACEMENT:
        text = ddp_placement_name(s->placement);
        break;
    case DDP_KEY_DTYPE:
        text = ddp_dtype_name(s->dtype);
        break;
    case DDP_KEY_OP:
        text = ddp_op_name(s->op);
        break;
    case DDP_KEY_MEMORY:
        text = ddp_memory_name(s->memory);
        break;
    case DDP_KEY_GRAPH:
        text = s->graph ? "yes" : "no";
        break;
    case DDP_KEY_BACKEND:
        text = s->backend;
        break;
    case DDP_KEY_ALGORITHM:
        text = s->algorithm;
        break;
    case DDP_KEY_COUNT:
        break;
    }
    snprintf(out, DDP_KEY_BYTES, "%s", text);
}

void ddp_point_range_add(struct ddp_point_range *range, const struct ddp_point_spec *spec)
{
    static_assert(DDP_COUNT_OF(range->width) >= DDP_KEY_COUNT, "one width per key");
    if (range->count++ == 0)
        range->first = *spec;
    for (int k = 0; k < DDP_KEY_COUNT; k++) {
        char first[DDP_KEY_BYTES], text[DDP_KEY_BYTES];
        ddp_point_key_text(&range->first, (enum ddp_point_key)k, first);
        ddp_point_key_text(spec, (enum ddp_point_key)k, text);
        range->width[k] = DDP_MAX(range->width[k], (int)strlen(text));
        if (strcmp(first, text) != 0)
            range->varies |= 1u << k;
    }
    range->has_ranks |= spec->ranks > 1;
    range->has_split |= ddp_coll_has_split(spec->coll);
    range->has_busbw |= spec->ranks > 1 && spec->size_bytes > 0 && spec->coll != DDP_BARRIER &&
                        !ddp_point_is_reduced(spec);
}

bool ddp_point_range_varies(const struct ddp_point_range *range, enum ddp_point_key key)
{
    return (range->varies >> key & 1) != 0;
}

void ddp_point_range_label(const struct ddp_point_range *range, const struct ddp_point_spec *spec,
                           char *out, size_t out_bytes)
{
    out[0] = '\0';
    for (int k = 0; k < DDP_KEY_COUNT; k++) {
        char text[DDP_KEY_BYTES];
        if (!ddp_point_range_varies(range, (enum ddp_point_key)k))
            continue;
        ddp_point_key_text(spec, (enum ddp_point_key)k, text);
        if (strcmp(text, "-") == 0)
            continue;
        ddp_text_append(
            out, out_bytes, "%s%s%s%s", out[0] ? ", " : "", k == DDP_KEY_ROOT ? "root " : "", text,
            k == DDP_KEY_RANKS       ? " ranks"
            : k == DDP_KEY_PLACEMENT ? spec->placement == DDP_IN_PLACE ? " place" : " of place"
            : k == DDP_KEY_MEMORY    ? " memory"
                                     : "");
    }
}

/* Appends `before`, the text of the key and `after`, unless the key varies or does not apply. */
static void add_constant(const struct ddp_point_range *range, const struct ddp_point_spec *spec,
                         enum ddp_point_key key, const char *before, const char *after, char *out,
                         size_t out_bytes)
{
    char text[DDP_KEY_BYTES];
    if (ddp_point_range_varies(range, key) || !applies(spec, key))
        return;
    ddp_point_key_text(spec, key, text);
    ddp_text_append(out, out_bytes, "%s%s%s", before, text, after);
}

void ddp_point_range_constants(const struct ddp_point_range *range,
                               const struct ddp_point_spec *spec, char *out, size_t out_bytes)
{
    const bool ranks = !ddp_point_range_varies(range, DDP_KEY_RANKS);
    out[0] = '\0';
    if (ddp_point_range_varies(range, DDP_KEY_COLL))
        ddp_text_append(out, out_bytes, "collectives");
    add_constant(range, spec, DDP_KEY_COLL, "", "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_DTYPE, ", ", "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_OP, ddp_point_range_varies(range, DDP_KEY_DTYPE) ? ", " : " ",
                 "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_SIZE, ", ", "", out, out_bytes);
    if (strcmp(spec->compress, "none") != 0 && spec->compress[0])
        add_constant(range, spec, DDP_KEY_COMPRESS, ", ", "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_SPLIT, ", split ", "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_PARTIAL, ", ", " of the array per iteration", out, out_bytes);
    if (ranks && spec->group_list[0])
        ddp_text_append(out, out_bytes, ", groups %s", spec->group_list);
    else if (ranks && spec->groups > 1)
        ddp_text_append(out, out_bytes, ", %d groups of %d rank%s", spec->groups, spec->ranks,
                        spec->ranks == 1 ? "" : "s");
    else if (ranks)
        ddp_text_append(out, out_bytes, ", %d rank%s", spec->ranks, spec->ranks == 1 ? "" : "s");
    add_constant(range, spec, DDP_KEY_BACKEND, ranks ? " over " : ", backend ", "", out, out_bytes);
    add_constant(range, spec, DDP_KEY_ROOT, ", root ", "", out, out_bytes);
    if (applies(spec, DDP_KEY_PLACEMENT) && !ddp_point_range_varies(range, DDP_KEY_PLACEMENT))
        ddp_text_append(out, out_bytes, ", %s place",
                        spec->placement == DDP_IN_PLACE ? "in" : "out of");
    add_constant(range, spec, DDP_KEY_MEMORY, ", ", " memory", out, out_bytes);
    if (spec->graph && !ddp_point_range_varies(range, DDP_KEY_GRAPH))
        ddp_text_append(out, out_bytes, ", as a graph");
    if (spec->arrival[0])
        ddp_text_append(out, out_bytes, ", arrival %s", spec->arrival);
    if (strcmp(spec->algorithm, "auto") != 0)
        add_constant(range, spec, DDP_KEY_ALGORITHM, ", algorithm ", "", out, out_bytes);
}

/* Returns the index of a name in a list that ends with NULL, or -1 if the list lacks the name. */
static int index_of(const char *const *list, const char *name)
{
    for (int i = 0; list[i]; i++)
        if (strcmp(list[i], name) == 0)
            return i;
    return -1;
}

/* Copies the part of an id before the next slash, and moves *id behind the slash. Returns false if
 * the part does not fit or the id has ended. */
static bool next_part(const char **id, char *out, size_t out_bytes)
{
    const size_t n = strcspn(*id, "/");
    if (n == 0 || n >= out_bytes)
        return false;
    memcpy(out, *id, n);
    out[n] = '\0';
    *id += n + ((*id)[n] == '/');
    return true;
}

/* Parses a part that consists of the text `before` and a decimal number. */
static bool number_part(const char **id, const char *before, unsigned long long *out)
{
    char part[32], *end;
    const size_t n = strlen(before);
    if (!next_part(id, part, sizeof part) || strncmp(part, before, n) != 0 || part[n] < '0' ||
        part[n] > '9')
        return false;
    *out = strtoull(part + n, &end, 10);
    return *end == '\0';
}

static bool name_part(const char **id, const char *const *list, int *out)
{
    char part[32];
    return next_part(id, part, sizeof part) && (*out = index_of(list, part)) >= 0;
}

/* Reads the optional parts at the end of an id. */
static bool suffixes(const char *id, struct ddp_point_spec *s)
{
    char part[sizeof s->group_list + 1], *end;
    while (*id) {
        if (!next_part(&id, part, sizeof part))
            return false;
        if (strcmp(part, "overlap") == 0)
            s->overlap = true;
        else if (strcmp(part, "graph") == 0)
            s->graph = true;
        else if (strncmp(part, "split=", 6) == 0 && strlen(part + 6) < sizeof s->split)
            memcpy(s->split, part + 6, strlen(part + 6) + 1);
        else if (strncmp(part, "arrival=", 8) == 0 && strlen(part + 8) < sizeof s->arrival)
            memcpy(s->arrival, part + 8, strlen(part + 8) + 1);
        else if (part[0] == 'g' && strpbrk(part, ",:"))
            memcpy(s->group_list, part + 1, strlen(part));
        else if (part[0] != 'g' || part[1] < '1' || part[1] > '9')
            return false;
        else if ((s->groups = (int)strtol(part + 1, &end, 10)) == 0 || *end != '\0')
            return false;
    }
    return true;
}

bool ddp_point_id_parse(const char *id, struct ddp_point_spec *out)
{
    int coll, dtype, op, placement, memory;
    unsigned long long root, ranks, bytes, partial;
    memset(out, 0, sizeof *out);
    if (!name_part(&id, ddp_coll_names, &coll) ||
        !next_part(&id, out->backend, sizeof out->backend) ||
        !next_part(&id, out->algorithm, sizeof out->algorithm) ||
        !name_part(&id, ddp_dtype_names, &dtype) || !name_part(&id, ddp_op_names, &op) ||
        !number_part(&id, "r", &root) || !name_part(&id, ddp_placement_names, &placement) ||
        !name_part(&id, ddp_memory_names, &memory) || !number_part(&id, "n", &ranks) ||
        !number_part(&id, "", &bytes) || !next_part(&id, out->compress, sizeof out->compress) ||
        !number_part(&id, "", &partial) || !suffixes(id, out))
        return false;
    out->coll = (enum ddp_coll)coll;
    out->dtype = (enum ddp_dtype)dtype;
    out->op = (enum ddp_op)op;
    out->root = (int)root;
    out->placement = (enum ddp_placement)placement;
    out->memory = (enum ddp_memory)memory;
    out->ranks = (int)ranks;
    out->requested_bytes = out->size_bytes = bytes;
    out->partial = (int)partial;
    return true;
}

/* An id consists of parts between slashes (ddp_point_id). Every id has the parts below, and
 * optional parts may follow. This table has the key of --vary for each part. -1: the part has no
 * key. */
static const int key_of_part[] = {
    -1,
    DDP_VARY_BACKEND,
    DDP_VARY_ALGORITHM,
    DDP_VARY_DTYPE,
    -1, /* operation */
    -1, /* root */
    -1, /* placement */
    DDP_VARY_MEMORY,
    DDP_VARY_RANKS,
    -1, /* bytes */
    DDP_VARY_COMPRESS,
    -1 /* chunks of --partial */
};
#define PARTS      ((int)(sizeof key_of_part / sizeof key_of_part[0]))
#define ROOT_PART  5
#define RANKS_PART 8

/* Returns whether a part of an id consists of this letter and digits. */
static bool is_number(const char *part, size_t length, char letter)
{
    if (length < 2 || part[0] != letter)
        return false;
    for (size_t i = 1; i < length; i++)
        if (!isdigit((unsigned char)part[i]))
            return false;
    return true;
}

bool ddp_point_id_vary(unsigned vary, const char *id, char *out, size_t bytes)
{
    size_t at = 0;
    for (int part = 0; part < PARTS; part++) {
        const size_t length = strcspn(id, "/");
        const int key = key_of_part[part];
        if ((part == ROOT_PART && !is_number(id, length, 'r')) ||
            (part == RANKS_PART && !is_number(id, length, 'n')) ||
            (part < PARTS - 1 && !id[length]))
            return false;
        const bool varied = key >= 0 && ddp_vary_has(vary, (enum ddp_vary_key)key);
        at += (size_t)snprintf(out + at, bytes - at, "%s%.*s", part ? "/" : "",
                               varied ? 1 : (int)length, varied ? "*" : id);
        if (at >= bytes)
            return false;
        id += length + (part < PARTS - 1);
    }
    return (size_t)snprintf(out + at, bytes - at, "%s", id) < bytes - at;
}
