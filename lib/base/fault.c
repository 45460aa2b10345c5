/* Parses DDPBENCH_FAULT, counts how often each fault point is passed, and triggers the faults. This
 * file is compiled only with FAULTS=1.
 *
 * The counters lie in memory that the forked ranks share. Each pair of a fault and a rank has its
 * own counter. */
#include "base/fault.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/unit.h"

#define FAULTS_MAX 8
#define TEXT_BYTES 64

enum action {
    ACTION_KILL9,
    ACTION_SEGV,
    ACTION_STOP,
    ACTION_ABORT,
    ACTION_SLEEP,
    ACTION_FLIP,
    ACTION_ERRNO,
    ACTION_COUNT
};

struct spec {
    enum ddp_fault_at point;
    enum action action;
    /* The number of the passage at which the fault hits. The first passage is 1. */
    uint64_t n;
    int value;             /* milliseconds for sleep, an errno value for errno */
    int rank;              /* -1: every rank */
    char text[TEXT_BYTES]; /* the fault as the user wrote it */
};

#define SLEEP_MS     100
#define SLEEP_MS_MAX 3600000
#define RANK_MAX     1000000
#define ERRNO_MAX    200 /* greater than every errno of Linux */

static const struct ddp_fault_row rows[DDP_AT_COUNT] = {
#define DDP_FAULT_POINT(symbol, name, collector, code, data, help)                                 \
    [DDP_AT_##symbol] = {name, help, code, collector, data},
#include "base/fault_list.h"
#undef DDP_FAULT_POINT
};

static const char *const actions[ACTION_COUNT] = {
    [ACTION_KILL9] = "kill9", [ACTION_SEGV] = "segv",   [ACTION_STOP] = "stop",
    [ACTION_ABORT] = "abort", [ACTION_SLEEP] = "sleep", [ACTION_FLIP] = "flip",
    [ACTION_ERRNO] = "errno",
};

const struct ddp_fault_row *ddp_fault_rows(void)
{
    return rows;
}

static const char *point_name(const void *ctx, int i)
{
    (void)ctx;
    return i < DDP_AT_COUNT ? rows[i].name : NULL;
}

static const char *action_name(const void *ctx, int i)
{
    (void)ctx;
    return i < ACTION_COUNT ? actions[i] : NULL;
}

static const char *errno_name(const void *ctx, int i)
{
    (void)ctx;
    const char *name = i < ERRNO_MAX ? strerrorname_np(i + 1) : NULL;
    return name != NULL ? name : i < ERRNO_MAX ? "?" : NULL;
}

/* Returns the index of `word` among the candidates, or DDP_EUSAGE. The hint suggests the nearest
 * candidate. If no candidate is near, the hint lists all candidates. Errno names are not listed,
 * because there are too many. */
static int find(const char *fault, const char *what, const char *word, ddp_candidate *candidate,
                struct ddp_err *err)
{
    for (int i = 0; candidate(NULL, i) != NULL; i++)
        if (strcmp(candidate(NULL, i), word) == 0)
            return i;
    ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s': unknown %s '%s'", fault, what, word);
    return ddp_hint_nearest(err, word, candidate, NULL,
                            candidate == errno_name ? "use a name such as EIO or ENOSPC" : NULL);
}

static int malformed(const char *fault, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s' is not point:n:action[=value][@rank]", fault);
    return ddp_hint(err,
                    "an example is coll-enter:3:kill9@1; `ddpbench list fault` shows the points");
}

static int number(const char *fault, const char *text, int64_t min, int64_t max, int64_t *out,
                  struct ddp_err *err)
{
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_parse_int(text, min, max, out, &why) == 0)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s': %.200s", fault, why.text);
}

static int parse_value(const char *fault, const char *text, struct spec *out, struct ddp_err *err)
{
    int64_t value = SLEEP_MS;
    if (out->action == ACTION_SLEEP) {
        if (text != NULL)
            DDP_TRY(number(fault, text, 1, SLEEP_MS_MAX, &value, err));
        out->value = (int)value;
        return 0;
    }
    if (out->action == ACTION_ERRNO) {
        int i = find(fault, "errno", text != NULL ? text : "EIO", errno_name, err);
        out->value = i + 1;
        return i >= 0 ? 0 : i;
    }
    if (text == NULL)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s': action '%s' takes no value", fault,
                    actions[out->action]);
}

/* Rejects an action or a rank that does not fit the point. */
static int check(const struct spec *spec, bool ranked, struct ddp_err *err)
{
    const struct ddp_fault_row *row = &rows[spec->point];
    if (spec->action == ACTION_FLIP && !row->data)
        return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s': point '%s' has no data to flip",
                        spec->text, row->name);
    if (ranked && row->collector)
        return ddp_fail(err, DDP_EUSAGE,
                        "DDPBENCH_FAULT: '%s': point '%s' is passed by the collector, not by ranks",
                        spec->text, row->name);
    return 0;
}

/* Cuts the text before the first occurrence of the character `at`. Returns the text after this
 * character, or NULL if the character does not occur. */
static char *cut(char *text, char at)
{
    char *found = strchr(text, at);
    if (found != NULL)
        *found++ = '\0';
    return found;
}

/* Parses one fault, point:n:action[=value][@rank], from text[length]. */
static int parse_fault(const char *text, size_t length, struct spec *out, struct ddp_err *err)
{
    char parts[TEXT_BYTES];
    int64_t n, rank = -1;
    *out = (struct spec){.rank = -1};
    snprintf(out->text, sizeof out->text, "%.*s", (int)length, text);
    snprintf(parts, sizeof parts, "%s", out->text);
    char *count = cut(parts, ':');
    char *action = count != NULL ? cut(count, ':') : NULL;
    if (length >= sizeof out->text || action == NULL)
        return malformed(out->text, err);
    char *at = cut(action, '@');
    char *value = cut(action, '=');

    int point = find(out->text, "point", parts, point_name, err);
    DDP_TRY(point < 0 ? point : 0);
    DDP_TRY(number(out->text, count, 1, INT64_MAX, &n, err));
    int does = find(out->text, "action", action, action_name, err);
    DDP_TRY(does < 0 ? does : 0);
    if (at != NULL)
        DDP_TRY(number(out->text, at, 0, RANK_MAX, &rank, err));
    out->point = (enum ddp_fault_at)point;
    out->action = (enum action)does;
    out->n = (uint64_t)n;
    out->rank = (int)rank;
    DDP_TRY(parse_value(out->text, value, out, err));
    return check(out, at != NULL, err);
}

/* Number of counters of a fault. Counter 0 is for points outside the work of the ranks, and the
 * others are for ranks. Our launcher starts at most 256 ranks. Under an outside launcher each
 * process has its own table. Therefore no two ranks share a counter. */
#define COUNTER_ROWS 257

struct tally {
    _Atomic(uint64_t) passed;
    _Atomic(int64_t) hit_ns; /* time of the hit (ddp_now_ns); 0: not hit yet */
};

struct fault_table {
    char *text; /* the whole value of DDPBENCH_FAULT */
    int count;
    struct spec spec[FAULTS_MAX];
    struct tally tally[FAULTS_MAX][COUNTER_ROWS];
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
        if (b->count == FAULTS_MAX)
            return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: more than %d faults", FAULTS_MAX);
        DDP_TRY(parse_fault(at, length, &b->spec[b->count], err));
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
        return ddp_fail_memory(err, 1, sizeof *b, __func__);
    b->text = strdup(text);
    int rc = b->text != NULL ? parse_all(b, text, err)
                             : ddp_fail_memory(err, strlen(text) + 1, 1, __func__);
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

/* Ends the process by a signal. Uses kill(), because this thread may block the signal. */
static void die(int signal_number)
{
    if (signal_number != SIGKILL)
        signal(signal_number, SIG_DFL);
    kill(getpid(), signal_number);
    for (;;)
        pause();
}

/* Flips one bit of the data. In an array of f32, this is the highest bit of a mantissa. In every
 * type, the change is larger than a rounding error. */
static void flip(const void *data, size_t bytes)
{
    size_t at = bytes / 2 / 8 * 8 + 2;
    unsigned char *byte = (unsigned char *)(uintptr_t)data + (at < bytes ? at : bytes - 1);
    *byte ^= 0x40;
}

static int act(const struct spec *spec, const void *data, size_t bytes, struct ddp_err *err)
{
    switch (spec->action) {
    case ACTION_KILL9:
        die(SIGKILL);
        break;
    case ACTION_SEGV:
        die(SIGSEGV);
        break;
    case ACTION_ABORT:
        die(SIGABRT);
        break;
    case ACTION_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case ACTION_SLEEP:
        ddp_sleep_ns((int64_t)spec->value * 1000000);
        break;
    case ACTION_FLIP:
        flip(data, bytes);
        break;
    default:
        errno = spec->value;
        return ddp_fail_errno(err, rows[spec->point].code, spec->value, "injected fault '%s'",
                              spec->text);
    }
    return 0;
}

int ddp_fault_pass(enum ddp_fault_at point, int rank, const void *data, size_t bytes,
                   struct ddp_err *err)
{
    struct fault_table *b = atomic_load_explicit(&armed, memory_order_acquire);
    for (int i = 0; b != NULL && rank != DDP_FAULT_NOBODY && i < b->count; i++) {
        const struct spec *spec = &b->spec[i];
        if (spec->point != point || (spec->rank >= 0 && spec->rank != rank) ||
            (spec->action == ACTION_FLIP && bytes == 0))
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
