/* Options and operands of several commands. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
#include "base/terminal.h"
#include "base/unit.h"
#include "cmd.h"
#include "report/report.h"
#include "run/catalog.h"
#include "run/outputs.h"

static const char *const progress_names[] = {"auto", "always", "never", NULL};
static const char *const feedback_names[] = {"auto", "on", "off", NULL};

bool ddp_offer_compressor(const char *command, int i, char *out, size_t out_bytes)
{
    (void)command;
    return ddp_catalog_compressor(i, out, out_bytes);
}

static bool offer_backend(const char *command, int i, char *out, size_t out_bytes)
{
    (void)command;
    const char *name = i == 0 ? "auto" : ddp_catalog_backend(i - 1);
    snprintf(out, out_bytes, "%s", name ? name : "");
    return name != NULL;
}

bool ddp_offer_format(const char *command, int i, char *out, size_t out_bytes)
{
    const struct ddp_reporter *reporter = ddp_reporter_all()[i];
    (void)command;
    snprintf(out, out_bytes, "%s", reporter ? reporter->name : "");
    return reporter != NULL;
}

const struct ddp_opt ddp_help_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "help", 'h', 0, NULL, NULL,
            "-h prints the most used options, --help prints the whole help",
            .brief = "-h prints this page, --help all options"),
    DDP_OPT_END,
};

const struct ddp_opt ddp_feedback_rows[] = {
    DDP_OPT(ENUM, "feedback", 0, 0, "WHEN", "auto",
            "error feedback: keep the values that were not sent, and add them to the next "
            "gradient; auto: on for q4, sign, powersgd and sparse methods",
            .choices = feedback_names),
    DDP_OPT_END,
};

#define AT(member) offsetof(struct ddp_world_options, member)

static const char *const nccl_blocking_choices[] = {"on", "off", NULL};

const struct ddp_opt ddp_world_rows[] = {
    DDP_OPT_HEADING("World"),
    DDP_OPT(
        INT_LIST, "ranks", 0, AT(ranks), "N[,N...]", NULL,
        "measure with N ranks, for each N one after the other; under mpiexec, N of its ranks are "
        "used "
        "(see --subset; default: all ranks of mpiexec, else one per usable core or GPU, at most 8)",
        .min = 1, .max = 256, .brief = "numbers of ranks (default: one per core)"),
    DDP_OPT_INCLUDE(ddp_start_rows, 0),
    DDP_OPT_END,
};

const struct ddp_opt ddp_start_rows[] = {
    DDP_OPT_HEADING("World"),
    DDP_OPT(
        STRING, "hosts", 0, AT(hosts), "HOST[:N],...", NULL,
        "start N ranks (default 1) on each host over ssh; rank 0 is on the first host and writes "
        "the outputs there",
        .brief = "start N ranks on each host over ssh"),
    DDP_OPT(STRING, "hostfile", 0, AT(hostfile), "FILE", NULL,
            "like --hosts, with the hosts in a file: HOST[:N] or HOST slots=N in each line"),
    DDP_OPT(ENUM, "subset", 0, AT(subset), "HOW", "spread",
            "under mpiexec, with fewer ranks than it started: choose ranks from all hosts in turn "
            "(spread), or the lowest ranks (pack)",
            .choices = ddp_subset_names),
    DDP_OPT(STRING, "backend", 0, AT(backend), "NAME", "auto",
            "auto, self, shm, mpi, ucx, nccl: how ranks reach each other; see `ddpbench list`",
            .offer = offer_backend, .brief = "auto, self, shm, mpi, ucx, nccl"),
    DDP_OPT(FLAG, "share-gpu", 0, AT(share_gpu), NULL, NULL,
            "backend nccl: let ranks share a GPU, to check results only; no bandwidth is shown"),
    DDP_OPT(ENUM, "nccl-blocking", 0, AT(nccl_blocking), "KIND", "on",
            "backend nccl: use blocking communicators, or (off) non-blocking ones, for which NCCL "
            "starts a thread at each operation",
            .choices = nccl_blocking_choices),
    DDP_OPT(ENUM, "launch", 0, AT(launch), "MODE", "processes",
            "without mpiexec: start ranks as processes, or as threads of one process",
            .choices = ddp_launch_names),
    DDP_OPT(DOUBLE, "timeout", 'T', AT(timeout_s), "S", "60",
            "deadline in seconds of waits for other ranks, including init and barriers", .min = 0.1,
            .max = 86400),
    DDP_OPT(INT, "seed", 0, AT(seed), "N", "1", "seed of all random numbers",
            .max = 9007199254740991.0),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "json", 0, AT(json), "FILE", NULL,
            "write the result as JSON (- for stdout, instead of the table)",
            .brief = "write JSON to FILE (- for stdout)"),
    DDP_OPT(STRING_LIST, "format", 0, AT(formats), "NAME[=FILE]", NULL,
            "one or more output formats; see `ddpbench list` (default table)",
            .offer = ddp_offer_format, .brief = "one or more of table, csv, markdown, ..."),
    DDP_OPT(STRING, "label", 0, AT(label), "TEXT", NULL,
            "name of this run, which every output shows; 1 to 63 bytes of UTF-8"),
    DDP_OPT(FLAG, "wide", 0, AT(wide), NULL, NULL,
            "show all columns of the table, even if they do not fit the terminal"),
    DDP_OPT(ENUM, "progress", 0, AT(progress), "WHEN", "auto",
            "show progress on stderr; auto: on a terminal, and elsewhere every 30 s",
            .choices = progress_names),
    DDP_OPT(FLAG, "quiet", 'q', AT(quiet), NULL, NULL,
            "print nothing but errors on stderr; what goes to stdout stays the same"),
    DDP_OPT(FLAG, "verbose", 'v', AT(verbose), NULL, NULL,
            "print more on stderr, and say what the columns of the table mean"),
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};

#undef AT
#define AT(field) offsetof(struct ddp_verdict_outputs, field)

const struct ddp_opt ddp_verdict_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(STRING, "json", 0, AT(json), "FILE", NULL,
            "write the verdict as JSON (- for stdout, instead of the table)",
            .brief = "write JSON to FILE (- for stdout)"),
    DDP_OPT(STRING_LIST, "format", 0, AT(formats), "NAME[=FILE]", NULL,
            "one or more output formats: junit, markdown, github, ...; see `ddpbench list`",
            .offer = ddp_offer_format, .brief = "table, junit, markdown, github, ..."),
    DDP_OPT(STRING, "label", 0, AT(label), "TEXT", NULL,
            "name of this run, which every output shows; 1 to 63 bytes of UTF-8"),
    DDP_OPT(FLAG, "wide", 0, AT(wide), NULL, NULL,
            "show all columns of the table, even if they do not fit the terminal"),
    DDP_OPT_END,
};

const struct ddp_opt ddp_noise_floor_rows[] = {
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(STRING, "noise-floor", 0, 0, "FILE", NULL,
            "file of this machine's noise floor (default: one per machine and build in "
            "$XDG_STATE_HOME/ddpbench, else ~/.local/state/ddpbench)"),
    DDP_OPT_END,
};

void ddp_print_note(FILE *out, const char *fmt, ...)
{
    struct ddp_terminal terminal;
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    char text[600];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ddp_terminal_read(fileno(out), &terminal);
    ddp_strbuf_wrap(&line, text, 2, terminal.columns, 4);
    fprintf(out, "# %s\n", line.failed ? text : line.text);
    ddp_strbuf_release(&line);
}

void ddp_print_time(const struct ddp_estimate *estimate, FILE *out)
{
    char about[24], most[24], limit[80] = "";
    ddp_format_ns(estimate->seconds * 1e9, about, sizeof about);
    ddp_format_ns(estimate->most * 1e9, most, sizeof most);
    if (isfinite(estimate->most))
        snprintf(limit, sizeof limit, "; about %s if every point takes all of --max-time", most);
    ddp_print_note(out, "time: about %s, roughly estimated from the sizes for an average CPU%s",
                   about, limit);
}
