# One fault on many ranks is one finding with a count; --most 0 lists each.
. "$CASES/compare-fixture"
for rank in 0 1 2 3 4 5 6 7 8 9 10 11; do dump run/rank$rank NaN; done
$MSPROBE check run | sed 's/ in [0-9.]* [mun]*s$/ in T/'
echo "--most 0:"
$MSPROBE check run --most 0 | grep -c '^suspect'
