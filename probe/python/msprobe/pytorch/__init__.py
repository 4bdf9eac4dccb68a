# SPDX-License-Identifier: MIT
"""Dumps of a PyTorch training run: the names of the official tool.

    from msprobe.pytorch import PrecisionDebugger, seed_all

    seed_all()
    debugger = PrecisionDebugger(config_path="config.json")
    debugger.start(model)
    loss = model(batch); loss.backward()
    debugger.stop()
    debugger.step()
"""
from msprobe.pytorch._debugger import PrecisionDebugger, module_dump, module_dump_end
from msprobe.pytorch._monitor import TrainerMon
from msprobe.pytorch._random import random_save
from msprobe.pytorch._seed import seed_all
from msprobe.pytorch._torchair import set_fx_dump_config, set_ge_dump_config

__all__ = ["PrecisionDebugger", "TrainerMon", "module_dump", "module_dump_end", "random_save", "seed_all",
           "set_fx_dump_config", "set_ge_dump_config"]
