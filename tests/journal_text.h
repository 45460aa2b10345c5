/* Edits the text of a journal, for tests that change a line and keep its check right. */
#ifndef DDP_TESTS_JOURNAL_TEXT_H
#define DDP_TESTS_JOURNAL_TEXT_H

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/rng.h"

#define JOURNAL_CHECK_BYTES (sizeof ", \"check\": \"fnv1a64:0123456789abcdef\"}" - 1)

/* Writes the right check into every complete line of text [size]. */
static inline void repair_journal(char *text, size_t size)
{
    char *end;
    for (size_t at = 0; (end = memchr(text + at, '\n', size - at)); at = (size_t)(end - text) + 1) {
        const size_t n = (size_t)(end - text) - at;
        char right[JOURNAL_CHECK_BYTES + 1];
        if (n < JOURNAL_CHECK_BYTES)
            continue;
        snprintf(right, sizeof right, ", \"check\": \"fnv1a64:%016llx\"}",
                 (unsigned long long)ddp_fnv1a(DDP_FNV_INIT, text + at, n - JOURNAL_CHECK_BYTES));
        memcpy(end - JOURNAL_CHECK_BYTES, right, JOURNAL_CHECK_BYTES);
    }
}

#endif
