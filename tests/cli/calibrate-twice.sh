# One run has no noise.
. "$CASES/compare-fixture"
dump a 3.0
$MSPROBE calibrate a a
