# SPDX-License-Identifier: MIT
"""Checkpoints of codes and scales as known tools store them, each beside the same weights in floats.

    quantise_ckpt.py MSPROBE FOLDER

Correct ones must have no suspect and the SQNR that torch computes; each planted fault must be named.
"""
import json
import os
import subprocess
import sys

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gen"))
from quantised_models import Quantiser, down, nearest  # noqa: E402

PROGRAM, FOLDER = sys.argv[1:3]
os.makedirs(FOLDER, exist_ok=True)
torch.manual_seed(0)
failed = False
LAYERS = ("a", "b", "c", "d")
GOLDEN = {name: torch.randn(64, 128) * torch.exp(0.4 * torch.randn(64, 1)) for name in LAYERS}


def save(tensors, name):
    path = os.path.join(FOLDER, name + ".pt")
    torch.save(tensors, path)
    return path


def rows(w, most):
    scale = w.abs().amax(1, keepdim=True) / most
    return scale, (w / scale).round().clamp(-most - 1, most)


def groups(w, n, most):
    scale = w.reshape(w.shape[0], -1, n).abs().amax(-1) / most
    codes = (w / scale.repeat_interleave(n, 1)).round().clamp(-most - 1, most)
    return scale, codes


def int8(w, n):
    scale, codes = rows(w, 127)
    return {n + ".weight": codes.to(torch.int8), n + ".weight_scale": scale}, codes * scale


def bitsandbytes(w, n):
    scale, codes = rows(w, 127)
    return {n + ".weight": codes.to(torch.int8), n + ".SCB": scale.flatten() * 127}, codes * scale


def fp8(w, n):
    scale = w.abs().max() / 448
    codes = (w / scale).to(torch.float8_e4m3fn)
    return {n + ".weight": codes, n + ".weight_scale": scale.reshape(1)}, codes.float() * scale


def tiles(w, n):
    big = torch.cat([w, w * 1.7, w * 0.6, w * 3])
    scale = big.reshape(2, 128, 1, 128).abs().amax((1, 3)) / 448
    full = scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
    codes = (big / full).to(torch.float8_e4m3fn)
    return {n + ".weight": codes, n + ".weight_scale_inv": scale}, codes.float() * full


def gptq(w, n):
    scale, codes = groups(w, 32, 7)
    unsigned = (codes + 8).to(torch.int64).t()  # in x out
    words = sum(unsigned[i::8] << 4 * i for i in range(8))
    zeros = torch.full((w.shape[1] // 32, w.shape[0]), 7, dtype=torch.int64)
    zeros = sum(zeros[:, i::8] << 4 * i for i in range(8))
    return {n + ".qweight": words.to(torch.int32), n + ".qzeros": zeros.to(torch.int32),
            n + ".scales": scale.t().contiguous()}, codes * scale.repeat_interleave(32, 1)


def awq(w, n):
    scale, codes = groups(w, 32, 7)
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    unsigned = (codes + 8).to(torch.int64).t()
    words = sum(unsigned[:, column::8] << 4 * place for place, column in enumerate(order))
    zeros = sum(torch.full((w.shape[1] // 32, w.shape[0] // 8), 8, dtype=torch.int64) << 4 * i for i in range(8))
    return {n + ".qweight": words.to(torch.int32), n + ".qzeros": zeros.to(torch.int32),
            n + ".scales": scale.t().contiguous()}, codes * scale.repeat_interleave(32, 1)


def packed(w, n):
    scale, codes = groups(w, 32, 7)
    unsigned = (codes + 8).to(torch.int64)
    words = sum(unsigned[:, i::8] << 4 * i for i in range(8))
    return {n + ".weight_packed": words.to(torch.int32), n + ".weight_scale": scale}, \
        codes * scale.repeat_interleave(32, 1)


E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def nibbles(values):
    codes = torch.searchsorted(E2M1, values.abs().contiguous()) + 8 * (values < 0)
    return (codes[:, ::2] | codes[:, 1::2] << 4).to(torch.uint8)


def nvfp4(w, n):
    whole = w.abs().max() / (448 * 6)
    scale = (w.reshape(w.shape[0], -1, 16).abs().amax(-1) / 6 / whole).to(torch.float8_e4m3fn)
    full = (scale.float() * whole).repeat_interleave(16, 1)
    values = nearest(w / full, "e2m1")
    return {n + ".weight": nibbles(values), n + ".weight_scale": scale, n + ".weight_scale_2": whole}, values * full


def mxfp4(w, n):
    exponent = torch.floor(torch.log2(w.reshape(w.shape[0], -1, 32).abs().amax(-1))) - 2
    full = (2.0 ** exponent).repeat_interleave(32, 1)
    values = nearest(w / full, "e2m1")
    return {n + "_blocks": nibbles(values).reshape(w.shape[0], -1, 16),
            n + "_scales": (exponent + 127).to(torch.uint8)}, values * full


def stored(w, n):
    q = Quantiser("int4", ("block", 32))
    q.weight = True
    return {n + ".weight": q(w)}, q(w)


def compare(target, golden):
    done = subprocess.run([PROGRAM, "quantise", target, "--against", golden, "--format", "json"],
                          capture_output=True, text=True)
    if done.returncode:
        return {"suspects": [{"pattern": done.stderr, "layer": ""}], "tensors": [], "summary": {}}
    return json.loads(done.stdout)


def report(good, text):
    global failed
    print(("ok " if good else "FAIL ") + text)
    failed |= not good


def golden_of(form, name):
    w = GOLDEN[name]
    return torch.cat([w, w * 1.7, w * 0.6, w * 3]) if form is tiles else w


for form in (int8, bitsandbytes, fp8, tiles, gptq, awq, packed, nvfp4, mxfp4, stored):
    entries, values = {}, {}
    for name in LAYERS:
        made, values[name] = form(GOLDEN[name], name)
        entries.update(made)
    ending = "" if form is mxfp4 else ".weight"
    golden = save({n + ending: golden_of(form, n) for n in LAYERS}, form.__name__ + "-golden")
    result = compare(save(entries, form.__name__), golden)
    worst = 0.0
    for t in result["tensors"]:
        w = golden_of(form, t["layer"].replace(".weight", ""))
        q = values[t["layer"].replace(".weight", "")]
        want = 10 * torch.log10(w.double().pow(2).sum() / (w.double() - q.double()).pow(2).sum()).item()
        worst = max(worst, abs(want - t["sqnr_db"]))
    report(not result["suspects"] and len(result["tensors"]) == len(LAYERS) and worst < 1e-4 and
           result["summary"]["quantised"] == len(LAYERS),
           f"{form.__name__}: {len(result['tensors'])} weights, at most {worst:.1e} dB from torch, suspects "
           f"{[s['layer'] + ' ' + s['pattern'] for s in result['suspects']]}")


def planted(form, change, fault):
    entries = {}
    for name in LAYERS:
        entries.update(form(GOLDEN[name], name)[0])
    change(entries)
    golden = save({n + ".weight": GOLDEN[n] for n in LAYERS}, "planted-golden")
    suspects = compare(save(entries, "planted"), golden)["suspects"]
    report([(s["layer"], s["pattern"]) for s in suspects] == [("b.weight", fault)],
           f"{form.__name__} with {fault}: {[s['layer'] + ' ' + s['pattern'] for s in suspects]}")


def change_scale(entries):
    entries["b.weight_scale"] = entries["b.weight_scale"].roll(1, 0)


def square(entries):
    entries["b.weight_scale"] = entries["b.weight_scale"] ** 2


def floor(entries):
    scale = GOLDEN["b"].abs().amax(1, keepdim=True) / 127
    entries["b.weight"] = down(GOLDEN["b"] / scale, "int8").to(torch.int8)


def zero(entries):
    low, high = GOLDEN["b"].amin(1, keepdim=True), GOLDEN["b"].amax(1, keepdim=True) * 3
    scale = (high - low) / 255
    entries["b.weight"] = ((GOLDEN["b"] / scale).round() - 128 - (low / scale).round()).to(torch.int8)
    entries["b.weight_scale"] = scale


def other_scales(entries):
    entries["b.scales"] = entries["b.scales"].flip(0)


planted(int8, change_scale, "stale_scale")
planted(int8, square, "dequantised_twice")
planted(int8, floor, "wrong_rounding")
planted(int8, zero, "zero_point")
planted(gptq, other_scales, "stale_scale")
sys.exit(failed)
