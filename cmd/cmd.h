/* Declarations that the commands share: option rows of several commands, and help. Each command has
 * a descriptor (struct ddp_cmd, run/command.h) in a file, and one line in command_list.h. A command
 * without ranks implements run(). A command with ranks has a job, whose functions lib/run calls. */
#ifndef DDP_CMD_CMD_H
#define DDP_CMD_CMD_H

#include "run/command.h"

extern const struct ddp_opt ddp_help_rows[]; /* --help; sets a bool */
/* --ranks, how the ranks start, and the outputs; sets a struct ddp_world_options */
extern const struct ddp_opt ddp_world_rows[];
extern const struct ddp_opt ddp_start_rows[];       /* the same without --ranks */
extern const struct ddp_opt ddp_feedback_rows[];    /* --feedback; sets an int */
extern const struct ddp_opt ddp_noise_floor_rows[]; /* --noise-floor; sets a const char * */
/* outputs of gate and compare; sets a struct ddp_verdict_outputs */
extern const struct ddp_opt ddp_verdict_rows[];

/* The next three functions are members `offer` of options (base/opt.h). --compress: writes the i-th
 * compressor. The name ends in a colon if it needs an argument. */
bool ddp_offer_compressor(const char *command, int i, char *out, size_t out_bytes);
/* --format: writes the i-th output format. */
bool ddp_offer_format(const char *command, int i, char *out, size_t out_bytes);
/* --algorithm: writes the i-th of auto, all and the algorithms of the collective. The choices of
 * `train` are auto and the algorithms of allreduce. */
bool ddp_offer_algorithm(const char *command, int i, char *out, size_t out_bytes);

/* Prints "# " and a text of at most 599 bytes. On a terminal, long lines are wrapped. */
void ddp_print_note(FILE *out, const char *fmt, ...) DDP_PRINTF(2, 3);
/* Prints the line of a dry run with the estimated duration of the run. */
void ddp_print_time(const struct ddp_estimate *estimate, FILE *out);

const struct ddp_cmd *const *ddp_commands(void); /* NULL-terminated */
const struct ddp_cmd *ddp_command_find(const char *name);

/* The two pages of a command's help. `-h` prints the short one, `--help` the long one. */
enum ddp_help_page { DDP_HELP_NONE, DDP_HELP_SHORT, DDP_HELP_LONG };
/* Print the help of a command, and the help of the program. */
void ddp_help_command(const struct ddp_cmd *cmd, enum ddp_help_page page, FILE *out);
void ddp_help_program(FILE *out);
/* Prints the help of a command or another topic. Returns 0, or DDP_EUSAGE if the topic is unknown.
 */
int ddp_help_print_topic(const char *topic, enum ddp_help_page page, FILE *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

#endif
