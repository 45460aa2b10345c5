/* Checks the subjects that a message names (an option, a file, a rank, a value). Tests do not
 * check the sentence around them, so that messages can be reworded. */
#ifndef TESTS_NAMES_H
#define TESTS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Returns true if the text contains all subjects, which are separated by '|', in any order. */
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
