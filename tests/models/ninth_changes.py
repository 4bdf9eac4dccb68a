# SPDX-License-Identifier: MIT
"""Mistakes and harmless changes of the ninth set; see ninth_families.py.

Every family takes a share of the general mistakes and harmless changes, in turn, and all of its own code, of its
loss and of its loop.
"""
import copy
import functools
import inspect
import sys
import textwrap

import torch
from torch import nn
import torch.nn.functional as F

import ninth_families
from changes import ANY, Change, anywhere, first, on_model, owners, within
from observed import LINES, Places, is_read, readers, uses
from seventh_changes import loss_around, on_input
from unseen_changes import adam, by_hand, clean, in_turn, on_batch, patched, weight, wrap

PRE = r"^(?:[A-Za-z]+\.\w+\.\d+\.forward @ (?:clip_grad|optimizer)$|Module\.\S+\.parameters_grad)"


def root(ops, direction="forward"):
    """Operators outside of all modules but the outermost."""
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.{direction} @ $"


def in_step(ops=r"\w+"):
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.forward @ optimizer$"


def in_clip(ops=r"\w+"):
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.forward @ clip_grad$"


# ---- edits of code ------------------------------------------------------------------------------

def place_of(model, kind):
    """Path of the last module of a class, or the one that is named behind an @."""
    kind, _, path = kind.partition("@")
    found = [n for n, m in model.named_modules() if type(m).__name__ == kind and (not path or n == path)]
    return found[-1] if found else None


def method_with(owner, old):
    """Name and function of the method of a class that holds a text, forward before others; is it static?"""
    for kind in owner.__mro__:
        for name, value in sorted(vars(kind).items(), key=lambda item: item[0] != "forward"):
            static = isinstance(value, staticmethod)
            function = inspect.unwrap(value.__func__ if static else value) if static or callable(value) else None
            if inspect.isfunction(function) and old in inspect.getsource(function):
                return name, function, static
    raise ValueError(f"{owner.__name__}: no {old!r}")


def compiled(function, old, new):
    text = textwrap.dedent(inspect.getsource(function))
    names = dict(vars(sys.modules[function.__module__]))
    exec(compile(text[text.index("def "):].replace(old, new, 1), "edited " + function.__name__, "exec"), names)
    return names[function.__name__]


def edited(path, old, new):
    def change(m):
        module = m.get_submodule(path)
        name, function, static = method_with(type(module), old)
        made = compiled(function, old, new)
        setattr(module, name, made if static else made.__get__(module))
    return on_model(change)


def truth_of(path, ops, more, direction):
    here = within(path, ops, direction, inner=True) if path else root(ops, direction)
    return "|".join([here, *(within(p, direction=direction, inner=True) for p in more)])


def edits(model, table):
    for kind, old, new, name, ops, *rest in table:
        path = place_of(model, kind)
        if path is None:
            continue
        more = [p for p in rest if p != "back"]
        yield Change(name, f"{path or 'model'}: {new or 'without ' + old}", edited(path, old, new),
                     truth_of(path, ops, more, ANY if "back" in rest else "forward"))


def variation_edits(model, table):
    for kind, old, new, name in table:
        path = place_of(model, kind)
        if path is not None:
            yield clean(name, f"{path or 'model'}: {new}", edited(path, old, new))


def function_edits(model, table):
    """Edits of functions of the module that holds a class."""
    for kind, function, old, new, name, ops in table:
        if place_of(model, kind) is None:
            continue
        def change(m, kind=kind, function=function, old=old, new=new):
            owner = type(m.get_submodule(place_of(m, kind)))
            names = vars(sys.modules[owner.__module__])
            plain = inspect.unwrap(names[function])
            if old not in inspect.getsource(plain):
                raise ValueError(f"no {old!r}")
            names[function] = compiled(plain, old, new)
        yield Change(name, f"{function}: {new}", on_model(change), anywhere(ops))


EDITS = [
    ("OlmoLayerNorm", "hidden_states.to(dtype=torch.float32)", "hidden_states.to(dtype=torch.bfloat16)", "norm_in_bf16", "to|layer_norm"),
    ("OlmoAttention", "value_states.clamp_(", "key_states.clamp_(", "values_not_clipped", "clamp_|clamp|view|transpose"),
    ("OlmoMLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)", "self.act_fn(self.gate_proj(x) * self.up_proj(x))", "act_of_product", "silu|__mul__"),
    ("OlmoRotaryEmbedding", "emb.cos()", "emb.sin()", "sine_twice", "cos|sin"),
    ("Starcoder2MLP", "hidden_states = self.act(hidden_states)", "hidden_states = nn.functional.gelu(hidden_states)", "exact_gelu", "gelu"),
    ("Starcoder2DecoderLayer", "hidden_states = self.input_layernorm(hidden_states)", "residual = hidden_states = self.input_layernorm(hidden_states)",
     "residual_behind_norm", "__add__|layer_norm"),
    ("Starcoder2Attention", "scaling=self.scaling,", "scaling=self.head_dim ** -1.0,", "scale_not_rooted", "__mul__|mul"),
    ("Starcoder2Attention", "value_states = self.v_proj(hidden_states).view(hidden_shape)", "value_states = self.k_proj(hidden_states).view(hidden_shape)",
     "values_are_keys", r"linear|view|transpose"),
    ("Exaone4Attention", "query_states = self.q_norm(query_states)", "query_states = self.k_norm(query_states)", "norm_of_keys",
     r"pow|mean|rsqrt|__r?mul__|to|__r?add__"),
    ("Exaone4Attention", "if self.sliding_window is None or self.is_sliding:", "if True:", "rope_where_none",
     r"__r?mul__|cat|neg|__neg__|__add__|__getitem__|unsqueeze|matmul|transpose"),
    ("Exaone4DecoderLayer", "hidden_states = self.post_feedforward_layernorm(hidden_states)", "hidden_states = hidden_states", "post_norm_missing",
     r"pow|mean|rsqrt|__r?mul__|to|__r?add__"),
    ("Exaone4MLP", "self.act_fn(self.gate_proj(x))", "torch.relu(self.gate_proj(x))", "relu_for_silu", "silu|relu"),
    ("GPTNeoSelfAttention", "attn_weights = torch.matmul(query, key.transpose(-1, -2))",
     "attn_weights = torch.matmul(query, key.transpose(-1, -2)) * self.head_dim ** -0.5", "scaled_though_not", r"matmul|__mul__|where"),
    ("GPTNeoSelfAttention", "self.bias[:, :, key_length - query_length : key_length, :key_length]", "self.bias[:, :, 1 : key_length + 1, :key_length]",
     "mask_by_one", r"__getitem__|where|softmax"),
    ("GPTNeoBlock", "hidden_states = attn_output + residual", "hidden_states = attn_output + hidden_states", "residual_of_norm", "__add__"),
    ("GPTNeoMLP", "hidden_states = self.act(hidden_states)", "hidden_states = torch.sigmoid(1.702 * hidden_states) * hidden_states", "quick_gelu",
     r"\w*gelu|__r?mul__|pow|tanh|sigmoid|__r?add__"),
    ("GraniteMoeTopKRouter", "torch.softmax(top_k_logits, dim=-1)", "torch.softmax(router_logits, dim=-1).gather(-1, top_k_index)", "shares_before_choice",
     "softmax|gather|topk|type_as"),
    ("GraniteMoeExperts", "top_k_weights[token_idx, top_k_pos, None]", "top_k_weights[token_idx, 0, None]", "weight_of_first_choice", r"\w+"),
    ("GraniteMoeDecoderLayer", "hidden_states * self.residual_multiplier", "hidden_states", "multiplier_missing", r"__mul__|__add__"),
    ("GraniteMoeForCausalLM", "logits / self.config.logits_scaling", "logits * self.config.logits_scaling", "scaling_inverted", r"__truediv__|__mul__"),
    ("GraniteMoeModel", "inputs_embeds = inputs_embeds * self.embedding_multiplier", "pass", "embedding_multiplier_missing", r"__mul__|dropout|embedding",
     "model.layers.0.input_layernorm"),
    ("RoFormerSelfAttention", "sin, cos = sinusoidal_pos.chunk(2, dim=-1)", "cos, sin = sinusoidal_pos.chunk(2, dim=-1)", "sine_and_cosine",
     r"chunk|stack|reshape_as|__mul__"),
    ("RoFormerSelfAttention", "math.sqrt(self.attention_head_size)", "math.sqrt(self.all_head_size)", "scale_of_all_heads", "__truediv__"),
    ("RoFormerSelfAttention", "if self.rotary_value:", "if True:", "values_turned", r"stack|neg|__neg__|__getitem__|__r?mul__|__add__|reshape_as|matmul"),
    ("RoFormerOutput", "self.LayerNorm(hidden_states + input_tensor)", "self.LayerNorm(hidden_states + hidden_states)", "residual_of_itself", "__add__"),
    ("UMT5Attention@encoder.block.1.layer.0.SelfAttention", "relative_position = memory_position - context_position",
     "relative_position = context_position - memory_position", "positions_turned",
     r"__r?sub__|__gt__|gt|abs|min|embedding|to|__r?mul__|__i?add__|__iadd__|__lt__|lt|where|log|permute"),
    ("UMT5LayerNorm@encoder.block.1.layer.1.layer_norm", "hidden_states.to(torch.float32).pow(2)",
     "(hidden_states - hidden_states.mean(-1, keepdim=True)).to(torch.float32).pow(2)", "norm_centred", "__sub__|mean|pow|to"),
    ("UMT5DenseGatedActDense", "self.act(self.wi_0(hidden_states))", "self.act(self.wi_1(hidden_states))", "gate_is_up",
     r"linear|\w*gelu|pow|tanh|__r?mul__|__r?add__"),
    ("UMT5LayerCrossAttention", "normed_hidden_states = self.layer_norm(hidden_states)", "normed_hidden_states = hidden_states", "norm_missing",
     r"to|pow|mean|rsqrt|__r?mul__|__r?add__|linear"),
    ("UMT5Attention@decoder.block.1.layer.0.SelfAttention", "scaling=self.scaling,", "scaling=self.key_value_proj_dim ** -0.5,", "scaled_though_not", "__mul__"),
    ("Conv1dSubsampler", "nn.functional.glu(hidden_states, dim=1)", "hidden_states.chunk(2, 1)[0]", "gate_missing", r"glu|chunk|__getitem__|conv1d|transpose"),
    ("Speech2TextEncoderLayer", "hidden_states = self.self_attn_layer_norm(hidden_states)", "hidden_states = self.final_layer_norm(hidden_states)",
     "norm_of_other", "layer_norm"),
    ("Speech2TextEncoderLayer", "self.activation_fn(self.fc1(hidden_states))", "torch.tanh(self.fc1(hidden_states))", "tanh_for_relu", "relu|tanh"),
    ("Speech2TextEncoder", "inputs_embeds = self.embed_scale * inputs_embeds", "pass", "embed_scale_missing", r"__r?mul__|__add__"),
    ("SiglipVisionEmbeddings", "self.position_embedding(self.position_ids)", "self.position_embedding(self.position_ids.flip(1))", "positions_from_end",
     "embedding|flip|__add__"),
    ("SiglipModel", "image_embeds / image_embeds.norm(p=2, dim=-1, keepdim=True)", "image_embeds / image_embeds.norm(p=2, dim=0, keepdim=True)", "norm_axis",
     "norm|__truediv__|vector_norm|linalg_vector_norm"),
    ("SiglipModel", "logit_scale.exp()", "logit_scale", "scale_not_raised", r"exp|__mul__"),
    ("SiglipMultiheadAttentionPoolingHead", "hidden_state = residual + self.mlp(hidden_state)", "hidden_state = hidden_state + self.mlp(hidden_state)",
     "residual_of_norm", "__add__"),
    ("SiglipAttention", "queries = self.q_proj(hidden_states)", "queries = self.k_proj(hidden_states)", "queries_are_keys", "linear|view|transpose"),
    ("PvtV2SelfAttention", "math.sqrt(self.attention_head_size)", "math.sqrt(self.hidden_size)", "scale_of_all_heads", "__truediv__"),
    ("PvtV2DepthWiseConv", "hidden_states.transpose(1, 2).view(batch_size, num_channels, height, width)",
     "hidden_states.reshape(batch_size, num_channels, height, width)", "view_without_transpose", "transpose|view|reshape|conv2d"),
    ("PvtV2BlockLayer", "self.mlp(self.layer_norm_2(hidden_states), height, width)", "self.mlp(self.layer_norm_1(hidden_states), height, width)",
     "norm_of_other", "layer_norm"),
    ("PvtV2OverlapPatchEmbeddings", "embeddings = self.layer_norm(embeddings)", "pass", "patch_norm_missing", r"layer_norm|transpose",
     "pvt_v2.encoder.layers.1.blocks.0.layer_norm_1"),
    ("DecisionTransformerModel", "(returns_embeddings, state_embeddings, action_embeddings), dim=1", "(state_embeddings, returns_embeddings, action_embeddings), dim=1",
     "order_of_tokens", "stack"),
    ("DecisionTransformerModel", "action_embeddings = action_embeddings + time_embeddings", "pass", "time_of_actions_missing", "__add__|stack"),
    ("DecisionTransformerModel", "self.predict_action(x[:, 1])", "self.predict_action(x[:, 2])", "sees_the_answer", "__getitem__", "predict_action.0"),
    ("DecisionTransformerModel", "stacked_inputs = self.embed_ln(stacked_inputs)", "pass", "norm_missing", "layer_norm|reshape", "embed_ln"),
    ("DecisionTransformerGPT2Block", "hidden_states = residual + feed_forward_hidden_states", "hidden_states = feed_forward_hidden_states",
     "residual_missing", "__add__", "encoder.ln_f"),
    ("BasicTransformerBlock", "norm_hidden_states * (1 + scale_msa) + shift_msa", "norm_hidden_states * (1 + shift_msa) + scale_msa", "scale_and_shift",
     r"__r?add__|__mul__"),
    ("BasicTransformerBlock", "attn_output = gate_msa * attn_output", "pass", "gate_missing", r"__r?mul__|__add__"),
    ("BasicTransformerBlock", "norm_hidden_states * (1 + scale_mlp) + shift_mlp", "norm_hidden_states * scale_mlp + shift_mlp", "one_missing",
     r"__r?add__|__mul__"),
    ("PixArtTransformer2DModel", "(1 - encoder_attention_mask.to(hidden_states.dtype))", "encoder_attention_mask.to(hidden_states.dtype)", "mask_inverted",
     r"__r?sub__|__mul__|unsqueeze"),
    ("SpatialGatingUnit", "u * v.transpose(-1, -2)", "u + v.transpose(-1, -2)", "sum_for_product", "__mul__|__add__"),
    ("SpatialGatingUnit", "u, v = x.chunk(2, dim=-1)", "v, u = x.chunk(2, dim=-1)", "halves_exchanged", "chunk|layer_norm|__mul__"),
    ("SpatialGatingUnit", "v = self.norm(v)", "pass", "norm_missing", "layer_norm|transpose|linear"),
    ("SpatialGatingBlock", "x = x + self.drop_path(", "x = 0 * x + self.drop_path(", "residual_missing", r"__r?mul__|__add__"),
    ("LRASPPHead", 'mode="bilinear", align_corners=False', 'mode="bilinear", align_corners=True', "corners", "interpolate"),
    ("LRASPPHead", "x = x * s", "pass", "scale_missing", r"__mul__|interpolate|sigmoid"),
    ("LRASPP", 'mode="bilinear", align_corners=False', 'mode="nearest"', "nearest", "interpolate"),
    ("CausalSelfAttention", "is_causal=True", "is_causal=False", "sees_the_future", "scaled_dot_product_attention"),
    ("CausalSelfAttention", "q, k, v = self.c_attn(x)", "k, q, v = self.c_attn(x)", "query_and_key", "split|view|transpose|scaled_dot_product_attention"),
    ("CausalSelfAttention", "y.transpose(1, 2).contiguous()", "y.contiguous()", "heads_not_moved", "transpose|contiguous|view|linear"),
    ("GptBlock", "x = x + self.attn(self.ln_1(x))", "x = self.ln_1(x) + self.attn(self.ln_1(x))", "residual_of_norm", "__add__|layer_norm"),
    ("SmallGpt", "torch.arange(0, idx.size(1), dtype=torch.long)", "torch.arange(1, idx.size(1) + 1, dtype=torch.long)", "places_by_one", "arange", "wpe"),
    ("Cell", "i, f, g, o =", "i, f, o, g =", "gates_exchanged", "chunk|sigmoid|tanh|__add__|__mul__"),
    ("Cell", " + 1.0)", ")", "forget_bias_missing", "__add__|sigmoid"),
    ("Cell", "self.peep[2] * c) * torch.tanh(c)", "self.peep[2] * c) * c", "tanh_missing", "tanh|__mul__"),
    ("Characters", "if t == 4:", "if t == 3:", "cut_elsewhere", "detach|stack|__getitem__", "low", "high", "back"),
    ("Characters", "self.high(h1, h2, c2)", "self.high(h1, h2, c1)", "state_of_other", "zeros|new_zeros", "high"),
    ("LongConv", "torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)",
     "torch.fft.irfft(torch.fft.rfft(u, n=n) * torch.fft.rfft(k, n=n), n=n)", "circular", r"\w*rfft|__mul__"),
    ("LongConv", " + u * self.skip[:, None]", "", "skip_missing", r"__mul__|__add__|__getitem__"),
    ("LongConv", " * self.fade[:n]", "", "fade_missing", r"__mul__|__getitem__|t|rfft|\w*rfft"),
    ("LongConv", "transpose(1, 2))[..., :n]", "transpose(1, 2))[..., 2:]", "sees_the_future", r"__getitem__|chunk"),
    ("LongConv", "self.conv(v * b, k) * a", "self.conv(v * a, k) * b", "gates_exchanged", "__mul__"),
    ("Transducer", "torch.logaddexp(stay", "torch.maximum(stay", "best_path", "logaddexp|maximum"),
    ("Transducer", "blank[:, t - 1]", "blank[:, t]", "blank_by_one", "__getitem__|__add__"),
    ("Transducer", "F.pad(y, (1, 0))", "F.pad(y, (1, 0), value=1)", "begin_of_text", "pad", "embed"),
    ("Transducer", ".log_softmax(-1)", ".log_softmax(2)", "softmax_axis", "log_softmax"),
    ("Transducer", "(alpha[-1][:, -1] + blank[:, -1, -1])", "alpha[-1][:, -1]", "last_blank_missing", r"__add__|__getitem__|mean"),
    ("ActorCritic", "h * (1 - ended[t])[:, None]", "h", "memory_not_cleared", r"__mul__|__rsub__|__getitem__", "memory"),
    ("ActorCritic", "gamma * value[t + 1] * (1 - ended[t + 1])", "gamma * value[t + 1]", "end_ignored", r"__r?mul__|__rsub__|__getitem__|__r?add__"),
    ("ActorCritic", "self.advantages(value.detach(), ", "self.advantages(value, ", "advantages_not_detached",
     r"detach|__getitem__|__r?sub__|__r?mul__|__r?add__|stack|mean|std|__truediv__|squeeze|smooth_l1_loss", "value", "back"),
    ("ActorCritic", "- 0.01 * entropy", "+ 0.01 * entropy", "sign_of_entropy", r"__r?add__|__r?sub__|__r?mul__"),
    ("ActorCritic", "log.gather(-1", "log.exp().gather(-1", "probability_for_logarithm", "exp|gather"),
    ("ActorCritic", "(better.std() + 1e-8)", "(better.var() + 1e-8)", "variance_for_deviation", "std|var"),
    ("Meta", "create_graph=True", "create_graph=False", "first_order", r"\w+", "fc1", "fc2", "fc3", "back"),
    ("Meta", "rate=0.05", "rate=0.01", "inner_rate", "__r?mul__"),
    ("Meta", "range(2)", "range(1)", "one_inner_step", r"linear|mse_loss|__r?mul__|__r?sub__|__getitem__"),
    ("Meta", "self.adapt(x[i], y[i])", "self.adapt(x[0], y[0])", "adapted_to_first", r"__getitem__|linear"),
    ("Twins", " / len(a)", "", "not_divided", r"__truediv__|diagonal|flatten"),
    ("Twins", ".add(-1)", "", "diagonal_to_zero", "add|diagonal|pow"),
    ("Twins", "view(19, 21)[:, 1:]", "view(19, 21)[:, :-1]", "diagonal_in_rest", "__getitem__|pow"),
    ("Twins", "self.norm(b)", "b", "view_not_normed", r"__matmul__|matmul|permute|t|T", "norm"),
    ("Twins", "0.05 * off", "0.005 * off", "weight_of_rest", "__r?mul__"),
    ("Cycle", "self.judge_a(made_a.detach())", "self.judge_a(made_a)", "made_not_detached", r"detach|tanh|\w+", "judge_a", "to_a", "back"),
    ("Cycle", "F.l1_loss(self.to_a(made_b), a)", "F.l1_loss(self.to_a(made_b), b)", "trip_to_other", "l1_loss"),
    ("Cycle", "10.0 * round_trip", "1.0 * round_trip", "weight_of_trip", "__r?mul__"),
    ("Maker", "x = x + self.norm2(self.mid(x))", "x = self.norm2(self.mid(x))", "residual_missing", r"__add__|instance_norm|conv_transpose2d"),
    ("Cycle", "self.judge_b(made_b)", "self.judge_a(made_b)", "judge_of_other", r"__sub__|tanh", "judge_a", "judge_b"),
    ("Modulated", "(self.affine(style) + 1)", "self.affine(style)", "one_missing", r"__add__|__getitem__|__mul__"),
    ("Modulated", "sum((2, 3, 4), keepdim=True)", "sum((1, 3, 4), keepdim=True)", "norm_axis", "sum"),
    ("Modulated", " * math.sqrt(2)", "", "gain_missing", r"__mul__|leaky_relu", "to_rgb"),
    ("Modulated", "(2, 1, 2, 1)", "(1, 2, 1, 2)", "blur_shifted", "pad"),
    ("Styled", "z = z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8)", "pass", "latent_not_normed", r"pow|mean|rsqrt|__r?mul__|__add__", "map1"),
    ("Styled", "F.softplus(-self.judge(made))", "F.softplus(self.judge(made))", "sign_of_judge", r"neg|__neg__|softplus"),
    ("Styled", "noise[:, :, ::2, ::2]", "noise[:, :, :4, :4]", "corner_of_noise", "__getitem__", "conv1"),
    ("Styled", "x.var(0, unbiased=False)", "x.var(1, unbiased=False)", "variance_axis", "var"),
    ("Tracker", "0.1 * self.gain", "0.01 * self.gain", "gain_too_small", "__r?mul__"),
    ("Tracker", "F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)", "F.max_pool2d(self.bn1(self.conv1(x)), 2)", "relu_missing", r"relu|max_pool2d|boolean_dispatch\w*|\w*max_pool2d\w*"),
    ("Tracker", "self.correlate(self.features(z), ", "self.correlate(self.features(z).detach(), ", "template_detached", r"detach|conv2d|reshape", "conv3", "back"),
    ("Spiking", "v1 = v1 - s1.detach()", "v1 = v1 - s1", "reset_has_gradient", r"detach|__r?sub__|apply|__r?mul__|__add__|fire\w*|Fire\w*", "fc1", "back"),
    ("Spiking", "v2 * (1 - s2.detach())", "v2 - s2.detach()", "reset_by_difference", r"__r?mul__|__r?sub__"),
    ("Spiking", "torch.sigmoid(self.leak[1])", "torch.sigmoid(self.leak[0])", "leak_of_other", "__getitem__|sigmoid"),
    ("Spiking", "Fire.apply(v - 1.0)", "Fire.apply(v - 0.5)", "threshold", "__sub__"),
    ("Clip", "y * gate[:, :, None, None, None]", "y", "gate_missing", r"__mul__|__getitem__|__add__|sigmoid"),
    ("Clip", "y.mean((2, 3, 4))", "y.mean((3, 4)).amax(2)", "peak_for_mean", "mean|amax"),
    ("Clip", "self.bn2(self.time(y))", "self.bn1(self.time(y))", "norm_of_other", "batch_norm|add_"),
    ("Clips", ".mean((3, 4)).amax(2)", ".mean((2, 3, 4))", "mean_for_peak", "mean|amax"),
    ("MeanTeacher", "self.teacher(other) / 0.8", "self.teacher(other)", "not_sharpened", "__truediv__|softmax"),
    ("MeanTeacher", "self.teacher(other)", "self.teacher(x)", "teacher_sees_same", "conv2d", "teacher"),
    ("MeanTeacher", "F.cross_entropy(made, y, ignore_index=-1)", "F.cross_entropy(made, y.clamp(min=0))", "unlabelled_as_first", "clamp|cross_entropy"),
    ("MeanTeacher", "(sure * agree).mean()", "agree.mean()", "unsure_counted", r"__mul__|mean"),
    ("Columns", "self.embed(kinds + self.begin)", "self.embed(kinds)", "begin_missing", "__add__", "embed"),
    ("Columns", "self.norm(numbers)", "numbers", "numbers_not_normed", "cat|layer_norm", "norm"),
    ("Columns", "F.selu", "F.elu", "elu_for_selu", "selu|elu"),
    ("GraphConv", "degree.pow(-0.5)", "degree.pow(-1)", "degree_not_rooted", "pow"),
    ("GraphConv", "row, col = torch.cat([edges[0], loops]), torch.cat([edges[1], loops])",
     "row, col = torch.cat([edges[0], loops[:1]]), torch.cat([edges[1], loops[:1]])", "loops_missing", r"cat|__getitem__|ones_like"),
    ("GraphConv", "index_add_(0, col, sent)", "index_add_(0, row, sent)", "to_the_sender", "index_add_"),
    ("GraphNet", "(1 + self.eps) * x", "self.eps * x", "self_missing", r"__r?add__|__mul__"),
    ("GraphNet", "dim=1)", "dim=0)", "softmax_axis", "log_softmax"),
    ("GraphNet", "torch.cat([x, h], 1)", "torch.cat([h, x], 1)", "cat_order", "cat"),
    ("Attend", "/ d ** 0.5", "/ (d // self.heads) ** 0.5", "scale_of_one_head", "__truediv__"),
    ("Attend@few", "masked_fill(~mask[", "masked_fill(mask[", "mask_inverted", r"__invert__|invert|bitwise_not|masked_fill|__getitem__"),
    ("Attend", "self.norm1(q + out)", "self.norm1(x + out)", "residual_before_query", "__add__"),
    ("Attend", ".permute(0, 2, 1, 3).reshape(b, n, d)", ".reshape(b, n, d)", "heads_not_moved", "permute|reshape|__add__"),
    ("Pooled", "self.few(self.points.expand(len(x), -1, -1), h, mask)", "self.few(self.points.expand(len(x), -1, -1), h)", "mask_missing", "expand", "few"),
    ("Items", " * self.size ** 0.5", "", "scale_missing", r"__mul__|__add__|embedding"),
    ("Items", "torch.tril(", "torch.triu(", "mask_turned", "tril|triu"),
    ("Items", "self.attn(q, x, x,", "self.attn(q, q, q,", "keys_are_normed", "multi_head_attention_forward|layer_norm", "attn"),
    ("Items", "x = (q + self.attn", "x = (x + self.attn", "residual_of_input", "__add__"),
    ("Items", "x = (x * keep).transpose(0, 1)", "x = x.transpose(0, 1)", "padding_kept", r"__mul__|transpose"),
    ("Tasks", ", per_sample_weights=weights", "", "weights_of_clicks_missing", "embedding_bag", "bag"),
    ("Tasks", "torch.log1p(numbers)", "torch.log(numbers)", "log_for_log1p", "log1p|log"),
    ("Tasks", ".softmax(1)", ".softmax(0)", "softmax_axis", "softmax"),
    ("Tasks", "zip(self.gates, self.towers)", "zip(self.gates[::-1], self.towers)", "gates_exchanged", "linear|softmax", "gates"),
]

FUNCTIONS = [
    ("OlmoAttention", "apply_rotary_pos_emb", "(rotate_half(k) * sin)", "(rotate_half(k) * cos)", "keys_turned_by_cosine", r"__mul__|__add__"),
    ("Starcoder2Attention", "eager_attention_forward", "key_states = repeat_kv(key, module.num_key_value_groups)",
     "key_states = key.repeat(1, module.num_key_value_groups, 1, 1)", "keys_tiled", r"repeat|expand|reshape|__getitem__|transpose|matmul"),
    ("Exaone4Attention", "eager_attention_forward", "dtype=torch.float32).to(query.dtype)", "dtype=torch.bfloat16).to(query.dtype)", "softmax_in_bf16",
     "softmax|to"),
    ("Speech2TextForConditionalGeneration", "shift_tokens_right", "shifted_input_ids[:, 1:] = input_ids[:, :-1].clone()",
     "shifted_input_ids[:, 1:] = input_ids[:, 1:].clone()", "labels_not_shifted", r"__setitem__|clone|__getitem__|embedding"),
    ("SiglipAttention", "eager_attention_forward", "nn.functional.softmax(attn_weights, dim=-1", "nn.functional.softmax(attn_weights, dim=-2", "softmax_axis",
     "softmax"),
]


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

def optimizer(make):
    return lambda step: setattr(step, "optimizer", make)


def loop_mistakes(family):
    def change(name, why, apply, truth=None):
        return Change(name, why, apply, truth or in_step(), "update")
    n = ninth_families
    if family.name == "nanogpt":
        def groups(decay=0.1, vectors=0.0, **keys):
            base = {"lr": 6e-4, "betas": (0.9, 0.95), "foreach": False}
            return optimizer(lambda p: torch.optim.AdamW([{"params": [x for x in p if x.ndim > 1], "weight_decay": decay},
                                                         {"params": [x for x in p if x.ndim < 2], "weight_decay": vectors}], **{**base, **keys}))
        yield change("vectors_decay", "vectors decay too", groups(vectors=0.1), in_step("mul_"))
        yield change("betas_of_library", "betas of the library", groups(betas=(0.9, 0.999)), in_step("mul_|addcmul_|__truediv__|sqrt"))
        yield change("rate_min", "the least rate", groups(lr=6e-5), in_step("mul_|addcdiv_"))
        def undivided(step):
            step.before_backward = lambda m, x: x * 2
        yield change("parts_not_divided", "parts not divided by their count", undivided, root(r"__r?mul__|__r?truediv__", ANY))
        def each(step):
            step.before_backward = lambda m, x: (torch.nn.utils.clip_grad_norm_(m.parameters(), 0.1), x)[1]
        yield change("clipped_between", "clipped after each part", each, in_clip() + "|" + PRE)
        def untied(m):
            m.lm_head.weight = nn.Parameter(m.wte.weight.detach().clone())
        yield change("untied", "the head has weights of its own", on_model(untied), within("wte", direction=ANY) + "|" + within("lm_head", direction=ANY)
                     + "|" + PRE + "|" + in_step())
    if family.name == "cells":
        def limits(limit=0.02):
            return lambda step: setattr(step, "before_step", lambda m: torch.nn.utils.clip_grad_value_(m.parameters(), limit) if limit else None)
        yield change("limit_large", "limit 0.2", limits(0.2), PRE)
        yield change("limit_missing", "not clipped", limits(0), PRE)
        def normed(step):
            step.before_step = lambda m: torch.nn.utils.clip_grad_norm_(m.parameters(), 0.02)
        yield change("norm_for_value", "clipped by norm", normed, PRE)
        yield change("dampened", "momentum dampened", optimizer(lambda p: torch.optim.SGD(
            p, lr=0.1, momentum=0.5, dampening=0.5, weight_decay=1e-2, foreach=False)))
    if family.name == "longconv":
        yield change("betas_exchanged", "betas exchanged", optimizer(lambda p: n.Lion(p, betas=(0.99, 0.9))), in_step(r"__r?mul__|add_|mul_|sign|__add__"))
        yield change("lion_decay", "decay ten times", optimizer(lambda p: n.Lion(p, decay=1.0)), in_step("mul_"))
        yield change("lion_rate", "rate of AdamW", optimizer(lambda p: n.Lion(p, lr=3e-3)), in_step("mul_|add_"))
    if family.name == "actor":
        yield change("rms_alpha", "alpha 0.9", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.9, eps=1e-5, foreach=False)), in_step("mul_|addcmul_"))
        yield change("rms_eps", "eps 1e-3", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-3, foreach=False)), in_step(r"add_|__add__|addcdiv_|add"))
        yield change("rms_centred", "centred", optimizer(lambda p: torch.optim.RMSprop(p, lr=7e-4, alpha=0.99, eps=1e-5, centered=True, foreach=False)))
    if family.name == "barlow":
        yield change("lars_trust", "trust 0.001", optimizer(lambda p: n.Lars(p, trust=0.001)), in_step(r"__r?mul__|mul|__truediv__|norm"))
        yield change("lars_decay", "decay 0.01", optimizer(lambda p: n.Lars(p, decay=0.01)), in_step("add"))
        yield change("lars_rate", "rate 0.02", optimizer(lambda p: n.Lars(p, lr=0.02)), in_step("add_"))
    if family.name == "columns":
        def early(step):
            step.before_step = lambda m: step.schedule.step()
            step.after_step = lambda m, o: None
        yield change("schedule_early", "the schedule steps first", early, in_step("mul_|addcdiv_"))
        def full(step):
            step.after_step = lambda m, o: None
            step.optimizer = lambda p: torch.optim.AdamW(p, lr=2e-3, weight_decay=0.05, foreach=False)
        yield change("no_warm_up", "no warm-up", full, in_step("mul_|addcdiv_"))
        def buffer(m):
            m.begin.copy_(torch.tensor([0, 6, 11, 20]))
        yield change("buffer_of_old", "begins of an older table", on_model(buffer), root("__add__") + "|" + within("embed"))
    if family.name in ("gcn", "sasrec"):
        yield change("decay_decoupled", "AdamW for Adam", optimizer(lambda p: torch.optim.AdamW(p, lr=0.01, weight_decay=5e-4, foreach=False)),
                     in_step(r"mul_|add|lerp_|add_"))
        yield change("decay_tenfold", "decay 5e-3", optimizer(lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=5e-3, foreach=False)), in_step(r"add|add_|lerp_"))
    if family.name == "tasks":
        yield change("adagrad_begin", "sums begin at 0.1", optimizer(lambda p: torch.optim.Adagrad(
            p, lr=0.05, initial_accumulator_value=0.1, foreach=False)), in_step(r"addcmul_|sqrt|add_"))
        yield change("adagrad_rate", "rate 0.01", optimizer(lambda p: torch.optim.Adagrad(p, lr=0.01, foreach=False)), in_step("addcdiv_"))
    if family.name == "clips":
        def kept(step):
            step.before_step = lambda m: None
        yield change("not_unscaled", "gradients not scaled back", kept, PRE + "|" + anywhere("mul_"))
        def late(step):
            undo, clip, step.clip = step.before_step, step.clip, 0
            def run(m):
                torch.nn.utils.clip_grad_norm_(m.parameters(), clip)
                undo(m)
            step.before_step = run
        yield change("clipped_scaled", "clipped before scaled back", late, PRE + "|" + anywhere("mul_"))
        yield change("momentum_kept_off", "no momentum", optimizer(lambda p: torch.optim.SGD(p, lr=0.02, weight_decay=1e-2, foreach=False)), in_step())
    if family.name == "teacher":
        yield change("follows_fast", "the teacher follows faster", lambda step: n.followed(step, 0.9), root("mul_|add_"))
        def before(step):
            follow = step.after_step
            step.after_step = lambda m, o: None
            step.before_step = lambda m: follow(m, None)
        yield change("follows_early", "the teacher follows before the step", before, root("mul_|add_") + "|" + PRE)
        def never(step):
            step.after_step = lambda m, o: None
        yield change("follows_never", "the teacher does not follow", never, root("mul_|add_"))
        yield change("teacher_eval", "the teacher evaluates", on_model(lambda m: m.teacher.eval() and None), within("teacher", "batch_norm", inner=True))
    if family.name == "gpt_neo":
        def wide(m):
            mask = m.transformer.h[1].attn.attention.bias
            mask.copy_(torch.ones_like(mask).tril())
        yield change("window_missing", "the window of a local layer is missing", on_model(wide), within("transformer.h.1.attn.attention", "__getitem__|where|tril|softmax"))
    if family.name == "spiking":
        def slope(step):
            def backward(ctx, g):
                v, = ctx.saved_tensors
                return g / (1 + 2 * v.abs()) ** 2
            n.Fire.backward = staticmethod(backward)
        yield change("surrogate", "another slope of a spike", slope, r"^[A-Za-z]+\.\w+\.\d+\.backward @ |^Module\.fc[12]\.\S+ @ |" + root("__r?mul__"))


def loss_edits(family):
    """The family's loss, written otherwise."""
    def change(name, why, loss, ops):
        return Change(name, why, lambda step: setattr(step, "loss", loss), root(ops, ANY), "loss")
    if family.name == "siglip":
        def scores(m, b):
            return m(input_ids=b["input_ids"], pixel_values=b["pixel_values"]).logits_per_text
        yield change("softmax_pairs", "softmax over pairs", lambda m, b: F.cross_entropy(scores(m, b), torch.arange(4)), r"cross_entropy|logsigmoid|__mul__|arange")
        yield change("labels_zero_one", "labels 0 and 1", lambda m, b: -F.logsigmoid((b["labels"] > 0) * scores(m, b)).sum(-1).mean(), r"__r?mul__|logsigmoid|gt|__gt__")
        yield change("mean_of_pairs", "mean for sum over texts", lambda m, b: -F.logsigmoid(b["labels"] * scores(m, b)).mean(), r"mean|sum|neg|__neg__")
    if family.name == "decisions":
        def over_padding(m, b):
            b = dict(b)
            wanted = b.pop("labels")
            return F.mse_loss(m(**b).action_preds, wanted)
        yield change("padding_counted", "padding counted", over_padding, r"__getitem__|reshape|mse_loss|__gt__|gt")
    if family.name == "lraspp":
        yield change("border_counted", "the border is the last class", lambda m, b: F.cross_entropy(
            m(b["pixel_values"])["out"], b["labels"].clamp(max=4)), r"cross_entropy|clamp")
    if family.name == "nanogpt":
        yield change("shifted_twice", "labels shifted twice", lambda m, b: F.cross_entropy(
            m(b["input_ids"])[:, :-1].flatten(0, 1), b["labels"][:, 1:].flatten(), ignore_index=-1), r"__getitem__|flatten|view|cross_entropy")
    if family.name == "cells":
        yield change("classes_as_time", "classes where times are", lambda m, b: F.cross_entropy(
            m(b["input_ids"]).reshape(5, 40, 8), b["labels"]), r"reshape|transpose|cross_entropy")
    if family.name == "spiking":
        yield change("rate_not_held", "the rate of spikes is not held", lambda m, b: F.cross_entropy(m(b["pixel_values"])[0], b["labels"]),
                     r"__r?sub__|__pow__|__r?mul__|__r?add__|pow|cross_entropy|__truediv__")
        yield change("one_sided", "only too many spikes are punished", lambda m, b: (lambda made, fired: F.cross_entropy(
            made, b["labels"]) + 0.5 * F.relu(fired - 0.2) ** 2 + 0.5 * F.relu(fired - 0.1))(*m(b["pixel_values"])), r"__r?sub__|__pow__|pow|relu|__r?mul__|__r?add__")
    if family.name == "tracker":
        yield change("not_balanced", "near and far not balanced", lambda m, b: F.binary_cross_entropy_with_logits(
            m(b["small"], b["pixel_values"]), b["labels"]), r"binary_cross_entropy_with_logits|where|__r?truediv__|sum|__gt__|gt|eq|__eq__")
        yield change("sigmoid_twice", "sigmoid twice", lambda m, b: F.binary_cross_entropy_with_logits(
            torch.sigmoid(m(b["small"], b["pixel_values"])), b["labels"], torch.where(
                b["labels"] > 0, 0.5 / (b["labels"] > 0).sum(), 0.5 / (b["labels"] == 0).sum()), reduction="sum"), r"sigmoid|binary_cross_entropy_with_logits")
    if family.name == "columns":
        def focal(alpha, gamma):
            def loss(m, b):
                z, y = m(b["kinds"], b["numbers"]), b["labels"]
                each = F.binary_cross_entropy_with_logits(z, y, reduction="none")
                p = torch.sigmoid(z)
                right = p * y + (1 - p) * (1 - y)
                return ((alpha * y + (1 - alpha) * (1 - y)) * (1 - right) ** gamma * each).mean()
            return loss
        yield change("alpha_turned", "weights of the classes exchanged", focal(0.75, 2), r"__r?mul__|__r?add__|__r?sub__")
        yield change("gamma_one", "gamma 1", focal(0.25, 1), r"__pow__|pow|__r?mul__")
    if family.name == "gcn":
        yield change("trained_on_test", "loss of the nodes for the test", lambda m, b: F.nll_loss(
            m(b["pixel_values"], b["edges"])[~b["known"]], b["labels"][~b["known"]]), r"__invert__|invert|bitwise_not|__getitem__|nll_loss")
        yield change("entropy_of_logarithms", "cross entropy of logarithms", lambda m, b: F.cross_entropy(
            m(b["pixel_values"], b["edges"])[b["known"]].exp(), b["labels"][b["known"]]), r"cross_entropy|nll_loss|exp")
    if family.name == "sasrec":
        yield change("padding_counted", "padding counted", lambda m, b: (lambda good, bad: -torch.log(torch.sigmoid(good - bad) + 1e-24).mean())(
            *m(b["input_ids"], b["labels"], b["left"])), r"__mul__|sum|mean|ne|__ne__|to|__truediv__|neg|__neg__")
        yield change("pair_turned", "the pair exchanged", lambda m, b: (lambda bad, good, live: -(torch.log(torch.sigmoid(
            good - bad) + 1e-24) * live).sum() / live.sum())(*m(b["input_ids"], b["labels"], b["left"]), (b["input_ids"] != 0).float()), r"__r?sub__|sigmoid")
    if family.name == "tasks":
        def uncertain(sign, all_prices):
            def loss(m, b):
                click, price = m(b["kinds"], b["weights"], b["pixel_values"])
                one = F.binary_cross_entropy_with_logits(click, b["clicked"])
                two = ((price - b["labels"]) ** 2).mean() if all_prices else (b["clicked"] * (price - b["labels"]) ** 2).sum() / b["clicked"].sum()
                return torch.exp(-m.doubt[0]) * one + 0.5 * torch.exp(-m.doubt[1]) * two + sign * 0.5 * m.doubt.sum()
            return loss
        yield change("doubt_rewarded", "doubt is rewarded", uncertain(-1, False), r"__r?mul__|__r?add__|__r?sub__|sum|neg|__neg__")
        yield change("prices_of_all", "prices of those who did not click", uncertain(1, True), r"__r?mul__|sum|mean|__truediv__")
    if family.name == "pooled":
        yield change("beta_one", "beta 1", lambda m, b: F.smooth_l1_loss(m(b["pixel_values"], b["mask"]), b["labels"]), r"smooth_l1_loss")
        yield change("l1_for_smooth", "absolute error", lambda m, b: F.l1_loss(m(b["pixel_values"], b["mask"]), b["labels"]), r"smooth_l1_loss|l1_loss")
    if family.name == "pixart":
        def learned(m, b):
            made = m(b["pixel_values"], encoder_hidden_states=b["words"], timestep=b["t"] + 1, encoder_attention_mask=b["mask"]).sample
            return F.mse_loss(made, b["labels"])
        yield Change("time_by_one", "times counted from one", lambda step: setattr(step, "loss", learned), root("__add__") + "|" + within(
            "adaln_single", inner=True), "loss")


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
    yield from filter(fits, loop_mistakes(family))
    yield from filter(fits, loss_edits(family))


# Mistakes and variations that change nothing in a family, or a variation that changes too much there.
VOID = {("decisions", "parameters_forgotten"), ("decisions", "cut_by_type"), ("decisions", "flat_gradients"), ("clips", "in_half"),
        ("barlow", "loss_penalty"), ("styled", "input_256"), ("tracker", "labels_of_next")}


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
    mixed = family.loop is ninth_families.scaled
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
    if not getattr(family, "loop", None) is ninth_families.in_groups and family.name not in ("maml", "actor"):
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


def form_variations(places):
    family, model = places.family, places.model
    def uses_f(name):
        return uses(family, model, name)
    def has(kind):
        return any(type(model.get_submodule(p)) is kind for p in places.called)
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
    n = ninth_families
    made = {n.rms: lambda p: torch.optim.RMSprop(p, **{"lr": 7e-4, "alpha": 0.99, "eps": 1e-5, **keys}),
            n.decayed: lambda p: torch.optim.Adam(p, **{"lr": 0.01, "weight_decay": 5e-4, **keys}),
            n.by_sum: lambda p: torch.optim.Adagrad(p, **{"lr": 0.05, **keys}),
            n.by_value: lambda p: torch.optim.SGD(p, **{"lr": 0.1, "momentum": 0.5, **keys}),
            n.scaled: lambda p: torch.optim.SGD(p, **{"lr": 0.02, "momentum": 0.9, "weight_decay": 1e-4, **keys}),
            n.in_groups: lambda p: torch.optim.AdamW(
                [{"params": [x for x in p if x.ndim > 1], "weight_decay": 0.1}, {"params": [x for x in p if x.ndim < 2], "weight_decay": 0.0}],
                **{"lr": 6e-4, "betas": (0.9, 0.95), **keys})}
    return made.get(family.loop)


def update_variations(places):
    family, model = places.family, places.model
    plain = family.loop.__name__ == "<lambda>"
    if plain:
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
    made = same_loop(family, foreach=True)
    if made:
        yield clean("loop_foreach", "foreach optimizer", optimizer(made))
    made = same_loop(family, foreach=None, fused=True)
    if made and family.loop in (ninth_families.decayed, ninth_families.by_value, ninth_families.scaled, ninth_families.in_groups, ninth_families.by_sum):
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
    if family.loop is not ninth_families.in_groups:
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


VARIATIONS = [
    ("OlmoMLP", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)", "self.up_proj(x) * self.act_fn(self.gate_proj(x))", "up_first"),
    ("OlmoAttention", "value_states.clamp_(min=-self.config.clip_qkv, max=self.config.clip_qkv)",
     "value_states = torch.clip(value_states, -self.config.clip_qkv, self.config.clip_qkv)", "clip_out_of_place"),
    ("Starcoder2DecoderLayer", "hidden_states = residual + hidden_states", "hidden_states = hidden_states.add_(residual)", "sum_in_place"),
    ("Exaone4Attention", "attn_output.reshape(*input_shape, -1).contiguous()", "attn_output.flatten(-2)", "flatten_for_reshape"),
    ("GPTNeoSelfAttention", "torch.where(causal_mask, attn_weights, mask_value)", "attn_weights.masked_fill(~causal_mask, mask_value)", "masked_fill"),
    ("GraniteMoeTopKRouter", "torch.softmax(top_k_logits, dim=-1)",
     "(lambda p: p / p.sum(-1, keepdim=True))(torch.softmax(router_logits, dim=-1).gather(-1, top_k_index))", "shares_normed_behind"),
    ("GraniteMoeDecoderLayer", "residual + hidden_states * self.residual_multiplier", "torch.add(residual, hidden_states, alpha=self.residual_multiplier)", "alpha"),
    ("RoFormerSelfAttention", "torch.stack([sin, sin], dim=-1).reshape_as(sinusoidal_pos)", "sin.repeat_interleave(2, dim=-1)", "repeat_interleave"),
    ("UMT5DenseGatedActDense", "hidden_states = hidden_gelu * hidden_linear", "hidden_states = hidden_linear * hidden_gelu", "linear_first"),
    ("Conv1dSubsampler", "nn.functional.glu(hidden_states, dim=1)", "(lambda a, b: a * torch.sigmoid(b))(*hidden_states.chunk(2, 1))", "glu_by_hand"),
    ("SiglipModel", "image_embeds / image_embeds.norm(p=2, dim=-1, keepdim=True)", "torch.nn.functional.normalize(image_embeds, dim=-1)", "normalize"),
    ("PvtV2SelfAttention", "attention_scores / math.sqrt(self.attention_head_size)", "attention_scores.mul(self.attention_head_size ** -0.5)", "product_for_quotient"),
    ("PvtV2DepthWiseConv", "hidden_states.transpose(1, 2).view(batch_size, num_channels, height, width)",
     "hidden_states.view(batch_size, height, width, num_channels).permute(0, 3, 1, 2).contiguous()", "permute_for_transpose"),
    ("DecisionTransformerModel", "torch.stack((returns_embeddings, state_embeddings, action_embeddings), dim=1)",
     "torch.cat([returns_embeddings[:, None], state_embeddings[:, None], action_embeddings[:, None]], 1)", "cat_for_stack"),
    ("BasicTransformerBlock", "norm_hidden_states * (1 + scale_msa) + shift_msa", "torch.addcmul(shift_msa, norm_hidden_states, 1 + scale_msa)", "addcmul"),
    ("SpatialGatingUnit", "u * v.transpose(-1, -2)", "torch.einsum('bnd,bdn->bnd', u, v)", "einsum"),
    ("LRASPPHead", "self.low_classifier(low) + self.high_classifier(x)", "self.high_classifier(x) + self.low_classifier(low)", "high_first"),
    ("CausalSelfAttention", "q, k, v = self.c_attn(x).split(C, dim=2)", "q, k, v = (F.linear(x, w, b) for w, b in zip(self.c_attn.weight.chunk(3), self.c_attn.bias.chunk(3)))",
     "qkv_apart"),
    ("SmallGpt", "self.wte(idx) + self.wpe(pos)", "self.wte(idx) + self.wpe.weight[:idx.size(1)]", "rows_of_places"),
    ("Cell", "i, f, g, o = self.norm(self.enter(x) + self.again(h)).chunk(4, -1)",
     "i, f, g, o = self.norm(F.linear(torch.cat([x, h], -1), torch.cat([self.enter.weight, self.again.weight], 1), self.again.bias)).chunk(4, -1)", "one_product"),
    ("Characters", "torch.stack(made, 1)", "torch.cat([h[:, None] for h in made], 1)", "cat_for_stack"),
    ("LongConv", "y = torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)[..., :n]",
     "y = F.conv1d(F.pad(u, (n - 1, 0)), k.flip(-1)[:, None], groups=len(k))", "direct_convolution"),
    ("Transducer", "torch.logaddexp(stay[:, u], row[-1] + letter[:, t, u - 1])", "torch.stack([stay[:, u], row[-1] + letter[:, t, u - 1]]).logsumexp(0)", "logsumexp"),
    ("Transducer", "letter[:, 0].cumsum(1)", "torch.stack([letter[:, 0, :u + 1].sum(1) for u in range(letter.shape[2])], 1)", "sums_by_hand"),
    ("ActorCritic", "F.log_softmax(logits, -1)", "(logits - torch.logsumexp(logits, -1, keepdim=True))", "log_softmax_by_hand"),
    ("ActorCritic", "log.gather(-1, actions[..., None]).squeeze(-1)", "(log * F.one_hot(actions, 4)).sum(-1)", "one_hot"),
    ("Meta", "w = [p - rate * s for p, s in zip(w, slopes)]", "w = [torch.sub(p, s, alpha=rate) for p, s in zip(w, slopes)]", "alpha"),
    ("Twins", "torch.diagonal(c).add(-1).pow(2).sum()", "(torch.diagonal(c) - 1).square().sum()", "square"),
    ("Twins", "c.flatten()[:-1].view(19, 21)[:, 1:].pow(2).sum()", "(c * (1 - torch.eye(20, dtype=c.dtype))).pow(2).sum()", "eye_for_view"),
    ("Maker", "torch.tanh(self.leave(x))", "2 * torch.sigmoid(2 * self.leave(x)) - 1", "tanh_by_sigmoid"),
    ("Modulated", "torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)", "1 / torch.sqrt((weight * weight).sum((2, 3, 4), keepdim=True) + 1e-8)", "root_by_hand"),
    ("Modulated@conv1", "x = F.conv2d(x.reshape(1, -1, *x.shape[2:]), weight.flatten(0, 1), padding=1, groups=b)",
     "x = torch.cat([F.conv2d(x[i:i + 1], weight[i], padding=1) for i in range(b)])", "one_by_one"),
    ("Tracker", "return out.transpose(0, 1)", "return out.reshape(b, 1, *out.shape[2:])", "reshape_for_transpose"),
    ("Tracker", "out = F.conv2d(x.reshape(1, b * c, h, w), z, groups=b)", "out = torch.cat([F.conv2d(x[i:i + 1], z[i:i + 1]) for i in range(b)], 1)", "one_by_one"),
    ("Spiking", "v2 = v2 * (1 - s2.detach())", "v2 = torch.where(s2.detach() > 0, torch.zeros_like(v2), v2)", "where_for_product"),
    ("Clip", "y.mean((2, 3, 4))", "F.adaptive_avg_pool3d(y, 1).flatten(1)", "pool_for_mean"),
    ("MeanTeacher", "((F.softmax(made, -1) - wanted) ** 2).mean(-1)", "F.mse_loss(F.softmax(made, -1), wanted, reduction='none').mean(-1)", "mse_not_reduced"),
    ("Columns", "torch.cat([x, self.name.expand(len(x), -1, -1)], -1)", "torch.cat([x, self.name[None].repeat(len(x), 1, 1)], -1)", "repeat_for_expand"),
    ("GraphConv", "sent = self.lin(x)[row] * weight.unsqueeze(-1)", "sent = torch.einsum('e,ed->ed', weight, self.lin(x).index_select(0, row))", "einsum"),
    ("GraphConv", "torch.zeros(n, sent.size(1), dtype=x.dtype).index_add_(0, col, sent)",
     "torch.zeros(n, sent.size(1), dtype=x.dtype).scatter_add_(0, col[:, None].expand_as(sent), sent)", "scatter_add"),
    ("Attend", "score = torch.einsum(\"bhqd,bhkd->bhqk\", qs, ks) / d ** 0.5", "score = torch.matmul(qs / d ** 0.5, ks.transpose(-1, -2))", "scaled_first"),
    ("Attend@few", "score.masked_fill(~mask[:, None, None, :], -1e9)", "score + torch.zeros_like(score).masked_fill(~mask[:, None, None, :], -1e9)", "mask_added"),
    ("Items", "~torch.tril(torch.ones(len(x), len(x), dtype=torch.bool))", "torch.full((len(x), len(x)), float('-inf'), dtype=x.dtype).triu(1)", "mask_added"),
    ("Tasks", "(gate(x).softmax(1)[:, :, None] * made).sum(1)", "torch.bmm(gate(x).softmax(1)[:, None], made)[:, 0]", "bmm"),
    ("Tasks", "torch.log1p(numbers)", "torch.log(1 + numbers)", "log_by_hand"),
]


def variations(family, model, index):
    places = Places(family, model)
    def fits(change):
        return (family.name, change.name) not in VOID
    general = [*run_variations(places), *form_variations(places), *update_variations(places)]
    yield from filter(fits, in_turn(general, index, 7))
    yield from filter(fits, variation_edits(model, VARIATIONS))
