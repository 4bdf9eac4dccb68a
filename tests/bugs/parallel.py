# SPDX-License-Identifier: MIT
"""Bugs of several ranks, over gloo: what is reduced, over whom, and what is divided by whose size."""
import torch
from torch import nn
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import torch.nn.functional as F

from catalogue import bug, either, outside, within
from small import Decoder, adam, cross_entropy, numbers, settle

ANY = r"(?:forward|backward|parameters_grad)"
REDUCE = "all_reduce|div_|mul_|_foreach_div_|all_gather|reduce_scatter|broadcast"
# A gradient that is not reduced is first seen where gradients are complete: at the parameters.
GRADIENTS = r"^Module\.\S+\.parameters_grad @ "


def data(rank):
    return numbers(2, 12, high=64, seed=20 + rank), numbers(2, 12, high=64, seed=40 + rank)


def reduce(x):
    dist.all_reduce(x)
    return x


# ---- data parallel ---------------------------------------------------------------------

@bug("jingyaogong/minimind#853", "the loss goes through ddp.module, and no gradient is reduced",
     either(GRADIENTS, r"DistributedDataParallel", outside("\\w+_", ANY)), ranks=2)
def ddp_bypassed(right, start):
    model = DistributedDataParallel(settle(Decoder()))
    optimizer = adam(model)
    ids, labels = data(dist.get_rank())
    start(model)
    cross_entropy(model(ids) if right else model.module(ids), labels).backward()
    optimizer.step()


@bug("deepspeedai/DeepSpeed#8382", "on CPU no tensor matches a bucket, and the all-reduce is left out",
     outside(REDUCE, ANY), ranks=2)
def all_reduce_left_out(right, start):
    model = settle(Decoder())
    optimizer = adam(model)
    ids, labels = data(dist.get_rank())
    start(model)
    cross_entropy(model(ids), labels).backward()
    kind = "torch.FloatTensor" if right else "torch.cpu.FloatTensor"
    for p in model.parameters():
        if p.grad.type() == kind:
            reduce(p.grad).div_(2)
    optimizer.step()


@bug("sgl-project/SpecForge#663", "each rank clips by the norm of its own shard",
     outside(REDUCE + "|mul_|sqrt|clamp|__truediv__|norm|sum", ANY), ranks=2)
def clip_of_a_shard(right, start):
    rank, model = dist.get_rank(), settle(Decoder())
    optimizer = adam(model)
    ids, labels = data(0)
    start(model)
    cross_entropy(model(ids), labels).backward()
    with torch.no_grad():
        shards = [p.grad.flatten().chunk(2)[rank] for p in model.parameters()]
        square = torch.stack([s.pow(2).sum() for s in shards]).sum()
        if right:
            square = reduce(square)
        scale = (0.1 / (square.sqrt() + 1e-6)).clamp(max=1.0)
        for p in model.parameters():
            p.grad.mul_(scale)
    optimizer.step()


# ---- tensor parallel: a vocabulary of which each rank has one half -----------------------

class Sum(torch.autograd.Function):
    """All-reduce forward, identity backward: what follows is equal on all ranks."""

    @staticmethod
    def forward(ctx, x):
        return reduce(x.clone())

    @staticmethod
    def backward(ctx, grad):
        return grad


class Copy(torch.autograd.Function):
    """Identity forward, all-reduce backward: where a parallel region begins."""

    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return reduce(grad.clone())


class VocabLoss(nn.Module):
    """Cross entropy over logits [tokens, half of the vocabulary]."""

    def forward(self, logits, labels, smoothing=0.0, smooth=None):
        half = logits.shape[-1]
        here = (labels >= half * dist.get_rank()) & (labels < half * (dist.get_rank() + 1))
        norm = Sum.apply(logits.exp().sum(-1)).log()
        own = logits.gather(-1, (labels % half)[:, None]).squeeze(-1) * here
        loss = norm - self.join(own)
        if smooth:
            loss = (1 - smoothing) * loss + smoothing * smooth(logits, norm)
        return loss.mean()

    def join(self, own):
        return Sum.apply(own)


class VocabParallel(Decoder):
    def __init__(self, loss=None, **parts):
        super().__init__(**parts)
        self.loss = loss or VocabLoss()

    def forward(self, ids, labels, **more):
        x, mask = self.embed(ids), self.mask(ids.shape[1])
        positions = torch.arange(ids.shape[1]).expand_as(ids)
        for layer in self.layers:
            x = layer(x, mask, positions)
        return self.lose(self.head(Copy.apply(self.norm(x))).flatten(0, 1), labels.flatten(), **more)

    def lose(self, logits, labels, **more):
        return self.loss(logits, labels, **more)


def halve_head(model):
    half = model.head.weight.shape[0] // 2
    model.head.weight = nn.Parameter(model.head.weight.detach().split(half)[dist.get_rank()].clone())


def parallel_step(model, start, **more):
    settle(model)
    halve_head(model)
    optimizer = adam(model)
    ids, labels = data(0)
    start(model)
    model(ids, labels, **more).backward()
    optimizer.step()


@bug("NVIDIA/Megatron-LM#7464", "label smoothing takes a rank's half of the vocabulary for the whole",
     within("loss"), ranks=2)
def smoothing_of_half_a_vocabulary(right, start):
    def smooth(logits, norm):
        if right:
            return norm - Sum.apply(logits.sum(-1)) / (2 * logits.shape[-1])
        return norm - logits.mean(-1)
    parallel_step(VocabParallel(), start, smoothing=0.1, smooth=smooth)


class Gather(torch.autograd.Function):
    """All halves of the vocabulary on every rank."""

    @staticmethod
    def forward(ctx, x):
        parts = [torch.empty_like(x) for _ in range(2)]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts, -1)

    @staticmethod
    def backward(ctx, grad):
        return grad.chunk(2, -1)[dist.get_rank()].contiguous()


@bug("NVIDIA/Megatron-LM#7452", "logits that were gathered go to the loss of parallel ones",
     either(within("loss"), outside("cross_entropy")), ranks=2)
def gathered_twice(right, start):
    class Gathered(VocabParallel):
        def lose(self, logits, labels):
            whole = Gather.apply(logits)
            return F.cross_entropy(whole, labels) if right else self.loss(whole, labels)
    parallel_step(Gathered(), start)


@bug("modelscope/ms-swift#9947", "the log probability is reduced without a gradient",
     either(within("loss", direction=ANY), within("head", direction="backward")), ranks=2)
def reduced_without_gradient(right, start):
    class Loss(VocabLoss):
        def join(self, own):
            if right:
                return Sum.apply(own)
            whole = own.detach().clone()
            reduce(whole)
            return whole
    parallel_step(VocabParallel(Loss()), start)


@bug("NVIDIA/TransformerEngine#441", "weights of norms that all ranks hold get their own rank's gradient",
     outside(REDUCE, ANY), ranks=2)
def norms_not_reduced(right, start):
    model = settle(Decoder())
    optimizer = adam(model)
    ids, labels = data(dist.get_rank())  # each rank has another part of the sequence
    start(model)
    cross_entropy(model(ids), labels).backward()
    for name, p in model.named_parameters():
        if right or "norm" not in name:
            reduce(p.grad).div_(2)
    optimizer.step()


# ---- other regions ---------------------------------------------------------------------

@bug("pytorch/torchtitan#1373", "the shared key of latent attention is copied to ranks without a reduction",
     either(within("shared", direction=ANY), within("spread", direction=ANY),
            outside("expand|apply|Copy|linear|matmul|all_reduce", "backward")), ranks=2)
def shared_key_not_reduced(right, start):
    class Spread(nn.Module):
        def forward(self, x):
            return Copy.apply(x) if right else x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.shared, self.own, self.spread = nn.Linear(16, 8), nn.Linear(16, 8), Spread()

        def forward(self, x):
            return Sum.apply((self.spread(self.shared(x)) * self.own(Copy.apply(x))).sum(-1))
    model = settle(Model())
    with torch.no_grad():
        model.own.weight.mul_(1 + dist.get_rank())
    optimizer = adam(model)
    start(model)
    model(numbers(4, 16)).pow(2).mean().backward()
    optimizer.step()


@bug("pytorch/torchtitan#3412", "a chunked loss hands on gradients of each rank as if they were summed",
     either(outside(REDUCE, ANY), within("head", direction="backward"), within("norm", direction="backward")),
     ranks=2)
def partial_gradient_of_chunks(right, start):
    class Chunked(VocabParallel):
        def forward(self, ids, labels):
            x, mask = self.embed(ids), self.mask(ids.shape[1])
            positions = torch.arange(ids.shape[1]).expand_as(ids)
            for layer in self.layers:
                x = layer(x, mask, positions)
            return self.norm(x)
    model = settle(Chunked())
    halve_head(model)
    optimizer = adam(model)
    ids, labels = data(0)
    start(model)
    hidden = model(ids, labels)
    apart = hidden.detach().requires_grad_()
    for x, y in zip(apart.chunk(3, 1), labels.chunk(3, 1)):
        (model.loss(model.head(x).flatten(0, 1), y.flatten()) / 3).backward()
    grad = apart.grad
    if right:
        grad = reduce(grad.clone())
    hidden.backward(grad)
    optimizer.step()


@bug("pytorch/pytorch#160285", "gradients of experts grow with the number of ranks they are spread over",
     outside("div_|mul_|" + REDUCE, ANY), ranks=2)
def expert_gradients_too_large(right, start):
    model = settle(nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16)))
    optimizer = adam(model)
    start(model)
    model(numbers(6, 16, seed=3 + dist.get_rank())).pow(2).mean().backward()
    for p in model[2].parameters():
        reduce(p.grad)
        if right:
            p.grad.div_(2)
    optimizer.step()
