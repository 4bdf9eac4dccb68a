# Time and memory on stderr, the result on stdout.
$MSPROBE version --stats
