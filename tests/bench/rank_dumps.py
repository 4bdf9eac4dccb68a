#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Dumps of many ranks with statistics, for benchmarks of commands that read dumps.

    rank_dumps.py DIR RANKS OPERATORS [SCALE]

All ranks have the same values, which SCALE multiplies in every hundredth operator.
"""
import json
import os
import random
import sys

OUT, RANKS, OPERATORS = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
SCALE = float(sys.argv[4]) if len(sys.argv) > 4 else 1.0


def tensor(value):
    return {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [64, 8], "Max": value, "Min": -value,
            "Mean": value / 7, "Norm": value * 2, "requires_grad": True}


def make_records():
    draw = random.Random(7)
    records = {}
    for i in range(OPERATORS):
        value = draw.uniform(0.5, 2) * (SCALE if i % 100 == 99 else 1)
        records[f"Functional.linear.{i}.forward"] = {
            "input_args": [tensor(draw.uniform(0.5, 2)), tensor(draw.uniform(0.5, 2))], "input_kwargs": {},
            "output": [tensor(value)]}
    return records


def main():
    text = json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": None,
                       "data": make_records()})
    for rank in range(RANKS):
        folder = f"{OUT}/step0/rank{rank}"
        os.makedirs(folder)
        with open(f"{folder}/dump.json", "w", encoding="utf-8") as f:
            f.write(text)


main()
