# Ranks are paired by number; what has no counterpart is named.
. "$CASES/compare-fixture"
dump t/rank0 2.0
dump t/rank1 2.0
dump b/rank1 2.0
dump b/rank2 2.0
$MSPROBE compare -tp t -gp b -o out | hide
