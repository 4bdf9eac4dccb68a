# A path that is not there.
. "$CASES/compare-fixture"
dump t 2.0
$MSPROBE compare -tp t/dump.json -gp nowhere/dump.json -o out
ls
