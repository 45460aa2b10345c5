/* Detects the launcher that started this process. The variables were observed with Open MPI 4.1.4
 * and MPICH 4.0.2 (Hydra), or are documented by Slurm (srun, "OUTPUT ENVIRONMENT VARIABLES"), Flux
 * (flux-environment(7)) and PyTorch's torchrun.
 *
 * A launcher may run inside another launcher. For example, mpiexec inside an allocation of Slurm
 * starts its daemons by srun, and `srun torchrun` starts one torchrun per host. The launchers that
 * may start ranks inside another launcher are therefore checked first. The variables of the outer
 * launcher may have other values. This is an error only if the two launchers are Open MPI's and
 * Hydra's mpiexec (check_nesting). */
#include "launch/launcher.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cpuinfo.h"
#include "base/mem.h"
#include "base/rng.h"
#include "base/unit.h"

/* Time that the launcher has to answer ddp_launcher_finalize_pmi. */
#define FINALIZE_MS 1000

/* The variables and their names. NONE: the launcher has no such variable. */
enum variable {
    NONE,
#define DDP_LAUNCHER_VARIABLE(symbol, name, recorded) symbol,
#include "base/launcher_variable_list.h"
#undef DDP_LAUNCHER_VARIABLE
    VARIABLE_COUNT
};

static const char *const names[VARIABLE_COUNT + 1] = {
#define DDP_LAUNCHER_VARIABLE(symbol, name, recorded) [symbol] = name,
#include "base/launcher_variable_list.h"
#undef DDP_LAUNCHER_VARIABLE
};

const char *const *ddp_launcher_variables(void)
{
    return names + NONE + 1;
}

/* The variables of one launcher. A row matches if all variables in needs[] are set. If needs[] is
 * empty, the row matches if `rank` or `size` is set. If only one of these two is set, this is an
 * error. torchrun has two rows. Only torchrun sets TORCHELASTIC_RUN_ID, so a process with this
 * variable is its rank, whatever started torchrun. Scripts that start ranks by srun often set the
 * other variables of torchrun, so without TORCHELASTIC_RUN_ID srun is checked first. */
struct row {
    enum ddp_launcher_kind kind;
    const char *name, *flavour;
    enum variable needs[4];
    enum variable rank, size, local_rank, local_size;
};

#define TORCHRUN_ROW                                                                               \
    .kind = DDP_LAUNCHER_TORCHRUN, .name = "torchrun", .rank = TORCH_RANK, .size = TORCH_SIZE,     \
    .local_rank = TORCH_LOCAL_RANK, .local_size = TORCH_LOCAL_SIZE

static const struct row rows[] = {
    {TORCHRUN_ROW, .needs = {TORCH_RUN_ID, TORCH_MASTER, TORCH_RANK, TORCH_SIZE}},
    {.kind = DDP_LAUNCHER_OPENMPI,
     .name = "mpiexec (Open MPI)",
     .flavour = "openmpi",
     .rank = OMPI_RANK,
     .size = OMPI_SIZE,
     .local_rank = OMPI_LOCAL_RANK,
     .local_size = OMPI_LOCAL_SIZE},
    {.kind = DDP_LAUNCHER_HYDRA,
     .name = "mpiexec (Hydra)",
     .flavour = "mpich",
     .rank = PMI_RANK,
     .size = PMI_SIZE,
     .local_rank = HYDRA_LOCAL_RANK,
     .local_size = HYDRA_LOCAL_SIZE},
    {.kind = DDP_LAUNCHER_SLURM,
     .name = "srun",
     .needs = {SLURM_SIZE, SLURM_RANK},
     .rank = SLURM_RANK,
     .size = SLURM_SIZE,
     .local_rank = SLURM_LOCAL_RANK},
    {TORCHRUN_ROW, .needs = {TORCH_MASTER, TORCH_RANK, TORCH_SIZE}},
};

/* Launchers that ddpbench cannot join. If ddpbench ignored them, each of their processes would
 * start its own world, and all worlds would measure at the same time. `size` is NONE if the
 * launcher has no variable for the number of ranks. */
static const struct {
    const char *name;
    enum variable rank, size;
} other_launchers[] = {
    {"Flux", FLUX_RANK, FLUX_SIZE},
    {"PALS", PALS_RANK, NONE},
    {"jsrun", JSM_RANK, JSM_SIZE},
    {"aprun", ALPS_RANK, NONE},
    {"mpirun_rsh", MVAPICH_RANK, MVAPICH_SIZE},
    {"a PMIx launcher", PMIX_RANK, NONE},
};

static const char *value_of(enum variable variable)
{
    const char *text = variable != NONE ? getenv(names[variable]) : NULL;
    return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Reads a plain decimal number of at most seven digits. */
static int read_number(enum variable variable, int *out, struct ddp_err *err)
{
    const char *text = value_of(variable);
    if (text == NULL)
        return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is missing",
                        names[variable]);
    size_t digits = strspn(text, "0123456789");
    if (text[digits] != '\0' || digits > 7)
        return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is '%.40s', not a number",
                        names[variable], text);
    int64_t value;
    DDP_TRY(ddp_parse_int(text, 0, 9999999, &value, err));
    *out = (int)value;
    return 0;
}

/* Returns the number of tasks on node number `node`, or 0 if it is unknown. `text` is Slurm's list
 * of the numbers of tasks on all nodes in order, for example "4(x2),3". */
static int slurm_tasks_on(const char *text, long node)
{
    while (text != NULL && *text != '\0') {
        char *end;
        long tasks = strtol(text, &end, 10), times = 1;
        if (end == text || tasks < 1 || tasks > 1000000)
            return 0;
        if (end[0] == '(' && end[1] == 'x') {
            times = strtol(end + 2, &end, 10);
            if (*end++ != ')' || times < 1)
                return 0;
        }
        if (node < times)
            return (int)tasks;
        node -= times;
        if (*end != ',' && *end != '\0')
            return 0;
        text = *end == ',' ? end + 1 : end;
    }
    return 0;
}

static int slurm_local_size(void)
{
    int64_t node = 0;
    const char *text = value_of(SLURM_NODE);
    if (text != NULL && ddp_parse_int(text, 0, INT32_MAX, &node, NULL) != 0)
        return 0;
    return slurm_tasks_on(value_of(SLURM_TASKS), (long)node);
}

/* Returns the number of cores for the ranks of this host. Also considers the core mask of the
 * parent process, because this process may be bound to the cores of one rank. */
static int host_cores(void)
{
    cpu_set_t set;
    int cores = ddp_cpu_usable_cores();
    if (sched_getaffinity(getppid(), sizeof set, &set) == 0)
        cores = DDP_MAX(cores, CPU_COUNT(&set));
    return cores;
}

static int check_range(const struct row *row, const struct ddp_rank_info *rank_info,
                       struct ddp_err *err)
{
    if (rank_info->size < 1)
        return ddp_fail(err, DDP_EMISMATCH, "%s=%d: a world needs at least one rank",
                        names[row->size], rank_info->size);
    if (rank_info->rank >= rank_info->size)
        return ddp_fail(err, DDP_EMISMATCH, "%s=%d is not below %s=%d", names[row->rank],
                        rank_info->rank, names[row->size], rank_info->size);
    if (rank_info->local_size > 0 && rank_info->local_rank >= rank_info->local_size)
        return ddp_fail(err, DDP_EMISMATCH,
                        "local rank %d (%s) is not below the %d ranks on this host",
                        rank_info->local_rank, names[row->local_rank], rank_info->local_size);
    if (rank_info->local_size > rank_info->size)
        return ddp_fail(err, DDP_EMISMATCH, "%d ranks on this host (%s), but only %d in the world",
                        rank_info->local_size,
                        row->local_size != NONE ? names[row->local_size] : "", rank_info->size);
    return 0;
}

/* Reads the rank_info from a row's variables. If the local rank or the number of local ranks is
 * unknown, all ranks count as ranks of this host. This may set `oversubscribed` although each rank
 * has a core; waits are then slower. */
static int read_rank_info(const struct row *row, struct ddp_rank_info *rank_info,
                          struct ddp_err *err)
{
    DDP_TRY(read_number(row->rank, &rank_info->rank, err));
    DDP_TRY(read_number(row->size, &rank_info->size, err));
    rank_info->local_rank = rank_info->rank;
    rank_info->local_size = rank_info->size;
    if (value_of(row->local_rank) != NULL) {
        DDP_TRY(read_number(row->local_rank, &rank_info->local_rank, err));
        if (value_of(row->local_size) != NULL)
            DDP_TRY(read_number(row->local_size, &rank_info->local_size, err));
        else if (row->kind == DDP_LAUNCHER_SLURM && slurm_local_size() > 0)
            rank_info->local_size = slurm_local_size();
    }
    DDP_TRY(check_range(row, rank_info, err));
    rank_info->oversubscribed = rank_info->local_size > host_cores();
    return 0;
}

static bool matches(const struct row *row)
{
    if (row->needs[0] == NONE)
        return value_of(row->rank) != NULL || value_of(row->size) != NULL;
    for (size_t i = 0; i < DDP_COUNT_OF(row->needs) && row->needs[i] != NONE; i++) {
        if (value_of(row->needs[i]) == NULL)
            return false;
    }
    /* srun starts shells as job steps of one task. Such a step has no other ranks, so the row does
     * not match. */
    return row->kind != DDP_LAUNCHER_SLURM || strcmp(value_of(SLURM_SIZE), "1") != 0;
}

/* Fails if Open MPI's and Hydra's variables are both set and differ. This means that one mpiexec
 * runs inside a rank of the other. */
static int check_nesting(struct ddp_err *err)
{
    static const enum variable pairs[][2] = {
        {OMPI_RANK, PMI_RANK},
        {OMPI_SIZE, PMI_SIZE},
    };
    for (size_t i = 0; i < DDP_COUNT_OF(pairs); i++) {
        const char *ours = value_of(pairs[i][0]), *theirs = value_of(pairs[i][1]);
        if (ours == NULL || theirs == NULL || strcmp(ours, theirs) == 0)
            continue;
        ddp_fail(err, DDP_EMISMATCH, "two launchers contradict each other: %s=%.20s, but %s=%.20s",
                 names[pairs[i][0]], ours, names[pairs[i][1]], theirs);
        return ddp_hint(err, "unset the variables of the outer mpiexec");
    }
    return 0;
}

/* Fails if PMI_FD is set but this descriptor is not open. Without this check, MPICH would end the
 * process with a less clear error. */
static int check_hydra(struct ddp_err *err)
{
    int fd;
    if (value_of(PMI_FD) == NULL)
        return 0;
    DDP_TRY(read_number(PMI_FD, &fd, err));
    if (fcntl(fd, F_GETFD) >= 0)
        return 0;
    ddp_fail(err, DDP_EMISMATCH,
             "PMI_FD=%d is not open: these variables belong to an mpiexec that "
             "has ended",
             fd);
    return ddp_hint(err, "unset PMI_FD, PMI_RANK and PMI_SIZE, or start under mpiexec");
}

/* Fails if a launcher that cannot be joined started this process. A job of one task is allowed,
 * because users start interactive shells as such jobs. This exception requires that the launcher
 * has a variable for the size. */
static int check_other_launchers(struct ddp_err *err)
{
    for (size_t i = 0; i < DDP_COUNT_OF(other_launchers); i++) {
        const char *rank = value_of(other_launchers[i].rank),
                   *size = value_of(other_launchers[i].size);
        if (rank == NULL || (size != NULL && strcmp(size, "1") == 0))
            continue;
        ddp_fail(err, DDP_EMISMATCH,
                 "ddpbench cannot join the ranks of %s, which started this process (%s=%.20s)",
                 other_launchers[i].name, names[other_launchers[i].rank], rank);
        return ddp_hint(
            err,
            "start it with the mpiexec of an MPI or with srun, or unset %s to let this process "
            "start ranks of its own",
            names[other_launchers[i].rank]);
    }
    return 0;
}

/* Fails if torchrun's variables are set but MASTER_ADDR is empty. Without this check, each process
 * would start a world of its own. If MASTER_ADDR is not set at all, this is not an error, because
 * other software may have set RANK. */
static int check_master(struct ddp_err *err)
{
    const char *master = getenv(names[TORCH_MASTER]), *rank = value_of(TORCH_RANK),
               *size = value_of(TORCH_SIZE);
    if (master == NULL || master[0] != '\0' || rank == NULL || size == NULL)
        return 0;
    ddp_fail(err, DDP_EMISMATCH, "%s is empty, but %s=%.20s and %s=%.20s", names[TORCH_MASTER],
             names[TORCH_RANK], rank, names[TORCH_SIZE], size);
    return ddp_hint(err,
                    "set %s to the host of rank 0, or unset %s to start ranks without torchrun",
                    names[TORCH_MASTER], names[TORCH_MASTER]);
}

/* Guesses the MPI library from Slurm's variables. Open MPI uses PMIx, and MPICH uses PMI-2. */
static const char *guess_flavour(void)
{
    const char *type = value_of(SLURM_MPI);
    if (type != NULL && strncmp(type, "pmix", 4) == 0)
        return "openmpi";
    if (type != NULL && strcmp(type, "pmi2") == 0)
        return "mpich";
    return NULL;
}

/* Fills *found. After an error, *found has the values that were read before the error. */
static int detect(struct ddp_launcher *found, struct ddp_err *err)
{
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        if (!matches(row))
            continue;
        if (row->kind != DDP_LAUNCHER_TORCHRUN)
            DDP_TRY(check_nesting(err));
        found->kind = row->kind;
        found->name = row->name;
        found->flavour = row->flavour;
        if (row->kind == DDP_LAUNCHER_SLURM)
            found->flavour = guess_flavour();
        if (row->kind == DDP_LAUNCHER_HYDRA)
            DDP_TRY(check_hydra(err));
        DDP_TRY(read_rank_info(row, &found->rank_info, err));
        break;
    }
    if (found->kind != DDP_LAUNCHER_NONE)
        return 0;
    DDP_TRY(check_master(err));
    return check_other_launchers(err);
}

int ddp_launcher_detect(struct ddp_launcher *out, struct ddp_err *err)
{
    *out = (struct ddp_launcher){
        .kind = DDP_LAUNCHER_NONE,
        .name = "own",
        .rank_info = {.size = 1, .local_size = 1, .segment_fd = -1},
    };
    const int rc = detect(out, err);
    if (rc != 0) {
        out->kind = DDP_LAUNCHER_NONE;
        out->name = "own";
        out->flavour = NULL;
    }
    return rc;
}

int ddp_launcher_rendezvous(const char *port, struct ddp_rendezvous_config *out,
                            struct ddp_err *err)
{
    static const enum variable names_job[] = {TORCH_RUN_ID, TORCH_RESTART, TORCH_MASTER,
                                              TORCH_PORT};
    struct ddp_rendezvous_config m = {.ports = 1, .token = DDP_FNV_INIT};
    const char *host = value_of(TORCH_MASTER);
    int64_t value;
    int master_port;
    if (host == NULL)
        return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is missing",
                        names[TORCH_MASTER]);
    if (strlen(host) >= sizeof m.host)
        return ddp_fail(err, DDP_EMISMATCH,
                        "the launcher's variable %s has %zu characters; the limit is %zu",
                        names[TORCH_MASTER], strlen(host), sizeof m.host - 1);
    snprintf(m.host, sizeof m.host, "%s", host);
    for (size_t i = 0; i < DDP_COUNT_OF(names_job); i++) {
        const char *text = value_of(names_job[i]) != NULL ? value_of(names_job[i]) : "";
        m.token = ddp_fnv1a(m.token, text, strlen(text) + 1);
    }
    if (port != NULL) {
        if (ddp_parse_int(port, 1, 65535, &value, NULL) != 0)
            return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_PORT is '%.40s', which is not a port", port);
        m.port = (int)value;
    } else {
        DDP_TRY(read_number(TORCH_PORT, &master_port, err));
        if (master_port < 1 || master_port > 65535)
            return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is %d, not a port",
                            names[TORCH_PORT], master_port);
        m.ports = DDP_RENDEZVOUS_PORTS;
        /* If MASTER_PORT is at the end of the port range, use the ports below it. */
        m.port = master_port + m.ports <= 65535 ? master_port + 1 : master_port - m.ports;
    }
    *out = m;
    return 0;
}

void ddp_launcher_finalize_pmi(const struct ddp_launcher *launcher)
{
    static const char message[] = "cmd=finalize\n";
    struct ddp_err err = DDP_ERR_INIT;
    struct pollfd answer = {.events = POLLIN};
    if (launcher->kind != DDP_LAUNCHER_HYDRA || value_of(PMI_FD) == NULL ||
        read_number(PMI_FD, &answer.fd, &err) != 0)
        return;
    if (write(answer.fd, message, strlen(message)) > 0)
        (void)poll(&answer, 1, FINALIZE_MS);
}
