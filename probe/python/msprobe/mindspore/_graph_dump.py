# SPDX-License-Identifier: MIT
"""Dumps of compiled graphs, which the framework makes itself.

A file named by MINDSPORE_DUMP_CONFIG tells the framework what to write: every kernel's inputs and
outputs, below rank_R/NET/GRAPH/ITERATION of the dump's folder. The framework reads the variable
when it compiles a graph, so the variable is set before the first one. The file equals that of the
official tool, except on a CPU: there tensors are saved, as statistics of kernels are not
available.
"""
import json
import os

import mindspore

from msprobe import _probe

LEVEL = "L2"
_NAME = "kernel_kbyk_dump.json"
_CATEGORIES = ["max", "min", "avg", "l2norm"]


def read_config(path):
    """Returns the parsed config.json; {} when missing or not JSON, which is reported elsewhere."""
    if path is None:
        return {}
    try:
        with open(path, encoding="utf-8") as f:
            known = json.load(f)
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def is_asked_for(config_path, level=None):
    """Tells whether the dump is one of kernels."""
    return (level or read_config(config_path).get("level")) == LEVEL


def _is_device_cpu():
    return mindspore.get_context("device_target") == "CPU"


def _list_of(known, key):
    value = known.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{key}: expected a list, found {value!r}")
    return value


def _iterations(steps):
    """Writes numbers, and ranges such as "3-5", in the framework's syntax."""
    return "|".join(str(step) for step in steps) or "all"


def _categories(mode):
    if mode in (None, "statistics"):
        return _CATEGORIES
    modes = mode if isinstance(mode, list) else [mode]
    return ["avg" if m == "mean" else "hash:md5" if m == "md5" else m for m in modes]


def _in_and_out(modes):
    """Encodes the tensors to save: 0 inputs and outputs, 1 inputs, 2 outputs."""
    return {("input",): 1, ("output",): 2}.get(tuple(modes), 0)


def settings(known, task, folder, steps):
    """Returns the framework's configuration for a config.json."""
    of_task = known.get(task) if isinstance(known.get(task), dict) else {}
    kernels = _list_of(of_task, "list")
    saves_tensors = task == "tensor" or _is_device_cpu()
    return {
        "common_dump_settings": {
            "op_debug_mode": 0, "dump_mode": 1 if kernels else 0, "path": folder, "net_name": "Net",
            "iteration": _iterations(steps), "saved_data": "tensor" if saves_tensors else "statistic",
            "input_output": _in_and_out(_list_of(of_task, "data_mode")), "kernels": kernels,
            "support_device": _list_of(known, "rank") or list(range(8)),
            "statistic_category": _categories(of_task.get("summary_mode"))},
        "e2e_dump_settings": {"enable": not known.get("async_dump", False), "trans_flag": True}}


def drive(config_path, task=None, dump_path=None, step=None):
    """Makes the framework dump graphs from now on; returns the folder."""
    known = read_config(config_path)
    folder = dump_path or known.get("dump_path")
    if not isinstance(folder, (str, os.PathLike)):
        raise ValueError("dump_path: level L2 needs a folder")
    folder = os.path.abspath(os.fspath(folder))
    what = settings(known, task or known.get("task", "statistics"), folder,
                    _list_of(known, "step") if step is None else step)
    os.makedirs(folder, exist_ok=True)
    file = os.path.join(folder, _NAME)
    with open(file + ".part", "w", encoding="utf-8") as f:
        json.dump(what, f, indent=4)
    os.replace(file + ".part", file)
    os.environ["MINDSPORE_DUMP_CONFIG"] = file
    os.environ.pop("MS_ACL_DUMP_CFG_PATH", None)
    return folder


def drive_or_note(*args):
    """Calls drive() inside a training; an error is noted and the training goes on."""
    try:
        return drive(*args)
    except (OSError, ValueError) as why:
        _probe.note(f"graphs are not dumped: {why}")
        return None
