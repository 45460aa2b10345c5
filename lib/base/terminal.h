/* Facts about the terminal to which an output goes. All code that adapts its output to a terminal
 * uses these functions. */
#ifndef DDP_BASE_TERMINAL_H
#define DDP_BASE_TERMINAL_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_terminal {
    /* The size in characters. A plausible number in the environment variable COLUMNS replaces the
     * number of columns. If the terminal does not report its number of rows, `rows` is 24. */
    int columns, rows;
    bool moves; /* The terminal obeys escape codes: TERM is set, and it is not "dumb". */
    bool color; /* `moves` is true, and NO_COLOR is unset or empty. */
};

/* Reads the facts about the terminal of a descriptor. All members are 0 or false if the descriptor
 * is not a terminal, or if the terminal does not report its number of columns. */
void ddp_terminal_read(int fd, struct ddp_terminal *out);
/* Returns whether the locale of the environment has the character set UTF-8. */
bool ddp_terminal_utf8(void);

#ifdef __cplusplus
}
#endif
#endif
