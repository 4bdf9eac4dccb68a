# SPDX-License-Identifier: MIT
"""Values and gradients that a program saves inside a compiled graph, and out of one.

    @jit
    def forward(x):
        y = net(x)
        save("dump", "y", y)                    # dump/step0/rank0/y_float32_0.npy
        return save_grad("dump", "y", y).sum()  # dump/step0/rank0/y_grad_float32_1.npy

The framework writes the files and counts the steps; its compiler reads these functions.
"""
import os

import mindspore
from mindspore import Tensor, ops
from mindspore.ops.primitive import _run_op

_NEXT_STEP = "<tensordump-update-step>"


def _place(folder):
    """Returns the path of a file; the framework fills in the step and the rank."""
    return folder.rstrip(os.sep) + os.sep + "{step}" + os.sep + "{rank}" + os.sep


def _write(file, data):
    if data.dtype == mindspore.bfloat16:
        data = data.astype(mindspore.float32)
    ops.TensorDump()(file, data)


def _write_all(file, data):
    if isinstance(data, (list, tuple)):
        for at, item in enumerate(data):
            _write_all(f"{file}.{at}", item)
    elif isinstance(data, dict):
        for key, item in data.items():
            _write_all(f"{file}.{key}", item)
    elif isinstance(data, Tensor):
        _write(file, data)
    elif data is not None:
        raise TypeError("save: expected a Tensor, or lists, tuples and dicts of them")


@mindspore.jit_class
class _Gradient:
    """Passes a tensor on and writes its gradient."""

    def __init__(self, file):
        def write(gradient):
            _write(file, gradient)
            return gradient
        self._pass_on = ops.InsertGradientOf(write)

    def __call__(self, tensor):
        return self._pass_on(tensor)


def save(save_dir, name, data):
    """Write a tensor, or those in lists, tuples and dicts."""
    _write_all(_place(save_dir) + name, data)


def save_grad(save_dir, name, data):
    """Write the gradient of a tensor when it comes; gives the tensor, which is to be used from there on."""
    return _Gradient(_place(save_dir) + name + "_grad")(data)


def step():
    """The step is over: what is saved next belongs to the next one."""
    mindspore.runtime.synchronize()
    flag = Tensor([1], dtype=mindspore.float32)
    _run_op(ops.TensorDump(), "TensorDump", (_NEXT_STEP, flag))
    ops.tensordump(_NEXT_STEP, flag)
    mindspore.runtime.synchronize()
