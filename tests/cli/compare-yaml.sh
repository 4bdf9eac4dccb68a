# A mapping with a mistake in it.
. "$CASES/compare-fixture"
dump t 2.0
dump b 2.0
echo "a: [1" >map.yaml
$MSPROBE compare -tp t/dump.json -gp b/dump.json -dm map.yaml -o out
