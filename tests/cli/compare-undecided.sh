# Where statistics hardly tell, the answer is what to dump, as settings that a dump takes as they are.
. "$CASES/compare-fixture"
dump t 1.0
dump b 1.0
sed -i '5s/float32/bfloat16/' t/dump.json
$MSPROBE compare -tp t/dump.json -gp b/dump.json -o out | sed -n '/^suspect 1/p; /^cannot/,/list/p'
