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

In a notebook, msprobe.show(path) shows the findings of a run or a dump, with a link to its page.
"""


def show(path, golden=None, **how):
    """Shows a run, a dump or a comparison; see msprobe/_show.py for its arguments."""
    from msprobe._show import show as show_path

    return show_path(path, golden, **how)
