# SPDX-License-Identifier: MIT
"""Own families of the tenth set with loops of their own; see tenth_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from changes import ANY, Change, anywhere
from families import VOCAB
from ninth_edits import PRE, in_step
from sixth_families import generator
from tenth_text import of, text
from unseen_changes import clean


# ---- loops -------------------------------------------------------------------------------------------

class Muon(torch.optim.Optimizer):
    """Matrices step along the orthogonal factor of their momentum, vectors as in Adam's first step."""

    def __init__(self, params, lr=0.02, momentum=0.95, rounds=5, nesterov=True, scale=True, decay=0.0):
        super().__init__(params, {"lr": lr, "momentum": momentum, "rounds": rounds, "nesterov": nesterov, "scale": scale, "decay": decay})

    @staticmethod
    def orthogonal(g, rounds):
        x = g / (g.norm() + 1e-7)
        x = x.t() if g.shape[0] > g.shape[1] else x
        for _ in range(rounds):
            a = x @ x.t()
            x = 3.4445 * x + (-4.775 * a + 2.0315 * a @ a) @ x
        return x.t() if g.shape[0] > g.shape[1] else x

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in (p for p in group["params"] if p.grad is not None):
                speed = self.state[p].setdefault("speed", torch.full_like(p, 1e-3))
                speed.mul_(group["momentum"]).add_(p.grad)
                way = p.grad.add(speed, alpha=group["momentum"]) if group["nesterov"] else speed
                if p.ndim == 2:
                    way = self.orthogonal(way, group["rounds"])
                    way = way * max(1.0, p.shape[0] / p.shape[1]) ** 0.5 if group["scale"] else way
                else:
                    way = way / (way.abs() + 1e-4)
                p.mul_(1 - group["lr"] * group["decay"])
                p.add_(way, alpha=-group["lr"])


def muoned(step):
    step.optimizer = Muon
    step.clip = 0


def sharpness(step, radius=0.05):
    """A second pass at the worst place nearby gives the gradient."""
    def run(m):
        learn = [p for p in m.parameters() if p.grad is not None]
        with torch.no_grad():
            norm = torch.stack([p.grad.norm() for p in learn]).norm()
            moves = [p.grad * (radius / (norm + 1e-12)) for p in learn]
            for p, e in zip(learn, moves):
                p.add_(e)
        m.zero_grad()
        step.loss(m, step.batch).backward()
        with torch.no_grad():
            for p, e in zip(learn, moves):
                p.sub_(e)
    step.before_step = run
    step.clip = 0
    step.optimizer = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-3, foreach=False)


class Lamb(torch.optim.Optimizer):
    def __init__(self, params, lr=2e-3, betas=(0.9, 0.99), eps=1e-6, decay=0.02, ratio=True):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "decay": decay, "ratio": ratio})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            one, two = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["m"].mul_(one).add_(p.grad, alpha=1 - one)
                state["v"].mul_(two).addcmul_(p.grad, p.grad, value=1 - two)
                way = state["m"] / (1 - one) / ((state["v"] / (1 - two)).sqrt() + group["eps"]) + group["decay"] * p
                trust = torch.norm(p) / torch.norm(way) if group["ratio"] else 1.0
                p.sub_(group["lr"] * trust * way)


def lambed(step):
    step.optimizer = Lamb
    step.clip = 0.5
    step.parts = 2


def updates(*rows):
    """Mistakes of an update: (name, why, optimizer's maker or apply, truth)."""
    def listed(model):
        for name, why, make, truth in rows:
            apply = make if getattr(make, "__name__", "") == "apply" else lambda step, make=make: setattr(step, "optimizer", make)
            yield Change(name, why, apply, truth or in_step(), "update")
    return listed


def looped(family, loop, rows):
    family.loop, family.more_mistakes = loop, updates(*rows)
    return family


# ---- two stages of a pipeline in one process -------------------------------------------------------------

class Transfer(torch.autograd.Function):
    """What one stage sends to the next, and its gradient on the way back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clone()


class Stage(nn.Module):
    def __init__(self, d=32, layers=2):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(2 * layers))
        self.attend = nn.ModuleList(nn.MultiheadAttention(d, 4, batch_first=True) for _ in range(layers))
        self.fc1, self.fc2 = (nn.ModuleList(nn.Linear(a, b) for _ in range(layers)) for a, b in ((d, 72), (72, d)))

    def forward(self, x):
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        for i, attend in enumerate(self.attend):
            y = self.norms[2 * i](x)
            x = x + attend(y, y, y, attn_mask=mask, need_weights=False)[0]
            y = self.fc1[i](self.norms[2 * i + 1](x))
            x = x + self.fc2[i](torch.square(F.relu(y)))
        return x


class Pipeline(nn.Module):
    def __init__(self, d=32, parts=2):
        super().__init__()
        self.words, self.places = nn.Embedding(VOCAB, d), nn.Embedding(16, d)
        self.first, self.second = Stage(d), Stage(d)
        self.norm, self.head, self.parts = nn.LayerNorm(d), nn.Linear(d, VOCAB, bias=False), parts

    def forward(self, ids, labels):
        sent = []
        for part in ids.chunk(self.parts):
            x = self.words(part) * math.sqrt(32) + self.places(torch.arange(part.shape[1]))
            sent.append(Transfer.apply(self.first(x)))
        total = 0.0
        for x, y in zip(sent, labels.chunk(self.parts)):
            logits = self.head(self.norm(self.second(x)))
            total = total + F.cross_entropy(logits.flatten(0, 1), y.flatten()) / self.parts
        return total


def stages():
    def batch():
        ids = text(241, (4, 12))
        return {"input_ids": ids[:, :-1].clone(), "labels": ids[:, 1:].clone()}
    def loss(m, b):
        return m(b["input_ids"], b["labels"])
    family = of("stages", Pipeline, batch, loss, [
        ("Stage@second", "relu_not_squared", "torch.square(F.relu(y))", "F.relu(y)"),
        ("Stage@first", "gelu_for_square", "torch.square(F.relu(y))", "F.gelu(y)"),
        ("Stage@second", "mask_missing", "attn_mask=mask", "attn_mask=None", r"\w+|@multi_head_attention_forward"),
        ("Stage@first", "mask_of_itself", ".triu(1)", ".triu(0)\n        mask[0, 0] = False", r"\w+"),
        ("Stage@second", "norm_of_other", "self.fc1[i](self.norms[2 * i + 1](x))", "self.fc1[i](self.norms[2 * i](x))", r"layer_norm|linear"),
        ("Stage@first", "values_not_normed", "attend(y, y, y, attn_mask", "attend(y, y, x, attn_mask", r"\w+|@multi_head_attention_forward|@transpose"),
        ("", "words_unscaled", "self.words(part) * math.sqrt(32)", "self.words(part)"),
        ("", "parts_in_reverse", "zip(sent, labels.chunk(self.parts))", "zip(sent[::-1], labels.chunk(self.parts))", r"\w+|@layer_norm"),
        ("", "not_divided", "y.flatten()) / self.parts", "y.flatten())"),
        ("", "last_part_alone", "total = total + F.cross_entropy", "total = F.cross_entropy"),
        ("", "part_detached", "Transfer.apply(self.first(x))", "Transfer.apply(self.first(x)) if not sent else self.first(x).detach()", r"\w+",
         "back"),
        ("", "places_from_two", "torch.arange(part.shape[1])", "torch.arange(2, 2 + part.shape[1])"),
        ("", "norm_missing", "self.head(self.norm(self.second(x)))", "self.head(self.second(x))"),
    ], [
        ("", "in_one_part", "sent = []", "self.parts, sent = 1, []"),
        ("", "four_parts", "total = 0.0", "total, sent, labels = 0.0, [q for p in sent for q in p.chunk(2)], labels\n        self.parts = 4"),
        ("", "no_transfer", "Transfer.apply(self.first(x))", "self.first(x)"),
        ("Stage*", "product_for_square", "torch.square(F.relu(y))", "(lambda z: z * z)(F.relu(y))"),
        ("Stage*", "mask_added", "dtype=torch.bool).triu(1)",
         "dtype=torch.bool).triu(1)\n        mask = torch.zeros(mask.shape).masked_fill(mask, float('-inf')).to(x.dtype)"),
    ], pure=False, void=("double", "mixed", "low", "by_autograd", "out_leaky"))
    return looped(family, muoned, [
        ("rounds_one", "one round", lambda p: Muon(p, rounds=1), in_step(r"__r?mul__|__r?add__|__r?matmul__|t")),
        ("not_scaled", "steps of matrices not scaled", lambda p: Muon(p, scale=False), in_step(r"__r?mul__|add_")),
        ("nesterov_off", "no Nesterov", lambda p: Muon(p, nesterov=False), in_step(r"add|add_|norm|__r?truediv__|abs")),
        ("rate_small", "rate 0.01", lambda p: Muon(p, lr=0.01), in_step("add_")),
        ("momentum_half", "momentum 0.5", lambda p: Muon(p, momentum=0.5), in_step(r"mul_|add")),
        ("decay_on", "decay 0.1", lambda p: Muon(p, decay=0.1), in_step("mul_")),
    ])


# ---- points in groups around centres ------------------------------------------------------------------------

class Grouping(nn.Module):
    def __init__(self, inside, out, centres, radius, near=4):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside + 3, out, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 1, bias=False), nn.BatchNorm2d(out)
        self.centres, self.radius, self.near = centres, radius, near

    def farthest(self, xyz):
        best = torch.full(xyz.shape[:2], 1e10, dtype=xyz.dtype)
        at, found = torch.zeros(len(xyz), dtype=torch.int64), []
        for _ in range(self.centres):
            found.append(at)
            centre = xyz[torch.arange(len(xyz)), at][:, None]
            best = torch.minimum(best, ((xyz - centre) ** 2).sum(-1))
            at = best.argmax(-1)
        return torch.stack(found, 1)

    def forward(self, xyz, features):
        rows = torch.arange(len(xyz))[:, None]
        centres = xyz[rows, self.farthest(xyz.detach())]
        apart = torch.cdist(centres, xyz)
        close, index = apart.topk(self.near, dim=-1, largest=False)
        index = torch.where(close > self.radius, index[..., :1], index)
        local = (xyz[rows[..., None], index] - centres[:, :, None]) / self.radius
        x = torch.cat([local, features[rows[..., None], index]], -1).permute(0, 3, 1, 2)
        x = F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))
        return centres, x.amax(-1).transpose(1, 2)


class PointSets(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Grouping(2, 16, 8, 1.2), Grouping(16, 24, 4, 2.0)
        self.fc, self.bn, self.drop, self.out = nn.Linear(24, 20), nn.BatchNorm1d(20), nn.Dropout(0.0), nn.Linear(20, 5)

    def forward(self, xyz, features):
        xyz, features = self.one(xyz, features)
        xyz, features = self.two(xyz, features)
        x = torch.cat([features.amax(1)], -1)
        return self.out(self.drop(F.relu(self.bn(self.fc(x)))))


def points():
    def batch():
        g = generator(242)
        return {"xyz": torch.randn(6, 20, 3, generator=g), "features": torch.randn(6, 20, 2, generator=g), "labels": torch.tensor([0, 4, 1, 1, 3, 2])}
    def loss(m, b):
        return F.cross_entropy(m(b["xyz"], b["features"]), b["labels"])
    def plain_sgd(step, **keys):
        return lambda p: torch.optim.SGD(p, **{"lr": 0.05, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3, "foreach": False, **keys})
    def radius(size):
        def apply(step):
            sharpness(step, size)
        return apply
    def not_back():
        def apply(step):
            plain = step.before_step
            def run(m):
                before = [p.detach().clone() for p in m.parameters()]
                plain(m)
                with torch.no_grad():
                    for p, q in zip(m.parameters(), before):
                        p.add_(0.01 * q.sign())
            step.before_step = run
        return apply
    def once():
        def apply(step):
            step.before_step = lambda m: None
        return apply
    family = of("pointsets", PointSets, batch, loss, [
        ("Grouping@one", "not_local", "(xyz[rows[..., None], index] - centres[:, :, None]) / self.radius",
         "xyz[rows[..., None], index] / self.radius"),
        ("Grouping@two", "radius_missing", "- centres[:, :, None]) / self.radius", "- centres[:, :, None])"),
        ("Grouping@one", "largest", "largest=False", "largest=True"),
        ("Grouping@two", "mean_pool", "x.amax(-1)", "x.mean(-1)"),
        ("Grouping@one", "features_first", "torch.cat([local, features[rows[..., None], index]], -1)",
         "torch.cat([features[rows[..., None], index], local], -1)"),
        ("Grouping@one", "first_points", "xyz[rows, self.farthest(xyz.detach())]", "xyz[:, :self.centres]", r"getitem|\w+"),
        ("Grouping@two", "norms_exchanged", "self.bn2(self.conv2(", "self.bn1(self.conv2("),
        ("Grouping@one", "relu_missing", "F.relu(self.bn1(self.conv1(x)))", "self.bn1(self.conv1(x))"),
        ("Grouping@one", "axes", ".permute(0, 3, 1, 2)", ".permute(0, 3, 2, 1).reshape(len(xyz), -1, self.centres, self.near)"),
        ("", "mean_of_groups", "features.amax(1)", "features.mean(1)"),
        ("", "bn_missing", "F.relu(self.bn(self.fc(x)))", "F.relu(self.fc(x))"),
        ("", "coordinates_not_passed", "xyz, features = self.two(xyz, features)", "xyz, features = self.two(xyz * 0.5, features)"),
    ], [
        ("Grouping*", "max_values", "x.amax(-1)", "x.max(-1)[0]"),
        ("Grouping*", "distance_by_hand", "torch.cdist(centres, xyz)", "(centres[:, :, None] - xyz[:, None]).norm(dim=-1)"),
        ("Grouping", "sorted", "close, index = apart.topk(self.near, dim=-1, largest=False)",
         "close, index = (t[..., :self.near] for t in apart.sort(-1))"),
        ("", "no_cat", "torch.cat([features.amax(1)], -1)", "features.amax(1)"),
    ], void=("by_autograd", "loss_summed", "double", "mixed", "low"), no_forms=("norm_torch", "norm_torch1"))
    return looped(family, sharpness, [
        ("radius_large", "radius 0.5", radius(0.5), anywhere(r"__r?mul__|__r?truediv__|add_") + "|" + PRE),
        ("plain_gradient", "no second pass", once(), anywhere(r"\w+", ANY)),
        ("moves_stay", "weights are not where they were", not_back(), anywhere(r"__r?mul__|sign|add_|sub_") + "|" + in_step()),
        ("nesterov_off", "no Nesterov", plain_sgd(None, nesterov=False), in_step("add|add_|clone")),
        ("dampened", "no momentum", plain_sgd(None, momentum=0.0, nesterov=False), in_step()),
        ("decay_missing", "no decay", plain_sgd(None, weight_decay=0.0), in_step("add")),
        ("rate_tenth", "rate 0.005", plain_sgd(None, lr=0.005), in_step("add_")),
    ])


# ---- pairs of residues: triangles and outer products -------------------------------------------------------

class Triangle(nn.Module):
    def __init__(self, d=12, hidden=8, outgoing=True):
        super().__init__()
        self.norm_in, self.norm_out = nn.LayerNorm(d), nn.LayerNorm(hidden)
        self.left, self.right, self.left_gate, self.right_gate = (nn.Linear(d, hidden) for _ in range(4))
        self.gate, self.out, self.outgoing = nn.Linear(d, d), nn.Linear(hidden, d), outgoing

    def forward(self, z, mask):
        z = self.norm_in(z)
        a = self.left(z) * self.left_gate(z).sigmoid() * mask[..., None]
        b = self.right(z) * self.right_gate(z).sigmoid() * mask[..., None]
        x = torch.einsum("bikc,bjkc->bijc" if self.outgoing else "bkic,bkjc->bijc", a, b)
        return self.gate(z).sigmoid() * self.out(self.norm_out(x))


class RowAttention(nn.Module):
    def __init__(self, d=16, pair=12, heads=2):
        super().__init__()
        self.norm, self.pair_norm, self.heads = nn.LayerNorm(d), nn.LayerNorm(pair), heads
        self.q, self.k, self.v, self.out = (nn.Linear(d, d, bias=False) for _ in range(4))
        self.bias, self.gate = nn.Linear(pair, heads, bias=False), nn.Linear(d, d)

    def forward(self, m, z, mask):
        m = self.norm(m)
        q, k, v = (p(m).unflatten(-1, (self.heads, -1)) for p in (self.q, self.k, self.v))
        s = torch.einsum("bsihc,bsjhc->bshij", q / q.shape[-1] ** 0.5, k)
        s = s + self.bias(self.pair_norm(z)).permute(0, 3, 1, 2)[:, None]
        s = s + (mask[:, None, None, None] - 1) * 1e9
        y = torch.einsum("bshij,bsjhc->bsihc", s.softmax(-1), v).flatten(-2)
        return self.out(y * self.gate(m).sigmoid())


class Fold(nn.Module):
    def __init__(self, d=16, pair=12):
        super().__init__()
        self.embed, self.far = nn.Embedding(22, d), nn.Embedding(9, pair)
        self.rows, self.outgoing, self.incoming = RowAttention(d, pair), Triangle(pair), Triangle(pair, outgoing=False)
        self.outer_norm, self.a, self.b, self.outer = nn.LayerNorm(d), nn.Linear(d, 4), nn.Linear(d, 4), nn.Linear(16, pair)
        self.change = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 40), nn.ReLU(), nn.Linear(40, d))
        self.letters, self.bins = nn.Linear(d, 22), nn.Linear(pair, 10)

    def forward(self, ids, mask):
        m, n = self.embed(ids), ids.shape[-1]
        at = torch.arange(n)
        z = self.far((at[:, None] - at[None]).clamp(-4, 4) + 4).expand(len(ids), -1, -1, -1)
        pairs = mask[:, :, None] * mask[:, None]
        m = m + self.rows(m, z, mask)
        m = m + self.change(m)
        y = self.outer_norm(m)
        both = torch.einsum("bsic,bsjd->bijcd", self.a(y) * mask[:, None, :, None], self.b(y) * mask[:, None, :, None])
        z = z + self.outer(both.flatten(-2) / ids.shape[1])
        z = z + self.outgoing(z, pairs)
        z = z + self.incoming(z, pairs)
        return self.letters(m), self.bins(z + z.transpose(1, 2)), pairs


def fold():
    def batch():
        g = generator(243)
        mask = torch.ones(2, 7)
        mask[1, 5:] = 0
        return {"input_ids": torch.randint(0, 21, (2, 3, 7), generator=g), "mask": mask, "labels": torch.randint(0, 22, (2, 3, 7), generator=g),
                "bins": torch.randint(0, 10, (2, 7, 7), generator=g)}
    def loss(m, b):
        letters, bins, pairs = m(b["input_ids"], b["mask"])
        one = F.cross_entropy(letters.flatten(0, -2), b["labels"].flatten())
        each = F.cross_entropy(bins.permute(0, 3, 1, 2), b["bins"], reduction="none")
        two = (each * pairs).sum((1, 2)) / (pairs.sum((1, 2)) + 1e-6)
        return 2.0 * one + 0.3 * two.mean()
    family = of("fold", Fold, batch, loss, [
        ("Triangle@outgoing", "incoming_edges", "\"bikc,bjkc->bijc\" if", "\"bkic,bkjc->bijc\" if"),
        ("Triangle@incoming", "mask_missing", "self.right_gate(z).sigmoid() * mask[..., None]", "self.right_gate(z).sigmoid()"),
        ("Triangle@outgoing", "gate_missing", "self.gate(z).sigmoid() * self.out(self.norm_out(x))", "self.out(self.norm_out(x))"),
        ("Triangle@incoming", "norm_missing", "self.out(self.norm_out(x))", "self.out(x)"),
        ("Triangle*", "tanh_gates", "self.left_gate(z).sigmoid()", "self.left_gate(z).tanh()"),
        ("RowAttention", "bias_turned", ".permute(0, 3, 1, 2)[:, None]", ".permute(0, 3, 2, 1)[:, None]"),
        ("RowAttention", "bias_missing", "s = s + self.bias(self.pair_norm(z)).permute(0, 3, 1, 2)[:, None]", "pass", "add"),
        ("RowAttention", "bias_not_normed", "self.bias(self.pair_norm(z))", "self.bias(z)"),
        ("RowAttention", "mask_turned", "(mask[:, None, None, None] - 1) * 1e9", "mask[:, None, None, None] * -1e9"),
        ("RowAttention", "gate_before_product", "y * self.gate(m).sigmoid()", "y * self.gate(y).sigmoid()"),
        ("", "outer_not_divided", "both.flatten(-2) / ids.shape[1]", "both.flatten(-2)"),
        ("", "distance_turned", "(at[:, None] - at[None])", "(at[None] - at[:, None])"),
        ("", "distance_cut", ".clamp(-4, 4) + 4", ".clamp(-2, 2) + 4"),
        ("", "not_symmetric", "self.bins(z + z.transpose(1, 2))", "self.bins(z + z)"),
        ("", "update_not_residual", "z = z + self.outgoing(z, pairs)", "z = self.outgoing(z, pairs)"),
        ("loss", "pairs_of_all", "two = (each * pairs).sum((1, 2)) / (pairs.sum((1, 2)) + 1e-6)", "two = each.mean((1, 2))"),
        ("loss", "weight_of_pairs", "0.3 * two.mean()", "3.0 * two.mean()"),
        ("loss", "one_missing", "2.0 * one + ", "one + "),
    ], [
        ("Triangle*", "by_product", "x = torch.einsum(\"bikc,bjkc->bijc\" if self.outgoing else \"bkic,bkjc->bijc\", a, b)",
         "a, b = (t.permute(0, 3, 1, 2) if self.outgoing else t.permute(0, 3, 2, 1) for t in (a, b))\n        x = (a @ b.transpose(2, 3)).permute(0, 2, 3, 1)"),
        ("RowAttention", "mask_filled", "s = s + (mask[:, None, None, None] - 1) * 1e9", "s = s.masked_fill(mask[:, None, None, None] == 0, -1e9)"),
        ("RowAttention", "scaled_after", "s = torch.einsum(\"bsihc,bsjhc->bshij\", q / q.shape[-1] ** 0.5, k)",
         "s = torch.einsum('bsihc,bsjhc->bshij', q, k) * q.shape[-1] ** -0.5"),
        ("", "outer_by_reshape", "both.flatten(-2) / ids.shape[1]", "both.reshape(*both.shape[:3], -1).div(ids.shape[1])"),
        ("loss", "entropy_flat", "F.cross_entropy(bins.permute(0, 3, 1, 2), b[\"bins\"], reduction=\"none\")",
         "F.cross_entropy(bins.flatten(0, 2), b['bins'].flatten(), reduction='none').view_as(b['bins'])"),
    ], void=("by_autograd", "double", "mixed", "low"))
    def undivided():
        def apply(step):
            step.before_backward = lambda m, x: x * 2
        return apply
    return looped(family, lambed, [
        ("no_ratio", "no ratio of norms", lambda p: Lamb(p, ratio=False), in_step(r"norm|__r?truediv__|__r?mul__|sub_")),
        ("decay_none", "no decay", lambda p: Lamb(p, decay=0.0), in_step(r"__r?mul__|__r?add__")),
        ("eps_large", "eps 0.01", lambda p: Lamb(p, eps=1e-2), in_step(r"__r?add__|__r?truediv__")),
        ("betas_adam", "betas of 0.9 and 0.999", lambda p: Lamb(p, betas=(0.8, 0.999)), in_step(r"mul_|add_|addcmul_|__r?truediv__|sqrt")),
        ("parts_summed", "parts not divided", undivided(), r"^[A-Za-z]+\.(?:__r?mul__|__r?truediv__)\.\d+\.\w+ @ $"),
    ])


# ---- sales with their spread ------------------------------------------------------------------------------------

class Sales(nn.Module):
    def __init__(self, shops=8, size=20):
        super().__init__()
        self.shop, self.day = nn.Embedding(shops, 6), nn.Embedding(7, 4)
        self.rnn = nn.LSTM(12, size, num_layers=2, batch_first=True)
        self.mean, self.spread, self.freedom = nn.Linear(size, 1), nn.Linear(size, 1), nn.Linear(size, 1)

    def forward(self, past, shop, day):
        scale = past.abs().mean(1, keepdim=True) + 1.0
        before = F.pad(past / scale, (1, 0))[:, :-1]
        x = torch.cat([before[..., None], torch.log(scale)[:, None].expand(-1, past.shape[1], -1), self.day(day),
            self.shop(shop)[:, None].expand(-1, past.shape[1], -1)], -1)
        h, _ = self.rnn(x)
        mean = self.mean(h).squeeze(-1) * scale
        spread = (F.softplus(self.spread(h)).squeeze(-1) + 1e-3) * scale
        return mean, spread, 2.0 + F.softplus(self.freedom(h)).squeeze(-1)


def student(x, mean, spread, freedom):
    y = (x - mean) / spread
    top = torch.lgamma((freedom + 1) / 2) - torch.lgamma(freedom / 2) - 0.5 * torch.log(math.pi * freedom)
    return -(top - torch.log(spread) - (freedom + 1) / 2 * torch.log1p(y * y / freedom))


def sales():
    def batch():
        g = generator(244)
        seen = torch.ones(6, 14)
        seen[1, :4] = 0
        return {"past": torch.rand(6, 14, generator=g) * torch.tensor([1.0, 5, 9, 20, 3, 7])[:, None], "shop": torch.randint(0, 8, (6,), generator=g),
                "day": (torch.arange(14)[None] + torch.arange(6)[:, None]) % 7, "labels": seen}
    def loss(m, b):
        each = student(b["past"], *m(b["past"], b["shop"], b["day"]))
        return (each * b["labels"]).sum() / b["labels"].sum()
    return of("sales", Sales, batch, loss, [
        ("", "sees_the_answer", "F.pad(past / scale, (1, 0))[:, :-1]", "past / scale"),
        ("", "not_scaled", "past / scale, (1, 0)", "past, (1, 0)"),
        ("", "mean_not_scaled", "self.mean(h).squeeze(-1) * scale", "self.mean(h).squeeze(-1)"),
        ("", "spread_not_scaled", "+ 1e-3) * scale", "+ 1e-3)"),
        ("", "scale_of_sum", "past.abs().mean(1, keepdim=True)", "past.abs().sum(1, keepdim=True)"),
        ("", "scale_from_batch", "past.abs().mean(1, keepdim=True) + 1.0", "past.abs().mean() + torch.ones_like(past[:, :1])"),
        ("", "logarithm_missing", "torch.log(scale)[:, None]", "scale[:, None]"),
        ("", "days_shifted", "self.day(day)", "self.day((day + 1) % 7)"),
        ("", "freedom_from_zero", "2.0 + F.softplus", "0.5 + F.softplus"),
        ("", "exp_spread", "F.softplus(self.spread(h))", "torch.exp(self.spread(h))"),
        ("", "one_layer_missing", "h, _ = self.rnn(x)", "h = self.rnn(x)[1][0][:1].transpose(0, 1).expand(-1, x.shape[1], -1)", r"\w+"),
        ("#student", "spread_missing", "- torch.log(spread) -", "-"),
        ("#student", "half_missing", "0.5 * torch.log(math.pi * freedom)", "torch.log(math.pi * freedom)"),
        ("#student", "gauss", "(freedom + 1) / 2 * torch.log1p(y * y / freedom)", "0.5 * y * y"),
        ("loss", "unseen_counted", "(each * b[\"labels\"]).sum() / b[\"labels\"].sum()", "each.mean()"),
        ("loss", "summed", ".sum() / b[\"labels\"].sum()", ".sum() / 10"),
    ], [
        ("", "rolled", "F.pad(past / scale, (1, 0))[:, :-1]", "torch.cat([torch.zeros_like(scale), (past / scale)[:, :-1]], 1)"),
        ("", "repeated", "self.shop(shop)[:, None].expand(-1, past.shape[1], -1)", "self.shop(shop)[:, None].repeat(1, past.shape[1], 1)"),
        ("#student", "by_distribution", "y = (x - mean) / spread\n",
         "return -torch.distributions.StudentT(freedom, mean, spread).log_prob(x)\n    y = x\n"),
        ("loss", "selected", "(each * b[\"labels\"]).sum() / b[\"labels\"].sum()", "each[b['labels'] > 0].mean()"),
    ], ordered=True, parallel=True, void=("low", "mixed", "labels_logarithm"))


def families():
    return [stages(), points(), fold(), sales()]
