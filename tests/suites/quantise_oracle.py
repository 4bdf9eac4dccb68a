# SPDX-License-Identifier: MIT
"""Number formats beside torch's own types, torchao's reference functions, and a table of all values.

    quantise_oracle.py BUILD

Parts whose package is missing are left out with a line.
"""
import subprocess
import sys

import numpy as np
import torch

TOOL = sys.argv[1] + "/tests/tool_quantise"
failed = False


def report(good, text):
    global failed
    print(("ok " if good else "FAIL ") + text)
    failed |= not good


def call(*args, data):
    return subprocess.run([TOOL, *map(str, args)], input=data.tobytes(), capture_output=True, check=True)


def encode(number, values, how="saturates"):
    return np.frombuffer(call("encode", number, how, data=values).stdout, np.uint8)


def inputs():
    """All bfloat16 and float16, and float32 of every exponent and near every half."""
    every = np.arange(1 << 16, dtype=np.uint32)
    bf16 = (every << 16).view(np.float32)
    f16 = every.astype(np.uint16).view(np.float16).astype(np.float32)
    drawn = np.random.default_rng(0).integers(0, 1 << 32, 4_000_000, dtype=np.uint64)
    f32 = drawn.astype(np.uint32).view(np.float32)
    small = np.random.default_rng(1).normal(size=2_000_000).astype(np.float32) * 30
    near = np.nextafter(bf16, np.float32(np.inf)), np.nextafter(bf16, np.float32(-np.inf))
    return np.concatenate([bf16, f16, f32, small, *near])


# ---- torch's types -----------------------------------------------------------------------


def check_torch_types(values):
    types = {"e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz",
             "e5m2fnuz": "float8_e5m2fnuz"}
    for number, name in types.items():
        dtype = getattr(torch, name, None)
        if dtype is None:
            print(f"skip {name}: torch {torch.__version__} has none")
            continue
        most = torch.finfo(dtype).max
        clamped = torch.from_numpy(values).clamp(-most, most)
        want = clamped.to(dtype).view(torch.uint8).numpy()
        got = encode(number, values)
        nan = np.isnan(values)
        wrong = int((want != got)[~nan].sum())
        decoded = np.frombuffer(call("decode", number, data=np.arange(256, dtype=np.uint8)).stdout,
                                np.float32)
        all_codes = torch.arange(256, dtype=torch.uint8).view(dtype).float().numpy()
        same = np.array_equal(decoded, all_codes, equal_nan=True)
        is_nan = np.isnan(all_codes[got[nan]]).all()
        report(wrong == 0 and same and is_nan,
               f"{name}: {wrong} of {len(values)} codes differ from torch, values of codes equal: {same}")


# ---- a table of all values, searched for the nearest ------------------------------------------


def values_of(exponent_bits, fraction_bits):
    bias = 1 if exponent_bits == 2 else 3
    out = []
    for code in range(1 << (exponent_bits + fraction_bits)):
        e, m = code >> fraction_bits, code & ((1 << fraction_bits) - 1)
        out.append(m * 2.0 ** (1 - bias - fraction_bits) if e == 0
                   else (1 + m / (1 << fraction_bits)) * 2.0 ** (e - bias))
    return np.array(out)


def check_small_types(values):
    finite = values[np.isfinite(values)][::3]
    for number, bits in {"e2m1": (2, 1), "e2m3": (2, 3), "e3m2": (3, 2)}.items():
        table = values_of(*bits)
        magnitude = np.minimum(np.abs(finite.astype(np.float64)), table[-1])
        above = np.searchsorted(table, magnitude).clip(1, len(table) - 1)
        low, high = table[above - 1], table[above]
        up = (magnitude - low > high - magnitude) | ((magnitude - low == high - magnitude) &
                                                     (above % 2 == 0))
        code = np.where(up, above, above - 1) | (np.signbit(finite) << sum(bits))
        wrong = int((code != encode(number, finite)).sum())
        report(wrong == 0, f"{number}: {wrong} of {len(finite)} codes differ from the nearest of the table")


# ---- torchao -----------------------------------------------------------------------------


def run_tensor(name, x, *more):
    done = call("tensor", name, *x.shape, *more, data=x.numpy())
    figures = [float(v) for v in done.stderr.split()]
    return torch.from_numpy(np.frombuffer(done.stdout, np.float32).reshape(x.shape).copy()), figures


def tensors():
    torch.manual_seed(0)
    yield "normal", torch.randn(64, 256)
    yield "small", torch.randn(32, 128) * 1e-6
    yield "outliers", torch.randn(64, 256) * (1 + 100 * (torch.rand(64, 256) > 0.995))
    yield "wide", torch.exp(torch.randn(64, 256) * 6) * torch.randn(64, 256).sign()
    yield "zeros", torch.cat([torch.zeros(8, 64), torch.randn(8, 64)])
    yield "uniform", torch.rand(48, 128)


def ulp_apart(a, b):
    ulp = torch.from_numpy(np.spacing(np.maximum(np.abs(a.numpy()), np.abs(b.numpy()))))
    return float(((a - b).abs() / ulp).max()) if a.numel() else 0.0


def check_mx():
    from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
    from torchao.prototype.mx_formats.constants import DTYPE_FP6_E2M3, DTYPE_FP6_E3M2
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    elements = {"mxfp8": torch.float8_e4m3fn, "mxfp8_e5m2": torch.float8_e5m2, "mxfp6": DTYPE_FP6_E2M3,
                "mxfp6_e3m2": DTYPE_FP6_E3M2, "mxfp4": torch.float4_e2m1fn_x2}
    modes = [Mode.FLOOR, Mode.CEIL, Mode.EVEN, Mode.RCEIL]
    for name, element in elements.items():
        worst = 0.0
        for block in (32, 16):
            for number, mode in enumerate(modes):
                for _, x in tensors():
                    try:
                        want = MXTensor.to_mx(x, element, block, scaling_mode=mode).dequantize(torch.float32)
                    except (AssertionError, NotImplementedError, TypeError) as why:
                        print(f"skip {name} {mode}: {why}")
                        break
                    got, _ = run_tensor(name, x, block, number)
                    worst = max(worst, ulp_apart(got, want))
        report(worst <= 1, f"{name}: at most {worst} ULP from torchao, 4 rules of scales, blocks of 32 and 16")


def check_nvfp4():
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
    worst = 0.0
    for _, x in tensors():
        scale = per_tensor_amax_to_scale(x.abs().max())
        want = NVFP4Tensor.to_nvfp4(x, per_tensor_scale=scale).dequantize(torch.float32)
        got, _ = run_tensor("nvfp4", x)
        worst = max(worst, ulp_apart(got, want))
    report(worst <= 1, f"nvfp4: at most {worst} ULP from torchao")


def check_affine():
    from torchao.quantization.quant_primitives import (MappingType, _choose_scale_float8, _dequantize_affine_float8,
                                                       _quantize_affine_float8, choose_qparams_affine,
                                                       dequantize_affine, quantize_affine)
    limits = {"int8": (-128, 127), "int4": (-8, 7)}
    for name in ("int8", "uint8", "int4", "uint4"):
        low, high = limits[name.replace("u", "")]
        mapping = MappingType.ASYMMETRIC if name[0] == "u" else MappingType.SYMMETRIC
        worst = 0.0
        for _, x in tensors():
            for sharing, block in ((x.shape[1] * x.shape[0], tuple(x.shape)), ("channel", (1, x.shape[1])),
                                   (32, (1, 32))):
                scale, zero = choose_qparams_affine(x, mapping, block, torch.int8, low, high)
                codes = quantize_affine(x, block, scale, zero, torch.int8, low, high)
                want = dequantize_affine(codes, block, scale, zero, torch.int8, low, high)
                flat = x.reshape(1, -1) if isinstance(sharing, int) and sharing > 32 else x
                got, _ = run_tensor(name, flat, sharing)
                worst = max(worst, ulp_apart(got.reshape(x.shape), want))
        report(worst <= 1, f"{name}: at most {worst} ULP from torchao, by tensor, channel and group")
    for name, dtype in (("fp8", torch.float8_e4m3fn), ("fp8_e5m2", torch.float8_e5m2)):
        worst = 0.0
        for _, x in tensors():
            for sharing, block in ((None, tuple(x.shape)), ("channel", (1, x.shape[1])), (64, (1, 64))):
                scale = _choose_scale_float8(x, block, dtype)
                if (scale == 0).any():
                    continue
                want = _dequantize_affine_float8(_quantize_affine_float8(x, scale, dtype), scale)
                got, _ = run_tensor(name, x, *([] if sharing is None else [sharing]))
                worst = max(worst, ulp_apart(got, want))
        report(worst <= 1, f"{name}: at most {worst} ULP from torchao, by tensor, channel and group")


def check_figures():
    try:
        from torchao.quantization.utils import compute_error
    except ImportError:
        def compute_error(x, y):
            return 20 * torch.log10(x.norm() / (x - y).norm())
    worst, counts = 0.0, True
    for _, x in tensors():
        got, (signal, noise, underflow, _, _, low, high) = run_tensor("mxfp4", x)
        want = float(compute_error(x.double(), got.double()))
        worst = max(worst, abs(10 * np.log10(signal / noise) - want) / np.spacing(np.float32(abs(want))))
        mse = float(torch.nn.functional.mse_loss(got.double(), x.double())) * x.numel()
        worst = max(worst, abs(noise - mse) / np.spacing(np.float32(mse)))
        counts = counts and underflow == int(((x != 0) & (got == 0)).sum()) and low <= high
    report(counts, "counts of underflow are torch's")
    report(worst <= 1, f"SQNR and mse: at most {worst:.2g} ULP of float32 from torch")


values = inputs()
check_torch_types(values)
check_small_types(values)
check_figures()
try:
    import torchao  # noqa: F401
except ImportError:
    print("skip torchao: not installed")
else:
    check_mx()
    check_nvfp4()
    check_affine()
sys.exit(failed)
