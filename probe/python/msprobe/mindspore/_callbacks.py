# SPDX-License-Identifier: MIT
"""Steps of mindspore.train.Model, which has a loop of its own."""
import mindspore


class MsprobeStep(mindspore.train.Callback):
    """Starts and ends each step: Model.train(..., callbacks=MsprobeStep(debugger))."""

    def __init__(self, debugger):
        super().__init__()
        self._debugger = debugger

    def on_train_step_begin(self, run_context):
        """The network is the program's, not what the loop has made around it."""
        self._debugger.start(getattr(run_context.original_args(), "network", None))

    def on_train_step_end(self, run_context):
        """Whatever comes after it is no part of the step."""
        self._debugger.stop()
        self._debugger.step()


class MsprobeInitStep(mindspore.train.Callback):
    """Counts steps from where a run that resumes begins."""

    def on_train_begin(self, run_context):
        """Before the first step."""
        from msprobe.mindspore._debugger import PrecisionDebugger
        PrecisionDebugger.set_init_step(int(run_context.original_args().cur_step_num))

