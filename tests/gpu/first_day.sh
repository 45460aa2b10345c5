#!/usr/bin/env bash
# The first day on a GPU: checks and measurements that need one, in three calls of at most 8 minutes,
# and one summary in Markdown. It installs nothing.
#
# Usage: first_day.sh pack BUILD FOLDER   copies what the calls need from the build folder to FOLDER
#        first_day.sh CALL FOLDER         runs call 1, 2 or 3
#
# `make gpu-pack` packs into build/carry; NCCL_TESTS names an all_reduce_perf to add. The folder has less
# than 64 MiB. Carry it with the sources to the machine with the GPU. Variables:
#   SUMMARY     the file to which each call adds its part (default $OUT/gpu-first-day.md). Other results
#               go to its folder.
#   GPU_PYTHON  a python3 with PyTorch, whose folder also has NCCL, cuBLAS and cuDNN
#   LIMIT       seconds of a call (default 470)
#   STEPS       a regular expression; only steps whose names match it run
#   MOST        the largest size beside nccl-tests (default 256M)
#   GPUS        the number of GPUs, if nvidia-smi does not know it
#
# Call 1: facts, kernels, compute-sanitizer, NCCL with one rank. Call 2: several ranks on one GPU, lost
# ranks, layers and training. Call 3: kernels, layers and NCCL beside PyTorch and nccl-tests, overlap,
# `make test-gpu`. Exits with 1 if a step fails, and with 69 without a GPU.
set -u

pack() {
    local build=$1 folder=$2 name
    mkdir -p "$folder/bats/bin" "$folder/bats/lib" "$folder/bats/libexec" || return
    for name in ddpbench ddpbench-cuda.so tests/gpu/test_gpu_kernels tests/gpu/test_gpu_layers tests/gpu/bench_gpu; do
        cp -L "$build/$name" "$folder/" && strip "$folder/${name##*/}" || return
    done
    for name in libcjson.so.1 libcmocka.so.0 libz.so.1; do
        cp -L "$(ldconfig -p | sed -n "s|.*\b$name .*=> ||p" | head -n 1)" "$folder/" || return
    done
    cp -L "$(command -v bats)" "$folder/bats/bin/" && cp -r /usr/lib/bats-core "$folder/bats/lib/" &&
        cp -r /usr/libexec/bats-core "$folder/bats/libexec/" || return
    [ -z "${NCCL_TESTS:-}" ] || cp -L "$NCCL_TESTS" "$folder/all_reduce_perf"
}

# row STEP RESULT SECONDS TEXT: adds a line to the table of the summary.
row() {
    [[ $1 =~ ${STEPS:-} ]] || return 0
    echo "| $1 | $2 | $3 | $4 |" | tee -a "$summary"
}

left() {
    echo $((limit - SECONDS))
}

# step NAME SECONDS EXPECTED COMMAND...: runs a command and adds its result to the table. EXPECTED: its
# exit code. The output is in $log; the end of the output of a failed step is shown below the table.
# Returns 1 if the command did not run or failed.
step() {
    local name=$1 most=$2 expected=$3 began=$SECONDS status
    shift 3
    [[ $name =~ ${STEPS:-} ]] || return 1
    [ "$(left)" -lt "$most" ] && most=$(left)
    if [ "$most" -lt 5 ]; then
        row "$name" "skipped" 0 "no time is left"
        return 1
    fi
    timeout --kill-after=5 "$most" "$@" >"$log" 2>&1 </dev/null
    status=$?
    cat "$log" >>"$out/first-day-$call.log"
    if [ "$status" = "$expected" ]; then
        row "$name" ok $((SECONDS - began)) ""
        return 0
    fi
    row "$name" "**failed**" $((SECONDS - began)) "exit $status; \`${*##*/}\`"
    { echo && echo "$name:" && tail -n 15 "$log" | sed 's/^/    /'; } >>"$details"
    failed=1
    return 1
}

# several NAME SECONDS EXPECTED COMMAND...: a step that needs two GPUs.
several() {
    if [ "$gpus" -ge 2 ]; then
        step "$@"
    else
        row "$1" skipped 0 "GPUs: 1"
    fi
}

# figures FILE: adds the times of a document to the table of times.
figures() {
    "$python" - "$1" >>"$times" <<'END'
import json, os, sys
for p in json.load(open(sys.argv[1]))["points"]:
    device = "-" if p["device_us"] is None else format(p["device_us"], ".2f")
    print(f"| {os.path.basename(sys.argv[1])[:-5]} | {p['ranks']} | {p['size_bytes']} | {p['time_us']['median']:.2f} | {device} |")
END
}

# lose SIGNAL OPTION...: sends the signal to rank 1 of 4 and expects exit code 13 within 15 s.
lose() {
    local signal=$1 run ranks=() began status
    shift
    # shellcheck disable=SC2154 # ddpbench: exported
    "$ddpbench" allreduce --share-gpu --ranks 4 --size 4 -n 10000000 -T 5 -q "$@" &
    run=$!
    for _ in $(seq 600); do
        mapfile -t ranks < <(pgrep -P "$run")
        [ "${#ranks[@]}" -lt 4 ] || break
        sleep 0.1
    done
    sleep "${LOSE_AFTER:-15}" # NCCL has started
    began=$SECONDS
    kill "-$signal" "${ranks[1]}"
    wait "$run"
    status=$?
    echo "exit code $status, $((SECONDS - began)) s after the signal"
    [ "$status" = 13 ] && [ $((SECONDS - began)) -le 15 ]
}

# both NAME OPTION...: all-reduces on blocking and on non-blocking communicators. The times go to the summary.
both() {
    local name=$1 kind json
    shift
    for kind in on off; do
        json="$out/$name --nccl-blocking $kind.json"
        step "$name --nccl-blocking $kind" 60 0 "$ddpbench" allreduce --backend nccl --nccl-blocking $kind -q --json "$json" "$@" &&
            figures "$json"
    done
}

call_1() {
    local more tool test ranks one=(--backend nccl --ranks 1 --algorithm native -n 5)
    step "0 nvidia-smi" 30 0 nvidia-smi
    step "0 the binary needs no CUDA" 10 0 bash -c '! ldd "$ddpbench" | grep -E "cuda|nccl|cudnn|cublas"'
    step "0 devices and backends" 60 0 "$ddpbench" list device backend
    step "0 doctor" 60 0 "$ddpbench" doctor
    step "1 kernels, small cases" 120 0 "$folder/test_gpu_kernels" --small
    [ "$failed" = 0 ] || return # nothing else can be trusted
    for tool in memcheck racecheck initcheck synccheck; do
        for test in test_gpu_kernels test_gpu_layers; do
            if command -v "$sanitizer" >/dev/null; then
                step "1 $tool of $test" 60 0 "$sanitizer" --tool $tool --error-exitcode 1 "$folder/$test" --small
            else
                row "1 $tool of $test" skipped 0 "no compute-sanitizer"
            fi
        done
    done
    step "2 kernels, all cases" 120 0 "$folder/test_gpu_kernels"
    NCCL_DEBUG=INFO both "3 one rank" "${one[@]:2}" --size 4,1M
    for more in "--memory private" "--memory window" --graph "-d f32,bf16 -o sum,avg" --overlap-compute; do
        # shellcheck disable=SC2086 # words
        step "3 one rank, $more" 60 0 "$ddpbench" allreduce "${one[@]}" --size 4,1M -q $more
    done
    for more in reduce-scatter all-gather broadcast all-to-all; do
        step "3 one rank, $more" 60 0 "$ddpbench" $more "${one[@]}" --size 4,1M -q
    done
    for ranks in 2 4 8; do
        if [ "$gpus" -ge "$ranks" ]; then
            NCCL_DEBUG=INFO both "3 $ranks GPUs" --ranks $ranks -b 8 -e 256M -f 32 -n 20
        else
            row "3 $ranks GPUs" skipped 0 "GPUs: $gpus"
        fi
    done
}

call_2() {
    local more model conv train=(train --device cuda --ranks 1 --dataset synthetic --images 2000 --max-steps 20 -q)
    for more in "--ranks 2" "--ranks 2 --nccl-blocking off" "--ranks 2 --graph" "--ranks 2 --memory window" "--ranks 4 --groups 2" \
        "--ranks 3" "--ranks 4"; do
        # shellcheck disable=SC2086 # words
        step "4 one GPU, $more" 60 0 "$ddpbench" allreduce --share-gpu --size 4,1M -n 3 -w 1 -T 60 -q $more
    done
    several "4 two GPUs, --memory window --graph" 60 0 "$ddpbench" allreduce --backend nccl --ranks 2 --size 4,1M --memory window --graph -n 5 -q
    for more in KILL STOP "KILL --graph" "STOP --graph"; do
        # shellcheck disable=SC2086 # words
        step "5 rank 1 of 4 gets $more" 90 0 bash -c 'lose "$@"' lose $more
    done
    step "6 layers" 120 0 "$folder/test_gpu_layers"
    for model in lenet singa-cnn resnet9; do
        for conv in im2col auto; do
            step "6 $model, --conv $conv" 60 0 "$ddpbench" "${train[@]}" --model $model --conv $conv
        done
    done
    step "6 resnet9, --cuda-graph off" 60 0 "$ddpbench" "${train[@]}" --model resnet9 --cuda-graph off
    step "6 resnet9, --tf32 on" 60 0 "$ddpbench" "${train[@]}" --model resnet9 --tf32 on
}

# overlap NAME OPTION...: trains without and with overlap, which must not change a loss.
overlap() {
    local name=$1 mode
    shift
    for mode in off on; do
        step "$name, --overlap $mode" 60 0 "$ddpbench" train --model resnet9 --dataset synthetic --images 2000 --max-steps 20 --conv im2col \
            --bucket-bytes 1M --overlap $mode --check-replicas step -T 60 -q --json "$out/overlap-$mode.json" "$@" || return
    done
    step "$name, equal losses" 10 0 "$python" -c '
import json, sys
off, on = (json.load(open(f))["train"][0]["epochs"] for f in sys.argv[1:])
print("exchange and exposed seconds:", [(e["exchange_seconds"], e["exposed_seconds"]) for e in off + on])
sys.exit([e["train_loss"] for e in off] != [e["train_loss"] for e in on])' "$out/overlap-off.json" "$out/overlap-on.json" &&
        row "$name" "" "" "$(cat "$log")"
}

call_3() {
    step "7 kernels beside PyTorch" 120 0 "$python" "$here/bench_gpu.py" --bench "$folder/bench_gpu" --out "$out/gpu-kernels.json"
    step "7 training beside PyTorch" 120 0 "$python" "$here/bench_layers.py" --ddpbench "$ddpbench" --out "$out/gpu-train.json"
    if command -v ncu >/dev/null; then
        step "7 profile of the selection" 60 0 ncu --clock-control none -k regex:select -c 5 "$folder/test_gpu_kernels" --small
    else
        row "7 profile of the selection" skipped 0 "no ncu"
    fi
    if [ -x "$folder/all_reduce_perf" ]; then
        local libraries
        # nccl-tests finds NCCL and the CUDA runtime only on the loader's path.
        libraries=$(printf '%s:' "${VIRTUAL_ENV:-}"/lib/python3*/site-packages/nvidia/*/lib)
        step "8 beside nccl-tests" 120 0 env LD_LIBRARY_PATH="$libraries$LD_LIBRARY_PATH" "$python" "$here/bench_nccl.py" \
            --ddpbench "$ddpbench" --nccl-tests "$folder/all_reduce_perf" --ranks "$gpus" --most "${MOST:-256M}" --out "$out/gpu-nccl.json" &&
            sed 's/^/    /' "$log" >>"$details"
    else
        row "8 beside nccl-tests" skipped 0 "no all_reduce_perf"
    fi
    both "8 one rank" --ranks 1 --algorithm native -b 4 -e 64M -f 64 --block 20 -n 10
    overlap "9 two ranks on one GPU" --share-gpu --ranks 2
    if [ "$gpus" -ge 2 ]; then
        overlap "9 two GPUs" --backend nccl --ranks 2
    else
        row "9 two GPUs" skipped 0 "GPUs: 1"
    fi
    step "10 make test-gpu" "$limit" 0 env RUNS=1 DDPBENCH="$ddpbench" "$python" "$here/run_tests.py" --limit $(($(left) - 5)) \
        --out "$out/gpu-tests.json" "$folder/test_gpu_kernels" "$folder/test_gpu_layers" "$here"/{record,train_gpu,share_gpu}.bats
}

here=$(cd "$(dirname "$0")" && pwd)
case ${1:-} in
pack) [ $# = 3 ] && pack "$2" "$3" && exit ;;
[123]) [ $# = 2 ] && [ -x "$2/ddpbench" ] && call=$1 ;;
esac
[ -n "${call:-}" ] || { sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 64; }
folder=$(cd "$2" && pwd)
summary=${SUMMARY:-${OUT:-.}/gpu-first-day.md}
out=$(dirname "$(realpath "$summary")")
limit=${LIMIT:-470} failed=0
python=${GPU_PYTHON:-python3} ddpbench=$folder/ddpbench PYTHON=${GPU_PYTHON:-python3}
sanitizer=${COMPUTE_SANITIZER:-$(PATH=$PATH:/usr/local/cuda/bin command -v compute-sanitizer || echo compute-sanitizer)}
if [ -n "${GPU_PYTHON:-}" ]; then
    bin=$(dirname "$GPU_PYTHON")
    export VIRTUAL_ENV=${VIRTUAL_ENV:-${bin%/*}} PATH=$bin:$PATH
fi
export PATH=$folder/bats/bin:$PATH LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ddpbench PYTHON
export -f lose
gpus=${GPUS:-$(nvidia-smi -L 2>/dev/null | grep -c ^GPU)}
[ "$gpus" -ge 1 ] || { echo "no GPU: nvidia-smi shows none" >&2; exit 69; }
temporary=$(mktemp -d) || exit 1
trap 'rm -rf "$temporary"' EXIT
log=$temporary/log times=$temporary/times details=$temporary/details
: >"$times"
: >"$details"
{
    echo "## GPU, call $call: $("$ddpbench" --version | head -n 1), $gpus GPU(s) $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)"
    printf '\n| step | result | seconds | remark |\n|:--|:--|--:|:--|\n'
} | tee -a "$summary"
"call_$call"
{
    [ ! -s "$times" ] || printf '\n| all-reduce | ranks | size (B) | time (us) | by the GPU (us) |\n|:--|--:|--:|--:|--:|\n'
    cat "$times" "$details"
    echo
} >>"$summary"
exit $failed
