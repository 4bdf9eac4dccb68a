# SPDX-License-Identifier: MIT
"""Programs that look closely at what they train: layers that decide by hooks, nodes and their metadata, tables of
functions by kind, trees of objects, sizes of what is saved."""
import ast
import copy
import ctypes
import functools
import gc
import inspect
import io
import operator
import pickle
import pydoc
import sys
import threading
import types
import typing
import unittest.mock
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from harness import VERSION, freed, way
from small_model import X, loss_of, model_of


def _masked(length):
    return torch.triu(torch.full((length, length), float("-inf")), 1)


@way
def encoders_that_are_evaluated_with_a_mask_of_the_source(run):
    """Newer layers run one fused kernel where none of their modules has a hook."""
    x, mask, seen = torch.randn(4, 20, 32), _masked(20), []
    for heads, act, first in ((4, "relu", False), (4, "gelu", True), (1, "relu", True)):
        layer = nn.TransformerEncoderLayer(32, heads, 64, batch_first=True, activation=act, norm_first=first)
        model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        run.train(model, lambda m, i: m(x, mask=mask).pow(2).mean(), steps=2)
        model.eval()
        with run.dump(model), torch.no_grad():
            seen.append(model(x, mask=mask))
        with run.dump(model):
            seen.append(model(x, mask=mask))  # wants gradients
        with run.dump(model), torch.inference_mode():
            seen.append(model.layers[0](x, src_mask=mask).clone())
    run.note("evaluated", seen)


@way
def encoders_with_hooks_of_the_program_that_come_and_go(run):
    x, mask, seen = torch.randn(4, 20, 32), _masked(20), []
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    with run.dump(model), torch.no_grad():
        seen.append(model(x, mask=mask))
        handle = model.layers[1].linear1.register_forward_hook(lambda m, a, out: seen.append(out.sum()))
        seen.append(model(x, mask=mask))
        handle.remove()
        seen.append(model(x, mask=mask))
        run.raises("wrong", lambda: model(x, mask=mask[:3]))
        seen.append(model(x, src_key_padding_mask=torch.arange(20)[None] >= torch.tensor([[17], [18], [19], [20]])))
        others = [threading.Thread(target=lambda: seen.append(model(x, mask=mask).sum())) for _ in range(2)]
        for thread in others:
            thread.start()
            thread.join()
    run.note("seen", seen)
    run.note("hooks", [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()])
    run.train(model.train(), lambda m, i: m(x[:1, :5]).pow(2).mean(), steps=2)


@way(needs=(2, 1), slow=True)
def encoders_that_are_compiled_and_evaluated(run):
    x, mask = torch.randn(4, 20, 32), _masked(20)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    compiled = torch.compile(layer, backend="eager")
    with run.dump(layer), torch.no_grad():
        run.note("compiled", compiled(x, src_mask=mask))
    run.note("later", compiled(x, src_mask=mask))


@way(needs=(2, 0))
def graphs_of_a_device_are_asked_for_without_one(run):
    """They refuse a module with hooks, and then one whose buffer wants a gradient, before they ask for a device."""
    model = model_of()
    model.register_buffer("learned", torch.ones(2, requires_grad=True))

    def loss(m, i):
        run.raises("graphed", lambda: torch.cuda.make_graphed_callables(m, (X,)))
        return loss_of(m, i)
    run.train(model, loss)


@way(needs=(2, 0))
def dictionaries_of_nodes_and_their_metadata(run):
    """What a program writes into the metadata of nodes is what it finds, in nodes that modules have made as well."""
    seen = []

    def loss(model, step):
        y, nodes = model(X), []
        stack = [y.grad_fn]
        while stack:
            node = stack.pop()
            if node is not None and node not in nodes:
                nodes.append(node)
                stack += [following for following, _ in node.next_functions]
        for i, node in enumerate(nodes):
            node.metadata[f"mine {step}"] = i
        seen.append([node.metadata[f"mine {step}"] for node in nodes])
        seen.append([node.name() for node in nodes])
        table = {node: i for i, node in enumerate(nodes)}
        y.grad_fn.register_hook(lambda ins, outs: seen.append(("ran", table[nodes[0]])))
        return y.pow(2).mean()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def kinds_of_hooks_counted_by_classes_of_ones_own(run):
    """A base class that keeps its hooks in dicts of its own class, as some frameworks do."""
    class Told(dict):
        pass

    class Registry(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc, self.events = nn.Linear(4, 4), Told()

        def on(self, name, hook):
            self.events.setdefault(name, []).append(hook)
            return self

        def forward(self, x):
            for hook in self.events.get("before", ()):
                x = hook(x)
            return self.fc(x)
    model = Registry().on("before", F.relu).on("before", torch.tanh).on("before", torch.Tensor.exp)
    run.train(model, lambda m, i: m(X).mean())
    run.note("events", [f.__name__ for f in model.events["before"]])


@way
def tables_by_the_kind_of_a_function(run):
    """A table that a program made before the dump began, by exact types."""
    kinds = (F.relu, torch.relu, torch.Tensor.relu, F.gelu, torch.Tensor.__getitem__, operator.add)
    table = {f.__class__: f.__name__ for f in kinds}
    dispatch = functools.singledispatch(lambda f: "other")
    dispatch.register(types.FunctionType, lambda f: "python")
    dispatch.register(types.BuiltinFunctionType, lambda f: "builtin")
    seen = [sorted(table.values())]

    def loss(model, step):
        seen.append([dispatch(f) for f in kinds])
        seen.append([f.__class__ in table for f in kinds])
        seen.append([isinstance(f, (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType))
                     for f in kinds])
        match F.relu:
            case types.FunctionType():
                seen.append("python")
            case _:
                seen.append("other")
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def exact_types_of_functions(run):
    """type() looks past the class that a function says it has."""
    seen = []

    def loss(model, step):
        seen.append([type(f) in (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
                     for f in (F.relu, torch.relu, torch.Tensor.relu)])
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def hooks_of_parameters_that_the_collector_finds(run):
    seen = []

    def loss(model, step):
        seen.append([type(o).__name__ for o in gc.get_referents(model[0].fc.weight)])
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def texts_and_signatures_of_functions_for_people(run):
    seen = []

    def loss(model, step):
        for f in (F.relu, torch.stack, torch.Tensor.add_, F.scaled_dot_product_attention if hasattr(
                F, "scaled_dot_product_attention") else F.linear, nn.Module.__call__, torch.nn.Linear.forward):
            seen.append((pydoc.plain(pydoc.render_doc(f))[:400], repr(f).split(" at 0x")[0], inspect.unwrap(f) is f))
        seen.append(sorted(typing.get_type_hints(F.softmax)))
        seen.append(len(ast.dump(ast.parse(inspect.getsource(F.relu)))))
        seen.append(F.relu.__code__.co_varnames)
        return loss_of(model, step)
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def stand_ins_with_the_signature_of_functions(run):
    calls = []

    def loss(model, step):
        with unittest.mock.patch.object(F, "relu", autospec=True, side_effect=torch.relu) as fake:
            value = loss_of(model, step)
            calls.append((fake.call_count, len(fake.call_args.args)))
        spy = unittest.mock.Mock(wraps=torch.tanh)
        value = value + spy(X).mean()
        run.raises("wrong", lambda: unittest.mock.create_autospec(F.relu)(1, 2, 3, 4))
        calls.append(spy.call_count)
        return value
    run.train(model_of(), loss)
    run.note("calls", calls)


@way
def functions_made_anew_from_the_code_of_others(run):
    """As tools do that give a function other names to find."""
    seen = []

    def loss(model, step):
        own = types.FunctionType(F.relu.__code__, {**F.relu.__globals__}, "own", F.relu.__defaults__, F.relu.__closure__)
        bound = types.MethodType(F.relu, X)
        part = functools.partialmethod(F.softmax, dim=-1)
        Holder = type("Holder", (), {"soft": part, "relu": staticmethod(F.relu), "get": property(torch.relu)})
        seen.append((own(X), bound(), Holder.relu(X), type(own) is types.FunctionType))
        seen.append(functools.reduce(torch.add, [X, X, X]))
        seen.append(list(map(torch.neg, X[:2])) + sorted(X[:, 0].unbind(), key=torch.abs))
        return model(own(X)).pow(2).mean()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def objects_that_hold_a_model_are_walked_by_the_collector(run):
    """As tools do that look for leaks: what refers to a module and its tensors."""
    model, seen = model_of(), []

    def loss(m, i):
        value = loss_of(m, i)
        held = gc.get_referrers(m[0].fc.weight)
        seen.append(sorted({type(h).__name__ for h in held if not inspect.isframe(h)}))
        seen.append(sum(isinstance(o, nn.Module) for o in gc.get_objects()) >= len(list(m.modules())))
        return value
    run.train(model, loss)
    run.note("seen", seen)


@way
def counts_of_weak_references_to_tensors(run):
    """Before version 2.1 a parameter has one from its use on, as it has no hook of its own."""
    model, seen = model_of(), []
    watched = list(model.parameters()) if VERSION >= (2, 1) else []

    def loss(m, i):
        y = m(X)
        z = F.relu(y) + y.exp()
        seen.append([weakref.getweakrefcount(t) for t in (X, y, z, *watched)])
        seen.append([sys.getrefcount(t) for t in (y, z)])
        return z.pow(2).mean()
    run.train(model, loss)
    run.note("seen", seen)


@way
def sizes_of_models_that_are_pickled_within_forward(run):
    seen = []

    class Saves(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.out = model_of(), nn.Linear(2, 1)

        def forward(self, x):
            data = io.BytesIO()
            torch.save(self.inner.state_dict(), data)
            seen.append(len(data.getvalue()))
            whole = io.BytesIO()
            torch.save(self.inner, whole)
            seen.append(len(whole.getvalue()))
            again = pickle.loads(pickle.dumps(self.inner))
            seen.append([len(m._forward_hooks) for m in copy.deepcopy(again).modules() if False])
            return self.out(again(x) + self.inner(x))
    run.train(Saves(), lambda m, i: m(X).pow(2).mean())
    run.note("seen", seen)


@way
def pointers_of_c_to_functions_and_tensors(run):
    """Python's own functions for C are called by ctypes, as bridges to other languages do."""
    api, seen = ctypes.pythonapi, []
    api.PyObject_CallFunctionObjArgs.restype = ctypes.py_object
    api.PyNumber_Multiply.restype = api.PyNumber_Negative.restype = api.PyObject_GetItem.restype = ctypes.py_object
    api.PyObject_CallObject.restype = api.PyObject_Type.restype = ctypes.py_object

    def py(*objects):
        return [ctypes.py_object(o) for o in objects]

    def loss(model, step):
        y = model(X)
        a = api.PyObject_CallObject(*py(torch.tanh, (y,)))
        b = api.PyNumber_Multiply(*py(a, y))
        c = api.PyNumber_Negative(*py(b))
        seen.append((a, b, c, api.PyCallable_Check(*py(F.relu)), api.PyObject_GetItem(*py(y, 0))))
        into = torch.zeros(2, 2)
        api.PyObject_SetItem(*py(into, 0, y.detach()[0]))
        seen.append(into)
        return c.mean() + api.PyObject_CallObject(*py(F.relu, (y,))).sum()
    run.train(model_of(), loss)
    run.note("seen", seen)


@way
def classes_of_modules_built_at_run_time_and_forgotten(run):
    """Classes made in each step, whose modules and classes must go."""
    gone = []

    def loss(model, step):
        class Local(nn.Module):
            def __init__(self):
                super().__init__()
                self.w = nn.Parameter(torch.ones(2))

            def forward(self, x):
                return x * self.w
        local = Local()
        value = local(model(X)).pow(2).mean()
        gone.append(weakref.ref(Local))
        return value
    run.train(model_of(), loss)
    gc.collect()
    run.note("gone", [ref() is None for ref in gone])
    run.note("freed", freed(lambda: [nn.Linear(2, 2), F.relu(torch.ones(2)), torch.stack([X, X])]))


@way
def a_module_given_as_its_own_argument(run):
    class Meta(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)

        def forward(self, other, x, depth=2):
            if depth == 0:
                return other.fc(x)
            return self(self, torch.tanh(other.fc(x)), depth=depth - 1)
    run.train(Meta(), lambda m, i: m(m, X).pow(2).mean())


@way
def states_that_are_slices_of_one_flat_buffer(run):
    """All parameters are views of one vector, which the program updates itself, as some trainers do."""
    model = model_of()
    parameters = list(model.parameters())
    flat = torch.cat([p.detach().flatten() for p in parameters])
    grads = torch.zeros_like(flat)
    at = 0
    for p in parameters:
        p.data = flat[at:at + p.numel()].view_as(p)
        p.grad = grads[at:at + p.numel()].view_as(p)
        at += p.numel()
    for i in range(3):
        with run.dump(model):
            grads.zero_()
            loss = loss_of(model, i)
            loss.backward()
            flat.add_(grads, alpha=-0.05)
        run.note(f"loss {i}", loss)
    run.note("flat", (flat, grads, [p.grad.data_ptr() - grads.data_ptr() for p in parameters]))
    run.note_model(model)
