# SPDX-License-Identifier: MIT
"""Families of the tenth set from transformers, diffusers, timm and torchvision; see tenth_families.py."""
import importlib.util

import torch
import torch.nn.functional as F

from families import COMMON, LLAMA_LIKE, hugging_loss, tokens
from sixth_families import generator, of_config
from tenth_text import of


def class_loss(m, b):
    return F.cross_entropy(m(b["pixel_values"]), b["labels"])


def images(seed, size, batch=5, frames=()):
    def make():
        g = generator(seed)
        return {"pixel_values": torch.randn(batch, *frames, 3, size, size, generator=g), "labels": torch.randint(0, 7, (batch,), generator=g)}
    return make


# ---- language ----------------------------------------------------------------------------------------

def codegen():
    make = of_config("CodeGenConfig", "CodeGenForCausalLM", **COMMON, n_embd=32, n_layer=3, n_head=4, rotary_dim=4, n_positions=32, n_ctx=32,
                     resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return of("codegen", make, tokens, hugging_loss, [
        ("CodeGenAttention", "order_of_parts", "query, value, key = qkv.split(", "query, key, value = qkv.split(",
         r"reshape|transpose|__getitem__|matmul"),
        ("CodeGenAttention", "not_in_blocks", "self.qkv_proj(hidden_states).view(*input_shape, -1, 3 * local_dim)",
         "self.qkv_proj(hidden_states).view(*input_shape, 3, -1).transpose(-1, -2).reshape(*input_shape, -1, 3 * local_dim)"),
        ("CodeGenAttention", "scale_of_model", "scaling=self.scaling,", "scaling=self.embed_dim ** -0.5,", r"__r?mul__|matmul|mul"),
        ("CodeGenAttention", "keys_not_turned", "k_rot = apply_rotary_pos_emb(k_rot, sin, cos)", "pass",
         r"__mul__|__add__|__neg__|stack|flatten|cat|repeat_interleave|unsqueeze"),
        ("CodeGenAttention*", "sine_and_cosine", "sin, cos = position_embeddings", "cos, sin = position_embeddings",
         r"__mul__|unsqueeze|repeat_interleave|__getitem__"),
        ("CodeGenAttention", "pass_first", "torch.cat([k_rot, k_pass], dim=-1)", "torch.cat([k_pass, k_rot], dim=-1)"),
        ("CodeGenMLP", "relu_for_gelu", "hidden_states = self.act(hidden_states)", "hidden_states = torch.relu(hidden_states)",
         r"pow|tanh|__r?mul__|__r?add__"),
        ("CodeGenBlock", "mlp_reads_attention", "self.mlp(hidden_states)", "self.mlp(hidden_states + attn_output)", r"linear"),
        ("CodeGenBlock", "residual_missing", "attn_output + feed_forward_hidden_states + residual", "attn_output + feed_forward_hidden_states"),
        ("CodeGenBlock", "residual_of_normed", "return attn_output + feed_forward_hidden_states + residual",
         "return attn_output + feed_forward_hidden_states + hidden_states"),
    ], [
        ("CodeGenBlock*", "sum_in_other_order", "attn_output + feed_forward_hidden_states + residual",
         "residual + attn_output + feed_forward_hidden_states"),
        ("CodeGenMLP*", "gelu_of_torch", "self.act(hidden_states)",
         "F.gelu(hidden_states, approximate='tanh') if 'F' in globals() else nn.functional.gelu(hidden_states, approximate='tanh')"),
        ("CodeGenAttention", "chunks", "query, value, key = qkv.split(local_dim, dim=-1)", "query, value, key = qkv.chunk(3, -1)"),
    ], hugging=True, ordered=True, parallel=True)


def olmoe():
    make = of_config("OlmoeConfig", "OlmoeForCausalLM", **COMMON, **LLAMA_LIKE, num_experts=6, num_experts_per_tok=2, clip_qkv=2.0,
        norm_topk_prob=True,
                     output_router_logits=True, router_aux_loss_coef=0.05)
    return of("olmoe", make, tokens, hugging_loss, [
        ("OlmoeAttention", "not_clipped", "key_states.clamp_(min=-self.config.clip_qkv, max=self.config.clip_qkv)", "pass", "view"),
        ("OlmoeAttention", "norm_before_projection", "self.q_norm(self.q_proj(hidden_states))", "self.q_proj(self.q_norm(hidden_states))"),
        ("OlmoeAttention", "keys_not_normed", "self.k_norm(self.k_proj(hidden_states))", "self.k_proj(hidden_states)"),
        ("OlmoeAttention", "heads_not_moved", "value_states.view(*hidden_shape).transpose(1, 2)",
         "value_states.view(hidden_states.shape[0], -1, hidden_states.shape[1], self.head_dim)"),
        ("OlmoeTopKRouter", "not_shared_out", "router_top_value /= router_top_value.sum(dim=-1, keepdim=True)", "pass", "to"),
        ("OlmoeTopKRouter", "sigmoid_router", "torch.nn.functional.softmax(router_logits, dtype=torch.float, dim=-1)",
         "torch.sigmoid(router_logits.float())"),
        ("OlmoeTopKRouter", "one_expert", "torch.topk(router_probs, self.top_k, dim=-1)", "torch.topk(router_probs, 1, dim=-1)"),
        ("OlmoeExperts", "gate_and_up", "gate, up = nn.functional.linear", "up, gate = nn.functional.linear", "silu|mul"),
        ("OlmoeExperts", "weights_missing", "current_hidden_states = current_hidden_states * top_k_weights[token_idx, top_k_pos, None]", "pass",
         "index_add|to"),
        ("OlmoeExperts", "last_expert_missing", "if expert_idx == self.num_experts:", "if expert_idx >= self.num_experts - 1:", r"\w+"),
        ("OlmoeRMSNorm@model.layers.1.post_attention_layernorm", "eps_missing", "variance + self.variance_epsilon", "variance + 0.05"),
        ("OlmoeRMSNorm@model.norm", "mean_of_absolute", "hidden_states.pow(2).mean(-1, keepdim=True)",
         "hidden_states.abs().mean(-1, keepdim=True) ** 2"),
        ("OlmoeRotaryEmbedding", "positions_halved", "position_ids[..., None].float() *", "position_ids[..., None].float() * 0.5 *"),
    ], [
        ("OlmoeRMSNorm*", "norm_of_torch", "return self.weight * hidden_states.to(input_dtype)",
         "return torch.nn.functional.rms_norm(hidden_states * torch.sqrt(variance + self.variance_epsilon), self.weight.shape, self.weight, self.variance_epsilon).to(input_dtype)"),
        ("OlmoeExperts", "split", ".chunk(2, dim=-1)", ".split(self.intermediate_dim, dim=-1)"),
        ("OlmoeTopKRouter", "divided_anew", "router_top_value /= router_top_value.sum(dim=-1, keepdim=True)",
         "router_top_value = router_top_value / router_top_value.sum(-1, True)"),
    ], hugging=True, ordered=True, void=("mixed", "low", "out_paths_dropped"))


def switch():
    make = of_config("SwitchTransformersConfig", "SwitchTransformersForConditionalGeneration", vocab_size=96, pad_token_id=0, d_model=32, d_kv=8,
        d_ff=48, num_layers=2,
                     num_decoder_layers=2, num_heads=4, num_experts=3, expert_capacity=8, dropout_rate=0.0, router_jitter_noise=0.0, num_sparse_encoder_layers=1,
                     num_sparse_decoder_layers=1, decoder_start_token_id=0)
    where = "SwitchTransformersAttention@encoder.block.1.layer.0.SelfAttention"
    return of("switch", make, tokens, hugging_loss, [
        ("SwitchTransformersTop1Router", "no_capacity", "expert_index = expert_index * expert_capacity_mask", "pass", r"permute|max|\w+"),
        ("SwitchTransformersTop1Router", "capacity_by_one", "token_priority <= self.expert_capacity", "token_priority < self.expert_capacity - 2"),
        ("SwitchTransformersTop1Router", "router_in_bf16", "hidden_states = hidden_states.to(self.dtype)",
         "hidden_states = hidden_states.to(torch.bfloat16).to(self.dtype)"),
        ("SwitchTransformersTop1Router", "share_of_first", "torch.max(router_probs, dim=-1).values.unsqueeze(-1)", "router_probs[..., :1]"),
        ("SwitchTransformersExperts", "share_missing", " * routing_weights[top_x, idx, None]", "", r"index_add_?|mul"),
        ("SwitchTransformersDenseActDense@encoder.block.0.layer.1.mlp", "gelu_for_relu", "hidden_states = self.act(hidden_states)",
         "hidden_states = nn.functional.gelu(hidden_states)"),
        ("SwitchTransformersLayerFF@encoder.block.0.layer.1", "residual_of_normed", "hidden_states + self.dropout(forwarded_states)",
         "self.layer_norm(hidden_states) + self.dropout(forwarded_states)"),
        ("SwitchTransformersLayerNorm@decoder.final_layer_norm", "norm_centred", "hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)",
         "hidden_states.to(torch.float32).var(-1, keepdim=True)"),
        ("SwitchTransformersSparseMLP", "experts_exchanged", "selected_experts.view(-1, 1, self.router.num_experts)",
         "selected_experts.view(-1, 1, self.router.num_experts).flip(-1)"),
    ], [
        ("SwitchTransformersTop1Router", "max_by_amax", "torch.max(router_probs, dim=-1).values.unsqueeze(-1)",
         "router_probs.amax(-1, keepdim=True)"),
        ("SwitchTransformersLayerNorm*", "norm_by_division", "hidden_states * torch.rsqrt(variance + self.variance_epsilon)",
         "hidden_states / torch.sqrt(variance + self.variance_epsilon)"),
    ], hugging=True, void=("mixed", "low"))


# ---- images, video, sound ------------------------------------------------------------------------------

def mobilevit():
    make = of_config("MobileViTConfig", "MobileViTForImageClassification", image_size=64, num_labels=7, hidden_sizes=[16, 20, 24],
        neck_hidden_sizes=[8, 8, 12, 16, 20, 24, 32],
                     num_attention_heads=4, mlp_ratio=2.0, expand_ratio=2.0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0)
    return of("mobilevit", make, images(231, 64), hugging_loss, [
        ("MobileViTLayer@mobilevit.encoder.layer.2", "local_for_residual", "torch.cat((residual, features), dim=1)",
         "torch.cat((features, residual), dim=1)"),
        ("MobileViTLayer@mobilevit.encoder.layer.3", "unfolded_wrong", "patches = patches.transpose(1, 3)",
         "patches = patches.reshape(batch_size, patch_area, num_patches, channels)", "reshape"),
        ("MobileViTLayer@mobilevit.encoder.layer.3", "folded_wrong", "features = features.transpose(1, 3)",
         "features = features.reshape(batch_size, -1, num_patches, patch_area)", "reshape"),
        ("MobileViTLayer@mobilevit.encoder.layer.4", "norm_missing", "patches = self.layernorm(patches)", "pass"),
        ("MobileViTSelfAttention@mobilevit.encoder.layer.2.transformer.layer.0.attention.attention", "scale_of_all_heads",
         "math.sqrt(self.attention_head_size)", "math.sqrt(self.all_head_size)"),
        ("MobileViTSelfAttention", "values_are_queries", "self.value(hidden_states)", "self.query(hidden_states)"),
        ("MobileViTInvertedResidual@mobilevit.encoder.layer.1.layer.1", "residual_missing", "residual + features if self.use_residual else features",
         "features"),
        ("MobileViTTransformerLayer", "norm_of_attention", "self.attention(self.layernorm_before(hidden_states))",
         "self.attention(self.layernorm_after(hidden_states))"),
        ("MobileViTOutput", "residual_halved", "hidden_states = hidden_states + input_tensor",
         "hidden_states = 0.5 * (hidden_states + input_tensor)"),
        ("MobileViTConvLayer@mobilevit.conv_stem", "norm_behind_act",
         "if self.normalization is not None:\n            features = self.normalization(features)\n        if self.activation is not None:\n            features = self.activation(features)",
         "features = self.normalization(self.activation(features))"),
    ], [
        ("MobileViTSelfAttention*", "by_sdpa", "context_layer = torch.matmul(attention_probs, value_layer)",
         "context_layer = nn.functional.scaled_dot_product_attention(query_layer, key_layer, value_layer)"),
        ("MobileViTLayer*", "permuted", "patches = patches.transpose(1, 3)", "patches = patches.permute(0, 3, 2, 1)"),
        ("MobileViTSelfAttention", "scaled_before", "attention_scores = attention_scores / math.sqrt(self.attention_head_size)",
         "attention_scores = attention_scores * self.attention_head_size ** -0.5"),
    ], vision=True, hugging=True)


def timesformer():
    make = of_config("TimesformerConfig", "TimesformerForVideoClassification", image_size=16, patch_size=8, num_frames=3, hidden_size=24,
        num_hidden_layers=2,
                     num_attention_heads=3, intermediate_size=40, num_labels=7, drop_path_rate=0, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return of("timesformer", make, images(232, 16, 4, (3,)), hugging_loss, [
        ("TimesformerEmbeddings", "time_missing", "embeddings = embeddings + self.time_embeddings", "pass", "view|reshape"),
        ("TimesformerEmbeddings", "frames_and_patches", ".permute(0, 2, 1, 3)\n                .reshape(batch_size * patch_height",
         ".reshape(batch_size * patch_height"),
        ("TimesformerEmbeddings", "places_rolled", "embeddings = embeddings + self.position_embeddings",
         "embeddings = embeddings + self.position_embeddings.roll(1, 1)"),
        ("TimesformerSelfAttention@timesformer.encoder.layer.1.temporal_attention.attention", "scale_missing",
         "(query @ key.transpose(-2, -1)) * self.scale", "(query @ key.transpose(-2, -1))"),
        ("TimesformerSelfAttention@timesformer.encoder.layer.0.attention.attention", "softmax_axis", "attention_probs.softmax(dim=-1)",
         "attention_probs.softmax(dim=-2)"),
        ("TimesformerSelfAttention@timesformer.encoder.layer.1.attention.attention", "query_is_key", "qkv[0], qkv[1], qkv[2]",
         "qkv[1], qkv[1], qkv[2]", "matmul"),
        ("TimesformerLayer@timesformer.encoder.layer.0", "dense_missing", "residual_temporal = self.temporal_dense(residual_temporal)", "pass",
         "add"),
        ("TimesformerLayer@timesformer.encoder.layer.1", "temporal_norm_missing", "self.temporal_layernorm(temporal_embedding)",
         "temporal_embedding", "linear"),
        ("TimesformerLayer@timesformer.encoder.layer.0", "temporal_residual_missing",
         "temporal_embedding = hidden_states[:, 1:, :] + residual_temporal", "temporal_embedding = residual_temporal"),
    ], [
        ("TimesformerSelfAttention*", "by_sdpa", "context_layer = (attention_probs @ value)",
         "context_layer = nn.functional.scaled_dot_product_attention(query, key, value)"),
        ("TimesformerSelfAttention", "unbound", "query, key, value = qkv[0], qkv[1], qkv[2]", "query, key, value = qkv.unbind(0)"),
    ], hugging=True, ordered=True, parts=2, parallel=True)


def spectrogram():
    make = of_config("ASTConfig", "ASTForAudioClassification", hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40,
        patch_size=4,
                     frequency_stride=3, time_stride=3, max_length=19, num_mel_bins=13, num_labels=6, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    def batch():
        g = generator(233)
        return {"input_values": torch.randn(4, 19, 13, generator=g), "labels": torch.tensor([0, 5, 2, 2])}
    return of("ast", make, batch, hugging_loss, [
        ("ASTEmbeddings", "tokens_exchanged", "torch.cat((cls_tokens, distillation_tokens, embeddings), dim=1)",
         "torch.cat((distillation_tokens, cls_tokens, embeddings), dim=1)"),
        ("ASTEmbeddings", "places_missing", "embeddings = embeddings + self.position_embeddings", "pass"),
        ("ASTEmbeddings", "tokens_behind", "torch.cat((cls_tokens, distillation_tokens, embeddings), dim=1)",
         "torch.cat((embeddings, cls_tokens, distillation_tokens), dim=1)"),
        ("ASTPatchEmbeddings", "axes_not_exchanged", "input_values = input_values.transpose(2, 3)",
         "input_values = input_values.reshape(len(input_values), 1, input_values.shape[3], input_values.shape[2])", "@conv2d"),
        ("ASTAttention", "scale_doubled", "scaling=self.scaling,", "scaling=2 * self.scaling,", r"__r?mul__|mul"),
        ("ASTAttention", "output_not_projected", "attn_output = self.o_proj(attn_output)", "pass"),
        ("ASTMLP", "no_activation", "hidden_states = self.activation_fn(hidden_states)", "pass", "gelu"),
        ("ASTLayer", "residual_before", "residual = hidden_states\n        hidden_states = self.layernorm_after(hidden_states)",
         "hidden_states = self.layernorm_after(hidden_states)\n        residual = hidden_states", "__add__"),
        ("ASTLayer", "dropout_left", "hidden_states = self.mlp(hidden_states)",
         "hidden_states = nn.functional.dropout(self.mlp(hidden_states), 0.1)"),
    ], [
        ("ASTLayer*", "added_otherwise", "hidden_states = hidden_states + residual", "hidden_states = torch.add(residual, hidden_states)"),
        ("ASTEmbeddings", "added_before", "embeddings = torch.cat((cls_tokens, distillation_tokens, embeddings), dim=1)\n        embeddings = embeddings + self.position_embeddings",
         "p = self.position_embeddings\n        embeddings = torch.cat((cls_tokens + p[:, :1], distillation_tokens + p[:, 1:2], embeddings + p[:, 2:]), dim=1)"),
    ], hugging=True, ordered=True, parts=2, parallel=True)


def autoencoder():
    def make():
        import diffusers
        return diffusers.AutoencoderKL(block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=3,
                                       norm_num_groups=4, sample_size=16, layers_per_block=1)
    def batch():
        g = generator(234)
        return {"pixel_values": torch.rand(3, 3, 16, 16, generator=g) * 2 - 1, "noise": torch.randn(3, 3, 8, 8, generator=g),
            "labels": torch.ones(3, 1)}
    def loss(m, b):
        found = m.encode(b["pixel_values"]).latent_dist
        z = found.mean + found.std * b["noise"]
        made = m.decode(z).sample
        apart = (made - b["pixel_values"]).abs().sum((1, 2, 3)) * b["labels"][:, 0]
        return (apart + 1e-2 * found.kl()).mean()
    return of("autoencoder", make, batch, loss, [
        ("ResnetBlock2D@encoder.down_blocks.0.resnets.0", "residual_missing", "(input_tensor + hidden_states) / self.output_scale_factor",
         "hidden_states / self.output_scale_factor"),
        ("ResnetBlock2D@decoder.mid_block.resnets.1", "scale_of_root", "(input_tensor + hidden_states) / self.output_scale_factor",
         "(input_tensor + hidden_states) / 2 ** 0.5"),
        ("ResnetBlock2D@encoder.mid_block.resnets.0", "act_before_norm",
         "hidden_states = self.norm1(hidden_states)\n        hidden_states = self.nonlinearity(hidden_states)",
         "hidden_states = self.nonlinearity(hidden_states)\n        hidden_states = self.norm1(hidden_states)"),
        ("ResnetBlock2D@decoder.up_blocks.1.resnets.0", "norm_missing", "hidden_states = self.norm1(hidden_states)", "pass", "silu"),
        ("loss", "variance_for_deviation", "found.mean + found.std * b[\"noise\"]", "found.mean + found.var * b[\"noise\"]"),
        ("loss", "not_drawn", "z = found.mean + found.std * b[\"noise\"]", "z = found.mean"),
        ("loss", "weight_of_kl", "1e-2 * found.kl()", "found.kl()"),
        ("loss", "kl_missing", "(apart + 1e-2 * found.kl()).mean()", "apart.mean()", "pow"),
        ("loss", "squares", "(made - b[\"pixel_values\"]).abs().sum((1, 2, 3))", "(made - b[\"pixel_values\"]).square().sum((1, 2, 3))"),
        ("loss", "means", ".abs().sum((1, 2, 3))", ".abs().mean((1, 2, 3))"),
    ], [
        ("loss", "l1", "(made - b[\"pixel_values\"]).abs().sum((1, 2, 3))", "F.l1_loss(made, b['pixel_values'], reduction='none').flatten(1).sum(1)"),
        ("loss", "addcmul", "found.mean + found.std * b[\"noise\"]", "torch.addcmul(found.mean, found.std, b['noise'])"),
        ("ResnetBlock2D@encoder.mid_block.resnets.0", "added_otherwise", "(input_tensor + hidden_states) / self.output_scale_factor",
         "torch.add(hidden_states, input_tensor)"),
    ], vision=True, ordered=True, parts=3)


def convmixer():
    def make():
        from timm.models.convmixer import ConvMixer
        return ConvMixer(dim=20, depth=3, kernel_size=5, patch_size=4, num_classes=7)
    return of("convmixer", make, images(235, 24, 6), class_loss, [
        ("Residual@blocks.1.0", "residual_missing", "self.fn(x) + x", "self.fn(x)"),
        ("Residual@blocks.2.0", "residual_twice", "self.fn(x) + x", "self.fn(x) + x + x"),
        ("Residual*", "residual_averaged", "self.fn(x) + x", "(self.fn(x) + x) / 2"),
        ("Residual@blocks.0.0", "residual_detached", "self.fn(x) + x", "self.fn(x) + x.detach()", "", "back"),
        ("loss", "smoothed", "b[\"labels\"])", "b[\"labels\"], label_smoothing=0.1)"),
        ("loss", "summed", "b[\"labels\"])", "b[\"labels\"], reduction='sum')"),
    ], [
        ("Residual*", "added_in_place", "self.fn(x) + x", "self.fn(x).add_(x)"),
        ("loss", "as_logs", "F.cross_entropy(m(b[\"pixel_values\"]), b[\"labels\"])", "F.nll_loss(m(b['pixel_values']).log_softmax(1), b['labels'])"),
    ], vision=True, ordered=True, parallel=True)


def densenet():
    def make():
        from torchvision.models import DenseNet
        return DenseNet(growth_rate=6, block_config=(2, 3), num_init_features=12, bn_size=2, num_classes=7)
    return of("densenet", make, images(236, 32, 6), class_loss, [
        ("_DenseLayer@features.denseblock2.denselayer2", "relu_missing", "self.conv1(self.relu1(self.norm1(concated_features)))",
         "self.conv1(self.norm1(concated_features))"),
        ("_DenseLayer@features.denseblock2.denselayer1", "norm_behind", "self.conv1(self.relu1(self.norm1(concated_features)))",
         "self.conv1(self.norm1(self.relu1(concated_features)))"),
        ("_DenseLayer@features.denseblock2.denselayer3", "joined_in_reverse", "torch.cat(inputs, 1)", "torch.cat(inputs[::-1], 1)"),
        ("_DenseLayer@features.denseblock1.denselayer2", "conv2_without_norm", "self.conv2(self.relu2(self.norm2(bottleneck_output)))",
         "self.conv2(self.relu2(bottleneck_output))"),
        ("", "last_relu_missing", "out = F.relu(features, inplace=True)", "out = features"),
        ("", "max_pool", "F.adaptive_avg_pool2d(out, (1, 1))", "F.adaptive_max_pool2d(out, (1, 1))"),
        ("loss", "rows_weighted", "F.cross_entropy(m(b[\"pixel_values\"]), b[\"labels\"])",
         "(F.cross_entropy(m(b['pixel_values']), b['labels'], reduction='none') * torch.linspace(0.5, 1.5, len(b['labels']))).mean()"),
    ], [
        ("", "relu_apart", "out = F.relu(features, inplace=True)", "out = F.relu(features)"),
        ("", "pooled_by_mean", "F.adaptive_avg_pool2d(out, (1, 1))", "out.mean((2, 3), keepdim=True)"),
        ("_DenseLayer@features.denseblock2.denselayer2", "joined_twice", "torch.cat(inputs, 1)",
         "torch.cat([torch.cat(inputs[:1], 1), *inputs[1:]], 1)"),
    ], vision=True, ordered=True, parallel=True, void=("weight_transposed",))


def families():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    made = [codegen, olmoe, switch, mobilevit, timesformer, spectrogram] if installed("transformers") else []
    made += [autoencoder] if installed("diffusers") else []
    made += [convmixer] if installed("timm") else []
    made += [densenet] if installed("torchvision") else []
    return [make() for make in made]
