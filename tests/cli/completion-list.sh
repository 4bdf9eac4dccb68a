# Every option of every command, as the check of the manual reads it.
$MSPROBE completion --list | grep -v " -"
$MSPROBE completion --list | grep -c "^version -"
