# SPDX-License-Identifier: MIT
"""Programs of MindSpore that train for themselves, which mindspore_oracle.py dumps with two tools.

SESSIONS: name -> (config, function of a debugger).
"""
import mindspore
import numpy as np
from mindspore import mint, nn, ops

from mindspore_models import row, settled

SESSIONS = {}


def session(**keys):
    def known(func):
        SESSIONS[func.__name__] = (keys, func)
        return func
    return known


def gradients_of(net, loss_of):
    return mindspore.value_and_grad(loss_of, None, net.trainable_params())


def small():
    net, x = settled(nn.SequentialCell(nn.Dense(4, 6), nn.ReLU(), nn.Dense(6, 2))), row(3, 4)
    return net, lambda: (net(x) ** 2).mean()


def steps(debugger, number, net, one):
    """Dumps some steps; the numbers that come out, added up."""
    total = 0.0
    for _ in range(number):
        debugger.start(net)
        total += float(one().asnumpy())
        debugger.stop()
        debugger.step()
    return total


@session(level="mix")
def optimizers(debugger):
    """Four steps of optimizers, with gradients clipped by the norm of all."""
    net, loss_of = small()
    step, optimizer = gradients_of(net, loss_of), nn.AdamWeightDecay(net.trainable_params(), 0.01)

    def one():
        loss, grads = step()
        optimizer(ops.clip_by_global_norm(grads, 1.0))
        return loss
    return steps(debugger, 4, net, one)


@session(level="L1")
def momentum(debugger):
    """The same at another level, by an optimizer with a state and values clipped one by one."""
    net, loss_of = small()
    step, optimizer = gradients_of(net, loss_of), nn.Momentum(net.trainable_params(), 0.1, 0.9)

    def one():
        loss, grads = step()
        optimizer(tuple(ops.clip_by_value(g, -0.1, 0.1) for g in grads))
        return loss
    return steps(debugger, 3, net, one)


@session(level="mix")
def grad_operation(debugger):
    """Gradients by GradOperation, of inputs and parameters."""
    net, _ = small()
    grad, x = ops.GradOperation(get_all=True, get_by_list=True, sens_param=False), row(3, 4)
    forward = nn.SequentialCell(net)
    of_all = grad(forward, mindspore.ParameterTuple(net.trainable_params()))
    return steps(debugger, 2, net, lambda: of_all(x)[0][0].sum())


@session(level="L1")
def grad_of_functions(debugger):
    """mindspore.grad of a function of two arguments, with more results than one."""
    def function(x, y):
        z = mint.mul(x, y)
        return (z * z).sum(), z
    grad = mindspore.grad(function, (0, 1), has_aux=True)
    x, y = row(3), row(3) + 2
    return steps(debugger, 2, None, lambda: grad(x, y)[0][1].sum())


@session(level="L0", step=[1, "3-4"])
def chosen_steps(debugger):
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 6, net, lambda: step()[0])


@session(level="mix", rank=[1])
def another_rank(debugger):
    """Of a rank that is not this one: nothing."""
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 2, net, lambda: step()[0])


@session(level="mix", rank=[0])
def the_only_rank(debugger):
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 2, net, lambda: step()[0])


@session(level="mix")
def a_rank_by_argument(debugger):
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    debugger.start(net, rank_id=3)
    loss, _ = step()
    debugger.stop()
    debugger.step()
    return float(loss.asnumpy())


@session(level="L1")
def stopped_between(debugger):
    """Two windows in one step, and what is called between them and after them."""
    x, total = row(3, 4), 0.0
    for _ in range(2):
        for _ in range(2):
            debugger.start()
            total += float(mint.exp(x).sum().asnumpy())
            debugger.stop()
            total += float(mint.abs(x).sum().asnumpy())
        debugger.step()
        mint.abs(x)
    return total


@session(level="mix")
def first_steps(debugger):
    """A run that goes on where another ended."""
    type(debugger).set_init_step(100)
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 2, net, lambda: step()[0])


@session(level="debug")
def saved(debugger):
    """Values of all kinds under names, without gradients."""
    for number in range(2):
        x = row(3, 4) + number
        debugger.save(x, "x", save_backward=False)
        debugger.save({"a": x, "b": [x * 2, 3], "c": (1.5, "text")}, "table", save_backward=False)
        debugger.save([x > 0, ops.cast(x, mindspore.int32)], "kinds", save_backward=False)
        debugger.save(x, "x", save_backward=False)
        debugger.save(7, "number", save_backward=False)
        debugger.save("text", "text", save_backward=False)
        debugger.step()
    return 0.0


@session(level="debug")
def saved_with_gradients(debugger):
    def function(x):
        y = x * 2
        debugger.save(y, "y")
        z = mint.exp(y)
        debugger.save({"z": z, "list": [y, 3]}, "both")
        return (z * y).sum()
    total = 0.0
    for _ in range(2):
        total += float(mindspore.grad(function)(row(3)).sum().asnumpy())
        debugger.step()
    return total


@session(level="debug", task="tensor")
def saved_as_files(debugger):
    debugger.save(row(3, 4), "x", save_backward=False)
    debugger.save({"a": [row(2), row(2).astype(mindspore.float16)], "n": 3}, "t", save_backward=False)
    debugger.step()
    return 0.0


@session(level="L1")
def own_functions(debugger):
    """A function of the program's own, registered by name."""
    import types
    module = types.ModuleType("kernels")
    module.twice = lambda x, times=2: x * times
    debugger.register_custom_api(module, "twice", "Own")
    x = row(3)
    total = steps(debugger, 1, None, lambda: mindspore.value_and_grad(
        lambda x: module.twice(x, times=3).sum())(x)[0])
    debugger.restore_custom_api(module, "twice")
    return total


@session(level="mix")
def raising(debugger):
    """An exception out of a cell, which the program catches, between two steps."""
    class Bad(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = nn.Dense(4, 4)

        def construct(self, x):
            self.fc(x)
            raise ValueError("mine")

    class Model(nn.Cell):
        def __init__(self):
            super().__init__()
            self.bad, self.good = settled(Bad()), settled(nn.Dense(4, 4))

        def construct(self, x):
            return self.good(x)

    net, x, caught = Model(), row(3, 4), 0
    debugger.start(net)
    net(x)
    try:
        net.bad(x)
    except ValueError:
        caught = 1
    debugger.stop()
    debugger.step()
    debugger.start(net)
    net(x)
    debugger.stop()
    debugger.step()
    return caught


@session(level="mix")
def training_cells(debugger):
    """The framework's own cells around a model."""
    net, x, y = settled(nn.SequentialCell(nn.Dense(4, 2))), row(3, 4), row(3, 2)
    step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.MSELoss()),
                               nn.SGD(net.trainable_params(), 0.1))
    step.set_train()
    return steps(debugger, 2, net, lambda: step(x, y))


@session(level="L0")
def accumulated(debugger):
    """Two forward and two backward passes in a step: parameters have gradients twice."""
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 2, net, lambda: step()[0] + step()[0])


@session(level="L0")
def evaluated(debugger):
    """Forward alone, before and after a training step."""
    net, loss_of = small()
    step = gradients_of(net, loss_of)
    return steps(debugger, 2, net, lambda: loss_of() + step()[0] + loss_of())
