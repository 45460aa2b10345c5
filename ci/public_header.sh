#!/usr/bin/env bash
# Writes the public header of libddp as a single file: the headers that exchange/ddp.h includes, then
# ddp.h itself. Usage: ci/public_header.sh VERSION >ddp.h
set -eu
export LC_ALL=C
version=$1
cd "$(dirname "$0")/../lib"
parts=(base/err.h base/dtype.h exchange/ddp.h)

printf '/* ddp.h of ddpbench %s: generated from lib/{%s} by ci/public_header.sh.\n' \
    "$version" "$(IFS=,; echo "${parts[*]}")"
printf ' * SPDX-License-Identifier: Apache-2.0 */\n#define DDP_HEADER_VERSION "%s"\n' "$version"
for part in "${parts[@]}"; do
    echo
    # A header of ours that a part includes must be an earlier part.
    while read -r name; do
        case " ${parts[*]%%"$part"*} " in
        *" $name "*) ;;
        *)
            echo "public_header.sh: $part includes $name, which is not in the public header" >&2
            exit 1
            ;;
        esac
    done < <(sed -n 's/^#include "\(.*\)"$/\1/p' "$part" | grep -v -x base/dtype_list.h)
    # The rows of dtype_list.h become the members of enum ddp_dtype.
    awk -F '[(,]' '/^#(define|undef) DDP_DTYPE/ { next }
        /^#include "base\/dtype_list.h"/ { while ((getline < "base/dtype_list.h") > 0)
            if (/^DDP_DTYPE/) print "    DDP_" $2 ","; next }
        !/^#include "/' "$part"
done
