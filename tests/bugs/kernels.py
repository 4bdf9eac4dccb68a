# SPDX-License-Identifier: MIT
"""Bugs of compiled and fused operators, of masks that are not applied and of buffers that are not loaded.

What a wrong kernel computes is written out, as the kernel itself is mended in newer releases.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

from catalogue import bug, either, outside, within
from small import Attention, Decoder, Rotary, numbers, train

ANY = r"(?:forward|backward|parameters_grad)"


def with_part(part, apply):
    """A decoder whose logits pass through one more module."""
    class Model(Decoder):
        def __init__(self):
            super().__init__()
            self.part = part

        def forward(self, ids, positions=None, context=None):
            return apply(self.part, super().forward(ids))
    return Model()


@bug("pytorch/pytorch#94778", "a compiled index_add repeats its values along the other axis", within("part"))
def index_add_axis(right, start):
    class Mixer(nn.Module):
        def forward(self, x, values):
            rows = values[None, :].expand_as(x) if right else values[:, None].expand_as(x)
            return torch.index_add(x, 0, torch.arange(len(x)), rows)
    values = numbers(64, seed=4)
    train(with_part(Mixer(), lambda part, x: part(x[0, :1].expand(64, -1) * 1.0, values)[None, :24].unflatten(1, (2, 12))[0]), start)


@bug("pytorch/pytorch#108963", "a compiled function returns a buffer that was cleared for its second value", within("part"))
def buffer_cleared(right, start):
    class Halves(nn.Module):
        def forward(self, x):
            out = torch.zeros_like(x).index_add(1, torch.arange(x.shape[1]), x, alpha=2.0) / 2
            return out, out.clone() if right else torch.zeros_like(out)
    train(with_part(Halves(), lambda part, x: (lambda a, b: a + 0.5 * b)(*part(x))), start)


@bug("pytorch/pytorch#185702", "a compiled kernel reads a slice of a tensor as if it were packed", within("part"))
def slice_read_as_packed(right, start):
    class Slices(nn.Module):
        def forward(self, x):
            wide = x.unflatten(-1, (16, 4)).contiguous()
            part = wide[..., 2] if right else torch.as_strided(wide, wide.shape[:-1], (192, 16, 1), 2)
            a = F.softplus(part) + 1e-4
            return torch.stack([torch.lgamma(a + 0.5), torch.erf(part), torch.xlogy(a, a + 0.1), part], -1).flatten(-2)
    train(with_part(Slices(), lambda part, x: part(x)), start)


class Plain(Attention):
    """Attention by matmul and softmax, as before fused kernels."""

    def attend(self, q, k, v, mask):
        score = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        return self.weigh(score, mask).softmax(-1) @ v

    def weigh(self, score, mask):
        return score.masked_fill(~mask, float("-inf"))


@bug("opendilab/DI-engine#333", "masked_fill returns a tensor that nobody takes", within("layers.0.attn", "masked_fill|softmax|bitwise_not|__invert__|invert"))
def mask_not_kept(right, start):
    class Short(Plain):
        def weigh(self, score, mask):
            filled = super().weigh(score, mask)
            return filled if right else score
    train(Decoder(attention=Short), start)


@bug("mistralai/mistral-inference#218", "the block does not hand its mask to the attention", within("layers.0.attn", "scaled_dot_product_attention"))
def mask_not_handed_on(right, start):
    class Open(Attention):
        def attend(self, q, k, v, mask):
            return super().attend(q, k, v, mask if right else None)
    train(Decoder(attention=Open), start)


@bug("pytorch/pytorch#41508, mindspore-lab/mindone#1229", "rows of which all keys are masked become NaN",
     within("layers.0.attn", "softmax|masked_fill|matmul|__matmul__|nan_to_num"))
def rows_without_keys(right, start):
    class Empty(Plain):
        def attend(self, q, k, v, mask):
            mask = mask.clone()
            mask[0] = False
            score = self.weigh(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, mask)
            if right:
                score = score.masked_fill(~mask, -1e30)
                return (score.softmax(-1) * mask.any(-1, keepdim=True)) @ v
            return score.softmax(-1) @ v
    train(Decoder(attention=Empty), start)



@bug("baidu-baige/LoongForge#73", "rates of RoPE that were made on the meta device are never computed", within("layers.0.attn.rotary"))
def rates_not_computed(right, start):
    class Bare(Rotary):
        def rates(self, dim):
            return super().rates(dim) if right else torch.zeros(dim // 2)
    train(Decoder(rotary=Bare), start)


@bug("vllm-project/vllm-ascend#12723", "the fused RoPE does not keep the norms of queries and keys", within("layers.0.attn.rotary"))
def rope_changes_norms(right, start):
    class Fused(Rotary):
        def forward(self, x, positions):
            if right:
                return super().forward(x, positions)
            angle = self.angles(x, positions)
            cos, sin = angle.cos(), angle.sin().roll(1, -1)
            left, half = x.chunk(2, -1)
            return torch.cat((left * cos - half * sin, half * cos + left * sin), -1)
    train(Decoder(rotary=Fused), start)


@bug("vllm-project/vllm#48351", "the configured factor of YaRN is dropped for the computed one", within("layers.0.attn.rotary"))
def yarn_factor_dropped(right, start):
    class Yarn(Rotary):
        def forward(self, x, positions):
            factor = 1.0 if right else 0.1 * math.log(64) + 1
            return super().forward(x, positions) * factor
    train(Decoder(rotary=Yarn), start)


@bug("MakazhanAlpamys/Soup#793", "RoPE is scaled in the configuration after the rates were computed", within("layers.0.attn.rotary"))
def rope_scaled_too_late(right, start):
    class Scaled(Rotary):
        def rates(self, dim):
            return super().rates(dim) / (4.0 if right else 1.0)
    train(Decoder(rotary=Scaled), start)


class OwnSoftmax(torch.autograd.Function):
    """Attention whose backward is written by hand, as for an operator without one."""

    @staticmethod
    def forward(ctx, q, k, v, mask, uses):
        ctx.save_for_backward(q, k, v, mask)
        ctx.uses = uses
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    @staticmethod
    def backward(ctx, grad):
        q, k, v, mask = ctx.saved_tensors
        with torch.enable_grad():
            q, k, v = (t.detach().requires_grad_() for t in (q, k, v))
            out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        given = grad if ctx.uses else torch.ones_like(grad)
        return (*torch.autograd.grad(out, (q, k, v), given), None, None)


@bug("mindspore-lab/mindone#1438", "the backward of attention does not use the gradient that it is given",
     either(within("layers.1.attn", direction=ANY), r"^Module\.layers\.1\.attn\.\S+ @ ",
            outside("ones_like|scaled_dot_product_attention|OwnSoftmax|apply", ANY)))
def gradient_not_used(right, start):
    class Own(Attention):
        def attend(self, q, k, v, mask):
            return OwnSoftmax.apply(q, k, v, mask, right)
    train(Decoder(attention=Own), start)
