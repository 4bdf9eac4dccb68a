# A rank that cannot be read is named and left out.
. "$CASES/compare-fixture"
dump run/rank0 1.0
mkdir run/rank1
echo '{"task": ' >run/rank1/dump.json
$MSPROBE check run | sed 's/ in [0-9.]* [mun]*s$/ in T/'
