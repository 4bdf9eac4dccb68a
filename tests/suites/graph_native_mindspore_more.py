# SPDX-License-Identifier: MIT
"""More networks as users of MindSpore write them, their losses, and what graph_native_mindspore.py shares with them."""
import mindspore as ms
import mindspore.mint.nn.functional as F
from mindspore import Parameter, Tensor, mint, nn, ops


def drawn(*shape):
    """A parameter whose values graph_runs.py sets."""
    return Parameter(Tensor(shape=shape, dtype=ms.float32, init=ms.common.initializer.One()))


def conv2d(inner, outer, kernel, stride=1, dilation=1, group=1, has_bias=True):
    padding = dilation * (kernel - 1) // 2
    return nn.Conv2d(inner, outer, kernel, stride, pad_mode="pad", padding=padding, dilation=dilation, group=group,
                     has_bias=has_bias)


# ---- transducer ---------------------------------------------------------------------------------


class Transducer(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.encoder, self.norm, self.embed = nn.Dense(5, 8), nn.LayerNorm((8,), epsilon=1e-5), nn.Embedding(7, 6)
        self.update, self.candidate = nn.Dense(12, 6), nn.Dense(12, 6)
        self.join_e, self.join_p, self.out = nn.Dense(8, 8), nn.Dense(6, 8, has_bias=False), nn.Dense(8, 7)

    def predict(self, labels):
        x = self.embed(labels)
        h = ops.zeros((x.shape[0], 6), ms.float32)
        outs = []
        for i in range(x.shape[1]):
            both = ops.concat((x[:, i], h), 1)
            z = ops.sigmoid(self.update(both))
            c = ops.tanh(self.candidate(both))
            if self.f == "rnnt_gate_swapped":
                h = z * c + (1 - z) * h
            elif self.f == "rnnt_same_gate":
                h = c + z * (h - c)
            else:
                h = (1 - z) * c + z * h
            outs.append(h)
        return ops.stack(outs, 1)

    def construct(self, frames, labels):
        e = self.norm(ops.tanh(self.encoder(frames)))
        e = e.reshape((e.shape[0], -1, 2, 8))
        e = e[:, :, 1] if self.f == "rnnt_odd_frames" else e[:, :, 0]
        p = self.predict(labels)
        if self.f == "rnnt_joint_product":
            h = ops.tanh(self.join_e(e).expand_dims(2) * self.join_p(p).expand_dims(1))
        elif self.f == "rnnt_joint_relu":
            h = ops.relu(self.join_e(e).expand_dims(2) + self.join_p(p).expand_dims(1))
        elif self.f == "rnnt_same_joint":
            h = ops.tanh(self.join_p(p).expand_dims(1) + self.join_e(e).expand_dims(2))
        else:
            h = ops.tanh(self.join_e(e).expand_dims(2) + self.join_p(p).expand_dims(1))
        y = self.out(h)
        if self.f == "rnnt_axis":
            return ops.log_softmax(y, 1)
        return ops.log_softmax(y, -1)


# ---- contrastive views --------------------------------------------------------------------------


class SimClr(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.conv, self.bn = conv2d(3, 6, 3, 2, has_bias=False), nn.BatchNorm2d(6)
        if f == "simclr_eval":
            self.bn.use_batch_statistics = False
        self.fc1, self.fc2 = mint.nn.Linear(6, 8), mint.nn.Linear(8, 4)

    def encode(self, x):
        h = F.relu(self.bn(self.conv(x)))
        return self.fc2(F.relu(self.fc1(mint.mean(h, (2, 3)))))

    def construct(self, one, two):
        n = one.shape[0]
        z = mint.cat((self.encode(one), self.encode(two)), 0)
        if self.f == "simclr_not_normed":
            z = z * 1.0
        elif self.f == "simclr_same_norm":
            z = z / mint.sqrt(mint.sum(mint.square(z), 1, True))
        else:
            z = z / ops.norm(z, dim=1, keepdim=True)
        near = mint.matmul(z, z.T)
        if self.f == "simclr_temperature":
            near = near / 5.0
        elif self.f == "simclr_same_temperature":
            near = near * 2.0
        else:
            near = near / 0.5
        if self.f != "simclr_self_kept":
            near = near.masked_fill(mint.eye(2 * n).bool(), -1e9)
        return near


# ---- detection head -----------------------------------------------------------------------------


class YoloHead(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.anchors = Tensor([[1.0, 1.5], [2.0, 1.0]], ms.float32).reshape((1, 2, 1, 1, 2))
        rows, columns = ops.meshgrid(ops.arange(3), ops.arange(3), indexing="ij")
        self.grid = ops.stack((columns, rows) if f != "yolo_grid_turned" else (rows, columns), -1).float()
        self.stem, self.neck = conv2d(3, 6, 3, 2), conv2d(6, 6, 3)
        self.predict = nn.Conv2d(6, 2 * 8, 1, pad_mode="valid", has_bias=True)

    def construct(self, x):
        h = ops.leaky_relu(self.stem(x), 0.1)
        h = ops.leaky_relu(self.neck(h), 0.1)
        p = self.predict(h)
        b = p.shape[0]
        p = p.reshape((b, 2, 8, 3, 3)).transpose((0, 1, 3, 4, 2))
        if self.f == "yolo_xy_bare":
            xy = (p[..., 0:2] + self.grid) / 3
        elif self.f == "yolo_same_xy":
            xy = ops.sigmoid(p[..., 0:2]) / 3.0 + self.grid / 3.0
        else:
            xy = (ops.sigmoid(p[..., 0:2]) + self.grid) / 3
        if self.f == "yolo_anchor_lost":
            wh = ops.exp(p[..., 2:4]) / 3
        elif self.f == "yolo_wh_sigmoid":
            wh = ops.sigmoid(p[..., 2:4]) * self.anchors / 3
        else:
            wh = ops.exp(p[..., 2:4]) * self.anchors / 3
        if self.f == "yolo_confidence_column":
            return xy, wh, p[..., 5], p[..., 5:]
        return xy, wh, p[..., 4], p[..., 5:]


# ---- EfficientNet -------------------------------------------------------------------------------


class MbConv(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f = f
        self.expand, self.bn1 = conv2d(dim, 2 * dim, 1, has_bias=False), nn.BatchNorm2d(2 * dim, momentum=0.9)
        self.depth = conv2d(2 * dim, 2 * dim, 3, group=2 * dim, has_bias=False)
        self.bn2 = nn.BatchNorm2d(2 * dim, eps=1e-1 if f == "mbconv_bn_epsilon" else 1e-5)
        self.squeeze, self.excite = conv2d(2 * dim, 2, 1), conv2d(2, 2 * dim, 1)
        self.shrink, self.bn3 = conv2d(2 * dim, dim, 1, has_bias=False), nn.BatchNorm2d(dim)

    def construct(self, x):
        h = ops.silu(self.bn1(self.expand(x)))
        if self.f == "mbconv_same_silu":
            g = self.bn2(self.depth(h))
            h = g * ops.sigmoid(g)
        elif self.f == "mbconv_relu6":
            h = ops.relu6(self.bn2(self.depth(h)))
        else:
            h = ops.silu(self.bn2(self.depth(h)))
        s = ops.mean(h, (2, 3), True)
        s = ops.silu(self.squeeze(s))
        if self.f == "mbconv_gate_softmax":
            s = ops.softmax(self.excite(s), 1)
        elif self.f == "mbconv_gate_hard":
            s = ops.clamp(self.excite(s) / 6 + 0.5, 0.0, 1.0)
        else:
            s = ops.sigmoid(self.excite(s))
        h = s if self.f == "mbconv_gate_alone" else h * s
        if self.f == "mbconv_act_after":
            return x + ops.silu(self.bn3(self.shrink(h)))
        return x + self.bn3(self.shrink(h))


class Efficient(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem, self.bn = conv2d(3, 4, 3, 2, has_bias=False), nn.BatchNorm2d(4)
        self.block1, self.block2 = MbConv(4), MbConv(4, f)
        self.pool, self.drop = nn.AdaptiveAvgPool2d(1), nn.Dropout(p=0.2)
        self.classifier = nn.Dense(4, 5)

    def construct(self, x):
        h = self.block2(self.block1(ops.silu(self.bn(self.stem(x)))))
        h = self.pool(h).reshape((x.shape[0], 4))
        if self.f == "mbconv_dropout_on":
            h = self.drop(h)
        return self.classifier(h)


# ---- N-BEATS ------------------------------------------------------------------------------------


class Beat(nn.Cell):
    def __init__(self, f=""):
        super().__init__()
        self.f = f
        self.fc1, self.fc2 = nn.Dense(8, 10, activation="relu"), nn.Dense(10, 10)
        self.theta_b, self.theta_f = nn.Dense(10, 3, has_bias=False), nn.Dense(10, 3, has_bias=False)

    def construct(self, x, times):
        h = ops.relu(self.fc2(self.fc1(x)))
        tb, tf = self.theta_b(h), self.theta_f(h)
        if self.f == "nbeats_theta_swapped":
            tb, tf = tf, tb
        if self.f == "nbeats_trend_squared":
            basis = ops.stack((ops.ones_like(times), times, times * times * times), 0)
        elif self.f == "nbeats_same_basis":
            basis = ops.stack((ops.ones_like(times), times, ops.square(times)), 0)
        else:
            basis = ops.stack((ops.ones_like(times), times, times * times), 0)
        return ops.matmul(tb, basis[:, :8]), ops.matmul(tf, basis[:, 8:])


class NBeats(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.blocks = nn.CellList([Beat(), Beat(f), Beat()])

    def construct(self, x, times):
        if self.f == "nbeats_scale_lost":
            level = ops.ones_like(x[:, :1])
        else:
            level = ops.mean(ops.abs(x), 1, True) + 0.1
        x = x / level
        forecast = ops.zeros((x.shape[0], 4), ms.float32)
        for i, block in enumerate(self.blocks):
            back, ahead = block(x, times)
            if self.f == "nbeats_residual_plus" and i == 1:
                x = x + back
            elif self.f == "nbeats_residual_kept" and i == 0:
                x = x * 1.0
            else:
                x = x - back
            forecast = forecast + ahead
        if self.f == "nbeats_unscaled":
            return forecast
        if self.f == "nbeats_same_level":
            return level * forecast
        return forecast * level


# ---- Mamba --------------------------------------------------------------------------------------


class Mamba(nn.Cell):
    def __init__(self, dim, f=""):
        super().__init__()
        self.f = f
        self.in_proj, self.x_proj = mint.nn.Linear(dim, 4 * dim, bias=False), mint.nn.Linear(2 * dim, 7, bias=False)
        self.conv = nn.Conv1d(2 * dim, 2 * dim, 3, pad_mode="valid", group=2 * dim, has_bias=True)
        self.dt_proj, self.a_log, self.d = mint.nn.Linear(1, 2 * dim), drawn(2 * dim, 3), drawn(2 * dim)
        self.out_proj = mint.nn.Linear(2 * dim, dim, bias=False)

    def construct(self, x):
        b, t, d = x.shape
        x, z = mint.chunk(self.in_proj(x), 2, -1)
        if self.f == "mamba_conv_centred":
            x = ops.pad(mint.transpose(x, 1, 2), (1, 1))
        else:
            x = ops.pad(mint.transpose(x, 1, 2), (2, 0))
        x = F.silu(mint.transpose(self.conv(x), 1, 2))
        dt, bb, cc = mint.split(self.x_proj(x), [1, 3, 3], -1)
        if self.f == "mamba_dt_relu":
            dt = F.relu(self.dt_proj(dt))
        elif self.f == "mamba_same_softplus":
            dt = mint.log(1 + mint.exp(self.dt_proj(dt)))
        else:
            dt = ops.softplus(self.dt_proj(dt))
        a = -self.a_log if self.f == "mamba_a_not_exp" else -mint.exp(self.a_log)
        if self.f == "mamba_b_c_swapped":
            bb, cc = cc, bb
        h = mint.zeros((b, 2 * d, 3))
        ys = []
        for i in range(t):
            step = dt[:, i].unsqueeze(-1)
            if self.f == "mamba_dt_missing":
                h = mint.exp(step * a) * h + bb[:, i].unsqueeze(1) * x[:, i].unsqueeze(-1)
            else:
                h = mint.exp(step * a) * h + step * bb[:, i].unsqueeze(1) * x[:, i].unsqueeze(-1)
            ys.append(mint.sum(h * cc[:, i].unsqueeze(1), -1))
        y = ops.stack(ys, 1)
        if self.f == "mamba_skip_lost":
            y = y * 1.0
        else:
            y = y + x * self.d
        y = y * F.sigmoid(z) if self.f == "mamba_gate_sigmoid" else y * F.silu(z)
        return self.out_proj(y)


class MambaLm(nn.Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.embed, self.norm, self.mixer = nn.Embedding(9, 4), nn.LayerNorm((4,), epsilon=1e-5), Mamba(4, f)
        self.last, self.head = nn.LayerNorm((4,), epsilon=1e-5), mint.nn.Linear(4, 9, bias=False)

    def construct(self, ids):
        x = self.embed(ids)
        if self.f == "mamba_no_residual":
            x = self.mixer(self.norm(x))
        else:
            x = x + self.mixer(self.norm(x))
        return self.head(self.last(x))


# ---- losses -------------------------------------------------------------------------------------


def classes(_):
    return nn.CrossEntropyLoss()


def words(f):
    """Cross entropy of each word but the first, as language models are trained."""
    def of_logits(y, ids):
        y, goal = (y, ids) if f.endswith("_not_shifted") else (y[:, :-1], ids[:, 1:])
        return ops.cross_entropy(y.reshape((-1, y.shape[-1])), goal.reshape((-1,)))
    return of_logits


def waves(f):
    def of_logits(y, ids):
        return ops.cross_entropy(y[:, :, :-1], ids[:, 1:])
    return of_logits


def pixels(f):
    ignored = -100 if f == "deeplab_ignored_counted" else 3

    def of_logits(y, labels):
        return ops.cross_entropy(y, labels, ignore_index=ignored)
    return of_logits


def clicks(f):
    def of_logits(y, labels):
        return ops.binary_cross_entropy_with_logits(y, labels, ops.ones_like(y), ops.ones_like(y),
                                                    "sum" if f == "deepfm_loss_sum" else "mean")
    return of_logits


def nodes(f):
    def of_logits(y, labels, mask):
        each = ops.cross_entropy(y, labels, reduction="none")
        if f == "gat_loss_all":
            return each.mean()
        return (each * mask).sum() / mask.sum()
    return of_logits


def absolute(f):
    def of_picture(y, wanted):
        if f == "edsr_squared":
            return ops.mse_loss(y, wanted)
        return ops.l1_loss(y, wanted)
    return of_picture


def paths(f):
    """The chances of the labels in a lattice, without the sum over its paths."""
    def of_logits(y, labels):
        each = ops.gather_elements(y, 3, labels)
        return -each.sum() if f == "rnnt_loss_sum" else -each.mean()
    return of_logits


def views(f):
    def of_near(near):
        n = near.shape[0] // 2
        if f == "simclr_goal_next":
            goal = (ops.arange(2 * n) + n + 1) % (2 * n)
        else:
            goal = (ops.arange(2 * n) + n) % (2 * n)
        return ops.cross_entropy(near, goal)
    return of_near


def boxes(f):
    def of_heads(heads, wanted, there, kinds):
        xy, wh, confidence, kind = heads
        low = ops.maximum(xy - wh / 2, wanted[..., :2] - wanted[..., 2:] / 2)
        high = ops.minimum(xy + wh / 2, wanted[..., :2] + wanted[..., 2:] / 2)
        shared = ops.prod(ops.clamp(high - low, 0.0, 10.0), -1)
        if f == "yolo_union_lost":
            union = wh[..., 0] * wh[..., 1] + wanted[..., 2] * wanted[..., 3] + 1e-6
        else:
            union = wh[..., 0] * wh[..., 1] + wanted[..., 2] * wanted[..., 3] - shared + 1e-6
        overlap = (1 - shared / union) * there
        ones = ops.ones_like(confidence)
        objects = ops.binary_cross_entropy_with_logits(confidence, there, ones, ones, "none")
        if f != "yolo_background_whole":
            objects = objects * (there + 0.5 * (1 - there))
        ones = ops.ones_like(kind)
        kinds = ops.binary_cross_entropy_with_logits(kind, kinds, ones, ones, "none").mean(axis=-1) * there
        return 2.0 * overlap.mean() + objects.mean() + kinds.mean()
    return of_heads


def forecasts(f):
    def of_forecast(y, wanted):
        if f == "nbeats_percent":
            return (ops.abs(y - wanted) / (ops.abs(y) + ops.abs(wanted))).mean()
        return ops.huber_loss(y, wanted, delta=1.0)
    return of_forecast
