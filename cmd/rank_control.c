#include "rank_control.h"

#include "bench/control.h"

int ddp_rank_control(struct ddp_rank *rank, struct ddp_err *err)
{
    struct ddp_control control;
    if (rank->has_control)
        return 0;
    DDP_TRY(ddp_control_measure(rank->comm, &control, err));
    return ddp_emit_control(rank, &control, err);
}
