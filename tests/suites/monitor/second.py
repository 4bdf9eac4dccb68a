#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""TrainerMonitorV2: trainings and csv files beside those of the official one.

    second.py none|monitored OUT     prints what the trainings computed; PYTHONPATH says whose monitor
    second.py compare OURS THEIRS"""
import json
import os
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import compare
import programs

MONITORS = {"module": {"enabled": True}, "weight_grad": {"enabled": True}, "optimizer": {"enabled": True},
            "param": {"enabled": True, "ops": ["norm", "max"]}}


def watcher(how, out, held, **changed):
    def watch(model, optimizer, micro_steps=1, **_):
        if how == "none":
            return
        from msprobe.core.monitor_v2 import TrainerMonitorV2
        os.makedirs(out, exist_ok=True)
        with open(f"{out}/config.json", "w", encoding="utf-8") as file:
            json.dump({"output_dir": out, "monitors": MONITORS, **changed}, file)
        monitor = TrainerMonitorV2(f"{out}/config.json", fr="pytorch")
        monitor.start(model=model, optimizer=optimizer, grad_acc_steps=micro_steps)
        held.append(monitor)
    return watch


def train(how, out):
    torch.set_num_threads(1)
    for program, changed in ((programs.mlp, {}), (programs.cnn, {"step_count_per_record": 2}), (programs.gpt, {}),
                             (programs.moe, {"start_step": 1, "step_interval": 2}), (programs.rnn, {}),
                             (programs.accumulation, {"collect_times": 2}), (programs.frozen_layers, {})):
        torch.manual_seed(0)
        held = []
        done = program(watcher(how, f"{out}/{program.__name__}", held, **changed))
        print("DONE", program.__name__, programs.digest(*done), flush=True)
        for monitor in held:
            monitor.stop()


def beside(ours, theirs):
    failed = 0
    compare.UNIT, compare.RELATIVE = 0, 2e-7  # figures are written as float32, unrounded: its last bit may differ
    for name in sorted(os.listdir(theirs)):
        complaints, values = [], 0
        mine = {f for f in os.listdir(f"{ours}/{name}/rank_0")}
        other = {f for f in os.listdir(f"{theirs}/{name}/rank_0")}
        complaints += [f"{f} only of one" for f in sorted(mine ^ other)]
        for f in sorted(mine & other):
            x, y = compare.rows_of(f"{ours}/{name}/rank_0/{f}"), compare.rows_of(f"{theirs}/{name}/rank_0/{f}")
            if f.startswith("weight_grad"):  # the official hooks of single gradients are freed before they are called
                x = [row for row in x if row[3] != "unreduced"]
            values += sum(map(len, y))
            complaints += [f"{f}: {w}: {a}, theirs {b}" for w, a, b in compare.differences(x, y, ())]
        is_right = not complaints and values
        print(f"{'ok' if is_right else 'not ok'} second_csv_equals_the_official_{name} # {len(other)} files, "
              f"{values} values")
        print("".join(f"    {c}\n" for c in complaints[:5]), end="")
        failed |= not is_right
    return failed


if __name__ == "__main__":
    sys.exit(beside(*sys.argv[2:]) if sys.argv[1] == "compare" else train(*sys.argv[1:]))
