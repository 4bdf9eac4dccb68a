# SPDX-License-Identifier: MIT
"""Tests of the MindSpore adapter, each in a process of its own.

    suite_mindspore.py BUILD [WORD]      prints "ok NAME" or "not ok NAME"
"""
import atexit
import glob
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import zlib

BUILD = os.path.abspath(sys.argv[1])
TESTS = []
SKIPPED = 77
SECONDS = 300  # of a test


def test(func):
    TESTS.append(func)
    return func


def become(func, folder):
    """Runs a test in this process, which ends."""
    signal.alarm(SECONDS)
    log = os.open(os.path.join(folder, "said"), os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.chdir(os.path.join(folder, "scratch"))
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    status = 1
    try:
        func()
        atexit._run_exitfuncs()
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def run(func, folder):
    """Runs a test in a process of its own; returns its status and what it said."""
    os.mkdir(os.path.join(folder, "scratch"))
    pid = os.fork()
    if pid == 0:
        become(func, folder)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with open(os.path.join(folder, "said"), encoding="utf-8", errors="replace") as f:
        return status, f.read().splitlines() or [f"status {status}"]


def main(word):
    """The framework's threads do not survive a fork, and do not exist before its first operator: one
    process imports it and becomes all the tests."""
    failed = False
    for func in TESTS:
        if word not in func.__name__:
            continue
        folder = tempfile.mkdtemp(prefix="msprobe-mindspore-")  # no finalizer, which the child would run
        status, said = run(func, folder)
        shutil.rmtree(folder, ignore_errors=True)
        if status == SKIPPED:
            print(f"skip {func.__name__}: {said[-1]}", flush=True)
            continue
        print(("ok " if status == 0 else "not ok ") + func.__name__, flush=True)
        if status != 0:
            failed = True
            print("\n".join("    " + line for line in said[-12:]), flush=True)
    sys.exit(failed)


sys.path.insert(0, os.path.join(BUILD, "python"))
import mindspore  # noqa: E402
import numpy as np  # noqa: E402
from mindspore import Tensor, mint, nn, ops  # noqa: E402
F = mint.nn.functional


class Two(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc = mint.nn.Linear(4, 4)
        self.act = nn.ReLU()
        self.fc.weight.set_data(Tensor(np.arange(16, dtype=np.float32).reshape(4, 4) / 10))
        self.fc.bias.set_data(Tensor(np.float32([-1, 0, 1, 2])))

    def construct(self, x):
        return self.act(self.fc(x)) * 2


# ---- help ---------------------------------------------------------------------


def debugger(**keys):
    """A debugger with a config.json of these keys in the current folder."""
    from msprobe.mindspore import PrecisionDebugger
    keys = {"task": "statistics", "dump_path": "out", "level": "mix", "rank": [], "step": [],
            **keys}
    with open("config.json", "w", encoding="utf-8") as f:
        json.dump(keys, f)
    return PrecisionDebugger(config_path="config.json")


def read(name="dump.json", step=0):
    with open(os.path.join(glob.glob(f"out/step{step}/*")[0], name), encoding="utf-8") as f:
        return json.load(f)


def data(step=0):
    return read(step=step)["data"]


def leaf_of(record, part="input_args", index=0):
    return data()[record][part][index]


def saved(name):
    return np.load(glob.glob(f"out/step0/*/dump_tensor_data/{name}.npy")[0])


def batch():
    return Tensor(np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4))


def one_step(d, model, x):
    """The gradients of the model's parameters."""
    gradients_of = mindspore.value_and_grad(lambda t: model(t).sum(), None,
                                            model.trainable_params())
    d.start(model)
    _, gradients = gradients_of(x)
    d.stop()
    d.step()
    return [g.asnumpy() for g in gradients]


def called(function, *args, **keys):
    """Dumped at level L1, called once."""
    d = debugger(level="L1", **keys)
    d.start()
    function(*args)
    d.stop()
    d.step()


# ---- what is recorded -----------------------------------------------------------


@test
def cells_hold_what_is_called_in_them():
    one_step(debugger(), Two(), batch())
    construct, top = read("construct.json"), read()
    assert top["framework"] == "mindspore" and top["level"] == "mix"
    assert construct["Cell.fc.Linear.forward.0"] is None
    assert "Cell.act.ReLU.forward.0" in top["data"] and "Tensor.__mul__.0.forward" in top["data"]
    record = top["data"]["Cell.fc.Linear.forward.0"]
    assert list(record) == ["input_args", "input_kwargs", "output", "parameters"]
    assert list(record["parameters"]) == ["weight", "bias"]
    assert list(record["output"][0]) == ["type", "dtype", "shape", "Max", "Min", "Mean", "Norm"]
    assert record["output"][0]["type"] == "mindspore.Tensor"
    assert record["output"][0]["dtype"] == "Float32"


@test
def primitives_of_cells_are_recorded_in_them():
    model = nn.SequentialCell(nn.LayerNorm((4,)), nn.ReLU())
    gradients = one_step(debugger(task="tensor"), model, batch())
    name = next(n for n in data() if n.startswith("Primitive.layer_norm.LayerNorm.0.f"))
    assert read("construct.json")[name] == "Cell.0.LayerNorm.forward.0"
    assert [leaf["shape"] for leaf in data()[name]["input_args"]] == [[2, 4], [4], [4]]
    assert (saved(name.replace("forward", "backward") + ".output.1") == gradients[0]).all()


@test
def cells_have_only_the_programs_hooks_after_stop():
    model, d = Two(), debugger()
    model.fc.register_forward_hook(lambda cell, inputs, output: output + 1)
    names = ("_forward_pre_hook", "_forward_hook", "_forward_pre_hook_with_kwargs", "_forward_hook_with_kwargs",
             "_forward_hook_always_called")

    def tables():
        return [list(getattr(cell, name, ())) for _, cell in model.cells_and_names() for name in names]
    before = tables()
    for _ in range(2):
        one_step(d, model, batch())
        assert tables() == before
        model(batch())
    assert list(data(0)) == list(data(1))
    assert data(1)["Cell.fc.Linear.forward.0"] == data(0)["Cell.fc.Linear.forward.0"]  # the hook before the program's


@test
def stacks_show_the_program_and_not_the_tool():
    one_step(debugger(), Two(), batch())
    frames = [f for _, frames in read("stack.json").values() for f in frames]
    assert any("suite_mindspore.py" in f and "in construct" in f for f in frames)
    assert not any("/msprobe/" in f for f in frames)


@test
def gradients_of_cells_and_parameters_are_those_of_the_framework():
    weight, bias = one_step(debugger(task="tensor"), Two(), batch())
    record = data()["Cell.fc.Linear.parameters_grad.0"]
    assert sorted(record) == ["bias", "weight"]
    assert (saved("Cell.fc.Linear.parameters_grad.0.weight") == weight).all()
    assert (saved("Cell.fc.Linear.parameters_grad.0.bias") == bias).all()
    assert (saved("Cell.act.ReLU.backward.0.input.0") == 2).all()
    out = saved("Cell.fc.Linear.forward.0.output.0")
    assert (saved("Cell.act.ReLU.backward.0.output.0") == 2 * (out > 0)).all()
    assert (saved("Cell.fc.Linear.backward.0.input.0") == 2 * (out > 0)).all()


@test
def functions_of_all_kinds_have_their_prefix():
    x = batch()
    called(lambda: (mint.matmul(x, x.transpose(0, 1)), F.relu(x), ops.tanh(x), x + 1, x.sum()))
    assert {"Mint.matmul.0.forward", "Tensor.transpose.0.forward", "MintFunctional.relu.0.forward",
            "Functional.tanh.0.forward", "Tensor.__add__.0.forward",
            "Tensor.sum.0.forward"} <= set(data())


@test
def each_use_of_a_tensor_has_its_own_gradient():
    x, three, five = (Tensor(np.float32(n)) for n in ([1, 2, 3], 3, 5))  # 2.7 has no kernel for numbers
    d = debugger(level="L1", task="tensor")
    d.start()
    gradient = mindspore.grad(lambda t: (mint.mul(t, three) + mint.mul(t, five)).sum())(x)
    d.stop()
    d.step()
    assert (gradient.asnumpy() == 8).all()
    assert (saved("Mint.mul.0.backward.output.0") == 3).all()
    assert (saved("Mint.mul.1.backward.output.0") == 5).all()


@test
def a_function_that_writes_to_its_argument_still_does():
    def function(t):
        y = t * 1
        y.add_(Tensor(np.float32([1, 1, 1])))
        return (y * y).sum()

    x = Tensor(np.float32([1, 2, 3]))
    without = mindspore.value_and_grad(function)(x)
    d = debugger(level="L1")
    d.start()
    with_dump = mindspore.value_and_grad(function)(x)
    d.stop()
    d.step()
    assert (with_dump[0].asnumpy() == without[0].asnumpy()).all()
    assert (with_dump[1].asnumpy() == without[1].asnumpy()).all()


@test
def results_without_a_gradient_have_their_place():
    def function(t):
        y = t * 2
        same = y == y
        values, _ = ops.topk(y, 2)
        return (y * same.to(mindspore.float32)).sum() + values.sum()

    x = batch()
    without = mindspore.grad(function)(x).asnumpy()
    d = debugger(level="L1")
    d.start()
    gradient = mindspore.grad(function)(x)
    d.stop()
    d.step()
    found = data()
    assert (gradient.asnumpy() == without).all()
    assert found["Functional.topk.0.backward"]["input"][1] is None
    assert found["Tensor.__eq__.0.backward"]["output"] == [None]
    assert found["Tensor.to.0.backward"]["output"] == [] and found["Tensor.to.0.backward"]["input"]


@test
def what_adds_in_place_has_gradients():
    def function(t):
        t += t * 2
        return (t * t).sum()

    d = debugger(level="L1")
    d.start()
    _, gradient = mindspore.value_and_grad(function)(Tensor(np.float32([1, 2, 3])))
    d.stop()
    d.step()
    assert (gradient.asnumpy() == [18, 36, 54]).all(), gradient
    assert figures(leaf_of("Tensor.__iadd__.0.backward", "input"))[:2] == [18, 6]


@test
def keywords_and_types_are_described():
    x = batch()
    called(lambda: (mint.sum(x, dim=1), x.to(mindspore.float16), ops.cast(x, mindspore.float64)))
    kwargs = data()["Mint.sum.0.forward"]["input_kwargs"]
    assert kwargs == {"dim": {"type": "int", "value": 1}}
    assert leaf_of("Functional.cast.0.forward", index=1) == \
        {"type": "mindspore.dtype", "value": "Float64"}


# ---- figures ----------------------------------------------------------------------


def figures(leaf):
    return [leaf[key] for key in ("Max", "Min", "Mean", "Norm")]


@test
def figures_are_those_of_numpy():
    x = mint.transpose(Tensor(np.arange(12, dtype=np.float32).reshape(3, 4)), 0, 1)[1:3]
    assert not x.is_contiguous()
    called(lambda: ops.tanh(x))
    values, leaf = x.asnumpy().astype(np.float64), leaf_of("Functional.tanh.0.forward")
    assert leaf["shape"] == [2, 3]
    expected = [values.max(), values.min(), values.mean(), np.sqrt((values ** 2).sum())]
    assert np.allclose(figures(leaf), expected, rtol=1e-6)


@test
def types_have_the_figures_they_should():
    cases = [(Tensor([1, 2, 3], mindspore.bfloat16), "BFloat16", [3, 1, 2, 3.734375]),
             (Tensor([1, 2, 3], mindspore.int32), "Int32", [3., 1., 2., float(np.sqrt(np.float32(14)))]),
             (Tensor([0.1], mindspore.float64), "Float64", [float(np.float32(0.1))] * 4),
             (Tensor(7, mindspore.int64), "Int64", [7] * 4),
             (Tensor([True, False]), "Bool", [True, False, None, None]),
             (Tensor(2.5, mindspore.float32), "Float32", [2.5] * 4),
             (Tensor(np.zeros((0, 3), np.float32)), "Float32", [None] * 4),
             (Tensor([1, float("nan")], mindspore.float32), "Float32", [float("nan")] * 4)]
    d = debugger(level="debug")
    for i, (tensor, _, _) in enumerate(cases):
        d.save(tensor, f"case{i}")
    d.stop()
    d.step()
    found = read("debug.json")["data"]
    for i, (_, dtype, expected) in enumerate(cases):
        leaf = found[f"case{i}.0.debug"]
        assert leaf["dtype"] == dtype, leaf
        assert str(figures(leaf)) == str([float(e) if type(e) is int and dtype[0] in "BF"
                                          else e for e in expected]), leaf


@test
def digests_are_of_the_bytes():
    x = batch()
    called(lambda: ops.tanh(x), summary_mode="md5", statistics={"summary_mode": "md5"})
    assert leaf_of("Functional.tanh.0.forward")["md5"] == f"{zlib.crc32(x.asnumpy().tobytes()):08x}"


@test
def digests_of_bfloat16_are_of_float32():
    x = Tensor(np.arange(5000, dtype=np.float32)).to(mindspore.bfloat16)
    called(lambda: ops.abs(x), statistics={"summary_mode": "md5"})
    wide = x.to(mindspore.float32).asnumpy().tobytes()
    assert leaf_of("Functional.abs.0.forward")["md5"] == f"{zlib.crc32(wide):08x}"


@test
def a_result_is_complete_before_it_is_read():
    x = Tensor(np.ones((700, 700), np.float32))
    called(lambda: mint.matmul(x, x))
    assert figures(leaf_of("Mint.matmul.0.forward", "output"))[:3] == [700, 700, 700]


@test
def help_shows_types_and_texts():
    import pydoc
    from msprobe.mindspore import PrecisionDebugger
    text = pydoc.plaintext.document(PrecisionDebugger)
    for words in ("config_path: str = None", "step: list = None", "config_path: the path", "token_range: list = None"):
        assert words in text, (words, text[:900])


@test
def tensors_are_saved_by_hand():
    from msprobe.core import SingleSave
    SingleSave("saved", fmk="mindspore")
    SingleSave.save_ex({"x": {"a": Tensor(np.float32([3, 4])), "b": Tensor([1.5], mindspore.bfloat16)}})
    folder = "saved/data/x/step0/rank0/"
    assert (np.load(folder + "x.a.npy") == [3, 4]).all() and np.load(folder + "x.b.npy") == [1.5]
    with open(folder + "x.json", encoding="utf-8") as f:
        found = json.load(f)["data"]["a"]
    assert found == {"max": 4.0, "min": 3.0, "mean": 3.5, "norm": 5.0, "shape": [2]}, found


# ---- the training comes first -------------------------------------------------------


@test
def a_training_computes_the_same():
    def losses(start, stop):
        model = Two()
        optimizer = nn.Momentum(model.trainable_params(), 0.01, 0.9)
        step = mindspore.value_and_grad(lambda t: (model(t) ** 2).mean(), None,
                                        model.trainable_params())
        for _ in range(3):
            start(model)
            loss, gradients = step(batch())
            optimizer(gradients)
            stop()
            yield loss.asnumpy().tobytes()

    without = list(losses(lambda model: None, lambda: None))
    d = debugger()
    assert list(losses(d.start, lambda: (d.stop(), d.step()))) == without
    assert len(set(without)) == 3
    assert "optimizer" in read("construct.json", 2)


@test
def a_failure_in_a_cell_is_the_programs_own():
    class Bad(nn.Cell):
        def construct(self, x):
            raise KeyError("mine")

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.bad, self.good = Bad(), nn.ReLU()

        def construct(self, x):
            try:
                self.bad(x)
            except KeyError:
                pass
            return self.good(x)

    d, model = debugger(level="L0"), Net()
    d.start(model)
    model(batch())
    d.stop()
    d.step()
    assert "Cell.good.ReLU.forward.0" in data()
    if "always_call" not in inspect.signature(nn.Cell.register_forward_hook).parameters:
        print("no hook of this version sees a cell that raises", file=sys.stderr)
        sys.exit(SKIPPED)
    assert list(data()["Cell.bad.Bad.forward.0"]) == ["input_args", "input_kwargs"]
    with open(glob.glob("out/step0/*/dump_error_info.log")[0], encoding="utf-8") as f:
        assert "Cell.bad.Bad.forward.0: ended by an exception" in f.read()
    assert read("construct.json")["Cell.good.ReLU.forward.0"] is None


@test
def only_chosen_steps_are_dumped():
    d, model = debugger(step=[1]), Two()
    for _ in range(3):
        one_step(d, model, batch())
    assert os.listdir("out") == ["step1"]


@test
def a_process_without_a_rank_is_none_of_those_chosen():
    one_step(debugger(rank=[0, 1]), Two(), batch())
    assert not os.path.exists("out"), os.listdir("out")


@test
def a_cell_that_is_called_again_counts():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.act = nn.ReLU()

        def construct(self, x):
            return self.act(self.act(x))

    d, model = debugger(level="L0"), Net()
    d.start(model)
    mindspore.grad(lambda t: model(t).sum())(batch())
    d.stop()
    d.step()
    assert list(data()) == ["Cell.act.ReLU.forward.0", "Cell.act.ReLU.forward.1",
                            "Cell.act.ReLU.backward.1", "Cell.act.ReLU.backward.0"]


@test
def steps_of_a_loop_of_the_framework():
    from msprobe.mindspore import MsprobeInitStep, MsprobeStep
    model, d = Two(), debugger(level="L0", step=[1])
    data_set = mindspore.dataset.NumpySlicesDataset(
        {"x": np.ones((6, 4), np.float32), "y": np.zeros((6, 4), np.float32)}, shuffle=False)
    loop = mindspore.train.Model(model, nn.MSELoss(), nn.SGD(model.trainable_params(), 0.1))
    loop.train(1, data_set.batch(2), callbacks=[MsprobeInitStep(), MsprobeStep(d)],
               dataset_sink_mode=False)
    assert os.listdir("out") == ["step1"]
    assert {"Cell.fc.Linear.forward.0", "Cell.act.ReLU.backward.0"} <= set(data(1))


@test
def calls_of_a_token_range():
    model, d = Two(), debugger()
    for _ in range(2):
        d.start(model, token_range=[1, 2])
        for _ in range(5):
            model(batch())
        d.stop()
        d.step()
    for step in (0, 1):
        assert [n for n in data(step) if "fc.Linear.forward" in n] == \
            ["Cell.fc.Linear.forward.0", "Cell.fc.Linear.forward.1"], list(data(step))


@test
def a_function_of_the_program_is_dumped_when_it_says_so():
    class Own:
        @staticmethod
        def twice(t, by=2):
            return mint.mul(t, Tensor(np.float32(by)))

    real, d = Own.twice, debugger(level="L1")
    d.register_custom_api(Own, "twice", "Mine")
    d.start()
    gradient = mindspore.grad(lambda t: Own.twice(t, by=3).sum())(batch())
    d.stop()
    assert list(data())[0] == "Mine.twice.0.forward"
    assert figures(data()["Mine.twice.0.backward"]["output"][0])[:2] == [3, 3]
    assert (gradient.asnumpy() == 3).all() and "Mint.mul.0.forward" not in data()
    d.restore_custom_api(Own, "twice")
    assert Own.twice is real


@test
def one_cell_can_be_dumped_by_a_name_of_its_own():
    from msprobe.mindspore import module_dump, module_dump_end
    model, other, d = Two(), mint.nn.Linear(4, 4), debugger()
    d.start(model)
    module_dump(module=other, dump_name="special")
    other(batch())
    mint.abs(batch())
    module_dump_end()
    other(batch())
    mint.abs(batch())
    d.stop()
    names = [n for n in data() if "special" in n or "abs" in n]
    assert names == ["Cell.special.Linear.forward.0", "Mint.abs.0.forward"], names


@test
def a_parameter_that_a_cell_gives_back_has_the_gradients_of_all_its_uses():
    class Giving(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = mindspore.Parameter(np.arange(4, dtype=np.float32), name="w")

        def construct(self):
            return self.w

    class Using(nn.Cell):
        def __init__(self):
            super().__init__()
            self.giving = Giving()

        def construct(self, x):
            w = self.giving()
            return ops.mul(w, x).sum() + ops.exp(w).sum() + ops.mul(w, w).sum()

    model, d, x = Using(), debugger(), mindspore.Tensor(np.ones(4, np.float32))
    d.start(model)
    gradients = mindspore.value_and_grad(lambda: model(x), None, model.trainable_params())()[1]
    d.stop()
    d.step()
    given = read("dump.json")["data"]["Cell.giving.Giving.backward.0"]["input"][0]
    assert np.isclose(given["Max"], gradients[0].asnumpy().max()), (given, gradients)


@test
def clipping_and_the_optimizer_hold_what_is_called_in_them():
    class Clipping(nn.Cell):
        def construct(self, x):
            return ops.clip_by_value(x, -0.5, 0.5)

    model, inner, d = Two(), nn.SequentialCell(Clipping()), debugger()
    optimizer = mint.optim.SGD(model.trainable_params(), lr=0.1)
    gradients_of = mindspore.value_and_grad(lambda t: model(t).sum(), None,
                                            model.trainable_params())
    d.start([model, inner])
    inner(batch())
    optimizer(ops.clip_by_global_norm(gradients_of(batch())[1], 1.0))
    d.stop()
    d.step()
    parents = read("construct.json")
    assert parents["clip_grad"] is None and parents["optimizer"] is None
    assert parents["Functional.clip_by_global_norm.0.forward"] == "clip_grad"
    assert parents["Functional.clip_by_value.0.forward"] == "Cell.1.0.Clipping.forward.0"
    assert "optimizer" in parents.values()


@test
def a_strict_dump_has_no_optimizer_and_the_frames_of_a_cell():
    model, d = Two(), debugger(strict=True)
    optimizer = nn.SGD(model.trainable_params(), 0.1)
    gradients_of = mindspore.value_and_grad(lambda t: ops.tanh(model(t)).sum(), None, optimizer.parameters)
    d.start(model)
    optimizer(gradients_of(batch())[1])
    d.stop()
    d.step()
    assert "optimizer" not in [*read("construct.json"), *read("construct.json").values()]
    frames = {name: frames for names, frames in read("stack.json").values() for name in names}
    names = [line.split(", ")[2] for line in frames["Functional.tanh.0.forward"]]
    innermost = names[:names.index("in <lambda>")]  # those of the framework, which has more of them since 2.10
    assert [name for name in innermost if name != "in _run_construct_inner"] == \
        ["in jit_forbidden", "in _run_construct", "in __call__"], innermost


@test
def cells_that_need_no_gradient_of_their_inputs_have_a_backward_each():
    class Net(nn.Cell):
        def __init__(self, depth):
            super().__init__()
            self.inner = Net(depth - 1) if depth else Two()

        def construct(self, x):
            return self.inner(x) + 1

    d, model = debugger(level="L0"), Net(2)
    one_step(d, model, batch())
    found = data()
    for path in ("inner.Net", "inner.inner.Net", "inner.inner.inner.Two"):
        assert figures(found[f"Cell.{path}.backward.0"]["input"][0])[:2] == [1, 1], list(found)
        assert found[f"Cell.{path}.backward.0"]["output"] == [None]


@test
def primitives_are_recorded_at_the_level_of_functions_too():
    one_step(debugger(level="L1"), nn.SequentialCell(nn.Dense(4, 4)), batch())
    found = list(data())
    assert "Primitive.matmul.MatMul.0.forward" in found, found
    assert "Primitive.matmul.MatMul.0.backward" in found
    assert not any(name.startswith("Cell.") for name in found)


@test
def gradients_that_nobody_asks_for_are_not_computed_for_primitives():
    model = nn.SequentialCell(nn.Dense(4, 4), nn.Dense(4, 2))
    one_step(debugger(), model, batch())
    found = data()
    shapes = [[leaf["shape"] for leaf in found[f"Primitive.matmul.MatMul.{at}.backward"]["output"]]
              for at in range(2)]
    assert shapes == [[[4, 4]], [[2, 4], list(batch().shape)]], shapes
    names = list(found)
    weights = [n for n in names if ".parameters_grad." in n]
    assert len(weights) == 2 and len(set(names)) == len(names)
    assert names.index("Primitive.matmul.MatMul.1.backward") < names.index(weights[0]), names


@test
def a_cell_that_calls_itself_counts():
    class Again(nn.Cell):
        def __init__(self):
            super().__init__()
            self.fc = mint.nn.Linear(4, 4)

        def construct(self, x, times=2):
            x = self.fc(x)
            return self(x, times - 1) if times else x

    model = nn.SequentialCell(Again())
    without = [g.asnumpy() for g in mindspore.grad(
        lambda t: model(t).sum(), None, model.trainable_params())(batch())]
    gradients = one_step(debugger(), model, batch())
    assert all((a == b).all() for a, b in zip(without, gradients))
    parents = read("construct.json")
    assert parents["Cell.0.Again.forward.2"] == "Cell.0.Again.forward.1"
    assert parents["Cell.0.fc.Linear.forward.2"] == "Cell.0.Again.forward.2"
    assert "Cell.0.Again.backward.0" in data()


@test
def hooks_that_the_program_takes_away_are_gone():
    d, model = debugger(), nn.SequentialCell(nn.Dense(4, 4), nn.ReLU())
    d.start(model)
    for cell in model:
        cell._forward_hook.clear()
    model[1]._forward_pre_hook.clear()
    mindspore.grad(lambda t: model(t).sum())(batch())
    d.stop()
    d.step()
    assert "Primitive.relu.ReLU.0.backward" in data()


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


if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
