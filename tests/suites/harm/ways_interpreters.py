# SPDX-License-Identifier: MIT
"""What a program does with its process and its interpreter around a step: threads that C has made, storms of signals,
streams that are gone, privileges given up, code without a file, tasks that are cancelled, models shared by processes."""
import asyncio
import code
import concurrent.futures
import contextvars
import ctypes
import enum
import gc
import io
import os
import pickle
import pty
import resource
import signal
import subprocess
import sys
import threading
import time
import types
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import run_program, way
from small_model import Block, loss_of, model_of, X

libc = ctypes.CDLL(None, use_errno=True)


def say(*what):
    print(*what, flush=True)


def train_and_say(run, model, steps=3, at_step=None):
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with run.dump(model):
            if at_step:
                at_step(step)
            opt.zero_grad()
            loss = loss_of(model, step)
            loss.backward()
            opt.step()
        say(step, loss.item().hex())


# ---- threads and interpreters ---------------------------------------------------------------------


def in_a_thread_of_c(func):
    """Calls func in a thread that pthread_create makes, so Python learns of the thread when func begins."""
    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def main(_):
        func()
    thread = ctypes.c_ulong()
    assert libc.pthread_create(ctypes.byref(thread), None, main, None) == 0
    libc.pthread_join(thread, None)


@way
def forward_and_backward_in_threads_that_c_has_made(run):
    model, losses = model_of(), []
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        opt.zero_grad()
        losses.append(loss_of(model, i))
        losses[-1].backward()
        opt.step()
    for i in range(3):
        with run.dump(model):
            in_a_thread_of_c(lambda: step(i))
    run.note("losses", losses)
    run.note_model(model)


@way
def a_step_that_begins_and_ends_in_a_thread_of_c(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(2):
        in_a_thread_of_c(lambda: run.start(model))
        loss = loss_of(model, i)
        loss.backward()
        opt.step()
        in_a_thread_of_c(lambda: (run.stop(), run.step()))
        run.note(f"loss {i}", loss)
    run.note_model(model)


@way
def another_interpreter_runs_within_a_step(run):
    """Forward alone: PyTorch refuses a backward once there has been a second interpreter."""
    import _xxsubinterpreters as interpreters
    model = model_of()

    class Asks(nn.Module):
        def forward(self, x):
            there, back = os.pipe()
            other = interpreters.create()
            interpreters.run_string(other, f"import os, json, sys; os.write({back}, json.dumps([5]).encode())")
            run.note("from the other", os.read(there, 100))
            interpreters.destroy(other)
            os.close(there)
            os.close(back)
            return x * 2
    model.append(Asks())
    for i in range(2):
        with run.dump(model), torch.no_grad():
            run.note(f"result {i}", model(X))


@way
def local_values_of_threads_and_contexts_within_modules(run):
    kept, variable = threading.local(), contextvars.ContextVar("depth", default=0)

    class Deeper(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Block()

        def forward(self, x):
            token = variable.set(variable.get() + 1)
            kept.calls = getattr(kept, "calls", 0) + 1
            try:
                return self.inner(x) * variable.get()
            finally:
                variable.reset(token)
    model = nn.Sequential(Deeper(), Deeper())
    context = contextvars.copy_context()
    run.train(model, lambda m, i: context.run(lambda: m(X)).pow(2).mean())
    run.note("kept", (kept.calls, variable.get(), len(contextvars.copy_context()), len(context)))


# ---- signals -----------------------------------------------------------------------------------


@way
def a_storm_of_signals_interrupts_every_call_of_the_system(run):
    model, counts = model_of(), [0]

    def handler(_number, _frame):
        counts[0] += 1
    before = signal.signal(signal.SIGALRM, handler)
    signal.siginterrupt(signal.SIGALRM, True)
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        run.train(model, loss_of, steps=6, optimizer=torch.optim.Adam)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    run.note("came", counts[0] > 0)


@way
def a_profiler_by_signals_looks_at_tensors(run):
    """A sampling profiler: its handler reads the frames, and the tensors that they hold."""
    model, seen = model_of(), []

    def handler(_number, frame):
        while frame is not None:
            for value in list(frame.f_locals.values()):
                if type(value) is torch.Tensor and not value.is_meta:
                    seen.append(value.detach().sum().item() == value.detach().sum().item())
            frame = frame.f_back
    before = signal.signal(signal.SIGPROF, handler)
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    try:
        run.train(model, loss_of, steps=6)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    run.note("all", all(seen))


@way
def a_handler_saves_a_checkpoint_in_the_middle_of_a_module(run):
    """As under a scheduler of a cluster that sends SIGUSR1 before it takes the machine away."""
    model = model_of()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    saved = []

    def handler(_number, _frame):
        out = io.BytesIO()
        torch.save({"model": model.state_dict(), "opt": opt.state_dict(), "rng": torch.get_rng_state()}, out)
        saved.append(out.getvalue())
    before = signal.signal(signal.SIGUSR1, handler)
    model[1].register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGUSR1))
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss = loss_of(model, i)
            loss.register_hook(lambda g: os.kill(os.getpid(), signal.SIGUSR1))
            loss.backward()
            opt.step()
        run.note(f"loss {i}", loss)
    run.note("saved", [torch.load(io.BytesIO(s), weights_only=False) if i % 2 else len(s) for i, s in enumerate(saved)])
    state = torch.load(io.BytesIO(saved[2]), weights_only=False)
    model.load_state_dict(state["model"])
    opt.load_state_dict(state["opt"])
    with run.dump(model):
        loss_of(model, 0).backward()
        opt.step()
    signal.signal(signal.SIGUSR1, before)
    run.note_model(model)


@way
def signals_wake_a_descriptor(run):
    model = model_of()
    there, back = os.pipe()
    os.set_blocking(back, False)
    before = signal.signal(signal.SIGUSR2, lambda *_: None)
    old = signal.set_wakeup_fd(back)
    model[0].register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGUSR2))
    run.train(model, loss_of)
    run.note("woken", os.read(there, 100))
    run.note("still the program's", signal.set_wakeup_fd(old) == back)
    signal.signal(signal.SIGUSR2, before)


# ---- streams, rights and limits --------------------------------------------------------------------


@way
def streams_that_are_none_or_refuse(run):
    model = model_of()
    model.add_module("a/slash", nn.Identity())

    class Refuses(io.TextIOBase):
        def write(self, _text):
            raise ValueError("nobody may write here")
    before = sys.stdout, sys.stderr
    try:
        for stream in (None, Refuses()):
            sys.stdout = sys.stderr = stream
            run.train(model, loss_of, steps=2)
    finally:
        sys.stdout, sys.stderr = before


@way
def a_full_disk_of_standard_error(run):
    def main(run):
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, 2)
        model = model_of()
        model.add_module("a/slash", nn.Identity())
        train_and_say(run, model)
    run_program(run, main)


@way
def standard_error_is_a_pipe_without_a_reader(run):
    def main(run):
        there, back = os.pipe()
        os.close(there)
        os.dup2(back, 2)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        model = model_of()
        train_and_say(run, model)
    run_program(run, main)


@way
def a_limit_of_files_that_ends_a_program_which_exceeds_it(run):
    """Python ignores SIGXFSZ; a program that has put the default back writes no files itself."""
    def main(run):
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        old = resource.getrlimit(resource.RLIMIT_FSIZE)
        model = model_of()
        train_and_say(run, model, steps=2)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, old[1]))
        train_and_say(run, model, steps=4)
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        say(signal.sigpending(), signal.pthread_sigmask(signal.SIG_BLOCK, []))
    run_program(run, main)


@way
def rights_are_given_up_within_a_step(run):
    def main(run):
        os.chmod(".", 0o755)

        def at_step(step):
            if step == 1 and os.getuid() == 0:
                os.setgid(65534)
                os.setuid(65534)
        train_and_say(run, model_of(), at_step=at_step)
        say(os.getuid() != 0)
    run_program(run, main)


@way
def another_root_within_a_step(run):
    def main(run):
        os.mkdir("jail")

        def at_step(step):
            if step == 1 and os.getuid() == 0:
                os.chroot("jail")
                os.chdir("/")
        train_and_say(run, model_of(), at_step=at_step)
        say(os.path.exists("/proc"))
    run_program(run, main)


@way
def nobody_may_read_what_is_made(run):
    before = os.umask(0o777)
    try:
        run.train(model_of(), loss_of)
        run.note("mask", os.umask(0o777))
    finally:
        os.umask(before)


@way
def numbers_that_are_too_long_to_print(run):
    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, *rest, **more):
            return self.fc(x) * len(rest) + len(more)
    model = Takes()
    long = 7 ** 9000
    old = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(640)
    try:
        run.train(model, lambda m, i: m(X, long, [-long, {long: long}], range(long), n=long, s=slice(long)).mean())
        run.raises("still too long", lambda: str(long))
    finally:
        sys.set_int_max_str_digits(old)


@way
def arguments_of_enumerations_and_odd_classes(run):
    class Kind(enum.Enum):
        ONE = torch.ones(1)
        TWO = "\ud800"

    class Flags(enum.IntFlag):
        A = 1
        B = 2

    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, *rest):
            return self.fc(x) * sum(1 for r in rest if r)
    import array
    import collections
    import datetime
    import decimal
    import fractions
    import pathlib
    import re
    import uuid
    odd = [Kind.ONE, Kind.TWO, Flags.A | Flags.B, Flags(0), decimal.Decimal("NaN"), fractions.Fraction(1, 3), 1j,
           complex("nan"), memoryview(b"abc"), bytearray(b"\xff"), b"\xff\x00", array.array("d", [1.0]), ...,
           NotImplemented.__class__, pathlib.Path("a/b"), re.match("a", "a"), datetime.datetime(1, 1, 1), uuid.UUID(int=1),
           collections.deque([torch.ones(2)], maxlen=1), collections.ChainMap({"x": X}), types.SimpleNamespace(x=X),
           types.MappingProxyType({"x": X}), weakref.ref(model_of()), frozenset([1]), zip([1], [2]), open(os.devnull).close,
           lambda: X, type, float("-inf"), -0.0, 1e-320, "\x00", "\U0010ffff", "a" * 70000]
    run.train(Takes(), lambda m, i: m(X, *odd).mean())


# ---- memory of the interpreter ------------------------------------------------------------------------


@way
def the_collector_is_frozen_and_thawed_within_a_step(run):
    model = model_of()

    class Cycle:
        pass

    def loss(model, step):
        cycle = Cycle()
        cycle.me, cycle.loss = cycle, loss_of(model, step)
        gone = weakref.ref(cycle)
        value = cycle.loss
        if step == 1:
            frozen = gc.get_freeze_count()
            gc.freeze()
            run.note("more are frozen", gc.get_freeze_count() > frozen)
        del cycle
        gc.collect()
        run.note(f"gone {step}", gone() is None)
        if step == 1:
            gc.unfreeze()
            gc.collect()
            run.note("gone now", gone() is None)
        return value
    run.train(model, loss)


@way
def debug_flags_of_the_collector_keep_what_is_unreachable(run):
    model = model_of()
    gc.collect()
    garbage = len(gc.garbage)
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        run.train(model, loss_of)
        gc.collect()
    finally:
        gc.set_debug(0)
    run.note("garbage of the program", sorted(type(o).__name__ for o in gc.garbage[garbage:]
                                              if isinstance(o, (torch.Tensor, nn.Module))))
    del gc.garbage[garbage:]


@way
def finalizers_of_arguments_run_where_they_would(run):
    order = []

    class Batch:
        def __init__(self, x, name):
            self.x = x
            weakref.finalize(self, order.append, name)

    class Reads(nn.Module):
        def __init__(self, name):
            super().__init__()
            self.fc, self.name = nn.Linear(4, 4), name

        def forward(self, batch):
            order.append(self.name)
            x = self.fc(batch.x)
            del batch
            order.append(self.name + " end")
            return Batch(x, "of " + self.name)
    model = nn.Sequential(Reads("a"), Reads("b"))

    def loss(model, step):
        out = model(Batch(X, f"batch {step}"))
        order.append("loss")
        return out.x.pow(2).mean()
    run.train(model, loss)
    run.note("order", order)


# ---- code -----------------------------------------------------------------------------------------------


@way
def code_that_has_no_file_and_odd_names(run):
    text = ("def forward(self, x):\n    return self.fc(x).relu().sum(-1)\n"
            "def loss(model, x):\n    return model(x).pow(2).mean()\n")
    model = model_of()
    for name in ("<string>", "", "a\nb.py", "\udcff.py", "/" + "d/" * 3000 + "x.py", "日本.py"):
        space = {"__name__": 5, "__builtins__": {"__build_class__": __build_class__, "len": len}}
        exec(compile(text, name, "exec"), space)
        model = nn.Module()
        model.fc = nn.Linear(4, 4)
        space["forward"].__code__ = space["forward"].__code__.replace(co_name="\udcff(\n", co_firstlineno=2 ** 30)
        kind = type("Odd", (nn.Module,), {"forward": space["forward"]})
        model.__class__ = kind
        run.train(model, lambda m, i: space["loss"](m, X), steps=2)
        del space["__name__"]
        run.train(model, lambda m, i: space["loss"](m, X), steps=1)


@way
def typed_into_a_console(run):
    console = code.InteractiveConsole({"run": run, "model_of": model_of, "loss_of": loss_of, "torch": torch})
    for line in ("model = model_of()", "opt = torch.optim.SGD(model.parameters(), lr=0.1)", "run.start(model)",
                 "loss = loss_of(model, 0)", "loss.backward()", "opt.step()", "run.stop()", "run.step()",
                 "run.note('loss', loss)", "run.note_model(model)", "run.start(model)",
                 "run.raises('raised', lambda: model(torch.ones(7)))", "run.stop()", "run.note('names', sorted(dir()))",
                 "run.start(model); raise KeyError('on purpose')", "run.stop()"):
        console.push(line)


@way
def names_of_the_program_that_are_those_of_modules_we_import(run):
    """A program may have files of its own called json.py or functools.py, and import them late."""
    kept = {name: sys.modules.get(name) for name in ("json", "functools", "weakref", "inspect", "traceback")}
    model = model_of()
    run.train(model, loss_of, steps=1)
    try:
        for name in kept:
            sys.modules[name] = types.ModuleType(name)
        run.train(model, loss_of, steps=2)
    finally:
        sys.modules.update({name: module for name, module in kept.items() if module is not None})


# ---- processes ------------------------------------------------------------------------------------------


@way
def programs_started_in_all_ways_within_a_step(run):
    model = model_of()

    def loss(model, step):
        there, back = os.pipe()
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"echo spawned {step}; exit 7"], {},
                             file_actions=[(os.POSIX_SPAWN_DUP2, back, 1), (os.POSIX_SPAWN_CLOSE, there)])
        os.close(back)
        run.note("spawned", (os.waitpid(pid, 0)[1], os.read(there, 100)))
        os.close(there)
        with os.popen("echo opened") as f:
            run.note("opened", f.read())
        run.note("shell", os.system("exit 3"))
        out = subprocess.run([sys.executable, "-I", "-S", "-c", "import sys; print(sys.flags.isolated)"],
                             capture_output=True, text=True, check=False)
        run.note("python", (out.returncode, out.stdout, out.stderr))
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv("/bin/echo", ["echo", "from a terminal"])
        run.note("terminal", os.read(terminal, 100))
        run.note("ended", os.waitpid(pid, 0)[1])
        os.close(terminal)
        return loss_of(model, step)
    run.train(model, loss, steps=2)


def _update(model, wait, done):
    """One step of another process on parameters that both share."""
    torch.set_num_threads(1)
    wait.acquire()
    loss = loss_of(model, 0)
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    done.release()


@way
def processes_that_share_parameters_and_take_turns(run):
    import torch.multiprocessing as mp
    context = mp.get_context("fork")
    model = model_of()
    model.share_memory()
    turns = [context.Semaphore(0) for _ in range(3)]
    done = context.Semaphore(0)
    run.start(model)
    others = [context.Process(target=_update, args=(model, turn, done)) for turn in turns]
    for other in others:
        other.start()
    for i, turn in enumerate(turns):
        loss = loss_of(model, i)
        loss.backward()
        model.zero_grad()
        turn.release()
        done.acquire()
        run.note(f"loss {i}", loss)
    for other in others:
        other.join()
    run.stop()
    run.step()
    run.note("ended", [other.exitcode for other in others])
    run.note_model(model)


@way
def tensors_sent_through_queues_within_a_step(run):
    import torch.multiprocessing as mp
    context = mp.get_context("fork")
    model = model_of()

    def work(asked, answers):
        torch.set_num_threads(1)
        for x in iter(asked.get, None):
            answers.put(x * 2)
        answers.put(None)
    asked, answers = context.SimpleQueue(), context.SimpleQueue()
    other = context.Process(target=work, args=(asked, answers))
    other.start()

    def loss(model, step):
        asked.put(X + step)
        x = answers.get()
        run.note("shared", x.is_shared())
        return model(x).pow(2).mean()
    run.train(model, loss)
    asked.put(None)
    run.note("end", answers.get())
    other.join()


# ---- tasks --------------------------------------------------------------------------------------------


@way
def tasks_that_are_cancelled_in_the_middle_of_a_module(run):
    model, seen = model_of(), []

    async def train(step, cancel):
        with run.dump(model):
            x = X
            for layer in model:
                x = layer(x)
                await asyncio.sleep(0)
                if cancel and layer is model[1]:
                    await asyncio.sleep(60)
            x.pow(2).mean().backward()
            seen.append((step, "whole"))

    async def main():
        asyncio.get_running_loop().slow_callback_duration = 1000  # else a slow machine is told of
        for step in range(4):
            task = asyncio.create_task(train(step, step % 2))
            try:
                await asyncio.wait_for(task, 0.3 if step % 2 else 30)
            except asyncio.TimeoutError:
                seen.append((step, "cancelled"))
        results = await asyncio.gather(*(asyncio.to_thread(loss_of, model, i) for i in range(3)))
        run.note("in threads", results)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(asyncio.to_thread(lambda i=i: loss_of(model, i).item())) for i in range(3)]
        run.note("in a group", [task.result() for task in tasks])
    asyncio.run(main(), debug=True)
    run.note("seen", seen)
    run.note_model(model)


@way
def steps_handed_to_one_thread_and_awaited(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(i):
        with run.dump(model):
            opt.zero_grad()
            loss = loss_of(model, i)
            loss.backward()
            opt.step()
        return loss.detach()

    async def main():
        loop = asyncio.get_running_loop()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            return [await loop.run_in_executor(pool, step, i) for i in range(4)]
    run.note("losses", asyncio.run(main()))
    run.note_model(model)


@way
def generators_that_are_thrown_into_and_never_ended(run):
    model, seen = model_of(), []

    def layers(x):
        try:
            for layer in model:
                x = layer(x)
                given = yield x
                x = x if given is None else given
        except ValueError as error:
            seen.append(str(error))
            yield model[0](X) * 0
        finally:
            seen.append("over")
    for i in range(3):
        with run.dump(model):
            going = layers(X)
            x = next(going)
            x = going.send(x * 2 if i == 0 else None) if i == 0 else next(going)
            if i == 1:
                x = going.throw(ValueError("thrown"))
            x.pow(2).mean().backward()
            if i == 2:
                del going
        run.note(f"x {i}", x)
    run.note("seen", seen)
    run.note_model(model)


@way
def a_pickle_is_made_while_modules_run(run):
    """Another thread pickles the model again and again while this one trains."""
    model, sizes, over = model_of(), [], threading.Event()

    def pickles():
        while not over.is_set():
            sizes.append(len(pickle.dumps(model)))
            time.sleep(0.001)
    thread = threading.Thread(target=pickles)
    thread.start()
    run.train(model, loss_of, steps=5)
    over.set()
    thread.join()
    run.note("some", len(sizes) > 0)
    run.note("loaded", [p for p in pickle.loads(pickle.dumps(model)).parameters()])


@way(slow=True)
def python_with_switches_of_its_own(run):
    """A program under -O -W error, which this process starts: it is not dumped, but recorded where this is."""
    text = ("import sys, torch; m = torch.nn.Linear(2, 2); torch.nn.init.ones_(m.weight); torch.nn.init.zeros_(m.bias);"
            "o = torch.optim.SGD(m.parameters(), lr=0.1); l = m(torch.ones(1, 2)).sum(); l.backward(); o.step();"
            "print(m.weight.tolist(), sys.flags.optimize)")
    out = subprocess.run([sys.executable, "-O", "-W", "error::UserWarning", "-c", text], capture_output=True, text=True,
                         check=False)
    run.note("result", (out.returncode, out.stdout))
    run.train(model_of(), lambda m, i: F.relu(m(X)).mean(), steps=1)
