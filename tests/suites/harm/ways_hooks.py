# SPDX-License-Identifier: MIT
"""Hooks in every place that PyTorch has for them, at the same time as ours, and what users find in these places."""
import contextlib
import inspect
import threading
import weakref

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import data

from harness import freed, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    torch.manual_seed(11)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))


@way(needs=(2, 1))
def hooks_that_are_always_called_when_a_module_raises(run):
    class Raises(nn.Module):
        def forward(self, x, fail=False):
            if fail:
                raise ValueError("in forward")
            return x * 2
    model = Calls(lambda self, x, fail: self.b(self.a(x), fail=fail).sum(), a=nn.Linear(4, 4), b=Raises())
    seen = []
    model.b.register_forward_hook(lambda m, a, k, out: seen.append((len(a), sorted(k), out is None)), with_kwargs=True,
                                  always_call=True)
    model.register_forward_hook(lambda m, a, out: seen.append(("model", out is None)), always_call=True)
    model.b.register_forward_hook(lambda m, a, out: seen.append("usual"))
    for fail in (False, True, False):
        with run.dump(model):
            run.raises(f"fail {fail}", lambda fail=fail: model(X, fail).backward())
    run.note("seen", seen)
    run.note_model(model)


@way(needs=(2, 0))
def hooks_that_replace_arguments_keywords_and_results(run):
    model = Calls(lambda self, x, scale=1.0, add=None: self.fc(x) * scale + (add if add is not None else 0),
                  fc=nn.Linear(4, 4))
    model.register_forward_pre_hook(lambda m, a, k: ((a[0] * 2,), {**k, "add": a[0]}), with_kwargs=True)
    model.register_forward_pre_hook(lambda m, a: (a[0] + 1,), prepend=True)
    model.register_forward_hook(lambda m, a, k, out: out * k.get("scale", 1.0), with_kwargs=True)
    model.fc.register_forward_hook(lambda m, a, out: out.clone(), prepend=True)
    model.fc.register_forward_pre_hook(lambda m, a: a[0].detach() if m.training else None)
    run.train(model, lambda m, i: m(X, scale=i + 0.5).sum())


@way
def hooks_that_add_and_remove_hooks_as_they_run(run):
    model, seen = model_of(), []

    def third(m, a, out):
        seen.append("third")

    def second(m, a, out):
        seen.append("second")
        handles.append(m.register_forward_hook(third))

    def first(m, a):
        seen.append("first")
        if len(handles) > 2:
            handles.pop().remove()
    handles = [model[0].register_forward_hook(second)]
    model[0].register_forward_pre_hook(first)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(4):
        with run.dump(model):
            run.raises("forward", lambda: model(X).sum().backward())
            opt.step()
    run.note("seen", seen)
    run.note("hooks", len(model[0]._forward_hooks))
    run.note_model(model)


@way
def hooks_that_are_cleared_from_all_modules(run):
    """Cleans a model of everybody's hooks between two calls and within one, as helpers of notebooks do."""
    model, seen = model_of(), []

    def clear(m, _args):
        for module in model.modules():
            module._forward_hooks.clear()
    for when in ("between", "within", "before"):
        with run.dump(model):
            model[2].register_forward_hook(lambda m, a, out: seen.append("after"))
            model(X).sum().backward()
            if when == "within":
                model[1].register_forward_pre_hook(clear)
            for module in model.modules():
                module._forward_hooks.clear()
            model(X).pow(2).sum().backward()
            for module in model.modules():
                module._forward_pre_hooks.clear()
            model(X).sum().backward()
    run.note("seen", seen)
    run.note_model(model)


@way
def global_hooks_that_come_and_go(run):
    from torch.nn.modules import module
    model, seen = model_of(), []
    for step in range(3):
        with run.dump(model):
            handles = [module.register_module_forward_pre_hook(lambda m, a: seen.append(("before", type(m).__name__))),
                       module.register_module_forward_hook(lambda m, a, out: seen.append(("after", type(m).__name__)))]
            if step == 1:
                handles.append(module.register_module_full_backward_hook(
                    lambda m, gi, go: seen.append(("backward", type(m).__name__, go[0].sum().item()))))
            model(X.clone().requires_grad_()).sum().backward()
            for handle in handles:
                handle.remove()
    run.note("seen", seen)
    run.note_model(model)


@way(needs=(2, 0))
def hooks_before_and_after_the_backward_of_modules(run):
    model, seen = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1)), []
    model[0].register_full_backward_pre_hook(lambda m, g: seen.append(("pre", g[0].sum().item())))
    model[2].register_full_backward_pre_hook(lambda m, g: (g[0] * 2,))
    model[2].register_full_backward_hook(lambda m, gi, go: (gi[0] * 0.5,))
    model.register_full_backward_hook(lambda m, gi, go: seen.append(("model", gi[0] is None)))
    run.train(model, lambda m, i: m(X.clone().requires_grad_()).sum())
    run.note("seen", seen)


@way
def what_a_user_finds_in_a_module_within_forward(run):
    """Some programs decide by what they see of a module and of functions."""
    class Looks(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x):
            run.note("names", sorted(k for k in vars(self) if not k.startswith("_forward") and not k.startswith("_backward")))
            run.note("signature", str(inspect.signature(type(self).forward)) + str(inspect.signature(self.fc.forward)))
            run.note("same", (self.fc.forward.__func__ is nn.Linear.forward, type(self.fc) is nn.Linear,
                              self.fc.__call__.__func__ is nn.Module.__call__, callable(self.fc)))
            run.note("torch", (F.linear is torch._C._nn.linear, torch.relu.__name__, type(x).__name__))
            return self.fc(x).sum()
    run.train(Looks(), lambda m, i: m(X))


@way(needs=(2, 1))
def optimizers_that_step_and_free_gradients_in_backward(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
    optimizers = {p: torch.optim.Adam([p], lr=0.05, foreach=False) for p in model.parameters()}

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad(set_to_none=True)
    handles = [p.register_post_accumulate_grad_hook(step) for p in model.parameters()]
    for i in range(3):
        with run.dump(model):
            loss = model(X * (i + 1)).pow(2).mean()
            loss.backward()
        run.note(f"loss {i}", loss)
    for handle in handles:
        handle.remove()
    run.note_model(model)
    run.note("states", [o.state_dict() for o in optimizers.values()])


@way
def backward_hooks_that_raise_now_and_then(run):
    model, count = model_of(), [0]

    def raises(_grad):
        count[0] += 1
        if count[0] % 2:
            raise RuntimeError(f"gradient {count[0]}")
    for p in model.parameters():
        p.register_hook(raises)
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        with run.dump(model):
            opt.zero_grad()
            loss = model(X).sum()
            run.raises("backward", loss.backward)
            run.note("gradients", [p.grad for p in model.parameters()])
            run.raises("once more", lambda: model(X * 2).sum().backward())
            opt.step()
    run.note_model(model)


@way
def exceptions_of_all_kinds_that_leave_a_module(run):
    class Leaves(nn.Module):
        def forward(self, x, error):
            if error is not None:
                raise error
            return x

    model = Calls(lambda self, x, error: self.inner(self.fc(x), error).sum(), fc=nn.Linear(4, 4), inner=Leaves())

    class Own(BaseException):
        pass
    with run.dump(model):
        for error in (StopIteration("a"), GeneratorExit("b"), Own("c"), KeyboardInterrupt("d"), SystemExit(3), MemoryError()):
            try:
                model(X, error)
            except BaseException as caught:
                run.note("caught", (caught is error, type(caught).__name__, caught.args, caught.__context__ is None))
                del caught
        del error
        model(X, None).backward()
    run.note_model(model)


@way
def a_generator_of_losses_that_is_closed_in_the_middle(run):
    model = model_of()

    def losses():
        try:
            with torch.enable_grad():
                for i in range(10):
                    yield model(X * i).sum()
        finally:
            run.note("closed", torch.is_grad_enabled())
    for _ in range(2):
        with run.dump(model):
            source = losses()
            (next(source) + next(source)).backward()
            source.close()
    run.note_model(model)


@way
def threads_that_train_copies_and_gather_gradients(run):
    model, lock, grads = model_of(), threading.Lock(), {}
    import copy

    def work(k, replica):
        replica(X * (k + 1)).sum().backward()
        with lock:
            grads[k] = [p.grad for p in replica.parameters()]
    for _ in range(2):
        with run.dump(model):
            threads = [threading.Thread(target=work, args=(k, copy.deepcopy(model))) for k in range(3)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
            with torch.no_grad():
                for i, p in enumerate(model.parameters()):
                    p -= 0.1 * sum(grads[k][i] for k in range(3))
    run.note_model(model)


class Loaded(data.IterableDataset):
    def __iter__(self):
        info = data.get_worker_info()
        start = info.id if info is not None else 0
        for i in range(start, 6, info.num_workers if info is not None else 1):
            yield F.layer_norm(X[i], (4,)) + torch.rand(4)


@way
def workers_that_are_seeded_and_share_tensors(run):
    model = model_of()
    loader = data.DataLoader(Loaded(), 2, num_workers=2, worker_init_fn=lambda k: torch.manual_seed(k + 40),
                             generator=torch.Generator().manual_seed(2), multiprocessing_context="fork", prefetch_factor=2)
    for _ in range(2):
        with run.dump(model):
            for x in loader:
                run.note("batch", (x, x.is_shared()))
                model(x).sum().backward()
    run.note_model(model)


@way
def tensors_go_where_they_would(run):
    model = model_of()

    def graph():
        y = model[1](model[0](X))
        z = model[2](y).sum()
        return [y, z]
    for _ in range(2):
        with run.dump(model):
            run.note("freed", freed(graph))
            y = model(X)
            kept = weakref.ref(y)
            y.sum().backward()
            del y
            run.note("gone", kept() is None)


@way(needs=(2, 1))
def tensors_swapped_within_a_step_and_weights_under_norms(run):
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)),
                          nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)))

    def loss_of(model, step):
        with nn.utils.parametrize.cached():
            y = model(X) + model(X * 2)
        run.note("weight", model[0].weight)
        if step == 1:
            nn.utils.parametrize.remove_parametrizations(model[0], "weight")
            model[0] = nn.Linear(4, 4)
        return y.pow(2).sum()
    run.train(model, loss_of)
    if hasattr(torch.utils, "swap_tensors"):
        with run.dump(model):
            a = nn.Parameter(torch.ones(4))
            torch.utils.swap_tensors(a, b := nn.Parameter(torch.zeros(4)))
            run.note("swapped", (a, b))


@way(needs=(2, 0))
def modes_of_functions_that_are_pushed_within_modules(run):
    from torch.overrides import TorchFunctionMode

    class Counts(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(getattr(func, "__name__", str(func)))
            return func(*args, **(kwargs or {}))
    seen = []

    def forward(self, x):
        with Counts():
            y = self.a(x)
            with torch._C.DisableTorchFunction():
                y = y.relu()
            return torch.sum(y * 2)
    run.train(Calls(forward, a=nn.Linear(4, 4)), lambda m, i: m(X))
    run.note("seen", seen)


@way
def contexts_that_open_in_one_module_and_close_in_another(run):
    def opens(self, x):
        self.holder.append(contextlib.ExitStack())
        self.holder[-1].enter_context(torch.no_grad() if x.sum() > 100 else torch.enable_grad())
        self.holder[-1].enter_context(torch.autograd.graph.saved_tensors_hooks(lambda t: (t.clone(),), lambda t: t[0]))
        return self.fc(x)

    def closes(self, x):
        y = self.fc(x)
        self.holder.pop().close()
        return y
    holder = []
    first, second = Calls(opens, fc=nn.Linear(4, 4)), Calls(closes, fc=nn.Linear(4, 1))
    first.holder = second.holder = holder
    run.train(nn.Sequential(first, nn.Tanh(), second), lambda m, i: m(X).sum())


@way(needs=(2, 2))
def exported_loaded_and_trained_beside_the_model(run):
    model = model_of()
    with run.dump(model):
        program = torch.export.export(model, (X,))
        run.note("graph", [str(n.target) for n in program.graph.nodes])
        model(X).sum().backward()
    copied = program.module()
    run.train(copied, lambda m, i: m(X).sum(), steps=2)
    run.note_model(model)


@way(needs=(2, 0))
def compiled_calls_that_graph_breaks_and_hooks_share(run):
    model, seen = model_of(), []
    model[1].register_forward_hook(lambda m, a, out: seen.append(tuple(out.shape)))

    def step(x):
        y = model(x)
        torch._dynamo.graph_break()
        return y.pow(2).sum()
    fast = torch.compile(step, backend="eager")
    run.train(model, lambda m, i: fast(X))
    run.note("seen", seen)


@way(needs=(2, 0))
def a_model_whose_transforms_meet_its_hooks(run):
    from torch.func import functional_call, grad, vmap
    model, seen = model_of(), []
    model[0].register_forward_hook(lambda m, a, out: seen.append(type(out).__name__))
    parameters = dict(model.named_parameters())

    def loss(p, x):
        return functional_call(model, p, (x[None],)).sum()
    with run.dump(model):
        each = vmap(grad(loss), (None, 0))({k: v.detach() for k, v in parameters.items()}, X)
        stacked = torch.func.stack_module_state([model_of(), model_of()])[0]
        both = vmap(lambda p, x: functional_call(model, p, (x,)), (0, None))(stacked, X)
        model(X).sum().backward()
    run.note("results", (each, both, seen))
    run.note_model(model)


@way(needs=(2, 1))
def nested_and_sparse_batches_through_one_model(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))

    def loss_of(model, step):
        nested = torch.nested.nested_tensor([X[:2], X[:3] * 2])
        run.note("padded", torch.nested.to_padded_tensor(model(nested), 0.0))
        sparse = X.relu().to_sparse_csr() if step else X.relu().to_sparse()
        return torch.sparse.mm(sparse, model[0].weight).sum() + model(X).sum()
    run.train(model, loss_of)
