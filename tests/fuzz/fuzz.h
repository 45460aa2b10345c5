/* Fuzz targets: one file each, with libFuzzer's entry point; fuzz_main.c drives any of them where
 * there is no libFuzzer. */
#ifndef DDP_TESTS_FUZZ_H
#define DDP_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds one input, of which nothing is known, to the code under test; returns 0. A finding is a
 * crash, a sanitizer's report, an abort() by the target itself, or a time-out. May keep nothing
 * between calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
