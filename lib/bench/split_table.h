/* The split (--split) of an all-to-all-v says how much data each rank sends to each rank. The split
 * of an all-gather-v or a reduce-scatter-v is one row. It says how large the part of each rank is
 * (ddp_coll_split_is_row).
 *
 * A split gives every pair of ranks a weight. ddp_split_fill turns the weights into a table of
 * element counts (the member `split` of struct ddp_coll_args). All ranks compute the same table.
 *   even    All weights are equal.
 *   zipf:S  Each rank has a random order of the receivers, which depends on the seed and on the
 *           rank. If the split is one row, there is one random order of the ranks. The k-th rank in
 *           the order has the weight 1/k^S, k = 1, 2, ... A weight below 2^-41 counts as 0.
 *   FILE    The weights are the numbers in a text file. Row r has the weights of the data that rank
 *           r sends to rank 0, 1, ... If the split is one row, the file has one row.
 * The weights are scaled so that a row has `n * count` elements on average, where n is the number
 * of ranks and `count` is the size of a part of the even split. Rows of a FILE may have different
 * sums. A rank with a larger sum then sends more. Parts are rounded so that the parts of a row add
 * up to exactly the row's number of elements. A weight of 0 gives an empty part. */
#ifndef DDP_BENCH_SPLIT_TABLE_H
#define DDP_BENCH_SPLIT_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/coll_kind.h"
#include "base/err.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ddp_split_kind { DDP_SPLIT_EVEN, DDP_SPLIT_ZIPF, DDP_SPLIT_FILE };

/* The largest number of weights in a row of a file, and the largest number of bytes of a file. */
#define DDP_SPLIT_ROWS_MAX  4096
#define DDP_SPLIT_FILE_MOST ((size_t)64 << 20)
/* Largest number in a file. */
#define DDP_SPLIT_WEIGHT_MAX 9007199254740992.0
/* Largest exponent of zipf:S. */
#define DDP_SPLIT_EXPONENT_MAX 64.0

/* If all members are 0, the split is even. */
struct ddp_split {
    enum ddp_split_kind kind;
    double exponent;  /* S of zipf:S */
    const char *path; /* of FILE, as given; borrowed */
    int columns;      /* number of weights in a row of FILE; 0 until it is loaded */
    double *weight;   /* of FILE: [columns][columns], or [columns] if the split is one row */
    /* "even", "zipf:1.2", or for FILE its base name followed by a hash of its weights. Set by
     * ddp_split_parse, and for FILE by ddp_split_load. */
    char name[40];
};

/* Parses the argument of --split. Does not open FILE. Returns DDP_EUSAGE if the exponent of zipf is
 * missing or out of range. */
int ddp_split_parse(const char *text, struct ddp_split *out, struct ddp_err *err) DDP_MUST_CHECK;
/* Reads FILE. Does nothing for the other splits. Numbers are separated by blanks, tabs or commas. A
 * line is a row. Empty lines are ignored, and so is the text from # to the end of a line. Returns
 * the errors of ddp_file_read (base/file.h), or DDP_ENOMEM. Returns DDP_EINPUT with the line if the
 * text is not a number or is negative or too large, or if a row has the wrong length. Also returns
 * DDP_EINPUT if the file is not a text file, has no numbers, has the wrong number of rows, or if
 * all numbers are 0. Release *split with ddp_split_release. */
int ddp_split_load(struct ddp_split *split, enum ddp_coll coll, struct ddp_err *err) DDP_MUST_CHECK;
void ddp_split_release(struct ddp_split *split);
/* Returns DDP_EUSAGE if the split is a FILE for another number of ranks. */
int ddp_split_check_ranks(const struct ddp_split *split, int ranks,
                          struct ddp_err *err) DDP_MUST_CHECK;
/* Fills table [ranks][ranks], or [ranks] if the split is one row. count: elements of a part of the
 * even split. */
void ddp_split_fill(const struct ddp_split *split, enum ddp_coll coll, uint64_t seed, int ranks,
                    size_t count, size_t *table);

/* The elements that ranks exchange. A part that a rank has for itself is not exchanged. */
struct ddp_split_load {
    /* Largest number that any rank sends to others, or receives from others. In an all-gather-v,
     * only the received elements count. In a reduce-scatter-v, only the sent elements count. */
    size_t busiest;
    /* Mean number that a rank receives from others, or in a reduce-scatter-v must send. */
    double mean;
    size_t largest; /* elements of the largest send or recv array of any rank */
};
/* Computes *out from a table of ddp_split_fill. */
void ddp_split_loads(enum ddp_coll coll, const size_t *table, int ranks,
                     struct ddp_split_load *out);

#ifdef __cplusplus
}
#endif
#endif
