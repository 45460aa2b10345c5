/* The findings of `ddpbench doctor`, and how the ranks of a job combine them. */
#ifndef DDP_CMD_DOCTOR_IMPL_H
#define DDP_CMD_DOCTOR_IMPL_H

#include "base/json.h"
#include "base/sysinfo.h"
#include "cmd.h"

/* FAIL: ddpbench cannot work here. WARN: ddpbench works, but measurements or features suffer. The
 * worst comes first. */
enum severity { FAIL, WARN, FINE, SEVERITY_COUNT };
extern const char *const ddp_doctor_words[SEVERITY_COUNT]; /* "FAIL", "WARN", "OK" */

struct finding {
    enum severity verdict;
    char subject[32], fact[400], advice[400];
};

/* Prints a line. `where` stands before the subject: "", or a text such as "HOST: ". */
void ddp_doctor_print(const struct finding *f, const char *where, FILE *out);
/* Adds a finding to a list of a document, and returns the object. */
cJSON *ddp_doctor_add(cJSON *list, const struct finding *f);

/* Connects the ranks of a job that mpiexec or srun started. Rank 0 then prints the findings of all
 * ranks: equal ones once, and with the hosts or ranks that have them. Returns true if that was
 * done. Returns false if the ranks could not be connected. Nothing is printed then. All ranks of
 * the job call this function. Sets *child for ddp_doctor_end_child. */
bool ddp_doctor_job(const struct ddp_app *app, const struct ddp_sysinfo *info,
                    const struct finding *findings, int count, bool json, pid_t *child);
/* Waits for the child process that ddp_doctor_job has started, and ends it at last. `done`: the
 * result of ddp_doctor_job. If the ranks could not be connected, the child still waits in MPI. Its
 * end would make the launcher end the job before other hosts have printed, so the rank waits too.
 */
void ddp_doctor_end_child(const struct ddp_app *app, pid_t child, bool done);
/* Returns how long a rank that cannot take part in ddp_doctor_job waits for the others before it
 * exits, in us. A launcher ends the job when the first rank fails. */
int64_t ddp_doctor_linger_us(const struct ddp_app *app);

#endif
