# SPDX-License-Identifier: MIT
"""Ways in which people write a training in MindSpore, for mindspore_unchanged.py.

WAYS: name -> function of a `Steps`; it trains and yields every number whose bits count.  A step of
the training stands between `steps.begin(model)` and `steps.end()`.
"""
import mindspore
import numpy as np
from mindspore import Parameter, Tensor, jit, mint, nn, ops

F = mint.nn.functional
WAYS = {}
COUNT = 3


def way(func):
    WAYS[func.__name__] = func
    return func


def row(*shape):
    """Numbers without chance in them."""
    count = int(np.prod(shape))
    return Tensor(np.sin(np.arange(count, dtype=np.float32)).reshape(shape))


class Small(nn.Cell):
    """A network of cells, functions and methods."""

    def __init__(self):
        super().__init__()
        self.up, self.act, self.down = nn.Dense(6, 8), nn.ReLU(), nn.Dense(8, 6)
        self.norm = nn.LayerNorm((6,))
        self.scale = Parameter(Tensor(np.float32([0.5])), name="scale")

    def construct(self, x):
        x = self.norm(self.down(self.act(self.up(x)))) + x
        return ops.tanh(x) * self.scale


class Images(nn.Cell):
    """A convolution with running statistics."""

    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
        self.act, self.flat, self.fc = nn.ReLU(), nn.Flatten(), nn.Dense(128, 3)

    def construct(self, x):
        return self.fc(self.flat(self.act(self.bn(self.conv(x)))))


def train(steps, model, loss_of, make=None):
    """The usual loop of a function; yields losses, gradients, and parameters in the end."""
    optimizer = (make or (lambda p: nn.Momentum(p, 0.05, 0.9)))(model.trainable_params())
    gradients_of = mindspore.value_and_grad(loss_of, None, optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        loss, gradients = gradients_of()
        optimizer(gradients)
        steps.end()
        yield loss
        yield from gradients
    yield from model.get_parameters()


# ---- function by function -----------------------------------------------------------------


@way
def functions(steps):
    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def convolutions(steps):
    model, x, y = Images(), row(2, 1, 8, 8), Tensor([0, 2], mindspore.int32)
    model.set_train()
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    yield from train(steps, model, lambda: loss(model(x), y),
                     lambda p: nn.Adam(p, 0.01, weight_decay=0.1))


@way
def dropout(steps):
    class Dropping(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small, self.drop = Small(), nn.Dropout(p=0.5)

        def construct(self, x):
            return mint.mul(ops.dropout(self.drop(self.small(x)), 0.3), ops.rand_like(x))

    model, x = Dropping(), row(4, 6)
    model.set_train()
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def written_in_place(steps):
    model, x = Small(), row(4, 6)

    def loss_of():
        y = model(x) * 1
        y.add_(row(4, 6))
        y[1:3] += 1
        y[0] = y[1] * 2
        y.mul_(2)
        z = y.view(6, 4)
        z[0, 0] = 3
        return (z.transpose(0, 1)[1:] ** 2).sum()

    yield from train(steps, model, loss_of)


@way
def views(steps):
    model, x = Small(), row(4, 6)

    def loss_of():
        y = model(x)
        first, second = mint.chunk(y, 2, -1)
        parts = ops.split(y, 2)
        return (first * second).sum() + (parts[0].T.broadcast_to((6, 2)) ** 2).sum() + \
            mint.narrow(y, 0, 1, 2).reshape(-1)[2:7].sum()

    yield from train(steps, model, loss_of)


class Own(nn.Cell):
    """A cell with a backward of its own, which is not that of its function."""

    def construct(self, x):
        return ops.exp(x) * 2

    def bprop(self, x, out, dout):
        return (dout * out * 3,)


class WithOwn(nn.Cell):
    def __init__(self):
        super().__init__()
        self.small, self.own = Small(), Own()

    def construct(self, x):
        return self.own(self.small(x))


@way
def own_gradient(steps):
    model, x = WithOwn(), row(4, 6)
    yield from train(steps, model, lambda: model(x).sum())


@way
def own_function(steps):
    from mindspore.common._grad_function import _Function

    class Cube(_Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            x, = ctx.saved_tensors
            return grad * x * x * 3

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: Cube.apply(model(x)).sum())


class Recomputed(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first, self.second, self.drop = Small(), Small(), nn.Dropout(p=0.2)
        self.first.recompute()

    def construct(self, x):
        return self.second(self.drop(self.first(x)))


@way
def recomputed(steps):
    model, x = Recomputed(), row(4, 6)
    model.set_train()
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def recomputed_function(steps):
    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (mindspore.recompute(model, x) ** 2).mean())


@way
def accumulated(steps):
    model, x = Small(), row(4, 6)
    optimizer = nn.SGD(model.trainable_params(), 0.1)
    gradients_of = mindspore.value_and_grad(lambda t: (model(t) ** 2).mean(), None,
                                            optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        total = None
        for part in range(3):
            loss, gradients = gradients_of(x * (part + 1))
            total = gradients if total is None else [a + b for a, b in zip(total, gradients)]
            yield loss
        optimizer(tuple(total))
        steps.end()
        yield from total
    yield from model.get_parameters()


def _twice_tanh(t):
    return ops.tanh(t) * 2


def _tanh_sums(t):
    return ops.tanh(t).sum(0)


def _mixed(a, b):
    return ops.tanh(a) * b + a.sum()


@way
def transforms(steps):
    """Some of them compile what they are given."""
    model, x = Small(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        yield mindspore.grad(lambda t: (model(t) ** 2).sum())(x)
        yield mindspore.grad(lambda a, b: (a * b).sum(), (0, 1))(x, x)
        yield mindspore.jvp(_twice_tanh, x, row(4, 6) * 0.5)
        yield mindspore.vjp(_twice_tanh, x)[1](x)
        yield mindspore.jacrev(_tanh_sums)(x)
        steps.end()


@way
def vectorised(steps):
    model, x = Small(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        yield mindspore.vmap(_mixed)(x, x)
        yield ops.vmap(_twice_tanh, in_axes=1, out_axes=1)(x)
        steps.end()


@way
def second_order(steps):
    x = row(4, 6)
    for _ in range(COUNT):
        steps.begin(Small())
        yield mindspore.grad(mindspore.grad(lambda t: (ops.sin(t) * t).sum()))(x)
        yield ops.grad(ops.grad(ops.tanh))(row(1))
        steps.end()


@way
def hooks_of_the_program(steps):
    model, x, seen = Small(), row(4, 6), []
    model.up.register_forward_hook(lambda cell, args, out: out * 2)
    model.down.register_forward_pre_hook(lambda cell, args: (args[0] + 1,))
    model.act.register_backward_hook(lambda cell, grad_in, grad_out: (grad_in[0] * 3,))
    model.norm.register_backward_pre_hook(lambda cell, grad_out: grad_out[0] * 2)
    model.up.weight.register_hook(lambda grad: grad * 0.5)

    def loss_of():
        y = model(x)
        y.register_hook(lambda grad: seen.append(grad))
        return (y ** 2).mean()

    yield from train(steps, model, loss_of)
    yield from seen


@way
def without_gradients(steps):
    model, x = Small(), row(4, 6)
    for value in train(steps, model, lambda: (model(x) ** 2).mean()):
        yield value
        yield model(x)
        yield ops.stop_gradient(model(x)) * 2


@way
def recurrent(steps):
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gru, self.fc = nn.GRU(6, 5, batch_first=True), nn.Dense(5, 2)

        def construct(self, x):
            return self.fc(self.gru(x)[0])

    model, x = Model(), row(2, 3, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def saved_by_hand(steps):
    model, x = Small(), row(4, 6)

    def loss_of():
        y = model(x)
        steps.save(y, "y")
        steps.save({"parameter": model.scale, "also": [y, 1]}, "more")
        return (y * model.scale).sum()

    yield from train(steps, model, loss_of)


# ---- mixed precision ------------------------------------------------------------------------


def mixed(level):
    def run(steps):
        from mindspore import amp
        model, x = amp.auto_mixed_precision(Small(), level), row(4, 6)
        scaler = amp.DynamicLossScaler(1024, 2, 2)
        optimizer = nn.Adam(model.trainable_params(), 0.01)
        gradients_of = mindspore.value_and_grad(
            lambda: scaler.scale((model(x).to(mindspore.float32) ** 2).mean()), None,
            optimizer.parameters)
        for _ in range(COUNT):
            steps.begin(model)
            loss, gradients = gradients_of()
            gradients = scaler.unscale(gradients)
            is_finite = amp.all_finite(gradients)
            scaler.adjust(is_finite)
            optimizer(gradients)
            steps.end()
            yield scaler.unscale(loss)
            yield from gradients
        yield from model.get_parameters()
    run.__name__ = "mixed_" + level.lower()
    return run


for each in ("O0", "O1", "O2", "O3", "auto"):
    way(mixed(each))


@way
def scaled_by_the_framework(steps):
    model, x, y = Small(), row(4, 6), row(4, 6) * 0.1
    optimizer = nn.Momentum(model.trainable_params(), 0.05, 0.9)
    whole = mindspore.amp.build_train_network(model, optimizer, nn.MSELoss(), level="O2",
                                              loss_scale_manager=mindspore.amp.FixedLossScaleManager(
                                                  64.0, drop_overflow_update=False))
    whole.set_train()
    for _ in range(COUNT):
        steps.begin(model)
        yield whole(x, y)
        steps.end()
    yield from model.get_parameters()


# ---- loops of the framework -------------------------------------------------------------------


class _Calls(mindspore.train.Callback):
    """Steps of Model.train."""

    def __init__(self, steps, model):
        super().__init__()
        self.steps, self.model, self.losses = steps, model, []

    def on_train_step_begin(self, run_context):
        self.steps.begin(self.model)

    def on_train_step_end(self, run_context):
        self.steps.end()
        self.losses.append(run_context.original_args().net_outputs)


def loop(sink):
    def run(steps):
        model = Small()
        data = mindspore.dataset.NumpySlicesDataset(
            {"x": row(12, 6).asnumpy(), "y": row(12, 6).asnumpy() * 0.1}, shuffle=True).batch(4)
        whole = mindspore.train.Model(model, nn.MSELoss(), nn.Adam(model.trainable_params(), 0.01))
        calls = _Calls(steps, model)
        whole.train(2, data, callbacks=[calls, mindspore.train.LossMonitor(100)],
                    dataset_sink_mode=sink)
        yield from calls.losses
        yield from model.get_parameters()
    return run


WAYS["loop"], WAYS["loop_sink"] = loop(False), loop(True)


# ---- a part is compiled -----------------------------------------------------------------------


@way
def jit_function(steps):
    @jit
    def compiled(x):
        return ops.tanh(x) * mint.exp(x).sum() + x.abs()

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_of_what_the_program_imported(steps):
    """Names that were looked up while functions were dumped."""
    from mindspore.mint import exp
    from mindspore.ops import softmax, tanh

    @jit
    def compiled(x):
        return softmax(tanh(x), -1) + exp(x)

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_method(steps):
    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small, self.fc = Small(), mint.nn.Linear(6, 6)

        @jit
        def part(self, x):
            return F.silu(self.fc(self.small(x))) + x

        def construct(self, x):
            return self.part(self.small(x)) * 2

    model, x = Model(), row(4, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def jit_construct(steps):
    class Part(Small):
        @jit
        def construct(self, x):
            return ops.tanh(self.down(self.act(self.up(x)))) * self.scale

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.before, self.part, self.after = Small(), Part(), nn.Dense(6, 3)

        def construct(self, x):
            return self.after(self.part(self.before(x)))

    model, x = Model(), row(4, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def jit_model(steps):
    model, x = Small(), row(4, 6)
    model.construct = jit(model.construct)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def jit_forward(steps):
    model, x = Small(), row(4, 6)

    @jit
    def forward():
        return (model(x) ** 2).mean()

    yield from train(steps, model, forward)


@way
def jit_step(steps):
    model, x = Small(), row(4, 6)
    optimizer = nn.Momentum(model.trainable_params(), 0.05, 0.9)

    def loss_of(t):
        return (model(t) ** 2).mean()

    gradients_of = mindspore.value_and_grad(loss_of, None, optimizer.parameters)

    @jit
    def step(t):
        loss, gradients = gradients_of(t)
        optimizer(gradients)
        return loss, gradients

    for _ in range(COUNT):
        steps.begin(model)
        loss, gradients = step(x)
        steps.end()
        yield loss
        yield from gradients
    yield from model.get_parameters()


@way
def jit_and_back(steps):
    """The same functions compiled and not, shapes that change, and what is compiled before a step."""
    @jit
    def compiled(x):
        return ops.tanh(x) * x.sum()

    model, x = Small(), row(4, 6)
    yield compiled(x)
    for rows in (2, 4, 4, 3):
        steps.begin(model)
        yield mindspore.grad(lambda t: (compiled(ops.tanh(model(t))) + ops.tanh(compiled(t))).sum())(
            x[:rows])
        yield mindspore.grad(compiled)(x[:rows])
        steps.end()
        yield compiled(x[:rows])


@way
def jit_with_conditions(steps):
    @jit
    def compiled(x):
        y = x * 1
        for at in range(3):
            y = ops.tanh(y) + at
        while y.sum() < 30:
            y = y * 2
        if y.max() > 5:
            return y
        return ops.relu(y)

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_own_gradient(steps):
    class Own(nn.Cell):
        def construct(self, x):
            return ops.exp(x) * 2

        def bprop(self, x, out, dout):
            return (dout * ops.tanh(out) * 3,)

    own, model, x = Own(), Small(), row(4, 6)

    @jit
    def compiled(t):
        return own(t).sum()

    yield from train(steps, model, lambda: compiled(model(x)))


@way
def jit_that_falls_back(steps):
    """What the compiler leaves to Python."""
    @jit
    def compiled(x):
        shift = Tensor(np.full((6,), 0.25, np.float32))
        return ops.tanh(x + shift) + mint.abs(x)

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_dropout(steps):
    model, x, drop = Small(), row(4, 6), nn.Dropout(p=0.5)
    drop.set_train()

    @jit
    def compiled(t):
        return drop(t) + ops.dropout(t, 0.5)

    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_by_bytecode(steps):
    @jit(capture_mode="bytecode")
    def compiled(x):
        return ops.tanh(x) * mint.exp(x).sum() + x.abs()

    model, x = Small(), row(4, 6)
    yield from train(steps, model, lambda: (compiled(model(x)) ** 2).mean())


@way
def jit_by_trace(steps):
    @jit(capture_mode="trace")
    def compiled(x):
        return ops.tanh(x) * mint.exp(x) + x.abs()

    model, x = Small(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        yield compiled(model(x))
        steps.end()


# ---- everything is compiled -------------------------------------------------------------------


def one_step_cell(steps, model):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    x, y = row(4, 6), row(4, 6) * 0.1
    optimizer = nn.Momentum(model.trainable_params(), 0.05, 0.9)
    whole = nn.TrainOneStepCell(nn.WithLossCell(model, nn.MSELoss()), optimizer)
    whole.set_train()
    for _ in range(COUNT):
        steps.begin(model)
        yield whole(x, y)
        steps.end()
    yield from model.get_parameters()


@way
def graph_one_step_cell(steps):
    yield from one_step_cell(steps, Small())


@way
def graph_own_gradient(steps):
    yield from one_step_cell(steps, WithOwn())


@way
def graph_recomputed(steps):
    yield from one_step_cell(steps, Recomputed())


@way
def graph_vectorised(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield from vectorised(steps)


@way
def graph_convolutions(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    model, x, y = Images(), row(2, 1, 8, 8), Tensor([0, 2], mindspore.int32)
    loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
    whole = nn.TrainOneStepCell(nn.WithLossCell(model, loss), nn.Adam(model.trainable_params(), 0.01))
    whole.set_train()
    for _ in range(COUNT):
        steps.begin(model)
        yield whole(x, y)
        steps.end()
    yield from model.get_parameters()


@way
def graph_functions(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    model, x = Small(), row(4, 6)

    def loss_of():
        return (model(x) ** 2).mean()

    yield from train(steps, model, loss_of)


@way
def graph_loop(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield from loop(False)(steps)


@way
def graph_loop_sink(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield from loop(True)(steps)


@way
def graph_mixed(steps):
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    yield from scaled_by_the_framework(steps)


@way
def graph_then_functions(steps):
    model, x = Small(), row(4, 6)

    def loss_of(t):
        return (model(t) ** 2).sum()

    for mode in (mindspore.GRAPH_MODE, mindspore.PYNATIVE_MODE) * 2:
        mindspore.set_context(mode=mode)
        steps.begin(model)
        yield model(x)
        yield mindspore.grad(loss_of)(x)
        steps.end()
