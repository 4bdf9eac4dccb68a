# SPDX-License-Identifier: MIT
"""Whole steps as programs write them: compiled with their clipping, with functions that the program registers, over
distributed tensors, with closures, averages and schedules, in loops of other libraries."""
import asyncio
import contextlib
import contextvars
import copy
import functools
import gc
import io
import itertools
import math
import os
import sys
import threading
import warnings
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import run_ranks, way
from small_model import X, Block, loss_of, model_of

_clip = torch.nn.utils.clip_grad_norm_


@way(needs=(2, 1), slow=True)
def a_whole_step_is_compiled_with_its_clipping(run):
    model = model_of()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    @torch.compile(backend="eager")
    def clipped(bound):
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), bound)
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.1)
        return norm

    @torch.compile(backend="eager")
    def step(bound):
        loss = loss_of(model, 0)
        loss.backward()
        norm = clipped(bound)
        opt.step()
        opt.zero_grad()
        return loss.detach(), norm
    for i in range(3):
        with run.dump(model):
            run.note(f"step {i}", step(1.0))
            run.note("clipped outside", torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
    run.note("without", step(0.5))
    run.note_model(model)


class _Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def mixed(self, x, scale=3, *, bias=0.5):
        return x * scale + bias

    def forward(self, x, power=2):
        return self.mixed(sharpened(self.fc(x))).pow(power).mean()


def sharpened(x, by=2):
    return x.relu() * by


@way(needs=(2, 1), slow=True)
def functions_that_a_program_registers_are_compiled(run):
    here = sys.modules[__name__]
    model = _Mixer()
    run.debugger.register_custom_api(here, "sharpened")
    run.debugger.register_custom_api(_Mixer, "mixed")
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    run.train(model, lambda m, i: compiled(X))
    run.train(model, lambda m, i: m(X))
    threads = [threading.Thread(target=lambda: run.note("in a thread", compiled(X))) for _ in range(2)]
    with run.dump(model):
        for thread in threads:
            thread.start()
            thread.join()
    run.note("types", (sharpened.__class__.__name__, _Mixer.mixed(model, X)))


@way(needs=(2, 1), slow=True)
def compiled_code_that_calls_back_into_eager_code(run):
    model, seen = model_of(), []

    @torch.compiler.disable if hasattr(torch, "compiler") else torch._dynamo.disable
    def aside(x):
        seen.append(_clip(list(model.parameters()), 1.0) if model[2].weight.grad is not None else x.sum())
        return F.relu(x)

    @torch.compile(backend="eager")
    def forward(x):
        y = model[0](x)
        y = aside(y) + 1
        for block in list(model)[1:]:
            y = block(y)
        return y.pow(2).mean()
    run.train(model, lambda m, i: forward(X))
    run.note("seen", seen)


@way
def a_step_with_a_closure_that_the_optimizer_calls_many_times(run):
    model, calls = model_of(), []
    opt = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=6, history_size=3, line_search_fn="strong_wolfe")
    with run.dump(model):
        def closure():
            opt.zero_grad()
            loss = loss_of(model, 0)
            loss.backward()
            calls.append(_clip(model.parameters(), 10.0))
            return loss
        run.note("loss", opt.step(closure))
        run.raises("closure", lambda: opt.step(lambda: 1 / 0))
    run.note("calls", calls)
    run.note_model(model)


@way(needs=(2, 0))
def averages_schedules_and_swapped_statistics_in_one_loop(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    average = torch.optim.swa_utils.AveragedModel(model, avg_fn=lambda a, p, n: a + (p - a) / (n + 1), use_buffers=True)
    opt = torch.optim.AdamW(model.parameters(), lr=0.05)
    first = torch.optim.lr_scheduler.LinearLR(opt, 0.5, total_iters=2)
    then = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 4)
    plan = torch.optim.lr_scheduler.SequentialLR(opt, [first, then], milestones=[2])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(4):
            with run.dump(model):
                opt.zero_grad(set_to_none=i % 2 == 0)
                loss = model(X).pow(2).mean()
                loss.backward()
                opt.step()
                plan.step()
                average.update_parameters(model)
            run.note(f"loss {i}", (loss, plan.get_last_lr()))
    with run.dump(average):
        torch.optim.swa_utils.update_bn([X, X * 2], average)
        run.note("averaged", average(X))
    run.note_model(average)


@way
def steps_that_start_within_steps(run):
    """start() and stop() called again and again, inside of modules and of hooks, in the wrong order."""
    model, seen = model_of(), []

    class Starts(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model_of()

        def forward(self, x):
            run.start(self)
            y = self.inner(x)
            run.stop()
            run.stop()
            run.start(self.inner)
            run.start()
            y = y + self.inner(x)
            y.register_hook(lambda g: run.stop())
            return y
    outer = Starts()
    for i in range(3):
        run.start(outer)
        loss = outer(X).pow(2).mean() + loss_of(model, i)
        run.step()
        loss.backward()
        run.start(model)
        seen.append(loss_of(model, i))
        run.step()
        run.stop()
    run.note("seen", seen)
    run.note_model(outer)
    run.note("hooks", [len(m._forward_hooks) for m in (*outer.modules(), *model.modules())])


@way
def modules_that_are_deleted_while_they_run(run):
    class Sheds(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (nn.Linear(4, 4) for _ in range(3))
            self.a.register_forward_hook(lambda m, args, out: self.drop("a"))
            self.b.register_forward_pre_hook(lambda m, args: self.drop("b"))

        def drop(self, name):
            if hasattr(self, name):
                delattr(self, name)
                gc.collect()

        def forward(self, x):
            for part in [p for p in (getattr(self, n, None) for n in "abc") if p is not None]:
                x = torch.tanh(part(x))
            self.c = nn.Linear(4, 4) if self.training else nn.Identity()
            return x.pow(2).mean()
    model = Sheds()
    for i in range(3):
        with run.dump(model):
            loss = model(X)
            if loss.requires_grad:
                loss.backward()
        run.note(f"loss {i}", loss)
    run.note_model(model)
    with run.dump(model):
        run.note("evaluated", model.eval()(X))
        model.add_module("d", Block())
        run.note("more", model.d(X))
        del model.d
    run.note("names", [name for name, _ in model.named_modules()])


@way
def another_module_takes_the_place_of_one_in_forward(run):
    class Changes(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(Block() for _ in range(3))
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            for i, layer in enumerate(self.layers):
                x = layer(x)
                if i == self.calls % 3:
                    self.layers[(i + 1) % 3] = copy.deepcopy(layer)
                    layer.__class__ = type("Renamed", (type(layer),), {})
            return x.pow(2).mean()
    run.train(Changes(), lambda m, i: m(X), steps=4)


@way
def gradients_of_gradients_of_gradients(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.Softplus(), nn.Linear(4, 1))

    def loss(m, i):
        x = X.clone().requires_grad_()
        y, seen = m(x).sum(), []
        for _ in range(3):
            y, = torch.autograd.grad(y, x, create_graph=True)
            seen.append(y)
            y = (y * y).sum()
        run.note("orders", seen)
        return y
    run.train(model, loss)


@way
def exceptions_in_hooks_of_gradients_are_tried_again(run):
    model, count, seen = model_of(), itertools.count(), []

    def fails(g):
        if next(count) % 2 == 0:
            raise ValueError("a gradient that nobody wants")
        return g * 0.5
    model[1].norm.weight.register_hook(fails)
    model[0].register_full_backward_hook(lambda m, gin, gout: seen.append([g is None for g in gin]))
    for i in range(3):
        with run.dump(model):
            loss = loss_of(model, i)
            run.raises("first", lambda: loss.backward(retain_graph=True))
            loss.backward()
        run.note(f"seen {i}", list(seen))
    run.note_model(model)


@way
def collectors_that_are_off_and_thresholds_of_one(run):
    model = model_of()
    gone = []
    was = gc.get_threshold()
    try:
        for threshold in (0, 1, 700):
            gc.set_threshold(threshold)
            with run.dump(model):
                loss = loss_of(model, 0)
                gone.append(weakref.ref(loss))
                loss.backward()
                del loss
            gone[-1] = gone[-1]() is None
    finally:
        gc.set_threshold(*was)
    run.note("gone", gone)
    run.note("flags", (gc.isenabled(), gc.get_threshold()))
    run.note_model(model)


@way
def lines_and_returns_of_a_tracer_in_a_step(run):
    """sys.settrace with events of each instruction, for functions of the program alone."""
    events = []

    class Traced(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 1)

        def forward(self, x):
            y = self.fc(x)
            y = torch.tanh(y)
            return y.mean()

    def trace(frame, event, arg):
        if frame.f_code.co_filename != __file__:
            return None
        frame.f_trace_opcodes = True
        events.append((event, frame.f_code.co_name, frame.f_lineno - frame.f_code.co_firstlineno))
        return trace

    def loss(model, step):
        sys.settrace(trace)
        try:
            return model(X)
        finally:
            sys.settrace(None)
    run.train(Traced(), loss)
    run.note("events", events)


@way
def children_forked_in_forward_that_train_and_end(run):
    model = model_of()

    class Forks(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            y = self.inner(x)
            r, w = os.pipe()
            pid = os.fork()
            if pid == 0:
                status = 1
                try:
                    self.inner.zero_grad()
                    self.inner(x).pow(2).mean().backward()
                    total = sum(p.grad.double().sum().item() for p in self.inner.parameters())
                    os.write(w, total.hex().encode())
                    status = 0
                finally:
                    os._exit(status)
            os.close(w)
            with os.fdopen(r) as f:
                run.note("child", f.read())
            run.note("status", os.waitpid(pid, 0)[1])
            return y
    run.train(Forks(model), lambda m, i: m(X).pow(2).mean())


@way
def tasks_that_train_models_in_turns(run):
    order = contextvars.ContextVar("order", default="nobody")
    models = [model_of() for _ in range(3)]
    seen = []

    async def one(i, lock):
        order.set(f"task {i}")
        for step in range(2):
            async with lock:
                with run.dump(models[i]):
                    y = models[i][0](X)
                    await asyncio.sleep(0)
                    loss = models[i][2](models[i][1](y)).pow(2).mean()
                    loss.backward()
                seen.append((order.get(), step, loss.item()))
            await asyncio.sleep(0)

    async def every():
        lock = asyncio.Lock()
        await asyncio.gather(*(one(i, lock) for i in range(3)))
    asyncio.run(every())
    run.note("seen", seen)
    for model in models:
        run.note_model(model)


@way(needs=(2, 0))
def a_default_device_without_memory_within_a_step(run):
    def loss(model, step):
        torch.set_default_device("meta")
        try:
            ghost = copy.deepcopy(model).to("meta")
            run.note("shape", ghost(torch.empty(3, 4)))
            made = torch.zeros(2)
            run.note("made", (made.is_meta, str(made.device)))
        finally:
            torch.set_default_device(None)
        return loss_of(model, step)
    run.train(model_of(), loss)


@way(needs=(2, 0))
def a_ghost_of_the_model_gets_its_memory_in_a_step(run):
    with torch.device("meta"):
        model = model_of()
    with run.dump(model):
        model.to_empty(device="cpu")
        torch.manual_seed(3)
        with torch.no_grad():
            for p in model.parameters():
                p.uniform_(-1, 1)
        loss_of(model, 0).backward()
    run.note_model(model)
    run.train(model, loss_of, steps=2)


@way
def exit_stacks_of_contexts_around_a_step(run):
    model = model_of()
    losses = []
    for i in range(2):
        with contextlib.ExitStack() as stack:
            stack.enter_context(torch.autograd.set_detect_anomaly(i == 1))
            stack.enter_context(torch.random.fork_rng())
            stack.enter_context(run.dump(model))
            stack.callback(lambda: losses.append(torch.rand(1)))
            stack.enter_context(torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t))
            stack.enter_context(torch.autograd.profiler.record_function("step"))
            loss = loss_of(model, i)
            loss.backward()
            losses.append(loss)
    run.note("losses", losses)
    run.note_model(model)


@way
def threads_of_python_are_counted_within_a_step(run):
    seen = []

    def count():
        return threading.active_count(), [t.name for t in threading.enumerate()], len(sys._current_frames())

    def loss(model, step):
        value = loss_of(model, step)
        seen.append(count())
        model[2].weight.register_hook(lambda g: seen.append(count()) or g)
        return value
    run.train(model_of(), loss)
    run.note("seen", seen)


@way(needs=(2, 1))
def a_forward_with_a_cache_of_results_by_content(run):
    """functools.lru_cache over tensors, hashes of bytes, and weak values that must go."""
    hits = weakref.WeakValueDictionary()

    class Caches(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.table = nn.Linear(4, 4), functools.lru_cache(maxsize=2)(self.compute)

        def compute(self, x):
            return torch.tanh(x)

        def forward(self, x):
            y = self.table(x) + self.fc(x)
            hits[hash(x.detach().numpy().tobytes()) % 997] = y
            return y.pow(2).mean()
    model = Caches()
    run.train(model, lambda m, i: m(X * (i % 2 + 1)), steps=4)
    run.note("cache", tuple(model.table.cache_info()))
    run.note("left", len(hits))


@way(needs=(2, 4), slow=True)
def a_model_sharded_by_two_dimensions_with_hooks_of_the_program(run):
    def rank_main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor import distribute_tensor, Replicate, Shard
        mesh = init_device_mesh("cpu", (world,))
        torch.manual_seed(0)
        model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3)))
        seen = []
        for layer in model:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        for p in model.parameters():
            p.register_post_accumulate_grad_hook(lambda p: seen.append(type(p.grad).__name__))
        opt = torch.optim.Adam(model.parameters(), lr=0.01)
        for i in range(2):
            with run.dump(model):
                model.set_requires_gradient_sync(i == 1)
                loss = model(torch.ones(2, 8) * (rank + 1)).pow(2).mean()
                loss.backward()
                run.note("norm", torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor() if i else 0)
                opt.step()
            run.note(f"loss {i}", loss)
        run.note("seen", seen)
        d = distribute_tensor(torch.arange(16.0).view(4, 4), mesh, [Shard(0)])
        with run.dump(model):
            run.note("distributed", (d @ d.redistribute(placements=[Replicate()]).t()).sum().full_tensor())
        run.note("whole", [p.full_tensor() for p in model.parameters()])
    run_ranks(run, 2, rank_main)


@way(needs=(2, 0))
def text_that_is_sampled_by_a_model_between_its_steps(run):
    class Tiny(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb, self.pos = nn.Embedding(11, 8), nn.Parameter(torch.randn(16, 8) * 0.1)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.body, self.head = nn.TransformerEncoder(layer, 2), nn.Linear(8, 11, bias=False)
            self.head.weight = self.emb.weight

        def forward(self, ids):
            n = ids.shape[1]
            mask = nn.Transformer.generate_square_subsequent_mask(n)
            return self.head(self.body(self.emb(ids) + self.pos[:n], mask=mask, is_causal=True))

        @torch.no_grad()
        def sample(self, ids, count):
            for _ in range(count):
                logits = self(ids)[:, -1] / math.sqrt(2)
                ids = torch.cat([ids, torch.multinomial(logits.softmax(-1), 1)], 1)
            return ids
    model = Tiny()
    ids = torch.randint(0, 11, (3, 8))

    def loss(m, i):
        value = F.cross_entropy(m(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        m.eval()
        run.note(f"sampled {i}", m.sample(ids[:, :2], 6))
        run.note(f"logits {i}", m(ids))
        m.train()
        data = io.BytesIO()
        torch.save(m.state_dict(), data)
        return value
    run.train(model, loss)
