# SPDX-License-Identifier: MIT
"""torch and NumPy write tensors, tool_tensor reads them; tool_tensor writes, they read.
Every value is compared by its bits, every statistic with its definition."""
import os
import subprocess
import sys
import zlib

import numpy as np
import torch

TOOL, DIR, GOLDEN = sys.argv[1:]
torch.manual_seed(1)


def check(name, wrong):
    print("ok " + name if not wrong else "not ok %s\n  %s" % (name, wrong))


def raw(x):
    """A tensor as a C-order array of its own bits; NumPy has no bfloat16."""
    x = x.detach().contiguous()
    return x.view(torch.int16).numpy() if x.dtype == torch.bfloat16 else x.numpy()


def doubles(x):
    if isinstance(x, np.ndarray):
        return np.abs(x.astype(np.complex128)) if x.dtype.kind == "c" else x.astype(np.float64)
    x = x.detach()
    return torch.abs(x.to(torch.complex128)).numpy() if x.is_complex() else x.double().numpy()


def wrong_statistics(got, v):
    number = v[~np.isnan(v)]
    finite = number[np.isfinite(number)]
    want = {"nan": np.isnan(v).sum(), "pinf": (v == np.inf).sum(), "ninf": (v == -np.inf).sum(),
            "zero": (v == 0).sum()}
    for key, count in want.items():
        if int(got[key]) != count:
            return "%s is %s, not %d" % (key, got[key], count)
    least, most = (number.min(), number.max()) if number.size else (np.inf, -np.inf)
    tolerance = 0 if got["dtype"] != "complex64" and got["dtype"] != "complex128" else 1e-15
    if not np.isclose(float.fromhex(got["min"]), least, tolerance, 0):
        return "min is %s, not %r" % (got["min"], least)
    if not np.isclose(float.fromhex(got["max"]), most, tolerance, 0):
        return "max is %s, not %r" % (got["max"], most)
    if finite.size == number.size:
        if abs(float.fromhex(got["sum"]) - finite.sum()) > 1e-12 * np.abs(finite).sum():
            return "sum is %s, not %r" % (got["sum"], finite.sum())
        if abs(float.fromhex(got["sumsq"]) - (finite * finite).sum()) > 1e-12 * (finite * finite).sum():
            return "sumsq is %s" % got["sumsq"]
    return ""


def wrong_in(line, x, shape, dtype):
    if line.startswith("error"):
        return line
    got = dict(field.split("=", 1) for field in line.split(" "))
    bits = x if isinstance(x, np.ndarray) else raw(x)
    if got["dtype"] != dtype:
        return "dtype is %s, not %s" % (got["dtype"], dtype)
    if got["shape"] != ",".join(map(str, shape)):
        return "shape is %s, not %s" % (got["shape"], shape)
    crc = "%08x" % zlib.crc32(np.ascontiguousarray(bits).tobytes())
    if got["crc"] != crc:
        return "bytes have CRC %s, not %s" % (got["crc"], crc)
    return wrong_statistics(got, doubles(x))


def read(paths):
    lines = []
    for at in range(0, len(paths), 500):
        out = subprocess.run([TOOL, *paths[at:at + 500]], stdout=subprocess.PIPE, check=True)
        lines += out.stdout.decode().splitlines()
    return lines


def torch_values(dtype, shape):
    if dtype == torch.bool:
        return torch.rand(shape) > 0.5
    if dtype.is_complex:
        return torch.randn(shape, dtype=dtype)
    if dtype.is_floating_point:
        x = torch.randn(shape, dtype=torch.float64)
        if x.numel() > 20:
            x.view(-1)[::7] = 0
            x.view(-1)[3], x.view(-1)[5], x.view(-1)[11] = float("nan"), float("inf"), 1e-42
        return x.to(dtype)
    low = 0 if dtype == torch.uint8 else -100
    return torch.randint(low, 100, shape, dtype=dtype)


def torch_cases():
    for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                  torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64,
                  torch.complex128):
        name = str(dtype)[6:]
        x = torch_values(dtype, (6, 5, 8))
        yield name + ".plain", x
        yield name + ".large", torch_values(dtype, (3, 5000))
        yield name + ".scalar", torch_values(dtype, ())
        yield name + ".empty", torch_values(dtype, (0, 3))
        yield name + ".sliced", x[1::2, :, 2:7]
        yield name + ".stepped", x[:, 1, ::3]
        yield name + ".transposed", x.permute(2, 0, 1)
        yield name + ".expanded", x[:1, :, :1].expand(4, 5, 3)
        yield name + ".diagonal", x[:, :, 0].diagonal()
    yield "parameter", torch.nn.Parameter(torch.randn(3, 4))
    yield "requires_grad", torch.randn(3, 4, requires_grad=True)
    yield "six_dimensions", torch.randn(2, 1, 3, 1, 2, 2)
    yield "three_hundred", torch.zeros(300, 70000 // 300, dtype=torch.int8)


def read_torch():
    cases = []
    for name, x in torch_cases():
        for form in ("zip", "legacy"):
            path = "%s/%s.%s.pt" % (DIR, name, form)
            torch.save(x, path, _use_new_zipfile_serialization=form == "zip")
            cases.append((name + "." + form, path, x))
    for (name, path, x), line in zip(cases, read([c[1] for c in cases])):
        check("read torch " + name, wrong_in(line, x, x.shape, str(x.dtype)[6:]))
    return [c for c in cases if c[1].endswith(".zip.pt")]


def numpy_cases():
    rng = np.random.default_rng(1)
    for code in ("b1", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16"):
        v = rng.normal(size=(4, 3, 7)) * 50
        v = np.abs(v) if code[0] == "u" else v
        for order in "<>":
            x = v.astype(order + code)
            sign = "little" if order == "<" else "big"
            yield "%s.%s" % (code, sign), x
            yield "%s.%s.fortran" % (code, sign), np.asfortranarray(x)
        yield code + ".scalar", np.array(v[0, 0, 0].astype(code))
        yield code + ".empty", np.zeros((2, 0), code)


def read_numpy():
    cases = []
    for name, x in numpy_cases():
        path = "%s/%s.npy" % (DIR, name)
        np.save(path, x)
        cases.append((name, path, x))
    for (name, path, x), line in zip(cases, read([c[1] for c in cases])):
        native = x.astype(x.dtype.newbyteorder("="))
        check("read numpy " + name, wrong_in(line, native, x.shape, x.dtype.name))
    return cases


def same_bits(got, want):
    if got.dtype != want.dtype or got.shape != want.shape:
        return "%s %s, not %s %s" % (got.dtype, got.shape, want.dtype, want.shape)
    equal = np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()
    return "" if equal else "other values"


def write(kind, path):
    out = path + ".out." + kind
    done = subprocess.run([TOOL, kind, path, out], stderr=subprocess.PIPE)
    return out, done.stderr.decode().strip()


def write_back(torch_files, numpy_files):
    for name, path, x in torch_files:
        out, wrong = write("pt", path)
        if not wrong:
            y = torch.load(out, weights_only=True)
            wrong = same_bits(raw(y), raw(x)) or ("" if y.dtype == x.dtype else str(y.dtype))
        check("torch loads " + name, wrong)
        out, wrong = write("npy", path)
        if not wrong:
            wide = x.float() if x.dtype == torch.bfloat16 else x
            wrong = same_bits(np.load(out, allow_pickle=False), raw(wide))
        check("numpy loads " + name, wrong)
    for name, path, x in numpy_files:
        native = x.astype(x.dtype.newbyteorder("="))
        out, wrong = write("npy", path)
        check("numpy loads " + name, wrong or same_bits(np.load(out, allow_pickle=False), native))
        if x.dtype.name in ("uint16", "uint32", "uint64"):
            continue  # torch has these from 2.3 on
        out, wrong = write("pt", path)
        check("torch loads " + name, wrong or same_bits(torch.load(out).numpy(), native))


def byte_equal(torch_files):
    """For a contiguous tensor our file is torch's own, under the same name."""
    os.makedirs(DIR + "/same", exist_ok=True)
    wrong = ""
    for name, path, x in torch_files:
        out = "%s/same/%s" % (DIR, os.path.basename(path))
        subprocess.run([TOOL, "pt", path, out], check=True)
        if x.is_contiguous() and not x.requires_grad and open(out, "rb").read() != open(path, "rb").read():
            wrong += " " + name
    check("files equal torch's", wrong)


def read_golden():
    if not os.path.isdir(GOLDEN):
        print("skip golden tensors: no %s" % GOLDEN)
        return
    paths = sorted(os.path.join(at, f) for at, _, files in os.walk(GOLDEN) for f in files
                   if f.endswith((".pt", ".npy")))
    wrong = []
    for path, line in zip(paths, read(paths)):
        try:
            x = np.load(path) if path.endswith(".npy") else torch.load(path)
        except Exception:
            wrong += [] if line.startswith("error") else [path + ": accepted"]
            continue
        problem = wrong_in(line, x, x.shape, str(x.dtype).replace("torch.", ""))
        wrong += [path + ": " + problem] if problem else []
    check("%d golden tensors" % len(paths), "; ".join(wrong[:5]))


def refuse():
    torch.save({"w": torch.ones(2)}, DIR + "/state.pt")
    torch.save(torch.nn.Linear(2, 2).state_dict(), DIR + "/linear.pt")
    torch.save([torch.ones(2)], DIR + "/list.pt")
    torch.save(torch.nn.Linear(2, 2), DIR + "/module.pt")
    torch.save(torch.ones(2, dtype=torch.complex64).conj(), DIR + "/conj.pt")
    torch.save(torch.ones(2).to_sparse(), DIR + "/sparse.pt")
    torch.jit.script(torch.nn.Linear(2, 2)).save(DIR + "/script.pt")
    np.save(DIR + "/object.npy", np.array([None, 1]), allow_pickle=True)
    np.save(DIR + "/text.npy", np.array(["a", "bc"]))
    np.save(DIR + "/struct.npy", np.zeros(2, [("a", "<f4")]))
    cases = {"state.pt": "a checkpoint", "linear.pt": "a checkpoint", "list.pt": "a checkpoint",
             "module.pt": "unsupported object", "sparse.pt": "unsupported object",
             "script.pt": "TorchScript", "object.npy": "Python objects", "text.npy": "text",
             "struct.npy": "structured"}
    for (name, says), line in zip(cases.items(), read([DIR + "/" + n for n in cases])):
        check("refuse " + name, "" if line.startswith("error") and says in line else line)
    line = read([DIR + "/conj.pt"])[0]
    x = torch.load(DIR + "/conj.pt")
    check("conjugate values", wrong_in(line, x.resolve_conj(), x.shape, "complex64"))


from_torch = read_torch()
from_numpy = read_numpy()
write_back(from_torch, from_numpy)
byte_equal(from_torch)
refuse()
read_golden()
