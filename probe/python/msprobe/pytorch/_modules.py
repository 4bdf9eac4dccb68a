# SPDX-License-Identifier: MIT
"""Hooks of the modules of a model, and of their parameters' gradients."""
import functools

import torch
from torch.utils.hooks import BackwardHook

from msprobe import _probe
from msprobe._nested import as_tuple, tensors_of, with_tensors

VERSION = tuple(int(n) for n in torch.__version__.split("+")[0].split(".")[:2])
_TAKES_KWARGS = VERSION >= (2, 0)
_ALWAYS_CALLED = VERSION >= (2, 1)
_SKIPPED = {"FullyShardedDataParallel"}


# ---- gradients of modules ---------------------------------------------------


def _is_watched(value):
    return isinstance(value, torch.Tensor) and value.requires_grad


def _allow_in_place(tensors):
    """The tensors that stand for others are views; the program may write to them as before.

    Versions before 2 do not let it: there, modules are only watched when that is asked for."""
    kinds = getattr(torch._C._autograd, "CreationMeta", None)
    for t in tensors if kinds is not None else ():
        if t._base is not None:
            plain = kinds(0)
            if torch._C._autograd._get_creation_meta(t) != plain:
                torch._C._autograd._set_creation_meta(t, plain)
    return tensors


def _placed(gradients, places):
    """All that came, and nothing where the same tensor stood a second time."""
    gradients = as_tuple(gradients)
    if None not in places:
        return gradients
    return tuple(None if p is None or p >= len(gradients) else gradients[p] for p in places)


class _Backward:
    """Watches the gradients that go into and out of a module, call by call."""

    def __init__(self):
        self._open = {}  # (hook, number) -> torch's own watcher, places of gradients

    def _through(self, setup, value, places):
        """The value with watched tensors in place of its own, which one has each gradient in places.

        What is one tensor stays one, as a module may ask for that: attention of `x, x, x` computes in
        another way than of three, and a dump must not change what is computed."""
        tensors = tuple(tensors_of(value, _is_watched)) if torch.is_grad_enabled() else ()
        if not tensors:
            return value
        known = {}
        for t in tensors:
            places.append(None if id(t) in known else len(known))
            known.setdefault(id(t), (len(known), t))
        others = _allow_in_place(_probe.hidden(setup, tuple(t for _, t in known.values())))
        return with_tensors(value, iter([others[known[id(t)][0]] for t in tensors]), _is_watched)

    def before(self, hook, module, args, number):
        if getattr(module, "_is_full_backward_hook", None) is False and module._backward_hooks:
            return None  # hooks of the old kind and these exclude each other
        self._open.clear() if number == 0 and len(self._open) > 4096 else None
        calls, of_inputs, of_outputs = [], [], []

        def enter(_module, grad_output):
            calls.append(_probe.enter_module_backward(hook.path, hook.class_name, number))

        def leave(_module, grad_input, grad_output):
            call = calls.pop() if calls else \
                _probe.enter_module_backward(hook.path, hook.class_name, number)
            if call is not None:
                call.input(_placed(grad_output, of_outputs))
                call.output(_placed(grad_input, of_inputs))
                call.done()

        watcher = BackwardHook(module, [leave], [enter]) if VERSION >= (2, 0) \
            else BackwardHook(module, [leave])
        self._open[hook, number] = watcher, of_outputs
        return self._through(watcher.setup_input_hook, args, of_inputs)

    def after(self, hook, module, result, number):
        watcher, places = self._open.pop((hook, number), (None, None))
        if watcher is None:
            return None
        return self._through(watcher.setup_output_hook, result, places)


# ---- gradients of parameters ------------------------------------------------

_watched = {}  # path and name -> (accumulator, handle, its record)


def _accumulator(parameter):
    """The node that adds to a parameter's gradient."""
    with torch.enable_grad():
        node = _expand_as(parameter, parameter).grad_fn
    return node.next_functions[0][0] if node is not None else None


_expand_as = torch.Tensor.__mro__[1].expand_as


def _watch_parameters(path, module, hook):
    params = [(n, p) for n, p in module._parameters.items() if p is not None and p.requires_grad]
    grads = _probe.Grads(hook, len(params))
    for index, (name, parameter) in enumerate(params):
        node = _accumulator(parameter)
        known = _watched.get((path, name))
        if node is None or (known is not None and known[0] is node):
            continue
        if known is not None:
            known[1].remove()
        attribute = "main_grad" if hasattr(parameter, "main_grad") else "grad"
        watcher = _probe.Grad(grads, index, name, parameter, attribute)
        _watched[path, name] = (node, node.register_hook(watcher), grads)


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
    _, known, states = entry
    if not with_gradients or (states is not None and _are_as_before(states)):
        return
    for path, module, hook in known:
        if module._parameters:
            _watch_parameters(path, module, hook)
    entry[2] = _states(known)


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
