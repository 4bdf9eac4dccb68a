# SPDX-License-Identifier: MIT
"""Our dump of MindSpore programs against the official tool's: see peer_dumps.py.

    mindspore_oracle.py BUILD OFFICIAL [MODEL CONFIG]

It runs in a Python that has mindspore; OFFICIAL is a folder with the package and what it needs.
It takes mint.norm where there is one, which has no kernel for the CPU, so there is another here.
What differs, and why:
  - backward of a cell that is called twice with inputs that need no gradient: it mixes up the two
    calls' inputs and outputs, and here the first has no record
"""
import os
import sys

from peer_dumps import check, run

if len(sys.argv) > 4:
    import mindspore
    import numpy as np
    from mindspore import Tensor, mint, nn, ops
    F = mint.nn.functional
    mint.norm = lambda t: Tensor(np.float32(np.linalg.norm(t.asnumpy().astype(np.float64))))


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


# ---- programs: each makes (model, function of nothing whose gradients are taken) ---------------


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


def block():
    """A transformer's block out of mint, ops and methods."""
    class Block(nn.Cell):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = mint.nn.Linear(8, 24), mint.nn.Linear(8, 8)
            self.norm = mint.nn.LayerNorm((8,))
            self.up, self.down = mint.nn.Linear(8, 16), mint.nn.Linear(16, 8)

        def construct(self, x):
            b, t, d = x.shape
            q, k, v = mint.chunk(self.qkv(self.norm(x)), 3, -1)
            q, k, v = (p.view(b, t, 2, d // 2).transpose(1, 2) for p in (q, k, v))
            weights = F.softmax(mint.matmul(q, k.transpose(-2, -1)) / (d // 2) ** 0.5, dim=-1)
            x = x + self.out(mint.matmul(weights, v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(F.gelu(self.up(self.norm(x))))

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(16, 8)
            self.blocks = nn.SequentialCell(Block(), Block())
            self.head = mint.nn.Linear(8, 16)

        def construct(self, ids):
            return self.head(self.blocks(self.embedding(ids)))

    model, ids = settled(Model()), Tensor(np.arange(12).reshape(2, 6) % 16, mindspore.int32)
    return model, lambda: F.cross_entropy(model(ids).reshape(-1, 16), ids.reshape(-1).to(
        mindspore.int64)) if hasattr(F, "cross_entropy") else ops.cross_entropy(
            model(ids).reshape(-1, 16), ids.reshape(-1))


def convolutions():
    """With running statistics and pooling."""
    model = settled(nn.SequentialCell(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(),
                                      nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(64, 5)))
    x, labels = row(2, 3, 8, 8), Tensor([1, 3], mindspore.int32)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    return model, lambda: loss(model(x), labels)


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
                    truth.sum() + ops.cast(brief.sum(), mindspore.float32) + none.sum() * 0)

    model, x = Model(), row(3, 4)
    return model, lambda: model(x)


def methods():
    """Operators and methods, with numbers and turned round."""
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.weight = mindspore.Parameter(row(4, 4), name="weight")
            self.bias = mindspore.Parameter(row(4), name="bias", requires_grad=False)

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


def primitives():
    """Operators as attributes of cells, and lists of cells."""
    class Part(nn.Cell):
        def __init__(self, n):
            super().__init__()
            self.matmul, self.add = ops.MatMul(transpose_b=True), ops.Add()
            self.weight = mindspore.Parameter(row(n, 4), name="weight")

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


PROGRAMS = {p.__name__: p for p in (dense, block, convolutions, recomputed, values, types, methods,
                                    primitives, forward_only)}


# ---- the training ----------------------------------------------------------------------------


def train(name, config):
    from msprobe.mindspore import PrecisionDebugger
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    debugger = PrecisionDebugger(config_path=config)
    model, loss_of = PROGRAMS[name]()
    models = model if isinstance(model, list) else [model]
    parameters = [p for m in models for p in m.trainable_params()]
    step = loss_of
    if parameters and name != "forward_only":
        step = mindspore.value_and_grad(loss_of, None, parameters)
    total = 0.0
    for _ in range(2):
        debugger.start(model)
        got = step()
        debugger.stop()
        debugger.step()
        loss, gradients = got if isinstance(got, tuple) else (got, ())
        total += float(loss.asnumpy()) + sum(float(abs(g.asnumpy()).sum()) for g in gradients)
    print(total)


CONFIGS = {
    "mix": {"level": "mix"}, "L0": {"level": "L0"}, "L1": {"level": "L1"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "tensor": {"level": "mix", "task": "tensor"},
}


def main():
    build, official = sys.argv[1], sys.argv[2]
    if len(sys.argv) > 4:
        train(sys.argv[3], sys.argv[4])
        return 0
    if not official or run(official, "-c", "import msprobe.mindspore").returncode != 0:
        print("skip mindspore_oracle: no official package (OFFICIAL=folder)")
        return 0
    wanted = os.environ.get("ONLY", "")
    good = [check(__file__, build, official, name, label, keys)
            for name in PROGRAMS for label, keys in CONFIGS.items()
            if wanted in f"{name} {label}"]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
