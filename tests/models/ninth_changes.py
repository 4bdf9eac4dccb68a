# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the ninth set; see ninth_families.py.

Every family takes a share of the general mistakes and harmless changes, in turn, and all of its own code, of its
loss and of its loop.
"""
import functools

import torch
from torch import nn
import torch.nn.functional as F

import ninth_loops as loops
import ninth_own as own
from changes import ANY, Change, anywhere, first, on_model, owners, within
from ninth_edits import EDITS, FUNCTIONS, PRE, VOID, edits, function_edits, in_clip, in_step, optimizer, root
from ninth_variations import variations  # noqa: F401 (read by score.py)
from observed import LINES, Places, is_read, readers, uses
from seventh_changes import on_input
from unseen_changes import adam, in_turn, on_batch, patched, weight, wrap


# ---- mistakes of any model: weights and layers --------------------------------------------------------

def loading_mistakes(places):
    """What goes wrong while weights are loaded or begun."""
    model = places.model
    path, other = places.line(1), places.line(6)
    here = owners(model, path)
    yield Change("key_not_found", f"{path} keeps its first values", on_model(lambda m: m.get_submodule(path).reset_parameters()), here, "weights")
    same = [p for p in places.all(lambda m: isinstance(m, LINES) and "weight" in m._parameters and m.weight.requires_grad)
            if p != path and model.get_submodule(p).weight.shape == model.get_submodule(path).weight.shape]
    if same:
        def exchange(m):
            a, b = m.get_submodule(path).weight, m.get_submodule(same[0]).weight
            a.data, b.data = b.data.clone(), a.data.clone()
        yield Change("keys_exchanged", f"weights of {path} and {same[0]} exchanged", on_model(exchange), here + "|" + owners(model, same[0]), "weights")
    def interleaved(w):
        return w.view(2, -1, *w.shape[1:]).transpose(0, 1).reshape(w.shape)
    if len(model.get_submodule(other).weight) % 2 == 0:
        yield Change("rows_interleaved", f"rows of {other} in another layout", weight(other, interleaved), owners(model, other), "weights")
    yield Change("weight_float8", f"{other} stored in float8", weight(
        other, lambda w: w.to(torch.float8_e4m3fn).to(w.dtype)), owners(model, other), "weights")
    yield Change("weight_averaged", f"{path} is the average of the weights", weight(path, lambda w: 0.97 * w), here, "weights")
    yield Change("scale_of_rows", f"scales of rows of {other} shifted", weight(
        other, lambda w: w / w.flatten(1).norm(dim=1).view(-1, *[1] * (w.ndim - 1)) * w.flatten(1).norm(dim=1).roll(1).view(-1, *[1] * (w.ndim - 1))),
        owners(model, other), "weights")
    table = first(model, lambda m: isinstance(m, (nn.Embedding, nn.EmbeddingBag)) and m.weight.requires_grad and len(m.weight) > 8)
    if table in places.called:
        yield Change("vocabulary_shifted", f"rows of {table} shifted by one", weight(table, lambda w: w.roll(1, 0)), owners(model, table), "weights")
        yield Change("vocabulary_enlarged", f"the last half of {table} is new", weight(table, lambda w: torch.cat(
            [w[:len(w) // 2], w[len(w) // 2:].mean() + 0 * w[len(w) // 2:]])), owners(model, table), "weights")


def layer_mistakes(places):
    model = places.model
    path = places.line(3)
    inside = within(path)
    def twice(m):
        module = m.get_submodule(path)
        plain, shape = module.forward, [1] * (0 if isinstance(module, nn.Linear) else module.weight.ndim - 2)
        module.forward = lambda x: plain(x) + module.bias.view(-1, *shape)
    if model.get_submodule(path).bias is not None:
        yield Change("bias_twice", f"bias of {path} added twice", on_model(twice), inside)
    yield Change("first_for_all", f"{path} answers the first sample for all", wrap(
        path, lambda x: x[:1].expand_as(x).contiguous()), inside)
    yield Change("last_zero", f"the last entries of {path} are zero", wrap(
        path, lambda x: torch.cat([x[..., :-1], torch.zeros_like(x[..., -1:])], -1)), inside)
    yield Change("view_for_transpose", f"output of {path} viewed as transposed", wrap(
        path, lambda x: x.transpose(0, -1).reshape(x.shape)), inside)
    yield Change("mean_removed", f"mean over the batch removed from {path}", wrap(path, lambda x: x - x.mean(0, keepdim=True)), inside)
    yield Change("noise", f"noise on {path}", wrap(path, lambda x: x + 0.05 * torch.randn_like(x)), inside)
    yield Change("in_half", f"{path} in float16", on_model(functools.partial(in_type, path, torch.float16)), inside)
    yield Change("in_bfloat", f"{path} in bfloat16", on_model(functools.partial(in_type, path, torch.bfloat16)), inside)
    yield Change("cut_by_type", f"output of {path} cut to 4 bits behind the point", wrap(
        path, lambda x: x + ((x * 16).round() / 16 - x).detach()), inside)
    yield Change("read_in_reverse", f"{path} reads the batch in reverse", on_input(path, lambda x: x.flip(0)), inside)
    yield Change("extra_norm", f"{path} normed once more", wrap(path, lambda x: F.layer_norm(x, x.shape[-1:])), inside)
    yield Change("extra_tanh", f"tanh behind {path}", wrap(path, torch.tanh), inside)
    yield Change("extra_scale", f"output of {path} divided by the root of its width", wrap(path, lambda x: x / x.shape[-1] ** 0.5), inside)


def in_type(path, kind, m):
    module = m.get_submodule(path)
    plain = F.linear if isinstance(module, nn.Linear) else None
    if plain:
        module.forward = lambda x: plain(x.to(kind), module.weight.to(kind), None if module.bias is None else module.bias.to(kind)).to(x.dtype)
    else:
        module.forward = lambda x: module._conv_forward(x.to(kind), module.weight.to(kind), None if module.bias is None else module.bias.to(kind)).to(x.dtype)


def norm_mistakes(places):
    model = places.model
    path = places.norm(2)
    if not path:
        return
    here, kind = within(path), type(model.get_submodule(path))
    def plain(m):
        w = m.get_submodule(path)
        w.weight.data.fill_(1.0)
        if getattr(w, "bias", None) is not None:
            w.bias.data.zero_()
    yield Change("norm_not_trained", f"{path} without its weights", on_model(plain), owners(model, path))
    if kind is nn.LayerNorm:
        def unbiased(m):
            w = m.get_submodule(path)
            w.forward = lambda x: (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + w.eps) * w.weight + w.bias
        yield Change("norm_unbiased", f"{path} by the unbiased deviation", on_model(unbiased), here)
        def uncentred(m):
            w = m.get_submodule(path)
            w.forward = lambda x: F.rms_norm(x, w.normalized_shape, w.weight, w.eps) + w.bias
        yield Change("norm_uncentred", f"{path} does not remove the mean", on_model(uncentred), here)
        def across(m):
            w = m.get_submodule(path)
            w.forward = lambda x: F.layer_norm(x.transpose(0, -1), [x.shape[0]]).transpose(0, -1) * w.weight + w.bias
        yield Change("norm_axis", f"{path} over another axis", on_model(across), here)
    if isinstance(model.get_submodule(path), nn.modules.batchnorm._BatchNorm):
        def untracked(m):
            w = m.get_submodule(path)
            w.forward = lambda x: F.batch_norm(x, w.running_mean, w.running_var, w.weight, w.bias, False, 0.0, w.eps)
        yield Change("norm_by_buffers", f"{path} by its buffers", on_model(untracked), here)
        def single(m):
            w = m.get_submodule(path)
            w.forward = lambda x: torch.cat([F.batch_norm(y, None, None, w.weight, w.bias, True, 0.1, w.eps) for y in x.chunk(2)])
        yield Change("norm_not_synchronised", f"{path} over each half of the batch", on_model(single), here)


# ---- mistakes of any model: gradients, loss, data, updates ---------------------------------------------

def gradient_mistakes(places):
    model = places.model
    path = places.line(2)
    here = owners(model, path)
    def scaled(x):
        if x.requires_grad:
            x.register_hook(lambda g: g * 0.1)
        return x
    yield Change("slope_scaled", f"gradient behind {path} times 0.1", wrap(path, scaled), within(path, direction=ANY) + "|" + anywhere("__mul__"), "gradient")
    def swallowed(m):
        m.get_submodule(path).weight.register_hook(lambda g: g.clamp(-1e-3, 1e-3))
    yield Change("slope_clamped", f"gradient of {path} clamped by a hook", on_model(swallowed), here + "|" + PRE, "gradient")
    def rounded(m):
        for p in m.get_submodule(path).parameters():
            p.register_hook(lambda g: g.to(torch.bfloat16).to(g.dtype))
    yield Change("slope_bf16", f"gradients of {path} reduced in bfloat16", on_model(rounded), here + "|" + PRE, "gradient")
    def half_detached(x):
        return torch.cat([x[..., :x.shape[-1] // 2], x[..., x.shape[-1] // 2:].detach()], -1)
    yield Change("half_detached", f"half of {path} is detached", wrap(path, half_detached), within(path, direction=ANY), "gradient")
    def old(m):
        g = torch.Generator().manual_seed(31)
        for p in m.parameters():
            if p.requires_grad:
                p.grad = 0.01 * torch.randn(p.shape, generator=g).to(p.dtype)
    yield Change("zero_grad_missing", "gradients of an earlier step are kept", on_model(old), PRE, "gradient")
    def other_rank(step):
        plain = step.before_step
        def run(m):
            plain(m)
            for p in m.get_submodule(path).parameters():
                if p.grad is not None:
                    p.grad.div_(2)
        step.before_step = run
    yield Change("averaged_twice", f"gradients of {path} averaged twice", other_rank, PRE + "|" + anywhere("div_") + "|" + here, "gradient")
    def no_bias(m):
        for n, p in m.named_parameters():
            if n.endswith("bias"):
                p.requires_grad_(False)
    if any(n.endswith("bias") and p.requires_grad for n, p in model.named_parameters()):
        yield Change("biases_frozen", "all biases are frozen", on_model(no_bias), PRE + r"|\.backward(?:\.\d+)? @ " + "|" + anywhere(
            r"linear|conv\w+|\w+_norm"), "gradient")


def loss_mistakes(places):
    family, model = places.family, places.model
    outer = root(r"__r?mul__|__r?truediv__|__r?add__|__r?sub__|sum|mean|pow|abs|norm|float|half|to|div|detach|reciprocal|\w*loss\w*|clamp|cross_entropy", ANY)
    def after(function):
        return lambda step: setattr(step, "before_backward", lambda m, x, f=step.before_backward: function(m, f(m, x)))
    yield Change("loss_of_batch", "loss divided by the batch once more", after(
        lambda m, x: x / 4), outer, "loss")
    yield Change("loss_of_ranks_summed", "loss times the count of ranks", after(lambda m, x: x * 8), outer, "loss")
    path = places.line(0)
    yield Change("loss_penalty", f"weights of {path} are punished", after(
        lambda m, x: x + 0.02 * m.get_submodule(path).weight.abs().mean()), outer, "loss")
    yield Change("loss_clamped", "loss clamped at 0.1", after(lambda m, x: x * (0.1 / x.detach())), outer, "loss")
    names = r"cross_entropy|nll_loss|log_softmax|__r?truediv__|__r?mul__|sum|mean|to|logsumexp|where|__getitem__|half|chunk|narrow|flatten|__r?sub__|masked_fill"
    if uses(family, model, "cross_entropy"):
        for name, why, function in (
                ("half", "logits in float16", lambda plain, x, y, **k: plain(x.half().to(x.dtype), y, **k)),
                ("first_half", "loss of the first half of the rows", lambda plain, x, y, **k: plain(x[:max(1, len(x) // 2)], y[:max(1, len(y) // 2)], **k)),
                ("of_zero", "class 0 is taken for padding", lambda plain, x, y, **k: plain(
                    torch.cat([x[:, :1] - 1.0, x[:, 1:]], 1), y, **k)),
                ("sharpened", "logits times 1.3", lambda plain, x, y, **k: plain(x * 1.3, y, **k)),
                ("confident", "entropy is punished", lambda plain, x, y, **k: plain(x, y, **k) + 0.1 * (
                    F.softmax(x, 1) * F.log_softmax(x, 1)).sum(1).mean())):
            yield Change("entropy_" + name, why, patched("cross_entropy", function), anywhere(names + "|__add__|softmax|cat", ANY), "loss")
    if uses(family, model, "mse_loss"):
        for name, why, function in (
                ("halved", "half of the squared error", lambda plain, x, y, **k: 0.5 * plain(x, y, **k)),
                ("huber", "Huber's error", lambda plain, x, y, **k: F.huber_loss(x, y)),
                ("broadcast", "errors of all pairs of samples", lambda plain, x, y, **k: ((x[:, None] - y[None]) ** 2).mean()),
                ("relative", "error relative to the labels", lambda plain, x, y, **k: ((x - y) ** 2 / (y ** 2 + 1)).mean())):
            yield Change("mse_" + name, why, patched("mse_loss", function), anywhere(
                r"mse_loss|huber_loss|__r?sub__|pow|sum|mean|__pow__|__r?mul__|__truediv__|__getitem__", ANY), "loss")


def data_mistakes(places):
    family, model = places.family, places.model
    batch = family.batch()
    for key in ("input_ids", "pixel_values", "kinds", "input_features", "states"):
        if key not in batch:
            continue
        truth, x = readers(family, model, key), batch[key]
        yield Change("inputs_of_next_" + key, "inputs of the next sample", on_batch(key, lambda x: x.roll(1, 0)), truth, "data")
        if x.is_floating_point():
            yield Change("input_256", "divided by 256 for 255", on_batch(key, lambda x: x * (255 / 256)), truth, "data")
            yield Change("input_half", "inputs stored in bfloat16", on_batch(key, lambda x: x.bfloat16().float()), truth, "data")
            yield Change("input_one_late", "inputs shifted by one", on_batch(key, lambda x: x.roll(1, -1)), truth, "data")
            yield Change("input_noise", "inputs with noise", on_batch(key, lambda x: x + 0.05 * torch.randn(
                x.shape, generator=torch.Generator().manual_seed(9))), truth, "data")
            yield Change("input_cut", "large inputs are cut", on_batch(key, lambda x: x.clamp(-1, 1)), truth, "data")
            yield Change("input_erased", "a part of each input is zero", on_batch(key, lambda x: torch.cat(
                [torch.zeros_like(x[..., :1]), x[..., 1:]], -1)), truth, "data")
        elif x.ndim == 2:
            yield Change("ids_unknown", "rare ids are unknown", on_batch(key, lambda x: torch.where(x > x.max() * 3 // 4, x.min(), x)), truth, "data")
            yield Change("ids_reversed", "ids from right to left", on_batch(key, lambda x: x.flip(1)), truth, "data")
            yield Change("ids_joined", "one text is of the next sample", on_batch(key, lambda x: torch.cat([x[:-1], x[:1]])), truth, "data")
            def one(x):
                x = x.clone()
                x[-1, -2] = 4 if int(x[-1, -2]) != 4 else 3
                return x
            yield Change("ids_one", "one id is another", on_batch(key, one), truth, "data")
    labels = family.labels
    truth, y = readers(family, model, labels), batch[labels]
    if y.is_floating_point():
        yield Change("labels_of_next", "labels of the next sample", on_batch(labels, lambda y: y.roll(-1, 0)), truth, "data")
        yield Change("labels_tenth", "labels a tenth too large", on_batch(labels, lambda y: y * 1.1), truth, "data")
        yield Change("labels_noise", "labels with noise", on_batch(labels, lambda y: y + 0.1 * torch.randn(
            y.shape, generator=torch.Generator().manual_seed(8))), truth, "data")
    else:
        few = int(y.max())
        yield Change("labels_from_one", "classes counted from one", on_batch(labels, lambda y: torch.where(y < 0, y, (y + 1) % (few + 1))
                     if few < 200 else torch.where(y == 255, y, (y + 1) % 5)), truth, "data")
        def two(y):
            y = y.clone()
            y[[0, -1]] = y[[-1, 0]]
            return y
        yield Change("labels_two", "labels of two samples exchanged", on_batch(labels, two), truth, "data")
    if "attention_mask" in batch and is_read(family, model, "attention_mask"):
        inside = r"^[A-Za-z]+\.\w+\.\d+\.forward @ (?!.*(?:mlp|ffn|fc|intermediate|dense))|^Module\.\S+\.forward\.\d+ @ "
        yield Change("mask_short", "one position more is padding", on_batch("attention_mask", lambda m: torch.cat(
            [m[:, 1:], torch.zeros_like(m[:, :1])], 1)), inside, "data")
        yield Change("mask_of_other", "the mask of the first sample for all", on_batch("attention_mask", lambda m: m[:1].expand_as(m).contiguous()
                     if (m[:1] != m).any() else m), inside, "data")


def update_mistakes():
    def other(kind, **keys):
        return lambda step: setattr(step, "optimizer", lambda p: kind(p, **keys))
    yield Change("adam_for_adamw", "decay in the gradient", other(
        torch.optim.Adam, lr=1e-3, weight_decay=0.01, foreach=False), in_step(r"mul_|add|lerp_|add_|addcmul_"), "update")
    yield Change("amsgrad", "the largest second moment", adam(amsgrad=True), in_step(r"maximum|sqrt|\w*max\w*|__truediv__|clone|addcdiv_|zeros_like"), "update")
    yield Change("maximised", "up for down", adam(maximize=True), in_step(r"neg|__neg__|lerp_"), "update")
    yield Change("lr_of_config", "rate 3e-4", adam(lr=3e-4), in_step("mul_|addcdiv_"), "update")
    yield Change("beta1_zero", "beta1 0.5", adam(betas=(0.5, 0.999)), in_step("lerp_|__truediv__|addcdiv_"), "update")
    yield Change("beta2_lm", "beta2 0.98", adam(betas=(0.9, 0.98)), in_step("mul_|addcmul_|__truediv__|sqrt"), "update")
    yield Change("decay_large", "decay 0.1", adam(weight_decay=0.1), in_step("mul_"), "update")
    yield Change("adamax", "Adamax", other(torch.optim.Adamax, lr=1e-3, weight_decay=0.01, foreach=False), in_step(), "update")
    yield Change("nadam", "NAdam", other(torch.optim.NAdam, lr=1e-3, weight_decay=0.01, decoupled_weight_decay=True, foreach=False), in_step(), "update")
    yield Change("momentum_only", "SGD with momentum", other(torch.optim.SGD, lr=1e-3, momentum=0.9, foreach=False), in_step(), "update")
    def skipped(step):
        step.step_times = 0
    yield Change("step_skipped", "the step is skipped", skipped, in_step(), "update")
    def part(step):
        make = step.optimizer
        step.optimizer = lambda p: make(p[:-2])
    yield Change("parameters_forgotten", "the last two parameters are not given to the optimizer", part, in_step(), "update")
    def clip_kind(**keys):
        def apply(step):
            step.clip = 0
            step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), **keys)
        return apply
    yield Change("clip_by_largest", "clipped by the largest gradient", clip_kind(max_norm=1.0, norm_type=float("inf")), PRE, "update")
    def clip_some(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_([p for p in m.parameters() if p.ndim > 1], 1.0)
    yield Change("clip_of_matrices", "norm of the matrices alone", clip_some, PRE, "update")
    yield Change("clip_half", "clipped to 0.5", clip_kind(max_norm=0.5), PRE, "update")
    def clip_each(step):
        step.clip = 0
        def run(m):
            for p in m.parameters():
                torch.nn.utils.clip_grad_norm_([p], 1.0)
        step.before_step = run
    yield Change("clip_each", "each gradient clipped by itself", clip_each, PRE, "update")
    def late(step):
        step.after_step = lambda m, o: m.zero_grad(set_to_none=False)
        step.before_step = lambda m: [p.grad.mul_(0.5) for p in m.parameters() if p.grad is not None] and None
    yield Change("scaled_before", "gradients halved before they are clipped", late, PRE + "|" + anywhere("mul_"), "update")


# ---- mistakes of one loop, loss or buffer ------------------------------------------------------------------

def updated(name, why, apply, truth=None):
    return Change(name, why, apply, truth or in_step(), "update")


def nanogpt_loop():
    def groups(decay=0.1, vectors=0.0, **keys):
        base = {"lr": 6e-4, "betas": (0.9, 0.95), "foreach": False}
        return optimizer(lambda p: torch.optim.AdamW([{"params": [x for x in p if x.ndim > 1], "weight_decay": decay},
                                                     {"params": [x for x in p if x.ndim < 2], "weight_decay": vectors}], **{**base, **keys}))
    yield updated("vectors_decay", "vectors decay too", groups(vectors=0.1), in_step("mul_"))
    yield updated("betas_of_library", "betas of the library", groups(betas=(0.9, 0.999)), in_step("mul_|addcmul_|__truediv__|sqrt"))
    yield updated("rate_min", "the least rate", groups(lr=6e-5), in_step("mul_|addcdiv_"))
    def undivided(step):
        step.before_backward = lambda m, x: x * 2
    yield updated("parts_not_divided", "parts not divided by their count", undivided, root(r"__r?mul__|__r?truediv__", ANY))
    def each(step):
        step.before_backward = lambda m, x: (torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1), x)[1]
    yield updated("clipped_between", "clipped after each part", each, in_clip() + "|" + PRE)
    def untied(m):
        m.lm_head.weight = nn.Parameter(m.wte.weight.detach().clone())
    yield updated("untied", "the head has weights of its own", on_model(untied), within("wte", direction=ANY) + "|" + within("lm_head", direction=ANY)
                 + "|" + PRE + "|" + in_step())


def cells_loop():
    def limits(limit=0.02):
        return lambda step: setattr(step, "before_step", lambda m: torch.nn.utils.clip_grad_value_(m.parameters(), limit) if limit else None)
    yield updated("limit_large", "limit 0.2", limits(0.2), PRE)
    yield updated("limit_missing", "not clipped", limits(0), PRE)
    def normed(step):
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 0.02)
    yield updated("norm_for_value", "clipped by norm", normed, PRE)
    yield updated("dampened", "momentum dampened", optimizer(lambda p: torch.optim.SGD(
        p, lr=0.1, momentum=0.5, dampening=0.5, weight_decay=1e-2, foreach=False)))


def longconv_loop():
    yield updated("betas_exchanged", "betas exchanged", optimizer(lambda p: loops.Lion(p, betas=(0.99, 0.9))), in_step(r"__r?mul__|add_|mul_|sign|__add__"))
    yield updated("lion_decay", "decay ten times", optimizer(lambda p: loops.Lion(p, decay=1.0)), in_step("mul_"))
    yield updated("lion_rate", "rate of AdamW", optimizer(lambda p: loops.Lion(p, lr=3e-3)), in_step("mul_|add_"))


def actor_loop():
    yield updated("rms_alpha", "alpha 0.9", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.9, eps=1e-5, foreach=False)), in_step("mul_|addcmul_"))
    yield updated("rms_eps", "eps 1e-3", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-3, foreach=False)), in_step(r"add_|__add__|addcdiv_|add"))
    yield updated("rms_centred", "centred", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-5, centered=True, foreach=False)))


def barlow_loop():
    yield updated("lars_trust", "trust 0.001", optimizer(lambda p: loops.Lars(p, trust=0.001)), in_step(r"__r?mul__|mul|__truediv__|norm"))
    yield updated("lars_decay", "decay 0.01", optimizer(lambda p: loops.Lars(p, decay=0.01)), in_step("add"))
    yield updated("lars_rate", "rate 0.02", optimizer(lambda p: loops.Lars(p, lr=0.02)), in_step("add_"))


def columns_loop():
    def early(step):
        step.before_step = lambda m: step.schedule.step()
        step.after_step = lambda m, o: None
    yield updated("schedule_early", "the schedule steps first", early, in_step("mul_|addcdiv_"))
    def full(step):
        step.after_step = lambda m, o: None
        step.optimizer = lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05, foreach=False)
    yield updated("no_warm_up", "no warm-up", full, in_step("mul_|addcdiv_"))
    def buffer(m):
        m.begin.copy_(torch.tensor([0, 6, 11, 20]))
    yield updated("buffer_of_old", "begins of an older table", on_model(buffer), root("__add__") + "|" + within("embed"))


def gcn_loop():
    yield updated("decay_decoupled", "AdamW for Adam", optimizer(lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=5e-4, foreach=False)),
                 in_step(r"mul_|add|lerp_|add_"))
    yield updated("decay_tenfold", "decay 5e-3", optimizer(lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=5e-3, foreach=False)), in_step(r"add|add_|lerp_"))


def tasks_loop():
    yield updated("adagrad_begin", "sums begin at 0.1", optimizer(lambda p: torch.optim.Adagrad(
        p, lr=0.05, initial_accumulator_value=0.1, foreach=False)), in_step(r"addcmul_|sqrt|add_"))
    yield updated("adagrad_rate", "rate 0.01", optimizer(lambda p: torch.optim.Adagrad(p, lr=0.01, foreach=False)), in_step("addcdiv_"))


def clips_loop():
    def kept(step):
        step.before_step = lambda m: None
    yield updated("not_unscaled", "gradients not scaled back", kept, PRE + "|" + anywhere("mul_"))
    def late(step):
        undo, clip, step.clip = step.before_step, step.clip, 0
        def run(m):
            torch.nn.utils.clip_grad_norm_(m.parameters(), clip)
            undo(m)
        step.before_step = run
    yield updated("clipped_scaled", "clipped before scaled back", late, PRE + "|" + anywhere("mul_"))
    yield updated("momentum_kept_off", "no momentum", optimizer(lambda p: torch.optim.SGD(p, lr=0.02, weight_decay=1e-2, foreach=False)), in_step())


def teacher_loop():
    yield updated("follows_fast", "the teacher follows faster", lambda step: loops.followed(step, 0.9), root("mul_|add_"))
    def before(step):
        follow = step.after_step
        step.after_step = lambda m, o: None
        step.before_step = lambda m: follow(m, None)
    yield updated("follows_early", "the teacher follows before the step", before, root("mul_|add_") + "|" + PRE)
    def never(step):
        step.after_step = lambda m, o: None
    yield updated("follows_never", "the teacher does not follow", never, root("mul_|add_"))
    yield updated("teacher_eval", "the teacher evaluates", on_model(lambda m: m.teacher.eval() and None), within("teacher", "batch_norm", inner=True))


def gpt_neo_loop():
    def wide(m):
        mask = m.transformer.h[1].attn.attention.bias
        mask.copy_(torch.ones_like(mask).tril())
    yield updated("window_missing", "the window of a local layer is missing", on_model(wide), within("transformer.h.1.attn.attention", "__getitem__|where|tril|softmax"))


def spiking_loop():
    def slope(step):
        def backward(ctx, g):
            v, = ctx.saved_tensors
            return g / (1 + 2 * v.abs()) ** 2
        own.Fire.backward = staticmethod(backward)
    yield updated("surrogate", "another slope of a spike", slope, r"^[A-Za-z]+\.\w+\.\d+\.backward @ |^Module\.fc[12]\.\S+ @ |" + root("__r?mul__"))


LOOPS = {"nanogpt": nanogpt_loop, "cells": cells_loop, "longconv": longconv_loop, "actor": actor_loop, "barlow": barlow_loop, "columns":
         columns_loop, "gcn": gcn_loop, "sasrec": gcn_loop, "tasks": tasks_loop, "clips": clips_loop, "teacher": teacher_loop,
         "gpt_neo": gpt_neo_loop, "spiking": spiking_loop}


def lost(name, why, loss, ops):
    return Change(name, why, lambda step: setattr(step, "loss", loss), root(ops, ANY), "loss")


def siglip_loss():
    def scores(m, b):
        return m(input_ids=b["input_ids"], pixel_values=b["pixel_values"]).logits_per_text
    yield lost("softmax_pairs", "softmax over pairs", lambda m, b: F.cross_entropy(scores(m, b), torch.arange(4)), r"cross_entropy|logsigmoid|__mul__|arange")
    yield lost("labels_zero_one", "labels 0 and 1", lambda m, b: -F.logsigmoid((b["labels"] > 0) * scores(m, b)).sum(-1).mean(), r"__r?mul__|logsigmoid|gt|__gt__")
    yield lost("mean_of_pairs", "mean for sum over texts", lambda m, b: -F.logsigmoid(b["labels"] * scores(m, b)).mean(), r"mean|sum|neg|__neg__")


def decisions_loss():
    def over_padding(m, b):
        b = dict(b)
        wanted = b.pop("labels")
        return F.mse_loss(m(**b).action_preds, wanted)
    yield lost("padding_counted", "padding counted", over_padding, r"__getitem__|reshape|mse_loss|__gt__|gt")


def lraspp_loss():
    yield lost("border_counted", "the border is the last class", lambda m, b: F.cross_entropy(
        m(b["pixel_values"])["out"], b["labels"].clamp(max=4)), r"cross_entropy|clamp")


def nanogpt_loss():
    yield lost("shifted_twice", "labels shifted twice", lambda m, b: F.cross_entropy(
        m(b["input_ids"])[:, :-1].flatten(0, 1), b["labels"][:, 1:].flatten(), ignore_index=-1), r"__getitem__|flatten|view|cross_entropy")


def cells_loss():
    yield lost("classes_as_time", "classes where times are", lambda m, b: F.cross_entropy(
        m(b["input_ids"]).reshape(5, 40, 8), b["labels"]), r"reshape|transpose|cross_entropy")


def spiking_loss():
    yield lost("rate_not_held", "the rate of spikes is not held", lambda m, b: F.cross_entropy(m(b["pixel_values"])[0], b["labels"]),
                 r"__r?sub__|__pow__|__r?mul__|__r?add__|pow|cross_entropy|__truediv__")
    yield lost("one_sided", "only too many spikes are punished", lambda m, b: (lambda made, fired: F.cross_entropy(
        made, b["labels"]) + 0.5 * F.relu(fired - 0.2) ** 2 + 0.5 * F.relu(fired - 0.1))(*m(b["pixel_values"])), r"__r?sub__|__pow__|pow|relu|__r?mul__|__r?add__")


def tracker_loss():
    yield lost("not_balanced", "near and far not balanced", lambda m, b: F.binary_cross_entropy_with_logits(
        m(b["small"], b["pixel_values"]), b["labels"]), r"binary_cross_entropy_with_logits|where|__r?truediv__|sum|__gt__|gt|eq|__eq__")
    yield lost("sigmoid_twice", "sigmoid twice", lambda m, b: F.binary_cross_entropy_with_logits(
        torch.sigmoid(m(b["small"], b["pixel_values"])), b["labels"], torch.where(
            b["labels"] > 0, 0.5 / (b["labels"] > 0).sum(), 0.5 / (b["labels"] == 0).sum()), reduction="sum"), r"sigmoid|binary_cross_entropy_with_logits")


def columns_loss():
    def focal(alpha, gamma):
        def loss(m, b):
            z, y = m(b["kinds"], b["numbers"]), b["labels"]
            each = F.binary_cross_entropy_with_logits(z, y, reduction="none")
            p = torch.sigmoid(z)
            right = p * y + (1 - p) * (1 - y)
            return ((alpha * y + (1 - alpha) * (1 - y)) * (1 - right) ** gamma * each).mean()
        return loss
    yield lost("alpha_turned", "weights of the classes exchanged", focal(0.75, 2), r"__r?mul__|__r?add__|__r?sub__")
    yield lost("gamma_one", "gamma 1", focal(0.25, 1), r"__pow__|pow|__r?mul__")


def gcn_loss():
    yield lost("trained_on_test", "loss of the nodes for the test", lambda m, b: F.nll_loss(
        m(b["pixel_values"], b["edges"])[~b["known"]], b["labels"][~b["known"]]), r"__invert__|invert|bitwise_not|__getitem__|nll_loss")
    yield lost("entropy_of_logarithms", "cross entropy of logarithms", lambda m, b: F.cross_entropy(
        m(b["pixel_values"], b["edges"])[b["known"]].exp(), b["labels"][b["known"]]), r"cross_entropy|nll_loss|exp")


def sasrec_loss():
    yield lost("padding_counted", "padding counted", lambda m, b: (lambda good, bad: -torch.log(torch.sigmoid(good - bad) + 1e-24).mean())(
        *m(b["input_ids"], b["labels"], b["left"])), r"__mul__|sum|mean|ne|__ne__|to|__truediv__|neg|__neg__")
    yield lost("pair_turned", "the pair exchanged", lambda m, b: (lambda bad, good, live: -(torch.log(torch.sigmoid(
        good - bad) + 1e-24) * live).sum() / live.sum())(*m(b["input_ids"], b["labels"], b["left"]), (b["input_ids"] != 0).float()), r"__r?sub__|sigmoid")


def tasks_loss():
    def uncertain(sign, all_prices):
        def loss(m, b):
            click, price = m(b["kinds"], b["weights"], b["pixel_values"])
            one = F.binary_cross_entropy_with_logits(click, b["clicked"])
            two = ((price - b["labels"]) ** 2).mean() if all_prices else (b["clicked"] * (price - b["labels"]) ** 2).sum() / b["clicked"].sum()
            return torch.exp(-m.doubt[0]) * one + 0.5 * torch.exp(-m.doubt[1]) * two + sign * 0.5 * m.doubt.sum()
        return loss
    yield lost("doubt_rewarded", "doubt is rewarded", uncertain(-1, False), r"__r?mul__|__r?add__|__r?sub__|sum|neg|__neg__")
    yield lost("prices_of_all", "prices of those who did not click", uncertain(1, True), r"__r?mul__|sum|mean|__truediv__")


def pooled_loss():
    yield lost("beta_one", "beta 1", lambda m, b: F.smooth_l1_loss(m(b["pixel_values"], b["mask"]), b["labels"]), r"smooth_l1_loss")
    yield lost("l1_for_smooth", "absolute error", lambda m, b: F.l1_loss(m(b["pixel_values"], b["mask"]), b["labels"]), r"smooth_l1_loss|l1_loss")


def pixart_loss():
    def learned(m, b):
        made = m(b["pixel_values"], encoder_hidden_states=b["words"], timestep=b["t"] + 1, encoder_attention_mask=b["mask"]).sample
        return F.mse_loss(made, b["labels"])
    yield Change("time_by_one", "times counted from one", lambda step: setattr(step, "loss", learned), root("__add__") + "|" + within(
        "adaln_single", inner=True), "loss")


LOSSES = {"siglip": siglip_loss, "decisions": decisions_loss, "lraspp": lraspp_loss, "nanogpt": nanogpt_loss, "cells": cells_loss,
          "spiking": spiking_loss, "tracker": tracker_loss, "columns": columns_loss, "gcn": gcn_loss, "sasrec": sasrec_loss,
          "tasks": tasks_loss, "pooled": pooled_loss, "pixart": pixart_loss}


def faults(family, model, index):
    places = Places(family, model)
    plain = family.loop.__name__ == "<lambda>"
    of_layers = [layer_mistakes, loading_mistakes, gradient_mistakes, norm_mistakes, loss_mistakes] if places.line(0) else []
    general = [*data_mistakes(places), *(c for f in of_layers[:3] for c in f(places)),
               *(update_mistakes() if plain else []), *(c for f in of_layers[3:] for c in f(places))]
    def fits(change):
        return (family.name, change.name) not in VOID
    yield from filter(fits, in_turn(general, index, 10))
    yield from filter(fits, edits(model, EDITS))
    yield from filter(fits, function_edits(model, FUNCTIONS))
    for own_ones in (LOOPS, LOSSES):
        yield from filter(fits, own_ones.get(family.name, tuple)())
