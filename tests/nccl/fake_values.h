/* Converts elements of all types from and to long double, with which the fake NCCL calculates. */
#ifndef DDP_TESTS_FAKE_VALUES_H
#define DDP_TESTS_FAKE_VALUES_H

#include <nccl.h>
#include <stdint.h>
#include <string.h>

#include "device/element_ops.h"

/* Each type that is converted by a cast: its NCCL name and its C type. */
#define CAST_TYPES(X)                                                                              \
    X(ncclFloat64, double)                                                                         \
    X(ncclFloat32, float)                                                                          \
    X(ncclFloat16, _Float16)                                                                       \
    X(ncclInt8, int8_t)                                                                            \
    X(ncclUint8, uint8_t)                                                                          \
    X(ncclInt32, int32_t)                                                                          \
    X(ncclUint32, uint32_t)                                                                        \
    X(ncclInt64, int64_t)                                                                          \
    X(ncclUint64, uint64_t)

static inline size_t size_of(ncclDataType_t t)
{
    switch (t) {
#define SIZE_OF(name, type)                                                                        \
    case name:                                                                                     \
        return sizeof(type);
        CAST_TYPES(SIZE_OF)
#undef SIZE_OF
    default:
        return t == ncclBfloat16 ? 2 : 1;
    }
}

static inline enum ddp_dtype fp8_of(ncclDataType_t t)
{
    return t == ncclFloat8e4m3 ? DDP_FP8_E4M3 : DDP_FP8_E5M2;
}

/* A long double holds every 64-bit integer. */
static inline long double get(const unsigned char *at, size_t i, ncclDataType_t t)
{
    switch (t) {
#define GET(name, type)                                                                            \
    case name:                                                                                     \
        return (long double)((const type *)(const void *)at)[i];
        CAST_TYPES(GET)
#undef GET
    case ncclBfloat16:
        return (long double)ddp_bf16_widen(((const uint16_t *)(const void *)at)[i]);
    default:
        return (long double)ddp_fp8_widen(at[i], fp8_of(t));
    }
}

static inline void set(unsigned char *at, size_t i, ncclDataType_t t, long double v)
{
    switch (t) {
#define SET(name, type)                                                                            \
    case name:                                                                                     \
        ((type *)(void *)at)[i] = (type)v;                                                         \
        break;
        CAST_TYPES(SET)
#undef SET
    case ncclBfloat16:
        ((uint16_t *)(void *)at)[i] = ddp_bf16_narrow((float)v);
        break;
    default:
        at[i] = ddp_fp8_result((float)v, fp8_of(t));
    }
}

static inline long double combine(long double a, long double b, ncclRedOp_t op)
{
    return op == ncclProd  ? a * b
           : op == ncclMax ? (a > b ? a : b)
           : op == ncclMin ? (a < b ? a : b)
                           : a + b;
}

/* NCCL rounds every product and every sum to the type. */
static inline long double rounded(long double v, ncclDataType_t t)
{
    unsigned char bits[8];
    set(bits, 0, t, v);
    return get(bits, 0, t);
}

#endif
