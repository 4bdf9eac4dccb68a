# SPDX-License-Identifier: MIT
"""Models of MindSpore that mindspore_oracle.py dumps with two tools.

MODELS: name -> function that makes (model or list of models, function of nothing whose gradients
are taken).
"""
import os

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

os.environ["GRAPH_FRAMEWORK"] = "mindspore"
import graph_runs

F = mint.nn.functional
MODELS = {}


def model(func):
    MODELS[func.__name__] = func
    return func


def row(*shape):
    """Numbers without chance in them."""
    count = int(np.prod(shape))
    return Tensor(np.sin(np.arange(count, dtype=np.float32)).reshape(shape))


def settled(model):
    """The model with parameters that are the same in every run."""
    for at, parameter in enumerate(model.get_parameters()):
        if parameter.requires_grad:
            shape = parameter.shape
            parameter.set_data(mint.mul(row(*shape), 0.5) + 0.01 * at if shape else parameter)
    return model


# ---- models ---------------------------------------------------------------------------------


@model
def dense():
    """Cells of nn, shared by two calls."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.up, self.act, self.down = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 6)
            self.norm = nn.LayerNorm((6,))

        def construct(self, x):
            x = self.norm(self.down(self.act(self.up(x))))
            return self.down(self.act(self.up(x)))

    model, x = settled(Model()), row(4, 6)
    return model, lambda: (model(x) ** 2).mean()


@model
def block():
    """A transformer's block out of mint, ops and methods."""
    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = mint.nn.Linear(8, 24), mint.nn.Linear(8, 8)
            self.norm = nn.LayerNorm((8,))
            self.up, self.down = mint.nn.Linear(8, 16), mint.nn.Linear(16, 8)

        def construct(self, x):
            b, t, d = x.shape
            q, k, v = mint.chunk(self.qkv(self.norm(x)), 3, -1)
            q, k, v = (p.view(b, t, 2, d // 2).transpose(1, 2) for p in (q, k, v))
            weights = F.softmax(mint.matmul(q, k.transpose(-2, -1)) / (d // 2) ** 0.5, dim=-1)
            x = x + self.out(mint.matmul(weights, v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.silu(self.up(self.norm(x))))

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(16, 8)
            self.blocks = nn.SequentialCell(Block(), Block())
            self.head = mint.nn.Linear(8, 16)

        def construct(self, ids):
            return self.head(self.blocks(self.embedding(ids)))

    model, ids = settled(Model()), Tensor(np.arange(12).reshape(2, 6) % 16, mindspore.int32)
    return model, lambda: ops.cross_entropy(model(ids).reshape(-1, 16), ids.reshape(-1))


@model
def convolutions():
    """With running statistics and pooling."""
    model = settled(nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
                                      nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 5)))
    x, labels = row(2, 3, 8, 8), Tensor([1, 3], mindspore.int32)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return model, lambda: loss(model(x), labels)


@model
def recomputed():
    """A cell whose forward runs again during backward."""
    class Part(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.act = mint.nn.Linear(4, 4), nn.GELU()

        def construct(self, x):
            return self.act(self.fc(x)) + x

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = Part(), Part()
            self.first.recompute()

        def construct(self, x):
            return self.second(self.first(x))

    model, x = settled(Model()), row(3, 4)
    return model, lambda: model(x).sum()


@model
def values():
    """Results and arguments of all kinds."""
    class Inner(nn.Cell):
        def construct(self, x, scale=1.0, mask=None, more=()):
            parts = mint.split(x * scale, 2, dim=-1)
            largest, place = mint.max(x, dim=1)
            return {"parts": list(parts), "n": 3, "none": None}, (largest, place), more

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            found, (largest, _), _ = self.inner(x, scale=2.0, mask=x > 0, more=[x, "text", 2.5])
            return mint.cat(found["parts"], -1).sum() + largest.mean()

    model, x = Model(), row(3, 4)
    return model, lambda: model(x)


@model
def types():
    """Numbers of every type, and tensors without elements or dimensions."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.act = nn.Tanh()

        def construct(self, x):
            y = self.act(x.to(mindspore.float16)).to(mindspore.float32)
            whole = ops.cast(x * 9, mindspore.int32) + ops.cast(x * 9, mindspore.int32)
            wide = ops.cast(x, mindspore.float64) * 0.1
            tiny = ops.cast(x * 3, mindspore.int8) * 2
            truth = mint.logical_and(x > 0, whole > 1)
            brief = ops.cast(x, mindspore.bfloat16) + ops.cast(x, mindspore.bfloat16)
            none = x[:0] * 2
            return (y.sum() + whole.sum() + ops.cast(wide.sum(), mindspore.float32) + tiny.sum() +
                    truth.sum() + ops.cast(brief, mindspore.float32).sum() +
                    ops.concat((none, x)).sum())

    model, x = Model(), row(3, 4)
    return model, lambda: model(x)


@model
def methods():
    """Operators and methods, with numbers and turned round."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(row(4, 4), name="weight")
            self.bias = Parameter(row(4), name="bias", requires_grad=False)

        def construct(self, x):
            y = 2 - x @ self.weight + self.bias
            y = (y * y).sqrt().clamp(0.1, 3.0) / 2 + 1 / (x.abs() + 1)
            y = y.masked_fill(x > 0.9, 0.0).unsqueeze(0).squeeze(0)
            return y.pow(2).mean(-1).max() - y.min() + y.std()

    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def construct(self, x):
            return self.model(x) + self.model(x * 0.5)

    model, x = Outer(), row(3, 4)
    return model, lambda: model(x)


@model
def primitives():
    """Operators as attributes of cells, and lists of cells."""
    class Part(nn.Cell):
        def __init__(self, n):
            super().__init__()
            self.matmul, self.add = ops.MatMul(transpose_b=True), ops.Add()
            self.weight = Parameter(row(n, 4), name="weight")

        def construct(self, x):
            return self.add(self.matmul(x, self.weight), x)

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.parts = nn.CellList([Part(4), Part(4)])
            self.softmax = ops.Softmax(-1)

        def construct(self, x):
            for part in self.parts:
                x = part(x)
            return self.softmax(x)

    model, x = Model(), row(3, 4)
    return model, lambda: (model(x) * x).sum()


@model
def forward_only():
    """Without gradients, a cell inside itself, and two models."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.act = mint.nn.Linear(4, 4), mint.nn.SiLU()

        def construct(self, x):
            return self.act(self.fc(x))

    models = [settled(Model()), settled(Model())]
    x = row(3, 4)
    return models, lambda: models[1](models[0](x)).sum()

@model
def attention():
    """Embedding, layer norm, attention with a mask, and a head that shares the embedding."""
    class Attention(nn.Cell):
        def __init__(self):
            super().__init__()
            self.q, self.k, self.v = (nn.Dense(8, 8) for _ in range(3))
            self.scale = Tensor(0.5, mindspore.float32)

        def construct(self, x, mask=None):
            scores = ops.matmul(self.q(x), self.k(x).swapaxes(-1, -2)) * self.scale
            if mask is not None:
                scores = ops.masked_fill(scores, mask, -1e4)
            return ops.matmul(ops.softmax(scores, axis=-1), self.v(x))

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(10, 8)
            self.norm, self.attention = nn.LayerNorm((8,)), Attention()

        def construct(self, ids):
            mask = ops.triu(ops.ones((4, 4), mindspore.float32), 1).bool()
            x = self.attention(self.norm(self.embedding(ids)), mask=mask)
            return ops.matmul(x, self.embedding.embedding_table.T)

    net, ids = settled(Model()), Tensor(np.arange(8).reshape(2, 4), mindspore.int32)
    return net, lambda: ops.cross_entropy(net(ids).reshape(-1, 10), ids.reshape(-1))


@model
def pooling():
    """Average and adaptive pooling, padding, a group norm and a transposed convolution."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.pad, self.conv = nn.Pad(((0, 0), (0, 0), (1, 1), (1, 1))), nn.Conv2d(2, 4, 3)
            self.norm, self.pool = nn.GroupNorm(2, 4), nn.AvgPool2d(2, 2)
            self.back, self.act = nn.Conv2dTranspose(4, 2, 3), nn.LeakyReLU(0.1)

        def construct(self, x):
            x = self.pool(self.norm(self.conv(self.pad(x))))
            return self.act(self.back(x))

    net, x = settled(Model()), row(2, 2, 6, 6)
    return net, lambda: net(x).mean()


@model
def nested():
    """Cells in cells in cells, of which some are never called."""
    class Leaf(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(row(3, 3), name="weight")

        def construct(self, x):
            return mint.matmul(x, self.weight)

    class Branch(nn.Cell):
        def __init__(self, depth):
            super().__init__()
            self.inner = Branch(depth - 1) if depth else Leaf()
            self.unused = nn.Dense(3, 3)

        def construct(self, x):
            return self.inner(x) + x

    net, x = settled(Branch(3)), row(2, 3)
    return net, lambda: net(x).sum()


@model
def sequential():
    """A SequentialCell in a SequentialCell, one built by names, and an identity."""
    from collections import OrderedDict
    inner = nn.SequentialCell(OrderedDict([("first", nn.Dense(4, 4)), ("second", nn.Sigmoid())]))
    net = settled(nn.SequentialCell(nn.Dense(4, 4), inner, nn.Identity(), nn.Tanh()))
    x = row(3, 4)
    return net, lambda: (net(x) * 2).sum()


@model
def shared():
    """One cell under two names, and one parameter in two cells."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first = nn.Dense(4, 4)
            self.second = self.first
            self.third = nn.Dense(4, 4)
            self.third.weight = self.first.weight
            self.act = nn.ReLU()

        def construct(self, x):
            return self.third(self.act(self.second(self.act(self.first(x)))))

    net, x = settled(Model()), row(3, 4)
    return net, lambda: net(x).sum()


@model
def lists():
    """CellList and CellDict, some of them nested."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.layers = nn.CellList([nn.CellList([nn.Dense(4, 4), nn.ReLU()]),
                                       nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())])
            self.heads = nn.CellDict({"left": nn.Dense(4, 2), "right": nn.Dense(4, 2)})

        def construct(self, x):
            for layer in self.layers[0]:
                x = layer(x)
            x = self.layers[1](x)
            return self.heads["left"](x) * self.heads["right"](x)

    net, x = settled(Model()), row(3, 4)
    return net, lambda: net(x).mean()


@model
def several_calls():
    """Cells that are called three times, with inputs that need gradients from the second on."""
    class Cell(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = mint.nn.Linear(4, 4)

        def construct(self, x, times=1):
            return self.fc(x) * times

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.cell = Cell()

        def construct(self, x):
            for times in range(1, 4):
                x = self.cell(x, times=times)
            return x

    net, x = settled(Model()), row(2, 4)
    return net, lambda: net(x).sum()


@model
def keywords():
    """Tensors and other values by keyword, and defaults."""
    class Inner(nn.Cell):
        def construct(self, x, y=None, *, scale=1, names=("a", "b"), table=None):
            out = x * scale
            return out if y is None else out + y

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def construct(self, x):
            a = self.inner(x, scale=2.5, table={"one": 1, "t": x})
            b = self.inner(x=a, y=mint.mul(input=x, other=3), names=["n"])
            return self.inner(b, None, scale=True)

    net, x = Model(), row(2, 4)
    return net, lambda: mint.sum(input=net(x), dim=None, keepdim=False)


@model
def outputs():
    """Results that are tuples, lists, dicts, nested, None and no tensors at all."""
    class Tuple(nn.Cell):
        def construct(self, x):
            return x * 2, (x + 1, 3, None), "text"

    class Table(nn.Cell):
        def construct(self, x):
            return {"a": x * 2, "b": [x, {"c": x - 1}], "n": 4}

    class List(nn.Cell):
        def construct(self, x):
            return [x.sum(), x.mean()]

    class Nothing(nn.Cell):
        def construct(self, x):
            x.abs()

    class Single(nn.Cell):
        def construct(self, x):
            return (x * 3,)

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.tuple, self.table, self.list = Tuple(), Table(), List()
            self.nothing, self.single = Nothing(), Single()

        def construct(self, x):
            a, (b, _, _), _ = self.tuple(x)
            self.nothing(x)
            table = self.table(a + b)
            total, mean = self.list(table["a"])
            return self.single(total + mean + table["b"][1]["c"])[0]

    net, x = Model(), row(2, 3)
    return net, lambda: net(x).sum()


@model
def in_place():
    """Functions that write to their arguments, and items that are set."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = Parameter(row(3), name="weight")

        def construct(self, x):
            y = x * self.weight
            y.add_(Tensor(np.float32([1, 1, 1])))
            y += 2
            y *= 0.5
            y -= x
            return y

    net, x = Model(), row(2, 3)
    return net, lambda: net(x).sum()


@model
def indexing():
    """Slices, masks and numbers as indices, and what joins them again."""
    class Model(nn.Cell):
        def construct(self, x):
            parts = [x[0], x[:, 1:3].sum(0), x[..., -1].mean(), x[x > 0].sum()]
            joined = ops.concat((parts[0].reshape(-1), parts[1].reshape(-1)))
            stacked = ops.stack((parts[2], parts[3]))
            return joined.sum() + stacked.sum()

    net, x = Model(), row(3, 4)
    return nn.SequentialCell(net), lambda: net(x)


@model
def methods_of_tensors():
    """Methods that return shapes, numbers, other types and several tensors."""
    class Model(nn.Cell):
        def construct(self, x):
            y = x.reshape(4, 3).permute(1, 0).flatten().view(2, 6).squeeze().unsqueeze(0)
            y = y.exp().log().sqrt().square().pow(2).abs().neg() + y.sin() * y.cos() - y.tanh()
            z = y.split(3, 2) if hasattr(y, "split") else (y,)
            values, places = y.topk(2)
            t = y.tile((1, 2)).sum(-1).mean() + y.cumsum(-1).max() - y.min() + values.prod()
            return t + z[0].std() + y.norm() * 0 if False else t + z[0].std() + places.sum() * 0

    net, x = nn.SequentialCell(Model()), row(3, 4)
    return net, lambda: net(x)


@model
def operators():
    """All operators of Python, with tensors and with numbers on either side."""
    class Model(nn.Cell):
        def construct(self, x):
            y = (x + 1) - (1 - x) * (2 * x) / (x * x + 1) + x ** 2 + (-x) + abs(x)
            z = (x > 0) & (x < 0.5) | (x == 0) ^ (x != 0)
            w = (x >= 0).astype(mindspore.int32) + (x <= 0).astype(mindspore.int32)
            v = w // 2 + w % 2
            m = x @ x.T
            return y.sum() + z.sum() + v.sum() + m.sum() + (2.0 / (y * y + 1)).sum()

    net, x = nn.SequentialCell(Model()), row(3, 4)
    return net, lambda: net(x)


@model
def parameters_only():
    """Cells that have parameters of every kind and no cells in them."""
    class Affine(nn.Cell):
        def __init__(self):
            super().__init__()
            self.scale = Parameter(row(4), name="scale")
            self.shift = Parameter(row(4), name="shift", requires_grad=False)
            self.single = Parameter(Tensor(0.5, mindspore.float32), name="single")

        def construct(self, x):
            return (x * self.scale + self.shift) * self.single

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second = Affine(), Affine()

        def construct(self, x):
            return self.second(self.first(x))

    net, x = Model(), row(3, 4)
    return net, lambda: net(x).sum()


@model
def integers():
    """Tensors of whole numbers of all widths, and of truths."""
    class Model(nn.Cell):
        def construct(self, x):
            total = x.sum()
            for kind in (mindspore.int8, mindspore.int16, mindspore.int32, mindspore.int64,
                         mindspore.uint8, mindspore.uint16, mindspore.uint32, mindspore.uint64):
                y = ops.cast(x.abs() * 100, kind)
                total = total + ops.cast(y, mindspore.float32).sum()
            truth = ops.logical_and(x > 0, x < 0.9)
            return total + ops.cast(truth, mindspore.float32).sum()

    net, x = nn.SequentialCell(Model()), row(5, 7)
    return net, lambda: net(x)


@model
def halves():
    """A model in half precision."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Dense(6, 6), nn.GELU()

        def construct(self, x):
            return self.act(self.fc(x))

    net = settled(Model()).to_float(mindspore.float16)
    x = row(4, 6).astype(mindspore.float16)
    return net, lambda: ops.cast(net(x), mindspore.float32).sum()


@model
def brains():
    """bfloat16 through some functions, and back."""
    class Model(nn.Cell):
        def construct(self, x):
            y = ops.cast(x, mindspore.bfloat16)
            z = ops.cast(y, mindspore.float32) * 3
            return z.sum() + ops.cast(y.reshape(-1), mindspore.float32).sum()

    net, x = nn.SequentialCell(Model()), row(7, 9)
    return net, lambda: net(x)


@model
def empty():
    """Tensors without elements."""
    class Model(nn.Cell):
        def construct(self, x):
            none = x[:0]
            joined = ops.concat((none, x))
            none = ops.cast(none, mindspore.float16).astype(mindspore.float32) + 1
            return joined.sum() + none.shape[0]

    net, x = nn.SequentialCell(Model()), row(3, 4)
    return net, lambda: net(x)


@model
def not_numbers():
    """NaN and infinities, which some figures have and some have not."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def construct(self, x):
            y = self.act(x / 0.0)
            z = ops.log(x - 5)
            return ops.where(ops.isnan(z), x, z).sum() + ops.nan_to_num(y, 0.0, 1.0, -1.0).sum()

    net, x = Model(), row(3, 4)
    return net, lambda: net(x)


@model
def losses():
    """Losses of nn and of ops, labels of whole numbers."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.mse, self.l1, self.smooth = nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss()
            self.bce = nn.BCEWithLogitsLoss()

        def construct(self, x, y):
            total = self.mse(x, y) + self.l1(x, y) + self.smooth(x, y).mean()
            total = total + self.bce(x, ops.sigmoid(y))
            return total + ops.nll_loss(ops.log_softmax(x, -1), Tensor([0, 1, 2], mindspore.int32))

    net, x, y = Model(), row(3, 4), row(12, 1).reshape(3, 4) * 0.5
    return net, lambda: net(x, y)


@model
def recurrent():
    """An LSTM and a GRU cell by hand, over time."""
    class Step(nn.Cell):
        def __init__(self):
            super().__init__()
            self.up, self.back = nn.Dense(4, 12), nn.Dense(4, 12)

        def construct(self, x, h):
            a, b = ops.split(self.up(x), 4, 1), ops.split(self.back(h), 4, 1)
            r, z = ops.sigmoid(a[0] + b[0]), ops.sigmoid(a[1] + b[1])
            n = ops.tanh(a[2] + r * b[2])
            return (1 - z) * n + z * h

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.step = Step()

        def construct(self, x):
            h = ops.zeros((2, 4), mindspore.float32)
            for at in range(3):
                h = self.step(x[at], h)
            return h

    net, x = settled(Model()), row(3, 2, 4)
    return net, lambda: net(x).sum()


@model
def own_gradient():
    """A cell with a gradient of its own, and one that stops it."""
    class Own(nn.Cell):
        def construct(self, x):
            return x * x

        def bprop(self, x, out, grad):
            return (grad * 7,)

    class Stop(nn.Cell):
        def construct(self, x):
            return ops.stop_gradient(x) * x

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.own, self.stop = Own(), Stop()
            self.weight = Parameter(row(4), name="weight")

        def construct(self, x):
            return self.stop(self.own(x * self.weight))

    net, x = Model(), row(3, 4)
    return net, lambda: net(x).sum()


@model
def hooked():
    """Hooks of the program's own, on cells, on tensors, and HookBackward."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Dense(4, 4), nn.ReLU()
            self.seen = []
            self.fc.register_forward_hook(lambda cell, args, out: self.seen.append(out) and None)
            self.act.register_forward_pre_hook(lambda cell, args: (args[0] * 2,))
            self.watch = ops.HookBackward(lambda grad: (grad[0] * 3,))

        def construct(self, x):
            return self.act(self.watch(self.fc(x)))

    net, x = settled(Model()), row(3, 4)
    return net, lambda: net(x).sum()


@model
def conditions():
    """The way depends on a value."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.left, self.right = nn.Dense(4, 4), nn.Dense(4, 4)

        def construct(self, x):
            if x.sum() > 0:
                x = self.left(x)
            while x.abs().max() > 1:
                x = x / 2
            return self.right(x)

    net, x = settled(Model()), row(3, 4)
    return net, lambda: net(x).sum()


@model
def mint_functions():
    """Functions of mint with results of several kinds."""
    class Model(nn.Cell):
        def construct(self, x):
            values, places = ops.sort(x, -1)
            a, b = mint.split(values, 2, dim=-1)
            y = mint.where(a > b, a, b) + mint.clamp(a, -0.5, 0.5) + mint.square(b)
            y = mint.concat((y, mint.flip(y, (0,))), dim=0)
            y = mint.reshape(mint.permute(y, (1, 0)), (-1,))
            y = mint.exp(y) + mint.abs(y) - mint.maximum(y, mint.mul(y, 0))
            return mint.mean(y) + mint.sum(mint.concat((y, y))) + places.sum() * 0

    net, x = nn.SequentialCell(Model()), row(3, 4)
    return net, lambda: net(x)


@model
def mint_layers():
    """Cells of mint.nn and functions of mint.nn.functional that have kernels for the CPU."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.up, self.down = mint.nn.Linear(4, 8), mint.nn.Linear(8, 4, bias=False)
            self.act, self.drop = mint.nn.ReLU(), mint.nn.Identity()

        def construct(self, x):
            x = F.silu(self.act(self.up(x)))
            x = F.softmax(self.drop(self.down(x)), dim=-1)
            return F.relu(F.tanh(F.hardswish(F.linear(x, self.down.weight.T))))

    net, x = settled(Model()), row(3, 4)
    return net, lambda: net(x).sum()


@model
def chunks():
    """Two parts of a model, as pipelines hand them to start()."""
    class Part(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Dense(4, 4), nn.Tanh()

        def construct(self, x):
            return self.act(self.fc(x))

    parts = [settled(Part()), settled(Part())]
    x = row(3, 4)
    return parts, lambda: parts[1](parts[0](x)).sum()


# ---- whole networks ----------------------------------------------------------------------------


def network_and_inputs(name):
    """A network of graph_runs.py: transformer, GRU, LSTM, experts, U-Net, GAN, ViT, VAE, BERT and others."""
    net = graph_runs.NETWORKS[name]("none")
    drawn = graph_runs.values([(p.name, p.shape) for p in net.trainable_params()])
    for parameter in net.trainable_params():
        parameter.set_data(Tensor(drawn[parameter.name]))
    return net, [Tensor(value) for value in graph_runs.INPUTS[name]()]


def network(name):
    def make():
        net, args = network_and_inputs(name)
        return net, lambda: (net(*args) ** 2).mean()
    return make


for each in graph_runs.NETWORKS:
    if each not in graph_runs.NATIVE:  # those bring a loss of their own
        MODELS["network_" + each] = network(each)
