/* Ranks in words: "0, 1, 3", "0-7, 9". */
#ifndef DDP_COMM_RANK_LIST_H
#define DDP_COMM_RANK_LIST_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Those r with mark[r] == wanted, of mark [ranks]; four and more in a row are a range. Returns how
 * many they are; what does not fit is cut with "...". */
int ddp_rank_list(const unsigned char *mark, int ranks, unsigned char wanted, char *out,
                  size_t out_bytes);

#ifdef __cplusplus
}
#endif
#endif
