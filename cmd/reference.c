/* The reference of the whole program, which `ddpbench help --man` and `ddpbench help --markdown`
 * print. Both formats get their commands and options from the same tables. Only the manual page has
 * sections such as SYNOPSIS. Only the Markdown page has the keys of JSON documents, which come from
 * the schema that is embedded in the program. */
#include <ctype.h>
#include <string.h>

#include "base/conf.h"
#include "base/mem.h"
#include "plain.h"
#include "record/provenance.h"

/* ci/build.mk names the schema as a dependency, because the compiler does not see that this file
 * includes it. */
__asm__(".pushsection .rodata\n"
        ".global ddp_schema_text\n"
        "ddp_schema_text:\n"
        ".incbin \"results/schema/ddpbench-1.schema.json\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char ddp_schema_text[];

enum { WIDTH = 100 }; /* Line length of the Markdown reference. */

/* The name of an option, variable, exit code or key. */
struct term {
    const char *letter; /* "-b" or "" */
    const char *name;
    const char *value; /* placeholder, or "" */
};

struct format {
    void (*heading)(FILE *out, int level, const char *text); /* level 1 or 2 */
    void (*lead)(FILE *out, const char *text);               /* a paragraph below a heading */
    void (*paragraph)(FILE *out, const char *text);
    void (*lines)(FILE *out, const char *text);   /* text that is not wrapped */
    void (*details)(FILE *out, const char *text); /* the details of a command */
    void (*entry)(FILE *out, const struct term *term, const char *text);
    void (*list_end)(FILE *out); /* after the last of several entries */
};

/* Functions of the format `man` (manual page) follow. */

/* Prints n bytes of a line, with roff's special characters escaped. */
static void man_escaped(FILE *out, const char *text, size_t n)
{
    static const struct {
        char plain;
        const char *roff;
    } table[] = {{'\\', "\\e"}, {'-', "\\-"}, {'`', "\\(ga"}, {'~', "\\(ti"}, {'^', "\\(ha"}};
    if (n > 0 && (text[0] == '.' || text[0] == '\''))
        fputs("\\&", out);
    for (size_t i = 0; i < n; i++) {
        size_t t = 0;
        while (t < DDP_COUNT_OF(table) && table[t].plain != text[i])
            t++;
        if (t < DDP_COUNT_OF(table))
            fputs(table[t].roff, out);
        else
            fputc(text[i], out);
    }
}

static void man_styled(FILE *out, const char *font, const char *text)
{
    fprintf(out, "\\f%s", font);
    man_escaped(out, text, strlen(text));
    fputs("\\fR", out);
}

static void man_heading(FILE *out, int level, const char *text)
{
    fputs(level == 1 ? ".SH " : ".SS ", out);
    for (; *text; text++)
        if (level == 1)
            fputc(toupper((unsigned char)*text), out);
        else
            man_escaped(out, text, 1);
    fputc('\n', out);
}

/* Prints text in short lines, because escaping makes them longer. */
static void man_text(FILE *out, const char *text)
{
    struct ddp_strbuf wrapped = DDP_STRBUF_INIT;
    ddp_strbuf_wrap_line(&wrapped, text, 0, 58, 0);
    for (const char *line = wrapped.failed ? "" : wrapped.text; *line;) {
        size_t n = strcspn(line, "\n");
        man_escaped(out, line, n);
        fputc('\n', out);
        line += n + (line[n] == '\n');
    }
    ddp_strbuf_release(&wrapped);
}

static void man_paragraph(FILE *out, const char *text)
{
    fputs(".PP\n", out);
    man_text(out, text);
}

static void man_lines(FILE *out, const char *text)
{
    fputs(".nf\n", out);
    while (*text) {
        size_t n = strcspn(text, "\n");
        if (n == 0)
            fputs(".sp", out);
        man_escaped(out, text, n);
        fputc('\n', out);
        text += n + (text[n] == '\n');
    }
    fputs(".fi\n", out);
}

static void man_details(FILE *out, const char *text)
{
    fputs(".PP\n", out);
    man_lines(out, text);
}

static void man_entry(FILE *out, const struct term *term, const char *text)
{
    fputs(".TP\n", out);
    if (term->letter[0]) {
        man_styled(out, "B", term->letter);
        fputs(", ", out);
    }
    man_styled(out, "B", term->name);
    if (term->value[0]) {
        fputc(' ', out);
        man_styled(out, "I", term->value);
    }
    fputc('\n', out);
    man_text(out, text);
}

static void man_list_end(FILE *out)
{
    (void)out;
}

static const struct format man = {.heading = man_heading,
                                  .lead = man_text,
                                  .paragraph = man_paragraph,
                                  .lines = man_lines,
                                  .details = man_details,
                                  .entry = man_entry,
                                  .list_end = man_list_end};

/* Appends text with Markdown's special characters escaped, except in code spans. */
static void md_escape(struct ddp_strbuf *out, const char *text)
{
    bool code = false;
    for (; *text; text++) {
        code ^= *text == '`';
        if (!code && strchr("*<", *text))
            ddp_strbuf_add(out, "\\");
        ddp_strbuf_add_n(out, text, 1);
    }
}

/* Prints escaped text behind a prefix. Further lines are indented. */
static void md_wrapped(FILE *out, const char *prefix, int indent, const char *text)
{
    struct ddp_strbuf escaped = DDP_STRBUF_INIT, wrapped = DDP_STRBUF_INIT;
    ddp_strbuf_add(&escaped, prefix);
    md_escape(&escaped, text);
    if (escaped.text && !escaped.failed)
        ddp_strbuf_wrap_line(&wrapped, escaped.text, 0, WIDTH, indent);
    if (wrapped.text && !wrapped.failed)
        fputs(wrapped.text, out);
    ddp_strbuf_release(&escaped);
    ddp_strbuf_release(&wrapped);
}

static void md_heading(FILE *out, int level, const char *text)
{
    fprintf(out, "%s %s\n\n", level == 1 ? "##" : "###", text);
}

static void md_paragraph(FILE *out, const char *text)
{
    md_wrapped(out, "", 0, text);
    fputc('\n', out);
}

static void md_lines(FILE *out, const char *text)
{
    const size_t n = strlen(text);
    fprintf(out, "```text\n%s%s```\n\n", text, n > 0 && text[n - 1] == '\n' ? "" : "\n");
}

/* Prints the details of a command. Lines that begin with two spaces are not changed. Other lines
 * form paragraphs. A paragraph ends at an empty line, or before a line that begins with two spaces.
 */
static void md_details(FILE *out, const char *text)
{
    while (*text) {
        struct ddp_strbuf part = DDP_STRBUF_INIT;
        const bool verbatim = strncmp(text, "  ", 2) == 0;
        text += *text == '\n';
        while (*text && *text != '\n' && (strncmp(text, "  ", 2) == 0) == verbatim) {
            const size_t n = strcspn(text, "\n");
            ddp_strbuf_add(&part, part.length == 0 ? "" : verbatim ? "\n" : " ");
            ddp_strbuf_add_n(&part, text, n);
            text += n + (text[n] == '\n');
        }
        if (part.text && !part.failed && part.length > 0)
            (verbatim ? md_lines : md_paragraph)(out, part.text);
        ddp_strbuf_release(&part);
    }
}

static void md_entry(FILE *out, const struct term *term, const char *text)
{
    struct ddp_strbuf head = DDP_STRBUF_INIT;
    ddp_strbuf_add(&head, "- ");
    if (term->letter[0])
        ddp_strbuf_addf(&head, "`%s`, ", term->letter);
    ddp_strbuf_addf(&head, "`%s%s%s`: ", term->name, term->value[0] ? " " : "", term->value);
    if (head.text && !head.failed)
        md_wrapped(out, head.text, 2, text);
    ddp_strbuf_release(&head);
}

static void md_list_end(FILE *out)
{
    fputc('\n', out);
}

static const struct format markdown = {.heading = md_heading,
                                       .lead = md_paragraph,
                                       .paragraph = md_paragraph,
                                       .lines = md_lines,
                                       .details = md_details,
                                       .entry = md_entry,
                                       .list_end = md_list_end};

static bool same_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Returns the first command that has the same row, or `cmd` if no earlier command has it. */
static const struct ddp_cmd *owner_of(const struct ddp_cmd *cmd, const struct ddp_opt *row)
{
    struct ddp_opt other;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c != cmd; c++)
        if (ddp_opt_find((*c)->rows, row->name, &other) && same_text(other.help, row->help) &&
            same_text(other.initial, row->initial) && same_text(other.value, row->value))
            return *c;
    return cmd;
}

static void put_option(const struct format *f, FILE *out, const struct ddp_opt *row)
{
    char letter[3] = "", name[80];
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    if (row->short_name)
        snprintf(letter, sizeof letter, "-%c", row->short_name);
    snprintf(name, sizeof name, "--%s", row->name);
    ddp_opt_describe(row, &text);
    f->entry(out, &(struct term){letter, name, row->value ? row->value : ""},
             text.text && !text.failed ? text.text : row->help);
    ddp_strbuf_release(&text);
}

/* Prints the names of the options that are described under an earlier command. */
static void put_shared(const struct format *f, FILE *out, const struct ddp_cmd *cmd)
{
    struct ddp_opt row;
    for (const struct ddp_cmd *const *c = ddp_commands(); *c != cmd; c++) {
        struct ddp_strbuf text = DDP_STRBUF_INIT;
        for (int i = 0; ddp_opt_get(cmd->rows, i, &row); i++) {
            if (owner_of(cmd, &row) != *c)
                continue;
            if (text.length == 0)
                ddp_strbuf_addf(&text, "Options described under %s: ", (*c)->name);
            else
                ddp_strbuf_add(&text, ", ");
            ddp_strbuf_addf(&text, "--%s", row.name);
        }
        ddp_strbuf_add(&text, text.length > 0 ? "." : "");
        if (text.length > 0 && !text.failed)
            f->paragraph(out, text.text);
        ddp_strbuf_release(&text);
    }
}

/* Prints the head of a command's section: name, usage, summary and aliases. */
static void put_command_head(const struct format *f, FILE *out, const struct ddp_cmd *cmd)
{
    struct ddp_strbuf usage = DDP_STRBUF_INIT, text = DDP_STRBUF_INIT;
    f->heading(out, 2, cmd->name);
    ddp_strbuf_addf(&usage, "ddpbench %s [OPTION...]%s%s\n", cmd->name, cmd->operands[0] ? " " : "",
                    cmd->operands);
    if (usage.text && !usage.failed)
        f->lines(out, usage.text);
    ddp_strbuf_addf(&text, "%c%s.", toupper((unsigned char)cmd->summary[0]), cmd->summary + 1);
    for (const char *const *a = cmd->aliases; a && *a; a++)
        ddp_strbuf_addf(&text, "%s%s", a == cmd->aliases ? " Other names: " : ", ", *a);
    ddp_strbuf_add(&text, cmd->aliases ? "." : "");
    if (text.text && !text.failed)
        f->paragraph(out, text.text);
    ddp_strbuf_release(&usage);
    ddp_strbuf_release(&text);
}

static void put_command(const struct format *f, FILE *out, const struct ddp_cmd *cmd)
{
    struct ddp_opt row;
    bool own = false;
    put_command_head(f, out, cmd);
    for (int i = 0; ddp_opt_get(cmd->rows, i, &row); i++) {
        if (owner_of(cmd, &row) == cmd) {
            put_option(f, out, &row);
            own = true;
        }
    }
    if (own)
        f->list_end(out);
    put_shared(f, out, cmd);
    if (cmd->details)
        f->details(out, cmd->details);
    if (cmd->examples) {
        f->paragraph(out, "Examples:");
        f->lines(out, cmd->examples);
    }
}

/* Prints text as paragraphs. In the text, empty lines separate the paragraphs. */
static void put_section(const struct format *f, FILE *out, const char *text)
{
    for (bool first = true; *text; first = false) {
        struct ddp_strbuf part = DDP_STRBUF_INIT;
        for (size_t n; (n = strcspn(text, "\n")) > 0; text += n + (text[n] == '\n')) {
            ddp_strbuf_add(&part, part.length == 0 ? "" : " ");
            ddp_strbuf_add_n(&part, text, n);
        }
        text += *text == '\n';
        if (part.text && !part.failed)
            (first ? f->lead : f->paragraph)(out, part.text);
        ddp_strbuf_release(&part);
    }
}

static void put_variables(const struct format *f, FILE *out)
{
    f->lead(out, "Any other variable that begins with DDPBENCH_ is an error.");
    for (int i = 0; i < DDP_CONF_COUNT; i++)
        f->entry(out, &(struct term){"", ddp_conf_rows()[i].variable, ""}, ddp_conf_rows()[i].help);
    f->entry(out, &(struct term){"", "NO_COLOR", ""}, "no colours on a terminal");
    f->list_end(out);
}

static void put_exit_codes(const struct format *f, FILE *out)
{
    for (const struct ddp_exit_row *r = ddp_exit_rows(); r->meaning; r++) {
        char code[16];
        snprintf(code, sizeof code, "%d", r->code);
        f->entry(out, &(struct term){"", code, ""}, r->meaning);
    }
    f->entry(out, &(struct term){"", "128+n", ""}, "ended by signal n");
    f->list_end(out);
    f->paragraph(out, ddp_exit_text);
}

static void put_body(const struct format *f, FILE *out)
{
    f->heading(out, 1, "Commands");
    for (const struct ddp_cmd *const *c = ddp_commands(); *c; c++)
        put_command(f, out, *c);
    f->heading(out, 1, "Sizes and units");
    put_section(f, out, ddp_units_text);
    f->heading(out, 1, "Environment");
    put_variables(f, out);
    f->heading(out, 1, "Exit status");
    put_exit_codes(f, out);
}

void ddp_reference_man(FILE *out)
{
    /* The date stays empty, so that one build always prints the same page. */
    fprintf(out,
            ".TH DDPBENCH 1 \"\" \"ddpbench %s\" \"User Commands\"\n"
            ".SH NAME\n"
            "ddpbench \\- measure the gradient exchange of data\\-parallel training\n"
            ".SH SYNOPSIS\n"
            ".B ddpbench\n"
            ".I COMMAND\n"
            "[\\fIOPTION\\fR...]\n"
            ".br\n"
            ".B mpiexec \\-n\n"
            ".I N\n"
            ".B ddpbench\n"
            ".I COMMAND\n"
            "[\\fIOPTION\\fR...]\n"
            ".SH DESCRIPTION\n",
            ddp_build_info()->version);
    man_text(out, "Measures how fast gradients are exchanged between the ranks of this machine or "
                  "cluster, and trains real networks data-parallel with the same engine. Results "
                  "are verified, medians have intervals, and waits have deadlines. "
                  "Without a launcher such as mpiexec, ddpbench starts its own ranks.");
    man_paragraph(out, "Data goes to stdout, everything else to stderr. Options cannot be "
                       "abbreviated; --name value and --name=value are the same, as are -n 5 and "
                       "-n5.");
    put_body(&man, out);
    man_heading(out, 1, "Files");
    man_entry(out,
              &(struct term){"",
                             DDP_MPI_MODULE(DDP_MPI_OPENMPI) ", " DDP_MPI_MODULE(
                                 DDP_MPI_MPICH) ", " DDP_UCX_MODULE_NAME ", " DDP_CUDA_MODULE_NAME,
                             ""},
              "each connects the program to one library; beside the binary or in "
              "../lib/ddpbench");
    fputs(".SH SEE ALSO\n.BR mpiexec (1)\n", out);
}

/* The state of a walk through the JSON schema. The keys of a definition are printed where the
 * definition is first used. */
struct walk {
    const cJSON *schema;
    struct {
        const cJSON *definition;
        char path[160];
    } seen[32];
    int seen_count;
    FILE *out;
};

static const cJSON *member(const cJSON *node, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(node, name);
}

/* Returns the first child of an array or object, or NULL. */
static const cJSON *child_of(const cJSON *node)
{
    return node ? node->child : NULL;
}

/* Returns the definition that a node refers to, or NULL. */
static const cJSON *definition_of(const struct walk *w, const cJSON *node)
{
    static const char prefix[] = "#/$defs/";
    const cJSON *ref = member(node, "$ref");
    if (!cJSON_IsString(ref) || strncmp(ref->valuestring, prefix, sizeof prefix - 1) != 0)
        return NULL;
    return member(member(w->schema, "$defs"), ref->valuestring + sizeof prefix - 1);
}

static void add_separated(struct ddp_strbuf *out, const char *separator, const char *text)
{
    ddp_strbuf_addf(out, "%s%s", out->length > 0 ? separator : "", text);
}

static void add_value(struct ddp_strbuf *out, const cJSON *value)
{
    char text[80];
    snprintf(text, sizeof text, "\"%s\"", cJSON_IsString(value) ? value->valuestring : "");
    if (cJSON_IsString(value) || cJSON_IsNull(value))
        add_separated(out, " or ", cJSON_IsNull(value) ? "null" : text);
}

/* Appends the JSON types, or else the values, that a node allows. */
static void add_type(const struct walk *w, const cJSON *node, struct ddp_strbuf *out)
{
    const cJSON *type = member(node, "type"), *values = member(node, "enum");
    const cJSON *any = member(node, "anyOf"), *definition = definition_of(w, node);
    if (definition)
        add_type(w, definition, out);
    for (const cJSON *each = child_of(any); each; each = each->next)
        add_type(w, each, out);
    if (cJSON_IsString(type))
        add_separated(out, " or ", type->valuestring);
    else if (type)
        for (const cJSON *each = child_of(type); each; each = each->next)
            add_separated(out, " or ", each->valuestring);
    else if (values)
        for (const cJSON *each = child_of(values); each; each = each->next)
            add_value(out, each);
    else
        add_value(out, member(node, "const"));
}

/* Returns the path at which the keys of a definition are described, or NULL. */
static const char *seen_path(const struct walk *w, const cJSON *definition)
{
    for (int i = 0; definition && i < w->seen_count; i++)
        if (w->seen[i].definition == definition)
            return w->seen[i].path;
    return NULL;
}

static void put_properties(struct walk *w, const cJSON *node, const char *path);

/* Prints the keys below a node, unless they are already described. */
static void put_below(struct walk *w, const cJSON *node, const char *path)
{
    const cJSON *definition = definition_of(w, node), *any = member(node, "anyOf");
    char items[160];
    if (seen_path(w, definition))
        return;
    if (definition && w->seen_count < (int)DDP_COUNT_OF(w->seen)) {
        w->seen[w->seen_count].definition = definition;
        snprintf(w->seen[w->seen_count++].path, sizeof w->seen[0].path, "%s", path);
        put_below(w, definition, path);
    }
    put_properties(w, node, path);
    snprintf(items, sizeof items, "%.150s[]", path);
    if (member(node, "items"))
        put_below(w, member(node, "items"), items);
    for (const cJSON *each = child_of(any); each; each = each->next)
        put_below(w, each, path);
}

static void put_key(struct walk *w, const cJSON *node, const char *path)
{
    const cJSON *definition = definition_of(w, node);
    const cJSON *description = member(node, "description");
    const char *same = seen_path(w, definition);
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    add_type(w, node, &text);
    if (text.text && strncmp(text.text, "null or ", 8) == 0) {
        /* "null or object" becomes "object or null". */
        memmove(text.text, text.text + 8, text.length - 8);
        memcpy(text.text + text.length - 8, " or null", 8);
    }
    /* A description beside a reference says more than the description in the definition. */
    if (!description)
        description = member(definition, "description");
    add_separated(&text, ". ", cJSON_IsString(description) ? description->valuestring : "");
    if (same)
        ddp_strbuf_addf(&text, " The keys are those of `%s`.", same);
    if (text.text && !text.failed)
        md_entry(w->out, &(struct term){"", path, ""}, text.text);
    ddp_strbuf_release(&text);
}

/* Prints each property of a node, and the keys below it. */
static void put_properties(struct walk *w, const cJSON *node, const char *path)
{
    const cJSON *properties = member(node, "properties");
    char key[160];
    for (const cJSON *property = child_of(properties); property; property = property->next) {
        snprintf(key, sizeof key, "%.100s%s%.50s", path, path[0] ? "." : "", property->string);
        put_key(w, property, key);
        put_below(w, property, key);
    }
}

static int put_schema(FILE *out, struct ddp_err *err)
{
    cJSON *schema;
    DDP_TRY(ddp_json_parse(ddp_schema_text, strlen(ddp_schema_text), "schema", &schema, err));
    struct walk w = {.schema = schema, .out = out};
    md_heading(out, 1, "JSON keys");
    md_paragraph(out, member(schema, "description")->valuestring);
    md_paragraph(out, "`a.b` is the key `b` of the object `a`, and `a[].b` that of each object in "
                      "the array `a`.");
    put_properties(&w, schema, "");
    cJSON_Delete(schema);
    return 0;
}

int ddp_reference_markdown(FILE *out, struct ddp_err *err)
{
    fputs(
        "# Reference of ddpbench\n\n"
        "`ddpbench help --markdown` prints this page, and `make reference` writes it. Do not edit "
        "it.\n\n",
        out);
    put_body(&markdown, out);
    return put_schema(out, err);
}
