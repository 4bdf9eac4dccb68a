# A wish that names nothing is refused before anything is read.
$MSPROBE whatif --without stage:3 none
