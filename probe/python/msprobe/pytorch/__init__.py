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
from msprobe.pytorch._modules import VERSION
from msprobe.pytorch._monitor import TrainerMon
from msprobe.pytorch._random import random_save
from msprobe.pytorch._seed import seed_all
from msprobe.pytorch._torchair import set_fx_dump_config, set_ge_dump_config

torch_version_above_or_equal_2 = VERSION >= (2, 0)
# Dumps of graphs that an Ascend device captured; None without one, as in the official package.
acl_save = None
AclGraphDumper = None

__all__ = ["AclGraphDumper", "PrecisionDebugger", "TrainerMon", "acl_save", "module_dump", "module_dump_end",
           "random_save", "seed_all", "set_fx_dump_config", "set_ge_dump_config", "torch_version_above_or_equal_2"]
