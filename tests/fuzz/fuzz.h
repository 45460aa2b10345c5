/* The interface of a fuzz target: libFuzzer's entry point, in one file per target. fuzz_main.c
 * drives a target where libFuzzer is not available. */
#ifndef DDP_TESTS_FUZZ_H
#define DDP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds one arbitrary input to the code under test and returns 0. A finding is a crash, a
 * sanitizer's report, an abort() by the target itself, or a time-out. The function must not keep
 * any state between calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
