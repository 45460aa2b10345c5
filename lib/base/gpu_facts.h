/* What a record says of a GPU of this host. Filled by device/nvml.h; a fact that cannot be read is
 * "" or -1, never a guess. */
#ifndef DDP_BASE_GPU_FACTS_H
#define DDP_BASE_GPU_FACTS_H

#include <stdint.h>

#define DDP_GPU_FACTS_MAX 16

/* driver: its version. clocks: of the moment; sm_clock_max_MHz: what it may reach. power_limit_W:
 * as enforced now. throttle: what holds the clocks down, "none", or names joined by "+" ("idle",
 * "power cap", "thermal", ...). */
struct ddp_gpu_facts {
    char name[64], bus[32], driver[32], throttle[96];
    int64_t memory_bytes;
    int sm_clock_MHz, sm_clock_max_MHz, memory_clock_MHz, temperature_C;
    double power_limit_W; /* -1: unknown */
};

#endif
