# SPDX-License-Identifier: MIT
"""Settings of torchair, the graph compiler of torch_npu, that have it dump its graphs.

    config = set_fx_dump_config("dump")
    model = torch.compile(model, backend=torchair.get_npu_backend(compiler_config=config))
"""
import os

from msprobe import _say

_FX_FOLDER, _GE_FOLDER = "msprobe_fx_dump", "msprobe_ge_dump"


def _prepared(dump_path, folder):
    """Makes the folder of a dump; returns its path."""
    path = os.path.realpath(os.path.join(dump_path, folder))
    os.makedirs(path, exist_ok=True)
    if not os.access(path, os.R_OK | os.W_OK):
        raise PermissionError(f"{path}: may not be read and written")
    if os.listdir(path):
        _say.say(f"{path} is not empty: its files and those of this run will be mixed")
    return path


def _config(compiler_config):
    """Returns the configuration to set; without one, a new one."""
    try:
        import torch_npu  # noqa: F401
        from torchair.configs.compiler_config import CompilerConfig
    except ImportError as why:
        raise ModuleNotFoundError("set_fx_dump_config and set_ge_dump_config need torch_npu with torchair") \
            from why
    if compiler_config is None:
        return CompilerConfig()
    if not isinstance(compiler_config, CompilerConfig):
        raise TypeError(f"compiler_config: expected a CompilerConfig, found {type(compiler_config).__name__}")
    return compiler_config


def _name_filter(words):
    """Returns a filter of torchair for operators whose name has one of the words, in any case."""
    words = [word.lower() for word in words]
    return lambda op: op if any(word in op.name.lower() for word in words) else None


def set_fx_dump_config(dump_path: str = "", op_list: list = None, compiler_config=None):
    """Have torchair dump the graph of FX to dump_path/msprobe_fx_dump.

    op_list: only operators whose name has one of these texts; compiler_config: the CompilerConfig to set.
    Returns the CompilerConfig."""
    config = _config(compiler_config)
    if op_list and not (isinstance(op_list, list) and all(isinstance(word, str) for word in op_list)):
        raise TypeError("op_list: expected a list of texts")
    path = _prepared(dump_path, _FX_FOLDER)
    if op_list:
        config.debug.data_dump.filter = _name_filter(op_list)
    config.debug.data_dump.type = "npy"
    if hasattr(config.debug.data_dump, "path"):
        config.debug.data_dump.path = path
    return config


def set_ge_dump_config(dump_path: str = "", dump_mode: str = "all", fusion_switch_file: str = None,
                       dump_token: list = None, dump_layer: list = None, compiler_config=None):
    """Have torchair dump the graph of GE to dump_path/msprobe_ge_dump.

    dump_mode: input, output or all; fusion_switch_file: which operators are fused; dump_token: numbers of
    tokens; dump_layer: names of layers; compiler_config: the CompilerConfig to set.
    Returns the CompilerConfig."""
    config = _config(compiler_config)
    if fusion_switch_file is not None and not os.path.exists(fusion_switch_file):
        raise FileNotFoundError(f"fusion_switch_file: {fusion_switch_file}: no such file")
    path = _prepared(dump_path, _GE_FOLDER)
    graph = config.debug.graph_dump
    graph.type = "txt"
    setattr(graph, "_path" if hasattr(graph, "_path") else "path", path)
    if fusion_switch_file is not None:
        config.fusion_config.fusion_switch_file = fusion_switch_file
    dump = config.dump_config
    dump.enable_dump, dump.dump_mode, dump.dump_path = True, dump_mode, path
    if dump_token is not None:
        dump.dump_step = "|".join(map(str, dump_token))
    if dump_layer is not None:
        dump.dump_layer = " ".join(dump_layer)
    return config
