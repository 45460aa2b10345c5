/* Lists of ranks as text: "0, 1, 3", "0-7, 9". */
#ifndef DDP_DIAG_RANK_LIST_H
#define DDP_DIAG_RANK_LIST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Writes the ranks r with mark[r] == wanted. mark has `ranks` elements. Four or more consecutive
 * ranks become a range. Returns the number of ranks with this mark. Text that does not fit is cut
 * and ends in "...". */
int ddp_rank_list(const unsigned char *mark, int ranks, unsigned char wanted, char *out,
                  size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
