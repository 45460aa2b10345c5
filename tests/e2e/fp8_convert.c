/* Converts between f32 and 8-bit floats with the codecs of device/element_ops.h, for
 * tests/e2e/fp8_codes.py. Usage: fp8_convert TYPE narrow|widen <ELEMENTS >ELEMENTS */
#include <stdio.h>
#include <string.h>

#include "device/element_ops.h"

#define N 65536

int main(int argc, char **argv)
{
    static float wide[N];
    static uint8_t code[N];
    const int dtype = argc == 3 ? ddp_dtype_parse(argv[1]) : -1;
    const int narrows = argc == 3 && strcmp(argv[2], "narrow") == 0;
    size_t n;
    if (dtype != DDP_FP8_E4M3 && dtype != DDP_FP8_E5M2) {
        fprintf(stderr, "usage: fp8_convert fp8-e4m3|fp8-e5m2 narrow|widen\n");
        return 64;
    }
    while ((n = narrows ? fread(wide, 4, N, stdin) : fread(code, 1, N, stdin)) > 0) {
        for (size_t i = 0; i < n; i++) {
            if (narrows)
                code[i] = ddp_fp8_narrow(wide[i], (enum ddp_dtype)dtype);
            else
                wide[i] = ddp_fp8_widen(code[i], (enum ddp_dtype)dtype);
        }
        if ((narrows ? fwrite(code, 1, n, stdout) : fwrite(wide, 4, n, stdout)) != n)
            return 1;
    }
    return ferror(stdin) != 0;
}
