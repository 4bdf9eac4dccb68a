# SPDX-License-Identifier: MIT
"""Checks the arguments of seed_all, for all frameworks."""


def check(seed, **switches):
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= 2**32 - 1:
        raise ValueError(f"seed: expected a number from 0 to {2**32 - 1}, found {seed!r}")
    for name, value in switches.items():
        if not isinstance(value, bool):
            raise ValueError(f"{name}: expected True or False, found {value!r}")
