# SPDX-License-Identifier: MIT
"""Idioms of trainers and of those who watch their gradients."""
import collections
import contextlib
import dataclasses
import functools
import inspect
import io
import sys
import threading
import time
import typing

import torch
from torch import nn
from torch.nn import functional as F

from harness import way
from small_model import Block, loss_of, model_of, X


# ---- gradients -------------------------------------------------------------------------------------


@way
def gradients_are_taken_over_and_not_copied(run):
    """A gradient that nobody else holds becomes that of its parameter, with its memory."""
    seen = []

    class Gives(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return x @ w

        @staticmethod
        def backward(ctx, g):
            x, w = ctx.saved_tensors
            made = x.t() @ g
            seen.append(made.data_ptr())
            return g @ w.t(), made

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.eye(4) + 0.1)

        def forward(self, x):
            return Gives.apply(x, self.w)
    model = nn.Sequential(Layer(), nn.Tanh(), Layer())
    for i in range(3):
        model.zero_grad()
        seen.clear()
        with run.dump(model):
            loss = loss_of(model, i)
            loss.backward()
        run.note(f"taken {i}", [p.grad.data_ptr() in seen for p in model.parameters()])
        run.note(f"counts {i}", [sys.getrefcount(p.grad) for p in model.parameters()])
    x = X.clone().requires_grad_(True)
    with run.dump(model):
        first = torch.autograd.grad(model[2](model[1](x)).sum(), x, create_graph=True)
        run.note("second", torch.autograd.grad(first[0].sum(), (x, model[2].w), allow_unused=True))


@way(needs=(2, 0))
def clipping_in_all_its_variants(run):
    model = model_of()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)

    def adaptive(parameters, factor=0.02, eps=1e-3):
        for p in parameters:
            norm = (lambda t: t.norm(dim=tuple(range(1, t.ndim)), keepdim=True) if t.ndim > 1 else t.norm())
            most = norm(p.detach()).clamp_(min=eps).mul_(factor)
            g = norm(p.grad.detach())
            p.grad.detach().copy_(torch.where(g < most, p.grad, p.grad * (most / g.clamp(min=1e-6))))

    def by_lists(parameters):
        grads = [p.grad for p in parameters]
        total = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads, 2.0)))
        torch._foreach_mul_(grads, (0.5 / (total + 1e-6)).clamp(max=1.0))
        return total

    def centralised(parameters):
        for p in parameters:
            if p.grad.ndim > 1:
                p.grad.add_(-p.grad.mean(dim=tuple(range(1, p.grad.ndim)), keepdim=True))

    def noisy(parameters):
        for p in parameters:
            p.grad += torch.randn_like(p.grad) * 1e-3
    ways = [adaptive, by_lists, centralised, noisy, lambda ps: nn.utils.clip_grad_value_(ps, 0.01),
            lambda ps: nn.utils.clip_grad_norm_(ps, 0.1, float("inf")),
            lambda ps: nn.utils.clip_grad_norm_(ps, 0.1, error_if_nonfinite=True)]
    if hasattr(nn.utils, "get_total_norm"):
        ways.append(lambda ps: nn.utils.clip_grads_with_norm_(ps, 0.1, nn.utils.get_total_norm([p.grad for p in ps])))
    for i, clip in enumerate(ways):
        opt.zero_grad(set_to_none=bool(i % 2))
        with run.dump(model):
            loss = loss_of(model, i)
            loss.backward()
            run.note(f"clipped {i}", clip(list(model.parameters())))
            opt.step()
        run.note(f"loss {i}", loss)
    run.note_model(model)


@way
def embeddings_with_noise_that_want_gradients(run):
    """As trainers of adapters do: the embedding is frozen, its output is made a leaf that wants a gradient."""
    from torch.utils.checkpoint import checkpoint

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.blocks, self.head = nn.Embedding(9, 4), nn.ModuleList([Block(), Block()]), nn.Linear(4, 9)

        def forward(self, ids):
            h = self.table(ids)
            for block in self.blocks:
                h = checkpoint(block, h, use_reentrant=True)
            return self.head(h)

    def noise(module, _args, output):
        if module.training:
            return output + torch.zeros_like(output).uniform_(-0.1, 0.1)
        return None
    model, ids = Net(), torch.tensor([[1, 2, 8], [0, 4, 2]])
    model.head.weight = model.table.weight
    model.table.requires_grad_(False)
    model.head.requires_grad_(False)
    handles = [model.table.register_forward_hook(noise),
               model.table.register_forward_hook(lambda m, a, o: o.requires_grad_(True))]
    run.train(model, lambda model, step: F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()))
    for handle in handles:
        handle.remove()
    run.train(model.eval(), lambda model, step: F.cross_entropy(model(ids).flatten(0, 1), ids.flatten()) + model.blocks[0](X).sum())


@way
def saved_tensors_are_packed_by_modules_of_the_model(run):
    class Packs(nn.Module):
        def __init__(self):
            super().__init__()
            self.down, self.body = nn.Linear(4, 4, bias=False), model_of()
            nn.init.eye_(self.down.weight)

        def pack(self, t):
            if t.shape[-1:] != (4,) or t.dim() != 2 or t.shape[0] != 6:
                return t
            with torch.no_grad():
                return self.down(t), "down"

        def unpack(self, kept):
            if isinstance(kept, torch.Tensor):
                return kept
            with torch.no_grad():
                return F.linear(kept[0], self.down.weight.t())

        def forward(self, x):
            with torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack):
                return self.body(x)
    run.train(Packs(), lambda model, step: model(X).pow(2).sum() + model.down(X).sum())


@way(needs=(2, 0))
def derivatives_of_products_of_derivatives(run):
    from torch import func
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    v = torch.ones(4)
    f = lambda x: model(x).sum()  # noqa: E731
    for i in range(2):
        with run.dump(model):
            x = X[i]
            run.note(f"forward over reverse {i}", func.jvp(func.grad(f), (x,), (v,)))
            run.note(f"reverse over forward {i}", func.grad(lambda x: func.jvp(f, (x,), (v,))[1])(x))
            run.note(f"reverse over reverse {i}", func.vmap(func.grad(lambda x: (func.grad(f)(x) * v).sum()))(X))
            run.note(f"rows {i}", func.vmap(func.hessian(f), chunk_size=2)(X))
            if hasattr(func, "linearize"):
                y, push = func.linearize(f, x)
                run.note(f"linear {i}", (y, push(v), push(v * 2)))
    run.train(model, loss_of)


# ---- idioms of trainers -------------------------------------------------------------------------------


@way
def steps_of_optimizers_patched_to_see_whether_they_ran(run):
    """As launchers do: the step of one optimizer is a method that notes its call; a scaler may skip it."""
    model, seen = model_of(), []
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda n: 1 / (n + 1))
    own = opt.step

    @functools.wraps(own.__func__ if hasattr(own, "__func__") else own)
    def patched(*args, **kwargs):
        seen.append("step")
        return own(*args, **kwargs)

    class Accumulates:
        def __init__(self):
            self.count = 0

        @contextlib.contextmanager
        def __call__(self, model):
            self.count += 1
            yield self.count % 2 == 0
    accumulate = Accumulates()
    for i in range(4):
        with run.dump(model), accumulate(model) as is_last:
            loss = loss_of(model, i) / 2
            loss.backward()
            if is_last:
                opt.step = patched
                opt.step()
                opt.step = own
                schedule.step()
                opt.zero_grad()
        run.note(f"loss {i}", (loss, schedule.get_last_lr()))
    run.note("seen", seen)
    run.note("arguments", [str(inspect.signature(f)) for f in (opt.step, model.forward, F.relu, nn.Linear.forward)])
    run.note("optimizer", opt.state_dict())
    run.note_model(model)


@way
def metrics_that_are_modules_and_hash_their_states(run):
    class Metric(nn.Module):
        def __init__(self):
            super().__init__()
            self.total, self.count, self.fc = torch.zeros(()), torch.zeros(()), nn.Linear(2, 2)
            self.update = self._wrapped(self.update)

        def _wrapped(self, update):
            @functools.wraps(update)
            def call(*args, **kwargs):
                with torch.set_grad_enabled(False):
                    return update(*args, **kwargs)
            return call

        def __hash__(self):
            return hash((type(self).__name__, id(self.total), id(self.count)))

        def update(self, p):
            self.total, self.count = self.total + p.sum(), self.count + p.numel()

        def forward(self, p):
            self.update(self.fc(p))
            kept = self.total, self.count
            self.total, self.count = torch.zeros(()), torch.zeros(())
            self.update(p)
            value = self.total / self.count
            self.total, self.count = kept
            return value

        def __iter__(self):
            raise NotImplementedError("metrics are not iterable")
    model, metric = model_of(), Metric()
    both, seen = nn.ModuleList([model, metric]), []

    def loss(both, step):
        y = both[0](X)
        seen.append((both[1](y), both[1].total, both[1].count))
        return y.pow(2).mean() + both[1].fc(y).sum()
    run.train(both, loss)
    run.note("seen", seen)


@way
def graph_networks_that_inspect_their_messages(run):
    class Passing(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.wanted = {name: list(inspect.signature(getattr(self, name)).parameters) for name in ("message", "update")}
            self.hints = {k: str(v) for k, v in typing.get_type_hints(self.message).items()}
            self.hooks = collections.OrderedDict()

        def message(self, x_j: torch.Tensor, norm: typing.Optional[torch.Tensor] = None) -> torch.Tensor:
            return F.relu(self.fc(x_j)) if norm is None else norm.view(-1, 1) * self.fc(x_j)

        def update(self, out: torch.Tensor) -> torch.Tensor:
            return out.tanh()

        def propagate(self, edges, **known):
            known["x_j"] = known["x"].index_select(0, edges[0])
            for hook in self.hooks.values():
                known = hook(self, known) or known
            sent = self.message(**{k: known[k] for k in self.wanted["message"] if k in known})
            out = torch.zeros_like(known["x"]).scatter_add_(0, edges[1].view(-1, 1).expand_as(sent), sent)
            return self.update(out)

        def forward(self, x, edges):
            degree = torch.bincount(edges[1], minlength=x.shape[0]).clamp(min=1).to(x.dtype)
            return self.propagate(edges, x=x, norm=degree.rsqrt()[edges[1]])
    model, edges = nn.ModuleList([Passing(), Passing()]), torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 1]])
    model[1].hooks[0] = lambda module, known: {k: v for k, v in known.items() if k != "norm"}
    run.train(model, lambda model, step: model[1](model[0](X, edges), edges).pow(2).mean())
    run.note("hints", model[0].hints)


@way
def modules_that_are_dataclasses_with_slots_and_generics(run):
    T = typing.TypeVar("T")

    @dataclasses.dataclass(eq=False)
    class Net(nn.Module):
        width: int
        scale: float = 0.5
        layers: nn.ModuleList = dataclasses.field(init=False)

        def __post_init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(self.width, self.width) for _ in range(2)])

        def __new__(cls, *_args, **_kwargs):
            made = super().__new__(cls)
            nn.Module.__init__(made)
            return made

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).tanh() * self.scale
            return x

    class Holds(nn.Module, typing.Generic[T]):
        __slots__ = ("kept",)

        def __init__(self, inner: T):
            super().__init__()
            self.inner = inner
            self.kept = 0

        def __class_getitem__(cls, item):
            return super().__class_getitem__(item)

        def __call__(self, *args: typing.Any) -> typing.Any:
            self.kept += 1
            return super().__call__(*args)

        def forward(self, x):
            return self.inner(x) + 1
    model = Holds[Net](Net(4))
    run.train(model, loss_of)
    run.note("fields", (model.kept, repr(model), [f.name for f in dataclasses.fields(model.inner)], model.inner.width))


@way
def groups_of_exceptions_and_notes_on_them(run):
    model = model_of()

    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            y = self.inner(x)
            if y.shape[0] != 6:
                why = ExceptionGroup("some", [ValueError("one"), KeyError("two")])
                why.add_note("of the program")
                raise why
            return y

    def taken(x):
        try:
            Fails.forward(whole, x)
            whole(x)
        except* ValueError as group:
            seen.append(("values", [str(e) for e in group.exceptions], group.__notes__))
        except* KeyError as group:
            seen.append(("keys", [str(e) for e in group.exceptions], group.__notes__))
    whole, seen = Fails(), []
    for i in range(3):
        with run.dump(whole):
            taken(X[:2])
            loss = whole(X).sum()
            loss.backward()
        run.note(f"loss {i}", loss)
    run.note("seen", seen)
    run.note_model(whole)


@way(needs=(2, 4))
def operators_are_checked_by_the_library_itself(run):
    @torch.library.custom_op("harm_tools::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        return x * by

    @scaled.register_fake
    def _(x, by):
        return torch.empty_like(x)
    scaled.register_autograd(lambda ctx, g: (g * ctx.by, None),
                             setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))

    class Uses(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            return scaled(self.fc(x), 0.5)
    model, x = nn.Sequential(Uses(), Block()), X.clone().requires_grad_(True)
    for i in range(2):
        with run.dump(model):
            run.note(f"checked {i}", torch.library.opcheck(scaled, (x, 2.0)))
            run.note(f"gradient {i}", torch.autograd.gradcheck(lambda x: scaled(x, 3.0), (x.detach().double().requires_grad_(True),)))
    run.train(model, loss_of)


@way
def programs_that_take_time_apart(run):
    """Clocks that stand still, as tests of schedules have them, and a timer that calls between functions."""
    model, kept = model_of(), (time.time, time.monotonic, time.perf_counter, time.sleep)
    rang = threading.Event()
    timer = threading.Timer(0.01, lambda: (model[0].norm(X), rang.set()))

    def loss(model, step):
        time.time = time.monotonic = time.perf_counter = lambda: 1.0
        time.sleep = lambda _seconds: None
        try:
            value = loss_of(model, step)
            value.backward(retain_graph=True)
        finally:
            time.time, time.monotonic, time.perf_counter, time.sleep = kept
        return value
    timer.start()
    run.train(model, loss)
    rang.wait(30)
    run.note("rang", rang.is_set())


@way
def texts_of_models_and_tensors_made_in_a_step(run):
    """Summaries, reprs and prints of what is watched, with a printer of tensors that the program has replaced."""
    model, own = model_of(), torch.Tensor.__repr__
    seen = []

    def short(self, *, tensor_contents=None):
        return f"tensor{list(self.shape)} {self.float().mean().item():.3f}"

    def loss(model, step):
        value = loss_of(model, step)
        torch.Tensor.__repr__ = short
        try:
            out = io.StringIO()
            print(model, model[0].fc.weight, value, [X], {"x": X}, file=out)
            seen.append(out.getvalue())
            seen.append(f"{value} {value:.4f} {model[0].fc.weight!r}")
        finally:
            torch.Tensor.__repr__ = own
        seen.append((str(value), repr(model), len(vars(model[0])), sorted(vars(model[0]))))
        return value
    run.train(model, loss)
    run.note("seen", seen)
