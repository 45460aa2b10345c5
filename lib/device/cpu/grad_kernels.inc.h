/* The gradient kernels of one SIMD level: the template behind grad_kernels_*.c.
 *
 * Each level file includes this template once. Before that it includes kernels_level_*.inc.h and
 * defines GRAD_TABLE (the name of the table) and:
 *   lane_mask                a type that selects lanes of a vector
 *   at_least(mag, floor)     the mask of lanes where mag >= floor (signed)
 *   mask_bits(mask)          the mask as an integer; lane 0 is the lowest bit
 *   zero_where(mask, v)      v with +0 in the selected lanes
 *   vec_max(a, b)            the larger value of each pair of signed lanes
 *   pack_lanes(to, v, bits)  stores the lanes of v set in bits, then undefined lanes
 *   count_bits(bits)         the number of bits set in bits (at most LANES)
 *
 * The results do not depend on the level, because lanes are never combined with each other and no
 * operation is contracted. */
#ifndef VB
#error "grad_kernels.inc.h is a template: include grad_kernels.h"
#endif

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "device/element_ops.h"
#include "device/cpu/kernels_float.inc.h"

#include "device/cpu/grad_map.inc.h"
#include "device/cpu/grad_select.inc.h"
#include "device/cpu/grad_rank.inc.h"
#include "device/cpu/grad_topk.inc.h"

const struct ddp_grad_kernels GRAD_TABLE = {
    .narrow = narrow,
    .widen = widen,
    .widen_add = widen_add,
    .narrow_residual = narrow_residual,
    .select_threshold = select_threshold,
    .select_topk = select_topk,
    .scatter_add = ddp_list_scatter_add,
    .scatter = ddp_list_scatter,
    .scatter_zero = ddp_list_scatter_zero,
    .merge = ddp_list_merge,
    .sgd = sgd,
    .adam = adam,
};
