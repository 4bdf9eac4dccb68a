# SPDX-License-Identifier: MIT
"""SingleSave: writes tensors by hand, with figures, one folder for each name, step and rank.

    DUMP_PATH/data/NAME/stepS/rankR[/micro_stepM]/NAME.json, NAME.npy, NAME.INDEX.npy
"""
import collections
import json
import os

from msprobe import _say

_FRAMEWORKS = ("pytorch", "mindspore")


class _Framework:
    """What is asked of a framework; it is imported when a program first saves."""

    def __init__(self, name):
        if name not in _FRAMEWORKS:
            raise ValueError(f"fmk: expected one of {', '.join(_FRAMEWORKS)}, found {name!r}")
        self._is_torch = name == "pytorch"
        if self._is_torch:
            import torch as module
        else:
            import mindspore as module
        self._module = module

    def rank(self):
        if self._is_torch:
            group = self._module.distributed
            return group.get_rank() if group.is_available() and group.is_initialized() else 0
        from msprobe.mindspore import _distributed
        return self._module.communication.get_rank() if _distributed.is_initialised() else 0

    def is_tensor(self, value):
        return isinstance(value, self._module.Tensor)

    def array(self, tensor):
        """Returns the values as numpy has them: of PyTorch as float32, of MindSpore in their type."""
        if self._is_torch:
            return tensor.detach().cpu().float().numpy()
        if tensor.dtype == self._module.bfloat16:
            tensor = tensor.astype(self._module.float32)
        return tensor.asnumpy()


def _figures(array):
    """Returns the figures of an array; None where there are no values."""
    import numpy as np
    wide = array.astype(np.float64)
    names = ("max", "min", "mean", "norm")
    found = dict.fromkeys(names)
    if wide.size:
        with np.errstate(all="ignore"):
            found = dict(zip(names, (float(wide.max()), float(wide.min()), float(wide.mean()),
                                     float(np.sqrt((wide * wide).sum())))))
    return {**found, "shape": list(array.shape)}


def _warn(why):
    _say.say(f"SingleSave: {why}")


def _write_json(path, value):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, indent=4)


class SingleSave:
    """Saves tensors that the program chooses. A process has one: making another one returns the first.

    dump_path: the folder; fmk: "pytorch" or "mindspore".
    A file that cannot be written is said in one line, and the program goes on."""

    _instance = None

    def __new__(cls, dump_path: str, fmk: str = "pytorch"):
        if cls._instance is None:
            framework = _Framework(fmk)
            os.makedirs(dump_path, exist_ok=True)
            self = super().__new__(cls)
            self.dump_path, self.rank = dump_path, framework.rank()
            self.step_count, self.tag_count = 0, collections.defaultdict(int)
            self._framework = framework
            cls._instance = self
        return cls._instance

    @classmethod
    def _get(cls):
        if cls._instance is None:
            raise RuntimeError("SingleSave(dump_path) has to be made before it saves")
        return cls._instance

    @classmethod
    def save_config(cls, data):
        """Write the configuration of the training, a value that JSON can hold, to configurations.json."""
        _write_json(os.path.join(cls._get().dump_path, "configurations.json"), data)

    @classmethod
    def save(cls, data):
        """Save tensors by their names; each call within a step is a micro batch of its own."""
        self = cls._get()
        if not isinstance(data, dict):
            _warn(f"expected a dict of names and tensors, found {type(data).__name__}; nothing is saved")
            return
        for name, value in data.items():
            cls.save_ex({name: value}, self.tag_count[name])
            self.tag_count[name] += 1

    @classmethod
    def save_ex(cls, data, micro_batch=None):
        """Save tensors by their names, or lists, tuples and dicts of tensors."""
        self = cls._get()
        if not isinstance(data, dict):
            _warn(f"expected a dict of names and tensors, found {type(data).__name__}; nothing is saved")
            return
        for name, value in data.items():
            if not isinstance(name, str):
                _warn(f"the name {name!r} is no text; its value is not saved")
            elif not isinstance(value, (list, tuple, dict)) and not self._framework.is_tensor(value):
                _warn(f"{name}: expected a tensor, list, tuple or dict, found {type(value).__name__}")
            else:
                self._write(name, value, micro_batch)

    @classmethod
    def step(cls):
        """The step is over: micro batches count from 0 again."""
        self = cls._get()
        self.tag_count.clear()
        self.step_count += 1

    def _write(self, name, value, micro_batch):
        folder = os.path.join(self.dump_path, "data", name, f"step{self.step_count}", f"rank{self.rank}")
        if micro_batch is not None:
            folder = os.path.join(folder, f"micro_step{micro_batch}")
        try:
            os.makedirs(folder, exist_ok=True)
            described = self._described(value, os.path.join(folder, name))
            _write_json(os.path.join(folder, name + ".json"), {"data": described})
        except OSError as why:
            _warn(f"{name} is not saved: {why}")

    def _described(self, value, path):
        if isinstance(value, dict):
            return {key: self._tensor(item, f"{path}.{key}") for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._tensor(item, f"{path}.{at}") for at, item in enumerate(value)]
        return self._tensor(value, path)

    def _tensor(self, tensor, path):
        import numpy as np
        if not self._framework.is_tensor(tensor):
            raise TypeError(f"SingleSave: expected a tensor, found {type(tensor).__name__}")
        array = self._framework.array(tensor)
        np.save(path + ".npy", array)
        return _figures(array)
