# SPDX-License-Identifier: MIT
"""A way to write a training, and what it came to: the facts that must be alike with and without us.

A way is a function that takes a Run.  It trains something, calls the Run where a program would call
the debugger, and notes what it sees.  The same function runs without us and in every mode:

    @way
    def a_list_that_modules_append_to(run):
        ...
        run.train(model, lambda model, step: model(x).sum())

A way that raises without us cannot run with this PyTorch and is skipped with what it raised.
"""
import contextlib
import gc
import hashlib
import io
import os
import pickle
import random
import re
import resource
import sys
import threading
import traceback
import warnings

import numpy
import torch

VERSION = tuple(int("".join(c for c in part if c.isdigit()) or 0)
                for part in torch.__version__.split("+")[0].split(".")[:2])
WAYS = {}


def way(func=None, *, needs=(1, 13), slow=False, silent=False):
    """Registers a way.  needs: the first PyTorch that can run it; slow: kept out of the sample;
    silent: has no call that a dump records, at any level."""
    def register(f):
        assert f.__name__ not in WAYS, f.__name__
        f.theme = f.__module__.rpartition("_")[2]
        f.needs, f.slow, f.silent = needs, slow, silent
        WAYS[f.__name__] = f
        return f
    return register(func) if func else register


# ---- facts ----------------------------------------------------------------------------------


def _digest(data):
    return hashlib.sha1(data).hexdigest()[:16]


def _bytes_of(t):
    """The elements of a plain tensor in host memory, bit by bit."""
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    out = io.BytesIO()
    out.write(bytes(t.view(torch.uint8).numpy()) if t.numel() and t.dim() else repr(t.tolist()).encode())
    return out.getvalue()


def _elements(t):
    if t.is_meta:
        return "meta"
    if t.is_quantized:
        return _elements(t.int_repr())
    if t.layout is torch.sparse_coo:
        t = t.coalesce()
        return _elements(t.indices()), _elements(t.values())
    if t.layout is not torch.strided:
        return _elements(t.to_dense())
    if t.is_nested:
        return tuple(_elements(part) for part in t.unbind())
    return _digest(_bytes_of(t))


def _look_at(t):
    """What can be told of a tensor without changing it; of one that cannot be read, its class."""
    about = [type(t).__name__, str(t.dtype), t.requires_grad, t.is_leaf,
             type(t.grad_fn).__name__ if t.grad_fn is not None else None]
    try:
        about.append(tuple(t.shape) if not t.is_nested else "nested")
        about.append(t.stride() if t.layout is torch.strided and not t.is_nested else None)
        about.append(_elements(t))
    except Exception as why:
        about.append(type(why).__name__)
    return tuple(about)


def _without_addresses(text):
    return re.sub(r"0x[0-9a-f]{6,}", "0x", text)


def fact_of(value):
    """A value as texts, numbers and tuples that can be compared."""
    if isinstance(value, torch.Tensor):
        with torch.no_grad():
            return _look_at(value)
    if isinstance(value, numpy.ndarray):
        return "ndarray", str(value.dtype), value.shape, _digest(value.tobytes())
    if isinstance(value, dict):
        return type(value).__name__, tuple((str(k), fact_of(v)) for k, v in value.items())
    if isinstance(value, (list, tuple, set, frozenset)):
        return type(value).__name__, tuple(fact_of(v) for v in value)
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, str):
        return _without_addresses(value)
    if value is None or isinstance(value, (bool, int, bytes)):
        return value
    return type(value).__name__, _without_addresses(repr(value)) if type(value).__repr__ is not object.__repr__ else ""


def _why(error):
    """What an exception says, and those that it came from."""
    chain, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        chain.append((type(error).__name__, _without_addresses(str(error))[:2000]))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return tuple(chain)


# ---- one run of a way --------------------------------------------------------------------------


class NoDebugger:
    """Stands where the debugger would, in the run without us and in those that do not change a program."""

    def __getattr__(self, _name):
        return lambda *args, **kwargs: None


class Run:
    """What a way sees of the world."""

    def __init__(self, make_debugger=None, attach=None):
        self.facts = []
        self.attach = attach or (lambda: None)  # for a dump that is not in the code
        self._make = make_debugger or NoDebugger
        self._debugger = None
        self._lock = threading.Lock()

    # ---- what a program calls ------------------------------------------------

    @property
    def debugger(self):
        """Made at the first use, as late as a program may."""
        if self._debugger is None:
            self._debugger = self._make()
        return self._debugger

    def start(self, model=None):
        self.debugger.start(model if model is not None else torch.nn.Module())

    def stop(self):
        self.debugger.stop()

    def step(self):
        self.debugger.step()

    def save(self, name, value):
        """For the level debug."""
        self.debugger.save(value, name)

    @contextlib.contextmanager
    def dump(self, model=None):
        """One step of collecting."""
        self.start(model)
        try:
            yield
        finally:
            self.stop()
            self.step()

    # ---- what a way tells -------------------------------------------------------

    def note(self, label, value):
        """Something that must be alike with and without us."""
        with self._lock:
            self.facts.append((label, fact_of(value)))

    def raises(self, label, call):
        """Notes what a call raises, or that it raises nothing."""
        try:
            call()
        except Exception as error:
            self.note(label, _why(error))
            del error
        else:
            self.note(label, "nothing")

    def note_model(self, model, name=""):
        """Parameters, their gradients, buffers, and the keys that hold them."""
        for key, p in model.named_parameters():
            self.note(f"{name}parameter {key}", p)
            self.note(f"{name}gradient {key}", p.grad)
        for key, b in model.named_buffers():
            self.note(f"{name}buffer {key}", b)
        self.note(f"{name}state_dict", list(model.state_dict()))

    def train(self, model, loss_of, steps=3, optimizer=None, lr=0.05, backward=None):
        """A loop as a thousand programs have one; loss_of(model, step) is the forward pass."""
        make = optimizer or torch.optim.SGD
        parameters = [p for p in model.parameters() if p.requires_grad]
        opt = make(parameters, lr=lr) if parameters else None
        for i in range(steps):
            with self.dump(model):
                if opt is not None:
                    opt.zero_grad()
                loss = loss_of(model, i)
                self.save("loss", loss)
                backward(loss) if backward else loss.backward()
                if opt is not None:
                    opt.step()
            self.note(f"loss {i}", loss)
        self.note_model(model)
        if opt is not None:
            self.note("optimizer", opt.state_dict())
        return opt


def _seed():
    random.seed(0)
    numpy.random.seed(0)
    torch.manual_seed(0)


def _note_random(run):
    run.note("torch random state", torch.get_rng_state())
    run.note("numpy random state", numpy.random.get_state()[1])
    run.note("python random state", _digest(repr(random.getstate()).encode()))
    run.note("next numbers", torch.rand(2))


def _note_modes(run):
    """What a program may find changed afterwards."""
    run.note("modes", (torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
                       torch.is_autocast_enabled(), torch.get_default_dtype(),
                       torch.is_deterministic_algorithms_enabled() if hasattr(torch, "is_deterministic_algorithms_enabled") else None))


OF_RANKS = ("distributed", "parallel", "groups", "endings")  # themes of more processes than one


def run_way(func, make_debugger=None, attach=None):
    """The facts of a way, and what it raised to the top, as (facts, raised).  A child of a process that is dumped
    dumps nothing, so each rank attaches a dump of its own."""
    torch.set_num_threads(1)
    run, raised = Run(make_debugger, attach), None
    if getattr(func, "theme", None) not in OF_RANKS:
        run.attach()
    _seed()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            func(run)
        except Exception as error:
            raised = _why(error)
            traceback.print_exc()
        _note_random(run)
        _note_modes(run)
        run.stop()
        run.note("warned", [(w.category.__name__, str(w.message)[:500]) for w in warned
                            if w.category is not ResourceWarning])
    return run.facts, raised


# ---- more than one process ----------------------------------------------------------------------


def _rank_main(run, func, rank, world, folder):
    import torch.distributed as dist
    status = 1
    # After a fork PyTorch makes its pool of threads anew, which two threads must not do at once.
    torch.set_num_threads(1)
    try:
        run.attach()
        store = dist.FileStore(os.path.join(folder, "store"), world)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=world)
        run.facts = []
        run.raises("raised", lambda: func(run, rank, world))
        # PyTorch 2.1 can deadlock when it frees a group: it joins a thread that waits for the
        # interpreter lock. So the groups live until the process ends.
        kept = list(dist.distributed_c10d._get_default_group.__globals__["_pg_map"]) \
            if VERSION < (2, 0) else list(dist.distributed_c10d._world.pg_map)
        dist.destroy_process_group()
        with open(os.path.join(folder, f"facts{rank}"), "wb") as f:
            pickle.dump(run.facts, f)
        run.debugger.stop()
        status = 0 if kept else 1
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(status)


def run_ranks(run, world, func):
    """func(run, rank, world) in so many processes that are a group of gloo."""
    import tempfile
    folder = tempfile.mkdtemp(dir=".")
    pids = []
    for rank in range(world):
        pid = os.fork()
        if pid == 0:
            os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
            _rank_main(run, func, rank, world, folder)
        pids.append(pid)
    run.note("status of ranks", [os.waitpid(pid, 0)[1] for pid in pids])
    for rank in range(world):
        path = os.path.join(folder, f"facts{rank}")
        if os.path.exists(path):
            with open(path, "rb") as f:
                for label, fact in pickle.load(f):
                    run.facts.append((f"rank {rank}: {label}", fact))


def run_program(run, func, may_end=()):
    """func(run) in a process of its own that ends as a program does.  It says on stdout what must be alike.
    may_end: statuses with which it may end, whichever the threads of PyTorch come to."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        torch.set_num_threads(1)
        run.attach()
        try:
            func(run)
        except Exception:  # as Python does; run_way() must not see it
            sys.excepthook(*sys.exc_info())
            sys.exit(1)
        sys.exit(0)
    status = os.waitpid(pid, 0)[1]
    run.note("status", may_end if status in may_end else status)


def freed(make):
    """Whether what make() returns, a list of objects, goes when nobody holds it: no collector runs."""
    import weakref
    gc.disable()
    try:
        return [ref() is None for ref in [weakref.ref(o) for o in make()]]
    finally:
        gc.enable()
