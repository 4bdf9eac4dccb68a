# SPDX-License-Identifier: MIT
"""Small programs of all the kinds that people train: what torch_oracle.py dumps with both tools.

Each takes torch and makes (model, step): a step of it is collected.
"""


def recurrent(torch):
    """Gated and plain ones, with tuples as results."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(16, 6)
            self.rnn = nn.RNN(6, 5, num_layers=2, batch_first=True, bidirectional=True)
            self.gru, self.cell = nn.GRU(10, 4), nn.RNNCell(4, 3)

        def forward(self, ids):
            out, hidden = self.rnn(self.embed(ids))
            out, _ = self.gru(out)
            return self.cell(out[:, -1]), hidden.sum() + hidden.mean()

    model, ids = Model(), torch.arange(12).reshape(3, 4)

    def step():
        out, extra = model(ids)
        (out.sum() + extra).backward()

    return model, step


def attention(torch):
    """The framework's own, with masks, keywords and results that are None."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(8, 2, batch_first=True)
            self.norm, self.drop = nn.LayerNorm(8), nn.Dropout(0.0)

        def forward(self, x, mask=None):
            out, weights = self.attn(x, x, x, attn_mask=mask, need_weights=False)
            return {"out": self.norm(x + self.drop(out)), "weights": weights, "n": 3}

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Model()
            # Without a name the layer holds relu from before the debugger, whose calls the official tool misses.
            self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, activation="relu", batch_first=True)

        def forward(self, x):
            mask = torch.triu(torch.ones(4, 4, dtype=torch.bool), diagonal=1)
            return self.layer(self.inner(x=x, mask=mask)["out"])

    model, x = Outer(), torch.linspace(-1, 1, 64).reshape(2, 4, 8).requires_grad_()

    def step():
        model(x).pow(2).sum().backward()

    return model, step


def convolutions(torch):
    """One, two and three dimensions, transposed, grouped, pooled and normalised, in place."""
    nn, f = torch.nn, torch.nn.functional
    model = nn.Module()
    model.body = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, groups=2), nn.BatchNorm2d(4), nn.ReLU(inplace=True),
        nn.MaxPool2d(2), nn.ConvTranspose2d(4, 2, 2, stride=2), nn.GroupNorm(2, 2),
        nn.LeakyReLU(0.1, inplace=True), nn.AdaptiveAvgPool2d(2))
    model.line, model.room = nn.Conv1d(4, 2, 1), nn.Conv3d(1, 1, 1)
    model.forward = lambda x: model.room(
        model.line(model.body(x).flatten(2).transpose(1, 2))[:, None, None])
    x = torch.linspace(-2, 2, 144).reshape(2, 2, 6, 6)

    def step():
        out = model.forward(f.pad(x, (0, 0), value=1.0))
        f.smooth_l1_loss(out, torch.zeros_like(out)).backward()

    return model, step


def shared(torch):
    """A module in two places, and others that are called again."""
    nn = torch.nn

    class Again(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, depth=2):
            return self.fc(x) if depth == 0 else self.fc(torch.tanh(x)) + x

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.second, self.again = self.first, Again()
            self.many = nn.ModuleList([self.first, nn.Identity()])

        def forward(self, x):
            for one in self.many:
                x = one(x)
            return self.again(self.again(self.second(self.first(x))), depth=0)

    model, x = Model(), torch.linspace(-1, 1, 8).reshape(2, 4)

    def step():
        model(x).sum().backward()

    return model, step


def values(torch):
    """Arguments of every kind."""
    nn = torch.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.keep = nn.Identity()

        def forward(self, x, *args, **kwargs):
            self.keep(x)
            return x

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Model()

        def forward(self, x):
            return self.inner(x, 3, 2.5, True, None, "text", (1, [x, None]), {"a": x, "b": {"c": 1}},
                              size=x.shape, slice=slice(0, None, 2), dtype=torch.float16,
                              device="cpu", nan=float("nan"), big=2**70, both=(1j, {1, 2}))

    model, x = Outer(), torch.tensor([[1.0, float("nan")], [float("inf"), -2.0]])

    def step():
        y = model(x)
        torch.zeros(0, 3).sum(), torch.tensor(5), torch.ones(3, dtype=torch.float64).mean()
        torch.ones(2, dtype=torch.bfloat16) / 3, torch.arange(4).sum(), torch.tensor(True).any()
        torch.stack([y, y.t()])[..., 0], torch.split(y, 1), torch.max(y, dim=0), y[0:1, None]
        torch.complex(x, x).abs(), torch.full((2,), 7, dtype=torch.uint8).float(), y.T.contiguous()
        y.to(torch.float16).to(dtype=torch.float32, memory_format=torch.contiguous_format)
        torch.nn.functional.one_hot(torch.tensor([1, 0]), 3), y.expand(3, 2, 2).sum((0, 1))

    return model, step


def mixed(torch):
    """Automatic mixed precision."""
    nn = torch.nn
    model = nn.Sequential(nn.Sequential(nn.Linear(6, 6), nn.GELU()), nn.Linear(6, 2))
    x = torch.linspace(-1, 1, 12).reshape(2, 6)

    def step():
        with torch.autocast("cpu", dtype=torch.bfloat16):
            out = model(x)
        out.float().sum().backward()

    return model, step


def recomputed(torch):
    """Checkpoints: the forward runs again during the backward.

    From PyTorch 2.1 on it ends with an exception when it has what it needs, after which the official
    tool records nothing more; so all of it runs here."""
    nn = torch.nn
    from contextlib import nullcontext
    from torch.utils import checkpoint as module
    from torch.utils.checkpoint import checkpoint
    is_new = hasattr(module, "set_checkpoint_early_stop")

    def whole():
        return module.set_checkpoint_early_stop(False) if is_new else nullcontext()

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            self.head = nn.Linear(4, 1)

        def forward(self, x):
            x = checkpoint(self.block, x, use_reentrant=True)
            with whole():
                return self.head(checkpoint(self.block, x, use_reentrant=False))

    model, x = Model(), torch.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()

    def step():
        model(x).sum().backward()

    return model, step


def in_place(torch):
    """Operators and functions that write to their arguments."""
    nn, f = torch.nn, torch.nn.functional
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)

    def step():
        y = model(x) * 1
        y += 1
        y *= 2
        y.mul_(0.5).add_(1, alpha=2)
        y[0] = 3
        (y.sum() + f.relu(x * 2, inplace=True).mean()).backward()

    return model, step


def frozen(torch):
    """Parameters without gradients, no_grad, detached parts, and a loss of several heads."""
    nn = torch.nn
    model = nn.ModuleDict({"body": nn.Linear(4, 4), "a": nn.Linear(4, 2), "b": nn.Bilinear(4, 4, 2)})
    model["body"].weight.requires_grad_(False)
    model.forward = lambda x: (model["a"](model["body"](x)), model["b"](x, model["body"](x).detach()))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)

    def step():
        with torch.no_grad():
            model["a"](x)
        first, second = model.forward(x)
        (first.sum() + second.norm()).backward()

    return model, step


ZOO = {f.__name__: f for f in (recurrent, attention, convolutions, shared, values, mixed,
                               recomputed, in_place, frozen)}
