/* Detects the launcher that started this process. The variables were observed with Open MPI 4.1.4
 * and MPICH 4.0.2 (Hydra), or come from documentation, for example of Slurm (srun, "OUTPUT
 * ENVIRONMENT VARIABLES"), Flux (flux-environment(7)) and PyTorch's torchrun.
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

#include "base/conf.h"
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
 * variable is a rank of torchrun, whatever started torchrun. Scripts that start ranks by srun often
 * set the other variables of torchrun, so without TORCHELASTIC_RUN_ID srun is checked first. */
struct row {
    enum ddp_launcher_kind kind;
    const char *name, *flavour;
    bool over_tcp;
    enum variable needs[4];
    enum variable rank, size, local_rank, local_size;
};

#define TORCH_VARIABLES                                                                            \
    .over_tcp = true, .rank = TORCH_RANK, .size = TORCH_SIZE, .local_rank = TORCH_LOCAL_RANK,      \
    .local_size = TORCH_LOCAL_SIZE
#define TORCHRUN_ROW .kind = DDP_LAUNCHER_TORCHRUN, .name = "torchrun", TORCH_VARIABLES

static const struct row rows[] = {
    {.kind = DDP_LAUNCHER_HOSTS,
     .name = "ddpbench --hosts",
     .needs = {HOSTS_JOB, TORCH_MASTER, TORCH_RANK, TORCH_SIZE},
     TORCH_VARIABLES},
    {TORCHRUN_ROW, .needs = {TORCH_RUN_ID, TORCH_MASTER, TORCH_RANK, TORCH_SIZE}},
    {.kind = DDP_LAUNCHER_OPENMPI,
     .name = "mpiexec (Open MPI)",
     .flavour = DDP_MPI_OPENMPI,
     .rank = OMPI_RANK,
     .size = OMPI_SIZE,
     .local_rank = OMPI_LOCAL_RANK,
     .local_size = OMPI_LOCAL_SIZE},
    {.kind = DDP_LAUNCHER_HYDRA,
     .name = "mpiexec (Hydra)",
     .flavour = DDP_MPI_MPICH,
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
    {.kind = DDP_LAUNCHER_KUBERNETES,
     .name = "Kubernetes Indexed Job",
     .over_tcp = true,
     .needs = {POD_INDEX, TORCH_MASTER, TORCH_SIZE},
     .rank = POD_INDEX,
     .size = TORCH_SIZE},
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
 * unknown, all ranks count as ranks of this host, except in a pod of Kubernetes. This may set
 * `oversubscribed` although each rank has a core; waits are then slower. */
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
    } else if (row->kind == DDP_LAUNCHER_KUBERNETES) { /* a pod has one rank */
        rank_info->local_rank = 0;
        rank_info->local_size = 1;
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

/* Fails in a pod of a Kubernetes Indexed Job if MASTER_ADDR or WORLD_SIZE is not set. Without this
 * check, each pod would start a world of its own. */
static int check_pod(struct ddp_err *err)
{
    const char *index = value_of(POD_INDEX);
    if (index == NULL)
        return 0;
    ddp_fail(err, DDP_EMISMATCH,
             "this pod is number %.20s of a Kubernetes Indexed Job, but %s is not set", index,
             names[value_of(TORCH_MASTER) == NULL ? TORCH_MASTER : TORCH_SIZE]);
    return ddp_hint(err,
                    "`ddpbench recipe k8s-indexed` prints a job that sets it; unset %s to measure "
                    "this pod alone",
                    names[POD_INDEX]);
}

/* Guesses the MPI library from Slurm's variables. Open MPI uses PMIx, and MPICH uses PMI-2. */
static const char *guess_flavour(void)
{
    const char *type = value_of(SLURM_MPI);
    if (type != NULL && strncmp(type, "pmix", 4) == 0)
        return DDP_MPI_OPENMPI;
    if (type != NULL && strcmp(type, "pmi2") == 0)
        return DDP_MPI_MPICH;
    return NULL;
}

/* Corrects the values of the row for ranks that srun started. `srun --mpi=pmi2` sets the same
 * variables as Hydra, except the one for the local rank. Without PMIx and PMI-2, the ranks meet
 * over TCP. */
static void correct_slurm(struct ddp_launcher *found)
{
    const char *rank = value_of(SLURM_RANK), *pmi = value_of(PMI_RANK);
    if (found->kind == DDP_LAUNCHER_HYDRA && value_of(HYDRA_LOCAL_RANK) == NULL && rank != NULL &&
        value_of(SLURM_SIZE) != NULL && pmi != NULL && strcmp(rank, pmi) == 0) {
        found->name = "srun";
    } else if (found->kind == DDP_LAUNCHER_SLURM) {
        found->flavour = guess_flavour();
        found->over_tcp = found->flavour == NULL && pmi == NULL && value_of(PMI_FD) == NULL &&
                          value_of(PMIX_RANK) == NULL;
    }
}

/* Fills *found. After an error, *found has the values that were read before the error. */
static int detect(struct ddp_launcher *found, struct ddp_err *err)
{
    for (size_t i = 0; i < DDP_COUNT_OF(rows); i++) {
        const struct row *row = &rows[i];
        if (!matches(row))
            continue;
        if (!row->over_tcp)
            DDP_TRY(check_nesting(err));
        found->kind = row->kind;
        found->name = row->name;
        found->flavour = row->flavour;
        found->over_tcp = row->over_tcp;
        correct_slurm(found);
        if (row->kind == DDP_LAUNCHER_HYDRA)
            DDP_TRY(check_hydra(err));
        DDP_TRY(read_rank_info(row, &found->rank_info, err));
        break;
    }
    if (found->kind != DDP_LAUNCHER_NONE)
        return 0;
    DDP_TRY(check_master(err));
    DDP_TRY(check_other_launchers(err));
    return check_pod(err);
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
        out->over_tcp = false;
    }
    return rc;
}

/* Sets the key to the hash of the secret. A secret may therefore be longer than the key. */
static int set_secret(const char *secret, struct ddp_job_key *key, struct ddp_err *err)
{
    struct ddp_sha256 hash;
    if (secret == NULL)
        return 0;
    if (strlen(secret) < DDP_SECRET_MIN) {
        ddp_fail(err, DDP_EUSAGE, "DDPBENCH_SECRET has %zu characters, but needs at least %d",
                 strlen(secret), DDP_SECRET_MIN);
        return ddp_hint(err, "for example: DDPBENCH_SECRET=$(openssl rand -hex 16)");
    }
    ddp_sha256_init(&hash);
    ddp_sha256_add(&hash, secret, strlen(secret));
    ddp_sha256_end(&hash, key->secret);
    key->has_secret = true;
    return 0;
}

/* Writes the first host of Slurm's list of hosts, for example "n03" for "n[03-10,12],m1". */
static void first_host(const char *list, char *out, size_t out_bytes)
{
    size_t n = 0;
    while (*list != '\0' && *list != ',' && n + 1 < out_bytes) {
        if (*list != '[') {
            out[n++] = *list++;
            continue;
        }
        const size_t digits = strcspn(list + 1, "-,]");
        n += (size_t)snprintf(out + n, out_bytes - n, "%.*s",
                              (int)DDP_MIN(digits, out_bytes - 1 - n), list + 1);
        list += strcspn(list, "]");
        list += *list == ']';
    }
    out[n] = '\0';
}

/* Sets the host and the first port of the rendezvous from Slurm's variables. The first port is a
 * number from 20000 to 29990. Linux gives higher ports to outgoing connections, so the ports of the
 * rendezvous are seldom in use. */
static int find_slurm_host(struct ddp_rendezvous_config *m, struct ddp_err *err)
{
    const char *nodes = getenv("SLURM_STEP_NODELIST");
    if (nodes == NULL || nodes[0] == '\0' || value_of(SLURM_SIZE) == NULL)
        return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is missing",
                        names[TORCH_MASTER]);
    first_host(nodes, m->host, sizeof m->host);
    m->port = 20000 + (int)(ddp_mix64(m->key.token) % 1000) * 10;
    return 0;
}

/* Sets the host and the first port of the rendezvous from torchrun's variables. */
static int find_master(struct ddp_rendezvous_config *m, bool needs_port, struct ddp_err *err)
{
    const char *host = value_of(TORCH_MASTER);
    int master_port = 29500;
    if (strlen(host) >= sizeof m->host)
        return ddp_fail(err, DDP_EMISMATCH,
                        "the launcher's variable %s has %zu characters; the limit is %zu",
                        names[TORCH_MASTER], strlen(host), sizeof m->host - 1);
    snprintf(m->host, sizeof m->host, "%s", host);
    m->late_name = value_of(POD_INDEX) != NULL; /* the pod of rank 0 may not have started yet */
    if (!needs_port)
        return 0;
    if (value_of(TORCH_PORT) != NULL || value_of(POD_INDEX) == NULL)
        DDP_TRY(read_number(TORCH_PORT, &master_port, err));
    if (master_port < 1 || master_port > 65535)
        return ddp_fail(err, DDP_EMISMATCH, "the launcher's variable %s is %d, not a port",
                        names[TORCH_PORT], master_port);
    /* If MASTER_PORT is at the end of the port range, use the ports below it. */
    m->port = master_port + DDP_RENDEZVOUS_PORTS <= 65535 ? master_port + 1
                                                          : master_port - DDP_RENDEZVOUS_PORTS;
    return 0;
}

int ddp_launcher_rendezvous(const char *port, const char *secret, struct ddp_rendezvous_config *out,
                            struct ddp_err *err)
{
    const char *const job[] = {names[TORCH_RUN_ID], names[TORCH_RESTART], names[TORCH_MASTER],
                               names[TORCH_PORT],   names[HOSTS_JOB],     "SLURM_JOB_ID",
                               "SLURM_STEP_ID"};
    struct ddp_rendezvous_config m = {.ports = DDP_RENDEZVOUS_PORTS, .key.token = DDP_FNV_INIT};
    int64_t value;
    DDP_TRY(set_secret(secret, &m.key, err));
    for (size_t i = 0; i < DDP_COUNT_OF(job); i++) {
        const char *text = getenv(job[i]) != NULL ? getenv(job[i]) : "";
        m.key.token = ddp_fnv1a(m.key.token, text, strlen(text) + 1);
    }
    if (value_of(TORCH_MASTER) != NULL)
        DDP_TRY(find_master(&m, port == NULL, err));
    else
        DDP_TRY(find_slurm_host(&m, err));
    if (port != NULL) {
        if (ddp_parse_int(port, 1, 65535, &value, NULL) != 0)
            return ddp_fail(err, DDP_EUSAGE, "DDPBENCH_PORT is '%.40s', which is not a port", port);
        m.port = (int)value;
        m.ports = 1;
    }
    *out = m;
    return 0;
}

int ddp_launcher_slurm_nodes(void)
{
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    int64_t value;
    return nodes != NULL && ddp_parse_int(nodes, 1, INT32_MAX, &value, NULL) == 0 ? (int)value : 0;
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
