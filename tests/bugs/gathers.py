# SPDX-License-Identifier: MIT
"""Bugs of what ranks gather and reduce, over gloo: gradients that are lost, counted twice, or of one rank alone."""
import torch
from torch import nn
import torch.distributed as dist
import torch.nn.functional as F

from catalogue import bug, either, outside, within
from experts import COUNTS, EXPERTS, MoE, map_of
from parallel import ANY, REDUCE, Copy, Sum, data, reduce
from small import Attention, MLP, Decoder, adam, cross_entropy, numbers, settle


@bug("NVIDIA/Megatron-LM#7481", "the count of a rank's own tokens is read after the all-reduce overwrote it",
     outside(COUNTS + "|" + REDUCE + "|__floordiv__|floor_divide|clone", ANY), ranks=2)
def count_read_too_late(right, start):
    model = settle(Decoder(mlp=MoE))
    optimizer = adam(model)
    ids, labels = data(dist.get_rank())
    start(model)
    loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten(), reduction="sum")
    scores = model.layers[1].mlp.logits.flatten(0, 1).softmax(-1)
    valid = torch.arange(24) < (24 if dist.get_rank() else 10)
    own = (map_of(scores).sum(-2) * valid[:, None]).sum(0)
    whole = reduce(own.clone() if right else own)
    tokens = own.sum() // 2
    extra = EXPERTS * (whole / whole.sum() * (scores * valid[:, None]).sum(0) / tokens).sum()
    (loss + 0.1 * extra * tokens * tokens).backward()
    for p in model.parameters():
        reduce(p.grad).div_(48)
    optimizer.step()


@bug("NVIDIA/Megatron-LM#5916", "experts that ranks share out are taken for copies, and missing in the norm of gradients",
     outside(REDUCE + "|mul_|sqrt|clamp|__truediv__|norm|sum|pow|stack|add|__add__|reciprocal", ANY), ranks=2)
def norm_without_experts(right, start):
    rank = dist.get_rank()
    torch.manual_seed(5 + rank)
    whole, expert = settle(nn.Linear(16, 16)), settle(MLP(16), seed=9 + rank)
    model = nn.ModuleDict({"whole": whole, "expert": expert})
    optimizer = adam(model)
    start(model)
    x = numbers(6, 16, seed=3)
    (whole(x) + Sum.apply(expert(Copy.apply(x)))).pow(2).mean().backward()
    square = torch.stack([p.grad.pow(2).sum() for p in expert.parameters()]).sum()
    if not right and rank:
        square = square * 0
    square = reduce(square) + torch.stack([p.grad.pow(2).sum() for p in whole.parameters()]).sum()
    scale = (0.05 / (square.sqrt() + 1e-6)).clamp(max=1.0)
    for p in model.parameters():
        p.grad.mul_(scale)
    optimizer.step()


# ---- features of all ranks ---------------------------------------------------------------

class Gather(torch.autograd.Function):
    """Rows of all ranks; how: what the backward pass does with gradients of all rows."""

    @staticmethod
    def forward(ctx, x, how):
        ctx.how, ctx.rows = how, len(x)
        parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, x.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, grad):
        own = slice(ctx.rows * dist.get_rank(), ctx.rows * (dist.get_rank() + 1))
        if ctx.how == "own slice":
            return grad[own].clone(), None
        if ctx.how == "lost":
            return torch.zeros_like(grad[own]), None
        return reduce(grad.clone(memory_format=torch.contiguous_format))[own], None


class Pairs(nn.Module):
    def __init__(self, how):
        super().__init__()
        self.images, self.words, self.how = MLP(16), MLP(16), how

    def forward(self, x, y):
        a, b = F.normalize(self.images(x), dim=-1), F.normalize(self.words(y), dim=-1)
        every = Gather.apply(b, self.how) if self.how != "no gradient" else Gather.apply(b.detach(), "")
        at = torch.arange(len(a)) + len(a) * dist.get_rank()
        return F.cross_entropy(10 * a @ every.t(), at)


def contrast(start, how):
    rank, model = dist.get_rank(), settle(Pairs(how))
    optimizer = adam(model)
    start(model)
    model(numbers(4, 16, seed=3 + rank), numbers(4, 16, seed=13 + rank)).backward()
    for p in model.parameters():
        if p.grad is not None:
            reduce(p.grad).div_(2)
    optimizer.step()


OF_GATHER = either(outside("Gather|apply|cat|all_gather|all_reduce|empty_like|clone|zeros_like|__getitem__|matmul|__matmul__|t|normalize|detach|"
                           "div|clamp_min|norm|vector_norm|linalg_vector_norm|expand", ANY),
                   within("words", direction="backward"), r"^Module\.words\.\S+ @ ")


@bug("3dlg-hcvc/DuoduoCLIP#10", "features that all_gather brings have no gradient", OF_GATHER, ranks=2)
def gathered_without_gradient(right, start):
    contrast(start, "" if right else "no gradient")


@bug("pytorch/xla#5784", "the backward of a gather takes its slice and sums nothing", OF_GATHER, ranks=2)
def gather_takes_its_slice(right, start):
    contrast(start, "" if right else "own slice")


@bug("pytorch/pytorch#120386", "the gradient of a gather lands in a copy when it is not contiguous", OF_GATHER, ranks=2)
def gradient_into_a_copy(right, start):
    contrast(start, "" if right else "lost")


class Twice(torch.autograd.Function):
    """All-reduce forward and backward."""

    @staticmethod
    def forward(ctx, x):
        return reduce(x.clone())

    @staticmethod
    def backward(ctx, grad):
        return reduce(grad.clone())


@bug("pytorch/pytorch#58005", "the backward of a differentiable all-reduce sums what is the same on all ranks",
     either(outside(REDUCE + "|Sum|Twice|apply|clone", ANY), within("down", direction="backward"), within("up", direction="backward")), ranks=2)
def reduced_both_ways(right, start):
    rank = dist.get_rank()
    class Split(nn.Module):
        """A perceptron whose hidden units are shared out to ranks."""
        def __init__(self):
            super().__init__()
            self.up, self.down, self.out = nn.Linear(16, 16), nn.Linear(16, 16, bias=False), nn.Linear(16, 16)

        def forward(self, x):
            h = self.down(F.gelu(self.up(Copy.apply(x))))
            return self.out(Sum.apply(h) if right else Twice.apply(h))
    model = settle(Split(), seed=5)
    with torch.no_grad():
        model.up.weight.mul_(1.0 + rank)
    optimizer = adam(model)
    start(model)
    model(numbers(6, 16)).pow(2).mean().backward()
    optimizer.step()


# ---- experts of each rank -------------------------------------------------------------------

class Shared(nn.Module):
    """Two experts on each of two ranks; slots of the other rank's experts weigh nothing."""

    def __init__(self, keep=False, whole=True):
        super().__init__()
        self.router, self.keep, self.whole = nn.Linear(16, 4, bias=False), keep, whole
        self.experts = nn.ModuleList(MLP(16) for _ in range(2))

    def forward(self, x):
        weight, at = self.router(x).softmax(-1).topk(2, -1)
        if self.whole:
            weight = Copy.apply(weight)
        here = (at // 2) == dist.get_rank()
        weight = weight * here if not self.keep else Weigh.apply(weight, here)
        each = torch.stack([e(Copy.apply(x)) for e in self.experts], 1)
        slots = each.gather(1, (at % 2)[..., None].expand(-1, -1, x.shape[-1]))
        return Sum.apply((slots * weight[..., None]).sum(1))


class Weigh(torch.autograd.Function):
    """Zero where the slot is another rank's, and the gradient passes nevertheless."""

    @staticmethod
    def forward(ctx, weight, here):
        return weight * here

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def expert_step(start, **keys):
    model = settle(Shared(**keys))
    for e in model.experts:
        settle(e, seed=11 + dist.get_rank())
    optimizer = adam(model)
    start(model)
    x = numbers(10, 16)
    (x + model(x)).pow(2).mean().backward()
    optimizer.step()


OF_ROUTER = either(r"^Module\.router\.\S+ @ ", within("router", direction="backward"),
                   outside("softmax|topk|mul|__mul__|Copy|Weigh|apply|__getitem__|gather|view_as|all_reduce|clone|sum|unsqueeze|expand", ANY))


@bug("huggingface/transformers#48687", "slots of other ranks weigh nothing, yet their gradient reaches the router", OF_ROUTER, ranks=2)
def slots_of_others(right, start):
    expert_step(start, keep=not right)


@bug("huggingface/transformers#48205", "each rank's gradient of the router is of its own experts alone", OF_ROUTER, ranks=2)
def router_not_summed(right, start):
    expert_step(start, whole=right)


@bug("NVIDIA-NeMo/Megatron-Bridge#5634", "the adapter of a layer that ranks share out is not summed over them",
     outside("add|__add__|Sum|apply|linear|all_reduce|clone", ANY), ranks=2)
def adapter_not_summed(right, start):
    rank = dist.get_rank()
    class Row(nn.Module):
        def __init__(self):
            super().__init__()
            self.base, self.down, self.up = nn.Linear(8, 16, bias=False), nn.Linear(8, 4, bias=False), nn.Linear(4, 16, bias=False)

        def forward(self, x):
            low = self.down(x)
            return Sum.apply(self.base(x)) + self.up(Sum.apply(low) if right else low)
    model = nn.Sequential(Row(), nn.SiLU(), nn.Linear(16, 4))
    settle(model[0], seed=5 + rank)
    settle(model[2])
    optimizer = adam(model)
    start(model)
    model(numbers(6, 16)[:, 8 * rank:8 * rank + 8]).pow(2).mean().backward()
    optimizer.step()


@bug("pytorch/torchtitan#2206", "each rank's loss is a mean over its own tokens, however few",
     outside("cross_entropy|div|__r?truediv__|sum|mean|" + REDUCE, ANY), ranks=2)
def mean_of_own_tokens(right, start):
    rank, model = dist.get_rank(), settle(Decoder())
    optimizer = adam(model)
    ids, labels = data(rank)
    if rank:
        labels[:, 3:] = -100
    start(model)
    logits = model(ids)
    if right:
        tokens = reduce((labels >= 0).sum().float())
        loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum") / tokens
    else:
        loss = cross_entropy(logits, labels) / 2
    loss.backward()
    for p in model.parameters():
        reduce(p.grad)
    optimizer.step()


# ---- keys and values that travel around the ranks -----------------------------------------------------

def exchanged(x):
    """What the other of two ranks has."""
    parts = [torch.empty_like(x) for _ in range(2)]
    dist.all_gather(parts, x.contiguous())
    return parts[1 - dist.get_rank()]


class Ring(torch.autograd.Function):
    """Attention over the keys and values of both ranks."""

    @staticmethod
    def forward(ctx, q, k, v, fresh):
        ctx.save_for_backward(q, k, v)
        ctx.fresh = fresh
        return F.scaled_dot_product_attention(q, torch.cat((k, exchanged(k)), 2), torch.cat((v, exchanged(v)), 2))

    @staticmethod
    def backward(ctx, grad):
        q, k, v = ctx.saved_tensors
        other_k, other_v = (exchanged(k), exchanged(v)) if ctx.fresh else (k, v)
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() for t in (q, k, v, other_k, other_v)]
            out = F.scaled_dot_product_attention(leaves[0], torch.cat((leaves[1], leaves[3]), 2), torch.cat((leaves[2], leaves[4]), 2))
        dq, dk, dv, dk2, dv2 = torch.autograd.grad(out, leaves, grad)
        return dq, dk + exchanged(dk2), dv + exchanged(dv2), None


@bug("huggingface/diffusers#14265", "the backward of ring attention reads the keys and values of the first turn in each turn",
     either(within("attn", direction=ANY), r"^Module\.attn\.\S+ @ ",
            outside("all_gather|cat|scaled_dot_product_attention|Ring|apply|empty_like|contiguous", ANY)), ranks=2)
def stale_keys_in_backward(right, start):
    class Turning(Attention):
        def attend(self, q, k, v, mask):
            return Ring.apply(q, k, v, right)
    model = settle(nn.ModuleDict({"norm": nn.LayerNorm(16), "attn": Turning(16, 2)}))
    optimizer = adam(model)
    start(model)
    x = numbers(2, 6, 16, seed=3 + dist.get_rank())
    (x + model["attn"](model["norm"](x))).pow(2).mean().backward()
    for p in model.parameters():
        reduce(p.grad).div_(2)
    optimizer.step()
