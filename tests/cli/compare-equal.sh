# A dump against itself.
. "$CASES/compare-fixture"
dump t 2.0
dump b 2.0
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --exit-code | hide
cat out/*.csv
