# SPDX-License-Identifier: MIT
"""Communication: results are in the arguments, and can arrive later.

The outputs of a collective are all of its arguments once it is done; an asynchronous collective is
done when the program has waited for it.
"""
import functools
import inspect
import zlib

from msprobe import _probe

# Buffers whose content before the call (bit of the index) is undefined.
_MASKED_INPUT = {"recv": 1, "irecv": 1, "all_gather": 1, "scatter": 1, "reduce_scatter": 1,
                 "_reduce_scatter_base": 1, "_all_gather_base": 1, "all_to_all_single": 1,
                 "all_to_all": 1, "all_gather_into_tensor": 1, "reduce_scatter_tensor": 1,
                 "gather": 2}
_MASKED_OUTPUT = {"isend": 1}
_waiting = []  # (works still in flight, function to call at their end)


def _finish(call, values, mask):
    call.output(values, mask)
    call.done()


def _masked(name, kwargs):
    """Returns the keyword arguments as described before the call."""
    if name == "irecv" and "tensor" in kwargs:
        return {**kwargs, "tensor": None}
    return kwargs


def _signature(func):
    try:
        return inspect.signature(func)
    except (TypeError, ValueError):
        return None


def _is_async(signature, name, args, kwargs):
    if name in ("isend", "irecv", "batch_isend_irecv"):
        return True
    if signature is None:
        return bool(kwargs.get("async_op", False))
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return bool(bound.arguments.get("async_op", False))


def _works_of(result):
    """Returns the works in a result that can be waited for: the result, or items of a list."""
    items = result if isinstance(result, (list, tuple)) else [result]
    return [item for item in items if hasattr(item, "wait")]


def _call(func, args, kwargs):
    return func(*args, **kwargs)


def recorder(func, prefix, name, returns_result=False, pass_on=_call):
    """Returns around(func, args, kwargs), which records a call and passes it on.

    returns_result: the result is the output, and the arguments are not changed."""
    signature = _signature(func)
    mask_in = 0 if returns_result else _MASKED_INPUT.get(name, 0)
    mask_out = 0 if returns_result else _MASKED_OUTPUT.get(name, 0)

    def around(func, args, kwargs):
        call = _probe.enter(prefix, name, args, _masked(name, kwargs), mask_in)
        if call is None:
            return pass_on(func, args, kwargs)
        try:
            result = pass_on(func, args, kwargs)
        except BaseException:
            call.fail()
            raise
        values = tuple(args) + tuple(kwargs.values())
        if returns_result:
            values = result if isinstance(result, tuple) else (result,)
        then = functools.partial(_finish, call, values, mask_out)
        works = _works_of(result) if _is_async(signature, name, args, kwargs) else []
        if works:
            call.detach()
            _waiting.append((works, then))
        else:
            then()
        return result

    return around


def wrapper(func, prefix, name, returns_result=False):
    """Wraps a function that cannot be watched."""
    around = recorder(func, prefix, name, returns_result)

    @functools.wraps(func)
    def run(*args, **kwargs):
        return around(func, args, kwargs)

    return run


def has_ended(work):
    for entry in _waiting:
        works, then = entry
        left = [w for w in works if w is not work]
        if len(left) == len(works):
            continue
        works[:] = left
        if not left:
            _waiting.remove(entry)
            then()
        return


def watch_waiting(cls):
    """Watches wait() of a class of works: the results are there afterwards."""
    real = cls.wait
    if getattr(real, "_is_watched", False):
        return

    def wait(self, *args, **kwargs):
        result = real(self, *args, **kwargs)
        if _waiting:
            has_ended(self)
        return result

    wait._is_watched = True
    cls.wait = wait


def id_of(ranks):
    return f"{zlib.crc32(str(ranks).encode()):08x}"


def describe_group(type_name, ranks_of, group):
    """Returns the leaf of a process group."""
    leaf = {"type": type_name}
    try:
        leaf["group_ranks"] = ranks_of(group)
        leaf["group_id"] = id_of(leaf["group_ranks"])
    except Exception as why:
        _probe.note(f"the ranks of a process group: {why}")
    return leaf


def describe_p2p(class_type, ranks_of, op):
    """Describes a point-to-point operation by its fields."""
    leaf = {"class_type": class_type, "tensor": op.tensor,
            "op": op.op if isinstance(op.op, str) else op.op.__name__,
            "peer": op.peer, "tag": op.tag}
    try:
        leaf["group_id"] = id_of(ranks_of(op.group))
    except Exception as why:
        _probe.note(f"the ranks of a process group: {why}")
    return leaf
