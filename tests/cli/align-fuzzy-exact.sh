# -fm is one way of alignment, so another is not asked for beside it.
. "$CASES/align-fixture"
$MSPROBE compare -tp t/dump.json -gp b/dump.json -fm --align exact
$MSPROBE graph_visualize -tp t -gp b -o out -fm --align always
