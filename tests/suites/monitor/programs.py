#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small trainings of many families, each with the monitor that the command line names, or none.

    programs.py none|monitored OUT [NAME...]     OUT/NAME/*-rank*-*/*.csv; prints "NAME digest of training"

Which msprobe is imported, ours or the official one, says PYTHONPATH. A program gets `watch(model, optimizer,
steps)`, which it calls once for each model, and trains with fixed seeds; what it returns is all that it computed."""
import hashlib
import json
import os
import sys

import torch
from torch import nn
import torch.nn.functional as F

STEPS = 4
EVERYTHING = {"targets": {}, "format": "csv", "ops": ["norm", "min", "max", "mean", "zeros", "nans"],
              "eps": 1e-8, "ndigits": 6, "xy_distribution": True, "wg_distribution": True, "mv_distribution": True,
              "param_distribution": True,
              "invariants": True}  # ours; the official tool does not know the key


def batches(shape, classes=None, seed=1, steps=STEPS):
    g = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        x = torch.randn(shape, generator=g)
        yield (x, torch.randint(0, classes, (shape[0],), generator=g)) if classes else x


def tokens(shape, words, seed=1, steps=STEPS):
    g = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        yield torch.randint(0, words, shape, generator=g)


def fit(model, optimizer, data, loss_of, accumulate=1):
    losses = []
    for step, batch in enumerate(data):
        loss = loss_of(model, batch)
        loss.backward()
        losses.append(loss.item())
        if (step + 1) % accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return losses


def classify(model, batch):
    return F.cross_entropy(model(batch[0]), batch[1])


# ---- families -----------------------------------------------------------------


def mlp(watch):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, batches((8, 6), 3), classify)


def cnn(watch):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                          nn.Dropout(0.2), nn.Linear(8 * 5 * 5, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    watch(model, optimizer)
    return model, fit(model, optimizer, batches((4, 3, 12, 12), 4), classify)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.heads = heads

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        later = torch.ones(n, n).triu(1).bool()
        a = (q @ k.transpose(-1, -2) / (w // self.heads) ** 0.5).masked_fill(later, -1e9).softmax(-1) @ v
        x = x + self.out(a.transpose(1, 2).reshape(b, n, w))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words=32, width=16, layers=2, tied=False):
        super().__init__()
        self.embedding, self.position = nn.Embedding(words, width), nn.Embedding(16, width)
        self.layers = nn.ModuleList(Block(width, 2) for _ in range(layers))
        self.final_norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, ids):
        x = self.embedding(ids) + self.position(torch.arange(ids.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return self.head(self.final_norm(x))


def next_token(model, ids):
    return F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())


def gpt(watch):
    model = GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, tokens((2, 9), 32), next_token)


def tied_weights(watch):
    model = GPT(tied=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, tokens((2, 9), 32), next_token)


def accumulation(watch):
    model = GPT(layers=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer, 2)
    return model, fit(model, optimizer, tokens((2, 9), 32, steps=2 * STEPS), next_token, accumulate=2)


def micro_gradients(watch):
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer, 2, monitor_mbs_grad=True)
    return model, fit(model, optimizer, batches((4, 6), 3, steps=2 * STEPS), classify, accumulate=2)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.head = nn.Embedding(16, 8), nn.LSTM(8, 12, batch_first=True), nn.Linear(12, 16)

    def forward(self, ids):
        y, (h, _) = self.cell(self.embedding(ids))
        return self.head(y) + h.mean()


def rnn(watch):
    model = Recurrent()
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, tokens((3, 7), 16), next_token)


class Experts(nn.Module):
    """Every expert gets every token, weighted by the router: none is without a gradient."""

    def __init__(self, width=8, experts=3):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(nn.Linear(width, width) for _ in range(experts))

    def forward(self, x):
        weights = self.router(x).softmax(-1)
        return sum(weights[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))


def moe(watch):
    model = nn.Sequential(nn.Linear(6, 8), Experts(), nn.Linear(8, 3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, batches((8, 6), 3), classify)


def gan(watch):
    maker = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6))
    judge = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
    of_maker = torch.optim.Adam(maker.parameters(), lr=1e-2)
    of_judge = torch.optim.Adam(judge.parameters(), lr=1e-2)
    watch(maker, of_maker)
    losses, noise = [], batches((8, 4), seed=2, steps=2 * STEPS)
    for real in batches((8, 6)):
        made = maker(next(noise)).detach()
        loss = F.softplus(judge(made)).mean() + F.softplus(-judge(real)).mean()
        of_judge.zero_grad()
        loss.backward()
        of_judge.step()
        fooled = F.softplus(-judge(maker(next(noise)))).mean()
        of_maker.zero_grad()
        fooled.backward()
        of_maker.step()
        losses += [loss.item(), fooled.item()]
    return nn.ModuleList([maker, judge]), losses


def autocast_bf16(watch):
    model = GPT(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch(model, optimizer)

    def loss_of(m, ids):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return next_token(m, ids)

    return model, fit(model, optimizer, tokens((2, 9), 32), loss_of)


def bfloat16_model(watch):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).bfloat16()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-1)
    watch(model, optimizer)

    def loss_of(m, batch):
        return F.cross_entropy(m(batch[0].bfloat16()).float(), batch[1])

    return model, fit(model, optimizer, batches((8, 6), 3), loss_of)


def frozen_layers(watch):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    watch(model, optimizer)
    return model, fit(model, optimizer, batches((8, 6), 3), classify)


class AutoEncoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.mean, self.spread = nn.Linear(10, 8), nn.Linear(8, 2), nn.Linear(8, 2)
        self.decoder = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 10))

    def forward(self, x):
        h = torch.relu(self.encoder(x))
        mean, spread = self.mean(h), self.spread(h)
        z = mean + torch.randn_like(mean) * (spread / 2).exp()
        return self.decoder(z), mean, spread


def vae(watch):
    model = AutoEncoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)

    def loss_of(m, x):
        y, mean, spread = m(x)
        return F.mse_loss(y, x) - 0.5 * (1 + spread - mean ** 2 - spread.exp()).mean()

    return model, fit(model, optimizer, batches((8, 10)), loss_of)


def named_targets(watch):
    model = GPT(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    watch(model, optimizer, targets={"layers.0.mlp.0": {}, "head": {}}, step_count_per_record=2, ops=["max", "norm"])
    return model, fit(model, optimizer, tokens((2, 9), 32), next_token)


def every_other_step(watch):
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer, start_step=1, step_interval=2, collect_times=2)
    return model, fit(model, optimizer, batches((8, 6), 3, steps=6), classify)


class Scores(nn.Module):
    """Attention as a module of its own, over (sample, place, head, width)."""

    def forward(self, q, k, v):
        n = q.shape[1]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k).masked_fill(torch.ones(n, n).triu(1).bool(), -1e9).softmax(-1)
        return torch.einsum("bhqk,bkhd->bqhd", scores, v)


class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.q, self.k, self.v = nn.Embedding(16, 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.scores, self.experts, self.head = Scores(), Experts(), nn.Linear(8, 16)

    def forward(self, ids):
        x = self.embedding(ids)
        b, n, _ = x.shape
        y = self.scores(*(f(x).view(b, n, 2, 4) for f in (self.q, self.k, self.v)))
        return self.head(self.experts(x + y.reshape(b, n, 8)))


def features(watch):
    model = Attending()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer, recording_l2_features=True, sa_order="b,s,h,d", targets={"head": {}},
          l2_targets={"attention_hook": ["0:scores"], "moe_router_weight_hook": ["0:experts.router"],
                      "moe_router_logit_hook": ["0:experts.router"]})
    return model, fit(model, optimizer, tokens((2, 7), 16), next_token)


def alarms(watch):
    """A rate that lets the norms jump, and a loss that is NaN at last."""
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    watch(model, optimizer, alert={"rules": [{"rule_name": "AnomalyNan"},
                                             {"rule_name": "AnomalyTurbulence", "args": {"threshold": 0.5}}],
                                   "dump": True})
    scale = iter((1, 1, 30, 1, 1, float("nan")))
    return model, fit(model, optimizer, batches((8, 6), 3, steps=6), lambda m, b: classify(m, b) * next(scale))


def ranked(watch, rank):
    """One rank of two, over gloo: distributed data parallel."""
    import torch.distributed as dist
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    watch(model, optimizer)
    called = model.module if os.environ.get("BYPASSED") else model  # past the wrapper that reduces gradients
    losses = fit(called, optimizer, batches((8, 6), 3, seed=10 + rank * (not os.environ.get("SAME_SEED"))), classify)
    dist.barrier()
    return model, losses


PROGRAMS = [mlp, cnn, gpt, tied_weights, accumulation, micro_gradients, rnn, moe, gan, autocast_bf16, bfloat16_model,
            frozen_layers, vae, named_targets, every_other_step, features, alarms]


# ---- running ------------------------------------------------------------------


def digest(model, losses):
    h = hashlib.sha256(repr(losses).encode())
    for name, t in model.state_dict().items():
        h.update(name.encode() + t.detach().reshape(-1).contiguous().view(torch.uint8).numpy().tobytes())
    h.update(torch.get_rng_state().numpy().tobytes())
    return h.hexdigest()[:16]


def watcher(how, out, held):
    """Returns the function that a program calls to have a model monitored."""
    def watch(model, optimizer, micro_steps=1, **changed):
        if how == "none":
            return
        from msprobe.pytorch import TrainerMon
        os.environ["MONITOR_OUTPUT_DIR"] = out
        os.makedirs(out, exist_ok=True)
        rank = os.environ.get("RANK", "0")
        path = os.path.join(out, f"config{rank}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**EVERYTHING, **changed}, file)
        monitor = TrainerMon(path, params_have_main_grad=False)
        monitor.set_monitor(model, optimizer, grad_acc_steps=micro_steps)
        held.append(monitor)
    return watch


def run_ranked(how, out, rank, port):
    import torch.distributed as dist
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    held = []
    print("DONE", f"ranked{rank}", digest(*ranked(watcher(how, os.path.join(out, "ranked"), held), rank)), flush=True)
    dist.destroy_process_group()


def main(how, out, *names):
    torch.set_num_threads(1)
    if names and names[0].startswith("rank="):
        return run_ranked(how, out, int(names[0][5:]), names[1])
    for program in PROGRAMS:
        if names and program.__name__ not in names:
            continue
        torch.manual_seed(0)
        held = []
        print("DONE", program.__name__, digest(*program(watcher(how, os.path.join(out, program.__name__), held))), flush=True)
    return None


if __name__ == "__main__":
    main(*sys.argv[1:])
