# SPDX-License-Identifier: MIT
"""Families of the eleventh set, kept back until the rules were done; written by somebody who had not read them.

Of transformers, diffusers, timm and torchvision: SmolLM 3, MobileBERT, a conditioned UNet, CaiT, a residual network of
video. Own: windows of words with mixed samples, neighbours of users and items, quantiles of chosen series, a memory of
earlier text, ternary weights, a memory that is a matrix, matching by transport, soft experts, optical flow, points
that may be turned, lines of letters, functions from few examples.
"""
import importlib.util

import torch
import torch.nn.functional as F

import eleventh_own
import eleventh_see
from families import BERT_LIKE, COMMON, LLAMA_LIKE, hugging_loss, tokens
from sixth_families import generator, of_config
from tenth_libraries import class_loss, images
from tenth_text import of


def smollm():
    make = of_config("SmolLM3Config", "SmolLM3ForCausalLM", **COMMON, **{**LLAMA_LIKE, "num_hidden_layers": 4}, no_rope_layers=[1, 1, 1, 0],
        tie_word_embeddings=True)
    return of("smollm3", make, tokens, hugging_loss, [
        ("SmolLM3Attention", "rope_where_none", "if self.use_rope:", "if True:",
         r"__r?mul__|cat|neg|__neg__|__add__|__getitem__|unsqueeze|matmul|transpose"),
        ("SmolLM3Attention@model.layers.1.self_attn", "no_rope", "if self.use_rope:", "if False:",
         r"__r?mul__|cat|neg|__neg__|__add__|__getitem__|unsqueeze|matmul|transpose"),
        ("SmolLM3Attention@model.layers.2.self_attn", "sine_and_cosine", "cos, sin = position_embeddings", "sin, cos = position_embeddings",
         r"__r?mul__|unsqueeze"),
        ("SmolLM3MLP@model.layers.1.mlp", "gate_and_up", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)",
         "self.act_fn(self.up_proj(x)) * self.gate_proj(x)"),
        ("SmolLM3MLP@model.layers.2.mlp", "gelu_for_silu", "self.act_fn(self.gate_proj(x))", "torch.nn.functional.gelu(self.gate_proj(x))"),
        ("SmolLM3DecoderLayer@model.layers.3", "norm_of_other", "hidden_states = self.post_attention_layernorm(hidden_states)",
         "hidden_states = self.input_layernorm(hidden_states)"),
        ("SmolLM3DecoderLayer@model.layers.1", "norm_left_out", "hidden_states = self.input_layernorm(hidden_states)", "pass", "linear"),
        ("SmolLM3RMSNorm@model.norm", "weight_from_one", "self.weight * hidden_states", "(1.0 + self.weight) * hidden_states"),
        ("SmolLM3Attention@model.layers.0.self_attn", "scale_of_model", "scaling=self.scaling,", "scaling=self.config.hidden_size ** -0.5,",
         r"__r?mul__|mul"),
    ], [
        ("SmolLM3MLP*", "product_turned", "self.act_fn(self.gate_proj(x)) * self.up_proj(x)", "self.up_proj(x) * self.act_fn(self.gate_proj(x))"),
        ("SmolLM3Attention*", "output_viewed", "attn_output.reshape(*input_shape, -1).contiguous()", "attn_output.flatten(-2)"),
    ], hugging=True, ordered=True, parallel=True)


def mobilebert():
    keys = {k: v for k, v in BERT_LIKE.items() if k != "num_attention_heads"}
    make = of_config("MobileBertConfig", "MobileBertForMaskedLM", **COMMON, **keys, num_attention_heads=2, embedding_size=24,
        intra_bottleneck_size=16,
                     num_feedforward_networks=2)
    return of("mobilebert", make, lambda: tokens(0.7), hugging_loss, [
        ("MobileBertSelfAttention", "scale_of_all_heads", "scaling=self.scaling,", "scaling=self.all_head_size ** -0.5,", r"__r?mul__|mul"),
        ("MobileBertSelfAttention@mobilebert.encoder.layer.0.attention.self", "values_of_keys", "self.value(value_tensor)",
         "self.value(value_tensor * 0.5)"),
        ("MobileBertSelfOutput", "residual_missing", "self.LayerNorm(layer_outputs + residual_tensor)", "self.LayerNorm(layer_outputs)"),
        ("MobileBertOutput", "residual_of_layer", "self.LayerNorm(layer_output + residual_tensor_1)\n            layer_output = self.bottleneck",
         "self.LayerNorm(layer_output * 2 + residual_tensor_1)\n            layer_output = self.bottleneck"),
        ("FFNLayer@mobilebert.encoder.layer.0.ffn.0", "residual_of_itself", "self.output(intermediate_output, hidden_states)",
         "self.output(intermediate_output, hidden_states * 0)"),
        ("BottleneckLayer@mobilebert.encoder.layer.1.bottleneck.attention", "norm_missing", "layer_input = self.LayerNorm(layer_input)", "pass"),
        ("NoNorm@mobilebert.encoder.layer.0.output.LayerNorm", "norm_after_all", "input_tensor * self.weight + self.bias",
         "torch.nn.functional.layer_norm(input_tensor, input_tensor.shape[-1:], self.weight, self.bias)"),
    ], [
        ("NoNorm*", "addcmul", "input_tensor * self.weight + self.bias", "torch.addcmul(self.bias, input_tensor, self.weight)"),
        ("MobileBertSelfAttention*", "output_flat", "attn_output.reshape(*input_shape, -1).contiguous()", "attn_output.flatten(2)"),
    ], hugging=True, ordered=True, parallel=True)


def conditioned():
    def make():
        import diffusers
        return diffusers.UNet2DConditionModel(sample_size=8, in_channels=3, out_channels=3, block_out_channels=(8, 16),
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
                                              up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), layers_per_block=1, cross_attention_dim=12, attention_head_dim=4, norm_num_groups=4)
    def batch():
        g = generator(341)
        x, noise = (torch.randn(3, 3, 8, 8, generator=g) for _ in range(2))
        return {"pixel_values": 0.7 * x + 0.7 * noise, "words": torch.randn(3, 5, 12, generator=g), "t": torch.tensor([3, 500, 77]), "labels": noise,
            "gain": torch.tensor([1.0, 0.3, 2.0])}
    def loss(m, b):
        made = m(b["pixel_values"], b["t"], b["words"]).sample
        each = F.mse_loss(made, b["labels"], reduction="none").mean((1, 2, 3))
        return (each * b["gain"].clamp(max=1.5)).mean()
    return of("conditioned", make, batch, loss, [
        ("GEGLU@down_blocks.0.attentions.0.transformer_blocks.0.ff.net.0", "gate_first", "hidden_states, gate = hidden_states.chunk(2, dim=-1)",
         "gate, hidden_states = hidden_states.chunk(2, dim=-1)", r"gelu|mul"),
        ("GEGLU@up_blocks.1.attentions.0.transformer_blocks.0.ff.net.0", "gelu_missing", "hidden_states * self.gelu(gate)", "hidden_states * gate"),
        ("BasicTransformerBlock@down_blocks.0.attentions.0.transformer_blocks.0", "residual_missing", "hidden_states = ff_output + hidden_states",
         "hidden_states = ff_output"),
        ("BasicTransformerBlock@up_blocks.1.attentions.0.transformer_blocks.0", "norm_of_other", "norm_hidden_states = self.norm3(hidden_states)",
         "norm_hidden_states = self.norm1(hidden_states)"),
        ("ResnetBlock2D@down_blocks.1.resnets.0", "time_missing", "hidden_states = hidden_states + temb", "pass", "add"),
        ("ResnetBlock2D@up_blocks.0.resnets.0", "time_without_act", "temb = self.nonlinearity(temb)", "pass", "linear"),
        ("ResnetBlock2D@up_blocks.1.resnets.1", "shortcut_missing", "(input_tensor + hidden_states) / self.output_scale_factor",
         "(input_tensor * 0 + hidden_states) / self.output_scale_factor"),
        ("ResnetBlock2D@mid_block.resnets.0", "norm_missing", "hidden_states = self.norm1(hidden_states)", "pass", "silu"),
        ("loss", "gain_not_clamped", "b[\"gain\"].clamp(max=1.5)", "b[\"gain\"]"),
        ("loss", "times_halved", "m(b[\"pixel_values\"], b[\"t\"], b[\"words\"])", "m(b[\"pixel_values\"], b[\"t\"] // 2, b[\"words\"])",
         r"floordiv|floor_divide|expand|div|@mul|@__mul__|@to|@float"),
        ("loss", "words_dropped", "m(b[\"pixel_values\"], b[\"t\"], b[\"words\"])",
         "m(b[\"pixel_values\"], b[\"t\"], torch.zeros_like(b[\"words\"]))", r"zeros_like|\w+|@linear"),
        ("loss", "gain_missing", "(each * b[\"gain\"].clamp(max=1.5)).mean()", "each.mean()"),
    ], [
        ("loss", "squares", "F.mse_loss(made, b[\"labels\"], reduction=\"none\").mean((1, 2, 3))", "(made - b['labels']).pow(2).flatten(1).mean(1)"),
        ("loss", "minimum", "b[\"gain\"].clamp(max=1.5)", "torch.minimum(b['gain'], torch.tensor(1.5))"),
        ("GEGLU*", "split", "hidden_states.chunk(2, dim=-1)", "hidden_states.split(hidden_states.shape[-1] // 2, -1)"),
    ], vision=True, ordered=True, parts=3)


def cait():
    def make():
        from timm.models.cait import Cait
        return Cait(img_size=16, patch_size=4, num_classes=7, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2, depth_token_only=1, init_values=0.3)
    return of("cait", make, images(342, 16, 5), class_loss, [
        ("TalkingHeadAttn@blocks.1.attn", "heads_not_mixed", "attn = self.proj_w(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)", "pass"),
        ("TalkingHeadAttn@blocks.0.attn", "mixed_behind", "attn = self.proj_l(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)",
         "attn = self.proj_w(attn.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)"),
        ("TalkingHeadAttn@blocks.1.attn", "scale_missing", "qkv[0] * self.scale, qkv[1], qkv[2]", "qkv[0], qkv[1], qkv[2]"),
        ("TalkingHeadAttn@blocks.0.attn", "softmax_axis", "attn.softmax(dim=-1)", "attn.softmax(dim=-2)"),
        ("LayerScaleBlock@blocks.1", "scale_of_other", "self.gamma_2 * self.mlp", "self.gamma_1 * self.mlp"),
        ("LayerScaleBlock@blocks.0", "scale_missing_again", "self.gamma_1 * self.attn(self.norm1(x))", "self.attn(self.norm1(x))"),
        ("LayerScaleBlockClassAttn", "reads_patches_alone", "self.norm1(u)", "self.norm1(x)"),
        ("LayerScaleBlockClassAttn", "token_behind", "torch.cat((x_cls, x), dim=1)", "torch.cat((x, x_cls), dim=1)"),
        ("ClassAttn", "query_of_last", "self.q(x[:, 0])", "self.q(x[:, -1])"),
        ("loss", "smoothed", "b[\"labels\"])", "b[\"labels\"], label_smoothing=0.1)"),
    ], [
        ("TalkingHeadAttn*", "einsum", "q @ k.transpose(-2, -1)", "torch.einsum('bhid,bhjd->bhij', q, k)"),
        ("LayerScaleBlock*", "scaled_otherwise", "self.gamma_2 * self.mlp(self.norm2(x))", "self.mlp(self.norm2(x)).mul(self.gamma_2)"),
        ("ClassAttn", "by_hand", "x_cls = torch.nn.functional.scaled_dot_product_attention(\n                q, k, v,\n                dropout_p=self.attn_drop.p if self.training else 0.,\n            )",
         "x_cls = ((q * self.scale) @ k.mT).softmax(-1) @ v"),
    ], vision=True, ordered=True, parts=5, parallel=True)


def video():
    def make():
        from torchvision.models.video.resnet import BasicBlock, BasicStem, Conv2Plus1D, Conv3DSimple, VideoResNet
        return VideoResNet(BasicBlock, [Conv3DSimple, Conv2Plus1D, Conv3DSimple, Conv3DSimple], [1, 1, 1, 1], BasicStem, num_classes=7)
    def batch():
        g = generator(343)
        return {"pixel_values": torch.randn(3, 3, 4, 24, 24, generator=g), "labels": torch.tensor([6, 0, 3])}
    return of("video", make, batch, class_loss, [
        ("BasicBlock@layer2.0", "residual_missing", "out += residual", "pass", "relu"),
        ("BasicBlock@layer3.0", "not_down", "residual = self.downsample(x)", "residual = self.downsample(x) * 0.5", "iadd|add"),
        ("BasicBlock@layer1.0", "relu_before_sum", "out += residual\n        out = self.relu(out)",
         "out = self.relu(out)\n        out = out + residual"),
        ("BasicBlock@layer4.0", "relu_missing", "out = self.relu(out)", "pass", "adaptive_avg_pool3d"),
        ("loss", "of_first", "F.cross_entropy(m(b[\"pixel_values\"]), b[\"labels\"])", "F.cross_entropy(m(b['pixel_values'])[:2], b['labels'][:2])"),
        ("loss", "tempered", "m(b[\"pixel_values\"]), b", "m(b[\"pixel_values\"]) / 3, b"),
    ], [
        ("BasicBlock*", "sum_apart", "out += residual", "out = residual + out"),
        ("", "mean_pool", "x = self.avgpool(x)", "x = x.mean((2, 3, 4), keepdim=True)"),
    ], vision=False)


def families():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    made = [smollm, mobilebert] if installed("transformers") else []
    made += [conditioned] if installed("diffusers") else []
    made += [cait] if installed("timm") else []
    made += [video] if installed("torchvision") else []
    return [*eleventh_own.families(), *eleventh_see.families(), *(make() for make in made)]
