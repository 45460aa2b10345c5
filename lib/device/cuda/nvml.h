/* Describes the GPUs of this host as NVIDIA's management library (NVML) reports them, for example
 * their names, clocks and limits. The result record and `ddpbench doctor` use these facts.
 *
 * Unlike CUDA, NVML may be called before ranks are forked. NVML reports all GPUs of the host,
 * including those that CUDA_VISIBLE_DEVICES hides. The library comes with the driver. ddp_nvml_read
 * opens and closes the library. If there is no library, ddp_nvml_read reports no GPUs. These
 * functions change no setting of a GPU. */
#ifndef DDP_DEVICE_CUDA_NVML_H
#define DDP_DEVICE_CUDA_NVML_H

#include <stddef.h>

#include "base/err.h"
#include "base/gpu_facts.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Describes the first `room` GPUs in out [room] and sets *count to the number of GPUs described (0
 * if there is no GPU or no driver). Returns DDP_EUNAVAIL, with the reason in err, if the library
 * lacks a required function, does not start or does not count the GPUs. */
int ddp_nvml_read(struct ddp_gpu_facts *out, int room, int *count,
                  struct ddp_err *err) DDP_MUST_CHECK;

/* Writes the names of the bits that are set in `reasons`, NVML's throttle reasons, to `out`, for
 * example "power cap+thermal". Writes "none" if no bit is set. */
void ddp_nvml_throttle_text(uint64_t reasons, char *out, size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
