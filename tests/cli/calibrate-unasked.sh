# What nobody asked for is not written.
. "$CASES/compare-fixture"
dump a 3.0
dump b 3.000001
$MSPROBE calibrate a/dump.json b/dump.json
$MSPROBE calibrate a/dump.json b/dump.json --format json | tail -2
find . -newer b/dump.json -name '*.json' ! -path './[ab]/*'
