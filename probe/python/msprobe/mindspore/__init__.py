# SPDX-License-Identifier: MIT
"""Dumps of a MindSpore training run in PyNative mode: the names of the official tool.

    from msprobe.mindspore import PrecisionDebugger, seed_all

    seed_all()
    debugger = PrecisionDebugger(config_path="config.json")
    debugger.start(net)
    loss, gradients = value_and_grad(batch)
    debugger.stop()
    debugger.step()
"""
from msprobe.mindspore._callbacks import MsprobeInitStep, MsprobeStep
from msprobe.mindspore._debugger import PrecisionDebugger, module_dump, module_dump_end
from msprobe.mindspore._seed import seed_all

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "module_dump",
           "module_dump_end", "seed_all"]
