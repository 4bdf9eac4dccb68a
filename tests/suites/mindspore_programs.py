# SPDX-License-Identifier: MIT
"""Whole programs, ranks, marks and graphs of MindSpore: tests for suite_mindspore.py."""
import glob
import json
import os
import shutil
import subprocess
import sys

import mindspore
import numpy as np
from mindspore import mint, nn, ops

from mindspore_cases import BUILD, SKIPPED, Two, batch, data, debugger, figures, one_step, read, saved, test


@test
def a_second_debugger_is_the_first():
    from msprobe.mindspore import PrecisionDebugger
    first = debugger()
    second = PrecisionDebugger(task="tensor", dump_path="elsewhere", level="L0")
    assert second is first
    one_step(second, Two(), batch())
    assert not os.path.exists("elsewhere") and "Cell.act.ReLU.forward.0" in data()


COMMUNICATING = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import mindspore
import numpy as np
from mindspore import Tensor, mint
from mindspore.communication import get_rank, init
mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_device("CPU")
init("mccl")
open(f"ready{get_rank()}", "w").close()
from msprobe.mindspore import PrecisionDebugger
debugger = PrecisionDebugger(config_path="config.json")
tensor = Tensor(np.full((2, 3), get_rank() + 1, np.float32))
debugger.start()
mint.distributed.all_reduce(tensor)
handle = mint.distributed.all_reduce(tensor, async_op=True)
handle.wait()
parts = [Tensor(np.zeros((2, 3), np.float32)) for _ in range(2)]
mint.distributed.all_gather(parts, tensor)
debugger.stop()
debugger.step()
open(f"done{get_rank()}", "w").close()
until = time.time() + 60  # the launcher ends all others as soon as one is gone
while time.time() < until and not all(os.path.exists(f"done{rank}") for rank in (0, 1)):
    time.sleep(0.02)
os._exit(0)
"""


def free_port():
    import socket
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


@test
def communication_of_two_ranks():
    """Where the framework's own launcher can bring two processes together."""
    with open("train.py", "w", encoding="utf-8") as f:
        f.write(COMMUNICATING)
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"level": "L1", "task": "statistics", "dump_path": "out"}, f)
    launch = ("from mindspore.parallel.cluster.run import main; main()")
    env = {**os.environ, "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
    try:
        said = subprocess.run(
            [sys.executable, "-c", launch, "--worker_num=2", "--local_worker_num=2", "--join=True",
             "--master_port=" + free_port(), "--log_dir=log", "train.py",
             os.path.join(BUILD, "python")], env=env, capture_output=True, text=True, timeout=240)
    except subprocess.TimeoutExpired:
        said = None
    if not all(os.path.exists(f"ready{rank}") for rank in (0, 1)):
        print("the framework's launcher did not bring two processes together", file=sys.stderr)
        sys.exit(SKIPPED)
    assert all(os.path.exists(f"done{rank}") for rank in (0, 1)), said and said.stderr
    for rank in (0, 1):
        with open(f"out/step0/rank{rank}/dump.json", encoding="utf-8") as f:
            found = json.load(f)["data"]
        record = found["MintDistributed.all_reduce.0.forward"]
        assert figures(record["input_args"][0])[:2] == [rank + 1, rank + 1]
        assert figures(record["output"][0])[:2] == [3, 3]
        assert figures(found["MintDistributed.all_reduce.1.forward"]["output"][0])[:2] == [6, 6]
        gathered = found["MintDistributed.all_gather.0.forward"]
        assert gathered["input_args"][0] is None
        assert [figures(leaf)[0] for leaf in gathered["output"][0]] == [6, 6]


SCRIPT = """
import sys
import mindspore
import numpy as np
from mindspore import Tensor, mint, nn, ops
mindspore.set_device("CPU")
mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
mindspore.set_seed(1)

class Block(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = nn.Dense(4, 4)
        self.norm = nn.LayerNorm((4,))

    def construct(self, x):
        return self.norm(self.fc(x)) + x

model, loss = nn.SequentialCell(Block(), nn.ReLU(), nn.Dense(4, 2)), nn.MSELoss()
optimizer = nn.Adam(model.trainable_params(), 0.01)
x, y = (Tensor(np.linspace(-1, 1, 5 * n, dtype=np.float32).reshape(5, n)) for n in (4, 2))
if sys.argv[1] == "functions":
    forward = lambda x, y: loss(model(x), y)
    gradients_of = mindspore.value_and_grad(forward, None, optimizer.parameters)
    for _ in range(3):
        value, gradients = gradients_of(x, y)
        optimizer(gradients)
else:
    step = nn.TrainOneStepCell(nn.WithLossCell(model, loss), optimizer)
    step.set_train()
    for _ in range(3):
        value = step(x, y)
print(float(value))
"""


@test
def a_script_that_knows_nothing_of_it_is_dumped():
    with open("train.py", "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"level": "mix", "step": [0, 2], "dump_path": "out"}, f)
    msprobe = [os.path.join(BUILD, "msprobe"), "run", "-o", "run", "--dump", "config.json", "--"]
    for kind in ("functions", "cells"):
        plain = [sys.executable, "train.py", kind]
        said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout
                for command in (plain, msprobe + plain)]
        assert said[0] and said[0] == said[1], said
        assert sorted(os.listdir("out")) == ["step0", "step2"]
        for step in (0, 2):
            found, parents = data(step), read("construct.json", step)
            assert parents["Cell.0.fc.Dense.forward.0"] == "Cell.0.Block.forward.0"
            assert parents["Cell.0.Block.forward.0"] is None and parents["optimizer"] is None
            assert "Cell.0.Block.backward.0" in found
            assert "Cell.0.fc.Dense.parameters_grad.0" in found, list(found)
            assert "Primitive.layer_norm.LayerNorm.0.forward" in found
        shutil.rmtree("out")


MARKED = """
import sys
import mindspore
import numpy as np
from mindspore import nn
from mindspore.profiler import mstx
mindspore.set_device("CPU")
mindspore.set_context(mode=getattr(mindspore, sys.argv[1]))
mindspore.set_seed(1)
mstx.mark("hello", domain="mine")
whole = mstx.range_start("whole")
model = nn.SequentialCell(nn.Dense(4, 4), nn.ReLU(), nn.Dense(4, 2))
columns = {"x": np.ones((6, 4), np.float32), "y": np.zeros((6, 2), np.float32)}
step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.MSELoss()),
                           nn.Adam(model.trainable_params(), 0.01))
step.set_train()
for x, y in mindspore.dataset.NumpySlicesDataset(columns, shuffle=False).batch(2):
    print(step(x, y).asnumpy().tobytes().hex())
mindspore.save_checkpoint(model, "model.ckpt")
mstx.range_end(whole)
"""


@test
def marks_are_recorded_on_every_device():
    with open("train.py", "w", encoding="utf-8") as f:
        f.write(MARKED)
    msprobe = os.path.join(BUILD, "msprobe")
    for mode in ("PYNATIVE_MODE", "GRAPH_MODE"):
        plain = [sys.executable, "train.py", mode]
        said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout
                for command in (plain, [msprobe, "run", "-o", mode, "--"] + plain)]
        assert len(said[0].split()) == 3 and said[0] == said[1], said
        table = subprocess.run([msprobe, "report", mode], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        found = {tuple(line.split()[:2]): line.split()[2] for line in table if len(line.split()) > 2}
        assert found["mine", "hello"] == "1" and found["mindspore", "dataset"] == "4", found
        assert found["mindspore", "save_checkpoint"] == "1", found
        assert any("whole" in line for line in table), table
        if mode == "PYNATIVE_MODE":
            assert found["mindspore", "optimizer_step"] == "3" and found["mindspore", "step"] == "4"


PROFILED = """
import mindspore
import numpy as np
from mindspore import Tensor, nn
from mindspore.profiler import schedule
mindspore.set_device("CPU")
mindspore.set_context(mode=mindspore.GRAPH_MODE)
model = nn.Dense(4, 2)
step = nn.TrainOneStepCell(nn.WithLossCell(model, nn.MSELoss()), nn.SGD(model.trainable_params()))
x, y = Tensor(np.ones((2, 4), np.float32)), Tensor(np.zeros((2, 2), np.float32))
for kind in (mindspore.profiler.profile, mindspore.profiler.Profiler):
    with kind(schedule=schedule(wait=0, warmup=0, active=1, repeat=1, skip_first=0)) as profiler:
        for _ in range(3):
            step(x, y)
            profiler.step()
    profiler = None
"""


@test
def steps_of_the_profiler_are_marked():
    """In a graph no optimizer is called; the first step holds the compilation."""
    with open("train.py", "w", encoding="utf-8") as f:
        f.write(PROFILED)
    msprobe = os.path.join(BUILD, "msprobe")
    subprocess.run([msprobe, "run", "-o", "run", "--", sys.executable, "train.py"],
                   capture_output=True, check=True)
    table = subprocess.run([msprobe, "report", "run"], capture_output=True, text=True,
                           check=True).stdout
    assert "steps: 6 by marks" in table, table


@test
def a_mistake_in_its_config_ends_a_script_at_once():
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"level": "mux"}, f)
    end = subprocess.run([os.path.join(BUILD, "msprobe"), "run", "-o", "run", "--dump", "config.json",
                          "--", sys.executable, "-c", "import mindspore; print(1)"],
                         capture_output=True, text=True, check=False)
    assert end.returncode == 2 and "level: expected one of" in end.stderr and not end.stdout, end


@test
def a_saved_value_has_its_gradient():
    d = debugger(level="debug")

    def function(t):
        y = t * 2
        d.save(y, "y")
        return (y * 3).sum()

    d.start()
    mindspore.grad(function)(batch())
    d.stop()
    d.step()
    found = read("debug.json")["data"]
    assert list(found) == ["y.0.debug", "y_grad.0.debug"]
    assert figures(found["y_grad.0.debug"])[:2] == [3, 3]


@test
def values_are_saved_without_a_debugger():
    """Where the framework has the kernel: not in graphs on a CPU."""
    from msprobe.mindspore import save, save_grad

    def function(t):
        y = ops.tanh(t) * 2
        save("out", "y", [y, {"more": y}])
        return (save_grad("out", "y", y) * 3).sum()

    mindspore.grad(function)(batch()).asnumpy()
    files = sorted(os.path.basename(f) for f in glob.glob("out/step0/rank0/*"))
    assert files == ["y.0_float32_0.npy", "y.1.more_float32_1.npy", "y_grad_float32_2.npy"], files
    assert (np.load("out/step0/rank0/y_grad_float32_2.npy") == 3).all()


@test
def a_saved_parameter_has_its_gradient_whenever_it_is_saved():
    d, model = debugger(level="debug", task="tensor"), Two()
    gradients_of = mindspore.value_and_grad(lambda t: model(t).sum(), None,
                                            model.trainable_params())
    for _ in range(2):
        d.save(model.fc.weight, "before")
        gradient = gradients_of(batch())[1][0]
        d.step()
    assert (saved("before_grad.0.debug") == gradient.asnumpy()).all()
    assert list(read("debug.json", 1)["data"]) == ["before.0.debug", "before_grad.0.debug"]
    assert not model.fc.weight.hooks(), model.fc.weight.hooks()


@test
def a_dry_run_has_its_structure():
    """The framework computes nothing in one: figures would be those of memory nobody wrote."""
    with open("train.py", "w", encoding="utf-8") as f:
        f.write(SCRIPT)
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump({"level": "mix", "task": "tensor", "dump_path": "out"}, f)
    said = subprocess.run([os.path.join(BUILD, "msprobe"), "run", "-o", "run", "--dump", "config.json",
                           "--", sys.executable, "train.py", "functions"], capture_output=True,
                          text=True, check=True, env={**os.environ, "MS_SIMULATION_LEVEL": "1"})
    assert said.stderr.count("a dry run computes no values") == 1, said.stderr
    assert read()["task"] == "structure" and data() == {} and not os.path.exists(
        "out/step0/rank/dump_tensor_data")
    assert "Cell.0.fc.Dense.forward.0" in read("construct.json")


@test
def what_cannot_be_dumped_is_refused():
    d = debugger()
    for model in (None, 3, []):
        try:
            d.start(model)
        except ValueError as why:
            assert "model" in str(why)
        else:
            raise AssertionError(f"start({model!r}) was taken")


@test
def the_signature_tells_the_parameters():
    import inspect
    from msprobe.mindspore import PrecisionDebugger
    assert list(inspect.signature(PrecisionDebugger).parameters) == \
        ["config_path", "task", "dump_path", "level", "step"]


# ---- graphs ---------------------------------------------------------------------------


def compiled(t):
    return ops.tanh(t) * mint.exp(t).sum()


@test
def what_is_inside_a_graph_is_told_once():
    import contextlib
    import io
    d, function, x = debugger(level="L1"), mindspore.jit(compiled), batch()
    without = mindspore.grad(function)(x).asnumpy()
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        for _ in range(2):
            d.start()
            gradient = mindspore.grad(function)(mint.abs(x)), mindspore.grad(function)(x)
            d.stop()
            d.step()
    assert (gradient[1].asnumpy() == without).all() and abs(without).min() > 0
    assert said.getvalue().count("use level L2") == 1, said.getvalue()
    assert list(data()) == ["Mint.abs.0.forward"], list(data())


@test
def what_a_cell_holds_is_compiled_as_its_own():
    from mindspore.ops import tanh

    class Holding(nn.Cell):
        def __init__(self, function):
            super().__init__()
            self.function = function

        @mindspore.jit
        def construct(self, x):
            return self.function(x).sum()

    without = mindspore.grad(Holding(tanh))(batch()).asnumpy()
    debugger(level="L1").start()
    from mindspore.ops import tanh as wrapped
    assert wrapped is not tanh
    assert (mindspore.grad(Holding(wrapped))(batch()).asnumpy() == without).all()
    assert (mindspore.grad(mindspore.jit(wrapped))(batch()).asnumpy() ==
            mindspore.grad(mindspore.jit(tanh))(batch()).asnumpy()).all()


@test
def level_L2_has_the_framework_dump_its_graphs():
    from msprobe.mindspore import PrecisionDebugger
    d = debugger(level="L2", task="tensor", step=[1], rank=[0])
    with open("out/kernel_kbyk_dump.json", encoding="utf-8") as f:
        common = json.load(f)["common_dump_settings"]
    assert (common["iteration"], common["support_device"]) == ("1", [0]) and \
        common["saved_data"] == "tensor" and common["path"] == os.path.abspath("out")
    function = mindspore.jit(compiled)
    for _ in range(3):
        d.start(Two())
        function(batch()).asnumpy()
        d.stop()
        d.step()
    found = glob.glob("out/rank_0/Net/*/*/Tanh.*.output.0.*.npy")
    assert len(found) == 1 and "/1/" in found[0], found
    assert np.allclose(np.load(found[0]), np.tanh(batch().asnumpy()), atol=1e-6)
    assert PrecisionDebugger() is d


@test
def kernels_of_a_functions_graph_are_named_by_the_cells():
    d, model = debugger(level="L2", task="tensor"), Two()
    mindspore.set_context(mode=mindspore.GRAPH_MODE)

    def forward(x):
        return model(x).sum()

    d.start(model)
    mindspore.value_and_grad(forward, None, model.trainable_params())(batch())[0].asnumpy()
    d.stop()
    d.step()
    name = next(iter(model.name_cells()))
    assert glob.glob(f"out/rank_0/Net/*/*/*Default_{name}-*.npy"), os.listdir("out/rank_0/Net/0/0")


@test
def a_program_of_graphs_is_dumped_by_the_framework():
    d, model = debugger(level="mix"), Two()
    mindspore.set_context(mode=mindspore.GRAPH_MODE)
    d.start(model)
    model(batch()).asnumpy()
    d.stop()
    d.step()
    assert glob.glob("out/rank_0/Net/*/*/*MatMul*.output.0.*.npy"), glob.glob("out/**")
    assert not glob.glob("out/step*")


@test
def seeds_make_runs_equal():
    from msprobe.mindspore import seed_all
    found = []
    for _ in range(2):
        seed_all(7, rm_dropout=True)
        found.append(ops.standard_normal((3,)).asnumpy().tobytes())
    assert found[0] == found[1]
    assert (ops.dropout(batch(), 0.9).asnumpy() == batch().asnumpy()).all()
