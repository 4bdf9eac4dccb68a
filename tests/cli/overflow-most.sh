# Of many ranks with an answer the first is shown in full, some in a line, and the others are counted.
. "$CASES/compare-fixture"
for rank in 0 1 2 3 4 5 6 7 8 9 10 11; do dump run/rank$rank NaN; done
$MSPROBE overflow_check -i run -o out | sed 's/ in [0-9.]* [mun]*s$/ in T/; s/analyze_[0-9]*/analyze_TIME/'
echo "--most 0:"
$MSPROBE overflow_check -i run -o out --most 0 | grep -c 'lies in'
