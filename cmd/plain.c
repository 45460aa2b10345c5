#include "plain.h"

#include <string.h>

#define AT(member) offsetof(struct ddp_plain_values, member)

const struct ddp_opt ddp_plain_rows[] = {
    DDP_OPT_INCLUDE(ddp_help_rows, AT(help)),
    DDP_OPT_END,
};
const struct ddp_opt ddp_plain_json_rows[] = {
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "json", 0, AT(json), NULL, NULL, "print JSON", .brief = ""),
    DDP_OPT_INCLUDE(ddp_plain_rows, 0),
    DDP_OPT_END,
};

static const struct ddp_exit_row exit_rows[] = {
    {0, "success"},
    {10, "regression: NEW is slower than BASE, or its training accuracy is worse; health, isolate: "
         "DEGRADED"},
    {11, "a collective delivered wrong data"},
    {12,
     "inconclusive: the measurements do not suffice for a verdict; health, isolate: CANNOT TELL"},
    {13, "a rank was lost or hung; finished points are saved"},
    {64, "wrong command line"},
    {65, "an input file is malformed"},
    {66, "an input file is missing"},
    {69, "a library, device or feature is unavailable, or a command that gate runs failed"},
    {70, "internal error"},
    {71, "not enough memory"},
    {73, "an output file cannot be created"},
    {74, "a file cannot be read or written"},
    {76, "ranks, hosts or builds disagree, or the backend cannot join the processes into one job"},
    {77, "permission denied"},
    {78, "a configuration is invalid"},
    {141, "the reader of stdout closed the pipe; no message reports this"},
    {0, NULL},
};

const char ddp_exit_text[] =
    "Without mpiexec, the code is that of the first failure. Under mpiexec, a rank may exit with "
    "13 because another rank failed, and mpiexec may replace codes. ddpbench never uses 1 to 9, "
    "because mpiexec reports its own failures as 1.";

const struct ddp_exit_row *ddp_exit_rows(void)
{
    return exit_rows;
}

void ddp_exit_print(FILE *out)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    for (const struct ddp_exit_row *r = exit_rows; r->meaning; r++) {
        ddp_strbuf_addf(&text, "%6d  ", r->code);
        ddp_strbuf_wrap_line(&text, r->meaning, 8, 80, 8);
    }
    ddp_strbuf_add(&text, " 128+n  ended by signal n\n\n");
    ddp_strbuf_wrap_line(&text, ddp_exit_text, 0, 80, 0);
    fputs(text.failed ? "" : text.text, out);
    ddp_strbuf_release(&text);
}

const char ddp_units_text[] =
    "Sizes: 64 or 64B is bytes; 64K, 64M, 64G, 64T, 64P, 1E (also Ki, KiB, ...) are\n"
    "powers of 1024; 64kB, 64MB, 64GB, 64TB, 64PB, 1EB are powers of 1000; 1e6 and\n"
    "1.5G are fine; KB is kB, and k, m, g, t and p alone also stand for K, M, G, T\n"
    "and P. A size is a whole number of bytes below 2^63, without spaces. Anything\n"
    "else is an error: nothing is rounded or clamped.\n\n"
    "Bandwidths: 1 GB/s is 1e9 bytes per second. Sizes without a unit\n"
    "are bytes.\n\n"
    "Times: the unit is in the cell or in the heading of the column. JSON keys that\n"
    "end in _us are in microseconds. Options are in seconds unless their help names\n"
    "another unit. A value that does not exist is - in tables and null in JSON, never\n"
    "0.\n";

bool ddp_topic_print(const struct ddp_topic *topics, size_t count, const char *name, FILE *out)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(topics[i].name, name) == 0) {
            topics[i].print(out);
            return true;
        }
    }
    return false;
}

int ddp_refuse_operand(const char *what, const char *text, ddp_candidate *candidate,
                       const void *ctx, struct ddp_err *err)
{
    if (text)
        ddp_fail(err, DDP_EUSAGE, "'%.64s' is not a %s", text, what);
    else
        ddp_fail(err, DDP_EUSAGE, "which %s?", what);
    return ddp_hint_nearest(err, text ? text : "", candidate, ctx, NULL);
}
