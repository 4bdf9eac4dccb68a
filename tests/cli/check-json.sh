# The form of compare, with what the check was.
. "$CASES/compare-fixture"
dump run/step1/rank3 NaN
$MSPROBE check run --format json | sed 's/"seconds": .*/"seconds": S,/'
