#!/bin/sh
# SPDX-License-Identifier: MIT
# Trend databases and result files as others see them: SQLite's own shell, and,
# where it is installed, the official tool on the same dumps; see suite_trend.py.
PYTHON=${PYTHON:-/usr/bin/python3}
msprobe=${B:-build}/msprobe
golden=${GOLDEN:-../shared/golden}
dir=$(mktemp -d "${TMPDIR:-/tmp}/msprobe-trend-XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
rc=0

is() { # name got wanted
    if [ "$2" = "$3" ]; then
        echo "ok $1"
    else
        printf 'not ok %s\n%s\n' "$1" "$2"
        rc=1
    fi
}

# Twelve steps of two ranks; the value tells step and rank.
make_dumps() {
    for step in 0 1 2 3 4 5 6 7 8 9 10 11; do
        for rank in 0 1; do
            at=$dir/in/step$step/rank$rank
            mkdir -p "$at"
            cat >"$at/dump.json" <<END
{"task": "statistics", "level": "L0", "framework": "pytorch", "dump_data_dir": null, "data": {
"Module.layers.0.fc.Linear.forward.0": {"input_args": [], "input_kwargs": {}, "output": [
{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2],
 "Max": $step.5, "Min": -$step.5, "Mean": 0.0, "Norm": $rank.25}]}}}
END
        done
    done
}

sql() { sqlite3 "$dir/out/dump_data.trend.db" "$1"; }

shell_of_sqlite() {
    make_dumps
    "$msprobe" data2db --data "$dir/in" --db "$dir/out" --micro_step false >/dev/null || rc=1
    is integrity "$(sql 'PRAGMA integrity_check')" ok
    is 'rows of all steps and ranks' "$(sql 'SELECT count(*), sum(max), sum(norm) FROM trend_data')" \
        '24|144.0|18.0'
    is 'a curve' "$(sql 'SELECT max FROM trend_data WHERE rank = 1 AND step > 8 ORDER BY step' |
        tr '\n' ' ')" '9.5 10.5 11.5 '
    is 'steps in order of their numbers' "$(sql 'SELECT * FROM global_stats')" \
        '1|0|11|norm,max,min,mean|norm,max,min,mean|norm,max,min,mean|norm,max,min,mean'
    # Without a rowid the table is its own index: the viewer's query must not scan it.
    is 'queries use the key' "$(sql 'EXPLAIN QUERY PLAN SELECT norm FROM trend_data
        WHERE rank = 0 AND step = 3 AND target_id = 1 AND metric_id = 1' | grep -c 'SEARCH.*PRIMARY KEY')" 1
    is 'one file, no journal' "$(ls "$dir/out")" dump_data.trend.db
}

if command -v sqlite3 >/dev/null; then
    shell_of_sqlite
else
    echo 'skip trend-sqlite: no sqlite3 here'
fi
if ! "$PYTHON" -c 'import msprobe.core.compare.data2db, msprobe.overflow_check.analyzer' 2>/dev/null; then
    echo 'skip trend-official: the official tool is not installed'
elif [ ! -d "$golden" ]; then
    echo "skip trend-official: no reference dumps in $golden"
else
    "$PYTHON" tests/suites/suite_trend.py "$msprobe" "$golden" "$dir/official" || rc=1
fi
exit $rc
