#!/bin/bash
# SPDX-License-Identifier: MIT
# Records a training of two nodes with eight processes each under Slurm.
#   sbatch samples/slurm.sh train.py --epochs 1
#
#SBATCH --job-name=probed
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=00:30:00
#SBATCH --output=%x-%j.log
set -eu

# The run lies where all nodes see it. What each process records goes to a disk of its node first and is
# copied in large pieces: shared file systems are slow with small ones.
run=${RUN:-$SLURM_SUBMIT_DIR/run-$SLURM_JOB_ID}
stage=${SLURM_TMPDIR:-/tmp}/msprobe-$SLURM_JOB_ID

MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR MASTER_PORT="${MASTER_PORT:-29500}"
export WORLD_SIZE=$SLURM_NTASKS

# torch.distributed reads RANK and LOCAL_RANK, which Slurm calls otherwise; so does msprobe.
srun --kill-on-bad-exit=1 bash -c '
    export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID
    exec "$@"' rank \
    msprobe run -o "$run" --stage "$stage" --hang_timeout 120 -- python3 "$@" ||
    echo "the training ended with status $?; what it recorded until then is reported" >&2

msprobe report "$run"
