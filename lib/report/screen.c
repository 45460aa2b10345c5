#include "report/screen.h"

#include <string.h>

#include "base/mem.h"

/* Returns the number of columns of a line without its escape codes, which end in 'm'. */
static int line_columns(const char *line, size_t bytes)
{
    int columns = 0;
    for (size_t i = 0; i < bytes;) {
        size_t n = strcspn(line + i, "\033");
        n = DDP_MIN(n, bytes - i);
        columns += ddp_text_columns(line + i, n);
        i += n;
        if (i < bytes)
            i += strcspn(line + i, "m") + 1;
    }
    return columns;
}

/* Returns the length of the line at the start of a text, with its newline. */
static size_t line_bytes(const char *text, size_t bytes)
{
    const char *end = memchr(text, '\n', bytes);
    return end ? (size_t)(end - text) + 1 : bytes;
}

int ddp_screen_rows(const char *text, size_t bytes, int columns)
{
    int rows = 0;
    while (bytes > 0) {
        const size_t n = line_bytes(text, bytes);
        const int line = line_columns(text, n - (text[n - 1] == '\n'));
        rows += line <= columns ? 1 : (line + columns - 1) / columns;
        text += n;
        bytes -= n;
    }
    return rows;
}

/* Returns the length of the longest line. */
static int longest_line(const char *text, size_t bytes)
{
    int longest = 0;
    while (bytes > 0) {
        const size_t n = line_bytes(text, bytes);
        longest = DDP_MAX(longest, line_columns(text, n - (text[n - 1] == '\n')));
        text += n;
        bytes -= n;
    }
    return longest;
}

/* Returns the number of bytes in the whole lines that both texts begin with. */
static size_t common_lines(const struct ddp_strbuf *a, const struct ddp_strbuf *b)
{
    size_t same = 0;
    while (same < a->length && same < b->length) {
        const size_t n = line_bytes(a->text + same, a->length - same);
        if (n > b->length - same || memcmp(a->text + same, b->text + same, n) != 0)
            break;
        same += n;
    }
    return same;
}

void ddp_screen_draw(struct ddp_screen *screen, const struct ddp_terminal *terminal,
                     const char *finished, const char *open, struct ddp_strbuf *out)
{
    struct ddp_strbuf *shown = &screen->shown, text = DDP_STRBUF_INIT;
    ddp_strbuf_add(&text, finished ? finished : "");
    ddp_strbuf_add(&text, open ? open : "");
    ddp_strbuf_add(shown, "");
    if (text.failed || shown->failed) {
        ddp_strbuf_release(&text);
        out->failed = true;
        return;
    }
    const bool broken = terminal->columns < screen->columns && shown->length > 0 &&
                        longest_line(shown->text, shown->length) > terminal->columns;
    if (broken || ddp_screen_rows(shown->text, shown->length, terminal->columns) >= terminal->rows)
        shown->length = 0;
    const size_t same = common_lines(shown, &text);
    const int up = ddp_screen_rows(shown->text + same, shown->length - same, terminal->columns);
    if (up > 0)
        ddp_strbuf_addf(out, "\033[%dA\r\033[J", up);
    ddp_strbuf_add_n(out, text.text + same, text.length - same);
    ddp_strbuf_release(&text);
    ddp_strbuf_release(shown);
    ddp_strbuf_add(shown, open ? open : "");
    screen->columns = terminal->columns;
}

void ddp_screen_release(struct ddp_screen *screen)
{
    ddp_strbuf_release(&screen->shown);
}
