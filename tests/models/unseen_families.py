# SPDX-License-Identifier: MIT
"""Families of the third set, which was written and scored before any rule was changed for it.

They come from other libraries and other lines of research than those of families.py: language
models with latent or parallel attention, a state space model, two towers, speech, segmentation,
diffusion, graphs, and own code in the manner of Megatron-LM, recommenders and renderers.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import (COMMON, VOCAB, Family, class_loss, hugging_loss, image, language, tokens)


# ---- language models of transformers ------------------------------------------------

SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 40}


def language_models():
    yield language("qwen3_moe", "Qwen3MoeConfig", "Qwen3MoeForCausalLM", head_dim=8, num_experts=4,
                   num_experts_per_tok=2, moe_intermediate_size=24, num_key_value_heads=2, **SMALL)
    yield language("deepseek", "DeepseekV3Config", "DeepseekV3ForCausalLM", q_lora_rank=12,
                   kv_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8,
                   n_routed_experts=4, num_experts_per_tok=2, n_group=2, topk_group=1,
                   moe_intermediate_size=24, first_k_dense_replace=1, num_key_value_heads=4,
                   **SMALL)
    yield language("falcon", "FalconConfig", "FalconForCausalLM", hidden_size=32,
                   num_hidden_layers=2, num_attention_heads=4, ffn_hidden_size=48, alibi=False,
                   hidden_dropout=0.0, attention_dropout=0.0)
    yield language("mamba", "MambaConfig", "MambaForCausalLM", hidden_size=24, num_hidden_layers=2,
                   state_size=8, time_step_rank=4, use_mambapy=False)
    yield language("deberta", "DebertaV2Config", "DebertaV2ForMaskedLM", 0.7, relative_attention=True,
                   pos_att_type=["c2p", "p2c"], max_relative_positions=16, position_buckets=8,
                   hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                   type_vocab_size=0, **SMALL)
    yield language("cohere", "CohereConfig", "CohereForCausalLM", num_key_value_heads=2,
                   logit_scale=0.25, use_qk_norm=True, **SMALL)


def clip():
    def make(attention="eager"):
        import transformers
        shared = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
                  "num_attention_heads": 4}
        c = transformers.CLIPConfig(
            text_config={**shared, **COMMON, "max_position_embeddings": 16, "eos_token_id": 95},
            vision_config={**shared, "image_size": 32, "patch_size": 8}, projection_dim=16)
        c._attn_implementation = attention
        c.text_config._attn_implementation = c.vision_config._attn_implementation = attention
        return transformers.CLIPModel(c)

    def batch():
        g = torch.Generator().manual_seed(21)
        ids = torch.randint(3, 95, (4, 10), generator=g)
        ids[:, -1] = 95
        return {"input_ids": ids, "pixel_values": torch.randn(4, 3, 32, 32, generator=g),
                "labels": torch.arange(4)}

    def loss(m, b):
        out = m(input_ids=b["input_ids"], pixel_values=b["pixel_values"])
        return (F.cross_entropy(out.logits_per_image, b["labels"]) +
                F.cross_entropy(out.logits_per_text, b["labels"])) / 2
    return Family("clip", make, batch, loss, vision=True, hugging=True)


def speech():
    def make(attention="eager"):
        import transformers
        c = transformers.Wav2Vec2Config(
            vocab_size=24, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
            num_attention_heads=4, conv_dim=(16, 16), conv_stride=(5, 4), conv_kernel=(10, 8),
            num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4,
            hidden_dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, feat_proj_dropout=0.0,
            final_dropout=0.0, layerdrop=0.0, mask_time_prob=0.0, apply_spec_augment=False,
            ctc_loss_reduction="mean", pad_token_id=0)
        c._attn_implementation = attention
        return transformers.Wav2Vec2ForCTC(c)

    def batch():
        g = torch.Generator().manual_seed(22)
        return {"pixel_values": torch.randn(3, 600, generator=g),
                "labels": torch.randint(1, 24, (3, 6), generator=g)}
    return Family("wav2vec2", make, batch,
                  lambda m, b: m(input_values=b["pixel_values"], labels=b["labels"]).loss,
                  hugging=True)


def segmentation():
    def make():
        import transformers
        c = transformers.SegformerConfig(
            num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1], hidden_sizes=[16, 32],
            patch_sizes=[7, 3], strides=[4, 2], num_attention_heads=[1, 2], mlp_ratios=[2, 2],
            decoder_hidden_size=24, num_labels=5, hidden_dropout_prob=0.0, drop_path_rate=0.0,
            attention_probs_dropout_prob=0.0, classifier_dropout_prob=0.0)
        return transformers.SegformerForSemanticSegmentation(c)

    def batch():
        g = torch.Generator().manual_seed(23)
        return {"pixel_values": torch.randn(3, 3, 32, 32, generator=g),
                "labels": torch.randint(0, 5, (3, 32, 32), generator=g)}
    return Family("segformer", make, batch,
                  lambda m, b: m(pixel_values=b["pixel_values"], labels=b["labels"]).loss,
                  vision=True)


# ---- images ---------------------------------------------------------------------------

def vision_models():
    def hub(name, **keys):
        import torchvision
        return lambda: getattr(torchvision.models, name)(weights=None, num_classes=10, **keys)

    def timm_model(name, **keys):
        import timm
        return lambda: timm.create_model(name, num_classes=10, **keys)
    yield image("shufflenet", hub("shufflenet_v2_x0_5"), size=40)
    yield image("eva", timm_model("eva02_tiny_patch14_224", img_size=28, patch_size=7, embed_dim=32,
                                  depth=2, num_heads=4), size=28)
    yield image("cait", timm_model("cait_xxs24_224", img_size=32, patch_size=8, embed_dim=32,
                                   depth=2, num_heads=4, depth_token_only=1), size=32)


def diffusion():
    def make():
        import diffusers
        return diffusers.UNet2DConditionModel(
            sample_size=16, in_channels=3, out_channels=3, layers_per_block=1,
            block_out_channels=(16, 32), down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"), cross_attention_dim=12,
            attention_head_dim=4, norm_num_groups=4)

    def batch():
        g = torch.Generator().manual_seed(24)
        x, noise = (torch.randn(3, 3, 16, 16, generator=g) for _ in range(2))
        return {"pixel_values": 0.8 * x + 0.6 * noise, "t": torch.tensor([10, 300, 700]),
                "text": torch.randn(3, 7, 12, generator=g), "labels": noise}

    def loss(m, b):
        out = m(b["pixel_values"], b["t"], encoder_hidden_states=b["text"]).sample
        return F.mse_loss(out, b["labels"])
    return Family("diffusion", make, batch, loss, vision=True)


# ---- graphs, with torch_geometric -------------------------------------------------------

def graphs():
    def make():
        from torch_geometric.nn import GCNConv, SAGEConv, TransformerConv, global_mean_pool

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.c1, self.c2 = GCNConv(12, 16), SAGEConv(16, 16)
                self.c3 = TransformerConv(16, 8, heads=2)
                self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)
                self.act = nn.ReLU()

            def forward(self, x, edges, graph):
                x = self.act(self.c1(x, edges))
                x = x + self.act(self.norm(self.c2(x, edges)))
                return self.head(global_mean_pool(self.c3(x, edges), graph))
        return Net()

    def batch():
        g = torch.Generator().manual_seed(25)
        return {"pixel_values": torch.rand(48, 12, generator=g),
                "edges": torch.randint(0, 48, (2, 200), generator=g),
                "graph": torch.arange(48) // 8, "labels": torch.randint(0, 5, (6,), generator=g)}
    return Family("geometric", make, batch, lambda m, b: F.cross_entropy(
        m(b["pixel_values"], b["edges"], b["graph"]), b["labels"]))


# ---- own code ---------------------------------------------------------------------------

class CoreAttention(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.heads, self.scale = heads, 1.0

    def forward(self, q, k, v, mask):
        b, n, h, d = q.shape
        q, k, v = (t.permute(0, 2, 1, 3) for t in (q, k, v))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (math.sqrt(d) * self.scale)
        scores = scores * self.scale
        scores = scores.masked_fill(mask, -10000.0)
        probs = torch.softmax(scores.float(), -1).type_as(v)
        return torch.matmul(probs, v).permute(0, 2, 1, 3).reshape(b, n, h * d)


class ParallelLayer(nn.Module):
    """A layer in the manner of Megatron-LM: qkv in one matrix, bias added after the matmul."""

    def __init__(self, size=32, heads=4, inner=64):
        super().__init__()
        self.heads = heads
        self.input_layernorm, self.post_layernorm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query_key_value = nn.Linear(size, 3 * size)
        self.core = CoreAttention(heads)
        self.dense, self.dense_h_to_4h = nn.Linear(size, size, bias=False), nn.Linear(size, inner)
        self.dense_4h_to_h = nn.Linear(inner, size, bias=False)
        self.dense_bias, self.mlp_bias = (nn.Parameter(torch.zeros(size)) for _ in range(2))

    def forward(self, x, mask):
        b, n, c = x.shape
        qkv = self.query_key_value(self.input_layernorm(x)).view(b, n, self.heads, -1)
        q, k, v = qkv.chunk(3, -1)
        attn = self.dense(self.core(q, k, v, mask))
        x = x + (attn + self.dense_bias)
        h = F.gelu(self.dense_h_to_4h(self.post_layernorm(x)), approximate="tanh")
        return x + (self.dense_4h_to_h(h) + self.mlp_bias)


class Megatron(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.position = nn.Embedding(VOCAB, 32), nn.Embedding(16, 32)
        self.layers = nn.ModuleList(ParallelLayer() for _ in range(3))
        self.final_layernorm = nn.LayerNorm(32)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.word(ids) + self.position(torch.arange(n)[None])
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)[None, None]
        for layer in self.layers:
            x = layer(x, mask)
        return torch.matmul(self.final_layernorm(x), self.word.weight.t())


def vocab_parallel_loss(logits, target):
    """The loss as tensor-parallel code computes it: maximum, shifted logits, logsumexp."""
    shifted = logits - logits.max(-1, keepdim=True).values.detach()
    predicted = shifted.gather(-1, target[..., None])[..., 0]
    return torch.log(torch.exp(shifted).sum(-1)) - predicted


def megatron():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"], "loss_mask": b["attention_mask"].float(),
                "labels": b["input_ids"].roll(-1, 1)}

    def loss(m, b):
        losses = vocab_parallel_loss(m(b["input_ids"]), b["labels"])
        return (losses * b["loss_mask"]).sum() / b["loss_mask"].sum()
    return Family("megatron", Megatron, batch, loss)


class CrossNet(nn.Module):
    """Clicks: embeddings of categories, crosses of features, an attention over a history."""

    def __init__(self):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(50, 8, mode="sum") for _ in range(3))
        self.items = nn.Embedding(60, 8)
        self.bottom = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU())
        self.cross = nn.ModuleList(nn.Linear(40, 40) for _ in range(2))
        self.unit = nn.Sequential(nn.Linear(32, 16), nn.PReLU(), nn.Linear(16, 1))
        self.top = nn.Sequential(nn.Linear(40, 24), nn.ReLU(), nn.Linear(24, 1))

    def history(self, wanted, past, mask):
        q = wanted[:, None].expand_as(past)
        w = self.unit(torch.cat([q, past, q - past, q * past], -1))[..., 0]
        return ((torch.sigmoid(w) * mask)[..., None] * past).sum(1)

    def forward(self, dense, bags, item, past, mask):
        x = [self.bottom(torch.log1p(dense))]
        x += [t(bags[:, i]) for i, t in enumerate(self.tables)]
        x += [self.history(self.items(item), self.items(past), mask)]
        x = start = torch.cat(x, 1)
        for layer in self.cross:
            x = start * layer(x) + x
        return self.top(x)[:, 0]


def clicks():
    def batch():
        g = torch.Generator().manual_seed(26)
        return {"pixel_values": torch.rand(16, 6, generator=g) * 5,
                "bags": torch.randint(0, 50, (16, 3, 4), generator=g),
                "item": torch.randint(0, 60, (16,), generator=g),
                "past": torch.randint(0, 60, (16, 5), generator=g),
                "mask": (torch.rand(16, 5, generator=g) < 0.7).float(),
                "labels": (torch.rand(16, generator=g) < 0.4).float()}
    return Family("clicks", CrossNet, batch, lambda m, b: F.binary_cross_entropy_with_logits(
        m(b["pixel_values"], b["bags"], b["item"], b["past"], b["mask"]), b["labels"]))


class Nerf(nn.Module):
    """A field of colours and densities, integrated along rays."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(15 + 12, 32), nn.Linear(32, 32)
        self.skip, self.density = nn.Linear(32 + 27, 32), nn.Linear(32, 1)
        self.colour = nn.Sequential(nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 3))

    def encode(self, x):
        parts = [x]
        for i in range(4):
            parts += [torch.sin(2.0 ** i * x), torch.cos(2.0 ** i * x)]
        return torch.cat(parts, -1)

    def march(self, density, colour, step):
        alpha = 1 - torch.exp(-density * step)
        seen = torch.cumprod(1 - alpha + 1e-10, -1)
        seen = torch.cat([torch.ones_like(seen[:, :1]), seen[:, :-1]], -1)
        weight = alpha * seen
        return (weight[..., None] * colour).sum(1)

    def forward(self, origin, direction):
        t = torch.linspace(0.2, 2.0, 8)
        x = self.encode(origin[:, None] + t[:, None] * direction[:, None])
        h = F.relu(self.first(x))
        h = F.relu(self.second(h))
        h = F.relu(self.skip(torch.cat([h, x], -1)))
        return self.march(F.softplus(self.density(h))[..., 0], torch.sigmoid(self.colour(h)), 0.25)


def rays():
    def batch():
        g = torch.Generator().manual_seed(27)
        return {"pixel_values": torch.randn(12, 3, generator=g) * 0.3,
                "direction": F.normalize(torch.randn(12, 3, generator=g), dim=-1),
                "labels": torch.rand(12, 3, generator=g)}
    return Family("nerf", Nerf, batch, lambda m, b: F.mse_loss(
        m(b["pixel_values"], b["direction"]), b["labels"]))


class Detector(nn.Module):
    """A pyramid of features with a head for classes and one for boxes."""

    def __init__(self):
        super().__init__()
        def conv(i, o, s):
            return nn.Sequential(nn.Conv2d(i, o, 3, s, 1, bias=False), nn.BatchNorm2d(o),
                                 nn.ReLU(inplace=True))
        self.c3, self.c4, self.c5 = conv(3, 8, 2), conv(8, 16, 2), conv(16, 24, 2)
        self.lat3, self.lat4, self.lat5 = (nn.Conv2d(i, 12, 1) for i in (8, 16, 24))
        self.smooth = nn.Conv2d(12, 12, 3, padding=1)
        self.tower = nn.Sequential(nn.Conv2d(12, 12, 3, padding=1), nn.GroupNorm(3, 12), nn.ReLU())
        self.classes, self.boxes = nn.Conv2d(12, 4, 3, padding=1), nn.Conv2d(12, 4, 3, padding=1)

    def forward(self, x):
        c3 = self.c3(x)
        c4 = self.c4(c3)
        p5 = self.lat5(self.c5(c4))
        p4 = self.lat4(c4) + F.interpolate(p5, scale_factor=2.0, mode="nearest")
        p3 = self.smooth(self.lat3(c3) + F.interpolate(p4, scale_factor=2.0, mode="nearest"))
        out = []
        for p in (p3, p4, p5):
            h = self.tower(p)
            out.append((self.classes(h).flatten(2), F.relu(self.boxes(h)).flatten(2)))
        return (torch.cat([c for c, _ in out], 2), torch.cat([b for _, b in out], 2))


def focal_loss(logits, target, alpha=0.25, gamma=2.0):
    p = torch.sigmoid(logits)
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    share = p * target + (1 - p) * (1 - target)
    weight = alpha * target + (1 - alpha) * (1 - target)
    return (weight * (1 - share) ** gamma * ce).sum() / target.sum().clamp(min=1)


def detection():
    def batch():
        g = torch.Generator().manual_seed(28)
        n = 16 * 16 + 8 * 8 + 4 * 4
        return {"pixel_values": torch.randn(2, 3, 32, 32, generator=g),
                "labels": (torch.rand(2, 4, n, generator=g) < 0.05).float(),
                "boxes": torch.rand(2, 4, n, generator=g)}

    def loss(m, b):
        classes, boxes = m(b["pixel_values"])
        return focal_loss(classes, b["labels"]) + F.smooth_l1_loss(boxes, b["boxes"], beta=0.1)
    return Family("detector", Detector, batch, loss, vision=True)


class Tacotron(nn.Module):
    """Dilated causal convolutions with gates, a recurrent decoder, weights normalised."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 16)
        self.gates = nn.ModuleList(nn.Conv1d(16, 32, 3, dilation=2 ** i) for i in range(3))
        self.skips = nn.ModuleList(nn.Conv1d(16, 16, 1) for _ in range(3))
        self.lstm, self.out = nn.LSTM(16, 20, num_layers=2, batch_first=True), nn.Linear(20, 8)

    def block(self, x, i):
        h = self.gates[i](F.pad(x, (2 ** (i + 1), 0)))
        a, b = h.chunk(2, 1)
        return self.skips[i](torch.tanh(a) * torch.sigmoid(b))

    def forward(self, ids):
        x, total = self.embed(ids).transpose(1, 2), 0
        for i in range(3):
            h = self.block(x, i)
            x, total = x + h, total + h
        h, _ = self.lstm(F.relu(total).transpose(1, 2))
        return self.out(h)


def voice():
    def batch():
        g = torch.Generator().manual_seed(29)
        return {"input_ids": torch.randint(0, 30, (3, 14), generator=g),
                "labels": torch.randn(3, 14, 8, generator=g)}
    return Family("wavenet", Tacotron, batch, lambda m, b: F.l1_loss(m(b["input_ids"]), b["labels"]))


def families():
    own = [megatron(), clicks(), rays(), detection(), voice()]
    return [*language_models(), clip(), speech(), segmentation(), *vision_models(), graphs(), *own,
            diffusion()]
