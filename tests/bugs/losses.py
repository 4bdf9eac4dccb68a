# SPDX-License-Identifier: MIT
"""Bugs of losses, of micro batches, and of what happens between backward and the step."""
import torch
from torch import nn
import torch.nn.functional as F

from catalogue import bug, either, outside, within
from small import Decoder, adam, cross_entropy, numbers, settle, train

ANY = r"(?:forward|backward|parameters_grad)"
CLIP = "norm|vector_norm|linalg_vector_norm|stack|clamp|mul_|mul|div|add|__truediv__|__mul__|clip_coef\\w*"


def batches():
    """Two micro batches, one of which has more padding."""
    ids, labels = numbers(4, 12, high=64), numbers(4, 12, high=64, seed=8)
    labels[2:, 3:] = -100
    return [(ids[:2], labels[:2]), (ids[2:], labels[2:])]


def accumulate(start, loss, model=None, before_step=lambda model: None):
    model = settle(model or Decoder())
    optimizer = adam(model)
    start(model)
    for ids, labels in batches():
        loss(model(ids), labels).backward()
    before_step(model)
    optimizer.step()


@bug("huggingface/transformers#34191", "each micro batch counts alike, whatever its number of tokens",
     outside("cross_entropy|div|__truediv__|sum|mean"))
def mean_of_means(right, start):
    tokens = sum((labels != -100).sum().item() for _, labels in batches())
    def loss(logits, labels):
        flat = logits.flatten(0, 1), labels.flatten()
        if right:
            return F.cross_entropy(*flat, reduction="sum") / tokens
        return F.cross_entropy(*flat) / 2
    accumulate(start, loss)


@bug("huggingface/transformers#37197", "Gemma 3 does not divide its loss by the number of micro batches",
     either(outside("div|__truediv__", ANY), outside("cross_entropy", "backward")))
def loss_grows_with_accumulation(right, start):
    accumulate(start, lambda logits, labels: cross_entropy(logits, labels) / 2 if right
               else cross_entropy(logits, labels))


@bug("deepspeedai/DeepSpeed#7773", "gradients of micro batches are summed and never divided",
     outside("div_|_foreach_div_|mul_|__itruediv__", ANY))
def gradients_summed(right, start):
    def average(model):
        if right:
            for p in model.parameters():
                p.grad.div_(2)
    accumulate(start, cross_entropy, before_step=average)


@bug("huggingface/diffusers#5654", "min-SNR weights of v-prediction add one to both sides",
     outside("add|__add__|minimum|clamp|min|where|div|__truediv__"))
def min_snr(right, start):
    model = settle(nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)))
    x, noise = numbers(8, 16), numbers(8, 16, seed=9)
    signal = torch.linspace(0.2, 0.99, 8)[:, None]
    optimizer = adam(model)
    start(model)
    pred = model(signal.sqrt() * x + (1 - signal).sqrt() * noise)
    target = signal.sqrt() * noise - (1 - signal).sqrt() * x
    snr = (signal / (1 - signal)).squeeze(1)
    if right:
        weight = torch.clamp(snr, max=5.0) / (snr + 1)
    else:
        snr = snr + 1
        weight = torch.clamp(snr, max=5.0) / snr
    (F.mse_loss(pred, target, reduction="none").mean(1) * weight).mean().backward()
    optimizer.step()


class UnitLogSoftmax(torch.autograd.Function):
    """log_softmax whose backward passes gradients on unchanged."""

    @staticmethod
    def forward(ctx, x):
        return torch.log_softmax(x, -1)

    @staticmethod
    def backward(ctx, grad):
        return grad


@bug("pytorch/pytorch#190746", "log_softmax within loss_parallel passes gradients on unchanged",
     either(within("scores", direction="backward"), outside("log_softmax|apply|UnitLogSoftmax", ANY)))
def log_softmax_identity(right, start):
    class Scores(nn.Module):
        def forward(self, x):
            return x.log_softmax(-1) if right else UnitLogSoftmax.apply(x)

    class Model(Decoder):
        def __init__(self):
            super().__init__()
            self.scores = Scores()

        def forward(self, ids, positions=None, context=None):
            return self.scores(super().forward(ids))
    train(Model(), start, lambda scores, labels: -(scores * torch.softmax(numbers(2, 12, 64), -1)).sum(-1).mean())


def scaled_step(start, between):
    """One step with a loss scale: between(model, scale) unscales, clips and decays."""
    model, scale = settle(Decoder()), 1024.0
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, foreach=False)
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    start(model)
    (cross_entropy(model(ids), labels) * scale).backward()
    between(model, scale)
    optimizer.step()


def unscale(model, scale):
    for p in model.parameters():
        p.grad.div_(scale)


@bug("TorchSSL/TorchSSL#59", "gradients are clipped before they are unscaled",
     outside(CLIP + "|div_|clip_grad_norm_", ANY))
def clip_before_unscale(right, start):
    def between(model, scale):
        steps = [lambda: unscale(model, scale),
                 lambda: nn.utils.clip_grad_norm_(model.parameters(), 1.0, foreach=False)]
        for one in steps if right else steps[::-1]:
            one()
    scaled_step(start, between)


@bug("chainer/chainer#7335", "weight decay is added before gradients are unscaled",
     outside("add_|div_", ANY))
def decay_before_unscale(right, start):
    def decay(model):
        with torch.no_grad():
            for p in model.parameters():
                p.grad.add_(p, alpha=0.01)
    def between(model, scale):
        steps = [lambda: unscale(model, scale), lambda: decay(model)]
        for one in steps if right else steps[::-1]:
            one()
    scaled_step(start, between)


def plain_step(start, clip_at):
    model = settle(Decoder())
    optimizer = adam(model)
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    start(model)
    loss = cross_entropy(model(ids), labels)
    def clip():
        nn.utils.clip_grad_norm_(model.parameters(), 0.1, foreach=False)
    if clip_at == "before":
        clip()
    loss.backward()
    if clip_at == "after":
        clip()
    elif clip_at == "norm alone":
        norm = torch.stack([p.grad.norm() for p in model.parameters()]).norm()
        _ = 0.1 / (norm + 1e-6)
    optimizer.step()


@bug("yandex-research/tabm#20", "gradients are clipped before backward, so that it has no effect",
     outside(CLIP + "|clip_grad_norm_", ANY))
def clip_before_backward(right, start):
    plain_step(start, "after" if right else "before")


@bug("paiml/aprender#2112", "the coefficient of clipping is computed and not applied",
     outside(CLIP + "|clip_grad_norm_", ANY))
def clip_not_applied(right, start):
    plain_step(start, "after" if right else "norm alone")
