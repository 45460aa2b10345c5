/* The table of sync strategies, and the parser of their names. */
#include "exchange/sync.h"

#include <stdio.h>

#include "base/mem.h"
#include "base/unit.h"

static const struct ddp_sync_class *const classes[] = {
#define DDP_SYNC(symbol) &ddp_sync_##symbol,
#include "exchange/sync_list.h"
#undef DDP_SYNC
};

/* Stores the class of the i-th strategy in *cls and its name in *out. Returns false past the end.
 */
static bool strategy_at(int i, const struct ddp_sync_class **cls, struct ddp_named *out)
{
    for (size_t k = 0; k < DDP_COUNT_OF(classes); k++) {
        *cls = classes[k];
        *out = (struct ddp_named){(*cls)->name, (*cls)->summary, (*cls)->argument_help, NULL};
        if (!(*cls)->compresses && i-- == 0)
            return true;
        for (const struct ddp_compressor *const *c = ddp_compressors();
             (*cls)->compresses && *c != NULL; c++) {
            *out = (struct ddp_named){(*c)->name, (*c)->train_summary, (*c)->argument_help,
                                      ddp_compressor_modifier(*c)};
            if (!ddp_compressor_is_lossless(*c) && i-- == 0)
                return true;
        }
    }
    return false;
}

bool ddp_sync_at(int i, struct ddp_named *out)
{
    const struct ddp_sync_class *cls;
    return strategy_at(i, &cls, out);
}

int ddp_sync_parse(const char *text, struct ddp_sync_spec *out, struct ddp_err *err)
{
    struct ddp_sync_spec made = {.text = text};
    struct ddp_err why = DDP_ERR_INIT;
    struct ddp_named entry;
    const char *argument, *modifier = ddp_compress_modifier(text);
    char plain[64];
    int index, rc = 0;
    snprintf(plain, sizeof plain, "%.*s", (int)DDP_MIN((size_t)(modifier - text), sizeof plain - 1),
             text);
    DDP_TRY(ddp_named_find("sync strategy", ddp_sync_at, plain, &index, &argument, err));
    strategy_at(index, &made.cls, &entry);
    if (modifier[0] != '\0' && !made.cls->compresses)
        return ddp_fail(err, DDP_EUSAGE, "sync strategy '%s' takes no modifier: '%s'", entry.name,
                        text);
    if (made.cls->compresses)
        rc = ddp_compress_parse(text, &made.compress, &why);
    else if (made.cls->number_max > 0)
        rc = ddp_parse_int(argument, 1, made.cls->number_max, &made.number, &why);
    if (rc != 0) {
        ddp_fail(err, rc, "sync strategy '%.100s': %.360s", text, why.text);
        return why.hint[0] != '\0' ? ddp_hint(err, "%s", why.hint) : rc;
    }
    *out = made;
    return 0;
}

double ddp_sync_scale(const struct ddp_sync_class *cls, int ranks, size_t images, size_t global)
{
    switch (cls->scale) {
    case DDP_SCALE_MEAN:
        return (double)ranks / (double)global;
    case DDP_SCALE_PRIVATE:
        return images > 0 ? 1.0 / (double)images : 0.0;
    case DDP_SCALE_SUM:
        break;
    }
    return 1.0 / (double)global;
}
