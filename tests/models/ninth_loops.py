# SPDX-License-Identifier: MIT
"""How families of the ninth set train: optimizers, schedules, scalers, and what follows a step."""
import math

import torch


class Lars(torch.optim.Optimizer):
    """Rates of layers by the ratio of the norms of weight and gradient."""

    def __init__(self, params, lr=0.2, momentum=0.9, decay=1e-4, trust=0.01):
        super().__init__(params, {"lr": lr, "momentum": momentum, "decay": decay, "trust": trust})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                slope = p.grad
                if p.ndim > 1:
                    slope = slope.add(p, alpha=group["decay"])
                    slope = slope.mul(group["trust"] * torch.norm(p) / (torch.norm(slope) + 1e-9))
                state = self.state[p]
                if "speed" not in state:
                    state["speed"] = torch.zeros_like(p)
                state["speed"].mul_(group["momentum"]).add_(slope)
                p.add_(state["speed"], alpha=-group["lr"])


class Lion(torch.optim.Optimizer):
    """Steps of one size: the sign of a mean of gradients."""

    def __init__(self, params, lr=3e-4, betas=(0.9, 0.99), decay=0.1):
        super().__init__(params, {"lr": lr, "betas": betas, "decay": decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                mean = self.state[p].setdefault("mean", torch.full_like(p, 0.01))
                fast, slow = group["betas"]
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(torch.sign(mean * fast + p.grad * (1 - fast)), alpha=-group["lr"])
                mean.mul_(slow).add_(p.grad, alpha=1 - slow)


def larsed(step):
    step.optimizer = Lars
    step.clip = 0


def lioned(step):
    step.optimizer = Lion


def rms(step):
    step.optimizer = lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-5, foreach=False)
    step.clip = 0.5


def decayed(step):
    step.optimizer = lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=5e-4, foreach=False)
    step.clip = 0


def by_sum(step):
    step.optimizer = lambda p: torch.optim.Adagrad(p, lr=0.05, foreach=False)
    step.clip = 0


def in_groups(step):
    """Matrices decay, vectors do not; two micro batches."""
    step.optimizer = lambda p: torch.optim.AdamW(
        [{"params": [x for x in p if x.ndim > 1], "weight_decay": 0.1}, {"params": [x for x in p if x.ndim < 2], "weight_decay": 0.0}],
        lr=6e-4, betas=(0.9, 0.95), foreach=False)
    step.parts = 2


def scheduled(step):
    """A rate that warms up, and falls by a cosine."""
    def rate(count):
        return (count + 1) / 5 if count < 5 else 0.5 * (1 + math.cos(math.pi * (count - 5) / 20))
    def make(p):
        optimizer = torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05, foreach=False)
        step.schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
        return optimizer
    step.optimizer = make
    step.after_step = lambda model, optimizer: step.schedule.step()


def by_value(step):
    step.clip = 0
    step.optimizer = lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5, foreach=False)
    step.before_step = lambda m: torch.nn.utils.clip_grad_value_(m.parameters(), 0.02)


def scaled(step, scale=256.0):
    """Mixed precision: autocast for the forward pass, and a loss that is scaled."""
    step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    step.before_backward = lambda m, loss: loss * scale
    def undo(m):
        for p in m.parameters():
            if p.grad is not None:
                p.grad.mul_(1.0 / scale)
    step.before_step = undo
    step.optimizer = lambda p: torch.optim.SGD(p, lr=0.02, momentum=0.9, weight_decay=1e-4, foreach=False)


def followed(step, share=0.99):
    """The teacher follows the student after each step."""
    def follow(model, optimizer):
        with torch.no_grad():
            for slow, fast in zip(model.teacher.parameters(), model.student.parameters()):
                slow.mul_(share).add_(fast, alpha=1 - share)
    step.after_step = follow


def looped(family, loop):
    family.loop = loop
    return family
