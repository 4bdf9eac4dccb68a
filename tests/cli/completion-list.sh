# Every option of every command, as the check of the manual reads it.
$MSPROBE help | sed -n 's/^  \([a-z0-9_-]*\)  *.*/\1/p' >a
$MSPROBE completion --list | grep -v " -" | cmp - a
$MSPROBE completion --list | grep '^version'
