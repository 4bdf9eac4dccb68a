# SPDX-License-Identifier: MIT
"""Own families of the eleventh set: texts, graphs, series; see eleventh_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import VOCAB
from sixth_families import generator
from tenth_text import of, text


# ---- windows of words, mixed samples -------------------------------------------------------------------

class WordWindows(nn.Module):
    def __init__(self, d=16, filters=10, classes=4):
        super().__init__()
        self.words = nn.Embedding(VOCAB, d, padding_idx=0)
        self.windows = nn.ModuleList(nn.Conv1d(d, filters, k, padding=k // 2) for k in (2, 3, 5))
        self.gate, self.drop, self.out = nn.Linear(3 * filters, 3 * filters), nn.Dropout(0.0), nn.Linear(3 * filters, classes)

    def forward(self, ids, share):
        x = self.words(ids).transpose(1, 2)
        x = share * x + (1 - share) * x.flip(0)
        found = [torch.tanh(conv(x)).amax(-1) for conv in self.windows]
        y = torch.cat(found, 1)
        t = torch.sigmoid(self.gate(y))
        return self.out(self.drop(t * torch.relu(y) + (1 - t) * y))


def word_windows():
    def batch():
        return {"input_ids": text(301, (6, 12), 4), "share": torch.full((6, 1, 1), 0.7), "labels": torch.tensor([0, 3, 1, 1, 2, 0])}
    def loss(m, b):
        scores = m(b["input_ids"], b["share"])
        hot = F.one_hot(b["labels"], 4).to(scores.dtype)
        mixed = b["share"][:, 0] * hot + (1 - b["share"][:, 0]) * hot.flip(0)
        return -(mixed * scores.log_softmax(1)).sum(1).mean()
    return of("windows", WordWindows, batch, loss, [
        ("", "mixed_with_next", "(1 - share) * x.flip(0)", "(1 - share) * x.roll(1, 0)"),
        ("", "mixed_over_words", "x.flip(0)", "x.flip(2)"),
        ("", "not_mixed", "x = share * x + (1 - share) * x.flip(0)", "pass", "conv1d"),
        ("", "mean_over_time", "torch.tanh(conv(x)).amax(-1)", "torch.tanh(conv(x)).mean(-1)"),
        ("", "order_of_windows", "torch.cat(found, 1)", "torch.cat(found[::-1], 1)"),
        ("", "tanh_gate", "torch.sigmoid(self.gate(y))", "torch.tanh(self.gate(y))"),
        ("", "gate_turned", "t * torch.relu(y) + (1 - t) * y", "(1 - t) * torch.relu(y) + t * y"),
        ("loss", "labels_not_mixed", "mixed = b[\"share\"][:, 0] * hot + (1 - b[\"share\"][:, 0]) * hot.flip(0)", "mixed = hot"),
        ("loss", "share_turned", "b[\"share\"][:, 0] * hot + (1 - b[\"share\"][:, 0]) * hot.flip(0)",
         "(1 - b[\"share\"][:, 0]) * hot + b[\"share\"][:, 0] * hot.flip(0)"),
        ("loss", "softmax_over_samples", "scores.log_softmax(1)", "scores.log_softmax(0)"),
        ("loss", "logarithm_missing", "scores.log_softmax(1)", "scores.softmax(1)"),
    ], [
        ("", "lerp", "share * x + (1 - share) * x.flip(0)", "torch.lerp(x.flip(0), x, share)"),
        ("", "pooled", "torch.tanh(conv(x)).amax(-1)", "F.adaptive_max_pool1d(torch.tanh(conv(x)), 1).squeeze(-1)"),
        ("", "pooled_first", "torch.tanh(conv(x)).amax(-1)", "torch.tanh(conv(x).amax(-1))"),
        ("loss", "two_entropies", "return -(mixed * scores.log_softmax(1)).sum(1).mean()", "return F.cross_entropy(scores, mixed)"),
    ], void=("share_clipped",))


# ---- users, items and their neighbours -------------------------------------------------------------------

class Neighbours(nn.Module):
    def __init__(self, users=10, items=14, d=12, layers=2):
        super().__init__()
        self.table, self.users, self.layers = nn.Embedding(users + items, d), users, layers
        g = generator(302)
        edges = torch.stack([torch.randint(0, users, (40,), generator=g), users + torch.randint(0, items, (40,), generator=g)])
        edges = torch.cat([edges, edges.flip(0)], 1)
        degree = torch.zeros(users + items).index_add(0, edges[0], torch.ones(80)).clamp(min=1)
        self.register_buffer("edges", edges)
        self.register_buffer("norm", (degree[edges[0]] * degree[edges[1]]).rsqrt())

    def spread(self):
        x = self.table.weight
        kept = [x]
        for _ in range(self.layers):
            x = torch.zeros_like(x).index_add(0, self.edges[1], x[self.edges[0]] * self.norm[:, None])
            kept.append(x)
        return torch.stack(kept).mean(0)

    def forward(self, user, good, bad):
        x = self.spread()
        u, p, n = x[user], x[self.users + good], x[self.users + bad]
        margin = (u * p).sum(-1) - (u * n).sum(-1)
        raw = self.table(torch.stack([user, self.users + good, self.users + bad]))
        return F.softplus(-margin).mean() + 1e-2 * 0.5 * raw.pow(2).sum() / len(user)


def neighbours():
    def batch():
        g = generator(303)
        return {"user": torch.randint(0, 10, (9,), generator=g), "good": torch.randint(0, 14, (9,), generator=g),
            "labels": torch.randint(0, 14, (9,), generator=g)}
    def loss(m, b):
        return m(b["user"], b["good"], b["labels"])
    return of("lightgcn", Neighbours, batch, loss, [
        ("", "norm_missing", "x[self.edges[0]] * self.norm[:, None]", "x[self.edges[0]]"),
        ("", "norm_squared", "* self.norm[:, None]", "* self.norm[:, None] ** 2"),
        ("", "edges_turned", "index_add(0, self.edges[1], x[self.edges[0]]", "index_add(0, self.edges[1], x[self.edges[1]]"),
        ("", "last_alone", "torch.stack(kept).mean(0)", "kept[-1]"),
        ("", "first_forgotten", "kept = [x]", "kept = []", "stack|mean", ""),
        ("", "summed", "torch.stack(kept).mean(0)", "torch.stack(kept).sum(0)"),
        ("", "items_not_shifted", "x[self.users + good]", "x[good]"),
        ("", "pair_turned", "(u * p).sum(-1) - (u * n).sum(-1)", "(u * n).sum(-1) - (u * p).sum(-1)"),
        ("", "sign_of_margin", "F.softplus(-margin)", "F.softplus(margin)"),
        ("", "penalty_of_spread", "1e-2 * 0.5 * raw.pow(2).sum()", "1e-2 * 0.5 * torch.stack([u, p, n]).pow(2).sum()"),
        ("", "penalty_not_divided", "raw.pow(2).sum() / len(user)", "raw.pow(2).sum()"),
    ], [
        ("", "by_sparse", "torch.zeros_like(x).index_add(0, self.edges[1], x[self.edges[0]] * self.norm[:, None])",
         "torch.sparse.mm(torch.sparse_coo_tensor(self.edges.flip(0), self.norm, (len(x), len(x))).coalesce(), x)"),
        ("", "by_dense", "torch.zeros_like(x).index_add(0, self.edges[1], x[self.edges[0]] * self.norm[:, None])",
         "torch.zeros(len(x), len(x)).index_put((self.edges[1], self.edges[0]), self.norm, accumulate=True) @ x"),
        ("", "logsigmoid", "F.softplus(-margin)", "-F.logsigmoid(margin)"),
        ("", "one_margin", "(u * p).sum(-1) - (u * n).sum(-1)", "torch.einsum('nd,nd->n', u, p - n)"),
    ], ordered=True, void=("double", "low", "mixed", "half_given"))


# ---- which of many series matter, and three quantiles ------------------------------------------------------

class Gated(nn.Module):
    def __init__(self, inside, size, out=None):
        super().__init__()
        out = out or size
        self.fc1, self.fc2, self.gate = nn.Linear(inside, size), nn.Linear(size, size), nn.Linear(size, 2 * out)
        self.skip, self.norm = nn.Linear(inside, out) if inside != out else nn.Identity(), nn.LayerNorm(out)

    def forward(self, x):
        h = self.fc2(F.elu(self.fc1(x)))
        return self.norm(self.skip(x) + F.glu(self.gate(h), -1))


class Quantiles(nn.Module):
    def __init__(self, series=4, size=16):
        super().__init__()
        self.lift = nn.ModuleList(nn.Linear(1, size) for _ in range(series))
        self.each = nn.ModuleList(Gated(size, size) for _ in range(series))
        self.choose, self.rnn = Gated(series * size, size, series), nn.GRU(size, size, batch_first=True)
        self.q, self.k, self.v = nn.Linear(size, size), nn.Linear(size, size), nn.Linear(size, size // 2)
        self.join, self.last, self.out = nn.Linear(size // 2, size), Gated(size, size), nn.Linear(size, 3)

    def forward(self, x):
        lifted = [lift(x[..., i:i + 1]) for i, lift in enumerate(self.lift)]
        share = self.choose(torch.cat(lifted, -1)).softmax(-1)
        made = torch.stack([g(y) for g, y in zip(self.each, lifted)], -1)
        x = (made * share[:, :, None]).sum(-1)
        h, _ = self.rnn(x)
        h = h + x
        q, k = (p(h).unflatten(-1, (2, -1)).transpose(1, 2) for p in (self.q, self.k))
        s = (q @ k.mT) / math.sqrt(q.shape[-1])
        s = s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float("-inf")).softmax(-1).mean(1)
        return self.out(self.last(h + self.join(s @ self.v(h))))


def quantiles():
    def batch():
        g = generator(304)
        return {"x": torch.randn(5, 9, 4, generator=g), "labels": torch.randn(5, 9, generator=g)}
    def loss(m, b):
        apart = b["labels"][..., None] - m(b["x"])
        at = torch.tensor([0.1, 0.5, 0.9]).to(apart.dtype)
        return torch.maximum(at * apart, (at - 1) * apart).sum(-1).mean()
    return of("quantiles", Quantiles, batch, loss, [
        ("Gated@choose", "relu_for_elu", "F.elu(self.fc1(x))", "F.relu(self.fc1(x))"),
        ("Gated@last", "gate_missing", "F.glu(self.gate(h), -1)", "self.gate(h).chunk(2, -1)[0]"),
        ("Gated@last", "skip_missing", "self.norm(self.skip(x) + F.glu(self.gate(h), -1))", "self.norm(F.glu(self.gate(h), -1))"),
        ("Gated@each.2", "norm_missing", "return self.norm(self.skip(x) + F.glu(self.gate(h), -1))", "return self.skip(x) + F.glu(self.gate(h), -1)"),
        ("", "softmax_over_time", "torch.cat(lifted, -1)).softmax(-1)", "torch.cat(lifted, -1)).softmax(1)"),
        ("", "sigmoid_choice", "torch.cat(lifted, -1)).softmax(-1)", "torch.cat(lifted, -1)).sigmoid()"),
        ("", "mean_of_series", "(made * share[:, :, None]).sum(-1)", "(made * share[:, :, None]).mean(-1)"),
        ("", "residual_missing", "h = h + x", "pass", "linear"),
        ("", "sees_the_future", "s.masked_fill(torch.ones(s.shape[-2:], dtype=torch.bool).triu(1), float(\"-inf\"))", "s"),
        ("", "scale_of_model", "math.sqrt(q.shape[-1])", "math.sqrt(h.shape[-1])"),
        ("", "first_head", ".softmax(-1).mean(1)", ".softmax(-1)[:, 0]"),
        ("loss", "quantiles_turned", "torch.tensor([0.1, 0.5, 0.9])", "torch.tensor([0.9, 0.5, 0.1])", r"to|mul|sub|maximum"),
        ("loss", "sign", "b[\"labels\"][..., None] - m(b[\"x\"])", "m(b[\"x\"]) - b[\"labels\"][..., None]"),
        ("loss", "absolute", "torch.maximum(at * apart, (at - 1) * apart)", "apart.abs()"),
    ], [
        ("Gated*", "glu_by_hand", "F.glu(self.gate(h), -1)", "(lambda a, b: a * torch.sigmoid(b))(*self.gate(h).chunk(2, -1))"),
        ("", "weighted_by_einsum", "(made * share[:, :, None]).sum(-1)", "torch.einsum('btds,bts->btd', made, share)"),
        ("", "by_parts", "h, _ = self.rnn(x)", "a, c = self.rnn(x[:, :4])\n        h = torch.cat([a, self.rnn(x[:, 4:], c)[0]], 1)"),
        ("loss", "pinball_otherwise", "torch.maximum(at * apart, (at - 1) * apart)", "(at * F.relu(apart) + (1 - at) * F.relu(-apart))"),
    ], ordered=True, parts=5, parallel=True)


# ---- a memory of earlier text and relative positions --------------------------------------------------------

class Recalling(nn.Module):
    def __init__(self, d=32, heads=4):
        super().__init__()
        self.qkv, self.r, self.out, self.heads = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False), heads
        self.u, self.w = nn.Parameter(torch.zeros(heads, d // heads)), nn.Parameter(torch.zeros(heads, d // heads))
        self.norm1, self.norm2, self.fc1, self.fc2 = nn.LayerNorm(d), nn.LayerNorm(d), nn.Linear(d, 64), nn.Linear(64, d)

    def shift(self, x):
        x = F.pad(x, (1, 0))
        return x.view(*x.shape[:2], x.shape[3], x.shape[2])[:, :, 1:].view(*x.shape[:3], -1)

    def forward(self, x, memory, waves):
        n, both = x.shape[1], torch.cat([memory, x], 1)
        q, k, v = (t.unflatten(-1, (self.heads, -1)) for t in self.qkv(both).chunk(3, -1))
        q, r = q[:, -n:], self.r(waves).unflatten(-1, (self.heads, -1))
        content = torch.einsum("bihd,bjhd->bhij", q + self.u, k)
        place = self.shift(torch.einsum("bihd,jhd->bhij", q + self.w, r))
        s = (content + place) * q.shape[-1] ** -0.5
        s = s.masked_fill(torch.ones(n, both.shape[1], dtype=torch.bool).triu(1 + memory.shape[1]), -1e30)
        y = torch.einsum("bhij,bjhd->bihd", s.softmax(-1), v).flatten(2)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.fc2(F.relu(self.fc1(x))))


class LongMemory(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.words, self.layers, self.out = nn.Embedding(VOCAB, d), nn.ModuleList(Recalling(d) for _ in range(2)), nn.Linear(d, VOCAB)

    def waves(self, n, d=32):
        at = torch.arange(n - 1, -1, -1.0)[:, None] * 10000.0 ** (-torch.arange(0, d, 2.0) / d)
        return torch.cat([at.sin(), at.cos()], -1).to(self.out.weight.dtype)

    def forward(self, ids):
        memory = [self.words.weight.new_zeros(len(ids), 0, 32) for _ in self.layers]
        scores = []
        for part in ids.split(5, 1):
            x, kept = self.words(part) * 32 ** 0.5, []
            for layer, old in zip(self.layers, memory):
                kept.append(torch.cat([old, x], 1)[:, -5:].detach())
                x = layer(x, old, self.waves(old.shape[1] + x.shape[1]))
            memory = kept
            scores.append(self.out(x))
        return torch.cat(scores, 1)


def long_memory():
    def batch():
        ids = text(305, (4, 11))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    def loss(m, b):
        return F.cross_entropy(m(b["input_ids"]).flatten(0, 1), b["labels"].flatten())
    return of("xl", LongMemory, batch, loss, [
        ("Recalling", "not_shifted", "self.shift(torch.einsum(\"bihd,jhd->bhij\", q + self.w, r))",
         "torch.einsum(\"bihd,jhd->bhij\", q + self.w, r)", r"pad|view|__getitem__"),
        ("Recalling", "bias_of_content", "q + self.w, r", "q + self.u, r"),
        ("Recalling", "place_missing", "(content + place)", "content"),
        ("Recalling", "scale_before_place", "s = (content + place) * q.shape[-1] ** -0.5", "s = content * q.shape[-1] ** -0.5 + place"),
        ("Recalling", "mask_forgets_memory", ".triu(1 + memory.shape[1])", ".triu(1)"),
        ("Recalling", "sees_ahead", ".triu(1 + memory.shape[1])", ".triu(2 + memory.shape[1])"),
        ("Recalling*", "memory_behind", "torch.cat([memory, x], 1)", "torch.cat([x, memory], 1)", "linear|getitem"),
        ("Recalling", "first_queries", "q[:, -n:]", "q[:, :n]"),
        ("Recalling", "norm_before", "self.norm2(x + self.fc2(F.relu(self.fc1(x))))", "x + self.norm2(self.fc2(F.relu(self.fc1(x))))"),
        ("", "waves_forward", "torch.arange(n - 1, -1, -1.0)", "torch.arange(0.0, n)", "cat|sin|cos|to"),
        ("", "cosine_first", "torch.cat([at.sin(), at.cos()], -1)", "torch.cat([at.cos(), at.sin()], -1)"),
        ("", "memory_learns", "[:, -5:].detach())", "[:, -5:])", "detach|getitem|cat", "back"),
        ("", "memory_short", "[:, -5:].detach()", "[:, -3:].detach()"),
        ("", "words_unscaled", "self.words(part) * 32 ** 0.5", "self.words(part)"),
    ], [
        ("Recalling*", "scaled_queries", "s = (content + place) * q.shape[-1] ** -0.5",
         "c = q.shape[-1] ** -0.5\n        s = content * c + place * c"),
        ("Recalling*", "bias_apart", "torch.einsum(\"bihd,bjhd->bhij\", q + self.u, k)",
         "torch.einsum('bihd,bjhd->bhij', q, k) + torch.einsum('hd,bjhd->bhj', self.u, k)[:, :, None]"),
        ("Recalling", "infinite", "-1e30)", "float('-inf'))"),
    ], ordered=True, parallel=True, parts=2)


# ---- ternary weights ---------------------------------------------------------------------------------------------

class Ternary(nn.Linear):
    def forward(self, x):
        x = F.rms_norm(x, x.shape[-1:])
        scale = 127.0 / x.abs().amax(-1, keepdim=True).clamp(min=1e-5)
        x = x + ((x * scale).round().clamp(-128, 127) / scale - x).detach()
        mean = self.weight.abs().mean().clamp(min=1e-5)
        w = self.weight + ((self.weight / mean).round().clamp(-1, 1) * mean - self.weight).detach()
        return F.linear(x, w, self.bias)


class TernaryBlock(nn.Module):
    def __init__(self, d=32, heads=4):
        super().__init__()
        self.norm1, self.norm2, self.heads = nn.LayerNorm(d), nn.LayerNorm(d), heads
        self.q, self.kv, self.o = Ternary(d, d, bias=False), Ternary(d, 2 * d // heads, bias=False), Ternary(d, d, bias=False)
        self.up, self.down = Ternary(d, 64), Ternary(64, d)

    def forward(self, x):
        y = self.norm1(x)
        q = self.q(y).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k, v = self.kv(y)[:, None].chunk(2, -1)
        y = F.scaled_dot_product_attention(q, k.expand_as(q), v.expand_as(q), is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        return x + self.down(F.relu(self.up(self.norm2(x))) ** 2)


class TernaryText(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, d), nn.Embedding(16, d)
        self.blocks, self.norm = nn.ModuleList(TernaryBlock(d) for _ in range(2)), nn.LayerNorm(d)

    def forward(self, ids):
        x = self.words(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.words.weight)


def ternary():
    def batch():
        ids = text(306, (4, 11))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    def loss(m, b):
        return F.cross_entropy(m(b["input_ids"]).flatten(0, 1), b["labels"].flatten())
    return of("ternary", TernaryText, batch, loss, [
        ("Ternary@blocks.1.up", "scale_of_tensor", "x.abs().amax(-1, keepdim=True)", "x.abs().amax()"),
        ("Ternary@blocks.0.o", "norm_missing", "x = F.rms_norm(x, x.shape[-1:])", "pass", "abs"),
        ("Ternary@blocks.1.down", "four_bits", "127.0 / x", "7.0 / x", "mul"),
        ("Ternary@blocks.0.up", "max_for_mean", "self.weight.abs().mean()", "self.weight.abs().max()"),
        ("Ternary@blocks.1.q", "not_scaled_back", ".round().clamp(-1, 1) * mean - self", ".round().clamp(-1, 1) - self"),
        ("Ternary@blocks.1.up", "no_way_through", "w = self.weight + ((self.weight / mean).round().clamp(-1, 1) * mean - self.weight).detach()",
         "w = (self.weight / mean).round().clamp(-1, 1) * mean",
         "linear", "back"),
        ("Ternary@blocks.0.kv", "five_values", ".round().clamp(-1, 1)", ".round().clamp(-2, 2)"),
        ("Ternary@blocks.0.down", "binary", "(self.weight / mean).round().clamp(-1, 1)", "(self.weight / mean).sign()"),
        ("TernaryBlock@blocks.1", "keys_are_values", "k, v = self.kv(y)[:, None].chunk(2, -1)", "v, k = self.kv(y)[:, None].chunk(2, -1)",
         "expand_as|scaled_dot_product_attention"),
        ("TernaryBlock@blocks.0", "not_squared", "F.relu(self.up(self.norm2(x))) ** 2", "F.relu(self.up(self.norm2(x)))"),
        ("TernaryBlock@blocks.0", "sees_the_future", "is_causal=True", "is_causal=False"),
        ("TernaryBlock@blocks.1", "residual_of_normed", "return x + self.down", "return self.norm2(x) + self.down"),
        ("", "head_not_tied", "F.linear(self.norm(x), self.words.weight)", "F.linear(self.norm(x), self.words.weight.detach())", "", "back"),
    ], [
        ("Ternary*", "norm_by_hand", "F.rms_norm(x, x.shape[-1:])", "x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1.1920929e-07)"),
        ("TernaryBlock*", "square", "F.relu(self.up(self.norm2(x))) ** 2", "F.relu(self.up(self.norm2(x))).square()"),
        ("", "matmul", "F.linear(self.norm(x), self.words.weight)", "self.norm(x) @ self.words.weight.t()"),
        ("TernaryBlock*", "repeated", "k.expand_as(q), v.expand_as(q)", "k.repeat(1, self.heads, 1, 1), v.repeat(1, self.heads, 1, 1)"),
    ], ordered=True, parallel=True, parts=2, void=("low", "mixed", "double"))


# ---- a memory that is a matrix ------------------------------------------------------------------------------------

class MatrixMemory(nn.Module):
    """Parallel form of a recurrence with exponential gates, made stable by a running maximum."""

    def __init__(self, d=24, heads=3):
        super().__init__()
        self.norm, self.up, self.heads = nn.LayerNorm(d), nn.Linear(d, 2 * d), heads
        self.conv = nn.Conv1d(d, d, 3, groups=d)
        self.q, self.k, self.v, self.gates = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, 2 * heads)
        self.group, self.skip, self.down = nn.GroupNorm(heads, d), nn.Parameter(torch.ones(d)), nn.Linear(d, d)

    def cell(self, q, k, v, i, f):
        total = F.logsigmoid(f).cumsum(-1)
        d = total[..., :, None] - total[..., None, :] + i[..., None, :]
        d = d.masked_fill(torch.ones(d.shape[-2:], dtype=torch.bool).triu(1), float("-inf"))
        top = d.amax(-1, keepdim=True)
        c = (q @ k.mT) * q.shape[-1] ** -0.5 * torch.exp(d - top)
        return (c @ v) / torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-top))

    def forward(self, x):
        a, z = self.up(self.norm(x)).chunk(2, -1)
        s = F.silu(self.conv(F.pad(a.transpose(1, 2), (2, 0)))).transpose(1, 2)
        q, k, v = (p(t).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p, t in ((self.q, s), (self.k, s), (self.v, a)))
        i, f = self.gates(a).transpose(1, 2).chunk(2, 1)
        h = self.cell(q, k, v, i, f + 3.0).transpose(1, 2).flatten(2)
        h = self.group(h.flatten(0, 1)).view_as(x) + self.skip * s
        return x + self.down(h * F.silu(z))


class MatrixText(nn.Module):
    def __init__(self, d=24):
        super().__init__()
        self.words, self.blocks = nn.Embedding(VOCAB, d), nn.ModuleList(MatrixMemory(d) for _ in range(2))
        self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, VOCAB)

    def forward(self, ids):
        x = self.words(ids)
        for block in self.blocks:
            x = block(x)
        return 15 * torch.tanh(self.out(self.norm(x)) / 15)


def matrix_memory():
    def batch():
        ids = text(307, (4, 10))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    def loss(m, b):
        return F.cross_entropy(m(b["input_ids"]).transpose(1, 2), b["labels"])
    return of("mlstm", MatrixText, batch, loss, [
        ("MatrixMemory", "forget_sigmoid", "F.logsigmoid(f)", "torch.sigmoid(f)"),
        ("MatrixMemory", "input_gate_missing", " + i[..., None, :]", ""),
        ("MatrixMemory", "not_cumulated", "F.logsigmoid(f).cumsum(-1)", "F.logsigmoid(f)"),
        ("MatrixMemory", "cumulated_over_heads", "F.logsigmoid(f).cumsum(-1)", "F.logsigmoid(f).cumsum(1)"),
        ("MatrixMemory", "not_divided", "(c @ v) / torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-top))", "c @ v"),
        ("MatrixMemory", "divided_by_sum", "torch.maximum(c.sum(-1, keepdim=True).abs(), torch.exp(-top))", "(c.sum(-1, keepdim=True).abs() + 1.0)"),
        ("MatrixMemory", "scale_missing", " * q.shape[-1] ** -0.5 * torch.exp(d - top)", " * torch.exp(d - top)"),
        ("MatrixMemory", "values_of_conv", "(self.v, a))", "(self.v, s))", r"\w+|@linear"),
        ("MatrixMemory", "conv_not_causal", "F.pad(a.transpose(1, 2), (2, 0))", "F.pad(a.transpose(1, 2), (1, 1))"),
        ("MatrixMemory", "gates_exchanged", "i, f = self.gates(a)", "f, i = self.gates(a)", "add|logsigmoid|getitem"),
        ("MatrixMemory", "forget_bias_missing", "f + 3.0", "f", "logsigmoid"),
        ("MatrixMemory", "skip_missing", " + self.skip * s", ""),
        ("MatrixMemory", "sigmoid_gate", "h * F.silu(z)", "h * torch.sigmoid(z)"),
        ("", "not_capped", "15 * torch.tanh(self.out(self.norm(x)) / 15)", "self.out(self.norm(x))"),
        ("", "capped_at_two", "15 * torch.tanh(self.out(self.norm(x)) / 15)", "2 * torch.tanh(self.out(self.norm(x)) / 2)"),
    ], [
        ("MatrixMemory*", "zeros_for_infinity", "c = (q @ k.mT) * q.shape[-1] ** -0.5 * torch.exp(d - top)",
         "c = torch.einsum('bhid,bhjd->bhij', q, k * q.shape[-1] ** -0.5) * torch.exp(d - top)"),
        ("MatrixMemory", "softplus", "F.logsigmoid(f)", "-F.softplus(-f)"),
        ("MatrixMemory*", "masked_by_tril", "torch.exp(d - top)\n", "torch.exp(d - top).tril()\n"),
        ("", "by_flat_rows", "x = self.words(ids)", "x = self.words(ids.reshape(-1)).view(*ids.shape, -1)"),
    ], ordered=True, parallel=True, parts=2)


def families():
    return [word_windows(), neighbours(), quantiles(), long_memory(), ternary(), matrix_memory()]
