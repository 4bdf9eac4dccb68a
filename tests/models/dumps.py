# SPDX-License-Identifier: MIT
"""One training step of a family, with a change, as a statistics dump.

Every step runs in a process of its own, forked after the imports, because a change may patch torch
or the classes of a model.
"""
import contextlib
import json
import os
import shutil
import traceback

import torch

from families import Family


class Step:
    """What a change may alter: the model, its batch, and how a step of training is done."""

    def __init__(self, family: Family):
        self.family = family
        self.keys = {}          # of make()
        self.after_make = []    # functions of the model
        self.batch = family.batch()
        self.loss = family.loss
        self.optimizer = lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01, foreach=False)
        self.clip = 1.0
        self.before_backward = lambda model, loss: loss
        self.before_step = lambda model: None
        self.context = contextlib.nullcontext
        self.parts = 1          # micro batches
        self.threads = 1
        self.dtype = torch.float32
        self.step_times = 1
        self.after_step = lambda model, optimizer: None
        family.loop(self)


def settle(model):
    """Gives parameters the sizes of a trained model: no bias is zero, no norm is the identity."""
    g = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for p in model.parameters():
            noise = torch.randn(p.shape, generator=g)
            if p.ndim >= 2:
                p.copy_(noise * (p[0].numel() ** -0.5))
            else:
                p.add_(noise * 0.1)


def slices(batch, parts):
    size = len(next(iter(batch.values())))
    for i in range(parts):
        yield {k: v[i * size // parts:(i + 1) * size // parts] for k, v in batch.items()}


def train(step, model, optimizer):
    for batch in slices(step.batch, step.parts):
        with step.context():
            loss = step.loss(model, batch)
        loss = step.before_backward(model, loss)
        if step.parts > 1:
            loss = loss / step.parts
        loss.backward()
    step.before_step(model)
    if step.clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), step.clip)
    for _ in range(step.step_times):
        optimizer.step()
    step.after_step(model, optimizer)


def build(step):
    torch.manual_seed(3)
    torch.set_num_threads(step.threads)
    model = step.family.make(**step.keys)
    settle(model)
    model.train()
    for change in step.after_make:
        changed = change(model)
        model = changed if isinstance(changed, torch.nn.Module) else model
    if step.dtype != torch.float32:
        model = model.to(step.dtype)
        step.batch = {k: v.to(step.dtype) if v.is_floating_point() else v
                      for k, v in step.batch.items()}
    return model


def record(family, change, folder, level="mix", task="statistics"):
    from msprobe.pytorch import PrecisionDebugger
    step = Step(family)
    if change is not None:
        change(step)
    model = build(step)
    optimizer = step.optimizer([p for p in model.parameters() if p.requires_grad])
    os.makedirs(folder)
    config = os.path.join(folder, "config.json")
    with open(config, "w", encoding="utf-8") as f:
        keys = {"task": task} if task != "md5" else {
            "task": "statistics", "statistics": {"summary_mode": "md5"}}
        json.dump({**keys, "dump_path": os.path.join(folder, "out"), "level": level,
                   "rank": [], "step": [], "risk_level": "ALL"}, f)
    debugger = PrecisionDebugger(config_path=config)
    torch.manual_seed(4)
    debugger.start(model)
    train(step, model, optimizer)
    debugger.stop()
    debugger.step()
    one = os.path.join(folder, "out", "step0")
    for name in os.listdir(os.path.join(one, os.listdir(one)[0])):
        shutil.move(os.path.join(one, os.listdir(one)[0], name), folder)
    shutil.rmtree(os.path.join(folder, "out"))
    os.remove(os.path.join(folder, "stack.json"))  # large, and compare does not read it


def warm_up():
    """Loads in the parent what every child would load: the first optimizer imports half of torch."""
    import msprobe.pytorch
    line = torch.nn.Linear(2, 2)
    optimizer = torch.optim.AdamW(line.parameters(), foreach=False)
    line(torch.ones(1, 2)).sum().backward()
    optimizer.step()


def record_apart(family, change, folder, **keys):
    """Records in a child process. Returns whether the child succeeded; its words lie in folder.log."""
    shutil.rmtree(folder, ignore_errors=True)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with open(folder + ".log", "w", encoding="utf-8") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
                try:
                    record(family, change, folder, **keys)
                    code = 0
                except Exception:  # the parent reports the case
                    traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] == 0
