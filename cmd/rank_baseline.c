#include "rank_baseline.h"

#include "bench/memory_baseline.h"

int ddp_rank_baseline(struct ddp_rank *rank, struct ddp_err *err)
{
    struct ddp_control control;
    if (rank->has_control)
        return 0;
    DDP_TRY(ddp_memory_baseline_measure(rank->comm, &control, err));
    return ddp_emit_control(rank, &control, err);
}
