# SPDX-License-Identifier: MIT
"""Mistakes that engineers make, and changes that are no mistakes, for any family of models.

`faults(family, model)` and `variations(family, model)` list Change objects. The truth of a fault is
a regular expression over "NODE @ MODULE": what an acceptable suspect 1 is, written from where the
change was made and not from what a tool says.
"""
import inspect
import re
import sys
import textwrap

import torch
from torch import nn
import torch.nn.functional as F

ANY = r"(?:forward|backward|parameters_grad)"


class Change:
    def __init__(self, name, why, apply, truth="", group="forward"):
        self.name, self.why, self.apply, self.truth, self.group = name, why, apply, truth, group


# ---- truths ---------------------------------------------------------------------------

def within(path, ops=r"\w+", direction="forward", inner=False):
    """Operators in the module at this path, and the module itself. inner: or in modules of it."""
    at = re.escape(path) + (r"(?:\.\S+)?" if inner else "")
    return (rf"^(?:[A-Za-z]+\.(?:{ops})\.\d+\.{direction}|Module\.\S+\.{direction}(?:\.\d+)?)"
            rf" @ {at}$")


def anywhere(ops, direction="forward"):
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.{direction} @ "


def parent_of(path):
    return path.rpartition(".")[0]


# ---- editing a model ------------------------------------------------------------------

def replace(model, path, new):
    setattr(model.get_submodule(parent_of(path)), path.rpartition(".")[2], new)


def edit_source(model, path, old, new):
    """Replaces a text in the source of the forward of the module's class, for this module alone."""
    module = model.get_submodule(path)
    forward = inspect.unwrap(type(module).forward)
    text = textwrap.dedent(inspect.getsource(forward))
    text = text[text.index("def "):]
    if old not in text:
        raise ValueError(f"{path}: no {old!r}")
    names = dict(vars(sys.modules[type(module).__module__]))
    exec(compile(text.replace(old, new, 1), f"edited {path}", "exec"), names)
    module.forward = names[forward.__name__].__get__(module)


def first(model, test, skip=0):
    found = [n for n, m in model.named_modules() if n and test(m)]
    return found[min(skip, len(found) - 1)] if found else None


def is_norm(m):
    return "Norm" in type(m).__name__ and not list(m.children())


def is_activation(m):
    name = type(m).__name__
    return not list(m.children()) and not list(m.parameters()) and any(
        w in name for w in ("ReLU", "GELU", "SiLU", "Activation", "Tanh")) and "Sigmoid" not in name


def norm_eps(m):
    return next(k for k in ("eps", "variance_epsilon") if hasattr(m, k))


# ---- faults of the forward pass -------------------------------------------------------

def on_model(function):
    return lambda step: step.after_make.append(function)


def module_faults(model):
    """For modules of each kind that the model has: one wrong in the usual ways."""
    path = first(model, is_norm, 1)
    if path:
        eps = norm_eps(model.get_submodule(path))
        yield Change("norm_eps", f"eps of {path} is 0.1",
                     on_model(lambda m: setattr(m.get_submodule(path), eps, 0.1)), within(path))
    last = first(model, is_norm, 2)
    if last:
        yield Change("norm_missing", f"{last} left out",
                     on_model(lambda m: replace(m, last, nn.Identity())), within(last))
    act = first(model, is_activation, 1)
    if act:
        new = nn.ReLU if "ReLU" not in type(model.get_submodule(act)).__name__ else nn.SiLU
        truth = within(act) + "|" + within(parent_of(act))
        yield Change("act_other", f"{act} is {new.__name__}",
                     on_model(lambda m: replace(m, act, new())), truth)
        yield Change("act_missing", f"{act} left out",
                     on_model(lambda m: replace(m, act, nn.Identity())), truth)
    yield from weight_faults(model)


def owners(model, path):
    """Truth: the module, or another that shares its weight."""
    weight = model.get_submodule(path).weight
    return "|".join(within(n, direction=ANY) for n, m in model.named_modules()
                    if getattr(m, "weight", None) is weight)


def weight_faults(model):
    line = first(model, lambda m: isinstance(m, nn.Linear) and m.weight.shape[0] > 1, 2)
    if line:
        def scramble(m):
            g = torch.Generator().manual_seed(77)
            w = m.get_submodule(line).weight
            w.data.copy_(torch.randn(w.shape, generator=g) * w.shape[1] ** -0.5)
        yield Change("weight_init", f"weight of {line} not loaded", on_model(scramble), owners(model, line))
    def has_bias(m):
        return isinstance(m, (nn.Linear, nn.Conv2d, nn.Conv1d)) and m.bias is not None
    biased = first(model, has_bias, 1)
    if biased:
        yield Change("bias_zero", f"bias of {biased} not loaded",
                     on_model(lambda m: m.get_submodule(biased).bias.data.zero_()), within(biased))
        def drop(m):
            m.get_submodule(biased).bias = None
        yield Change("bias_missing", f"{biased} has no bias", on_model(drop), within(biased))
    square = first(model, lambda m: isinstance(m, nn.Linear) and
                   m.weight.shape[0] == m.weight.shape[1], 1)
    if square:
        def turn(m):
            w = m.get_submodule(square).weight
            w.data = w.data.t().contiguous()
        yield Change("weight_transposed", f"{square} transposed", on_model(turn), within(square))
    conv = first(model, lambda m: isinstance(m, nn.Conv2d) and m.padding not in (0, (0, 0)), 1)
    if conv:
        truth = within(conv)
        def pad(m):
            m.get_submodule(conv).padding_mode = "reflect"
            m.get_submodule(conv)._reversed_padding_repeated_twice = [1, 1, 1, 1]
        if model.get_submodule(conv).padding == (1, 1):
            yield Change("conv_padding", f"{conv} pads by reflection", on_model(pad), truth)
    norm = first(model, lambda m: isinstance(m, (nn.BatchNorm2d, nn.BatchNorm1d)), 1)
    if norm:
        yield Change("norm_eval", f"{norm} in evaluation",
                     on_model(lambda m: m.get_submodule(norm).eval()), within(norm))
    drop_at = first(model, lambda m: isinstance(m, nn.Dropout), 1)
    if drop_at:
        yield Change("dropout_on", f"{drop_at} drops 0.2",
                     on_model(lambda m: setattr(m.get_submodule(drop_at), "p", 0.2)),
                     within(drop_at, "dropout") + "|" + within(parent_of(drop_at), "dropout"))


# Edits of the source of forward: class, text, new text, why, operators that are right.
EDITS = [
    ("LlamaDecoderLayer|Qwen2DecoderLayer|MixtralDecoderLayer|OPTDecoderLayer|BartEncoderLayer|BartDecoderLayer",
     "hidden_states = residual + hidden_states", "hidden_states = hidden_states + 0 * residual",
     "residual_missing", r"__r?(?:add|mul)__"),
    ("GPT2Block", "hidden_states = attn_output + residual", "hidden_states = attn_output",
     "residual_missing", "__add__"),
    ("GPTNeoXLayer", "hidden_states = mlp_output + attn_output + hidden_states",
     "hidden_states = mlp_output + hidden_states", "parallel_residual", "__add__"),
    ("PhiDecoderLayer", "attn_outputs + feed_forward_hidden_states + residual",
     "attn_outputs + feed_forward_hidden_states", "residual_missing", "__add__"),
    ("ViTLayer", "hidden_states = hidden_states + residual", "hidden_states = hidden_states",
     "residual_missing", "__add__"),
    ("BasicBlock", "out += identity", "out = out + 0.5 * identity", "shortcut_halved",
     "__i?add__|__r?mul__|__iadd__"),
    ("LlamaMLP|Qwen2MLP|Gemma2MLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)",
     "self.act_fn(self.up_proj(x)) * self.gate_proj(x)", "gate_up_exchanged", "linear|silu|gelu"),
    ("LlamaAttention|Qwen2Attention|MixtralAttention", "scaling=self.scaling",
     "scaling=self.scaling * 2", "scale_doubled", "__mul__"),
    ("Gemma2Attention|GPT2Attention|GPTNeoXAttention|PhiAttention|DistilBertSelfAttention|BartAttention|ViTAttention|ViTSelfAttention",
     "scaling=self.scaling", "scaling=self.scaling * 2", "scale_doubled", "__mul__"),
    ("OPTAttention", "* self.scaling", "* self.scaling ** 2", "scale_squared", "__mul__"),
    ("LlamaAttention|Qwen2Attention|MixtralAttention|GPTNeoXAttention",
     "apply_rotary_pos_emb(query_states, key_states, cos, sin)",
     "(apply_rotary_pos_emb(query_states, key_states, cos, sin)[0], key_states)",
     "rope_of_keys_missing", "__mul__|__add__|cat|matmul|__neg__|neg|__getitem__"),
    ("GPT2MLP", "self.act(hidden_states)", "self.act(hidden_states * 1.702) / 1.702", "quick_gelu",
     r"__r?mul__|__truediv__|pow|tanh|\w*gelu"),
    ("LlamaRMSNorm|Qwen2RMSNorm", ".pow(2).mean(-1, keepdim=True)",
     ".var(-1, keepdim=True, unbiased=False)", "norm_centered", "pow|mean|var"),
    ("UNet", "F.avg_pool2d(a, 2)", "F.max_pool2d(a, 2)", "pool_max", "avg_pool2d|max_pool2d"),
    ("UNet", "torch.cat([c, a], 1)", "torch.cat([a, c], 1)", "cat_order", "cat"),
    ("UNet", 'mode="nearest"', 'mode="bilinear"', "upsampling_bilinear", "interpolate"),
    ("UNet", "self.time(self.embed(t))", "self.time(self.embed(t / 10))", "time_scaled",
     r"\w+"),
    ("Seq2Seq", "memory.mean(1)", "memory[:, -1]", "last_for_mean", "mean|select|__getitem__"),
    ("Seq2Seq", "torch.cat([state, context], -1)", "torch.cat([context, state], -1)", "cat_order",
     "cat"),
    ("PointNet", "+ torch.eye(3)", "", "eye_missing", "__add__|eye"),
    ("PointNet", "self.c1(x)))))).amax(-1)", "self.c1(x)))))).mean(-1)", "mean_for_max",
     "amax|mean"),
    ("Layer", "F.leaky_relu(a, 0.2)", "F.leaky_relu(a, 0.01)", "slope", "leaky_relu"),
    ("Layer", "a = torch.exp(a - a.max())", "a = torch.sigmoid(a)", "sigmoid_attention",
     "exp|max|__sub__|sigmoid"),
    ("Layer", "+ self.bias", "", "bias_left_out", "__add__"),
    ("Vae", "0.5 * logvar", "logvar", "std_is_var", "__r?mul__|exp"),
    ("Vae", "noise * torch", "torch", "no_noise", "__r?mul__"),
]


def edits(model):
    for kinds, old, new, name, ops in EDITS:
        path = next((n for n, m in reversed(list(model.named_modules()))
                     if type(m).__name__ in kinds.split("|")), None)
        if path is None:
            continue
        text = inspect.getsource(inspect.unwrap(type(model.get_submodule(path)).forward))
        if old not in text:
            continue
        yield Change(name, f"{path}: {new or 'without ' + old}",
                     on_model(lambda m, path=path, old=old, new=new: edit_source(m, path, old, new)),
                     within(path, ops, inner=True))


# ---- faults of data, loss, gradients and updates --------------------------------------

def data_key(family):
    batch = family.batch()
    return "input_ids" if "input_ids" in batch else "pixel_values"


def reader_of(family, model):
    """Truth of a wrong input: the first operator that reads it, and the module around that."""
    if "input_ids" in family.batch():
        return anywhere("embedding")
    path = first(model, lambda m: isinstance(m, (nn.Conv1d, nn.Conv2d, nn.Linear)))
    return within(path)


def data_faults(family, model):
    key = data_key(family)
    truth = reader_of(family, model)
    def other(step):
        g = torch.Generator().manual_seed(99)
        x = step.batch[key]
        if x.is_floating_point():
            step.batch[key] = torch.randn(x.shape, generator=g).abs().clamp(max=1)
        else:
            step.batch[key] = torch.randint(3, 96, x.shape, generator=g)
    yield Change("data_other", "another batch of inputs", other, truth, "data")
    if key == "pixel_values":
        def raw(step):
            step.batch[key] = step.batch[key] * 0.5 + 0.5
        yield Change("data_normalised_apart", "inputs normalised otherwise", raw, truth, "data")
    labels = family.labels
    if family.batch()[labels].dtype == torch.int64:
        def roll(step):
            step.batch[labels] = step.batch[labels].roll(1, -1)
        def swap(step):
            step.batch[labels] = step.batch[labels].flip(0)
        truth = anywhere("cross_entropy|nll_loss|pad|__getitem__|reshape|view|to", ANY)
        if family.name == "bart":  # the decoder reads the labels, shifted by one
            truth += "|" + within("model.decoder.embed_tokens")
        def some(step):
            x = step.batch[labels].clone()
            few = x.view(-1)[1:4]
            few.copy_(torch.where(few < 0, few, (few + 1) % 8))
            step.batch[labels] = x
        yield Change("labels_changed", "three labels are others", some, truth, "data")
        yield Change("labels_shifted", "labels shifted by one", roll, truth, "data")
        yield Change("labels_shuffled", "labels of another order", swap, truth, "data")
    if "attention_mask" in family.batch():
        def no_mask(step):
            step.batch["attention_mask"] = torch.ones_like(step.batch["attention_mask"])
        yield Change("mask_missing", "padding is not masked", no_mask,
                     r"^[A-Za-z]+\.\w+\.\d+\.forward @ (?!.*(?:mlp|ffn|fc|lin1|intermediate))",
                     "data")


def loss_faults(family):
    truth = anywhere("cross_entropy|nll_loss|log_softmax", ANY)
    def smoothed(step):
        step.loss = patched_loss(step.loss, label_smoothing=0.1)
    def summed(step):
        step.loss = patched_loss(step.loss, reduction="sum")
    if family.batch()[family.labels].dtype == torch.int64:
        yield Change("loss_smoothed", "label smoothing 0.1", smoothed, truth, "loss")
        yield Change("loss_summed", "sum for mean", summed, truth, "loss")
    def halved(step):
        step.before_backward = lambda model, loss: loss / 2
    yield Change("loss_halved", "loss divided by two", halved, anywhere("__truediv__|div", ANY),
                 "loss")


def patched_loss(loss, **more):
    plain = F.cross_entropy
    def patched(model, batch):
        F.cross_entropy = lambda *a, **k: plain(*a, **{**k, **more})
        try:
            return loss(model, batch)
        finally:
            F.cross_entropy = plain
    return patched


def gradient_faults(model):
    path = first(model, lambda m: isinstance(m, (nn.Linear, nn.Conv2d, nn.Conv1d)), 1)
    here = owners(model, path)
    def freeze(m):
        m.get_submodule(path).requires_grad_(False)
    yield Change("frozen", f"{path} frozen", on_model(freeze), here, "gradient")
    def cut(m):
        module = m.get_submodule(path)
        forward = module.forward
        module.forward = lambda x: forward(x).detach()
    # The next module reads a value that requires no gradient.
    names = [n for n, _ in model.named_modules() if n]
    reader = names[min(names.index(path) + 1, len(names) - 1)]
    truth = here + "|" + "|".join(within(p, direction=ANY) for p in (parent_of(path), reader))
    yield Change("detached", f"output of {path} detached", on_model(cut), truth, "gradient")
    def zeroed(step):
        def zero(model):
            model.get_submodule(path).weight.grad.zero_()
        step.before_step = zero
    after = anywhere(r"zero_|vector_norm|linalg_vector_norm|_foreach_norm|mul_|lerp_|stack|clip_grad\w*", ANY)
    yield Change("gradient_zeroed", f"gradient of {path} set to zero before the step", zeroed,
                 after, "gradient")
    def doubled(step):
        def double(model):
            for p in model.parameters():
                if p.grad is not None:
                    p.grad.mul_(2)
        step.before_step = double
    yield Change("gradient_doubled", "gradients reduced twice", doubled, after, "gradient")
    def clamp(step):
        def values(model):
            torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)
        step.before_step = values
    yield Change("clip_value", "gradients also clipped by value", clamp,
                 after + "|" + anywhere("clamp_|clamp|_foreach_clamp\\w+"), "gradient")


def update_faults():
    def adam(**keys):
        base = {"lr": 1e-3, "weight_decay": 0.01, "foreach": False}
        def apply(step):
            step.optimizer = lambda p: torch.optim.AdamW(p, **{**base, **keys})
        return apply
    truth = r"^(?:Tensor|Torch|Functional)\.\w+\.\d+\.forward @ "
    def optimizer(ops):
        return rf"^(?:Tensor|Torch)\.(?:{ops})\.\d+\.forward @ "
    yield Change("lr", "lr ten times as large", adam(lr=1e-2), optimizer("mul_|addcdiv_"), "update")
    yield Change("decay", "no weight decay", adam(weight_decay=0.0), optimizer("mul_"), "update")
    yield Change("beta1", "beta1 0.8", adam(betas=(0.8, 0.999)), optimizer("lerp_"), "update")
    yield Change("beta2", "beta2 0.95", adam(betas=(0.9, 0.95)), optimizer("addcmul_|mul_"), "update")
    yield Change("adam_eps", "eps 1e-3", adam(eps=1e-3), optimizer("add_"), "update")
    def sgd(step):
        step.optimizer = lambda p: torch.optim.SGD(p, lr=1e-3, foreach=False)
    yield Change("sgd", "SGD for AdamW", sgd,
                 optimizer("add_|mul_|lerp_|addcmul_|addcdiv_|__iadd__"), "update")
    def unclipped(step):
        step.clip = 0
    def tighter(step):
        step.clip = 0.1
    clip = anywhere(r"\w*norm\w*|stack|__truediv__|__rtruediv__|reciprocal|clamp|mul_|__add__|__mul__")
    yield Change("clip_missing", "gradients not clipped", unclipped, clip, "update")
    yield Change("clip_other", "clipped to 0.1", tighter, clip, "update")
    def twice(step):
        step.step_times = 2
    yield Change("step_twice", "two steps of the optimizer", twice, truth, "update")


def faults(family, model):
    yield from module_faults(model)
    yield from edits(model)
    yield from data_faults(family, model)
    yield from loss_faults(family)
    yield from gradient_faults(model)
    yield from update_faults()


# ---- changes that are no mistakes -------------------------------------------------------

def variations(family, model):
    def clean(name, why, apply):
        return Change(name, why, apply, "", "clean")
    def threads(step):
        step.threads = 2
    def double(step):
        step.dtype = torch.float64
    def half(step):
        step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    def accumulate(step):
        step.parts = 2
    def order(step):
        step.batch = {k: v.flip(0) for k, v in step.batch.items()}
    def adam(**keys):
        def apply(step):
            step.optimizer = lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=0.01, **keys)
        return apply
    yield clean("again", "the same run", lambda step: None)
    yield clean("threads2", "two threads", threads)
    yield clean("float64", "float64", double)
    yield clean("autocast", "autocast to bfloat16", half)
    yield clean("foreach", "foreach optimizer", adam(foreach=True))
    yield clean("fused", "fused optimizer", adam(fused=True))
    yield clean("logging", "accuracy is computed", log_accuracy)
    yield clean("by_hand_linear", "matmul and addition for linear", linear_by_hand)
    if family.name not in ("gat", "mixtral"):
        yield clean("batch_order", "the batch in another order", order)
    if not batch_norms(model) and family.name in ("unet", "vit", "convnext", "mixer"):
        yield clean("micro_batches", "two micro batches", accumulate)
    if family.batch()[family.labels].dtype == torch.int64:
        yield clean("by_hand_loss", "log_softmax and nll_loss", nll)
    if any(isinstance(m, nn.LayerNorm) for m in model.modules()):
        yield clean("by_hand_norm", "layer_norm of single operators", norm_by_hand)
    if any(isinstance(m, nn.ReLU) for m in model.modules()):
        yield clean("inplace", "relu in place or not", on_model(turn_inplace))
    if family.vision:
        yield clean("channels_last", "channels last",
                    on_model(lambda m: m.to(memory_format=torch.channels_last)))
    block = first(model, lambda m: isinstance(m, nn.Sequential) and len(m) > 1
                  and any(True for _ in m.parameters()))
    if block and not batch_norms(model):
        yield clean("checkpoint", f"{block} is computed again", on_model(
            lambda m: checkpoint_module(m, block)))
    if family.hugging:
        yield from hugging_variations(family, clean)


def hugging_variations(family, clean):
    def sdpa(step):
        step.keys["attention"] = "sdpa"
    def again(reentrant):
        return on_model(lambda m: m.gradient_checkpointing_enable({"use_reentrant": reentrant}))
    def positions(step):
        ids = step.batch["input_ids"]
        step.batch["position_ids"] = torch.arange(ids.shape[1]).expand(*ids.shape)
    yield clean("sdpa", "SDPA for eager attention", sdpa)
    yield clean("checkpoint", "layers are computed again", again(False))
    yield clean("checkpoint_reentrant", "layers are computed again, reentrant", again(True))
    if family.name in ("llama", "gpt2", "qwen2", "gemma2", "mixtral", "gpt_neox", "phi"):
        yield clean("positions", "position ids are given", positions)


def batch_norms(model):
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())


def checkpoint_module(model, path):
    from torch.utils.checkpoint import checkpoint
    module = model.get_submodule(path)
    forward = module.forward
    module.forward = lambda *a: checkpoint(forward, *a, use_reentrant=False)


def turn_inplace(model):
    for m in model.modules():
        if isinstance(m, nn.ReLU):
            m.inplace = not m.inplace


def log_accuracy(step):
    plain = F.cross_entropy
    def logged(x, y, *a, **k):
        if x.ndim == 2 and y.dtype == torch.int64:
            with torch.no_grad():
                (x.argmax(-1) == y).float().mean().item()
        else:
            x.detach().mean().item()
        return plain(x, y, *a, **k)
    loss = step.loss
    def patched(model, batch):
        F.cross_entropy = logged
        try:
            return loss(model, batch)
        finally:
            F.cross_entropy = plain
    step.loss = patched


def nll(step):
    plain = F.cross_entropy
    loss = step.loss
    def by_hand(x, y, ignore_index=-100, reduction="mean", **k):
        return F.nll_loss(F.log_softmax(x, -1), y, ignore_index=ignore_index, reduction=reduction)
    def patched(model, batch):
        F.cross_entropy = by_hand
        try:
            return loss(model, batch)
        finally:
            F.cross_entropy = plain
    step.loss = patched


def linear_by_hand(step):
    def change(model):
        for m in model.modules():
            if type(m) is nn.Linear:
                m.forward = lambda x, m=m: (torch.matmul(x, m.weight.t()) if m.bias is None else
                                            torch.matmul(x, m.weight.t()) + m.bias)
    step.after_make.append(change)


def norm_by_hand(step):
    def one(m, x):
        mean = x.mean(-1, keepdim=True)
        var = (x - mean).pow(2).mean(-1, keepdim=True)
        return (x - mean) * torch.rsqrt(var + m.eps) * m.weight + m.bias
    def change(model):
        for m in model.modules():
            if type(m) is nn.LayerNorm and m.bias is not None:
                m.forward = lambda x, m=m: one(m, x)
    step.after_make.append(change)
