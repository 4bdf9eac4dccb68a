# SPDX-License-Identifier: MIT
"""Lines of sources, for the stacks of records. The C half reads them by way of this function and not by linecache
itself, so that a compiler which follows every Python function below compiled code leaves them out: see
pytorch/_compilers.py."""
import linecache


def line_of(path, number):
    return linecache.getline(path, number)
