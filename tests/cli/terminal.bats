#!/usr/bin/env bats
# The output on a terminal: it fits the width, rows appear when they are measured, and a terminal is left as it was.
# tests/terminal.py shows what a person sees. Lines that the terminal had to break begin with "WRAPPED: ".
# shellcheck disable=SC2154 # stderr: bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    unset NO_COLOR COLUMNS
    quick=(allreduce --ranks 1 --backend self -n 5 -w 0)
    two=(allreduce --ranks 2 --backend shm -n 5 -w 0)
}

# on COLUMNS ARGUMENT...: runs ddpbench on a terminal of this many columns and 24 rows; options of terminal.py are in
# terminal_options, and the expected exit code is in terminal_code. What a person sees is in $output.
on() {
    run "$PYTHON" "$root/tests/terminal.py" "${terminal_options[@]}" --columns "$1" -- "$ddpbench" "${@:2}"
    [ "$status" = "${terminal_code:-0}" ] || {
        echo "ddpbench ${*:2}: exit $status: $output"
        return 1
    }
}

# fits ARGUMENT...: at 80 and at 120 columns no line of the output is broken, unless it has a path.
fits() {
    local columns
    for columns in 80 120; do
        on "$columns" "$@"
        if grep --no-group-separator -B 1 '^WRAPPED' <<<"$output" | grep -qv '^WRAPPED\|/'; then
            echo "ddpbench $* at $columns columns: $output"
            return 1
        fi
    done
}

# sizes: prints the first two words of the rows in $output, such as "4 KiB", in one line.
sizes() {
    awk '$2 ~ /^([KMG]i)?B$/ && $1 ~ /^[0-9.]+$/ { printf "%s%s %s", sep, $1, $2; sep = ", " }' <<<"$output"
}

@test "no line of the default output of the collectives is broken" {
    local command
    for command in allreduce reduce-scatter all-gather broadcast reduce all-to-all gather scatter send-recv; do
        fits "$command" --ranks 2 --backend shm -n 3 -w 0 --size 64,1M
    done
    fits barrier --ranks 2 --backend shm -n 3
    fits "${two[@]}" --size 64K,1M --compress none,fp16,topk:0.01,oktopk:0.01 --break-even
    fits "${two[@]}" --size 64K,1M --overlap-compute
    fits "${two[@]}" --size 8,4K -d f32,bf16 -o sum,max --algorithm flat,direct
    fits allreduce --ranks 1,2,4 --size 4 -n 3 -w 0
}

@test "no line of the default output of the other commands is broken" {
    export XDG_STATE_HOME=$PWD/state
    # Commands are not broken into lines, so a short one stands for a measurement of known times.
    id=allreduce/shm/auto/f32/sum/r0/in/registered/n2
    printf '%s\n' '#!/bin/sh' "exec '$PYTHON' -S -E '$root/tests/gate/fake_launch.py' --state count \
        --points $id/64/none/0=10,$id/4096/topk:0.01/4=20 \"\$@\"" >old
    cp old new
    chmod +x old new
    echo '{"runs": [{"command": "allreduce", "ranks": [1, 2], "size": [8, "4K"], "iters": 3},
        {"command": "train", "ranks": 2, "sync": ["dense", "topk:0.01"], "dataset": "synthetic", "images": 64, "epochs": 1}]}' >c.json
    small=(--ranks 2 --dataset synthetic --images 64 --batch 16 --epochs 2)
    fits version
    fits list
    fits doctor
    fits sweep c.json
    fits sweep c.json --dry-run
    fits allreduce --ranks 2,4 --size 8,64M --dry-run
    fits train "${small[@]}" --dry-run
    fits train "${small[@]}"
    fits train "${small[@]}" --compare dense,fp16,topk:0.01,partial:4 --json t.json
    fits compare --across t.json t.json
    fits gate --runs 1 --base ./old --new ./new --json g.json
    fits show g.json
    terminal_code=12
    fits gate --runs 1 --selftest --gates 1,1 --pairs 6 --base ./old
    ok allreduce --ranks 2 --backend shm -n 3 -w 0 --size 64,1M --json a.json
    fits compare a.json a.json
}

@test "the first line has what is constant, the columns what varies" {
    on 80 "${two[@]}" --size 4K,64K --placement in
    says "allreduce, f32 sum, 2 ranks over shm, in place, registered memory"
    [[ $output != *place\ * || $output != *"ranks "*"ranks "* ]]
    head=$(grep -E '^ +size ' <<<"$output")
    [[ $head != *type* && $head != *place* && $head != *ranks* && $head == *time*busbw*quality* ]]
    on 80 "${two[@]}" --size 4K -d f32,f16 -o sum,max
    says "allreduce, 4 KiB, 2 ranks over shm, registered memory"
    head=$(grep -E '^type +op ' <<<"$output" || grep -E '^place +type +op ' <<<"$output")
    [[ $head == *type*op*time* && $head != *size* ]]
    on 80 allreduce --ranks 1,2 --size 4K -n 3 -w 0 --placement in
    [ "$(grep -cE '^ +[12] ' <<<"$output")" = 2 ]
}

@test "more columns are shown where they fit, and all with --wide" {
    on 80 "${two[@]}" --size 4K
    [[ $output != *p95* ]]
    on 140 "${two[@]}" --size 4K
    says p95 algbw
    terminal_options=(--colors)
    on 250 "${two[@]}" --size 4K --wide
    says '#index' count wrong pingpong '<2>' '# verified'
}

@test "in a pipe and in a file the table is wide and has no colours" {
    ok "${two[@]}" --size 4K --format table,table=file
    says '#index' count wrong pingpong
    [[ $output != *$'\033'* ]]
    diff <(grep -v '^#' <<<"$output") <(grep -v '^#' file)
    # COLUMNS is about terminals.
    COLUMNS=40 ok "${two[@]}" --size 4K
    says '#index'
}

@test "COLUMNS replaces the width of the terminal" {
    terminal_options=(--term dumb)
    COLUMNS=40 on 120 "${quick[@]}" --size 4K
    [[ $output != *WRAPPED* ]]
    [ "$(awk 'length > 40' <<<"$output")" = "" ]
}

@test "NO_COLOR has no colours, and TERM=dumb neither colours nor other escape codes" {
    terminal_options=(--colors)
    on 80 "${two[@]}" --size 4K
    says '<1>' '<2>'
    NO_COLOR=1 on 80 "${two[@]}" --size 4K
    [[ $output != *'<'[0-9]* ]]
    NO_COLOR='' on 80 "${two[@]}" --size 4K
    says '<1>'
    terminal_options=(--colors --term dumb --act "state['escape'] = '\\x1b' in seen; screen.feed('ESCAPE' if state['escape'] else '')")
    on 80 "${two[@]}" --size 4K,8K
    [[ $output != *ESCAPE* && $output != *'<'[0-9]* ]]
    on 80 list
    [[ $output != *ESCAPE* ]]
    on 80 doctor
    [[ $output != *ESCAPE* && $output != *'<'[0-9]* ]]
}

@test "list and doctor mark good, doubtful and bad by colours" {
    terminal_options=(--colors)
    DDPBENCH_SIMD=scalar on 80 list simd
    grep -qE '^simd +scalar +<32>yes' <<<"$output"
    grep -qE '^simd +avx512 +<33>no' <<<"$output"
    on 80 doctor
    says '<32>OK'
    DDPBENCH_DATA_DIR=/nonexist on 80 doctor
    says '<33>WARN'
    NO_COLOR=1 on 80 doctor
    [[ $output == *WARN* || $output == *OK* ]]
    [[ $output != *'<'[0-9]* ]]
    ok doctor
    [[ $output != *$'\033'* ]]
}

@test "rows are in the order of the plan, whatever the order of measurement" {
    on 80 "${quick[@]}" -b 4 -e 64K -f 4 --placement in
    [ "$(sizes)" = "4 B, 16 B, 64 B, 256 B, 1 KiB, 4 KiB, 16 KiB, 64 KiB" ]
    terminal_options=(--term dumb)
    on 80 "${quick[@]}" -b 4 -e 64K -f 4 --placement in
    [ "$(grep -cE '^ +[1-8] +[0-9]+ (Ki)?B ' <<<"$output")" = 8 ]
    [ "$(awk '/^ +[1-8] +[0-9]+ (Ki)?B / { printf "%s ", $1 }' <<<"$output")" != "1 2 3 4 5 6 7 8 " ]
}

@test "a table with more rows than the screen is complete, in order, and has no row twice" {
    terminal_options=(--rows 8)
    on 80 "${quick[@]}" -b 4 -e 400 -i 4 --placement in --seed 3
    [ "$(sizes | tr ',' '\n' | awk '{ print $1 }')" = "$(seq 4 4 400)" ]
    [ "$(grep -c 'more rows' <<<"$output")" = 0 ]
}

@test "a new width of the terminal takes effect, and breaks no later line" {
    local act='
if seen.count("KiB") > 3 and not state:
    state["done"] = True
    resize(60, 24)
'
    terminal_options=(--act "$act")
    on 120 "${two[@]}" --size 4K,8K,16K,32K,64K,128K,256K --placement in --max-time 0.1 --precision 0.01
    [ "$(grep -E '^ *(size|[0-9.]+ KiB) ' <<<"$output" | tail -n 4 | awk 'length > 60')" = "" ]
    [[ $(sizes) == *"64 KiB, 128 KiB, 256 KiB" ]]
}

@test "a message between two rows does not disturb them" {
    # An algorithm that cannot run is left out, and the table says so once.
    on 80 "${two[@]}" --size 4K,64K --algorithm all --launch threads
    [ "$(grep -c '^left out: ' <<<"$output")" -ge 1 ]
    [[ $output != *"ddpbench: left out"* ]]
    ok "${two[@]}" --size 4K,64K --algorithm all --launch threads
    [[ $stderr == *"left out: "* && $output == *"# left out: "* ]]
}

# progress_of PATTERN ARGUMENT...: the lines of progress of a command on a terminal match the pattern, and none of them
# remains on the screen, although rows were printed where they stood.
progress_of() {
    terminal_options=(--act 'open("seen", "w").write(seen)')
    on 100 "${@:2}"
    tr '\r' '\n' <seen | grep -aqE "$1" || {
        echo "ddpbench ${*:2}: no progress like $1: $(cat -v seen)"
        return 1
    }
    [[ $output != *" left"* ]] || {
        echo "ddpbench ${*:2}: progress remains: $output"
        return 1
    }
}

@test "long commands show the elapsed and the remaining time, and erase them" {
    export XDG_STATE_HOME=$PWD/state
    progress_of 'strategy fp16, seed 2 of 2, epoch 1 of 2, [0-9]+ s, about [0-9]+ s left' \
        train --ranks 2 --dataset synthetic --images 512 --batch 16 --epochs 2 --compare dense,fp16 --seeds 1,2
    progress_of 'gate: pair 2 of at most 8, (base|new), ratio up to [0-9.]+, [0-9]+ s, at most [0-9]+ s left' \
        gate --metric wall --base 'sleep 0.01' --new 'sleep 0.01' --runs 1 --pairs 8 --min-effect 1000
    terminal_code=12
    progress_of 'self-test: gate 2 of 2 \(delay injected\), pair 1 of 6, [0-9]+ s, about [0-9]+ s left' \
        gate --selftest --restart --gates 1,1 --metric wall --base 'sleep 0.01' --runs 1 --pairs 6
    terminal_code=0
    echo '{"runs": [{"command": "allreduce", "size": [8, "4K"], "iters": 3}, {"command": "reduce", "size": 8, "iters": 3}]}' >c.json
    progress_of '\[2/2, [0-9]+ s, about [0-9]+ s left\] ' sweep c.json --ranks 2
    ok sweep c.json --ranks 2
    [[ $stderr != *left* ]]
}

@test "Ctrl-C between two rows leaves whole lines, usual colours and the result" {
    local act='
if seen.count(" KiB") >= 4 and not state:
    state["done"] = True
    os.kill(pid, 2)
'
    run "$PYTHON" "$root/tests/terminal.py" --colors --act "$act" -- "$ddpbench" allreduce --ranks 2 --size 4K,8K,16K,32K \
        --max-time 5 --precision 0.01 -n 10000000 --json p.json
    [ "$status" = 130 ]
    says verified interrupted
    [ "$(json p.json 'd["status"]')" = partial ]
    # The last message begins a line, and nothing follows its text in the usual colour.
    grep -q '^ddpbench: ' <<<"$output"
    [[ ${lines[-1]} != *'<'[0-9]*'>' ]]
}

@test "a row appears long before the run has ended, on a terminal and in a pipe" {
    local act='
import time
if "row" not in state and "MiB" in seen.split("size", 1)[-1].split("(", 1)[0] and "us" in seen.split("size", 1)[-1]:
    state["row"] = time.monotonic()
if "verified" in seen and "end" not in state:
    state["end"] = time.monotonic()
    screen.feed(f"EARLY {state.get(chr(114) + chr(111) + chr(119), 0) + 0.5 < state[chr(101) + chr(110) + chr(100)]}\n")
'
    slow=(allreduce --ranks 1 --backend self --size "1M,2M,4M" --placement out --max-time 0.4 --precision 0.01)
    terminal_options=(--act "$act")
    on 80 "${slow[@]}"
    says "EARLY True"
    run "$PYTHON" - "$ddpbench" "${slow[@]}" <<'END'
import subprocess, sys, time
run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
rows = [time.monotonic() for line in run.stdout if line[0] == " "]
print(len(rows), time.monotonic() - rows[0] > 0.5, run.wait())
END
    [ "$output" = "3 True 0" ]
}

@test "-v says what the shown columns mean, and explain columns what all mean" {
    on 100 "${two[@]}" --size 4K -v
    says "  busbw " "  bound " "host " "timer: "
    [[ $output != *$'\n'"  algbw "* && $output != *WRAPPED* ]]
    ok "${two[@]}" --size 4K -v
    says "# busbw " "# algbw " "# quality "
    ok "${two[@]}" --size 4K
    [[ $output != *"# busbw "* ]]
    ok explain columns
    for column in index size +- busbw bound "x f32" overlap exposed "pays below" Holm; do
        says "  $column"
    done
    [ "$(awk 'length > 80' <<<"$output")" = "" ]
}
