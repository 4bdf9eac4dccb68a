# The first operator that differs.
. "$CASES/compare-fixture"
dump t/rank0 3.0
dump b/rank0 1.0
$MSPROBE compare -da -tp t -gp b -o out | hide
grep op_name out/diff_analyze_*.json
