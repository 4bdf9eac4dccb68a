# SPDX-License-Identifier: MIT
"""Holds `msprobe config_check -d` and `-c` against the official tool.

    config_oracle.py MSPROBE official   both tools on each script and each pair of archives
    config_oracle.py MSPROBE hostile    archives that are refused, with Python alone
"""
import io
import json
import os
import random
import stat
import subprocess
import sys
import tempfile
import zipfile


def fail(why):
    print(f"FAIL config: {why}")
    sys.exit(1)


def run(msprobe, *args, env=None):
    return subprocess.run([msprobe, "config_check", *args], capture_output=True, text=True, env=env)


# ---- scripts ------------------------------------------------------------------------------------------

SCRIPTS = {
    "plain.sh": "#!/bin/bash\ntorchrun --nproc_per_node 8 train.py --lr 1e-5 \\\n  --bf16 \\\n  --seed 1234\n",
    "blocks.sh": """# comment --no 1
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \\
    --num-layers 32   # layers
    --lr $LR
"
DATA_ARGS="--data-path $DATA --split 949,50,1"
TP=2
LR=1.5e-4
DATA=/data/x_text
python3 -m torch.distributed.launch $DISTRIBUTED_ARGS pretrain.py $GPT_ARGS $DATA_ARGS --distributed-backend nccl | tee log
echo --after 1
""",
    "msrun.sh": "EPOCHS=3\nEPOCHS=4\nmsrun --worker_num=8 --local_worker_num 8 run.py --config a.yaml --epochs ${EPOCHS} --flag --other 1\n",
    "nothing.sh": "python train.py --lr 0.1\n",
    "a.yaml": "model:\n  hidden: 16\n  eps: 1e-5\n  eps2: 1.0e-5\n  flag: yes\n  none: null\n  hex: 0x1F\n  oct: 017\n  under: 1_000\n"
              "  text: 'yes'\n  date: x2020\n  inf: .inf\n  half: .5\n  neg: -3\n  plus: +2.5\n",
    "b.yaml": "optimizer:\n  - type: adam\n    lr: 0.1\n  - type: sgd\nsizes: [1, 2, [3, 4]]\nmixed: [1, {a: 2}]\nempty: []\nmap: {}\nname: 学习率\n",
    "c.yaml": "model:\n  hidden: 32\nlr: 0.1\n",
    "d.yaml": "a: &x\n  k: 1\nb: *x\n",
}
LISTS = [["plain.sh"], ["blocks.sh"], ["msrun.sh"], ["nothing.sh"], ["a.yaml"], ["b.yaml"], ["a.yaml", "c.yaml"],
         ["plain.sh", "a.yaml"], ["blocks.sh", "msrun.sh"], ["c.yaml", "plain.sh", "b.yaml"], ["d.yaml"]]
# A package list that the random ones draw from.
PACKAGES = ["transformers", "deepspeed", "megatron", "numpy", "datasets", "peft", "mindspore", "torch", "other"]
PARAMS = ["lr", "learning_rate", "model.num-layers", "num_layers", "hidden_size", "hidden-size", "seed", "seeed", "epochs",
          "max_epochs", "bs", "global_batch_size", "global_batchsize", "bf16", "weight_decay", "wd", "dropout", "tp_size", "pp_size",
          "attention_softmax_in_fp32", "softmax_compute_dtype"]


def official_pack(lists, folder, out):
    code = ("import sys\nfrom msprobe.core.config_check.config_checker import ConfigChecker\n"
            "ConfigChecker(shell_path=sys.argv[2:], output_zip_path=sys.argv[1])\n")
    done = subprocess.run([sys.executable, "-c", code, out, *[os.path.join(folder, n) for n in lists]], capture_output=True, text=True)
    if done.returncode != 0:
        fail(f"official -d {lists}: {done.stderr}")


def members(path):
    with zipfile.ZipFile(path) as z:
        if z.testzip() is not None:
            fail(f"{path}: {z.testzip()} is damaged")
        return {n: z.read(n).decode() for n in z.namelist()}


def packs(msprobe, at):
    for name, text in SCRIPTS.items():
        with open(os.path.join(at, name), "w", encoding="utf-8") as f:
            f.write(text)
    env = dict(os.environ, PATH=os.path.dirname(sys.executable) + ":" + os.environ["PATH"], MY_API_TOKEN="x")
    for number, names in enumerate(LISTS):
        want, got = os.path.join(at, f"official{number}.zip"), os.path.join(at, f"ours{number}.zip")
        official_pack(names, at, want)
        done = run(msprobe, "-d", *[os.path.join(at, n) for n in names], "-o", got, env=env)
        if done.returncode != 0:
            fail(f"-d {names}: {done.stderr}")
        a, b = members(want), members(got)
        if set(a) != set(b):
            fail(f"-d {names}: members {sorted(a)}, ours {sorted(b)}")
        for key in a:
            if key == "pip" and set(a[key].split()) - {""} != set(b[key].split()) - {""}:
                fail(f"-d {names}: packages {set(a[key].split()) ^ set(b[key].split())}")
            if key == "env" and "MY_API_TOKEN" in b[key]:
                fail("a secret was recorded")
            if key.startswith("hyper") and a[key] != b[key]:
                fail(f"-d {names}: {a[key]}\nours {b[key]}")
    print(f"ok {len(LISTS)} lists of scripts collected as by the official tool")


# ---- pairs of archives ----------------------------------------------------------------------------------

def features(rng):
    v = [rng.choice([0, 0.0, 1.5, -2, 1e-8, 3e8, rng.random()]) for _ in range(4)]
    return dict(zip(("max", "min", "mean", "norm"), v))


def vary(rng, d):
    """The same dictionary with some entries changed, dropped, added."""
    out = {}
    for k, v in d.items():
        roll = rng.random()
        if roll < 0.1:
            continue
        out[k] = features(rng) if roll < 0.3 else v
    if rng.random() < 0.4:
        out[f"new{rng.randrange(3)}"] = features(rng)
    return out


def stack(rng, moved):
    frames = [f"File /home/{'b' if moved else 'a'}/train.py, line {rng.randrange(500)}, in main, main()",
              f"File /home/x/model.py, line {rng.randrange(500)}, in {rng.choice(['forward', 'init'])}, "
              f"x = torch.rand({rng.choice([3, 4, 5])}, device='cpu')"]
    return frames[:rng.choice([1, 2, 2])]


def draw(rng):
    """Members of two archives."""
    a, b = {}, {}
    if rng.random() < 0.9:
        ascend = rng.random() < 0.5
        for m in (a, b):
            env = {"HOME": "/root"}
            if ascend if rng.random() < 0.7 else not ascend:
                env["ASCEND_HOME"] = "/x"
            for k in ("HCCL_DETERMINISTIC", "NCCL_DETERMINISTIC", "HCCL_ALGO", "NCCL_ALGO", "ASCEND_LAUNCH_BLOCKING", "CUDA_LAUNCH_BLOCKING",
                      "CUDA_VISIBLE_DEVICES", "HCCL_INTRA_ROCE_ENABLE"):
                if rng.random() < 0.4:
                    env[k] = rng.choice(["0", "1", "True", "None"])
            m["env"] = json.dumps(env, indent=4)
    if rng.random() < 0.9:
        for m in (a, b):
            m["pip"] = "".join(f"{p}={rng.choice(['1.0', '2.1', '1=2'])}\n" for p in PACKAGES if rng.random() < 0.7)
    if rng.random() < 0.9:
        first = {p: rng.choice([1, 0.5, "a", True, None, "1", 1e-05, [1, 2]]) for p in rng.sample(PARAMS, rng.randrange(3, 9))}
        second = {p: rng.choice([1, 0.5, "a", True, "1", [1, 2]]) for p in rng.sample(PARAMS, rng.randrange(3, 9))}
        for m, v in ((a, first), (b, second)):
            m["hyperparameters/hyperparameters_static.json"] = json.dumps(v, indent=4)
        if rng.random() < 0.3:
            for m, v in ((a, first), (b, dict(first, extra=3))):
                m["hyperparameters/hyperparameters_dynamic.json"] = json.dumps(v, indent=4)
    for step in range(rng.choice([0, 1, 2])):
        for rank in range(2):
            w = {f"layer{i}.weight": features(rng) for i in range(3)}
            d = {"args": {"0": features(rng), "1": {"0": features(rng), "x": ""}}, "kwargs": {"mask": features(rng)}}
            a[f"weights/step{step}/rank{rank}/weight.json"] = json.dumps(w)
            a[f"dataset/step{step}/rank{rank}/dataset.json"] = json.dumps(d)
            if rng.random() < 0.8:
                b[f"weights/step{step}/rank{rank}/weight.json"] = json.dumps(vary(rng, w))
            if rng.random() < 0.9:
                e = {"args": vary(rng, d["args"]), "kwargs": vary(rng, d["kwargs"])}
                b[f"dataset/step{step}/rank{rank}/dataset.json"] = json.dumps(e)
    for rank in range(rng.choice([0, 1, 2])):
        for m in (a, b):
            ops = {op: [{"count": rng.randrange(1, 3), "stack": stack(rng, m is b)} for _ in range(rng.randrange(1, 4))]
                   for op in ("torch.rand", "random.random", "np.random.rand") if rng.random() < 0.7}
            m[f"random/rank{rank}.json"] = json.dumps(ops)
    return a, b


def write_zip(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in parts.items():
            z.writestr(name, text)


def sheets(path):
    import openpyxl
    book = openpyxl.load_workbook(path)
    out = {}
    for sheet in book:
        rows = [tuple(sheet_cell(c.value) for c in row) for row in sheet.iter_rows()]
        out[sheet.title] = (rows[0] if rows else (), sorted(rows[1:], key=repr) if sheet.title in ("weights", "random", "dataset") else rows[1:])
    return list(book.sheetnames), out


def sheet_cell(v):
    return round(v, 12) if isinstance(v, float) else v


def official_compare(a, b, out):
    """The tables of the official tool; None where it fails."""
    import logging
    from msprobe.core.config_check.config_checker import ConfigChecker
    logging.disable(logging.CRITICAL)
    try:
        ConfigChecker.compare(a, b, out)
    except Exception as why:  # it stops on pairs that ours reads
        return f"{why!r}"
    return None


def pairs(msprobe, at, count):
    import contextlib
    compared = stopped = 0
    rng = random.Random(5)
    for number in range(count):
        folder = os.path.join(at, str(number))
        os.makedirs(folder)
        a, b = os.path.join(folder, "a.zip"), os.path.join(folder, "b.zip")
        for path, parts in zip((a, b), draw(rng)):
            write_zip(path, parts)
        done = run(msprobe, "-c", a, b, "-o", os.path.join(folder, "ours"), "--compat", "strict")
        if done.returncode != 0:
            fail(f"pair {number}: {done.stderr}")
        with contextlib.redirect_stdout(io.StringIO()):
            why = official_compare(a, b, os.path.join(folder, "official"))
        if why is not None:
            stopped += 1
            continue
        want, got = (sheets(os.path.join(folder, w, "result.xlsx")) for w in ("official", "ours"))
        if want != got:
            for name in want[1]:
                if want[1][name] != got[1].get(name):
                    print("official", want[1][name], "\nours    ", got[1].get(name))
            fail(f"pair {number}: {want[0]}, ours {got[0]}")
        for base, _, names in os.walk(os.path.join(folder, "official")):
            for name in names:
                mine = os.path.join(base.replace("official", "ours", 1), name)
                if not name.endswith(".xlsx") and open(os.path.join(base, name), "rb").read() != open(mine, "rb").read():
                    fail(f"pair {number}: {mine}")
        compared += 1
    if compared < count // 3:
        fail(f"the official tool compared {compared} pairs only")
    print(f"ok {compared} pairs of archives: as the official tool ({stopped} on which that one stops)")


# ---- ConfigChecker in a training -----------------------------------------------------------------------------

TRAINING = """
import sys
import torch, random
import numpy as np
from msprobe.core.config_check import ConfigChecker
ConfigChecker.apply_patches(fmk="pytorch")
torch.manual_seed(3); random.seed(3); np.random.seed(3)
net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)).to(torch.float64)
net[0].half().double()
def batch():
    return torch.rand(5, 4).double() + random.random() + np.random.rand()
ConfigChecker(model=net, shell_path=[sys.argv[2]], output_zip_path=sys.argv[1], fmk="pytorch")
for _ in range(3):
    net(batch()).sum().backward()
net(input=torch.ones(2, 4).double())
"""


def training(msprobe, at):
    """Both packages in one program: their archives have equal members."""
    package = os.path.join(os.path.dirname(msprobe), "python")
    script, shell = os.path.join(at, "train.py"), os.path.join(at, "x.sh")
    with open(script, "w", encoding="utf-8") as f:
        f.write(TRAINING)
    with open(shell, "w", encoding="utf-8") as f:
        f.write(SCRIPTS["plain.sh"])
    made = {}
    for name, path in (("official", ""), ("ours", package)):
        out = os.path.join(at, name + "_train.zip")
        # A file of the same name for both, so that stacks are equal.
        done = subprocess.run([sys.executable, script, out, shell], capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH=path))
        if done.returncode != 0:
            fail(f"{name}: {done.stderr}")
        made[name] = members(out)
    if set(made["official"]) != set(made["ours"]):
        fail(f"members {sorted(made['official'])}, ours {sorted(made['ours'])}")
    for name, text in made["official"].items():
        if name not in ("env", "pip") and json.loads(text) != json.loads(made["ours"][name]):
            fail(f"{name}: {text}\nours {made['ours'][name]}")
    print(f"ok {len(made['ours'])} members of a training: as by the official ConfigChecker")


# ---- logs of verl and slime ----------------------------------------------------------------------------------


def tree(rng, depth):
    out = {}
    for i in range(rng.randrange(2, 6)):
        key = rng.choice(["lr", "name", "path", "size", "flag", "items", "profiler", "ray_kwargs", "model", "none"]) + str(i)
        out[key] = tree(rng, depth - 1) if depth and rng.random() < 0.5 else rng.choice(
            [1, -3, 0.5, 1e-06, 2.0, True, False, None, "text", "it is 'so'", "", [], [1, 2], ["a", "b"], {}, "x" * 90 + " y" * 30])
    return out


def changed(rng, v):
    if isinstance(v, dict) and v:
        return {k: changed(rng, w) for k, w in v.items() if rng.random() > 0.05}
    return rng.choice([v, v, v, v, "other", 7])


def verl_log(rng, v, form):
    import pprint
    prefix = rng.choice(["(TaskRunner pid=123) ", "\x1b[36m(main pid=7)\x1b[0m "])
    text = json.dumps(v, indent=2) if form == "json" else pprint.pformat(v, sort_dicts=False)
    if form == "json":
        text = text.replace('{\n  "actor', '{"actor', 1)
    lines = [prefix + line for line in text.splitlines()]
    return "\n".join(["start", prefix + "loading", *lines, prefix + "done", "(WorkerDict pid=9) x"]) + "\n"


def slime_log(rng, v):
    flat = {f"arg_{k}": w for k, w in v.items()}
    lines = [f"  {k} {'.' * max(3, 40 - len(k))} {w}" for k, w in flat.items()]
    return ("hello\n------------------------ arguments ------------------------\n" + "\n".join(lines) +
            "\n  odd line\n-------------------- end of arguments ---------------------\nbye\n")


def logs(msprobe, at, count):
    import contextlib
    import logging
    from types import SimpleNamespace
    from msprobe.core.config_check.config_check_cli import _run_config_checking_command
    logging.disable(logging.CRITICAL)
    rng = random.Random(9)
    compared = stopped = 0
    for number in range(count):
        what = ("verl_compare", "slime_compare", "verl_verify")[number % 3]
        a = {"actor_rollout_ref": tree(rng, 3), "trainer": tree(rng, 1)}
        b = {"actor_rollout_ref": changed(rng, a["actor_rollout_ref"]), "trainer": changed(rng, a["trainer"])}
        paths = [os.path.join(at, f"{number}{s}.log") for s in "ab"]
        for path, v in zip(paths, (a, b)):
            with open(path, "w", encoding="utf-8") as f:
                f.write(slime_log(rng, v["trainer"]) if what == "slime_compare" else verl_log(rng, v, "python"))
        given = paths if what != "verl_verify" else paths[:1]
        folders = [os.path.join(at, f"{w}{number}") for w in ("official", "ours")]
        args = dict(dump=None, compare=None, verl_compare=None, verl_verify=None, slime_compare=None, output=folders[0])
        args[what] = given
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                _run_config_checking_command(SimpleNamespace(**args))
        except Exception:
            stopped += 1
            continue
        done = run(msprobe, "--" + what, *given, "-o", folders[1])
        if done.returncode != 0:
            fail(f"{what} {given}: {done.stderr}")
        names = sorted(os.listdir(folders[0]))
        if names != sorted(os.listdir(folders[1])):
            fail(f"{what}: files {names}, ours {sorted(os.listdir(folders[1]))}")
        for name in names:
            want, got = (open(os.path.join(f, name), encoding="utf-8").read() for f in folders)
            if want != got:
                print(want[:3000], "\nours", got[:3000])
                fail(f"{what} {number}: {name}")
        compared += 1
    if compared < count // 2:
        fail(f"the official tool compared {compared} logs only")
    print(f"ok {compared} logs of verl and slime: as the official tool ({stopped} on which that one stops)")


# ---- archives of strangers --------------------------------------------------------------------------------

def hostile(msprobe):
    with tempfile.TemporaryDirectory() as at:
        good = os.path.join(at, "good.zip")
        write_zip(good, {"env": "{}", "pip": "a=1\n"})

        def made(fill):
            path = os.path.join(at, "bad.zip")
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
                fill(z)
            return path

        def link(z):
            info = zipfile.ZipInfo("env")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            z.writestr(info, "/etc/passwd")

        def twice(z):
            import warnings
            warnings.simplefilter("ignore")
            z.writestr("env", "{}")
            z.writestr("env", "{}")

        cases = [("climbs", lambda z: z.writestr("../x", "y"), "outside"), ("climbs inside", lambda z: z.writestr("env/../../x", "y"), "outside"),
                 ("is absolute", lambda z: z.writestr("/tmp/x", "y"), "outside"), ("has a backslash", lambda z: z.writestr("..\\x", "y"), "outside"),
                 ("is a link", link, "link"), ("is twice", twice, "twice"),
                 ("is too large", lambda z: z.writestr("env", b"\0" * (300 << 20)), "more than"),
                 ("is no JSON", lambda z: z.writestr("env", "{"), "env"), ("is a list", lambda z: z.writestr("env", "[]"), "no JSON object"),
                 ("nests too deep", lambda z: z.writestr("env", '{"a":' * 100 + "1" + "}" * 100), "nested")]
        for what, fill, says in cases:
            path = made(fill)
            done = run(msprobe, "-c", path, good, "-o", os.path.join(at, "out"))
            if done.returncode != 3 or says not in done.stderr:
                fail(f"a member that {what}: status {done.returncode}: {done.stderr}")
            if os.path.exists(os.path.join(at, "x")) or os.path.exists("/tmp/x"):
                fail(f"a member that {what} was written")
        with open(good, "rb") as f:
            whole = f.read()
        for cut in range(0, len(whole), 7):
            path = os.path.join(at, "cut.zip")
            with open(path, "wb") as f:
                f.write(whole[:cut])
            if run(msprobe, "-c", path, good, "-o", os.path.join(at, "out")).returncode != 3:
                fail(f"cut at {cut}: read")
        print(f"ok {len(cases)} archives of strangers and {len(whole) // 7 + 1} cut ones refused")


def official(msprobe):
    with tempfile.TemporaryDirectory() as at:
        training(msprobe, at)
        packs(msprobe, at)
        pairs(msprobe, at, int(os.environ.get("PAIRS", "40")))
        logs(msprobe, at, 45)


if __name__ == "__main__":
    {"official": official, "hostile": hostile}[sys.argv[2]](os.path.abspath(sys.argv[1]))
