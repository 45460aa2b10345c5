#!/bin/sh
# Runs test programs and scripts under prove: each kind by its own interpreter. Usage: ci/prove.sh FILE...
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CMOCKA_MESSAGE_OUTPUT=TAP
exec prove --merge --exec "$(dirname "$0")/run_test.sh" ${PROVE_FLAGS:-} "$@"
