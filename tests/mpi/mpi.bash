# Functions for the scripts of this folder, which run mpiexec of each MPI. Sourced by bats.
# shellcheck shell=bash disable=SC2154 # output, status: bats; root, ddpbench: helpers.bash

load ../helpers.bash

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Called by setup(): sets the binary and the folder of its modules.
mpi_setup() {
    bench_setup
    ddpbench=$(realpath "$ddpbench")
    modules=$(dirname "$ddpbench")
    # shellcheck disable=SC2034 # for the scripts that source this file
    host=$(hostname)
    # Preloaded into MPICH's ranks, it makes them yield.
    yield=$BATS_FILE_TMPDIR/yield.so
    [ -e "$yield" ] || { "${CC:-cc}" -shared -fPIC -O2 -D_GNU_SOURCE -o "$yield.$$" "$root/tests/mpi/yield.c" && mv "$yield.$$" "$yield"; }
}

# needs FLAVOUR: skips the test, with the reason, unless this MPI can be used here.
needs() {
    command -v "mpiexec.$1" >/dev/null || skip "no mpiexec.$1 here"
    [ -e "$modules/ddpbench-mpi-$1.so" ] || skip "no module for $1 was built"
}

# mpi FLAVOUR RANKS COMMAND...: runs the command under this MPI's mpiexec, which may oversubscribe.
# MPICH's ranks yield if there are more of them than cores.
mpi() {
    local flavour=$1 ranks=$2 more=()
    shift 2
    if [ "$flavour" = openmpi ]; then
        more=(--oversubscribe)
    elif [ "$ranks" -gt "$(nproc)" ]; then
        more=(-genv LD_PRELOAD "$yield")
    fi
    timeout --kill-after=5 60 "mpiexec.$flavour" "${more[@]}" -n "$ranks" "$@"
}

# Prints the name of the variable that holds the rank.
rank_variable() {
    [ "$1" = openmpi ] && echo OMPI_COMM_WORLD_RANK || echo PMI_RANK
}

# lose FLAVOUR RANKS SIGNAL: starts a long run, waits for its second point, and sends the signal to each
# of the ranks ("0 1"). Sets status and ended_ms. Reads iterations (for each size), world (the number of
# ranks that are started) and working (the number of ranks that the run uses, 2 by default).
lose() {
    needs "$1"
    local job began
    # shellcheck disable=SC2016 # $2 and so on are the inner shell's
    mpi "$1" "${world:-2}" sh -c '
        eval "rank=\$$1"
        case " $2 " in *" $rank "*) echo $$ >>victim ;; esac
        exec "$3" allreduce --ranks "$5" --algorithm native --size 4,64K,16M --order given \
            -n "$4" -w 1 -T 1 --json out.json' \
        sh "$(rank_variable "$1")" "$2" "$ddpbench" "${iterations:-5000}" "${working:-2}" >out.txt 2>err.txt 3>&- &
    job=$!
    for _ in {1..450}; do
        ! grep -q ' 65536 ' out.txt || break
        sleep 0.1
    done
    grep ' 65536 ' out.txt
    sleep 0.2
    began=$(date +%s%N)
    # shellcheck disable=SC2046 # one word a rank
    kill -s "$3" $(cat victim)
    status=0
    wait $job || status=$?
    ended_ms=$((($(date +%s%N) - began) / 1000000))
    echo "exit $status after $ended_ms ms"
    cat out.txt err.txt
    printed=$(grep -c ' native ' out.txt)
    [ "$(json out.json 'd["status"]')" = partial ]
    [ "$(json out.json 'len(d["points"])')" -ge "$printed" ]
}
