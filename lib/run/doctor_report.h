/* The findings of `ddpbench doctor`, and how the ranks of a job combine them. */
#ifndef DDP_RUN_DOCTOR_REPORT_H
#define DDP_RUN_DOCTOR_REPORT_H

#include "base/json.h"
#include "base/network.h"
#include "base/sysinfo.h"
#include "comm/comm.h"
#include "run/command.h"

/* FAIL: ddpbench cannot work here. WARN: ddpbench works, but measurements or features suffer. NOTE:
 * a feature that most users do not need is not available. The enum begins with the worst
 * verdict. */
enum ddp_doctor_verdict {
    DDP_DOCTOR_FAIL,
    DDP_DOCTOR_WARN,
    DDP_DOCTOR_NOTE,
    DDP_DOCTOR_FINE,
    DDP_DOCTOR_VERDICTS
};
extern const char *const ddp_doctor_words[DDP_DOCTOR_VERDICTS]; /* "FAIL", "WARN", "NOTE", "OK" */

struct ddp_finding {
    enum ddp_doctor_verdict verdict;
    char subject[32], fact[400], advice[400];
};

/* Prints a finding. `where` is printed before the subject. It is "" or a text such as "HOST: ". */
void ddp_doctor_print(const struct ddp_finding *f, const char *where, FILE *out);
/* Adds a finding to the JSON array `list`, and returns the added object. */
cJSON *ddp_doctor_add(cJSON *list, const struct ddp_finding *f);

#define DDP_DOCTOR_NETWORK 4
/* Fills the array `out` [DDP_DOCTOR_NETWORK] with the findings about the network of a host. The
 * subject of out[i] depends only on i. */
void ddp_doctor_network(const struct ddp_network_facts *facts, struct ddp_finding *out);

/* Prints the findings of all ranks on rank 0. Equal findings are printed once, with the hosts or
 * ranks that have them. `mine` is the JSON text of the list to which ddp_doctor_add has added this
 * rank's findings. The findings about cores and network in `mine` are ignored. Instead, each host
 * gets such findings from the facts of its ranks. Collective. */
int ddp_doctor_report(struct ddp_comm *comm, const struct ddp_app *app,
                      const struct ddp_sysinfo *info, const char *mine, bool json,
                      struct ddp_err *err) DDP_MUST_CHECK;

#endif
