#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Faults in real PyTorch runs: does `msprobe compare` name them?

Trains one step of a small GPT-like model or a residual CNN twice, the second time
with a fault and in another background - other threads, other blocking of sums,
float64, bfloat16 - and compares the two dumps.  Each background also runs without a
fault: such a pair must have no suspect.

    torch_faults.py [--cases N] [--set fixed|unseen|both] [--first SEED] [--modes LIST] [-v]
"""
import argparse
import collections
import contextlib
import json
import math
import os
import random
import shutil
import subprocess
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
import multiprocessing

MSPROBE = os.environ.get("MSPROBE", os.path.join(os.environ.get("B", "build"), "msprobe"))
FIRST_SEED = {"fixed": 2_000, "unseen": 400_000}
EXACT = ("same", "bf16same")

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch_record import Recorder, Writer, flat, raw
except ImportError:
    torch = None


# ---- models -------------------------------------------------------------------

class Gpt:
    """Pre-norm transformer; what may go wrong in its source is a switch in `wrong`."""

    def __init__(self, rng, wrong):
        self.layers, self.d, self.heads = rng.choice([2, 3, 4]), 32, 4
        self.t, self.vocab, self.batch = 16, 64, 2
        self.wrong, self.at = wrong, rng.randrange(self.layers)
        self.gate = rng.choice(["gelu", "silu"])

    def build(self, g):
        def p(*shape, scale=0.2, base=0.0):
            return torch.nn.Parameter(base + scale * torch.randn(*shape, generator=g))
        m = torch.nn.Module()
        m.wte = p(self.vocab, self.d, scale=0.5)
        for i in range(self.layers):
            b = torch.nn.Module()
            b.n1, b.n1b, b.n2, b.n2b = p(self.d, base=1), p(self.d), p(self.d, base=1), p(self.d)
            b.q, b.k, b.v, b.o = (p(self.d, self.d) for _ in range(4))
            b.ob, b.fb, b.gb = p(self.d), p(2 * self.d), p(self.d)
            b.f, b.g = p(2 * self.d, self.d), p(self.d, 2 * self.d)
            m.add_module(f"h{i}", b)
        m.nf, m.nfb, m.head = p(self.d, base=1), p(self.d), p(self.vocab, self.d)
        return m

    def data(self, g):
        return (torch.randint(0, self.vocab, (self.batch, self.t), generator=g),
                torch.randint(0, self.vocab, (self.batch * self.t,), generator=g))

    def is_wrong(self, what, layer):
        return self.wrong == what and layer == self.at

    def rope(self, x, shift):
        n = x.shape[-1] // 2
        a = (np.arange(self.t) + shift)[:, None] * np.exp(-np.arange(n) * (math.log(1e4) / n))[None, :]
        kind = np.float64 if x.dtype == torch.float64 else np.float32
        cos, sin = torch.from_numpy(np.cos(a).astype(kind)), torch.from_numpy(np.sin(a).astype(kind))
        left, right = x.chunk(2, -1)
        return torch.cat([left * cos - right * sin, left * sin + right * cos], -1)

    def attention(self, b, x, layer):
        def split(y):
            return y.view(self.batch, self.t, self.heads, -1).transpose(1, 2)
        q, k, v = split(F.linear(x, b.q)), split(F.linear(x, b.k)), split(F.linear(x, b.v))
        q, k = self.rope(q, 1 if self.is_wrong("rope", layer) else 0), self.rope(k, 0)
        if self.is_wrong("q_is_k", layer):
            q = k
        s = torch.matmul(q, k.transpose(-1, -2))
        d = self.d // self.heads
        s = s / (d if self.is_wrong("scale_d", layer) else math.sqrt(d))
        if not self.is_wrong("no_mask", layer):
            mask = torch.from_numpy(np.triu(np.ones((self.t, self.t), dtype=bool), 1))
            s = s.masked_fill(mask, -1e4)
        a = F.softmax(s, dim=-2 if self.is_wrong("softmax_axis", layer) else -1)
        a = F.dropout(a, 0.2 if self.is_wrong("dropout_p", layer) else 0.1, True)
        y = torch.matmul(a, v).transpose(1, 2).reshape(self.batch, self.t, self.d)
        return F.linear(y, b.o, b.ob)

    def forward(self, m, data):
        ids, target = data
        x = F.embedding(ids, m.wte)
        for i in range(self.layers):
            b = getattr(m, f"h{i}")
            eps = 1e-2 if self.is_wrong("eps", i) else 1e-5
            y = self.attention(b, F.layer_norm(x, (self.d,), b.n1, b.n1b, eps), i)
            x = y if self.is_wrong("no_residual", i) else x + y
            y = F.linear(F.layer_norm(x, (self.d,), b.n2, b.n2b, 1e-5), b.f, b.fb)
            y = F.silu(y) if self.gate == "silu" and self.wrong != "tanh_gelu" else \
                F.gelu(y, approximate="tanh") if self.is_wrong("tanh_gelu", i) else F.gelu(y)
            if self.is_wrong("cast_bf16", i) or self.is_wrong("cast_fp16", i):
                low = torch.bfloat16 if self.wrong == "cast_bf16" else torch.float16
                y = y.to(low).to(x.dtype)
            x = x + F.linear(y, b.g, b.gb)
        x = F.linear(F.layer_norm(x, (self.d,), m.nf, m.nfb, 1e-5), m.head).view(-1, self.vocab)
        if self.wrong == "log_softmax":
            return F.nll_loss(torch.log(F.softmax(x, -1)), target)
        return F.cross_entropy(x, target)


class Cnn:
    """Residual convolutions with batch_norm."""

    def __init__(self, rng, wrong):
        self.layers, self.c, self.size, self.batch = rng.choice([2, 3, 4]), 8, 10, 4
        self.wrong, self.at = wrong, rng.randrange(self.layers)

    def build(self, g):
        def p(*shape, scale=0.2, base=0.0):
            return torch.nn.Parameter(base + scale * torch.randn(*shape, generator=g))
        m = torch.nn.Module()
        m.stem = p(self.c, 3, 3, 3)
        for i in range(self.layers):
            b = torch.nn.Module()
            b.c1, b.c2 = p(self.c, self.c, 3, 3), p(self.c, self.c, 3, 3)
            b.n1, b.n1b, b.n2, b.n2b = p(self.c, base=1), p(self.c), p(self.c, base=1), p(self.c)
            m.add_module(f"s{i}", b)
        m.fc, m.fcb = p(10, self.c), p(10)
        return m

    def data(self, g):
        return (torch.randn(self.batch, 3, self.size, self.size, generator=g),
                torch.randint(0, 10, (self.batch,), generator=g))

    def norm(self, x, w, b, wrong):
        mean, var = torch.zeros(self.c, dtype=w.dtype), torch.ones(self.c, dtype=w.dtype)
        return F.batch_norm(x, mean, var, w, b, wrong != "eval_norm", 0.1, 1e-2 if wrong == "eps" else 1e-5)

    def forward(self, m, data):
        x, target = data
        x = F.conv2d(x, m.stem, None, 1, 1)
        for i in range(self.layers):
            b = getattr(m, f"s{i}")
            wrong = self.wrong if i == self.at else None
            y = F.relu(self.norm(F.conv2d(x, b.c1, None, 1, 1), b.n1, b.n1b, wrong))
            y = self.norm(F.conv2d(y, b.c2, None, 1, 1), b.n2, b.n2b, None)
            if wrong in ("cast_bf16", "cast_fp16"):
                y = y.to(torch.bfloat16 if wrong == "cast_bf16" else torch.float16).to(m.fc.dtype)
            x = F.relu(y if wrong == "no_residual" else x + y)
        x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
        x = F.linear(x, m.fc, m.fcb)
        if self.wrong == "log_softmax":
            return F.nll_loss(torch.log(F.softmax(x, -1)), target)
        return F.cross_entropy(x, target)


# ---- faults ---------------------------------------------------------------------

def one_element(y, value):
    z = y.detach().clone()
    flat = z.view(-1) if z.is_contiguous() else z.reshape(-1)
    flat[flat.numel() // 3] = value
    return y + (flat.view(z.shape) - y).detach() if math.isfinite(value) else \
        torch.where(torch.arange(y.numel()).view(y.shape) == y.numel() // 3, torch.full_like(y, value), y)


def half_columns(y, factor):
    n = y.shape[-1] if y.dim() else 1
    w = torch.ones(n, dtype=y.dtype)
    w[: max(1, n // 2)] = factor
    return y * w


def rounded(y, to):
    return y + (y.detach().to(to).to(y.dtype) - y).detach()


OUT = {
    "x1.001": lambda y: y * 1.001, "x1.01": lambda y: y * 1.01, "x1.1": lambda y: y * 1.1,
    "saturated": lambda y: y.clamp(max=float(y.detach().float().max()) / 2),
    "shard_x1.05": lambda y: half_columns(y, 1.05), "shard_x0": lambda y: half_columns(y, 0.0),
    "nan": lambda y: one_element(y, float("nan")), "inf": lambda y: one_element(y, float("inf")),
    "spike": lambda y: one_element(y, 50.0),
    "hidden_bf16": lambda y: rounded(y, torch.bfloat16), "hidden_fp16": lambda y: rounded(y, torch.float16),
    "offset": lambda y: y + 0.05 * float(y.detach().float().pow(2).mean().sqrt()),
    "noise": lambda y: y * (1 + 1e-3 * torch.randn(y.shape, generator=torch.Generator().manual_seed(5)).to(y.dtype)),
    "negated": lambda y: -y, "reversed": lambda y: y.flip(-1),
}
GRAD = {
    "grad_x1.01": lambda g: g * 1.01, "grad_x1.1": lambda g: g * 1.1, "grad_nan": lambda g: g * float("nan"),
    "grad_negated": lambda g: -g, "grad_rounded": lambda g: g.to(torch.bfloat16).to(g.dtype),
    "grad_half": lambda g: half_columns(g, 0.0),
}
WEIGHT = {
    "weight_x1.01": lambda w: w * 1.01, "weight_x1.5": lambda w: w * 1.5,
    "weight_element": lambda w: torch.where(torch.arange(w.numel()).view(w.shape) == 3, w + 1, w),
    "weight_bf16": lambda w: w.to(torch.bfloat16).to(w.dtype),
}
GPT_MODEL = ["eps", "rope", "q_is_k", "scale_d", "no_mask", "softmax_axis", "dropout_p", "no_residual", "tanh_gelu",
             "cast_bf16", "cast_fp16", "log_softmax"]
CNN_MODEL = ["eps", "no_residual", "eval_norm", "cast_bf16", "cast_fp16", "log_softmax"]
OTHER = ["stale_input", "transposed_weight", "data"]
# What an operator of the source is called in a dump; either side's name counts.
MODEL_TRUTH = {"no_mask": "masked_fill", "scale_d": "div", "softmax_axis": "softmax", "dropout_p": "dropout",
               "tanh_gelu": "gelu", "eval_norm": "batch_norm"}


class Faulty:
    """Puts one fault into a run, and afterwards knows the names that may be blamed for it."""

    def __init__(self, kind, victim):
        self.kind, self.victim, self.names, self.before = kind, victim, set(), None

    def __call__(self, name, phase, value):
        op = name.split(".")[1]
        if phase == "args" and op == "linear":
            stale, self.before = self.before, value[0]
            if name == self.victim and self.kind == "stale_input":
                if stale is not None and stale.shape == value[0].shape and not torch.equal(stale, value[0]):
                    self.names.add(name + ".forward")
                    return (stale.detach(),) + value[1:]
            if name == self.victim and self.kind == "transposed_weight" and value[1].shape[0] == value[1].shape[1]:
                self.names.add(name + ".forward")
                return (value[0], value[1].t().contiguous()) + value[2:]
        if name != self.victim:
            return value
        if phase == "out" and self.kind in OUT and isinstance(value, torch.Tensor):
            self.names.add(name + ".forward")
            return OUT[self.kind](value)
        if phase == "grad" and self.kind in GRAD:
            self.names.add(name + ".backward")
            return GRAD[self.kind](value)
        return value


# ---- backgrounds -------------------------------------------------------------------

def split_sums(func, name, args, kwargs):
    """The same sums in another order."""
    op = name.split(".")[1]
    if op == "linear":
        x, w = args[:2]
        n = x.shape[-1] // 2
        y = torch.matmul(x[..., :n], w[:, :n].t()) + torch.matmul(x[..., n:], w[:, n:].t())
        return y if len(args) < 3 or args[2] is None else y + args[2].to(y.dtype)
    if op == "matmul":
        a, b = args
        n = a.shape[-1] // 2
        return torch.matmul(a[..., :n], b[..., :n, :]) + torch.matmul(a[..., n:], b[..., n:, :])
    if op == "conv2d":
        x, w = args[:2]
        n = max(1, x.shape[1] // 2)
        return func(x[:, :n], w[:, :n], None, *args[3:]) + func(x[:, n:], w[:, n:], None, *args[3:])
    if op == "layer_norm":
        x, w, b, eps = args[0], kwargs["weight"], kwargs["bias"], kwargs["eps"]
        mean = x.mean(-1, keepdim=True)
        return (x - mean) / torch.sqrt(((x - mean) ** 2).mean(-1, keepdim=True) + eps) * w + b
    return func(*args, **kwargs)


def implementation(split, seed):
    calls = collections.Counter()

    def implement(func, name, args, kwargs):
        if name.split(".")[1] == "dropout":  # one mask on both sides, whatever their types
            g = torch.Generator().manual_seed(seed * 1000 + calls["dropout"])
            calls["dropout"] += 1
            keep = torch.rand(args[0].shape, generator=g) >= kwargs["p"]
            return args[0] * keep.to(args[0].dtype) / (1 - kwargs["p"])
        return split_sums(func, name, args, kwargs) if split else func(*args, **kwargs)
    return implement


BACKGROUNDS = {
    # golden: threads, split, float64, autocast; target the same
    "same": ((1, 0, 0, 0), (1, 0, 0, 0)), "threads": ((1, 0, 0, 0), (2, 0, 0, 0)), "splitk": ((1, 0, 0, 0), (1, 1, 0, 0)),
    "fp64": ((1, 0, 1, 0), (1, 0, 0, 0)), "bf16": ((1, 0, 0, 0), (1, 0, 0, 1)), "bf16both": ((1, 0, 0, 1), (1, 1, 0, 1)),
    "bf16same": ((1, 0, 0, 1), (1, 0, 0, 1)),
}


def run(seed, make, how, wrong=None, fault=None, edit=None):
    threads, split, double, low = how
    torch.set_num_threads(threads)
    g = torch.Generator().manual_seed(seed)
    net = make(random.Random(seed), wrong)
    model, data = net.build(g), net.data(g)
    if double:
        model = model.double()
        data = tuple(x.double() if x.is_floating_point() else x for x in data)
    if edit:
        data = edit(model, data)
    rec = Recorder(fault, implementation(split, seed))
    auto = torch.autocast("cpu", dtype=torch.bfloat16) if low else contextlib.nullcontext()
    with rec, auto:
        loss = net.forward(model, data)
    loss.backward()
    rec.loss = loss.item()
    rec.add_gradients(model)
    return rec


def forward_names(rec, ops=None):
    names = [e.name[:-len(".forward")] for e in rec.entries if e.name.endswith(".forward")]
    return [n for n in names if ops is None or n.split(".")[1] in ops]


def layer_of(rec, net):
    """Names of forward operators of the faulty layer, by what they are called."""
    return net.at


def floats(rec, backward=False):
    end = ".backward" if backward else ".forward"
    return [e.name[:-len(end)] for e in rec.entries if e.name.endswith(end)
            and any(x.x.is_floating_point() and x.x.numel() > 8 for x in
                    (e.out.values() if backward else e.out) if x.x is not None)]


def weight_edit(kind, clean, rng):
    """Change a parameter; the operators that read it are to blame."""
    def edit(model, data):
        params = [p for n, p in model.named_parameters() if p.dim() >= 2]
        p = params[rng.randrange(len(params))]
        edit.before = p.detach().clone()
        with torch.no_grad():
            p.copy_(WEIGHT[kind](p))
        return data
    return edit


def data_edit(model, data):
    x = data[0].clone()
    flat = x.view(-1)
    flat[1] = (flat[1] + 1) % 64 if not x.is_floating_point() else flat[1] + 1
    return (x,) + data[1:]


def readers(rec, value):
    """Forward operators that read exactly this value."""
    return {e.name for e in rec.entries if e.name.endswith(".forward") and any(
        isinstance(x.x, torch.Tensor) and x.x.shape == value.shape and x.x.dtype == value.dtype and torch.equal(x.x, value)
        for x in flat(e.args) + flat(e.kwargs))}


def model_truth(kind, clean, rec, net):
    """Names in either dump that are the faulty place of the source."""
    layer = net.at
    if kind == "eps":
        op = "layer_norm" if isinstance(net, Gpt) else "batch_norm"
        return {f"Functional.{op}.{2 * layer}.forward"}
    if kind in ("rope", "q_is_k", "no_residual", "cast_bf16", "cast_fp16", "log_softmax"):
        return differing(kind, clean, rec, net)
    word = MODEL_TRUTH[kind]
    name = [n for n in forward_names(clean) if n.split(".")[1] == word]
    at = 2 * layer if kind == "eval_norm" else layer
    return {name[at] + ".forward"} if at < len(name) else set()


def differing(kind, clean, rec, net):
    layer = net.at
    if kind == "log_softmax":
        last = {n + ".forward" for n in forward_names(rec, ("log", "nll_loss"))}
        soft = [n for n in forward_names(rec, ("softmax",))][-1:]
        return last | {n + ".forward" for n in soft} | {"Functional.cross_entropy.0.forward"}
    if kind in ("cast_bf16", "cast_fp16"):
        return {n + ".forward" for n in forward_names(rec, ("to",))}
    if kind == "q_is_k":
        return {f"Torch.matmul.{2 * layer}.forward"}
    if kind == "rope":  # the products with cosine and sine of the first of the two rotations
        mul = [n for n in forward_names(rec, ("__mul__", "mul"))]
        return {n + ".forward" for n in mul[8 * layer:8 * layer + 4]}
    add = [n for n in forward_names(clean, ("__add__", "add"))]
    if isinstance(net, Cnn):
        return {add[layer] + ".forward"}
    return {add[4 * layer + 2] + ".forward"} if len(add) > 4 * layer + 2 else set()


def prepare(seed, kind, background):
    """Golden, clean target and faulty target, with the names to blame; None: no such case."""
    rng = random.Random(f"{seed}/{kind}")
    model_kinds = set(GPT_MODEL) | set(CNN_MODEL)
    make = Gpt if rng.random() < 0.6 else Cnn
    if kind in model_kinds and kind not in (GPT_MODEL if make is Gpt else CNN_MODEL):
        make = Gpt if make is Cnn else Cnn
    if kind in ("stale_input", "transposed_weight"):
        make = Gpt
    golden_how, target_how = BACKGROUNDS[background]
    base = make
    if kind == "tanh_gelu":
        def base(r, wrong):
            net = Gpt(r, wrong)
            net.gate = "gelu"
            return net
    golden = run(seed, base, golden_how)
    clean = run(seed, base, target_how)
    if kind == "none":
        return golden, clean, clean, set()
    net = base(random.Random(seed), kind if kind in model_kinds else None)
    if kind in model_kinds:
        rec = run(seed, base, target_how, wrong=kind)
        return golden, clean, rec, model_truth(kind, clean, rec, net)
    if kind in WEIGHT:
        edit = weight_edit(kind, clean, rng)
        rec = run(seed, base, target_how, edit=edit)
        return golden, clean, rec, readers(clean, edit.before)
    if kind == "data":
        rec = run(seed, base, target_how, edit=data_edit)
        return golden, clean, rec, {rec.entries[0].name}
    victims = floats(clean, backward=kind in GRAD)
    if kind in ("stale_input", "transposed_weight"):
        victims = [v for v in victims if v.split(".")[1] == "linear"][1:]
    fault = Faulty(kind, rng.choice(victims))
    rec = run(seed, base, target_how, fault=fault)
    return golden, clean, rec, fault.names


# ---- what a dump can show ------------------------------------------------------------------

def relative(a, b):
    """How far two tensors are apart: relative L2; infinite where finite meets what is not."""
    a, b = a.double().flatten(), b.double().flatten()
    fine = torch.isfinite(a) & torch.isfinite(b)
    if a.shape != b.shape or not torch.equal(torch.isfinite(a), torch.isfinite(b)):
        return math.inf
    gap, norm = (a - b)[fine].norm().item(), b[fine].norm().item()
    return gap / norm if norm > 0 else float(gap > 0)


def told(a, b):
    """The same for what the statistics of both tell: norm, extremes against the larger, mean against the RMS."""
    if a.numel() != b.numel() or a.numel() == 0:
        return math.inf if a.numel() != b.numel() else 0.0
    x, y = ({k: float(v or 0) for k, v in Writer.statistics(t).items()} for t in (a, b))
    if not all(math.isfinite(v) for v in (*x.values(), *y.values())):
        return math.inf if [math.isfinite(v) for v in x.values()] != [math.isfinite(v) for v in y.values()] else 0.0
    norm, peak = max(x["Norm"], y["Norm"]), max(abs(v) for s in (x, y) for v in (s["Max"], s["Min"]))

    def part(k, whole):
        return abs(x[k] - y[k]) / whole if whole > 0 else 0.0
    return max(part("Norm", norm), part("Max", peak), part("Min", peak), part("Mean", norm / math.sqrt(a.numel())))


def differs(a, b):
    return float(raw(a) != raw(b))


APART = {"tensor": relative, "statistics": told, "md5": differs}


def tensors(rec, name):
    entry = next((e for e in rec.entries if e.name == name), None)
    return entry and [x.x for x in flat(entry.args) + flat(entry.kwargs) + flat(entry.out) if isinstance(x.x, torch.Tensor)]


def shows(mode, names, golden, clean, rec):
    """Does the fault change what is recorded of the operators to blame?

    It does when one of their values is farther from the same run without the fault than that run
    is from the golden one: a smaller change lies within the rounding of these very two runs.
    Operators that not all of the three runs call are there to be seen."""
    for name in names:
        three = [tensors(r, name) for r in (golden, clean, rec)]
        if None in three or len({len(t) for t in three}) != 1:
            return True
        for g, c, f in zip(*three):
            if APART[mode](f, c) > APART[mode](c, g):
                return True
    return False


# ---- scoring -------------------------------------------------------------------------

def suspects(folder):
    start = time.monotonic()
    out = subprocess.run([MSPROBE, "compare", "-tp", f"{folder}/target/step0", "-gp", f"{folder}/golden/step0",
                          "-o", f"{folder}/out", "--format", "json"], capture_output=True, text=True)
    if out.returncode:
        raise SystemExit(f"{folder}: {out.stderr}")
    return json.loads(out.stdout)["suspects"], time.monotonic() - start


def judge(golden, target, mode):
    folder = tempfile.mkdtemp(prefix="faults-")
    try:
        Writer(f"{folder}/golden", mode).write(golden)
        Writer(f"{folder}/target", mode).write(target)
        return suspects(folder)
    finally:
        if os.environ.get("KEEP"):
            print(folder, mode)
        else:
            shutil.rmtree(folder)


def one(job):
    seed, kind, background, modes = job
    try:
        golden, clean, rec, names = prepare(seed, kind, background)
    except RuntimeError as why:
        if kind == "none" or "scalar type" not in str(why):
            raise
        return []  # types that PyTorch itself refuses need no tool to be found
    return score(seed, kind, background, modes, golden, clean, rec, names)


def score(seed, kind, background, modes, golden, clean, rec, names):
    if kind != "none" and (not names or rec.digest() == clean.digest()):
        return []
    results = []
    for mode in modes:
        if mode == "md5" and background not in EXACT:
            continue
        found, seconds = judge(golden, rec, mode)
        got = [s["target"] or s["golden"] for s in found]
        also = {s["golden"] for s in found[:1]}
        place = next((i for i, n in enumerate(got) if n in names), None)
        if kind != "none" and place != 0 and also & names:
            place = 0
        results.append({"mode": mode, "kind": kind, "seed": seed, "background": background, "place": place, "n": len(got),
                        "want": sorted(names), "got": got[:3], "seconds": seconds,
                        "shows": kind == "none" or shows(mode, names, golden, clean, rec),
                        "text": [s["why"] + ": " + s["text"] for s in found[:3]]})
    return results


def jobs_of(which, cases, modes):
    kinds = list(OUT) + list(GRAD) + list(WEIGHT) + sorted(set(GPT_MODEL) | set(CNN_MODEL)) + OTHER
    grounds = list(BACKGROUNDS)
    for i in range(cases):
        yield FIRST_SEED[which] + i, kinds[i % len(kinds)], grounds[(i % len(kinds) + 3 * (i // len(kinds))) % len(grounds)], modes
        yield FIRST_SEED[which] + 50_000 + i, "none", grounds[i % len(grounds)], modes


def share(part, whole):
    return f"{part}/{whole} ({100 * part / whole:.1f} %)" if whole else "-"


def right(results):
    return sum(r["place"] == 0 for r in results)


def report(which, mode, results, verbose):
    faults = [r for r in results if r["kind"] != "none"]
    clean = [r for r in results if r["kind"] == "none"]
    seen = [r for r in faults if r["shows"]]
    hidden = collections.Counter(r["kind"] for r in faults if not r["shows"])
    low = [r for r in seen if r["background"].startswith("bf16")]
    high = [r for r in seen if not r["background"].startswith("bf16")]
    print(f"{which} {mode}: suspect 1 {share(right(faults), len(faults))} of all, {share(right(seen), len(seen))} of those "
          f"that change a recorded value beyond what the clean runs differ by (fp32 {share(right(high), len(high))}, bf16 {share(right(low), len(low))}), "
          f"top 3 {share(sum(r['place'] is not None and r['place'] < 3 for r in seen), len(seen))}, "
          f"false alarms {share(sum(r['n'] > 0 for r in clean), len(clean))}")
    by = collections.OrderedDict()
    for r in faults:
        by.setdefault(r["kind"], []).append(r)
    print("  " + ", ".join(f"{k} {right(v)}/{len(v)}" for k, v in by.items()))
    print("  changes within the rounding of the clean runs: " + (", ".join(f"{k} {n}" for k, n in hidden.items()) or "none"))
    for r in results:
        if verbose and (r["place"] != 0 if r["kind"] != "none" else r["n"] > 0):
            blind = "" if r["shows"] else " (within rounding)"
            print(f"  {r['kind']} seed {r['seed']} {r['background']}{blind} wanted {r['want'][:3]} got {r['got']}")
            for t in r["text"]:
                print(f"      {t}")


SURE = [("x1.1", "same"), ("nan", "splitk"), ("shard_x0", "fp64"), ("eps", "splitk"), ("no_mask", "fp64"),
        ("weight_x1.5", "bf16"), ("q_is_k", "bf16same"), ("grad_half", "same"), ("no_residual", "fp64"),
        ("none", "splitk"), ("none", "bf16"), ("none", "bf16both")]


def check():
    for i, (kind, background) in enumerate(SURE):
        for r in one((500 + i, kind, background, ["statistics", "tensor"])):
            good = r["place"] == 0 if kind != "none" else r["n"] == 0
            words = f"source torch {kind} {background} {r['mode']}"
            print(f"ok {words}" if good else f"not ok {words}: wanted {r['want'][:3]}, got {r['got']}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--cases", type=int, default=246)
    ap.add_argument("--modes", default="statistics,tensor,md5")
    ap.add_argument("--set", dest="which", default="both", choices=("fixed", "unseen", "both"))
    ap.add_argument("--one", help="SEED:KIND:BACKGROUND")
    ap.add_argument("--check", action="store_true", help="a few cases, each of which has to be right")
    ap.add_argument("--first", type=int, help="the first of the unseen seeds, to take others")
    ap.add_argument("-v", dest="verbose", action="store_true")
    o = ap.parse_args()
    FIRST_SEED["unseen"] = o.first or FIRST_SEED["unseen"]
    if torch is None:
        print("skip source torch: no PyTorch")
        return
    if o.check:
        check()
        return
    modes = o.modes.split(",")
    if o.one:
        seed, kind, background = o.one.split(":")
        print(json.dumps(one((int(seed), kind, background, modes)), indent=1))
        return
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        for which in ("fixed", "unseen") if o.which == "both" else (o.which,):
            results = [r for rs in pool.map(one, jobs_of(which, o.cases, modes), chunksize=2) for r in rs]
            for mode in modes:
                report(which, mode, [r for r in results if r["mode"] == mode], o.verbose)


if __name__ == "__main__":
    main()
