# SPDX-License-Identifier: MIT
"""Programs that end in the middle of a step: in hooks, by signals, in threads, in finalizers, by exec; programs
that start others, and those that close descriptors they do not know."""
import atexit
import faulthandler
import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback

import torch
from torch import nn
from torch.nn import functional as F

from harness import run_program, way

X = torch.linspace(-1, 1, 24).view(6, 4)
KEPT = {}  # lives until the interpreter takes modules apart


def model_of():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def loss_of(model, _step):
    return F.relu(model(X)).pow(2).mean()


def say(*what):
    print(*what, flush=True)


def train_and_say(run, model, steps=3, at_loss=None):
    """A loop that says its losses, and calls at_loss(loss, step) before backward."""
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        with run.dump(model):
            opt.zero_grad()
            loss = loss_of(model, step)
            if at_loss:
                at_loss(loss, step)
            loss.backward()
            opt.step()
        say(step, loss.item().hex())


@way
def a_program_exits_in_a_hook_of_a_module(run):
    def main(run):
        model, calls = model_of(), []

        def hook(*_):
            calls.append(1)
            if len(calls) == 2:
                sys.exit(3)
        model[1].register_forward_hook(hook)
        train_and_say(run, model)
    run_program(run, main)


@way
def a_program_exits_in_a_hook_of_a_gradient(run):
    def main(run):
        train_and_say(run, model_of(),
                      at_loss=lambda loss, step: step == 1 and loss.register_hook(lambda g: sys.exit(4)))
    run_program(run, main)


@way
def a_program_ends_at_once_in_backward(run):
    def main(run):
        train_and_say(run, model_of(),
                      at_loss=lambda loss, step: step == 1 and loss.register_hook(lambda g: os._exit(5)))
    run_program(run, main)


@way
def a_program_that_aborts_tells_where(run):
    """The lines of Python's fault handler, within forward and within backward."""
    def main(run, name, in_backward):
        with open(name, "w", encoding="utf-8") as f:
            faulthandler.enable(file=f, all_threads=False)
            model = model_of()
            if in_backward:
                train_and_say(run, model, at_loss=lambda loss, _: loss.register_hook(lambda g: os.abort()))
            model[1].register_forward_hook(lambda *_: os.abort())
            train_and_say(run, model)
    for name in ("forward", "backward"):
        run_program(run, lambda run, name=name: main(run, name + ".txt", name == "backward"))
        with open(name + ".txt", encoding="utf-8") as f:
            run.note(name, [line for line in f.read().splitlines() if line.startswith("  File")])


@way
def an_exception_that_nobody_catches(run):
    def hook(kind, error, trace):
        say(kind.__name__, error, [f.name for f in traceback.extract_tb(trace) if f.filename == __file__],
            error.__context__, getattr(error, "__notes__", None))

    def main(run):
        sys.excepthook = hook
        model = model_of()

        def fail(*_):
            raise LookupError("nobody catches this")
        model[2].register_forward_pre_hook(fail)
        train_and_say(run, model)
    run_program(run, main)


@way
def an_exception_in_backward_that_nobody_catches(run):
    def main(run):
        def fail(_grad):
            raise LookupError("nobody catches this")
        train_and_say(run, model_of(), at_loss=lambda loss, step: step == 1 and loss.register_hook(fail))
    run_program(run, main)


@way
def signals_that_end_a_program_in_a_step(run):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM, signal.SIGKILL, signal.SIGXCPU):
        def main(run, number=number):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            train_and_say(run, model_of(),
                          at_loss=lambda loss, step: step == 1 and loss.register_hook(
                              lambda g: signal.raise_signal(number)))
        run_program(run, main)


@way
def a_handler_that_exits_in_a_step(run):
    def main(run):
        def leave(number, _frame):
            say("leaving", number)
            sys.exit(7)
        signal.signal(signal.SIGTERM, leave)
        train_and_say(run, model_of(), at_loss=lambda loss, step: step == 1 and os.kill(os.getpid(), signal.SIGTERM))
    run_program(run, main)


@way
def a_program_that_trains_on_at_its_exit(run):
    def main(run):
        model = model_of()
        atexit.register(lambda: train_and_say(run, model))
        threading._register_atexit(lambda: say("threads end"))
        train_and_say(run, model, 1)
    run_program(run, main)


@way
def a_thread_that_outlives_the_main_function(run):
    def main(run):
        def late():
            while threading.main_thread().is_alive():
                time.sleep(0.001)
            train_and_say(run, model_of())
            say("late")
        threading.Thread(target=late).start()
        say("main ends")
    run_program(run, main)


@way
def a_daemon_that_trains_while_the_program_ends(run):
    def main(run):
        ready = threading.Event()

        def forever():
            model = model_of()
            while True:
                with run.dump(model):
                    loss_of(model, 0).backward()
                ready.set()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # PyTorch says that it aborts, or is not asked to
        threading.Thread(target=forever, daemon=True).start()
        ready.wait()
    run_program(run, main, may_end=(0, int(signal.SIGABRT)))


class Told(nn.Linear):
    def __del__(self):
        say("gone", self(X).sum().item().hex())


@way
def a_finalizer_calls_its_model_as_the_program_ends(run):
    def main(run):
        KEPT["model"] = nn.Sequential(Told(4, 4), nn.Tanh(), nn.Linear(4, 2))
        train_and_say(run, KEPT["model"], 2)
        run.start(KEPT["model"])
        loss_of(KEPT["model"], 0).backward()
        say("main ends")
    run_program(run, main)


@way
def a_finalizer_of_a_model_nobody_holds_within_a_step(run):
    def main(run):
        model = nn.Sequential(Told(4, 4), nn.Tanh(), nn.Linear(4, 2))
        run.start(model)
        loss_of(model, 0).backward()
        del model
        gc.collect()
        say("held" if run.debugger is None else "asked")
        run.stop()
        run.step()
        gc.collect()
        say("main ends")
    run_program(run, main)


@way
def a_program_replaces_itself_in_forward(run):
    def main(run):
        model = model_of()
        program = "import sys; print('another', sys.argv[1:], flush=True); sys.exit(9)"
        model[1].register_forward_hook(lambda *_: os.execv(sys.executable, [sys.executable, "-c", program, "a"]))
        train_and_say(run, model)
    run_program(run, main)


@way
def a_dump_that_is_never_stopped(run):
    def main(run):
        model = model_of()
        run.start(model)
        for step in range(2):
            loss = loss_of(model, step)
            loss.backward()
            say(loss.item().hex())
        run.start(model)
    run_program(run, main)


@way
def descriptors_closed_that_the_program_does_not_know(run):
    """As daemons do; files of the program then get the numbers of those that were closed."""
    def main(run):
        model, mine = model_of(), []

        def close(_loss, step):
            if step == 1:
                os.closerange(3, 4096)
                for i in range(40):
                    mine.append(os.open(f"mine{i}", os.O_RDWR | os.O_CREAT, 0o600))
                    os.write(mine[-1], b"of the program")
        train_and_say(run, model, 4, close)
        for fd in mine:
            os.close(fd)
    run_program(run, main)
    contents = []
    for i in range(40):
        with open(f"mine{i}", "rb") as f:
            contents.append(f.read())
    run.note("contents", set(contents))


@way
def standard_descriptors_that_become_files(run):
    def main(run):
        def close(_loss, step):
            if step == 0:
                for fd in (0, 2):
                    os.close(fd)
                    assert os.open(f"own{fd}", os.O_RDWR | os.O_CREAT, 0o600) == fd
        train_and_say(run, model_of(), 3, close)
        run.stop()
        os.write(2, b"mine")
    run_program(run, main)
    for name in ("own0", "own2"):
        with open(name, "rb") as f:
            run.note(name, f.read())


def trained_elsewhere(model, losses):
    """In a process that was started anew."""
    loss = loss_of(model, 0)
    loss.backward()
    losses.put((loss.item().hex(), model[0].weight.grad.sum().item().hex(), type(model[1]).__name__))


@way(slow=True)
def processes_started_anew_get_the_model_within_a_step(run):
    model = model_of()
    for kind in ("spawn", "forkserver"):
        context = multiprocessing.get_context(kind)
        losses = context.Queue()
        with run.dump(model):
            loss_of(model, 0).backward()
            process = context.Process(target=trained_elsewhere, args=(model, losses))
            process.start()
            run.note("elsewhere", losses.get(timeout=120))
            process.join()
        run.note("status", process.exitcode)
        run.note_model(model)


class Rows(torch.utils.data.Dataset):
    def __init__(self, model):
        self.model = model

    def __len__(self):
        return 6

    def __getitem__(self, i):
        with torch.no_grad():
            return self.model(X[i]) + torch.rand(2)


@way(slow=True)
def loaders_whose_workers_are_started_anew(run):
    model = model_of()
    with run.dump(model):
        loader = torch.utils.data.DataLoader(Rows(model), batch_size=3, num_workers=1,
                                             multiprocessing_context="spawn")
        for batch in loader:
            run.note("batch", batch)
            loss_of(model, 0).backward()
    run.note_model(model)
