# What a variable of the shell that is not set leaves behind is called by its name.
for command in compare graph_visualize; do
    $MSPROBE $command -tp '' -gp golden -o out
done
$MSPROBE parse -d ''
$MSPROBE report ''
$MSPROBE sql '' 'select 1'
$MSPROBE run -o '' -- true
$MSPROBE run ''
