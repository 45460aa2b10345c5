#!/usr/bin/env bash
# Shows that the tests of backend nccl detect errors: each patch of this folder takes a fix out of
# the tree, and the test that the patch names must then fail. Without a patch the test must pass.
# Usage: run.sh BUILD WORD TARGET...   BUILD: the build folder, such as build/123; WORD: part of the
# names of the patches, or empty; TARGET: a file that the tests need,
# first ddpbench itself, then what exists only with CUDA and NCCL
# The script works in a temporary copy of the tree and of the build.
set -u
build=$1 word=$2 targets=("${@:3}")
[ ${#targets[@]} -gt 1 ] || {
    echo "built without CUDA and NCCL's header" >&2
    exit 69
}
root=$(cd "$(dirname "$0")/../../.." && pwd)
copy=$(mktemp -d) || exit 1
trap 'rm -rf "$copy"' EXIT

# field NAME PATCH: prints the value of a line at the beginning of the patch.
field() {
    sed -n "/^---/q; s/^$1 //p" "$2"
}

# passes PATCH: runs the test that the patch names. The output is in test.log.
passes() {
    DDPBENCH=$copy/build/ddpbench timeout 120 bats -f "$(field filter "$1")" "$copy/$(field test "$1")" >"$copy/test.log" 2>&1 \
        </dev/null
}

compile() {
    make -C "$copy" -s "${targets[@]}" >"$copy/make.log" 2>&1 || {
        cat "$copy/make.log"
        echo "the tree does not build with $1" >&2
        exit 1
    }
}

cd "$root" || exit 1
git ls-files -z | tar --null -T - -c | tar -x -C "$copy" || exit 1
tar --exclude="$build/tests/[^n]*" -c "$build" | tar -x -C "$copy" || exit 1
ln -sfn "$(basename "$build")/ddpbench" "$copy/build/ddpbench"
# The objects must be newer than the copied sources.
find "$copy/$build" -type f -exec touch {} +
compile "no patch"

status=0 tried=""
for patch in tests/nccl/reverts/*"$word"*.patch; do
    key=$(field test "$patch")$(field filter "$patch")
    if [[ $tried != *"$key"* ]] && ! passes "$patch"; then
        cat "$copy/test.log"
        echo "FAIL $(basename "$patch"): the test fails without the patch" && status=1 && continue
    fi
    tried+=" $key"
    patch -s -p1 -d "$copy" <"$patch" || exit 1
    compile "$patch"
    if passes "$patch"; then
        echo "FAIL $(basename "$patch"): no test detects it" && status=1
    elif ! grep -q '^not ok' "$copy/test.log"; then
        cat "$copy/test.log"
        echo "FAIL $(basename "$patch"): the test did not run" && status=1
    else
        echo "ok   $(basename "$patch"): '$(sed -n 's/^not ok [0-9]* //p' "$copy/test.log" | head -n 1)' fails"
    fi
    patch -s -R -p1 -d "$copy" <"$patch" || exit 1
done
compile "no patch"
exit $status
