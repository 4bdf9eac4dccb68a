# A run that was cut off says so once, however often it is compared.
. "$CASES/compare-fixture"
dump a 3.0
dump b 3.000001
dump c 3.000002
head -c $(($(wc -c <a/dump.json) - 2)) a/dump.json >cut && mv cut a/dump.json
$MSPROBE calibrate a/dump.json b/dump.json c/dump.json | head -2
$MSPROBE calibrate a/dump.json b/dump.json --format json | grep -A 2 notes
