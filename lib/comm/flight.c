#include "comm/flight.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/coll_kind.h"
#include "base/dtype.h"
#include "base/strbuf.h"
#include "base/unit.h"

#define PHASE_WORDS (DDP_FLIGHT_PHASE_BYTES / 8)

/* Writes the text that does not hold, then lets it hold. Every word is stored with release order
 * (ThreadSanitizer knows no fences), so a reader that sees a word of the next text but one also
 * sees that the version has moved on. */
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

/* The phase as it stood at one moment. A writer must finish two phases during one read to spoil it,
 * so a few attempts are plenty. */
static void read_phase(const struct ddp_flight *f, char *out, size_t out_bytes)
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
    ddp_printable(text, out, out_bytes);
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

static void describe_entry(const struct ddp_flight_entry *e, char *out, size_t out_bytes)
{
    unsigned what = atomic_load_explicit(&e->what, memory_order_relaxed);
    unsigned dtype = atomic_load_explicit(&e->dtype, memory_order_relaxed);
    unsigned long long seq = atomic_load_explicit(&e->seq, memory_order_relaxed);
    char size[32];
    ddp_format_size(atomic_load_explicit(&e->bytes, memory_order_relaxed), size, sizeof size);
    if (what == DDP_BARRIER)
        snprintf(out, out_bytes, "%s seq %llu", ddp_flight_what(what), seq);
    else if (what < DDP_COLL_COUNT && dtype < DDP_DTYPE_COUNT)
        snprintf(out, out_bytes, "%s seq %llu (%s, %s)", ddp_flight_what(what), seq, size,
                 ddp_dtype_name((enum ddp_dtype)dtype));
    else
        snprintf(out, out_bytes, "%s seq %llu (%s)", ddp_flight_what(what), seq, size);
}

void ddp_flight_describe(const struct ddp_flight *f, char *out, size_t out_bytes)
{
    char phase[DDP_FLIGHT_PHASE_BYTES], operation[128];
    read_phase(f, phase, sizeof phase);
    if (phase[0] == '\0')
        snprintf(phase, sizeof phase, "start");

    uint64_t entered = atomic_load_explicit(&f->seq, memory_order_acquire);
    if (entered == 0) {
        snprintf(out, out_bytes, "phase '%s', no operation yet", phase);
        return;
    }
    const struct ddp_flight_entry *e = &f->ring[(entered - 1) % DDP_FLIGHT_DEPTH];
    unsigned state = atomic_load_explicit(&e->state, memory_order_acquire);
    describe_entry(e, operation, sizeof operation);
    if (state == DDP_FLIGHT_DONE)
        snprintf(out, out_bytes, "phase '%s', after %s", phase, operation);
    else
        snprintf(out, out_bytes, "%s in phase '%s'", operation, phase);
}

bool ddp_flight_busy(const struct ddp_flight *f, uint64_t *seq)
{
    uint64_t entered = atomic_load_explicit(&f->seq, memory_order_acquire);
    if (entered == 0)
        return false;
    const struct ddp_flight_entry *e = &f->ring[(entered - 1) % DDP_FLIGHT_DEPTH];
    *seq = entered - 1;
    return atomic_load_explicit(&e->state, memory_order_acquire) == DDP_FLIGHT_ENTERED;
}
