# Other names need no mapping; --ext says how each row found its partner.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --ext | hide
pairs
sed 's/.*,\([a-z]*,[0-9.]*\)$/\1/' out/compare_result*.csv
