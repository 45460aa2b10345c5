/* The table of sync strategies, and the parser of their names. */
#include "exchange/sync.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"

#define DDP_SYNC(symbol) extern const struct ddp_sync_class ddp_sync_##symbol;
#include "exchange/sync_list.h"
#undef DDP_SYNC

static const struct ddp_sync_class *const classes[] = {
#define DDP_SYNC(symbol) &ddp_sync_##symbol,
#include "exchange/sync_list.h"
#undef DDP_SYNC
    NULL,
};

const struct ddp_sync_class *const *ddp_syncs(void)
{
    return classes;
}

static const char *class_name(const void *ctx, int i)
{
    (void)ctx;
    return classes[i] ? classes[i]->name : NULL;
}

static int unknown(const char *text, size_t name_bytes, struct ddp_err *err)
{
    char legal[320] = "", name[64];
    for (int i = 0; classes[i]; i++) {
        size_t n = strlen(legal);
        const char *help = classes[i]->argument_help ? classes[i]->argument_help : "";
        const bool optional = help[0] == '[';
        snprintf(legal + n, sizeof legal - n, "%s%s%s%s", i ? ", " : "", classes[i]->name,
                 optional  ? "[:"
                 : help[0] ? ":"
                           : "",
                 help + optional);
    }
    snprintf(name, sizeof name, "%.*s", (int)name_bytes, text);
    ddp_fail(err, DDP_EUSAGE, "unknown sync strategy '%s'; legal: %s", name, legal);
    const char *near = ddp_nearest(name, class_name, NULL);
    if (near)
        ddp_hint(err, "did you mean '%s'?", near);
    return DDP_EUSAGE;
}

static int check_argument(const struct ddp_sync_class *c, const char *text, const char *argument,
                          struct ddp_err *err)
{
    struct ddp_err inner = DDP_ERR_INIT;
    if (c->check(argument, &inner) == 0)
        return 0;
    ddp_fail(err, DDP_EUSAGE, "sync strategy '%.100s': %.360s", text, inner.text);
    return inner.hint[0] ? ddp_hint(err, "%s", inner.hint) : DDP_EUSAGE;
}

int ddp_sync_find(const char *text, const struct ddp_sync_class **cls, const char **argument,
                  struct ddp_err *err)
{
    const char *colon = strchr(text, ':');
    size_t name_bytes = colon ? (size_t)(colon - text) : strlen(text);
    for (int i = 0; classes[i]; i++) {
        const struct ddp_sync_class *c = classes[i];
        if (strlen(c->name) != name_bytes || memcmp(c->name, text, name_bytes) != 0)
            continue;
        if (colon && !c->argument_help)
            return ddp_fail(err, DDP_EUSAGE, "sync strategy '%s' takes no argument: '%s'", c->name,
                            text);
        if (!colon && c->argument_help && c->argument_help[0] != '[')
            return ddp_fail(err, DDP_EUSAGE, "sync strategy '%s' needs an argument: '%s:%s'",
                            c->name, c->name, c->argument_help);
        if (colon && colon[1] == '\0')
            return ddp_fail(err, DDP_EUSAGE, "sync strategy '%s' needs an argument after ':'",
                            text);
        if (c->check)
            DDP_TRY(check_argument(c, text, colon ? colon + 1 : "", err));
        *cls = c;
        *argument = colon ? colon + 1 : "";
        return 0;
    }
    return unknown(text, DDP_MIN(name_bytes, (size_t)63), err);
}
