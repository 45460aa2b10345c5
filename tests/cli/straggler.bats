#!/usr/bin/env bats
# The rank for which the others wait: in points with --arrival, and in training. The delays are
# several times as long as the operation, so that other programs of the machine do not hide them.
# shellcheck disable=SC2154 # output, stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    two=(allreduce --ranks 2 --backend shm --placement in)
    train=(train --ranks 2 --backend shm --dataset synthetic --images 1600)
}

# measured ARGUMENT...: ddpbench succeeds and leaves a valid r.json.
measured() {
    run --separate-stderr "$ddpbench" "$@" --json r.json --format table,csv=r.csv
    echo "$status: $output $stderr"
    [ "$status" = 0 ]
    valid r.json
}

# straggler_is EXPRESSION EXPECTED ARGUMENT...: in one of three runs, EXPRESSION of the straggler s of the
# first point or training run is EXPECTED. Other programs of the machine can hide a delay.
straggler_is() {
    local expression=$1 expected=$2
    shift 2
    for _ in 1 2 3; do
        measured "$@"
        [ "$(json r.json "(lambda s: s and ($expression))((p or d['train'])[0]['straggler'])")" = "$expected" ] && return
    done
    false
}

@test "--arrival late: the late rank is named, with host, cause and interval, in every format" {
    for rank in 0 1; do
        straggler_is 's["rank"], s["cause"], s["host"] == d["world"]["hosts"][0]["name"]' "($rank, 'compute', True)" \
            "${two[@]}" --size 64K -n 24 --arrival late:$rank,40
        [ "$(json r.json '(lambda s: s["share"] > 0.8 and 0.5 < s["cost"] <= 1 and 20000 < s["late_us"][0] <= s["late_us"][1])(p[0]["straggler"])')" = True ]
        grep -q "^# straggler.*: rank $rank on host .*cause: compute" <<<"$output"
        python3 -c 'import csv, sys; r = next(csv.DictReader(open("r.csv"))); sys.exit((r["straggler_rank"], r["straggler_cause"]) != (sys.argv[1], "compute"))' $rank
    done
}

@test "--arrival: id, note, pattern, and the time after the last arrival of each algorithm" {
    measured "${two[@]}" --size 64K -n 20 --algorithm direct,ring --arrival ramp:2
    [ "$(json r.json '[q["arrival"]["pattern"] for q in p], all(q["id"].endswith("/arrival=ramp:2") for q in p)')" = "(['ramp:2', 'ramp:2'], True)" ]
    [ "$(json r.json 'all(0 < q["arrival"]["after_last_us"] < q["time_us"]["median"] for q in p)')" = True ]
    [ "$(json r.json 'd["note"]')" = "arrival ramp:2" ]
    [ "$(grep -c '^# arrival ramp:2.* of 2 points$' <<<"$output")" = 1 ]
    best=$(json r.json 'min(p, key=lambda q: q["arrival"]["after_last_us"])["algorithm_used"]')
    grep -q "^# arrival .* algorithm $best " <<<"$output"
    measured "${two[@]}" --size 64K -n 20 --arrival random
    [ "$(json r.json 'p[0]["arrival"]["pattern"]')" = random:1 ]
    measured "${two[@]}" --size 64K -n 20
    [ "$(json r.json 'p[0]["arrival"], "arrival" in p[0]["id"]')" = "(None, False)" ]
    measured allreduce --ranks 1 --backend self --size 64 -n 20 --arrival late:0,1
    [ "$(json r.json 'p[0]["straggler"]')" = None ]
}

@test "--arrival: wrong values, and options that contradict it" {
    for wrong in late late:1 late:x,1 late:-1,1 late:1,0 late:1,x late:1,2000 late:1,1,1 ramp: ramp:0 random:x early ""; do
        refused 64 --arrival -- "${two[@]}" --size 64 "--arrival=$wrong"
    done
    refused 64 "rank 2" -- "${two[@]}" --size 64 --arrival late:2,1
    refused 64 "rank 3" -- allreduce --ranks 4,2 --size 64 --arrival late:3,1
    refused 64 window -- "${two[@]}" --size 64 --arrival late:1,1 --start window
    refused 64 "rank 2" -- "${train[@]}" --epochs 1 --arrival late:2,1
    refused 64 --arrival -- "${train[@]}" --epochs 1 --arrival late
}

@test "train: a delay in the backward pass of one rank is named as compute, per epoch and bucket" {
    straggler_is 's["rank"], s["cause"]' "(1, 'compute')" "${train[@]}" --epochs 1 --arrival late:1,40
    [ "$(json r.json '[(s["rank"], s["cause"], s["bucket"]) for t in d["train"] for s in (t["straggler"], t["epochs"][0]["straggler"])]')" = "[(1, 'compute', None), (1, 'compute', None)]" ]
    [ "$(json r.json 'd["train"][0]["straggler"]["late_us"][0] > 10000')" = True ]
    [ "$(json r.json 'd["note"]')" = "arrival late:1,40" ]
    grep -q "^# straggler, dense: rank 1 .*cause: compute" <<<"$output"
    for overlap in off on; do
        straggler_is 's["rank"], s["cause"], s["bucket"] is not None' "(0, 'compute', True)" \
            "${train[@]}" --epochs 1 --bucket-bytes 64K --overlap $overlap --sync fp16 --arrival late:0,40
    done
}

@test "train: a rank with ten times as many images is named" {
    # On a busy machine, the rank that computes longer also loses its core more often.
    straggler_is 's["rank"] == 0 and s["cause"] in ("compute", "core")' True "${train[@]}" --epochs 1 --partition weights:10,1
}

# Trains beside one computing program per core, while rank 1 has the lowest priority. The programs
# start first, because the training takes only 0.1 s on idle cores.
train_beside_programs() {
    local bench ended=0 hogs=()
    for _ in $(seq "$(nproc)"); do
        sh -c 'ulimit -t 100; while :; do :; done' &
        hogs+=($!)
    done
    "$ddpbench" "${train[@]}" --epochs 1 --timeout 100 --json r.json >out 2>&1 &
    bench=$!
    for _ in $(seq 1000); do
        [ "$(pgrep -P $bench | wc -l)" = 2 ] && break
    done
    renice 19 "$(pgrep -P $bench | sort -n | tail -1)"
    wait $bench || ended=$?
    kill "${hogs[@]}" || true
    [ $ended = 0 ] || { cat out; return 1; }
    valid r.json
}

@test "train: a rank whose core is taken by other programs is named with cause core" {
    for _ in 1 2 3; do
        train_beside_programs
        found=$(json r.json '(lambda s: s and (s["rank"], s["cause"]))(d["train"][0]["straggler"])')
        echo "straggler: $found"
        [ "$found" = "(1, 'core')" ] && return
    done
    false
}
