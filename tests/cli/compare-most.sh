# Of many ranks those that are alike are told together, the odd one first; --most 0 tells each.
. "$CASES/compare-fixture"
for rank in 0 1 2 3 4 5 6 7 8 9 10 11; do
    dump t/rank$rank "$([ $rank = 7 ] && echo 3.0 || echo 2.0)"
    dump b/rank$rank 2.0
done
$MSPROBE compare -tp t -gp b -o out | hide
echo "--most 0:"
$MSPROBE compare -tp t -gp b -o out --most 0 | grep -c '^rank.*:$'
