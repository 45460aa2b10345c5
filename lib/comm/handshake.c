/* Each rank receives the cards (struct ddp_handshake_card) of all ranks, so all ranks find the same
 * difference. If the cards differ in the hash of a text, the ranks also exchange the texts. */
#include "comm/handshake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "base/strbuf.h"
#include "build_facts.h"
#include "diag/flight_report.h"

/* Texts are cut to this size. An error message does not show a difference behind the cut. */
#define TEXT_BYTES 8192

_Static_assert(sizeof(struct ddp_handshake_card) == 104,
               "other versions expect a card of this size");

const char *ddp_build_commit(void)
{
    return DDP_COMMIT;
}

const char *ddp_build_version(void)
{
    return DDP_VERSION;
}

const char *ddp_build_flags(void)
{
    return DDP_FAULTS ? DDP_COMPILER " " DDP_CFLAGS " FAULTS=1" : DDP_COMPILER " " DDP_CFLAGS;
}

/* The compared fields, in the order of comparison. */
enum field { VERSION, COMMIT, FLAGS, ARGS, FIELD_COUNT };

void ddp_handshake_fill(int count, char *const *args, struct ddp_handshake_card *card)
{
    const char *flags = ddp_build_flags();
    memset(card, 0, sizeof *card);
    memcpy(card->magic, "ddpcard", 8);
    snprintf(card->version, sizeof card->version, "%s", ddp_build_version());
    snprintf(card->commit, sizeof card->commit, "%s", ddp_build_commit());
    card->flags_hash = ddp_fnv1a(DDP_FNV_INIT, flags, strlen(flags));
    card->args_count = (uint64_t)count;
    card->args_hash = DDP_FNV_INIT;
    for (int i = 0; i < count; i++)
        card->args_hash = ddp_fnv1a(card->args_hash, args[i], strlen(args[i]) + 1);
}

static bool differs(const struct ddp_handshake_card *a, const struct ddp_handshake_card *b,
                    enum field field)
{
    switch (field) {
    case VERSION:
        return memcmp(a->magic, b->magic, sizeof a->magic) != 0 ||
               memcmp(a->version, b->version, sizeof a->version) != 0;
    case COMMIT:
        return memcmp(a->commit, b->commit, sizeof a->commit) != 0;
    case FLAGS:
        return a->flags_hash != b->flags_hash;
    default:
        return a->args_count != b->args_count || a->args_hash != b->args_hash;
    }
}

/* The first field in which ranks differ from rank 0, and these ranks. */
struct verdict {
    enum field field; /* FIELD_COUNT: all ranks agree */
    int rank;         /* the lowest differing rank */
    int count;
    char ranks[128];
};

static int compare_cards(const struct ddp_handshake_card *all, int size, struct verdict *out,
                         struct ddp_err *err)
{
    unsigned char *mark;
    DDP_TRY(DDP_NEW(&mark, (size_t)size, err));
    out->count = 0;
    for (out->field = VERSION; out->field < FIELD_COUNT; out->field++) {
        for (int r = size - 1; r > 0; r--) {
            mark[r] = differs(&all[r], &all[0], out->field);
            if (mark[r])
                out->rank = r;
        }
        out->count = ddp_rank_list(mark, size, 1, out->ranks, sizeof out->ranks);
        if (out->count > 0)
            break;
    }
    free(mark);
    return 0;
}

/* Sends every rank's text to all ranks. Stores the text of rank 0 in `texts`, followed by the text
 * of `rank`. */
static int exchange_texts(struct ddp_comm *comm, const char *mine, int rank, char *texts,
                          struct ddp_err *err)
{
    char(*all)[TEXT_BYTES];
    DDP_TRY(ddp_comm_abort_if(comm, DDP_NEW(&all, (size_t)comm->size, err)));
    int rc = ddp_comm_allgather_bytes(comm, mine, all, TEXT_BYTES, err);
    if (rc == 0) {
        memcpy(texts, all[0], TEXT_BYTES);
        memcpy(texts + TEXT_BYTES, all[rank], TEXT_BYTES);
    }
    free(all);
    return rc;
}

/* Writes "ranks 1, 3 were" or "rank 1 was". */
static void name_ranks(const struct verdict *v, char *out, size_t out_bytes)
{
    snprintf(out, out_bytes, "rank%s %s %s", v->count > 1 ? "s" : "", v->ranks,
             v->count > 1 ? "were" : "was");
}

static int report_build(const struct ddp_handshake_card *all, const struct verdict *v,
                        struct ddp_err *err)
{
    const struct ddp_handshake_card *card[2] = {&all[0], &all[v->rank]};
    char who[160], build[2][96], clean[2][96];
    name_ranks(v, who, sizeof who);
    for (int i = 0; i < 2; i++) {
        snprintf(build[i], sizeof build[i], "%.15s (%.55s)", card[i]->version, card[i]->commit);
        ddp_printable(build[i], clean[i], sizeof clean[i]);
    }
    ddp_fail(err, DDP_EMISMATCH,
             "%s started from another build than rank 0: rank %d from %s, rank 0 from %s", who,
             v->rank, clean[1], clean[0]);
    return ddp_hint(err, "start the same ddpbench on all ranks");
}

static int report_flags(const struct verdict *v, const char *texts, struct ddp_err *err)
{
    char who[160], clean[2][160];
    name_ranks(v, who, sizeof who);
    for (int i = 0; i < 2; i++)
        ddp_printable(texts + i * TEXT_BYTES, clean[i], sizeof clean[i]);
    ddp_fail(err, DDP_EMISMATCH,
             "%s compiled differently from rank 0: rank %d with '%s', rank 0 with '%s'", who,
             v->rank, clean[1], clean[0]);
    return ddp_hint(err, "start the same ddpbench on all ranks");
}

/* Finds the first argument that differs between the two texts. at[i] becomes the argument in text
 * i, or the empty string at the end of text i. If the argument is the value of an option, *option
 * becomes the name of the option, else "". */
static void first_difference(const char *texts, const char *at[2], const char **option)
{
    at[0] = texts;
    at[1] = texts + TEXT_BYTES;
    const char *before = NULL;
    while (strcmp(at[0], at[1]) == 0 && at[0][0] != '\0') {
        before = at[0];
        at[0] += strlen(at[0]) + 1;
        at[1] += strlen(at[1]) + 1;
    }
    *option =
        before != NULL && before[0] == '-' && at[0][0] != '-' && at[1][0] != '-' ? before : "";
}

static int report_args(const struct verdict *v, const char *texts, struct ddp_err *err)
{
    char who[160], word[200], clean[2][220];
    const char *at[2], *option;
    name_ranks(v, who, sizeof who);
    first_difference(texts, at, &option);
    for (int i = 0; i < 2; i++) {
        if (at[i][0] == '\0')
            snprintf(word, sizeof word, "no further argument");
        else
            snprintf(word, sizeof word, "'%.80s%s%.100s'", option, option[0] != '\0' ? " " : "",
                     at[i]);
        ddp_printable(word, clean[i], sizeof clean[i]);
    }
    if (strcmp(at[0], at[1]) == 0)
        ddp_fail(
            err, DDP_EMISMATCH,
            "%s started with other arguments than rank 0; the arguments that were compared, up "
            "to 8 KiB, are equal",
            who);
    else
        ddp_fail(err, DDP_EMISMATCH,
                 "%s started with other arguments than rank 0: rank %d with %s, rank 0 with %s",
                 who, v->rank, clean[1], clean[0]);
    return ddp_hint(err, "all ranks need the same command line");
}

/* Writes the arguments to `out` as NUL-terminated strings, followed by an empty string. */
static void join(uint64_t count, char *const *args, char *out)
{
    size_t used = 0;
    memset(out, 0, TEXT_BYTES);
    for (uint64_t i = 0; i < count; i++) {
        size_t n = strlen(args[i]) + 1;
        if (n + 4 > TEXT_BYTES - used)
            return;
        /* Write '' for an empty argument, because an empty string would look like the end of the
         * list. */
        memcpy(out + used, n > 1 ? args[i] : "''", n > 1 ? n : 3);
        used += n > 1 ? n : 3;
    }
}

/* Reports the difference. All ranks return the same error. */
static int report_difference(struct ddp_comm *comm, const struct ddp_handshake_card *all,
                             const struct verdict *v, const char *flags, char *const *args,
                             struct ddp_err *err)
{
    if (v->field <= COMMIT) {
        if (err != NULL)
            err->agreed = true;
        return report_build(all, v, err);
    }
    char *mine; /* the texts of this rank, rank 0 and rank v->rank */
    DDP_TRY(ddp_comm_abort_if(comm, DDP_NEW(&mine, 3 * TEXT_BYTES, err)));
    char *texts = mine + TEXT_BYTES;
    if (v->field == FLAGS)
        snprintf(mine, TEXT_BYTES, "%s", flags);
    else
        join(all[comm->rank].args_count, args, mine);
    int rc = exchange_texts(comm, mine, v->rank, texts, err);
    if (rc == 0) {
        rc = v->field == FLAGS ? report_flags(v, texts, err) : report_args(v, texts, err);
        if (err != NULL)
            err->agreed = true;
    }
    free(mine);
    return rc;
}

int ddp_handshake_card(struct ddp_comm *comm, const struct ddp_handshake_card *mine,
                       const char *flags, char *const *args, struct ddp_err *err)
{
    struct verdict verdict = {.field = FIELD_COUNT};
    struct ddp_handshake_card *all;
    DDP_TRY(ddp_comm_abort_if(comm, DDP_NEW(&all, (size_t)comm->size, err)));
    int rc = ddp_comm_allgather_bytes(comm, mine, all, sizeof *mine, err);
    if (rc == 0)
        rc = compare_cards(all, comm->size, &verdict, err);
    if (rc == 0 && verdict.field != FIELD_COUNT)
        rc = report_difference(comm, all, &verdict, flags, args, err);
    free(all);
    return rc;
}

int ddp_handshake(struct ddp_comm *comm, int count, char *const *args, struct ddp_err *err)
{
    struct ddp_handshake_card mine;
    ddp_handshake_fill(count, args, &mine);
    return ddp_handshake_card(comm, &mine, ddp_build_flags(), args, err);
}
