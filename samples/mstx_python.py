# SPDX-License-Identifier: MIT
"""Marks from Python:  msprobe run -o run python3 samples/mstx_python.py"""
import time

import mstx

for step in range(20):
    whole = mstx.range_start(f"step {step}")
    load = mstx.range_start("load batch", domain="io")
    time.sleep(0.0005)
    mstx.range_end(load, domain="io")
    time.sleep(0.001)
    mstx.range_end(whole)
mstx.mark("done")
print("tool", hex(mstx.get_tool_id()))
