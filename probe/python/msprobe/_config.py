# SPDX-License-Identifier: MIT
"""The settings of a debugger as attributes, by the names of the official tool: debugger.config.level.

Programs read them (vLLM on Ascend asks for config.level); what is dumped is decided by the dumper, which
reads the file itself and checks it.
"""
import json


class DebuggerConfig:
    """Settings as they were given, with the official defaults."""

    def __init__(self, text, given):
        try:
            file = json.loads(text)
        except ValueError:  # with comments, or damaged: the dumper has reported it
            file = {}
        file = file if isinstance(file, dict) else {}
        self.task = given.get("task") or file.get("task") or "statistics"
        self.load = file["load"] if isinstance(file.get("load"), dict) else None
        of_task = file.get(self.task) if isinstance(self.task, str) else None  # the dumper refuses others
        of_task = of_task if isinstance(of_task, dict) else {}
        self.dump_path = given.get("dump_path") or file.get("dump_path")
        self.level = given.get("level") or file.get("level") or "L1"
        self.rank = _numbers(file.get("rank"))
        self.step = _numbers(given.get("step") or file.get("step"))
        self.framework = given.get("framework")
        enable = file.get("dump_enable")
        self.dump_enable = enable if isinstance(enable, bool) else None
        self.extra_info = file.get("extra_info", True)
        self.async_dump = bool(file.get("async_dump"))
        self.precision = file.get("precision") or "low"
        self.risk_level = file.get("risk_level", "FOCUS") or "ALL"
        self.scope = of_task.get("scope") or []
        self.list = of_task.get("list") or []
        self.data_mode = of_task.get("data_mode") or ["all"]
        self.summary_mode = of_task.get("summary_mode") or "statistics"
        self.slice_info = of_task.get("slice") or []
        self.request_id = of_task.get("request_id") or None
        self.diff_nums = of_task.get("diff_nums") or 1
        self.bench_path = of_task.get("bench_path")
        self.tensor_list = of_task.get("tensor_list") or []
        if self.task == "structure" and self.level not in ("L0", "mix"):
            self.level = "mix"

    def __repr__(self):
        return f"DebuggerConfig({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def _numbers(value):
    """A list of numbers; a text "3-5" in it stands for 3, 4 and 5."""
    out = []
    for v in value if isinstance(value, list) else []:
        first, dash, last = v.partition("-") if isinstance(v, str) else (v, "", "")
        if dash and first.isdigit() and last.isdigit() and int(last) - int(first) < 1000000:
            out.extend(range(int(first), int(last) + 1))
        elif not isinstance(v, bool) and isinstance(v, int):
            out.append(v)
    return sorted(set(out))
