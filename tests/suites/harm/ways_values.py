# SPDX-License-Identifier: MIT
"""Values that do something when they are read: arrays of numpy with functions of their own, classes whose fields
count, tensors that are small in memory and endless in size, layouts and types that few programs have."""
import builtins
import collections
import dataclasses
import enum
import functools
import io
import json
import mmap
import os
import pickle
import shutil
import sys
import time
import types
import warnings
import zipfile

import numpy
import torch
from torch import nn
from torch.nn import functional as F

from harness import way

X = torch.linspace(-1, 1, 24).view(6, 4)


class Takes(nn.Module):
    """Takes and returns anything, and computes with the first argument alone."""

    def __init__(self):
        super().__init__()
        self.fc, self.inner = nn.Linear(4, 3), nn.Identity()

    def forward(self, x, *others, **named):
        return self.fc(self.inner(x)).tanh(), others, named


class Around(nn.Module):
    """The model around it: of this one, no records are written."""

    def __init__(self):
        super().__init__()
        self.inside = Takes()

    def forward(self, *args, **named):
        return self.inside(*args, **named)


def passed(run, make, **more):
    """Trains with values that are made anew in each step, and notes what they say of themselves afterwards."""
    model, seen = Around(), []

    def loss(model, step):
        values = make()
        y, others, named = model(X, *values, key=values, **more)
        seen.append([a is b for a, b in zip(others, values)] + [named["key"] is values])
        return y.pow(2).sum()
    run.train(model, loss)
    run.note("identity", seen)


# ---- arrays of numpy --------------------------------------------------------------------------


HUGE = numpy.array([6e4, 6e4, -6e4, numpy.inf, numpy.nan], dtype=numpy.float16)


def arrays():
    with numpy.errstate(all="ignore"):
        return [HUGE.copy(), numpy.full(1000, 3e38, numpy.float32), numpy.full(9, 1e308), numpy.array([1e-310, 2e-320]),
                numpy.array([numpy.inf, -numpy.inf]), numpy.full(3, 1e300 + 1e300j), numpy.empty(0), numpy.array(numpy.nan),
                numpy.array(["a", "bc"]), numpy.array([{}, None], dtype=object), numpy.float16(numpy.inf)]


@way
def arrays_whose_sums_are_too_large_warn_nobody(run):
    passed(run, arrays)


@way
def errors_of_numpy_that_are_raised(run):
    with numpy.errstate(all="raise"):
        passed(run, arrays)
    run.note("errors", numpy.geterr())


@way
def errors_of_numpy_that_are_counted(run):
    counted = []
    before = numpy.seterrcall(lambda kind, flag: counted.append((kind, flag)))
    with numpy.errstate(all="call"):
        passed(run, arrays)
        float(numpy.float64(1.0) / numpy.float64(0.0))
    numpy.seterrcall(before)
    run.note("counted", counted)


class Metres(numpy.ndarray):
    """An array with a unit, which knows the functions that it wants to know and counts."""

    calls = collections.Counter()

    def __array_finalize__(self, other):
        Metres.calls["made"] += 1

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        Metres.calls[ufunc.__name__] += 1
        plain = [i.view(numpy.ndarray) if isinstance(i, Metres) else i for i in inputs]
        return getattr(ufunc, method)(*plain, **kwargs)

    def __array_function__(self, func, kinds, args, kwargs):
        Metres.calls[func.__name__] += 1
        raise TypeError(f"no units for {func.__name__}")


@way
def arrays_with_functions_of_their_own(run):
    Metres.calls.clear()
    passed(run, lambda: [numpy.arange(6.0).reshape(2, 3).view(Metres), numpy.ma.masked_array([1.0, 2.0], [0, 1]),
                         numpy.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f8")]), numpy.matrix([[1, 2]]),
                         numpy.recarray((2,), dtype=[("x", "f4")]), numpy.array([1, 2], dtype=">i4"),
                         numpy.array(["2020-01-01"], dtype="datetime64[D]"), numpy.lib.stride_tricks.as_strided(
                             numpy.zeros(1), (1 << 12, 1 << 12), (0, 0))])
    run.note("calls", dict(Metres.calls))


# ---- values that count ----------------------------------------------------------------------------


class Counted:
    """A field of a class that counts how often it is read."""

    def __init__(self, count):
        self.count = count

    def __get__(self, owner, kind=None):
        if owner is None:
            return 0.0
        self.count["read"] += 1
        return owner.__dict__["_value"]

    def __set__(self, owner, value):
        owner.__dict__["_value"] = value


def count_calls_of(names, base, count):
    """A subclass whose methods count and then raise."""
    def refuse(name):
        def method(self, *_args, **_kwargs):
            count[name] += 1
            raise RuntimeError(f"{name} of {base.__name__} is not for you")
        return method
    return type("Sly" + base.__name__, (base,), {name: refuse(name) for name in names})


@way
def fields_of_records_that_count_their_readers(run):
    count = collections.Counter()

    @dataclasses.dataclass
    class Record:
        value: float = Counted(count)
        plain: torch.Tensor = None

        def __getattribute__(self, name):
            count[f"attribute {name}" if name in ("plain", "value") else "other"] += name in ("plain", "value")
            return object.__getattribute__(self, name)

    class Pair(collections.namedtuple("Pair", "a b")):
        @property
        def a(self):
            count["a of a pair"] += 1
            return self[0]

        def __iter__(self):
            count["a pair in turn"] += 1
            return super().__iter__()

    passed(run, lambda: [Record(1.5, X), Pair(X, 2)])
    run.note("count", dict(count))


@way
def numbers_texts_and_lists_whose_methods_count(run):
    count = collections.Counter()
    of_number = ("__int__", "__float__", "__index__", "__str__", "__repr__", "__bool__", "__lt__", "__round__", "__trunc__")
    whole = count_calls_of(of_number, int, count)
    part = count_calls_of(of_number, float, count)
    text = count_calls_of(("__str__", "__len__", "__iter__", "encode", "__getitem__"), str, count)
    row = count_calls_of(("__iter__", "__len__", "__getitem__", "__reversed__", "__contains__", "copy"), list, count)
    fixed = count_calls_of(("__iter__", "__len__", "__getitem__"), tuple, count)
    table = count_calls_of(("__iter__", "__len__", "__getitem__", "items", "keys", "values", "get", "copy"), dict, count)
    kind = enum.IntEnum("kind", {"A": 1, "B": 1 << 70})
    passed(run, lambda: [whole(3), whole(1 << 70), part(2.5), text("t"), row([X, 1]), fixed((X, 2)), table(a=X), kind.A, kind.B,
                         slice(whole(1), whole(5)), collections.UserDict(a=X), collections.UserList([X]),
                         collections.ChainMap({"a": X}), types.MappingProxyType({"a": X}), collections.deque([X])])
    run.note("count", dict(count))


class Bound:
    """An end of a slice that counts who asks for it."""

    def __init__(self, value, count):
        self.value, self.count = value, count

    def __index__(self):
        self.count["index"] += 1
        return self.value

    def __int__(self):
        self.count["int"] += 1
        return self.value


@way
def ends_of_slices_that_count_their_readers(run):
    count = collections.Counter()
    model = Around()

    def loss(model, step):
        y, _, _ = model(X, slice(Bound(1, count), None, Bound(2, count)))
        z = y.clone()
        z[Bound(0, count):Bound(2, count)] = 0.5
        z[torch.tensor(2):torch.tensor(4)] *= 2
        z[numpy.int64(4):, Bound(1, count)] += 1
        return z.sum() + y[Bound(1, count):].sum()
    run.train(model, loss)
    run.note("count", dict(count))


@way
def keys_that_print_themselves_in_their_own_way(run):
    count = collections.Counter()

    class Key:
        def __init__(self, name):
            self.name = name

        def __str__(self):
            count[self.name] += 1
            raise SystemExit(3) if self.name == "exits" else KeyError(self.name)
        __repr__ = __str__
    keys = [Key("raises"), Key("exits")]
    passed(run, lambda: [{keys[0]: X, keys[1]: 1, (1, 2): X, 2.5: 1, b"k": 2, enum.IntEnum("E", "A").A: 3}])
    run.note("count", dict(count))


# ---- tensors that are endless, strange or not there ---------------------------------------------


@way
def small_tensors_expanded_to_an_endless_size(run):
    """A mask of all heads and pairs of positions is one number in memory."""
    model = Around()
    mask = torch.ones(1, 1, 1, 1).expand(512, 64, 4096, 4096)
    rows = torch.arange(4.0).view(4, 1, 1).expand(4, 1 << 18, 1 << 18)
    began = time.monotonic()
    for _ in range(2):
        with run.dump(model):
            y, (m, r), _ = model(X, mask, rows)
            y.sum().backward()
            torch.transpose(mask, 0, 1)
    run.note("shapes", (m is mask, r is rows, tuple(m.shape)))
    run.note("in time", time.monotonic() - began < 60)
    run.note_model(model)


@way
def all_types_of_elements_that_there_are(run):
    every = sorted({str(v): v for v in vars(torch).values() if isinstance(v, torch.dtype)}.items())

    def make():
        made = []
        for name, dtype in every:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    made.append(torch.empty(4, dtype=dtype))
                    made[-1].view(torch.uint8).zero_()
            except Exception:
                continue
        return made
    passed(run, make)


@way
def tensors_of_the_library_for_small_processors(run):
    if not torch.backends.mkldnn.is_available():
        raise NotImplementedError("no such library")
    model, inner = Around(), nn.Linear(4, 3)

    def loss(model, step):
        packed = X.to_mkldnn()
        y, (same,), _ = model(X, packed)
        seen.append((same is packed, packed.to_dense(), torch.relu(packed).to_dense(), packed.layout))
        return y.sum() + F.linear(packed, inner.weight.detach().to_mkldnn(), inner.bias.detach().to_mkldnn()).to_dense().sum()
    seen = []
    run.train(model, loss)
    run.note("seen", seen)


@way(needs=(2, 0))
def masked_tensors(run):
    from torch.masked import masked_tensor, as_masked_tensor
    model = Around()

    def loss(model, step):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            some = masked_tensor(X.clone(), X > 0, requires_grad=True)
            y, (same,), _ = model(X, some)
            total = (some * 2).sum()
            total.backward()
            run.note(f"masked {step}", (same is some, total.get_data(), some.grad.get_data(), some.grad.get_mask()))
            run.note(f"mean {step}", as_masked_tensor(y.detach(), y.detach() > 0).amax(1).get_data())
        return y.sum()
    run.train(model, loss)


@way
def tensors_over_a_file_that_another_writes(run):
    model, seen = Around(), []
    with open("rows", "wb") as f:
        f.write(X.numpy().tobytes())
    shared = torch.from_file("rows", shared=True, size=24).view(6, 4)
    with open("rows", "r+b") as f, mmap.mmap(f.fileno(), 0) as other:
        for i in range(3):
            with run.dump(model):
                y, _, _ = model(shared, shared.view(-1))
                other[0:4] = numpy.float32(i).tobytes()
                seen.append(shared[0, 0].item())
                y.sum().backward()
    run.note("seen", seen)
    run.note_model(model)


@way
def tensors_whose_memory_is_read_only(run):
    """Memory that may be read and not written, as that of a file of weights."""
    model = Around()
    with open("weights", "wb") as f:
        f.write(X.numpy().tobytes())
    with open("weights", "rb") as f, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        region = mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)
        rows = torch.frombuffer(region, dtype=torch.float32).view(6, 4)
        frozen = numpy.arange(4.0, dtype=numpy.float32)
        frozen.flags.writeable = False
        also = torch.from_numpy(frozen)
    run.train(model, lambda model, step: (model(rows, also, frozen, torch.transpose(rows, 0, 1))[0] * also[:3]).sum())


# ---- what is made of a model in a step ----------------------------------------------------------


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), nn.LayerNorm(4)

    def forward(self, x):
        return self.norm(F.relu(self.fc(x)))


@way
def audited_calls_of_a_copied_model(run):
    """Who allows only what it knows hears of every event of the copy, and of those that it has in common with others."""
    model, heard = Small(), collections.Counter()
    listening = [False]

    def audit(event, _args):
        if listening[0] and event not in ("object.__getattr__", "sys._getframe", "code.__new__", "object.__setattr__"):
            heard[event] += 1
            if event.partition(".")[0] not in ("os", "open", "import", "compile", "exec", "gc", "builtins", "pickle", "marshal"):
                raise RuntimeError(f"an unknown event {event}")
    with run.dump(model):
        model(X).sum().backward()
        other, loaded = __import__("copy").deepcopy(model), pickle.loads(pickle.dumps(model))
    sys.addaudithook(audit)
    listening[0] = True
    try:
        for m in (other, loaded):
            run.raises("raised", lambda m=m: m(X).sum().backward())
            run.note_model(m)
    finally:
        listening[0] = False
    run.note("heard", dict(heard))


@way(needs=(2, 6))
def a_whole_model_is_loaded_with_weights_only(run):
    model, saved = Small(), io.BytesIO()
    with run.dump(model):
        model(X).sum().backward()
        torch.save(model, saved)
    saved.seek(0)
    allowed = [Small, nn.Linear, nn.LayerNorm, set]
    with torch.serialization.safe_globals(allowed):
        run.raises("loaded", lambda: run.note_model(torch.load(saved, weights_only=True)))
    saved.seek(0)
    run.note("unsafe", sorted(torch.serialization.get_unsafe_globals_in_checkpoint(saved)))


@way(needs=(2, 0))
def a_package_is_made_of_a_model_in_a_step(run):
    from torch.package import PackageExporter, PackageImporter
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    with run.dump(model):
        out = model(X)
        out.sum().backward()
        with PackageExporter("model.pt") as exporter:
            exporter.extern(["torch.**"])
            exporter.save_pickle("model", "model.pkl", model)
            exporter.save_text("model", "about.txt", "text")
    with zipfile.ZipFile("model.pt") as f:
        run.note("names", sorted(name.partition("/")[2] for name in f.namelist()))
    again = PackageImporter("model.pt").load_pickle("model", "model.pkl")
    run.note("out", (out, again(X)))
    run.note_model(again)


@way
def pickled_by_a_pickler_of_ones_own(run):
    """One written in Python asks for the type of each object, and one with a table for names of functions."""
    model, seen = Small(), []

    class Table(pickle.Pickler):
        dispatch_table = {types.FunctionType: lambda f: f"function {f.__name__}",
                          types.BuiltinFunctionType: lambda f: f"builtin {f.__name__}"}

    class Tells(pickle.Pickler):
        def reducer_override(self, value):
            kinds.append(type(value).__name__)
            return NotImplemented

        def persistent_id(self, value):
            return ("function", value.__name__) if isinstance(value, types.FunctionType) else None

    def loss(model, step):
        out = model(X)
        for make in (Table, Tells, pickle._Pickler):
            text = io.BytesIO()
            kinds.clear()
            make(text, 4).dump([F.relu, torch.nn.init.ones_, {"f": F.softmax}])
            seen.append((text.getvalue(), sorted(set(kinds))))
        return out.sum()
    kinds = []
    run.train(model, loss)
    run.note("seen", seen)


@way
def a_folder_of_results_that_is_cleared_in_the_middle(run):
    """A program that clears its folder before it writes into it takes the dump along."""
    model = Small()
    for i in range(4):
        with run.dump(model):
            loss = model(X).pow(2).sum()
            if i == 1:
                for name in os.listdir("."):
                    shutil.rmtree(name, ignore_errors=True) if os.path.isdir(name) else None
                os.mkdir("results")
            loss.backward()
        run.note(f"loss {i}", loss)
    run.note("results", os.listdir("results"))
    run.note_model(model)


@way
def calls_of_the_system_that_are_counted(run):
    """Who counts them in a step finds its own, and no more."""
    model, count = Small(), collections.Counter()

    def counting(module, name):
        own = getattr(module, name)

        @functools.wraps(own)
        def call(*args, **kwargs):
            count[name] += 1
            return own(*args, **kwargs)
        return own, call
    places = [(os, n) for n in ("makedirs", "mkdir", "listdir", "getpid", "open", "write", "replace", "fsync")]
    places += [(os.path, n) for n in ("join", "exists", "abspath")] + [(json, n) for n in ("dumps", "dump", "loads")]
    places += [(time, n) for n in ("time", "monotonic", "perf_counter", "sleep")] + [(builtins, "open"), (io, "open")]
    places += [(numpy, n) for n in ("save", "max", "min", "mean", "asarray", "abs")] + [(warnings, "warn"), (torch, "save")]
    kept = [(m, n, *counting(m, n)) for m, n in places]
    for i in range(3):
        run.start(model)
        for m, n, _, call in kept:
            setattr(m, n, call)
        loss = model(X).pow(2).sum()
        loss.backward()
        F.linear(X, model.fc.weight.detach())
        for m, n, own, _ in kept:
            setattr(m, n, own)
        run.stop()
        run.step()
        run.note(f"loss {i}", loss)
    run.note("count", dict(count))


@way
def fused_layers_are_made_in_a_step(run):
    from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
    conv, bn = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)
    fc, norm = nn.Linear(4, 3), nn.BatchNorm1d(3)
    model, image = nn.ModuleList([conv, bn, fc, norm]), torch.linspace(0, 1, 25).view(1, 1, 5, 5)
    with run.dump(model):
        loss = bn(conv(image)).sum() + norm(fc(X)).pow(2).sum()
        loss.backward()
        model.eval()
        fused, also = fuse_conv_bn_eval(conv, bn), fuse_linear_bn_eval(fc, norm)
        run.note("fused", (fused(image), also(X), bn(conv(image)), norm(fc(X))))
    run.note("after", (fused(image), also(X)))
    run.note_model(nn.ModuleList([fused, also]))
