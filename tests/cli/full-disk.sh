# What cannot be written is an error, even behind a command that did its work.
[ -c /dev/full ] || { echo "no /dev/full here"; exit 77; }
$MSPROBE help >/dev/full
