# SPDX-License-Identifier: MIT
"""Own families of the tenth set that see, hear or act; see tenth_families.py."""
import math

import torch
from torch import nn
import torch.nn.functional as F

from sixth_families import generator
from tenth_text import of


# ---- soft actor and two critics -------------------------------------------------------------------------

def mlp(*sizes):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class SoftActor(nn.Module):
    def __init__(self, seen=7, acts=3, size=32):
        super().__init__()
        self.actor, self.critics = mlp(seen, size, size, 2 * acts), nn.ModuleList(mlp(seen + acts, size, size, 1) for _ in range(2))
        self.old = nn.ModuleList(mlp(seen + acts, size, size, 1) for _ in range(2))
        for p in self.old.parameters():
            p.requires_grad_(False)
        self.log_alpha = nn.Parameter(torch.tensor(-1.0))

    def sample(self, seen, noise):
        mean, log_std = self.actor(seen).chunk(2, -1)
        log_std = log_std.clamp(-5, 2)
        raw = mean + log_std.exp() * noise
        act = torch.tanh(raw)
        log = -0.5 * noise.pow(2) - log_std - 0.5 * math.log(2 * math.pi)
        log = log - 2 * (math.log(2) - raw - F.softplus(-2 * raw))
        return act, log.sum(-1)

    def value(self, critics, seen, act):
        both = torch.cat([seen, act], -1)
        return [c(both).squeeze(-1) for c in critics]

    def critic_loss(self, b):
        with torch.no_grad():
            act, log = self.sample(b["after"], b["noise"][:, 0])
            least = torch.min(*self.value(self.old, b["after"], act)) - self.log_alpha.exp() * log
            target = b["labels"] + 0.99 * (1 - b["ended"]) * least
        one, two = self.value(self.critics, b["seen"], b["acts"])
        return 0.5 * F.mse_loss(one, target) + 0.5 * F.mse_loss(two, target)

    def actor_loss(self, b):
        act, log = self.sample(b["seen"], b["noise"][:, 1])
        for p in self.critics.parameters():
            p.requires_grad_(False)
        least = torch.min(*self.value(self.critics, b["seen"], act))
        for p in self.critics.parameters():
            p.requires_grad_(True)
        wanted = -(self.log_alpha * (log.detach() - 3.0)).mean()
        return (self.log_alpha.exp().detach() * log - least).mean() + wanted


def soft_actor():
    def batch():
        g = generator(211)
        return {"seen": torch.randn(8, 7, generator=g), "after": torch.randn(8, 7, generator=g), "acts": torch.rand(8, 3, generator=g) * 2 - 1,
                "labels": torch.randn(8, generator=g), "ended": (torch.rand(8, generator=g) < 0.3).float(), "noise": torch.randn(8, 2, 3,
                    generator=g)}
    def loss(m, b):
        return m.critic_loss(b) + m.actor_loss(b)
    return of("sac", SoftActor, batch, loss, [
        ("", "mean_of_critics", "torch.min(*self.value(self.old, b[\"after\"], act))", "sum(self.value(self.old, b[\"after\"], act)) / 2"),
        ("", "largest_critic", "torch.min(*self.value(self.critics, b[\"seen\"], act))", "torch.max(*self.value(self.critics, b[\"seen\"], act))"),
        ("", "entropy_missing", " - self.log_alpha.exp() * log\n", "\n"),
        ("", "alpha_not_raised", "least = torch.min(*self.value(self.old, b[\"after\"], act)) - self.log_alpha.exp() * log",
         "least = torch.min(*self.value(self.old, b[\"after\"], act)) - self.log_alpha * log"),
        ("", "ended_ignored", "0.99 * (1 - b[\"ended\"]) * least", "0.99 * least"),
        ("", "ended_turned", "(1 - b[\"ended\"])", "b[\"ended\"]"),
        ("", "critics_not_old", "self.value(self.old, b[\"after\"]", "self.value(self.critics, b[\"after\"]", r"\w+|@linear", ""),
        ("", "squash_not_counted", "log = log - 2 * (math.log(2) - raw - F.softplus(-2 * raw))", "pass", "sum"),
        ("", "squash_sign", "log = log - 2 *", "log = log + 2 *"),
        ("", "noise_unscaled", "mean + log_std.exp() * noise", "mean + noise"),
        ("", "deviation_by_softplus", "mean + log_std.exp() * noise", "mean + F.softplus(log_std) * noise"),
        ("", "halves_exchanged", "mean, log_std = self.actor(seen)", "log_std, mean = self.actor(seen)", "clamp|exp|mul|add"),
        ("", "mean_over_acts", "return act, log.sum(-1)", "return act, log.mean(-1)"),
        ("", "alpha_learns", "self.log_alpha.exp().detach() * log", "self.log_alpha.exp() * log", "exp|mul", "back"),
        ("", "target_entropy", "(log.detach() - 3.0)", "(log.detach() + 3.0)"),
        ("", "one_critic_half", "0.5 * F.mse_loss(one, target) + 0.5 * F.mse_loss(two, target)",
         "0.5 * F.mse_loss(one, target) + F.mse_loss(one, target) * 0.5"),
    ], [
        ("", "stacked_min", "least = torch.min(*self.value(self.critics, b[\"seen\"], act))",
         "least = torch.stack(self.value(self.critics, b[\"seen\"], act)).amin(0)"),
        ("", "distribution", "log = -0.5 * noise.pow(2) - log_std - 0.5 * math.log(2 * math.pi)",
         "log = torch.distributions.Normal(mean, log_std.exp()).log_prob(raw)"),
        ("", "squared_by_hand", "0.5 * F.mse_loss(one, target) + 0.5 * F.mse_loss(two, target)",
         "0.5 * ((one - target).square() + (two - target).square()).mean()"),
        ("", "logarithm_of_cosh", "2 * (math.log(2) - raw - F.softplus(-2 * raw))", "torch.log(1.0 / torch.cosh(raw) ** 2)"),
    ], ordered=True, parts=2, no_forms=())


# ---- a model of the world: states drawn, believed and imagined ----------------------------------------------

class World(nn.Module):
    def __init__(self, seen=10, acts=3, size=24, groups=4, kinds=5):
        super().__init__()
        self.shape = (groups, kinds)
        self.encode, self.decode = nn.Sequential(nn.Linear(seen, size), nn.SiLU()), nn.Linear(size + groups * kinds, seen)
        self.enter, self.cell = nn.Linear(groups * kinds + acts, size), nn.GRUCell(size, size)
        self.prior, self.post = nn.Linear(size, groups * kinds), nn.Linear(2 * size, groups * kinds)
        self.reward, self.size = nn.Linear(size + groups * kinds, 1), size

    def draw(self, logits, chance):
        p = 0.99 * logits.softmax(-1) + 0.01 / self.shape[1]
        at = (p.cumsum(-1) < chance[..., None]).sum(-1).clamp(max=self.shape[1] - 1)
        hard = F.one_hot(at, self.shape[1]).to(p.dtype)
        return hard + p - p.detach(), p

    def distance(self, left, right):
        return (left * (left.log() - right.log())).sum(-1).sum(-1)

    def forward(self, seen, acts, begins, chance):
        h = seen.new_zeros(len(seen), self.size)
        z = seen.new_zeros(len(seen), self.shape[0] * self.shape[1])
        features, gaps = [], []
        for t in range(seen.shape[1]):
            live = (1 - begins[:, t])[:, None]
            h, z, a = h * live, z * live, acts[:, t] * live
            h = self.cell(F.silu(self.enter(torch.cat([z, a], -1))), h)
            _, prior = self.draw(self.prior(h).view(-1, *self.shape), chance[:, t])
            drawn, post = self.draw(self.post(torch.cat([h, self.encode(seen[:, t])], -1)).view(-1, *self.shape), chance[:, t])
            z = drawn.flatten(1)
            features.append(torch.cat([h, z], -1))
            learn, hold = self.distance(post.detach(), prior), self.distance(post, prior.detach())
            gaps.append(0.5 * learn.clamp(min=0.1) + 0.1 * hold.clamp(min=0.1))
        return torch.stack(features, 1), torch.stack(gaps, 1)


def symlog(x):
    return x.sign() * torch.log1p(x.abs())


def world():
    def batch():
        g = generator(212)
        begins = torch.zeros(5, 6)
        begins[:, 0] = begins[2, 3] = 1
        return {"seen": torch.randn(5, 6, 10, generator=g), "acts": torch.randn(5, 6, 3, generator=g), "begins": begins,
                "chance": torch.rand(5, 6, 4, generator=g), "labels": torch.randn(5, 6, generator=g) * 4}
    def loss(m, b):
        features, gaps = m(b["seen"], b["acts"], b["begins"], b["chance"])
        image = 0.5 * (m.decode(features) - symlog(b["seen"])).pow(2).sum(-1)
        reward = 0.5 * (m.reward(features).squeeze(-1) - symlog(b["labels"])).pow(2)
        return (image + reward + gaps).mean()
    return of("world", World, batch, loss, [
        ("", "no_reset", "h, z, a = h * live, z * live, acts[:, t] * live", "a = acts[:, t]"),
        ("", "not_straight_through", "return hard + p - p.detach(), p", "return hard + 0 * p, p", "", "back"),
        ("", "soft_state", "return hard + p - p.detach(), p", "return p, p"),
        ("", "no_mixture", "0.99 * logits.softmax(-1) + 0.01 / self.shape[1]", "logits.softmax(-1)"),
        ("", "prior_not_learned", "self.distance(post.detach(), prior), self", "self.distance(post, prior.detach()), self", "", "back"),
        ("", "free_bits_one", "0.5 * learn.clamp(min=0.1)", "0.5 * learn.clamp(min=1.0)"),
        ("", "weights_equal", "+ 0.1 * hold", "+ 0.5 * hold"),
        ("", "distance_turned", "left * (left.log() - right.log())", "right * (right.log() - left.log())"),
        ("", "parts_of_input", "torch.cat([z, a], -1)", "torch.cat([a, z], -1)"),
        ("", "act_of_next", "acts[:, t] * live", "acts[:, min(t + 1, acts.shape[1] - 1)] * live"),
        ("", "silu_missing", "self.cell(F.silu(self.enter(torch.cat([z, a], -1))), h)", "self.cell(self.enter(torch.cat([z, a], -1)), h)"),
        ("", "sees_prior", "z = drawn.flatten(1)", "z = prior.flatten(1)", "draw|cat"),
        ("", "softmax_over_groups", "logits.softmax(-1)", "logits.softmax(-2)"),
        ("loss", "not_squeezed_by_log", "symlog(b[\"labels\"])", "b[\"labels\"]", "sign|log1p|abs|__mul__"),
        ("loss", "image_mean", ".pow(2).sum(-1)", ".pow(2).mean(-1)"),
        ("loss", "reward_not_halved", "reward = 0.5 * (m", "reward = (m"),
    ], [
        ("", "lerp", "0.99 * logits.softmax(-1) + 0.01 / self.shape[1]",
         "torch.lerp(logits.softmax(-1), torch.full_like(logits, 1 / self.shape[1]), 0.01)"),
        ("", "straight_otherwise", "hard + p - p.detach(), p", "p + (hard - p).detach(), p"),
        ("", "relative_entropy", "(left * (left.log() - right.log())).sum(-1).sum(-1)",
         "F.kl_div(right.log(), left, reduction='none').sum((-1, -2))"),
        ("", "reset_by_where", "h, z, a = h * live, z * live, acts[:, t] * live",
         "h, z, a = (torch.where(live > 0, y, torch.zeros_like(y)) for y in (h, z, acts[:, t]))"),
        ("loss", "mse", "0.5 * (m.reward(features).squeeze(-1) - symlog(b[\"labels\"])).pow(2)",
         "0.5 * F.mse_loss(m.reward(features)[..., 0], symlog(b[\"labels\"]), reduction='none')"),
    ], ordered=True, parallel=True, void=("mixed", "low"))


# ---- heat in a rod: a network that must obey an equation -------------------------------------------------------

class Heat(nn.Module):
    def __init__(self, size=24):
        super().__init__()
        self.lines = nn.ModuleList([nn.Linear(4, size), nn.Linear(size, size), nn.Linear(size, size)])
        self.out, self.flow = nn.Linear(size, 1), nn.Parameter(torch.tensor(0.3))

    def u(self, x, t):
        h = torch.cat([torch.sin(math.pi * x), torch.cos(math.pi * x), x, t], 1)
        for line in self.lines:
            h = torch.tanh(line(h))
        return self.out(h)

    def residual(self, x, t):
        x, t = x.clone().requires_grad_(), t.clone().requires_grad_()
        u = self.u(x, t)
        ones = torch.ones_like(u)
        u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)
        u_xx = torch.autograd.grad(u_x, x, ones, create_graph=True)[0]
        return u_t - self.flow * u_xx

    def forward(self, b):
        inside = self.residual(b["x"], b["t"]).square().mean()
        begin = (self.u(b["x"], torch.zeros_like(b["t"])) - torch.sin(math.pi * b["x"])).square().mean()
        edge = self.u(torch.ones_like(b["x"]), b["t"]).square().mean() + self.u(torch.zeros_like(b["x"]), b["t"]).square().mean()
        seen = (self.u(b["x"], b["t"]) - b["labels"]).square().mean()
        return inside + 10.0 * begin + edge + 5.0 * seen


def heat():
    def batch():
        g = generator(213)
        x, t = torch.rand(12, 1, generator=g), torch.rand(12, 1, generator=g)
        return {"x": x, "t": t, "labels": torch.exp(-0.3 * math.pi ** 2 * t) * torch.sin(math.pi * x)}
    def loss(m, b):
        return m(b)
    return of("heat", Heat, batch, loss, [
        ("", "sign_of_flow", "u_t - self.flow * u_xx", "u_t + self.flow * u_xx"),
        ("", "first_derivative", "u_t - self.flow * u_xx", "u_t - self.flow * u_x"),
        ("", "flow_squared", "self.flow * u_xx", "self.flow ** 2 * u_xx"),
        ("", "no_graph", "u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)",
         "u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)\n        u_t = u_t.detach()", r"detach|sub|\w+", "back"),
        ("", "begin_missing", "inside + 10.0 * begin + edge", "inside + edge"),
        ("", "weight_of_begin", "10.0 * begin", "1.0 * begin"),
        ("", "edge_once", " + self.u(torch.zeros_like(b[\"x\"]), b[\"t\"]).square().mean()", "", r"\w+", ""),
        ("", "begin_cosine", "- torch.sin(math.pi * b[\"x\"])).square()", "- torch.cos(math.pi * b[\"x\"])).square()"),
        ("", "begin_at_one", "self.u(b[\"x\"], torch.zeros_like(b[\"t\"]))", "self.u(b[\"x\"], torch.ones_like(b[\"t\"]))", "cat"),
        ("", "sine_act", "h = torch.tanh(line(h))", "h = torch.sin(line(h))"),
        ("", "waves_doubled", "torch.cos(math.pi * x), x, t]", "torch.cos(2 * math.pi * x), x, t]"),
        ("", "absolute_residual", "self.residual(b[\"x\"], b[\"t\"]).square().mean()", "self.residual(b[\"x\"], b[\"t\"]).abs().mean()"),
        ("", "x_and_t", "x, t], 1)", "t, x], 1)"),
    ], [
        ("", "powers", "self.residual(b[\"x\"], b[\"t\"]).square().mean()", "(self.residual(b[\"x\"], b[\"t\"]) ** 2).mean()"),
        ("", "mse", "(self.u(b[\"x\"], b[\"t\"]) - b[\"labels\"]).square().mean()", "F.mse_loss(self.u(b[\"x\"], b[\"t\"]), b[\"labels\"])"),
        ("", "edges_joined", "self.u(torch.ones_like(b[\"x\"]), b[\"t\"]).square().mean() + self.u(torch.zeros_like(b[\"x\"]), b[\"t\"]).square().mean()",
         "2 * self.u(torch.cat([torch.ones_like(b['x']), torch.zeros_like(b['x'])]), torch.cat([b['t'], b['t']])).square().mean()"),
        ("", "sums_of_slopes", "u_x, u_t = torch.autograd.grad(u, (x, t), ones, create_graph=True)",
         "u_x, u_t = torch.autograd.grad(u.sum(), (x, t), create_graph=True)"),
    ], ordered=True, parts=2, pure=False, void=("weight_blocks_rolled",))


# ---- two voices apart ------------------------------------------------------------------------------------------

class GlobalNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(1, size, 1)), nn.Parameter(torch.zeros(1, size, 1))

    def forward(self, x):
        mean = x.mean((1, 2), keepdim=True)
        spread = ((x - mean) ** 2).mean((1, 2), keepdim=True)
        return self.weight * (x - mean) / torch.sqrt(spread + 1e-8) + self.bias


class SeparatorBlock(nn.Module):
    def __init__(self, size, inner, dilation):
        super().__init__()
        self.conv_in, self.act1, self.norm1 = nn.Conv1d(size, inner, 1), nn.PReLU(), GlobalNorm(inner)
        self.depth, self.act2, self.norm2 = nn.Conv1d(inner, inner, 3, padding=dilation, dilation=dilation,
            groups=inner), nn.PReLU(), GlobalNorm(inner)
        self.residual, self.skip = nn.Conv1d(inner, size, 1), nn.Conv1d(inner, size, 1)

    def forward(self, x):
        y = self.norm1(self.act1(self.conv_in(x)))
        y = self.norm2(self.act2(self.depth(y)))
        return x + self.residual(y), self.skip(y)


class Separator(nn.Module):
    def __init__(self, filters=20, size=12, inner=24):
        super().__init__()
        self.encoder = nn.Conv1d(1, filters, 8, stride=4, bias=False)
        self.norm, self.enter = GlobalNorm(filters), nn.Conv1d(filters, size, 1)
        self.blocks = nn.ModuleList(SeparatorBlock(size, inner, 2 ** i) for i in range(3))
        self.act, self.mask = nn.PReLU(), nn.Conv1d(size, 2 * filters, 1)
        self.decoder = nn.ConvTranspose1d(filters, 1, 8, stride=4, bias=False)

    def forward(self, x):
        w = F.relu(self.encoder(x[:, None]))
        y, skips = self.enter(self.norm(w)), 0
        for block in self.blocks:
            y, s = block(y)
            skips = skips + s
        masks = torch.sigmoid(self.mask(self.act(skips))).view(len(x), 2, *w.shape[1:])
        return self.decoder((masks * w[:, None]).flatten(0, 1)).view(len(x), 2, -1)


def si_sdr(made, true):
    made, true = made - made.mean(-1, keepdim=True), true - true.mean(-1, keepdim=True)
    part = (made * true).sum(-1, keepdim=True) / (true.pow(2).sum(-1, keepdim=True) + 1e-8) * true
    rest = made - part
    return 10 * torch.log10(part.pow(2).sum(-1) / (rest.pow(2).sum(-1) + 1e-8) + 1e-8)


def separator():
    def batch():
        voices = torch.randn(4, 2, 64, generator=generator(214)).cumsum(-1) * 0.3
        return {"mix": voices.sum(1), "labels": voices}
    def loss(m, b):
        made, true = m(b["mix"]), b["labels"]
        straight = si_sdr(made, true).mean(-1)
        crossed = si_sdr(made, true.flip(1)).mean(-1)
        return -torch.maximum(straight, crossed).mean()
    return of("separate", Separator, batch, loss, [
        ("GlobalNorm@blocks.1.norm1", "norm_of_time", "x.mean((1, 2), keepdim=True)\n", "x.mean(2, keepdim=True)\n"),
        ("GlobalNorm@norm", "norm_root_missing", "torch.sqrt(spread + 1e-8)", "(spread + 1e-8)"),
        ("GlobalNorm@blocks.2.norm2", "norm_eps_large", "spread + 1e-8", "spread + 1e-2"),
        ("SeparatorBlock@blocks.1", "no_residual", "return x + self.residual(y), self.skip(y)", "return self.residual(y), self.skip(y)", "conv1d"),
        ("SeparatorBlock@blocks.1", "skip_of_residual", "self.skip(y)", "self.residual(y)"),
        ("SeparatorBlock@blocks.1", "norm_before_act", "self.norm1(self.act1(self.conv_in(x)))", "self.act1(self.norm1(self.conv_in(x)))"),
        ("SeparatorBlock@blocks.0", "acts_exchanged", "self.act2(self.depth(y))", "self.act1(self.depth(y))"),
        ("", "relu_missing", "F.relu(self.encoder(x[:, None]))", "self.encoder(x[:, None])"),
        ("", "last_skip_alone", "skips = skips + s", "skips = s"),
        ("", "softmax_masks", "torch.sigmoid(self.mask(self.act(skips))).view(len(x), 2, *w.shape[1:])",
         "torch.softmax(self.mask(self.act(skips)).view(len(x), 2, *w.shape[1:]), 1)"),
        ("", "relu_masks", "torch.sigmoid(self.mask", "torch.relu(self.mask"),
        ("", "mask_of_normed", "masks * w[:, None]", "masks * self.norm(w)[:, None]"),
        ("#si_sdr", "mean_kept", "made, true = made - made.mean(-1, keepdim=True), true - true.mean(-1, keepdim=True)", "pass"),
        ("#si_sdr", "projected_on_made", "(true.pow(2).sum(-1, keepdim=True) + 1e-8)", "(made.pow(2).sum(-1, keepdim=True) + 1e-8)"),
        ("#si_sdr", "natural_logarithm", "torch.log10(", "torch.log("),
        ("#si_sdr", "amplitudes", "10 * torch", "20 * torch"),
        ("loss", "no_choice", "torch.maximum(straight, crossed)", "straight"),
        ("loss", "worse_choice", "torch.maximum(", "torch.minimum("),
    ], [
        ("GlobalNorm*", "by_group_norm", "return self.weight * (x - mean) / torch.sqrt(spread + 1e-8) + self.bias",
         "return F.group_norm(x, 1, self.weight.flatten(), self.bias.flatten(), 1e-8)"),
        ("GlobalNorm@norm", "by_rsqrt", "self.weight * (x - mean) / torch.sqrt(spread + 1e-8)",
         "self.weight * ((x - mean) * torch.rsqrt(spread + 1e-8))"),
        ("", "skips_stacked", "skips = skips + s", "skips = s if block is self.blocks[0] else torch.stack([skips, s]).sum(0)"),
        ("loss", "stacked_choice", "torch.maximum(straight, crossed)", "torch.stack([straight, crossed]).amax(0)"),
    ], ordered=True, parts=2, parallel=True, void=("labels_unit",))


# ---- a queue of keys and a slow encoder ------------------------------------------------------------------------------

class Eyes(nn.Module):
    def __init__(self, out=16):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12)
        self.conv2, self.bn2 = nn.Conv2d(12, 20, 3, 2, 1, bias=False), nn.BatchNorm2d(20)
        self.short, self.head1, self.head2 = nn.Conv2d(12, 20, 1, 2), nn.Linear(20, 20), nn.Linear(20, out)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = F.relu(self.bn2(self.conv2(x)) + self.short(x))
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        return F.normalize(self.head2(F.relu(self.head1(x))), dim=1)


class Queue(nn.Module):
    def __init__(self, size=24, momentum=0.9):
        super().__init__()
        self.fast, self.slow, self.momentum = Eyes(), Eyes(), momentum
        for p in self.slow.parameters():
            p.requires_grad_(False)
        self.register_buffer("keys", F.normalize(torch.randn(16, size, generator=generator(215)), dim=0))

    def forward(self, one, two):
        q = self.fast(one)
        with torch.no_grad():
            for slow, fast in zip(self.slow.parameters(), self.fast.parameters()):
                slow.copy_(slow * self.momentum + fast * (1 - self.momentum))
            order = torch.arange(len(two)).flip(0)
            k = self.slow(two[order])[order]
        near = torch.einsum("nc,nc->n", q, k)[:, None]
        far = torch.einsum("nc,ck->nk", q, self.keys.clone().detach())
        return torch.cat([near, far], 1) / 0.2, k


def queue():
    def batch():
        g = generator(216)
        x = torch.randn(6, 3, 16, 16, generator=g)
        return {"pixel_values": x, "other": x + 0.3 * torch.randn(6, 3, 16, 16, generator=g), "labels": torch.zeros(6, dtype=torch.int64)}
    def loss(m, b):
        logits, keys = m(b["pixel_values"], b["other"])
        return F.cross_entropy(logits, b["labels"])
    return of("moco", Queue, batch, loss, [
        ("", "momentum_turned", "slow * self.momentum + fast * (1 - self.momentum)", "slow * (1 - self.momentum) + fast * self.momentum", "copy"),
        ("", "order_not_restored", "self.slow(two[order])[order]", "self.slow(two[order])", "einsum"),
        ("", "temperature", "/ 0.2, k", "/ 0.5, k"),
        ("", "far_first", "torch.cat([near, far], 1)", "torch.cat([far, near], 1)"),
        ("", "keys_of_fast", "k = self.slow(two[order])[order]", "k = self.fast(two[order])[order]", "@conv2d", ""),
        ("", "same_view", "self.slow(two[order])", "self.slow(one[order])", "@conv2d"),
        ("", "keys_not_unit", "self.keys.clone().detach()", "self.keys.clone().detach() * 2"),
        ("Eyes@fast", "no_unit", "F.normalize(self.head2(F.relu(self.head1(x))), dim=1)", "self.head2(F.relu(self.head1(x)))"),
        ("Eyes@fast", "max_pool", "F.adaptive_avg_pool2d(x, 1)", "F.adaptive_max_pool2d(x, 1)"),
        ("Eyes@fast", "relu_before_sum", "F.relu(self.bn2(self.conv2(x)) + self.short(x))", "F.relu(self.bn2(self.conv2(x))) + self.short(x)"),
        ("Eyes@slow", "norm_missing_slow", "F.relu(self.bn1(self.conv1(x)), inplace=True)", "F.relu(self.conv1(x), inplace=True)"),
        ("Eyes*", "head_without_relu", "self.head2(F.relu(self.head1(x)))", "self.head2(self.head1(x))"),
    ], [
        ("", "lerp", "slow.copy_(slow * self.momentum + fast * (1 - self.momentum))", "slow.lerp_(fast, 1 - self.momentum)"),
        ("", "sums", "torch.einsum(\"nc,nc->n\", q, k)[:, None]", "(q * k).sum(1, keepdim=True)"),
        ("", "product", "torch.einsum(\"nc,ck->nk\", q, self.keys.clone().detach())", "q @ self.keys"),
        ("Eyes*", "not_in_place", "F.relu(self.bn1(self.conv1(x)), inplace=True)", "torch.relu(self.bn1(self.conv1(x)))"),
        ("Eyes*", "mean", "F.adaptive_avg_pool2d(x, 1).flatten(1)", "x.mean((2, 3))"),
    ], vision=True, pure=False, no_forms=("unfold",))


# ---- slots that compete for the parts of a picture --------------------------------------------------------------------

class Slots(nn.Module):
    def __init__(self, slots=3, size=20):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, size, 5, padding=2), nn.Conv2d(size, size, 5, padding=2)
        self.grid, self.enter = nn.Linear(4, size), nn.LayerNorm(size)
        self.mean, self.spread = nn.Parameter(torch.zeros(1, 1, size)), nn.Parameter(torch.zeros(1, 1, size))
        self.query, self.key, self.value = (nn.Linear(size, size, bias=False) for _ in range(3))
        self.norm_slots, self.norm_mlp, self.cell = nn.LayerNorm(size), nn.LayerNorm(size), nn.GRUCell(size, size)
        self.mlp = nn.Sequential(nn.Linear(size, 32), nn.ReLU(), nn.Linear(32, size))
        self.back, self.up, self.last = nn.Linear(4, size), nn.ConvTranspose2d(size, size, 4, 2, 1), nn.Conv2d(size, 4, 3, padding=1)
        self.slots = slots

    def places(self, n):
        axis = torch.linspace(0, 1, n)
        y, x = torch.meshgrid(axis, axis, indexing="ij")
        return torch.stack([x, y, 1 - x, 1 - y], -1).to(self.mean.dtype)

    def compete(self, x, noise):
        slots = self.mean + F.softplus(self.spread) * noise
        k, v = self.key(x), self.value(x)
        for _ in range(2):
            before = slots
            q = self.query(self.norm_slots(slots))
            share = torch.softmax(k @ q.transpose(1, 2) * k.shape[-1] ** -0.5, dim=-1) + 1e-6
            share = share / share.sum(1, keepdim=True)
            slots = self.cell((share.transpose(1, 2) @ v).flatten(0, 1), before.flatten(0, 1)).view_as(before)
            slots = slots + self.mlp(self.norm_mlp(slots))
        return slots

    def forward(self, pictures, noise):
        x = F.relu(self.conv2(F.relu(self.conv1(pictures)))).permute(0, 2, 3, 1)
        x = self.enter((x + self.grid(self.places(x.shape[1]))).flatten(1, 2))
        slots = self.compete(x, noise)
        y = slots.flatten(0, 1)[:, None, None].expand(-1, 4, 4, -1) + self.back(self.places(4))
        y = self.last(F.relu(self.up(y.permute(0, 3, 1, 2)))).unflatten(0, (len(pictures), self.slots))
        colour, mask = y.split([3, 1], 2)
        return (colour * mask.softmax(1)).sum(1)


def slots():
    def batch():
        g = generator(217)
        return {"pixel_values": torch.rand(3, 3, 8, 8, generator=g) * 2 - 1, "labels": torch.randn(3, 3, 20, generator=g)}
    def loss(m, b):
        return F.mse_loss(m(b["pixel_values"], b["labels"]), b["pixel_values"])
    return of("slots", Slots, batch, loss, [
        ("", "softmax_over_places", "* k.shape[-1] ** -0.5, dim=-1)", "* k.shape[-1] ** -0.5, dim=1)"),
        ("", "share_not_normed", "share = share / share.sum(1, keepdim=True)", "pass", "transpose|matmul"),
        ("", "share_sum_axis", "share.sum(1, keepdim=True)", "share.sum(2, keepdim=True)"),
        ("", "scale_missing", "k @ q.transpose(1, 2) * k.shape[-1] ** -0.5", "k @ q.transpose(1, 2)"),
        ("", "eps_large", "dim=-1) + 1e-6", "dim=-1) + 1e-2"),
        ("", "norm_missing", "self.query(self.norm_slots(slots))", "self.query(slots)"),
        ("", "mlp_not_residual", "slots = slots + self.mlp(self.norm_mlp(slots))", "slots = self.mlp(self.norm_mlp(slots))"),
        ("", "norm_of_other", "self.mlp(self.norm_mlp(slots))", "self.mlp(self.norm_slots(slots))"),
        ("", "cell_turned", "self.cell((share.transpose(1, 2) @ v).flatten(0, 1), before.flatten(0, 1))",
         "self.cell(before.flatten(0, 1), (share.transpose(1, 2) @ v).flatten(0, 1))"),
        ("", "values_are_keys", "k, v = self.key(x), self.value(x)", "k, v = self.key(x), self.key(x)"),
        ("", "exp_for_softplus", "F.softplus(self.spread)", "torch.exp(self.spread)"),
        ("", "mask_over_colours", "mask.softmax(1)", "mask.softmax(2)"),
        ("", "mask_sigmoid", "mask.softmax(1)", "mask.sigmoid()"),
        ("", "grid_missing", "self.enter((x + self.grid(self.places(x.shape[1]))).flatten(1, 2))", "self.enter(x.flatten(1, 2))"),
        ("", "grid_axes", "torch.stack([x, y, 1 - x, 1 - y], -1)", "torch.stack([y, x, 1 - y, 1 - x], -1)", "add"),
        ("", "grid_from_minus_one", "torch.linspace(0, 1, n)", "torch.linspace(-1, 1, n)", "meshgrid|stack", ""),
    ], [
        ("", "einsum", "share.transpose(1, 2) @ v", "torch.einsum('bns,bnd->bsd', share, v)"),
        ("", "scaled_queries", "k @ q.transpose(1, 2) * k.shape[-1] ** -0.5", "k @ (q * k.shape[-1] ** -0.5).mT"),
        ("", "repeated", "slots.flatten(0, 1)[:, None, None].expand(-1, 4, 4, -1)", "slots.reshape(-1, 1, 1, slots.shape[-1]).repeat(1, 4, 4, 1)"),
        ("", "chunks", "colour, mask = y.split([3, 1], 2)", "colour, mask = y[:, :, :3], y[:, :, 3:]"),
    ], vision=True, ordered=True, parts=3, parallel=True)


def families():
    return [soft_actor(), world(), heat(), separator(), queue(), slots()]
