# SPDX-License-Identifier: MIT
"""Records the switches and seeds of PyTorch in a run: OUT/settings_python.json, beside the settings.json of
`msprobe run`. They are read when the program ends, as a program sets them after the import."""
import atexit
import json
import os


def _speaks():
    """Tells whether this is rank 0, or a program without ranks."""
    for name in ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK_ID"):
        if name in os.environ:
            return os.environ[name] == "0"
    return True


def _read(torch):
    """Switches by name; what this version does not have is left out."""
    cudnn, cuda = torch.backends.cudnn, torch.backends.cuda
    for name, read in (
            ("version", lambda: torch.__version__),
            ("initial_seed", torch.initial_seed),
            ("deterministic_algorithms", torch.are_deterministic_algorithms_enabled),
            ("default_dtype", torch.get_default_dtype),
            ("num_threads", torch.get_num_threads),
            ("float32_matmul_precision", torch.get_float32_matmul_precision),
            ("cudnn.deterministic", lambda: cudnn.deterministic),
            ("cudnn.benchmark", lambda: cudnn.benchmark),
            ("cudnn.allow_tf32", lambda: cudnn.allow_tf32),
            ("matmul.allow_tf32", lambda: cuda.matmul.allow_tf32),
            ("world_size", lambda: int(os.environ.get("WORLD_SIZE", "1")))):
        try:
            value = read()
        except Exception:
            continue
        yield name, value if isinstance(value, (bool, int, str)) else str(value)


def _write(torch, out):
    try:
        path = os.path.join(out, "settings_python.json")
        with open(path + ".tmp", "w", encoding="utf-8") as f:
            json.dump({"torch": dict(_read(torch))}, f, indent=2)
        os.replace(path + ".tmp", path)
    except Exception:
        pass  # the run has no such file then


def watch(torch):
    out = os.environ.get("MSTX_OUT")
    if out and _speaks():
        pid = os.getpid()
        atexit.register(lambda: _write(torch, out) if os.getpid() == pid else None)
