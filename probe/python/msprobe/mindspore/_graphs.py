# SPDX-License-Identifier: MIT
"""Compiled graphs: @jit, GRAPH_MODE, and what compiles behind the program's back (vmap, jvp).

What stands in the place of a function would be compiled into the graph, and the compiler gives what
it does not know no gradient.  So while it parses, the framework has its own functions, cells and
primitives again; while a graph runs, what Python is called from it is not recorded.
"""
import functools
import importlib
import sys
import threading

from msprobe import _custom, _probe
from msprobe.mindspore import _cells, _optimizer, _wrap

_lock = threading.RLock()
_depth = 0  # compilers at work
_is_told = False
_tracing = 0  # traces that hide what they call
_places = []  # Places of others that have to go, too




def hand_back_too(places):
    """More that has to go while a compiler is at work."""
    _places.append(places)


def is_compiling():
    """Whether the framework has its own functions for a compiler's sake."""
    return _depth != 0


def _all_places():
    """What was put last comes first: one may stand around another."""
    return [*_places, _custom.places, _optimizer.places, _wrap.places]


_put = []  # what has to come back: functions of nothing


def _hand_back():
    global _depth
    with _lock:
        _depth += 1
        if _depth > 1:
            return
        for places in _all_places():
            if places.is_put:
                _put.append(places.put)
            places.take()
        _put.append(_wrap.without_primitives())
        _put.append(_cells.without_hooks())


def _come_back():
    global _depth
    with _lock:
        _depth -= 1
        while _depth == 0 and _put:
            _put.pop()()


def with_own_functions(func):
    """func, during which the framework is as it was without us."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        _hand_back()
        try:
            return func(*args, **kwargs)
        finally:
            _come_back()

    return run


# ---- a graph runs -------------------------------------------------------------------------


def _tell_once():
    global _is_told
    if not _is_told and _probe.active():
        _is_told = True
        print("msprobe: what runs inside a compiled graph (@jit, GRAPH_MODE) has no records: use "
              "level L2, which has the framework dump its graphs", file=sys.stderr, flush=True)


def tell_no_more():
    """Graphs are dumped by the framework."""
    global _is_told
    _is_told = True


def _running(func):
    """func, which runs a graph, and whose own calls of functions are not recorded."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        _tell_once()
        return _probe.hidden(functools.partial(func, *args, **kwargs))

    return run


# ---- what the program holds itself ----------------------------------------------------------


def own(value):
    """What stands behind a wrapper that the program has imported, or holds."""
    return value.__wrapped__ if isinstance(value, (_probe.Op, _probe.Fn)) else value


class _Namespace:
    """Where the parser looks up a name."""

    def __init__(self, namespace):
        self._namespace = namespace

    def __getitem__(self, name):
        return own(self._namespace[name])

    def __str__(self):
        return str(self._namespace)

    __repr__ = __str__


def _resolving(resolve):
    @functools.wraps(resolve)
    def run(namespace, symbol):
        return resolve(_Namespace(namespace), symbol)

    return run


def _of_own(make):
    """What makes a decorator that compiles a function."""
    @functools.wraps(make)
    def run(*args, **kwargs):
        decorate = make(*args, **kwargs)
        return lambda func: decorate(own(func))

    return run


# ---- compilers that run the function ----------------------------------------------------------


def _entering(enter):
    @functools.wraps(enter)
    def run(*args, **kwargs):
        _tell_once()
        _hand_back()
        return enter(*args, **kwargs)

    return run


def _leaving(leave):
    @functools.wraps(leave)
    def run(*args, **kwargs):
        try:
            return leave(*args, **kwargs)
        finally:
            _come_back()

    return run


def _begin_trace(begin):
    @functools.wraps(begin)
    def run(*args, **kwargs):
        global _tracing
        _tell_once()
        _hand_back()
        _probe.hide(1)
        _tracing += 1
        try:
            return begin(*args, **kwargs)
        except BaseException:
            end_traces()
            raise

    return run


def _end_trace(end):
    @functools.wraps(end)
    def run(*args, **kwargs):
        try:
            return end(*args, **kwargs)
        finally:
            end_traces()

    return run


def end_traces():
    """A function that raises while it is traced leaves no other sign."""
    global _tracing
    while _tracing:
        _tracing -= 1
        _probe.hide(-1)
        _come_back()


# ---- once ---------------------------------------------------------------------------------


def _replace(owner, name, make):
    func = getattr(owner, name, None)
    if func is not None and not getattr(func, "_msprobe_watches", False):
        watching = make(func)
        watching._msprobe_watches = True
        setattr(owner, name, watching)


def _module(*names):
    """The first that this version has; the others are its old names, or not there yet."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return None


def watch():
    """Compilers of this process; once more is harmless."""
    api = _module("mindspore.graph.api", "mindspore.common.api")
    for cls in ("JitExecutor_", "GraphExecutor_"):
        _replace(getattr(api, cls, None), "compile", with_own_functions)
    _replace(api._JitExecutor if hasattr(api, "_JitExecutor") else api._MindsporeFunctionExecutor,
             "__call__", _running)
    for name in ("compile", "__call__"):
        _replace(api._CellGraphExecutor, name, _running)
    for name in ("_jit_ast", "_jit_trace"):
        _replace(api, name, _of_own)
    _replace(_module("mindspore.graph._parse", "mindspore._extends.parse"), "resolve_symbol",
             _resolving)
    traces = _module("mindspore.graph.jit_trace", "mindspore.common.jit_trace")
    _replace(traces, "_jit_trace_begin", _begin_trace)
    _replace(traces, "_jit_trace_end", _end_trace)
    by_bytecode = getattr(api, "PIJitCaptureContext", None)
    if by_bytecode is not None:
        _replace(by_bytecode, "__enter__", _entering)
        _replace(by_bytecode, "__exit__", _leaving)
