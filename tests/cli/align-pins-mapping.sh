# Mappings and pins exclude each other.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json -dm x.yaml --pins pins.yaml
