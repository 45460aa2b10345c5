#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "bench/page_size.h"

#define HUGE_BYTES_DEFAULT (2 << 20) /* x86-64, and arm64 with 4 KiB pages */

static int64_t huge_bytes(void)
{
    int64_t bytes = HUGE_BYTES_DEFAULT;
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "re");
    if (!f)
        return bytes;
    if (fscanf(f, "%" SCNd64, &bytes) != 1)
        bytes = HUGE_BYTES_DEFAULT;
    fclose(f);
    return bytes;
}

int64_t ddp_page_bytes(const void *ptr)
{
    char line[512], key[64];
    uint64_t begin, end, at = (uint64_t)(uintptr_t)ptr;
    int64_t kb, page_kb = -1, resident_kb = 0, huge_kb = 0;
    bool inside = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    if (!f)
        return -1;
    while (fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
            if (inside)
                break;
            inside = at >= begin && at < end;
        } else if (inside && sscanf(line, "%63[^:]: %" SCNd64 " kB", key, &kb) == 2) {
            if (strcmp(key, "KernelPageSize") == 0)
                page_kb = kb;
            else if (strcmp(key, "Rss") == 0)
                resident_kb = kb;
            else if (strcmp(key, "AnonHugePages") == 0 || strcmp(key, "ShmemPmdMapped") == 0 ||
                     strcmp(key, "FilePmdMapped") == 0)
                huge_kb += kb;
        }
    }
    fclose(f);
    if (page_kb < 0)
        return -1;
    return huge_kb > 0 && huge_kb * 2 >= resident_kb ? huge_bytes() : page_kb * 1024;
}
