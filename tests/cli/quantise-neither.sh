# Neither a format to try nor a golden side.
$MSPROBE quantise empty
