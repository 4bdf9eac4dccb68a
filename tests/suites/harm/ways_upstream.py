# SPDX-License-Identifier: MIT
"""What the tests of PyTorch itself do: objects that act like tensors, nodes and their saved tensors, control flow as
operators, stances of the compiler, scripts and graphs, modules that are hard to handle, tools of Python."""
import gc
import io
import pickle
import pickletools
import sys
import threading

import torch
import torch.fx
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


class Diagonal:
    """No tensor, but functions of PyTorch take it: as in the notes on extending PyTorch."""
    handled = {}

    def __init__(self, value):
        self.value = value

    def tensor(self):
        return self.value.diag_embed()

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Diagonal.seen.append((func.__name__, [t.__name__ for t in types], torch.overrides.resolve_name(func)))
        if func not in cls.handled:
            args = [a.tensor() if isinstance(a, Diagonal) else a for a in args]
            return func(*args, **(kwargs or {}))
        return cls.handled[func](*args, **(kwargs or {}))


Diagonal.seen = []
Diagonal.handled[torch.mean] = lambda d: d.value.sum() / d.value.numel() ** 2


@way(needs=(2, 0))
def objects_that_act_like_tensors(run):
    def own(x, scale=1):
        if torch.overrides.has_torch_function_unary(x):
            return torch.overrides.handle_torch_function(own, (x,), x, scale=scale)
        return x * scale
    Diagonal.handled[own] = lambda d, scale=1: Diagonal(d.value * scale)
    Diagonal.seen.clear()

    def loss(model, _step):
        d = Diagonal(model(X)[0])
        run.note("is like", torch.overrides.is_tensor_like(d))
        y = torch.mean(own(d, 3)) + torch.add(d, 1).sum() + F.softplus(torch.mm(X[:2, :2], d)).sum()
        return y + F.linear(X[:, :2], d).sum()
    run.train(model_of(), loss)
    run.note("seen", Diagonal.seen)


@way(needs=(2, 1))
def saved_tensors_of_nodes_are_read_and_given_hooks(run):
    seen = []

    def loss(model, step):
        y = model(X)
        node = y.grad_fn
        seen.append((node is y.grad_fn, node.name(), [n is m for (n, _), (m, _) in
                                                       zip(node.next_functions, y.grad_fn.next_functions)]))
        z = y.exp()
        seen.append(z.grad_fn._saved_result.sum().item())
        z.grad_fn._raw_saved_result.register_hooks(lambda t: seen.append("pack") or t.clone(),
                                                   lambda t: seen.append("unpack") or t)
        first = (y * 2).grad_fn._sequence_nr()
        seen.append(torch.tanh(y).grad_fn._sequence_nr() - first)
        z.grad_fn.register_prehook(lambda gs: seen.append(("before", len(gs))))
        z.grad_fn.register_hook(lambda ins, outs: seen.append(("after", len(ins), len(outs))))
        return z.pow(2).mean()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way(needs=(2, 1))
def the_engine_is_asked_in_backward(run):
    seen = []
    engine = torch.autograd.Variable._execution_engine

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_non_differentiable(ones := torch.ones(2))
            ctx.set_materialize_grads(False)
            return x * 1, x * 2, ones, "text", 3

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, a, b, ones, text, number):
            seen.append((a is None, b is None, ones, text, number, ctx.needs_input_grad,
                         torch._C._current_graph_task_id() >= 0, torch._C._current_autograd_node().name()))
            engine.queue_callback(lambda: seen.append("queued"))
            return (a if a is not None else 0) + (2 * b if b is not None else 0)

    def loss(model, step):
        a, b, ones, text, number = Asks.apply(model(X))
        return (a if step == 0 else b).sum() * number + ones.sum()
    model = model_of()
    model[0].weight.register_hook(lambda g: engine.queue_callback(lambda: seen.append("of a hook")))
    run.train(model, loss)
    run.note("seen", seen)


@way(needs=(2, 4), slow=True)
def control_flow_as_operators(run):
    from torch._higher_order_ops.associative_scan import associative_scan
    from torch._higher_order_ops.while_loop import while_loop

    def loss(model, step):
        y = model(X)
        with torch.no_grad():
            n, z = while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 0.5 + 1), (torch.tensor(0), y.detach()))
        run.note("loop", (n, z))
        s = associative_scan(torch.add, z, 0, combine_mode="generic")
        run.note("scan", s)
        return torch.cond(y.sum() > 0, lambda t: t.sin(), lambda t: t.cos(), (y,)).pow(2).mean()
    run.train(model_of(), loss)


@way(needs=(2, 6))
def stances_of_the_compiler(run):
    model = model_of()
    compiled = torch.compile(model, backend="eager")
    seen = []

    def loss(_model, step):
        with torch.compiler.set_stance("force_eager"):
            y = compiled(X)
        seen.append((torch.compiler.is_compiling(), torch._dynamo.is_compiling(), torch.jit.is_scripting(),
                     torch.jit.is_tracing(), torch.compiler.is_exporting()))
        return y.pow(2).mean()
    run.train(model, loss)
    run.note("seen", seen)


@way
def scripts_that_fork_and_call_back(run):
    class Scripted(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        @torch.jit.ignore
        def python(self, x):
            return F.relu(x) * 2

        @torch.jit.unused
        def never(self, x):
            raise RuntimeError("never")

        @torch.jit.export
        def other(self, x):
            return self.linear(x) + 1

        def forward(self, x):
            later = torch.jit.fork(torch.tanh, x)
            y = self.python(self.linear(x))
            return y + torch.jit.wait(later)
    scripted = torch.jit.script(Scripted())

    def loss(model, step):
        y = model[0](X) + model[0].other(X)
        if step == 1:
            out = io.BytesIO()
            torch.jit.save(torch.jit.script(nn.Linear(2, 2)), out)
            out.seek(0)
            y = y + torch.jit.load(out)(X[:, :2]).mean() * 0
        return y.pow(2).mean()
    run.train(nn.Sequential(scripted, nn.Linear(4, 2)), loss)
    run.note("code", scripted.code)


@torch.fx.wrap
def half_of(x):
    return x * 0.5


@way
def graphs_interpreted_node_by_node(run):
    from torch import fx
    seen = []

    class Counts(fx.Interpreter):
        def run_node(self, n):
            seen.append((n.op, str(n.target) if isinstance(n.target, str) else n.target.__name__))
            return super().run_node(n)

    class Swaps(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.sigmoid if target is torch.tanh else target, args, kwargs)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x):
            return half_of(torch.tanh(self.linear(x))) + F.relu(x)

    def loss(model, step):
        graph = fx.symbolic_trace(model)
        swapped = Swaps(graph).transform()
        run.note("code", (graph.code, swapped.code))
        again = pickle.loads(pickle.dumps(graph)) if step == 2 else graph
        return Counts(again).run(X).sum() + swapped(X).mean()
    run.train(Net(), loss)
    run.note("seen", seen)


class Hard(nn.Module):
    """False, iterable, not to be set, compared or printed."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        object.__setattr__(self, "frozen", True)

    def __setattr__(self, name, value):
        if self.__dict__.get("frozen"):
            raise AttributeError("frozen")
        super().__setattr__(name, value)

    def __delattr__(self, name):
        raise AttributeError("frozen")

    def __bool__(self):
        raise RuntimeError("neither true nor false")

    def __len__(self):
        return 0

    def __iter__(self):
        raise RuntimeError("not to be walked")

    def __eq__(self, other):
        raise RuntimeError("not to be compared")

    __hash__ = nn.Module.__hash__

    def __repr__(self):
        raise RuntimeError("not to be printed")

    def __dir__(self):
        raise RuntimeError("not to be listed")

    def forward(self, x):
        return torch.tanh(self.linear(x))


@way
def models_that_are_false_frozen_and_not_to_be_looked_at(run):
    run.train(Hard(), lambda m, _: m.forward(X).sum() + m(X).mean())
    run.train(nn.Sequential(nn.Linear(4, 4), Hard()), loss_of)


@way
def a_profile_with_calls_of_c(run):
    seen = []

    def profile(frame, event, arg):
        if frame.f_code.co_filename == __file__ and event.startswith("c_"):
            seen.append((event, frame.f_code.co_name, getattr(arg, "__name__", None), type(arg).__name__))

    def loss(model, step):
        y = model(X)
        before = sys.getprofile()
        sys.setprofile(profile)
        try:
            z = torch.tanh(y)
            z = z.exp().add(1)
            z = len(z.shape) * torch.matmul(z, z.t())
        finally:
            sys.setprofile(before)
        return z.mean()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def the_collector_keeps_what_it_finds(run):
    """gc.DEBUG_SAVEALL: what is garbage in a circle, by class; none of it may be new."""
    model = model_of()
    loss_of(model, 0).backward()
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    told = []
    gc.callbacks.append(call := lambda phase, info: told.append((phase, info["generation"])))
    try:
        run.train(model, loss_of)
        gc.collect()
        kinds = (torch.Tensor, nn.Module)
        run.note("garbage", sorted(type(o).__name__ for o in gc.garbage if isinstance(o, kinds)))
        run.note("told", told)
    finally:
        gc.callbacks.remove(call)
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@way
def names_in_what_is_pickled_within_a_step(run):
    """A model saved whole is loaded where nobody knows of a dump."""
    names = set()

    def loss(model, _step):
        y = model(X)
        for text in (pickle.dumps(model), pickle.dumps(y.detach()), pickle.dumps([F.relu, torch.tanh, F.gelu])):
            strings = [arg for op, arg, _ in pickletools.genops(text) if isinstance(arg, str)]
            names.update(s for s in strings if s.startswith("msprobe."))
        again = pickle.loads(pickle.dumps(model))
        return y.pow(2).mean() + again(X).mean().detach()
    run.train(model_of(), loss)
    run.note("names", sorted(names))


@way
def modules_moved_retyped_and_shared(run):
    model = model_of()

    def loss(model, step):
        y = model(X)
        if step == 1:
            model.double()
            y = y + model(X.double()).float()
            model.float()
            model.share_memory()
        if step == 2:
            model.to(memory_format=torch.contiguous_format)
            model.apply(lambda m: m.register_buffer("added", torch.ones(1)) if isinstance(m, nn.Linear) else None)
            y = y * model[0].added
        return y.pow(2).mean()
    run.train(model, loss, steps=4)


@way
def threads_that_switch_all_the_time(run):
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    slow, told, stop = model_of().eval(), [], threading.Event()
    want = slow(X).detach()

    def infer():
        while not stop.is_set():
            with torch.no_grad():
                told.append(torch.equal(slow(X), want))
    threads = [threading.Thread(target=infer) for _ in range(3)]
    for t in threads:
        t.start()
    try:
        run.train(model_of(), loss_of, steps=5)
    finally:
        stop.set()
        for t in threads:
            t.join()
        sys.setswitchinterval(before)
    run.note("told", set(told))
