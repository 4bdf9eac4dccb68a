# SPDX-License-Identifier: MIT
"""Dumps of a MindSpore training run: the names of the official tool.

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
from msprobe.mindspore._graph_save import save, save_grad, step
from msprobe.mindspore._monitor import TrainerMon
from msprobe.mindspore._seed import seed_all

__all__ = ["MsprobeInitStep", "MsprobeStep", "PrecisionDebugger", "TrainerMon", "module_dump",
           "module_dump_end", "save", "save_grad", "seed_all", "step"]
