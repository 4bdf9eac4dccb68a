# SPDX-License-Identifier: MIT
"""General mistakes of the tenth set, and what each of its families takes of them; see tenth_families.py."""
import functools

import torch
from torch import nn
import torch.nn.functional as F

from changes import ANY, Change, anywhere, on_model, owners, within
from ninth_edits import PRE, in_step, root
from observed import Places, is_read, readers, uses
from seventh_changes import on_input
from tenth_tools import mistakes_of
from tenth_variations import variations  # noqa: F401 (read by score.py)
from unseen_changes import adam, in_turn, on_batch, patched, weight, wrap

SHARE = 11          # each family takes one of so many general mistakes


def seeded(x, seed, scale=1.0):
    return scale * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed)).to(x.dtype)


# ---- weights -------------------------------------------------------------------------------------

def low_rank(w, keep):
    u, s, v = torch.linalg.svd(w.flatten(1), full_matrices=False)
    s[int(len(s) * keep):] = 0
    return (u * s @ v).view_as(w)


def merged(w):
    g = torch.Generator().manual_seed(61)
    flat = w.flatten(1)
    return w + (torch.randn(len(flat), 2, generator=g) @ torch.randn(2, flat.shape[1], generator=g) * 0.02).view_as(w)


def weight_mistakes(places, index):
    model = places.model
    path = places.line(index)
    here = owners(model, path)
    module = model.get_submodule(path)
    table = [("rank_cut", "half of the ranks kept", lambda w: low_rank(w, 0.5)), ("adapter_merged", "an adapter merged in", merged),
             ("spectral", "divided by its largest singular value", lambda w: w / torch.linalg.matrix_norm(w.flatten(1), 2)),
             ("ternary", "three values", lambda w: w.abs().mean() * (w / w.abs().mean()).round().clamp(-1, 1)),
             ("blocks_rolled", "blocks of rows in another order", lambda w: w.roll(max(1, len(w) // 4), 0)),
             ("columns_turned", "the parts that it reads exchanged", lambda w: w.roll(max(1, w.shape[1] // 2), 1)),
             ("earlier_step", "weights of an earlier step", lambda w: w + seeded(w, 62).sign() * 1e-3),
             ("last_row_begun", "its last row begun anew", lambda w: torch.cat([w[:-1], 0.02 * w[-1:]])),
             ("absolute", "stored without signs", lambda w: torch.where(w.abs() < 0.05, w.abs(), w)),
             ("of_average", "the running average of weights", lambda w: w + seeded(w, 63) * 0.01)]
    if module.weight.ndim == 2 and module.weight.shape[0] == module.weight.shape[1]:
        table.append(("transposed", "transposed", lambda w: w.t().clone()))
    if module.weight.ndim > 2 and module.weight.shape[-1] > 1:
        table.append(("kernel_flipped", "its kernel flipped", lambda w: w.flip(-1)))
    for name, why, function in table:
        yield Change("weight_" + name, f"weight of {path}: {why}", weight(path, function), here, "weights")
    if module.bias is not None:
        def biased(function):
            def change(m):
                b = m.get_submodule(path).bias
                b.data.copy_(function(b.data.clone()))
            return on_model(change)
        yield Change("bias_not_loaded", f"bias of {path} is zero", biased(torch.zeros_like), here, "weights")
        yield Change("bias_rolled", f"bias of {path} in another order", biased(lambda b: b.roll(1)), here, "weights")
    norm = places.norm(index)
    if norm:
        yield Change("norm_from_one", f"weight of {norm} is counted from 1", weight(norm, lambda w: w + 1), owners(model, norm), "weights")
        yield Change("norm_in_bf16", f"weight of {norm} kept in bfloat16", weight(norm, lambda w: w.bfloat16().to(w.dtype)), owners(model, norm),
            "weights")


# ---- layers --------------------------------------------------------------------------------------

def rounded(x, levels=127):
    step = x.detach().abs().max() / levels
    return x + ((x / step).round() * step - x).detach()


def part_zero(x):
    return torch.cat([torch.zeros_like(x[:, :1]), x[:, 1:]], 1)


def layer_mistakes(places, index):
    path = places.line(index + 2)
    inside = within(path)
    table = [("of_previous_sample", "answers for the sample before", lambda x: x.roll(1, 0)), ("silu", "silu behind it", F.silu),
             ("unit", "made a unit vector", lambda x: F.normalize(x, dim=-1)), ("over_kept", "divided by 0.9 as if it dropped", lambda x: x / 0.9),
             ("absolute", "without its sign", torch.abs), ("centred", "its mean removed", lambda x: x - x.mean(-1, keepdim=True)),
             ("float8", "in float8", lambda x: x + (x.to(torch.float8_e4m3fn).to(x.dtype) - x).detach()),
             ("leaky", "leaky relu behind it", lambda x: F.leaky_relu(x, 0.1)), ("first_zero", "its first place is zero", part_zero),
             ("paths_dropped", "drops whole samples", lambda x: x * torch.bernoulli(torch.full((len(x), *[1] * (x.ndim - 1)),
              0.8)).to(x.dtype) / 0.8),
             ("mixed", "mixed with its neighbour", lambda x: 0.9 * x + 0.1 * x.roll(1, 0)), ("reversed", "features in reverse", lambda x: x.flip(-1)),
             ("int8", "activations in 8 bits", rounded), ("softmaxed", "softmax behind it", lambda x: torch.softmax(x, -1)),
             ("residual_scaled", "times 0.7", lambda x: 0.7071 * x)]
    for name, why, function in table:
        yield Change("out_" + name, f"{path}: {why}", wrap(path, function), inside)
    before = [("centred", "reads an input without its mean", lambda x: x - x.mean(-1, keepdim=True)),
              ("cut", "reads an input that is cut", lambda x: x.clamp(-1.5, 1.5)), ("halved", "reads half of its input", lambda x: x * 0.5),
              ("first_zero", "reads an input whose first place is zero", part_zero)]
    for name, why, function in before:
        yield Change("in_" + name, f"{path} {why}", on_input(path, function), inside)
    if path in places.graded:
        yield Change("in_detached", f"{path} reads a detached input", on_input(path, lambda x: x.detach()), within(path, direction=ANY), "gradient")
    norm = places.norm(index + 1)
    kind = type(places.model.get_submodule(norm)) if norm else None
    if kind is nn.LayerNorm:
        def other_eps(m):
            m.get_submodule(norm).eps = 1e-2
        yield Change("eps_hundredth", f"eps of {norm} is 0.01", on_model(other_eps), within(norm))
        yield Change("norm_low", f"{norm} in bfloat16", on_model(lambda m: setattr(m.get_submodule(norm), "forward", lambda x, w=m.get_submodule(
            norm): F.layer_norm(x.bfloat16(), w.normalized_shape, w.weight.bfloat16(), None if w.bias is None else w.bias.bfloat16(), w.eps).to(x.dtype))), within(norm))
        yield Change("norm_by_max", f"{norm} is divided by the largest", on_model(lambda m: setattr(m.get_submodule(norm), "forward", lambda x,
            w=m.get_submodule(
            norm): x / x.abs().amax(-1, keepdim=True) * w.weight)), within(norm))
    if kind and issubclass(kind, nn.modules.batchnorm._BatchNorm):
        yield Change("norm_evaluates", f"{norm} is in eval mode", on_model(lambda m: m.get_submodule(norm).eval() and None), within(norm))
        yield Change("norm_over_samples", f"{norm} norms each sample", on_model(lambda m: setattr(m.get_submodule(norm), "forward", lambda x,
            w=m.get_submodule(
            norm): F.instance_norm(x, weight=w.weight, bias=w.bias) if x.ndim > 2 else F.layer_norm(x, x.shape[-1:], w.weight, w.bias))), within(norm))


# ---- gradients -------------------------------------------------------------------------------------

def hook_on(path, function):
    return on_model(lambda m: m.get_submodule(path).weight.register_hook(function) and None)


def behind(function):
    def run(x):
        if x.requires_grad:
            x.register_hook(function)
        return x
    return run


def before_step(function):
    def apply(step):
        plain = step.before_step
        def run(m):
            plain(m)
            with torch.no_grad():
                function(m)
        step.before_step = run
    return apply


def each_gradient(function):
    def run(m):
        for p in m.parameters():
            if p.grad is not None:
                function(p.grad)
    return run


def gradient_mistakes(places, index):
    model, path = places.model, places.line(index + 1)
    hook = "|" + anywhere(r"clamp|cat|neg|__r?neg__|zeros_like|__sub__|mean|__add__|__mul__|__getitem__")
    here = owners(model, path) + "|" + PRE + hook
    flows = within(path, direction=ANY) + "|" + PRE + hook
    yield Change("slope_reversed", f"gradient behind {path} reversed", wrap(path, behind(lambda g: -g)), flows, "gradient")
    yield Change("slope_cut", f"gradient behind {path} cut", wrap(path, behind(lambda g: g.clamp(-1e-3, 1e-3))), flows, "gradient")
    yield Change("slope_of_half", f"gradient behind {path} of the first half of the batch", wrap(
        path, behind(lambda g: torch.cat([g[:len(g) // 2], torch.zeros_like(g[len(g) // 2:])]))), flows, "gradient")
    yield Change("slope_lost", f"gradient of {path}'s weight is zero", hook_on(path, torch.zeros_like), here, "gradient")
    yield Change("slope_centred", f"gradient of {path} centred", hook_on(path, lambda g: g - g.mean()), here, "gradient")
    yield Change("slope_of_two_ranks", f"gradient of {path}'s weight summed over two ranks", hook_on(path, lambda g: g + g), here, "gradient")
    def noisy(m):
        for i, p in enumerate(m.parameters()):
            if p.requires_grad:
                p.register_hook(lambda g, i=i: g + seeded(g, i, 1e-2))
    yield Change("slopes_noisy", "noise on all gradients", on_model(noisy), PRE, "gradient")
    yield Change("slopes_half", "all gradients reduced in float16", before_step(each_gradient(lambda g: g.copy_(g.half().to(g.dtype)))),
                 PRE + "|" + anywhere(r"half|to|copy_"), "gradient")
    yield Change("slopes_of_world", "all gradients times 4", before_step(each_gradient(lambda g: g.mul_(4))), PRE + "|" + anywhere("mul_"),
        "gradient")
    yield Change("slopes_of_vectors_lost", "gradients of vectors are set to zero", before_step(lambda m: [
        p.grad.zero_() for p in m.parameters() if p.ndim < 2 and p.grad is not None]), PRE + "|" + anywhere("zero_"), "gradient")
    def twice(step):
        plain = step.before_backward
        def run(m, loss):
            made = plain(m, loss)
            made.backward(retain_graph=True)
            return made
        step.before_backward = run
    yield Change("backward_twice", "backward runs twice", twice, PRE + r"|\.backward\.\d+ @ ", "gradient")
    def only(keep):
        def change(m):
            named = [n for n, p in m.named_parameters() if p.requires_grad]
            for n, p in m.named_parameters():
                p.requires_grad_(p.requires_grad and keep(n, named))
        return on_model(change)
    frozen = PRE + r"|\.backward(?:\.\d+)? @ |" + in_step() + "|" + anywhere(r"\w+")
    yield Change("first_layers_frozen", "the first third of the parameters is frozen", only(lambda n, all: all.index(n) >= len(all) // 3), frozen,
        "gradient")
    yield Change("one_frozen", f"weight of {path} is frozen", only(lambda n, all: n != path + ".weight"), here + "|" + within(path, direction=ANY),
        "gradient")


# ---- loss --------------------------------------------------------------------------------------------

def after_loss(function):
    return lambda step: setattr(step, "before_backward", lambda m, x, f=step.before_backward: function(m, f(m, x)))


def loss_mistakes(places, index):
    family, model, path = places.family, places.model, places.line(index)
    outer = root(r"__r?mul__|__r?truediv__|__r?add__|__r?sub__|sum|mean|pow|sqrt|log|abs|norm|to|div|detach|reciprocal|square|\w*loss\w*|cross_entropy|bfloat16|float", ANY)
    for name, why, function in (
            ("root", "root of the loss", lambda m, x: x.abs().sqrt()), ("logarithm", "logarithm of the loss", lambda m, x: torch.log1p(x.abs())),
            ("of_parts", "divided by four parts though there is one", lambda m, x: x / 4),
            ("decay_added", "squares of all weights added", lambda m, x: x + 1e-3 * sum(p.square().sum() for p in m.parameters())),
            ("bf16", "the loss in bfloat16", lambda m, x: x.bfloat16().float() * 1.01),
            ("norm_added", f"norm of {path} added", lambda m, x: x + 0.01 * m.get_submodule(path).weight.norm())):
        yield Change("loss_" + name, why, after_loss(function), outer, "loss")
    if uses(family, model, "cross_entropy"):
        def weighted(plain, x, y, **k):
            w = torch.linspace(0.5, 1.5, x.shape[1]).to(x.dtype)
            return plain(x, y, **{**k, "weight": w})
        for name, why, function in (
                ("smoothed", "labels smoothed by 0.2", lambda plain, x, y, **k: plain(x, y, **{**k, "label_smoothing": 0.2})),
                ("weighted", "classes weighted", weighted), ("tempered", "temperature 2", lambda plain, x, y, **k: plain(x / 2, y, **k)),
                ("z", "squared normaliser added", lambda plain, x, y, **k: plain(x, y, **k) + 1e-2 * x.logsumexp(1).square().mean()),
                ("capped", "logits capped", lambda plain, x, y, **k: plain(2 * torch.tanh(x / 2), y, **k)),
                ("of_probabilities", "cross entropy of probabilities", lambda plain, x, y, **k: plain(x.softmax(1), y, **k)),
                ("focal", "easy ones count less", lambda plain, x, y, **k: (lambda e: ((1 - (-e).exp()) ** 2 * e).mean())(plain(x, y,
                 **{**k, "reduction": "none"}))),
                ("summed", "sum over mean rows", lambda plain, x, y, **k: plain(x, y, **{**k, "reduction": "sum"}) / len(x) * 0.5)):
            yield Change("entropy_" + name, why, patched("cross_entropy", function), anywhere(
                r"cross_entropy|nll_loss|softmax|log_softmax|logsumexp|square|mean|sum|tanh|exp|neg|__neg__|__r?truediv__|__r?mul__|__r?add__|__r?sub__|__r?pow__|pow", ANY), "loss")
    if uses(family, model, "mse_loss"):
        for name, why, function in (
                ("absolute", "absolute error", lambda plain, x, y, **k: F.l1_loss(x, y, **k)),
                ("cosh", "logarithm of the hyperbolic cosine", lambda plain, x, y, **k: torch.log(torch.cosh(x - y)).mean()),
                ("of_next", "errors to the next sample", lambda plain, x, y, **k: plain(x, y.roll(1, 0), **k)),
                ("weighted", "errors weighted by place", lambda plain, x, y,
                 **k: ((x - y) ** 2 * torch.linspace(0.5, 1.5, x.shape[-1]).to(x.dtype)).mean()),
                ("summed", "summed over the last axis", lambda plain, x, y, **k: ((x - y) ** 2).sum(-1).mean())):
            yield Change("mse_" + name, why, patched("mse_loss", function), anywhere(
                r"mse_loss|l1_loss|log|cosh|roll|mean|sum|__r?mul__|__r?sub__|__r?pow__|pow", ANY), "loss")


# ---- data --------------------------------------------------------------------------------------------

def keys_like(family):
    batch = family.batch()
    return [k for k, v in batch.items() if v.is_floating_point() and v.ndim > 1 and k != family.labels and "mask" not in k], [
        k for k, v in batch.items() if k == "input_ids"]


def float_changes(x):
    yield "standardised", "each sample standardised", lambda x: (x - x.mean()) / x.std()
    yield "twice_normed", "normalised twice", lambda x: (x - 0.5) / 0.5
    yield "in_steps", "stored in steps of 1/32", lambda x: (x * 32).round() / 32
    yield "scaled", "in another unit", lambda x: x * 1.2
    yield "of_before", "of the sample before", lambda x: x.roll(-1, 0)
    yield "copies", "its second half repeats the first", lambda x: torch.cat([x[:(len(x) + 1) // 2], x[:len(x) // 2]])
    yield "turned", "axes in the other direction", lambda x: x.flip(-1)
    yield "offset", "offset by 0.1", lambda x: x + 0.1
    if x.ndim == 4 and x.shape[1] == 3:
        yield "channels", "blue before red", lambda x: x.flip(1)
        yield "axes", "height and width exchanged", lambda x: x.transpose(2, 3).contiguous()
        yield "patch", "a patch cut out", lambda x: torch.cat([x[..., :4, :] * 0, x[..., 4:, :]], -2)
    if x.ndim == 3:
        yield "late", "one step late", lambda x: x.roll(1, 1)


def data_mistakes(places, index):
    family, model = places.family, places.model
    batch = family.batch()
    floats, ids = keys_like(family)
    for key in floats[:2]:
        for name, why, function in float_changes(batch[key]):
            yield Change(f"{key}_{name}", f"{key}: {why}", on_batch(key, function), readers(family, model, key), "data")
    for key in ids:
        top = int(batch[key].max())
        for name, why, function in (
                ("from_one", "ids one too large", lambda x: torch.where(x == top, x, x + 1)),
                ("begun_twice", "the first id twice", lambda x: torch.cat([x[:, :1], x[:, :-1]], 1)),
                ("copies", "the second half of the batch repeats the first", lambda x: torch.cat([x[:(len(x) + 1) // 2], x[:len(x) // 2]])),
                ("masked", "some ids masked", lambda x: torch.where(torch.rand(x.shape, generator=torch.Generator().manual_seed(3)) < 0.15,
                 x.new_tensor(3), x)),
                ("modulo", "a smaller vocabulary", lambda x: torch.where(x > top // 2, x // 2, x)),
                ("of_before", "texts of the sample before", lambda x: x.roll(-1, 0))):
            yield Change("ids_" + name, why, on_batch(key, function), readers(family, model, key), "data")
    y = batch.get(family.labels)
    if y is not None and is_read(family, model, family.labels):
        truth = readers(family, model, family.labels)
        if y.is_floating_point():
            table = (("logarithm", "labels by their logarithm", lambda y: torch.log1p(y.abs()) * y.sign()),
                ("unit", "labels standardised", lambda y: (
                y - y.mean()) / y.std()), ("of_before", "labels of the sample before", lambda y: y.roll(1, 0)), ("zeros", "labels of the first sample are zero", lambda y: torch.cat([y[:1] * 0, y[1:]])))
        else:
            table = (("of_before", "labels of the sample before", lambda y: y.roll(1, 0)), ("reversed", "labels in reverse", lambda y: y.flip(0)),
                     ("one", "one label is wrong", lambda y: (lambda z: (z.view(-1)[-1:].copy_((z.view(-1)[-1:] + 1) % 2), z)[1])(y.clone())))
        for name, why, function in table:
            yield Change("labels_" + name, why, on_batch(family.labels, function), truth, "data")
    def other_batch(step):
        step.batch = {k: v.roll(1, 0) if not v.is_floating_point() else v + seeded(v, 71, 0.3) for k, v in step.batch.items() if v.ndim} | {
            k: v for k, v in step.batch.items() if not v.ndim}
    if floats or ids:
        yield Change("other_batch", "another batch", other_batch, "|".join(readers(family, model, k) for k in (floats + ids)[:2]), "data")


# ---- updates -----------------------------------------------------------------------------------------

def other(kind, **keys):
    return lambda step: setattr(step, "optimizer", lambda p: kind(p, **keys))


def clip_with(function):
    def apply(step):
        step.clip = 0
        step.before_step = function
    return apply


class UncorrectedAdam(torch.optim.Optimizer):
    """AdamW by hand whose means are not corrected for their beginning at zero."""

    def __init__(self, params, lr=1e-3, decay=0.01, right=False):
        super().__init__(params, {"lr": lr, "decay": decay, "right": right})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(m=torch.zeros_like(p), v=torch.zeros_like(p), t=0)
                state["t"] += 1
                state["m"].mul_(0.9).add_(p.grad, alpha=0.1)
                state["v"].mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
                p.mul_(1 - group["lr"] * group["decay"])
                one, two = (1 - 0.9 ** state["t"], 1 - 0.999 ** state["t"]) if group["right"] else (1.0, 1.0)
                p.addcdiv_(state["m"], (state["v"] / two).sqrt().add_(1e-8), value=-group["lr"] / one)


def update_mistakes(places):
    def of(name, why, apply, truth):
        return Change(name, why, apply, truth, "update")
    steps = in_step()
    yield of("rate_tenfold", "rate 0.01", adam(lr=1e-2), in_step("mul_|addcdiv_"))
    yield of("rate_zero", "rate 0 in the first step of warming up", adam(lr=0.0), in_step("mul_|addcdiv_"))
    yield of("eps_large", "eps 1e-3", adam(eps=1e-3), in_step("add_|__r?add__|addcdiv_"))
    yield of("no_decay", "no decay", adam(weight_decay=0.0), in_step("mul_"))
    yield of("betas_exchanged", "betas of 0.8 and 0.9", adam(betas=(0.8, 0.9)), in_step(r"lerp_|mul_|addcmul_|__r?truediv__|sqrt|addcdiv_"))
    yield of("not_corrected", "means not corrected for their beginning", lambda step: setattr(step, "optimizer", UncorrectedAdam), steps)
    yield of("radam", "RAdam", other(torch.optim.RAdam, lr=1e-3, weight_decay=0.01, decoupled_weight_decay=True, foreach=False), steps)
    yield of("signs", "signs of gradients", other(torch.optim.Rprop, lr=1e-3, foreach=False), steps)
    yield of("plain_descent", "SGD", other(torch.optim.SGD, lr=1e-3, foreach=False), steps)
    def grouped(step):
        step.optimizer = lambda p: torch.optim.AdamW([{"params": p[::2]}, {"params": p[1::2], "lr": 1e-4}], lr=1e-3, weight_decay=0.01, foreach=False)
    yield of("rates_of_groups", "every second parameter has another rate", grouped, in_step("mul_|addcdiv_"))
    def copied(step):
        step.optimizer = lambda p: torch.optim.AdamW([x.detach().clone().requires_grad_() for x in p], lr=1e-3, foreach=False)
    yield of("optimizer_of_copies", "the optimizer holds copies of the parameters", copied, steps)
    def again(step):
        step.step_times = 2
    yield of("step_twice", "two steps", again, steps)
    def not_clipped(step):
        step.clip = 0
    yield of("not_clipped", "gradients are not clipped", not_clipped, PRE)
    yield of("clip_sum", "clipped by the sum of absolute values", clip_with(lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0,
        norm_type=1)), PRE)
    yield of("clip_values", "clipped by value", clip_with(lambda m: torch.nn.utils.clip_grad_value_(m.parameters(), 0.01)), PRE)
    yield of("clip_first", "the last layer is clipped alone", clip_with(lambda m: torch.nn.utils.clip_grad_norm_(list(m.parameters())[-3:], 0.1)),
        PRE)
    yield of("zeroed_before_step", "gradients set to zero before the step", clip_with(lambda m: m.zero_grad(set_to_none=False)),
        PRE + "|" + anywhere("zero_") + "|" + steps)
    def after(function):
        def apply(step):
            plain = step.after_step
            def run(m, o):
                plain(m, o)
                with torch.no_grad():
                    for p in m.parameters():
                        p.copy_(function(p))
            step.after_step = run
        return apply
    yield of("weights_bf16", "weights kept in bfloat16 after the step", after(lambda p: p.bfloat16().to(p.dtype)),
        anywhere(r"copy_|bfloat16|to") + "|" + steps)
    yield of("weights_clamped", "weights clamped after the step", after(lambda p: p.clamp(-0.2, 0.2)), anywhere(r"copy_|clamp_?") + "|" + steps)
    yield of("averaged_back", "half of the step taken back", after(lambda p: p * 0.999), anywhere(r"copy_|__r?mul__") + "|" + steps)


# ---- what a family takes ---------------------------------------------------------------------------------

def faults(family, model, index):
    places = Places(family, model)
    plain = family.loop.__name__ == "<lambda>"
    general = [*data_mistakes(places, index)]
    if places.line(0):
        for listed in (layer_mistakes, weight_mistakes, gradient_mistakes, loss_mistakes):
            general += listed(places, index)
    if plain:
        general += update_mistakes(places)
    void = getattr(family, "void", ())
    yield from (c for c in in_turn(general, index * 3, SHARE) if c.name not in void)
    yield from mistakes_of(family, model)
    yield from getattr(family, "more_mistakes", lambda model: ())(model)
