# A rank that cannot be read is named and left out, or read as far as it goes.
. "$CASES/compare-fixture"
dump run/rank0 1.0
mkdir run/rank1
echo '{"task": ' >run/rank1/dump.json
$MSPROBE check run >out
status=$?
sed 's/ in [0-9.]* [mun]*s$/ in T/' out
$MSPROBE check --tolerant run | grep '^checked 2 dumps' >/dev/null || exit 1
exit $status
