# A file of pins that is no list of pairs is refused with its place.
. "$CASES/align-fixture"
echo '- a' >pins.yaml
$MSPROBE compare -tp t/dump.json -gp b/dump.json --pins pins.yaml
