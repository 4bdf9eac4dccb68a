# Nothing there that could be converted.
mkdir empty
$MSPROBE data2db --data empty --db out
