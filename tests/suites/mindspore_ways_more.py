# SPDX-License-Identifier: MIT
"""Further ways for mindspore_unchanged.py: gradients of gradients, cells that grow, graphs within functions within
graphs, loops of the framework that end early, generators, and hooks that raise."""
import functools

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, jit, nn, ops

from mindspore_ways import COUNT, Small, row, train, way


@way
def a_gradient_for_each_example(steps):
    """vmap over grad, and a Jacobian."""
    model, weight, x = Small(), row(6), row(4, 6)

    def loss_of(w, one):
        return ops.tanh(w * one).sum()

    def turned(w):
        return ops.sin(w) * 2

    for _ in range(COUNT):
        steps.begin(model)
        each = mindspore.vmap(mindspore.grad(loss_of), (None, 0))(weight, x)
        jacobian = mindspore.jacrev(turned)(weight)
        steps.end()
        yield each
        yield jacobian
        weight = weight - 0.1 * each.mean(0)
    yield weight


class _Halved(nn.Cell):
    """A cell whose backward is its own and calls functions."""

    def construct(self, x):
        return ops.exp(x * 0.1)

    def bprop(self, x, out, dout):
        return (ops.tanh(dout) * out * 0.5,)


@way
def own_gradients_in_recomputed_cells(steps):
    class Deep(nn.Cell):
        def __init__(self):
            super().__init__()
            self.blocks = nn.CellList([Small(), Small()])
            self.own = _Halved()
            for block in self.blocks:
                block.recompute()

        def construct(self, x):
            for block in self.blocks:
                x = self.own(block(x))
            return x

    model, x = Deep(), row(4, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean())


@way
def jit_in_a_cell_in_a_jit(steps):
    @jit
    def inner(t):
        return ops.tanh(t) * 2

    class Middle(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(6, 6)

        def construct(self, t):
            return inner(self.fc(t)) + ops.relu(t)

    middle, x = Middle(), row(4, 6)

    @jit
    def outer(t):
        return ops.sigmoid(middle(t)) + inner(t)

    yield from train(steps, middle, lambda: (outer(x) + middle(x)).mean())


def jit_of_level(level):
    def run(steps):
        model, x = Small(), row(4, 6)

        @jit(jit_level=level)
        def forward(t):
            return model(t) * 2

        yield from train(steps, model, lambda: (forward(x) ** 2).mean())
    run.__name__ = "jit_level_" + level.lower()
    return run


for each in ("O0", "O1"):
    way(jit_of_level(each))


@way
def cells_added_and_removed_between_steps(steps):
    class Growing(nn.Cell):
        def __init__(self):
            super().__init__()
            self.blocks = nn.CellList([nn.Dense(6, 6)])

        def construct(self, x):
            for block in self.blocks:
                x = ops.tanh(block(x))
            return x

    model, x = Growing(), row(4, 6)
    changes = (lambda: model.blocks.append(Small()), lambda: model.blocks.insert(0, nn.Dense(6, 6)),
               lambda: model.blocks.__delitem__(1))
    for change in changes:
        mindspore.set_seed(5)
        change()
        parameters = mindspore.ParameterTuple(model.trainable_params())
        steps.begin(model)
        loss, gradients = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None, parameters)()
        for parameter, gradient in zip(parameters, gradients):
            ops.assign_sub(parameter, gradient * 0.1)
        steps.end()
        yield loss
        yield from gradients


@way
def gradients_added_up_in_parameters(steps):
    model, x = Small(), row(8, 6)
    sums = [Parameter(ops.zeros_like(p), name="sum." + p.name, requires_grad=False) for p in model.trainable_params()]
    optimizer = nn.Adam(model.trainable_params(), 0.01)
    gradients_of = mindspore.value_and_grad(lambda t: (model(t) ** 2).mean(), None, optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        for part in ops.split(x, 2):
            loss, gradients = gradients_of(part)
            for kept, gradient in zip(sums, gradients):
                ops.assign_add(kept, gradient / 4)
            yield loss
        optimizer(tuple(kept.value() for kept in sums))
        for kept in sums:
            yield kept
            kept.set_data(ops.zeros_like(kept))
        steps.end()
    yield from model.get_parameters()


@way
def batches_and_layers_from_generators(steps):
    class Lazy(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Dense(6, 6), Small()

        def _layers(self):
            yield self.a
            yield functools.partial(ops.clamp, min=-0.5, max=0.5)
            yield self.b

        def construct(self, x):
            for layer in self._layers():
                x = layer(x)
            return x

    model = Lazy()
    gradients_of = mindspore.value_and_grad(lambda t: model(t).sum(), None, model.trainable_params())
    for batch in (row(n, 6) * 0.3 for n in (2, 3, 4)):
        steps.begin(model)
        loss, gradients = gradients_of(batch)
        steps.end()
        yield loss
        yield from gradients


class _Ends(mindspore.Callback):
    """Changes the rate in each step and ends the training early."""

    def step_end(self, run_context):
        known = run_context.original_args()
        known.optimizer.learning_rate.set_data(Tensor(0.1 / known.cur_step_num, mindspore.float32))
        if known.cur_step_num == 3:
            run_context.request_stop()


@way
def loop_that_ends_early(steps):
    from mindspore import dataset
    model = nn.Dense(6, 2)
    data = dataset.NumpySlicesDataset((np.sin(np.arange(48, dtype=np.float32)).reshape(8, 6),
                                       np.zeros((8, 2), np.float32)), shuffle=False).batch(1)
    optimizer = nn.Momentum(model.trainable_params(), 0.1, 0.9)

    class Around(mindspore.Callback):
        def step_begin(self, run_context):
            steps.begin(model)

        def step_end(self, run_context):
            steps.end()

    loop = mindspore.Model(model, nn.MSELoss(), optimizer)
    loop.train(2, data, callbacks=[Around(), _Ends()], dataset_sink_mode=False)
    yield optimizer.learning_rate
    yield from model.get_parameters()


@way
def views_of_views_written_in_place(steps):
    model = Small()

    def loss_of():
        x = row(4, 6) * 1.0
        part = x[1:3]
        part[:, 2:4] = part[:, 0:2] * 2
        x[0].add_(1.0)
        y = model(x)
        y[2:, 1] = 0.5
        return (y.view(2, 12).transpose(0, 1)[3:] ** 2).mean()

    yield from train(steps, model, loss_of)


@way
def hooks_that_raise(steps):
    """A hook of a cell, and one of a gradient, raise once; the program catches it and trains on."""
    model, x, bad = Small(), row(4, 6), [True, True]

    def forward(_cell, _args, _result):
        if bad[0]:
            bad[0] = False
            raise ValueError("forward")

    def pre(_cell, args):
        return (args[0] * 1.5,)

    model.act.register_forward_hook(forward)
    model.down.register_forward_pre_hook(pre)
    gradients_of = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None, model.trainable_params())
    for _ in range(COUNT):
        steps.begin(model)
        try:
            loss, gradients = gradients_of()
        except ValueError as why:
            yield str(why)
        else:
            yield loss
            yield from gradients
        steps.end()


@way
def partials_and_further_results(steps):
    model = Small()

    def loss_of(scale, x, *, power):
        y = model(x)
        return (y ** power).mean() * scale, y, {"sum": y.sum()}

    wanted = functools.partial(loss_of, 2.0, power=2)
    gradients_of = mindspore.value_and_grad(wanted, None, model.trainable_params(), has_aux=True)
    for _ in range(COUNT):
        steps.begin(model)
        (loss, y, more), gradients = gradients_of(row(4, 6))
        steps.end()
        yield from (loss, y, more["sum"], *gradients)


@way
def parameters_replaced_between_steps(steps):
    model, x = Small(), row(4, 6)
    for at in range(COUNT):
        model.up.weight = Parameter(row(8, 6) * (at + 1) * 0.1, name="up.weight")
        steps.begin(model)
        loss, gradients = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None,
                                                   mindspore.ParameterTuple(model.trainable_params()))()
        steps.end()
        yield loss
        yield from gradients


@way
def random_numbers_within_a_step(steps):
    model, x = nn.SequentialCell(Small(), nn.Dropout(p=0.4)).set_train(), row(4, 6)

    def loss_of():
        return (model(x + ops.standard_normal((4, 6)) * 0.1) * ops.rand(4, 6)).mean()

    yield from train(steps, model, loss_of, lambda p: nn.AdamWeightDecay(p, 0.01))
