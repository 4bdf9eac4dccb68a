# Pins override the alignment; names that are nowhere are told with the nearest.
. "$CASES/align-fixture"
cat >pins.yaml <<'END'
Functional.swiglu.0.forward: Functional.silu.0.forward
Mint.add.0.forward: N/A
Functional.dense.0.forwrad: Functional.linear.0.forward
Functional.linear.0.forward: Functional.dense.0.forward
Functional.dense.0.forward.output.0: Functional.linear.0.forward.input.0
END
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out --pins pins.yaml | hide
pairs
