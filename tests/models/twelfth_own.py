# SPDX-License-Identifier: MIT
"""Own families of the twelfth set; see twelfth_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import VOCAB
from sixth_families import generator
from tenth_text import of, text


# ---- answers of a group, judged against one another --------------------------------------------------

class Speaker(nn.Module):
    def __init__(self, d=24, heads=3):
        super().__init__()
        self.words, self.places, self.heads = nn.Embedding(VOCAB, d), nn.Embedding(16, d), heads
        self.norm1, self.norm2, self.final = nn.LayerNorm(d), nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.kv, self.o = nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)
        self.up, self.down, self.head = nn.Linear(d, 2 * d), nn.Linear(2 * d, d), nn.Linear(d, VOCAB, bias=False)

    def attend(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in (self.q(x), *self.kv(x).chunk(2, -1)))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).flatten(2))

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        x = x + self.attend(self.norm1(x))
        x = x + self.down(F.gelu(self.up(self.norm2(x))))
        return self.head(self.final(x))


def group_answers():
    def batch():
        g = generator(401)
        return {"input_ids": text(402, (6, 10)), "labels": torch.tensor([1.0, 0.0, 0.5, 2.0, 1.0, 0.0]), "old": -3 - 2 * torch.rand(6, 9, generator=g),
            "reference": -3 - 2 * torch.rand(6, 9, generator=g), "mask": (torch.arange(9) < torch.tensor([9, 5, 7, 9, 6, 8])[:, None]).float()}
    def loss(m, b):
        scores = m(b["input_ids"][:, :-1]).log_softmax(-1)
        logs = scores.gather(-1, b["input_ids"][:, 1:, None]).squeeze(-1)
        teams = b["labels"].view(2, 3)
        worth = ((teams - teams.mean(1, keepdim=True)) / (teams.std(1, keepdim=True) + 1e-4)).view(-1, 1)
        ratio = torch.exp(logs - b["old"])
        gain = torch.minimum(ratio * worth, ratio.clamp(0.8, 1.2) * worth)
        away = torch.exp(b["reference"] - logs) - (b["reference"] - logs) - 1
        each = -(gain - 0.04 * away)
        return ((each * b["mask"]).sum(1) / b["mask"].sum(1)).mean()
    return of("group", Speaker, batch, loss, [
        ("", "causal_lost", "is_causal=True", "is_causal=False"),
        ("", "keys_and_values", "(self.q(x), *self.kv(x).chunk(2, -1))", "(self.q(x), *self.kv(x).chunk(2, -1)[::-1])", "scaled_dot_product_attention"),
        ("", "norm_of_first", "self.up(self.norm2(x))", "self.up(self.norm1(x))"),
        ("", "tanh_gelu", "F.gelu(self.up(self.norm2(x)))", "F.gelu(self.up(self.norm2(x)), approximate='tanh')"),
        ("", "places_from_one", "torch.arange(ids.shape[1])", "torch.arange(ids.shape[1]) + 1"),
        ("loss", "mean_of_all", "((each * b[\"mask\"]).sum(1) / b[\"mask\"].sum(1)).mean()", "(each * b[\"mask\"]).sum() / b[\"mask\"].sum()"),
        ("loss", "padding_counted", "((each * b[\"mask\"]).sum(1) / b[\"mask\"].sum(1)).mean()", "each.mean()"),
        ("loss", "over_all_answers", "teams - teams.mean(1, keepdim=True)", "teams - teams.mean()"),
        ("loss", "not_divided_by_deviation", "/ (teams.std(1, keepdim=True) + 1e-4)", ""),
        ("loss", "maximum", "torch.minimum(ratio * worth", "torch.maximum(ratio * worth"),
        ("loss", "penalty_sign", "-(gain - 0.04 * away)", "-(gain + 0.04 * away)"),
        ("loss", "penalty_estimate", "torch.exp(b[\"reference\"] - logs) - (b[\"reference\"] - logs) - 1", "logs - b[\"reference\"]"),
        ("loss", "same_token", "b[\"input_ids\"][:, 1:, None]", "b[\"input_ids\"][:, :-1, None]"),
    ], [
        ("", "one_layer_apart", "*self.kv(x).chunk(2, -1)", "*(F.linear(x, w, c) for w, c in zip(self.kv.weight.chunk(2), self.kv.bias.chunk(2)))"),
        ("loss", "logs_by_entropy", "scores.gather(-1, b[\"input_ids\"][:, 1:, None]).squeeze(-1)",
         "-F.nll_loss(scores.flatten(0, 1), b[\"input_ids\"][:, 1:].flatten(), reduction='none').view(6, 9)"),
        ("loss", "penalty_expm1", "torch.exp(b[\"reference\"] - logs) - (b[\"reference\"] - logs) - 1",
         "torch.expm1(b[\"reference\"] - logs) + (logs - b[\"reference\"])"),
        ("loss", "less_of_losses", "-(gain - 0.04 * away)", "0.04 * away - gain"),
        ("loss", "clamped_apart", "ratio.clamp(0.8, 1.2)", "torch.minimum(torch.maximum(ratio, torch.tensor(0.8)), torch.tensor(1.2))"),
    ], ordered=False)


# ---- clicks by crossed features ---------------------------------------------------------------------------

class Crossed(nn.Module):
    def __init__(self, sizes=(7, 11, 5, 9), d=6, rank=4):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(n, d) for n in sizes)
        n = d * len(sizes) + 3
        self.dense_norm = nn.BatchNorm1d(3)
        self.down, self.up = nn.ModuleList(nn.Linear(n, rank, bias=False) for _ in range(3)), nn.ModuleList(nn.Linear(rank, n) for _ in range(3))
        self.deep1, self.deep2, self.wide, self.out = nn.Linear(n, 20), nn.Linear(20, 10), nn.Linear(n, 1), nn.Linear(n + 10, 1)

    def forward(self, ids, dense):
        x = torch.cat([t(ids[:, i]) for i, t in enumerate(self.tables)] + [self.dense_norm(dense)], 1)
        start, crossed = x, x
        for down, up in zip(self.down, self.up):
            crossed = start * up(torch.tanh(down(crossed))) + crossed
        deep = F.relu(self.deep2(F.relu(self.deep1(x))))
        return (self.out(torch.cat([crossed, deep], 1)) + self.wide(x)).squeeze(1)


def crossed():
    def batch():
        g = generator(403)
        return {"ids": torch.stack([torch.randint(0, n, (8,), generator=g) for n in (7, 11, 5, 9)], 1), "dense": torch.rand(8, 3, generator=g) * 4,
            "labels": torch.randint(0, 2, (8,), generator=g).float()}
    def loss(m, b):
        scores = m(b["ids"], b["dense"])
        each = F.binary_cross_entropy_with_logits(scores, b["labels"], reduction="none")
        return (each * (1 + 2 * b["labels"])).mean() + 1e-3 * sum(t.weight.pow(2).sum() for t in m.tables)
    return of("dcn", Crossed, batch, loss, [
        ("", "cross_with_itself", "start * up(torch.tanh(down(crossed)))", "crossed * up(torch.tanh(down(crossed)))"),
        ("", "cross_without_rest", "start * up(torch.tanh(down(crossed))) + crossed", "start * up(torch.tanh(down(crossed)))"),
        ("", "cross_adds_start", "start * up(torch.tanh(down(crossed))) + crossed", "start * up(torch.tanh(down(crossed))) + start"),
        ("", "tanh_missing", "torch.tanh(down(crossed))", "down(crossed)"),
        ("", "deep_reads_crossed", "self.deep1(x)", "self.deep1(crossed)"),
        ("", "last_relu_missing", "F.relu(self.deep2(F.relu(self.deep1(x))))", "self.deep2(F.relu(self.deep1(x)))"),
        ("", "joined_in_reverse", "torch.cat([crossed, deep], 1)", "torch.cat([deep, crossed], 1)"),
        ("", "wide_missing", "(self.out(torch.cat([crossed, deep], 1)) + self.wide(x))", "self.out(torch.cat([crossed, deep], 1))"),
        ("loss", "weights_of_others", "1 + 2 * b[\"labels\"]", "3 - 2 * b[\"labels\"]"),
        ("loss", "penalty_not_squared", "t.weight.pow(2).sum()", "t.weight.abs().sum()"),
        ("loss", "labels_smoothed", "scores, b[\"labels\"], reduction", "scores, b[\"labels\"] * 0.9 + 0.05, reduction"),
    ], [
        ("", "addcmul", "start * up(torch.tanh(down(crossed))) + crossed", "torch.addcmul(crossed, start, up(torch.tanh(down(crossed))))"),
        ("", "factored", "start * up(torch.tanh(down(crossed))) + crossed", "crossed + up(down(crossed).tanh()).mul(start)"),
        ("loss", "by_softplus", "F.binary_cross_entropy_with_logits(scores, b[\"labels\"], reduction=\"none\")",
         "F.softplus(scores) - scores * b['labels']"),
        ("loss", "weight_in_function", "(each * (1 + 2 * b[\"labels\"])).mean()",
         "F.binary_cross_entropy_with_logits(scores, b['labels'], weight=1 + 2 * b['labels'])"),
        ("loss", "squares_multiplied", "t.weight.pow(2).sum()", "(t.weight * t.weight).sum()"),
    ])


# ---- boxes, with a focal loss and overlap ----------------------------------------------------------------

class Part(nn.Module):
    def __init__(self, inside, out, stride=1):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class Boxes(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.stem, self.low, self.high = Part(3, 8, 2), Part(8, 12, 2), Part(12, 16, 2)
        self.lateral, self.mixed = nn.Conv2d(16, 12, 1), Part(24, 12)
        self.kinds, self.sides = nn.Conv2d(12, classes, 1), nn.Conv2d(12, 4, 1)

    def forward(self, x):
        low = self.low(self.stem(x))
        high = F.interpolate(self.lateral(self.high(low)), scale_factor=2.0, mode="nearest")
        y = self.mixed(torch.cat([low, high], 1))
        return self.kinds(y), F.softplus(self.sides(y))


def overlap(a, b):
    inner = (torch.minimum(a, b)[..., :2] + torch.minimum(a, b)[..., 2:]).prod(-1)
    outer = (torch.maximum(a, b)[..., :2] + torch.maximum(a, b)[..., 2:]).prod(-1)
    area = [(t[..., :2] + t[..., 2:]).prod(-1) for t in (a, b)]
    union = area[0] + area[1] - inner
    return inner / union - (outer - union) / outer


def boxes():
    def batch():
        g = generator(404)
        return {"pixel_values": torch.randn(4, 3, 32, 32, generator=g), "labels": torch.rand(4, 8, 8, 4, generator=g) * 3 + 0.2,
            "kinds": (torch.rand(4, 3, 8, 8, generator=g) > 0.8).float()}
    def loss(m, b):
        kinds, sides = m(b["pixel_values"])
        p = torch.sigmoid(kinds)
        plain = F.binary_cross_entropy_with_logits(kinds, b["kinds"], reduction="none")
        hard = (p * b["kinds"] + (1 - p) * (1 - b["kinds"]))
        weight = 0.25 * b["kinds"] + 0.75 * (1 - b["kinds"])
        focal = (weight * (1 - hard) ** 2 * plain).sum() / b["kinds"].sum().clamp(min=1)
        near = 1 - overlap(sides.permute(0, 2, 3, 1), b["labels"])
        full = b["kinds"].amax(1)
        return focal + 2.0 * (near * full).sum() / full.sum()
    return of("boxes", Boxes, batch, loss, [
        ("", "high_not_lifted_nearest", "mode=\"nearest\"", "mode=\"bilinear\""),
        ("", "high_first", "torch.cat([low, high], 1)", "torch.cat([high, low], 1)"),
        ("", "softplus_missing", "F.softplus(self.sides(y))", "self.sides(y).abs()"),
        ("Part@low", "relu", "F.silu(self.bn(self.conv(x)))", "F.relu(self.bn(self.conv(x)))"),
        ("Part@mixed", "norm_missing", "F.silu(self.bn(self.conv(x)))", "F.silu(self.conv(x))"),
        ("Part@high", "norm_behind", "F.silu(self.bn(self.conv(x)))", "self.bn(F.silu(self.conv(x)))"),
        ("#overlap", "outer_left_out", "inner / union - (outer - union) / outer", "inner / union"),
        ("#overlap", "union_with_inner", "area[0] + area[1] - inner", "area[0] + area[1]"),
        ("loss", "weight_turned", "0.25 * b[\"kinds\"] + 0.75 * (1 - b[\"kinds\"])", "0.75 * b[\"kinds\"] + 0.25 * (1 - b[\"kinds\"])"),
        ("loss", "power_one", "(1 - hard) ** 2", "(1 - hard)"),
        ("loss", "weight_of_easy", "(1 - hard) ** 2", "hard ** 2"),
        ("loss", "all_places", "(near * full).sum() / full.sum()", "near.mean()"),
    ], [
        ("", "repeated", "F.interpolate(self.lateral(self.high(low)), scale_factor=2.0, mode=\"nearest\")",
         "self.lateral(self.high(low)).repeat_interleave(2, 2).repeat_interleave(2, 3)"),
        ("", "lifted_before", "F.interpolate(self.lateral(self.high(low)), scale_factor=2.0, mode=\"nearest\")",
         "self.lateral(F.interpolate(self.high(low), scale_factor=2.0, mode='nearest'))"),
        ("Part*", "silu_by_hand", "F.silu(self.bn(self.conv(x)))", "(lambda y: y * y.sigmoid())(self.bn(self.conv(x)))"),
        ("loss", "hard_by_exp", "(1 - hard) ** 2", "(-torch.expm1(-plain)).square()"),
        ("loss", "hard_where", "(p * b[\"kinds\"] + (1 - p) * (1 - b[\"kinds\"]))", "torch.where(b['kinds'] > 0, p, 1 - p)"),
    ], vision=True, ordered=True)


# ---- words about a picture, with attention of a recurrent network ---------------------------------------

class Captions(nn.Module):
    def __init__(self, d=20):
        super().__init__()
        self.patches, self.words = nn.Conv2d(3, d, 4, 4), nn.Embedding(VOCAB, d, padding_idx=0)
        self.start, self.cell = nn.Linear(d, 2 * d), nn.LSTMCell(2 * d, d)
        self.ask, self.key, self.energy = nn.Linear(d, 16), nn.Linear(d, 16, bias=False), nn.Linear(16, 1, bias=False)
        self.gate, self.out = nn.Linear(d, d), nn.Linear(2 * d, VOCAB)

    def forward(self, image, ids):
        seen = self.patches(image).flatten(2).transpose(1, 2)
        h, c = torch.tanh(self.start(seen.mean(1))).chunk(2, -1)
        keys, made, looks = self.key(seen), [], []
        for word in self.words(ids).unbind(1):
            look = self.energy(torch.tanh(keys + self.ask(h)[:, None])).squeeze(-1).softmax(-1)
            place = torch.sigmoid(self.gate(h)) * (look[:, :, None] * seen).sum(1)
            h, c = self.cell(torch.cat([word, place], 1), (h, c))
            made.append(self.out(torch.cat([h, place], 1)))
            looks.append(look)
        return torch.stack(made, 1), torch.stack(looks, 1)


def captions():
    def batch():
        return {"pixel_values": torch.randn(4, 3, 12, 12, generator=generator(405)), "input_ids": text(406, (4, 6)), "labels": text(407, (4, 6), 2)}
    def loss(m, b):
        scores, looks = m(b["pixel_values"], b["input_ids"])
        return F.cross_entropy(scores.transpose(1, 2), b["labels"], ignore_index=0) + 0.5 * (1 - looks.sum(1)).pow(2).mean()
    return of("captions", Captions, batch, loss, [
        ("", "tanh_of_start", "torch.tanh(self.start(seen.mean(1)))", "self.start(seen.mean(1))"),
        ("", "start_by_largest", "self.start(seen.mean(1))", "self.start(seen.amax(1))"),
        ("", "states_exchanged", "h, c = torch.tanh", "c, h = torch.tanh"),
        ("", "relu_energy", "torch.tanh(keys + self.ask(h)[:, None])", "torch.relu(keys + self.ask(h)[:, None])"),
        ("", "softmax_over_batch", ".squeeze(-1).softmax(-1)", ".squeeze(-1).softmax(0)"),
        ("", "gate_missing", "torch.sigmoid(self.gate(h)) * (look[:, :, None] * seen).sum(1)", "(look[:, :, None] * seen).sum(1)"),
        ("", "place_first", "torch.cat([word, place], 1)", "torch.cat([place, word], 1)"),
        ("", "memory_for_state", "self.out(torch.cat([h, place], 1))", "self.out(torch.cat([c, place], 1))"),
        ("loss", "padding_learnt", ", ignore_index=0", ""),
        ("loss", "looks_over_places", "looks.sum(1)", "looks.sum(2)"),
    ], [
        ("", "weighted_by_bmm", "(look[:, :, None] * seen).sum(1)", "torch.bmm(look[:, None], seen)[:, 0]"),
        ("", "patches_unfolded", "self.patches(image).flatten(2).transpose(1, 2)",
         "F.linear(F.unfold(image, 4, stride=4).mT, self.patches.weight.flatten(1), self.patches.bias)"),
        ("", "asked_before", "self.ask(h)[:, None]", "self.ask(h[:, None])"),
        ("loss", "flat", "F.cross_entropy(scores.transpose(1, 2), b[\"labels\"], ignore_index=0)",
         "F.cross_entropy(scores.flatten(0, 1), b['labels'].flatten(), ignore_index=0)"),
        ("loss", "masked_by_hand", "F.cross_entropy(scores.transpose(1, 2), b[\"labels\"], ignore_index=0)",
         "(lambda e, k: (e * k).sum() / k.sum())(F.cross_entropy(scores.transpose(1, 2), b['labels'], reduction='none'), (b['labels'] != 0).float())"),
    ], vision=True, ordered=True)


# ---- two views: alike, spread, without correlation ---------------------------------------------------------

class Views(nn.Module):
    def __init__(self, d=12):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(14, 24), nn.BatchNorm1d(24), nn.ReLU(), nn.Linear(24, 16))
        self.widen = nn.Sequential(nn.Linear(16, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Linear(20, d, bias=False))

    def forward(self, a, b):
        return self.widen(self.body(a)), self.widen(self.body(b))


def off_diagonal(x):
    return x[~torch.eye(len(x), dtype=torch.bool)]


def views():
    def batch():
        g = generator(408)
        x = torch.randn(10, 14, generator=g)
        return {"pixel_values": x + 0.3 * torch.randn(10, 14, generator=g), "labels": x + 0.3 * torch.randn(10, 14, generator=g)}
    def loss(m, b):
        x, y = m(b["pixel_values"], b["labels"])
        alike = F.mse_loss(x, y)
        spread, mixed = 0, 0
        for z in (x, y):
            z = z - z.mean(0)
            spread = spread + F.relu(1 - torch.sqrt(z.var(0) + 1e-4)).mean() / 2
            both = z.T @ z / (len(z) - 1)
            mixed = mixed + off_diagonal(both).pow(2).sum() / z.shape[1]
        return 25 * alike + 25 * spread + mixed
    return of("vicreg", Views, batch, loss, [
        ("loss", "not_centred", "z = z - z.mean(0)", "pass", "matmul|__matmul__|var"),
        ("loss", "root_missing", "torch.sqrt(z.var(0) + 1e-4)", "(z.var(0) + 1e-4)"),
        ("loss", "over_features", "z.var(0)", "z.var(1)"),
        ("loss", "diagonal_kept", "off_diagonal(both).pow(2).sum()", "both.pow(2).sum()"),
        ("loss", "weights_exchanged", "25 * alike + 25 * spread + mixed", "alike + 25 * spread + 25 * mixed"),
        ("loss", "samples_for_features", "/ z.shape[1]", "/ z.shape[0]"),
        ("loss", "hinge_turned", "F.relu(1 - torch.sqrt(z.var(0) + 1e-4))", "F.relu(torch.sqrt(z.var(0) + 1e-4) - 1)"),
        ("loss", "l1_for_l2", "F.mse_loss(x, y)", "F.l1_loss(x, y)"),
        ("", "second_not_widened_apart", "self.widen(self.body(b))", "self.widen(self.body(a))"),
        ("", "second_detached", "self.widen(self.body(b))", "self.widen(self.body(b)).detach()", "", "back"),
    ], [
        ("loss", "covariance", "z.T @ z / (len(z) - 1)", "torch.cov(z.T)"),
        ("loss", "all_without_diagonal", "off_diagonal(both).pow(2).sum()", "(both.pow(2).sum() - both.diagonal().pow(2).sum())"),
        ("loss", "deviation", "torch.sqrt(z.var(0) + 1e-4)", "(z.pow(2).sum(0) / (len(z) - 1) + 1e-4).pow(0.5)"),
        ("loss", "clamp", "F.relu(1 - torch.sqrt(z.var(0) + 1e-4))", "(1 - torch.sqrt(z.var(0) + 1e-4)).clamp(min=0)"),
        ("loss", "mean_of_squares", "F.mse_loss(x, y)", "(x - y).square().mean()"),
    ], void=("channels_swapped",))


# ---- molecules: sums of neighbours with a virtual node -------------------------------------------------------

class Isomorphic(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.fc1, self.norm, self.fc2 = nn.Linear(d, 2 * d), nn.BatchNorm1d(2 * d), nn.Linear(2 * d, d)
        self.bond, self.eps = nn.Embedding(4, d), nn.Parameter(torch.zeros(1))

    def forward(self, x, edges, bonds):
        sent = F.relu(x[edges[0]] + self.bond(bonds))
        found = torch.zeros_like(x).index_add(0, edges[1], sent)
        return self.fc2(F.relu(self.norm(self.fc1((1 + self.eps) * x + found))))


class Molecules(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.atoms, self.virtual = nn.Embedding(9, d), nn.Parameter(torch.zeros(1, d))
        self.layers = nn.ModuleList(Isomorphic(d) for _ in range(3))
        self.share, self.out = nn.Linear(d, d), nn.Linear(d, 2)

    def forward(self, atoms, edges, bonds, owner):
        x, node = self.atoms(atoms), self.virtual.expand(4, -1)
        for layer in self.layers:
            x = x + node[owner]
            x = F.relu(layer(x, edges, bonds)) + x
            node = node + F.relu(self.share(torch.zeros_like(node).index_add(0, owner, x)))
        count = torch.bincount(owner, minlength=4).clamp(min=1)
        return self.out(torch.zeros_like(node).index_add(0, owner, x) / count[:, None])


def molecules():
    def batch():
        g = generator(409)
        owner = torch.tensor([0] * 5 + [1] * 7 + [2] * 4 + [3] * 6)
        edges = torch.cat([torch.stack([torch.randint(a, z, (10,), generator=g), torch.randint(a, z, (10,), generator=g)])
                           for a, z in ((0, 5), (5, 12), (12, 16), (16, 22))], 1)
        # The first value has the most rows, by which a batch is cut.
        return {"bonds": torch.randint(0, 4, (40,), generator=g), "edges": edges, "atoms": torch.randint(0, 9, (22,), generator=g), "owner": owner,
            "labels": torch.randn(4, 2, generator=g)}
    def loss(m, b):
        return F.huber_loss(m(b["atoms"], b["edges"], b["bonds"], b["owner"]), b["labels"], delta=0.8)
    return of("gin", Molecules, batch, loss, [
        ("Isomorphic@layers.1", "bonds_missing", "F.relu(x[edges[0]] + self.bond(bonds))", "F.relu(x[edges[0]])"),
        ("Isomorphic@layers.0", "relu_of_messages", "F.relu(x[edges[0]] + self.bond(bonds))", "(x[edges[0]] + self.bond(bonds))"),
        ("Isomorphic@layers.2", "own_missing", "(1 + self.eps) * x + found", "found"),
        ("Isomorphic@layers.1", "one_missing", "(1 + self.eps) * x + found", "self.eps * x + found"),
        ("Isomorphic@layers.0", "norm_before", "self.norm(self.fc1((1 + self.eps) * x + found))", "self.fc1((1 + self.eps) * x + found)"),
        ("Isomorphic@layers.2", "against_the_edges", "index_add(0, edges[1], sent)", "index_add(0, edges[0], sent)"),
        ("", "virtual_missing", "x = x + node[owner]", "pass", "relu|getitem"),
        ("", "sums_for_means", " / count[:, None]", ""),
        ("", "virtual_replaced", "node = node + F.relu(", "node = F.relu("),
        ("", "residual_missing", "F.relu(layer(x, edges, bonds)) + x", "F.relu(layer(x, edges, bonds))"),
        ("loss", "delta", ", delta=0.8", ", delta=0.2"),
    ], [
        ("Isomorphic*", "scattered", "torch.zeros_like(x).index_add(0, edges[1], sent)",
         "torch.zeros_like(x).scatter_add(0, edges[1][:, None].expand_as(sent), sent)"),
        ("Isomorphic*", "own_apart", "(1 + self.eps) * x + found", "x + self.eps * x + found"),
        ("Isomorphic*", "selected", "x[edges[0]] + self.bond(bonds)", "x.index_select(0, edges[0]) + self.bond.weight[bonds]"),
        ("", "pooled_by_product", "torch.zeros_like(node).index_add(0, owner, x) / count[:, None]",
         "(F.one_hot(owner, 4).to(x.dtype).T @ x) / count[:, None]"),
        ("", "counted_otherwise", "torch.bincount(owner, minlength=4).clamp(min=1)", "F.one_hot(owner, 4).sum(0).clamp(min=1)"),
    ])


def families():
    return [group_answers(), crossed(), boxes(), captions(), views(), molecules()]
