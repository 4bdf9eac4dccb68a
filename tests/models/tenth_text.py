# SPDX-License-Identifier: MIT
"""Own families of the tenth set that read text; see tenth_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import VOCAB, Family
from sixth_families import generator


def of(name, make, batch, loss, mistakes=(), harmless=(), **more):
    """A family with its edits; more: what the general changes may do with it."""
    family = Family(name, make, batch, loss, labels=more.pop("labels", "labels"), vision=more.pop("vision", False),
        hugging=more.pop("hugging", False))
    family.mistakes, family.harmless = mistakes, harmless
    for key, value in more.items():
        setattr(family, key, value)
    return family


def text(seed, size=(4, 13), padded=0):
    ids = torch.randint(1, VOCAB, size, generator=generator(seed))
    if padded:
        ids[1, -padded:] = 0
    return ids


# ---- einsum for everything, rotations by complex numbers, two tokens ahead ------------------------------

def rotations(length, size):
    angles = torch.arange(length)[:, None] * 10.0 ** (-torch.arange(size // 2) * 4 / (size // 2))
    return torch.polar(torch.ones_like(angles), angles)


def turned(x, spins):
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
    return torch.view_as_real(pairs * spins[:, None]).flatten(-2)


class EinsumBlock(nn.Module):
    def __init__(self, d=32, heads=4, groups=2, hidden=56):
        super().__init__()
        e = d // heads
        self.wq, self.wk = nn.Parameter(torch.zeros(heads, d, e)), nn.Parameter(torch.zeros(groups, d, e))
        self.wv, self.wo = nn.Parameter(torch.zeros(groups, d, e)), nn.Parameter(torch.zeros(heads, e, d))
        self.up, self.gate, self.down = nn.Parameter(torch.zeros(d, hidden)), nn.Parameter(torch.zeros(d, hidden)), nn.Parameter(torch.zeros(hidden,
            d))
        self.norm1, self.norm2 = nn.RMSNorm(d, eps=1e-6), nn.RMSNorm(d, eps=1e-6)
        self.repeat = heads // groups

    def attend(self, x, spins):
        q = turned(torch.einsum("btd,hde->bthe", x, self.wq), spins)
        k = turned(torch.einsum("btd,gde->btge", x, self.wk), spins).repeat_interleave(self.repeat, dim=2)
        v = torch.einsum("btd,gde->btge", x, self.wv).repeat_interleave(self.repeat, dim=2)
        scores = torch.einsum("bqhe,bkhe->bhqk", q, k) * q.shape[-1] ** -0.5
        scores = scores - 1e9 * torch.triu(torch.ones_like(scores[0, 0]), 1)
        weights = scores.softmax(-1)
        return torch.einsum("bhqk,bkhe,hed->bqd", weights, v, self.wo)

    def forward(self, x, spins):
        x = x + self.attend(self.norm1(x), spins)
        y = self.norm2(x)
        y = F.silu(y @ self.gate) * (y @ self.up)
        return x + y @ self.down


class TwoAhead(nn.Module):
    """Predicts the next token, and the one behind it by a second head that reads both."""

    def __init__(self, d=32):
        super().__init__()
        self.table = nn.Embedding(VOCAB, d)
        self.blocks = nn.ModuleList(EinsumBlock(d) for _ in range(3))
        self.final, self.join, self.later = nn.RMSNorm(d), nn.Linear(2 * d, d, bias=False), EinsumBlock(d)
        self.register_buffer("spins", torch.view_as_real(rotations(16, 8)))

    def forward(self, ids):
        spins = torch.view_as_complex(self.spins)[:ids.shape[1]]
        x = self.table(ids)
        for block in self.blocks:
            x = block(x, spins)
        near = self.final(x)
        following = self.table(ids[:, 1:])
        y = self.join(torch.cat([near[:, :-1], following], -1))
        far = self.final(self.later(y, spins[:-1]))
        return near @ self.table.weight.t(), far @ self.table.weight.t()


def two_ahead():
    def batch():
        ids = text(201, (4, 14))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    def loss(m, b):
        near, far = m(b["input_ids"])
        one = F.cross_entropy(near.flatten(0, 1), b["labels"].flatten())
        two = F.cross_entropy(far.flatten(0, 1), b["labels"][:, 1:].flatten())
        return one + 0.3 * two
    return of("twoahead", TwoAhead, batch, loss, [
        ("EinsumBlock", "groups_tiled", "k = turned(torch.einsum(\"btd,gde->btge\", x, self.wk), spins).repeat_interleave(self.repeat, dim=2)",
         "k = turned(torch.einsum(\"btd,gde->btge\", x, self.wk), spins).repeat(1, 1, self.repeat, 1)"),
        ("EinsumBlock", "scale_missing", " * q.shape[-1] ** -0.5", ""),
        ("EinsumBlock", "mask_by_one", "torch.ones_like(scores[0, 0]), 1)", "torch.ones_like(scores[0, 0]), 2)"),
        ("EinsumBlock*", "keys_not_turned", "k = turned(torch.einsum(\"btd,gde->btge\", x, self.wk), spins)",
         "k = torch.einsum(\"btd,gde->btge\", x, self.wk)",
         r"view_as_\w+|unflatten|flatten|__mul__|__getitem__"),
        ("EinsumBlock", "softmax_over_queries", "scores.softmax(-1)", "scores.softmax(-2)"),
        ("EinsumBlock", "values_axis", "bhqk,bkhe,hed->bqd", "bhkq,bkhe,hed->bqd"),
        ("EinsumBlock", "gate_and_up", "F.silu(y @ self.gate) * (y @ self.up)", "F.silu(y @ self.up) * (y @ self.gate)"),
        ("EinsumBlock", "gelu_for_silu", "F.silu(", "F.gelu("),
        ("EinsumBlock@later", "no_residual", "return x + y @ self.down", "return y @ self.down"),
        ("", "order_of_join", "torch.cat([near[:, :-1], following], -1)", "torch.cat([following, near[:, :-1]], -1)"),
        ("", "not_normed", "near = self.final(x)", "near = x", r"rms_norm|matmul|__matmul__|__getitem__|cat"),
        ("", "sees_itself", "following = self.table(ids[:, 1:])", "following = self.table(ids[:, :-1])"),
        ("", "far_detached", "self.join(torch.cat([near[:, :-1]", "self.join(torch.cat([near[:, :-1].detach()", "", "back"),
        ("loss", "far_weight", "one + 0.3 * two", "one + two"),
        ("loss", "far_labels", "b[\"labels\"][:, 1:]", "b[\"labels\"][:, :-1]"),
        ("#turned", "spins_of_heads", "spins[:, None]", "spins[:x.shape[2]][None]"),
        ("#turned", "spin_back", "pairs * spins[:, None]", "pairs * spins[:, None].conj()"),
    ], [
        ("EinsumBlock", "attend_by_matmul", "scores = torch.einsum(\"bqhe,bkhe->bhqk\", q, k) * q.shape[-1] ** -0.5",
         "scores = (q.transpose(1, 2) / q.shape[-1] ** 0.5) @ k.permute(0, 2, 3, 1)"),
        ("EinsumBlock*", "attend_by_sdpa", "weights = scores.softmax(-1)\n        return torch.einsum(\"bhqk,bkhe,hed->bqd\", weights, v, self.wo)",
         "y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True)\n        return torch.einsum(\"bhqe,hed->bqd\", y, self.wo)"),
        ("EinsumBlock*", "joined_up", "y = F.silu(y @ self.gate) * (y @ self.up)",
         "a, c = (y @ torch.cat([self.gate, self.up], 1)).chunk(2, -1)\n        y = F.silu(a) * c"),
        ("EinsumBlock", "mask_filled", "scores - 1e9 * torch.triu(torch.ones_like(scores[0, 0]), 1)",
         "scores.masked_fill(torch.triu(torch.ones_like(scores[0, 0]), 1) > 0, float('-inf'))"),
        ("EinsumBlock", "output_in_two", "torch.einsum(\"bhqk,bkhe,hed->bqd\", weights, v, self.wo)",
         "torch.einsum(\"bqhe,hed->bqd\", torch.einsum(\"bhqk,bkhe->bqhe\", weights, v), self.wo)"),
        ("#turned", "turned_by_halves", "return torch.view_as_real(pairs * spins[:, None]).flatten(-2)",
         "a, b, c, s = pairs.real, pairs.imag, spins.real[:, None], spins.imag[:, None]\n    return torch.stack([a * c - b * s, a * s + b * c], -1).flatten(-2)"),
        ("loss", "losses_joined", "return one + 0.3 * two", "return torch.stack([one, two]) @ torch.tensor([1.0, 0.3])"),
    ], ordered=True, parts=2, parallel=True, void=("low", "double", "mixed"))


# ---- adapters in a frozen model: prefixes and scales ----------------------------------------------------

class Prefixed(nn.Module):
    """A frozen layer whose attention reads learned keys and values before the text, and learned scales."""

    def __init__(self, d=32, heads=4, prefix=3):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.fc1, self.fc2, self.norm1, self.norm2 = nn.Linear(d, 64), nn.Linear(64, d), nn.LayerNorm(d), nn.LayerNorm(d)
        for p in self.parameters():
            p.requires_grad_(False)
        self.prefix_key, self.prefix_value = nn.Parameter(torch.zeros(prefix, d)), nn.Parameter(torch.zeros(prefix, d))
        self.scale_key, self.scale_value, self.scale_hidden = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(64))

    def heads_of(self, x):
        return x.view(*x.shape[:-1], self.heads, -1).transpose(-3, -2)

    def attend(self, x, live):
        q = self.heads_of(self.query(x))
        k = torch.cat([self.prefix_key.expand(len(x), -1, -1), self.key(x) * self.scale_key], 1)
        v = torch.cat([self.prefix_value.expand(len(x), -1, -1), self.value(x) * self.scale_value], 1)
        mask = F.pad(live, (self.prefix_key.shape[0], 0), value=True)[:, None, None]
        y = F.scaled_dot_product_attention(q, self.heads_of(k), self.heads_of(v), attn_mask=mask)
        return self.out(y.transpose(1, 2).flatten(2))

    def forward(self, x, live):
        x = self.norm1(x + self.attend(x, live))
        hidden = F.gelu(self.fc1(x)) * self.scale_hidden
        return self.norm2(x + self.fc2(hidden))


class Tuned(nn.Module):
    def __init__(self, d=32):
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(VOCAB, d, padding_idx=0), nn.Embedding(16, d), nn.LayerNorm(d)
        for p in self.parameters():
            p.requires_grad_(False)
        self.layers = nn.ModuleList(Prefixed(d) for _ in range(2))
        self.pool, self.head = nn.Linear(d, d), nn.Linear(d, 3)

    def forward(self, ids):
        live = ids != 0
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        for layer in self.layers:
            x = layer(x, live)
        mean = (x * live[..., None]).sum(1) / live.sum(1, keepdim=True)
        return self.head(torch.tanh(self.pool(mean)))


def tuned():
    def batch():
        return {"input_ids": text(202, (6, 9), 3), "labels": torch.tensor([0, 2, 1, 1, 0, 2])}
    def loss(m, b):
        return F.cross_entropy(m(b["input_ids"]), b["labels"])
    return of("prefix", Tuned, batch, loss, [
        ("Prefixed", "prefix_hidden", "(self.prefix_key.shape[0], 0), value=True)", "(self.prefix_key.shape[0], 0), value=False)", "@scaled_dot_product_attention"),
        ("Prefixed", "prefix_behind", "torch.cat([self.prefix_value.expand(len(x), -1, -1), self.value(x) * self.scale_value], 1)",
         "torch.cat([self.value(x) * self.scale_value, self.prefix_value.expand(len(x), -1, -1)], 1)"),
        ("Prefixed", "scale_of_keys", "self.value(x) * self.scale_value", "self.value(x) * self.scale_key"),
        ("Prefixed", "scale_missing", " * self.scale_hidden", "", "linear"),
        ("Prefixed", "scale_before_gelu", "F.gelu(self.fc1(x)) * self.scale_hidden", "F.gelu(self.fc1(x) * self.scale_hidden)"),
        ("Prefixed", "before_norm", "return self.norm2(x + self.fc2(hidden))", "return x + self.norm2(self.fc2(hidden))"),
        ("Prefixed*", "tanh_gelu", "F.gelu(self.fc1(x))", "F.gelu(self.fc1(x), approximate=\"tanh\")"),
        ("", "padding_counted", "(x * live[..., None]).sum(1) / live.sum(1, keepdim=True)", "x.mean(1)"),
        ("", "divided_by_length", "/ live.sum(1, keepdim=True)", "/ ids.shape[1]"),
        ("", "first_token", "mean = (x * live[..., None]).sum(1) / live.sum(1, keepdim=True)", "mean = x[:, 0]"),
        ("", "tanh_missing", "torch.tanh(self.pool(mean))", "self.pool(mean)"),
        ("", "places_from_one", "torch.arange(ids.shape[1])", "torch.arange(1, 1 + ids.shape[1])", "", ""),
        ("", "padding_by_one", "live = ids != 0", "live = ids > 20", "getitem|@scaled_dot_product_attention"),
        ("", "norm_missing", "x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))",
         "x = self.words(ids) + self.places(torch.arange(ids.shape[1]))"),
        ("loss", "smoothed", "b[\"labels\"])", "b[\"labels\"], label_smoothing=0.1)"),
    ], [
        ("Prefixed", "mask_added", "mask = F.pad(live, (self.prefix_key.shape[0], 0), value=True)[:, None, None]",
         "mask = torch.where(F.pad(live, (self.prefix_key.shape[0], 0), value=True), 0.0, -1e9)[:, None, None].to(x.dtype)"),
        ("Prefixed", "by_hand", "y = F.scaled_dot_product_attention(q, self.heads_of(k), self.heads_of(v), attn_mask=mask)",
         "s = (q @ self.heads_of(k).mT / math.sqrt(q.shape[-1])).masked_fill(~mask, -1e30)\n        y = torch.softmax(s, -1) @ self.heads_of(v)"),
        ("Prefixed*", "reshaped", "y.transpose(1, 2).flatten(2)", "y.permute(0, 2, 1, 3).contiguous().view(x.shape)"),
        ("", "mean_by_einsum", "(x * live[..., None]).sum(1) / live.sum(1, keepdim=True)",
         "torch.einsum('btd,bt->bd', x, live.to(x.dtype)) / live.sum(1)[:, None]"),
    ], ordered=True, parts=3)


# ---- late interaction of questions and passages ----------------------------------------------------------

class Interaction(nn.Module):
    def __init__(self, d=32, out=16):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, d), nn.Parameter(torch.zeros(16, d))
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(d, 4, 48, dropout=0.0, batch_first=True, norm_first=True), 2,
            enable_nested_tensor=False)
        self.small = nn.Linear(d, out, bias=False)

    def encode(self, ids):
        x = self.words(ids) + self.places[:ids.shape[1]]
        x = self.encoder(x, src_key_padding_mask=ids == 0)
        return F.normalize(self.small(x), dim=-1)

    def forward(self, asked, passages):
        q, p = self.encode(asked), self.encode(passages)
        alike = torch.einsum("aqd,bpd->abqp", q, p)
        alike = alike.masked_fill((passages == 0)[None, :, None], -1.0)
        best = alike.amax(-1)
        return (best * (asked != 0)[:, None]).sum(-1)


def late_interaction():
    def batch():
        return {"input_ids": text(203, (5, 6), 2), "passages": text(204, (5, 11), 4), "labels": torch.rand(5, 5, generator=generator(205)) * 3}
    def loss(m, b):
        scores = m(b["input_ids"], b["passages"])
        one = F.cross_entropy(scores / 0.5, torch.arange(len(scores)))
        taught = F.kl_div(scores.log_softmax(-1), b["labels"].log_softmax(-1), reduction="batchmean", log_target=True)
        return one + 0.5 * taught
    return of("colbert", Interaction, batch, loss, [
        ("", "not_unit", "F.normalize(self.small(x), dim=-1)", "self.small(x)"),
        ("", "unit_over_tokens", "F.normalize(self.small(x), dim=-1)", "F.normalize(self.small(x), dim=1)"),
        ("", "mean_for_best", "alike.amax(-1)", "alike.mean(-1)"),
        ("", "best_of_questions", "alike.amax(-1)", "alike.amax(-2)[..., :asked.shape[1]]"),
        ("", "padding_read", "alike = alike.masked_fill((passages == 0)[None, :, None], -1.0)", "pass", "amax"),
        ("", "questions_padded", "(best * (asked != 0)[:, None]).sum(-1)", "best.sum(-1)"),
        ("", "mean_over_tokens", "[:, None]).sum(-1)", "[:, None]).mean(-1)"),
        ("", "mask_missing", "src_key_padding_mask=ids == 0", "src_key_padding_mask=None", r"\w+|@multi_head_attention_forward"),
        ("", "places_missing", "x = self.words(ids) + self.places[:ids.shape[1]]", "x = self.words(ids)", "layer_norm"),
        ("", "places_shifted", "self.places[:ids.shape[1]]", "self.places[1:1 + ids.shape[1]]"),
        ("loss", "temperature", "scores / 0.5", "scores * 0.5"),
        ("loss", "rows_and_columns", "F.cross_entropy(scores / 0.5", "F.cross_entropy(scores.t() / 0.5"),
        ("loss", "divergence_turned", "F.kl_div(scores.log_softmax(-1), b[\"labels\"].log_softmax(-1)",
         "F.kl_div(b[\"labels\"].log_softmax(-1), scores.log_softmax(-1)"),
        ("loss", "divergence_mean", "reduction=\"batchmean\"", "reduction=\"mean\""),
        ("loss", "target_no_logarithm", "b[\"labels\"].log_softmax(-1), reduction=\"batchmean\", log_target=True",
         "b[\"labels\"].log_softmax(-1), reduction=\"batchmean\""),
    ], [
        ("", "matmul", "torch.einsum(\"aqd,bpd->abqp\", q, p)", "q[:, None] @ p[None].transpose(-1, -2)"),
        ("", "max_values", "alike.amax(-1)", "alike.max(-1).values"),
        ("", "where", "alike.masked_fill((passages == 0)[None, :, None], -1.0)",
         "torch.where((passages == 0)[None, :, None], torch.full_like(alike, -1.0), alike)"),
        ("loss", "divergence_by_hand", "F.kl_div(scores.log_softmax(-1), b[\"labels\"].log_softmax(-1), reduction=\"batchmean\", log_target=True)",
         "(b[\"labels\"].softmax(-1) * (b[\"labels\"].log_softmax(-1) - scores.log_softmax(-1))).sum() / len(scores)"),
    ], parallel=True, no_forms=("line_samples",))


# ---- layers whose weights lie in shards, as in tensor-parallel training -----------------------------------

class Shards(nn.Module):
    """Attention and MLP split over ranks that are computed one after another; partial sums are added."""

    def __init__(self, d=32, heads=4, ranks=2):
        super().__init__()
        self.d, self.heads, self.ranks = d, heads // ranks, ranks
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv = nn.ModuleList(nn.Linear(d, 3 * d // ranks) for _ in range(ranks))
        self.proj = nn.ModuleList(nn.Linear(d // ranks, d, bias=False) for _ in range(ranks))
        self.proj_bias = nn.Parameter(torch.zeros(d))
        self.up = nn.ModuleList(nn.Linear(d, 2 * d) for _ in range(ranks))
        self.down = nn.ModuleList(nn.Linear(2 * d, d, bias=False) for _ in range(ranks))
        self.down_bias = nn.Parameter(torch.zeros(d))

    def attend(self, x, rank):
        b, t, _ = x.shape
        q, k, v = self.qkv[rank](x).view(b, t, self.heads, -1).chunk(3, -1)
        scores = torch.baddbmm(x.new_zeros(1), q.transpose(1, 2).flatten(0, 1), k.permute(0, 2, 3, 1).flatten(0, 1), beta=0.0,
            alpha=q.shape[-1] ** -0.5)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -10000.0)
        y = torch.bmm(scores.float().softmax(-1).type_as(scores), v.transpose(1, 2).flatten(0, 1))
        return self.proj[rank](y.view(b, self.heads, t, -1).transpose(1, 2).reshape(b, t, -1))

    def forward(self, x):
        y = self.norm1(x)
        parts = [self.attend(y, r) for r in range(self.ranks)]
        x = x + (sum(parts) + self.proj_bias)
        y = self.norm2(x)
        parts = [self.down[r](F.gelu(self.up[r](y), approximate="tanh")) for r in range(self.ranks)]
        return x + (sum(parts) + self.down_bias)


class ParallelGpt(nn.Module):
    def __init__(self, d=32, ranks=2):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(VOCAB // ranks, d) for _ in range(ranks))
        self.places = nn.Embedding(16, d)
        self.layers = nn.ModuleList(Shards(d, 4, ranks) for _ in range(2))
        self.norm = nn.LayerNorm(d)

    def look_up(self, ids):
        size, out = self.tables[0].num_embeddings, 0
        for r, table in enumerate(self.tables):
            mine = (ids >= r * size) & (ids < (r + 1) * size)
            rows = table((ids - r * size) * mine)
            out = out + rows * mine.unsqueeze(-1)
        return out

    def entropy(self, x, labels):
        logits = [x @ table.weight.t() for table in self.tables]
        top = torch.stack([z.detach().amax(-1) for z in logits]).amax(0)
        total = sum(torch.exp(z - top.unsqueeze(-1)).sum(-1) for z in logits)
        size, right = self.tables[0].num_embeddings, 0
        for r, z in enumerate(logits):
            mine = (labels >= r * size) & (labels < (r + 1) * size)
            found = z.gather(-1, ((labels - r * size) * mine).unsqueeze(-1)).squeeze(-1)
            right = right + found * mine
        return torch.log(total) + top - right

    def forward(self, ids, labels, weights):
        x = self.look_up(ids) + self.places(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        each = self.entropy(self.norm(x), labels)
        return (each * weights).sum() / weights.sum()


def shards():
    def batch():
        ids = text(206, (4, 12))
        weights = torch.ones(4, 11)
        weights[2, 8:] = 0
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone(), "weights": weights}
    def loss(m, b):
        return m(b["input_ids"], b["labels"], b["weights"])
    return of("shards", ParallelGpt, batch, loss, [
        ("Shards", "bias_on_each_rank", "sum(parts) + self.down_bias", "sum(p + self.down_bias for p in parts)"),
        ("Shards", "not_reduced", "(sum(parts) + self.proj_bias)", "(parts[0] + self.proj_bias)"),
        ("Shards", "averaged", "(sum(parts) + self.proj_bias)", "(sum(parts) / self.ranks + self.proj_bias)"),
        ("Shards", "bias_missing", "(sum(parts) + self.proj_bias)", "sum(parts)"),
        ("Shards", "exact_gelu", "F.gelu(self.up[r](y), approximate=\"tanh\")", "F.gelu(self.up[r](y))"),
        ("Shards", "rank_reads_other", "self.down[r](F.gelu(self.up[r](y)", "self.down[r](F.gelu(self.up[0](y)", "linear"),
        ("Shards", "scale_of_model", "alpha=q.shape[-1] ** -0.5", "alpha=self.d ** -0.5"),
        ("Shards", "mask_missing", "scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -10000.0)", "pass", "softmax|float"),
        ("Shards", "mask_weak", "-10000.0)", "-1.0)"),
        ("Shards", "parts_of_qkv", "view(b, t, self.heads, -1).chunk(3, -1)", "view(b, t, 3, self.heads, -1).unbind(2)"),
        ("Shards*", "heads_not_moved", "y.view(b, self.heads, t, -1).transpose(1, 2).reshape(b, t, -1)", "y.view(b, t, -1)", "linear"),
        ("", "foreign_rows", "out = out + rows * mine.unsqueeze(-1)", "out = out + rows"),
        ("", "offset_missing", "rows = table((ids - r * size) * mine)", "rows = table(ids.clamp(max=size - 1) * mine)", "embedding"),
        ("", "total_of_first_rank", "total = sum(torch.exp(z - top.unsqueeze(-1)).sum(-1) for z in logits)",
         "total = torch.exp(logits[0] - top.unsqueeze(-1)).sum(-1) * 2"),
        ("", "foreign_logits", "right = right + found * mine", "right = right + found"),
        ("", "weights_ignored", "(each * weights).sum() / weights.sum()", "each.mean()"),
        ("", "norm_missing", "self.entropy(self.norm(x), labels)", "self.entropy(x, labels)", "t|matmul"),
    ], [
        ("", "another_shift", "torch.stack([z.detach().amax(-1) for z in logits]).amax(0)", "logits[0].detach().amax(-1) * 0"),
        ("", "gathered", "each = self.entropy(self.norm(x), labels)",
         "each = F.cross_entropy((self.norm(x) @ torch.cat([t.weight for t in self.tables]).t()).transpose(1, 2), labels, reduction='none')"),
        ("", "one_table", "x = self.look_up(ids) + self.places(torch.arange(ids.shape[1]))",
         "x = F.embedding(ids, torch.cat([t.weight for t in self.tables])) + self.places(torch.arange(ids.shape[1]))"),
        ("Shards", "one_product", "parts = [self.down[r](F.gelu(self.up[r](y), approximate=\"tanh\")) for r in range(self.ranks)]\n        return x + (sum(parts) + self.down_bias)",
         "h = F.gelu(F.linear(y, torch.cat([u.weight for u in self.up]), torch.cat([u.bias for u in self.up])), approximate='tanh')\n"
         "        return x + F.linear(h, torch.cat([u.weight for u in self.down], 1), self.down_bias)"),
        ("Shards*", "sums_reordered", "x = x + (sum(parts) + self.proj_bias)", "x = (x + self.proj_bias) + torch.stack(parts).sum(0)"),
        ("Shards", "sdpa", "y = torch.bmm(scores.float().softmax(-1).type_as(scores), v.transpose(1, 2).flatten(0, 1))",
         "y = F.scaled_dot_product_attention(*(z.transpose(1, 2) for z in (q, k, v)), is_causal=True).flatten(0, 1)"),
    ], ordered=True, parallel=True, void=("weights_in_steps",))


# ---- a knowledge graph whose relations turn -----------------------------------------------------------------

class Turning(nn.Module):
    def __init__(self, things=40, relations=6, d=12, margin=4.0):
        super().__init__()
        self.things, self.relations = nn.Embedding(things, 2 * d), nn.Embedding(relations, d)
        self.margin, self.span = margin, 2.0

    def score(self, head, relation, tail):
        a, b = self.things(head).chunk(2, -1)
        c, d = self.things(tail).chunk(2, -1)
        phase = self.relations(relation) / (self.span / math.pi)
        cos, sin = torch.cos(phase), torch.sin(phase)
        real = a * cos - b * sin - c
        imag = a * sin + b * cos - d
        return self.margin - torch.stack([real, imag]).norm(dim=0).sum(-1)

    def forward(self, facts, false):
        head, relation, tail = facts.unbind(-1)
        good = self.score(head, relation, tail)
        bad = self.score(head[:, None], relation[:, None], false)
        share = F.softmax(bad * 1.0, -1).detach()
        wrong = (share * F.logsigmoid(-bad)).sum(-1)
        return -(F.logsigmoid(good) + wrong).mean() / 2


def turning():
    def batch():
        g = generator(207)
        facts = torch.stack([torch.randint(0, 40, (8,), generator=g), torch.randint(0, 6, (8,), generator=g),
            torch.randint(0, 40, (8,), generator=g)], 1)
        return {"facts": facts, "labels": torch.randint(0, 40, (8, 5), generator=g)}
    def loss(m, b):
        return m(b["facts"], b["labels"])
    return of("rotate", Turning, batch, loss, [
        ("", "phase_unscaled", "self.relations(relation) / (self.span / math.pi)", "self.relations(relation)"),
        ("", "turned_back", "real = a * cos - b * sin - c", "real = a * cos + b * sin - c"),
        ("", "sine_for_cosine", "torch.cos(phase), torch.sin(phase)", "torch.sin(phase), torch.cos(phase)", "mul"),
        ("", "tail_added", "imag = a * sin + b * cos - d", "imag = a * sin + b * cos + d"),
        ("", "norm_over_all", ".norm(dim=0).sum(-1)", ".norm(dim=-1).sum(0)"),
        ("", "absolute_sums", "torch.stack([real, imag]).norm(dim=0)", "torch.stack([real, imag]).abs().sum(0)"),
        ("", "share_learns", "F.softmax(bad * 1.0, -1).detach()", "F.softmax(bad * 1.0, -1)", r"softmax|__mul__", "back"),
        ("", "share_equal", "(share * F.logsigmoid(-bad)).sum(-1)", "F.logsigmoid(-bad).mean(-1)"),
        ("", "bad_not_negated", "F.logsigmoid(-bad)", "F.logsigmoid(bad)"),
        ("", "temperature", "bad * 1.0", "bad * 0.5"),
        ("", "not_halved", ".mean() / 2", ".mean()"),
        ("", "head_and_tail", "good = self.score(head, relation, tail)", "good = self.score(tail, relation, head)", "embedding", ""),
        ("", "margin", "return self.margin - torch", "return 2.0 * self.margin - torch"),
    ], [
        ("", "complex", "real = a * cos - b * sin - c\n        imag = a * sin + b * cos - d\n        return self.margin - torch.stack([real, imag]).norm(dim=0).sum(-1)",
         "z = torch.complex(a, b) * torch.polar(torch.ones_like(phase), phase) - torch.complex(c, d)\n        return self.margin - z.abs().sum(-1)"),
        ("", "roots", "torch.stack([real, imag]).norm(dim=0)", "torch.sqrt(real ** 2 + imag ** 2)"),
        ("", "softplus", "F.logsigmoid(good)", "-F.softplus(-good)"),
        ("", "multiplied", "/ (self.span / math.pi)", "* (math.pi / self.span)"),
    ], ordered=True, parts=2, parallel=True, void=("low", "mixed"))


def families():
    return [two_ahead(), tuned(), late_interaction(), shards(), turning()]
