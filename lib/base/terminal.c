#include "base/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define USUAL_ROWS    24
#define LEAST_COLUMNS 20
#define MOST_COLUMNS  10000

/* Returns the number in an environment variable, or 0 if it is not a plausible width. */
static int columns_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || text[0] < '0' || text[0] > '9')
        return 0;
    const long columns = strtol(text, &end, 10);
    return *end == '\0' && columns >= LEAST_COLUMNS && columns <= MOST_COLUMNS ? (int)columns : 0;
}

void ddp_terminal_read(int fd, struct ddp_terminal *out)
{
    struct winsize size;
    memset(out, 0, sizeof *out);
    /* Open MPI's mpiexec gives rank 0 a terminal without a size, even if the stdout of mpiexec is a
     * pipe. Therefore a terminal without a size does not count. */
    if (!isatty(fd) || ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return;
    const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");
    out->columns = columns_of("COLUMNS");
    if (out->columns == 0)
        out->columns = size.ws_col;
    out->rows = size.ws_row > 0 ? size.ws_row : USUAL_ROWS;
    out->moves = term && term[0] && strcmp(term, "dumb") != 0;
    out->color = out->moves && !(no_color && no_color[0]);
}

bool ddp_terminal_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *locale = getenv(names[i]);
        const char *set = locale ? strchr(locale, '.') : NULL;
        if (locale && locale[0]) /* The first non-empty variable decides. */
            return set && (strncasecmp(set, ".utf-8", 6) == 0 || strncasecmp(set, ".utf8", 5) == 0);
    }
    return false;
}
