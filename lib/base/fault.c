/* Counts passages of fault points and triggers the faults. Compiled only with FAULTS=1.
 *
 * The counters lie in memory that the forked ranks share. Each pair of a fault and a rank has its
 * own counter. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fault_impl.h"

/* Number of counter rows. Row 0 is for the collector, and the other rows are for ranks. Our
 * launcher starts at most 256 ranks. Under an outside launcher each rank has its own table. */
#define COUNTER_ROWS 257

struct tally {
    _Atomic(uint64_t) passed;
    _Atomic(int64_t) hit_ns; /* time of the hit (ddp_now_ns); 0: not hit yet */
};

struct fault_table {
    char *text; /* the whole value of DDPBENCH_FAULT */
    int count;
    struct ddp_fault_spec spec[DDP_FAULT_MAX];
    struct tally tally[DDP_FAULT_MAX][COUNTER_ROWS];
};

/* The armed faults of this process and of the ranks that it forks. Set by ddp_fault_arm. */
static _Atomic(struct fault_table *) armed;

static struct tally *tally_of(struct fault_table *b, int fault, int rank)
{
    return &b->tally[fault][rank < 0 ? 0 : 1 + rank % (COUNTER_ROWS - 1)];
}

static int parse_all(struct fault_table *b, const char *text, struct ddp_err *err)
{
    for (const char *at = text; *at != '\0';) {
        size_t length = strcspn(at, ",");
        if (b->count == DDP_FAULT_MAX)
            return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: more than %d faults", DDP_FAULT_MAX);
        DDP_TRY(ddp_fault_parse(at, length, &b->spec[b->count], err));
        b->count++;
        at += length;
        at += *at == ',';
    }
    return 0;
}

static void fault_table_destroy(struct fault_table *b)
{
    if (b == NULL)
        return;
    free(b->text);
    munmap(b, sizeof *b);
}

static int fault_table_create(const char *text, struct fault_table **out, struct ddp_err *err)
{
    struct fault_table *b =
        mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (b == MAP_FAILED)
        return ddp_fail(err, DDP_ENOMEM, "no memory for faults");
    b->text = strdup(text);
    int rc = b->text != NULL ? parse_all(b, text, err)
                             : ddp_fail(err, DDP_ENOMEM, "no memory for faults");
    if (rc != 0) {
        fault_table_destroy(b);
        return rc;
    }
    *out = b;
    return 0;
}

int ddp_fault_arm(const char *text, struct ddp_err *err)
{
    struct fault_table *b = NULL;
    const struct fault_table *now = atomic_load(&armed);
    if (now != NULL && text != NULL && strcmp(now->text, text) == 0)
        return 0;
    if (text != NULL)
        DDP_TRY(fault_table_create(text, &b, err));
    fault_table_destroy(atomic_exchange(&armed, b));
    return 0;
}

/* Ends the process by a signal. Uses kill(), because raise() would signal only one thread. */
static void die(int signal_number)
{
    if (signal_number != SIGKILL)
        signal(signal_number, SIG_DFL);
    kill(getpid(), signal_number);
    for (;;)
        pause();
}

/* Flips one bit of the data. In f32 it is the highest bit of the mantissa. In every type the change
 * is larger than a rounding error. */
static void flip(const void *data, size_t bytes)
{
    size_t at = bytes / 2 / 8 * 8 + 2;
    unsigned char *byte = (unsigned char *)(uintptr_t)data + (at < bytes ? at : bytes - 1);
    *byte ^= 0x40;
}

static int act(const struct ddp_fault_spec *spec, const void *data, size_t bytes,
               struct ddp_err *err)
{
    switch (spec->action) {
    case DDP_FAULT_KILL9:
        die(SIGKILL);
        break;
    case DDP_FAULT_SEGV:
        die(SIGSEGV);
        break;
    case DDP_FAULT_ABORT:
        die(SIGABRT);
        break;
    case DDP_FAULT_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case DDP_FAULT_SLEEP:
        ddp_sleep_ns((int64_t)spec->value * 1000000);
        break;
    case DDP_FAULT_FLIP:
        flip(data, bytes);
        break;
    default:
        errno = spec->value;
        return ddp_fail_errno(err, ddp_fault_rows()[spec->point].code, spec->value,
                              "injected fault '%s'", spec->text);
    }
    return 0;
}

int ddp_fault_pass(enum ddp_fault_at point, int rank, const void *data, size_t bytes,
                   struct ddp_err *err)
{
    struct fault_table *b = atomic_load_explicit(&armed, memory_order_acquire);
    for (int i = 0; b != NULL && rank != DDP_FAULT_NOBODY && i < b->count; i++) {
        const struct ddp_fault_spec *spec = &b->spec[i];
        if (spec->point != point || (spec->rank >= 0 && spec->rank != rank) ||
            (spec->action == DDP_FAULT_FLIP && bytes == 0))
            continue;
        struct tally *tally = tally_of(b, i, rank);
        if (atomic_fetch_add(&tally->passed, 1) + 1 != spec->n)
            continue;
        atomic_store(&tally->hit_ns, ddp_now_ns());
        DDP_TRY(act(spec, data, bytes, err));
    }
    return 0;
}

bool ddp_fault_last(int rank, const char **text, int64_t *hit_ns)
{
    struct fault_table *b = atomic_load_explicit(&armed, memory_order_acquire);
    *hit_ns = 0;
    for (int i = 0; b != NULL && i < b->count; i++) {
        int64_t at = atomic_load(&tally_of(b, i, rank)->hit_ns);
        if (at > *hit_ns) {
            *hit_ns = at;
            *text = b->spec[i].text;
        }
    }
    return *hit_ns > 0;
}

const char *ddp_fault_missed(void)
{
    struct fault_table *b = atomic_load_explicit(&armed, memory_order_acquire);
    for (int i = 0; b != NULL && i < b->count; i++) {
        bool hit = false;
        for (int p = 0; p < COUNTER_ROWS; p++)
            hit |= atomic_load(&b->tally[i][p].hit_ns) != 0;
        if (!hit)
            return b->spec[i].text;
    }
    return NULL;
}
