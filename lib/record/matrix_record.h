/* The latency and bandwidth between every pair of ranks, or of hosts (`ddpbench matrix`). */
#ifndef DDP_RECORD_MATRIX_RECORD_H
#define DDP_RECORD_MATRIX_RECORD_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The largest number of ends of a matrix. A document with more could not be read again. */
#define DDP_MATRIX_MAX 1024

/* The figures of one direction between two ends. NaN: not measured, or not enough repetitions. */
struct ddp_matrix_cell {
    double latency_ns;    /* half the round trip of a message of 8 bytes */
    double GBps;          /* bandwidth from the first end to the second end, alone */
    double ci95_fraction; /* half the width of the 95 % interval of GBps, divided by GBps */
    double both_GBps;     /* like GBps, but while the second end also sends to the first end */
    /* TCP segments that the host of the first end sent again while GBps was measured, divided by
     * all segments that it sent. NaN also if the messages did not use TCP. */
    double resent_fraction;
};

/* A figure in a document. A value in the document is the value of the cell divided by `unit`. */
struct ddp_matrix_figure {
    const char *key;
    size_t offset; /* of the figure in struct ddp_matrix_cell */
    double unit;
};
#define DDP_MATRIX_CELL_INIT ((struct ddp_matrix_cell){NAN, NAN, NAN, NAN, NAN})
#define DDP_MATRIX_FIGURES   5
extern const struct ddp_matrix_figure ddp_matrix_figures[DDP_MATRIX_FIGURES];
static inline double *ddp_matrix_figure_of(struct ddp_matrix_cell *cell,
                                           const struct ddp_matrix_figure *figure)
{
    return (double *)(void *)((char *)cell + figure->offset);
}

/* An end is a rank or, if by_host is true, the lowest rank of a host. */
struct ddp_matrix {
    bool by_host;
    int32_t ends;
    int32_t rounds, all_rounds; /* rounds that were measured; rounds needed for all pairs */
    uint64_t bytes;             /* size of a message of the bandwidth measurement */
    int32_t *rank;              /* [ends] the world rank of each end */
    /* [ends * ends]; cell[i * ends + j] is the direction from end i to end j. */
    struct ddp_matrix_cell *cell;
};

/* An end as a document shows it. The name of the host is borrowed. */
struct ddp_matrix_end {
    int32_t rank; /* -1: unknown */
    const char *host;
};
/* The tables of the two structs (record/field.h). ddp_matrix_figures has the other keys. */
struct ddp_fields;
extern const struct ddp_fields ddp_matrix_fields, ddp_matrix_end_fields;

/* Returns the cell of the direction between two ends. */
static inline struct ddp_matrix_cell *ddp_matrix_cell_of(const struct ddp_matrix *m, int from,
                                                         int to)
{
    return &m->cell[(size_t)from * (size_t)m->ends + (size_t)to];
}

/* Makes a matrix of `ends` ends without figures. Returns 0 or DDP_ENOMEM. */
int ddp_matrix_init(struct ddp_matrix *m, int ends, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_matrix_release(struct ddp_matrix *m);

/* Packs the matrix into one message, which the caller frees. Returns 0 or DDP_ENOMEM. */
int ddp_matrix_pack(const struct ddp_matrix *m, void **out, size_t *bytes,
                    struct ddp_err *err) DDP_MUST_CHECK;
/* Makes *m from a message. Returns DDP_EINTERNAL if the number of ends is illegal, or if the length
 * of the message does not fit this number. Returns DDP_ENOMEM if memory runs out. */
int ddp_matrix_unpack(const void *message, size_t bytes, struct ddp_matrix *m,
                      struct ddp_err *err) DDP_MUST_CHECK;

/* A summary of all measured directions: the medians, and the directions with the lowest and the
 * highest bandwidth. */
struct ddp_matrix_summary {
    int measured; /* number of measured directions; 0: the other members mean nothing */
    double median_GBps, median_latency_ns;
    int slowest[2], fastest[2]; /* directions: [0] is the sending end, [1] the receiving end */
};
int ddp_matrix_summarize(const struct ddp_matrix *m, struct ddp_matrix_summary *out,
                         struct ddp_err *err) DDP_MUST_CHECK;

#ifdef __cplusplus
}
#endif
#endif
