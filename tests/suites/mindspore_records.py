# SPDX-License-Identifier: MIT
"""What a dump of MindSpore records, and its figures: tests for suite_mindspore.py."""
import json
import zlib

import mindspore
import numpy as np
from mindspore import Tensor, mint, nn, ops

from mindspore_cases import F, Two, batch, called, data, debugger, figures, leaf_of, one_step, read, saved, test

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
    assert any("mindspore_cases.py" in f and "in construct" in f for f in frames)
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
