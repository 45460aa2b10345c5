/* The journal of a sweep or of the gate's self-test. Each point, each epoch, each end of a cell and
 * each gate is written to disk immediately, so that an interrupted run can be continued.
 *
 * The journal is an append-only text file with one JSON object per line. The first line is the
 * head, which holds facts about the run. Only a run with equal facts may continue the journal. Each
 * other line begins with its line number, so a missing or duplicate line is detected. The line also
 * has a kind, a launch, a cell and an id. Most lines also have the members of a struct of record.h
 * or noise.h, as listed in the table of the struct (field.h). The last key of a line is "check".
 * Its value is the FNV-1a 64 hash of the line up to the comma before this key. A last line without
 * a newline was cut off while being written, and is dropped. Any other damaged line is an error
 * that names the line.
 *
 * The contents are untrusted, so every value is checked against the tables before the caller gets
 * it. The caller knows what the cells mean, and decides which cells are done. */
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

/* Kinds of lines, and the payload of each kind. BEGIN and END mark the beginning and the end of a
 * cell. */
enum ddp_journal_kind {
    DDP_JOURNAL_BEGIN,
    DDP_JOURNAL_POINT,     /* struct ddp_point and its sample_count doubles */
    DDP_JOURNAL_TRAIN,     /* struct ddp_train_run, before the run has results */
    DDP_JOURNAL_EPOCH,     /* struct ddp_epoch */
    DDP_JOURNAL_TRAIN_END, /* struct ddp_train_run */
    DDP_JOURNAL_CONTROL,   /* struct ddp_control */
    DDP_JOURNAL_LEFT_OUT,  /* struct ddp_left_out */
    DDP_JOURNAL_GATE,      /* Self-test: struct ddp_noise_gate, its doubles and ids */
    DDP_JOURNAL_END,
    DDP_JOURNAL_KIND_COUNT
};

/* One line of the journal. */
struct ddp_journal_entry {
    enum ddp_journal_kind kind;
    int launch, cell; /* launch: repetition, from 1. cell: from 0. */
    char id[192];     /* Printable text that identifies the entry. */
    /* The payload of this kind (see enum ddp_journal_kind), aligned and borrowed. NULL with 0 bytes
     * for BEGIN and END. */
    const void *payload;
    size_t payload_bytes;
};

/* The facts of the head, in order. */
#define DDP_JOURNAL_FACTS_MAX 24
struct ddp_journal_facts {
    int count;
    struct {
        char key[24], value[488];
    } fact[DDP_JOURNAL_FACTS_MAX];
};
/* Adds a fact. The value is made printable, and cut if it is too long. After DDP_JOURNAL_FACTS_MAX
 * facts, further facts are ignored. */
void ddp_journal_fact(struct ddp_journal_facts *facts, const char *key, const char *fmt, ...)
    DDP_PRINTF(3, 4);

/* Called for each line except the head, in order. A result other than 0 stops the reading. */
typedef int (*ddp_journal_visit)(void *arg, const struct ddp_journal_entry *entry,
                                 struct ddp_err *err);

/* Parses the first `bytes` bytes of `text`. name: the document's name in messages. Sets *whole to
 * the number of bytes up to the end of the last complete line, which is 0 if even the head is
 * incomplete. Fills *facts if the head is complete. Returns DDP_EINPUT if the text is not a valid
 * journal, or an error of `visit`. */
int ddp_journal_parse(const char *text, size_t bytes, const char *name,
                      struct ddp_journal_facts *facts, ddp_journal_visit visit, void *arg,
                      size_t *whole, struct ddp_err *err) DDP_MUST_CHECK;

struct ddp_journal;
/* Opens or creates the journal at `path` and locks it against other runs. `restart` discards the
 * old contents. *continued becomes true if an earlier run with the same facts began the journal. In
 * this case `visit` has been called for each line of that run except the head. Returns
 * DDP_EMISMATCH if a fact differs; the message names the fact. Returns DDP_EINPUT if the file is
 * damaged or not a journal. Returns DDP_ECREATE if the file cannot be opened or another run holds
 * the lock. Returns DDP_EIO, DDP_ENOMEM or an error of `visit` in other cases. */
int ddp_journal_open(const char *path, const struct ddp_journal_facts *facts, bool restart,
                     ddp_journal_visit visit, void *arg, struct ddp_journal **out, bool *continued,
                     struct ddp_err *err) DDP_MUST_CHECK;
/* Appends a line and syncs it to disk. Do not call this function in timed regions, because it is
 * slow. If the line could not be written completely, removes its remains and returns DDP_EIO.
 * Returns DDP_ENOMEM if there is no memory for the line. */
int ddp_journal_append(struct ddp_journal *journal, const struct ddp_journal_entry *entry,
                       struct ddp_err *err) DDP_MUST_CHECK;
/* Removes the file, whose contents the caller has stored elsewhere. Returns 0 or DDP_EIO. */
int ddp_journal_remove(struct ddp_journal *journal, struct ddp_err *err) DDP_MUST_CHECK;
/* Closes the journal; the file stays. journal may be NULL. */
void ddp_journal_close(struct ddp_journal *journal);

#ifdef __cplusplus
}
#endif
#endif
