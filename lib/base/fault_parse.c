/* Parses one fault of DDPBENCH_FAULT, point:n:action[=value][@rank]. Compiled only with
 * FAULTS=1. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fault_impl.h"
#include "base/opt.h"
#include "base/unit.h"

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

static const char *const actions[DDP_FAULT_ACTION_COUNT] = {
    [DDP_FAULT_KILL9] = "kill9", [DDP_FAULT_SEGV] = "segv",   [DDP_FAULT_STOP] = "stop",
    [DDP_FAULT_ABORT] = "abort", [DDP_FAULT_SLEEP] = "sleep", [DDP_FAULT_FLIP] = "flip",
    [DDP_FAULT_ERRNO] = "errno",
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
    return i < DDP_FAULT_ACTION_COUNT ? actions[i] : NULL;
}

static const char *errno_name(const void *ctx, int i)
{
    (void)ctx;
    const char *name = i < ERRNO_MAX ? strerrorname_np(i + 1) : NULL;
    return name != NULL ? name : i < ERRNO_MAX ? "?" : NULL;
}

/* Returns the index of `word` among the candidates, or DDP_EUSAGE. The hint lists the candidates,
 * except errno names, because there are too many. */
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

static int parse_value(const char *fault, const char *text, struct ddp_fault_spec *out,
                       struct ddp_err *err)
{
    int64_t value = SLEEP_MS;
    if (out->action == DDP_FAULT_SLEEP) {
        if (text != NULL)
            DDP_TRY(number(fault, text, 1, SLEEP_MS_MAX, &value, err));
        out->value = (int)value;
        return 0;
    }
    if (out->action == DDP_FAULT_ERRNO) {
        int i = find(fault, "errno", text != NULL ? text : "EIO", errno_name, err);
        out->value = i + 1;
        return i >= 0 ? 0 : i;
    }
    if (text == NULL)
        return 0;
    return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_FAULT: '%s': action '%s' takes no value", fault,
                    actions[out->action]);
}

/* Rejects actions and ranks that the point does not support. */
static int check(const struct ddp_fault_spec *spec, bool ranked, struct ddp_err *err)
{
    const struct ddp_fault_row *row = &rows[spec->point];
    if (spec->action == DDP_FAULT_FLIP && !row->data)
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

int ddp_fault_parse(const char *text, size_t length, struct ddp_fault_spec *out,
                    struct ddp_err *err)
{
    char parts[DDP_FAULT_TEXT_BYTES];
    int64_t n, rank = -1;
    *out = (struct ddp_fault_spec){.rank = -1};
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
    out->action = (enum ddp_fault_action)does;
    out->n = (uint64_t)n;
    out->rank = (int)rank;
    DDP_TRY(parse_value(out->text, value, out, err));
    return check(out, at != NULL, err);
}
