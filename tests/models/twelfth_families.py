# SPDX-License-Identifier: MIT
"""Families of the twelfth set, written before it was compared for the first time.

Of transformers, diffusers, timm and torchvision: Qwen 3, XGLM, SqueezeBERT, Nystromformer, LeViT, RegNet, PatchTSMixer, Blenderbot, GhostNet,
Res2Net, SqueezeNet, a prior of pictures, a UNet of series. Own: answers of a group, crossed features, boxes, words about pictures, two views,
molecules.
"""
import importlib.util

import torch
import torch.nn.functional as F

import twelfth_own
from families import BERT_LIKE, COMMON, LLAMA_LIKE, VOCAB, hugging_loss, tokens
from sixth_families import generator, of_config
from tenth_libraries import class_loss, images
from tenth_text import of


def qwen3():
    make = of_config("Qwen3Config", "Qwen3ForCausalLM", **COMMON, **LLAMA_LIKE, head_dim=8)
    return of("qwen3", make, tokens, hugging_loss, [
        ("Qwen3Attention@model.layers.1.self_attn", "queries_not_normed", "self.q_norm(self.q_proj(hidden_states).view(hidden_shape))",
         "self.q_proj(hidden_states).view(hidden_shape)"),
        ("Qwen3Attention@model.layers.0.self_attn", "norms_exchanged", "self.k_norm(self.k_proj(hidden_states)", "self.q_norm(self.k_proj(hidden_states)"),
        ("Qwen3DecoderLayer@model.layers.0", "residual_of_norm", "residual = hidden_states\n        hidden_states = self.post_attention_layernorm(hidden_states)",
         "hidden_states = self.post_attention_layernorm(hidden_states)\n        residual = hidden_states", "add"),
        ("Qwen3MLP@model.layers.1.mlp", "relu_for_silu", "self.act_fn(self.gate_proj(x))", "torch.relu(self.gate_proj(x))"),
        ("Qwen3RMSNorm@model.layers.1.input_layernorm", "mean_taken_away", "hidden_states.pow(2).mean(-1, keepdim=True)",
         "(hidden_states - hidden_states.mean(-1, keepdim=True)).pow(2).mean(-1, keepdim=True)"),
        ("#rotate_half", "halves_not_negated", "torch.cat((-x2, x1), dim=-1)", "torch.cat((x2, x1), dim=-1)"),
    ], [
        ("Qwen3RMSNorm*", "squares_by_product", "hidden_states.pow(2).mean(-1, keepdim=True)", "(hidden_states * hidden_states).mean(-1, keepdim=True)"),
        ("Qwen3DecoderLayer*", "residual_last", "hidden_states = residual + hidden_states", "hidden_states = hidden_states + residual"),
        ("#rotate_half", "rolled", "torch.cat((-x2, x1), dim=-1)", "torch.stack((-x2, x1), dim=-2).flatten(-2)"),
    ], hugging=True, ordered=True, parallel=True)


def xglm():
    make = of_config("XGLMConfig", "XGLMForCausalLM", **COMMON, d_model=32, ffn_dim=48, num_layers=2, attention_heads=4, max_position_embeddings=32,
        dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, layerdrop=0.0)
    return of("xglm", make, tokens, hugging_loss, [
        ("XGLMDecoderLayer@model.layers.1", "norm_exchanged", "hidden_states = self.final_layer_norm(hidden_states)",
         "hidden_states = self.self_attn_layer_norm(hidden_states)"),
        ("XGLMDecoderLayer@model.layers.0", "activation_missing", "self.activation_fn(self.fc1(hidden_states))", "self.fc1(hidden_states)"),
    ], [
        ("XGLMDecoderLayer*", "no_dropouts", "nn.functional.dropout(hidden_states, p=self.dropout, training=self.training)", "hidden_states"),
    ], hugging=True, ordered=True)


def squeezebert():
    make = of_config("SqueezeBertConfig", "SqueezeBertForMaskedLM", **COMMON, **BERT_LIKE, embedding_size=32, q_groups=2, k_groups=2, v_groups=2,
        post_attention_groups=1, intermediate_groups=2, output_groups=2)
    return of("squeezebert", make, lambda: tokens(0.6), hugging_loss, hugging=True, ordered=True)


def nystrom():
    make = of_config("NystromformerConfig", "NystromformerForMaskedLM", **COMMON, **BERT_LIKE, segment_means_seq_len=12, num_landmarks=4,
        conv_kernel_size=3)
    return of("nystrom", make, lambda: {k: v for k, v in tokens(0.6).items() if k != "attention_mask"}, hugging_loss, [
        ("NystromformerSelfAttention@nystromformer.encoder.layer.0.attention.self", "scale_not_rooted",
         "query_layer = query_layer / math.sqrt(math.sqrt(self.attention_head_size))", "query_layer = query_layer / math.sqrt(self.attention_head_size)"),
        ("NystromformerSelfAttention@nystromformer.encoder.layer.1.attention.self", "fewer_rounds", "n_iter=6", "n_iter=3",
         "matmul|__r?mul__|__r?sub__"),
        ("NystromformerSelfAttention@nystromformer.encoder.layer.1.attention.self", "other_landmarks", "torch.matmul(q_landmarks, key_layer.transpose(-1, -2))",
         "torch.matmul(k_landmarks, key_layer.transpose(-1, -2))"),
        ("NystromformerSelfAttention@nystromformer.encoder.layer.0.attention.self", "inverse_missing", "torch.matmul(kernel_1, self.iterative_inv(kernel_2))",
         "torch.matmul(kernel_1, kernel_2)"),
    ], [
        ("NystromformerSelfAttention*", "scale_in_one", "query_layer = query_layer / math.sqrt(math.sqrt(self.attention_head_size))",
         "query_layer = query_layer * self.attention_head_size ** -0.25"),
    ], hugging=True, ordered=True, void=("low", "mixed", "mixed_bfloat16"))


def levit():
    def make():
        import transformers
        c = transformers.LevitConfig(image_size=64, hidden_sizes=[16, 24, 32], num_attention_heads=[2, 2, 2], depths=[1, 1, 1], key_dim=[8, 8, 8],
            mlp_ratio=[2, 2, 2], attention_ratio=[2, 2, 2], num_labels=7, patch_size=16, stride=2)
        return transformers.LevitForImageClassification(c)
    def loss(m, b):
        return F.cross_entropy(m(b["pixel_values"]).logits, b["labels"])
    return of("levit", make, images(411, 64, 5), loss, [
        ("LevitAttention@levit.encoder.stages.0.layers.0.module", "bias_missing", " + self.get_attention_biases(hidden_state.device)", ""),
        ("LevitAttention@levit.encoder.stages.0.layers.0.module", "scale_missing", "key.transpose(-2, -1) * self.scale", "key.transpose(-2, -1)"),
        ("LevitAttention@levit.encoder.stages.1.layers.0.module", "act_missing", "self.projection(self.activation(hidden_state))", "self.projection(hidden_state)"),
    ], [
        ("LevitAttention*", "scaled_before", "query @ key.transpose(-2, -1) * self.scale", "(query * self.scale) @ key.transpose(-2, -1)"),
    ], vision=True, ordered=True)


def regnet():
    def make():
        import transformers
        c = transformers.RegNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 2], groups_width=4, num_labels=7)
        return transformers.RegNetForImageClassification(c)
    def loss(m, b):
        return F.cross_entropy(m(b["pixel_values"]).logits, b["labels"])
    return of("regnet", make, images(412, 32, 5), loss, [
        ("RegNetYLayer@regnet.encoder.stages.1.layers.1", "act_missing", "hidden_state = self.activation(hidden_state)", "pass"),
        ("RegNetYLayer@regnet.encoder.stages.0.layers.0", "residual_missing", "hidden_state += residual", "pass"),
    ], [
        ("RegNetYLayer*", "added_apart", "hidden_state += residual", "hidden_state = residual + hidden_state"),
    ], vision=True, ordered=True)


def mixer_of_series():
    def make():
        import transformers
        c = transformers.PatchTSMixerConfig(context_length=16, patch_length=4, patch_stride=4, num_input_channels=3, d_model=16, num_layers=2, dropout=0.0,
            head_dropout=0.0, prediction_length=4, mode="mix_channel")
        return transformers.PatchTSMixerForPrediction(c)
    def batch():
        g = generator(413)
        return {"past_values": torch.randn(5, 16, 3, generator=g).cumsum(1), "labels": torch.randn(5, 4, 3, generator=g)}
    def loss(m, b):
        return F.mse_loss(m(past_values=b["past_values"]).prediction_outputs, b["labels"])
    return of("tsmixer", make, batch, loss, [
        ("PatchTSMixerMLP@model.encoder.mlp_mixer_encoder.mixers.1.feature_mixer.mlp", "gelu_missing", "nn.functional.gelu(self.fc1(inputs))", "self.fc1(inputs)"),
        ("PatchTSMixerMLP@model.encoder.mlp_mixer_encoder.mixers.0.feature_mixer.mlp", "silu_for_gelu", "nn.functional.gelu(self.fc1(inputs))", "nn.functional.silu(self.fc1(inputs))"),
        ("loss", "absolute", "F.mse_loss(", "F.l1_loss("),
    ], [
        ("PatchTSMixerMLP*", "gelu_by_erf", "nn.functional.gelu(self.fc1(inputs))", "(lambda y: y * 0.5 * (1 + torch.special.erf(y / 1.4142135623730951)))(self.fc1(inputs))"),
    ], ordered=True)


def blenderbot():
    make = of_config("BlenderbotConfig", "BlenderbotForConditionalGeneration", **COMMON, d_model=32, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_position_embeddings=32, dropout=0.0,
        attention_dropout=0.0, activation_dropout=0.0, decoder_start_token_id=1)
    return of("blenderbot", make, tokens, hugging_loss, [
        ("BlenderbotEncoderLayer@model.encoder.layers.1", "norm_exchanged", "hidden_states = self.final_layer_norm(hidden_states)",
         "hidden_states = self.self_attn_layer_norm(hidden_states)"),
        ("BlenderbotDecoderLayer@model.decoder.layers.0", "activation_missing", "self.activation_fn(self.fc1(hidden_states))", "self.fc1(hidden_states)"),
    ], hugging=True, ordered=True)


def ghost():
    def make():
        import timm
        return timm.create_model("ghostnet_050", num_classes=7, drop_rate=0.0)
    return of("ghostnet", make, images(414, 32, 6), class_loss, [
        ("GhostBottleneck@blocks.1.0", "shortcut_missing", "x += self.shortcut(shortcut)", "pass"),
        ("GhostModule@blocks.0.0.ghost1", "joined_in_reverse", "torch.cat([x1, x2], dim=1)", "torch.cat([x2, x1], dim=1)"),
    ], [
        ("GhostBottleneck*", "added_apart", "x += self.shortcut(shortcut)", "x = x + self.shortcut(shortcut)"),
    ], vision=True, ordered=True)


def res2net():
    def make():
        from timm.models.res2net import Bottle2neck
        from timm.models.resnet import ResNet
        return ResNet(Bottle2neck, [1, 1, 1, 1], base_width=8, cardinality=1, block_args={"scale": 4}, num_classes=7)
    return of("res2net", make, images(415, 32, 6), class_loss, [
        ("Bottle2neck@layer2.0", "relu_missing", "out = self.bn1(out)\n        out = self.relu(out)", "out = self.bn1(out)"),
        ("Bottle2neck@layer3.0", "joined_in_reverse", "torch.cat(spo, 1)", "torch.cat(spo[::-1], 1)"),
        ("Bottle2neck@layer1.0", "residual_missing", "out += shortcut", "pass", "relu"),
    ], [
        ("Bottle2neck*", "chunked", "torch.split(out, self.width, 1)", "torch.chunk(out, self.scale, 1)"),
        ("Bottle2neck*", "added_apart", "out += shortcut", "out = torch.add(shortcut, out)"),
    ], vision=True, ordered=True)


def squeezenet():
    def make():
        from torchvision.models import squeezenet1_1
        return squeezenet1_1(num_classes=7, dropout=0.0)
    return of("squeezenet", make, images(416, 48, 3), class_loss, [
        ("Fire@features.4", "act_missing", "self.squeeze_activation(self.squeeze(x))", "self.squeeze(x)"),
        ("Fire@features.6", "expand_of_expand", "self.expand3x3_activation(self.expand3x3(x))", "self.expand3x3(x)"),
        ("Fire@features.7", "joined_in_reverse", "[self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))]",
         "[self.expand3x3_activation(self.expand3x3(x)), self.expand1x1_activation(self.expand1x1(x))]"),
    ], [
        ("Fire*", "activated_once", "[self.expand1x1_activation(self.expand1x1(x)), self.expand3x3_activation(self.expand3x3(x))], 1\n        )",
         "[self.expand1x1(x), self.expand3x3(x)], 1\n        ).relu()"),
    ], vision=True, ordered=True, parallel=True)


def prior():
    def make():
        import diffusers
        return diffusers.PriorTransformer(num_attention_heads=2, attention_head_dim=8, num_layers=2, embedding_dim=12, num_embeddings=5, additional_embeddings=4)
    def batch():
        g = generator(417)
        return {"noisy": torch.randn(4, 12, generator=g), "asked": torch.randn(4, 12, generator=g), "words": torch.randn(4, 5, 12, generator=g),
            "t": torch.tensor([3, 50, 700, 20]), "labels": torch.randn(4, 12, generator=g)}
    def loss(m, b):
        made = m(b["noisy"], b["t"], proj_embedding=b["asked"], encoder_hidden_states=b["words"]).predicted_image_embedding
        return F.mse_loss(made, b["labels"]) + 0.1 * (1 - F.cosine_similarity(made, b["labels"])).mean()
    return of("prior", make, batch, loss, [
        ("loss", "asked_of_next", "proj_embedding=b[\"asked\"]", "proj_embedding=b[\"asked\"].roll(1, 0)", "@linear|roll"),
        ("loss", "cosine_sign", "(1 - F.cosine_similarity(made, b[\"labels\"]))", "(1 + F.cosine_similarity(made, b[\"labels\"]))"),
        ("loss", "times_not_given", "b[\"t\"], proj", "torch.zeros_like(b[\"t\"]), proj", r"zeros_like|@\w*mul\w*|@to|@expand|@__getitem__"),
    ], [
        ("loss", "cosine_by_hand", "F.cosine_similarity(made, b[\"labels\"])", "(F.normalize(made, dim=1) * F.normalize(b['labels'], dim=1)).sum(1)"),
    ], ordered=True)


def unet_of_series():
    def make():
        import diffusers
        return diffusers.UNet1DModel(sample_size=16, in_channels=3, out_channels=3, block_out_channels=(32, 32), extra_in_channels=64,
            down_block_types=("DownBlock1DNoSkip", "DownBlock1D"), up_block_types=("UpBlock1D", "UpBlock1DNoSkip"), layers_per_block=1)
    def batch():
        g = generator(418)
        return {"pixel_values": torch.randn(4, 3, 16, generator=g), "t": torch.tensor([3, 50, 700, 20]), "labels": torch.randn(4, 3, 16, generator=g)}
    def loss(m, b):
        return F.mse_loss(m(b["pixel_values"], b["t"]).sample, b["labels"])
    return of("unet1d", make, batch, loss, [
        ("loss", "summed", "F.mse_loss(m(b[\"pixel_values\"], b[\"t\"]).sample, b[\"labels\"])",
         "F.mse_loss(m(b[\"pixel_values\"], b[\"t\"]).sample, b[\"labels\"], reduction='sum')"),
        ("loss", "predicts_noise_away", "b[\"labels\"])", "b[\"pixel_values\"] - b[\"labels\"])"),
    ], [
        ("loss", "mean_of_squares", "F.mse_loss(m(b[\"pixel_values\"], b[\"t\"]).sample, b[\"labels\"])",
         "(m(b['pixel_values'], b['t']).sample - b['labels']).pow(2).mean()"),
    ], ordered=True)


def families():
    found = []
    def add(package, *makers):
        if importlib.util.find_spec(package):
            found.extend(make() for make in makers)
    add("transformers", qwen3, xglm, squeezebert, nystrom, levit, regnet, mixer_of_series, blenderbot)
    add("timm", ghost, res2net)
    add("torchvision", squeezenet)
    add("diffusers", prior, unet_of_series)
    return found + twelfth_own.families()
