#!/usr/bin/env bash
# Makes pages of all kinds and opens them in a browser (tests/e2e/pages.py).
# Usage: tests/e2e/e2e.sh DDPBENCH PYTHON [SCREENSHOT_DIR]
set -eu
root=$(cd "${BASH_SOURCE[0]%/*}/../.." && pwd)
ddpbench=$(realpath "$1") python=$(realpath -s "$2") shots=${3:+$(realpath -m "$3")}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir pages

# points FILE OPTION...: measures points for a short time.
points() { "$ddpbench" allreduce --max-time 0.01 -q --json "$@" >/dev/null; }
points a.json --ranks 2 -b 8 -e 1M -f 2
points b.json --ranks 2 -b 8 -e 1M -f 2
points ranks.json --ranks 1,2,4 --size 8,1K,64K
points compress.json --ranks 2 --size 4K,64K --compress none,fp16,topk:0.01,topk:0.1,topk:0.5
"$ddpbench" train --ranks 2 --dataset synthetic --images 256 --epochs 3 --compare dense,fp16,topk:0.1 --seeds 1,2 -q --json train.json >/dev/null
"$ddpbench" compare a.json b.json --json verdict.json >/dev/null || case $? in 10 | 12) ;; *) exit 1 ;; esac
# 1,000 points: the points of a.json with other sizes.
"$python" - <<'PY'
import json
d = json.load(open("a.json"))
d["points"] = [dict(q, size_bytes=s, requested_bytes=s, id="/".join(q["id"].split("/")[:9] + [str(s)] + q["id"].split("/")[10:]),
                    algbw_GBps=s / q["time_us"]["median"] / 1e3, busbw_GBps=s / q["time_us"]["median"] / 1e3, busbw_ci95_GBps=None)
               for s in range(8, 4008, 8)
               for q in (next(p for p in d["points"] if p["placement"] == place) for place in ("in", "out"))]
json.dump(d, open("many.json", "w"))
PY
for name in a ranks compress train verdict; do
    "$ddpbench" report $name.json -o pages/$name.html
done
"$ddpbench" report a.json b.json -o pages/two.html
"$ddpbench" report ./*.json --edited -o pages/all.html
"$ddpbench" report many.json --edited -o pages/many.html
for name in quick bandwidth convergence; do
    [ ! -e "$root/results/$name.json" ] || "$ddpbench" report "$root/results/$name.json" -o pages/$name.html
done
"$python" "$root/tests/e2e/pages.py" ${shots:+--screenshots "$shots"} pages/*.html
