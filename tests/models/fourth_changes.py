# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the fourth set; see fourth_families.py.

Every family takes half of the general changes, in turn, and all edits of its own code.
"""
import copy

import torch
from torch import nn
import torch.nn.functional as F

from changes import (ANY, Change, anywhere, data_key, first, is_norm, on_model, owners, parent_of,
                     replace, within)
from unseen_changes import (STEP, adam, clean, edits, in_turn, leaf, on_batch, patched, weight,
                            wrap)

LINES = (nn.Linear, nn.Conv2d, nn.Conv1d)
CLIP = r"\w*norm\w*|stack|mul_|lerp_|clip_grad\w*|clamp|__r?truediv__|reciprocal|__r?mul__|__add__|max"
LOSS = (r"^[A-Za-z]+\.(?:cross_entropy|nll_loss|log_softmax|gather|mse_loss|l1_loss|__getitem__|"
        r"__r?mul__|__r?sub__|__add__|sum|to|long|view|reshape|flatten|pad|contiguous|norm|clone)"
        r"\.\d+\.forward @ (?!.*(?:layer|block|attn|mlp|head|encoder))")


# ---- modules ---------------------------------------------------------------------------------

def output_mistakes(model):
    path = leaf(model, LINES, 4)
    inside = within(path)
    table = [
        ("out_negated", "negated", torch.neg), ("out_tanh", "through tanh", torch.tanh),
        ("out_centred", "without its mean", lambda x: x - x.mean(-1, keepdim=True)),
        ("out_noise", "with noise of 1 %", lambda x: x + 0.01 * torch.randn_like(x)),
        ("out_fp16", "rounded to fp16", lambda x: x.half().to(x.dtype)),
        ("out_scaled", "times 1.003", lambda x: x * 1.003),
        ("out_first_twice", "first sample for all", lambda x: x[:1].expand_as(x)),
        ("out_reversed", "samples reversed", lambda x: x.flip(0)),
        ("out_detached_part", "detached", lambda x: x.detach() + 0 * x)]
    for name, why, function in table:
        yield Change(name, f"{path} {why}", wrap(path, function), inside)

    def spoil(x):
        x = x.clone()
        x.view(-1)[3] = float("inf")
        return x
    yield Change("out_inf", f"one element of {path} is infinite", wrap(path, spoil), inside)


def weight_mistakes(model):
    path = leaf(model, LINES, 5)
    here = owners(model, path)
    yield Change("weight_bf16", f"{path} rounded to bfloat16",
                 weight(path, lambda w: w.bfloat16().float()), here)
    yield Change("weight_sign", f"{path} negated", weight(path, torch.neg), here)
    if model.get_submodule(path).weight.shape[0] > 1:
        yield Change("weight_rows", f"rows of {path} exchanged",
                     weight(path, lambda w: w.roll(1, 0)), here)
    def one(w):
        w.view(-1)[2] *= 1.5
        return w
    yield Change("weight_element", f"one weight of {path} is 1.5 times as large", weight(path, one),
                 here)
    others = [n for n, m in model.named_modules() if isinstance(m, LINES) and n != path
              and "weight" in m._parameters
              and m.weight.shape == model.get_submodule(path).weight.shape]
    if others:
        def exchange(m):
            a, b = m.get_submodule(path).weight, m.get_submodule(others[-1]).weight
            a.data, b.data = b.data.clone(), a.data.clone()
        yield Change("weights_exchanged", f"{path} has the weight of {others[-1]}",
                     on_model(exchange), here + "|" + owners(model, others[-1]))


def norm_mistakes(model):
    path = first(model, is_norm, 2)
    if path is None:
        return
    inside = within(path)
    if getattr(model.get_submodule(path), "weight", None) is not None:  # else the second is no change
        yield Change("norm_twice", f"{path} applied twice",
                     wrap(path, lambda x: F.layer_norm(x, x.shape[-1:])), inside)
        def shifted(m):
            m.get_submodule(path).weight.data.add_(1.0)
        yield Change("norm_plus_one", f"weight of {path} plus one", on_model(shifted),
                     owners(model, path))
    if getattr(model.get_submodule(path), "bias", None) is not None:
        yield Change("norm_bias", f"bias of {path} is zero", on_model(
            lambda m: m.get_submodule(path).bias.data.zero_()), inside)


# ---- gradients, data, updates -----------------------------------------------------------------

def gradient_mistakes(model):
    path = leaf(model, LINES, 4)
    after = "|" + anywhere(CLIP, ANY)
    def zero(m):
        m.get_submodule(path).weight.register_hook(torch.zeros_like)
    yield Change("gradient_lost", f"gradient of {path}'s weight is zero", on_model(zero),
                 owners(model, path) + after, "gradient")
    def stale(m):
        for p in m.parameters():
            if p.requires_grad:
                p.grad = torch.full_like(p, 0.01)
    yield Change("gradient_stale", "gradients were not zeroed", on_model(stale),
                 r"parameters_grad|" + anywhere(CLIP, ANY), "gradient")
    def before(function):
        def apply(step):
            def change(m):
                for p in m.parameters():
                    if p.grad is not None:
                        function(p.grad)
            step.before_step = change
        return apply
    yield Change("gradient_bf16", "gradients sent as bfloat16", before(
        lambda g: g.copy_(g.bfloat16())), anywhere(CLIP + r"|copy_|to|bfloat16", ANY), "gradient")
    yield Change("gradient_nan", "gradients with a NaN", before(
        lambda g: g.view(-1)[:1].fill_(float("nan"))), anywhere(CLIP + r"|fill_|view|__\w+__", ANY),
        "gradient")
    def frozen(m):
        for p in m.get_submodule(path).parameters():
            p.requires_grad_(False)
    yield Change("frozen", f"{path} frozen", on_model(frozen), owners(model, path), "gradient")


def data_mistakes(family, model):
    key, labels = data_key(family), family.labels
    if key == "input_ids":
        truth = anywhere(r"embedding\w*|__getitem__|index_select")
        yield Change("ids_first", "the first sample for all", on_batch(
            key, lambda x: x[:1].expand_as(x).clone()), truth, "data")
        yield Change("ids_reversed", "samples in reverse, labels not", on_batch(
            key, lambda x: x.flip(0)), truth, "data")
    else:
        path = first(model, lambda m: isinstance(m, (*LINES, nn.BatchNorm1d)))
        truth = within(path)
        yield Change("data_centred", "mean subtracted twice", on_batch(
            key, lambda x: x - x.mean()), truth, "data")
        yield Change("data_cut", "data cut at 2", on_batch(key, lambda x: x.clamp(-1, 1)), truth,
                     "data")
        def padded(x):
            x = x.clone()
            x[-1] = 0
            return x
        yield Change("data_padded", "the last sample is zero", on_batch(key, padded), truth, "data")
    if family.batch()[labels].dtype == torch.int64:
        def some(y):
            y = y.clone()
            y.view(-1)[:3] = 1
            return y
        yield Change("labels_constant", "three labels are 1", on_batch(labels, some), LOSS, "data")
    else:
        yield Change("labels_offset", "labels plus 0.2", on_batch(labels, lambda y: y + 0.2), LOSS,
                     "data")


def update_mistakes():
    yield Change("betas", "beta2 0.99", adam(betas=(0.9, 0.99)), STEP.format("addcmul_|mul_"),
                 "update")
    yield Change("eps_large", "eps 1e-2", adam(eps=1e-2), STEP.format("add_"), "update")
    def momentum(step):
        step.optimizer = lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, foreach=False)
    yield Change("sgd_momentum", "SGD with momentum", momentum, STEP.format(
        "add_|mul_|lerp_|addcmul_|addcdiv_|clone|detach|__iadd__"), "update")
    def part(step):
        step.optimizer = lambda p: torch.optim.AdamW(p[1:-2], lr=1e-3, weight_decay=0.01,
                                                     foreach=False)
    yield Change("part_updated", "three parameters are not updated", part,
                 STEP.format(r"\w+"), "update")
    def infinite(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, float("inf"))
    yield Change("clip_infinite", "clipped by the largest", infinite, anywhere(CLIP + r"|abs|amax"),
                 "update")
    def averaged(step):
        step.before_backward = lambda model, loss: loss / 8
    yield Change("loss_eighth", "loss divided by 8", averaged, anywhere("__truediv__|div", ANY),
                 "loss")
    def penalised(step):
        step.before_backward = lambda model, loss: loss + 1e-2 * sum(
            p.pow(2).sum() for p in model.parameters() if p.ndim > 1)
    yield Change("loss_penalty", "L2 penalty in the loss", penalised,
                 anywhere(r"pow|sum|__r?mul__|__r?add__", ANY), "loss")


# ---- mistakes of one family -------------------------------------------------------------------

EDITS = [
    ("TorchEncoder", "* math.sqrt(32)", "", "embedding_scale", "__mul__|__add__"),
    ("TorchEncoder", "self.embed(ids)", "self.embed(ids.roll(1, 1))", "ids_rolled", "roll|embedding"),
    ("Tagger", "torch.tanh(self.hidden(self.norm(h)))", "self.hidden(self.norm(h))", "tanh_missing",
     "tanh|linear"),
    ("Tagger", "self.norm(h)", "h", "norm_missing", "layer_norm|linear"),
    ("DiffusionBlock", "(1 + scale1)", "scale1", "one_missing", "__r?add__|__mul__"),
    ("DiffusionBlock", "x + gate1 *", "x +", "gate_missing", "__mul__|__add__"),
    ("DiffusionBlock", "shift2, scale2, gate2 =", "scale2, shift2, gate2 =", "scale_for_shift",
     "__r?add__|__mul__|chunk"),
    ("DiffusionBlock", "** -0.5", "** -0.25", "scale_of_scores", "__mul__"),
    ("DiffusionBlock", "self.silu(c)", "c", "silu_missing", "silu|linear"),
    ("DiffusionTransformer", "+ self.place", "", "places_missing", "__add__"),
    ("DiffusionTransformer", "[a.cos(), a.sin()]", "[a.sin(), a.cos()]", "sines_first",
     "cos|sin|cat"),
    ("DiffusionTransformer", '"bhwpqc->bchpwq"', '"bhwpqc->bchqwp"', "patches_turned", "einsum|reshape"),
    ("Operator", "re = re - torch", "re = re + torch", "sign_of_product", "__sub__|__add__|einsum"),
    ("Operator", "x = x + F.gelu", "x = F.gelu", "residual_missing", "__add__|gelu|conv2d"),
    ("Operator", 's=(16, 16), norm="ortho"', "s=(16, 16)", "norm_of_inverse", r"\w*irfft2"),
    ("Operator", "+ self.points[i](x)", "", "points_missing", "conv2d|__add__"),
    ("Tables", "top / top.sum(-1, keepdim=True)", "top", "not_normalised", "sum|__truediv__|scatter"),
    ("Tables", "/ 4.0", "/ 16.0", "scale_of_scores", "__truediv__|matmul"),
    ("Tables", "x + self.mix(self.last(x))", "x + self.mix(x)", "norm_missing", "layer_norm|linear"),
    ("Tables", "topk(2, -1)", "topk(1, -1)", "one_expert", "topk"),
    ("Tables", "x.mean(1)", "x[:, 0]", "first_for_mean", "mean|__getitem__"),
    ("GraniteDecoderLayer|Phi3DecoderLayer", "hidden_states = residual +",
     "hidden_states = 0.5 * residual +", "residual_halved", "__r?mul__|__add__"),
    ("GraniteDecoderLayer", "* self.residual_multiplier", "", "multiplier_missing",
     "__r?mul__|__add__"),
    ("Phi3MLP", "gate, up_states = up_states.chunk(2, dim=-1)",
     "up_states, gate = up_states.chunk(2, dim=-1)", "gate_up_exchanged", "chunk|silu|__mul__"),
    ("Olmo2DecoderLayer", "hidden_states = self.post_feedforward_layernorm(hidden_states)",
     "hidden_states = hidden_states", "norm_missing", r"\w+"),
    ("GPTJBlock", "attn_output + feed_forward_hidden_states + residual",
     "feed_forward_hidden_states + residual", "attention_missing", "__add__"),
    ("GPTJAttention", "self._attn(query, key, value", "self._attn(query, value, key",
     "k_v_exchanged", r"\w+"),
]


def faults(family, model, index):
    general = [*output_mistakes(model), *weight_mistakes(model), *norm_mistakes(model),
               *gradient_mistakes(model), *data_mistakes(family, model), *update_mistakes()]
    yield from in_turn(general, index, 2)
    yield from edits(model, EDITS)


# ---- changes that are no mistakes ---------------------------------------------------------------

VARIATIONS = [
    ("TorchEncoder", "mask=mask, is_causal=True", "mask=mask", "mask_alone"),
    ("TorchEncoder", "nn.Transformer.generate_square_subsequent_mask(n)",
     "torch.ones(n, n, dtype=torch.bool).triu(1)", "mask_of_truths"),
    ("Tagger", "torch.logsumexp(start[:, :, None] + self.moves[None], 1)",
     "torch.log(torch.exp(start[:, :, None] + self.moves[None]).sum(1))", "logsumexp_by_hand"),
    ("DiffusionBlock", "a = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)",
     "return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c))",
     "attention_fused"),
    ("DiffusionBlock", "self.norm1(x) * (1 + scale1) + shift1",
     "torch.addcmul(shift1, self.norm1(x), 1 + scale1)", "modulation_fused"),
    ("DiffusionBlock", "(q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)",
     "(q @ k.transpose(-2, -1)) / (c // self.heads) ** 0.5", "scaled_after"),
    ("DiffusionTransformer", "self.patch(x).flatten(2).transpose(1, 2)",
     "F.linear(x.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).reshape(len(x), 16, 48), "
     "self.patch.weight.flatten(1), self.patch.bias)", "patches_by_linear"),
    ("Operator", 'torch.einsum("bixy,ioxy->boxy", f.real, self.real[i])',
     "(f.real[:, :, None] * self.real[i][None]).sum(1)", "einsum_by_hand"),
    ("Operator", "F.gelu(self.norms[i](self.spectral(x, i) + self.points[i](x)))",
     "F.gelu(self.norms[i](self.points[i](x) + self.spectral(x, i)))", "sum_turned"),
    ("Tables", "sum(share[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))",
     'torch.einsum("bte,betd->btd", share, torch.stack([e(x) for e in self.experts], 1))',
     "experts_stacked"),
    ("Tables", "self.query(x) @ self.key(x).mT / 4.0",
     "torch.baddbmm(x.new_zeros(1, 1, 1), self.query(x), self.key(x).mT, beta=0, alpha=0.25)", "baddbmm"),
    ("Tables", "x.mean(1)", "x.sum(1) / x.shape[1]", "mean_by_sum"),
]


def scaled_loss(step):
    """What a GradScaler does: the loss times a power of two, the gradients divided by it."""
    step.before_backward = lambda model, loss: loss * 1024.0
    def unscale(m):
        for p in m.parameters():
            if p.grad is not None:
                p.grad.mul_(1 / 1024.0)
    step.before_step = unscale


def averaged(step):
    def keep(model, optimizer):
        with torch.no_grad():
            mean = [p.clone() for p in model.parameters()]
            for a, p in zip(mean, model.parameters()):
                a.mul_(0.99).add_(p, alpha=0.01)
    step.after_step = keep


def evaluated(step):
    loss = step.loss
    def run(model, batch):
        with torch.no_grad():
            model.eval()
            loss(model, batch).item()
            model.train()
        return loss(model, batch)
    step.loss = run


def halves(path):
    def change(model):
        m = model.get_submodule(path)
        n = m.weight.shape[0] // 2
        def forward(x):
            b = (None, None) if m.bias is None else (m.bias[:n], m.bias[n:])
            return torch.cat([F.linear(x, m.weight[:n], b[0]), F.linear(x, m.weight[n:], b[1])], -1)
        m.forward = forward
    return on_model(change)


def loss_by_hand(plain, x, y, weight=None, ignore_index=-100, reduction="mean", **k):
    y = y.reshape(-1)
    kept = y != ignore_index
    safe = torch.where(kept, y, torch.zeros_like(y))
    x = x.reshape(-1, x.shape[-1])
    each = torch.logsumexp(x, -1) - x.gather(1, safe[:, None])[:, 0]
    w = kept.to(x.dtype) if weight is None else weight.to(x.dtype)[safe] * kept
    total = (each * w).sum()
    return total / w.sum() if reduction == "mean" else total / k.get("num_items_in_batch", 1)


def layer_norm_by_hand(plain, x, shape, weight=None, bias=None, eps=1e-5):
    var, mean = torch.var_mean(x, -1, keepdim=True, unbiased=False)
    y = (x - mean) / torch.sqrt(var + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def gelu_by_hand(plain, x, approximate="none"):
    if approximate == "tanh":
        return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x ** 3)))
    return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))


def shared_variations(family, model):
    yield clean("again", "the same run", lambda step: None)
    yield clean("foreach", "foreach optimizer", adam(foreach=True))
    yield clean("fused", "fused optimizer", adam(foreach=None, fused=True))
    yield clean("threads2", "two threads", lambda step: setattr(step, "threads", 2))
    yield clean("scaler", "loss scaled, gradients unscaled", scaled_loss)
    yield clean("average_kept", "an average of the weights is kept", averaged)
    if not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        yield clean("evaluated", "evaluation before the step", evaluated)
    yield clean("float64", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("bfloat16", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    def autocast(step):
        step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    yield clean("autocast", "autocast to bfloat16", autocast)
    line = leaf(model, (nn.Linear,), 3)
    if line and model.get_submodule(line).weight.shape[0] % 2 == 0:
        yield clean("linear_halves", f"{line} in two halves", halves(line))
    path = leaf(model, LINES, 3)
    yield clean("anomaly", f"output of {path} is checked for NaN", wrap(
        path, lambda x: x if bool(torch.isfinite(x.detach()).all()) else x * 0))
    yield clean("moved", f"output of {path} permuted there and back", wrap(
        path, lambda x: x.transpose(0, -1).contiguous().transpose(0, -1)))
    yield clean("layer_norm_by_hand", "layer_norm by hand", patched("layer_norm", layer_norm_by_hand))
    yield clean("gelu_by_hand", "gelu by hand", patched("gelu", gelu_by_hand))
    if family.batch()[family.labels].dtype == torch.int64:
        yield clean("loss_by_hand", "cross entropy by logsumexp", patched("cross_entropy", loss_by_hand))
    if family.hugging and family.name not in ("xlnet", "gptj"):
        def sdpa(step):
            step.keys["attention"] = "sdpa"
        yield clean("sdpa", "SDPA for eager attention", sdpa)
    if family.hugging and family.name != "xlnet":
        yield clean("checkpoint", "layers are computed again", on_model(
            lambda m: m.gradient_checkpointing_enable({"use_reentrant": False})))
    if family.name in ("dit", "coat"):  # others average over other numbers of tokens or samples
        yield clean("micro_batches", "two micro batches", lambda step: setattr(step, "parts", 2))
    if family.name not in ("xlnet",):
        yield clean("batch_order", "the batch in another order", lambda step: setattr(
            step, "batch", {k: v.flip(0) for k, v in step.batch.items()}))


def variations(family, model, index):
    yield from in_turn([*shared_variations(family, model)], index, 2)
    yield from edits(model, VARIATIONS, truth=False)
