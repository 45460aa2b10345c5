/* The table of data sets, and which folder is read. */
#include "model/dataset.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/conf.h"
#include "base/fault.h"

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
    for (int i = 0; reader->dirs && reader->dirs[i]; i++) {
        struct stat st;
        if (stat(reader->dirs[i], &st) == 0 && S_ISDIR(st.st_mode))
            return reader->dirs[i];
    }
    return NULL;
}

bool ddp_dataset_fits(const struct ddp_dataset_reader *reader,
                      const struct ddp_dataset_request *request)
{
    return (reader->channels == 0 || reader->channels == request->channels) &&
           (reader->height == 0 || reader->height == request->height) &&
           (reader->width == 0 || reader->width == request->width) &&
           reader->classes <= request->classes;
}

int ddp_dataset_load(const char *name, const struct ddp_dataset_request *request,
                     struct ddp_dataset *out, struct ddp_err *err)
{
    const struct ddp_dataset_reader *reader = ddp_dataset_find(name);
    DDP_TRY(DDP_FAULT(DATA_LOAD, -1, err));
    if (!reader)
        return ddp_fail(err, DDP_EUSAGE, "unknown data set '%s'", name);
    if (!reader->dirs)
        return reader->load(request, out, err);
    struct ddp_dataset_request where = *request;
    if (!where.dir)
        where.dir = ddp_conf_get(DDP_CONF_DATA_DIR);
    if (!where.dir)
        where.dir = ddp_dataset_default_dir(reader);
    if (!where.dir) {
        ddp_fail(err, DDP_ENOINPUT, "data set '%s' is not installed: no folder '%s'", name,
                 reader->dirs[0]);
        return ddp_dataset_hint(reader->package, err);
    }
    return reader->load(&where, out, err);
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
