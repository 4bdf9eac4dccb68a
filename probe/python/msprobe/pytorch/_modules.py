# SPDX-License-Identifier: MIT
"""Hooks of the modules of a model, and of their parameters' gradients."""
import sys
import weakref

import torch

from msprobe import _probe
from msprobe._gradients import NODES_MAX, ONE, Gradients
from msprobe._values import items_of
from msprobe.pytorch import _fast_path
from msprobe.pytorch._tensors import NO_HOOK, PICKLED_HOOK, is_traced

VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
_TAKES_KWARGS = VERSION >= (2, 0)
_ALWAYS_CALLED = VERSION >= (2, 1)
_SKIPPED = {"FullyShardedDataParallel"}
_AROUND = 1  # a group of watched functions
BEFORE, RETURNED, RAISED = 1, 2, 4  # when a function is told of a call: see ext_watch.c


_is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None) or \
    (getattr(torch._utils, "is_compiling", None) if VERSION >= (2, 0) else None) or bool  # False
_compiler = torch.compiler if hasattr(getattr(torch, "compiler", None), "_is_compiling_flag") else None
_is_dynamo = getattr(_compiler, "is_dynamo_compiling", None) or _is_compiling
_LAZY = torch.nn.parameter.UninitializedTensorMixin


# ---- gradients of modules: see msprobe/_gradients.py -------------------------


def _collect(value, found):
    """Appends the tensors that want a gradient, in order."""
    if isinstance(value, torch.Tensor):
        if value.requires_grad:
            found.append(value)
    elif isinstance(value, (list, tuple)):
        for item in items_of(value) or ():
            if not isinstance(item, torch.Tensor):
                _collect(item, found)
            elif item.requires_grad:
                found.append(item)
    elif isinstance(value, dict):
        for item in dict.values(value):
            _collect(item, found)


def _distinct(value):
    """Returns the distinct tensors that want a gradient, and for each place its tensor's index, None for a
    repeat."""
    tensors = []
    _collect(value, tensors)
    if len(tensors) < 2:
        return tensors, ONE if tensors else []
    known, places = {}, []
    for t in tensors:
        places.append(None if id(t) in known else len(known))
        known.setdefault(id(t), t)
    return list(known.values()), places


def _edge(t):
    """Returns the destination of a tensor's gradient: (node, index of its output).

    The node of a leaf is created when the leaf is first used, so the number of the leaf represents the node. A
    call holds its arguments to its end, and one more reference to them would be seen by sys.getrefcount."""
    node = t.grad_fn
    return (id(t), 0) if node is None else (node, t.output_nr)


_LEAF_NODE = torch._C._functions.AccumulateGrad
_sequence = getattr(torch._C._autograd, "_get_sequence_nr", None)


def _consumers(results, inputs, began):
    """Returns the nodes between results and inputs that have edges to the inputs.

    Each is (node, [(place among its edges, index of the input)]). A node that is older than the module's
    call is passed over; one without a number counts as new. This runs for each call of each module, so it calls
    no functions of its own."""
    stack = [r.grad_fn for r in results]
    seen, found = set(stack), []
    while stack and len(seen) < NODES_MAX:
        node = stack.pop()
        if began is not None and node._sequence_nr() < began:
            continue
        edges = []
        for place, edge in enumerate(node.next_functions):
            following = edge[0]
            if following is None:
                continue
            is_leaf = type(following) is _LEAF_NODE
            target = inputs.get((id(following.variable), 0) if is_leaf else edge)
            if target is not None:
                edges.append((place, target))
            elif not is_leaf and following not in seen:
                seen.add(following)
                stack.append(following)
        if edges:
            found.append((node, edges))
    return found


_add, _no_grad = torch.add, torch.no_grad
_is_alien = _probe.is_alien
_note = _probe.note  # written in C, so that the exception handlers below cannot fail
_when_over = torch.autograd.Variable._execution_engine.queue_callback  # called after backward


class _Gradients(Gradients):
    __slots__ = ()
    when_over = staticmethod(_when_over)

    @staticmethod
    def add(a, b):
        if is_traced(a):
            return a  # it has a shape and no elements, as the sum would
        with _no_grad():
            return _add(a, b)


class _Come:
    """Hook before a node runs. The module called last encloses the others, so its record begins
    first."""

    __slots__ = ("calls",)

    def __init__(self):
        self.calls = []

    def __call__(self, gradients):
        if _is_dynamo():  # a compiler of backward reads the hooks into its graph
            return
        try:
            for gradient, wanted in reversed(self.calls):
                gradient.come(wanted, gradients)
        except Exception as why:
            if _is_alien(why):
                raise
            _note(f"the gradient of a module's result is left out: {why}")


class _Go:
    """Hook after a node has run. The module called last encloses the others, so its record ends
    last."""

    __slots__ = ("gradients", "edges")

    def __init__(self, gradients, edges):
        self.gradients, self.edges = gradients, edges

    def __call__(self, inputs, _outputs):
        if _is_dynamo():
            return
        try:
            self.gradients.go(self.edges, inputs)
        except Exception as why:
            if _is_alien(why):
                raise
            _note(f"the gradient of a module's input is left out: {why}")


_KEY = "msprobe"  # key in a node's metadata


def _nodes_of(results):
    """Returns the nodes that made the results, each with [(number of its output, index of the result)]."""
    nodes = {}
    for index, r in enumerate(results):
        node = r.grad_fn
        if node is not None:
            nodes.setdefault(node, []).append((r.output_nr, index))
    return nodes


def _watch_results(nodes, gradients):
    """Hooks each node that made a result, once; the hook is kept in the node's metadata."""
    for node, wanted in nodes.items():
        known = node.metadata.get(_KEY)
        if known is None:
            known = node.metadata[_KEY] = _Come()
            node.register_prehook(known)
        known.calls.append((gradients, wanted))


def _watch_tensors(results, gradients):
    """Hooks tensors before version 2, where nodes have no hook that runs before them."""
    for index, r in enumerate(results):
        if r.grad_fn is not None:
            key = f"{_KEY}{r.output_nr}"
            known = r.grad_fn.metadata.get(key)
            if known is None:
                known = r.grad_fn.metadata[key] = _Come()
                r.register_hook(lambda gradient, known=known: known((gradient,)))
            known.calls.append((gradients, [(0, index)]))


_HOOKS_NODES = VERSION >= (2, 0)


def _watch(results, enter, about, places, places_out, through, consumers):
    """Hooks what made the results. Their gradients arrive once for each node, or for each tensor."""
    if _HOOKS_NODES:
        nodes = _nodes_of(results)
        gradients = _Gradients(enter, about, places, places_out, through, len(nodes), consumers)
        _watch_results(nodes, gradients)
    else:
        arrivals = sum([r.grad_fn is not None for r in results])
        gradients = _Gradients(enter, about, places, places_out, through, arrivals, consumers)
        _watch_tensors(results, gradients)
    return gradients


def watch_call(enter, about, edges, places, results, places_out, began):
    """Has enter(*about) told of the gradients of one call: see _Gradients."""
    consumers, through = [], []
    if edges:
        ends = [edges.get(_edge(r)) for r in results]
        inside = [r for r, end in zip(results, ends) if end is None and r.grad_fn is not None]
        consumers = _consumers(inside, edges, began)
        if inside and not consumers:
            return  # no path from the results to the inputs
        through = [(i, end) for i, end in enumerate(ends) if end is not None]
    gradients = _watch(results, enter, about, places, places_out, through, len(consumers))
    for node, of_node in consumers:
        node.register_hook(_Go(gradients, of_node))


_backwards = []


class _Backward:
    """Watches the gradients into and out of a module, call by call."""

    def __init__(self):
        # (hook, number) -> edges of its inputs, their places, and the sequence number at its start; the tensors
        # themselves are held by the call
        self._open = {}
        _backwards.append(self)

    def forget(self):
        """Drops open calls, which have raised."""
        self._open.clear()

    def before(self, hook, module, args, number):
        if torch.is_grad_enabled():
            inputs, places = _distinct(args)
            edges = {_edge(t): i for i, t in enumerate(inputs)}
            self._open[hook, number] = edges, places, _sequence and _sequence()

    def after(self, hook, module, result, number):
        known = self._open.pop((hook, number), None)
        if known is None:
            return
        edges, places, began = known
        results, places_out = _distinct(result)
        if results:
            watch_call(_probe.enter_module_backward, (hook.path, hook.class_name, number), edges, places, results,
                       places_out, began)


# ---- gradients of parameters ------------------------------------------------

# (handle of a gradient hook, module, name of the parameter), until collecting stops. There is no reference
# to the parameter, not even a weak one: PyTorch does not swap the contents of tensors that have one.
_listening = []
_HAS_HOOK = VERSION >= (2, 1)  # PyTorch has a hook after the accumulation of a parameter's gradient
_GRADIENTS = "main_grad", "grad"  # attributes of a parameter; the first that it has is recorded


def _names(parameters):
    """Returns the names of the parameters that may have gradients; without a hook of theirs, of all."""
    if not _HAS_HOOK:
        return list(parameters)
    return [name for name, p in parameters.items()
            if p is not None and p.requires_grad and not isinstance(p, _LAZY)]


def _watchers(hook, names):
    """Returns what records the gradient of each parameter. They share a record, which is complete with the
    gradients of all; without hooks of parameters, of those that the module has used."""
    grads = _probe.Grads(hook, len(names) if _HAS_HOOK else 0)
    return [_probe.Grad(grads, index, name, None, _GRADIENTS) for index, name in enumerate(names)]


def _listen(parameters, module, names, watchers):
    """Hooks the parameters of a module, held by a weak reference. Returns the watchers of those whose node is
    hooked after its use instead."""
    if not _HAS_HOOK:
        return watchers
    later = []
    for name, watcher in zip(names, watchers):
        parameter = dict.get(parameters, name)  # a program's dict may gather what is taken by [name]
        if parameter.is_leaf:
            _listening.append((parameter.register_post_accumulate_grad_hook(watcher), module, name))
        else:
            later.append(watcher)
    return later or None


# ---- models -----------------------------------------------------------------

_hooked = []  # models collected so far, as _Model


def _hooks_of(module):
    """Returns the hooks in C of a module, whose base class may never have been initialised."""
    before = object.__getattribute__(module, "__dict__").get("_forward_pre_hooks", {})
    hooks = [h.hook if type(h) is _Before else h for h in before.values()]
    return [h for h in hooks if type(h) is _probe.Hook]


class _Hook:
    """Hook of a module that compilers skip. A copy does nothing.

    Dynamo knows that it is compiling and reads no further; the flag tells what other compilers do."""

    __slots__ = ("hook",)

    def __init__(self, hook):
        self.hook = hook

    def __deepcopy__(self, _memo):
        return NO_HOOK

    def __reduce__(self):
        return PICKLED_HOOK


class _Before(_Hook):
    __slots__ = ()

    def __call__(self, module, args, kwargs=None):
        if _is_dynamo() or (_compiler and _compiler._is_compiling_flag):
            return None
        return self.hook(module, args, kwargs)


class _After(_Hook):
    __slots__ = ()

    def __call__(self, module, args, *kwargs_and_result):
        if not (_is_dynamo() or (_compiler and _compiler._is_compiling_flag)):
            self.hook(module, args, *kwargs_and_result)


def _has_raised(module, _when):
    """Reports exceptions. Before version 2.1 no hook runs when a module raises, so its call would
    stay open."""
    for hook in _hooks_of(module):
        hook.fail()


_HAS_COMPILER = VERSION >= (2, 0)
# The number of a module's dicts of hooks, as ext_put.c lists them.
_DICTS = 5 if _ALWAYS_CALLED else 4 if _TAKES_KWARGS else 2


def _text(name):
    """Returns a name as UTF-8 has it: a program may give any text, with lone surrogates too."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


class _Hooked:
    """A module of a model; its hooks are in place while calls are collected.

    The hook before is the last of its kind, the hook after the first."""

    __slots__ = ("module", "hook", "after", "entry", "names", "watchers")

    def __init__(self, module, path, backward):
        self.module = weakref.ref(module)
        self.hook = _probe.Hook(_text(path), _text(type(module).__name__), _TAKES_KWARGS)
        self.hook.backward = backward
        self.after = self.hook.after
        hooks = (_Before(self.hook), _After(self.after)) if _HAS_COMPILER else (self.hook, self.after)
        handle = torch.utils.hooks.RemovableHandle
        self.entry = (self.module, *hooks, handle(module._forward_pre_hooks).id, handle(module._forward_hooks).id)
        self.names, self.watchers = None, None

    def watch_parameters(self):
        module = self.module()
        if module is None or not module._parameters:
            return
        names = _names(module._parameters)
        if names != self.names:
            self.names, self.watchers = names, _watchers(self.hook, names)
        self.after.later = _listen(module._parameters, self.module, names, self.watchers)


class _Model:
    """A model that has been collected, held by weak references."""

    def __init__(self, model, prefix, with_backward):
        self.roots = [weakref.ref(m) for m in _chunks(model)]
        backward = _Backward() if with_backward else None
        self.modules = [_Hooked(module, path, backward) for path, module in _named(model, prefix)]
        self.entries = [one.entry for one in self.modules]
        self.is_put = self.with_gradients = False
        for chunk in _chunks(model):
            _fast_path.know(chunk)

    def is_of(self, model):
        chunks = _chunks(model)
        return len(chunks) == len(self.roots) and all(r() is m for r, m in zip(self.roots, chunks))

    def is_gone(self):
        for root in self.roots:
            if root() is not None:
                return False
        return True

    def put(self, with_gradients):
        if self.is_put:
            return
        self.is_put, self.with_gradients = True, with_gradients
        _probe.put_hooks(self.entries, _DICTS)
        if with_gradients:
            for one in self.modules:
                one.watch_parameters()

    def take(self):
        self.is_put = False
        _probe.take_hooks(self.entries, _DICTS)

    def forget(self):
        """Drops what is hooked after the use of parameters."""
        if self.with_gradients:
            for one in self.modules:
                one.after.later = None


def _chunks(models):
    return [models] if isinstance(models, torch.nn.Module) else list(models)


def _named(models, prefix):
    """Yields (path, module) of all modules below the models; chunks of a list by their number."""
    if isinstance(models, torch.nn.Module):
        chunks = [(prefix, models)]
    else:
        chunks = [(f"{i}.", model) for i, model in enumerate(models)]
    for prefix, model in chunks:
        for name, module in model.named_modules():
            if module is model or type(module).__name__ in _SKIPPED:
                continue
            if isinstance(module, torch.jit.ScriptModule):
                _say_compiled(type(module).__name__)
                continue
            yield prefix + name, module


_said = []


def _say_compiled(name):
    """Notes once that compiled modules are not dumped inside."""
    if not _said:
        _said.append(name)
        _probe.note(f"compiled modules are not dumped inside (the first is a {name})")


def check(model):
    if isinstance(model, torch.nn.Module):
        return
    if not isinstance(model, (list, tuple)) or not model or not all(isinstance(m, torch.nn.Module) for m in model):
        raise ValueError("model: expected a torch.nn.Module or a list of them, as the levels L0 "
                         f"and mix need; found {type(model).__name__}")


def hook_model(model, with_backward, with_gradients, prefix=""):
    """Hooks a model until collecting stops.

    The structure has backwards of modules even when no gradients are dumped."""
    _hooked[:] = [one for one in _hooked if not one.is_gone()]
    known = next((one for one in _hooked if one.is_of(model)), None)
    if known is None:
        known = _Model(model, prefix, with_backward)
        _hooked.append(known)
    watch_around()
    known.put(with_gradients)


def hook_known(with_gradients):
    """Hooks all known models again, for a step that begins without start(model)."""
    watch_around()
    for one in _hooked:
        one.put(with_gradients)


_stays = False


def watch_for_good():
    """Watches compilers and tracers until the program ends, as a program may begin with them."""
    global _stays
    _stays = True
    watch_around()


_around = ()  # functions that are watched


def _readers():
    """Returns the functions that read a whole model and that the program has loaded. The exporter of ONNX and counters of
    operations trace by the third; a compiler gives a model with hooks other inputs, which its exporters refuse, and
    graphs of a device refuse modules with hooks."""
    found = [torch.jit.script, torch.jit.trace, torch.jit._get_trace_graph, torch.jit.trace_module]
    for module, name in (("torch.cuda.graphs", "make_graphed_callables"), ("torch.export", "export"), ("torch._dynamo", "export"),
                         ("torch._export", "capture_pre_autograd_graph")):
        found.append(getattr(sys.modules.get(module), name, None))
    return found


def watch_around():
    """Watches the functions around which hooks have to be reported to, or to be removed. The program may have
    replaced one of them."""
    global _around
    around = (torch.nn.Module.__call__, torch.save, *_readers())
    if around != _around:
        call, save, *readers = around
        if not _ALWAYS_CALLED:
            _probe.watch(call, _has_raised, _AROUND, RAISED)
        else:  # which has the layers that look for hooks
            _fast_path.watch(_set_aside, _AROUND)
        for func in filter(None, readers):
            _probe.watch(func, _is_reading, _AROUND, BEFORE | RETURNED | RAISED)
        _probe.watch(save, _is_saving, _AROUND, BEFORE | RETURNED | RAISED)
        _around = around
    _probe.watching(True, _AROUND)


def _stop_listening():
    """Removes the hooks of gradients, and the empty dicts that PyTorch leaves behind."""
    for handle, reference, name in _listening:
        module = reference()
        parameter = dict.get(module._parameters, name) if module is not None else None
        hooks = parameter._post_accumulate_grad_hooks if parameter is not None else None
        if hooks is not None and handle.id in hooks:
            del hooks[handle.id]
        else:
            handle.remove()  # the module has another parameter now
        if hooks is not None and not hooks:
            parameter._post_accumulate_grad_hooks = None
    _listening.clear()


def unhook():
    """Removes everything from the models, their tensors and their graphs after collecting has
    stopped."""
    for one in _hooked:
        one.take()
        one.forget()
    _stop_listening()
    for backward in _backwards:
        backward.forget()
    if not _stays:
        _probe.watching(False, _AROUND)


_reads = []  # the models without hooks, for each compiler or tracer that is reading a model


def is_read():
    """Tells whether a compiler or a tracer is reading a model."""
    return bool(_reads)


_onlookers = weakref.WeakSet()  # monitors, whose hooks are set aside as well


def add_onlooker(monitor):
    """Has a monitor told, by set_aside() and put_back(), when a compiler or a tracer reads a model."""
    _onlookers.add(monitor)
    watch_for_good()


def _is_reading(_model, when):
    """Removes all hooks while a compiler or a tracer reads a model; its calls are not dumped."""
    if when == BEFORE:
        _probe.hide(1)
        _reads.append([one for one in _hooked if one.is_put])
        for one in _reads[-1]:
            one.take()
        for monitor in list(_onlookers):
            monitor.set_aside()
        return
    _probe.hide(-1)
    for monitor in list(_onlookers):
        monitor.put_back()
    for one in _reads.pop():
        _probe.put_hooks(one.entries, _DICTS)
        one.is_put = True


def _is_saving(value, when):
    """Removes all hooks while a whole model is saved: its file is then that of a training without a dump."""
    if issubclass(type(value), torch.nn.Module):
        _is_reading(value, when)


def _set_aside(module):
    """Takes the hooks of a module and of those below it away; returns a function that puts back those whose model has
    not been left meanwhile."""
    below = {id(part) for part in module.modules()}
    known = [(one, [entry for entry in one.entries if id(entry[0]()) in below]) for one in _hooked if one.is_put]
    monitors = list(_onlookers)
    for _, entries in known:
        _probe.take_hooks(entries, _DICTS)
    for monitor in monitors:
        monitor.set_aside()

    def put_back():
        for monitor in monitors:
            monitor.put_back()
        for one, entries in known:
            if one.is_put:
                _probe.put_hooks(entries, _DICTS)
    return put_back


_dumped = []  # modules hooked by module_dump


def hook_one(module, name, with_backward):
    """Hooks a module under a name given by the program; one of a known model keeps its name."""
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module_dump: expected a torch.nn.Module, found {type(module).__name__}")
    if any(module is one.module() for model in _hooked for one in model.modules if model.is_put):
        return
    one = _Hooked(module, name, _Backward() if with_backward else None)
    _probe.put_hooks([one.entry], _DICTS)
    one.watch_parameters()
    _dumped.append(one)


def unhook_one():
    while _dumped:
        _probe.take_hooks([_dumped.pop().entry], _DICTS)
