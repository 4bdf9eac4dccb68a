# SPDX-License-Identifier: MIT
"""Still more ways for mindspore_unchanged.py: what large trainings and programs around them do to cells and
gradients."""
import copy
import functools
import gc
import itertools
import pickle
import sys
import threading
import warnings
import weakref

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops

from mindspore_ways import COUNT, Small, row, train, way

X = row(4, 6)


@way
def heads_that_share_a_body_and_take_turns(steps):
    body, heads = Small(), nn.CellList([nn.Dense(6, 2), nn.Dense(6, 3)])
    model = nn.CellList([body, *heads])
    turns = itertools.cycle((0, 1))

    def loss_of():
        return (heads[next(turns)](body(X)) ** 2).mean()

    yield from train(steps, model, loss_of)


@way
def attention_with_rotary_positions_and_a_cache(steps):
    class Attention(nn.Cell):
        def __init__(self):
            super().__init__()
            self.qkv, self.out, self.cache = nn.Dense(6, 18), nn.Dense(6, 6), {}

        def construct(self, x, cache=None, at=0):
            q, k, v = mint.chunk(self.qkv(x), 3, -1)
            angle = Tensor(np.arange(at, at + x.shape[0], dtype=np.float32))[:, None]
            q, k = q * ops.cos(angle) + q.flip((1,)) * ops.sin(angle), k * ops.cos(angle) + k.flip((1,)) * ops.sin(angle)
            if cache is not None:
                cache["k"], cache["v"] = cache.get("k", []) + [k], cache.get("v", []) + [v]
                k, v = ops.cat(cache["k"]), ops.cat(cache["v"])
            weights = ops.softmax(ops.matmul(q, k.T) / 6 ** 0.5, -1)
            return self.out(ops.matmul(weights, v))

    model = Attention()
    yield from train(steps, model, lambda: (model(X) ** 2).mean())
    cache = {}
    for at in range(COUNT):
        steps.begin(model)
        yield model(X[at:at + 1], cache, at=at)
        steps.end()
        yield len(cache["k"])


@way
def experts_chosen_by_scores(steps):
    class Experts(nn.Cell):
        def __init__(self):
            super().__init__()
            self.gate, self.experts, self.loss = nn.Dense(6, 3), nn.CellList([nn.Dense(6, 6) for _ in range(3)]), None

        def construct(self, x):
            scores = ops.softmax(self.gate(x), -1)
            best, which = ops.topk(scores, 2)
            y = 0
            for i, expert in enumerate(self.experts):
                y = y + expert(x) * (best * (which == i)).sum(-1, keepdims=True)
            self.loss = (scores.mean(0) ** 2).sum()
            return y

    model = Experts()
    yield from train(steps, model, lambda: (model(X) ** 2).mean() + model.loss)


@way
def a_penalty_of_gradients_within_the_loss(steps):
    model = nn.SequentialCell(nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 1))

    def loss_of():
        slope = mindspore.grad(lambda x: model(x).sum())(X)
        return model(X).mean() + ((slope ** 2).sum(-1) - 1).pow(2).mean()

    yield from train(steps, model, loss_of)


@way
def cells_that_know_their_tensors_by_identity(steps):
    class Keeping(nn.Cell):
        def __init__(self):
            super().__init__()
            self.first, self.second, self.kept = nn.Dense(6, 6), nn.Dense(6, 1), None

        def construct(self, x, others):
            self.kept = self.first(x)
            others["hidden"] = self.kept
            return self.second(ops.tanh(self.kept)), self.kept

    model, known = Keeping(), []

    def loss_of():
        others = {}
        result, hidden = model(X, others)
        known.append((hidden is model.kept, others["hidden"] is hidden))
        return (result ** 2).mean() + (hidden ** 2).mean() + (hidden * hidden).sum()

    yield from train(steps, model, loss_of)
    yield known


@way
def weights_rebuilt_by_a_low_rank_adapter(steps):
    class Adapted(nn.Cell):
        def __init__(self):
            super().__init__()
            self.base = nn.Dense(6, 6)
            self.base.weight.requires_grad = False
            self.a, self.b = Parameter(row(2, 6) * 0.1, name="a"), Parameter(row(6, 2) * 0.1, name="b")
            self.is_merged = False

        def construct(self, x):
            y = self.base(x)
            return y if self.is_merged else y + ops.matmul(ops.matmul(x, self.a.T), self.b.T)

    model = Adapted()
    yield from train(steps, model, lambda: (model(X) ** 2).mean())
    model.base.weight.set_data(model.base.weight + ops.matmul(model.b, model.a))
    model.is_merged = True
    steps.begin(model)
    yield model(X)
    steps.end()


@way
def averages_of_parameters_kept_beside(steps):
    model = Small()
    average = copy.deepcopy(model)
    optimizer = nn.AdamWeightDecay(model.trainable_params(), 0.01)
    gradients_of = mindspore.value_and_grad(lambda: (model(X) ** 2).mean(), None, optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        loss, gradients = gradients_of()
        optimizer(gradients)
        for a, p in zip(average.get_parameters(), model.get_parameters()):
            a.set_data(a * 0.9 + p * 0.1)
        steps.end()
        yield loss
        steps.begin(average)
        yield average(X)
        steps.end()


@way
def references_that_must_go(steps):
    """Cells, tensors and results go when nobody holds them."""
    model = Small()
    for _ in range(COUNT):
        steps.begin(model)
        inner = Small()
        y = inner(model(X))
        kept = weakref.ref(inner)
        yield y
        del inner, y
        steps.end()
        gc.collect()
        yield kept() is None


@way
def warnings_that_are_errors_in_a_step(steps):
    model = Small()
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        yield from train(steps, model, lambda: (model(X) ** 2).mean())
        steps.begin(model)
        yield ops.log(Tensor([-1.0, 0.0, 1e38, -0.0])) * Tensor([1.0, np.inf, 1e38, np.nan])
        steps.end()


@way
def a_tracer_of_lines_and_a_limit_of_recursion(steps):
    model, lines = Small(), []

    def trace(frame, event, _arg):
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name != "loss_of":
            return None
        lines.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
        return trace

    def loss_of():
        y = model(X)
        y = ops.tanh(y)
        return (y ** 2).mean()

    sys.settrace(trace)
    try:
        yield from train(steps, model, loss_of)
    finally:
        sys.settrace(None)
    yield str(lines)


@way
def cells_called_by_other_names(steps):
    """construct() and __call__ by the class, by partials, by map, and within lists that are sorted by results."""
    model = nn.CellList([Small(), Small()])

    def loss_of():
        first = functools.partial(model[0], X)()
        again = Small.construct(model[1], X)
        third = nn.Cell.__call__(model[1], first)
        parts = list(map(model[0], [X[:2], X[2:]]))
        parts.sort(key=lambda t: float(t.sum().asnumpy()) if not isinstance(t.sum(), float) else t)
        return (first * again + third).mean()

    try:
        yield from train(steps, model, loss_of)
    except Exception as why:
        yield type(why).__name__
    steps.begin(model)
    yield from map(model[0], [X[:1], X[1:]])
    steps.end()


@way
def attributes_and_tables_of_cells(steps):
    class Odd(Small):
        def __getattr__(self, name):
            if name.startswith("made_"):
                return ops.tanh if name == "made_tanh" else len(name)
            return super().__getattr__(name)

        def __len__(self):
            return 0

        def __eq__(self, other):
            return NotImplemented

        def __hash__(self):
            return 7

        def construct(self, x):
            return super().construct(self.made_tanh(x)) * self.made_five

    model = Odd()
    table = {model: "model"}
    yield from train(steps, model, lambda: (model(X) ** 2).mean())
    yield table[model]
    yield len(model.cells()) if hasattr(model, "cells") else 0
    yield sorted(name for name, _ in model.cells_and_names())


@way
def steps_that_begin_again_and_end_twice(steps):
    model, other = Small(), Small()
    for _ in range(COUNT):
        steps.begin(model)
        y = model(X)
        steps.begin(other)
        y = y + other(X)
        steps.end()
        y = y + model(X)
        steps.end()
        yield y
    yield from train(steps, other, lambda: (other(model(X)) ** 2).mean())


@way
def exceptions_out_of_nested_cells_with_their_causes(steps):
    class Fails(nn.Cell):
        def __init__(self):
            super().__init__()
            self.inner, self.count = Small(), 0

        def construct(self, x):
            self.count += 1
            try:
                if self.count % 2:
                    raise KeyError("first")
            except KeyError as why:
                raise ValueError("second") from why
            return self.inner(x)

    model = nn.SequentialCell(Small(), Fails())
    for _ in range(4):
        steps.begin(model)
        try:
            yield model(X)
        except ValueError as why:
            yield repr((why, why.__cause__))
        steps.end()
    model[1].count = 1
    gradients_of = mindspore.value_and_grad(lambda: (model(X) ** 2).mean(), None, model.trainable_params())
    steps.begin(model)
    yield from gradients_of()[1]
    steps.end()


@way
def tensors_kept_as_keys_and_pickled(steps):
    model, seen = Small(), {}

    def loss_of():
        y = model(X)
        seen[id(X)] = seen.get(id(X), 0) + 1
        return (y ** 2).mean()

    yield from train(steps, model, loss_of)
    yield sorted(seen.values())
    steps.begin(model)
    y = model(X)
    yield pickle.loads(pickle.dumps(y.asnumpy()))
    y[0] = 7
    y[:, 1:3] += 1
    yield y
    yield Tensor(y.asnumpy()[::-1].copy())
    steps.end()


@way
def a_thread_that_prepares_and_one_that_evaluates(steps):
    model, batches, found = Small(), [], []

    def prepare():
        for i in range(COUNT):
            batches.append(Tensor(np.cos(np.arange(24, dtype=np.float32) + i).reshape(4, 6)))

    thread = threading.Thread(target=prepare)
    thread.start()
    thread.join()
    yield from train(steps, model, lambda: (model(batches[1]) ** 2).mean())
    steps.begin(model)
    thread = threading.Thread(target=lambda: found.append(model(batches[0])))
    thread.start()
    thread.join()
    yield from found
    steps.end()


@way
def gradients_stopped_scaled_and_seen_by_insertion(steps):
    model, seen = Small(), []

    def keep(g):
        seen.append(float(g.sum().asnumpy()))
        return g * 2

    watched = ops.InsertGradientOf(keep)

    def loss_of():
        y = model(X)
        return (ops.stop_gradient(y) * watched(y)).mean() + (y * Tensor([0.0])).sum()

    yield from train(steps, model, loss_of)
    yield str(seen)


@way
def numbers_of_half_precision_with_a_scaler(steps):
    model = Small().to_float(mindspore.float16)
    scaler = mindspore.amp.DynamicLossScaler(1024.0, 2, 2)
    optimizer = nn.SGD(model.trainable_params(), 0.05)
    gradients_of = mindspore.value_and_grad(lambda: scaler.scale((model(X) ** 2).mean()), None, optimizer.parameters)
    for _ in range(COUNT):
        steps.begin(model)
        loss, gradients = gradients_of()
        gradients = scaler.unscale(gradients)
        is_finite = mindspore.amp.all_finite(gradients)
        scaler.adjust(is_finite)
        optimizer(gradients)
        steps.end()
        yield from (loss, is_finite, scaler.scale_value.value(), *gradients)
