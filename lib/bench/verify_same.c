/* Checks that results have the same bits on all ranks. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bench/verify_exchange.h"

#define EXCHANGED 1024 /* elements that ranks exchange at a time to find a difference */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Returns a hash of the bits. It combines eight independent FNV-1a hashes (Fowler, Noll, Vo) of
 * 32-bit words, so that their multiplications overlap. */
static uint64_t hash_of(const float *data, size_t n)
{
    uint64_t lane[8];
    for (int i = 0; i < 8; i++)
        lane[i] = UINT64_C(0xCBF29CE484222325) + (uint64_t)i;
    for (size_t i = 0; i < n; i++)
        lane[i % 8] = (lane[i % 8] ^ bits_of(data[i])) * UINT64_C(0x100000001B3);
    for (int i = 1; i < 8; i++)
        lane[0] = (lane[0] ^ lane[i]) * UINT64_C(0x100000001B3);
    return lane[0];
}

/* Finds the first element that differs from rank 0's. Fails on all ranks with a message that names
 * it. all [size][EXCHANGED]: scratch. Collective. */
static int find_difference(struct ddp_comm *comm, const float *data, size_t n, float *all,
                           const char *what, struct ddp_err *err)
{
    for (size_t done = 0, part; done < n; done += part) {
        part = DDP_MIN(n - done, (size_t)EXCHANGED);
        DDP_TRY(ddp_comm_allgather_bytes(comm, data + done, all, part * sizeof *all, err));
        for (int r = 1; r < comm->size; r++) {
            for (size_t j = 0; j < part; j++) {
                uint32_t expected = bits_of(all[j]), got = bits_of(all[(size_t)r * part + j]);
                if (got == expected)
                    continue;
                return ddp_fail(
                    err, DDP_EDATA,
                    "wrong data: rank %d, element %zu (%s, differs from rank 0): expected "
                    "%.10g, got %.10g, xor 0x%08x",
                    r, done + j, what, (double)all[j], (double)all[(size_t)r * part + j],
                    expected ^ got);
            }
        }
    }
    return ddp_fail(err, DDP_EINTERNAL, "hashes of equal results differ");
}

int ddp_verify_same_on_all_ranks(struct ddp_comm *comm, const float *data, size_t n,
                                 const char *what, struct ddp_err *err)
{
    const size_t size = (size_t)comm->size;
    uint64_t mine = hash_of(data, n), *hashes = ddp_calloc(size, sizeof *hashes);
    float *all = ddp_calloc(size * EXCHANGED, sizeof *all);
    bool differ = false;
    int rc = hashes && all ? 0 : ddp_fail(err, DDP_ENOMEM, "no memory to compare %zu ranks", size);
    DDP_TRY_GOTO(ddp_comm_agree(comm, rc, err), out);
    DDP_TRY_GOTO(ddp_comm_allgather_bytes(comm, &mine, hashes, sizeof mine, err), out);
    for (size_t r = 1; r < size; r++)
        differ = differ || hashes[r] != hashes[0];
    if (differ)
        rc = find_difference(comm, data, n, all, what, err);
out:
    free(hashes);
    free(all);
    return rc;
}
