#!/usr/bin/env bats
# The structure of the sources: there is one way to do each thing. Each test names what must not return.

setup() {
    root=$(cd "$BATS_TEST_DIRNAME/.." && pwd)
    cd "$root" || return
}

# count PATTERN FILE...: prints how many lines of the files match the pattern.
count() {
    cat "${@:2}" | grep -cE -- "$1" || true
}

@test "a compressor is parsed once, and is one file and one line for allreduce and train" {
    mapfile -t others < <(find lib cmd -name '*.[ch]' ! -path 'lib/compress/*')
    [ "$(count 'ddp_compress_parse\(' "${others[@]}")" -eq 1 ]
    [ "$(count 'ddp_compress_parse_list\(' "${others[@]}")" -eq 1 ]
    [ "$(count '^enum ddp_feedback ' "${others[@]}" lib/compress/*.h)" -eq 1 ]
    [ "$(count "strchr\(\w+, ':'\)" lib/compress/*.c lib/exchange/*.c lib/train/*.c)" -eq 1 ]
    while IFS= read -r name; do
        [ -e "lib/compress/comp_$name.c" ]
        [ ! -e "lib/exchange/sync_$name.c" ] || [ "$name" = none ]
        [ "$name" = none ] || ! grep -q "($name)" lib/exchange/sync_list.h
    done < <(sed -n 's/^DDP_COMPRESSOR(\(.*\))$/\1/p' lib/compress/compress_list.h)
}

@test "libddp and the trainer use the same bucket engine" {
    grep -q 'ddp_buckets_create(' lib/exchange/ddp_bucket.c
    grep -q 'ddp_buckets_create(' lib/exchange/sync_buckets.c
    [ "$(count 'ddp_async_post\(|ddp_async_prepare\w*\(' lib/exchange/[!b]*.c lib/train/*.c)" -eq 0 ]
    [ "$(count '^int ddp_\w+_cut\(' lib/exchange/*.c)" -eq 1 ]
}

@test "the trainer sends its first parameters by a broadcast" {
    grep -q 'DDP_BROADCAST' lib/train/trainer.c
}

@test "a compressed exchange is in host or in device memory: chosen once, by a table of functions" {
    [ "$(count 'ddp_device_exchange|ddp_compressed_on_device' lib/bench/*.[ch] lib/train/*.[ch] lib/exchange/sync*.[ch])" -eq 0 ]
    [ "$(count 'ddp_compressed_on_device' lib/exchange/compressed.c)" -eq 1 ]
}
