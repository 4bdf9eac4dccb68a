# SPDX-License-Identifier: MIT
"""Tests of the MindSpore adapter, each in a process of its own.

    suite_mindspore.py BUILD [WORD]      prints "ok NAME" or "not ok NAME"
"""
import sys

from mindspore_cases import main

import mindspore_records  # noqa: F401  tests
import mindspore_training  # noqa: F401
import mindspore_programs  # noqa: F401

if __name__ == "__main__":
    main(sys.argv[2] if len(sys.argv) > 2 else "")
