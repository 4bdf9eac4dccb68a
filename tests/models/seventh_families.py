# SPDX-License-Identifier: MIT
"""Families of the seventh set, written after the rules of the first six sets.

Of transformers, timm and diffusers: Mamba 2, RWKV 4, RecurrentGemma, gpt-oss, ESM, Funnel, Perceiver, BEiT,
HuBERT, LayoutLM, ViTMAE, Hiera, XCiT, SD3. Own: a distilled student, BYOL, Q-learning, a critic with a
penalty on its gradient, super-resolution, boxes on a grid, volumes, a pointer network, speakers,
a factorisation machine, convolutional LSTMs, experts that are dispatched by sorting.
"""
import importlib.util
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import BERT_LIKE, COMMON, LLAMA_LIKE, VOCAB, Family, class_loss, hugging_loss, language, pixels, tokens
from sixth_families import generator, of_config, pictures


# ---- of libraries ------------------------------------------------------------------------

def language_models():
    yield language("mamba2", "Mamba2Config", "Mamba2ForCausalLM", hidden_size=32, num_heads=8, head_dim=8,
                   expand=2, state_size=8, n_groups=2, num_hidden_layers=2, chunk_size=4, conv_kernel=3)
    yield language("rwkv4", "RwkvConfig", "RwkvForCausalLM", hidden_size=32, attention_hidden_size=32,
                   num_hidden_layers=2, intermediate_size=48, context_length=16)
    yield language("recurrent_gemma", "RecurrentGemmaConfig", "RecurrentGemmaForCausalLM", hidden_size=32,
                   intermediate_size=96, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=1,
                   lru_width=32, attention_window_size=8)
    yield language("gpt_oss", "GptOssConfig", "GptOssForCausalLM", **LLAMA_LIKE, head_dim=8,
                   num_local_experts=4, num_experts_per_tok=2, sliding_window=6, initial_context_length=16,
                   rope_parameters={"rope_type": "default", "rope_theta": 150000.0}, output_router_logits=True)
    yield language("esm", "EsmConfig", "EsmForMaskedLM", 0.7, **BERT_LIKE, mask_token_id=3,
                   position_embedding_type="rotary", token_dropout=True)
    yield language("funnel", "FunnelConfig", "FunnelForMaskedLM", 0.7, block_sizes=[1, 1], num_decoder_layers=1,
                   d_model=32, n_head=4, d_head=8, d_inner=48, hidden_dropout=0.0, attention_dropout=0.0,
                   activation_dropout=0.0)


def perceiver():
    make = of_config("PerceiverConfig", "PerceiverForMaskedLM", num_latents=6, d_latents=32, d_model=24,
                     num_blocks=1, num_self_attends_per_block=2, num_self_attention_heads=4,
                     num_cross_attention_heads=4, qk_channels=32, v_channels=32, vocab_size=VOCAB,
                     max_position_embeddings=12, attention_probs_dropout_prob=0.0)
    return Family("perceiver", make, lambda: tokens(0.6), hugging_loss)


def hubert():
    make = of_config("HubertConfig", "HubertForCTC", vocab_size=20, hidden_size=32, num_hidden_layers=2,
                     num_attention_heads=4, intermediate_size=48, conv_dim=[16, 16], conv_stride=[4, 2],
                     conv_kernel=[8, 3], num_feat_extract_layers=2, num_conv_pos_embeddings=4,
                     num_conv_pos_embedding_groups=2, hidden_dropout=0.0, attention_dropout=0.0,
                     activation_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0, layerdrop=0.0,
                     apply_spec_augment=False, ctc_loss_reduction="mean", pad_token_id=0)
    def batch():
        g = generator(91)
        return {"input_values": torch.randn(3, 240, generator=g),
                "labels": torch.randint(1, 20, (3, 6), generator=g)}
    return Family("hubert", make, batch, hugging_loss)


def layoutlm():
    make = of_config("LayoutLMConfig", "LayoutLMForTokenClassification", vocab_size=VOCAB, **BERT_LIKE,
                     num_labels=7, max_2d_position_embeddings=128)
    def batch():
        g = generator(92)
        b = tokens()
        low = torch.randint(0, 60, (4, 12, 2), generator=g)
        size = torch.randint(1, 60, (4, 12, 2), generator=g)
        labels = torch.randint(0, 7, (4, 12), generator=g)
        labels[b["attention_mask"] == 0] = -100
        return {"input_ids": b["input_ids"], "bbox": torch.cat([low, low + size], -1),
                "token_type_ids": torch.randint(0, 2, (4, 12), generator=g),
                "attention_mask": b["attention_mask"], "labels": labels}
    return Family("layoutlm", make, batch, hugging_loss)


def masked_pictures():
    make = of_config("ViTMAEConfig", "ViTMAEForPreTraining", image_size=32, patch_size=8, hidden_size=32,
                     num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, mask_ratio=0.5,
                     decoder_hidden_size=24, decoder_num_hidden_layers=1, decoder_num_attention_heads=3,
                     decoder_intermediate_size=40)
    def batch():
        g = generator(93)
        return {"pixel_values": torch.randn(4, 3, 32, 32, generator=g), "labels": torch.rand(4, 16, generator=g)}
    def loss(m, b):
        return m(pixel_values=b["pixel_values"], noise=b["labels"]).loss
    return Family("vitmae", make, batch, loss, vision=True)


def hiera():
    make = of_config("HieraConfig", "HieraForImageClassification", image_size=[32, 32], patch_kernel=[7, 7],
                     patch_stride=[4, 4], patch_padding=[3, 3], depths=[1, 1], num_heads=[2, 4], embed_dim=16,
                     num_query_pool=1, query_stride=[2, 2], masked_unit_size=[4, 4], masked_unit_attention=[True, False],
                     drop_path_rate=0.0, num_labels=10, mlp_ratio=2.0)
    return Family("hiera", make, lambda: pixels(), hugging_loss, vision=True)


def cross_covariance():
    def make():
        from timm.models.xcit import Xcit
        return Xcit(img_size=32, patch_size=16, num_classes=10, embed_dim=24, depth=2, num_heads=3,
                    cls_attn_layers=1, eta=0.5)
    return Family("xcit", make, lambda: pixels(), class_loss, vision=True)


def sd3():
    def make():
        import diffusers
        return diffusers.SD3Transformer2DModel(
            sample_size=8, patch_size=2, in_channels=4, num_layers=2, attention_head_dim=8, num_attention_heads=4,
            joint_attention_dim=24, caption_projection_dim=32, pooled_projection_dim=16, out_channels=4,
            pos_embed_max_size=8, qk_norm="rms_norm")
    def batch():
        g = generator(94)
        clean, noise = (torch.randn(3, 4, 8, 8, generator=g) for _ in range(2))
        return {"pixel_values": 0.7 * clean + 0.3 * noise, "words": torch.randn(3, 5, 24, generator=g),
                "pooled": torch.randn(3, 16, generator=g), "time": torch.tensor([300.0, 120.0, 700.0]),
                "labels": noise - clean}
    def loss(m, b):
        made = m(hidden_states=b["pixel_values"], encoder_hidden_states=b["words"],
                 pooled_projections=b["pooled"], timestep=b["time"]).sample
        return F.mse_loss(made, b["labels"])
    return Family("sd3", make, batch, loss, vision=True)


def libraries():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    if installed("transformers"):
        yield from language_models()
        yield perceiver()
        yield hubert()
        yield layoutlm()
        yield pictures("beit", "BeitConfig", "BeitForImageClassification", patch_size=8, hidden_size=32,
                       num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, hidden_dropout_prob=0.0,
                       attention_probs_dropout_prob=0.0, drop_path_rate=0.0, use_relative_position_bias=True)
        yield masked_pictures()
        yield hiera()
    if installed("timm"):
        yield cross_covariance()
    if installed("diffusers"):
        yield sd3()


# ---- two networks, of which one learns -----------------------------------------------------

class Small(nn.Module):
    """A small network of pictures."""

    def __init__(self, width, out=10):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 2, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, 2 * width, 3, 2, 1), nn.BatchNorm2d(2 * width)
        self.fc = nn.Linear(2 * width, out)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        return self.fc(x.mean((2, 3)))


class Distilled(nn.Module):
    """A student that learns from labels and from a teacher's softened answers."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = Small(8), Small(12)
        self.teacher.requires_grad_(False)

    def forward(self, x, y):
        with torch.no_grad():
            soft = torch.softmax(self.teacher(x) / 3.0, -1)
        logits = self.student(x)
        kl = F.kl_div(F.log_softmax(logits / 3.0, -1), soft, reduction="batchmean") * 9.0
        return 0.3 * F.cross_entropy(logits, y) + 0.7 * kl


def distilled():
    return Family("distilled", Distilled, lambda: pixels(size=16, batch=6),
                  lambda m, b: m(b["pixel_values"], b["labels"]), vision=True)


class Byol(nn.Module):
    """Two views of a picture; a slow copy of the network gives the answer that the fast one predicts."""

    def __init__(self):
        super().__init__()
        self.online = Small(8, 16)
        self.slow = Small(8, 16)
        self.slow.requires_grad_(False)
        self.hidden, self.norm, self.out = nn.Linear(16, 24), nn.BatchNorm1d(24), nn.Linear(24, 16)

    def predict(self, x):
        return self.out(F.relu(self.norm(self.hidden(self.online(x)))))

    def half(self, a, b):
        with torch.no_grad():
            target = F.normalize(self.slow(b), dim=-1)
        return 2 - 2 * (F.normalize(self.predict(a), dim=-1) * target).sum(-1)

    def forward(self, a, b):
        return (self.half(a, b) + self.half(b, a)).mean()


def byol():
    def batch():
        g = generator(95)
        x = torch.randn(6, 3, 12, 12, generator=g)
        return {"pixel_values": x + 0.2 * torch.randn(x.shape, generator=g),
                "labels": x.flip(-1) + 0.2 * torch.randn(x.shape, generator=g)}
    return Family("byol", Byol, batch, lambda m, b: m(b["pixel_values"], b["labels"]), vision=True)


class Dueling(nn.Module):
    """Values of actions, as a state's value plus advantages."""

    def __init__(self):
        super().__init__()
        self.l1, self.l2, self.norm = nn.Linear(9, 32), nn.Linear(32, 32), nn.LayerNorm(32)
        self.value, self.advantage = nn.Linear(32, 1), nn.Linear(32, 5)

    def forward(self, s):
        h = self.norm(F.relu(self.l2(F.relu(self.l1(s)))))
        a = self.advantage(h)
        return self.value(h) + a - a.mean(-1, keepdim=True)


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.fast = Dueling()
        self.slow = Dueling()
        self.slow.requires_grad_(False)

    def forward(self, s, action, reward, done, after):
        q = self.fast(s).gather(1, action[:, None])[:, 0]
        with torch.no_grad():
            best = self.fast(after).argmax(-1, keepdim=True)
            future = self.slow(after).gather(1, best)[:, 0]
            goal = reward + 0.97 * (1 - done) * future
        return F.smooth_l1_loss(q, goal)


def learner():
    def batch():
        g = generator(96)
        return {"pixel_values": torch.randn(8, 9, generator=g), "labels": torch.randint(0, 5, (8,), generator=g),
                "reward": torch.randn(8, generator=g), "done": (torch.rand(8, generator=g) < 0.3).float(),
                "after": torch.randn(8, 9, generator=g)}
    return Family("learner", Learner, batch, lambda m, b: m(
        b["pixel_values"], b["labels"], b["reward"], b["done"], b["after"]))


class Critic(nn.Module):
    """Scores of pictures, with a penalty on the norm of the score's gradient."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = nn.Conv2d(3, 12, 4, 2, 1), nn.Conv2d(12, 16, 4, 2, 1), nn.Conv2d(16, 16, 3, 1, 1)
        self.score = nn.Linear(16 * 9, 1)

    def rate(self, x):
        x = F.leaky_relu(self.conv1(x), 0.2)
        x = F.leaky_relu(self.conv2(x), 0.2)
        return self.score(F.silu(self.conv3(x)).flatten(1))[:, 0]

    def forward(self, real, made, mix):
        between = (mix * real + (1 - mix) * made).requires_grad_()
        slope, = torch.autograd.grad(self.rate(between).sum(), between, create_graph=True)
        penalty = (slope.flatten(1).norm(2, 1) - 1).pow(2).mean()
        return self.rate(made).mean() - self.rate(real).mean() + 10.0 * penalty


def critic():
    def batch():
        g = generator(97)
        return {"pixel_values": torch.randn(4, 3, 12, 12, generator=g),
                "labels": torch.randn(4, 3, 12, 12, generator=g) * 0.8,
                "mix": torch.rand(4, 1, 1, 1, generator=g)}
    return Family("critic", Critic, batch, lambda m, b: m(b["pixel_values"], b["labels"], b["mix"]), vision=True)


# ---- pictures, volumes, films -----------------------------------------------------------------

class Sharper(nn.Module):
    """Super-resolution: residual blocks at low resolution, then pixels from channels."""

    class Block(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.a, self.b, self.act = nn.Conv2d(n, n, 3, padding=1), nn.Conv2d(n, n, 3, padding=1), nn.PReLU()

        def forward(self, x):
            return x + 0.2 * self.b(self.act(self.a(x)))

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv2d(3, 16, 3, padding=1)
        self.body = nn.Sequential(Sharper.Block(16), Sharper.Block(16))
        self.up, self.leave = nn.Conv2d(16, 32, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)
        self.register_buffer("mean", torch.tensor([0.45, 0.44, 0.4])[:, None, None])

    def forward(self, x):
        h = self.enter(x - self.mean)
        h = h + self.body(h)
        h = self.leave(F.pixel_shuffle(self.up(h), 2))
        return h + F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)


def sharper():
    def batch():
        g = generator(98)
        big = torch.rand(3, 3, 16, 16, generator=g)
        return {"pixel_values": F.avg_pool2d(big, 2), "labels": big}
    def loss(m, b):
        made = m(b["pixel_values"])
        return (torch.sqrt((made - b["labels"]) ** 2 + 1e-6)).mean()
    return Family("sharper", Sharper, batch, loss, vision=True)


class Grid(nn.Module):
    """Boxes on a grid: centres, sizes by anchors, whether something is there, and what."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12)
        self.c2, self.b2 = nn.Conv2d(12, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16)
        self.c3, self.b3 = nn.Conv2d(32, 16, 1, bias=False), nn.BatchNorm2d(16)
        self.out = nn.Conv2d(16, 2 * 8, 1)
        self.register_buffer("anchors", torch.tensor([[0.2, 0.3], [0.5, 0.4]]))

    def features(self, x):
        x = F.silu(self.b1(self.c1(x)))
        x = F.silu(self.b2(self.c2(x)))
        return F.silu(self.b3(self.c3(torch.cat([x, F.max_pool2d(x, 5, 1, 2)], 1))))

    def forward(self, x):
        y = self.out(self.features(x))
        b, _, h, w = y.shape
        y = y.view(b, 2, 8, h, w).permute(0, 1, 3, 4, 2)
        rows, columns = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        corner = torch.stack([columns, rows], -1).to(y.dtype)
        centre = (torch.sigmoid(y[..., :2]) + corner) / h
        size = torch.exp(y[..., 2:4]) * self.anchors[:, None, None]
        return torch.cat([centre - size / 2, centre + size / 2], -1), y[..., 4], y[..., 5:]


def overlap(a, b):
    low, high = torch.maximum(a[..., :2], b[..., :2]), torch.minimum(a[..., 2:], b[..., 2:])
    shared = (high - low).clamp(min=0).prod(-1)
    both = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1) - shared
    return shared / both.clamp(min=1e-6)


def grid():
    def batch():
        g = generator(99)
        low = torch.rand(3, 2, 4, 4, 2, generator=g) * 0.5
        return {"pixel_values": torch.rand(3, 3, 16, 16, generator=g),
                "boxes": torch.cat([low, low + 0.1 + 0.4 * torch.rand(low.shape, generator=g)], -1),
                "there": (torch.rand(3, 2, 4, 4, generator=g) < 0.3).float(),
                "labels": torch.randint(0, 3, (3, 2, 4, 4), generator=g)}
    def loss(m, b):
        boxes, there, kind = m(b["pixel_values"])
        weight = b["there"]
        box = ((1 - overlap(boxes, b["boxes"])) * weight).sum() / weight.sum()
        found = F.binary_cross_entropy_with_logits(there, weight)
        what = (F.cross_entropy(kind.reshape(-1, 3), b["labels"].reshape(-1), reduction="none") * weight.reshape(-1))
        return 5.0 * box + found + what.sum() / weight.sum()
    return Family("grid", Grid, batch, loss, vision=True)


class Volume(nn.Module):
    """Segments a volume: a U of three-dimensional convolutions."""

    def __init__(self):
        super().__init__()
        self.down, self.n1 = nn.Conv3d(1, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True)
        self.deep, self.n2 = nn.Conv3d(8, 16, 3, stride=2, padding=1), nn.InstanceNorm3d(16, affine=True)
        self.up = nn.ConvTranspose3d(16, 8, 2, stride=2)
        self.join, self.n3 = nn.Conv3d(16, 8, 3, padding=1), nn.InstanceNorm3d(8, affine=True)
        self.out = nn.Conv3d(8, 3, 1)

    def forward(self, x):
        a = F.leaky_relu(self.n1(self.down(x)), 0.01)
        b = F.leaky_relu(self.n2(self.deep(a)), 0.01)
        c = torch.cat([a, self.up(b)], 1)
        return self.out(F.leaky_relu(self.n3(self.join(c)), 0.01))


def volume():
    def batch():
        g = generator(100)
        return {"pixel_values": torch.randn(2, 1, 8, 8, 8, generator=g),
                "labels": torch.randint(0, 3, (2, 8, 8, 8), generator=g)}
    def loss(m, b):
        logits = m(b["pixel_values"])
        p = torch.softmax(logits, 1)
        right = F.one_hot(b["labels"], 3).permute(0, 4, 1, 2, 3).to(p.dtype)
        shared = (p * right).sum((2, 3, 4))
        dice = (2 * shared + 1e-5) / (p.sum((2, 3, 4)) + right.sum((2, 3, 4)) + 1e-5)
        return F.cross_entropy(logits, b["labels"]) + 1 - dice[:, 1:].mean()
    return Family("volume", Volume, batch, loss)


class Film(nn.Module):
    """The next picture of a film, by a cell of an LSTM whose products are convolutions."""

    def __init__(self):
        super().__init__()
        self.enter, self.gates = nn.Conv2d(1, 6, 3, padding=1), nn.Conv2d(6 + 8, 32, 3, padding=1)
        self.norm, self.leave = nn.GroupNorm(4, 32), nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, film):
        h = c = torch.zeros(film.shape[0], 8, *film.shape[-2:], dtype=film.dtype)
        made = []
        for i in range(film.shape[1] - 1):
            x = torch.tanh(self.enter(film[:, i]))
            a, f, o, g = self.norm(self.gates(torch.cat([x, h], 1))).chunk(4, 1)
            c = torch.sigmoid(f + 1.0) * c + torch.sigmoid(a) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            made.append(self.leave(h) + film[:, i])
        return torch.stack(made, 1)


def film():
    def batch():
        x = torch.rand(3, 5, 1, 8, 8, generator=generator(101))
        return {"pixel_values": x, "labels": x[:, 1:].clone()}
    def loss(m, b):
        made, right = m(b["pixel_values"]), b["labels"]
        slope = (made[..., 1:] - made[..., :-1]) - (right[..., 1:] - right[..., :-1])
        return F.mse_loss(made, right) + 0.1 * slope.abs().mean()
    return Family("film", Film, batch, loss)


# ---- words, voices, tables ----------------------------------------------------------------------

class Pointer(nn.Module):
    """Writes words of its vocabulary, or points at words of its input."""

    def __init__(self):
        super().__init__()
        self.embed, self.encoder = nn.Embedding(VOCAB, 20), nn.LSTM(20, 12, batch_first=True, bidirectional=True)
        self.start, self.cell = nn.Linear(24, 20), nn.LSTMCell(20 + 24, 20)
        self.query, self.key, self.seen = nn.Linear(20, 16), nn.Linear(24, 16, bias=False), nn.Linear(1, 16, bias=False)
        self.energy, self.choice = nn.Linear(16, 1), nn.Linear(20 + 24 + 20, 1)
        self.head = nn.Linear(44, VOCAB)

    def attend(self, h, memory, coverage, mask):
        score = self.energy(torch.tanh(self.query(h)[:, None] + self.key(memory) + self.seen(coverage[..., None])))[..., 0]
        weight = torch.softmax(score.masked_fill(mask == 0, -1e4), -1)
        return weight, (weight[..., None] * memory).sum(1)

    def forward(self, ids, mask, words):
        memory, _ = self.encoder(self.embed(ids))
        h = torch.tanh(self.start((memory * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)))
        c, context = torch.zeros_like(h), torch.zeros_like(memory[:, 0])
        coverage, losses = torch.zeros_like(ids, dtype=memory.dtype), []
        for i in range(words.shape[1] - 1):
            x = self.embed(words[:, i])
            h, c = self.cell(torch.cat([x, context], -1), (h, c))
            weight, context = self.attend(h, memory, coverage, mask)
            write = torch.sigmoid(self.choice(torch.cat([h, context, x], -1)))
            spread = write * torch.softmax(self.head(torch.cat([h, context], -1)), -1)
            spread = spread.scatter_add(1, ids, (1 - write) * weight)
            losses.append(-torch.log(spread.gather(1, words[:, i + 1:i + 2]) + 1e-9)[:, 0]
                          + 0.5 * torch.minimum(weight, coverage).sum(-1))
            coverage = coverage + weight
        return torch.stack(losses, 1)


def pointer():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"], "attention_mask": b["attention_mask"],
                "labels": b["input_ids"][:, [2, 5, 1, 7, 0]].clone()}
    return Family("pointer", Pointer, batch, lambda m, b: m(
        b["input_ids"], b["attention_mask"], b["labels"]).mean())


class Speakers(nn.Module):
    """Voices as points on a sphere: means and deviations over time, and a margin between speakers."""

    def __init__(self):
        super().__init__()
        self.t1, self.n1 = nn.Conv1d(10, 24, 5, padding=2), nn.BatchNorm1d(24)
        self.t2, self.n2 = nn.Conv1d(24, 24, 3, dilation=2, padding=2), nn.BatchNorm1d(24)
        self.t3, self.n3 = nn.Conv1d(24, 32, 1), nn.BatchNorm1d(32)
        self.point = nn.Linear(64, 16)
        self.speakers = nn.Parameter(torch.randn(6, 16))

    def pooled(self, x):
        mean = x.mean(-1)
        deviation = torch.sqrt(((x - mean[..., None]) ** 2).mean(-1) + 1e-6)
        return torch.cat([mean, deviation], -1)

    def forward(self, x, y):
        x = self.n1(F.relu(self.t1(x)))
        x = self.n2(F.relu(self.t2(x)))
        x = self.n3(F.relu(self.t3(x)))
        cosine = F.linear(F.normalize(self.point(self.pooled(x)), dim=-1), F.normalize(self.speakers, dim=-1))
        sine = torch.sqrt((1 - cosine ** 2).clamp(min=1e-6))
        moved = cosine * math.cos(0.2) - sine * math.sin(0.2)
        right = F.one_hot(y, 6).to(cosine.dtype)
        return 16.0 * (right * moved + (1 - right) * cosine)


def speakers():
    def batch():
        g = generator(102)
        return {"pixel_values": torch.randn(6, 10, 20, generator=g), "labels": torch.randint(0, 6, (6,), generator=g)}
    return Family("speakers", Speakers, batch, lambda m, b: F.cross_entropy(
        m(b["pixel_values"], b["labels"]), b["labels"]))


class Factors(nn.Module):
    """A factorisation machine beside a deep network over the same vectors."""

    def __init__(self):
        super().__init__()
        self.embed, self.first = nn.Embedding(40, 8), nn.Embedding(40, 1)
        self.numbers, self.bias = nn.Linear(4, 8), nn.Parameter(torch.zeros(1))
        self.l1, self.n1, self.l2, self.out = nn.Linear(40, 24), nn.BatchNorm1d(24), nn.Linear(24, 16), nn.Linear(16, 1)
        self.register_buffer("starts", torch.tensor([0, 10, 20, 30]))

    def forward(self, kinds, numbers):
        ids = kinds + self.starts
        v = torch.cat([self.embed(ids), self.numbers(torch.log1p(numbers))[:, None]], 1)
        pairs = 0.5 * (v.sum(1) ** 2 - (v ** 2).sum(1)).sum(-1)
        deep = self.out(F.relu(self.l2(F.relu(self.n1(self.l1(v.flatten(1)))))))[:, 0]
        return self.bias + self.first(ids).sum((1, 2)) + pairs + deep


def factors():
    def batch():
        g = generator(103)
        return {"kinds": torch.randint(0, 10, (8, 4), generator=g), "pixel_values": torch.rand(8, 4, generator=g) * 5,
                "labels": torch.randint(0, 2, (8,), generator=g).float()}
    return Family("factors", Factors, batch, lambda m, b: F.binary_cross_entropy_with_logits(
        m(b["kinds"], b["pixel_values"]), b["labels"]))


# ---- experts -------------------------------------------------------------------------------------

class Experts(nn.Module):
    """Tokens are sorted by their expert; one more expert reads them all."""

    def __init__(self, size=24, hidden=32, count=4):
        super().__init__()
        self.router = nn.Linear(size, count, bias=False)
        self.enter = nn.Parameter(torch.randn(count, size, 2 * hidden) * size ** -0.5)
        self.leave = nn.Parameter(torch.randn(count, hidden, size) * hidden ** -0.5)
        self.shared1, self.shared2 = nn.Linear(size, 16), nn.Linear(16, size)

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        score = torch.softmax(self.router(flat), -1)
        weight, chosen = score.topk(2, -1)
        weight = weight / weight.sum(-1, keepdim=True)
        order = chosen.flatten().argsort(stable=True)
        token = order // 2
        counts = torch.bincount(chosen.flatten(), minlength=4)
        parts = []
        for i, rows in enumerate(flat[token].split(counts.tolist())):
            gate, up = (rows @ self.enter[i]).chunk(2, -1)
            parts.append((F.silu(gate) * up) @ self.leave[i])
        made = torch.cat(parts) * weight.flatten()[order][:, None]
        out = torch.zeros_like(flat).index_add(0, token, made) + self.shared2(F.silu(self.shared1(flat)))
        balance = 4 * (score.mean(0) * (counts / counts.sum())).sum()
        return out.view_as(x), balance


class ExpertLayer(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(size), nn.RMSNorm(size)
        self.query, self.key, self.value, self.out = nn.Linear(size, 24), nn.Linear(size, 12), nn.Linear(size, 12), nn.Linear(24, size)
        self.experts = Experts(size)

    def turned(self, x):
        n, d = x.shape[-2:]
        angle = torch.arange(n)[:, None] * 10000.0 ** (-torch.arange(0, d, 2) / d)
        a, b = x[..., ::2], x[..., 1::2]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        return torch.stack([a * cos - b * sin, a * sin + b * cos], -1).flatten(-2)

    def attend(self, x):
        b, n, _ = x.shape
        q = self.turned(self.query(x).view(b, n, 4, 6).transpose(1, 2))
        k = self.turned(self.key(x).view(b, n, 2, 6).transpose(1, 2)).repeat_interleave(2, 1)
        v = self.value(x).view(b, n, 2, 6).transpose(1, 2).repeat_interleave(2, 1)
        score = (q @ k.mT) * 6 ** -0.5
        score = score.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
        return self.out((torch.softmax(score, -1) @ v).transpose(1, 2).reshape(b, n, -1))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        y, balance = self.experts(self.norm2(x))
        return x + y, balance


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.layers = nn.ModuleList(ExpertLayer() for _ in range(2))
        self.norm = nn.RMSNorm(24)

    def forward(self, ids):
        x, balance = self.embed(ids) * 24 ** 0.5, 0
        for layer in self.layers:
            x, more = layer(x)
            balance = balance + more
        return F.linear(self.norm(x), self.embed.weight), balance


def mixture():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"], "labels": b["labels"]}
    def loss(m, b):
        logits, balance = m(b["input_ids"])
        return F.cross_entropy(logits[:, :-1].reshape(-1, VOCAB), b["labels"][:, 1:].reshape(-1)) + 0.01 * balance
    return Family("mixture", Mixture, batch, loss)


def families():
    return [*libraries(), distilled(), byol(), learner(), critic(), sharper(), grid(), volume(), film(), pointer(),
            speakers(), factors(), mixture()]
