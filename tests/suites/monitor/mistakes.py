#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Invariants: each of these small trainings has a mistake of the kind that people make and that no exception tells; it
has to be named, with its step. The trainings of programs.py, and what people do on purpose, have none.

    mistakes.py FOLDER     with our msprobe on PYTHONPATH"""
import contextlib
import copy
import io
import json
import os
import sys

import torch
from torch import nn
import torch.nn.functional as F

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import programs

torch.set_num_threads(1)
FOLDER = sys.argv[1]
BEGIN = 6  # the step at which a mistake sets in that is not there from the beginning
STEPS = 12


def watch(name, model, optimizer):
    from msprobe.pytorch import TrainerMon
    where = os.path.join(FOLDER, name)
    os.makedirs(where, exist_ok=True)
    os.environ["MONITOR_OUTPUT_DIR"] = where
    with open(f"{where}/config.json", "w", encoding="utf-8") as file:
        json.dump({"targets": {}, "invariants": True}, file)
    monitor = TrainerMon(f"{where}/config.json", params_have_main_grad=False)
    monitor.set_monitor(model, optimizer)
    return monitor


def breaches(name):
    path = os.path.join(FOLDER, name, "invariants", "rank0.jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


class Loop:
    """A right training; a mistake overrides a part of it."""

    kind, step, where = None, BEGIN, ""

    def make(self):
        return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 16), nn.ReLU(),
                             nn.Linear(16, 3))

    def optimizer(self, model):
        return torch.optim.Adam(model.parameters(), lr=1e-2)

    def batches(self):
        return programs.batches((8, 6), 3, steps=STEPS)

    def loss(self, model, batch, step):
        return programs.classify(model, batch)

    def before(self, model, optimizer, step):
        pass

    def zero(self, optimizer, step):
        optimizer.zero_grad()

    def update(self, model, optimizer, step):
        optimizer.step()

    def after(self, model, optimizer, step):
        pass

    def run(self, name):
        torch.manual_seed(0)
        model = self.make()
        optimizer = self.optimizer(model)
        monitor = watch(name, model, optimizer)
        for step, batch in enumerate(self.batches()):
            self.before(model, optimizer, step)
            self.zero(optimizer, step)
            self.loss(model, batch, step).backward()
            self.update(model, optimizer, step)
            self.after(model, optimizer, step)
        return monitor


# ---- mistakes -------------------------------------------------------------------


class OptimizerOfACopy(Loop):
    kind, step, where = "optimizer", 3, "0:0.weight"

    def optimizer(self, model):
        return torch.optim.Adam(copy.deepcopy(model).parameters(), lr=1e-2)


class LayerForgotten(Loop):
    kind, step, where = "optimizer", 3, "0:5.weight"

    def optimizer(self, model):
        return torch.optim.Adam(model[:5].parameters(), lr=1e-2)


class HeadReplacedAfterwards(Loop):
    kind, step, where = "optimizer", 3, "0:5.weight"

    def optimizer(self, model):
        optimizer = super().optimizer(model)
        model[5] = nn.Linear(16, 3)
        return optimizer


class ZeroGradLeftOut(Loop):
    kind, step = "stale", 1

    def zero(self, optimizer, step):
        pass


class ZeroGradLeftOutLater(Loop):
    kind = "stale"

    def zero(self, optimizer, step):
        if step < BEGIN:
            optimizer.zero_grad()


class ZeroGradOfAnother(Loop):
    kind, step = "stale", 1

    def zero(self, optimizer, step):
        torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1).zero_grad()


class EvaluationModeStays(Loop):
    kind, step = "mode", BEGIN

    def before(self, model, optimizer, step):
        if step == BEGIN:
            model.eval()


class DropoutInEvaluation(Loop):
    kind, step = "mode", 1

    def after(self, model, optimizer, step):
        with torch.no_grad():
            model(torch.ones(2, 6))


class StepUnderAutocast(Loop):
    kind, step = "autocast", 0

    def update(self, model, optimizer, step):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            optimizer.step()


class SchedulerTwice(Loop):
    kind, step = "scheduler", 2

    def optimizer(self, model):
        optimizer = super().optimizer(model)
        self.scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=100)
        return optimizer

    def after(self, model, optimizer, step):
        self.scheduler.step()
        self.scheduler.step()


class TiedBroken(Loop):
    kind = "tied"

    def make(self):
        return programs.GPT(layers=1, tied=True)

    def batches(self):
        return programs.tokens((2, 9), 32, steps=STEPS)

    def loss(self, model, batch, step):
        return programs.next_token(model, batch)

    def before(self, model, optimizer, step):
        if step == BEGIN:
            model.head.weight = nn.Parameter(model.head.weight.detach().clone())


class TiedByCopy(TiedBroken):
    step = 0

    def make(self):
        model = programs.GPT(layers=1)
        model.head.weight = nn.Parameter(model.embedding.weight.detach().clone())
        return model

    def before(self, model, optimizer, step):
        pass


class StaleBatch(Loop):
    kind, step = "batch", BEGIN + 3

    def batches(self):
        kept = list(programs.batches((8, 6), 3, steps=BEGIN + 1))
        return kept + [kept[-1]] * 6


class LossDetached(Loop):
    kind = "zero"

    def loss(self, model, batch, step):
        loss = programs.classify(model, batch)
        return loss if step < BEGIN else loss * 0


class NotANumber(Loop):
    kind = "finite"

    def loss(self, model, batch, step):
        return super().loss(model, batch, step) * (1 if step != BEGIN else float("inf"))


class RateOfNothing(Loop):
    """The updates are lost in bfloat16: the parameters do not change."""
    kind, step = "still", 2

    def make(self):
        return super().make().bfloat16()

    def optimizer(self, model):
        return torch.optim.SGD(model.parameters(), lr=1e-9)

    def loss(self, model, batch, step):
        return F.cross_entropy(model(batch[0].bfloat16()).float(), batch[1])


class LoadedInBetween(Loop):
    kind = "outside"

    def make(self):
        self.first = copy.deepcopy(super().make())
        return self.first

    def before(self, model, optimizer, step):
        if step == 0:
            self.state = copy.deepcopy(model.state_dict())
        if step == BEGIN:
            model.load_state_dict(self.state)


class CastInBetween(Loop):
    kind = "dtype"

    def before(self, model, optimizer, step):
        if step == BEGIN:
            model.double()

    def loss(self, model, batch, step):
        return F.cross_entropy(model(batch[0].to(model[0].weight.dtype)), batch[1])


MISTAKES = [OptimizerOfACopy, LayerForgotten, HeadReplacedAfterwards, ZeroGradLeftOut, ZeroGradLeftOutLater,
            ZeroGradOfAnother, EvaluationModeStays, DropoutInEvaluation, StepUnderAutocast, SchedulerTwice, TiedBroken,
            TiedByCopy, StaleBatch, LossDetached, NotANumber, RateOfNothing, LoadedInBetween, CastInBetween]


# ---- what people do on purpose -----------------------------------------------------


class Clean(Loop):
    pass


class Evaluates(Loop):
    def after(self, model, optimizer, step):
        model.eval()
        with torch.no_grad():
            model(torch.ones(2, 6))
        model.train()


class OneBatchAlways(Loop):
    def batches(self):
        return [next(programs.batches((8, 6), 3))] * STEPS


class Accumulates(Loop):
    def zero(self, optimizer, step):
        if step % 3 == 0:
            optimizer.zero_grad()

    def update(self, model, optimizer, step):
        if step % 3 == 2:
            optimizer.step()


class ZeroGradToZeros(Loop):
    def zero(self, optimizer, step):
        optimizer.zero_grad(set_to_none=False)


class ClampsWeights(Loop):
    def after(self, model, optimizer, step):
        with torch.no_grad():
            for p in model.parameters():
                p.clamp_(-0.1, 0.1)


class TwoOptimizers(Loop):
    def optimizer(self, model):
        self.other = torch.optim.SGD(model[3].parameters(), lr=1e-2)
        return torch.optim.Adam([p for i in (0, 5) for p in model[i].parameters()], lr=1e-2)

    def zero(self, optimizer, step):
        optimizer.zero_grad()
        self.other.zero_grad()

    def update(self, model, optimizer, step):
        self.other.step()
        optimizer.step()


class Schedules(Loop):
    def optimizer(self, model):
        optimizer = super().optimizer(model)
        self.schedulers = [torch.optim.lr_scheduler.StepLR(optimizer, 3),
                           torch.optim.lr_scheduler.SequentialLR(optimizer, [
                               torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=4),
                               torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)], [4])]
        return optimizer

    def after(self, model, optimizer, step):
        for one in self.schedulers:
            one.step()


class LowRank(Loop):
    """The second factor begins at zero, so that the first has a gradient of zero in the first step."""

    def make(self):
        class Adapted(nn.Module):
            def __init__(self):
                super().__init__()
                self.base, self.a, self.b = nn.Linear(6, 3), nn.Linear(6, 2, bias=False), nn.Linear(2, 3, bias=False)
                self.base.requires_grad_(False)
                nn.init.zeros_(self.b.weight)

            def forward(self, x):
                return self.base(x) + self.b(self.a(x))

        return Adapted()

    def optimizer(self, model):
        return torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-2)


PURPOSES = [Clean, Evaluates, OneBatchAlways, Accumulates, ZeroGradToZeros, ClampsWeights, TwoOptimizers, Schedules,
            LowRank]


def main():
    failed = []

    def check(name, is_right, what):
        print(f"ok {name}" if is_right else f"not ok {name}\n    {str(what)[:700]}", flush=True)
        if not is_right:
            failed.append(name)

    kept = []
    for one in MISTAKES:
        with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(RuntimeError):
            kept.append(one().run(one.__name__))
        said = breaches(one.__name__)
        first = said[0] if said else {}
        right = first.get("kind") == one.kind and first["step"] in (one.step, one.step + 1) and one.where in first["where"]
        check(f"a_mistake_is_named_{one.__name__}", right and {b["kind"] for b in said} == {one.kind},
              [(b["kind"], b["step"], b["where"]) for b in said])
    for one in PURPOSES:
        kept.append(one().run(one.__name__))
        check(f"no_alarm_{one.__name__}", not breaches(one.__name__), breaches(one.__name__))
    for program in programs.PROGRAMS:
        if program.__name__ == "alarms":
            continue  # it is there to have a NaN
        torch.manual_seed(0)
        kept.append(program(lambda model, optimizer, *_a, name=program.__name__, **_k:
                            kept.append(watch(name, model, optimizer))))
        check(f"no_alarm_{program.__name__}", not breaches(program.__name__), breaches(program.__name__))
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
