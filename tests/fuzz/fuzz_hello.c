/* Fuzzes the messages that unknown peers send to the rendezvous server: a hello and a proof. The
 * first byte chooses whether the job has a secret (1), whether the proof is the right one instead
 * of the input's (2), and whether the hello arrives in two parts (4). An admitted client must have
 * sent a legal hello of this job, and the right proof if there is a secret. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz/fuzz.h"
#include "launch/rendezvous_impl.h"

#define TOKEN UINT64_C(0x1122334455667788)

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_admitted(const struct ddp_pending_connection *g, bool has_secret, bool is_right)
{
    const struct ddp_hello *hello = &g->hello;
    require(g->stage == DDP_STAGE_ADMITTED);
    require(hello->magic == DDP_HELLO_MAGIC && hello->version == DDP_HELLO_VERSION);
    require(hello->token == TOKEN && (hello->has_secret != 0) == has_secret);
    require(hello->rank >= 1 && hello->rank < hello->size && hello->port <= 65535);
    require(!has_secret || is_right);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ddp_pending_connection g = {.fd = -1};
    struct ddp_answer refusal;
    if (size == 0)
        return 0;
    const bool has_secret = data[0] & 1, is_right = data[0] & 2;
    const struct ddp_job_key key = {.token = TOKEN, .has_secret = has_secret, .secret = "fuzz"};
    const size_t n = DDP_MIN(size - 1, sizeof g.hello);
    enum ddp_admission next = DDP_ADMISSION_MORE;
    for (size_t part = data[0] & 4 ? 1 : 2; part <= 2 && next == DDP_ADMISSION_MORE; part++) {
        memcpy(&g.hello, data + 1, n * part / 2);
        g.got = n * part / 2;
        next = ddp_admission_next(&g, &key, "h port 1", &refusal);
        require(next != DDP_ADMISSION_MORE || g.got < sizeof g.hello);
    }
    if (next == DDP_ADMISSION_CHALLENGE) {
        const size_t left = DDP_MIN(size - 1 - n, sizeof g.proof);
        require(has_secret && g.got == 0 && g.stage == DDP_STAGE_PROOF);
        memcpy(g.proof, data + 1 + n, left);
        g.got = left;
        if (is_right) {
            ddp_rendezvous_prove(&key, false, &g.hello, g.challenge.nonce, g.proof);
            g.got = sizeof g.proof;
        }
        next = ddp_admission_next(&g, &key, "h port 1", &refusal);
        require(next != DDP_ADMISSION_MORE || g.got < sizeof g.proof);
    }
    if (next == DDP_ADMISSION_ADMIT)
        check_admitted(&g, has_secret, is_right);
    if (next == DDP_ADMISSION_REFUSE)
        require(refusal.text[0] != '\0' && memchr(refusal.text, '\0', sizeof refusal.text));
    return 0;
}
