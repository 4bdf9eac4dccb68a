#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Operators with a planted fault on one side, and pairs of legitimate variants, judged by msprobe.

    judge_cases.py MSPROBE FOLDER faults|variants [first|second|all [SEED]]

Each case calls one operator of PyTorch twice, with equal inputs and with msprobe's dumper on: once as
PyTorch has it, and once replaced by a function with a fault or by another right implementation.  The
replaced side is the target and the golden side by turns.  Bounds were fixed on the first half of the
cases (even numbers); the second half is for reporting.  Prints each case that is judged wrong, and
the counts; the exit status is 1 when fewer than 99 % are right."""
import functools
import json
import os
import subprocess
import sys

import torch
import torch.nn.functional as F

CASES = {"faults": [], "variants": []}
PREFIX = {torch: "Torch", F: "Functional", torch.Tensor: "Tensor"}
F32, BF16, F16 = torch.float32, torch.bfloat16, torch.float16


# What the functions do now, by owner and name: None is what PyTorch does.
INSTEAD = {}


def stand_in(owner, name):
    """Puts a function in the place of another before the dumper looks for it; it stays there."""
    key = (owner, name)
    if key in INSTEAD:
        return
    true = getattr(owner, name)
    INSTEAD[key] = None

    def call(*args, **kwargs):
        other = INSTEAD[key]
        return other(true, *args, **kwargs) if other else true(*args, **kwargs)
    call.__name__ = name
    setattr(owner, name, call)


class Case:
    """owner.name called with args of a seed; `other` replaces it on one side."""

    def __init__(self, kind, what, owner, name, args, other, kwargs=None, backward=False):
        self.what, self.owner, self.name, self.args = what, owner, name, args
        self.other, self.kwargs, self.backward = other, kwargs or {}, backward
        CASES[kind].append(self)

    def call(self, args):
        out = getattr(self.owner, self.name)(*args, **self.kwargs)
        if self.backward:
            first = out[0] if isinstance(out, (tuple, list)) else out
            torch.manual_seed(99)
            first.backward(torch.randn(first.shape).to(first.dtype))


def rand(*shape, dtype=F32, scale=1.0, shift=0.0, grad=False):
    return (torch.randn(*shape) * scale + shift).to(dtype).requires_grad_(grad)


class Graded(torch.autograd.Function):
    """A right forward with a backward of its own: bend(gradients) makes them wrong or other."""

    @staticmethod
    def forward(ctx, true, bend, kwargs, *args):
        ctx.true, ctx.bend, ctx.kwargs = true, bend, kwargs
        ctx.args = args
        with torch.no_grad():
            return true(*[a.detach() if torch.is_tensor(a) else a for a in args], **kwargs)

    @staticmethod
    def backward(ctx, grad):
        leaves = [a.detach().requires_grad_(a.is_floating_point()) if torch.is_tensor(a) else a
                  for a in ctx.args]
        with torch.enable_grad():
            out = ctx.true(*leaves, **ctx.kwargs)
        wanted = [a for a in leaves if torch.is_tensor(a) and a.requires_grad]
        found = iter(torch.autograd.grad(out, wanted, grad, allow_unused=True))
        grads = [next(found) if torch.is_tensor(a) and a.requires_grad else None for a in leaves]
        return (None, None, None, *ctx.bend(grads, grad, leaves))


def bent(bend):
    def other(true, *args, **kwargs):
        return Graded.apply(true, bend, kwargs, *args)
    return other


def each(change):
    """Changes the first gradient alone."""
    def bend(grads, grad, leaves):
        done = False
        out = []
        for g in grads:
            out.append(change(g) if g is not None and not done else g)
            done = done or g is not None
        return out
    return bent(bend)


# ---- functions that are wrong in one way ----------------------------------------------

def lower(dtype):
    """The operator computed in a lower type: a wrong type of accumulation."""
    def other(true, *args, **kwargs):
        cast = [a.to(dtype) if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
        out = true(*cast, **{k: v.to(dtype) if torch.is_tensor(v) and v.is_floating_point() else v
                             for k, v in kwargs.items()})
        return out.to(F32)
    return other


def result(change):
    """The right result, changed."""
    return lambda true, *args, **kwargs: change(true(*args, **kwargs))


def arguments(change):
    """The right operator with changed arguments, which the dump does not show."""
    def other(true, *args, **kwargs):
        args, kwargs = change(list(args), dict(kwargs))
        return true(*args, **kwargs)
    return other


def with_kwargs(**more):
    return arguments(lambda a, k: (a, {**k, **more}))


def swap(i, j):
    def change(a, k):
        a[i], a[j] = a[j], a[i]
        return a, k
    return arguments(change)


def at(i, change):
    def changed(a, k):
        a[i] = change(a[i])
        return a, k
    return arguments(changed)


def truncated(x):
    """Rounded towards zero to bfloat16 instead of to the nearest."""
    bits = x.float().contiguous().view(torch.int32) & -65536
    return bits.view(F32).to(BF16)


def one_by_one(dtype):
    """A product whose sums are rounded to a type after each term."""
    def other(true, x, w, *rest):
        w = w.t() if true.__name__ == "linear" else w
        out = torch.zeros(x.shape[0], w.shape[1], dtype=dtype)
        for k in range(x.shape[1]):
            out = out + (x[:, k:k + 1].to(dtype) * w[k:k + 1].to(dtype))
        return out.to(x.dtype)
    return other


def shift_rows(x):
    return torch.roll(x, 1, 0)


def fault(what, owner, name, args, other, kwargs=None, backward=False):
    Case("faults", what, owner, name, args, other, kwargs, backward)


def variant(what, owner, name, args, other, kwargs=None, backward=False):
    Case("variants", what, owner, name, args, other, kwargs, backward)


# ---- faults --------------------------------------------------------------------------------

def norm_args(dtype=F32, n=64, grad=False, scale=1.0):
    return lambda: (rand(8, n, dtype=dtype, scale=scale, grad=grad), (n,),
                    rand(n, dtype=dtype, scale=0.1, shift=1, grad=grad), rand(n, dtype=dtype, grad=grad))


def qkv(dtype=F32, heads=4, kv=None, length=16, width=32, grad=False):
    return lambda: (rand(2, heads, length, width, dtype=dtype, grad=grad),
                    rand(2, kv or heads, length, width, dtype=dtype, grad=grad),
                    rand(2, kv or heads, length, width, dtype=dtype, grad=grad))


def logits(n=12, classes=10, dtype=F32, ignored=3, grad=False):
    def make():
        target = torch.randint(0, classes, (n,))
        target[:ignored] = -100
        return rand(n, classes, dtype=dtype, scale=2, grad=grad), target
    return make


def two(*shapes, dtype=F32, grad=False, scale=1.0):
    return lambda: tuple(rand(*s, dtype=dtype, grad=grad, scale=scale) for s in shapes)


def make_faults():
    for eps in (1e-6, 1e-4, 1e-3):
        fault(f"layer_norm eps {eps}", F, "layer_norm", norm_args(), with_kwargs(eps=eps))
    fault("layer_norm eps 0.1 bf16", F, "layer_norm", norm_args(BF16), with_kwargs(eps=0.1))
    fault("layer_norm eps 0.1 f16", F, "layer_norm", norm_args(F16), with_kwargs(eps=0.1))
    for dtype in (F32, BF16, F16):
        fault(f"layer_norm no bias {dtype}", F, "layer_norm", norm_args(dtype),
              at(3, lambda b: None))
        fault(f"layer_norm weight + 1 {dtype}", F, "layer_norm", norm_args(dtype),
              at(2, lambda w: w + 1))
        fault(f"layer_norm rows exchanged {dtype}", F, "layer_norm", norm_args(dtype),
              result(shift_rows))
    fault("layer_norm divisor n - 1", F, "layer_norm", norm_args(),
          lambda true, x, s, w, b: (x - x.mean(-1, True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * w + b)
    fault("group_norm groups", F, "group_norm", lambda: (rand(2, 8, 5, 5), 4), at(1, lambda g: 2))
    fault("group_norm eps", F, "group_norm", lambda: (rand(2, 8, 5, 5), 4), with_kwargs(eps=1e-3))
    fault("batch_norm running statistics", F, "batch_norm",
          lambda: (rand(6, 4, 5, 5), torch.zeros(4), torch.ones(4)),
          with_kwargs(training=False), {"training": True})
    fault("batch_norm eps", F, "batch_norm",
          lambda: (rand(6, 4, 5, 5), torch.zeros(4), torch.ones(4)), with_kwargs(eps=1e-3), {"training": True})
    for dtype in (F32, BF16, F16):
        fault(f"softmax axis {dtype}", F, "softmax", lambda d=dtype: (rand(9, 9, dtype=d),),
              with_kwargs(dim=0), {"dim": -1})
        fault(f"softmax without scale {dtype}", F, "softmax", lambda d=dtype: (rand(9, 33, dtype=d),),
              at(0, lambda x: x * 0.5), {"dim": -1})
        fault(f"log_softmax base 2 {dtype}", F, "log_softmax", lambda d=dtype: (rand(9, 33, dtype=d),),
              result(lambda y: y * 1.4427), {"dim": -1})
    fault("softmax overflows", F, "softmax", lambda: (rand(9, 33, dtype=F16, scale=20),),
          lambda true, x, dim: x.exp() / x.exp().sum(dim, keepdim=True), {"dim": -1})
    for op in ("softmax", "log_softmax"):
        fault(f"{op} in bf16", F, op, lambda: (rand(9, 33),), lower(BF16), {"dim": -1})
        fault(f"{op} in f16", F, op, lambda: (rand(9, 33),), lower(F16), {"dim": -1})
    # products
    for dtype in (F32, BF16, F16):
        fault(f"linear no bias {dtype}", F, "linear",
              lambda d=dtype: (rand(6, 48, dtype=d), rand(32, 48, dtype=d), rand(32, dtype=d)), at(2, lambda b: None))
        fault(f"linear weight transposed {dtype}", F, "linear",
              lambda d=dtype: (rand(6, 32, dtype=d), rand(32, 32, dtype=d), rand(32, dtype=d)), at(1, lambda w: w.t()))
        fault(f"matmul operands swapped {dtype}", torch, "matmul", two((16, 16), (16, 16), dtype=dtype), swap(0, 1))
        fault(f"bmm batches exchanged {dtype}", torch, "bmm", two((4, 8, 16), (4, 16, 8), dtype=dtype), at(1, shift_rows))
        fault(f"addmm beta {dtype}", torch, "addmm", two((8, 8), (8, 24), (24, 8), dtype=dtype), with_kwargs(beta=0.5))
        fault(f"matmul last column of K left out {dtype}", torch, "matmul", two((16, 24), (24, 16), dtype=dtype),
              lambda true, x, y: true(x[:, :-1], y[:-1]))
    for low in (BF16, F16):
        fault(f"linear in {low}", F, "linear", two((6, 128), (32, 128), (32,)), lower(low))
        fault(f"matmul in {low}", torch, "matmul", two((16, 256), (256, 16)), lower(low))
        fault(f"mm in {low}", torch, "mm", two((16, 64), (64, 16)), lower(low))
        fault(f"conv2d in {low}", F, "conv2d", two((2, 3, 8, 8), (4, 3, 3, 3), (4,)), lower(low))
        fault(f"matmul accumulates in {low}", torch, "matmul", two((16, 256), (256, 16)), one_by_one(low))
        fault(f"matmul of {low} accumulates one by one", torch, "matmul", two((16, 2048), (2048, 16), dtype=low),
              one_by_one(low))
    fault("linear accumulates in bf16", F, "linear", two((6, 128), (32, 128)), one_by_one(BF16))
    fault("linear of bf16 accumulates one by one", F, "linear", two((16, 2048), (16, 2048), dtype=BF16), one_by_one(BF16))
    fault("matmul inputs of 10 bits", torch, "matmul", two((16, 256), (256, 16)),
          lambda true, x, y: true(x.half().float(), y.half().float()))
    # convolutions and pools
    for dtype in (F32, BF16):
        conv = two((2, 3, 9, 9), (4, 3, 3, 3), (4,), dtype=dtype)
        fault(f"conv2d kernel flipped {dtype}", F, "conv2d", conv, at(1, lambda w: w.flip(-1)))
        fault(f"conv2d image moved {dtype}", F, "conv2d", conv, at(0, lambda x: torch.roll(x, 1, -1)), {"padding": 1})
        fault(f"conv2d bias left out {dtype}", F, "conv2d", conv, at(2, lambda b: None), {"stride": 2})
        fault(f"conv2d channels exchanged {dtype}", F, "conv2d", conv, at(0, lambda x: x.flip(1)))
        fault(f"conv1d moved {dtype}", F, "conv1d", two((2, 3, 20), (4, 3, 3), dtype=dtype),
              result(lambda y: torch.roll(y, 1, -1)), {"padding": 1})
        fault(f"conv3d axes {dtype}", F, "conv3d", two((1, 2, 5, 5, 5), (3, 2, 3, 3, 3), dtype=dtype),
              at(1, lambda w: w.transpose(-1, -2)))
        fault(f"conv_transpose2d flipped {dtype}", F, "conv_transpose2d", two((2, 3, 6, 6), (3, 4, 3, 3), dtype=dtype),
              at(1, lambda w: w.flip(-2)), {"stride": 2})
        fault(f"max_pool2d one off {dtype}", F, "max_pool2d", lambda d=dtype: (rand(2, 3, 8, 8, dtype=d), 2),
              at(0, lambda x: torch.roll(x, 1, -1)))
        fault(f"avg_pool2d one off {dtype}", F, "avg_pool2d", lambda d=dtype: (rand(2, 3, 8, 8, dtype=d), 2),
              at(0, lambda x: torch.roll(x, 1, -2)))
        fault(f"avg_pool2d padding counted {dtype}", F, "avg_pool2d", lambda d=dtype: (rand(2, 3, 8, 8, dtype=d), 3),
              with_kwargs(count_include_pad=False), {"stride": 2, "padding": 1})
        fault(f"adaptive_avg_pool2d one off {dtype}", F, "adaptive_avg_pool2d",
              lambda d=dtype: (rand(2, 3, 8, 8, dtype=d), 3), at(0, lambda x: torch.roll(x, 1, -2)))
        fault(f"max_pool1d last left out {dtype}", F, "max_pool1d", lambda d=dtype: (rand(2, 3, 8, dtype=d), 2),
              at(0, lambda x: torch.roll(x, -1, -1)))
    # attention
    for dtype in (F32, BF16, F16):
        sdpa = "scaled_dot_product_attention"
        fault(f"attention scale {dtype}", F, sdpa, qkv(dtype), with_kwargs(scale=1 / 32))
        fault(f"attention mask one off {dtype}", F, sdpa, qkv(dtype),
              arguments(lambda a, k: (a, {"attn_mask": torch.ones(16, 16, dtype=torch.bool).tril(1)})),
              {"is_causal": True})
        fault(f"attention not causal {dtype}", F, sdpa, qkv(dtype), with_kwargs(is_causal=False), {"is_causal": True})
        fault(f"attention keys and values swapped {dtype}", F, sdpa, qkv(dtype), swap(1, 2))
        fault(f"attention grouped heads {dtype}", F, sdpa, qkv(dtype, kv=2),
              lambda true, q, k, v, **kw: true(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1)), {"enable_gqa": True})
        fault(f"attention mask inverted {dtype}", F, sdpa,
              lambda d=dtype: (*qkv(d)(), torch.rand(16, 16) > 0.4), at(3, lambda m: ~m))
    # activations
    for name, other in (("gelu", with_kwargs(approximate="tanh")), ("silu", lambda true, x: x * torch.sigmoid(1.702 * x)),
                        ("leaky_relu", with_kwargs(negative_slope=0.02)), ("elu", with_kwargs(alpha=1.1)),
                        ("softplus", with_kwargs(beta=1.01)), ("mish", lambda true, x: x * torch.tanh(torch.exp(x))),
                        ("hardtanh", with_kwargs(max_val=1.1)), ("relu6", lambda true, x: x.clamp(0, 6.5)),
                        ("sigmoid", lambda true, x: true(x * 1.001)), ("tanh", lambda true, x: x.clamp(-1, 1))):
        fault(f"{name} other constant", F, name, lambda: (rand(20, 30, scale=4),), other)
    for name in ("gelu", "silu", "sigmoid", "tanh", "softplus"):
        fault(f"{name} in bf16", F, name, lambda: (rand(20, 30),), lower(BF16))
        fault(f"{name} without negatives bf16", F, name, lambda: (rand(20, 30, dtype=BF16),), at(0, lambda x: x.clamp_min(0)))
    # casts
    fault("cast saturates", torch.Tensor, "to", lambda: (rand(50, scale=1e5), F16),
          lambda true, x, d: true(x.clamp(-65504, 65504), d))
    fault("cast truncates", torch.Tensor, "bfloat16", lambda: (rand(500),), lambda true, x: truncated(x))
    fault("cast rounds to whole numbers", torch.Tensor, "to", lambda: (rand(50, scale=10), torch.int32),
          lambda true, x, d: true(x.round(), d))
    fault("cast through f16", torch.Tensor, "to", lambda: (rand(50, scale=1e-6), BF16),
          lambda true, x, d: true(true(x, F16), d))
    # indices and moves
    for dtype in (F32, BF16):
        fault(f"embedding one off {dtype}", F, "embedding",
              lambda d=dtype: (torch.randint(0, 20, (5, 7)), rand(20, 8, dtype=d)), at(0, lambda i: (i + 1) % 20))
        fault(f"index_select one off {dtype}", torch, "index_select",
              lambda d=dtype: (rand(20, 8, dtype=d), 0, torch.randint(0, 20, (9,))), at(2, lambda i: (i + 1) % 20))
        fault(f"gather axis {dtype}", torch, "gather",
              lambda d=dtype: (rand(8, 8, dtype=d), 0, torch.randint(0, 8, (8, 8))), at(1, lambda a: 1))
        fault(f"cat order {dtype}", torch, "cat", lambda d=dtype: ([rand(3, 4, dtype=d), rand(3, 4, dtype=d)],),
              at(0, lambda x: x[::-1]))
        fault(f"tril one off {dtype}", torch.Tensor, "tril", lambda d=dtype: (rand(8, 8, dtype=d),), with_kwargs(diagonal=1))
        fault(f"roll other way {dtype}", torch, "roll", lambda d=dtype: (rand(8, 9, dtype=d), 2, 1), at(1, lambda s: -2))
        fault(f"where inverted {dtype}", torch, "where",
              lambda d=dtype: (torch.rand(8, 8) > 0.5, rand(8, 8, dtype=d), rand(8, 8, dtype=d)), swap(1, 2))
        fault(f"masked_fill inverted {dtype}", torch.Tensor, "masked_fill",
              lambda d=dtype: (rand(8, 8, dtype=d), torch.rand(8, 8) > 0.5, 0.0), at(1, lambda m: ~m))
    # reductions
    for dtype in (F32, BF16):
        fault(f"sum last left out {dtype}", torch, "sum", lambda d=dtype: (rand(20, 30, dtype=d), 1), at(0, lambda x: x[:, :-1]))
        fault(f"mean divisor {dtype}", torch, "mean", lambda d=dtype: (rand(20, 30, dtype=d, shift=1), 1), result(lambda y: y * 30 / 29))
        fault(f"max axis {dtype}", torch, "amax", lambda d=dtype: (rand(20, 20, dtype=d), 1), at(1, lambda a: 0))
        fault(f"cumsum exclusive {dtype}", torch, "cumsum", lambda d=dtype: (rand(8, 20, dtype=d), 1),
              lambda true, x, d: true(x, d) - x)
    fault("sum in f16", torch, "sum", lambda: (rand(20, 300), 1), lower(F16))
    fault("mean in bf16", torch, "mean", lambda: (rand(20, 300), 1), lower(BF16))
    fault("var biased", torch, "var", lambda: (rand(20, 300), 1), with_kwargs(unbiased=False))
    fault("std biased", torch, "std", lambda: (rand(20, 300), 1), with_kwargs(unbiased=False))
    fault("norm squared", torch, "norm", lambda: (rand(20, 30),), result(lambda y: y * y))
    fault("logsumexp without max", torch, "logsumexp", lambda: (rand(20, 30, scale=60), 1),
          lambda true, x, d: x.exp().sum(d).log())
    # elementwise
    for dtype in (F32, F16):
        fault(f"add alpha ignored {dtype}", torch, "add", two((8, 8), (8, 8), dtype=dtype), with_kwargs(alpha=1), {"alpha": 2})
        fault(f"sub swapped {dtype}", torch, "sub", two((8, 8), (8, 8), dtype=dtype), swap(0, 1))
        fault(f"div swapped {dtype}", torch, "div", two((8, 8), (8, 8), dtype=dtype), swap(0, 1))
        fault(f"clamp bound {dtype}", torch, "clamp", lambda d=dtype: (rand(8, 8, dtype=d), -1, 1), at(2, lambda m: 1.25))
        fault(f"addcmul value {dtype}", torch, "addcmul", two((8, 8), (8, 8), (8, 8), dtype=dtype),
              with_kwargs(value=0.25), {"value": 0.5})
        fault(f"maximum for minimum {dtype}", torch, "maximum", two((8, 8), (8, 8), dtype=dtype),
              lambda true, x, y: torch.minimum(x, y))
    fault("exp of few bits", torch, "exp", lambda: (rand(20, 30),), result(lambda y: y.half().float()))
    fault("pow exponent", torch, "pow", lambda: (rand(20, 30).abs() + 0.1, 2.5), at(1, lambda e: 2.501))
    fault("rsqrt of few bits", torch, "rsqrt", lambda: (rand(20, 30).abs() + 0.1,), result(lambda y: y.bfloat16().float()))
    # losses
    fault("cross_entropy ignored class counted", F, "cross_entropy", logits(),
          result(lambda y: y * 9 / 12))
    fault("cross_entropy smoothing", F, "cross_entropy", logits(), with_kwargs(label_smoothing=0.0), {"label_smoothing": 0.1})
    fault("cross_entropy class one off", F, "cross_entropy", logits(ignored=0), at(1, lambda t: (t + 1) % 10))
    fault("cross_entropy sum", F, "cross_entropy", logits(), with_kwargs(reduction="sum"))
    fault("nll_loss sign", F, "nll_loss", logits(), result(lambda y: -y))
    fault("mse_loss half", F, "mse_loss", two((8, 8), (8, 8)), result(lambda y: y / 2))
    fault("l1_loss sum", F, "l1_loss", two((8, 8), (8, 8)), with_kwargs(reduction="sum"))
    fault("smooth_l1_loss beta", F, "smooth_l1_loss", two((8, 8), (8, 8)), with_kwargs(beta=0.9))
    fault("huber_loss delta", F, "huber_loss", two((8, 8), (8, 8), scale=2), with_kwargs(delta=0.9))
    fault("kl_div mean", F, "kl_div", lambda: (rand(8, 8).log_softmax(1), rand(8, 8).softmax(1)),
          with_kwargs(reduction="mean"), {"reduction": "batchmean"})
    fault("binary cross entropy swapped", F, "binary_cross_entropy", lambda: (torch.rand(8, 8), torch.rand(8, 8)), swap(0, 1))
    fault("bce with logits: no sigmoid", F, "binary_cross_entropy_with_logits",
          lambda: (rand(8, 8), torch.rand(8, 8)), at(0, torch.sigmoid))
    fault("cosine_similarity axis", F, "cosine_similarity", two((8, 8), (8, 8)), with_kwargs(dim=0))
    fault("normalize axis", F, "normalize", two((8, 8)), with_kwargs(dim=0))
    # backward
    graded = [("relu", F, lambda d: (rand(8, 20, dtype=d, grad=True),), {}),
              ("gelu", F, lambda d: (rand(8, 20, dtype=d, grad=True),), {}),
              ("silu", F, lambda d: (rand(8, 20, dtype=d, grad=True),), {}),
              ("softmax", F, lambda d: (rand(8, 20, dtype=d, grad=True),), {"dim": -1}),
              ("log_softmax", F, lambda d: (rand(8, 20, dtype=d, grad=True),), {"dim": -1}),
              ("layer_norm", F, lambda d: norm_args(d, grad=True)(), {}),
              ("matmul", torch, lambda d: (rand(8, 20, dtype=d, grad=True), rand(20, 12, dtype=d, grad=True)), {}),
              ("linear", F, lambda d: (rand(8, 20, dtype=d, grad=True), rand(12, 20, dtype=d, grad=True)), {}),
              ("conv2d", F, lambda d: (rand(2, 3, 7, 7, dtype=d, grad=True), rand(4, 3, 3, 3, dtype=d, grad=True)), {}),
              ("max_pool2d", F, lambda d: (rand(2, 3, 8, 8, dtype=d, grad=True), 2), {}),
              ("mul", torch, lambda d: (rand(8, 20, dtype=d, grad=True), rand(8, 20, dtype=d, grad=True)), {}),
              ("scaled_dot_product_attention", F, lambda d: qkv(d, grad=True)(), {"is_causal": True})]
    changes = [("doubled", lambda g: g * 2), ("negated", lambda g: -g), ("first row lost", lambda g: torch.cat([g[:1] * 0, g[1:]])),
               ("rows exchanged", shift_rows), ("scaled by 1.05", lambda g: g * 1.05)]
    for i, (name, owner, make, kwargs) in enumerate(graded):
        for dtype in (F32, BF16):
            for k in (0, 1):
                what, change = changes[(i + k + (2 if dtype == BF16 else 0)) % (4 if dtype == BF16 else 5)]
                fault(f"{name} backward {what} {dtype}", owner, name, functools.partial(make, dtype), each(change), kwargs, True)
        fault(f"{name} backward in bf16", owner, name, functools.partial(make, F32), each(lambda g: g.bfloat16().float()), kwargs, True)


# ---- variants --------------------------------------------------------------------------------

def exact(true, *args, **kwargs):
    """Computed in float64 and rounded once."""
    dtype = next(a.dtype for a in args if torch.is_tensor(a) and a.is_floating_point())
    wide = [a.double() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
    return true(*wide, **{k: v.double() if torch.is_tensor(v) and v.is_floating_point() else v
                          for k, v in kwargs.items()}).to(dtype)


def wider(true, *args, **kwargs):
    """Computed in float32 and rounded once."""
    dtype = next(a.dtype for a in args if torch.is_tensor(a) and a.is_floating_point())
    wide = [a.float() if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
    return true(*wide, **{k: v.float() if torch.is_tensor(v) and v.is_floating_point() else v
                          for k, v in kwargs.items()}).to(dtype)


def blocks(size):
    """A product in blocks of K, whose sums are added up in the type of the inputs."""
    def other(true, x, w, *rest):
        turned = true.__name__ == "linear"
        w = w.t() if turned else w
        out = torch.zeros(*x.shape[:-1], w.shape[-1], dtype=x.dtype)
        for k in range(0, x.shape[-1], size):
            out = out + (x[..., k:k + size].float() @ w[..., k:k + size, :].float()).to(x.dtype)
        return out + rest[0] if rest else out
    return other


def backwards(true, x, w, *rest):
    """A product that adds up from the other end."""
    if true.__name__ == "linear":
        return true(x.flip(-1), w.flip(-1), *rest)
    return true(x.flip(-1), w.flip(-2), *rest)


def threads(true, *args, **kwargs):
    """One thread, and without the kernels of oneDNN."""
    n = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.backends.mkldnn.flags(enabled=False):
            return true(*args, **kwargs)
    finally:
        torch.set_num_threads(n)


def sdpa_parts(true, q, k, v, attn_mask=None, is_causal=False, **kw):
    """Attention operator by operator, each rounded to the type of the inputs."""
    s = (q * (1 / q.shape[-1] ** 0.5)) @ k.transpose(-1, -2)
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, float("-inf"))
    return s.softmax(-1) @ v


def online(true, q, k, v, is_causal=False, **kw):
    """Attention in two halves of the keys, joined as flash kernels do."""
    s = q.float() @ k.float().transpose(-1, -2) / q.shape[-1] ** 0.5
    if is_causal:
        s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool).tril(), float("-inf"))
    h = s.shape[-1] // 2
    m1, m2 = s[..., :h].amax(-1, True), s[..., h:].amax(-1, True)
    m = torch.maximum(m1, m2)
    p1, p2 = (s[..., :h] - m).exp(), (s[..., h:] - m).exp()
    out = (p1.to(q.dtype).float() @ v[..., :h, :].float() + p2.to(q.dtype).float() @ v[..., h:, :].float())
    return (out / (p1.sum(-1, True) + p2.sum(-1, True))).to(q.dtype)


def layer_norm_parts(true, x, shape, w=None, b=None, eps=1e-5):
    mean = x.mean(-1, True)
    var = ((x - mean) ** 2).mean(-1, True)
    return (x - mean) / (var + eps).sqrt() * w + b


def softmax_parts(true, x, dim):
    e = (x - x.amax(dim, True)).exp()
    return e / e.sum(dim, keepdim=True)


def same(grads, grad, leaves):
    return grads


class Double(Graded):
    """The gradient computed in float64."""

    @staticmethod
    def backward(ctx, grad):
        leaves = [a.detach().double().requires_grad_() if torch.is_tensor(a) and a.is_floating_point() else a
                  for a in ctx.args]
        with torch.enable_grad():
            out = ctx.true(*leaves, **ctx.kwargs)
        wanted = [a for a in leaves if torch.is_tensor(a) and a.requires_grad]
        found = iter(torch.autograd.grad(out, wanted, grad.double()))
        return (None, None, None, *[next(found).to(a.dtype) if torch.is_tensor(a) and a.is_floating_point() else None
                                    for a in ctx.args])


def double_grad(true, *args, **kwargs):
    return Double.apply(true, same, kwargs, *args)


def make_variants():
    for dtype in (F32, BF16, F16):
        d = dtype
        for k in (64, 512, 3000):
            x = two((16, k), (24, k), (24,), dtype=d)
            m = two((16, k), (k, 24), dtype=d)
            for what, other in (("exact", exact), ("from the other end", backwards), ("threads", threads),
                                ("blocks of 64", blocks(64))):
                variant(f"linear {what} K {k} {d}", F, "linear", x, other)
                variant(f"matmul {what} K {k} {d}", torch, "matmul", m, other)
        variant(f"bmm exact {d}", torch, "bmm", two((4, 16, 300), (4, 300, 16), dtype=d), exact)
        variant(f"bmm blocks {d}", torch, "bmm", two((4, 16, 300), (4, 300, 16), dtype=d), blocks(32))
        for what, other in (("exact", exact), ("threads", threads)):
            variant(f"conv2d {what} {d}", F, "conv2d", two((2, 8, 12, 12), (16, 8, 3, 3), (16,), dtype=d), other, {"padding": 1})
            variant(f"conv1d {what} {d}", F, "conv1d", two((2, 8, 50), (16, 8, 5), (16,), dtype=d), other)
            variant(f"conv3d {what} {d}", F, "conv3d", two((1, 3, 6, 6, 6), (4, 3, 3, 3, 3), dtype=d), other)
            variant(f"conv_transpose2d {what} {d}", F, "conv_transpose2d", two((2, 8, 7, 7), (8, 4, 3, 3), dtype=d), other, {"stride": 2})
        for n in (64, 1024, 5120):
            variant(f"layer_norm exact {n} {d}", F, "layer_norm", norm_args(d, n), exact)
            variant(f"layer_norm in parts {n} {d}", F, "layer_norm", norm_args(d, n), layer_norm_parts)
            variant(f"softmax in parts {n} {d}", F, "softmax", lambda d=d, n=n: (rand(8, n, dtype=d, scale=3),), softmax_parts, {"dim": -1})
            variant(f"log_softmax exact {n} {d}", F, "log_softmax", lambda d=d, n=n: (rand(8, n, dtype=d, scale=3),), exact, {"dim": -1})
            variant(f"sum exact {n} {d}", torch, "sum", lambda d=d, n=n: (rand(8, n, dtype=d), 1), exact)
            variant(f"sum of positives {n} {d}", torch, "sum", lambda d=d, n=n: (rand(8, n, dtype=d).abs(), 1), wider)
            variant(f"mean in halves {n} {d}", torch, "mean", lambda d=d, n=n: (rand(8, n, dtype=d), 1),
                    lambda true, x, a: (x[:, ::2].sum(a) + x[:, 1::2].sum(a)) / x.shape[a])
        for name in ("gelu", "silu", "sigmoid", "tanh", "softplus", "elu", "mish", "hardswish", "logsigmoid"):
            variant(f"{name} exact {d}", F, name, lambda d=d: (rand(50, 60, dtype=d, scale=3),), exact)
        variant(f"gelu in parts {d}", F, "gelu", lambda d=d: (rand(50, 60, dtype=d, scale=2),),
                lambda true, x: 0.5 * x * (1 + torch.erf(x * 0.70710678118654752)))
        variant(f"silu in parts {d}", F, "silu", lambda d=d: (rand(50, 60, dtype=d, scale=2),), lambda true, x: x / (1 + (-x).exp()))
        sdpa = "scaled_dot_product_attention"
        for length in (16, 128):
            variant(f"attention in parts {length} {d}", F, sdpa, qkv(d, length=length), sdpa_parts, {"is_causal": True})
            variant(f"attention online {length} {d}", F, sdpa, qkv(d, length=length), online, {"is_causal": True})
            variant(f"attention exact {length} {d}", F, sdpa, qkv(d, length=length), exact)
        variant(f"attention masked {d}", F, sdpa, lambda d=d: (*qkv(d)(), torch.rand(16, 16) > 0.3), sdpa_parts)
        variant(f"cross_entropy exact {d}", F, "cross_entropy", logits(40, 1000, d), exact)
        variant(f"mse_loss exact {d}", F, "mse_loss", two((40, 50), (40, 50), dtype=d), exact)
        for name, args in (("exp", two((40, 50), dtype=d)), ("sin", two((40, 50), dtype=d, scale=10)),
                           ("erf", two((40, 50), dtype=d))):
            variant(f"{name} exact {d}", torch, name, args, exact)
        for name, owner, make, kwargs in (
                ("gelu", F, lambda d: (rand(8, 200, dtype=d, grad=True, scale=2),), {}),
                ("silu", F, lambda d: (rand(8, 200, dtype=d, grad=True, scale=2),), {}),
                ("softmax", F, lambda d: (rand(8, 200, dtype=d, grad=True),), {"dim": -1}),
                ("layer_norm", F, lambda d: norm_args(d, 300, grad=True)(), {}),
                ("matmul", torch, lambda d: (rand(64, 200, dtype=d, grad=True), rand(200, 32, dtype=d, grad=True)), {}),
                ("linear", F, lambda d: (rand(64, 200, dtype=d, grad=True), rand(32, 200, dtype=d, grad=True)), {}),
                ("conv2d", F, lambda d: (rand(2, 3, 9, 9, dtype=d, grad=True), rand(4, 3, 3, 3, dtype=d, grad=True)), {}),
                ("tanh", torch, lambda d: (rand(8, 200, dtype=d, grad=True, scale=2),), {}),
                (sdpa, F, lambda d: qkv(d, length=32, grad=True)(), {"is_causal": True})):
            variant(f"{name} backward exact {d}", owner, name, functools.partial(make, d), double_grad, kwargs, True)


# ---- running ------------------------------------------------------------------------------------

def record_of(folder, case):
    data = json.load(open(os.path.join(folder, "dump.json")))["data"]
    end = ".backward" if case.backward else ".forward"
    start = PREFIX[case.owner] + "." + case.name + "."
    names = [n for n in data if n.endswith(end) and n.startswith(start)]
    return names[0] if names else None


def dump_all(cases, numbers, folder, seed):
    for i in numbers:
        stand_in(cases[i].owner, cases[i].name)
    from msprobe.pytorch import PrecisionDebugger
    config = os.path.join(folder, "config.json")
    json.dump({"task": "tensor", "dump_path": os.path.join(folder, "out"), "rank": [], "step": [], "level": "L1", "risk_level": "ALL",
               "tensor": {"scope": [], "list": [], "data_mode": ["all"]}}, open(config, "w"))
    debugger = PrecisionDebugger(config_path=config)
    for i in numbers:
        key = (cases[i].owner, cases[i].name)
        for side in (0, 1):
            torch.manual_seed(seed + i)
            args = cases[i].args()
            INSTEAD[key] = cases[i].other if side == i // 2 % 2 else None
            debugger.start()
            cases[i].call(args)
            debugger.stop()
            debugger.step()
            INSTEAD[key] = None


def main():
    msprobe, folder, kind, half = sys.argv[1], sys.argv[2], sys.argv[3], (sys.argv[4:] or ["all"])[0]
    make_faults()
    make_variants()
    cases = CASES[kind]
    numbers = [i for i in range(len(cases)) if half == "all" or i % 2 == ("first", "second").index(half)]
    os.makedirs(folder, exist_ok=True)
    dump_all(cases, numbers, folder, int((sys.argv[5:] or [0])[0]))
    right, wrong_side, unknown, total = 0, 0, 0, 0
    for n, i in enumerate(numbers):
        dirs = []
        for step in (2 * n, 2 * n + 1):
            top = os.path.join(folder, "out", f"step{step}")
            dirs.append(os.path.join(top, os.listdir(top)[0]))
        name = record_of(dirs[0], cases[i])
        want = ("target", "golden")[i // 2 % 2] if kind == "faults" else "within_bounds"
        if name is None:
            print(f"{i} {cases[i].what}: not in the dump")
            total += 1
            continue
        said = subprocess.run([msprobe, "judge", dirs[0] + "/dump.json", dirs[1] + "/dump.json", name, "--format", "json"],
                              capture_output=True, text=True)
        verdict = json.loads(said.stdout)["verdicts"][0] if said.returncode == 0 else {"verdict": "failed " + said.stderr}
        got = verdict["verdict"]
        total += 1
        right += got == want
        unknown += got == "undecided"
        wrong_side += kind == "faults" and got in {"target", "golden"} - {want}
        if got != want:
            more = [(s, x["path"], x["worst"]) for s in ("target", "golden") for x in verdict.get(s, {}).get("tensors", [])]
            print(f"{i} {cases[i].what}: {got} instead of {want}", more, [verdict.get(s, {}).get("why") for s in ("target", "golden")])
    print(f"{kind} {half}: {right} of {total} right ({100 * right / total:.2f} %), "
          f"{wrong_side} name the right side, {unknown} undecided")
    sys.exit(right < 0.99 * total)


if __name__ == "__main__":
    main()
