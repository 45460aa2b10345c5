#!/usr/bin/env bats
# `ddpbench train --compare`, --seeds and the options of exchange: the runs, their table, document and
# Markdown, and refused options.
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    job=(train --ranks 2 --dataset synthetic)
}

# train NAME OPTION...: trains ranks (2 unless job says otherwise) on a few synthetic images and writes
# the document NAME.json.
train() {
    local name=$1
    shift
    timeout 100 "$ddpbench" "${job[@]}" --images 200 --batch 16 --epochs 2 \
        --json "$name.json" "$@" >"$name.table" 2>"$name.err" || { cat "$name.err"; return 1; }
}

strategies=dense,fp16,bf16,q8,q4,sign,powersgd:2,topk:0.01,threshold:0.02,oktopk:0.01,partial:4,local:4,diloco:4,zero1,none

@test "compare: every strategy with every seed, interleaved, after a run on one rank" {
    train all --compare "$strategies" --seeds 1,2 --target-accuracy 0.01 --check-replicas step
    "$PYTHON" "$root/ci/validate_json.py" all.json
    holds all.json 'len(t) == 32 and len(c) == 15'
    holds all.json '[r["baseline"] for r in t] == ([True] + 15 * [False]) * 2'
    holds all.json '[r["seed"] for r in t] == 16 * [1] + 16 * [2]'
    holds all.json '[r["ranks"] for r in t if r["baseline"]] == [1, 1]'
    holds all.json '[r["strategy"] for r in c] == "'"$strategies"'".split(",")'
    holds all.json 'all(r["runs"] == 2 and r["reference"] == "dense" for r in c)'
    holds all.json 'c[0]["difference"] is None and all(r["difference"] for r in c[1:])'
    holds all.json 'all(r["speedup"] > 0 and r["efficiency"] * 2 == r["speedup"] for r in c)'
    holds all.json 'all(r["target"]["reached"] == 2 and r["target"]["seconds"] > 0 for r in c)'
    holds all.json 'c[1]["wire_bytes_per_step"] * 2 == c[0]["wire_bytes_per_step"]'
    holds all.json 'c[-1]["wire_bytes_per_step"] == 0 and c[-1]["exposed_seconds_per_step"] == 0'
    holds all.json '[r["sync"]["feedback"] for r in t[1:16]] == [None] + 3 * ["off"] + 6 * ["on"] + 5 * [None]'
    holds all.json '[r["pays"] is None for r in c] == [True] + 14 * [False]'
    holds all.json 'all(r["pays"] in ("yes", "no", "unclear") for r in c[1:])'
    holds all.json 'all((r["pays"] == "unclear") == (r["verdict"].startswith("cannot") or "about as long" in r["verdict"]) for r in c[1:])'
    # The table averages the accuracies of the runs of each strategy.
    holds all.json 'all(abs(r["accuracy"]["mean"] - sum(e["eval_accuracy"] for u in t if u["sync"]["strategy"] == r["strategy"] and not u["baseline"] for e in u["epochs"]) / 4) < 1e-9 for r in c)'
    [ "$(grep -c '^  [a-z0-9:.]* *2 *2 ' all.table)" = 15 ]
    grep -Eq '^# .*fp16 .*step' all.table
}

@test "compare: CSV and Markdown have the rows of the document" {
    train rows --compare dense,fp16,topk:0.01 --format csv=rows.csv,markdown=rows.md,jsonl=rows.jsonl
    "$PYTHON" - <<'END'
import csv, json
comparison = json.load(open("rows.json"))["comparison"]
assert json.loads(open("rows.jsonl").read().splitlines()[-1])["comparison"] == comparison
rows = [r for r in csv.DictReader(open("rows.csv", newline="")) if r["kind"] == "comparison"]
markdown = open("rows.md").read()
for c, row in zip(comparison, rows, strict=True):
    for key in "strategy", "reference", "pays", "verdict":
        assert row[key] == (c[key] or ""), (key, row[key], c[key])
    for key in "pays_below_GBps", "step_seconds", "reference_speedup", "wire_bytes_per_step", "ranks":
        assert row[key] == "" if c[key] is None else float(row[key]) == c[key], (key, row[key], c[key])
    assert float(row["accuracy_mean"]) == c["accuracy"]["mean"] and row["target_reached"] == ""
    if c["verdict"]:
        assert f'- {c["verdict"]}\n' in markdown
END
}

@test "a run in a comparison gives the same bits as the run alone" {
    train all --compare dense,topk:0.01 --seeds 2,1
    train alone --sync topk:0.01 --seed 1
    losses='[e["train_loss"] for r in t if r["seed"] == 1 and r["sync"]["strategy"] == "topk:0.01" for e in r["epochs"]]'
    [ "$(json all.json "$losses")" = "$(json alone.json "$losses")" ]
    holds alone.json 'c is None and len(t) == 1'
}

@test "seeds alone; one rank has no speed-up; rank counts have rows of their own" {
    train seeds --seeds 1,2,3
    holds seeds.json 'len(c) == 1 and c[0]["runs"] == 3 and c[0]["difference"] is None'
    holds seeds.json 'len({r["data"]["hash"] for r in t}) == 1' # all seeds train on the same data
    local job=(train --ranks 1 --dataset synthetic)
    train one --compare dense,none
    holds one.json 'len(t) == 2 and all(r["speedup"] is None for r in c)'
    train counts --ranks 2 --compare dense,none
    holds counts.json '[(r["strategy"], r["ranks"]) for r in c] == [("dense", 1), ("none", 1), ("dense", 2), ("none", 2)]'
}

@test "Markdown: complete, with the table, and escaped" {
    train md --compare dense,fp16 --format 'markdown=out.md,table'
    grep -q '^| fp16 | 2 | 1 |' out.md
    grep -q '^- .*fp16 ' out.md
    grep -q '^| dense | 1 | 1 | singa-cnn | synthetic (synthetic) | 1 | - |' out.md
    [ "$(grep -A 3 '^| sync' out.md | sed 's/[^|]//g' | sort -u | wc -l)" = 3 ] # two tables, and --
    "$ddpbench" allreduce --ranks 2 -n 6 --size 4K,1M --format markdown >points.md
    [ "$(grep -c '^| allreduce |' points.md)" -ge 2 ]
}

@test "no reporter writes nan for the run on one rank, which is not evaluated" {
    train c --compare dense,none --seeds 1 --format table,osu=osu,nccl-tests=nccl,csv=csv,jsonl=jsonl,markdown=md,gbench=gbench,junit=junit,action-bigger=bigger
    for f in osu nccl; do
        grep -qE '^# train dense, epoch 1: [0-9.]+ s$' "$f" # the line of the baseline
        grep -qE '^# train none, epoch 2: eval accuracy 0\.[0-9]{4}, [0-9.]+ s$' "$f"
    done
    run ! grep -iw nan c.table osu nccl csv jsonl md gbench junit bigger
}

@test "overlap, buckets and placements: the same losses" {
    losses='[e["train_loss"] for e in t[0]["epochs"]]'
    for sync in dense topk:0.05; do
        train plain --sync $sync --bucket-bytes 100K
        train beside --sync $sync --bucket-bytes 100K --overlap on --check-replicas step
        [ "$(json plain.json "$losses")" = "$(json beside.json "$losses")" ]
        holds beside.json 't[0]["sync"]["overlap"] and t[0]["sync"]["bucket_bytes"] == 102400'
    done
    train sum
    for where in local device dist-device; do
        train $where --aggregate $where --check-replicas step
        [ "$(json sum.json "$losses")" = "$(json $where.json "$losses")" ] # two ranks have only one order of summation
        holds $where.json "t[0]['sync']['aggregate'] == '$where' and t[0]['epochs'][0]['peak_memory_bytes'] > 0"
    done
}

@test "zero1: the losses of dense, with optimiser state divided by the ranks" {
    losses='[e["train_loss"] for e in t[0]["epochs"]]'
    train dense --sync dense
    holds dense.json 't[0]["optimizer"]["state_bytes"] == 4 * t[0]["parameters"]'
    for more in "" "--overlap on --bucket-bytes 100K"; do
        # shellcheck disable=SC2086 # several words
        train zero1 --sync zero1 --check-replicas step $more
        "$PYTHON" "$root/ci/validate_json.py" zero1.json
        [ "$(json dense.json "$losses")" = "$(json zero1.json "$losses")" ]
        # The last 8 of 431080 parameters fill no cache line of both ranks, so both have their state.
        holds zero1.json 't[0]["optimizer"]["state_bytes"] == 4 * (431072 // 2 + 8)'
    done
    refused 64 --aggregate "'zero1'" -- "${job[@]}" --sync zero1 --aggregate local
    failed 64 "'rhd'" -- "${job[@]}" --sync zero1 --algorithm rhd
}

@test "feedback can be switched off; an algorithm chosen" {
    train on --sync topk:0.01
    train off --sync topk:0.01 --feedback off
    holds on.json 't[0]["sync"]["feedback"] == "on"'
    holds off.json 't[0]["sync"]["feedback"] == "off"'
    [ "$(json on.json 't[0]["epochs"][1]["train_loss"]')" != "$(json off.json 't[0]["epochs"][1]["train_loss"]')" ]
    train ring --algorithm ring
    holds ring.json 't[0]["sync"]["algorithm"] == "ring" and t[0]["epochs"][0]["wire_bytes_source"] == "counted"'
    train direct --algorithm direct
    holds direct.json 't[0]["epochs"][0]["wire_bytes_source"] == "model"'
    run json ring.json 't[0]["epochs"][0]["wire_bytes_per_rank"]'
    [ "$output" = "$(json direct.json 't[0]["epochs"][0]["wire_bytes_per_rank"]')" ]
}

@test "recorded gradients: NumPy and allreduce can read them, one row per record" {
    train dump --dump-gradients grads --dump-every 3
    "$PYTHON" - <<'PY'
import numpy
a, b = (numpy.load(f"grads/rank{r}.npy") for r in (0, 1))
assert a.shape == b.shape == (5, 431080) and a.dtype == numpy.float32, a.shape
assert (a != b).any() and numpy.isfinite(a).all() and (a[0] != a[1]).any()
PY
    train plain
    losses='[e["train_loss"] for e in t[0]["epochs"]]'
    [ "$(json dump.json "$losses")" = "$(json plain.json "$losses")" ]
}

@test "options that cannot be combined are refused" {
    refused 64 --sync --compare -- "${job[@]}" --sync dense --compare dense,fp16
    refused 64 "--seed " --seeds -- "${job[@]}" --seed 1 --seeds 1,2
    refused 64 --compare "'dense'" -- "${job[@]}" --compare dense,dense
    refused 64 --seeds 1 -- "${job[@]}" --seeds 1,1
    refused 64 "'densse'" -- "${job[@]}" --compare fp16,densse
    refused 64 "'densse'" -- "${job[@]}" --sync densse
    message_names "'densse'" "'dense'"
    refused 64 "topk:0.0x" -- "${job[@]}" --sync topk:0.0x
    refused 64 --overlap "'local:4'" -- "${job[@]}" --sync local:4 --overlap on
    refused 64 --bucket-bytes "'none'" -- "${job[@]}" --sync none --bucket-bytes 1M
    refused 64 --aggregate "'topk:0.1'" -- "${job[@]}" --sync topk:0.1 --aggregate local
    refused 64 --feedback "'dense'" -- "${job[@]}" --feedback off
    refused 64 --algorithm "'none'" -- "${job[@]}" --sync none --algorithm ring
    refused 64 --dump-gradients 2 -- "${job[@]}" --seeds 1,2 --dump-gradients grads
    refused 64 --dump-gradients 2 -- "${job[@]}" --ranks 1 --dump-gradients grads
    refused 64 --dump-every --dump-gradients -- "${job[@]}" --dump-every 3
    failed 64 "'rign'" -- "${job[@]}" --algorithm rign
    refused 64 --aggregate "'locl'" -- "${job[@]}" --aggregate locl
    [ ! -e grads ]
}
