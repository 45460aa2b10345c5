#include "report/table_verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/json_values.h"
#include "report/table_cells.h"

void ddp_verdict_ratio_text(const struct ddp_cell *cell, char *out, size_t bytes)
{
    if (isnan(cell->ratio))
        snprintf(out, bytes, "not measured on both sides");
    else
        snprintf(out, bytes, "%.3f (one-sided bounds %.3f and %.3f)", cell->ratio, cell->lower,
                 cell->upper);
}

static void ratio(struct ddp_strbuf *out, double value)
{
    if (isnan(value))
        ddp_strbuf_add(out, "       -");
    else
        ddp_strbuf_addf(out, " %7.3f", value);
}

static void p_value(struct ddp_strbuf *out, double p)
{
    if (isnan(p))
        ddp_strbuf_add(out, "        -");
    else
        ddp_strbuf_addf(out, " %8.2g", p);
}

static void text_line(const char *mark, const char *text, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, mark);
    ddp_table_text(out, text);
    ddp_strbuf_add(out, "\n");
}

static void head(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                 struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    text_line("# base: ", v->base_command, out);
    text_line("#       ", v->base_build, out);
    text_line("# new:  ", v->next_command, out);
    text_line("#       ", v->next_build, out);
    text_line("# both: ", v->fingerprint, out);
    if (v->pairs > 0)
        ddp_strbuf_addf(out,
                        "# %d randomised pairs of launches; ratio: Hodges-Lehmann estimate of "
                        "new/base times, with one-sided %.0f %% bounds\n"
                        "# p: exact sign-flip test for slower; Holm: p corrected for %zu cells. A "
                        "cell is slower if "
                        "Holm <= %.2f and its lower bound is above %.3f\n",
                        v->pairs, (1 - v->level) * 100, v->count, v->level, 1 + v->min_effect);
    else
        ddp_strbuf_addf(
            out,
            "# STORED RESULTS of one launch each, measured at different times: weaker than "
            "`ddpbench gate`. A cell is slower if its interval is above %.3f\n",
            1 + v->min_effect);
    if (v->effect_from[0]) {
        ddp_strbuf_addf(out, "# %.3g %%: ", v->min_effect * 100);
        text_line("", v->effect_from, out);
    }
    ddp_strbuf_add(out, "# cell                                                         base(us)  "
                        "  new(us)   ratio   lower   upper        p     Holm\n");
    ddp_table_plain(style, out);
}

static void row(const struct ddp_verdict_cell *c, const char *state,
                const struct ddp_report_style *style, struct ddp_strbuf *out)
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
    ddp_strbuf_add(out, " ");
    if (c->cell.state == DDP_CELL_SLOWER)
        ddp_table_red(style, out);
    ddp_strbuf_add(out, state);
    if (c->cell.state == DDP_CELL_SLOWER)
        ddp_table_plain(style, out);
    ddp_strbuf_add(out, "\n");
}

static void control(const char *what, double ratio, double p, struct ddp_strbuf *out)
{
    if (!isnan(ratio))
        ddp_strbuf_addf(out, "# control (%s): ratio %.3f, p %.2g\n", what, ratio, p);
}

/* Adds the results of a self-test, which has no cells. */
static void noise(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    const struct ddp_noise *n = v->noise;
    ddp_table_dim(style, out);
    text_line("# self-test of: ", n->command, out);
    text_line("# on: ", n->machine.cpu, out);
    ddp_strbuf_addf(out, "# %d pairs per gate, %d cells, --min-effect %.3g %%\n", n->pairs,
                    n->cells, n->min_effect * 100);
    ddp_table_plain(style, out);
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
                    "found by 90 %% of the gates, with the larger of %.3g %% and the noise floor\n",
                    n->min_effect * 100);
    text_line("# ", v->effect_from, out);
}

static void cells(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                  struct ddp_strbuf *out)
{
    head(v, style, out);
    for (size_t i = 0; i < v->count; i++)
        row(&v->cells[i], ddp_cell_state_name(v->cells[i].cell.state), style, out);
    for (size_t i = 0; i < v->unjudged.count; i++) {
        struct ddp_verdict_cell c;
        char state[64];
        ddp_unjudged_as_cell(&v->unjudged.items[i], &c, state, sizeof state);
        row(&c, state, style, out);
    }
    control("ping-pong", v->pingpong_ratio, v->pingpong_p, out);
    control("memory copy", v->memory_ratio, v->memory_p, out);
}

void ddp_table_verdict(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                       struct ddp_strbuf *out)
{
    if (v->noise)
        noise(v, style, out);
    else
        cells(v, style, out);
    if (v->pairs > 0 && !v->noise)
        ddp_strbuf_addf(
            out, "# %d pair%s measured again, %d kept although the ping-pong times differed\n",
            v->rerun, v->rerun == 1 ? "" : "s", v->mixed);
    ddp_table_bold(style, out);
    ddp_strbuf_addf(out, "%s", ddp_verdict_name(v->outcome));
    ddp_table_plain(style, out);
    text_line(": ", v->reason, out);
}

void ddp_unjudged_as_cell(const struct ddp_unjudged *item, struct ddp_verdict_cell *cell,
                          char *state, size_t bytes)
{
    *cell = (struct ddp_verdict_cell){
        .cell = {0, NAN, NAN, NAN, NAN, NAN, DDP_CELL_MISSING}, .base_ns = NAN, .next_ns = NAN};
    memcpy(cell->id, item->name, sizeof cell->id);
    snprintf(state, bytes, "not judged: %s", ddp_unjudged_kind(item));
}

static void add_unjudged(cJSON *list, const struct ddp_unjudged *item)
{
    cJSON *obj = ddp_json_append(list);
    ddp_json_str(obj, "name", item->name);
    ddp_json_str(obj, "kind", item->train ? "train" : "cell");
    ddp_json_str(obj, "side", item->base ? "base" : "new");
}

static void add_cell(cJSON *list, const struct ddp_verdict_cell *c)
{
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "id", c->id);
    ddp_json_str(item, "state", ddp_cell_state_name(c->cell.state));
    ddp_json_count(item, "pairs", (int64_t)c->cell.pairs);
    ddp_json_us(item, "base_us", c->base_ns);
    ddp_json_us(item, "new_us", c->next_ns);
    ddp_json_num(item, "ratio", c->cell.ratio);
    ddp_json_num(item, "lower", c->cell.lower);
    ddp_json_num(item, "upper", c->cell.upper);
    ddp_json_num(item, "p", c->cell.p);
    ddp_json_num(item, "p_holm", c->cell.p_holm);
}

static void add_side(cJSON *obj, const char *key, const char *command, const char *build)
{
    cJSON *side = ddp_json_obj(obj, key);
    ddp_json_str(side, "command", command);
    ddp_json_str(side, "build", build);
}

static void add_control(cJSON *obj, const char *key, double ratio, double p)
{
    cJSON *control = ddp_json_obj(obj, key);
    ddp_json_num(control, "ratio", ratio);
    ddp_json_num(control, "p", p);
}

void ddp_json_verdict(cJSON *obj, const struct ddp_verdict_record *v)
{
    if (!v) {
        ddp_json_null(obj, "verdict");
        return;
    }
    cJSON *verdict = ddp_json_obj(obj, "verdict");
    ddp_json_str(verdict, "kind", v->kind);
    ddp_json_str(verdict, "outcome", ddp_verdict_name(v->outcome));
    ddp_json_str(verdict, "reason", v->reason);
    ddp_json_num(verdict, "level", v->level);
    ddp_json_num(verdict, "min_effect", v->min_effect);
    ddp_json_str(verdict, "min_effect_from", v->effect_from);
    ddp_json_num(verdict, "noise_floor", v->noise_floor);
    ddp_json_count(verdict, "pairs", v->pairs > 0 ? v->pairs : -1);
    ddp_json_count(verdict, "pairs_rerun", v->rerun);
    ddp_json_count(verdict, "pairs_mixed", v->mixed);
    add_side(verdict, "base", v->base_command, v->base_build);
    add_side(verdict, "new", v->next_command, v->next_build);
    ddp_json_str(verdict, "fingerprint", v->fingerprint);
    cJSON *control = ddp_json_obj(verdict, "control");
    add_control(control, "pingpong", v->pingpong_ratio, v->pingpong_p);
    add_control(control, "memory", v->memory_ratio, v->memory_p);
    if (v->noise)
        ddp_noise_add(ddp_json_obj(verdict, "selftest"), v->noise);
    else
        ddp_json_null(verdict, "selftest");
    cJSON *list = ddp_json_arr(verdict, "cells");
    for (size_t i = 0; i < v->count; i++)
        add_cell(list, &v->cells[i]);
    list = ddp_json_arr(verdict, "unjudged");
    for (size_t i = 0; i < v->unjudged.count; i++)
        add_unjudged(list, &v->unjudged.items[i]);
}
