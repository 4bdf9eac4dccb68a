# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the third set; see unseen_families.py.

Every family takes a third of the general changes, in turn, and all edits of its own code.
"""
import torch
from torch import nn
import torch.nn.functional as F

from changes import (ANY, Change, anywhere, data_key, edit_source, first, is_norm, nll, on_model,
                     owners, replace, within)

READS = {"clicks": anywhere("log1p|linear"), "nerf": anywhere("__getitem__|__add__|__r?mul__"),
         "geometric": anywhere("linear"), "clip": anywhere("embedding|eq|argmax|to|int")}
LOSS = (r"^[A-Za-z]+\.(?:cross_entropy|nll_loss|log_softmax|gather|ctc_loss|mse_loss|l1_loss|"
        r"smooth_l1_loss|binary_cross_entropy\w*|masked_select|__getitem__|__r?mul__|__r?sub__|sum|"
        r"max|to|long|view|reshape|flatten|pad|contiguous|ge|__ge__|clamp|unsqueeze|masked_fill_?)"
        r"\.\d+\.forward @ (?!.*(?:layer|block|attn|mlp|head|cross\.|tower))")
STEP = r"^(?:Tensor|Torch)\.(?:{})\.\d+\.forward @ "


# ---- tools ----------------------------------------------------------------------------

def leaf(model, kinds, skip):
    """A module with a weight of its own, not one that is computed from others or read by another."""
    return first(model, lambda m: isinstance(m, kinds) and "weight" in m._parameters
                 and m.weight.ndim > 1 and m not in read_elsewhere(model), skip)


def read_elsewhere(model):
    """Modules whose weight the module around them multiplies itself."""
    return {m.dt_proj for m in model.modules() if hasattr(m, "dt_proj")}


def wrap(path, function):
    """The module's output passes through a function."""
    def change(model):
        module = model.get_submodule(path)
        plain = module.forward
        module.forward = lambda *a, **k: function(plain(*a, **k))
    return on_model(change)


def weight(path, function):
    def change(model):
        w = model.get_submodule(path).weight
        with torch.no_grad():
            w.copy_(function(w.detach().clone()))
    return on_model(change)


def adam(**keys):
    base = {"lr": 1e-3, "weight_decay": 0.01, "foreach": False}
    def apply(step):
        step.optimizer = lambda p: torch.optim.AdamW(p, **{**base, **keys})
    return apply


def patched(name, function, owner=F):
    """A function of torch is another one while the loss is computed."""
    def apply(step):
        loss = step.loss
        def run(model, batch):
            plain = getattr(owner, name)
            setattr(owner, name, lambda *a, **k: function(plain, *a, **k))
            try:
                return loss(model, batch)
            finally:
                setattr(owner, name, plain)
        step.loss = run
    return apply


def on_batch(key, function):
    def apply(step):
        step.batch[key] = function(step.batch[key])
    return apply


# ---- general mistakes -----------------------------------------------------------------

def weight_mistakes(model):
    path = leaf(model, (nn.Linear, nn.Conv2d, nn.Conv1d), 3)
    def quantised(w):
        step = w.abs().max() / 127
        return (w / step).round() * step
    def spoiled(w):
        w.view(-1)[5] = float("nan")
        return w
    def pruned(w):
        return torch.where(w.abs() < w.abs().median() * 0.3, torch.zeros_like(w), w)
    here = owners(model, path)
    yield Change("weight_int8", f"{path} quantised to 8 bits", weight(path, quantised), here)
    yield Change("weight_nan", f"one weight of {path} is NaN", weight(path, spoiled), here)
    yield Change("weight_pruned", f"{path} pruned", weight(path, pruned), here)
    yield Change("weight_scaled", f"{path} times 1.05", weight(path, lambda w: w * 1.05), here)
    norm = first(model, lambda m: is_norm(m) and getattr(m, "weight", None) is not None, 1)
    if norm:
        yield Change("norm_not_loaded", f"weight of {norm} is 1",
                     weight(norm, torch.ones_like), owners(model, norm))
    table = first(model, lambda m: isinstance(m, (nn.Embedding, nn.EmbeddingBag)))
    if table:
        yield Change("row_zero", f"a row of {table} is zero",
                     weight(table, lambda w: w.index_fill(0, torch.arange(3, 30), 0.0)),
                     owners(model, table))


def output_mistakes(model):
    path = leaf(model, (nn.Linear, nn.Conv2d, nn.Conv1d), 2)
    inside = within(path)
    yield Change("out_bf16", f"{path} rounded to bfloat16",
                 wrap(path, lambda x: x.to(torch.bfloat16).to(x.dtype)), inside)
    yield Change("out_clamped", f"{path} clamped", wrap(path, lambda x: x.clamp(-0.7, 0.7)), inside)
    yield Change("out_dropped", f"dropout behind {path}",
                 wrap(path, lambda x: F.dropout(x, 0.1, True)), inside)
    yield Change("out_relu", f"relu behind {path}", wrap(path, torch.relu), inside)
    yield Change("out_doubled", f"{path} added to itself", wrap(path, lambda x: x + x), inside)
    yield Change("out_shifted", f"{path} rolled by one", wrap(path, lambda x: x.roll(1, -1)), inside)
    yield Change("out_offset", f"0.01 added to {path}", wrap(path, lambda x: x + 0.01), inside)
    def stale(m):
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: plain(torch.zeros_like(x))
    yield Change("in_zeros", f"{path} reads zeros", on_model(stale), inside)


def gradient_mistakes(model):
    path = leaf(model, (nn.Linear, nn.Conv2d, nn.Conv1d), 3)
    def twice(m):
        m.get_submodule(path).weight.register_hook(lambda g: g * 2)
    after = "|" + anywhere(r"\w*norm\w*|stack|mul_|lerp_|clip_grad\w*", ANY)
    yield Change("gradient_hook", f"gradient of {path}'s weight doubled", on_model(twice),
                 owners(model, path) + after, "gradient")
    def scaled(step):
        def scale(m):
            for p in m.parameters():
                if p.grad is not None:
                    p.grad.div_(8)
        step.before_step = scale
    truth = anywhere(r"div_|\w*norm\w*|stack|mul_|lerp_|clip_grad\w*", ANY)
    yield Change("gradient_eighth", "gradients divided by a world of 8", scaled, truth, "gradient")
    def noisy(step):
        def one(m):
            g = m.get_submodule(path).weight.grad
            g.add_(torch.full_like(g, 0.1 * g.abs().max().item()))
        step.before_step = one
    truth = anywhere(r"add_|full_like|abs|max|item|\w*norm\w*|stack|mul_|lerp_|clip_grad\w*", ANY)
    yield Change("gradient_added", f"a constant added to the gradient of {path}", noisy, truth,
                 "gradient")
    def half(m):
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: plain(x * 0.5 + x.detach() * 0.5)
    yield Change("input_half_detached", f"half of the input of {path} detached", on_model(half),
                 within(path, direction=ANY), "gradient")


def data_mistakes(family, model):
    key = data_key(family)
    truth = READS.get(family.name)
    if truth is None and key == "input_ids":
        truth = anywhere(r"embedding\w*")
    if truth is None:
        truth = within(first(model, lambda m: isinstance(m, (nn.Conv1d, nn.Conv2d, nn.Linear))))
    if key == "input_ids":
        yield Change("ids_shifted", "ids moved by one", on_batch(key, lambda x: x.roll(1, -1)),
                     truth, "data")
        def one(x):
            x = x.clone()
            x[0, 2] = (x[0, 2] + 5) % 20
            return x
        yield Change("id_changed", "one id is another", on_batch(key, one), truth, "data")
    else:
        yield Change("data_flipped", "data mirrored", on_batch(key, lambda x: x.flip(-1)), truth,
                     "data")
        yield Change("data_scaled", "data times 1.02", on_batch(key, lambda x: x * 1.02), truth,
                     "data")
        yield Change("data_bf16", "data rounded to bfloat16",
                     on_batch(key, lambda x: x.bfloat16().float()), truth, "data")
    labels = family.labels
    if family.batch()[labels].dtype == torch.int64:
        yield Change("label_off", "labels off by one", on_batch(
            labels, lambda y: torch.where(y < 0, y, (y + 1) % (int(y.max()) + 1))), LOSS, "data")
    else:
        yield Change("label_scaled", "labels times 0.9", on_batch(labels, lambda y: y * 0.9), LOSS,
                     "data")
    yield Change("labels_rolled", "labels of the neighbouring sample",
                 on_batch(labels, lambda y: y.roll(1, 0)), LOSS, "data")


def update_mistakes():
    yield Change("lr_half", "half the learning rate", adam(lr=5e-4), STEP.format("mul_|addcdiv_"),
                 "update")
    yield Change("decay_large", "weight decay 0.3", adam(weight_decay=0.3), STEP.format("mul_"),
                 "update")
    yield Change("amsgrad", "AMSGrad", adam(amsgrad=True), STEP.format("maximum|sqrt|max|copy_"),
                 "update")
    def coupled(step):
        step.optimizer = lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01, foreach=False)
    yield Change("adam_coupled", "Adam's decay for AdamW's", coupled,
                 STEP.format("mul_|add|add_|lerp_"), "update")
    def ascent(step):
        step.optimizer = lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01, foreach=False,
                                                     maximize=True)
    yield Change("maximize", "the loss is maximised", ascent, STEP.format(
        r"neg|__neg__|lerp_|mul_"), "update")
    def loose(step):
        step.clip = 0.5
    clip = anywhere(r"\w*norm\w*|stack|__truediv__|__rtruediv__|reciprocal|clamp|mul_|__add__|__mul__")
    yield Change("clip_half", "clipped to 0.5", loose, clip, "update")
    def scaled(step):
        step.before_backward = lambda model, loss: loss * 4
    yield Change("loss_times_4", "loss times 4", scaled, anywhere("__mul__|mul", ANY), "loss")


# ---- mistakes of one family: class, text, new text, why, operators that are right -----

EDITS = [
    ("CoreAttention", "scores = scores * self.scale", "scores = scores * 1.1", "scores_scaled", "__mul__"),
    ("CoreAttention", "-10000.0", "-2.0", "mask_weak", "masked_fill"),
    ("CoreAttention", "torch.softmax(scores.float(), -1)", "torch.softmax(scores.float(), -2)",
     "softmax_axis", "softmax"),
    ("CoreAttention", "math.sqrt(d)", "d", "scale_of_scores", "__truediv__"),
    ("ParallelLayer", "q, k, v = qkv.chunk(3, -1)", "q, v, k = qkv.chunk(3, -1)", "k_v_exchanged",
     "chunk|permute|transpose|matmul"),
    ("ParallelLayer", 'approximate="tanh"', 'approximate="none"', "gelu_exact", "gelu"),
    ("ParallelLayer", "+ self.dense_bias", "+ 2 * self.dense_bias", "bias_twice", "__add__|__r?mul__"),
    ("ParallelLayer", "self.post_layernorm(x)", "self.post_layernorm(x - attn)", "norm_reads_other",
     "layer_norm|__sub__"),
    ("CrossNet", "torch.log1p(dense)", "torch.log(dense + 1.5)", "log_shifted", "log1p|log|__add__"),
    ("CrossNet", "x = start * layer(x) + x", "x = start * layer(x)", "cross_without_x", "__add__|cat|linear"),
    ("CrossNet", "torch.sigmoid(w) * mask", "torch.sigmoid(w)", "history_unmasked",
     "__mul__|sigmoid|__getitem__"),
    ("CrossNet", "q - past", "past - q", "difference_turned", "__sub__"),
    ("Nerf", "2.0 ** i * x), torch.cos(2.0 ** i * x)", "2.0 ** i * x), torch.cos(2.0 * i * x)",
     "frequency", "cos|__r?mul__"),
    ("Nerf", "F.softplus(self.density(h))", "F.relu(self.density(h))", "relu_density", "softplus|relu"),
    ("Nerf", "0.25)", "0.5)", "step_doubled", "__mul__"),
    ("Nerf", "torch.cat([h, x], -1)", "torch.cat([h, 0 * x], -1)", "skip_lost", "cat|__r?mul__"),
    ("Detector", "self.lat4(c4) + F.interpolate(p5", "self.lat4(c4) + 0.5 * F.interpolate(p5",
     "pyramid_halved", "__r?mul__|__add__"),
    ("Detector", "F.relu(self.boxes(h))", "self.boxes(h)", "relu_missing", "relu|flatten"),
    ("Detector", "for p in (p3, p4, p5)", "for p in (p3, p4, p5 * 0.5)", "level_halved", r"__r?mul__"),
    ("Tacotron", "torch.tanh(a) * torch.sigmoid(b)", "torch.tanh(b) * torch.sigmoid(a)",
     "gates_exchanged", "tanh|sigmoid"),
    ("Tacotron", "F.pad(x, (2 ** (i + 1), 0))", "F.pad(x, (2 ** i, 2 ** i))", "not_causal", "pad|conv1d"),
    ("Tacotron", "F.relu(total)", "total", "relu_missing", "relu|transpose"),
    ("Tacotron", "total = x + h, total + h", "total = x, total + h", "residual_missing", "__add__|pad"),
    ("Net", "x = x + self.act(self.norm(self.c2(x, edges)))",
     "x = self.act(self.norm(self.c2(x, edges)))", "residual_missing", "__add__|linear"),
    ("Net", "self.c3(x, edges)", "self.c3(x, edges.flip(0))", "edges_turned", r"\w+"),
    ("Net", "global_mean_pool", "(lambda x, g: global_mean_pool(x * 2, g))", "pool_doubled",
     r"__r?mul__|\w*scatter\w*|new_zeros|index_add\w*"),
    ("MambaBlock", "residual + hidden_states", "hidden_states", "residual_missing", "__add__"),
    ("DeepseekV3MoE", "routing_weights = routing_weights * self.routed_scaling_factor",
     "routing_weights = routing_weights", "routing_scale", r"__r?mul__"),
    ("DeepseekV3MLP|Qwen3MoeMLP|CohereMLP", "self.act_fn(self.gate_proj(x))", "self.gate_proj(x)",
     "silu_missing", "silu|__mul__|linear"),
    ("CohereAttention", "scaling=self.scaling", "scaling=self.scaling * 1.2", "scale_of_scores", "__mul__"),
    ("CLIPAttention", "scaling=self.scale", "scaling=self.scale * 2", "scale_of_scores", "__mul__|linear"),
    ("CLIPEncoderLayer", "hidden_states = residual + hidden_states", "hidden_states = residual * 0.9 + hidden_states",
     "residual_weak", "__r?mul__|__add__"),
    ("SegformerMixFFN|SegformerMLP", "self.dwconv(hidden_states, height, width)", "hidden_states",
     "dwconv_missing", r"\w+"),
    ("Wav2Vec2FeedForward", "self.intermediate_act_fn(hidden_states)", "hidden_states", "gelu_missing",
     "gelu|linear|dropout"),
    ("EvaBlock", "self.norm2(x)", "x", "norm_missing", r"layer_norm|linear"),
    ("LayerScaleBlock", "self.gamma_1 *", "1.5 *", "scale_of_layer", "__r?mul__"),
]


def edits(model, table, truth=True):
    import inspect
    for kinds, old, new, name, *ops in table:
        path = next((n for n, m in reversed(list(model.named_modules()))
                     if type(m).__name__ in kinds.split("|")), None)
        if path is None:
            continue
        text = inspect.getsource(inspect.unwrap(type(model.get_submodule(path)).forward))
        methods = [k for k, f in vars(type(model.get_submodule(path))).items()
                   if inspect.isfunction(f) and old in inspect.getsource(f)]
        if old not in text and not methods:
            continue
        def change(m, path=path, old=old, new=new, methods=methods):
            edit_method(m, path, old, new, methods)
        right = within(path, ops[0], inner=True) if truth and path else \
            anywhere(ops[0]) if truth else ""
        yield Change(name, f"{path or 'model'}: {new}", on_model(change), right,
                     "forward" if truth else "clean")


def edit_method(model, path, old, new, methods):
    """As changes.edit_source, in any method of the module's class."""
    import inspect, sys, textwrap
    module = model.get_submodule(path)
    if methods in ([], ["forward"]):
        edit_source(model, path, old, new)
        return
    function = inspect.unwrap(vars(type(module))[methods[0]])
    text = textwrap.dedent(inspect.getsource(function))
    names = dict(vars(sys.modules[type(module).__module__]))
    exec(compile(text[text.index("def "):].replace(old, new, 1), f"edited {path}", "exec"), names)
    setattr(module, function.__name__, names[function.__name__].__get__(module))


def in_turn(changes, index, share=3):
    for i, change in enumerate(changes):
        if (i + index) % share == 0:
            yield change


def faults(family, model, index):
    general = [*weight_mistakes(model), *output_mistakes(model), *gradient_mistakes(model),
               *data_mistakes(family, model), *update_mistakes()]
    yield from in_turn(general, index)
    yield from edits(model, EDITS)


# ---- changes that are no mistakes -------------------------------------------------------

VARIATIONS = [
    ("CoreAttention", "-10000.0", "torch.finfo(scores.dtype).min", "mask_least"),
    ("CoreAttention", "-10000.0", 'float("-inf")', "mask_infinite"),
    ("CoreAttention", "scores = scores.masked_fill(mask, -10000.0)",
     "scores = scores + torch.zeros(mask.shape).masked_fill(mask, -10000.0)", "mask_added"),
    ("CoreAttention", "torch.softmax(scores.float(), -1)",
     "torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True))", "softmax_by_hand"),
    ("CoreAttention", "scores = torch.matmul(q, k.transpose(-1, -2)) / (math.sqrt(d) * self.scale)",
     "return F.scaled_dot_product_attention(q, k, v, attn_mask=~mask).permute(0, 2, 1, 3).reshape(b, n, h * d)",
     "attention_fused"),
    ("ParallelLayer", "qkv = self.query_key_value(self.input_layernorm(x)).view(b, n, self.heads, -1)",
     "w = self.query_key_value.weight.view(self.heads, 3, -1, c); "
     "z = self.query_key_value.bias.view(self.heads, 3, -1); y = self.input_layernorm(x); "
     "qkv = torch.cat([F.linear(y, w[:, i].reshape(-1, c), z[:, i].reshape(-1)).view(b, n, self.heads, -1)"
     " for i in range(3)], -1)", "qkv_apart"),
    ("ParallelLayer", 'F.gelu(self.dense_h_to_4h(self.post_layernorm(x)), approximate="tanh")',
     "(lambda y: 0.5 * y * (1 + torch.tanh(0.7978845608028654 * (y + 0.044715 * y * y * y))))"
     "(self.dense_h_to_4h(self.post_layernorm(x)))", "gelu_by_hand"),
    ("Nerf", "torch.cumprod(1 - alpha + 1e-10, -1)",
     "torch.exp(torch.cumsum(torch.log(1 - alpha + 1e-10), -1))", "product_by_logs"),
    ("Nerf", "(weight[..., None] * colour).sum(1)", 'torch.einsum("rs,rsc->rc", weight, colour)', "einsum"),
    ("Detector", "scale_factor=2.0", "scale_factor=2", "scale_whole"),
    ("Tacotron", "F.pad(x, (2 ** (i + 1), 0))",
     "torch.cat([x.new_zeros(*x.shape[:2], 2 ** (i + 1)), x], 2)", "pad_by_cat"),
    ("CrossNet", "x = start * layer(x) + x", "x = torch.addcmul(x, start, layer(x))", "addcmul"),
    ("CrossNet", "torch.log1p(dense)", "torch.log(dense + 1)", "log_by_hand"),
]


def by_hand(kind, function):
    def apply(step):
        def change(model):
            for m in model.modules():
                if type(m) is kind:
                    m.forward = lambda *a, m=m: function(m, *a)
        step.after_make.append(change)
    return apply


def variations(family, model, index):
    yield from in_turn([*exact_variations(family, model), *other_variations(family, model)], index)
    yield from edits(model, VARIATIONS, truth=False)
    if family.name == "megatron":
        yield Change("loss_fused", "cross_entropy", fused_loss, "", "clean")
    if family.name == "clicks":
        yield Change("bce_by_hand", "sigmoid and BCE", patched(
            "binary_cross_entropy_with_logits",
            lambda plain, x, y, **k: F.binary_cross_entropy(torch.sigmoid(x), y, **k)), "", "clean")


def fused_loss(step):
    def loss(m, b):
        logits = m(b["input_ids"])
        losses = F.cross_entropy(logits.view(-1, logits.shape[-1]), b["labels"].reshape(-1),
                                 reduction="none").view_as(b["labels"])
        return (losses * b["loss_mask"]).sum() / b["loss_mask"].sum()
    step.loss = loss


def clean(name, why, apply):
    return Change(name, why, apply, "", "clean")


def exact_variations(family, model):
    """Changes that leave every value bit-equal, or nearly."""
    yield clean("again", "the same run", lambda step: None)
    yield clean("foreach", "foreach optimizer", adam(foreach=True))
    yield clean("fused", "fused optimizer", adam(foreach=None, fused=True))
    yield clean("threads2", "two threads", lambda step: setattr(step, "threads", 2))
    def groups(step):
        step.optimizer = lambda p: torch.optim.AdamW(
            [{"params": p[::2]}, {"params": p[1::2]}], lr=1e-3, weight_decay=0.01, foreach=False)
    yield clean("groups", "two groups of parameters", groups)
    def watched(step):
        step.before_step = lambda m: [p.grad.norm().item() for p in m.parameters()
                                      if p.grad is not None]
    yield clean("norms_logged", "norms of gradients are logged", watched)
    def clip_by_hand(step):
        step.clip = 0
        def clip(m):
            grads = [p.grad for p in m.parameters() if p.grad is not None]
            total = torch.sqrt(sum(g.pow(2).sum() for g in grads))
            for g in grads:
                g.mul_((1.0 / (total + 1e-6)).clamp(max=1.0))
        step.before_step = clip
    yield clean("clip_by_hand", "clipping written by hand", clip_by_hand)
    path = leaf(model, (nn.Linear, nn.Conv2d, nn.Conv1d), 2)
    yield clean("cloned", f"{path} cloned", wrap(path, lambda x: x.clone()))
    yield clean("dropout_zero", f"dropout of 0 behind {path}",
                wrap(path, lambda x: F.dropout(x, 0.0, True)))
    yield clean("reshaped", f"{path} through other shapes",
                wrap(path, lambda x: x.unsqueeze(0).transpose(0, 1).flatten(0, 1).view_as(x)))
    def again(m):
        from torch.utils.checkpoint import checkpoint
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: checkpoint(plain, x, use_reentrant=False)
    yield clean("checkpoint", f"{path} is computed again", on_model(again))
    yield clean("parallel", "DistributedDataParallel of one process", data_parallel)


def data_parallel(step):
    import os, tempfile
    import torch.distributed as dist
    def change(model):
        store = dist.FileStore(os.path.join(tempfile.mkdtemp(), "store"), 1)
        dist.init_process_group("gloo", store=store, rank=0, world_size=1)
        return nn.parallel.DistributedDataParallel(model, find_unused_parameters=True)
    step.after_make.append(change)


def other_variations(family, model):
    """Changes of the implementation: equal up to rounding."""
    yield clean("float64", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("bfloat16", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    def autocast(step):
        step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    yield clean("autocast", "autocast to bfloat16", autocast)
    yield clean("linear_einsum", "einsum for linear", by_hand(nn.Linear, lambda m, x: torch.einsum(
        "...i,oi->...o", x, m.weight) + (0 if m.bias is None else m.bias)))
    yield clean("silu_by_hand", "x * sigmoid(x)", patched(
        "silu", lambda plain, x, inplace=False: x * torch.sigmoid(x)))
    yield clean("softmax_by_hand", "softmax written by hand", patched(
        "softmax", lambda plain, x, dim=-1, dtype=None, **k: by_hand_softmax(x, dim, dtype)))
    yield clean("embedding_indexed", "rows of the table indexed", by_hand(
        nn.Embedding, lambda m, ids: m.weight[ids]))
    if any(isinstance(m, nn.BatchNorm2d) for m in model.modules()):
        yield clean("batchnorm_by_hand", "batch norm written by hand",
                    by_hand(nn.BatchNorm2d, by_hand_batchnorm))
    if family.batch()[family.labels].dtype == torch.int64:
        yield clean("nll", "log_softmax and nll_loss", nll)
    if family.hugging and family.name != "mamba":
        def sdpa(step):
            step.keys["attention"] = "sdpa"
        yield clean("sdpa", "SDPA for eager attention", sdpa)
        def flash(step):
            step.after_make.append(lambda m: m.gradient_checkpointing_enable(
                {"use_reentrant": True}))
        yield clean("checkpoint_all", "all layers are computed again", flash)
    if family.name in ("nerf", "wavenet", "eva", "cait", "geometric"):
        yield clean("batch_order", "the batch in another order", lambda step: setattr(
            step, "batch", {k: v.flip(0) if k != "edges" else 47 - v for k, v in step.batch.items()}))
    if family.name in ("nerf", "wavenet", "eva", "cait", "megatron"):
        yield clean("micro_batches", "two micro batches", lambda step: setattr(step, "parts", 2))


def by_hand_softmax(x, dim, dtype):
    x = x if dtype is None else x.to(dtype)
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


def by_hand_batchnorm(m, x):
    mean = x.mean((0, 2, 3), keepdim=True)
    var = ((x - mean) ** 2).mean((0, 2, 3), keepdim=True)
    y = (x - mean) / torch.sqrt(var + m.eps)
    return y * m.weight[None, :, None, None] + m.bias[None, :, None, None]
