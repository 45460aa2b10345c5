#!/usr/bin/env bats
# Tests how peers.py evaluates times and which results it reports as short. peers_made_up.py replaces
# the launches and the number of cores.

bats_require_minimum_version 1.5.0

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    here=$BATS_TEST_DIRNAME
    python=${PYTHON:-/usr/bin/python3}
    export PYTHONDONTWRITEBYTECODE=1
    cores=2
}

peers() { # TIMES OPTION...: runs six rounds at 4 bytes
    run "$python" "$here/peers_made_up.py" "$cores" "$1" --max 4 --rounds 6 "${@:2}"
}

of() { # EXPRESSION: prints a Python expression over d, the first of the results
    "$python" -c "import json; d = json.load(open('r.json'))['results'][0]; print(($1))"
}

falls_short() { # TEXT
    [ "$status" = 1 ] && [[ $output == *"falls short: $1"* ]]
}

@test "a round's time is the median of its three launches, a row's ratio the median of the rounds" {
    peers '{"ddpbench registered": [[1, 100], [9, 100], [2, 100]], "ddpbench private": [[5, 100]], "MPICH default": [[10, 100], [9, 100], [70, 100]]}'
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratio"], d["sizes"][0]["private"]["ratio"], d["short"]')" = "(5.0, 2.0, [])" ]
    [ "$(of 'd["repeats"], d["sizes"][0]["launches"], d["sizes"][0]["rounds_judged"]')" = "(3, 54, 6)" ]
}

@test "every variant is launched once before any is launched again" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[5, 100]], "MPICH default": [[10, 100]]}'
    [ "$(wc -l <launches)" = 54 ]
    paste - - - <launches >turns
    [ "$(grep registered turns | grep private | grep -c MPICH)" = 18 ]
    [ "$(sort -u turns | wc -l)" -gt 1 ] # in random order
}

@test "a ratio below its goal falls short, and the command ends with 1" {
    peers '{"ddpbench registered": [[8, 100]], "ddpbench private": [[8, 100]], "MPICH default": [[10, 100]]}'
    falls_short "4 bytes: registered 1.25, goal 1.5"
}

@test "registered memory that is good does not hide private memory that is slow" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[12.5, 100]], "MPICH default": [[10, 100]]}'
    [ "$status" = 1 ]
    [ "$(of 'd["short"]')" = "['4 bytes: private 0.80, goal 0.9', '4 bytes: private is slower than a default: 0.80']" ]
}

@test "only launches whose cores share a cache are judged; others are repeated, six launches at most" {
    peers '{"ddpbench registered": [[99, 500], [2, 100]], "ddpbench private": [[2, 100]], "MPICH default": [[10, 100]]}'
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratio"], d["sizes"][0]["launches"]')" = "(5.0, 72)" ]
    peers '{"ddpbench registered": [[1, 500]], "ddpbench private": [[2, 100]], "MPICH default": [[10, 100]]}'
    falls_short "4 bytes: judged in 0 of 6 rounds only"
    [ "$(grep -c registered launches)" = $((6 * 3 * 6)) ]
    peers '{"ddpbench registered": [[1, 74]], "ddpbench private": [[2, 100]], "MPICH default": [[10, 100]]}' # one core
    [ "$status" = 1 ]
}

@test "a launch is repeated only after two of our ranks see a shared cache; there are 1200 waits in all" {
    private_and_peer='"ddpbench private": [[2, 100]], "MPICH default": [[10, 100]]'
    peers "{\"cores apart\": [[1, 500], [1, 500], [1, 120]], \"ddpbench registered\": [[99, 500], [2, 100]], $private_and_peer}"
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratio"], d["sizes"][0]["launches"]')" = "(5.0, 72)" ]
    [ "$(uniq -c launches | awk '$2 == "cores" { print $1 }' | sort -u)" = 3 ]
    peers "{\"cores apart\": [[1, 500]], \"ddpbench registered\": [[99, 500]], $private_and_peer}"
    falls_short "4 bytes: judged in 0 of 6 rounds only"
    [ "$(grep -c registered launches)" = $((6 * 3 * 6)) ]
    [ "$(grep -c apart launches)" = $((1 + 1200)) ] # no waits are left
    [[ $output == *"the cores are far: waiting until they are shared cache"* ]]
    peers "{\"cores apart\": [[1, 70], [1, -1], [1, 120]], \"ddpbench registered\": [[99, 70], [2, 100]], $private_and_peer}" # one core, of no class
    [ "$status" = 0 ]
    [ "$(uniq -c launches | awk '$2 == "cores" { print $1 }' | sort -u)" = 3 ]
    peers "{\"cores apart\": [[]], \"ddpbench registered\": [[99, 500], [2, 100]], $private_and_peer}"
    [ "$status" = 0 ]
    [ "$(grep -c apart launches)" = 1 ] # after a failure no launch waits
}

@test "Gloo, which has no ping-pong, gets the class of two of our ranks before and after it" {
    times='"ddpbench registered": [[1, 110]], "ddpbench private": [[1, 110]], "Gloo ring": [[1.6, 110]], "MPICH default": [[9, 150]]'
    peers "{$times}"
    [ "$status" = 0 ]
    [ "$(of 'set(d["sizes"][0]["registered"]["best"])')" = "{'Gloo ring'}" ]
    peers "{\"cores apart\": [[1, 500]], $times}"
    falls_short "4 bytes: Gloo ring judged in 0 of 6 rounds only"
    peers "{\"cores apart\": [[1, 500], [1, 120], [1, 120]], $times}" # before the launch, after it, or after a wait
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["launches"] > 72')" = True ]
}

@test "a point whose ping-pong changed its class belongs to no class" {
    run "$python" - "$here" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import peers
print([peers.of_one_class(*p) for p in [(116, 526), (100, 120), (None, 100), (None, None), (-1, 100)]])
PYTHON
    [ "$output" = "[-1, 110.0, 100, -1, -1]" ]
}

@test "fewer than half of the rounds or than six judged are reported" {
    others='"ddpbench private": [[2, 100]], "MPICH default": [[10, 100]]'
    twice=', [1, 500], [1, 500], [1, 500], [1, 500], [1, 500], [1, 500]'
    peers "{\"ddpbench registered\": [[1, 100], [1, 100], [1, 100], [1, 100], [1, 100]$twice], $others}" --collective broadcast
    falls_short "4 bytes: judged in 5 of 6 rounds only"
    peers "{\"ddpbench registered\": [[1, 100], [1, 100], [1, 100], [1, 100], [1, 100], [1, 100]$twice$twice$twice$twice$twice$twice$twice], $others}" --collective broadcast --rounds 13
    falls_short "4 bytes: judged in 6 of 13 rounds only"
    peers "{\"ddpbench registered\": [[1, 100]$twice$twice], $others}" --collective broadcast --rounds 3
    falls_short "4 bytes: judged in 1 of 3 rounds only"
}

@test "other classes have a row of their own from 20 rounds on" {
    peers '{"ddpbench registered": [[2, 500], [1, 100]], "ddpbench private": [[2, 100]], "MPICH default": [[10, 500], [10, 100]]}' --rounds 20
    [ "$status" = 0 ]
    [ "$(of '[(o["class"], o["rounds"], o["registered"]["ratio"]) for o in d["other_classes"]]')" = "[('far', 20, 5.0)]" ]
    peers '{"ddpbench registered": [[2, 500], [1, 100]], "ddpbench private": [[2, 100]], "MPICH default": [[10, 500], [10, 100]]}' --rounds 19
    [ "$(of 'd["other_classes"]')" = "[]" ]
}

@test "a variant is slower only if its whole interval lies below 1" {
    peers '{"ddpbench registered": [[10, 100]], "ddpbench private": [[10, 100]], "MPICH default": [[9, 100]]}' --collective broadcast
    falls_short "4 bytes: registered is slower: 0.90"
    peers '{"ddpbench registered": [[10, 100]], "ddpbench private": [[10, 100]], "MPICH default": [[9, 100], [9, 100], [9, 100], [9, 100], [9, 100], [11, 100]]}' --collective broadcast
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratio"], d["sizes"][0]["registered"]["ci95"], d["repeats"]')" = "(0.9, [0.9, 1.1], 1)" ]
}

@test "with more ranks than cores the class is that of two ranks, checked after each launch and waited for" {
    cores=1
    times='"ddpbench registered": [[1, 5000]], "ddpbench private": [[5, 20]], "MPICH default": [[10, 900]]'
    peers "{\"cores apart\": [[1, 500]$(printf ', [1, 120]%.0s' {1..19})], $times}" # the first class is not the judged one
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratio"], d["sizes"][0]["launches"], d["repeats"]')" = "(10.0, 18, 1)" ]
    [ "$(grep -c apart launches)" = $((2 + 18)) ] # the class after a launch serves for the next one, too

    peers "{\"cores apart\": [[1, 120], [1, 130], [1, 500]], $times}" # the class changes during every second launch
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["rounds_judged"], d["sizes"][0]["launches"], d["other_classes"]')" = "(6, 35, [])" ]

    peers "{\"cores apart\": [[1, 500]], $times}" --rounds 20
    falls_short "4 bytes: judged in 0 of 20 rounds only"
    [ "$(of '[(o["class"], o["rounds"], o["registered"]["ratio"]) for o in d["other_classes"]]')" = "[('far', 20, 10.0)]" ]
    [ "$(grep -c apart launches)" = $((1 + 1200 + 60)) ] # no waits are left, so nothing is repeated

    peers "{\"cores apart\": [[]], $times}" # the class is not known
    [ "$status" = 1 ]
    [[ $output == *"no ping-pong: it died"*"judged in 0 of 6 rounds only"* ]]
}

@test "a peer that fails is named and left out; without any, nothing was compared" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100]], "Open MPI UCX": [[11, 100], [11, 100], []]}'
    falls_short "Open MPI UCX failed"
    peers '{"ddpbench registered": [[1, 500], [], [1, 100], [1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100]]}' # launched again
    falls_short "ddpbench registered failed"
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[]]}'
    [ "$status" = 1 ]
    [[ $output == *"left out: MPICH default: it died"* && $output == *"every peer failed: nothing was compared"* ]]
}

@test "--auto: the ratio is auto's time over that of the fastest selected algorithm" {
    peers '{"ddpbench auto": [[11, 100]], "ddpbench direct": [[10, 100]], "ddpbench ring": [[40, 100]]}' --auto
    [ "$status" = 0 ]
    [ "$(of '[(r["fastest"], r["ratio"]) for r in d["auto"]]')" = "[('ddpbench direct', 1.1)]" ]
    peers '{"ddpbench auto": [[12, 100]], "ddpbench direct": [[10, 100]], "ddpbench ring": [[40, 100]]}' --auto
    [ "$status" = 1 ]
    [ "$(of 'd["short"]')" = "['4 bytes: 1.20, goal 1.1']" ]
    peers '{"ddpbench auto": [[12, 100]], "ddpbench direct": [[1, 500]], "ddpbench ring": [[40, 100]]}' --auto
    falls_short "4 bytes: ddpbench direct judged in 0 of 6 rounds only"
    peers '{"ddpbench auto": [[12, 500]], "ddpbench direct": [[10, 100]]}' --auto --rounds 1
    falls_short "nothing was compared"
    peers '{"ddpbench auto": [[12, 100]], "ddpbench direct": [[10, 100]], "ddpbench ring": [[40, 100]]}' --auto --only ring # direct is not selected
    [ "$status" = 0 ]
    ! grep -q direct launches
}

@test "private memory is compared with every peer, too" {
    peers '{"ddpbench registered": [[1, 110]], "ddpbench private": [[2, 170]], "Open MPI default": [[1.6, 110]], "MPICH default": [[9, 150]]}'
    falls_short "4 bytes: private memory: Open MPI default judged in 0 of 6 rounds only"
}

@test "private memory that fails, or is never judged, falls short" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[]], "MPICH default": [[10, 100]]}'
    [ "$status" = 1 ]
    [[ $output == *"falls short: 4 bytes: private memory: judged in 0 of 6 rounds only"*"falls short: ddpbench private failed"* ]]
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[2, 500]], "MPICH default": [[10, 100]]}'
    falls_short "4 bytes: private memory: judged in 0 of 6 rounds only"
}

@test "a peer that was never in the class that is judged is named" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100]], "Open MPI UCX": [[0.2, 500]]}'
    [ "$status" = 1 ]
    [ "$(of 'd["short"]')" = "['4 bytes: Open MPI UCX judged in 0 of 6 rounds only']" ]
    # UCX has the same class, but its ping-pong differs too much from ours to be compared.
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100]], "Open MPI UCX": [[0.2, 160]]}'
    falls_short "4 bytes: Open MPI UCX judged in 0 of 6 rounds only"
}

@test "a round without the usually best peer is not judged" {
    ours='"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "Gloo ring": [[100, 100]]'
    six='[7, 500], [7, 500], [7, 500], [7, 500], [7, 500], [7, 500]' # a launch and its five repetitions
    peers "{$ours, \"MPICH default\": [[7, 100], [7, 100], [7, 100], [7, 100], [7, 100], [7, 100], $six]}" --collective broadcast --rounds 7
    [ "$status" = 0 ]
    [ "$(of 'd["sizes"][0]["registered"]["ratios"], set(d["sizes"][0]["registered"]["best"])')" = "([7.0, 7.0, 7.0, 7.0, 7.0, 7.0], {'MPICH default'})" ]
    peers "{$ours, \"MPICH default\": [[0.5, 100], $six, $six, $six, $six, $six]}" --collective broadcast
    falls_short "4 bytes: MPICH default judged in 1 of 6 rounds only"
}

@test "from 64 MiB on registered memory takes at most 1.25 times what the machine needs" {
    slow='"ddpbench private": [[1, 100]], "MPICH default": [[10, 100]]'
    peers "{\"ddpbench registered\": [[1, 100, 0.79]], $slow}" --min 67108864 --max 67108864
    [ "$status" = 1 ]
    [ "$(of 'd["short"]')" = "['67108864 bytes: registered 0.79 of the bound, goal 0.8']" ]
    peers "{\"ddpbench registered\": [[1, 100, 0.8]], $slow}" --min 67108864 --max 67108864
    [ "$status" = 0 ]
    peers "{\"ddpbench registered\": [[1, 100]], $slow}" --min 67108864 --max 67108864
    falls_short "67108864 bytes: the bound is not known"
    peers "{\"ddpbench registered\": [[1, 100, 0.1]], $slow}" --min 16777216 --max 16777216
    [ "$status" = 0 ]
}

@test "below six rounds nothing counts as slower; NaN is written as null" {
    peers '{"ddpbench registered": [[10, 100]], "ddpbench private": [[10, 100]], "MPICH default": [[9, 100]]}' --collective broadcast --rounds 5
    [ "$status" = 0 ]
    peers '{"ddpbench auto": [[11, 100]], "ddpbench direct": [[10, 100]]}' --auto --rounds 5
    [ "$(of 'd["auto"][0]["ci95"]')" = "[None, None]" ]
}

@test "--auto: an algorithm that fails falls short" {
    peers '{"ddpbench auto": [[11, 100]], "ddpbench direct": [[10, 100]], "ddpbench ring": [[]]}' --auto
    [ "$status" = 1 ]
    [ "$(of 'd["short"], d["failed"]')" = "(['ddpbench ring failed'], {'ddpbench ring': 'it died'})" ]
}

@test "--auto: each of our algorithms is launched with the sizes it carries" {
    run "$python" - "$here" "$DDPBENCH" <<'PYTHON'
import argparse, sys
sys.path.insert(0, sys.argv[1])
import peers
plan = peers.own_algorithms(argparse.Namespace(ddpbench=sys.argv[2], collective="broadcast", ranks=2))
print(*plan, max(plan["ddpbench flat"].sizes), max(plan["ddpbench direct"].sizes))
print(*peers.measure(plan["ddpbench flat"], "broadcast", [16, 4 << 20], 1)[0], peers.measure(plan["ddpbench flat"], "broadcast", [4 << 20], 1))
PYTHON
    [ "$status" = 0 ]
    [[ ${lines[0]} == "ddpbench auto "*"ddpbench direct "*"ddpbench flat "*" 16384 268435456" ]]
    [ "${lines[1]}" = "16 ({}, '')" ]
}

@test "mistakes in options and an unwritable file are reported before any launch" {
    made='{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100]]}'
    for wrong in "--rounds 0" "--rounds -1" "--max 0" "--min 5 --max 15" "--ranks 1" "--ranks 2," "--max 3K"; do
        # shellcheck disable=SC2086
        peers "$made" $wrong
        [ "$status" = 2 ]
        [ ! -s launches ]
        [ ! -e r.json ]
    done
    peers "$made" --json nowhere/../.
    [ "$status" = 1 ]
    [[ $output == "peers: "*"nowhere/../."* ]]
    [ ! -s launches ]
}

@test "interrupted: the whole rounds are reported and written, and the command ends with 130" {
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[5, 100]], "MPICH default": [[10, 100], [10, 100], [10, 100], [10, 100], "interrupt"]}'
    [ "$status" = 130 ]
    [[ $output == *"interrupted: allreduce, 2 ranks: 1 whole rounds of 6"* ]]
    [ "$(of 'd["rounds"], d["sizes"][0]["launches"]')" = "(1, 9)" ]
    peers '{"ddpbench registered": ["interrupt"], "ddpbench private": [[5, 100]], "MPICH default": [[10, 100]]}' --json none.json
    [ "$status" = 130 ]
    [ ! -e none.json ]
}

@test "every goal of all-reduce is checked" {
    peers '{"ddpbench registered": [[1, 100, 0.9]], "ddpbench private": [[1, 100]], "MPICH default": [[1.4, 100]]}' --max 268435456
    [ "$status" = 1 ]
    for size_goal in "4 1.5" "1024 2.8" "16384 7" "65536 7" "1048576 3.5" "16777216 1.5" "67108864 1.9" "268435456 1.7"; do
        [[ $output == *"falls short: ${size_goal% *} bytes: registered 1.40, goal ${size_goal#* }"* ]]
    done
    for size in 67108864 268435456; do
        [[ $output == *"falls short: $size bytes: registered 1.40 of a default, goal 5"* ]]
    done
    [[ $output == *"falls short: geometric mean, registered: 1.40, goal 3.5"* ]]
    [[ $output == *"falls short: geometric mean, private: 1.40, goal 1.5"* ]]
}

@test "a missed goal of one collective fails the command although later ones pass; each is written when done" {
    times='{"ddpbench registered": [[10, 100]], "ddpbench private": [[10, 100]], "MPICH default": [[11, 100]]}'
    peers "$times" --collective allreduce,broadcast # 1.1, goal 1.5; 1.1, goal 1
    [ "$status" = 1 ]
    peers '{"ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "MPICH default": [[10, 100], [10, 100], [10, 100], [10, 100], [10, 100], [10, 100], "interrupt"]}' --collective broadcast,all-gather
    [ "$status" = 130 ]
    [ "$(of 'd["collective"], d["rounds"]')" = "('broadcast', 6)" ]
}

@test "a library that is not installed makes the comparison fall short" {
    run "$python" - "$here" <<'PYTHON'
import argparse, sys
sys.path.insert(0, sys.argv[1])
import peers
peers.shutil.which = lambda _program: None
for only in "", "MPICH", "Gloo,Open":
    a = argparse.Namespace(ddpbench="none", collective="broadcast", ranks=2, gloo_loop="", only=only, missing=[])
    peers.variants(a)
    print(a.missing)
def hang(*_):
    raise peers.subprocess.TimeoutExpired("peer", 600)
peers.measure = hang
print(peers.launch([], "broadcast", [4], 1)[0])
PYTHON
    [ "$status" = 0 ]
    [[ $output == *"['Open MPI', 'MPICH', 'Gloo']"*"['MPICH']"*"['Open MPI', 'Gloo']"*None ]]
    peers '{"not here": ["MPICH"], "ddpbench registered": [[1, 100]], "ddpbench private": [[1, 100]], "Open MPI default": [[10, 100]]}'
    falls_short "MPICH is not here"
}

@test "each peer and each variant of ours gets a ddpbench/1 document with a point per launch" {
    root=$here/../..
    ddpbench=${DDPBENCH:-$root/build/ddpbench}
    "$ddpbench" allreduce --ranks 2 --size 4 -n 20 --placement in --json own.json -q >/dev/null
    # 4 bytes are half an element per rank, so Gloo measures 8 bytes: this size is left out
    for line in "4 1.5 1.7 2 1 3 2 2 9" "64 1.5 1.7 2 1 3 2 2 9" "64 1.5 1.7 $(seq -s ' ' 1 200)"; do
        documents="{\"ddpbench\": $(cat own.json), \"Gloo\": \"$line\"}"
        run -0 "$python" "$here/peers_made_up.py" 2 "{\"documents\": $documents, \"ddpbench registered\": [[1, 100]],
            \"ddpbench private\": [[1, 100]], \"Gloo ring\": [[2, 100]], \"Open MPI UCX\": [[3, 100]]}" --max 4 --rounds 6
        [ "$(echo r/*)" = "r/ddpbench-private.json r/ddpbench-registered.json r/gloo-ring.json r/open-mpi-ucx.json" ]
        "$python" "$root/ci/validate_json.py" r/*.json
        "$python" - "$line" <<'PYTHON'
import json, sys
own = json.load(open("own.json"))
mpi = json.load(open("r/open-mpi-ucx.json"))
assert (mpi["label"], mpi["status"], mpi["command"]["name"]) == ("Open MPI UCX", "complete", "peers"), mpi
assert [p["launch"] for p in mpi["points"]] == list(range(1, 19)), mpi["points"]
assert all(dict(p, launch=None) == own["points"][0] for p in mpi["points"])
gloo = json.load(open("r/gloo-ring.json"))
assert (gloo["world"]["backend"], gloo["world"]["ranks"], gloo["control"]) == ("gloo", 2, [])
if sys.argv[1].startswith("4 "):
    assert not gloo["points"] and [x["what"] for x in gloo["left_out"]] == ["4 bytes"], gloo
else:
    point = gloo["points"][0]
    assert len(gloo["points"]) == 18 and not gloo["left_out"]
    if point["iterations"] == 6:
        assert point["time_us"]["median"] == 2 and point["time_us"]["ci95"] == [1, 9] and point["series"] is None, point
    else:
        assert point["iterations"] == 200 and point["time_us"]["median"] == 100.5 and point["series"]["drifting"], point
    assert point["rank_mean_us"] == {"min": 1.5, "avg": 1.6, "max": 1.7}
    assert point["check"]["mode"] == "off" and "quality" not in point
PYTHON
    done
    run -0 "$ddpbench" compare --across r/ddpbench-private.json r/open-mpi-ucx.json
    run -0 "$ddpbench" compare --across r/open-mpi-ucx.json r/gloo-ring.json
}

@test "Gloo's statistics are those that ddpbench computes from the same times" {
    ddpbench=${DDPBENCH:-$here/../../build/ddpbench}
    for n in 1 6 20 100; do
        "$ddpbench" allreduce --ranks 2 --size 4K -n "$n" --placement in --samples --json "$n.json" -q >/dev/null
    done
    "$python" - "$here" <<'PYTHON'
import json, math, sys
sys.path.insert(0, sys.argv[1])
import peer_documents, peers

def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b or (isinstance(a, float) and isinstance(b, (int, float)) and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-6))

for n in (1, 6, 20, 100):
    point = json.load(open(f"{n}.json"))["points"][0]
    samples = point["samples_us"]
    line = " ".join(map(str, [4096, 1, 1, *samples]))
    made = peers.gloo_launch(peers.Gloo("", "allreduce", "ring", 2), line).document["points"][0]
    for key in ("time_us", "series", "iterations", "algbw_GBps", "busbw_GBps", "busbw_ci95_GBps"):
        assert same(made[key], point[key]), (n, key, made[key], point[key])
PYTHON
}

@test "the document of a peer that failed, or of an interrupted comparison, is partial" {
    ddpbench=${DDPBENCH:-$here/../../build/ddpbench}
    "$ddpbench" allreduce --ranks 2 --size 4 -n 20 --placement in --json own.json -q >/dev/null
    others="\"documents\": {\"ddpbench\": $(cat own.json)}, \"ddpbench registered\": [[1, 100]], \"ddpbench private\": [[1, 100]]"
    peers "{$others, \"MPICH default\": [[10, 100]], \"Open MPI UCX\": [[11, 100], [11, 100], []]}"
    falls_short "Open MPI UCX failed"
    peers "{$others, \"MPICH default\": [[10, 100], [10, 100], [10, 100], \"interrupt\"]}" --documents i
    [ "$status" = 130 ]
    "$python" "$here/../../ci/validate_json.py" r/*.json i/*.json
    status_of() {
        "$python" -c "import json, sys; d = json.load(open(sys.argv[1])); print(d['status'], d['reason'], len(d['points']))" "$1"
    }
    [ "$(status_of r/open-mpi-ucx.json)" = "partial it died 2" ]
    [ "$(status_of r/mpich-default.json)" = "complete None 18" ]
    [ "$(status_of i/mpich-default.json)" = "partial interrupted 3" ]
    [ "$(status_of i/ddpbench-registered.json | cut -d' ' -f1,2)" = "partial interrupted" ]
    rm -r r i
    peers "{$others, \"MPICH default\": [[10, 100]]}" --auto
    [ ! -e r ]
}
