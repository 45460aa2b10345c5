/* The ratios of several result documents to the first document, as `ddpbench compare --across`
 * shows them. There is no verdict, because the documents may come from different machines. */
#ifndef DDP_RECORD_ACROSS_H
#define DDP_RECORD_ACROSS_H

#include <stddef.h>

#include "record/result_file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ddp_across_document {
    char name[512]; /* The path, and marks such as "partial". */
    const struct ddp_result *result;
};

/* A cell in two documents: in the first one, which is called base, and in another one. */
struct ddp_across_cell {
    const char *id;
    size_t document; /* Index of the other document, from 1. */
    /* base_ns, next_ns: medians in base and in the other document, NaN in a document that lacks the
     * cell. ratio: next_ns / base_ns. lower, upper: smallest and largest ratio that the 95 %
     * intervals of both medians allow, NaN if an interval is unknown. */
    double base_ns, next_ns, ratio, lower, upper;
};

/* A fact in which a document differs from base. */
struct ddp_across_difference {
    size_t document; /* Index of the other document, from 1. */
    const char *key; /* "CPU", "host names", "build" and so on. */
    const char *base, *next;
};

/* Everything that --across shows. All texts are borrowed from the results, or from the document
 * that was read. */
struct ddp_across {
    struct ddp_across_document *documents; /* [document_count] */
    struct ddp_across_cell *cells;         /* [count], ordered by cell, then by document */
    struct ddp_across_difference *differences;
    size_t document_count, count, difference_count;
};

/* The tables of the structs (record/field.h). A document shows a result by ddp_result_fields. */
extern const struct ddp_fields ddp_across_document_fields, ddp_across_cell_fields,
    ddp_across_difference_fields;

/* Fills *out from results [count]. names[i] is the name of results[i]. Release *out with
 * ddp_across_release before you release the results. Returns DDP_EUSAGE if there are too many
 * ratios, or DDP_ENOMEM. */
int ddp_across_build(const struct ddp_result *results, char (*names)[512], size_t count,
                     struct ddp_across *out, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_across_release(struct ddp_across *across);

/* The ratio of two medians, and its smallest and largest plausible value. */
struct ddp_ratio {
    double ratio, lower, upper;
};
/* Returns the ratio of b to a. lower and upper are the smallest and largest ratio that the 95 %
 * intervals of both medians allow. NaN: unknown. */
struct ddp_ratio ddp_result_ratio(const struct ddp_result_point *a,
                                  const struct ddp_result_point *b);

#ifdef __cplusplus
}
#endif
#endif
