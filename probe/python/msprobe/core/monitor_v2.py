# SPDX-License-Identifier: MIT
"""The official monitor of the second generation, for PyTorch.

    from msprobe.core.monitor_v2 import TrainerMonitorV2

    monitor = TrainerMonitorV2("config.json", fr="pytorch")
    monitor.start(model=model, optimizer=optimizer)
    ...
    monitor.stop()

config.json names the monitors that are wanted: module, weight_grad, optimizer, param. Each writes
output_dir/rank_R/NAME_stepA-B.csv. As with TrainerMon nothing of the program is replaced; see
msprobe/pytorch/_monitor.py."""
import csv
import json
import os
import re

from msprobe import _monitor, _probe

_OPS = ["min", "max", "mean", "norm", "nans"]
_PYTORCH = ("pytorch", "pt", "torch")
_MONITORS = ("module", "weight_grad", "optimizer", "param")


def _whole(config, key, least, otherwise):
    """Returns a whole number of the config; a wrong one is said and replaced, as in the official tool."""
    value = config.get(key)
    if value is None:
        return otherwise
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        _monitor.say(f"{key}: expected a whole number from {least} on, found {value!r}; {otherwise} is used")
        return otherwise
    return value


def _ops(config):
    wanted = config.get("ops")
    wanted = [wanted] if isinstance(wanted, str) else wanted
    if not isinstance(wanted, (list, tuple)):
        return list(_OPS)
    for op in wanted:
        if op not in _OPS:
            _monitor.say(f"ops: expected some of {', '.join(_OPS)}, found {op!r}")
    return [op for op in wanted if op in _OPS] or list(_OPS)


class _Rows:
    """The lines of one monitor in a step."""

    def __init__(self, slug, config):
        self.slug, self.config, self.ops = slug, config, _ops(config)
        self.rows, self.fields = [], None

    def put(self, name, scope, tensor, micro_step=None):
        seen = _probe.figures(tensor)
        if seen is None:
            return
        stage = name.partition(":")[0] if ":" in name else ""
        row = {"module_name": name, "scope": scope, "vpp_stage": int(stage) if stage.isdigit() else -1}
        if micro_step is not None:
            row["micro_step"] = micro_step
        row.update((op, seen[_OPS.index(op)]) for op in self.ops)
        self.rows.append(row)

    def write(self, folder, step, first, each):
        if not self.rows:
            return
        start = first + (step - first) // each * each if step >= first else step
        slug = re.sub(r"[^A-Za-z0-9_.-]+", "_", self.slug).strip("._") or "monitor"
        path = os.path.join(folder, f"{slug}_step{start}-{start + each - 1}.csv")
        if self.fields is None:
            has_micro = any("micro_step" in row for row in self.rows)
            self.fields = ["vpp_stage", "step", "module_name", "scope"] + ["micro_step"] * has_micro + self.ops
        is_new = not os.path.exists(path)
        with open(path, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=self.fields, extrasaction="ignore")
            if is_new:
                writer.writeheader()
            writer.writerows({**row, "step": step} for row in self.rows)


class TrainerMonitorV2:
    """The monitors of a training, and when they write."""

    def __init__(self, config_path, fr=None):
        with open(config_path, encoding="utf-8") as file:
            self.config = json.load(file)
        if not isinstance(self.config, dict):
            raise TypeError(f"{config_path}: expected an object in {{ }}")
        config = self.config
        self.framework = str(fr or config.get("framework", "pytorch")).strip().lower()
        if self.framework not in _PYTORCH:
            raise ValueError(f"framework: expected pytorch, found {self.framework!r}; no other has this monitor yet")
        if str(config.get("format", "csv")).strip().lower() != "csv":
            raise ValueError(f"format: expected csv, found {config['format']!r}")
        from msprobe.pytorch import _monitor_v2
        self.rank = _monitor_v2.rank()
        self.start_step = _whole(config, "start_step", 0, 0)
        self.step_interval = _whole(config, "step_interval", 1, 1)
        self.step_count_per_record = _whole(config, "step_count_per_record", 1, 1)
        self.collect_times = _whole(config, "collect_times", 1, 100_000_000)
        self.stop_step = _whole(config, "stop_step", self.start_step,
                                self.start_step + self.collect_times * self.step_interval)
        self.output_dir = config.get("output_dir", "./")
        self.current_step, self._collected, self._is_over = 0, 0, False
        self._patches = bool(config.get("patch_optimizer_step", False))
        self._optimizer, self._was_said = None, False
        self._folder = os.path.join(self.output_dir, f"rank_{self.rank}")
        os.makedirs(self._folder, exist_ok=True)
        self._rows = self._make_rows()
        self._hooks = _monitor_v2.Hooks(self, self._rows)

    def _make_rows(self):
        wanted = self.config.get("monitors", {})
        found = {}
        for name, config in wanted.items() if isinstance(wanted, dict) else ():
            if not isinstance(config, dict) or not config.get("enabled", name == "module"):
                continue
            if name not in _MONITORS:
                _monitor.say(f"monitors: {name}: expected one of {', '.join(_MONITORS)}; it is left out")
                continue
            found[name] = _Rows(name, config)
        return found

    def _is_target(self):
        ranks = self.config.get("rank", [])
        ranks = [ranks] if isinstance(ranks, int) else ranks
        return not isinstance(ranks, list) or not ranks or self.rank in ranks

    # ---- the official interface -------------------------------------------------

    def start(self, model=None, optimizer=None, **context):
        """Watches a model, or the list of its chunks, and its optimizer. With an optimizer a step ends when it has
        stepped; without one, with step()."""
        if not self._is_target():
            return
        if optimizer is not None:
            self._optimizer = optimizer
            if "patch_optimizer_step" not in self.config:
                self._patches = True
        self._start(model, optimizer, context)

    @_monitor.guarded
    def _start(self, model, optimizer, context):
        self._hooks.put(model, optimizer, context, self._optimizer is not None and self._patches)

    def step(self, from_optimizer=False):
        """Ends a step, and writes it."""
        if not self._is_target():
            return
        if self._patches and self._optimizer is not None and not from_optimizer:
            if not self._was_said:
                self._was_said = True
                _monitor.say("step() does nothing while the optimizer ends the steps; patch_optimizer_step: false "
                             "leaves them to the program")
            return
        self._end_step()

    @_monitor.guarded
    def _end_step(self):
        step, self.current_step = self.current_step, self.current_step + 1
        self._hooks.states()
        if self._is_wanted(step):
            for rows in self._rows.values():
                rows.write(self._folder, step, self.start_step, self.step_count_per_record)
            self._collected += 1
        for rows in self._rows.values():
            rows.rows.clear()

    def _is_wanted(self, step):
        return self._collected < self.collect_times and self.start_step <= step < self.stop_step and \
            (step - self.start_step) % self.step_interval == 0

    def is_due(self):
        """Tells whether the present step is written."""
        return not self._is_over and self._is_wanted(self.current_step)

    def stop(self):
        if self._is_target():
            self._hooks.take()

    def _give_up(self, why):
        self._is_over = True
        _monitor.say(f"{why}; this process is monitored no more")
        self._hooks.take()
