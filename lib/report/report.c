/* The list of reporters, and the set of sinks that reporters write to. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "report/report.h"
#include "report/report_sink.h"

#define DDP_REPORTER(symbol) extern const struct ddp_reporter ddp_reporter_##symbol;
#include "report/report_list.h"
#undef DDP_REPORTER

static const struct ddp_reporter *const reporters[] = {
#define DDP_REPORTER(symbol) &ddp_reporter_##symbol,
#include "report/report_list.h"
#undef DDP_REPORTER
    NULL};

const struct ddp_reporter *const *ddp_reporter_all(void)
{
    return reporters;
}

const struct ddp_reporter *ddp_reporter_find(const char *name)
{
    for (int i = 0; reporters[i]; i++) {
        if (strcmp(reporters[i]->name, name) == 0)
            return reporters[i];
    }
    return NULL;
}

struct output {
    const struct ddp_reporter *reporter;
    bool color;
    struct ddp_sink sink;
};

struct ddp_report_set {
    struct output *outputs; /* [count] */
    int count;
    int printed; /* Number of points that were written to the streams. */
    bool begun;  /* True once targets may have changed. Before that, they are only checked. */
    struct ddp_write_deadline deadline_policy;
};

int ddp_report_open(struct ddp_report_set **out, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(out, 1, err));
    (*out)->deadline_policy = DDP_WRITE_DEADLINE_INIT;
    return 0;
}

void ddp_report_set_write_deadline(struct ddp_report_set *set,
                                   const struct ddp_write_deadline *deadline_policy)
{
    set->deadline_policy = *deadline_policy;
}

static bool is_stdout(const struct output *o)
{
    return o->sink.kind == DDP_SINK_FD && o->sink.fd == STDOUT_FILENO;
}

bool ddp_report_has_stdout(const struct ddp_report_set *set)
{
    for (int i = 0; i < set->count; i++) {
        if (is_stdout(&set->outputs[i]))
            return true;
    }
    return false;
}

int ddp_report_add(struct ddp_report_set *set, const struct ddp_reporter *reporter,
                   const char *path, bool color, struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&set->outputs, (size_t)set->count + 1, err));
    const struct output *outputs = set->outputs;
    struct output *added = &set->outputs[set->count];
    added->reporter = reporter;
    added->color = color;
    DDP_TRY(ddp_sink_init(&added->sink, path, reporter->document, &set->deadline_policy, err));
    for (int i = 0; i < set->count; i++) {
        if (!ddp_sink_same(&added->sink, &outputs[i].sink))
            continue;
        ddp_fail(err, DDP_EUSAGE, "both '%s' and '%s' would write to '%s'",
                 outputs[i].reporter->name, reporter->name, added->sink.path);
        ddp_sink_release(&added->sink);
        return ddp_hint(err, "use another file for one of them: --format %s=FILE", reporter->name);
    }
    set->count++;
    return 0;
}

int ddp_report_protect(const struct ddp_report_set *set, const char *path, struct ddp_err *err)
{
    for (int i = 0; i < set->count; i++) {
        const struct output *o = &set->outputs[i];
        if (!ddp_sink_hits(&o->sink, path))
            continue;
        ddp_fail(err, DDP_EUSAGE, "'%s' would overwrite '%s', which this command needs",
                 o->reporter->name, path);
        return ddp_hint(err, "use another file: --format %s=FILE", o->reporter->name);
    }
    return 0;
}

/* Removes the escape codes of colours, which end in 'm'. */
static void remove_colors(struct ddp_strbuf *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->length; i++)
        if (text->text[i] == '\033')
            i += strcspn(text->text + i, "m");
        else
            text->text[kept++] = text->text[i];
    text->length = kept;
}

/* Writes the output of a reporter. `whole` says that the text is a document. */
static int flush_text(struct output *o, struct ddp_strbuf *text, bool whole, struct ddp_err *err)
{
    int rc = 0;
    if (!o->color && !whole)
        remove_colors(text);
    if (text->failed)
        rc = ddp_fail(err, DDP_ENOMEM, "no memory to write '%s'", o->sink.path);
    else if (whole)
        rc = ddp_sink_replace(&o->sink, text->text ? text->text : "", text->length, err);
    else if (text->length > 0)
        rc = ddp_sink_write(&o->sink, text->text, text->length, err);
    ddp_strbuf_release(text);
    return rc;
}

/* Rewrites every document. Documents that can be written only once are written at the end. */
static int update_documents(struct ddp_report_set *set, const struct ddp_record *record, bool end,
                            struct ddp_err *err)
{
    int first = 0;
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        if (!o->reporter->document || (o->sink.once && !end))
            continue;
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        int rc = o->reporter->render(record, &text, err);
        if (rc == 0)
            rc = flush_text(o, &text, true, err);
        else
            ddp_strbuf_release(&text);
        if (first == 0)
            first = rc;
    }
    return first;
}

enum piece { PIECE_BEGIN, PIECE_POINT, PIECE_EPOCH };

/* Writes one piece to every stream. `index` is the index of the point, or of the epoch in `run`. */
static int print_piece(struct ddp_report_set *set, const struct ddp_record *record,
                       enum piece piece, int run, int index, struct ddp_err *err)
{
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        if (o->reporter->document)
            continue;
        if (piece == PIECE_BEGIN && o->reporter->begin)
            o->reporter->begin(record, &text);
        else if (piece == PIECE_POINT && o->reporter->point)
            o->reporter->point(record, index, &text);
        else if (piece == PIECE_EPOCH && o->reporter->epoch)
            o->reporter->epoch(record, run, index, &text);
        DDP_TRY(flush_text(o, &text, false, err));
    }
    return 0;
}

/* Prints the points before `count` that have not been printed. */
static int print_points(struct ddp_report_set *set, const struct ddp_record *record, int count,
                        struct ddp_err *err)
{
    while (set->printed < count)
        /* Count the point first, so that a failed point is not printed again. */
        DDP_TRY(print_piece(set, record, PIECE_POINT, 0, set->printed++, err));
    return 0;
}

int ddp_report_begin(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    set->begun = true;
    for (int i = 0; i < set->count; i++)
        DDP_TRY(ddp_sink_open(&set->outputs[i].sink, err));
    DDP_TRY(update_documents(set, record, false, err));
    DDP_TRY(print_piece(set, record, PIECE_BEGIN, 0, 0, err));
    for (int run = 0; run < record->train_count; run++)
        for (int i = 0; i < record->train[run].epoch_count; i++)
            DDP_TRY(print_piece(set, record, PIECE_EPOCH, run, i, err));
    return record->point_count > 0 ? print_points(set, record, ddp_record_settled(record), err) : 0;
}

int ddp_report_point(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    DDP_TRY(update_documents(set, record, false, err));
    return print_points(set, record, ddp_record_settled(record), err);
}

int ddp_report_epoch(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    const int run = record->train_count - 1;
    DDP_TRY(update_documents(set, record, false, err));
    return print_piece(set, record, PIECE_EPOCH, run, record->train[run].epoch_count - 1, err);
}

int ddp_report_end(struct ddp_report_set *set, const struct ddp_record *record, struct ddp_err *err)
{
    if (!set->begun)
        return 0;
    int first = update_documents(set, record, true, err);
    int printed = print_points(set, record, record->point_count, err);
    if (first == 0)
        first = printed;
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        int rc = 0;
        if (o->reporter->end) {
            o->reporter->end(record, &text);
            rc = flush_text(o, &text, false, err);
        }
        if (rc == 0)
            rc = ddp_sink_finish(&o->sink, err);
        if (first == 0)
            first = rc;
    }
    return first;
}

void ddp_report_files(const struct ddp_report_set *set, char *out, size_t out_bytes)
{
    out[0] = '\0';
    for (int i = 0; i < set->count; i++)
        if (set->outputs[i].sink.kind == DDP_SINK_REPLACE ||
            set->outputs[i].sink.kind == DDP_SINK_STREAM)
            ddp_text_append(out, out_bytes, "%s%s", out[0] ? ", " : "", set->outputs[i].sink.path);
}

void ddp_report_close(struct ddp_report_set *set)
{
    if (!set)
        return;
    for (int i = 0; i < set->count; i++)
        ddp_sink_release(&set->outputs[i].sink);
    free(set->outputs);
    free(set);
}
