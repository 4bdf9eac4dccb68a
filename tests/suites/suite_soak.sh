#!/bin/sh
# SPDX-License-Identifier: MIT
# A short soak; `make soak` is the long one.
#   B=build ITERATIONS=25
B=${B:-build}
if nm -D "$B/libmsprobe.so" | grep -qE '__(asan|tsan|ubsan)_'; then
    echo 'skip soak: a sanitizer keeps freed memory'
    exit 0
fi
if [ ! -e "$B/python/mstx.so" ]; then
    echo "skip soak: the Python module is not built, Python's headers are missing"
    exit 0
fi
exec "${PYTHON:-/usr/bin/python3}" tests/suites/soak.py "$B" "${ITERATIONS:-25}"
