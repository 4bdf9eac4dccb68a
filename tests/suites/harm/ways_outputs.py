# SPDX-License-Identifier: MIT
"""What modules return, and what is done with it."""
import collections
import dataclasses

import torch
from torch import nn
from torch.nn import functional as F

from harness import freed, way
from ways_arguments import Calls


class ModelOutput(collections.OrderedDict):
    """As in transformers: a dict by key, by attribute and by number."""

    def __init__(self, **fields):
        super().__init__(fields)
        for name, value in fields.items():
            super().__setattr__(name, value)

    def __getitem__(self, key):
        return super().__getitem__(key) if isinstance(key, str) else tuple(self.values())[key]

    def to_tuple(self):
        return tuple(self.values())


def two_layers(inner, outer, **more):
    return Calls(outer, before=nn.Linear(4, 4), inner=Calls(inner, fc=nn.Linear(4, 4)), **more)


def trained(run, inner, outer, **options):
    x = torch.randn(2, 4)
    return run.train(two_layers(inner, outer), lambda m, i: m(x), **options)


@way
def an_ordered_dict_beside_a_tensor(run):
    def inner(self, x):
        y = self.fc(x)
        return collections.OrderedDict(a=y * 2, b=y * 3), y

    def outer(self, x):
        d, y = self.inner(self.before(x))
        run.note("type", type(d).__name__)
        return (d["a"] + 10 * d["b"] + 100 * y).sum()
    trained(run, inner, outer)


@way
def a_model_output_beside_a_tensor(run):
    def inner(self, x):
        y = self.fc(x)
        return ModelOutput(loss=y.sum(), logits=y * 3), y

    def outer(self, x):
        out, y = self.inner(self.before(x))
        run.note("fields", (type(out).__name__, out.loss is out["loss"], out[1] is out.logits))
        return out.loss + out.logits.pow(2).sum() + 100 * y.sum()
    trained(run, inner, outer)


@way
def a_model_output_alone(run):
    def inner(self, x):
        y = self.fc(x)
        return ModelOutput(loss=y.sum(), logits=y)

    def outer(self, x):
        out = self.inner(self.before(x))
        run.note("is", (out.loss is out["loss"], out.logits is out["logits"]))
        return out.loss + out.to_tuple()[1].pow(2).sum()
    trained(run, inner, outer)


@way
def a_dataclass_of_tensors(run):
    @dataclasses.dataclass
    class Out:
        logits: torch.Tensor
        hidden: list

    def inner(self, x):
        y = self.fc(x)
        return Out(y, [x, y])

    def outer(self, x):
        y = self.before(x)
        out = self.inner(y)
        run.note("is", (out.hidden[0] is y, out.hidden[1] is out.logits))
        return out.logits.sum() + out.hidden[1].pow(2).sum()
    trained(run, inner, outer)


@way
def a_namedtuple_of_tensors(run):
    Out = collections.namedtuple("Out", "a b")

    def inner(self, x):
        return Out(self.fc(x), x)

    def outer(self, x):
        y = self.before(x)
        out = self.inner(y)
        run.note("is", (type(out).__name__, out.b is y))
        return out.a.sum() * 2 + out.b.pow(2).sum()
    trained(run, inner, outer)


@way
def an_output_that_is_the_input(run):
    def outer(self, x):
        y = self.before(x)
        z = self.drop(self.same(y))
        run.note("is", (self.same(y) is y, z is y))
        return self.inner(z).sum()
    model = two_layers(lambda self, x: self.fc(x), outer, same=nn.Identity(), drop=nn.Dropout(0.0))
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def outputs_that_are_one_tensor_twice(run):
    def inner(self, x):
        y = self.fc(x)
        return y, y

    def outer(self, x):
        a, b = self.inner(self.before(x))
        run.note("is", a is b)
        return (a * b).sum()
    trained(run, inner, outer)


@way
def an_output_list_that_grows_afterwards(run):
    def inner(self, x):
        self.kept = [self.fc(x)]
        return self.kept

    def outer(self, x):
        out = self.inner(self.before(x))
        run.note("is", out is self.inner.kept)
        out.append(out[0] * 2)
        return sum(o.sum() for o in self.inner.kept)
    trained(run, inner, outer)


@way
def an_output_changed_in_place(run):
    def outer(self, x):
        y = self.inner(self.before(x))
        y += 1
        y.mul_(y.detach().clone())
        F.relu_(y)
        return y.sum()
    trained(run, lambda self, x: self.fc(x), outer)


@way
def an_output_detached_in_place(run):
    def outer(self, x):
        h = self.before(x)
        y = self.inner(h)
        y.detach_()
        return (self.before(y) + h).sum()
    trained(run, lambda self, x: self.fc(x), outer)


@way
def hidden_states_detached_in_place_between_steps(run):
    state = {}

    def outer(self, x):
        h = state.get("h", torch.zeros(2, 4))
        h = self.inner(self.before(x) + h)
        state["h"] = h
        return h.pow(2).sum()

    model, x = two_layers(lambda self, x: self.fc(x), outer), torch.randn(2, 4)

    def backward(loss):
        loss.backward()
        state["h"].detach_()
    run.train(model, lambda m, i: m(x), backward=backward)
    run.note("h", state["h"])


@way
def views_of_outputs_changed_in_place(run):
    def inner(self, x):
        return self.fc(x).chunk(2, dim=1)

    def outer(self, x):
        a, b = self.inner(self.before(x))
        c = a.clone()
        c[:, 0] = 0
        return (c * b).sum()
    trained(run, inner, outer)


@way
def the_output_is_a_view_of_the_input(run):
    def outer(self, x):
        y = self.before(x)
        z = self.flat(y)
        run.note("base", (z._base is y, z.data_ptr() == y.data_ptr()))
        z = z.clone()
        z[0, 0] = 7.0
        return self.inner(z).sum()
    model = two_layers(lambda self, x: self.fc(x.view(-1, 4)), outer, flat=nn.Unflatten(1, (2, 2)))
    x = torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))


@way
def a_view_of_a_leaf_changed_in_place_under_no_grad(run):
    def outer(self, x):
        with torch.no_grad():
            self.before.weight[0].zero_()
        return self.inner(self.before(x)).sum()
    trained(run, lambda self, x: self.fc(x), outer)


@way
def a_module_that_returns_its_parameter(run):
    def inner(self, x):
        return self.fc.weight

    def outer(self, x):
        w = self.inner(x)
        run.note("is", (w is self.inner.fc.weight, w.is_leaf))
        return (self.before(x) @ w).sum()
    trained(run, inner, outer)


@way
def a_module_that_returns_none_numbers_and_texts(run):
    def inner(self, x):
        self.y = self.fc(x)
        return None, 3, "text", [1.5], self.y

    def outer(self, x):
        none, three, text, numbers, y = self.inner(self.before(x))
        run.note("values", (none, three, text, numbers, y is self.inner.y))
        return y.sum()
    trained(run, inner, outer)


@way
def a_generator_as_output(run):
    def inner(self, x):
        for scale in (1, 2):
            yield self.fc(x) * scale

    def outer(self, x):
        return sum(y.pow(2).sum() for y in self.inner(self.before(x)))
    trained(run, inner, outer)


@way
def outputs_of_which_only_one_is_used(run):
    def inner(self, x):
        y = self.fc(x)
        return y, y.exp(), {"more": y * 7}

    def outer(self, x):
        return self.inner(self.before(x))[1].sum()
    trained(run, inner, outer)


@way
def outputs_without_gradient_beside_those_with(run):
    def inner(self, x):
        y = self.fc(x)
        return y, y.argmax(-1), y.detach(), y > 0

    def outer(self, x):
        y, which, d, mask = self.inner(self.before(x))
        run.note("grad", (which.requires_grad, d.requires_grad, mask.requires_grad, d.grad_fn is None))
        return (y * mask * d).sum() + y.gather(1, which[:, None]).sum()
    trained(run, inner, outer)


@way
def output_numbers_of_nodes_with_many_outputs(run):
    def inner(self, x):
        return torch.unbind(self.fc(x), dim=1)

    def outer(self, x):
        parts = self.inner(self.before(x))
        run.note("numbers", [p.output_nr for p in parts])
        return (parts[0] * parts[3]).sum() + parts[1].exp().sum()
    trained(run, inner, outer)


@way
def retain_grad_on_outputs(run):
    def outer(self, x):
        self.h = self.inner(self.before(x))
        self.h.retain_grad()
        return self.h.pow(3).sum()

    model, x = two_layers(lambda self, x: self.fc(x), outer), torch.randn(2, 4)
    run.train(model, lambda m, i: m(x))
    run.note("retained", model.h.grad)
    run.note("retains", getattr(model.h, "retains_grad", None))


@way
def names_of_gradient_nodes_around_modules(run):
    def outer(self, x):
        y = self.before(x)
        z = self.inner(y)
        names, node = [], z.grad_fn
        while node is not None:
            names.append(node.name())
            node = node.next_functions[0][0] if node.next_functions else None
        run.note("nodes", names)
        return z.sum()
    trained(run, lambda self, x: self.fc(x), outer)


@way
def activations_go_as_soon_as_nobody_holds_them(run):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(2, 4)

    def step():
        hidden = model[0](x)
        act = model[1](hidden)
        out = model[2](act)
        out.sum().backward()
        return [hidden, act, out]
    for _ in range(2):
        with run.dump(model):
            run.note("inside", freed(step))
        run.note("after", freed(step))


@way
def a_model_goes_when_nobody_holds_it(run):
    def make():
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        with run.dump(model):
            model(torch.randn(2, 4)).sum().backward()
        return [model[0].weight.grad]
    run.note("gradient is freed", freed(make))


@way
def a_graph_that_is_never_run_backward_goes(run):
    model, x = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)), torch.randn(2, 4)

    def step():
        out = model(x)
        return [out]
    with run.dump(model):
        for _ in range(3):
            run.note("freed", freed(step))
    run.note_model(model)


@way
def saved_tensors_hooks_see_the_same_tensors(run):
    seen = []

    def pack(t):
        seen.append(tuple(t.shape))
        return t.clone()

    def outer(self, x):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            return self.inner(self.before(x).relu()).exp().sum()
    trained(run, lambda self, x: self.fc(x), outer)
    run.note("packed", seen)


@way
def tensors_saved_on_cpu(run):
    def outer(self, x):
        with torch.autograd.graph.save_on_cpu():
            return self.inner(self.before(x).relu()).exp().sum()
    trained(run, lambda self, x: self.fc(x), outer)


@way
def a_dict_subclass_that_forbids_writing(run):
    class Frozen(dict):
        def __setitem__(self, key, value):
            raise TypeError("frozen")

        update = pop = setdefault = __setitem__

    def inner(self, x):
        return Frozen(y=self.fc(x), z=x)

    def outer(self, x):
        out = self.inner(self.before(x))
        run.note("type", type(out).__name__)
        return (out["y"] * out["z"]).sum()
    trained(run, inner, outer)


@way
def complex_outputs(run):
    def inner(self, x):
        return torch.fft.fft(self.fc(x))

    def outer(self, x):
        f = self.inner(self.before(x))
        return (f * f.conj()).real.sum() + f.abs().sum() + torch.fft.ifft(f).imag.pow(2).sum()
    trained(run, inner, outer, lr=1e-3)


@way
def conjugated_and_negated_views(run):
    def inner(self, x):
        z = torch.complex(self.fc(x), x)
        return z.conj(), z.conj().imag

    def outer(self, x):
        c, n = self.inner(self.before(x))
        run.note("bits", (c.is_conj(), n.is_neg()))
        return (c * c.conj()).real.sum() + n.sum()
    trained(run, inner, outer)


@way
def empty_and_scalar_outputs(run):
    def inner(self, x):
        y = self.fc(x)
        return y[:0], y.sum(), y

    def outer(self, x):
        empty, total, y = self.inner(self.before(x))
        return empty.sum() + total * y.mean()
    trained(run, inner, outer)


@way
def not_a_number_and_infinity(run):
    def inner(self, x):
        return torch.log(self.fc(x)), self.fc(x) / 0

    def outer(self, x):
        a, b = self.inner(self.before(x))
        run.note("nan", (a, b))
        return torch.nan_to_num(a).sum() + torch.nan_to_num(b, posinf=1.0, neginf=-1.0).sum()
    trained(run, inner, outer)
