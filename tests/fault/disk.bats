#!/usr/bin/env bats
# A disk is full, or fails at any moment: the exit code is 74 or 73, finished files are intact, no partial
# files are left, and devices are not replaced by files. With space again a sweep resumes.
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 1, "backend": "self", "size": [4, 8, 16], "placement": "in", "iters": 6}]}' >c.json
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

teardown() {
    if mountpoint -q "$BATS_TEST_TMPDIR/disk" 2>/dev/null; then
        umount "$BATS_TEST_TMPDIR/disk"
    fi
}

ids() { "$PYTHON" -c 'import json, sys; print(*(p["id"] + str(p["time_us"]["median"]) for p in json.load(open(sys.argv[1]))["points"]), sep="\n")' "$1"; }

shim() {
    command -v cc >/dev/null || skip "no C compiler here"
    cc -shared -fPIC -D_GNU_SOURCE -o "$BATS_FILE_TMPDIR/shim.so" "$root/tests/fault/io_shim.c"
    LD_PRELOAD=$BATS_FILE_TMPDIR/shim.so "$ddpbench" --version >/dev/null 2>&1 || skip "nothing can be preloaded into this binary"
}

# failing CALL NTH MORE COMMAND...: runs the command with the shim. Sets fired, the number of failed calls.
failing() {
    rm -f mark
    run env LD_PRELOAD="$BATS_FILE_TMPDIR/shim.so" SHIM_CALL="$1" SHIM_NTH="$2" SHIM_MORE="$3" SHIM_MARK="$PWD/mark" "${@:4}"
    fired=$(stat -c %s mark 2>/dev/null || echo 0)
}

# every_nth CALL: fails the N-th call for each N, until a run makes fewer than N calls.
every_nth() {
    local n lost
    "$ddpbench" sweep c.json --json want.json -q >/dev/null
    for ((n = 1; n < 200; n++)); do
        rm -f r.json r.json.journal .*.tmp
        failing "$1" "$n" 100 "$ddpbench" sweep c.json --json r.json -q
        [ "$fired" -gt 0 ] || break
        # a run also succeeds if only the removal of the journal failed
        [ "$status" = 74 ] || [ "$status" = 73 ] || { echo "$1 $n: exit $status $output"; return 1; }
        [[ $output == *"No space left"* ]] || { echo "$1 $n: $output"; return 1; }
        : >shown
        if [ -e r.json ]; then
            keep r.json
            ids r.json >shown
        fi
        [ -z "$(find . -name '*.tmp')" ] || return 1
        # with space again the sweep keeps the finished points and measures the others
        "$ddpbench" sweep c.json --json r.json -q >/dev/null || { echo "$1 $n: does not go on"; return 1; }
        ids r.json | sort >whole
        [ "$(wc -l <whole)" = 3 ] || return 1
        lost=$(sort shown | comm -13 whole -)
        [ -z "$lost" ] || { echo "$1 $n: lost $lost"; return 1; }
        [ ! -e r.json.journal ] || return 1
    done
    [ "$status" = 0 ] || { echo "$1 $n: $output"; return 1; }
    echo "# $1: $((n - 1)) failures" >&3
    [ "$n" -gt "$2" ]
}

@test "every write that can fail does" {
    shim
    every_nth write 8
}

@test "every fsync and fdatasync that can fail does" {
    shim
    every_nth fsync 4
    every_nth fdatasync 4
}

@test "every rename that can fail does" {
    shim
    every_nth rename 4
}

@test "without a sweep: every write of documents and streams that can fail does" {
    shim
    for call in write fsync rename; do
        for ((n = 1; n < 100; n++)); do
            rm -f r.json r.csv
            failing "$call" "$n" 0 "$ddpbench" allreduce --ranks 1 --backend self --size 4,8 --placement in -n 1 -w 0 --json r.json --format csv=r.csv -q
            [ "$fired" -gt 0 ] || break
            [ "$status" = 74 ] || { echo "$call $n: $status $output"; false; }
            [ ! -e r.json ] || keep r.json
        done
        [ "$status" = 0 ]
        [ "$n" -gt 3 ]
    done
}

# small_selftest GATES CALL NTH MORE: runs a self-test up to GATES A/A gates with the shim. It starts anew
# with 1 gate, which is too few to store a noise floor, or resumes a journal of 28 gates.
small_selftest() {
    rm -rf g.json g.csv floor.json*
    [ "$1" = 1 ] || cp 28.journal floor.json.journal
    failing "${@:2}" "$ddpbench" gate --selftest --base "$fake" --gates "$1,0" --pairs 5 --runs 1 --noise-floor floor.json --json g.json --format junit=g.xml -q
}

# every_nth_of_selftest GATES CALL CODE: fails the N-th call for each N, until a run makes fewer than N
# calls and ends with CODE.
every_nth_of_selftest() {
    local n
    for ((n = 1; n < 60; n++)); do
        small_selftest "$1" "$2" "$n" 0
        [ "$fired" -gt 0 ] || break
        # the gate's child processes have the shim, too, so the failing write may be theirs
        [[ "$status" = 74 || "$status" = 73 || "$status" = 65 || "$status" = 69 ]] || { echo "$2 $n: $status $output"; return 1; }
        [ ! -e g.json ] || keep g.json
        [ ! -e floor.json ] || "$ddpbench" gate --base "$fake" --new "$fake" --pairs 5 --runs 1 --noise-floor floor.json -q >/dev/null || [ $? = 12 ] || return 1
        [ -z "$(find . -name 'floor*.tmp')" ] || return 1
    done
    [ "$status" = "$3" ] || { echo "$2 $n: $status $output"; return 1; }
    echo "# $2, $1 gates: $((n - 1)) failures" >&3
}

@test "the gate: every failing write of documents, self-test's journal and noise floor" {
    shim
    # A launch copies a document, because a new one would cost more than the rest of the test.
    "$PYTHON" -S -E "$root/tests/gate/fake_launch.py" --json launch.json
    fake="sh -c 'shift; cp launch.json \"\$1\"' sh"
    export XDG_STATE_HOME=$PWD/state
    run -12 "$ddpbench" gate --selftest --base "$fake" --gates 28,0 --pairs 5 --runs 1 --noise-floor 28 --json g.json -q
    for call in write fsync fdatasync rename; do
        every_nth_of_selftest 29 "$call" 0
        [ -s floor.json ] && [ ! -e floor.json.journal ]
    done
    for call in write fdatasync; do
        every_nth_of_selftest 1 "$call" 12
        [ ! -e floor.json ] && [ -s floor.json.journal ]
    done
    run -74 "$ddpbench" gate --base "$fake" --new "$fake" --pairs 5 --runs 1 -q --json /dev/full
    [ -c /dev/full ]
}

@test "a journal that cannot be written is truncated to its last complete line" {
    shim
    "$ddpbench" sweep c.json --json r.json --journal whole -q >/dev/null
    # the writes are document, head, begin, control, point, ...
    for n in 3 5 7 9; do
        rm -f j
        failing write "$n" 0 "$ddpbench" sweep c.json --journal j --format csv=t.csv -q
        [ "$fired" = 1 ] || continue
        [ "$status" = 74 ]
        [ "$(tail -c 1 j | od -An -c | tr -d ' ')" = '\n' ]
        "$ddpbench" sweep c.json --journal j -q >/dev/null
    done
}

@test "/dev/full is reported as full, and is still a device afterwards" {
    run -74 "$ddpbench" allreduce --ranks 1 --backend self --size 4 -n 1 --json /dev/full
    run -74 "$ddpbench" allreduce --ranks 1 --backend self --size 4 -n 1 --format csv=/dev/full --json r.json
    keep r.json
    run bash -c "\"$ddpbench\" sweep c.json --json r2.json >/dev/full"
    [ "$status" = 74 ]
    keep r2.json
    [ -s r2.json.journal ]
    run -73 "$ddpbench" sweep c.json --journal /dev/full
    run -74 "$ddpbench" sweep c.json --json /dev/full
    for words in help 'allreduce -h' 'train -h' 'help --man'; do # shorter and longer than stdio's buffer
        run bash -c "\"$ddpbench\" $words >/dev/full"
        echo "$words: $status"
        [ "$status" = 74 ]
    done
    [ -c /dev/full ]
    "$ddpbench" sweep c.json --json r2.json -q >/dev/null
    keep r2.json
}

@test "a gate on a file system without locks runs and leaves nothing behind" {
    shim
    mkdir mine mine/ddpbench-gate-other
    launch="$ddpbench allreduce --ranks 1 --backend self --size 4 -n 6 -q"
    TMPDIR=$PWD/mine failing flock 1 1000 "$ddpbench" gate --base "$launch" --new "$launch" --pairs 6 --runs 1
    [ "$status" = 0 ] || [ "$status" = 10 ] || [ "$status" = 12 ] || { echo "$status: $output"; false; }
    [ "$fired" -ge 2 ]
    [ "$(ls mine)" = ddpbench-gate-other ] # another gate may still use it
}

@test "a disk of 64 KiB: the points that fit are kept, and with more space the sweep resumes" {
    [ "$(id -u)" = 0 ] || skip "mounting needs root"
    mkdir disk
    mount -t tmpfs -o size=64k none disk 2>/dev/null || skip "this container may not mount"
    printf '%s' '{"runs": [{"command": "allreduce", "ranks": 1, "backend": "self", "size": [4, 8, 16, 32, 64, 128], "placement": "in", "iters": 600, "samples": true}]}' >big.json
    run "$ddpbench" sweep big.json --json disk/r.json -q
    [ "$status" = 74 ] || { echo "$status: $output"; false; }
    [[ $output == *"No space left"* ]]
    keep disk/r.json
    ids disk/r.json >shown
    [ "$(wc -l <shown)" -ge 1 ]
    [ -z "$(find disk -name "*tmp*")" ]
    run "$ddpbench" sweep big.json --json disk/r.json -q
    [ "$status" = 74 ]
    mount -o remount,size=4m disk
    run -0 --separate-stderr "$ddpbench" sweep big.json --json disk/r.json
    says "'disk/r.json.journal'"
    keep disk/r.json
    [ "$(ids disk/r.json | wc -l)" = 6 ]
    [ -z "$(ids disk/r.json | sort | comm -13 - <(sort shown))" ]
    [ "$(ls -A disk)" = r.json ]
}
