#!/usr/bin/env bats
# A rank is killed with SIGKILL at any moment, under our own launcher. The run must exit with 13 within 2 s
# and name rank and operation; the document is valid and says partial; no process and no shared memory
# segment is left. KILLS (default 8) kills are made in an all-reduce and as many in a training run; `make
# torture` makes 100.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    kills=${KILLS:-8}
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

# kill_one MS VICTIM ARGUMENT...: kills a rank MS milliseconds after all ranks have started, or, with MS =
# row, after a row was printed. Sets rc and took_ms.
kill_one() {
    local ms=$1 victim=$2 run ranks begin wanted=2
    shift 2
    [[ " $* " != *" --ranks 3 "* ]] || wanted=3
    rm -f out.json
    "$ddpbench" "$@" --json out.json >out.txt 2>err.txt 3>&- &
    run=$!
    for _ in $(seq 300); do
        mapfile -t ranks < <(pgrep -P "$run")
        # Wait for all ranks: an earlier child process only looks for GPUs.
        [ "${#ranks[@]}" = "$wanted" ] && break
        sleep 0.01
    done
    [ "${#ranks[@]}" = "$wanted" ]
    if [ "$ms" = row ]; then
        for _ in $(seq 1000); do
            grep -qv '^#' out.txt && break
            sleep 0.02
        done
    else
        sleep "$(printf '0.%03d' "$ms")"
    fi
    begin=$(date +%s%N)
    kill -KILL "${ranks[$victim]}"
    rc=0
    wait "$run" || rc=$?
    took_ms=$((($(date +%s%N) - begin) / 1000000))
    for rank in "${ranks[@]}"; do
        if kill -0 "$rank" 2>/dev/null; then
            echo "process $rank is left"
            return 1
        fi
    done
}

# Lists the names in /dev/shm, except those of MPI libraries, which other runs on this machine may use.
shm_names() {
    find /dev/shm -mindepth 1 ! -name 'vader_segment*' ! -name 'mpich*' ! -name 'sm_segment*' ! -name 'ucx_shm*' | sort
}

judge() {
    echo "rc $rc after $took_ms ms: $(cat err.txt)"
    [ "$rc" = 13 ]
    # AddressSanitizer makes the end of the ranks slower.
    is_sanitized && limit_ms=4000 || limit_ms=2000
    [ "$took_ms" -lt $limit_ms ]
    grep -qE "rank $1 \(pid [0-9]+, host [^)]*\).* signal 9" err.txt
    grep -qE "$2" err.txt
    keep out.json
    "$PYTHON" -c 'import json; assert json.load(open("out.json"))["status"] == "partial"'
}

@test "a rank is killed in the middle of an all-reduce" {
    before=$(shm_names)
    for i in $(seq "$kills"); do
        kill_one $((RANDOM % 400)) $((i % 3)) allreduce --size 64M --ranks 3 -n 100000 --placement in
        judge $((i % 3)) 'allreduce|init|barrier|phase'
    done
    [ "$(shm_names)" = "$before" ]
}

@test "a rank is killed in the middle of a training epoch" {
    for i in $(seq "$kills"); do
        kill_one $((RANDOM % 900)) $((i % 2)) train --ranks 2 --dataset synthetic --images 4000 --epochs 1000
        judge $((i % 2)) 'epoch|init|set-up|allreduce|exchange|phase'
    done
}

@test "points finished before the death are in the document" {
    kill_one row 1 allreduce --size 8,64M --ranks 2 --placement in -n 20000 --order given
    [ "$rc" = 13 ]
    printed=$(grep -vc '^#' out.txt || true)
    saved=$("$PYTHON" -c 'import json; print(len(json.load(open("out.json"))["points"]))')
    echo "printed $printed, saved $saved"
    [ "$saved" -ge "$printed" ]
    [ "$saved" -ge 1 ]
}

@test "a training run that was cut off has epochs, and no totals" {
    kill_one row 1 train --dataset synthetic --images 500 --batch 32 --epochs 20000 --ranks 2 --format table,junit=j.xml
    judge 1 'epoch|exchange|allreduce'
    "$PYTHON" - <<'EOF'
import json
run = json.load(open("out.json"))["train"][0]
assert len(run["epochs"]) >= 1 and run["final"] is None, run["final"]
EOF
    grep -q '^# .*partial' out.txt
    run ! grep -E 'eval accuracy .* 0\.0 s|0\.00 MB sent' out.txt
    run ! grep -i nan out.txt j.xml
}

@test "a signal after the document is complete does not end the run" {
    "${CC:-cc}" -shared -fPIC -D_GNU_SOURCE -o late.so "$root/tests/fault/late_signal.c"
    LD_PRELOAD=./late.so "$ddpbench" --version >/dev/null 2>&1 || skip "nothing can be preloaded into this binary"
    for late in rename exit; do
        rm -f out.json
        run --separate-stderr env LD_PRELOAD="./late.so" LATE="$late" \
            "$ddpbench" allreduce --ranks 2 --size 4 -n 3 --json out.json
        [ "$status" = 0 ] || { echo "$late: exit $status"; false; }
        file_says out.json '"complete"'
    done
}
