#!/usr/bin/env bats
# Mistakes of users: each has its exit code, names the wrong option or value, says what to do, and
# prints nothing on stdout, which is for data only.
# shellcheck disable=SC2154 # ddpbench, root, stderr: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    quick=(allreduce --ranks 1 --backend self -n 1 -w 0)
}

@test "no command: the help, on stderr" {
    run --separate-stderr "$ddpbench"
    [ "$status" = 64 ]
    [ -z "$output" ]
    [[ $stderr == *allreduce* ]]
}

@test "an unknown command is named, and the nearest suggested" {
    refused 64 "'alreduce'" -- alreduce
    hint_names "'allreduce'"
    refused 64 "'zzzzzzzz'" -- zzzzzzzz
    [[ $stderr != *"'allreduce'"* ]]
}

@test "an unknown option is named, and the nearest suggested; no abbreviations" {
    refused 64 "'--siez'" -- allreduce --siez 4
    hint_names "'--size'"
    refused 64 "'--siz'" -- allreduce --siz 4
    refused 64 "'-Z'" -- allreduce -Z
    hint_names 'ddpbench allreduce --help'
    refused 64 "'--epoch'" -- train --epoch 1
    hint_names "'--epochs'"
}

@test "a missing value, a value for a flag, an unexpected operand" {
    refused 64 --size -- allreduce --size
    refused 64 --quiet -- allreduce --quiet=1
    refused 64 64M -- allreduce 64M
}

@test "a hint names the options of a range, or the command that has the option" {
    refused 64 1K:1M -- allreduce --size 1K:1M
    hint_names '-b 1K -e 1M'
    refused 64 "'--size'" -- sweep --size 1M configs/quick.json
    hint_names 'ddpbench allreduce'
    # The hint is about the option in the error.
    refused 64 "'--timeout'" -- allreduce --timeout x --epochs 3
    [[ $stderr != *epochs* ]]
    refused 64 "'-x'" -- sweep -x --size 1M
    [[ $stderr != *allreduce* ]]
    # An item of a list is named.
    refused 64 "'q4:100'" -- allreduce --compress q8,q4:100
}

@test "choices: the legal values are listed and the nearest is suggested" {
    refused 64 shn -- allreduce --ranks 1 -n 1 -w 0 --size 4 --backend shn
    message_names shm
    refused 64 f31 -- "${quick[@]}" --size 4 --dtype f31
    hint_names "'f32'"
    refused 64 ave -- "${quick[@]}" --size 4 --op ave
    hint_names "'avg'"
    refused 64 rign -- "${quick[@]}" --size 4 --algorithm rign
    refused 64 thread -- "${quick[@]}" --size 4 --launch thread
    hint_names "'threads'"
    refused 64 jsno -- "${quick[@]}" --size 4 --format jsno
    hint_names "'json'"
    refused 64 sinca-cnn -- train --model sinca-cnn
    hint_names "'singa-cnn'"
}

@test "values are named as the user wrote them" {
    refused 64 "'half'" "'fp16'" "'f16'" -- "${quick[@]}" --size 4 -d half,fp16
    refused 64 "'-r'" -- allreduce -r 1
    [ "$(grep -o "'-r'" <<<"$stderr" | wc -l)" = 1 ]
    hint_names "ddpbench allreduce --help"
    refused 64 "'-v'" -- -v allreduce
    hint_names "ddpbench COMMAND -v"
    refused 64 "'--size'" -- allreduce -- --size
    [[ $stderr != *"--size --size"* ]]
    refused 64 "'extra'" -- allreduce extra
    [[ $stderr != *"--size extra"* ]]
    refused 64 "'64M'" -- allreduce 64M
    hint_names "--size 64M"
}

@test "more ranks than cores, and threads, are reported on stderr and in the record" {
    cores=$(nproc)
    run --separate-stderr "$ddpbench" allreduce --ranks $((cores + 1)) --size 4 -n 1 -w 0 --launch threads --json l.json
    [ "$status" = 0 ]
    says "$((cores + 1)) ranks" "$cores"
    grep -q '"launch": "threads"' l.json
    run --separate-stderr "$ddpbench" allreduce --ranks 1 --size 4 -n 1 -w 0 --json l.json
    [ -z "$stderr" ]
    grep -q '"launch": "processes"' l.json
    OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 refused 64 "--launch threads" -- allreduce --size 4 --launch threads
}

@test "torchrun's RANK and WORLD_SIZE with an empty MASTER_ADDR are refused" {
    RANK=0 WORLD_SIZE=2 MASTER_ADDR='' refused 76 MASTER_ADDR -- allreduce --size 4 --ranks 1
}

@test "sizes: a wrong character anywhere is an error" {
    for size in '' 64Q '64 M' abc -1 1.5 0x10 M 4,,8 nan inf 1e400 64Mx; do
        refused 64 --size -- "${quick[@]}" --size "$size"
    done
}

@test "sizes: 64M is binary and 64MB is decimal" {
    size_of() {
        "$ddpbench" "${quick[@]}" --size "$1" --json - 2>/dev/null |
            "$PYTHON" -c 'import json,sys; print(json.load(sys.stdin)["points"][0]["requested_bytes"])'
    }
    [ "$(size_of 1M)" = 1048576 ]
    [ "$(size_of 1MiB)" = 1048576 ]
    [ "$(size_of 1MB)" = 1000000 ]
    [ "$(size_of 1e6)" = 1000000 ]
    [ "$(size_of 1.5k)" = 1536 ]
}

@test "sizes that overflow or do not fit in memory are refused before any work" {
    refused 64 99999999999G -- "${quick[@]}" --size 99999999999G
    refused 64 1e300 -- "${quick[@]}" --size 1e300
    refused 71 "2 ranks" PiB -- allreduce --ranks 2 --backend shm -n 1 --size 4000000G
    refused 71 "8 ranks" "16 TiB" -- allreduce --ranks 8 --backend shm -n 1 --size 1T
}

@test "numbers: values out of range are refused, and the error names the range" {
    refused 64 "'--ranks'" -- allreduce --size 4 --ranks 0
    refused 64 "'--ranks'" -- allreduce --size 4 --ranks 257
    refused 64 "'--ranks'" -- allreduce --size 4 --ranks two
    refused 64 "'--iters'" -- "${quick[@]}" --size 4 -n -5
    refused 64 "'--warmup'" -- "${quick[@]}" --size 4 -w x
    refused 64 "'--timeout'" -- "${quick[@]}" --size 4 --timeout 0
    refused 64 "'--timeout'" -- "${quick[@]}" --size 4 --timeout nan
    refused 64 "'--seed'" -- "${quick[@]}" --size 4 --seed 9007199254740993
    refused 64 "'--batch'" -- train --batch 0
    refused 64 "'--lr'" -- train --lr inf
}

@test "a misspelt name gets one suggestion and no list" {
    # shellcheck disable=SC2086 # words
    while IFS='|' read -r near words; do
        refused 64 -- $words
        hint_names "'$near'"
        [ "$(grep -o "'" <<<"${stderr#*$'\n'}" | wc -l)" = 2 ] || { echo "$words: $stderr"; false; }
        [[ $stderr != *legal:* ]]
    done <<'END'
--size|allreduce --siez 4
train|trian
--version|--verson
busbw|explain busbv
allreduce|help alreduce
model|list modles
f32|allreduce --dtype f31
ring|allreduce --algorithm rign
shm|allreduce --backend shn
topk|allreduce --compress topkk:0.1
topk|train --sync topkk:0.1
lenet|train --model lenett
json|allreduce --format jsno
normal|allreduce --gradient nromal
bash|completion bsh
algorithm|gate --vary algoritm
END
}

@test "a name that resembles nothing: few legal values are listed, many are not" {
    refused 64 zzz -- allreduce --dtype zzz
    hint_names f32 u8
    refused 64 zzzzz -- explain zzzzz
    hint_names busbw exit-codes
    refused 64 zzzzz -- help zzzzz
    hint_names 'ddpbench help'
    [[ $stderr != *allreduce* ]]
    refused 64 zzzzz -- allreduce --zzzzz
    hint_names 'ddpbench allreduce --help'
    [[ $stderr != *--size* ]]
}

@test "-h and --help: help on stdout, nothing on stderr, nothing is run or created, whatever else is given" {
    for command in allreduce train doctor list explain completion help; do
        for words in "$command -h" "$command --help" "-h $command" "--help $command"; do
            # shellcheck disable=SC2086 # words
            run --separate-stderr "$ddpbench" $words
            [ "$status" = 0 ]
            [ -z "$stderr" ]
            [[ $output == *"ddpbench $command"* ]]
        done
    done
    ok allreduce --size -h
    ok allreduce --nonsense 3 --help
    ok -h units
    refused 64 nonsense -- --help nonsense
    refused 64 "'-h'" -- allreduce -- -h
    run --separate-stderr "$ddpbench" allreduce --size 4 --json made.json --help
    [ "$status" = 0 ]
    [ ! -e made.json ]
    [[ $output == *"--size"* ]]
}

@test "output that cannot be created: 73, before anything is measured" {
    for path in no/such/dir/x.json . /proc/x.json; do
        refused 73 "$path" -- "${quick[@]}" --size 4 --json "$path"
    done
    refused 73 no/such -- train --json no/such/x.json
}

@test "output that cannot be written: 74, and a device stays a device" {
    run --separate-stderr "$ddpbench" "${quick[@]}" --size 4 --json /dev/full
    [ "$status" = 74 ]
    [ -c /dev/full ]
    run "$ddpbench" "${quick[@]}" --size 4 --json /dev/null
    [ "$status" = 0 ]
    [ -c /dev/null ]
    for arguments in "list" "list --json" "help" "--version" "${quick[*]} --size 4" "${quick[*]} --size 4 --json -"; do
        run bash -c "\"$ddpbench\" $arguments >/dev/full"
        [ "$status" = 74 ] || { echo "$arguments: $status"; false; }
    done
}

@test "a closed stdout is an error, and its descriptor is not reused for a file" {
    run bash -c "\"$ddpbench\" ${quick[*]} --size 4 --json out.json >&-"
    [[ $status == 73 || $status == 74 ]]
    if [ -e out.json ]; then "$PYTHON" -m json.tool out.json; fi
    run bash -c "\"$ddpbench\" list >&-"
    [ "$status" = 74 ]
}

@test "two documents cannot share stdout" {
    failed 64 stdout -- "${quick[@]}" --size 4 --json - --format table
}

@test "stdout is data only: --json - is one document, also with -v; a pipe gets no colour" {
    "$ddpbench" "${quick[@]}" --size 4,8K --json - -v 2>err | "$PYTHON" -m json.tool >/dev/null
    "$ddpbench" "${quick[@]}" --size 4,8K >out 2>err
    run grep -c $'\033' out err
    [[ $output == *out:0* && $output == *err:0* ]]
}

@test "a reader that leaves does not make the run hang" {
    run timeout 20 bash -c "\"$ddpbench\" ${quick[*]} --size 4,8,16 | true; exit \${PIPESTATUS[0]}"
    [ "$status" != 124 ]
}

@test "our environment variables: an unknown one and an illegal value are errors" {
    DDPBENCH_SIND=avx2 refused 64 DDPBENCH_SIND -- list
    hint_names "'DDPBENCH_SIMD'"
    DDPBENCH_HOSTS=2 refused 64 DDPBENCH_HOSTS DDPBENCH_SIMULATE_HOSTS -- list
    DDPBENCH_SIMD=sse9 refused 64 sse9 -- list
    DDPBENCH_SIMD=scalar "$ddpbench" "${quick[@]}" --size 4 --json /dev/null
}

@test "a library that is absent: 69, and what was tried" {
    failed 69 libnothing.so -- train --epochs 1 --ranks 1 --blas libnothing.so
}

@test "no data: 66, and the package that brings it" {
    refused 66 "'no/such/dir'" -- train --data no/such/dir
    mkdir empty
    refused 66 empty -- train --data empty
}

@test "unknown operands of explain, completion and help" {
    refused 64 busbv -- explain busbv
    hint_names "'busbw'"
    refused 64 tcsh -- completion tcsh
    refused 64 alreduce -- help alreduce
}
