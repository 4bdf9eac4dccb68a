# SPDX-License-Identifier: MIT
"""A small decoder with the parts in which the bugs of public trackers live, and one step of training."""
import torch
from torch import nn
import torch.nn.functional as F


def settle(model, seed=5):
    """Gives parameters the sizes of a trained model: no bias is zero, no norm is the identity."""
    g = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            noise = torch.randn(p.shape, generator=g)
            p.copy_(noise * p[0].numel() ** -0.5 if p.ndim >= 2 else p + noise * 0.1)
    return model


def numbers(*shape, high=None, seed=7):
    """Random numbers of a batch: whole ones below high, or normal ones."""
    g = torch.Generator().manual_seed(seed)
    return torch.randint(0, high, shape, generator=g) if high else torch.randn(shape, generator=g)


class RMSNorm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Rotary(nn.Module):
    """Turns pairs of x [batch, heads, positions, dim] by angles that grow with the position."""

    def __init__(self, dim):
        super().__init__()
        self.register_buffer("rate", self.rates(dim))

    def rates(self, dim):
        return 1.0 / 10000 ** (torch.arange(0, dim, 2).float() / dim)

    def angles(self, x, positions):
        return positions[:, None, :, None].float() * self.rate

    def forward(self, x, positions):
        angle = self.angles(x, positions)
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        left, right = x.chunk(2, -1)
        return torch.cat((left * cos - right * sin, right * cos + left * sin), -1)


class Attention(nn.Module):
    def __init__(self, dim, heads, rotary=None):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(dim, dim, bias=False) for _ in range(4))
        self.rotary = rotary

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, q, k, v, mask):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def forward(self, x, mask=None, positions=None, context=None):
        source = x if context is None else context
        q, k, v = self.split(self.q(x)), self.split(self.k(source)), self.split(self.v(source))
        if self.rotary is not None:
            q, k = self.rotary(q, positions), self.rotary(k, positions)
        return self.out(self.attend(q, k, v, mask).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, dim, act=None):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(dim, 2 * dim), act or nn.GELU(), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Block(nn.Module):
    def __init__(self, dim, heads, attention=Attention, norm=RMSNorm, mlp=MLP, rotary=Rotary, cross=None):
        super().__init__()
        self.norm1, self.norm2 = norm(dim), norm(dim)
        self.attn = attention(dim, heads, rotary(dim // heads) if rotary else None)
        self.mlp = mlp(dim)
        self.cross = cross(dim, heads) if cross else None

    def forward(self, x, mask=None, positions=None, context=None):
        x = x + self.attn(self.norm1(x), mask, positions)
        if self.cross is not None:
            x = x + self.cross(x, context=context)
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    """parts: what Block takes."""

    def __init__(self, vocab=64, dim=32, heads=4, layers=2, **parts):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(Block(dim, heads, **parts) for _ in range(layers))
        self.norm = RMSNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)

    def mask(self, length):
        return torch.ones(length, length).tril().bool()

    def forward(self, ids, positions=None, context=None):
        if positions is None:
            positions = torch.arange(ids.shape[1]).expand_as(ids)
        x, mask = self.embed(ids), self.mask(ids.shape[1])
        for layer in self.layers:
            x = layer(x, mask, positions, context)
        return self.head(self.norm(x))


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)


def train(model, start, loss=None, **inputs):
    """One step of language modelling of a decoder. inputs: of its forward, ids apart."""
    settle(model)
    ids, labels = numbers(2, 12, high=64), numbers(2, 12, high=64, seed=8)
    optimizer = adam(model)
    start(model)
    (loss or cross_entropy)(model(ids, **inputs), labels).backward()
    optimizer.step()
