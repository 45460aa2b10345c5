/* A verdict as a text table and in Markdown. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "record/vary.h"
#include "report/report_parts.h"

void ddp_verdict_ratio_text(const struct ddp_cell *cell, char *out, size_t bytes)
{
    if (isnan(cell->ratio))
        snprintf(out, bytes, "not measured on both sides");
    else
        snprintf(out, bytes, "%.3f (one-sided bounds %.3f and %.3f)", cell->ratio, cell->lower,
                 cell->upper);
}

/* Adds a ratio or one of its bounds, which may be infinite. */
static void ratio(struct ddp_strbuf *out, double value)
{
    if (isinf(value))
        ddp_strbuf_addf(out, " %7.3f", value);
    else
        ddp_table_fixed(out, 7, 3, value);
}

static void p_value(struct ddp_strbuf *out, double p)
{
    if (isnan(p))
        ddp_strbuf_add(out, "        -");
    else
        ddp_strbuf_addf(out, " %8.2g", p);
}

/* Adds a line that begins with `mark`, unless the text is empty. */
static void text_line(const char *mark, const char *text, struct ddp_strbuf *out)
{
    if (text[0] == '\0')
        return;
    ddp_strbuf_add(out, mark);
    ddp_table_text(out, text);
    ddp_strbuf_add(out, "\n");
}

/* Adds a line with the keys of --vary, if there are any. The line begins with `mark`. */
static void varied(const char *mark, const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    char keys[96];
    ddp_vary_text(v->vary, keys, sizeof keys);
    if (keys[0])
        ddp_strbuf_addf(out, "%svaried, not part of a cell's id: %s\n", mark, keys);
}

static void head(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    text_line(DDP_DIM "# base: ", v->base_command, out);
    text_line("#       ", v->base_build, out);
    text_line("# new:  ", v->next_command, out);
    text_line("#       ", v->next_build, out);
    text_line("# both: ", v->fingerprint, out);
    varied("# ", v, out);
    if (v->pairs > 0)
        ddp_strbuf_addf(out,
                        "# %d of at most %d randomised pairs with %d run%s of each command; ratio: "
                        "Hodges-Lehmann estimate of new/base times, with one-sided %.4g %% bounds\n"
                        "# p: exact sign-flip test for slower; Holm: p corrected for %zu cells. A "
                        "cell is slower if "
                        "Holm <= %.3g and its lower bound is above %.3f\n",
                        v->pairs, v->max_pairs, v->runs, v->runs == 1 ? "" : "s",
                        (1 - v->level) * 100, v->count, v->level, 1 + v->min_effect);
    else
        ddp_strbuf_addf(out,
                        "# STORED RESULTS, measured at different times: weaker than "
                        "`ddpbench gate`. A cell is slower if its interval is above %.3f\n",
                        1 + v->min_effect);
    if (v->effect_from[0]) {
        ddp_strbuf_addf(out, "# %.3g %%: ", v->min_effect * 100);
        text_line("", v->effect_from, out);
    }
    ddp_strbuf_add(out, "# cell                                                         base(us)  "
                        "  new(us)   ratio   lower   upper        p     Holm\n" DDP_PLAIN);
}

static void row(const struct ddp_verdict_cell *c, const char *state, struct ddp_strbuf *out)
{
    char id[sizeof c->id];
    ddp_printable(c->id, id, sizeof id);
    ddp_strbuf_addf(out, "%-60s", id);
    ddp_table_cell(out, 9, c->base_ns / 1e3);
    ddp_table_cell(out, 10, c->next_ns / 1e3);
    ratio(out, c->cell.ratio);
    ratio(out, c->cell.lower);
    ratio(out, c->cell.upper);
    p_value(out, c->cell.p);
    p_value(out, c->cell.p_holm);
    const bool slower = c->cell.state == DDP_CELL_SLOWER;
    ddp_strbuf_addf(out, " %s%s%s\n", slower ? DDP_RED : "", state, slower ? DDP_PLAIN : "");
}

static void control(const char *mark, const char *what, double ratio, double p,
                    struct ddp_strbuf *out)
{
    if (!isnan(ratio))
        ddp_strbuf_addf(out, "%s control (%s): ratio %.3f, p %.2g\n", mark, what, ratio, p);
}

/* Adds lines with the ratios of the ping-pong and of the memory copy, if these were measured. The
 * lines begin with `mark`. */
static void controls(const char *mark, const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    control(mark, "ping-pong", v->pingpong_ratio, v->pingpong_p, out);
    control(mark, "memory copy", v->memory_ratio, v->memory_p, out);
}

/* Adds the results of a self-test, which has no cells. */
static void noise(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    const struct ddp_noise *n = v->noise;
    text_line(DDP_DIM "# self-test of: ", n->command, out);
    text_line("# on: ", n->machine.cpu, out);
    ddp_strbuf_addf(out, "# at most %d pairs per gate, %d cells, --min-effect %.3g %%\n" DDP_PLAIN,
                    n->pairs, n->cells, n->min_effect * 100);
    ddp_strbuf_addf(out,
                    "A/A gates                %6d\n  false alarms           %6d\n"
                    "  inconclusive           %6d\n",
                    n->same, n->false_alarms, n->inconclusive);
    ddp_strbuf_addf(out,
                    "gates with %.3g %% injected %*d\n  found                  %6d\n"
                    "  blamed another cell    %6d\n",
                    n->injected_effect * 100, 6, n->injected, n->found, n->elsewhere);
    ddp_strbuf_addf(out,
                    "noise floor              %6.2f %%  # the smallest --min-effect with which "
                    "90 %% of the A/A gates pass\n",
                    n->noise_floor * 100);
    if (isnan(n->detectable))
        ddp_strbuf_add(out, "least slow-down found         -    # ");
    else
        ddp_strbuf_addf(out, "least slow-down found    %6.2f %%  # ", n->detectable * 100);
    ddp_strbuf_addf(out,
                    "found in 90 %% of the cells, with the larger of %.3g %% and the noise floor\n",
                    n->min_effect * 100);
    text_line("# ", v->effect_from, out);
}

static void signed_cell(struct ddp_strbuf *out, double value)
{
    if (isfinite(value))
        ddp_strbuf_addf(out, " %+8.4f", value);
    else
        ddp_strbuf_add(out, "        -");
}

/* Adds a row for each accuracy, or nothing if there are no accuracies. */
static void accuracies(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    if (v->accuracy_count == 0)
        return;
    ddp_strbuf_addf(out,
                    DDP_DIM
                    "# accuracy of training: mean over seeds of new - base, with one-sided "
                    "%.4g %% bounds (Student's t). An accuracy passes if its lower bound is "
                    "above -%.3g. It is worse if its upper bound is below -%.3g.\n"
                    "# training runs                                               seeds"
                    "    base     new  differs    lower    upper\n" DDP_PLAIN,
                    (1 - DDP_VERDICT_LEVEL) * 100, v->accuracy[0].margin, v->accuracy[0].margin);
    for (size_t i = 0; i < v->accuracy_count; i++) {
        const struct ddp_verdict_accuracy *a = &v->accuracy[i];
        const bool worse = a->test.state == DDP_WORSE;
        char name[sizeof a->name];
        ddp_printable(a->name, name, sizeof name);
        ddp_strbuf_addf(out, "%-60s %6zu", name, a->test.seeds);
        ddp_table_fixed(out, 7, 4, a->base);
        ddp_table_fixed(out, 7, 4, a->next);
        signed_cell(out, a->test.mean);
        signed_cell(out, a->test.lower);
        signed_cell(out, a->test.upper);
        ddp_strbuf_addf(out, " %s%s%s\n", worse ? DDP_RED : "",
                        ddp_noninferior_names[a->test.state], worse ? DDP_PLAIN : "");
    }
}

static void cells(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    head(v, out);
    struct ddp_verdict_cell c;
    char state[64];
    for (size_t i = 0; ddp_verdict_row(v, i, &c, state); i++)
        row(&c, state, out);
    accuracies(v, out);
    controls("#", v, out);
}

void ddp_table_verdict(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    if (v->noise) {
        noise(v, out);
    } else if (v->across) {
        ddp_table_across(v->across, out);
        varied("# ", v, out);
    } else {
        cells(v, out);
    }
    if (v->pairs > 0 && !v->noise)
        ddp_strbuf_addf(
            out, "# %d pair%s measured again, %d kept although the ping-pong times differed\n",
            v->rerun, v->rerun == 1 ? "" : "s", v->mixed);
    ddp_strbuf_addf(out, DDP_BOLD "%s" DDP_PLAIN, ddp_verdict_names[v->outcome]);
    text_line(": ", v->reason, out);
}

bool ddp_verdict_row(const struct ddp_verdict_record *v, size_t i, struct ddp_verdict_cell *cell,
                     char state[64])
{
    if (i < v->count) {
        *cell = v->cells[i];
        snprintf(state, 64, "%s", ddp_cell_state_text(cell->cell.state));
        return true;
    }
    if (i - v->count >= v->unjudged.count)
        return false;
    const struct ddp_unjudged *item = &v->unjudged.items[i - v->count];
    *cell = (struct ddp_verdict_cell){
        .cell = {0, NAN, NAN, NAN, NAN, NAN, DDP_CELL_MISSING}, .base_ns = NAN, .next_ns = NAN};
    memcpy(cell->id, item->name, sizeof cell->id);
    snprintf(state, 64, "not judged: %s", ddp_unjudged_kind(item));
    return true;
}

void ddp_markdown_code(struct ddp_strbuf *out, const char *text)
{
    /* Some viewers ignore the backticks, so '<' is replaced, too. */
    static const char *const by[] = {"\\|", "?"};
    size_t fence = 1;
    if (text[0] == '\0') {
        ddp_strbuf_add(out, "-");
        return;
    }
    /* A code span begins and ends with the same number of backticks. Use one more than the longest
     * run of backticks in the text. */
    for (const char *c = text; (c = strchr(c, '`')); c += strspn(c, "`"))
        if (strspn(c, "`") >= fence)
            fence = strspn(c, "`") + 1;
    for (size_t i = 0; i < fence; i++)
        ddp_strbuf_add(out, "`");
    ddp_strbuf_add(out, fence > 1 ? " " : "");
    ddp_escaped_text(out, text, "|<", by);
    ddp_strbuf_add(out, fence > 1 ? " " : "");
    for (size_t i = 0; i < fence; i++)
        ddp_strbuf_add(out, "`");
}

void ddp_markdown_fold(struct ddp_strbuf *out, const char *summary)
{
    ddp_strbuf_addf(out, "<details><summary>%s</summary>\n\n", summary);
}

void ddp_markdown_unfold(struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "</details>\n\n");
}

void ddp_markdown_number(struct ddp_strbuf *out, int digits, double value)
{
    if (isfinite(value))
        ddp_strbuf_addf(out, " %.*f |", digits, value);
    else
        ddp_strbuf_add(out, " - |");
}

static void markdown_row(const struct ddp_verdict_cell *c, const char *state,
                         struct ddp_strbuf *out)
{
    const bool slower = c->cell.state == DDP_CELL_SLOWER;
    ddp_strbuf_add(out, "| ");
    ddp_markdown_code(out, c->id);
    ddp_strbuf_add(out, " |");
    ddp_markdown_number(out, 2, c->base_ns / 1e3);
    ddp_markdown_number(out, 2, c->next_ns / 1e3);
    ddp_markdown_number(out, 3, c->cell.ratio);
    ddp_markdown_number(out, 3, c->cell.lower);
    ddp_markdown_number(out, 3, c->cell.upper);
    ddp_markdown_number(out, 4, c->cell.p_holm);
    ddp_strbuf_addf(out, " %s%s%s |\n", slower ? "**" : "", state, slower ? "**" : "");
}

static bool has_changed(const struct ddp_verdict_cell *c)
{
    return c->cell.state == DDP_CELL_SLOWER || c->cell.state == DDP_CELL_FASTER;
}

/* Adds the cells that changed or, if `changed` is false, the other cells. Slower cells come first.
 */
static void markdown_rows(const struct ddp_verdict_record *v, bool changed, struct ddp_strbuf *out)
{
    struct ddp_verdict_cell c;
    char state[64];
    ddp_strbuf_add(out, "| cell | base (us) | new (us) | ratio | lower | upper | Holm | |\n"
                        "|:--|--:|--:|--:|--:|--:|--:|:--|\n");
    for (int slower = 1; slower >= 0; slower--)
        for (size_t i = 0; ddp_verdict_row(v, i, &c, state); i++)
            if (has_changed(&c) == changed && (c.cell.state == DDP_CELL_SLOWER) == slower)
                markdown_row(&c, state, out);
    ddp_strbuf_add(out, "\n");
}

/* Adds the cells that changed, and a folded table of the other cells. */
static void markdown_cells(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    struct ddp_verdict_cell c;
    char state[64], summary[64];
    size_t changed = 0, others = 0;
    for (size_t i = 0; ddp_verdict_row(v, i, &c, state); i++)
        *(has_changed(&c) ? &changed : &others) += 1;
    if (changed > 0)
        markdown_rows(v, true, out);
    else if (v->count > 0)
        ddp_strbuf_add(out, "No cell is slower or faster.\n\n");
    if (others == 0)
        return;
    snprintf(summary, sizeof summary, "%zu %scell%s", others, changed ? "other " : "",
             others == 1 ? "" : "s");
    ddp_markdown_fold(out, summary);
    markdown_rows(v, false, out);
    ddp_markdown_unfold(out);
}

static void markdown_accuracies(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    if (v->accuracy_count == 0)
        return;
    ddp_strbuf_addf(out,
                    "| accuracy of | seeds | base | new | new - base | lower | upper | "
                    "margin %.3g |\n|:--|--:|--:|--:|--:|--:|--:|:--|\n",
                    v->accuracy[0].margin);
    for (size_t i = 0; i < v->accuracy_count; i++) {
        const struct ddp_verdict_accuracy *a = &v->accuracy[i];
        const char *bold = a->test.state == DDP_WORSE ? "**" : "";
        ddp_strbuf_add(out, "| ");
        ddp_markdown_code(out, a->name);
        ddp_strbuf_addf(out, " | %zu |", a->test.seeds);
        ddp_markdown_number(out, 4, a->base);
        ddp_markdown_number(out, 4, a->next);
        ddp_markdown_number(out, 4, a->test.mean);
        ddp_markdown_number(out, 4, a->test.lower);
        ddp_markdown_number(out, 4, a->test.upper);
        ddp_strbuf_addf(out, " %s%s%s |\n", bold, ddp_noninferior_names[a->test.state], bold);
    }
    ddp_strbuf_add(out, "\n");
}

static void markdown_side(const char *what, const char *command, const char *build,
                          struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "- %s: ", what);
    ddp_markdown_code(out, command);
    ddp_strbuf_add(out, ", ");
    ddp_markdown_code(out, build);
    ddp_strbuf_add(out, "\n");
}

static void markdown_noise(const struct ddp_noise *n, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out,
                    "| A/A gates | false alarms | inconclusive | gates with %.3g %% | found | "
                    "elsewhere | noise floor (%%) | smallest found (%%) |\n"
                    "|--:|--:|--:|--:|--:|--:|--:|--:|\n| %d | %d | %d | %d | %d | %d |",
                    n->injected_effect * 100, n->same, n->false_alarms, n->inconclusive,
                    n->injected, n->found, n->elsewhere);
    ddp_markdown_number(out, 2, n->noise_floor * 100);
    ddp_markdown_number(out, 2, n->detectable * 100);
    ddp_strbuf_add(out, "\n\n");
}

/* Adds the commands, the builds and the settings of the verdict. */
static void markdown_settings(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    markdown_side("base", v->base_command, v->base_build, out);
    if (!v->noise)
        markdown_side("new", v->next_command, v->next_build, out);
    if (v->pairs > 0)
        ddp_strbuf_addf(out, "- %d pairs of launches%s\n", v->pairs,
                        v->noise ? " per gate at most" : "");
    else
        ddp_strbuf_add(out, "- stored results, measured at different times: weaker than a gate\n");
    ddp_strbuf_addf(out,
                    "- smallest effect that counts (--min-effect): %.3g %%: ", v->min_effect * 100);
    ddp_markdown_code(out, v->effect_from);
    ddp_strbuf_add(out, "\n");
    varied("- ", v, out);
    controls("-", v, out);
    ddp_strbuf_add(out, "\n");
}

void ddp_markdown_verdict(const struct ddp_record *r, struct ddp_strbuf *out)
{
    const struct ddp_verdict_record *v = r->verdict;
    ddp_strbuf_addf(out, "## %s%s", ddp_verdict_names[v->outcome], r->label[0] ? ": " : "");
    if (r->label[0])
        ddp_markdown_code(out, r->label);
    ddp_strbuf_add(out, "\n\n");
    ddp_markdown_code(out, v->reason);
    ddp_strbuf_add(out, "\n\n");
    if (v->across) {
        ddp_markdown_across(v->across, out);
        varied("- ", v, out);
        return;
    }
    if (v->noise)
        markdown_noise(v->noise, out);
    else
        markdown_cells(v, out);
    markdown_accuracies(v, out);
    ddp_markdown_fold(out, "Commands, builds and settings");
    markdown_settings(v, out);
    ddp_markdown_unfold(out);
}
