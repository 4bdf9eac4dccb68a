#!/bin/sh
# SPDX-License-Identifier: MIT
# import, report and export of a capture of known content, checked by readers that
# are not ours: Python's json and csv, SQLite's own shell, protoc.
B=${B:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
msprobe=$PWD/$B/msprobe
run=$tmp/run
log=$tmp/log

# check NAME COMMAND...: runs it, shows its output when it fails
check() {
    name=$1
    shift
    if "$@" >"$log" 2>&1; then echo "ok $name"; else
        echo "not ok $name"
        head -12 "$log"
    fi
}
says() { # WORDS COMMAND...
    words=$1
    shift
    "$@" 2>&1 | tee "$tmp/said" | grep -qF -- "$words" || { cat "$tmp/said"; return 1; }
}
status() { # EXPECTED COMMAND...
    want=$1
    shift
    "$@"
    [ $? -eq "$want" ]
}

if ! command -v "$PYTHON" >/dev/null; then
    echo "skip timeline: no $PYTHON to make a capture and read what comes of it"
    exit 0
fi
$PYTHON tests/gen/capture.py "$run" >"$tmp/truth.json" || exit 1
check "import finds every event" says '28 events on 6 tracks of 2 processes' "$msprobe" import "$run"
check "a report names the slow step" says 'step 8 of rank 1' "$msprobe" report "$run"
check "a report tells lost records" says 'lost 3 records' "$msprobe" report "$run"
check "a report keeps control characters from the terminal" \
    status 1 sh -c "'$msprobe' report --most 0 '$run' | LC_ALL=C grep -q 'new\$'"
json_report() {
    "$msprobe" report --format json "$run" >"$tmp/report.json" && $PYTHON - "$tmp/report.json" <<'PY'
import json, sys
r = json.load(open(sys.argv[1]))
assert set(r) == {'run', 'findings', 'steps', 'ranks', 'names', 'communication', 'use', 'memory'}, set(r)
for f in r['findings']:
    assert set(f) == {'kind', 'severity', 'ranks', 'steps', 'value', 'text', 'where', 'evidence'}, f
    assert f['severity'] in ('info', 'warning', 'error')
assert [f['kind'] for f in r['findings']] == ['drop', 'slow_step', 'unfinished']
assert r['findings'][1]['ranks'] == [1] and r['findings'][1]['steps'] == [8, 8]
assert len(r['steps']) == 10 and r['run']['step_median_ns'] == 9000
names = {(n['domain'], n['name']): n for n in r['names']}
assert names['default', 'step 1']['count'] == 2
assert names['default', 'layer']['p99_ns'] == 100
assert any(len(n['name']) == 100000 for n in r['names'])
PY
}
check "a report in JSON keeps the contract" json_report

for f in chrome trace-view perfetto csv; do
    export_and_compare() {
        "$msprobe" export -f $f -o "$tmp/out.$f" "$run" &&
            $PYTHON tests/suites/check_export.py $f "$tmp/out.$f" "$tmp/truth.json"
    }
    check "$f holds every event once" export_and_compare
done
export_db() {
    "$msprobe" export -f ascend-db -o "$tmp/all.db" "$run" &&
        $PYTHON tests/suites/check_export.py ascend-db "$tmp/all.db" "$tmp/truth.json"
}
check "ascend-db holds every event once" export_db
if command -v protoc >/dev/null; then
    check "protoc decodes every event of the Perfetto trace" \
        $PYTHON tests/suites/check_export.py protoc "$tmp/out.perfetto" "$tmp/truth.json"
else
    echo "skip protoc decodes the Perfetto trace: protobuf-compiler is not installed"
fi
per_rank() {
    "$msprobe" export -f ascend-db -o "$tmp/ranks" "$run" &&
        [ "$(ls "$tmp/ranks" | tr '\n' ' ')" = \
            "ascend_pytorch_profiler_0.db ascend_pytorch_profiler_1.db " ] &&
        [ "$(sqlite3 "$tmp/ranks/ascend_pytorch_profiler_1.db" \
            'SELECT rankId, (SELECT count(*) FROM MSTX_EVENTS), (SELECT count(*) FROM STEP_TIME),
             (SELECT min(connectionId) FROM MSTX_EVENTS) FROM RANK_DEVICE_MAP')" = '1|9|9|4000000002' ]
}
# The readers' way to a device side: join by connectionId; host-only events have none.
readers_join() {
    sqlite3 "$tmp/all.db" "SELECT count(*), sum(t.startNs IS NOT NULL) FROM MSTX_EVENTS e
        LEFT JOIN TASK t ON t.connectionId = e.connectionId" | grep -qx '25|2'
}
if command -v sqlite3 >/dev/null; then
    check "ascend-db makes a file for each rank" per_rank
    check "host events have no task, those with a stream have one" readers_join
    check "the database is sound" says ok sqlite3 "$run/run.db" 'PRAGMA integrity_check'
else
    echo "skip ascend-db by SQLite's shell: sqlite3 is not installed"
fi

sql() { # EXPECTED QUERY
    [ "$("$msprobe" sql "$run" "$2" | tail -n +2 | tr '\n\t' ' |')" = "$1" ] ||
        { "$msprobe" sql "$run" "$2"; return 1; }
}
check "SQL sees every event" sql '28 ' "SELECT count(*) FROM events"
check "SQL narrows by time as a full scan does" sql '1 ' \
    "SELECT (SELECT count(*) FROM events WHERE start_ns >= 1717575960208127869 AND
             end_ns < 1717575960208130369) =
            (SELECT count(*) FROM events WHERE +start_ns >= 1717575960208127869 AND
             +end_ns < 1717575960208130369)"
check "SQL narrows by rank and track" sql '9|19 ' \
    "SELECT (SELECT count(*) FROM events WHERE rank = 1),
            (SELECT count(*) FROM events WHERE rank < 1)"
check "SQL joins events with tables" sql 'python3 ' \
    "SELECT DISTINCT p.name FROM events e JOIN tracks t ON t.id = e.track
     JOIN processes p ON p.id = t.process"
check "SQL shows what only some events have" sql '12||1025 ' \
    "SELECT max(value), max(address), max(end_tid) FROM events"
check "SQL cannot write" says 'not authorized' "$msprobe" sql "$run" 'DELETE FROM runs'
check "a wrong query is an error" says 'syntax error' "$msprobe" sql "$run" 'SELEC'
json_sql() {
    "$msprobe" sql --format json "$run" \
        "SELECT name, dur_ns / 2.0 AS half, NULL AS n FROM events WHERE name = 'layer'" |
        $PYTHON -c "import json,sys; assert json.load(sys.stdin) == [
            {'name': 'layer', 'half': 50.0, 'n': None}]"
}
check "SQL gives JSON" json_sql

# What was exported comes back by import, and goes out again the same.
for f in chrome trace-view; do
    again() {
        cp "$tmp/out.$f" "$tmp/in.$f.json" &&
            "$msprobe" export -f $f -o "$tmp/again.$f" "$tmp/in.$f.json" &&
            $PYTHON tests/suites/check_export.py $f "$tmp/again.$f" "$tmp/truth.json"
    }
    check "$f is read back whole" again
done
again_db() {
    cp "$tmp/all.db" "$tmp/in.db" && "$msprobe" import "$tmp/in.db" &&
        "$msprobe" export -f ascend-db -o "$tmp/again.db" "$tmp/in.db" &&
        $PYTHON tests/suites/check_export.py ascend-db "$tmp/again.db" "$tmp/truth.json"
}
check "ascend-db is read back whole" again_db
cat >"$tmp/other.json" <<'JSON'
[{"name":"outer","ph":"B","pid":"p","tid":1,"ts":1.5,"cat":"x"},
 {"name":"inner","ph":"X","pid":"p","tid":1,"ts":2,"dur":1e0,"args":{"k":[1,{"a":null}]}},
 {"name":"wave","ph":"C","pid":"p","tid":1,"ts":2.25,"args":{"v":0.5}},
 {"ph":"s","id":1,"pid":"p","tid":1,"ts":2,"name":"flow"},
 {"name":"outer","ph":"E","pid":"p","tid":1,"ts":9},
 {"name":"left open","ph":"B","pid":"p","tid":1,"ts":9.5},
 {"name":
JSON
other() {
    [ "$("$msprobe" sql "$tmp/other.json" "SELECT name, start_ns, dur_ns, depth, args, value,
        unfinished FROM events ORDER BY track, start_ns" | tail -n +2)" = \
        "$(printf '%s\n' 'outer	1500	7500	0			0' \
            'inner	2000	1000	1	{"k":[1,{"a":null}]}		0' \
            'left open	9500	0	0			1' 'wave	2250	0	0		0.5	0')" ] &&
        says 'is cut off' "$msprobe" report "$tmp/other.json"
}
check "a Chrome trace of others, cut off, is read" other
printf 'no trace of any kind\n' >"$tmp/none.txt"
check "a file that is no trace is refused" says 'byte' "$msprobe" import "$tmp/none.txt"
check "a program is named as one" says 'is a program' "$msprobe" import tests/suites/suite_timeline.sh

read_only() {
    cp -r "$run" "$tmp/ro" && rm -f "$tmp/ro/run.db" && chmod -R a-w "$tmp/ro" || return 1
    TMPDIR=$tmp says 'step 8 of rank 1' "$msprobe" report "$tmp/ro"
    rc=$?
    chmod -R u+w "$tmp/ro"
    return $rc
}
check "a capture that cannot be written to is read" read_only
check "no directory is an error with status 3" status 3 "$msprobe" import "$tmp/nothing"
mkdir "$tmp/empty"
check "an empty directory says how to record" says 'msprobe run' "$msprobe" import "$tmp/empty"
check "a format is required" status 2 "$msprobe" export -o "$tmp/x" "$run"
check "a truncated database is refused" sh -c "
    head -c 20000 '$run/run.db' >'$tmp/cut.db'; mkdir '$tmp/cut' && mv '$tmp/cut.db' '$tmp/cut/run.db'
    ! '$msprobe' report '$tmp/cut/run.db'"
# A database has its name when all of it is there, whenever an import is killed.
killed_import() {
    "$PYTHON" - "$msprobe" "$run" "$tmp/killed.db" <<'PY'
import os, signal, sqlite3, subprocess, sys, time
msprobe, run, db = sys.argv[1:]
t = time.monotonic()
subprocess.run([msprobe, "import", run, "-o", db], check=True, stdout=subprocess.DEVNULL)
whole = time.monotonic() - t
want = sqlite3.connect(db).execute("SELECT count(*) FROM findings").fetchone()
assert want[0] > 0
seen = 0
for i in range(40):
    if os.path.exists(db):
        os.unlink(db)
    p = subprocess.Popen([msprobe, "import", run, "-o", db], stdout=subprocess.DEVNULL)
    time.sleep(whole * i / 32)
    p.send_signal(signal.SIGKILL)
    p.wait()
    if os.path.exists(db):
        seen += 1
        assert sqlite3.connect(db).execute("SELECT count(*) FROM findings").fetchone() == want
print(seen, "of 40 were whole, the rest absent")
PY
}
check "a killed import leaves no database without findings" killed_import
