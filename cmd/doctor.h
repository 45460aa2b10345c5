/* The doctor's findings. doctor.c runs the checks of doctor_*.c and prints the findings, worst
 * first. Private to those files. */
#ifndef DDP_CMD_DOCTOR_H
#define DDP_CMD_DOCTOR_H

#include "base/sysinfo.h"
#include "cmd.h"

/* DDP_FAIL: ddpbench cannot work here. DDP_WARN: ddpbench works, but measurements or features
 * suffer. The worst verdict comes first. */
enum ddp_severity { DDP_FAIL, DDP_WARN, DDP_FINE, DDP_SEVERITY_COUNT };

struct ddp_finding {
    enum ddp_severity verdict;
    char subject[32], fact[400], advice[400];
};

#define DDP_FINDINGS_MAX 48

struct ddp_doctor {
    struct ddp_app *app;
    struct ddp_sysinfo info;
    struct ddp_finding findings[DDP_FINDINGS_MAX];
    int count;
};

/* Adds a finding, unless there are DDP_FINDINGS_MAX already. advice says what to do, or is "". */
void ddp_doctor_find(struct ddp_doctor *d, enum ddp_severity verdict, const char *subject,
                     const char *advice, const char *fmt, ...) DDP_PRINTF(5, 6);

/* doctor_world.c: the launcher, and the ways in which ranks can reach each other. */
void ddp_doctor_launcher(struct ddp_doctor *d);
void ddp_doctor_backends(struct ddp_doctor *d);
void ddp_doctor_mpi(struct ddp_doctor *d);
void ddp_doctor_gpus(struct ddp_doctor *d);
/* Checks that the helper program of `ddpbench kernels` is installed. */
void ddp_doctor_kernels(struct ddp_doctor *d);
/* doctor_host.c: the machine, and the requirements of training. */
void ddp_doctor_cores(struct ddp_doctor *d);
void ddp_doctor_noise(struct ddp_doctor *d);
void ddp_doctor_shared_memory(struct ddp_doctor *d);
void ddp_doctor_memory(struct ddp_doctor *d);
void ddp_doctor_training(struct ddp_doctor *d);

#endif
