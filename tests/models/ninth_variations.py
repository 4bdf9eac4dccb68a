# SPDX-License-Identifier: MIT
"""Harmless changes of the ninth set: the same model run otherwise, other forms of the same, another loop."""
import copy
import functools

import torch
from torch import nn
import torch.nn.functional as F

import ninth_loops as loops
from changes import on_model
from ninth_edits import VARIATIONS, VOID, optimizer, variation_edits
from observed import Places, uses
from seventh_changes import loss_around, on_input
from unseen_changes import adam, by_hand, clean, in_turn, on_batch, patched, wrap


# ---- changes that are no mistakes: how the model runs -----------------------------------------------------

def batch_free(model):
    return not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())


def again(path):
    """The module's forward pass is computed again in the backward pass."""
    def change(m):
        from torch.utils.checkpoint import checkpoint
        module = m.get_submodule(path)
        module.forward = functools.partial(checkpoint, module.forward, use_reentrant=False)
    return on_model(change)


def around(owner, name, function):
    return patched(name, function, owner)


def flat_gradients(m):
    """Gradients are views of one buffer, as in buckets of a distributed training."""
    learn = [p for p in m.parameters() if p.requires_grad]
    flat = torch.zeros(sum(p.numel() for p in learn), dtype=learn[0].dtype)
    at = 0
    for p in learn:
        p.grad = flat[at:at + p.numel()].view(p.shape)
        at += p.numel()


def distributed(m):
    """One rank of a data-parallel training."""
    import tempfile
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
    return nn.parallel.DistributedDataParallel(m)


MICRO = ("pvtv2", "gmlp", "cycle", "maml", "pooled", "pixart")
ORDERED = ("olmo", "starcoder2", "exaone4", "gpt_neo", "roformer", "umt5", "speech2text", "pvtv2", "decisions", "pixart", "gmlp", "lraspp", "cells",
           "longconv", "transducer", "maml", "barlow", "cycle", "tracker", "spiking", "columns", "pooled", "sasrec", "tasks")


def run_variations(places):
    family, model = places.family, places.model
    mixed = family.loop is loops.scaled
    yield clean("again", "the same run", lambda step: None)
    yield clean("threads4", "four threads", lambda step: setattr(step, "threads", 4))
    yield clean("float64", "float64", lambda step: setattr(step, "dtype", torch.float64))
    if not mixed:
        yield clean("autocast", "autocast to bfloat16", lambda step: setattr(step, "context", lambda: torch.autocast("cpu", dtype=torch.bfloat16)))
        yield clean("bfloat16", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    else:
        yield clean("no_autocast", "no autocast", lambda step: setattr(step, "context", torch.enable_grad))
    yield clean("autocast_half", "autocast to float16", lambda step: setattr(step, "context", lambda: torch.autocast("cpu", dtype=torch.float16)))
    if family.vision:
        yield clean("channels_last", "channels last", on_model(lambda m: m.to(memory_format=torch.channels_last)))
        yield clean("inputs_channels_last", "inputs with channels last", on_batch(
            "pixel_values", lambda x: x.contiguous(memory_format=torch.channels_last)))
    yield clean("mkldnn_off", "without oneDNN", lambda step: setattr(
        step, "context", lambda f=step.context: Both(f(), torch.backends.mkldnn.flags(enabled=False))))
    yield clean("anomalies", "anomalies are looked for", lambda step: setattr(
        step, "context", lambda f=step.context: Both(f(), torch.autograd.detect_anomaly(check_nan=False))))
    if family.hugging:
        if family.name not in ("gpt_neo", "roformer", "pvtv2"):
            yield clean("sdpa", "SDPA for eager attention", lambda step: step.keys.update(attention="sdpa"))
        for name, reentrant in (("checkpoint", False), ("checkpoint_reentrant", True)):
            yield clean(name, "layers are computed again", on_model(lambda m, r=reentrant: m.gradient_checkpointing_enable({"use_reentrant": r})))
    if family.name in ORDERED:
        yield clean("batch_order", "the batch in another order", lambda step: setattr(step, "batch", {
            k: v if k == "edges" else torch.cat([v[2:], v[:2]]) for k, v in step.batch.items()}))
    if family.name in MICRO and batch_free(model):
        yield clean("micro_batches", "two micro batches" if family.name != "maml" else "three", lambda step: setattr(
            step, "parts", {"maml": 3, "cycle": 3, "pixart": 3, "pooled": 5, "gmlp": 5}.get(family.name, 2)))
    if family.name in ("nanogpt",):
        yield clean("one_batch", "one batch", lambda step: setattr(step, "parts", 1))


def call_variations(places):
    """How the model is called and by whom."""
    family = places.family
    def watched(m):
        for x in m.modules():
            x.register_forward_hook(lambda m, a, out: None)
        for p in m.parameters():
            if p.requires_grad:
                p.register_hook(lambda g: g.detach().abs().max() and None)
    yield clean("watched", "hooks look at everything", on_model(watched))
    yield clean("copied", "a deep copy of the model", on_model(copy.deepcopy))
    def functional(loss, m, b):
        weights = {**dict(m.named_parameters()), **dict(m.named_buffers())}
        with torch.nn.utils.stateless._reparametrize_module(m, weights):
            return loss(m, b)
    yield clean("functional", "weights are given to the call", loss_around(functional))
    def sampled(loss, m, b):
        m.eval()
        with torch.inference_mode():
            loss(m, b)
        m.train()
        return loss(m, b)
    if not getattr(family, "loop", None) is loops.in_groups and family.name not in ("maml", "actor"):
        yield clean("evaluated", "evaluated before the step", loss_around(sampled))
    if family.name in ("olmo", "starcoder2", "exaone4", "roformer", "pvtv2", "gmlp", "longconv", "columns", "barlow", "spiking", "transducer"):
        yield clean("data_parallel", "one rank of a data-parallel training", on_model(distributed))
    if family.name in ("pvtv2", "gmlp", "longconv", "cycle", "pooled", "tracker"):
        def compile_one(m):
            for name, x in m.named_modules():
                if isinstance(x, nn.Linear):
                    x.forward = torch.compile(x.forward, backend="aot_eager")
                    return
        yield clean("compiled", "a layer is compiled", on_model(compile_one))


class Both:
    def __init__(self, *contexts):
        self.contexts = contexts

    def __enter__(self):
        for c in self.contexts:
            c.__enter__()

    def __exit__(self, *e):
        for c in reversed(self.contexts):
            c.__exit__(*e)


# ---- other forms of the same ------------------------------------------------------------------------------

def joined(*names):
    """Layers that read the same input become one product, whose parts they return."""
    def change(m):
        for owner in m.modules():
            parts = [getattr(owner, n, None) for n in names]
            if not all(isinstance(p, nn.Linear) for p in parts):
                continue
            kept = {}
            def lead(x, parts=parts, kept=kept):
                w = torch.cat([p.weight for p in parts])
                b = None if parts[0].bias is None else torch.cat([p.bias for p in parts])
                made = F.linear(x, w, b).split([len(p.weight) for p in parts], -1)
                kept.update(enumerate(made))
                return kept[0]
            parts[0].forward = lead
            for i, p in enumerate(parts[1:], 1):
                p.forward = lambda x, i=i, kept=kept: kept[i]
    return on_model(change)


def split_line(path):
    """One product becomes two, over halves of its input."""
    def change(m):
        w = m.get_submodule(path)
        half = w.weight.shape[1] // 2
        def forward(x):
            y = x[..., :half] @ w.weight[:, :half].t() + x[..., half:] @ w.weight[:, half:].t()
            return y if w.bias is None else y + w.bias
        w.forward = forward
    return on_model(change)


def batch_norm_by_hand(m, x):
    axes = [0, *range(2, x.ndim)]
    mean, var = x.mean(axes, keepdim=True), x.var(axes, unbiased=False, keepdim=True)
    y = (x - mean) / (var + m.eps).sqrt()
    shape = [1, -1] + [1] * (x.ndim - 2)
    return y if m.weight is None else y * m.weight.view(shape) + m.bias.view(shape)


def gelu_by_erf(plain, x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1.0 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)))
    return x * 0.5 * (1.0 + torch.erf(x * 0.7071067811865476))


def entropy_by_gather(plain, x, y, ignore_index=-100, reduction="mean", label_smoothing=0.0, **k):
    if label_smoothing or reduction not in ("mean", "sum"):
        return plain(x, y, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, **k)
    live = y != ignore_index
    safe = torch.where(live, y, torch.zeros_like(y))
    each = torch.logsumexp(x, 1) - x.gather(1, safe.unsqueeze(1)).squeeze(1)
    each = torch.where(live, each, torch.zeros_like(each))
    return each.sum() / live.sum() if reduction == "mean" else each.sum()


def entropy_one_hot(plain, x, y, ignore_index=-100, reduction="mean", label_smoothing=0.0, **k):
    if reduction != "mean" or (y == ignore_index).any():
        return plain(x, y, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing, **k)
    hot = F.one_hot(y, x.shape[1]).to(x.dtype)
    return plain(x, hot.movedim(-1, 1), label_smoothing=label_smoothing)


def bce_by_softplus(plain, x, y, weight=None, reduction="mean", **k):
    each = F.softplus(x) - x * y
    each = each if weight is None else each * weight
    return each if reduction == "none" else each.sum() if reduction == "sum" else each.mean()


def line_variations(places):
    """Linear layers, joined, split and computed otherwise."""
    family, model = places.family, places.model
    line = next((p for p in places.called if type(model.get_submodule(p)) is nn.Linear and model.get_submodule(p).weight.shape[1] % 2 == 0), None)
    if any(isinstance(getattr(m, "q_proj", None), nn.Linear) for m in model.modules()) and family.name not in ("speech2text",):
        yield clean("qkv_joined", "one product for q, k and v", joined("q_proj", "k_proj", "v_proj"))
    if any(isinstance(getattr(m, "gate_proj", None), nn.Linear) for m in model.modules()):
        yield clean("gate_up_joined", "one product for gate and up", joined("gate_proj", "up_proj"))
    if line and family.name not in ("sasrec",):
        yield clean("line_split", f"{line} as two products", split_line(line))
        yield clean("einsum_lines", "einsum for linear", by_hand(nn.Linear, lambda m, x: (
            torch.einsum("...i,oi->...o", x, m.weight) if m.bias is None else torch.einsum("...i,oi->...o", x, m.weight) + m.bias)))
        yield clean("dropouts", f"dropout of 0 before {line}", on_input(line, lambda x: F.dropout(x, 0.0, True)))
        yield clean("chains", f"input of {line} turned and turned back", on_input(line, lambda x: x.flatten().view(x.shape).transpose(0, -1).contiguous().transpose(0, -1)))
        yield clean("clone_behind", f"{line} cloned and made contiguous", wrap(line, lambda x: x.clone().contiguous()))
        yield clean("up_and_down", f"{line} computed in float64", on_model(lambda m: setattr(m.get_submodule(line), "forward", functools.partial(
            lambda w, x: F.linear(x.double(), w.weight.double(), None if w.bias is None else w.bias.double()).to(x.dtype), m.get_submodule(line)))))
        yield clean("again_one", f"{line} is computed again", again(line))


def layer_variations(places):
    """Norms, convolutions and embeddings."""
    family, model = places.family, places.model
    def has(kind):
        return any(type(model.get_submodule(p)) is kind for p in places.called)
    if has(nn.LayerNorm):
        yield clean("native_norm", "native_layer_norm", by_hand(nn.LayerNorm, lambda m, x: torch.native_layer_norm(
            x, m.normalized_shape, m.weight, m.bias, m.eps)[0]))
        yield clean("norm_by_moments", "layer norm by moments", by_hand(nn.LayerNorm, lambda m, x: (lambda a, b: (
            (x - a) * torch.rsqrt(b + m.eps) * (1.0 if m.weight is None else m.weight) + (0.0 if m.bias is None else m.bias)))(
                x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True))))
    for kind in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
        if has(kind):
            yield clean("batch_norm_by_hand_" + kind.__name__[-2:], "batch norm by hand", by_hand(kind, batch_norm_by_hand))
    if has(nn.Conv2d):
        def turned(m, x):
            y = m._conv_forward(x.transpose(2, 3), m.weight.transpose(2, 3), m.bias)
            return y.transpose(2, 3)
        square = all(type(m) is not nn.Conv2d or isinstance(m.padding, str) or m.padding_mode == "zeros" for m in model.modules())
        if square:
            yield clean("conv_turned", "height and width exchanged in convolutions", by_hand(nn.Conv2d, turned))
        yield clean("conv_bias_apart", "bias behind convolutions", by_hand(nn.Conv2d, lambda m, x: m._conv_forward(x, m.weight, None) if m.bias is None
                    else m._conv_forward(x, m.weight, None) + m.bias[:, None, None]))
    if has(nn.Embedding):
        yield clean("rows_for_embedding", "rows for embedding", by_hand(nn.Embedding, lambda m, x: m.weight[x]))
        yield clean("selected_for_embedding", "index_select for embedding", by_hand(nn.Embedding, lambda m, x: m.weight.index_select(
            0, x.flatten()).view(*x.shape, -1)))


def function_variations(places):
    """Activations and softmax."""
    family, model = places.family, places.model
    uses_f = functools.partial(uses, family, model)
    if uses_f("softmax"):
        yield clean("softmax_shifted", "the largest score subtracted first", patched("softmax", lambda plain, x, dim=-1, *a, **k: plain(
            x - x.detach().amax(dim, keepdim=True).clamp(min=-1e30), dim, *a, **k)))
        yield clean("softmax_by_log", "softmax by log_softmax", patched("softmax", lambda plain, x, dim=-1, *a, dtype=None, **k: F.log_softmax(
            x, dim, dtype=dtype).exp()))
    if uses_f("gelu"):
        yield clean("gelu_by_hand", "gelu by its formula", patched("gelu", gelu_by_erf))
    if uses_f("silu"):
        yield clean("silu_by_hand", "x * sigmoid(x) for silu", patched("silu", lambda plain, x, inplace=False: x * torch.sigmoid(x)))
    if uses_f("relu"):
        yield clean("relu_by_clamp", "clamp for relu", patched("relu", lambda plain, x, inplace=False: x.clamp(min=0)))
        yield clean("relu_threshold", "threshold for relu", patched("relu", lambda plain, x, inplace=False: F.threshold(x, 0.0, 0.0)))
        yield clean("relu_in_place", "relu in place of a copy", patched("relu", lambda plain, x, inplace=False: torch.relu_(x.clone())))
    if uses_f("leaky_relu"):
        yield clean("leaky_by_where", "where for leaky relu", patched("leaky_relu", lambda plain, x, slope=0.01, inplace=False: torch.where(x >= 0, x, slope * x)))


def loss_variations(places):
    """Losses."""
    family, model = places.family, places.model
    uses_f = functools.partial(uses, family, model)
    if uses_f("cross_entropy"):
        yield clean("entropy_by_gather", "logsumexp and gather for cross-entropy", patched("cross_entropy", entropy_by_gather))
        yield clean("entropy_one_hot", "one-hot labels", patched("cross_entropy", entropy_one_hot))
        yield clean("entropy_summed", "sum and division for mean", patched("cross_entropy", lambda plain, x, y, **k: plain(
            x, y, **k) if k.get("reduction", "mean") != "mean" or k.get("label_smoothing") else plain(x, y, **{**k, "reduction": "sum"}) / (
                y != k.get("ignore_index", -100)).sum()))
    if uses_f("binary_cross_entropy_with_logits"):
        yield clean("bce_by_softplus", "softplus for binary cross-entropy", patched("binary_cross_entropy_with_logits", bce_by_softplus))
        yield clean("bce_of_sigmoid", "sigmoid and binary cross-entropy", patched("binary_cross_entropy_with_logits", lambda plain, x, y, weight=None, reduction="mean", **k: (
            F.binary_cross_entropy(torch.sigmoid(x), y, weight, reduction=reduction))))
    if uses_f("mse_loss"):
        yield clean("mse_by_hand", "squares for mse_loss", patched("mse_loss", lambda plain, x, y, **k: torch.square(x - y).mean()))
        yield clean("mse_by_product", "a product for mse_loss", patched("mse_loss", lambda plain, x, y, **k: torch.dot((x - y).flatten(), (x - y).flatten()) / x.numel()))
    if uses_f("smooth_l1_loss"):
        yield clean("smooth_by_where", "where for smooth_l1_loss", patched("smooth_l1_loss", lambda plain, x, y, beta=1.0, **k: (lambda d: torch.where(
            d < beta, 0.5 * d * d / beta, d - 0.5 * beta).mean())((x - y).abs())))
    if uses_f("l1_loss"):
        yield clean("l1_by_hand", "abs for l1_loss", patched("l1_loss", lambda plain, x, y, **k: (x - y).abs().mean()))


def attention_variations(places):
    """Enlargement and attention."""
    family, model = places.family, places.model
    uses_f = functools.partial(uses, family, model)
    if uses_f("interpolate"):
        def repeated(plain, x, size=None, scale_factor=None, mode="nearest", **k):
            if mode != "nearest":
                return plain(x, size=size, scale_factor=scale_factor, mode=mode, **k)
            return x.repeat_interleave(scale_factor, 2).repeat_interleave(scale_factor, 3)
        if family.name == "styled":
            yield clean("repeated_for_nearest", "repeated rows for nearest", patched("interpolate", repeated))
    if uses_f("scaled_dot_product_attention"):
        def attention(plain, q, k, v, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, **more):
            score = q @ k.transpose(-2, -1) * (scale or q.shape[-1] ** -0.5)
            if is_causal:
                score = score.masked_fill(torch.ones(score.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
            return score.softmax(-1) @ v
        def masked(plain, q, k, v, attn_mask=None, is_causal=False, **more):
            if is_causal:
                attn_mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
            return plain(q, k, v, attn_mask=attn_mask, **more)
        if family.name == "nanogpt":
            yield clean("attention_by_hand", "attention by hand", patched("scaled_dot_product_attention", attention))
            yield clean("mask_given", "a mask for is_causal", patched("scaled_dot_product_attention", masked))


def input_variations(places):
    """Masks and positions."""
    family, model = places.family, places.model
    batch = family.batch()
    if "attention_mask" in batch and family.hugging:
        yield clean("mask_float", "a mask of truth values", on_batch("attention_mask", lambda m: m.bool()))
    if family.name in ("olmo", "starcoder2", "exaone4", "gpt_neo", "granitemoe"):
        yield clean("positions_given", "position ids are given", lambda step: step.batch.update(
            position_ids=torch.arange(12).expand(4, 12).contiguous()))
    if family.name in ("olmo", "starcoder2", "exaone4"):
        def four(step):
            mask = step.batch["attention_mask"]
            n = mask.shape[1]
            seen = torch.ones(n, n, dtype=torch.bool).tril()[None, None] & mask.bool()[:, None, None, :]
            step.batch["attention_mask"] = torch.zeros(4, 1, n, n).masked_fill(~seen, torch.finfo(torch.float32).min)
        if family.name != "exaone4":
            yield clean("mask_4d", "a mask of four dimensions", four)


# ---- the loop otherwise ------------------------------------------------------------------------------------

def own_adam(p):
    """AdamW as written by hand."""
    class Own(torch.optim.Optimizer):
        @torch.no_grad()
        def step(self):
            for group in self.param_groups:
                for x in group["params"]:
                    if x.grad is None:
                        continue
                    state = self.state[x]
                    if not state:
                        state["m"], state["v"], state["t"] = torch.zeros_like(x), torch.zeros_like(x), 0
                    state["t"] += 1
                    x.mul_(1 - group["lr"] * 0.01)
                    state["m"].mul_(0.9).add_(x.grad, alpha=0.1)
                    state["v"].mul_(0.999).addcmul_(x.grad, x.grad, value=0.001)
                    m, v = state["m"] / (1 - 0.9 ** state["t"]), state["v"] / (1 - 0.999 ** state["t"])
                    x.add_(m / (v.sqrt() + 1e-8), alpha=-group["lr"])
    return Own(p, {"lr": 1e-3})


def same_loop(family, **keys):
    """The optimizer of a family's loop with other keys that change no value."""
    n = loops
    made = {n.rms: lambda p: torch.optim.RMSprop(p, **{"lr": 7e-4, "alpha": 0.99, "eps": 1e-5, **keys}),
            n.decayed: lambda p: torch.optim.Adam(p, **{"lr": 0.01, "weight_decay": 5e-4, **keys}),
            n.by_sum: lambda p: torch.optim.Adagrad(p, **{"lr": 0.05, **keys}),
            n.by_value: lambda p: torch.optim.SGD(p, **{"lr": 0.1, "momentum": 0.5, **keys}),
            n.scaled: lambda p: torch.optim.SGD(p, **{"lr": 0.02, "momentum": 0.9, "weight_decay": 1e-4, **keys}),
            n.in_groups: lambda p: torch.optim.AdamW(
                [{"params": [x for x in p if x.ndim > 1], "weight_decay": 0.1}, {"params": [x for x in p if x.ndim < 2], "weight_decay": 0.0}],
                **{"lr": 6e-4, "betas": (0.9, 0.95), **keys})}
    return made.get(family.loop)


def plain_updates():
    """AdamW and clipping otherwise."""
    yield clean("foreach", "foreach optimizer", adam(foreach=True))
    yield clean("fused", "fused optimizer", adam(foreach=None, fused=True))
    yield clean("own_adam", "AdamW by hand", optimizer(own_adam))
    yield clean("rate_tensor", "the rate is a tensor", adam(lr=torch.tensor(1e-3)))
    yield clean("groups", "two groups with the same keys", optimizer(lambda p: torch.optim.AdamW(
        [{"params": p[::2]}, {"params": p[1::2]}], lr=1e-3, weight_decay=0.01, foreach=False)))
    def clip(step):
        step.clip = 0
        def run(m):
            with torch.no_grad():
                grads = [p.grad for p in m.parameters() if p.grad is not None]
                total = torch.sqrt(sum((g.double() ** 2).sum() for g in grads)).to(grads[0].dtype)
                if total > 1.0:
                    for g in grads:
                        g.mul_(1.0 / (total + 1e-6))
        step.before_step = run
    yield clean("clip_by_hand", "clipped by hand", clip)
    def loose(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, foreach=False)
    yield clean("clip_not_foreach", "clipped one by one", loose)
    def scaled(step):
        step.before_backward = lambda m, loss: loss * 4096.0
        step.before_step = lambda m: [p.grad.div_(4096.0) for p in m.parameters() if p.grad is not None] and None
    yield clean("loss_scaled", "the loss is scaled, gradients are scaled back", scaled)


def update_variations(places):
    family = places.family
    if family.loop.__name__ == "<lambda>":
        yield from plain_updates()
    made = same_loop(family, foreach=True)
    if made:
        yield clean("loop_foreach", "foreach optimizer", optimizer(made))
    made = same_loop(family, foreach=None, fused=True)
    if made and family.loop in (loops.decayed, loops.by_value, loops.scaled, loops.in_groups, loops.by_sum):
        yield clean("loop_fused", "fused optimizer", optimizer(made))
    yield clean("flat_gradients", "gradients are views of a buffer", on_model(flat_gradients))
    def asked(step):
        before = step.before_backward
        def backward(m, loss):
            loss = before(m, loss)
            def run(scale=step.parts):
                p = [x for x in m.parameters() if x.requires_grad]
                for x, g in zip(p, torch.autograd.grad(loss, p, allow_unused=True)):
                    x.grad = g
            loss.backward = run
            return loss
        step.before_backward = backward
    if family.loop is not loops.in_groups:
        yield clean("grad_asked", "torch.autograd.grad for backward", asked)
    def logged(step):
        after = step.after_step
        def run(m, o):
            after(m, o)
            with torch.no_grad():
                {n: (p.norm().item(), p.abs().max().item()) for n, p in m.named_parameters()}
        step.after_step = run
    yield clean("weights_logged", "norms of the weights are logged", logged)
    def averaged(step):
        after = step.after_step
        def run(m, o):
            after(m, o)
            slow = copy.deepcopy(dict(m.named_parameters()))
            with torch.no_grad():
                for n, p in m.named_parameters():
                    slow[n].lerp_(p, 0.01)
        step.after_step = run
    yield clean("average_kept", "an average of the weights is kept", averaged)


def variations(family, model, index):
    places = Places(family, model)
    def fits(change):
        return (family.name, change.name) not in VOID
    general = [c for f in (run_variations, call_variations, line_variations, layer_variations, function_variations, loss_variations,
                           attention_variations, input_variations, update_variations) for c in f(places)]
    yield from filter(fits, in_turn(general, index, 7))
    yield from filter(fits, variation_edits(model, VARIATIONS))
