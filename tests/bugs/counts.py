# SPDX-License-Identifier: MIT
"""Bugs of counts: which tokens a loss sums over, and what it is divided by."""
import torch
from torch import nn
import torch.nn.functional as F

from catalogue import bug, either, outside
from experts import COUNTS, EXPERTS, MoE, map_of, step
from small import Decoder, adam, cross_entropy, numbers, settle

ANY = r"(?:forward|backward|parameters_grad)"
SCALE = r"mul|__r?mul__|div|__r?truediv__|div_|mul_|sum|mean|clamp|clamp_min|max|maximum"


def batch():
    """Ids, labels and a mask in which the second text is short."""
    ids, labels, mask = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8), torch.ones(2, 12)
    mask[1, 5:] = 0
    return ids, labels, mask


def masked_sum(logits, labels, mask):
    each = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none")
    return (each * mask.flatten()).sum()


def summed_step(start, loss, model=None, divide=lambda model: None):
    """One step whose loss(model) is a sum; divide(model) makes means of the gradients."""
    model = settle(model or Decoder())
    optimizer = adam(model)
    start(model)
    loss(model).backward()
    divide(model)
    optimizer.step()


def divide_by(tokens):
    def divide(model):
        for p in model.parameters():
            p.grad.div_(tokens)
    return divide


@bug("NVIDIA/Megatron-LM#5798", "the loss of a sequence's experts is multiplied by the length of one text for that of all",
     outside(SCALE, ANY))
def count_of_one_text(right, start):
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    def loss(model):
        main = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum")
        extra = 0.0
        for layer in model.layers:
            scores = layer.mlp.logits.softmax(-1)
            extra = extra + (map_of(scores).sum(-2).mean(1) * scores.mean(1)).sum(-1).mean() * EXPERTS
        tokens = ids.shape[1] * (ids.shape[0] if right else 1)
        return main + 0.1 * (extra * tokens)
    summed_step(start, loss, Decoder(mlp=MoE), divide_by(24))


class NextButOne(Decoder):
    """Also predicts the token behind the next one."""

    def __init__(self):
        super().__init__()
        self.later = nn.Linear(32, 32, bias=False)

    def both(self, ids):
        kept = {}
        hook = self.norm.register_forward_hook(lambda m, a, out: kept.update(x=out))
        logits = self(ids)
        hook.remove()
        return logits, self.head(self.later(kept["x"]))


def shifted(labels, mask):
    later = F.pad(labels[:, 1:], (0, 1)), F.pad(mask[:, 1:], (0, 1))
    return later


@bug("NVIDIA/Megatron-LM#3159", "gradients of the token after next are divided by the count of the next tokens", outside(SCALE, ANY))
def later_tokens_divided(right, start):
    ids, labels, mask = batch()
    def loss(model):
        logits, later = model.both(ids)
        labels2, mask2 = shifted(labels, mask)
        extra = masked_sum(later, labels2, mask2)
        if right:
            extra = extra * (mask.sum() / mask2.sum())
        return masked_sum(logits, labels, mask) + 0.3 * extra
    summed_step(start, loss, NextButOne(), divide_by(17.0))


@bug("NVIDIA-NeMo/Megatron-Bridge#6103", "the loss of the token after next gets no mask and counts padding",
     outside(SCALE + "|ones_like|cross_entropy|flatten", ANY))
def later_tokens_of_padding(right, start):
    ids, labels, mask = batch()
    def loss(model):
        logits, later = model.both(ids)
        labels2, mask2 = shifted(labels, mask)
        if not right:
            mask2 = torch.ones_like(mask2)
        return masked_sum(logits, labels, mask) / mask.sum() + 0.3 * masked_sum(later, labels2, mask2) / mask2.sum()
    summed_step(start, loss, NextButOne())


@bug("NVIDIA/Megatron-LM#5011", "a mask of padding that was rolled is rolled again", outside(COUNTS + "|roll|cat|stack", ANY))
def mask_rolled_twice(right, start):
    def aux(logits, padding):
        valid = padding.view(2, 12).roll(-1, 1)
        if not right:
            valid = valid.roll(-1, 1)
        scores = logits[1].softmax(-1) * valid.flatten()[:, None]
        return EXPERTS * ((map_of(scores).sum(-2) * valid.flatten()[:, None]).mean(0) * scores.mean(0)).sum()
    step(start, aux, 1.0)


@bug("NVIDIA/Megatron-LM#7081", "counts of tokens are kept in bfloat16, which rounds them",
     outside(COUNTS + "|to|add_|sub|__sub__|__r?sub__|sign|bfloat16|type", ANY))
def counts_in_bf16(right, start):
    def aux(logits, padding):
        kind = torch.float32 if right else torch.bfloat16
        counts = torch.tensor([641.0, 643.0, 642.0, 646.0]).to(kind)
        scores = torch.cat(logits).softmax(-1)
        counts = counts + map_of(scores).sum(-2).sum(0).to(kind)
        bias = 0.05 * torch.sign(counts.float().mean() - counts.float())
        return ((scores + bias) ** 2).mean()
    step(start, aux, 1.0)


@bug("pytorch/torchtitan#4194", "the loss is divided by its tokens after backward, for the log alone",
     either(outside(SCALE, ANY), outside("cross_entropy", "backward")))
def divided_for_the_log(right, start):
    ids, labels, _ = batch()
    model = settle(Decoder())
    optimizer = adam(model)
    start(model)
    loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum")
    if right:
        loss = loss / 24
    loss.backward()
    if not right:
        loss = loss.detach() / 24
    optimizer.step()


@bug("radixark/miles#2796", "a text that is masked as a whole counts as one token", outside(SCALE + "|add|__add__", ANY))
def one_token_for_none(right, start):
    ids, labels, mask = batch()
    mask[1] = 0
    def loss(model):
        tokens = mask.sum(1)
        if not right:
            tokens = tokens.clamp_min(1)
        return masked_sum(model(ids), labels, mask) / tokens.sum()
    summed_step(start, loss)


@bug("ISEEKYAN/Megatron-LM#223", "shares of experts are those chosen in groups, their scores those of a free choice",
     outside(COUNTS + "|where|masked_fill|__lt__|__ge__|gather", ANY))
def grouped_and_free(right, start):
    def aux(logits, padding):
        scores = torch.cat(logits).sigmoid()
        best = scores.view(-1, 2, 2).amax(-1)
        group = (best == best.amax(-1, keepdim=True)).float().repeat_interleave(2, -1)
        free = map_of(scores).sum(-2)
        chosen = free if right else map_of(scores * group + group).sum(-2)
        return EXPERTS * (chosen.mean(0) * (scores * free).mean(0)).sum()
    step(start, aux, 1.0)


@bug("neubig/nn4nlp-code#24", "gradients of the evaluation are added to those of the next step",
     r"^(?:Module\.\S+\.(?:parameters_grad|backward)\S*|[A-Za-z]+\.\w+\.\d+\.backward) @ ")
def evaluation_adds_gradients(right, start):
    model = settle(Decoder())
    optimizer = adam(model)
    ids, labels, _ = batch()
    start(model)
    tried = cross_entropy(model(labels), ids)
    if not right:
        tried.backward()
    cross_entropy(model(ids), labels).backward()
    optimizer.step()


@bug("huggingface/trl#6369", "tokens of texts that were cut off count in the denominator alone", outside(SCALE + "|flatten", ANY))
def cut_texts_counted(right, start):
    ids, labels, mask = batch()
    def loss(model):
        kept = mask * torch.tensor([[1.0], [0.0]])
        return masked_sum(model(ids), labels, kept) / (kept if right else mask).sum()
    summed_step(start, loss)
