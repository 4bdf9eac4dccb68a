# SPDX-License-Identifier: MIT
"""CPU time that a dump adds to a training step, ours and the official tool's.

    bench_torch.py BUILD [OFFICIAL]    all cases; OFFICIAL is a folder with that package
    bench_torch.py --one MODEL CONFIG STEPS    one training, as the parent starts it

Trainings of all kinds take turns, so that each ratio is of one time of day.  Of each kind the quickest
training counts, by the median of its steps: on a shared machine the same steps take up to half as long
again for seconds at a time.
"""
import json
import os
import subprocess
import sys
import tempfile
import time

ROUNDS, STEPS, SKIPPED = 5, 8, 2
# Where making a file costs the same every time.
SCRATCH = "/dev/shm" if os.path.isdir("/dev/shm") else None


# ---- the training -------------------------------------------------------------


def gpt(torch, width, length, batch):
    nn, f = torch.nn, torch.nn.functional

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            b, t, d = x.shape
            q, k, v = (p.view(b, t, 4, d // 4).transpose(1, 2)
                       for p in self.qkv(self.norm1(x)).chunk(3, dim=-1))
            weights = torch.softmax(q @ k.transpose(-2, -1) / (d // 4) ** 0.5, -1)
            x = x + self.out((weights @ v).transpose(1, 2).reshape(b, t, d))
            return x + self.down(f.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(256, width)
            self.blocks = nn.Sequential(Block(), Block())
            self.head = nn.Linear(width, 256)

        def forward(self, ids):
            return self.head(self.blocks(self.embedding(ids)))

    ids = torch.randint(0, 256, (batch, length))
    return Model(), ids, lambda y: f.cross_entropy(y.view(-1, 256), ids.view(-1))


def cnn(torch, channels, side, batch):
    nn, f = torch.nn, torch.nn.functional
    model = nn.Sequential(
        nn.Sequential(nn.Conv2d(3, channels, 3), nn.BatchNorm2d(channels), nn.ReLU(),
                      nn.Conv2d(channels, channels, 3), nn.BatchNorm2d(channels), nn.ReLU(),
                      nn.MaxPool2d(2), nn.Conv2d(channels, 2 * channels, 3), nn.ReLU(),
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, 10)))
    images, labels = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))
    return model, images, lambda y: f.cross_entropy(y, labels)


MODELS = {"gpt-s": lambda t: gpt(t, 128, 64, 4), "gpt-l": lambda t: gpt(t, 384, 128, 8),
          "cnn-s": lambda t: cnn(t, 12, 32, 16), "cnn-l": lambda t: cnn(t, 32, 64, 32)}


def train(name, config, steps):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(1)
    debugger = None
    if config != "-":
        if not hasattr(torch.Tensor, "untyped_storage"):  # the official tool needs it
            torch.Tensor.untyped_storage = lambda t: t.storage().untyped()
        from msprobe.pytorch import PrecisionDebugger
        debugger = PrecisionDebugger(config_path=config)
    model, data, loss_of = MODELS[name](torch)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    times = []
    for _ in range(steps):
        begin = time.process_time()
        if debugger:
            debugger.start(model=model)
        loss = loss_of(model(data))
        loss.backward()
        if debugger:
            debugger.stop()
        optimizer.step()
        optimizer.zero_grad()
        if debugger:
            debugger.step()
        times.append(time.process_time() - begin)
    print(json.dumps({"cpu": times[SKIPPED:], "loss": loss.item()}))


# ---- the comparison -----------------------------------------------------------

KINDS = {
    "idle": {"level": "mix", "step": [1000000], "statistics": {}},
    "L0": {"level": "L0", "statistics": {}},
    "mix": {"level": "mix", "statistics": {}},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
}


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def run_one(path, model, config):
    env = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    out = subprocess.run([sys.executable, __file__, "--one", model, config, str(STEPS)], env=env,
                         capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"{model} {config}: {out.stderr[-2000:]}")
    return json.loads(out.stdout.strip().splitlines()[-1])


def measure(build, official, model, kind, folder):
    paths = {"ours": os.path.join(build, "python"), **({"official": official} if official else {})}
    times, losses = {"plain": []}, set()
    for name in paths:
        config = os.path.join(folder, f"{name}.json")
        with open(config, "w", encoding="utf-8") as f:
            json.dump({"task": "statistics", "rank": [], "step": [],
                       "dump_path": os.path.join(folder, name), **KINDS[kind]}, f)
        times[name] = []
    for _ in range(ROUNDS):
        for name in times:
            config = "-" if name == "plain" else os.path.join(folder, f"{name}.json")
            got = run_one(paths.get(name, ""), model, config)
            times[name].append(median(got["cpu"]))
            losses.add(got["loss"])
    return {name: min(t) for name, t in times.items()}, len(losses) == 1


def report(model, kind, step, same):
    added = step["ours"] - step["plain"]
    line = f"{model:6} {kind:5} step {step['plain'] * 1e3:8.2f} ms  ours +{added * 1e3:7.3f} ms " \
           f"({added / step['plain'] * 100:5.1f} %)"
    if "official" in step:
        theirs = step["official"] - step["plain"]
        line += f"  official +{theirs * 1e3:8.2f} ms  ratio {added / theirs if theirs > 0 else 0:6.3f}"
    print(line + ("" if same else "  LOSS DIFFERS"), flush=True)


def main():
    if sys.argv[1] == "--one":
        train(sys.argv[2], sys.argv[3], int(sys.argv[4]))
        return
    build, official = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    only = os.environ.get("ONLY", "")
    for model in ("gpt-s", "cnn-s", "gpt-l", "cnn-l"):
        for kind in KINDS:
            if only in f"{model} {kind}":
                with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
                    report(model, kind, *measure(build, official, model, kind, folder))


if __name__ == "__main__":
    main()
