#!/usr/bin/env bats
# The collective commands except allreduce (allreduce.bats) as a user runs them: each is verified with
# every algorithm, type, root and memory; also rounded sizes, unknown names and groups.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    moving="reduce-scatter all-gather broadcast reduce all-to-all all-to-all-v all-gather-v reduce-scatter-v gather scatter send-recv"
}

teardown_file() {
    load ../helpers.bash
    validate_kept
}

@test "every collective, algorithm, placement and memory, verified in every iteration, valid JSON" {
    for c in $moving; do
        for memory in registered private; do
            ok "$c" --ranks 3 -n 2 -w 0 --size 36,70000 --algorithm all --memory "$memory" \
                --check all --json "$c-$memory.json"
            [ "$(json "$c-$memory.json" 'len({q["algorithm_used"] for q in p}) >= 3')" = True ]
            [ "$(json "$c-$memory.json" 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
            [ "$(json "$c-$memory.json" 'min(q["check"]["elements"] for q in p) > 0')" = True ]
            [ "$(json "$c-$memory.json" '{q["collective"] for q in p}')" = "{'$c'}" ]
        done
    done
    keep ./*.json
}

@test "all types, and operations where there are any; one and two ranks" {
    for c in $moving; do
        cases=("-d all")
        case $c in reduce*) cases+=("-d f32,u8,i64,fp8-e5m2 -o avg,prod,min,max") ;; esac
        for case in "${cases[@]}"; do
            # shellcheck disable=SC2086 # a list of options
            ok "$c" --ranks 1,2 -n 1 -w 0 --size 0,8,4000 $case --check all --json r.json
            [ "$(json r.json 'sum(q["check"]["wrong"] for q in p)')" = 0 ]
            [ "$(json r.json 'all((q["busbw_GBps"] is None) == (q["ranks"] == 1 or q["size_bytes"] == 0) for q in p)')" = True ]
        done
    done
    refused 64 "'-o'" -- broadcast -o sum
}

@test "roots: the first and the last rank; refused without a root and beyond the ranks" {
    for c in broadcast reduce gather scatter; do
        ok "$c" --ranks 3 -r 2 -n 1 -w 0 --size 12,90000 --algorithm all --check all --json r.json
        [ "$(json r.json '{q["root"] for q in p}, sum(q["check"]["wrong"] for q in p)')" = "({2}, 0)" ]
        refused 64 "--root 3" "3 ranks" -- "$c" --ranks 3 --root 3 --size 4
    done
    ok all-gather --ranks 2 -n 1 --size 8 --json r.json
    [ "$(json r.json 'p[0]["root"], p[0]["op"]')" = "(None, None)" ]
    refused 64 "'--root'" -- all-gather --root 0
}

@test "bus bandwidth: the factors of nccl-tests, from size and time" {
    for pair in reduce-scatter=.75 all-gather=.75 all-to-all=.75 all-to-all-v=.75 all-gather-v=.75 reduce-scatter-v=.75 gather=.75 scatter=.75 broadcast=1 \
        reduce=1 send-recv=1; do
        ok "${pair%=*}" --ranks 4 -n 3 -w 0 --size 4000 --placement out --json r.json
        [ "$(json r.json 'abs(p[0]["busbw_GBps"] / p[0]["algbw_GBps"] / '"${pair#*=}"' - 1) < 1e-9')" = True ]
        [ "$(json r.json 'abs(p[0]["algbw_GBps"] * p[0]["time_us"]["median"] / 4 - 1) < 1e-9')" = True ]
    done
}

@test "parts that are not whole elements are rounded down, reported once on stderr" {
    ok all-to-all --ranks 3 -n 1 -w 0 --size 100 --json r.json
    [ "$(json r.json 'p[0]["requested_bytes"], p[0]["size_bytes"], p[0]["count"]')" = "(100, 96, 24)" ]
    [ "$(grep -c '100 bytes.* f32 .*96' <<<"$stderr")" = 1 ]
    ok broadcast --ranks 3 -n 1 -w 0 --size 100 --json r.json
    [ "$(json r.json 'p[0]["size_bytes"]')" = 100 ]
}

@test "only the placements of the collective are accepted" {
    ok send-recv --ranks 2 -n 1 -w 0 --size 8 --json r.json
    [ "$(json r.json '[q["placement"] for q in p]')" = "['out']" ]
    refused 64 --placement send-recv -- send-recv --placement in
    ok gather --ranks 2 -n 1 -w 0 --size 8 --json r.json
    [ "$(json r.json '[q["placement"] for q in p]')" = "['in', 'out']" ]
}

@test "a barrier has a time and nothing else" {
    ok barrier --ranks 2,3 -n 20 --algorithm all --json r.json
    keep r.json
    [ "$(json r.json 'all(q["time_us"]["median"] > 0 for q in p), len(p) >= 4')" = "(True, True)" ]
    [ "$(json r.json 'p[0]["algbw_GBps"], p[0]["busbw_GBps"], p[0]["dtype"], p[0]["size_bytes"]')" = "(None, None, None, 0)" ]
    refused 64 "'--size'" -- barrier --size 4
}

@test "all-to-all-v: uneven splits are verified, and the record has the load of the busiest rank" {
    printf '1 0 0 # tokens\n2 1 3\n0 0 5\n' >tokens.txt
    ok all-to-all-v --ranks 3 -n 2 -w 0 --size 144,300K --split tokens.txt --algorithm all --check all --json r.json
    keep r.json
    [ "$(json r.json 'len({q["algorithm_used"] for q in p}) >= 4, sum(q["check"]["wrong"] for q in p)')" = "(True, 0)" ]
    # Rank 1 sends 18 + 27 elements to others. The others send none.
    [ "$(json r.json '{(q["busiest_bytes"], q["imbalance"]) for q in p if q["size_bytes"] == 144}')" = "{(180, 3)}" ]
    [ "$(json r.json 'all(abs(q["busbw_GBps"] * q["time_us"]["median"] * 1e3 / q["busiest_bytes"] - 1) < 1e-9 for q in p)')" = True ]
    [ "$(json r.json 'all("/split=tokens.txt:" in q["id"] and q["id"].endswith(q["split"]) for q in p)')" = True ]
    "$ddpbench" show r.json >shown
    file_says shown "split tokens.txt"
    ok all-to-all-v --ranks 2,4 --groups 2 -n 2 -w 0 --size 8K --split zipf:1.2 --seed 3 --check all --json r.json
    [ "$(json r.json '{q["split"] for q in p}, sum(q["check"]["wrong"] for q in p)')" = "({'zipf:1.2'}, 0)" ]
    ok all-to-all-v --ranks 2 -n 2 -w 0 --size 8 --json r.json
    [ "$(json r.json 'p[0]["split"], p[0]["imbalance"], "split" in p[0]["id"]')" = "('even', 1, False)" ]
    ok all-to-all --ranks 2 -n 2 -w 0 --size 8 --json r.json
    [ "$(json r.json 'p[0]["split"], p[0]["imbalance"], p[0]["busiest_bytes"]')" = "(None, None, None)" ]
}

@test "all-gather-v: uneven parts are verified, and the record has the load of the busiest rank" {
    echo 1 0 2 >parts.txt
    ok all-gather-v --ranks 3 -n 2 -w 0 --size 144,300K --split parts.txt --algorithm all --check all --json r.json
    keep r.json
    [ "$(json r.json 'len({q["algorithm_used"] for q in p}) >= 4, sum(q["check"]["wrong"] for q in p)')" = "(True, 0)" ]
    # Rank 1 receives all 36 elements, and on average a rank receives 24 from others.
    [ "$(json r.json '{(q["busiest_bytes"], q["imbalance"]) for q in p if q["size_bytes"] == 144}')" = "{(144, 1.5)}" ]
    printf '1 2\n3 4\n' >two.txt
    refused 65 two.txt "line 2" -- all-gather-v --ranks 2 --split two.txt
    refused 64 parts.txt 3 2 -- all-gather-v --ranks 2 --split parts.txt
}

@test "reduce-scatter-v: uneven parts are verified, and the record has the bytes that the busiest rank sends" {
    echo 1 0 2 >parts.txt
    ok reduce-scatter-v --ranks 3 -n 2 -w 0 --size 144,300K -o sum,avg,max --split parts.txt --algorithm all --check all --json r.json
    keep r.json
    [ "$(json r.json 'len({q["algorithm_used"] for q in p}) >= 4, sum(q["check"]["wrong"] for q in p)')" = "(True, 0)" ]
    # Rank 1 has no part and sends all 36 elements. On average a rank must send 24.
    [ "$(json r.json '{(q["busiest_bytes"], q["imbalance"]) for q in p if q["size_bytes"] == 144}')" = "{(144, 1.5)}" ]
    ok reduce-scatter-v --ranks 2 -n 1 -w 0 --size 8K --split zipf:1 --format osu=o.txt
    file_says o.txt "Reduce_scatter of Uneven Parts"
    printf '1 2\n3 4\n' >two.txt
    refused 65 two.txt "line 2" -- reduce-scatter-v --ranks 2 --split two.txt
    refused 64 --placement reduce-scatter-v -- reduce-scatter-v --ranks 2 --placement in
}

@test "all-to-all-v: a wrong split is refused with the file, the line or the option" {
    printf '1 2\n3 -4\n' >bad.txt
    printf '1 2\n3 4\n' >two.txt
    refused 65 bad.txt "line 2" "'-4'" -- all-to-all-v --ranks 2 --split bad.txt
    refused 64 two.txt "2 ranks" 3 -- all-to-all-v --ranks 3 --split two.txt
    refused 66 zipf1 -- all-to-all-v --ranks 2 --split zipf1
    refused 64 --split zipf:x -- all-to-all-v --ranks 2 --split zipf:x
    refused 64 --split --groups -- all-to-all-v --ranks 3 --groups 0,1:2 --split zipf:1
    refused 64 --placement all-to-all-v -- all-to-all-v --ranks 2 --placement in
}

@test "a sweep varies the split, and the table shows it" {
    echo '{"runs": [{"command": "all-to-all-v", "ranks": 2, "size": "8K", "iters": 3, "split": ["even", "zipf:1", "zipf:2"]}]}' >s.json
    ok sweep s.json --json r.json -q
    [ "$(json r.json '[q["split"] for q in p]')" = "['even', 'zipf:1', 'zipf:2']" ]
    keep r.json
}

@test "groups run at the same time, each verified; the record says how many" {
    for c in allreduce all-gather reduce; do
        ok "$c" --ranks 4 --groups 2 -n 2 -w 0 --size 8,60000 --check all --json r.json
        keep r.json
        [ "$(json r.json '{(q["groups"], q["ranks"]) for q in p}, sum(q["check"]["wrong"] for q in p)')" = "({(2, 2)}, 0)" ]
        [ "$(json r.json 'all(q["id"].endswith("/g2") for q in p), d["world"]["ranks"]')" = "(True, 4)" ]
    done
    ok send-recv --ranks 2,4 --groups 2 -n 1 -w 0 --size 8 --json r.json
    [ "$(json r.json '[q["ranks"] for q in p]')" = "[1, 2]" ]
    refused 64 "--groups 3" "4 ranks" -- all-gather --ranks 4 --groups 3
    hint_names --ranks 3
    refused 64 "--root 2" "2 ranks" -- gather --ranks 4 --groups 2 --root 2
}

@test "--overlap-compute measures the operation, the loop, and both at once; all are in the record" {
    for c in 'allreduce --size 8,64K,4M' 'reduce-scatter --algorithm all --size 8,1M' 'broadcast --groups 2 --size 8,1M' barrier; do
        # shellcheck disable=SC2086 # a name and options
        ok $c --ranks 2 -n 7 -w 2 --overlap-compute --json r.json
        keep r.json
        [ "$(json r.json 'all(q["id"].endswith("/overlap") for q in p) and len(p) > 0')" = True ]
        [ "$(json r.json 'all(q["overlap"]["pure_us"] == q["time_us"]["median"] for q in p)')" = True ]
        [ "$(json r.json 'all(0 <= q["overlap"]["percent"] <= 100 for q in p)')" = True ]
        [ "$(json r.json 'all(q["overlap"]["total_us"] > 0 < q["overlap"]["compute_us"] for q in p)')" = True ]
    done
    ok allreduce --ranks 2 -n 3 --size 1000 --overlap-compute --check all --launch threads
    says overlap "0 wrong"
    ok allreduce --ranks 2 -n 3 --size 1000 --json r.json
    [ "$(json r.json 'p[0]["overlap"]')" = None ]
    refused 64 --overlap-compute --partial -- allreduce --ranks 2 --overlap-compute --partial 2
    refused 64 --overlap-compute --compress -- allreduce --ranks 2 --overlap-compute --compress fp16
}

@test "--explain-auto prints the table and measures nothing" {
    # Uses all cores of the machine, because run_test.sh may bind this script to one core.
    local all crowd
    all=$(</sys/devices/system/cpu/online)
    if [ "$(env -u OMP_NUM_THREADS taskset -c "$all" nproc)" -ge 2 ]; then
        run -0 taskset -c "$all" "$ddpbench" all-gather --explain-auto --ranks 2
        [[ $output == *" flat "*" direct "* ]]
        # One table for the run that the command would start: the head and two rows.
        [ "${#lines[@]}" = 3 ]
    fi
    ok all-gather --explain-auto --ranks 2 --memory private
    says " staged "
    ok barrier --explain-auto --ranks 1
    says " self "
    # With more ranks than cores a run uses the algorithms that --explain-auto prints.
    crowd=$((2 * $(env -u OMP_NUM_THREADS nproc)))
    ok allreduce --explain-auto --ranks "$crowd"
    [[ $output == *" "[48]" KiB "*" flat "*" direct "* ]]
    ok allreduce --ranks "$crowd" -n 3 --size 4K,64K --placement in --json r.json
    [ "$(json r.json '[p["algorithm_used"] for p in d["points"]]')" = "['flat', 'direct']" ]
    ok allreduce --explain-auto --ranks 2 --overlap-compute
    [[ $output == *" "[48]" KiB "*" flat "*" direct "* ]]
}

@test "the names of nccl-tests, MPI and PyTorch" {
    for name in reduce_scatter reducescatter all_gather allgather bcast all_to_all alltoall sendrecv send_recv; do
        ok "$name" --ranks 2 -n 1 -w 0 --size 8
    done
}
