# For the scripts of this folder: mpiexec of each MPI. Sourced by bats.
# shellcheck shell=bash disable=SC2154 # output, status: bats; root, ddpbench: helpers.bash

load ../helpers.bash

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# Called by setup(): the binary, and where its modules lie.
mpi_setup() {
    bench_setup
    ddpbench=$(realpath "$ddpbench")
    modules=$(dirname "$ddpbench")
}

# FLAVOUR: skips the test, with the reason, unless this MPI can be used here.
needs() {
    command -v "mpiexec.$1" >/dev/null || skip "no mpiexec.$1 here"
    [ -e "$modules/ddpbench-mpi-$1.so" ] || skip "no module for $1 was built"
}

# FLAVOUR RANKS COMMAND...: runs it under this MPI's mpiexec, more ranks than cores allowed.
mpi() {
    local flavour=$1 ranks=$2 more=()
    shift 2
    [ "$flavour" != openmpi ] || more=(--oversubscribe)
    timeout --kill-after=5 60 "mpiexec.$flavour" "${more[@]}" -n "$ranks" "$@"
}

# The variable that tells a rank its number.
rank_variable() {
    [ "$1" = openmpi ] && echo OMPI_COMM_WORLD_RANK || echo PMI_RANK
}

# FLAVOUR RANKS SIGNAL: starts a run that would last, waits for its second point, and sends the
# signal to each of the ranks ("0 1"). Sets: status, ended_ms. iterations: of each size. world: ranks
# started, of which `working` (2) work.
lose() {
    needs "$1"
    local job began
    # shellcheck disable=SC2016 # $2 and so on are the inner shell's
    mpi "$1" "${world:-2}" sh -c '
        eval "rank=\$$1"
        case " $2 " in *" $rank "*) echo $$ >>victim ;; esac
        exec "$3" allreduce --ranks "$5" --algorithm native --size 4,64K,16M --order given \
            -n "$4" -w 1 -T 1 --json out.json' \
        sh "$(rank_variable "$1")" "$2" "$ddpbench" "${iterations:-20000}" "${working:-2}" >out.txt 2>err.txt 3>&- &
    job=$!
    for _ in {1..200}; do
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
