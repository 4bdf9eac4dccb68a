# SPDX-License-Identifier: MIT
"""SingleComparator: compares what two runs saved with SingleSave, one workbook for each name."""
import concurrent.futures
import dataclasses
import os
import re
import sys

from msprobe.core._workbook import write_workbook

_PLACE = re.compile(r"step(\d+)/rank(\d+)(?:/micro_step(\d+))?/([^/]+)\.npy")
_ID = re.compile(r"[._](\d+)$")


@dataclasses.dataclass
class CompareResult:
    """Figures of two arrays, over the part that both shapes have."""
    max_abs_error: float
    max_relative_error: float
    same_percentage: float
    first_mismatch_index: int
    percentage_within_thousandth: float
    percentage_within_hundredth: float


def _common_part(a, b):
    """Returns both arrays as float64, cut to the shape that both have."""
    if a.ndim != b.ndim:
        a, b = a.flatten(), b.flatten()
    part = tuple(slice(0, min(sizes)) for sizes in zip(a.shape, b.shape))
    return a[part].astype("float64"), b[part].astype("float64")


def _arrays_of(folder):
    """Returns {(step, rank, micro step, id, name): path} of the arrays of one name."""
    found = {}
    for where, _, files in os.walk(folder):
        for file in files:
            path = os.path.join(where, file)
            place = _PLACE.fullmatch(os.path.relpath(path, folder))
            if place:
                number = _ID.search(place[4])
                found[int(place[1]), int(place[2]), int(place[3] or 0), int(number[1]) if number else 0,
                      place[4]] = path
    return found


def _names(folder):
    return [name for name in os.listdir(folder) if os.path.isdir(os.path.join(folder, name))]


class SingleComparator:
    """Compares two folders of SingleSave.

    compare(dir1, dir2, output_path): writes OUTPUT_PATH/NAME.xlsx for each name, one row for each array
    that both have."""

    result_header = ["step", "rank", "micro_step", "id", "shape1", "shape2", "相同元素百分比(%)",
                     "首个不匹配元素索引", "最大绝对误差", "最大相对误差", "误差在千分之一内元素占比(%)",
                     "误差在百分之一内元素占比(%)"]

    @classmethod
    def compare(cls, dir1: str, dir2: str, output_path: str = "./msprobe_compare_output",
                num_processes: int = 8):
        """Compare two folders. num_processes: how many names are compared at a time."""
        if isinstance(num_processes, bool) or not isinstance(num_processes, int) or num_processes < 1:
            raise ValueError(f"num_processes: expected a number above 0, found {num_processes!r}")
        folders = [os.path.join(folder, "data") for folder in (dir1, dir2)]
        for folder in folders:
            if not os.path.isdir(folder):
                raise FileNotFoundError(f"{folder}: no such folder; SingleSave makes it")
        os.makedirs(output_path, exist_ok=True)
        names = sorted({*_names(folders[0]), *_names(folders[1])})
        with concurrent.futures.ThreadPoolExecutor(num_processes) as pool:
            list(pool.map(lambda name: cls._compare_name(folders, name, output_path), names))

    @classmethod
    def _compare_name(cls, folders, name, output_path):
        import numpy as np
        first, second = (_arrays_of(os.path.join(folder, name)) for folder in folders)
        rows = []
        for key in sorted(first.keys() & second.keys()):
            try:
                a, b = np.load(first[key], allow_pickle=False), np.load(second[key], allow_pickle=False)
                found = cls.compare_arrays(a, b)
            except (OSError, ValueError) as why:
                print(f"msprobe: {first[key]} and {second[key]} are not compared: {why}", file=sys.stderr)
                continue
            rows.append([*key[:4], list(a.shape), list(b.shape), found.same_percentage,
                         found.first_mismatch_index, found.max_abs_error, found.max_relative_error,
                         found.percentage_within_thousandth, found.percentage_within_hundredth])
        write_workbook(os.path.join(output_path, name + ".xlsx"), [cls.result_header, *rows])

    @classmethod
    def compare_arrays(cls, array1, array2) -> CompareResult:
        """Compare two arrays of numpy."""
        import numpy as np
        a, b = _common_part(array1, array2)
        if a.size == 0:
            return CompareResult(0.0, 0.0, 100.0, None, 100.0, 100.0)
        with np.errstate(all="ignore"):
            error, largest = np.abs(a - b), np.maximum(np.abs(a), np.abs(b))
            relative = np.nan_to_num(error / largest)
        others = np.flatnonzero(a != b)

        def share(mask):
            return float(np.count_nonzero(mask) / a.size * 100)

        return CompareResult(float(error.max()), float(relative.max()), share(a == b),
                             int(others[0]) if others.size else None,
                             share(error <= 0.001 * largest), share(error <= 0.01 * largest))
