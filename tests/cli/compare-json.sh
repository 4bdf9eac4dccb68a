# For machines.
. "$CASES/compare-fixture"
dump t 3.0
dump b 1.0
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --format json | hide
