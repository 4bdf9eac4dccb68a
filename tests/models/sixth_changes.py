# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the sixth set; see sixth_families.py.

Every family takes a quarter of the general mistakes, a third of the general variations, in turn, and all
edits of its own code.
"""
import torch
from torch import nn
import torch.nn.functional as F

from changes import (ANY, Change, anywhere, data_key, first, is_norm, on_model, owners, replace,
                     within)
from fifth_changes import in_parts, leaf
from fourth_changes import CLIP, LINES, LOSS
from unseen_changes import (STEP, adam, by_hand, clean, edits, in_turn, on_batch, patched, weight,
                            wrap)

# What reads the data first, for families where that is not a layer.
READS = {"features": anywhere(r"__mul__|__r?add__|__getitem__"), "series": anywhere("abs|__getitem__"),
         "flow": anywhere("__add__") , "questions": anywhere("embedding|lstm|conv2d"),
         "sage": anywhere(r"linear|__getitem__"), "triplets": anywhere("cat|conv2d"),
         "patchtst": anywhere(r"\w+"), "temporal": anywhere("pad|conv1d"), "dinov2": anywhere("to|conv2d")}
# Labels that something other than a loss reads.
LABELS = {"t5": anywhere(r"new_zeros|__getitem__|clone|masked_fill_|embedding|__setitem__|cross_entropy|view|to"),
          "whisper": anywhere(r"new_zeros|__getitem__|clone|masked_fill_|embedding|__setitem__|cross_entropy|view|reshape|to"),
          "crf": anywhere("gather|__getitem__"), "series": anywhere("cat|__getitem__"),
          "flow": anywhere("__mul__"), "capsules": anywhere("one_hot"),
          "temporal": anywhere("__sub__"), "triplets": anywhere("cat|conv2d"),
          "patchtst": anywhere(r"\w+"), "vilt": anywhere("to|binary_cross_entropy_with_logits"),
          "sage": anywhere("binary_cross_entropy_with_logits")}


# ---- modules ---------------------------------------------------------------------------------

def output_mistakes(model):
    path = leaf(model, LINES, 3)
    inside = within(path)
    def stale(m):
        module = m.get_submodule(path)
        plain, kept = module.forward, {}
        def forward(x):
            y = plain(x)
            kept.setdefault("y", torch.roll(y.detach(), 1, 0))
            return kept["y"] + 0 * y
        module.forward = forward
    def half_batch(x):
        return torch.cat([x[:len(x) // 2], torch.zeros_like(x[len(x) // 2:])])
    table = [
        ("out_softsign", "through softsign", F.softsign), ("out_scaled_1_permille", "times 1.001", lambda x: x * 1.001),
        ("out_half_batch", "of half of the batch zero", half_batch),
        ("out_fp8", "rounded to fp8", lambda x: x.to(torch.float8_e4m3fn).to(x.dtype)),
        ("out_sorted", "sorted", lambda x: x.sort(-1)[0]),
        ("out_mirrored", "reversed along the last axis", lambda x: x.flip(-1)),
        ("out_averaged", "mixed with its mean", lambda x: 0.9 * x + 0.1 * x.mean()),
        ("out_halves_exchanged", "with its halves exchanged", lambda x: torch.cat(x.chunk(2, -1)[::-1], -1)),
        ("out_element", "with one large element", lambda x: x + F.one_hot(
            torch.tensor(2), x.numel()).to(x.dtype).view(x.shape) * 3),
        ("out_squared", "squared with its sign", lambda x: x * x.abs())]
    for name, why, function in table:
        yield Change(name, f"output of {path} {why}", wrap(path, function), inside)
    yield Change("out_stale", f"output of {path} of another sample, cut off", on_model(stale), inside)
    yield Change("out_gradient_scaled", f"gradient of {path}'s output doubled", wrap(
        path, lambda x: x * 2 - x.detach()), inside)


def weight_mistakes(model):
    path = leaf(model, LINES, 4)
    here = owners(model, path)
    def noisy(w):
        return w + 0.01 * w.std() * torch.randn(w.shape, generator=torch.Generator().manual_seed(6))
    def columns(w):
        return w.roll(1, 1)
    def shard(w):
        w[:w.shape[0] // 2] = w[w.shape[0] - w.shape[0] // 2:].clone()
        return w
    yield Change("weight_noise", f"{path} with noise of 1 %", weight(path, noisy), here)
    if model.get_submodule(path).weight.shape[1] > 1:
        yield Change("weight_columns", f"columns of {path} moved by one", weight(path, columns), here)
    if model.get_submodule(path).weight.shape[0] > 1:
        yield Change("weight_shard", f"half of {path} loaded twice", weight(path, shard), here)
    yield Change("weight_fp16", f"{path} stored in fp16", weight(path, lambda w: w.half().float()), here)
    yield Change("weight_step", f"{path} one step of the optimizer ahead", weight(
        path, lambda w: w - 1e-3 * w.sign()), here)
    norm = first(model, lambda m: is_norm(m) and getattr(m, "weight", None) is not None, 1)
    if norm:
        yield Change("norm_zero", f"weight of {norm} is zero", weight(norm, torch.zeros_like),
                     owners(model, norm))
        yield Change("norm_halved", f"weight of {norm} halved", weight(norm, lambda w: w / 2),
                     owners(model, norm))
        yield Change("norm_skipped", f"{norm} left out", on_model(
            lambda m: replace(m, norm, nn.Identity())), within(norm))
    table = first(model, lambda m: isinstance(m, nn.Embedding))
    if table:
        yield Change("rows_moved", f"rows of {table} moved by one", weight(
            table, lambda w: w.roll(1, 0)), owners(model, table))


# ---- gradients, losses, data, updates --------------------------------------------------------------

def gradient_mistakes(model):
    path = leaf(model, LINES, 3)
    after = anywhere(CLIP, ANY)
    def hooked(function):
        return on_model(lambda m: m.get_submodule(path).weight.register_hook(function))
    yield Change("gradient_fp8", f"gradient of {path}'s weight in fp8", hooked(
        lambda g: g.to(torch.float8_e5m2).to(g.dtype)), owners(model, path) + "|" + after, "gradient")
    yield Change("gradient_rows", f"gradient of {path}'s weight without its first row", hooked(
        lambda g: torch.cat([torch.zeros_like(g[:1]), g[1:]])), owners(model, path) + "|" + after, "gradient")
    def frozen(m):
        m.get_submodule(path).weight.requires_grad_(False)
    yield Change("weight_frozen", f"{path}'s weight is frozen", on_model(frozen),
                 within(path, direction=ANY) + "|" + owners(model, path), "gradient")
    def before(function, words):
        def apply(step):
            def change(m):
                function([p.grad for p in m.parameters() if p.grad is not None])
            step.before_step = change
        return apply, anywhere(CLIP + "|" + words, ANY)
    def sign(grads):
        for g in grads:
            g.copy_(g.sign() * g.abs().mean())
    def second_half(grads):
        for g in grads[len(grads) // 2:]:
            g.mul_(2)
    def fp16(grads):
        for g in grads:
            g.copy_((g * 1e-4).half() / 1e-4)
    for name, why, function, words in (
            ("gradient_sign", "only signs of gradients", sign, "sign|abs|mean|copy_"),
            ("gradient_half_reduced", "half of the gradients reduced twice", second_half, "mul_"),
            ("gradient_fp16", "small gradients sent as fp16", fp16, "half|copy_|__mul__|__truediv__")):
        apply, truth = before(function, words)
        yield Change(name, why, apply, truth, "gradient")


OUTSIDE = r"(?!.*(?:layer|block|attn|mlp|head|encoder))"


def loss_mistakes(family):
    def after(function):
        def apply(step):
            step.before_backward = function
        return apply
    words = r"__r?mul__|__r?add__|__r?sub__|__r?truediv__|sum|pow|mean|square|norm|detach"
    yield Change("loss_doubled", "loss added twice", after(lambda m, x: x + x), anywhere(words, ANY), "loss")
    yield Change("loss_l2", "squares of weights added to the loss", after(
        lambda m, x: x + 1e-3 * sum(p.square().sum() for p in m.parameters() if p.requires_grad)),
        anywhere(words, ANY), "loss")
    yield Change("loss_by_world", "loss divided by 8", after(lambda m, x: x / 8), anywhere(words, ANY), "loss")
    yield Change("loss_clamped", "loss clamped at 0.1", after(
        lambda m, x: x.clamp(max=0.1) + 0.01 * x), anywhere(words + r"|clamp", ANY), "loss")


def data_mistakes(family):
    key, labels = data_key(family), family.labels
    key = key if key in family.batch() else next(iter(family.batch()))
    truth = READS.get(family.name) or anywhere(r"embedding\w*|conv1d|conv2d|linear|gelu")
    if key == "input_ids":
        yield Change("ids_reversed", "ids reversed", on_batch(key, lambda x: x.flip(1)), truth, "data")
        def unknown(x):
            x = x.clone()
            x[:, ::4] = 1
            return x
        yield Change("ids_unknown", "every fourth id is unknown", on_batch(key, unknown), truth, "data")
    else:
        yield Change("data_fp16", "data stored as fp8", on_batch(
            key, lambda x: x.to(torch.float8_e4m3fn).to(x.dtype)), truth, "data")
        yield Change("data_offset", "mean of the data not removed", on_batch(key, lambda x: x + 0.4), truth, "data")
        yield Change("data_sample", "one sample twice", on_batch(
            key, lambda x: torch.cat([x[:1], x[:-1]])), truth, "data")
    truth = LABELS.get(family.name, LOSS)
    if family.batch()[labels].dtype == torch.int64:
        yield Change("label_next", "labels plus one", on_batch(
            labels, lambda y: torch.where(y < 0, y, (y + 1) % (y.max() + 1))), truth, "data")
        yield Change("label_other_sample", "labels of the next sample", on_batch(
            labels, lambda y: y.roll(1, 0)), truth, "data")
    else:
        yield Change("label_offset", "labels plus 0.1", on_batch(labels, lambda y: y + 0.1), truth, "data")


def update_mistakes():
    yield Change("lr_ten", "learning rate ten times as large", adam(lr=1e-2), STEP.format("mul_|addcdiv_"), "update")
    yield Change("decay_ten", "weight decay of 0.1", adam(weight_decay=0.1), STEP.format("mul_"), "update")
    yield Change("eps_large", "eps of 1e-3", adam(eps=1e-3), STEP.format(r"add_|addcdiv_|__iadd__"), "update")
    yield Change("maximised", "the loss is maximised", adam(maximize=True), STEP.format(r"\w+"), "update")
    yield Change("amsgrad", "amsgrad", adam(amsgrad=True), STEP.format(
        r"maximum|sqrt|addcdiv_|clone|add_|copy_"), "update")
    def coupled(step):
        step.optimizer = lambda p: torch.optim.Adam(p, lr=1e-3, weight_decay=0.01, foreach=False)
    yield Change("decay_coupled", "Adam for AdamW", coupled, STEP.format("mul_|add|add_|lerp_"), "update")
    def largest(step):
        step.clip = 0
        step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 1.0, float("inf"))
    yield Change("clip_inf", "clipped by the largest", largest, anywhere(CLIP + "|abs|max|amax"), "update")
    yield Change("clip_tenth", "clipped at 0.1", lambda step: setattr(step, "clip", 0.1),
                 anywhere(CLIP), "update")
    def averaged(step):
        def average(m, optimizer):
            with torch.no_grad():
                for p in m.parameters():
                    p.mul_(0.999)
        step.after_step = average
    yield Change("average_written", "an average is written over the weights", averaged,
                 anywhere("mul_"), "update")


# ---- mistakes of one family -------------------------------------------------------------------

EDITS = [
    ("Gemma3RMSNorm", "(1.0 + self.weight.float())", "self.weight.float()", "one_missing", r"__r?add__|__mul__|float"),
    ("Gemma3MLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)", "self.gate_proj(x) * self.act_fn(self.up_proj(x))",
     "gate_and_up", r"\w+"),
    ("Gemma3Attention", "query_states = self.q_norm(query_states)", "query_states = query_states", "q_norm_missing",
     r"\w+"),
    ("MptBlock", "residual = hidden_states", "residual = layernorm_output", "residual_normed", r"\w+"),
    ("MptMLP", "self.act(self.up_proj(hidden_states))", "self.up_proj(hidden_states)", "act_missing", "gelu|linear"),
    ("FNetBasicFourierTransform", ".real", ".imag", "imaginary", r"\w+"),
    ("FNetIntermediate", "hidden_states = self.intermediate_act_fn(hidden_states)", "pass", "act_missing",
     "gelu|linear|pow|tanh|__r?mul__"),
    ("T5LayerNorm", "variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)",
     "variance = hidden_states.to(torch.float32).var(-1, keepdim=True)", "centred_variance", "pow|mean|var"),
    ("T5DenseGatedActDense", "hidden_gelu * hidden_linear", "hidden_gelu + hidden_linear", "sum_for_product",
     "__mul__|__add__"),
    ("WhisperEncoder", "inputs_embeds + ", "inputs_embeds + 0.5 * ", "places_halved", r"__r?mul__|__add__"),
    ("WhisperDecoderLayer", "hidden_states = self.activation_fn(self.fc1(hidden_states))",
     "hidden_states = torch.relu(self.fc1(hidden_states))", "relu_for_gelu", "gelu|relu"),
    ("SwinLayer", "torch.roll(hidden_states, shifts=(-self.shift_size, -self.shift_size), dims=(1, 2))",
     "torch.roll(hidden_states, shifts=(self.shift_size, self.shift_size), dims=(1, 2))", "rolled_back", "roll"),
    ("SwinPatchMerging", "input_feature = self.norm(input_feature)", "pass", "norm_missing", r"layer_norm|linear|cat"),
    ("Dinov2LayerScale", "hidden_state * self.lambda1", "hidden_state", "scale_missing", r"__mul__|\w+"),
    ("ViltOutput", "hidden_states = hidden_states + input_tensor", "pass", "residual_missing", r"__add__|linear|dropout"),
    ("Retention", "apart >= 0", "apart > 0", "itself_missing", r"__ge__|__gt__|ge|gt|where"),
    ("Retention", "** apart.clamp(min=0)", "** (apart.clamp(min=0) + 1)", "decay_early", r"__pow__|__rpow__|__add__|pow|where|clamp"),
    ("Retention", ".sqrt().to(x.dtype)", ".to(x.dtype)", "root_missing", "sqrt|__truediv__"),
    ("Retention", "F.silu(self.gate(x)) * y", "torch.sigmoid(self.gate(x)) * y", "sigmoid_gate", "silu|sigmoid"),
    ("Retention", "* (c // self.heads) ** -0.5", "", "scale_missing", r"__mul__|__matmul__|matmul"),
    ("RetentiveLayer", "self.gate(y)) * self.up(y)", "self.gate(y)) * self.up(x)", "up_of_input", r"linear|\w+"),
    ("Retentive", "self.embed(ids) * math.sqrt(32)", "self.embed(ids)", "scale_of_embedding", "__mul__|embedding|layer_norm"),
    ("Causal", "F.pad(h, (2 * self.gap, 0))", "F.pad(h, (self.gap, self.gap))", "not_causal", "pad"),
    ("Causal", "h + self.past(x)", "h", "past_missing", "__add__|relu|conv1d"),
    ("Causal", "self.norm2(self.conv2(", "(self.conv2(", "norm_missing", "group_norm|conv1d|relu"),
    ("Tagger", "self.follow[tags[:, :-1], tags[:, 1:]]", "self.follow[tags[:, 1:], tags[:, :-1]]", "follow_turned",
     "__getitem__|sum"),
    ("Tagger", "+ self.start[tags[:, 0]]", "", "start_missing", "__add__|__getitem__|sum"),
    ("Tagger", "x = x + torch.tanh(", "x = torch.tanh(", "residual_missing", "__add__|tanh|transpose"),
    ("Tagger", "alpha[:, :, None] + self.follow", "alpha[:, None, :] + self.follow", "axis_of_alpha",
     "__getitem__|__add__|logsumexp"),
    ("Series", "x.abs().mean(1, keepdim=True) + 1.0", "x.abs().amax(1, keepdim=True) + 1.0", "largest_for_mean", "mean|amax|abs"),
    ("Series", "F.softplus(self.deviation(y)) + 1e-3", "torch.exp(self.deviation(y)) + 1e-3", "exp_for_softplus", "softplus|exp"),
    ("Series", "covariates[:, i]]", "covariates[:, i + 1]]", "covariates_late", "__getitem__|cat"),
    ("Series", "torch.stack(found, 1) * scale[..., None]", "torch.stack(found, 1)", "scale_missing", "__mul__|stack|__getitem__"),
    ("Coupling", "scale = torch.tanh(scale)", "pass", "tanh_missing", "tanh|chunk|exp|sum"),
    ("Coupling", "torch.slogdet(self.mix)[1] + ", "", "volume_of_mix_missing", "slogdet|__add__|sum"),
    ("Coupling", "[a, b * torch.exp(scale) + shift]", "[b * torch.exp(scale) + shift, a]", "halves_turned", "cat"),
    ("Coupling", "(x + self.bias) * torch.exp(self.log_scale)", "x * torch.exp(self.log_scale) + self.bias", "bias_after",
     "__add__|__mul__"),
    ("Capsules", "square / (1 + square) * s", "s", "squash_missing", "__truediv__|__r?add__|__mul__"),
    ("Capsules", "torch.softmax(b, 2)", "torch.softmax(b, 1)", "softmax_axis", "softmax"),
    ("Capsules", "range(3)", "range(2)", "one_round_less", r"\w+"),
    ("Capsules", "v * F.one_hot(kind, 5)[..., None].to(v.dtype)", "v", "not_masked", "one_hot|__mul__|__getitem__|to|flatten"),
    ("Ode", "k1 + 2 * k2 + 2 * k3 + k4", "k1 + 2 * k2 + k3 + k4", "two_missing", r"__r?mul__|__add__"),
    ("Ode", "dt / 2 * k2)", "dt * k2)", "half_step", r"__r?mul__"),
    ("Ode", "torch.cat([h, t], -1)", "torch.cat([h, t * 0], -1)", "time_missing", r"__mul__|cat|full_like"),
    ("Features", "* self.scale + self.shift", "* self.scale", "shift_missing", "__add__|__mul__"),
    ("Features", "kinds + self.offsets", "kinds", "offsets_missing", "__add__|embedding"),
    ("Features", "a * F.relu(b)", "F.relu(a) * b", "other_half", r"relu|__mul__"),
    ("Features", "self.last(x[:, 0])", "self.last(x[:, -1])", "last_for_class", "__getitem__|layer_norm"),
    ("Sage", "total / count.clamp(min=1)[:, None]", "total", "sum_for_mean", "__truediv__|clamp|index_add"),
    ("Sage", "index_add(0, edges[1], x[edges[0]])", "index_add(0, edges[0], x[edges[1]])", "edges_turned",
     "__getitem__|index_add"),
    ("Sage", "F.normalize(self.self2(h) + self.near2(self.gathered(h, edges)), dim=-1)",
     "self.self2(h) + self.near2(self.gathered(h, edges))", "not_normalised", r"normalize|__add__|norm|clamp\w*|__truediv__|__getitem__"),
    ("Questions", "(1 + g1) + b1", "g1 + b1", "one_missing", r"__r?add__|__mul__"),
    ("Questions", "[1][0][-1]", "[0][:, 0]", "first_state", "__getitem__|lstm|linear"),
    ("Questions", "* (1 + g2) + b2) + x", "* (1 + g2) + b2)", "residual_missing", "__add__|relu"),
    ("Questions", "(places @ weight.transpose(1, 2))[..., 0]", "places.mean(-1)", "mean_for_look", r"\w+"),
    ("Triplets", "F.relu6(self.norm1", "F.relu(self.norm1", "relu_for_relu6", "relu6|relu|hardtanh"),
    ("Triplets", "F.hardsigmoid(", "torch.sigmoid(", "sigmoid_for_hard", "hardsigmoid|sigmoid"),
    ("Triplets", "x * w[..., None, None]", "x", "excite_missing", r"__mul__|prelu|__getitem__"),
    ("Triplets", ", 0.1)", ", 0.01)", "slope", "leaky_relu"),
]


def faults(family, model, index):
    general = [*output_mistakes(model), *weight_mistakes(model), *gradient_mistakes(model),
               *loss_mistakes(family), *data_mistakes(family), *update_mistakes()]
    yield from in_turn(general, index, 4)
    yield from edits(model, EDITS)


# ---- changes that are no mistakes ---------------------------------------------------------------

VARIATIONS = [
    ("Retention", "F.silu(self.gate(x)) * y", "y * self.gate(x) * torch.sigmoid(self.gate(x))", "silu_written"),
    ("Retention", "(q @ (k.transpose(-2, -1) * (c // self.heads) ** -0.5) * weight) @ v",
     "torch.einsum('bhij,bhjd->bhid', torch.einsum('bhid,bhjd->bhij', q, k) * ((c // self.heads) ** -0.5 * weight), v)",
     "einsum"),
    ("RetentiveLayer", "F.gelu(self.gate(y)) * self.up(y)",
     "(lambda a, b: F.gelu(a) * b)(*F.linear(y, torch.cat([self.gate.weight, self.up.weight]),"
     " torch.cat([self.gate.bias, self.up.bias])).chunk(2, -1))", "gate_and_up_joined"),
    ("Causal", "self.conv1(F.pad(x, (2 * self.gap, 0)))",
     "F.conv1d(x, self.conv1.weight, self.conv1.bias, padding=2 * self.gap, dilation=self.gap)[..., :x.shape[-1]]",
     "padded_by_conv"),
    ("Tagger", "torch.logsumexp(alpha[:, :, None] + self.follow, 1)",
     "(alpha[:, :, None] + self.follow).exp().sum(1).log()", "log_of_sum"),
    ("Tagger", "scores.gather(-1, tags[..., None])[..., 0].sum(1)",
     "(scores * F.one_hot(tags, 5)).sum((1, 2))", "one_hot"),
    ("Series", "torch.tanh(self.enter(step))", "(2 * torch.sigmoid(2 * self.enter(step)) - 1)", "tanh_by_sigmoid"),
    ("Coupling", "b * torch.exp(scale) + shift", "torch.addcmul(shift, b, scale.exp())", "addcmul"),
    ("Coupling", "torch.slogdet(self.mix)[1]", "torch.linalg.det(self.mix).abs().log()", "determinant"),
    ("Capsules", "square / (1 + square) * s / torch.sqrt(square + 1e-8)",
     "s * (torch.sqrt(square + 1e-8) / (1 + square)) * (square / (square + 1e-8))", "squash_other"),
    ("Capsules", "(self.votes @ u[:, :, None, :, None])[..., 0]",
     "torch.einsum('nkij,bnj->bnki', self.votes[0], u)", "votes_by_einsum"),
    ("Ode", "k1 + 2 * k2 + 2 * k3 + k4", "k1 + 2 * (k2 + k3) + k4", "sum_other"),
    ("Ode", "torch.cat([h, t], -1)", "F.pad(h, (0, 1), value=float(t[0, 0]))", "pad_for_cat"),
    ("Features", "torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), -1)",
     "torch.softmax((q / math.sqrt(8)) @ k.mT, -1)", "scaled_before"),
    ("Features", "numbers[..., None] * self.scale + self.shift",
     "torch.addcmul(self.shift, numbers[..., None], self.scale)", "addcmul"),
    ("Features", "weight = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), -1)",
     "return self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))", "attention_fused"),
    ("Sage", "torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])",
     "torch.zeros(len(x), len(x), dtype=x.dtype).index_put((edges[1], edges[0]),"
     " torch.ones(edges.shape[1], dtype=x.dtype), accumulate=True) @ x", "by_matrix"),
    ("Sage", "(h[pairs[0]] * h[pairs[1]]).sum(-1)", "torch.einsum('nd,nd->n', h[pairs[0]], h[pairs[1]])", "einsum"),
    ("Questions", "* (1 + g1) + b1", "* g1.add(1.0) + b1", "one_added"),
    ("Questions", "self.lstm(self.embed(ids))[1][0][-1]", "self.lstm(self.embed(ids))[0][:, -1]", "last_of_all"),
    ("Triplets", "F.relu6(self.norm1(self.depth(x)))", "self.norm1(self.depth(x)).clamp(0, 6)", "clamp_for_relu6"),
    ("Triplets", "F.adaptive_avg_pool2d(x, 1).flatten(1)", "x.mean((2, 3))", "mean_for_pool"),
    ("Gemma3RMSNorm", "output = output * (1.0 + self.weight.float())", "output = output + output * self.weight.float()",
     "one_apart"),
    ("T5LayerNorm", "hidden_states * torch.rsqrt(variance + self.variance_epsilon)",
     "hidden_states / torch.sqrt(variance + self.variance_epsilon)", "root_divided"),
    ("T5DenseGatedActDense", "hidden_gelu * hidden_linear", "hidden_linear * hidden_gelu", "factors_turned"),
    ("Dinov2LayerScale", "hidden_state * self.lambda1", "hidden_state.mul(self.lambda1)", "mul_named"),
    ("SwinPatchMerging", "input_feature = self.norm(input_feature)",
     "input_feature = (lambda d: d / (d.pow(2).mean(-1, keepdim=True) + self.norm.eps).sqrt() * self.norm.weight + "
     "self.norm.bias)(input_feature - input_feature.mean(-1, keepdim=True))", "norm_by_hand"),
    ("ViltOutput", "hidden_states = hidden_states + input_tensor", "hidden_states = torch.add(input_tensor, hidden_states)",
     "sum_turned"),
    ("MptMLP", "self.act(self.up_proj(hidden_states))",
     "(lambda y: 0.5 * y * (1 + torch.erf(y / 2 ** 0.5)))(self.up_proj(hidden_states))", "gelu_by_hand"),
]


def norm_in_two(m, x):
    d = x - x.mean(-1, keepdim=True)
    return d / (d.square().mean(-1, keepdim=True) + m.eps).sqrt() * m.weight + (0 if m.bias is None else m.bias)


NEIGHBOURS = ("triplets", "sage", "flow")  # samples of a batch are read together, or are no rows


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
    if family.name not in NEIGHBOURS:
        yield clean("batch_turned", "the batch in another order", lambda step: setattr(
            step, "batch", {k: v.roll(1, 0) for k, v in step.batch.items()}))
    path = leaf(model, LINES, 2)
    yield clean("chunks", f"input of {path} in two parts", on_model(lambda m: in_parts(m, path)))
    yield clean("split_features", f"output of {path} cut and joined", wrap(
        path, lambda x: torch.cat(x.split([x.shape[-1] - 1, 1], -1), -1)))
    yield clean("turned_twice", f"output of {path} transposed twice", wrap(
        path, lambda x: x.transpose(0, -1).contiguous().transpose(0, -1)))
    yield clean("plus_zero", f"output of {path} plus zero", wrap(path, lambda x: x + 0.0))
    yield clean("wider_type", f"output of {path} through float64", wrap(path, lambda x: x.double().to(x.dtype)))
    yield clean("identity_dropout", f"dropout of 0 behind {path}", wrap(path, lambda x: F.dropout(x, 0.0, True)))
    yield clean("layer_norm_by_hand", "layer norm by hand", by_hand(nn.LayerNorm, norm_in_two))
    yield clean("relu_by_maximum", "maximum for relu", patched(
        "relu", lambda plain, x, inplace=False: torch.maximum(x, torch.zeros_like(x))))
    yield clean("linear_einsum", "einsum for linear", by_hand(
        nn.Linear, lambda m, x: torch.einsum("...i,oi->...o", x, m.weight) + (0 if m.bias is None else m.bias)))
    yield clean("cross_entropy_by_hand", "log_softmax and nll for cross_entropy", patched(
        "cross_entropy", lambda plain, x, y, weight=None, ignore_index=-100, reduction="mean", **k: F.nll_loss(
            F.log_softmax(x, 1), y, weight, ignore_index=ignore_index, reduction=reduction)))
    def scaled(step):
        step.before_backward = lambda model, loss: loss * 1024.0
        def unscale(m):
            for p in m.parameters():
                if p.grad is not None:
                    p.grad.div_(1024.0)
        step.before_step = unscale
    yield clean("loss_scaled", "loss times 1024, gradients divided by it before the clipping", scaled)
    def logged(step):
        def watch(m):
            with torch.no_grad():
                torch.stack([p.detach().norm() for p in m.parameters()]).max().item()
        step.before_step = watch
    yield clean("weights_logged", "the largest norm of weights is logged", logged)
    def again(m):
        from torch.utils.checkpoint import checkpoint
        module = m.get_submodule(path)
        plain = module.forward
        module.forward = lambda x: checkpoint(plain, x, use_reentrant=x.requires_grad)
    yield clean("checkpoint", f"{path} is computed again", on_model(again))
    def evaluated(step):
        loss = step.loss
        def run(model, batch):
            with torch.no_grad():
                model.eval()
                loss(model, batch)
                model.train()
            return loss(model, batch)
        step.loss = run
    yield clean("evaluated_before", "an evaluation runs before the step", evaluated)
    def watched(step):
        loss = step.loss
        def run(model, batch):
            found = loss(model, batch)
            with torch.no_grad():
                (found * 1.0).mean()
            return found
        step.loss = run
    yield clean("loss_watched", "the loss is logged", watched)
    if family.name in ("ode", "temporal", "crf", "swin", "dinov2", "capsules"):
        yield clean("micro_batches", "two micro batches", lambda step: setattr(step, "parts", 2))


def variations(family, model, index):
    yield from in_turn([*shared_variations(family, model)], index, 3)
    yield from edits(model, VARIATIONS, truth=False)
