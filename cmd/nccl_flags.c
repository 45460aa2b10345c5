/* The flags of nccl-tests 2.19, from its src/common.cu (the usage text and getopt table). */
#include "nccl_flags.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const struct {
    const char *theirs, *ours;
} commands[] = {
    {"all_reduce_perf", "allreduce"},
    {"all_gather_perf", "all-gather"},
    {"reduce_scatter_perf", "reduce-scatter"},
    {"broadcast_perf", "broadcast"},
    {"reduce_perf", "reduce"},
    {"alltoall_perf", "all-to-all"},
    {"gather_perf", "gather"},
    {"scatter_perf", "scatter"},
    {"sendrecv_perf", "send-recv"},
};

/* How a flag is translated. */
enum action {
    COPY,   /* becomes the option `ours`, if the command has it */
    SIZE,   /* like COPY, for a size */
    ONLY,   /* accepted only with the value `ours`, which says what ddpbench always does */
    FACTOR, /* like COPY; 1 is dropped */
    MEMORY, /* 1 becomes --memory registered, 2 becomes --memory window, 0 is dropped */
    GRAPH,  /* a number other than 0 becomes --graph */
    RANKS   /* multiplies the number of ranks, which becomes --ranks */
};

struct flag {
    char letter;
    const char *name;
    enum action action;
    const char *ours; /* name of ddpbench's option; ONLY: the accepted value, "" if none */
    const char *why;  /* ONLY: the hint for any other value */
};

static const char cuda_only[] = "this flag concerns only CUDA and NCCL";

static const struct flag flags[] = {
    {'t', "nthreads", RANKS, "ranks", NULL},
    {'g', "ngpus", RANKS, "ranks", NULL},
    {'b', "minbytes", SIZE, "min-bytes", NULL},
    {'e', "maxbytes", SIZE, "max-bytes", NULL},
    {'i', "stepbytes", SIZE, "step-bytes", NULL},
    {'f', "stepfactor", FACTOR, "step-factor", NULL},
    {'n', "iters", COPY, "iters", NULL},
    {'m', "agg_iters", ONLY, "1", "operations are not grouped here"},
    {'w', "warmup_iters", COPY, "warmup", NULL},
    {'N', "run_cycles", ONLY, "1", "use `ddpbench sweep --launches N`"},
    {'p', "parallel_init", ONLY, "0", cuda_only},
    {'c', "check", COPY, "check", NULL},
    {'o', "op", COPY, "op", NULL},
    {'d', "datatype", COPY, "dtype", NULL},
    {'r', "root", COPY, "root", NULL},
    {'z', "blocking", ONLY, "0", "ddpbench waits for every operation and times it alone"},
    {'y', "stream_null", ONLY, "0", cuda_only},
    {'T', "timeout", COPY, "timeout", NULL},
    {'G', "cudagraph", GRAPH, "graph", NULL},
    {'C', "report_cputime", ONLY, "0", "ddpbench has one time: from start to end of the operation"},
    {'a', "average", ONLY, "3", "the time of an iteration is that of the slowest rank (-a 3)"},
    {'R', "local_register", MEMORY, "memory", NULL},
    {'x', "cta_policy", ONLY, "0", cuda_only},
    {'J', "output_file", ONLY, "", "use --json FILE"},
};

const struct ddp_cmd *ddp_nccl_command(const char *name)
{
    for (size_t i = 0; i < DDP_COUNT_OF(commands); i++)
        if (strcmp(commands[i].theirs, name) == 0)
            return ddp_command_find(commands[i].ours);
    return NULL;
}

/* Returns the flag that the argument begins with, or NULL. *attached becomes the value in the same
 * argument, or NULL. */
static const struct flag *find_flag(const char *arg, const char **attached)
{
    *attached = NULL;
    for (size_t i = 0; i < DDP_COUNT_OF(flags); i++) {
        const struct flag *f = &flags[i];
        const size_t n = strlen(f->name);
        if (arg[0] == '-' && arg[1] == f->letter && f->letter != '\0') {
            *attached = arg[2] ? arg + 2 : NULL;
            return f;
        }
        if (strncmp(arg, "--", 2) == 0 && strncmp(arg + 2, f->name, n) == 0 &&
            (arg[n + 2] == '\0' || arg[n + 2] == '=')) {
            *attached = arg[n + 2] ? arg + n + 3 : NULL;
            return f;
        }
    }
    return NULL;
}

static int add(struct ddp_nccl_line *line, const char *name, const char *value, struct ddp_err *err)
{
    const size_t bytes = strlen(name) + strlen(value) + 4;
    if (line->argc + 1 == (int)DDP_COUNT_OF(line->argv))
        return ddp_fail(err, DDP_EUSAGE, "the command line is too long");
    char *arg;
    DDP_TRY(DDP_NEW(&arg, bytes, err));
    if (name[0])
        snprintf(arg, bytes, "--%s=%s", name, value);
    else
        snprintf(arg, bytes, "%s", value);
    line->argv[line->argc++] = arg;
    line->argv[line->argc] = NULL;
    return 0;
}

/* Adds a size. nccl-tests reads a number and one letter (64k, 1G) and ignores the rest, so 128MB
 * means 128 MiB. The parser of ddpbench would read MB as 10^6 bytes, so the B is dropped. */
static int add_size(struct ddp_nccl_line *line, const char *name, const char *value,
                    struct ddp_err *err)
{
    char text[64];
    size_t n = strlen(value);
    if (n >= 2 && n < sizeof text && (value[n - 1] == 'B' || value[n - 1] == 'b') &&
        strchr("kKmMgG", value[n - 2]))
        n--;
    snprintf(text, sizeof text, "%.*s", (int)n, value);
    return add(line, name, n < sizeof text ? text : value, err);
}

static int refuse(const struct flag *f, const char *value, struct ddp_err *err)
{
    ddp_fail(err, DDP_EUSAGE, "-%c %s (--%s of nccl-tests) has no meaning here", f->letter, value,
             f->name);
    return ddp_hint(err, "%s", f->why);
}

static bool has(const struct ddp_nccl_line *line, const char *name)
{
    const size_t n = strlen(name);
    for (int i = 1; i < line->argc; i++)
        if (strncmp(line->argv[i], "--", 2) == 0 && strncmp(line->argv[i] + 2, name, n) == 0 &&
            (line->argv[i][n + 2] == '=' || line->argv[i][n + 2] == '\0'))
            return true;
    return false;
}

/* Reads the value of a flag that takes a whole number. */
static int number(const struct flag *f, const char *value, int64_t least, int64_t *out,
                  struct ddp_err *err)
{
    char *end;
    *out = strtol(value, &end, 10);
    if (*value == '\0' || *end != '\0' || *out < least || *out > INT_MAX)
        return ddp_fail(err, DDP_EUSAGE, "-%c %s (--%s): not a whole number of at least %d",
                        f->letter, value, f->name, (int)least);
    return 0;
}

/* Multiplies the number of ranks. nccl-tests runs them as threads of one process, one per GPU. */
static int add_ranks(const struct flag *f, const char *value, struct ddp_nccl_line *line,
                     struct ddp_err *err)
{
    int64_t n = 0;
    DDP_TRY(number(f, value, 1, &n, err));
    if (n == 1)
        return 0;
    if (line->shared) {
        ddp_fail(err, DDP_EUSAGE, "-%c %s: a process that a launcher has started is one rank here",
                 f->letter, value);
        return ddp_hint(err, "use -%c 1 and let the launcher start one process per GPU", f->letter);
    }
    line->ranks = DDP_MIN(line->ranks * n, (int64_t)INT_MAX);
    return 0;
}

static int add_graph(const struct flag *f, const char *value, struct ddp_nccl_line *line,
                     struct ddp_err *err)
{
    int64_t n = 0;
    DDP_TRY(number(f, value, 0, &n, err));
    return n == 0 || has(line, f->ours) ? 0 : add(line, "", "--graph", err);
}

/* Adds --ranks if -t or -g ask for several ranks. */
static int add_rank_count(struct ddp_nccl_line *line, struct ddp_err *err)
{
    char text[24];
    if (line->ranks == 1)
        return 0;
    if (has(line, "ranks"))
        return ddp_fail(err, DDP_EUSAGE,
                        "--ranks cannot be combined with -g and -t of nccl-tests, "
                        "which ask for %lld ranks",
                        (long long)line->ranks);
    snprintf(text, sizeof text, "%lld", (long long)line->ranks);
    return add(line, "ranks", text, err);
}

static int add_flag(const struct ddp_cmd *cmd, const struct flag *f, const char *value,
                    struct ddp_nccl_line *line, struct ddp_err *err)
{
    struct ddp_opt row;
    switch (f->action) {
    case ONLY:
        return strcmp(value, f->ours) == 0 && f->ours[0] ? 0 : refuse(f, value, err);
    case FACTOR: /* -f 1 means the same as no -f */
        return strcmp(value, "1") == 0 ? 0 : add(line, f->ours, value, err);
    case MEMORY:
        if (value[0] < '0' || value[0] > '2' || value[1] != '\0')
            return ddp_fail(err, DDP_EUSAGE,
                            "-R %s: use 0 (plain memory), 1 (registered memory) or 2 (windows)",
                            value);
        return value[0] == '0' ? 0
                               : add(line, f->ours, value[0] == '1' ? "registered" : "window", err);
    case GRAPH:
        return add_graph(f, value, line, err);
    case RANKS:
        return add_ranks(f, value, line, err);
    case SIZE:
        return add_size(line, f->ours, value, err);
    default:
        if (f->letter == 'T' && strcmp(value, "0") == 0)
            return 0; /* 0 means no timeout in nccl-tests, but ddpbench always has a timeout */
        /* nccl-tests accepts and ignores flags without a meaning, such as -o of all_gather_perf */
        return ddp_opt_find(cmd->rows, f->ours, &row) ? add(line, f->ours, value, err) : 0;
    }
}

/* Adds the defaults of nccl-tests that differ from ddpbench's, unless the user chose a value. */
static int add_defaults(struct ddp_nccl_line *line, struct ddp_err *err)
{
    if (!has(line, "size")) {
        if (!has(line, "min-bytes"))
            DDP_TRY(add(line, "min-bytes", "32M", err));
        if (!has(line, "max-bytes"))
            DDP_TRY(add(line, "max-bytes", "32M", err));
        if (!has(line, "step-factor") && !has(line, "step-bytes"))
            DDP_TRY(add(line, "step-bytes", "1M", err));
    }
    if (!has(line, "iters") && !has(line, "precision") && !has(line, "max-time"))
        DDP_TRY(add(line, "iters", "20", err));
    if (!has(line, "warmup"))
        DDP_TRY(add(line, "warmup", "1", err));
    if (!has(line, "format") && !has(line, "json") && !has(line, "dry-run"))
        DDP_TRY(add(line, "format", "nccl-tests", err));
    return 0;
}

/* Drops --step-bytes if a factor was given, because in nccl-tests -f overrides -i. */
static void drop_step(struct ddp_nccl_line *line)
{
    for (int i = 1; i < line->argc && has(line, "step-factor");) {
        if (strncmp(line->argv[i], "--step-bytes=", 13) == 0) {
            free(line->argv[i]);
            memmove(&line->argv[i], &line->argv[i + 1],
                    (size_t)(line->argc - i) * sizeof *line->argv);
            line->argc--;
        } else {
            i++;
        }
    }
}

int ddp_nccl_translate(const struct ddp_cmd *cmd, int argc, char *const *argv,
                       struct ddp_nccl_line *out, struct ddp_err *err)
{
    out->argc = 0;
    out->ranks = 1;
    DDP_TRY(add(out, "", cmd->name, err));
    for (int i = 1; i < argc; i++) {
        const char *value;
        const struct flag *f = find_flag(argv[i], &value);
        if (!f) {
            DDP_TRY(add(out, "", argv[i], err));
            continue;
        }
        if (!value && i + 1 == argc)
            return ddp_fail(err, DDP_EUSAGE, "'%s' needs a value", argv[i]);
        DDP_TRY(add_flag(cmd, f, value ? value : argv[++i], out, err));
    }
    drop_step(out);
    DDP_TRY(add_rank_count(out, err));
    return add_defaults(out, err);
}

void ddp_nccl_release(struct ddp_nccl_line *line)
{
    for (int i = 0; i < line->argc; i++)
        free(line->argv[i]);
    line->argc = 0;
}
