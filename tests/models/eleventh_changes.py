# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the eleventh set; see eleventh_families.py.

Each family has edits of its own code, and a share of general changes: those of the tenth set in other turns, and the
new ones below.
"""
import functools

import torch
from torch import nn
import torch.nn.functional as F

import tenth_changes as tenth
import tenth_variations as others
from changes import ANY, Change, anywhere, on_model, owners, within
from ninth_edits import PRE, in_step
from observed import Places, readers, uses
from seventh_changes import loss_around, on_input
from tenth_tools import harmless_of, mistakes_of
from unseen_changes import adam, by_hand, clean, in_turn, on_batch, patched, weight, wrap


# ---- mistakes -------------------------------------------------------------------------------------------

def new_mistakes(places, index):
    family, model, path, other = places.family, places.model, places.line(index + 3), places.line(index + 5)
    inside, here = within(path), owners(model, path)
    yield Change("rows_sorted", f"rows of {path} in sorted order", weight(path, lambda w: w[w.flatten(1).sum(1).argsort()]), here, "weights")
    yield Change("float16_weights", f"{path} stored in float16", weight(path, lambda w: w.half().to(w.dtype)), here, "weights")
    yield Change("column_zero", f"a column of {path} is zero", weight(path, lambda w: torch.cat([torch.zeros_like(w[:, :1]), w[:, 1:]], 1)), here,
        "weights")
    yield Change("scaled_by_root", f"{path} begun with another gain", weight(path, lambda w: w * 2 ** 0.5), here, "weights")
    yield Change("output_cut_off", f"{path}: values above 1 lost", wrap(path, lambda x: x.clamp(max=1.0)), inside)
    yield Change("output_in_float16", f"{path}: passed on in float16", wrap(path, lambda x: x.half().to(x.dtype)), inside)
    yield Change("output_jittered", f"{path}: jitter of one percent", wrap(path, lambda x: x * (1 + 0.01 * torch.rand_like(x))), inside)
    yield Change("output_standardised", f"{path}: standardised over all", wrap(path, lambda x: (x - x.mean()) / x.std()), inside)
    yield Change("output_of_two", f"{path}: samples averaged by twos", wrap(path, lambda x: 0.5 * (x + x.flip(0))), inside)
    yield Change("output_gelu", f"{path}: gelu behind it", wrap(path, F.gelu), inside)
    yield Change("input_twice", f"{path}: reads twice its input", on_input(path, lambda x: 2 * x), inside)
    yield Change("input_rolled", f"{path}: reads features shifted by one", on_input(path, lambda x: x.roll(1, -1)), inside)
    def clipped_weight(m):
        module = m.get_submodule(other)
        plain = module.forward
        def run(x):
            keep = module.weight.data
            module.weight.data = keep.clamp(-0.15, 0.15)
            try:
                return plain(x)
            finally:
                module.weight.data = keep
        module.forward = run
    yield Change("weight_clamped_in_use", f"weight of {other} clamped while it is used", on_model(clipped_weight), owners(model, other), "weights")
    yield Change("slope_dropped", f"gradient of {other}'s weight halves", tenth.hook_on(other, lambda g: g * 0.5), owners(model, other) + "|" + PRE,
        "gradient")
    yield Change("slope_of_row", f"first row of {other}'s gradient is zero", tenth.hook_on(other, lambda g: torch.cat([g[:1] * 0, g[1:]])),
        owners(model, other) + "|" + PRE, "gradient")
    yield Change("slopes_sign", "signs of gradients reduced", tenth.before_step(tenth.each_gradient(lambda g: g.copy_(g.sign() * g.abs().mean()))),
        PRE + "|" + anywhere(
        r"sign|abs|mean|__r?mul__|copy_"), "gradient")
    yield Change("slopes_of_largest", "the smaller half of each gradient is dropped", tenth.before_step(tenth.each_gradient(
        lambda g: g.mul_((g.abs() >= g.abs().median()).to(g.dtype)))), PRE + "|" + anywhere(r"abs|median|__ge__|ge|to|mul_"), "gradient")
    yield Change("loss_tenfold", "loss times ten", tenth.after_loss(lambda m, x: 10 * x),
        r"^[A-Za-z]+\.(?:__r?mul__|\w*loss\w*|mean|cross_entropy|__r?truediv__)\.\d+\.\w+ @ $", "loss")
    yield Change("loss_with_l1", "absolute weights added to the loss",
        tenth.after_loss(lambda m, x: x + 1e-3 * m.get_submodule(path).weight.abs().sum()),
                 r"^[A-Za-z]+\.(?:__r?mul__|__r?add__|abs|sum)\.\d+\.\w+ @ $", "loss")


def new_updates():
    def of(name, why, apply, truth):
        return Change(name, why, apply, truth, "update")
    yield of("rate_of_other", "rate 2e-3", adam(lr=2e-3), in_step("mul_|addcdiv_"))
    yield of("decay_half", "decay 0.05", adam(weight_decay=0.05), in_step("mul_"))
    yield of("eps_of_half", "eps 1e-4", adam(eps=1e-4), in_step("add_|__r?add__|addcdiv_"))
    yield of("nesterov", "SGD with Nesterov", tenth.other(torch.optim.SGD, lr=1e-3, momentum=0.9, nesterov=True, foreach=False), in_step())
    yield of("adagrad", "Adagrad", tenth.other(torch.optim.Adagrad, lr=1e-3, foreach=False), in_step())
    yield of("clip_tenth", "clipped to 0.1", tenth.clip_with(lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1)), PRE)
    yield of("clip_twice", "clipped to 1, then to 0.2", tenth.clip_with(lambda m: [torch.nn.utils.clip_grad_norm_(m.parameters(), c) for c in (1.0,
        0.2)] and None), PRE)
    def none(step):
        step.step_times = 0
    yield of("step_left_out", "no step", none, in_step())
    def last_frozen(step):
        make = step.optimizer
        step.optimizer = lambda p: make(p[len(p) // 2:])
    yield of("half_given", "the optimizer is given half of the parameters", last_frozen, in_step())


def new_data(places):
    family, model = places.family, places.model
    floats, ids = tenth.keys_like(family)
    for key in floats[:1]:
        truth = readers(family, model, key)
        for name, why, function in (("clipped", "large values cut", lambda x: x.clamp(max=1.0)),
            ("noisy", "noise of a hundredth", lambda x: x + tenth.seeded(x, 5, 0.01)),
                                    ("exchanged", "two samples exchanged", lambda x: torch.cat([x[1:2], x[:1], x[2:]])), ("halved",
                                     "in half of the unit", lambda x: 0.5 * x),
                                    ("squared", "squared by mistake", lambda x: x * x.abs())):
            yield Change(f"{key}_{name}", f"{key}: {why}", on_batch(key, function), truth, "data")
    for key in ids:
        truth = readers(family, model, key)
        for name, why, function in (("exchanged", "two texts exchanged", lambda x: torch.cat([x[1:2], x[:1], x[2:]])),
            ("shuffled", "ids within a text shuffled", lambda x: x[:, torch.randperm(
                x.shape[1], generator=torch.Generator().manual_seed(2))]), ("last_lost", "the last id is lost", lambda x: torch.cat([x[:, :-1], x[:,
                    -2:-1]], 1))):
            yield Change(f"ids_{name}", why, on_batch(key, function), truth, "data")
    if family.batch()[family.labels].ndim:
        yield Change("labels_exchanged", "labels of two samples exchanged", on_batch(family.labels, lambda y: torch.cat([y[1:2], y[:1], y[2:]])),
            readers(family, model, family.labels), "data")


def faults(family, model, index):
    places = Places(family, model)
    general = [*new_data(places), *new_updates()]
    if places.line(0):
        general += new_mistakes(places, index)
    seen = [c for f in (tenth.layer_mistakes, tenth.weight_mistakes, tenth.gradient_mistakes, tenth.loss_mistakes) for c in f(places,
        index + 1)] if places.line(0) else []
    void = getattr(family, "void", ())
    yield from (c for c in in_turn(general, index * 5, 7) if c.name not in void)
    yield from (c for c in in_turn(seen, index * 7 + 2, 40) if c.name not in void)
    yield from mistakes_of(family, model)


# ---- harmless changes ------------------------------------------------------------------------------------

def line_as_bmm(m, x):
    flat = x.reshape(1, -1, x.shape[-1])
    y = torch.bmm(flat, m.weight.t()[None]).view(*x.shape[:-1], -1)
    return y if m.bias is None else y + m.bias


def line_transposed(m, x):
    y = (m.weight @ x.reshape(-1, x.shape[-1]).t()).t().reshape(*x.shape[:-1], -1)
    return y if m.bias is None else y.add(m.bias)


def norm_by_batch(m, x):
    if len(m.normalized_shape) != 1 or m.weight is None:
        return F.layer_norm(x, m.normalized_shape, m.weight, m.bias, m.eps)
    flat = x.reshape(1, -1, x.shape[-1])
    y = F.batch_norm(flat, None, None, None, None, True, 0.0, m.eps).view_as(x)
    return y * m.weight + (0 if m.bias is None else m.bias)


def conv_in_groups(m, x):
    if m.groups != 1 or m.padding_mode != "zeros":
        return m._conv_forward(x, m.weight, m.bias)
    parts = [F.conv2d(x, w, None, m.stride, m.padding, m.dilation) for w in m.weight.split(max(1, len(m.weight) // 2))]
    y = torch.cat(parts, 1)
    return y if m.bias is None else y + m.bias.view(-1, 1, 1)


def new_variations(places):
    family, model = places.family, places.model
    def has(kind):
        return any(type(model.get_submodule(p)) is kind for p in places.called)
    for kind, name, why, function in (
            (nn.Linear, "bmm", "bmm for linear", line_as_bmm), (nn.Linear, "line_turned", "the product turned", line_transposed), (nn.LayerNorm,
             "norm_batch", "batch norm of rows", norm_by_batch),
            (nn.Conv2d, "conv_split", "output channels in two parts", conv_in_groups), (nn.Embedding, "gathered", "rows by indexing", lambda m,
             x: m.weight[x]),
            (nn.GELU, "gelu_erf", "gelu by erf", lambda m, x: 0.5 * x * (1 + torch.erf(x / 2 ** 0.5)) if m.approximate == "none" else F.gelu(x,
             approximate=m.approximate)),
            (nn.ReLU, "relu_where", "where for relu", lambda m, x: torch.where(x > 0, x, torch.zeros_like(x)))):
        if has(kind):
            yield clean("form_" + name, why, by_hand(kind, function))
    for name, form, why, function in (
            ("softmax", "softmax_logs", "softmax by logarithms", lambda plain, x, dim=-1, dtype=None,
             **k: (x if dtype is None else x.to(dtype)).log_softmax(dim).exp()),
            ("cross_entropy", "entropy_rows", "cross entropy row by row", lambda plain, x, y,
             **k: plain(x, y, **k) if k or y.is_floating_point() else torch.stack([plain(a[None], c[None]) for a, c in zip(x, y)]).mean()),
            ("mse_loss", "mse_norm", "squared error by a norm", lambda plain, x, y,
             **k: plain(x, y, **k) if k else torch.linalg.vector_norm(x - y).pow(2) / x.numel()),
            ("relu", "relu_product", "relu as a product", lambda plain, x, inplace=False: x * (x > 0)),
            ("scaled_dot_product_attention", "sdpa_math", "attention in parts of the batch", lambda plain, q, k, v, attn_mask=None, *a,
             **r: plain(q, k, v, attn_mask, *a, **r) if attn_mask is not None or len(q) < 2
             else torch.cat([plain(q[:1], k[:1], v[:1], None, *a, **r), plain(q[1:], k[1:], v[1:], None, *a, **r)]))):
        if uses(family, model, name):
            yield clean("form_" + form, why, patched(name, function))
    line = places.line(index_of(family))
    if line:
        yield clean("line_recomputed", f"{line} is computed again in backward", others.recomputed(line))
        yield clean("line_cloned", f"{line}: cloned, zero taken away", wrap(line, lambda x: x.clone() - 0.0))
        yield clean("line_times_one", f"{line}: times one", wrap(line, lambda x: x * 1.0))
        yield clean("line_reshaped", f"{line}: flattened and back", wrap(line, lambda x: x.reshape(-1).view(x.shape)))
    def logged(loss, m, b):
        made = loss(m, b)
        with torch.no_grad():
            made.detach().item()
            [p.abs().max() for p in m.parameters()]
        return made
    yield clean("logged", "loss and weights are logged", loss_around(logged))
    yield clean("same_again", "the same run", lambda step: None)
    yield clean("threads", "three threads", lambda step: setattr(step, "threads", 3))
    if getattr(family, "ordered", False):
        yield clean("reversed_batch", "the batch in reverse", lambda step: setattr(step, "batch", {k: v.flip(0) for k, v in step.batch.items()}))
    if getattr(family, "parts", 0) and not others.has_batch_norm(model):
        yield clean("parts", "micro batches", lambda step: setattr(step, "parts", family.parts))
    yield clean("half_autocast", "autocast to float16", others.in_context(lambda: torch.autocast("cpu", dtype=torch.float16)))
    yield clean("brain", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    yield clean("doubled", "float64", lambda step: setattr(step, "dtype", torch.float64))
    if getattr(family, "parallel", False):
        yield clean("parallel", "one rank of a data-parallel training", on_model(others.distributed))
    yield clean("step_many", "foreach", adam(foreach=True))
    yield clean("step_one", "fused", adam(foreach=False, fused=True))
    def hand(step):
        step.optimizer = lambda p: tenth.UncorrectedAdam(p, right=True)
    yield clean("step_hand", "AdamW by hand", hand)
    def zeroed(step):
        plain = step.after_step
        def run(m, o):
            plain(m, o)
            o.zero_grad(set_to_none=False)
        step.after_step = run
    yield clean("zeroed_after", "gradients set to zero after the step", zeroed)


def index_of(family):
    return len(family.name)


def variations(family, model, index):
    places = Places(family, model)
    void = getattr(family, "void", ())
    yield from (c for c in in_turn(new_variations(places), index * 3, 7) if c.name not in void)
    yield from harmless_of(family, model)
