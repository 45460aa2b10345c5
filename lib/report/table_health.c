/* The verdict of `ddpbench health` (record/health_record.h) as lines of text. */
#include <math.h>

#include "report/report_parts.h"
#include "report/terminal_table.h"

static const char *style_of(enum ddp_health_verdict verdict)
{
    return verdict == DDP_HEALTH_HEALTHY    ? DDP_GREEN
           : verdict == DDP_HEALTH_DEGRADED ? DDP_RED
                                            : DDP_YELLOW;
}

static void add_line(const char *style, int width, const char *before, const char *text,
                     struct ddp_strbuf *out)
{
    if (width > 0)
        ddp_terminal_line(out, width, style, "%s%s", before, text);
    else
        ddp_strbuf_addf(out, "# %s%s\n", before, text);
}

static void add_found(bool percent, const char *what, double value, char *text, size_t bytes)
{
    const char *comma = text[0] ? "; " : "";
    if (value > DDP_HEALTH_SHOWN_MOST)
        ddp_text_append(text, bytes, "%sno slow %s would be found", comma, what);
    else if (percent)
        ddp_text_append(text, bytes, "%sa %s with %.2g %% would be found", comma, what, value);
    else
        ddp_text_append(text, bytes, "%sa %s %.2f times worse would be found", comma, what, value);
}

/* Adds a line with the scatter of a figure and the smallest slow-downs that would be found. `large`
 * is "host" or, on one host, "rank". For `isolate`, it is "place". */
static void add_power(const struct ddp_health_power *p, const char *large, int width,
                      struct ddp_strbuf *out)
{
    const bool percent = p->figure == DDP_HEALTH_RESENT;
    const char *small = p->figure > DDP_HEALTH_RESENT ? "rank" : "link";
    char text[240] = "", name[32];
    if (isnan(p->scatter) && p->figure == DDP_HEALTH_LATENCY)
        add_line(DDP_DIM, width, "",
                 "latency: not judged, because the ranks had no core of their own", out);
    if (isnan(p->scatter))
        return;
    if (!percent)
        snprintf(text, sizeof text, "scatter %.2g %%", 100 * p->scatter);
    if (isnan(p->host_factor) && isnan(p->link_factor))
        ddp_text_append(text, sizeof text, "%sthere is nothing to compare with",
                        text[0] ? "; " : "");
    if (!isnan(p->host_factor))
        add_found(percent, large, p->host_factor, text, sizeof text);
    if (!isnan(p->link_factor) && p->link_factor != p->host_factor)
        add_found(percent, small, p->link_factor, text, sizeof text);
    snprintf(name, sizeof name, "%s: ", ddp_health_figure_names[p->figure]);
    add_line(DDP_DIM, width, name, text, out);
}

bool ddp_health_line(const struct ddp_record *r, int i, char *out, size_t out_bytes)
{
    const struct ddp_health *h = &r->health;
    if (h->verdict == DDP_HEALTH_NONE)
        return false;
    out[0] = '\0';
    if (i == 0)
        snprintf(out, out_bytes, "%s: %s", ddp_health_verdict_names[h->verdict], h->reason);
    else if (i <= h->finding_count)
        ddp_health_sentence(r, i - 1, out, out_bytes);
    else
        return ddp_health_difference(r, i - 1 - h->finding_count, out, out_bytes);
    return true;
}

void ddp_table_health(const struct ddp_record *r, int width, struct ddp_strbuf *out)
{
    char text[1200];
    if (r->health.verdict == DDP_HEALTH_NONE)
        return;
    for (int f = r->health.rounds >= 0 ? DDP_HEALTH_COLLECTIVE : 0; f < DDP_HEALTH_FIGURES; f++)
        add_power(&r->health.power[f],
                  f == DDP_HEALTH_COLLECTIVE ? "place"
                  : r->matrix.by_host        ? "host"
                                             : "rank",
                  width, out);
    for (int i = 0; ddp_health_line(r, i, text, sizeof text); i++)
        add_line(i == 0                         ? style_of(r->health.verdict)
                 : i <= r->health.finding_count ? DDP_BOLD
                                                : NULL,
                 width, i == 0 ? "" : "- ", text, out);
}
