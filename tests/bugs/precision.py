# SPDX-License-Identifier: MIT
"""Bugs of approximations and of types."""
import torch
from torch import nn

from catalogue import bug, within
from small import MLP, Decoder, RMSNorm, train


@bug("huggingface/transformers#29402", "Gemma's GELU is exact and was trained with tanh",
     within("layers.0.mlp.act"))
def gelu_exact(right, start):
    def mlp(dim):
        return MLP(dim, nn.GELU(approximate="tanh" if right else "none"))
    train(Decoder(mlp=mlp), start)


@bug("huggingface/transformers#29402",
     "the norm rounds to bfloat16 before it multiplies by its weight", within("layers.0.norm1"))
def norm_rounds_early(right, start):
    class Norm(RMSNorm):
        def forward(self, x):
            y = x.float()
            y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-6)
            if right:
                return (y * (1.0 + self.weight.float())).to(x.dtype)
            return y.to(x.dtype) * (1.0 + self.weight)
    train(Decoder(norm=Norm).bfloat16(), start)


@bug("huggingface/transformers#29402", "the norm multiplies by its weight, which counts from one",
     within("layers.0.norm1"))
def norm_weight_from_one(right, start):
    class Norm(RMSNorm):
        def forward(self, x):
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
            return y * (1.0 + self.weight) if right else y * self.weight
    train(Decoder(norm=Norm), start)


@bug("pytorch/pytorch#138908", "a compiled y[x] += y[x] adds twice", within("adder"))
def added_twice(right, start):
    class Adder(nn.Module):
        def forward(self, y, at):
            y = y.clone()
            for _ in range(1 if right else 2):
                y = y.index_put((at,), y[at] * 2)
            return y

    class Model(Decoder):
        def __init__(self):
            super().__init__()
            self.adder = Adder()

        def forward(self, ids, positions=None, context=None):
            return self.adder(super().forward(ids), torch.tensor([1]))
    train(Model(), start)
