/* The checks of `ddpbench doctor`: this process examines its machine, its launcher and the
 * libraries that ddpbench uses. */
#ifndef DDP_RUN_DOCTOR_CHECKS_H
#define DDP_RUN_DOCTOR_CHECKS_H

#include "run/doctor_report.h"

#define DDP_DOCTOR_FINDINGS_MAX 48

struct ddp_doctor {
    const struct ddp_app *app;
    struct ddp_sysinfo info;
    struct ddp_finding findings[DDP_DOCTOR_FINDINGS_MAX];
    int count;
};

/* Runs all checks, and fills all members of *d except `app`, which the caller has set. Must not be
 * called while this process has other threads. */
void ddp_doctor_examine(struct ddp_doctor *d);

#endif
