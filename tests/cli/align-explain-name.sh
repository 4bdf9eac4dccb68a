# A node that no dump has is answered with the nearest.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json --explain Functional.linaer.0.forward
