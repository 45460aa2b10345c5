#!/usr/bin/env bats
# `ddpbench pays`: its document, its sentences, the table, `show`, recorded gradients and refusals. tests/unit/test_pays.c
# tests the model, and tests/e2e/pays_link.bats compares it with steps on limited links.
# shellcheck disable=SC2154,SC2054 # q8,topk:0.01: one word; stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    model=(pays --params 20k --step-time 1ms --max-time 0.02 -q)
    training=("${model[@]}" --ranks 8 --compress q8,topk:0.01)
}

# link I EXPRESSION: prints a Python expression over link number I, x, and its methods, y.
link() {
    json r.json "(lambda x, y: ($2))((d['pays']['links'][$1]), {q['method']: q for q in d['pays']['links'][$1]['methods']})"
}

@test "slow and fast links: bytes of the cost models, one sentence per link, a valid document" {
    ok "${training[@]}" --link 1Mbit/s,1us --link 1000Tbit/s,5ns --json r.json
    valid r.json
    [ "$(json r.json "d['status'], d['world']['ranks'], d['pays']['ranks'], d['pays']['parameters']")" = "('complete', 2, 8, 20000)" ]
    [ "$(link 0 "[*y]")" = "['none', 'bf16', 'q8', 'topk:0.01']" ]
    # 14/8 of 2 bytes for each value, at 125,000 bytes/s.
    [ "$(link 0 "y['bf16']['sent_bytes'], y['none']['sent_bytes'], round(y['bf16']['link_us'], -3)")" = "(70000, 140000, 560000)" ]
    [ "$(link 0 "x['first'], [q for q in y if y[q]['pays']]")" = "('topk:0.01', ['q8', 'topk:0.01'])" ]
    [ "$(link 0 "1.88 < y['bf16']['link_us'] / y['q8']['link_us'] < 1.9 and 1 < y['q8']['speedup']['median'] < 1.9")" = True ]
    [ "$(link 0 "0 < y['topk:0.01']['break_even_density'] < 0.5")" = True ]
    [ "$(link 1 "round(x['GBps']), x['latency_us'], any(y[q]['link_us'] > 1 for q in y)")" = "(125000, 0.005, False)" ]
    [ "$(grep -c "^# On " <<<"$output")" = 2 ]
    says "On 0.001 Gbit/s, 1 us, topk:0.01 is the fastest"
}

@test "the accuracy of the stored results; null where none was measured" {
    ok "${training[@]}" --link 1Gbit/s --json r.json
    mean=$(json "$root/results/convergence.json" '[s for s in d["comparison"] if s["strategy"] == "topk:0.01"][0]["difference"]["mean"]')
    [ "$(link 0 "abs(y['topk:0.01']['accuracy_change'] - $mean) < 1e-12, y['none']['accuracy_change'], y['q8']['accuracy_change']")" = "(True, 0, None)" ]
    ok train --ranks 2 --dataset synthetic --images 256 --epochs 1 --compare dense,q8 -q --json t.json
    ok "${training[@]}" --link 1Gbit/s --accuracy t.json --json r.json
    [ "$(link 0 "y['topk:0.01']['accuracy_change'], y['q8']['accuracy_change'] is None")" = "(None, False)" ]
    refused 66 none.json -- "${training[@]}" --link 1Gbit/s --accuracy none.json
    refused 64 t.json -- "${training[@]}" --link 1Gbit/s --accuracy t.json --json t.json
    ok "${training[@]}" --feedback off --link 1Gbit/s --accuracy t.json --json r.json
    [ "$(link 0 "y['q8']['accuracy_change'] is None")" = False ]
    # The stored accuracies were measured with error feedback. b is a bit, B a byte.
    ok "${training[@]}" --feedback off --link 8Gb/s --link 1GB/s --link 8Gbps --json r.json
    [ "$(link 0 "y['topk:0.01']['accuracy_change']")" = None ]
    [ "$(json r.json "[q['GBps'] for q in d['pays']['links']]")" = "[1, 1, 1]" ]
}

@test "a training of many more ranks than this machine can start, on a link without latency" {
    ok pays --params 70M --step-time 1ms --max-time 0.02 -q --ranks 65536 --compress q8,powersgd:2,topk:0.01 --link 10Gbit/s,0us --json r.json
    valid r.json
    [ "$(json r.json "d['world']['ranks'], d['pays']['ranks']")" = "(2, 65536)" ]
    [ "$(link 0 "x['latency_us'], round(y['bf16']['sent_bytes'] / 140e6 * 65536 / 2 / 65535, 3)")" = "(0, 1.0)" ]
}

@test "powersgd with dense steps is measured in the others" {
    ok "${model[@]}" --ranks 8 --compress powersgd:2:1000 --link 1Gbit/s --json r.json
    [ "$(json r.json "m('powersgd:2:1000')['wire_bytes_per_rank'] < 10000")" = True ]
}

@test "without --link: measured between the ranks, which share memory, and nothing pays" {
    ok pays --params 4M --step-time 10ms --ranks 2 --max-time 0.05 --compress q8 -q --json r.json
    valid r.json
    [ "$(link 0 "x['GBps'], y['q8']['link_us']")" = "(None, None)" ]
    # Times under a sanitizer say nothing.
    if ! is_sanitized; then
        [ "$(link 0 "x['first']")" = None ]
        says "which share memory, nothing pays"
    fi
    # The step takes as long as the point.
    [ "$(json r.json "abs(d['pays']['links'][0]['methods'][2]['step_us']['median'] - 10000 - m('q8')['time_us']['median']) < .01")" = True ]
}

@test "--table: a row for each method, a column for each link; --overlap hides the link" {
    ok "${training[@]}" --table --json r.json
    [ "$(json r.json "[round(x['GBps'] * 80) for x in d['pays']['links']]")" = "[1, 3, 10, 30, 100, 250, 1000, 4000]" ]
    [ "$(grep -cE '^(dense f32|bf16|q8|topk:0.01) +([0-9.]+[* ] *){8}$' <<<"$output")" = 4 ]
    slow=$(link 0 "y['bf16']['step_us']['median'] - y['bf16']['arithmetic_us'] - y['bf16']['link_us']")
    ok "${training[@]}" --table --overlap --json r.json
    hidden=$(link 0 "y['bf16']['step_us']['median'] - y['bf16']['arithmetic_us'] - y['bf16']['link_us']")
    [ "$(json r.json "abs($slow - 1000) < .01 and abs($hidden - 1000 / 3) < .01")" = True ]
}

@test "show prints the stored answer again; formats without it are refused" {
    ok "${training[@]}" --link 1Gbit/s,20us --json r.json
    sed -n '/^#method  /,$p' <<<"$output" >printed
    ok show r.json
    sed -n '/^#method  /,$p' <<<"$output" | diff - printed
    [ "$(wc -l <printed)" = 7 ]
    refused 64 osu pays -- "${training[@]}" --link 1Gbit/s --format osu
    "$PYTHON" -c "import json; d = json.load(open('r.json')); d['pays']['links'][0]['methods'].clear(); json.dump(d, open('e.json', 'w'))"
    refused 65 pays -- show --edited e.json
}

@test "csv, Markdown and the page have the sentence of each link, and its methods" {
    ok "${training[@]}" --link 1Mbit/s,1us --link 1000Tbit/s,5ns --json r.json --format csv=r.csv,markdown=r.md
    "$PYTHON" - <<'PY'
import csv, json
links = json.load(open("r.json"))["pays"]["links"]
rows = [r for r in csv.DictReader(open("r.csv", newline=""), strict=True) if r["kind"] == "pays"]
assert len(rows) == 8
for row, (link, m) in zip(rows, [(x, m) for x in links for m in x["methods"]]):
    assert (row["compress"], row["pays"], row["answer"]) == (m["method"], "yes" if m["pays"] else "no", link["answer"])
    assert (row["ranks"], row["parameters"], float(row["link_GBps"])) == ("8", "20000", link["GBps"])
    assert float(row["step_median_us"]) == m["step_us"]["median"] and float(row["speedup"]) == m["speedup"]["median"]
PY
    [ "$(grep -cE '^\| (dense f32|bf16|q8|topk:0.01) \|( [^|]+ \|){8}$' r.md)" = 8 ]
    ok report r.json -o page.html
    "$PYTHON" "$BATS_TEST_DIRNAME/report_page.py" page.html >page.txt
    file_says page.txt "Does compression pay?" "dense f32" "0.001 Gbit/s, 1 us"
    ok report r.json -o page.md
    for i in 0 1; do
        answer=$(json r.json "d['pays']['links'][$i]['answer']")
        for file in r.md page.txt page.md; do
            grep -qF -- "$answer" $file
        done
    done
}

@test "the speed below which a method pays: a number, all, none, or - if it does not send less" {
    ok "${training[@]}" --link 1Gbit/s --json r.json
    "$PYTHON" - <<'PY'
import json
d = json.load(open("r.json"))
dense, bf16, q8, topk = d["pays"]["links"][0]["methods"]
assert [m["sends_less"] for m in (dense, bf16, q8, topk)] == [False, False, True, True]
assert dense["pays_below_GBps"] is None
q8["pays_below_GBps"], topk["pays_below_GBps"] = None, 0
json.dump(d, open("e.json", "w"))
PY
    ok show --edited -v e.json
    [ "$(awk '/^#method/ {on = 1} on && /^(bf16|q8|topk)/ {print $6}' <<<"$output")" = $'-\nall\nnone' ]
    says "all: at all speeds" "none: at no" "does not send less"
}

@test "--gradients: recorded gradients, whose rows tell the number of parameters" {
    ok train --ranks 2 --model lenet --dataset synthetic --images 256 --epochs 1 --dump-gradients g -q --json t.json
    ok pays --gradients g --step-time 1ms --max-time 0.02 --ranks 4 --link 1Gbit/s --compress q8 -q --json r.json
    [ "$(json r.json "d['pays']['parameters']")" = "$(json t.json 't[0]["parameters"]')" ]
    refused 66 rank0.npy -- pays --gradients nowhere --step-time 1ms
}

@test "what is missing or contradictory is refused" {
    refused 64 --params -- pays --step-time 1ms
    refused 64 --params -- pays --params 20k --gradients g --step-time 1ms
    refused 64 --params 20x -- pays --params 20x --step-time 1ms
    refused 64 --step-time -- pays --params 20k
    refused 64 0x10ms -- pays --params 20k --step-time 0x10ms --link 1Gbit/s
    refused 64 --step-time 1m -- pays --params 20k --step-time 1m
    refused 64 --link 20us speed -- "${training[@]}" --link 20us
    refused 64 --link "'20'" latency -- "${training[@]}" --link 10Gbit/s,20
    refused 64 --link 0Gbit/s speed -- "${training[@]}" --link 0Gbit/s
    refused 64 --ranks 512 -- "${model[@]}" --ranks 512
    refused 64 --ranks 65537 -- "${model[@]}" --ranks 65537 --link 1Gbit/s
    refused 64 --link 10Gb -- "${training[@]}" --link 10Gb
    refused 64 --ranks -- "${model[@]}" --link 1Gbit/s
    refused 64 --overlap -- "${model[@]}" --ranks 2 --overlap
    refused 64 "2 ranks" -- "${model[@]}" --ranks 1
    refused 64 "one number" -- "${model[@]}" --ranks 2,4
    echo '{"runs": [{"command": "pays"}]}' >c.json
    failed 78 pays -- sweep c.json
}
