/* The functions of the plan for --groups. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"
#include "bench/plan.h"
#include "coll/coll.h"

static int refuse(const char *text, const char *why, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "--groups '%.64s' %s", text, why);
    return ddp_hint(
        err, "give the number of equal groups, such as 4, or lists of ranks, such as 0,1:2,3,4");
}

/* Adds rank `n` to group `group`. */
static int add_rank(const char *text, long n, int group, struct ddp_group_list *list,
                    struct ddp_err *err)
{
    if (n < 0 || n >= DDP_PLAN_GROUP_RANKS_MAX)
        return refuse(text, "must name ranks from 0 to 255", err);
    if (list->of[n] > 0)
        return refuse(text, "names a rank twice", err);
    list->of[n] = (short)(group + 1);
    list->ranks++;
    return 0;
}

/* Parses "0,1:2,3,4". */
static int parse_list(const char *text, struct ddp_bench_options *o, struct ddp_err *err)
{
    struct ddp_group_list *list = &o->group_list;
    int group = 0;
    if (strlen(text) >= sizeof list->text)
        return refuse(text, "is too long: it must have at most 63 characters", err);
    for (const char *at = text;; at++) {
        char *end;
        const long n = *at >= '0' && *at <= '9' ? strtol(at, &end, 10) : -1;
        if (n < 0 || (*end != ',' && *end != ':' && *end != '\0'))
            return refuse(text, "must contain lists of ranks", err);
        DDP_TRY(add_rank(text, n, group, list, err));
        group += *end == ':';
        at = end;
        if (*at == '\0')
            break;
    }
    for (int r = 0; r < list->ranks; r++)
        if (list->of[r] == 0)
            return refuse(text, "must name every rank from 0 to the largest one", err);
    o->groups = group + 1;
    snprintf(list->text, sizeof list->text, "%s", text);
    return 0;
}

int ddp_plan_parse_groups(const char *text, struct ddp_bench_options *o, struct ddp_err *err)
{
    o->group_list = (struct ddp_group_list){.ranks = 0};
    if (strpbrk(text, ",:"))
        return parse_list(text, o, err);
    struct ddp_err why = DDP_ERR_INIT;
    if (ddp_parse_int(text, 1, DDP_PLAN_GROUPS_MAX, &o->groups, &why) != 0)
        return refuse(text, "must be a number from 1 to 128, or lists of ranks", err);
    return 0;
}

int ddp_plan_group_members(const struct ddp_bench_options *o, int ranks, int group, int *members)
{
    const struct ddp_group_list *list = &o->group_list;
    const int equal = ranks / (o->groups > 1 ? (int)o->groups : 1);
    int n = 0;
    for (int r = 0; r < ranks; r++)
        if ((list->ranks > 0 ? list->of[r] - 1 : r / equal) == group)
            members[n++] = r;
    return n;
}

int ddp_plan_group_of(const struct ddp_bench_options *o, int ranks, int rank)
{
    return o->group_list.ranks > 0 ? o->group_list.of[rank] - 1
           : o->groups > 1         ? rank / (ranks / (int)o->groups)
                                   : 0;
}

/* Returns the number of ranks of a group of the list. */
static int size_of(const struct ddp_group_list *list, int group)
{
    int n = 0;
    for (int r = 0; r < list->ranks; r++)
        n += list->of[r] == group + 1;
    return n;
}

int ddp_plan_group_ranks(const struct ddp_bench_options *o, int ranks, int *out,
                         struct ddp_err *err)
{
    const struct ddp_group_list *list = &o->group_list;
    const int groups = o->groups > 1 ? (int)o->groups : 1;
    if (list->ranks > 0 && list->ranks != ranks) {
        ddp_fail(err, DDP_EUSAGE, "--groups '%s' names %d ranks, but there %s %d", list->text,
                 list->ranks, ranks == 1 ? "is" : "are", ranks);
        return ddp_hint(err, "use --ranks %d, or name every rank", list->ranks);
    }
    if (list->ranks == 0 && ranks % groups != 0) {
        ddp_fail(err, DDP_EUSAGE, "--groups %d: %d rank%s cannot be divided into equal groups",
                 groups, ranks, ranks == 1 ? "" : "s");
        return ddp_hint(err, "use --ranks with a multiple of %d", groups);
    }
    *out = ranks / groups;
    for (int g = 0; list->ranks > 0 && g < groups; g++)
        *out = g == 0 ? size_of(list, g) : DDP_MAX(*out, size_of(list, g));
    return 0;
}

int ddp_plan_least_ranks(const struct ddp_bench_options *o, int ranks)
{
    for (int g = 0; o->group_list.ranks > 0 && g < o->groups; g++)
        ranks = DDP_MIN(ranks, size_of(&o->group_list, g));
    return ranks;
}

uint64_t ddp_plan_chunks(const struct ddp_bench_options *o, int ranks)
{
    uint64_t all = ddp_coll_message_bytes(o->coll, ranks, 1, DDP_U8);
    for (int g = 0; o->group_list.ranks > 0 && g < o->groups; g++) {
        const uint64_t n = ddp_coll_message_bytes(o->coll, size_of(&o->group_list, g), 1, DDP_U8);
        uint64_t a = all, b = n; /* `a` becomes the greatest common divisor, and `b` becomes 0 */
        while (b > 0) {
            const uint64_t rest = a % b;
            a = b;
            b = rest;
        }
        all = all / a * n;
    }
    return all;
}

int ddp_plan_check_groups(const struct ddp_bench_options *o, struct ddp_err *err)
{
    if (o->group_list.ranks > 0 && (ddp_plan_reduces(o) || o->overlap))
        return ddp_fail(err, DDP_EUSAGE, "--groups '%s' cannot be combined with --%s",
                        o->group_list.text,
                        o->overlap ? "overlap-compute" : "compress or --partial");
    return 0;
}
