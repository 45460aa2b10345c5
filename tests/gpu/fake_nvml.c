/* A fake NVML with two GPUs. The second supports few queries. FAKE_NVML_LOG: a file to which each
 * process that starts NVML writes its id. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct memory {
    unsigned long long total, free, used;
};

struct pci {
    char legacy[16];
    unsigned numbers[5];
    char bus[32];
};

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (log) {
        fprintf(log, "%d\n", (int)getpid());
        fclose(log);
    }
    return FAKE_INIT;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    return 0;
}

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return FAKE_COUNT;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, char **device);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, char **device)
{
    static char gpus[2];
    *device = &gpus[index];
    gpus[index] = (char)index;
    return 0;
}

int nvmlSystemGetDriverVersion(char *text, unsigned bytes);
int nvmlSystemGetDriverVersion(char *text, unsigned bytes)
{
    snprintf(text, bytes, "580.1\033[31m");
    return 0;
}

int nvmlDeviceGetName(const char *device, char *text, unsigned bytes);
int nvmlDeviceGetName(const char *device, char *text, unsigned bytes)
{
    snprintf(text, bytes, "NVIDIA H200");
    return *device;
}

int nvmlDeviceGetPciInfo_v3(const char *device, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(const char *device, struct pci *pci)
{
    snprintf(pci->bus, sizeof pci->bus, "00000000:1B:00.0");
    return *device;
}

int nvmlDeviceGetMemoryInfo(const char *device, struct memory *memory);
int nvmlDeviceGetMemoryInfo(const char *device, struct memory *memory)
{
    memory->total = 150754820096;
    return *device;
}

int nvmlDeviceGetClockInfo(const char *device, int kind, unsigned *value);
int nvmlDeviceGetClockInfo(const char *device, int kind, unsigned *value)
{
    *value = kind == 1 ? 345 : 3201;
    return *device;
}

int nvmlDeviceGetMaxClockInfo(const char *device, int kind, unsigned *value);
int nvmlDeviceGetMaxClockInfo(const char *device, int kind, unsigned *value)
{
    *value = 1980;
    return *device;
}

int nvmlDeviceGetEnforcedPowerLimit(const char *device, unsigned *milliwatts);
int nvmlDeviceGetEnforcedPowerLimit(const char *device, unsigned *milliwatts)
{
    *milliwatts = 700000;
    return *device;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(const char *device, unsigned long long *reasons);
int nvmlDeviceGetCurrentClocksThrottleReasons(const char *device, unsigned long long *reasons)
{
    *reasons = 0x21;
    return *device;
}
