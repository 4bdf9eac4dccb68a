# SPDX-License-Identifier: MIT
"""Threads, processes, loaders of data, exceptions, signals, time and memory."""
import gc
import os
import signal
import threading

import torch
from torch import nn
from torch.nn import functional as F

from harness import way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    return nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1))


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        return F.relu(X[i]) + 0.1, torch.tensor(float(i))


@way
def loaders_with_worker_processes(run):
    loader = torch.utils.data.DataLoader(Rows(), 2, shuffle=True, num_workers=2, generator=torch.Generator().manual_seed(1))
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in loader:
        with run.dump(model):
            opt.zero_grad()
            loss = F.mse_loss(model(x)[:, 0], y)
            loss.backward()
            opt.step()
        run.note("batch", (x, y, loss))
    run.note_model(model)


@way
def loaders_opened_within_a_step(run):
    model = model_of()
    run.start(model)
    for x, y in torch.utils.data.DataLoader(Rows(), 3, num_workers=1, persistent_workers=True):
        model(x).sum().backward()
    run.stop()
    run.step()
    run.note_model(model)


@way
def loaders_that_raise_in_a_worker(run):
    class Fails(Rows):
        def __getitem__(self, i):
            if i == 3:
                raise ValueError("in a worker")
            return super().__getitem__(i)

    model = model_of()
    run.start(model)
    try:
        for x, _ in torch.utils.data.DataLoader(Fails(), 2, num_workers=1):
            model(x).sum().backward()
    except ValueError as error:
        run.note("raised", str(error).splitlines()[0])
    run.stop()
    run.step()
    run.note_model(model)


@way
def two_threads_in_forward_and_backward(run):
    models = [model_of() for _ in range(2)]
    gate = threading.Barrier(2)

    def work(k):
        for _ in range(5):
            gate.wait()
            models[k](X * (k + 1)).pow(2).sum().backward()
    run.start(models)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    run.stop()
    run.step()
    for k, model in enumerate(models):
        run.note_model(model, f"{k} ")


@way
def one_model_in_two_threads_by_turns(run):
    model, results = model_of(), []

    def work():
        loss = model(X).sum()
        loss.backward()
        results.append(loss)
    for _ in range(2):
        with run.dump(model):
            t = threading.Thread(target=work)
            t.start()
            t.join()
            work()
    run.note("losses", results)
    run.note_model(model)


@way
def start_and_stop_in_another_thread(run):
    model = model_of()
    for _ in range(2):
        t = threading.Thread(target=lambda: run.start(model))
        t.start()
        t.join()
        model(X).sum().backward()
        t = threading.Thread(target=lambda: (run.stop(), run.step()))
        t.start()
        t.join()
    run.note_model(model)


@way
def a_thread_that_dies_in_forward(run):
    class Dies(nn.Module):
        def forward(self, x):
            raise SystemExit

    model = nn.Sequential(nn.Linear(4, 4), Dies())
    with run.dump(model):
        t = threading.Thread(target=lambda: model(X))
        t.start()
        t.join()
        model[0](X).sum().backward()
    run.note_model(model)


@way
def a_thread_that_prepares_batches(run):
    import queue
    batches, model = queue.Queue(2), model_of()

    def prepare():
        for i in range(4):
            batches.put(F.normalize(X * (i + 1) + 0.1))
    run.start(model)
    t = threading.Thread(target=prepare)
    t.start()
    for _ in range(4):
        model(batches.get()).sum().backward()
    t.join()
    run.stop()
    run.step()
    run.note_model(model)


@way
def forked_in_the_middle_of_a_step(run):
    model = model_of()
    run.start(model)
    loss = model(X).sum()
    pid = os.fork()
    if pid == 0:
        model(X).sum()
        os._exit(int(torch.isfinite(model(X)).all()) + 6)
    run.note("status", os.waitpid(pid, 0)[1])
    loss.backward()
    run.stop()
    run.step()
    run.note_model(model)


@way
def another_program_in_the_middle_of_a_step(run):
    import subprocess
    model = model_of()
    with run.dump(model):
        loss = model(X).sum()
        run.note("said", subprocess.run(["sh", "-c", "echo hello; exit 3"], capture_output=True, check=False).stdout)
        loss.backward()
    run.note_model(model)


@way
def a_signal_in_the_middle_of_a_step(run):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    model = Calls(lambda self, x: (os.kill(os.getpid(), signal.SIGUSR1), self.fc(x).sum())[1], fc=nn.Linear(4, 4))
    run.train(model, lambda m, i: m(X))
    signal.signal(signal.SIGUSR1, before)
    run.note("seen", len(seen))


@way
def a_handler_that_raises_in_the_middle_of_a_step(run):
    class Interrupted(Exception):
        pass

    def handler(*_):
        raise Interrupted("now")

    before = signal.signal(signal.SIGUSR1, handler)
    model = Calls(lambda self, x: (os.kill(os.getpid(), signal.SIGUSR1), self.fc(x).sum())[1], fc=nn.Linear(4, 4))
    with run.dump(model):
        run.raises("raised", lambda: model(X))
    signal.signal(signal.SIGUSR1, before)
    run.train(model.fc, lambda m, i: m(X).sum())


@way
def handlers_of_signals_are_left_alone(run):
    model = model_of()
    with run.dump(model):
        model(X).sum().backward()
    run.note("handlers", [str(signal.getsignal(s)).split(" at ")[0] for s in
                          (signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGUSR1, signal.SIGPIPE, signal.SIGCHLD)])
    run.note("mask", sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))


@way
def keyboard_interrupts(run):
    class Stops(nn.Module):
        def forward(self, x):
            raise KeyboardInterrupt

    model = nn.Sequential(nn.Linear(4, 4), Stops())
    run.start(model)
    try:
        model(X)
    except KeyboardInterrupt as error:
        run.note("raised", (type(error).__name__, error.__context__ is None))
    run.stop()
    run.step()
    run.train(model[0], lambda m, i: m(X).sum())


@way
def exceptions_with_their_causes_and_frames(run):
    import traceback

    class Fails(nn.Module):
        def forward(self, x):
            try:
                return x @ x
            except RuntimeError as why:
                raise ValueError("own") from why

    model = nn.Sequential(nn.Linear(4, 4), Fails())
    with run.dump(model):
        try:
            model(X)
        except ValueError as error:
            run.note("chain", (str(error.__cause__)[:40], type(error.__context__).__name__))
            run.note("frames", [f.name for f in traceback.extract_tb(error.__traceback__)
                                if "harm" in f.filename and "harness" not in f.filename])
            run.note("last", traceback.extract_tb(error.__cause__.__traceback__)[-1].name)


@way
def errors_of_functions_are_worded_alike(run):
    model = nn.Sequential(nn.Linear(4, 4))
    with run.dump(model):
        model(X)
        run.raises("matmul", lambda: torch.matmul(X, X))
        run.raises("relu", lambda: torch.relu("text"))
        run.raises("linear", lambda: F.linear(X))
        run.raises("unknown", lambda: F.relu(X, inplaces=True))
        run.raises("too many", lambda: torch.Tensor.add(X))
        run.raises("item", lambda: X.view(5, 5))
        run.raises("bool", lambda: bool(X > 0))
        run.raises("attribute", lambda: X.no_such_thing)
        run.raises("model", lambda: model())
        run.raises("cross", lambda: F.cross_entropy(X, torch.tensor([9] * 6)))


@way
def deep_recursion_ends_where_it_would(run):
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, left=40):
            return self(self.fc(x), left - 1) if left else x

    model = nn.Sequential(Deep())
    with run.dump(model):
        y = model(X)
        y.sum().backward()
        try:
            model[0](X, 10 ** 6)
            run.note("raised", "nothing")
        except RecursionError:
            run.note("raised", "RecursionError")
    run.note("y", y)


@way
def generators_suspended_in_forward(run):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
            yield x

    model = Calls(lambda self, x: sum(y.sum() for y in self.inner(x)),
                  inner=Calls(forward, layers=nn.ModuleList(nn.Linear(4, 4) for _ in range(3))))
    run.train(model, lambda m, i: m(X))
    with run.dump(model):
        half = model.inner(X)
        next(half)
    del half
    run.note("collected", gc.collect() >= 0)


@way
def coroutines_that_take_turns(run):
    import asyncio
    model = nn.ModuleList(nn.Linear(4, 4) for _ in range(2))

    async def part(k):
        x = X
        for _ in range(3):
            x = model[k](x)
            await asyncio.sleep(0)
        return x.sum()

    async def both():
        return await asyncio.gather(part(0), part(1))
    for _ in range(2):
        with run.dump(model):
            a, b = asyncio.run(both())
            (a * 2 + b).backward()
    run.note_model(model)


@way
def the_collector_of_garbage_is_left_alone(run):
    model = model_of()
    gc.disable()
    thresholds = gc.get_threshold()
    gc.collect()
    with run.dump(model):
        model(X).sum().backward()
    run.note("state", (gc.isenabled(), gc.get_threshold() == thresholds, gc.get_debug()))
    gc.enable()


@way
def limits_hooks_and_tracing_of_python_are_left_alone(run):
    import sys
    model = model_of()
    with run.dump(model):
        model(X).sum().backward()
    run.note("state", (sys.getrecursionlimit(), sys.gettrace(), sys.getprofile(), sys.excepthook is sys.__excepthook__,
                       sys.getswitchinterval(), sys.displayhook is sys.__displayhook__, sys.stdout is sys.__stdout__,
                       threading.active_count()))
    run.note("torch", (torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype(), torch.is_grad_enabled()))


@way
def profilers_and_tracers_of_python(run):
    import sys
    names = []

    def profile(frame, event, arg):
        if event == "call" and "ways_" in frame.f_code.co_filename:
            names.append(frame.f_code.co_name)
    model = Calls(lambda self, x: self.fc(x).sum(), fc=nn.Linear(4, 4))
    sys.setprofile(profile)
    try:
        with run.dump(model):
            model(X).backward()
    finally:
        sys.setprofile(None)
    run.note("calls", names)


@way
def environment_and_folder_are_left_alone(run):
    model = model_of()
    with run.dump(model):
        before = dict(os.environ), os.getcwd(), os.umask(0o22)
        os.umask(before[2])
        model(X).sum().backward()
    run.note("same", (dict(os.environ) == before[0], os.getcwd() == before[1], before[2]))


@way
def the_folder_changes_in_the_middle(run):
    model = model_of()
    os.mkdir("other")
    for i in range(2):
        with run.dump(model):
            model(X).sum().backward()
            os.chdir("other" if not i else "..")
    run.note("files", sorted(os.listdir("other")))
    run.note_model(model)


@way
def memory_is_flat_over_three_hundred_steps(run):
    def count():
        gc.collect()
        return sum(1 for o in gc.get_objects() if isinstance(o, torch.Tensor)), len(gc.get_objects())

    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    model = nn.Sequential(nn.Linear(4, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    opt = torch.optim.Adam(model.parameters())
    counts = {}
    for i in range(300):
        with run.dump(model):
            opt.zero_grad()
            model(X).sum().backward()
            opt.step()
        if i in (99, 299):
            counts[i] = *count(), resident()
    tensors, objects, size = (b - a for a, b in zip(counts[99], counts[299]))
    run.note("tensors", tensors)
    run.note("objects grow", objects > 100)
    run.note("memory grows", size > 8 << 20)
    run.note_model(model)


@way
def early_stopping_by_an_exception_through_the_context(run):
    class Stop(Exception):
        pass

    model = model_of()

    def loop():
        for i in range(5):
            with run.dump(model):
                model(X).sum().backward()
                if i == 2:
                    raise Stop("early")
    run.raises("stopped", loop)
    run.train(model, lambda m, i: m(X).sum())


@way
def training_and_evaluation_by_turns(run):
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    for _ in range(3):
        model.train()
        run.train(model, lambda m, i: m(X).sum(), steps=1)
        model.eval()
        with torch.no_grad():
            run.note("evaluated", model(X))
        with run.dump(model), torch.inference_mode():
            run.note("dumped", model(X))
