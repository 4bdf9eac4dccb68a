# SPDX-License-Identifier: MIT
"""Own families of the ninth set; see ninth_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import VOCAB, Family
from ninth_loops import larsed, lioned, rms, decayed, by_sum, in_groups, scheduled, by_value, scaled, followed, looped
from sixth_families import generator


# ---- language ------------------------------------------------------------------------------------

class CausalSelfAttention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.heads, self.dropout = heads, 0.0

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(C, dim=2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=self.dropout, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class GptBlock(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attn = CausalSelfAttention(size, heads)
        self.c_fc, self.c_out, self.gelu = nn.Linear(size, 4 * size), nn.Linear(4 * size, size), nn.GELU()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.c_out(self.gelu(self.c_fc(self.ln_2(x))))
        return x


class SmallGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe, self.drop = nn.Embedding(VOCAB, 32), nn.Embedding(16, 32), nn.Dropout(0.0)
        self.h = nn.ModuleList(GptBlock(32, 4) for _ in range(3))
        self.ln_f, self.lm_head = nn.LayerNorm(32), nn.Linear(32, VOCAB, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx):
        pos = torch.arange(0, idx.size(1), dtype=torch.long)
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def small_gpt():
    def batch():
        ids = torch.randint(1, VOCAB, (4, 13), generator=generator(141))
        y = ids[:, 1:].clone()
        y[2, 9:] = -1
        return {"input_ids": ids[:, :-1].clone(), "labels": y}
    def loss(m, b):
        logits = m(b["input_ids"])
        return F.cross_entropy(logits.view(-1, logits.size(-1)), b["labels"].view(-1), ignore_index=-1)
    return looped(Family("nanogpt", SmallGpt, batch, loss), in_groups)


class Cell(nn.Module):
    """An LSTM cell whose gates look at the cell's state and are normed."""

    def __init__(self, inside, size):
        super().__init__()
        self.enter, self.again = nn.Linear(inside, 4 * size, bias=False), nn.Linear(size, 4 * size)
        self.peep = nn.Parameter(torch.zeros(3, size))
        self.norm = nn.LayerNorm(4 * size)

    def forward(self, x, h, c):
        i, f, g, o = self.norm(self.enter(x) + self.again(h)).chunk(4, -1)
        i, f = torch.sigmoid(i + self.peep[0] * c), torch.sigmoid(f + self.peep[1] * c + 1.0)
        c = f * c + i * torch.tanh(g)
        return torch.sigmoid(o + self.peep[2] * c) * torch.tanh(c), c


class Characters(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.embed, self.low, self.high = nn.Embedding(40, 16), Cell(16, size), Cell(size, size)
        self.out, self.size = nn.Linear(size, 40), size

    def forward(self, ids):
        x = self.embed(ids)
        h1 = c1 = h2 = c2 = x.new_zeros(len(x), self.size)
        made = []
        for t in range(x.shape[1]):
            if t == 4:
                h1, c1, h2, c2 = (s.detach() for s in (h1, c1, h2, c2))
            h1, c1 = self.low(x[:, t], h1, c1)
            h2, c2 = self.high(h1, h2, c2)
            made.append(h2)
        return self.out(torch.stack(made, 1))


def characters():
    def batch():
        ids = torch.randint(0, 40, (5, 9), generator=generator(142))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    return looped(Family("cells", Characters, batch, lambda m, b: F.cross_entropy(
        m(b["input_ids"]).transpose(1, 2), b["labels"])), by_value)


class LongConv(nn.Module):
    """A convolution as long as the text, by FFT; its filter is made by a small network."""

    def __init__(self, size=24, length=16):
        super().__init__()
        self.norm, self.enter, self.leave = nn.LayerNorm(size), nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.short = nn.Conv1d(3 * size, 3 * size, 3, padding=2, groups=3 * size)
        self.filter1, self.filter2 = nn.Linear(5, 16), nn.Linear(16, size)
        self.skip = nn.Parameter(torch.randn(size))
        t = torch.linspace(0, 1, length)[:, None]
        waves = torch.cat([t, (2 * math.pi * t).sin(), (2 * math.pi * t).cos(), (4 * math.pi * t).sin(), (4 * math.pi * t).cos()], 1)
        self.register_buffer("waves", waves)
        self.register_buffer("fade", torch.exp(-t * torch.linspace(1, 6, size)))

    def conv(self, u, k):
        n = u.shape[-1]
        y = torch.fft.irfft(torch.fft.rfft(u, n=2 * n) * torch.fft.rfft(k, n=2 * n), n=2 * n)[..., :n]
        return y + u * self.skip[:, None]

    def forward(self, x):
        n = x.shape[1]
        z = self.short(self.enter(self.norm(x)).transpose(1, 2))[..., :n]
        a, b, v = z.chunk(3, 1)
        k = (self.filter2(torch.sin(self.filter1(self.waves[:n]))) * self.fade[:n]).t()
        y = self.conv(v * b, k) * a
        return x + self.leave(y.transpose(1, 2))


class LongText(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24)
        self.layers = nn.ModuleList(LongConv() for _ in range(2))
        self.norm, self.head = nn.LayerNorm(24), nn.Linear(24, VOCAB)

    def forward(self, ids):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def long_text():
    def batch():
        ids = torch.randint(0, VOCAB, (4, 17), generator=generator(143))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    return looped(Family("longconv", LongText, batch, lambda m, b: F.cross_entropy(
        m(b["input_ids"]).flatten(0, 1), b["labels"].flatten())), lioned)


class Transducer(nn.Module):
    """Speech to text: the sum over all paths of blanks and letters, by logarithms."""

    def __init__(self, size=20, letters=12):
        super().__init__()
        self.enc = nn.LSTM(8, size, batch_first=True, bidirectional=True)
        self.embed, self.pred = nn.Embedding(letters, 16, padding_idx=0), nn.GRU(16, size, batch_first=True)
        self.of_enc, self.of_pred, self.out = nn.Linear(2 * size, 24), nn.Linear(size, 24), nn.Linear(24, letters)

    def scores(self, x, y):
        a, _ = self.enc(x)
        p, _ = self.pred(self.embed(F.pad(y, (1, 0))))
        joint = torch.tanh(self.of_enc(a)[:, :, None] + self.of_pred(p)[:, None])
        return self.out(joint).log_softmax(-1)

    def forward(self, x, y):
        s = self.scores(x, y)
        blank = s[..., 0]
        letter = s[:, :, :-1].gather(3, y[:, None, :, None].expand(-1, s.shape[1], -1, 1))[..., 0]
        alpha = [torch.cat([torch.zeros_like(letter[:, 0, :1]), letter[:, 0].cumsum(1)], 1)]
        for t in range(1, s.shape[1]):
            stay = alpha[-1] + blank[:, t - 1]
            row = [stay[:, 0]]
            for u in range(1, s.shape[2]):
                row.append(torch.logaddexp(stay[:, u], row[-1] + letter[:, t, u - 1]))
            alpha.append(torch.stack(row, 1))
        return -(alpha[-1][:, -1] + blank[:, -1, -1]).mean()


def transducer():
    def batch():
        g = generator(144)
        return {"pixel_values": torch.randn(3, 7, 8, generator=g), "labels": torch.randint(1, 12, (3, 4), generator=g)}
    return Family("transducer", Transducer, batch, lambda m, b: m(b["pixel_values"], b["labels"]))


# ---- decisions -------------------------------------------------------------------------------------

class ActorCritic(nn.Module):
    """A recurrent policy with a value; advantages are sums of errors that fade."""

    def __init__(self, size=24, actions=4):
        super().__init__()
        self.body, self.memory = nn.Linear(6, size), nn.GRUCell(size, size)
        self.policy, self.value = nn.Linear(size, actions), nn.Linear(size, 1)

    def unroll(self, seen, ended):
        h, all_h = seen.new_zeros(seen.shape[1], 24), []
        for t in range(len(seen)):
            h = self.memory(torch.tanh(self.body(seen[t])), h * (1 - ended[t])[:, None])
            all_h.append(h)
        return torch.stack(all_h)

    def advantages(self, value, reward, ended, gamma=0.98, fade=0.95):
        total, out = torch.zeros_like(reward[0]), []
        for t in reversed(range(len(reward))):
            error = reward[t] + gamma * value[t + 1] * (1 - ended[t + 1]) - value[t]
            total = error + gamma * fade * (1 - ended[t + 1]) * total
            out.insert(0, total)
        return torch.stack(out)

    def forward(self, seen, actions, reward, ended):
        h = self.unroll(seen, ended)
        value = self.value(h).squeeze(-1)
        logits = self.policy(h[:-1])
        better = self.advantages(value.detach(), reward, ended)
        log = F.log_softmax(logits, -1)
        chosen = log.gather(-1, actions[..., None]).squeeze(-1)
        normed = (better - better.mean()) / (better.std() + 1e-8)
        entropy = -(log.exp() * log).sum(-1).mean()
        errors = F.smooth_l1_loss(value[:-1], better + value[:-1].detach())
        return -(chosen * normed).mean() + 0.5 * errors - 0.01 * entropy


def actor():
    def batch():
        g = generator(145)
        return {"pixel_values": torch.randn(7, 5, 6, generator=g), "actions": torch.randint(0, 4, (6, 5), generator=g),
                "labels": torch.randn(6, 5, generator=g), "ended": (torch.rand(7, 5, generator=g) < 0.2).float()}
    return looped(Family("actor", ActorCritic, batch, lambda m, b: m(
        b["pixel_values"], b["actions"], b["labels"], b["ended"])), rms)


class Meta(nn.Module):
    """Weights from which two small steps on examples lead to good answers on queries."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(2, 24), nn.Linear(24, 24), nn.Linear(24, 1)

    def answer(self, x, w):
        h = F.relu(F.linear(x, w[0], w[1]))
        h = F.relu(F.linear(h, w[2], w[3]))
        return F.linear(h, w[4], w[5])

    def adapt(self, x, y, rate=0.05):
        w = list(self.parameters())
        for _ in range(2):
            error = F.mse_loss(self.answer(x, w), y)
            slopes = torch.autograd.grad(error, w, create_graph=True)
            w = [p - rate * s for p, s in zip(w, slopes)]
        return w

    def forward(self, x, y, asked, wanted):
        losses = [F.mse_loss(self.answer(asked[i], self.adapt(x[i], y[i])), wanted[i]) for i in range(len(x))]
        return torch.stack(losses).mean()


def meta():
    def batch():
        g = generator(146)
        x, asked = torch.randn(3, 5, 2, generator=g), torch.randn(3, 6, 2, generator=g)
        push = torch.randn(3, 1, 1, generator=g)
        return {"pixel_values": x, "asked": asked, "given": (x.sum(-1, keepdim=True) + push).sin(),
                "labels": (asked.sum(-1, keepdim=True) + push).sin()}
    return Family("maml", Meta, batch, lambda m, b: m(b["pixel_values"], b["given"], b["asked"], b["labels"]))


# ---- pictures --------------------------------------------------------------------------------------

class Twins(nn.Module):
    """Two views of an image agree in each feature, and features do not repeat each other."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU(),
                                  nn.Conv2d(12, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.project = nn.Sequential(nn.Linear(16, 32, bias=False), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 20))
        self.norm = nn.BatchNorm1d(20, affine=False)

    def encode(self, x):
        return self.project(self.body(x).mean((2, 3)))

    def forward(self, a, b):
        a, b = self.encode(a), self.encode(b)
        c = self.norm(a).T @ self.norm(b) / len(a)
        on = torch.diagonal(c).add(-1).pow(2).sum()
        off = c.flatten()[:-1].view(19, 21)[:, 1:].pow(2).sum()
        return on + 0.05 * off


def twins():
    def batch():
        g = generator(147)
        x = torch.randn(8, 3, 16, 16, generator=g)
        return {"pixel_values": x + 0.3 * torch.randn(x.shape, generator=g), "labels": x.flip(-1) + 0.3 * torch.randn(x.shape, generator=g)}
    return looped(Family("barlow", Twins, batch, lambda m, b: m(b["pixel_values"], b["labels"]), vision=True), larsed)


class Maker(nn.Module):
    """Images of one kind from images of another."""

    def __init__(self, size=8):
        super().__init__()
        self.enter = nn.Sequential(nn.ReflectionPad2d(1), nn.Conv2d(3, size, 3), nn.InstanceNorm2d(size), nn.ReLU())
        self.down, self.norm1 = nn.Conv2d(size, 2 * size, 3, 2, 1), nn.InstanceNorm2d(2 * size)
        self.mid, self.norm2 = nn.Conv2d(2 * size, 2 * size, 3, padding=1, padding_mode="reflect"), nn.InstanceNorm2d(2 * size)
        self.up, self.norm3 = nn.ConvTranspose2d(2 * size, size, 3, 2, 1, output_padding=1), nn.InstanceNorm2d(size)
        self.leave = nn.Conv2d(size, 3, 3, padding=1)

    def forward(self, x):
        x = F.relu(self.norm1(self.down(self.enter(x))))
        x = x + self.norm2(self.mid(x))
        x = F.relu(self.norm3(self.up(x)))
        return torch.tanh(self.leave(x))


class Cycle(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_b, self.to_a = Maker(), Maker()
        self.judge_a, self.judge_b = (nn.Sequential(nn.Conv2d(3, 8, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(8, 1, 4, 1, 1)) for _ in range(2))

    def forward(self, a, b):
        made_b, made_a = self.to_b(a), self.to_a(b)
        fool = (self.judge_b(made_b) - 1).pow(2).mean() + (self.judge_a(made_a) - 1).pow(2).mean()
        round_trip = F.l1_loss(self.to_a(made_b), a) + F.l1_loss(self.to_b(made_a), b)
        same = F.l1_loss(self.to_b(b), b) + F.l1_loss(self.to_a(a), a)
        real = (self.judge_a(a) - 1).pow(2).mean() + (self.judge_b(b) - 1).pow(2).mean()
        false = self.judge_a(made_a.detach()).pow(2).mean() + self.judge_b(made_b.detach()).pow(2).mean()
        return fool + 10.0 * round_trip + 5.0 * same + 0.5 * (real + false)


def cycle():
    def batch():
        g = generator(148)
        return {"pixel_values": torch.randn(3, 3, 16, 16, generator=g).tanh(), "labels": torch.rand(3, 3, 16, 16, generator=g) * 2 - 1}
    return Family("cycle", Cycle, batch, lambda m, b: m(b["pixel_values"], b["labels"]), vision=True)


class Modulated(nn.Module):
    """A convolution whose weights are scaled by a style of each sample, and normed again."""

    def __init__(self, inside, outside, style=16, up=False):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(outside, inside, 3, 3)), nn.Parameter(torch.zeros(outside))
        self.affine, self.up = nn.Linear(style, inside), up
        self.strength = nn.Parameter(torch.zeros(1))
        self.register_buffer("blur", torch.tensor([1.0, 3.0, 3.0, 1.0]).outer(torch.tensor([1.0, 3.0, 3.0, 1.0])) / 64)

    def forward(self, x, style, noise):
        b, c, h, w = x.shape
        weight = self.weight * (self.affine(style) + 1)[:, None, :, None, None]
        weight = weight * torch.rsqrt(weight.pow(2).sum((2, 3, 4), keepdim=True) + 1e-8)
        if self.up:
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = F.conv2d(F.pad(x, (2, 1, 2, 1)), self.blur.expand(c, 1, 4, 4), groups=c)
        x = F.conv2d(x.reshape(1, -1, *x.shape[2:]), weight.flatten(0, 1), padding=1, groups=b)
        x = x.view(b, -1, *x.shape[2:]) + self.strength * noise + self.bias[:, None, None]
        return F.leaky_relu(x, 0.2) * math.sqrt(2)


class Styled(nn.Module):
    def __init__(self):
        super().__init__()
        self.map1, self.map2 = nn.Linear(16, 16), nn.Linear(16, 16)
        self.start = nn.Parameter(torch.randn(1, 12, 4, 4))
        self.conv1, self.conv2, self.to_rgb = Modulated(12, 12), Modulated(12, 8, up=True), nn.Conv2d(8, 3, 1)
        self.judge1, self.judge2, self.judge3 = nn.Conv2d(3, 8, 3, 1, 1), nn.Conv2d(9, 12, 3, 2, 1), nn.Linear(12 * 16, 1)

    def mapping(self, z):
        z = z * torch.rsqrt(z.pow(2).mean(1, keepdim=True) + 1e-8)
        return F.leaky_relu(self.map2(F.leaky_relu(self.map1(z), 0.2)), 0.2)

    def judge(self, x):
        x = F.leaky_relu(self.judge1(x), 0.2)
        spread = torch.sqrt(x.var(0, unbiased=False) + 1e-8).mean()
        x = torch.cat([x, spread.expand(len(x), 1, *x.shape[2:])], 1)
        return self.judge3(F.leaky_relu(self.judge2(x), 0.2).flatten(1))

    def forward(self, z, noise, real):
        w = self.mapping(z)
        x = self.conv1(self.start.expand(len(z), -1, -1, -1), w, noise[:, :, ::2, ::2])
        made = self.to_rgb(self.conv2(x, w, noise))
        return F.softplus(-self.judge(made)).mean() + F.softplus(-self.judge(real)).mean()


def styled():
    def batch():
        g = generator(149)
        return {"kinds": torch.randn(4, 16, generator=g), "noise": torch.randn(4, 1, 8, 8, generator=g),
                "pixel_values": torch.randn(4, 3, 8, 8, generator=g), "labels": torch.randn(4, 3, 8, 8, generator=g)}
    return Family("styled", Styled, batch, lambda m, b: m(b["kinds"], b["noise"], b["pixel_values"]))


class Tracker(nn.Module):
    """Where in an image is what a small image shows: one body for both, and their correlation."""

    def __init__(self):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 12, 3, 2), nn.BatchNorm2d(12)
        self.conv2, self.bn2 = nn.Conv2d(12, 16, 3, groups=2), nn.BatchNorm2d(16)
        self.conv3 = nn.Conv2d(16, 16, 3)
        self.gain, self.offset = nn.Parameter(torch.ones(1)), nn.Parameter(torch.zeros(1))

    def features(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        return self.conv3(F.relu(self.bn2(self.conv2(x))))

    def correlate(self, z, x):
        b, c, h, w = x.shape
        out = F.conv2d(x.reshape(1, b * c, h, w), z, groups=b)
        return out.transpose(0, 1)

    def forward(self, z, x):
        return 0.1 * self.gain * self.correlate(self.features(z), self.features(x)) + self.offset


def tracker():
    def batch():
        g = generator(150)
        place = torch.stack(torch.meshgrid(torch.arange(5), torch.arange(5), indexing="ij")) - 2
        near = (place.pow(2).sum(0) <= 2).float()
        return {"pixel_values": torch.randn(4, 3, 40, 40, generator=g), "small": torch.randn(4, 3, 24, 24, generator=g),
                "labels": near.expand(4, 1, 5, 5).contiguous()}
    def loss(m, b):
        made, y = m(b["small"], b["pixel_values"]), b["labels"]
        weight = torch.where(y > 0, 0.5 / (y > 0).sum(), 0.5 / (y == 0).sum())
        return F.binary_cross_entropy_with_logits(made, y, weight, reduction="sum")
    return Family("tracker", Tracker, batch, loss)


class Fire(torch.autograd.Function):
    """A step forward, a smooth slope backward."""

    @staticmethod
    def forward(ctx, v):
        ctx.save_for_backward(v)
        return (v > 0).to(v.dtype)

    @staticmethod
    def backward(ctx, g):
        v, = ctx.saved_tensors
        return g / (1 + 4 * v.abs()) ** 2


class Spiking(nn.Module):
    """Neurons that gather a voltage over time, fire and begin again."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(12, 32), nn.Linear(32, 32), nn.Linear(32, 5)
        self.leak = nn.Parameter(torch.full((2, 32), 1.5))

    def fire(self, v):
        return Fire.apply(v - 1.0)

    def forward(self, x):
        v1 = v2 = x.new_zeros(len(x), 32)
        out, fired = x.new_zeros(len(x), 5), 0
        for t in range(x.shape[1]):
            v1 = torch.sigmoid(self.leak[0]) * v1 + self.fc1(x[:, t])
            s1 = self.fire(v1)
            v1 = v1 - s1.detach()
            v2 = torch.sigmoid(self.leak[1]) * v2 + self.fc2(s1)
            s2 = self.fire(v2)
            v2 = v2 * (1 - s2.detach())
            out = out + self.fc3(s2)
            fired = fired + s2.mean()
        return out / x.shape[1], fired / x.shape[1]


def spiking():
    def batch():
        g = generator(151)
        return {"pixel_values": torch.rand(6, 5, 12, generator=g) * 3, "labels": torch.randint(0, 5, (6,), generator=g)}
    def loss(m, b):
        made, fired = m(b["pixel_values"])
        return F.cross_entropy(made, b["labels"]) + 0.5 * (fired - 0.2) ** 2
    return Family("spiking", Spiking, batch, loss)


class Clip(nn.Module):
    """Convolutions over space, then over time."""

    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.space, self.bn1 = nn.Conv3d(inside, outside, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), nn.BatchNorm3d(outside)
        self.time, self.bn2 = nn.Conv3d(outside, outside, (3, 1, 1), 1, (1, 0, 0), bias=False), nn.BatchNorm3d(outside)
        self.short = nn.Conv3d(inside, outside, 1, (1, stride, stride))
        self.gate1, self.gate2 = nn.Linear(outside, 4), nn.Linear(4, outside)

    def forward(self, x):
        y = F.relu(self.bn1(self.space(x)))
        y = self.bn2(self.time(y))
        gate = torch.sigmoid(self.gate2(F.relu(self.gate1(y.mean((2, 3, 4))))))
        return F.relu(y * gate[:, :, None, None, None] + self.short(x))


class Clips(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1, self.layer2 = Clip(3, 8, 2), Clip(8, 12, 2)
        self.drop, self.fc = nn.Dropout(0.0), nn.Linear(12, 6)

    def forward(self, x):
        return self.fc(self.drop(self.layer2(self.layer1(x)).mean((3, 4)).amax(2)))


def clips():
    def batch():
        g = generator(152)
        return {"pixel_values": torch.randn(4, 3, 6, 16, 16, generator=g), "labels": torch.randint(0, 6, (4,), generator=g)}
    return looped(Family("clips", Clips, batch, lambda m, b: F.cross_entropy(m(b["pixel_values"]), b["labels"])), scaled)


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn1, self.conv2, self.bn2 = nn.Conv2d(3, 12, 3, 1, 1), nn.BatchNorm2d(12), nn.Conv2d(12, 16, 3, 2, 1), nn.BatchNorm2d(16)
        self.fc = nn.Linear(16, 6)

    def forward(self, x):
        x = F.leaky_relu(self.bn1(self.conv1(x)), 0.1)
        x = F.leaky_relu(self.bn2(self.conv2(x)), 0.1)
        return self.fc(F.adaptive_avg_pool2d(x, 1)[:, :, 0, 0])


class MeanTeacher(nn.Module):
    """A student agrees with a teacher on images without labels; few images have one."""

    def __init__(self):
        super().__init__()
        self.student, self.teacher = Body(), Body()
        self.teacher.requires_grad_(False)

    def forward(self, x, other, y):
        made = self.student(x)
        with torch.no_grad():
            wanted = F.softmax(self.teacher(other) / 0.8, -1)
        sure = (wanted.amax(-1) > 0.245).to(x.dtype)
        agree = ((F.softmax(made, -1) - wanted) ** 2).mean(-1)
        return F.cross_entropy(made, y, ignore_index=-1) + 3.0 * (sure * agree).mean()


def mean_teacher():
    def batch():
        g = generator(153)
        x = torch.randn(6, 3, 12, 12, generator=g)
        y = torch.randint(0, 6, (6,), generator=g)
        y[3:] = -1
        return {"pixel_values": x, "other": x + 0.2 * torch.randn(x.shape, generator=g), "labels": y}
    return looped(Family("teacher", MeanTeacher, batch, lambda m, b: m(
        b["pixel_values"], b["other"], b["labels"]), vision=True), followed)


# ---- tables, graphs, sets, items --------------------------------------------------------------------

class Columns(nn.Module):
    """Columns of a table attend to each other; numbers are joined behind them."""

    def __init__(self, sizes=(7, 5, 9, 4), numbers=6, size=16):
        super().__init__()
        self.embed = nn.Embedding(sum(sizes), size)
        self.name = nn.Parameter(torch.randn(len(sizes), 4))
        self.register_buffer("begin", torch.tensor([0, *sizes[:-1]]).cumsum(0))
        layer = nn.TransformerEncoderLayer(size + 4, 4, 32, 0.0, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.fc1, self.fc2 = nn.LayerNorm(numbers), nn.Linear(len(sizes) * (size + 4) + numbers, 32), nn.Linear(32, 1)

    def forward(self, kinds, numbers):
        x = self.embed(kinds + self.begin)
        x = torch.cat([x, self.name.expand(len(x), -1, -1)], -1)
        x = self.encoder(x).flatten(1)
        return self.fc2(F.selu(self.fc1(torch.cat([x, self.norm(numbers)], -1))))[:, 0]


def columns():
    def batch():
        g = generator(154)
        kinds = torch.stack([torch.randint(0, n, (10,), generator=g) for n in (7, 5, 9, 4)], 1)
        return {"kinds": kinds, "numbers": torch.randn(10, 6, generator=g) * 2 + 1, "labels": torch.randint(0, 2, (10,), generator=g).float()}
    def loss(m, b):
        z, y = m(b["kinds"], b["numbers"]), b["labels"]
        each = F.binary_cross_entropy_with_logits(z, y, reduction="none")
        p = torch.sigmoid(z)
        right = p * y + (1 - p) * (1 - y)
        return ((0.25 * y + 0.75 * (1 - y)) * (1 - right) ** 2 * each).mean()
    return looped(Family("columns", Columns, batch, loss), scheduled)


class GraphConv(nn.Module):
    """Neighbours weighted by the roots of both degrees."""

    def __init__(self, inside, outside):
        super().__init__()
        self.lin, self.bias = nn.Linear(inside, outside, bias=False), nn.Parameter(torch.zeros(outside))

    def forward(self, x, edges):
        n = x.size(0)
        loops = torch.arange(n)
        row, col = torch.cat([edges[0], loops]), torch.cat([edges[1], loops])
        degree = torch.zeros(n, dtype=x.dtype).scatter_add_(0, col, torch.ones_like(col, dtype=x.dtype))
        root = degree.pow(-0.5)
        weight = root[row] * root[col]
        sent = self.lin(x)[row] * weight.unsqueeze(-1)
        return torch.zeros(n, sent.size(1), dtype=x.dtype).index_add_(0, col, sent) + self.bias


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.conv3 = GraphConv(10, 16), GraphConv(16, 16), GraphConv(16, 4)
        self.eps, self.mlp = nn.Parameter(torch.zeros(1)), nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16))
        self.jump = nn.Linear(32, 16)

    def isomorphism(self, x, edges):
        return self.mlp((1 + self.eps) * x + torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]]))

    def forward(self, x, edges):
        x = F.elu(self.conv1(F.dropout(x, 0.0, self.training), edges))
        h = F.relu(self.conv2(x, edges))
        x = self.isomorphism(x, edges)
        x = F.elu(self.jump(torch.cat([x, h], 1)))
        return F.log_softmax(self.conv3(x, edges), dim=1)


def graph():
    def batch():
        g = generator(155)
        a = torch.rand(14, 14, generator=g) < 0.15
        a = (a | a.T) & ~torch.eye(14, dtype=torch.bool)
        return {"pixel_values": torch.rand(14, 10, generator=g), "edges": a.nonzero().t().contiguous(),
                "labels": torch.randint(0, 4, (14,), generator=g), "known": torch.arange(14) % 3 != 0}
    def loss(m, b):
        made = m(b["pixel_values"], b["edges"])
        return F.nll_loss(made[b["known"]], b["labels"][b["known"]])
    return looped(Family("gcn", GraphNet, batch, loss), decayed)


class Attend(nn.Module):
    """One set looks at another, of which some members are padding."""

    def __init__(self, size=16, heads=2):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(size, size) for _ in range(4))
        self.norm1, self.norm2, self.heads = nn.LayerNorm(size), nn.LayerNorm(size), heads

    def forward(self, x, y, mask=None):
        q, k, v = self.q(x), self.k(y), self.v(y)
        b, n, d = q.shape
        qs, ks, vs = (t.reshape(b, -1, self.heads, d // self.heads).permute(0, 2, 1, 3) for t in (q, k, v))
        score = torch.einsum("bhqd,bhkd->bhqk", qs, ks) / d ** 0.5
        if mask is not None:
            score = score.masked_fill(~mask[:, None, None, :], -1e9)
        out = torch.einsum("bhqk,bhkd->bhqd", F.softmax(score, dim=-1), vs).permute(0, 2, 1, 3).reshape(b, n, d)
        out = self.norm1(q + out)
        return self.norm2(out + F.relu(self.o(out)))


class Pooled(nn.Module):
    """Properties of a set, whatever the order of its members."""

    def __init__(self, size=16):
        super().__init__()
        self.enter, self.points, self.seed = nn.Linear(3, size), nn.Parameter(torch.randn(1, 4, size)), nn.Parameter(torch.randn(1, 2, size))
        self.few, self.many, self.pool, self.out = Attend(), Attend(), Attend(), nn.Linear(2 * size, 4)

    def forward(self, x, mask):
        h = self.enter(x)
        few = self.few(self.points.expand(len(x), -1, -1), h, mask)
        h = self.many(h, few)
        h = self.pool(self.seed.expand(len(x), -1, -1), h, mask)
        return self.out(h.flatten(1))


def pooled():
    def batch():
        g = generator(156)
        x = torch.randn(5, 8, 3, generator=g)
        mask = torch.arange(8)[None] < torch.tensor([8, 5, 7, 3, 6])[:, None]
        y = torch.cat([x.masked_fill(~mask[..., None], -9).amax(1), mask.sum(1, keepdim=True) / 8.0], 1)
        return {"pixel_values": x * mask[..., None], "mask": mask, "labels": y}
    return Family("pooled", Pooled, batch, lambda m, b: F.smooth_l1_loss(m(b["pixel_values"], b["mask"]), b["labels"], beta=0.5))


class Items(nn.Module):
    """The next item of a user, against an item that the user did not take."""

    def __init__(self, items=60, size=16):
        super().__init__()
        self.items, self.places, self.size = nn.Embedding(items, size, padding_idx=0), nn.Embedding(10, size), size
        self.norm1, self.attn = nn.LayerNorm(size, eps=1e-8), nn.MultiheadAttention(size, 2, 0.0)
        self.norm2, self.conv1, self.conv2, self.last = nn.LayerNorm(size, eps=1e-8), nn.Conv1d(size, size, 1), nn.Conv1d(size, size, 1), nn.LayerNorm(size, eps=1e-8)

    def encode(self, seen):
        x = self.items(seen) * self.size ** 0.5
        x = x + self.places(torch.arange(seen.shape[1]).expand_as(seen))
        keep = (seen != 0).unsqueeze(-1).to(x.dtype)
        x = (x * keep).transpose(0, 1)
        later = ~torch.tril(torch.ones(len(x), len(x), dtype=torch.bool))
        q = self.norm1(x)
        x = (q + self.attn(q, x, x, attn_mask=later, need_weights=False)[0]).transpose(0, 1)
        x = self.norm2(x)
        x = x + self.conv2(F.relu(self.conv1(x.transpose(1, 2)))).transpose(1, 2)
        return self.last(x * keep)

    def forward(self, seen, taken, left):
        h = self.encode(seen)
        return (h * self.items(taken)).sum(-1), (h * self.items(left)).sum(-1)


def items():
    def batch():
        g = generator(157)
        ids = torch.randint(1, 60, (6, 9), generator=g)
        ids[1, :4] = 0
        ids[4, :2] = 0
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone(), "left": torch.randint(1, 60, (6, 8), generator=g)}
    def loss(m, b):
        good, bad = m(b["input_ids"], b["labels"], b["left"])
        live = (b["input_ids"] != 0).to(good.dtype)
        return -(torch.log(torch.sigmoid(good - bad) + 1e-24) * live).sum() / live.sum()
    return looped(Family("sasrec", Items, batch, loss), decayed)


class Tasks(nn.Module):
    """Experts that tasks share by gates; each task's loss is weighted by what it does not know."""

    def __init__(self, size=20):
        super().__init__()
        self.bag, self.norm = nn.EmbeddingBag(50, 12, mode="sum"), nn.BatchNorm1d(18)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(18, size), nn.ReLU()) for _ in range(3))
        self.gates = nn.ModuleList(nn.Linear(18, 3) for _ in range(2))
        self.towers = nn.ModuleList(nn.Sequential(nn.Linear(size, 12), nn.ReLU(), nn.Linear(12, 1)) for _ in range(2))
        self.doubt = nn.Parameter(torch.zeros(2))

    def forward(self, ids, weights, numbers):
        x = self.norm(torch.cat([self.bag(ids, per_sample_weights=weights), torch.log1p(numbers)], 1))
        made = torch.stack([e(x) for e in self.experts], 1)
        return [tower((gate(x).softmax(1)[:, :, None] * made).sum(1)).squeeze(1) for gate, tower in zip(self.gates, self.towers)]


def tasks():
    def batch():
        g = generator(158)
        clicked = torch.randint(0, 2, (12,), generator=g).float()
        return {"kinds": torch.randint(0, 50, (12, 5), generator=g), "weights": torch.rand(12, 5, generator=g) + 0.5,
                "pixel_values": torch.rand(12, 6, generator=g) * 20, "clicked": clicked,
                "labels": torch.rand(12, generator=g) * 3 * clicked}
    def loss(m, b):
        click, price = m(b["kinds"], b["weights"], b["pixel_values"])
        first = F.binary_cross_entropy_with_logits(click, b["clicked"])
        second = (b["clicked"] * (price - b["labels"]) ** 2).sum() / b["clicked"].sum()
        return (torch.exp(-m.doubt[0]) * first + 0.5 * torch.exp(-m.doubt[1]) * second + 0.5 * m.doubt.sum())
    return looped(Family("tasks", Tasks, batch, loss), by_sum)
