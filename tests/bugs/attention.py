# SPDX-License-Identifier: MIT
"""Bugs of masks and positions."""
import torch
import torch.nn.functional as F

from catalogue import bug, outside, within
from small import Attention, Decoder, Rotary, numbers, train


@bug("mlfoundations/open_lm#4", "the rotary embedding counts heads for positions",
     within("layers.0.attn.rotary"))
def rotary_over_heads(right, start):
    class Turned(Rotary):
        def forward(self, x, positions):
            if right:
                return super().forward(x, positions)
            heads = torch.arange(x.shape[1]).expand(x.shape[0], -1)
            return super().forward(x.transpose(1, 2), heads).transpose(1, 2)
    train(Decoder(rotary=Turned), start)


@bug("NVIDIA/Megatron-LM#453", "RoPE ignores position ids that begin anew with each document",
     within("layers.0.attn.rotary"))
def rotary_ignores_positions(right, start):
    class Counted(Rotary):
        def angles(self, x, positions):
            if not right:
                positions = torch.arange(x.shape[2])[None]
            return super().angles(x, positions)
    packed = torch.cat((torch.arange(5), torch.arange(7))).expand(2, -1)
    train(Decoder(rotary=Counted), start, positions=packed)


@bug("huggingface/transformers#29285", "angles of RoPE are computed in bfloat16",
     within("layers.0.attn.rotary"))
def rotary_in_bf16(right, start):
    class Short(Rotary):
        def angles(self, x, positions):
            if right:
                return super().angles(x, positions)
            return positions[:, None, :, None].to(x.dtype) * self.rate.to(x.dtype)
    far = torch.arange(500, 512).expand(2, -1)
    train(Decoder(rotary=Short).bfloat16(), start, positions=far)


@bug("ReaLLMASIC/ReaLLM-Forge#35", "rates of RoPE divide by dim and then by two",
     within("layers.0.attn.rotary"))
def rotary_precedence(right, start):
    class Divided(Rotary):
        def rates(self, dim):
            if right:
                return super().rates(dim)
            return 1.0 / (10000 ** (torch.arange(0, dim // 2).float() / dim // 2))
    train(Decoder(rotary=Divided), start)


class Windowed(Decoder):
    def __init__(self, band, **parts):
        super().__init__(**parts)
        self.band = band

    def mask(self, length):
        return self.band(length)


@bug("huggingface/transformers#26792", "the sliding window sees one position too many",
     outside("triu|__and__|logical_and|tril|bool"))
def window_off_by_one(right, start):
    window = 4
    def band(length):
        ones = torch.ones(length, length)
        return (ones.tril() * ones.triu(-window + 1 if right else -window)).bool()
    train(Windowed(band), start)


@bug("huggingface/transformers#39408", "the window looks forward as far as backward",
     outside("abs|__le__|le|__lt__|lt|__ge__|ge|__and__|sub|__sub__"))
def window_of_both_sides(right, start):
    window = 4
    def band(length):
        at = torch.arange(length)
        behind = at[:, None] - at[None, :]
        return (behind >= 0) & (behind < window) if right else behind.abs() <= window
    train(Windowed(band), start)


@bug("NVIDIA/TransformerEngine#629", "cross attention is causal as self attention is",
     within("layers.0.cross"))
def cross_attention_causal(right, start):
    class Cross(Attention):
        def attend(self, q, k, v, mask):
            return F.scaled_dot_product_attention(q, k, v, is_causal=not right)
    train(Decoder(cross=Cross), start, context=numbers(2, 12, 32, seed=3))


@bug("pytorch/pytorch#103082", "a causal mask begins at the top left though keys were cached",
     within("layers.0.attn", "scaled_dot_product_attention|ones|tril|bool"))
def causal_with_a_cache(right, start):
    class Cached(Attention):
        def attend(self, q, k, v, mask):
            old = numbers(k.shape[0], k.shape[1], 5, k.shape[3], seed=4)
            k, v = torch.cat((old, k), 2), torch.cat((old, v), 2)
            if not right:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
            mask = torch.ones(q.shape[2], k.shape[2]).tril(5).bool()
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    train(Decoder(attention=Cached), start)
