/* The GPUs of this host as NVIDIA's management library sees them: names, clocks, limits. For the
 * record and the doctor.
 *
 * Unlike CUDA it may be asked before ranks are forked, and it sees all GPUs of the host, whatever
 * CUDA_VISIBLE_DEVICES hides. The library comes with the driver and is opened when asked for;
 * without it there are no GPUs to tell of. What this does not do: change a setting. */
#ifndef DDP_DEVICE_NVML_H
#define DDP_DEVICE_NVML_H

#include <stddef.h>

#include "base/err.h"
#include "base/gpu_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills out [room], room at most DDP_GPU_FACTS_MAX; *count: how many, 0 without GPUs or driver.
 * DDP_EUNAVAIL when the library is there but fails: err says how. */
int ddp_nvml_read(struct ddp_gpu_facts *out, int room, int *count,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* Names of throttle reasons, NVML's bits, into out: "none", "power cap+thermal". */
void ddp_nvml_throttle_text(uint64_t reasons, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
