# Without a command: the overview, on stderr.
$MSPROBE
