/* Records each rank's own gradients before they are exchanged, in one NPY file per rank. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "train/trainer_impl.h"

#define PATH_BYTES 4096

static int open_file(struct ddp_trainer *t, struct ddp_err *err)
{
    const char *dir = t->o->dump_dir;
    t->dump_path = ddp_calloc(PATH_BYTES, 1);
    t->dump_row = ddp_calloc(t->total, sizeof *t->dump_row);
    if (!t->dump_path || !t->dump_row)
        return ddp_fail(err, DDP_ENOMEM, "no memory to record gradients");
    if (mkdir(dir, 0777) != 0 && errno != EEXIST)
        return ddp_fail_errno(err, DDP_ECREATE, errno, "cannot create folder '%s'", dir);
    int n = snprintf(t->dump_path, PATH_BYTES, "%s/rank%d.npy", dir, t->comm->rank);
    if (n < 0 || n >= PATH_BYTES)
        return ddp_fail(err, DDP_ECREATE, "the path of folder '%.64s...' is too long", dir);
    return ddp_npy_create(t->dump_path, t->total, &t->dump, err);
}

int ddp_trainer_dump_open(struct ddp_trainer *t, struct ddp_err *err)
{
    if (!t->o->dump_dir)
        return 0;
    return ddp_comm_agree(t->comm, open_file(t, err), err);
}

bool ddp_trainer_dump_due(const struct ddp_trainer *t)
{
    return t->o->dump_dir && t->step % t->o->dump_every == 0;
}

int ddp_trainer_dump(struct ddp_trainer *t, double factor, struct ddp_err *err)
{
    DDP_TRY(ddp_trainer_device_wait(t, err));
    const float *grads = ddp_trainer_read(t, t->grads, t->total);
    for (size_t i = 0; i < t->total; i++)
        t->dump_row[i] = (float)(grads[i] * factor);
    return ddp_npy_append(&t->dump, t->dump_row, err);
}

void ddp_trainer_dump_close(struct ddp_trainer *t)
{
    ddp_npy_close(&t->dump);
    free(t->dump_row);
    free(t->dump_path);
}
