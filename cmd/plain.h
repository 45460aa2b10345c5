/* Functions that several commands without ranks share, such as help, explain and list. */
#ifndef DDP_CMD_PLAIN_H
#define DDP_CMD_PLAIN_H

#include "base/json.h"
#include "cmd.h"

/* Options of simple commands. ddp_plain_rows has --help, and ddp_plain_json_rows has --help and
 * --json. */
struct ddp_plain_values {
    bool json, help;
};
extern const struct ddp_opt ddp_plain_rows[], ddp_plain_json_rows[];

/* A text that a command prints for an operand. */
struct ddp_topic {
    const char *name;
    void (*print)(FILE *out);
};
/* Prints the topic with this name. Returns false if no topic has the name. */
bool ddp_topic_print(const struct ddp_topic *topics, size_t count, const char *name, FILE *out);

/* Fills *err with the message "'text' is not a <what>" and a hint. The hint names the legal operand
 * that is nearest to the text, or lists all legal operands if none is near. If text is NULL (the
 * user gave no operand), the message is "which <what>?". Returns DDP_EUSAGE. */
int ddp_refuse_operand(const char *what, const char *text, ddp_candidate *candidate,
                       const void *ctx, struct ddp_err *err);

/* Each returns the i-th legal operand of a command, or NULL past the last. The functions can be
 * passed as `candidate` to ddp_refuse_operand. They ignore ctx. */
const char *ddp_explain_topic(const void *ctx, int i);
const char *ddp_help_topic(const void *ctx, int i);
const char *ddp_list_kind(const void *ctx, int i);
const char *ddp_recipe_name(const void *ctx, int i);
const char *ddp_kernels_flag(const void *ctx, int i);

/* The option --size of `ddpbench kernels` and of its helper program. `at` is the offset of a struct
 * ddp_size_list. */
#define DDP_KERNELS_SIZE(at)                                                                       \
    DDP_OPT(SIZE_LIST, "size", 0, at, "S[,S...]", "256K,16M",                                      \
            "size of each array, a multiple of 8 bytes; arrays of the first default fit most "     \
            "caches",                                                                              \
            .min = 4096, .max = 17179869184.0, .brief = "size of each array")
/* Writes the path of the helper program, which is in the folder of ddp_conf_module_dir. Returns
 * DDP_EUNAVAIL with the reason if the helper is missing. */
int ddp_kernels_find(const struct ddp_app *app, char *path, size_t path_bytes,
                     struct ddp_err *err) DDP_MUST_CHECK;

/* The exit codes and their meanings, in ascending order. The last row's meaning is NULL. */
struct ddp_exit_row {
    int code;
    const char *meaning;
};
const struct ddp_exit_row *ddp_exit_rows(void);
/* Text about the exit codes as a whole, without line breaks. */
extern const char ddp_exit_text[];
/* Prints the exit codes and their meanings as text. */
void ddp_exit_print(FILE *out);

/* ddp_reference_man prints the manual page in man(7) macros. `mandoc -T lint` must not complain
 * about the page. ddp_reference_markdown prints the reference in Markdown (cmd/REFERENCE.md). */
void ddp_reference_man(FILE *out);
int ddp_reference_markdown(FILE *out, struct ddp_err *err) DDP_MUST_CHECK;

/* Help text about sizes, bandwidths and times, in wrapped lines. */
extern const char ddp_units_text[];

#endif
