#!/bin/bash
torchrun --nproc_per_node 8 train.py --lr 1e-5 \
  --bf16 \
  --seed 1234
