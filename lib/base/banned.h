/* Forbids functions that are easy to misuse. No file of lib/ and cmd/ may call them. The build
 * includes this header before each C, C++ and CUDA file, so a use of such a function is a
 * compile-time error. unit.h, strbuf.h and rng.h have functions to use instead. */
#ifndef DDP_BASE_BANNED_H
#define DDP_BASE_BANNED_H

/* The headers that contain these names come before the pragma, because after it each use of the
 * names is an error, even in a system header. The pragma also works in CUDA files, because nvcc
 * uses the preprocessor of the host compiler. The headers of CUDA and Google Benchmark do not use
 * the names. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>
#ifdef __cplusplus
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cwchar>
#endif

#undef alloca
#pragma GCC poison strcpy strcat stpcpy sprintf vsprintf gets strtok atoi atol atoll atof alloca   \
    rand srand

#endif
