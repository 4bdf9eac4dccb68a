# Suspects, and what every node does with the difference, as tables of their own.
. "$CASES/compare-fixture"
dump t 3.0
dump b 1.0
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --ext >/dev/null
cut -d, -f1-8,14 out/suspects_*.csv
cat out/roles_*.csv
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o book --ext --xlsx >/dev/null
ls book | sed 's/[0-9]\{6,\}/TIME/'
