# SPDX-License-Identifier: MIT
"""Resumed runs, faulty and clean, and what `msprobe check --resume` says of them.

    resume_runs.py MSPROBE [--show] [--seed N] [--each N]

Thresholds were set on seed 0; other seeds draw other trainings, and are what counts.

Each run is a small program: it trains, saves, and a second process' worth of state is built anew, loaded and
saved at once or after more steps. A faulty one leaves out or breaks one state on loading. Two ways to ask:

    same    the run that went on beside the resumed one, at the same step: every state has to agree
    later   the checkpoint at which the run stopped beside a later one of the resumed run
"""
import copy
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile

import torch


def fail(why):
    print(f"FAIL resume: {why}")
    sys.exit(1)


class Net(torch.nn.Module):
    def __init__(self, kind):
        super().__init__()
        wide = 24
        self.first = torch.nn.Linear(8, wide)
        self.blocks = torch.nn.ModuleList(torch.nn.Linear(wide, wide) for _ in range(3))
        self.norm = torch.nn.BatchNorm1d(wide) if kind == "batch" else torch.nn.LayerNorm(wide)
        self.last = torch.nn.Linear(wide, 4)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + self.dropout(torch.relu(block(x)))
        return self.last(self.norm(x))


OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, lr=1e-2, betas=(0.9, 0.99)),
    "amsgrad": lambda p: torch.optim.Adam(p, lr=1e-2, amsgrad=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3, momentum=0.5),
}
SCHEDULERS = {
    "step": lambda o: torch.optim.lr_scheduler.StepLR(o, 3, 0.5),
    "cosine": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50),
    "lambda": lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda s: min(1.0, (s + 1) / 10)),
}


class Run:
    """A training: all of its state."""

    def __init__(self, kind):
        torch.manual_seed(1)
        random.seed(1)
        self.kind = kind
        self.net = Net(kind["net"])
        self.optimizer = OPTIMIZERS[kind["optimizer"]](self.net.parameters())
        self.scheduler = SCHEDULERS[kind["scheduler"]](self.optimizer)
        self.ema = copy.deepcopy(self.net.state_dict()) if kind["ema"] else None
        self.scaler = {"scale": 65536.0, "growth_factor": 2.0, "_growth_tracker": 0}
        self.data = torch.Generator().manual_seed(7)
        self.sampler = {"epoch": 0, "position": 0, "seed": 11, "order": list(range(64))}
        self.iteration = 0

    def step(self):
        x = torch.randn(16, 8, generator=self.data) + random.random() * 0.01
        loss = self.net(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()
        self.iteration += 1
        self.scaler["_growth_tracker"] += 1
        self.sampler["position"] += 16
        if self.sampler["position"] >= 64:
            self.sampler.update(position=0, epoch=self.sampler["epoch"] + 1)
            random.Random(self.sampler["seed"] + self.sampler["epoch"]).shuffle(self.sampler["order"])
        if self.ema is not None:
            for k, v in self.net.state_dict().items():
                self.ema[k] = v * 0.1 + self.ema[k] * 0.9 if v.is_floating_point() else v.clone()

    def state(self):
        out = {"model": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "lr_scheduler": self.scheduler.state_dict(),
               "scaler": self.scaler, "rng_state": {"torch": torch.get_rng_state(), "python": random.getstate(), "data_generator": self.data.get_state()},
               "sampler": self.sampler, "iteration": self.iteration, "consumed_samples": self.iteration * 16,
               "args": {"lr": 0.01, "save_dir": f"/x/{id(self)}"}, "time": random.Random().random()}
        if self.ema is not None:
            out["ema"] = self.ema
        # LambdaLR keeps a function out of its state; a copy stays what it is while the run goes on.
        return copy.deepcopy(out)

    def load(self, state):
        state = copy.deepcopy(state)
        self.net.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["lr_scheduler"])
        self.scaler = state["scaler"]
        torch.set_rng_state(state["rng_state"]["torch"])
        random.setstate(state["rng_state"]["python"])
        self.data.set_state(state["rng_state"]["data_generator"])
        self.sampler, self.iteration, self.ema = state["sampler"], state["iteration"], state.get("ema")


# ---- faults: what goes wrong on loading -----------------------------------------------------------------------


def moments(run):
    return [s for s in run.optimizer.state.values()]


def drop_moments(run):
    run.optimizer.state.clear()


def zero_moments(run):
    for s in moments(run):
        for k, v in s.items():
            if torch.is_tensor(v) and v.dim() > 0:
                v.zero_()


def zero_second(run):
    for s in moments(run):
        s["exp_avg_sq"].zero_()


def restart_optimizer_steps(run):
    for s in moments(run):
        s["step"] = s["step"] * 0


def swap_moments(run):
    a, b = (run.optimizer.state[run.net.blocks[i].weight] for i in (0, 1))
    for k in a:
        if a[k].dim() > 0:
            a[k], b[k] = b[k], a[k]


def cast_moments(run):
    for s in moments(run):
        for k, v in s.items():
            if v.dim() > 0:
                s[k] = v.bfloat16().float()


def keep_half_moments(run):
    for s in moments(run):
        for k, v in s.items():
            if v.dim() > 0:
                s[k] = v.half()


def cast_weights(run, dtype=torch.bfloat16):
    with torch.no_grad():
        for p in run.net.parameters():
            p.copy_(p.to(dtype).float())


def swap_weights(run):
    with torch.no_grad():
        a, b = run.net.blocks[0].weight, run.net.blocks[1].weight
        c = a.clone()
        a.copy_(b)
        b.copy_(c)


def forget_layer(run):
    with torch.random.fork_rng():
        run.net.blocks[1].reset_parameters()


def forget_last(run):
    with torch.random.fork_rng():
        run.net.last.reset_parameters()


def set_group(name, value):
    def fault(run):
        for g in run.optimizer.param_groups:
            g[name] = value
    return fault


def forget_buffers(run):
    run.net.norm.running_mean.zero_()
    run.net.norm.running_var.fill_(1)


def restart_batches(run):
    run.net.norm.num_batches_tracked.zero_()


def scheduler_behind(run):
    run.scheduler.last_epoch -= 1
    run.scheduler._step_count -= 1


def scheduler_ahead(run):
    run.optimizer.step = run.optimizer.step
    run.scheduler.last_epoch += 1
    run.scheduler._step_count += 1


def scheduler_anew(run):
    run.scheduler = SCHEDULERS[run.kind["scheduler"]](run.optimizer)


def other_schedule(run):
    run.scheduler.base_lrs = [v * 2 for v in run.scheduler.base_lrs]


def torch_rng(run):
    torch.manual_seed(99)


def python_rng(run):
    random.seed(99)


def data_rng(run):
    run.data.manual_seed(7)


def sampler_anew(run):
    run.sampler.update(epoch=0, position=0, order=list(range(64)))


def sampler_seed(run):
    run.sampler["seed"] = 12


def sampler_position(run):
    run.sampler["position"] = (run.sampler["position"] + 16) % 64


def order_anew(run):
    run.sampler["order"] = list(range(64))


def ema_lost(run):
    run.ema = None


def ema_from_weights(run):
    run.ema = copy.deepcopy(run.net.state_dict())


def scaler_anew(run):
    run.scaler = {"scale": 65536.0, "growth_factor": 2.0, "_growth_tracker": 0}


def scaler_lost(run):
    run.scaler = {}


def scale_halved(run):
    run.scaler["scale"] /= 2


def iteration_anew(run):
    run.iteration = 0


def iteration_ahead(run):
    run.iteration += 1


#   name: fault, role that has to be named first, ways to ask, what the run needs
ADAM, BATCH, EMA = {"optimizer": ("adamw", "adam", "amsgrad")}, {"net": ("batch",)}, {"ema": (True,)}
FAULTS = {
    "moments dropped": (drop_moments, "optimizer", ("at once", "same", "later"), ADAM),
    "momentum dropped": (drop_moments, "optimizer", ("at once",), {"optimizer": ("sgd",)}),
    "moments zeroed": (zero_moments, "optimizer", ("at once", "same", "later"), ADAM),
    "momentum zeroed": (zero_moments, "optimizer", ("at once", "same"), {"optimizer": ("sgd",)}),
    "second moments zeroed": (zero_second, "optimizer", ("at once", "same", "later"), ADAM),
    "optimizer steps from 0": (restart_optimizer_steps, "optimizer", ("at once", "same", "later"), ADAM),
    "moments of two layers exchanged": (swap_moments, "optimizer", ("at once", "same"), ADAM),
    "moments through bfloat16": (cast_moments, "optimizer", ("at once",), ADAM),
    "moments left in half precision": (keep_half_moments, "optimizer", ("at once",), ADAM),
    "weights through bfloat16": (cast_weights, "weights", ("at once", "same"), {}),
    "weights through float16": (lambda r: cast_weights(r, torch.float16), "weights", ("at once",), {}),
    "two layers exchanged": (swap_weights, "weights", ("at once", "same", "later"), {}),
    "a layer not loaded": (forget_layer, "weights", ("at once", "same"), {}),
    "the head not loaded": (forget_last, "weights", ("at once", "same"), {}),
    "statistics of batch norm lost": (forget_buffers, "weights", ("at once",), BATCH),
    "batches counted anew": (restart_batches, "weights", ("at once",), BATCH),
    "learning rate of the script": (set_group("lr", 0.5), "optimizer", ("at once",), {}),
    "weight decay of the script": (set_group("weight_decay", 0.3), "optimizer", ("at once", "same"), {}),
    "betas of the script": (set_group("betas", (0.8, 0.9)), "optimizer", ("at once", "same"), ADAM),
    "scheduler one behind": (scheduler_behind, "scheduler", ("at once", "same", "later"), {}),
    "scheduler one ahead": (scheduler_ahead, "scheduler", ("at once", "same", "later"), {}),
    "scheduler anew": (scheduler_anew, "scheduler", ("at once", "same", "later"), {}),
    "another schedule": (other_schedule, "scheduler", ("at once", "same"), {}),
    "torch's random state": (torch_rng, "random state", ("at once", "same"), {}),
    "Python's random state": (python_rng, "random state", ("at once", "same"), {}),
    "the loader's random state": (data_rng, "random state", ("at once", "same"), {}),
    "data from the beginning": (sampler_anew, "data order", ("at once", "same"), {}),
    "another seed of the sampler": (sampler_seed, "data order", ("at once", "same"), {}),
    "a batch skipped": (sampler_position, "data order", ("at once", "same"), {}),
    "another order of samples": (order_anew, "data order", ("at once",), {}),
    "EMA lost": (ema_lost, "EMA", ("at once", "same", "later"), EMA),
    "EMA from the weights": (ema_from_weights, "EMA", ("at once",), EMA),
    "scaler anew": (scaler_anew, "loss scaler", ("at once", "same"), {}),
    "scaler lost": (scaler_lost, "loss scaler", ("at once",), {}),
    "loss scale halved": (scale_halved, "loss scaler", ("at once", "same"), {}),
    "iterations from 0": (iteration_anew, "data order", ("at once", "same"), {}),
    "an iteration skipped": (iteration_ahead, "data order", ("at once",), {}),
}

STOP, MORE = 9, 4


def train(kind, fault, way, folder):
    """Saves the two checkpoints that are compared; returns their paths."""
    run = Run(kind)
    for _ in range(STOP):
        run.step()
    stopped = run.state()
    if way == "same":
        for _ in range(MORE):
            run.step()
    first = stopped if way in ("at once", "later") else run.state()
    resumed = Run(kind)
    resumed.load(stopped)
    if fault is not None:
        fault(resumed)
    for _ in range(0 if way == "at once" else MORE):
        resumed.step()
    paths = [os.path.join(folder, n) for n in ("a.pt", "b.pt")]
    for path, state in zip(paths, (first, resumed.state())):
        torch.save(state, path)
    return paths


def kinds(need, count, seed):
    every = [dict(zip(("net", "optimizer", "scheduler", "ema"), c))
             for c in itertools.product(("layer", "batch"), OPTIMIZERS, SCHEDULERS, (True, False))]
    fit = [k for k in every if all(k[n] in v for n, v in need.items())]
    return random.Random(seed).sample(fit, min(count, len(fit)))


def ask(msprobe, paths):
    done = subprocess.run([msprobe, "check", "--resume", *paths, "--format", "json"], capture_output=True, text=True)
    if done.returncode != 0:
        fail(done.stderr)
    return json.loads(done.stdout)


def main(msprobe, show, seed, each):
    torch.set_num_threads(1)
    asked = missed = 0
    with tempfile.TemporaryDirectory() as at:
        for number, (name, (fault, role, ways, need)) in enumerate(FAULTS.items()):
            for way in ways:
                for kind in kinds(need, each, number + 1000 * seed):
                    asked += 1
                    said = ask(msprobe, train(kind, fault, way, at))
                    first = said["findings"][0] if said["findings"] else {"role": "nothing", "text": ""}
                    right = first["role"] == role
                    missed += not right
                    if show or not right:
                        print(f"{'ok  ' if right else 'MISS'} {name}, {way}, {kind}: {first['text'] or 'silent'}")
        clean = alarms = 0
        for way in ("at once", "same", "later"):
            for kind in kinds({}, 16 * each, f"{way}{seed or ''}"):
                clean += 1
                said = ask(msprobe, train(kind, None, way, at))
                if said["findings"]:
                    alarms += 1
                    print(f"ALARM clean, {way}, {kind}: {said['findings'][0]['text']}")
    print(f"{'ok' if missed == alarms == 0 else 'FAIL'} {len(FAULTS)} faults in {asked} runs, {asked - missed} named; "
          f"{clean} clean runs, {alarms} accused")
    return missed + alarms != 0


if __name__ == "__main__":
    given = {n: int(sys.argv[sys.argv.index(n) + 1]) if n in sys.argv else v for n, v in (("--seed", 0), ("--each", 1))}
    sys.exit(main(os.path.abspath(sys.argv[1]), "--show" in sys.argv, given["--seed"], given["--each"]))
