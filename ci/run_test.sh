#!/usr/bin/env bash
# Runs one test file and prints TAP on stdout. Its output is kept, and shown when it fails.
# ci/prove.sh calls this script. TEST_TIMEOUT: the seconds that a file may take (default 300).
set -uo pipefail
test=$1
case $test in
*.bats)
    # Tests of a file that mostly wait run at the same time: its line "# jobs: N" says how many.
    jobs=$(sed -n 's/^# jobs: //p' "$test")
    [ -z "$jobs" ] || parallel --version 2>/dev/null | grep -q '^GNU' || jobs=
    command=(bats --tap ${jobs:+--jobs "$jobs"} "$test")
    ;;
*.py) command=("${PYTHON:-/usr/bin/python3}" "$test") ;;
*.sh) command=(bash "$test") ;;
/*) command=("$test") ;;
*) command=("./$test") ;;
esac

# Scripts that are named in prove_rules.yml without jobs, and C tests that are not in its first group,
# run in parallel. Each is bound to one core, because the spinning ranks of two launches on the same cores
# would slow each other down. With more ranks than cores our ranks yield; Open MPI must be told to.
may_share_core() {
    local pattern
    [[ $test == */tests/* ]] || { grep -qsF -- "- '$test'" "$HARNESS_RULESFILE"; return; }
    while read -r pattern; do
        # shellcheck disable=SC2053 # a pattern
        [[ $test != $pattern ]] || return 1
    done < <(sed -n "/^  - par:/q; s/^ *- '\(.*\)'$/\1/p" "$HARNESS_RULESFILE")
}
cores() {
    sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status | tr ',' '\n' |
        while IFS=- read -r first last; do seq "$first" "${last:-$first}"; done
}
if [ -z "${jobs:-}" ] && [ -n "${TAP_DIR:-}" ] && [ -n "${HARNESS_RULESFILE:-}" ] && may_share_core &&
    command -v taskset >/dev/null && command -v flock >/dev/null; then
    export OMPI_MCA_mpi_yield_when_idle=1
    until [ "${command[0]}" = taskset ]; do
        for core in $(cores); do
            exec 9>"$TAP_DIR/core.$core"
            if flock -n 9; then
                command=(taskset -c "$core" "${command[@]}")
                break
            fi
        done
        [ "${command[0]}" = taskset ] || sleep 0.1
    done
fi

name=${test#"$PWD"/}
name=${name//\//_}
dir=${TAP_DIR:-$(mktemp -d)}
log=$dir/$name
# cmocka reports a skipped test as "not ok 3 # SKIP name".
timeout --kill-after=10 "${TEST_TIMEOUT:-300}" "${command[@]}" 2>"$log.err" 9>&- |
    sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/' | tee "$log.tap"
rc=$?
if [ "$rc" != 0 ] || grep -q '^not ok' "$log.tap"; then
    {
        echo "---- $test: exit $rc$([ "$rc" != 124 ] || echo " (timed out)"); its output:"
        # Only the end of each is shown, because it says where the run stopped.
        tail -n 200 "$log.tap"
        tail -n 100 "$log.err"
        echo "----"
    } >&2
fi
exit "$rc"
