# SPDX-License-Identifier: MIT
"""Programs as they are: outputs like those of transformers, loaders that persist, hooks of all kinds at once, and
exceptions in the middle of backward."""
import dataclasses
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import data

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


class Output(OrderedDict):
    """As ModelOutput: a dict whose entries are fields, with positions and without those that are None."""

    def __init_subclass__(cls):
        dataclasses.dataclass(cls)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                super().__setitem__(field.name, value)

    def __delitem__(self, *args, **kwargs):
        raise RuntimeError("an output keeps its entries")

    def __getitem__(self, key):
        return dict(self.items())[key] if isinstance(key, str) else self.to_tuple()[key]

    def __setattr__(self, name, value):
        if name in self.keys() and value is not None:
            super().__setitem__(name, value)
        super().__setattr__(name, value)

    def __reduce__(self):
        return type(self), tuple(getattr(self, f.name) for f in dataclasses.fields(self))

    def to_tuple(self):
        return tuple(self[key] for key in self.keys())


class CausalOutput(Output):
    loss: object = None
    logits: object = None
    hidden_states: object = None
    attentions: object = None


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.norm, self.attention, self.mlp = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, hidden_states, attention_mask=None, past=None, use_cache=False, output_attentions=False):
        q, k, v = self.attention(self.norm(hidden_states)).chunk(3, dim=-1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)
        weights = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        if attention_mask is not None:
            weights = weights.masked_fill(attention_mask == 0, torch.finfo(weights.dtype).min)
        weights = F.softmax(weights, dim=-1)
        outputs = (hidden_states + self.mlp(weights @ v),)
        outputs += ((k, v),) if use_cache else ()
        return outputs + ((weights,) if output_attentions else ())


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(11, 4), nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(4, 11, bias=False)
        self.head.weight = self.embed.weight
        self.gradient_checkpointing = False

    def forward(self, input_ids, labels=None, past_key_values=None, use_cache=False, output_attentions=False, return_dict=True):
        from torch.utils.checkpoint import checkpoint
        hidden, states, attentions, cache = self.embed(input_ids), [], [], []
        for i, block in enumerate(self.blocks):
            states.append(hidden)
            past = past_key_values[i] if past_key_values is not None else None
            if self.gradient_checkpointing:
                out = checkpoint(block.__call__, hidden, None, past, use_cache, output_attentions, use_reentrant=False)
            else:
                out = block(hidden, past=past, use_cache=use_cache, output_attentions=output_attentions)
            hidden = out[0]
            if use_cache:
                cache.append(out[1])
            if output_attentions:
                attentions.append(out[-1])
        logits = self.head(hidden)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].reshape(-1, 11), labels[:, 1:].reshape(-1), ignore_index=-100)
        if not return_dict:
            return tuple(v for v in (loss, logits, tuple(cache), tuple(states)) if v is not None)
        return CausalOutput(loss=loss, logits=logits, hidden_states=tuple(states), attentions=tuple(attentions) or None)


IDS = torch.tensor([[1, 5, 3, 9], [2, 2, 10, 0]])


@way
def a_causal_language_model_with_outputs_by_name(run):
    model = Causal()

    def loss_of(model, step):
        out = model(IDS, labels=IDS, output_attentions=step == 1)
        run.note("output", (type(out).__name__, list(out), out["logits"] is out.logits, out[0] is out.loss, out.to_tuple()[1] is out.logits))
        run.raises("deleted", lambda: out.__delitem__("loss"))
        return out.loss
    run.train(model, loss_of, optimizer=torch.optim.AdamW)


@way
def a_causal_language_model_that_checkpoints_and_returns_tuples(run):
    model = Causal()
    model.gradient_checkpointing = True

    def loss_of(model, _step):
        loss, logits, cache, states = model(IDS, labels=IDS, use_cache=True, return_dict=False)
        run.note("sizes", (len(cache), len(states), cache[0][0].shape))
        return loss + logits.mean()
    run.train(model, loss_of)


@way
def a_causal_language_model_that_generates_between_steps(run):
    model = Causal()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        with run.dump(model):
            opt.zero_grad()
            model(IDS, labels=IDS).loss.backward()
            opt.step()
            model.eval()
            with torch.no_grad():
                ids, cache = IDS, None
                for _ in range(3):
                    _, *rest = (None, *model(ids[:, -1:] if cache else ids, past_key_values=cache, use_cache=True, return_dict=False))
                    logits, cache = rest[0], rest[1]
                    ids = torch.cat([ids, logits[:, -1:].argmax(-1)], 1)
            model.train()
        run.note("generated", ids)
    run.note_model(model)


class Rows(data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index < 0:
            raise KeyError(index)
        return torch.full((4,), float(index)), {"index": index, "noise": torch.rand(1)}


@way
def loaders_whose_workers_persist(run):
    loader = data.DataLoader(Rows(), batch_size=3, num_workers=2, persistent_workers=True, shuffle=True,
                             generator=torch.Generator().manual_seed(3), prefetch_factor=2)
    model = nn.Sequential(nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        for rows, more in loader:
            with run.dump(model):
                opt.zero_grad()
                model(rows).mean().backward()
                opt.step()
            run.note("rows", (rows, more["index"], more["noise"]))
    run.note_model(model)
    loader._iterator._shutdown_workers()


@way
def streams_of_rows_with_samplers_and_collation(run):
    class Stream(data.IterableDataset):
        def __iter__(self):
            info = data.get_worker_info()
            first, by = (info.id, info.num_workers) if info else (0, 1)
            return (torch.full((2,), float(i)) for i in range(first, 6, by))

    def collate(rows):
        return torch.stack(rows), len(rows)
    weights = data.WeightedRandomSampler([0.1, 0.9, 0.5], 4, generator=torch.Generator().manual_seed(1))
    model = nn.Sequential(nn.Linear(2, 1))
    with run.dump(model):
        for rows, n in data.DataLoader(Stream(), batch_size=2, num_workers=2, collate_fn=collate):
            model(rows).sum().backward()
            run.note("rows", (rows, n))
        run.note("sampled", list(weights))
        parts = data.random_split(Rows(), [5, 7], generator=torch.Generator().manual_seed(2))
        run.note("parts", [p.indices for p in parts])
        run.note("both", len(data.ConcatDataset(parts)))
    run.note_model(model)


@way
def hooks_of_all_kinds_at_once(run):
    order = []
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))
    first, last = model[0], model[2]
    handles = [
        first.register_forward_pre_hook(lambda m, args: order.append("pre") or (args[0] * 2,)),
        first.register_forward_hook(lambda m, args, out: order.append("forward") or out + 1),
        last.register_full_backward_hook(lambda m, gi, go: order.append("backward") or tuple(g and g * 2 if g is None else g * 2 for g in gi)),
        first.weight.register_hook(lambda g: order.append("weight") or g * 0.5),
        nn.modules.module.register_module_forward_hook(lambda m, args, out: order.append(type(m).__name__)),
    ]
    if VERSION >= (2, 0):
        handles.append(last.register_full_backward_pre_hook(lambda m, go: order.append("backward pre") or (go[0] * 3,)))
        handles.append(first.register_forward_hook(lambda m, args, kwargs, out: order.append("keywords"), with_kwargs=True, prepend=True))
    if VERSION >= (2, 1):
        handles.append(last.weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(2) is None or order.append("accumulated")))
        handles.append(first.register_forward_hook(lambda m, args, out: order.append("always"), always_call=True))
    run.train(model, lambda m, i: m(X).sum())
    run.note("order", order)
    for handle in handles:
        handle.remove()
    run.note("left", [(len(m._forward_hooks), len(m._forward_pre_hooks), len(m._backward_hooks)) for m in model])


@way
def backward_that_raises_in_the_middle_and_is_tried_again(run):
    class Fails(torch.autograd.Function):
        times = 0

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            Fails.times += 1
            if Fails.times % 2:
                raise ArithmeticError(f"time {Fails.times}")
            return grad
    model = Calls(lambda self, x: self.c(Fails.apply(self.b(self.a(x)))).sum(), a=nn.Linear(4, 4), b=nn.Linear(4, 4), c=nn.Linear(4, 1))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        with run.dump(model):
            opt.zero_grad()
            loss = model(X)
            run.raises("first", lambda: loss.backward(retain_graph=True))
            run.note("half", [None if p.grad is None else p.grad for p in model.parameters()])
            opt.zero_grad()
            loss.backward()
            opt.step()
    run.note_model(model)


@way
def hooks_that_raise_in_backward_at_each_place(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))

    def refuse(*_):
        raise LookupError("refused")
    places = {"tensor": lambda out: out.register_hook(refuse), "weight": lambda out: model[0].weight.register_hook(refuse),
              "module": lambda out: model[2].register_full_backward_hook(refuse), "node": lambda out: out.grad_fn.register_hook(refuse)}
    for name, place in places.items():
        with run.dump(model):
            if name == "module":
                handle = place(None)
                out = model(X).sum()
            else:
                out = model(X).sum()
                handle = place(out)
            run.raises(name, out.backward)
            handle.remove()
            model.zero_grad()
            model(X).sum().backward()
        run.note_model(model, f"{name} ")
        model.zero_grad()


@way
def out_of_memory_in_the_middle_of_a_step(run):
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    with run.dump(model):
        out = model(X)
        try:
            torch.empty(1 << 50)
        except RuntimeError as error:
            run.note("raised", type(error).__name__)
        out.sum().backward()
    run.note_model(model)
