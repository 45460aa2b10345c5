/* Opens, reads and appends to the file of a journal. journal_line.c handles single lines. */
#include "record/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/mem.h"
#include "record/journal_line.h"

/* Beginning of every journal, even of one whose first line was cut off. */
static const char beginning[] = "{\"journal\": \"ddpbench-journal/";

struct ddp_journal {
    char *path;
    int fd;
    /* Number of bytes in complete lines. After a failed append, the file is cut to this length. */
    off_t bytes;
    uint64_t chain; /* Check of the last line. */
    /* created: this process created the file. broken: a failed append could not be cut off. */
    bool created, broken;
};

void ddp_journal_fact(struct ddp_journal_facts *facts, const char *key, const char *fmt, ...)
{
    char value[sizeof facts->fact->value];
    va_list args;
    if (facts->count == DDP_JOURNAL_FACTS_MAX)
        return;
    va_start(args, fmt);
    vsnprintf(value, sizeof value, fmt, args);
    va_end(args);
    int i = facts->count++;
    ddp_printable(key, facts->fact[i].key, sizeof facts->fact[i].key);
    ddp_printable(value, facts->fact[i].value, sizeof facts->fact[i].value);
}

static int visit_line(const struct ddp_journal_line *line, uint64_t *chain, ddp_journal_visit visit,
                      void *arg, struct ddp_err *err)
{
    struct ddp_journal_entry entry;
    void *payload = NULL;
    DDP_TRY(ddp_journal_read(line, chain, &entry, &payload, err));
    int rc = visit(arg, &entry, err);
    free(payload);
    return rc;
}

/* Like ddp_journal_parse. *chain: check of the last complete line. */
static int parse(const char *text, size_t bytes, const char *name, struct ddp_journal_facts *facts,
                 ddp_journal_visit visit, void *arg, size_t *whole, uint64_t *chain,
                 struct ddp_err *err)
{
    const size_t begins = DDP_MIN(bytes, sizeof beginning - 1);
    size_t at = 0, lines = 0;
    *whole = 0;
    *chain = DDP_FNV_INIT;
    facts->count = 0;
    /* Check this even if no line is complete, because another kind of file must not be taken for
     * the start of a journal. */
    if (memcmp(text, beginning, begins) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a journal of ddpbench", name);
    for (const char *end; at < bytes && (end = memchr(text + at, '\n', bytes - at)); lines++) {
        char where[320];
        const size_t n = (size_t)(end - text) - at;
        snprintf(where, sizeof where, "'%.250s', line %zu", name, lines + 1);
        const struct ddp_journal_line line = {text + at, n, where};
        if (lines == 0)
            DDP_TRY(ddp_journal_read_head(&line, chain, facts, err));
        else
            DDP_TRY(visit_line(&line, chain, visit, arg, err));
        at += n + 1;
        *whole = at;
    }
    return 0;
}

int ddp_journal_parse(const char *text, size_t bytes, const char *name,
                      struct ddp_journal_facts *facts, ddp_journal_visit visit, void *arg,
                      size_t *whole, struct ddp_err *err)
{
    uint64_t chain;
    return parse(text, bytes, name, facts, visit, arg, whole, &chain, err);
}

static int cannot(struct ddp_journal *j, int code, const char *what, int error, struct ddp_err *err)
{
    return ddp_fail_errno(err, code, error, "cannot %s '%s'", what, j->path);
}

/* Appends text[n] and syncs it to disk. Cuts off the remains of a failed write. */
static int append(struct ddp_journal *j, const char *text, size_t n, struct ddp_err *err)
{
    if (j->broken)
        return ddp_fail(err, DDP_EIO, "an earlier write to '%s' failed", j->path);
    int error = ddp_write_all(j->fd, text, n);
    if (error == 0 && fdatasync(j->fd) != 0)
        error = errno;
    if (error == 0) {
        j->bytes += (off_t)n;
        return 0;
    }
    /* If the cut fails too, the next reader drops the incomplete line. */
    j->broken = ftruncate(j->fd, j->bytes) != 0 || lseek(j->fd, j->bytes, SEEK_SET) < 0;
    return cannot(j, DDP_EIO, "write", error, err);
}

int ddp_journal_append(struct ddp_journal *journal, const struct ddp_journal_entry *entry,
                       struct ddp_err *err)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    uint64_t chain = journal->chain;
    int rc = ddp_journal_print(entry, &chain, &line, err);
    if (rc == 0)
        rc = append(journal, line.text, line.length, err);
    if (rc == 0)
        journal->chain = chain;
    ddp_strbuf_release(&line);
    return rc;
}

/* True if the path still names the open file. Another run may have removed the file meanwhile. */
static bool is_named(const struct ddp_journal *j)
{
    struct stat ours, named;
    return fstat(j->fd, &ours) == 0 && stat(j->path, &named) == 0 && ours.st_dev == named.st_dev &&
           ours.st_ino == named.st_ino;
}

static int open_file(struct ddp_journal *j, struct ddp_err *err)
{
    struct stat st;
    /* No O_TRUNC, because the file must not be changed before it is known to be a journal.
     * O_NONBLOCK, because opening a pipe must not block. */
    j->fd = open(j->path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (j->fd < 0 && errno == ENOENT) {
        j->fd = open(j->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        j->created = j->fd >= 0;
    }
    if (j->fd < 0)
        return cannot(j, DDP_ECREATE, "create", errno, err);
    if (fstat(j->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return ddp_fail(err, DDP_ECREATE, "'%s' cannot be a journal: it is not a regular file",
                        j->path);
    if (st.st_size > (off_t)DDP_JOURNAL_MAX_BYTES)
        return ddp_fail(err, DDP_EINPUT, "'%s' is too large to be a journal", j->path);
    const bool locked_elsewhere = flock(j->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    j->created &= !locked_elsewhere; /* the file now belongs to the run that has the lock */
    if (locked_elsewhere)
        return ddp_fail(err, DDP_ECREATE, "another run is writing to '%s'", j->path);
    if (!is_named(j))
        return ddp_fail(err, DDP_ECREATE, "another run has just removed '%s'; try again", j->path);
    j->bytes = st.st_size;
    return 0;
}

static int read_file(struct ddp_journal *j, char **out, struct ddp_err *err)
{
    const size_t bytes = (size_t)j->bytes;
    char *text = malloc(bytes + 1);
    size_t at = 0;
    if (!text)
        return ddp_fail(err, DDP_ENOMEM, "no memory to read '%s'", j->path);
    while (at < bytes) {
        ssize_t n = pread(j->fd, text + at, bytes - at, (off_t)at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            int error = n < 0 ? errno : EIO;
            free(text);
            return cannot(j, DDP_EIO, "read", error, err);
        }
        at += (size_t)n;
    }
    *out = text;
    return 0;
}

static int refuse(const struct ddp_journal *j, const char *key, const char *then, const char *now,
                  struct ddp_err *err)
{
    ddp_fail(err, DDP_EMISMATCH, "'%s' belongs to another run: %s was '%.120s', now '%.120s'",
             j->path, key, then, now);
    return ddp_hint(err, "repeat the command that began it, or use --restart to discard it");
}

static const char *find_fact(const struct ddp_journal_facts *facts, const char *key)
{
    for (int i = 0; i < facts->count; i++)
        if (strcmp(facts->fact[i].key, key) == 0)
            return facts->fact[i].value;
    return NULL;
}

static int compare_facts(const struct ddp_journal *j, const struct ddp_journal_facts *then,
                         const struct ddp_journal_facts *now, struct ddp_err *err)
{
    for (int i = 0; i < now->count; i++) {
        const char *key = now->fact[i].key, *value = find_fact(then, key);
        if (!value || strcmp(value, now->fact[i].value) != 0)
            return refuse(j, key, value ? value : "missing", now->fact[i].value, err);
    }
    for (int i = 0; i < then->count; i++)
        if (!find_fact(now, then->fact[i].key))
            return refuse(j, then->fact[i].key, then->fact[i].value, "missing", err);
    return 0;
}

static int visit_nothing(void *arg, const struct ddp_journal_entry *entry, struct ddp_err *err)
{
    (void)arg;
    (void)entry;
    (void)err;
    return 0;
}

/* Reads an existing journal. Compares the facts first, so that a journal of another build is
 * reported as such and not as damaged. *whole: see ddp_journal_parse. */
static int read_old(struct ddp_journal *j, const struct ddp_journal_facts *facts,
                    ddp_journal_visit visit, void *arg, size_t *whole, struct ddp_err *err)
{
    char *text = NULL;
    struct ddp_journal_facts *then = malloc(sizeof *then);
    if (!then)
        return ddp_fail(err, DDP_ENOMEM, "no memory to read '%s'", j->path);
    int rc = read_file(j, &text, err);
    if (rc != 0)
        goto out_then;
    const char *end = memchr(text, '\n', (size_t)j->bytes);
    const size_t head = end ? (size_t)(end - text) + 1 : (size_t)j->bytes;
    rc = parse(text, head, j->path, then, visit_nothing, NULL, whole, &j->chain, err);
    if (rc == 0 && *whole > 0)
        rc = compare_facts(j, then, facts, err);
    if (rc == 0 && *whole > 0)
        rc = parse(text, (size_t)j->bytes, j->path, then, visit, arg, whole, &j->chain, err);
    free(text);
out_then:
    free(then);
    return rc;
}

/* Syncs the folder, so that the name of a new file is on disk. */
static int sync_folder(const struct ddp_journal *j)
{
    char folder[4096];
    const char *slash = strrchr(j->path, '/');
    size_t n = slash ? (size_t)(slash - j->path) + 1 : 0;
    if (n >= sizeof folder)
        return 0;
    snprintf(folder, sizeof folder, "%.*s", n ? (int)n : 1, n ? j->path : ".");
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0; /* The folder may be writable but not readable. */
    int error = fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
    close(fd);
    return error;
}

static int write_head(struct ddp_journal *j, const struct ddp_journal_facts *facts,
                      struct ddp_err *err)
{
    struct ddp_strbuf line = DDP_STRBUF_INIT;
    j->chain = DDP_FNV_INIT;
    int rc = ddp_journal_print_head(facts, &j->chain, &line, err);
    if (rc == 0)
        rc = append(j, line.text, line.length, err);
    ddp_strbuf_release(&line);
    DDP_TRY(rc);
    int error = j->created ? sync_folder(j) : 0;
    return error ? cannot(j, DDP_EIO, "write", error, err) : 0;
}

/* Checks that the file is a journal before its contents are discarded, so that a mistyped path does
 * not destroy another file. */
static int check_discard(struct ddp_journal *j, struct ddp_err *err)
{
    char text[sizeof beginning - 1];
    ssize_t n = pread(j->fd, text, sizeof text, 0);
    if (n < 0)
        return cannot(j, DDP_EIO, "read", errno, err);
    if (memcmp(text, beginning, (size_t)n) != 0)
        return ddp_fail(err, DDP_EINPUT, "'%s' is not a journal of ddpbench", j->path);
    return 0;
}

/* Keeps all complete lines of an open file, or none if restart is true. Sets the file position for
 * appending. */
static int keep_lines(struct ddp_journal *j, const struct ddp_journal_facts *facts, bool restart,
                      ddp_journal_visit visit, void *arg, bool *continued, struct ddp_err *err)
{
    size_t whole = 0;
    if (restart)
        DDP_TRY(check_discard(j, err));
    else if (j->bytes > 0)
        DDP_TRY(read_old(j, facts, visit, arg, &whole, err));
    if ((off_t)whole != j->bytes && ftruncate(j->fd, (off_t)whole) != 0)
        return cannot(j, DDP_EIO, "write", errno, err);
    j->bytes = (off_t)whole;
    if (lseek(j->fd, j->bytes, SEEK_SET) < 0)
        return cannot(j, DDP_EIO, "write", errno, err);
    *continued = whole > 0;
    return whole > 0 ? 0 : write_head(j, facts, err);
}

int ddp_journal_open(const char *path, const struct ddp_journal_facts *facts, bool restart,
                     ddp_journal_visit visit, void *arg, struct ddp_journal **out, bool *continued,
                     struct ddp_err *err)
{
    struct ddp_journal *j = ddp_calloc(1, sizeof *j);
    if (!j)
        return ddp_fail(err, DDP_ENOMEM, "no memory for a journal");
    j->fd = -1;
    j->path = strdup(path);
    int rc = j->path ? open_file(j, err) : ddp_fail(err, DDP_ENOMEM, "no memory for a journal");
    if (rc == 0)
        rc = keep_lines(j, facts, restart, visit, arg, continued, err);
    if (rc == 0) {
        *out = j;
        return 0;
    }
    if (j->created)
        unlink(path);
    ddp_journal_close(j);
    return rc;
}

int ddp_journal_remove(struct ddp_journal *journal, struct ddp_err *err)
{
    if (unlink(journal->path) != 0 && errno != ENOENT)
        return cannot(journal, DDP_EIO, "remove", errno, err);
    return 0;
}

void ddp_journal_close(struct ddp_journal *journal)
{
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    free(journal->path);
    free(journal);
}
