#!/usr/bin/env bats
# show: stored results are printed again.
# shellcheck disable=SC2154 # ddpbench, root: helpers.bash; stderr: bats
bats_require_minimum_version 1.5.0

formats=(table csv markdown gbench junit github action-smaller action-bigger osu)

# Each document has the outputs of its run beside it: NAME.json, NAME.table, NAME.csv, ...
setup_file() {
    cd "$BATS_FILE_TMPDIR" || return
    local ddpbench=${DDPBENCH:-$BATS_TEST_DIRNAME/../../build/ddpbench}
    # keep NAME COMMAND...: runs it with the outputs of all formats.
    keep() {
        local name=$1 outputs=() f
        shift
        for f in "${formats[@]}"; do outputs+=(--format "$f=$name.$f"); done
        "$ddpbench" "$@" --json "$name.json" "${outputs[@]}" >/dev/null
    }
    keep points allreduce --ranks 1,2 --size 8,1K,64K --algorithm all --max-time 0.01 -q
    keep given allreduce --ranks 1,2 --size 8,64,512 --order given -n 3 -w 0 -q
    keep compress allreduce --ranks 2 --size 4K --compress none,fp16,topk:0.01 --max-time 0.01 -q
    keep train train --ranks 2 --dataset synthetic --images 128 --epochs 2 --compare dense,topk:0.1 --seeds 1,2 -q
    echo '{"runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "64K"], "max-time": 0.01}, {"command": "barrier", "ranks": 2, "max-time": 0.01}]}' >s.conf
    keep sweep sweep s.conf --launches 2 -q
    keep verdict compare points.json points.json || [ $? = 12 ]
}

setup() {
    load ../helpers.bash
    bench_setup
    cp "$BATS_FILE_TMPDIR"/* .
}

# same NAME FORMAT...: show prints the document as its run did.
same() {
    local f
    for f in "${@:2}"; do
        ok show "$1.json" --format "$f" -o shown
        [ -z "$output$stderr" ]
        diff "$1.$f" shown || {
            echo "$1 differs in format $f"
            return 1
        }
    done
}

@test "a document is shown as its run printed it" {
    same given table
    same points "${formats[@]}"
    same compress "${formats[@]}"
    same train table csv markdown gbench junit action-bigger
    same sweep "${formats[@]}"
    same verdict table markdown junit github action-smaller
    for name in points compress train sweep verdict; do # the format json gives the same bytes
        ok show $name.json --format json -o shown
        cmp $name.json shown
        valid shown
    done
    ok show points.json --format jsonl
    [ "$(grep -c '"kind": "point"' <<<"$output")" = "$(json points.json 'len(p)')" ]
    ok show points.json --format nccl-tests
    says 'columns of nccl-tests' "$(json points.json 'd["tool"]["commit"]')"
}

@test "the build of a document is shown, not that of this program" {
    sed -i "s/\"commit\": \"[^\"]*\"/\"commit\": \"cafe1234\"/" points.json
    for f in table markdown nccl-tests json jsonl action-smaller; do
        ok show --edited points.json --format $f
        says cafe1234
    done
}

@test "several documents follow each other" {
    ok show points.json train.json
    diff <(grep -v '^# [a-z]*.json$\|^$' <<<"$output") <(cat points.table train.table)
    says points.json train.json
    ok show points.json compress.json --format csv -o both.csv
    diff both.csv <(cat points.csv <(tail -n +2 compress.csv))
    ok show points.json compress.json --format markdown -o both.md
    diff both.md <(cat points.markdown compress.markdown)
    refused 64 json points.json -- show train.json points.json --format json
    refused 64 junit points.json -- show train.json points.json --format junit
}

@test "a terminal gets the table that fits it" {
    export COLUMNS=80
    run --separate-stderr "$PYTHON" "$root/tests/terminal.py" --columns 80 -- "$ddpbench" show compress.json
    [ "$status" = 0 ]
    says allreduce 'topk:0.01' 'x f32' 'verified: 3 of 3 points'
    run ! grep -q '.\{81\}' <<<"$output"
    run --separate-stderr "$PYTHON" "$root/tests/terminal.py" --columns 80 -- "$ddpbench" show --wide compress.json
    grep -q '.\{81\}' <<<"$output"
    ok show -v compress.json
    says 'x f32' 'fdbk'
}

# plots TEXT: the number of plots in it.
plots() { grep -c ': \(bus bandwidth\|time\) over size$' <<<"$1"; }

@test "plots are drawn below the table, in the characters of the locale" {
    LC_ALL=C.UTF-8 ok show points.json --plot busbw
    diff <(sed '/^$/,$d' <<<"$output") points.table
    [ "$(plots "$output")" = 2 ] # in place and out of place; one rank has no bus bandwidth
    LC_ALL=C.UTF-8 grep -qP '[\x{2801}-\x{28ff}]' <<<"$output"
    run ! grep -qP '\x1b' <<<"$output"
    for locale in C en_US.ISO-8859-1 ''; do
        LC_ALL=$locale LANG=C ok show points.json --plot time
        [ "$(plots "$output")" = 4 ]
        says 'o algorithm flat' 'x algorithm' '95 % interval' '32 KiB'
        run ! env LC_ALL=C grep -q '[^ -~]' <<<"$output"
    done
    LC_ALL='' LC_CTYPE=C.utf8 LANG=C ok show points.json --plot time -o shown
    LC_ALL=C.UTF-8 grep -qP '[\x{2801}-\x{28ff}]' shown
    ok allreduce --ranks 2 --size 8,1K,64K --max-time 0.01 -q --plot busbw
    [ "$(plots "$output")" = 1 ]
}

@test "documents share a plot, which fits the terminal and has colours there" {
    sed 's/"label": null/"label": "other"/' points.json >other.json
    ok show --edited points.json other.json --plot time
    says points.json other.json
    for columns in 80 120; do
        run --separate-stderr env -u NO_COLOR LC_ALL=C.UTF-8 "$PYTHON" "$root/tests/terminal.py" --columns $columns --rows 20 --colors -- \
            "$ddpbench" show --edited points.json other.json --plot time
        [ "$status" = 0 ]
        says '<36>' '<35>'
        run ! grep -q WRAPPED <<<"$output"
        last=$(sed 's/<[0-9]*>//g' <<<"$output" | tac | sed '/: time over size$/q')
        [ "$(wc -l <<<"$last")" -lt 20 ]
    done
    run --separate-stderr env NO_COLOR=1 "$PYTHON" "$root/tests/terminal.py" --colors -- "$ddpbench" show points.json --plot time
    run ! grep -q '<[0-9]*>' <<<"$output"
}

@test "what has no plot is refused by name" {
    refused 64 verdict.json time -- show verdict.json --plot time
    refused 64 train.json busbw -- show points.json train.json --plot busbw
    refused 64 compress.json time -- show compress.json --plot time # one size
    refused 64 --plot -- show points.json --format csv --plot time
    hint_names '--format table'
    refused 64 --plot speed -- show points.json --plot speed
    hint_names busbw
    refused 64 --plot -- allreduce --json - --plot time
    refused 64 --plot -- allreduce --size 8 --plot time
    refused 64 --plot -- barrier --plot time
    echo '{"runs": [{"command": "allreduce", "plot": "time"}]}' >plot.conf
    refused 78 plot -- sweep plot.conf
    ok allreduce --ranks 1 --backend self --size 8,1K --max-time 0.01 -q --plot busbw
    says 'no plot' busbw
}

@test "a partial document is shown with its reason" {
    sed -i 's/"status": "complete",/"status": "partial",/; s/"reason": null,/"reason": "interrupted by hand",/' points.json
    ok show --edited points.json
    says 'partial' 'interrupted by hand'
}

@test "documents, formats and outputs that cannot be used are named" {
    refused 64 show -- show
    refused 66 gone.json -- show gone.json
    refused 66 gone.json -- show points.json gone.json
    echo 'no json' >text.json
    refused 65 text.json -- show text.json
    echo '{"schema": "other/2"}' >foreign.json
    refused 65 foreign.json -- show foreign.json
    refused 65 foreign.json other/2 -- show --edited foreign.json
    ok show points.json --format jsonl -o lines.jsonl
    refused 65 lines.jsonl -- show lines.jsonl
    sed 's/"started": "2/"started": "1/' points.json >changed.json
    refused 65 changed.json -- show changed.json
    hint_names --edited
    ok show --edited changed.json
    refused 64 tabel -- show points.json --format tabel
    hint_names table
    refused 64 csv=x -- show points.json --format csv=x
    for f in csv osu nccl-tests gbench action-bigger; do
        refused 64 "$f" verdict.json -- show verdict.json --format $f
    done
    for f in osu nccl-tests github action-smaller; do
        refused 64 "$f" train.json -- show points.json train.json --format $f
    done
    refused 64 points.json -- show points.json -o points.json
    refused 73 none/x -- show points.json -o none/x
    failed 74 /dev/full -- show points.json -o /dev/full
    cmp points.json "$BATS_FILE_TMPDIR/points.json"
    run bash -c '"$1" show points.json | head -n 1; echo "${PIPESTATUS[0]}"' _ "$ddpbench"
    says '# ddpbench'
}
