/* The section about the environment of each document, and the meaning of quality codes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "record/quality.h"
#include "report/page_impl.h"

static void label(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, s->record.label);
}

static void note(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_add(out, s->record.note);
}

static void status(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    const char *reason = s->record.reason;
    ddp_strbuf_addf(out, "%s%s%s%s", s->result.status, s->result.edited ? ", edited" : "",
                    reason[0] ? ": " : "", reason);
}

static void command(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    for (int i = 0; i < s->record.argc; i++)
        ddp_strbuf_addf(out, "%s%s", i ? " " : "", s->record.argv[i]);
}

static void measured(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%s%s%s", s->record.started, s->record.finished[0] ? " to " : "",
                    s->record.finished);
}

static void version(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%s (%s)", s->record.build.version, s->record.build.commit);
}

static void compiler(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%s, %s", s->record.build.compiler, s->record.build.cflags);
}

static void libraries(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    const struct ddp_record *r = &s->record;
    const char *const names[] = {r->simd,        r->feature_blas, r->feature_mpi,
                                 r->feature_ucx, r->feature_nccl, r->feature_cuda};
    for (size_t i = 0; i < DDP_COUNT_OF(names); i++)
        if (names[i][0])
            ddp_strbuf_addf(out, "%s%s", out->length ? ", " : "", names[i]);
}

static void world(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    ddp_strbuf_addf(out, "%d, backend %s, launcher %s", s->record.world_ranks,
                    s->record.world_backend, s->record.launcher);
}

static void host(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    for (int i = 0; i < s->record.host_count; i++) {
        const struct ddp_host *h = &s->record.hosts[i];
        char memory[24], nic[96];
        ddp_quantity_text(DDP_QUANTITY_SIZE, (double)h->memory_bytes, memory, sizeof memory);
        ddp_strbuf_addf(out, "%s%s: %s, %d cores, %s of memory, kernel %s", i ? "; " : "", h->name,
                        h->cpu[0] ? h->cpu : "unknown processor", h->cores,
                        h->memory_bytes > 0 ? memory : "unknown size", h->kernel);
        if (h->usable_cores > 0 && h->usable_cores != h->cores)
            ddp_strbuf_addf(out, ", %d usable cores", h->usable_cores);
        if (h->governor[0])
            ddp_strbuf_addf(out, ", governor %s", h->governor);
        if (isfinite(h->load))
            ddp_strbuf_addf(out, ", load %.2f", h->load);
        ddp_nic_text(&h->network.nic, nic, sizeof nic);
        if (nic[0])
            ddp_strbuf_addf(out, ", NIC %s%s%s", nic,
                            h->network.congestion_control[0] ? ", TCP " : "",
                            h->network.congestion_control);
        for (int g = 0; g < h->gpu_count; g++)
            ddp_strbuf_addf(out, ", %s (driver %s)", h->gpus[g].name, h->gpus[g].driver);
    }
}

static void memory_copy(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    for (int i = 0; i < s->record.control_count; i++) {
        const struct ddp_control *c = &s->record.controls[i];
        if (isfinite(c->copy_GBps))
            ddp_strbuf_addf(out, "%s%.3g GB/s with %d rank%s", out->length ? ", " : "",
                            c->copy_GBps, c->ranks, c->ranks == 1 ? "" : "s");
    }
}

static void timer(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    if (isfinite(s->record.timer_cost_ns))
        ddp_strbuf_addf(out, "a reading takes %.3g ns", s->record.timer_cost_ns);
}

static void variables(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    for (int i = 0; i < s->record.environment_count; i++)
        ddp_strbuf_addf(out, "%s%s=%s", i ? " " : "", s->record.environment[i].key,
                        s->record.environment[i].value);
}

static void left_out(const struct ddp_stored *s, struct ddp_strbuf *out)
{
    for (int i = 0; i < s->record.left_out_count; i++) {
        const struct ddp_left_out *l = &s->record.left_out[i];
        ddp_strbuf_addf(out, "%s%s on %d rank%s: %s", i ? "; " : "", l->what, l->ranks,
                        l->ranks == 1 ? "" : "s", l->reason);
    }
}

/* The facts about a document, one per row. */
static const struct {
    const char *name;
    void (*text)(const struct ddp_stored *stored, struct ddp_strbuf *out);
} facts[] = {
    {"label", label},
    {"note", note},
    {"status", status},
    {"command", command},
    {"measured", measured},
    {"ddpbench", version},
    {"compiler", compiler},
    {"SIMD and libraries", libraries},
    {"ranks", world},
    {"hosts", host},
    {"memory copy", memory_copy},
    {"timer", timer},
    {"environment", variables},
    {"could not run", left_out},
};

/* Adds a row with the fact of each document, unless no document has it. */
static void add_fact(struct ddp_page *page, size_t fact)
{
    struct ddp_strbuf row = DDP_STRBUF_INIT, *const out = page->out;
    bool any = false;
    page->out = &row;
    for (int d = 0; d < page->count; d++) {
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        facts[fact].text(page->docs[d], &text);
        any |= text.length > 0;
        ddp_page_words(page, text.text ? text.text : "");
        row.failed |= text.failed;
        ddp_strbuf_release(&text);
    }
    page->out = out;
    if (any) {
        ddp_page_open_row(page, "");
        ddp_page_element(page, "th class=\"t\" scope=\"row\"", facts[fact].name);
        ddp_strbuf_add(out, row.text ? row.text : "");
        ddp_page_close_row(page);
    }
    out->failed |= row.failed;
    ddp_strbuf_release(&row);
}

/* Explains the quality codes that occur. */
static void explain_quality(struct ddp_page *page)
{
    unsigned codes = 0;
    for (size_t i = 0; i < page->cells.count; i++)
        codes |= page->cells.items[i].quality;
    if (codes == 0)
        return;
    ddp_page_heading(page, 3, NULL, "Why points are doubtful");
    ddp_strbuf_add(page->out, "<dl>");
    for (int c = 0; c < DDP_QUALITY_COUNT; c++)
        if (codes >> c & 1) {
            ddp_page_element(page, "dt", ddp_quality_names[c]);
            ddp_strbuf_add(page->out, "<dd>");
            ddp_markup_text(page->out, ddp_quality_meaning((enum ddp_quality)c));
            ddp_strbuf_add(page->out, " ");
            ddp_markup_text(page->out, ddp_quality_advice((enum ddp_quality)c));
            ddp_strbuf_add(page->out, "</dd>\n");
        }
    ddp_strbuf_add(page->out, "</dl>\n");
}

int ddp_page_environment(struct ddp_page *page)
{
    struct ddp_page_column *columns;
    DDP_TRY(DDP_NEW(&columns, (size_t)page->count + 1, page->err));
    columns[0] = (struct ddp_page_column){"fact", true};
    for (int d = 0; d < page->count; d++)
        columns[d + 1] = (struct ddp_page_column){page->names[d], true};
    ddp_strbuf_add(page->out, "<section>\n");
    ddp_page_heading(page, 2, "environment", "Environment");
    ddp_strbuf_add(page->out, "<div class=\"wrap\">");
    ddp_page_open_table(page, "Environment of the documents", columns, (size_t)page->count + 1);
    for (size_t i = 0; i < DDP_COUNT_OF(facts); i++)
        add_fact(page, i);
    ddp_page_close_table(page);
    ddp_strbuf_add(page->out, "</div>\n");
    explain_quality(page);
    ddp_strbuf_add(page->out, "</section>\n");
    free(columns);
    return 0;
}
