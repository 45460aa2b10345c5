/* The table of compressors, the parser for their names and arguments, and error feedback. */
#include "compress/compress.h"

#include <ctype.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/unit.h"

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

/* A rounding error of the product must not increase the result: the double 0.07 * 100, for example,
 * is a little more than 7. If the relative distance of the product from a whole number is at most
 * 2^-50, the product counts as this whole number. */
size_t ddp_compress_k(double density, size_t n)
{
    const double exact = density * (double)n;
    const double nearest = nearbyint(exact);
    const double k = fabs(exact - nearest) <= exact * 0x1p-50 ? nearest : ceil(exact);
    if (n == 0)
        return 0;
    return k < 1 ? 1 : k >= (double)n ? n : (size_t)k;
}

const struct ddp_compress_spec ddp_compress_none = {
    .compressor = &ddp_comp_none, .argument = NAN, .text = "none"};

bool ddp_compressor_is_lossless(const struct ddp_compressor *c)
{
    return c->combine == DDP_COMBINE_SUM && c->wire_dtype == DDP_F32;
}

bool ddp_compress_keeps(const struct ddp_compress_spec *spec, enum ddp_feedback feedback)
{
    if (ddp_compressor_is_lossless(spec->compressor))
        return false;
    return feedback == DDP_FEEDBACK_AUTO ? spec->compressor->feedback_default
                                         : feedback == DDP_FEEDBACK_ON;
}

void ddp_named_form(const struct ddp_named *entry, char *out, size_t out_bytes)
{
    const char *help = entry->argument_help != NULL ? entry->argument_help : "";
    const bool optional = help[0] == '[';
    snprintf(out, out_bytes, "%s%s%s%s%s%s", entry->name,
             optional          ? "[:"
             : help[0] != '\0' ? ":"
                               : "",
             help + optional, entry->modifier ? "[" : "", entry->modifier ? entry->modifier : "",
             entry->modifier ? "]" : "");
}

struct named_list {
    bool (*at)(int i, struct ddp_named *out);
};

static const char *name_at(const void *ctx, int i)
{
    struct ddp_named entry;
    return ((const struct named_list *)ctx)->at(i, &entry) ? entry.name : NULL;
}

static int unknown(const char *what, const struct named_list *list, const char *name,
                   struct ddp_err *err)
{
    char legal[320] = "", form[64];
    struct ddp_named entry;
    for (int i = 0; list->at(i, &entry); i++) {
        const size_t used = strlen(legal);
        ddp_named_form(&entry, form, sizeof form);
        snprintf(legal + used, sizeof legal - used, "%s%s", i != 0 ? ", " : "", form);
    }
    ddp_fail(err, DDP_EUSAGE, "unknown %s '%s'", what, name);
    char advice[sizeof legal + 8];
    snprintf(advice, sizeof advice, "legal: %s", legal);
    return ddp_hint_nearest(err, name, name_at, list, advice);
}

int ddp_named_find(const char *what, bool (*at)(int i, struct ddp_named *out), const char *text,
                   int *index, const char **argument, struct ddp_err *err)
{
    const char *colon = strchr(text, ':');
    const size_t name_bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);
    const struct named_list list = {at};
    struct ddp_named entry;
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)DDP_MIN(name_bytes, sizeof name - 1), text);
    *index = 0;
    while (at(*index, &entry) && strcmp(entry.name, name) != 0)
        ++*index;
    if (!at(*index, &entry))
        return unknown(what, &list, name, err);
    const char *help = entry.argument_help;
    if (colon != NULL && help == NULL)
        return ddp_fail(err, DDP_EUSAGE, "%s '%s' takes no argument: '%s'", what, name, text);
    if (colon == NULL && help != NULL && help[0] != '[')
        return ddp_fail(err, DDP_EUSAGE, "%s '%s' needs an argument: '%s:%s'", what, name, name,
                        help);
    *argument = colon != NULL ? colon + 1 : NULL;
    return 0;
}

bool ddp_compressor_at(int i, struct ddp_named *out)
{
    const struct ddp_compressor *c = compressors[i];
    if (c == NULL)
        return false;
    *out = (struct ddp_named){c->name, c->summary, c->argument_help, ddp_compressor_modifier(c)};
    return true;
}

const char *ddp_compressor_modifier(const struct ddp_compressor *compressor)
{
    return compressor->two_phase ? "+sr" : NULL;
}

const struct ddp_compressor *ddp_compressor_find(const char *name)
{
    int i = 0;
    while (compressors[i] != NULL && strcmp(compressors[i]->name, name) != 0)
        i++;
    return compressors[i];
}

struct ddp_tensor ddp_compress_flat(size_t n)
{
    return (struct ddp_tensor){n, (size_t)ceil(sqrt((double)n))};
}

struct ddp_compress_spec ddp_compress_with(const struct ddp_compressor *compressor, double argument)
{
    struct ddp_compress_spec spec = {.compressor = compressor, .argument = argument};
    if (isnan(argument))
        snprintf(spec.text, sizeof spec.text, "%s", compressor->name);
    else
        snprintf(spec.text, sizeof spec.text, "%s:%.6g", compressor->name, argument);
    return spec;
}

const char *ddp_compress_modifier(const char *text)
{
    while (*text != '\0' && !(text[0] == '+' && isalpha((unsigned char)text[1])))
        text++;
    return text;
}

uint64_t ddp_compress_key(uint64_t seed, int rank, uint64_t calls)
{
    return ddp_mix64(ddp_mix64(ddp_mix64(seed) ^ (uint64_t)rank) ^ calls);
}

/* Reads the modifier at the end of a compressor's text, if there is one. */
static int parse_modifier(const char *modifier, struct ddp_compress_spec *spec, struct ddp_err *err)
{
    if (modifier[0] == '\0')
        return 0;
    const char *legal = ddp_compressor_modifier(spec->compressor);
    if (!legal || strcmp(modifier, legal) != 0)
        return ddp_fail(err, DDP_EUSAGE,
                        "'%s' is not a modifier of '%s'; only q8, q4, fp8-e4m3 and fp8-e5m2 accept "
                        "one: +sr (stochastic rounding)",
                        modifier, spec->compressor->name);
    spec->stochastic = true;
    return 0;
}

int ddp_compress_parse(const char *text, struct ddp_compress_spec *spec, struct ddp_err *err)
{
    struct ddp_compress_spec made = {.argument = NAN};
    const char *argument, *modifier = ddp_compress_modifier(text);
    char plain[sizeof made.text];
    int index;
    if (strlen(text) >= sizeof made.text)
        return ddp_fail(err, DDP_EUSAGE, "compressor '%.40s...' is longer than allowed", text);
    snprintf(made.text, sizeof made.text, "%s", text);
    snprintf(plain, sizeof plain, "%.*s", (int)(modifier - text), text);
    DDP_TRY(ddp_named_find("compressor", ddp_compressor_at, plain, &index, &argument, err));
    made.compressor = compressors[index];
    DDP_TRY(parse_modifier(modifier, &made, err));
    if (argument != NULL) {
        const size_t bytes = strcspn(argument, made.compressor->dense_start ? ":" : "");
        char first[sizeof made.text];
        snprintf(first, sizeof first, "%.*s", (int)bytes, argument);
        DDP_TRY(ddp_parse_double(first, -DBL_MAX, DBL_MAX, &made.argument, err));
        DDP_TRY(made.compressor->check(made.argument, err));
        if (argument[bytes] != '\0')
            DDP_TRY(ddp_parse_int(argument + bytes + 1, 0, INT32_MAX, &made.dense_runs, err));
    }
    *spec = made;
    return 0;
}

int ddp_compress_parse_list(const struct ddp_string_list *texts, struct ddp_compress_list *out,
                            struct ddp_err *err)
{
    for (out->n = 0; out->n < texts->n; out->n++) {
        const char *text = texts->v[out->n];
        struct ddp_err why = DDP_ERR_INIT;
        const int rc = ddp_compress_parse(text, &out->v[out->n], &why);
        if (rc != 0) {
            if (strstr(why.text, text) != NULL)
                return ddp_fail_copy(err, &why);
            ddp_fail(err, rc, "compressor '%s': %.400s", text, why.text);
            return why.hint[0] != '\0' ? ddp_hint(err, "%s", why.hint) : rc;
        }
        for (int i = 0; i < out->n; i++)
            if (strcmp(out->v[i].text, text) == 0)
                return ddp_fail(err, DDP_EUSAGE, "compressor '%s' is given twice", text);
    }
    return 0;
}

/* The number of elements that encode_block encodes at a time. It is a multiple of the block size of
 * every quantising compressor. The array `acc` fits the first-level cache, so encode_block reads
 * each array from memory only once. */
#define BLOCK ((size_t)DDP_QUANT_BLOCK_MAX)

/* Computes the error of quantised blocks: residual = acc - decoded value, or 0 if this difference
 * is not finite. */
static void quant_residual(const struct ddp_encode *part, float *residual)
{
    float sent[BLOCK];
    part->device->grad->dequantize(sent, part->dense, part->n, ddp_compress_quant(part->spec),
                                   false);
    for (size_t i = 0; i < part->n; i++) {
        const float left = part->in[i] - sent[i];
        residual[i] = isfinite(left) ? left : 0;
    }
}

/* Returns the bytes of the first `n` encoded elements. For BLOCKS, n is a multiple of the block
 * size. */
static size_t encoded_bytes(const struct ddp_compress_spec *spec, size_t n)
{
    const struct ddp_compressor *c = spec->compressor;
    if (c->combine != DDP_COMBINE_BLOCKS)
        return n * ddp_dtype_size(c->wire_dtype);
    const struct ddp_quant quant = ddp_compress_quant(spec);
    return ddp_quant_blocks(quant, n) * ddp_quant_block_bytes(quant);
}

/* Encodes elements [first, first + count) of a bucket with a compressor that sends every element.
 * Updates the residual of these elements. */
static void encode_block(struct ddp_encode *e, size_t first, size_t count)
{
    const struct ddp_compressor *c = e->spec->compressor;
    const float *in = e->in + first;
    float *residual = e->residual + first;
    float acc[BLOCK];
    struct ddp_encode part = *e;

    for (size_t i = 0; i < count; i++)
        acc[i] = in[i] * e->scale + residual[i];
    part.in = acc;
    part.residual = NULL;
    part.n = count;
    part.scale = 1;
    part.scaled = e->scale;
    part.first = e->first + first;
    part.dense = (unsigned char *)e->dense + encoded_bytes(e->spec, first);
    c->encode(&part);
    e->overflow_count = part.overflow_count;
    if (c->combine == DDP_COMBINE_BLOCKS)
        quant_residual(&part, residual);
    else
        e->device->grad->narrow_residual(residual, acc, part.dense, count, c->wire_dtype);
}

void ddp_feedback_encode(struct ddp_encode *e)
{
    if (e->residual == NULL || e->spec->compressor->fuses_feedback) {
        e->spec->compressor->encode(e);
        return;
    }
    for (size_t first = 0; first < e->n; first += BLOCK)
        encode_block(e, first, DDP_MIN(BLOCK, e->n - first));
}
