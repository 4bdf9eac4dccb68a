#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What our monitor does beside writing csv: mistakes in its config, edits while it runs, failures.

    behaviour.py FOLDER"""
import contextlib
import copy
import csv
import glob
import io
import json
import os
import pickle
import sys
import time

import torch
from torch import nn

from msprobe.pytorch import TrainerMon

FOLDER = sys.argv[1]
SIMPLE = {"targets": {}, "ops": ["norm", "max"], "wg_distribution": True}
failed = []


def check(name, is_right, what=""):
    print(f"ok {name}" if is_right else f"not ok {name}\n    {what}", flush=True)
    if not is_right:
        failed.append(name)


def write_config(where, **changed):
    os.makedirs(where, exist_ok=True)
    path = os.path.join(where, "config.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump({**SIMPLE, **changed}, file)
    return path


def model_of():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.ones(3, 4)).sum().backward()
    optimizer.step()


def monitored(name, **changed):
    """Returns (model, optimizer, monitor, folder)."""
    where = os.path.join(FOLDER, name)
    os.environ["MONITOR_OUTPUT_DIR"] = where
    model, optimizer = model_of()
    monitor = TrainerMon(write_config(where, **changed), params_have_main_grad=False)
    monitor.set_monitor(model, optimizer)
    return model, optimizer, monitor, where


def rows(where, metric):
    found = []
    for path in sorted(glob.glob(f"{where}/*-rank0-*/{metric}_*.csv")):
        with open(path, encoding="utf-8") as file:
            found += list(csv.DictReader(file))
    return found


@contextlib.contextmanager
def heard():
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
        yield text


# ---- config -----------------------------------------------------------------


def mistakes_are_named():
    for changed, words in ((({"eps": "small"}), "eps: expected a number"), ({"ops": ["nrom"]}, 'did you mean "norm"'),
                           ({"targets": ["fc"]}, "targets: expected an object"),
                           ({"alert": {"rules": [{"rule_name": "AnomalyTurbulence"}]}}, "threshold"),
                           ({"append_output": ["Dec03_21-34-40"]}, "append_output: expected no times or two")):
        path = write_config(os.path.join(FOLDER, "wrong"), **changed)
        try:
            TrainerMon(path)
            said = "nothing"
        except ValueError as why:
            said = str(why)
        check(f"a_mistake_in_{next(iter(changed))}_is_named_with_its_place", words in said and "config.json" in said and
              "line" in said, said)


def a_live_edit():
    os.environ["DYNAMIC_MONITOR"] = "True"
    model, optimizer, monitor, where = monitored("edited", dynamic_on=False)
    del os.environ["DYNAMIC_MONITOR"]
    path = os.path.join(where, "config.json")

    def edit(**changed):
        write_config(where, **changed)
        later = time.time() + len(changed) + edit.count
        os.utime(path, (later, later))
        edit.count += 10
    edit.count = 1
    step(model, optimizer)
    check("nothing_is_written_before_dynamic_on", not rows(where, "grad_reduced"))
    edit(dynamic_on=True, collect_times=3)
    step(model, optimizer)
    step(model, optimizer)
    check("an_edit_begins_with_the_next_step", {r["step"] for r in rows(where, "grad_reduced")} == {"2"})
    edit(dynamic_on=True, ops="norm")
    with heard() as said:
        step(model, optimizer)
        step(model, optimizer)
    check("a_wrong_edit_is_said_once", said.getvalue().count("ops: expected a list of strings") == 1 and
          "stays in effect" in said.getvalue(), said.getvalue())
    check("and_keeps_the_config_before", {r["step"] for r in rows(where, "grad_reduced")} == {"2", "3", "4"})
    edit(dynamic_on=True, collect_times=1)
    step(model, optimizer)
    step(model, optimizer)
    with open(path, encoding="utf-8") as file:
        check("dynamic_on_is_false_again_at_the_end", json.load(file)["dynamic_on"] is False)
    check("hooks_are_gone_at_the_end", not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules()) and
          not any(getattr(p, "_post_accumulate_grad_hooks", None) for p in model.parameters()))
    return monitor


# ---- failures ----------------------------------------------------------------


def a_folder_that_vanishes():
    model, optimizer, monitor, where = monitored("vanished")
    step(model, optimizer)
    plain, its = model_of()
    step(plain, its)
    for path in glob.glob(f"{where}/*-rank0-*"):
        os.rename(path, path + "-away")
        with open(path, "w", encoding="utf-8"):
            pass
    with heard() as said:
        for _ in range(3):
            step(model, optimizer)
            step(plain, its)
    check("a_training_goes_on_when_nothing_can_be_written", said.getvalue().count("monitored no more") == 1 and
          all(torch.equal(a, b) for a, b in zip(model.parameters(), plain.parameters())), said.getvalue())
    return monitor


def an_exception_in_the_model():
    model, optimizer, monitor, where = monitored("raised", xy_distribution=True)
    with contextlib.suppress(RuntimeError):
        model(torch.ones(3, 5))
    step(model, optimizer)
    check("a_call_that_raised_leaves_no_trace", len(rows(where, "actv_grad")) == 8, rows(where, "actv_grad"))
    return monitor


def copies():
    model, optimizer, monitor, where = monitored("copied", xy_distribution=True)
    step(model, optimizer)
    before = len(rows(where, "actv"))
    twin = copy.deepcopy(model)
    loaded = pickle.loads(pickle.dumps(model))
    for other in (twin, loaded):
        other(torch.ones(3, 4)).sum().backward()
    check("a_copy_and_a_pickle_are_not_monitored", len(rows(where, "actv")) == before)
    model.eval()
    with torch.no_grad():
        model(torch.ones(3, 4))
    model.train()
    step(model, optimizer)
    check("an_evaluation_has_no_rows", len(rows(where, "actv")) == 2 * before)
    return monitor


def activations_begin_and_end():
    model, optimizer, monitor, where = monitored("reload", xy_distribution=False, all_xy=True)
    for is_on in (False, True, False):
        monitor.reload_xy(is_on)
        step(model, optimizer)
        step(model, optimizer)
    steps = {int(row["step"]) for row in rows(where, "actv")}
    check("reload_xy_begins_and_ends_activations", steps == {2, 3}, steps)
    check("reload_xy_leaves_gradients", {int(row["step"]) for row in rows(where, "grad_reduced")} == set(range(6)),
          rows(where, "grad_reduced"))
    return monitor


def struct():
    with heard() as said:
        model, optimizer, monitor, where = monitored("struct", print_struct=True)
        step(model, optimizer)
        step(model, optimizer)
    path = os.path.join(where, "module_struct", "rank0", "module_struct.json")
    with open(path, encoding="utf-8") as file:
        known = json.load(file)
    check("the_structure_is_written_and_the_training_goes_on",
          known["0:0"]["input"] == {"config": "list[1]", "0": "size=(3, 4), dtype=torch.float32"} and
          set(known["0:0"]) == {"input", "output", "input_grad", "output_grad"} and "goes on" in said.getvalue(), known)
    return monitor


def older_orders():
    where = os.path.join(FOLDER, "older")
    os.environ["MONITOR_OUTPUT_DIR"] = where
    model, optimizer = model_of()
    monitor = TrainerMon(write_config(where), params_have_main_grad=False)
    monitor.set_wrapped_optimizer(optimizer)
    monitor.monitor_gnorm_with_ad(model, grad_acc_steps=1, start_iteration=7)
    step(model, optimizer)
    check("the_names_of_older_versions_work", {r["step"] for r in rows(where, "grad_reduced")} == {"7"})
    return monitor


kept = [mistakes_are_named(), a_live_edit(), a_folder_that_vanishes(), an_exception_in_the_model(), copies(),
        struct(), activations_begin_and_end(), older_orders()]
sys.exit(bool(failed))
