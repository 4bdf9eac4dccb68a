# A closed standard output is no place to lose a result quietly.
$MSPROBE version >&-
