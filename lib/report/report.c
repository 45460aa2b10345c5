/* The list of reporters, and the set of sinks to which reporters write. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "report/plot_terminal.h"
#include "report/report.h"
#include "report/report_parts.h"
#include "report/report_sink.h"
#include "report/terminal_table.h"

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
    bool color;     /* escape codes for colours are allowed */
    bool on_screen; /* the table is drawn on a terminal */
    struct ddp_terminal_table screen_table;
    struct ddp_sink sink;
};

struct ddp_report_set {
    struct output *outputs; /* [count] */
    int count;
    /* Number of points that were written to the streams without measured_order. These streams get
     * the points in the order of the plan. */
    int printed;
    /* Kind of the last point that was written to the streams with measured_order. -1: the next
     * point begins a table, so a head is written before it. */
    int last_kind;
    struct ddp_table_options table;
    /* ddp_report_begin or ddp_report_show was called, so output files may have been written. */
    bool begun;
    struct ddp_write_deadline deadline_policy;
};

int ddp_report_open(struct ddp_report_set **out, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(out, 1, err));
    (*out)->deadline_policy = DDP_WRITE_DEADLINE_INIT;
    (*out)->last_kind = -1;
    return 0;
}

void ddp_report_set_write_deadline(struct ddp_report_set *set,
                                   const struct ddp_write_deadline *deadline_policy)
{
    set->deadline_policy = *deadline_policy;
}

void ddp_report_set_table(struct ddp_report_set *set, const struct ddp_table_options *options)
{
    set->table = *options;
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

bool ddp_report_has_table(const struct ddp_report_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->outputs[i].reporter->measured_order)
            return true;
    return false;
}

bool ddp_report_on_screen(const struct ddp_report_set *set)
{
    for (int i = 0; i < set->count; i++)
        if (set->outputs[i].on_screen)
            return true;
    return false;
}

int ddp_report_add(struct ddp_report_set *set, const struct ddp_reporter *reporter,
                   const char *path, struct ddp_err *err)
{
    DDP_TRY(DDP_RESIZE(&set->outputs, (size_t)set->count + 1, err));
    const struct output *outputs = set->outputs;
    struct output *added = &set->outputs[set->count];
    *added = (struct output){.reporter = reporter};
    if (set->table.legend && reporter->with_legend)
        added->reporter = reporter->with_legend;
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

/* Removes the escape codes of colours: "\033[", digits and semicolons, and 'm'. */
static void remove_colors(struct ddp_strbuf *text)
{
    size_t kept = 0;
    for (size_t i = 0; i < text->length; i++) {
        const char *c = text->text + i;
        const size_t digits = strncmp(c, "\033[", 2) == 0 ? strspn(c + 2, "0123456789;") : 0;
        if (c[0] == '\033' && c[1] == '[' && c[2 + digits] == 'm')
            i += 2 + digits;
        else
            text->text[kept++] = text->text[i];
    }
    text->length = kept;
}

/* Writes a text of a reporter to the sink, and releases the text. whole: the text is a whole
 * document. */
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

/* Rewrites every document. An output that can be written only once is written only if `end` is
 * true. Tries all documents, and returns the first error. */
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

enum piece { PIECE_BEGIN, PIECE_POINT, PIECE_EPOCH, PIECE_PAUSE, PIECE_END };

/* Adds a piece of the table on a terminal. Reads the size of the terminal again, because it may
 * have changed. */
static void screen_piece(struct output *o, const struct ddp_record *record, enum piece piece,
                         int run, int index, struct ddp_strbuf *text)
{
    struct ddp_terminal now;
    ddp_terminal_read(o->sink.fd, &now);
    if (now.columns == 0) /* the terminal is gone */
        now = o->screen_table.terminal;
    if (piece == PIECE_BEGIN)
        ddp_terminal_table_begin(&o->screen_table, &now, record, text);
    else if (piece == PIECE_POINT)
        ddp_terminal_table_point(&o->screen_table, &now, record, text);
    else if (piece == PIECE_EPOCH)
        ddp_terminal_table_epoch(&o->screen_table, &now, record, run, index, text);
    else if (piece == PIECE_PAUSE)
        ddp_terminal_table_pause(&o->screen_table, &now, text);
    else
        ddp_terminal_table_end(&o->screen_table, &now, record, text);
}

/* Writes one piece to a stream. `index` is the index of the point, or of the epoch in the training
 * run `run`. If `head` is true, the reporter's head is written before the point. */
static int print_piece(struct output *o, const struct ddp_record *record, enum piece piece, int run,
                       int index, bool head, struct ddp_err *err)
{
    const struct ddp_reporter *reporter = o->reporter;
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    if (o->on_screen) {
        screen_piece(o, record, piece, run, index, &text);
        return flush_text(o, &text, false, err);
    }
    if (head && reporter->head)
        reporter->head(record, index, &text);
    if (piece == PIECE_BEGIN && reporter->begin)
        reporter->begin(record, &text);
    else if (piece == PIECE_POINT && reporter->point)
        reporter->point(record, index, &text);
    else if (piece == PIECE_EPOCH && reporter->epoch)
        reporter->epoch(record, run, index, &text);
    else if (piece == PIECE_END && reporter->end)
        reporter->end(record, &text);
    return flush_text(o, &text, false, err);
}

/* Writes a piece to every stream. */
static int print_to_all(struct ddp_report_set *set, const struct ddp_record *record,
                        enum piece piece, int run, int index, struct ddp_err *err)
{
    for (int i = 0; i < set->count; i++)
        if (!set->outputs[i].reporter->document)
            DDP_TRY(print_piece(&set->outputs[i], record, piece, run, index, false, err));
    return 0;
}

/* Prints a point to the streams whose reporters have this value of measured_order. */
static int print_point(struct ddp_report_set *set, const struct ddp_record *record, int index,
                       bool measured_order, struct ddp_err *err)
{
    const int kind = (int)ddp_point_kind(&record->points[index].spec);
    const bool head = measured_order && kind != set->last_kind;
    if (measured_order)
        set->last_kind = kind;
    for (int i = 0; i < set->count; i++) {
        const struct ddp_reporter *reporter = set->outputs[i].reporter;
        if (!reporter->document && reporter->measured_order == measured_order)
            DDP_TRY(print_piece(&set->outputs[i], record, PIECE_POINT, 0, index, head, err));
    }
    return 0;
}

/* Prints the first `count` points to the streams without measured_order, except those points that
 * were printed before. */
static int print_points(struct ddp_report_set *set, const struct ddp_record *record, int count,
                        struct ddp_err *err)
{
    while (set->printed < count)
        /* The point is counted before it is written. If the write fails, ddp_report_end therefore
         * does not write the point a second time. */
        DDP_TRY(print_point(set, record, set->printed++, false, err));
    return 0;
}

/* Finds out whether a stream goes to a terminal, and whether the terminal shows colours. */
static void look_at_terminal(struct ddp_report_set *set, struct output *o)
{
    struct ddp_terminal terminal = {.columns = 0};
    if (!o->reporter->document && o->sink.fd >= 0)
        ddp_terminal_read(o->sink.fd, &terminal);
    o->color = terminal.color;
    o->on_screen = terminal.columns > 0 && o->reporter->measured_order && !set->table.wide;
    ddp_terminal_table_init(&o->screen_table, set->table.legend);
}

/* A point and its position in the order of measurement. Points are sorted by `part`, then by
 * `order`, then by `index` (list_measured). */
struct measured {
    int part, order, index;
};

static int compare_measured(const void *a, const void *b)
{
    const struct measured *x = a, *y = b;
    const int left[] = {x->part, x->order, x->index}, right[] = {y->part, y->order, y->index};
    for (int i = 0; i < 3; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

/* Sets *list to the points of a record in the order of measurement. *list has point_count elements,
 * and the caller frees it. The points of one repetition and one number of ranks form a part. In
 * each part, the member `order` of struct ddp_point begins at 0. The member `part` of an element is
 * the index of the first point of the part. */
static int list_measured(const struct ddp_record *record, struct measured **list,
                         struct ddp_err *err)
{
    int first = 0;
    DDP_TRY(DDP_NEW(list, (size_t)record->point_count, err));
    for (int i = 0; i < record->point_count; i++) {
        const struct ddp_point *p = &record->points[i];
        if (i > 0 && (p->launch != p[-1].launch || p->place <= p[-1].place))
            first = i;
        (*list)[i] = (struct measured){first, p->order, i};
    }
    if (record->point_count > 0)
        qsort(*list, (size_t)record->point_count, sizeof **list, compare_measured);
    return 0;
}

/* Prints the points of `list` to the streams with measured_order. A table on a terminal is left
 * out, because ddp_terminal_table_begin has already printed the points there. */
static int print_measured(struct ddp_report_set *set, const struct ddp_record *record,
                          const struct measured *list, struct ddp_err *err)
{
    for (int k = 0; k < record->point_count; k++) {
        const int p = list[k].index;
        const int kind = (int)ddp_point_kind(&record->points[p].spec);
        for (int i = 0; i < set->count; i++) {
            struct output *o = &set->outputs[i];
            if (o->reporter->measured_order && !o->on_screen)
                DDP_TRY(print_piece(o, record, PIECE_POINT, 0, p, kind != set->last_kind, err));
        }
        set->last_kind = kind;
    }
    return 0;
}

/* Prints the points that the record holds when the outputs are opened. */
static int print_first_points(struct ddp_report_set *set, const struct ddp_record *record,
                              struct ddp_err *err)
{
    struct measured *list;
    DDP_TRY(list_measured(record, &list, err));
    int rc = print_measured(set, record, list, err);
    free(list);
    return rc != 0 ? rc : print_points(set, record, ddp_record_settled(record), err);
}

/* Prints the epochs and the points that the record holds. */
static int print_contents(struct ddp_report_set *set, const struct ddp_record *record,
                          struct ddp_err *err)
{
    for (int run = 0; run < record->train_count; run++)
        for (int i = 0; i < record->train[run].epoch_count; i++)
            DDP_TRY(print_to_all(set, record, PIECE_EPOCH, run, i, err));
    return print_first_points(set, record, err);
}

int ddp_report_begin(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    set->begun = true;
    for (int i = 0; i < set->count; i++) {
        DDP_TRY(ddp_sink_open(&set->outputs[i].sink, err));
        look_at_terminal(set, &set->outputs[i]);
    }
    DDP_TRY(update_documents(set, record, false, err));
    DDP_TRY(print_to_all(set, record, PIECE_BEGIN, 0, 0, err));
    return print_contents(set, record, err);
}

/* Prints a whole record to the streams. `first` says whether it is the first record. */
static int print_record(struct ddp_report_set *set, const struct ddp_record *record, bool first,
                        struct ddp_err *err)
{
    set->printed = 0;
    set->last_kind = -1;
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        ddp_terminal_table_release(&o->screen_table);
        ddp_terminal_table_init(&o->screen_table, set->table.legend);
        if (!o->reporter->document && (first || !o->reporter->one_head))
            DDP_TRY(print_piece(o, record, PIECE_BEGIN, 0, 0, false, err));
    }
    DDP_TRY(print_contents(set, record, err));
    DDP_TRY(print_points(set, record, record->point_count, err));
    return print_to_all(set, record, PIECE_END, 0, 0, err);
}

/* Writes the name of a record above its table. */
static int print_name(struct ddp_report_set *set, const char *name, bool first, struct ddp_err *err)
{
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        if (!o->reporter->measured_order)
            continue;
        ddp_strbuf_addf(&text, "%s" DDP_BOLD "# ", first ? "" : "\n");
        ddp_table_text(&text, name);
        ddp_strbuf_add(&text, DDP_PLAIN "\n");
        DDP_TRY(flush_text(o, &text, false, err));
    }
    return 0;
}

/* Writes the plots below a table if the user asked for plots. */
static int print_plots(const struct ddp_report_set *set, struct output *o,
                       const struct ddp_plot_source *sources, int count, struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    struct ddp_terminal now;
    if (!o->reporter->measured_order || set->table.plot == 0)
        return 0;
    ddp_terminal_read(o->sink.fd, &now);
    const struct ddp_plot_look look = {.columns = now.columns > 0 ? now.columns : DDP_PLOT_COLUMNS,
                                       .rows = now.rows > 0 ? now.rows : DDP_PLOT_ROWS,
                                       .utf8 = ddp_terminal_utf8()};
    const int rc = ddp_plot_text_over_size(
        sources, count, (enum ddp_plot_metric)(set->table.plot - 1), &look, &text, err);
    if (rc != 0) {
        ddp_strbuf_release(&text);
        return rc;
    }
    if (text.length == 0)
        ddp_terminal_line(&text, look.columns, DDP_YELLOW,
                          "no plot: '%s' was not measured for several sizes of one collective",
                          ddp_plot_choices[set->table.plot]);
    return flush_text(o, &text, false, err);
}

/* Writes the documents of all records, one after the other. */
static int write_documents(struct output *o, const struct ddp_plot_source *sources, int count,
                           struct ddp_err *err)
{
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    for (int r = 0; r < count; r++) {
        const int rc = o->reporter->render(sources[r].record, &text, err);
        if (rc != 0) {
            ddp_strbuf_release(&text);
            return rc;
        }
    }
    return flush_text(o, &text, true, err);
}

int ddp_report_show(struct ddp_report_set *set, const struct ddp_plot_source *sources, int count,
                    struct ddp_err *err)
{
    set->begun = true;
    for (int i = 0; i < set->count; i++) {
        struct output *o = &set->outputs[i];
        DDP_TRY(ddp_sink_open(&o->sink, err));
        look_at_terminal(set, o);
        if (o->reporter->document)
            DDP_TRY(write_documents(o, sources, count, err));
    }
    for (int r = 0; r < count; r++) {
        if (count > 1)
            DDP_TRY(print_name(set, sources[r].name, r == 0, err));
        DDP_TRY(print_record(set, sources[r].record, r == 0, err));
    }
    for (int i = 0; i < set->count; i++) {
        DDP_TRY(print_plots(set, &set->outputs[i], sources, count, err));
        DDP_TRY(ddp_sink_finish(&set->outputs[i].sink, err));
    }
    return 0;
}

int ddp_report_point(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    DDP_TRY(update_documents(set, record, false, err));
    DDP_TRY(print_point(set, record, record->newest, true, err));
    return print_points(set, record, ddp_record_settled(record), err);
}

int ddp_report_epoch(struct ddp_report_set *set, const struct ddp_record *record,
                     struct ddp_err *err)
{
    const int run = record->train_count - 1;
    DDP_TRY(update_documents(set, record, false, err));
    set->last_kind = -1; /* the next point begins a table */
    return print_to_all(set, record, PIECE_EPOCH, run, record->train[run].epoch_count - 1, err);
}

void ddp_report_pause(struct ddp_report_set *set)
{
    struct ddp_err ignored = DDP_ERR_INIT;
    for (int i = 0; i < set->count && set->begun; i++)
        if (set->outputs[i].on_screen && !set->outputs[i].sink.broken &&
            print_piece(&set->outputs[i], NULL, PIECE_PAUSE, 0, 0, false, &ignored) != 0)
            return;
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
        const struct ddp_plot_source source = {.name = "", .record = record};
        int rc = o->reporter->document ? 0 : print_piece(o, record, PIECE_END, 0, 0, false, err);
        if (rc == 0)
            rc = print_plots(set, o, &source, 1, err);
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
    for (int i = 0; i < set->count; i++) {
        ddp_terminal_table_release(&set->outputs[i].screen_table);
        ddp_sink_release(&set->outputs[i].sink);
    }
    free(set->outputs);
    free(set);
}
