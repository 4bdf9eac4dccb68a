# What differs is told first; --exit-code makes it the exit status.
. "$CASES/compare-fixture"
dump t 3.0
dump b 1.0
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --exit-code >said
code=$?
hide <said
exit $code
