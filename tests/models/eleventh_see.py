# SPDX-License-Identifier: MIT
"""Own families of the eleventh set: pictures, points, functions; see eleventh_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from sixth_families import generator
from tenth_text import of


# ---- two pictures, their points matched by transport --------------------------------------------------------

class Matcher(nn.Module):
    def __init__(self, d=16, heads=2):
        super().__init__()
        self.place = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, d))
        self.q, self.k, self.v, self.merge = (nn.Linear(d, d) for _ in range(4))
        self.fc1, self.fc2, self.final = nn.Linear(2 * d, 2 * d), nn.Linear(2 * d, d), nn.Linear(d, d)
        self.bin, self.heads = nn.Parameter(torch.tensor(1.0)), heads

    def message(self, x, source):
        q, k, v = (p(t).unflatten(-1, (self.heads, -1)).transpose(1, 2) for p, t in ((self.q, x), (self.k, source), (self.v, source)))
        y = torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v
        y = torch.cat([x, self.merge(y.transpose(1, 2).flatten(2))], -1)
        return x + self.fc2(F.relu(self.fc1(y)))

    def transport(self, scores, rounds=4):
        b, m, n = scores.shape
        bins = self.bin.expand(b, 1, 1)
        z = torch.cat([torch.cat([scores, bins.expand(-1, m, -1)], 2), torch.cat([bins.expand(-1, -1, n), bins], 2)], 1)
        norm = -math.log(m + n)
        left = torch.full((b, m + 1), norm, dtype=z.dtype)
        right = torch.full((b, n + 1), norm, dtype=z.dtype)
        left[:, -1], right[:, -1] = norm + math.log(n), norm + math.log(m)
        u, v = torch.zeros_like(left), torch.zeros_like(right)
        for _ in range(rounds):
            u = left - torch.logsumexp(z + v[:, None], 2)
            v = right - torch.logsumexp(z + u[:, :, None], 1)
        return z + u[:, :, None] + v[:, None] - norm

    def forward(self, one, two, at_one, at_two):
        x, y = one + self.place(at_one), two + self.place(at_two)
        x, y = self.message(x, x), self.message(y, y)
        x, y = self.message(x, y), self.message(y, x)
        scores = torch.einsum("bmd,bnd->bmn", self.final(x), self.final(y)) / 16 ** 0.5
        return self.transport(scores)


def matcher():
    def batch():
        g = generator(321)
        return {"one": torch.randn(3, 6, 16, generator=g), "two": torch.randn(3, 7, 16, generator=g), "at_one": torch.rand(3, 6, 3, generator=g),
                "at_two": torch.rand(3, 7, 3, generator=g), "labels": torch.randint(0, 8, (3, 6), generator=g)}
    def loss(m, b):
        z = m(b["one"], b["two"], b["at_one"], b["at_two"])
        return -z[:, :-1].gather(2, b["labels"][..., None]).mean()
    return of("matcher", Matcher, batch, loss, [
        ("", "self_not_crossed", "x, y = self.message(x, y), self.message(y, x)", "x, y = self.message(x, x), self.message(y, y)", r"\w+"),
        ("", "one_side_late", "x, y = self.message(x, y), self.message(y, x)", "x = self.message(x, y)\n        y = self.message(y, x)", r"\w+|@linear"),
        ("", "scale_missing", " / 16 ** 0.5", ""),
        ("", "places_exchanged", "two + self.place(at_two)", "two + self.place(at_one.repeat(1, 2, 1)[:, :7])"),
        ("", "norm_not_removed", "v[:, None] - norm", "v[:, None]"),
        ("", "axis_of_rows", "torch.logsumexp(z + v[:, None], 2)", "torch.logsumexp(z + v[:, None], 1)[:, :1].expand_as(left)"),
        ("", "rounds_fewer", "for _ in range(rounds)", "for _ in range(rounds - 2)", r"logsumexp|add|sub"),
        ("", "bins_equal", "left[:, -1], right[:, -1] = norm + math.log(n), norm + math.log(m)", "pass", r"sub|__rsub__|full"),
        ("", "attention_scale", "q @ k.mT / q.shape[-1] ** 0.5", "q @ k.mT / 16 ** 0.5"),
        ("", "message_replaces", "return x + self.fc2(F.relu(self.fc1(y)))", "return self.fc2(F.relu(self.fc1(y)))"),
        ("", "order_of_parts", "torch.cat([x, self.merge(y.transpose(1, 2).flatten(2))], -1)",
         "torch.cat([self.merge(y.transpose(1, 2).flatten(2)), x], -1)"),
        ("loss", "bins_read", "z[:, :-1].gather", "z[:, 1:].gather"),
    ], [
        ("", "by_softmax", "u = left - torch.logsumexp(z + v[:, None], 2)", "u = left - ((z + v[:, None]).exp().sum(2)).log()"),
        ("", "by_sdpa", "torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v", "F.scaled_dot_product_attention(q, k, v)"),
        ("", "padded", "z = torch.cat([torch.cat([scores, bins.expand(-1, m, -1)], 2), torch.cat([bins.expand(-1, -1, n), bins], 2)], 1)",
         "z = F.pad(scores, (0, 1, 0, 1)) + self.bin * F.pad(torch.zeros_like(scores), (0, 1, 0, 1), value=1.0)"),
        ("loss", "indexed", "z[:, :-1].gather(2, b[\"labels\"][..., None]).mean()",
         "z[torch.arange(3)[:, None], torch.arange(6)[None], b['labels']].mean()"),
    ], pure=True)


# ---- soft experts over slots of patches --------------------------------------------------------------------------

class SoftExperts(nn.Module):
    def __init__(self, d=24, experts=4, slots=2):
        super().__init__()
        self.phi, self.scale = nn.Parameter(torch.zeros(d, experts, slots)), nn.Parameter(torch.tensor(1.0))
        self.w1, self.b1 = nn.Parameter(torch.zeros(experts, d, 40)), nn.Parameter(torch.zeros(experts, 40))
        self.w2, self.b2 = nn.Parameter(torch.zeros(experts, 40, d)), nn.Parameter(torch.zeros(experts, d))

    def forward(self, x):
        phi = self.scale * F.normalize(self.phi, dim=0)
        logits = torch.einsum("bnd,des->bnes", F.normalize(x, dim=-1), phi)
        dispatch = logits.softmax(1)
        combine = logits.flatten(2).softmax(-1).view_as(logits)
        inside = torch.einsum("bnes,bnd->besd", dispatch, x)
        h = F.gelu(torch.einsum("besd,edh->besh", inside, self.w1) + self.b1[:, None])
        out = torch.einsum("besh,ehd->besd", h, self.w2) + self.b2[:, None]
        return torch.einsum("bnes,besd->bnd", combine, out)


class SoftMixture(nn.Module):
    def __init__(self, d=24, heads=3):
        super().__init__()
        self.patch, self.places = nn.Conv2d(3, d, 4, 4), nn.Parameter(torch.zeros(1, 16, d))
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(5))
        self.attend = nn.ModuleList(nn.MultiheadAttention(d, heads, batch_first=True) for _ in range(2))
        self.mix, self.mlp, self.out = SoftExperts(d), nn.Sequential(nn.Linear(d, 48), nn.GELU(), nn.Linear(48, d)), nn.Linear(d, 7)

    def forward(self, pictures):
        x = self.patch(pictures).flatten(2).transpose(1, 2) + self.places
        y = self.norms[0](x)
        x = x + self.attend[0](y, y, y)[0]
        x = x + self.mlp(self.norms[1](x))
        y = self.norms[2](x)
        x = x + self.attend[1](y, y, y, need_weights=False)[0]
        x = x + self.mix(self.norms[3](x))
        return self.out(self.norms[4](x).mean(1))


def soft_mixture():
    def batch():
        g = generator(322)
        return {"pixel_values": torch.randn(5, 3, 16, 16, generator=g), "labels": torch.randint(0, 7, (5,), generator=g)}
    def loss(m, b):
        return F.cross_entropy(m(b["pixel_values"]), b["labels"], label_smoothing=0.1)
    return of("softmoe", SoftMixture, batch, loss, [
        ("SoftExperts", "dispatch_over_slots", "logits.softmax(1)", "logits.softmax(-1)"),
        ("SoftExperts", "combine_is_dispatch", "\"bnes,besd->bnd\", combine, out", "\"bnes,besd->bnd\", dispatch, out"),
        ("SoftExperts", "combine_per_expert", "logits.flatten(2).softmax(-1).view_as(logits)", "logits.softmax(2)"),
        ("SoftExperts", "phi_not_unit", "self.scale * F.normalize(self.phi, dim=0)", "self.scale * self.phi"),
        ("SoftExperts", "phi_axis", "F.normalize(self.phi, dim=0)", "F.normalize(self.phi, dim=1)"),
        ("SoftExperts", "x_not_unit", "F.normalize(x, dim=-1)", "x"),
        ("SoftExperts", "scale_missing", "self.scale * F.normalize", "F.normalize"),
        ("SoftExperts", "bias_missing", " + self.b1[:, None]", ""),
        ("SoftExperts", "experts_read_wrong_weights", "\"besh,ehd->besd\", h, self.w2", "\"besh,ehd->besd\", h, self.w2.flip(0)"),
        ("", "first_patch", "self.norms[4](x).mean(1)", "self.norms[4](x)[:, 0]"),
        ("", "norm_before_sum", "x = x + self.mix(self.norms[3](x))", "x = self.norms[3](x) + self.mix(self.norms[3](x))", "layer_norm"),
        ("", "patches_by_columns", ".flatten(2).transpose(1, 2) + self.places", ".transpose(2, 3).flatten(2).transpose(1, 2) + self.places"),
        ("loss", "less_smooth", "label_smoothing=0.1", "label_smoothing=0.0"),
    ], [
        ("SoftExperts", "products", "torch.einsum(\"besd,edh->besh\", inside, self.w1)", "inside @ self.w1"),
        ("SoftExperts", "dispatched_by_product", "torch.einsum(\"bnes,bnd->besd\", dispatch, x)",
         "(dispatch.flatten(2).mT @ x).view(len(x), *self.phi.shape[1:], -1)"),
        ("", "attended_otherwise", "self.attend[0](y, y, y)[0]", "self.attend[0](y, y, y, need_weights=False)[0]"),
        ("", "mean_by_pool", "self.norms[4](x).mean(1)", "F.adaptive_avg_pool1d(self.norms[4](x).mT, 1).squeeze(-1)"),
    ], vision=True, ordered=True, parts=5, parallel=True)


# ---- optical flow by looking up correlations, again and again ----------------------------------------------------

class Flow(nn.Module):
    def __init__(self, d=10):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, d, 3, 2, 1), nn.InstanceNorm2d(d), nn.ReLU(), nn.Conv2d(d, d, 3, padding=1))
        self.context, self.motion = nn.Conv2d(3, 2 * d, 3, 2, 1), nn.Conv2d(9 + 2, d, 3, padding=1)
        self.update, self.reset, self.change = (nn.Conv2d(3 * d, d, 3, padding=1) for _ in range(3))
        self.head = nn.Sequential(nn.Conv2d(d, d, 3, padding=1), nn.ReLU(), nn.Conv2d(d, 2, 3, padding=1))

    def grid(self, b, h, w, dtype):
        y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        return torch.stack([x, y]).to(dtype).expand(b, -1, -1, -1)

    def look(self, volume, at):
        b, _, h, w = at.shape
        step = torch.arange(-1, 2).to(at.dtype)
        near = torch.stack(torch.meshgrid(step, step, indexing="ij"), -1).flip(-1)
        where = at.permute(0, 2, 3, 1).reshape(-1, 1, 1, 2) + near
        where = 2 * where / torch.tensor([w - 1, h - 1]).to(at.dtype) - 1
        return F.grid_sample(volume, where, align_corners=True).view(b, h, w, 9).permute(0, 3, 1, 2)

    def forward(self, one, two):
        a, c = self.features(one), self.features(two)
        b, d, h, w = a.shape
        volume = torch.einsum("bdij,bdkl->bijkl", a, c).reshape(b * h * w, 1, h, w) / d ** 0.5
        hidden, context = self.context(one).chunk(2, 1)
        hidden, context = torch.tanh(hidden), torch.relu(context)
        start = self.grid(b, h, w, a.dtype)
        at, flows = start, []
        for _ in range(3):
            at = at.detach()
            m = F.relu(self.motion(torch.cat([self.look(volume, at), at - start], 1)))
            x = torch.cat([hidden, context, m], 1)
            z, r = torch.sigmoid(self.update(x)), torch.sigmoid(self.reset(x))
            new = torch.tanh(self.change(torch.cat([r * hidden, context, m], 1)))
            hidden = (1 - z) * hidden + z * new
            at = at + self.head(hidden)
            flows.append(2 * F.interpolate(at - start, scale_factor=2, mode="bilinear", align_corners=True))
        return flows


def flow():
    def batch():
        g = generator(323)
        x = torch.rand(3, 3, 12, 12, generator=g)
        return {"pixel_values": x, "second": x.roll(1, -1) + 0.05 * torch.randn(3, 3, 12, 12, generator=g),
            "labels": torch.randn(3, 2, 12, 12, generator=g)}
    def loss(m, b):
        flows = m(b["pixel_values"], b["second"])
        return sum(0.8 ** (len(flows) - 1 - i) * (f - b["labels"]).abs().mean() for i, f in enumerate(flows))
    return of("raft", Flow, batch, loss, [
        ("", "volume_unscaled", " / d ** 0.5", ""),
        ("", "volume_of_one", "torch.einsum(\"bdij,bdkl->bijkl\", a, c)", "torch.einsum(\"bdij,bdkl->bijkl\", a, a)"),
        ("", "corners", "F.grid_sample(volume, where, align_corners=True)", "F.grid_sample(volume, where, align_corners=False)"),
        ("", "axes_of_steps", "indexing=\"ij\"), -1).flip(-1)", "indexing=\"ij\"), -1)", r"add|__add__"),
        ("", "sizes_not_less_one", "torch.tensor([w - 1, h - 1])", "torch.tensor([w, h])"),
        ("", "flow_not_detached", "at = at.detach()", "pass", r"\w+", "back"),
        ("", "positions_for_flow", "self.look(volume, at), at - start]", "self.look(volume, at), at]"),
        ("", "update_turned", "(1 - z) * hidden + z * new", "z * hidden + (1 - z) * new"),
        ("", "reset_missing", "torch.cat([r * hidden, context, m], 1)", "torch.cat([hidden, context, m], 1)"),
        ("", "context_not_relu", "torch.tanh(hidden), torch.relu(context)", "torch.tanh(hidden), torch.tanh(context)"),
        ("", "flow_not_doubled", "flows.append(2 * F", "flows.append(F"),
        ("", "nearest", "mode=\"bilinear\", align_corners=True))", "mode=\"nearest\"))"),
        ("loss", "weights_in_reverse", "0.8 ** (len(flows) - 1 - i)", "0.8 ** i"),
        ("loss", "squares", "(f - b[\"labels\"]).abs().mean()", "(f - b[\"labels\"]).square().mean()"),
        ("loss", "last_alone", "enumerate(flows))", "enumerate(flows[-1:]))"),
    ], [
        ("", "lerp", "(1 - z) * hidden + z * new", "torch.lerp(hidden, new, z)"),
        ("", "bmm", "torch.einsum(\"bdij,bdkl->bijkl\", a, c).reshape(b * h * w, 1, h, w)",
         "torch.bmm(a.flatten(2).mT, c.flatten(2)).reshape(b * h * w, 1, h, w)"),
        ("", "gates_joined", "z, r = torch.sigmoid(self.update(x)), torch.sigmoid(self.reset(x))",
         "z, r = torch.sigmoid(F.conv2d(x, torch.cat([self.update.weight, self.reset.weight]), torch.cat([self.update.bias, self.reset.bias]), padding=1)).chunk(2, 1)"),
        ("loss", "stacked", "sum(0.8 ** (len(flows) - 1 - i) * (f - b[\"labels\"]).abs().mean() for i, f in enumerate(flows))",
         "((torch.stack(flows) - b['labels']).abs().flatten(1).mean(1) * torch.tensor([0.64, 0.8, 1.0])).sum()"),
    ], vision=True, ordered=True, parts=3, parallel=True)


# ---- points that may be turned -----------------------------------------------------------------------------------

class Equivariant(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.edge = nn.Sequential(nn.Linear(2 * d + 2, 24), nn.SiLU(), nn.Linear(24, d), nn.SiLU())
        self.look, self.move = nn.Linear(d, 1), nn.Sequential(nn.Linear(d, 16), nn.SiLU(), nn.Linear(16, 1, bias=False))
        self.node, self.speed = nn.Sequential(nn.Linear(2 * d, 24), nn.SiLU(), nn.Linear(24, d)), nn.Linear(d, 1)

    def forward(self, h, x, v, source, to, kind):
        apart = x[to] - x[source]
        square = apart.pow(2).sum(-1, keepdim=True)
        m = self.edge(torch.cat([h[to], h[source], square, kind], -1))
        m = m * torch.sigmoid(self.look(m))
        push = apart / (square.sqrt() + 1.0) * self.move(m)
        count = torch.zeros_like(x[:, :1]).index_add(0, to, torch.ones_like(square)).clamp(min=1)
        v = self.speed(h) * v + torch.zeros_like(x).index_add(0, to, push) / count
        got = torch.zeros_like(h).scatter_add(0, to[:, None].expand_as(m), m)
        return h + self.node(torch.cat([h, got], -1)), x + v, v


class Bodies(nn.Module):
    def __init__(self, d=16):
        super().__init__()
        self.enter, self.layers = nn.Linear(1, d), nn.ModuleList(Equivariant(d) for _ in range(2))

    def forward(self, x, v, charge):
        b, n, _ = x.shape
        source, to = (~torch.eye(n, dtype=torch.bool)).nonzero().t()
        shift = torch.arange(b).repeat_interleave(len(to)) * n
        source, to = source.repeat(b) + shift, to.repeat(b) + shift
        charge = charge.reshape(-1, 1)
        kind = charge[source] * charge[to]
        h, x, v = self.enter(v.flatten(0, 1).norm(dim=-1, keepdim=True)), x.flatten(0, 1), v.flatten(0, 1)
        for layer in self.layers:
            h, x, v = layer(h, x, v, source, to, kind)
        return x.view(b, n, 3)


def bodies():
    def batch():
        g = generator(324)
        return {"x": torch.randn(4, 5, 3, generator=g), "v": 0.5 * torch.randn(4, 5, 3, generator=g),
            "charge": torch.randint(0, 2, (4, 5), generator=g) * 2.0 - 1,
                "labels": torch.randn(4, 5, 3, generator=g)}
    def loss(m, b):
        return F.mse_loss(m(b["x"], b["v"], b["charge"]), b["labels"])
    return of("egnn", Bodies, batch, loss, [
        ("Equivariant", "square_rooted", "apart.pow(2).sum(-1, keepdim=True)", "apart.norm(dim=-1, keepdim=True)"),
        ("Equivariant", "direction_turned", "apart = x[to] - x[source]", "apart = x[source] - x[to]"),
        ("Equivariant", "ends_exchanged", "torch.cat([h[to], h[source], square, kind], -1)", "torch.cat([h[source], h[to], square, kind], -1)"),
        ("Equivariant", "not_weighed", "m = m * torch.sigmoid(self.look(m))", "pass"),
        ("Equivariant", "not_normed", "apart / (square.sqrt() + 1.0) * self.move(m)", "apart * self.move(m)"),
        ("Equivariant", "root_missing", "(square.sqrt() + 1.0)", "(square + 1.0)"),
        ("Equivariant", "summed", "index_add(0, to, push) / count", "index_add(0, to, push)"),
        ("Equivariant", "added_at_source", "torch.zeros_like(x).index_add(0, to, push)", "torch.zeros_like(x).index_add(0, source, push)"),
        ("Equivariant", "speed_lost", "self.speed(h) * v + ", ""),
        ("Equivariant@layers.0", "node_not_residual", "return h + self.node(", "return self.node("),
        ("", "kind_summed", "charge[source] * charge[to]", "charge[source] + charge[to]"),
        ("", "speed_squared", ".norm(dim=-1, keepdim=True))", ".pow(2).sum(-1, keepdim=True))"),
        ("", "own_edges", "(~torch.eye(n, dtype=torch.bool))", "torch.ones(n, n, dtype=torch.bool)", r"\w+"),
    ], [
        ("Equivariant", "by_scatter", "torch.zeros_like(x).index_add(0, to, push)",
         "torch.zeros_like(x).scatter_add(0, to[:, None].expand(-1, 3), push)"),
        ("Equivariant*", "gathered", "apart = x[to] - x[source]", "apart = x.index_select(0, to) - x.index_select(0, source)"),
        ("Equivariant", "mean_otherwise", "torch.zeros_like(x).index_add(0, to, push) / count",
         "torch.zeros_like(x).index_add(0, to, push / count[to])"),
    ], ordered=True, parts=2, parallel=True)


# ---- lines of letters read with CTC ------------------------------------------------------------------------------

class Letters(nn.Module):
    def __init__(self, letters=9, size=16):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 12, 3, padding=1)
        self.bn, self.rnn = nn.BatchNorm2d(12), nn.GRU(12 * 2, size, bidirectional=True)
        self.out = nn.Linear(2 * size, letters)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.bn(self.conv2(x))), (2, 1))
        x = x.permute(3, 0, 1, 2).flatten(2)
        h, _ = self.rnn(x)
        return self.out(h).log_softmax(-1)


def letters():
    def batch():
        g = generator(325)
        return {"pixel_values": torch.rand(4, 1, 8, 24, generator=g), "labels": torch.randint(1, 9, (4, 5), generator=g),
            "lengths": torch.tensor([5, 3, 4, 5])}
    def loss(m, b):
        logs = m(b["pixel_values"])
        full = torch.full((logs.shape[1],), logs.shape[0])
        return F.ctc_loss(logs, b["labels"], full, b["lengths"], blank=0, zero_infinity=True)
    return of("ocr", Letters, batch, loss, [
        ("", "average_pool", "F.max_pool2d(F.relu(self.conv1(x)), 2)", "F.avg_pool2d(F.relu(self.conv1(x)), 2)"),
        ("", "norm_behind", "F.relu(self.bn(self.conv2(x)))", "self.bn(F.relu(self.conv2(x)))"),
        ("", "columns_mixed", "x.permute(3, 0, 1, 2).flatten(2)", "x.permute(3, 0, 2, 1).flatten(2)"),
        ("", "batch_for_time", "x.permute(3, 0, 1, 2).flatten(2)", "x.permute(0, 3, 1, 2).flatten(2).reshape(x.shape[3], x.shape[0], -1)"),
        ("", "no_logarithm", ".log_softmax(-1)", ".softmax(-1)"),
        ("", "softmax_over_time", ".log_softmax(-1)", ".log_softmax(0)"),
        ("", "one_direction", "self.out(h)", "self.out(torch.cat([h[..., :16], h[..., :16]], -1))"),
        ("loss", "blank_last", "blank=0", "blank=8"),
        ("loss", "lengths_full", "b[\"lengths\"], blank", "torch.full_like(b[\"lengths\"], 5), blank"),
        ("loss", "time_shorter", "logs.shape[0])", "logs.shape[0] - 2)"),
        ("loss", "summed", "zero_infinity=True)", "zero_infinity=True, reduction=\"sum\")"),
    ], [
        ("", "relu_after_pool", "F.max_pool2d(F.relu(self.conv1(x)), 2)", "F.relu(F.max_pool2d(self.conv1(x), 2))"),
        ("", "pooled_by_shape", "F.max_pool2d(F.relu(self.conv1(x)), 2)",
         "F.relu(self.conv1(x)).unflatten(3, (-1, 2)).amax(4).unflatten(2, (-1, 2)).amax(3)"),
        ("", "logs_by_sum", "return self.out(h).log_softmax(-1)", "s = self.out(h)\n        return s - s.logsumexp(-1, keepdim=True)"),
        ("loss", "labels_flat", "F.ctc_loss(logs, b[\"labels\"], full",
         "F.ctc_loss(logs, torch.cat([y[:n] for y, n in zip(b['labels'], b['lengths'])]), full"),
    ], vision=True)


# ---- functions from few examples -----------------------------------------------------------------------------------

class Process(nn.Module):
    def __init__(self, d=20):
        super().__init__()
        self.each, self.latent = nn.Sequential(nn.Linear(2, d), nn.ReLU(), nn.Linear(d, d)), nn.Sequential(nn.Linear(2, d), nn.ReLU(),
            nn.Linear(d, d))
        self.mean, self.spread, self.q, self.k = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(1, d), nn.Linear(1, d)
        self.decode = nn.Sequential(nn.Linear(2 * d + 1, d), nn.ReLU(), nn.Linear(d, 2))

    def belief(self, x, y):
        r = self.latent(torch.cat([x, y], -1)).mean(1)
        return self.mean(r), 0.1 + 0.9 * torch.sigmoid(self.spread(r))

    def forward(self, x, y, noise, known=4):
        cx, cy = x[:, :known], y[:, :known]
        prior, post = self.belief(cx, cy), self.belief(x, y)
        z = post[0] + post[1] * noise
        q, k = torch.tanh(self.q(x)), torch.tanh(self.k(cx))
        share = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, -1)
        r = share @ self.each(torch.cat([cx, cy], -1))
        mean, raw = self.decode(torch.cat([r, z[:, None].expand_as(r), x], -1)).chunk(2, -1)
        std = 0.1 + 0.9 * F.softplus(raw)
        fit = (-0.5 * ((y - mean) / std) ** 2 - std.log() - 0.5 * math.log(2 * math.pi)).sum(-1).mean()
        kl = (torch.log(prior[1] / post[1]) + (post[1] ** 2 + (post[0] - prior[0]) ** 2) / (2 * prior[1] ** 2) - 0.5).sum(-1).mean()
        return kl / x.shape[1] - fit


def process():
    def batch():
        g = generator(326)
        x = torch.rand(5, 9, 1, generator=g) * 4 - 2
        return {"x": x, "labels": torch.sin(2 * x) + 0.1 * torch.randn(5, 9, 1, generator=g), "noise": torch.randn(5, 20, generator=g)}
    def loss(m, b):
        return m(b["x"], b["labels"], b["noise"])
    return of("process", Process, batch, loss, [
        ("", "max_for_mean", "torch.cat([x, y], -1)).mean(1)", "torch.cat([x, y], -1)).amax(1)"),
        ("", "drawn_from_prior", "z = post[0] + post[1] * noise", "z = prior[0] + prior[1] * noise"),
        ("", "variance_for_deviation", "post[1] * noise", "post[1] ** 2 * noise"),
        ("", "spread_unbounded", "0.1 + 0.9 * torch.sigmoid(self.spread(r))", "torch.exp(self.spread(r))"),
        ("", "all_known", "share @ self.each(torch.cat([cx, cy], -1))", "share @ self.each(torch.cat([cx, cy * 0], -1))"),
        ("", "softmax_axis", "q.shape[-1] ** 0.5, -1)", "q.shape[-1] ** 0.5, 1)"),
        ("", "scale_missing", "q @ k.transpose(1, 2) / q.shape[-1] ** 0.5", "q @ k.transpose(1, 2)"),
        ("", "kl_turned", "torch.log(prior[1] / post[1])", "torch.log(post[1] / prior[1])"),
        ("", "kl_variance", "/ (2 * prior[1] ** 2)", "/ (2 * post[1] ** 2)"),
        ("", "kl_not_divided", "kl / x.shape[1] - fit", "kl - fit"),
        ("", "logarithm_missing", " - std.log() - 0.5 * math", " - 0.5 * math"),
        ("", "order_of_parts", "torch.cat([r, z[:, None].expand_as(r), x], -1)", "torch.cat([z[:, None].expand_as(r), r, x], -1)"),
        ("", "floor_missing", "std = 0.1 + 0.9 * F.softplus(raw)", "std = F.softplus(raw)"),
    ], [
        ("", "by_distributions", "kl = (torch.log(prior[1] / post[1]) + (post[1] ** 2 + (post[0] - prior[0]) ** 2) / (2 * prior[1] ** 2) - 0.5).sum(-1).mean()",
         "kl = torch.distributions.kl_divergence(torch.distributions.Normal(*post), torch.distributions.Normal(*prior)).sum(-1).mean()"),
        ("", "fit_by_nll", "(-0.5 * ((y - mean) / std) ** 2 - std.log() - 0.5 * math.log(2 * math.pi)).sum(-1).mean()",
         "-F.gaussian_nll_loss(mean, y, std ** 2, full=True)"),
        ("", "by_sdpa", "r = share @ self.each(torch.cat([cx, cy], -1))",
         "r = F.scaled_dot_product_attention(q, k, self.each(torch.cat([cx, cy], -1)))"),
    ], ordered=True, parts=5, parallel=True, void=("slope_of_row",))


def families():
    return [matcher(), soft_mixture(), flow(), bodies(), letters(), process()]
