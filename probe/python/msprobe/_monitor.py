# SPDX-License-Identifier: MIT
"""What the monitors of all frameworks share: config.json and its changes, folders, steps, alarms.

The C half computes the figures of a tensor when it gets it and writes the rows at the end of a step; see
probe/monitor/monitor.h. Whatever fails in here is said once on standard error, and the training goes on
without the monitor."""
import datetime
import functools
import json
import os
import re
import uuid

from msprobe import _probe, _say
from msprobe._nested import is_a

ACTV, ACTV_GRAD, GRAD_UNREDUCED, GRAD_REDUCED, EXP_AVG, EXP_AVG_SQ, PARAM_ORIGIN, PARAM_UPDATED, OTHER = range(9)
_SUFFIXES = ("actv", "actv_grad", "acc_grad", "post_grad", "exp_avg", "exp_avg_sq", "param_origin", "param_updated",
             "mg_direction")
_TENSORBOARD, _API = 1, 2
_open, _join, _abspath = open, os.path.join, os.path.abspath  # the program may replace them to count its own calls
_BEIJING = datetime.timezone(datetime.timedelta(hours=8))  # the official tool names folders by this time
_FOLDER = re.compile(r"([\w-]{0,20})-rank(\d{1,5})-")


def say(text):
    _say.say(f"monitor: {text}")


def guarded(func):
    """func, a method of a monitor that a training calls: a failure of ours ends the monitor, not the training. Modes and
    classes of tensors of the program do not see what it reads."""
    @functools.wraps(func)
    def run(self, *args, **kwargs):
        if self._is_over:
            return None
        try:
            return func(self, *args, **kwargs) if kwargs else _probe.ask(func, self, *args)
        except Exception as why:
            if _probe.is_alien(why):
                raise
            self._give_up(f"{func.__name__.strip('_')}: {why}")
            return None

    return run


def surviving(func):
    """func, a hook that holds its monitor by a weak reference: a failure of ours ends the monitor, not the training."""
    @functools.wraps(func)
    def call(self, *args):
        try:
            return func(self, *args)
        except Exception as why:
            monitor = self.monitor()
            if monitor is None or _probe.is_alien(why):
                raise
            name = type(self).__name__ if func.__name__ == "__call__" else func.__name__
            monitor._give_up(f"{name.strip('_').lower()}: {why}")
            return None

    return call


def output_base():
    return os.environ.get("MONITOR_OUTPUT_DIR", "./monitor_output")


def _time_of(tag):
    return datetime.datetime.strptime(tag, "%b%d_%H-%M-%S")


def _folder_between(base, rank, first, last):
    """Returns the folder of a rank that an earlier run began between two times, None when there is none."""
    found = None
    for name in sorted(os.listdir(base)):
        match = _FOLDER.match(name)
        if match is None or int(match.group(2)) != rank:
            continue
        try:
            time = _time_of(match.group(1))
        except ValueError:
            continue
        if first <= time <= last:
            found = _join(base, name)
    return found


def folder_of(base, rank, append):
    """Returns the folder of a rank's csv files. append: the times between which an earlier run began, or nothing."""
    if append:
        found = _folder_between(base, rank, *map(_time_of, append))
        if found is not None:
            return found
        say(f"append_output: no folder of rank {rank} in {base} between {' and '.join(append)}; a new one is begun")
    now = datetime.datetime.now(_BEIJING).strftime("%b%d_%H-%M-%S")
    return _join(base, f"{now}-rank{rank}-{str(uuid.uuid4())[:8]}")


def squashed(name, is_on):
    """Returns a name without what stands before its layers, so that names of chunks and of wrapped models agree."""
    if is_on:
        for pattern in (r"^.*\.(layers?\..*)", r"^.*\.(embeddings?\..*)", r"^.*\.(final.*)", r"^.*\.(output.*)",
                        r"^.*\.(norm.*)"):
            match = re.findall(pattern, name)
            if match:
                return match[0]
    return name


def read_config(path):
    """Returns the text of a config.json and its settings. None: that of no file, which asks for nothing."""
    if path is None:
        return "{}", _probe.monitor_settings("config", "{}")
    with _open(path, encoding="utf-8") as file:
        text = file.read()
    return text, _probe.monitor_settings(_abspath(path), text)


class BaseMonitor:
    """Config, steps and files; a framework adds its hooks."""

    _tensor_type = ()  # the framework's class of tensors

    def __init__(self, config_file_path, rank, pp_stage, mates):
        """Reads the config, whose mistakes are raised; everything later is only said."""
        self._path = None if config_file_path is None else os.fspath(config_file_path)
        self._rank, self._pp_stage, self._mates = rank, pp_stage, mates
        self._is_over = self._is_monitoring = self._due = False
        self._step = self._collected = 0
        self._file_time = 0
        self._writer = self._board = None
        self._folder = None
        self._struct, self._is_struct_written = {}, False
        self._is_dynamic = os.environ.get("DYNAMIC_MONITOR", "False").lower() == "true" and self._path is not None
        self._text, self.config = read_config(self._path)
        self._squash = self.config["squash_name"]
        if not self._is_dynamic:
            self._begin()
            self._is_monitoring = self.config["collect_times"] > 0

    # ---- overridden by a framework ------------------------------------------

    def _hook(self):
        """Sets the hooks that the config asks for."""

    def _unhook(self):
        """Takes all of them away."""

    # ---- config --------------------------------------------------------------

    def _begin(self):
        """Makes the writer of the present config. The folder stays the same."""
        config = self.config
        self._collected = 0
        self._writer = None
        if config["ur_distribution"]:
            say("ur_distribution has no csv columns and is left out, as in the official tool")
        if config["module_ranks"] and self._rank not in config["module_ranks"]:
            return
        base = output_base()
        if self._folder is None:
            self._folder = folder_of(base, self._rank, config["append_output"])
        self._writer = _probe.Monitor(self._path or "config", self._text, self._folder, base, self._rank,
                                      self._pp_stage, self._mates)
        self._board = self._make_board() if config["format"] == _TENSORBOARD else None

    def _make_board(self):
        """Returns TensorBoard's writer; None, and csv is written, where it is not installed."""
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as why:
            say(f"format tensorboard: {why}; csv is written instead")
            return None
        return SummaryWriter(self._folder)

    def _follow(self):
        """Takes over a config.json that was edited while the program runs; a wrong one changes nothing."""
        if not self._is_dynamic or self._path is None:
            return
        try:
            time = os.path.getmtime(self._path)
            if time == self._file_time:
                return
            self._file_time = time
            text, config = read_config(self._path)
        except (OSError, ValueError) as why:
            say(f"{why}; the config before stays in effect")
            return
        if not config["dynamic_on"]:
            return
        self._unhook()
        self._text, self.config = text, config
        self._begin()
        self.config["start_step"] = self._step  # from the next step on, whatever the file says
        self._is_monitoring = config["collect_times"] > 0
        self._hook()
        say(f"{self._path} was read again; the figures begin with step {self._step}")

    def _switch_file_off(self):
        """Sets dynamic_on to false in the file, so that the next edit begins anew."""
        try:
            with _open(self._path, encoding="utf-8") as file:
                known = json.load(file)
            known["dynamic_on"] = False
            aside = f"{self._path}.{os.getpid()}.tmp"
            with _open(aside, "w", encoding="utf-8") as file:
                json.dump(known, file, indent=2)
            os.replace(aside, self._path)
            self._file_time = os.path.getmtime(self._path)
        except (OSError, ValueError) as why:
            say(f"{why}; dynamic_on stays true")

    # ---- steps ----------------------------------------------------------------

    def _is_wanted(self):
        first = self.config["start_step"]
        return self._is_monitoring and self._writer is not None and self._step >= first and \
            (self._step - first) % self.config["step_interval"] == 0

    def _look_ahead(self):
        """Decides whether the step that begins is collected."""
        self._due = not self._is_over and self._is_wanted()

    def _write(self, metric, with_micro=False):
        is_kept = self.config["format"] == _API or self._board is not None
        if self._board is not None:
            self._show(metric)
        self._writer.flush(metric, self._step, with_micro, is_kept)

    def _show(self, metric):
        for name, figures in self._writer.rows(metric):
            for op, value in figures.items():
                if isinstance(value, float):
                    self._board.add_scalar(f"{name}/rank{self._rank}/{_SUFFIXES[metric]}_{op}", value, self._step)

    def _end_step(self):
        """Writes the step, and counts it."""
        if self._due:
            self._collected += 1
            for metric in range(OTHER + 1):
                with_micro = metric in (ACTV, ACTV_GRAD) or (metric == GRAD_UNREDUCED and
                                                             self.config["monitor_mbs_grad"])
                self._write(metric, with_micro)
            self._writer.step_end()
            if self._collected >= self.config["collect_times"]:
                self._finish()
        self._step += 1
        self._follow()
        self._look_ahead()

    def _finish(self):
        self._is_monitoring = False
        if self._is_dynamic:
            self._switch_file_off()
        self._unhook()

    def _give_up(self, why):
        self._is_over, self._due = True, False
        say(f"{why}; this process is monitored no more")
        try:
            self._unhook()
        except Exception as other:
            if _probe.is_alien(other):
                raise
            say(f"some hooks stay, without effect: {other}")

    # ---- names and values ----------------------------------------------------------

    def _is_target(self, name, prefix):
        """Tells whether a parameter belongs to one of the chosen modules."""
        squashed_name = prefix + squashed(name, self._squash)
        return any(n.startswith(t) for t in self.config["targets"] for n in (name, squashed_name, prefix + name))

    def _target_of(self, path, prefix, targets):
        """Returns the name that a module's figures have, None for a module that was not chosen."""
        found = prefix + squashed(path, self._squash)
        if self.config["all_xy"] or self.config["print_struct"] or found in targets:
            return found
        return prefix + path if prefix + path in targets else None

    def _put_side(self, metric, group, name, micro, values):
        """Takes the figures of all inputs or all results of a module."""
        if is_a(values, self._tensor_type):
            values = (values,)
        if not is_a(values, (list, tuple)):
            return
        for i, value in enumerate(values):
            place = f"_{i}" if len(values) > 1 else ""
            self._writer.put(metric, group, f"{name}{place}:{micro}", value)

    # ---- module_struct.json --------------------------------------------------------

    def _shape(self, value):
        if is_a(value, self._tensor_type):
            return f"size={tuple(value.shape)}, dtype={value.dtype}"
        return f"{type(value)}"

    def _shapes(self, values):
        """Returns what module_struct.json says of values."""
        if is_a(values, (tuple, list)):
            found = {"config": f"{type(values).__name__}[{len(values)}]"}
            found.update((i, self._shape(v)) for i, v in enumerate(values))
            return found
        if is_a(values, self._tensor_type):
            return {"config": "tensor", "tensor": self._shape(values)}
        return {"config": f"{type(values)}"}

    def _write_struct(self):
        if self._is_struct_written or not self._struct:
            return
        self._is_struct_written = True
        folder = _join(output_base(), "module_struct", f"rank{self._rank}")
        os.makedirs(folder, exist_ok=True)
        path = _join(folder, "module_struct.json")
        with _open(path, "w", encoding="utf-8") as file:
            json.dump(self._struct, file, indent=2)
        say(f"the structure of the model is in {path}; the training goes on, without figures")

    # ---- figures, for the program ------------------------------------------------

    def _figures(self, *metrics):
        """Returns {tag: {op: value}} of the present step."""
        found = {}
        for metric in metrics if self._writer is not None else ():
            for name, figures in self._writer.rows(metric):
                found[f"{name}/rank{self._rank}/{_SUFFIXES[metric]}"] = figures
        return found
