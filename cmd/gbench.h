/* Google Benchmark behind C: registers cases and runs them as its flags say. The one door to that
 * library; gbench.cc is what is behind it. User: kernels_main.c.
 *
 * It takes the times and prints to stdout (context and warnings to stderr), as its own programs do.
 * What it does not do: let an exception out, or end the process where a flag is wrong. */
#ifndef DDP_CMD_GBENCH_H
#define DDP_CMD_GBENCH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One benchmark. label: shown with its results. arg: handed to the functions. begin: untimed, once
 * before each series of runs; not 0: out of memory. restore: untimed, before each run, or NULL.
 * bytes: that the last run moved. items: elements a run works on, after begin. */
struct ddp_gbench_case {
    const char *name, *label;
    void *arg;
    int (*begin)(void *arg);
    void (*restore)(void *arg);
    void (*run)(void *arg);
    double (*bytes)(void *arg);
    double (*items)(void *arg);
};

/* Takes its own flags out of argv[1..*argc). bad_flag: called, before the process ends with 0,
 * where one has an illegal value that the library answers with its usage; it should end the process
 * itself. Once, before the other functions. */
void ddp_gbench_flags(int *argc, char **argv, void (*bad_flag)(void));
/* A line of the context in its outputs. Copied. */
void ddp_gbench_context(const char *key, const char *value);

enum ddp_gbench_end {
    DDP_GBENCH_DONE,
    DDP_GBENCH_NONE, /* no benchmark matches the filter, or the filter is no regex */
    DDP_GBENCH_NO_MEMORY,
    DDP_GBENCH_NO_OUTPUT /* stdout could not be written */
};
/* Runs or lists cases [count], borrowed. */
enum ddp_gbench_end ddp_gbench_run(const struct ddp_gbench_case *cases, size_t count);

#ifdef __cplusplus
}
#endif
#endif
