# Nothing in the directory, nothing in the file.
mkdir -p empty
: >dump.json
$MSPROBE stat empty
echo "exit $?"
$MSPROBE stat dump.json
