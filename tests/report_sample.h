/* For tests of reporters and sinks: a temporary folder, a record to write, and a document to
 * read. Include it after cmocka.h. */
#ifndef DDP_TESTS_REPORT_SAMPLE_H
#define DDP_TESTS_REPORT_SAMPLE_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "record/provenance.h"
#include "report/report.h"

static inline int in_fresh_folder(void **state)
{
    char *folder = strdup("/tmp/ddpbench-report-XXXXXX");
    if (!folder || !mkdtemp(folder) || chdir(folder) != 0)
        return -1;
    *state = folder;
    return 0;
}

static inline int leave_folder(void **state)
{
    DIR *d = opendir(".");
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            remove(e->d_name);
    }
    closedir(d);
    int rc = chdir("/") | rmdir(*state);
    free(*state);
    return rc;
}

/* Returns the number of entries in the current folder, to detect files that were left behind. */
static inline int entries(void)
{
    int n = 0;
    DIR *d = opendir(".");
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));)
        n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return n;
}

static inline char *slurp(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    *bytes = fread(text, 1, (1 << 20) - 1, f);
    fclose(f);
    return text;
}

static char arg0[] = "ddpbench", arg1[] = "allreduce", arg2[] = "", arg3[] = "\xff";
static char *const argv[] = {arg0, arg1, arg2, arg3};

static inline void make_record(struct ddp_record *r)
{
    struct ddp_err err = DDP_ERR_INIT;
    ddp_record_init(r);
    assert_int_equal(ddp_provenance_fill(r, "allreduce", 4, argv, 2, &err), 0);
    r->seed = 1;
    r->world_ranks = 2;
    strcpy(r->world_backend, "shm");
    strcpy(r->launcher, "own");
    strcpy(r->reason, "still running");
}

static inline void add_point(struct ddp_record *r, uint64_t bytes, int iterations)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_point p;
    double samples[100];
    ddp_point_init(&p);
    p.spec = (struct ddp_point_spec){.coll = DDP_ALLREDUCE,
                                     .backend = "shm",
                                     .algorithm = "auto",
                                     .ranks = 2,
                                     .requested_bytes = bytes,
                                     .size_bytes = bytes,
                                     .count = bytes / 4,
                                     .compress = "none"};
    strcpy(p.algorithm_used, "direct");
    for (int i = 0; i < iterations; i++)
        samples[i] = 1000 + i;
    assert_int_equal(ddp_summarize(samples, (size_t)iterations, &p.time_ns), 0);
    p.iterations = iterations;
    p.rank_mean_ns[0] = p.rank_mean_ns[1] = p.rank_mean_ns[2] = 1000;
    p.check = DDP_CHECK_ONCE;
    p.check_elements = 10;
    p.check_wrong = 0;
    p.sample_count = iterations;
    assert_int_equal(ddp_record_add_point(r, &p, samples, &err), 0);
}

static inline cJSON *load(const char *path)
{
    struct ddp_err err = DDP_ERR_INIT;
    size_t bytes;
    cJSON *doc;
    char *text = slurp(path, &bytes);
    assert_int_equal(ddp_json_parse_digest(text, bytes, path, NULL, &doc, &err), 0);
    free(text);
    return doc;
}

static inline const cJSON *get(const cJSON *doc, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(doc, key);
    if (!item)
        fail_msg("no key '%s'", key);
    return item;
}

static inline struct ddp_report_set *open_set(void)
{
    struct ddp_err err = DDP_ERR_INIT;
    struct ddp_report_set *set;
    assert_int_equal(ddp_report_open(&set, &err), 0);
    return set;
}

static inline int add(struct ddp_report_set *set, const char *name, const char *path,
                      struct ddp_err *err)
{
    *err = DDP_ERR_INIT;
    return ddp_report_add(set, ddp_reporter_find(name), path, err);
}

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, in_fresh_folder, leave_folder)

#endif
