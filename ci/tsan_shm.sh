#!/usr/bin/env bash
# Runs all-reduces over shared memory with threads as ranks, by the binary DDPBENCH, which is built
# with ThreadSanitizer. Prints TAP. `make tsan` runs this script.
set -u
export TSAN_OPTIONS="halt_on_error=1 exitcode=99 ${TSAN_OPTIONS:-}"

cases=(
    "--ranks 2 --size 0,4,8K,1000001 --memory registered --placement both"
    "--ranks 2 --size 4,8K,1000001 --memory private --placement both"
    "--ranks 3 --size 4,12,64K,300004 --memory registered --op avg"
    "--ranks 4 --size 8K,1M --memory private --op avg"
    "--ranks 2 --size 64K --algorithm all"
)
echo "1..${#cases[@]}"
number=0
status=0
for options in "${cases[@]}"; do
    number=$((number + 1))
    # shellcheck disable=SC2086 # a list of options
    "$DDPBENCH" allreduce --launch threads --backend shm -n 5 -w 1 --timeout 120 $options \
        >/dev/null
    rc=$?
    if [ $rc = 0 ]; then
        echo "ok $number allreduce $options"
    else
        echo "not ok $number allreduce $options: exit $rc"
        status=1
    fi
done
exit $status
