/* The list of data sets, and the search for their folder. */
#include "model/dataset.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/conf.h"
#include "base/fault.h"
#include "base/rng.h"

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

/* Checks that `dir` is a folder. The reader reports files that are missing in the folder. */
static int check_folder(const char *dir, struct ddp_err *err)
{
    struct stat st;
    if (stat(dir, &st) != 0) {
        int code = errno == EACCES ? DDP_EPERM : DDP_ENOINPUT;
        if (errno == ENOENT)
            return ddp_fail(err, code, "no such folder '%s'", dir);
        return ddp_fail_errno(err, code, errno, "cannot open the folder '%s'", dir);
    }
    if (!S_ISDIR(st.st_mode))
        return ddp_fail(err, DDP_ENOINPUT, "'%s' is not a folder", dir);
    return 0;
}

static uint64_t hash_of(const struct ddp_dataset *set)
{
    const struct ddp_images *half[] = {&set->train, &set->eval};
    uint64_t hash = DDP_FNV_INIT;
    for (int i = 0; i < 2; i++) {
        const struct ddp_images *x = half[i];
        size_t pixels = x->count * (size_t)x->channels * (size_t)x->height * (size_t)x->width;
        hash = ddp_fnv1a(hash, x->pixels, pixels);
        hash = ddp_fnv1a(hash, x->labels, x->count);
    }
    return hash;
}

static int load_files(const struct ddp_dataset_reader *reader,
                      const struct ddp_dataset_request *request, struct ddp_dataset *out,
                      struct ddp_err *err)
{
    struct ddp_dataset_request located = *request;
    if (!located.dir)
        located.dir = ddp_conf_get(DDP_CONF_DATA_DIR);
    const bool user_dir = located.dir != NULL;
    if (!user_dir)
        located.dir = ddp_dataset_default_dir(reader);
    int rc = located.dir ? check_folder(located.dir, err)
                         : ddp_fail(err, DDP_ENOINPUT,
                                    "data set '%s' is not installed: there is no folder '%s'",
                                    reader->name, reader->dirs[0]);
    if (rc == 0)
        rc = reader->load(&located, out, err);
    if (rc == DDP_ENOINPUT && !user_dir && reader->package)
        ddp_hint(err, "install the package %s, or name the folder with --data DIR",
                 reader->package);
    else if (rc == DDP_ENOINPUT)
        ddp_hint(err, "name the folder with the files of the data set with --data DIR");
    DDP_TRY(rc);
    snprintf(out->path, sizeof out->path, "%s", located.dir);
    out->hash = hash_of(out);
    const bool known = !user_dir || located.named || !reader->generic || out->hash == reader->hash;
    snprintf(out->name, sizeof out->name, "%s", known ? reader->name : "custom");
    return 0;
}

int ddp_dataset_load(const char *name, const struct ddp_dataset_request *request,
                     struct ddp_dataset *out, struct ddp_err *err)
{
    const struct ddp_dataset_reader *reader = ddp_dataset_find(name);
    DDP_TRY(DDP_FAULT(DATA_LOAD, -1, err));
    if (!reader)
        return ddp_fail(err, DDP_EUSAGE, "unknown data set '%s'", name);
    if (reader->dirs)
        return load_files(reader, request, out, err);
    DDP_TRY(reader->load(request, out, err));
    snprintf(out->name, sizeof out->name, "%s", reader->name);
    out->hash = hash_of(out);
    return 0;
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
