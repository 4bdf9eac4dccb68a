# SPDX-License-Identifier: MIT
"""The model of samples/train in PyTorch: the same numbers in, the same losses out.

    train_mpi      --steps 3 --save weights --dump in_c
    train_torch.py --steps 3 --weights start --dump in_torch

Without --weights both begin with the same weights of their own making; with it they are
read from a folder of NAME.npy files, one for each parameter, as --save writes them and
numpy.load reads them.  --fault makes a mistake that ports make, so that
`msprobe compare` and `msprobe check` have something to find:

    train_torch.py --steps 1 --dump clean
    train_torch.py --steps 1 --dump faulty --fault layer1.scale
    msprobe compare -tp faulty/step0 -gp clean/step0 -o compared
"""
import torch
from torch import nn
from torch.nn import functional as F

import train_common as common
from train_common import HEADS, LENGTH, VOCAB


# ---- the model --------------------------------------------------------------------


class Attention(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        self.qkv, self.proj, self.fault = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim), fault

    def forward(self, x):
        rows, length, dim = x.shape
        q, k, v = (part.reshape(rows, length, HEADS, dim // HEADS).transpose(1, 2)
                   for part in self.qkv(x).chunk(3, dim=-1))
        scores = torch.matmul(q, k.transpose(-2, -1))
        if self.fault != "scale":
            scores = scores * (dim // HEADS) ** -0.5
        if self.fault != "mask":
            future = torch.ones(length, length, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(future, float("-inf"))
        mixed = torch.matmul(torch.softmax(scores, -1), v)
        mixed = mixed.transpose(1, 2).reshape(rows, length, dim)
        if self.fault == "transposed":
            return F.linear(mixed, self.proj.weight.t(), self.proj.bias)
        return self.proj(mixed)


class MLP(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        self.up, self.down, self.fault = nn.Linear(dim, 4 * dim), nn.Linear(4 * dim, dim), fault

    def forward(self, x):
        x = F.linear(x, self.up.weight) if self.fault == "bias" else self.up(x)
        x = self.down(F.gelu(x, approximate="tanh"))
        return x.half().float() if self.fault == "half" else x


class Layer(nn.Module):
    def __init__(self, dim, fault):
        super().__init__()
        eps = 1e-2 if fault == "eps" else 1e-5
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        self.attn, self.mlp, self.fault = Attention(dim, fault), MLP(dim, fault), fault

    def forward(self, x):
        mixed = self.attn(self.norm1(x))
        x = mixed if self.fault == "residual" else x + mixed
        change = self.mlp(self.norm2(x))
        return x - change if self.fault == "sign" else x + change


class Decoder(nn.Module):
    def __init__(self, dim, layers, fault_layer=-1, fault=None):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, dim)
        self.position = nn.Parameter(torch.empty(LENGTH, dim))
        self.layers = nn.ModuleList(Layer(dim, fault if i == fault_layer else None)
                                    for i in range(layers))
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, VOCAB, bias=False)

    def forward(self, tokens):
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
        return dict(self.model.named_parameters())

    def put(self, parameter, values):
        parameter.data = torch.from_numpy(values)

    def values_of(self, parameter):
        return parameter.detach().numpy()

    def debugger_class(self):
        from msprobe.pytorch import PrecisionDebugger
        return PrecisionDebugger

    def begin(self, parameters):
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=self.rate, momentum=0.9)

    def gradients(self, tokens, targets):
        self.optimizer.zero_grad()
        scores = self.model(torch.from_numpy(tokens))
        loss = F.cross_entropy(scores.reshape(-1, VOCAB), torch.from_numpy(targets).reshape(-1))
        loss.backward()
        return loss.item()

    def step(self):
        self.optimizer.step()


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    options = common.options()
    common.run(Training(options), options)
