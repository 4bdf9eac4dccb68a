# SPDX-License-Identifier: MIT
"""Tests of the PyTorch adapter: trainings of many kinds come to what they do without us.
See torch_tests.py."""
import glob
import json
import os
import subprocess
import sys
from collections import OrderedDict

from torch_tests import BUILD, Two, data, debugger, equal, main, one_step, read, test
import torch

nn, F = torch.nn, torch.nn.functional

# ---- the training is as it would be -----------------------------------------------


VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])


def is_unharmed(make, steps=3, **keys):
    """make() gives (model, loss): the losses and parameters of a training, with and without a dump."""
    d = debugger(**keys)

    def losses(dump):
        torch.manual_seed(1)
        model, loss_of = make()
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        found = []
        for _ in range(steps):
            if dump:
                d.start(model)
            loss = loss_of()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            if dump:
                d.stop()
                d.step()
            found.append(loss.item())
        return found + [p.detach().tolist() for p in model.parameters()]

    without = losses(False)
    equal(losses(True), without)
    assert data(steps - 1), "nothing was dumped"
    return without


class Tagged(torch.Tensor):
    """A class of the program's own, which goes through all functions."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Wrapped:
    """No tensor, but functions take it for one."""

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [a.inner if isinstance(a, Wrapped) else a for a in args]
        return func(*plain, **(kwargs or {}))


@test
def tensors_of_other_classes():
    def make():
        model, x = Two(), torch.randn(3, 4).as_subclass(Tagged)
        return model, lambda: torch.relu(Wrapped(model(x))).square().sum()

    is_unharmed(make)
    found = data()
    equal(found["Functional.linear.0.forward"]["input_args"][0]["type"], "torch.Tensor")
    assert found["Functional.linear.0.forward"]["input_args"][0]["Max"] is not None


@test
def fake_and_nested_tensors():
    d = debugger(level="L1")
    d.start()
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode():
        fake = torch.relu(torch.ones(2, 3))
    shape = tuple(fake.shape)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) \
        if hasattr(torch, "nested") and hasattr(torch.nested, "nested_tensor") else None
    if nested is not None:
        torch.clone(nested)
    if VERSION >= (2, 3):
        jagged = torch.nested.nested_tensor([torch.ones(2), torch.full((3,), 2.0)],
                                            layout=torch.jagged)
        torch.neg(jagged)
    d.stop()
    equal(shape, (2, 3))
    equal(data()["Torch.relu.0.forward"]["output"][0]["Max"], None)
    if VERSION >= (2, 3):
        leaf = data()["Torch.neg.0.forward"]["input_args"][0]
        equal([leaf["type"], leaf["Max"]],
              ["torch.nested._internal.nested_tensor.NestedTensor", 2.0])


@test
def functions_that_write_to_their_arguments():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.act = nn.Linear(4, 4), nn.ReLU(inplace=True)
            self.register_buffer("sum", torch.zeros(4))

        def forward(self, x):
            y = self.act(self.fc(x)) * 2
            y += 1
            y.mul_(2)[0] = 3
            self.sum.add_(y.detach().sum(0))
            return y

    def make():
        model, x = nn.Sequential(Model(), Model()), torch.randn(3, 4)
        return model, lambda: model(x).square().mean()

    is_unharmed(make)


@test
def mixed_precision():
    def make():
        model, x = nn.Sequential(Two(), Two()), torch.randn(3, 4)

        def loss():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return model(x).float().square().mean()

        return model, loss

    is_unharmed(make)
    equal(data()["Functional.linear.0.forward"]["output"][0]["dtype"], "torch.bfloat16")


@test
def programs_of_all_kinds_compute_the_same():
    import torch_zoo

    def lstm(_torch):
        model = nn.ModuleDict({"lstm": nn.LSTM(6, 5, 2, batch_first=True), "out": nn.Linear(5, 3)})
        x = torch.linspace(-1, 1, 84).reshape(2, 7, 6)

        def step():
            out, (hidden, _) = model["lstm"](x)
            (model["out"](out).square().sum() + hidden.sum()).backward()

        return model, step

    d = debugger(task="tensor")

    def trained(make, dump):
        torch.manual_seed(3)
        model, step = make(torch)
        parameters = list(model.parameters()) or [nn.Parameter(torch.ones(1))]
        optimizer = torch.optim.AdamW(parameters, lr=1e-3)
        for _ in range(2):
            if dump:
                d.start(model)
            step()
            optimizer.step()
            optimizer.zero_grad()
            if dump:
                d.stop()
                d.step()
        return [p.detach().tolist() for p in parameters] + [torch.rand(1).item()]

    for name, make in {**torch_zoo.ZOO, "lstm": lstm}.items():
        without = trained(make, False)
        assert trained(make, True) == without, name


@test
def recomputation_of_both_kinds():
    from torch.utils.checkpoint import checkpoint

    def make(reentrant):
        class Outer(nn.Module):
            def __init__(self):
                super().__init__()
                self.two, self.drop = Two(), nn.Dropout(0.5)

            def forward(self, x):
                return checkpoint(lambda v: self.drop(self.two(v)), x, use_reentrant=reentrant)

        model, x = nn.Sequential(nn.Linear(4, 4), Outer()), torch.randn(5, 4)
        return model, lambda: model(x).square().mean()

    is_unharmed(lambda: make(True))
    again = data(2)
    is_unharmed(lambda: make(False))
    for found in (again, data(5)):
        assert "Module.1.two.Two.forward.1" in found, list(found)


@test
def an_exception_in_backward_reaches_the_program():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            if Fails.armed:
                raise KeyError("on purpose")
            return grad

    model, d = nn.Sequential(Two(), nn.ReLU()), debugger()
    for armed in (True, False):
        Fails.armed = armed
        d.start(model)
        loss = Fails.apply(model(torch.ones(2, 4))).sum()
        try:
            loss.backward()
            assert not armed
        except KeyError:
            assert armed
        d.stop()
        d.step()
    assert "Functional.linear.0.backward" in data(1) and "Functional.linear.0.backward" not in data(0)
    equal(read("construct.json", 1)["Module.0.fc.Linear.forward.0"], "Module.0.Two.forward.0")


@test
def workers_that_load_data():
    class Set(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, i):
            return torch.relu(torch.full((4,), float(i)))

    def make():
        model = Two()
        loader = iter(torch.utils.data.DataLoader(Set(), batch_size=2, num_workers=2))
        return model, lambda: model(next(loader)).square().mean()

    is_unharmed(make)
    assert len(os.listdir("out/step0")) == 1


@test
def a_compiled_model():
    if not hasattr(torch, "compile"):
        return "this torch has no compile"

    def make():
        model, x = nn.Sequential(Two(), Two()), torch.randn(3, 4)
        compiled = torch.compile(model, backend="eager")
        return model, lambda: compiled(x).square().mean()

    is_unharmed(make)
    return None


@test
def a_hooked_model_is_copied_pickled_and_loaded():
    import copy
    import pickle
    model, d = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), debugger()
    one_step(d, model, torch.randn(2, 4))
    for other in (copy.deepcopy(model), copy.copy(model), pickle.loads(pickle.dumps(model))):
        equal(other(torch.ones(1, 4)).tolist(), model(torch.ones(1, 4)).tolist())
    torch.save(model, "model.pt")
    script = """
import torch
model = torch.load("model.pt", weights_only=False)
print(model(torch.ones(1, 4)).tolist())
"""
    got = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": os.path.join(BUILD, "python")})
    equal(got.stdout.strip(), str(model(torch.ones(1, 4)).tolist()))


@test
def whole_graphs_compile_and_export():
    if not hasattr(torch, "compile"):
        return "this torch has no compile"
    model, x = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.LayerNorm(4)), torch.ones(2, 4)
    want, d = model(x), debugger(level="mix")
    d.start(model)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    got = compiled(x)
    got.sum().backward()
    assert got.allclose(want)
    whole = torch.compile(lambda v: F.softmax(torch.add(v, v).abs(), -1) * torch.norm(v), fullgraph=True,
                          backend="eager")
    whole(x)
    if VERSION >= (2, 6):
        assert torch.export.export(model, (x,)).module()(x).allclose(want)
    d.stop()
    return None


@test
def lazy_and_scripted_modules():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.lazy, self.script = nn.LazyLinear(4), torch.jit.script(nn.Linear(4, 4))

        def forward(self, x):
            return self.script(self.lazy(x))

    def make():
        model = nn.Sequential(Model())
        x = torch.ones(2, 3)
        model(x)
        return model, lambda: model(x).sum()

    is_unharmed(make)
    model, d = nn.Sequential(Model()), debugger()
    d.start(model)
    model(torch.ones(2, 3)).sum().backward()
    d.stop()
    assert model[0].lazy.weight.grad is not None


# ---- nothing of the training is replaced ----------------------------------------


class Keeps(nn.Module):
    """What its forward was called with and what it gave, as the objects that they are."""

    def __init__(self, forward):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self._forward, self.got, self.gave = forward, None, None

    def forward(self, *args, **kwargs):
        self.got = args, kwargs
        self.gave = self._forward(self, *args, **kwargs)
        return self.gave


def _watched_call(forward, *args, level="L0", **kwargs):
    """A module called while modules are collected, and what came of it."""
    torch.manual_seed(0)
    inner = Keeps(forward)
    model = nn.Sequential(inner)
    d = debugger(level=level, module_backward=True)
    d.start(model)
    result = inner(*args, **kwargs)
    return d, inner, result


@test
def arguments_and_results_are_the_same_objects():
    x, more = torch.ones(2, 4, requires_grad=True) * 1, {"y": torch.ones(4, requires_grad=True) * 2}
    many = [torch.ones(4, requires_grad=True) * 3]

    def forward(self, x, many, more=None):
        many.append(self.fc(x))
        more["z"] = many[-1] * more["y"]
        return OrderedDict(out=more["z"] + many[0], hidden=many)

    _, inner, result = _watched_call(forward, x, many, more=more)
    (got, named) = inner.got
    assert got[0] is x and got[1] is many and named["more"] is more
    assert result is inner.gave and result["hidden"] is many and len(many) == 2 and "z" in more


@test
def one_tensor_by_position_and_by_keyword_stays_one():
    x = torch.ones(2, 4, requires_grad=True) * 1
    _, inner, result = _watched_call(lambda self, a, b=None: self.fc(a) if a is b else None, x, b=x)
    assert result is not None


@test
def a_parameter_given_as_an_argument_stays_a_leaf():
    weight = nn.Parameter(torch.ones(4, 4))
    _, inner, result = _watched_call(lambda self, x, w: x @ w if w.is_leaf else None,
                                     torch.ones(2, 4), weight)
    result.sum().backward()
    equal(weight.grad.tolist(), [[2.0] * 4] * 4)


@test
def results_may_be_detached_and_written_to_in_place():
    _, inner, result = _watched_call(lambda self, x: self.fc(x), torch.ones(2, 4))
    kept = result.detach_()
    assert kept is result and not result.requires_grad
    _, inner, result = _watched_call(lambda self, x: self.fc(x), torch.ones(2, 4))
    result.mul_(2).sum().backward()
    assert inner.fc.bias.grad.tolist() == [4.0] * 4


@test
def attributes_of_tensors_pass_the_borders_of_modules():
    x = torch.ones(2, 4, requires_grad=True) * 1
    x.scale = 3.0

    def forward(self, x):
        out = self.fc(x * x.scale)
        out.scale = 2.0
        return out

    _, inner, result = _watched_call(forward, x)
    equal(result.scale, 2.0)


@test
def the_graph_holds_the_nodes_of_the_training_alone():
    def names(dump):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 2))
        if dump:
            debugger(level="mix", module_backward=True).start(model)
        seen, stack = [], [model(torch.ones(3, 4)).sum().grad_fn]
        while stack:
            node = stack.pop()
            if node is not None:
                seen.append(type(node).__name__)
                stack += [following for following, _ in node.next_functions]
        return seen

    equal(names(False), names(True))


@test
def the_gradient_of_an_input_is_what_the_module_gives_it():
    """x goes into two modules and past them: each has its own part."""
    x = torch.ones(2, 4, requires_grad=True) * 1
    model = nn.ModuleDict({"a": nn.Linear(4, 4, bias=False), "b": nn.Linear(4, 4, bias=False)})
    with torch.no_grad():
        model["a"].weight.copy_(torch.eye(4)), model["b"].weight.copy_(5 * torch.eye(4))
    d = debugger(level="L0", module_backward=True)
    d.start(model)
    (model["a"](x) + model["b"](x) + x).sum().backward()
    d.stop()
    equal([data()[f"Module.{n}.Linear.backward.0"]["output"][0]["Max"] for n in "ab"], [1.0, 5.0])


@test
def two_ranks_of_distributed_data_parallel():
    if not torch.distributed.is_available():
        return "torch has no distributed"
    script = f"""
import json, os, sys
sys.path.insert(0, {os.path.join(BUILD, 'python')!r})
import torch, torch.distributed as dist
from torch import nn
rank, dump = int(sys.argv[1]), sys.argv[2] == "dump"
d = None
if dump:
    from msprobe.pytorch import PrecisionDebugger
    d = PrecisionDebugger("config.json")
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store" + sys.argv[2]),
                        rank=rank, world_size=2)
torch.set_num_threads(1)
torch.manual_seed(0)
model = nn.parallel.DistributedDataParallel(
    nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
torch.manual_seed(rank)
for _ in range(3):
    if dump:
        d.start(model)
    loss = model(torch.randn(3, 4)).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if dump:
        d.stop()
        d.step()
print(loss.item(), [p.tolist() for p in model.parameters()], flush=True)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # the model holds the group: a tensor that dies in a thread of gloo can abort the exit
"""
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"dump_path": "out", "level": "mix"}, f)

    def run(word):
        ranks = [subprocess.Popen([sys.executable, "-c", script, str(r), word], text=True,
                                  stdout=subprocess.PIPE) for r in range(2)]
        said = [p.communicate(timeout=120)[0] for p in ranks]
        equal([word, *(p.returncode for p in ranks)], [word, 0, 0])
        return said

    equal(run("dump"), run("plain"))
    equal(sorted(os.listdir("out/step2")), ["rank0", "rank1"])
    with open("out/step2/rank1/dump.json", encoding="utf-8") as f:
        names = list(json.load(f)["data"])
    assert "Module.module.0.Linear.parameters_grad.0" in names, names
    return None


@test
def killed_at_any_moment_every_document_is_whole():
    script = f"""
import sys, json
sys.path.insert(0, {os.path.join(BUILD, 'python')!r})
import torch
from msprobe.pytorch import PrecisionDebugger
d = PrecisionDebugger("config.json")
model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU())
print("begins", flush=True)
while True:
    d.start(model)
    for i in range(100):
        model(torch.ones(2, 3)).sum().backward()
    d.stop()
    d.step()
"""
    import random
    import shutil
    import time
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"dump_path": "out", "level": "mix", "task": "tensor"}, f)
    for _ in range(6):
        child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(random.uniform(0.05, 0.6))
        child.kill()
        child.wait()
        for path in glob.glob("out/step*/*/*.json"):
            with open(path, encoding="utf-8") as f:
                json.load(f)
        shutil.rmtree("out", ignore_errors=True)


if __name__ == "__main__":
    main()
