#!/bin/sh
# SPDX-License-Identifier: MIT
# Real dumps through the library and through a reader written in Python from the
# rules of the format: the same records, rows and fields.  See dump_oracle.py.
#   GOLDEN=../shared/golden     where the dumps are
PYTHON=${PYTHON:-/usr/bin/python3}
GOLDEN=${GOLDEN:-../shared/golden}
tool=${B:-build}/tests/tool_rows
if ! "$PYTHON" -c '' 2>/dev/null; then
    echo 'skip dump: no Python'
    exit 0
fi
# The expected files of the writer are dumps as well, and always here.
"$PYTHON" tests/suites/dump_oracle.py "$tool" tests/data/writer/*.json || exit
if [ ! -d "$GOLDEN" ]; then
    echo "skip golden: no $GOLDEN"
    exit 0
fi
find "$GOLDEN" -name dump.json -o -name construct.json -o -name stack.json | sort |
    xargs "$PYTHON" tests/suites/dump_oracle.py "$tool"
