#!/usr/bin/env bats
# libddp for its users: installed, found by pkg-config, and linked to a client that needs no other
# file of ddpbench; as a shared and a static library, from C++ and from Python, and under mpiexec.
# jobs: 2
# shellcheck disable=SC2154 # output, status: bats
bats_require_minimum_version 1.5.0

setup_file() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export root
    command -v pkg-config >/dev/null || skip "no pkg-config here"
    O=$(dirname "$(readlink -f "${DDPBENCH:-$root/build/ddpbench}")")
    make -s -C "$root" O="${O#"$root"/}" install DESTDIR="$BATS_FILE_TMPDIR" PREFIX=/first >/dev/null
    # The installed tree is moved, so no file may depend on its first location.
    mv "$BATS_FILE_TMPDIR/first" "$BATS_FILE_TMPDIR/prefix"
    export prefix=$BATS_FILE_TMPDIR/prefix
    export PKG_CONFIG_PATH=$prefix/lib/pkgconfig LD_LIBRARY_PATH=$prefix/lib
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    export client=$BATS_FILE_TMPDIR/nnabla_client
    # shellcheck disable=SC2046 # a list of flags
    ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror -pedantic -o "$client" \
        "$BATS_TEST_DIRNAME/nnabla_client.c" $(pkg-config --cflags --libs ddp) -lm
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c11 -O2 -o "$prefix/bin/static_client" "$BATS_TEST_DIRNAME/nnabla_client.c" \
        $(pkg-config --cflags ddp) "$prefix/lib/libddp.a" $(pkg-config --static --libs-only-other ddp) -lm -ldl -pthread
    # shellcheck disable=SC2046
    ${CC:-cc} -std=c11 -O2 -Wall -Wextra -Werror -pedantic -o "$prefix/bin/sync_client" \
        "$BATS_TEST_DIRNAME/sync_client.c" $(pkg-config --cflags --libs ddp) -lm
    export yield=$BATS_FILE_TMPDIR/yield.so
    ${CC:-cc} -shared -fPIC -O2 -D_GNU_SOURCE -o "$yield" "$root/tests/mpi/yield.c"
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return
}

# falls TIMES DIGIT COMMAND...: COMMAND succeeds, and TIMES losses fall to 0.DIGIT or less.
falls() {
    local times=$1 digit=$2
    shift 2
    run timeout --kill-after=5 60 "$@"
    echo "exit $status: $output"
    [ "$status" = 0 ]
    [ "$(grep -c "loss 0\.[67].* -> 0\.[0-$digit]" <<<"$output")" = "$times" ]
}

# Runs COMMAND..., which must train with each of the three methods and report each.
trains() { falls 3 3 "$@"; }

@test "pkg-config tells version, flags and libraries" {
    [ "$(pkg-config --modversion ddp)" = "$(make -s -C "$root" print-VERSION)" ]
    [[ $(pkg-config --libs ddp) == *-lddp* ]]
    [ "$(pkg-config --libs-only-l ddp | xargs)" = -lddp ]
    [[ $(pkg-config --static --libs-only-l ddp) == *-lm* ]]
}

@test "the shared library: a versioned name, no libraries but libc's, no names but ours" {
    so=$prefix/lib/libddp.so
    [ "$(readelf -d "$so" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')" = libddp.so.0 ]
    [ -e "$prefix/lib/libddp.so.0" ]
    run bash -c "readelf -d '$so' | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libm|libc|libdl|libpthread|ld-linux.*|lib[a-z]*san)\.so'"
    [ -z "$output" ]
    run bash -c "nm -D --defined-only '$so' | awk '{ print \$3 }' | grep -vE '^(ddp_|LIBDDP_)'"
    [ -z "$output" ]
}

@test "the header: no include of ours, C11 and C++17 without a warning" {
    run grep -nE '#include "' "$prefix/include/ddp.h"
    [ -z "$output" ]
    for lang in c:c11 c:c17 c++:c++11 c++:c++17 c++:c++20; do
        command -v g++ >/dev/null || [ "${lang%%:*}" = c ] || continue
        echo "#include <ddp.h>" >"$BATS_TEST_TMPDIR/only.c"
        # shellcheck disable=SC2046
        ${CC:-cc} -x "${lang%%:*}" -std="${lang##*:}" -pedantic -Wall -Wextra -Werror \
            $(pkg-config --cflags ddp) -fsyntax-only only.c
    done
}

@test "a client in C++17" {
    command -v g++ >/dev/null || skip "no g++ here"
    # shellcheck disable=SC2046
    g++ -std=c++17 -pedantic -Wall -Wextra -Werror -o header_client \
        "$BATS_TEST_DIRNAME/header_client.cc" $(pkg-config --cflags --libs ddp)
    ./header_client
}

@test "nnabla's tutorial net, 2 and 4 ranks as processes and as threads" {
    for ranks in 2 4; do
        trains "$client" "$ranks" processes
        [[ $output == *"$ranks ranks over shm"* ]]
        trains "$client" "$ranks" threads
    done
}

@test "the same alone, and linked to the static library" {
    trains "$client" world
    [[ $output == *"1 ranks over self"* ]]
    unset LD_LIBRARY_PATH
    trains "$prefix/bin/static_client" 2 processes
}

# FLAVOUR: runs over the memory of one host, then with one or two ranks per simulated host, so that
# the bucketer's thread and the rank are both inside MPI. The static client exports no names. Four ranks of
# MPICH must be made to yield.
under_mpiexec() {
    command -v "mpiexec.$1" >/dev/null || skip "no mpiexec.$1 here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-$1.so" ] || skip "no module for $1 was built"
    local more=()
    [ "$1" != openmpi ] || more=(--oversubscribe)
    for ranks in 2 4; do
        [ "$1" = openmpi ] || [ "$ranks" -le "$(nproc)" ] || more=(-genv LD_PRELOAD "$yield")
        trains "mpiexec.$1" "${more[@]}" -n "$ranks" "$client" world
        [[ $output == *"$ranks ranks over mpi"* ]]
        DDPBENCH_SIMULATE_HOSTS=2 trains "mpiexec.$1" "${more[@]}" -n "$ranks" "$client" world
    done
    [ "$1" = openmpi ] || more=()
    LD_LIBRARY_PATH='' trains "mpiexec.$1" "${more[@]}" -n 2 "$prefix/bin/static_client" world
    [[ $output == *"2 ranks over mpi"* ]]
}

@test "under mpiexec of Open MPI" {
    under_mpiexec openmpi
}

@test "under mpiexec of MPICH" {
    under_mpiexec mpich
}

# Runs COMMAND..., which must train with each of the nine strategies.
synchronises() { falls 9 4 "$@"; }

@test "sync strategies: alone, 2 and 3 ranks, and under mpiexec" {
    synchronises "$prefix/bin/sync_client" world
    for ranks in 2 3; do
        synchronises "$prefix/bin/sync_client" "$ranks" processes
        synchronises "$prefix/bin/sync_client" "$ranks" threads
    done
    command -v mpiexec.openmpi >/dev/null || skip "no mpiexec.openmpi here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-openmpi.so" ] || skip "no module for openmpi was built"
    for hosts in 1 2; do
        DDPBENCH_SIMULATE_HOSTS=$hosts synchronises mpiexec.openmpi --oversubscribe -n 2 "$prefix/bin/sync_client" world
    done
}

@test "from Python, which shows the library's names to nobody" {
    command -v mpiexec.openmpi >/dev/null || skip "no mpiexec.openmpi here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-openmpi.so" ] || skip "no module for openmpi was built"
    cat >client.py <<'PY'
import ctypes, sys
lib = ctypes.CDLL("libddp.so.0")
lib.ddp_rank.argtypes = lib.ddp_size.argtypes = lib.ddp_finalize.argtypes = [ctypes.c_void_p]
lib.ddp_barrier.argtypes = [ctypes.c_void_p] * 3
d = ctypes.c_void_p()
if lib.ddp_init(None, ctypes.byref(d), None) or lib.ddp_barrier(d, None, None):
    sys.exit(1)
rank = lib.ddp_rank(d)
with open(f"python.{rank}", "w") as out:  # a file each: mpiexec mixes what its ranks print
    out.write(f"rank {rank} of {lib.ddp_size(d)}")
lib.ddp_finalize(d)
PY
    run timeout 60 mpiexec.openmpi --oversubscribe -n 2 "${PYTHON:-python3}" client.py
    echo "$output"
    [ "$status" = 0 ]
    [ "$(cat python.0)" = "rank 0 of 2" ]
    [ "$(cat python.1)" = "rank 1 of 2" ]
}

@test "under mpiexec a world is opened once" {
    command -v mpiexec.openmpi >/dev/null || skip "no mpiexec.openmpi here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-openmpi.so" ] || skip "no module for openmpi was built"
    cat >again.c <<'C'
#include <ddp.h>
#include <stdio.h>
int main(void)
{
    struct ddp *d;
    struct ddp_err err = DDP_ERR_INIT;
    if (ddp_init(NULL, &d, &err) != 0)
        return 1;
    if (ddp_init(NULL, &d, NULL) != DDP_EUSAGE)
        return 2;
    ddp_finalize(d);
    if (ddp_init(NULL, &d, &err) != DDP_EUSAGE)
        return 3;
    puts(err.text);
    return 0;
}
C
    # shellcheck disable=SC2046
    ${CC:-cc} -o again again.c $(pkg-config --cflags --libs ddp)
    run timeout 60 mpiexec.openmpi --oversubscribe -n 2 ./again
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -c "MPI" <<<"$output")" = 2 ]
}

@test "more groups than MPICH has communicators: DDP_EUNAVAIL, and the world goes on" {
    command -v mpiexec.mpich >/dev/null || skip "no mpiexec.mpich here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-mpich.so" ] || skip "no module for mpich was built"
    cat >groups.c <<'C'
#include <ddp.h>
#include <stdio.h>
int main(void)
{
    struct ddp *d;
    struct ddp_err err = DDP_ERR_INIT;
    const int both[] = {0, 1};
    char name[32];
    int rc = ddp_init(NULL, &d, &err);
    for (int i = 0; rc == 0 && i < 3000; i++) {
        snprintf(name, sizeof name, "group %d", i);
        rc = ddp_new_group(d, name, both, 2, &err);
    }
    printf("%d: %s\n", rc, err.text);
    if (rc != DDP_EUNAVAIL)
        return 1;
    rc = ddp_barrier(d, ddp_get_group(d, "group 1"), NULL);
    ddp_finalize(d);
    return rc == 0 ? 0 : 2;
}
C
    # shellcheck disable=SC2046
    ${CC:-cc} -o groups groups.c $(pkg-config --cflags --libs ddp)
    run timeout 60 mpiexec.mpich -n 2 ./groups
    echo "$output"
    [ "$status" = 0 ]
    [ "$(grep -c '^-69: .*group' <<<"$output")" = 2 ]
}

@test "a rank that never comes: DDP_ELOST, or inside MPI the watchdog, which says so first" {
    command -v mpiexec.openmpi >/dev/null || skip "no mpiexec.openmpi here"
    [ -e "$prefix/lib/ddpbench/ddpbench-mpi-openmpi.so" ] || skip "no module for openmpi was built"
    cat >late.c <<'C'
#include <ddp.h>
#include <stdio.h>
#include <unistd.h>
static void on_lost(void *arg, const char *story)
{
    (void)arg;
    fprintf(stderr, "lost: %s\n", story);
}
int main(void)
{
    struct ddp *d;
    struct ddp_err err = DDP_ERR_INIT;
    const struct ddp_init_options options = {.timeout_s = 1, .on_lost = on_lost};
    if (ddp_init(&options, &d, &err) != 0)
        return 1;
    if (ddp_rank(d) == 1)
        sleep(20);
    int rc = ddp_barrier(d, NULL, &err);
    if (rc != 0)
        fprintf(stderr, "returned: %s\n", err.text);
    return ddp_exit_code(rc);
}
C
    # shellcheck disable=SC2046
    ${CC:-cc} -o late late.c $(pkg-config --cflags --libs ddp)
    began=$(date +%s)
    run timeout 60 mpiexec.openmpi --oversubscribe -n 2 ./late
    echo "$output"
    [ "$status" = 13 ]
    [[ $output == *"returned: rank 0 "*"1 s"*"rank 1"* ]]
    DDPBENCH_SIMULATE_HOSTS=2 run timeout 60 mpiexec.openmpi --oversubscribe -n 2 ./late
    echo "$output"
    [ "$status" = 13 ]
    [[ $output == *"lost: "*"1 s"*exchange* ]]
    [ $(($(date +%s) - began)) -lt 20 ]
}
