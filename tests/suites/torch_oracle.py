# SPDX-License-Identifier: MIT
"""Our dump against the official tool's: the same model, the same config.json, both written here.

    torch_oracle.py BUILD OFFICIAL [MODEL CONFIG]
    ONLY=gpt        pairs of a model and a config with this in "MODEL_CONFIG"

What differs beside the last bits of sums (see peer_dumps.py), and why:
  - VF.*: the official tool means to wrap torch._VF and does not
  - construct.json of PyTorch before 2: it has no optimizer root there
  - md5 of a tensor that is changed in place right after: it reads it too late
  - risk_level CORE: a comma that it lacks loses linear
  - construct.json of PyTorch 2: the backward of a module whose input has no gradient is over at once,
    so it has those of the modules inside without a parent
  - a scope that begins or ends at a module: the official tool's begins and ends within calls, so what
    is around the first name has outputs alone, the second name inputs alone and what is called in
    it is not there (at mix also where both names are one); here a call that began in it is whole,
    unless `strict` asks for the official tool's borders
  - attention with PyTorch 2: its hooks make three tensors of one, so attention of `x, x, x` computes in
    another way and the loss is not that of the program; such programs are only held beside it
    before version 2
  - a module that writes to its input, with PyTorch 2: the nodes that its hooks add make the backward
    of the function another, and records of such modules and of what is before them are not there; here
    nothing is added
  - precision high: it has neither Mean nor Norm then, here they are of float32 as it documents
  - names of files come before digests where both are kept (tensor_list with md5)
  - construct.json at level L0: a backward that begins and does not end, as that of a module that
    writes to its input, is lost when nothing follows
  - not among the programs here: modules that call themselves, whose calls it mixes up, and
    functions that raise, after which it records nothing more
"""
import glob
import os
import re
import sys
import tempfile

from peer_dumps import check, dump, run

ALONE = re.compile(r"^construct/Module\.[^:]*\.backward\.\d+: None and 'Module\.")
IN_PLACE = re.compile(rf"(\w_|__i\w+__|batch_norm)\.\d+\.forward/.*md5|{ALONE.pattern}")
# Records are written when they are complete: those of inputs alone after what is called in them.
INPUTS_ALONE = re.compile(rf"^/data: keys in another order$|{ALONE.pattern}")
COMPUTED_ANOTHER_WAY = {"attention"}
# What in-place modules have without the official tool's nodes.
WRITES = re.compile(r"keys \[('Module\.[\w.]+\.backward\.0'|, )+\]|^construct/[\w.]+\.backward|"
                    rf"^/data/Functional\.(leaky_)?relu\.0\.backward/output|{ALONE.pattern}")
LINEAR = re.compile(r"keys \[('Functional\.linear\.\d+\.\w+'|'\d+'|, )+\]|^stack")



def is_version_2():
    import torch
    return int(torch.__version__.split(".")[0]) >= 2


# ---- the training ---------------------------------------------------------------


def trained(torch, name):
    """The model, and a function that makes a step of it."""
    sys.path.insert(1, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
    import bench_torch
    import torch_zoo
    if name in torch_zoo.ZOO:
        return torch_zoo.ZOO[name](torch)
    model, data, loss_of = bench_torch.gpt(torch, 16, 8, 2) if name == "gpt" \
        else bench_torch.cnn(torch, 4, 12, 4)
    return model, lambda: loss_of(model(data)).backward()


def train(name, config):
    import torch
    torch.set_num_threads(1)
    torch.manual_seed(3)
    if not hasattr(torch.Tensor, "untyped_storage"):  # the official tool needs it
        torch.Tensor.untyped_storage = lambda t: t.storage().untyped()
    from msprobe.pytorch import PrecisionDebugger
    debugger = PrecisionDebugger(config_path=config)
    model, step = trained(torch, name)
    parameters = list(model.parameters()) or [torch.nn.Parameter(torch.ones(1))]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3)
    for _ in range(2):
        debugger.start(model=model)
        step()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        debugger.stop()
        debugger.step()
    print([p.detach().double().sum().item() for p in parameters])


CONFIGS = {
    "L0": {"level": "L0"}, "L1": {"level": "L1"}, "mix": {"level": "mix"},
    "all": {"level": "mix", "risk_level": "ALL"}, "core": {"level": "mix", "risk_level": "CORE"},
    "md5": {"level": "mix", "statistics": {"summary_mode": "md5"}},
    "xor": {"level": "mix", "statistics": {"summary_mode": "xor"}},
    "tensor": {"level": "mix", "task": "tensor"},
    "structure": {"level": "mix", "task": "structure"},
    "list": {"level": "mix", "statistics": {"list": ["Module.blocks.0", "linear"]}},
    "forward": {"level": "L1", "statistics": {"data_mode": ["forward", "output"]}},
    "inputs": {"level": "L0", "statistics": {"data_mode": ["input"]}},
    "strict_scope": {"level": "mix", "strict": True,
                     "statistics": {"scope": ["Module.blocks.0.qkv.Linear.forward.0",
                                              "Module.blocks.1.qkv.Linear.forward.0"]}},
    "forward_inputs": {"level": "mix", "statistics": {"data_mode": ["forward", "input"],
                                                      "list": ["add_", "Module.head"]}},
    "bare": {"level": "L1", "extra_info": False},
}


def check_readers(build, official):
    """The official compare, graph and trend take our dump."""
    good = True
    with tempfile.TemporaryDirectory() as folder:
        ours, _ = dump(__file__, os.path.join(build, "python"), folder, "ours", "gpt",
                       {"level": "mix"})
        json_of = glob.glob(f"{ours}/step0/*/dump.json")[0]
        for args, made in ((("compare", "-tp", json_of, "-gp", json_of), "*.csv"),
                           (("graph_visualize", "-tp", f"{ours}/step0"), "*.vis.db"),
                           (("data2db", "--db", folder + "/out-data2db", "--data", ours), "*.db")):
            out = f"{folder}/out-{args[0]}"
            more = () if args[0] == "data2db" else ("-o", out)
            got = run(official, "-m", "msprobe.msprobe", *args, *more)
            fine = got.returncode == 0 and glob.glob(f"{out}/{made}")
            good = good and bool(fine)
            print(f"{'ok' if fine else 'not ok'} the_official_{args[0]}_takes_our_dump")
            if not fine:
                print("   ", (got.stdout + got.stderr)[-600:])
    return good


def main():
    build, official = sys.argv[1], sys.argv[2]
    if len(sys.argv) > 4:
        train(sys.argv[3], sys.argv[4])
        return 0
    if not official or run(official, "-c", "import msprobe.pytorch.dump").returncode != 0:
        print("skip torch_oracle: no official package (OFFICIAL=folder)")
        return 0
    import torch_zoo
    known, only = {"md5": IN_PLACE, "core": LINEAR, "strict_scope": INPUTS_ALONE}, os.environ.get("ONLY", "")
    pairs = [("gpt", label) for label in CONFIGS] + [("cnn", label) for label in ("md5", "tensor")]
    pairs += [(name, "all") for name in ("cnn", *torch_zoo.ZOO)
              if name not in COMPUTED_ANOTHER_WAY or not is_version_2()]
    if is_version_2():
        known.update(convolutions=WRITES, in_place=WRITES)
    good = [check(__file__, build, official, name, label, CONFIGS[label],
                  known.get(name, known.get(label, ALONE)))
            for name, label in pairs if only in f"{name}_{label}"]
    return 0 if all([*good, check_readers(build, official)]) else 1


if __name__ == "__main__":
    sys.exit(main())
