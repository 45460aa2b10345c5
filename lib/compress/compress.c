/* The table of compressors, and the parser for their names and arguments. */
#include "compress/compress.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/opt.h"
#include "base/unit.h"

#define DDP_COMPRESSOR(symbol) extern const struct ddp_compressor ddp_comp_##symbol;
#include "compress/compress_list.h"
#undef DDP_COMPRESSOR

static const struct ddp_compressor *const compressors[] = {
#define DDP_COMPRESSOR(symbol) &ddp_comp_##symbol,
#include "compress/compress_list.h"
#undef DDP_COMPRESSOR
    NULL,
};

const struct ddp_compressor *const *ddp_compressors(void)
{
    return compressors;
}

/* Rounding errors must not add an entry. For example, 0.07 * 100 is a little more than 7 in binary.
 * A product with a relative distance of at most 2^-50 from a whole number counts as that number. */
size_t ddp_compress_k(double density, size_t n)
{
    const double exact = density * (double)n;
    const double nearest = nearbyint(exact);
    const double k = fabs(exact - nearest) <= exact * 0x1p-50 ? nearest : ceil(exact);
    if (n == 0)
        return 0;
    return k < 1 ? 1 : k >= (double)n ? n : (size_t)k;
}

static const char *name_at(const void *ctx, int i)
{
    (void)ctx;
    return compressors[i] != NULL ? compressors[i]->name : NULL;
}

static int unknown(const char *name, struct ddp_err *err)
{
    char legal[256] = "";
    for (int i = 0; compressors[i] != NULL; i++) {
        const struct ddp_compressor *c = compressors[i];
        const bool optional = c->argument_help != NULL && c->argument_help[0] == '[';
        const size_t used = strlen(legal);
        snprintf(legal + used, sizeof legal - used, "%s%s%s%s", i != 0 ? ", " : "", c->name,
                 c->argument_help != NULL && !optional ? ":" : "",
                 c->argument_help != NULL && !optional ? c->argument_help : "");
    }
    ddp_fail(err, DDP_EUSAGE, "unknown compressor '%s'; legal: %s", name, legal);
    const char *near = ddp_nearest(name, name_at, NULL);
    if (near != NULL)
        ddp_hint(err, "did you mean '%s'?", near);
    return DDP_EUSAGE;
}

static const struct ddp_compressor *find(const char *name)
{
    for (int i = 0; compressors[i] != NULL; i++)
        if (strcmp(compressors[i]->name, name) == 0)
            return compressors[i];
    return NULL;
}

int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec, struct ddp_err *err)
{
    struct ddp_compress_spec made = {.argument = NAN};
    const char *colon = strchr(text, ':');
    const size_t name_bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);
    char name[sizeof made.text];

    if (strlen(text) >= sizeof made.text)
        return ddp_fail(err, DDP_EUSAGE, "compressor '%.40s...' is longer than allowed", text);
    snprintf(made.text, sizeof made.text, "%s", text);
    snprintf(name, sizeof name, "%.*s", (int)name_bytes, text);
    made.compressor = find(name);
    if (made.compressor == NULL)
        return unknown(name, err);

    const char *help = made.compressor->argument_help;
    if (colon != NULL && help == NULL)
        return ddp_fail(err, DDP_EUSAGE, "compressor '%s' takes no argument: '%s'", name, text);
    if (colon == NULL && help != NULL && help[0] != '[')
        return ddp_fail(err, DDP_EUSAGE, "compressor '%s' needs an argument: '%s:%s'", name, name,
                        help);
    if (colon != NULL) {
        DDP_TRY(ddp_parse_double(colon + 1, -DBL_MAX, DBL_MAX, &made.argument, err));
        DDP_TRY(made.compressor->check(made.argument, err));
    }
    *spec = made;
    return 0;
}
