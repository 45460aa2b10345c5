/* `ddpbench recipe` prints a file that starts ddpbench on several hosts under a launcher. */
#include <string.h>

#include "plain.h"

#define OPTIONS "-b 8 -e 64M -f 4"

static const struct recipe {
    const char *name, *text;
} recipes[] = {
    {"slurm",
     "#!/bin/bash\n"
     "# Measures the all-reduce between the nodes of a Slurm job: sbatch FILE\n"
     "#SBATCH --job-name=ddpbench\n"
     "#SBATCH --nodes=2\n"
     "#SBATCH --ntasks-per-node=2\n"
     "#SBATCH --time=00:10:00\n"
     "#SBATCH --exclusive\n"
     "set -eu\n"
     "ddpbench=${DDPBENCH:-ddpbench} # the same path on all nodes\n"
     "# Processes without this secret cannot join the job. srun gives it to all ranks.\n"
     "DDPBENCH_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\n"
     "export DDPBENCH_SECRET\n"
     "# With --mpi=none the ranks use UCX. For an MPI, write --mpi=pmix (Open MPI) or --mpi=pmi2\n"
     "# (MPICH); `srun --mpi=list` shows what this cluster has.\n"
     "srun --mpi=none \"$ddpbench\" allreduce " OPTIONS
     " --json \"ddpbench-$SLURM_JOB_ID.json\"\n"},
    {"k8s-indexed",
     "# Measures the all-reduce between the pods of an Indexed Job:\n"
     "#   kubectl create secret generic ddpbench \\\n"
     "#     --from-literal=secret=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \\n')\n"
     "#   kubectl apply -f FILE && kubectl logs -f job/ddpbench\n"
     "# Replace the image. WORLD_SIZE, completions and parallelism are the number of pods.\n"
     "apiVersion: v1\n"
     "kind: Service\n"
     "metadata:\n"
     "  name: ddpbench\n"
     "spec:\n"
     "  clusterIP: None # pods find each other as ddpbench-INDEX.ddpbench\n"
     "  publishNotReadyAddresses: true\n"
     "  selector:\n"
     "    job-name: ddpbench\n"
     "---\n"
     "apiVersion: batch/v1\n"
     "kind: Job\n"
     "metadata:\n"
     "  name: ddpbench\n"
     "spec:\n"
     "  completionMode: Indexed # sets JOB_COMPLETION_INDEX, which is the rank\n"
     "  completions: 4\n"
     "  parallelism: 4\n"
     "  backoffLimit: 0\n"
     "  template:\n"
     "    spec:\n"
     "      restartPolicy: Never\n"
     "      subdomain: ddpbench\n"
     "      containers:\n"
     "        - name: ddpbench\n"
     "          image: registry.example.com/ddpbench:latest\n"
     "          # -T: the pods wait for each other for 300 s.\n"
     "          command: [ddpbench, allreduce, -T, \"300\", -b, \"8\", -e, 64M, -f, \"4\"]\n"
     "          env:\n"
     "            - name: WORLD_SIZE\n"
     "              value: \"4\"\n"
     "            - name: MASTER_ADDR\n"
     "              value: ddpbench-0.ddpbench\n"
     "            - name: MASTER_PORT\n"
     "              value: \"29500\"\n"
     "            - name: DDPBENCH_SECRET\n"
     "              valueFrom:\n"
     "                secretKeyRef:\n"
     "                  name: ddpbench\n"
     "                  key: secret\n"
     "          resources:\n"
     "            requests:\n"
     "              cpu: \"2\"\n"
     "              memory: 2Gi\n"
     "            limits:\n"
     "              cpu: \"2\"\n"
     "              memory: 2Gi\n"},
    {"torchrun",
     "#!/bin/bash\n"
     "# Measures the all-reduce between nodes, with ranks of torchrun. Run on every node:\n"
     "#   DDPBENCH_SECRET=SECRET HEAD=HOST NODES=2 EACH=2 bash FILE\n"
     "# SECRET is the same on all nodes, for example from `openssl rand -hex 16`. HOST is the\n"
     "# first node. EACH is the number of ranks of a node.\n"
     "set -eu\n"
     ": \"${HEAD:?set it to the host of rank 0}\"\n"
     ": \"${DDPBENCH_SECRET:?set it to the same secret on all nodes}\"\n"
     "export DDPBENCH_SECRET\n"
     "exec torchrun --no-python --nnodes \"${NODES:-2}\" --nproc-per-node \"${EACH:-2}\" \\\n"
     "    --rdzv-backend c10d --rdzv-endpoint \"$HEAD:29500\" \\\n"
     "    \"${DDPBENCH:-ddpbench}\" allreduce " OPTIONS " --json ddpbench.json\n"},
    {"ssh",
     "#!/bin/bash\n"
     "# Measures the all-reduce between hosts that ssh reaches without a password:\n"
     "#   bash FILE HOST...\n"
     "# ddpbench must have the same path on all hosts. Rank 0 is on the first host, and writes\n"
     "# ddpbench.json there.\n"
     "set -eu\n"
     "[ $# -gt 0 ] || { echo \"usage: bash $0 HOST...\" >&2; exit 64; }\n"
     "each=${EACH:-2} # ranks of a host\n"
     "printf -v hosts \",%s:$each\" \"$@\"\n"
     "exec \"${DDPBENCH:-ddpbench}\" allreduce --hosts \"${hosts#,}\" " OPTIONS
     " --json ddpbench.json\n"},
    {"prolog",
     "#!/bin/bash\n"
     "# A Slurm prolog that drains a slow node before a job of several nodes starts. slurm.conf:\n"
     "#   Prolog=/etc/slurm/ddpbench-prolog.sh\n"
     "#   PrologFlags=Alloc\n"
     "# All nodes of a job run it at the same time, one process a node. An exit code other than 0\n"
     "# drains the node and requeues the job. A node exits with 10 only if a finding names it\n"
     "# or all nodes.\n"
     "# /etc/slurm/ddpbench.secret has the same random text on all nodes, readable by root only.\n"
     "set -u\n"
     "ddpbench=${DDPBENCH:-ddpbench} # the same path on all nodes\n"
     "mapfile -t nodes < <(scontrol show hostnames \"$SLURM_JOB_NODELIST\")\n"
     "[ ${#nodes[@]} -gt 1 ] || exit 0\n"
     "for i in \"${!nodes[@]}\"; do\n"
     "    [ \"${nodes[i]}\" != \"$SLURMD_NODENAME\" ] || export RANK=$i\n"
     "done\n"
     "export WORLD_SIZE=${#nodes[@]} LOCAL_RANK=0 LOCAL_WORLD_SIZE=1 MASTER_ADDR=${nodes[0]}\n"
     "export MASTER_PORT=$((29500 + SLURM_JOB_ID % 1000))\n"
     "DDPBENCH_SECRET=$(cat \"${SECRET:-/etc/slurm/ddpbench.secret}\") && export DDPBENCH_SECRET\n"
     "export TORCHELASTIC_RUN_ID=$SLURM_JOB_ID # the ranks follow these variables, not Slurm's\n"
     "# `timeout` ends the check if a node does not come.\n"
     "log=${LOG:-/var/log}/ddpbench-$SLURM_JOB_ID.json\n"
     "timeout 60 \"$ddpbench\" health --backend ucx --exit-code host --json \"$log\" -T 20 \\\n"
     "    >\"${log%.json}.log\" 2>&1\n"
     "code=$?\n"
     "# 10: this node is slow. Other codes are no verdict about this node, and do not drain it.\n"
     "[ $code -ne 10 ] || exit 10\n"
     "exit 0\n"},
};

const char *ddp_recipe_name(const void *ctx, int i)
{
    (void)ctx;
    return i < (int)DDP_COUNT_OF(recipes) ? recipes[i].name : NULL;
}

static int run(struct ddp_app *app, void *values, const struct ddp_opt_result *parsed,
               struct ddp_err *err)
{
    (void)values;
    const char *name = parsed->operand_count > 0 ? parsed->operands[0] : NULL;
    DDP_TRY(ddp_check_operands(app, parsed, 1, "one recipe", err));
    for (size_t i = 0; name != NULL && i < DDP_COUNT_OF(recipes); i++) {
        if (strcmp(name, recipes[i].name) != 0)
            continue;
        fputs(recipes[i].text, app->out);
        return 0;
    }
    return ddp_refuse_operand("recipe", name, ddp_recipe_name, NULL, err);
}

const struct ddp_cmd ddp_cmd_recipe = {
    .name = "recipe",
    .summary = "print a file that starts ddpbench on a cluster",
    .operands = "RECIPE",
    .details = "Recipes: slurm (a script for sbatch), k8s-indexed (a manifest for an Indexed\n"
               "Job of Kubernetes), torchrun (a script for each node), ssh (a script for\n"
               "--hosts), prolog (a Slurm prolog that drains a slow node).\n",
    .examples = "  ddpbench recipe slurm >job.sh && sbatch job.sh\n"
                "  ddpbench recipe ssh >job.sh && bash job.sh node1 node2\n",
    .rows = ddp_plain_rows,
    .values_bytes = sizeof(struct ddp_plain_values),
    .help_offset = offsetof(struct ddp_plain_values, help),
    .run = run,
};
