/* The journal of a sweep, or of the gate's self-test: each point, epoch, end or gate, on disk the
 * moment it was measured, so that a run that is cut off anywhere can be continued.
 *
 * Text, only appended to, one JSON object a line, whose last key "check" is the FNV-1a 64 of the
 * bytes of the line before it (from '{' up to the comma), begun with the check of the line above:
 * a line that is missing, or there twice, is noticed. The first line is the head: facts that
 * must be equal for the journal to be continued. The others say launch, cell and id for people, and
 * carry a struct of record.h as its bytes (base64): they belong to the build that wrote them, which
 * is one of the facts. A last line without a newline was cut off while it was written: dropped. Any
 * other line that is not as it was written is an error that names it.
 *
 * Bytes read are not trusted: words, flags, counts and texts are checked before anybody sees them.
 * What this does not do: know what cells are, decide what is done, print. */
#ifndef DDP_RECORD_JOURNAL_H
#define DDP_RECORD_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "record/record.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DDP_JOURNAL_MAX_BYTES  ((size_t)1 << 30)
#define DDP_JOURNAL_LAUNCH_MAX 1000
#define DDP_JOURNAL_CELL_MAX   100000

/* begin, end: of a cell; left_out: it could not be run, id says why. */
enum ddp_journal_kind {
    DDP_JOURNAL_BEGIN,
    DDP_JOURNAL_POINT,     /* struct ddp_point, then its sample_count doubles */
    DDP_JOURNAL_TRAIN,     /* struct ddp_train_run, its start */
    DDP_JOURNAL_EPOCH,     /* struct ddp_epoch */
    DDP_JOURNAL_TRAIN_END, /* struct ddp_train_run */
    DDP_JOURNAL_CONTROL,   /* struct ddp_control */
    DDP_JOURNAL_GATE,      /* of a self-test: struct ddp_noise_gate and what follows it */
    DDP_JOURNAL_END,
    DDP_JOURNAL_KIND_COUNT
};

/* One line. launch: from 1; cell: from 0. id: printable, for people and as a key. payload: aligned
 * for the struct, borrowed; NULL and 0 for begin and end. */
struct ddp_journal_entry {
    enum ddp_journal_kind kind;
    int launch, cell;
    char id[192];
    const void *payload;
    size_t payload_bytes;
};

/* Facts of the head, in order. */
#define DDP_JOURNAL_FACTS_MAX 24
struct ddp_journal_facts {
    int count;
    struct {
        char key[24], value[488];
    } fact[DDP_JOURNAL_FACTS_MAX];
};
/* Adds "key": value, printable, cut when too long. */
void ddp_journal_fact(struct ddp_journal_facts *facts, const char *key, const char *fmt, ...)
    DDP_PRINTF(3, 4);

/* Called for each line but the head, in order; a code other than 0 ends the reading. */
typedef int (*ddp_journal_visit)(void *arg, const struct ddp_journal_entry *entry,
                                 struct ddp_err *err);

/* Reads text[bytes], which `name` stands for in messages. *whole: bytes up to the end of the last
 * whole line; 0: not even a head. facts: filled when there is a head. DDP_EINPUT. */
int ddp_journal_parse(const char *text, size_t bytes, const char *name,
                      struct ddp_journal_facts *facts, ddp_journal_visit visit, void *arg,
                      size_t *whole, struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_journal;
/* Opens the journal at `path`, made when there is none, and locks it against other runs. restart:
 * forgets what it says. *continued: it was begun by an earlier run, with the same facts, and visit
 * has seen its lines. DDP_EMISMATCH when a fact differs, saying which; DDP_EINPUT; DDP_ECREATE,
 * also when another run writes to it. */
int ddp_journal_open(const char *path, const struct ddp_journal_facts *facts, bool restart,
                     ddp_journal_visit visit, void *arg, struct ddp_journal **out, bool *continued,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a line and brings it to the disk; not for timed regions. A line that could not be written
 * whole is taken back. DDP_EIO. */
int ddp_journal_append(struct ddp_journal *journal, const struct ddp_journal_entry *entry,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Removes the file: what it says stands elsewhere now. DDP_EIO. */
int ddp_journal_remove(struct ddp_journal *journal, struct ddp_err *err) DDP_MUST_CHECK;
/* NULL is fine. The file stays. */
void ddp_journal_close(struct ddp_journal *journal);

#ifdef __cplusplus
}
#endif
#endif
