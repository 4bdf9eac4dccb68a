# SPDX-License-Identifier: MIT
"""Saving single tensors of a program, and comparing what two runs saved: the names of the official tool.

    from msprobe.core import SingleComparator, SingleSave

    SingleSave("saved", fmk="pytorch")
    SingleSave.save({"scores": scores})
    SingleSave.step()
    SingleComparator.compare("saved", "saved_before", "out")
"""
from msprobe.core._single_compare import CompareResult, SingleComparator
from msprobe.core._single_save import SingleSave

__all__ = ["CompareResult", "SingleComparator", "SingleSave"]
