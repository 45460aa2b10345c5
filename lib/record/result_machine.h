/* The facts of a result document that decide whether it can be compared with another one. */
#ifndef DDP_RECORD_RESULT_MACHINE_H
#define DDP_RECORD_RESULT_MACHINE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "record/result_file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returns "CPU", "usable cores", "kernel", "ranks", "backend" or "MPI library". */
const char *ddp_fact_name(enum ddp_fact fact);
/* Returns whether --vary with this set of keys leaves the fact out of the fingerprint. The key
 * `backend` also leaves out the MPI library. */
bool ddp_fact_varies(unsigned vary, enum ddp_fact fact);
/* Reads the facts of a document, its hosts and its fingerprint. Returns DDP_EINPUT if the document
 * has no valid "world". */
int ddp_result_read_machine(const cJSON *doc, const char *name, unsigned vary,
                            struct ddp_result *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Writes which facts differ, except those that --vary leaves out of the fingerprint. Example:
 * "kernel: '6' and '5'; ranks: '2' and '4'". */
void ddp_result_name_differences(const struct ddp_result *base, const struct ddp_result *next,
                                 unsigned vary, char *out, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
