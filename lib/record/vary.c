#include "record/vary.h"

#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"

static const struct {
    const char *name;
    unsigned bit;
} known[] = {
    {"sync", DDP_VARY_SYNC},
    {"feedback", DDP_VARY_FEEDBACK},
    {"lr", DDP_VARY_LR},
};

const char *ddp_vary_name(int i)
{
    return i >= 0 && (size_t)i < DDP_COUNT_OF(known) ? known[i].name : NULL;
}

static int refuse(const char *key, struct ddp_err *err)
{
    char names[128] = "";
    for (size_t i = 0; i < DDP_COUNT_OF(known); i++)
        ddp_text_append(names, sizeof names, "%s%s", i ? ", " : "", known[i].name);
    return ddp_fail(err, DDP_EUSAGE, "--vary: '%s' is not a key; it must be one of %s", key, names);
}

int ddp_vary_parse(const struct ddp_string_list *keys, unsigned *vary, struct ddp_err *err)
{
    *vary = 0;
    for (int i = 0; i < keys->n; i++) {
        size_t k = 0;
        while (k < DDP_COUNT_OF(known) && strcmp(known[k].name, keys->v[i]) != 0)
            k++;
        if (k == DDP_COUNT_OF(known))
            return refuse(keys->v[i], err);
        *vary |= known[k].bit;
    }
    return 0;
}
