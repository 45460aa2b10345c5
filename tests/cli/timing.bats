#!/usr/bin/env bats
# The number of iterations, the way and the order in which points are measured, and their record.
# shellcheck disable=SC2154 # output, stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    one=(allreduce --ranks 1 --backend self --placement in)
    two=(allreduce --ranks 2 --backend shm --placement in)
}

# measured ARGUMENT...: ddpbench succeeds and leaves a valid r.json.
measured() {
    run --separate-stderr "$ddpbench" "$@" --json r.json --format table
    echo "$status: $output $stderr"
    [ "$status" = 0 ]
    valid r.json
}

@test "without -n: as many iterations as the interval needs" {
    measured "${two[@]}" --size 64K --max-time 20
    [[ $(json r.json 'p[0]["stop"]') == precision ]]
    [ "$(json r.json 'p[0]["iterations"] in (20, 30, 45, 67, 100, 150, 225, 337, 505, 757, 1135, 1702, 2553, 3829, 5743, 8614)')" = True ]
    [ "$(json r.json '(p[0]["time_us"]["ci95"][1] - p[0]["time_us"]["ci95"][0]) / 2 <= 0.02 * p[0]["time_us"]["median"]')" = True ]
    measured "${two[@]}" --size 64K --precision 0.01 --max-time 0.05 -n 100000
    [ "$(json r.json 'p[0]["stop"] in ("max-time", "iters", "precision") and p[0]["iterations"] <= 100000')" = True ]
    measured "${two[@]}" --size 64K --compress topk:0.01 --precision 50
    [ "$(json r.json 'p[0]["stop"], p[0]["iterations"] in (20, 30, 45, 67, 100, 150)')" = "('precision', True)" ]
}

@test "-n N alone means exactly N; with the others at most N" {
    measured "${two[@]}" --size 8,64K -n 33 --samples
    [ "$(json r.json '[(q["iterations"], q["stop"], len(q["samples_us"])) for q in p]')" = "[(33, 'count', 33), (33, 'count', 33)]" ]
    measured "${two[@]}" --size 8 -n 25 --precision 0.01
    [ "$(json r.json 'p[0]["iterations"] in (20, 25)')" = True ]
    measured "${one[@]}" --size 4 -n 5
    [ "$(json r.json 'p[0]["time_us"]["ci95"], p[0]["series"]')" = "(None, None)" ]
}

@test "--start window: one clock, starts within microseconds" {
    measured "${two[@]}" --size 8,64K --start window -n 30
    [ "$(json r.json '[q["start"] for q in p]')" = "['window', 'window']" ]
    # the median covers only iterations that began at most 1 us late
    [ "$(json r.json 'all(0 <= q["skew_us"]["start"] <= 1.1 and q["skew_us"]["exit"] >= 0 for q in p)')" = True ]
    [ "$(json r.json 'all(q["invalid"] >= 0 and q["iterations"] == 30 for q in p)')" = True ]
    measured "${one[@]}" --size 8 --start window -n 30
    [ "$(json r.json 'p[0]["skew_us"]["start"]')" = None ]
}

@test "--block: a note, without interval; options that have no meaning in a block are refused" {
    measured "${two[@]}" --size 8 --block 16
    [ "$(json r.json 'p[0]["block"], p[0]["iterations"], p[0]["time_us"]["ci95"]')" = "(16, 20, None)" ]
    note=$(json r.json 'd["note"]')
    [[ $note == *16* && $output == *"$note"* ]]
    for more in "--check all" "--overlap-compute" "--compress fp16" "--precision 5"; do
        # shellcheck disable=SC2086 # words
        refused 64 --block "${more%% *}" -- "${two[@]}" --size 8 --block 16 $more
    done
}

@test "points are measured in an order drawn by the seed; documents have the order of the plan, a pipe gets rows at once" {
    measured "${one[@]}" -b 4 -e 16K -f 2 -n 1 -w 0
    [ "$(json r.json '[q["size_bytes"] for q in p] == [4 << i for i in range(13)]')" = True ]
    [ "$(json r.json 'sorted(q["order"] for q in p) == list(range(13))')" = True ]
    drawn=$(json r.json '[q["order"] for q in p]')
    [ "$drawn" != "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]" ]
    # The table has each point as soon as it is measured, and before it its place in the plan.
    rows=$(awk '/^ *[0-9]/ { printf "%s%s:%s", sep, $1, $2; sep = " " }' <<<"$output")
    [ "$rows" = "$(json r.json '" ".join(str(i + 1) + ":" + str(s) for _, i, s in sorted((q["order"], i, q["size_bytes"]) for i, q in enumerate(p)))')" ]
    measured "${one[@]}" -b 4 -e 16K -f 2 -n 1 -w 0
    [ "$(json r.json '[q["order"] for q in p]')" = "$drawn" ]
    measured "${one[@]}" -b 4 -e 16K -f 2 -n 1 -w 0 --seed 2
    [ "$(json r.json '[q["order"] for q in p]')" != "$drawn" ]
    measured "${one[@]}" -b 4 -e 16K -f 2 -n 1 -w 0 --order given
    [ "$(json r.json '[q["order"] for q in p]')" = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]" ]
}

@test "the row of a point is written before the next point begins" {
    "$ddpbench" allreduce --ranks 2 --size 1K,64K,1M -n 6 --progress always >out 2>&1
    # The line of progress is written before a point is measured.
    events=$(tr '\r' '\n' <out | sed 's/\x1b\[K//' | awk '/ of 6\)$/ { printf "p" } /^ +[0-9]+ +[0-9]+ / { printf "r" }')
    [ "$events" = prprprprprpr ] || { echo "$events"; cat out; false; }
}

@test "--inject-delay slows one point by a percentage of its own time, and marks the record" {
    "$ddpbench" allreduce --ranks 1 --backend self --size 16M,32M --placement out --dry-run >plan
    id=$(grep 33554432 plan)
    # Operations are long, so that reading the clock does not matter. There are three tries, because
    # other processes may disturb a run.
    for _ in 1 2 3; do
        measured allreduce --ranks 1 --backend self --size 16M,32M --placement out -n 15
        before=$(json r.json '[q["time_us"]["min"] for q in p]')
        measured allreduce --ranks 1 --backend self --size 16M,32M --placement out -n 15 --inject-delay "100@$id"
        [ "$(json r.json '[q["injected_percent"] for q in p]')" = "[None, 100]" ]
        note=$(json r.json 'd["note"]')
        [[ $note == *100* && $output == *"$note"* ]]
        found=$(json r.json "p[1]['time_us']['min'] / ($before)[1] > 1.6 and p[0]['time_us']['min'] / ($before)[0] < 1.6")
        [ "$found" != True ] || break
    done
    [ "$found" = True ]
    refused 64 --inject-delay "'nothing'" -- "${one[@]}" --size 16M --inject-delay "10@nothing"
    hint_names --dry-run
    for wrong in 10 "@$id" "x@$id" "0x10@$id" "-5@$id" "10@" "0@$id"; do
        refused 64 --inject-delay -- allreduce --ranks 1 --backend self --size 16M,32M --placement out "--inject-delay=$wrong"
    done
}

@test "quality: every format marks points of ranks that take turns, and explain has advice for each code" {
    formats=(csv jsonl markdown gbench action-smaller action-bigger nccl-tests osu junit github)
    list=table
    for f in "${formats[@]}"; do list+=",$f=$f.txt"; done
    run -0 --separate-stderr taskset -c "$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')" "$ddpbench" allreduce --ranks 2 \
        --size 64,1K -n 7 --placement in --json r.json --format "$list"
    holds r.json 'all("oversubscribed" in q["quality"] for q in p)'
    valid r.json
    grep -q '^# 2 of 2 .*oversubscribed' <<<"$output"
    [ "$(grep -cE '^ .* ([a-z-]+,)*oversubscribed(,[a-z-]+)*$' <<<"$output")" = 2 ]
    for f in "${formats[@]}"; do
        grep -q oversubscribed "$f.txt" || { echo "$f"; cat "$f.txt"; false; }
    done
    for code in $("$PYTHON" -c 'import json, sys; print(*json.load(open(sys.argv[1]))["$defs"]["point"]["properties"]["quality"]["items"]["enum"])' \
        "$root/results/schema/ddpbench-1.schema.json"); do
        "$ddpbench" explain quality | grep -qx -- "$code"
    done
}

@test "every run has a timer, a control, and per point a bound and conditions" {
    measured "${two[@]}" --size 8,64K,4M -n 20
    [ "$(json r.json 'd["timer"]["cost_ns"] > 0 and d["timer"]["resolution_ns"] > 0')" = True ]
    [ "$(json r.json '[c["ranks"] for c in d["control"]], all(c["copy_GBps"] > 0 and c["read_GBps"] > 0 for c in d["control"])')" = "([2], True)" ]
    [ "$(json r.json '[q["bound"]["kind"] for q in p]')" = "['latency', 'memory', 'memory']" ]
    [ "$(json r.json 'all(abs(q["bound"]["us"] / q["time_us"]["median"] / q["bound"]["fraction"] - 1) < 1e-9 for q in p)')" = True ]
    [ "$(json r.json 'all(q["bound"]["us"] == min(q["bound"]["before_us"], q["bound"]["after_us"]) > 0 for q in p)')" = True ]
    [ "$(json r.json 'all(q["conditions"]["involuntary_switches"] >= 0 for q in p)')" = True ]
    [ "$(json r.json 'all(set(q["series"]) == {"drifting", "autocorrelated", "trend", "autocorrelation", "shift"} for q in p)')" = True ]
    grep -q '^# .*2 ranks.* copy.* GB/s' <<<"$output"
    measured allreduce --backend shm --ranks 1,2 --size 64K -n 1 --placement in
    [ "$(json r.json '[c["ranks"] for c in d["control"]]')" = "[1, 2]" ]
    [ "$(json r.json '[q["bound"] is None for q in p]')" = "[True, False]" ]
    # a collective without elements takes no step; a barrier has none but takes one
    measured all-gather --backend shm --ranks 2 --size 0,8 -n 1 --placement in
    [ "$(json r.json '[(q["count"], q["bound"] is None) for q in p]')" = "[(0, True), (2, False)]" ]
    measured barrier --backend shm --ranks 2 -n 1
    [ "$(json r.json '[q["bound"]["kind"] for q in p]')" = "['latency']" ]
}

# GB/s times us is the number of bytes: 2 ranks read and write 1 MiB each, whichever algorithm runs.
@test "the bound counts each input and each result once" {
    measured allreduce --backend shm --ranks 2 --placement both --memory registered --algorithm direct,staged,ring --size 1M -n 6
    [ "$(json r.json '{round(q["bound"]["GBps"] * q["bound"]["us"] * 1e3) for q in p}')" = "{4194304}" ]
    measured broadcast --backend shm --ranks 2 --placement out --memory private --size 1M -n 6
    [ "$(json r.json '[round(q["bound"]["GBps"] * q["bound"]["us"] * 1e3) for q in p]')" = "[3145728]" ]
}

# While a rank runs, it has the core alone; its rate times the number of ranks would be far too high.
@test "the control of ranks that share a core is their common rate" {
    [ "$(nproc)" -le 8 ] || skip "64 ranks on $(nproc) cores may well copy more than 2"
    measured "${two[@]}" --size 4K -n 6 -w 1
    mv r.json two.json
    measured allreduce --ranks 64 --backend shm --placement in --size 4K -n 6 -w 1
    "$PYTHON" -c '
import json
two, many = (json.load(open(name))["control"][0]["copy_GBps"] for name in ("two.json", "r.json"))
print(two, many)
assert many < 8 * two'
}

@test "--dry-run says how long a point may take" {
    run "$ddpbench" "${two[@]}" --size 8 --dry-run
    [[ $output == *" 2 % "*" 5 s "*" 10000 "* ]]
    run "$ddpbench" "${two[@]}" --size 8 -n 7 --dry-run
    [[ $output == *" 7 iterations, after 5 warm-up "* ]]
}
