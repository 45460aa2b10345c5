/* Lines of a journal. Private to journal*.c and their test. */
#ifndef DDP_RECORD_JOURNAL_LINE_H
#define DDP_RECORD_JOURNAL_LINE_H

#include <stdint.h>

#include "base/strbuf.h"
#include "record/journal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* *chain: the check of the line before, DDP_FNV_INIT before the head; becomes this line's. */

/* Appends the head, or an entry, with its newline. DDP_ENOMEM. */
int ddp_journal_print_head(const struct ddp_journal_facts *facts, uint64_t *chain,
                           struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_journal_print(const struct ddp_journal_entry *entry, uint64_t *chain,
                      struct ddp_strbuf *out, struct ddp_err *err) DDP_MUST_CHECK;

/* line[bytes], to be read without its newline. where: "'FILE', line 7", for messages. */
struct ddp_journal_line {
    const char *text;
    size_t bytes;
    const char *where;
};
/* *payload: what entry->payload points to, free(); NULL when there is none. DDP_EINPUT,
 * DDP_ENOMEM. */
int ddp_journal_read_head(const struct ddp_journal_line *line, uint64_t *chain,
                          struct ddp_journal_facts *facts, struct ddp_err *err) DDP_MUST_CHECK;
int ddp_journal_read(const struct ddp_journal_line *line, uint64_t *chain,
                     struct ddp_journal_entry *entry, void **payload,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* Is payload[bytes] what the kind says, and may it be used? NULL, or what is wrong with it. Texts
 * in it are made printable. journal_check.c */
const char *ddp_journal_check_payload(enum ddp_journal_kind kind, void *payload, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
