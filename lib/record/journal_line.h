/* Prints and parses the lines of a journal. Used by journal*.c and their test only. */
#ifndef DDP_RECORD_JOURNAL_LINE_H
#define DDP_RECORD_JOURNAL_LINE_H

#include <stdint.h>

#include "base/strbuf.h"
#include "record/journal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the following functions, *chain holds the check of the previous line (DDP_FNV_INIT before the
 * head) and receives the check of this line. */

/* Append the head or an entry to *out, with a newline. Return DDP_ENOMEM. */
int ddp_journal_print_head(const struct ddp_journal_facts *facts, uint64_t *chain,
                           struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_journal_print(const struct ddp_journal_entry *entry, uint64_t *chain,
                      struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;

/* A line to parse, without its newline. */
struct ddp_journal_line {
    const char *text;
    size_t bytes;
    const char *where; /* "'FILE', line 7", for messages. */
};
/* Parse the head or an entry. *payload: the memory to which entry->payload points, or NULL. The
 * caller passes *payload to free(). Return DDP_EINPUT or DDP_ENOMEM. */
int ddp_journal_read_head(const struct ddp_journal_line *line, uint64_t *chain,
                          struct ddp_journal_facts *facts, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_journal_read(const struct ddp_journal_line *line, uint64_t *chain,
                     struct ddp_journal_entry *entry, void **payload,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* In journal_check.c. Checks that payload[bytes] is a valid struct of this kind, and makes its
 * texts printable. Returns NULL, or a description of the problem. */
const char *ddp_journal_check_payload(enum ddp_journal_kind kind, void *payload, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
