# It takes two.
$MSPROBE calibrate a
