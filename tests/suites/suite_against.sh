#!/bin/sh
# SPDX-License-Identifier: MIT
# Why is a run slower than another one?  Generated pairs with and without a planted change, a pair of traces of a real
# training, and what cannot be compared.
suite=against
. tests/support/checks.sh
traces=../shared/traces/kineto

pairs() { "$PYTHON" tests/suites/against.py "$msprobe" "$scratch" --pairs 24 --equal 12 --seed 7 >>"$said" 2>&1; }
check 'planted changes are the first cause, and equal runs have none' pairs

trace() { # file, seed, plant
    "$PYTHON" - "$scratch/$1" "$2" "$3" <<'END'
import sys
sys.path.insert(0, "tests/suites")
import against
path, seed, plant = sys.argv[1:]
against.trace(path, int(seed), False, plant or None, 0.1)
END
}
trace old.json 1 '' && trace new.json 2 operator && trace again.json 3 '' || exit 1
against() { "$msprobe" report "$scratch/new.json" --against "$scratch/old.json" "$@"; }
text() { against >"$scratch/out" && grep -q 'why' "$scratch/out" && grep -q 'operator: aten::gelu takes' "$scratch/out"; }
check 'the text names the operator' text
gate() { against --gate 2% >"$scratch/out"; is $? 1 && { against --gate 0.5 >"$scratch/out"; is $? 0; }; }
check 'a gate is closed by a cause that is larger, and only by that' gate
forms() {
    against --format markdown | grep -q '^| +.* | .*aten::gelu' &&
        against --format junit --gate 2% >"$scratch/junit"
    is $? 1 && grep -q '<failure .*slower' "$scratch/junit" && "$PYTHON" -c '
import sys, xml.dom.minidom
xml.dom.minidom.parse(sys.argv[1])' "$scratch/junit"
}
check 'Markdown and JUnit are written' forms
noise() {
    against --noise "$scratch/again.json" --format json >"$scratch/json" && "$PYTHON" -c '
import json, sys
causes = json.load(open(sys.argv[1]))["causes"]
low, high = causes[0]["interval"]
assert causes[0]["name"] == "aten::gelu" and low <= causes[0]["cost_ms"] <= high and causes[0]["ranks"] == [0], causes' "$scratch/json"
}
check 'a further old run tells the noise' noise
same() { "$msprobe" report "$scratch/old.json" --against "$scratch/old.json" | grep -q 'same run'; }
check 'a run against itself is equal' same
halves() {
    "$msprobe" report "$scratch/old.json" --against "$scratch/old.json" --steps 5-9 >"$scratch/out" && grep -q 'same run' "$scratch/out" &&
        { against --steps 900 2>"$scratch/out"; is $? 3; } && grep -q 'no steps' "$scratch/out"
}
check 'steps are chosen by their numbers' halves
parts() {
    "$msprobe" report "$scratch/new.json" --against "$scratch/new.json" --steps 20-34 --old_steps 5-19 >"$scratch/out" &&
        grep -q 'no place takes longer' "$scratch/out"
}
check 'two parts of one run are compared' parts
table() { # file, seed, factor of the work of rank 2
    "$PYTHON" - "$scratch/$1" "$2" "$3" <<'END'
import random
import sys
path, seed, slow = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rng, now = random.Random(seed), [0] * 4
with open(path, "w", encoding="utf-8") as f:
    print("rank,lane,name,begin_ns,end_ns,kind,step,peer,bytes", file=f)
    for step in range(40):
        arrived = []
        for rank in range(4):
            b = now[rank]
            m, e = (b := b + int(3e6 * rng.lognormvariate(0, 0.02))), b + int(6e6 * rng.lognormvariate(0, 0.02) * (slow if rank == 2 else 1))
            print(f"{rank},main,forward,{now[rank]},{m},range,{step},,", f"{rank},main,backward,{m},{e},range,{step},,", sep="\n", file=f)
            arrived.append(e)
        done = max(arrived) + int(1e6 * rng.lognormvariate(0, 0.02))
        for rank in range(4):
            print(f"{rank},comm,AllReduce,{arrived[rank]},{done},comm,{step},,1000000", file=f)
            now[rank] = done + 20000
END
}
ranks() {
    table old.csv 1 1 && table new.csv 2 1.15 && table equal.csv 3 1 &&
        "$msprobe" report "$scratch/new.csv" --against "$scratch/old.csv" --format json >"$scratch/json" &&
        "$msprobe" report "$scratch/equal.csv" --against "$scratch/old.csv" --format json >"$scratch/equal.json" && "$PYTHON" -c '
import json, sys
found, equal = (json.load(open(path)) for path in sys.argv[1:])
cause = found["causes"][0]
assert (cause["ranks"], cause["name"], len(found["causes"])) == ([2], "backward", 1), found["causes"]
assert 0.7 < cause["cost_ms"] < 1.1, cause
assert equal["causes"] == [], equal["causes"]' "$scratch/json" "$scratch/equal.json"
}
check 'a rank that works longer is named, not the communication in which the others wait' ranks
refused() { # expected words, arguments
    expected=$1
    shift
    "$msprobe" report "$@" >"$scratch/out" 2>&1
    status=$?
    [ $status -ge 2 ] && grep -q "$expected" "$scratch/out" && ! grep -q 'Assertion\|NULL' "$scratch/out"
}
mkdir "$scratch/empty"
check 'a path that is not there is named' refused 'nowhere' "$scratch/old.json" --against "$scratch/nowhere"
check 'a folder without a run is named' refused 'empty' "$scratch/empty" --against "$scratch/old.json"
check 'a gate needs a number' refused 'gate' "$scratch/old.json" --against "$scratch/new.json" --gate much
check 'steps need numbers' refused 'steps' "$scratch/old.json" --against "$scratch/new.json" --steps 9-2
check 'options of a comparison need another run' refused 'against' "$scratch/old.json" --gate 2%

if [ ! -e "$traces" ]; then
    echo "skip against: no $traces here"
    exit 0
fi
cp "$traces"/trace_diff_*.json.gz "$scratch/"
names() {
    "$msprobe" report "$scratch/trace_diff_test.json.gz" --against "$scratch/trace_diff_control.json.gz" --steps 1009 --format json \
        >"$scratch/json" &&
        "$PYTHON" - "$scratch/json" "$traces/expected/trace_diff_control_against_test.json" >>"$said" 2>&1 <<'END'
import json
import sys
found, peer = (json.load(open(path, encoding="utf-8")) for path in sys.argv[1:])
assert found["causes"], "no cause"
wrong = 0
for kind, on_device in (("CPU", False), ("GPU", True)):
    ours = {}
    for n in found["names"]:
        if n["on_device"] == on_device:
            row = ours.setdefault(n["name"][:160], [0, 0, 0, 0])
            for i, key in enumerate(("old_count", "old_ms", "new_count", "new_ms")):
                row[i] += n[key]
    for row in peer[kind]["top 40 by |diff_duration|"]:
        have = ours.get(row["name"], [0, 0, 0, 0])
        want = [row["control_counts"], row["control_total_duration"] / 1e3, row["test_counts"], row["test_total_duration"] / 1e3]
        if any(abs(x - y) > 1e-3 * abs(y) + 1e-6 for x, y in zip(have, want)):
            wrong += 1
            print(kind, row["name"][:60], have, want)
print(wrong, "of 80 names differ")
sys.exit(wrong != 0)
END
}
check 'names, counts and sums of a pair of real traces are those of HolisticTraceAnalysis' names
