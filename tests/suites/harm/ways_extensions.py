# SPDX-License-Identifier: MIT
"""Operators of tensors, operators of extensions, and functions that a program registers: all stay who they are."""
import copy
import functools
import inspect
import pickle
import types

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)
OPERATORS = ("__setitem__", "__getitem__", "__delitem__", "__neg__", "__abs__", "__pos__", "__invert__", "__rtruediv__",
             "__itruediv__", "__truediv__", "__rsub__", "__len__", "__bool__", "__contains__")
_library = None


def operators():
    """Operators of an extension, whose records the dump is asked for: see config_of in main.py."""
    global _library
    if _library is None:
        _library = torch.library.Library("harm_extension", "DEF")
        _library.define("twice(Tensor x) -> Tensor")
        _library.define("scaled(Tensor x, *, float by=2.0) -> Tensor")
        _library.define("scaled.other(Tensor x, Tensor by) -> Tensor")
        _library.impl("twice", lambda x: x + x, "CompositeImplicitAutograd")
        _library.impl("scaled", lambda x, by=2.0: x * by, "CompositeImplicitAutograd")
        _library.impl("scaled.other", lambda x, by: x * by, "CompositeImplicitAutograd")
    return torch.ops.harm_extension


def model_of():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))


@way
def operators_of_tensors_keep_who_they_are(run):
    before = {name: getattr(torch.Tensor, name, None) for name in OPERATORS}
    own = sorted(name for name in OPERATORS if name in vars(torch.Tensor))
    model = model_of()
    with run.dump(model):
        model(X).sum().backward()
        for name, was in before.items():
            now = getattr(torch.Tensor, name, None)
            run.note(name, (now is was, type(now).__name__, getattr(now, "__qualname__", None), inspect.isroutine(now),
                            (now.__doc__ or "")[:40]))
        run.note("of the class itself", sorted(name for name in OPERATORS if name in vars(torch.Tensor)) == own)
        run.note("pickled", pickle.loads(pickle.dumps(torch.Tensor.__setitem__)) is before["__setitem__"])
        run.note("copied", copy.deepcopy(torch.Tensor.__neg__) is before["__neg__"])
    run.note("after", [getattr(torch.Tensor, name, None) is was for name, was in before.items()])


@way
def assignments_to_items_of_all_kinds(run):
    class Sub(torch.Tensor):
        pass

    class Counting(torch.Tensor):
        def __setitem__(self, key, value):
            run.note("item of a subclass", repr(key))
            super().__setitem__(key, value)

    def forward(self, x):
        y = self.a(x).clone()
        y[0] = 1.5
        y[1:3, ::2] = x[1:3, ::2] * 2
        y[y > 1] = 0.25
        y[[3, 4]] = x[[4, 3]]
        y[..., -1] += 1
        torch.Tensor.__setitem__(y, (5, 0), 7.0)
        sub = torch.zeros(3).as_subclass(Sub)
        sub[1] = 2.0
        counting = torch.zeros(3).as_subclass(Counting)
        counting[0] = 3.0

        class Late(torch.Tensor):
            pass
        late = torch.zeros(3).as_subclass(Late)
        late[2] = 4.0
        run.note("subclasses", (sub, counting, late, "__setitem__" in vars(Late)))
        self.late = Late
        for text, wrong in (("name", lambda: y.__setitem__("a", 1)), ("range", lambda: y.__setitem__(9, 1)),
                            ("shape", lambda: y.__setitem__(0, torch.ones(3))), ("delete", lambda: y.__delitem__(0)),
                            ("few", lambda: torch.Tensor.__setitem__(y, 1)), ("other", lambda: torch.Tensor.__setitem__([], 0, 1))):
            run.raises(text, wrong)
        return y.sum()
    model = Calls(forward, a=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(X))
    late = torch.zeros(2).as_subclass(model.late)
    late[0] = 1.0
    run.note("late", late)


@way
def operators_that_a_subclass_overrides(run):
    class Signed(torch.Tensor):
        def __neg__(self):
            return self.neg() * 3

        def __abs__(self):
            return super().__abs__() + 1

        def __rtruediv__(self, other):
            return super().__rtruediv__(other) * 2

    def forward(self, x):
        y = self.a(x)
        s = y.as_subclass(Signed)
        run.note("values", (-s, abs(s), 2 / s, s.neg(), -y, abs(y), 1 / y))
        run.note("types", [type(v).__name__ for v in (-s, abs(s), 1 / s)])
        y = y * 1
        y /= 2
        return (-y + abs(y) + 1 / (y + 9)).sum() + (-s).as_subclass(torch.Tensor).sum()
    run.train(Calls(forward, a=nn.Linear(4, 4)), lambda m, i: m(X))


@way
def a_class_that_gets_operators_in_a_step(run):
    class Grows(torch.Tensor):
        pass
    model = model_of()
    with run.dump(model):
        t = torch.ones(2).as_subclass(Grows)
        run.note("before", -t)
        Grows.__neg__ = lambda self: self.as_subclass(torch.Tensor) * 5
        Grows.__setitem__ = lambda self, key, value: run.note("set", key)
        t[0] = 3.0
        run.note("after", (-t, t))
        del Grows.__neg__
        del Grows.__setitem__
        t[1] = 4.0
        run.note("without", (-t, t))
        model(X).sum().backward()
    t[0] = 6.0
    run.note("outside", (-t, t))


@way
def assignments_through_a_table_of_functions(run):
    seen = []

    class Noted(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append((getattr(func, "__name__", "?"), func is torch.Tensor.__setitem__, func is torch.Tensor.neg))
            return super().__torch_function__(func, types, args, kwargs or {})

    def forward(self, x):
        y = self.a(x).detach().as_subclass(Noted)
        y[0] = 1.0
        return self.a(x).sum() + (-y).as_subclass(torch.Tensor).sum() + abs(y).as_subclass(torch.Tensor).sum()
    run.train(Calls(forward, a=nn.Linear(4, 4)), lambda m, i: m(X))
    run.note("seen", seen)


@way
def operators_of_extensions_keep_who_they_are(run):
    ops = operators()
    twice, call = ops.twice, type(ops.twice).__call__
    model = Calls(lambda self, x: (ops.twice(self.a(x)) + ops.scaled(x, by=3.0) + ops.scaled(x, x)).sum(), a=nn.Linear(4, 4))

    def loss_of(model, _step):
        run.note("who", (ops.twice is twice, torch.ops.harm_extension.twice is twice, type(twice).__call__ is call,
                         str(ops.scaled), ops.scaled.overloads(), type(twice).__name__, callable(twice)))
        run.note("signature", str(inspect.signature(call)))
        run.note("one overload", ops.scaled.other(X, X))
        return model(X)
    run.train(model, loss_of)
    run.raises("nothing", lambda: ops.twice())
    run.raises("another type", lambda: ops.scaled(X, "x"))


@way
def errors_of_operators_of_extensions(run):
    ops = operators()
    model = model_of()
    with run.dump(model):
        model(X).sum().backward()
        run.raises("nothing", lambda: ops.twice())
        run.raises("a name", lambda: ops.twice(X, other=1))
        run.raises("a type", lambda: ops.scaled(X, "x"))
        run.raises("absent", lambda: ops.absent)
        run.raises("another self", lambda: type(ops.twice).__call__())


@way
def operators_of_extensions_in_a_scripted_function(run):
    ops = operators()
    assert ops

    def f(x):
        return torch.ops.harm_extension.twice(x) - torch.neg(x)
    model = Calls(lambda self, x: torch.ops.harm_extension.twice(self.a(x)).sum(), a=nn.Linear(4, 4))
    with run.dump(model):
        scripted = torch.jit.script(f)
        run.note("code", scripted.code)
        run.note("scripted", scripted(X))
        traced = torch.jit.trace(f, (X,))
        run.note("traced", (traced.code, traced(X)))
        model(X).backward()
    run.note_model(model)


@way(needs=(2, 1))
def operators_of_extensions_in_compiled_code(run):
    ops = operators()

    def forward(self, x):
        y = self.a(x).clone()
        y[0] = 1.0
        return (ops.twice(y) - (-y) + abs(y)).sum()
    model = Calls(forward, a=nn.Linear(4, 4))
    torch._dynamo.reset()
    fast = torch.compile(model, backend="aot_eager", fullgraph=True)
    run.train(model, lambda m, i: fast(X))


@way
def operators_of_extensions_in_a_symbolic_trace(run):
    ops = operators()
    from torch import fx

    def f(x):
        return ops.twice(x) - torch.neg(-x) / abs(x)
    with run.dump(model_of()):
        graph = fx.symbolic_trace(f)
        run.note("nodes", [(n.op, str(n.target), n.target is ops.twice) for n in graph.graph.nodes])
        run.note("value", graph(X))


@way(needs=(2, 4), silent=True)
def operators_made_by_decorators(run):
    name = "harm_extension::made_by_a_decorator"

    @torch.library.custom_op(name, mutates_args=())
    def made(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @made.register_fake
    def _(x):
        return torch.empty_like(x)
    made.register_autograd(lambda ctx, grad: grad * 2)
    model = Calls(lambda self, x: made(self.a(x)).sum(), a=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(X))
    run.note("direct", torch.ops.harm_extension.made_by_a_decorator(X))


@way
def functions_that_a_program_registers(run):
    def scale(x, by=2.0, *, more=None):
        """Scales."""
        return x * by if more is None else x * more
    own = types.SimpleNamespace(scale=scale, __name__="own")
    from_own = own.scale
    kept = scale.__code__, scale.__defaults__, str(inspect.signature(scale))
    model = Calls(lambda self, x: own.scale(self.a(x)).sum() + from_own(x, 3.0).sum() + own.scale(x, more=x).sum(), a=nn.Linear(4, 4))
    run.debugger.register_custom_api(own, "scale", "Own")

    def loss_of(model, _step):
        run.note("who", (own.scale is scale, own.scale.__code__ is kept[0], own.scale.__defaults__ == kept[1],
                         str(inspect.signature(own.scale)) == kept[2], own.scale.__doc__, type(own.scale).__name__,
                         inspect.isfunction(own.scale), inspect.getsource(own.scale)[:20]))
        run.raises("unknown", lambda: own.scale(X, unknown=1))
        run.raises("nothing", lambda: own.scale())
        return model(X)
    run.train(model, loss_of)
    run.debugger.restore_custom_api(own, "scale")
    run.note("after", (own.scale is scale, own.scale(X)))
    run.debugger.register_custom_api(own, "scale", "Again")
    with run.dump(model):
        model(X).backward()
    run.debugger.restore_custom_api(own, "scale")


@way
def methods_and_objects_that_a_program_registers(run):
    class Own:
        def method(self, x):
            return x * 2

        @staticmethod
        def static(x):
            return x * 3

        @classmethod
        def of_class(cls, x):
            return x * 4

    own = Own()
    names = ("method", "static", "of_class")
    for name in names:
        run.debugger.register_custom_api(Own, name, "Own")

    def forward(self, x):
        y = self.a(x)
        return (own.method(y) + Own.static(y) + own.static(y) + Own.of_class(y)).sum()
    model = Calls(forward, a=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(X))
    for name in names:
        run.debugger.restore_custom_api(Own, name)
    run.note("after", [type(vars(Own)[name]).__name__ for name in names])
    run.note("values", (own.method(X), Own.static(X), Own.of_class(X)))


@way
def partials_and_callables_that_a_program_registers(run):
    class Scale:
        """Scales by a number."""

        def __init__(self, by):
            self.by = by

        def __call__(self, x, *, more=0):
            return x * self.by + more

    def scale(x, by, *, more=0):
        return x * by + more
    own = types.SimpleNamespace(__name__="own", partial=functools.partial(scale, by=3.0), callable=Scale(2.0),
                                slow=functools.partial(Scale(5.0), more=1), other=Scale(7.0))
    names = ("partial", "callable", "slow")
    known = {name: getattr(own, name) for name in names}
    call_of_class = Scale.__call__, type(Scale.__call__)
    from_own = own.partial
    model = Calls(lambda self, x: (own.partial(self.a(x)) + from_own(x, more=x) + own.callable(x, more=x) + own.slow(x) +
                                   own.other(x)).sum(), a=nn.Linear(4, 4))
    for name in names:
        run.debugger.register_custom_api(own, name, "Own")

    def loss_of(model, _step):
        for name in names:
            func = getattr(own, name)
            run.note(f"who {name}", (func is known[name], type(func).__name__, callable(func), str(inspect.signature(func)),
                                     isinstance(func, functools.partial), func.__doc__))
        run.note("pickled", type(copy.deepcopy(own.callable)).__name__)
        run.note("copied", (copy.copy(own.partial)(X, more=1), functools.partial(own.partial, more=2)(X)))
        run.note("asked", (own.partial.func is scale, own.partial.keywords, own.partial.__call__(X), own.callable.__call__(X)))
        for name in names:
            run.raises(f"unknown {name}", lambda name=name: getattr(own, name)(X, unknown=1))
            run.raises(f"nothing {name}", lambda name=name: getattr(own, name)())
        return model(X)
    run.train(model, loss_of)
    for name in names:
        run.debugger.restore_custom_api(own, name)
    run.note("after", [getattr(own, name) is known[name] for name in names])
    run.note("class", (Scale.__call__ is call_of_class[0], type(Scale.__call__) is call_of_class[1]))
    run.note("values", [getattr(own, name)(X) for name in names])


@way
def methods_of_classes_and_objects_that_a_program_registers(run):
    class Base:
        @classmethod
        def made(cls, x):
            return x * len(cls.__name__)

        def method(self, x):
            return x * self.by

    class Derived(Base):
        pass

    class Other(Base):
        pass
    one, two = Derived(), Derived()
    one.by, two.by = 2.0, 3.0
    run.debugger.register_custom_api(Derived, "made", "Own")
    run.debugger.register_custom_api(one, "method", "Own")
    kept = vars(Base)["made"], vars(Base)["method"]

    def forward(self, x):
        y = self.a(x)
        return (Derived.made(y) + Other.made(y) + one.method(y) + two.method(y) + one.made(y) + Base.method(two, y)).sum()
    model = Calls(forward, a=nn.Linear(4, 4))

    def loss_of(model, _step):
        run.note("own names", (sorted(vars(one)), sorted(n for n in vars(Derived) if n[0] != "_"), one.method.__self__ is one))
        run.note("kept", (vars(Base)["made"] is kept[0], vars(Base)["method"] is kept[1], type(kept[1]).__name__))
        return model(X)
    run.train(model, loss_of)
    run.debugger.restore_custom_api(Derived, "made")
    run.debugger.restore_custom_api(one, "method")
    run.note("after", (sorted(vars(one)), sorted(n for n in vars(Derived) if n[0] != "_"), "made" in vars(Derived)))


@way
def functions_that_call_themselves_by_name(run):
    """A table of functions by themselves, as dispatchers of libraries have it."""
    table = {F.relu: F.gelu, torch.neg: torch.abs, torch.Tensor.__neg__: torch.Tensor.__abs__}

    def forward(self, x):
        y = self.a(x)
        return (table[F.relu](y) + table[torch.neg](y) + table[torch.Tensor.__neg__](y)).sum()
    run.train(Calls(forward, a=nn.Linear(4, 4)), lambda m, i: m(X))
    assert VERSION
