# Two kinds of dump.
. "$CASES/compare-fixture"
dump t 2.0
dump b 2.0
sed -i "s/statistics/tensor/" b/dump.json
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out
