# SPDX-License-Identifier: MIT
"""Tests of the PyTorch adapter: what is recorded, and where.  See torch_tests.py."""
import functools
import glob
import json
import math
import os
import re
import subprocess
import sys
import zlib

from torch_tests import BUILD, Two, data, debugger, equal, folder, main, one_step, read, test
import torch

nn, F = torch.nn, torch.nn.functional


# ---- what is recorded -----------------------------------------------------------


@test
def records_have_official_names_and_order():
    torch.manual_seed(0)
    one_step(debugger(), Two(), torch.randn(2, 4))
    modules = ["Module.act.ReLU.backward.0", "Module.fc.Linear.backward.0"]
    if tuple(int(n) for n in torch.__version__.split(".")[:2]) < (2, 0):
        modules = []  # as the official tool has it
    equal(list(data()), [
        "Functional.linear.0.forward", "Module.fc.Linear.forward.0", "Functional.relu.0.forward",
        "Module.act.ReLU.forward.0", "Tensor.__mul__.0.forward", "Tensor.sum.0.forward",
        "Tensor.sum.0.backward", "Tensor.__mul__.0.backward", "Functional.relu.0.backward",
        *modules, "Functional.linear.0.backward", "Module.fc.Linear.parameters_grad.0"])
    equal(list(data()["Module.fc.Linear.forward.0"]),
          ["input_args", "input_kwargs", "output", "parameters"])
    equal(read("construct.json")["Functional.linear.0.forward"], "Module.fc.Linear.forward.0")
    frames = next(group[1] for group in read("stack.json").values()
                  if "Tensor.__mul__.0.forward" in group[0])
    assert "in forward, \n return self.act(self.fc(x)) * 2" in frames[0], frames
    assert not any("/msprobe/" in frame for frame in frames), frames


@test
def statistics_are_those_of_the_tensors():
    x = torch.tensor([[1.0, -2.0], [3.0, 0.5]])
    d = debugger(level="L1")
    d.start()
    torch.relu(x)
    d.stop()
    leaf = data()["Torch.relu.0.forward"]["input_args"][0]
    equal(leaf, {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 2], "Max": 3.0,
                 "Min": -2.0, "Mean": 0.625, "Norm": x.norm().item(), "requires_grad": False})


@test
def training_is_bit_equal_with_and_without():
    def losses(dump):
        torch.manual_seed(1)
        model = nn.Sequential(Two(), nn.BatchNorm1d(4), nn.Dropout(0.3), nn.ReLU(inplace=True))
        optimizer = torch.optim.Adam(model.parameters())
        d = debugger() if dump else None
        found = []
        for _ in range(4):
            if d:
                d.start(model)
            loss = model(torch.randn(8, 4)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if d:
                d.stop()
                d.step()
            found.append(loss.item())
        return found + [p.sum().item() for p in model.parameters()]

    without = losses(False)
    equal(without, losses(True))
    assert len(data()) > 30


@test
def watching_modules_backward_changes_nothing():
    def gradients(dump):
        torch.manual_seed(1)
        model, x = nn.Sequential(Two(), Two()), torch.randn(3, 4)
        d = debugger(module_backward=True) if dump else None
        if d:
            d.start(model)
        model(x).square().sum().backward()
        return [p.grad.tolist() for p in model.parameters()]

    equal(gradients(False), gradients(True))


@test
def modules_have_a_backward_when_it_is_asked():
    model = nn.Sequential(Two(), nn.ReLU())
    one_step(debugger(module_backward=True), model, torch.randn(2, 4, requires_grad=True))
    back = data()["Module.0.fc.Linear.backward.0"]
    equal(list(back), ["input", "output"])
    equal(back["output"][0]["shape"], [2, 4])
    equal(read("construct.json")["Module.0.fc.Linear.backward.0"], "Module.0.Two.backward.0")
    equal(read("construct.json")["Functional.linear.0.backward"], "Module.0.fc.Linear.backward.0")


@test
def files_of_tensors_are_what_torch_loads():
    d = debugger(task="tensor", level="L1")
    x = torch.arange(12.0).reshape(3, 4)
    kept = {}
    d.start()
    for name, t in {"plain": x, "transposed": x.t(), "expanded": x[:, :1].expand(3, 4),
                    "half": x.half(), "brain": x.bfloat16(), "whole": x.long(),
                    "truth": x > 3, "double": x.double(), "complex": torch.complex(x, x).conj(),
                    "one": torch.tensor(2.5), "no": torch.tensor(True), "late": x[1:, 2:],
                    "wide": torch.complex(x.double(), x.double()).t(),
                    **{str(t): x.to(t) for t in (torch.uint8, torch.int8, torch.int16, torch.int32)},
                    **{t: x.to(getattr(torch, t)) for t in ("float8_e4m3fn", "float8_e5m2", "uint16",
                                                            "uint32", "uint64") if hasattr(torch, t)},
                    "none": x[:, :0]}.items():
        kept[name] = (t.clone(), len(kept))
        torch.clone(t)
    d.stop()
    for name, (t, number) in kept.items():
        path = os.path.join(folder(), "dump_tensor_data", f"Torch.clone.{number}.forward.input.0.pt")
        if t.numel() == 0:
            assert not os.path.exists(path), name
            continue
        loaded, t = torch.load(path, weights_only=True), t.resolve_conj().contiguous()
        assert loaded.dtype == t.dtype and loaded.shape == t.shape, name
        equal(loaded.reshape(-1).view(torch.uint8).tolist(), t.reshape(-1).view(torch.uint8).tolist())
    equal(data()["Torch.clone.0.forward"]["input_args"][0]["data_name"],
          "Torch.clone.0.forward.input.0.pt")


@test
def digests_are_of_the_bytes():
    d = debugger(level="L1", statistics={"summary_mode": "md5"})
    x = torch.arange(8.0).reshape(2, 4)
    d.start()
    torch.relu(x)
    torch.relu(x.t())
    torch.relu(torch.ones(3, dtype=torch.bfloat16))
    d.stop()
    found = data()
    equal(found["Torch.relu.0.forward"]["input_args"][0]["md5"], "7a0a407c")
    equal(found["Torch.relu.1.forward"]["input_args"][0]["md5"],
          f"{zlib.crc32(x.t().contiguous().numpy().tobytes()):08x}")
    equal(found["Torch.relu.2.forward"]["input_args"][0]["md5"], "c3883bcc")


@test
def values_that_are_no_tensors():
    from collections import namedtuple
    pair = namedtuple("pair", "a b")
    d = debugger(level="L1")
    torch.anything = lambda *args, **kwargs: pair(1, [None])
    d.register_custom_api(torch, "anything", "Mine")
    d.start()
    torch.anything(True, 1 << 70, float("nan"), "a\ud800\u00e9", slice(0, None, 2), ..., None, 1j,
                   torch.Size([2, 3]), torch.float32, {3: [1], None: (2.5,)}, pair(1, 2), {1, 2},
                   device="cpu", dtype=torch.int8, memory_format=torch.channels_last)
    d.stop()
    record = data()["Mine.anything.0.forward"]
    args = record["input_args"]
    equal(args[0], {"type": "bool", "value": True})
    equal(args[1], {"type": "int", "value": 1 << 70})
    assert math.isnan(args[2]["value"])
    equal(args[3], {"type": "str", "value": "a\ud800\u00e9"})
    equal(args[4], {"type": "slice", "value": [0, None, 2]})
    equal(args[5], {"type": "ellipsis", "value": "..."})
    equal(args[6:8], [None, None])
    equal(args[8], {"type": "torch.Size", "value": [2, 3]})
    equal(args[10], {"3": [{"type": "int", "value": 1}], "null": [{"type": "float", "value": 2.5}]})
    equal(args[11], {"a": {"type": "int", "value": 1}, "b": {"type": "int", "value": 2}})
    equal(args[12], None)
    equal(record["input_kwargs"], {
        "device": {"type": "torch.device", "value": "cpu"},
        "dtype": {"type": "torch.dtype", "value": "torch.int8"},
        "memory_format": {"type": "torch.memory_format", "format": "channels_last"}})
    d.restore_custom_api(torch, "anything")
    equal(torch.anything(1), pair(1, [None]))


@test
def a_compiler_can_be_told_to_leave_our_functions_out():
    """PyTorch tells it in another way than it once did; without, it would compile them, and warn of what it cannot."""
    from msprobe.pytorch import _compilers
    assert _compilers._skip is not None or not hasattr(torch, "compile")
    _compilers.skip_functions()


@test
def uneven_rows_of_torchrec():
    """The package needs a compiler of its own: what it has stands here, as it says it is."""
    import types

    class JaggedTensor:
        __module__ = "torchrec.sparse.jagged_tensor"

        def __init__(self, values, lengths):
            self.values, self.lengths = values, lengths

        def to_dense(self):
            return list(torch.split(self.values, self.lengths))

    class KeyedJaggedTensor(dict):
        __module__ = JaggedTensor.__module__

    class KeyedTensor:
        __module__ = JaggedTensor.__module__

        def to_dict(self):
            return {"c": torch.full((2,), 7.0)}

    module = types.ModuleType(JaggedTensor.__module__)
    for cls in (JaggedTensor, KeyedJaggedTensor, KeyedTensor):
        setattr(module, cls.__name__, cls)
    sys.modules[module.__name__] = module
    rows = JaggedTensor(torch.arange(3.0), [1, 2])
    net = nn.Sequential(nn.Identity())
    d = debugger()
    d.start(net)
    net[0]([rows, KeyedJaggedTensor(b=rows), KeyedTensor()])
    d.stop()
    equal(list(data()), ["Module.0.Identity.forward.0"])
    args = data()["Module.0.Identity.forward.0"]["input_args"][0]
    equal([leaf["Max"] for leaf in args[0]], [0.0, 2.0])
    equal([leaf["shape"] for leaf in args[1]["b"]], [[1], [2]])
    equal(args[2]["c"]["Max"], 7.0)


@test
def functions_of_the_program_are_recorded():
    import functools
    import types

    class Scale:
        def __call__(self, x, by=2):
            return x * by

    class Base:
        @classmethod
        def made(cls, x):
            return x + 1

        def method(self, x):
            return x + 2

    class Derived(Base):
        pass
    one, two = Derived(), Derived()
    own = types.SimpleNamespace(part=functools.partial(Scale(), by=3), scale=Scale(), other=Scale())
    d = debugger(level="L1")
    places = [(own, "part"), (own, "scale"), (Derived, "made"), (one, "method")]
    for owner, name in places:
        d.register_custom_api(owner, name, "Mine")
    d.start()
    x = torch.ones(2)
    equal([own.part(x).tolist(), own.scale(x, 5).tolist(), own.other(x).tolist()], [[3.0] * 2, [5.0] * 2, [2.0] * 2])
    equal([Derived.made(x).tolist(), Base.made(x).tolist(), one.method(x).tolist(), two.method(x).tolist()],
          [[2.0] * 2, [2.0] * 2, [3.0] * 2, [3.0] * 2])
    d.stop()
    found = {name: record for name, record in data().items() if name.startswith("Mine.")}
    equal(sorted(found), [f"Mine.{name}.0.forward" for name in ("made", "method", "part", "scale")])
    equal([len(found[f"Mine.{name}.0.forward"]["input_args"]) for name in ("made", "method", "part", "scale")], [1, 1, 1, 2])
    equal(found["Mine.part.0.forward"]["output"][0]["Max"], 3.0)
    for owner, name in places:
        d.restore_custom_api(owner, name)
    equal(("method" in vars(one), "made" in vars(Derived)), (False, False))
    d.start()
    own.part(x), own.scale(x), Derived.made(x), one.method(x)
    d.stop()
    equal(len([name for name in data() if name.startswith("Mine.")]), 4)


@test
def numpy_values():
    import numpy as np
    d = debugger(level="L1")
    torch.anything = lambda *args: None
    d.register_custom_api(torch, "anything", "Mine")
    d.start()
    torch.anything(np.float32(1.5), np.arange(4.0), np.array(["a"]), np.zeros(0))
    d.stop()
    args = data()["Mine.anything.0.forward"]["input_args"]
    equal(args[0], {"type": "float32", "value": 1.5})
    equal(args[1], {"type": "numpy.ndarray", "dtype": "float64", "shape": [4], "Max": 3.0,
                    "Min": 0.0, "Mean": 1.5, "Norm": math.sqrt(14)})
    equal(args[2]["Max"], None)
    equal(args[3]["shape"], [0])


@test
def numpy_arrays_have_files():
    import numpy as np
    d = debugger(level="L1", task="tensor")
    torch.anything = lambda *args, **kwargs: None
    d.register_custom_api(torch, "anything", "Mine")
    d.start()
    turned = np.arange(6, dtype=np.int32).reshape(2, 3).T
    torch.anything(turned, [np.array(["ab"])], np.zeros(0), np.array([True]), far=np.float64([[2]]))
    d.stop()
    record = data()["Mine.anything.0.forward"]
    args, folder = record["input_args"], glob.glob("out/step0/*/dump_tensor_data")[0]
    equal(args[0]["data_name"], "Mine.anything.0.forward.input.0.pt")
    equal(torch.load(f"{folder}/{args[0]['data_name']}").tolist(), turned.tolist())
    equal(args[1][0]["data_name"], "Mine.anything.0.forward.input.1.0.npy")
    equal(np.load(f"{folder}/{args[1][0]['data_name']}").tolist(), ["ab"])
    equal("data_name" in args[2], False)
    equal(torch.load(f"{folder}/{args[3]['data_name']}").dtype, torch.bool)
    equal(torch.load(f"{folder}/{record['input_kwargs']['far']['data_name']}").tolist(), [[2.0]])


@test
def debug_level_saves_values_and_gradients():
    d = debugger(level="debug")
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    d.save({"a": [y], "b": 3}, "var")
    d.save(torch.ones(2), "plain")
    (y * 3).sum().backward()
    d.step()
    found = read("debug.json")["data"]
    equal(found["var.0.debug"]["b"], {"type": "int", "value": 3})
    equal(found["var.0.debug"]["a"][0]["Max"], 4.0)
    equal(found["var_grad.0.debug"]["a"][0]["Max"], 3.0)
    equal(found["var_grad.0.debug"]["b"], None)
    equal(found["plain_grad.0.debug"], None)
    equal(sorted(os.listdir(folder())), ["debug.json"])


@test
def two_rounds_of_gradients_are_two_records():
    model, d = Two(), debugger(level="L0")
    d.start(model)
    for _ in range(2):
        model(torch.randn(2, 4)).sum().backward()
    d.stop()
    equal([n for n in data() if "grad" in n],
          ["Module.fc.Linear.parameters_grad.0", "Module.fc.Linear.parameters_grad.1"])
    equal(data()["Module.fc.Linear.parameters_grad.1"]["weight"][0]["dtype"], "torch.float32")


@test
def the_optimizer_and_clipping_are_roots():
    model, d = Two(), debugger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    d.start(model)
    model(torch.randn(2, 4)).sum().backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
    d.stop()
    parents = read("construct.json")
    assert parents["optimizer"] is None and parents["clip_grad"] is None
    assert {"optimizer", "clip_grad"} <= set(parents.values())


@test
def steps_of_optimizers_are_unwrapped_once():
    from msprobe.pytorch import _optimizer
    unwrapped, real = [], _optimizer.inspect.unwrap
    model, d, step = Two(), debugger(), torch.optim.Adagrad.step
    _optimizer.inspect.unwrap = lambda func: unwrapped.append(func) or real(func)
    try:
        for _ in range(3):
            d.start(model)
            d.stop()
            d.step()
        again = len(unwrapped)
        torch.optim.Adagrad.step = functools.wraps(step)(lambda self, *args: step(self, *args))
        d.start(model)
        d.stop()
    finally:
        _optimizer.inspect.unwrap, torch.optim.Adagrad.step = real, step
    equal((again, len(unwrapped) - again), (0, 1))


@test
def a_tensor_on_a_device_is_reduced_there_and_fetched_once():
    from msprobe.pytorch import _tensors
    cases = [torch.tensor([1.5, -2.5, 3.0]), torch.tensor([[1, 2], [3, 4]]),
             torch.tensor([True, False]), torch.tensor(7.0), torch.ones(3).bfloat16(),
             torch.zeros(0, 2), torch.tensor([float("nan"), 1.0])]

    def run(path):
        from msprobe.pytorch import PrecisionDebugger
        d = PrecisionDebugger._instance or debugger(level="L1")
        d.start()
        for t in cases:
            torch.clone(t)
        d.stop()
        d.step()
        return path

    run("host")
    fetched, real = [], _tensors._cpu
    _tensors._cpu = lambda t: fetched.append(t) or real(t)
    _tensors.simulate_device(True)
    run("device")
    equal(json.dumps(data(0)), json.dumps(data(1)))
    # one for each type, however many tensors there are
    assert 0 < len(fetched) <= 5, len(fetched)


@test
def functions_of_mindspeed_are_dumped():
    os.makedirs("mindspeed/ops")
    for name, text in (("__init__", ""), ("ops/__init__", ""), ("ops/npu_matmul_add", "1 / 0"),
                       ("ops/gmm", "import torch\ndef npu_gmm(x):\n    return torch.relu(x)\n")):
        with open(f"mindspeed/{name}.py", "w", encoding="utf-8") as f:
            f.write(text)
    sys.path.insert(0, os.getcwd())
    d = debugger(level="L1")
    from mindspeed.ops.gmm import npu_gmm
    d.start()
    npu_gmm(torch.ones(2))
    d.stop()
    equal(list(data()), ["MindSpeed.npu_gmm.0.forward"])


@test
def operators_of_extensions_are_dumped():
    spaces = [torch.library.Library(name, "DEF") for name in ("mine", "other")]
    for space in spaces:
        space.define("twice(Tensor x) -> Tensor")
        space.impl("twice", lambda x: x + x, "CPU")
    d = debugger(level="L1", custom_op_namespaces=["mine", "late", "absent"])
    later = torch.library.Library("late", "DEF")
    later.define("thrice(Tensor x) -> Tensor")
    later.impl("thrice", lambda x: x * 3, "CPU")
    for _ in range(2):
        d.start()
        for name in ("mine", "other"):
            getattr(torch.ops, name).twice(torch.ones(2))
        torch.ops.late.thrice(torch.ones(2))
        d.stop()
        d.step()
    equal([n for n in data(1) if not n.startswith("Tensor")],
          ["mine.twice.0.forward", "late.thrice.0.forward"])
    equal(data(0)["late.thrice.0.forward"]["output"][0]["Max"], 3.0)


@test
def gradients_are_of_modules_that_were_called():
    model, d = nn.Sequential(nn.MultiheadAttention(4, 2)), debugger()
    x = torch.linspace(-1, 1, 8).reshape(2, 1, 4)
    d.start(model)
    model[0](x, x, x)[0].sum().backward()
    d.stop()
    equal([n for n in data() if "parameters_grad" in n],
          ["Module.0.MultiheadAttention.parameters_grad.0"])


@test
def recomputation_counts_on():
    from torch.utils.checkpoint import checkpoint
    model, d = Two(), debugger()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.two = model

        def forward(self, x):
            return checkpoint(self.two, x)

    outer = Outer()
    one_step(d, outer, torch.randn(2, 4, requires_grad=True))
    names = list(data())
    assert "Module.two.Two.forward.1" in names and "Functional.linear.1.backward" in names, names


@test
def arguments_go_before_the_file():
    from msprobe.pytorch import PrecisionDebugger
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"task": "tensor", "dump_path": "wrong", "level": "L0", "step": [5],
                   "statistics": {"summary_mode": "md5"}}, f)
    d = PrecisionDebugger("config.json", task="statistics", dump_path="out", level="L1", step=[0])
    d.start()
    torch.relu(torch.ones(2))
    d.stop()
    assert "md5" in data()["Torch.relu.0.forward"]["output"][0] and not os.path.exists("wrong")


@test
def a_process_without_a_rank_is_none_of_those_chosen():
    d = debugger(level="L1", rank=[0, 1])
    d.start()
    torch.relu(torch.ones(2))
    d.stop()
    d.step()
    equal(os.path.exists("out"), False)


@test
def dump_enable_is_looked_at_again():
    import time
    d = debugger(level="L1", dump_enable=False)
    keys = json.load(open("config.json", encoding="utf-8"))

    def step():
        d.start()
        torch.relu(torch.ones(2))
        d.stop()
        d.step()

    step()
    for on, wait in ((True, 3.1), (False, 0.6)):
        with open("config.json", "w", encoding="utf-8") as f:
            json.dump({**keys, "dump_enable": on}, f)
        time.sleep(wait)
        step()
    equal(sorted(os.listdir("out")), ["step1"])
    with open("config.json", "w", encoding="utf-8") as f:
        f.write("{ broken")
    step()
    equal(sorted(os.listdir("out")), ["step1"])


@test
def ranks_of_a_group_dump_communication():
    script = f"""
import sys, os, json
sys.path.insert(0, {os.path.join(BUILD, 'python')!r})
import torch, torch.distributed as dist
from msprobe.pytorch import PrecisionDebugger
rank = int(sys.argv[1])
d = PrecisionDebugger(level="L1", dump_path="out")
dist.init_process_group("gloo", init_method="file://" + os.path.abspath("store"), rank=rank,
                        world_size=2)
d.start()
t = torch.full((2,), float(rank + 1))
dist.all_reduce(t)
work = dist.all_reduce(t, async_op=True)
u = torch.relu(t * 0)
work.wait()
if rank == 0:
    dist.send(t, 1)
else:
    dist.recv(t, 0)
d.stop()
dist.barrier()
dist.destroy_process_group()
"""
    if not torch.distributed.is_available():
        return "torch has no distributed"
    ranks = [subprocess.Popen([sys.executable, "-c", script, str(r)]) for r in range(2)]
    equal([p.wait(60) for p in ranks], [0, 0])
    with open("out/step0/rank1/dump.json", encoding="utf-8") as f:
        found = json.load(f)["data"]
    first, second = found["Distributed.all_reduce.0.forward"], found["Distributed.all_reduce.1.forward"]
    equal([first["input_args"][0]["Max"], first["output"][0]["Max"]], [2.0, 3.0])
    equal([v.get("Max", v.get("value")) for v in second["output"]], [6.0, True])
    equal(found["Distributed.recv.0.forward"]["input_args"][0], None)
    return None


@test
def seeds_make_runs_equal():
    from msprobe.pytorch import seed_all
    seed_all(5)
    a = torch.rand(3)
    seed_all(5, rm_dropout=True)
    assert torch.equal(a, torch.rand(3)) and torch.equal(F.dropout(a, 0.5, True), a)
    try:
        seed_all(-1)
        raise AssertionError("a seed below 0 was taken")
    except ValueError:
        pass


@test
def one_module_can_be_dumped_by_a_name_of_its_own():
    from msprobe.pytorch import module_dump, module_dump_end
    model, d = Two(), debugger()
    d.start(model)
    d.stop()
    other = nn.Linear(4, 4)
    d.start(model)
    module_dump(module=other, dump_name="special")
    other(torch.ones(1, 4))
    torch.relu(torch.ones(1))
    module_dump_end()
    d.stop()
    equal([n for n in data() if "special" in n], ["Module.special.Linear.forward.0"])
    assert not any("relu" in n for n in data())


@test
def calls_of_a_token_range():
    model, d = Two(), debugger()
    d.start(model, token_range=[1, 2])
    for _ in range(5):
        model(torch.ones(1, 4))
    d.stop()
    equal(len([n for n in data() if "linear" in n]), 2)


# ---- names beside the debugger ---------------------------------------------------


@test
def help_shows_types_and_texts():
    import pydoc
    from msprobe.pytorch import PrecisionDebugger
    text = pydoc.plaintext.document(PrecisionDebugger)
    for words in ("config_path: str = None", "level: str = None", "step: list = None", "config_path: the path",
                  "token_range: list = None", "name: str, save_backward: bool = True"):
        assert words in text, (words, text[:900])


@test
def calls_that_draw_random_numbers_are_listed():
    import csv
    import random
    from msprobe.pytorch import random_save
    torch.manual_seed(1)
    without = torch.rand(3)
    random_save("drawn")
    torch.manual_seed(1)
    assert torch.equal(torch.rand(3), without)
    torch.empty(2).uniform_()
    random.random()
    torch.rand(1)
    with open(glob.glob("drawn/random_proc*_*.csv")[0], encoding="utf-8", newline="") as f:
        header, *rows = csv.reader(f)
    equal(header, ["api_name", "stack"])
    equal([row[0] for row in rows], ["torch_random.rand.0", "tensor_random.uniform_.0",
                                     "python_random.random.0", "torch_random.rand.1"])
    assert all(__file__ in row[1] and "_random.py" not in row[1] for row in rows), rows


@test
def a_list_that_cannot_be_written_stops_no_training():
    from msprobe.pytorch import random_save
    random_save("drawn")
    os.rename("drawn", "elsewhere")
    equal(list(torch.rand(3).shape), [3])
    equal(list(torch.rand(2).shape), [2])


@test
def enhanced_seeds_give_each_call_the_same_state():
    from msprobe.pytorch import seed_all
    seed_all(5, is_enhanced=True)
    a = torch.rand(3)
    torch.randn(7)
    assert torch.equal(a, torch.rand(3))


@test
def tensors_saved_by_hand_are_compared():
    import zipfile
    from msprobe.core import SingleComparator, SingleSave
    for at, top in enumerate(("one", "two")):
        SingleSave._instance = None
        SingleSave(top)
        for step in range(2):
            SingleSave.save({"x": torch.tensor([1.0, 2.0 + at * step, float(step)]), "n": torch.arange(4)})
            SingleSave.save({"x": (torch.ones(2), torch.zeros(0))})
            SingleSave.step()
        SingleSave.save_config({"lr": 1})
    with open("one/data/x/step1/rank0/micro_step0/x.json", encoding="utf-8") as f:
        equal(json.load(f)["data"], {"max": 2.0, "min": 1.0, "mean": 4 / 3, "norm": math.sqrt(6), "shape": [3]})
    with open("one/data/x/step0/rank0/micro_step1/x.json", encoding="utf-8") as f:
        equal([leaf["shape"] for leaf in json.load(f)["data"]], [[2], [0]])
    SingleComparator.compare("one", "two", "out")
    equal(sorted(os.listdir("out")), ["n.xlsx", "x.xlsx"])
    text = zipfile.ZipFile("out/x.xlsx").read("xl/worksheets/sheet1.xml").decode()
    rows = [re.findall(r"<c(?:/>|[^>]*>(?:<v>|<is><t[^>]*>)([^<]*))", row) for row in text.split("<row>")[1:]]
    equal(len(rows), 7)
    equal(rows[4][:4] + rows[4][6:10], ["1", "0", "0", "0", str(2 / 3 * 100), "1", "1.0", str(1 / 3)])
    found = SingleComparator.compare_arrays(*(torch.tensor(v).numpy() for v in ([1.0, 0.0], [1.0, 0.0])))
    equal((found.same_percentage, found.first_mismatch_index, found.max_relative_error), (100.0, None, 0.0))


@test
def torchair_is_told_to_dump():
    import types
    from msprobe.pytorch import set_fx_dump_config, set_ge_dump_config
    try:
        set_fx_dump_config("fx")
        raise AssertionError("there is no torchair here, and nothing was said")
    except ModuleNotFoundError as why:
        assert "torchair" in str(why)
    part = types.SimpleNamespace

    class CompilerConfig:
        def __init__(self):
            self.debug = part(data_dump=part(type=None, path=None, filter=None), graph_dump=part(type=None, _path=None))
            self.dump_config, self.fusion_config = part(), part()

    for name in ("torch_npu", "torchair", "torchair.configs", "torchair.configs.compiler_config"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchair.configs.compiler_config"].CompilerConfig = CompilerConfig
    fx = set_fx_dump_config("fx", op_list=["MatMul"]).debug.data_dump
    equal((fx.type, fx.path), ("npy", os.path.realpath("fx/msprobe_fx_dump")))
    matmul, add = part(name="aten_matmul_1"), part(name="add")
    assert fx.filter(matmul) is matmul and fx.filter(add) is None
    mine = CompilerConfig()
    assert set_ge_dump_config("ge", "input", dump_token=[1, 2], dump_layer=["a", "b"], compiler_config=mine) is mine
    equal((mine.debug.graph_dump.type, mine.debug.graph_dump._path), ("txt", os.path.realpath("ge/msprobe_ge_dump")))
    equal(vars(mine.dump_config), {"enable_dump": True, "dump_mode": "input", "dump_path": mine.debug.graph_dump._path,
                                   "dump_step": "1|2", "dump_layer": "a b"})
    for wrong, keys in ((TypeError, {"compiler_config": 3}), (FileNotFoundError, {"fusion_switch_file": "none"})):
        try:
            set_ge_dump_config("ge", **keys)
            raise AssertionError(f"{keys} was taken")
        except wrong:
            pass


@test
def a_module_more_costs_a_step_no_python_of_ours():
    """But the two hooks, which are functions of Python where compilers have to skip them, and from version 2 the
    two questions whether there will be a backward."""
    d = debugger(level="L0", statistics={"data_mode": ["forward"]})
    ours = os.path.join(BUILD, "python", "msprobe")

    def calls_of(model):
        seen = []

        def profile(frame, event, _arg):
            if event == "call" and frame.f_code.co_filename.startswith(ours):
                seen.append(frame.f_code.co_name)
        for _ in range(3):
            seen.clear()
            sys.setprofile(profile)
            d.start(model)
            with torch.no_grad():
                model(torch.ones(2, 4))
            d.stop()
            sys.setprofile(None)
            d.step()
        return len(seen)

    few, many = (calls_of(nn.Sequential(*[nn.Linear(4, 4) for _ in range(n)])) for n in (2, 12))
    a_module = 4 if torch.__version__ >= "2" else 0
    equal((many - few) // 10, a_module)


@test
def gradients_are_of_what_is_trained_now():
    """A parameter that is frozen after a step has no gradient then; one that Megatron holds has it as main_grad."""
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)), torch.ones(2, 4)
    d = debugger(level="L0")
    one_step(d, model, x)
    model[0].weight.requires_grad_(False)
    model[1].bias.main_grad = torch.full((4,), 7.0)
    one_step(d, model, x)
    found = [{name: {key: leaf[0]["Max"] for key, leaf in record.items()}
              for name, record in data(step).items() if "parameters_grad" in name} for step in (0, 1)]
    equal([{name: sorted(one) for name, one in step.items()} for step in found],
          [{"Module.1.Linear.parameters_grad.0": ["bias", "weight"], "Module.0.Linear.parameters_grad.0": ["bias", "weight"]},
           {"Module.1.Linear.parameters_grad.0": ["bias", "weight"], "Module.0.Linear.parameters_grad.0": ["bias"]}])
    equal(found[0]["Module.1.Linear.parameters_grad.0"]["bias"], 2.0)
    equal(found[1]["Module.1.Linear.parameters_grad.0"]["bias"], 7.0)


@test
def gradients_of_saved_values_may_arrive_at_once():
    from msprobe import _saved
    written, waiting = [], []

    class Probe:
        @staticmethod
        def save(name, value, *_):
            written.append((name, value))

    def watch(value, then):
        if not isinstance(value, int):
            return None
        if value == 0:
            waiting.append(then)  # this one arrives last
        elif value > 0:
            then(-value)  # while the hook is being registered
        return value >= 0

    kept, _saved._probe = _saved._probe, Probe
    try:
        _saved.SavedGradients(1, "one", 0, watch)
        _saved.SavedGradients([2, {"a": 3}, "text", -1], "many", 0, watch)
        _saved.SavedGradients([4, 0], "late", 0, watch)
        equal(written, [("one", -1), ("many", [-2, {"a": -3}, None, None])])
        waiting[0](7)
        equal(written[2:], [("late", [-4, 7])])
    finally:
        _saved._probe = kept


if __name__ == "__main__":
    main()
