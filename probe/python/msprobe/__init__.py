# SPDX-License-Identifier: MIT
"""msprobe: dumps of a training run, for finding out why it is wrong.

    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path="config.json")
    for batch in data:
        debugger.start(model)
        ...
        debugger.stop()
        debugger.step()

The work is done in C, in msprobe._probe; see msprobe(1) and msprobe-dump(5).
"""
