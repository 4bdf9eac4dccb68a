# SPDX-License-Identifier: MIT
"""Truths of the ninth set, and edits of the code of its families: mistakes and other forms of the same."""
import inspect
import sys
import textwrap

from changes import ANY, Change, anywhere, on_model, within
from unseen_changes import clean

PRE = r"^(?:[A-Za-z]+\.\w+\.\d+\.forward @ (?:clip_grad|optimizer)$|Module\.\S+\.parameters_grad)"


def root(ops, direction="forward"):
    """Operators outside of all modules but the outermost."""
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.{direction} @ $"


def in_step(ops=r"\w+"):
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.forward @ optimizer$"


def in_clip(ops=r"\w+"):
    return rf"^[A-Za-z]+\.(?:{ops})\.\d+\.forward @ clip_grad$"


def optimizer(make):
    return lambda step: setattr(step, "optimizer", make)


# Mistakes and variations that change nothing in a family, or a variation that changes too much there.
VOID = {("decisions", "parameters_forgotten"), ("decisions", "cut_by_type"), ("decisions", "mean_removed"), ("decisions", "flat_gradients"),
        ("clips", "in_half"), ("clips", "entropy_half"), ("clips", "zero_grad_missing"), ("barlow", "loss_penalty"), ("styled", "input_256"),
        ("styled", "labels_of_next"), ("tracker", "labels_of_next"), ("gcn", "labels_two"), ("cycle", "input_cut"), ("olmo", "qkv_joined")}


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
