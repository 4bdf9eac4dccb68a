# SPDX-License-Identifier: MIT
"""Networks as users of MindSpore write them, for the twelfth set of graph_mistakes.py.

graph_native_torch.py has their twins, graph_networks_twelfth.py what is planted in them.  A network reads `f`, the
name of its mistake or variation; the compiler of graphs drops the other branches.
"""
import mindspore as ms
import mindspore.mint.nn.functional as F
from graph_native_mindspore_more import (  # noqa: F401
    Efficient, MambaLm, NBeats, SimClr, Transducer, YoloHead, absolute, boxes, classes, clicks, conv2d, drawn,
    forecasts, nodes, paths, pixels, views, waves, words,
)
from mindspore import Tensor, mint, nn, ops


# ---- ConvNeXt -----------------------------------------------------------------------------------


class ConvNextBlock(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f = f
        if f == "convnext_same_padding":
            self.dwconv = nn.Conv2d(dim, dim, 7, pad_mode="same", group=dim, has_bias=True)
        else:
            self.dwconv = conv2d(dim, dim, 7, group=dim)
        self.norm = nn.LayerNorm((dim,), epsilon=0.1 if f == "convnext_epsilon" else 1e-6)
        self.pwconv1, self.pwconv2 = nn.Dense(dim, 4 * dim), nn.Dense(4 * dim, dim)
        self.act = nn.ReLU() if f == "convnext_relu" else nn.GELU(approximate=False)
        self.gamma = drawn(dim)

    def construct(self, x):
        shortcut = x
        x = self.dwconv(x)
        x = ops.transpose(x, (0, 2, 3, 1))
        x = self.norm(x)
        x = self.pwconv2(self.act(self.pwconv1(x)))
        if self.f != "convnext_no_scale":
            x = self.gamma * x
        x = ops.transpose(x, (0, 3, 1, 2))
        if self.f == "convnext_same_sum":
            return ops.add(x, shortcut)
        return shortcut + x


class ConvNext(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem = nn.Conv2d(3, 6, 2, 2, pad_mode="valid", has_bias=True)
        self.block1, self.block2 = ConvNextBlock(6, f), ConvNextBlock(6)
        self.norm, self.head = nn.LayerNorm((6,), epsilon=1e-6), nn.Dense(6, 5)

    def construct(self, x):
        x = self.block2(self.block1(self.stem(x)))
        if self.f == "convnext_pool_rows":
            x = x.mean(axis=2)[:, :, 0]
        elif self.f == "convnext_same_pool":
            x = ops.adaptive_avg_pool2d(x, (1, 1)).reshape((x.shape[0], 6))
        else:
            x = x.mean(axis=(2, 3))
        return self.head(self.norm(x))


# ---- DeepLab ------------------------------------------------------------------------------------


class Aspp(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.near = conv2d(6, 4, 1, has_bias=False)
        self.middle = conv2d(6, 4, 3, dilation=2, has_bias=False)
        self.far = conv2d(6, 4, 3, dilation=2 if f == "deeplab_rate" else 3, has_bias=False)
        self.pooled = nn.Conv2d(6, 4, 1, pad_mode="valid")
        self.bn = nn.BatchNorm2d(16)
        self.project = nn.Conv2d(16, 6, 1, pad_mode="valid", has_bias=True)

    def construct(self, x):
        size = x.shape[2:]
        whole = mint.mean(x, (2, 3), True)
        if self.f == "deeplab_pool_max":
            whole = mint.amax(x, (2, 3), True)
        whole = self.pooled(whole)
        whole = mint.broadcast_to(whole, (x.shape[0], 4, size[0], size[1]))
        if self.f == "deeplab_branch_lost":
            parts = (self.near(x), self.middle(x), self.middle(x), whole)
        else:
            parts = (self.near(x), self.middle(x), self.far(x), whole)
        y = ops.concat(parts, 1) if self.f == "deeplab_same_concat" else mint.cat(parts, 1)
        return F.relu(self.project(self.bn(y)))


class DeepLab(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem, self.aspp, self.low = conv2d(3, 6, 3, 2), Aspp(f), conv2d(6, 4, 1)
        self.decode = nn.SequentialCell(conv2d(10, 6, 3), nn.ReLU(), conv2d(6, 4, 1))

    def construct(self, x):
        size = (x.shape[2], x.shape[3])
        h = ops.relu(self.stem(x))
        y = self.aspp(h)
        if self.f == "deeplab_low_late":
            y = mint.cat((y, self.low(y)), 1)
        else:
            y = mint.cat((y, self.low(h)), 1)
        y = self.decode(y)
        if self.f == "deeplab_nearest":
            return ops.interpolate(y, size=size, mode="nearest")
        return ops.interpolate(y, size=size, mode="bilinear", align_corners=self.f == "deeplab_corners")


# ---- Conformer ----------------------------------------------------------------------------------


class FeedForward(nn.Cell):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.up, self.down = nn.Dense(dim, 2 * dim), nn.Dense(2 * dim, dim)

    def construct(self, x):
        return self.down(ops.silu(self.up(self.norm(x))))


class ConvModule(nn.Cell):
    def __init__(self, dim, f):
        super().__init__()
        self.f = f
        self.norm = nn.LayerNorm((dim,), epsilon=1e-5)
        self.point1, self.point2 = nn.Dense(dim, 2 * dim), nn.Dense(dim, dim)
        self.depth = nn.Conv1d(dim, dim, 3, pad_mode="pad", padding=1, group=dim, has_bias=True)
        self.bn = nn.BatchNorm1d(dim)

    def construct(self, x):
        b, t, d = x.shape
        h = self.point1(self.norm(x))
        if self.f == "conformer_glu_swapped":
            h = ops.sigmoid(h[:, :, :d]) * h[:, :, d:]
        elif self.f == "conformer_same_glu":
            h = h[:, :, :d] * ops.sigmoid(h[:, :, d:])
        else:
            h = ops.glu(h, 2)
        h = self.depth(h.swapaxes(1, 2)).swapaxes(1, 2)
        if self.f == "conformer_no_bn":
            h = ops.silu(h)
        else:
            h = ops.silu(self.bn(h.reshape((b * t, d))).reshape((b, t, d)))
        return self.point2(h)


class RelAttention(nn.Cell):
    def __init__(self, dim, f):
        super().__init__()
        self.f, self.heads, self.size = f, 2, dim // 2
        self.norm, self.qkv, self.out = nn.LayerNorm((dim,), epsilon=1e-5), nn.Dense(dim, 3 * dim), nn.Dense(dim, dim)
        self.bias = drawn(2, 6, 6)
        self.drop = nn.Dropout(p=0.1)

    def split(self, x):
        b, t, _ = x.shape
        return x.reshape((b, t, self.heads, self.size)).transpose((0, 2, 1, 3))

    def construct(self, x, mask):
        b, t, d = x.shape
        q, k, v = ops.split(self.qkv(self.norm(x)), d, axis=2)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = ops.matmul(q, k.swapaxes(-1, -2))
        if self.f == "conformer_scale_dim":
            scores = scores / d ** 0.5
        else:
            scores = scores / self.size ** 0.5
        if self.f != "conformer_no_bias":
            scores = scores + self.bias
        if self.f == "conformer_mask_one":
            scores = ops.masked_fill(scores, mask == 1, -1e9)
        else:
            scores = ops.masked_fill(scores, mask == 0, -1e9)
        share = ops.softmax(scores, axis=-1)
        if self.f == "conformer_dropout":
            share = self.drop(share)
        return self.out(ops.matmul(share, v).transpose((0, 2, 1, 3)).reshape((b, t, d)))


class Conformer(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.ff1, self.ff2 = nn.Dense(5, 8), FeedForward(8), FeedForward(8)
        self.attention, self.conv = RelAttention(8, f), ConvModule(8, f)
        self.norm, self.head = nn.LayerNorm((8,), epsilon=1e-5), nn.Dense(8, 4)

    def construct(self, x, mask):
        x = self.enter(x)
        if self.f == "conformer_macaron_whole":
            x = x + self.ff1(x)
        else:
            x = x + 0.5 * self.ff1(x)
        x = x + self.attention(x, mask)
        x = x + self.conv(x)
        x = x + 0.5 * self.ff2(x)
        return self.head(self.norm(x))


# ---- WaveNet ------------------------------------------------------------------------------------


class GatedLayer(nn.Cell):
    def __init__(self, dim, dilation, f=""):
        super().__init__()
        self.f = f
        self.left = dilation
        self.filter = nn.Conv1d(dim, dim, 2, dilation=dilation, pad_mode="valid", has_bias=True)
        self.gate = nn.Conv1d(dim, dim, 2, dilation=dilation, pad_mode="valid", has_bias=True)
        self.skip, self.res = nn.Conv1d(dim, dim, 1, has_bias=True), nn.Conv1d(dim, dim, 1, has_bias=True)

    def construct(self, x):
        if self.f == "wavenet_not_causal":
            h = ops.pad(x, (0, self.left))
        elif self.f == "wavenet_same_pad":
            h = mint.cat((mint.zeros_like(x[:, :, :self.left]), x), 2)
        else:
            h = ops.pad(x, (self.left, 0))
        if self.f == "wavenet_gate_tanh":
            h = mint.tanh(self.filter(h)) * mint.tanh(self.gate(h))
        elif self.f == "wavenet_same_gate":
            h = mint.sigmoid(self.gate(h)) * mint.tanh(self.filter(h))
        else:
            h = mint.tanh(self.filter(h)) * mint.sigmoid(self.gate(h))
        if self.f == "wavenet_residual_root":
            return (x + self.res(h)) * 0.5 ** 0.5, self.skip(h)
        return x + self.res(h), self.skip(h)


class WaveNet(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.embed = nn.Embedding(9, 6)
        self.layers = nn.CellList([GatedLayer(6, 1), GatedLayer(6, 1 if f == "wavenet_dilation" else 2, f),
                                   GatedLayer(6, 4)])
        self.out1, self.out2 = nn.Conv1d(6, 6, 1, has_bias=True), nn.Conv1d(6, 9, 1, has_bias=True)

    def construct(self, x):
        h = mint.transpose(self.embed(x), 1, 2)
        total = 0
        for layer in self.layers:
            h, skip = layer(h)
            total = total + skip
        if self.f == "wavenet_last_skip":
            total = skip
        if self.f == "wavenet_one_relu":
            return self.out2(self.out1(F.relu(total)))
        return self.out2(F.relu(self.out1(F.relu(total))))


# ---- DeepFM -------------------------------------------------------------------------------------


class DeepFm(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second = nn.Embedding(20, 1), nn.Embedding(20, 4)
        self.deep1, self.deep2, self.deep3 = nn.Dense(12, 8), nn.Dense(8, 8), nn.Dense(8, 1)
        self.bias = drawn(1)

    def construct(self, ids, weights):
        linear = (self.first(ids).squeeze(-1) * weights).sum(axis=1)
        v = self.second(ids)
        if self.f != "deepfm_weights_lost":
            v = v * weights.expand_dims(-1)
        if self.f == "deepfm_square_first":
            pairs = 0.5 * (v.sum(axis=1) - ops.square(v).sum(axis=1)).sum(axis=1)
        elif self.f == "deepfm_not_halved":
            pairs = (ops.square(v.sum(axis=1)) - ops.square(v).sum(axis=1)).sum(axis=1)
        elif self.f == "deepfm_same_pairs":
            pairs = ops.sum((v[:, 0] * v[:, 1] + v[:, 0] * v[:, 2]) + v[:, 1] * v[:, 2], 1)
        else:
            pairs = 0.5 * (ops.square(v.sum(axis=1)) - ops.square(v).sum(axis=1)).sum(axis=1)
        h = ops.relu(self.deep1(v.reshape((v.shape[0], 12))))
        if self.f == "deepfm_no_relu":
            h = self.deep2(h)
        else:
            h = ops.relu(self.deep2(h))
        deep = self.deep3(h).squeeze(1)
        if self.f == "deepfm_no_linear":
            return self.bias + pairs + deep
        if self.f == "deepfm_same_total":
            return deep + pairs + linear + self.bias
        return self.bias + linear + pairs + deep


# ---- graph attention ----------------------------------------------------------------------------


class GatLayer(nn.Cell):
    def __init__(self, inner, outer, f=""):
        super().__init__()
        self.f = f
        self.proj = nn.Dense(inner, outer, has_bias=False)
        self.source, self.goal = drawn(outer, 1), drawn(outer, 1)

    def construct(self, x, adj):
        h = self.proj(x)
        scores = ops.matmul(h, self.source) + ops.matmul(h, self.goal).T
        if self.f == "gat_relu":
            scores = ops.relu(scores)
        elif self.f == "gat_slope":
            scores = ops.leaky_relu(scores, 0.01)
        elif self.f == "gat_same_leaky":
            scores = ops.maximum(scores, 0.2 * scores)
        else:
            scores = ops.leaky_relu(scores, 0.2)
        if self.f == "gat_zero_mask":
            scores = ops.where(adj > 0, scores, ops.zeros_like(scores))
        elif self.f == "gat_same_mask":
            scores = scores + (1.0 - adj) * -1e9
        else:
            scores = ops.where(adj > 0, scores, ops.full_like(scores, -1e9))
        share = ops.softmax(scores, 0 if self.f == "gat_axis" else 1)
        if self.f == "gat_before_projection":
            return ops.matmul(share, self.proj(self.proj(x)))
        return ops.matmul(share, h)


class Gat(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter = nn.Dense(5, 6)
        self.gat1, self.gat2, self.head = GatLayer(6, 6, f), GatLayer(6, 6), nn.Dense(6, 3)

    def construct(self, x, adj):
        h = ops.tanh(self.enter(x))
        if self.f == "gat_self_lost":
            adj = adj - ops.diag(ops.ones(adj.shape[0], ms.float32))
        h = ops.elu(self.gat1(h, adj))
        h = ops.elu(self.gat2(h, adj)) if self.f == "gat_no_residual" else h + ops.elu(self.gat2(h, adj))
        return self.head(h)


# ---- Swin ---------------------------------------------------------------------------------------


class WindowAttention(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f, self.heads, self.size = f, 2, dim // 2
        self.qkv, self.proj = mint.nn.Linear(dim, 3 * dim), mint.nn.Linear(dim, dim)
        self.table = drawn(9, 2)

    def construct(self, x, index, mask):
        n, t, d = x.shape
        qkv = mint.permute(self.qkv(x).reshape((n, t, 3, self.heads, self.size)), (2, 0, 3, 1, 4))
        q, k, v = qkv[0], qkv[1], qkv[2]
        if self.f == "swin_scale_scores":
            scores = mint.matmul(q, mint.transpose(k, -2, -1)) * self.size ** -1.0
        elif self.f == "swin_same_scale":
            scores = mint.matmul(q, mint.transpose(k, -2, -1)) * self.size ** -0.5
        else:
            scores = mint.matmul(q * self.size ** -0.5, mint.transpose(k, -2, -1))
        bias = ops.gather(self.table, index.reshape((-1,)), 0).reshape((t, t, self.heads))
        if self.f == "swin_bias_turned":
            bias = mint.permute(bias, (2, 1, 0))
        else:
            bias = mint.permute(bias, (2, 0, 1))
        scores = scores + bias.unsqueeze(0)
        if mask is not None and self.f != "swin_no_mask":
            scores = scores.reshape((n // 4, 4, self.heads, t, t)) + mask.unsqueeze(1).unsqueeze(0)
            scores = scores.reshape((n, self.heads, t, t))
        share = F.softmax(scores, dim=-1)
        return self.proj(mint.transpose(mint.matmul(share, v), 1, 2).reshape((n, t, d)))


class SwinBlock(nn.Cell):
    def __init__(self, dim, shift, f=""):
        super().__init__()
        self.f, self.shift = f, shift
        self.norm1, self.norm2 = nn.LayerNorm((dim,), epsilon=1e-5), nn.LayerNorm((dim,), epsilon=1e-5)
        self.attention = WindowAttention(dim, f)
        self.fc1, self.fc2 = mint.nn.Linear(dim, 2 * dim), mint.nn.Linear(2 * dim, dim)

    def construct(self, x, index, mask):
        b, h, w, d = x.shape
        y = self.norm1(x)
        if self.shift:
            y = ops.concat((y[:, 1:], y[:, :1]), 1)
            y = ops.concat((y[:, :, 1:], y[:, :, :1]), 2)
        y = mint.permute(y.reshape((b, h // 2, 2, w // 2, 2, d)), (0, 1, 3, 2, 4, 5)).reshape((-1, 4, d))
        y = self.attention(y, index, mask if self.shift else None)
        if self.f == "swin_reverse_wrong":
            y = mint.permute(y.reshape((b, h // 2, w // 2, 2, 2, d)), (0, 1, 2, 3, 4, 5)).reshape((b, h, w, d))
        else:
            y = mint.permute(y.reshape((b, h // 2, w // 2, 2, 2, d)), (0, 1, 3, 2, 4, 5)).reshape((b, h, w, d))
        if self.shift and self.f != "swin_not_rolled_back":
            y = ops.concat((y[:, -1:], y[:, :-1]), 1)
            y = ops.concat((y[:, :, -1:], y[:, :, :-1]), 2)
        x = x + y
        if self.f == "swin_post_norm":
            return self.norm2(x + self.fc2(ops.gelu(self.fc1(x))))
        return x + self.fc2(ops.gelu(self.fc1(self.norm2(x))))


class Swin(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.embed = nn.Conv2d(3, 8, 2, 2, pad_mode="valid", has_bias=True)
        self.block1, self.block2 = SwinBlock(8, 0), SwinBlock(8, 1, f)
        self.norm, self.head = nn.LayerNorm((8,), epsilon=1e-5), mint.nn.Linear(8, 4)

    def construct(self, x, index, mask):
        x = mint.permute(self.embed(x), (0, 2, 3, 1))
        x = self.block2(self.block1(x, index, mask), index, mask)
        return self.head(mint.mean(self.norm(x), (1, 2)))


# ---- RWKV ---------------------------------------------------------------------------------------


class TimeMix(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f = f
        self.mix_k, self.mix_v, self.mix_r = drawn(dim), drawn(dim), drawn(dim)
        self.decay, self.first = drawn(dim), drawn(dim)
        self.key, self.value = nn.Dense(dim, dim, has_bias=False), nn.Dense(dim, dim, has_bias=False)
        self.receptance, self.output = nn.Dense(dim, dim, has_bias=False), nn.Dense(dim, dim, has_bias=False)

    def construct(self, x):
        b, t, d = x.shape
        if self.f == "rwkv_shift_ahead":
            past = ops.concat((x[:, 1:], ops.zeros((b, 1, d), ms.float32)), 1)
        elif self.f == "rwkv_same_shift":
            past = ops.pad(x[:, :-1], (0, 0, 1, 0))
        else:
            past = ops.concat((ops.zeros((b, 1, d), ms.float32), x[:, :-1]), 1)
        k = self.key(x * self.mix_k + past * (1 - self.mix_k))
        v = self.value(x * self.mix_v + past * (1 - self.mix_v))
        r = self.receptance(x * self.mix_r + past * (1 - self.mix_r))
        if self.f == "rwkv_receptance_key":
            r = self.receptance(x * self.mix_k + past * (1 - self.mix_k))
        w = ops.exp(self.decay) if self.f == "rwkv_decay_grows" else -ops.exp(self.decay)
        above, below = ops.zeros((b, d), ms.float32), ops.zeros((b, d), ms.float32)
        outs = []
        for i in range(t):
            now = ops.exp(self.first + k[:, i])
            if self.f == "rwkv_first_lost":
                now = ops.exp(k[:, i])
            outs.append((above + now * v[:, i]) / (below + now))
            if self.f == "rwkv_below_kept":
                above, below = ops.exp(w) * above + ops.exp(k[:, i]) * v[:, i], below + ops.exp(k[:, i])
            else:
                above = ops.exp(w) * above + ops.exp(k[:, i]) * v[:, i]
                below = ops.exp(w) * below + ops.exp(k[:, i])
        wkv = ops.stack(outs, 1)
        if self.f == "rwkv_receptance_bare":
            return self.output(r * wkv)
        return self.output(ops.sigmoid(r) * wkv)


class Rwkv(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.embed = nn.Embedding(11, 6)
        self.norm1, self.norm2 = nn.LayerNorm((6,), epsilon=1e-5), nn.LayerNorm((6,), epsilon=1e-5)
        self.time, self.up, self.down = TimeMix(6, f), nn.Dense(6, 12), nn.Dense(12, 6)
        self.head = nn.Dense(6, 11, has_bias=False)

    def construct(self, ids):
        x = self.embed(ids)
        x = x + self.time(self.norm1(x))
        h = ops.relu(self.up(self.norm2(x)))
        if self.f == "rwkv_relu_plain":
            x = x + self.down(h)
        elif self.f == "rwkv_same_square":
            x = x + self.down(ops.pow(h, 2))
        else:
            x = x + self.down(ops.square(h))
        return self.head(x)


# ---- super-resolution ---------------------------------------------------------------------------


class ResBlock(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f = f
        self.conv1, self.conv2 = conv2d(dim, dim, 3), conv2d(dim, dim, 3)
        if f == "edsr_reflect":
            self.conv1 = nn.Conv2d(dim, dim, 3, pad_mode="valid", has_bias=True)

    def construct(self, x):
        h = ops.pad(x, (1, 1, 1, 1), "reflect") if self.f == "edsr_reflect" else x
        h = self.conv2(ops.relu(self.conv1(h)))
        if self.f == "edsr_residual_whole":
            return x + h
        if self.f == "edsr_same_scale":
            return h / 10.0 + x
        if self.f == "edsr_relu_after":
            return ops.relu(x + h * 0.1)
        return x + h * 0.1


class Edsr(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.mean = Tensor([0.44, 0.43, 0.40], ms.float32).reshape((1, 3, 1, 1))
        self.head, self.body1, self.body2 = conv2d(3, 6, 3), ResBlock(6, f), ResBlock(6)
        self.up, self.tail = conv2d(6, 24, 3), conv2d(6, 3, 3)
        self.shuffle = nn.PixelShuffle(2)

    def construct(self, x):
        x = x - self.mean
        h = self.head(x)
        y = self.body2(self.body1(h))
        if self.f != "edsr_no_long_skip":
            y = y + h
        y = self.up(y)
        if self.f == "edsr_shuffle_order":
            b, c, t, w = y.shape
            y = y.reshape((b, 2, 2, c // 4, t, w)).transpose((0, 3, 4, 1, 5, 2)).reshape((b, c // 4, 2 * t, 2 * w))
        elif self.f == "edsr_same_shuffle":
            b, c, t, w = y.shape
            y = y.reshape((b, c // 4, 2, 2, t, w)).transpose((0, 1, 4, 2, 5, 3)).reshape((b, c // 4, 2 * t, 2 * w))
        else:
            y = self.shuffle(y)
        y = self.tail(y)
        return y if self.f == "edsr_mean_lost" else y + self.mean
