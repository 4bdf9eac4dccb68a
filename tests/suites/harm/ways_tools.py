# SPDX-License-Identifier: MIT
"""Tools around a training that watch it or step in: trackers of modules and memory, tracers and collectors that run the
model themselves, coroutines, pools, and the debugger called from where nobody expects it."""
import asyncio
import collections
import concurrent.futures
import contextlib
import faulthandler
import gc
import inspect
import logging
import multiprocessing
import os
import pty
import signal
import sys
import tempfile
import threading
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, way
from small_model import Block, loss_of, model_of, X


# ---- trackers --------------------------------------------------------------------------------


@way(needs=(2, 4))
def a_tracker_of_modules_knows_where_it_is(run):
    from torch.utils.module_tracker import ModuleTracker
    model, seen = model_of(), []

    class Tells(nn.Module):
        def forward(self, x):
            seen.append(("forward", sorted(tracker.parents), tracker.is_bw))
            x.register_hook(lambda g: seen.append(("backward", sorted(tracker.parents), tracker.is_bw)))
            return x * 2
    model.append(Tells())
    with ModuleTracker() as tracker:
        run.train(model, loss_of)
    run.note("seen", seen)


@way(needs=(2, 5))
def trackers_of_memory_and_time(run):
    from torch.distributed._tools.mem_tracker import MemTracker
    from torch.distributed._tools.mod_tracker import ModTracker
    model = model_of()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    memory, modules, seen = MemTracker(), ModTracker(), []
    memory.track_external(model, opt)
    modules.register_user_hooks(pre_fw_hook=lambda m, i: seen.append(modules.get_known_fqn(m)),
                                post_bw_hook=lambda m, i: seen.append(("back", modules.get_known_fqn(m))))
    for i in range(3):
        with run.dump(model), modules, memory:
            loss = loss_of(model, i)
            loss.backward()
            opt.step()
            opt.zero_grad()
        memory.reset_mod_stats()
        run.note(f"loss {i}", loss)
    run.note("seen", seen)
    run.note("peak", sorted((str(k), str(v)) for k, v in memory.get_tracker_snapshot("peak").items()))
    run.note_model(model)


@way(needs=(2, 9))
def a_mode_that_prints_all_calls(run):
    from torch.utils._debug_mode import DebugMode
    model = model_of()
    for i in range(2):
        with run.dump(model), DebugMode(record_torchfunction=True) as mode:
            loss = loss_of(model, i)
            loss.backward()
        run.note(f"calls {i}", mode.debug_string())
    run.note_model(model)


@way(needs=(2, 4))
def backward_is_compiled_as_it_runs(run):
    from torch._dynamo import compiled_autograd
    enable = getattr(compiled_autograd, "_enable", None) or compiled_autograd.enable
    model, compiled = model_of(), []

    def compiler(graph):
        compiled.append(len(graph.graph.nodes) > 0)
        return torch.compile(graph, backend="eager")
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        opt.zero_grad()
        with run.dump(model):
            loss = loss_of(model, i)
            with enable(compiler):
                loss.backward()
            opt.step()
        run.note(f"loss {i}", loss)
    run.note("compiled", all(compiled) and bool(compiled))
    run.note_model(model)


@way(needs=(2, 1))
def sizes_that_are_symbols_stay_symbols(run):
    """A size that is asked for its number is no symbol any more, and a guard says so."""
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    model = model_of()

    def f(x):
        y = torch.relu(model[0].fc(x))
        return F.pad(y, (0, x.shape[0]))[: x.shape[0]].sum() * x.shape[0]
    with run.dump(model):
        graph = make_fx(f, tracing_mode="symbolic", _allow_non_fake_inputs=True)(X)
        shapes = ShapeEnv()
        with FakeTensorMode(shape_env=shapes, allow_non_fake_inputs=True) as mode:
            if VERSION >= (2, 3):
                from torch.fx.experimental.symbolic_shapes import DimDynamic, StatelessSymbolicContext
                context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
                x = mode.from_tensor(X, symbolic_context=context)
            else:
                x = mode.from_tensor(X)
            y = model[1](x)
            z = torch.add(torch.transpose(y, 0, 1), 1)[:, : y.shape[0] - 1]
            sizes = [str(s) for s in (*x.shape, *y.shape, *z.shape)]
    run.note("graph", graph.code)
    run.note("sizes", sizes)
    run.note("guards", [str(g.expr) for g in shapes.guards])
    run.train(model, loss_of)


# ---- the collector, tracers and finalizers run the model themselves -----------------------------


@way
def the_collector_runs_at_every_allocation_and_calls_the_model(run):
    model, beside, state = model_of(), Block(), collections.Counter()
    small = torch.ones(2, 4)

    def called(phase, _info):
        if state["inside"] or state[phase] >= 40:
            return
        state["inside"] += 1
        state[phase] += 1
        try:
            with torch.enable_grad():
                torch.relu(small).add(1)
                beside(small).sum().backward()
                model[0].norm(small)
        finally:
            state["inside"] -= 1

    def loss(model, step):
        state.clear()
        gc.collect()
        gc.callbacks.append(called)
        before = gc.get_threshold()
        gc.set_threshold(3, 2, 2)
        try:
            value = loss_of(model, step)
            value.backward(retain_graph=True)
        finally:
            gc.set_threshold(*before)
            gc.callbacks.remove(called)
        return value
    beside.requires_grad_(False)
    small.requires_grad_(True)
    run.train(model, loss)
    run.note("called", state["start"] > 0)


@way
def a_tracer_that_runs_the_model_at_every_call(run):
    model, beside, state = model_of(), Block().requires_grad_(False), collections.Counter()

    def watch(frame, event, _arg):
        own = frame.f_code.co_filename == __file__
        state[event] += own and frame.f_code is not watch.__code__
        if not state["inside"] and state["runs"] < 60 and event in ("call", "return"):
            state["inside"], before = 1, sys.getprofile()
            state["runs"] += 1
            try:
                torch.relu(beside(X))
                model[0].norm(X)
            finally:
                state["inside"] = 0
            sys.setprofile(before)
        return None

    def loss(model, step):
        state["runs"] = 0
        sys.setprofile(watch)
        try:
            value = loss_of(model, step)
            value.backward(retain_graph=True)
        finally:
            sys.setprofile(None)
        return value
    run.train(model, loss)
    run.note("seen", state["runs"])


@way
def finalizers_that_raise_and_call_functions(run):
    model, heard = model_of(), []

    class Falls:
        def __init__(self, number):
            self.number = number

        def __del__(self):
            torch.relu(X)
            model[0].fc(X)
            raise ValueError(f"fell {self.number}")

    class Drops(nn.Module):
        def __init__(self, number):
            super().__init__()
            self.number = number

        def forward(self, x):
            y = x * 1
            y.falls = Falls(self.number)
            weakref.finalize(y, lambda: heard.append(("gone", self.number)))
            return y + 1
    before = sys.unraisablehook
    sys.unraisablehook = lambda u: heard.append((type(u.exc_value).__name__, str(u.exc_value), u.object.__qualname__))
    try:
        both = nn.Sequential(model, Drops(1), nn.Identity(), Drops(2))
        run.train(both, loss_of)
    finally:
        sys.unraisablehook = before
    run.note("heard", heard)


@way
def faults_tell_the_frames_of_the_program(run):
    model, seen = model_of(), []

    class Tells(nn.Module):
        def forward(self, x):
            with tempfile.TemporaryFile("w+") as f:
                faulthandler.dump_traceback(f, all_threads=False)
                f.seek(0)
                seen.append([line.split(" in ")[-1].strip() for line in f if __file__ in line])
            return x
    model.append(Tells())
    with tempfile.TemporaryFile() as late:
        faulthandler.dump_traceback_later(3600, file=late)
        run.train(model, loss_of)
        faulthandler.cancel_dump_traceback_later()
    run.note("seen", seen)


@way
def streams_of_the_program_that_are_gone(run):
    """As a program without a console has them, and one that logs all warnings."""
    model, records = model_of(), []

    class Keeps(logging.Handler):
        def emit(self, record):
            records.append((record.name, record.levelname))
    handler = Keeps()
    logging.getLogger().addHandler(handler)
    kept = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None
    logging.captureWarnings(True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            run.train(model, loss_of)
            warnings.warn("of the program", stacklevel=1)
    finally:
        logging.captureWarnings(False)
        sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = kept
        logging.getLogger().removeHandler(handler)
    run.note("records", records)


# ---- coroutines, pools and children ----------------------------------------------------------------


@way
def forwards_that_are_coroutines(run):
    model, seen = model_of(), []

    class Later(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        async def forward(self, x):
            y = self.inner(x)
            await asyncio.sleep(0)
            return F.relu(y)

    class Stream(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        async def forward(self, x):
            for row in x.unbind():
                await asyncio.sleep(0)
                yield self.inner(row)
    both = nn.ModuleList([Later(), Stream()])

    async def slow():
        try:
            await both[0](X)
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            both[0].inner(X)
            raise

    async def train():
        task = asyncio.ensure_future(slow())
        value, rows = (await asyncio.gather(both[0](X), both[0](X)))[1].sum(), []
        async for row in both[1](X):
            rows.append(row.sum())
            if len(rows) == 4:
                break
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return value + sum(rows)
    run.train(both, lambda both, step: asyncio.run(train()))
    run.note("kinds", [inspect.iscoroutinefunction(both[0].forward), inspect.isasyncgenfunction(both[1].forward)])
    run.note("seen", seen)


_model_of_pool = None


def _evaluate(seed):
    torch.manual_seed(seed)
    with torch.no_grad():
        return _model_of_pool(torch.randn(3, 4)).tolist()


@way
def pools_of_processes_that_are_forked_in_a_step(run):
    global _model_of_pool
    model = _model_of_pool = model_of()
    context, seen = multiprocessing.get_context("fork"), []

    def loss(model, step):
        value = loss_of(model, step)
        with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
            seen.append(list(pool.map(_evaluate, range(3))))
        with context.Pool(2) as pool:
            seen.append(pool.map(_evaluate, range(3)))
        return value
    run.train(model, loss, steps=2)
    run.note("seen", seen)


@way
def a_terminal_and_callbacks_around_a_fork(run):
    model, order = model_of(), []
    os.register_at_fork(before=lambda: order.append(("before", model[0].fc(X).sum().item())),
                        after_in_parent=lambda: order.append("parent"), after_in_child=lambda: order.append("child"))

    def loss(model, step):
        value = loss_of(model, step)
        pid, fd = pty.fork()
        if pid == 0:
            code = 7
            with contextlib.suppress(BaseException):
                loss_of(model, step).backward()
                print(len(order), flush=True)
                code = 5
            os._exit(code)
        text = b""
        with contextlib.suppress(OSError):
            while part := os.read(fd, 100):
                text += part
        os.close(fd)
        order.append((text.strip(), os.waitpid(pid, 0)[1]))
        return value
    run.train(model, loss, steps=2)
    run.note("order", order)


@way
def children_are_forked_while_a_thread_starts_and_stops(run):
    """Whatever the thread holds at that moment, the child must not wait for it."""
    model, stop = model_of(), threading.Event()

    def turn():
        while not stop.is_set():
            with run.dump(model):
                loss_of(model, 0)
    thread, statuses = threading.Thread(target=turn), []
    run.start(model)
    thread.start()
    try:
        for _ in range(25):
            pid = os.fork()
            if pid == 0:
                signal.alarm(5)
                run.start(model)
                run.stop()
                run.step()
                os._exit(3)
            statuses.append(os.waitpid(pid, 0)[1])
    finally:
        stop.set()
        thread.join()
    run.note("statuses", statuses)


# ---- the debugger is called from elsewhere ----------------------------------------------------------


@way
def a_handler_of_signals_starts_and_stops(run):
    model, state = model_of(), collections.Counter()

    def strike(_number, _frame):
        state["struck"] += 1
        run.stop()
        run.step()
        run.start(model)
    run.start(model)
    before = signal.signal(signal.SIGALRM, strike)
    try:
        for i in range(40):
            with run.dump(model):
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + i * 0.00005)
                loss = loss_of(model, i)
                loss.backward()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    run.stop()
    run.note("loss", loss)
    run.note_model(model)


@way
def hooks_and_modules_that_start_and_stop(run):
    """The dump begins and ends in the middle of forward and of backward, and a step ends within a module."""
    model, x = model_of(), X.clone().requires_grad_(True)

    class Calls(nn.Module):
        def __init__(self, call):
            super().__init__()
            self.call = call

        def forward(self, x):
            self.call()
            y = x * 2
            y.register_hook(lambda g: self.call())
            return y
    whole = nn.Sequential(model[0], Calls(lambda: run.stop()), model[1], Calls(lambda: run.start(whole)),
                          Calls(lambda: run.step()), model[2], Calls(lambda: run.start(model)))
    for i in range(4):
        with run.dump(whole):
            loss = whole(x).pow(2).mean()
            loss.backward()
        run.note(f"loss {i}", (loss, x.grad))
    run.note_model(whole)
    run.note("hooks", sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in whole.modules()))
