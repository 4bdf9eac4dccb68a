# SPDX-License-Identifier: MIT
"""Hooks of the modules of a model, and of their parameters' gradients."""
import functools

import torch

from msprobe import _probe
from msprobe._nested import tensors_of

VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
_TAKES_KWARGS = VERSION >= (2, 0)
_ALWAYS_CALLED = VERSION >= (2, 1)
_SKIPPED = {"FullyShardedDataParallel"}


# ---- gradients of modules ---------------------------------------------------
# Nothing of the training is replaced: arguments, results and their containers stay the
# objects that they are, and no node is added to the graph.  What goes back into a module
# is seen before the nodes of its results run; what leaves it, after the nodes inside the
# module that have an edge to one of its inputs.

_NODES_MAX = 100000  # of one call's graph; a larger one is not searched


def _is_watched(value):
    return isinstance(value, torch.Tensor) and value.requires_grad


def _distinct(tensors):
    """The tensors once each, and for each place its number among them, None where one repeats."""
    known, places = {}, []
    for t in tensors:
        places.append(None if id(t) in known else len(known))
        known.setdefault(id(t), t)
    return list(known.values()), places


def _placed(gradients, places):
    return tuple(None if p is None else gradients[p] for p in places)


def _edge(t):
    """Where the gradient of a tensor goes: (node, number of its output).

    The node of a leaf is made when the leaf is first used, so the leaf itself stands for it."""
    node = t.grad_fn
    return (t, 0) if node is None else (node, t.output_nr)


def _target(node, number):
    """The same of an edge as a node has it."""
    leaf = getattr(node, "variable", None)
    return (node, number) if leaf is None else (leaf, 0)


_sequence = getattr(torch._C._autograd, "_get_sequence_nr", None)


def _is_older(node, began):
    """Was the node made before the module was called?  Nodes that say nothing may not be."""
    if began is None:
        return False
    return node._sequence_nr() < began


def _consumers(results, inputs, began):
    """Nodes between the results and the inputs with edges to the inputs:
    (node, [(place among its edges, number of the input)])."""
    stack = [r.grad_fn for r in results if r.grad_fn is not None]
    seen, found = set(stack), []
    while stack and len(seen) < _NODES_MAX:
        node = stack.pop()
        if _is_older(node, began):
            continue
        edges = []
        for place, (following, number) in enumerate(node.next_functions):
            if following is None:
                continue
            target = inputs.get(_target(following, number))
            if target is not None:
                edges.append((place, target))
            elif following not in seen:
                seen.add(following)
                stack.append(following)
        if edges:
            found.append((node, edges))
    return found


class _Gradients:
    """The gradients of one call of a module, from the first that comes in to the last that leaves."""

    __slots__ = ("about", "places_in", "places_out", "through", "sources", "consumers",
                 "given", "sums", "to_come", "to_leave", "call")

    def __init__(self, about, places_in, places_out, through, sources, consumers):
        self.about = about  # path, class and number of the call
        self.places_in, self.places_out = places_in, places_out
        self.through = through  # (result, input) that are one tensor
        self.sources, self.consumers = sources, consumers  # how many nodes there are of each kind
        self._begin()

    def _begin(self):
        self.given = [None] * len(self.places_out)
        self.sums = [None] * len(self.places_in)
        self.to_come, self.to_leave, self.call = self.sources, self.consumers, None

    def come(self, wanted, gradients):
        """A node of the results is about to run."""
        if self.to_come == self.sources:
            self.call = _probe.enter_module_backward(*self.about)
            if self.sources > 1 and self.call is not None:
                _when_over(self.end)  # a result that nobody uses has no gradient
        for number, index in wanted:
            self.given[index] = gradients[number]
        self.to_come -= 1
        if self.to_come == 0 and self.consumers == 0:
            self.leave(at_once=True)

    def go(self, edges, gradients):
        """A node with edges to the inputs has run."""
        for place, index in edges:
            gradient = gradients[place] if place < len(gradients) else None
            if gradient is not None:
                known = self.sums[index]
                self.sums[index] = gradient if known is None else _probe.hidden(_sum, known, gradient)
        self.to_leave -= 1
        if self.to_leave == 0:
            self.leave()

    def end(self):
        """The backward is over."""
        if self.call is not None:
            with _swallowing("the backward of a module"):
                self.leave(at_once=True)

    def leave(self, at_once=False):
        call, given, sums = self.call, self.given, self.sums
        self._begin()
        if call is None:
            return
        for result, of_input in self.through:
            sums[of_input] = given[result] if sums[of_input] is None else sums[of_input]
        call.input(_placed(given, self.places_out))
        call.output(_placed(sums, self.places_in))
        if at_once:
            call.done()
        elif call.leave():
            _when_over(_probe.leave_calls)


_add, _no_grad = torch.add, torch.no_grad
_when_over = torch.autograd.Variable._execution_engine.queue_callback  # of the backward that runs


def _sum(a, b):
    with _no_grad():
        return _add(a, b)


class _Come:
    """Before a node runs: the module called last, which lies around the others, comes first."""

    __slots__ = ("calls",)

    def __init__(self):
        self.calls = []

    def __call__(self, gradients):
        with _swallowing("the gradient of a module's result"):
            for gradient, wanted in reversed(self.calls):
                gradient.come(wanted, gradients)


class _Go:
    """After a node has run: the module called last, which lies around the others, leaves last."""

    __slots__ = ("gradients", "edges")

    def __init__(self, gradients, edges):
        self.gradients, self.edges = gradients, edges

    def __call__(self, inputs, _outputs):
        with _swallowing("the gradient of a module's input"):
            self.gradients.go(self.edges, inputs)


class _swallowing:
    """What goes wrong in here is noted, and the training goes on."""

    __slots__ = ("what",)

    def __init__(self, what):
        self.what = what

    def __enter__(self):
        pass

    def __exit__(self, kind, why, _trace):
        if kind is None or not issubclass(kind, Exception):
            return False
        _probe.note(f"{self.what} is left out: {why}")
        return True


_KEY = "msprobe"  # in the notes that a node carries


def _watch_results(results, gradients):
    """Of each node that made a result once: its notes hold what is called before it runs."""
    nodes = {}
    for index, r in enumerate(results):
        if r.grad_fn is not None:
            nodes.setdefault(r.grad_fn, []).append((r.output_nr, index))
    for node, wanted in nodes.items():
        known = node.metadata.get(_KEY)
        if known is None:
            known = node.metadata[_KEY] = _Come()
            node.register_prehook(known)
        known.calls.append((gradients, wanted))


def _watch_tensors(results, gradients):
    """The same before version 2, where only tensors can be watched before their nodes run."""
    for index, r in enumerate(results):
        if r.grad_fn is not None:
            key = f"{_KEY}{r.output_nr}"
            known = r.grad_fn.metadata.get(key)
            if known is None:
                known = r.grad_fn.metadata[key] = _Come()
                r.register_hook(lambda gradient, known=known: known((gradient,)))
            known.calls.append((gradients, [(0, index)]))


def _sources(results):
    """How many times a gradient comes to them."""
    if _watch is _watch_results:
        return len({r.grad_fn for r in results if r.grad_fn is not None})
    return sum(r.grad_fn is not None for r in results)


_watch = _watch_results if VERSION >= (2, 0) else _watch_tensors


def _watch_call(about, edges, places, results, places_out, began):
    inside = [r for r in results if r.grad_fn is not None and _edge(r) not in edges]
    consumers = _consumers(inside, edges, began) if edges else []
    if edges and not consumers and inside:
        return  # no way from the results to the inputs
    through = [(i, edges[_edge(r)]) for i, r in enumerate(results) if _edge(r) in edges]
    gradients = _Gradients(about, places, places_out, through, _sources(results), len(consumers))
    for node, of_node in consumers:
        node.register_hook(_Go(gradients, of_node))
    _watch(results, gradients)


_backwards = []


class _Backward:
    """Watches the gradients that go into and out of a module, call by call."""

    def __init__(self):
        self._open = {}  # (hook, number) -> its inputs and when it began
        _backwards.append(self)

    def forget(self):
        """Of calls that raised."""
        self._open.clear()

    def before(self, hook, module, args, number):
        if torch.is_grad_enabled():
            inputs, places = _distinct(tensors_of(args, _is_watched))
            edges = {_edge(t): i for i, t in enumerate(inputs)}
            self._open[hook, number] = edges, places, _sequence and _sequence()

    def after(self, hook, module, result, number):
        known = self._open.pop((hook, number), None)
        if known is None:
            return
        edges, places, began = known
        results, places_out = _distinct(tensors_of(result, _is_watched))
        if results:
            _watch_call((hook.path, hook.class_name, number), edges, places, results, places_out, began)


# ---- gradients of parameters ------------------------------------------------

_expand_as = torch.Tensor.__mro__[1].expand_as
_watched = {}  # (path, name) -> (what is watched, its handle)


def _accumulator(parameter):
    """The node that adds to a parameter's gradient."""
    with torch.enable_grad():
        node = _expand_as(parameter, parameter).grad_fn
    return node.next_functions[0][0] if node is not None else None


def _source_of(parameter):
    """What tells of the gradient: the parameter itself, where it can, else the node that makes it.

    A node that is held outlives the shape that it was made for, so those are given up at stop."""
    if VERSION >= (2, 1) and parameter.is_leaf:
        return parameter
    return _accumulator(parameter)


def _listen(source, watcher):
    if isinstance(source, torch.Tensor):
        return source.register_post_accumulate_grad_hook(watcher)
    return source.register_hook(watcher)


def _watch_parameters(path, module, hook):
    params = [(n, p) for n, p in module._parameters.items() if p is not None and p.requires_grad]
    grads = _probe.Grads(hook, len(params))
    for index, (name, parameter) in enumerate(params):
        source = _source_of(parameter)
        known = _watched.get((path, name))
        if source is None or (known is not None and known[0] is source):
            continue
        if known is not None:
            known[1].remove()
        attribute = "main_grad" if hasattr(parameter, "main_grad") else "grad"
        watcher = _probe.Grad(grads, index, name, parameter, attribute)
        _watched[path, name] = (source, _listen(source, watcher))


def forget_nodes():
    """Collecting has stopped: nothing that belongs to a graph is held."""
    for key, (source, handle) in list(_watched.items()):
        if not isinstance(source, torch.Tensor):
            handle.remove()
            del _watched[key]
            for entry in _hooked:
                entry[2] = None  # they are looked for again
    for hook_backward in _backwards:
        hook_backward.forget()


# ---- models -----------------------------------------------------------------

_hooked = []  # (model, its modules: path, module, hook; how their parameters are)


def _state_of(p):
    """What goes with the node that adds to a parameter's gradient: it gets another when it changes."""
    return None if p is None else (p.requires_grad, p.dtype, p.device)


def _states(known):
    """Of all parameters of a model's modules."""
    return [(module, module._parameters, [(n, p, _state_of(p)) for n, p in module._parameters.items()])
            for _, module, _ in known]


def _are_as_before(states):
    for module, params, items in states:
        if module._parameters is not params or len(params) != len(items):
            return False
        for name, p, state in items:
            if params.get(name) is not p or _state_of(p) != state:
                return False
    return True


def _hooks_of(module):
    return [h for h in module._forward_pre_hooks.values() if type(h) is _probe.Hook]


def _tell_of_exceptions():
    """Before version 2.1 no hook is called when a module raises; its call would seem to go on."""
    cls = torch.nn.Module
    real = cls.__call__
    if getattr(real, "_tells", False):
        return

    @functools.wraps(real)
    def run(self, *args, **kwargs):
        try:
            return real(self, *args, **kwargs)
        except BaseException:
            for hook in _hooks_of(self):
                hook.fail()
            raise

    run._tells = True
    cls.__call__ = run


def _forget_hooks(module):
    """Those that a copy of a model has from the one it was copied from."""
    for hooks in (module._forward_pre_hooks, module._forward_hooks):
        for key in [k for k, hook in hooks.items() if type(hook) in (_probe.Hook, _probe.After)]:
            del hooks[key]
            getattr(module, "_forward_pre_hooks_with_kwargs", {}).pop(key, None)
            getattr(module, "_forward_hooks_with_kwargs", {}).pop(key, None)
            getattr(module, "_forward_hooks_always_called", {}).pop(key, None)


def _hook_module(module, path, backward):
    class_name = type(module).__name__
    _forget_hooks(module)
    hook = _probe.Hook(path, class_name, _TAKES_KWARGS)
    hook.backward = backward
    if _TAKES_KWARGS:
        module.register_forward_pre_hook(hook, with_kwargs=True)
        more = {"always_call": True} if _ALWAYS_CALLED else {}
        module.register_forward_hook(hook.after, with_kwargs=True, prepend=True, **more)
    else:
        module.register_forward_pre_hook(hook)
        handle = module.register_forward_hook(hook.after)
        module._forward_hooks.move_to_end(handle.id, last=False)
    if not _ALWAYS_CALLED:
        _tell_of_exceptions()
    return hook


def _named(models, prefix):
    """(path, module) of all modules below the models; chunks of a list by their number."""
    if isinstance(models, torch.nn.Module):
        chunks = [(prefix, models)]
    else:
        chunks = [(f"{i}.", model) for i, model in enumerate(models)]
    for prefix, model in chunks:
        for name, module in model.named_modules():
            if module is not model and type(module).__name__ not in _SKIPPED:
                yield prefix + name, module


def check(model):
    models = model if isinstance(model, (list, tuple)) else [model]
    if not models or not all(isinstance(m, torch.nn.Module) for m in models):
        raise ValueError("model: expected a torch.nn.Module or a list of them, as the levels L0 "
                         f"and mix need; found {type(model).__name__}")


def hook_model(model, with_backward, with_gradients, prefix=""):
    """Once for each model; parameters are looked at each time, since they may be others.

    The structure has backwards of modules also where no gradients are dumped."""
    entry = next((e for e in _hooked if e[0] is model), None)
    if entry is None:
        backward = _Backward() if with_backward else None
        entry = [model, [(path, module, _hook_module(module, path, backward))
                         for path, module in _named(model, prefix)], None]
        _hooked.append(entry)
    if with_gradients:
        _watch_parameters_of(entry)


def _watch_parameters_of(entry):
    _, known, states = entry
    if states is not None and _are_as_before(states):
        return
    for path, module, hook in known:
        if module._parameters:
            _watch_parameters(path, module, hook)
    entry[2] = _states(known)


def watch_parameters():
    """Of all models, for a step that begins by itself."""
    for entry in _hooked:
        _watch_parameters_of(entry)


_dumped = []  # modules that are dumped by hand just now


def hook_one(module, name, with_backward):
    """A module by a name of the program's own; one of a known model has its name already."""
    if not isinstance(module, torch.nn.Module):
        raise ValueError(f"module_dump: expected a torch.nn.Module, found {type(module).__name__}")
    if any(module is one for _, known, _ in _hooked for _, one, _ in known):
        return
    hook = _hook_module(module, name, _Backward() if with_backward else None)
    _watch_parameters(name, module, hook)
    _dumped.append(module)


def unhook_one():
    while _dumped:
        _forget_hooks(_dumped.pop())
