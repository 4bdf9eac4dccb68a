# A format that does not exist.
$MSPROBE quantise empty --as fp3
