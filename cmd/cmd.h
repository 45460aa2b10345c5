/* Shared by all commands: the option rows of commands with ranks, and help. Each command is one
 * file with a descriptor (struct ddp_cmd, run/command.h), and one line in command_list.h. A command
 * without ranks implements run(). A command with ranks has a job, whose functions lib/run calls. */
#ifndef DDP_CMD_CMD_H
#define DDP_CMD_CMD_H

#include "run/command.h"

/* Option rows for a values struct `type` whose member `world` is a struct ddp_world_options. */
#define DDP_WORLD_ROWS(type)                                                                       \
    {"ranks",                                                                                      \
     0,                                                                                            \
     DDP_OPT_INT_LIST,                                                                             \
     offsetof(type, world.ranks),                                                                  \
     "N[,N...]",                                                                                   \
     NULL,                                                                                         \
     "World",                                                                                      \
     "rank counts, in turn: ddpbench starts N ranks or, under mpiexec, uses the first N "          \
     "(default: all ranks of mpiexec, else one per usable core or GPU, at most 8)",                \
     1,                                                                                            \
     256,                                                                                          \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL},                                                                                        \
        {"backend",                                                                                \
         0,                                                                                        \
         DDP_OPT_STRING,                                                                           \
         offsetof(type, world.backend),                                                            \
         "NAME",                                                                                   \
         "auto",                                                                                   \
         "World",                                                                                  \
         "auto, self, shm, mpi, nccl: how ranks reach each other; see `ddpbench list`",            \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"share-gpu",                                                                              \
         0,                                                                                        \
         DDP_OPT_FLAG,                                                                             \
         offsetof(type, world.share_gpu),                                                          \
         NULL,                                                                                     \
         NULL,                                                                                     \
         "World",                                                                                  \
         "backend nccl: let ranks share a GPU, to check results only; no bandwidth is shown",      \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"launch",                                                                                 \
         0,                                                                                        \
         DDP_OPT_ENUM,                                                                             \
         offsetof(type, world.launch),                                                             \
         "MODE",                                                                                   \
         "processes",                                                                              \
         "World",                                                                                  \
         "without mpiexec: start ranks as processes, or as threads of one process",                \
         0,                                                                                        \
         0,                                                                                        \
         &ddp_launch_choices,                                                                      \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"timeout",                                                                                \
         'T',                                                                                      \
         DDP_OPT_DOUBLE,                                                                           \
         offsetof(type, world.timeout_s),                                                          \
         "S",                                                                                      \
         "60",                                                                                     \
         "World",                                                                                  \
         "deadline in seconds of every wait, including init and barriers",                         \
         0.1,                                                                                      \
         86400,                                                                                    \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"seed",      0,                                                                           \
         DDP_OPT_INT, offsetof(type, world.seed),                                                  \
         "N",         "1",                                                                         \
         "World",     "seed of all random numbers",                                                \
         0,           9007199254740991.0,                                                          \
         NULL,        NULL,                                                                        \
         NULL},                                                                                    \
        {"json",                                                                                   \
         0,                                                                                        \
         DDP_OPT_STRING,                                                                           \
         offsetof(type, world.json),                                                               \
         "FILE",                                                                                   \
         NULL,                                                                                     \
         "Output",                                                                                 \
         "write the result as JSON (- for stdout, instead of the table)",                          \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"format",                                                                                 \
         0,                                                                                        \
         DDP_OPT_STRING_LIST,                                                                      \
         offsetof(type, world.formats),                                                            \
         "NAME[=FILE]",                                                                            \
         NULL,                                                                                     \
         "Output",                                                                                 \
         "one or more output formats; see `ddpbench list` (default table)",                        \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"progress",                                                                               \
         0,                                                                                        \
         DDP_OPT_ENUM,                                                                             \
         offsetof(type, world.progress),                                                           \
         "WHEN",                                                                                   \
         "auto",                                                                                   \
         "Output",                                                                                 \
         "show progress on stderr; auto: only on a terminal",                                      \
         0,                                                                                        \
         0,                                                                                        \
         &ddp_progress_choices,                                                                    \
         NULL,                                                                                     \
         NULL},                                                                                    \
        {"quiet", 'q',  DDP_OPT_FLAG, offsetof(type, world.quiet),                                 \
         NULL,    NULL, "Output",     "print only errors on stderr",                               \
         0,       0,    NULL,         NULL,                                                        \
         NULL},                                                                                    \
        {"verbose", 'v',  DDP_OPT_FLAG, offsetof(type, world.verbose),                             \
         NULL,      NULL, "Output",     "print more on stderr",                                    \
         0,         0,    NULL,         NULL,                                                      \
         NULL},                                                                                    \
    {                                                                                              \
        "help", 'h', DDP_OPT_FLAG, offsetof(type, world.help), NULL, NULL, "Output",               \
            "print this text and exit", 0, 0, NULL, NULL, NULL                                     \
    }

const struct ddp_cmd *const *ddp_commands(void); /* NULL-terminated */
const struct ddp_cmd *ddp_command_find(const char *name);

/* Print the help of a command (usage, options, details) and of the program. */
void ddp_help_command(const struct ddp_cmd *cmd, FILE *out);
void ddp_help_program(FILE *out);

#endif
