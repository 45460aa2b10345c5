/* The report of `mpiexec ddpbench doctor`: combines the findings of all ranks and hosts. */
#include "run/doctor_report.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/strbuf.h"
#include "comm/comm_network.h"
#include "report/report_parts.h"
#include "report/terminal_table.h"

#define TAG         1
#define TEXT_COLUMN 6 /* The column in which a finding begins, after its verdict. */
#define NAMED       4 /* A line names at most this many hosts or ranks. */
#define ODD_MAX     8 /* At most this many hosts are reported as different. */

/* The facts about a rank that the job report combines. `bytes`: size of the rank's findings as JSON
 * text. */
struct member {
    char host[64], cpu[96], kernel[64], library[64];
    struct ddp_network_facts network;
    int local_rank, machine_cores, bytes;
    cpu_set_t mask;
};

/* Findings of several ranks with the same verdict and subject. Unless `varies` is true, they also
 * have the same fact. */
struct group {
    struct ddp_finding finding;
    /* True: the fact may differ even between equal machines, and finding.fact is the fact of the
     * first rank. */
    bool varies;
    bool differs; /* The ranks have different facts. */
    bool *has;    /* [comm->size], by rank: the rank has the finding */
};

struct job {
    struct ddp_comm *comm;
    struct member *members; /* [comm->size] */
    int *host;              /* [comm->size], index of the rank's host */
    const char **names;     /* [hosts] */
    int hosts;
    struct group *groups; /* [count] */
    int count;
};

const char *const ddp_doctor_words[DDP_DOCTOR_VERDICTS] = {"FAIL", "WARN", "NOTE", "OK"};

void ddp_doctor_print(const struct ddp_finding *f, const char *where, FILE *out)
{
    static const char *const styles[DDP_DOCTOR_VERDICTS] = {DDP_RED, DDP_YELLOW, DDP_DIM,
                                                            DDP_GREEN};
    struct ddp_strbuf text = DDP_STRBUF_INIT;
    ddp_strbuf_addf(&text, "%s%s: %s%s%s", where, f->subject, f->fact, f->advice[0] ? "; " : "",
                    f->advice);
    ddp_terminal_entry(out, "", ddp_doctor_words[f->verdict], styles[f->verdict], TEXT_COLUMN,
                       text.failed ? f->fact : text.text);
    ddp_strbuf_release(&text);
}

cJSON *ddp_doctor_add(cJSON *list, const struct ddp_finding *f)
{
    cJSON *item = ddp_json_append(list);
    ddp_json_str(item, "verdict", ddp_doctor_words[f->verdict]);
    ddp_json_str(item, "subject", f->subject);
    ddp_json_str(item, "fact", f->fact);
    ddp_json_str(item, "advice", f->advice);
    return item;
}

void ddp_doctor_network(const struct ddp_network_facts *facts, struct ddp_finding *out)
{
    static const char *const subjects[DDP_DOCTOR_NETWORK] = {"nic", "nic speed", "MTU",
                                                             "congestion control"};
    const struct ddp_nic *nic = &facts->nic;
    for (int i = 0; i < DDP_DOCTOR_NETWORK; i++) {
        out[i] = (struct ddp_finding){.verdict = DDP_DOCTOR_FINE};
        snprintf(out[i].subject, sizeof out[i].subject, "%s", subjects[i]);
        snprintf(out[i].fact, sizeof out[i].fact, "unknown");
    }
    if (nic->name[0] == '\0')
        snprintf(out[0].fact, sizeof out[0].fact, "no interface leads to other hosts");
    else
        snprintf(out[0].fact, sizeof out[0].fact, "%s, %s%s", nic->name,
                 nic->driver[0] != '\0' ? "driver " : "without a driver (virtual)", nic->driver);
    if (nic->speed_Mbps >= 0)
        snprintf(out[1].fact, sizeof out[1].fact, "%lld Mbit/s", (long long)nic->speed_Mbps);
    if (nic->mtu >= 0)
        snprintf(out[2].fact, sizeof out[2].fact, "%lld bytes", (long long)nic->mtu);
    if (facts->congestion_control[0] != '\0')
        snprintf(out[3].fact, sizeof out[3].fact, "%s", facts->congestion_control);
}

/* Returns whether add_cores or add_network makes the finding on this subject, once per host. */
static bool is_of_host(const char *subject)
{
    static const struct ddp_network_facts none;
    struct ddp_finding network[DDP_DOCTOR_NETWORK];
    bool found = strcmp(subject, "cores") == 0;
    ddp_doctor_network(&none, network);
    for (int i = 0; i < DDP_DOCTOR_NETWORK; i++)
        found = found || strcmp(subject, network[i].subject) == 0;
    return found;
}

/* Returns whether the facts about this subject may differ even between equal machines. */
static bool varies(const char *subject)
{
    static const char *const subjects[] = {"launcher", "load",       "memory",
                                           "/dev/shm", "gpu clocks", "nic"};
    for (size_t i = 0; i < DDP_COUNT_OF(subjects); i++)
        if (strcmp(subject, subjects[i]) == 0)
            return true;
    return false;
}

/* Returns whether a finding of a rank belongs to a group. A rank may have several findings on a
 * subject, for example one for each GPU. If their facts differ, they belong to different groups. */
static bool same_finding(const struct group *g, const struct ddp_finding *f, int rank)
{
    return g->finding.verdict == f->verdict && strcmp(g->finding.subject, f->subject) == 0 &&
           (g->varies ? !g->has[rank] : strcmp(g->finding.fact, f->fact) == 0);
}

/* Notes that a rank has this finding. */
static int add_finding(struct job *job, const struct ddp_finding *f, int rank, struct ddp_err *err)
{
    int i = 0;
    while (i < job->count && !same_finding(&job->groups[i], f, rank))
        i++;
    if (i == job->count) {
        DDP_TRY(DDP_RESIZE(&job->groups, (size_t)job->count + 1, err));
        struct group *g = &job->groups[i];
        *g = (struct group){.finding = *f, .varies = varies(f->subject)};
        DDP_TRY(DDP_NEW(&g->has, (size_t)job->comm->size, err));
        job->count++;
    }
    job->groups[i].differs |= strcmp(job->groups[i].finding.fact, f->fact) != 0;
    job->groups[i].has[rank] = true;
    return 0;
}

/* Notes that all ranks of a host have this finding. */
static int add_host_finding(struct job *job, const struct ddp_finding *f, int host,
                            struct ddp_err *err)
{
    for (int r = 0; r < job->comm->size; r++)
        if (job->host[r] == host)
            DDP_TRY(add_finding(job, f, r, err));
    return 0;
}

static void read_text(const cJSON *item, const char *key, char *out, size_t out_bytes)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(item, key);
    snprintf(out, out_bytes, "%s", cJSON_IsString(text) ? text->valuestring : "");
}

/* Adds the findings of a rank, which are a list in JSON. Skips the findings that add_cores
 * and add_network add for each host. */
static int add_rank(struct job *job, const char *text, int rank, struct ddp_err *err)
{
    cJSON *list, *item;
    int rc = ddp_json_parse(text, strlen(text), "findings", &list, err);
    if (rc != 0)
        return rc;
    cJSON_ArrayForEach(item, list)
    {
        struct ddp_finding f = {.verdict = DDP_DOCTOR_FAIL};
        char word[8];
        read_text(item, "verdict", word, sizeof word);
        read_text(item, "subject", f.subject, sizeof f.subject);
        read_text(item, "fact", f.fact, sizeof f.fact);
        read_text(item, "advice", f.advice, sizeof f.advice);
        while (f.verdict < DDP_DOCTOR_FINE && strcmp(word, ddp_doctor_words[f.verdict]) != 0)
            f.verdict++;
        if (rc == 0 && !is_of_host(f.subject))
            rc = add_finding(job, &f, rank, err);
    }
    cJSON_Delete(list);
    return rc;
}

/* Sends the findings of this rank to rank 0. Rank 0 adds the findings of all ranks. */
static int collect_findings(struct job *job, const char *mine, struct ddp_err *err)
{
    struct ddp_comm *comm = job->comm;
    struct ddp_request request;
    if (comm->rank > 0) {
        DDP_TRY(ddp_comm_isend(comm, 0, TAG, mine, strlen(mine) + 1, &request, err));
        return ddp_comm_wait(comm, &request, 1, err);
    }
    DDP_TRY(add_rank(job, mine, 0, err));
    for (int r = 1; r < comm->size; r++) {
        const size_t bytes = (size_t)job->members[r].bytes;
        char *text = NULL;
        int rc = DDP_NEW(&text, bytes, err);
        if (rc == 0)
            rc = ddp_comm_irecv(comm, r, TAG, text, bytes, &request, err);
        if (rc == 0)
            rc = ddp_comm_wait(comm, &request, 1, err);
        if (rc == 0)
            rc = add_rank(job, text, r, err);
        free(text);
        DDP_TRY(rc);
    }
    return 0;
}

/* Numbers the hosts in the order of their lowest ranks. */
static int number_hosts(struct job *job, struct ddp_err *err)
{
    DDP_TRY(DDP_NEW(&job->host, (size_t)job->comm->size, err));
    DDP_TRY(DDP_NEW(&job->names, (size_t)job->comm->size, err));
    for (int r = 0; r < job->comm->size; r++) {
        int h = 0;
        while (h < job->hosts && strcmp(job->names[h], job->members[r].host) != 0)
            h++;
        if (h == job->hosts)
            job->names[job->hosts++] = job->members[r].host;
        job->host[r] = h;
    }
    return 0;
}

/* Adds the finding about the cores of a host. Each rank may be bound to cores of its own, so the
 * finding counts the cores of all ranks of the host. */
static int add_cores(struct job *job, int host, struct ddp_err *err)
{
    struct ddp_finding f = {.verdict = DDP_DOCTOR_FINE, .subject = "cores"};
    const struct member *m = job->members;
    cpu_set_t all;
    int ranks = 0, least = CPU_SETSIZE;
    CPU_ZERO(&all);
    for (int r = 0; r < job->comm->size; r++) {
        if (job->host[r] != host)
            continue;
        m = &job->members[r];
        CPU_OR(&all, &all, &m->mask);
        least = DDP_MIN(least, CPU_COUNT(&m->mask));
        ranks++;
    }
    const int cores = CPU_COUNT(&all);
    snprintf(f.fact, sizeof f.fact,
             "%d rank%s on %d of %d cores, at least %d per rank (%s, Linux %s)", ranks,
             ranks == 1 ? "" : "s", cores, m->machine_cores, least,
             m->cpu[0] ? m->cpu : "unknown processor", m->kernel);
    if (cores < ranks) {
        f.verdict = DDP_DOCTOR_WARN;
        ddp_text_append(f.fact, sizeof f.fact,
                        ": ranks take turns, so times include the scheduler");
        snprintf(f.advice, sizeof f.advice, "use as many ranks as cores, or check the binding");
    }
    return add_host_finding(job, &f, host, err);
}

/* Adds the findings about the network of a host. They come from the lowest rank of the host. */
static int add_network(struct job *job, int host, struct ddp_err *err)
{
    struct ddp_finding findings[DDP_DOCTOR_NETWORK];
    int rank = 0;
    while (job->host[rank] != host)
        rank++;
    ddp_doctor_network(&job->members[rank].network, findings);
    for (int i = 0; i < DDP_DOCTOR_NETWORK; i++)
        DDP_TRY(add_host_finding(job, &findings[i], host, err));
    return 0;
}

static int add_connection(struct job *job, struct ddp_err *err)
{
    for (int r = 0; r < job->comm->size; r++) {
        struct ddp_finding f = {.verdict = DDP_DOCTOR_FINE, .subject = "connection"};
        snprintf(f.fact, sizeof f.fact, "%d rank%s on %d host%s are connected by %s",
                 job->comm->size, job->comm->size == 1 ? "" : "s", job->hosts,
                 job->hosts == 1 ? "" : "s", job->members[r].library);
        DDP_TRY(add_finding(job, &f, r, err));
    }
    return 0;
}

/* Returns how many ranks of a host have the finding of g, or how many ranks the host has if g is
 * NULL. */
static int count_ranks(const struct job *job, const struct group *g, int host)
{
    int n = 0;
    for (int r = 0; r < job->comm->size; r++)
        n += job->host[r] == host && (!g || g->has[r]);
    return n;
}

/* Returns the number of hosts on which all ranks have the finding of g. */
static int count_hosts(const struct job *job, const struct group *g)
{
    int n = 0;
    for (int h = 0; h < job->hosts; h++)
        n += count_ranks(job, g, h) == count_ranks(job, NULL, h);
    return n;
}

/* Returns the next subject that none of groups[0..*i] has, or NULL. Sets *i to the first group that
 * has this subject. */
static const char *next_subject(const struct job *job, int count, int *i)
{
    while (++*i < count) {
        const char *subject = job->groups[*i].finding.subject;
        int first = 0;
        while (strcmp(job->groups[first].finding.subject, subject) != 0)
            first++;
        if (first == *i)
            return subject;
    }
    return NULL;
}

/* Returns whether some rank of a host has a finding on the subject. */
static bool host_has(const struct job *job, const char *subject, int host)
{
    for (int i = 0; i < job->count; i++)
        if (strcmp(job->groups[i].finding.subject, subject) == 0 &&
            count_ranks(job, &job->groups[i], host) > 0)
            return true;
    return false;
}

/* Returns whether a host differs from most hosts in a subject. For each finding, the
 * hosts on which every rank has it are counted. The usual finding has the highest count. If a still
 * larger number of hosts has no finding on the subject, a host differs if one of its ranks has a
 * finding. Otherwise a host differs if one of its ranks lacks the usual finding. */
static bool is_odd(const struct job *job, const char *subject, int host)
{
    const struct group *usual = NULL;
    int without = 0;
    for (int i = 0; i < job->count; i++) {
        const struct group *g = &job->groups[i];
        if (strcmp(g->finding.subject, subject) == 0 &&
            (!usual || count_hosts(job, g) > count_hosts(job, usual)))
            usual = g;
    }
    for (int h = 0; h < job->hosts; h++)
        without += !host_has(job, subject, h);
    if (!usual || without > count_hosts(job, usual))
        return host_has(job, subject, host);
    return count_ranks(job, usual, host) < count_ranks(job, NULL, host);
}

/* Adds a warning for each host that differs from most hosts, for at most ODD_MAX hosts. The warning
 * names the subjects. */
static int add_odd_hosts(struct job *job, struct ddp_err *err)
{
    int odd = 0;
    const int count = job->count;
    for (int h = 0; h < job->hosts && odd < ODD_MAX; h++) {
        struct ddp_finding f = {.verdict = DDP_DOCTOR_WARN,
                                .subject = "host",
                                .advice = "compare its hardware and software with those of the "
                                          "other hosts"};
        char subjects[300] = "";
        const char *subject;
        for (int i = -1; (subject = next_subject(job, count, &i)) != NULL;)
            if (is_odd(job, subject, h))
                ddp_text_append(subjects, sizeof subjects, "%s%s", subjects[0] ? ", " : "",
                                subject);
        if (!subjects[0])
            continue;
        odd++;
        snprintf(f.fact, sizeof f.fact, "differs from %s in: %s",
                 job->hosts == 2 ? "the other host" : "most hosts of the job", subjects);
        DDP_TRY(add_host_finding(job, &f, h, err));
    }
    return 0;
}

/* Appends the name if index < NAMED, and "..." if index == NAMED. */
static void append_name(char *out, size_t out_bytes, int index, const char *name)
{
    if (index < NAMED)
        ddp_text_append(out, out_bytes, "%s%s", index > 0 ? ", " : "", name);
    else if (index == NAMED)
        ddp_text_append(out, out_bytes, ", ...");
}

/* Writes which hosts or ranks have a finding, for example "node3: ". Writes "" if the job has one
 * host and all its ranks have the finding. */
static void describe(const struct job *job, const struct group *g, char *out, size_t out_bytes)
{
    const int whole = count_hosts(job, g), size = job->comm->size;
    char names[400] = "";
    int ranks = 0, listed = 0;
    for (int r = 0; r < size; r++)
        ranks += g->has[r];
    out[0] = '\0';
    if (ranks == size && job->hosts > 1)
        snprintf(out, out_bytes, "all %d hosts: ", job->hosts);
    if (ranks == size)
        return;
    int covered = 0;
    for (int h = 0; h < job->hosts; h++)
        if (count_ranks(job, g, h) == count_ranks(job, NULL, h)) {
            covered += count_ranks(job, NULL, h);
            append_name(names, sizeof names, listed++, job->names[h]);
        }
    if (covered == ranks && whole == 1)
        snprintf(out, out_bytes, "%s: ", names);
    else if (covered == ranks && whole > job->hosts / 2)
        snprintf(out, out_bytes, "%d of %d hosts: ", whole, job->hosts);
    else if (covered == ranks)
        snprintf(out, out_bytes, "%d of %d hosts (%s): ", whole, job->hosts, names);
    if (covered == ranks)
        return;
    names[0] = '\0';
    listed = 0;
    for (int r = 0; r < size; r++) {
        char name[100];
        snprintf(name, sizeof name, "rank %d on %s", r, job->names[job->host[r]]);
        if (g->has[r])
            append_name(names, sizeof names, listed++, name);
    }
    snprintf(out, out_bytes, "%s: ", names);
}

/* Returns the finding of a group. If the job has several hosts and the ranks of the group have
 * different facts, appends to the fact the number of the rank that reported it. */
static struct ddp_finding finding_of(const struct job *job, const struct group *g)
{
    struct ddp_finding f = g->finding;
    int rank = 0;
    if (job->hosts == 1 || !g->differs)
        return f;
    while (!g->has[rank])
        rank++;
    ddp_text_append(f.fact, sizeof f.fact, " (on rank %d; other ranks differ)", rank);
    return f;
}

static void print_job(const struct job *job, FILE *out)
{
    char where[512];
    for (int v = 0; v < DDP_DOCTOR_VERDICTS; v++)
        for (int i = 0; i < job->count; i++)
            if ((int)job->groups[i].finding.verdict == v) {
                describe(job, &job->groups[i], where, sizeof where);
                const struct ddp_finding f = finding_of(job, &job->groups[i]);
                ddp_doctor_print(&f, where, out);
            }
}

static int count_groups(const struct job *job, enum ddp_doctor_verdict verdict)
{
    int n = 0;
    for (int i = 0; i < job->count; i++)
        n += job->groups[i].finding.verdict == verdict;
    return n;
}

static void add_group(const struct job *job, const struct group *g, cJSON *list)
{
    const struct ddp_finding f = finding_of(job, g);
    cJSON *item = ddp_doctor_add(list, &f);
    cJSON *hosts = ddp_json_arr(item, "hosts"), *ranks = ddp_json_arr(item, "ranks");
    for (int h = 0; h < job->hosts; h++)
        if (count_ranks(job, g, h) > 0)
            cJSON_AddItemToArray(hosts, cJSON_CreateString(job->names[h]));
    for (int r = 0; r < job->comm->size; r++)
        if (g->has[r])
            cJSON_AddItemToArray(ranks, cJSON_CreateNumber(r));
}

static int print_job_json(const struct job *job, FILE *out, struct ddp_err *err)
{
    cJSON *doc = cJSON_CreateObject();
    ddp_json_str(doc, "host", job->names[0]);
    cJSON *hosts = ddp_json_arr(doc, "hosts");
    for (int h = 0; h < job->hosts; h++)
        cJSON_AddItemToArray(hosts, cJSON_CreateString(job->names[h]));
    ddp_json_count(doc, "ranks", job->comm->size);
    ddp_json_count(doc, "failures", count_groups(job, DDP_DOCTOR_FAIL));
    ddp_json_count(doc, "warnings", count_groups(job, DDP_DOCTOR_WARN));
    cJSON *list = ddp_json_arr(doc, "findings");
    for (int v = 0; v < DDP_DOCTOR_VERDICTS; v++)
        for (int i = 0; i < job->count; i++)
            if ((int)job->groups[i].finding.verdict == v)
                add_group(job, &job->groups[i], list);
    return ddp_json_write(doc, out, err);
}

static void release_job(struct job *job)
{
    for (int i = 0; i < job->count; i++)
        free(job->groups[i].has);
    free(job->groups);
    free(job->names);
    free(job->host);
    free(job->members);
}

static void fill_member(const struct ddp_app *app, const struct ddp_sysinfo *info, size_t bytes,
                        const struct ddp_comm *comm, struct member *out)
{
    const char *library = comm->backend->library ? comm->backend->library() : NULL;
    memset(out, 0, sizeof *out);
    snprintf(out->host, sizeof out->host, "%s", info->host);
    snprintf(out->cpu, sizeof out->cpu, "%s", info->cpu);
    snprintf(out->kernel, sizeof out->kernel, "%s", info->kernel);
    snprintf(out->library, sizeof out->library, "%s", library ? library : "an unknown MPI");
    ddp_network_facts_read("", comm->nic.name, &out->network);
    out->local_rank = app->launcher.rank_info.local_rank;
    out->machine_cores = info->machine_cores;
    out->bytes = (int)bytes;
    if (sched_getaffinity(0, sizeof out->mask, &out->mask) != 0)
        CPU_ZERO(&out->mask);
}

/* Gathers the findings. Rank 0 prints them. */
static int report(struct job *job, const struct ddp_app *app, const struct ddp_sysinfo *info,
                  const char *mine, bool json, struct ddp_err *err)
{
    struct member self;
    DDP_TRY(ddp_comm_find_nic(job->comm, err));
    fill_member(app, info, strlen(mine) + 1, job->comm, &self);
    DDP_TRY(DDP_NEW(&job->members, (size_t)job->comm->size, err));
    DDP_TRY(ddp_comm_allgather_bytes(job->comm, &self, job->members, sizeof self, err));
    DDP_TRY(number_hosts(job, err));
    DDP_TRY(collect_findings(job, mine, err));
    if (job->comm->rank > 0)
        return 0;
    for (int h = 0; h < job->hosts; h++) {
        DDP_TRY(add_cores(job, h, err));
        DDP_TRY(add_network(job, h, err));
    }
    DDP_TRY(add_connection(job, err));
    DDP_TRY(add_odd_hosts(job, err));
    if (json)
        DDP_TRY(print_job_json(job, app->out, err));
    else
        print_job(job, app->out);
    return fflush(app->out) == 0 ? 0 : ddp_fail(err, DDP_ECREATE, "cannot write to stdout");
}

int ddp_doctor_report(struct ddp_comm *comm, const struct ddp_app *app,
                      const struct ddp_sysinfo *info, const char *mine, bool json,
                      struct ddp_err *err)
{
    struct job job = {.comm = comm};
    const int rc = report(&job, app, info, mine, json, err);
    release_job(&job);
    return rc;
}
