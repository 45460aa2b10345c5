#include "report/legend.h"

#include <stdio.h>
#include <string.h>

#define NAME_COLUMNS 11

/* The meaning of a column. `name` may also list the heads of several columns, as in "min, p95". */
struct meaning {
    const char *name, *text;
};

static const struct meaning points[] = {
    {"index", "place of the point in the plan; rows appear in the order of measurement"},
    {"launch", "number of the repetition in a sweep"},
    {"size", "bytes of the array on each rank; if the collective splits the array, the sum of "
             "the chunks of all ranks"},
    {"count", "elements of the array"},
    {"place", "in: the result replaces the input; out: the result has a buffer of its own"},
    {"ranks", "number of ranks; 4x2: 4 groups of 2 ranks at the same time"},
    {"memory", "registered: buffers of the backend, which other ranks may access; private: plain "
               "pages; window: shared between all ranks by NCCL"},
    {"algorithm", "the algorithm that ran; `ddpbench list algorithms`"},
    {"+-, ci95", "distance from the median to the farther end of its 95 % interval, in percent of "
                 "the median"},
    {"wrong", "elements with a wrong value"},
    {"ping-pong", "round trip between ranks 0 and 1, after the point"},
    {"quality", "why the times are doubtful; `ddpbench explain quality`"},
    {NULL, NULL},
};

static const struct meaning dense[] = {
    {"time", "median over the iterations of the time of the slowest rank; `ddpbench explain time`"},
    {"min, p95", "shortest time, and 95th percentile of the times"},
    {"n", "number of iterations"},
    {"algbw", "size / time; `ddpbench explain algbw`"},
    {"busbw", "algbw x factor of the collective; `ddpbench explain busbw`"},
    {"imbalance", "with --split: bytes of the busiest rank / mean of the ranks"},
    {"bound", "lower bound of the time on this machine, in percent of the time; `ddpbench explain "
              "bound`"},
    {NULL, NULL},
};

static const struct meaning reduced[] = {
    {"compress", "the compressor; none: the values of a part (--partial) are sent as they are"},
    {"part", "number of equal chunks; each iteration exchanges one of them"},
    {"fdbk", "error feedback"},
    {"time", "median over the iterations of the time of the slowest rank, from the gradient to the "
             "sum"},
    {"encode, exchange, decode", "time of each phase on its slowest rank"},
    {"sent", "bytes that a rank sends"},
    {"density", "share of the values that a rank sends"},
    {"eff", "bus bandwidth with which a dense exchange would take this time; `ddpbench explain "
            "effective`"},
    {"x f32", "speed relative to the dense exchange of f32 in the same run; below 1: slower"},
    {"x f16", "speed relative to the dense exchange of f16 in the same run"},
    {"overflow, ovrflw", "values that were too large for 16 bits"},
    {NULL, NULL},
};

static const struct meaning overlapped[] = {
    {"pure", "median over the iterations of the time of the operation alone, on the slowest rank"},
    {"compute", "time of the computation alone, which is chosen to take about as long as pure"},
    {"total", "time of both at once, with the operation in a progress thread"},
    {"overlap", "share of min(pure, compute) that is hidden: (pure + compute - total) / "
                "min(pure, compute)"},
    {NULL, NULL},
};

static const struct meaning train[] = {
    {"train loss, train acc", "mean loss, and share of the images that are classified correctly, "
                              "in the training set"},
    {"eval loss, eval acc", "the same in the evaluation set"},
    {"time", "duration of the training steps of the epoch"},
    {"images/s", "images of all ranks per second"},
    {"exchange", "time in collectives"},
    {"exposed", "time in collectives that is not overlapped with computation"},
    {"sent", "bytes that each rank sends in the epoch"},
    {"peak", "largest memory of a rank so far"},
    {NULL, NULL},
};

static const struct meaning strategies[] = {
    {"accuracy", "mean accuracy of the last 3 epochs of each run, averaged over the seeds"},
    {"lowest, highest", "accuracy of the worst and of the best run"},
    {"differs", "accuracy minus the accuracy of the reference, paired by seed"},
    {"images/s", "images of all ranks per second"},
    {"speed-up", "images/s divided by images/s of one rank"},
    {"eff", "speed-up divided by the number of ranks"},
    {"step", "mean time of a step"},
    {"x faster", "step time of the reference divided by the step time of the row"},
    {"pays below", "if a rank's link is slower than this, a step takes less time than with the "
                   "reference"},
    {"exposed", "part of the step time in which computation waits for the exchange"},
    {"sent", "bytes that each rank sends per step"},
    {"density", "share of the values that a rank sends"},
    {"target, to target", "time until the target accuracy was reached, and bytes sent until then"},
    {"peak", "largest memory of a rank"},
    {NULL, NULL},
};

static const struct meaning pays[] = {
    {"step", "time of a step; the interval follows from that of the measured exchange"},
    {"times bf16", "step time with bf16 divided by that of the row"},
    {"sent", "bytes that a rank sends per step"},
    {"Gbit/s below",
     "the method pays on links that are slower than this; all: at all speeds; none: "
     "at no speed; -: it does not send less than bf16"},
    {"density below", "a step takes less time than with bf16 if the density is smaller than this; "
                      "-: the method has no density, or the link was not given"},
    {"accuracy", "accuracy minus that of dense training; -: not measured"},
    {"pays", "the method sends less than bf16, and its interval is more than 1 % below that of "
             "every measured method that does not, such as f32"},
    {NULL, NULL},
};

static const struct meaning verdict[] = {
    {"base, new", "medians of the two sides"},
    {"ratio", "new / base: a Hodges-Lehmann estimate (gate), or the ratio of the medians "
              "(compare)"},
    {"lower, upper", "one-sided bounds of the ratio"},
    {"p", "p value of an exact sign-flip test of whether new is slower"},
    {"Holm", "p, corrected for the number of cells"},
    {NULL, NULL},
};

static const struct {
    const char *title;
    const struct meaning *meanings;
} tables[DDP_LEGEND_COUNT] = {
    [DDP_LEGEND_POINTS] = {"Points", points},
    [DDP_LEGEND_DENSE] = {"Dense exchanges", dense},
    [DDP_LEGEND_REDUCED] = {"Compressed and partial exchanges", reduced},
    [DDP_LEGEND_OVERLAPPED] = {"Exchanges beside computation (--overlap-compute)", overlapped},
    [DDP_LEGEND_TRAIN] = {"Epochs of training runs", train},
    [DDP_LEGEND_STRATEGIES] = {"Strategies (train --compare)", strategies},
    [DDP_LEGEND_PAYS] = {"pays", pays},
    [DDP_LEGEND_VERDICT] = {"gate and compare", verdict},
};

enum ddp_legend ddp_legend_of(enum ddp_point_kind kind)
{
    return kind == DDP_POINT_REDUCED      ? DDP_LEGEND_REDUCED
           : kind == DDP_POINT_OVERLAPPED ? DDP_LEGEND_OVERLAPPED
                                          : DDP_LEGEND_DENSE;
}

const char *ddp_legend_title(enum ddp_legend table)
{
    return tables[table].title;
}

/* Returns whether a head is in a list such as "min, p95". */
static bool is_in(const char *list, const char *head)
{
    const size_t n = strlen(head);
    for (const char *at = list; n > 0 && (at = strstr(at, head)) != NULL; at += n)
        if ((at == list || at[-1] == ' ') && (at[n] == '\0' || at[n] == ','))
            return true;
    return false;
}

static bool is_shown(const char *name, const struct ddp_column *columns, int count)
{
    for (int c = 0; c < count; c++)
        if (!columns[c].hidden && is_in(name, columns[c].head))
            return true;
    return columns == NULL;
}

void ddp_legend_add(enum ddp_legend table, const struct ddp_column *columns, int count,
                    const char *before, int width, struct ddp_strbuf *out)
{
    for (const struct meaning *m = tables[table].meanings; m->name; m++) {
        struct ddp_strbuf lines = DDP_STRBUF_INIT;
        if (!is_shown(m->name, columns, count))
            continue;
        const int used = (int)strlen(before) + NAME_COLUMNS + 1;
        if (strlen(m->name) > NAME_COLUMNS)
            ddp_strbuf_addf(out, "%s%s\n%s%*s", before, m->name, before, NAME_COLUMNS + 1, "");
        else
            ddp_strbuf_addf(out, "%s%-*s ", before, NAME_COLUMNS, m->name);
        ddp_strbuf_wrap(&lines, m->text, used, width, 0);
        for (const char *line = lines.text, *end; line; line = end ? end + 1 : NULL) {
            end = strchr(line, '\n');
            if (line != lines.text) {
                ddp_strbuf_add(out, before);
                ddp_strbuf_pad(out, NAME_COLUMNS + 1);
            }
            ddp_strbuf_add_n(out, line, end ? (size_t)(end - line) : strlen(line));
            ddp_strbuf_add(out, "\n");
        }
        out->failed |= lines.failed;
        ddp_strbuf_release(&lines);
    }
}
