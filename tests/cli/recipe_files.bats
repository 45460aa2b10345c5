#!/usr/bin/env bats
# The files of `ddpbench recipe` are legal scripts and manifests. tests/e2e runs some of them.
# shellcheck disable=SC2154 # ddpbench, status, output: helpers.bash, bats
bats_require_minimum_version 1.5.0

setup() {
    load ../helpers.bash
    bench_setup
}

@test "the scripts are legal for bash, and their options for ddpbench" {
    mkdir bin
    # A program that takes the place of srun and torchrun: runs the command after its own options.
    cat >bin/srun <<'END'
#!/bin/sh
while [ "$1" != "$DDPBENCH" ]; do shift; done
echo "secret ${#DDPBENCH_SECRET}"
shift 2
exec "$DDPBENCH" allreduce "$@" --dry-run
END
    chmod +x bin/srun
    cp bin/srun bin/torchrun
    export PATH=$PWD/bin:$PATH DDPBENCH=$ddpbench SLURM_JOB_ID=7
    for name in slurm torchrun ssh; do
        ok recipe $name
        echo "$output" >$name.sh
        bash -n $name.sh
    done
    run bash slurm.sh
    [ "$status" = 0 ]
    says "secret 32" 67108864
    HEAD=h DDPBENCH_SECRET=0123456789abcdef run bash torchrun.sh
    [ "$status" = 0 ]
    says "secret 16" 67108864
    HEAD=h run bash torchrun.sh
    [ "$status" != 0 ]
    says DDPBENCH_SECRET
    run bash ssh.sh
    [ "$status" = 64 ]
}

@test "the prolog checks the nodes of a job, and only a node that a finding names is drained" {
    mkdir bin
    printf '#!/bin/sh\necho alpha; echo beta\n' >bin/scontrol
    printf '#!/bin/sh\necho "$RANK of $WORLD_SIZE at $MASTER_ADDR:$MASTER_PORT secret ${#DDPBENCH_SECRET}: $*"; exit $CODE\n' >bin/fake
    chmod +x bin/*
    echo 0123456789abcdef >secret
    ok recipe prolog
    echo "$output" >prolog.sh
    export PATH=$PWD/bin:$PATH DDPBENCH=$PWD/bin/fake SLURM_JOB_ID=7 SLURM_JOB_NODELIST='x[1-2]' SECRET=secret LOG=$PWD
    for code in 0 10 12 13; do
        SLURMD_NODENAME=beta CODE=$code run bash prolog.sh
        [ "$status" = $((code == 10 ? 10 : 0)) ]
        file_says ddpbench-7.log "1 of 2 at alpha:29507 secret 16: health" "--exit-code host"
    done
}

@test "the manifest has a Service and an Indexed Job with the variables that the ranks need" {
    ok recipe k8s-indexed
    "$PYTHON" -c 'import yaml' || skip "no PyYAML here"
    echo "$output" >job.yaml
    "$PYTHON" - <<'END'
import yaml
service, job = yaml.safe_load_all(open("job.yaml"))
spec, pod = job["spec"], job["spec"]["template"]["spec"]
env = {e["name"]: e for e in pod["containers"][0]["env"]}
assert service["kind"] == "Service" and service["spec"]["clusterIP"] == "None"
assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"] == int(env["WORLD_SIZE"]["value"])
assert env["MASTER_ADDR"]["value"] == f"{job['metadata']['name']}-0.{service['metadata']['name']}"
assert pod["subdomain"] == service["metadata"]["name"] and "DDPBENCH_SECRET" in env and "MASTER_PORT" in env
assert all(isinstance(word, str) for word in pod["containers"][0]["command"])
END
}

@test "a recipe that does not exist is refused" {
    refused 64 "'slrum'" -- recipe slrum
    hint_names slurm
    refused 64 recipe -- recipe
    hint_names k8s-indexed
}
