#!/usr/bin/env bats
# Tests the build and lint rules in a small tree with the shipped Makefile and ci/ and tiny sources.

bats_require_minimum_version 1.5.0

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    tree=$BATS_TEST_TMPDIR/tree
    mkdir -p "$tree"/{cmd,lib/base,lib/comm/mpi,lib/exchange,lib/record,tests/unit,results/schema,.ci}
    cp "$root"/results/schema/*.json "$tree/results/schema"
    # ddp.h contains err.h and dtype.h; the build includes banned.h before each file
    cp "$root"/lib/base/{err,dtype,dtype_list,banned}.h "$tree/lib/base"
    cp "$root/lib/exchange/ddp.h" "$tree/lib/exchange"
    cp -r "$root/Makefile" "$root/ci" "$root/.clang-format" "$root/.clang-tidy" "$tree"
    cp "$root/.ci/run" "$tree/.ci"
    cd "$tree" || return
    printf 'int ddp_answer(void);\n' >lib/base/answer.h
    printf '#include "base/answer.h"\n\nint ddp_answer(void)\n{\n    return 42;\n}\n' >lib/base/answer.c
    printf '#include "build_facts.h"\nconst char *ddp_commit = DDP_COMMIT;\n' >lib/record/provenance.c
    cat >lib/comm/mpi/backend_mpi.c <<'END'
#include <mpi.h>
int ddp_mpi_started(void);
int ddp_mpi_started(void)
{
    int started = 0;
    return MPI_Initialized(&started) == 0 && started;
}
END
    cat >cmd/main.c <<'END'
#include "base/answer.h"

int main(void)
{
    return ddp_answer() == 42 ? 0 : 1;
}
END
    unset MAKEFLAGS MFLAGS MAKELEVEL CC CFLAGS LDFLAGS OPT SAN V MPI CUDA GBENCH PREFIX DESTDIR MPI_FLAVOURS DDPBENCH \
        NVCC CUDA_HOME CUDA_PATH CUDA_ARCHS
    # The tree has no sources of backend ucx. Without CUDA, make starts faster, because it looks for no toolkit.
    export UCX=0 CUDA=0
}

value() { # NAME [KNOB...]: prints the value of a make variable
    local name=$1
    shift
    make -s "$@" "print-$name"
}

# path_without TOOL...: prints a PATH with all tools except these.
path_without() {
    local dir=$BATS_TEST_TMPDIR/bin tool
    mkdir -p "$dir"
    find /usr/bin /bin -maxdepth 1 ! -type d -exec ln -sf -t "$dir" {} +
    for tool in "$@"; do rm -f "$dir"/$tool; done
    echo "$dir"
}

@test "build/ddpbench is made and runs; the same knobs rebuild nothing" {
    make MPI=0
    build/ddpbench
    run make MPI=0
    [ "$status" = 0 ]
    [[ $output != *CC* && $output != *LD* && $output != *AR* ]]
}

@test "a changed flag or knob uses another folder; the same ones use the same folder" {
    unset CUDA
    first=$(value O MPI=0)
    [ "$first" = "$(value O MPI=0)" ]
    [ "$first" = "$(value O MPI=0 V=1)" ]
    for knob in OPT=-O1 CFLAGS=-DX LDFLAGS=-s SAN=thread FAULTS=1 WERROR=0 CUDA=0; do
        [ "$first" != "$(value O MPI=0 $knob)" ]
    done
}

@test "a flag with quotes reaches the compiler and the record" {
    make MPI=0 CFLAGS="-DNAME='\"a b\"'"
    grep -F "DDP_CFLAGS \"-O3 -g -DNAME='\\\"a b\\\"'\"" "$(value O MPI=0 CFLAGS="-DNAME='\"a b\"'")"/build_facts.h
}

@test "a changed header, and a removed source, rebuild what they must" {
    printf 'int ddp_spare;\n' >lib/base/spare.c
    make MPI=0
    sleep 0.02
    echo '/* changed */' >>lib/base/answer.h
    run make MPI=0
    [[ $output == *"CC    cmd/main.c"* && $output == *"CC    lib/base/answer.c"* ]]
    [[ $output != *provenance.c* ]]
    rm lib/base/spare.c
    make MPI=0
    run ar t "$(value O MPI=0)/libddpcore.a"
    [[ $output == *answer.o* && $output != *spare* ]]
}

@test "a new commit compiles one file again" {
    git init -q .
    git add . && git -c user.name=a -c user.email=a@b.example commit -qm one
    make MPI=0
    git -c user.name=a -c user.email=a@b.example commit -q --allow-empty -m two
    run make MPI=0
    [ "$(grep -c ' CC ' <<<"$output")" = 1 ]
    [[ $output == *provenance.c* ]]
}

@test "illegal knobs are refused by name" {
    for knob in MPI=2 CUDA=yes GBENCH= WERROR=auto V=3 SAN=memory; do
        run make "$knob"
        [ "$status" = 2 ]
        [[ $output == *"${knob%%=*}="* ]]
    done
}

@test "MPI=0 CUDA=0 builds where neither is installed; MPI=1 says what is missing" {
    unset CUDA
    PATH=$(path_without 'mpi*' 'nvcc*')
    run ! command -v mpicc.openmpi
    make MPI=0 CUDA=0
    build/ddpbench
    make NVCC="$tree/none/nvcc" # auto accepts that nothing is found
    [ ! -e build/ddpbench-mpi-openmpi.so ]
    run make MPI=1
    [ "$status" = 2 ]
    [[ $output == *"mpicc.openmpi"*"make deps"* ]]
    run make CUDA=1 NVCC="$tree/none/nvcc"
    [ "$status" = 2 ]
    [[ $output == *"CUDA=1, but there is no $tree/none/nvcc"* ]]
}

@test "CUDA: the toolkit is found from nvcc; an incomplete one is not used; its sources become a module" {
    unset CUDA
    mkdir -p kit/bin kit/include kit/lib64 lib/device
    printf '#!/bin/sh\necho "Cuda compilation tools, release 99.1, V99.1.2"\n' >kit/bin/nvcc
    chmod +x kit/bin/nvcc
    : >kit/include/cuda_runtime_api.h
    touch lib/device/{dev_cuda,dev_cuda_more,find_cuda_file,cuda_load}.c lib/comm/{backend_nccl,backend_nccl_absent}.c lib/device/k.cu
    [ "$(value HAVE_CUDA NVCC="$tree/kit/bin/nvcc")" = 0 ] || [ -n "$(ls /usr/lib/*/libcudart_static.a)" ]
    run make CUDA=1 NVCC="$tree/kit/bin/nvcc"
    [[ $output == *"has no libcudart_static.a"* ]] || [ -n "$(ls /usr/lib/*/libcudart_static.a)" ]
    sources=" $(value LIB_SRC CUDA=0) "
    [[ $sources == */cuda_load.c* && $sources == *backend_nccl_absent.c* ]]
    [[ $sources != *dev_cuda* && $sources != *find_cuda_file* && $sources != *backend_nccl.c* ]]
    [ -z "$(value CUDA_MODULE CUDA=0)" ]

    : >kit/lib64/libcudart_static.a
    with=(CUDA=1 NVCC="$tree/kit/bin/nvcc")
    sources=" $(value LIB_SRC "${with[@]}") "
    [[ $sources == */cuda_load.c* && $sources == *find_cuda_file.c* && $sources != *dev_cuda* ]]
    objects=" $(value CUDA_MODULE_OBJ "${with[@]}") "
    [[ $objects == *dev_cuda.o* && $objects == *dev_cuda_more.o* && $objects == *lib/device/k.cu.o* ]]
    [[ $(value MODULES MPI=0 "${with[@]}") == *ddpbench-cuda.so* ]]
    [[ $(value CUDA_FLAVOUR "${with[@]}") == *99.1.2* ]]
    printf '#define NCCL_MAJOR 2\n#define NCCL_MINOR 28\n#define NCCL_PATCH 3\n' >kit/include/nccl.h
    sources=" $(value LIB_SRC "${with[@]}") "
    [[ $sources == *backend_nccl.c* && $sources != *backend_nccl_absent.c* ]]
}

@test "CUDA: a compiler or a header that is too old leaves its part out, with the reason; CUDA=1 is an error" {
    unset CUDA
    mkdir -p kit/bin kit/include kit/lib64
    touch kit/include/{cuda_runtime_api,cublas_v2}.h kit/lib64/libcudart_static.a
    toolkit() { # VERSION COMMAND: writes an nvcc of this version that runs the command to preprocess
        printf '#!/bin/sh\ncase $1 in\n--version) echo "Cuda compilation tools, release 1, V%s" ;;\n-E) %s ;;\nesac\n' \
            "$1" "$2" >kit/bin/nvcc
        chmod +x kit/bin/nvcc
    }
    header() { # NAME PREFIX MAJOR MINOR PATCH_NAME
        printf "#define $2_%s\n" "MAJOR $3" "MINOR $4" "$5 0" >"kit/include/$1.h"
    }
    with=(MPI=0 GBENCH=0 NVCC="$tree/kit/bin/nvcc")
    toolkit 12.0.140 true
    [ "$(value HAVE_CUDA "${with[@]}")" = 0 ]
    run make "${with[@]}"
    [ "$status" = 0 ]
    [[ $output == *"note: CUDA is left out: "*"version 12.0.140, but 12.1 is needed"* ]]
    run make "${with[@]}"
    [[ $output != *note:* ]] # the note is printed once
    run make "${with[@]}" CUDA=1
    [ "$status" = 2 ]
    [[ $output == *"CUDA=1, but "*"12.1 is needed"* ]]

    toolkit 12.1.66 'echo "host_config.h:1: error: unsupported GNU version" >&2; exit 1'
    [[ $(value NO_CUDA "${with[@]}") == *"unsupported GNU version"* ]]
    toolkit 12.1.66 true
    [ "$(value HAVE_CUDA "${with[@]}")" = 1 ]
    [[ $(value CUDA_NOTES "${with[@]}" NCCL_HEADER= CUDNN_HEADER=) == *"no nccl.h"*"no cudnn.h"* ]]
    for version in '2 18' '2 23' '2 27'; do
        header nccl NCCL $version PATCH
        [[ $(value NO_NCCL "${with[@]}") == *"NCCL ${version/ /.}.0, but 2.28 is needed" ]]
        [ "$(value HAVE_NCCL "${with[@]}")" = 0 ]
    done
    header nccl NCCL 2 28 PATCH
    [ "$(value HAVE_NCCL "${with[@]}")" = 1 ]
    header cudnn CUDNN 8 9 PATCHLEVEL
    [[ $(value NO_CUDNN "${with[@]}") == *"cuDNN 8.9.0, but 9 is needed" ]]
    header cudnn CUDNN 9 1 PATCHLEVEL
    [ "$(value HAVE_CUDNN "${with[@]}")" = 1 ]
    echo '#error broken' >kit/include/nccl.h
    [[ $(value NO_NCCL "${with[@]}") == *"nccl.h cannot be compiled" ]]
}

@test "GBENCH: 1 without Google Benchmark is an error, auto and 0 build without; with it the helper is built" {
    printf '#!/bin/sh\ncase "$*" in *fsyntax-only*) exit 1 ;; esac\nexec g++ "$@"\n' >no_gbench
    chmod +x no_gbench
    run make MPI=0 GBENCH=1 CXX="$tree/no_gbench"
    [ "$status" = 2 ]
    [[ $output == *"GBENCH=1, but "*"libbenchmark-dev"*"make deps"* ]]
    [ "$(value HELPERS MPI=0 CXX="$tree/no_gbench")" = "" ]
    make MPI=0 CXX="$tree/no_gbench"
    build/ddpbench
    [ -n "$(value HAVE_GBENCH)" ] || skip "no Google Benchmark here"
    mkdir -p lib/run
    cp "$root/cmd/gbench.cc" cmd
    cp "$root/lib/run/gbench.h" lib/run
    printf '#include "run/gbench.h"\nint main(void)\n{\n    return (int)ddp_gbench_run(0, 0);\n}\n' >cmd/kernels_main.c
    make MPI=0 GBENCH=1
    run build/ddpbench-kernels
    [ "$status" = 1 ] # there are no cases to run
    make MPI=0 GBENCH=0
    [ ! -e build/ddpbench-kernels ]
}

@test "without the libraries' headers make says so before any compiler error" {
    printf '#!/bin/sh\ncase "$*" in *-E*) exit 1 ;; esac\nexec cc "$@"\n' >nolibs
    chmod +x nolibs
    run make MPI=0 CC="$tree/nolibs"
    [ "$status" = 2 ]
    [[ $output == *"cJSON and zlib"*"make deps"* ]]
}

@test "the module of each MPI found lies beside the binary" {
    [ -n "$(command -v mpicc.openmpi)" ] || skip "no Open MPI here"
    make
    [ -e build/ddpbench-mpi-openmpi.so ]
    ldd build/ddpbench-mpi-openmpi.so | grep -q libmpi
    run ldd build/ddpbench
    [[ $output == *libc.so* && $output != *libmpi* ]]
}

@test "compile_commands.json is JSON and holds each source with its flags" {
    : >lib/base/fast_avx2.c
    make -s compile_commands.json
    "${PYTHON:-/usr/bin/python3}" - <<'END'
import json
rows = {r["file"]: r["command"] for r in json.load(open("compile_commands.json"))}
assert set(rows) == {"lib/base/answer.c", "lib/base/fast_avx2.c", "lib/record/provenance.c", "cmd/main.c"}, rows
assert "-mavx2" in rows["lib/base/fast_avx2.c"] and "-mavx2" not in rows["cmd/main.c"]
END
}

@test "deps: on a distribution without apt it prints the list and fails; nothing else runs" {
    printf 'ID=fedora\n' >os
    OS_RELEASE=$PWD/os run make deps all
    [ "$status" = 2 ]
    [[ $output == *libcjson-dev* && $output == *dataset-fashion-mnist* ]]
    [ ! -e build/ddpbench ]
    OS_RELEASE=$PWD/os run ci/deps.sh demo
    [ "$status" = 69 ]
}

@test "deps: installs only missing packages, and updates the lists when they lack a package" {
    mkdir fake
    cat >fake/dpkg-query <<'END'
#!/bin/sh
case "$*" in *zlib1g-dev* | *bats* | *spin* | *shellcheck*) exit 1 ;; esac
printf installed
END
    cat >fake/apt-get <<END
#!/bin/sh
echo "\$*" >>$PWD/log
case "\$*" in
*spin*) exit 100 ;;
*-s*) [ -e $PWD/updated ] ;;
*update*) touch $PWD/updated ;;
esac
END
    printf '#!/bin/sh\necho 0\n' >fake/id
    printf 'ID=mint\nID_LIKE="ubuntu debian"\n' >os
    chmod +x fake/*
    PATH=$PWD/fake:$PATH OS_RELEASE=$PWD/os make -j4 deps all MPI=0
    build/ddpbench
    [ "$(wc -l <log)" = 3 ]
    sed -n 2p log | grep -q ' update$'
    sed -n 3p log | grep -q ' install --no-install-recommends zlib1g-dev$'
    PATH=$PWD/fake:$PATH OS_RELEASE=$PWD/os run ci/deps.sh check
    [ "$status" = 0 ]
    grep -q ' install --no-install-recommends zlib1g-dev bats$' log
    grep -q ' install --no-install-recommends shellcheck$' log
    [[ $output == *"going without spin"* ]]
}

@test "deps: the demo needs a part of what check needs; .ci/run asks for check" {
    for package in $(ci/deps.sh demo --list); do
        ci/deps.sh check --list | tr ' ' '\n' | grep -qx -- "$package"
    done
    run ci/deps.sh demo --list
    [[ $output != *mpi* && $output != *bats* && $output != *cmocka* ]]
    [ "$(grep -v '^#' .ci/run | tail -n 1)" = "make deps check" ]
    # the programs that read our outputs are installed by `make readers` alone
    for package in $(ci/deps.sh readers --list); do
        run ! grep -wq -- "$package" <<<"$(ci/deps.sh check --list)"
    done
    make -n readers | grep -q 'ci/deps.sh readers'
    [ "$(make -n deps demo | head -n 1)" = "ci/deps.sh demo" ]
    [ "$(make -n deps check 2>&1 | head -n 1)" = "ci/deps.sh check" ]
}

@test "make help names every phony target of people, and the knobs" {
    run make help
    for word in all test check lint format asan ubsan tsan coverage install uninstall \
        compile_commands.json clean demo deps MPI CUDA GBENCH WERROR PREFIX DESTDIR; do
        [[ $output == *" $word "* ]] || { echo "missing: $word"; false; }
    done
}

@test "lint: the layer check finds its own examples" {
    ci/check_layers.sh --self-test
}

@test "lint: each planted fault fails, a clean tree passes" {
    ci/check_layers.sh
    ci/schema_dtypes.sh
    ci/check_headers.sh
    ci/check_style.sh

    printf 'struct a {\n    size_t n;\n};\n' >lib/base/plain.h
    run ! ci/check_headers.sh
    [[ $output == *"lib/base/plain.h: not self-contained"* ]]
    printf 'struct a {\n    int new;\n};\n' >lib/base/plain.h # not C++
    run ! ci/check_headers.sh
    printf 'int ddp_answer(int question);\n' >lib/base/plain.h # answer.h declares another function
    run ! ci/check_headers.sh
    [[ $output == *"do not compile together"* ]]
    rm lib/base/plain.h

    sed -i 's/^DDP_DTYPE(U8, "u8", /DDP_DTYPE(U8, "byte", /' lib/base/dtype_list.h
    run ! ci/schema_dtypes.sh
    [[ $output == *"make schema"* ]]
    ci/schema_dtypes.sh --fix
    ci/schema_dtypes.sh
    grep -q '"dtype": .*"byte", .*null\]' results/schema/ddpbench-1.schema.json

    printf '#include "comm/x.h"\n' >lib/base/bad.c
    run ! ci/check_layers.sh
    [[ $output == *"lib/base/bad.c:1"* ]]
    printf '#include <stdlib.h>\nint f(const char *a);\nint f(const char *a) { return atoi(a); }\n' >lib/base/bad.c
    run ! make MPI=0 CUDA=0
    [[ $output == *"poisoned"*"atoi"* ]]
    if command -v clang-tidy-14 && command -v cppcheck; then
        rm lib/record/provenance.c # its header is made by the build
        printf 'int f(int a);\nint f(int a)\n{\n    if (a);\n    return a;\n}\n' >lib/base/bad.c
        make MPI=0 CUDA=0 compile_commands.json
        run ! ci/check_tools.sh
        [[ $output == *"bad.c:4"*"bugprone-suspicious-semicolon"* ]]
        printf '#include <stdlib.h>\nvoid f(void);\nvoid f(void)\n{\n    char *p = malloc(1);\n    if (p)\n        *p = 0;\n}\n' >lib/base/bad.c
        run ! ci/check_tools.sh
        [[ $output == *"bad.c:8"*"memleak"* ]] || { echo "$output"; false; }
    fi
    yes 'int x;' | head -n 801 >lib/base/bad.c
    run ! ci/check_style.sh
    : >lib/base/bad.c
    : >lib/comm/bad.c
    run ! ci/check_style.sh
    [[ $output == *bad.c* ]]
}

@test "prove.sh: runs by hand, fails on a failing file and shows its output, closes with the result" {
    printf '#!/bin/sh\necho 1..1\necho "ok 1 fine"\n' >fine.sh
    printf '#!/bin/sh\necho 1..1\necho telling >&2\necho "not ok 1 bad"\nexit 1\n' >bad.sh
    run ci/prove.sh fine.sh
    [ "$status" = 0 ]
    [ "${lines[-1]}" = "Result: PASS" ]
    run ci/prove.sh fine.sh bad.sh
    [ "$status" != 0 ]
    [[ $output == *telling* ]]
    printf '#!/bin/sh\necho 1..1\nsleep 60\n' >slow.sh
    TEST_TIMEOUT=1 run ci/prove.sh slow.sh
    [ "$status" != 0 ]
    [[ $output == *"timed out"* ]]
}

@test "prove.sh: in CI a skip that is not listed, or one that is missing, fails" {
    printf '#!/bin/sh\necho 1..1\necho "ok 1 far # skip no such thing"\n' >far.sh
    echo '# none' >ci/expected_skips.txt
    CI=true run ci/prove.sh far.sh
    [ "$status" != 0 ]
    [[ $output == *"no such thing"* ]]
    CI="" run ci/prove.sh far.sh
    [ "$status" = 0 ]
    echo '1 no such thing' >ci/expected_skips.txt
    CI=true run ci/prove.sh far.sh
    [ "$status" = 0 ]
    [ "${lines[-1]}" = "Result: PASS" ]
    printf '1 no such thing\n1 another\n' >ci/expected_skips.txt
    CI=true run ci/prove.sh far.sh
    [ "$status" != 0 ]
}
