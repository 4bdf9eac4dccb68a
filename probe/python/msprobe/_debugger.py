# SPDX-License-Identifier: MIT
"""Code shared by the debuggers of all frameworks: config.json, steps, saving.

A process has one debugger, as with the official tool: constructing another one returns the first.
An error in the configuration is raised at once; any later error is written to dump_error_info.log
and the training goes on.
"""
import atexit
import contextlib
import functools
import json
import os
import threading
import weakref

from msprobe import _custom, _probe
from msprobe._config import DebuggerConfig
from msprobe._tokens import Tokens

_DEFAULT = '{"task": "statistics", "level": "L1"}'


def _reference(model):
    """Returns a function that returns the model, or its chunks, or None after it was freed."""
    if not isinstance(model, (list, tuple)):
        return weakref.ref(model)
    chunks = [weakref.ref(m) for m in model]
    del model

    def get():
        alive = [m for m in (ref() for ref in chunks) if m is not None]
        return alive if len(alive) == len(chunks) else None

    return get


def _open(path, given):
    """Opens the dumper with a config.json, which it polls for changes, and with arguments; returns what it
    does, and the settings."""
    name, text = "arguments", _DEFAULT
    if path is not None:
        name = os.path.abspath(path)
        with open(path, encoding="utf-8") as f:
            text = f.read()
    config = DebuggerConfig(text, given)
    if config.load and not config.dump_path:
        given = dict(given, dump_path=config.load.get("path"))  # nothing is written there
    return _probe.open(name, text, json.dumps(given)), config


class _NotMade(RuntimeError):
    """A function of the debugger was called before there is one."""


_MISTAKES = (ValueError, TypeError, _NotMade)  # of the program, which has to see them


def _in_child():
    """A forked child has a lock of its own: another thread of the parent, which is not there, may hold that of the
    parent."""
    BaseDebugger._lock = threading.RLock()


os.register_at_fork(after_in_child=_in_child)


def unharmed(func):
    """func, a class method that a training calls.  A failure of ours ends the dump, not the training."""
    @functools.wraps(func)
    def run(cls, *args, **kwargs):
        try:
            return func(cls, *args, **kwargs)
        except _MISTAKES:
            raise
        except Exception as why:
            if _probe.is_alien(why):
                raise
            cls._give_up(f"{func.__name__}: {why!r}")

    return run


class BaseDebugger:
    """Starting, stopping and stepping; a framework adds its hooks."""

    _instance = None
    _lock = threading.RLock()

    def __new__(cls, config_path: str = None, task: str = None, dump_path: str = None, level: str = None,
                step: list = None):
        with BaseDebugger._lock:
            if cls._instance is None:
                cls._instance = super().__new__(cls)
                cls._instance._is_open = False
            return cls._instance

    def __init__(self, config_path: str = None, task: str = None, dump_path: str = None,
                 level: str = None, step: list = None):
        """Takes the settings; the class says what they mean."""
        if self._is_open:
            return
        for name, value in (("config_path", config_path), ("dump_path", dump_path)):
            if value is not None and not isinstance(value, (str, os.PathLike)):
                raise ValueError(f"{name}: expected a path, found {value!r}")
        given = {"task": task, "dump_path": dump_path and os.fspath(dump_path), "level": level,
                 "step": step, "framework": self.framework}
        given = {key: value for key, value in given.items() if value is not None}
        try:
            self._info, self.config = _open(config_path, given)
            self._setup()
        except BaseException:
            BaseDebugger._forget(type(self))
            raise
        self._is_open = True
        self._grads = []
        self._tokens = None
        atexit.register(self._last_words)

    @staticmethod
    def _forget(cls):
        if cls._instance is not None and not cls._instance._is_open:
            cls._instance = None
        if _probe.info() is not None:
            _probe.close()

    # ---- overridden by a framework ----------------------------------------

    framework = None
    # module with put_all(), take_all(), wrapper(function, prefix, name), and watch_custom(function, prefix,
    # name, group) where functions of the program need not be replaced
    _functions = None
    _optimizers = None  # module with watch()
    _loader = None  # replaces inputs of modules by those of an earlier dump
    _levels_of_models = ("L0", "mix")  # levels that hook modules of a model
    _modules = None  # module with check(model), hook_one(module, name, with_backward), unhook_one()

    def _hook_model(self):
        """Hooks the model's modules."""

    def _after_stop(self):
        """Releases the objects of the step after collecting has stopped."""

    def _has_backward(self):
        """Tells whether the backward of modules is recorded."""

    def _rank(self):
        """Returns the rank of this process, None while unknown."""

    def _watch_grads(self, variable, name, number):
        """Hooks the tensors; the record is written when all gradients have arrived."""

    def _take_request(self, tokens):
        """Narrows the dump to the tokens of the wanted request; returns False when it is not in the batch."""
        wanted = self.config.request_id
        if not isinstance(wanted, str) or self.config.level not in ("L0", "L1", "mix"):
            return True
        _probe.set_request(0, 0, 0)
        fits = isinstance(tokens, dict) and tokens and all(
            isinstance(k, str) and type(n) is int and n > 0 for k, n in tokens.items())
        if not fits:
            return True
        if wanted not in tokens:
            return False
        begin = 0
        for name, count in tokens.items():
            if name == wanted:
                break
            begin += count
        _probe.set_request(begin, begin + tokens[wanted], sum(tokens.values()))
        return True

    # ---- hooks ------------------------------------------------------------

    def _setup(self):
        """Sets the hooks that are in place from the beginning."""
        if self._info["level"] in ("L1", "mix"):
            self._functions.put_all()
        if self._info["level"] == "mix":
            self._optimizers.watch()

    def _make_loader(self, load):
        """Returns what replaces inputs of modules as the section "load" says; a framework may have it."""

    def _load_inputs(self, model):
        """Replaces inputs from here on; returns False when that is all that is wanted."""
        if self.config.load is None:
            return True
        if self._loader is None:
            self._loader = self._make_loader(self.config.load)
            if self._loader is None:
                return True
        if model is not None:
            self._loader.attach(model)
        self._loader.start(self._step, self._known_rank)
        return self._loader.dumps_too

    def _check_model(self, model):
        """Checks and stores the model, or the list of its chunks."""
        if model is not None:
            self._modules.check(model)
            self._model = _reference(model)  # for a later start without a model
        elif self._model is None and self._info["level"] in ("L0", "mix"):
            raise ValueError("start(model): the levels L0 and mix need the model")

    def _begin(self):
        """Starts the dumper, which may have read its file again; returns whether anything is
        collected.

        While nothing is collected, the framework has its original functions."""
        collects = _probe.start()
        if self._info["watched"]:
            level, self._info = self._info["level"], _probe.info()
            if self._info["level"] != level:
                self.config.level = self._info["level"]
                self._setup()
        if self._info["level"] != "L0" and collects is not self._functions.are_put():
            self._functions.put_all() if collects else self._functions.take_all()
        self._is_put |= collects
        return collects

    _is_put = False  # hooks may be in the program, also when a step is over that nobody has stopped

    def _find_rank(self):
        if self._known_rank is not None:
            return
        rank = self._rank()
        if rank is not None:
            self._known_rank = rank
            _probe.set_rank(rank)

    _known_rank = None
    _step = 0
    _model = None

    @classmethod
    def _give_up(cls, why):
        """Stops dumping and removes all hooks and wrappers from the program."""
        _probe.switch_off(why)
        with contextlib.suppress(Exception):
            cls._functions.take_all()
        with contextlib.suppress(Exception):
            cls._instance._after_stop()

    # ---- public -----------------------------------------------------------

    @classmethod
    def _get(cls):
        if cls._instance is None or not cls._instance._is_open:
            raise _NotMade("no PrecisionDebugger has been made yet")
        return cls._instance

    @classmethod
    @unharmed
    def start(cls, model=None, token_range: list = None, rank_id: int = None, scheduled_tokens=None):
        """Begin to collect, when the step and the rank are among those chosen.

        model: the model, or a list of its chunks; the levels L0 and mix need it.
        token_range: two numbers; only calls of the model from the first to the second are collected.
        rank_id: the rank of this process, if the framework does not know it.
        scheduled_tokens: the number of tokens of each request in the batch, by its name; with request_id in
        config.json only tokens of that request are dumped."""
        self = cls._get()
        with BaseDebugger._lock:
            if not self._take_request(scheduled_tokens):
                return
            self._check_model(model)
            if rank_id is not None:
                self._known_rank = rank_id
                _probe.set_rank(rank_id)
            else:
                self._find_rank()
            if self._info["level"] == "debug" or not self._load_inputs(model):
                return
            if self._begin() and self._info["level"] in self._levels_of_models:
                self._hook_model()
            if token_range is not None or self._tokens is not None:
                self._watch_tokens(model, token_range)

    @classmethod
    @unharmed
    def stop(cls):
        """Collect no more until the next start."""
        self = cls._get()
        if _probe.idle() and not self._is_put:
            return
        with BaseDebugger._lock:
            self._find_rank()
            _probe.stop()
            self._after_stop()
            self._is_put = False

    forward_backward_dump_end = stop

    @classmethod
    @unharmed
    def step(cls):
        """The step is over: its files are finished, calls are counted from 0."""
        self = cls._get()
        with BaseDebugger._lock:
            self._save_grads()
            self._step += 1
            if self._loader is not None:
                self._loader.step()
            _probe.step()

    @classmethod
    def set_init_step(cls, step: int):
        """The number of the first step, for a run that resumes.

        step: a number from 0 to 1000000."""
        self = cls._get()
        if isinstance(step, bool) or not isinstance(step, int) or not 0 <= step <= 1000000:
            raise ValueError(f"step: expected a number from 0 to 1000000, found {step!r}")
        self._step = step
        _probe.set_step(step)

    # ---- level debug ------------------------------------------------------

    @classmethod
    @unharmed
    def save(cls, variable, name: str, save_backward: bool = True):
        """Dump any value under a name, and the gradients of the tensors in it; at level debug only.

        variable: a tensor, a number, or lists, tuples and dicts of them.
        name: the name of the record.
        save_backward: whether gradients are dumped."""
        self = cls._get()
        if self._info["level"] != "debug" or not isinstance(name, str):
            return
        number = _probe.save(name, variable)
        if number is not None and save_backward:
            self._watch_grads(variable, name, number)

    def _save_grads(self):
        for pending in self._grads:
            pending.write()
        self._grads.clear()

    # ---- subsets, and functions of the program ----------------------------

    def _watch_tokens(self, model, token_range):
        if token_range is None:
            self._tokens.forget()
            return
        root = model[0] if isinstance(model, (list, tuple)) else model
        if root is None:
            raise ValueError("token_range: needs the model")
        if self._tokens is not None and self._tokens.root is not root:
            self._tokens.forget()
            self._tokens = None
        if self._tokens is None:
            self._tokens = Tokens(root)
        self._tokens.restart(token_range)

    @classmethod
    def register_custom_api(cls, module, api: str, api_prefix: str = None):
        """Dump a function of the program's own: module.api.

        module: a module or class; api: the name of the function in it.
        api_prefix: the first part of its records' names; without one, the name of the module."""
        _custom.add(cls._get()._functions, module, api, api_prefix)

    @classmethod
    def restore_custom_api(cls, module, api: str):
        """Dump the function module.api no more."""
        cls._get()
        _custom.remove(module, api)

    @classmethod
    def _module_dump(cls, module, dump_name: str):
        """Dump one module, by a name of the program's own, and no functions meanwhile."""
        self = cls._get()
        if not isinstance(dump_name, str):
            raise ValueError(
                f"module_dump(module, dump_name): expected a text, found {dump_name!r}")
        with BaseDebugger._lock:
            self._functions.take_all()
            self._modules.hook_one(module, dump_name, self._has_backward())

    @classmethod
    def _module_dump_end(cls):
        self = cls._get()
        with BaseDebugger._lock:
            self._modules.unhook_one()
            self._setup()

    def _last_words(self):
        with BaseDebugger._lock:
            self._save_grads()
            if _probe.info() is not None:
                with contextlib.suppress(ValueError):  # was reported when it happened
                    _probe.close()
