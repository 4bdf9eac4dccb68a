# SPDX-License-Identifier: MIT
"""Families of the ninth set, written by somebody who had not read the rules.

Of transformers, diffusers, timm and torchvision: OLMo, StarCoder 2, EXAONE 4, GPT-Neo, Granite MoE, RoFormer,
UMT5, Speech2Text, SigLIP, PVT v2, a decision transformer, PixArt, gMLP, LR-ASPP. Own: a GPT with fused qkv and
tied weights, a recurrent actor and critic, Barlow twins, a transformer of columns, learning to learn, graph
convolutions, items in sequence, two cycles of images, modulated convolutions, a tracker, sets, a transducer,
tasks with gates, a mean teacher, convolutions by FFT, cells by hand, spikes, clips in mixed precision.
Loops: RMSprop, Adam with decay in the gradient, LARS and Lion by hand, Adagrad, a schedule of rates, groups of
parameters, a scaler of gradients, clipping by value, micro batches, a teacher that follows.
"""
import importlib.util

import torch
import torch.nn.functional as F

import ninth_own as own
from families import BERT_LIKE, LLAMA_LIKE, VOCAB, Family, language, pixels
from sixth_families import generator, of_config, pictures


# ---- of libraries ------------------------------------------------------------------------

def language_models():
    yield language("olmo", "OlmoConfig", "OlmoForCausalLM", **LLAMA_LIKE, clip_qkv=1.5)
    yield language("starcoder2", "Starcoder2Config", "Starcoder2ForCausalLM", **LLAMA_LIKE)
    yield language("exaone4", "Exaone4Config", "Exaone4ForCausalLM", **LLAMA_LIKE, head_dim=8, sliding_window=5,
                   layer_types=["sliding_attention", "full_attention"])
    yield language("gpt_neo", "GPTNeoConfig", "GPTNeoForCausalLM", hidden_size=32, num_layers=2, num_heads=4,
                   intermediate_size=48, max_position_embeddings=32, attention_types=[[["global", "local"], 1]],
                   window_size=5, resid_dropout=0.0, embed_dropout=0.0, attention_dropout=0.0)
    yield language("granitemoe", "GraniteMoeConfig", "GraniteMoeForCausalLM", **LLAMA_LIKE, num_local_experts=4,
                   num_experts_per_tok=2, embedding_multiplier=6.0, residual_multiplier=0.5, logits_scaling=2.0,
                   attention_multiplier=0.25)
    yield language("roformer", "RoFormerConfig", "RoFormerForMaskedLM", 0.7, **BERT_LIKE, embedding_size=32)
    yield language("umt5", "UMT5Config", "UMT5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=48, num_layers=2,
                   num_heads=4, dropout_rate=0.0, decoder_start_token_id=0)


def listener():
    make = of_config("Speech2TextConfig", "Speech2TextForConditionalGeneration", vocab_size=VOCAB, d_model=32,
                     encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4,
                     encoder_ffn_dim=48, decoder_ffn_dim=48, dropout=0.0, activation_dropout=0.0,
                     attention_dropout=0.0, conv_channels=24, num_conv_layers=2, input_feat_per_channel=10,
                     max_source_positions=40, max_target_positions=16, pad_token_id=0, bos_token_id=1,
                     eos_token_id=2, decoder_start_token_id=1)
    def batch():
        g = generator(131)
        mask = torch.ones(3, 32, dtype=torch.int64)
        mask[1, 24:] = 0
        labels = torch.randint(3, VOCAB, (3, 8), generator=g)
        labels[1, 6:] = -100
        return {"input_features": torch.randn(3, 32, 10, generator=g), "attention_mask": mask, "labels": labels}
    return Family("speech2text", make, batch, lambda m, b: m(**b).loss, hugging=True)


def pairs():
    def make(attention="eager"):
        import transformers as t
        keys = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
        c = t.SiglipConfig(text_config={**keys, "vocab_size": VOCAB, "max_position_embeddings": 16, "projection_size": 32,
                                        "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
                           vision_config={**keys, "image_size": 16, "patch_size": 4})
        c._attn_implementation = c.text_config._attn_implementation = c.vision_config._attn_implementation = attention
        return t.SiglipModel(c)
    def batch():
        g = generator(132)
        return {"input_ids": torch.randint(3, VOCAB, (4, 8), generator=g),
                "pixel_values": torch.randn(4, 3, 16, 16, generator=g), "labels": 2 * torch.eye(4) - 1}
    def loss(m, b):
        scores = m(input_ids=b["input_ids"], pixel_values=b["pixel_values"]).logits_per_text
        return -F.logsigmoid(b["labels"] * scores).sum(-1).mean()
    return Family("siglip", make, batch, loss, hugging=True)


def decisions():
    make = of_config("DecisionTransformerConfig", "DecisionTransformerModel", state_dim=6, act_dim=3, hidden_size=32,
                     max_ep_len=32, n_layer=2, n_head=4, n_positions=64, resid_pdrop=0.0, embd_pdrop=0.0,
                     attn_pdrop=0.0, vocab_size=1)
    def batch():
        g = generator(133)
        mask = torch.ones(4, 6, dtype=torch.int64)
        mask[2, :2] = 0
        return {"states": torch.randn(4, 6, 6, generator=g), "actions": torch.randn(4, 6, 3, generator=g).tanh(),
                "rewards": torch.randn(4, 6, 1, generator=g), "returns_to_go": torch.rand(4, 6, 1, generator=g) * 5,
                "timesteps": torch.arange(6).expand(4, 6).contiguous(), "attention_mask": mask,
                "labels": torch.randn(4, 6, 3, generator=g).tanh()}
    def loss(m, b):
        b = dict(b)
        wanted, live = b.pop("labels"), b["attention_mask"].reshape(-1) > 0
        made = m(**b).action_preds
        return F.mse_loss(made.reshape(-1, 3)[live], wanted.reshape(-1, 3)[live])
    return Family("decisions", make, batch, loss)


def pixart():
    def make():
        import diffusers
        return diffusers.PixArtTransformer2DModel(
            num_attention_heads=4, attention_head_dim=8, in_channels=4, out_channels=4, num_layers=2, sample_size=8,
            patch_size=2, cross_attention_dim=32, caption_channels=20, norm_num_groups=4, use_additional_conditions=False)
    def batch():
        g = generator(134)
        x, noise = (torch.randn(3, 4, 8, 8, generator=g) for _ in range(2))
        mask = torch.ones(3, 5)
        mask[1, 3:] = 0
        return {"pixel_values": 0.8 * x + 0.6 * noise, "words": torch.randn(3, 5, 20, generator=g), "mask": mask,
                "t": torch.tensor([30, 400, 77]), "labels": noise}
    def loss(m, b):
        made = m(b["pixel_values"], encoder_hidden_states=b["words"], timestep=b["t"],
                 encoder_attention_mask=b["mask"]).sample
        return F.mse_loss(made, b["labels"])
    return Family("pixart", make, batch, loss)


def of_timm():
    def make():
        from timm.models.mlp_mixer import MlpMixer, SpatialGatingBlock
        from timm.layers import GatedMlp
        return MlpMixer(num_classes=10, img_size=16, patch_size=4, num_blocks=2, embed_dim=24, mlp_ratio=4,
                        block_layer=SpatialGatingBlock, mlp_layer=GatedMlp)
    return Family("gmlp", make, lambda: pixels(size=16, batch=5), lambda m, b: F.cross_entropy(
        m(b["pixel_values"]), b["labels"], label_smoothing=0.1), vision=True)


def of_torchvision():
    def make():
        from torchvision.models import MobileNetV2
        from torchvision.models.segmentation.lraspp import LRASPP
        from torchvision.models._utils import IntermediateLayerGetter
        body = MobileNetV2(inverted_residual_setting=[[1, 8, 1, 1], [3, 16, 2, 2], [3, 24, 1, 2]]).features
        body = IntermediateLayerGetter(body, {"3": "low", "4": "high"})
        return LRASPP(body, 16, 24, 5, 16)
    def batch():
        g = generator(135)
        y = torch.randint(0, 5, (4, 32, 32), generator=g)
        y[:, :2] = 255
        return {"pixel_values": torch.randn(4, 3, 32, 32, generator=g), "labels": y}
    return Family("lraspp", make, batch, lambda m, b: F.cross_entropy(
        m(b["pixel_values"])["out"], b["labels"], ignore_index=255), vision=True)


def libraries():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    if installed("transformers"):
        yield from language_models()
        yield listener()
        yield pairs()
        yield pictures("pvtv2", "PvtV2Config", "PvtV2ForImageClassification", num_encoder_blocks=2,
                       depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32], patch_sizes=[7, 3], strides=[4, 2],
                       num_attention_heads=[2, 4], mlp_ratios=[2, 2], drop_path_rate=0.0, qkv_bias=True)
        yield decisions()
    if installed("diffusers"):
        yield pixart()
    if installed("timm"):
        yield of_timm()
    if installed("torchvision"):
        yield of_torchvision()


def families():
    return [*libraries(), own.small_gpt(), own.characters(), own.long_text(), own.transducer(), own.actor(), own.meta(), own.twins(),
            own.cycle(), own.styled(), own.tracker(), own.spiking(), own.clips(), own.mean_teacher(), own.columns(), own.graph(),
            own.pooled(), own.items(), own.tasks()]
