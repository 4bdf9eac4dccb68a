# SPDX-License-Identifier: MIT
"""Families of the fourth set, written after all rules that the first three sets led to.

Newer language models, encoders, image models with attention or pooling, an autoencoder, recurrent
networks, torch's own transformer, a diffusion transformer, a field of physics and tables of features.
"""
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import BERT_LIKE, LLAMA_LIKE, VOCAB, Family, image, language, pixels, tokens


# ---- of libraries ------------------------------------------------------------------------

def language_models():
    yield language("gptj", "GPTJConfig", "GPTJForCausalLM", n_embd=32, n_layer=2, n_head=4,
                   n_positions=32, rotary_dim=4, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    yield language("stablelm", "StableLmConfig", "StableLmForCausalLM", **LLAMA_LIKE)
    yield language("olmo2", "Olmo2Config", "Olmo2ForCausalLM", **LLAMA_LIKE)
    yield language("granite", "GraniteConfig", "GraniteForCausalLM", residual_multiplier=0.5,
                   embedding_multiplier=2.0, logits_scaling=2.0, **LLAMA_LIKE)
    yield language("phi3", "Phi3Config", "Phi3ForCausalLM", resid_pdrop=0.0, embd_pdrop=0.0,
                   **LLAMA_LIKE)
    yield language("albert", "AlbertConfig", "AlbertForMaskedLM", 0.7, embedding_size=16,
                   **BERT_LIKE)
    yield language("xlnet", "XLNetConfig", "XLNetLMHeadModel", 0.7, d_model=32, n_layer=2, n_head=4,
                   d_inner=48, dropout=0.0)


def vision_models():
    def hub(name, **keys):
        import torchvision
        return lambda: getattr(torchvision.models, name)(weights=None, num_classes=10, **keys)

    def timm_model(name, **keys):
        import timm
        return lambda: timm.create_model(name, num_classes=10, **keys)
    yield image("mobilenet3", hub("mobilenet_v3_small", dropout=0.0), size=48, batch=6)
    yield image("poolformer", timm_model("poolformer_s12", layers=(1, 1, 1, 1),
                                         embed_dims=(8, 16, 24, 32)), size=64)
    yield image("coat", timm_model("deit3_small_patch16_224", img_size=32, patch_size=8,
                                   embed_dim=32, depth=2, num_heads=4), size=32)


def autoencoder():
    def make():
        import diffusers
        return diffusers.AutoencoderKL(
            block_out_channels=(8, 16), down_block_types=("DownEncoderBlock2D",) * 2,
            up_block_types=("UpDecoderBlock2D",) * 2, latent_channels=4, norm_num_groups=4,
            sample_size=16, layers_per_block=1)

    def batch():
        b = pixels(16, 3)
        return {"pixel_values": b["pixel_values"], "labels": b["pixel_values"].clone()}

    def loss(m, b):
        latent = m.encode(b["pixel_values"]).latent_dist
        made = m.decode(latent.mode()).sample
        return F.l1_loss(made, b["labels"]) + 1e-3 * latent.kl().mean()
    return Family("autoencoder", make, batch, loss, vision=True)


# ---- own code ------------------------------------------------------------------------------

class TorchEncoder(nn.Module):
    """torch's own transformer, with a mask of its causal kind."""

    def __init__(self):
        super().__init__()
        self.embed, self.position = nn.Embedding(VOCAB, 32), nn.Embedding(16, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True,
                                           norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(32), enable_nested_tensor=False)
        self.head = nn.Linear(32, VOCAB)

    def forward(self, ids):
        n = ids.shape[1]
        x = self.embed(ids) * math.sqrt(32) + self.position(torch.arange(n))
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        return self.head(self.encoder(x, mask=mask, is_causal=True))


def torch_encoder():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"], "labels": b["labels"]}

    def loss(m, b):
        logits = m(b["input_ids"])[:, :-1]
        return F.cross_entropy(logits.reshape(-1, VOCAB), b["labels"][:, 1:].reshape(-1))
    return Family("torch_encoder", TorchEncoder, batch, loss)


class Tagger(nn.Module):
    """A bidirectional GRU over characters and words, with a layer of transitions."""

    def __init__(self):
        super().__init__()
        self.words, self.drop = nn.Embedding(60, 16), nn.Dropout(0.0)
        self.gru = nn.GRU(16, 12, num_layers=2, batch_first=True, bidirectional=True)
        self.norm, self.hidden, self.out = nn.LayerNorm(24), nn.Linear(24, 20), nn.Linear(20, 7)
        self.moves = nn.Parameter(torch.randn(7, 7) * 0.1)

    def score(self, emitted, tags):
        start = emitted[:, 0]
        real = start.gather(1, tags[:, :1])[:, 0]
        for i in range(1, emitted.shape[1]):
            start = torch.logsumexp(start[:, :, None] + self.moves[None], 1) + emitted[:, i]
            real = real + emitted[:, i].gather(1, tags[:, i:i + 1])[:, 0]
            real = real + self.moves[tags[:, i - 1], tags[:, i]]
        return (torch.logsumexp(start, 1) - real).mean()

    def forward(self, ids):
        h, _ = self.gru(self.drop(self.words(ids)))
        return self.out(torch.tanh(self.hidden(self.norm(h))))


def tagger():
    def batch():
        g = torch.Generator().manual_seed(31)
        return {"input_ids": torch.randint(0, 60, (4, 8), generator=g),
                "labels": torch.randint(0, 7, (4, 8), generator=g)}
    return Family("tagger", Tagger, batch, lambda m, b: m.score(m(b["input_ids"]), b["labels"]))


class DiffusionBlock(nn.Module):
    def __init__(self, size=32, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(size, elementwise_affine=False, eps=1e-6)
        self.norm2 = nn.LayerNorm(size, elementwise_affine=False, eps=1e-6)
        self.qkv, self.proj = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.fc1, self.fc2 = nn.Linear(size, 64), nn.Linear(64, size)
        self.modulation = nn.Linear(size, 6 * size)
        self.act, self.silu = nn.GELU(approximate="tanh"), nn.SiLU()

    def attention(self, x):
        b, n, c = x.shape
        q, k, v = self.qkv(x).reshape(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = (q * (c // self.heads) ** -0.5) @ k.transpose(-2, -1)
        return self.proj((a.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c))

    def forward(self, x, c):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(self.silu(c))[:, None].chunk(6, -1)
        x = x + gate1 * self.attention(self.norm1(x) * (1 + scale1) + shift1)
        h = self.norm2(x) * (1 + scale2) + shift2
        return x + gate2 * self.fc2(self.act(self.fc1(h)))


class DiffusionTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4)
        self.place = nn.Parameter(torch.randn(1, 16, 32) * 0.02)
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.kinds = nn.Embedding(5, 32)
        self.blocks = nn.ModuleList(DiffusionBlock() for _ in range(2))
        self.norm, self.out = nn.LayerNorm(32), nn.Linear(32, 48)

    def embed(self, t):
        f = torch.exp(-math.log(1000.0) * torch.arange(8) / 8)
        a = t[:, None] * f[None]
        return torch.cat([a.cos(), a.sin()], -1)

    def forward(self, x, t, kind):
        h = self.patch(x).flatten(2).transpose(1, 2) + self.place
        c = self.time(self.embed(t)) + self.kinds(kind)
        for block in self.blocks:
            h = block(h, c)
        h = self.out(self.norm(h)).reshape(-1, 4, 4, 4, 4, 3)
        return torch.einsum("bhwpqc->bchpwq", h).reshape(-1, 3, 16, 16)


def diffusion_transformer():
    def batch():
        g = torch.Generator().manual_seed(32)
        x, noise = (torch.randn(4, 3, 16, 16, generator=g) for _ in range(2))
        return {"pixel_values": 0.7 * x + 0.3 * noise, "t": torch.tensor([5.0, 40.0, 300.0, 900.0]),
                "kind": torch.tensor([0, 3, 1, 4]), "labels": noise - x}
    return Family("dit", DiffusionTransformer, batch, lambda m, b: F.mse_loss(
        m(b["pixel_values"], b["t"], b["kind"]), b["labels"]), vision=True)


class Operator(nn.Module):
    """A Fourier neural operator in two dimensions: a spectral convolution beside a pointwise one."""

    def __init__(self, width=12, modes=4):
        super().__init__()
        self.modes, self.lift = modes, nn.Conv2d(3, width, 1)
        self.real = nn.Parameter(torch.randn(2, width, width, modes, modes) / width)
        self.imaginary = nn.Parameter(torch.randn(2, width, width, modes, modes) / width)
        self.points = nn.ModuleList(nn.Conv2d(width, width, 1) for _ in range(2))
        self.norms = nn.ModuleList(nn.InstanceNorm2d(width, affine=True) for _ in range(2))
        self.head = nn.Sequential(nn.Conv2d(width, 24, 1), nn.GELU(), nn.Conv2d(24, 1, 1))

    def spectral(self, x, i):
        f = torch.fft.rfft2(x, norm="ortho")[:, :, :self.modes, :self.modes]
        re = torch.einsum("bixy,ioxy->boxy", f.real, self.real[i])
        re = re - torch.einsum("bixy,ioxy->boxy", f.imag, self.imaginary[i])
        im = torch.einsum("bixy,ioxy->boxy", f.real, self.imaginary[i])
        im = im + torch.einsum("bixy,ioxy->boxy", f.imag, self.real[i])
        full = F.pad(torch.complex(re, im), (0, 9 - self.modes, 0, 16 - self.modes))
        return torch.fft.irfft2(full, s=(16, 16), norm="ortho")

    def forward(self, x):
        x = self.lift(x)
        for i in range(2):
            x = x + F.gelu(self.norms[i](self.spectral(x, i) + self.points[i](x)))
        return self.head(x)


def neural_operator():
    def batch():
        g = torch.Generator().manual_seed(33)
        return {"pixel_values": torch.randn(3, 3, 16, 16, generator=g),
                "labels": torch.randn(3, 1, 16, 16, generator=g)}

    def loss(m, b):
        off = m(b["pixel_values"]) - b["labels"]
        return (off.flatten(1).norm(dim=1) / b["labels"].flatten(1).norm(dim=1)).mean()
    return Family("operator", Operator, batch, loss, vision=True)


class Tables(nn.Module):
    """Features of a table as tokens: gates of experts over them, a loss with weights."""

    def __init__(self):
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(12, 16) for _ in range(3))
        self.numbers = nn.Parameter(torch.randn(5, 16) * 0.3)
        self.norm = nn.BatchNorm1d(5)
        self.query, self.key, self.value = (nn.Linear(16, 16) for _ in range(3))
        self.gate = nn.Linear(16, 3)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 16))
                                     for _ in range(3))
        self.last, self.out = nn.LayerNorm(16), nn.Linear(16, 3)

    def mix(self, x):
        share = torch.softmax(self.gate(x), -1)
        top, which = share.topk(2, -1)
        share = torch.zeros_like(share).scatter(-1, which, top / top.sum(-1, keepdim=True))
        return sum(share[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))

    def forward(self, numbers, kinds):
        x = [self.norm(numbers)[..., None] * self.numbers[None]]
        x += [e(kinds[:, i])[:, None] for i, e in enumerate(self.kinds)]
        x = torch.cat(x, 1)
        a = torch.softmax(self.query(x) @ self.key(x).mT / 4.0, -1)
        x = x + a @ self.value(x)
        x = x + self.mix(self.last(x))
        return self.out(x.mean(1))


def tables():
    def batch():
        g = torch.Generator().manual_seed(34)
        return {"pixel_values": torch.randn(24, 5, generator=g) * 2 + 1,
                "kinds": torch.randint(0, 12, (24, 3), generator=g),
                "labels": torch.randint(0, 3, (24,), generator=g)}
    weight = torch.tensor([0.5, 1.0, 2.0])
    return Family("tables", Tables, batch, lambda m, b: F.cross_entropy(
        m(b["pixel_values"], b["kinds"]), b["labels"], weight=weight))


def families():
    return [torch_encoder(), diffusion_transformer(), tagger(), tables(), neural_operator(),
            *language_models(), *vision_models(), autoencoder()]
