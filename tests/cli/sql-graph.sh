# A graph is no run; the box of the viewers asks any database.
. "$CASES/compare-fixture"
dump t 2.0
mkdir g
cp -r t g/rank0
printf '{}' >g/rank0/construct.json
printf '{}' >g/rank0/stack.json
$MSPROBE graph_visualize -tp g -o out >/dev/null 2>&1
mv out/*.vis.db pair.vis.db
$MSPROBE sql pair.vis.db 'SELECT 1'
$MSPROBE sql --box 5 pair.vis.db 'SELECT count(*) > 0 FROM tb_nodes'
$MSPROBE sql --box 5 pair.vis.db 'DELETE FROM tb_nodes'
