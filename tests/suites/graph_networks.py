# SPDX-License-Identifier: MIT
"""Networks with planted mistakes, one text for MindSpore and PyTorch, for graph_mistakes.py.

The environment variable GRAPH_FRAMEWORK chooses the framework; without it the tables can still be read.
MISTAKES: name of a mistake -> (network, cell that holds it, operators that show it). A network reads
`self.f`, the name of its mistake; the compiler of graphs drops the other branches. INPUTS: name of a
network -> function that returns its arguments as arrays.
"""
import os

FRAMEWORK = os.environ.get("GRAPH_FRAMEWORK", "")

if FRAMEWORK == "torch":
    import torch
    from torch import nn

    class Cell(nn.Module):
        def forward(self, *args):
            return self.construct(*args)

    class fn:
        """MindSpore's names of PyTorch's functions, looked up when called."""
        relu = staticmethod(lambda x: torch.relu(x))
        tanh = staticmethod(lambda x: torch.tanh(x))
        sigmoid = staticmethod(lambda x: torch.sigmoid(x))
        exp = staticmethod(lambda x: torch.exp(x))
        gelu = staticmethod(lambda x: nn.functional.gelu(x))
        softmax = staticmethod(lambda x, axis: torch.softmax(x, axis))
        matmul = staticmethod(lambda x, y: torch.matmul(x, y))
        transpose = staticmethod(lambda x, order: x.permute(order))
        reshape = staticmethod(lambda x, shape: x.reshape(shape))
        reduce_mean = staticmethod(lambda x, axis: x.mean(axis, True))
        reduce_sum = staticmethod(lambda x, axis: x.sum(axis, True))
        cumsum = staticmethod(lambda x, axis: torch.cumsum(x, axis))
        half = staticmethod(lambda x: x.half().float())

    Dense, Embedding, Conv = nn.Linear, nn.Embedding, nn.Conv2d
    LayerNorm = nn.LayerNorm
    Pool = nn.MaxPool2d

    def conv(inner, outer):
        return nn.Conv2d(inner, outer, 3, padding=1)
elif FRAMEWORK == "mindspore":
    import mindspore
    from mindspore import nn, ops
    Cell = nn.Cell

    class fn:
        """MindSpore's functions, looked up when called: we replace them in their module."""
        @staticmethod
        def relu(x):
            return ops.relu(x)

        @staticmethod
        def tanh(x):
            return ops.tanh(x)

        @staticmethod
        def sigmoid(x):
            return ops.sigmoid(x)

        @staticmethod
        def exp(x):
            return ops.exp(x)

        @staticmethod
        def gelu(x):
            return ops.gelu(x)

        @staticmethod
        def softmax(x, axis):
            return ops.softmax(x, axis)

        @staticmethod
        def matmul(x, y):
            return ops.matmul(x, y)

        @staticmethod
        def transpose(x, order):
            return ops.transpose(x, order)

        @staticmethod
        def reshape(x, shape):
            return ops.reshape(x, shape)

        @staticmethod
        def cumsum(x, axis):
            return ops.cumsum(x, axis)

        @staticmethod
        def reduce_mean(x, axis):
            return ops.mean(x, axis, True)

        @staticmethod
        def reduce_sum(x, axis):
            return ops.sum(x, axis, keepdim=True)

        @staticmethod
        def half(x):
            return ops.cast(ops.cast(x, mindspore.float16), mindspore.float32)

    Dense, Embedding = nn.Dense, nn.Embedding

    def LayerNorm(size, eps=1e-5):
        return nn.LayerNorm((size,), epsilon=eps)

    def Pool(size):
        return nn.MaxPool2d(size, size)

    def conv(inner, outer):
        return nn.Conv2d(inner, outer, 3, pad_mode="pad", padding=1, has_bias=True)
else:
    Cell = object


class Feed(Cell):
    """The feed-forward part of a transformer's block."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.up, self.down = Dense(8, 16, f != "feed_bias") if FRAMEWORK == "torch" else Dense(
            8, 16, has_bias=f != "feed_bias"), Dense(16, 8)

    def construct(self, x):
        h = self.up(x)
        if self.f == "feed_relu":
            h = fn.relu(h)
        elif self.f == "feed_tanh":
            h = fn.tanh(h)
        elif self.f == "feed_square":
            h = fn.gelu(h) * fn.gelu(h)
        elif self.f != "feed_no_activation":
            h = fn.gelu(h)
        if self.f == "feed_half":
            h = fn.half(h)
        if self.f == "feed_dropout":
            h = h * 1.1
        return self.down(h)


class Attention(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.query, self.key, self.value, self.out = Dense(8, 8), Dense(8, 8), Dense(8, 8), Dense(8, 8)

    def heads(self, x):
        return fn.transpose(fn.reshape(x, (2, 6, 2, 4)), (0, 2, 1, 3))

    def construct(self, x, mask):
        q, k, v = self.heads(self.query(x)), self.heads(self.key(x)), self.heads(self.value(x))
        if self.f == "attention_swapped":
            q, k = k, q
        scores = fn.matmul(q, fn.transpose(k, (0, 1, 3, 2)))
        if self.f == "attention_scale":
            scores = scores / 4.0
        elif self.f != "attention_no_scale":
            scores = scores / 2.0
        if self.f == "attention_mask":
            scores = scores - mask
        elif self.f != "attention_no_mask":
            scores = scores + mask
        if self.f == "attention_axis":
            weights = fn.softmax(scores, 2)
        else:
            weights = fn.softmax(scores, -1)
        if self.f == "attention_half":
            weights = fn.half(weights)
        if self.f == "attention_value":
            v = k
        mixed = fn.transpose(fn.matmul(weights, v), (0, 2, 1, 3))
        return self.out(fn.reshape(mixed, (2, 6, 8)))


class Block(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.norm1 = LayerNorm(8, eps=1e-2) if f == "norm_eps" else LayerNorm(8)
        self.norm2 = LayerNorm(8)
        self.attention, self.feed = Attention(f), Feed(f)

    def construct(self, x, mask):
        h = self.attention(self.norm1(x), mask)
        if self.f == "block_no_residual":
            x = h
        elif self.f == "block_minus":
            x = x - h
        elif self.f == "block_twice":
            x = x + h + h
        else:
            x = x + h
        if self.f == "block_no_norm":
            return x + self.feed(x)
        if self.f == "block_late_residual":
            h = self.norm2(x)
            return h + self.feed(h)
        return x + self.feed(self.norm2(x))


class Transformer(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.embedding = Embedding(16, 8)
        self.first, self.second = Block(""), Block(f)
        self.head = Dense(8, 16)

    def construct(self, ids, mask):
        x = self.embedding(ids)
        if self.f == "embedding_scale":
            x = x * 2.0
        x = self.second(self.first(x, mask), mask)
        if self.f == "head_scale":
            x = x * 1.5
        return self.head(x)


class Convolution(Cell):
    """Convolution, channel-wise gate, pooling."""

    def __init__(self, f, inner, outer):
        super().__init__()
        self.f = f
        self.conv, self.squeeze = conv(inner, outer), Dense(outer, outer)
        self.pool = Pool(2)

    def construct(self, x):
        x = self.conv(x)
        if self.f == "conv_tanh":
            x = fn.tanh(x)
        elif self.f != "conv_no_activation":
            x = fn.relu(x)
        if self.f == "gate_sum":
            mean = fn.reduce_sum(x, (2, 3))
        elif self.f == "gate_axis":
            mean = fn.reduce_mean(x, (2,))[:, :, :, :1]
        else:
            mean = fn.reduce_mean(x, (2, 3))
        gate = self.squeeze(fn.reshape(mean, (2, -1)))
        if self.f == "gate_softmax":
            gate = fn.softmax(gate, -1)
        elif self.f == "gate_tanh":
            gate = fn.tanh(gate)
        else:
            gate = fn.sigmoid(gate)
        gate = fn.reshape(gate, (2, -1, 1, 1))
        if self.f == "gate_add":
            x = x + gate
        elif self.f == "gate_inverse":
            x = x * (1.0 - gate)
        elif self.f != "gate_missing":
            x = x * gate
        if self.f == "pool_scale":
            x = x * 0.5
        if self.f == "conv_half":
            x = fn.half(x)
        return self.pool(x)


class Convolutions(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.second = Convolution("", 3, 4), Convolution(f, 4, 6)
        self.head = Dense(24, 5)

    def construct(self, x):
        x = self.second(self.first(x))
        if self.f == "flat_order":
            x = fn.transpose(x, (0, 1, 3, 2))
        return self.head(fn.reshape(x, (2, 24)))


class Gru(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.update, self.reset, self.fresh = Dense(10, 6), Dense(10, 6), Dense(10, 6)

    def construct(self, x, h, joined):
        z = fn.sigmoid(self.update(joined))
        r = fn.sigmoid(self.reset(joined))
        if self.f == "gru_relu":
            z = fn.relu(self.update(joined))
        if self.f == "gru_no_reset":
            n = fn.tanh(self.fresh(joined))
        elif self.f == "gru_sigmoid":
            n = fn.sigmoid(self.fresh(joined) * fn.reduce_mean(r, (1,)))
        else:
            n = fn.tanh(self.fresh(joined) * fn.reduce_mean(r, (1,)))
        if self.f == "gru_swapped":
            return z * n + (1.0 - z) * h
        if self.f == "gru_keep":
            return n + z * h
        if self.f == "gru_constant":
            return (1.1 - z) * n + z * h
        return (1.0 - z) * n + z * h


class Recurrent(Cell):
    """Two cells of a GRU, one behind the other."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.mix = Dense(6, 10)
        self.first, self.second = Gru(""), Gru(f)
        self.head = Dense(6, 3)

    def construct(self, x, h, joined):
        h = self.first(x, h, joined)
        joined = fn.tanh(self.mix(h)) + joined
        if self.f == "mix_missing":
            joined = fn.tanh(self.mix(h))
        h = self.second(x, h, joined)
        if self.f == "output_scale":
            h = h * 1.2
        return self.head(h)


class Experts(Cell):
    """A softmax chooses between experts."""

    def __init__(self, f):
        super().__init__()
        self.f = f
        self.router, self.one, self.two = Dense(6, 2), Dense(6, 6), Dense(6, 6)

    def construct(self, x):
        scores = self.router(x)
        if self.f == "router_temperature":
            scores = scores * 0.5
        if self.f == "router_axis":
            weights = fn.softmax(scores, 0)
        elif self.f == "router_sigmoid":
            weights = fn.sigmoid(scores)
        else:
            weights = fn.softmax(scores, -1)
        a, b = fn.relu(self.one(x)), fn.relu(self.two(x))
        if self.f == "experts_tanh":
            b = fn.tanh(self.two(x))
        if self.f == "experts_swapped":
            return weights[:, :1] * b + weights[:, 1:] * a
        if self.f == "experts_unweighted":
            return weights[:, :1] * a + b
        if self.f == "experts_minus":
            return weights[:, :1] * a - weights[:, 1:] * b
        return weights[:, :1] * a + weights[:, 1:] * b


class Mixture(Cell):
    def __init__(self, f):
        super().__init__()
        self.f = f
        self.first, self.norm, self.second = Experts(""), LayerNorm(6), Experts(f)
        self.head = Dense(6, 3)

    def construct(self, x):
        x = x + self.first(x)
        y = self.second(self.norm(x))
        if self.f == "mixture_no_residual":
            return self.head(y)
        if self.f == "mixture_scale":
            y = y * 0.7
        return self.head(x + y)


NETWORKS = {"transformer": Transformer, "convolutions": Convolutions, "recurrent": Recurrent,
            "mixture": Mixture}

_A, _F, _B = "second.attention", "second.feed", "second"
MISTAKES = {
    "feed_relu": ("transformer", _F, "relu|gelu"),
    "feed_tanh": ("transformer", _F, "tanh|gelu"),
    "feed_square": ("transformer", _F, "gelu|mul|square"),
    "feed_no_activation": ("transformer", _F, "gelu|up|down"),
    "feed_half": ("transformer", _F, "cast|half|to|gelu|float"),
    "feed_dropout": ("transformer", _F, "mul"),
    "feed_bias": ("transformer", _F, "up|bias_?add|add|linear|dense"),
    "attention_swapped": ("transformer", _A, "matmul|transpose|permute"),
    "attention_scale": ("transformer", _A, "div"),
    "attention_no_scale": ("transformer", _A, "div|matmul|add"),
    "attention_mask": ("transformer", _A, "add|sub"),
    "attention_no_mask": ("transformer", _A, "add|softmax"),
    "attention_axis": ("transformer", _A, "softmax|transpose"),
    "attention_half": ("transformer", _A, "cast|half|to|softmax|float"),
    "attention_value": ("transformer", _A, "matmul"),
    "norm_eps": ("transformer", "second.norm1", "layer_?norm"),
    "block_no_residual": ("transformer", _B, "add|norm2|layer_?norm"),
    "block_minus": ("transformer", _B, "add|sub"),
    "block_twice": ("transformer", _B, "add"),
    "block_no_norm": ("transformer", _B, "norm2|feed|layer_?norm|up"),
    "block_late_residual": ("transformer", _B, "add"),
    "embedding_scale": ("transformer", "", "mul|embedding"),
    "head_scale": ("transformer", "", "mul|head"),
    "conv_tanh": ("convolutions", "second", "tanh|relu"),
    "conv_no_activation": ("convolutions", "second", "relu|conv"),
    "gate_sum": ("convolutions", "second", "sum|mean"),
    "gate_axis": ("convolutions", "second", "mean|slice|getitem"),
    "gate_softmax": ("convolutions", "second", "softmax|sigmoid"),
    "gate_tanh": ("convolutions", "second", "tanh|sigmoid"),
    "gate_add": ("convolutions", "second", "add|mul"),
    "gate_inverse": ("convolutions", "second", "sub|mul"),
    "gate_missing": ("convolutions", "second", "mul|pool"),
    "pool_scale": ("convolutions", "second", "mul|pool"),
    "conv_half": ("convolutions", "second", "cast|half|to|mul|float"),
    "flat_order": ("convolutions", "", "transpose|permute|reshape"),
    "gru_relu": ("recurrent", "second", "relu|sigmoid"),
    "gru_no_reset": ("recurrent", "second", "mul|tanh|fresh"),
    "gru_sigmoid": ("recurrent", "second", "sigmoid|tanh"),
    "gru_swapped": ("recurrent", "second", "mul|sub"),
    "gru_keep": ("recurrent", "second", "mul|sub|add"),
    "gru_constant": ("recurrent", "second", "sub"),
    "mix_missing": ("recurrent", "", "add|tanh"),
    "output_scale": ("recurrent", "", "mul|head"),
    "router_temperature": ("mixture", "second", "mul|router"),
    "router_axis": ("mixture", "second", "softmax"),
    "router_sigmoid": ("mixture", "second", "sigmoid|softmax"),
    "experts_tanh": ("mixture", "second", "tanh|relu"),
    "experts_swapped": ("mixture", "second", "mul"),
    "experts_unweighted": ("mixture", "second", "mul|add"),
    "experts_minus": ("mixture", "second", "sub|add"),
    "mixture_no_residual": ("mixture", "", "add|head"),
    "mixture_scale": ("mixture", "", "mul"),
}


def numbers(seed, shape, scale=1.0):
    import numpy as np
    return (np.random.RandomState(seed).normal(size=shape) * scale).astype(np.float32)


def _transformer():
    import numpy as np
    late = np.triu(np.ones((6, 6), np.float32), 1) * -2 - 0.3
    return [np.arange(12, dtype=np.int32).reshape(2, 6) * 5 % 16, late]


INPUTS = {"transformer": _transformer,
          "convolutions": lambda: [numbers(1, (2, 3, 8, 8))],
          "recurrent": lambda: [numbers(1, (4, 6)), numbers(2, (4, 6)), numbers(3, (4, 10))],
          "mixture": lambda: [numbers(1, (5, 6))]}
