#!/usr/bin/env bash
# Runs test programs and scripts under prove and compares the skipped tests with
# ci/expected_skips.txt. Usage: ci/prove.sh FILE...
# Three files run at a time where ci/prove_rules.yml allows it.
# The output of all files is kept in tap/ beside the binary; that of a failing file is also shown.
# Environment: PROVE_FLAGS is passed to prove. Scripts read DDPBENCH, the binary under test (default
# build/ddpbench), PYTHON, a Python with jsonschema, and MPI_FLAVOURS, the MPI modules that were built
# (default: those beside the binary).
set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

export DDPBENCH=${DDPBENCH:-$root/build/ddpbench} PYTHON=${PYTHON:-/usr/bin/python3}
if [ -z "${MPI_FLAVOURS+set}" ]; then
    MPI_FLAVOURS=$(find "$(dirname "$DDPBENCH")" -maxdepth 1 -name 'ddpbench-mpi-*.so' |
        sed 's|.*-mpi-||; s|\.so$||' | sort | tr '\n' ' ')
fi
export MPI_FLAVOURS
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CMOCKA_MESSAGE_OUTPUT=TAP
export HARNESS_RULESFILE=$here/prove_rules.yml
# OpenBLAS uses its oldest kernels on processors that it does not know. With this setting it uses the
# same kernels on all processors with AVX2.
! grep -qw avx2 /proc/cpuinfo 2>/dev/null || export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-Haswell}
# Open MPI then tries no other library for messages, which saves a third of the time that it needs to start.
export OMPI_MCA_pml=${OMPI_MCA_pml:-ob1}
TAP_DIR=$(dirname "$(readlink -m "$DDPBENCH")")/tap
export TAP_DIR
# A test that calls make must not inherit this make's flags and job server.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES

rm -rf "$TAP_DIR"
mkdir -p "$TAP_DIR"
# shellcheck disable=SC2086 # a list of flags
prove --timer -j3 --exec "$here/run_test.sh" ${PROVE_FLAGS:-} "$@" </dev/null
rc=$?
"$here/check_skips.sh" "$TAP_DIR" "$here/expected_skips.txt" || rc=1
exit "$rc"
