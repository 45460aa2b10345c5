#!/usr/bin/env bats
# report: pages about stored results. tests/e2e opens pages in a browser; these tests need none.
# shellcheck disable=SC2154 # ddpbench, root: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    local ddpbench=${DDPBENCH:-$BATS_TEST_DIRNAME/../../build/ddpbench}
    points=(allreduce --max-time 0.01 -q --json)
    "$ddpbench" "${points[@]}" a.json --ranks 2 --size 8,1K,64K >/dev/null
    "$ddpbench" "${points[@]}" b.json --ranks 2 --size 8,1K,64K >/dev/null
    "$ddpbench" "${points[@]}" ranks.json --ranks 1,2 --size 8,1K --placement in >/dev/null
    "$ddpbench" "${points[@]}" c.json --ranks 2 --size 4K --compress none,fp16,topk:0.01,topk:0.1 >/dev/null
    "$ddpbench" train --ranks 2 --dataset synthetic --images 128 --epochs 3 --compare dense,topk:0.1 --seeds 1,2 -q --json t.json >/dev/null
    "$ddpbench" compare a.json b.json --json v.json >/dev/null || case $? in 10 | 12) ;; *) return 1 ;; esac
}

setup() {
    load ../helpers.bash
    bench_setup
    cp "$BATS_FILE_TMPDIR"/*.json .
}

# page FILE...: checks the structure of a page and writes its words into page.txt.
page() {
    "$PYTHON" "$BATS_TEST_DIRNAME/report_page.py" "$@" >page.txt
}

# edited FILE STATEMENT: changes the document d, its points p and its training runs t.
edited() {
    "$PYTHON" - "$@" <<'PY'
import copy, json, sys
with open(sys.argv[1]) as file:
    d = json.load(file)
p, t = d["points"], d["train"]
exec(sys.argv[2])
with open(sys.argv[1], "w") as file:
    json.dump(d, file)
PY
}

# value FILE EXPRESSION: a number of the document as the page writes it.
value() {
    json "$1" "'%.3g' % ($2)"
}

# time_of FILE MICROSECONDS: a time with the unit that the page writes for it.
time_of() {
    json "$1" "next('%.3g %s' % ($2 * per, unit) for unit, per in [('ns', 1e3), ('us', 1), ('ms', 1e-3), ('s', 1e-6)] if $2 * per < 999.5 or unit == 's')"
}

@test "a page of points has plots, tables and the figures of the document" {
    ok report a.json -o page.html
    [ -z "$output$stderr" ]
    page page.html
    grep -c '<figure>' page.html
    [ "$(grep -c '<figure>' page.html)" = 2 ]
    best=$(value a.json 'max(q["busbw_GBps"] for q in p)')
    file_says page.txt "$(json a.json 'd["tool"]["commit"]')" "$(json a.json 'd["world"]["hosts"][0]["cpu"]')" \
        "$best" '64 KiB' 'ddpbench allreduce'
    for i in 0 1 2 3 4 5; do # every point stands in the table of times
        file_says page.txt "$(time_of a.json "p[$i]['time_us']['median']")"
    done
    cmp <("$ddpbench" report a.json -o -) page.html # the same document gives the same page
}

@test "pages about ranks, compression, training and verdicts have their sections" {
    ok report ranks.json -o ranks.html
    page ranks.html
    file_says page.txt 'Over ranks' 'allreduce: time over ranks'
    ok report c.json -o c.html
    page c.html
    file_says page.txt Compression 'topk' "$(json c.json 'm("topk:0.01")["verdict"]')"
    ok report t.json -o t.html
    page t.html
    file_says page.txt 'accuracy over seconds' 'accuracy over bytes' 'topk:0.1' "$(json t.json 'c[1]["verdict"]')" \
        "$(json t.json '"%.2f" % (100 * c[0]["accuracy"]["mean"])')"
    ok report v.json -o v.html
    page v.html
    file_says page.txt "$(json v.json 'v["outcome"]')" "$(json v.json 'v["reason"]')" "$(json v.json 'v["cells"][0]["id"]')"
}

@test "several documents share their plots, with ratios to the first one" {
    ok report a.json b.json -o two.html
    page two.html
    file_says page.txt 'time ratio' Comparison
    file_says two.html 'time relative to a'
    [ "$(grep -c '<figure>' two.html)" = 3 ]
    read -r -a us <<<"$(json a.json 'p[4]["time_us"]["median"]') $(json b.json 'p[4]["time_us"]["median"]')"
    file_says page.txt "$("$PYTHON" -c "print(f'{${us[1]} / ${us[0]}:#.3g}'.rstrip('.'))")"
    edited b.json 'd["label"] = "the new build"'
    ok report --edited v.json a.json b.json -o three.html # a verdict has no cells to compare
    page three.html
    file_says page.txt 'the new build' changed
    ok report a.json ranks.json t.json c.json -o many.html
    page many.html
    cp a.json other.json
    edited other.json '[q.update(id=q["id"].replace("/shm/", "/mpi/"), backend="mpi") for q in p]'
    ok report --edited a.json other.json -o apart.html
    page apart.html
    file_says page.txt 'no cell in common' --vary
    ok report --edited --vary backend a.json other.json -o vary.html
    page vary.html
    run ! grep -q 'no cell in common' page.txt
    failed 64 --vary -- report --vary memory,ranks ranks.json -o x.html
    edited b.json 'p.pop()'
    ok report --edited a.json b.json -o less.html
    page less.html
    file_says page.txt '1 cell '
    cp a.json sub.json
    mkdir sub
    cp a.json sub/a.json # two files of one name
    ok report a.json sub/a.json -o same.html
    page same.html
    file_says page.txt 'a.json (1)' 'sub/a.json (2)'
}

@test "repetitions are merged, and doubtful and wrong points are marked" {
    edited a.json 'd["points"] = [dict(copy.deepcopy(q), launch=n) for n in range(1, 8) for q in p]'
    edited a.json '[q.update(quality=[]) for q in p]; p[3]["quality"] = ["drifting"]'
    ok report --edited a.json -o page.html
    page page.html
    [ "$(grep -o '<tr class="q">' page.html | wc -l)" = 2 ] # in the tables of bandwidth and time
    [ "$(grep -o 'class="h"' page.html | wc -l)" = 2 ]
    file_says page.txt drifting doubtful '1 of 42'
    edited a.json 'p[0]["check"]["wrong"] = 3; d["status"] = "failed"; d["reason"] = "rank 1 delivered wrong data"'
    ok report --edited a.json -o wrong.html
    page wrong.html
    file_says page.txt 'wrong data' failed 'rank 1 delivered wrong data'
    [ "$(grep -o '<tr class="w">' wrong.html | wc -l)" -ge 1 ]
    edited b.json 'd["status"] = "partial"; d["reason"] = "interrupted"'
    ok report --edited b.json -o partial.html
    page partial.html
    file_says page.txt partial interrupted
}

@test "texts of documents add no markup to pages" {
    edited a.json "h = '<script>alert(1)</script><b>&\"' + chr(0x27) + chr(27) + '[31m|'; d['label'] = h; d['reason'] = h; d['status'] = 'partial'; d['command']['argv'] = [h]; d['tool']['commit'] = h; d['environment'] = {'OMP_X': h}; d['left_out'] = [{'what': h, 'ranks': 2, 'points': 1, 'reason': h}]; d['started'] = h"
    edited v.json "h = '<img src=x onerror=y>'; d['verdict']['reason'] = h; d['verdict']['cells'][0]['id'] = h; d['verdict']['base']['command'] = h"
    ok report --edited a.json v.json -o page.html --svg plots
    page page.html
    file_says page.txt '<script>alert(1)</script><b>&"'
    run ! grep -q '<script\|<img' page.html
    run ! grep -qP '\x1b' page.html plots/*.svg
    for svg in plots/*.svg; do
        "$PYTHON" -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$svg"
        run ! grep -q '<script\|<img' "$svg"
    done
    ok report --edited a.json v.json -o page.md
    run ! grep -q '<script\|<img' page.md
    run ! grep -qP '\x1b' page.md
}

@test "missing, cut, foreign and changed documents are named" {
    refused 66 gone.json -- report a.json gone.json -o x.html
    head -c 1000 a.json >cut.json
    refused 65 cut.json -- report a.json cut.json -o x.html
    echo '{"schema": "other/1"}' >foreign.json
    refused 65 foreign.json -- report foreign.json -o x.html
    refused 65 peers.json -- report "$root/results/peers.json" -o x.html
    edited b.json 'p[0]["time_us"]["median"] *= 1.5'
    refused 65 b.json -- report b.json -o x.html
    refused 65 b.json -- report --edited b.json -o x.html # the figures contradict each other
    cp c.json d.json
    edited d.json 'p[0]["placement"] = "sideways"'
    refused 65 d.json placement -- report --edited d.json -o x.html
    edited t.json 't[0]["epochs"][0]["eval_accuracy"] = "good"'
    refused 65 t.json eval_accuracy -- report --edited t.json -o x.html
    edited v.json 'd["verdict"]["cells"][0]["state"] = "purple"'
    refused 65 v.json state -- report --edited v.json -o x.html
    [ ! -e x.html ]
}

@test "options and outputs that cannot be used are named" {
    refused 64 report -- report
    refused 64 --output -- report a.json
    refused 64 --svg -- report a.json --format markdown --svg plots
    refused 64 a.json -- report a.json -o a.json
    ln -s a.json link.html
    refused 64 a.json -- report a.json -o link.html
    refused 73 none/x.html -- report a.json -o none/x.html
    touch file
    refused 73 file -- report a.json --svg file
    refused 73 none/plots -- report a.json --svg none/plots
    failed 74 /dev/full -- report a.json -o /dev/full
    cmp a.json "$BATS_FILE_TMPDIR/a.json"
    run ! ls ./.*.tmp
}

@test "--svg writes the table as a terminal of 80 columns shows it, with its colours" {
    ok allreduce --ranks 2 --size 8,1K -n 3 -w 0 --label mine --block 2 --json l.json
    for document in a.json l.json "$root/results/bandwidth.json"; do
        ok report "$document" t.json --svg screens
        "$PYTHON" - screens/screen.svg >drawn <<'PY'
import sys, xml.etree.ElementTree as e
names = {"t1": "<1>", "t2": "<2>", "t31": "<31>", "t32": "<32>", "t33": "<33>"}
for line in e.parse(sys.argv[1]).getroot().iter("{http://www.w3.org/2000/svg}text"):
    text = line.text or ""
    for span in line:
        text += names[span.get("class")] + span.text + "<>" + (span.tail or "")
    print(text.rstrip().removesuffix("<>"))
PY
        env -u NO_COLOR -u COLUMNS "$PYTHON" "$root/tests/terminal.py" --columns 80 --colors -- "$ddpbench" show "$document" >seen
        [ "$(head -c 6 drawn)" = '<1>$ '"$(json "$document" 'd["command"]["argv"][0][0]')" ]
        diff <(tail -n "$(wc -l <seen)" drawn) seen
        [ ! -e screens/screen-2.svg ] # the training has no points
    done
    ok report a.json c.json --svg two
    [ -e two/screen-2.svg ]
    edited l.json 'd["command"]["argv"] = ["x" + "\u00e9" * 400]' # longer than a part that is escaped at once
    ok report --edited l.json --svg long
    [ "$("$PYTHON" -c 'import sys; print(open(sys.argv[1], encoding="utf-8").read().count("\u00e9"))' long/screen.svg)" = 400 ]
}

@test "--svg writes each plot once, under the name of its title" {
    ok report a.json t.json --svg plots
    [ "$(ls plots)" = "$(printf '%s\n' allreduce-bus-bandwidth-over-size.svg allreduce-time-over-size.svg \
        lenet-on-synthetic-accuracy-over-bytes.svg | sed "s/lenet/$(json t.json 't[0]["model"]')/" | cat - <(ls plots) | sort -u)" ]
    for svg in plots/*.svg; do
        "$PYTHON" -c 'import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); assert r[0].tag.endswith("}title")' "$svg"
        file_says "$svg" prefers-color-scheme 'http://www.w3.org/2000/svg'
    done
    edited a.json 'd["points"] = [dict(q, algorithm=a, id=q["id"].replace("auto", a)) for a in "abcdefghij" for q in p]'
    ok report --edited a.json -o page.html --svg again # ten algorithms, in and out of place
    page page.html
    rm again/screen.svg
    [ "$(ls again | wc -l)" = "$(grep -c '<figure>' page.html)" ]
}

@test "Markdown for a pull request: the verdict and changed cells first, the rest folded" {
    "$PYTHON" - v.json <<'PY'
import json, sys
d = json.load(open(sys.argv[1]))
d["verdict"].update(outcome="FAIL", reason="1 cell is slower")
for n, cell in enumerate(d["verdict"]["cells"]):
    cell.update(state="slower" if n == 2 else "same", ratio=2, lower=1.5, upper=3)
json.dump(d, open(sys.argv[1], "w"))
PY
    ok report --edited v.json -o v.md
    [ "$(head -n 1 v.md)" = '## FAIL' ]
    slower=$(json v.json 'v["cells"][2]["id"]') same=$(json v.json 'v["cells"][0]["id"]')
    sed '/<details>/,$d' v.md >first
    grep -qF "$slower" first
    run ! grep -qF "$same" first
    grep -qF "$same" v.md
    ok report --edited a.json b.json --format markdown -o two
    file_says two '## Ratios to the time of `a`' '<details>' "$(json a.json 'p[0]["id"]')"
    [ "$(grep -c '<details>' two)" = "$(grep -c '</details>' two)" ]
}

@test "a page of 1,000 points is small and quickly made" {
    edited a.json 'd["points"] = [dict(q, size_bytes=s, requested_bytes=s, id="/".join(q["id"].split("/")[:9] + [str(s)] + q["id"].split("/")[10:]),
        algbw_GBps=s / q["time_us"]["median"] / 1e3, busbw_GBps=s / q["time_us"]["median"] / 1e3, busbw_ci95_GBps=None)
        for s in range(8, 4008, 8) for q in (p[0], p[3])]'
    [ "$(json a.json 'len(p)')" = 1000 ]
    begin=$(date +%s%N)
    ok report --edited a.json -o page.html
    took=$((($(date +%s%N) - begin) / 1000000))
    echo "$took ms, $(stat -c %s page.html) bytes"
    [ "$took" -lt 5000 ] # idle machines need less than one second
    [ "$(stat -c %s page.html)" -lt 1000000 ]
    page page.html
}

@test "the committed plots are those that make plots makes" {
    "$PYTHON" "$root/ci/make_plots.py" --ddpbench "$ddpbench" --out plots
    diff -r "$root/results/plots" plots
    for svg in plots/*.svg; do
        "$PYTHON" -c 'import sys, xml.etree.ElementTree as e; e.parse(sys.argv[1])' "$svg"
        grep -qF "$(basename "$svg")" "$root/README.md" "$root/results/README.md"
    done
}
