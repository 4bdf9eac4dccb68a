# Two ranks side by side; a file that is no result is named.
. "$CASES/compare-fixture"
for r in 0 1; do
    dump t/rank$r 2.0
    dump b/rank$r 2.5
done
$MSPROBE compare -tp t -gp b -o out >/dev/null
echo "a,b" >out/notes.csv
printf 'api: [Torch.mul, Torch.add]\ncompare_index: [Max diff]\n' >merge.yaml
$MSPROBE merge_result -i out -o merged -config merge.yaml | sed 's/_[0-9]\{14\}/_TIME/'
