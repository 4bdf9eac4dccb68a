#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What `msprobe trend` says of real trainings: nothing of clean ones, the step and layer of what was done to others.

    trends.py MSPROBE FOLDER     with our msprobe on PYTHONPATH"""
import json
import os
import subprocess
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs

MSPROBE, FOLDER = sys.argv[1:]
torch.set_num_threads(1)
failed = []
CONFIG = {"targets": {}, "ops": ["norm", "max", "min", "mean"], "xy_distribution": True, "wg_distribution": True,
          "param_distribution": True, "step_count_per_record": 1000}


def check(name, is_right, what=""):
    print(f"ok {name}" if is_right else f"not ok {name}\n    {str(what)[:1200]}", flush=True)
    if not is_right:
        failed.append(name)


def train(name, model, batches, loss_of, steps, fault=None, rate=1e-3, seed=0):
    """Trains, calling fault(model, step) before each step; returns the monitor's folder."""
    from msprobe.pytorch import TrainerMon
    where = os.path.join(FOLDER, name)
    os.makedirs(where, exist_ok=True)
    os.environ["MONITOR_OUTPUT_DIR"] = where
    with open(f"{where}/config.json", "w", encoding="utf-8") as file:
        json.dump(CONFIG, file)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    monitor = TrainerMon(f"{where}/config.json", params_have_main_grad=False)
    monitor.set_monitor(model, optimizer)
    torch.manual_seed(seed)
    for step, batch in zip(range(steps), batches):
        if fault:
            fault(model, step)
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()
    return where


def findings(*args):
    done = subprocess.run([MSPROBE, "trend", *args, "--format", "json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)["findings"] if done.returncode == 0 else done.stderr


def gpt(name, fault=None, seed=0, steps=60):
    torch.manual_seed(seed)
    return train(name, programs.GPT(layers=3), programs.tokens((4, 13), 32, seed, steps), programs.next_token, steps,
                 fault)


def cnn(name, seed=0, steps=60):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 100, 4))
    return train(name, model, programs.batches((16, 3, 12, 12), 4, seed, steps), programs.classify, steps)


def plain(name, fault=None, seed=0, steps=60):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))
    return train(name, model, programs.batches((64, 6), 3, seed, steps), programs.classify, steps, fault)


# ---- clean ---------------------------------------------------------------------

clean = gpt("clean")
said = [findings(clean)] + [findings(gpt(f"clean{seed}", seed=seed)) for seed in (1, 2)] + \
    [findings(cnn(f"cnn{seed}", seed)) for seed in (0, 1)] + [findings(plain("plain"))]
check("nothing_stands_out_in_six_clean_trainings", said == [[]] * 6, said)
check("a_run_does_not_differ_from_itself_made_again", findings(gpt("again"), "--golden", clean) == [])


# ---- one thing done ---------------------------------------------------------------


def growing(model, step):
    """The weights of one layer grow from step 40 on; the gradient jumps some steps later."""
    if 40 <= step < 48:
        with torch.no_grad():
            model[2].weight *= 1.5


def not_a_number(model, step):
    if step == 30:
        with torch.no_grad():
            model.layers[2].out.weight[0, 0] = float("nan")


def other_weight(model, step):
    if step == 25:
        with torch.no_grad():
            model.layers[1].qkv.weight *= 1.05


found = findings(plain("growing", growing))
check("a_jump_of_the_gradient_names_what_moved_before", found and found[0]["kind"] == "spike" and
      found[0]["steps"][0] in (40, 41) and found[0]["steps"][1] > found[0]["steps"][0] and found[0]["where"].startswith("2."), found)
found = findings(gpt("nan", not_a_number))
check("a_nan_names_its_layer_and_step", [f for f in found if f["kind"] == "overflow"][0]["where"].startswith(
    "layers.2.out.output") and [f for f in found if f["kind"] == "overflow"][0]["steps"] == [30, 30], found)
found = findings(gpt("other", other_weight), "--golden", clean)
check("a_run_that_leaves_another_names_where", len(found) == 1 and found[0]["kind"] == "deviation" and
      found[0]["steps"] == [25, 25] and found[0]["where"].startswith("layers.1.qkv.output"), found)
sys.exit(bool(failed))
