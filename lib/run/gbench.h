/* C interface to Google Benchmark. cmd/gbench.cc implements the functions, and only the program
 * ddpbench-kernels contains them, so other files of lib/run may use only the types.
 *
 * The library measures the times and prints the results to stdout. */
#ifndef DDP_RUN_GBENCH_H
#define DDP_RUN_GBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One benchmark. */
struct ddp_gbench_case {
    const char *name, *label; /* the results show the label */
    void *arg;                /* passed to the functions */
    /* Called once before each series of runs, untimed. Returns non-zero if memory runs out. */
    int (*begin)(void *arg);
    /* Called before each run, untimed. NULL if the input need not be restored. */
    void (*restore)(void *arg);
    void (*run)(void *arg);
    /* Returns the bytes that the last run had to move. */
    double (*bytes)(void *arg);
    /* Returns the number of elements that a run processes. Called after begin. */
    double (*items)(void *arg);
};

/* Removes Google Benchmark's flags from argv[1..*argc) and applies them. If a flag has an illegal
 * value, the library calls bad_flag and then ends the process with exit code 0. bad_flag should
 * therefore end the process itself with an error. The caller must call this function once, before
 * the other functions. */
void ddp_gbench_flags(int *argc, char **argv, void (*bad_flag)(void));
/* Adds a line to the context in the library's outputs. Both strings are copied. */
void ddp_gbench_context(const char *key, const char *value);

enum ddp_gbench_end {
    DDP_GBENCH_DONE,
    DDP_GBENCH_NONE, /* no benchmark matches the filter, or the filter is malformed */
    DDP_GBENCH_NO_MEMORY,
    DDP_GBENCH_NO_OUTPUT /* stdout could not be written */
};
/* Runs or lists the `count` cases, which must stay valid until the function returns. */
enum ddp_gbench_end ddp_gbench_run(const struct ddp_gbench_case *cases, size_t count);

#ifdef __cplusplus
}
#endif
#endif
