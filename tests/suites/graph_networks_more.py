# SPDX-License-Identifier: MIT
"""A second set of networks with planted mistakes for graph_mistakes.py, of other families.

The tables are as in graph_networks.py. SAME has variations that compute the same in another way: of them
no suspect may be named. The set was written before any rule was chosen on it.
"""
from graph_networks import FRAMEWORK, Cell, numbers

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    from graph_networks import Dense, LayerNorm, Pool, conv, fn
    AveragePool, Norm = nn.AvgPool2d, nn.BatchNorm2d

    class more(fn):
        concat = staticmethod(lambda parts, axis: torch.cat(parts, axis))
        leaky = staticmethod(lambda x, slope: nn.functional.leaky_relu(x, slope))
        grow = staticmethod(lambda x: nn.functional.interpolate(x, scale_factor=2.0, mode="nearest"))
        maximum = staticmethod(lambda x, y: torch.maximum(x, y))
        above = staticmethod(lambda x, limit: torch.gt(x, limit).float())
        tile = staticmethod(lambda x, times: x.repeat(times))

    def wide_conv(inner, outer, size, stride):
        return nn.Conv2d(inner, outer, size, stride)

    def parameter(name, shape):
        return nn.Parameter(torch.zeros(shape))
elif FRAMEWORK == "mindspore":
    import mindspore
    import numpy
    from mindspore import nn, ops

    from graph_networks import Dense, LayerNorm, Pool, conv, fn

    class more(fn):
        @staticmethod
        def concat(parts, axis):
            return ops.cat(parts, axis)

        @staticmethod
        def leaky(x, slope):
            return ops.leaky_relu(x, slope)

        @staticmethod
        def grow(x):
            return ops.interpolate(x, scale_factor=2.0, mode="nearest", recompute_scale_factor=True)

        @staticmethod
        def maximum(x, y):
            return ops.maximum(x, y)

        @staticmethod
        def above(x, limit):
            return ops.cast(ops.gt(x, limit), mindspore.float32)

        @staticmethod
        def tile(x, times):
            return ops.tile(x, times)

    def AveragePool(size):
        return nn.AvgPool2d(size, size)

    def Norm(size, eps=1e-5):
        return nn.BatchNorm2d(size, eps=eps)

    def wide_conv(inner, outer, size, stride):
        return nn.Conv2d(inner, outer, size, stride, pad_mode="valid", has_bias=True)

    def parameter(name, shape):
        return mindspore.Parameter(mindspore.Tensor(numpy.zeros(shape, numpy.float32)), name=name)


class LongShort(Cell):
    """One step of an LSTM."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.enter, self.forget, self.fresh, self.out = Dense(12, 6), Dense(12, 6), Dense(12, 6), Dense(12, 6)

    def construct(self, x, h, c):
        if self.f == "lstm_concat_order":
            joined = more.concat((h, x), 1)
        else:
            joined = more.concat((x, h), 1)
        if self.f == "lstm_same_order":
            o = fn.sigmoid(self.out(joined))
            k = fn.sigmoid(self.forget(joined))
            g = fn.tanh(self.fresh(joined))
            i = fn.sigmoid(self.enter(joined))
        else:
            i = fn.sigmoid(self.enter(joined))
            if self.f == "lstm_forget_bias":
                k = fn.sigmoid(self.forget(joined) + 1.0)
            else:
                k = fn.sigmoid(self.forget(joined))
            if self.f == "lstm_candidate_sigmoid":
                g = fn.sigmoid(self.fresh(joined))
            else:
                g = fn.tanh(self.fresh(joined))
            o = fn.sigmoid(self.out(joined))
        if self.f == "lstm_swapped_gates":
            i, o = o, i
        if self.f == "lstm_no_forget":
            c = c + i * g
        elif self.f == "lstm_same_commuted":
            c = i * g + k * c
        else:
            c = k * c + i * g
        if self.f == "lstm_output_relu":
            return o * fn.relu(c), c
        return o * fn.tanh(c), c


class Lstm(Cell):
    def __init__(self, f):
        super().__init__()
        self.first, self.second, self.head = LongShort(""), LongShort(f), Dense(6, 4)

    def construct(self, x, h, c):
        h, c = self.first(x, h, c)
        h, c = self.second(x, h, c)
        return self.head(h) + fn.reduce_mean(c, (1,))


class Double(Cell):
    """Two convolutions of a U-Net."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        self.one, self.two = conv(inner, outer), conv(outer, outer)

    def construct(self, x):
        x = fn.relu(self.one(x))
        if self.f == "unet_no_relu":
            return self.two(x)
        if self.f == "unet_same_maximum":
            h = self.two(x)
            return more.maximum(h, h * 0.0)
        return fn.relu(self.two(x))


class Unet(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.down, self.bottom, self.up = Double("", 2, 4), Double(f, 4, 4), Double("", 8, 4)
        self.pool = AveragePool(2) if f == "unet_average_pool" else Pool(2)
        self.last = conv(4, 1)

    def construct(self, x):
        skip = self.down(x)
        h = self.bottom(self.pool(skip))
        h = more.grow(h)
        if self.f == "unet_skip_scaled":
            skip = skip * 0.5
        if self.f == "unet_skip_tanh":
            skip = fn.tanh(skip)
        if self.f == "unet_skip_order":
            h = more.concat((skip, h), 1)
        else:
            h = more.concat((h, skip), 1)
        return self.last(self.up(h))


class Generator(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.out = Dense(5, 8), Dense(8, 6)

    def construct(self, z):
        if self.f == "gan_noise":
            z = z + 0.1
        h = self.out(more.leaky(self.hidden(z), 0.2))
        return h if self.f == "gan_no_tanh" else fn.tanh(h)


class Judge(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.hidden, self.score = Dense(6, 8), Dense(8, 1)

    def construct(self, x):
        h = self.hidden(x)
        if self.f == "gan_leak":
            h = more.leaky(h, 0.02)
        elif self.f == "gan_same_leaky":
            h = more.maximum(h, h * 0.2)
        else:
            h = more.leaky(h, 0.2)
        h = self.score(h)
        return h if self.f == "gan_no_sigmoid" else fn.sigmoid(h)


class Gan(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.generator, self.judge = Generator(f), Judge(f)

    def construct(self, z, real):
        fake = self.judge(self.generator(z))
        if self.f == "gan_real_scaled":
            real = real * 0.9
        true = self.judge(real)
        if self.f == "gan_loss_sum":
            return fake + true
        return fake - true


class Routed(Cell):
    """Experts that are weighted only above a threshold."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.router, self.one, self.two, self.three = Dense(6, 3), Dense(6, 6), Dense(6, 6), Dense(6, 6)

    def construct(self, x):
        scores = self.router(x)
        if self.f == "routed_same_softmax":
            scores = fn.exp(scores)
            w = scores / fn.reduce_sum(scores, (1,))
        else:
            w = fn.softmax(scores, -1)
        if self.f == "routed_threshold":
            w = w * more.above(w, 0.4)
        else:
            w = w * more.above(w, 0.25)
        if self.f == "routed_mean":
            w = w / fn.reduce_mean(w, (1,))
        elif self.f != "routed_no_renorm":
            w = w / fn.reduce_sum(w, (1,))
        a, b = fn.gelu(self.one(x)), fn.gelu(self.two(x))
        if self.f == "routed_shared":
            c = fn.gelu(self.two(x))
        else:
            c = fn.gelu(self.three(x))
        if self.f == "routed_dropped":
            return w[:, :1] * a + w[:, 1:2] * b
        return w[:, :1] * a + w[:, 1:2] * b + w[:, 2:] * c


class Routes(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second, self.head = Routed(""), Routed(f), Dense(6, 4)

    def construct(self, x):
        x = x + self.first(x)
        if self.f == "routes_residual":
            x = self.first(x) + self.second(x)
        else:
            x = x + self.second(x)
        return self.head(x)


class Look(Cell):
    """Attention of a vision transformer, one head."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.value, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def construct(self, x):
        if self.f == "vit_same_order":
            v, k, q = self.value(x), self.key(x), self.query(x)
        else:
            q, k, v = self.query(x), self.key(x), self.value(x)
        scores = fn.matmul(q, fn.transpose(k, (0, 2, 1)))
        if self.f == "vit_scale":
            scores = scores / 8.0
        elif self.f == "vit_same_scale":
            scores = scores * 0.25
        else:
            scores = scores / 4.0
        return self.out(fn.matmul(fn.softmax(scores, -1), v))


class Layer(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm1, self.norm2 = LayerNorm(8), LayerNorm(8)
        self.look, self.up, self.down = Look(f), Dense(8, 16), Dense(16, 8)

    def construct(self, x):
        x = x + self.look(self.norm1(x))
        h = fn.gelu(self.up(self.norm2(x)))
        if self.f == "vit_feed_scale":
            h = h * 1.3
        return x + self.down(h)


class Vit(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.patches, self.norm, self.head = wide_conv(3, 8, 4, 4), LayerNorm(8), Dense(8, 5)
        self.token, self.position = parameter("token", (1, 1, 8)), parameter("position", (1, 5, 8))
        self.layer = Layer(f)

    def construct(self, x):
        x = fn.transpose(fn.reshape(self.patches(x), (2, 8, 4)), (0, 2, 1))
        token = more.tile(self.token, (2, 1, 1))
        if self.f == "vit_token_last":
            x = more.concat((x, token), 1)
        else:
            x = more.concat((token, x), 1)
        if self.f != "vit_position_missing":
            x = x + self.position
        x = self.layer(x)
        if self.f != "vit_norm_missing":
            x = self.norm(x)
        if self.f == "vit_pool_mean":
            x = fn.reduce_mean(x, (1,))
        else:
            x = x[:, :1]
        return self.head(x)


class Basic(Cell):
    """A block of a residual network."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        self.conv1, self.conv2, self.short = conv(inner, outer), conv(outer, outer), wide_conv(inner, outer, 1, 1)
        self.bn1 = Norm(outer)
        self.bn2 = Norm(outer, eps=1e-2) if f == "res_eps" else Norm(outer)

    def construct(self, x):
        h = fn.relu(self.bn1(self.conv1(x)))
        h = self.bn2(self.conv2(h))
        if self.f == "res_scale":
            h = h * 0.9
        if self.f == "res_half":
            h = fn.half(h)
        if self.f == "res_no_shortcut":
            return fn.relu(h)
        if self.f == "res_relu_before":
            return fn.relu(h) + self.short(x)
        if self.f == "res_same_commuted":
            return fn.relu(self.short(x) + h)
        return fn.relu(h + self.short(x))


class Residual(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.stem, self.first, self.second = conv(3, 4), Basic("", 4, 4), Basic(f, 4, 6)
        self.head = Dense(6, 5)

    def construct(self, x):
        x = self.second(self.first(fn.relu(self.stem(x))))
        if self.f == "res_pool_sum":
            x = fn.reduce_sum(x, (2, 3))
        else:
            x = fn.reduce_mean(x, (2, 3))
        return self.head(fn.reshape(x, (2, 6)))


NETWORKS = {"lstm": Lstm, "unet": Unet, "gan": Gan, "routes": Routes, "vit": Vit, "residual": Residual}
INPUTS = {"lstm": lambda: [numbers(seed, (4, 6)) for seed in (1, 2, 3)],
          "unet": lambda: [numbers(1, (2, 2, 8, 8))],
          "gan": lambda: [numbers(1, (4, 5)), numbers(2, (4, 6))],
          "routes": lambda: [numbers(1, (5, 6))],
          "vit": lambda: [numbers(1, (2, 3, 8, 8))],
          "residual": lambda: [numbers(1, (2, 3, 6, 6))]}
MISTAKES = {
    "lstm_concat_order": ("lstm", "second", "concat|cat"),
    "lstm_forget_bias": ("lstm", "second", "add|sigmoid"),
    "lstm_candidate_sigmoid": ("lstm", "second", "sigmoid|tanh"),
    "lstm_swapped_gates": ("lstm", "second", "mul"),
    "lstm_no_forget": ("lstm", "second", "mul|add"),
    "lstm_output_relu": ("lstm", "second", "relu|tanh"),
    "unet_skip_order": ("unet", "", "concat|cat"),
    "unet_skip_scaled": ("unet", "", "mul"),
    "unet_skip_tanh": ("unet", "", "tanh|concat|cat"),
    "unet_no_relu": ("unet", "bottom", "relu|two|conv"),
    "unet_average_pool": ("unet", "", "pool|avg_?pool.*"),
    "gan_leak": ("gan", "judge", "leaky|relu|mul|max"),
    "gan_no_tanh": ("gan", "generator", "tanh|out"),
    "gan_no_sigmoid": ("gan", "judge", "sigmoid|score"),
    "gan_real_scaled": ("gan", "", "mul"),
    "gan_noise": ("gan", "generator", "add|hidden"),
    "gan_loss_sum": ("gan", "", "add|sub"),
    "routed_threshold": ("routes", "second", "greater|gt|above"),
    "routed_mean": ("routes", "second", "mean|sum"),
    "routed_no_renorm": ("routes", "second", "div|mul|sum"),
    "routed_shared": ("routes", "second", "gelu|two|three|linear|dense"),
    "routed_dropped": ("routes", "second", "add|mul"),
    "routes_residual": ("routes", "", "add|first"),
    "vit_scale": ("vit", "layer.look", "div"),
    "vit_feed_scale": ("vit", "layer", "mul"),
    "vit_token_last": ("vit", "", "concat|cat"),
    "vit_position_missing": ("vit", "", "add|concat|cat|layer"),
    "vit_norm_missing": ("vit", "", "norm|head|slice|getitem"),
    "vit_pool_mean": ("vit", "", "mean|slice|getitem"),
    "res_eps": ("residual", "second.bn2", "batch_?norm"),
    "res_scale": ("residual", "second", "mul"),
    "res_half": ("residual", "second", "cast|half|to|float|bn2"),
    "res_no_shortcut": ("residual", "second", "add|relu|short"),
    "res_relu_before": ("residual", "second", "relu|add"),
    "res_pool_sum": ("residual", "", "sum|mean"),
}
SAME = {"lstm_same_order": "lstm", "lstm_same_commuted": "lstm", "unet_same_maximum": "unet",
        "gan_same_leaky": "gan", "routed_same_softmax": "routes", "vit_same_order": "vit",
        "vit_same_scale": "vit", "res_same_commuted": "residual"}
