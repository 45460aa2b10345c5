/* Converts elements of all types from and to double, with which the fake NCCL calculates. */
#ifndef DDP_TESTS_FAKE_VALUES_H
#define DDP_TESTS_FAKE_VALUES_H

#include <nccl.h>
#include <stdint.h>
#include <string.h>

static inline size_t size_of(ncclDataType_t t)
{
    return t == ncclFloat64                        ? 8
           : t == ncclFloat32 || t == ncclInt32    ? 4
           : t == ncclFloat16 || t == ncclBfloat16 ? 2
                                                   : 1;
}

static inline double get(const unsigned char *at, size_t i, ncclDataType_t t)
{
    float f;
    uint32_t bits;
    switch (t) {
    case ncclFloat64:
        return ((const double *)(const void *)at)[i];
    case ncclFloat32:
        return (double)((const float *)(const void *)at)[i];
    case ncclInt32:
        return ((const int32_t *)(const void *)at)[i];
    case ncclFloat16:
        return (double)((const _Float16 *)(const void *)at)[i];
    case ncclBfloat16:
        bits = (uint32_t)((const uint16_t *)(const void *)at)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    default:
        return at[i];
    }
}

static inline void set(unsigned char *at, size_t i, ncclDataType_t t, double v)
{
    float f = (float)v;
    uint32_t bits;
    switch (t) {
    case ncclFloat64:
        ((double *)(void *)at)[i] = v;
        break;
    case ncclFloat32:
        ((float *)(void *)at)[i] = f;
        break;
    case ncclInt32:
        ((int32_t *)(void *)at)[i] = (int32_t)(int64_t)v;
        break;
    case ncclFloat16:
        ((_Float16 *)(void *)at)[i] = (_Float16)f;
        break;
    case ncclBfloat16:
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)(void *)at)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
        break;
    default:
        at[i] = (unsigned char)(int64_t)v;
    }
}

static inline double combine(double a, double b, ncclRedOp_t op)
{
    return op == ncclProd  ? a * b
           : op == ncclMax ? (a > b ? a : b)
           : op == ncclMin ? (a < b ? a : b)
                           : a + b;
}

/* NCCL rounds every product and every sum to the type. */
static inline double rounded(double v, ncclDataType_t t)
{
    unsigned char bits[8];
    set(bits, 0, t, v);
    return get(bits, 0, t);
}

#endif
