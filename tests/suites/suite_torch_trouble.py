# SPDX-License-Identifier: MIT
"""Tests of the PyTorch adapter: what goes wrong, or is odd, and leaves the training unharmed.
See torch_tests.py."""
import glob
import math
import os
import signal
import subprocess
import sys
from collections import OrderedDict

from torch_tests import BUILD, Two, data, debugger, equal, main, notes, one_step, read, test
import torch

nn, F = torch.nn, torch.nn.functional

# ---- bad input ------------------------------------------------------------------


@test
def odd_tensors_are_described_and_noted():
    d = debugger(level="L1")
    sparse = torch.eye(3).to_sparse()
    quantised = torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.quint8)
    odd = [sparse, quantised, torch.ones(2, 3, device="meta"), torch.zeros(0, 3),
           torch.full((2,), float("nan")),
           torch.complex(torch.ones(2), torch.full((2,), 3.0)).conj().imag]
    d.start()
    for t in odd:
        torch.clone(t)
    d.stop()
    d.step()
    leaf = [record["input_args"][0] for record in data().values()]
    equal([l["Max"] for l in leaf[:4]], [None] * 4)
    equal([l["dtype"] for l in leaf[:2]], ["torch.float32", "torch.quint8"])
    equal([l["shape"] for l in leaf[:4]], [[3, 3], [3], [2, 3], [0, 3]])
    assert math.isnan(leaf[4]["Max"]) and math.isnan(leaf[4]["Mean"])
    equal(leaf[5]["Max"], -3.0)
    assert "sparse" in notes(), notes()


@test
def modules_that_are_shared_or_call_themselves():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, x, left=2):
            return self(self.fc(x), left - 1) if left else x

    inner = nn.Linear(4, 4)
    model = nn.Sequential(Deep(), inner, inner)
    one_step(debugger(level="L0"), model, torch.randn(2, 4))
    equal([n for n in data() if "forward" in n],
          ["Module.0.fc.Linear.forward.0", "Module.0.fc.Linear.forward.1",
           "Module.0.Deep.forward.2", "Module.0.Deep.forward.1", "Module.0.Deep.forward.0",
           "Module.1.Linear.forward.0", "Module.1.Linear.forward.1"])
    equal(read("construct.json")["Module.0.Deep.forward.2"], "Module.0.Deep.forward.1")


@test
def what_follows_a_module_that_raised_does_not_lie_in_it():
    class Fails(nn.Module):
        def forward(self, x):
            torch.abs(x)
            raise KeyError("on purpose")

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.fails, self.act = Fails(), nn.ReLU()

        def forward(self, x):
            try:
                self.fails(x)
            except KeyError:
                return torch.sigmoid(self.act(x))

    model, d = nn.Sequential(Outer()), debugger()
    d.start([model, nn.Sequential(nn.Linear(1, 1))])
    model(torch.ones(2))
    d.stop()
    parents = read("construct.json")
    equal(parents["Torch.abs.0.forward"], "Module.0.0.fails.Fails.forward.0")
    equal(parents["Torch.sigmoid.0.forward"], "Module.0.0.Outer.forward.0")
    equal(parents["Module.0.0.act.ReLU.forward.0"], "Module.0.0.Outer.forward.0")
    equal(data()["Module.0.0.fails.Fails.forward.0"]["input_args"][0]["Max"], 1.0)


@test
def an_exception_in_forward_reaches_the_program_and_spoils_no_later_step():
    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.two, self.fail = Two(), True

        def forward(self, x):
            y = self.two(x)
            return torch.matmul(y, torch.ones(3)) if self.fail else y

    model, d = nn.Sequential(Fails()), debugger()
    d.start(model)
    try:
        model(torch.randn(2, 4))
        raise AssertionError("no exception")
    except RuntimeError:
        pass
    d.stop()
    d.step()
    equal(list(data(0)["Torch.matmul.0.forward"]), ["input_args", "input_kwargs"])
    assert "ended by an exception" in notes(0)
    model[0].fail = False
    one_step(d, model, torch.randn(2, 4))
    equal(read("construct.json", 1)["Module.0.Fails.forward.0"], None)
    assert "Module.0.Fails.forward.0" in data(1)


@test
def hooks_are_there_while_calls_are_collected_alone():
    model, d = nn.Sequential(Two()), debugger()
    clean = [dict(m.__dict__) for m in model.modules()]
    hooks = [v for state in clean for v in state.values() if isinstance(v, OrderedDict)]
    for _ in range(2):
        d.start(model)
        assert any(m._forward_hooks for m in model.modules())
        loss = model(torch.randn(2, 4)).sum()
        loss.backward()
        d.stop()
        d.step()
        assert not any(hooks_of for hooks_of in hooks if "Hook" in str(hooks_of)), hooks
        assert not any(m._forward_pre_hooks or m._forward_hooks for m in model.modules())
    d.start(model)
    for module in model.modules():
        module._forward_hooks.clear()
        module._forward_pre_hooks.clear()
    model(torch.randn(2, 4))
    d.stop()
    assert "Functional.linear.0.forward" in data(2)
    assert not any(n.startswith("Module.0.fc.Linear.forward") for n in data(2))


@test
def a_function_that_is_watched_is_the_same_object_with_the_same_looks():
    import copy
    import inspect
    import pickle
    functions = {"relu": torch.relu, "F.relu": F.relu, "Tensor.add": torch.Tensor.add,
                 "Tensor.norm": torch.Tensor.norm, "F.conv2d": F.conv2d, "einsum": torch.einsum}
    looks = {name: (repr(f), f.__doc__, f.__name__, f.__class__, inspect.isfunction(f),
                    inspect.isbuiltin(f), inspect.isroutine(f), hash(f)) for name, f in functions.items()}
    bound = torch.ones(2).mul
    d = debugger(level="L1")
    d.start()
    assert [torch.relu, F.relu, torch.Tensor.add, torch.Tensor.norm, F.conv2d, torch.einsum] == \
        list(functions.values())
    for name, f in functions.items():
        equal((repr(f), f.__doc__, f.__name__, f.__class__, inspect.isfunction(f), inspect.isbuiltin(f),
               inspect.isroutine(f), hash(f)), looks[name])
        assert copy.deepcopy(f) is f and copy.copy(f) is f and pickle.loads(pickle.dumps(f)) is f
    inspect.signature(F.relu)
    kept = torch.ones(2).add
    kept(torch.ones(2)), bound(2), torch.relu(torch.ones(2)), F.relu(input=torch.ones(2), inplace=True)
    -torch.ones(2), torch.ones(2).neg()
    d.stop()
    assert type(F.relu) is type(lambda: 0) and type(torch.relu) is type(len)
    equal(kept(torch.ones(2)).tolist(), [2.0, 2.0])
    equal([n for n in data() if "ones" not in n],
          ["Tensor.add.0.forward", "Torch.relu.0.forward", "Functional.relu.0.forward",
           "Tensor.neg.0.forward"])


class Table(torch.Tensor):
    """A class with a table of functions, as extensions have them."""

    known = {torch.add: "add", F.relu: "relu", torch.Tensor.mul: "mul", torch.Tensor.__setitem__: "set"}

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func in cls.known:
            return cls.known[func]
        return super().__torch_function__(func, types, args, kwargs or {})


@test
def tables_of_functions_find_them():
    d, x = debugger(level="L1"), torch.ones(2).as_subclass(Table)
    d.start()
    later = {torch.add: 1, torch.Tensor.mul: 2}
    equal([torch.add(x, x), F.relu(x), x.mul(x), later[torch.add], later[torch.Tensor.mul]],
          ["add", "relu", "mul", 1, 2])
    d.stop()


@test
def tracers_scripts_and_symbols_see_the_program():
    from torch import fx
    model, x = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.0)), torch.ones(2, 4)
    d = debugger(level="mix")
    d.start(model)
    code = fx.symbolic_trace(lambda v: F.relu(torch.add(v, 1)).neg()).code
    assert "torch.add" in code and "torch.nn.functional.relu" in code and ".neg()" in code, code
    for other in (torch.jit.script(model), torch.jit.trace(model, x), fx.symbolic_trace(model)):
        assert other(x).equal(model(x))
    d.stop()
    assert "Module.0.Linear.forward.0" in data()


@test
def vmap_of_gradients():
    if not hasattr(torch, "func"):
        return "this torch has no func"
    d, x = debugger(level="mix"), torch.linspace(-1, 1, 6).reshape(2, 3)

    def inner(v):
        return (F.relu(v) * torch.sin(v)).sum()

    want = torch.func.vmap(torch.func.grad(inner))(x)
    d.start(nn.Sequential(nn.Linear(1, 1)))
    assert torch.func.vmap(torch.func.grad(inner))(x).equal(want)
    d.stop()
    return None


@test
def nothing_of_the_training_is_kept_alive():
    import gc
    import weakref
    model, d = nn.Sequential(Two()), debugger()
    one_step(d, model, torch.randn(2, 4))
    refs = [weakref.ref(model), weakref.ref(model[0].fc.weight)]
    x = torch.randn(2, 4, requires_grad=True)
    d.start(model)
    kept = weakref.ref(model(x))
    d.stop()
    d.step()
    del model
    gc.collect()
    equal([ref() for ref in refs + [kept]], [None] * 3)


@test
def a_failure_of_ours_ends_the_dump_and_not_the_training():
    from msprobe.pytorch import _modules
    real, saved = _modules._distinct, os.dup(2)
    with open("stderr", "wb") as f:
        os.dup2(f.fileno(), 2)

    def make():
        def broken(*_any):
            raise RuntimeError("a bug")
        model, x = nn.Sequential(Two()), torch.ones(2, 4)
        if loaded:
            _modules._distinct = broken
        loaded.append(1)
        return model, lambda: model(x).sum()

    loaded = []
    d = debugger(module_backward=True)

    def losses(dump):
        torch.manual_seed(1)
        model, loss_of = make()
        found = []
        for _ in range(3):
            if dump:
                d.start(model)
            loss = loss_of()
            loss.backward()
            if dump:
                d.stop()
                d.step()
            found.append(loss.item())
        return found

    without = losses(False)
    equal(losses(True), without)
    os.dup2(saved, 2)
    _modules._distinct = real
    said = open("stderr", encoding="utf-8").read()
    equal(said.count("a bug"), 1)
    assert not glob.glob("out/step1/*"), "it went on"


@test
def a_second_debugger_is_the_first():
    from msprobe.pytorch import PrecisionDebugger
    first = debugger(level="L1")
    assert PrecisionDebugger(dump_path="elsewhere", level="L0") is first
    first.start()
    torch.relu(torch.ones(2))
    first.stop()
    assert not os.path.exists("elsewhere") and data()


@test
def functions_stand_for_what_they_were():
    import copy
    import pickle
    debugger(level="L1")

    class Uses(nn.Module):
        builtin, python = torch.relu, F.gelu

        def __init__(self):
            super().__init__()
            self.act = F.relu

        def forward(self, x):
            return self.act(self.builtin(x))

    assert copy.deepcopy(Uses())(torch.ones(2)).sum() == 2
    assert pickle.loads(pickle.dumps(F.relu)) is F.relu
    assert F.relu.__name__ == "relu" and "relu" in F.relu.__doc__.lower()
    equal([1 if torch.tensor(3.0) == 3 else 0, -torch.ones(1).item(), (2 - torch.ones(1)).item()],
          [1, -1.0, 1.0])
    scripted = torch.jit.script(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert scripted(torch.ones(2)).shape == (2,)
    assert isinstance(copy.deepcopy(nn.TransformerEncoderLayer(4, 1)), nn.Module)


@test
def a_model_can_be_copied_and_saved_while_it_is_hooked():
    import copy
    import io
    model, d = Two(), debugger()
    one_step(d, model, torch.randn(2, 4))
    other = copy.deepcopy(model)
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    one_step(d, other, torch.randn(2, 4))
    equal([n for n in data(1) if "Module.fc" in n][0], "Module.fc.Linear.forward.0")


@test
def mistakes_in_config_name_the_key():
    from msprobe.pytorch import PrecisionDebugger
    for keys, words in (({"level": "L7"}, ("level", "L0")), ({"rank": [-1]}, ("rank", "0")),
                        ({"step": ["4-2"]}, ("step",)), ({"extra_info": 1}, ("extra_info",)),
                        ({"task": "statistic"}, ("task", "statistics"))):
        try:
            debugger(**keys)
            raise AssertionError(f"{keys} was taken")
        except ValueError as why:
            assert all(word in str(why) for word in words), why
    try:
        PrecisionDebugger()
        raise AssertionError("no dump_path was taken")
    except ValueError as why:
        assert "dump_path" in str(why), why
    d = debugger(level="mix")
    try:
        d.start()
        raise AssertionError("no model was taken")
    except ValueError as why:
        assert "model" in str(why), why


@test
def a_full_disk_does_not_stop_the_training():
    import resource
    d = debugger(task="tensor", level="L1")
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    saved = os.dup(2)
    with open("stderr", "wb") as f:
        os.dup2(f.fileno(), 2)
    total = 0
    for _ in range(3):
        d.start()
        for _ in range(20):
            total += torch.relu(torch.ones(5000)).sum().item()
        d.stop()
        d.step()
    os.dup2(saved, 2)
    equal(total, 3 * 20 * 5000.0)
    equal(open("stderr", encoding="utf-8").read().count("not dumped"), 1)


@test
def a_killed_training_leaves_whole_documents():
    script = f"""
import sys, os, json, signal
sys.path.insert(0, {os.path.join(BUILD, 'python')!r})
import torch
from msprobe.pytorch import PrecisionDebugger
json.dump({{"task": "statistics", "dump_path": "out", "level": "L1"}}, open("c.json", "w"))
d = PrecisionDebugger("c.json")
d.start()
for i in range(3000):
    torch.relu(torch.ones(2, 3))
os.kill(os.getpid(), signal.SIGKILL)
"""
    equal(subprocess.run([sys.executable, "-c", script], check=False).returncode, -signal.SIGKILL)
    found = data()
    assert len(found) > 100, len(found)
    equal(list(found)[100], "Torch.relu.100.forward")
    read("stack.json"), read("construct.json")


@test
def a_child_of_a_fork_dumps_nothing():
    d = debugger(level="L1")
    d.start()
    torch.relu(torch.ones(2))
    pid = os.fork()
    if pid == 0:
        for _ in range(5):
            torch.relu(torch.ones(2))
        os._exit(0)
    os.waitpid(pid, 0)
    d.stop()
    equal(list(data()), ["Torch.relu.0.forward"])


@test
def threads_of_a_program_do_not_disturb_each_other():
    import threading
    d, model = debugger(), Two()
    x = torch.randn(2, 4)
    d.start(model)
    threads = [threading.Thread(target=lambda: [model(x) for _ in range(50)]) for _ in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    d.stop()
    found = data()
    equal(len([n for n in found if n.startswith("Module.fc.Linear.forward")]), 200)
    equal(len([n for n in found if n.startswith("Functional.linear")]), 200)


if __name__ == "__main__":
    main()
