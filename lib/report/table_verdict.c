#include "report/table_verdict.h"

#include <math.h>
#include <stdio.h>

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

static void head(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                 struct ddp_strbuf *out)
{
    ddp_table_dim(style, out);
    ddp_strbuf_addf(out, "# base: %s\n#       %s\n", v->base_command, v->base_build);
    ddp_strbuf_addf(out, "# new:  %s\n#       %s\n", v->next_command, v->next_build);
    ddp_strbuf_addf(out, "# both: %s\n", v->fingerprint);
    if (v->pairs > 0)
        ddp_strbuf_addf(out,
                        "# %d randomised pairs of launches; ratio: Hodges-Lehmann estimate of "
                        "new/base times, with one-sided %.0f %% bounds\n"
                        "# p: exact sign-flip test, slower; Holm: corrected for %zu cells. Slower: "
                        "Holm <= %.2f and the lower bound above %.3f\n",
                        v->pairs, (1 - v->level) * 100, v->count, v->level, 1 + v->min_effect);
    else
        ddp_strbuf_addf(out,
                        "# STORED RESULTS, one launch each, taken at different times: weaker than "
                        "`ddpbench gate`. Slower: the interval above %.3f\n",
                        1 + v->min_effect);
    ddp_strbuf_add(out, "# cell                                                         base(us)  "
                        "  new(us)   ratio   lower   upper        p     Holm\n");
    ddp_table_plain(style, out);
}

static void row(const struct ddp_verdict_cell *c, const struct ddp_report_style *style,
                struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%-60s", c->id);
    ddp_table_cell(out, 9, c->base_ns / 1e3);
    ddp_table_cell(out, 10, c->next_ns / 1e3);
    ratio(out, c->cell.ratio);
    ratio(out, c->cell.lower);
    ratio(out, c->cell.upper);
    ddp_strbuf_addf(out, " %8.2g %8.2g ", c->cell.p, c->cell.p_holm);
    if (c->cell.state == DDP_CELL_SLOWER)
        ddp_table_red(style, out);
    ddp_strbuf_add(out, ddp_cell_state_name(c->cell.state));
    if (c->cell.state == DDP_CELL_SLOWER)
        ddp_table_plain(style, out);
    ddp_strbuf_add(out, "\n");
}

void ddp_table_verdict(const struct ddp_verdict_record *v, const struct ddp_report_style *style,
                       struct ddp_strbuf *out)
{
    head(v, style, out);
    for (size_t i = 0; i < v->count; i++)
        row(&v->cells[i], style, out);
    if (!isnan(v->control_ratio))
        ddp_strbuf_addf(out,
                        "# control (ping-pong): ratio %.3f, p %.2g; %d pair%s run again, %d kept "
                        "although the class changed\n",
                        v->control_ratio, v->control_p, v->rerun, v->rerun == 1 ? "" : "s",
                        v->mixed);
    ddp_table_bold(style, out);
    ddp_strbuf_addf(out, "%s", ddp_verdict_name(v->outcome));
    ddp_table_plain(style, out);
    ddp_strbuf_addf(out, ": %s\n", v->reason);
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
    ddp_json_num(verdict, "noise_floor", v->noise_floor);
    ddp_json_count(verdict, "pairs", v->pairs > 0 ? v->pairs : -1);
    ddp_json_count(verdict, "pairs_rerun", v->rerun);
    ddp_json_count(verdict, "pairs_mixed", v->mixed);
    add_side(verdict, "base", v->base_command, v->base_build);
    add_side(verdict, "new", v->next_command, v->next_build);
    ddp_json_str(verdict, "fingerprint", v->fingerprint);
    cJSON *control = ddp_json_obj(verdict, "control");
    ddp_json_num(control, "ratio", v->control_ratio);
    ddp_json_num(control, "p", v->control_p);
    cJSON *cells = ddp_json_arr(verdict, "cells");
    for (size_t i = 0; i < v->count; i++)
        add_cell(cells, &v->cells[i]);
}
