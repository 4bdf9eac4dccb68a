# SPDX-License-Identifier: MIT
"""Small instances of architectures that people train, with a batch and a loss.

Each function makes a Family; `families()` lists those whose packages are installed. Half 1 fixes
rules and thresholds, half 2 only shows them; the list alternates between the halves.
"""
import importlib.util
import math

import torch
from torch import nn
import torch.nn.functional as F

if not torch.cuda.is_available():
    # Builds with CUDA crash in this call where no driver is; transformers makes it.
    torch.cuda.is_current_stream_capturing = lambda: False


class Family:
    """A model and what one training step of it needs.

    make(**keys) builds the model, batch() its inputs, loss(model, batch) the loss.
    layer: path of an inner block; labels: key of the labels in the batch; loop(step) sets how it trains.
    """

    def __init__(self, name, make, batch, loss, labels="labels", vision=False, hugging=False):
        self.name, self.make, self.batch, self.loss = name, make, batch, loss
        self.labels, self.vision, self.hugging = labels, vision, hugging
        self.loop = lambda step: None


# ---- language models of transformers ------------------------------------------------

VOCAB, LENGTH, BATCH = 96, 12, 4
COMMON = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
LLAMA_LIKE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
              "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32}
BERT_LIKE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
             "num_attention_heads": 4, "max_position_embeddings": 40, "hidden_dropout_prob": 0.0,
             "attention_probs_dropout_prob": 0.0}


def tokens(ignored=0):
    g = torch.Generator().manual_seed(11)
    ids = torch.randint(3, VOCAB, (BATCH, LENGTH), generator=g)
    labels = ids.clone()
    if ignored:
        labels[torch.rand(labels.shape, generator=g) < ignored] = -100
    mask = torch.ones_like(ids)
    mask[1, LENGTH - 4:] = 0
    labels[mask == 0] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def hugging_loss(model, batch):
    return model(**batch).loss


def language(name, config, model, ignored=0, **keys):
    def make(attention="eager"):
        import transformers
        settings = {**COMMON, **keys}
        found = getattr(transformers, config)(**settings)
        found._attn_implementation = attention
        return getattr(transformers, model)(found)
    return Family(name, make, lambda: tokens(ignored), hugging_loss, hugging=True)


def language_models():
    gpt = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32, "resid_pdrop": 0.0,
           "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    yield language("llama", "LlamaConfig", "LlamaForCausalLM", **LLAMA_LIKE)
    yield language("gpt2", "GPT2Config", "GPT2LMHeadModel", **gpt)
    yield language("qwen2", "Qwen2Config", "Qwen2ForCausalLM", **LLAMA_LIKE)
    yield language("mixtral", "MixtralConfig", "MixtralForCausalLM", num_local_experts=4,
                   output_router_logits=True, **LLAMA_LIKE)
    yield language("gemma2", "Gemma2Config", "Gemma2ForCausalLM", head_dim=8, **LLAMA_LIKE)
    yield language("roberta", "RobertaConfig", "RobertaForMaskedLM", 0.7, **BERT_LIKE)
    yield language("opt", "OPTConfig", "OPTForCausalLM", hidden_size=32, ffn_dim=48,
                   num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=32,
                   word_embed_proj_dim=32, dropout=0.0, attention_dropout=0.0)
    yield language("gpt_neox", "GPTNeoXConfig", "GPTNeoXForCausalLM", hidden_size=32,
                   intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                   max_position_embeddings=32, rotary_pct=0.5)
    yield language("bloom", "BloomConfig", "BloomForCausalLM", hidden_size=32, n_layer=2, n_head=4,
                   hidden_dropout=0.0, attention_dropout=0.0)
    yield language("distilbert", "DistilBertConfig", "DistilBertForMaskedLM", 0.7, dim=32,
                   hidden_dim=48, n_layers=2, n_heads=4, max_position_embeddings=32, dropout=0.0,
                   attention_dropout=0.0)
    yield language("phi", "PhiConfig", "PhiForCausalLM", **{**LLAMA_LIKE, "num_key_value_heads": 4})
    yield language("electra", "ElectraConfig", "ElectraForMaskedLM", 0.7, embedding_size=32,
                   **BERT_LIKE)
    yield language("bart", "BartConfig", "BartForConditionalGeneration", d_model=32,
                   encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                   decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                   max_position_embeddings=32, dropout=0.0, attention_dropout=0.0,
                   activation_dropout=0.0, decoder_start_token_id=2, forced_eos_token_id=2)


# ---- images ---------------------------------------------------------------------------

def pixels(size=32, batch=4, classes=10):
    g = torch.Generator().manual_seed(12)
    return {"pixel_values": torch.randn(batch, 3, size, size, generator=g) * 0.9 + 0.2,
            "labels": torch.randint(0, classes, (batch,), generator=g)}


def class_loss(model, batch):
    return F.cross_entropy(model(batch["pixel_values"]), batch["labels"])


def image(name, make, **keys):
    return Family(name, make, lambda: pixels(**keys), class_loss, vision=True)


def vision_models():
    def hub(name, **keys):
        import torchvision
        return lambda: getattr(torchvision.models, name)(weights=None, num_classes=10, **keys)

    def timm_model(name, **keys):
        import timm
        return lambda: timm.create_model(name, num_classes=10, **keys)

    def vit(attention="eager"):
        import transformers
        c = transformers.ViTConfig(image_size=32, patch_size=8, num_labels=10, hidden_size=32,
                                   intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
        c._attn_implementation = attention
        return transformers.ViTForImageClassification(c)

    yield image("resnet18", hub("resnet18"), size=40)
    yield Family("vit", vit, pixels, hugging_loss, vision=True, hugging=True)
    yield image("densenet", dense(), size=32)
    yield image("mixer", mixer(), size=32)
    yield image("convnext", timm_model("convnext_atto", depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
                size=32)
    yield image("squeezenet", hub("squeezenet1_1", dropout=0.0), size=40)
    yield image("regnet", timm_model("regnetx_002"), size=32)


def mixer():
    def make():
        from timm.models.mlp_mixer import MlpMixer
        return MlpMixer(num_classes=10, img_size=32, patch_size=8, embed_dim=32, num_blocks=2)
    return make


def dense():
    def make():
        from torchvision.models import DenseNet
        return DenseNet(growth_rate=8, block_config=(2, 2, 2, 2), num_init_features=16,
                        num_classes=10)
    return make


# ---- models of plain torch ---------------------------------------------------------

class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())
        self.down1, self.down2, self.mid = block(3, 8), block(8, 16), block(16, 16)
        self.up2 = nn.ConvTranspose2d(16, 16, 2, stride=2)
        self.dec2, self.dec1 = block(32, 8), block(16, 8)
        self.time, self.out = nn.Linear(8, 16), nn.Conv2d(8, 3, 1)

    def embed(self, t):
        angle = t[:, None].float() * torch.exp(torch.arange(4) * (-math.log(1e4) / 4))
        return torch.cat([angle.sin(), angle.cos()], -1)

    def forward(self, x, t):
        a = self.down1(x)
        b = self.down2(F.avg_pool2d(a, 2))
        c = self.mid(b + self.time(self.embed(t))[:, :, None, None])
        c = self.dec2(torch.cat([c, b], 1))
        c = F.interpolate(c, scale_factor=2, mode="nearest")
        return self.out(self.dec1(torch.cat([c, a], 1)))


def unet():
    def batch():
        g = torch.Generator().manual_seed(13)
        x, noise = (torch.randn(4, 3, 16, 16, generator=g) for _ in range(2))
        return {"pixel_values": 0.8 * x + 0.6 * noise, "t": torch.tensor([3, 40, 7, 90]),
                "labels": noise}
    return Family("unet", UNet, batch,
                  lambda m, b: F.mse_loss(m(b["pixel_values"], b["t"]), b["labels"]), vision=True)


class Seq2Seq(nn.Module):
    """A GRU encoder and a decoder with additive attention."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 24, padding_idx=0)
        self.encoder = nn.GRU(24, 16, batch_first=True, bidirectional=True)
        self.bridge, self.cell = nn.Linear(32, 24), nn.GRUCell(24 + 32, 24)
        self.query, self.key, self.energy = nn.Linear(24, 16), nn.Linear(32, 16), nn.Linear(16, 1)
        self.head = nn.Linear(24 + 32, VOCAB)

    def attend(self, state, memory, mask):
        score = self.energy(torch.tanh(self.query(state)[:, None] + self.key(memory)))[..., 0]
        weight = F.softmax(score.masked_fill(mask == 0, -1e9), -1)
        return torch.bmm(weight[:, None], memory)[:, 0]

    def forward(self, input_ids, attention_mask):
        x = self.embed(input_ids)
        memory, _ = self.encoder(x)
        state = torch.tanh(self.bridge(memory.mean(1)))
        out = []
        for i in range(4):
            context = self.attend(state, memory, attention_mask)
            state = self.cell(torch.cat([x[:, i], context], -1), state)
            out.append(self.head(torch.cat([state, context], -1)))
        return torch.stack(out, 1)


def seq2seq():
    def loss(m, b):
        out = m(b["input_ids"], b["attention_mask"])
        return F.cross_entropy(out.reshape(-1, VOCAB), b["labels"][:, 1:5].reshape(-1))
    return Family("seq2seq", Seq2Seq, tokens, loss)


class Gat(nn.Module):
    """Two layers of graph attention, written with scatter as graph libraries do."""

    class Layer(nn.Module):
        def __init__(self, i, o, heads=2):
            super().__init__()
            self.lin = nn.Linear(i, o * heads, bias=False)
            self.src, self.dst = (nn.Parameter(torch.randn(heads, o) * 0.3) for _ in range(2))
            self.heads, self.bias = heads, nn.Parameter(torch.zeros(o * heads))

        def forward(self, x, edges):
            h = self.lin(x).view(x.shape[0], self.heads, -1)
            a = (h * self.src).sum(-1)[edges[0]] + (h * self.dst).sum(-1)[edges[1]]
            a = F.leaky_relu(a, 0.2)
            a = torch.exp(a - a.max())
            total = torch.zeros(x.shape[0], self.heads).index_add(0, edges[1], a)
            a = a / (total[edges[1]] + 1e-16)
            out = torch.zeros_like(h).index_add(0, edges[1], h[edges[0]] * a[..., None])
            return out.flatten(1) + self.bias

    def __init__(self):
        super().__init__()
        self.c1, self.c2, self.norm = Gat.Layer(12, 8), Gat.Layer(16, 4), nn.BatchNorm1d(16)
        self.head = nn.Linear(8, 5)

    def forward(self, x, edges):
        return self.head(F.elu(self.c2(F.elu(self.norm(self.c1(x, edges))), edges)))


def gat():
    def batch():
        g = torch.Generator().manual_seed(14)
        loops = torch.arange(40).expand(2, -1)
        edges = torch.cat([torch.randint(0, 40, (2, 160), generator=g), loops], 1)
        return {"pixel_values": torch.rand(40, 12, generator=g), "edges": edges,
                "labels": torch.randint(0, 5, (40,), generator=g)}
    return Family("gat", Gat, batch,
                  lambda m, b: F.cross_entropy(m(b["pixel_values"], b["edges"]), b["labels"]))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.b1 = nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16)
        self.c2, self.b2 = nn.Conv1d(16, 32, 1), nn.BatchNorm1d(32)
        self.turn = nn.Linear(32, 9)
        self.f1, self.f2 = nn.Linear(32, 24), nn.Linear(24, 10)
        self.act = nn.ReLU()

    def forward(self, x):
        h = self.act(self.b1(self.c1(x)))
        turn = self.turn(self.act(self.b2(self.c2(h))).amax(-1)).view(-1, 3, 3)
        x = torch.bmm(turn + torch.eye(3), x)
        h = self.act(self.b2(self.c2(self.act(self.b1(self.c1(x)))))).amax(-1)
        return self.f2(self.act(self.f1(h)))


def pointnet():
    def batch():
        g = torch.Generator().manual_seed(15)
        return {"pixel_values": torch.randn(6, 3, 40, generator=g),
                "labels": torch.randint(0, 10, (6,), generator=g)}
    return Family("pointnet", PointNet, batch, class_loss)


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.LeakyReLU(0.2),
                                 nn.Conv2d(8, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.LeakyReLU(0.2))
        self.mu, self.logvar = nn.Linear(256, 12), nn.Linear(256, 12)
        self.up = nn.Linear(12, 256)
        self.dec = nn.Sequential(nn.ConvTranspose2d(16, 8, 4, 2, 1), nn.BatchNorm2d(8), nn.ReLU(),
                                 nn.ConvTranspose2d(8, 3, 4, 2, 1), nn.Sigmoid())

    def forward(self, x, noise):
        h = self.enc(x).flatten(1)
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + noise * torch.exp(0.5 * logvar)
        return self.dec(self.up(z).view(-1, 16, 4, 4)), mu, logvar


def vae():
    def batch():
        g = torch.Generator().manual_seed(16)
        x = torch.rand(4, 3, 16, 16, generator=g)
        return {"pixel_values": x, "noise": torch.randn(4, 12, generator=g), "labels": x.clone()}

    def loss(m, b):
        out, mu, logvar = m(b["pixel_values"], b["noise"])
        kl = -0.5 * torch.mean(1 + logvar - mu.pow(2) - logvar.exp())
        return F.binary_cross_entropy(out, b["labels"]) + 0.1 * kl
    return Family("vae", Vae, batch, loss, vision=True)


def families():
    def has(name):
        return importlib.util.find_spec(name) is not None
    found = [unet(), seq2seq(), gat(), pointnet(), vae()]
    if has("transformers"):
        found[:0] = language_models()
    if has("torchvision") and has("timm") and has("transformers"):
        found += vision_models()
    return found


def half_of(index):
    return 1 + index % 2
