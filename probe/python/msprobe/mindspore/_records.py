# SPDX-License-Identifier: MIT
"""Records of the backward of functions, however their gradients are seen, and what waits for them."""
import mindspore
from mindspore.ops.signature import sig_rw

from msprobe import _probe
from msprobe.mindspore._tensors import is_host


def is_tensor(value):
    return isinstance(value, mindspore.Tensor)


def _writes_to_a_parameter(func, prefix, name):
    """Tells whether a function of ops, or an operator object by its signature, writes to a Parameter."""
    if prefix == "Primitive":
        operator = (getattr(func, "args", None) or (None,))[0]
        return any(getattr(s, "rw", None) == sig_rw.RW_WRITE for s in getattr(operator, "__mindspore_signature__", ()))
    return prefix == "Functional" and (
        name in ("assign", "assign_add", "assign_sub", "index_add") or name.startswith("inplace_") or
        name.startswith("scatter_") and name != "scatter_nd")


def writes_to_its_arguments(func, prefix, name, args):
    """Tells whether a function writes to its arguments: its gradients are not recorded, as the official tool does.

    The operators behind += and the like make new tensors on the CPU."""
    if _writes_to_a_parameter(func, prefix, name):
        return True
    if name.startswith("__i") and name != "__invert__":
        return not all(is_host(t) for t in args if is_tensor(t))
    return name == "__setitem__" or (name.endswith("_") and not name.startswith("__"))


def dump_function(prefix, name, number, grad_input, grad_output):
    call = _probe.enter_backward(prefix, name, number)
    if call is not None:
        call.input(grad_output)
        call.output(grad_input)
        call.done()


# ---- one after another ----------------------------------------------------------

_open = None  # the record of a function that waits for its last gradient
_waiting = []  # (function, gradient) to call when it is complete


def is_open(record):
    return _open is record


def open_record(record):
    """A record waits for further gradients; the one before it is complete."""
    global _open
    if _open is not record:
        settle()
        _open = record


def settle():
    """Writes the open record: some other gradient has arrived, or the backward is over."""
    global _open
    record, _open = _open, None
    if record is not None:
        record.write()
    waiting = _waiting[:]
    _waiting.clear()
    for then, gradient in waiting:
        then(gradient)


def after_the_open_one(record, gradient):
    """Records a parameter's gradient after those of the open record: it arrives between two gradients of the function
    that uses the parameter."""
    if _open is None:
        record(gradient)
    else:
        _waiting.append((record, gradient))
