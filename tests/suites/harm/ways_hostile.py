# SPDX-License-Identifier: MIT
"""Programs that leave little room: small stacks, limits, forbidden files, odd names and numbers, guarded
dicts, functions that the program replaces while it is watched."""
import builtins
import concurrent.futures
import contextvars
import decimal
import enum
import fractions
import functools
import gc
import locale
import resource
import sys
import threading
import warnings
import weakref
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of(width=4):
    return nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


@way(needs=(2, 0))
def a_training_thread_with_a_small_stack(run):
    model, out = model_of(), []

    def step():
        wide = torch.arange(600.0).view(20, 30).t()[1:, 1:]
        loss = loss_of(model, 0) + (wide * 1e-9).sum() + (torch.tensor([2 ** 60, 1]) + 1).float().mean() * 0
        loss.backward()
        out.append(loss)

    def train():
        with run.dump(model):
            step()
    step()  # what PyTorch sets up at the first use needs a larger stack
    before = threading.stack_size(128 * 1024)
    thread = threading.Thread(target=train)
    thread.start()
    threading.stack_size(before)
    thread.join()
    run.note("loss", out)
    run.note_model(model)


@way
def a_limit_on_the_size_of_files(run):
    """Python ignores the signal, so a write fails; that of the dump must not end the training."""
    model = model_of()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def loss(model, step):
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024 if step == 1 else before[0], before[1]))
        return loss_of(model, step)
    run.train(model, loss, steps=4)
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@way
def no_file_may_be_opened_any_more(run):
    model = model_of()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    def loss(model, step):
        if step == 1:
            resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
        return loss_of(model, step)
    run.train(model, loss, steps=3)
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@way
def an_audit_hook_that_forbids_files_and_imports(run):
    model, state = model_of(), {"is_strict": False, "count": 0}
    model(X).sum().backward()

    def audit(event, _args):
        if state["is_strict"] and event in ("open", "import", "os.listdir", "os.mkdir"):
            state["count"] += 1
            raise PermissionError("not in here")
    sys.addaudithook(audit)

    def loss(model, step):
        state["is_strict"] = True
        value = loss_of(model, step)
        state["is_strict"] = False
        return value
    run.train(model, loss)


@way
def builtins_replaced_in_the_middle(run):
    def refuse(*_args, **_kwargs):
        raise RuntimeError("a builtin that the program has taken away")
    model, names = model_of(), ("open", "print", "repr", "sorted", "vars", "format")

    def loss(model, step):
        kept = {name: getattr(builtins, name) for name in names}
        for name in names:
            setattr(builtins, name, refuse)
        try:
            return torch.relu(model[0](X)).sum() + model(X).mean()
        finally:
            for name in names:
                setattr(builtins, name, kept[name])
    run.train(model, loss)


@way
def methods_of_tensors_that_nobody_may_call(run):
    """As a program that hunts copies to the host has them."""
    calls, model = [], model_of()

    def count_of(name, original):
        @functools.wraps(original)
        def count(*args, **kwargs):
            calls.append(name)
            return original(*args, **kwargs)
        return count

    def loss(model, step):
        kept = {name: getattr(torch.Tensor, name) for name in ("cpu", "numpy", "item", "tolist", "detach", "clone")}
        for name, original in kept.items():
            setattr(torch.Tensor, name, count_of(name, original))
        try:
            return loss_of(model, step) + X.expand(3, 6, 4).mean() + X.t()[1:, ::2].sum()
        finally:
            for name in kept:
                delattr(torch.Tensor, name)
    run.train(model, loss)
    run.note("calls", calls)
    run.note("methods", [name for name in ("cpu", "numpy", "item") if name in vars(torch.Tensor)])


@way
def functions_replaced_as_counters_of_operations_do(run):
    """A profiler of operations replaces functions within a step, and puts them back later or earlier."""
    model, seen = model_of(), []

    def counted(name, original):
        def call(*args, **kwargs):
            seen.append(name)
            return original(*args, **kwargs)
        return call
    kept = {}

    def replace():
        methods = [(torch.Tensor, "__add__"), (torch.Tensor, "pow")]
        for owner, name in ((F, "linear"), (torch, "tanh"), (torch, "matmul"), *methods):
            kept[owner, name] = getattr(owner, name)
            setattr(owner, name, counted(name, kept[owner, name]))

    def put_back():
        for (owner, name), original in kept.items():
            setattr(owner, name, original)
        kept.clear()

    def loss(model, step):
        if step == 0:
            replace()
        value = loss_of(model, step) + torch.matmul(X, X.t()).mean() + (X + 1).sum()
        if step == 2:
            put_back()
        return value
    run.train(model, loss, steps=4)
    run.note("seen", seen)
    run.note("is one", (F.linear is torch._C._nn.linear if hasattr(torch._C._nn, "linear") else None,
                        torch.tanh.__name__, torch.Tensor.pow.__name__))


class Guarded(OrderedDict):
    """Parameters as a program has them that gathers a parameter when it is taken."""
    taken = []

    def __getitem__(self, name):
        Guarded.taken.append(name)
        return super().__getitem__(name)


@way
def parameters_in_a_dict_that_gathers_what_is_taken(run):
    model = model_of()
    Guarded.taken.clear()
    for module in model.modules():
        guarded = Guarded()
        guarded.update(module._parameters)
        module.__dict__["_parameters"] = guarded
    run.train(model, loss_of, steps=2)
    run.note("taken", Guarded.taken)


class Hidden(nn.Linear):
    looked = []

    def __getattribute__(self, name):
        if name in ("_forward_hooks", "_forward_pre_hooks", "_parameters"):
            Hidden.looked.append(name)
        return super().__getattribute__(name)


class Meta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.is_made_by_meta = True
        return made

    def __instancecheck__(cls, instance):
        return type.__instancecheck__(cls, instance)


class WithMeta(nn.Linear, metaclass=Meta):
    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)


@way
def classes_of_modules_that_are_made_and_read_in_their_own_way(run):
    model = nn.Sequential(Hidden(4, 8), nn.Tanh(), WithMeta(8, 2))
    Hidden.looked.clear()
    run.train(model, loss_of)
    run.note("kinds", (isinstance(model[2], WithMeta), model[2].is_made_by_meta, set(Hidden.looked) <= {
        "_forward_hooks", "_forward_pre_hooks", "_parameters"}))


@way
def names_of_modules_that_are_no_names_of_files(run):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            names = ["a/b", "back\\slash", "line\nbreak", "\u6a21\u578b \U0001f600", "x" * 300, "quote\"'", " ",
                     "\udc80"]
            for name in names:
                self.add_module(name, nn.Linear(4, 4))

        def forward(self, x):
            for module in self.children():
                x = torch.tanh(module(x))
            return x
    Odd.__name__ = Odd.__qualname__ = "\u00dcng\u00fcltig/\n"
    run.train(Odd(), lambda model, step: model(X).sum())


@way
def keywords_that_are_no_identifiers(run):
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, **others):
            return self.inner(x) * sum(others.values())
    keys = {"": 1.0, "\udc80": 2.0, "a b\0c": 3.0, "\U0001f600" * 100: 0.5}
    run.train(Takes(), lambda model, step: model(X, **keys).sum())


class Colour(enum.IntEnum):
    RED = 2


class Loud(float):
    def __repr__(self):
        raise RuntimeError("nobody may look")
    __str__ = __format__ = __repr__


@way
def numbers_and_texts_that_are_hard_to_write(run):
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, *others, **named):
            return self.inner(x) * (len(others) + len(named))
    others = (10 ** 6000, -10 ** 6000, 2 ** 64, float("inf"), 5e-324, 1j, decimal.Decimal("1e999"), Colour.RED,
              fractions.Fraction(1, 3), Loud(2.5), "\ud800", "x" * 3_000_000, b"\xff" * 1000, bytearray(3),
              memoryview(b"abc"), range(10 ** 12), slice(10 ** 30, None), NotImplemented, type, len, {1, 2}, frozenset(),
              iter(()), 1 << 20000)
    keys = {10 ** 5000: 1, None: 2, 2.5: 3, (1,): 4}
    run.train(Takes(), lambda model, step: model(X, *others, huge=10 ** 5000, key=keys).sum())


@way
def lists_nested_very_deep(run):
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, deep, pairs):
            return self.inner(x), deep, pairs
    deep, pairs = [X], {"x": X}
    for _ in range(5000):
        deep, pairs = [deep], {"next": pairs}
    run.train(Takes(), lambda model, step: model(X, deep, pairs)[0].sum())
    while deep:
        deep = deep[0] if isinstance(deep[0], list) else None
    while "next" in pairs:
        pairs = pairs["next"]


@way
def containers_that_are_emptied_when_they_are_looked_at(run):
    """A class that lies about itself may run code of the program when something asks for its class."""
    class Sly:
        def __init__(self, room):
            self.room = room

        @property
        def __class__(self):
            self.room.clear()
            gc.collect()
            return Sly

    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x, *rooms, **named):
            return self.inner(x)

    def loss(model, step):
        one, two = [], {}
        one += [Sly(one), torch.ones(3), [torch.ones(2)]] + [object() for _ in range(50)]
        two.update({"a": Sly(two), "b": torch.ones(3), **{str(i): object() for i in range(50)}})
        return model(X, one, two, named=[Sly(one), one, two]).sum()
    run.train(Takes(), loss)


@way
def warnings_that_are_errors(run):
    model = model_of()
    model[0].weight.register_hook(lambda g: g * 2)
    whole = model(X)
    whole.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.train(model, lambda model, step: loss_of(model, step) + whole.detach().sum())


@way
def a_call_replaced_on_all_modules_for_a_time(run):
    """As tracers of modules do; the call of the class is put back in a later step."""
    model, seen = model_of(), []
    original = nn.Module.__call__

    def call(self, *args, **kwargs):
        seen.append(type(self).__name__)
        return original(self, *args, **kwargs)

    def loss(model, step):
        nn.Module.__call__ = call if step < 2 else original
        return loss_of(model, step)
    run.train(model, loss, steps=4)
    run.note("seen", seen)
    run.note("is put back", nn.Module.__call__ is original)


@way
def forwards_that_are_not_plain_functions(run):
    class Static(nn.Module):
        @staticmethod
        def forward(x):
            return x * 2

    class Class(nn.Module):
        @classmethod
        def forward(cls, x):
            return x + 1

    class Partial(nn.Module):
        def _forward(self, scale, x):
            return x * scale
        forward = functools.partialmethod(_forward, 3.0)

    class Callable(nn.Module):
        class Forward:
            def __call__(self, x):
                return torch.tanh(x)
        forward = Forward()

    class Decorated(nn.Module):
        @torch.no_grad()
        def forward(self, x):
            return x.sin()

    class Cached(nn.Module):
        forward = functools.lru_cache(maxsize=2)(lambda self, x: x.cos())
    between = [cls() for cls in (Static, Class, Partial, Callable, Decorated, Cached)]
    model = nn.Sequential(nn.Linear(4, 4), *between, nn.Linear(4, 2))
    run.train(model, loss_of)


@way
def tensors_of_very_many_dimensions(run):
    model = nn.Linear(4, 4)

    def loss(model, step):
        many = model(X).view([1] * 40 + [6, 4] + [1] * 20)
        return many.sum() + many.transpose(0, 41).mean() + X.new_zeros([1] * 60).sum()
    run.train(model, loss)


@way
def finalizers_that_look_at_what_is_left(run):
    model, told = model_of(), []
    weakref.finalize(model[0].weight, told.append, "weight")
    weakref.finalize(model, told.append, "model")

    def loss(model, step):
        out = model(X)
        weakref.finalize(out, told.append, f"out {step}")
        return out.pow(2).mean()
    run.train(model, loss)
    run.note("within", list(told))
    run.debugger.stop()
    del model
    gc.collect()
    run.note("after", sorted(told))


@way
def pools_of_threads_and_contexts_of_variables(run):
    model = model_of()
    scale = contextvars.ContextVar("scale", default=1.0)

    def part(i):
        scale.set(scale.get() + i)
        return i

    def loss(model, step):
        scale.set(float(step + 1))
        context = contextvars.copy_context()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            run.note(f"parts {step}", list(pool.map(lambda i: contextvars.copy_context().run(part, i), range(4))))
        return context.run(lambda: loss_of(model, step) * scale.get())
    run.train(model, loss)


@way
def numbers_written_in_another_language_and_small_ones_as_zero(run):
    model = model_of()
    for name in ("de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            break
        except locale.Error:
            continue
    flushed = torch.set_flush_denormal(True)
    try:
        run.train(model, lambda model, step: loss_of(model, step) + (X * 1e-39).sum() * 1e30)
        run.note("small", torch.tensor([1e-39]) * 0.5)
    finally:
        torch.set_flush_denormal(False)
        locale.setlocale(locale.LC_ALL, "C")
    run.note("flushed", flushed)
