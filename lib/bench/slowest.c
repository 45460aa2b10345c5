#include "bench/slowest.h"

#include <string.h>

#include "base/mem.h"

int ddp_slowest(struct ddp_comm *comm, const int64_t *duration, int64_t iters, int64_t *chunk,
                double *sample, double *rank_sum, struct ddp_err *err)
{
    const int size = comm->size;
    if (rank_sum)
        memset(rank_sum, 0, (size_t)size * sizeof *rank_sum);
    for (int64_t first = 0; first < iters; first += DDP_SLOWEST_CHUNK) {
        size_t n = (size_t)DDP_MIN(iters - first, DDP_SLOWEST_CHUNK);
        DDP_TRY(ddp_comm_allgather_bytes(comm, duration + first, chunk, n * sizeof *duration, err));
        for (size_t i = 0; i < n; i++) {
            int64_t slowest = 0;
            for (int r = 0; r < size; r++) {
                int64_t ns = chunk[(size_t)r * n + i];
                slowest = DDP_MAX(slowest, ns);
                if (rank_sum)
                    rank_sum[r] += (double)ns;
            }
            sample[first + (int64_t)i] = (double)slowest;
        }
    }
    return 0;
}
