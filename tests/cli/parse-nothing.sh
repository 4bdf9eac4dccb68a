# A directory without tensors is an error that says what was looked for.
mkdir dump
echo '{}' >dump/dump.json
$MSPROBE parse -d dump
