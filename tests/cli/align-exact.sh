# --align exact pairs names alone, as --compat strict does.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --align exact | hide
