/* The table of data sets, and which folder is read. */
#include "model/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/conf.h"

#define DDP_DATASET(symbol) extern const struct ddp_dataset_reader ddp_dataset_##symbol;
#include "model/dataset_list.h"
#undef DDP_DATASET

static const struct ddp_dataset_reader *const readers[] = {
#define DDP_DATASET(symbol) &ddp_dataset_##symbol,
#include "model/dataset_list.h"
#undef DDP_DATASET
    NULL,
};

const struct ddp_dataset_reader *const *ddp_dataset_readers(void)
{
    return readers;
}

const struct ddp_dataset_reader *ddp_dataset_find(const char *name)
{
    for (int i = 0; readers[i]; i++)
        if (strcmp(readers[i]->name, name) == 0)
            return readers[i];
    return NULL;
}

const char *ddp_dataset_default_dir(const struct ddp_dataset_reader *reader)
{
    for (int i = 0; reader->dirs[i]; i++) {
        struct stat st;
        if (stat(reader->dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
            return reader->dirs[i];
    }
    return NULL;
}

int ddp_dataset_load(const char *name, const char *dir, struct ddp_dataset *out,
                     struct ddp_err *err)
{
    const struct ddp_dataset_reader *reader = ddp_dataset_find(name);
    if (!reader)
        return ddp_fail(err, DDP_EUSAGE, "unknown data set '%s'", name);
    if (!dir)
        dir = ddp_conf_get(DDP_CONF_DATA_DIR);
    if (!dir)
        dir = ddp_dataset_default_dir(reader);
    if (!dir) {
        ddp_fail(err, DDP_ENOINPUT, "data set '%s' is not installed: no folder '%s'", name,
                 reader->dirs[0]);
        return ddp_dataset_hint(reader->package, err);
    }
    return reader->load(dir, out, err);
}

int ddp_dataset_hint(const char *package, struct ddp_err *err)
{
    return package
               ? ddp_hint(err, "install the package %s, or name a folder with --data DIR", package)
               : ddp_hint(err, "name the folder that holds its files with --data DIR");
}

void ddp_dataset_release(struct ddp_dataset *set)
{
    if (!set)
        return;
    free(set->train.pixels);
    free(set->train.labels);
    free(set->eval.pixels);
    free(set->eval.labels);
    memset(set, 0, sizeof *set);
}
