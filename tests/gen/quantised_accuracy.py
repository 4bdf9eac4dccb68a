#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How often faults of quantisation are named and placed, and how often correct runs are accused.

    quantised_accuracy.py BUILD FOLDER [--half first|second] [--show] [--family NAME] [--few]

FOLDER gets the dumps; those that are there are used again.  `first` is the half that thresholds were set with.
"""
import argparse
import collections
import json
import os
import subprocess
import sys
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
parser = argparse.ArgumentParser()
parser.add_argument("build")
parser.add_argument("folder")
parser.add_argument("--half", default="first", choices=["first", "second"])
parser.add_argument("--family")
parser.add_argument("--show", action="store_true")
parser.add_argument("--few", action="store_true", help="a quarter of the faults")
args = parser.parse_args()
sys.path.insert(0, os.path.abspath(args.build) + "/python")

import torch  # noqa: E402
import quantised_models as models  # noqa: E402


def folder(*parts):
    return os.path.join(args.folder, args.half, "-".join(parts))


def recorded(path, make):
    if not os.path.isdir(path + "/out") and not models.record_apart(make, path):
        if os.path.exists(path + ".harmless"):
            return False
        with open(path + ".log", encoding="utf-8") as f:
            print(f"FAIL {path}: not recorded: {f.read()[-600:]}")
        return False
    return True


def compare(target, golden):
    done = subprocess.run([args.build + "/msprobe", "quantise", target + "/out", "--against", golden + "/out", "--format",
                           "json"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"FAIL {target}: {done.stderr}")
        return None
    return json.loads(done.stdout)


def small(text):
    return zlib.crc32(text.encode())


def quantised(family, scheme, style, fault=None, dtype=torch.float32, harmless_is_no_fault=False):
    model, x = models.build(args.half, family, dtype)
    stored = style == "stored"
    ranges = models.calibrate(model, args.half, family, dtype) if scheme == "int8_static" else None
    model = models.quantise(model, scheme, "inline" if stored else style, ranges)
    if fault:
        correct = model(x) if harmless_is_no_fault else None
        models.plant(model, *fault, "inline" if stored else style)
        if harmless_is_no_fault:
            exact = models.build(args.half, family, dtype)[0](x)
            if (model(x) - exact).norm() <= 1.1 * (correct - exact).norm():
                raise models.NoEffect()
    if stored:
        for _, layer in models.layers_of(model):
            with torch.no_grad():
                layer.weight.copy_(layer.quantise_weight(layer.weight))
            layer.quantise_weight = layer.quantise_input = None
            layer.__class__ = type(layer).__mro__[2]
    return model, x


def ao(family):
    model, x = models.build(args.half, family)
    return models.torch_ao(model, x), x


def correct_runs(family):
    for scheme in models.schemes():
        style = ("inline", "modules")[small(family + scheme) % 2]
        yield scheme, (lambda s=scheme, st=style: quantised(family, s, st))
    for scheme in ("int4", "mxfp4", "fp8_row"):
        yield scheme + "-stored", (lambda s=scheme: quantised(family, s, "stored"))
    yield "int8_token-bf16", (lambda: quantised(family, "int8_token", "inline", dtype=torch.bfloat16))
    if family not in ("wave",):
        yield "torch_ao", (lambda: ao(family))


def planted_runs(family):
    model, _ = models.build(args.half, family)
    layers = models.layers_of(model)
    linear = [(n, m) for n, m in layers if isinstance(m, torch.nn.Linear)]
    for scheme in models.schemes():
        for fault, ways in models.faults(scheme, True).items():
            for at, (role, change) in enumerate(ways):
                key = f"{family}{scheme}{fault}{at}"
                pool = linear if role == "input" else layers
                if "decode" in change and fault == "wrong_axis":
                    pool = [(n, m) for n, m in linear if m.in_features == m.out_features]
                size = models.schemes()[scheme][0]().layout[1]
                if fault == "wrong_block" or (fault == "wrong_axis" and size):
                    pool = [(n, m) for n, m in linear if m.in_features >= 2 * size and m.out_features >= 2 * size]
                if fault == "dequantised_twice" or fault == "saturated_outliers":
                    pool = linear
                pool = [(n, m) for n, m in pool if m.weight.shape[0] > 8] or pool
                if not pool or (args.few and small(key) // 11 % 4):
                    continue
                name = pool[small(key) % len(pool)][0]
                style = ("inline", "modules", "inline", "stored")[small(key) // 7 % 4] if role == "weight" else \
                    ("inline", "modules")[small(key) // 7 % 2]
                yield fault, role, name, f"{scheme}-{fault}-{at}", (
                    lambda s=scheme, st=style, n=name, r=role, c=change, f=fault: quantised(
                        family, s, st, (n, r, c), harmless_is_no_fault=f in ("zero_point", "stale_scale",
                                                                             "saturated_outliers")))


def show(kind, name, text):
    if args.show:
        print(f"  {kind:8} {name}: {text}")


def words(suspects):
    return "; ".join(f"{s['layer']} {s['tensor']} {s['pattern']}: {s['text']}" for s in suspects) or "nothing"


clean = accused = planted = named = alone = 0
by_fault = collections.defaultdict(lambda: [0, 0])
for family in models.FAMILIES[args.half]:
    if args.family and family != args.family:
        continue
    os.makedirs(os.path.join(args.folder, args.half), exist_ok=True)
    golden = {}
    for dtype in (torch.float32, torch.bfloat16):
        golden[dtype] = folder(family, "golden", str(dtype)[6:])
        recorded(golden[dtype], lambda d=dtype: models.build(args.half, family, d))
    for name, make in correct_runs(family):
        path = folder(family, "correct", name)
        if not recorded(path, make):
            continue
        result = compare(path, golden[torch.bfloat16 if name.endswith("bf16") else torch.float32])
        clean += 1
        bad = result is None or bool(result["suspects"])
        accused += bad
        if bad:
            show("accused", path, words(result["suspects"]) if result else "")
        elif result["summary"]["quantised"] == 0:
            show("note", path, "no quantised tensor was found")
    for fault, role, layer, name, make in planted_runs(family):
        path = folder(family, name)
        if not recorded(path, make):
            continue
        result = compare(path, golden[torch.float32])
        suspects = result["suspects"] if result else []
        hit = [s for s in suspects if s["pattern"] == fault and s["layer"] == layer and s["tensor"] == role]
        planted += 1
        by_fault[fault][0] += 1
        named += bool(hit)
        by_fault[fault][1] += bool(hit)
        alone += bool(hit) and len(suspects) == 1
        if not hit or len(suspects) != 1:
            show("missed" if not hit else "more", path, f"{fault} of {layer} {role}: {words(suspects)}")
print(f"{args.half} half: {clean} correct runs, {accused} accused; {planted} planted faults, {named} named and "
      f"placed ({100 * named / max(planted, 1):.1f} %), {alone} of them as the only suspect")
for fault, (all_of, found) in sorted(by_fault.items()):
    print(f"  {fault}: {found} of {all_of}")
sys.exit(accused != 0)
