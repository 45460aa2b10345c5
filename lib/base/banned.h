/* Functions that no file of lib/ and cmd/ may call, because they cannot be used safely. The build
 * includes this header before each C, C++ and CUDA file, so a use of such a function is a
 * compile-time error. unit.h, strbuf.h and rng.h have functions to use instead. */
#ifndef DDP_BASE_BANNED_H
#define DDP_BASE_BANNED_H

/* The headers that contain these names come first, because after the pragma each use of the names
 * is an error, also in a header of the C++ library. The preprocessor of nvcc's host compiler obeys
 * the pragma, and the headers of CUDA and Google Benchmark do not use the names. */
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
