# SPDX-License-Identifier: MIT
"""The twins in PyTorch of the networks of graph_native_mindspore.py, as users of PyTorch write them."""
import torch
import torch.nn.functional as F
from torch import nn


def drawn(*shape):
    """A parameter whose values graph_runs.py sets."""
    return nn.Parameter(torch.ones(*shape))


def conv2d(inner, outer, kernel, stride=1, dilation=1, groups=1, bias=True):
    return nn.Conv2d(inner, outer, kernel, stride, dilation * (kernel - 1) // 2, dilation, groups, bias)


class ConvNextBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dwconv, self.norm = conv2d(dim, dim, 7, groups=dim), nn.LayerNorm(dim, eps=1e-6)
        self.pwconv1, self.act, self.pwconv2 = nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)
        self.gamma = drawn(dim)

    def forward(self, x):
        y = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        y = self.gamma * self.pwconv2(self.act(self.pwconv1(y)))
        return x + y.permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 6, 2, 2)
        self.block1, self.block2 = ConvNextBlock(6), ConvNextBlock(6)
        self.norm, self.head = nn.LayerNorm(6, eps=1e-6), nn.Linear(6, 5)

    def forward(self, x):
        return self.head(self.norm(self.block2(self.block1(self.stem(x))).mean([-2, -1])))


class Aspp(nn.Module):
    def __init__(self):
        super().__init__()
        self.near = conv2d(6, 4, 1, bias=False)
        self.middle, self.far = conv2d(6, 4, 3, dilation=2, bias=False), conv2d(6, 4, 3, dilation=3, bias=False)
        self.pooled, self.bn, self.project = nn.Conv2d(6, 4, 1, bias=False), nn.BatchNorm2d(16), nn.Conv2d(16, 6, 1)

    def forward(self, x):
        whole = self.pooled(F.adaptive_avg_pool2d(x, 1)).expand(-1, -1, *x.shape[2:])
        y = torch.cat((self.near(x), self.middle(x), self.far(x), whole), dim=1)
        return F.relu(self.project(self.bn(y)))


class DeepLab(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.aspp, self.low = conv2d(3, 6, 3, 2), Aspp(), conv2d(6, 4, 1)
        self.decode = nn.Sequential(conv2d(10, 6, 3), nn.ReLU(), conv2d(6, 4, 1))

    def forward(self, x):
        h = F.relu(self.stem(x))
        y = self.decode(torch.cat((self.aspp(h), self.low(h)), dim=1))
        return F.interpolate(y, size=x.shape[2:], mode="bilinear", align_corners=False)


class FeedForward(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.down(F.silu(self.up(self.norm(x))))


class ConvModule(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm, self.point1, self.point2 = nn.LayerNorm(dim), nn.Linear(dim, 2 * dim), nn.Linear(dim, dim)
        self.depth, self.bn = nn.Conv1d(dim, dim, 3, padding=1, groups=dim), nn.BatchNorm1d(dim)

    def forward(self, x):
        h = F.glu(self.point1(self.norm(x)), dim=-1).transpose(1, 2)
        return self.point2(F.silu(self.bn(self.depth(h))).transpose(1, 2))


class RelAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads, self.size = 2, dim // 2
        self.norm, self.qkv, self.out = nn.LayerNorm(dim), nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.bias = drawn(2, 6, 6)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, self.size).transpose(1, 2)
                   for p in self.qkv(self.norm(x)).chunk(3, dim=-1))
        scores = q @ k.transpose(-1, -2) / self.size ** 0.5 + self.bias
        share = scores.masked_fill(mask == 0, -1e9).softmax(dim=-1)
        return self.out((share @ v).transpose(1, 2).reshape(b, t, d))


class Conformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.ff1, self.ff2 = nn.Linear(5, 8), FeedForward(8), FeedForward(8)
        self.attention, self.conv = RelAttention(8), ConvModule(8)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x, mask):
        x = self.enter(x)
        x = x + 0.5 * self.ff1(x)
        x = x + self.attention(x, mask)
        x = x + self.conv(x)
        x = x + 0.5 * self.ff2(x)
        return self.head(self.norm(x))


class GatedLayer(nn.Module):
    def __init__(self, dim, dilation):
        super().__init__()
        self.left = dilation
        self.filter, self.gate = nn.Conv1d(dim, dim, 2, dilation=dilation), nn.Conv1d(dim, dim, 2, dilation=dilation)
        self.skip, self.res = nn.Conv1d(dim, dim, 1), nn.Conv1d(dim, dim, 1)

    def forward(self, x):
        h = F.pad(x, (self.left, 0))
        h = torch.tanh(self.filter(h)) * torch.sigmoid(self.gate(h))
        return x + self.res(h), self.skip(h)


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 6)
        self.layers = nn.ModuleList([GatedLayer(6, 1), GatedLayer(6, 2), GatedLayer(6, 4)])
        self.out1, self.out2 = nn.Conv1d(6, 6, 1), nn.Conv1d(6, 9, 1)

    def forward(self, x):
        h, total = self.embed(x).transpose(1, 2), 0
        for layer in self.layers:
            h, skip = layer(h)
            total = total + skip
        return self.out2(F.relu(self.out1(F.relu(total))))


class DeepFm(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Embedding(20, 1), nn.Embedding(20, 4)
        self.deep1, self.deep2, self.deep3 = nn.Linear(12, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.bias = drawn(1)

    def forward(self, ids, weights):
        linear = (self.first(ids).squeeze(-1) * weights).sum(1)
        v = self.second(ids) * weights.unsqueeze(-1)
        pairs = 0.5 * (v.sum(1).pow(2) - v.pow(2).sum(1)).sum(1)
        deep = self.deep3(F.relu(self.deep2(F.relu(self.deep1(v.flatten(1)))))).squeeze(1)
        return self.bias + linear + pairs + deep


class GatLayer(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.proj = nn.Linear(inner, outer, bias=False)
        self.source, self.goal = drawn(outer, 1), drawn(outer, 1)

    def forward(self, x, adj):
        h = self.proj(x)
        scores = F.leaky_relu(h @ self.source + (h @ self.goal).T, 0.2)
        scores = torch.where(adj > 0, scores, torch.full_like(scores, -1e9))
        return F.softmax(scores, dim=1) @ h


class Gat(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(5, 6)
        self.gat1, self.gat2, self.head = GatLayer(6, 6), GatLayer(6, 6), nn.Linear(6, 3)

    def forward(self, x, adj):
        h = F.elu(self.gat1(torch.tanh(self.enter(x)), adj))
        return self.head(h + F.elu(self.gat2(h, adj)))


class WindowAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.heads, self.size = 2, dim // 2
        self.qkv, self.proj, self.table = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), drawn(9, 2)

    def forward(self, x, index, mask):
        n, t, d = x.shape
        q, k, v = self.qkv(x).reshape(n, t, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        scores = (q * self.size ** -0.5) @ k.transpose(-2, -1)
        bias = self.table[index.view(-1)].view(t, t, self.heads).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        if mask is not None:
            scores = scores.view(n // 4, 4, self.heads, t, t) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.view(n, self.heads, t, t)
        return self.proj((F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(n, t, d))


class SwinBlock(nn.Module):
    def __init__(self, dim, shift):
        super().__init__()
        self.shift = shift
        self.norm1, self.norm2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attention = WindowAttention(dim)
        self.fc1, self.fc2 = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x, index, mask):
        b, h, w, d = x.shape
        y = self.norm1(x)
        if self.shift:
            y = torch.roll(y, (-1, -1), (1, 2))
        y = y.view(b, h // 2, 2, w // 2, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, d)
        y = self.attention(y, index, mask if self.shift else None)
        y = y.view(b, h // 2, w // 2, 2, 2, d).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, d)
        if self.shift:
            y = torch.roll(y, (1, 1), (1, 2))
        x = x + y
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class Swin(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.block1, self.block2 = nn.Conv2d(3, 8, 2, 2), SwinBlock(8, 0), SwinBlock(8, 1)
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x, index, mask):
        x = self.embed(x).permute(0, 2, 3, 1)
        x = self.block2(self.block1(x, index, mask), index, mask)
        return self.head(self.norm(x).mean((1, 2)))


class TimeMix(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix_k, self.mix_v, self.mix_r = drawn(dim), drawn(dim), drawn(dim)
        self.decay, self.first = drawn(dim), drawn(dim)
        self.key, self.value = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)
        self.receptance, self.output = nn.Linear(dim, dim, bias=False), nn.Linear(dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        past = torch.cat((torch.zeros(b, 1, d), x[:, :-1]), dim=1)
        k = self.key(x * self.mix_k + past * (1 - self.mix_k))
        v = self.value(x * self.mix_v + past * (1 - self.mix_v))
        r = self.receptance(x * self.mix_r + past * (1 - self.mix_r))
        w = -torch.exp(self.decay)
        above, below, outs = torch.zeros(b, d), torch.zeros(b, d), []
        for i in range(t):
            now = torch.exp(self.first + k[:, i])
            outs.append((above + now * v[:, i]) / (below + now))
            above = torch.exp(w) * above + torch.exp(k[:, i]) * v[:, i]
            below = torch.exp(w) * below + torch.exp(k[:, i])
        return self.output(torch.sigmoid(r) * torch.stack(outs, dim=1))


class Rwkv(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm1, self.norm2 = nn.Embedding(11, 6), nn.LayerNorm(6), nn.LayerNorm(6)
        self.time, self.up, self.down = TimeMix(6), nn.Linear(6, 12), nn.Linear(12, 6)
        self.head = nn.Linear(6, 11, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        x = x + self.time(self.norm1(x))
        x = x + self.down(torch.square(torch.relu(self.up(self.norm2(x)))))
        return self.head(x)


class ResBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.conv1, self.conv2 = conv2d(dim, dim, 3), conv2d(dim, dim, 3)

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x))) * 0.1


class Edsr(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.tensor([0.44, 0.43, 0.40]).view(1, 3, 1, 1))
        self.head, self.body1, self.body2 = conv2d(3, 6, 3), ResBlock(6), ResBlock(6)
        self.up, self.tail, self.shuffle = conv2d(6, 24, 3), conv2d(6, 3, 3), nn.PixelShuffle(2)

    def forward(self, x):
        h = self.head(x - self.mean)
        y = self.body2(self.body1(h)) + h
        return self.tail(self.shuffle(self.up(y))) + self.mean


class Transducer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.norm, self.embed = nn.Linear(5, 8), nn.LayerNorm(8), nn.Embedding(7, 6)
        self.update, self.candidate = nn.Linear(12, 6), nn.Linear(12, 6)
        self.join_e, self.join_p, self.out = nn.Linear(8, 8), nn.Linear(6, 8, bias=False), nn.Linear(8, 7)

    def predict(self, labels):
        x, outs = self.embed(labels), []
        h = torch.zeros(x.shape[0], 6)
        for i in range(x.shape[1]):
            both = torch.cat((x[:, i], h), dim=1)
            z, c = torch.sigmoid(self.update(both)), torch.tanh(self.candidate(both))
            h = (1 - z) * c + z * h
            outs.append(h)
        return torch.stack(outs, dim=1)

    def forward(self, frames, labels):
        e = self.norm(torch.tanh(self.encoder(frames))).view(len(frames), -1, 2, 8)[:, :, 0]
        h = torch.tanh(self.join_e(e).unsqueeze(2) + self.join_p(self.predict(labels)).unsqueeze(1))
        return F.log_softmax(self.out(h), dim=-1)


class SimClr(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = conv2d(3, 6, 3, 2, bias=False), nn.BatchNorm2d(6)
        self.fc1, self.fc2 = nn.Linear(6, 8), nn.Linear(8, 4)

    def encode(self, x):
        return self.fc2(F.relu(self.fc1(F.relu(self.bn(self.conv(x))).mean((2, 3)))))

    def forward(self, one, two):
        z = torch.cat((self.encode(one), self.encode(two)), dim=0)
        z = z / z.norm(dim=1, keepdim=True)
        return (z @ z.T / 0.5).masked_fill(torch.eye(len(z), dtype=torch.bool), -1e9)


class YoloHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("anchors", torch.tensor([[1.0, 1.5], [2.0, 1.0]]).view(1, 2, 1, 1, 2))
        rows, columns = torch.meshgrid(torch.arange(3), torch.arange(3), indexing="ij")
        self.register_buffer("grid", torch.stack((columns, rows), dim=-1).float())
        self.stem, self.neck, self.predict = conv2d(3, 6, 3, 2), conv2d(6, 6, 3), nn.Conv2d(6, 16, 1)

    def forward(self, x):
        h = F.leaky_relu(self.neck(F.leaky_relu(self.stem(x), 0.1)), 0.1)
        p = self.predict(h).view(len(x), 2, 8, 3, 3).permute(0, 1, 3, 4, 2)
        xy = (torch.sigmoid(p[..., 0:2]) + self.grid) / 3
        wh = torch.exp(p[..., 2:4]) * self.anchors / 3
        return xy, wh, p[..., 4], p[..., 5:]


class MbConv(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.expand, self.bn1 = conv2d(dim, 2 * dim, 1, bias=False), nn.BatchNorm2d(2 * dim)
        self.depth, self.bn2 = conv2d(2 * dim, 2 * dim, 3, groups=2 * dim, bias=False), nn.BatchNorm2d(2 * dim)
        self.squeeze, self.excite = conv2d(2 * dim, 2, 1), conv2d(2, 2 * dim, 1)
        self.shrink, self.bn3 = conv2d(2 * dim, dim, 1, bias=False), nn.BatchNorm2d(dim)

    def forward(self, x):
        h = F.silu(self.bn2(self.depth(F.silu(self.bn1(self.expand(x))))))
        h = h * torch.sigmoid(self.excite(F.silu(self.squeeze(h.mean((2, 3), keepdim=True)))))
        return x + self.bn3(self.shrink(h))


class Efficient(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = conv2d(3, 4, 3, 2, bias=False), nn.BatchNorm2d(4)
        self.block1, self.block2 = MbConv(4), MbConv(4)
        self.pool, self.classifier = nn.AdaptiveAvgPool2d(1), nn.Linear(4, 5)

    def forward(self, x):
        h = self.block2(self.block1(F.silu(self.bn(self.stem(x)))))
        return self.classifier(self.pool(h).flatten(1))


class Beat(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(8, 10), nn.Linear(10, 10)
        self.theta_b, self.theta_f = nn.Linear(10, 3, bias=False), nn.Linear(10, 3, bias=False)

    def forward(self, x, times):
        h = F.relu(self.fc2(F.relu(self.fc1(x))))
        basis = torch.stack((torch.ones_like(times), times, times * times))
        return self.theta_b(h) @ basis[:, :8], self.theta_f(h) @ basis[:, 8:]


class NBeats(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Beat(), Beat(), Beat()])

    def forward(self, x, times):
        level = x.abs().mean(1, keepdim=True) + 0.1
        x, forecast = x / level, torch.zeros(len(x), 4)
        for block in self.blocks:
            back, ahead = block(x, times)
            x, forecast = x - back, forecast + ahead
        return forecast * level


class Mamba(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.in_proj, self.x_proj = nn.Linear(dim, 4 * dim, bias=False), nn.Linear(2 * dim, 7, bias=False)
        self.conv = nn.Conv1d(2 * dim, 2 * dim, 3, groups=2 * dim)
        self.dt_proj, self.a_log, self.d = nn.Linear(1, 2 * dim), drawn(2 * dim, 3), drawn(2 * dim)
        self.out_proj = nn.Linear(2 * dim, dim, bias=False)

    def forward(self, x):
        b, t, d = x.shape
        x, z = self.in_proj(x).chunk(2, dim=-1)
        x = F.silu(self.conv(F.pad(x.transpose(1, 2), (2, 0))).transpose(1, 2))
        dt, bb, cc = self.x_proj(x).split([1, 3, 3], dim=-1)
        dt, a = F.softplus(self.dt_proj(dt)), -torch.exp(self.a_log)
        h, ys = torch.zeros(b, 2 * d, 3), []
        for i in range(t):
            step = dt[:, i].unsqueeze(-1)
            h = torch.exp(step * a) * h + step * bb[:, i].unsqueeze(1) * x[:, i].unsqueeze(-1)
            ys.append((h * cc[:, i].unsqueeze(1)).sum(-1))
        y = torch.stack(ys, dim=1) + x * self.d
        return self.out_proj(y * F.silu(z))


class MambaLm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.norm, self.mixer = nn.Embedding(9, 4), nn.LayerNorm(4), Mamba(4)
        self.last, self.head = nn.LayerNorm(4), nn.Linear(4, 9, bias=False)

    def forward(self, ids):
        x = self.embed(ids)
        return self.head(self.last(x + self.mixer(self.norm(x))))


# ---- losses -------------------------------------------------------------------------------------


def classes(y, labels):
    return F.cross_entropy(y, labels.long())


def words(y, ids):
    return F.cross_entropy(y[:, :-1].reshape(-1, y.shape[-1]), ids[:, 1:].reshape(-1).long())


def waves(y, ids):
    return F.cross_entropy(y[:, :, :-1], ids[:, 1:].long())


def pixels(y, labels):
    return F.cross_entropy(y, labels.long(), ignore_index=3)


def clicks(y, labels):
    return F.binary_cross_entropy_with_logits(y, labels)


def nodes(y, labels, mask):
    each = F.cross_entropy(y, labels.long(), reduction="none")
    return (each * mask).sum() / mask.sum()


def absolute(y, wanted):
    return F.l1_loss(y, wanted)


def paths(y, labels):
    return -y.gather(3, labels.long()).mean()


def views(near):
    n = len(near) // 2
    return F.cross_entropy(near, torch.arange(2 * n).roll(n))


def boxes(heads, wanted, there, kinds):
    xy, wh, confidence, kind = heads
    low = torch.maximum(xy - wh / 2, wanted[..., :2] - wanted[..., 2:] / 2)
    high = torch.minimum(xy + wh / 2, wanted[..., :2] + wanted[..., 2:] / 2)
    shared = (high - low).clamp(0.0, 10.0).prod(-1)
    union = wh[..., 0] * wh[..., 1] + wanted[..., 2] * wanted[..., 3] - shared + 1e-6
    overlap = (1 - shared / union) * there
    objects = F.binary_cross_entropy_with_logits(confidence, there, reduction="none")
    objects = objects * (there + 0.5 * (1 - there))
    kinds = F.binary_cross_entropy_with_logits(kind, kinds, reduction="none").mean(-1) * there
    return 2.0 * overlap.mean() + objects.mean() + kinds.mean()


def forecasts(y, wanted):
    return F.huber_loss(y, wanted, delta=1.0)
