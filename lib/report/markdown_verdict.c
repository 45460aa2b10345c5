#include "report/markdown_verdict.h"

#include <math.h>
#include <string.h>

#include "report/table_verdict.h"

void ddp_markdown_code(struct ddp_strbuf *out, const char *text)
{
    char clean[2400];
    ddp_printable(text, clean, sizeof clean);
    for (char *c = clean; *c; c++)
        /* Some viewers ignore the backticks, so HTML is made harmless too. */
        if (*c == '|' || *c == '`' || *c == '<')
            *c = '?';
    if (clean[0])
        ddp_strbuf_addf(out, "`%s`", clean);
    else
        ddp_strbuf_add(out, "-");
}

static void number(struct ddp_strbuf *out, int digits, double value)
{
    if (isfinite(value))
        ddp_strbuf_addf(out, " %.*f |", digits, value);
    else
        ddp_strbuf_add(out, " - |");
}

static void row(const struct ddp_verdict_cell *c, const char *state, struct ddp_strbuf *out)
{
    const bool slower = c->cell.state == DDP_CELL_SLOWER;
    ddp_strbuf_add(out, "| ");
    ddp_markdown_code(out, c->id);
    ddp_strbuf_add(out, " |");
    number(out, 2, c->base_ns / 1e3);
    number(out, 2, c->next_ns / 1e3);
    number(out, 3, c->cell.ratio);
    number(out, 3, c->cell.lower);
    number(out, 3, c->cell.upper);
    number(out, 4, c->cell.p_holm);
    ddp_strbuf_addf(out, " %s%s%s |\n", slower ? "**" : "", state, slower ? "**" : "");
}

static void rows(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, "| cell | base (us) | new (us) | ratio | lower | upper | Holm | |\n"
                        "|:--|--:|--:|--:|--:|--:|--:|:--|\n");
    for (int slower = 1; slower >= 0; slower--)
        for (size_t i = 0; i < v->count; i++)
            if ((v->cells[i].cell.state == DDP_CELL_SLOWER) == slower)
                row(&v->cells[i], ddp_cell_state_name(v->cells[i].cell.state), out);
    for (size_t i = 0; i < v->unjudged.count; i++) {
        struct ddp_verdict_cell c;
        char state[64];
        ddp_unjudged_as_cell(&v->unjudged.items[i], &c, state, sizeof state);
        row(&c, state, out);
    }
    ddp_strbuf_add(out, "\n");
}

static void side(const char *what, const char *command, const char *build, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "- %s: ", what);
    ddp_markdown_code(out, command);
    ddp_strbuf_add(out, ", ");
    ddp_markdown_code(out, build);
    ddp_strbuf_add(out, "\n");
}

static void control(const char *what, double ratio, double p, struct ddp_strbuf *out)
{
    if (!isnan(ratio))
        ddp_strbuf_addf(out, "- control (%s): ratio %.3f, p %.2g\n", what, ratio, p);
}

static void noise(const struct ddp_noise *n, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out,
                    "| A/A gates | false alarms | inconclusive | gates with %.3g %% | found | "
                    "elsewhere | noise floor (%%) | smallest found (%%) |\n"
                    "|--:|--:|--:|--:|--:|--:|--:|--:|\n| %d | %d | %d | %d | %d | %d |",
                    n->injected_effect * 100, n->same, n->false_alarms, n->inconclusive,
                    n->injected, n->found, n->elsewhere);
    number(out, 2, n->noise_floor * 100);
    number(out, 2, n->detectable * 100);
    ddp_strbuf_add(out, "\n\n");
}

void ddp_markdown_verdict(const struct ddp_verdict_record *v, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "## %s\n\n", ddp_verdict_name(v->outcome));
    ddp_markdown_code(out, v->reason);
    ddp_strbuf_add(out, "\n\n");
    if (v->noise)
        noise(v->noise, out);
    else
        rows(v, out);
    side("base", v->base_command, v->base_build, out);
    if (!v->noise)
        side("new", v->next_command, v->next_build, out);
    if (v->pairs > 0)
        ddp_strbuf_addf(out, "- %d pairs of launches%s\n", v->pairs, v->noise ? " per gate" : "");
    else
        ddp_strbuf_add(out, "- stored results, measured at different times: weaker than a gate\n");
    ddp_strbuf_addf(out,
                    "- smallest effect that counts (--min-effect): %.3g %%: ", v->min_effect * 100);
    ddp_markdown_code(out, v->effect_from);
    ddp_strbuf_add(out, "\n");
    control("ping-pong", v->pingpong_ratio, v->pingpong_p, out);
    control("memory copy", v->memory_ratio, v->memory_p, out);
    ddp_strbuf_add(out, "\n");
}
