/* Reads facts about GPUs through NVML, which is opened at run time. The prototypes are declared
 * here, because not every CUDA toolkit contains nvml.h. NVML does not change the prototypes of
 * released functions. */
#include "device/cuda/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

typedef struct nvml_device *device_handle;

enum { NVML_CLOCK_SM = 1, NVML_CLOCK_MEMORY = 2, NVML_TEMPERATURE_GPU = 0 };

struct nvml_memory {
    unsigned long long total, free, used;
};

/* nvmlPciInfo_t, as nvmlDeviceGetPciInfo_v3 fills it. */
struct nvml_pci {
    char bus_legacy[16];
    unsigned domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

/* The NVML functions in use. Each returns 0 on success. A function that the library lacks is NULL.
 */
struct nvml {
    void *library;
    int (*init)(void);
    int (*shutdown)(void);
    int (*device_count)(unsigned *);
    int (*device_by_index)(unsigned, device_handle *);
    int (*driver_version)(char *, unsigned);
    int (*device_name)(device_handle, char *, unsigned);
    int (*device_pci)(device_handle, struct nvml_pci *);
    int (*device_memory)(device_handle, struct nvml_memory *);
    int (*clock)(device_handle, int, unsigned *);
    int (*clock_max)(device_handle, int, unsigned *);
    int (*power_limit)(device_handle, unsigned *);
    int (*temperature)(device_handle, int, unsigned *);
    int (*throttle)(device_handle, unsigned long long *);
};

/* Functions marked `required` must exist. If another function is missing, the value that this
 * function would return stays unknown. */
static const struct {
    const char *name;
    size_t offset;
    bool required;
} symbols[] = {
    {"nvmlInit_v2", offsetof(struct nvml, init), true},
    {"nvmlShutdown", offsetof(struct nvml, shutdown), true},
    {"nvmlDeviceGetCount_v2", offsetof(struct nvml, device_count), true},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(struct nvml, device_by_index), true},
    {"nvmlSystemGetDriverVersion", offsetof(struct nvml, driver_version), false},
    {"nvmlDeviceGetName", offsetof(struct nvml, device_name), false},
    {"nvmlDeviceGetPciInfo_v3", offsetof(struct nvml, device_pci), false},
    {"nvmlDeviceGetMemoryInfo", offsetof(struct nvml, device_memory), false},
    {"nvmlDeviceGetClockInfo", offsetof(struct nvml, clock), false},
    {"nvmlDeviceGetMaxClockInfo", offsetof(struct nvml, clock_max), false},
    {"nvmlDeviceGetEnforcedPowerLimit", offsetof(struct nvml, power_limit), false},
    {"nvmlDeviceGetTemperature", offsetof(struct nvml, temperature), false},
    {"nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct nvml, throttle), false},
};

/* Returns 1 if the library was opened, 0 if dlopen() fails, or a negative code. The library comes
 * with the driver. A machine may have no driver, so a missing library is not an error. */
static int open_library(struct nvml *n, struct ddp_err *err)
{
    memset(n, 0, sizeof *n);
    n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (n->library == NULL)
        return 0;
    for (size_t i = 0; i < DDP_COUNT_OF(symbols); i++) {
        void *found = dlsym(n->library, symbols[i].name);
        memcpy((char *)n + symbols[i].offset, &found, sizeof found);
        if (found == NULL && symbols[i].required) {
            dlclose(n->library);
            return ddp_fail(err, DDP_EUNAVAIL, "libnvidia-ml.so.1 has no '%s'", symbols[i].name);
        }
    }
    return 1;
}

void ddp_nvml_throttle_text(uint64_t reasons, char *out, size_t out_bytes)
{
    static const struct {
        uint64_t bit;
        const char *name;
    } names[] = {
        {0x1, "idle"},        {0x2, "application clocks"}, {0x4, "power cap"},
        {0x8, "hw slowdown"}, {0x10, "sync boost"},        {0x20, "thermal"},
        {0x40, "hw thermal"}, {0x80, "power brake"},       {0x100, "display clock"},
    };
    size_t used = 0;
    snprintf(out, out_bytes, "%s", reasons == 0 ? "none" : "");
    for (size_t i = 0; i < DDP_COUNT_OF(names); i++) {
        if ((reasons & names[i].bit) != 0 && used < out_bytes)
            used += (size_t)snprintf(out + used, out_bytes - used, "%s%s", used ? "+" : "",
                                     names[i].name);
        reasons &= ~names[i].bit;
    }
    if (reasons != 0 && used < out_bytes)
        snprintf(out + used, out_bytes - used, "%s0x%llx", used ? "+" : "",
                 (unsigned long long)reasons);
}

static int clock_of(int (*get)(device_handle, int, unsigned *), device_handle device, int kind)
{
    unsigned value;
    return get != NULL && get(device, kind, &value) == 0 ? (int)value : -1;
}

static void read_device(const struct nvml *n, device_handle device, struct ddp_gpu_facts *g)
{
    struct nvml_pci pci;
    struct nvml_memory memory;
    unsigned milliwatts;
    unsigned long long reasons;
    if (n->device_name == NULL || n->device_name(device, g->name, sizeof g->name) != 0)
        g->name[0] = '\0';
    memset(&pci, 0, sizeof pci);
    if (n->device_pci != NULL && n->device_pci(device, &pci) == 0)
        snprintf(g->bus, sizeof g->bus, "%.31s", pci.bus_id);
    if (n->driver_version == NULL || n->driver_version(g->driver, sizeof g->driver) != 0)
        g->driver[0] = '\0';
    g->memory_bytes = n->device_memory != NULL && n->device_memory(device, &memory) == 0
                          ? (int64_t)memory.total
                          : -1;
    g->sm_clock_MHz = clock_of(n->clock, device, NVML_CLOCK_SM);
    g->sm_clock_max_MHz = clock_of(n->clock_max, device, NVML_CLOCK_SM);
    g->memory_clock_MHz = clock_of(n->clock, device, NVML_CLOCK_MEMORY);
    g->temperature_C = clock_of(n->temperature, device, NVML_TEMPERATURE_GPU);
    g->power_limit_W = n->power_limit != NULL && n->power_limit(device, &milliwatts) == 0
                           ? milliwatts / 1000.0
                           : -1;
    if (n->throttle != NULL && n->throttle(device, &reasons) == 0)
        ddp_nvml_throttle_text(reasons, g->throttle, sizeof g->throttle);
}

int ddp_nvml_read(struct ddp_gpu_facts *out, int room, int *count, struct ddp_err *err)
{
    struct nvml n;
    unsigned devices = 0;
    int found = 0;
    *count = 0;
    int rc = open_library(&n, err);
    if (rc <= 0)
        return rc;
    rc = n.init();
    if (rc != 0) {
        dlclose(n.library);
        return ddp_fail(err, DDP_EUNAVAIL, "NVML does not start: error %d", rc);
    }
    rc = n.device_count(&devices);
    if (rc != 0)
        ddp_fail(err, DDP_EUNAVAIL, "NVML does not count the GPUs: error %d", rc);
    for (unsigned i = 0; i < devices && found < room; i++) {
        device_handle device;
        if (n.device_by_index(i, &device) != 0)
            continue;
        memset(&out[found], 0, sizeof out[found]);
        read_device(&n, device, &out[found++]);
    }
    (void)n.shutdown();
    dlclose(n.library);
    *count = found;
    return rc == 0 ? 0 : DDP_EUNAVAIL;
}
