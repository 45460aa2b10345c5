#!/usr/bin/env bats
# The structure of the sources: there is one way to do each thing. Each test names what must not return.

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
    cd "$root" || return
}

# none PATTERN FILE...: fails, and shows the lines, if a line of the files, or of files in the folders,
# matches the pattern. It also fails if a file or folder is missing.
none() {
    local rc=0
    grep -rnE -e "$@" || rc=$?
    [ "$rc" -eq 1 ]
}

# count PATTERN FILE...: prints how many lines of the files match the pattern.
count() {
    cat "${@:2}" | grep -cE -- "$1" || true
}

@test "the compiler rejects functions that cannot be used safely" {
    echo 'int f(void);' | "${CC:-cc}" -x c -fsyntax-only -Ilib -include base/banned.h -
    for name in strcpy strcat stpcpy sprintf vsprintf gets strtok atoi atol atoll atof alloca rand srand; do
        ! echo "void *f(void) { return (void *)$name; }" |
            "${CC:-cc}" -x c -fsyntax-only -Ilib -include base/banned.h - 2>/dev/null || return
    done
    # The build compiles C++ and CUDA files with the same header.
    [ "$(grep -cE -- '-include base/banned.h' ci/build.mk)" -ge 4 ]
    grep -q -- '-include base/banned.h' ci/cuda.mk
}

@test "clang-tidy and cppcheck are part of lint" {
    grep -q "^WarningsAsErrors: '\*'" .clang-tidy
    grep -qE '^ +bugprone-\*,' .clang-tidy
    grep -q check_tools.sh ci/lint.mk
    grep -q '^[^#]*clang-tidy' ci/check_tools.sh
    grep -q '^[^#]*cppcheck' ci/check_tools.sh
}

@test "one check counts the lines of functions, and one compiles all headers together" {
    none 'function-size' .clang-tidy
    grep -q 'functions that are too long' ci/check_style.sh
    none '^@test "all headers' tests/structure.bats
    grep -q 'do not compile together' ci/check_headers.sh
}

@test "a subfolder has few public headers, and subfolders do not include one another" {
    [ ! -e lib/comm/tcp/control_tcp.c ]
    [ "$(sed -n "/^subfolders='/,/^'/p" ci/check_layers.sh | grep -c '\.h: ')" -le 6 ]
    none 'cuda_module' lib/device/cpu
}

@test "option tables are arrays of rows, not macros, and choices are arrays of names" {
    none '#define \w+_ROWS?\b' cmd/*.h
    none 'struct ddp_opt_choices' cmd/*.[ch] lib/base/opt.h
    none '\.kind = DDP_OPT_|\{"[a-z-]+", (0|.[a-z].), DDP_OPT_' cmd/*.[ch]
    none '^static const char \*\w+_(word|choice)\(int' cmd/*.c
}

@test "the collectives are one table" {
    [ "$(grep -c '^COLLECTIVE(' cmd/collectives.c)" -eq 13 ]
    for symbol in $(sed -n 's/^COLLECTIVE(\(\w*\),.*/\1/p' cmd/collectives.c); do
        [ ! -e "cmd/$symbol.c" ]
        grep -q "DDP_COMMAND($symbol)" cmd/command_list.h
    done
}

@test "an unknown name is reported by one function" {
    none 'ddp_nearest\(' cmd/*.c lib/bench/*.c lib/base/conf.c lib/base/fault*.c
    none 'char legal\[[0-9]+\]' cmd/*.c lib/base/*.c lib/bench/*.c
}

@test "lib/base is one file for each thing, and names no parser twice" {
    for gone in opt_parse.c opt_set.c opt_row.h json_scan.c json_print.c json_impl.h fault_parse.c \
        fault_impl.h sysinfo_cgroup.c sysinfo_cgroup.h interference.c interference.h cache.c cache.h; do
        [ ! -e "lib/base/$gone" ]
    done
    none 'ddp_opt_set\(|DDP_OPT_CUSTOM|ddp_strbuf_clear' lib/base/*.[ch]
}

@test "an allocation that fails is reported by DDP_NEW" {
    none 'ENOMEM, "no memory' lib/comm lib/model/layers*.c lib/run/kernel*.c cmd/nccl_flags.c lib/run/doctor*.c
    grep -q '#define DDP_NEW' lib/base/mem.h
}

@test "kernels are functions with constant arguments, which a debugger can show" {
    none 'DEFINE_KERNEL|FIXED_F32_SUM|src_count \* 16' lib
    # No macro of the kernels has more than ten lines.
    awk '/\\$/ { if (++lines > 10) { print FILENAME ": " FNR; bad = 1 } next } { lines = 0 }
        END { exit bad }' lib/device/cpu/*.h
    none 'nontemporal' lib/device/device.h lib/bench/bound.c
}

@test "an element type is one row of dtype_list.h and its kernels" {
    for type in I32 U8 F64 I8 U32 I64 U64 FP8_E4M3; do
        none "DDP_$type\\b" lib/base/*.c lib/base/dtype*.h lib/coll/coll_p2p.[ch] lib/comm/mpi/* lib/comm/nccl/*
    done
    [ "$(grep -c '^DDP_DTYPE(' lib/base/dtype_list.h)" -ge 12 ]
}

@test "the type that make trial adds fits the tree: a row and kernels in three files" {
    git apply -C1 --check tests/trial/dtype_u16.patch
    [ "$(grep '^+++ ' tests/trial/dtype_u16.patch | sed 's|^+++ b/||' | sort | tr '\n' ' ')" = \
        'lib/base/dtype_list.h lib/device/cpu/kernels_cpu.inc.h lib/device/cuda/kernels_reduce.cu ' ]
}

@test "the edit of each mutant fits the tree" {
    "${PYTHON:-/usr/bin/python3}" tests/mutants/mutants.py --check
}

@test "a compressor is parsed once, and is one file and one line for allreduce and train" {
    mapfile -t others < <(find lib cmd -name '*.[ch]' ! -path 'lib/compress/*')
    [ "$(count 'ddp_compress_parse\(' "${others[@]}")" -eq 1 ]
    [ "$(count 'ddp_compress_parse_list\(' "${others[@]}")" -eq 2 ] # --compress of allreduce and of pays
    [ "$(count '^enum ddp_feedback ' "${others[@]}" lib/compress/*.h)" -eq 1 ]
    [ "$(count "strchr\(\w+, ':'\)" lib/compress/*.c lib/exchange/*.c lib/train/*.c)" -eq 1 ]
    while IFS= read -r name; do
        [ -e "lib/compress/comp_$name.c" ] || grep -q "^QUANT($name," lib/compress/comp_quant.c
        [ ! -e "lib/exchange/sync_$name.c" ] || [ "$name" = none ]
        [ "$name" = none ] || none "\\($name\\)" lib/exchange/sync_list.h
    done < <(sed -n 's/^DDP_COMPRESSOR(\(.*\))$/\1/p' lib/compress/compress_list.h)
}

@test "libddp and the trainer use the same bucket engine" {
    for file in ddp_bucket sync_buckets; do # calls, not comments
        grep -qE '^ +[^/* ].*ddp_buckets_create\(' "lib/exchange/$file.c"
    done
    [ "$(grep -rlE 'ddp_async_post\(|ddp_async_prepare\w*\(' lib/exchange lib/train --include='*.c')" = lib/exchange/bucket.c ]
    [ "$(count '^int ddp_\w+_cut\(' lib/exchange/*.c)" -eq 1 ]
}

@test "the trainer sends its first parameters by a broadcast" {
    grep -q 'DDP_BROADCAST' lib/train/trainer.c
}

@test "a compressed exchange is in host or in device memory: chosen once, by a table of functions" {
    none 'ddp_device_exchange|ddp_compressed_on_device' lib/bench lib/train lib/exchange/sync*.[ch]
    none 'ddp_device_exchange' lib/exchange/compressed.c
    [ "$(count 'ddp_compressed_on_device' lib/exchange/compressed.c)" -eq 1 ]
}

@test "cmd holds options, help and printing: ranks, sweep and gate are run by lib/run" {
    [ -z "$(find cmd -name 'world*' -o -name 'sweep_*' -o -name 'gate_*' -o -name 'rank_*')" ]
    [ -z "$(find lib/bench -name 'gate*' -o -name 'selftest*' -o -name 'child*' -o -name 'sweep_plan*')" ]
    none 'ddp_(launch|comm_create|journal_open|sampler_create|train|gate_measure)\(' cmd/*.c
    grep -q '^run: ' ci/check_layers.sh
}

@test "cmd includes only base, record, report and run, and has no job and no check of a machine" {
    [ "$(grep '^cmd:' ci/check_layers.sh)" = 'cmd: base record report run' ]
    none '\brank_main\b|struct ddp_job \w|\bfork\(|memfd_create|ddp_sysinfo_read\(&d' cmd
    none 'ddp_(models|dataset_readers|aggregates|coll_algorithms|sparse_algorithms|compressor_at|sync_at|backend_all|device_all)\(' \
        cmd
}

@test "a run is a job: a sweep knows no command, and a command has no function for a single user" {
    [ "$(grep -lE '^const struct ddp_job ddp_\w+_job = \{' lib/run/*.c | wc -l)" = 6 ]
    none 'ddp_cmd_train|ddp_cmd_launch_groups|DDP_CMD_(NEEDS_WORLD|COLLECTIVE)\b|ddp_(train|collective)_values' \
        lib/run/sweep*.[ch] lib/run/world*.[ch] lib/run/collector.c cmd/main.c cmd/cmd.h
    # `struct ddp_cmd` has run, check, show, is_foreign of kernels, and conclude of pays.
    [ "$(sed -n '/^struct ddp_cmd {/,/^};/p' lib/run/command.h | grep -c '(\*\w*)(')" = 5 ]
}

@test "a plan is made once, before ranks start" {
    [ "$(grep -l 'ddp_plan_make(' lib/*/*.c cmd/*.c | tr '\n' ' ')" = 'lib/bench/plan.c lib/run/points.c ' ]
    [ "$(grep -c 'ddp_plan_make(' lib/run/points.c)" = 1 ]
    none 'ddp_sampler_point\(' cmd/*.c
    none 'ddp_opt_parse\(' lib/run/sweep_run.c lib/run/sweep_prepare.c
}

@test "each helper of the upper layers exists once" {
    for code in 'bool \w*is_root\(const struct ddp_app' 'int \w*local_ranks\(const struct ddp_app' \
        '^static bool share_note\(' 'each rank needs a GPU, but' "uses no GPU\"" \
        '^int ddp_file_open\('; do
        [ "$(cat lib/*/*.[ch] cmd/*.[ch] | grep -vE ';$' | grep -cE -- "$code")" = 1 ] ||
            { echo "not once: $code"; return 1; }
    done
    none 'dataset_read_file' lib/*/*.[ch]
    none '\\r\\033\[K' lib/run/*.c cmd/*.c
}

@test "plan and sampler are one file each, and sweep is at most six" {
    [ -z "$(find lib/bench -name 'plan_impl.h' -o -name 'plan_algorithms.c' -o -name 'sampler_*')" ]
    [ "$(find lib/run cmd -name 'sweep*.c' | wc -l)" -le 6 ]
}

@test "coll: all-reduce is a row in the table of each family of algorithms" {
    for family in flat direct self native; do
        [ ! -e "lib/coll/allreduce/allreduce_$family.c" ] && [ ! -e "lib/coll/allreduce_$family.c" ]
        grep -qE "\(allreduce_$family, DDP_ALLREDUCE" "lib/coll/coll_$family.c"
        [ "$(grep -rlE "\.name = \"$family\"" lib/coll/*.c lib/coll/allreduce | wc -l)" = 1 ]
    done
    [ "$(grep -rlE '\.name = "(ring|binomial)"' lib/coll/*.c lib/coll/allreduce | wc -l)" = 2 ]
}

@test "coll: one function copies, one rounds to cache lines, one refuses send-recv in place" {
    [ "$(grep -rhE '\bcopy_nt\(' lib/coll | wc -l)" = 1 ]
    [ "$(grep -rhE '^(static (inline )?)?size_t \w*round\w*line\(' lib | wc -l)" = 1 ]
    [ "$(grep -rh 'does not work in place' lib/coll | wc -l)" = 1 ]
    [ "$(grep -rhE '^(static (inline )?)?int \w*wait_all\(.*flag_slot' lib/coll lib/comm | wc -l)" = 1 ]
}

@test "coll: data is copied by ddp_coll_copy, except in the listed places" {
    # coll_p2p.h: ddp_coll_copy itself. coll_direct.c, sparse_direct.c: contents of flag slots, and in
    # coll_direct.c the swap of an all-to-all in place. coll_flat.c: a small message into this rank's
    # slot. The others copy lists, counts and single values.
    local calls='\b(__builtin_)?mem(p?cpy|move)\s*\(|\bbcopy\s*\(|\b(copy|copy_nt)\s*\(|->copy(_nt)?\b'
    find lib/coll -name '*.[ch]' | sort | xargs ci/strip_c.pl | grep -E "^[^:]*:[0-9]+:.*($calls)" |
        cut -d: -f1 | uniq -c | sed 's/^ *//' | diff - <(printf '%s\n' '5 lib/coll/coll_direct.c' \
        '2 lib/coll/coll_flat.c' '2 lib/coll/coll_p2p.h' '2 lib/coll/sparse/sparse_code.c' \
        '2 lib/coll/sparse/sparse_direct.c' '4 lib/coll/sparse/sparse_oktopk.c' \
        '2 lib/coll/sparse/sparse_p2p.c')
}

@test "coll: struct ddp_reduction alone decides about wider types and early division" {
    none '\bDDP_(I32|U8|F64|F16|BF16)\b' lib/coll
    none 'ddp_(has_wider_acc|acc_dtype|pre_scales|to_acc|from_acc)\(' lib/coll
}

@test "coll: costs are counted, and the families in shared memory share one formula" {
    none '^(static )?\w+ \**\w*cost\w*\([^;]*$' lib/coll/[!c]*.c lib/coll/coll_[!c]*.c lib/coll/allreduce
    # The sparse algorithms have different messages, so each has its own formula.
    [ "$(grep -rlE '^static void \w*cost\w*\(' lib/coll/sparse | wc -l)" = 4 ]
    [ "$(grep -rhE 'sent_bytes \+?=' lib/coll/*.c lib/coll/allreduce | wc -l)" -le 5 ]
}

@test "coll: the table of auto has only rows that can be taken" {
    none 'DDP_DISTANCE|ddp_distance' lib cmd
    [ "$(grep -c 'ddp_coll_auto_explain(' lib/run/points_explain.c)" = 1 ]
}

@test "coll: no function that only tests call" {
    none 'ddp_(all_gather_v|async_start|async_test)\(' lib
}

@test "the members of a record are listed once: JSON, CSV and journal are made from its tables" {
    # A table has the row of a member, and neither reporter nor journal names the member again.
    for member in phase_ns overflow_count bucket_bytes; do
        grep -q "($member" lib/record/record_fields.c
        none "$member" lib/report/report_csv.c lib/report/report_json.c lib/record/journal.c
    done
}

@test "the keys of a document are the paths of tables: the few that are written by hand are listed here" {
    # The calls that write a value, with their keys. field.c writes the values of the tables, and
    # report_json.c adds the environment, the arguments, the two keys that only JSON lines have, and
    # the host and the sentence of a finding.
    keys() {
        cat "$@" | tr '\n' ' ' |
            grep -oE '(\bddp_json_(str|num|count|bool)|\badd_us|\bcJSON_Add\w*ToObject\w*)\( *[^,]*, *[^,]*,' |
            sed -E 's/.*, *([^,]*),$/\1/' | sort | tr '\n' ' '
    }
    export LC_ALL=C
    [ "$(keys lib/report/report_json.c)" = '"host" "kind" "points" "s" "text" "to_host" e->key e->key ' ]
    mapfile -t others < <(find lib/record -name '*.[ch]' ! -name 'field*')
    [ "$(keys "${others[@]}")" = '"journal" "line" "schema" facts->fact[i].key ' ]
    # Readers take values by the tables, too.
    none 'ddp_stored_(text|number|count)' lib/record
}

@test "one file parses the ids of points" {
    mapfile -t others < <(find lib/record lib/report lib/run -name '*.c' ! -name point_keys.c)
    none "str(cspn|pbrk|tok_r)\(.*\"/\"\)|strchr\((at|id), '/'\)|strstr\(id, \"/" "${others[@]}"
}

@test "the journal holds values, not the bytes of structs" {
    none 'base64|encode64' lib/record/*.c
    none 'sizeof\(struct ddp_(point|epoch|train_run)\)' lib/run
    [ ! -e lib/record/journal_check.c ] && [ ! -e lib/record/journal_line.c ]
}

@test "reporters show figures and marks that record/ computes" {
    none 'PINGPONG_CHANGE|INTERVAL_WIDE +[0-9]|fm(in|ax)\((lowest|highest|best)' lib/report/*.c
}

@test "images are unfolded by one function on the processor" {
    [ "$(cat lib/model/nn_*.h | grep -cE '^static void (im2col|unfold)\(')" -eq 1 ]
    [ ! -e lib/model/nn_general.inc.h ]
}

@test "medians and sorted numbers come from lib/stats/summary.c" {
    none '^static (double|int) median(_of)?\(const double|^static double median(_of)?\(' lib cmd
    # clock.c is below lib/stats; the other two divide by 2 for other reasons
    [ "$(grep -rlE '/ 2( - 1)?\]' lib cmd --include='*.[ch]' --include='*.cu' | sort | xargs)" = \
        'lib/base/clock.c lib/compress/comp_reference.c lib/stats/signflip.c lib/stats/summary.c' ]
    [ "$(grep -rE 'int compare_doubles\(' lib cmd | wc -l)" -eq 1 ]
}

@test "the MPIs and the file names of the modules are listed in lib/base/conf" {
    [ "$(grep -rlE '"(libopenmpi-dev|mpiexec\.)' lib cmd --include='*.[ch]')" = lib/base/conf.c ]
    none 'ddpbench-mpi-(%s|openmpi|mpich)|"(openmpi|mpich)"' --include='*.c' lib cmd
    [ "$(grep -rlE '"ddpbench-(mpi-|ucx|cuda|kernels)' lib cmd --include='*.[ch]')" = lib/base/conf.h ]
}

@test "lists of processors, PATH and the memory that is left are each read by one function" {
    [ "$(grep -cE 'strtoul\(|sscanf\([^)]*%lld' lib/base/cpuinfo.c)" -eq 2 ] # the ends of a range
    [ "$(grep -rlE 'strcspn\([^)]*, ":"\)' lib cmd --include='*.c' | grep -v '^lib/report/')" = lib/base/sysinfo.c ]
    [ "$(grep -rlE 'are available"' lib cmd --include='*.c')" = lib/base/sysinfo.c ]
    [ "$(grep -rlE '(needed_bytes|need|bytes) (<=|>) \(uint64_t\)\w*\.?available_bytes' lib cmd)" = lib/base/sysinfo.c ]
    [ "$(grep -rlE 'available_bytes (>= 0|< 0)\)' lib cmd --include='*.c' | grep -v doctor)" = lib/base/sysinfo.c ]
}

@test "text is wrapped by ddp_strbuf_wrap" {
    none 'ddp_text_wrap|strcspn\(\w+, " "\)' lib/base cmd
}

@test "the name of a backend or device does not decide what it can do" {
    # record.c: the two predicates for records. The others choose a text, or check --backend of ddp_run.
    [ "$(grep -rcE 'strcmp\([^"]*"(shm|mpi|nccl|ucx|self)"\)' lib cmd --include='*.c' | grep -v ':0$' | sort)" = \
        "$(printf '%s\n' lib/exchange/ddp_world.c:1 lib/record/record.c:2 lib/report/report_osu.c:1 lib/run/collector.c:1)" ]
    none 'strcmp\([^"]*name, "(cpu|cuda)"\)' lib
}

@test "the sparse algorithm of a compressed exchange is chosen by lib/coll/sparse" {
    none '"(oktopk|allgather)"|for a sparse all-reduce' lib/exchange/compressed*.c
    grep -q 'for a sparse all-reduce' lib/coll/sparse/sparse_coll.c
}
