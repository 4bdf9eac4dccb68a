#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""CPU time of a step with a monitor and without, turn by turn in one process.

    cost.py FOLDER [WIDTH LAYERS TOKENS STEPS]     PYTHONPATH says whose monitor

Two equal models train in turns, one monitored; the shortest step of each counts, as others load the machine."""
import json
import os
import sys
import time

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs


def trained(folder, kind, width, layers, tokens):
    torch.manual_seed(0)
    model = programs.GPT(words=512, width=width, layers=layers)
    model.position = torch.nn.Embedding(tokens, width)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, 512, (4, tokens + 1))
    monitor = None
    if kind:
        from msprobe.pytorch import TrainerMon
        os.environ["MONITOR_OUTPUT_DIR"] = os.path.join(folder, kind)
        os.makedirs(os.environ["MONITOR_OUTPUT_DIR"], exist_ok=True)
        path = os.path.join(folder, f"{kind}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"targets": {}, "ops": ["norm", "min", "max", "mean", "nans"], "step_count_per_record": 100000,
                       "wg_distribution": kind != "invariants", "xy_distribution": kind == "activations",
                       "invariants": kind == "invariants"}, file)
        monitor = TrainerMon(path, params_have_main_grad=False)
        monitor.set_monitor(model, optimizer)

    def step():
        began = time.process_time()
        programs.next_token(model, ids).backward()
        optimizer.step()
        optimizer.zero_grad()
        return time.process_time() - began

    return step, monitor


def main(folder, *sizes):
    width, layers, tokens, steps = [int(n) for n in sizes] or (384, 4, 128, 15)
    torch.set_num_threads(1)
    turns = {kind: trained(folder, kind, width, layers, tokens) for kind in (None, "invariants", "gradients", "activations")}
    best = {kind: float("inf") for kind in turns}
    for _ in range(steps):
        for kind, (step, _monitor) in turns.items():
            best[kind] = min(best[kind], step())
    plain = best.pop(None)
    print(f"a step takes {plain * 1000:.1f} ms of CPU")
    for kind, time_taken in best.items():
        print(f"with {kind}: {time_taken * 1000:.1f} ms, {100 * (time_taken / plain - 1):+.2f} %")


if __name__ == "__main__":
    main(*sys.argv[1:])
