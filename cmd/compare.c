/* `ddpbench compare BASE NEW` compares two stored results, without running commands. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/gate_compare.h"
#include "noise_floor.h"
#include "verdict_run.h"

struct compare_values {
    struct ddp_verdict_outputs outputs;
    double min_effect; /* percent; 0 when not given */
    const char *noise_file;
    bool help;
};

static const struct ddp_opt rows[] = {
    DDP_OPT_HEADING("Statistics"),
    DDP_OPT(
        DOUBLE, "min-effect", 0, offsetof(struct compare_values, min_effect), "PCT", NULL,
        "smallest slow-down in percent that counts; never below 10, because stored results were "
        "measured at different times (default: the larger of 10 and this machine's noise floor)",
        .min = 0.1, .max = 1000),
    DDP_OPT_INCLUDE(ddp_noise_floor_rows, offsetof(struct compare_values, noise_file)),
    DDP_OPT_INCLUDE(ddp_verdict_rows, offsetof(struct compare_values, outputs)),
    DDP_OPT_HEADING("Output"),
    DDP_OPT(FLAG, "help", 'h', offsetof(struct compare_values, help), NULL, NULL,
            "print this text and exit"),
    DDP_OPT_END,
};

/* Chooses the smallest effect that counts. This machine's noise floor applies only if the results
 * come from this machine. */
static int choose_effect(const struct compare_values *v, const struct ddp_result *base,
                         struct ddp_min_effect *out, struct ddp_err *err)
{
    const double asked = v->min_effect > 0 ? v->min_effect / 100 : NAN;
    struct ddp_noise_machine machine;
    ddp_noise_machine_read(&machine);
    DDP_TRY(ddp_min_effect_choose(asked, DDP_COMPARE_EFFECT, v->noise_file, out, err));
    if (asked < DDP_COMPARE_EFFECT) {
        out->effect = DDP_COMPARE_EFFECT;
        snprintf(out->from, sizeof out->from, "the smallest effect that counts for stored results");
    }
    if (isnan(out->noise_floor) ||
        (strcmp(base->cpu, machine.cpu) == 0 && base->cores == machine.cores))
        return 0;
    *out = (struct ddp_min_effect){.effect = fmax(isnan(asked) ? 0 : asked, DDP_COMPARE_EFFECT),
                                   .noise_floor = NAN};
    snprintf(out->from, sizeof out->from,
             "%s; the results come from another machine, whose noise floor is unknown",
             isnan(asked) ? "the default" : "as asked");
    return 0;
}

/* Writes "a.json", or "a.json (partial, injected delay of 10 %)" for a result that is incomplete or
 * labelled. */
static void name_result(const char *path, const struct ddp_result *r, char *out, size_t bytes)
{
    const bool cut = strcmp(r->status, "complete") != 0, marked = r->label[0] != '\0';
    snprintf(out, bytes, "%s%s%s%s%s%s", path, cut || marked ? " (" : "", cut ? r->status : "",
             cut && marked ? ", " : "", r->label, cut || marked ? ")" : "");
}

static int check_document(const char *path, const struct ddp_result *r, struct ddp_err *err)
{
    if (r->flaw[0])
        return ddp_fail(err, DDP_EINPUT, "'%s' cannot be compared: %s", path, r->flaw);
    return 0;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    const struct compare_values *v = values;
    struct ddp_result base = {.count = 0}, next = {.count = 0};
    struct ddp_verdict_record verdict = {.count = 0};
    struct ddp_min_effect min_effect;
    struct ddp_record record;
    struct ddp_report_set *reports;
    int rc;
    if (parsed->operand_count != 2) {
        ddp_fail(err, DDP_EUSAGE, "compare takes two results, BASE and NEW, not %d",
                 parsed->operand_count);
        return ddp_hint(err, "ddpbench compare yesterday.json today.json");
    }
    const char *const protected_paths[] = {parsed->operands[0], parsed->operands[1], v->noise_file,
                                           NULL};
    DDP_TRY_GOTO(ddp_result_read(parsed->operands[0], &base, err), out);
    DDP_TRY_GOTO(ddp_result_read(parsed->operands[1], &next, err), out);
    DDP_TRY_GOTO(check_document(parsed->operands[0], &base, err), out);
    DDP_TRY_GOTO(check_document(parsed->operands[1], &next, err), out);
    DDP_TRY_GOTO(choose_effect(v, &base, &min_effect, err), out);
    DDP_TRY_GOTO(ddp_verdict_begin(app, &v->outputs, -1, protected_paths, &record, &reports, err),
                 out);
    rc = ddp_compare_results(&base, &next, min_effect.effect, &verdict, err);
    verdict.noise_floor = min_effect.noise_floor;
    memcpy(verdict.effect_from, min_effect.from, sizeof verdict.effect_from);
    name_result(parsed->operands[0], &base, verdict.base_command, sizeof verdict.base_command);
    name_result(parsed->operands[1], &next, verdict.next_command, sizeof verdict.next_command);
    rc = ddp_verdict_finish(&record, reports, rc == 0 ? &verdict : NULL, rc, err);
out:
    free(verdict.unjudged.items);
    free(verdict.cells);
    ddp_result_release(&next);
    ddp_result_release(&base);
    return rc;
}

extern const struct ddp_cmd ddp_cmd_compare;
const struct ddp_cmd ddp_cmd_compare = {
    .name = "compare",
    .summary = "test whether NEW is slower than BASE, two stored results",
    .operands = "BASE NEW",
    .details =
        "Exits with 0 when no cell is slower, with 10 when one is, and with 12 when this\n"
        "cannot be told: an interval is too wide, a result is incomplete, or BASE has a\n"
        "training run or a cell that was not judged. Exits with 65 when a result has wrong\n"
        "data or a point without valid iterations. A cell is slower only if the interval of\n"
        "its ratio lies above the larger of 10 % and --min-effect (default: this machine's\n"
        "noise floor). Stored results were measured at different times, so compare cannot tell\n"
        "a change of the code from a change of the machine. `ddpbench gate` can: it runs\n"
        "pairs.",
    .rows = rows,
    .values_bytes = sizeof(struct compare_values),
    .help_offset = offsetof(struct compare_values, help),
    .run = run,
};
