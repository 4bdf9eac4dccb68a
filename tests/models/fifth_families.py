# SPDX-License-Identifier: MIT
"""Families of the fifth set, all of plain torch, written after the rules of the first four sets.

State spaces and linear attention, detection by sets, speech with CTC, points, graphs, codebooks,
guided diffusion, contrast, decoding with a cache, recommendation, and losses of two parts: GAN, PPO, DPO.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import VOCAB, Family, tokens


def generator(seed):
    return torch.Generator().manual_seed(seed)


def next_token_loss(model, batch):
    logits = model(batch["input_ids"])[:, :-1]
    return F.cross_entropy(logits.reshape(-1, VOCAB), batch["labels"][:, 1:].reshape(-1))


def two_keys():
    b = tokens()
    return {"input_ids": b["input_ids"], "labels": b["labels"]}


# ---- sequences -----------------------------------------------------------------------------

class SelectiveBlock(nn.Module):
    """A selective state space: a causal convolution, a scan over time, a gate."""

    def __init__(self, size=24, inner=32, states=4):
        super().__init__()
        self.norm, self.enter = nn.LayerNorm(size), nn.Linear(size, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, 3, groups=inner, padding=2)
        self.ask, self.rate = nn.Linear(inner, 2 * states + 2, bias=False), nn.Linear(2, inner)
        self.decay = nn.Parameter(torch.log(torch.arange(1, states + 1).float()).repeat(inner, 1))
        self.skip, self.leave = nn.Parameter(torch.ones(inner)), nn.Linear(inner, size, bias=False)
        self.states = states

    def scan(self, x, step, b, c):
        a = torch.exp(step[..., None] * -torch.exp(self.decay))
        u = step[..., None] * b[:, :, None, :] * x[..., None]
        h, out = torch.zeros_like(u[:, 0]), []
        for i in range(x.shape[1]):
            h = a[:, i] * h + u[:, i]
            out.append((h * c[:, i, None, :]).sum(-1))
        return torch.stack(out, 1)

    def forward(self, x):
        n = x.shape[1]
        u, gate = self.enter(self.norm(x)).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2))[..., :n].transpose(1, 2))
        step, b, c = self.ask(u).split([2, self.states, self.states], -1)
        y = self.scan(u, F.softplus(self.rate(step)), b, c) + self.skip * u
        return x + self.leave(y * F.silu(gate))


class StateSpace(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.blocks = nn.ModuleList(SelectiveBlock() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


class TimeMix(nn.Module):
    """Linear attention with a decay of each channel, read with the token before mixed in."""

    def __init__(self, size=24):
        super().__init__()
        self.mix_k, self.mix_v, self.mix_r = (nn.Parameter(torch.rand(size)) for _ in range(3))
        self.decay, self.first = nn.Parameter(torch.randn(size)), nn.Parameter(torch.randn(size) * 0.3)
        self.key, self.value, self.receptance, self.output = (
            nn.Linear(size, size, bias=False) for _ in range(4))

    def forward(self, x):
        before = F.pad(x, (0, 0, 1, -1))
        k = self.key(x * self.mix_k + before * (1 - self.mix_k))
        v = self.value(x * self.mix_v + before * (1 - self.mix_v))
        r = torch.sigmoid(self.receptance(x * self.mix_r + before * (1 - self.mix_r)))
        w, num, den, out = -torch.exp(self.decay), 0, 0, []
        for i in range(x.shape[1]):
            now = torch.exp(self.first + k[:, i])
            out.append((num + now * v[:, i]) / (den + now))
            num = torch.exp(w) * num + torch.exp(k[:, i]) * v[:, i]
            den = torch.exp(w) * den + torch.exp(k[:, i])
        return self.output(r * torch.stack(out, 1))


class ChannelMix(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.mix = nn.Parameter(torch.rand(size))
        self.key, self.value = nn.Linear(size, 48, bias=False), nn.Linear(48, size, bias=False)
        self.receptance = nn.Linear(size, size, bias=False)

    def forward(self, x):
        mixed = x * self.mix + F.pad(x, (0, 0, 1, -1)) * (1 - self.mix)
        k = torch.square(torch.relu(self.key(mixed)))
        return torch.sigmoid(self.receptance(mixed)) * self.value(k)


class Receptance(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.start = nn.Embedding(VOCAB, 24), nn.LayerNorm(24)
        self.times = nn.ModuleList(TimeMix() for _ in range(2))
        self.channels = nn.ModuleList(ChannelMix() for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(24) for _ in range(5))
        self.head = nn.Linear(24, VOCAB, bias=False)

    def forward(self, ids):
        x = self.start(self.embed(ids))
        for i in range(2):
            x = x + self.times[i](self.norms[2 * i](x))
            x = x + self.channels[i](self.norms[2 * i + 1](x))
        return self.head(self.norms[4](x))


class CachedAttention(nn.Module):
    """Attention of one new token to the keys and values kept of those before."""

    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(size, size) for _ in range(4))

    def forward(self, x, cache):
        b, n, c = x.shape
        q, k, v = (p(x).view(b, n, self.heads, -1).transpose(1, 2)
                   for p in (self.q_proj, self.k_proj, self.v_proj))
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        weight = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(c // self.heads), -1)
        return self.o_proj((weight @ v).transpose(1, 2).reshape(b, n, c)), (k, v)


class CachedLayer(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention = CachedAttention(size)
        self.fc1, self.fc2 = nn.Linear(size, 48), nn.Linear(48, size)

    def forward(self, x, cache):
        y, cache = self.attention(self.norm1(x), cache)
        x = x + y
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)))), cache


class Cached(nn.Module):
    """Decodes token by token, with given words, as reinforcement learning on beams does."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCAB, 32), nn.Embedding(16, 32)
        self.layers = nn.ModuleList(CachedLayer() for _ in range(2))
        self.norm = nn.LayerNorm(32)

    def forward(self, ids):
        caches, out = [None, None], []
        for i in range(5):
            x = self.embed(ids[:, i:i + 1]) + self.place(torch.tensor([i]))
            for j, layer in enumerate(self.layers):
                x, caches[j] = layer(x, caches[j])
            out.append(F.linear(self.norm(x), self.embed.weight))
        return torch.cat(out, 1)


def sequences():
    yield Family("statespace", StateSpace, two_keys, next_token_loss)
    yield Family("receptance", Receptance, two_keys, next_token_loss)

    def beams(m, b):
        logits = m(b["input_ids"]) / 0.7
        chosen = torch.log_softmax(logits, -1).gather(-1, b["labels"][:, 1:6, None].clamp(min=0))[..., 0]
        score = chosen.sum(1) / 5 ** 0.6
        return -(score * torch.tensor([1.0, 0.5, -0.3, 0.8])).mean()
    yield Family("cached", Cached, two_keys, beams)


# ---- images, speech, points, graphs -------------------------------------------------------------

class SetLayer(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(size, 2, batch_first=True)
        self.cross_attn = nn.MultiheadAttention(size, 2, batch_first=True)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(size) for _ in range(3))
        self.fc1, self.fc2 = nn.Linear(size, 40), nn.Linear(40, size)

    def forward(self, x, memory, places, queries):
        q = x + queries
        x = self.norm1(x + self.self_attn(q, q, x, need_weights=False)[0])
        y = self.cross_attn(x + queries, memory + places, memory, need_weights=False)[0]
        x = self.norm2(x + y)
        return self.norm3(x + self.fc2(F.relu(self.fc1(x))))


class SetDetector(nn.Module):
    """Boxes as a set: queries attend to the image, the cheapest assignment gives the loss."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1), nn.GroupNorm(3, 12), nn.ReLU(),
                                  nn.Conv2d(12, 24, 3, 2, 1), nn.GroupNorm(4, 24), nn.ReLU())
        self.places = nn.Parameter(torch.randn(1, 16, 24) * 0.5)
        self.queries = nn.Embedding(4, 24)
        self.layers = nn.ModuleList(SetLayer() for _ in range(2))
        self.kinds, self.box1, self.box2 = nn.Linear(24, 6), nn.Linear(24, 24), nn.Linear(24, 4)

    def forward(self, x):
        memory = self.stem(x).flatten(2).transpose(1, 2)
        queries = self.queries.weight[None].expand(len(x), -1, -1)
        h = torch.zeros_like(queries)
        for layer in self.layers:
            h = layer(h, memory, self.places, queries)
        return self.kinds(h), torch.sigmoid(self.box2(F.relu(self.box1(h))))


def overlap(a, b):
    low, high = torch.max(a[..., :2], b[..., :2]), torch.min(a[..., 2:], b[..., 2:])
    both = (high - low).clamp(min=0).prod(-1)
    areas = [(x[..., 2:] - x[..., :2]).clamp(min=0).prod(-1) for x in (a, b)]
    return both / (areas[0] + areas[1] - both + 1e-6)


def corners(box):
    return torch.cat([box[..., :2] - box[..., 2:] / 2, box[..., :2] + box[..., 2:] / 2], -1)


def set_loss(m, b):
    import itertools
    kinds, boxes = m(b["pixel_values"])
    with torch.no_grad():
        share = kinds.softmax(-1).gather(-1, b["labels"][:, None].expand(-1, 4, -1))
        cost = torch.cdist(boxes, b["boxes"], p=1) - share
    ways = list(itertools.permutations(range(4), 2))
    chosen = torch.tensor([min(ways, key=lambda w: float(c[w[0], 0] + c[w[1], 1])) for c in cost])
    wanted = torch.full((len(kinds), 4), 5).scatter(1, chosen, b["labels"])
    near = boxes.gather(1, chosen[..., None].expand(-1, -1, 4))
    weight = torch.tensor([1.0] * 5 + [0.1])
    loss = F.cross_entropy(kinds.transpose(1, 2), wanted, weight=weight)
    return loss + 5 * F.l1_loss(near, b["boxes"]) + 2 * (1 - overlap(
        corners(near), corners(b["boxes"]))).mean()


def set_detector():
    def batch():
        g = generator(51)
        return {"pixel_values": torch.randn(3, 3, 16, 16, generator=g),
                "boxes": torch.rand(3, 2, 4, generator=g) * 0.5 + 0.2,
                "labels": torch.randint(0, 5, (3, 2), generator=g)}
    return Family("sets", SetDetector, batch, set_loss, vision=True)


class ConformerBlock(nn.Module):
    """Half a feed-forward, attention, a gated convolution, half a feed-forward."""

    def __init__(self, size=24, heads=3):
        super().__init__()
        def feed():
            return nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 40), nn.SiLU(), nn.Linear(40, size))
        self.ff1, self.ff2, self.heads = feed(), feed(), heads
        self.attn_norm, self.qkv, self.proj = nn.LayerNorm(size), nn.Linear(size, 72), nn.Linear(size, size)
        self.conv_norm, self.point1 = nn.LayerNorm(size), nn.Conv1d(size, 2 * size, 1)
        self.depth = nn.Conv1d(size, size, 5, padding=2, groups=size)
        self.bn, self.point2 = nn.BatchNorm1d(size), nn.Conv1d(size, size, 1)
        self.last = nn.LayerNorm(size)

    def attend(self, x, mask):
        b, n, c = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        score = torch.matmul(q, k.transpose(-2, -1)) * (c // self.heads) ** -0.5
        weight = score.masked_fill(mask[:, None, None], float("-inf")).softmax(-1)
        return self.proj(torch.matmul(weight, v).transpose(1, 2).reshape(b, n, c))

    def convolve(self, x):
        x = F.glu(self.point1(x.transpose(1, 2)), 1)
        return self.point2(F.silu(self.bn(self.depth(x)))).transpose(1, 2)

    def forward(self, x, mask):
        x = x + 0.5 * self.ff1(x)
        x = x + self.attend(self.attn_norm(x), mask)
        x = x + self.convolve(self.conv_norm(x))
        return self.last(x + 0.5 * self.ff2(x))


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sample = nn.Conv1d(10, 24, 3, stride=2, padding=1)
        self.blocks = nn.ModuleList(ConformerBlock() for _ in range(2))
        self.head = nn.Linear(24, 9)

    def forward(self, x, lengths):
        x = F.relu(self.sample(x)).transpose(1, 2)
        mask = torch.arange(x.shape[1])[None] >= lengths[:, None]
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def conformer():
    def batch():
        g = generator(52)
        return {"pixel_values": torch.randn(4, 10, 32, generator=g),
                "lengths": torch.tensor([16, 14, 12, 16]),
                "labels": torch.randint(1, 9, (4, 5), generator=g)}

    def loss(m, b):
        logits = m(b["pixel_values"], b["lengths"])
        return F.ctc_loss(logits.log_softmax(-1).transpose(0, 1), b["labels"], b["lengths"],
                          torch.full((len(logits),), 5), blank=0, zero_infinity=True)
    return Family("conformer", Conformer, batch, loss)


class EdgeConv(nn.Module):
    """Convolution over the nearest neighbours of each point."""

    def __init__(self, i, o, neighbours=5):
        super().__init__()
        self.line, self.bn, self.k = nn.Conv2d(2 * i, o, 1), nn.BatchNorm2d(o), neighbours

    def forward(self, x):
        apart = torch.cdist(x.transpose(1, 2), x.transpose(1, 2))
        near = apart.topk(self.k, -1, largest=False)[1]
        b, c, n = x.shape
        found = x.gather(2, near.reshape(b, 1, -1).expand(-1, c, -1)).view(b, c, n, self.k)
        here = x[..., None].expand_as(found)
        return F.leaky_relu(self.bn(self.line(torch.cat([found - here, here], 1))), 0.2).amax(-1)


class Points(nn.Module):
    def __init__(self):
        super().__init__()
        self.e1, self.e2 = EdgeConv(3, 12), EdgeConv(12, 16)
        self.mix = nn.Conv1d(28, 24, 1)
        self.f1, self.f2 = nn.Linear(48, 24), nn.Linear(24, 6)

    def forward(self, x):
        a = self.e1(x)
        h = F.leaky_relu(self.mix(torch.cat([a, self.e2(a)], 1)), 0.2)
        h = torch.cat([F.adaptive_max_pool1d(h, 1), F.adaptive_avg_pool1d(h, 1)], 1).flatten(1)
        return self.f2(F.leaky_relu(self.f1(h), 0.2))


def points():
    def batch():
        g = generator(53)
        return {"pixel_values": torch.randn(5, 3, 24, generator=g),
                "labels": torch.randint(0, 6, (5,), generator=g)}
    return Family("edgeconv", Points, batch, lambda m, b: F.cross_entropy(
        m(b["pixel_values"]), b["labels"], label_smoothing=0.2))


class GraphLayer(nn.Module):
    def __init__(self, size=24, heads=4):
        super().__init__()
        self.heads, self.norm1, self.norm2 = heads, nn.LayerNorm(size), nn.LayerNorm(size)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))
        self.fc1, self.fc2 = nn.Linear(size, 40), nn.Linear(40, size)

    def forward(self, x, bias, absent):
        b, n, c = x.shape
        y = self.norm1(x)
        q, k, v = (p(y).view(b, n, self.heads, -1).transpose(1, 2)
                   for p in (self.query, self.key, self.value))
        score = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(c / self.heads) + bias
        score = score.masked_fill(absent[:, None, None], torch.finfo(score.dtype).min)
        y = torch.einsum("bhij,bhjd->bhid", score.softmax(-1), v).transpose(1, 2).reshape(b, n, c)
        x = x + self.out(y)
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class GraphTransformer(nn.Module):
    """Attention over all nodes, biased by distance; degrees are embedded."""

    def __init__(self):
        super().__init__()
        self.enter, self.degree = nn.Linear(6, 24), nn.Embedding(12, 24)
        self.distance, self.whole = nn.Embedding(6, 4), nn.Parameter(torch.randn(1, 1, 24) * 0.3)
        self.layers = nn.ModuleList(GraphLayer() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, 1)

    def forward(self, x, degrees, distances, absent):
        h = self.enter(x) + self.degree(degrees)
        h = torch.cat([self.whole.expand(len(h), -1, -1), h], 1)
        bias = F.pad(self.distance(distances).permute(0, 3, 1, 2), (1, 0, 1, 0))
        absent = F.pad(absent, (1, 0), value=False)
        for layer in self.layers:
            h = layer(h, bias, absent)
        return self.head(self.norm(h)[:, 0])[:, 0]


def graph_transformer():
    def batch():
        g = generator(54)
        absent = torch.zeros(4, 9, dtype=torch.bool)
        absent[1, 6:] = True
        return {"pixel_values": torch.randn(4, 9, 6, generator=g),
                "degrees": torch.randint(0, 12, (4, 9), generator=g),
                "distances": torch.randint(0, 6, (4, 9, 9), generator=g), "absent": absent,
                "labels": torch.randn(4, generator=g)}
    return Family("graphormer", GraphTransformer, batch, lambda m, b: F.smooth_l1_loss(
        m(b["pixel_values"], b["degrees"], b["distances"], b["absent"]), b["labels"]))


# ---- generators and contrast -------------------------------------------------------------------

class Codes(nn.Module):
    """An autoencoder whose latents are rows of a codebook, passed straight through."""

    def __init__(self):
        super().__init__()
        self.enc1, self.enc2 = nn.Conv2d(3, 12, 4, 2, 1), nn.Conv2d(12, 12, 3, 1, 1)
        self.norm, self.book = nn.GroupNorm(3, 12), nn.Embedding(20, 12)
        self.dec1, self.dec2 = nn.Conv2d(12, 12, 3, 1, 1), nn.ConvTranspose2d(12, 3, 4, 2, 1)

    def quantise(self, z):
        flat = z.permute(0, 2, 3, 1).reshape(-1, 12)
        apart = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.book.weight.t() \
            + self.book.weight.pow(2).sum(1)
        near = self.book(apart.argmin(1)).view(z.shape[0], 8, 8, 12).permute(0, 3, 1, 2)
        cost = F.mse_loss(near, z.detach()) + 0.25 * F.mse_loss(z, near.detach())
        return z + (near - z).detach(), cost

    def forward(self, x):
        z = self.enc2(F.relu(self.norm(self.enc1(x))))
        z, cost = self.quantise(z)
        return self.dec2(F.relu(self.dec1(z))), cost


def codes():
    def batch():
        g = generator(55)
        x = torch.randn(4, 3, 16, 16, generator=g)
        return {"pixel_values": x, "labels": x.clone()}

    def loss(m, b):
        made, cost = m(b["pixel_values"])
        return F.mse_loss(made, b["labels"]) + cost
    return Family("codebook", Codes, batch, loss, vision=True)


class Guided(nn.Module):
    """A denoiser of images whose class is dropped for some samples; predicts the velocity."""

    def __init__(self):
        super().__init__()
        self.enter, self.kinds = nn.Conv2d(3, 12, 3, 1, 1), nn.Embedding(6, 24)
        self.time1, self.time2 = nn.Linear(12, 24), nn.Linear(24, 24)
        self.norm1, self.conv1 = nn.GroupNorm(3, 12), nn.Conv2d(12, 12, 3, 1, 1)
        self.film, self.norm2 = nn.Linear(24, 24), nn.GroupNorm(3, 12)
        self.conv2, self.down = nn.Conv2d(12, 12, 3, 1, 1), nn.Conv2d(12, 12, 3, 2, 1)
        self.to_q, self.to_k, self.to_v = (nn.Conv2d(12, 12, 1) for _ in range(3))
        self.up, self.out = nn.ConvTranspose2d(12, 12, 2, 2), nn.Conv2d(12, 3, 3, 1, 1)

    def condition(self, t, kind, dropped):
        f = t[:, None] * torch.exp(-math.log(100.0) * torch.arange(6) / 6)
        t = self.time2(F.silu(self.time1(torch.cat([f.sin(), f.cos()], -1))))
        return t + self.kinds(torch.where(dropped, torch.full_like(kind, 5), kind))

    def attend(self, x):
        q, k, v = (p(x).flatten(2) for p in (self.to_q, self.to_k, self.to_v))
        w = torch.softmax(torch.bmm(q.transpose(1, 2), k) * 12 ** -0.5, -1)
        return x + torch.bmm(v, w.transpose(1, 2)).view_as(x)

    def forward(self, x, t, kind, dropped):
        scale, shift = self.film(F.silu(self.condition(t, kind, dropped)))[..., None, None].chunk(2, 1)
        x = self.enter(x)
        h = self.conv1(F.silu(self.norm1(x)))
        h = x + self.conv2(F.silu(self.norm2(h) * (1 + scale) + shift))
        return self.out(self.up(self.attend(self.down(h))) + h)


def guided():
    def batch():
        g = generator(56)
        return {"pixel_values": torch.randn(4, 3, 12, 12, generator=g),
                "labels": torch.randn(4, 3, 12, 12, generator=g),
                "t": torch.tensor([0.1, 0.4, 0.6, 0.9]), "kind": torch.tensor([0, 4, 2, 1]),
                "dropped": torch.tensor([False, True, False, False])}

    def loss(m, b):
        alpha, sigma = torch.cos(b["t"] * math.pi / 2), torch.sin(b["t"] * math.pi / 2)
        a, s = alpha[:, None, None, None], sigma[:, None, None, None]
        noisy = a * b["pixel_values"] + s * b["labels"]
        made = m(noisy, b["t"] * 1000, b["kind"], b["dropped"])
        each = (made - (a * b["labels"] - s * b["pixel_values"])).pow(2).mean((1, 2, 3))
        snr = (alpha / sigma) ** 2
        return (each * snr.clamp(max=5.0) / (snr + 1)).mean()
    return Family("guided", Guided, batch, loss, vision=True)


class Contrast(nn.Module):
    """Two views of each image, an encoder and a projector; the other view is the label."""

    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv2d(3, 12, 3, 2, 1), nn.BatchNorm2d(12)
        self.c2, self.b2 = nn.Conv2d(12, 24, 3, 2, 1), nn.BatchNorm2d(24)
        self.p1, self.act, self.p2 = nn.Linear(24, 24), nn.ReLU(), nn.Linear(24, 16)

    def forward(self, x):
        x = F.relu(self.b2(self.c2(F.relu(self.b1(self.c1(x)))))).mean((2, 3))
        return F.normalize(self.p2(self.act(self.p1(x))), dim=-1)


def contrast():
    def batch():
        g = generator(57)
        x = torch.randn(6, 3, 16, 16, generator=g)
        return {"pixel_values": x, "labels": x.flip(-1) + 0.3 * torch.randn(x.shape, generator=g)}

    def loss(m, b):
        z = m(torch.cat([b["pixel_values"], b["labels"]]))
        score = torch.mm(z, z.t()) / 0.2
        score = score.masked_fill(torch.eye(len(z), dtype=torch.bool), float("-inf"))
        return F.cross_entropy(score, torch.arange(len(z)).roll(len(z) // 2))
    return Family("contrast", Contrast, batch, loss, vision=True)


class Adversaries(nn.Module):
    """A generator and a discriminator; one loss holds both sides, and features that should match."""

    def __init__(self):
        super().__init__()
        self.g1, self.gn = nn.Linear(8, 16 * 16), nn.BatchNorm2d(16)
        self.g2, self.g3 = nn.ConvTranspose2d(16, 12, 4, 2, 1), nn.ConvTranspose2d(12, 3, 4, 2, 1)
        self.d1, self.d2 = nn.Conv2d(3, 12, 4, 2, 1), nn.Conv2d(12, 16, 4, 2, 1)
        self.d3 = nn.Linear(16 * 16, 1)

    def make(self, noise):
        h = F.relu(self.gn(self.g1(noise).view(-1, 16, 4, 4)))
        return torch.tanh(self.g3(F.relu(self.g2(h))))

    def judge(self, x):
        h = F.leaky_relu(self.d2(F.leaky_relu(self.d1(x), 0.2)), 0.2)
        return self.d3(h.flatten(1))[:, 0], h

    def forward(self, real, noise):
        made = self.make(noise)
        (good, features), (bad, _), (fooled, near) = (
            self.judge(real), self.judge(made.detach()), self.judge(made))
        return good, bad, fooled, F.l1_loss(near.mean(0), features.detach().mean(0))


def adversaries():
    def batch():
        g = generator(58)
        return {"pixel_values": torch.tanh(torch.randn(4, 3, 16, 16, generator=g)),
                "labels": torch.randn(4, 8, generator=g)}

    def loss(m, b):
        good, bad, fooled, match = m(b["pixel_values"], b["labels"])
        return F.relu(1 - good).mean() + F.relu(1 + bad).mean() - 0.5 * fooled.mean() + 0.1 * match
    return Family("adversaries", Adversaries, batch, loss, vision=True)


# ---- recommendation, forecasts, policies --------------------------------------------------------

class Towers(nn.Module):
    """Users and items as bags of embeddings; the other items of the batch are the wrong answers."""

    def __init__(self):
        super().__init__()
        self.past = nn.EmbeddingBag(60, 16, mode="mean")
        self.words = nn.EmbeddingBag(40, 16, mode="sum")
        self.user1, self.user2 = nn.Linear(16, 24), nn.Linear(24, 16)
        self.item1, self.item2 = nn.Linear(16, 24), nn.Linear(24, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, past, words, importance):
        u = self.user2(F.relu(self.user1(self.norm(self.past(past)))))
        i = self.item2(F.relu(self.item1(self.words(words, per_sample_weights=importance))))
        return F.normalize(u, dim=-1) @ F.normalize(i, dim=-1).t() / 0.1


def towers():
    def batch():
        g = generator(59)
        return {"input_ids": torch.randint(0, 60, (6, 7), generator=g),
                "words": torch.randint(0, 40, (6, 4), generator=g),
                "importance": torch.rand(6, 4, generator=g),
                "labels": torch.rand(6, generator=g) * 0.2 + 0.01}

    def loss(m, b):
        score = m(b["input_ids"], b["words"], b["importance"]) - torch.log(b["labels"])[None]
        return F.cross_entropy(score, torch.arange(len(score)))
    return Family("towers", Towers, batch, loss)


class Forecast(nn.Module):
    """Series cut into patches; each series is normalised, and the forecast is turned back."""

    def __init__(self):
        super().__init__()
        self.patch, self.place = nn.Linear(8, 24), nn.Parameter(torch.randn(1, 7, 24) * 0.2)
        layer = nn.TransformerEncoderLayer(24, 2, 40, dropout=0.0, activation="gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.gain, self.shift = nn.Parameter(torch.ones(3) * 1.1), nn.Parameter(torch.ones(3) * 0.1)
        self.head = nn.Linear(7 * 24, 6)

    def forward(self, x):
        mean, std = x.mean(1, keepdim=True), torch.sqrt(x.var(1, keepdim=True, unbiased=False) + 1e-5)
        x = ((x - mean) / std * self.gain + self.shift).transpose(1, 2)
        x = x.unfold(-1, 8, 4)
        h = self.encoder(self.patch(x).flatten(0, 1) + self.place)
        y = self.head(h.flatten(1)).view(len(x), 3, 6).transpose(1, 2)
        return (y - self.shift) / self.gain * std + mean


def forecast():
    def batch():
        g = generator(60)
        x = torch.randn(4, 38, 3, generator=g).cumsum(1)
        return {"pixel_values": x[:, :32].clone(), "labels": x[:, 32:].clone()}
    return Family("forecast", Forecast, batch, lambda m, b: F.huber_loss(
        m(b["pixel_values"]), b["labels"], delta=1.0))


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.l1, self.l2, self.norm = nn.Linear(6, 24), nn.Linear(24, 24), nn.LayerNorm(24)
        self.actor, self.critic = nn.Linear(24, 5), nn.Linear(24, 1)

    def forward(self, x):
        h = torch.tanh(self.norm(self.l2(torch.tanh(self.l1(x)))))
        return self.actor(h), self.critic(h)[..., 0]


def policy():
    def batch():
        g = generator(61)
        return {"pixel_values": torch.randn(4, 8, 6, generator=g),
                "labels": torch.randint(0, 5, (4, 8), generator=g),
                "old": -1.6 + 0.2 * torch.randn(4, 8, generator=g),
                "reward": torch.randn(4, 8, generator=g)}

    def loss(m, b):
        logits, value = m(b["pixel_values"])
        with torch.no_grad():
            gain, gains = torch.zeros(len(value)), []
            for i in reversed(range(7)):
                error = b["reward"][:, i] + 0.99 * value[:, i + 1] - value[:, i]
                gain = error + 0.99 * 0.95 * gain
                gains.insert(0, gain)
            gains = torch.stack(gains, 1)
            returns = gains + value[:, :7]
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        each = F.log_softmax(logits[:, :7], -1)
        ratio = torch.exp(each.gather(-1, b["labels"][:, :7, None])[..., 0] - b["old"][:, :7])
        gained = torch.min(ratio * gains, ratio.clamp(0.8, 1.2) * gains).mean()
        chance = -(each.exp() * each).sum(-1).mean()
        return 0.5 * F.mse_loss(value[:, :7], returns) - gained - 0.01 * chance
    return Family("policy", Policy, batch, loss)


class Adapted(nn.Linear):
    """A frozen matrix with a product of two thin ones beside it."""

    def __init__(self, i, o):
        super().__init__(i, o)
        self.weight.requires_grad_(False)
        self.thin_a, self.thin_b = nn.Parameter(torch.randn(4, i) * 0.2), nn.Parameter(torch.randn(o, 4) * 0.2)
        self.on = True

    def forward(self, x):
        y = F.linear(x, self.weight, self.bias)
        return y + F.linear(F.linear(x, self.thin_a), self.thin_b) * 2.0 if self.on else y


class Preference(nn.Module):
    """A small causal model with adapters, compared with itself without them."""

    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCAB, 24), nn.Parameter(torch.randn(1, 12, 24) * 0.2)
        self.norm1, self.qkv, self.proj = nn.LayerNorm(24), Adapted(24, 72), Adapted(24, 24)
        self.norm2, self.fc1, self.fc2 = nn.LayerNorm(24), Adapted(24, 48), Adapted(48, 24)
        self.last, self.head = nn.LayerNorm(24), nn.Linear(24, VOCAB)

    def forward(self, ids):
        x = self.embed(ids) + self.place[:, :ids.shape[1]]
        q, k, v = self.qkv(self.norm1(x)).view(*ids.shape, 3, 3, 8).permute(2, 0, 3, 1, 4)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        x = x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))
        return self.head(self.last(x))


def chances(m, ids, labels):
    each = torch.log_softmax(m(ids)[:, :-1].float(), -1)
    return each.gather(-1, labels[:, 1:, None].clamp(min=0))[..., 0].sum(-1)


def preference_loss(m, b):
    ours = chances(m, b["input_ids"], b["labels"])
    with torch.no_grad():
        adapters = [x for x in m.modules() if isinstance(x, Adapted)]
        for x in adapters:
            x.on = False
        theirs = chances(m, b["input_ids"], b["labels"])
        for x in adapters:
            x.on = True
    gain = ours - theirs
    return -F.logsigmoid(0.1 * (gain[:2] - gain[2:])).mean()


def families():
    return [*sequences(), set_detector(), conformer(), points(), graph_transformer(), codes(), guided(),
            contrast(), adversaries(), towers(), forecast(), policy(),
            Family("preference", Preference, two_keys, preference_loss)]
