# SPDX-License-Identifier: MIT
"""Bugs of mixtures of experts: what the router's auxiliary loss counts."""
import torch
from torch import nn
import torch.nn.functional as F

from catalogue import bug, either, outside, within
from small import MLP, Decoder, adam, cross_entropy, numbers, settle

EXPERTS, TOP = 4, 2
COUNTS = ("mean|sum|one_hot|max|amax|topk|mul|__mul__|div|__truediv__|bincount|scatter|scatter_|float|"
          "flatten|__getitem__|masked_select|softmax|sigmoid|add|__add__|zeros_like|cumsum|__le__")


class Router(nn.Module):
    def __init__(self, dim, bias=None):
        super().__init__()
        self.gate = nn.Linear(dim, EXPERTS, bias=False)
        self.bias = bias

    def forward(self, x):
        return self.gate(x)


class MoE(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.router = Router(dim)
        self.experts = nn.ModuleList(MLP(dim) for _ in range(EXPERTS))
        self.logits = None

    def forward(self, x):
        self.logits = self.router(x)
        weight, at = self.logits.softmax(-1).topk(TOP, -1)
        chosen = F.one_hot(at, EXPERTS).to(x.dtype).mul(weight[..., None]).sum(-2)
        return sum(chosen[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))


def map_of(scores):
    return F.one_hot(scores.topk(TOP, -1).indices, EXPERTS).float()


def step(start, aux, coefficient=0.1):
    """aux(logits [tokens, experts] of each layer, padding [tokens]) gives the auxiliary loss."""
    model = settle(Decoder(mlp=MoE))
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    padding = torch.ones(2, 12)
    padding[1, 6:] = 0
    optimizer = adam(model)
    start(model)
    loss = cross_entropy(model(ids), labels)
    logits = [layer.mlp.logits.flatten(0, 1) for layer in model.layers]
    extra = aux(logits, padding.flatten())
    (loss if extra is None else loss + coefficient * extra).backward()
    optimizer.step()


@bug("huggingface/transformers#28255", "the share of an expert is a mean over the choices of a token as well",
     outside(COUNTS))
def share_of_the_wrong_axis(right, start):
    def aux(logits, padding):
        joined = torch.cat(logits)
        scores = joined.softmax(-1)
        chosen = map_of(scores)
        if right:
            tokens, prob = chosen.mean(0), scores.mean(0)
            return (tokens * prob[None]).sum() * EXPERTS
        tokens, prob = chosen.amax(-2).mean(0), scores.mean(0)
        return (tokens * prob).mean() * EXPERTS ** 2
    step(start, aux)


@bug("huggingface/transformers#28517", "padding counts in the auxiliary loss", outside(COUNTS + "|cat"))
def padding_counts(right, start):
    def aux(logits, padding):
        joined = torch.cat(logits)
        scores = joined.softmax(-1)
        weight = torch.cat([padding] * len(logits)) if right else torch.ones(len(joined))
        share = (map_of(scores).sum(-2) * weight[:, None]).sum(0) / weight.sum()
        prob = (scores * weight[:, None]).sum(0) / weight.sum()
        return (share * prob).sum() * EXPERTS
    step(start, aux)


@bug("NVIDIA/Megatron-LM#2767", "experts of the auxiliary loss are chosen without their bias",
     outside(COUNTS))
def bias_left_out(right, start):
    bias = torch.tensor([0.3, -0.2, 0.1, -0.1])
    def aux(logits, padding):
        scores = torch.cat(logits).sigmoid()
        share = map_of(scores + bias if right else scores).sum(-2).mean(0)
        scores = scores / scores.sum(-1, keepdim=True)
        return (share * scores.mean(0)).sum() * EXPERTS
    step(start, aux)


@bug("NVIDIA/Megatron-LM#7213", "counts of all micro batches are divided by the tokens of this one",
     outside(COUNTS))
def counts_of_other_batches(right, start):
    def aux(logits, padding):
        total, tokens = torch.zeros(EXPERTS), 0.0
        for layer, valid in zip(logits, (padding, torch.ones_like(padding))):
            scores = layer.softmax(-1)
            total = total + (map_of(scores).sum(-2) * valid[:, None]).sum(0)
            tokens += valid.sum().item()
            seen = torch.tensor(tokens if right else 2 * valid.sum().item())
        share = total / seen
        return (share * scores.mean(0)).sum() * EXPERTS
    step(start, aux)


@bug("NVIDIA/Megatron-LM#1513", "tokens above an expert's capacity are not counted", outside(COUNTS))
def capacity_before_the_count(right, start):
    def aux(logits, padding):
        scores = torch.cat(logits).softmax(-1)
        chosen = map_of(scores).sum(-2)
        if not right:
            chosen = chosen * (chosen.cumsum(0) <= 8)
        return (chosen.mean(0) * scores.mean(0)).sum() * EXPERTS
    step(start, aux)


@bug("huggingface/transformers#44242", "no auxiliary loss is added unless router logits are returned",
     either(outside(COUNTS + "|cat"), outside("add|__add__|mul|__rmul__|__mul__", r"(?:forward|backward)"),
            within("layers.1.mlp.router", direction=r"(?:forward|backward)")))
def aux_not_added(right, start):
    def aux(logits, padding):
        if not right:
            return None
        scores = torch.cat(logits).softmax(-1)
        return (map_of(scores).sum(-2).mean(0) * scores.mean(0)).sum() * EXPERTS
    step(start, aux)
