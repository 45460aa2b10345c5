#!/usr/bin/env bats
# make install writes the expected files, the copy runs after it was moved, and make uninstall removes it.
bats_require_minimum_version 1.5.0

setup_file() {
    root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
    export root
    binary=$(readlink -f "${DDPBENCH:-$root/build/ddpbench}")
    O=$(dirname "$binary")
    export O=${O#"$root"/}
    # Installs the flavour under test instead of building another one. The path contains a blank on purpose.
    make -s -C "$root" O="$O" install DESTDIR="$BATS_FILE_TMPDIR/de st" PREFIX=/opt/ddp >/dev/null
    mv "$BATS_FILE_TMPDIR/de st/opt/ddp" "$BATS_FILE_TMPDIR/moved"
}

setup() {
    moved=$BATS_FILE_TMPDIR/moved
    cd "$BATS_TEST_TMPDIR" || return
}

@test "exactly these files are installed, readable by all" {
    run bash -c "cd '$moved' && find . -type f | sort"
    expected=$(
        printf '%s\n' ./bin/ddpbench ./share/bash-completion/completions/ddpbench \
            ./share/ddpbench/schema/ddpbench-1.schema.json ./share/doc/ddpbench/LICENSE \
            ./share/doc/ddpbench/README.md ./share/man/man1/ddpbench.1 \
            ./include/ddp.h ./lib/libddp.a ./lib/pkgconfig/ddp.pc
        echo ./share/ddpbench/convergence.json
        (cd "$root" && printf './share/ddpbench/%s\n' configs/*.*)
        (cd "$moved" && ls ./lib/libddp.so.*.*.*)
        for flavour in $MPI_FLAVOURS; do echo "./lib/ddpbench/ddpbench-mpi-$flavour.so"; done
        for name in ddpbench-kernels ddpbench-ucx.so ddpbench-cuda.so; do
            [ ! -e "$root/$O/$name" ] || echo "./lib/ddpbench/$name"
        done
    )
    [ "$output" = "$(sort <<<"$expected")" ]
    [ -z "$(find "$moved" -type f ! -perm -o+r)" ]
    [ -z "$(find "$BATS_FILE_TMPDIR/de st" -type f)" ]
}

@test "the installed copy runs after it was moved" {
    run "$moved/bin/ddpbench" --version
    [ "$status" = 0 ]
    "$moved/bin/ddpbench" allreduce --size 1M -n 3 --json out.json
    grep -q '"status": *"complete"' out.json
}

@test "the moved copy finds its CUDA module" {
    [ -e "$moved/lib/ddpbench/ddpbench-cuda.so" ] || skip "built without CUDA"
    run "$moved/bin/ddpbench" list device
    [ "$status" = 0 ]
    [[ $output != *"is not in"* && $output != *"of build"* ]]
    mv "$moved/lib/ddpbench/ddpbench-cuda.so" .
    run "$moved/bin/ddpbench" list device
    mv ddpbench-cuda.so "$moved/lib/ddpbench"
    [[ $output == *"ddpbench-cuda.so is not in "*/lib/ddpbench* ]]
}

@test "through a link in PATH it still finds its modules" {
    [ -n "$MPI_FLAVOURS" ] || skip "no MPI module was built"
    ln -s "$moved/bin/ddpbench" ddpbench
    for flavour in $MPI_FLAVOURS; do
        PATH=$PWD:$PATH mpiexec_of "$flavour" ddpbench allreduce --backend mpi --size 1M -n 3 --json "$flavour.json"
        grep -q '"backend": *"mpi"' "$flavour.json"
        grep -q '"status": *"complete"' "$flavour.json"
    done
}

mpiexec_of() { # FLAVOUR COMMAND...: two ranks
    local flavour=$1
    shift
    case $flavour in
    openmpi) mpiexec.openmpi --oversubscribe -n 2 "$@" ;;
    *) "mpiexec.$flavour" -n 2 "$@" ;;
    esac
}

@test "the man page has no error and names the commands" {
    page=$moved/share/man/man1/ddpbench.1
    if command -v mandoc >/dev/null; then
        mandoc -W error -T ascii "$page" >raw.txt
    else
        man -l "$page" >raw.txt
    fi
    sed 's/.\x08//g' raw.txt >page.txt # removes the overstrikes of bold text
    grep -q NAME page.txt
    grep -q allreduce page.txt
    grep -q train page.txt
}

@test "the completion is bash, and offers commands" {
    file=$moved/share/bash-completion/completions/ddpbench
    bash -n "$file"
    run bash -c '. "$1"; COMP_WORDS=(ddpbench all); COMP_CWORD=1
        spec=$(complete -p ddpbench); f=${spec##*-F }; "${f%% *}" ddpbench all ddpbench
        printf "%s\n" "${COMPREPLY[@]}"' - "$file"
    [[ $output == *allreduce* ]]
}

@test "uninstall removes what install wrote, and nothing else" {
    dest="$BATS_TEST_TMPDIR/de st"
    make -s -C "$root" O="$O" install DESTDIR="$dest" >/dev/null
    [ -x "$dest/usr/local/bin/ddpbench" ]
    echo mine >"$dest/usr/local/share/doc/ddpbench/mine"
    echo mine >"$dest/usr/local/bin/mine"
    make -s -C "$root" O="$O" uninstall DESTDIR="$dest" >/dev/null
    [ "$(cd "$dest" && find . -type f | sort)" = "./usr/local/bin/mine
./usr/local/share/doc/ddpbench/mine" ]
    [ ! -e "$dest/usr/local/lib/ddpbench" ]
}
