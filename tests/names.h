/* What a test may check of a message: the subjects that it names (an option, a file, a rank, a
 * value), never the sentence around them, so that a message can be reworded. */
#ifndef TESTS_NAMES_H
#define TESTS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Does the text contain every one of the subjects, which '|' separates, in any order? */
static inline bool text_names(const char *text, const char *subjects)
{
    while (*subjects != '\0') {
        const size_t n = strcspn(subjects, "|");
        if (n > 0 && memmem(text, strlen(text), subjects, n) == NULL)
            return false;
        subjects += n + (subjects[n] == '|');
    }
    return true;
}

#endif
