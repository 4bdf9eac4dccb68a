# A name in a mapping that is far too long is refused with its file and place.
. "$CASES/compare-fixture"
dump t 2.0
dump b 2.5
printf 'Torch.mul.0.forward.output.0: %s\n' "$(head -c 70000 /dev/zero | tr '\0' x)" >map.yaml
$MSPROBE compare -tp t -gp b -dm map.yaml -o out
