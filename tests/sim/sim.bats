#!/usr/bin/env bats
# Simulated ranks: the shipped algorithms under SimGrid. `make sim-1024` is the long form.

@test "star: simulated time is cost() within a quarter, sums are right; oktopk keeps its bound" {
    ddpsim=$(dirname "$(realpath "${DDPBENCH:-build/ddpbench}")")/tests/sim/ddpsim
    [ -e "$ddpsim" ] || skip "no simulation was built: needs Debian's libsimgrid-dev, and no SAN"
    command -v smpirun >/dev/null || skip "no smpirun here"
    "${PYTHON:-python3}" "$BATS_TEST_DIRNAME/simulate.py" --ddpsim "$ddpsim" check
}
