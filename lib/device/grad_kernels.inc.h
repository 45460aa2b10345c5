/* The gradient kernels of one SIMD level: the template behind grad_kernels_*.c.
 *
 * Included once by each level file, after kernels_level_*.inc.h, GRAD_TABLE (the table's name) and
 *   lane_mask                which lanes of a vector
 *   at_least(mag, floor)     the lanes where mag >= floor, signed
 *   mask_bits                a mask as bits, lane 0 the lowest
 *   zero_where(mask, v)      v with these lanes +0
 *   vec_max                  of signed lanes
 *   pack_lanes(to, v, bits)  stores a vector that begins with the lanes in bits; the rest: any
 *   count_bits               of at most LANES bits
 * Results do not depend on the level: lanes never meet, no operation is contracted, and which
 * values are selected is defined without reference to how. */
#ifndef VB
#error "grad_kernels.inc.h is a template: include grad_kernels.h"
#endif

#include <assert.h>
#include <math.h>
#include <stdbool.h>

#include "base/mem.h"
#include "device/element_ops.h"
#include "device/kernels_float.inc.h"

#include "device/grad_map.inc.h"
#include "device/grad_select.inc.h"
#include "device/grad_rank.inc.h"
#include "device/grad_topk.inc.h"

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
