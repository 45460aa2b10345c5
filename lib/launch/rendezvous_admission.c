/* Decides whether the rendezvous server admits a connection. The functions use no sockets. */
#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "launch/rendezvous_impl.h"

/* The proofs of server and client contain different labels (`role`). A process that has received a
 * proof can therefore not send it back as its own proof. */
void ddp_rendezvous_prove(const struct ddp_job_key *key, bool server, const struct ddp_hello *hello,
                          const unsigned char nonce[DDP_NONCE_BYTES],
                          unsigned char out[DDP_SHA256_BYTES])
{
    struct {
        char role[8];
        struct ddp_hello hello;
        unsigned char nonce[DDP_NONCE_BYTES];
    } signed_text = {.hello = *hello};
    static_assert(sizeof signed_text == 8 + 80 + DDP_NONCE_BYTES, "the text has no padding");
    memcpy(signed_text.role, server ? "server" : "client", 7);
    memcpy(signed_text.nonce, nonce, sizeof signed_text.nonce);
    ddp_hmac_sha256(key->secret, sizeof key->secret, &signed_text, sizeof signed_text, out);
}

static enum ddp_admission refuse(struct ddp_answer *refusal, uint32_t verdict)
{
    refusal->magic = DDP_ANSWER_MAGIC;
    refusal->verdict = verdict;
    refusal->code = DDP_EMISMATCH;
    return DDP_ADMISSION_REFUSE;
}

static enum ddp_admission admit(struct ddp_pending_connection *g, const char *where,
                                struct ddp_answer *refusal)
{
    const struct ddp_hello *hello = &g->hello;
    if (hello->rank == 0 || hello->rank >= hello->size || hello->port > 65535) {
        snprintf(refusal->text, sizeof refusal->text,
                 "rank %u of %u with port %u is not a valid client of %s", hello->rank, hello->size,
                 hello->port, where);
        return refuse(refusal, DDP_ANSWER_REFUSED);
    }
    g->stage = DDP_STAGE_ADMITTED;
    return DDP_ADMISSION_ADMIT;
}

static enum ddp_admission challenge(struct ddp_pending_connection *g, const struct ddp_job_key *key)
{
    g->challenge.magic = DDP_CHALLENGE_MAGIC;
    if (!ddp_random_bytes(g->challenge.nonce, sizeof g->challenge.nonce))
        return DDP_ADMISSION_CLOSE;
    ddp_rendezvous_prove(key, true, &g->hello, g->challenge.nonce, g->challenge.proof);
    g->stage = DDP_STAGE_PROOF;
    g->got = 0;
    return DDP_ADMISSION_CHALLENGE;
}

static enum ddp_admission evaluate_hello(struct ddp_pending_connection *g,
                                         const struct ddp_job_key *key, const char *where,
                                         struct ddp_answer *refusal)
{
    const struct ddp_hello *hello = &g->hello;
    const uint64_t magic = DDP_HELLO_MAGIC;
    if (memcmp(&hello->magic, &magic, DDP_MIN(g->got, sizeof magic)) != 0)
        return DDP_ADMISSION_CLOSE;
    /* The hello of another version may be shorter, so check the version before the length. */
    if (g->got >= offsetof(struct ddp_hello, rank) && hello->version != DDP_HELLO_VERSION) {
        snprintf(refusal->text, sizeof refusal->text,
                 "another version of ddpbench: protocol %u, not %d", hello->version,
                 DDP_HELLO_VERSION);
        return refuse(refusal, DDP_ANSWER_REFUSED);
    }
    if (g->got < sizeof *hello)
        return DDP_ADMISSION_MORE;
    if (hello->token != key->token) {
        snprintf(refusal->text, sizeof refusal->text, "%s belongs to another job", where);
        return refuse(refusal, DDP_ANSWER_OTHER_JOB);
    }
    if ((hello->has_secret != 0) != key->has_secret) {
        snprintf(refusal->text, sizeof refusal->text,
                 "the listener at %s has %s job secret, but rank %u has %s; set DDPBENCH_SECRET on "
                 "all ranks or on none",
                 where, key->has_secret ? "a" : "no", hello->rank,
                 key->has_secret ? "none" : "one");
        return refuse(refusal, DDP_ANSWER_REFUSED);
    }
    return key->has_secret ? challenge(g, key) : admit(g, where, refusal);
}

enum ddp_admission ddp_admission_next(struct ddp_pending_connection *g,
                                      const struct ddp_job_key *key, const char *where,
                                      struct ddp_answer *refusal)
{
    unsigned char right[DDP_SHA256_BYTES];
    *refusal = (struct ddp_answer){0};
    switch (g->stage) {
    case DDP_STAGE_HELLO:
        return evaluate_hello(g, key, where, refusal);
    case DDP_STAGE_PROOF:
        if (g->got < sizeof g->proof)
            return DDP_ADMISSION_MORE;
        ddp_rendezvous_prove(key, false, &g->hello, g->challenge.nonce, right);
        if (!ddp_equal_in_constant_time(right, g->proof, sizeof right))
            return DDP_ADMISSION_CLOSE;
        return admit(g, where, refusal);
    case DDP_STAGE_ADMITTED:
        break;
    }
    return DDP_ADMISSION_CLOSE; /* an admitted client must not send anything */
}
