#!/usr/bin/env bash
# Checks that the schema lists exactly the element types of lib/base/dtype_list.h, in its order.
# Usage: ci/schema_dtypes.sh [--fix]   --fix writes the list into the schema
set -eu
cd "$(dirname "$0")/.."
schema=results/schema/ddpbench-1.schema.json

names=$(sed -n 's/^DDP_DTYPE([A-Z0-9_]*, \("[a-z0-9-]*"\),.*/\1, /p' lib/base/dtype_list.h | tr -d '\n')
rows=$(grep -c '^DDP_DTYPE(' lib/base/dtype_list.h)
if [ "$(grep -o ', ' <<<"$names" | wc -l)" -ne "$rows" ]; then
    echo "schema_dtypes.sh: a row of lib/base/dtype_list.h does not start with 'DDP_DTYPE(SYMBOL, \"name\",'" >&2
    exit 1
fi
list="\"dtype\": {\"enum\": [${names}null]"
if [ "$(grep -c '^ *"dtype": {"enum": \[[^]]*\]' "$schema")" -ne 1 ]; then
    echo "schema_dtypes.sh: $schema must have exactly one line that begins with '\"dtype\": {\"enum\": [...]'" >&2
    exit 1
fi
if grep -qF -- "$list" "$schema"; then
    exit 0
fi
if [ "${1:-}" != --fix ]; then
    echo "schema_dtypes.sh: $schema lists other element types than lib/base/dtype_list.h; run 'make schema'" >&2
    exit 1
fi
sed -i "s/\"dtype\": {\"enum\": \[[^]]*\]/$list/" "$schema"
