# NaN that no input had is told, and --exit-code makes it the exit status.
. "$CASES/compare-fixture"
dump run/rank0 NaN
$MSPROBE check run --exit-code >said
code=$?
sed 's/ in [0-9.]* [mun]*s$/ in T/' said
exit $code
