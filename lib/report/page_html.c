/* An HTML page: its style sheet, its head, its summary, and the order of its sections. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "report/page_impl.h"

/* The style sheet of the page, without the rules of the drawings (ddp_svg_style). */
static const char style[] =
    "*{box-sizing:border-box}"
    "html{font:16px/1.55 system-ui,-apple-system,\"Segoe UI\",Roboto,sans-serif;"
    "-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--page);color:var(--ink)}"
    "header,main,footer{max-width:1280px;margin:0 auto;padding:0 20px}"
    "header{padding-top:28px}"
    "h1{font-size:1.7rem;line-height:1.25;margin:0 0 4px}"
    "h2{font-size:1.3rem;margin:0 0 8px}"
    "h3{font-size:1.05rem;margin:28px 0 2px}"
    "p{margin:0 0 12px;max-width:75ch}"
    "a{color:var(--link)}"
    "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:4px 18px;margin:12px 0 20px;padding:0}"
    "section{background:var(--surface);border:1px solid var(--line);border-radius:10px;"
    "padding:20px 22px;margin:0 0 20px}"
    ".note,.sub{color:var(--ink2)}"
    ".note{font-size:.9rem}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(190px,1fr));gap:12px;"
    "margin:0 0 16px}"
    ".tile{border:1px solid var(--line);border-radius:8px;padding:12px 14px}"
    ".tile b{display:block;font-size:1.5rem;line-height:1.2}"
    ".tile span{display:block;color:var(--ink2);font-size:.85rem;overflow-wrap:anywhere}"
    "section>ul{margin:0 0 12px;padding-left:1.2em;max-width:95ch}"
    "li,dd,.verdict{overflow-wrap:anywhere}"
    "section li+li{margin-top:4px}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,480px),1fr));"
    "gap:18px;align-items:start;margin-top:14px}"
    "figure{margin:0;min-width:0;border:1px solid var(--line);border-radius:8px;padding:12px}"
    "figcaption{font-weight:600;margin:0 0 4px;overflow-wrap:anywhere}"
    ".plot{display:block;width:100%;max-width:600px;height:auto;margin:0 auto}"
    ".legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:.85rem;color:var(--ink2);"
    "margin-bottom:4px}"
    ".legend span{display:inline-flex;align-items:center;gap:6px;overflow-wrap:anywhere}"
    ".key{flex:none}"
    ".scroll{overflow:auto;max-height:26rem;margin:10px 0 0;border-top:1px solid var(--line)}"
    ".scroll:focus-visible,a:focus-visible{outline:2px solid var(--link);outline-offset:2px}"
    "table{border-collapse:collapse;width:100%;font-size:.85rem;font-variant-numeric:tabular-nums}"
    "th,td{padding:4px 9px;text-align:right;vertical-align:top;white-space:nowrap;"
    "border-bottom:1px solid var(--grid)}"
    "th{font-weight:600;color:var(--ink2)}"
    "thead "
    "th{white-space:normal;vertical-align:bottom;position:sticky;top:0;background:var(--surface)}"
    "th.t,td.t{text-align:left}"
    ".wrap td.t{white-space:normal;overflow-wrap:anywhere;min-width:16em}"
    "tr.q td{background:var(--tint)}"
    "tr.w td{color:var(--bad);font-weight:600}"
    "tr.f td{color:var(--good)}"
    "dl{display:grid;grid-template-columns:minmax(9em,max-content) 1fr;gap:4px 16px;"
    "margin:12px 0 0;font-size:.9rem}"
    "dt{color:var(--ink2)}"
    "dd{margin:0;min-width:0}"
    "code{font:.9em ui-monospace,SFMono-Regular,Menlo,monospace}"
    ".verdict{border-left:5px solid var(--ink2);padding:6px 14px;margin:16px 0 12px;max-width:95ch}"
    ".verdict strong{font-size:1.15rem;margin-right:6px}"
    ".good{border-color:var(--good)}.good strong{color:var(--good)}"
    ".bad{border-color:var(--bad)}.bad strong{color:var(--bad)}"
    ".warn{border-color:var(--warn)}.warn strong{color:var(--warn)}"
    "footer{color:var(--ink2);font-size:.85rem;padding-bottom:28px}"
    "@media(max-width:600px){header,main,footer{padding-left:12px;padding-right:12px}"
    "section{padding:14px 12px}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}"
    "figure{padding:8px 4px;border-width:1px 0;border-radius:0}.plot text{font-size:16px}"
    ".plot text.r{font-size:13px}}"
    "@media print{body{background:none}section,figure{border:0;padding:0}nav{display:none}"
    ".scroll{max-height:none;overflow:visible}table{font-size:8pt}th,td{padding:2px 4px;"
    "white-space:normal}figure,.tile{break-inside:avoid}thead th{position:static}"
    ".figures{display:block}.plot{max-width:520px}}\n";

static void add_head(struct ddp_page *page)
{
    struct ddp_strbuf *out = page->out;
    ddp_strbuf_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
                        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n"
                        "<meta name=\"color-scheme\" content=\"light dark\"/>\n"
                        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
                        "'none'; style-src 'unsafe-inline'\"/>\n<title>ddpbench: ");
    ddp_markup_text(out, page->names[0]);
    if (page->count > 1)
        ddp_strbuf_addf(out, " and %d more", page->count - 1);
    ddp_strbuf_add(out, "</title>\n<style>\n");
    ddp_svg_style(out);
    ddp_strbuf_add(out, style);
    ddp_strbuf_add(out, "</style></head>\n<body>\n"
                        "<svg width=\"0\" height=\"0\" style=\"position:absolute\" "
                        "aria-hidden=\"true\">");
    ddp_svg_markers(out);
    ddp_strbuf_add(out, "</svg>\n");
}

/* Adds the title, and the time and the machine of the first document. */
static void add_header(struct ddp_page *page)
{
    const struct ddp_record *r = &page->docs[0]->record;
    ddp_strbuf_add(page->out, "<header><h1>");
    for (int d = 0; d < page->count && d < 4; d++) {
        ddp_strbuf_add(page->out, d ? ", " : "");
        ddp_markup_text(page->out, page->names[d]);
    }
    if (page->count > 4)
        ddp_strbuf_addf(page->out, " and %d more", page->count - 4);
    ddp_strbuf_add(page->out, "</h1>\n<p class=\"sub\">");
    if (r->host_count > 0) {
        ddp_markup_text(page->out, r->hosts[0].cpu[0] ? r->hosts[0].cpu : "unknown processor");
        ddp_strbuf_addf(page->out, ", %d core%s", r->hosts[0].cores,
                        r->hosts[0].cores == 1 ? "" : "s");
        if (r->host_count > 1)
            ddp_strbuf_addf(page->out, " (the first of %d hosts)", r->host_count);
        ddp_strbuf_add(page->out, ", ");
    }
    /* Commands without ranks have the backend "none", which is not shown. */
    if (r->point_count + r->train_count + r->matrix.ends > 0) {
        ddp_strbuf_addf(page->out, "%d rank%s over ", r->world_ranks,
                        r->world_ranks == 1 ? "" : "s");
        ddp_markup_text(page->out, r->world_backend);
        ddp_strbuf_add(page->out, ", ");
    }
    ddp_strbuf_add(page->out, "ddpbench ");
    ddp_markup_text(page->out, page->docs[0]->record.build.version);
    ddp_strbuf_add(page->out, ", ");
    ddp_markup_text(page->out, r->started);
    ddp_strbuf_add(page->out, "</p></header>\n");
}

static void add_tile(struct ddp_page *page, const char *figure, const char *text)
{
    ddp_strbuf_add(page->out, "<div class=\"tile\">");
    ddp_page_element(page, "b", figure);
    ddp_page_element(page, "span", text);
    ddp_strbuf_add(page->out, "</div>\n");
}

/* Adds a tile with the highest bus bandwidth. */
static void add_best(struct ddp_page *page, const struct ddp_record *r)
{
    char figure[40], size[24], text[160];
    const int best = ddp_record_best_busbw(r);
    if (best < 0)
        return;
    const struct ddp_point *p = &r->points[best];
    ddp_quantity_text(DDP_QUANTITY_GBPS, ddp_point_busbw_GBps(p, p->time_ns.median), figure, 24);
    ddp_text_append(figure, sizeof figure, " GB/s");
    ddp_quantity_text(DDP_QUANTITY_SIZE, (double)p->spec.size_bytes, size, sizeof size);
    snprintf(text, sizeof text, "highest bus bandwidth: %s of %s on %d ranks",
             ddp_coll_name(p->spec.coll), size, p->spec.ranks);
    add_tile(page, figure, text);
}

/* Adds a tile with the shortest time of an operation on several ranks. Ignores points with wrong
 * data. */
static void add_shortest(struct ddp_page *page, const struct ddp_record *r)
{
    const struct ddp_point *least = NULL;
    char figure[24], size[24], text[160];
    for (int i = 0; i < r->point_count; i++) {
        const struct ddp_point *p = &r->points[i];
        if (p->spec.ranks > 1 && p->time_ns.median > 0 && p->check_wrong <= 0 &&
            (!least || p->time_ns.median < least->time_ns.median))
            least = p;
    }
    if (!least)
        return;
    ddp_quantity_text(DDP_QUANTITY_NS, least->time_ns.median, figure, sizeof figure);
    ddp_quantity_text(DDP_QUANTITY_SIZE, (double)least->spec.size_bytes, size, sizeof size);
    snprintf(text, sizeof text, "shortest time: %s of %s on %d ranks",
             ddp_coll_name(least->spec.coll), size, least->spec.ranks);
    add_tile(page, figure, text);
}

/* Adds a tile with the accuracy of the first strategy. If strategies were compared with a
 * reference, a second tile shows the strategy with the lowest accuracy relative to its reference.
 */
static void add_accuracy(struct ddp_page *page)
{
    const struct ddp_strategy_row *first, *worst = NULL;
    char figure[32], text[320];
    if (page->strategies.count == 0)
        return;
    first = page->strategies.items[0].row;
    for (size_t i = 1; i < page->strategies.count; i++) {
        const struct ddp_strategy_row *row = page->strategies.items[i].row;
        if (!isnan(row->difference.mean) &&
            (!worst || row->difference.mean < worst->difference.mean))
            worst = row;
    }
    ddp_quantity_text(DDP_QUANTITY_FRACTION, first->accuracy.mean, figure, 24);
    snprintf(text, sizeof text, "accuracy of %s", page->strategies.items[0].name);
    add_tile(page, figure, text);
    if (!worst)
        return;
    snprintf(figure, sizeof figure, "%+.2f %% points", worst->difference.mean * 100);
    snprintf(text, sizeof text, "lowest accuracy relative to %s: %s", worst->reference,
             worst->sync);
    add_tile(page, figure, text);
}

/* Adds the key figures of a page about one document. */
static void add_tiles(struct ddp_page *page)
{
    const struct ddp_record *r = &page->docs[0]->record;
    char figure[48];
    int doubtful = 0;
    for (int i = 0; i < r->point_count; i++)
        doubtful += r->points[i].quality != 0;
    ddp_strbuf_add(page->out, "<div class=\"tiles\">\n");
    add_best(page, r);
    add_shortest(page, r);
    add_accuracy(page);
    if (r->point_count > 0) {
        snprintf(figure, sizeof figure, "%d of %d", doubtful, r->point_count);
        add_tile(page, figure, "points are doubtful");
    }
    ddp_strbuf_add(page->out, "</div>\n");
}

static void add_summary(struct ddp_page *page)
{
    ddp_strbuf_add(page->out, "<section>\n");
    ddp_page_heading(page, 2, "summary", "Summary");
    if (page->count == 1 && (page->docs[0]->record.point_count > 0 || page->strategies.count > 0))
        add_tiles(page);
    ddp_strbuf_add(page->out, "<ul>\n");
    ddp_page_summary(page, false);
    ddp_strbuf_add(page->out, "</ul>\n</section>\n");
}

/* Adds a link to each section whose heading is in the HTML text `sections`. */
static void add_links(const char *sections, struct ddp_strbuf *out)
{
    static const char *const links[][2] = {{"summary", "Summary"},
                                           {"verdicts", "Verdicts"},
                                           {"sizes", "Over size"},
                                           {"ranks", "Over ranks"},
                                           {"compression", "Compression"},
                                           {"training", "Training"},
                                           {"pays", "Does compression pay?"},
                                           {"comparison", "Comparison"},
                                           {"matrix", "Between pairs"},
                                           {"environment", "Environment"}};
    ddp_strbuf_add(out, "<nav aria-label=\"Sections\"><ul>");
    for (size_t i = 0; i < DDP_COUNT_OF(links); i++) {
        char id[48];
        snprintf(id, sizeof id, "<h2 id=\"%s\">", links[i][0]);
        if (strstr(sections, id))
            ddp_strbuf_addf(out, "<li><a href=\"#%s\">%s</a></li>", links[i][0], links[i][1]);
    }
    ddp_strbuf_add(out, "</ul></nav>\n");
}

static int add_sections(struct ddp_page *page)
{
    add_summary(page);
    DDP_TRY(ddp_page_verdicts(page));
    DDP_TRY(ddp_page_points(page));
    DDP_TRY(ddp_page_compressed(page));
    DDP_TRY(ddp_page_training(page));
    ddp_page_pays(page);
    DDP_TRY(ddp_page_comparison(page));
    DDP_TRY(ddp_page_matrix(page));
    return ddp_page_environment(page);
}

int ddp_page_html(struct ddp_page *page)
{
    struct ddp_strbuf sections = DDP_STRBUF_INIT, *const out = page->out;
    page->out = &sections;
    const int rc = add_sections(page);
    page->out = out;
    add_head(page);
    add_header(page);
    ddp_strbuf_add(out, "<main>\n");
    add_links(sections.text ? sections.text : "", out);
    ddp_strbuf_add(out, sections.text ? sections.text : "");
    ddp_strbuf_add(out, "</main>\n<footer><p>Made by <code>ddpbench report</code>. The page needs "
                        "no network and no script.</p></footer>\n</body></html>\n");
    out->failed |= sections.failed;
    ddp_strbuf_release(&sections);
    return rc;
}
