# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the eighth set; see eighth_families.py.

Every family takes a quarter of the general mistakes of its own set, a share of those of all sets before, in
turn, and all edits of its own code and of its own loop.
"""
import copy
import functools

import torch
from torch import nn
import torch.nn.functional as F

import fifth_changes
import fourth_changes
import seventh_changes
import sixth_changes
import unseen_changes
from changes import ANY, Change, anywhere, is_norm, on_model, owners, within
from eighth_families import averaged
from fourth_changes import CLIP
from observed import LINES, Places, is_read, readers, uses
from seventh_changes import loss_around, on_input, unless
from unseen_changes import STEP, adam, by_hand, clean, edits, in_turn, on_batch, patched, weight, wrap


# ---- layers -------------------------------------------------------------------------------------

def lists_of(model):
    """Lists of at least two modules of one kind, as the layers of a network."""
    return [n for n, m in model.named_modules() if isinstance(m, (nn.ModuleList, nn.Sequential)) and len(m) > 1
            and type(m[0]) is type(m[1]) and any(True for _ in m[0].parameters())]


def order_mistakes(places):
    found = lists_of(places.model)
    if not found:
        return
    path = found[0]
    a, b = (within(f"{path}.{i}", direction=ANY, inner=True) for i in (0, 1))
    def exchanged(m):
        layers = m.get_submodule(path)
        layers[0], layers[1] = layers[1], layers[0]
    def shared(m):
        layers = m.get_submodule(path)
        layers[1].load_state_dict(layers[0].state_dict())
    def of_before(m):
        layers = m.get_submodule(path)
        layers[0].load_state_dict(layers[1].state_dict())
    def left_out(m):
        layer = m.get_submodule(path)[1]
        plain = layer.forward
        def run(x, *others, **keys):
            out = plain(x, *others, **keys)
            return (x, *out[1:]) if isinstance(out, tuple) else x + 0 * out
        layer.forward = run
    def twice(m):
        layer = m.get_submodule(path)[0]
        plain = layer.forward
        def run(x, *others, **keys):
            out = plain(x, *others, **keys)
            return plain(out[0] if isinstance(out, tuple) else out, *others, **keys)
        layer.forward = run
    # The order of two layers shows at the first, or where the second reads it.
    yield Change("layers_exchanged", f"layers 0 and 1 of {path} exchanged", on_model(exchanged), a)
    yield Change("layer_copied", f"layer 1 of {path} has the weights of layer 0", on_model(shared), b)
    yield Change("layer_of_next", f"layer 0 of {path} has the weights of layer 1", on_model(of_before), a)
    yield Change("layer_ignored", f"layer 1 of {path} is ignored", on_model(left_out), b + "|" + a + "|" + anywhere("layer_norm"))
    yield Change("layer_twice", f"layer 0 of {path} runs twice", on_model(twice), a)


def value_mistakes(places):
    path = places.line(4)
    inside = within(path)
    def coarse(x):  # 10 bits of mantissa, as of a fast matrix unit
        if x.dtype != torch.float32:
            return x.bfloat16().to(x.dtype)
        return (x.view(torch.int32) & -8192).view(torch.float32) if not x.requires_grad else \
            x + ((x.detach().view(torch.int32) & -8192).view(torch.float32) - x.detach())
    table = [("in_10_bits", "input of {} with 10 bits of mantissa", on_input(path, coarse)),
             ("out_first_zero", "the first sample of {} is zero", wrap(path, lambda x: torch.cat(
                 [torch.zeros_like(x[:1]), x[1:]]))),
             ("out_8_bits", "output of {} in 8 bits", wrap(path, lambda x: x + (
                 (x / (x.abs().max() / 127)).round() * (x.abs().max() / 127) - x).detach())),
             ("out_mean_of_batch", "output of {} mixed over the batch", wrap(path, lambda x: 0.9 * x + 0.1 * x.mean(0, keepdim=True))),
             ("out_nan_kept", "one element of {} is NaN", wrap(path, lambda x: torch.where(
                 torch.arange(x.numel()).view(x.shape) == 5, float("nan"), x))),
             ("out_saturated", "output of {} cut at 1", wrap(path, lambda x: x.clamp(max=1.0))),
             ("out_absolute", "output of {} without signs", wrap(path, torch.abs)),
             ("out_scale_of_heads", "half of the channels of {} scaled", wrap(path, lambda x: torch.cat(
                 [x[..., :x.shape[-1] // 2] * 1.1, x[..., x.shape[-1] // 2:]], -1)))]
    for name, why, apply in table:
        yield Change(name, why.format(path), apply, inside)


def weight_mistakes(places):
    model = places.model
    path = places.line(5)
    here = owners(model, path)
    rows = len(model.get_submodule(path).weight)
    if rows % 2 == 0:
        yield Change("weight_halves", f"halves of {path} exchanged", weight(
            path, lambda w: torch.cat([w[rows // 2:], w[:rows // 2]])), here)
        yield Change("weight_shard_twice", f"the first shard of {path} loaded twice", weight(
            path, lambda w: torch.cat([w[:rows // 2]] * 2)), here)
    yield Change("weight_tail_unloaded", f"the last rows of {path} are zero", weight(
        path, lambda w: torch.cat([w[:-1], torch.zeros_like(w[-1:])]) if rows > 1 else w * 0.5), here)
    yield Change("weight_4_bits", f"{path} in 4 bits", weight(
        path, lambda w: (w / (w.abs().max() / 7)).round() * (w.abs().max() / 7)), here)
    yield Change("weight_last_step", f"{path} one step too old", weight(path, lambda w: w + 1e-3 * torch.sign(w)), here)
    if model.get_submodule(path).bias is not None:
        def spoiled(m):
            m.get_submodule(path).bias.data.mul_(2.0)
        yield Change("bias_doubled", f"bias of {path} doubled", on_model(spoiled), here)
    norm = places.norm(3)
    if norm:
        eps = next((k for k in ("eps", "variance_epsilon") if hasattr(model.get_submodule(norm), k)), None)
        if eps:
            yield Change("norm_eps_3", f"eps of {norm} is 1e-3", on_model(
                lambda m: setattr(m.get_submodule(norm), eps, 1e-3)), within(norm))
        yield Change("norm_scaled_twice", f"{norm} scaled twice", weight(norm, lambda w: w * w.abs().mean() * 1.3), owners(model, norm))


# ---- functions of torch ---------------------------------------------------------------------------

def function_mistakes(places):
    family, model = places.family, places.model
    def uses_with(name):
        return uses(family, model, name)
    if uses_with("softmax"):
        def half(plain, x, *a, **k):
            return plain(x.bfloat16(), -1).to(x.dtype)
        yield Change("softmax_bf16", "softmax in bf16", patched("softmax", half), anywhere("softmax|bfloat16|to"))
        yield Change("softmax_tempered", "softmax of scores / 1.2", patched(
            "softmax", lambda plain, x, *a, **k: plain(x / 1.2, *a, **k)), anywhere("softmax|__truediv__"))
    if uses_with("gelu"):
        yield Change("gelu_tanh", "gelu by tanh, or by erf", patched("gelu", lambda plain, x, approximate="none": plain(
            x, approximate="tanh" if approximate == "none" else "none")), anywhere("gelu"))
    if uses_with("silu"):
        yield Change("gelu_for_silu", "gelu for silu", patched("silu", lambda plain, x, inplace=False: F.gelu(x)), anywhere("gelu|silu"))
    if uses_with("relu"):
        yield Change("relu_leaks", "relu leaks", patched("relu", lambda plain, x, inplace=False: F.leaky_relu(x, 0.01)),
                     anywhere(r"leaky_relu|relu_?"))
    if uses_with("layer_norm"):
        yield Change("layer_norm_half", "layer norm in half precision", patched("layer_norm", lambda plain, x, shape, w=None, b=None, *a, **k: plain(
            x.half(), shape, None if w is None else w.half(), None if b is None else b.half(), *a, **k).to(x.dtype)),
            anywhere("layer_norm|half|to"))
    if uses_with("batch_norm"):
        def frozen(plain, x, mean, var, w=None, b=None, training=False, *a, **k):
            return plain(x, mean, var, w, b, False, *a, **k) if mean is not None else plain(x, mean, var, w, b, training, *a, **k)
        yield Change("batch_norms_eval", "all batch norms in evaluation", patched("batch_norm", frozen), anywhere("batch_norm"))


# ---- gradients, losses, data, updates --------------------------------------------------------------

def gradient_mistakes(places):
    path = places.line(2)
    model = places.model
    after = anywhere(CLIP, ANY)
    def no_grad(m):
        module = m.get_submodule(path)
        plain = module.forward
        def run(*a, **k):
            with torch.no_grad():
                return plain(*a, **k)
        module.forward = run
    yield Change("no_grad", f"{path} without gradients", on_model(no_grad), within(path, direction=ANY), "gradient")
    def reversed_gradient(x):
        class Turn(torch.autograd.Function):
            @staticmethod
            def forward(ctx, y):
                return y.view_as(y)
            @staticmethod
            def backward(ctx, g):
                return -0.5 * g
        return Turn.apply(x)
    yield Change("backward_wrong", f"own backward behind {path} is wrong", wrap(path, reversed_gradient),
                 within(path, direction=ANY), "gradient")
    def bias_only(m):
        module = m.get_submodule(path)
        if module.bias is None:
            raise ValueError("no bias")
        module.bias.requires_grad_(False)
    yield Change("bias_frozen", f"bias of {path} frozen", on_model(bias_only), owners(model, path) + "|" + after, "gradient")
    def first_layers(m):
        found = lists_of(m)
        for p in m.get_submodule(found[0])[0].parameters():
            p.requires_grad_(False)
    if lists_of(model):
        yield Change("layer_frozen", "the first layer is frozen", on_model(first_layers), within(
            lists_of(model)[0] + ".0", direction=ANY, inner=True), "gradient")
    def one_nan(m):
        m.get_submodule(path).weight.register_hook(lambda g: g.index_fill(0, torch.tensor([0]), float("inf")))
    yield Change("gradient_inf", f"a row of {path}'s gradient is infinite", on_model(one_nan), owners(model, path) + "|" + after, "gradient")


def loss_mistakes(places):
    family, model = places.family, places.model
    def after(function):
        return lambda step: setattr(step, "before_backward", function)
    outside = seventh_changes.OUTSIDE
    yield unless(True, Change("loss_half_precision", "loss in half precision, whose gradient is one", after(
        lambda m, x: x.half().float()), "", "loss"))
    yield Change("loss_of_ranks", "loss divided by 4 ranks", after(lambda m, x: x / 4), anywhere(outside, ANY), "loss")
    yield Change("loss_decay", "decay of weights in the loss", after(
        lambda m, x: x + 0.005 * sum((p ** 2).sum() for p in m.parameters() if p.requires_grad)), anywhere(outside + "|__pow__", ANY), "loss")
    names = r"cross_entropy|nll_loss|log_softmax|__r?truediv__|__r?mul__|sum|mean|to|logsumexp|clamp|where|__getitem__|exp|__r?sub__|pow|float|__pow__"
    if uses(family, model, "cross_entropy"):
        for name, why, function in (
                ("smoothed", "labels smoothed by 0.05 more", lambda plain, x, y, **k: plain(x, y, **{**k, "label_smoothing": k.get("label_smoothing", 0.0) + 0.05})),
                ("per_sample", "divided by the batch twice", lambda plain, x, y, **k: plain(x, y, **k) / len(x)),
                ("capped", "logits capped at 2", lambda plain, x, y, **k: plain(x.clamp(-2, 2), y, **k)),
                ("soft_capped", "logits through tanh", lambda plain, x, y, **k: plain(torch.tanh(x / 5) * 5, y, **k)),
                ("focal", "focal loss", lambda plain, x, y, **k: (lambda z: ((1 - torch.exp(-z)) ** 2 * z).mean())(
                    plain(x, y, **{**k, "reduction": "none"})))):
            yield Change("loss_" + name, why, patched("cross_entropy", function), anywhere(names + "|tanh", ANY), "loss")


def data_mistakes(places):
    family, model = places.family, places.model
    batch = family.batch()
    for key in ("input_ids", "pixel_values", "kinds"):
        if key not in batch:
            continue
        truth, x = readers(family, model, key), batch[key]
        yield Change("sample_twice_" + key, "one sample is there twice", on_batch(key, lambda x: torch.cat([x[:1], x[:1], x[2:]])), truth, "data")
        if x.is_floating_point():
            yield Change("data_deviation", "normalised with another deviation", on_batch(key, lambda x: x / 0.9), truth, "data")
            yield Change("data_mean", "normalised with another mean", on_batch(key, lambda x: x - 0.05), truth, "data")
            yield Change("data_8_bits", "data in 8 bits", on_batch(key, lambda x: (x / x.abs().max() * 127).round() * x.abs().max() / 127), truth, "data")
            yield Change("data_nan", "one value of the data is NaN", on_batch(key, lambda x: x.index_put(
                tuple(torch.tensor([0]) for _ in x.shape), torch.tensor(float("nan")))), truth, "data")
        elif x.ndim == 2 and x.shape[1] > 2:
            yield Change("ids_begun_twice", "two ids of a beginning", on_batch(key, lambda x: torch.cat(
                [torch.full_like(x[:, :1], 1), x[:, :-1]], 1)), truth, "data")
            yield Change("ids_low_bits", "ids stored in 6 bits", on_batch(key, lambda x: x % 64), truth, "data")
    labels = family.labels
    truth = readers(family, model, labels)
    y = batch[labels]
    if y.is_floating_point():
        yield Change("labels_doubled", "labels doubled", on_batch(labels, lambda y: y * 2), truth, "data")
        yield Change("labels_normed", "labels normalised", on_batch(labels, lambda y: (y - y.mean()) / (y.std() + 1e-6)), truth, "data")
    else:
        yield Change("labels_of_padding", "labels of ignored places are 0", on_batch(
            labels, lambda y: torch.where(y < 0, 0, y)) if (y < 0).any() else on_batch(labels, lambda y: y * 0), truth, "data")
    if "attention_mask" in batch and is_read(family, model, "attention_mask"):
        inside = r"^[A-Za-z]+\.\w+\.\d+\.forward @ (?!.*(?:mlp|ffn|fc|intermediate|dense))|^Module\.\S+\.forward\.\d+ @ "
        yield Change("mask_inverted", "mask inverted", on_batch("attention_mask", lambda m: 1 - m), inside, "data")
        yield Change("mask_left", "mask of padding on the left", on_batch("attention_mask", lambda m: m.flip(1)), inside, "data")


def update_mistakes():
    def resumed(count=0, moments=False):
        def apply(step):
            make = step.optimizer
            def loaded(p):
                optimizer = make(p)
                g = torch.Generator().manual_seed(21)
                for group in optimizer.param_groups:
                    for x in group["params"]:
                        state = optimizer.state[x]
                        state["step"] = torch.tensor(float(count))
                        state["exp_avg"] = 0.01 * torch.randn(x.shape, generator=g) if moments else torch.zeros_like(x)
                        state["exp_avg_sq"] = torch.full_like(x, 1e-4) if moments else torch.zeros_like(x)
                return optimizer
            step.optimizer = loaded
        return apply
    yield Change("resumed_late", "the count of steps begins at 9", resumed(9), STEP.format(r"\w+"), "update")
    yield Change("moments_left", "moments of another run", resumed(0, True), STEP.format(r"\w+"), "update")
    def cleared(step):
        def run(m):
            for p in m.parameters():
                if p.grad is not None:
                    p.grad = torch.zeros_like(p.grad)
        step.before_step = run
    yield Change("cleared_early", "gradients cleared before the step", cleared, anywhere(CLIP + "|zeros_like", ANY), "gradient")
    def late(step):
        clip, step.clip = step.clip, 0
        step.after_step = lambda m, optimizer: torch.nn.utils.clip_grad_norm_(m.parameters(), clip)
    yield Change("clipped_late", "clipped after the step", late, anywhere(CLIP) + "|" + STEP.format("lerp_|mul_|addcdiv_|addcmul_"), "update")
    def copies(step):
        make = step.optimizer
        step.optimizer = lambda p: make([nn.Parameter(x.detach().clone()) for x in p])
    yield Change("copies_updated", "copies of the parameters are updated", copies, STEP.format(r"\w+"), "update")
    def rates(step):
        step.optimizer = lambda p: torch.optim.AdamW(
            [{"params": [x for x in p if x.ndim > 1]}, {"params": [x for x in p if x.ndim < 2], "lr": 2e-3}],
            lr=1e-3, weight_decay=0.01, foreach=False)
    yield Change("lr_of_vectors", "twice the rate for biases and norms", rates, STEP.format(r"mul_|addcdiv_|\w+"), "update")
    yield Change("lr_percent", "rate one percent too large", adam(lr=1.01e-3), STEP.format("mul_|addcdiv_"), "update")
    yield Change("beta2_large", "beta2 0.9999", adam(betas=(0.9, 0.9999)), STEP.format(r"addcmul_|mul_|\w+"), "update")
    yield Change("eps_7", "eps 1e-5", adam(eps=1e-5), STEP.format("add_|addcdiv_|__iadd__"), "update")
    def again(step):
        step.after_step = lambda m, optimizer: optimizer.step()
    yield Change("stepped_again", "a hook steps again", again, STEP.format(r"\w+"), "update")
    def pulled(step):
        def run(m, optimizer):
            with torch.no_grad():
                for p in m.parameters():
                    p.mul_(0.99)
        step.after_step = run
    yield Change("decayed_after", "weights decay after the step again", pulled, STEP.format(r"mul_|\w+"), "update")


# ---- mistakes of one loop ---------------------------------------------------------------------------

def sgd(**keys):
    base = {"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True, "foreach": False}
    def apply(step):
        step.optimizer = lambda p: torch.optim.SGD(p, **{**base, **keys})
    return apply


def loop_mistakes(family):
    def change(name, why, apply, truth=STEP.format(r"\w+")):
        return Change(name, why, apply, truth, "update")
    if family.name == "qat":
        yield change("nesterov_off", "momentum without Nesterov's", sgd(nesterov=False))
        yield change("momentum_off", "no momentum", sgd(nesterov=False, momentum=0.0))
        yield change("sgd_decay", "ten times the decay", sgd(weight_decay=5e-3))
        yield change("sgd_rate", "half the rate", sgd(lr=0.025))
    if family.name in ("kan", "din"):
        yield change("average_fast", "average follows faster", lambda step: averaged(step, 0.99))
        def early(step):
            follow = step.after_step
            step.after_step = lambda m, o: None
            step.before_step = lambda m: follow(m, None)
        yield change("average_early", "average before the step", early, STEP.format(r"\w+") + "|" + anywhere(CLIP))
    if family.name in ("nbeats", "mdn"):
        def undivided(step):
            step.parts = 2
            step.before_backward = lambda m, loss: loss * 2
        yield change("parts_undivided", "parts not divided by their count", undivided, anywhere(seventh_changes.OUTSIDE, ANY))
        def last(step):
            step.before_backward = lambda m, loss: ([setattr(p, "grad", None) for p in m.parameters()], loss)[1]
        yield change("parts_lost", "gradients of the first part are lost", last, anywhere(CLIP, ANY) + r"|parameters_grad(?:\.\d+)? @")
        def same(step):
            step.batch = {k: torch.cat([v[:len(v) // 2]] * 2) for k, v in step.batch.items()}
        yield change("part_twice", "the first part is read twice", same, readers(family, family.make(), "pixel_values")
                     + "|" + readers(family, family.make(), "labels"))


# ---- mistakes of one family -------------------------------------------------------------------------

EDITS = [
    ("NemotronLayerNorm1P", "self.weight + 1.0", "self.weight", "one_missing", r"__r?add__|layer_norm|\w+"),
    ("NemotronMLP", "self.act_fn(self.up_proj(x))", "torch.relu(self.up_proj(x))", "square_missing", r"relu|square|pow|\w+"),
    ("NemotronDecoderLayer", "hidden_states = residual + hidden_states", "hidden_states = residual - hidden_states", "residual_subtracted",
     r"__add__|__sub__"),
    ("Glm4MLP", "gate, up_states = up_states.chunk(2, dim=-1)", "up_states, gate = up_states.chunk(2, dim=-1)", "gate_and_up", r"chunk|silu|__mul__"),
    ("Glm4DecoderLayer", "hidden_states = self.post_mlp_layernorm(hidden_states)", "pass", "post_norm_missing", r"\w+"),
    ("DiffLlamaAttention", "attn_output1 - lambda_full * attn_output2", "attn_output1 + lambda_full * attn_output2", "difference_added",
     r"__sub__|__add__"),
    ("DiffLlamaAttention", "lambda_1 - lambda_2 + self.lambda_init", "lambda_1 - lambda_2", "lambda_init_missing", r"__add__|__sub__|__mul__"),
    ("DiffLlamaAttention", "(1 - self.lambda_init) *", "1 *", "factor_missing", r"__r?mul__"),
    ("Lfm2ShortConv", "y = C * hidden_states", "y = hidden_states", "gate_missing", r"__mul__|transpose"),
    ("Lfm2ShortConv", "B, C, x = BCx", "C, B, x = BCx", "gates_exchanged", r"chunk|__mul__"),
    ("Lfm2MLP", "F.silu(self.w1(x)) * self.w3(x)", "F.silu(self.w3(x)) * self.w1(x)", "gate_and_up", r"linear|silu|__mul__"),
    ("DeepseekV2Attention", "self.kv_a_layernorm(kv_nope)", "kv_nope", "latent_not_normed", r"\w+"),
    ("DeepseekV2Moe", "hidden_states = hidden_states + self.shared_experts(residuals)", "hidden_states = hidden_states", "shared_missing",
     r"__add__|\w+"),
    ("DeepseekV2TopkRouter", "scores = router_logits.softmax(dim=-1, dtype=torch.float32)", "scores = router_logits.sigmoid()", "sigmoid_router",
     r"softmax|sigmoid"),
    ("ModernBertMLP", "self.act(input) * gate", "self.act(gate) * input", "gate_exchanged", r"\w*gelu|chunk|__mul__"),
    ("ModernBertAttention", "scaling=self.head_dim**-0.5", "scaling=1.0 / self.head_dim", "scale_of_scores", r"__mul__|mul"),
    ("ModernBertAttention", "query_states, key_states, value_states = qkv.unbind(dim=-3)", "key_states, query_states, value_states = qkv.unbind(dim=-3)",
     "query_and_key", r"unbind|transpose|__mul__|\w+"),
    ("ModernBertEncoderLayer", "self.mlp(self.mlp_norm(hidden_states))", "self.mlp(hidden_states)", "norm_missing", r"\w+"),
    ("MPNetSelfAttention", "attention_scores += position_bias", "attention_scores = attention_scores", "positions_missing", r"__i?add__|softmax"),
    ("MPNetSelfAttention", "/ math.sqrt(self.attention_head_size)", "/ self.attention_head_size", "scale_of_scores", "__truediv__"),
    ("MPNetOutput", "self.LayerNorm(hidden_states + input_tensor)", "self.LayerNorm(hidden_states) + input_tensor", "norm_before_sum",
     "__add__|layer_norm"),
    ("MPNetIntermediate", "hidden_states = self.intermediate_act_fn(hidden_states)", "hidden_states = torch.tanh(hidden_states)", "tanh_for_gelu",
     "gelu|tanh"),
    ("ConvBertSelfAttention", "torch.multiply(mixed_key_conv_attn_layer, mixed_query_layer)", "mixed_key_conv_attn_layer", "product_missing",
     r"multiply|mul|linear"),
    ("ConvBertSelfAttention", "torch.softmax(conv_kernel_layer, dim=1)", "torch.softmax(conv_kernel_layer, dim=0)", "softmax_axis", "softmax"),
    ("MarianEncoderLayer", "self.activation_fn(self.fc1(hidden_states))", "torch.relu(self.fc1(hidden_states))", "relu_for_swish", "silu|relu"),
    ("MarianEncoderLayer", "hidden_states = self.self_attn_layer_norm(hidden_states)", "pass", "norm_missing", r"\w+"),
    ("MarianDecoderLayer", "hidden_states = self.final_layer_norm(hidden_states)", "hidden_states = self.self_attn_layer_norm(hidden_states)",
     "norm_of_other", "layer_norm"),
    ("Swinv2SelfAttention", "max=math.log(1.0 / 0.01)", "max=0.5", "scale_clamped", r"clamp|exp|__mul__"),
    ("Swinv2SelfAttention", "16 * torch.sigmoid(relative_position_bias)", "torch.sigmoid(relative_position_bias)", "bias_factor", r"__r?mul__|sigmoid"),
    ("Swinv2Layer", "hidden_states = self.layernorm_before(attention_windows)", "hidden_states = attention_windows", "norm_missing", r"\w+"),
    ("ConvNextV2GRN", "global_features.mean(dim=-1, keepdim=True)", "global_features.sum(dim=-1, keepdim=True)", "sum_for_mean", "mean|sum"),
    ("ConvNextV2GRN", "+ self.bias + hidden_states", "+ self.bias", "grn_residual_missing", "__add__"),
    ("ConvNextV2Layer", "features = residual + self.drop_path(features)", "features = self.drop_path(features)", "residual_missing", r"__add__|\w+"),
    ("PoolFormerPooling", "self.pool(hidden_states) - hidden_states", "self.pool(hidden_states)", "input_not_subtracted", r"__sub__|avg_pool2d"),
    ("PoolFormerLayer", "self.layer_scale_2.unsqueeze(-1)", "self.layer_scale_1.unsqueeze(-1)", "scale_of_other", r"unsqueeze|__mul__"),
    ("CvtSelfAttention", "* self.scale", "", "scale_missing", r"__mul__|einsum"),
    ("CvtLayer", "hidden_state = attention_output + hidden_state", "hidden_state = attention_output", "residual_missing", r"__add__|layer_norm|\w+"),
    ("CvtSelfAttention", "self.convolution_projection_value(hidden_state)", "self.convolution_projection_key(hidden_state)", "value_of_keys",
     r"\w+"),
    ("FocalNetModulation", "x_out = q * modulator", "x_out = modulator", "query_missing", r"__mul__|permute|conv2d"),
    ("FocalNetModulation", "ctx_all = ctx_all + ctx_global * gates[:, self.focal_level :]", "pass", "global_missing", r"\w+"),
    ("FocalNetLayer", "self.gamma_1 * hidden_state", "hidden_state", "scale_missing", r"__mul__|__add__"),
    ("FluxTransformerBlock", "(1 + scale_mlp[:, None])", "scale_mlp[:, None]", "one_missing", r"__r?add__|__mul__"),
    ("FluxTransformerBlock", "ff_output = gate_mlp.unsqueeze(1) * ff_output", "pass", "gate_missing", r"__mul__|unsqueeze|__add__"),
    ("FluxSingleTransformerBlock", "torch.cat([attn_output, mlp_hidden_states], dim=2)", "torch.cat([mlp_hidden_states, attn_output], dim=2)",
     "cat_order", "cat"),
    ("ResnetBlock2D", "hidden_states = hidden_states + temb", "hidden_states = hidden_states", "time_missing", r"__add__|group_norm|linear|\w+"),
    ("ResnetBlock2D", "/ self.output_scale_factor", "/ 1.4142", "scale_of_output", "__truediv__"),
    ("NormFreeBlock", "out = self.act1(x) * self.beta", "out = self.act1(x)", "beta_missing", r"__mul__|silu|\w+"),
    ("NormFreeBlock", "out = self.attn_gain * self.attn_last(out)", "out = self.attn_last(out)", "gain_missing", r"__r?mul__|__mul__"),
    ("ScaledStdConv2d", "(self.gain * self.scale)", "self.gain", "scale_missing", r"__mul__|view|batch_norm"),
    ("SqueezeExcite", "x * self.gate(x_se)", "x * x_se", "gate_missing", r"sigmoid|__mul__|\w+"),
    ("InvertedResidual", "out = channel_shuffle(out, 2)", "out = channel_shuffle(out, 4)", "groups_of_shuffle", r"view|transpose|contiguous|\w+"),
    ("Adapted", "* self.scale", "* (self.scale / 2)", "alpha_halved", r"__mul__"),
    ("Adapted", "self.base(x) + self.up(", "self.base(self.drop(x)).detach() + self.up(", "base_detached", r"detach|__add__|linear"),
    ("AdaptedLayer", ".permute(2, 0, 3, 1, 4)", ".permute(2, 0, 3, 1, 4).flip(0)", "value_and_query", r"permute|flip|unbind|\w+"),
    ("AdaptedLayer", "/ math.sqrt(d // 4)", "/ math.sqrt(d)", "scale_of_scores", "__truediv__"),
    ("AdaptedLayer", ".triu(1)", ".triu(2)", "mask_by_one", "triu|masked_fill"),
    ("AdaptedLayer", "return x + self.fc2(", "return self.norm2(x) + self.fc2(", "residual_normed", r"__add__"),
    ("Tuned", "self.place(torch.arange(ids.shape[1]))", "self.place(torch.arange(ids.shape[1]) + 1)", "places_by_one", r"__add__|embedding|arange"),
    ("Tuned", "self.head(self.norm(x))", "self.head(x)", "norm_missing", r"layer_norm|linear"),
    ("Coarse", "- 1)\n", "- 1) * 1.1\n", "step_too_large", r"__r?truediv__|__r?mul__"),
    ("Coarse", "- x).detach()", "- x)", "not_straight_through", r"detach|__add__|__sub__|__mul__"),
    ("CoarseNet", "+ self.short(x)", "", "shortcut_missing", r"__add__|adaptive_avg_pool2d|conv2d"),
    ("CoarseNet", "F.adaptive_avg_pool2d(y, 1)", "F.adaptive_max_pool2d(y, 1)", "max_for_mean", r"adaptive_\w+|boolean_dispatch"),
    ("Spline", "/ 0.8", "/ 0.7", "width_of_bumps", "__truediv__"),
    ("Spline", "self.base(F.silu(x))", "self.base(x)", "silu_missing", "silu|linear"),
    ("Doubled", "self.back(h) @ self.waves[:, :self.past]", "self.back(h) @ self.waves[:, -self.past:]", "waves_of_future", r"__getitem__|matmul|__matmul__"),
    ("Forecaster", "rest, made = rest - back, made + ahead", "rest, made = rest, made + ahead", "backcast_ignored", r"__sub__|linear|\w+"),
    ("Forecaster", "return made + level", "return made", "level_missing", r"__add__|\w+"),
    ("Passing", "* fade[:, None]", "", "fade_missing", r"__mul__|__getitem__"),
    ("Passing", "index_add(0, edges[0], sent)", "index_add(0, edges[1], sent)", "edges_turned", r"index_add|__getitem__"),
    ("Passing", "F.softplus(self.leave(got)) - math.log(2.0)", "F.softplus(self.leave(got))", "shift_missing", r"__sub__|softplus|linear"),
    ("Molecule", "energy, -slope", "energy, slope", "sign_of_force", r"neg|__neg__|mse_loss|\w+"),
    ("Molecule", "-4.0 * (length[:, None]", "-3.0 * (length[:, None]", "width_of_bumps", "__r?mul__"),
    ("Molecule", "(torch.cos(length * math.pi / 5.0) + 1.0)", "(torch.cos(length * math.pi / 4.0) + 1.0)", "range_of_fade", "__truediv__"),
    ("Wide", "x = x + self.a(F.leaky_relu(x, 0.1))", "x = x + self.a(F.leaky_relu(x))", "slope", "leaky_relu"),
    ("Vocoder", "(self.wide1(x) + self.wide2(x)) / 2", "self.wide2(self.wide1(x))", "one_by_one", r"\w+"),
    ("Vocoder", "torch.tanh(self.leave(F.leaky_relu(x, 0.1)))", "self.leave(F.leaky_relu(x, 0.1))", "tanh_missing", r"tanh|__getitem__|conv1d"),
    ("Interests", "wide - past, wide * past", "wide * past, wide - past", "order_of_features", r"cat|__sub__|__mul__"),
    ("Interests", "torch.where(mask, score", "torch.where(mask | True, score", "mask_ignored", r"where|__or__|bitwise_or"),
    ("Interests", "/ past.shape[-1] ** 0.5", "", "scale_of_scores", r"__truediv__|where"),
    ("Interests", "share * x + (1 - share) * self.slope * x", "share * x", "slope_missing", r"__mul__|__add__|__r?sub__"),
    ("Densities", "F.log_softmax(share, -1)", "share", "shares_not_normed", r"log_softmax|__add__"),
    ("Densities", "- 0.5 * left.log()", "+ 0.5 * left.log()", "sign_of_determinant", r"__sub__|__add__"),
    ("Densities", "torch.tanh(self.enter(x))", "torch.relu(self.enter(x))", "relu_for_tanh", "tanh|relu"),
    ("Densities", "- width.log().sum(-2)", "- width.log().mean(-2)", "mean_for_sum", "sum|mean"),
]

FUNCTIONS = [
    ("NemotronAttention", "apply_rotary_pos_emb", "rotate_half(k)", "k.flip(-1)", "rope_of_keys", r"cat|neg|__neg__|flip|__mul__|__getitem__"),
    ("Glm4Attention", "rotate_half", "x[..., 0::2]", "x[..., 1::2]", "rope_same_half", r"__getitem__|stack|neg|__neg__"),
    ("DiffLlamaAttention", "eager_attention_forward", "* scaling", "* scaling * 0.8", "scale_of_scores", "__mul__"),
    ("Lfm2Attention", "rotate_half", "torch.cat((-x2, x1), dim=-1)", "torch.cat((x2, -x1), dim=-1)", "rope_turned", r"cat|neg|__neg__"),
    ("ModernBertAttention", "eager_attention_forward", "dim=-1, dtype=torch.float32", "dim=-2, dtype=torch.float32", "softmax_axis", "softmax"),
    ("MarianAttention", "eager_attention_forward", "attn_weights = attn_weights + attention_mask", "pass", "mask_missing", r"__add__|softmax"),
]


def general_of(module, family, model):
    """General mistakes of an earlier set, without its edits."""
    names = [n for n in dir(module) if n.endswith("_mistakes") and getattr(module, n).__module__ == module.__name__]
    for name in sorted(names):
        function = getattr(module, name)
        wanted = list(function.__code__.co_varnames[:function.__code__.co_argcount])
        given = {"family": family, "model": model, "places": Places(family, model)}
        try:
            yield from function(*(given[w] for w in wanted))
        except Exception:  # a mistake of a kind that this family does not have
            continue


# Mistakes and variations that change nothing in a family, or in a variation too much: no time embedding is above
# 1, a normalization behind the product undoes it, a loss of norms is no mean over samples.
VOID = {("unet2d", "out_saturated"), ("convnextv2", "old_out_scaled_2pc"), ("din", "out_absolute"),
        ("schnet", "sample_twice_kinds"), ("vocoder", "micro_batches")}


def widen(change, family, model):
    """Adds to the truth of an earlier set's mistake what reads it in this family."""
    keys = [k for k in family.batch() if k != family.labels]
    if change.group == "data":
        change.truth += "".join("|" + readers(family, model, k) for k in (
            [family.labels] if change.name.startswith("label") else keys))
    if family.name == "qat":  # parents read the weights; the step begins with a sum
        change.truth += r"|^Tensor\.abs\.\d+\.forward @ (?:stem|mid|deep)$" if change.name.startswith("weight") else ""
        change.truth += "|" + STEP.format("add") if change.group == "gradient" else ""
    return change


def faults(family, model, index):
    places = Places(family, model)
    general = [*order_mistakes(places), *update_mistakes(), *value_mistakes(places), *gradient_mistakes(places),
               *weight_mistakes(places), *loss_mistakes(places), *function_mistakes(places), *data_mistakes(places)]
    plain = family.loop.__name__ == "<lambda>"
    def fits(change):
        return (not getattr(change, "void", False) and (plain or change.group != "update")
                and (family.name, change.name) not in VOID)
    yield from filter(fits, in_turn(general, index, 6))
    before = [c for m in (unseen_changes, fourth_changes, fifth_changes, sixth_changes, seventh_changes)
              for c in general_of(m, family, model)]
    for change in in_turn(before, index, 28):
        change = widen(change, family, model)
        change.name = "old_" + change.name
        if fits(change):
            yield change
    yield from loop_mistakes(family)
    yield from edits(model, EDITS)
    table = seventh_changes.FUNCTIONS
    seventh_changes.FUNCTIONS = FUNCTIONS
    yield from seventh_changes.function_edits(model)
    seventh_changes.FUNCTIONS = table


# ---- changes that are no mistakes ---------------------------------------------------------------------

VARIATIONS = [
    ("NemotronLayerNorm1P", "self.weight + 1.0", "1.0 + self.weight", "sum_turned"),
    ("NemotronMLP", "self.act_fn(self.up_proj(x))", "torch.relu(self.up_proj(x)).pow(2)", "pow_for_square"),
    ("Glm4MLP", "gate, up_states = up_states.chunk(2, dim=-1)", "gate, up_states = up_states.split(up_states.shape[-1] // 2, dim=-1)", "split_for_chunk"),
    ("DiffLlamaAttention", "(1 - self.lambda_init) * self.groupnorm(attn_output)", "self.groupnorm(attn_output) * (1 - self.lambda_init)", "factors_turned"),
    ("Lfm2MLP", "F.silu(self.w1(x)) * self.w3(x)", "self.w3(x) * F.silu(self.w1(x))", "factors_turned"),
    ("DeepseekV2Moe", "hidden_states = hidden_states + self.shared_experts(residuals)", "hidden_states = self.shared_experts(residuals) + hidden_states",
     "shared_first"),
    ("ModernBertMLP", "input, gate = self.Wi(hidden_states).chunk(2, dim=-1)",
     "input, gate = (F.linear(hidden_states, w) for w in self.Wi.weight.chunk(2))", "gate_apart"),
    ("MPNetSelfAttention", "attention_scores += position_bias", "attention_scores = position_bias + attention_scores", "bias_first"),
    ("MPNetSelfAttention", "attention_scores / math.sqrt(self.attention_head_size)", "attention_scores * self.attention_head_size ** -0.5", "product_for_quotient"),
    ("ConvBertSelfAttention", "torch.multiply(mixed_key_conv_attn_layer, mixed_query_layer)", "mixed_query_layer * mixed_key_conv_attn_layer", "product_turned"),
    ("MarianEncoderLayer", "hidden_states = residual + hidden_states", "hidden_states = hidden_states.add(residual)", "sum_turned"),
    ("Swinv2SelfAttention", "16 * torch.sigmoid(relative_position_bias)", "8 * (1 + torch.tanh(0.5 * relative_position_bias))", "sigmoid_by_tanh"),
    ("ConvNextV2GRN", "torch.linalg.vector_norm(hidden_states, ord=2, dim=(1, 2), keepdim=True)",
     "hidden_states.square().sum((1, 2), keepdim=True).sqrt()", "norm_by_hand"),
    ("PoolFormerPooling", "self.pool(hidden_states) - hidden_states", "torch.sub(self.pool(hidden_states), hidden_states)", "sub_named"),
    ("CvtSelfAttention", 'torch.einsum("bhlk,bhtk->bhlt", [query, key]) * self.scale', "(query * self.scale) @ key.transpose(-1, -2)", "matmul_for_einsum"),
    ("FocalNetModulation", "ctx.mean(2, keepdim=True).mean(3, keepdim=True)", "ctx.mean((2, 3), keepdim=True)", "one_mean"),
    ("FluxTransformerBlock", "norm_hidden_states * (1 + scale_mlp[:, None]) + shift_mlp[:, None]",
     "norm_hidden_states + norm_hidden_states * scale_mlp[:, None] + shift_mlp[:, None]", "multiplied_out"),
    ("ResnetBlock2D", "hidden_states = hidden_states + temb", "hidden_states = temb + hidden_states", "sum_turned"),
    ("NormFreeBlock", "out = out * self.alpha + shortcut", "out = torch.add(shortcut, out, alpha=self.alpha)", "alpha"),
    ("SqueezeExcite", "x.mean((2, 3), keepdim=True)", "F.adaptive_avg_pool2d(x, 1)", "pool_for_mean"),
    ("InvertedResidual", "x1, x2 = x.chunk(2, dim=1)", "x1, x2 = x[:, :x.shape[1] // 2], x[:, x.shape[1] // 2:]", "slices_for_chunk"),
    ("Adapted", "self.base(x) + self.up(self.down(self.drop(x))) * self.scale",
     "F.linear(x, self.base.weight + self.scale * self.up.weight @ self.down.weight, self.base.bias)", "merged"),
    ("AdaptedLayer", "F.gelu(self.fc1(self.norm2(x)), approximate=\"tanh\")",
     "(lambda y: 0.5 * y * (1 + torch.tanh(0.7978845608028654 * (y + 0.044715 * y ** 3))))(self.fc1(self.norm2(x)))", "gelu_by_hand"),
    ("AdaptedLayer", "score.masked_fill(hidden, float(\"-inf\")).softmax(-1)", "(score + torch.zeros(n, n).masked_fill(hidden, -3e38)).softmax(-1)", "mask_added"),
    ("CoarseNet", "F.adaptive_avg_pool2d(y, 1).flatten(1)", "y.mean((2, 3))", "mean_for_pool"),
    ("Spline", "torch.exp(-((self.norm(x)[..., None] - self.knots) / 0.8) ** 2)", "(-((self.norm(x)[..., None] - self.knots) / 0.8).square()).exp()", "squared"),
    ("Doubled", "self.ahead(h) @ self.waves[:, self.past:]", "torch.einsum(\"bk,kt->bt\", self.ahead(h), self.waves[:, self.past:])", "einsum"),
    ("Passing", "torch.zeros_like(x).index_add(0, edges[0], sent)", "torch.zeros_like(x).scatter_add(0, edges[0][:, None].expand_as(sent), sent)", "scatter"),
    ("Passing", "F.softplus(self.leave(got)) - math.log(2.0)", "torch.log(0.5 * torch.exp(self.leave(got)) + 0.5)", "softplus_by_hand"),
    ("Vocoder", "(self.wide1(x) + self.wide2(x)) / 2", "torch.stack([self.wide1(x), self.wide2(x)]).mean(0)", "mean_of_stack"),
    ("Interests", "(weight[..., None] * past).sum(1)", "torch.bmm(weight[:, None], past)[:, 0]", "bmm"),
    ("Interests", "share * x + (1 - share) * self.slope * x", "x * (self.slope + share * (1 - self.slope))", "factored"),
    ("Densities", "-torch.logsumexp(F.log_softmax(share, -1) + log, -1)", "torch.logsumexp(share, -1) - torch.logsumexp(share + log, -1)", "shares_apart"),
]


def chunked(function, parts=2, axis=0):
    return lambda m, x: torch.cat([function(m, y) for y in x.chunk(parts, axis)], axis)


def by_windows(m, x):
    """A convolution as a product with unfolded windows."""
    if m.groups > 1 or isinstance(m.padding, str) or m.padding_mode != "zeros":
        return F.conv2d(x, m.weight, m.bias, m.stride, m.padding, m.dilation, m.groups)
    windows = F.unfold(x, m.kernel_size, m.dilation, m.padding, m.stride)
    size = [(x.shape[i + 2] + 2 * m.padding[i] - m.dilation[i] * (m.kernel_size[i] - 1) - 1) // m.stride[i] + 1 for i in (0, 1)]
    y = (m.weight.flatten(1) @ windows).view(len(x), -1, *size)
    return y if m.bias is None else y + m.bias[:, None, None]


def batch_free(model):
    return not any(isinstance(m, nn.modules.batchnorm._BatchNorm) for m in model.modules())


def run_variations(places):
    family, model = places.family, places.model
    plain = family.loop.__name__ == "<lambda>"
    yield clean("again", "the same run", lambda step: None)
    yield clean("threads2", "two threads", lambda step: setattr(step, "threads", 2))
    yield clean("float64", "float64", lambda step: setattr(step, "dtype", torch.float64))
    yield clean("bfloat16", "all in bfloat16", lambda step: setattr(step, "dtype", torch.bfloat16))
    yield clean("autocast", "autocast to bfloat16", lambda step: setattr(
        step, "context", lambda: torch.autocast("cpu", dtype=torch.bfloat16)))
    yield clean("autocast_half", "autocast to float16", lambda step: setattr(
        step, "context", lambda: torch.autocast("cpu", dtype=torch.float16)))
    if family.vision:
        yield clean("channels_last", "channels last", on_model(lambda m: m.to(memory_format=torch.channels_last)))
    if family.hugging:
        yield clean("sdpa", "SDPA for eager attention", lambda step: step.keys.update(attention="sdpa"))
        yield clean("checkpoint", "all layers are computed again", on_model(
            lambda m: m.gradient_checkpointing_enable({"use_reentrant": False})))
        yield clean("checkpoint_reentrant", "all layers are computed again, reentrant", on_model(
            lambda m: m.gradient_checkpointing_enable({"use_reentrant": True})))
        if "input_ids" in family.batch():
            def embedded(loss, m, b):
                b = dict(b)
                return m(inputs_embeds=m.get_input_embeddings()(b.pop("input_ids")), **b).loss
            if family.name != "marian":
                yield clean("embedded", "vectors given for ids", loss_around(embedded))
    if "attention_mask" in family.batch():
        yield clean("mask_bool", "a mask of truth values", on_batch("attention_mask", lambda m: m.bool()))
    found = lists_of(model)
    if found and not family.hugging:
        def again(m):
            from torch.utils.checkpoint import checkpoint
            for layer in m.get_submodule(found[0]):
                layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
        yield clean("layers_again", f"layers of {found[0]} are computed again", on_model(again))
    if plain and batch_free(model) and family.name in ("swinv2", "convnextv2", "poolformer", "focalnet", "flux", "unet2d", "nfnet", "vocoder"):
        yield clean("micro_batches", "micro batches", lambda step: setattr(step, "parts", len(step.batch["labels"])))
    if family.name not in ("schnet", "vocoder") and "labels" in family.batch() and family.loop.__name__ != "in_parts":
        yield clean("batch_order", "the batch in another order", lambda step: setattr(
            step, "batch", {k: v.flip(0) for k, v in step.batch.items()}))
    def copied(m):
        return copy.deepcopy(m)
    yield clean("deep_copy", "a copy of the model", on_model(copied))
    def evaluated(loss, m, b):
        m.eval()
        with torch.no_grad():
            loss(m, b)
        m.train()
        return loss(m, b)
    yield clean("evaluated_first", "evaluated before the step", loss_around(evaluated))


def update_variations(places):
    loop = places.family.loop.__name__
    if loop == "<lambda>":
        yield clean("foreach", "foreach optimizer", adam(foreach=True))
        yield clean("fused", "fused optimizer", adam(foreach=None, fused=True))
    if loop == "nesterov":
        yield clean("sgd_foreach", "foreach optimizer", sgd(foreach=True))
        yield clean("sgd_fused", "fused optimizer", sgd(foreach=None, fused=True))
    def zeros(m):
        for p in m.parameters():
            if p.requires_grad:
                p.grad = torch.zeros_like(p)
    yield clean("zeros_kept", "gradients begin as zeros", on_model(zeros))
    def kept(step):
        def backward(m, loss):
            loss.backward = functools.partial(torch.Tensor.backward, loss, retain_graph=True)
            return loss
        step.before_backward = backward
    if loop != "in_parts":
        yield clean("graph_retained", "the graph is retained", kept)
        def asked(step):
            def backward(m, loss):
                def run():
                    p = [x for x in m.parameters() if x.requires_grad]
                    for x, g in zip(p, torch.autograd.grad(loss, p, allow_unused=True)):
                        x.grad = g
                loss.backward = run
                return loss
            step.before_backward = backward
        yield clean("gradients_asked", "torch.autograd.grad for backward", asked)
    def logged(step):
        plain = step.before_step
        def run(m):
            plain(m)
            torch.stack([p.grad.detach().norm() for p in m.parameters() if p.grad is not None]).norm().item()
        step.before_step = run
    yield clean("norm_logged", "the norm of all gradients is logged", logged)
    def scaled(step):
        if step.parts > 1:
            return
        step.before_backward = lambda m, loss: loss * 1024.0
        plain = step.before_step
        def run(m):
            for p in m.parameters():
                if p.grad is not None:
                    p.grad.mul_(1.0 / 1024.0)
            plain(m)
        step.before_step = run
    yield clean("loss_scaled", "the loss is scaled, gradients are scaled back", scaled)


def form_variations(places):
    path = places.line(3)
    module = places.model.get_submodule(path)
    def some(function):
        return on_model(lambda m: setattr(m.get_submodule(path), "forward", functools.partial(function, m.get_submodule(path))))
    if isinstance(module, nn.Linear):
        yield clean("in_chunks", f"{path} in two chunks of the batch", some(chunked(lambda m, x: F.linear(x, m.weight, m.bias))))
        yield clean("addmm", f"{path} by addmm", some(lambda m, x: (
            x.reshape(-1, x.shape[-1]) @ m.weight.t() if m.bias is None else
            torch.addmm(m.bias, x.reshape(-1, x.shape[-1]), m.weight.t())).view(*x.shape[:-1], -1)))
    yield clean("dropouts", "dropout of 0 behind each layer", on_model(lambda m: [
        setattr(x, "forward", functools.partial(lambda f, *a: F.dropout(f(*a), 0.0, True), x.forward))
        for x in m.modules() if isinstance(x, LINES)] and None))
    yield clean("doubled_and_back", f"output of {path} in float64 and back", wrap(path, lambda x: x.double().to(x.dtype)))
    yield clean("windows", "windows for convolutions", by_hand(nn.Conv2d, by_windows))
    yield clean("group_norm_by_hand", "group norm by hand", by_hand(nn.GroupNorm, lambda m, x: (lambda y: (
        (y - y.mean(-1, keepdim=True)) * (y.var(-1, unbiased=False, keepdim=True) + m.eps).rsqrt()).view_as(x)
        * m.weight.view(-1, *[1] * (x.ndim - 2)) + m.bias.view(-1, *[1] * (x.ndim - 2)))(x.reshape(len(x), m.num_groups, -1))))
    yield clean("norms_up", "layer norms in float64", by_hand(nn.LayerNorm, lambda m, x: F.layer_norm(
        x.double(), m.normalized_shape, None if m.weight is None else m.weight.double(),
        None if m.bias is None else m.bias.double(), m.eps).to(x.dtype)))
    if uses(places.family, places.model, "cross_entropy"):
        def in_two(plain, x, y, **k):
            if k.get("reduction", "mean") != "mean" or k.get("label_smoothing"):
                return plain(x, y, **k)
            parts = [plain(a, b, **{**k, "reduction": "sum"}) for a, b in zip(x.chunk(2), y.chunk(2))]
            return sum(parts) / (y != k.get("ignore_index", -100)).sum()
        yield clean("loss_in_two", "the loss in two parts", patched("cross_entropy", in_two))
        def up(plain, x, y, **k):
            return plain(x.double(), y, **k).to(x.dtype)
        yield clean("loss_up", "the loss in float64", patched("cross_entropy", up))
    if uses(places.family, places.model, "mse_loss"):
        yield clean("mse_norm", "squared error by a norm", patched("mse_loss", lambda plain, x, y, **k: (x - y).norm() ** 2 / x.numel()))


def variations(family, model, index):
    places = Places(family, model)
    yield from (c for c in in_turn([*run_variations(places), *form_variations(places), *update_variations(places)], index, 5)
                if (family.name, c.name) not in VOID)
    yield from edits(model, VARIATIONS, truth=False)
