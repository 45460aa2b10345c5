#!/usr/bin/env bats
# Tests the shipped algorithms on simulated ranks, under SimGrid. `make sim-1024` runs the long form.

setup() {
    ddpsim=$(dirname "$(realpath "${DDPBENCH:-build/ddpbench}")")/tests/sim/ddpsim
    [ -e "$ddpsim" ] || skip "no simulation was built: needs Debian's libsimgrid-dev, and no SAN"
    command -v smpirun >/dev/null || skip "no smpirun here"
}

# Runs one simulation of 4 ranks with these arguments, as simulate.py does.
simulated() {
    PYTHONDONTWRITEBYTECODE=1 run "${PYTHON:-python3}" -c '
import sys
sys.path.insert(0, sys.argv[1])
import simulate
print(len(simulate.Simulator(sys.argv[2]).run("star-1024", 4, *sys.argv[3:])))' "$BATS_TEST_DIRNAME" "$ddpsim" "$@"
}

@test "a simulation that goes wrong is no result, though smpirun ends with 0" {
    simulated dense bytes=4096 collective=allreduce algorithm=ring
    [ "$status" = 0 ]
    [ "$output" = 2 ]
    simulated dense bytes=4096 collective=allreduce algorithm=ring spoil=1
    [ "$status" = 1 ]
    [[ $output == *"rank 1 has another result than rank 0"* ]]
    for words in "dense algorithm=none" "dense collective=none" "sparse elements=100 algorithm=none" "nothing"; do
        # shellcheck disable=SC2086 # words
        simulated $words
        [ "$status" = 1 ]
    done
    [[ $output == *"unknown mode 'nothing'"* ]]
}

@test "star: simulated time is cost() within a quarter, sums are right; oktopk keeps its bound" {
    "${PYTHON:-python3}" "$BATS_TEST_DIRNAME/simulate.py" --ddpsim "$ddpsim" check
}
