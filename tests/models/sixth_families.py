# SPDX-License-Identifier: MIT
"""Families of the sixth set, written after the rules of the first five sets.

Of transformers, torchvision and timm: T5, Whisper, Gemma 3, FNet, Swin, DINOv2, ViLT, PatchTST, MPT,
MNASNet. Own: retention, a flow, capsules, a temporal convolution, an ODE, tables of features, a tagger
with a CRF, links of a graph, series with a GRU, questions about images, triplets.
"""
import importlib.util
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import COMMON, VOCAB, Family, hugging_loss, image, language, tokens


def generator(seed):
    return torch.Generator().manual_seed(seed)


# ---- of libraries ------------------------------------------------------------------------

def of_config(config, model, **keys):
    def make(attention="eager"):
        import transformers
        c = getattr(transformers, config)(**keys)
        c._attn_implementation = attention
        return getattr(transformers, model)(c)
    return make


def language_models():
    yield language("gemma3", "Gemma3TextConfig", "Gemma3ForCausalLM", hidden_size=32,
                   intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                   num_key_value_heads=2, head_dim=8, max_position_embeddings=32, sliding_window=6)
    yield language("mpt", "MptConfig", "MptForCausalLM", d_model=32, n_heads=4, n_layers=2,
                   expansion_ratio=2, max_seq_len=32)
    yield language("fnet", "FNetConfig", "FNetForMaskedLM", 0.7, hidden_size=32, intermediate_size=48,
                   num_hidden_layers=2, hidden_dropout_prob=0.0, max_position_embeddings=32)
    yield language("t5", "T5Config", "T5ForConditionalGeneration", d_model=32, d_kv=8, d_ff=48,
                   num_layers=2, num_heads=4, dropout_rate=0.0, decoder_start_token_id=0,
                   feed_forward_proj="gated-gelu")


def whisper():
    make = of_config("WhisperConfig", "WhisperForConditionalGeneration", **COMMON, d_model=32,
                     encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                     decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=12,
                     max_source_positions=16, max_target_positions=16, decoder_start_token_id=1,
                     suppress_tokens=None, begin_suppress_tokens=None)
    def batch():
        g = generator(71)
        return {"input_features": torch.randn(3, 12, 32, generator=g),
                "labels": torch.randint(3, VOCAB, (3, 8), generator=g)}
    return Family("whisper", make, batch, hugging_loss, hugging=True)


def pictures(name, config, model, **keys):
    def batch():
        g = generator(72)
        return {"pixel_values": torch.randn(4, 3, 32, 32, generator=g),
                "labels": torch.randint(0, 10, (4,), generator=g)}
    make = of_config(config, model, image_size=32, num_labels=10, **keys)
    return Family(name, make, batch, hugging_loss, vision=True, hugging=True)


def vilt():
    make = of_config("ViltConfig", "ViltForImageAndTextRetrieval", vocab_size=VOCAB, hidden_size=32,
                     num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32,
                     patch_size=8, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    def batch():
        g = generator(73)
        return {"input_ids": torch.randint(3, VOCAB, (4, 10), generator=g),
                "pixel_values": torch.randn(4, 3, 32, 32, generator=g),
                "labels": torch.tensor([1, 0, 1, 0])}
    def loss(m, b):
        made = m(input_ids=b["input_ids"], pixel_values=b["pixel_values"])
        return F.binary_cross_entropy_with_logits(made.logits[:, 0], b["labels"].to(made.logits.dtype))
    return Family("vilt", make, batch, loss)


def series_patches():
    make = of_config("PatchTSTConfig", "PatchTSTForPrediction", num_input_channels=3, context_length=32,
                     prediction_length=8, patch_length=8, patch_stride=4, d_model=24, num_attention_heads=3,
                     num_hidden_layers=2, ffn_dim=40, attention_dropout=0.0, ff_dropout=0.0,
                     path_dropout=0.0, head_dropout=0.0, positional_dropout=0.0)
    def batch():
        x = torch.randn(4, 40, 3, generator=generator(74)).cumsum(1)
        return {"past_values": x[:, :32].clone(), "future_values": x[:, 32:].clone()}
    return Family("patchtst", make, batch, hugging_loss, labels="future_values", hugging=True)


def libraries():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    if installed("transformers"):
        yield from language_models()
        yield whisper()
        yield pictures("swin", "SwinConfig", "SwinForImageClassification", patch_size=4, embed_dim=16,
                       depths=[2, 1], num_heads=[2, 4], window_size=4, drop_path_rate=0.0)
        yield pictures("dinov2", "Dinov2Config", "Dinov2ForImageClassification", patch_size=8,
                       hidden_size=32, num_hidden_layers=2, num_attention_heads=4, mlp_ratio=2)
        yield vilt()
        yield series_patches()
    if installed("torchvision"):
        def mnasnet():
            import torchvision
            return torchvision.models.mnasnet0_5(weights=None, num_classes=10, dropout=0.0)
        yield image("mnasnet", mnasnet, size=48, batch=6)


# ---- sequences -----------------------------------------------------------------------------

class Retention(nn.Module):
    """Attention without softmax, with a decay of its own in each head and a gate."""

    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.gate, self.out = (
            nn.Linear(size, size, bias=False) for _ in range(5))
        self.norm = nn.GroupNorm(heads, size)
        self.register_buffer("decay", 1 - 2.0 ** (-2 - torch.arange(heads).float()))

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = (p(x).view(b, n, self.heads, -1).transpose(1, 2)
                   for p in (self.query, self.key, self.value))
        apart = torch.arange(n)[:, None] - torch.arange(n)[None]
        weight = torch.where(apart >= 0, self.decay[:, None, None] ** apart.clamp(min=0), 0.0)
        weight = weight.to(x.dtype) / weight.sum(-1, keepdim=True).sqrt().to(x.dtype)
        y = (q @ (k.transpose(-2, -1) * (c // self.heads) ** -0.5) * weight) @ v
        y = self.norm(y.transpose(1, 2).reshape(b * n, c)).view(b, n, c)
        return self.out(F.silu(self.gate(x)) * y)


class RetentiveLayer(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.retention = Retention(size)
        self.gate, self.up, self.down = nn.Linear(size, 48), nn.Linear(size, 48), nn.Linear(48, size)

    def forward(self, x):
        x = x + self.retention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.gelu(self.gate(y)) * self.up(y))


class Retentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 32)
        self.layers = nn.ModuleList(RetentiveLayer() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids) * math.sqrt(32)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def two_keys():
    b = tokens()
    return {"input_ids": b["input_ids"], "labels": b["labels"]}


def retentive():
    def loss(m, b):
        logits = m(b["input_ids"])[:, :-1].reshape(-1, VOCAB)
        loss = F.cross_entropy(logits, b["labels"][:, 1:].reshape(-1))
        return loss + 1e-3 * torch.logsumexp(logits, -1).pow(2).mean()
    return Family("retentive", Retentive, two_keys, loss)


class Causal(nn.Module):
    """Two causal convolutions with a gap between their taps, and a way past them."""

    def __init__(self, i, o, gap):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv1d(i, o, 3, dilation=gap), nn.Conv1d(o, o, 3, dilation=gap)
        self.past, self.gap = nn.Conv1d(i, o, 1), gap
        self.norm1, self.norm2 = nn.GroupNorm(2, o), nn.GroupNorm(2, o)

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(F.pad(x, (2 * self.gap, 0)))))
        h = F.relu(self.norm2(self.conv2(F.pad(h, (2 * self.gap, 0)))))
        return F.relu(h + self.past(x))


class Temporal(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList((Causal(4, 12, 1), Causal(12, 16, 2), Causal(16, 16, 4)))
        self.head = nn.Conv1d(16, 4, 1)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def temporal():
    def batch():
        x = torch.randn(4, 4, 25, generator=generator(75)).cumsum(-1) * 0.4
        return {"pixel_values": x[..., :24].clone(), "labels": x[..., 1:].clone()}
    def loss(m, b):
        error = m(b["pixel_values"]) - b["labels"]
        return torch.where(error.abs() < 1, 0.5 * error ** 2, error.abs() - 0.5).mean()
    return Family("temporal", Temporal, batch, loss)


class Tagger(nn.Module):
    """Words to tags, with the probability of a whole sequence of tags: a CRF."""

    def __init__(self):
        super().__init__()
        self.embed, self.conv = nn.Embedding(VOCAB, 24), nn.Conv1d(24, 24, 3, padding=1)
        self.norm, self.score = nn.LayerNorm(24), nn.Linear(24, 5)
        self.follow, self.start = nn.Parameter(torch.randn(5, 5) * 0.4), nn.Parameter(torch.randn(5) * 0.4)

    def emissions(self, ids):
        x = self.embed(ids)
        x = x + torch.tanh(self.conv(x.transpose(1, 2)).transpose(1, 2))
        return self.score(self.norm(x))

    def chosen(self, scores, tags):
        picked = scores.gather(-1, tags[..., None])[..., 0].sum(1)
        steps = self.follow[tags[:, :-1], tags[:, 1:]].sum(1)
        return picked + steps + self.start[tags[:, 0]]

    def whole(self, scores):
        alpha = self.start + scores[:, 0]
        for i in range(1, scores.shape[1]):
            alpha = torch.logsumexp(alpha[:, :, None] + self.follow, 1) + scores[:, i]
        return torch.logsumexp(alpha, -1)

    def forward(self, ids, tags):
        scores = self.emissions(ids)
        return self.whole(scores) - self.chosen(scores, tags)


def crf():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"][:, :8].clone(),
                "labels": torch.randint(0, 5, (4, 8), generator=generator(76))}
    return Family("crf", Tagger, batch, lambda m, b: m(b["input_ids"], b["labels"]).mean())


class Series(nn.Module):
    """A GRU cell over time that predicts a mean and a deviation, with the value before as its input."""

    def __init__(self):
        super().__init__()
        self.enter, self.cell = nn.Linear(5, 16), nn.GRUCell(16, 20)
        self.norm = nn.LayerNorm(20)
        self.mean, self.deviation = nn.Linear(20, 1), nn.Linear(20, 1)

    def forward(self, x, covariates):
        scale = x.abs().mean(1, keepdim=True) + 1.0
        h, found = torch.zeros(len(x), 20, dtype=x.dtype), []
        for i in range(x.shape[1] - 1):
            step = torch.cat([(x[:, i:i + 1] / scale), covariates[:, i]], -1)
            h = self.cell(torch.tanh(self.enter(step)), h)
            y = self.norm(h)
            found.append(torch.cat([self.mean(y), F.softplus(self.deviation(y)) + 1e-3], -1))
        return torch.stack(found, 1) * scale[..., None]


def series():
    def batch():
        g = generator(77)
        return {"pixel_values": torch.rand(5, 8, generator=g) * 4,
                "labels": torch.randn(5, 8, 4, generator=g)}
    def loss(m, b):
        made = m(b["pixel_values"], b["labels"])
        error = (b["pixel_values"][:, 1:] - made[..., 0]) / made[..., 1]
        return (0.5 * error ** 2 + torch.log(made[..., 1])).mean()
    return Family("series", Series, batch, loss)


# ---- images, features, graphs ----------------------------------------------------------------

class Coupling(nn.Module):
    """Half of the channels scales and shifts the other half; the logarithm of the volume is kept."""

    def __init__(self, size=8):
        super().__init__()
        self.log_scale, self.bias = nn.Parameter(torch.randn(size) * 0.1), nn.Parameter(torch.zeros(size))
        self.mix = nn.Parameter(torch.linalg.qr(torch.randn(size, size))[0])
        self.l1, self.l2, self.l3 = nn.Linear(size // 2, 24), nn.Linear(24, 24), nn.Linear(24, size)

    def forward(self, x):
        x = (x + self.bias) * torch.exp(self.log_scale)
        x = x @ self.mix
        a, b = x.chunk(2, -1)
        scale, shift = self.l3(F.relu(self.l2(F.relu(self.l1(a))))).chunk(2, -1)
        scale = torch.tanh(scale)
        volume = self.log_scale.sum() + torch.slogdet(self.mix)[1] + scale.sum(-1)
        return torch.cat([a, b * torch.exp(scale) + shift], -1), volume


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList(Coupling() for _ in range(3))

    def forward(self, x):
        volume = 0
        for step in self.steps:
            x, v = step(x)
            volume = volume + v
        return -0.5 * (x ** 2 + math.log(2 * math.pi)).sum(-1) + volume


def flow():
    def batch():
        x = torch.randn(16, 8, generator=generator(78))
        return {"pixel_values": x, "labels": torch.rand(16, generator=generator(79)) + 0.5}
    return Family("flow", Flow, batch, lambda m, b: -(m(b["pixel_values"]) * b["labels"]).mean() / 8)


class Capsules(nn.Module):
    """Vectors that agree with those of the next layer are routed to them in three rounds."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 12, 5, 2), nn.Conv2d(12, 16, 3, 2)
        self.votes = nn.Parameter(torch.randn(1, 16, 5, 8, 4) * 0.3)
        self.fc1, self.fc2 = nn.Linear(40, 32), nn.Linear(32, 256)

    def squash(self, s):
        square = (s ** 2).sum(-1, keepdim=True)
        return square / (1 + square) * s / torch.sqrt(square + 1e-8)

    def route(self, u):
        b = torch.zeros(u.shape[:3], dtype=u.dtype)
        for i in range(3):
            c = torch.softmax(b, 2)
            v = self.squash((c[..., None] * (u if i == 2 else u.detach())).sum(1))
            if i < 2:
                b = b + (u.detach() * v[:, None]).sum(-1)
        return v

    def forward(self, x, kind):
        h = self.conv2(F.relu(self.conv1(x)))
        u = self.squash(h.flatten(1).view(len(x), 16, 4))
        v = self.route((self.votes @ u[:, :, None, :, None])[..., 0])
        chosen = v * F.one_hot(kind, 5)[..., None].to(v.dtype)
        made = torch.sigmoid(self.fc2(F.relu(self.fc1(chosen.flatten(1)))))
        return v.norm(dim=-1), made


def capsules():
    def batch():
        g = generator(80)
        return {"pixel_values": torch.rand(4, 1, 16, 16, generator=g)[..., :16].contiguous(),
                "labels": torch.randint(0, 5, (4,), generator=g)}
    def loss(m, b):
        length, made = m(b["pixel_values"], b["labels"])
        right = F.one_hot(b["labels"], 5).to(length.dtype)
        margin = right * F.relu(0.9 - length) ** 2 + 0.5 * (1 - right) * F.relu(length - 0.1) ** 2
        return margin.sum(1).mean() + 0.05 * F.mse_loss(made, b["pixel_values"].flatten(1))
    return Family("capsules", Capsules, batch, loss, vision=True)


class Ode(nn.Module):
    """A state that follows a learned slope, by steps of Runge and Kutta."""

    def __init__(self):
        super().__init__()
        self.enter, self.l1, self.l2 = nn.Linear(6, 16), nn.Linear(17, 24), nn.Linear(24, 16)
        self.norm, self.leave = nn.LayerNorm(16), nn.Linear(16, 3)

    def slope(self, t, h):
        t = torch.full_like(h[:, :1], t)
        return self.l2(torch.tanh(self.l1(torch.cat([h, t], -1))))

    def forward(self, x):
        h, dt = self.enter(x), 0.25
        for i in range(4):
            t = i * dt
            k1 = self.slope(t, h)
            k2 = self.slope(t + dt / 2, h + dt / 2 * k1)
            k3 = self.slope(t + dt / 2, h + dt / 2 * k2)
            k4 = self.slope(t + dt, h + dt * k3)
            h = h + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return self.leave(self.norm(h))


def ode():
    def batch():
        g = generator(81)
        return {"pixel_values": torch.randn(8, 6, generator=g), "labels": torch.randn(8, 3, generator=g)}
    return Family("ode", Ode, batch, lambda m, b: F.mse_loss(m(b["pixel_values"]), b["labels"]))


class Features(nn.Module):
    """Each column of a table is a token; the token of the class reads them all."""

    def __init__(self, size=24):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(6, size)), nn.Parameter(torch.randn(6, size) * 0.2)
        self.kinds, self.cls = nn.Embedding(30, size), nn.Parameter(torch.randn(1, 1, size))
        self.register_buffer("offsets", torch.tensor([0, 10, 20]))
        self.norm1, self.norm2, self.last = (nn.LayerNorm(size) for _ in range(3))
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.fc1, self.fc2, self.head = nn.Linear(size, 64), nn.Linear(32, size), nn.Linear(size, 2)

    def attend(self, x):
        q, k, v = self.qkv(x).view(len(x), -1, 3, 3, 8).permute(2, 0, 3, 1, 4)
        weight = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(8), -1)
        return self.proj((weight @ v).transpose(1, 2).flatten(2))

    def forward(self, numbers, kinds):
        x = numbers[..., None] * self.scale + self.shift
        x = torch.cat([self.cls.expand(len(x), -1, -1), x, self.kinds(kinds + self.offsets)], 1)
        x = x + self.attend(self.norm1(x))
        a, b = self.fc1(self.norm2(x)).chunk(2, -1)
        x = x + self.fc2(a * F.relu(b))
        return self.head(F.relu(self.last(x[:, 0])))


def features():
    def batch():
        g = generator(82)
        return {"pixel_values": torch.randn(8, 6, generator=g), "kinds": torch.randint(0, 10, (8, 3), generator=g),
                "labels": torch.randint(0, 2, (8,), generator=g)}
    def loss(m, b):
        logits = m(b["pixel_values"], b["kinds"])
        return F.cross_entropy(logits, b["labels"], weight=torch.tensor([1.0, 2.0], dtype=logits.dtype))
    return Family("features", Features, batch, loss)


class Sage(nn.Module):
    """Means over neighbours; the product of two nodes says whether they are linked."""

    def __init__(self):
        super().__init__()
        self.self1, self.near1 = nn.Linear(7, 20), nn.Linear(7, 20, bias=False)
        self.self2, self.near2 = nn.Linear(20, 16), nn.Linear(20, 16, bias=False)
        self.norm = nn.LayerNorm(20)

    def gathered(self, x, edges):
        total = torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])
        count = torch.zeros(len(x), dtype=x.dtype).index_add(0, edges[1], torch.ones(edges.shape[1], dtype=x.dtype))
        return total / count.clamp(min=1)[:, None]

    def forward(self, x, edges, pairs):
        h = F.relu(self.norm(self.self1(x) + self.near1(self.gathered(x, edges))))
        h = F.normalize(self.self2(h) + self.near2(self.gathered(h, edges)), dim=-1)
        return (h[pairs[0]] * h[pairs[1]]).sum(-1) * 4


def sage():
    def batch():
        g = generator(83)
        return {"pixel_values": torch.randn(14, 7, generator=g),
                "edges": torch.randint(0, 14, (2, 40), generator=g),
                "pairs": torch.randint(0, 14, (2, 14), generator=g),
                "labels": torch.randint(0, 2, (14,), generator=g).float()}
    return Family("sage", Sage, batch, lambda m, b: F.binary_cross_entropy_with_logits(
        m(b["pixel_values"], b["edges"], b["pairs"]), b["labels"]))


class Questions(nn.Module):
    """A picture, read under the control of a question's last state."""

    def __init__(self):
        super().__init__()
        self.embed, self.lstm = nn.Embedding(VOCAB, 16), nn.LSTM(16, 20, batch_first=True)
        self.stem, self.bn = nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12)
        self.film = nn.Linear(20, 48)
        self.conv1, self.conv2 = nn.Conv2d(12, 12, 3, 1, 1), nn.Conv2d(12, 12, 3, 1, 1)
        self.bn1, self.bn2 = nn.BatchNorm2d(12, affine=False), nn.BatchNorm2d(12, affine=False)
        self.look, self.answer = nn.Linear(20, 12), nn.Linear(12 + 20, 8)

    def forward(self, ids, x):
        q = self.lstm(self.embed(ids))[1][0][-1]
        g1, b1, g2, b2 = self.film(q)[..., None, None].chunk(4, 1)
        x = F.relu(self.bn(self.stem(x)))
        h = F.relu(self.bn1(self.conv1(x)) * (1 + g1) + b1)
        h = F.relu(self.bn2(self.conv2(h)) * (1 + g2) + b2) + x
        places = h.flatten(2)
        weight = torch.softmax((self.look(q)[:, None] @ places) / math.sqrt(12), -1)
        seen = (places @ weight.transpose(1, 2))[..., 0]
        return self.answer(torch.cat([seen, q], -1))


def questions():
    def batch():
        g = generator(84)
        return {"input_ids": torch.randint(3, VOCAB, (4, 6), generator=g),
                "pixel_values": torch.randn(4, 3, 12, 12, generator=g),
                "labels": torch.randint(0, 8, (4,), generator=g)}
    return Family("questions", Questions, batch, lambda m, b: F.cross_entropy(
        m(b["input_ids"], b["pixel_values"]), b["labels"]))


class Triplets(nn.Module):
    """Pictures as points: the same person near, another far, by residual blocks that squeeze and excite."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm0 = nn.Conv2d(3, 16, 3, 1, 1), nn.InstanceNorm2d(16, affine=True)
        self.depth, self.point = nn.Conv2d(16, 16, 3, 2, 1, groups=16), nn.Conv2d(16, 24, 1)
        self.norm1, self.norm2 = nn.BatchNorm2d(16), nn.BatchNorm2d(24)
        self.squeeze, self.excite = nn.Linear(24, 8), nn.Linear(8, 24)
        self.act, self.place = nn.PReLU(24), nn.Linear(24, 12)

    def forward(self, x):
        x = F.leaky_relu(self.norm0(self.stem(x)), 0.1)
        x = self.norm2(self.point(F.relu6(self.norm1(self.depth(x)))))
        w = F.hardsigmoid(self.excite(F.relu(self.squeeze(x.mean((2, 3))))))
        x = self.act(x * w[..., None, None])
        return F.normalize(self.place(F.adaptive_avg_pool2d(x, 1).flatten(1)), dim=1)


def triplets():
    def batch():
        g = generator(85)
        x = torch.randn(4, 3, 10, 10, generator=g)
        return {"pixel_values": x, "near": x + 0.3 * torch.randn(x.shape, generator=g),
                "labels": torch.randn(x.shape, generator=g)}
    def loss(m, b):
        here, near, far = m(torch.cat([b["pixel_values"], b["near"], b["labels"]])).chunk(3)
        return F.relu((here - near).pow(2).sum(1) - (here - far).pow(2).sum(1) + 0.8).mean()
    return Family("triplets", Triplets, batch, loss, vision=True)


def families():
    return [*libraries(), retentive(), temporal(), crf(), series(), flow(), capsules(), ode(), features(),
            sage(), questions(), triplets()]
