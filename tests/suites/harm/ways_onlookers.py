# SPDX-License-Identifier: MIT
"""Programs that look closely at Python, at the processor or at their own objects while a step runs: traps of
floating point, timeouts, proxies, imports that are counted, functions called by Python's own code in C."""
import builtins
import copy
import ctypes
import ctypes.util
import functools
import gc
import importlib
import inspect
import itertools
import linecache
import math
import multiprocessing.reduction
import operator
import os
import pickle
import signal
import sys
import threading
import time
import types
import warnings

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)
MASK = torch.tensor([[math.inf, -math.inf, math.nan, 1.0]])


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


# ---- the processor ------------------------------------------------------------------------------

libm = ctypes.CDLL(ctypes.util.find_library("m"))
INVALID, DIVISION, OVERFLOW = 1, 4, 8  # of fenv.h on x86-64
ALL = 0x3d
UPWARD, NEAREST = 0x800, 0
IS_X86 = os.uname().machine == "x86_64"


class Moves(nn.Module):
    """Passes infinities and numbers that are none along, and computes nothing with them."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, mask):
        return self.inner(torch.transpose(mask.reshape(2, 2), 0, 1))


@way
def a_trap_for_invalid_operations(run):
    """As those set who hunt the first NaN; it ends the program at an operation, not at a value."""
    model, moves = model_of(), Moves()

    def loss(model, step):
        value = loss_of(model, step)
        trapped = IS_X86 and libm.feenableexcept(INVALID | DIVISION | OVERFLOW)
        moves(MASK)
        model[1](X)
        if trapped != -1:
            libm.fedisableexcept(INVALID | DIVISION | OVERFLOW)
        return value
    both = nn.ModuleList([model, moves])
    run.train(both, lambda both, step: loss(both[0], step))


@way
def flags_of_floating_point_are_read(run):
    model, moves, seen = model_of(), Moves(), []

    def loss(model, step):
        value = loss_of(model, step)
        libm.feclearexcept(ALL)
        moves(MASK)
        torch.transpose(MASK, 0, 1)
        seen.append(libm.fetestexcept(INVALID | DIVISION | OVERFLOW))
        return value
    run.train(model, loss)
    with run.dump(moves):
        libm.feclearexcept(ALL)
        moves(MASK)
        seen.append(libm.fetestexcept(INVALID | DIVISION | OVERFLOW))
    run.note("flags", seen)


@way
def numbers_are_rounded_upward(run):
    model, seen = model_of(), []

    def loss(model, step):
        libm.fesetround(UPWARD)
        try:
            value = loss_of(model, step)
            seen.append((libm.fegetround(), 0.1 + 0.2, value.item()))
            model(X * math.pi).sum().backward()
        finally:
            libm.fesetround(NEAREST)
        return value
    run.train(model, loss)
    run.note("seen", seen)


# ---- exceptions from elsewhere --------------------------------------------------------------------


class TooLate(Exception):
    pass


@way
def timeouts_that_a_handler_raises_reach_the_program(run):
    """Whatever runs when the clock strikes, the program gets the exception of its own handler."""
    model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(6)])
    state = {"raised": 0, "caught": 0}

    def strike(_number, _frame):
        state["raised"] += 1
        raise TooLate("the clock has struck")
    before = signal.signal(signal.SIGALRM, strike)
    for i in range(60):
        with run.dump(model):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0003 + i * 0.0001)
                for _ in range(200):
                    model(X).sum().backward()
                time.sleep(0.2)
            except TooLate:
                state["caught"] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    run.note("lost", state["raised"] - state["caught"])
    run.note("caught", state["caught"])


@way
def an_exception_sent_into_a_training_thread(run):
    """As programs end a trial that takes too long."""
    model, ends = model_of(), []

    def trial():
        try:
            for _ in range(100000):
                model(X).sum().backward()
            ends.append("at its end")
        except TooLate:
            ends.append("too late")
    for i in range(12):
        thread = threading.Thread(target=trial)
        with run.dump(model):
            thread.start()
            time.sleep(0.01 + i * 0.001)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TooLate))
            thread.join()
    run.note("ends", ends)


@way
def what_is_raised_where_nobody_can_catch_it(run):
    """Finalizers and callbacks of weak references that fail are told to the hook of the program."""
    model, told = model_of(), []

    class Falls:
        def __del__(self):
            raise ValueError("a finalizer")

    def tell(what):
        told.append((what.exc_type.__name__, str(what.exc_value), getattr(what.object, "__qualname__", "")))
    before, sys.unraisablehook = sys.unraisablehook, tell

    def loss(model, step):
        out = F.relu(model(X))
        out.falls = Falls()
        total = out.sum() + torch.add(out, 1).mean()
        del out
        return total
    run.train(model, loss)
    gc.collect()
    sys.unraisablehook = before
    run.note("told", told)


# ---- proxies and lazy objects -----------------------------------------------------------------------


class Lazy:
    """Wakes when it is asked what it is, as lazy objects of several libraries do."""

    def __init__(self, make):
        object.__setattr__(self, "asked", [])
        object.__setattr__(self, "make", make)

    @property
    def __class__(self):
        object.__getattribute__(self, "asked").append("class")
        return object.__getattribute__(self, "make")

    def __getattr__(self, name):
        object.__getattribute__(self, "asked").append(name)
        raise AttributeError(name)


class Takes(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, x, lazy, also=None):
        return self.inner(x), lazy


@way
def lazy_arguments_that_wake_when_asked_what_they_are(run):
    model, lazies = Takes(), [Lazy(dict), Lazy(float), Lazy(torch.Tensor)]

    def loss(model, step):
        for lazy in lazies:
            value, _same = model(X, lazy, also=[lazy, {"in": lazy}])
        return value.sum()
    run.train(model, loss)
    run.note("asked", [object.__getattribute__(lazy, "asked") for lazy in lazies])


class Behind:
    """Stands for a module, which has its class and its attributes."""

    def __init__(self, module):
        object.__setattr__(self, "_real", module)

    @property
    def __class__(self):
        return type(object.__getattribute__(self, "_real"))

    def __getattr__(self, name):
        return getattr(object.__getattribute__(self, "_real"), name)

    def __setattr__(self, name, value):
        setattr(object.__getattribute__(self, "_real"), name, value)

    def __call__(self, *args, **kwargs):
        return object.__getattribute__(self, "_real")(*args, **kwargs)


class BehindSlots(Behind):
    __slots__ = ("_real",)


@way
def a_model_behind_a_proxy(run):
    run.train(Behind(model_of()), loss_of)


@way
def a_layer_behind_a_proxy(run):
    model = model_of()
    model._modules["1"] = Behind(nn.Tanh())
    run.train(model, loss_of)


class Counting(str):
    """A key that counts how often its text and its hash are asked for."""

    asked = []

    def __str__(self):
        self.asked.append("str")
        return "counting"

    def __repr__(self):
        self.asked.append("repr")
        return "counting"

    def __hash__(self):
        self.asked.append("hash")
        return 7

    def __eq__(self, other):
        self.asked.append("eq")
        return self is other


@way
def keys_of_dicts_that_count(run):
    model = Takes()
    Counting.asked.clear()
    held = {Counting("a"): X, Counting("b"): 1, (1, 2): X, None: 3, 1.5: X}
    before = len(Counting.asked)

    def loss(model, step):
        return model(X, held, also=held)[0].sum()
    run.train(model, loss)
    run.note("asked", Counting.asked[before:])


@way
def keywords_that_a_dump_might_use_itself(run):
    class Free(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 2)

        def forward(self, x, **others):
            return self.inner(x) * len(others)
    model = Free()
    words = ("module", "args", "kwargs", "func", "hook", "op", "result", "name", "number", "prefix", "hook_self", "cls")
    run.train(model, lambda model, step: model(X, **{word: X for word in words}).sum())


# ---- what may be called, and by whom --------------------------------------------------------------


def refuse(*_args, **_kwargs):
    raise RuntimeError("the program forbids this")


@way
def operators_of_tensors_that_nobody_may_call(run):
    model = model_of()
    names = ("__bool__", "__len__", "__iter__", "__eq__", "__hash__", "__repr__", "__format__", "__setattr__",
             "__contains__", "__float__", "__array__", "__index__", "__reversed__", "__dir__")

    def loss(model, step):
        kept = {name: torch.Tensor.__dict__.get(name) for name in names}
        for name in names:
            setattr(torch.Tensor, name, refuse)
        try:
            value = loss_of(model, step) + torch.add(X.t()[1:], 1).mean() + model[0](X)[:, ::2].sum()
            value.backward()
        finally:
            for name, was in kept.items():
                if was is None:
                    delattr(torch.Tensor, name)
                else:
                    setattr(torch.Tensor, name, was)
        return loss_of(model, step)
    run.train(model, loss)


@way
def methods_of_modules_that_nobody_may_call(run):
    model = model_of()
    names = ("named_modules", "named_parameters", "parameters", "modules", "children", "named_children", "__repr__",
             "state_dict", "buffers", "named_buffers", "register_forward_hook", "register_forward_pre_hook",
             "register_full_backward_hook", "_get_name", "extra_repr", "__dir__", "__hash__", "__eq__")

    def loss(model, step):
        kept = {name: nn.Module.__dict__.get(name) for name in names}
        for name in names:
            setattr(nn.Module, name, refuse)
        try:
            value = loss_of(model, step)
            value.backward()
        finally:
            for name, was in kept.items():
                if was is None:
                    delattr(nn.Module, name)
                else:
                    setattr(nn.Module, name, was)
        return loss_of(model, step)
    run.train(model, loss)


class Summed:
    total = property(torch.Tensor.sum)
    doubled = functools.partialmethod(torch.Tensor.mul, 2)
    halved = staticmethod(F.hardtanh)


class Sums(torch.Tensor):
    total = property(torch.Tensor.sum)
    doubled = functools.partialmethod(torch.Tensor.mul, 2)
    tripled = torch.Tensor.mul


@way
def functions_called_from_python_in_c(run):
    """reduce, accumulate, map, sorted, partial methods, properties, caches and iterators call them."""
    model, seen = model_of(), []

    def loss(model, step):
        out = model(X)
        rows = list(out)
        sub = out.detach().as_subclass(Sums)
        seen.append([functools.reduce(torch.add, rows), list(itertools.accumulate(rows, torch.maximum)),
                     list(map(torch.mul, rows, rows)), sorted(rows[0].detach(), key=torch.Tensor.item),
                     list(itertools.starmap(torch.sub, [(rows[0], rows[1])])), max(rows[2], key=torch.Tensor.abs),
                     operator.methodcaller("clamp", min=0)(out), operator.attrgetter("grad_fn.next_functions")(out)[0][1],
                     sub.total, sub.doubled(), sub.tripled(3), Summed.halved(out),
                     functools.lru_cache(F.relu)(X), next(iter(functools.partial(torch.zeros, 2), None)),
                     torch.Tensor.add.__get__(out)(1), types.MethodType(torch.Tensor.mul, out)(2),
                     functools.partial(torch.Tensor.add, out)(other=out)])
        return out.sum()
    run.train(model, loss)
    run.note("seen", seen)


@way
def numpy_and_math_call_methods_of_tensors(run):
    model, seen = model_of(), []

    def loss(model, step):
        out = model(X)
        flat = out.detach()
        seen.append([numpy.add(flat, 1), numpy.exp(flat), numpy.stack([flat, flat]),
                     numpy.asarray(flat), math.sqrt(flat[0, 0].abs()), round(flat[0, 0].item(), 3), sum(out), abs(flat),
                     pow(flat, 2), 2 ** flat, flat[0] in flat, operator.iadd(flat.clone(), 1),
                     math.fsum(flat[0]), operator.index(torch.tensor(3)), complex(flat[0, 1]), -flat, numpy.float32(2) * flat,
                     numpy.matmul(flat.numpy(), flat.numpy().T)])
        return out.sum()
    run.train(model, loss)
    run.note("seen", seen)


# ---- functions, looked at ---------------------------------------------------------------------------

FUNCTIONS = (F.relu, F.softmax, torch.add, torch.Tensor.add, torch.matmul, F.gelu)


@way
def attributes_and_sizes_of_functions(run):
    seen = []

    def loss(model, step):
        for f in FUNCTIONS:
            seen.append((dir(f), [name for name, _ in inspect.getmembers(f)], gc.is_tracked(f), sys.getsizeof(f),
                         hasattr(f, "__copy__"), hasattr(f, "__deepcopy__"), repr(f), str(f), hash(f) == hash(f),
                         copy.copy(f) is f, copy.deepcopy([f])[0] is f, getattr(f, "__text_signature__", None),
                         sorted(vars(f)) if hasattr(f, "__dict__") else None, str(inspect.signature(f)) if isinstance(f, types.FunctionType) else 0))
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def another_class_for_a_function_fails_alike(run):
    class Other:
        pass

    def assign(f, cls):
        f.__class__ = cls

    def remove(f):
        del f.__class__

    def loss(model, step):
        for f in FUNCTIONS:
            run.raises("a class", functools.partial(assign, f, Other))
            run.raises("its own", functools.partial(assign, f, types.FunctionType))
            run.raises("none", functools.partial(remove, f))
            run.raises("an attribute", lambda f=f: setattr(f, "__qualname__", 3))
        return loss_of(model, step)
    run.train(model_of(), loss)


@functools.singledispatch
def kind_of(_value):
    return "another"


@kind_of.register(types.FunctionType)
def _(_value):
    return "function"


@kind_of.register(types.BuiltinFunctionType)
def _(_value):
    return "builtin"


@kind_of.register(types.MethodDescriptorType)
def _(_value):
    return "method"


@way
def functions_told_apart_by_their_kind_and_sent_away(run):
    seen = []

    def loss(model, step):
        seen.append([kind_of(f) for f in FUNCTIONS])
        seen.append([pickle.loads(bytes(multiprocessing.reduction.ForkingPickler.dumps(f))) is f for f in FUNCTIONS])
        seen.append([pickle.loads(pickle.dumps(f, protocol)) is f for f in FUNCTIONS for protocol in range(6)])
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def a_function_gets_other_code_within_a_step(run):
    model, seen = model_of(), []
    kept = F.softsign.__code__, F.softsign.__defaults__, F.hardswish.__kwdefaults__

    def other(input):
        return input * 2 + 1

    def loss(model, step):
        out = F.softsign(model(X))
        F.softsign.__code__ = other.__code__
        seen.append((out, F.softsign(X), F.softsign.__code__.co_name))
        F.softsign.__code__ = kept[0]
        F.softsign.__defaults__ = (X,)
        seen.append(F.softsign())
        F.softsign.__defaults__ = kept[1]
        F.softsign.__dict__["mine"] = step
        return out.sum()
    run.train(model, loss)
    seen.append((F.softsign(X), F.softsign.mine))
    run.raises("nothing to take", lambda: F.softsign())
    del F.softsign.mine
    run.note("seen", seen)


# ---- Python itself ------------------------------------------------------------------------------


@way
def modules_of_python_reloaded_within_a_step(run):
    model, seen = model_of(), []
    kept = dict(vars(F))

    def loss(model, step):
        if step == 1:
            importlib.reload(torch.nn.modules.activation)
            importlib.reload(linecache)
            importlib.reload(functools)
            seen.append(F.softplus is kept["softplus"])
        return F.softplus(F.relu(model(X))).sum() + torch.relu(X).sum()
    run.train(model, loss)
    vars(F).update(kept)
    seen.append(F.softplus(X))
    run.note("seen", seen)


@way
def imports_are_counted_within_a_step(run):
    model, names = model_of(), []
    loss_of(model, 0).backward()
    real = builtins.__import__

    def count(name, *args, **kwargs):
        names.append(name)
        return real(name, *args, **kwargs)

    def loss(model, step):
        held = slice(1, 2), torch.float32, torch.Size([1]), torch.device("cpu"), torch.Generator(), torch.strided
        value = loss_of(model, step)
        builtins.__import__ = count
        try:
            value = value + torch.add(X, 1).sum() + F.relu(model[0](X)).sum()
            F.dropout(X, 0.5, False)
            model[1](X)
            value.backward()
        finally:
            builtins.__import__ = real
        return loss_of(model, step) * len(held) / 6
    run.train(model, loss)
    run.note("names", names)


@way
def sources_written_anew_between_steps(run):
    """A notebook's cells and generated code: lines that Python has read, and where it keeps them."""
    model, told = model_of(), []

    def tell(message, category, filename, lineno, file=None, line=None):
        told.append((str(message), linecache.getline(filename, lineno).strip()))

    def write(text):
        with open("cell.py", "w", encoding="utf-8") as f:
            f.write(text)
        space = {"torch": torch, "warnings": warnings}
        exec(compile(text, os.path.abspath("cell.py"), "exec"), space)
        return space["cell"]

    def loss(model, step):
        cell = write(f"def cell(x):\n    y = torch.add(x, {step})\n    warnings.warn('in step {step}')\n    return y\n")
        return cell(model(X)).sum()
    before, warnings.showwarning = warnings.showwarning, tell
    run.train(model, loss)
    warnings.showwarning = before
    run.note("told", told)
    run.note("kept", [os.path.basename(name) for name in linecache.cache if "cell" in name])


@way
def tensors_that_the_collector_knows(run):
    """As programs look for a leak: all tensors that Python's collector finds, after each step and in it."""
    model, seen = model_of(), []

    def count():
        gc.collect()
        kinds = {}
        for one in gc.get_objects():
            if issubclass(type(one), torch.Tensor):
                kinds[type(one).__name__] = kinds.get(type(one).__name__, 0) + 1
        return sorted(kinds.items())

    def loss(model, step):
        hidden = model[0](X)
        value = model[2](F.relu(hidden)).sum() + torch.add(hidden, 1).sum()
        seen.append(count())
        return value
    run.train(model, loss)
    seen.append(count())
    run.note("seen", seen)


@way
def threads_masks_and_limits_as_they_were(run):
    model, seen = model_of(), []

    def look():
        mask = os.umask(0)
        os.umask(mask)
        return (sorted(t.name for t in threading.enumerate()), mask, signal.pthread_sigmask(signal.SIG_BLOCK, []),
                len(os.sched_getaffinity(0)), os.nice(0), signal.getitimer(signal.ITIMER_REAL),
                [signal.getsignal(n) is signal.SIG_DFL for n in (signal.SIGUSR1, signal.SIGALRM, signal.SIGTERM)],
                sys.getswitchinterval(), threading.stack_size(), sys.gettrace(), sys.getprofile(), sys.flags.optimize,
                locals().get("nothing"), len(sys.path_hooks), signal.getsignal(signal.SIGSEGV))

    def loss(model, step):
        seen.append(look())
        return loss_of(model, step)
    seen.append(look())
    run.train(model, loss)
    seen.append(look())
    run.note("seen", seen)


# ---- tensors --------------------------------------------------------------------------------------


@way(needs=(2, 1))
def copies_on_write_stay_lazy(run):
    model, seen = model_of(), []
    is_lazy, lazily = torch._C._is_cow_tensor, torch._lazy_clone

    def loss(model, step):
        base = torch.arange(12.0).view(3, 4)
        twin = lazily(base)
        seen.append((is_lazy(base), is_lazy(twin)))
        twin = torch.transpose(model[1](twin), 0, 1) if step == 7 else twin
        nn.Identity()(twin)
        both = torch.broadcast_tensors(twin, base)
        model(twin)
        F.linear(twin, X[:2])
        seen.append((is_lazy(base), is_lazy(twin), is_lazy(both[0])))
        twin.add_(1)
        seen.append((is_lazy(base), is_lazy(twin), base, twin))
        return model(twin).sum()
    run.train(model, loss)
    run.note("seen", seen)


class Hidden(type(torch.Tensor)):
    """A metaclass that says of its classes what it likes."""

    def __subclasses__(cls):
        raise RuntimeError("a class without children")

    def __instancecheck__(cls, _value):
        return False


@way
def classes_of_tensors_that_come_and_go_within_a_step(run):
    model, seen = model_of(), []

    def loss(model, step):
        Top = Hidden("Top", (torch.Tensor,), {"__neg__": lambda self: "negative"})
        Below = Hidden("Below", (Top,), {"__setitem__": lambda self, key, value: seen.append(("set", key))})
        Plain = type("Plain", (torch.Tensor,), {})
        out = model(X)
        a, b, c = out.detach().as_subclass(Top), out.detach().as_subclass(Below), out.detach().clone().as_subclass(Plain)
        b[0] = 1
        c[0] = 1
        seen.append((-a, abs(a).as_subclass(torch.Tensor), -b, (-c).as_subclass(torch.Tensor), c.as_subclass(torch.Tensor)))
        del a, b, c, Top, Below, Plain
        gc.collect()
        return out.sum()
    run.train(model, loss)
    seen.append((-X, abs(X)))
    y = X.clone()
    y[0] = 2
    seen.append(y)
    run.note("seen", seen)


# ---- optimizers -------------------------------------------------------------------------------------


@way
def steps_of_optimizers_replaced_between_steps(run):
    """A class of an optimizer gets another step before each step of training, and its own back."""
    model, called = model_of(), []

    class Mine(torch.optim.SGD):
        def step(self, closure=None):
            called.append("mine")
            return super().step(closure)
    own = Mine.step
    opt = Mine(model.parameters(), lr=0.05)
    for i in range(4):
        if i % 2:
            def other(self, closure=None, i=i):
                called.append(i)
                return own(self, closure)
            Mine.step = other
        else:
            Mine.step = own
        with run.dump(model):
            opt.zero_grad()
            loss = loss_of(model, i)
            loss.backward()
            opt.step()
        run.note(f"loss {i}", loss)
    run.note("called", called)
    run.note_model(model)
