# SPDX-License-Identifier: MIT
"""Programs that look at themselves and at PyTorch while they train: tracers, profilers, frames and places of
warnings, functions as keys, patches of a test library, names that are imported late."""
import cProfile
import copyreg
import dis
import functools
import inspect
import itertools
import operator
import pickle
import pstats
import signal
import sys
import traceback
import tracemalloc
import types
import unittest.mock
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)
ACTIVATIONS = {F.relu: "relu", F.gelu: "gelu", torch.tanh: "tanh", torch.Tensor.abs: "abs"}


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


def own(frames):
    """Names of functions of this file among frames, outermost first."""
    return [f.name for f in frames if f.filename == __file__]


class Looking(nn.Module):
    """Calls look(x) in its forward pass."""

    def __init__(self, look):
        super().__init__()
        self.linear, self.look = nn.Linear(4, 4), look

    def forward(self, x):
        y = F.relu(self.linear(x))
        self.look(y)
        return y * 2


@way
def a_warning_of_the_program_has_its_place(run):
    places = []

    def old(x):
        warnings.warn("old", DeprecationWarning, stacklevel=2)
        return x

    class Legacy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return old(x) * 2

        @staticmethod
        def backward(ctx, g):
            return old(g) * 2

    def loss(model, step):
        return F.mse_loss(Legacy.apply(old(model(X))), torch.zeros(6, 2), size_average=step != 1).mean()
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run.train(model_of(), loss)
    for w in found:
        if w.filename == __file__:
            places.append((w.category.__name__, w.lineno))
    run.note("places", places)


@way
def a_warning_is_shown_once_a_place(run):
    """The registry of a module decides what is shown again."""
    shown = []
    model = Looking(lambda x: warnings.warn("seen", stacklevel=1))
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("default")
        run.train(model, loss_of)
        shown += [str(w.message) for w in found]
    run.note("shown", shown)


@way
def a_tracer_counts_lines(run):
    lines = {}

    def trace(frame, event, _arg):
        if frame.f_code.co_filename != __file__:
            return None
        key = frame.f_code.co_name, event
        lines[key] = lines.get(key, 0) + 1
        return trace
    model = Looking(lambda x: x.sum())

    def loss(model, step):
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            return loss_of(model, step)
        finally:
            sys.settrace(before)
    run.train(model, loss)
    run.note("lines", sorted(lines.items()))


@way
def a_profiler_of_python_counts_calls(run):
    profile = cProfile.Profile()
    model = Looking(lambda x: x.sum())

    def loss(model, step):
        profile.enable()
        try:
            return loss_of(model, step)
        finally:
            profile.disable()
    run.train(model, loss)
    stats = pstats.Stats(profile).stats
    run.note("calls", sorted((k[2], v[0], v[1]) for k, v in stats.items() if k[0] == __file__))


@way
def frames_of_the_program_around_a_forward(run):
    seen = []
    model = nn.Sequential(Looking(lambda x: seen.append(own(traceback.extract_stack()))), nn.Linear(4, 2))
    run.train(model, loss_of)
    run.note("frames", seen)


@way
def a_traceback_shows_lines_of_the_program(run):
    def fail(x):
        if x.requires_grad:
            raise KeyError("missing")
    model = Looking(fail)
    with run.dump(model):
        try:
            model(X)
        except KeyError as error:
            run.note("lines", own(traceback.extract_tb(error.__traceback__)))
            run.note("context", (error.__cause__, error.__context__, getattr(error, "__notes__", None)))
    run.train(model_of(), loss_of)


@way
def a_traceback_of_backward(run):
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise LookupError("in backward")
    model = model_of()
    with run.dump(model):
        y = Fails.apply(model(X)).sum()
        try:
            y.backward()
        except LookupError as error:
            run.note("lines", own(traceback.extract_tb(error.__traceback__)))
    run.train(model, loss_of)


@way
def functions_are_keys(run):
    seen = []

    def loss(model, step):
        seen.append([ACTIVATIONS.get(f) for f in (F.relu, F.gelu, torch.tanh, torch.Tensor.abs)])
        return F.relu(model(X)).pow(2).mean()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def functions_are_weak_keys(run):
    table = weakref.WeakKeyDictionary({F.relu: 1, F.softmax: 2})
    seen = []

    def loss(model, step):
        seen.append((table.get(F.relu), table.get(F.softmax), len(table)))
        table[F.silu] = step
        return F.silu(model(X)).mean()
    run.train(model_of(), loss)
    run.note("seen", seen)
    run.note("after", table.get(F.silu))


@way
def a_name_that_is_imported_while_watched(run):
    kept = {}

    def loss(model, step):
        if step == 0:
            space = {}
            exec("from torch.nn.functional import gelu, relu\nfrom torch import tanh, matmul", space)
            kept.update({k: v for k, v in space.items() if k != "__builtins__"})
        return kept["gelu"](model(X)).mean() + kept["relu"](X).sum() * 0
    run.train(model_of(), loss)
    run.note("same", [kept[n] is getattr(F if n in ("gelu", "relu") else torch, n) for n in sorted(kept)])
    run.note("text", [pickle.dumps(kept[n]) for n in sorted(kept)])
    run.note("used", kept["gelu"](X))


@way
def a_module_that_keeps_functions_it_was_made_with(run):
    class Acts(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)
            self.act, self.norm = F.gelu, functools.partial(F.layer_norm, normalized_shape=(4,))

        def forward(self, x):
            return self.norm(self.act(self.linear(x)))
    with run.dump():
        model = Acts()
        loss_of(model, 0).backward()
    run.note("same", (model.act is F.gelu, model.norm.func is F.layer_norm))
    run.train(model, loss_of)
    again = pickle.loads(pickle.dumps(model.norm))
    run.note("again", (again.func is F.layer_norm, again.keywords))


@way
def kinds_of_functions(run):
    seen = []

    def loss(model, step):
        for f in (F.relu, F.linear, F.softmax, torch.matmul, torch.relu, torch.Tensor.add, torch.Tensor.backward,
                  torch.Tensor.__add__, X.mul, torch.stack, F.gelu):
            seen.append((type(f).__name__, isinstance(f, types.FunctionType), isinstance(f, types.BuiltinFunctionType),
                         callable(f), getattr(f, "__name__", None), getattr(f, "__module__", None),
                         getattr(f, "__qualname__", None), bool(f.__doc__), inspect.isfunction(f), inspect.isbuiltin(f),
                         inspect.isroutine(f), inspect.ismethoddescriptor(f)))
        seen.append([str(inspect.signature(f)) for f in (F.relu, F.softmax, F.layer_norm)])
        seen.append([f.__code__.co_name for f in (F.relu, F.softmax)])
        seen.append((F.gelu is torch._C._nn.gelu, torch.Tensor.abs is torch._C._TensorBase.abs, F.relu.__defaults__))
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def sources_of_functions(run):
    seen = []

    def loss(model, step):
        seen.append((inspect.getsource(F.relu), inspect.getsourcefile(F.softmax), inspect.getmodule(F.relu).__name__,
                     inspect.getfullargspec(F.dropout).args, len(list(dis.get_instructions(F.relu)))))
        return F.relu(loss_of(model, step))
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def a_test_library_patches_a_function(run):
    calls = []
    real = F.relu

    def counted(x, *args, **kwargs):
        calls.append(tuple(x.shape))
        return real(x, *args, **kwargs)

    def loss(model, step):
        if step == 1:
            with unittest.mock.patch("torch.nn.functional.relu", counted), \
                    unittest.mock.patch.object(torch.Tensor, "tanh", lambda t: torch.tanh(t) * 2):
                return F.relu(model(X)).tanh().mean()
        return F.relu(model(X)).tanh().mean()
    run.train(model_of(), loss)
    run.note("calls", calls)
    run.note("same", F.relu is real)
    run.note("after", X.tanh())


@way
def a_patch_that_outlives_the_dump(run):
    real, seen = torch.sigmoid, []
    patch = unittest.mock.patch("torch.sigmoid", wraps=real)
    model = model_of()
    with run.dump(model):
        mock = patch.start()
        seen.append(torch.sigmoid(model(X)))
    seen.append(torch.sigmoid(X))
    seen.append(mock.call_count)
    patch.stop()
    run.note("seen", seen)
    run.note("same", torch.sigmoid is real)
    run.train(model, lambda m, _: torch.sigmoid(m(X)).mean())


@way
def a_patch_that_ends_inside_the_dump(run):
    real = torch.sigmoid
    patch = unittest.mock.patch("torch.sigmoid", lambda x: x * 3)
    patch.start()
    model = model_of()
    with run.dump(model):
        run.note("patched", torch.sigmoid(X))
        patch.stop()
        run.note("not patched", torch.sigmoid(X))
    run.note("same", torch.sigmoid is real)
    run.train(model, lambda m, _: torch.sigmoid(m(X)).mean())


@way
def functions_in_the_hands_of_others(run):
    """map, reduce, accumulate, sorted and operator call functions from C."""
    def loss(model, _step):
        parts = list(map(torch.relu, model(X)))
        total = functools.reduce(torch.add, parts)
        most = max(parts, key=torch.sum)
        running = list(itertools.accumulate(parts, operator.mul))
        return (total + most + operator.matmul(running[-1].view(1, 2), X[:2, :2])).sum() \
            + operator.attrgetter("T")(total).sum() + operator.methodcaller("mean")(total)
    run.train(model_of(), loss)


@way
def methods_by_way_of_a_class(run):
    class Scaled(torch.Tensor):
        def add(self, other, **kwargs):
            return super().add(other, **kwargs).mul(2)

        def __mul__(self, other):
            return super().__mul__(other) + 0

    def loss(model, _step):
        y = model(X)
        z = torch.Tensor.relu(y) + type(y).sigmoid(y) + getattr(y, "tanh")() + vars(torch._C._TensorBase)["exp"](y)
        s = y.as_subclass(Scaled)
        return z.sum() + (s.add(1) * 2).as_subclass(torch.Tensor).sum()
    run.train(model_of(), loss)


@way
def memory_of_python_is_traced(run):
    tracemalloc.start(5)
    try:
        run.train(model_of(), loss_of)
        run.note("traced", tracemalloc.is_tracing() and tracemalloc.get_traced_memory()[1] > 0)
    finally:
        tracemalloc.stop()


@way
def an_alarm_in_the_middle_of_a_step(run):
    """A handler that raises; where it strikes is left to the program, so that both runs do the same."""
    model = model_of()

    def late(_number, _frame):
        raise TimeoutError("too slow")
    before = signal.signal(signal.SIGUSR2, late)
    for at in range(3):
        hook = model[at].register_forward_hook(lambda *_: signal.raise_signal(signal.SIGUSR2))
        with run.dump(model):
            run.raises(f"forward {at}", lambda: model(X))
        hook.remove()
    signal.signal(signal.SIGUSR2, before)
    run.train(model, loss_of)


@way(needs=(2, 4))
def a_gradient_by_its_edge(run):
    from torch.autograd.graph import get_gradient_edge
    model = model_of()

    def backward(loss):
        edge = get_gradient_edge(loss)
        run.note("name", edge.node.name())
        torch.autograd.backward((edge,), (torch.ones_like(loss),))
    run.train(model, loss_of, backward=backward)


@way
def nodes_of_the_graph_are_walked(run):
    def names(node):
        found, todo = [], [node]
        while todo:
            n = todo.pop()
            if n is not None:
                found.append((n.name(), len(n.next_functions)))
                todo += [f for f, _ in n.next_functions]
        return found
    seen = []

    def loss(model, step):
        y = loss_of(model, step)
        seen.append(names(y.grad_fn))
        return y
    run.train(model_of(), loss)
    run.note("nodes", seen)


@way
def a_call_near_the_limit_of_recursion(run):
    """As deep as it goes without us, but for 60 frames."""
    linear = nn.Linear(4, 4)

    class Deep(nn.Module):
        def forward(self, x, depth):
            return self(x * 0.99, depth - 1) if depth else F.relu(linear(x))
    model = nn.ModuleList([Deep(), linear])
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    try:
        run.train(model, lambda m, _: m[0](X, 100).sum())
    finally:
        sys.setrecursionlimit(before)


@way
def reduced_by_the_program(run):
    """copyreg is asked for how tensors are pickled, also for those of a watched step."""
    def reduce(t):
        return torch.tensor, (t.tolist(),)
    saved = []

    def loss(model, step):
        y = model(X)
        copyreg.pickle(torch.Tensor, reduce)
        try:
            saved.append(pickle.dumps(y.detach()))
        finally:
            copyreg.dispatch_table.pop(torch.Tensor)
        return y.pow(2).mean()
    run.train(model_of(), loss)
    run.note("saved", saved)


@way
def hooks_of_the_program_are_cleared(run):
    """As some libraries do before they export."""
    model = model_of()
    model[0].register_forward_hook(lambda *_: None)

    def loss(model, step):
        y = model(X)
        if step == 1:
            for m in model.modules():
                m._forward_hooks.clear()
                m._forward_pre_hooks.clear()
                m._backward_hooks.clear()
        return y.pow(2).mean() + model(X).sum() * 0.1
    run.train(model, loss)
    run.note("hooks", [len(m._forward_hooks) for m in model.modules()])
