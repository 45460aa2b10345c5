#include "diag/flight.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/coll_kind.h"
#include "base/dtype.h"
#include "base/strbuf.h"
#include "base/unit.h"

#define PHASE_WORDS (DDP_FLIGHT_PHASE_BYTES / 8)

/* Writes the text into the buffer that is not current, then makes this buffer current. The buffer
 * that a reader reads is written again only after `phase_version` has changed. The words are stored
 * with release order, so a reader that sees a new word also sees that the version has changed, and
 * tries again. Fences are not used, because ThreadSanitizer does not model them. */
void ddp_flight_phase(struct ddp_flight *f, const char *fmt, ...)
{
    char text[DDP_FLIGHT_PHASE_BYTES] = {0};
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);

    uint32_t version = atomic_load_explicit(&f->phase_version, memory_order_relaxed) + 1;
    for (size_t i = 0; i < PHASE_WORDS; i++) {
        uint64_t word;
        memcpy(&word, text + 8 * i, 8);
        atomic_store_explicit(&f->phase[version % 2][i], word, memory_order_release);
    }
    atomic_store_explicit(&f->phase_version, version, memory_order_release);
}

/* Reads the phase. An attempt fails only if the phase changes during it. Phases change rarely, so
 * practically one of the attempts gives a consistent copy. */
void ddp_flight_phase_text(const struct ddp_flight *f, char *out, size_t out_bytes)
{
    char text[DDP_FLIGHT_PHASE_BYTES];
    for (int attempt = 0; attempt < 1000; attempt++) {
        uint32_t before = atomic_load_explicit(&f->phase_version, memory_order_acquire);
        for (size_t i = 0; i < PHASE_WORDS; i++) {
            uint64_t word = atomic_load_explicit(&f->phase[before % 2][i], memory_order_acquire);
            memcpy(text + 8 * i, &word, 8);
        }
        if (atomic_load_explicit(&f->phase_version, memory_order_relaxed) == before)
            break;
    }
    text[sizeof text - 1] = '\0';
    ddp_printable(text[0] != '\0' ? text : "start", out, out_bytes);
}

const char *ddp_flight_what(unsigned what)
{
    static const char *const more[] = {"send", "receive", "exchange", "alloc"};
    if (what < DDP_COLL_COUNT)
        return ddp_coll_name((enum ddp_coll)what);
    if (what >= DDP_FLIGHT_SEND && what < DDP_FLIGHT_SEND + sizeof more / sizeof more[0])
        return more[what - DDP_FLIGHT_SEND];
    return "unknown operation";
}

bool ddp_flight_at(const struct ddp_flight *f, uint64_t index, struct ddp_flight_op *op,
                   enum ddp_flight_state *state)
{
    const struct ddp_flight_entry *e = &f->ring[index % DDP_FLIGHT_DEPTH];
    *state = (enum ddp_flight_state)atomic_load_explicit(&e->state, memory_order_acquire);
    op->what = atomic_load_explicit(&e->what, memory_order_relaxed);
    op->dtype = atomic_load_explicit(&e->dtype, memory_order_relaxed);
    op->bytes = atomic_load_explicit(&e->bytes, memory_order_relaxed);
    op->group = atomic_load_explicit(&e->group, memory_order_relaxed);
    op->seq = atomic_load_explicit(&e->seq, memory_order_relaxed);
    op->ranks = atomic_load_explicit(&e->ranks, memory_order_relaxed);
    /* Check whether the entry may have been overwritten during the read. The owner starts to write
     * the entry again when `entered` reaches index + DEPTH. */
    uint64_t entered = atomic_load_explicit(&f->entered, memory_order_acquire);
    return index < entered && entered - index < DDP_FLIGHT_DEPTH;
}

bool ddp_flight_newest(const struct ddp_flight *f, struct ddp_flight_op *op,
                       enum ddp_flight_state *state)
{
    uint64_t entered = atomic_load_explicit(&f->entered, memory_order_acquire);
    return entered > 0 && ddp_flight_at(f, entered - 1, op, state);
}

void ddp_flight_name(const struct ddp_flight_op *op, char *out, size_t out_bytes)
{
    const char *what = ddp_flight_what(op->what);
    unsigned long long seq = op->seq;
    if (op->seq == DDP_FLIGHT_NO_SEQ)
        snprintf(out, out_bytes, "%s", what);
    else if (op->group == 0)
        snprintf(out, out_bytes, "%s seq %llu", what, seq);
    else
        snprintf(out, out_bytes, "%s seq %llu of a group of %d", what, seq, op->ranks);
}

void ddp_flight_size(const struct ddp_flight_op *op, char *out, size_t out_bytes)
{
    char size[32];
    ddp_format_size(op->bytes, size, sizeof size);
    if (op->what == DDP_BARRIER)
        snprintf(out, out_bytes, "%s", "");
    else if (op->what < DDP_COLL_COUNT && op->dtype < DDP_DTYPE_COUNT)
        snprintf(out, out_bytes, " (%s, %s)", size, ddp_dtype_name((enum ddp_dtype)op->dtype));
    else
        snprintf(out, out_bytes, " (%s)", size);
}

void ddp_flight_describe(const struct ddp_flight *f, char *out, size_t out_bytes)
{
    char phase[DDP_FLIGHT_PHASE_BYTES], name[64], size[48];
    struct ddp_flight_op op;
    enum ddp_flight_state state;
    ddp_flight_phase_text(f, phase, sizeof phase);
    if (!ddp_flight_newest(f, &op, &state)) {
        snprintf(out, out_bytes, "phase '%s', no operation yet", phase);
        return;
    }
    ddp_flight_name(&op, name, sizeof name);
    ddp_flight_size(&op, size, sizeof size);
    if (state == DDP_FLIGHT_DONE)
        snprintf(out, out_bytes, "phase '%s', after %s%s", phase, name, size);
    else
        snprintf(out, out_bytes, "%s%s in phase '%s'", name, size, phase);
}

bool ddp_flight_busy(const struct ddp_flight *f, uint64_t *index)
{
    uint64_t entered = atomic_load_explicit(&f->entered, memory_order_acquire);
    if (entered == 0)
        return false;
    const struct ddp_flight_entry *e = &f->ring[(entered - 1) % DDP_FLIGHT_DEPTH];
    *index = entered - 1;
    return atomic_load_explicit(&e->state, memory_order_acquire) == DDP_FLIGHT_ENTERED;
}
