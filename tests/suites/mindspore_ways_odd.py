# SPDX-License-Identifier: MIT
"""More ways for mindspore_unchanged.py: what programs do to cells, hooks, parameters and files in a step."""
import copy
import os
import sys
import threading

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

from mindspore_ways import COUNT, Small, row, train, way


@way
def weights_shared_by_two_cells(steps):
    class Tied(nn.Cell):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(7, 6)
            self.blocks = nn.CellList([Small(), Small()])
            self.blocks[1].up.weight = self.blocks[0].up.weight

        def construct(self, ids):
            x = self.table(ids)
            for block in self.blocks:
                x = block(x)
            return ops.matmul(x, self.table.embedding_table.T)

    model, ids = Tied(), Tensor([1, 4, 2, 6], mindspore.int32)
    yield from train(steps, model, lambda: (model(ids) ** 2).mean())


@way
def parameters_frozen_between_steps(steps):
    model, x = Small(), row(4, 6)
    for at in range(COUNT):
        model.up.weight.requires_grad = at % 2 == 0
        wanted = [p for p in model.get_parameters() if p.requires_grad]
        steps.begin(model)
        loss, grads = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None,
                                               mindspore.ParameterTuple(wanted))()
        nn.SGD(wanted, 0.1)(ops.clip_by_global_norm(grads, 0.5))
        steps.end()
        yield len(wanted)
        yield loss
        yield from grads
    yield from model.get_parameters()


@way
def parameters_saved_and_loaded_within_a_step(steps):
    model, x = Small(), row(4, 6)
    for at in range(COUNT):
        steps.begin(model)
        yield (model(x) ** 2).mean()
        mindspore.save_checkpoint(model, f"own{at}.ckpt")
        kept = mindspore.load_checkpoint(f"own{at}.ckpt")
        other = Small()
        yield len(mindspore.load_param_into_net(other, kept)[0])
        yield other(x)
        steps.end()
        yield sorted(kept)
        os.remove(f"own{at}.ckpt")


@way
def a_copy_of_a_cell_within_a_step(steps):
    model, x = Small(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        yield model(x)
        other = copy.deepcopy(model)
        other.up.weight.set_data(other.up.weight * 2)
        yield other(x)
        yield mindspore.grad(lambda t: other(t).sum() + model(t).sum())(x)
        steps.end()
    yield from model.get_parameters()


@way
def cells_that_raise_and_are_called_again(steps):
    class Fails(Small):
        fails = True

        def construct(self, x):
            y = super().construct(x)
            if self.fails:
                raise KeyError("missing")
            return y * 2

    model, x = Fails(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        model.fails = True
        try:
            model(x)
        except KeyError as error:
            yield str(error)
            yield str(error.__context__)
        model.fails = False
        yield model(x)
        yield mindspore.grad(lambda t: model(t).sum())(x)
        steps.end()


@way
def lists_that_cells_write_into(steps):
    class Writes(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small = Small()

        def construct(self, x, cache, named=None):
            cache.append(self.small(x))
            named["count"] = named.get("count", 0) + 1
            return cache[-1] * len(cache) + cache[0]

    model, x = Writes(), row(4, 6)
    for _ in range(COUNT):
        cache, named = [], {}
        steps.begin(model)
        yield model(x, cache, named=named) + model(x, cache, named=named)
        steps.end()
        yield cache
        yield sorted(named.items())


@way
def the_same_tensor_is_the_same(steps):
    class Asks(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small, self.seen = Small(), []

        def construct(self, a, b, c=None):
            self.seen += [a is b, a is c, id(a) == id(b)]
            return a, self.small(a), {"a": a}

    model, x = Asks(), row(4, 6)
    for _ in range(COUNT):
        steps.begin(model)
        a, y, named = model(x, x, c=x)
        yield [a is x, named["a"] is x, type(named) is dict]
        yield y
        steps.end()
    yield model.seen


@way
def outputs_of_many_kinds(steps):
    class Many(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small = Small()

        def construct(self, x):
            y = self.small(x)
            return y, (y * 2, [y + 1, None]), {"sum": y.sum(), "text": "x", "n": 3}, y[:0], y.astype(mindspore.float16)

    model, x = Many(), row(4, 6)

    def loss_of():
        a, (b, (c, none)), named, empty, half = model(x)
        assert none is None and empty.shape == (0, 6)
        return (a * b).sum() + c.mean() + named["sum"] * named["n"] + half.astype(mindspore.float32).sum()
    yield from train(steps, model, loss_of)


@way
def hooks_removed_by_themselves(steps):
    model, x, seen = Small(), row(4, 6), []
    handles = []

    def once(cell, args, out):
        handles.pop().remove()
        seen.append(type(cell).__name__)
        return out * 2
    for _ in range(COUNT):
        handles.append(model.act.register_forward_hook(once))
        steps.begin(model)
        yield mindspore.grad(lambda t: model(t).sum() + model(t).mean())(x)
        steps.end()
    yield seen


@way
def states_assigned_in_construct(steps):
    class Counts(nn.Cell):
        def __init__(self):
            super().__init__()
            self.small = Small()
            self.mean = Parameter(Tensor(np.zeros(6, np.float32)), name="mean", requires_grad=False)
            self.calls = Parameter(Tensor(0, mindspore.int32), name="calls", requires_grad=False)
            self.last = Parameter(Tensor(np.zeros((4, 6), np.float32)), name="last", requires_grad=False)
            self.assign, self.table = ops.Assign(), Parameter(Tensor(np.zeros((3, 6), np.float32)), name="table")

        def construct(self, x):
            y = self.small(x)
            ops.assign(self.mean, self.mean * 0.9 + ops.stop_gradient(y).mean(0) * 0.1)
            ops.assign_add(self.calls, Tensor(1, mindspore.int32))
            self.assign(self.last, y)
            ops.scatter_add(self.table, Tensor([0, 2], mindspore.int32), ops.stop_gradient(y)[:2])
            return y - self.mean

    model, x = Counts(), row(4, 6)
    yield from train(steps, model, lambda: (model(x) ** 2).mean() + model(x * 2).mean())


@way
def sharpness_aware_steps(steps):
    model, x = Small(), row(4, 6)
    params = model.trainable_params()
    gradients_of = mindspore.value_and_grad(lambda: (model(x) ** 2).mean(), None, mindspore.ParameterTuple(params))
    optimizer = nn.Momentum(params, 0.05, 0.9)
    for _ in range(COUNT):
        steps.begin(model)
        loss, first = gradients_of()
        norm = sum((g ** 2).sum() for g in first) ** 0.5
        kept = [p.copy() for p in params]
        for p, g in zip(params, first):
            p.set_data(p + g * (0.05 / norm))
        _, second = gradients_of()
        for p, k in zip(params, kept):
            p.set_data(k)
        optimizer(second)
        steps.end()
        yield loss
        yield from second
    yield from params


@way
def an_average_and_two_optimizers(steps):
    first, second, mean = Small(), Small(), Small()
    both = nn.CellList([first, second])
    x = row(4, 6)
    one, two = nn.Adam(first.trainable_params(), 0.01), nn.SGD(second.trainable_params(), 0.1)
    for _ in range(COUNT):
        steps.begin(both)
        loss, grads = mindspore.value_and_grad(lambda: (second(first(x)) ** 2).mean(), None, one.parameters)()
        one(grads)
        yield loss
        loss, grads = mindspore.value_and_grad(lambda: -second(ops.stop_gradient(first(x))).mean(), None,
                                               two.parameters)()
        two(grads)
        for a, b in zip(mean.get_parameters(), first.get_parameters()):
            ops.assign(a, a * 0.9 + b * 0.1)
        steps.end()
        yield loss
        yield mean(x)
    yield from both.get_parameters()


@way
def constructs_replaced_on_instances(steps):
    model, x = Small(), row(4, 6)
    old = model.act.construct
    model.act.construct = lambda t: old(t) * 3
    plain = nn.Cell.__call__
    seen = []

    def call(self, *args, **kwargs):
        seen.append(type(self).__name__)
        return plain(self, *args, **kwargs)

    def loss_of():
        nn.Cell.__call__ = call
        try:
            return (model(x) ** 2).mean()
        finally:
            nn.Cell.__call__ = plain
    yield from train(steps, model, loss_of)
    yield seen


@way
def two_threads_that_run_cells(steps):
    models, x, found = [Small(), Small()], row(4, 6), {}
    turn = threading.Lock()

    def work(at):
        with turn:
            found[at] = [models[at](x) for _ in range(3)]
    for _ in range(COUNT):
        steps.begin(nn.CellList(models))
        threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield found[0]
        yield found[1]
        steps.end()


@way
def a_profiler_of_python_within_a_step(steps):
    model, x, calls = Small(), row(4, 6), []

    def profile(frame, event, _arg):
        if event == "call" and frame.f_code.co_filename == __file__:
            calls.append(frame.f_code.co_name)

    def loss_of():
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            return (model(x) ** 2).mean()
        finally:
            sys.setprofile(before)
    yield from train(steps, model, loss_of)
    yield calls


@way
def gradients_with_weights_and_more_results(steps):
    model, x = Small(), row(4, 6)

    def forward(t):
        y = model(t)
        return (y ** 2).sum(), y, y.mean()
    params = mindspore.ParameterTuple(model.trainable_params())
    for _ in range(COUNT):
        steps.begin(model)
        (loss, y, mean), grads = mindspore.value_and_grad(forward, 0, params, has_aux=True)(x)
        yield loss
        yield y
        yield mean
        yield grads
        yield ops.GradOperation(get_all=True, sens_param=True)(model)(x, row(4, 6) * 0.5)
        yield mint.nn.functional.relu(model(x)).sum()
        steps.end()


@way
def saved_by_hand_in_odd_places(steps):
    """For the level debug: what is saved is changed, is a container that holds itself, or raises when it is read."""
    class Refuses:
        @property
        def shape(self):
            raise RuntimeError("nobody may look")

    model, x = Small(), row(4, 6)

    def loss_of():
        y = model(x)
        own = [y, 1, None]
        own.append(own)
        steps.save(own, "own")
        steps.save({"a": Refuses(), 3: y}, "odd")
        steps.save(y, "y/../y")
        y = y * 2
        steps.save(y, "y")
        return y.sum()
    yield from train(steps, model, loss_of)
