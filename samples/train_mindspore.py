# SPDX-License-Identifier: MIT
"""The model of samples/train in MindSpore: the same numbers in, the same losses out.

    train_torch.py     --steps 1 --weights start --dump in_torch
    train_mindspore.py --steps 1 --weights start --dump in_mindspore
    msprobe compare -tp in_mindspore/step0 -gp in_torch/step0 -o compared

It runs on the CPU in PyNative mode.  The options and the faults are those of
train_torch.py, so a mistake made here is found against the clean run there.
"""
import mindspore
from mindspore import Parameter, Tensor, mint, nn, ops
from mindspore.mint.nn import functional as F

import train_common as common
from train_common import HEADS, LENGTH, VOCAB


# ---- the model --------------------------------------------------------------------


class Embedding(nn.Cell):
    """That of mint has no kernel for the CPU."""

    def __init__(self, size, dim):
        super().__init__()
        self.weight = Parameter(mint.zeros((size, dim)), name="weight")

    def construct(self, tokens):
        return ops.gather(self.weight, tokens, 0)


class LayerNorm(nn.Cell):
    """That of mint has no kernel for the CPU."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = Parameter(mint.ones((dim,)), name="weight")
        self.bias = Parameter(mint.zeros((dim,)), name="bias")
        self.normalise = ops.LayerNorm(-1, -1, eps)

    def construct(self, x):
        return self.normalise(x, self.weight, self.bias)[0]


class Attention(nn.Cell):
    def __init__(self, dim, fault):
        super().__init__()
        self.qkv, self.proj = mint.nn.Linear(dim, 3 * dim), mint.nn.Linear(dim, dim)
        self.fault = fault

    def construct(self, x):
        rows, length, dim = x.shape
        q, k, v = (part.reshape(rows, length, HEADS, dim // HEADS).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, -1))
        scores = mint.matmul(q, k.transpose(-2, -1))
        if self.fault != "scale":
            scores = scores * (dim // HEADS) ** -0.5
        if self.fault != "mask":
            future = mint.triu(mint.ones((length, length), dtype=mindspore.bool_), 1)
            scores = scores.masked_fill(future, float("-inf"))
        mixed = mint.matmul(mint.softmax(scores, -1), v)
        mixed = mixed.transpose(1, 2).reshape(rows, length, dim)
        if self.fault == "transposed":
            return F.linear(mixed, self.proj.weight.t(), self.proj.bias)
        return self.proj(mixed)


class MLP(nn.Cell):
    def __init__(self, dim, fault):
        super().__init__()
        self.up, self.down = mint.nn.Linear(dim, 4 * dim), mint.nn.Linear(4 * dim, dim)
        self.fault = fault

    def construct(self, x):
        x = F.linear(x, self.up.weight) if self.fault == "bias" else self.up(x)
        x = self.down(ops.gelu(x, approximate="tanh"))
        return x.half().float() if self.fault == "half" else x


class Layer(nn.Cell):
    def __init__(self, dim, fault):
        super().__init__()
        eps = 1e-2 if fault == "eps" else 1e-5
        self.norm1, self.norm2 = LayerNorm(dim, eps), LayerNorm(dim, eps)
        self.attn, self.mlp, self.fault = Attention(dim, fault), MLP(dim, fault), fault

    def construct(self, x):
        mixed = self.attn(self.norm1(x))
        x = mixed if self.fault == "residual" else x + mixed
        change = self.mlp(self.norm2(x))
        return x - change if self.fault == "sign" else x + change


class Decoder(nn.Cell):
    def __init__(self, dim, layers, fault_layer=-1, fault=None):
        super().__init__()
        self.embed = Embedding(VOCAB, dim)
        self.position = Parameter(mint.zeros((LENGTH, dim)), name="position")
        self.layers = nn.CellList([Layer(dim, fault if i == fault_layer else None)
                                   for i in range(layers)])
        self.norm, self.head = LayerNorm(dim), mint.nn.Linear(dim, VOCAB, bias=False)

    def construct(self, tokens):
        x = self.embed(tokens) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


# ---- the run ----------------------------------------------------------------------


class Training:
    """What train_common.run asks of a framework."""

    def __init__(self, o):
        self.model, self.rate = Decoder(o.dim, o.layers, o.fault_layer, o.fault), o.rate

    def parameters(self):
        return dict(self.model.parameters_and_names())

    def put(self, parameter, values):
        parameter.set_data(Tensor(values))

    def values_of(self, parameter):
        return parameter.asnumpy()

    def debugger_class(self):
        from msprobe.mindspore import PrecisionDebugger
        return PrecisionDebugger

    def begin(self, parameters):
        parameters = list(parameters.values())
        self.optimizer = nn.Momentum(parameters, self.rate, 0.9)
        self.loss_and_gradients = mindspore.value_and_grad(self.loss_of, None, parameters)

    def loss_of(self, tokens, targets):
        return ops.cross_entropy(self.model(tokens).reshape(-1, VOCAB), targets.reshape(-1))

    def gradients(self, tokens, targets):
        loss, self.found = self.loss_and_gradients(Tensor(tokens), Tensor(targets))
        return float(loss.asnumpy())

    def step(self):
        self.optimizer(self.found)


if __name__ == "__main__":
    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    mindspore.set_device("CPU")
    options = common.options()
    common.run(Training(options), options)
