# SPDX-License-Identifier: MIT
"""Families of the eighth set, written after the rules of the first seven sets.

Of transformers, diffusers, timm and torchvision: Nemotron, GLM-4, DiffLlama, LFM2, DeepSeek-V2, ModernBERT,
MPNet, ConvBERT, Marian, Swin v2, ConvNeXt v2, PoolFormer, CvT, FocalNet, Flux, a UNet of diffusers, NFNet,
EfficientNet, ShuffleNet. Own: low-rank adapters, training with quantised weights, splines for layers, blocks
that forecast and backcast, a molecule with forces, a vocoder, interests of a user, a mixture of densities.
Own families train in loops of their own: SGD with Nesterov's momentum, averages of weights, micro batches.
"""
import importlib.util
import math

import torch
from torch import nn
import torch.nn.functional as F

from families import BERT_LIKE, LLAMA_LIKE, VOCAB, Family, class_loss, hugging_loss, language, pixels, tokens
from sixth_families import generator, of_config, pictures


# ---- of libraries ------------------------------------------------------------------------

def language_models():
    yield language("nemotron", "NemotronConfig", "NemotronForCausalLM", **LLAMA_LIKE)
    yield language("glm4", "Glm4Config", "Glm4ForCausalLM", **LLAMA_LIKE, head_dim=8)
    yield language("diffllama", "DiffLlamaConfig", "DiffLlamaForCausalLM", **{**LLAMA_LIKE, "num_key_value_heads": 4})
    yield language("lfm2", "Lfm2Config", "Lfm2ForCausalLM", **LLAMA_LIKE, block_auto_adjust_ff_dim=False,
                   layer_types=["conv", "full_attention"])
    yield language("deepseek_v2", "DeepseekV2Config", "DeepseekV2ForCausalLM", **{**LLAMA_LIKE, "num_key_value_heads": 4},
                   first_k_dense_replace=1, kv_lora_rank=16, q_lora_rank=None, qk_nope_head_dim=8, qk_rope_head_dim=4,
                   v_head_dim=8, n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, moe_intermediate_size=24)
    yield language("modernbert", "ModernBertConfig", "ModernBertForMaskedLM", 0.7, hidden_size=32, intermediate_size=48,
                   num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32, local_attention=6,
                   cls_token_id=1, sep_token_id=2)
    yield language("mpnet", "MPNetConfig", "MPNetForMaskedLM", 0.7, **BERT_LIKE)
    yield language("convbert", "ConvBertConfig", "ConvBertForMaskedLM", 0.7, **BERT_LIKE, embedding_size=32,
                   head_ratio=2, conv_kernel_size=3)
    yield language("marian", "MarianConfig", "MarianMTModel", d_model=32, encoder_layers=2, decoder_layers=2,
                   encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                   max_position_embeddings=32, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
                   decoder_start_token_id=2, forced_eos_token_id=2, scale_embedding=True, activation_function="swish")


def image_models():
    yield pictures("swinv2", "Swinv2Config", "Swinv2ForImageClassification", patch_size=4, embed_dim=16,
                   depths=[2, 1], num_heads=[2, 4], window_size=4, drop_path_rate=0.0)
    yield pictures("convnextv2", "ConvNextV2Config", "ConvNextV2ForImageClassification", num_stages=3,
                   hidden_sizes=[8, 16, 24], depths=[1, 1, 1])
    yield pictures("poolformer", "PoolFormerConfig", "PoolFormerForImageClassification", depths=[1, 1, 1],
                   hidden_sizes=[8, 16, 24], patch_sizes=[3, 3, 3], strides=[2, 2, 2], padding=[1, 1, 1],
                   num_encoder_blocks=3, layer_scale_init_value=0.3, mlp_ratio=2.0)
    yield pictures("cvt", "CvtConfig", "CvtForImageClassification", embed_dim=[8, 16, 24], num_heads=[1, 2, 3],
                   depth=[1, 2, 3], drop_path_rate=[0.0, 0.0, 0.0], mlp_ratio=[2.0, 2.0, 2.0])
    yield pictures("focalnet", "FocalNetConfig", "FocalNetForImageClassification", patch_size=4, embed_dim=16,
                   hidden_sizes=[16, 32], depths=[1, 1], focal_levels=[2, 2], focal_windows=[3, 3], drop_path_rate=0.0,
                   mlp_ratio=2.0, use_layerscale=True, layerscale_value=0.4)


def flux():
    def make():
        import diffusers
        return diffusers.FluxTransformer2DModel(
            patch_size=1, in_channels=4, num_layers=1, num_single_layers=1, attention_head_dim=8, num_attention_heads=3,
            joint_attention_dim=20, pooled_projection_dim=16, guidance_embeds=False, axes_dims_rope=(2, 2, 4))
    def batch():
        g = generator(111)
        clean, noise = (torch.randn(3, 16, 4, generator=g) for _ in range(2))
        return {"pixel_values": 0.6 * clean + 0.4 * noise, "words": torch.randn(3, 5, 20, generator=g),
                "pooled": torch.randn(3, 16, generator=g), "time": torch.tensor([0.4, 0.1, 0.8]), "labels": noise - clean}
    def loss(m, b):
        place = torch.stack(torch.meshgrid(torch.zeros(1), torch.arange(4.0), torch.arange(4.0), indexing="ij"), -1)
        made = m(hidden_states=b["pixel_values"], encoder_hidden_states=b["words"], pooled_projections=b["pooled"],
                 timestep=b["time"], img_ids=place.view(16, 3), txt_ids=torch.zeros(5, 3)).sample
        return F.mse_loss(made, b["labels"])
    return Family("flux", make, batch, loss)


def denoiser():
    def make():
        import diffusers
        return diffusers.UNet2DModel(
            sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(8, 16),
            down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"),
            norm_num_groups=4, attention_head_dim=4)
    def batch():
        g = generator(112)
        x, noise = (torch.randn(3, 3, 16, 16, generator=g) for _ in range(2))
        return {"pixel_values": 0.8 * x + 0.6 * noise, "t": torch.tensor([30, 400, 77]), "labels": noise}
    return Family("unet2d", make, batch, lambda m, b: F.mse_loss(m(b["pixel_values"], b["t"]).sample, b["labels"]), vision=True)


def of_timm():
    def nfnet():
        from timm.models.nfnet import NormFreeNet, NfCfg
        return NormFreeNet(NfCfg(depths=(1, 1), channels=(16, 32), stem_type="3x3", stem_chs=16, attn_layer="se",
                                 act_layer="silu", bottle_ratio=0.5,
                                 attn_kwargs={"rd_ratio": 0.5}), num_classes=10)
    yield Family("nfnet", nfnet, lambda: pixels(size=32), class_loss, vision=True)
    def efficient():
        from timm.models._efficientnet_builder import decode_arch_def
        from timm.models.efficientnet import EfficientNet
        blocks = [["ds_r1_k3_s1_e1_c8_se0.25"], ["ir_r2_k3_s2_e3_c16_se0.25"], ["ir_r1_k5_s2_e3_c24_se0.25"]]
        return EfficientNet(decode_arch_def(blocks), num_classes=10, num_features=48, stem_size=8, act_layer=nn.SiLU)
    yield Family("efficientnet", efficient, lambda: pixels(size=48, batch=6), class_loss, vision=True)


def shuffled():
    def make():
        from torchvision.models import ShuffleNetV2
        return ShuffleNetV2([1, 2, 1], [8, 16, 24, 32, 48], num_classes=10)
    return Family("shufflenet", make, lambda: pixels(size=48, batch=6), class_loss, vision=True)


def libraries():
    def installed(name):
        return importlib.util.find_spec(name) is not None
    if installed("transformers"):
        yield from language_models()
        yield from image_models()
    if installed("diffusers"):
        yield flux()
        yield denoiser()
    if installed("timm"):
        yield from of_timm()
    if installed("torchvision"):
        yield shuffled()


# ---- loops ------------------------------------------------------------------------------------

def nesterov(step):
    step.optimizer = lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=5e-4, nesterov=True, foreach=False)
    step.clip = 0


def averaged(step, decay=0.999):
    """An average of the weights follows each step, as of a model for evaluation."""
    def after(model, optimizer):
        with torch.no_grad():
            for p in model.parameters():
                kept = p.detach().clone() * 0.98
                kept.mul_(decay).add_(p, alpha=1 - decay)
    step.after_step = after


def in_parts(step):
    step.parts = 2
    step.optimizer = lambda p: torch.optim.AdamW(p, lr=2e-4, betas=(0.8, 0.99), weight_decay=0.01, foreach=False)


def looped(family, loop):
    family.loop = loop
    return family


# ---- language ------------------------------------------------------------------------------------

class Adapted(nn.Module):
    """A frozen linear layer with an adapter of low rank beside it."""

    def __init__(self, inside, outside, rank=4):
        super().__init__()
        self.base = nn.Linear(inside, outside)
        self.base.requires_grad_(False)
        self.down, self.up = nn.Linear(inside, rank, bias=False), nn.Linear(rank, outside, bias=False)
        self.drop, self.scale = nn.Dropout(0.0), 16 / rank

    def forward(self, x):
        return self.base(x) + self.up(self.down(self.drop(x))) * self.scale


class AdaptedLayer(nn.Module):
    def __init__(self, size=32):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.qkv, self.out = Adapted(size, 3 * size), nn.Linear(size, size)
        self.fc1, self.fc2 = Adapted(size, 64), nn.Linear(64, size)

    def attend(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, 4, d // 4).permute(2, 0, 3, 1, 4)
        score = q @ k.transpose(-2, -1) / math.sqrt(d // 4)
        hidden = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        weight = score.masked_fill(hidden, float("-inf")).softmax(-1)
        return self.out((weight @ v).transpose(1, 2).reshape(b, n, d))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)), approximate="tanh"))


class Tuned(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.place = nn.Embedding(VOCAB, 32), nn.Embedding(16, 32)
        self.layers = nn.ModuleList(AdaptedLayer() for _ in range(3))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, VOCAB, bias=False)

    def forward(self, ids):
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def tuned():
    def batch():
        b = tokens()
        return {"input_ids": b["input_ids"], "labels": b["labels"]}
    return Family("lora", Tuned, batch, lambda m, b: F.cross_entropy(
        m(b["input_ids"])[:, :-1].flatten(0, 1), b["labels"][:, 1:].flatten()))


# ---- pictures --------------------------------------------------------------------------------------

class Coarse(nn.Module):
    """A convolution that trains with the 8-bit weights and activations that it will run with."""

    def __init__(self, inside, outside, stride=1):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)

    def coarse(self, x, bits=8):
        step = x.detach().abs().max() / (2 ** (bits - 1) - 1)
        return x + ((x / step).round().clamp(-128, 127) * step - x).detach()

    def forward(self, x):
        y = F.conv2d(self.coarse(x), self.coarse(self.conv.weight), None, self.conv.stride, self.conv.padding)
        return F.relu6(self.norm(y))


class CoarseNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.mid, self.deep = Coarse(3, 12), Coarse(12, 16, 2), Coarse(16, 24, 2)
        self.short, self.fc = nn.Conv2d(12, 24, 1, 4), nn.Linear(24, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.deep(self.mid(x)) + self.short(x)
        return self.fc(F.adaptive_avg_pool2d(y, 1).flatten(1))


def coarse():
    return looped(Family("qat", CoarseNet, lambda: pixels(size=16, batch=6), lambda m, b: F.cross_entropy(
        m(b["pixel_values"]), b["labels"], label_smoothing=0.1), vision=True), nesterov)


# ---- tables and series -------------------------------------------------------------------------------

class Spline(nn.Module):
    """A layer whose edges are functions: a base and bumps at knots."""

    def __init__(self, inside, outside, knots=6):
        super().__init__()
        self.base, self.norm = nn.Linear(inside, outside), nn.LayerNorm(inside)
        self.bumps = nn.Parameter(torch.randn(outside, inside * knots) * 0.1)
        self.register_buffer("knots", torch.linspace(-2, 2, knots))

    def forward(self, x):
        basis = torch.exp(-((self.norm(x)[..., None] - self.knots) / 0.8) ** 2)
        return self.base(F.silu(x)) + F.linear(basis.flatten(-2), self.bumps)


class Splines(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([Spline(8, 16), Spline(16, 16), Spline(16, 3)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def splines():
    def batch():
        g = generator(113)
        x = torch.rand(12, 8, generator=g) * 4 - 1
        return {"pixel_values": x, "labels": torch.stack([x.sin().sum(1), x[:, 0] * x[:, 1], x.norm(dim=1)], 1)}
    def loss(m, b):
        return F.huber_loss(m(b["pixel_values"]), b["labels"], delta=0.7) + 1e-3 * sum(
            layer.bumps.abs().mean() for layer in m.layers)
    return looped(Family("kan", Splines, batch, loss), averaged)


class Doubled(nn.Module):
    """A block that explains a part of the past and forecasts from it."""

    def __init__(self, past=24, future=6, size=32):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(past, size), nn.Linear(size, size), nn.Linear(size, size)
        self.back, self.ahead = nn.Linear(size, 8), nn.Linear(size, 8)
        t = torch.arange(past + future) / (past + future)
        waves = torch.cat([torch.stack([(2 * math.pi * k * t).cos() for k in range(4)]),
                           torch.stack([(2 * math.pi * (k + 1) * t).sin() for k in range(4)])])
        self.register_buffer("waves", waves)
        self.past = past

    def forward(self, x):
        h = F.relu(self.fc3(F.relu(self.fc2(F.relu(self.fc1(x))))))
        return self.back(h) @ self.waves[:, :self.past], self.ahead(h) @ self.waves[:, self.past:]


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(Doubled() for _ in range(3))

    def forward(self, x):
        level = x.mean(1, keepdim=True)
        rest, made = x - level, 0
        for block in self.blocks:
            back, ahead = block(rest)
            rest, made = rest - back, made + ahead
        return made + level


def forecaster():
    def batch():
        x = torch.randn(8, 30, generator=generator(114)).cumsum(1) * 0.4 + 3
        return {"pixel_values": x[:, :24].clone(), "labels": x[:, 24:].clone()}
    def loss(m, b):
        made, y = m(b["pixel_values"]), b["labels"]
        return (200 * (made - y).abs() / (made.abs() + y.abs() + 1e-3)).mean()
    return looped(Family("nbeats", Forecaster, batch, loss), in_parts)


# ---- molecules ------------------------------------------------------------------------------------------

class Passing(nn.Module):
    """Atoms send messages that are filtered by distances."""

    def __init__(self, size=16, bumps=8):
        super().__init__()
        self.filter1, self.filter2 = nn.Linear(bumps, size), nn.Linear(size, size)
        self.enter, self.leave, self.last = nn.Linear(size, size, bias=False), nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x, edges, basis, fade):
        w = self.filter2(F.softplus(self.filter1(basis)) - math.log(2.0)) * fade[:, None]
        sent = self.enter(x)[edges[1]] * w
        got = torch.zeros_like(x).index_add(0, edges[0], sent)
        return x + self.last(F.softplus(self.leave(got)) - math.log(2.0))


class Molecule(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 16)
        self.layers = nn.ModuleList(Passing() for _ in range(2))
        self.out1, self.out2 = nn.Linear(16, 8), nn.Linear(8, 1)
        self.register_buffer("centres", torch.linspace(0.5, 4.0, 8))

    def energy(self, kinds, place, edges, group):
        length = (place[edges[0]] - place[edges[1]]).norm(dim=-1)
        basis = torch.exp(-4.0 * (length[:, None] - self.centres) ** 2)
        fade = 0.5 * (torch.cos(length * math.pi / 5.0) + 1.0) * (length < 5.0)
        x = self.embed(kinds)
        for layer in self.layers:
            x = layer(x, edges, basis, fade)
        each = self.out2(F.softplus(self.out1(x)) - math.log(2.0))[:, 0]
        return torch.zeros(3).index_add(0, group, each)

    def forward(self, kinds, place, edges, group):
        place = place.detach().requires_grad_()
        energy = self.energy(kinds, place, edges, group)
        slope, = torch.autograd.grad(energy.sum(), place, create_graph=True)
        return energy, -slope


def molecule():
    def batch():
        g = generator(115)
        group = torch.arange(18) // 6
        near = (group[:, None] == group[None]) & ~torch.eye(18, dtype=torch.bool)
        return {"kinds": torch.randint(0, 5, (18,), generator=g), "pixel_values": torch.randn(18, 3, generator=g) * 1.3,
                "edges": near.nonzero().t().contiguous(), "group": group, "labels": torch.randn(3, generator=g),
                "pushes": torch.randn(18, 3, generator=g) * 0.3}
    def loss(m, b):
        energy, push = m(b["kinds"], b["pixel_values"], b["edges"], b["group"])
        return 0.1 * F.mse_loss(energy, b["labels"]) + 0.9 * F.mse_loss(push, b["pushes"])
    return Family("schnet", Molecule, batch, loss)


# ---- voices ---------------------------------------------------------------------------------------------

class Wide(nn.Module):
    """Convolutions of several widths whose weights are directions and lengths."""

    def __init__(self, size=8):
        super().__init__()
        weight_norm = nn.utils.parametrizations.weight_norm
        self.a = weight_norm(nn.Conv1d(size, size, 3, padding=2, dilation=2))
        self.b = weight_norm(nn.Conv1d(size, size, 5, padding=2))

    def forward(self, x):
        x = x + self.a(F.leaky_relu(x, 0.1))
        return x + self.b(F.leaky_relu(x, 0.1))


class Vocoder(nn.Module):
    """Sound from a picture of frequencies; the loss compares sounds and their spectra."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Conv1d(10, 16, 7, padding=3)
        self.up = nn.ConvTranspose1d(16, 8, 8, 4, 2)
        self.wide1, self.wide2 = Wide(), Wide()
        self.leave = nn.Conv1d(8, 1, 7, padding=3)

    def forward(self, x):
        x = self.up(F.leaky_relu(self.enter(x), 0.1))
        x = (self.wide1(x) + self.wide2(x)) / 2
        return torch.tanh(self.leave(F.leaky_relu(x, 0.1)))[:, 0]


def spectrum(x):
    return torch.stft(x, 16, 4, 16, torch.hann_window(16), return_complex=True).abs().clamp(min=1e-4)


def vocoder():
    def batch():
        g = generator(116)
        return {"pixel_values": torch.randn(4, 10, 16, generator=g), "labels": torch.randn(4, 64, generator=g).tanh()}
    def loss(m, b):
        made = m(b["pixel_values"])
        a, c = spectrum(made), spectrum(b["labels"])
        return F.l1_loss(made, b["labels"]) + 0.45 * F.l1_loss(a.log(), c.log()) + (a - c).norm() / c.norm()
    return Family("vocoder", Vocoder, batch, loss)


# ---- interests --------------------------------------------------------------------------------------------

class Interests(nn.Module):
    """Will a user like a thing: attention of the thing to what the user liked before."""

    def __init__(self, size=12):
        super().__init__()
        self.things, self.users = nn.Embedding(50, size, padding_idx=0), nn.Embedding(20, size)
        self.att1, self.att2 = nn.Linear(4 * size, 16), nn.Linear(16, 1)
        self.fc1, self.norm, self.fc2, self.fc3 = nn.Linear(3 * size, 24), nn.BatchNorm1d(24), nn.Linear(24, 16), nn.Linear(16, 1)
        self.slope = nn.Parameter(torch.zeros(24))

    def dice(self, x):
        share = torch.sigmoid(self.norm(x))
        return share * x + (1 - share) * self.slope * x

    def interest(self, thing, past, mask):
        wide = thing[:, None].expand_as(past)
        score = self.att2(torch.sigmoid(self.att1(torch.cat([wide, past, wide - past, wide * past], -1))))[..., 0]
        weight = torch.where(mask, score / past.shape[-1] ** 0.5, torch.full_like(score, -1e4)).softmax(-1)
        return (weight[..., None] * past).sum(1)

    def forward(self, user, ids, past):
        thing = self.things(ids)
        liked = self.interest(thing, self.things(past), past != 0)
        h = torch.cat([self.users(user), thing, liked], -1)
        return self.fc3(F.prelu(self.fc2(self.dice(self.fc1(h))), torch.full((1,), 0.25)))[:, 0]


def interests():
    def batch():
        g = generator(117)
        past = torch.randint(1, 50, (8, 6), generator=g)
        past[torch.rand(8, 6, generator=g) < 0.25] = 0
        return {"users": torch.randint(0, 20, (8,), generator=g), "kinds": torch.randint(1, 50, (8, 1), generator=g),
                "past": past, "labels": torch.randint(0, 2, (8,), generator=g).float()}
    def loss(m, b):
        made = m(b["users"], b["kinds"][:, 0], b["past"])
        return F.binary_cross_entropy_with_logits(made, b["labels"], pos_weight=torch.tensor(2.0))
    return looped(Family("din", Interests, batch, loss), averaged)


# ---- densities ----------------------------------------------------------------------------------------------

class Densities(nn.Module):
    """A mixture of normal densities, whose shares, means and widths depend on what was read by an LSTM."""

    def __init__(self, count=4):
        super().__init__()
        self.enter, self.rnn = nn.Linear(2, 16), nn.LSTM(16, 24, batch_first=True)
        self.out, self.count = nn.Linear(24, 6 * count), count

    def forward(self, x, y):
        h, _ = self.rnn(torch.tanh(self.enter(x)))
        share, mean, width, turn = self.out(h).split([self.count, 2 * self.count, 2 * self.count, self.count], -1)
        mean, width = mean.unflatten(-1, (2, -1)), width.exp().unflatten(-1, (2, -1))
        turn = torch.tanh(turn)
        z = (y[..., None] - mean) / width
        inside = z[..., 0, :] ** 2 + z[..., 1, :] ** 2 - 2 * turn * z[..., 0, :] * z[..., 1, :]
        left = 1 - turn ** 2
        log = -inside / (2 * left) - math.log(2 * math.pi) - width.log().sum(-2) - 0.5 * left.log()
        return -torch.logsumexp(F.log_softmax(share, -1) + log, -1).mean()


def densities():
    def batch():
        x = torch.randn(4, 10, 2, generator=generator(118)) * 0.5
        return {"pixel_values": x[:, :-1].clone(), "labels": x[:, 1:].clone()}
    return looped(Family("mdn", Densities, batch, lambda m, b: m(b["pixel_values"], b["labels"])), in_parts)


def families():
    return [*libraries(), tuned(), coarse(), splines(), forecaster(), molecule(), vocoder(), interests(), densities()]
