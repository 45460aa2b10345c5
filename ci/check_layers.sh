#!/usr/bin/env bash
# Fails when a layer includes a header that it must not include, or a file uses a function or header
# that is reserved for other files.
# Usage: ci/check_layers.sh [ROOT]   checks ROOT (default: this repository), self-test first
#        ci/check_layers.sh --self-test
set -eu
export LC_ALL=C
here=$(cd "$(dirname "$0")" && pwd)

# Each line: a layer, then the other layers whose headers it may include (see lib/ARCHITECTURE.md).
layers='
base:
stats: base
device: base
record: base stats
diag: base
launch: base diag
comm: base device diag launch
compress: base device
model: base device
coll: base device diag launch comm
exchange: base device diag launch comm coll compress
report: base stats record
bench: base stats device record diag launch comm coll compress exchange
train: base stats device record diag launch comm coll compress exchange model
run: base stats device record diag launch comm compress model coll exchange report bench train
cmd: base record report run
'

# Each line: a header in a subfolder, then the layers and subfolders besides its own that may include
# it. A layer stands for the files that lie directly in its folder. The table lists the public headers
# of subfolders: files outside a subfolder may include no other header of it.
subfolders='
coll/sparse/sparse_coll.h: coll exchange bench run
comm/shm/comm_shm.h: comm coll exchange bench
device/cuda/cuda_module.h: device model
device/cuda/dev_cuda.h: model
device/cuda/find_cuda_library.h: model comm/nccl
device/cuda/nvml.h: run
'

# Code that only some files may use: name | Perl pattern of the code | Perl pattern of these files.
# The patterns match a call only: a whole name that is not a member and is followed by "(".
uses='
mpi.h         | #\s*include\s*[<"]mpi\.h | ^lib/comm/mpi/backend_mpi\.c$
ucp.h         | #\s*include\s*[<"]uc[pst]/ | ^lib/comm/ucx/ucx_module\.c$
nccl.h        | #\s*include\s*[<"]nccl\.h | ^lib/comm/nccl/backend_nccl(_\w+)?\.(c|inc\.h)$
CUDA          | #\s*include\s*[<"](cuda|cudnn|cublas|nvml|nvrtc) | \.cu$|/(dev_cuda|dev_nvml|backend_nccl|layers_cuda)(_\w+)?\.(c|inc\.h)$
Google Benchmark | #\s*include\s*[<"]benchmark/ | ^cmd/gbench\.cc$
CBLAS         | \bcblas_\w+ | ^lib/model/blas\.c$
printing      | (?<![\w.>])(printf|vprintf|puts|putchar|perror)\s*\(|\b(stdout|stderr)\b | ^cmd/|^lib/report/|^lib/base/log\.[ch]$
exit          | (?<![\w.>])(exit|quick_exit|abort)\s*\( | ^cmd/|^lib/report/|^lib/base/log\.c$|^lib/run/doctor_child\.c$
_exit         | (?<![\w.>])_(exit|Exit)\s*\( | ^lib/launch/(launch(_\w+)?|watchdog)\.[ch]$
getenv        | (?<![\w.>])(secure_)?getenv\s*\(|\benviron\b | ^cmd/|^lib/base/(conf|sysinfo|terminal)\.c$|^lib/launch/launcher\.c$|^lib/comm/ucx/ucx_module\.c$|^lib/run/(gate_run|noise_floor|doctor_checks)\.c$
'

# Prints each violation in the repository $1, and fails when there is one.
check() {
    cd "$1"
    local files
    mapfile -t files < <(find lib cmd -name '*.[ch]' -o -name '*.cu' -o -name '*.cc' | sort)
    LAYERS=$layers SUBFOLDERS=$subfolders USES=$uses perl -e '
        use strict; use warnings;
        my (%may, %public, @uses, $bad);
        for (grep /\S/, split /\n/, $ENV{LAYERS}) {
            my ($layer, $rest) = /^(\w+):(.*)/ or die;
            $may{$layer} = { map { $_ => 1 } $layer, split " ", $rest };
        }
        for (grep /\S/, split /\n/, $ENV{SUBFOLDERS}) {
            my ($header, $rest) = m{^(\w+/\w+/[\w.]+):(.*)} or die;
            $public{$header} = { map { $_ => 1 } split " ", $rest };
        }
        for (grep /\S/, split /\n/, $ENV{USES}) {
            my ($name, $code, $files) = /^(\S.*?)\s+\| (.+) \| (\S+)$/ or die "rule: $_\n";
            push @uses, [$name, qr/$code/, qr/$files/];
        }
        while (<STDIN>) {
            my ($file, $line, $code) = /^([^:]+):(\d+):(.*)/ or next;
            my $say = sub { print STDERR "$file:$line: $_[0]\n"; $bad = 1 };
            my ($layer) = $file =~ m{^(?:lib/)?(\w+)/};
            $may{$layer} or $say->("lib/$layer is no layer that ci/check_layers.sh knows"), next;
            if (my ($name) = $code =~ /^\s*#\s*include\s*"([^"]+)"/) {
                my ($dir) = $name =~ m{^(\w+)/(?:\w+/)?[\w.]+$};
                if (defined $dir) {
                    $may{$layer}{$dir} or $say->("$layer must not include \"$name\"");
                    my ($of) = $file =~ m{^(?:lib/)?(.*)/};
                    my ($sub) = $name =~ m{^(\w+/\w+)/};
                    !defined $sub or $sub eq $of or $public{$name}{$of} or
                        $say->("$of must not include \"$name\" of the subfolder $sub");
                    my ($folder) = $name =~ m{^(.*)/\w+_impl(?:\.inc)?\.h$};
                    !defined $folder or $file =~ m{^lib/\Q$folder\E/[^/]+$} or
                        $say->("\"$name\" is private to lib/$folder");
                } elsif ($name ne "build_facts.h" and !($layer eq "cmd" and -e "cmd/$name")) {
                    $say->("\"$name\": write it as \"layer/file.h\"");
                }
            }
            for (@uses) {
                my ($what, $pattern, $files) = @$_;
                $say->("$what does not belong here") if $code =~ $pattern and $file !~ $files;
            }
        }
        exit($bad ? 1 : 0);
    ' < <("$here/strip_c.pl" "${files[@]}")
}

# Checks that each violation below is found when it is alone in a small tree, and that good lines pass.
self_test() {
    local tree status=0 file code
    tree=$(mktemp -d)
    trap 'rm -rf "$tree"' RETURN
    while IFS='|' read -r verdict file code; do
        rm -rf "${tree:?}/lib" "${tree:?}/cmd"
        mkdir -p "$tree/lib" "$tree/cmd" "$tree/$(dirname "$file")"
        echo 'int ddp_nothing;' >"$tree/cmd/cmd.h"
        printf '%b\n' "$code" >"$tree/$file"
        if (check "$tree") 2>/dev/null; then found=good; else found=bad; fi
        if [ "$found" != "$verdict" ]; then
            echo "check_layers.sh: self-test: $file with '$code' is $verdict, but found $found" >&2
            status=1
        fi
    done <<'END'
good|lib/base/a.c|#include "base/err.h"
bad|lib/base/a.c|#include "stats/summary.h"
bad|lib/comm/a.c|#include "coll/coll.h"
bad|lib/model/a.c|#include "comm/comm.h"
bad|lib/train/a.c|#include "bench/plan.h"
bad|lib/bench/a.c|#include "train/trainer.h"
bad|lib/report/a.c|#include "cmd/cmd.h"
good|lib/run/a.c|#include "train/trainer.h"\n#include "bench/plan.h"
bad|lib/run/a.c|#include "cmd.h"
bad|lib/train/a.c|#include "run/command.h"
bad|lib/run/a.c|fputs("x", stderr);
bad|lib/report/a.c|#include "cmd.h"
bad|lib/base/a.c|#include "err.h"
good|cmd/a.c|#include "cmd.h"\n#include "run/training.h"
bad|cmd/a.c|#include "train/trainer.h"
bad|cmd/a.c|#include "coll/coll.h"
bad|cmd/a.c|#include "bench/plan.h"
good|lib/train/a.c|#include "model/model.h"
bad|lib/novel/a.c|int x;
bad|lib/coll/a.c|# include <mpi.h>
bad|cmd/a.cc|#include <benchmark/benchmark.h>
good|cmd/gbench.cc|#include <benchmark/benchmark.h>
good|lib/comm/mpi/backend_mpi.c|#include <mpi.h>
bad|lib/comm/a.c|#include <nccl.h>
bad|lib/comm/ucx/backend_ucx.c|#include <ucp/api/ucp.h>
good|lib/comm/ucx/ucx_module.c|#include <ucp/api/ucp.h>
bad|lib/comm/shm/a.c|#include "coll/coll.h"
good|lib/comm/shm/a.c|#include "launch/segment.h"
bad|lib/launch/a.c|#include "comm/comm.h"
good|lib/comm/shm/a.c|#include "comm/shm/shm_impl.h"
bad|lib/comm/a.c|#include "comm/shm/shm_impl.h"
bad|cmd/a.c|#include "train/trainer_impl.h"
good|lib/comm/a.c|#include "comm/shm/comm_shm.h"
good|lib/coll/a.c|#include "comm/shm/comm_shm.h"
bad|lib/train/a.c|#include "comm/shm/comm_shm.h"
bad|lib/comm/mpi/a.c|#include "comm/shm/comm_shm.h"
bad|lib/comm/a.c|#include "comm/shm/other.h"
bad|lib/comm/a.c|#include "comm/nccl/backend_nccl.h"
good|lib/comm/nccl/a.c|#include "comm/nccl/backend_nccl.h"
good|lib/comm/nccl/a.c|#include "device/cuda/find_cuda_library.h"
bad|lib/comm/ucx/a.c|#include "device/cuda/find_cuda_library.h"
good|lib/device/cpu/a.c|#include "device/device.h"
bad|lib/device/cpu/a.c|#include "device/cuda/cuda_module.h"
good|lib/device/a.c|#include "device/cuda/cuda_module.h"
bad|lib/device/a.c|#include "device/cpu/kernels_cpu.h"
good|lib/coll/sparse/a.c|#include "coll/sparse/sparse_p2p.h"
bad|lib/coll/a.c|#include "coll/sparse/sparse_p2p.h"
bad|lib/coll/allreduce/a.c|#include "coll/sparse/sparse_coll.h"
good|lib/run/a.c|#include "coll/sparse/sparse_coll.h"
bad|lib/model/a.c|#include <cuda_runtime.h>
good|lib/device/cuda/dev_cuda.c|#include <cuda_runtime_api.h>
good|lib/device/kernels.cu|#include <cuda_runtime.h>
bad|lib/device/kernels.cu|#include "comm/comm.h"
bad|lib/device/cpu/dev_cpu.c|#include <cuda_runtime_api.h>
bad|lib/model/a.c|cblas_sgemm(a);
good|lib/model/a.c|/* cblas_sgemm(a) */ // mpi\nconst char *s = "printf(\\"x\\")"; 
bad|lib/coll/a.c|int f(void) { return printf("x"); }
bad|lib/coll/a.c|fprintf(stderr, "x");
good|lib/report/a.c|printf("x");
good|lib/coll/a.c|snprintf(a, 1, "x"); c->exit(1); c.abort(2); ddp_exit(3); pthread_exit(0);
bad|lib/coll/a.c|exit(1);
bad|lib/coll/a.c|abort ();
bad|lib/launch/launcher.c|_exit(1);
good|lib/launch/launch_process.c|_exit(1);
bad|lib/report/a.c|_exit(1);
bad|lib/model/a.c|getenv("HOME");
good|lib/base/conf.c|getenv("HOME");
END
    return $status
}

self_test
[ "${1:-}" != --self-test ] || exit 0
(check "${1:-$here/..}") || {
    echo "check_layers.sh: see 'Folders, and what each may include' in lib/ARCHITECTURE.md" >&2
    exit 1
}
echo "  LINT  layers"
