# SPDX-License-Identifier: MIT
"""Bugs of optimizers that people write: decay, corrections of moments, and rates."""
import torch

from catalogue import bug
from small import Decoder, cross_entropy, numbers, settle

STEP = r"^[A-Za-z]+\.(?:{})\.\d+\.forward @ optimizer$"


class Own(torch.optim.Optimizer):
    """Adam whose single steps are methods."""

    def __init__(self, params, lr=1e-3, decay=0.1, betas=(0.9, 0.99), eps=1e-8, **more):
        super().__init__(params, {"lr": lr, "decay": decay, "betas": betas, "eps": eps, **more})

    def moments(self, p, slope, group):
        state, (b1, b2) = self.state[p], group["betas"]
        if not state:
            state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
        state["t"] += 1
        state["m"].mul_(b1).add_(slope, alpha=1 - b1)
        state["v"].mul_(b2).addcmul_(slope, slope, value=1 - b2)
        return state["m"], state["v"], state["t"]

    def direction(self, m, v, t, group):
        b1, b2 = group["betas"]
        return (m / (1 - b1 ** t)) / ((v / (1 - b2 ** t)).sqrt() + group["eps"])

    def update(self, p, group):
        p.mul_(1 - group["lr"] * group["decay"])
        p.add_(self.direction(*self.moments(p, p.grad, group), group), alpha=-group["lr"])

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                self.update(p, group)


def stepped(start, kind, **keys):
    model = settle(Decoder())
    optimizer = kind(model.parameters(), **keys)
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    start(model)
    cross_entropy(model(ids), labels).backward()
    optimizer.step()


@bug("huggingface/transformers#14539", "AdamW decays the weights that it has already moved", STEP.format("mul_|add_"))
def decay_behind_the_step(right, start):
    class Late(Own):
        def update(self, p, group):
            if right:
                return super().update(p, group)
            p.add_(self.direction(*self.moments(p, p.grad, group), group), alpha=-group["lr"])
            p.mul_(1 - group["lr"] * group["decay"])
    stepped(start, Late, decay=1.0, lr=0.01)


@bug("flagos-ai/FlagGems#4989", "a fused Adam decays the weights where the gradient should", STEP.format("mul_|add|add_|addcmul_"))
def adam_decays_as_adamw(right, start):
    class Fused(Own):
        def update(self, p, group):
            if not right:
                return super().update(p, group)
            slope = p.grad.add(p, alpha=group["decay"])
            p.add_(self.direction(*self.moments(p, slope, group), group), alpha=-group["lr"])
    stepped(start, Fused)


@bug("ml-explore/mlx#1640", "moments are not corrected for their beginning at zero", STEP.format(r"__truediv__|div|sqrt|add_|__add__"))
def moments_not_corrected(right, start):
    class Bare(Own):
        def direction(self, m, v, t, group):
            return super().direction(m, v, t, group) if right else m / (v.sqrt() + group["eps"])
    stepped(start, Bare)


@bug("kozistr/pytorch_optimizer#170", "decay takes the rate of the group and not that of the warm-up", STEP.format("mul_"))
def decay_of_the_full_rate(right, start):
    class Warm(Own):
        def update(self, p, group):
            rate = group["lr"] * 0.2
            p.mul_(1 - (rate if right else group["lr"]) * group["decay"])
            p.add_(self.direction(*self.moments(p, p.grad, group), group), alpha=-rate)
    stepped(start, Warm)


@bug("KellerJordan/Muon#65", "weights of experts come to the optimizer without a gradient and are skipped",
     r"^Module\.\S+\.(?:parameters_grad|backward)\S* @ |^[A-Za-z]+\.\w+\.\d+\.(?:backward|forward) @ (?:optimizer|layers\.\d\.mlp\S*)$")
def experts_skipped(right, start):
    class Skips(Own):
        def update(self, p, group):
            if p.grad is not None:
                super().update(p, group)
    model = settle(Decoder())
    if not right:
        for layer in model.layers:
            layer.mlp.up.weight.requires_grad_(False)
    optimizer = Skips(model.parameters())
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    start(model)
    cross_entropy(model(ids), labels).backward()
    optimizer.step()
