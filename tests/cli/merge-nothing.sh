# One rank is nothing to merge.
. "$CASES/compare-fixture"
dump t/rank0 2.0
dump b/rank0 2.0
$MSPROBE compare -tp t -gp b -o out >/dev/null
echo 'api: [Torch]' >merge.yaml
$MSPROBE merge_result -i out -o merged -config merge.yaml
