/* Facts about one GPU of this host, for the result record. device/cuda/nvml.h fills them. A fact
 * that cannot be read is "" or -1, never a guess. */
#ifndef DDP_BASE_GPU_FACTS_H
#define DDP_BASE_GPU_FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define DDP_GPU_FACTS_MAX 16

/* sm_clock_max_MHz is the highest possible clock. The other clocks and the temperature are values
 * at the time of reading. */
struct ddp_gpu_facts {
    char name[64], bus[32];
    char driver[32]; /* version of the driver */
    /* The reasons that limit the clocks: "none", or names joined by "+" ("power cap+thermal"). */
    char throttle[96];
    int64_t memory_bytes;
    int sm_clock_MHz, sm_clock_max_MHz, memory_clock_MHz, temperature_C;
    double power_limit_W; /* the enforced limit; -1: unknown */
};

/* Returns whether heat or an insufficient power supply slows the GPU down. The normal power cap
 * does not count. */
static inline bool ddp_gpu_facts_slowed(const struct ddp_gpu_facts *g)
{
    return strstr(g->throttle, "thermal") || strstr(g->throttle, "brake") ||
           strstr(g->throttle, "slowdown");
}

#endif
