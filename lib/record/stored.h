/* Reads a result document back into a record, for programs that show stored results. This reader
 * first calls the functions of result_file.h, which read and check the parts that `gate` and
 * `compare` judge. */
#ifndef DDP_RECORD_STORED_H
#define DDP_RECORD_STORED_H

#include "record/across.h"
#include "record/record.h"
#include "record/result_file.h"
#include "record/verdict_record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A document. The members point into each other, so the struct must not be copied. */
struct ddp_stored {
    struct ddp_result result; /* The checked parts, with the repetitions of a point merged. */
    size_t *merged; /* [record.point_count]: the index of each point's merged point in `result`. */
    struct ddp_record record;
    /* Arguments of the record and other borrowed texts point into the document. */
    cJSON *doc;
    const char **argv;
    /* record.verdict points to `verdict`, which points to the members after it. */
    struct ddp_verdict_record verdict;
    struct ddp_noise noise;
    struct ddp_across across;
    struct ddp_result *across_results;
};

/* Reads a file. Returns the errors of ddp_result_read. A value that is missing in a document of
 * another version stays unknown. Release *out with ddp_stored_release. */
int ddp_stored_read(const char *path, const struct ddp_result_rules *rules, struct ddp_stored *out,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Parses the first `bytes` bytes of `text`. name: the document's name in messages. */
int ddp_stored_parse(const char *text, size_t bytes, const char *name,
                     const struct ddp_result_rules *rules, struct ddp_stored *out,
                     struct ddp_err *err) DDP_MUST_CHECK;
void ddp_stored_release(struct ddp_stored *stored);
/* Reads `count` files into *docs [count]. Free *docs with ddp_stored_free. Returns the errors of
 * ddp_stored_read. After an error, *docs is already freed. */
int ddp_stored_read_all(const char *const *paths, size_t count,
                        const struct ddp_result_rules *rules, struct ddp_stored **docs,
                        struct ddp_err *err) DDP_MUST_CHECK;
void ddp_stored_free(struct ddp_stored *docs, size_t count);

#ifdef __cplusplus
}
#endif
#endif
