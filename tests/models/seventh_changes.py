# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the seventh set; see seventh_families.py.

Every family takes a fifth of the general mistakes, a quarter of the general variations, in turn, and all
edits of its own code.
"""
import functools
import inspect
import sys
import textwrap

import torch
from torch import nn
import torch.nn.functional as F

from changes import ANY, Change, anywhere, first, is_norm, on_model, owners, parent_of, within
from fourth_changes import CLIP
from observed import CONVS, LINES, Places, is_read, readers, uses
from unseen_changes import STEP, adam, by_hand, clean, edits, in_turn, on_batch, patched, weight, wrap


def unless(void, change):
    """Marks a change that changes nothing in this family, so that the turns of the others stay."""
    change.void = void
    return change


# ---- layers -------------------------------------------------------------------------------------

def on_input(path, function):
    def change(model):
        module = model.get_submodule(path)
        plain = module.forward
        module.forward = lambda x, *a, **k: plain(function(x), *a, **k)
    return on_model(change)


def layer_mistakes(places):
    path = places.line(2)
    inside = within(path)
    # A value that is rounded or moved before the module may show at what it reads.
    table = [("in_bf16", "input of {} rounded to bf16", lambda x: x.to(torch.bfloat16).to(x.dtype)),
             ("in_dropout", "dropout of 0.1 left on before {}", lambda x: F.dropout(x, 0.1, True)),
             ("in_next_position", "{} reads the next position", lambda x: x.roll(-1, -2)),
             ("in_without_tail", "{} reads a tail of zeros", lambda x: torch.cat(
                 [x[..., :-1], torch.zeros_like(x[..., -1:])], -1)),
             ("in_normed_again", "input of {} normed twice", lambda x: F.layer_norm(x, x.shape[-1:]))]
    for name, why, function in table:
        yield Change(name, why.format(path), on_input(path, function), inside)
    def half_by_half(m):
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: (plain(x).half() * 1.0).float() if x.dtype == torch.float32 else plain(x)
    yield Change("out_half", f"{path} in half precision", on_model(half_by_half), inside)
    yield Change("out_twice_biased", f"bias of {path} added twice", on_model(lambda m: twice_biased(m, path)), inside)
    yield Change("out_ranked", f"samples of {path} gathered in another order", wrap(
        path, lambda x: x[torch.arange(len(x) - 1, -1, -1)] if len(x) > 2 else x.flip(0)), inside)
    yield Change("out_negative_lost", f"{path} stored unsigned", wrap(path, lambda x: x.clamp(min=0) + 0.0), inside)
    yield Change("out_max_normed", f"{path} divided by its maximum", wrap(
        path, lambda x: x / x.detach().abs().amax(-1, keepdim=True)), inside)


def twice_biased(model, path):
    module = model.get_submodule(path)
    plain, bias = module.forward, module.bias
    if bias is None:
        raise ValueError("no bias")
    shape = (-1,) + (1,) * (module.weight.ndim - 2) if isinstance(module, CONVS) else (-1,)
    module.forward = lambda x: plain(x) + bias.view(shape)


def weight_mistakes(places):
    model = places.model
    path = places.line(3)
    here = owners(model, path)
    def viewed(w):
        return w.transpose(0, 1).reshape(w.shape)
    def interleaved(w):
        return w.view(2, len(w) // 2, *w.shape[1:]).transpose(0, 1).reshape(w.shape) if len(w) % 2 == 0 else w.flip(0)
    plain = model.get_submodule(path).weight
    yield unless(torch.equal(viewed(plain), plain), Change(
        "weight_viewed", f"{path} transposed by a view", weight(path, viewed), here))
    yield Change("weight_interleaved", f"rows of {path} interleaved", weight(path, interleaved), here)
    yield Change("weight_block_scale", f"{path} with the scale of another block", weight(
        path, lambda w: torch.cat([w[:len(w) // 2], w[len(w) // 2:] * 1.25])), here)
    yield Change("weight_averaged", f"{path} an average with noise", weight(
        path, lambda w: 0.9 * w + 0.1 * torch.randn(w.shape, generator=torch.Generator().manual_seed(9)) * w.std()), here)
    shape = model.get_submodule(path).weight.shape
    same = [p for p in places.all(lambda m: isinstance(m, LINES) and "weight" in m._parameters
                                  and m.weight.shape == shape) if p != path]
    if same:
        def exchanged(m):
            a, b = (m.get_submodule(p).weight for p in (path, same[0]))
            with torch.no_grad():
                kept = a.clone()
                a.copy_(b)
                b.copy_(kept)
        yield Change("weights_exchanged", f"weights of {path} and {same[0]} exchanged", on_model(exchanged),
                     here + "|" + owners(model, same[0]))
    for kind, why, function in (("norm_offset", "weight of {} loaded without one", lambda w: w - 1),
                                ("norm_bf16", "weight of {} stored in bf16", lambda w: w.bfloat16().float())):
        norm = places.norm(1)
        if norm:
            yield Change(kind, why.format(norm), weight(norm, function), owners(model, norm))
    norm = places.norm(2)
    if norm and getattr(model.get_submodule(norm), "bias", None) is not None:
        def turned(m):
            module = m.get_submodule(norm)
            with torch.no_grad():
                kept = module.weight.clone()
                module.weight.copy_(module.bias)
                module.bias.copy_(kept)
        yield Change("norm_turned", f"weight and bias of {norm} exchanged", on_model(turned), within(norm, direction=ANY))
    table = first(model, lambda m: isinstance(m, nn.Embedding))
    if table:
        yield Change("table_normed", f"rows of {table} of length one", weight(
            table, lambda w: F.normalize(w, dim=-1)), owners(model, table))


def norm_mistakes(places):
    path = places.norm(1)
    if not path:
        return
    module, inside = places.model.get_submodule(path), within(path)
    yield Change("norm_half", f"{path} computed in half precision", wrap(path, lambda x: x.half().to(x.dtype)), inside)
    yield unless(path not in places.graded, Change(
        "norm_detached", f"no gradient through {path}'s input", on_input(path, lambda x: x.detach()),
        within(path, direction=ANY) + "|" + within(parent_of(path), direction=ANY, inner=True), "gradient"))
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        def momentum(m):
            m.get_submodule(path).momentum = 0.9
        yield Change("norm_momentum", f"momentum of {path} is 0.9", on_model(momentum), inside)
        def kept(m):
            m.get_submodule(path).track_running_stats = False
            m.get_submodule(path).running_mean = m.get_submodule(path).running_var = None
        yield Change("norm_untracked", f"{path} keeps no statistics", on_model(kept), inside)
    elif isinstance(module, nn.LayerNorm):
        def unbiased(x):
            d = x - x.mean(-1, keepdim=True)
            return d / (x.std(-1, keepdim=True) + module.eps)
        def change(m):
            n = m.get_submodule(path)
            n.forward = lambda x: unbiased(x) * n.weight + (0 if n.bias is None else n.bias)
        yield Change("norm_unbiased", f"{path} with an unbiased deviation", on_model(change), inside)
    act = first(places.model, lambda m: not list(m.children()) and "GELU" in type(m).__name__)
    if act and act in places.called:
        def other(m):
            m.get_submodule(act).forward = lambda x: x * torch.sigmoid(1.702 * x)
        yield Change("gelu_quick", f"{act} is the quick form", on_model(other), within(act) + "|" + within(parent_of(act)))


# ---- gradients ------------------------------------------------------------------------------------

def gradient_mistakes(places):
    path = places.line(1)
    model = places.model
    here, after = owners(model, path), anywhere(CLIP, ANY)
    def hooked(function):
        return on_model(lambda m: m.get_submodule(path).weight.register_hook(function))
    yield Change("gradient_quarter", f"gradient of {path}'s weight divided by 4", hooked(lambda g: g / 4),
                 here + "|" + after, "gradient")
    yield Change("gradient_clamped", f"gradient of {path}'s weight clamped", hooked(
        lambda g: g.clamp(-g.abs().mean(), g.abs().mean())), here + "|" + after, "gradient")
    yield unless(path not in places.graded, Change(
        "input_detached", f"no gradient through {path}'s input", on_input(path, lambda x: x.detach()),
        within(path, direction=ANY) + "|" + within(parent_of(path), direction=ANY, inner=True), "gradient"))
    def cut(x):
        return torch.cat([x[..., :1].detach(), x[..., 1:]], -1)
    yield Change("output_part_detached", f"no gradient through a part of {path}", wrap(path, cut),
                 within(path, direction=ANY), "gradient")
    def norms(m):
        for module in m.modules():
            if is_norm(module):
                module.requires_grad_(False)
    if places.norm(0):
        yield Change("norms_frozen", "all norms are frozen", on_model(norms), "|".join(
            within(n, direction=ANY) for n, m in model.named_modules() if is_norm(m)), "gradient")
    def stale(m):
        g = torch.Generator().manual_seed(8)
        for p in m.parameters():
            if p.requires_grad:
                p.grad = 0.01 * torch.randn(p.shape, generator=g)
    yield Change("not_zeroed", "gradients of the step before are left", on_model(stale),
                 anywhere(CLIP, ANY) + r"|parameters_grad(?:\.\d+)? @", "gradient")


def reduced_mistakes(model):
    def before(function, words):
        def apply(step):
            step.before_step = lambda m: function([p.grad for p in m.parameters() if p.grad is not None])
        return apply, anywhere(CLIP + "|" + words, ANY)
    def summed(grads):
        for g in grads:
            g.mul_(8)
    def last(grads):
        grads[-1].div_(8)
    def bf16(grads):
        for g in grads:
            g.copy_(g.bfloat16().float())
    def noise(grads):
        r = torch.Generator().manual_seed(12)
        for g in grads:
            g.add_(0.02 * g.std(unbiased=False) * torch.randn(g.shape, generator=r))
    def exchanged(grads):
        by_shape = {}
        for g in grads:
            if g.shape in by_shape and g.numel() > 1:
                kept = g.clone()
                g.copy_(by_shape[g.shape])
                by_shape[g.shape].copy_(kept)
                return
            by_shape[g.shape] = g
    for name, why, function, words in (
            ("reduce_sum", "gradients summed over 8 ranks, not averaged", summed, "mul_"),
            ("reduce_last", "the last gradient divided by the ranks twice", last, "div_"),
            ("reduce_bf16", "gradients reduced in bf16", bf16, "copy_|bfloat16|float|to"),
            ("reduce_noise", "noise on gradients", noise, r"add_|std|__r?mul__|randn"),
            ("reduce_exchanged", "two gradients of one shape exchanged", exchanged, "copy_|clone")):
        apply, truth = before(function, words)
        yield Change(name, why, apply, truth, "gradient")


# ---- losses -----------------------------------------------------------------------------------------

OUTSIDE = r"__r?mul__|__r?add__|__r?sub__|__r?truediv__|sum|pow|mean|square|norm|detach|abs|float|half|to"


def loss_mistakes(places):
    family, model = places.family, places.model
    names = r"cross_entropy|nll_loss|log_softmax|__r?truediv__|__r?mul__|sum|mean|to|float|bfloat16|logsumexp|pow|__add__|half"
    truth = anywhere(names, ANY)
    if uses(family, model, "cross_entropy"):
        def other(name, why, function):
            return Change("loss_" + name, why, patched("cross_entropy", function), truth, "loss")
        yield other("over_padding", "mean over padding too", lambda plain, x, y, **k: plain(
            x, y, **{**k, "reduction": "none"}).sum() / y.numel() if k.get("reduction", "mean") == "mean"
            else plain(x, y, **k) * 0.9)
        yield other("temperature", "logits divided by 1.1", lambda plain, x, y, **k: plain(x / 1.1, y, **k))
        yield other("bf16", "logits rounded to bf16", lambda plain, x, y, **k: plain(x.bfloat16().to(x.dtype), y, **k))
        yield other("weighted", "classes weighted", lambda plain, x, y, **k: plain(
            x, y, **{**k, "weight": torch.linspace(0.5, 1.5, x.shape[1], dtype=x.dtype)}))
        yield other("ignoring", "class 1 is ignored", lambda plain, x, y, **k: plain(
            x, torch.where(y == y.max(), -100, y), **k) if k.get("ignore_index", -100) == -100 else plain(x, y, **k) * 0.5)
        yield other("z", "squares of logsumexp added", lambda plain, x, y, **k: plain(x, y, **k)
                    + 1e-2 * torch.logsumexp(x, 1).pow(2).mean())
    if uses(family, model, "mse_loss"):
        for name, why, function in (
                ("l1", "absolute for squared error", lambda plain, x, y, **k: F.l1_loss(x, y)),
                ("summed", "sum over the last axis", lambda plain, x, y, **k: ((x - y) ** 2).sum(-1).mean()),
                ("root", "root of the squared error", lambda plain, x, y, **k: torch.sqrt(plain(x, y, **k)))):
            yield Change("loss_" + name, why, patched("mse_loss", function), anywhere(
                r"mse_loss|l1_loss|__r?sub__|pow|sum|mean|sqrt|__pow__", ANY), "loss")
    def after(function):
        return lambda step: setattr(step, "before_backward", function)
    yield Change("loss_scale_kept", "gradients keep the scale of the loss", after(lambda m, x: x * 128.0),
                 anywhere(OUTSIDE, ANY), "loss")
    yield Change("loss_squared", "loss squared", after(lambda m, x: x ** 2), anywhere(OUTSIDE + "|__pow__", ANY), "loss")
    yield Change("loss_l1", "sum of absolute weights added", after(
        lambda m, x: x + 1e-4 * sum(p.abs().sum() for p in m.parameters() if p.requires_grad)), anywhere(OUTSIDE, ANY), "loss")
    def late(step):
        step.before_backward = lambda m, x: x * 128.0
        plain, clip = torch.nn.utils.clip_grad_norm_, step.clip
        step.clip = 0
        def clipped_scaled(m):
            plain(m.parameters(), clip)
            for p in m.parameters():
                if p.grad is not None:
                    p.grad.div_(128.0)
        step.before_step = clipped_scaled
    yield Change("unscaled_late", "gradients clipped before the scale is undone", late,
                 anywhere(CLIP + "|div_|" + OUTSIDE, ANY), "update")


# ---- data -------------------------------------------------------------------------------------------

def data_mistakes(places):
    family, model = places.family, places.model
    batch = family.batch()
    for key in ("input_ids", "pixel_values", "input_values", "kinds"):
        if key not in batch:
            continue
        truth = readers(family, model, key)
        if batch[key].is_floating_point():
            if batch[key].ndim == 4:
                yield Change("data_bgr", "channels in another order", on_batch(key, lambda x: x.flip(1)), truth, "data")
                yield Change("data_turned", "height and width exchanged", on_batch(
                    key, lambda x: x.transpose(-1, -2).contiguous()), truth, "data")
            yield Change("data_scaled_twice", "divided by the range twice", on_batch(key, lambda x: x / 255), truth, "data")
            yield Change("data_self_normed", "each sample normed by itself", on_batch(
                key, lambda x: (x - x.flatten(1).mean(1).view(-1, *[1] * (x.ndim - 1)))
                / x.flatten(1).std(1).view(-1, *[1] * (x.ndim - 1))), truth, "data")
            yield Change("data_mirrored", "one sample mirrored", on_batch(
                key, lambda x: torch.cat([x[:1].flip(-1), x[1:]])), truth, "data")
        else:
            yield Change("ids_late", "ids one position late", on_batch(key, lambda x: x.roll(1, 1)), truth, "data")
            yield Change("ids_end_cut", "the last id is replaced", on_batch(
                key, lambda x: torch.cat([x[:, :-1], torch.full_like(x[:, -1:], 2)], 1)), truth, "data")
            yield Change("ids_clamped", "large ids are clamped", on_batch(
                key, lambda x: x.clamp(max=int(x.max()) * 2 // 3)), truth, "data")
    labels = family.labels
    truth = readers(family, model, labels)
    if batch[labels].dtype == torch.int64:
        yield Change("labels_mirrored", "classes numbered from the other end", on_batch(
            labels, lambda y: torch.where(y < 0, y, y.max() + (y[y >= 0].min()) - y)), truth, "data")
        def one(y):
            y = y.clone()
            flat = y.view(-1)
            at = int((flat >= 0).nonzero()[0, 0])
            flat[at] = flat[at] - 1 if flat[at] > flat[flat >= 0].min() else flat[at] + 1
            return y
        yield Change("labels_one", "one label is wrong", on_batch(labels, one), truth, "data")
    else:
        yield Change("labels_late", "labels of the next sample", on_batch(labels, lambda y: y.roll(1, 0)), truth, "data")
    if "attention_mask" in batch:
        unread = not is_read(family, model, "attention_mask")
        truth = r"^[A-Za-z]+\.\w+\.\d+\.forward @ (?!.*(?:mlp|ffn|fc|intermediate|dense))|^Module\.\S+\.forward\.\d+ @ "
        yield unless(unread, Change("mask_of_next", "mask of the next sample", on_batch(
            "attention_mask", lambda m: m.roll(1, 0)), truth, "data"))
        yield unless(unread, Change("mask_long", "mask one position longer", on_batch(
            "attention_mask", lambda m: torch.cat([torch.ones_like(m[:, :1]), m[:, :-1]], 1)), truth, "data"))


# ---- updates ----------------------------------------------------------------------------------------

def update_mistakes():
    yield Change("betas_turned", "betas exchanged", adam(betas=(0.999, 0.9)), STEP.format("lerp_|addcmul_|mul_"), "update")
    yield Change("lr_zero", "warm-up begins at zero", adam(lr=0.0), STEP.format("mul_|addcdiv_"), "update")
    yield Change("decay_all", "weight decay of 1.0", adam(weight_decay=1.0), STEP.format("mul_"), "update")
    yield Change("eps_under_root", "eps of 1e-6", adam(eps=1e-6), STEP.format("add_|addcdiv_|__iadd__"), "update")
    def parts(step):
        def make(p):
            thin = [x for x in p if x.ndim < 2]
            return torch.optim.AdamW([{"params": [x for x in p if x.ndim >= 2]}, {"params": thin, "weight_decay": 0.1}],
                                     lr=1e-3, weight_decay=0.01, foreach=False)
        step.optimizer = make
    yield Change("decay_thin", "larger decay of norms and biases", parts, STEP.format(r"mul_|\w+"), "update")
    def short(step):
        step.optimizer = lambda p: torch.optim.AdamW(p[:-2], lr=1e-3, weight_decay=0.01, foreach=False)
    yield Change("parameters_missing", "two parameters are not in the optimizer", short, STEP.format(r"\w+"), "update")
    for name, kind in (("nadam", "NAdam"), ("rmsprop", "RMSprop"), ("adagrad", "Adagrad")):
        def other(step, kind=kind):
            step.optimizer = lambda p: getattr(torch.optim, kind)(p, lr=1e-3, foreach=False)
        yield Change(name, f"{kind} for AdamW", other, STEP.format(r"\w+"), "update")
    def own(function):
        def apply(step):
            clip = step.clip
            step.clip = 0
            step.before_step = lambda m: function(m, clip)
        return apply
    def single(m, clip):
        for p in m.parameters():
            if p.grad is not None:
                torch.nn.utils.clip_grad_norm_([p], clip)
    def half(m, clip):
        p = [x for x in m.parameters() if x.grad is not None]
        torch.nn.utils.clip_grad_norm_(p[:len(p) // 2], clip)
    def l1(m, clip):
        torch.nn.utils.clip_grad_norm_(m.parameters(), clip, 1.0)
    for name, why, function in (("clip_single", "each gradient clipped by itself", single),
                                ("clip_part", "half of the gradients clipped", half),
                                ("clip_l1", "clipped by the sum of magnitudes", l1)):
        yield Change(name, why, own(function), anywhere(CLIP + "|abs|sum|to"), "update")
    def rounded(step):
        def after(m, optimizer):
            with torch.no_grad():
                for p in m.parameters():
                    p.copy_(p.bfloat16())
        step.after_step = after
    yield Change("weights_rounded", "weights written in bf16 after the step", rounded, anywhere("copy_|bfloat16|to"), "update")


# ---- mistakes of one family -------------------------------------------------------------------

EDITS = [
    ("MambaRMSNormGated", "hidden_states * nn.functional.silu(gate.to(torch.float32))", "hidden_states * torch.sigmoid(gate.to(torch.float32))",
     "sigmoid_gate", "silu|sigmoid"),
    ("MambaRMSNormGated", "group_count = last_dim // self.group_size", "group_count, self.group_size = 1, last_dim", "one_group", r"\w+"),
    ("Mamba2Mixer", "A = -torch.exp(self.A_log.float())", "A = -self.A_log.float()", "decay_without_exp", "exp|neg|__neg__|float"),
    ("Mamba2Block", "hidden_states = residual + hidden_states", "hidden_states = residual * 0.5 + hidden_states", "residual_halved",
     r"__r?mul__|__add__"),
    ("RwkvSelfAttention", "value = hidden * self.time_mix_value + shifted * (1 - self.time_mix_value)",
     "value = hidden * self.time_mix_value + shifted * self.time_mix_value", "mix_of_value", r"__r?sub__|__mul__|__add__"),
    ("RwkvSelfAttention", "receptance * rwkv", "rwkv", "receptance_missing", "__mul__|linear"),
    ("RwkvFeedForward", "torch.square(torch.relu(self.key(key)))", "torch.relu(self.key(key))", "square_missing", "square|pow|relu|linear"),
    ("RwkvBlock", "self.feed_forward(self.ln2(hidden), state=state)", "self.feed_forward(hidden, state=state)", "norm_missing", r"\w+"),
    ("RecurrentGemmaRglru", "-8.0 * recurrent_gate", "-4.0 * recurrent_gate", "gate_factor", r"__r?mul__"),
    ("RecurrentGemmaRglru", "gated_inputs = activations * input_gate", "gated_inputs = activations", "gate_missing", "__mul__"),
    ("RecurrentGemmaRglru", "multiplier = reset + ~reset * multiplier", "multiplier = multiplier", "reset_missing",
     r"__r?add__|__r?mul__|__invert__|bitwise_not|\w*apply|type"),
    ("RecurrentGemmaRecurrentBlock", "y_branch = self.act_fn(y_branch)", "y_branch = y_branch", "act_missing", r"\w*gelu|linear|__mul__|pow|tanh"),
    ("GptOssExperts", "(up + 1) * glu", "up * glu", "one_missing", r"__r?add__|__mul__"),
    ("GptOssExperts", "gate_up[..., ::2], gate_up[..., 1::2]", "gate_up.chunk(2, -1)", "halves_for_pairs", "chunk|__getitem__|clamp"),
    ("GptOssTopKRouter", "softmax(router_top_value, dim=1", "softmax(router_top_value, dim=0", "softmax_axis", "softmax"),
    ("GptOssTopKRouter", "torch.nn.functional.softmax(router_top_value, dim=1, dtype=router_top_value.dtype)",
     "router_logits.softmax(-1).gather(-1, router_indices)", "not_renormalised", "softmax|gather|topk"),
    ("GptOssAttention", "cos, sin = position_embeddings", "sin, cos = position_embeddings", "cos_and_sin", r"__mul__|unsqueeze|chunk|__getitem__"),
    ("EsmEmbeddings", "(1 - mask_ratio_train)", "1", "mask_ratio", r"__r?mul__|__truediv__"),
    ("EsmSelfAttention", "query_layer = query_layer * self.attention_head_size**-0.5", "query_layer = query_layer", "scale_missing", r"__mul__|\w+"),
    ("EsmSelfOutput", "hidden_states = hidden_states + input_tensor", "hidden_states = hidden_states + hidden_states", "residual_of_itself", "__add__"),
    ("EsmAttention", "hidden_states_ln = self.LayerNorm(hidden_states)", "hidden_states = hidden_states_ln = self.LayerNorm(hidden_states)",
     "residual_normed", "__add__|layer_norm|dropout"),
    ("FunnelRelMultiheadAttention", "content_score + positional_attn + token_type_attn", "content_score + token_type_attn",
     "positions_missing", r"__add__|\w+"),
    ("FunnelRelMultiheadAttention", "r_w_bias = self.r_w_bias * self.scale", "r_w_bias = self.r_w_bias", "bias_not_scaled", r"__mul__|__add__"),
    ("FunnelPositionwiseFFN", "self.layer_norm(hidden + h)", "self.layer_norm(h)", "residual_missing", "__add__|layer_norm|dropout"),
    ("FunnelRelMultiheadAttention", "query + attn_out", "query - attn_out", "residual_subtracted", "__add__|__sub__"),
    ("PerceiverSelfAttention", "/ math.sqrt(q_head_dim)", "/ q_head_dim", "scale_of_scores", "__truediv__"),
    ("PerceiverAttention", "attention_output = attention_output + hidden_states", "attention_output = attention_output + 0.5 * hidden_states",
     "residual_halved", r"__r?mul__|__add__"),
    ("PerceiverSelfAttention", "context_layer.permute(0, 2, 1, 3).contiguous()", "context_layer.contiguous()", "heads_not_moved",
     r"permute|contiguous|\w+"),
    ("HubertFeedForward", "hidden_states = self.intermediate_act_fn(hidden_states)", "hidden_states = torch.relu(hidden_states)", "relu_for_gelu",
     "gelu|relu"),
    ("HubertEncoder", "hidden_states = hidden_states + position_embeddings", "hidden_states = hidden_states", "positions_missing",
     "__add__|layer_norm"),
    ("HubertAttention", "scaling=self.scaling", "scaling=self.scaling ** 2", "scale_squared", "__mul__|mul"),
    ("LayoutLMEmbeddings", "bbox[:, :, 3] - bbox[:, :, 1]", "bbox[:, :, 3]", "height_missing", r"__sub__|embedding|__getitem__"),
    ("LayoutLMEmbeddings", "self.y_position_embeddings(bbox[:, :, 1])", "self.x_position_embeddings(bbox[:, :, 1])", "y_by_x", r"embedding|__add__"),
    ("LayoutLMEmbeddings", "            + token_type_embeddings\n", "", "types_missing", "__add__|layer_norm"),
    ("LayoutLMSelfOutput", "self.LayerNorm(hidden_states + input_tensor)", "self.LayerNorm(hidden_states) + input_tensor", "norm_before_sum",
     "__add__|layer_norm"),
    ("LayoutLMIntermediate", "hidden_states = self.intermediate_act_fn(hidden_states)", "pass", "act_missing", "gelu|linear"),
    ("BeitLayer", "hidden_states = self.lambda_1 * hidden_states", "hidden_states = hidden_states * 0.1", "layer_scale", r"__r?mul__"),
    ("BeitAttention", "scaling=self.scaling", "scaling=1.0", "scale_missing", "__mul__|mul|scaled_dot_product_attention"),
    ("BeitRelativePositionBias", "relative_position_bias.permute(2, 0, 1).contiguous()", "relative_position_bias.permute(2, 1, 0).contiguous()",
     "bias_turned", "permute|contiguous|unsqueeze"),
    ("ViTMAEForPreTraining", "(loss * mask).sum() / mask.sum()", "loss.mean()", "loss_over_all", r"sum|mean|__mul__|__truediv__"),
    ("ViTMAEEmbeddings", "mask[:, :len_keep] = 0", "mask[:, len_keep:] = 0", "mask_inverted", r"__setitem__|gather"),
    ("ViTMAEDecoder", "hidden_states = x + self.decoder_pos_embed", "hidden_states = x", "positions_missing", r"__add__|cat|layer_norm"),
    ("HieraMaskUnitAttention", "query = query.max(dim=3).values", "query = query.mean(dim=3)", "mean_for_max", "max|mean"),
    ("HieraMaskUnitAttention", "(query * self.scale)", "(query / self.scale)", "scale_inverted", "__mul__|__truediv__"),
    ("HieraLayer", "hidden_states = self.proj(hidden_states_norm)", "hidden_states = self.proj(hidden_states)", "proj_of_input", r"linear|view"),
    ("XCABlock", "self.gamma3 * self.local_mp", "self.gamma2 * self.local_mp", "gamma_of_other", r"__mul__"),
    ("XCABlock", "self.norm2(x)", "self.norm3(x)", "norm_of_other", "layer_norm"),
    ("JointTransformerBlock", "(1 + scale_mlp[:, None])", "scale_mlp[:, None]", "one_missing", r"__r?add__|__mul__"),
    ("JointTransformerBlock", "attn_output = gate_msa.unsqueeze(1) * attn_output", "attn_output = attn_output", "gate_missing",
     r"__mul__|unsqueeze|__add__"),
    ("Distilled", 'reduction="batchmean"', 'reduction="mean"', "mean_for_batchmean", r"kl_div"),
    ("Distilled", "* 9.0", "", "temperature_not_squared", r"__r?mul__"),
    ("Distilled", "self.teacher(x) / 3.0", "self.teacher(x)", "teacher_not_softened", "__truediv__|softmax"),
    ("Byol", "self.slow(b)", "self.slow(a)", "same_view", "conv2d|batch_norm"),
    ("Byol", "F.normalize(self.slow(b), dim=-1)", "self.slow(b)", "target_not_normed", r"normalize|\w*norm|linear|__mul__|clamp\w*|__truediv__"),
    ("Byol", "F.normalize(self.predict(a), dim=-1)", "F.normalize(self.online(a), dim=-1)", "predictor_missing", r"\w+"),
    ("Learner", "self.fast(after).argmax", "self.slow(after).argmax", "best_of_slow", r"\w+"),
    ("Learner", "(1 - done) * future", "future", "end_ignored", r"__r?mul__|__r?sub__|__add__"),
    ("Learner", "reward + 0.97 *", "reward + 0.99 *", "discount", "__r?mul__"),
    ("Dueling", "- a.mean(-1, keepdim=True)", "", "mean_not_removed", "mean|__sub__|gather|argmax|__add__"),
    ("Critic", "slope.flatten(1).norm(2, 1)", "slope.flatten(1).pow(2).sum(1)", "root_missing", "norm|pow|sum|linalg_\\w+|flatten"),
    ("Critic", "(mix * real + (1 - mix) * made)", "(mix * made + (1 - mix) * real)", "mix_turned", r"__mul__|__add__"),
    ("Critic", "self.rate(made).mean() - self.rate(real).mean()", "self.rate(real).mean() - self.rate(made).mean()", "sign_of_critic",
     r"__sub__|mean|conv2d"),
    ("Critic", "+ 10.0 * penalty", "+ penalty", "penalty_weight", r"__r?mul__|__add__"),
    ("Block", "x + 0.2 * self.b(", "x + self.b(", "scale_of_residual", r"__r?mul__|__add__"),
    ("Sharper", "h = h + self.body(h)", "h = self.body(h)", "long_residual_missing", "__add__|conv2d"),
    ("Sharper", 'mode="bicubic"', 'mode="bilinear"', "bilinear", "interpolate"),
    ("Sharper", "F.pixel_shuffle(self.up(h), 2)",
     "(lambda y: y.view(len(y), 2, 2, 8, *y.shape[-2:]).permute(0, 3, 4, 1, 5, 2).reshape(len(y), 8, 16, 16))(self.up(h))",
     "channels_of_pixels", r"pixel_shuffle|view|permute|reshape"),
    ("Grid", "(torch.sigmoid(y[..., :2]) + corner) / h", "torch.sigmoid(y[..., :2]) + corner / h", "cell_not_scaled", r"__r?truediv__|__add__"),
    ("Grid", "torch.stack([columns, rows], -1)", "torch.stack([rows, columns], -1)", "axes_exchanged", r"stack|__add__|to|meshgrid"),
    ("Grid", "F.max_pool2d(x, 5, 1, 2)", "F.avg_pool2d(x, 5, 1, 2)", "mean_pool", r"max_pool2d|avg_pool2d|boolean_dispatch"),
    ("Grid", "torch.exp(y[..., 2:4])", "torch.sigmoid(y[..., 2:4]) * 2", "size_by_sigmoid", r"exp|sigmoid|__r?mul__|__getitem__"),
    ("Volume", "torch.cat([a, self.up(b)], 1)", "torch.cat([self.up(b), a], 1)", "cat_order", "cat"),
    ("Volume", "F.leaky_relu(self.n2(self.deep(a)), 0.01)", "F.leaky_relu(self.deep(a), 0.01)", "norm_missing", r"instance_norm|leaky_relu|conv3d"),
    ("Film", "torch.sigmoid(f + 1.0)", "torch.sigmoid(f)", "forget_bias", r"__r?add__|sigmoid"),
    ("Film", "torch.tanh(c)", "c", "tanh_missing", "tanh|__mul__"),
    ("Film", "self.leave(h) + film[:, i]", "self.leave(h) + film[:, i + 1]", "answer_leaks", "__add__|__getitem__"),
    ("Film", "a, f, o, g = ", "f, a, o, g = ", "gates_exchanged", r"chunk|sigmoid|__r?add__"),
    ("Pointer", "coverage = coverage + weight", "coverage = weight", "coverage_not_summed", r"__add__|linear|\w+"),
    ("Pointer", "spread.scatter_add(1, ids, (1 - write) * weight)", "spread.scatter_add(1, ids, write * weight)", "share_of_copy",
     r"__r?sub__|__mul__|scatter_add"),
    ("Pointer", "score.masked_fill(mask == 0, -1e4)", "score", "mask_missing", r"masked_fill|softmax|__eq__|eq"),
    ("Pointer", "h = torch.tanh(self.start(", "h = (self.start(", "tanh_missing", r"tanh|linear|zeros_like|lstm_cell"),
    ("Speakers", "cosine * math.cos(0.2) - sine * math.sin(0.2)", "cosine * math.cos(0.2) + sine * math.sin(0.2)", "margin_turned",
     r"__add__|__sub__"),
    ("Speakers", "torch.cat([mean, deviation], -1)", "torch.cat([deviation, mean], -1)", "cat_order", "cat"),
    ("Speakers", "F.normalize(self.speakers, dim=-1)", "self.speakers", "speakers_not_normed", r"normalize|linear|\w*norm|clamp\w*|__truediv__"),
    ("Speakers", "self.n2(F.relu(self.t2(x)))", "F.relu(self.n2(self.t2(x)))", "norm_before_relu", r"relu|batch_norm"),
    ("Factors", "(v ** 2).sum(1)", "v.sum(1)", "square_missing", r"__pow__|pow|sum|__sub__"),
    ("Factors", "kinds + self.starts", "kinds", "starts_missing", "__add__|embedding"),
    ("Factors", "torch.log1p(numbers)", "numbers", "log_missing", "log1p|linear"),
    ("Factors", "0.5 * (v.sum(1)", "(v.sum(1)", "half_missing", r"__r?mul__|sum|__sub__"),
    ("Experts", "weight = weight / weight.sum(-1, keepdim=True)", "pass", "not_renormalised", r"__truediv__|sum|topk"),
    ("Experts", "weight.flatten()[order]", "weight.flatten()", "weights_not_sorted", r"__getitem__|flatten|__mul__"),
    ("Experts", "score.topk(2, -1)", "score.topk(2, -1, largest=False)", "smallest_experts", "topk"),
    ("Experts", "+ self.shared2(", "- self.shared2(", "shared_subtracted", r"__add__|__sub__"),
    ("ExpertLayer", "self.key(x).view(b, n, 2, 6).transpose(1, 2)).repeat_interleave(2, 1)",
     "self.key(x).view(b, n, 2, 6).transpose(1, 2)).repeat(1, 2, 1, 1)", "keys_repeated", r"repeat_interleave|repeat"),
    ("ExpertLayer", "10000.0 **", "500000.0 **", "rope_base", r"__rpow__|pow|__pow__|__r?mul__"),
    ("ExpertLayer", "x[..., ::2], x[..., 1::2]", "x.chunk(2, -1)", "rope_halves", r"chunk|__getitem__|__mul__|stack"),
    ("ExpertLayer", ".triu(1)", ".triu(2)", "mask_by_one", r"triu|masked_fill"),
    ("Mixture", "balance = balance + more", "balance = more", "balance_of_last", r"__r?add__|__r?mul__"),
]

# Edits of functions that all modules of a file share: class in the file, function, text, new text, name, operators.
FUNCTIONS = [
    ("GptOssAttention", "eager_attention_forward", "scores = probs[..., :-1]", "scores = probs[..., 1:]", "sink_first", r"__getitem__|dropout"),
    ("GptOssAttention", "_apply_rotary_emb", "first_half * cos - second_half * sin", "first_half * cos + second_half * sin", "rope_sign",
     r"__add__|__sub__"),
    ("GptOssAttention", "repeat_kv", "hidden_states[:, :, None, :, :].expand(batch, num_key_value_heads, n_rep, slen, head_dim)",
     "hidden_states[:, None].expand(batch, n_rep, num_key_value_heads, slen, head_dim)", "heads_repeated", r"expand|reshape|__getitem__"),
    ("RecurrentGemmaAttention", "eager_attention_forward", "dim=-1, dtype=torch.float32", "dim=-2, dtype=torch.float32", "softmax_axis", "softmax"),
    ("LayoutLMSelfAttention", "eager_attention_forward", "* scaling", "* scaling * 1.2", "scale_of_scores", "__mul__"),
    ("HubertAttention", "eager_attention_forward", "torch.matmul(attn_weights, value)", "torch.matmul(attn_weights.mT, value)",
     "weights_turned", r"matmul|transpose"),
    ("EsmSelfAttention", "rotate_half", "torch.cat((-x2, x1), dim=-1)", "torch.cat((x2, -x1), dim=-1)", "rope_turned", r"cat|neg|__neg__"),
]


def function_edits(model):
    for kind, function, old, new, name, ops in FUNCTIONS:
        module = next((m for m in model.modules() if type(m).__name__ == kind), None)
        if module is None:
            continue
        def change(m, kind=kind, function=function, old=old, new=new):
            names = vars(sys.modules[type(next(x for x in m.modules() if type(x).__name__ == kind)).__module__])
            plain = inspect.unwrap(names[function])
            text = textwrap.dedent(inspect.getsource(plain))
            text = text[text.index("def "):]
            if old not in text:
                raise ValueError(f"no {old!r}")
            exec(compile(text.replace(old, new, 1), "edited " + function, "exec"), names)
        yield Change(name, f"{function}: {new}", on_model(change), anywhere(ops))


def faults(family, model, index):
    places = Places(family, model)
    general = [*layer_mistakes(places), *gradient_mistakes(places), *update_mistakes(), *weight_mistakes(places),
               *data_mistakes(places), *norm_mistakes(places), *reduced_mistakes(model), *loss_mistakes(places)]
    yield from (c for c in in_turn(general, index, 5) if not getattr(c, "void", False))
    yield from edits(model, EDITS)
    yield from function_edits(model)


# ---- changes that are no mistakes ---------------------------------------------------------------

VARIATIONS = [
    ("MambaRMSNormGated", "hidden_states_group.pow(2).mean(-1, keepdim=True)", "(hidden_states_group * hidden_states_group).mean(-1, keepdim=True)",
     "product_for_square"),
    ("RwkvSelfAttention", "key = hidden * self.time_mix_key + shifted * (1 - self.time_mix_key)", "key = torch.lerp(shifted, hidden, self.time_mix_key)",
     "lerp"),
    ("RwkvFeedForward", "torch.square(torch.relu(self.key(key)))", "torch.relu(self.key(key)).pow(2)", "pow_for_square"),
    ("RecurrentGemmaRglru", "torch.exp(2 * log_recurrent_gate)", "recurrent_gate.square()", "square_of_exp"),
    ("GptOssExperts", "(up + 1) * glu", "torch.addcmul(glu, up, glu)", "addcmul"),
    ("GptOssRMSNorm", "hidden_states * torch.rsqrt(variance + self.variance_epsilon)", "hidden_states / (variance + self.variance_epsilon).sqrt()",
     "root_divided"),
    ("EsmSelfOutput", "hidden_states = hidden_states + input_tensor", "hidden_states = input_tensor.add(hidden_states)", "add_named"),
    ("FunnelRelMultiheadAttention", 'torch.einsum("bnij,bjnd->bind", attn_prob, v_head)',
     "torch.matmul(attn_prob, v_head.transpose(1, 2)).transpose(1, 2)", "matmul_for_einsum"),
    ("PerceiverSelfAttention", "nn.Softmax(dim=-1)(attention_scores)", "torch.exp(torch.log_softmax(attention_scores, -1))", "exp_of_log"),
    ("HubertFeedForward", "hidden_states = self.intermediate_act_fn(hidden_states)",
     "hidden_states = hidden_states * 0.5 * (1.0 + torch.erf(hidden_states / 1.4142135623730951))", "gelu_by_erf"),
    ("BeitLayer", "hidden_states = self.lambda_1 * hidden_states", "hidden_states = torch.mul(hidden_states, self.lambda_1)", "factors_turned"),
    ("HieraMaskUnitAttention", "query.max(dim=3).values", "query.amax(3)", "amax_for_max"),
    ("HieraMaskUnitAttention", "attn_weights = (query * self.scale) @ key.transpose(-1, -2)",
     "attn_weights = torch.matmul(query, key.transpose(-1, -2)) * self.scale", "scaled_after"),
    ("XCABlock", "self.gamma1 * self.attn(self.norm1(x))", "self.attn(self.norm1(x)) * self.gamma1", "factors_turned"),
    ("JointTransformerBlock", "norm_hidden_states * (1 + scale_mlp[:, None]) + shift_mlp[:, None]",
     "torch.addcmul(shift_mlp[:, None], norm_hidden_states, 1 + scale_mlp[:, None])", "addcmul"),
    ("Distilled", "F.log_softmax(logits / 3.0, -1)", "torch.log(torch.softmax(logits / 3.0, -1))", "log_of_softmax"),
    ("Byol", "(F.normalize(self.predict(a), dim=-1) * target).sum(-1)", "F.cosine_similarity(self.predict(a), target, dim=-1)", "cosine"),
    ("Learner", ".gather(1, action[:, None])[:, 0]", "[torch.arange(len(action)), action]", "indexed"),
    ("Learner", "reward + 0.97 * (1 - done) * future", "torch.where(done > 0, reward, reward + 0.97 * future)", "where"),
    ("Critic", "slope.flatten(1).norm(2, 1)", "slope.flatten(1).square().sum(1).sqrt()", "norm_by_hand"),
    ("Critic", "(mix * real + (1 - mix) * made)", "torch.lerp(made, real, mix)", "lerp"),
    ("Block", "x + 0.2 * self.b(self.act(self.a(x)))", "torch.add(x, self.b(self.act(self.a(x))), alpha=0.2)", "alpha"),
    ("Sharper", "F.pixel_shuffle(self.up(h), 2)",
     "(lambda y: y.view(len(y), 8, 2, 2, *y.shape[-2:]).permute(0, 1, 4, 2, 5, 3).reshape(len(y), 8, 16, 16))(self.up(h))", "shuffle_by_hand"),
    ("Grid", "F.silu(self.b1(self.c1(x)))", "(lambda y: y * torch.sigmoid(y))(self.b1(self.c1(x)))", "silu_by_hand"),
    ("Volume", "F.leaky_relu(self.n1(self.down(x)), 0.01)", "(lambda y: torch.maximum(y, 0.01 * y))(self.n1(self.down(x)))", "leaky_by_hand"),
    ("Film", "self.norm(self.gates(torch.cat([x, h], 1))).chunk(4, 1)", "self.norm(self.gates(torch.cat([x, h], 1))).split(8, 1)", "split_for_chunk"),
    ("Film", "torch.sigmoid(f + 1.0) * c + torch.sigmoid(a) * torch.tanh(g)",
     "torch.addcmul(torch.sigmoid(f + 1.0) * c, torch.sigmoid(a), torch.tanh(g))", "addcmul"),
    ("Pointer", "(weight[..., None] * memory).sum(1)", "torch.bmm(weight[:, None], memory)[:, 0]", "bmm"),
    ("Pointer", "score.masked_fill(mask == 0, -1e4)", "(score - 1e4 * (1 - mask.to(score.dtype)))", "mask_added"),
    ("Speakers", "torch.sqrt(((x - mean[..., None]) ** 2).mean(-1) + 1e-6)", "torch.sqrt(x.var(-1, unbiased=False) + 1e-6)", "var"),
    ("Speakers", "right * moved + (1 - right) * cosine", "torch.where(right > 0, moved, cosine)", "where"),
    ("Factors", "0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(-1)", "(v.sum(1).square() - v.square().sum(1)).mul(0.5).sum(-1)", "half_before"),
    ("Experts", "weight, chosen = score.topk(2, -1)",
     "weight, chosen = self.router(flat).topk(2, -1); weight = torch.softmax(weight, -1)", "softmax_of_chosen"),
    ("ExpertLayer", "self.key(x).view(b, n, 2, 6).transpose(1, 2)).repeat_interleave(2, 1)",
     "self.key(x).view(b, n, 2, 6).transpose(1, 2)).unsqueeze(2).expand(-1, -1, 2, -1, -1).flatten(1, 2)", "expanded"),
    ("ExpertLayer", "score = score.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float(\"-inf\"))",
     "score = score + torch.full((n, n), -1e30).triu(1)", "mask_added"),
]


def halves(m, x):
    """A linear layer as two ranks of columns compute it, in one process."""
    n = len(m.weight) // 2
    parts = [F.linear(x, w, b) for w, b in zip((m.weight[:n], m.weight[n:]),
             (None, None) if m.bias is None else (m.bias[:n], m.bias[n:]))]
    return torch.cat(parts, -1)


def shards(m, x):
    """A linear layer as two ranks of rows compute it, in one process."""
    n = x.shape[-1] // 2
    y = F.linear(x[..., :n], m.weight[:, :n]) + F.linear(x[..., n:], m.weight[:, n:])
    return y if m.bias is None else y + m.bias


def loss_around(function):
    def apply(step):
        loss = step.loss
        step.loss = lambda model, batch: function(loss, model, batch)
    return apply


def run_variations():
    """The same model, run in another way."""
    yield clean("mkldnn_off", "without oneDNN", lambda step: setattr(
        step, "context", lambda: torch.backends.mkldnn.flags(enabled=False)))
    def deterministic(step):
        step.after_make.append(lambda m: torch.use_deterministic_algorithms(True, warn_only=True))
    yield clean("deterministic", "deterministic algorithms", deterministic)
    yield clean("anomalies", "anomaly detection", lambda step: setattr(
        step, "context", lambda: torch.autograd.set_detect_anomaly(True)))
    yield clean("saved_on_cpu", "saved tensors are copied", lambda step: setattr(
        step, "context", torch.autograd.graph.save_on_cpu))
    def cached(step):
        step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16, cache_enabled=False)
    yield unless(True, clean("float16", "all in float16: the eps of Adam is zero there, and its update NaN", lambda step: setattr(
        step, "dtype", torch.float16)))
    yield clean("autocast_uncached", "autocast without a cache", cached)
    yield clean("compiled", "torch.compile with its eager back end", on_model(
        lambda m: torch.compile(m, backend="eager")))
    def functional(loss, model, batch):
        weights = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        class Called(nn.Module):
            def __call__(self, *a, **k):
                return torch.func.functional_call(model, weights, a, k)
        return loss(Called(), batch)
    yield clean("functional_call", "the model as a function of its weights", loss_around(functional))
    def again(loss, model, batch):
        from torch.utils.checkpoint import checkpoint
        return checkpoint(lambda *v: loss(model, dict(zip(batch, v))), *batch.values(), use_reentrant=False)
    yield clean("checkpoint_all", "the whole step is computed again", loss_around(again))
    def graded(loss, model, batch):
        return loss(model, {k: v.clone().requires_grad_() if v.is_floating_point() and k != "labels" else v
                            for k, v in batch.items()})
    yield clean("input_graded", "inputs want gradients", loss_around(graded))
    yield clean("batch_cloned", "the batch is copied", loss_around(
        lambda loss, model, batch: loss(model, {k: v.clone() for k, v in batch.items()})))


def update_variations():
    def turned(step):
        step.optimizer = lambda p: torch.optim.AdamW(p[::-1], lr=1e-3, weight_decay=0.01, foreach=False)
    yield clean("parameters_turned", "parameters in another order", turned)
    def adam_decoupled(step):
        step.optimizer = lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01, decoupled_weight_decay=True, foreach=False)
    yield clean("adam_decoupled", "Adam with decoupled decay", adam_decoupled)
    def grouped(step):
        step.optimizer = lambda p: torch.optim.AdamW([{"params": [x]} for x in p], lr=1e-3, weight_decay=0.01, foreach=True)
    yield clean("group_each", "a group for each parameter, foreach", grouped)
    yield clean("capturable", "optimizer that keeps its count as a tensor", adam(differentiable=False, capturable=False, fused=True, foreach=None))
    def scheduled(step):
        make = step.optimizer
        def both(p):
            optimizer = make(p)
            torch.optim.lr_scheduler.LambdaLR(optimizer, lambda n: 1.0)
            return optimizer
        step.optimizer = both
    yield clean("scheduled", "a schedule of factor 1", scheduled)
    def clipped_foreach(step):
        clip, step.clip = step.clip, 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), clip, foreach=True)
    yield clean("clip_foreach", "clipping by foreach", clipped_foreach)
    def clipped_in_two(step):
        clip, step.clip = step.clip, 0
        def run(m):
            total = torch.nn.utils.get_total_norm([p.grad for p in m.parameters() if p.grad is not None])
            torch.nn.utils.clip_grads_with_norm_(m.parameters(), clip, total)
        step.before_step = run
    yield clean("clip_in_two", "norm and clipping apart", clipped_in_two)
    def bucket(step):
        def run(m):
            grads = [p.grad for p in m.parameters() if p.grad is not None]
            flat = torch.cat([g.reshape(-1) for g in grads])
            for g, part in zip(grads, flat.split([g.numel() for g in grads])):
                g.copy_(part.view_as(g))
        step.before_step = run
    yield clean("bucketed", "gradients through one bucket", bucket)
    def shadow(step):
        def run(m, optimizer):
            with torch.no_grad():
                for p in m.parameters():
                    p.detach().clone().mul_(0.999).add_(p, alpha=0.001)
        step.after_step = run
    yield clean("shadow", "an average of the weights is kept apart", shadow)


def watch_variations(path):
    def hooks(function, backward=False):
        def change(m):
            for module in m.modules():
                if not list(module.children()):
                    (module.register_full_backward_hook if backward else module.register_forward_hook)(function)
        return on_model(change)
    def finite(m, a, out):
        if torch.is_tensor(out):
            with torch.no_grad():
                assert torch.isfinite(out).all()
    yield clean("finite_checked", "each output is tested for NaN", hooks(finite))
    def largest(m, a, out):
        if torch.is_tensor(out) and out.is_floating_point():
            out.detach().abs().max().item()
    yield clean("activations_logged", "largest activations are logged", hooks(largest))
    def counted(step):
        def run(m):
            for p in m.parameters():
                if p.grad is not None:
                    (p.grad == 0).float().mean().item()
        step.before_step = run
    yield clean("zeros_counted", "zeros of gradients are counted", counted)
    def graded(m):
        for p in m.parameters():
            if p.requires_grad:
                p.register_hook(lambda g: g.clone())
    yield clean("gradients_cloned", "hooks return copies of gradients", on_model(graded))
    def accuracy(loss, model, batch):
        found = loss(model, batch)
        with torch.no_grad():
            torch.exp(found.detach().clamp(max=20)).item()
        return found
    yield clean("perplexity_logged", "perplexity is logged", loss_around(accuracy))


def form_variations(places):
    """Other formulas of the same values."""
    path = places.line(2)
    def some(function):
        return on_model(lambda m: setattr(m.get_submodule(path), "forward", functools.partial(
            lambda module, x: function(module, x), m.get_submodule(path))))
    if isinstance(places.model.get_submodule(path), nn.Linear):
        yield clean("columns", f"{path} in two parts of columns", some(halves))
        yield clean("rows", f"{path} in two parts of rows", some(shards))
        yield clean("conv_for_linear", f"{path} as a convolution of width 1", some(lambda m, x: F.conv1d(
            x.reshape(-1, x.shape[-1], 1), m.weight[..., None], m.bias).view(*x.shape[:-1], -1)))
        yield clean("bias_apart", f"bias of {path} added apart", some(
            lambda m, x: F.linear(x, m.weight) + (0 if m.bias is None else m.bias)))
    yield clean("halved_doubled", f"output of {path} halved and doubled", wrap(path, lambda x: (x * 0.5) * 2.0))
    yield clean("strided", f"output of {path} with other strides", wrap(
        path, lambda x: x.flip(0).contiguous().flip(0)))
    yield clean("stacked", f"output of {path} sample by sample", wrap(path, lambda x: torch.stack(list(x.unbind(0)))))
    yield clean("negated_twice", f"output of {path} negated twice", wrap(path, lambda x: -(-x)))
    yield clean("masked_by_ones", f"output of {path} times a mask of ones", wrap(path, lambda x: x * torch.ones_like(x)))
    yield clean("embedding_one_hot", "one-hot products for tables", by_hand(nn.Embedding, lambda m, ids: F.one_hot(
        ids, m.weight.shape[0]).to(m.weight.dtype) @ m.weight))
    yield clean("layer_norm_native", "native_layer_norm", by_hand(nn.LayerNorm, lambda m, x: torch.native_layer_norm(
        x, list(m.normalized_shape), m.weight, m.bias, m.eps)[0]))
    yield clean("softmax_log", "softmax by log_softmax", patched("softmax", lambda plain, x, dim=-1, dtype=None, **k: torch.exp(
        F.log_softmax(x if dtype is None else x.to(dtype), dim))))
    yield clean("gelu_erf", "gelu by erf", patched("gelu", lambda plain, x, approximate="none": x * 0.5 * (
        1 + torch.erf(x * 0.7071067811865476)) if approximate == "none" else plain(x, approximate=approximate)))
    yield clean("silu_tanh", "silu by tanh", patched("silu", lambda plain, x, inplace=False: x * 0.5 * (1 + torch.tanh(x * 0.5))))
    if uses(places.family, places.model, "cross_entropy"):
        def soft(plain, x, y, **k):
            if x.ndim != 2 or (y < 0).any() or set(k) - {"ignore_index", "reduction"} or k.get("reduction", "mean") != "mean":
                return plain(x, y, **k)
            return plain(x, F.one_hot(y, x.shape[1]).to(x.dtype))
        yield clean("soft_labels", "labels as probabilities", patched("cross_entropy", soft))
        def mean_of(plain, x, y, **k):
            if k.get("reduction", "mean") != "mean" or k.get("weight") is not None:
                return plain(x, y, **k)
            one = plain(x, y, **{**k, "reduction": "none"})
            return one.sum() / (y != k.get("ignore_index", -100)).sum()
        yield clean("loss_by_hand", "mean of the loss by hand", patched("cross_entropy", mean_of))
    if uses(places.family, places.model, "mse_loss"):
        yield clean("mse_by_hand", "squared error by hand", patched("mse_loss", lambda plain, x, y, **k: (x - y).square().mean()))


def variations(family, model, index):
    places = Places(family, model)
    general = [*run_variations(), *update_variations(), *watch_variations(places.line(2)), *form_variations(places)]
    yield from (c for c in in_turn(general, index, 4) if not getattr(c, "void", False))
    yield from edits(model, VARIATIONS, truth=False)
