#!/usr/bin/env bats
# The commands that need no ranks: help, explain, list, doctor, completion.
# jobs: 3
# shellcheck disable=SC2154 # stderr is set by run --separate-stderr
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
    commands=$(sed -n 's/^DDP_COMMAND(\(.*\))/\1/p' "$root/cmd/command_list.h")
}

# Prints the names in a list header: symbols_of coll/coll_list.h COLL
symbols_of() {
    sed -n "s/^DDP_$2(\([a-z0-9_]*\).*/\1/p" "$root/lib/$1"
}

@test "help begins with four command lines and names every command below one heading" {
    "$ddpbench" help >help.txt
    [ "$(sed -n '2,5p' help.txt | grep -c '^  ddpbench ')" = 4 ]
    for command in $commands; do [ "$(grep -c "^  ${command//_/-}  " help.txt)" = 1 ]; done
    [ "$(grep -cE '^(Measure|Train|Judge|Inspect):$' help.txt)" = 4 ]
    sed -n '/^Judge:/,/^$/p' help.txt | grep -q '^  gate '
    run grep -nE '^.{81,}' help.txt
    [ -z "$output" ] || { echo "$output"; false; }
    "$ddpbench" -h | diff help.txt -
    "$ddpbench" --help | diff help.txt -
}

# The command lines at the top of the help must be right.
@test "the options of the examples in the help exist" {
    for command in '' $commands; do
        # shellcheck disable=SC2086 # no word if the command is empty
        "$ddpbench" ${command//_/-} --help
    done | sed -nE 's/^  (mpiexec -n 16 )?ddpbench ([a-z-]+) (.*)/\2 \3/p' >examples
    [ "$(wc -l <examples)" -gt 20 ]
    while read -r command words; do
        for option in $(grep -oE '(^| )--?[a-z_-]+' <<<"${words%%\'*}"); do
            [[ $option = --benchmark_* ]] || "$ddpbench" help "$command" | grep -qE -- "^ +(-[a-z], )?$option( |,|$)" ||
                { echo "$command $words: no $option"; false; }
        done
    done <examples
}

@test "each command has a short page of at most 30 lines and a long one with all options" {
    for command in $commands; do
        name=${command//_/-}
        "$ddpbench" "$name" -h >"short-$command.txt"
        "$ddpbench" "$name" --help >"long-$command.txt"
        "$ddpbench" help "$name" | diff - "long-$command.txt"
        "$ddpbench" --help "$name" | diff - "long-$command.txt"
        "$ddpbench" -h "$name" | diff - "short-$command.txt"
        [ "$(wc -l <"short-$command.txt")" -le 30 ]
        grep -q "^usage: ddpbench $name " "short-$command.txt"
        grep -qF "ddpbench $name --help" "short-$command.txt"
        for page in short long; do grep -q '^  -h, --help' "$page-$command.txt"; done
        # Every option of the short page is on the long page, too.
        for page in short long; do
            grep -oE '^  (-[a-zA-Z], |    )--[a-z0-9-]+' "$page-$command.txt" | sort -u >"$page-options"
        done
        [ "$(comm -23 short-options long-options)" = "" ]
        # The short page says how many of the options it shows.
        shown=$(wc -l <short-options) all=$(grep -vc -- '--benchmark$' long-options)
        if [ "$shown" = "$all" ]; then
            grep -q '^This page shows every option\. ' "short-$command.txt"
        else
            grep -q "^This page shows $shown of $all options\. " "short-$command.txt"
        fi || { echo "$command: $shown of $all; $(tail -1 "short-$command.txt")"; false; }
    done
    [ "$(wc -l <long-allreduce.txt)" -gt 100 ]
    grep -q -- --inject-delay long-allreduce.txt
    run grep -q -- --inject-delay short-allreduce.txt
    [ "$status" = 1 ]
    "$ddpbench" allreduce -h --help | diff - long-allreduce.txt
    "$ddpbench" allreduce -qh | diff - short-allreduce.txt
    "$ddpbench" all_reduce_perf -b 8 -h | diff - short-allreduce.txt
    for topic in environment units exit-codes; do "$ddpbench" help "$topic" >"short-$topic.txt"; done
    "$ddpbench" help >short-program.txt
    run grep -nE '^.{81,}' ./short-*.txt ./long-*.txt
    [ -z "$output" ] || { echo "$output"; false; }
}

@test "version, --version and -V print the same line" {
    ok version
    [[ $output =~ ^ddpbench\ [0-9]+\.[0-9]+\.[0-9]+.*\ \(.+\)$ ]]
    version=$output
    ok --version
    [ "$output" = "$version" ]
    ok -V
    [ "$output" = "$version" ]
    refused 64 extra -- version extra
    refused 64 extra -- --version extra
}

@test "help environment has every variable of the table" {
    "$ddpbench" help environment >text
    for variable in $(grep -o '"DDPBENCH_[A-Z_]*"' "$root/lib/base/conf.c" | tr -d '"'); do
        [ "$variable" = DDPBENCH_ ] || grep -q "$variable" text
    done
}

@test "help: one topic" {
    run -64 --separate-stderr "$ddpbench" help list doctor
    error_names doctor
    run -64 --separate-stderr "$ddpbench" help --man list
    run -64 --separate-stderr "$ddpbench" help evnironment
    hint_names "'environment'"
}

@test "help has exactly the exit codes of err.h" {
    "$ddpbench" help exit-codes | grep -oE '^ *[0-9]+ ' | tr -d ' ' >said
    { echo 0; grep -oE '^ *DDP_E[A-Z]+ = -[0-9]+' "$root/lib/base/err.h" | sed 's/.*-//'; } >codes
    diff <(sort -n codes) said
    "$ddpbench" explain exit-codes | diff - <("$ddpbench" help exit-codes)
}

@test "the man page: no complaint of mandoc, every command, option, variable and exit code" {
    "$ddpbench" help --man >page.1
    if command -v mandoc >/dev/null; then
        # The date is empty on purpose: a build prints the same page every day.
        run bash -c "mandoc -T lint page.1 | grep -v 'missing date'"
        [ -z "$output" ] || { echo "$output"; false; }
        mandoc -T ascii page.1 >raw.txt
    else
        man -l page.1 >raw.txt
    fi
    sed 's/.\x08//g' raw.txt >page.txt
    for command in $commands; do grep -q "^   ${command//_/-}$" page.txt; done
    for word in --size --seed --epochs "-h," DDPBENCH_SIMD NO_COLOR 128+n mpiexec; do
        grep -qe "$word" page.txt
    done
}

@test "explain busbw: the factors are those of nccl-tests, the example is right" {
    "$ddpbench" explain busbw >text
    grep -qE '^allreduce +1\.000 +1\.500 +1\.750$' text
    grep -qE '^all-gather +0\.500 +0\.750 +0\.875$' text
    grep -qE '^broadcast +1\.000 +1\.000 +1\.000$' text
    grep -q '= 5.37 GB/s' text
    grep -q '= 8.05 GB/s' text # 67108864 / 0.0125 * 1.5 = 8.053e9
}

@test "explain: every topic it names exists; none, two, or an unknown one is an error" {
    run -64 --separate-stderr "$ddpbench" explain
    [ -z "$output" ]
    hint_names busbw exit-codes
    topics=$("$ddpbench" completion bash | sed -n 's/^ *explain) .*operands="\([^"]*\)".*/\1/p')
    [ -n "$topics" ]
    for topic in $topics; do "$ddpbench" explain "$topic" >"$topic.txt"; done
    run grep -nE '^.{81,}' ./*.txt
    [ -z "$output" ] || { echo "$output"; false; }
    run -64 --separate-stderr "$ddpbench" explain busbw algbw
    run -64 --separate-stderr "$ddpbench" explain busbv
    hint_names "'busbw'"
}

@test "explain: the topics about words have at most 12 lines, and their facts are those of the program" {
    for topic in cell baseline exposed auto sync topk; do
        "$ddpbench" explain "$topic" >"$topic.txt"
        [ "$(wc -l <"$topic.txt")" -le 12 ]
        # The options that the text names exist.
        for option in $(grep -oE -- '--[a-z][a-z-]+' "$topic.txt"); do
            for command in allreduce train gate; do "$ddpbench" "$command" --help; done | grep -q -- "^ .*${option}[ ,]" ||
                { echo "$topic: $option"; false; }
        done
    done
    "$ddpbench" allreduce --ranks 2 --size 64K --placement in --backend shm --dry-run >plan
    grep -qF "$(grep -o 'allreduce/[^ ]*[0-9]' cell.txt)" plan
    steps=$(sed -n 's/^#define BASELINE_STEPS //p' "$root/lib/run/training.c")
    tr '\n' ' ' <baseline.txt | grep -q "trains $steps steps alone"
    for name in $(symbols_of exchange/sync_list.h SYNC) $(symbols_of compress/compress_list.h COMPRESSOR); do
        [ "$name" = compressed ] || grep -qw -- "${name//_/-}" sync.txt
    done
}

@test "list has every line of every registry" {
    "$ddpbench" list >text
    for name in $(symbols_of comm/backend_list.h BACKEND); do grep -qE "^backend +$name " text; done
    for name in $(symbols_of report/report_list.h REPORTER); do grep -qE "^reporter +${name//_/-} " text; done
    for name in $(symbols_of model/model_list.h MODEL); do grep -qE "^model +${name//_/-} " text; done
    for name in $(symbols_of model/dataset_list.h DATASET); do grep -qE "^dataset +${name//_/-} " text; done
    # The class `compressed` stands for all compressors, except `none`, which compresses nothing.
    for name in $(symbols_of exchange/sync_list.h SYNC) $(symbols_of compress/compress_list.h COMPRESSOR); do
        [ "$name" = compressed ] || grep -qE "^sync +${name//_/-}(\[|:| )" text
    done
    for name in $(symbols_of compress/compress_list.h COMPRESSOR); do grep -qE "^compressor +${name//_/-}(\[|:| )" text; done
    for name in $(symbols_of coll/sparse/sparse_list.h SPARSE); do grep -qE "^sparse +$name " text; done
    for name in cpu cuda; do grep -qE "^device +$name " text; done
    # allreduce_ring is allreduce/ring, broadcast_scatter_ring is broadcast/scatter-ring
    sed -nE 's/^algorithm +([^ ]+) .*/\1/p' text | tr -- '-/' '__' >algorithms
    for name in $(symbols_of coll/coll_list.h COLL); do grep -qxF "$name" algorithms; done
}

@test "list: kinds, plurals, and JSON that agrees with the text" {
    "$ddpbench" list models syncs >text
    run cut -d' ' -f1 text
    [[ $output == *model* && $output == *sync* && $output != *backend* ]]
    run -64 --separate-stderr "$ddpbench" list modles
    hint_names "'model'"
    "$ddpbench" list --json >list.json
    "$ddpbench" list | tail -n +2 >text
    "$PYTHON" - <<'PY'
import json
items = json.load(open("list.json"))
lines = open("text").read().splitlines()
assert len(items) == len(lines) > 10
for item, line in zip(items, lines):
    assert set(item) == {"kind", "name", "usable", "reason", "summary"}, item
    assert line.split()[:3] == [item["kind"], item["name"], "yes" if item["usable"] else "no"], line
    assert (item["reason"] is None) == item["usable"]
PY
}

@test "list: a SIMD level that DDPBENCH_SIMD excludes is not usable" {
    DDPBENCH_SIMD=scalar "$ddpbench" list simd >text
    grep -qE '^simd +scalar +yes' text
    grep -qE '^simd +avx2 +no' text
}

@test "doctor: kernels of OpenBLAS without AVX2 on a processor that has it" {
    grep -qw avx2 /proc/cpuinfo || skip "no AVX2"
    OPENBLAS_CORETYPE=Prescott "$ddpbench" doctor >text
    grep -q OpenBLAS text || skip "the BLAS library is not OpenBLAS"
    grep '^WARN .*Prescott.*OPENBLAS_CORETYPE' text
    OPENBLAS_CORETYPE=Haswell "$ddpbench" doctor | grep '^OK .*Haswell'
    # Without the variable, ddpbench names better kernels if OpenBLAS does not know the processor.
    env -u OPENBLAS_CORETYPE "$ddpbench" doctor | grep '^OK .*OpenBLAS'
}

@test "doctor: worst first, exit 0 without a FAIL" {
    "$ddpbench" doctor >text
    cut -c1-4 text >verdicts
    run grep -vxE 'FAIL|WARN|NOTE|OK  ' verdicts
    [ -z "$output" ]
    sed 's/FAIL/1/; s/WARN/2/; s/NOTE/3/; s/OK/4/' verdicts >order
    sort -c order
    for subject in launcher cores memory 'shared memory' /dev/shm load BLAS data; do
        grep -q "  $subject" text
    done
}

@test "doctor survives a BLAS library that ends the process that loads it" {
    for body in '_exit(1)' 'abort()'; do
        printf '#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) static void die(void) { %s; }\n' \
            "$body" >dies.c
        "${CC:-cc}" -shared -fPIC -o dies.so dies.c
        DDPBENCH_BLAS_LIB=$PWD/dies.so ok doctor
        grep -q '^WARN  BLAS: ' <<<"$output"
    done
}

@test "doctor warns of the load average from which points are busy" {
    printf '#include <stdlib.h>\nint getloadavg(double *load, int n) { load[0] = atof(getenv("LOAD")); return n > 0; }\n' >load.c
    "${CC:-cc}" -shared -fPIC -o load.so load.c
    LOAD=0 LD_PRELOAD=$PWD/load.so "$ddpbench" --version >/dev/null 2>&1 || skip "nothing can be preloaded into this binary"
    export LD_PRELOAD=$PWD/load.so
    LOAD=0 "$ddpbench" allreduce --ranks 1 --size 4 -n 1 --json r.json -q >/dev/null
    export LOAD
    LOAD=$(json r.json '1.4 * d["world"]["hosts"][0]["cores"]')
    "$ddpbench" doctor | grep -q '^OK    load: '
    LOAD=$(json r.json '1.6 * d["world"]["hosts"][0]["cores"]')
    "$ddpbench" doctor | grep '^WARN  load: ' | grep -q busy
    "$ddpbench" allreduce --ranks 1 --size 4 -n 1 --json r.json -q >/dev/null
    holds r.json '"busy" in p[0]["quality"]'
}

@test "doctor --json says the same" {
    "$ddpbench" doctor --json >doctor.json
    "$PYTHON" - <<'PY'
import json
doc = json.load(open("doctor.json"))
verdicts = [f["verdict"] for f in doc["findings"]]
assert verdicts == sorted(verdicts, key=["FAIL", "WARN", "NOTE", "OK"].index) and len(verdicts) > 8
assert doc["failures"] == verdicts.count("FAIL") == 0
assert doc["warnings"] == verdicts.count("WARN")
PY
}

@test "doctor: under mpiexec without a module for it: FAIL, 69, and what to install" {
    export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2
    export DDPBENCH_MODULE_DIR=$PWD
    # The doctor waits for the other rank, so both run at once.
    { "$ddpbench" doctor --json >doctor.json 2>/dev/null || echo $? >json_code; } &
    run -69 --separate-stderr "$ddpbench" doctor
    [[ ${lines[0]} == FAIL*mpi*libopenmpi-dev* ]]
    grep -q 'rank 0 .*2' <<<"$output"
    wait
    [ "$(cat json_code)" = 69 ]
    "$PYTHON" -c 'import json; assert json.load(open("doctor.json"))["failures"] == 1'
}

@test "under mpiexec, help and version are printed once" {
    export OMPI_COMM_WORLD_SIZE=2
    for words in "allreduce -h" "train --help" -h --help "-h train" "help --man" --version -V version; do
        # shellcheck disable=SC2086 # words
        OMPI_COMM_WORLD_RANK=0 run -0 --separate-stderr "$ddpbench" $words
        [ -n "$output" ]
        # shellcheck disable=SC2086
        OMPI_COMM_WORLD_RANK=1 run -0 "$ddpbench" $words
        [ -z "$output" ]
    done
}

@test "a missing module: the error names the folders searched, and what to do with an installed copy" {
    mkdir -p place/bin
    cp "$ddpbench" place/bin/ddpbench
    export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2
    run -69 --separate-stderr place/bin/ddpbench allreduce --size 4
    error_names "'ddpbench-mpi-openmpi.so'" "'$(realpath place)/lib/ddpbench'"
    hint_names libopenmpi-dev "make install"
    DDPBENCH_MODULE_DIR=$PWD/place run -69 --separate-stderr place/bin/ddpbench allreduce --size 4
    error_names "'ddpbench-mpi-openmpi.so'" "'$PWD/place'"
}

@test "an unsupported launcher: 76 with a hint, FAIL in the doctor, no effect on other commands" {
    for left in "FLUX_TASK_RANK=1 FLUX_JOB_SIZE=4" PALS_RANKID=1 "PMIX_RANK=0 PMIX_NAMESPACE=a" "PMI_FD=99 PMI_SIZE=1 PMI_RANK=0"; do
        # shellcheck disable=SC2086 # words
        run -76 --separate-stderr env $left "$ddpbench" allreduce --size 4 -n 1
        [ -z "$output" ]
        error_names "${left%%=*}"
        hint_names "${left%%=*}"
        # shellcheck disable=SC2086
        run -69 --separate-stderr env $left "$ddpbench" doctor
        [[ ${lines[0]} == FAIL*launcher*"${left%%=*}"* ]]
        # shellcheck disable=SC2086
        run -0 env $left "$ddpbench" help
    done
}

@test "doctor: values of the environment are printed without control characters" {
    DDPBENCH_DATA_DIR=$'/no\033[2Jsuch' run --separate-stderr "$ddpbench" doctor
    [[ $output == *'/no?[2Jsuch'* ]]
    [[ $output != *$'\033'* ]]
}

@test "doctor looks where DDPBENCH_MODULE_DIR points" {
    export DDPBENCH_MODULE_DIR=$PWD
    if command -v mpiexec.mpich; then
        "$ddpbench" doctor | grep -q '^WARN .*MPICH.*libmpich-dev'
    fi
    touch ddpbench-mpi-mpich.so
    run "$ddpbench" doctor
    ! grep '^WARN .*MPICH.*libmpich-dev' <<<"$output"
}

# completes SHELL: reads lines "COMMAND LINE|COMPLETIONS" and lets the shell complete each command line.
completes() {
    "$ddpbench" completion "$1" >script
    touch file.json
    cat >wanted
    cut -d '|' -f 1 wanted | "$root/tests/complete.py" "$1" script >got
    paste -d '|' <(cut -d '|' -f 1 wanted) got | diff wanted -
}

# Prints what every shell completes. The values come from the registries, by way of `ddpbench list`.
cases() {
    names() { "$ddpbench" list "$1" | awk 'NR > 1 { print $2 }' | sed -E 's/(\[.*|([:]).*)/\2/'; }
    all() { sort -u | tr '\n' ' ' | sed 's/ $//'; }
    echo "ddpbench allr|allreduce"
    echo "ddpbench allreduce --max-b|--max-bytes"
    echo "ddpbench all_reduce --max-b|--max-bytes"
    echo "ddpbench train --epochs 3 --momen|--momentum"
    echo "ddpbench allreduce --algorithm |$({ echo auto; echo all; names sparse; names algorithm | sed -n 's|^allreduce/||p'; } | all)"
    echo "ddpbench barrier --algorithm |$({ echo auto; echo all; names algorithm | sed -n 's|^barrier/||p'; } | all)"
    echo "ddpbench allreduce --algorithm=ri|--algorithm=ring"
    echo "ddpbench allreduce --algorithm ring,dir|ring,direct"
    echo "ddpbench allreduce --dtype bf|bf16"
    echo "ddpbench all-reduce -d bf|bf16"
    echo "ddpbench allreduce --compress |$(names compressor | all)"
    echo "ddpbench allreduce --backend |$({ echo auto; names backend; } | all)"
    echo "ddpbench allreduce --format |$(names reporter | all)"
    echo "ddpbench show file.json --format |$(names reporter | all)"
    echo "ddpbench show --plot |busbw none time"
    echo "ddpbench train --sync |$(names sync | all)"
    echo "ddpbench train --compare dense,loc|dense,local:"
    echo "ddpbench train --model |$(names model | all)"
    echo "ddpbench explain bus|busbw"
    echo "ddpbench help env|environment"
    echo "ddpbench list syn|sync"
    echo "ddpbench completion z|zsh"
    echo "ddpbench allreduce --json fi|file.json"
    echo "ddpbench compare fi|file.json"
}

@test "completion: bash offers commands, options, values and operands" {
    cases >cases
    [ "$(wc -l <cases)" -gt 20 ]
    completes bash <cases
    # A number has no completion, and an unknown command no options.
    completes bash <<<"ddpbench allreduce --iters |"
    completes bash <<<"ddpbench nonsense --x|--x"
}

@test "completion: zsh offers commands, options, values and operands" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    cases >cases
    completes zsh <cases
}

@test "completion: fish offers commands, options, values and operands" {
    command -v fish >/dev/null || skip "fish is not installed"
    cases >cases
    completes fish <cases
}

@test "completion: zsh and fish parse where they are installed, and name every option" {
    "$ddpbench" completion zsh >_ddpbench
    "$ddpbench" completion fish >ddpbench.fish
    # Quotes are balanced: each line has an even number of quotes that are not escaped.
    run bash -c "sed \"s/'\\\\\\\\''//g\" ddpbench.fish | awk -F\"'\" 'NF % 2 == 0'"
    [ -z "$output" ] || { echo "$output"; false; }
    if command -v zsh >/dev/null; then zsh -n _ddpbench; fi
    if command -v fish >/dev/null; then fish -n ddpbench.fish; fi
    for option in $("$ddpbench" train --help | grep -oE '^ +(-[a-zA-Z], )?--[a-z0-9-]+' | sed 's/.*--//'); do
        grep -q -- "-l $option " ddpbench.fish
        grep -q -- "'--$option:" _ddpbench
    done
}

@test "completion without a shell, or with two, is an error" {
    run -64 --separate-stderr "$ddpbench" completion
    message_names bash zsh fish
    run -64 --separate-stderr "$ddpbench" completion bash zsh
    run -64 --separate-stderr "$ddpbench" completion tcsh
}
