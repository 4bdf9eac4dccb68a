#!/bin/sh
# SPDX-License-Identifier: MIT
# Breaks the disk, the memory and the process under every command that writes; see tests/suites/faults.py.
#   B=build
B=${B:-build}
exec "${PYTHON:-/usr/bin/python3}" tests/suites/faults.py "$B"
