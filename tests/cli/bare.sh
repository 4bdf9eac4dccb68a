# Without a command: the overview, but on stderr and as a mistake.
$MSPROBE help >a
$MSPROBE 2>b
status=$?
cmp a b && exit $status
