/* Reads documents, builds a page about them, and writes the files. */
#include "report/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "report/page_impl.h"
#include "report/report_sink.h"

/* Writes the label of a document if `labels` is true and the document has a label. Otherwise writes
 * the file name without the folder. Removes ".json" from the end. */
static void short_name(const char *path, const struct ddp_stored *s, bool labels, char out[128])
{
    const char *base = strrchr(path, '/');
    base = base ? base + 1 : path;
    ddp_printable(labels && s->record.label[0] ? s->record.label : base, out, 128);
    const size_t n = strlen(out);
    if (n > 5 && strcmp(out + n - 5, ".json") == 0)
        out[n - 5] = '\0';
}

static bool all_differ(char (*names)[128], int count)
{
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i; k++)
            if (strcmp(names[i], names[k]) == 0)
                return false;
    return true;
}

/* Names the documents by their labels or, if two labels are equal, by their file names. If two file
 * names are equal, too, names the documents by their paths and numbers. */
static void name_documents(struct ddp_page *page)
{
    for (int labels = 1; labels >= 0; labels--) {
        for (int d = 0; d < page->count; d++)
            short_name(page->paths[d], page->docs[d], labels != 0, page->names[d]);
        if (all_differ(page->names, page->count))
            return;
    }
    for (int d = 0; d < page->count; d++) {
        char number[16];
        snprintf(number, sizeof number, " (%d)", d + 1);
        ddp_printable(page->paths[d], page->names[d], sizeof page->names[0] - sizeof number);
        ddp_text_append(page->names[d], sizeof page->names[0], "%s", number);
    }
}

/* Computes the ratios to the first document. */
static int build_across(struct ddp_page *page)
{
    char(*names)[512];
    int rc;
    if (page->count < 2)
        return 0;
    DDP_TRY(DDP_NEW(&names, (size_t)page->count, page->err));
    for (int d = 0; d < page->count; d++)
        snprintf(names[d], sizeof names[d], "%s", page->names[d]);
    rc = ddp_across_build(page->results, names, (size_t)page->count, &page->across, page->err);
    free(names);
    return rc;
}

/* Puts the documents that have points or training runs before the others. */
static int order_documents(struct ddp_page *page, const struct ddp_stored *docs,
                           const char *const *paths)
{
    int next = 0;
    DDP_TRY(DDP_NEW(&page->docs, (size_t)page->count, page->err));
    DDP_TRY(DDP_NEW(&page->paths, (size_t)page->count, page->err));
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < page->count; d++)
            if ((docs[d].result.count == 0) == pass) {
                page->docs[next] = &docs[d];
                page->paths[next++] = paths[d];
            }
    return 0;
}

/* If page->keeps_files is true, adds an SVG file to page->files for each document with points. The
 * file shows the table of the points as on a terminal. */
static int keep_screens(struct ddp_page *page)
{
    for (int d = 0; d < page->count && page->keeps_files; d++) {
        struct ddp_strbuf *text;
        if (page->docs[d]->record.point_count == 0)
            continue;
        text = ddp_page_keep_file(page, "screen");
        if (!text)
            return DDP_ENOMEM;
        ddp_svg_screen(&page->docs[d]->record, text);
    }
    return 0;
}

/* Prepares everything that the sections need, and builds the page. */
static int build(struct ddp_page *page, const struct ddp_stored *docs, const char *const *paths,
                 bool markdown)
{
    DDP_TRY(order_documents(page, docs, paths));
    DDP_TRY(DDP_NEW(&page->names, (size_t)page->count, page->err));
    DDP_TRY(DDP_NEW(&page->sources, (size_t)page->count, page->err));
    DDP_TRY(DDP_NEW(&page->results, (size_t)page->count, page->err));
    name_documents(page);
    for (int d = 0; d < page->count; d++) {
        page->results[d] = page->docs[d]->result;
        page->sources[d] = (struct ddp_plot_source){.name = page->names[d],
                                                    .record = &page->docs[d]->record,
                                                    .result = &page->results[d],
                                                    .merged = page->docs[d]->merged};
    }
    DDP_TRY(ddp_plot_collect(page->sources, page->count, &page->cells, page->err));
    DDP_TRY(ddp_plot_collect_strategies(page->sources, page->count, &page->strategies, page->err));
    DDP_TRY(build_across(page));
    DDP_TRY(markdown ? ddp_page_markdown(page) : ddp_page_html(page));
    DDP_TRY(keep_screens(page));
    return page->out->failed ? ddp_fail(page->err, DDP_ENOMEM, "no memory for the page") : 0;
}

static void release(struct ddp_page *page)
{
    for (size_t i = 0; i < page->file_count; i++)
        ddp_strbuf_release(&page->files[i].text);
    free(page->files);
    ddp_across_release(&page->across);
    ddp_plot_strategies_release(&page->strategies);
    free(page->cells.items);
    free(page->results);
    free(page->sources);
    free(page->names);
    free(page->paths);
    free(page->docs);
}

int ddp_page_build(const struct ddp_stored *docs, const char *const *paths, size_t count,
                   bool markdown, struct ddp_strbuf *out, struct ddp_err *err)
{
    struct ddp_page page = {.count = (int)count, .out = out, .err = err};
    const int rc = build(&page, docs, paths, markdown);
    release(&page);
    return rc;
}

/* Writes a text to a file, which is replaced as a whole. Refuses to overwrite a document. */
static int write_file(const struct ddp_page_request *request, const char *path,
                      const struct ddp_strbuf *text, bool fsync, struct ddp_err *err)
{
    struct ddp_write_deadline deadline = DDP_WRITE_DEADLINE_INIT;
    struct ddp_sink sink;
    int rc = 0;
    deadline.no_fsync = !fsync;
    DDP_TRY(ddp_sink_init(&sink, path, true, &deadline, err));
    for (size_t i = 0; i < request->count && rc == 0; i++)
        if (ddp_sink_hits(&sink, request->paths[i]))
            rc = ddp_fail(err, DDP_EUSAGE, "'%s' would overwrite the document '%s'", path,
                          request->paths[i]);
    if (rc == 0)
        rc = ddp_sink_open(&sink, err);
    if (rc == 0)
        rc = ddp_sink_replace(&sink, text->text, text->length, err);
    if (rc == 0)
        rc = ddp_sink_finish(&sink, err);
    ddp_sink_release(&sink);
    return rc;
}

/* Writes the SVG files into their folder, and creates the folder if necessary. */
static int write_plots(const struct ddp_page_request *request, struct ddp_page *page)
{
    const char *dir = request->svg_dir;
    char path[4096 + sizeof page->files[0].name];
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return ddp_fail_errno(page->err, DDP_ECREATE, errno, "cannot make the folder '%s'", dir);
    for (size_t i = 0; i < page->file_count; i++) {
        const struct ddp_page_file *file = &page->files[i];
        const int n = snprintf(path, sizeof path, "%s/%s", dir, file->name);
        if (file->text.failed)
            return ddp_fail(page->err, DDP_ENOMEM, "no memory for '%s'", file->name);
        if (n >= (int)sizeof path)
            return ddp_fail(page->err, DDP_ECREATE,
                            "the path of the folder '%.100s...' is too long", dir);
        DDP_TRY(write_file(request, path, &file->text, false, page->err));
    }
    return 0;
}

static int write_documents(const struct ddp_page_request *request, const struct ddp_stored *docs,
                           struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_page page = {.count = (int)request->count,
                            .out = &text,
                            .err = err,
                            .keeps_files = request->svg_dir != NULL};
    int rc = build(&page, docs, request->paths, request->markdown);
    if (rc == 0 && request->svg_dir)
        rc = write_plots(request, &page);
    if (rc == 0 && request->page)
        rc = write_file(request, request->page, &text, true, err);
    release(&page);
    ddp_strbuf_release(&text);
    return rc;
}

int ddp_page_write(const struct ddp_page_request *request, struct ddp_err *err)
{
    struct ddp_stored *docs;
    DDP_TRY(ddp_stored_read_all(request->paths, request->count, &request->rules, &docs, err));
    const int rc = write_documents(request, docs, err);
    ddp_stored_free(docs, request->count);
    return rc;
}
