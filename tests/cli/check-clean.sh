# A clean dump: nothing is found, and what was looked at is said.
. "$CASES/compare-fixture"
dump run/step0/rank0 1.0
dump run/step0/rank1 1.0
$MSPROBE check run --exit-code | hide | sed 's/ in [0-9.]* [mun]*s$/ in T/'
