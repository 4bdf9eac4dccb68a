# SPDX-License-Identifier: MIT
"""Harmless changes of the tenth set that any model may take; see tenth_families.py."""
import contextlib
import functools

import torch
from torch import nn
import torch.nn.functional as F

from changes import on_model
from observed import Places, uses
from seventh_changes import loss_around, on_input
from tenth_tools import harmless_of
from unseen_changes import adam, by_hand, clean, in_turn, on_batch, patched, wrap

SHARE = 8


def has_batch_norm(model):
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())


def in_context(make):
    def apply(step):
        plain = step.context
        @contextlib.contextmanager
        def both():
            with plain(), make():
                yield
        step.context = both
    return apply


@contextlib.contextmanager
def deterministic():
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def block_of(model):
    """A module with parts of its own, that is called with tensors."""
    return next((n for n, m in model.named_modules() if n and len(list(m.children())) > 1 and not isinstance(m, (nn.ModuleList, nn.ModuleDict))),
        None)


def recomputed(path, reentrant=False):
    def change(m):
        from torch.utils.checkpoint import checkpoint
        module = m.get_submodule(path)
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=reentrant)
    return on_model(change)


def how_it_runs(places):
    family, model = places.family, places.model
    yield clean("same", "the same run", lambda step: None)
    yield clean("two_threads", "two threads", lambda step: setattr(step, "threads", 2))
    yield clean("double", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("mixed", "autocast to bfloat16", in_context(lambda: torch.autocast("cpu", dtype=torch.bfloat16)))
    yield clean("low", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    yield clean("deterministic", "deterministic algorithms", in_context(deterministic))
    yield clean("no_onednn", "without oneDNN", in_context(lambda: torch.backends.mkldnn.flags(enabled=False)))
    if family.vision:
        yield clean("last", "channels last", on_model(lambda m: m.to(memory_format=torch.channels_last)))
    block = block_of(model)
    if block and block in places.watched_blocks:
        yield clean("recomputed", f"{block} is computed again in backward", recomputed(block))
        yield clean("recomputed_old", f"{block} is computed again in backward, the old way",
            recomputed(block, True) if block in places.graded else lambda step: None)
    if getattr(family, "ordered", False):
        yield clean("other_order", "the batch in another order", lambda step: setattr(step, "batch", {
            k: torch.cat([v[1:], v[:1]]) for k, v in step.batch.items()}))
    if getattr(family, "parts", 0) and not has_batch_norm(model):
        yield clean("in_parts", "micro batches", lambda step: setattr(step, "parts", family.parts))
    if getattr(family, "parallel", False):
        yield clean("one_rank", "one rank of a data-parallel training", on_model(distributed))


def distributed(m):
    import tempfile
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(m, static_graph=True)


def who_calls_it(places):
    family = places.family
    def measured(loss, m, b):
        made = loss(m, b)
        with torch.no_grad():
            for p in m.parameters():
                p.norm().add(p.abs().mean())
            made.detach().exp()
        return made
    yield clean("measured", "norms of weights are logged", loss_around(measured))
    def warmed(loss, m, b):
        with torch.no_grad():
            m.eval()
            loss(m, {k: v[:2] if v.ndim else v for k, v in b.items()} if getattr(family, "ordered", False) else b)
            m.train()
        return loss(m, b)
    if getattr(family, "pure", True):
        yield clean("validated", "validated before the step", loss_around(warmed))
    yield clean("by_autograd", "gradients by autograd.grad", by_grad)
    yield clean("none_then_zero", "gradients begin as zeros",
        on_model(lambda m: [setattr(p, "grad", torch.zeros_like(p)) for p in m.parameters() if p.requires_grad] and None))
    yield clean("hooked", "hooks on weights and modules", on_model(hooked))
    def loaded(m):
        state = {k: v.clone() for k, v in m.state_dict().items()}
        m.load_state_dict(state)
    yield clean("reloaded", "the state is loaded again", on_model(loaded))
    yield clean("loss_summed", "the loss as a sum of one", lambda step: setattr(
        step, "before_backward", lambda m, x, f=step.before_backward: torch.stack([f(m, x)]).sum()))


def by_grad(step):
    plain = step.before_backward
    def run(m, loss):
        made = plain(m, loss)
        learn = [p for p in m.parameters() if p.requires_grad]
        for p, g in zip(learn, torch.autograd.grad(made, learn, retain_graph=True, allow_unused=True)):
            p.grad = g
        return made.detach().clone().requires_grad_()
    step.before_backward = run


def hooked(m):
    for x in m.modules():
        x.register_forward_pre_hook(lambda m, a: None)
    for p in m.parameters():
        if p.requires_grad:
            p.register_post_accumulate_grad_hook(lambda p: None)


# ---- other forms of layers ---------------------------------------------------------------------------

def conv_by_unfold(m, x):
    if m.groups != 1 or m.padding_mode != "zeros" or isinstance(m.padding, str):
        return m._conv_forward(x, m.weight, m.bias)
    cols = F.unfold(x, m.kernel_size, m.dilation, m.padding, m.stride)
    y = m.weight.flatten(1) @ cols
    high = (x.shape[2] + 2 * m.padding[0] - m.dilation[0] * (m.kernel_size[0] - 1) - 1) // m.stride[0] + 1
    y = y if m.bias is None else y + m.bias[:, None]
    return y.view(len(x), len(m.weight), high, -1)


def conv1_as_conv2(m, x):
    if isinstance(m.padding, str):
        return m._conv_forward(x, m.weight, m.bias)
    y = F.conv2d(x.unsqueeze(2), m.weight.unsqueeze(2), m.bias, (1, m.stride[0]), (0, m.padding[0]), (1, m.dilation[0]), m.groups)
    return y.squeeze(2)


def line_as_addmm(m, x):
    flat = x.reshape(-1, x.shape[-1])
    y = flat.mm(m.weight.t()) if m.bias is None else torch.addmm(m.bias, flat, m.weight.t())
    return y.view(*x.shape[:-1], -1)


def line_as_conv(m, x):
    y = F.conv1d(x.reshape(-1, x.shape[-1], 1), m.weight.unsqueeze(-1), m.bias)
    return y.view(*x.shape[:-1], -1)


def line_by_samples(m, x):
    return torch.stack([F.linear(y, m.weight, m.bias) for y in x.unbind(0)])


def table_as_product(m, x):
    return F.one_hot(x, len(m.weight)).to(m.weight.dtype) @ m.weight


def table_as_rows(m, x):
    return m.weight.index_select(0, x.reshape(-1)).view(*x.shape, -1)


def norm_as_group(m, x):
    if len(m.normalized_shape) != 1 or m.weight is None:
        return F.layer_norm(x, m.normalized_shape, m.weight, m.bias, m.eps)
    y = F.group_norm(x.reshape(-1, x.shape[-1]), 1, m.weight, m.bias, m.eps)
    return y.view_as(x)


def norm_in_double(m, x):
    w, b = (None if t is None else t.double() for t in (m.weight, m.bias))
    return F.layer_norm(x.double(), m.normalized_shape, w, b, m.eps).to(x.dtype)


def batch_norm_functional(m, x):
    return torch.batch_norm(x, m.weight, m.bias, m.running_mean, m.running_var, True, m.momentum or 0.1, m.eps, False)


def group_norm_by_hand(m, x):
    y = x.reshape(len(x), m.num_groups, -1)
    y = (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, unbiased=False, keepdim=True) + m.eps)
    shape = [1, -1] + [1] * (x.ndim - 2)
    return y.view_as(x) * m.weight.view(shape) + m.bias.view(shape)


FORMS = [(nn.Linear, "addmm", "addmm for linear", line_as_addmm), (nn.Linear, "line_conv", "a convolution for linear", line_as_conv),
         (nn.Linear, "line_samples", "linear sample by sample", line_by_samples), (nn.Conv2d, "unfold", "unfold and a product for conv2d",
          conv_by_unfold),
         (nn.Conv1d, "conv_wide", "conv2d for conv1d", conv1_as_conv2), (nn.Embedding, "one_hot", "a product for embedding", table_as_product),
         (nn.Embedding, "rows", "index_select for embedding", table_as_rows), (nn.LayerNorm, "norm_group", "group_norm for layer_norm",
          norm_as_group),
         (nn.LayerNorm, "norm_double", "layer norms in float64", norm_in_double), (nn.BatchNorm2d, "norm_torch", "torch.batch_norm",
          batch_norm_functional),
         (nn.BatchNorm1d, "norm_torch1", "torch.batch_norm", batch_norm_functional), (nn.GroupNorm, "groups_by_hand", "group norm by hand",
          group_norm_by_hand),
         (nn.ReLU, "relu_clamp", "clamp for relu", lambda m, x: x.clamp(min=0)), (nn.SiLU, "silu_hand", "silu by hand", lambda m,
          x: x * torch.sigmoid(x)),
         (nn.Sigmoid, "sigmoid_tanh", "sigmoid by tanh", lambda m, x: 0.5 * (1 + torch.tanh(0.5 * x)))]


def other_layers(places):
    family, model = places.family, places.model
    for kind, name, why, function in FORMS:
        if name not in getattr(family, "no_forms", ()) and any(type(model.get_submodule(p)) is kind for p in places.called):
            yield clean("form_" + name, why, by_hand(kind, function))
    line = next((p for p in places.called if type(model.get_submodule(p)) in (nn.Linear, nn.Conv1d, nn.Conv2d)), None)
    if line:
        yield clean("in_contiguous", f"input of {line} copied", on_input(line, lambda x: x.clone().contiguous()))
        yield clean("out_in_parts", f"output of {line} split and joined", wrap(line, lambda x: torch.cat([x[..., :1], x[..., 1:]], -1)))
        yield clean("out_added_zero", f"zero added to {line}", wrap(line, lambda x: x + 0.0))
        yield clean("out_dropout_off", f"a dropout of 0 behind {line}", wrap(line, lambda x: F.dropout(x, 0.0)))
        def parametrised(m):
            nn.utils.parametrize.register_parametrization(m.get_submodule(line), "weight", nn.Identity())
        yield clean("parametrised", f"weight of {line} through an identity", on_model(parametrised))


# ---- other forms of functions --------------------------------------------------------------------------

def softmax_by_hand(plain, x, dim=-1, dtype=None, **k):
    x = x if dtype is None else x.to(dtype)
    e = (x - x.amax(dim, keepdim=True).detach()).exp()
    return e / e.sum(dim, keepdim=True)


def sdpa_by_hand(plain, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    s = q @ k.transpose(-2, -1) * (scale if scale is not None else q.shape[-1] ** -0.5)
    if is_causal:
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
    if attn_mask is not None:
        s = s.masked_fill(~attn_mask, float("-inf")) if attn_mask.dtype == torch.bool else s + attn_mask
    return s.softmax(-1) @ v


def entropy_by_logs(plain, x, y, ignore_index=-100, reduction="mean", label_smoothing=0.0, weight=None, **k):
    if y.is_floating_point() or label_smoothing or weight is not None or reduction != "mean":
        return plain(x, y, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, weight=weight, **k)
    logs = x - torch.logsumexp(x, 1, keepdim=True)
    live = y != ignore_index
    picked = logs.gather(1, y.clamp(min=0).unsqueeze(1)).squeeze(1)
    return -(picked * live.to(x.dtype)).sum() / live.sum()


def other_functions(places):
    family, model = places.family, places.model
    for name, form, why, function in (
            ("softmax", "softmax_hand", "softmax by hand", softmax_by_hand), ("scaled_dot_product_attention", "sdpa_hand", "attention by hand",
             sdpa_by_hand),
            ("cross_entropy", "entropy_logs", "cross entropy by logarithms", entropy_by_logs), ("relu", "relu_max", "maximum with zero for relu",
             lambda plain, x, inplace=False: torch.maximum(
                x, torch.zeros_like(x))), ("silu", "silu_product", "silu as a product", lambda plain, x, inplace=False: x * x.sigmoid()),
            ("mse_loss", "mse_hand", "squared error by hand", lambda plain, x, y, reduction="mean",
             **k: (x - y).square().mean() if reduction == "mean" else plain(x, y, reduction=reduction, **k)),
            ("gelu", "gelu_hand", "gelu by hand", lambda plain, x,
             approximate="none": x * 0.5 * (1 + torch.erf(x * 0.5 ** 0.5)) if approximate == "none" else plain(x, approximate=approximate)),
            ("normalize", "normalize_hand", "unit vectors by hand", lambda plain, x, p=2.0, dim=1,
             eps=1e-12: x / x.norm(dim=dim, keepdim=True).clamp(min=eps)),
            ("binary_cross_entropy_with_logits", "bce_logs", "binary entropy by logsigmoid", lambda plain, x, y, reduction="mean",
             **k: -(y * F.logsigmoid(x) + (1 - y) * F.logsigmoid(
                -x)).mean() if reduction == "mean" and not k else plain(x, y, reduction=reduction, **k))):
        if form not in getattr(family, "no_forms", ()) and uses(family, model, name):
            yield clean("form_" + form, why, patched(name, function))


# ---- other ways to update ---------------------------------------------------------------------------------

def clip_by_hand(m, limit=1.0):
    slopes = [p.grad for p in m.parameters() if p.grad is not None]
    norm = torch.sqrt(sum(g.pow(2).sum() for g in slopes))
    for g in slopes:
        g.mul_((limit / (norm + 1e-6)).clamp(max=1.0))


def other_updates(places):
    yield clean("step_foreach", "foreach", adam(foreach=True))
    yield clean("step_fused", "fused", adam(foreach=False, fused=True))
    def by_hand_step(step):
        from tenth_changes import UncorrectedAdam
        step.optimizer = lambda p: UncorrectedAdam(p, right=True)
    yield clean("step_by_hand", "AdamW by hand", by_hand_step)
    def groups(step):
        step.optimizer = lambda p: torch.optim.AdamW([{"params": p[::2]}, {"params": p[1::2]}], lr=1e-3, weight_decay=0.01, foreach=False)
    yield clean("step_groups", "two groups of equal settings", groups)
    def hand(step):
        step.clip = 0
        step.before_step = lambda m: clip_by_hand(m)
    yield clean("clip_hand", "clipped by hand", hand)
    def foreach(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, foreach=True)
    yield clean("clip_foreach", "clipped by foreach", foreach)
    def averaged(step):
        def run(m, o):
            step.average = [p.detach().clone().mul_(0.99).add_(p.detach(), alpha=0.01) for p in m.parameters()]
        step.after_step = run
    yield clean("average_beside", "an average of the weights beside", averaged)
    def scheduled(step):
        make = step.optimizer
        def run(p):
            o = make(p)
            step.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(o, 100)
            return o
        step.optimizer, step.after_step = run, lambda m, o: step.schedule.step()
    yield clean("scheduled_after", "a schedule that acts from the next step on", scheduled)


def variations(family, model, index):
    places = Places(family, model)
    places.watched_blocks = {n for n, m in model.named_modules()}
    plain = family.loop.__name__ == "<lambda>"
    general = [*how_it_runs(places), *who_calls_it(places), *other_layers(places), *other_functions(places)]
    if plain:
        general += other_updates(places)
    void = getattr(family, "void", ())
    yield from (c for c in in_turn(general, index * 3, SHARE) if c.name not in void)
    yield from harmless_of(family, model)
