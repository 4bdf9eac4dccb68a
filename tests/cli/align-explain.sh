# Why two nodes are a pair, asked from either side.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json --explain Functional.swiglu.0.forward
echo --
$MSPROBE compare -tp t/dump.json -gp b/dump.json --explain Functional.silu.0.forward
ls
