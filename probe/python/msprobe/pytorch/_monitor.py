# SPDX-License-Identifier: MIT
"""The training monitor of PyTorch: figures of activations, gradients, optimizer states and parameters.

    from msprobe.pytorch import TrainerMon

    monitor = TrainerMon("monitor.json", params_have_main_grad=False)
    monitor.set_monitor(model, optimizer, grad_acc_steps=1)

Tensors are looked at when they pass: nothing of the program is replaced, wrapped, copied or kept, and no node
is added to its graph. See probe/python/msprobe/_monitor.py."""
import traceback
import weakref

import torch

from msprobe import _monitor, _probe
from msprobe._monitor import (ACTV, ACTV_GRAD, EXP_AVG, EXP_AVG_SQ, GRAD_REDUCED, GRAD_UNREDUCED, OTHER,
                              PARAM_ORIGIN, PARAM_UPDATED, guarded, say, squashed)
from msprobe._nested import is_a
from msprobe.pytorch import _compilers, _features, _modules
from msprobe.pytorch._invariants import Invariants
from msprobe.pytorch._tensors import NO_HOOK, PICKLED_HOOK

_dist = torch.distributed
_Tensor = torch.Tensor
_tracing_state = torch._C._get_tracing_state


def _ranks(group):
    """Returns (rank, stage of the pipeline, ranks of the group)."""
    if not (_dist.is_available() and _dist.is_initialized()):
        return 0, 0, [0]
    rank = _dist.get_rank()
    if not isinstance(group, _dist.ProcessGroup):
        group = _dist.GroupMember.WORLD
    return rank, _dist.get_group_rank(group, rank), list(_dist.get_process_group_ranks(group))


def _is_untouchable():
    """Tells whether a compiler or a tracer reads the program: it would take what is done here for a part of it."""
    return _modules._is_dynamo() or _tracing_state() is not None


def _is_recomputing():
    """Tells whether activations are computed a second time, within a backward."""
    return torch._C._current_graph_task_id() != -1 if hasattr(torch._C, "_current_graph_task_id") else False


class _Hook:
    """A hook of one module. A copy of the model, and a pickle, has one that does nothing."""

    __slots__ = ("monitor", "name", "number", "micro", "back", "open")

    def __init__(self, monitor, name, number):
        self.monitor, self.name, self.number = weakref.ref(monitor), name, number
        self.micro = self.back = 0
        self.open = []  # what is known of the calls that run: edges and places of their inputs

    def __deepcopy__(self, _memo):
        return NO_HOOK

    def __reduce__(self):
        return PICKLED_HOOK


class _Before(_Hook):
    __slots__ = ()

    @_monitor.surviving
    def __call__(self, module, args):
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None and monitor._due:
            monitor._before(self, args)


class _After(_Hook):
    __slots__ = ("first",)

    @_monitor.surviving
    def __call__(self, module, args, *kwargs_and_result):
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None and monitor._due:
            kwargs = kwargs_and_result[0] if len(kwargs_and_result) > 1 else {}
            monitor._after(self, module, args, kwargs, kwargs_and_result[-1])


class _Feature(_Hook):
    """Hook of a module whose features are recorded; `number` is their kind."""

    __slots__ = ()

    @_monitor.surviving
    def __call__(self, module, args, result):
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None and monitor._due:
            monitor._put_features(self, module, args, result)


class _Stack(_Hook):
    """Hook of a module whose caller is recorded."""

    __slots__ = ()

    @_monitor.surviving
    def __call__(self, module, args, result):
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None and monitor._stacks is not None:
            monitor._put_stack(self)


class _Watched(_Hook):
    """Hook of the whole model, for its invariants."""

    __slots__ = ()

    @_monitor.surviving
    def __call__(self, module, args):
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None:
            monitor._called(module, args)


class _Gradient:
    """Hook of a parameter, called when its gradient has been added up."""

    __slots__ = ("monitor", "name", "micro")

    def __init__(self, monitor, name):
        self.monitor, self.name, self.micro = weakref.ref(monitor), name, 0

    @_monitor.surviving
    def __call__(self, parameter):
        """Called with the parameter."""
        if _is_untouchable():
            return
        monitor = self.monitor()
        if monitor is not None:
            monitor._accumulated(self, parameter)


class _Backward:
    """What is told of the gradients of one call of a module: see _modules._Gradients."""

    __slots__ = ("monitor", "hook", "given")

    def __init__(self, monitor, hook, sizes):
        """sizes: the numbers of inputs and results where no input wants a gradient: the lines of such a call stand
        where its first gradient arrives, as in the official tool, which hears of all at once."""
        self.monitor, self.hook, self.given = monitor, hook, None
        if sizes is not None:
            monitor._went_back(hook, (None,) * sizes[0], (None,) * sizes[1], True)

    def input(self, gradients):
        self.given = gradients

    def output(self, gradients):
        self.monitor._went_back(self.hook, gradients, self.given)

    def done(self):
        pass

    def leave(self):
        return False


def _places(values):
    """Returns the distinct tensors that want a gradient, and for each value its tensor's index or None."""
    tensors, places, known = [], [], {}
    for v in values:
        if is_a(v, _Tensor) and v.requires_grad and id(v) not in known:
            places.append(len(tensors))
            known[id(v)] = v
            tensors.append(v)
        else:
            places.append(None)
    return tensors, places


def _main_gradient(parameter):
    gradient = getattr(parameter, "main_grad", None)
    gradient = parameter.grad if gradient is None else gradient
    return gradient.to_local() if type(gradient).__name__ == "DTensor" else gradient


class _Parameter:
    """A parameter by its module and its name there, since the program may replace it."""

    __slots__ = ("module", "key", "name", "is_duplicate")

    def __init__(self, module, key, name, is_duplicate):
        self.module, self.key, self.name, self.is_duplicate = weakref.ref(module), key, name, is_duplicate

    def get(self):
        module = self.module()
        return dict.get(module._parameters, self.key) if module is not None else None  # the program's own dict may count


def _owned(model):
    """Yields (name, module, key, parameter) of each parameter once, as named_parameters() does."""
    seen = set()
    for path, module in model.named_modules():
        for key, parameter in dict.items(module._parameters):
            if parameter is not None and id(parameter) not in seen:
                seen.add(id(parameter))
                yield (f"{path}.{key}" if path else key), module, key, parameter


class TrainerMon(_monitor.BaseMonitor):
    """The official monitor: figures of a training, step by step, as config_file_path asks."""

    _tensor_type = _Tensor

    def __init__(self, config_file_path, process_group=None, params_have_main_grad=True, opt_ty=None) -> None:
        self._handles = []  # of hooks that a new config replaces
        self._aside = []  # hooks that are away, for each compiler or tracer that is reading a model
        self._step_handles = []  # of the optimizer, for good
        self._parameters, self._chunks, self._nodes = [], [], []
        self._optimizer = self._wrapped = None
        self._groups = 0  # modules called so far
        self._invariants, self._before_step = [], []
        self._features = self._stacks = None
        self._micro_steps = 1
        self._dp_group = self._tp_group = None
        self.params_have_main_grad = params_have_main_grad
        super().__init__(config_file_path, *_ranks(process_group))
        _compilers.skip_functions()

    # ---- the official interface -------------------------------------------------

    def set_monitor(self, model, optimizer, grad_acc_steps=1, tp_group=None, dp_group=None, start_iteration=0):
        """Watches a model, or the list of its chunks, and its optimizer. grad_acc_steps: backwards in a step."""
        if isinstance(optimizer, int) and not isinstance(grad_acc_steps, int):  # the order of older versions
            optimizer, grad_acc_steps, tp_group, dp_group = grad_acc_steps, optimizer, dp_group, tp_group
        self._micro_steps = grad_acc_steps if isinstance(grad_acc_steps, int) and grad_acc_steps > 0 else 1
        self._step = start_iteration if isinstance(start_iteration, int) and start_iteration >= 0 else 0
        self._dp_group, self._tp_group = dp_group, tp_group
        self._chunks = [weakref.ref(m) for m in (model if isinstance(model, (list, tuple)) else [model])]
        self._optimizer = optimizer
        self._set_up()

    def monitor_gnorm_with_ad(self, model, optimizer=None, grad_acc_steps=1, tp_group=None, dp_group=None,
                              start_iteration=0):
        """set_monitor() by the name of older versions."""
        optimizer = self._wrapped if optimizer is None else optimizer
        if optimizer is None:
            say("monitor_gnorm_with_ad: give the optimizer, or call set_wrapped_optimizer(optimizer) before")
            return
        self.set_monitor(model, optimizer, grad_acc_steps, tp_group, dp_group, start_iteration)

    def set_wrapped_optimizer(self, optimizer):
        self._wrapped = optimizer

    def generate_wgrad_metrics(self, post_grad_dict=None):
        """Returns the figures of the present step's gradients, (reduced, unreduced), as {tag: {op: value}}."""
        for tag, gradient in (post_grad_dict or {}).items():
            self._writer.put(GRAD_REDUCED, 0, tag.split("/")[0], gradient)
        return self._figures(GRAD_REDUCED), self._figures(GRAD_UNREDUCED)

    def generate_xy_metrics(self):
        """Returns the figures of the present step's activations and of their gradients."""
        return self._figures(ACTV), self._figures(ACTV_GRAD)

    @guarded
    def reload_xy(self, xy_distribution=False):
        """Begin to record activations and their gradients, or end it; what a step has recorded so far is dropped."""
        self.config["xy_distribution"] = xy_distribution
        if self._handles:
            self._unhook()
            self._hook()

    # ---- hooks --------------------------------------------------------------------

    @guarded
    def _set_up(self):
        self._hook_steps(self._optimizer)
        if not self._is_dynamic:
            self._hook()
        self._look_ahead()

    def _hook(self):
        self._find_parameters()
        if self.config["wg_distribution"] and self._writer is not None:
            self._hook_gradients()
        if self._writer is not None:
            self._hook_modules()
            self._hook_features()
        if self.config["invariants"] and self._writer is not None:
            self._watch_invariants()
        _modules.add_onlooker(self)

    def _watch_invariants(self):
        """Watches what must hold; independent of the steps that the config chooses."""
        for prefix, model in self._models():
            mine = [one for one in self._parameters if one.name.startswith(prefix)]
            found = Invariants(self, model, mine)
            self._invariants.append(found)
            self._handles += found.handles
            self._handles.append(model.register_forward_pre_hook(_Watched(self, prefix, None)))

    @guarded
    def _called(self, module, args):
        for one in self._invariants:
            if one._model() is module:
                one.called(module, args)

    def _unhook(self):
        self._invariants = []
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._nodes.clear()
        for one in self._parameters:
            parameter = one.get()
            if parameter is not None and getattr(parameter, "_post_accumulate_grad_hooks", None) == {}:
                parameter._post_accumulate_grad_hooks = None  # as it was before the first hook
        if self._writer is not None:
            self._writer.drop()

    @guarded
    def set_aside(self):
        """Takes the hooks of modules away while a compiler or a tracer reads a model: see _modules."""
        self._aside.append([])
        for handle in self._handles:
            reference = getattr(handle, "hooks_dict_ref", None)  # that of a node has none in old versions
            hooks = reference() if reference is not None else None
            hook = hooks.get(handle.id) if hooks is not None else None
            if isinstance(hook, _Hook):
                extra = [d for d in (r() for r in getattr(handle, "extra_dict_ref", ())) if d and handle.id in d]
                self._aside[-1].append((hooks, handle.id, hook, list(hooks), [(d, d.pop(handle.id)) for d in extra]))
                del hooks[handle.id]

    @guarded
    def put_back(self):
        for hooks, number, hook, order, flags in reversed(self._aside.pop() if self._aside else []):
            hooks[number] = hook
            for d, flag in flags:
                d[number] = flag
            for key in order + [key for key in hooks if key not in order]:
                if key in hooks:
                    hooks.move_to_end(key)

    def _models(self):
        return [(f"{stage}:", m) for stage, m in enumerate(ref() for ref in self._chunks) if m is not None]

    def _find_parameters(self):
        self._parameters, names = [], set()
        for prefix, model in self._models():
            for name, module, key, parameter in _owned(model):
                if not parameter.requires_grad or not self._is_target(name, prefix):
                    continue
                known = prefix + squashed(name, self._squash)
                known = prefix + name if known in names else known
                names.add(known)
                self._parameters.append(_Parameter(module, key, known, self._is_duplicate(parameter)))

    def _is_duplicate(self, parameter):
        """Tells whether another rank writes the gradient, which is the same there."""
        if self._tp_group and not (getattr(parameter, "tensor_model_parallel", False) or
                                   _dist.get_rank(group=self._tp_group) == 0):
            return True
        return bool(self._dp_group) and _dist.get_rank(group=self._dp_group) != 0

    def _hook_gradients(self):
        for one in self._parameters:
            parameter = one.get()
            if not parameter.is_leaf:
                continue
            hook = _Gradient(self, one.name)
            if hasattr(parameter, "register_post_accumulate_grad_hook"):
                self._handles.append(parameter.register_post_accumulate_grad_hook(hook))
            else:
                self._hook_node(parameter, one, hook)

    def _hook_node(self, parameter, one, hook):
        """Before version 2.1 the node that adds gradients up is hooked; it lives as long as it is held."""
        with torch.enable_grad():
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        self._nodes.append(node)
        self._handles.append(node.register_hook(lambda *_: hook(one.get())))

    def _hook_modules(self):
        if not (self.config["xy_distribution"] or self.config["print_struct"]):
            return
        targets = {t if ":" in t else prefix + t for t in self.config["targets"] for prefix, _ in self._models()}
        hooked = 0
        for prefix, model in self._models():
            for path, module in model.named_modules():
                name = self._target_of(path, prefix, targets)
                if name and type(module).__name__ != "FullyShardedDataParallel" and \
                        not isinstance(module, torch.jit.ScriptModule):
                    self._hook_module(module, name)
                    hooked += 1
        if hooked == 0:
            say(f"targets: no module has one of the names {sorted(targets)}")

    def _hook_features(self):
        """Hooks modules for features of the second level, and for their callers."""
        config = self.config
        self._features = _features.Features(config, self._folder) if config["recording_l2_features"] else None
        self._stacks = {} if config["stack_info"] else None
        for prefix, model in self._models() if self._features or self._stacks is not None else ():
            for path, module in model.named_modules():
                found = prefix + squashed(path, self._squash)
                if self._stacks is not None:
                    self._handles.append(module.register_forward_hook(_Stack(self, found, None)))
                for kind in _features.KINDS if self._features else ():
                    name = self._features.names(kind, found, prefix + path)
                    if name:
                        self._handles.append(module.register_forward_hook(_Feature(self, name, kind)))

    @guarded
    def _put_features(self, hook, module, args, result):
        if module.training and not _is_recomputing():
            is_last = hook.micro + 1 == self._micro_steps
            self._features.put(hook.number, hook.name, hook.micro, is_last, module, args, result)
            hook.micro = (hook.micro + 1) % self._micro_steps

    @guarded
    def _put_stack(self, hook):
        if hook.name not in self._stacks:
            frames = [f for f in traceback.extract_stack() if f.filename != __file__]
            self._stacks[hook.name] = " ".join(f"File {f.filename}, line {f.lineno}, in {f.name}, {f.line};"
                                               for f in reversed(frames))

    def _hook_module(self, module, name):
        after = _After(self, name, None)
        if not self.config["forward_only"]:
            after.first = _Before(self, name, None)
            self._handles.append(module.register_forward_pre_hook(after.first))
        else:
            after.first = None
        more = {"with_kwargs": True} if _modules.VERSION >= (2, 0) else {}
        self._handles.append(module.register_forward_hook(after, **more))

    def _hook_steps(self, optimizer):
        before = getattr(optimizer, "register_step_pre_hook", None)
        if callable(before):
            self._step_handles = [before(self._stepping), optimizer.register_step_post_hook(self._stepped)]
            return
        step = optimizer.step  # of a class that is none of PyTorch's

        def watched(*args, **kwargs):
            self._stepping(optimizer, args, kwargs)
            result = step(*args, **kwargs)
            self._stepped(optimizer, args, kwargs)
            return result

        optimizer.step = watched

    # ---- activations ----------------------------------------------------------------

    @guarded
    def _before(self, hook, args):
        if not torch.is_grad_enabled():
            hook.open.append(None)
            return
        tensors, places = _places(args)
        edges = {_modules._edge(t): i for i, t in enumerate(tensors)}
        hook.open.append((edges, places, _modules._sequence and _modules._sequence()))

    @guarded
    def _after(self, hook, module, args, kwargs, result):
        began = hook.first.open.pop() if hook.first is not None and hook.first.open else None
        if hook.number is None:
            hook.number = self._groups
            self._groups += 1
        if module.training and not _is_recomputing() and not self.config["backward_only"]:
            inputs = [v for v in args if is_a(v, _Tensor)] + \
                [v for v in kwargs.values() if is_a(v, _Tensor)]
            if self.config["print_struct"]:
                self._struct.setdefault(hook.name, {}).update(input=self._shapes(inputs), output=self._shapes(result))
            else:
                self._put_side(ACTV, hook.number, f"{hook.name}.input", hook.micro, inputs)
                self._put_side(ACTV, hook.number, f"{hook.name}.output", hook.micro, result)
            hook.micro = (hook.micro + 1) % self._micro_steps
        if began is not None:
            self._watch_back(hook, result, *began)

    def _watch_back(self, hook, result, edges, places, number):
        values = result if is_a(result, tuple) else (result,)
        results, places_out = _places(values)
        if results:
            sizes = None if edges or len(results) < 2 else (len(places), len(places_out))
            _modules.watch_call(_Backward, (self, hook, sizes), edges, places, results, places_out, number)

    @guarded
    def _went_back(self, hook, of_inputs, of_results, is_first=False):
        if self.config["print_struct"]:
            self._struct.setdefault(hook.name, {}).update(input_grad=self._shapes(of_inputs),
                                                          output_grad=self._shapes(of_results))
        elif self._due:
            self._put_side(ACTV_GRAD, 0, f"{hook.name}.input", hook.back, of_inputs)
            self._put_side(ACTV_GRAD, 0, f"{hook.name}.output", hook.back, of_results)
        if not is_first:
            hook.back = (hook.back + 1) % self._micro_steps

    # ---- gradients, states, parameters ---------------------------------------------------

    @guarded
    def _accumulated(self, hook, parameter):
        is_last = hook.micro + 1 == self._micro_steps
        name = f"{hook.name}:{hook.micro}" if self.config["monitor_mbs_grad"] else hook.name
        hook.micro = (hook.micro + 1) % self._micro_steps
        if not self._due:
            return
        if is_last or self.config["monitor_mbs_grad"]:
            self._writer.put(GRAD_UNREDUCED, 0, name, _main_gradient(parameter))
        else:
            self._writer.called()

    @guarded
    def _stepping(self, optimizer, _args, _kwargs):
        """Called before the optimizer steps."""
        self._before_step = [one.stepping(optimizer) for one in self._invariants]
        if not self._due:
            return
        if self.config["wg_distribution"]:
            self._put_gradients()
        if self.config["mv_distribution"]:
            self._put_states(optimizer)
        if self.config["param_distribution"]:
            self._put_parameters(PARAM_ORIGIN)
        if self.config["mg_direction"]:
            _probe.ask(self._put_directions, optimizer)

    @guarded
    def _stepped(self, optimizer, _args, _kwargs):
        """Called after the optimizer has stepped, which ends the step."""
        for one, before in zip(self._invariants, self._before_step):
            one.stepped(optimizer, before)
        if self._due and self.config["param_distribution"]:
            self._put_parameters(PARAM_UPDATED)
        if self._due and self.config["print_struct"]:
            self._write_struct()
        if self._due and self._features is not None:
            self._features.write(self._step)
        if self._due and self._stacks:
            _features.write_stacks(self._folder, self._stacks)
            self._stacks = None
        self._end_step()

    def _put_gradients(self):
        for one in self._parameters:
            parameter = one.get()
            gradient = _main_gradient(parameter) if parameter is not None and not one.is_duplicate else None
            if gradient is not None:
                self._writer.put(GRAD_REDUCED, 0, one.name, gradient)

    def _states(self, optimizer):
        """Yields (name, parameter, state) of the parameters with a state."""
        states = _all_states(optimizer)
        for one in self._parameters:
            parameter = one.get()
            yield one.name, parameter, states(parameter) if parameter is not None else None

    def _put_states(self, optimizer):
        for metric, key in ((EXP_AVG, "exp_avg"), (EXP_AVG_SQ, "exp_avg_sq")):
            for name, _parameter, state in self._states(optimizer):
                value = state.get(key) if state else None
                if value is not None:
                    self._writer.put(metric, 0, name, value)
                else:
                    self._writer.called()

    def _put_parameters(self, metric):
        for one in self._parameters:
            parameter = one.get()
            if parameter is not None and parameter.numel() != 0:
                self._writer.put(metric, 0, one.name, parameter)

    def _put_directions(self, optimizer):
        with torch.no_grad():
            for name, parameter, state in self._states(optimizer):
                gradient = _main_gradient(parameter) if parameter is not None else None
                if gradient is None:
                    continue
                mean = state.get("exp_avg") if state else None
                same = torch.tensor(1.0) if mean is None or mean.numel() == 0 else \
                    ((gradient.sign() * mean.sign()).sum() / mean.numel() + 1) / 2
                self._writer.put(OTHER, 0, name, same)

def _all_states(optimizer):
    """Returns a function from a parameter to the optimizer's state of it, or None."""
    chained = getattr(optimizer, "chained_optimizers", None)
    tables = []
    for one in chained if chained is not None else [optimizer]:
        table = getattr(one, "state", None)
        inner = getattr(one, "optimizer", None)
        tables.append(table if table is not None else getattr(inner, "state", {}))

    def state_of(parameter):
        for table in tables:
            if parameter in table:
                return table[parameter]
        return None

    return state_of
