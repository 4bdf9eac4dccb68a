# A folder without dumps.
mkdir empty
$MSPROBE check empty
