# SPDX-License-Identifier: MIT
"""What the debuggers of all frameworks have in common: config.json, steps, saving.

There is one debugger in a process, as with the official tool: making another
one gives the first again.  A mistake in the configuration is raised where it is
made; whatever goes wrong afterwards is written to dump_error_info.log and the
training goes on.
"""
import atexit
import json
import os
import threading
import time

from msprobe import _probe

_DEFAULT = '{"task": "statistics", "level": "L1"}'
_POLL_ON, _POLL_OFF = 0.5, 3.0  # seconds between looks at the file


def _signature(path):
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class _Config:
    """config.json, what the caller says in its place, and whether the file has changed."""

    def __init__(self, path, given):
        self.path = path
        self.given = given
        self.seen = _signature(path) if path else None
        self.looked = 0.0

    def text(self):
        if self.path is None:
            return "arguments", _DEFAULT
        with open(self.path, encoding="utf-8") as f:
            return self.path, f.read()

    def open(self):
        name, text = self.text()
        return _probe.open(name, text, json.dumps(self.given))

    def is_watched(self):
        """Only a file that has the key dump_enable is looked at again."""
        try:
            return json.loads(self.text()[1]).get("dump_enable") is not None
        except (OSError, ValueError, AttributeError):
            return False

    def has_changed(self, enabled):
        now = time.monotonic()
        if now - self.looked < (_POLL_ON if enabled else _POLL_OFF):
            return False
        self.looked = now
        signature = _signature(self.path)
        if signature is None or signature == self.seen:
            return False
        self.seen = signature
        return True


class BaseDebugger:
    """Starting, stopping and stepping; a framework adds its hooks."""

    _instance = None
    _lock = threading.RLock()

    def __new__(cls, *args, **kwargs):
        with BaseDebugger._lock:
            if cls._instance is None:
                cls._instance = super().__new__(cls)
                cls._instance._is_open = False
            return cls._instance

    def __init__(self, config_path=None, task=None, dump_path=None, level=None, step=None):
        if self._is_open:
            return
        for name, value in (("config_path", config_path), ("dump_path", dump_path)):
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise ValueError(f"{name}: expected a path, found {value!r}")
        given = {"task": task, "dump_path": dump_path and os.fspath(dump_path), "level": level,
                 "step": step, "framework": self.framework}
        given = {key: value for key, value in given.items() if value is not None}
        self._config = _Config(config_path and os.fspath(config_path), given)
        try:
            self._info = self._config.open()
            self._watched = config_path is not None and self._config.is_watched()
            self._setup()
        except BaseException:
            BaseDebugger._forget(type(self))
            raise
        self._is_open = True
        self._grads = []
        atexit.register(self._last_words)

    @staticmethod
    def _forget(cls):
        if cls._instance is not None and not cls._instance._is_open:
            cls._instance = None
        if _probe.info() is not None:
            _probe.close()

    # ---- what a framework adds -------------------------------------------

    framework = None

    def _setup(self):
        """Hooks that are there from the beginning."""

    def _check_model(self, model):
        """Remember the model, or the list of its chunks."""

    def _hook_model(self):
        """Hooks of its modules."""

    def _rank(self):
        """The rank of this process, None while it is not known."""

    # ---- the file ---------------------------------------------------------

    def _reload(self):
        if not self._watched or not self._config.has_changed(self._info["enabled"]):
            return
        step = _probe.info()["step"]
        enabled = self._info["enabled"]
        before = self._info
        _probe.close()
        try:
            self._info = self._config.open()
        except (OSError, ValueError) as why:
            given = {**self._config.given, "dump_path": before["dump_path"], "dump_enable": False}
            self._info = _probe.open("arguments", _DEFAULT, json.dumps(given))
            if enabled:
                print_warning(f"dump is switched off: {why}")
        _probe.set_step(step)
        self._setup()

    def _find_rank(self):
        rank = self._rank()
        if rank is not None and rank != self._known_rank:
            self._known_rank = rank
            _probe.set_rank(rank)

    _known_rank = None

    # ---- for people -------------------------------------------------------

    @classmethod
    def _get(cls):
        if cls._instance is None or not cls._instance._is_open:
            raise RuntimeError("no PrecisionDebugger has been made yet")
        return cls._instance

    @classmethod
    def start(cls, model=None, token_range=None, rank_id=None, scheduled_tokens=None):
        """Begin to collect, when the step and the rank are among those chosen.

        The levels L0 and mix need the model, or a list of its chunks.
        token_range: only calls of the model from the first to the second number."""
        self = cls._get()
        with BaseDebugger._lock:
            self._reload()
            with_modules = self._info["level"] in ("L0", "mix")
            if with_modules:
                self._check_model(model)
            if rank_id is not None:
                self._known_rank = rank_id
                _probe.set_rank(rank_id)
            else:
                self._find_rank()
            if self._info["level"] == "debug":
                return
            collects = _probe.start()
            if collects and with_modules:
                self._hook_model()
            if token_range is not None:
                _probe.stop()
                self._watch_tokens(model, token_range)

    @classmethod
    def stop(cls):
        """Collect no more until the next start."""
        self = cls._get()
        with BaseDebugger._lock:
            self._find_rank()
            _probe.stop()

    forward_backward_dump_end = stop

    @classmethod
    def step(cls):
        """The step is over: its files are finished, calls are counted from 0."""
        self = cls._get()
        with BaseDebugger._lock:
            self._save_grads()
            _probe.step()
            self._reload()

    @classmethod
    def set_init_step(cls, step):
        """The number of the first step, for a run that resumes."""
        cls._get()
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= 1000000:
            raise ValueError(f"step: expected a number from 0 to 1000000, found {step!r}")
        _probe.set_step(step)

    # ---- level debug ------------------------------------------------------

    @classmethod
    def save(cls, variable, name, save_backward=True):
        """Dump any value under a name, and the gradients of the tensors in it."""
        self = cls._get()
        if self._info["level"] != "debug" or not isinstance(name, str):
            return
        number = _probe.save(name, variable)
        if number is not None and save_backward:
            self._watch_grads(variable, name, number)

    def _watch_grads(self, variable, name, number):
        """Hooks on the tensors; the record is written when all are there."""

    def _save_grads(self):
        for pending in self._grads:
            pending.write()
        self._grads.clear()

    def _watch_tokens(self, model, token_range):
        raise ValueError("token_range: not for this framework")

    def _last_words(self):
        with BaseDebugger._lock:
            self._save_grads()
            if _probe.info() is not None:
                _probe.close()


def print_warning(text):
    import sys
    print(f"msprobe: {text}", file=sys.stderr)
