# SPDX-License-Identifier: MIT
"""Corners of PyTorch that programs reach: compilers that count and give up, batch statistics under transforms, hooks of
optimizers that exchange what they get, models that contain themselves or change while they run, modules of old pickles,
distributed tensors with random numbers, attention in a ring, distributions, tensors that carry state along."""
import collections
import copy
import functools
import io
import logging
import os
import pickle
import tempfile
import threading

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

from harness import VERSION, run_ranks, way
from small_model import loss_of, model_of, X

# ---- compilers ---------------------------------------------------------------------------------------


def note_counters(run):
    """How often the compiler compiled, and broke its graph, and why."""
    counters = torch._dynamo.utils.counters
    run.note("counters", {name: sorted(counters[name].items()) for name in ("stats", "graph_break", "unimplemented",
                                                                          "recompile_reasons", "frames")})


@way(needs=(2, 1))
def the_compiler_counts_what_it_compiles(run):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = model_of()
    whole = torch.compile(model, backend="eager")
    run.train(model, lambda m, i: whole(X[:2 + i]).pow(2).mean(), steps=4)

    @torch.compile(backend="eager")
    def breaks(x):
        y = model(x)
        torch._dynamo.graph_break()
        return y.sum() + (1 if y.sum().item() > 0 else 2)
    run.train(model, lambda m, i: breaks(X))
    with run.dump(model):
        breaks(X).backward()
    note_counters(run)


@way(needs=(2, 1))
def the_compiler_gives_up_after_many_times(run):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    model = model_of()

    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.calls = nn.Linear(4, 4), 0

        def forward(self, x):
            self.calls += 1
            return self.fc(x) * self.calls
    counts = Counts()
    compiled = torch.compile(counts, backend="eager", dynamic=False)
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    limit = "recompile_limit" if hasattr(torch._dynamo.config, "recompile_limit") else "cache_size_limit"
    with torch._dynamo.config.patch({limit: 3}):
        run.train(counts, lambda m, i: model(compiled(X)).mean(), steps=7)
    note_counters(run)
    run.note("calls", counts.calls)


@way(needs=(2, 1))
def compiled_in_one_thread_and_watched_in_another(run):
    torch._dynamo.reset()
    model, other, losses = model_of(), copy.deepcopy(model_of()), []
    compiled = torch.compile(other, backend="aot_eager")

    def work():
        for i in range(3):
            loss = compiled(X[:3 + i]).pow(2).mean()
            loss.backward()
            losses.append(loss)
    thread = threading.Thread(target=work)
    with run.dump(model):
        thread.start()
        thread.join()
        loss_of(model, 0).backward()
    run.train(model, loss_of, steps=2)
    run.note("losses", losses)
    run.note_model(other, "other ")


@way(needs=(2, 6))
def compiled_functions_of_all_marks(run):
    torch._dynamo.reset()
    model = model_of()

    @torch.compiler.disable
    def eager(x):
        return x.cos()

    @torch.compiler.assume_constant_result
    def constant():
        return 3

    def allowed(x):
        return x.sin() if x.is_contiguous() else x
    torch.compiler.allow_in_graph(allowed)

    @torch.compile(backend="aot_eager")
    def step(x):
        return (allowed(eager(model(x))) * constant()).pow(2).mean()
    run.train(model, lambda m, i: step(X))
    regions = getattr(torch.compiler, "nested_compile_region", None)
    if regions:
        @regions
        def block(x):
            return model[0](x)
        nested = torch.compile(lambda x: model[2](block(block(x))).pow(2).mean(), backend="aot_eager", fullgraph=True)
        run.train(model, lambda m, i: nested(X))


@way(needs=(2, 1), slow=True)
def compiled_with_each_mode_of_the_compiler(run):
    for mode in ("default", "reduce-overhead", "max-autotune-no-cudagraphs"):
        torch._dynamo.reset()
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2))
        compiled = torch.compile(model, mode=mode)
        run.train(model, lambda m, i: compiled(X).pow(2).mean())


@way(needs=(2, 1))
def a_failing_backend_is_left_for_eager_code(run):
    torch._dynamo.reset()
    model = model_of()

    def backend(_graph, _inputs):
        raise RuntimeError("this backend compiles nothing")
    compiled = torch.compile(model, backend=backend)
    logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
    with torch._dynamo.config.patch(suppress_errors=True):
        run.train(model, lambda m, i: compiled(X).pow(2).mean())
    torch._dynamo.reset()
    with run.dump(model):
        run.raises("not suppressed", lambda: torch.compile(model, backend=backend)(X))


# ---- transforms -----------------------------------------------------------------------------------------


class Counted(nn.Module):
    """Batch statistics, and a buffer that forward replaces."""

    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        self.calls = self.calls + 1
        return self.norm(self.fc(x)) * self.calls


@way(needs=(2, 0))
def buffers_under_functional_calls_and_transforms(run):
    from torch.func import functional_call, grad_and_value, jvp, replace_all_batch_norm_modules_, vmap
    model = Counted()
    params = {k: p.detach() for k, p in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def loss(params, buffers, x):
        return functional_call(model, (params, buffers), (x,)).pow(2).mean()
    for i in range(2):
        with run.dump(model):
            grads, value = grad_and_value(loss)(params, buffers, X)
        run.note(f"value {i}", (value, grads, buffers))
        params = {k: p - 0.1 * grads[k] for k, p in params.items()}
    replace_all_batch_norm_modules_(model)
    run.note("replaced", [type(m).__name__ for m in model.modules()] + [model.norm.running_mean])
    buffers = dict(model.named_buffers())
    with run.dump(model):
        grads, values = vmap(grad_and_value(loss), in_dims=(None, None, 0))(params, buffers, X.view(2, 3, 4))
        _out, tangent = jvp(lambda p: loss(p, buffers, X), (params,), ({k: torch.ones_like(p) for k, p in params.items()},))
    run.note("values", (values, grads, tangent))
    run.note_model(model)


@way(needs=(2, 0))
def tangents_through_modules_with_hooks_and_saved_tensors(run):
    from torch.autograd import forward_ad
    model, seen = model_of(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (seen.append(tuple(t.shape)), t)[1], lambda t: t):
        for i in range(2):
            with run.dump(model), forward_ad.dual_level():
                dual = forward_ad.make_dual(X.clone(), torch.ones_like(X))
                value, tangent = forward_ad.unpack_dual(model(dual))
                (value.sum() + tangent.pow(2).sum()).backward()
            run.note(f"tangent {i}", (value, tangent))
    run.note("saved", seen)
    run.note_model(model)


@way(needs=(2, 1))
def hessians_of_a_module_by_three_ways(run):
    from torch.func import functional_call, hessian, jacfwd, jacrev
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    params = {k: p.detach() for k, p in model.named_parameters()}

    def loss(params):
        return functional_call(model, params, (X[:2, :2],)).pow(2).mean()
    with run.dump(model):
        run.note("hessian", hessian(loss)(params))
        run.note("by jacobians", jacfwd(jacrev(loss))(params))
        run.note("by autograd", torch.autograd.functional.hessian(
            lambda w: functional_call(model, {**params, "0.weight": w}, (X[:2, :2],)).sum(), params["0.weight"]))
    run.train(model, lambda m, i: m(X[:, :2]).mean())


# ---- optimizers ------------------------------------------------------------------------------------------


@way(needs=(2, 0))
def hooks_of_steps_that_exchange_arguments(run):
    from torch.optim.optimizer import register_optimizer_step_post_hook
    seen = []

    class Takes(torch.optim.SGD):
        def step(self, closure=None, *, scale=1.0):
            seen.append(("scale", scale))
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.mul_(scale)
            return super().step(closure)
    model = model_of()
    opt = Takes(model.parameters(), lr=0.1)
    handle = opt.register_step_pre_hook(
        lambda o, args, kwargs: (args, {**kwargs, "scale": 0.5}) if "scale" in kwargs else None)
    opt.register_step_post_hook(lambda o, args, kwargs: seen.append(("post", kwargs)))
    everywhere = register_optimizer_step_post_hook(lambda o, a, k: seen.append(("all", len(a))))
    for i in range(4):
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            run.note(f"step {i}", opt.step(scale=2.0))
        if i == 1:
            handle.remove()
    everywhere.remove()
    bad = opt.register_step_pre_hook(lambda o, args, kwargs: 5)
    with run.dump(model):
        run.raises("a wrong hook", opt.step)
    bad.remove()
    run.note("seen", seen)
    run.note_model(model)


@way(needs=(2, 9))
def matrices_are_orthogonalised_and_the_rest_is_not(run):
    model = model_of()
    matrices = [p for p in model.parameters() if p.dim() == 2]
    rest = [p for p in model.parameters() if p.dim() != 2]
    opts = torch.optim.Muon(matrices, lr=0.05), torch.optim.AdamW(rest, lr=0.01)
    for i in range(3):
        with run.dump(model):
            loss = loss_of(model, i)
            loss.backward()
            for opt in opts:
                opt.step()
                opt.zero_grad(set_to_none=bool(i % 2))
        run.note(f"loss {i}", loss)
    run.note("states", [opt.state_dict() for opt in opts])
    run.note_model(model)


@way
def one_optimizer_is_made_anew_in_each_step(run):
    model, old = model_of(), None
    for i in range(4):
        with run.dump(model):
            opt = torch.optim.Adam([{"params": [p], "lr": 0.01 * (k + 1)} for k, p in enumerate(model.parameters())])
            if old is not None:
                opt.load_state_dict(old)
            loss = loss_of(model, i)
            model.zero_grad()
            loss.backward()
            opt.step()
            old = opt.state_dict()
            del opt
        run.note(f"loss {i}", loss)
    run.note("state", old)


@way
def parameters_join_and_leave_an_optimizer(run):
    model = model_of()
    model[0].requires_grad_(False)
    opt = torch.optim.Adam(model[2].parameters(), lr=0.01)
    for i in range(5):
        if i == 1:
            model[0].requires_grad_(True)
            opt.add_param_group({"params": list(model[0].parameters()), "lr": 0.1})
        if i == 3:
            opt.param_groups.pop(0)
        with run.dump(model):
            opt.zero_grad()
            loss_of(model, i).backward()
            opt.step()
    run.note_model(model)
    run.note("groups", [len(group["params"]) for group in opt.param_groups])


# ---- models -----------------------------------------------------------------------------------------------


@way
def a_module_that_contains_itself(run):
    class Round(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self._modules["me"] = self

        def forward(self, x, depth=3):
            return self.fc(x) if depth == 0 else self.me.me(self.fc(x).tanh(), depth - 1)
    model = Round()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for i in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss = model(X).pow(2).mean()
            loss.backward()
            opt.step()
        run.note(f"loss {i}", loss)
    run.note("parameters", [(p, p.grad) for p in model.parameters()])
    run.raises("without end", model.state_dict)


@way
def modules_that_come_and_go_while_their_parent_runs(run):
    class Grows(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"a": nn.Linear(4, 4)})
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            for name in list(self.parts):
                x = self.parts[name](x)
                if name == "a":
                    self.parts[f"n{self.calls}"] = nn.Linear(4, 4)
                    x = self.parts[f"n{self.calls}"](x)
                elif name == f"n{self.calls - 2}":
                    del self.parts[name]
            if self.calls == 3:
                self.parts = nn.ModuleDict({"b": nn.Linear(4, 4)})
                self.fresh = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
            return self.fresh(x) if self.calls > 3 else x
    model = Grows()
    for i in range(6):
        with run.dump(model):
            loss = model(X).pow(2).mean()
            loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * (p.grad if p.grad is not None else 0)
        run.note(f"loss {i}", loss)
    run.note_model(model)


@way
def modules_as_an_old_pickle_leaves_them(run):
    """Made without __init__, with some of the tables of hooks and modes missing, as __setstate__ found them in old files."""
    model = model_of()
    old = nn.Linear.__new__(nn.Linear)
    state = {k: v for k, v in nn.Linear(4, 4).__dict__.items()
             if k in ("training", "_parameters", "_buffers", "_modules", "in_features", "out_features")}
    old.__setstate__({**state, "_forward_hooks": collections.OrderedDict(), "_forward_pre_hooks": collections.OrderedDict(),
                      "_backward_hooks": collections.OrderedDict()})
    model.append(nn.Sequential(nn.Linear(2, 4), old))
    run.train(model, loss_of)
    run.note("tables", sorted(old.__dict__))


@way
def a_base_class_that_is_initialised_late(run):
    class Late(nn.Module):
        def __init__(self):
            self.width = 4  # an attribute before the base is made
            seen.append("width" in self.__dict__)
            super().__init__()
            self.fc = nn.Linear(self.width, 4)
            self.__dict__["hidden"] = nn.Linear(4, 4)  # nobody finds it

        def forward(self, x):
            return self.hidden(self.fc(x))
    seen = []
    model = Late()

    class Never(nn.Module):
        def __init__(self):
            pass
    with run.dump(model):
        run.raises("no base", lambda: setattr(Never(), "fc", nn.Linear(1, 1)))
        run.raises("no call", lambda: Never()(X))
        Late()(X).sum().backward()
    run.train(model, lambda m, i: m(X).pow(2).mean())
    run.note("seen", seen)


@way
def a_class_that_is_defined_anew_for_old_objects(run):
    """As code that is loaded from a hub, or a notebook whose cell is run again."""
    source = ("import torch\nclass Net(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
              "        self.fc = torch.nn.Linear(4, 4)\n    def forward(self, x):\n        return super().forward(x) if {} "
              "else self.fc(x) * {}\n")
    space, models = {"__name__": "notebook"}, []
    for number in range(3):
        exec(source.format(False, number + 1), space)
        models.append(space["Net"]())
        if number:
            models[0].__class__ = space["Net"]
        for model in models[:2]:
            run.train(model, lambda m, i: m(X).pow(2).mean(), steps=1)
    run.note("classes", [type(m) is space["Net"] for m in models])


@way
def functions_cached_and_dispatched_by_tensors(run):
    calls = []

    @functools.lru_cache(maxsize=4)
    def table(t, n):
        calls.append(n)
        return t.cumsum(0) * n

    @functools.singledispatch
    def scaled(value):
        return value

    @scaled.register(torch.Tensor)
    def _(value):
        return value * 2

    @scaled.register(list)
    def _(value):
        return [scaled(v) for v in value]

    class Uses(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, many):
            y = self.fc(x + table(X, 2) + table(X, 3))
            return sum(scaled(many), scaled(y))
    model = Uses()
    run.train(model, lambda m, i: m(X, [X, X + 1]).pow(2).mean())
    run.note("calls", (calls, table.cache_info()._asdict()))


@way
def a_deep_tower_of_modules(run):
    model = nn.Linear(4, 4)
    for _ in range(120):
        model = nn.Sequential(model)
    run.train(model, lambda m, i: m(X).pow(2).mean(), steps=2)


@way
def wide_containers_of_thousands_of_tensors(run):
    class Sums(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, many, named):
            return self.fc(torch.stack([*many, *named.values()]).sum(0))
    model = Sums()
    many = [torch.full((1, 4), float(i), requires_grad=i % 2 == 0) for i in range(1500)]
    run.train(model, lambda m, i: m(many, {str(k): t * 2 for k, t in enumerate(many[:700])}).mean(), steps=2)
    run.note("gradients", [t.grad for t in many[::100]])


# ---- tensors ------------------------------------------------------------------------------------------------


class Carries(torch.Tensor):
    """A tensor that carries a history along, through __torch_function__."""

    @staticmethod
    def __new__(cls, data, history=()):
        t = torch.Tensor._make_subclass(cls, data)
        t.history = history
        return t

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        result = super().__torch_function__(func, types, args, kwargs or {})
        if isinstance(result, cls):
            known = next((a.history for a in args if isinstance(a, cls)), ())
            result.history = known + (getattr(func, "__name__", "?"),)
        return result


@way
def tensors_that_carry_their_history_along(run):
    model, seen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Flatten()), []

    def loss(model, step):
        out = model(Carries(X, ("made",)))
        seen.append(out.history)
        total = out.pow(2).mean()
        seen.append(total.history)
        return total
    run.train(model, loss)
    run.note("history", seen)


@way(needs=(2, 1))
def wrapped_pairs_of_tensors_with_a_state(run):
    from torch.utils import _pytree as pytree

    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, device=a.device,
                                                       requires_grad=a.requires_grad)

        def __init__(self, a, b):
            self.a, self.b = a, b

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            counts[str(func)] += 1
            both = [pytree.tree_map_only(Pair, lambda p: getattr(p, side), (args, kwargs or {})) for side in "ab"]
            a, b = (func(*args, **kwargs) for args, kwargs in both)
            return pytree.tree_map(lambda x, y: Pair(x, y) if isinstance(x, torch.Tensor) else x, a, b) \
                if isinstance(a, (list, tuple)) else (Pair(a, b) if isinstance(a, torch.Tensor) else a)
    counts = collections.Counter()
    model = nn.Sequential(nn.Linear(4, 4), nn.Sigmoid())

    def loss(model, step):
        out = model(Pair(X, X * 2))
        value = out.sum()
        run.note(f"other {step}", value.b)
        return value
    run.train(model, loss, backward=lambda loss: loss.a.backward() if loss.a.requires_grad else loss.backward())
    run.note("calls", sorted(counts.items()))


@way
def storages_that_grow_shrink_and_are_set(run):
    model = model_of()
    base = torch.zeros(100)

    def loss(model, step):
        x = torch.empty(0)
        x.set_(base.untyped_storage() if hasattr(base, "untyped_storage") else base.storage(), 4 * step, (6, 4), (4, 1))
        with torch.no_grad():
            x.copy_(X)
        value = model(x).pow(2).mean()
        y = torch.ones(3)
        y.untyped_storage().resize_(0) if hasattr(y, "untyped_storage") else y.storage().resize_(0)
        run.note(f"empty {step}", (y.shape, y.storage().size() if VERSION < (2, 0) else y.untyped_storage().size()))
        nn.Identity()(y)
        run.raises(f"out of bounds {step}", lambda: torch.transpose(y.view(3, 1), 0, 1))
        return value
    run.train(model, loss)
    run.note("base", base)


@way
def distributions_that_are_sampled_and_differentiated(run):
    from torch import distributions as D

    class Latent(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.dec = nn.Linear(4, 4), nn.Linear(2, 4)

        def forward(self, x):
            mean, scale = self.enc(x).chunk(2, -1)
            q = D.Independent(D.Normal(mean, F.softplus(scale) + 1e-3), 1)
            z = q.rsample()
            prior = D.MultivariateNormal(torch.zeros(2), torch.eye(2))
            squashed = D.TransformedDistribution(D.Normal(mean, 1.0), [D.TanhTransform(cache_size=1)])
            gate = D.RelaxedBernoulli(torch.tensor(0.5), logits=z)
            mixture = D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(2), torch.ones(2)))
            return self.dec(z), D.kl_divergence(q, D.Independent(D.Normal(torch.zeros(2), torch.ones(2)), 1)).mean() + \
                prior.log_prob(z).mean() + squashed.log_prob(squashed.rsample()).mean() + gate.rsample().mean() + \
                mixture.log_prob(z[:, 0]).mean() + D.Gamma(F.softplus(z) + 1, 1.0).rsample().mean() + \
                D.Dirichlet(F.softplus(z) + 1).rsample().pow(2).mean()
    model = Latent()
    run.train(model, lambda m, i: (lambda y, kl: (y - X).pow(2).mean() + 0.1 * kl)(*m(X)))
    with run.dump(model):
        run.raises("refused", lambda: D.Normal(torch.zeros(1), -torch.ones(1)))
        action = D.Categorical(logits=model.enc(X)).sample()
        D.Categorical(logits=model.enc(X)).log_prob(action).sum().backward()
    run.note_model(model)


@way
def spectra_and_complex_weights(run):
    class Filter(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.view_as_real(torch.ones(3, dtype=torch.complex64)).clone())
            self.phase = nn.Parameter(torch.full((4,), 0.5j, dtype=torch.complex64))

        def forward(self, x):
            spectrum = torch.fft.rfft(x, dim=-1) * torch.view_as_complex(self.weight)
            back = torch.fft.irfft(spectrum, n=4, dim=-1)
            z = back * self.phase.exp()
            return z.abs() + z.angle().cos() + torch.special.i0e(z.real) + torch.special.xlog1py(back, back.abs())
    run.train(Filter(), lambda m, i: m(X + 0.1).pow(2).mean(), optimizer=torch.optim.Adam)


@way(needs=(2, 1))
def files_of_checkpoints_mapped_skipped_and_safe(run):
    model, where = model_of(), tempfile.mkdtemp(dir=".")
    path = os.path.join(where, "saved.pt")

    def hook(module, args, result):
        torch.save({"x": args[0], "y": result, "w": dict(module.state_dict())}, path)
        known = torch.load(path, mmap=True, weights_only=True)
        run.note("mapped", known)
        return result * known["y"].sign().abs().clamp(min=1)
    model[0].register_forward_hook(hook)
    run.train(model, loss_of, steps=2)
    if VERSION >= (2, 5):
        with run.dump(model), torch.serialization.skip_data():
            torch.save(model.state_dict(), path)
        run.note("skipped", list(torch.load(path, weights_only=True)))
    old = io.BytesIO()
    with run.dump(model):
        torch.save(model.state_dict(), old, _use_new_zipfile_serialization=False)
        run.raises("unsafe", lambda: torch.load(io.BytesIO(pickle.dumps(model)), weights_only=True))
    run.note("old", len(old.getvalue()))


@way
def a_board_gets_figures_and_a_graph_within_a_step(run):
    from torch.utils.tensorboard import SummaryWriter
    model = model_of()
    with SummaryWriter("board") as board:
        for i in range(2):
            with run.dump(model):
                loss = loss_of(model, i)
                loss.backward()
                board.add_scalar("loss", loss, i)
                for name, p in model.named_parameters():
                    board.add_histogram(name, p, i)
                    board.add_histogram(name + ".grad", p.grad, i)
                board.add_graph(model, X)
                board.add_embedding(X, metadata=list("abcdef"), tag=f"x{i}")
            run.note(f"loss {i}", loss)
    run.note("files", len(os.listdir("board")))
    run.note_model(model)


@way
def randomness_is_forked_and_frozen_around_modules(run):
    class Noisy(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.drop = nn.Linear(4, 4), nn.Dropout(0.5)

        def forward(self, x):
            with torch.random.fork_rng():
                torch.manual_seed(3)
                noise = torch.randn_like(x)
            own = torch.Generator().manual_seed(int(torch.randint(0, 100, ())))
            return self.drop(self.fc(x + noise)) + torch.rand(4, generator=own)
    model = nn.Sequential(Noisy(), Noisy())
    run.train(model, lambda m, i: m(X).pow(2).mean())
    run.note("seed", torch.initial_seed())


# ---- processes -------------------------------------------------------------------------------------------------


@way(needs=(2, 4))
def distributed_tensors_with_random_numbers_and_uneven_shards(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor, Partial, DTensor
        mesh = init_device_mesh("cpu", (world,))
        torch.manual_seed(7)
        model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))

        def cut(_name, module, mesh):
            for name, p in list(module.named_parameters(recurse=False)):
                module.register_parameter(name, nn.Parameter(distribute_tensor(p, mesh, [Shard(0)])))
        distribute_module(model, mesh, cut, input_fn=lambda m, args, mesh: tuple(
            a if isinstance(a, DTensor) else DTensor.from_local(a, mesh, [Replicate()]) for a in args))
        opt = torch.optim.AdamW(model.parameters(), lr=0.01, foreach=False)
        for i in range(2):
            with run.dump(model):
                opt.zero_grad()
                out = model(X)
                loss = out.redistribute(mesh, [Replicate()]).to_local().pow(2).mean()
                loss.backward()
                opt.step()
            run.note(f"loss {i}", loss)
            run.note(f"placements {i}", [str(p.placements) + str(tuple(p.to_local().shape)) for p in model.parameters()])
        part = DTensor.from_local(X * (rank + 1), mesh, [Partial()])
        with run.dump(model):
            summed = part.redistribute(mesh, [Shard(0)])
        run.note("summed", summed.to_local())
        run.note("parameters", [p.full_tensor() for p in model.parameters()])
    run_ranks(run, 2, main)


class _Ring(torch.autograd.Function):
    """Passes a tensor to the next rank, and its gradient back."""

    @staticmethod
    def forward(ctx, x):
        return _passed(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return _passed(grad, -1)


def _passed(x, by):
    rank, world = dist.get_rank(), dist.get_world_size()
    got = torch.empty_like(x)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, x.contiguous(), (rank + by) % world),
                                    dist.P2POp(dist.irecv, got, (rank - by) % world)])
    for work in works:
        work.wait()
    return got


@way
def attention_in_a_ring_of_ranks(run):
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(4, 12), nn.Linear(4, 4)

        def forward(self, x):
            q, k, v = self.qkv(x).chunk(3, -1)
            total = top = None
            for turn in range(dist.get_world_size()):
                score = (q @ k.transpose(-1, -2)).exp()
                top = score @ v if top is None else top + score @ v
                total = score.sum(-1, keepdim=True) if total is None else total + score.sum(-1, keepdim=True)
                k, v = _Ring.apply(k), _Ring.apply(v)
            return self.out(top / total)

    def main(run, rank, world):
        torch.manual_seed(3)
        model = Attention()
        for i in range(2):
            with run.dump(model):
                loss = model(X[rank::world]).pow(2).mean()
                loss.backward()
                for p in model.parameters():
                    dist.all_reduce(p.grad)
            run.note(f"loss {i}", loss)
        run.note_model(model)
    run_ranks(run, 3, main)


@way(needs=(2, 4))
def fully_sharded_in_half_precision_and_kept_in_memory_of_the_host(run):
    def main(run, rank, world):
        from torch.distributed._composable.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
        from torch.distributed.device_mesh import init_device_mesh
        torch.manual_seed(4)
        model = model_of()
        mesh = init_device_mesh("cpu", (world,))
        how = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32, torch.float32,
                                                               cast_forward_inputs=True)}
        for block in list(model.children())[:2]:
            fully_shard(block, **how, reshard_after_forward=False)
        fully_shard(model, **how)
        opt = torch.optim.AdamW(model.parameters(), lr=0.01)
        for i in range(3):
            with run.dump(model):
                opt.zero_grad()
                loss = model(X[rank::world]).float().pow(2).mean()
                loss.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                opt.step()
            run.note(f"loss {i}", (loss, norm.full_tensor() if hasattr(norm, "full_tensor") else norm))
        run.note("parameters", [p.full_tensor() for p in model.parameters()])
        run.note("policy", CPUOffloadPolicy(pin_memory=False).pin_memory)
    run_ranks(run, 2, main)


@way
def averaged_by_hand_with_futures_in_hooks_of_gradients(run):
    """Each gradient is reduced as it comes; the step waits for all."""
    def main(run, rank, world):
        torch.manual_seed(6)
        model, waiting = model_of(), []

        def hook(p):
            waiting.append((p, dist.all_reduce(p.grad, async_op=True)))
        handles = [p.register_post_accumulate_grad_hook(hook) for p in model.parameters()] if VERSION >= (2, 1) else []
        opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        for i in range(3):
            with run.dump(model):
                opt.zero_grad(set_to_none=i != 1)
                loss = model(X[rank::world]).pow(2).mean()
                loss.backward()
                for p, work in waiting:
                    work.wait()
                    p.grad /= world
                waiting.clear()
                opt.step()
            run.note(f"loss {i}", loss)
        run.note("handles", len(handles))
        run.note_model(model)
    run_ranks(run, 2, main)


@way
def groups_with_names_timeouts_and_stores_of_their_own(run):
    def main(run, rank, world):
        import datetime
        model = model_of()
        group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=30), group_desc="pair") \
            if VERSION >= (2, 4) else dist.new_group([0, 1], timeout=datetime.timedelta(seconds=30))
        alone = [dist.new_group([r]) for r in range(world)][rank]
        store = dist.PrefixStore("own", dist.distributed_c10d._get_default_store())
        with run.dump(model):
            store.set(f"key{rank}", f"value{rank}")
            store.wait([f"key{1 - rank}"])
            run.note("store", (store.get(f"key{1 - rank}"), store.add("count", 0)))
            t = torch.full((3,), float(rank + 1))
            dist.all_reduce(t, dist.ReduceOp.MAX, group=group)
            dist.all_reduce(t, group=alone)
            objects = [None] * world
            dist.all_gather_object(objects, {"rank": rank, "t": t}, group=group)
            got = [None]
            dist.scatter_object_list(got, [{"for": r} for r in range(world)] if rank == 0 else None, src=0)
            ranks = dist.get_process_group_ranks(group) if VERSION >= (2, 0) else [0, 1]
            run.note("objects", (objects, got, ranks, dist.get_rank(alone), dist.get_backend(group)))
            dist.barrier(group=group)
            dist.broadcast(t, 1)
            run.raises("wrong sizes", lambda: dist.all_gather([torch.empty(1)], torch.ones(1)))
            run.note("t", t)
            loss_of(model, 0).backward()
        run.note_model(model)
    run_ranks(run, 2, main)
