# The noise of equal runs, its file, and what compare makes of that.
. "$CASES/compare-fixture"
dump a 3.0
dump b 3.000001
dump c 3.000003
$MSPROBE calibrate a/dump.json b/dump.json c/dump.json -o noise.json
cat noise.json
dump t 3.00001
$MSPROBE compare -tp t/dump.json -gp a/dump.json --ext --noise-floor noise.json -o out >/dev/null
cut -d, -f1,35-37 out/compare_result*.csv
