# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the fifth set; see fifth_families.py.

Every family takes a third of the general mistakes, half of the general variations, in turn, and all
edits of its own code.
"""
import torch
from torch import nn
import torch.nn.functional as F

from changes import (ANY, Change, anywhere, data_key, first, is_norm, on_model, owners, replace,
                     within)
from fourth_changes import CLIP, LINES, LOSS
from unseen_changes import (STEP, adam, by_hand, clean, edits, in_turn, on_batch, patched, weight,
                            wrap)
import unseen_changes

# What reads the data first, for families where that is not a layer.
READS = {"guided": anywhere(r"__r?mul__|__add__|__r?sub__"), "policy": anywhere("linear"),
         "forecast": anywhere(r"mean|var|__sub__"), "edgeconv": anywhere(r"transpose|cdist|gather|__getitem__"),
         "contrast": anywhere("cat|conv2d"), "towers": anywhere(r"embedding_bag"),
         "adversaries": within("d1"), "graphormer": within("enter"), "codebook": within("enc1")}
# Labels that something other than a loss reads.
LABELS = {"guided": anywhere(r"__r?mul__|__add__|__r?sub__"), "contrast": anywhere("cat|conv2d"),
          "adversaries": within("g1"), "towers": anywhere(r"log|__r?sub__|__getitem__"),
          "sets": anywhere(r"gather|scatter|cross_entropy|__getitem__"),
          "policy": anywhere("gather|__getitem__"), "forecast": anywhere("huber_loss"),
          "conformer": anywhere("ctc_loss"), "graphormer": anywhere("smooth_l1_loss"),
          "preference": anywhere(r"__getitem__|clamp|gather"), "cached": anywhere(r"__getitem__|clamp|gather")}


def leaf(model, kinds, skip):
    """As unseen_changes.leaf, without the last layer of nn.MultiheadAttention, whose forward is not called."""
    attention = {m.out_proj for m in model.modules() if isinstance(m, nn.MultiheadAttention)}
    kinds = tuple(kinds)
    found = [n for n, m in model.named_modules() if isinstance(m, kinds) and m not in attention]
    path = unseen_changes.leaf(model, kinds, skip)
    return path if path in found else found[min(skip, len(found) - 1)]


# ---- modules ---------------------------------------------------------------------------------

def output_mistakes(model):
    path = leaf(model, LINES, 1)
    inside = within(path)
    def silent(x):
        x = x.clone()
        x[..., -(x.shape[-1] // 4 or 1):] = 0
        return x
    def eighth(x):
        step = x.detach().abs().max() / 7
        return x + ((x / step).round() * step - x).detach()
    table = [
        ("out_abs", "without sign", torch.abs), ("out_scaled_2pc", "times 1.02", lambda x: x * 1.02),
        ("out_silent", "with a quarter of zeros", silent),
        ("out_int4", "rounded to 4 bits", eighth),
        ("out_neighbour", "of the neighbouring sample", lambda x: x.roll(1, 0)),
        ("out_normalised", "divided by its deviation", lambda x: x / x.std(-1, keepdim=True)),
        ("out_cut", "cut at 1.5", lambda x: x.clamp(max=1.5)),
        ("out_cumulative", "summed up", lambda x: x.cumsum(-1) * 0.5),
        ("out_dropped_rows", "of every second sample zero",
         lambda x: x * (torch.arange(len(x)) % 2).view(-1, *[1] * (x.ndim - 1)))]
    for name, why, function in table:
        yield Change(name, f"output of {path} {why}", wrap(path, function), inside)
    def blind(m):
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: plain(x.detach())
    yield Change("in_detached", f"input of {path} detached", on_model(blind),
                 within(path, direction=ANY), "gradient")


def weight_mistakes(model):
    path = leaf(model, LINES, 2)
    here = owners(model, path)
    def eight(w):
        return w.to(torch.float8_e4m3fn).float()
    def row(w):
        w[w.shape[0] // 2] = 0
        return w
    def unit(w):
        return w / w.flatten(1).norm(dim=1).view(-1, *[1] * (w.ndim - 1))
    yield Change("weight_fp8", f"{path} rounded to fp8", weight(path, eight), here)
    yield Change("weight_row_zero", f"a row of {path} is zero", weight(path, row), here)
    yield Change("weight_unit", f"rows of {path} have norm 1", weight(path, unit), here)
    yield Change("weight_old", f"{path} of a step before", weight(path, lambda w: w * 0.997 + 0.001), here)
    if model.get_submodule(path).bias is not None:
        yield Change("bias_negated", f"bias of {path} negated", on_model(
            lambda m: m.get_submodule(path).bias.data.neg_()), here)
    norm = first(model, lambda m: is_norm(m) and getattr(m, "weight", None) is not None)
    if norm:
        inside = within(norm)
        yield Change("norm_weight_squared", f"weight of {norm} squared",
                     weight(norm, lambda w: w * w), owners(model, norm))
        yield Change("norm_eps_large", f"eps of {norm} is 1e-2", on_model(
            lambda m: setattr(m.get_submodule(norm), "eps", 1e-2)), inside)
        yield Change("norm_left_out", f"{norm} left out", on_model(
            lambda m: replace(m, norm, nn.Identity())), inside)


# ---- gradients, data, updates -----------------------------------------------------------------

def gradient_mistakes(model):
    path = leaf(model, LINES, 2)
    after = anywhere(CLIP, ANY)
    def hooked(function):
        return on_model(lambda m: m.get_submodule(path).weight.register_hook(function))
    if model.get_submodule(path).weight.requires_grad:
        yield Change("gradient_halved", f"gradient of {path}'s weight halved", hooked(lambda g: g / 2),
                     owners(model, path) + "|" + after, "gradient")
        yield Change("gradient_negated", f"gradient of {path}'s weight negated", hooked(torch.neg),
                     owners(model, path) + "|" + after, "gradient")
    def before(function, words):
        def apply(step):
            def change(m):
                function([p.grad for p in m.parameters() if p.grad is not None])
            step.before_step = change
        return apply, anywhere(CLIP + "|" + words, ANY)
    def noise(grads):
        for g in grads:
            g.add_(torch.randn_like(g) * g.std(unbiased=False) * 0.1)
    apply, truth = before(noise, "add_|randn_like|std")
    yield Change("gradient_noise", "noise on all gradients", apply, truth, "gradient")
    def largest(grads):
        max(grads, key=lambda g: g.numel()).zero_()
    apply, truth = before(largest, "zero_")
    yield Change("gradient_one_lost", "the largest gradient is not reduced", apply, truth, "gradient")
    def each(grads):
        for g in grads:
            g.div_(g.norm().clamp(min=1e-3))
    apply, truth = before(each, "div_")
    yield Change("gradient_each_normed", "each gradient divided by its norm", apply, truth, "gradient")
    def scaled(step):
        step.before_backward = lambda model, loss: loss * 512.0
    yield Change("unscale_missing", "loss times 512, gradients not divided", scaled,
                 anywhere("__r?mul__|mul", ANY), "loss")


def data_mistakes(family):
    key, labels = data_key(family), family.labels
    truth = READS.get(family.name) or anywhere(r"embedding\w*|conv1d|conv2d|linear")
    if key == "input_ids":
        yield Change("ids_other_vocabulary", "ids plus two", on_batch(
            key, lambda x: (x + 2) % 60), truth, "data")
        def cut(x):
            x = x.clone()
            x[:, 3:] = 0
            return x
        yield Change("ids_cut", "ids after the third are padding", on_batch(key, cut), truth, "data")
    else:
        def noisy(x):
            return x + 0.02 * torch.randn(x.shape, generator=torch.Generator().manual_seed(8))
        yield Change("data_noise", "noise on the data", on_batch(key, noisy), truth, "data")
        yield Change("data_channels", "channels reversed", on_batch(key, lambda x: x.flip(1)), truth, "data")
        yield Change("data_unit", "data divided by their deviation", on_batch(
            key, lambda x: x / x.std() * 1.3), truth, "data")
    truth = LABELS.get(family.name, LOSS)
    if family.batch()[labels].dtype == torch.int64:
        def one(y):
            y = y.clone()
            y.view(-1)[2] = (y.view(-1)[2] + 1) % 5
            return y
        yield Change("label_one", "one label is another", on_batch(labels, one), truth, "data")
    yield Change("labels_reversed", "labels in reverse", on_batch(labels, lambda y: y.flip(0)), truth,
                 "data")


def update_mistakes():
    yield Change("lr_zero", "learning rate of a warmup, 1e-6", adam(lr=1e-6), STEP.format("mul_|addcdiv_"),
                 "update")
    yield Change("beta1_zero", "no momentum", adam(betas=(0.0, 0.999)), STEP.format("lerp_|mul_|add_"),
                 "update")
    def grouped(step):
        step.optimizer = lambda p: torch.optim.AdamW(
            [{"params": [x for x in p if x.ndim > 1]},
             {"params": [x for x in p if x.ndim <= 1], "weight_decay": 0.0}],
            lr=1e-3, weight_decay=0.01, foreach=False)
    yield Change("decay_of_vectors", "no decay of biases and norms", grouped, STEP.format(r"\w+"), "update")
    def rms(step):
        step.optimizer = lambda p: torch.optim.RMSprop(p, lr=1e-3, foreach=False)
    yield Change("rmsprop", "RMSprop for AdamW", rms, STEP.format(
        "mul_|addcmul_|sqrt|add_|addcdiv_|lerp_|__iadd__"), "update")
    def one(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, 1.0)
    yield Change("clip_norm_one", "clipped by the sum", one, anywhere(CLIP + "|abs|sum"), "update")
    def apart(step):
        step.clip = 0
        def change(m):
            for p in m.parameters():
                if p.grad is not None:
                    torch.nn.utils.clip_grad_norm_([p], 0.1)
        step.before_step = change
    yield Change("clip_apart", "each gradient clipped alone", apart, anywhere(CLIP), "update")


# ---- mistakes of one family -------------------------------------------------------------------

EDITS = [
    ("SelectiveBlock", "[..., :n]", "[..., 2:n + 2]", "not_causal", "__getitem__|conv1d"),
    ("SelectiveBlock", "* -torch.exp(self.decay)", "* -self.decay.abs()", "decay_not_exp",
     r"exp|abs|neg|__neg__|__mul__"),
    ("SelectiveBlock", "+ self.skip * u", "", "skip_missing", "__add__|__mul__|silu"),
    ("SelectiveBlock", "F.softplus(self.rate(step))", "F.relu(self.rate(step))", "relu_for_softplus",
     "softplus|relu"),
    ("SelectiveBlock", "h = a[:, i] * h + u[:, i]", "h = a[:, 0] * h + u[:, i]", "decay_of_first",
     "__getitem__|__mul__"),
    ("TimeMix", "before = F.pad(x, (0, 0, 1, -1))", "before = x.roll(1, 1)", "shift_around", "pad|roll|__mul__"),
    ("TimeMix", "torch.exp(self.first + k[:, i])", "torch.exp(k[:, i])", "first_missing", "__add__|exp"),
    ("TimeMix", "self.output(r *", "self.output(1.0 *", "gate_missing", "__r?mul__|sigmoid|linear"),
    ("ChannelMix", "torch.square(torch.relu(self.key(mixed)))", "torch.relu(self.key(mixed))",
     "square_missing", "square|relu|pow|linear"),
    ("CachedAttention", "k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)",
     "k, v = torch.cat([k, cache[0]], 2), torch.cat([cache[1], v], 2)", "cache_order", "cat"),
    ("CachedAttention", "torch.cat([cache[1], v], 2)", "torch.cat([cache[1], v * 0.9], 2)", "value_scaled",
     "__mul__|cat"),
    ("CachedAttention", "/ math.sqrt(c // self.heads)", "/ math.sqrt(c)", "scale_of_all_heads",
     "__truediv__"),
    ("Cached", "torch.tensor([i])", "torch.tensor([0])", "place_constant", r"embedding|tensor"),
    ("SetLayer", "memory + places, memory,", "memory, memory,", "places_missing", r"__add__|\w*multi_head\w*|linear"),
    ("SetLayer", "self.self_attn(q, q, x,", "self.self_attn(q, q, q,", "queries_in_values",
     r"\w*multi_head\w*|linear|\w+"),
    ("SetLayer", "F.relu(self.fc1(x))", "F.gelu(self.fc1(x))", "gelu_for_relu", "relu|gelu"),
    ("SetDetector", "torch.sigmoid(self.box2", "torch.tanh(self.box2", "tanh_boxes", "sigmoid|tanh"),
    ("ConformerBlock", "x = x + 0.5 * self.ff1(x)", "x = x + self.ff1(x)", "half_missing", "__r?mul__|__add__"),
    ("ConformerBlock", "F.glu(self.point1(x.transpose(1, 2)), 1)", "self.point1(x.transpose(1, 2))[:, :24]",
     "gate_missing", "glu|__getitem__"),
    ("ConformerBlock", "F.silu(self.bn(self.depth(x)))", "self.bn(F.silu(self.depth(x)))", "norm_after",
     "silu|batch_norm"),
    ("ConformerBlock", 'score.masked_fill(mask[:, None, None], float("-inf"))', "score", "mask_missing",
     "masked_fill|softmax|__getitem__"),
    ("EdgeConv", "[found - here, here]", "[found, here]", "difference_missing", "__sub__|cat"),
    ("EdgeConv", "largest=False", "largest=True", "farthest", "topk"),
    ("EdgeConv", ".amax(-1)", ".mean(-1)", "mean_for_max", "amax|mean"),
    ("GraphLayer", "+ bias", "", "bias_missing", "__add__|masked_fill"),
    ("GraphLayer", "math.sqrt(c / self.heads)", "math.sqrt(c * self.heads)", "scale_of_scores", "__truediv__"),
    ("GraphTransformer", "self.norm(h)[:, 0]", "self.norm(h).mean(1)", "mean_for_whole",
     "__getitem__|mean"),
    ("GraphTransformer", "self.enter(x) + self.degree(degrees)", "self.enter(x)", "degree_missing",
     "__add__|embedding|cat"),
    ("Codes", "z + (near - z).detach()", "near", "not_straight",
     "__add__|__sub__|detach|permute|conv2d|relu"),
    ("Codes", "0.25 * F.mse_loss(z, near.detach())", "0.25 * F.mse_loss(z, near)", "near_not_detached",
     r"detach|mse_loss"),
    ("Codes", "apart.argmin(1)", "apart.argmax(1)", "farthest_code", "argmin|argmax"),
    ("Codes", "- 2 * flat @", "- flat @", "two_missing", r"__r?mul__|__matmul__|matmul|__r?sub__"),
    ("Guided", "torch.where(dropped, torch.full_like(kind, 5), kind)", "kind", "kind_not_dropped",
     "where|full_like|embedding"),
    ("Guided", "* (1 + scale) + shift", "* (1 + shift) + scale", "scale_for_shift", "__r?add__|__mul__|chunk"),
    ("Guided", "torch.cat([f.sin(), f.cos()], -1)", "torch.cat([f.sin(), f.sin()], -1)", "sines_alone",
     "cos|sin|cat"),
    ("Guided", "self.attend(self.down(h))", "self.down(h)", "attention_missing", r"\w+"),
    ("Guided", "w.transpose(1, 2)", "w", "weights_turned", "transpose|bmm"),
    ("Contrast", ".mean((2, 3))", ".amax((2, 3))", "max_for_mean", "mean|amax"),
    ("Contrast", "F.normalize(self.p2", "(lambda x, dim: x)(self.p2", "not_normalised",
     r"normalize|linear|norm|mm|__truediv__|clamp\w*"),
    ("Contrast", "self.act(self.p1(x))", "self.p1(x)", "act_missing", "relu|linear"),
    ("Adversaries", "made.detach()", "made", "not_detached", "detach|conv2d"),
    ("Adversaries", "torch.tanh(self.g3", "torch.sigmoid(self.g3", "sigmoid_for_tanh", "tanh|sigmoid"),
    ("Adversaries", "features.detach().mean(0)", "features.detach().sum(0)", "sum_for_mean", "mean|sum"),
    ("Towers", "per_sample_weights=importance", "per_sample_weights=torch.ones_like(importance)",
     "importance_missing", "ones_like|embedding_bag"),
    ("Towers", "F.normalize(u, dim=-1)", "u", "user_not_normalised",
     r"normalize|__matmul__|matmul|linear|norm|__truediv__|clamp\w*"),
    ("Towers", "/ 0.1", "/ 0.07", "temperature", "__truediv__"),
    ("Forecast", "/ std * self.gain", "* self.gain", "std_missing", "__truediv__|__mul__"),
    ("Forecast", "* std + mean", "* std", "mean_not_added", "__add__"),
    ("Forecast", "x.unfold(-1, 8, 4)", "x.roll(1, -1).unfold(-1, 8, 4)", "patches_moved", "roll|unfold"),
    ("Forecast", "unbiased=False", "unbiased=True", "variance_unbiased", "var"),
    ("Policy", "torch.tanh(self.norm(self.l2", "torch.relu(self.norm(self.l2", "relu_for_tanh", "tanh|relu"),
    ("Policy", "self.critic(h)", "self.critic(h.detach())", "critic_detached", "detach|linear"),
    ("Adapted", "* 2.0", "* 4.0", "alpha_doubled", "__mul__"),
    ("Adapted", "if self.on else y", "", "adapters_in_both", r"__mul__|__add__|linear|\w+"),
    ("Preference", "is_causal=True", "is_causal=False", "not_causal", "scaled_dot_product_attention"),
    ("Preference", 'approximate="tanh"', 'approximate="none"', "gelu_exact", "gelu"),
    ("Preference", "+ self.place[:, :ids.shape[1]]", "", "places_missing", "__add__|layer_norm|embedding"),
]


def faults(family, model, index):
    general = [*output_mistakes(model), *weight_mistakes(model), *gradient_mistakes(model),
               *data_mistakes(family), *update_mistakes()]
    yield from in_turn(general, index)
    yield from edits(model, EDITS)


# ---- changes that are no mistakes ---------------------------------------------------------------

VARIATIONS = [
    ("SelectiveBlock", "F.silu(gate)", "(gate * torch.sigmoid(gate))", "silu_written"),
    ("SelectiveBlock", "torch.exp(step[..., None] * -torch.exp(self.decay))",
     "torch.exp(-(step[..., None] * torch.exp(self.decay)))", "sign_outside"),
    ("SelectiveBlock", "(h * c[:, i, None, :]).sum(-1)", 'torch.einsum("bds,bs->bd", h, c[:, i])', "einsum"),
    ("TimeMix", "before = F.pad(x, (0, 0, 1, -1))",
     "before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], 1)", "shift_by_cat"),
    ("ChannelMix", "torch.square(torch.relu(self.key(mixed)))", "torch.relu(self.key(mixed)) ** 2",
     "power_for_square"),
    ("TimeMix", "x * self.mix_k + before * (1 - self.mix_k)", "torch.lerp(before, x, self.mix_k)", "lerp"),
    ("CachedAttention", "weight = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(c // self.heads), -1)",
     "return self.o_proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)), (k, v)",
     "attention_fused"),
    ("CachedLayer", "x = x + y", "x = torch.add(y, x)", "sum_turned"),
    ("ConformerBlock", 'score.masked_fill(mask[:, None, None], float("-inf"))',
     "(score + torch.zeros(mask.shape).masked_fill(mask, -1e9)[:, None, None])", "mask_added"),
    ("ConformerBlock", "F.glu(self.point1(x.transpose(1, 2)), 1)",
     "(lambda a, b: a * torch.sigmoid(b))(*self.point1(x.transpose(1, 2)).chunk(2, 1))", "glu_by_hand"),
    ("ConformerBlock", "q, k, v = self.qkv(x)",
     "q, k, v = torch.cat([F.linear(x, w, z) for w, z in zip(self.qkv.weight.chunk(3), self.qkv.bias.chunk(3))], -1)",
     "qkv_apart"),
    ("EdgeConv", "torch.cdist(x.transpose(1, 2), x.transpose(1, 2))",
     "(x[..., None] - x[:, :, None]).pow(2).sum(1)", "squared_distance"),
    ("EdgeConv", ".amax(-1)", ".max(-1)[0]", "max_for_amax"),
    ("GraphLayer", 'torch.einsum("bhid,bhjd->bhij", q, k)', "q @ k.transpose(-2, -1)", "matmul_for_einsum"),
    ("GraphLayer", "torch.finfo(score.dtype).min", 'float("-inf")', "mask_infinite"),
    ("Codes", "z + (near - z).detach()", "near.detach() + (z - z.detach())", "straight_through_other"),
    ("Codes", "self.book(apart.argmin(1))", "(F.one_hot(apart.argmin(1), 20).float() @ self.book.weight)",
     "one_hot"),
    ("Guided", "torch.bmm(q.transpose(1, 2), k) * 12 ** -0.5", "torch.bmm(q.transpose(1, 2) * 12 ** -0.5, k)",
     "scaled_before"),
    ("Guided", "* (1 + scale) + shift", "* scale.add(1) + shift", "one_added"),
    ("Contrast", ".mean((2, 3))", ".flatten(2).mean(-1)", "mean_of_flat"),
    ("Contrast", "F.normalize(self.p2(self.act(self.p1(x))), dim=-1)",
     "(lambda y: y / y.norm(dim=-1, keepdim=True))(self.p2(self.act(self.p1(x))))", "norm_by_hand"),
    ("Towers", "self.past(past)", "self.past.weight[past].mean(1)", "bag_by_hand"),
    ("Towers", "F.normalize(i, dim=-1).t()", "F.normalize(i, dim=-1).transpose(0, 1)", "transpose_named"),
    ("Forecast", "torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)",
     "((x - mean).pow(2).mean(1, keepdim=True) + 1e-5).sqrt()", "variance_by_hand"),
    ("Adapted", "F.linear(F.linear(x, self.thin_a), self.thin_b) * 2.0",
     "2.0 * F.linear(x, self.thin_b @ self.thin_a)", "adapter_merged"),
    ("Preference", "F.scaled_dot_product_attention(q, k, v, is_causal=True)",
     "((q @ k.mT / 8 ** 0.5).masked_fill(torch.ones(12, 12).triu(1).bool(), float('-inf')).softmax(-1) @ v)",
     "attention_by_hand"),
    ("Preference", ".permute(2, 0, 3, 1, 4)", ".transpose(1, 3).permute(2, 0, 1, 3, 4)", "permuted_twice"),
]


def rms_of_mean(m, x):
    var, mean = torch.var_mean(x, -1, unbiased=False, keepdim=True)
    return (x - mean) * torch.rsqrt(var + m.eps) * m.weight + m.bias


def shared_variations(family, model):
    yield clean("again", "the same run", lambda step: None)
    yield clean("foreach", "foreach optimizer", adam(foreach=True))
    yield clean("fused", "fused optimizer", adam(foreach=None, fused=True))
    yield clean("threads2", "two threads", lambda step: setattr(step, "threads", 2))
    yield clean("float64", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("bfloat16", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    def autocast(step):
        step.context = lambda: torch.autocast("cpu", dtype=torch.bfloat16)
    yield clean("autocast", "autocast to bfloat16", autocast)
    if family.name not in ("contrast", "towers", "adversaries", "preference", "policy", "cached"):
        yield clean("batch_order", "the batch in another order", lambda step: setattr(
            step, "batch", {k: v.flip(0) for k, v in step.batch.items()}))
    path = leaf(model, LINES, 1)
    yield clean("chunks", f"input of {path} in two parts", on_model(lambda m: in_parts(m, path)))
    yield clean("viewed", f"output of {path} through other shapes",
                wrap(path, lambda x: x.reshape(-1).view(x.shape)))
    yield clean("contiguous", f"output of {path} contiguous", wrap(path, lambda x: x.contiguous()))
    yield clean("times_one", f"output of {path} times one", wrap(path, lambda x: x * 1.0))
    yield clean("layer_norm_rsqrt", "layer norm by rsqrt", by_hand(nn.LayerNorm, rms_of_mean))
    yield clean("relu_by_clamp", "clamp for relu", patched(
        "relu", lambda plain, x, inplace=False: x.clamp(min=0)))
    yield clean("linear_addmm", "matmul and sum for linear", by_hand(
        nn.Linear, lambda m, x: x @ m.weight.mT if m.bias is None else m.bias + x @ m.weight.mT))
    def logged(step):
        def watch(m):
            with torch.no_grad():
                sum(p.grad.abs().mean() for p in m.parameters() if p.grad is not None).item()
        step.before_step = watch
    yield clean("gradients_logged", "means of gradients are logged", logged)
    def again(m):
        from torch.utils.checkpoint import checkpoint
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: checkpoint(plain, x, use_reentrant=False)
    yield clean("checkpoint", f"{path} is computed again", on_model(again))
    def kept(step):
        loss = step.loss
        def run(model, batch):
            found = loss(model, batch)
            found.detach().item()
            return found
        step.loss = run
    yield clean("loss_logged", "the loss is logged", kept)


def in_parts(model, path):
    module = model.get_submodule(path)
    plain = module.forward
    module.forward = lambda x: torch.cat([plain(y) for y in x.chunk(2)])


def variations(family, model, index):
    yield from in_turn([*shared_variations(family, model)], index, 2)
    yield from edits(model, VARIATIONS, truth=False)
