#include "record/vary.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

const char *const ddp_vary_names[] = {"algorithm", "backend", "memory",   "compress", "ranks",
                                      "dtype",     "sync",    "feedback", "lr",       NULL};

/* An id consists of parts between slashes (ddp_point_id). Every id has the parts below,
 * and optional parts may follow. This table has their keys of --vary. -1: the part has no key. */
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

void ddp_vary_text(unsigned vary, char *out, size_t bytes)
{
    size_t at = 0;
    out[0] = '\0';
    for (int k = 0; ddp_vary_names[k]; k++)
        if (vary >> k & 1 && at < bytes)
            at += (size_t)snprintf(out + at, bytes - at, "%s%s", at ? ", " : "", ddp_vary_names[k]);
}

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

bool ddp_vary_id(unsigned vary, const char *id, char *out, size_t bytes)
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
