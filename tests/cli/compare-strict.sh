# As the official tool: no table of a dump without records, and a rank that one side lost is passed
# over while the directories are as many.
. "$CASES/compare-fixture"
mkdir -p b/rank1 e
echo '{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {}}' >e/dump.json
for rank in 0 1 2; do
    dump "t/rank$rank" 1.0
    [ $rank = 1 ] || dump "b/rank$rank" 1.0
done
$MSPROBE compare -tp e/dump.json -gp e/dump.json -o none --compat strict >/dev/null
ls none 2>/dev/null
$MSPROBE compare -tp t -gp b -o out --compat strict >/dev/null
find out -type f | sort | hide
