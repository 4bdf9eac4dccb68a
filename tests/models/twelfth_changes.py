# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the twelfth set; see twelfth_families.py.

Each family has edits of its own code and takes its share of the general changes below, none of which an earlier set has.
"""
import torch
from torch import nn
import torch.nn.functional as F

import tenth_changes as tenth
import tenth_variations as others
from changes import ANY, Change, on_model, owners, within
from ninth_edits import PRE, in_step
from observed import Places, readers, uses
from seventh_changes import loss_around, on_input
from tenth_tools import harmless_of, mistakes_of
from unseen_changes import adam, by_hand, clean, in_turn, on_batch, patched, weight, wrap


# ---- mistakes -------------------------------------------------------------------------------------------

def layer_mistakes(places, index):
    path, other = places.line(index + 1), places.line(index + 2)
    inside, here = within(path), owners(places.model, path)
    for name, why, function in (
            ("output_absolute", "absolute values passed on", torch.abs), ("output_to_int8", "quantised to 8 bits of the largest value",
             lambda x: (x / x.abs().max() * 127).round() * x.abs().max() / 127),
            ("output_centred", "mean of the batch taken away", lambda x: x - x.mean(0)), ("output_root", "divided by root of 2", lambda x: x / 2 ** 0.5),
            ("output_softplus", "softplus behind it", F.softplus), ("output_half_lost", "half of the samples zero",
             lambda x: torch.cat([x[:len(x) // 2], torch.zeros_like(x[len(x) // 2:])]))):
        yield Change(name, f"{path}: {why}", wrap(path, function), inside)
    for name, why, function in (("input_unit_norm", "input normalised", lambda x: F.normalize(x, dim=-1)), ("input_noisy", "input with noise of a hundredth",
            lambda x: x + 0.01 * torch.randn_like(x)), ("input_other_sample", "input of the sample before", lambda x: x.roll(1, 0))):
        yield Change(name, f"{other}: {why}", on_input(other, function), within(other))
    if other in places.graded:
        yield Change("input_detached", f"{other}: input detached", on_input(other, lambda x: x.detach()), within(other, direction=ANY), "gradient")
    for name, why, function in (("float8_weights", "stored in 8 bits", lambda w: w.to(torch.float8_e4m3fn).to(w.dtype)), ("weights_moved", "moved by a hundredth",
            lambda w: w + 0.01), ("quarters_turned", "rows turned by a quarter", lambda w: w.roll(max(1, len(w) // 4), 0))):
        yield Change(name, f"{path}: weight {why}", weight(path, function), here, "weights")
    yield Change("slope_negated", f"gradient of {other}'s weight negated", tenth.hook_on(other, lambda g: -g), owners(places.model, other) + "|" + PRE, "gradient")
    yield Change("slopes_bf16", "gradients rounded to bf16", tenth.before_step(tenth.each_gradient(lambda g: g.copy_(g.bfloat16().float()))),
        PRE + r"|^[A-Za-z]+\.(?:bfloat16|float|copy_|to)\.\d+\.forward @ ", "gradient")
    norm = places.norm(index)
    if norm:
        yield Change("norm_weight_doubled", f"weight of {norm} doubled", weight(norm, lambda w: 2 * w), within(norm), "weights")


def step_mistakes():
    def of(name, why, apply, truth):
        return Change(name, why, apply, truth, "update")
    yield of("rate_tenth_more", "rate 1.1e-3", adam(lr=1.1e-3), in_step())
    yield of("beta2_short", "beta2 0.9", adam(betas=(0.9, 0.9)), in_step())
    yield of("uphill", "maximises", adam(maximize=True), in_step() + "|" + PRE)
    yield of("decay_in_gradient", "Adam for AdamW", tenth.other(torch.optim.Adam, lr=1e-3, weight_decay=0.01, foreach=False), in_step())
    yield of("rms", "RMSprop", tenth.other(torch.optim.RMSprop, lr=1e-3, foreach=False), in_step())
    yield of("clip_largest", "clipped by the largest element", tenth.clip_with(lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 0.5, norm_type=float("inf"))), PRE)
    def frozen(step):
        make = step.optimizer
        step.optimizer = lambda p: make(p[1:])
    yield of("first_not_given", "the optimizer lacks the first parameter", frozen, in_step())


def data_mistakes(places):
    family, model = places.family, places.model
    floats, ids = tenth.keys_like(family)
    for key in floats[:1]:
        truth = readers(family, model, key)
        for name, why, function in (("centred_again", "normalised again", lambda x: (x - x.mean()) / x.std()), ("channels_swapped", "channels in reverse",
                lambda x: x.flip(1)), ("to_bytes", "read in 8 bits", lambda x: (x * 16).round() / 16)):
            yield Change(f"data_{name}", f"{key}: {why}", on_batch(key, function), truth, "data")
    for key in ids[:1]:
        truth = readers(family, model, key)
        for name, why, function in (("first_repeated", "the first text for all", lambda x: x[:1].expand_as(x).clone()), ("one_less", "ids less by one",
                lambda x: (x - 1).clamp(min=0))):
            yield Change(f"data_{name}", f"{key}: {why}", on_batch(key, function), truth, "data")


def faults(family, model, index):
    places = Places(family, model)
    void = getattr(family, "void", ())
    general = [c for c in (*(layer_mistakes(places, index) if places.line(0) else ()), *step_mistakes(), *data_mistakes(places)) if c.name not in void]
    yield from in_turn(general, index * 3, 6)
    yield from mistakes_of(family, model)


# ---- harmless changes ------------------------------------------------------------------------------------

def halves(m, x):
    """A product in two halves of the features."""
    n = x.shape[-1] // 2
    y = x[..., :n] @ m.weight[:, :n].T + x[..., n:] @ m.weight[:, n:].T
    return y if m.bias is None else y + m.bias


def norm_of_moments(m, x):
    if len(m.normalized_shape) != 1 or m.weight is None or m.bias is None:
        return F.layer_norm(x, m.normalized_shape, m.weight, m.bias, m.eps)
    v, mean = torch.var_mean(x, -1, correction=0, keepdim=True)
    return torch.addcmul(m.bias, (x - mean) / (v + m.eps).sqrt(), m.weight)


def conv_padded_before(m, x):
    if m.padding_mode != "zeros" or isinstance(m.padding, str):
        return m._conv_forward(x, m.weight, m.bias)
    a, b = m.padding
    return F.conv2d(F.pad(x, (b, b, a, a)), m.weight, m.bias, m.stride, 0, m.dilation, m.groups)


def batch_norm_of_moments(m, x):
    v, mean = torch.var_mean(x, (0, *range(2, x.ndim)), correction=0, keepdim=True)
    shape = (1, -1) + (1,) * (x.ndim - 2)
    return (x - mean) * torch.rsqrt(v + m.eps) * m.weight.view(shape) + m.bias.view(shape)


def forms(places):
    family, model = places.family, places.model
    def has(kind):
        return any(type(model.get_submodule(p)) is kind for p in places.called)
    for kind, name, why, function in (
            (nn.Linear, "halves", "features in two halves", halves), (nn.LayerNorm, "moments", "layer norm of moments", norm_of_moments),
            (nn.Conv2d, "padded", "padded before the convolution", conv_padded_before), (nn.BatchNorm2d, "moments2", "batch norm of moments", batch_norm_of_moments),
            (nn.BatchNorm1d, "moments1", "batch norm of moments", batch_norm_of_moments),
            (nn.Embedding, "selected", "rows by index_select", lambda m, x: m.weight.index_select(0, x.reshape(-1)).view(*x.shape, -1)),
            (nn.ReLU, "clamped", "clamp for relu", lambda m, x: x.clamp(min=0)), (nn.SiLU, "silu", "x times sigmoid", lambda m, x: x * torch.sigmoid(x))):
        if has(kind):
            yield clean("form_" + name, why, by_hand(kind, function))
    for name, form, why, function in (
            ("softmax", "softmax_logsumexp", "softmax by logsumexp", lambda plain, x, dim=-1, dtype=None, **k: (lambda y: torch.exp(y - torch.logsumexp(y, dim, True)))(
                x if dtype is None else x.to(dtype))),
            ("cross_entropy", "entropy_nll", "log_softmax and nll_loss", lambda plain, x, y, **k: plain(x, y, **k) if y.is_floating_point() or "label_smoothing" in k
             else F.nll_loss(F.log_softmax(x, 1), y, **k)),
            ("mse_loss", "mse_dot", "squared error by a product", lambda plain, x, y, **k: plain(x, y, **k) if k else torch.dot((x - y).flatten(), (x - y).flatten()) / x.numel()),
            ("gelu", "gelu_ndtr", "gelu by the normal distribution", lambda plain, x, approximate="none": plain(x, approximate=approximate) if approximate != "none"
             else x * torch.special.ndtr(x)),
            ("layer_norm", "norm_native", "native_layer_norm", lambda plain, x, shape, weight=None, bias=None, eps=1e-5: torch.native_layer_norm(x, shape, weight, bias, eps)[0])):
        if uses(family, model, name):
            yield clean("form_" + form, why, patched(name, function))
    if family.hugging:
        yield clean("sdpa", "sdpa for eager", lambda step: step.keys.update(attention="sdpa"))


def scaled_loss(step):
    """As a scaler of losses does: the loss times 1024, the gradients divided before the step."""
    before, after = step.before_backward, step.before_step
    step.before_backward = lambda m, loss: before(m, loss) * 1024.0
    def divide(m):
        for p in m.parameters():
            if p.grad is not None:
                p.grad.mul_(1 / 1024.0)
        after(m)
    step.before_step = divide


def stateless(step):
    loss = step.loss
    def run(m, b):
        from torch.func import functional_call
        values = dict(m.named_parameters())
        return loss(lambda *a, **k: functional_call(m, values, a, k), b)
    step.loss = run


def with_schedule(step):
    make = step.optimizer
    def made(p):
        o = make(p)
        torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1.0)
        return o
    step.optimizer = made


def around_the_step(places):
    family, model = places.family, places.model
    yield clean("again", "the same run", lambda step: None)
    yield clean("two_threads", "two threads", lambda step: setattr(step, "threads", 2))
    yield clean("mixed_bfloat16", "autocast to bfloat16", others.in_context(lambda: torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)))
    yield clean("double", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("low", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    yield clean("anomaly", "anomalies are looked for", others.in_context(lambda: torch.autograd.set_detect_anomaly(True, check_nan=False)))
    yield clean("kept_elsewhere", "activations are packed", others.in_context(
        lambda: torch.autograd.graph.saved_tensors_hooks(lambda x: x.clone(), lambda x: x)))
    yield clean("scaled", "the loss is scaled for float16", scaled_loss)
    yield clean("scheduled", "a constant schedule", with_schedule)
    if "twelfth_own" not in family.loss.__module__:
        yield clean("stateless", "functional_call", stateless)
    def watched(m):
        for p in m.parameters():
            p.register_post_accumulate_grad_hook(lambda q: None)
        for module in list(m.modules())[1:]:
            if not list(module.children()):
                module.register_forward_hook(lambda *a: None)
    yield clean("watched", "hooks that only look", on_model(watched))
    def probed(loss, m, b):
        made = loss(m, b)
        with torch.no_grad():
            torch.stack([p.detach().norm() for p in m.parameters()]).norm()
            made.detach().exp()
        return made
    yield clean("probed", "perplexity and the norm of weights are logged", loss_around(probed))
    def totals(step):
        step.clip = 0
        after = step.before_step
        def run(m):
            after(m)
            grads = [p.grad for p in m.parameters() if p.grad is not None]
            torch.nn.utils.clip_grads_with_norm_(m.parameters(), 1.0, torch.nn.utils.get_total_norm(grads))
        step.before_step = run
    yield clean("clip_in_two", "norm and clipping apart", totals)
    def groups(step):
        step.optimizer = lambda p: torch.optim.AdamW([{"params": p[::2]}, {"params": p[1::2]}], lr=1e-3, weight_decay=0.01, foreach=False)
    yield clean("groups", "two groups in turn", groups)
    yield clean("fused", "a fused optimizer", adam(foreach=False, fused=True))
    yield clean("many", "foreach", adam(foreach=True))
    block = others.block_of(model)
    if block:
        yield clean("recomputed", f"{block} is computed again in backward", others.recomputed(block))
    if getattr(family, "ordered", False):
        yield clean("batch_rolled", "the batch in another order", lambda step: setattr(step, "batch", {k: v.roll(1, 0) for k, v in step.batch.items()}))
    if getattr(family, "vision", False):
        yield clean("channels_last", "channels last", on_model(lambda m: m.to(memory_format=torch.channels_last)))
    if getattr(family, "parallel", False):
        yield clean("parallel", "one rank of a data-parallel training", on_model(others.distributed))


def variations(family, model, index):
    places = Places(family, model)
    void = getattr(family, "void", ())
    yield from (c for c in in_turn([*forms(places), *around_the_step(places)], index * 7, 4) if c.name not in void)
    yield from harmless_of(family, model)
