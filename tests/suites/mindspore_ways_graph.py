# SPDX-License-Identifier: MIT
"""Ways for mindspore_unchanged.py that reach into the graph of gradients: its orders, its borders, its hooks, and what
stops a forward or a backward in its middle."""
import collections
import gc
import inspect
import threading
import weakref

import mindspore
import numpy as np
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.common._grad_function import _Function

from mindspore_ways import COUNT, WAYS, Small, row, train, way

X = row(4, 6)


class Given(nn.Cell):
    """A cell of a function of itself and its arguments, around a Small."""

    def __init__(self, func, **kept):
        super().__init__()
        self.small = Small()
        for name, value in kept.items():
            setattr(self, name, value)
        self.func = func

    def construct(self, *args, **kwargs):
        return self.func(self, *args, **kwargs)


def each_step(steps, model, of_step):
    """Yields what of_step() yields, step by step, and the parameters in the end."""
    for _ in range(COUNT):
        steps.begin(model)
        yield from of_step()
        steps.end()
    yield from model.get_parameters()


def squares(model, x=X):
    return (model(x) ** 2).mean()


# ---- orders and transforms ------------------------------------------------------------------------


@way
def gradients_of_gradients_of_gradients(steps):
    model = nn.SequentialCell(nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 1))
    third = mindspore.grad(lambda t: mindspore.grad(lambda s: mindspore.grad(lambda r: model(r).sum())(s).sum())(t).sum())
    yield from each_step(steps, model, lambda: (third(X),))


@way
def products_with_the_hessian(steps):
    model = nn.SequentialCell(nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 1))
    params = mindspore.ParameterTuple(model.trainable_params())

    def along():
        slopes = mindspore.grad(lambda: squares(model), None, params)()
        return sum((g * (g * 0.5 + 1)).sum() for g in slopes)

    yield from each_step(steps, model, lambda: mindspore.grad(along, None, params)())


@way
def a_penalty_on_the_gradients_of_weights(steps):
    model = nn.SequentialCell(nn.Dense(6, 6), nn.Tanh(), nn.Dense(6, 6))
    inner = mindspore.value_and_grad(lambda: squares(model), None, mindspore.ParameterTuple(model.trainable_params()))

    def loss_of():
        loss, slopes = inner()
        return loss + sum((g ** 2).sum() for g in slopes) * 0.1

    yield from train(steps, model, loss_of)


@way
def gradients_by_position_with_their_names(steps):
    model = Small()
    params = mindspore.ParameterTuple(model.trainable_params())
    of = mindspore.value_and_grad(lambda a, b, n: ((model(a) * model(b)).sum() * n, a * 2), (0, 1), params, has_aux=True)
    named = mindspore.grad(lambda a, b: (model(a) * b).sum(), (0, 1), params, return_ids=True)

    def of_step():
        yield of(X, X * 0.5, 3)
        found = named(X, X)
        yield mindspore.get_grad(found, 0)
        yield mindspore.get_grad(found, params[0])

    yield from each_step(steps, model, of_step)


@way
def gradients_of_everything_and_sensitivities(steps):
    model = Given(lambda self, a, b: (self.small(a), self.small(a * b)))
    params = mindspore.ParameterTuple(model.trainable_params())
    whole = ops.GradOperation(get_all=True, get_by_list=True, sens_param=True)(model, params)
    listed = ops.GradOperation(get_by_list=True)(lambda a: squares(model.small, a), params)

    def of_step():
        yield whole(X, X, (row(4, 6), row(4, 6) * 2))
        yield listed(X)

    yield from each_step(steps, model, of_step)


@way
def backwards_again_of_one_graph(steps):
    model = Small()

    def of_step():
        y, back = mindspore.vjp(model, X)
        yield y
        yield back(y)
        yield back(y * 2)
        gc.collect()
        yield back(row(4, 6))

    yield from each_step(steps, model, of_step)


@way
def vjp_with_weights_and_more_results(steps):
    model = Small()
    params = mindspore.ParameterTuple(model.trainable_params())

    def of_step():
        y, back, more = mindspore.vjp(lambda t: (model(t), t.sum()), X, weights=params, has_aux=True)
        yield y, more
        yield back(y)

    yield from each_step(steps, model, of_step)


def _tanh_of_squares(t):
    return ops.tanh(t * t)


@way
def jacobians_beside_a_cell(steps):
    model = nn.SequentialCell(nn.Dense(6, 3), nn.Tanh())
    tangent = X * 0.5

    def of_step():
        yield mindspore.jvp(_tanh_of_squares, X, tangent)
        yield mindspore.jacrev(_tanh_of_squares)(X[0])
        yield mindspore.jacfwd(_tanh_of_squares)(X[1])
        yield squares(model)

    yield from each_step(steps, model, of_step)


@way
def a_second_gradient_that_uses_the_first_ones_results(steps):
    one, two = Small(), Small()
    both = nn.CellList([one, two])
    first = mindspore.value_and_grad(lambda t: (one(t).sum(), one(t) * 2), 0, one.trainable_params(), has_aux=True)

    def of_step():
        (loss, y), (of_x, of_weights) = first(X)
        second = mindspore.value_and_grad(lambda a, b: (two(a) * b).sum() * loss, (0, 1), two.trainable_params())
        yield second(y, of_x)
        yield of_weights

    yield from each_step(steps, both, of_step)


@way
def gradients_of_a_part_of_the_results(steps):
    model = Given(lambda self, x: [self.small(x * k) for k in (1, 2, 3, 4)])
    yield from train(steps, model, lambda: sum(t.mean() for t in model(X)[::2]))


@way
def forwards_added_up_before_one_backward(steps):
    model = Small()
    yield from train(steps, model, lambda: sum(squares(model, X * k) for k in (1, 2, 3)) / 3)


@way
def gradients_within_the_hook_of_another(steps):
    model, other, seen = Small(), Small(), []

    def hook(gradient):
        seen.append(mindspore.grad(lambda t: squares(other, t))(gradient))
        return gradient + seen[-1]

    def loss_of():
        y = model(X)
        y.register_hook(hook)
        return (model.norm(y) ** 2).mean() + squares(model)

    yield from train(steps, nn.CellList([model, other]), loss_of)
    yield from seen


# ---- what goes in and comes out -------------------------------------------------------------------


@way
def one_tensor_returned_twice(steps):
    def twice(self, x):
        y = self.small(x)
        return y, y, (y, x)

    model = Given(twice)

    def loss_of():
        a, b, (c, d) = model(X)
        return (a * 2 + b * 3 + c * a).sum() + (d * b).mean() + int(a is b)

    yield from train(steps, model, loss_of)


@way
def cells_that_return_what_they_were_given(steps):
    model = Given(lambda self, x, y: (y, self.last(self.same(self.first(x))), x),
                  first=Small(), same=nn.Identity(), last=nn.Dropout(p=0.0))

    def loss_of():
        h = model.small(X)
        y, z, x = model(h, h * 2)
        return (y * z).sum() + (x * h).mean() + int(x is h)

    yield from train(steps, model, loss_of)


@way
def cells_that_give_and_take_parameters(steps):
    weights = Given(lambda self: self.weight, weight=Parameter(row(6, 6), name="own"))
    uses = Given(lambda self, x, weight, other=None: ops.matmul(x, weight) + ops.matmul(self.small(x), other))
    model, same = nn.CellList([weights, uses]), []

    def loss_of():
        weight = weights()
        same.append(weight is weights.weight)
        return (uses(X, weight, other=weight) ** 2).mean()

    yield from train(steps, model, loss_of)
    yield same


@way
def cells_that_return_views(steps):
    model = Given(lambda self, x: (self.small(x)[:2], x.T, x.view(-1), mint.split(x, 2), x.expand_as(x)))

    def loss_of():
        a, b, c, (d, e), f = model(model.small(X))
        return (a * 2).sum() + (b ** 2).mean() + c.sum() + (d * e).sum() + (f * f).mean()

    yield from train(steps, model, loss_of)


Pair = collections.namedtuple("Pair", "left right")


@way
def named_tuples_dicts_and_nothing(steps):
    def many(self, pair, named):
        y = self.small(pair.left)
        return {"pair": Pair(y, pair.right), "none": None, "list": [y * 2, (named["x"],)], 3: Pair(left=y + 1, right=None)}

    model = Given(many)

    def loss_of():
        found = model(Pair(X, X * 2), {"x": X * 3, "no": None})
        pair = found["pair"]
        assert type(pair) is Pair and found["none"] is None
        return (pair.left * pair.right).sum() + found["list"][0].mean() + (found["list"][1][0] * found[3].left).sum()

    yield from train(steps, model, loss_of)


@way
def written_in_place_after_and_before_a_cell(steps):
    model = Given(lambda self, x: self.small(x))

    def loss_of():
        h = X * 1
        h.add_(Tensor(0.5))
        y = model(h)
        y.mul_(Tensor(2.0))
        z = model(y)
        z[:2] = 0
        return (z ** 2).sum() + (y * h).mean()

    yield from train(steps, model, loss_of)


@way
def cells_that_write_into_their_inputs(steps):
    def writes(self, x, buffer):
        buffer[1:3] = self.small(x)[1:3]
        x.add_(buffer)
        return x

    model = Given(writes)

    def loss_of():
        buffer, h = ops.zeros((4, 6)), model.small(X)
        y = model(h, buffer)
        return (y * y).sum() + buffer.mean() + int(y is h)

    yield from train(steps, model, loss_of)


@way
def whole_numbers_flags_and_halves_between_cells(steps):
    def choose(self, x, which, keep, half):
        y = self.small(x) * keep
        return y.argmax(-1), y[which], (y > 0), half.astype(mindspore.float32) + y, y.astype(mindspore.bfloat16)

    model = Given(choose)

    def loss_of():
        most, chosen, flags, y, brain = model(X, Tensor([0, 2]), Tensor([[True]] * 4), X.astype(mindspore.float16))
        return (chosen * most[:2, None]).sum() + (y * flags).mean() + brain.astype(mindspore.float32).sum()

    yield from train(steps, model, loss_of)


@way
def results_that_nobody_uses(steps):
    model = Given(lambda self, x: (self.small(x), self.unused(x), self.unused(self.small(x).sum(0))), unused=Small())
    yield from train(steps, model, lambda: model(X)[0].mean())


@way
def states_detached_between_steps(steps):
    cell, out = nn.GRUCell(6, 5), nn.Dense(5, 2)
    model, state = nn.CellList([cell, out]), [ops.zeros((4, 5))]

    def loss_of():
        h = ops.stop_gradient(state[0])
        for k in range(3):
            h = cell(X * k, h)
        state[0] = h
        return (out(h) ** 2).mean()

    yield from train(steps, model, loss_of)
    yield from state


@way
def a_cell_that_feeds_on_itself(steps):
    model = Small()

    def loss_of():
        y, kept = X, []
        for _ in range(5):
            y = model(y) + (kept[-1] if kept else 0)
            kept.append(y)
        return sum((t ** 2).mean() for t in kept)

    yield from train(steps, model, loss_of)


@way
def cells_within_cells_a_hundred_deep(steps):
    model = Given(lambda self, x, depth: self.small(x) if depth == 0 else self(ops.tanh(x), depth - 1) + x)
    yield from train(steps, model, lambda: (model(X, 60) ** 2).mean())


@way
def hundreds_of_calls_in_a_step(steps):
    model = nn.Dense(6, 6)

    def loss_of():
        y = X
        for _ in range(300):
            y = ops.tanh(model(y))
        return (y ** 2).mean()

    yield from train(steps, model, loss_of)


# ---- gradients of one's own -----------------------------------------------------------------------


class _Swap(nn.Cell):
    def construct(self, a, b, n):
        return a * b, b - a

    def bprop(self, a, b, n, out, dout):
        return dout[0] * b * 3 - dout[1], dout[1] + out[0] * n, ops.zeros_like(a)


@way
def own_gradients_of_several_results(steps):
    model = Given(lambda self, x: self.swap(self.small(x), x * 2, x), swap=_Swap())

    def loss_of():
        a, b = model(model.small(X))
        return (a * b).sum() + a.mean()

    yield from train(steps, model, loss_of)


class _Split(_Function):
    @staticmethod
    def forward(ctx, x, scale, weight):
        ctx.save_for_backward(x, weight)
        ctx.scale = scale
        return x * scale, x * weight

    @staticmethod
    def backward(ctx, a, b):
        x, weight = ctx.saved_tensors
        return a * ctx.scale + b * weight, None, (b * x).sum()


@way
def own_functions_of_several_results(steps):
    model = Given(lambda self, x: _Split.apply(self.small(x), 3.0, self.weight),
                  weight=Parameter(Tensor(0.5), name="own"))

    def loss_of():
        a, b = model(X)
        return (a * b).mean() + model.small(b).sum()

    yield from train(steps, model, loss_of)


class _Fails(_Function):
    fails = False

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        if _Fails.fails:
            raise LookupError("in the backward")
        return gradient * 2


@way
def exceptions_within_the_backward(steps):
    model = nn.SequentialCell(Given(lambda self, x: self.last(_Fails.apply(self.small(x))), last=Small()), Small())
    of = mindspore.value_and_grad(lambda: squares(model), None, model.trainable_params())

    def of_step():
        _Fails.fails = True
        try:
            yield of()
        except LookupError as why:
            yield str(why).splitlines()[0]
        _Fails.fails = False
        yield of()

    yield from each_step(steps, model, of_step)


def stopped(at_forward):
    def run(steps):
        model, count = nn.SequentialCell(nn.Dense(6, 6), Given(lambda _, x: stop(x)), nn.Tanh(), nn.Dense(6, 6)), [0]

        def may_stop(value):
            count[0] += 1
            if count[0] % 2:
                raise KeyboardInterrupt("by hand")
            return value

        def stop(y):
            if at_forward:
                return may_stop(y)
            y.register_hook(may_stop)
            return y

        of = mindspore.value_and_grad(lambda: squares(model), None, model.trainable_params())

        def of_step():
            for _ in range(2):
                try:
                    yield of()
                except KeyboardInterrupt as why:
                    yield str(why).splitlines()[0]

        yield from each_step(steps, model, of_step)

    return run


WAYS["interrupted_within_a_forward"] = stopped(at_forward=True)
WAYS["interrupted_within_a_backward"] = stopped(at_forward=False)


# ---- hooks of the program -------------------------------------------------------------------------


@way
def hooks_of_all_kinds_removed_within_a_step(steps):
    model, seen = Given(lambda self, x: self.last(self.small(x)), last=Small()), []

    def note(what, give=None, count=1):
        def hook(_cell, *values):
            seen.append(what)
            for _ in range(count):
                handles.pop().remove()
            return give(values) if give is not None else None
        return hook

    handles = []

    def loss_of():
        small = model.small
        handles.append(small.register_backward_hook(note("back", lambda v: tuple(None if g is None else g * 2 for g in v[0]))))
        handles.append(small.register_backward_pre_hook(note("before back")))
        handles.append(small.register_forward_hook(note("after", lambda v: v[-1] * 3, 2)))
        handles.append(small.register_forward_pre_hook(note("before", count=0)))
        return squares(model)

    yield from train(steps, model, loss_of)
    yield seen


@way
def hooks_that_change_their_tables(steps):
    model, seen = Given(lambda self, x: self.last(self.small(x)), last=Small()), []
    words = {"with_kwargs": True} if "with_kwargs" in inspect.signature(nn.Cell.register_forward_hook).parameters else {}

    def hook_cell(cell, is_worded):
        asked = words if is_worded else {}

        def before(cell, args, *kwargs):
            handles.pop(0).remove()  # itself, the last of its table
            cell.register_forward_pre_hook(lambda *_: seen.append("later"))
            seen.append(("before", len(args), [sorted(one) for one in kwargs]))
            given = (args[0] * 2, *args[1:])
            return (given, *kwargs) if kwargs else given[0]

        def after(cell, *given):
            handles.pop(0).remove()
            cell.register_forward_hook(lambda *_: seen.append("later still"))
            seen.append(("after", len(given)))
            return given[-1] * 3

        cell.register_forward_pre_hook(lambda *_: seen.append("first"))
        handles.append(cell.register_forward_pre_hook(before, **asked))
        cell.register_forward_hook(lambda *_: seen.append("second"))
        handles.append(cell.register_forward_hook(after, **asked))

    handles, at = [], 0

    def loss_of():
        nonlocal at
        at += 1
        loss = squares(model)
        hook_cell(model.small, at % 2 == 1)  # for the next step, before it begins
        return loss

    hook_cell(model.small, False)
    yield from train(steps, model, loss_of)
    yield seen


@way
def hooks_that_raise_and_are_removed(steps):
    model, seen = Small(), []

    def refuse(_cell, _args):
        seen.append("refused")
        raise ValueError("refused")

    def loss_of():
        first = model.register_forward_pre_hook(refuse)
        last = model.register_forward_pre_hook(lambda _cell, args: (args[0] * 2,))
        try:
            model(X)
        except ValueError:
            seen.append("caught")
        first.remove()
        loss = squares(model)
        last.remove()
        return loss + squares(model)

    yield from train(steps, model, loss_of)
    yield seen


@way
def hooks_of_tensors_of_all_kinds(steps):
    model, seen = Given(lambda self, x: self.last(watched(self.small(x))), last=Small()), []

    def watched(y):
        handles = [y.register_hook(lambda g: seen.append(g)), y.register_hook(lambda g: g * 2)]

        def once(g):
            for handle in handles:
                handle.remove()
            return g + 1

        y.register_hook(once)
        return y

    def loss_of():
        y = watched(model(X))
        return (y ** 2).mean() + (y * watched(y * 2)).sum()

    yield from train(steps, model, loss_of)
    yield from seen


@way
def hooks_at_the_nodes_themselves(steps):
    model, seen = Given(lambda self, x: self.last(at_node(self.small(x))), last=Small()), []

    def at_node(y):
        node = getattr(y, "_grad_node", None)
        if hasattr(node, "register_prehook"):
            node.register_prehook(lambda grads: tuple(None if g is None else g * 2 for g in grads))
            node.register_hook(lambda of_inputs, _: seen.append(sum(g is not None for g in of_inputs)))
        return y

    yield from train(steps, model, lambda: (at_node(model(X)) ** 2).mean())
    yield seen


@way
def an_optimizer_that_steps_within_the_backward(steps):
    model = Given(lambda self, x: self.last(self.small(x)), last=Small())
    rates = {p.name: 0.01 * (i + 1) for i, p in enumerate(model.trainable_params())}

    def steps_at_once(parameter):
        def hook(gradient):
            ops.assign(parameter, parameter - gradient * rates[parameter.name])
            return gradient
        return hook

    handles = [p.register_hook(steps_at_once(p)) for p in model.trainable_params()]
    of = mindspore.value_and_grad(lambda: squares(model), None, model.trainable_params())
    yield from each_step(steps, model, lambda: (of(),))
    for handle in handles:
        handle.remove()


@way
def the_collector_runs_within_the_backward(steps):
    model, gone = Given(lambda self, x: self.last(self.small(x)), last=Small()), []

    def loss_of():
        y = model.small(X)
        kept = weakref.ref(y)

        def collect(_gradient):
            gc.collect()
            gone.append(kept() is None)

        z = model.last(y)
        z.register_hook(collect)
        del y
        return (z ** 2).mean()

    yield from train(steps, model, loss_of)
    yield gone


@way
def graphs_that_go_with_their_results(steps):
    """Nothing of a step is alive after it, without a run of the collector."""
    class Held:
        pass

    model, alive = Given(lambda self, x: self.last(self.small(x)), last=Small()), []

    def loss_of():
        held = Held()
        y = model.small(X)
        y.register_hook(lambda g: g if held is not None else None)
        alive.append(weakref.ref(held))
        return squares(model.last, y)

    gc.disable()
    try:
        yield from train(steps, model, loss_of)
        yield [ref() is None for ref in alive]
    finally:
        gc.enable()


# ---- with and without gradients -------------------------------------------------------------------


@way
def parts_without_gradients_within_a_cell(steps):
    def halves(self, x):
        with mindspore._no_grad():
            first = self.small(x)
        return self.last(first) + ops.stop_gradient(self.last(x)) * self.small(x)

    model = Given(halves, last=Small())
    yield from train(steps, model, lambda: squares(model))


@way
def a_cell_recomputed_and_called_as_it_is(steps):
    model = Given(lambda self, x: self.small(mindspore.recompute(self.inner, x)) + self.inner(x), inner=Small())
    model.inner.act.recompute()
    yield from train(steps, model, lambda: squares(model))


@way
def numbers_that_are_not_real(steps):
    model = Small()

    def loss_of():
        y = ops.Complex()(model(X), model(X * 2))
        return (ops.real(y) * ops.imag(y)).mean()

    yield from train(steps, model, loss_of)


@way
def a_backward_in_a_thread(steps):
    model = Given(lambda self, x: self.last(self.small(x)), last=Small())
    of = mindspore.value_and_grad(lambda: squares(model), None, model.trainable_params())

    def of_step():
        found = []
        thread = threading.Thread(target=lambda: found.append(of()))
        thread.start()
        thread.join()
        yield found
        yield of()

    yield from each_step(steps, model, of_step)


@way
def layers_that_yield_their_results(steps):
    layers = nn.CellList([Small(), Small(), Small()])

    def results(x):
        for layer in layers:
            x = layer(x)
            yield x

    def loss_of():
        some = results(X)
        first = next(some)
        rest = list(some)
        some.close()
        return (first * rest[-1]).sum() + rest[0].mean()

    yield from train(steps, layers, loss_of)


@way
def players_that_take_turns(steps):
    maker, judge = Small(), nn.SequentialCell(Small(), nn.Dense(6, 1))
    both = nn.CellList([maker, judge])
    of_judge = mindspore.value_and_grad(lambda made: judge(X).mean() - judge(made).mean(), None, judge.trainable_params())
    of_maker = mindspore.value_and_grad(lambda: judge(maker(X)).mean(), None, maker.trainable_params())
    one, two = nn.Adam(judge.trainable_params(), 0.01), nn.RMSProp(maker.trainable_params(), 0.01)

    def of_step():
        for _ in range(2):
            loss, slopes = of_judge(maker(X))
            one(slopes)
            yield loss
        loss, slopes = of_maker()
        two(slopes)
        yield loss, slopes

    yield from each_step(steps, both, of_step)


# ---- loops, precisions, compiled parts ------------------------------------------------------------


@way
def mint_cells_and_its_optimizer(steps):
    model = nn.SequentialCell(mint.nn.Linear(6, 8), mint.nn.ReLU(), mint.nn.Linear(8, 6))
    optimizer = mint.optim.SGD(model.trainable_params(), lr=0.01, momentum=0.9)
    of = mindspore.value_and_grad(lambda: squares(model), None, model.trainable_params())

    def of_step():
        loss, slopes = of()
        optimizer(slopes)
        yield loss, slopes

    yield from each_step(steps, model, of_step)


def loop_of_level(level):
    def run(steps):
        model = Given(lambda self, x: self.last(self.small(x)), last=nn.Dense(6, 6))
        data = mindspore.dataset.NumpySlicesDataset((row(12, 6).asnumpy(), row(12, 6).asnumpy()), ["x", "y"]).batch(4)
        whole = mindspore.train.Model(model, nn.MSELoss(), nn.Momentum(model.trainable_params(), 0.05, 0.9),
                                      amp_level=level, loss_scale_manager=None)
        begin = mindspore.LambdaCallback(on_train_step_begin=lambda _: steps.begin(model),
                                         on_train_step_end=lambda _: steps.end())
        losses = []
        kept = mindspore.LambdaCallback(on_train_step_end=lambda run: losses.append(run.original_args().net_outputs))
        whole.train(2, data, callbacks=[begin, kept])
        yield from losses
        yield from model.get_parameters()

    return run


WAYS["loop_of_level_o2"], WAYS["loop_of_level_o3"] = loop_of_level("O2"), loop_of_level("O3")


@mindspore.jit
def _compiled(a, b):
    return ops.tanh(a) * b + ops.matmul(a, b.T).sum()


@way
def jit_between_cells_with_hooks(steps):
    model, seen = Given(lambda self, x: self.last(_compiled(self.small(x), x)), last=Small()), []

    def loss_of():
        y = model(X)
        y.register_hook(lambda g: seen.append(g))
        return _compiled(y, model.small(X)).mean()

    yield from train(steps, model, loss_of)
    yield from seen


@way
def a_function_mapped_between_cells(steps):
    model = Small()
    each = mindspore.vmap(_tanh_of_squares, 1, 1)

    def loss_of():
        return (each(model(X)) * model(X)).mean()

    yield from train(steps, model, loss_of)


@way
def sparse_and_padded_embeddings(steps):
    model = Given(lambda self, ids: self.small(self.table(ids).sum(1)), table=nn.Embedding(9, 6, padding_idx=0))
    ids = Tensor([[1, 2, 2], [0, 8, 8], [3, 3, 3]], mindspore.int32)
    yield from train(steps, model, lambda: (model(ids) ** 2).mean())


@way
def models_that_change_from_step_to_step(steps):
    """Each step has a model of its own; nothing of the others stays."""
    gone = []
    for k in range(COUNT):
        model = Given(lambda self, x: self.last(self.small(x)), last=Small())
        of = mindspore.value_and_grad(lambda m=model: squares(m), None, model.trainable_params())
        steps.begin(model)
        yield of()
        steps.end()
        gone.append(weakref.ref(model))
        del model, of
        gc.collect()
        yield sum(ref() is not None for ref in gone)
    yield np.array(len(gone))
