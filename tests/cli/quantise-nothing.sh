# A folder without dumps or checkpoints.
mkdir empty
$MSPROBE quantise empty --as mxfp4
