# SPDX-License-Identifier: MIT
"""Compiled graphs: @jit, GRAPH_MODE, and implicit compilation (vmap, jvp).

A wrapper would be compiled into the graph, and the compiler gives an unknown function no gradient.
So while the compiler parses, the framework has its original functions, cells and primitives; while
a graph runs, Python calls from the graph are not recorded.
"""
import functools
import importlib
import threading
import weakref

from mindspore.nn import Cell

from msprobe import _custom, _probe, _say
from msprobe._guard import guarded, surely
from msprobe.mindspore import _cells, _optimizer, _wrap

_lock = threading.RLock()
_depth = 0  # number of nested compilations
_is_told = False
_tracing = 0  # open traces, whose calls are hidden
_places = []  # further Places to restore for a compiler


def hand_back_too(places):
    """Adds Places whose functions are restored while a compiler works."""
    _places.append(places)


def is_compiling():
    """Tells whether the original functions are in place for a compiler."""
    return _depth != 0


def _all_places():
    """Returns all Places, the last added first: one wrapper can enclose another."""
    return [*_places, _custom.places, _optimizer.places, _wrap.places]


_put = []  # functions that put the wrappers back


def _take_all():
    for places in _all_places():
        if places.is_put:
            _put.append(places.put)
        places.take()
    _put.append(_wrap.without_primitives())
    _put.append(_cells.without_hooks())


@guarded
def _hand_back():
    global _depth
    with _lock:
        _depth += 1
        if _depth == 1:
            surely(_take_all)


@guarded
def _come_back():
    global _depth
    with _lock:
        _depth = max(_depth - 1, 0)
        while _depth == 0 and _put:
            surely(_put.pop())


def with_own_functions(func):
    """Wraps func so that the framework's original functions are in place during a call."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        _hand_back()
        try:
            return func(*args, **kwargs)
        finally:
            _come_back()

    return run


# ---- names of kernels ---------------------------------------------------------------------

_models = []  # weak references to models that were given to start() since the last graph of a function was compiled


@guarded
def _name_kernels():
    while _models:
        model = _models.pop()()
        if model is not None:
            model.generate_scope()


def _naming(compile_function):
    """Wraps the compiler of functions, so that each kernel is named by the cell that calls it.

    The framework gives cells their names when it compiles a cell, and keeps those that a cell has. In the graph of a
    function, as that of value_and_grad, all kernels would be named as if no cell called them."""
    @functools.wraps(compile_function)
    def run(*args, **kwargs):
        _name_kernels()
        return compile_function(*args, **kwargs)

    return run


def name_kernels_by_cells(model):
    """Has the kernels of this model named by its cells in the graphs of functions, too."""
    if isinstance(model, Cell) and all(made() is not model for made in _models):
        _models.append(weakref.ref(model))
        _watch_compilers()


# ---- a graph runs -------------------------------------------------------------------------


@guarded
def _tell_once():
    global _is_told
    if not _is_told and _probe.active():
        _is_told = True
        _say.say("what runs inside a compiled graph (@jit, GRAPH_MODE) has no records: use level L2, which has the "
                 "framework dump its graphs")


def tell_no_more():
    """Suppresses the message: the framework dumps the graphs."""
    global _is_told
    _is_told = True


def _running(func):
    """Wraps func, which runs a graph, so that its own calls are not recorded."""
    @functools.wraps(func)
    def run(*args, **kwargs):
        _tell_once()
        return _probe.hidden(functools.partial(func, *args, **kwargs))

    return run


# ---- functions that the program holds -------------------------------------------------------


def own(value):
    """Returns the original function of a wrapper that the program holds."""
    return value.__wrapped__ if isinstance(value, (_probe.Op, _probe.Fn)) else value


class _Namespace:
    """Namespace in which the parser looks up names; returns original functions."""

    def __init__(self, namespace):
        self._namespace = namespace

    def __getitem__(self, name):
        value = self._namespace[name]
        try:
            return own(value)
        except Exception as why:
            _probe.switch_off(f"a name in a graph: {why!r}")
            return value

    def __str__(self):
        return str(self._namespace)

    __repr__ = __str__


def _resolving(resolve):
    make = guarded(_Namespace)

    @functools.wraps(resolve)
    def run(namespace, symbol):
        return resolve(make(namespace) or namespace, symbol)

    return run


def _of_own(make):
    """Wraps a function that returns a compiling decorator."""
    safe = guarded(own)

    @functools.wraps(make)
    def run(*args, **kwargs):
        decorate = make(*args, **kwargs)
        return lambda func: decorate(safe(func) or func)

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


@guarded
def end_traces():
    """Ends all open traces. A function that raises during a trace leaves no other sign."""
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
    """Imports the first module that this version has; the other names are older or newer ones."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    return None


def _watch_compilers():
    """Watches the compilers of functions and of cells; returns the module that holds both."""
    api = _module("mindspore.graph.api", "mindspore.common.api")
    _replace(getattr(api, "JitExecutor_", None), "compile", lambda func: with_own_functions(_naming(func)))
    _replace(getattr(api, "GraphExecutor_", None), "compile", with_own_functions)
    return api


def watch():
    """Watches the compilers of this process; repeated calls have no effect."""
    api = _watch_compilers()
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
