# SPDX-License-Identifier: MIT
"""Holds `msprobe config_check -c` against the official tool, and its readers against the frameworks.

    ckpt_oracle.py MSPROBE official     Megatron folders, both tools on each pair (needs mindstudio-probe)
    ckpt_oracle.py MSPROBE torch        .pt, .distcp, DeepSpeed's folders: a reader's tensors are torch's
    ckpt_oracle.py MSPROBE mindspore    .ckpt

The official tool needs a package named megatron to import, which it does not use; an empty one is made.
"""
import argparse
import json
import math
import os
import pickle
import subprocess
import sys
import tempfile


def fail(why):
    print(f"FAIL ckpt: {why}")
    sys.exit(1)


def ours(msprobe, a, b, out, *more):
    run = subprocess.run([msprobe, "config_check", "-c", a, b, "-o", out, *more], capture_output=True, text=True)
    if run.returncode != 0:
        fail(f"{a} {b}: {run.stderr}")
    with open(out, encoding="utf-8") as f:
        return json.load(f), run


# ---- Megatron -----------------------------------------------------------------------------------

def megatron_models(torch, layout, seed, dtype, old_names, change, swiglu=False):
    """The state of each rank: {(tp, pp, ep): {"model": ...}}."""
    tp, pp, ep, vpp, layers, experts = layout
    made = {}
    hidden, ffn, vocab = 16, 32, 40

    def tensor(name, *shape):
        g = torch.Generator().manual_seed(hash_of(f"{seed if change(name) else 0} {name}"))
        return torch.randn(*shape, generator=g).to(dtype)

    def cut(t, dim, rank):
        return t.chunk(tp, dim)[rank].clone()

    for p in range(pp):
        for e in range(ep):
            for r in range(tp):
                chunks = [{} for _ in range(vpp)]
                per = layers // (pp * vpp)
                for v, chunk in enumerate(chunks):
                    for i in range(per):
                        real = i + (pp * v + p) * per
                        n = f"decoder.layers.{i}."
                        g = f"{real} "
                        qkv, proj = ("self_attention.query_key_value", "self_attention.dense") if old_names else \
                            ("self_attention.linear_qkv", "self_attention.linear_proj")
                        fc1, fc2 = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h") if old_names else \
                            ("mlp.linear_fc1", "mlp.linear_fc2")
                        chunk[n + qkv + ".weight"] = cut(tensor(g + "qkv", 3 * hidden, hidden), 0, r)
                        chunk[n + qkv + ".bias"] = cut(tensor(g + "qkvb", 3 * hidden), 0, r)
                        chunk[n + proj + ".weight"] = cut(tensor(g + "proj", hidden, hidden), 1, r)
                        chunk[n + ("input_norm.weight" if old_names else "input_layernorm.weight")] = \
                            tensor(g + "norm", hidden)
                        if experts:
                            for k in range(experts // ep):
                                real_k = k + e * (experts // ep)
                                m = n + f"mlp.experts.local_experts.{k}."
                                chunk[m + "linear_fc1.weight"] = cut(tensor(f"{g}{real_k}fc1", ffn, hidden), 0, r)
                                chunk[m + "linear_fc2.weight"] = cut(tensor(f"{g}{real_k}fc2", hidden, ffn), 1, r)
                        else:
                            whole = tensor(g + "fc1", ffn, hidden)
                            if swiglu:
                                halves = whole.chunk(2, 0)
                                chunk[n + fc1 + ".weight"] = torch.cat([cut(h, 0, r) for h in halves])
                            else:
                                chunk[n + fc1 + ".weight"] = cut(whole, 0, r)
                            chunk[n + fc2 + ".weight"] = cut(tensor(g + "fc2", hidden, ffn), 1, r)
                if p == 0:
                    chunks[0]["embedding.word_embeddings.weight"] = cut(tensor("emb", vocab, hidden), 0, r)
                if p == pp - 1:
                    chunks[-1]["decoder.final_norm.weight"] = tensor("final", hidden)
                    chunks[-1]["output_layer.weight"] = cut(tensor("out", vocab, hidden), 0, r)
                args = argparse.Namespace(tensor_model_parallel_size=tp, pipeline_model_parallel_size=pp,
                                          expert_model_parallel_size=ep, num_experts=experts or None,
                                          swiglu=swiglu, lr=0.001)
                state = {"args": args, "checkpoint_version": 3.0, "iteration": 5}
                if vpp == 1:
                    state["model"] = {"language_model": chunks[0]} if old_names else chunks[0]
                else:
                    state.update({f"model{i}": c for i, c in enumerate(chunks)})
                made[(r, p, e)] = state
    return made


def hash_of(text):
    import zlib
    return zlib.crc32(text.encode())


def write_megatron(torch, folder, layout, **how):
    tp, pp, ep = layout[:3]
    spoil = how.pop("spoil", None)
    inner = os.path.join(folder, "iter_0000005")
    for (r, p, e), state in megatron_models(torch, layout, **how).items():
        name = f"mp_rank_{r:02d}" + (f"_{p:03d}" if pp > 1 else "") + (f"_{e:03d}" if ep > 1 else "")
        os.makedirs(os.path.join(inner, name))
        if spoil:
            spoil(state, r, p, e)
        torch.save(state, os.path.join(inner, name, "model_optim_rng.pt"))
    with open(os.path.join(folder, "latest_checkpointed_iteration.txt"), "w", encoding="utf-8") as f:
        f.write("5")


def close(a, b, tolerance):
    if a is None or b is None or isinstance(a, list):
        return a == b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return abs(a - b) <= tolerance * max(1e-3, abs(a), abs(b))


def official_pairs(msprobe):
    import torch
    from msprobe.core.config_check.ckpt_compare.ckpt_comparator import compare_checkpoints
    stub = tempfile.mkdtemp()
    os.makedirs(os.path.join(stub, "megatron"))
    with open(os.path.join(stub, "megatron", "__init__.py"), "w", encoding="utf-8"):
        pass
    sys.path.insert(0, stub)

    def zero(state, r, p, e):
        for m in [v for k, v in state.items() if k.startswith("model")]:
            for k in m:
                if "norm" in k:
                    m[k] = torch.zeros_like(m[k])

    def nan(state, r, p, e):
        if p == 0 and r == 0:
            next(iter(state.get("model", state.get("model0")).values()))[0] = float("nan")

    def inf(state, r, p, e):
        if p == 0 and r == 0:
            next(iter(state.get("model", state.get("model0")).values()))[0] = float("inf")

    def wider(state, r, p, e):
        for k in state["model"]:
            if "norm" in k:
                state["model"][k] = torch.ones(24)

    def scalar(state, r, p, e):
        state["model"]["scale"] = torch.tensor(2.5)
        state["model"]["one"] = torch.tensor([3.0])
        state["model"]["count"] = torch.arange(7)

    def drop(state, r, p, e):
        for k in [k for k in state["model"] if "qkv.bias" in k]:
            del state["model"][k]

    f32, bf16, f16 = torch.float32, torch.bfloat16, torch.float16
    everything, nothing, some = (lambda n: True), (lambda n: False), (lambda n: "fc1" in n)
    #        layout: tp, pp, ep, vpp, layers, experts       change of side B, dtypes, old names, spoils
    pairs = [((1, 1, 1, 1, 2, 0), everything, (f32, f32), (False, False), (None, None)),
             ((2, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (None, None)),
             ((1, 2, 1, 1, 4, 0), everything, (f32, f32), (False, False), (None, None)),
             ((2, 2, 1, 1, 4, 0), nothing, (f32, f32), (False, False), (None, None)),
             ((2, 2, 1, 2, 8, 0), some, (f32, f32), (False, False), (None, None)),
             ((1, 1, 2, 1, 2, 4), everything, (f32, f32), (False, False), (None, None)),
             ((2, 2, 2, 1, 2, 4), some, (bf16, bf16), (False, False), (None, None)),
             ((2, 1, 1, 1, 2, 0), everything, (bf16, f32), (False, False), (None, None)),
             ((2, 1, 1, 1, 2, 0), everything, (f16, f16), (False, False), (None, None)),
             ((2, 2, 1, 1, 2, 0), some, (f32, f32), (True, True), (None, None)),
             ((1, 2, 1, 1, 2, 0), some, (f32, f32), (True, True), (None, None)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (zero, zero)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (None, zero)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (nan, None)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (inf, inf)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (None, wider)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (scalar, scalar)),
             ((1, 1, 1, 1, 2, 0), some, (f32, f32), (False, False), (drop, None)),
             ((1, 4, 1, 1, 4, 0), everything, (f32, f32), (False, False), (None, None)),
             ((4, 1, 1, 1, 1, 0), everything, (f32, f32), (False, False), (None, None))]
    seen = 0
    for number, (layout, change, dtypes, old, spoils) in enumerate(pairs):
        with tempfile.TemporaryDirectory() as at:
            sides = [os.path.join(at, s) for s in "ab"]
            for side in range(2):
                write_megatron(torch, sides[side], layout, seed=side, dtype=dtypes[side], old_names=old[side],
                               change=change, spoil=spoils[side])
            # The official tool reads the iteration's folder out of the tracker's.
            want = compare_checkpoints(*sides, os.path.join(at, "official.json"))
            got, _ = ours(msprobe, *sides, os.path.join(at, "ours.json"))
            with open(os.path.join(at, "official.json"), encoding="utf-8") as f:
                want = json.load(f)
            if set(want) != set(got):
                fail(f"pair {number}: names {sorted(set(want) ^ set(got))[:5]}")
            for name, row in want.items():
                mine = got[name]
                if list(mine) != list(row):
                    fail(f"pair {number}: {name}: keys {list(mine)}, official {list(row)}")
                if (mine["numel"], mine["shape"]) != (row["numel"], row["shape"]):
                    fail(f"pair {number}: {name}: {mine}, official {row}")
                # The official tool sums in float32.
                if not close(mine["l2"], row["l2"], 1e-5) or not close(mine["cos"], row["cos"], 1e-5):
                    fail(f"pair {number}: {name}: {mine}, official {row}")
                seen += 1
    print(f"ok {len(pairs)} pairs, {seen} weights: as the official tool")


# ---- readers beside PyTorch ---------------------------------------------------------------------------

def reads_as(msprobe, path, weights, torch, at):
    """A reader's weights are these tensors: beside a .pt of them they are identical."""
    plain = os.path.join(at, "plain.pt")
    torch.save(dict(weights), plain)
    got, run = ours(msprobe, path, plain, os.path.join(at, "r.json"), "--exit_code")
    if set(got) != set(weights):
        fail(f"{path}: names {sorted(set(got) ^ set(weights))[:6]}")
    for name, t in weights.items():
        if got[name]["shape"] != list(t.shape) or got[name]["l2"] != 0:
            fail(f"{path}: {name}: {got[name]}, torch {list(t.shape)}")
    if "only in" in run.stdout:
        fail(run.stdout)


def write_deepspeed(torch, folder, weights, ranks, stage):
    os.makedirs(folder)
    shapes = [dict((n, t.shape) for n, t in weights.items())]
    flat = torch.cat([t.flatten() for t in weights.values()])
    if stage == 3:
        slices = [[] for _ in range(ranks)]
        for t in weights.values():
            size = -(-t.numel() // ranks)
            row = torch.nn.functional.pad(t.flatten(), (0, size * ranks - t.numel()))
            for r in range(ranks):
                slices[r].append(row[r * size:(r + 1) * size])
    else:
        size = -(-flat.numel() // (2 * ranks)) * 2
        row = torch.nn.functional.pad(flat, (0, size * ranks - flat.numel()))
    for r in range(ranks):
        inner = {"zero_stage": stage, "partition_count": ranks}
        if stage == 3:
            inner["fp32_flat_groups"] = [torch.cat(slices[r])]
        else:
            inner["single_partition_of_fp32_groups"] = [row[r * size:(r + 1) * size].clone()]
        torch.save({"optimizer_state_dict": inner, "ds_version": "0.18"},
                   os.path.join(folder, f"zero_pp_rank_{r}_mp_rank_00_optim_states.pt"))
    model = {"module": {n: t.bfloat16() for n, t in weights.items()}, "param_shapes": shapes, "global_steps": 5}
    for r in range(ranks if stage == 3 else 1):
        name = f"zero_pp_rank_{r}_mp_rank_00_model_states.pt" if stage == 3 else "mp_rank_00_model_states.pt"
        torch.save(model, os.path.join(folder, name))


def torch_readers(msprobe):
    import torch
    torch.manual_seed(1)
    cases = 0
    net = torch.nn.Sequential(torch.nn.Linear(7, 5), torch.nn.BatchNorm1d(5), torch.nn.Linear(5, 3))
    weights = net.state_dict()
    big = {f"layers.{i}.w": torch.randn(3, 5) for i in range(200)}
    shared = torch.randn(4, 6)
    odd = {"t": shared.t(), "row": shared[1], "count": torch.tensor(3), "none": torch.zeros(0, 4),
           "half": torch.randn(3).half(), "bf": torch.randn(3).bfloat16(), "long": torch.arange(5),
           "flag": torch.tensor([True, False]), "c": torch.randn(3, dtype=torch.complex64),
           "f8": torch.randn(4).to(torch.float8_e4m3fn) if hasattr(torch, "float8_e4m3fn") else shared,
           "par": torch.nn.Parameter(torch.randn(2))}
    opt = torch.optim.AdamW(net.parameters())
    net(torch.randn(4, 7)).sum().backward()
    opt.step()
    weights = net.state_dict()
    with tempfile.TemporaryDirectory() as at:
        for kind, state, want in [
                ("flat", weights, weights), ("200 tensors", big, big), ("odd", odd, odd),
                ("wrapped", {"state_dict": weights, "epoch": 3, "optimizer": opt.state_dict(), "args": argparse.Namespace(a=1)}, weights),
                ("ddp", {"module." + k: v for k, v in weights.items()}, weights),
                ("model", {"model": weights, "rng": torch.get_rng_state(), "numpy": pickle.dumps(1)}, weights)]:
            path = os.path.join(at, f"{kind}.pt")
            torch.save(state, path)
            reads_as(msprobe, path, want, torch, at)
            cases += 1
        for protocol in (2, 3, 4, 5):
            path = os.path.join(at, f"p{protocol}.pt")
            torch.save({"model": weights, "opt": opt.state_dict(), "a": argparse.Namespace(b=[1, (2, 3)], s={1, 2})}, path, pickle_protocol=protocol)
            reads_as(msprobe, path, weights, torch, at)
            cases += 1
        for ranks, stage in ((1, 2), (2, 1), (4, 2), (2, 3), (4, 3)):
            path = os.path.join(at, f"ds{ranks}_{stage}")
            floats = {k: v for k, v in weights.items() if v.is_floating_point()}
            write_deepspeed(torch, path, floats, ranks, stage)
            reads_as(msprobe, path, floats, torch, at)
            cases += 1
        try:
            import torch.distributed.checkpoint as dcp
            from torch.distributed.checkpoint import FileSystemWriter
        except ImportError:
            print("skip .distcp: this torch has none")
        else:
            path = os.path.join(at, "dcp")
            dcp.save({"model": dict(weights), "optimizer": opt.state_dict(), "step": 7},
                     storage_writer=FileSystemWriter(path), no_dist=True)
            reads_as(msprobe, path, weights, torch, at)
            cases += 1
            cases += sharded(msprobe, torch, at)
        try:
            from safetensors.torch import save_file
        except ImportError:
            print("skip safetensors: not installed")
        else:
            cases += safetensors_cases(msprobe, torch, save_file, odd, weights, at)
        # Layouts of Megatron that differ in tensor-parallel size.
        for a, b in (((1, 1, 1, 1, 4, 0), (2, 1, 1, 1, 4, 0)), ((2, 1, 1, 1, 4, 0), (4, 2, 1, 1, 4, 0)),
                     ((2, 2, 1, 2, 8, 0), (1, 1, 1, 1, 8, 0)), ((1, 1, 2, 1, 2, 4), (2, 1, 1, 1, 2, 4))):
            for gated in (False, True):
                folders = [os.path.join(at, f"m{cases}{s}") for s in "ab"]
                for folder, layout in zip(folders, (a, b)):
                    write_megatron(torch, folder, layout, seed=0, dtype=torch.float32, old_names=False, change=lambda n: False, swiglu=gated and not layout[5])
                got, run = ours(msprobe, *folders, os.path.join(at, "m.json"))
                if any(row["l2"] != 0 for row in got.values()) or "only in" in run.stdout:
                    fail(f"{a} {b} gated {gated}: {run.stdout}")
                cases += 1
    print(f"ok {cases} checkpoints read as torch reads them")


def shard_worker(rank, path, port):
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    g = torch.Generator().manual_seed(0)
    state = {f"w{d}": distribute_tensor(torch.randn(6, 9, generator=g), mesh, [Shard(d)]) for d in (0, 1)}
    dcp.save({"model": state}, checkpoint_id=path)
    dist.destroy_process_group()


def sharded(msprobe, torch, at):
    try:
        from torch.distributed.tensor import Shard  # noqa: F401
    except ImportError:
        return 0
    path = os.path.join(at, "sharded")
    port = 20000 + os.getpid() % 20000
    torch.multiprocessing.spawn(shard_worker, (path, port), nprocs=2)
    g = torch.Generator().manual_seed(0)
    want = {f"w{d}": torch.randn(6, 9, generator=g) for d in (0, 1)}
    reads_as(msprobe, path, want, torch, at)
    return 1


def safetensors_cases(msprobe, torch, save_file, odd, weights, at):
    plain = {k: v.detach().clone().contiguous() for k, v in odd.items()}
    path = os.path.join(at, "x.safetensors")
    save_file(plain, path, metadata={"format": "pt"})
    reads_as(msprobe, path, plain, torch, at)
    folder = os.path.join(at, "hf")
    os.makedirs(folder)
    names = list(weights)
    halves = {"model-00001-of-00002.safetensors": names[:3], "model-00002-of-00002.safetensors": names[3:]}
    for file, part in halves.items():
        save_file({n: weights[n].clone() for n in part}, os.path.join(folder, file))
    with open(os.path.join(folder, "model.safetensors.index.json"), "w", encoding="utf-8") as f:
        json.dump({"metadata": {"total_size": 1}, "weight_map": {n: file for file, part in halves.items() for n in part}}, f)
    reads_as(msprobe, folder, weights, torch, at)
    os.remove(os.path.join(folder, "model-00002-of-00002.safetensors"))
    run = subprocess.run([msprobe, "config_check", "-c", folder, path, "-o", os.path.join(at, "n.json")], capture_output=True, text=True)
    if run.returncode != 3 or "model-00002-of-00002" not in run.stderr:
        fail(f"a missing file is not named: {run.stderr}")
    return 3


# ---- MindSpore -------------------------------------------------------------------------------------------

def mindspore_readers(msprobe):
    import mindspore
    import numpy
    rng = numpy.random.default_rng(0)
    arrays = {"dense.weight": rng.standard_normal((3, 5)).astype("f4"), "scalar": numpy.float32(2.5).reshape(()),
              "half": rng.standard_normal(4).astype("f2"), "long": numpy.arange(6), "flag": numpy.array([True, False]),
              "big": rng.standard_normal((300, 200)).astype("f4"), "double": rng.standard_normal(3)}
    with tempfile.TemporaryDirectory() as at:
        a, b = os.path.join(at, "a.ckpt"), os.path.join(at, "b.ckpt")
        for path, scale in ((a, 1), (b, 2)):
            mindspore.save_checkpoint([{"name": n, "data": mindspore.Tensor((v * scale).astype(v.dtype) if v.dtype != bool else v)}
                                       for n, v in arrays.items()], path)
        got, _ = ours(msprobe, a, b, os.path.join(at, "r.json"))
        if set(got) != set(arrays):
            fail(f"names {sorted(set(got) ^ set(arrays))}")
        for name, v in arrays.items():
            want = float(numpy.linalg.norm(v.astype("f8"))) if v.dtype != bool else 0.0
            if got[name]["shape"] != list(v.shape) or not close(got[name]["l2"], want, 1e-3 if v.dtype == "f2" else 1e-6):
                fail(f"{name}: {got[name]}, MindSpore {list(v.shape)} {want}")
    print(f"ok {len(arrays)} tensors of MindSpore")


if __name__ == "__main__":
    {"official": official_pairs, "torch": torch_readers, "mindspore": mindspore_readers}[sys.argv[2]](os.path.abspath(sys.argv[1]))
