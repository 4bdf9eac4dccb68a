# No records on either side.
mkdir t
echo "{\"task\": \"statistics\", \"level\": \"mix\", \"framework\": \"pytorch\", \"data\": {}}" >t/dump.json
$MSPROBE compare -tp t/dump.json -gp t/dump.json -o out >/dev/null
cat out/compare_result_*.csv | wc -l
